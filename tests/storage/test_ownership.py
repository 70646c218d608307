"""Places are used if they are new, empty or marked; all others stay as they are."""

from __future__ import annotations

import stat
from pathlib import Path
from uuid import uuid4

import pytest

from benchmarks.s3_server import BUCKET
from privrisk_spark.errors import BusyError, PlaceError
from privrisk_spark.storage import ownership
from privrisk_spark.storage.locations import Location
from privrisk_spark.storage.locks import locked
from privrisk_spark.storage.objects import ObjectStore
from privrisk_spark.storage.ownership import MARKER, claim, refuse_foreign


@pytest.fixture(params=["directory", "store"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Location:
    """A place that does not exist, on a disk or in a store."""
    if request.param == "directory":
        return Location("file", "", str(tmp_path / "place"))
    request.getfixturevalue("endpoint")
    return Location("s3", BUCKET, uuid4().hex)


def put(place: Location, name: str, content: bytes = b"mine") -> None:
    if place.remote:
        ObjectStore(place).write(name, content)
        return
    file = Path(place.path, name)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)


def test_claim_new_place_is_accepted_again_by_its_kind_only(place: Location) -> None:
    refuse_foreign(place, "output.vault", "vault")
    claim(place, "output.vault", "vault")
    put(place, "summary.json")
    claim(place, "output.vault", "vault")
    with pytest.raises(PlaceError, match=r"^output\.path: has other content than the releases .* holds the vault of"):
        claim(place, "output.path", "releases")


@pytest.mark.parametrize("name", ["report.html", "classes/part-0.parquet", ".staging-mine/a"])
def test_claim_place_with_a_file_without_a_marker_raises(place: Location, name: str) -> None:
    put(place, name)
    for refuse in (refuse_foreign, claim):
        with pytest.raises(PlaceError, match=rf"^--output: has other content .* no file '\{MARKER}'.*{place}"):
            refuse(place, "--output", "assessments")


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"kind": 1}', b"\xff"])
def test_claim_place_with_a_damaged_marker_raises(place: Location, content: bytes) -> None:
    put(place, MARKER, content)
    with pytest.raises(PlaceError, match="has other content"):
        claim(place, "--output", "assessments")


def test_claim_of_a_stopped_run_is_continued(place: Location) -> None:
    """Whatever was written before the marker makes no place foreign."""
    put(place, ownership.probe_name("a1") if place.remote else f".{MARKER}.4711")
    claim(place, "--output", "assessments")
    claim(place, "--output", "assessments")


def test_claim_root_of_an_empty_file_system_is_accepted(tmp_path: Path) -> None:
    (tmp_path / "lost+found").mkdir()
    claim(Location("file", "", str(tmp_path)), "output.vault", "vault")


@pytest.mark.parametrize(("public", "directory", "file"), [(True, 0o755, 0o644), (False, 0o700, 0o600)])
def test_claim_marker_has_the_rights_of_its_place(tmp_path: Path, public: bool, directory: int, file: int) -> None:
    made = tmp_path / "made"
    claim(Location("file", "", str(made)), "output.path", "releases", public=public)
    assert [stat.S_IMODE(one.stat().st_mode) for one in (made, made / MARKER)] == [directory, file]
    assert ((made / MARKER).stat().st_mtime == 0) == public, "no reader learns when the first run began"


def test_claim_of_a_directory_that_another_run_marks_raises_busy(tmp_path: Path) -> None:
    """The other run would remove the draft of the marker."""
    place = Location("file", "", str(tmp_path))
    with locked(tmp_path, "out"), pytest.raises(BusyError, match="another run is at work"):
        claim(place, "out", "release")
    claim(place, "out", "release")
    with locked(tmp_path, "out"):
        claim(place, "out", "release")


def test_claim_without_make_leaves_a_missing_directory_missing(tmp_path: Path) -> None:
    claim(Location("file", "", str(tmp_path / "new")), "output.vault", "vault", make=False)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("path", ["file", "file/below"])
def test_refuse_foreign_file_in_the_way_raises(tmp_path: Path, path: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(PlaceError, match=r"output\.vault: must be a directory; there is a file in the way"):
        refuse_foreign(Location("file", "", str(tmp_path / path)), "output.vault", "vault")
