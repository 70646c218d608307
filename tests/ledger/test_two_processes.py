"""Two real processes under one run id and one ledger, with outputs and vaults of their own: one release, one charge."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest
from attempts import STOPS, Asked, run_attempt, shown_under
from ledgers import InFile, OnServer

from privrisk_spark.ledger.ledger import Ledger
from privrisk_spark.runs.local_output import LocalOutput
from privrisk_spark.runs.sealing import release_digest
from privrisk_spark.runs.vaults import DirectoryVault
from privrisk_spark.runs.workplace import Workplace

Place = InFile | OnServer
CONTEXT = multiprocessing.get_context("spawn")


def together(*asked: Asked) -> list[str]:
    """Start attempts at once; return how each ended."""
    barrier, results = CONTEXT.Barrier(len(asked)), CONTEXT.Queue()
    workers = [CONTEXT.Process(target=run_attempt, args=(one, barrier, results)) for one in asked]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(timeout=120)
    killed = [asked[i].root for i, worker in enumerate(workers) if worker.exitcode != 0]
    ended = dict(results.get(timeout=60) for _ in range(len(workers) - len(killed)))
    return [ended.get(one.root, "killed") for one in asked]


def only_release(ledger: Ledger, roots: list[Path], run_id: str) -> None:
    """Whatever is visible is one release, and the one the ledger has."""
    (run,) = [run for run in ledger.balance("adult").runs if run.run_id == run_id]
    shown = [found for root in roots if (found := shown_under(root, run_id)) is not None]
    assert len(shown) == 1, "exactly one"
    ((where, manifest),) = shown
    assert (run.state, run.counted, run.place, run.release) == ("committed", True, where, release_digest(manifest))


def test_one_of_two_releases_and_the_other_is_refused(ledger: Ledger, place: Place, tmp_path: Path):
    roots = [tmp_path / "a", tmp_path / "b"]
    for number in range(3):
        ended = together(*(Asked(place.url, str(root), f"r{number}") for root in roots))
        assert sorted(end.split(":")[0] for end in ended) == ["refused", "released"], ended
        only_release(ledger, roots, f"r{number}")
    assert ledger.balance("adult").spent_epsilon == 3
    # Each again, one after the other: the release is found, and nobody makes another.
    ended = [together(Asked(place.url, str(root), "r0"))[0] for root in roots]
    assert sorted(end.split(":")[0] for end in ended) == ["already released", "refused"], ended
    only_release(ledger, roots, "r0")
    assert ledger.balance("adult").spent_epsilon == 3


@pytest.mark.parametrize("stop", STOPS)
def test_a_killed_process_leaves_its_run_to_itself(ledger: Ledger, place: Place, tmp_path: Path, stop: str):
    """SIGKILL before a step; then somebody else tries with other places, then the first again."""
    roots = [tmp_path / "a", tmp_path / "b"]
    assert together(Asked(place.url, str(roots[0]), "r1", stop=stop)) == ["killed"]
    other = together(Asked(place.url, str(roots[1]), "r1"))[0]
    again = together(Asked(place.url, str(roots[0]), "r1"))[0]
    if stop in ("reserve", "obtain", "bind"):
        assert (other, again.split(":")[0]) == ("released", "refused"), "nothing was held yet: the next one is"
    else:
        assert (other.split(":")[0], again.split(" ")[-1]) == ("refused", "released")
    only_release(ledger, roots, "r1")
    assert ledger.balance("adult").spent_epsilon == 1
    finished = roots[1] if other == "released" else roots[0]
    assert not list((finished / "vault" / "keys").glob("*.key")), "the key is destroyed"


def test_a_vault_that_is_lost_loses_the_run_and_not_the_guarantee(ledger: Ledger, place: Place, tmp_path: Path):
    assert together(Asked(place.url, str(tmp_path / "a"), "r1", stop="show")) == ["killed"]
    for key in (tmp_path / "a" / "vault" / "keys").iterdir():
        key.unlink()
    ended = together(Asked(place.url, str(tmp_path / "a"), "r1"))[0]
    assert ended.startswith("refused: run id r1 was begun with a key that is not in output.vault")
    assert (
        Workplace(LocalOutput(tmp_path / "a" / "out"), DirectoryVault(tmp_path / "a" / "vault"), "r1").published()
        is None
    )


def test_no_key_is_in_the_ledger(ledger: Ledger, place: Place, tmp_path: Path):
    assert together(Asked(place.url, str(tmp_path / "a"), "r1", stop="commit")) == ["killed"]
    (key,) = (tmp_path / "a" / "vault" / "keys").glob("*.key")
    secret = key.read_bytes()
    stored = str(place.run("SELECT * FROM events")).encode()
    assert secret.hex().encode() not in stored
    assert secret.hex().upper().encode() not in stored
    (run,) = ledger.balance("adult").runs
    assert run.key is not None
    assert bytes.fromhex(run.key) != secret
    if isinstance(place, InFile):
        assert secret not in place.path.read_bytes()
