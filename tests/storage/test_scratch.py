"""What a killed run left in a store is removed by the next run in its place, and nothing else is."""

from __future__ import annotations

import logging
from pathlib import Path
from uuid import uuid4

import pytest

from benchmarks.s3_server import BUCKET
from privrisk_spark.storage.locations import Location
from privrisk_spark.storage.objects import ObjectStore
from privrisk_spark.storage.scratch import clear, forget_store, note_store, sweep


def left_behind(place: Path, name: str, location: Location) -> Path:
    """What a run leaves that is killed at work: its directory, and two parts in the store."""
    directory = place / f".scratch-{name}"
    directory.mkdir()
    note_store(directory, location)
    (directory / "part").write_bytes(b"1")
    store = ObjectStore(location)
    for part in ("encoded/a", "counts/b"):
        (place / "draft").write_bytes(b"values")
        store.upload(part, place / "draft")
    return directory


def test_the_next_run_in_the_place_removes_what_a_dead_one_left_here_and_in_the_store(
    endpoint: str, tmp_path: Path
) -> None:
    assert endpoint
    shared = Location("s3", BUCKET, uuid4().hex)
    place, another = tmp_path / "vault", tmp_path / "another"
    place.mkdir()
    another.mkdir()
    left_behind(place, "r1~aa", shared.below("scratch-r1~aa"))
    # Of another place, which may be at work under the same run id; and one whose name only begins alike.
    left_behind(another, "r1~bb", shared.below("scratch-r1~bb"))
    left_behind(another, "r1~aab", shared.below("scratch-r1~aab"))
    plain = place / ".scratch-r0~cc"
    plain.mkdir()
    (place / "summary.json").write_text("{}")
    sweep(place)
    assert {path.name for path in place.iterdir()} == {"summary.json", "draft"}
    found = {entry.name.partition("/")[0] for entry in ObjectStore(shared).entries()}
    assert found == {"scratch-r1~bb", "scratch-r1~aab"}
    assert len(list(another.glob(".scratch-*"))) == 2


@pytest.mark.parametrize("noted", ["ftp://x/y", "s3://bucket-that-is-not-there/scratch-r1~aa"])
def test_what_a_store_does_not_remove_is_named_and_tried_again(
    endpoint: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, noted: str
) -> None:
    assert endpoint
    monkeypatch.setattr("privrisk_spark.storage.scratch._PATIENCE", 1.0)
    directory = tmp_path / ".scratch-r1~aa"
    directory.mkdir()
    (directory / ".in-store").write_text(noted)
    with caplog.at_level(logging.WARNING):
        sweep(tmp_path)
    assert f"'{noted}', which an earlier run left, could not be removed" in caplog.text
    assert (directory / ".in-store").read_text() == noted


@pytest.mark.parametrize("noted", ["above", "another", "file", "no text"])
def test_a_damaged_note_removes_nothing(
    endpoint: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, noted: str
) -> None:
    """And ends no run, which has nothing to do with it."""
    assert endpoint
    shared = Location("s3", BUCKET, uuid4().hex)
    left_behind(tmp_path, "r1~aa", shared.below("scratch-r1~aa"))
    texts = {
        "above": str(shared),
        "another": f"{shared}/scratch-r1~a",
        "file": f"{tmp_path}/scratch-r1~aa",
        "no text": "\udcff",
    }
    (tmp_path / ".scratch-r1~aa" / ".in-store").write_text(texts[noted], errors="surrogateescape")
    with caplog.at_level(logging.WARNING):
        sweep(tmp_path)
    assert "could not be removed" in caplog.text
    assert (tmp_path / ".scratch-r1~aa" / "part").exists()
    assert len(list(ObjectStore(shared).entries())) == 2


def test_a_link_is_not_followed_to_the_directory_of_another_run(endpoint: str, tmp_path: Path) -> None:
    assert endpoint
    shared = Location("s3", BUCKET, uuid4().hex)
    place, another = tmp_path / "vault", tmp_path / "another"
    place.mkdir()
    another.mkdir()
    live = left_behind(another, "r1~aa", shared.below("scratch-r1~aa"))
    (place / ".scratch-r1~aa").symlink_to(live)
    sweep(place)
    assert len(list(ObjectStore(shared).entries())) == 2
    assert (live / "part").exists()


def test_at_its_end_a_run_leaves_the_note_of_a_store_that_holds_something_yet(endpoint: str, tmp_path: Path) -> None:
    assert endpoint
    shared = Location("s3", BUCKET, uuid4().hex)
    directory = left_behind(tmp_path, "r1~aa", shared.below("scratch-r1~aa"))
    (directory / "counts").mkdir()
    (directory / "counts" / "c").write_bytes(b"2")
    clear(directory)
    assert [path.name for path in directory.iterdir()] == [".in-store"]
    sweep(tmp_path)
    assert not list(ObjectStore(shared).entries())
    assert not directory.exists()
    directory = left_behind(tmp_path, "r2~aa", shared.below("scratch-r2~aa"))
    forget_store(directory)
    clear(directory)
    assert not directory.exists()
