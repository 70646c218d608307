"""Places of runs: what an earlier run may have left there, and what is known of a release that is there."""

from __future__ import annotations

import hashlib
from pathlib import Path
from uuid import uuid4

import pytest

from benchmarks.s3_server import BUCKET
from privrisk_spark.errors import BusyError, ConfigError
from privrisk_spark.runs.local_output import LocalOutput
from privrisk_spark.runs.places import SPARK_LOG, ResultPlace, result_place
from privrisk_spark.runs.vaults import DirectoryVault
from privrisk_spark.runs.workplace import Workplace
from privrisk_spark.storage.temporary import of_this_user


def test_what_a_failed_run_left_keeps_no_later_one_out_and_goes_with_it(tmp_path: Path) -> None:
    place = result_place(str(tmp_path), "assessments")
    place.claim()
    for name in ("report.html", "status.json", ".lock", SPARK_LOG):
        (tmp_path / name).touch()
    place.check()
    with place.held("r2"):
        assert not (tmp_path / SPARK_LOG).exists()


@pytest.fixture(params=["directory", "store"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ResultPlace:
    """A place that is not there yet, of each kind."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    if request.param == "directory":
        return result_place(f"{tmp_path}/place/", "assessments")
    request.getfixturevalue("endpoint")
    return result_place(f"s3a://{BUCKET}/{uuid4().hex}/", "assessments")


def directory(root: Path, **files: str) -> Path:
    for name, text in files.items():
        file = root / "made" / name.replace("__", "/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root / "made"


def test_a_place_takes_what_runs_find_one_after_another(place: ResultPlace, tmp_path: Path) -> None:
    place.check()
    place.check_writable()
    assert place.read("report.html") is None
    assert not place.holds("records")
    with place.held("r1") as scratch:
        place.put_text("report.html", "ä")
        place.put_json("figures.json", {"a": 1})
        place.put_directory(directory(scratch, a="1", below__b="2"), "records")
        left = scratch
    assert not left.exists()
    assert place.read("report.html") == "ä".encode()
    assert place.read("figures.json") == b'{\n  "a": 1\n}\n'
    assert place.holds("records")
    assert [place.read(f"records/{name}") for name in ("a", "below/b")] == [b"1", b"2"]
    place.check()
    with place.held("r2") as scratch:
        place.put_text("report.html", "b")
        place.put_directory(directory(scratch, c="3"), "records")
        assert [place.read(f"records/{name}") for name in "ac"] == [None, b"3"], "nothing of the run before"
        place.put_directory(scratch / "nothing", "records")
        assert not place.holds("records"), "it goes with a run that has none"
    assert place.read("report.html") == b"b"
    assert not list((tmp_path / "temporary").iterdir()), "nothing stays on this machine"


def test_a_place_says_where_it_is(place: ResultPlace) -> None:
    assert place.called("a") == f"{place}/a" == str(place.below("a").location)
    assert place.below("a").read("b") is None
    assert str(place.address) == str(place) == str(place.location)
    assert str(place.status).startswith(str(place))
    assert (place.shared is None) == (not place.location.remote)


def test_one_run_at_a_time_holds_a_place_on_a_machine(place: ResultPlace) -> None:
    with place.held("r1"), pytest.raises(BusyError, match="another run is at work"), place.held("r2"):
        pass


def test_the_private_directory_of_a_store_is_no_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    name = hashlib.sha256(b"s3://bucket/a").hexdigest()[:16]
    of_this_user("privrisk-results", name).symlink_to(tmp_path)
    with (
        pytest.raises(ConfigError, match="where a link is; remove it"),
        result_place("s3://bucket/a", "attacks").held("r1"),
    ):
        pass


def test_the_log_of_a_failed_release_goes_with_the_next(tmp_path: Path) -> None:
    place = Workplace(LocalOutput(tmp_path / "out"), DirectoryVault(tmp_path / "vault"), "r1")
    place.vault.claim()
    (tmp_path / "vault" / SPARK_LOG).touch()
    with place.held():
        assert not (tmp_path / "vault" / SPARK_LOG).exists()


def test_what_was_asked_for_is_known_by_run_id_and_output(tmp_path: Path) -> None:
    """One vault may serve two outputs, which may have releases of one run id."""
    here, there = (
        Workplace(LocalOutput(tmp_path / name), DirectoryVault(tmp_path / "vault"), "r1") for name in ("here", "there")
    )
    assert here.recorded_request() is None
    here.record_request({"decision": "1"})
    assert here.recorded_request() == {"decision": "1"}
    assert there.recorded_request() is None
    assert (
        Workplace(LocalOutput(tmp_path / "here"), DirectoryVault(tmp_path / "vault"), "r2").recorded_request() is None
    )
