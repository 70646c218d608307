"""What is published everyone reads, all else its owner alone; the umask decides nothing."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from privrisk_spark.errors import ConfigError
from privrisk_spark.storage import permissions


@pytest.fixture(params=[0o000, 0o022, 0o077], autouse=True)
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    usual = os.umask(request.param)
    yield
    os.umask(usual)


def rights(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_private_directory_is_made_or_closed(tmp_path: Path) -> None:
    new, old = tmp_path / "a" / "new", tmp_path / "old"
    old.mkdir()
    old.chmod(0o755)
    for place in (new, old):
        permissions.make_private(place, "output.vault")
        assert rights(place) == 0o700


def test_somebody_else_s_directory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "chmod", forbidden)
    with pytest.raises(ConfigError, match=r"output.vault: must be a directory of the user who runs this"):
        permissions.make_private(tmp_path, "output.vault")


def test_make_private_directory_of_another_user_raises_and_leaves_its_mode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may change the mode of any directory."""
    tmp_path.chmod(0o755)
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    with pytest.raises(ConfigError, match=r"output.vault: must be a directory of the user who runs this.*its owner"):
        permissions.make_private(tmp_path, "output.vault")
    assert rights(tmp_path) == 0o755


def test_a_public_directory_is_made_readable_and_one_that_is_there_stays(tmp_path: Path) -> None:
    tmp_path.chmod(0o750)
    permissions.make_public(tmp_path / "a" / "b", "output.path")
    assert [rights(path) for path in (tmp_path / "a" / "b", tmp_path / "a", tmp_path)] == [0o755, 0o755, 0o750]


@pytest.mark.parametrize(
    ("act", "of_directories", "of_files"), [("close", 0o700, 0o600), ("open_to_all", 0o755, 0o644)]
)
def test_a_whole_tree_but_not_what_links_point_to(tmp_path: Path, act: str, of_directories: int, of_files: int) -> None:
    outside = tmp_path / "outside"
    outside.touch()
    outside.chmod(0o640)
    tree = tmp_path / "tree"
    (tree / "deep").mkdir(parents=True)
    (tree / "deep" / "file").touch()
    (tree / "link").symlink_to(outside)
    getattr(permissions, act)(tree)
    assert {rights(path) for path in (tree, tree / "deep")} == {of_directories}
    assert rights(tree / "deep" / "file") == of_files
    assert rights(outside) == 0o640
