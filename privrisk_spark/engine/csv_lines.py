"""CSV tables whose lines tasks find as Spark's reader does: in object stores, and all of the embedded engine.

Spark reads CSV files through the file systems of Java only, but parses texts from anywhere (``from_csv``). The embedded
engine has another parser, so there :mod:`privrisk_spark.engine.csv_values` makes rows of the lines.
"""

from __future__ import annotations

import csv
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses
from pyspark.sql import types as T  # noqa: N812

from privrisk_spark.engine.batches import Batches
from privrisk_spark.engine.csv_values import CsvValues
from privrisk_spark.engine.embedded import is_embedded
from privrisk_spark.engine.fingerprints import one_chunk
from privrisk_spark.engine.object_files import (
    CSV_PARSING,
    csv_separator,
    named_columns,
    object_files,
    object_partitions,
)
from privrisk_spark.engine.partitions import repeated
from privrisk_spark.engine.source_files import local_line_files
from privrisk_spark.errors import SchemaError
from privrisk_spark.kernels.numeric.lines import first_end, last_end, said_something, split_lines
from privrisk_spark.policy.dictionaries import Table
from privrisk_spark.storage.files import LineFile

__all__ = ["csv_lines_frame"]

PART: Final = 2**25
"""Bytes of a file that a task reads; lines belong to the part they begin in."""

BLOCK: Final = 2**22
"""Bytes that are looked at once."""

LONGEST_LINE: Final = 2**20
"""Bytes of a line of a CSV file that is read under dp; one that is as long or longer is no row."""

LONGEST: Final = 2**28
"""Bytes that a line may have at most."""

_MARK: Final = b"\xef\xbb\xbf"
"""What some programs write before a text in UTF-8."""

_OTHERWISE_COMPRESSED: Final = (".deflate", ".lz4", ".snappy", ".zst", ".zstd", ".lzo", ".xz")


def csv_lines_frame(
    spark: SparkSession, table: Table, *, key: str, damaged: str | None = None, private: bool = False
) -> DataFrame:
    """Open a table, all its columns as texts; of each file the first line is read, and no rows.

    Parameters
    ----------
    spark : SparkSession
    table : Table
        CSV, as :func:`~privrisk_spark.engine.object_files.is_csv_by_lines` has it.
    key : str
        Of the policy, for messages.
    damaged : str, optional
        Name of a further column, the last, that holds the line where it has more or fewer values than the table has
        columns, and nothing elsewhere.

    private : bool
        Whether how the run ends must not depend on a line.

    Raises
    ------
    SchemaError
        If a file cannot be read, or files do not have the same columns; of the embedded engine also if Spark reads the
        quotes of a line in a way of its own.

    Notes
    -----
    Columns in the names of directories come last, as texts. By Spark's reader the columns of the first file are those
    of all, whatever the headers of the others say; here another header is refused.
    """
    files: Sequence[LineFile] = local_line_files(table) or object_files(table, key=key)
    where = f"{key}.path: '{files[0].root}'"
    options = {name.lower(): value for name, value in table.option_texts.items()}
    encoding = options.get("encoding", options.get("charset", "utf-8"))
    headed = options.get("header", "false").lower() == "true"
    for file in files:
        if file.name.endswith(_OTHERWISE_COMPRESSED):
            raise SchemaError(
                f"{where}: file {file.name} is compressed in a way that is not read here; compress it by gzip or "
                "bzip2, or not at all."
            )
    names = _names(files, options, encoding, headed=headed, where=where)
    added = named_columns(files, where, names)
    of_files = object_partitions(files, {column: T.StringType() for column in added})
    if of_files is None:
        raise SchemaError(f"{where}: a directory's name is not a column and its value.")
    values = of_files
    parts = [
        (numbered, start, None if file.compressed else min(start + PART, file.size))
        for numbered, file in enumerate(files)
        for start in range(0, 1 if file.compressed else file.size, PART)
    ]
    comment = _comment(options)

    def read(part: tuple[int, int, int | None]) -> Iterator[pa.Table]:
        numbered, start, end = part
        heading = headed and start == 0
        for lines in _lines(files[numbered], start, end, where, encoding):
            letters, offsets = split_lines(lines)
            there = said_something(letters, offsets, comment)
            if private:
                there &= np.diff(offsets) < LONGEST_LINE
            rows = np.flatnonzero(there)
            if heading and len(rows):
                rows, heading = rows[1:], False
            texts = pa.Array.from_buffers(
                pa.large_string(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(letters)]
            )
            found = pa.table({_LINE: texts.take(pa.array(rows)).cast(pa.string())})
            for i, column in enumerate(added):
                value = repeated(values[numbered][column], pa.string(), found.num_rows, encoded=False)
                found = found.append_column(f"d{i}", value)
            yield found

    schema = T.StructType(
        [T.StructField(name, T.StringType()) for name in (_LINE, *(f"d{i}" for i in range(len(added))))]
    )
    by_task = Batches.of_parts(spark, parts, read, schema)
    if is_embedded(spark):
        unclear = None if private else _UNCLEAR.format(where=where, key=key)
        return _split_by_tasks(by_task, CsvValues(options, len(names), unclear), names, added, damaged)
    lines = by_task.frame()
    fields = [f"c{i}" for i in range(len(names))]
    parsing = {name: value for name, value in options.items() if name in CSV_PARSING}
    if damaged is not None:
        fields.append(_DAMAGED)
        parsing["columnNameOfCorruptRecord"] = _DAMAGED
    form = ", ".join(f"{field} STRING" for field in fields)
    parsed = lines.select(F.from_csv(_LINE, form, parsing).alias("row"), *schema.names[1:])
    columns = [F.col(f"row.c{i}").alias(name) for i, name in enumerate(names)]
    columns += [F.col(f"d{i}").alias(name) for i, name in enumerate(added)]
    if damaged is not None:
        columns.append(F.col(f"row.{_DAMAGED}").alias(damaged))
    return parsed.select(*columns)


def _split_by_tasks(
    lines: Batches, values: CsvValues, names: Sequence[str], added: Sequence[str], damaged: str | None
) -> DataFrame:
    """Open the lines as :func:`csv_lines_frame` does, without a parser of the engine's."""
    columns = [*names, *added, *([] if damaged is None else [damaged])]

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in tables:
            found, whole = values.split(one_chunk(table.column(_LINE)))
            found = [*found, *(one_chunk(table.column(f"d{i}")) for i in range(len(added)))]
            yield pa.table([*found, *([] if damaged is None else [whole])], names=columns)

    return lines.then(step, T.StructType([T.StructField(name, T.StringType()) for name in columns])).frame()


_UNCLEAR: Final = (
    "{where} has a line whose quotes Spark reads in a way of its own: a quote inside a quoted value, or a value whose "
    "quote does not end on its line. Fix: set {key}.options.escape: '\"' if quotes are doubled, fix the line, or give "
    "--engine spark."
)

_LINE: Final = "line"
_DAMAGED: Final = "damaged"


def _comment(options: Mapping[str, str]) -> int | None:
    """Byte that a comment begins with."""
    return ord(options["comment"]) if "comment" in options else None


def _names(
    files: Sequence[LineFile], options: Mapping[str, str], encoding: str, *, headed: bool, where: str
) -> list[str]:
    """Names of the columns in the files: of the header all have, or ``_c0``, … for the values of the first line."""
    names: list[str] | None = None
    for file in files:
        values = _first_values(file, options, where, encoding)
        if values is None:
            continue
        if names is None:
            unnamed = ("", options.get("nullvalue", ""))
            names = [value if headed and value not in unnamed else f"_c{i}" for i, value in enumerate(values)]
            first, there = file, values
            if not headed:
                break
        elif values != there:
            raise SchemaError(
                f"{where}: files {first.name} and {file.name} do not have the same columns in the same order in their "
                "first lines; write one of them anew."
            )
    if names is None:
        raise SchemaError(f"{where}: there is no line in its files.")
    known = [name.casefold() for name in names]
    twice = next((name for name in names if known.count(name.casefold()) > 1), None)
    if twice is not None:
        raise SchemaError(f"{where} has the column {twice!r} twice, whatever the case of its letters; rename one.")
    return names


def _first_values(file: LineFile, options: Mapping[str, str], where: str, encoding: str) -> list[str] | None:
    """Values of the first line that says something."""
    end = None if file.compressed else min(PART, file.size)
    for lines in _lines(file, 0, end, where, encoding, block=2**16):
        letters, offsets = split_lines(lines)
        rows = np.flatnonzero(said_something(letters, offsets, _comment(options)))
        if len(rows):
            line = letters[offsets[rows[0]] : offsets[rows[0] + 1]].tobytes().decode()
            parsing: dict[str, Any] = {"delimiter": csv_separator(options), "quotechar": options.get("quote", '"')}
            escape = options.get("escape", "\\")
            parsing |= {"doublequote": True} if escape == parsing["quotechar"] else {"escapechar": escape}
            try:
                return next(iter(csv.reader([line], **parsing)))
            except csv.Error:  # what the library says may quote a value
                raise SchemaError(
                    f"{where}: file {file.name} has a first line that is not CSV, or has a value of more than "
                    f"{csv.field_size_limit():,} letters; mend it."
                ) from None
    if end is not None and end < file.size:  # the task that drops the header would not find it
        raise SchemaError(
            f"{where}: file {file.name} has nothing but blank lines and comments in its first {end:,} bytes; take them "
            "out."
        )
    return None


def _lines(
    file: LineFile, start: int, end: int | None, where: str, encoding: str, *, block: int | None = None
) -> Iterator[bytes]:
    """Whole lines in UTF-8 that begin in a part of a file, some at once; bytes that are no text are U+FFFD."""
    try:
        with file.content() as source:
            look = block or 2**16  # most lines are short
            begin = _line_from(source, start, look)
            stop = None if end is None else _line_from(source, end, look) if end < file.size else file.size
            source.seek(begin)
            rest = b""
            while True:
                most = block or BLOCK
                data = source.read(most if stop is None else min(most, stop - source.tell()))
                if start == 0 and source.tell() == len(data):
                    data = data.removeprefix(_MARK)
                rest += data
                cut = last_end(rest) if data else len(rest)
                if cut:
                    yield _as_text(rest[:cut], encoding)
                    rest = rest[cut:]
                if not data:
                    return
                if len(rest) > LONGEST:
                    raise SchemaError(f"{where}: file {file.name} has a line of more than {LONGEST:,} bytes.")
    except (EOFError, OSError, zlib.error) as error:
        if not file.compressed or isinstance(error, FileNotFoundError):
            raise
        raise SchemaError(f"{where}: file {file.name} is compressed, and damaged or cut; write it anew.") from None


def _line_from(source: IO[bytes], place: int, look: int) -> int:
    """Where the first line begins that does not begin before a place, by looking at so many bytes at once."""
    if not place:
        return 0
    source.seek(place - 1)
    at, rest = place - 1, b""
    while more := source.read(look):
        data = rest + more
        found = first_end(data)
        if found >= 0:
            return at + found
        rest = b"\r" if data.endswith(b"\r") else b""
        at += len(data) - len(rest)
    return at + len(rest)


def _as_text(data: bytes, encoding: str) -> bytes:
    if data.isascii():
        return data
    return data.decode(encoding, errors="replace").encode()
