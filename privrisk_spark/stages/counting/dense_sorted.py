"""Counting stage: distinct records and dictionary vectors by groupby, then ``ρ`` by the plans the driver holds.

A count is written once to the run's scratch directory and mapped from there by every worker, so that it never travels
inside a task, and a cube of any size is held once per machine. (Vectors of the plan ``sorted`` are grouped anew by each
Python process.)
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses
from pyspark.sql import types as T  # noqa: N812

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import (
    PARTS,
    Batches,
    Scratch,
    grouped,
    in_chunks,
    materialized,
    read_ipc,
    report,
    write_ipc,
)
from privrisk_spark.errors import HierarchyError, InputError, SchemaError
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.counting.cells import CellSpace
from privrisk_spark.kernels.counting.consistent import Axis, Counts, DenseCounts, SortedCounts
from privrisk_spark.kernels.numeric.histogram import VectorHistogram
from privrisk_spark.planning.counting import PlanChoice, choose_plan
from privrisk_spark.planning.decisions.registry import decision_of
from privrisk_spark.planning.dictionaries import NULL, UNKNOWN, Alphabet, alphabets, axes, entity_of, possible_codes
from privrisk_spark.planning.search import decides_records
from privrisk_spark.policy.dictionaries import EstimatedDictionary, OneDictionary
from privrisk_spark.policy.policy import Policy
from privrisk_spark.stages.counting.shuffle_iceberg import own_vectors
from privrisk_spark.stages.tables.encode import encode_dictionary, resolve, resolved_vectors

Held = Literal["dense", "sorted"]
"""Plans whose count the driver holds."""


@dataclass(frozen=True)
class StoredCounts:
    """A count in the scratch directory.

    Attributes
    ----------
    plan : {"dense", "sorted"}
    directory : str
        Holds one ``.npy`` file per array; must be readable by every worker.
    axes : tuple of Axis
    dictionary_rows : int
    token : str
        Identity of this count: a later one may lie in the same directory, and workers live on.
    """

    plan: Held
    directory: str
    axes: tuple[Axis, ...]
    dictionary_rows: int
    token: str

    def load(self) -> Counts:
        """Map the arrays; once per process."""
        if self.token not in _LOADED:
            # Counts of earlier runs lie in directories that are gone.
            for token in [token for token, (directory, _) in _LOADED.items() if not os.path.exists(directory)]:
                del _LOADED[token]
            _LOADED[self.token] = (self.directory, self._map())
        return _LOADED[self.token][1]

    def _map(self) -> Counts:
        def array(name: str) -> npt.NDArray[np.int64]:
            mapped: npt.NDArray[np.int64] = np.load(Path(self.directory) / f"{name}.npy", mmap_mode="r")
            return mapped

        if self.plan == "dense":
            offsets = tuple(np.ascontiguousarray(array(f"offset{i}")) for i in range(len(self.axes)))
            monotone = all(axis.monotone for axis in self.axes)
            return DenseCounts(array("cube"), offsets, self.dictionary_rows, monotone)
        vectors = np.ascontiguousarray(array("vectors")).astype(np.int32)
        return SortedCounts.group(self.axes, vectors, np.ascontiguousarray(array("counts")))


_LOADED: dict[str, tuple[str, Counts]] = {}

MOST_PEOPLE = 2**53
"""A dictionary stands for fewer people: so many a float tells apart, as ``ln(N / ρ)`` must, and no sum overflows."""


def count_vectors(rows: Batches, alphabets: Mapping[str, Alphabet], directory: str) -> Batches:
    """Count equal rows within each task, write VECTORS as parts, and return PARTS.

    Parameters
    ----------
    rows : Batches
        Columns of codes; missing and unknown values may be unresolved. A row stands for ``people`` persons if it has
        the column.
    alphabets : mapping of column to Alphabet
    directory : str
    """
    ranks = {name: alphabet.ranks() for name, alphabet in alphabets.items()}
    weighted = schemas.PEOPLE in rows.schema.fieldNames()

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        histogram = VectorHistogram([len(alphabet.codes) for alphabet in alphabets.values()])
        wrong = 0
        for table in in_chunks(tables):
            codes = [rank[table.column(name).to_numpy() - NULL] for name, rank in ranks.items()]
            people = None
            if weighted:
                given = table.column(schemas.PEOPLE).to_numpy()
                whole = (given >= 0) & (given < MOST_PEOPLE) & (given == np.floor(given))
                wrong += int(np.count_nonzero(~whole))
                people = np.where(whole, given, 0).astype(np.int64)
            histogram.add(codes, people)
            if histogram.full:
                yield written(histogram, 0)
        yield written(histogram, wrong)

    def written(histogram: VectorHistogram, wrong: int) -> pa.Table:
        total = histogram.total
        vectors, counts = histogram.take()
        columns = {name: pa.array(a.codes[vectors[:, i]]) for i, (name, a) in enumerate(alphabets.items())}
        table = pa.table({**columns, schemas.N_ROWS: pa.array(counts)})
        special = {
            kind: [int(counts[a.codes[vectors[:, i]] == code].sum()) for i, a in enumerate(alphabets.values())]
            for kind, code in (("nulls", NULL), ("unknown", UNKNOWN))
        }
        return report(write_ipc(table, directory), {"rows": total, "wrong": wrong, **special})

    return rows.then(step, PARTS)


def vectors_of(spark: SparkSession, directory: str, parts: Sequence[str], names: Sequence[str]) -> DataFrame:
    """Return VECTORS, each vector once, from the parts of :func:`count_vectors`."""
    fields = [T.StructField(name, T.IntegerType()) for name in names]
    schema = T.StructType([*fields, T.StructField(schemas.N_ROWS, T.LongType())])
    partial = materialized(spark, directory, parts, schema).frame()
    return partial.groupBy(*names).agg(F.sum(schemas.N_ROWS).alias(schemas.N_ROWS))


def sum_vectors(
    directory: str, parts: Sequence[str], alphabets: Mapping[str, Alphabet]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """Put the parts of :func:`count_vectors` together on the driver, as the plan ``dense`` may: they fit its cells.

    Returns
    -------
    vectors : ndarray of int32, shape (m, k)
        In lexicographic order.
    counts : ndarray of int64, shape (m,)
    """
    histogram = VectorHistogram([len(alphabet.codes) for alphabet in alphabets.values()])
    ranks = {name: alphabet.ranks() for name, alphabet in alphabets.items()}
    for part in parts:
        table = read_ipc(directory, part)
        columns = [rank[table.column(name).to_numpy() - NULL] for name, rank in ranks.items()]
        histogram.add(columns, table.column(schemas.N_ROWS).to_numpy())
    vectors, counts = histogram.take()
    codes = [alphabet.codes[vectors[:, i]] for i, alphabet in enumerate(alphabets.values())]
    return np.column_stack(codes) if codes else vectors, counts


def vectors_of_table(encoded: Batches, k: int, n_weights: int, more: Sequence[str] = ()) -> DataFrame:
    """Return VECTORS of the table: distinct records, told apart also by personal weights, with their multiplicity.

    Parameters
    ----------
    encoded : Batches
    k, n_weights : int
    more : sequence of str
        Further columns that tell records apart.
    """
    names = [*schemas.codes(k), *schemas.weights(n_weights), *more]
    kinds = {field.name: field.dataType for field in encoded.schema.fields}

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in in_chunks(tables):
            first, member = grouped([table.column(name).to_numpy() for name in names])
            times = pa.array(np.bincount(member, minlength=len(first)).astype(np.int64))
            yield table.select(names).take(pa.array(first)).append_column(schemas.N_ROWS, times)

    fields = [T.StructField(name, kinds[name]) for name in names]
    partial = encoded.then(step, T.StructType([*fields, T.StructField(schemas.N_ROWS, T.LongType())])).frame()
    return partial.groupBy(*names).agg(F.sum(schemas.N_ROWS).alias(schemas.N_ROWS))


def collect_vectors(
    vectors: DataFrame, names: Sequence[str], *, most: int
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """Collect distinct vectors to the driver, as the plans ``dense`` and ``sorted`` are allowed to.

    Parameters
    ----------
    vectors : DataFrame
        VECTORS.
    names : sequence of str
        Columns in axis order; one that is not there (an attribute the dictionary lacks) becomes zeros.
    most : int
        Largest number of vectors to accept.

    Returns
    -------
    vectors : ndarray of int32, shape (m, k)
        In lexicographic order, so that what follows does not depend on the engine's order.
    counts : ndarray of int64, shape (m,)

    Raises
    ------
    InputError
        If there are more than ``most``.
    """
    matrix, table = collect_ordered(vectors, names, most=most)
    return matrix, table.column(schemas.N_ROWS).to_numpy().astype(np.int64)


def collect_ordered(vectors: DataFrame, names: Sequence[str], *, most: int) -> tuple[npt.NDArray[np.int32], pa.Table]:
    """Collect a frame of distinct vectors, as :func:`collect_vectors`, with all its columns.

    Returns
    -------
    vectors : ndarray of int32, shape (m, k)
        In lexicographic order.
    table : pa.Table
        In the same order.
    """
    table = vectors.limit(most + 1).toArrow()
    if table.num_rows > most:
        raise InputError(
            f"counting.sorted_vectors: there are more than {most:,} distinct vectors; raise it if the driver has the "
            "memory, or use coarser hierarchies."
        )
    matrix = np.zeros((table.num_rows, len(names)), dtype=np.int32, order="F")
    for i, name in enumerate(names):
        if name in table.column_names:
            matrix[:, i] = table.column(name).to_numpy()
    order = np.lexsort(matrix.T[::-1]) if len(names) else np.arange(table.num_rows)
    return matrix[order], table.take(pa.array(order))


def to_dictionary_codes(vectors: npt.NDArray[np.int32], hierarchies: Mapping[str, Hierarchy]) -> npt.NDArray[np.int32]:
    """Leaf codes of the table as dictionary codes, for a table that is its own dictionary: ⊥ becomes the root."""
    result = vectors.copy()
    for i, hierarchy in enumerate(hierarchies.values()):
        result[:, i] = np.where(vectors[:, i] == hierarchy.n_leaves, hierarchy.root, vectors[:, i])
    return result


def count_and_store(
    plan: Held,
    axes_of_policy: Sequence[Axis],
    vectors: npt.NDArray[np.int32],
    counts: npt.NDArray[np.int64],
    directory: Path,
) -> StoredCounts:
    """Count by the chosen plan and write the arrays to scratch."""
    directory.mkdir(parents=True, exist_ok=True)
    if plan == "dense":
        dense = DenseCounts.roll_up(axes_of_policy, vectors, counts)
        np.save(directory / "cube.npy", dense.cube)
        for i, offset in enumerate(dense.offsets):
            np.save(directory / f"offset{i}.npy", offset)
    else:
        np.save(directory / "vectors.npy", vectors)
        np.save(directory / "counts.npy", counts)
    return StoredCounts(plan, str(directory), tuple(axes_of_policy), int(counts.sum()), uuid4().hex)


@dataclass(frozen=True)
class SpreadVectors:
    """A dictionary that stays distributed.

    Attributes
    ----------
    plan : {"shuffle", "iceberg"}
    axes : tuple of Axis
    vectors : DataFrame
        ``t<i>`` of the attributes it has, ``n_rows``; or ``entity`` instead, once per vector and person.
    dictionary_rows : int
        Rows, or persons.
    entities : bool
    """

    plan: Literal["shuffle", "iceberg"]
    axes: tuple[Axis, ...]
    vectors: DataFrame
    dictionary_rows: int
    entities: bool = False


def cell_space(spread: SpreadVectors, policy: Policy, hierarchies: Mapping[str, Hierarchy]) -> CellSpace:
    """Cells of the policy's one dictionary, which stays distributed."""
    return CellSpace.of(spread.axes, possible_codes(hierarchies, policy.dictionaries[0]))


def plan_of(
    policy: Policy,
    hierarchies: Mapping[str, Hierarchy],
    one: OneDictionary,
    *,
    rows: int | None = None,
    vectors: int | None = None,
) -> PlanChoice:
    """Choose the plan of one of the policy's dictionaries; see :func:`privrisk_spark.planning.counting.choose_plan`."""
    return choose_plan(
        policy.counting,
        axes(policy, hierarchies, one),
        possible_codes(hierarchies, one),
        similar=policy.dictionary.consistency == "similar",
        entities=entity_of(policy, one) is not None,
        frequent=policy.guarantee.kind != "risk",
        several=len(policy.dictionaries) > 1 or compared(policy),
        single=policy.decision is not None and decides_records(decision_of(policy).choice(hierarchies).method),
        rows=rows,
        vectors=vectors,
    )


def compared(policy: Policy) -> bool:
    """Whether the decisions are held against a second dictionary, by counts the driver holds."""
    return isinstance(policy.dictionary, EstimatedDictionary) and policy.dictionary.against is not None


def collect_counts(
    scratch: Scratch,
    encoded: Batches,
    frame: DataFrame | None,
    policy: Policy,
    hierarchies: Mapping[str, Hierarchy],
    one: OneDictionary,
    choice: PlanChoice,
) -> tuple[PlanChoice, StoredCounts | SpreadVectors]:
    """Count one dictionary by its plan; a plan that was not settled is chosen again once its vectors are counted.

    Parameters
    ----------
    scratch : Scratch
    encoded : Batches
        The table, resolved.
    frame : DataFrame or None
        The dictionary as Spark opened it; None where it is the table itself.
    policy, hierarchies, one, choice
        As :func:`plan_of` chose it.

    Raises
    ------
    SchemaError, HierarchyError
        If the dictionary is empty, or its values or weights cannot be used.
    """
    of_axes, own = axes(policy, hierarchies, one), one.table is None
    k, specs = len(hierarchies), policy.quasi_identifiers
    columns = dict(zip(hierarchies, (schemas.codes if own else schemas.dictionary_codes)(k), strict=True))
    if one.table is None or frame is None:
        rows = encoded
    else:
        rows = encode_dictionary(frame, one.table, hierarchies, key=one.key)
    found = {columns[name]: alphabet for name, alphabet in alphabets(hierarchies, one).items()}
    names = list(found)
    entity = entity_of(policy, one)
    if own and entity is not None:
        return choice, _collect_persons(scratch, encoded.frame(), of_axes, choice, one, key="table.entity_id")
    directory = scratch.directory(f"vectors-{one.name}")
    parts = scratch.collect_parts(count_vectors(rows, found, directory))
    held = [part["name"] for part in parts]
    total = sum(part["rows"] for part in parts)
    _refuse_values(parts, total, policy, {columns[name]: name for name in hierarchies}, names, one)
    if entity is not None:
        named = resolve(rows, hierarchies, specs, dictionary=True).frame()
        return choice, _collect_persons(scratch, named, of_axes, choice, one, key=f"{one.key}.entity_id")
    if choice.plan == "dense":
        vectors, times = sum_vectors(directory, held, found)
    else:
        grouped = scratch.write_frame(vectors_of(scratch.spark, directory, held, names), f"grouped-{one.name}")
        if policy.counting.plan == "auto":
            choice = plan_of(policy, hierarchies, one, rows=total, vectors=grouped.count())
        if choice.plan in ("shuffle", "iceberg"):
            resolved = resolve(Batches.of_frame(grouped), hierarchies, specs, dictionary=True)
            spread = own_vectors(grouped, of_axes, schemas.N_ROWS) if own else resolved.frame()
            return choice, SpreadVectors(choice.plan, of_axes, spread, total)
        vectors, times = collect_vectors(grouped, names, most=policy.counting.sorted_vectors)
    resolving = partial(resolved_vectors, names=names, hierarchies=hierarchies, specs=specs)
    vectors = to_dictionary_codes(vectors, hierarchies) if own else resolving(vectors)
    assert choice.plan in ("dense", "sorted")
    return choice, count_and_store(choice.plan, of_axes, vectors, times, scratch.path / f"counts-{one.name}")


def _collect_persons(
    scratch: Scratch, rows: DataFrame, of_axes: tuple[Axis, ...], choice: PlanChoice, one: OneDictionary, *, key: str
) -> SpreadVectors:
    """Pairs of vector and person, once each."""
    known = [name for name in schemas.dictionary_codes(len(of_axes)) if name in rows.columns]
    pairs = own_vectors(rows, of_axes, schemas.ENTITY) if one.table is None else rows.select(*known, schemas.ENTITY)
    pairs = scratch.write_frame(pairs.distinct(), f"pairs-{one.name}")
    persons = pairs.select(schemas.ENTITY).distinct()
    if persons.where(F.col(schemas.ENTITY).isNull()).count():
        raise SchemaError(f"{key}: every row must name its person, and some are missing.")
    assert choice.plan in ("shuffle", "iceberg")
    return SpreadVectors(choice.plan, of_axes, pairs, persons.count(), entities=True)


def _refuse_values(
    parts: Sequence[Mapping[str, Any]],
    total: int,
    policy: Policy,
    attributes: Mapping[str, str],
    names: Sequence[str],
    one: OneDictionary,
) -> None:
    """Refuse an empty dictionary, missing values where they are forbidden, and a column outside its hierarchy."""
    if one.table is None:
        return
    wrong = sum(part["wrong"] for part in parts)
    if wrong:
        raise SchemaError(f"{one.key}.weight: must be a whole number, not negative, and {wrong:,} rows have none such.")
    if not total:
        raise SchemaError(f"{one.key}: it has no rows.")
    if total >= MOST_PEOPLE:
        raise SchemaError(
            f"{one.key}.weight: its rows must stand for fewer than {MOST_PEOPLE:,} (2^53) people in all, beyond which "
            f"counts are not exact. Got {total:,}; check that the column holds people."
        )
    for i, alias in enumerate(names):
        name = attributes[alias]
        nulls = sum(part["nulls"][i] for part in parts)
        unknown = sum(part["unknown"][i] for part in parts)
        if nulls and policy.quasi_identifiers[name].nulls == "forbid":
            raise SchemaError(
                f"columns.{name}.nulls: missing values are forbidden and {nulls:,} dictionary rows have one."
            )
        if unknown and unknown + nulls == total:
            raise HierarchyError(
                f"{one.key}.columns.{name}: none of the dictionary's values is in the hierarchy; map them with "
                "level, age_in or mapping."
            )
