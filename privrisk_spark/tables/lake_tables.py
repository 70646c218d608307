"""Tables of lake formats, read by the tasks themselves: the plain Parquet files of the version that the run opened."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812 - the name every Spark program uses
from pyspark.sql.pandas.types import from_arrow_schema

from privrisk_spark.storage.lakes.snapshot import Snapshot
from privrisk_spark.tables.row_groups import (
    ROWS_PER_TASK,
    WHOLE_ROWS,
    RowGroups,
    Wanted,
    batches_of,
    pieces_of,
    together,
)

__all__ = ["lake_frame", "lake_tasks"]


def lake_tasks(snapshot: Snapshot, rows_per_task: int) -> list[tuple[RowGroups, ...]]:
    """Cut the files of a version into tasks.

    Parameters
    ----------
    snapshot : Snapshot
    rows_per_task : int
        About so many rows.
    """
    pieces = [
        piece
        for of in snapshot.files
        for piece in pieces_of(of.file, of.groups, rows_per_task, of.values, of.columns, of.deleted)
    ]
    return together(pieces, rows_per_task)


def lake_frame(spark: SparkSession, snapshot: Snapshot) -> DataFrame:
    """Open all columns of a version; no rows are read yet.

    Parameters
    ----------
    spark : SparkSession
    snapshot : Snapshot
    """
    schema = T.StructType(from_arrow_schema(snapshot.schema, prefer_timestamp_ntz=True).fields)
    wanted = [Wanted(name, name, "value", distinct=True) for name in schema.names]
    return batches_of(spark, schema, lake_tasks(snapshot, ROWS_PER_TASK), wanted, chunk_rows=WHOLE_ROWS).frame()
