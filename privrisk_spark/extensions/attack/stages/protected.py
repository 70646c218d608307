"""The protected table and the people of the original one, as an intruder sees them, and which row is whose."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses
from pyspark.sql import types as T  # noqa: N812

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import Batches, in_chunks
from privrisk_spark.engine.decided import integers
from privrisk_spark.engine.number_texts import column
from privrisk_spark.engine.value_codes import labels_of
from privrisk_spark.errors import InputError
from privrisk_spark.extensions.attack.kernels.knowledge import coarser, mistaken
from privrisk_spark.extensions.attack.policy import Intruder
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.arrays import IntArray, LongArray
from privrisk_spark.kernels.recoding.listed import keys_of, places_of

CONSISTENT = schemas.CONSISTENT


@dataclass(frozen=True, eq=False)
class Tuples:
    """Distinct tuples of the columns an intruder knows, of the protected table or of the people of the original one.

    Attributes
    ----------
    nodes : ndarray of int32, shape (p, k)
        In lexicographic order.
    rows : ndarray of int64, shape (p,)
        Or people, with each; at least 1.
    """

    nodes: IntArray
    rows: LongArray

    @property
    def total(self) -> int:
        """Rows in all."""
        return int(self.rows.sum())


def collect_tuples(rows: Batches, names: Sequence[str], *, most: int, key: str) -> Tuples:
    """Collect the distinct tuples of a table.

    Parameters
    ----------
    names : sequence of k str
        Columns of nodes.
    most : int
        Tuples the driver may hold.
    key : str
        Of the policy, for messages.

    Raises
    ------
    InputError
        If there are more, or none.
    """
    found = rows.frame().groupBy(*names).agg(F.count("*").alias(schemas.N_ROWS)).limit(most + 1).toArrow()
    if found.num_rows > most:
        raise InputError(f"counting.sorted_vectors: {key} has more than {most:,} distinct rows; raise it.")
    if not found.num_rows:
        raise InputError(f"{key}: there are no rows.")
    nodes, rows_of = integers(found, names), found.column(schemas.N_ROWS).to_numpy().astype(np.int64)
    order = np.argsort(keys_of(nodes))
    return Tuples(nodes[order], rows_of[order])


def collect_shown(records: Batches, rows: Tuples, *, most: int) -> Tuples:
    """Collect the distinct rows of a protected table that are of some people.

    Parameters
    ----------
    records : Batches
        People beside their protected forms.
    rows : Tuples
        Of the protected table.

    Raises
    ------
    InputError
        If the protected table has none of them.
    """
    found = collect_tuples(records, schemas.nodes(rows.nodes.shape[1]), most=most, key="table")
    there = places_of(keys_of(rows.nodes), found.nodes) >= 0
    if not there.any():
        raise InputError(
            "attack.protected: nobody who is tried is in it; its record_id must hold the ids of table.record_id. Where "
            "few are drawn, raise attack.intruder.share."
        )
    return Tuples(found.nodes[there], found.rows[there])


def people(encoded: Batches, hierarchies: Sequence[Hierarchy], known: Sequence[int]) -> Batches:
    """Return what the intruder knows of every record of the original table.

    Parameters
    ----------
    encoded : Batches
        ENCODED, resolved, with all quasi-identifiers.
    hierarchies : sequence of k Hierarchy
        Of the known columns.
    known : sequence of int
        Their positions among all quasi-identifiers.

    Returns
    -------
    Batches
        ``record_id``, ``entity`` where the table names persons, ``q<j>`` nodes of the known columns: a leaf, or the
        root of a value that is missing.
    """
    columns = [
        F.when(F.col(f"q{i}") == hierarchy.n_leaves, hierarchy.root).otherwise(F.col(f"q{i}")).alias(f"q{j}")
        for j, (i, hierarchy) in enumerate(zip(known, hierarchies, strict=True))
    ]
    frame = encoded.frame()
    return Batches.of_frame(frame.select(*_named_by(frame), *columns))


def knowing(those: Batches, hierarchies: Mapping[str, Hierarchy], intruder: Intruder) -> Batches:
    """Replace the values of people by what the intruder knows of them: lost, mistaken or coarse ones.

    Parameters
    ----------
    those : Batches
        With ``record_id`` and the ``q<j>`` of known columns.
    hierarchies : mapping of known column to Hierarchy
    intruder : Intruder
        With neither errors nor levels nothing is replaced.
    """
    missing, wrong = intruder.errors.missing, intruder.errors.wrong
    if not (missing or wrong or any(intruder.levels.values())):
        return those
    words = [f"h{j}" for j in range(len(hierarchies))]
    drawn = [
        F.xxhash64(F.lit("errors"), F.lit(name), F.lit(intruder.seed), schemas.RECORD_ID).alias(word)
        for name, word in zip(hierarchies, words, strict=True)
    ]
    trees, levels = list(hierarchies.values()), [intruder.levels.get(name, 0) for name in hierarchies]
    schema = those.frame().schema

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in in_chunks(tables):
            known = table.drop_columns(words)
            for j, (tree, level) in enumerate(zip(trees, levels, strict=True)):
                nodes, of = table.column(f"q{j}").to_numpy(), table.column(words[j]).to_numpy().view(np.uint64)
                found = mistaken(nodes, of, values=len(tree.code_of), root=tree.root, missing=missing, wrong=wrong)
                found = coarser(found, tree.ancestor, root=tree.root, level=level)
                at = known.column_names.index(f"q{j}")
                known = known.set_column(at, known.schema.field(at), pa.array(found, pa.int32()))
            yield known

    return Batches.of_frame(those.frame().select("*", *drawn)).then(step, schema)


def of_labels(rows: Batches, k: int) -> Batches:
    """Return the rows of a table of labels as people: as :func:`people` does."""
    nodes = [F.col(name).alias(to) for name, to in zip(schemas.nodes(k), schemas.codes(k), strict=True)]
    frame = rows.frame()
    return Batches.of_frame(frame.select(*_named_by(frame), *nodes))


def _named_by(frame: DataFrame) -> list[str]:
    """Columns that say whose a row is."""
    return [name for name in (schemas.RECORD_ID, schemas.ENTITY) if name in frame.columns]


def of_his_table(forms: Batches, his: Batches, k: int) -> Batches:
    """Put what an intruder has in a table of his own beside the protected forms of the same people.

    Parameters
    ----------
    forms : Batches
        As :func:`decided_forms` or :func:`named_forms` return them.
    his : Batches
        ``record_id``, ``q<j>``.
    k : int
        Known columns.

    Returns
    -------
    Batches
        As `forms`; ``q<j>`` is -1 of somebody he does not have, and ``n<j>`` of somebody who is in his table alone.
    """
    nodes, codes = schemas.nodes(k), schemas.codes(k)
    joined = forms.frame().drop(*codes).join(his.frame(), schemas.RECORD_ID, "full")
    filled = [F.coalesce(F.col(name), F.lit(-1)).alias(name) for name in (*codes, *nodes)]
    return Batches.of_frame(joined.select(schemas.RECORD_ID, *filled, CONSISTENT))


def of_both(forms: Batches) -> Batches:
    """Leave the people out whom the intruder does not have, and those the protected table lacks."""
    return Batches.of_frame(forms.frame().where((F.col("q0") >= 0) & (F.col("n0") >= 0)))


def decided_forms(
    those: Batches, decisions: DataFrame, hierarchies: Mapping[str, Hierarchy], *, as_they_are: Sequence[str] = ()
) -> Batches:
    """Put people beside what a release shows of them, by the decisions in the vault.

    Parameters
    ----------
    those : Batches
        As :func:`people` returns them.
    decisions : DataFrame
        As the vault holds them; the first column has the ids, whatever its name.
    hierarchies : mapping of known column to Hierarchy
    as_they_are : sequence of str
        Known columns that no decision generalizes.

    Returns
    -------
    Batches
        ``record_id``, ``q<j>``, ``n<j>`` the nodes their released labels name, ``consistent`` dictionary rows the
        release was decided by.
    """
    k = len(hierarchies)
    levels = [
        (F.lit(0) if name in as_they_are else column(f"level_{name}")).cast("byte").alias(f"l{j}")
        for j, name in enumerate(hierarchies)
    ]
    chosen = decisions.select(column(decisions.columns[0]).alias(schemas.RECORD_ID), *levels, F.col(CONSISTENT))
    trees = list(hierarchies.values())
    # The root of a missing value follows the leaves, as their code does in the ancestors.
    ancestors, named = [tree.ancestor for tree in trees], [_named(tree) for tree in trees]
    leaves, roots = [tree.n_leaves for tree in trees], [tree.root for tree in trees]

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in in_chunks(tables):
            columns = {name: table.column(name) for name in (schemas.RECORD_ID, *schemas.codes(k))}
            for j in range(k):
                node, level = table.column(f"q{j}").to_numpy(), table.column(f"l{j}").to_numpy()
                code = np.where(node == roots[j], leaves[j], node)
                columns[f"n{j}"] = pa.array(named[j][ancestors[j][code, level]])
            columns[CONSISTENT] = table.column(CONSISTENT)
            yield pa.table(columns)

    return Batches.of_frame(those.frame().join(chosen, schemas.RECORD_ID)).then(step, forms(k))


def named_forms(those: Batches, released: Batches, k: int) -> Batches:
    """Put people beside the protected row that has their id.

    Parameters
    ----------
    those : Batches
        As :func:`people` returns them.
    released : Batches
        ``record_id``, ``n<j>`` of the known columns.
    k : int
        Known columns.

    Returns
    -------
    Batches
        As :func:`decided_forms`; ``n<j>`` is -1 of somebody the protected table lacks, and ``consistent`` null of all.
    """
    nodes = schemas.nodes(k)
    joined = those.frame().join(released.frame().select(schemas.RECORD_ID, *nodes), schemas.RECORD_ID, "left")
    filled = [F.coalesce(F.col(name), F.lit(-1)).alias(name) for name in nodes]
    absent = F.lit(None).cast("long").alias(CONSISTENT)
    return Batches.of_frame(joined.select(schemas.RECORD_ID, *schemas.codes(k), *filled, absent))


def forms(k: int) -> T.StructType:
    """Schema of people beside their protected forms."""
    return T.StructType(
        [
            T.StructField(schemas.RECORD_ID, T.StringType()),
            *(T.StructField(name, T.IntegerType(), False) for name in schemas.codes(k)),
            *(T.StructField(name, T.IntegerType(), False) for name in schemas.nodes(k)),
            T.StructField(CONSISTENT, T.LongType()),
        ]
    )


def collect_repeated_ids(released: Batches) -> int:
    """Count the rows of a protected table whose id another row has, or none."""
    ids = released.frame().select(schemas.RECORD_ID)
    told = ids.agg(F.count("*").alias("rows"), F.count_distinct(schemas.RECORD_ID).alias("ids")).first()
    assert told is not None
    return int(told["rows"]) - int(told["ids"])


def collect_decided(records: Batches, tuples: Tuples, *, most: int) -> LongArray:
    """Count the people who would show each tuple of a release if it held them all.

    Parameters
    ----------
    records : Batches
        As :func:`decided_forms` returns them.
    tuples : Tuples
        Of the release.

    Returns
    -------
    ndarray of int64, shape (p,)
        At least the rows of each tuple, where the decisions are those of the release.
    """
    found = collect_tuples(records, schemas.nodes(tuples.nodes.shape[1]), most=most, key="output.vault")
    place = places_of(keys_of(tuples.nodes), found.nodes)
    decided = np.zeros(len(tuples.rows), dtype=np.int64)
    decided[place[place >= 0]] = found.rows[place >= 0]
    return decided


def _named(hierarchy: Hierarchy) -> IntArray:
    """Node that the label of each node names, to whoever reads it."""
    codes, missing = labels_of(hierarchy)
    named = codes.encoded(pa.chunked_array([pa.array(list(hierarchy.labels), pa.string())]))
    return np.where(named < 0, np.int32(missing), named).astype(np.int32)
