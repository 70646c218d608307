"""The records of a policy's table, and the people of the registry, counted where they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses
from pyspark.sql import types as T  # noqa: N812

from privrisk_spark.engine.batches import Batches
from privrisk_spark.engine.number_texts import text_of
from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import LongArray
from reproduce.generated.registry import OLDEST, RACES, YOUNGEST, Persons, Registry

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


ATTRIBUTES = ("age", "race", "sex")
"""Quasi-identifiers a policy must have, by these names."""

_PEOPLE = T.StructType([T.StructField("cell", T.IntegerType()), T.StructField("registered", T.IntegerType())])


def collect_persons(table: DataFrame) -> tuple[Persons, int]:
    """Count records by age, race and sex; the second is how many lack one of them.

    Races that are none of Adult's count as 'Other', ages nobody has in the registry as the next one outside.

    Raises
    ------
    InputError
        If no record has all three.
    """
    race, sex, age = (text_of(F.col(name), table.schema[name].dataType) for name in ("race", "sex", "age"))
    race, sex = F.lower(F.trim(race)), F.lower(F.trim(sex))
    race_code = F.when(race.isNotNull(), F.lit(len(RACES) - 1))
    for code, label in enumerate(RACES[:-1]):
        race_code = F.when(race == label.lower(), F.lit(code)).otherwise(race_code)
    sex_code = F.when(sex.isin("male", "m"), F.lit(0)).when(sex.isin("female", "f"), F.lit(1))
    age = age.try_cast("double").try_cast("int")
    inside = F.greatest(F.lit(YOUNGEST - 1), F.least(F.lit(OLDEST + 1), age))
    codes = table.select(F.when(age.isNotNull(), inside).alias("age"), race_code.alias("race"), sex_code.alias("sex"))
    found = codes.groupBy(*ATTRIBUTES).agg(F.count("*").alias("records")).toArrow()
    counts = found.column("records").to_numpy().astype(np.int64)
    known = np.ones(len(counts), dtype=np.bool_)
    columns = []
    for name in ATTRIBUTES:
        column = found.column(name).combine_chunks()
        known &= column.is_valid().to_numpy(zero_copy_only=False)
        columns.append(column.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64))
    if not known.any():
        raise InputError(
            "table: no row has a whole number as its age, a race, and a sex that is Male or Female (M or F); nothing "
            "can be matched with the registry."
        )
    age, race_of, sex_of = (column[known] for column in columns)
    persons = Persons(age, race_of, sex_of, counts[known]).in_order()
    return persons, int(counts[~known].sum())


def registry_rows(spark: SparkSession, registry: Registry) -> DataFrame:
    """The people of a registry, drawn by tasks: their cell, and whether they are registered."""
    law, seed = registry.law, registry.seed

    def drawn(part: tuple[int, int, int]) -> Iterator[pa.Table]:
        number, people, registered = part
        cells = law.drawn(seed, number, people)
        flags = (np.arange(people) < registered).astype(np.int32)
        yield pa.table({"cell": pa.array(cells), "registered": pa.array(flags)})

    return Batches.of_parts(spark, registry.parts, drawn, _PEOPLE).frame()


def collect_groups(spark: SparkSession, registry: Registry, cells: LongArray) -> tuple[LongArray, LongArray]:
    """Registered people and all people of cells, counted where they are drawn; only those of the cells are collected.

    Parameters
    ----------
    cells : ndarray of int64, shape (m,)
        Ascending, distinct; -1 for one nobody is in.

    Returns
    -------
    registered, people : ndarray of int64, shape (m,)
    """

    def listed(part: tuple[int, Sequence[int]]) -> Iterator[pa.Table]:
        yield pa.table({"cell": pa.array(part[1], pa.int32())})

    wanted = Batches.of_parts(
        spark, [(0, cells.tolist())], listed, T.StructType([T.StructField("cell", T.IntegerType())])
    ).frame()
    counted = (
        registry_rows(spark, registry)
        .groupBy("cell")
        .agg(F.sum("registered").alias("registered"), F.count("*").alias("people"))
    )
    found = counted.join(F.broadcast(wanted), "cell", "left_semi").toArrow()
    at = np.searchsorted(cells, found.column("cell").to_numpy())
    result = np.zeros((2, len(cells)), dtype=np.int64)
    for row, name in zip(result, ("registered", "people"), strict=True):
        row[at] = found.column(name).to_numpy()
    return result[0], result[1]
