"""A release as CSV: lines as Spark writes them, put into files by the tasks, on whatever all of them reach."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as compute
from pyspark.sql import types as T  # noqa: N812 - the name every Spark program uses

from privrisk_spark.engine.batches import (
    CHUNK_ROWS,
    PARTS,
    Batches,
    Scratch,
    in_chunks,
    part_name,
    read_ipc,
    report,
    together,
    write_ipc,
)
from privrisk_spark.engine.formulas import with_quoted_formulas
from privrisk_spark.engine.number_texts import dictionary_of
from privrisk_spark.storage.part_files import writing_bytes
from privrisk_spark.storage.parts import PartDirectory
from privrisk_spark.tables.csv_tables import csv_line, ended

_FILE: Final = "file"
_PLACE: Final = "place"

_LINES: Final = 2**14
"""Number of lines that are joined at once."""


def write_csv_files(
    scratch: Scratch, release: Batches, directory: PartDirectory, header: str, *, quote_formulas: bool = False
) -> Batches:
    """Write RELEASE as CSV, one file a task with rows, and return PARTS.

    Parameters
    ----------
    header : str
        The first line of each file, as :func:`privrisk_spark.tables.csv_tables.collect_csv_header` returns it.
    quote_formulas : bool
        Whether what a spreadsheet would run begins with a quote.

    Notes
    -----
    The bytes are those of Spark's own writer, which writes to the file systems of its connectors alone.
    """
    is_text = [isinstance(field.dataType, T.StringType) for field in release.schema.fields[1:]]
    if not all(is_text):
        release = _collect_texts(scratch, release, is_text)

    def lines(table: pa.Table) -> Iterator[pa.Array]:
        """Yield the lines of a table in arrays."""
        columns = [
            _format_texts(table.column(i + 1), first=i == 0, quote_formulas=quote_formulas)
            if text
            else dictionary_of(table.column(i + 1))
            for i, text in enumerate(is_text)
        ]
        for begin in range(0, table.num_rows, _LINES):
            texts = [fields.take(place.slice(begin, _LINES)) for fields, place in columns]
            yield compute.binary_join_element_wise(*texts, ",") if len(texts) > 1 else texts[0]

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        numbered = ((table.column(0)[0].as_py(), table) for table in tables if table.num_rows)
        for number, of_file in groupby(numbered, key=itemgetter(0)):
            name = part_name("csv")
            with writing_bytes(directory, name) as file:
                file.write(ended(pa.array([header])))
                for _, table in of_file:
                    for some in lines(table):
                        file.write(ended(some))
            yield report(name, {"file": number, "directory": ""})

    return release.then(step, PARTS)


def _collect_texts(scratch: Scratch, release: Batches, is_text: Sequence[bool]) -> Batches:
    """Return RELEASE with its numbers, dates and other values as texts, which the engine writes.

    The embedded engine moves rows to other tasks, so a column keeps the place of each row in its file.
    """
    fields = [T.StructField(f"c{i}", field.dataType) for i, field in enumerate(release.schema.fields[1:])]
    directory, spark = scratch.directory("fields"), scratch.spark

    def add_places(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        rows: Counter[int] = Counter()
        for table in tables:
            if table.num_rows:
                number, n = table.column(0)[0].as_py(), table.num_rows
                yield table.append_column(_PLACE, pa.array(np.arange(rows[number], rows[number] + n)))
                rows[number] += n

    def write_fields(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in in_chunks(tables):
            for number in table.column(_FILE).unique().to_pylist():
                part = table.filter(compute.equal(table.column(_FILE), number))
                yield report(write_ipc(part, directory), {"file": number})

    def read(names: Sequence[str]) -> Iterator[pa.Table]:
        tables = [read_ipc(directory, name) for name in names]
        for begin in range(0, sum(table.num_rows for table in tables), CHUNK_ROWS):
            some = [_select_places(table, begin, begin + CHUNK_ROWS) for table in tables]
            yield together(some).sort_by(_PLACE).drop_columns([_PLACE])

    numbered = release.then(add_places, T.StructType([*release.schema.fields, T.StructField(_PLACE, T.LongType())]))
    written = [field.name if text else csv_line([field]) for field, text in zip(fields, is_text, strict=True)]
    frame = numbered.frame().toDF(_FILE, *(field.name for field in fields), _PLACE).select(_FILE, *written, _PLACE)
    parts: defaultdict[int, list[str]] = defaultdict(list)
    for part in scratch.collect_parts(Batches.of_frame(frame).then(write_fields, PARTS)):
        parts[part["file"]].append(part["name"])
    texts = T.StructType([frame.schema[0], *(T.StructField(field.name, T.StringType()) for field in fields)])
    return Batches.of_parts(spark, [parts[number] for number in sorted(parts)], read, texts)


def _select_places(table: pa.Table, begin: int, end: int) -> pa.Table:
    """Return the rows whose places are in a range."""
    place = table.column(_PLACE)
    return table.filter(compute.and_(compute.greater_equal(place, begin), compute.less(place, end)))


def _format_texts(values: pa.ChunkedArray, *, first: bool, quote_formulas: bool) -> tuple[pa.Array, pa.Array]:
    """Return the distinct fields of texts, and the position of each row's field among them.

    A missing text is an empty field, an empty text is two quotes. ``#`` in the first column would start a comment.
    """
    distinct, place = dictionary_of(values)
    texts = with_quoted_formulas(distinct) if quote_formulas else distinct
    special = compute.match_substring_regex(texts, '[,"\\r\\n]' + ("|^#" if first else ""))
    special = compute.or_(special, compute.equal(texts, ""))
    doubled = compute.replace_substring(texts, '"', '""')
    fields = compute.if_else(special, compute.binary_join_element_wise('"', doubled, '"', ""), texts)
    return pa.concat_arrays([fields, pa.array([""])]), place.fill_null(len(fields))


def write_empty_csv(directory: PartDirectory, header: str) -> str:
    """Write a file of the header alone; return its name."""
    name = part_name("csv")
    with writing_bytes(directory, name) as file:
        file.write(ended(pa.array([header])))
    return name
