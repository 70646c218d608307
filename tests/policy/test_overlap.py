"""Places as the system knows them: schemes, patterns and links are seen through."""

from __future__ import annotations

from pathlib import Path

import pytest

from privrisk_spark.policy.overlap import overlapping, places_read
from privrisk_spark.storage.locations import Location, locate


def local_places(path: str) -> list[Path]:
    places = places_read(path)
    assert not any(place.remote for place in places)
    return [Path(place.path) for place in places]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path.resolve()
    (root / "real" / "deep").mkdir(parents=True)
    (root / "real" / "deep" / "file").touch()
    (root / "elsewhere").mkdir()
    (root / "link").symlink_to(root / "real")
    (root / "real" / "out").symlink_to(root / "elsewhere")
    return root


@pytest.mark.parametrize(
    ("written", "named"),
    [
        ("{}/real/deep", "real/deep"),
        ("file:{}/real/deep", "real/deep"),
        ("file://{}/real/deep", "real/deep"),
        ("{}/link/deep", "real/deep"),
        ("{}/real/deep/f*", "real/deep/file"),
        ("{}/link/d[a-z]ep", "real/deep"),
        ("file:{}/real/{{deep,other}}/x", "real"),
        ("file:{}/real/d*/{{file,other}}", "real/deep"),
        ("{}/real/not there", "real/not there"),
        ("file:{}/real/not%20there", "real/not there"),
    ],
)
def test_the_place_a_path_names(tree: Path, written: str, named: str) -> None:
    assert local_places(written.format(tree))[0] == tree / named


def test_links_in_a_directory_lead_elsewhere(tree: Path) -> None:
    assert local_places(str(tree / "real")) == [tree / "real", tree / "elsewhere"]
    assert set(local_places(f"{tree}/re*")) == {tree / "real", tree / "elsewhere"}


def test_a_pattern_stands_for_what_it_matches_and_not_for_what_lies_beside_it(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A newcomer's directory: tables, and the output beside them."""
    monkeypatch.chdir(tree / "real" / "deep")
    (tree / "real" / "deep" / "a.csv").touch()
    read = local_places("*.csv")
    assert read == [tree / "real" / "deep" / "a.csv"]
    release = locate(str(tree / "real" / "deep" / "release"), key="output.path")
    assert not list(overlapping({"output.path": release}, "table.path", places_read("*.csv")))
    assert local_places("*.none") == []


def test_a_name_with_a_pattern_s_letters_that_is_there_is_that(tree: Path) -> None:
    (tree / "a[1]").mkdir()
    assert local_places(str(tree / "a[1]")) == [tree / "a[1]"]


@pytest.mark.parametrize("path", ["dbfs://host/x", "http://host/x", "s3a:///x"])
def test_what_nothing_is_written_to_has_no_place(path: str) -> None:
    assert places_read(path) == []


@pytest.mark.parametrize(
    ("read", "written", "overlaps"),
    [
        ("s3a://bucket/lake/table", "s3://bucket/lake/table/out", True),
        ("s3://bucket/lake/table", "s3://bucket/lake/table", True),
        ("s3://bucket/lake/table/part.parquet", "s3://bucket/lake", True),
        ("s3://bucket/lake/table", "s3://bucket/lake/tables", False),
        ("s3://bucket/lake", "s3://other/lake", False),
        ("s3://bucket/lake", "gs://bucket/lake", False),
        ("s3://bucket/lake/2026-*/part", "s3://bucket/lake/2027", True),
        ("s3://bucket/lake/ta?le", "s3://bucket/lake/table", True),
        ("s3://bucket/lake/{a,b}", "s3://bucket/other", False),
        ("s3a://key:secret@bucket/lake", "s3://bucket/lake/out", True),
        ("abfss://container@account.dfs.core.windows.net/lake", "az://container/lake/out", True),
        ("wasbs://container@account/lake", "az://other/lake/out", False),
    ],
)
def test_prefixes_of_object_stores_are_seen_through_their_spellings(read: str, written: str, overlaps: bool) -> None:
    place = locate(written, key="output.path")
    assert bool(list(overlapping({"output.path": place}, "table.path", places_read(read)))) == overlaps


def test_one_in_the_other_overlaps_and_neighbours_do_not() -> None:
    a, inside, beside = (Location("file", "", path) for path in ("/a/b", "/a/b/c", "/a/bc"))
    assert a.overlaps(a)
    assert a.overlaps(inside)
    assert inside.overlaps(a)
    assert not a.overlaps(beside)
    assert inside.lies_in(a)
    assert a.lies_in(a)
    assert not a.lies_in(inside)
    assert not beside.lies_in(a)
    faults = list(overlapping({"output.path": a, "output.vault": beside}, "table.path", [inside]))
    assert [(fault.path, "never writes onto its input" in fault.rule) for fault in faults] == [("output.path", True)]
