"""Each record's class size and risks, as a table for the vault."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import types as T  # noqa: N812 - the name every Spark program uses

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import (
    PARTS,
    Batches,
    decoded,
    in_chunks,
    materialized,
    part_name,
    read_ipc,
    report,
)
from privrisk_spark.errors import InternalError
from privrisk_spark.kernels.arrays import LongArray
from privrisk_spark.kernels.counting.cell_index import CellIndex
from privrisk_spark.kernels.measures.population_risk import negative_binomial_risk
from privrisk_spark.stages.assessing.attack import AttackTable, scaled
from privrisk_spark.storage.parts import PartDirectory

ROWS, CLASS_SIZE, POPULATION, WEIGHT = "rows", "class_size", "population_size", "weighted_population"
_ATTACK = ("p_reid", "expected_payoff", "exploits", "p_reid_baseline", "risk")


@dataclass(frozen=True)
class KeptClasses:
    """What is kept of the classes of a subject, in parts that every worker sees.

    Attributes
    ----------
    names : tuple of str
        Parts there.
    schema : StructType
        ``n<i>``, ``class_size`` (0 of what is in no class), what the class gives away of sensitive columns, and
        ``population_size`` and ``weighted_population`` where there are such.
    radices : tuple of k int
        Exclusive upper bound of each ``n<i>``.
    number : int
        Classes in all.
    """

    directory: PartDirectory
    names: tuple[str, ...]
    schema: T.StructType
    radices: tuple[int, ...]
    number: int


@functools.lru_cache(maxsize=1)
def _indexed(
    directory: PartDirectory, names: tuple[str, ...], radices: tuple[int, ...]
) -> tuple[CellIndex, LongArray, pa.Table]:
    """All classes with an index of their nodes, once per process: row of the table by position in the index."""
    table = pa.concat_tables([read_ipc(directory, name) for name in names]).combine_chunks()
    nodes = [table.column(name).to_numpy() for name in schemas.nodes(len(radices))]
    index, member = CellIndex.build(nodes, radices, table.num_rows)
    row_of = np.empty(len(index.ranks[-1]), dtype=np.int64)
    row_of[member] = np.arange(table.num_rows)
    return index, row_of, table.drop_columns(list(schemas.nodes(len(radices))))


def beside_classes(spark: SparkSession, rows: Batches, classes: KeptClasses, *, most: int) -> Batches:
    """Return each record's id beside what is kept of its class.

    Parameters
    ----------
    rows : Batches
        ``record_id``, ``n<i>``; every row's class is among the classes.
    most : int
        Classes up to which every task holds all of them; more are joined by Spark, to the same rows.
    """
    nodes = schemas.nodes(len(classes.radices))
    if classes.number > most:
        kept = materialized(spark, classes.directory, classes.names, classes.schema).frame()
        joined = rows.frame().select(schemas.RECORD_ID, *nodes).join(kept, nodes, "inner").drop(*nodes)
        return Batches.of_frame(joined)
    directory, names, radices = classes.directory, classes.names, classes.radices

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in in_chunks(tables):
            index, row_of, kept = _indexed(directory, names, radices)
            position, found = index.find([table.column(name).to_numpy() for name in nodes], table.num_rows)
            if not found.all():
                raise InternalError("assess: a record's class is not among the classes.")
            beside = kept.take(pa.array(row_of[position]))
            columns = {name: beside.column(name) for name in beside.column_names}
            yield pa.table({schemas.RECORD_ID: table.column(schemas.RECORD_ID), **columns})

    fields = [field for field in classes.schema.fields if field.name not in nodes]
    return rows.then(step, T.StructType([T.StructField(schemas.RECORD_ID, T.StringType()), *fields]))


def of_records(
    rows: Batches,
    *,
    record_id: str,
    attack: AttackTable | None,
    fraction: float | None,
) -> Batches:
    """Return one row a record: its id, class size, what the class gives away, population size if known, and risks.

    A record that is in no class, as one that is suppressed whole, has nothing but its id.

    Parameters
    ----------
    rows : Batches
        Records of the subject beside their classes (:func:`beside_classes`).
    record_id : str
        Name of the id in what is returned; ``record_id`` where another column has that name.
    fraction : float or None
        Share of the population in the table, by which groups were scaled.
    """
    kinds = {field.name: field.dataType for field in rows.schema.fields}
    there = [name for name in kinds if name not in (schemas.RECORD_ID, ROWS)]
    risks = ["prosecutor", *(["journalist"] if POPULATION in there else [])]
    risks += ["individual_risk"] if WEIGHT in there else []
    added = [*risks, *(_ATTACK if attack is not None else ())]
    if record_id in (*there, *added):
        record_id = schemas.RECORD_ID

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in in_chunks(tables):
            told = table.column(CLASS_SIZE).to_numpy()
            apart, size = told == 0, np.maximum(told, 1)
            columns: dict[str, np.ndarray[tuple[int], np.dtype[np.float64]]] = {"prosecutor": 1 / size}
            group = scaled(size, fraction)
            if POPULATION in there:
                group = table.column(POPULATION).to_numpy()
                columns["journalist"] = np.where(group > 0, 1 / np.maximum(group, 1), np.nan)
            if WEIGHT in there:
                weight = table.column(WEIGHT).to_numpy()
                columns["individual_risk"] = negative_binomial_risk(size, size / np.maximum(weight, size))
            if attack is not None:
                columns |= attack.columns(group)
            known: Mapping[str, pa.Array] = {
                name: pa.array(column, mask=np.isnan(column) | apart) for name, column in columns.items()
            }
            yield pa.table(
                {record_id: table.column(schemas.RECORD_ID)}
                | {name: pa.array(table.column(name).to_numpy(), mask=apart) for name in there}
                | {name: known[name] for name in added}
            )

    fields = [T.StructField(record_id, T.StringType()), *(T.StructField(name, kinds[name]) for name in there)]
    fields += [T.StructField(name, T.DoubleType()) for name in added]
    return rows.then(step, T.StructType(fields))


def written(records: Batches, directory: PartDirectory) -> Batches:
    """Write records as Parquet parts where they are, a row group a chunk, and return PARTS."""

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in in_chunks(tables):
            yield report(_write(table, directory), {})

    return records.then(step, PARTS)


def write_nothing(records: Batches, directory: PartDirectory) -> str:
    """Write a part without rows, for a reader who looks for the columns; returns its name."""
    kinds = {"string": pa.string(), "bigint": pa.int64(), "double": pa.float64()}
    none = {field.name: pa.array([], kinds[field.dataType.simpleString()]) for field in records.schema.fields}
    return _write(pa.table(none), directory)


def _write(table: pa.Table, directory: PartDirectory) -> str:
    name = part_name("parquet")
    # Nothing of Arrow's own: a reader sees plain columns.
    with directory.writing(name) as path:
        pq.write_table(decoded(table), path, store_schema=False, use_dictionary=table.column_names[1:])
    return name
