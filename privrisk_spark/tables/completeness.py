"""Whether a table has arrived whole, and whether all that its files hold is read.

Spark fills a line that is cut with missing values, cuts one that is too long, and writes U+FFFD for bytes that are no
text, without a warning. Under differential privacy such lines are not counted: each is a row like others, because how a
run ends must not depend on one row (docs/private-releases.md).
"""

from __future__ import annotations

import datetime as dt
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses
from pyspark.sql import types as T  # noqa: N812

from privrisk_spark.engine.failures import list_spark_errors, unreadable
from privrisk_spark.engine.number_texts import column
from privrisk_spark.engine.settings import whole_rows
from privrisk_spark.errors import ConfigError, Fault, IncompleteError, MissingError, SchemaError
from privrisk_spark.policy.checks import Complete
from privrisk_spark.policy.csv_dialect import parse_csv_dialect
from privrisk_spark.policy.dictionaries import GIVEN, Table
from privrisk_spark.results.facts import FilesRead
from privrisk_spark.storage.directories import is_there
from privrisk_spark.storage.locations import locate
from privrisk_spark.storage.opening import open_store
from privrisk_spark.storage.table_files import files_below, named_here
from privrisk_spark.tables.source_files import (
    check_files,
    in_object_store,
    is_csv_by_tasks,
    local_files,
    path_for_spark,
)
from privrisk_spark.tables.sources import catalog_properties

if TYPE_CHECKING:
    from privrisk_spark.tables.csv_rows import CsvDamage

_LOG = logging.getLogger(__name__)

REPLACEMENT = "\ufffd"
"""What stands for bytes that are no text."""

_PARSED = ("csv", "json")
_REPLACED = {"mode", "columnnameofcorruptrecord"}


def collect_files_read(
    spark: SparkSession, table: Table, frame: DataFrame, *, key: str, private: bool = False
) -> FilesRead | None:
    """Count files and damaged rows of a table of a path, and refuse it if there are such.

    Whoever writes ``options.mode`` has said what to do with malformed lines: they are counted then, and no refusal.

    Parameters
    ----------
    frame : DataFrame
        As Spark opened it.
    key : str
        Of the policy, for messages.
    private : bool
        Whether how the run ends must not depend on a row; then nothing but files is counted.

    Returns
    -------
    FilesRead or None
        None for a table of another file system.

    Raises
    ------
    SchemaError
        Naming table and number of rows.
    """
    if table.catalog == GIVEN:
        return None
    if table.catalog is not None and table.pinned is None:
        version, counted = _collect_version(spark, table.catalog)
        read = len(set(frame.inputFiles())) if counted is None else counted
        return FilesRead(expected=read, processed=read, version=version)
    files = check_files(table, key=key, columns=())  # those that are looked at were when it was opened
    if private or table.path is None or table.format.lower() not in _PARSED:
        return files
    asked = "mode" in {name.lower() for name in table.options}
    where = f"{key}.path: '{table.path}':"
    advice = (
        f"Fix: correct them, or set {key}.options.mode: PERMISSIVE to read what can be read of them, or DROPMALFORMED "
        "to leave them out"
    )

    if is_csv_by_tasks(table):
        from privrisk_spark.tables.csv_rows import collect_csv_damage

        damage = collect_csv_damage(spark, table, key=key)
        malformed, garbled = damage.malformed, damage.garbled
        dialect = parse_csv_dialect(table.option_texts, f"{key}.options")
        advice = _explain(damage, f"{key}.options", advice, multi_line=dialect.multi_line)
    else:
        try:
            malformed, garbled = _collect_damaged(spark, table, frame, key)
        except list_spark_errors() as error:
            known = unreadable(str(error))
            if known is None:
                raise
            raise SchemaError(f"{where} {known}") from None
    if malformed and not asked:
        raise SchemaError(
            f"{where} {malformed:,} lines are cut, have more values than there are columns, or are not {table.format}. "
            f"{advice}."
        )
    if garbled and not asked:
        raise SchemaError(
            f"{where} {garbled:,} rows have bytes that are no text in {table.options.get('encoding', 'UTF-8')} (or "
            f"U+FFFD, which stands for such). Fix: set {key}.options.encoding, such as windows-1252, or correct them."
        )
    return None if files is None else replace(files, malformed=malformed, garbled=garbled)


def _explain(damage: CsvDamage, options: str, otherwise: str, *, multi_line: bool) -> str:
    """Return the likely reason for malformed lines, and the fix."""
    if damage.rows and damage.longer == damage.rows:
        return (
            "Each line has one value more than the header: write.table of R writes row names so. Fix: write the table "
            "with row.names = FALSE or col.names = NA"
        )
    if damage.unclear and multi_line:
        return (
            f"{damage.unclear:,} have a quoted value that does not end, or ends before the value does. Fix: write the "
            "table with doubled quotes within quotes"
        )
    if damage.unclear:
        return (
            f"{damage.unclear:,} have a quoted value that does not end on its line. Fix: set {options}.multiLine: true "
            f"if values hold line breaks, {options}.escape: '\\' if quotes within values have a backslash, or "
            f"{options}.quote: '' if quotes mean nothing. {otherwise.replace('Fix: correct', 'Else correct')}"
        )
    if damage.malformed == damage.rows:
        return (
            "No line has as many values as the first one. Fix: set "
            f"{options}.skipRows to the number of lines above the header if it is a title, or {options}.sep to the "
            "separator"
        )
    return otherwise


def _collect_version(spark: SparkSession, name: str) -> tuple[dict[str, Any], int | None]:
    """Return a catalog's table, its format and its version or snapshot; and its files, if Spark does not list them."""
    found: dict[str, Any] = {"catalog": name}
    try:
        form = catalog_properties(spark, name).get("Provider", "").lower()
        found |= {"format": form} if form else {}  # a view has none
        if form == "iceberg":
            # A table that was set back has an earlier snapshot than its newest.
            current = spark.table(f"{name}.history").orderBy(F.desc("made_current_at")).limit(1)
            found |= _collect_row(current, snapshot="snapshot_id", committed="made_current_at")
            return found, spark.table(f"{name}.data_files").count()
        if form == "delta" and re.fullmatch(_QUOTABLE, name):
            newest = spark.sql(f"DESCRIBE HISTORY {name} LIMIT 1")
            found |= _collect_row(newest, version="version", committed="timestamp")
    except list_spark_errors() as error:
        _LOG.warning("Spark does not give the version of the table '%s' (%s)", name, type(error).__name__)
    return found, None


_QUOTABLE = r"(\w+|`[^`]+`)(\.(\w+|`[^`]+`))*"
"""Names that go into a statement."""


def _collect_row(frame: DataFrame, **columns: str) -> dict[str, Any]:
    """Return columns of the only row by new names; times as texts, and nothing if there is no row."""
    chosen = [F.col(name).cast("string" if key == "committed" else "long").alias(key) for key, name in columns.items()]
    return next(iter(frame.select(*chosen).toArrow().to_pylist()), {})


def _collect_damaged(spark: SparkSession, table: Table, frame: DataFrame, key: str) -> tuple[int, int]:
    damaged = "_damaged"
    while damaged in frame.columns:
        damaged += "_"
    options = table.option_texts
    if table.format.lower() == "csv":
        options = parse_csv_dialect(options, f"{key}.options").spark_options
    options = {name: value for name, value in options.items() if name.lower() not in _REPLACED}
    options |= {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": damaged}
    schema = T.StructType([*frame.schema.fields, T.StructField(damaged, T.StringType())])
    rows = spark.read.format(table.format).options(**options).schema(schema).load(path_for_spark(spark, table))
    rows = whole_rows(rows)
    texts = [field.name for field in frame.schema.fields if isinstance(field.dataType, T.StringType)]
    # One flat expression: hundreds of columns are no deeper a plan than one.
    garbled = F.contains(F.concat_ws("", *[column(name) for name in texts]), F.lit(REPLACEMENT))
    found = rows.agg(F.count(column(damaged)).alias("malformed"), F.count_if(garbled).alias("garbled")).toArrow()
    return int(found.column("malformed")[0].as_py()), int(found.column("garbled")[0].as_py())


def check_arrived(table: Table, asked: Complete, *, date: dt.date) -> None:
    """Refuse a table that has no files or no marker, or whose newest file is too old; no file is opened.

    Parameters
    ----------
    table : Table
        The table of a policy.
    date : date
        Business date of the run.

    Raises
    ------
    IncompleteError
        If it has not arrived; running again later helps.
    ConfigError
        If its files are not known here.
    """
    if table.path is None or table.lake is not None:
        return
    if in_object_store(table):
        place = locate(table.path, key="table.path")
        # A marker is hidden among the files, as it holds no rows.
        markers = [str(place)] if asked.marker and open_store(place).find(asked.marker) is None else []
        written = [file.modified for file in files_below(place)]
    else:
        places = named_here(table.path)
        if not places and "://" in table.path:
            if asked.marker is None and asked.written_within_days is None:
                return
            key = "marker" if asked.marker is not None else "written_within_days"
            rule = "needs files that are looked at here: on a local or mounted path, or Parquet or plain CSV in a store"
            raise ConfigError([Fault(f"checks.complete.{key}", rule)])
        markers = [str(one) for one in places if asked.marker and not is_there(one / asked.marker)]
        written = [file.modified for file in local_files(table)]
    if not written:
        raise IncompleteError(f"table.path: '{table.path}' has no files yet.")
    if markers:
        raise IncompleteError(f"table.path: '{markers[0]}' has no file {asked.marker} yet (checks.complete.marker).")
    if asked.written_within_days is not None:
        first = date - dt.timedelta(days=asked.written_within_days)
        newest = dt.datetime.fromtimestamp(max(written), dt.UTC)
        if newest.date() < first:
            raise IncompleteError(
                f"table.path: the newest file of '{table.path}' was written on {newest.date()}, and the table of "
                f"{date} is asked to be written on {first} or later (checks.complete.written_within_days)."
            )


@contextmanager
def awaited(asked: Complete | None) -> Iterator[None]:
    """Let a table or dictionary that does not exist be one that is late, if ``checks.complete`` is set.

    Raises
    ------
    IncompleteError
        In place of MissingError; running again later helps.
    """
    try:
        yield
    except MissingError as error:
        if asked is None:
            raise
        raise IncompleteError(f"{error} The run may come too early (checks.complete).") from None


def collect_enough_rows(frame: DataFrame, asked: Complete, *, said: int | None) -> None:
    """Refuse a table with too few rows.

    Parameters
    ----------
    said : int or None
        Rows the files say they have; where they do not, the table is read for it.

    Raises
    ------
    IncompleteError
        If there are fewer; running again later helps.
    """
    if asked.rows_at_least is None:
        return
    rows = frame.count() if said is None else said
    if rows < asked.rows_at_least:
        raise IncompleteError(
            f"table: it has {rows:,} rows, and {asked.rows_at_least:,} are expected (checks.complete.rows_at_least)."
        )
