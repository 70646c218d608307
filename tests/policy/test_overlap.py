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
    assert not list(overlapping({"output.path": tree / "real" / "deep" / "release"}, "table.path", read))
    assert local_places("*.none") == []


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
