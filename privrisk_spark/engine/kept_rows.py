"""Rows of a frame that this process keeps, for the embedded engine.

Sail computes a frame anew for each action, also after ``cache``, and it refuses ``localCheckpoint`` unless it is given
a directory. Its tasks are threads of this process, so they can read rows that the process holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from uuid import uuid4
from weakref import WeakValueDictionary

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

from privrisk_spark.engine.batches import CHUNK_ROWS, Batches


class _Rows:
    """A table that is pickled as its key, so that tasks find it in this process."""

    def __init__(self, table: pa.Table) -> None:
        self.table, self.key = table, uuid4().hex
        _KEPT[self.key] = self

    def __reduce__(self) -> tuple[Callable[[str], _Rows], tuple[str]]:
        return _find, (self.key,)


_KEPT: WeakValueDictionary[str, _Rows] = WeakValueDictionary()
"""Tables as long as a plan has them."""


def _find(key: str) -> _Rows:
    return _KEPT[key]


def write_to_memory(frame: DataFrame) -> DataFrame:
    """Write the rows of a frame to the memory of this process, and return a frame of them.

    Parameters
    ----------
    frame : DataFrame
        Of the embedded engine.

    Returns
    -------
    DataFrame
        The same rows. This process holds them as long as it holds this frame, or one that is made of it.
    """
    # Instants have the time zone of the session that computed them.
    rows = _Rows(frame.toArrow().cast(to_arrow_schema(frame.schema, timezone="UTC")))

    def read(start: int) -> Iterator[pa.Table]:
        yield rows.table.slice(start, CHUNK_ROWS)

    starts = range(0, rows.table.num_rows, CHUNK_ROWS)
    return Batches.of_parts(frame.sparkSession, starts, read, frame.schema).frame()
