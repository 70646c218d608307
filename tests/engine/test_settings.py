"""A run's settings are set and put back, whatever the session has, and a frame stays what its own session made it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException

from privrisk_spark.engine import settings
from privrisk_spark.engine.settings import ENCRYPTION, JOINS, REQUIRED, as_required, check_encryption, differing, fixed
from privrisk_spark.errors import BusyError, ConfigError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOREIGN = {
    "spark.sql.session.timeZone": "Asia/Tokyo",
    "spark.sql.caseSensitive": "false",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "false",
}


class Conf:
    """The settings of a session without Java."""

    def __init__(self, given: dict[str, str], static: tuple[str, ...] = ()) -> None:
        self.given, self.static, self.log = given, static, list[str]()

    def get(self, name: str, *default: str | None) -> Any:
        return self.given.get(name, default[0] if default else None)

    def set(self, name: str, value: str) -> None:
        if name in self.static:
            raise AnalysisException(f"{name} is static")
        self.log.append(name)
        self.given[name] = value

    def unset(self, name: str) -> None:
        self.given.pop(name, None)


def session(given: dict[str, str] | None = None, static: tuple[str, ...] = ()) -> Any:
    return SimpleNamespace(conf=Conf(dict(FOREIGN if given is None else given), static))


def test_settings_are_set_and_put_back_after_an_error_too() -> None:
    spark = session()

    def fail() -> None:
        with as_required(spark):
            assert not differing(spark)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert spark.conf.given == FOREIGN
    assert not settings._HELD


def test_a_session_that_has_them_is_left_alone() -> None:
    spark = session({**REQUIRED, **JOINS})
    with as_required(spark):
        pass
    assert not set(spark.conf.log) & {*REQUIRED, *JOINS}


def test_the_last_of_nested_runs_puts_back_also_by_another_object_of_the_session() -> None:
    spark = session()
    same = SimpleNamespace(conf=spark.conf)
    with as_required(spark):
        with as_required(same):
            assert not differing(spark)
        assert not differing(spark)
    assert spark.conf.given == FOREIGN


def test_runs_that_overlap_in_two_threads_put_back_once() -> None:
    spark = session()
    inside, go = threading.Event(), threading.Event()
    seen = []

    def second() -> None:
        with as_required(spark):
            inside.set()
            go.wait(20)
            seen.append(differing(spark))

    thread = threading.Thread(target=second)
    with as_required(spark):
        thread.start()
        assert inside.wait(20)
    assert not differing(spark)  # the other run is not over
    go.set()
    thread.join(20)
    assert seen == [{}]
    assert spark.conf.given == FOREIGN


@pytest.mark.parametrize("name", [*REQUIRED, *JOINS])
def test_what_cannot_be_set_is_refused_by_name_and_nothing_is_left_changed(name: str) -> None:
    asked = {**REQUIRED, **JOINS}
    given = dict.fromkeys(asked, "another")
    spark = session(given, static=(name,))
    with pytest.raises(ConfigError) as caught, as_required(spark):
        raise AssertionError("it must not run")
    said = str(caught.value)
    assert f"{name}: must be {asked[name]}" in said
    assert f"Got another; build the session with .config('{name}', '{asked[name]}')" in said
    assert spark.conf.given == given
    assert not settings._HELD


def test_a_default_that_refers_to_another_setting_is_unset_again() -> None:
    name = "spark.sql.execution.arrow.pyspark.enabled"
    spark = session(dict(REQUIRED) | {name: "<arrow.enabled>"})
    with as_required(spark):
        assert spark.conf.given[name] == "true"
    assert name not in spark.conf.given


@pytest.mark.parametrize("value", [None, "false"])
def test_keys_travel_only_where_disks_are_encrypted(value: str | None) -> None:
    check_encryption(session({ENCRYPTION: "true"}))
    with pytest.raises(
        ConfigError, match=r"spark\.io\.encryption\.enabled: must be true.*Got false; build the session"
    ):
        check_encryption(session({} if value is None else {ENCRYPTION: value}))


class Frame:
    """Counts how often it is computed, and under which time zone."""

    def __init__(self, spark: Any, columns: tuple[str, ...] = ("a",)) -> None:
        self.sparkSession, self.columns, self.zones = spark, list(columns), list[str]()

    def inputFiles(self) -> list[str]:
        return []

    def localCheckpoint(self, *, eager: bool) -> Frame:
        assert eager
        self.zones.append(self.sparkSession.conf.get("spark.sql.session.timeZone"))
        return self


def test_a_frame_is_computed_by_its_own_settings_only_where_they_differ() -> None:
    frame = Frame(session())
    fixed(frame)  # type: ignore[arg-type]
    assert frame.zones == ["Asia/Tokyo"]
    usual = Frame(session(dict(REQUIRED)))
    fixed(usual)  # type: ignore[arg-type]
    with as_required(usual.sparkSession):
        fixed(usual)  # type: ignore[arg-type]
    assert not usual.zones, "how Spark joins changes no value"
    assert not settings._HELD


def test_a_frame_waits_for_the_run_of_another_thread() -> None:
    spark = session()
    frame = Frame(spark)
    thread = threading.Thread(target=lambda: fixed(frame))  # type: ignore[arg-type]
    with as_required(spark):
        thread.start()
        thread.join(0.3)
        assert thread.is_alive()
        assert not frame.zones
    thread.join(20)
    assert frame.zones == ["Asia/Tokyo"]
    assert spark.conf.given == FOREIGN


def test_a_run_waits_for_a_frame_that_is_computed() -> None:
    spark = session()
    computing, go, order = threading.Event(), threading.Event(), list[str]()

    class Slow(Frame):
        def localCheckpoint(self, *, eager: bool) -> Frame:
            computing.set()
            go.wait(20)
            order.append("computed")
            return super().localCheckpoint(eager=eager)

    frame = Slow(spark)
    first = threading.Thread(target=lambda: fixed(frame))  # type: ignore[arg-type]
    first.start()
    assert computing.wait(20)

    def run() -> None:
        with as_required(spark):
            order.append("ran")

    second = threading.Thread(target=run)
    second.start()
    second.join(0.3)
    assert second.is_alive()
    go.set()
    first.join(20)
    second.join(20)
    assert order == ["computed", "ran"]
    assert frame.zones == ["Asia/Tokyo"]
    assert spark.conf.given == FOREIGN


def test_a_frame_inside_a_run_of_its_own_thread_is_refused_rather_than_waited_for() -> None:
    spark = session()
    with as_required(spark), pytest.raises(BusyError, match=r"this thread is in a run on the frame's session"):
        fixed(Frame(spark))  # type: ignore[arg-type]
    with as_required(session(dict(REQUIRED))):
        pass
    assert spark.conf.given == FOREIGN


def test_columns_that_differ_in_case_alone_are_refused_by_name_where_the_session_cannot_tell() -> None:
    with pytest.raises(ConfigError, match=r"caseSensitive: must be true to tell the columns 'Age', 'age' apart"):
        fixed(Frame(session(), ("Age", "age", "sex")))  # type: ignore[arg-type]
    sensitive = session(FOREIGN | {"spark.sql.caseSensitive": "true"})
    fixed(Frame(sensitive, ("Age", "age")))  # type: ignore[arg-type]
    assert not settings._HELD


# ------------------------------------------------------------------------------------------------ with Spark


@pytest.fixture
def foreign(spark: SparkSession) -> Iterator[SparkSession]:
    before = {name: spark.conf.get(name, None) for name in FOREIGN}
    for name, value in FOREIGN.items():
        spark.conf.set(name, value)
    yield spark
    for name, value in before.items():
        if value is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, value)


def test_spark_takes_and_gives_back_every_setting(foreign: SparkSession) -> None:
    names = [*REQUIRED, *JOINS]
    before = {name: foreign.conf.get(name, None) for name in names}
    with as_required(foreign):
        assert not differing(foreign)
        assert {name: foreign.conf.get(name) for name in JOINS} == JOINS
    assert {name: foreign.conf.get(name, None) for name in names} == before
    assert foreign.conf.get("privrisk.settings", None) is None


def test_a_frame_keeps_what_its_session_made_of_a_csv_file(foreign: SparkSession, tmp_path: Path) -> None:
    """Spark reads a time without a zone when it plans, so a run's own time zone would move it by nine hours."""
    (tmp_path / "table.csv").write_text("at\n2020-01-01 12:00:00\n")
    frame = foreign.read.csv(str(tmp_path / "table.csv"), header=True, schema="at timestamp")
    seconds = "cast(at as long) as s"
    (own,) = (row.s for row in frame.selectExpr(seconds).collect())
    kept = fixed(frame)
    with as_required(foreign):
        (unguarded,) = (row.s for row in frame.selectExpr(seconds).collect())
        (found,) = (row.s for row in kept.selectExpr(seconds).collect())
    assert found == own
    assert unguarded == own + 9 * 3600, "the hazard is gone; so may be the copy"


@pytest.mark.on_spark("the embedded engine writes no temporary file")
def test_encryption_is_what_java_started_with(spark: SparkSession) -> None:
    with pytest.raises(ConfigError, match="Got false"):
        check_encryption(spark)
    with pytest.raises(AnalysisException):
        spark.conf.set(ENCRYPTION, "true")
