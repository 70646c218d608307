from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from privrisk_spark.cli import app
from privrisk_spark.engine.fast import class_archive
from privrisk_spark.engine.fast.class_archive import ClassArchive
from privrisk_spark.errors import EngineError


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ClassArchive:
    """Where archives of a made-up Java and Spark lie; there are none yet."""
    for name in ("SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    for path in ("java/bin/java", "java/release", "spark/jars/a.jar", "spark/jars/b.jar"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("x")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "spark"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    found = class_archive.located()
    assert found is not None
    return found


def recording(fails: bool = False, between: Path | None = None) -> Any:
    """In place of the run whose Java writes archives: does as it would."""

    def run(command: list[str], *, env: dict[str, str], cwd: Path, **_: Any) -> subprocess.CompletedProcess[str]:
        if "synthesize" in command:
            return subprocess.CompletedProcess(command, 0, "", "")
        assert (cwd / "policy.yaml").exists()
        for name in ("SPARK_SUBMIT_OPTS", "SPARK_LAUNCHER_OPTS"):
            (option,) = (one for one in env[name].split() if one.startswith("-XX:ArchiveClassesAtExit="))
            if not fails:
                Path(option.split("=")[1]).write_text(f"classes of {name}")
        if between is not None:
            between.mkdir()
            (between / "spark.jsa").write_text("another's")
        return subprocess.CompletedProcess(command, int(fails), "", "stage 1\nprivrisk: it failed\n")

    return run


def test_archives_are_found_once_they_are_made(archive: ClassArchive, monkeypatch: pytest.MonkeyPatch) -> None:
    assert class_archive.stored() is None
    monkeypatch.setattr(subprocess, "run", recording())
    for _ in range(2):  # the second takes the place of the first
        class_archive.make(archive)
        assert class_archive.stored() == archive
        assert archive.spark.read_text() == "classes of SPARK_SUBMIT_OPTS"
        assert sorted(path.name for path in archive.directory.iterdir()) == ["launcher.jsa", "seal.json", "spark.jsa"]
        assert list(archive.directory.parent.iterdir()) == [archive.directory]
    assert f"-XX:SharedArchiveFile={archive.spark} " in class_archive.using(archive.spark)


def test_a_run_that_fails_leaves_nothing(archive: ClassArchive, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", recording(fails=True))
    with pytest.raises(EngineError, match=r"stored: it failed$"):
        class_archive.make(archive)
    assert list(archive.directory.parent.iterdir()) == []


def test_archives_made_meanwhile_by_another_process_are_replaced(
    archive: ClassArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subprocess, "run", recording(between=archive.directory))
    class_archive.make(archive)
    assert class_archive.stored() == archive


@pytest.mark.parametrize("name", ["spark.jsa", "launcher.jsa", "seal.json"])
@pytest.mark.parametrize("harm", ["cut", "rewritten", "gone"])
def test_a_damaged_archive_is_not_used(
    archive: ClassArchive, monkeypatch: pytest.MonkeyPatch, name: str, harm: str
) -> None:
    monkeypatch.setattr(subprocess, "run", recording())
    class_archive.make(archive)
    file = archive.directory / name
    content = file.read_text()
    if harm == "gone":
        file.unlink()
    else:
        file.write_text(content[: len(content) // 2] if harm == "cut" else "?" * len(content))
        os.utime(file, ns=(0, 0))
    assert class_archive.stored() is None


def test_an_archive_others_could_have_written_is_not_used(
    archive: ClassArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subprocess, "run", recording())
    class_archive.make(archive)
    archive.directory.chmod(0o770)
    assert class_archive.stored() is None


def test_what_differs_has_its_own_archive(
    archive: ClassArchive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subprocess, "run", recording())
    class_archive.make(archive)
    os.utime(tmp_path / "spark" / "jars" / "a.jar", ns=(1, 1))  # installed again: Java would not take the archive
    other = class_archive.located()
    assert other is not None
    assert other != archive
    assert class_archive.stored() is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SPARK_SUBMIT_OPTS", "-Xmx1g"),
        ("JAVA_TOOL_OPTIONS", "-XX:+UseG1GC"),
        ("XDG_CACHE_HOME", "/tmp/a b"),
        ("JAVA_HOME", "/nowhere"),
        ("SPARK_HOME", "/nowhere"),
    ],
)
def test_where_no_archive_can_be_used_none_is_looked_for(
    archive: ClassArchive, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    assert class_archive.located() is None
    result = CliRunner().invoke(app.app, ["prepare-java"])
    assert result.exit_code == EngineError.exit_code
    assert "cannot be stored" in result.output


def test_a_cache_that_cannot_be_written_is_an_error_of_the_command_alone(
    archive: ClassArchive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cache").write_text("not a directory")
    assert class_archive.stored() is None
    result = CliRunner().invoke(app.app, ["prepare-java"])
    assert result.exit_code == EngineError.exit_code
    assert "cannot be written" in result.output


def test_the_command_says_where_the_archives_are(archive: ClassArchive, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", recording())
    result = CliRunner().invoke(app.app, ["prepare-java"])
    assert result.exit_code == 0
    assert str(archive.directory) in result.output.replace("\n", "")
    assert json.loads(archive.seal.read_text()) == archive.facts()
