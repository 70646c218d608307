"""Rows of CSV tables, read by tasks on both engines: the same rows whatever columns are used."""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import IO, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812 - the name every Spark program uses

from privrisk_spark.engine.batches import Batches
from privrisk_spark.errors import SchemaError
from privrisk_spark.kernels.numeric.csv_records import find_first_line_end, find_last_line_end
from privrisk_spark.policy.csv_dialect import CsvDialect, parse_csv_dialect
from privrisk_spark.policy.dictionaries import Table
from privrisk_spark.storage.table_files import LineFile
from privrisk_spark.tables.csv_values import LONGEST_LINE, CsvParser, find_csv_records
from privrisk_spark.tables.partitions import named_columns, object_partitions, repeated
from privrisk_spark.tables.source_files import (
    local_files,
    object_files,
    refuse_unread,
)

__all__ = ["CsvDamage", "collect_csv_damage", "read_csv_table"]

PART: Final = 2**25
"""Bytes of a file that a task reads; a record belongs to the part it begins in."""

BLOCK: Final = 2**22
"""Bytes that are parsed at once."""

LONGEST: Final = 2**28
"""Bytes that a record may have at most."""

_UTF8_MARK: Final = b"\xef\xbb\xbf"
_UTF16_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")
_OTHERWISE_COMPRESSED: Final = (".deflate", ".lz4", ".snappy", ".zst", ".zstd", ".lzo", ".xz")


@dataclass(frozen=True)
class _Layout:
    """The files of a table and what their first lines hold.

    Attributes
    ----------
    where : str
        The table, for messages.
    begins : tuple of int
        Of each file the place of its first row, in decoded bytes if the file is compressed or not divisible.
    columns : tuple of str
        In the files.
    named : tuple of str
        In the names of directories.
    values : sequence of mapping
        Of each file the values of ``named``.
    private : bool
        Whether a row that is too long is left out instead of an error.
    """

    where: str
    dialect: CsvDialect
    files: Sequence[LineFile]
    begins: tuple[int, ...]
    columns: tuple[str, ...]
    named: tuple[str, ...]
    values: Sequence[Mapping[str, Any]]
    private: bool = False

    @property
    def parts(self) -> list[tuple[int, int, int | None]]:
        """File, first byte and end of what each task reads."""
        found: list[tuple[int, int, int | None]] = []
        for number, (file, begin) in enumerate(zip(self.files, self.begins, strict=True)):
            if file.compressed or not self.dialect.is_divisible:
                found.append((number, begin, None))
            else:
                found += [(number, start, min(start + PART, file.size)) for start in range(begin, file.size, PART)]
        return found


def read_csv_table(spark: SparkSession, table: Table, *, key: str, private: bool = False) -> DataFrame:
    """Open a table, all its columns as texts; of each file the first line is read.

    Parameters
    ----------
    table : Table
        As :func:`privrisk_spark.tables.source_files.is_csv_by_tasks` takes it.
    key : str
        Of the policy, for messages.
    private : bool
        Whether how the run ends must not depend on a line. A line of 1 MiB or more is no row then.

    Raises
    ------
    SchemaError
        If a file cannot be read, or files do not have the same columns. In a task also if a line is malformed and the
        mode is FAILFAST.

    Notes
    -----
    Columns in the names of directories come last. A malformed line has missing values for those it lacks, and loses
    those beyond the last column; if its quotes are not clear, all its values are missing.
    """
    layout = replace(_find_layout(table, key), private=private)
    parser = CsvParser(layout.dialect, layout.where, len(layout.columns), private)

    def read(part: tuple[int, int, int | None]) -> Iterator[pa.Table]:
        for data in _read_blocks(layout, *part):
            found = pa.table(parser.parse(data), names=list(layout.columns))
            for name in layout.named:
                value = repeated(layout.values[part[0]][name], pa.string(), found.num_rows, encoded=False)
                found = found.append_column(name, value)
            yield found

    schema = T.StructType([T.StructField(name, T.StringType()) for name in (*layout.columns, *layout.named)])
    return Batches.of_parts(spark, layout.parts, read, schema).frame()


@dataclass(frozen=True)
class CsvDamage:
    """Lines that are not read as they are written.

    Attributes
    ----------
    rows : int
        All lines.
    malformed : int
        Lines with more or fewer values than columns, and ``unclear`` ones.
    longer : int
        Lines with one value more than columns.
    unclear : int
        Lines with a value whose quote does not end, or ends before the value does.
    garbled : int
        Lines with bytes that are no text, or with U+FFFD.
    """

    rows: int
    malformed: int
    longer: int
    unclear: int
    garbled: int


def collect_csv_damage(spark: SparkSession, table: Table, *, key: str) -> CsvDamage:
    """Count the lines of a table that are not read as they are written, in a pass of its own.

    Parameters
    ----------
    table : Table
        As :func:`privrisk_spark.tables.source_files.is_csv_by_tasks` takes it.
    key : str
        Of the policy, for messages.
    """
    layout = _find_layout(table, key)
    parser = CsvParser(layout.dialect, layout.where, len(layout.columns), private=False)
    names = list(CsvDamage.__dataclass_fields__)

    def count(part: tuple[int, int, int | None]) -> Iterator[pa.Table]:
        counts = np.zeros(len(names), dtype=np.int64)
        for data in _read_blocks(layout, *part):
            counts += parser.count_damage(data)
        yield pa.table({name: pa.array([int(n)], pa.int64()) for name, n in zip(names, counts, strict=True)})

    schema = T.StructType([T.StructField(name, T.LongType()) for name in names])
    found = Batches.of_parts(spark, layout.parts, count, schema).frame().toArrow()
    return CsvDamage(*(pc.sum(found.column(name)).as_py() or 0 for name in names))


# --------------------------------------------------------------------------------------------- files to records


def _find_layout(table: Table, key: str) -> _Layout:
    files: Sequence[LineFile] = local_files(table) or object_files(table, key=key)
    where = f"{key}.path: '{files[0].root}'"
    refuse_unread(files, where)
    dialect = parse_csv_dialect(table.option_texts, f"{key}.options")
    for file in files:
        if file.name.lower().endswith(_OTHERWISE_COMPRESSED):
            raise SchemaError(
                f"{where}: file {file.name} is compressed in a way that is not read here. Fix: compress it by gzip or "
                "bzip2, or not at all."
            )
    firsts = [_find_first(file, dialect, where, key) for file in files]
    columns = _name_columns(files, [values for values, _ in firsts], dialect, where)
    named = named_columns(files, where, columns)
    values = object_partitions(files, {column: T.StringType() for column in named})
    if values is None:
        raise SchemaError(f"{where}: a directory is not named column=value. Fix: rename it.")
    return _Layout(where, dialect, files, tuple(begin for _, begin in firsts), tuple(columns), tuple(named), values)


def _name_columns(
    files: Sequence[LineFile], firsts: Sequence[list[str | None] | None], dialect: CsvDialect, where: str
) -> list[str]:
    """Return the names in the header that all files have, or ``_c0``, … for the values of the first row."""
    filled = [(file, values) for file, values in zip(files, firsts, strict=True) if values is not None]
    if not filled:
        raise SchemaError(f"{where}: its files have no rows and no header. Fix: check the path.")
    file, values = filled[0]
    other = next((of for of, held in filled if held != values), None) if dialect.header else None
    if other is not None:
        raise SchemaError(
            f"{where}: files {file.name} and {other.name} do not have the same columns in the same order in their "
            "first lines. Fix: write one of them again."
        )
    names = [value if dialect.header and value else f"_c{i}" for i, value in enumerate(values)]
    known = [name.casefold() for name in names]
    twice = next((name for name in names if known.count(name.casefold()) > 1), None)
    if twice is not None:
        raise SchemaError(f"{where} has the column {twice!r} twice, whatever the case of its letters. Fix: rename one.")
    return names


def _find_first(file: LineFile, dialect: CsvDialect, where: str, key: str) -> tuple[list[str | None] | None, int]:
    """Return the values of a file's first record, and the place of its first row."""
    data, size = b"", 2**16
    with _name_damage(file, where), file.content() as raw:
        marked = raw.read(2) in _UTF16_MARKS
    if marked and not dialect.encoding.lower().replace("_", "-").startswith("utf-16"):
        raise SchemaError(f"{where}: file {file.name} is in UTF-16. Fix: set {key}.options.encoding: UTF-16.")
    with _name_damage(file, where), _open_text(file, dialect) as source:
        while True:
            more = source.read(size)
            data, size = data + more, 4 * size
            begin = len(_UTF8_MARK) if data.startswith(_UTF8_MARK) else 0
            for _ in range(dialect.skip_rows):
                length = find_first_line_end(data[begin:])
                begin += length if length >= 0 else len(data) - begin
            records = find_csv_records(data[begin:], dialect)
            complete = records.end > 0 and len(records.starts) > 0 and records.ends[0] < records.end
            if complete or not more:
                break
            if len(data) > LONGEST:
                raise SchemaError(f"{where}: file {file.name} has no line end in its first {LONGEST:,} bytes.")
    if not len(records.starts):
        return None, len(data)
    text = data[begin:]
    start, end = int(records.starts[0]), int(records.ends[0])
    line = _as_utf8(text[start:end], dialect).decode()
    values = CsvParser(dialect, where, 0, private=False).parse_one(line)
    if values is None:
        raise SchemaError(
            f"{where}: file {file.name} has a first line that is not CSV: a quoted value does not end, or ends before "
            f"the value does. Fix: correct it, or set {key}.options.multiLine: true if a name has two lines."
        )
    if not dialect.header:
        return values, begin
    length = find_first_line_end(text[end:])
    return values, begin + end + (length if length >= 0 else len(text) - end)


class _Recoded:
    """A file whose encoding is not divisible, read from its beginning as UTF-8."""

    def __init__(self, source: IO[bytes], encoding: str) -> None:
        self._text = io.TextIOWrapper(source, encoding=encoding, errors="replace", newline="")

    def __enter__(self) -> _Recoded:
        return self

    def __exit__(self, *_: object) -> None:
        self._text.close()

    def read(self, size: int) -> bytes:
        """Return about so many bytes; none at the end."""
        return self._text.read(size).encode()


def _open_text(file: LineFile, dialect: CsvDialect) -> IO[bytes] | _Recoded:
    return file.content() if dialect.is_divisible else _Recoded(file.content(), dialect.encoding)


def _as_utf8(data: bytes, dialect: CsvDialect) -> bytes:
    """Return whole records in UTF-8; bytes that are no text become U+FFFD."""
    encoding = dialect.encoding if dialect.is_divisible else "utf-8"
    return data if data.isascii() else data.decode(encoding, errors="replace").encode()


@contextmanager
def _name_damage(file: LineFile, where: str) -> Iterator[None]:
    """Name a compressed file that cannot be read."""
    try:
        yield
    except (EOFError, OSError, zlib.error) as error:
        if not file.compressed or isinstance(error, FileNotFoundError):
            raise
        raise SchemaError(
            f"{where}: file {file.name} is compressed, and damaged or cut. Fix: write it again."
        ) from None


def _read_blocks(layout: _Layout, number: int, start: int, end: int | None) -> Iterator[bytes]:
    """Whole records in UTF-8 that begin in a part of a file, some at once."""
    file, dialect = layout.files[number], layout.dialect
    with _name_damage(file, layout.where), _open_text(file, dialect) as source:
        at, stop, rest = start, end, b""
        if isinstance(source, _Recoded) or end is None:
            while len(rest) < start:
                more = source.read(start - len(rest))
                if not more:
                    return
                rest += more
            rest = rest[start:]
        else:
            at = start if start == layout.begins[number] else _find_line(source, start)
            stop = _find_line(source, end) if end < file.size else file.size
            source.seek(at)
        while True:
            data = source.read(BLOCK if stop is None else max(0, min(BLOCK, stop - at)))
            at += len(data)
            rest += data
            cut = _find_last_end(rest, dialect) if data else len(rest)
            if cut:
                yield _as_utf8(rest[:cut], dialect)
                rest = rest[cut:]
            if not data:
                return
            if len(rest) > LONGEST and layout.private:
                rest = rest[:LONGEST_LINE]  # too long for a row all the same
            elif len(rest) > LONGEST:
                raise SchemaError(
                    f"{layout.where}: file {file.name} has a row of more than {LONGEST:,} bytes: a quote that does not "
                    "end, or no line ends."
                )


def _find_last_end(data: bytes, dialect: CsvDialect) -> int:
    """Find the place behind the last record of which all bytes are in the block, or 0."""
    if not dialect.multi_line:
        return find_last_line_end(data)
    return find_csv_records(data.removesuffix(b"\r"), dialect).end


def _find_line(source: IO[bytes], place: int) -> int:
    """Find where the first line begins that does not begin before a place."""
    source.seek(place - 1)
    at, rest = place - 1, b""
    while more := source.read(2**16):  # most lines are short
        data = rest + more
        found = find_first_line_end(data)
        if found >= 0:
            return at + found
        rest = b"\r" if data.endswith(b"\r") else b""
        at += len(data) - len(rest)
    return at + len(rest)
