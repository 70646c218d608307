"""Attempts of one run that interleave and stop: an explicit-state checker over the real ledger.

An attempt is an ordinary function. Whatever it does to the world goes through :class:`Effects`, one effect at a time,
so that it can be stopped before and after each: to take the next effect, the function is run again from its start with
the results of the earlier ones. The ledger's effects are the real `Ledger` on a database in memory, which is filled
with the state's events before each; vaults, outputs and the table are values.

Every state that any order of effects and stops can reach is visited once.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.pool import StaticPool

from privrisk_spark.errors import BudgetError, InternalError, PrivriskError
from privrisk_spark.ledger import sqlite
from privrisk_spark.ledger.charge import Charge
from privrisk_spark.ledger.ledger import Balance, Ledger, Run
from privrisk_spark.ledger.request import Request
from privrisk_spark.ledger.storage import events
from privrisk_spark.runs.keystore import key_commitment

RUN = {"lineage": "adult", "run_id": "r1"}
Rows = tuple[tuple[Any, ...], ...]


class InMemory:
    """A storage whose events are given, and taken out again."""

    grants: tuple[str, ...] = ()

    def __init__(self) -> None:
        driver = sqlite3.connect(":memory:", isolation_level=None)
        self.engine = sa.create_engine("sqlite://", creator=lambda: driver, poolclass=StaticPool)
        sa.event.listen(self.engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
        with self.engine.begin() as connection:
            sqlite._create_schema(connection)

    def exists(self) -> bool:
        return True

    def create(self) -> None:
        pass

    @contextmanager
    def transaction(
        self, lineage: str | None, *, read_only: bool, tables: Collection[str] = ()
    ) -> Iterator[sa.Connection]:
        del lineage, read_only, tables
        with self.engine.begin() as connection:
            sqlite._check_schema(connection)
            yield connection

    def fill(self, rows: Rows) -> None:
        with self.engine.begin() as connection:
            connection.exec_driver_sql("DROP TRIGGER events_no_delete")
            connection.exec_driver_sql("DELETE FROM events")
            connection.exec_driver_sql(sqlite._TRIGGERS["events_no_delete"])
            for row in rows:
                connection.execute(events.insert(), dict(zip(events.columns.keys(), row, strict=True)))

    def rows(self) -> Rows:
        with self.engine.begin() as connection:
            return tuple(tuple(row) for row in connection.execute(sa.select(events).order_by(events.c.sequence)))


@dataclass(frozen=True)
class Attempt:
    """How somebody runs the run: their output, their vault, their key, and what they ask for."""

    output: str = "/out"
    vault: str = "vault"
    reference: str | None = None
    asked: str = "policy"
    keeps_vault: bool = True

    @property
    def request(self) -> Request:
        amounts = {"epsilon": "1", "delta": "1e-9", "cap_epsilon": "4", "cap_delta": "1e-7"}
        return Request(**RUN, **amounts, mechanism={"k": 31}, asked={"policy": self.asked})


@dataclass(frozen=True)
class Going:
    """Where an attempt is: results of its effects so far, how often it may start again, how it ended."""

    log: tuple[tuple[str, Any], ...] = ()
    starts: int = 1
    ended: str | None = None


@dataclass(frozen=True)
class World:
    """A state: what is stored, what has ever been seen, and where the attempts are."""

    going: tuple[Going, ...]
    ledger: Rows = ()
    vaults: tuple[tuple[str, bytes], ...] = ()
    drawn_keys: int = 0
    table: int = 1
    public: int = 1
    # By place: what lies there, and whether its manifest does.
    places: tuple[tuple[str, str, bool], ...] = ()
    # History: whatever was read with which key for which place, drawn, and visible.
    read: frozenset[tuple[bytes, str]] = frozenset()
    draws: frozenset[tuple[bytes, int]] = frozenset()
    shown: frozenset[tuple[str, str]] = frozenset()


class _PausedError(BaseException):
    """The attempt is before its next effect."""


class StateError(AssertionError):
    """A state that must not be, and how it is reached."""


@dataclass
class Effects:
    """The world as one attempt acts on it: earlier effects are remembered, one is taken, before the next it stops."""

    checker: Checker
    world: World
    who: int
    log: list[tuple[str, Any]]
    at: int = 0
    taken: bool = False
    names: list[str] = field(default_factory=list)

    def effect(self, name: str, act: Callable[[], Any]) -> Any:
        self.names.append(name)
        if self.at == len(self.log):
            if self.taken:
                raise _PausedError
            self.taken = True
            try:
                self.log.append((name, act()))
            except PrivriskError as error:
                self.log.append((name, error.__class__(str(error))))
        known, result = self.log[self.at]
        assert known == name, "an attempt is a function of what it was told"
        self.at += 1
        if isinstance(result, PrivriskError):
            raise result
        return result

    @property
    def mine(self) -> Attempt:
        return self.checker.attempts[self.who]

    # What an attempt does: the ledger's part ...

    def reserve(self, request: Request, **arguments: Any) -> Any:
        return self.effect("reserve", lambda: self.on_ledger("reserve", {"request": request, **arguments}))

    def bind(self, **arguments: Any) -> Any:
        return self.effect("bind", lambda: self.on_ledger("bind", arguments))

    def pin(self, **arguments: Any) -> Any:
        return self.effect("pin", lambda: self.on_ledger("pin", arguments))

    def commit(self, **arguments: Any) -> Any:
        return self.effect("commit", lambda: self.on_ledger("commit", arguments))

    def confirm(self, request: Request, **arguments: Any) -> Any:
        return self.effect("confirm", lambda: self.on_ledger("confirm", {"request": request, **arguments}))

    def void(self, **arguments: Any) -> Any:
        return self.effect("void", lambda: self.on_ledger("void", arguments))

    def on_ledger(self, name: str, arguments: dict[str, Any]) -> Any:
        rows, result = self.checker.ask(self.world.ledger, name, arguments)
        self.world = replace(self.world, ledger=rows)
        if isinstance(result, PrivriskError):
            raise result
        return result

    # ... the vault's ...

    def check_reference(self) -> None:
        """Every reference leads to a key here."""

    def obtain(self, *, draw: bool) -> bytes:
        return bytes(self.effect("obtain", lambda: self._obtain(draw)))

    def _obtain(self, draw: bool) -> bytes:
        if self.mine.reference is not None:
            return self.mine.reference.encode()
        vaults = dict(self.world.vaults)
        if self.mine.vault not in vaults:
            if not draw:
                raise BudgetError("its key is not in the vault")
            vaults[self.mine.vault] = f"key {self.world.drawn_keys} of {self.mine.vault}".encode()
            self.world = replace(self.world, vaults=tuple(sorted(vaults.items())), drawn_keys=self.world.drawn_keys + 1)
        return vaults[self.mine.vault]

    def destroy(self) -> None:
        def act() -> None:
            left = {name: key for name, key in self.world.vaults if name != self.mine.vault}
            if self.mine.reference is None:
                self.world = replace(self.world, vaults=tuple(sorted(left.items())))

        self.effect("destroy", act)

    # ... and the table's and the output's.

    def look(self) -> str | None:
        """Return what is published at the place, if its manifest is there."""
        here = self.mine.output
        found = [content for place, content, whole in self.world.places if place == here and whole]
        return self.effect("look", lambda: found[0] if found else None)  # type: ignore[no-any-return]

    def read(self, key: bytes) -> int:
        """Read the private table."""

        def act() -> int:
            run = self.checker.run_of(self.world.ledger)
            held = run is not None and (run.key, run.place) == (key_commitment(key, **RUN), self.mine.output)
            if not held:
                raise StateError("the table was read before the ledger held key and place")
            self.world = replace(self.world, read=self.world.read | {(key, self.mine.output)})
            return self.world.table

        return int(self.effect("read", act))

    def draw(self, key: bytes, snapshot: int) -> str:
        """Draw the release: a function of key, table and public tables."""

        def act() -> str:
            self.world = replace(self.world, draws=self.world.draws | {(key, snapshot)})
            return f"{key!r} {snapshot} {self.world.public}"

        return str(self.effect("draw", act))

    def show(self, content: str) -> None:
        """Rename the staged directory, then write its manifest."""
        here = self.mine.output

        def put(whole: bool) -> None:
            others = [place for place in self.world.places if place[0] != here]
            self.world = replace(
                self.world,
                places=tuple(sorted([*others, (here, content, whole)])),
                shown=self.world.shown | {(here, content)},
            )

        self.effect("rename", lambda: put(False))
        self.effect("manifest", lambda: put(True))


Program = Callable[[Effects], str]


def release(world: Effects) -> str:
    """An attempt to release: the order of effects is that of `privrisk_spark.pipelines.release`."""
    charge = Charge(world, world.mine.request, world.mine.output, world)  # type: ignore[arg-type]
    done = world.look()
    if done is not None:
        charge.confirm(done)
        return "already released"
    key = charge.begin(charge.reserve())
    snapshot = world.read(key)
    charge.pin(str(snapshot))
    content = world.draw(key, snapshot)
    charge.publish(content, lambda: world.show(content))
    return "released"


def refund(world: Effects) -> str:
    """Somebody voids the run and states that nothing left the zone, wherever they look."""

    def examine(run: Run) -> None:
        if run.place in [place for place, _, _ in world.world.places]:
            raise BudgetError("files of the run lie at its place")

    world.void(**RUN, reason="x", nothing_left_the_zone=True, examine=examine)
    return "voided"


@dataclass
class Checker:
    """Visit every state of some attempts.

    Attributes
    ----------
    attempts : list of Attempt
        Who takes part.
    programs : list of callable
        What each does.
    starts : tuple of int
        How often each may begin: it may stop before and after each of its effects.
    changes : tuple of str
        What may change once at any time: ``table``, ``public``.
    """

    attempts: list[Attempt]
    programs: list[Program]
    starts: tuple[int, ...] = (2, 1)
    changes: tuple[str, ...] = ()
    storage: InMemory = field(default_factory=InMemory)
    answers: dict[Any, Any] = field(default_factory=dict)
    ends: set[tuple[str | None, ...]] = field(default_factory=set)

    def ask(self, rows: Rows, name: str, arguments: dict[str, Any]) -> tuple[Rows, Any]:
        """Ask the real ledger; the same question on the same events has the same answer."""
        question = (rows, name, repr(sorted((k, v) for k, v in arguments.items() if k != "examine")))
        if name == "void" or question not in self.answers:
            self.storage.fill(rows)
            ledger = Ledger("sqlite:///unused")
            ledger._storage = self.storage
            try:
                result = getattr(ledger, name)(**arguments)
            except InternalError:
                raise
            except PrivriskError as error:
                result = error
            self.answers[question] = (self.storage.rows(), result)
        return self.answers[question]  # type: ignore[no-any-return]

    def balance(self, rows: Rows) -> Balance:
        _, balance = self.ask(rows, "balance", {"lineage": RUN["lineage"]})
        assert isinstance(balance, Balance), balance
        return balance

    def run_of(self, rows: Rows) -> Run | None:
        return next(iter(self.balance(rows).runs), None)

    def explore(self) -> int:
        """Visit all states; returns how many there are.

        Raises
        ------
        StateError
            In a state that must not be, with the shortest way to it.
        """
        start = World(tuple(Going(starts=starts) for starts in self.starts))
        seen: dict[World, tuple[World, str] | None] = {start: None}
        todo = [start]
        while todo:
            later = []
            for world in todo:
                try:
                    self.judge(world)
                    for name, after in self.successors(world):
                        if after not in seen:
                            seen[after] = (world, name)
                            later.append(after)
                except StateError as fault:
                    raise StateError(f"{fault}: {' → '.join(self.way(seen, world))}") from None
            todo = later
        return len(seen)

    def way(self, seen: Mapping[World, tuple[World, str] | None], world: World) -> list[str]:
        names = []
        step = seen[world]
        while step is not None:
            world, name = step
            names.append(name)
            step = seen[world]
        return names[::-1]

    def successors(self, world: World) -> Iterator[tuple[str, World]]:
        for who, going in enumerate(world.going):
            if going.ended is None:
                yield self.step(world, who)
                yield self.crash(world, who)
        if "table" in self.changes and world.table == 1:
            yield "table changes", replace(world, table=2)
        if "public" in self.changes and world.public == 1:
            yield "public table changes", replace(world, public=2)

    def step(self, world: World, who: int) -> tuple[str, World]:
        effects = Effects(self, world, who, list(world.going[who].log))
        ended = None
        try:
            ended = self.programs[who](effects)
        except _PausedError:
            pass
        except PrivriskError as error:
            ended = f"refused: {error}" if isinstance(error, BudgetError) else f"failed: {error}"
        # What an ended attempt remembers tells nothing more.
        log = () if ended else tuple(effects.log)
        going = replace(world.going[who], log=log, ended=ended)
        return f"{who} {effects.names[effects.at - 1]}", self.moved(effects.world, who, going)

    def crash(self, world: World, who: int) -> tuple[str, World]:
        going, mine = world.going[who], self.attempts[who]
        again = Going(starts=going.starts - 1, ended="dead" if going.starts == 1 else None)
        if not mine.keeps_vault:
            vaults = tuple((name, key) for name, key in world.vaults if name != mine.vault)
            world = replace(world, vaults=vaults)
        return f"{who} stops", self.moved(world, who, again)

    def moved(self, world: World, who: int, going: Going) -> World:
        return replace(world, going=(*world.going[:who], going, *world.going[who + 1 :]))

    def judge(self, world: World) -> None:
        """Refuse a state that must not be."""
        run = self.run_of(world.ledger)
        if len(world.read) > 1:
            raise StateError("the table was read with two keys, or for two places")
        if len(world.draws) > 1:
            raise StateError("two draws of one charge")
        if len(world.shown) > 1:
            raise StateError("two releases of one charge")
        if world.shown and self.balance(world.ledger).spent_epsilon != 1:
            raise StateError("a release was visible whose budget was given back")
        for place, content in world.shown:
            if run is None or (run.state, run.place, run.release) != ("committed", place, content):
                raise StateError("a release was visible that the ledger does not have as committed")
        for who, going in enumerate(world.going):
            if going.ended in ("released", "already released"):
                mine = self.attempts[who]
                if not any(place == mine.output for place, _ in world.shown):
                    raise StateError("an attempt says that it released, and there is nothing")
                if run is None or (run.asked or {}).get("policy") != mine.asked:
                    raise StateError("an attempt says that what it asked for is released, and it is something else")
        if run is not None and run.key is not None and not world.shown and self.keeps_keys:
            held = {key_commitment(key, **RUN) for _, key in world.vaults}
            if run.key not in held and run.state != "void":
                raise StateError("the key was destroyed before its release was visible")
        if all(going.ended for going in world.going):
            self.ends.add(tuple(going.ended for going in world.going))
            self.refuse_dead_end(world, run)

    @property
    def keeps_keys(self) -> bool:
        """Whether no vault is lost and every key lies in one."""
        return all(mine.keeps_vault and mine.reference is None for mine in self.attempts)

    def refuse_dead_end(self, world: World, run: Run | None) -> None:
        """Whoever agrees with what the ledger holds, tried once more and alone, comes to the end."""
        for who in range(len(self.attempts)):
            if self.programs[who] is not refund and self.agrees(world, who, run):
                alone = self.moved(world, who, Going())
                while alone.going[who].ended is None:
                    _, alone = self.step(alone, who)
                if alone.going[who].ended not in ("released", "already released"):
                    raise StateError(f"nobody can finish the run any more ({alone.going[who].ended})")

    def agrees(self, world: World, who: int, run: Run | None) -> bool:
        mine = self.attempts[who]
        if run is None:
            return True
        if run.state == "void" or (run.asked or {}).get("policy") != mine.asked:
            return False
        if run.key is None or any(place == mine.output and whole for place, _, whole in world.places):
            return True
        key = dict(world.vaults).get(mine.vault) if mine.reference is None else mine.reference.encode()
        return (
            key is not None
            and (run.key, run.place) == (key_commitment(key, **RUN), mine.output)
            and run.snapshot in (None, str(world.table))
            and (run.release is None or run.release.endswith(f" {world.public}"))
        )
