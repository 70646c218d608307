"""Directories and small files of this machine: what is found in them, what replaces what, and who may read it."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from privrisk_spark.errors import BusyError
from privrisk_spark.storage import directories, documents
from privrisk_spark.storage.locks import is_locked, locked
from privrisk_spark.storage.table_files import files_of, links_in, named_here
from privrisk_spark.storage.temporary import PrivateDirectory, of_this_user


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Files, a directory, a pipe, a link to a file and one to a directory elsewhere."""
    root = tmp_path / "tree"
    (root / "b" / "c").mkdir(parents=True)
    (root / "a").write_text("a")
    (root / "b" / "c" / "d").write_text("d")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "x").write_text("x")
    (root / "to-file").symlink_to(root / "a")
    (root / "to-directory").symlink_to(tmp_path / "elsewhere")
    os.mkfifo(root / "pipe")
    return root


def test_files_are_told_from_all_the_rest(tree: Path) -> None:
    def below(found: object) -> list[str]:
        return [path.relative_to(tree).as_posix() for path in found]  # type: ignore[attr-defined]

    assert below(directories.files_below(tree)) == ["a", "b/c/d", "to-file"]
    assert below(directories.all_below(tree)) == ["a", "b/c/d", "pipe", "to-directory", "to-file"]
    assert below(directories.directories_below(tree)) == ["b", "b/c", "to-directory"]
    assert directories.names_in(tree) == ["a", "b", "pipe", "to-directory", "to-file"]
    assert directories.names_in(tree / "a") == directories.names_in(tree / "none") == []
    assert [documents.state_of(tree / name).regular for name in ("a", "to-file", "b", "pipe")] == [  # type: ignore[union-attr]
        True, True, False, False,
    ]  # fmt: skip
    assert documents.state_of(tree / "none") is None
    with pytest.raises(NotADirectoryError):
        documents.state_of(tree / "a" / "below")


def test_what_a_link_leads_to_is_never_removed(tree: Path) -> None:
    directories.remove(tree / "to-directory")
    directories.remove(tree / "to-directory")
    directories.sweep(tree, "to-*", "p*", "b")
    assert directories.names_in(tree) == ["a"]
    assert (tree.parent / "elsewhere" / "x").exists()


def test_a_directory_takes_the_place_of_another_or_of_nothing(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "file").touch()
    (tmp_path / "new").mkdir()
    directories.put_in_place(tmp_path / "new", tmp_path / "old")
    assert directories.names_in(tmp_path / "old") == []
    directories.put_in_place(tmp_path / "none", tmp_path / "old")
    assert directories.names_in(tmp_path) == []
    directories.make_missing(tmp_path / "a" / "b")
    assert {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "a", tmp_path / "a" / "b")} == {0o700}


def test_a_file_is_replaced_whole_and_for_its_owner(tmp_path: Path) -> None:
    file = tmp_path / "status.json"
    file.write_text("before")
    file.chmod(0o644)
    documents.write_json(file, {"a": "ä"})
    assert documents.read(file) == '{\n  "a": "ä"\n}\n'.encode()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    documents.write_text(file, "out", published=86400.0)
    assert (stat.S_IMODE(file.stat().st_mode), file.stat().st_mtime) == (0o644, 86400.0)
    assert documents.size_and_digest(file)[0] == 3
    assert directories.names_in(tmp_path) == ["status.json"]
    with pytest.raises(ValueError, match="not JSON compliant"):
        documents.write_json(file, float("nan"))
    assert documents.read(file) == b"out"
    assert documents.read(tmp_path / "none") is documents.read(file / "below") is None


def fill(draft: Path) -> None:
    draft.write_text("half")
    raise OSError("the disk is full")


def test_a_name_is_given_to_what_is_whole_and_once(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="full"), documents.linked_when_whole(tmp_path / "a") as draft:
        fill(draft)
    assert directories.names_in(tmp_path) == []
    for text in ("first", "second"):
        with documents.linked_when_whole(tmp_path / "a") as draft:
            assert stat.S_IMODE(draft.stat().st_mode) == 0o600
            draft.write_text(text)
    assert directories.names_in(tmp_path) == ["a"]
    assert documents.read_text(tmp_path / "a") == "first"


def test_a_lock_is_a_process_s_and_seen_by_others(tmp_path: Path) -> None:
    assert not is_locked(tmp_path)
    with locked(tmp_path, "output.vault"):
        assert is_locked(tmp_path)
        program = (
            "import sys, pathlib\n"
            "from privrisk_spark.storage.locks import is_locked\n"
            "print(is_locked(pathlib.Path(sys.argv[1])))\n"
        )
        command = [sys.executable, "-c", program, str(tmp_path)]
        root = Path(directories.__file__).parents[2]
        assert subprocess.run(command, capture_output=True, text=True, check=True, cwd=root).stdout == "True\n"
        with pytest.raises(BusyError, match=r"output\.vault: another run is at work"), locked(tmp_path, "output.vault"):
            pass
    assert not is_locked(tmp_path)
    assert directories.names_in(tmp_path) == []


def test_files_of_a_table_are_those_spark_reads(tmp_path: Path) -> None:
    for name in ("b/p", "a/p", "_SUCCESS", ".crc", "_x=1/p", "_hidden/p", "p._COPYING_"):
        (tmp_path / "t" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "t" / name).touch()
    (tmp_path / "t" / "gone").symlink_to(tmp_path / "nothing")
    found = [file.relative_to(tmp_path / "t").as_posix() for file in files_of(tmp_path / "t")]
    assert found == ["_x=1/p", "a/p", "b/p", "gone"]
    assert list(files_of(tmp_path / "none")) == []
    assert list(files_of(tmp_path / "t" / "gone")) == [tmp_path / "t" / "gone"]
    assert list(links_in(tmp_path / "t")) == [tmp_path / "nothing"]
    assert named_here(f"{tmp_path}/t/[ab]") == [tmp_path / "t" / "a", tmp_path / "t" / "b"]
    assert named_here(f"file://{tmp_path}/t%20x") == [tmp_path / "t x"]
    assert named_here("s3://bucket/t") == []


def test_a_private_directory_goes_with_its_object(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    held = PrivateDirectory()
    assert stat.S_IMODE(held.path.stat().st_mode) == 0o700
    del held
    assert directories.names_in(tmp_path) == []
    assert of_this_user("kind", "name") == tmp_path / f"kind-{os.geteuid()}-name"
