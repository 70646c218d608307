"""What only saves seconds is off unless it is asked for, by one setting."""

from __future__ import annotations

import gc
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from privrisk_spark.engine import fast, session, source_files
from privrisk_spark.engine.fast import class_archive, local, start
from privrisk_spark.errors import ConfigError
from privrisk_spark.policy.dictionaries import Table


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PRIVRISK_FAST", "SPARK_LAUNCHER_OPTS", "SPARK_REMOTE", "SPARK_ENV_LOADED"):
        monkeypatch.setenv(name, "")  # put back at the end, whatever is set meanwhile
        monkeypatch.delenv(name)


@pytest.mark.parametrize("value", ["", "0", "false", "no"])
def test_everything_is_off_by_default(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("PRIVRISK_FAST", value)
    assert not any(fast.on(trick) for trick in fast.TRICKS)
    assert local.settings(local=True) == {}
    assert "SPARK_LAUNCHER_OPTS" not in os.environ


def test_one_setting_turns_everything_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(class_archive, "stored", lambda: None)
    fast.ask()
    assert os.environ["PRIVRISK_FAST"] == "1"
    assert all(fast.on(trick) for trick in fast.TRICKS)
    here = local.settings(local=True)
    assert here["spark.python.daemon.module"] == "privrisk_spark.engine.fast.worker_daemon"
    assert here["spark.driver.extraJavaOptions"] == class_archive.OPTIONS == os.environ["SPARK_LAUNCHER_OPTS"]
    # A session spark-submit prepared: its Java runs, its workers are not of this machine.
    assert all(name.startswith("spark.executorEnv.") for name in local.settings(local=False))


def test_java_that_reads_many_rows_compiles_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(class_archive, "stored", lambda: None)
    fast.ask()
    reading = local.settings(local=True, reads=True)
    assert reading["spark.driver.extraJavaOptions"] == class_archive.READING_OPTIONS
    assert "Tiered" not in class_archive.READING_OPTIONS
    assert os.environ["SPARK_LAUNCHER_OPTS"] == class_archive.OPTIONS
    others = local.settings(local=True)
    assert {name for name in others if others[name] != reading[name]} == {"spark.driver.extraJavaOptions"}


def test_java_reads_much_where_tasks_do_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_files, "MUCH", 20)
    for name, size in (("a", 12), ("b", 8)):
        (tmp_path / f"{name}.csv").write_bytes(bytes(size))
    few, more = (Table(path=str(tmp_path / f"{name}.csv"), format="csv") for name in "ab")
    assert source_files.much_for_java([few, more])
    assert source_files.much_for_java([Table(path=str(tmp_path), format="csv")])
    assert not source_files.much_for_java([few])
    assert not source_files.much_for_java([])
    assert source_files.much_for_java([Table(catalog="lake.people")])
    assert source_files.much_for_java([Table(path="hdfs://host/people", format="orc")])
    assert source_files.much_for_java([Table(path=str(tmp_path), options={"mergeSchema": True})])
    for by_tasks in (Table(path=str(tmp_path)), Table(path=str(tmp_path), format="delta")):
        assert not source_files.much_for_java([by_tasks])


def test_one_trick_can_be_measured_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRIVRISK_FAST", "workers, collector")
    assert [trick for trick in fast.TRICKS if fast.on(trick)] == ["workers", "collector"]
    fast.ask()  # --fast does not widen it
    assert not fast.on("java")
    monkeypatch.setenv("PRIVRISK_FAST", "workers,turbo")
    with pytest.raises(ConfigError, match="PRIVRISK_FAST: must be 1, 0, or names among java, classes"):
        fast.on("java")


class Builder:
    """In place of a session's builder: keeps what it is told."""

    def __init__(self) -> None:
        self.settings: dict[str, str] = {}

    def appName(self, _: str) -> Builder:
        return self

    def config(self, name: str, value: str) -> Builder:
        self.settings[name] = value
        return self

    def getOrCreate(self) -> Builder:
        return self


def built(monkeypatch: pytest.MonkeyPatch, **environment: str) -> dict[str, str]:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(session, "SparkSession", SimpleNamespace(builder=Builder()))
    monkeypatch.setattr(class_archive, "stored", lambda: None)
    made: Any = session.build("test")
    return dict(made.settings)


def tricks_of(settings: dict[str, str]) -> set[str]:
    return {name for name in settings if "daemon" in name or "extraJava" in name or "executorEnv" in name}


@pytest.mark.parametrize("where", [{}, {"SPARK_ENV_LOADED": "1"}, {"SPARK_REMOTE": "sc://x"}])
def test_no_session_gets_anything_unasked(monkeypatch: pytest.MonkeyPatch, where: dict[str, str]) -> None:
    assert not tricks_of(built(monkeypatch, **where))


def test_a_session_gets_what_is_asked_for_where_it_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(tricks_of(built(monkeypatch, PRIVRISK_FAST="1"))) == 6
    assert len(tricks_of(built(monkeypatch, PRIVRISK_FAST="1", SPARK_ENV_LOADED="1"))) == 4
    assert not tricks_of(built(monkeypatch, PRIVRISK_FAST="1", SPARK_REMOTE="sc://x"))


def test_garbage_is_looked_for_again_after_a_start(monkeypatch: pytest.MonkeyPatch) -> None:
    called, spark = [], object()
    monkeypatch.setattr(start, "collect_nothing", called.append)
    frozen = gc.get_freeze_count()
    with start.started(lambda: spark, lambda: called.append("prepared")) as found:  # type: ignore[arg-type,return-value]
        assert found is spark
    assert not called
    assert gc.isenabled()
    assert gc.get_freeze_count() == frozen
    monkeypatch.setenv("PRIVRISK_FAST", "1")
    try:
        with start.started(lambda: spark, lambda: called.append("prepared")) as found:  # type: ignore[arg-type,return-value]
            assert found is spark
        assert set(called) == {"prepared", spark}
        assert gc.isenabled()
        assert gc.get_freeze_count() > frozen
    finally:
        gc.unfreeze()


def test_a_start_that_fails_leaves_the_collector_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRIVRISK_FAST", "collector")

    def fail() -> Any:
        raise OSError

    with pytest.raises(OSError), start.started(fail):  # noqa: PT011 - of the test itself
        raise AssertionError
    assert gc.isenabled()


def test_the_option_of_a_command_is_the_setting() -> None:
    from typer.testing import CliRunner

    from privrisk_spark.cli.app import app

    ran = CliRunner().invoke(app, ["release", "nowhere.yaml", "--fast"])
    assert ran.exit_code == 2
    assert os.environ.get("PRIVRISK_FAST") == "1"
