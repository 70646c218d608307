"""A release as CSV: lines as Spark writes them, put into files by the tasks, on whatever all of them reach."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Final

import pyarrow as pa
from pyspark.sql import types as T  # noqa: N812 - the name every Spark program uses

from privrisk_spark.engine.batches import PARTS, Batches, part_name, report
from privrisk_spark.engine.csv_tables import csv_line, ended
from privrisk_spark.engine.formulas import with_quoted_formulas
from privrisk_spark.storage.part_files import writing_bytes
from privrisk_spark.storage.parts import PartDirectory

_FILE: Final = "file"
_LINE: Final = "line"


def csv_files(release: Batches, directory: PartDirectory, header: str, *, quote_formulas: bool = False) -> Batches:
    """Write RELEASE as CSV, one file a task with rows, and return PARTS.

    Parameters
    ----------
    release : Batches
    directory : PartDirectory
    header : str
        The first line of each file, as :func:`privrisk_spark.engine.csv_tables.collect_csv_header` returns it.
    quote_formulas : bool
        Whether what a spreadsheet would run begins with a quote.

    Notes
    -----
    The bytes are those of Spark's own writer, which writes to the file systems of its connectors alone.
    """
    fields = [T.StructField(f"c{i}", field.dataType) for i, field in enumerate(release.schema.fields[1:])]
    rows = release.frame().toDF(_FILE, *(field.name for field in fields))
    shown = with_quoted_formulas(rows) if quote_formulas else rows
    lines = Batches.of_frame(shown.select(_FILE, csv_line(fields).alias(_LINE)))

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        numbered = ((table.column(_FILE)[0].as_py(), table) for table in tables if table.num_rows)
        for number, of_file in groupby(numbered, key=itemgetter(0)):
            name = part_name("csv")
            with writing_bytes(directory, name) as file:
                file.write(ended([header]))
                for _, table in of_file:
                    file.write(ended(table.column(_LINE).to_pylist()))
            yield report(name, {"file": number, "directory": ""})

    return lines.then(step, PARTS)


def write_empty_csv(directory: PartDirectory, header: str) -> str:
    """Write a file of the header alone; return its name."""
    name = part_name("csv")
    with writing_bytes(directory, name) as file:
        file.write(ended([header]))
    return name
