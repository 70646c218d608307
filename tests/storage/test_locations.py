"""Places by their spellings: one place is one, others are refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from privrisk_spark.errors import ConfigError
from privrisk_spark.storage.locations import is_remote, locate


@pytest.mark.parametrize(
    ("text", "usual"),
    [
        ("s3://census/a/b", "s3://census/a/b"),
        ("s3a://census/a/b/", "s3://census/a/b"),
        ("S3N://census/a/b", "s3://census/a/b"),
        ("s3://census", "s3://census"),
        ("gs://census/a", "gs://census/a"),
        ("az://census/a", "az://census/a"),
        ("abfss://census@office.dfs.core.windows.net/a", "abfss://census@office.dfs.core.windows.net/a"),
    ],
)
def test_spellings_of_one_place(text: str, usual: str) -> None:
    found = locate(text, key="output.path")
    assert str(found) == usual
    assert found.remote
    assert is_remote(text)
    assert locate(usual, key="output.path") == found


def test_paths_are_places_with_links_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    real = locate(str(tmp_path / "real" / "a b"), key="x")
    for text in (f"{tmp_path}/link/a b", f"file://{tmp_path}/link/a%20b", f"file:{tmp_path}/x/../real/a b"):
        assert locate(text, key="x") == real
        assert not is_remote(text)
    assert not real.remote


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("hdfs:///a", "name node"),
        ("hdfs://name:1:2/a", "name node"),
        ("viewfs://name/a", "'viewfs'"),
        ("ftp://name/a", "'ftp'"),
        ("s3://user:secret@census/a", "no credentials"),
        ("s3:///a", "bucket"),
        ("s3://a", "bucket"),
        ("s3://census/a/../b", "plain path"),
        ("s3://census//b", "plain path"),
        ("s3://census/./b", "plain path"),
        ("s3://census/b?X-Amz-Signature=1", "plain path"),
        ("az://census/b#x", "plain path"),
    ],
)
def test_others_are_refused_by_key_and_rule_without_what_was_given(text: str, rule: str) -> None:
    with pytest.raises(ConfigError, match=rule) as caught:
        locate(text, key="output.path")
    assert str(caught.value).startswith("output.path: ")
    assert "secret" not in str(caught.value)
    assert "Signature" not in str(caught.value)


def test_places_that_lie_in_each_other_overlap_and_neighbours_do_not() -> None:
    def at(text: str) -> object:
        return locate(text, key="x")

    base = locate("s3://census/a/b", key="x")
    for text in ("s3a://census/a/b", "s3://census/a", "s3://census", "s3://census/a/b/c"):
        assert base.overlaps(locate(text, key="x"))
        assert locate(text, key="x").overlaps(base)
    for text in ("s3://census/a/bc", "s3://other/a/b", "gs://census/a/b", "/census/a/b"):
        assert not base.overlaps(locate(text, key="x"))
    one, other = "abfss://cc@one.dfs.core.windows.net/a", "az://cc/a/b"
    assert locate(one, key="x").overlaps(locate(other, key="x"))
    assert base.below("c") == at("s3://census/a/b/c")
    assert locate("s3://census", key="x").below("c") == at("s3://census/c")


def test_locate_name_service_keeps_its_capitals_and_overlaps_without_regard_to_case() -> None:
    place = locate("hdfs://ProdNS/vault", key="output.vault")
    assert (str(place), place.remote) == ("hdfs://ProdNS/vault", True)
    assert place.overlaps(locate("hdfs://prodns/vault/x", key="output.path"))
    assert not place.overlaps(locate("hdfs://prodns:8020/other", key="output.path"))
