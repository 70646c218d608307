"""Parts of tasks: the same contract in a directory and in an object store, with copies that are checked and private."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest

from benchmarks.s3_server import BUCKET
from privrisk_spark.storage import parts
from privrisk_spark.storage.locations import Location
from privrisk_spark.storage.opening import open_remote
from privrisk_spark.storage.parts import LocalParts, ObjectParts, PartDirectory, keep_under
from privrisk_spark.storage.store import StorageError


@pytest.fixture(params=["local", "s3"])
def directory(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PartDirectory:
    (tmp_path / "own").mkdir()
    monkeypatch.setattr(parts, "_ROOTS", {})
    monkeypatch.setattr(parts, "_KEPT", {})
    keep_under(tmp_path / "own")
    if request.param == "local":
        return LocalParts(str(tmp_path)).below("parts")
    request.getfixturevalue("endpoint")
    return ObjectParts(Location("s3", BUCKET, uuid4().hex)).below("parts")


def write(directory: PartDirectory, name: str, content: bytes) -> None:
    with directory.writing(name) as path:
        Path(path).write_bytes(content)


def forget_copies(tmp_path: Path) -> None:
    """Read as another machine would."""
    for path in sorted((tmp_path / "own").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    parts._ROOTS.clear()


def test_what_a_task_wrote_another_reads(directory: PartDirectory, tmp_path: Path) -> None:
    write(directory, "a.arrow", b"one")
    write(directory, "b.arrow", b"two" * 1_000_000)
    assert Path(directory.path("a.arrow")).read_bytes() == b"one"
    forget_copies(tmp_path)
    assert Path(directory.path("b.arrow")).read_bytes() == b"two" * 1_000_000
    assert Path(directory.path("a.arrow")).read_bytes() == b"one"


def test_what_is_taken_lies_in_a_directory_made_for_it(directory: PartDirectory, tmp_path: Path) -> None:
    for name in ("a", "b", "lost"):
        write(directory, name, name.encode())
    directory.take(["b", "a"], tmp_path / "taken")
    assert {path.name: path.read_text() for path in (tmp_path / "taken").iterdir()} == {"a": "a", "b": "b"}
    with pytest.raises(FileExistsError):
        directory.take([], tmp_path / "taken")


def test_a_part_that_failed_is_none(directory: PartDirectory) -> None:
    def fail() -> None:
        with directory.writing("a") as path:
            Path(path).write_bytes(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    if isinstance(directory, ObjectParts):
        with pytest.raises(FileNotFoundError):
            directory.path("a")


def test_removing_leaves_nothing(directory: PartDirectory, tmp_path: Path) -> None:
    inner = directory.below("inner")
    write(directory, "a", b"a")
    write(inner, "b", b"b")
    assert directory.there()
    directory.remove()
    assert not directory.there()
    assert not inner.there()
    forget_copies(tmp_path)
    for where, name in ((directory, "a"), (inner, "b")):
        if isinstance(where, ObjectParts):
            with pytest.raises(FileNotFoundError):
                where.path(name)
        else:
            assert not Path(where.path(name)).exists()


@pytest.mark.parametrize("directory", ["s3"], indirect=True)
def test_removing_spares_what_only_begins_alike(directory: PartDirectory, tmp_path: Path) -> None:
    one, other = directory.below("run-1"), directory.below("run-10")
    for where in (one, one.below("inner"), other):
        write(where, "a", b"a")
    assert isinstance(one, ObjectParts)
    one.remove()
    assert not one.there()
    assert not one.below("inner").there()
    assert other.there()
    forget_copies(tmp_path)
    assert Path(other.path("a")).read_bytes() == b"a"


@pytest.mark.parametrize("directory", ["s3"], indirect=True)
def test_copies_are_for_their_owner_alone_and_fetched_once(directory: PartDirectory, tmp_path: Path) -> None:
    write(directory, "a", b"secret")
    forget_copies(tmp_path)
    path = Path(directory.path("a"))
    assert tmp_path / "own" in path.parents
    assert all(place.stat().st_mode & 0o777 == 0o700 for place in (path.parent, path.parent.parent))
    before = path.stat().st_mtime_ns
    assert directory.path("a") == str(path)
    assert path.stat().st_mtime_ns == before


@pytest.mark.parametrize("directory", ["s3"], indirect=True)
def test_a_copy_that_arrives_changed_is_refused(directory: PartDirectory, tmp_path: Path) -> None:
    assert isinstance(directory, ObjectParts)
    import obstore

    write(directory, "a", b"good")
    store = open_remote(directory.location)._store
    obstore.put(store, "a", b"evil", attributes=obstore.get(store, "a").attributes)
    forget_copies(tmp_path)
    for _ in range(2):
        with pytest.raises(StorageError, match="other bytes"):
            directory.path("a")


def test_processes_that_want_one_part_at_once_all_get_it(directory: PartDirectory, tmp_path: Path) -> None:
    write(directory, "a", b"x" * 5_000_000)
    program = (
        "import sys, pickle, hashlib\n"
        "directory = pickle.loads(bytes.fromhex(sys.argv[1]))\n"
        "print(hashlib.sha256(open(directory.path('a'), 'rb').read()).hexdigest())\n"
    )
    import hashlib
    import pickle

    local = tmp_path / "spark-local"
    local.mkdir()
    environment = {**os.environ, "SPARK_LOCAL_DIRS": str(local)}
    command = [sys.executable, "-c", program, pickle.dumps(directory).hex()]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) for _ in range(3)]
    expected = hashlib.sha256(b"x" * 5_000_000).hexdigest()
    assert [one.communicate()[0].decode().strip() for one in running] == [expected] * 3
    left = [path for path in local.rglob("*") if path.is_file() and path.stat().st_size >= 5_000_000]
    assert len(left) == isinstance(directory, ObjectParts), "one copy a machine"
