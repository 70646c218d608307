"""A session of our own: encrypted, and with a directory of its own; one that is there: refused or warned of."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from privrisk_spark.engine import session, settings
from privrisk_spark.errors import ConfigError
from privrisk_spark.storage.local_directory import PREFIX


class Builder:
    """In place of a session's builder: keeps what it is told, and where Java would write."""

    def __init__(self) -> None:
        self.settings: dict[str, str] = {}
        self.local: str | None = None

    def appName(self, _: str) -> Builder:
        return self

    def config(self, name: str, value: str) -> Builder:
        self.settings[name] = value
        return self

    def getOrCreate(self) -> Builder:
        self.local = os.environ.get("SPARK_LOCAL_DIRS")
        return self


@pytest.fixture
def builder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Builder]:
    builder = Builder()
    monkeypatch.setattr(session, "SparkSession", SimpleNamespace(builder=builder))
    for name in ("SPARK_REMOTE", "SPARK_ENV_LOADED", "SPARK_LOCAL_DIRS", "SPARK_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    session._local_directory.cache_clear()
    yield builder
    session._local_directory().remove()
    session._local_directory.cache_clear()


@pytest.mark.parametrize("given", [None, "a,b"])
def test_a_local_session_writes_to_a_directory_of_its_own(
    builder: Builder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, given: str | None
) -> None:
    places = [str(tmp_path)]
    if given is not None:
        places = [str(tmp_path / name) for name in given.split(",")]
        monkeypatch.setenv("SPARK_LOCAL_DIRS", ",".join(places))
    session.build("test", engine="spark")
    assert builder.local is not None
    own = builder.local.split(",")
    assert [str(Path(path).parent) for path in own] == places
    assert all(Path(path).name.startswith(PREFIX) for path in own)
    configuration = Path(own[0]) / "log4j2.properties"
    assert builder.settings["spark.driver.defaultJavaOptions"] == (
        f'"-Djava.io.tmpdir={own[0]}" "-Dlog4j2.configurationFile={configuration}"'
    )
    assert f"appender.file.fileName = {own[0]}/spark.log" in configuration.read_text()
    assert session.own_log() is None
    (Path(own[0]) / "spark.log").touch()
    assert session.own_log() == Path(own[0]) / "spark.log"
    assert builder.settings[settings.ENCRYPTION] == "true"
    assert builder.settings["spark.network.timeout"] == "604800s", "a laptop may sleep"
    assert os.environ.get("SPARK_LOCAL_DIRS") == (None if given is None else ",".join(places))


def test_who_configures_spark_configures_its_log(builder: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_CONF_DIR", "/etc/spark")
    session.build("test", engine="spark")
    assert "log4j2" not in builder.settings["spark.driver.defaultJavaOptions"]


@pytest.mark.parametrize(("name", "value"), [("SPARK_ENV_LOADED", "1"), ("SPARK_REMOTE", "sc://x")])
def test_elsewhere_the_cluster_says_where(
    builder: Builder, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    session.build("test")
    assert builder.local is None
    assert "spark.driver.defaultJavaOptions" not in builder.settings
    assert "spark.network.timeout" not in builder.settings, "a cluster's executors can be lost"
    assert (settings.ENCRYPTION in builder.settings) == (name == "SPARK_ENV_LOADED")


EMBEDDED, LOCAL, GIVEN = "embedded", "local", "given"


@pytest.mark.parametrize(
    ("environment", "installed", "asked", "built"),
    [
        ({}, True, "auto", EMBEDDED),
        ({}, False, "auto", LOCAL),
        ({}, True, "spark", LOCAL),
        ({}, True, "embedded", EMBEDDED),
        ({"PYSPARK_SUBMIT_ARGS": "--master spark://x pyspark-shell"}, True, "auto", LOCAL),
        ({"SPARK_HOME": "{home}"}, True, "auto", LOCAL),
        ({"SPARK_HOME": "{home}"}, True, "spark", LOCAL),
        ({"SPARK_ENV_LOADED": "1"}, True, "auto", GIVEN),
        ({"SPARK_REMOTE": "sc://x"}, True, "auto", GIVEN),
        ({"SPARK_REMOTE": "sc://x"}, True, "spark", GIVEN),
    ],
)
def test_build_engine_is_the_asked_or_the_first_that_applies(
    builder: Builder,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    environment: dict[str, str],
    installed: bool,
    asked: session.Engine,
    built: str,
) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text("# spark.master local\nspark.master   spark://x:7077\n")
    for name in ("PYSPARK_SUBMIT_ARGS", "SPARK_HOME", "MASTER"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value.format(home=tmp_path))
    monkeypatch.setattr(session, "is_installed", lambda: installed)
    monkeypatch.setattr(session, "build_embedded", lambda name, settings: (name, settings))
    found = session.build("test", engine=asked)
    if built == EMBEDDED:
        assert found == ("test", {**settings.REQUIRED, **settings.JOINS})
    else:
        assert found is builder
        assert (builder.local is not None) == (built == LOCAL)


@pytest.mark.parametrize(
    ("environment", "installed", "said"),
    [
        ({}, False, r"run\.engine: the embedded engine is not installed\. Fix: pip install"),
        ({"SPARK_REMOTE": "sc://x"}, True, r"run\.engine: must be auto or spark"),
        ({"SPARK_ENV_LOADED": "1"}, True, r"run\.engine: must be auto or spark"),
    ],
)
def test_build_embedded_engine_that_is_impossible_is_an_error(
    builder: Builder, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], installed: bool, said: str
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(session, "is_installed", lambda: installed)
    with pytest.raises(ConfigError, match=said):
        session.build("test", engine="embedded")
    assert not builder.settings


def test_asked_engine_variable_overrides_the_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(session.ENGINE, raising=False)
    assert session.asked_engine("spark") == "spark"
    monkeypatch.setenv(session.ENGINE, "embedded")
    assert session.asked_engine("spark") == "embedded"
    monkeypatch.setenv(session.ENGINE, "auto")
    assert session.asked_engine("spark") == "auto", "--engine auto overrides a policy, too"
    monkeypatch.setenv(session.ENGINE, "sail")
    with pytest.raises(ConfigError, match=r"PRIVRISK_ENGINE: must be one of .*embedded.* Got 'sail'"):
        session.asked_engine("auto")


def test_held_session_of_another_engine_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    spark = SimpleNamespace(conf=SimpleNamespace(get=lambda *_: "true"))
    monkeypatch.setattr(session, "existing", lambda: spark)
    said = r"run\.engine: must be auto, or the engine of the session"
    with pytest.raises(ConfigError, match=said), session.held(None, "t", encrypt=False, engine="embedded"):
        pass


@pytest.mark.parametrize("keys_travel", [False, True])
@pytest.mark.parametrize("value", [None, "false", "true"])
def test_a_session_that_does_not_encrypt_is_refused_for_keys_and_else_warned_of(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, value: str | None, keys_travel: bool
) -> None:
    spark = SimpleNamespace(conf=SimpleNamespace(get=lambda *_: value))
    monkeypatch.setattr(session, "existing", lambda: spark)
    monkeypatch.setattr(session, "check_encryption", settings.check_encryption)
    monkeypatch.setattr(session, "encrypts", settings.encrypts)

    @contextmanager
    def required(_: Any) -> Iterator[None]:
        yield

    monkeypatch.setattr(session, "as_required", required)
    monkeypatch.setattr(logging.getLogger("privrisk_spark"), "propagate", True)
    if keys_travel and value != "true":
        with pytest.raises(ConfigError, match=settings.ENCRYPTION), session.held(None, "t", encrypt=True):
            pass
        return
    with session.held(None, "t", encrypt=keys_travel):
        pass
    warned = {record.getMessage() for record in caplog.records}
    assert len(warned) == (value != "true")
    assert all(settings.ENCRYPTION in line for line in warned)
