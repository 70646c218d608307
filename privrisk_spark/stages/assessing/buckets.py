"""What a task does with the classes of a bucket: measure them, and keep what the records are told later."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import types as T  # noqa: N812 - the name every Spark program uses

from privrisk_spark.engine import schemas
from privrisk_spark.kernels.classes.classes import Classes
from privrisk_spark.stages.assessing.population import PeopleOf
from privrisk_spark.stages.assessing.records import CLASS_SIZE, POPULATION, ROWS, WEIGHT
from privrisk_spark.stages.assessing.tallies import ClassMeasures, Tallies


def tallying(
    asked: ClassMeasures, *, population: PeopleOf | None, own: PeopleOf | None, equal: Sequence[int]
) -> Callable[[Classes], tuple[pa.Table, dict[str, Any]]]:
    """Return the function that measures the classes of a bucket.

    Parameters
    ----------
    asked : ClassMeasures
    population, own : PeopleOf or None
        How many a class has in the population, and in the table itself where a missing value may be any.
    equal : sequence of int
        Attributes without a missing value that may be any.

    Returns
    -------
    callable
        Its table has a row a class, of :func:`kept_schema`; its facts are ``tallies`` and the number of ``classes``.
    """
    roots = np.array([hierarchy.root for hierarchy in asked.hierarchies], dtype=np.int32)

    def measured(classes: Classes) -> tuple[pa.Table, dict[str, Any]]:
        people = None if population is None else population(classes.nodes)
        compatible = None
        if own is not None:
            # What is suppressed, not missing, is equal to its like only: such a class hides nobody else.
            alone = (classes.nodes[:, equal] == roots[equal]).any(axis=1)
            compatible = np.where(alone, classes.sizes, np.maximum(classes.sizes, own(classes.nodes)))
        tallies = Tallies.of(classes, asked, people, compatible)
        kept: dict[str, Any] = {
            name: pa.array(np.ascontiguousarray(classes.nodes[:, i]))
            for i, name in enumerate(schemas.nodes(classes.nodes.shape[1]))
        }
        kept[ROWS] = pa.array(classes.rows)
        kept[CLASS_SIZE] = pa.array(classes.sizes if compatible is None else compatible)
        if people is not None:
            kept[POPULATION] = pa.array(people)
        if classes.millionths is not None:
            kept[WEIGHT] = pa.array(classes.millionths / 1e6)
        return pa.table(kept), {"tallies": tallies.to_dict(), "classes": len(classes)}

    return measured


def kept_schema(k: int, *, population: bool, weighted: bool) -> T.StructType:
    """Schema of what is kept of a class of ``k`` attributes."""
    kept = [T.StructField(name, T.IntegerType(), False) for name in schemas.nodes(k)]
    kept += [T.StructField(name, T.LongType(), False) for name in (ROWS, CLASS_SIZE)]
    kept += [T.StructField(POPULATION, T.LongType(), False)] if population else []
    kept += [T.StructField(WEIGHT, T.DoubleType(), False)] if weighted else []
    return T.StructType(kept)


def counting_values(bounds: Sequence[int]) -> Callable[[Classes], tuple[pa.Table | None, Mapping[str, Any]]]:
    """Return the function that counts how often persons of a class hold each value, over the classes of a bucket.

    Parameters
    ----------
    bounds : sequence of int
        Values of each held column, the missing one among them.
    """

    def measured(classes: Classes) -> tuple[pa.Table | None, Mapping[str, Any]]:
        counts = []
        for runs, bound in zip(classes.held, bounds, strict=True):
            total = np.zeros(bound, dtype=np.int64)
            np.add.at(total, runs.value, runs.count)
            counts.append(total.tolist())
        return None, {"held": counts}

    return measured
