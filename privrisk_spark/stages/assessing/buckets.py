"""What a task does with the classes of a bucket: measure them, and keep what the records are told later."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import types as T  # noqa: N812 - the name every Spark program uses

from privrisk_spark.engine import schemas
from privrisk_spark.engine.population import PeopleOf
from privrisk_spark.kernels.classes.classes import Classes
from privrisk_spark.kernels.classes.closeness import TableDistribution
from privrisk_spark.kernels.measures.loss import fully_suppressed
from privrisk_spark.stages.assessing.records import CLASS_SIZE, POPULATION, ROWS, WEIGHT
from privrisk_spark.stages.assessing.tallies import DIVERSITY, ClassMeasures, Tallies


def tallying(
    asked: ClassMeasures, *, population: PeopleOf | None
) -> Callable[[Classes], tuple[pa.Table, dict[str, Any]]]:
    """Return the function that measures the classes of a bucket.

    Parameters
    ----------
    population : PeopleOf or None
        How many a class has in the population.

    Returns
    -------
    callable
        Its table has a row a class, of :func:`kept_schema`; its facts are ``tallies`` and the number of ``classes``.
    """
    roots = [hierarchy.root for hierarchy in asked.hierarchies]

    def measured(classes: Classes) -> tuple[pa.Table, dict[str, Any]]:
        people = None if population is None else population(classes.nodes)
        tallies = Tallies.of(classes, asked, people)
        kept: dict[str, Any] = {
            name: pa.array(np.ascontiguousarray(classes.nodes[:, i]))
            for i, name in enumerate(schemas.nodes(classes.nodes.shape[1]))
        }
        kept[ROWS] = pa.array(classes.rows)
        apart = fully_suppressed(classes.nodes, roots) & (asked.suppressed == "apart")
        kept[CLASS_SIZE] = pa.array(np.where(apart, 0, classes.crowds))
        if people is not None:
            kept[POPULATION] = pa.array(people)
        if classes.millionths is not None:
            alike = classes.compatible_millionths
            kept[WEIGHT] = pa.array((classes.millionths if alike is None else alike) / 1e6)
        for sensitive, runs, count in zip(asked.sensitive, classes.held, asked.tables, strict=False):
            of_class = sensitive.of_classes(runs, TableDistribution(count if count[-1] else count[:-1]))
            kept |= {f"{name}_{sensitive.name}": pa.array(values) for name, values in of_class.items()}
        return pa.table(kept), {"tallies": tallies, "classes": len(classes)}

    return measured


def kept_schema(k: int, *, population: bool, weighted: bool, sensitive: Sequence[str] = ()) -> T.StructType:
    """Schema of what is kept of a class of ``k`` attributes, and of sensitive columns by name."""
    kept = [T.StructField(name, T.IntegerType(), False) for name in schemas.nodes(k)]
    kept += [T.StructField(name, T.LongType(), False) for name in (ROWS, CLASS_SIZE)]
    kept += [T.StructField(POPULATION, T.LongType(), False)] if population else []
    kept += [T.StructField(WEIGHT, T.DoubleType(), False)] if weighted else []
    for column in sensitive:
        kept.append(T.StructField(f"{DIVERSITY[0]}_{column}", T.LongType(), False))
        kept += [T.StructField(f"{name}_{column}", T.DoubleType(), False) for name in DIVERSITY[1:]]
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
