"""The settings of a Spark session a run relies on, set for the run and put back after it.

A release must not depend on who started Spark. Some settings change what a table holds once it is read (time zone,
case sensitivity), others what tasks get (Arrow) or what is written (timestamps). A session of one's own is built with
all of them; a *foreign* one, that of a frame a user gives, has them already, or gets them for the run, or is refused
with the name of the setting. There is no fourth way, in which the result is another one.

**A frame is what its own session makes of it.** Spark plans a frame anew for every action, by the settings at that
moment: a timestamp in a CSV file without a time zone is read in the session's, and a column of a Parquet file may be
found whatever its case. Under the settings of a run such a frame would hold other values. Where settings must change,
the frame is therefore computed first, under its own, and Spark keeps its rows (``localCheckpoint``) for the run. The
embedded engine does not: there this process keeps them.

**Several runs on one session.** The first sets, the last puts back. A frame that must be computed first waits for runs
of other threads to end, as the session has one time zone at a time; and runs wait while it is computed. What the user
runs on the session besides, at the same time, sees the settings of the run.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlparse
from weakref import WeakKeyDictionary

from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses

from privrisk_spark.engine.embedded import is_embedded
from privrisk_spark.engine.number_texts import column
from privrisk_spark.errors import BusyError, ConfigError, Fault, listing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

REQUIRED: Mapping[str, str] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "true",
    # What cannot be cast or computed is an error, never a null.
    "spark.sql.ansi.enabled": "true",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
    "spark.sql.execution.pythonUDF.pandas.preferIntExtensionDtype": "true",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.writeLegacyFormat": "false",
    # Days of files that do not say by which calendar they count are those of the calendar of today.
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    # A type inferred from all directory names would change with one of them, and lose leading zeros.
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    # Rows that cannot be read are not left out.
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
}
"""What every run relies on: not a user's choice."""

JOINS: Mapping[str, str] = {
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "-1",
}
"""Set for every run: Spark does not choose itself which side of a join every task holds.

Its estimate is the size of compressed files, or nothing for rows that tasks read. A table of millions of rows then
seems small, and does not fit the driver. Stages mark what is broadcast
(:func:`privrisk_spark.engine.batches.broadcast_small`). No value depends on these settings.
"""

ENCRYPTION = "spark.io.encryption.enabled"
"""Of what Spark spills, shuffles and broadcasts to local disks; Java reads it once, at its start."""

_MARK = "privrisk.settings"
"""Setting by which a session that is held is known again: two Python objects may stand for one session."""


@dataclass(eq=False)
class _Held:
    """A session that runs hold under their settings, or frames that are computed under its own.

    Attributes
    ----------
    before : dict of setting to value
        What to put back when the last run ends; None where it was not set.
    runs : list of int
        Thread of every run.
    computing : int
        Frames that are being computed.
    users : int
        Threads that are in one of both, or wait for it; without any the session is forgotten.
    """

    before: dict[str, str | None] = field(default_factory=dict)
    runs: list[int] = field(default_factory=list)
    computing: int = 0
    users: int = 0


_CHANGED = threading.Condition()
_HELD: dict[str, _Held] = {}


def differing(spark: SparkSession) -> dict[str, str]:
    """Return the settings that values depend on and that are not as required, with their values.

    Returns
    -------
    dict of setting to value
        ``not set`` where this Spark has no value for it.
    """
    return _differing(spark, REQUIRED)


def _differing(spark: SparkSession, asked: Mapping[str, str]) -> dict[str, str]:
    """Return the settings with other values than asked for."""
    found = {name: _value(spark, name) for name in asked}
    return {
        name: "not set" if value is None else value
        for name, value in found.items()
        if value is None or value.lower() != asked[name].lower()
    }


def encrypts(spark: SparkSession) -> bool:
    """Return True if a session encrypts what it keeps on local disks, or keeps nothing there."""
    return is_embedded(spark) or spark.conf.get(ENCRYPTION, None) == "true"


def check_encryption(spark: SparkSession) -> None:
    """Refuse a session that writes keys to local disks in the clear.

    Raises
    ------
    ConfigError
        Naming the setting, its value and what would do.
    """
    if not encrypts(spark):
        value = spark.conf.get(ENCRYPTION, None)
        rule = (
            f"must be true for a release whose keys travel inside tasks, and cannot be set once Spark runs. Got "
            f"{value or 'false'}; build the session with .config('{ENCRYPTION}', 'true'), or let privrisk build it"
        )
        raise ConfigError([Fault(ENCRYPTION, rule)])


@contextmanager
def as_required(spark: SparkSession) -> Iterator[None]:
    """Hold a session under the settings a run relies on, and put back what they were, also after an error.

    Parameters
    ----------
    spark : SparkSession
        May be held by other runs.

    Raises
    ------
    ConfigError
        Naming a setting the session does not let be set, its value, and what would do.
    """
    with _record(spark) as held:
        with _CHANGED:
            _CHANGED.wait_for(lambda: not held.computing)
            if not held.runs:
                try:
                    _set(spark, held)
                except BaseException:
                    _put_back(spark, held)
                    raise
            held.runs.append(threading.get_ident())
        try:
            yield
        finally:
            with _CHANGED:
                held.runs.remove(threading.get_ident())
                if not held.runs:
                    _put_back(spark, held)
                    _CHANGED.notify_all()


def fixed(table: DataFrame) -> DataFrame:
    """Return a frame whose values do not depend on the session's settings any more.

    Parameters
    ----------
    table : DataFrame
        Left as it is if its session has the settings a run relies on; else computed, once, under its own.

    Returns
    -------
    DataFrame
        The same rows. Spark keeps those it computed as long as the frame is in use; if a worker dies that holds some,
        the run fails and can be run again.

    Raises
    ------
    ConfigError
        If columns differ in case alone, and the frame's session does not tell them apart.
    BusyError
        If this thread is in a run on the session already, which must see other settings.
    """
    spark = table.sparkSession
    with _record(spark) as held:
        with _CHANGED:
            changed = {name: value or "the default" for name, value in held.before.items() if name in REQUIRED}
            own = changed if held.runs else differing(spark)
            if not own:
                return table
            if threading.get_ident() in held.runs:
                raise BusyError(
                    f"table: this thread is in a run on the frame's session, which holds {listing(list(own), most=3)} "
                    "until it ends; end that run first, or build the session with what a run needs."
                )
            _CHANGED.wait_for(lambda: not held.runs)
            held.computing += 1
        from privrisk_spark.engine.kept_rows import write_to_memory

        try:
            if "spark.sql.caseSensitive" in own:
                _refuse_twins(table)
            computed = write_to_memory(table) if is_embedded(spark) else table.localCheckpoint(eager=True)
            FILES_OF[computed] = input_files(table)
            return computed
        finally:
            with _CHANGED:
                held.computing -= 1
                _CHANGED.notify_all()


FILES_OF: WeakKeyDictionary[DataFrame, list[str]] = WeakKeyDictionary()
"""URIs of the files of frames of which Spark lists none: they were computed, or tasks read them."""


def input_files(frame: DataFrame) -> list[str]:
    """Return the URIs of the files a frame reads, or those of :data:`FILES_OF`."""
    return FILES_OF[frame] if frame in FILES_OF else frame.inputFiles()


def _refuse_twins(table: DataFrame) -> None:
    """Refuse columns that the frame's own session does not tell apart."""
    by_case: dict[str, list[str]] = {}
    for name in table.columns:
        by_case.setdefault(name.lower(), []).append(name)
    for names in by_case.values():
        if len(names) > 1:
            rule = (
                f"must be true to tell the columns {listing([repr(name) for name in names])} apart. Got false; set it "
                "before the frame is made, or rename a column"
            )
            raise ConfigError([Fault("spark.sql.caseSensitive", rule)])


@contextmanager
def _record(spark: SparkSession) -> Iterator[_Held]:
    """Use what is known of a session, which is forgotten when nobody does any more."""
    with _CHANGED:
        mark = spark.conf.get(_MARK, None)
        if mark is None or mark not in _HELD:
            mark = uuid.uuid4().hex
            spark.conf.set(_MARK, mark)
            _HELD[mark] = _Held()
        held = _HELD[mark]
        held.users += 1
    try:
        yield held
    finally:
        with _CHANGED:
            held.users -= 1
            if not held.users:
                del _HELD[mark]
                with suppress(Exception):  # the session was stopped, or its server is gone
                    spark.conf.unset(_MARK)


def _set(spark: SparkSession, held: _Held) -> None:
    asked = {**REQUIRED, **JOINS}
    for name, value in _differing(spark, asked).items():
        before = spark.conf.get(name, None)
        try:
            spark.conf.set(name, asked[name])
        except PySparkException as error:
            rule = (
                f"must be {asked[name]} for a run, and this session does not let it be set "
                f"({error.getCondition() or type(error).__name__}). Got {value}; build the session with "
                f".config('{name}', '{asked[name]}')"
            )
            raise ConfigError([Fault(name, rule)]) from None
        # What refers to another setting is a default, and no value that could be set.
        held.before[name] = None if before is not None and before.startswith("<") else before


def _put_back(spark: SparkSession, held: _Held) -> None:
    for name, value in held.before.items():
        with suppress(Exception):  # the session was stopped, or its server is gone
            if value is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, value)
    held.before.clear()


def _value(spark: SparkSession, name: str) -> str | None:
    try:
        return spark.conf.get(name)
    except PySparkException:
        return None


def whole_rows(frame: DataFrame) -> DataFrame:
    """Return a frame of which all columns are read for every row, whatever columns a query asks for.

    Spark reads only the columns that a query uses. It drops a malformed line of CSV or JSON (``DROPMALFORMED``) or
    fails on it (``FAILFAST``) only if it reads the damaged columns. Without this function, the rows of such a table
    depend on the columns that a stage asks for.

    Parameters
    ----------
    frame : DataFrame
        Left as it is if two columns have one name, which is refused later.
    """
    names = frame.columns
    if not names or len(set(names)) < len(names):
        return frame
    # The condition is always true, but the optimizer does not know it and keeps all columns. ``coalesce`` ends at the
    # first value, so of most rows one length is computed.
    lengths = [F.length(column(name).cast("string")) for name in names]
    return frame.where(F.coalesce(*lengths, F.lit(0)) >= 0)


def whole_rows_if_parsed(frame: DataFrame) -> DataFrame:
    """Return :func:`whole_rows` of a frame of an unknown reader, unless all its files describe themselves.

    Parameters
    ----------
    frame : DataFrame
        Of a catalog, or given by a caller. One that was computed before reads no files any more.
    """
    parsed = any(not urlparse(uri).path.endswith((".parquet", ".orc", ".avro")) for uri in frame.inputFiles())
    return whole_rows(frame) if parsed else frame
