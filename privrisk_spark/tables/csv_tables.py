"""CSV that tasks write and read themselves, on whatever all of them reach: lines are those of Spark's own writer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, Final

import pyarrow as pa
import pyarrow.compute as compute
import pyarrow.csv as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses
from pyspark.sql import types as T  # noqa: N812

from privrisk_spark.engine.batches import Batches, Scratch, part_name
from privrisk_spark.engine.fingerprints import one_chunk
from privrisk_spark.engine.number_texts import INEXACT, exact_text
from privrisk_spark.errors import SchemaError
from privrisk_spark.storage.directories import make
from privrisk_spark.storage.part_files import writing_bytes
from privrisk_spark.storage.parts import LocalParts

_BLOCK: Final = 2**24
"""Bytes read at once; no row may be longer."""


_OPTIONS: Final = {
    "escape": '"',
    # By default Spark trims texts when it writes them.
    "ignoreLeadingWhiteSpace": "false",
    "ignoreTrailingWhiteSpace": "false",
}


def csv_line(fields: Sequence[T.StructField]) -> Column:
    """Return a row as a line without its end; a missing value is nothing between two separators.

    Parameters
    ----------
    fields : sequence of StructField
        Of a frame, in the order of the line; names without dots and backticks, of simple types.
    """
    # The embedded engine would write 1.5E7 as 15000000.
    texts = [exact_text(F.col(of.name), of.dataType) if isinstance(of.dataType, INEXACT) else of.name for of in fields]
    line = F.to_csv(F.struct(*texts), _OPTIONS)
    if len(fields) == 1:
        # Of a single missing value Spark makes no line at all, and fails. Readers skip an empty one, so that a release
        # that loses such rows does not pass the count of its rows.
        line = F.when(F.col(fields[0].name).isNull(), F.lit("")).otherwise(line)
    return line


def collect_csv_header(spark: SparkSession, names: Sequence[str]) -> str:
    """Return the line of the columns' names, as Spark writes it."""
    columns = [f"c{i}" for i in range(len(names))]
    schema = T.StructType([T.StructField(name, T.StringType()) for name in columns])
    line = spark.createDataFrame([tuple(names)], schema).select(csv_line(schema.fields))
    found: str = line.toArrow().column(0)[0].as_py()
    return found


def ended(lines: pa.Array | pa.ChunkedArray, end: str = "\n") -> bytes:
    """Return lines as the bytes of a file.

    Parameters
    ----------
    lines : pa.Array or pa.ChunkedArray
        Of strings.
    end : str
        Behind each line.
    """
    if not len(lines):
        return b""
    array = one_chunk(lines) if isinstance(lines, pa.ChunkedArray) else lines
    every = pa.LargeListArray.from_arrays([0, len(lines)], array)
    joined: bytes = compute.binary_join(every, end)[0].as_buffer().to_pybytes()
    return joined + end.encode()


def write_csv(scratch: Scratch, frame: DataFrame, name: str) -> Path:
    """Write a small frame as one CSV file in a new directory of the driver, its lines sorted by the first column.

    Parameters
    ----------
    frame : DataFrame
        Columns as :func:`csv_line` takes them.
    name : str
        Of the directory.

    Notes
    -----
    The driver writes the lines. On the way to a task, Sail drops the order of rows and the number of partitions.
    """
    header = collect_csv_header(scratch.spark, frame.columns)
    target = scratch.path / name
    make(target)
    with writing_bytes(LocalParts(str(target)), part_name("csv")) as file:
        file.write(f"{header}\n".encode())
        for (line,) in frame.orderBy(frame.columns[0]).select(csv_line(frame.schema.fields)).toLocalIterator():
            file.write(f"{line}\n".encode())
    return target


def csv_frame(
    spark: SparkSession,
    files: Sequence[Any],
    opened: Callable[[Any], str | IO[bytes]],
    columns: Sequence[str],
    *,
    where: str,
) -> DataFrame:
    """Open CSV files as releases have them, all columns as texts: a header, commas, quotes doubled within quotes.

    Parameters
    ----------
    files : sequence
        One a task; descriptions must be small.
    opened : callable
        Gives the path of a file to read, or the file opened, in a task.
    columns : sequence of str
        That the header of each has, in this order.
    where : str
        What the files are, for messages.

    Raises
    ------
    SchemaError
        In a task, if a file is not of this form.

    Notes
    -----
    Nothing between two separators is a missing value, and two quotes are a text of no letters.
    """
    names = list(columns)

    def read(file: Any) -> Iterator[pa.Table]:
        # Made here: options of parsing that were pickled call a handler of damaged rows that is not there.
        options: dict[str, Any] = {
            "read_options": pc.ReadOptions(use_threads=False, block_size=_BLOCK),
            "parse_options": pc.ParseOptions(newlines_in_values=True),
            "convert_options": pc.ConvertOptions(
                column_types={name: pa.string() for name in names},
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        }
        try:
            with pc.open_csv(opened(file), **options) as reader:
                if reader.schema.names != names:
                    raise SchemaError(f"{where} has a file with other columns than the release; publish it anew.")
                for batch in reader:
                    yield pa.Table.from_batches([batch])
        except pa.ArrowInvalid:
            # What the library says may quote a row.
            raise SchemaError(f"{where} has a file that is damaged or cut; publish it anew.") from None

    schema = T.StructType([T.StructField(name, T.StringType()) for name in names])
    return Batches.of_parts(spark, files, read, schema).frame()
