"""HDFS: one process of several replaces a version, and a process may stop at each step of it."""

from __future__ import annotations

from uuid import uuid4

import pytest

from privrisk_spark.errors import ConfigError
from privrisk_spark.storage.hdfs import HdfsStore
from privrisk_spark.storage.locations import locate
from privrisk_spark.storage.store import StorageError

# Hadoop's cluster needs the jars of Spark.
pytestmark = pytest.mark.spark


@pytest.fixture
def store(hdfs: str) -> HdfsStore:
    return HdfsStore(locate(f"{hdfs}/{uuid4().hex}", key="output.path"), retry_seconds=1)


class StopError(Exception):
    pass


def test_replace_stopped_before_the_copy_is_read_and_copied_by_the_next(
    store: HdfsStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.create("m.json", b"1")
    first = store.read("m.json")

    def stop(name: str) -> None:
        raise StopError(name)

    with monkeypatch.context() as patch:
        patch.setattr(store, "_publish", stop)
        with pytest.raises(StopError):
            store.replace("m.json", b"2", first.version)
    assert store._read("m.json").content == b"1"
    second = store.read("m.json")
    assert second.content == b"2"
    assert not store.replace("m.json", b"other", first.version)
    assert store.replace("m.json", b"3", second.version)
    assert store._read("m.json") == store.read("m.json")
    assert store.read("m.json").content == b"3"


def test_replace_delayed_copy_of_an_earlier_version_does_not_hide_a_later_one(
    store: HdfsStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.create("m.json", b"1")
    first = store.read("m.json")
    assert store.replace("m.json", b"2", first.version)
    second = store.read("m.json")
    read, late = store.read, [second]
    assert store.replace("m.json", b"3", second.version)
    # A process that read the second version before the third one was written copies it now.
    monkeypatch.setattr(store, "read", lambda name: late.pop() if late else read(name))
    store._publish("m.json")
    assert store._read("m.json").content == b"3"


def test_replace_by_a_content_of_before_is_a_new_version(store: HdfsStore) -> None:
    store.create("m.json", b"1")
    versions = [store.read("m.json").version]
    for content in (b"2", b"1", b"2"):
        assert store.replace("m.json", content, versions[-1])
        versions.append(store.read("m.json").version)
    assert store.read("m.json").content == b"2"
    assert len(set(versions)) == 4
    assert [entry.name for entry in store.entries()] == ["m.json"]


def test_remove_last_file_removes_its_empty_directories(store: HdfsStore) -> None:
    store.write("a/b/one", b"")
    store.write("a/two", b"")
    store.remove("a/b/one", "a/none")
    assert [entry.name for entry in store.entries()] == ["a/two"]
    left = {found.path.rpartition("/")[2] for found in store._client.list_status(store._path(""), recursive=True)}
    assert left == {".drafts", "a", "two"}


def test_draft_of_a_killed_process_is_closed_to_others_and_cleared(
    store: HdfsStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise StopError

    class KilledClient:
        """A client whose process is killed between the draft and its name."""

        rename = delete = stop

        def __getattr__(self, name: str) -> object:
            return getattr(client, name)

    store.write("a/one", b"1")
    client = store._client
    with monkeypatch.context() as patch:
        patch.setattr(store, "_client", KilledClient())
        with pytest.raises(StopError):
            store.write("a/two", b"rows")
    assert [entry.name for entry in store.entries()] == [*store.names()] == ["a/one"]
    drafts = list(client.list_status(store._path(".drafts"), recursive=True))
    assert [found.length for found in drafts] == [4]
    assert client.get_file_info(store._path(".drafts")).permission == 0o700
    # Of a store above it, the directory is empty once the draft is old.
    above = HdfsStore(locate(str(store.location).rpartition("/")[0], key="output.path"), retry_seconds=1)
    name = store.location.path
    above.remove(f"{name}/a/one")
    assert above._client.get_file_info(store._path("")).isdir
    client.set_times(store._path(".drafts"), 1, 1)
    above.write(f"{name}/a/one", b"1")
    above.remove(f"{name}/a/one")
    with pytest.raises(FileNotFoundError):
        client.get_file_info(store._path(""))
    store.write("a/one", b"1")
    store.clear()
    with pytest.raises(FileNotFoundError):
        client.get_file_info(store._path(""))


def test_make_private_directory_is_closed_to_others(store: HdfsStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.make(public=False)
    store.write("key", b"1")
    monkeypatch.setenv("HADOOP_USER_NAME", "somebody")
    other = HdfsStore(store.location)
    with pytest.raises(ConfigError, match=r"output.path: .*/key': access is denied to read files"):
        other.read("key")
    with pytest.raises(ConfigError, match="access is denied to write"):
        other.write("other", b"")
    monkeypatch.undo()
    store.make(public=True)
    store.make(public=False)
    assert store._client.get_file_info(store._path("")).permission == 0o700


def test_store_without_a_name_node_raises_with_the_fix() -> None:
    with pytest.raises(ConfigError, match=r"no such name node. Fix: set HADOOP_CONF_DIR"):
        HdfsStore(locate("hdfs://no-such-service/x", key="output.path"), retry_seconds=1).read("a")
    with pytest.raises(StorageError, match="the name node cannot be reached"):
        HdfsStore(locate("hdfs://localhost:1/x", key="output.path"), retry_seconds=1).read("a")


def test_write_below_a_file_raises_with_the_fix(store: HdfsStore) -> None:
    store.write("a", b"1")
    with pytest.raises(ConfigError, match="a file is in the way of a directory"):
        store.write("a/b", b"2")
