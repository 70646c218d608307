"""Whether a table has arrived whole, before anything of it is read: its marker, the age of its files, its rows."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import DataFrame

from privrisk_spark.errors import ConfigError, Fault, IncompleteError, MissingError
from privrisk_spark.policy.checks import Complete
from privrisk_spark.policy.dictionaries import Table
from privrisk_spark.storage.directories import is_there
from privrisk_spark.storage.documents import state_of
from privrisk_spark.storage.locations import locate
from privrisk_spark.storage.opening import open_store
from privrisk_spark.storage.table_files import files_below, named_here
from privrisk_spark.tables.object_files import in_object_store
from privrisk_spark.tables.source_files import local_files

__all__ = ["awaited", "check_arrived", "collect_enough_rows"]


def check_arrived(table: Table, asked: Complete, *, date: dt.date) -> None:
    """Refuse a table that has no files or no marker, or whose newest file is too old; no file is opened.

    Parameters
    ----------
    table : Table
        The table of a policy.
    asked : Complete
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
        written = [_modified(file) for file in local_files(table) or []]
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

    Parameters
    ----------
    asked : Complete or None

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
    frame : DataFrame
    asked : Complete
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


def _modified(file: Path) -> float:
    try:
        known = state_of(file)
    except OSError:
        known = None
    return 0.0 if known is None else known.modified  # of a link to nothing, which reading names
