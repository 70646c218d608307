"""One charge, one draw, in every order in which two attempts can interleave and stop (docs/charge.md)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from interleavings import RUN, Attempt, Checker, Effects, StateError, refund, release

from privrisk_spark.ledger import account, ledger, rows
from privrisk_spark.ledger.charge import Charge
from privrisk_spark.ledger.commitments import binds, commits
from privrisk_spark.runs.keystore import key_commitment

ONE = Attempt()
DONE = {"released", "already released"}
WORLDS: dict[str, tuple[list[Attempt], tuple[str, ...]]] = {
    "other output and vault": ([ONE, Attempt("/other", "other")], ()),
    "same output, other vault": ([ONE, Attempt(vault="other")], ()),
    "other output, same vault": ([ONE, Attempt("/other")], ()),
    "the same twice": ([ONE, ONE], ()),
    "a vault that is lost with its worker": ([replace(ONE, keeps_vault=False)] * 2, ()),
    "key by reference, other output": ([Attempt(reference="k"), Attempt("/other", "other", "k")], ()),
    "key by reference, same output": ([Attempt(reference="k"), Attempt(vault="other", reference="k")], ()),
    "another policy": ([ONE, Attempt(asked="another")], ()),
    "the table changes": ([ONE, Attempt("/other", "other")], ("table",)),
    "the table changes for a key by reference": (
        [Attempt(reference="k"), Attempt(vault="o", reference="k")],
        ("table",),
    ),
    "a public table changes": ([ONE, ONE], ("public",)),
}


@pytest.fixture(autouse=True)
def no_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal states are equal whenever they are reached."""
    monkeypatch.setattr(rows, "_now", lambda: "now")


@pytest.mark.parametrize("name", WORLDS)
def test_one_charge_is_one_draw_in_every_order(name: str) -> None:
    attempts, changes = WORLDS[name]
    # Where something changes, whoever comes second is the first one again, and no third start tells more.
    checker = Checker(attempts, [release] * 2, starts=(1, 1) if changes else (2, 1), changes=changes)
    assert checker.explore() > 300
    ends = {end for pair in checker.ends for end in pair}
    assert {"released", "dead"} <= ends
    if attempts[0] == attempts[1] and not changes and attempts[0].keeps_vault:
        refused = [pair for pair in checker.ends if any(end not in DONE | {"dead"} for end in pair)]
        assert all(DONE & set(pair) for pair in refused), "who agrees is refused only once the release is there"
    elif not attempts[0].reference:
        assert any(str(end).startswith("refused: run id r1 was") or "table changed" in str(end) for end in ends)


def test_a_run_that_is_given_back_is_never_visible() -> None:
    """Whoever voids it looks at the ledger's place; no attempt holds a lock that they could see."""
    checker = Checker([ONE, replace(ONE, output="/other")], [release, refund])
    assert checker.explore() > 100
    assert {pair[1] for pair in checker.ends} > {"voided", "dead"}


# ------------------------------------------------------------------------- the checker finds what is planted


def yesterday(world: Effects) -> str:
    """The protocol before there were commitments: a key, a draw, a release, and then the ledger hears of it."""
    world.look()
    world.reserve(world.mine.request)
    key = world.obtain(draw=True)
    snapshot = int(world.effect("read", lambda: world.world.table))
    content = world.draw(key, snapshot)
    world.show(content)
    world.bind(**RUN, key=key_commitment(key, **RUN), place=world.mine.output)
    world.pin(**RUN, snapshot=str(snapshot))
    world.commit(**RUN, release=content)
    world.destroy()
    return "released"


def reads_first(world: Effects) -> str:
    charge = Charge(world, world.mine.request, world.mine.output, world)  # type: ignore[arg-type]
    charge.reserve()
    world.read(world.obtain(draw=True))
    return "released"


def commits_late(world: Effects) -> str:
    charge = Charge(world, world.mine.request, world.mine.output, world)  # type: ignore[arg-type]
    key = charge.begin(charge.reserve())
    charge.pin(str(world.read(key)))
    content = world.draw(key, 1)
    world.show(content)
    charge.publish(content, lambda: None)
    return "released"


def destroys_early(world: Effects) -> str:
    charge = Charge(world, world.mine.request, world.mine.output, world)  # type: ignore[arg-type]
    done = world.look()
    if done is not None:
        charge.confirm(done)
        return "already released"
    key = charge.begin(charge.reserve())
    charge.pin(str(world.read(key)))
    content = world.draw(key, 1)
    world.commit(**RUN, release=content)
    world.destroy()
    world.show(content)
    return "released"


def believes_what_is_there(world: Effects) -> str:
    if world.look() is not None:
        return "already released"
    charge = Charge(world, world.mine.request, world.mine.output, world)  # type: ignore[arg-type]
    key = charge.begin(charge.reserve())
    charge.pin(str(world.read(key)))
    content = world.draw(key, 1)
    charge.publish(content, lambda: world.show(content))
    return "released"


def without(check: Callable[..., bool], **ignored: str) -> Callable[..., bool]:
    """A rule that does not look at one thing."""

    def rule(run: Any, **given: str) -> bool:
        return check(run, **given | {name: getattr(run, of) or given[name] for name, of in ignored.items()})

    return rule


PLANTED: dict[str, tuple[str, str, dict[str, Any]]] = {
    "no commitments": ("other output and vault", "two releases|two draws|visible", {"program": yesterday}),
    "the key is not compared": ("same output, other vault", "before the ledger held", {
        "binds": without(binds, key="key")}),
    "neither key nor place is compared": ("other output and vault", "before the ledger held", {
        "binds": without(binds, key="key", place="place")}),
    "the place is not compared": ("key by reference, other output", "before the ledger held", {
        "binds": without(binds, place="place")}),
    "what was read is not compared": ("the table changes for a key by reference", "two draws", {
        "pins": lambda run, snapshot: run.snapshot is None}),
    "what is published is not compared": ("a public table changes", "two releases|does not have as committed", {
        "commits": lambda run, release: run.state == "pinned"}),
    "read before it is bound": ("the same twice", "before the ledger held", {"program": reads_first}),
    "visible before it is committed": ("the same twice", "does not have as committed", {"program": commits_late}),
    "the key goes before the release comes": ("the same twice", "destroyed before|finish", {
        "program": destroys_early}),
    "what is there is believed": ("another policy", "something else", {"program": believes_what_is_there}),
}  # fmt: skip


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    world, message, plant = PLANTED[name]
    attempts, changes = WORLDS[world]
    for rule in plant.keys() - {"program"}:
        monkeypatch.setattr(ledger, rule, plant[rule])
    checker = Checker(attempts, [plant.get("program", release)] * 2, changes=changes)
    with pytest.raises(StateError, match=message) as caught:
        checker.explore()
    assert "→" in str(caught.value), "the way to it is told"


def test_a_void_that_a_commit_does_not_heed_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted twice: in the rule and in the replay."""

    def heedless(run: Any, *, release: str) -> bool:
        return run.state != "committed" and commits(replace(run, state="pinned"), release=release)

    monkeypatch.setattr(ledger, "commits", heedless)
    monkeypatch.setattr(account, "_FOLLOWS", {**account._FOLLOWS, "committed": {"pinned", "void"}})
    with pytest.raises(StateError, match="budget was given back"):
        Checker([ONE, ONE], [release, refund]).explore()
