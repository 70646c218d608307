"""A release is what was published, to the byte, or it is refused."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from privrisk_spark.errors import CheckError, EngineError
from privrisk_spark.runs.local_output import LocalOutput
from privrisk_spark.runs.sealing import release_digest, sealed
from privrisk_spark.runs.vaults import DirectoryVault
from privrisk_spark.runs.workplace import Workplace


def published(tmp_path: Path) -> tuple[Workplace, dict[str, Any]]:
    place = Workplace(LocalOutput(tmp_path / "out"), DirectoryVault(tmp_path / "vault"), "r1")
    with place.held():
        data = place.staging / "data"
        data.mkdir()
        (data / "part-00000.csv").write_text("a\n1\n")
        (place.staging / "report.html").write_text("<p>")
        (place.staging / "checks.json").write_text("[]")
        files = [{"name": "part-00000.csv", "bytes": 4, "sha256": hashlib.sha256(b"a\n1\n").hexdigest()}]
        stated = {"run_id": "r1", "date": "2026-01-31", "data": {"files": files}, "levels": {1: 0.1}}
        manifest = sealed(stated, place.staging)
        return place, place.commit(manifest)


def test_a_manifest_names_every_file_and_its_digest_survives_being_read(tmp_path: Path):
    place, manifest = published(tmp_path)
    assert [entry["name"] for entry in manifest["documents"]] == ["checks.json", "report.html"]
    found = place.published()
    assert found == json.loads(json.dumps(manifest))
    assert release_digest(found) == release_digest(manifest)
    assert release_digest({**manifest, "sequence": 9}) == release_digest(manifest), "its number says nothing of it"
    assert release_digest({**manifest, "run_id": "r2"}) != release_digest(manifest)


CHANGES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "altered": (lambda at: (at / "data/part-00000.csv").write_text("a\n2\n"), "'data/part-00000.csv' is not the file"),
    "cut": (lambda at: (at / "data/part-00000.csv").write_text("a\n"), "'data/part-00000.csv' is not the file"),
    "lost": (lambda at: (at / "data/part-00000.csv").unlink(), "'data/part-00000.csv' is missing"),
    "extended": (lambda at: (at / "data/part-00001.csv").write_text("a\n3\n"), "'data/part-00001.csv' was added"),
    "hidden": (lambda at: (at / "data/.part").write_text(""), "'data/.part' was added"),
    "a report of somebody": (lambda at: (at / "report.html").write_text("<b>"), "'report.html' is not the file"),
    "a document lost": (lambda at: (at / "checks.json").unlink(), "'checks.json' is missing"),
    "a document more": (lambda at: (at / "notes.txt").write_text("x"), "'notes.txt' was added"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_release_that_was_changed_is_not_believed(tmp_path: Path, name: str):
    place, _ = published(tmp_path)
    change, message = CHANGES[name]
    change(Path(place.target.path))
    with pytest.raises(CheckError, match=message) as caught:
        place.published()
    assert caught.value.exit_code == 1
    assert str(Path(place.target.path)) in str(caught.value)


def test_what_cannot_be_read_is_an_engine_error(tmp_path: Path):
    place, _ = published(tmp_path)
    (Path(place.target.path) / "report.html").unlink()
    (Path(place.target.path) / "report.html").symlink_to("nowhere")
    with pytest.raises(EngineError, match="cannot be read"):
        place.published()


def test_a_release_of_an_earlier_version_is_held_against_what_it_says(tmp_path: Path):
    """Its manifest names data files alone."""
    place, manifest = published(tmp_path)
    old = {name: value for name, value in manifest.items() if name != "documents"}
    (Path(place.target.path) / "manifest.json").write_text(json.dumps(old))
    (Path(place.target.path) / "report.html").write_text("<b>")
    assert place.published() == json.loads(json.dumps(old))
    (Path(place.target.path) / "data" / "part-00000.csv").write_text("a\n2\n")
    with pytest.raises(CheckError):
        place.published()


def test_times_of_public_files_tell_the_business_date_alone(tmp_path: Path) -> None:
    """When a file was written, and how long a stage took, depends on the table."""
    place, _ = published(tmp_path)
    seconds = dt.datetime(2026, 1, 31, tzinfo=dt.UTC).timestamp()
    root, target = tmp_path / "out", Path(place.target.path)
    public = [root / "manifest.json", root / "releases", *target.rglob("*"), target]
    assert len(public) >= 8
    assert {path.stat().st_mtime for path in public} == {seconds}
    # A run that died before the root's manifest: whoever finds the release puts it there, with the same time.
    (tmp_path / "out" / "manifest.json").unlink()
    assert place.published()
    assert (tmp_path / "out" / "manifest.json").stat().st_mtime == seconds
