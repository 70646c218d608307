"""One contract for every store: whole files, one creator, no lost update, faults named and survived."""

from __future__ import annotations

import http.client
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import object_store
import pytest
from azure_server import CONTAINER
from object_store import Front

from benchmarks.s3_server import BUCKET, SECRET
from privrisk_spark.errors import ConfigError, InputError
from privrisk_spark.storage.locations import Location, locate
from privrisk_spark.storage.objects import ObjectStore
from privrisk_spark.storage.opening import open_store
from privrisk_spark.storage.store import StorageError, Store
from privrisk_spark.storage.table_files import files_below

pytestmark = pytest.mark.usefixtures("endpoint")


@pytest.fixture(params=["local", pytest.param("hdfs", marks=pytest.mark.spark), "s3", "az", "gs"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "local":
        return open_store(locate(str(tmp_path / "place"), key="output.path"))
    if request.param == "hdfs":
        return open_store(locate(f"{request.getfixturevalue('hdfs')}/{uuid4().hex}", key="output.path"))
    if request.param != "s3":
        request.getfixturevalue({"az": "azure", "gs": "google"}[request.param])
    container = CONTAINER if request.param == "az" else BUCKET
    return open_store(locate(f"{request.param}://{container}/{uuid4().hex}", key="output.path"))


@pytest.fixture
def faulty(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Front, ObjectStore]]:
    with object_store.front(endpoint) as (front, address):
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
        yield front, ObjectStore(Location("s3", BUCKET, uuid4().hex), retry_seconds=2)


def test_a_file_is_read_as_it_was_written(store: Store) -> None:
    store.write("a/b.json", b"one")
    assert store.read("a/b.json").content == b"one"
    store.write("a/b.json", b"")
    assert store.read("a/b.json").content == b""
    with pytest.raises(FileNotFoundError):
        store.read("a/c.json")


def test_of_several_that_create_a_file_one_content_stands(store: Store) -> None:
    assert store.create("key", b"first")
    assert not store.create("key", b"second")
    assert store.read("key").content == b"first"
    assert store.create("key", b"first"), "an answer that was lost makes no difference"

    won: list[bytes] = []
    start = threading.Barrier(6)

    def draw(content: bytes) -> None:
        start.wait()
        if store.create("drawn", content):
            won.append(content)

    threads = [threading.Thread(target=draw, args=(bytes([i]) * 40,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert won == [store.read("drawn").content]


def test_no_update_is_lost(store: Store) -> None:
    store.write("count", b"0")

    def add(times: int) -> None:
        for _ in range(times):
            while True:
                found = store.read("count")
                if store.replace("count", str(int(found.content) + 1).encode(), found.version):
                    break

    # Each number is written once, so that a content that is there already was written by somebody else for sure.
    before = store.read("count")
    assert store.replace("count", b"10", before.version)
    assert not store.replace("count", b"20", before.version)
    assert store.read("count").content == b"10"
    assert not store.replace("none", b"20", before.version)
    threads = [threading.Thread(target=add, args=(1,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert int(store.read("count").content) >= 11


def test_listings_name_files_below_a_name_and_nothing_else(store: Store) -> None:
    for name in ("a/2", "a/1", "a/b/3", "ab", "c"):
        store.write(name, name.encode())
    assert [(entry.name, entry.size) for entry in store.entries("a")] == [("a/1", 3), ("a/2", 3), ("a/b/3", 5)]
    assert [entry.name for entry in store.entries()] == ["a/1", "a/2", "a/b/3", "ab", "c"]
    assert list(store.entries("nothing")) == []
    found = store.find("a/b/3")
    assert found == next(store.entries("a/b"))
    assert (store.find("a/b"), store.find("none"), store.find("c/x")) == (None, None, None)
    store.remove("a/1")
    store.remove("a/1")
    assert [entry.name for entry in store.entries("a/")] == ["a/2", "a/b/3"]
    store.remove("a/2", "gone", "a/b/3")
    store.remove()
    assert [entry.name for entry in store.entries()] == ["ab", "c"]


def test_names_are_taken_by_the_letter(store: Store, tmp_path: Path) -> None:
    """What means something in a URL, or once did: none is another's, and a place may have such a name, too."""
    names = ["100%.csv", "a b", "a%20b", "a+b", "city=Ulm%2FDonau/x=y", "ü😀", "x&y;z,'(1)~"]
    for name in names:
        store.write(name, name.encode())
    assert [entry.name for entry in store.entries()] == sorted(names)
    for name in names:
        assert store.read(name).content == name.encode()
        assert store.find(name) is not None
        with store.open(name) as stream:
            assert stream.read() == name.encode()
    below = open_store(locate(f"{store.location}/my table+100%", key="output.path"))
    below.write("part", b"there")
    assert store.read("my table+100%/part").content == b"there"
    store.remove(*names)
    assert [entry.name for entry in store.entries()] == ["my table+100%/part"]


def test_a_listing_in_pages_is_whole(faulty: tuple[Front, ObjectStore]) -> None:
    """Stores tell of a thousand objects at once; here of two."""
    front, store = faulty
    names = [f"{n}%" for n in range(7)]
    for name in names:
        store.write(name, b"")
    front.met.clear()
    front.rewritten = lambda path: f"{path}&max-keys=2" if "list-type=2" in path else path
    assert [entry.name for entry in store.entries()] == names
    assert len(front.met) == 4
    store.remove(*names)
    assert not list(store.entries())


@pytest.mark.parametrize("how", ["another content", "gone"])
def test_what_is_replaced_while_it_is_read_is_never_read_as_a_mixture(endpoint: str, how: str) -> None:
    assert endpoint
    store = ObjectStore(Location("s3", BUCKET, uuid4().hex), retry_seconds=2)
    size = 9 * 2**20
    store.write("t/a", b"x" * size)
    (listed,) = files_below(store.location.below("t"))
    with listed.reader() as stream:
        assert stream.read(10) == b"x" * 10
        if how == "gone":
            store.remove("t/a")
        else:
            store.write("t/a", b"y" * size)
        with pytest.raises(StorageError, match="was replaced or removed while it was read; run again"):
            stream.read()
    with pytest.raises(StorageError, match=r"t/a' was (replaced or removed while it|removed while its table) was read"):
        listed.reader()
    if how != "gone":
        (again,) = files_below(store.location.below("t"))
        with again.reader() as stream:
            assert stream.read() == b"y" * size


def test_objects_that_mark_directories_are_no_files(endpoint: str) -> None:
    """As consoles make them, whose names end with a slash, and other programs."""
    place = Location("s3", BUCKET, uuid4().hex)
    store = ObjectStore(place)

    def put(name: str) -> None:
        connection = http.client.HTTPConnection(endpoint.removeprefix("http://"), timeout=10)
        connection.request("PUT", f"/{BUCKET}/{place.path}/{name}", b"")
        assert connection.getresponse().status == http.HTTPStatus.OK
        connection.close()

    for name in ("", "city=Ulm/", "alone/", "city=Bonn_$folder$", "city=Kiel"):
        put(name)
    for name in ("city=Ulm/p", "city=Kiel/p"):
        store.write(name, b"x")
    assert [file.key for file in files_below(place)] == ["city=Kiel/p", "city=Ulm/p"]
    assert "" not in [entry.name for entry in store.entries()], "a place of one's own is not taken for another's"
    store.write("lost", b"")
    assert "lost" in [file.key for file in files_below(place)], "a file that lost its content is one"
    put("city=Ulm//q")
    with pytest.raises(InputError, match=r"holds an object whose name has an empty part(?s:.*)rename or remove it"):
        files_below(place)


def test_large_files_go_up_and_come_down(store: Store, tmp_path: Path) -> None:
    content = bytes(range(256)) * 90_000
    (tmp_path / "up").write_bytes(content)
    store.upload("large/file.bin", tmp_path / "up")
    store.download("large/file.bin", tmp_path / "down")
    assert (tmp_path / "down").read_bytes() == content
    with store.open("large/file.bin") as stream:
        stream.seek(-1000, 2)
        assert bytes(stream.read(1000)) == content[-1000:]
        stream.seek(5)
        assert bytes(stream.read(7)) == content[5:12]
    with pytest.raises(FileNotFoundError):
        store.download("none", tmp_path / "other")
    with pytest.raises(FileNotFoundError):
        store.open("none")


def test_a_local_store_is_for_its_owner_alone(tmp_path: Path) -> None:
    store = open_store(locate(str(tmp_path / "place"), key="x"))
    store.write("a/b", b"1")
    assert (tmp_path / "place/a").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "place/a/b").stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in (tmp_path / "place/a").iterdir()) == ["b"], "no draft stays"


@pytest.mark.parametrize("fault", ["throttle", "fail", "reset", "cut the answer"])
def test_reading_survives_what_passes(faulty: tuple[Front, ObjectStore], fault: object_store.Fault) -> None:
    front, store = faulty
    store.write("a", b"x" * 100_000)
    front.first(2, fault, method="GET")
    assert store.read("a").content == b"x" * 100_000
    assert [met[2] for met in front.met[:2]] == [fault, fault]
    assert len(front.met) >= 3


@pytest.mark.parametrize("fault", ["throttle", "fail", "reset", "abort", "lose the answer"])
@pytest.mark.parametrize("how", ["write", "create", "replace"])
def test_writing_survives_what_passes_and_knows_what_it_wrote(
    faulty: tuple[Front, ObjectStore], fault: object_store.Fault, how: str
) -> None:
    front, store = faulty
    if how == "replace":
        store.write("a", b"old")
        version = store.read("a").version
        front.first(1, fault, method="PUT")
        assert store.replace("a", b"new", version)
    elif how == "create":
        front.first(1, fault, method="PUT")
        assert store.create("a", b"new")
    else:
        front.first(1, fault, method="PUT")
        store.write("a", b"new")
    front.plan = lambda method, path: None
    assert store.read("a").content == b"new"
    assert front.met[0][2] == fault
    if how == "create":
        assert not store.create("a", b"other")


@pytest.mark.parametrize("fault", ["throttle", "fail", "reset", "abort", "lose the answer"])
@pytest.mark.parametrize("names", [["a"], ["a", "x/b", "x/b/c", "gone"]])
def test_remove_after_a_fault_that_passes_removes_all(
    faulty: tuple[Front, ObjectStore], fault: object_store.Fault, names: list[str]
) -> None:
    front, store = faulty
    for name in ("a", "x/b", "x/b/c", "kept"):
        store.write(name, b"1")
    front.first(1, fault, method="POST")
    store.remove(*names)
    assert front.met[0][2] == fault
    assert not {entry.name for entry in store.entries()} & set(names)
    assert store.find("kept") is not None


@pytest.mark.parametrize("how", ["create", "replace"])
def test_conditional_write_whose_connections_are_reset_for_a_while_is_tried_until_it_succeeds(
    faulty: tuple[Front, ObjectStore], how: str
) -> None:
    front, _ = faulty
    store, version = ObjectStore(Location("s3", BUCKET, uuid4().hex), retry_seconds=30), ""
    if how == "replace":
        store.write("a", b"old")
        version = store.read("a").version
    front.first(4, "abort", method="PUT")
    assert store.create("a", b"new") if how == "create" else store.replace("a", b"new", version)
    assert [method for method, _, fault in front.met if fault == "abort"] == ["PUT"] * 4
    assert store.read("a").content == b"new"


@pytest.mark.parametrize("how", ["create", "replace"])
def test_conditional_write_after_a_reset_never_replaces_what_another_wrote(
    faulty: tuple[Front, ObjectStore], endpoint: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process writes between the reset and the next try."""
    front, store = faulty
    version = ""
    if how == "replace":
        store.write("a", b"old")
        version = store.read("a").version
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    other = ObjectStore(store.location, retry_seconds=2)

    def plan(method: str, path: str) -> object_store.Fault | None:
        if method != "PUT" or any(fault == "abort" for _, _, fault in front.met):
            return None
        other.write("a", b"of another")
        return "abort"

    front.plan = plan
    assert not (store.create("a", b"new") if how == "create" else store.replace("a", b"new", version))
    assert store.read("a").content == b"of another"


def test_write_to_a_store_that_resets_all_connections_fails_after_the_stated_time(
    faulty: tuple[Front, ObjectStore],
) -> None:
    front, _ = faulty
    front.plan = lambda method, path: "abort" if method in ("PUT", "POST") else None
    store = ObjectStore(Location("s3", BUCKET, uuid4().hex), retry_seconds=1)
    with pytest.raises(StorageError, match="the store cannot be reached"):
        store.create("a", b"1")
    assert sum(method == "PUT" for method, _, _ in front.met) > 2


@pytest.mark.parametrize("act", ["list", "read", "write", "remove"])
def test_denied_request_names_key_bucket_and_operation_and_is_no_engine_failure(
    faulty: tuple[Front, ObjectStore], act: str
) -> None:
    front, _ = faulty
    store = ObjectStore(locate(f"s3://{BUCKET}/{uuid4().hex}", key="output.vault"), retry_seconds=2)
    front.plan = lambda method, path: "deny"
    acts = {
        "list": lambda: list(store.entries()),
        "read": lambda: store.read("a"),
        "write": lambda: store.create("a", b"1"),
        "remove": lambda: store.remove("a", "b"),
    }
    with pytest.raises(
        ConfigError, match=rf"^output\.vault: 's3://{BUCKET}/.*': access is denied to {act} in"
    ) as caught:
        acts[act]()
    assert f"'{BUCKET}'" in str(caught.value)
    assert caught.value.exit_code == 2
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("service", ["AWS", "AZURE", "GOOGLE"])
def test_missing_credentials_name_key_and_bucket_and_are_no_engine_failure(
    service: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in list(os.environ):
        if name.startswith(("AWS_", "AZURE_", "AZURITE_", "GOOGLE_")) and name != "AWS_REGION":
            monkeypatch.delenv(name)
    uri = {"AWS": "s3://bucket/a", "AZURE": "abfss://bucket@a.dfs.core.windows.net/a", "GOOGLE": "gs://bucket/a"}
    store = ObjectStore(locate(uri[service], key="output.path"), retry_seconds=1)
    with pytest.raises(ConfigError, match=r"^output\.path: '\w+://.*': there are no credentials to list in .*'bucket'"):
        list(store.entries())


def test_a_store_that_stays_away_is_a_named_failure_without_credentials(
    faulty: tuple[Front, ObjectStore], tmp_path: Path
) -> None:
    front, _ = faulty
    front.plan = lambda method, path: "throttle"
    store = ObjectStore(Location("s3", BUCKET, uuid4().hex), retry_seconds=0.3)
    (tmp_path / "up").write_bytes(b"1")
    for act in (
        lambda: store.read("a"),
        lambda: store.write("a", b"1"),
        lambda: store.create("a", b"1"),
        lambda: store.upload("a", tmp_path / "up"),
        lambda: store.download("a", tmp_path / "down"),
        lambda: list(store.entries()),
        lambda: store.remove("a"),
    ):
        with pytest.raises(StorageError, match=f"s3://{BUCKET}/.*cannot be read or written") as caught:
            act()
        assert caught.value.exit_code == 3
        assert SECRET not in str(caught.value)
        assert "127.0.0.1" not in str(caught.value)


def test_an_upload_that_is_interrupted_leaves_nothing_to_see(faulty: tuple[Front, ObjectStore], tmp_path: Path) -> None:
    front, store = faulty
    (tmp_path / "up").write_bytes(b"1" * 20_000_000)
    parts = 0

    def plan(method: str, path: str) -> object_store.Fault | None:
        nonlocal parts
        parts += method == "PUT"
        return "reset" if method == "PUT" and parts > 1 else None

    front.plan = plan
    with pytest.raises(StorageError):
        store.upload("large", tmp_path / "up")
    front.plan = lambda method, path: None
    assert list(store.entries()) == []


def test_bytes_that_changed_on_the_way_are_refused(faulty: tuple[Front, ObjectStore], tmp_path: Path) -> None:
    import obstore

    _, store = faulty
    (tmp_path / "up").write_bytes(b"good")
    store.upload("a", tmp_path / "up")
    kept = obstore.get(store._store, "a").attributes
    obstore.put(store._store, "a", b"evil", attributes=kept)
    with pytest.raises(StorageError, match="other bytes"):
        store.download("a", tmp_path / "down")
    assert not (tmp_path / "down").exists()


def test_a_bucket_that_is_not_there_is_named() -> None:
    store = ObjectStore(Location("s3", "no-such-bucket", "x"), retry_seconds=2)
    for act in (lambda: store.write("a", b"1"), lambda: store.create("a", b"1")):
        with pytest.raises(InputError, match="'s3://no-such-bucket/x/a': there is no such bucket"):
            act()


@pytest.mark.parametrize(
    ("said", "lost"),
    [
        ("Error performing PUT http://169.254.169.254/latest/api/token: operation timed out", True),
        ("Error performing PUT http://169.254.169.254/latest/api/token: status code: 404", False),
    ],
)
def test_store_whose_credentials_do_not_arrive_in_time_is_lost_for_now(
    said: str, lost: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ObjectStore(locate("s3://bucket/a", key="output.path"), retry_seconds=0)

    def fail(*_: object, **__: object) -> None:
        raise OSError(said)

    monkeypatch.setattr("obstore.list", fail)
    with pytest.raises(StorageError if lost else ConfigError) as caught:
        list(store.names())
    assert caught.value.exit_code == (3 if lost else 2)
