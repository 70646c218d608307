from __future__ import annotations

import errno
import multiprocessing
import os
import stat
from pathlib import Path

import pytest

from privrisk_spark.errors import BudgetError, EngineError, InputError
from privrisk_spark.kernels.random.keyed import derive_key
from privrisk_spark.runs.keystore import destroy_key, key_commitment, pin_snapshot, release_key
from privrisk_spark.storage import key_files

SECRET = "0123456789abcdefABCDEF9876543210" * 2


def test_a_key_is_drawn_once_and_kept_private(tmp_path: Path):
    old = os.umask(0)
    try:
        key = release_key(tmp_path / "vault", "adult-2026-11")
    finally:
        os.umask(old)
    file = tmp_path / "vault" / "keys" / "adult-2026-11.key"
    assert len(key) == 32
    assert release_key(str(tmp_path / "vault"), "adult-2026-11") == key == file.read_bytes()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(file.parent.parent.stat().st_mode) == 0o700
    assert [entry.name for entry in file.parent.iterdir()] == ["adult-2026-11.key"]


def test_each_run_has_its_own_key(tmp_path: Path):
    assert release_key(tmp_path, "a") != release_key(tmp_path, "b")


def test_the_key_is_on_disk_before_it_is_returned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    synced = []
    real = os.fsync
    monkeypatch.setattr(key_files.os, "fsync", lambda handle: (synced.append(os.fstat(handle).st_mode), real(handle)))
    release_key(tmp_path, "r")
    assert [stat.S_ISDIR(mode) for mode in synced] == [False, True]


def _draw(vault: str, barrier, results) -> None:
    barrier.wait()
    results.put(release_key(vault, "r"))


def test_processes_that_draw_at_once_get_one_key(tmp_path: Path):
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(4), context.Queue()
    workers = [context.Process(target=_draw, args=(str(tmp_path), barrier, results)) for _ in range(4)]
    for worker in workers:
        worker.start()
    keys = {results.get(timeout=60) for _ in workers}
    for worker in workers:
        worker.join(timeout=60)
    assert keys == {release_key(tmp_path, "r")}


def test_a_key_by_reference_is_that_key_and_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RELEASE_KEY", SECRET)
    (tmp_path / "secret").write_text(SECRET + "\n")
    vault = tmp_path / "vault"
    assert release_key(vault, "r", reference="env:RELEASE_KEY") == bytes.fromhex(SECRET)
    assert release_key(vault, "r", reference=f"file:{tmp_path}/secret") == bytes.fromhex(SECRET)
    assert not vault.exists()


@pytest.mark.parametrize("reference", ["", SECRET, "env:", "file:", f"key:{SECRET}", f"hex:{SECRET}", "ENV:X"])
def test_another_form_of_reference_is_refused_without_echo(tmp_path: Path, reference: str):
    with pytest.raises(InputError, match=r"guarantee\.key must be env:NAME or file:PATH") as caught:
        release_key(tmp_path, "r", reference=reference)
    assert SECRET not in str(caught.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("text", [SECRET[:-1], SECRET + "0", "canary-" * 9 + "x", "", SECRET[:-1] + "g", "é" * 64])
def test_a_bad_secret_is_refused_without_echo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str):
    monkeypatch.setenv("RELEASE_KEY", text)
    (tmp_path / "secret").write_text(text, encoding="utf-8")
    for reference in ("env:RELEASE_KEY", f"file:{tmp_path}/secret"):
        with pytest.raises(InputError, match=r"guarantee\.key") as caught:
            release_key(tmp_path / "vault", "r", reference=reference)
        shown = f"{caught.value} {caught.value.__cause__!r}"
        assert not text or text[:8] not in shown
        assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize("reference", [f"env:{SECRET}", f"file:{SECRET}", f"file:/{SECRET}", f"env:A{SECRET}"])
def test_a_key_pasted_where_its_name_belongs_is_not_shown(tmp_path: Path, reference: str):
    with pytest.raises(InputError) as caught:
        release_key(tmp_path, "r", reference=reference)
    assert SECRET not in f"{caught.value} {caught.value.__cause__!r}"


@pytest.mark.parametrize("run_id", ["", "../r", "a/b", ".hidden", "a\0b", "a b", "x" * 201, "-rf", "ä"])
def test_a_run_id_cannot_leave_the_key_directory(tmp_path: Path, run_id: str):
    for act in (release_key, destroy_key):
        with pytest.raises(InputError, match="the run id must be"):
            act(tmp_path / "vault", run_id)
    assert not list(tmp_path.iterdir())


def test_a_scheduler_run_id_is_a_run_id(tmp_path: Path):
    assert release_key(tmp_path, "scheduled__2026-11-01T00:00:00+00:00")


def test_a_damaged_key_is_refused_and_not_replaced(tmp_path: Path):
    release_key(tmp_path, "r")
    file = tmp_path / "keys" / "r.key"
    for content in (b"", b"x" * 31, b"x" * 33):
        file.write_bytes(content)
        with pytest.raises(EngineError, match="key file of run r is damaged"):
            release_key(tmp_path, "r")
        assert file.read_bytes() == content


def test_a_link_in_the_key_directory_is_not_followed(tmp_path: Path):
    release_key(tmp_path, "r")
    (tmp_path / "keys" / "s.key").symlink_to(tmp_path / "keys" / "r.key")
    for act in (release_key, destroy_key):
        with pytest.raises(EngineError):
            act(tmp_path, "s")


def test_an_unwritable_vault_is_an_engine_error(tmp_path: Path):
    (tmp_path / "keys").write_text("a file where the directory should be")
    with pytest.raises(EngineError, match="nothing may be drawn"):
        release_key(tmp_path, "r")


def test_destroy_overwrites_then_unlinks(tmp_path: Path):
    key = release_key(tmp_path, "r")
    file = tmp_path / "keys" / "r.key"
    second_name = tmp_path / "seen"
    os.link(file, second_name)
    assert destroy_key(tmp_path, "r")
    assert not file.exists()
    assert second_name.read_bytes() != key
    assert len(second_name.read_bytes()) == 32
    assert not destroy_key(tmp_path, "r")


def test_destroying_a_key_that_never_was_is_no_error(tmp_path: Path):
    assert not destroy_key(tmp_path / "vault", "r")
    assert not (tmp_path / "vault").exists()


def test_no_key_is_drawn_where_none_may_be(tmp_path: Path):
    with pytest.raises(BudgetError, match=r"not in output\.vault"):
        release_key(tmp_path / "vault", "r", draw=False)
    assert not (tmp_path / "vault").exists()
    key = release_key(tmp_path / "vault", "r")
    assert release_key(tmp_path / "vault", "r", draw=False) == key


# ------------------------------------------------------------------------------------------- commitment and pin


def test_a_commitment_tells_one_key_of_one_run_and_not_the_key():
    key, other = bytes(range(32)), bytes(32)
    runs = [
        (key, "adult", "r1"),
        (other, "adult", "r1"),
        (key, "adult", "r2"),
        (key, "cups", "r1"),
        (key, "adultr", "1"),
    ]
    made = [key_commitment(of, lineage=lineage, run_id=run) for of, lineage, run in runs]
    assert len(set(made)) == len(runs)
    assert made[0] == key_commitment(bytes(range(32)), lineage="adult", run_id="r1")
    assert all(len(bytes.fromhex(text)) == 32 for text in made)
    assert not any(of.hex()[:16] in text for (of, _, _), text in zip(runs, made, strict=True))
    # No key of a draw, whatever it is bound to, is told by it: their messages begin with a small count.
    assert derive_key(key, "adult", "r1").hex() not in made


def test_a_full_disk_leaves_no_pin_and_the_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """An empty pin would say for ever that the table changed."""

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    for step in ("write", "fsync", "link"):
        with monkeypatch.context() as patch:
            patch.setattr(key_files.os, step, full)
            with pytest.raises(EngineError, match="No space left"):
                pin_snapshot(tmp_path, "r", "3-ab")
        assert not list((tmp_path / "keys").iterdir()), step
    pin_snapshot(tmp_path, "r", "3-ab")
    pin_snapshot(tmp_path, "r", "3-ab")
    with pytest.raises(BudgetError, match="The table changed"):
        pin_snapshot(tmp_path, "r", "4-cd")


def test_an_empty_pin_of_an_earlier_version_pins_nothing(tmp_path: Path):
    release_key(tmp_path, "r")
    (tmp_path / "keys" / "r.snapshot").write_text("")
    pin_snapshot(tmp_path, "r", "3-ab")
    with pytest.raises(BudgetError, match="The table changed"):
        pin_snapshot(tmp_path, "r", "4-cd")


def test_a_pin_goes_with_its_run_wherever_its_key_came_from(tmp_path: Path):
    pin_snapshot(tmp_path, "r", "3-ab")
    assert not destroy_key(tmp_path, "r")
    assert not list((tmp_path / "keys").iterdir())


# ------------------------------------------------------------------------------------------- two lineages in one vault


def test_two_lineages_with_runs_of_one_id_have_a_key_each(tmp_path: Path):
    census, births = (release_key(tmp_path, "r", lineage=name) for name in ("census", "births"))
    assert census != births
    assert release_key(tmp_path, "r", lineage="census", draw=False) == census
    assert destroy_key(tmp_path, "r", lineage="census")
    with pytest.raises(BudgetError, match=r"not in output.vault"):
        release_key(tmp_path, "r", lineage="census", draw=False)
    assert release_key(tmp_path, "r", lineage="births", draw=False) == births
    assert release_key(tmp_path, "r") not in (census, births), "what is charged nowhere has its own, too"
    assert sorted(file.name[:2] for file in (tmp_path / "keys").iterdir()) == ["r.", "r~"]


def test_a_run_that_was_begun_by_an_earlier_version_finds_its_key_and_destroys_it(tmp_path: Path):
    earlier = release_key(tmp_path, "r")
    assert release_key(tmp_path, "r", lineage="census", draw=False) == earlier
    assert destroy_key(tmp_path, "r", lineage="census")
    assert list((tmp_path / "keys").iterdir()) == []


def test_a_run_that_was_not_begun_takes_no_key_of_an_earlier_one(tmp_path: Path):
    """It may be another lineage's: nothing was drawn for this one yet."""
    earlier = release_key(tmp_path, "r")
    assert release_key(tmp_path, "r", lineage="census") != earlier
    assert destroy_key(tmp_path, "r", lineage="census")
    assert release_key(tmp_path, "r", draw=False) == earlier


def test_the_longest_run_id_still_names_a_file(tmp_path: Path):
    assert release_key(tmp_path, "r" * 200, lineage="c" * 200)
