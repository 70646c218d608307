"""The commit to a store that nobody can lock: two attempts in any order, and a stop before every request."""

from __future__ import annotations

import datetime as dt
import hashlib
import itertools
import json
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from random import Random
from typing import IO, Any
from uuid import uuid4

import policies
import pytest

from benchmarks.s3_server import BUCKET
from privrisk_spark.errors import CheckError
from privrisk_spark.pipelines import withdrawal
from privrisk_spark.policy.reading import parse
from privrisk_spark.runs.object_output import ObjectOutput
from privrisk_spark.runs.sealing import release_digest, sealed, verify_files
from privrisk_spark.storage.locations import Location, locate
from privrisk_spark.storage.opening import open_store
from privrisk_spark.storage.ownership import MARKER
from privrisk_spark.storage.store import Entry, Store, Stored

PLACE = Location("s3", "bucket", "out")

Files = dict[str, bytes]
Staged = tuple[Path, dict[str, Any]]


class Killed(BaseException):
    """Stands for a process that ends between two requests."""


class Simulated:
    """A store in memory, shared by attempts, which asks before every request."""

    location = PLACE

    def __init__(self, files: Files, before: Callable[[], None] = lambda: None) -> None:
        self.files, self.before = files, before

    def read(self, name: str) -> Stored:
        self.before()
        if name not in self.files:
            raise FileNotFoundError(name)
        return Stored(self.files[name], hashlib.sha256(self.files[name]).hexdigest())

    def create(self, name: str, content: bytes) -> bool:
        self.before()
        return self.files.setdefault(name, content) == content

    def replace(self, name: str, content: bytes, version: str) -> bool:
        self.before()
        now = self.files.get(name)
        if now is None or (now != content and hashlib.sha256(now).hexdigest() != version):
            return False
        self.files[name] = content
        return True

    def write(self, name: str, content: bytes) -> None:
        self.before()
        self.files[name] = content

    def upload(self, name: str, source: Path) -> None:
        self.write(name, source.read_bytes())

    def download(self, name: str, target: Path) -> None:
        target.write_bytes(self.read(name).content)

    def open(self, name: str) -> IO[bytes]:
        return BytesIO(self.read(name).content)

    def find(self, name: str) -> Entry | None:
        self.before()
        return Entry(name, len(self.files[name]), 0.0) if name in self.files else None

    def entries(self, below: str = "") -> Iterator[Entry]:
        self.before()
        for name in sorted(self.files):
            if not below or name.startswith(f"{below}/"):
                yield Entry(name, len(self.files[name]), 0.0)

    def remove(self, *names: str) -> None:
        self.before()
        for name in names:
            self.files.pop(name, None)


class Output(ObjectOutput):
    """An output in a simulated store."""

    def __init__(self, store: Store) -> None:
        super().__init__(PLACE)
        object.__setattr__(self, "simulated", store)

    @property
    def _store(self) -> Store:
        return self.simulated


def facts(name: str, content: bytes) -> dict[str, Any]:
    return {"name": name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def staged(directory: Path, run_id: str, content: str, files: int = 2) -> Staged:
    """A release of some files, put together."""
    staging = directory / f"{run_id}-{content}-{files}"
    (staging / "data").mkdir(parents=True)
    (staging / "report.html").write_text(f"<p>{content}")
    entries = []
    for number in range(files):
        name, text = f"part-{number:05d}.parquet", f"{content} {number}"
        (staging / "data" / name).write_text(text)
        entries.append(facts(name, text.encode()))
    data = {"path": f"releases/{run_id}/data", "files": entries}
    return staging, sealed({"run_id": run_id, "date": "2026-01-31", "data": data}, staging)


def digests_of(*releases: Staged) -> dict[str, set[str]]:
    made: dict[str, set[str]] = {}
    for _, manifest in releases:
        made.setdefault(manifest["run_id"], set()).add(release_digest(manifest))
    return made


def check(files: Files, made: dict[str, set[str]]) -> None:
    """Hold what anybody can see at this moment against what the attempts make."""
    current = json.loads(files["manifest.json"]) if "manifest.json" in files else None
    own = {name.split("/")[1]: json.loads(text) for name, text in files.items() if name.endswith("/manifest.json")}
    for manifest in (*own.values(), *([] if current is None else [current])):
        run_id = manifest["run_id"]
        assert release_digest(manifest) in made[run_id]
        below = f"releases/{run_id}/"
        there = {name.removeprefix(below): content for name, content in files.items() if name.startswith(below)}
        verify_files(manifest, run_id, there, lambda name, there=there: facts(name, there[name]))
    numbers = {manifest["sequence"] for manifest in own.values()}
    assert len(numbers) == len(own), "a number is given once"
    if own:
        assert current is not None
        assert current["sequence"] >= max(numbers)
        if current["run_id"] in own:
            assert own[current["run_id"]] == current


class Turns:
    """Two attempts in threads, of which one makes a request at a time."""

    def __init__(self, files: Files, attempts: list[Callable[[Store], Any]]) -> None:
        self.files = files
        self.gates = [threading.Semaphore(0) for _ in attempts]
        self.arrived = threading.Semaphore(0)
        self.ended: list[Any] = [None] * len(attempts)
        self.running = [True] * len(attempts)
        self.threads = [
            threading.Thread(target=self._run, args=(i, one), daemon=True) for i, one in enumerate(attempts)
        ]

    def _run(self, i: int, attempt: Callable[[Store], Any]) -> None:
        def wait() -> None:
            self.arrived.release()
            self.gates[i].acquire()

        try:
            self.ended[i] = attempt(Simulated(self.files, wait))
        except Exception as error:
            self.ended[i] = error
        finally:
            self.running[i] = False
            self.arrived.release()

    def play(self, order: Iterable[int], after: Callable[[], None]) -> None:
        """Let them act in an order, and then what is left of each to its end."""
        for thread in self.threads:
            thread.start()
            self.arrived.acquire()
        rest = (i for i in range(len(self.threads)) for _ in iter(lambda i=i: self.running[i], False))
        for i in itertools.chain(order, rest):
            if self.running[i]:
                self.gates[i].release()
                self.arrived.acquire()
                after()
        for thread in self.threads:
            thread.join()


def orders() -> Iterator[list[int]]:
    """One acts a while, then the other, then the first to its end: all of them; and some that change more often."""
    for first, second in itertools.product(range(17), range(1, 17)):
        yield [0] * first + [1] * second + [0] * 30
    random = Random(20260131)
    for _ in range(60):
        yield [who for _ in range(12) for who in [random.randrange(2)] * random.randrange(1, 5)]


@pytest.mark.parametrize("older", [False, True])
@pytest.mark.parametrize("case", ["two runs", "one run twice", "one run id, two releases"])
def test_whoever_comes_between_two_attempts_each_release_is_whole(case: str, older: bool, tmp_path: Path) -> None:
    first, old = staged(tmp_path, "a", "one"), staged(tmp_path, "old", "old")
    other = staged(tmp_path, "b" if case == "two runs" else "a", "two", files=3)
    second = first if case == "one run twice" else other
    made = digests_of(first, second, old)
    before: Files = {}
    if older:
        Output(Simulated(before)).commit("old", *old)

    def attempt(of: Staged) -> Callable[[Store], Any]:
        return lambda store: Output(store).commit(of[1]["run_id"], *of)

    won = set()
    for order in orders():
        files = dict(before)
        turns = Turns(files, [attempt(first), attempt(second)])
        turns.play(order, lambda files=files: check(files, made))
        assert not [name for name in files if name.startswith(".publishing")], "no claim stays"
        refused = [isinstance(ended, CheckError) for ended in turns.ended]
        if case == "one run id, two releases":
            assert sorted(refused) == [False, True]
            won.add(refused.index(False))
            continue
        assert refused == [False, False]
        if case == "one run twice":
            assert turns.ended[0] == turns.ended[1]
        else:
            assert sorted(ended["sequence"] for ended in turns.ended) == ([2, 3] if older else [1, 2])
    assert case != "one run id, two releases" or won == {0, 1}


def test_an_attempt_that_comes_late_does_not_publish_again_what_another_replaced_meanwhile(tmp_path: Path) -> None:
    first, other = staged(tmp_path, "a", "one"), staged(tmp_path, "b", "two")
    made = digests_of(first, other)

    def attempt(of: Staged) -> Callable[[Store], Any]:
        return lambda store: Output(store).commit(of[1]["run_id"], *of)

    for waits in range(25):
        files: Files = {}
        turns = Turns(files, [attempt(first), attempt(first), attempt(other)])
        turns.play([0] * waits + [1] * 40 + [2] * 40 + [0] * 40, lambda files=files: check(files, made))
        assert turns.ended[0] == turns.ended[1]
        assert {ended["sequence"] for ended in turns.ended} == {1, 2}


@pytest.mark.parametrize(
    "by", ["another run", "another run at work", "the same", "the same run id with another release"]
)
def test_stopped_before_any_request_the_next_run_finds_all_or_nothing(by: str, tmp_path: Path) -> None:
    dead, old = staged(tmp_path, "a", "one", files=3), staged(tmp_path, "old", "old")
    after = dead if by == "the same" else staged(tmp_path, "b" if by.startswith("another run") else "a", "two")
    made = digests_of(dead, old, after)
    run_id, ends = after[1]["run_id"], set()
    for stop in itertools.count(1):
        files: Files = {}
        Output(Simulated(files)).commit("old", *old)
        left = [stop]

        def count(left: list[int] = left) -> None:
            left[0] -= 1
            if not left[0]:
                raise Killed

        with suppress(Killed):
            Output(Simulated(files, count)).commit("a", *dead)
        check(files, made)
        seen = json.loads(files["manifest.json"])["run_id"] == "a"
        output = Output(Simulated(files))
        # A run that is at work has looked before.
        found = None if by == "another run at work" else output.published(run_id)
        if run_id == "a":
            assert (found is not None) == seen, "what the whole place shows is published"
        if found is not None:
            ends.add("was there")
        else:
            refused = by == "the same run id with another release" and ".publishing/a.json" in files
            if refused:
                with pytest.raises(CheckError, match=r"remove 's3://bucket/out/.publishing/a.json' and run again"):
                    output.commit(run_id, *after)
                del files[".publishing/a.json"]
            output.commit(run_id, *after)
            ends.add("refused first" if refused else "published")
        check(files, made)
        if run_id == "a":
            assert not [name for name in files if name.startswith(".publishing")], "no claim stays"
        if seen:
            assert "releases/a/manifest.json" in files
        if left[0] > 0:
            break
    assert stop > 8
    expected = {
        "another run": {"published"},
        "another run at work": {"published"},
        "the same": {"published", "was there"},
        "the same run id with another release": {"published", "refused first", "was there"},
    }
    assert ends == expected[by]


def test_what_was_withdrawn_is_not_brought_back_and_may_be_published_anew(tmp_path: Path) -> None:
    files: Files = {}
    output = Output(Simulated(files))
    output.commit("b", *staged(tmp_path, "b", "two"))
    output.commit("a", *staged(tmp_path, "a", "one"))

    def withdraw() -> None:
        for name in [name for name in files if name.startswith("releases/a/")]:
            del files[name]

    withdraw()
    assert output.published("a") is None
    assert output.published("b") is not None
    assert not [name for name in files if name.startswith("releases/a/")]
    other = staged(tmp_path, "a", "other")
    assert output.commit("a", *other)["sequence"] == 3
    withdraw()
    again = output.commit("a", *other)
    assert output.published("a") == again, "all its files are there"


def test_a_manifest_of_the_place_that_is_lost_or_old_is_mended(tmp_path: Path) -> None:
    files: Files = {}
    output = Output(Simulated(files))
    output.commit("a", *staged(tmp_path, "a", "one"))
    first = files["manifest.json"]
    output.commit("b", *staged(tmp_path, "b", "two"))
    latest = files["manifest.json"]
    for damaged in (None, first):
        files.pop("manifest.json")
        if damaged is not None:
            files["manifest.json"] = damaged
        assert output.published("a") is not None
        assert files["manifest.json"] == latest
    del files["manifest.json"]
    assert output.commit("c", *staged(tmp_path, "c", "three"))["sequence"] == 3
    assert [run_id for run_id, _ in output.manifests()] == ["a", "b", "c"]
    files["manifest.json"] = b"{"
    with pytest.raises(CheckError, match=r"'s3://bucket/out/manifest.json' is damaged"):
        output.published("a")


def test_what_was_changed_after_publication_is_not_believed(tmp_path: Path) -> None:
    files: Files = {}
    Output(Simulated(files)).commit("a", *staged(tmp_path, "a", "one"))
    name = "releases/a/data/part-00001.parquet"
    lost = {other: content for other, content in files.items() if other != name}
    for changed, said in (
        ({**files, name: b"one 7"}, r"part-00001.parquet' is not the file that was published"),
        (lost, r"part-00001.parquet' is missing"),
        ({**files, "releases/a/data/more": b""}, "was added"),
    ):
        with pytest.raises(CheckError, match=rf"'s3://bucket/out/releases/a' was changed after publication.*{said}"):
            Output(Simulated(changed)).published("a")


def test_releases_of_a_real_store(endpoint: str, tmp_path: Path) -> None:
    place = locate(f"s3a://{BUCKET}/{uuid4().hex}/out", key="output.path")
    output = ObjectOutput(place)
    with output.held():
        assert output.published("a") is None
        one = output.commit("a", *staged(tmp_path, "a", "one"))
    two = ObjectOutput(place).commit("b", *staged(tmp_path, "b", "two"))
    assert (one["sequence"], two["sequence"]) == (1, 2)
    assert output.current() == two
    assert output.published("a") == one
    assert output.read("a", "report.html") == b"<p>one"
    assert output.read("a", "none") is None
    assert str(output.of("a")) == f"{place}/releases/a"
    store = open_store(place)
    assert [entry.name for entry in store.entries() if entry.name.startswith(".")] == [MARKER]
    store.write("releases/dead/data/part-00000.parquet", b"")
    assert output.without_manifest("a") == ["dead"]


@pytest.mark.parametrize("alone", [False, True])
def test_withdraw_stopped_before_any_request_is_completed_by_the_next_run_or_call(tmp_path: Path, alone: bool) -> None:
    first, second, third = (staged(tmp_path, name, name) for name in ("a", "b", "c"))
    before: Files = {}
    for one in [second] if alone else [first, second]:
        Output(Simulated(before)).commit(one[1]["run_id"], *one)
    number = json.loads(before["manifest.json"])["sequence"]
    today = dt.date(2026, 2, 1)
    for stop in itertools.count():
        files = dict(before)
        left = iter(range(stop))

        def tick(left: Iterator[int] = left) -> None:
            if next(left, None) is None:
                raise Killed

        with suppress(Killed):
            Output(Simulated(files, tick)).withdraw("b", today)
        completed = next(left, None) is not None
        stopped = dict(files)
        for again in (lambda one: one.withdraw("b", today), lambda one: one.published("other")):
            files = dict(stopped)
            again(Output(Simulated(files)))
            if "withdrawn/b.json" not in files:
                assert files == before, "nothing was withdrawn yet"
                continue
            assert not [name for name in files if name.startswith("releases/b/")]
            current = json.loads(files["manifest.json"]) if "manifest.json" in files else None
            assert (None if current is None else current["run_id"]) == (None if alone else "a")
            check(files, digests_of(first, third))
            Output(Simulated(files)).commit("c", *third)
            assert json.loads(files["manifest.json"])["sequence"] == number + 1, "no number is given twice"
            stone = json.loads(files["withdrawn/b.json"])
            assert (stone["sequence"], stone["release_digest"]) == (number, release_digest(second[1]))
            with pytest.raises(CheckError, match="run id b was withdrawn"):
                Output(Simulated(files)).commit("b", *second)
        if completed:
            break
    assert stop > 5


def test_withdraw_of_a_release_that_is_current_and_has_no_manifest_of_its_own_removes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files: Files = {}
    Output(Simulated(files)).commit("a", *staged(tmp_path, "a", "one"))

    def stop() -> None:
        if json.loads(files["manifest.json"])["run_id"] == "b":
            raise Killed

    with pytest.raises(Killed):
        Output(Simulated(files, stop)).commit("b", *staged(tmp_path, "b", "two"))
    assert "releases/b/manifest.json" not in files
    monkeypatch.setattr(withdrawal, "output_at", lambda _path: Output(Simulated(files)))
    policy = parse(
        policies.changed(policies.RISK, ("output", {"path": "s3://bucket/out", "vault": str(tmp_path / "vault")}))
    )
    done = withdrawal.withdraw(policy, "b", reason="x", today=dt.date(2026, 2, 1))
    assert done.fresh
    assert not [name for name in files if name.startswith("releases/b/")]
    assert json.loads(files["manifest.json"])["run_id"] == "a"


def test_release_that_is_withdrawn_while_the_manifest_of_the_place_is_mended_does_not_come_back(tmp_path: Path) -> None:
    files: Files = {}
    Output(Simulated(files)).commit("a", *staged(tmp_path, "a", "one"))
    del files["manifest.json"]

    class Overtaken(Output):
        def _sound(self) -> list[dict[str, Any]]:
            found = super()._sound()
            Output(Simulated(files)).withdraw("a", dt.date(2026, 2, 1))
            return found

    Overtaken(Simulated(files)).published("other")
    assert "withdrawn/a.json" in files
    assert "manifest.json" not in files


def test_release_that_is_committed_while_the_last_one_is_withdrawn_is_current(tmp_path: Path) -> None:
    files: Files = {}
    Output(Simulated(files)).commit("a", *staged(tmp_path, "a", "one"))
    other = staged(tmp_path, "b", "two")

    class Overtaken(Simulated):
        def remove(self, *names: str) -> None:
            if names == ("manifest.json",) and "releases/b/manifest.json" not in files:
                Output(Simulated(files)).commit("b", *other)
            super().remove(*names)

    Output(Overtaken(files)).withdraw("a", dt.date(2026, 2, 1))
    assert json.loads(files["manifest.json"])["run_id"] == "b"


def test_commit_whose_manifest_of_the_place_a_withdrawal_removed_restores_it(tmp_path: Path) -> None:
    files: Files = {}
    removed = iter([True])

    def remove() -> None:
        if "manifest.json" in files and next(removed, False):
            del files["manifest.json"]

    made = Output(Simulated(files, remove)).commit("b", *staged(tmp_path, "b", "two"))
    assert json.loads(files["manifest.json"]) == made
