"""Equal released tuples counted, and only those with enough rows kept."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import Scratch
from privrisk_spark.engine.vectors import collect_vectors


def collect_histogram(
    scratch: Scratch, histogram: DataFrame, *, k: int, most: int
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """Materialize a histogram of released tuples; return their nodes, in order, and rows.

    Raises
    ------
    InputError
        If there are more than ``most``.
    """
    return collect_vectors(scratch.write_frame(histogram, "histogram"), schemas.nodes(k), most=most)


def crowd_histogram(tuples: DataFrame, *, k: int, crowd: int) -> DataFrame:
    """Return TUPLES: sampled records by the whole released tuple, tuples below the crowd threshold dropped."""
    return (
        tuples.groupBy(*schemas.nodes(k))
        .agg(F.sum(schemas.N_ROWS).alias(schemas.N_ROWS))
        .where(F.col(schemas.N_ROWS) >= F.lit(crowd))
    )
