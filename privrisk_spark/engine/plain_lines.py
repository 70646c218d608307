"""CSV files of which the bytes alone tell that Spark reads every line as one row: found out in tasks, far faster.

Spark counts damaged lines by parsing all of them once more. Of plain lines
(:mod:`privrisk_spark.kernels.numeric.plain_lines`) it is sure that there are none.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import types as T  # noqa: N812 - the name every Spark program uses

from privrisk_spark.engine.batches import Batches
from privrisk_spark.engine.object_files import in_object_store, object_files
from privrisk_spark.engine.source_files import local_files
from privrisk_spark.kernels.numeric.plain_lines import is_separator, plain
from privrisk_spark.policy.dictionaries import Table
from privrisk_spark.storage.documents import state_of
from privrisk_spark.storage.files import ObjectFile
from privrisk_spark.storage.table_files import opened

_OPTIONS = {"header", "sep", "delimiter"}
"""Reader options under which a line is what its bytes are; ``mode`` only says what is done with damaged ones."""

_PART = 2**25
_BLOCK = 2**23


def collect_plain(spark: SparkSession, table: Table, schema: T.StructType) -> bool:
    """Tell whether it is sure that no line of a table's files is damaged; that it is not sure says nothing.

    Parameters
    ----------
    spark : SparkSession
    table : Table
    schema : StructType
        As Spark opened it.
    """
    options = {name.lower(): value for name, value in table.option_texts.items()}
    separator = options.get("sep", options.get("delimiter", ",")).encode()
    files = object_files(table, key="table") if in_object_store(table) else local_files(table)
    if (
        table.format.lower() != "csv"
        or files is None
        or set(options) - _OPTIONS - {"mode"}
        or not is_separator(separator)
        # Others may be compressed, and a directory's name may hold a value of each line.
        or any(not file.name.endswith(".csv") or "=" in _place(file) for file in files)
        or any(not isinstance(field.dataType, T.StringType) for field in schema.fields)
    ):
        return False
    parts = [
        (file, start, min(start + _PART, size)) for file, size in map(_sized, files) for start in range(0, size, _PART)
    ]
    count = len(schema.fields) - 1

    def read(part: tuple[Path | ObjectFile, int, int]) -> Iterator[pa.Table]:
        yield pa.table({"plain": [_plain_part(*part, separator, count)]})

    found = Batches.of_parts(spark, parts, read, T.StructType([T.StructField("plain", T.BooleanType())])).frame()
    return all(found.toArrow().column("plain").to_pylist())


def _place(file: Path | ObjectFile) -> str:
    return str(file) if isinstance(file, Path) else str(file.path)


def _sized(file: Path | ObjectFile) -> tuple[Path | ObjectFile, int]:
    if isinstance(file, ObjectFile):
        return file, file.size
    known = state_of(file)
    return file.absolute(), 0 if known is None else known.size


def _plain_part(path: Path | ObjectFile, start: int, end: int, separator: bytes, count: int) -> bool:
    """Whether the lines that begin in a part of a file are plain."""
    with opened(path) if isinstance(path, Path) else path.reader() as file:
        if start:
            file.seek(start - 1)
            file.readline(_BLOCK)  # the rest of a line that began before
        while file.tell() < end:
            lines = file.read(min(_BLOCK, end - file.tell()))
            rest = file.readline(_BLOCK)
            if len(rest) == _BLOCK or not plain(lines + rest, separator, count):
                return False
    return True
