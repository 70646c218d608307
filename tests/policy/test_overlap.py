"""Places as the system knows them: schemes, patterns and links are seen through."""

from __future__ import annotations

from pathlib import Path

import pytest

from privrisk_spark.policy.overlap import local_places, overlap, overlapping


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
        ("{}/real/deep/*.csv", "real/deep"),
        ("{}/real/d[a-z]ep/x", "real"),
        ("file:{}/real/{{deep,other}}/x", "real"),
        ("{}/real/not there", "real/not there"),
        ("file:{}/real/not%20there", "real/not there"),
    ],
)
def test_the_place_a_path_names(tree: Path, written: str, named: str) -> None:
    assert local_places(written.format(tree))[0] == tree / named


def test_links_in_a_directory_lead_elsewhere(tree: Path) -> None:
    assert local_places(str(tree / "real")) == [tree / "real", tree / "elsewhere"]
    assert local_places(f"{tree}/real/*") == [tree / "real", tree / "elsewhere"]


def test_a_name_with_a_pattern_s_letters_that_is_there_is_that(tree: Path) -> None:
    (tree / "a[1]").mkdir()
    assert local_places(str(tree / "a[1]")) == [tree / "a[1]"]


@pytest.mark.parametrize("path", ["s3a://bucket/x", "hdfs://host/x", "abfss://a@b/x"])
def test_other_file_systems_have_no_place_here(path: str) -> None:
    assert local_places(path) == []


def test_one_in_the_other_overlaps_and_neighbours_do_not() -> None:
    a, inside, beside = Path("/a/b"), Path("/a/b/c"), Path("/a/bc")
    assert overlap(a, a)
    assert overlap(a, inside)
    assert overlap(inside, a)
    assert not overlap(a, beside)
    faults = list(overlapping({"output.path": a, "output.vault": beside}, "table.path", [inside]))
    assert [(fault.path, "never writes onto its input" in fault.rule) for fault in faults] == [("output.path", True)]
