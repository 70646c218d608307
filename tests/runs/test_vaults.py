"""What a vault in an object store keeps, what of it two runs never share, and what stays nowhere."""

from __future__ import annotations

import http.client
import json
import multiprocessing
import os
import stat
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest

from benchmarks.s3_server import BUCKET
from privrisk_spark.errors import BudgetError, BusyError, CheckError, ConfigError
from privrisk_spark.planning.history import earlier_releases, key_to_remember
from privrisk_spark.runs import vaults
from privrisk_spark.runs.keystore import destroy_key, history_key, pin_snapshot, release_key
from privrisk_spark.runs.local_output import LocalOutput
from privrisk_spark.runs.object_output import ObjectOutput
from privrisk_spark.runs.vaults import DirectoryVault, StoreVault, Vault, vault_at
from privrisk_spark.runs.witnesses import Witness, look, record_witness
from privrisk_spark.runs.workplace import Workplace
from privrisk_spark.storage.locations import Location
from privrisk_spark.storage.objects import ObjectStore
from privrisk_spark.storage.opening import open_store
from privrisk_spark.storage.ownership import MARKER
from privrisk_spark.storage.store import StorageError


@pytest.fixture
def store(endpoint: str) -> ObjectStore:
    assert endpoint
    return ObjectStore(Location("s3", BUCKET, uuid4().hex), retry_seconds=5)


@pytest.fixture
def vault(store: ObjectStore) -> StoreVault:
    found = vault_at(f"s3a://{BUCKET}/{store.location.path}/")
    assert isinstance(found, StoreVault)
    assert found.location == store.location
    return found


@pytest.fixture(params=["directory", "store"])
def either(request: pytest.FixtureRequest, tmp_path: Path) -> Vault:
    return request.getfixturevalue("vault") if request.param == "store" else vault_at(str(tmp_path / "vault"))


def place_of(vault: Vault, tmp_path: Path, run_id: str = "r1", output: str = "out") -> Workplace:
    return Workplace(LocalOutput(tmp_path / output), vault, run_id)


def names(store: ObjectStore) -> list[str]:
    return [entry.name for entry in store.entries()]


def _summary(place: Workplace) -> str:
    return json.dumps({"run_id": place.run_id, "output.path": str(place.output)})


def run(place: Workplace, content: str = "", **files: str) -> None:
    """Leave files in the vault, and publish something."""
    with place.held():
        for name, text in {**files, "summary.json": _summary(place)}.items():
            path = place.private / name.replace("__", "/")
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        (place.staging / "data").mkdir()
        place.commit({"run_id": place.run_id, "date": "2026-01-31", "content": content})


# --------------------------------------------------------------------------------------------- of both kinds the same


def test_what_is_written_for_all_runs_is_read_by_the_next(either: Vault, tmp_path: Path) -> None:
    place = place_of(either, tmp_path)
    assert place.recorded_request() is None
    assert place.recorded_pins() == {}
    with place.held():
        place.record_request({"decision": "1"})
        place.record_pins({"table": {"version": 3}})
        (place.staging / "data").mkdir()
        place.commit({"run_id": place.run_id, "date": "2026-01-31"})
    again = place_of(vault_at(str(either.location)), tmp_path)
    assert again.recorded_request() == {"decision": "1"}
    assert again.recorded_pins() == {"table": {"version": 3}}
    assert place_of(either, tmp_path, output="elsewhere").recorded_request() is None
    assert place_of(either, tmp_path, run_id="r2").recorded_pins() == {}


def test_what_a_run_leaves_is_found_once_it_has_ended(either: Vault, tmp_path: Path) -> None:
    place = place_of(either, tmp_path)
    assert place.left("report.html") is None
    run(place, **{"report.html": "exact", "decisions__part-0.parquet": "rows"})
    assert place_of(vault_at(str(either.location)), tmp_path).left("report.html") == b"exact"
    assert place.left("decisions/part-0.parquet") == b"rows"
    assert place.private_at("report.html").endswith("report.html")


def test_a_witness_is_found_by_who_looks(either: Vault) -> None:
    kept = Witness("census", "r1", "/out", 2, "ab", "1", "1e-9")
    record_witness(either, kept)
    seen = look(vault_at(str(either.location)))
    assert seen.witnesses == (kept,)
    assert [(one.there, one.witnesses, one.releases) for one in seen.looked] == [(True, 1, 0)]


def test_keys_and_pins_are_those_of_the_first(either: Vault) -> None:
    key = release_key(either.keys, "r", lineage="census")
    assert len(key) == 32
    assert release_key(either.keys, "r", lineage="census", draw=False) == key
    assert release_key(either.keys, "r", lineage="births") != key
    pin_snapshot(either.keys, "r", "3-ab")
    pin_snapshot(either.keys, "r", "3-ab")
    with pytest.raises(BudgetError, match="The table changed"):
        pin_snapshot(either.keys, "r", "4-cd")
    assert destroy_key(either.keys, "r", lineage="census")
    assert not destroy_key(either.keys, "r", lineage="census")
    with pytest.raises(BudgetError, match=r"not in output\.vault"):
        release_key(either.keys, "r", lineage="census", draw=False)


def test_one_run_at_a_time_works_on_it_on_this_machine(either: Vault, tmp_path: Path) -> None:
    with either.held("r1~0", "a"), pytest.raises(BusyError, match=r"output\.vault: another run is at work"):
        vault_at(str(either.location)).held("r2~0", "b").__enter__()
    assert isinstance(either, StoreVault | DirectoryVault)
    assert tmp_path.exists()


# ---------------------------------------------------------------------------------------------------- in a store only


def test_runs_share_no_name_and_nothing_stays_on_the_machine(
    vault: StoreVault, store: ObjectStore, tmp_path: Path
) -> None:
    first, second = (place_of(vault, tmp_path, run_id) for run_id in ("r1", "r2"))
    run(first, **{"report.html": "of r1", "metrics__r1~a.parquet": "m1"})
    run(second, **{"report.html": "of r2", "metrics__r2~a.parquet": "m2"})
    assert (first.left("report.html"), second.left("report.html")) == (b"of r1", b"of r2")
    of = {place.run_id: f"runs/{place.slug}/{place.attempt}" for place in (first, second)}
    assert names(store) == [
        MARKER, "metrics/r1~a.parquet", "metrics/r2~a.parquet",
        *(f"{of[run_id]}/{name}" for run_id in of for name in ("kept.json", "report.html", "summary.json")),
    ]  # fmt: skip
    assert not vault.path.exists()


def test_the_directory_of_the_machine_is_for_its_owner_alone(vault: StoreVault, tmp_path: Path) -> None:
    with place_of(vault, tmp_path).held():
        assert stat.S_IMODE(vault.path.stat().st_mode) == 0o700
    vault.path.symlink_to(tmp_path)
    try:
        with pytest.raises(ConfigError, match="where a link is"), place_of(vault, tmp_path).held():
            pass
    finally:
        vault.path.unlink()


def test_what_a_failed_attempt_left_is_by_itself_and_goes_a_day_later(
    vault: StoreVault, store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = place_of(vault, tmp_path)

    def fail() -> None:
        with place.held():
            (place.private / "decisions").mkdir()
            (place.private / "decisions" / "part-a").write_text("of the first attempt")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    marker, left = names(store)
    assert marker == MARKER
    assert left == f"runs/{place.slug}/{place.attempt}/decisions/part-a", "to be looked at"
    again = place_of(StoreVault(vault.location), tmp_path)
    run(again, **{"decisions__part-b": "of the second"})
    assert again.left("decisions/part-a") is None
    assert again.left("decisions/part-b") == b"of the second"
    assert left in names(store)
    later = time.time() + 25 * 3600
    monkeypatch.setattr(StoreVault, "_now", lambda _: later)
    again.settle(json.loads(again.output.read("r1", "manifest.json") or b""))
    assert left not in names(store)
    assert again.left("decisions/part-b") == b"of the second"


def test_of_two_attempts_at_once_that_one_counts_which_published(
    vault: StoreVault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On two machines, of a table that changed between: who comes late publishes nothing and spoils nothing."""
    early, late = (place_of(StoreVault(vault.location), tmp_path) for _ in range(2))
    run(early, "one", **{"report.html": "of the first", "request.json": "{}"})
    commit = LocalOutput.commit

    def lost(*_: object) -> None:
        raise CheckError("another attempt has published another release")

    monkeypatch.setattr(LocalOutput, "commit", lost)
    with pytest.raises(CheckError):
        run(late, "two", **{"report.html": "of the second"})
    monkeypatch.setattr(LocalOutput, "commit", commit)
    for place in (early, late, place_of(StoreVault(vault.location), tmp_path)):
        assert place.left("report.html") == b"of the first"


def test_a_run_that_finds_its_release_there_leaves_what_it_left_before(
    vault: StoreVault, store: ObjectStore, tmp_path: Path
) -> None:
    run(place_of(vault, tmp_path), **{"report.html": "exact"})
    before = names(store)
    with place_of(StoreVault(vault.location), tmp_path).held():
        pass
    assert names(store) == before


def test_all_is_kept_before_anything_is_published(
    vault: StoreVault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = place_of(vault, tmp_path)

    def commit(*_: object) -> None:
        of = f"runs/{place.slug}/{place.attempt}"
        assert vault.read(f"{of}/report.html") == b"exact"
        assert vault.read(f"{of}/kept.json") is not None
        raise KeyboardInterrupt

    monkeypatch.setattr(LocalOutput, "commit", commit)
    with pytest.raises(KeyboardInterrupt):
        run(place, **{"report.html": "exact"})


def test_a_store_that_fails_at_the_end_changes_no_error(
    vault: StoreVault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def no_answer(*_: object) -> None:
        raise StorageError("no answer in time")

    def fail() -> None:
        with place_of(vault, tmp_path).held():
            (vault.path / "report.html").write_text("exact")
            monkeypatch.setattr(ObjectStore, "upload", no_answer)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert "not all that the run leaves could be kept. no answer in time" in caplog.text
    assert not vault.path.exists()


def test_nothing_is_published_that_could_not_be_kept(
    vault: StoreVault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_answer(*_: object) -> None:
        raise StorageError("no answer in time")

    monkeypatch.setattr(ObjectStore, "upload", no_answer)
    place = place_of(vault, tmp_path)
    with pytest.raises(StorageError):
        run(place, **{"report.html": "exact"})
    assert place.published() is None


def remembered(place: Workplace, directory: Path, digest: str, parts: int = 2) -> None:
    records = directory / digest / "records"
    records.mkdir(parents=True)
    for part in range(parts):
        (records / f"part-{part}").write_text(digest)
    known = {"run_id": "r1", "date": "2026-01-31", "lineage": "census", "record_id": "id", "hierarchies": []}
    place.remember(directory / digest, {**known, "manifest": digest * 16})


def test_attempts_that_remember_at_once_never_mix_their_records(vault: StoreVault, tmp_path: Path) -> None:
    """Until it is known which was published both count; then that one does."""
    place = place_of(vault, tmp_path)
    remembered(place, tmp_path, "aaaa", 3)
    remembered(place, tmp_path, "bbbb", 2)
    with pytest.raises(ConfigError, match=r"history.0: '.*' has lost the key of its history"):
        earlier_releases(SimpleNamespace(output=None, history=(str(vault),)), own=None)  # type: ignore[arg-type]
    assert history_key(vault.keys, draw=True) == history_key(vault.keys, draw=True)

    def known() -> dict[str, list[bytes]]:
        policy: Any = SimpleNamespace(output=None, history=(str(vault),))
        store = ObjectStore(Location("s3", BUCKET, ""))
        return {
            one.manifest[:4]: [store.read(entry.name).content for entry in store.entries(one.parts.path)]
            for one in earlier_releases(policy, own=None)
        }

    assert known() == {"aaaa": [b"aaaa"] * 3, "bbbb": [b"bbbb"] * 2}
    vault.settle(place.slug, "bbbb" * 16)
    assert known() == {"bbbb": [b"bbbb"] * 2}
    vault.settle(place.slug, "cccc" * 16)
    assert set(known()) == {"aaaa", "bbbb"}, "what is not known is not forgotten"


def test_what_dead_runs_left_goes_after_a_day_and_what_is_named_stays(
    vault: StoreVault, store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault.claim()
    for name in ("scratch/dead~1/part", "history/r0~a/records-old/part", "history/r0~a/records-new/part"):
        store.write(name, b"values")
    store.write("history/r0~a/release-ab.json", json.dumps({"records": "records-new"}).encode())
    store.write("history/r9~a/records/part", b"of a directory that was copied here")
    store.write("status/r1.json", b"{}")
    store.write("status/r1.spark.log", b"values")
    bucket = ObjectStore(Location("s3", BUCKET, uuid4().hex))
    elsewhere = ObjectStore(bucket.location.below("scratch-r1~a"))
    elsewhere.write("part", b"values")
    bucket.write("other/part", b"of somebody else")
    vault.note_scratch(".scratch-r1~a", elsewhere.location)
    store.write("scratch-elsewhere/.scratch-r2~a.json", json.dumps({"scratch": str(bucket.location)}).encode())
    store.write("scratch-elsewhere/.scratch-r3~a.json", b"{")
    vault.note_scratch(".scratch-r1~b", vault.location.below("scratch/scratch-r1~b"))
    notes = [f"scratch-elsewhere/.scratch-r{number}~a.json" for number in (1, 2, 3)]
    assert [name for name in names(store) if "elsewhere" in name] == notes
    before = names(store)
    with place_of(vault, tmp_path).held():
        assert names(store) == before, "somebody may be at work there"
        assert names(elsewhere) == ["part"]
    later = time.time() + 25 * 3600
    monkeypatch.setattr(StoreVault, "_now", lambda _: later)
    with place_of(vault, tmp_path).held():
        pass
    assert names(store) == [
        MARKER,
        "history/r0~a/records-new/part", "history/r0~a/release-ab.json", "history/r9~a/records/part", *notes[1:],
        "status/r1.json",
    ]  # fmt: skip
    assert names(bucket) == ["other/part"], "what a damaged note names is not removed"


def test_the_time_is_that_of_the_store(vault: StoreVault, store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine whose clock is a week ahead takes nobody for dead."""
    vault.claim()
    store.write("scratch/live~1/part", b"values")
    ahead = time.time() + 7 * 24 * 3600
    monkeypatch.setattr(vaults.time, "time", lambda: ahead)
    with vault.held("r1~0", "a"):
        assert "scratch/live~1/part" in names(store)


def _draw(uri: str, barrier, results) -> None:
    keys = vault_at(uri).keys
    barrier.wait()
    results.put(release_key(keys, "r", lineage="census"))


def test_machines_that_draw_at_once_get_one_key(vault: StoreVault) -> None:
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(3), context.Queue()
    workers = [context.Process(target=_draw, args=(str(vault), barrier, results)) for _ in range(3)]
    for worker in workers:
        worker.start()
    keys = {results.get(timeout=60) for _ in workers}
    for worker in workers:
        worker.join(timeout=60)
    assert keys == {release_key(vault.keys, "r", lineage="census", draw=False)}


def make_bucket_with_versions(endpoint: str, name: str) -> None:
    enabled = "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>"
    for request, body in ((f"/{name}", None), (f"/{name}?versioning", enabled)):
        connection = http.client.HTTPConnection(endpoint.removeprefix("http://"), timeout=20)
        connection.request("PUT", request, body=body)
        assert connection.getresponse().status == http.HTTPStatus.OK
        connection.close()


def test_no_key_is_drawn_where_it_could_not_be_destroyed(endpoint: str) -> None:
    name = f"versions-{uuid4().hex[:8]}"
    make_bucket_with_versions(endpoint, name)
    kept = vault_at(f"s3://{name}/vault")
    with pytest.raises(ConfigError, match="keeps earlier versions, so that a drawn key could not be destroyed"):
        release_key(kept.keys, "r")
    assert list(ObjectStore(kept.location).entries()) == []
    pin_snapshot(kept.keys, "r", "3-ab")  # no secret
    os.environ["RELEASE_KEY_OF_TEST"] = "0f" * 32
    try:
        assert release_key(kept.keys, "r", reference="env:RELEASE_KEY_OF_TEST") == b"\x0f" * 32
    finally:
        del os.environ["RELEASE_KEY_OF_TEST"]


def test_a_destroyed_key_is_nowhere_in_the_store(vault: StoreVault, store: ObjectStore) -> None:
    release_key(vault.keys, "r")
    pin_snapshot(vault.keys, "r", "3-ab")
    assert destroy_key(vault.keys, "r")
    assert names(store) == []


def test_an_output_and_a_vault_of_a_store_are_looked_at_alike(vault: StoreVault) -> None:
    record_witness(vault, Witness("census", "r1", "/out", 2, "ab"))
    assert look(ObjectOutput(vault.location)).witnesses == look(vault).witnesses
    assert len(look(vault).witnesses) == 1


def test_key_to_remember_of_a_vault_that_lost_it_is_refused_and_not_drawn_again(either: Vault, tmp_path: Path) -> None:
    place = place_of(either, tmp_path)
    with place.held():
        first = key_to_remember(either.location)
        assert key_to_remember(either.location) == first
        records = place.scratch / "remembered"
        (records / "records").mkdir(parents=True)
        (records / "records" / "part-0").write_text("digests")
        place.remember(records, {"manifest": "d" * 64})
        assert key_to_remember(either.location) == first
        open_store(either.location).remove("keys/~history.key")
        with pytest.raises(ConfigError, match=r"output.vault: '.*' has lost the key of its history"):
            key_to_remember(either.location)


def test_forget_in_a_store_removes_the_log_of_spark(vault: StoreVault, store: ObjectStore) -> None:
    store.write("status/r1.json", b"{}")
    store.write("status/r1.spark.log", b"values")
    vault.forget("r1~abcdef01")
    assert names(store) == ["status/r1.json"]


def test_claim_that_makes_nothing_leaves_an_empty_store_empty(vault: StoreVault, store: ObjectStore) -> None:
    vault.claim(make=False)
    assert names(store) == []
    vault.claim()
    assert names(store) == [MARKER]
