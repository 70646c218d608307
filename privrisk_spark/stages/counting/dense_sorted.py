"""Counting stage: distinct records and dictionary vectors by groupby, then ``ρ`` by the plans the driver holds.

A count is written once to the run's scratch directory and mapped from there by every worker, so that it never travels
inside a task, and a cube of any size is held once per machine. (Vectors of the plan ``sorted`` are grouped anew by each
Python process.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any
from uuid import uuid4

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses
from pyspark.sql import types as T  # noqa: N812

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import PARTS, Batches, Scratch, in_chunks, materialized, read_ipc, report, write_ipc
from privrisk_spark.engine.counts import Held, SpreadVectors, StoredCounts, not_held, own_vectors
from privrisk_spark.engine.value_codes import resolve, resolved_vectors
from privrisk_spark.engine.vectors import collect_vectors
from privrisk_spark.errors import HierarchyError, SchemaError
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.counting.consistent import Axis, DenseCounts
from privrisk_spark.kernels.numeric.histogram import VectorHistogram
from privrisk_spark.planning.counting import PlanChoice, plan_of
from privrisk_spark.planning.dictionaries import (
    ALMOST_NONE,
    NULL,
    UNKNOWN,
    Alphabet,
    alphabets,
    axes,
    describe_mismatch,
    entity_of,
)
from privrisk_spark.policy.dictionaries import OneDictionary
from privrisk_spark.policy.policy import Policy
from privrisk_spark.runs.progress import LOGGER
from privrisk_spark.storage.part_files import write_array
from privrisk_spark.storage.parts import PartDirectory

MOST_PEOPLE = 2**53
"""A dictionary stands for fewer people: so many a float tells apart, as ``ln(N / ρ)`` must, and no sum overflows."""


def count_vectors(rows: Batches, alphabets: Mapping[str, Alphabet], directory: PartDirectory) -> Batches:
    """Count equal rows within each task, write VECTORS as parts, and return PARTS.

    Parameters
    ----------
    rows : Batches
        Columns of codes; missing and unknown values may be unresolved. A row stands for ``people`` persons if it has
        the column.
    alphabets : mapping of column to Alphabet
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
        return report(write_ipc(table, directory), {"rows": total, "vectors": len(counts), "wrong": wrong, **special})

    return rows.then(step, PARTS)


def vectors_of(spark: SparkSession, directory: PartDirectory, parts: Sequence[str], names: Sequence[str]) -> DataFrame:
    """Return VECTORS, each vector once, from the parts of :func:`count_vectors`."""
    fields = [T.StructField(name, T.IntegerType()) for name in names]
    schema = T.StructType([*fields, T.StructField(schemas.N_ROWS, T.LongType())])
    partial = materialized(spark, directory, parts, schema).frame()
    return partial.groupBy(*names).agg(F.sum(schemas.N_ROWS).alias(schemas.N_ROWS))


def sum_vectors(
    directory: PartDirectory, parts: Sequence[str], alphabets: Mapping[str, Alphabet]
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
    directory: PartDirectory,
) -> StoredCounts:
    """Count by the chosen plan and write the arrays to scratch."""
    if plan == "dense":
        dense = DenseCounts.roll_up(axes_of_policy, vectors, counts)
        write_array(dense.cube, directory, "cube.npy")
        for i, offset in enumerate(dense.offsets):
            write_array(offset, directory, f"offset{i}.npy")
    else:
        write_array(vectors, directory, "vectors.npy")
        write_array(counts, directory, "counts.npy")
    return StoredCounts(plan, directory, tuple(axes_of_policy), int(counts.sum()), uuid4().hex)


def collect_counts(
    scratch: Scratch,
    rows: Batches,
    policy: Policy,
    hierarchies: Mapping[str, Hierarchy],
    one: OneDictionary,
    choice: PlanChoice,
) -> tuple[PlanChoice, StoredCounts | SpreadVectors]:
    """Count one dictionary by its plan; a plan that was not settled is chosen again once its vectors are counted.

    Parameters
    ----------
    rows : Batches
        The dictionary as codes (:func:`privrisk_spark.tables.encode.dictionary_rows`): the table, resolved,
        where that is the dictionary.
    choice : PlanChoice
        Of :func:`privrisk_spark.planning.counting.plan_of`.

    Raises
    ------
    SchemaError, HierarchyError
        If the dictionary is empty, or its values or weights cannot be used.
    """
    of_axes, own = axes(policy, hierarchies, one), one.table is None
    k, specs = len(hierarchies), policy.quasi_identifiers
    columns = dict(zip(hierarchies, (schemas.codes if own else schemas.dictionary_codes)(k), strict=True))
    found = {columns[name]: alphabet for name, alphabet in alphabets(hierarchies, one).items()}
    names = list(found)
    entity = entity_of(policy, one)
    if own and entity is not None:
        persons = _as_dictionary(rows, hierarchies)
        return _collect_persons(scratch, persons, policy, hierarchies, of_axes, choice, one)
    directory = scratch.directory(f"vectors-{one.name}")
    parts = scratch.collect_parts(count_vectors(rows, found, directory))
    held = [part["name"] for part in parts]
    total = sum(part["rows"] for part in parts)
    _refuse_values(parts, total, policy, {columns[name]: name for name in hierarchies}, names, one)
    if not own:
        _warn_of_mismatch(parts, total, directory, found, {columns[name]: name for name in hierarchies}, one)
    if entity is not None:
        named = resolve(rows, hierarchies, specs, dictionary=True)
        return _collect_persons(scratch, named, policy, hierarchies, of_axes, choice, one)
    # Vectors of the parts, of which many are in several: room for all of them is room for the distinct ones.
    fits = choice.plan == "sorted" and sum(part["vectors"] for part in parts) <= policy.counting.sorted_vectors
    if choice.plan == "dense" or fits:
        vectors, times = sum_vectors(directory, held, found)
        if policy.counting.plan == "auto" and fits:
            choice = plan_of(policy, hierarchies, one, rows=total, vectors=len(vectors))
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
    counted = count_and_store(choice.plan, of_axes, vectors, times, scratch.directory(f"counts-{one.name}"))
    return choice, _with_population(counted, policy, hierarchies, vectors, times)


def collect_held(
    scratch: Scratch,
    rows: Batches,
    policy: Policy,
    hierarchies: Mapping[str, Hierarchy],
    one: OneDictionary,
) -> StoredCounts:
    """Count a dictionary by a plan whose count the driver holds, which is what evaluating given decisions takes.

    Parameters
    ----------
    scratch, rows, policy, hierarchies, one
        As :func:`collect_counts` takes them.

    Raises
    ------
    InputError
        If the dictionary takes another plan.
    """
    choice = plan_of(policy, hierarchies, one)
    if choice.plan in ("dense", "sorted"):
        choice, counted = collect_counts(scratch, rows, policy, hierarchies, one, choice)
        if isinstance(counted, StoredCounts):
            return counted
    raise not_held(one.key, choice.plan)


def _collect_persons(
    scratch: Scratch,
    rows: Batches,
    policy: Policy,
    hierarchies: Mapping[str, Hierarchy],
    of_axes: tuple[Axis, ...],
    choice: PlanChoice,
    one: OneDictionary,
) -> tuple[PlanChoice, StoredCounts | SpreadVectors]:
    """Count distinct persons: by vectors with signed counts, or, distributed, by pairs of vector and person.

    ``rows`` are ``t<i>``, resolved, of the attributes the dictionary has, and ``entity``.
    """
    known = [name for name, axis in zip(schemas.dictionary_codes(len(of_axes)), of_axes, strict=True) if axis.known]
    if choice.plan in ("dense", "sorted"):
        directory = scratch.directory(f"persons-{one.name}")
        from privrisk_spark.stages.counting.persons import collect_persons

        parts, unnamed = collect_persons(scratch, rows, of_axes, directory, name=one.name)
        _refuse_unnamed(unnamed, one)
        held = [part["name"] for part in parts]
        if choice.plan == "dense":
            vectors, counts = _sum_signed(directory, held, of_axes)
        else:
            grouped = vectors_of(scratch.spark, directory, held, known).where(F.col(schemas.N_ROWS) != 0)
            grouped = scratch.write_frame(grouped, f"grouped-{one.name}")
            if policy.counting.plan == "auto":
                choice = plan_of(policy, hierarchies, one, vectors=grouped.count())
            if choice.plan == "sorted":
                names = schemas.dictionary_codes(len(of_axes))
                vectors, counts = collect_vectors(grouped, names, most=policy.counting.sorted_vectors)
        if choice.plan in ("dense", "sorted"):
            counted = count_and_store(choice.plan, of_axes, vectors, counts, scratch.directory(f"counts-{one.name}"))
            return choice, _with_population(counted, policy, hierarchies, vectors, counts)
    pairs = rows.frame().select(*known, schemas.ENTITY).distinct()
    pairs = scratch.write_frame(pairs, f"pairs-{one.name}")
    persons = pairs.select(schemas.ENTITY).distinct()
    _refuse_unnamed(persons.where(F.col(schemas.ENTITY).isNull()).count(), one)
    assert choice.plan in ("shuffle", "iceberg")
    return choice, SpreadVectors(choice.plan, of_axes, pairs, persons.count(), entities=True)


def _with_population(
    counted: StoredCounts,
    policy: Policy,
    hierarchies: Mapping[str, Hierarchy],
    vectors: npt.NDArray[np.int32],
    counts: npt.NDArray[np.int64],
) -> StoredCounts:
    """Add the digest of the people, where classes are held against them."""
    if not policy.guarantee.asks_population:
        return counted
    from privrisk_spark.engine.chains import population_digest

    digest = population_digest(vectors, counts, hierarchies, counted.axes, policy.dictionary.similar)
    return replace(counted, population=digest)


def _sum_signed(
    directory: PartDirectory, parts: Sequence[str], of_axes: Sequence[Axis]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """Put the parts of :func:`collect_persons` together on the driver: they fit the cells of ``dense``."""
    histogram = VectorHistogram([len(axis.dictionary_chain()) if axis.known else 1 for axis in of_axes])
    for part in parts:
        table = read_ipc(directory, part)
        nothing = np.zeros(table.num_rows, dtype=np.int32)
        names = schemas.dictionary_codes(len(of_axes))
        columns = [table.column(name).to_numpy() if name in table.column_names else nothing for name in names]
        histogram.add(columns, table.column(schemas.N_ROWS).to_numpy())
    vectors, counts = histogram.take()
    kept = counts != 0
    return vectors[kept], counts[kept]


def _as_dictionary(rows: Batches, hierarchies: Mapping[str, Hierarchy]) -> Batches:
    """The table's persons with its codes as dictionary codes ``t<i>``: ⊥ becomes the root."""
    leaf, node = schemas.codes(len(hierarchies)), schemas.dictionary_codes(len(hierarchies))

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in tables:
            codes = to_dictionary_codes(np.column_stack([table.column(name).to_numpy() for name in leaf]), hierarchies)
            columns = {name: pa.array(np.ascontiguousarray(codes[:, i])) for i, name in enumerate(node)}
            yield pa.table({**columns, schemas.ENTITY: table.column(schemas.ENTITY)})

    fields = [T.StructField(name, T.IntegerType()) for name in node]
    return rows.then(step, T.StructType([*fields, T.StructField(schemas.ENTITY, T.StringType())]))


def _refuse_unnamed(rows: int, one: OneDictionary) -> None:
    if rows:
        key = "table" if one.table is None else one.key
        raise SchemaError(f"{key}.entity_id: every row must name its person, and some are missing.")


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
        raise SchemaError(
            f"{one.key}.weight: must be a whole number from 0 to {MOST_PEOPLE - 1:,} (below 2^53), and {wrong:,} rows "
            "have none such."
        )
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


def _warn_of_mismatch(
    parts: Sequence[Mapping[str, Any]],
    total: int,
    directory: PartDirectory,
    of_columns: Mapping[str, Alphabet],
    attributes: Mapping[str, str],
    one: OneDictionary,
) -> None:
    """Log a warning if almost no value of a column is in its hierarchy, unless they are most of the hierarchy's.

    A national register holds few records of one city, but all its values.
    """
    for i, (alias, alphabet) in enumerate(of_columns.items()):
        valued = total - sum(part["nulls"][i] for part in parts)
        inside = valued - sum(part["unknown"][i] for part in parts)
        if not 0 < inside <= valued * ALMOST_NONE:
            continue
        codes = np.unique(np.concatenate([read_ipc(directory, part["name"]).column(alias).unique() for part in parts]))
        if 2 * np.count_nonzero(codes >= 0) < np.count_nonzero(alphabet.codes >= 0):
            few = f"only {inside / valued:.2%} of the dictionary is in the hierarchy"
            LOGGER.warning("%s", describe_mismatch(f"{one.key}.columns.{attributes[alias]}", few))
