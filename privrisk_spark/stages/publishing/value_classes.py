"""Classes of a release whose quasi-identifiers are values: rows that are equal in all of them, counted on the files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_

from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import Batches


@dataclass(frozen=True)
class ValueClasses:
    """Classes of a release.

    Attributes
    ----------
    least : int
        Rows of the smallest; 0 where there is none.
    least_telling : int or None
        Rows of the smallest, of those that have a value in one quasi-identifier at least; None where there is none.
    uniques : int
        Rows that are equal to no other.
    """

    classes: int
    least: int
    least_telling: int | None
    uniques: int


def measure_value_classes(release: Batches, columns: Sequence[str]) -> ValueClasses:
    """Count the classes of a staged release from its files.

    Parameters
    ----------
    release : Batches
        As it is read back.
    columns : sequence of str
        Of the quasi-identifiers there; missing values are equal to each other. None: all rows are one class.
    """
    rows = F.col(schemas.N_ROWS)
    # The embedded engine fails on an aggregate of an aggregate without groups.
    groups = [F.col(name) for name in columns] or [F.lit("all")]
    counted = release.frame().groupBy(*groups).agg(F.count("*").alias(schemas.N_ROWS))
    telling = F.when(~reduce(and_, [F.col(name).isNull() for name in columns]), rows) if columns else rows
    told = counted.agg(
        F.count("*").alias("classes"),
        F.min(rows).alias("least"),
        F.min(telling).alias("least_telling"),
        F.count_if(rows == 1).alias("uniques"),
    ).toArrow()
    classes, least, telling, uniques = (told.column(i)[0].as_py() for i in range(4))
    return ValueClasses(int(classes), int(least or 0), None if telling is None else int(telling), int(uniques))
