"""The rules of a privacy budget: the replay of a lineage's events, and what is refused.

No database here: events come in as mappings, decisions go out. Accounting is basic composition, the
epsilons add and the deltas add (Dwork and Roth, *The Algorithmic Foundations of Differential Privacy*,
2014, Theorem 3.16), over every run whose reservation was not given back.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, Literal

from privrisk_spark.errors import BudgetError, EngineError
from privrisk_spark.ledger.amounts import decimal_of, stored_amount
from privrisk_spark.ledger.request import Request, digest_of

__all__ = [
    "Account",
    "Balance",
    "Reservation",
    "Run",
    "State",
    "balance_of",
    "decide",
    "differences",
    "on_record",
    "replay",
]

State = Literal["reserved", "bound", "pinned", "committed", "void"]

_FOLLOWS: Final[Mapping[str, frozenset[str]]] = {
    "bound": frozenset({"reserved"}),
    "pinned": frozenset({"bound"}),
    "committed": frozenset({"pinned"}),
    "void": frozenset({"reserved", "bound", "pinned"}),
}
"""Which states a state follows; see docs/charge.md."""
_MECHANISM: Final = "mechanism"


@dataclass(frozen=True)
class Reservation:
    """What a reservation came to.

    Attributes
    ----------
    lineage, run_id : str
        Whose budget, and for which run.
    fresh : bool
        True if this call charged the lineage (or, from `Ledger.would_cost`, would charge it); False if the
        run was charged earlier and this is a retry, which costs nothing.
    state : {'reserved', 'bound', 'pinned', 'committed'}
        ``committed`` means that it is settled, to the byte, what is published for this run.
    epsilon, delta : decimal.Decimal
        What the run costs.
    spent_epsilon, spent_delta : decimal.Decimal
        Spent by the lineage after this call, this run included.
    cap_epsilon, cap_delta : decimal.Decimal
        The cap recorded for the lineage after this call.
    snapshot : str or None
        What the run read; None before it read anything.
    place : str or None
        Where the run publishes; None before it is held to one place and one key.
    """

    lineage: str
    run_id: str
    fresh: bool
    state: State
    epsilon: Decimal
    delta: Decimal
    spent_epsilon: Decimal
    spent_delta: Decimal
    cap_epsilon: Decimal
    cap_delta: Decimal
    snapshot: str | None = None
    place: str | None = None


@dataclass(frozen=True)
class Run:
    """One run of a lineage, as the ledger knows it.

    Attributes
    ----------
    run_id : str
        The run.
    state : {'reserved', 'bound', 'pinned', 'committed', 'void'}
        Its last recorded state.
    epsilon, delta : decimal.Decimal
        What it reserved.
    counted : bool
        Whether that is part of the lineage's spent budget: always, except for a run voided with the
        statement that nothing left the trusted zone.
    mechanism, mechanism_digest : str
        Canonical JSON of its mechanism record, and its SHA-256 in hexadecimal.
    asked : mapping of str to str, or None
        Digests of what it was asked for, by name; None for a run that was reserved under schema 1, which knew no
        commitments.
    key : str or None
        Commitment to its release key.
    place : str or None
        Where it publishes, resolved.
    snapshot : str or None
        What it read.
    release : str or None
        Digest of what it publishes.
    reason : str or None
        Reason named when it was voided.
    reserved_at : str
        When it was reserved, UTC, ISO 8601.
    closed_at : str or None
        When it was committed or voided.
    """

    run_id: str
    state: State
    epsilon: Decimal
    delta: Decimal
    counted: bool
    mechanism: str
    mechanism_digest: str
    snapshot: str | None
    reason: str | None
    reserved_at: str
    closed_at: str | None
    asked: Mapping[str, str] | None = None
    key: str | None = None
    place: str | None = None
    release: str | None = None

    @property
    def before_commitments(self) -> bool:
        """Whether it was reserved by a version of the program that held no run to one draw."""
        return self.asked is None


@dataclass(frozen=True)
class Balance:
    """What a lineage has spent.

    Attributes
    ----------
    lineage : str
        The lineage.
    spent_epsilon, spent_delta : decimal.Decimal
        Exact sums over its counted runs.
    cap_epsilon, cap_delta : decimal.Decimal or None
        Recorded cap; None if nothing was ever reserved.
    runs : tuple of Run
        All runs in the order of their reservations.
    """

    lineage: str
    spent_epsilon: Decimal
    spent_delta: Decimal
    cap_epsilon: Decimal | None
    cap_delta: Decimal | None
    runs: tuple[Run, ...]


@dataclass(frozen=True)
class Account:
    """The events of one lineage, replayed.

    Attributes
    ----------
    lineage : str
        The lineage.
    runs : mapping of str to Run
        By run id, in the order of their reservations.
    epsilon, delta : fractions.Fraction
        Exact sums over the counted runs.
    cap_epsilon, cap_delta : fractions.Fraction or None
        The lowest cap recorded; None before the first reservation.
    last : int
        Sequence number of the last event; 0 if there is none.
    """

    lineage: str
    runs: Mapping[str, Run]
    epsilon: Fraction
    delta: Fraction
    cap_epsilon: Fraction | None
    cap_delta: Fraction | None
    last: int


def replay(lineage: str, events: Iterable[Mapping[str, Any]], *, gapless: bool = False) -> Account:
    """Add up the events of a lineage, and refuse them if they do not follow from each other.

    Parameters
    ----------
    lineage : str
        The lineage.
    events : iterable of mapping
        Its events in the order of their sequence numbers, keyed by the ledger's column names.
    gapless : bool, default False
        Whether these numbers must be 1, 2, 3, …

    Returns
    -------
    Account

    Raises
    ------
    EngineError
        If an amount is unreadable, a stored running total is not the sum of the events before it or above its cap,
        a cap rose, a mechanism does not have its digest, a state follows one it cannot follow, or a number is missing.
    """
    runs: dict[str, Run] = {}
    last = 0
    epsilon = delta = Fraction(0)
    caps: tuple[Fraction, Fraction] | None = None
    for row in events:
        cost = _stored(row, "epsilon"), _stored(row, "delta")
        cap = _stored(row, "cap_epsilon"), _stored(row, "cap_delta")
        before = _stored(row, "spent_epsilon_before"), _stored(row, "spent_delta_before")
        after = _stored(row, "spent_epsilon_after"), _stored(row, "spent_delta_after")
        earlier = runs.get(row["run_id"])
        follows = before == (epsilon, delta) and row["mechanism_digest"] == digest_of(row["mechanism"])
        if caps is not None:
            follows = follows and cap[0] <= caps[0] and cap[1] <= caps[1]
        follows = follows and (row["sequence"] == last + 1 or not gapless)
        if row["state"] == "reserved":
            follows = follows and earlier is None
            epsilon, delta = epsilon + cost[0], delta + cost[1]
            run = Run(
                run_id=row["run_id"],
                state="reserved",
                epsilon=decimal_of(cost[0]),
                delta=decimal_of(cost[1]),
                counted=True,
                mechanism=row["mechanism"],
                mechanism_digest=row["mechanism_digest"],
                snapshot=None,
                reason=None,
                reserved_at=row["created_at"],
                closed_at=None,
                asked=_parts(row),
            )
        else:
            if earlier is None or not _may_follow(earlier, row):
                raise _inconsistent(row["sequence"])
            follows = follows and cost == (Fraction(earlier.epsilon), Fraction(earlier.delta))
            follows = follows and row["mechanism_digest"] == earlier.mechanism_digest
            refunded = row["state"] == "void" and row["nothing_left_the_zone"]
            if refunded:
                epsilon, delta = epsilon - cost[0], delta - cost[1]
            run = replace(
                earlier,
                state=row["state"],
                counted=not refunded,
                snapshot=row["snapshot"] or earlier.snapshot,
                reason=row["reason"],
                closed_at=row["created_at"] if row["state"] in ("committed", "void") else None,
                # Columns a ledger of schema 1 does not have.
                key=row.get("key_commitment") or earlier.key,
                place=row.get("place") or earlier.place,
                release=row.get("release_digest"),
            )
        if not follows or after != (epsilon, delta) or epsilon > cap[0] or delta > cap[1]:
            raise _inconsistent(row["sequence"])
        runs[run.run_id] = run
        caps, last = cap, row["sequence"]
    cap_epsilon, cap_delta = caps or (None, None)
    return Account(lineage, runs, epsilon, delta, cap_epsilon, cap_delta, last)


def decide(account: Account, request: Request) -> Reservation:
    """Return the reservation a request comes to, or refuse it.

    Parameters
    ----------
    account : Account
        What the lineage has spent so far.
    request : Request
        What is asked.

    Returns
    -------
    Reservation
        ``fresh`` if the request is to be charged; the totals then include it.

    Raises
    ------
    BudgetError
        See `privrisk_spark.ledger.ledger.Ledger.reserve`.
    """
    run = account.runs.get(request.run_id)
    if run is not None:
        found = differences(run, request)
        if found:
            raise BudgetError(
                f"run id {request.run_id} was reserved with other parameters; use a new run id. What differs: "
                f"{', '.join(found)}."
            )
        if run.state == "void":
            raise BudgetError(f"run id {request.run_id} was voided and cannot be reserved again; use a new run id.")
        return on_record(account, run)
    for name, cap, recorded in (
        ("epsilon", request.cap_epsilon, account.cap_epsilon),
        ("delta", request.cap_delta, account.cap_delta),
    ):
        if recorded is not None and cap > recorded:
            raise BudgetError(
                f"ledger.cap.{name} must be at most {decimal_of(recorded)}, the cap recorded for "
                f"ledger.lineage {account.lineage}. Got {decimal_of(cap)}. A cap can be lowered but not "
                "raised, because releases made under it promised that no more would ever be spent."
            )
    epsilon, delta = account.epsilon + request.epsilon, account.delta + request.delta
    if epsilon > request.cap_epsilon or delta > request.cap_delta:
        amounts = "; ".join(
            f"{name} asked {decimal_of(asked)}, spent {decimal_of(spent)}, cap {decimal_of(cap)}, "
            f"left {decimal_of(max(cap - spent, Fraction(0)))}"
            for name, asked, spent, cap in (
                ("epsilon", request.epsilon, account.epsilon, request.cap_epsilon),
                ("delta", request.delta, account.delta, request.cap_delta),
            )
        )
        raise BudgetError(f"the budget of ledger.lineage {account.lineage} does not allow the run: {amounts}.")
    return Reservation(
        lineage=account.lineage,
        run_id=request.run_id,
        fresh=True,
        state="reserved",
        epsilon=decimal_of(request.epsilon),
        delta=decimal_of(request.delta),
        spent_epsilon=decimal_of(epsilon),
        spent_delta=decimal_of(delta),
        cap_epsilon=decimal_of(request.cap_epsilon),
        cap_delta=decimal_of(request.cap_delta),
    )


def differences(run: Run, request: Request) -> list[str]:
    """Name what a request asks otherwise than the run that was charged.

    Parameters
    ----------
    run : Run
        As the ledger knows it.
    request : Request
        For the same run id.

    Returns
    -------
    list of str
        ``epsilon``, ``delta``, names of what was asked, and keys of the mechanism record; empty if they agree. Of a
        run reserved under schema 1 the ledger does not know what was asked besides the mechanism.
    """
    amounts = (("epsilon", run.epsilon, request.epsilon), ("delta", run.delta, request.delta))
    found = [name for name, charged, asked in amounts if Fraction(charged) != asked]
    if run.asked is not None:
        parts = request.parts
        found += [name for name in sorted({*run.asked, *parts}) if run.asked.get(name) != parts.get(name)]
    if run.mechanism_digest != request.digest:
        mine, theirs = json.loads(run.mechanism), json.loads(request.mechanism)
        keys = [name for name in sorted({*mine, *theirs}) if mine.get(name) != theirs.get(name)]
        found += [f"{_MECHANISM}.{name}" for name in keys]
    return found


def on_record(account: Account, run: Run) -> Reservation:
    """Return the reservation of a run that was charged earlier.

    Parameters
    ----------
    account : Account
        The lineage's account, the run included.
    run : Run
        The run, which is not void.

    Returns
    -------
    Reservation
        With ``fresh=False``.
    """
    return Reservation(
        lineage=account.lineage,
        run_id=run.run_id,
        fresh=False,
        state=run.state,
        epsilon=run.epsilon,
        delta=run.delta,
        spent_epsilon=decimal_of(account.epsilon),
        spent_delta=decimal_of(account.delta),
        cap_epsilon=decimal_of(account.cap_epsilon or Fraction(0)),
        cap_delta=decimal_of(account.cap_delta or Fraction(0)),
        snapshot=run.snapshot,
        place=run.place,
    )


def balance_of(account: Account) -> Balance:
    """Return an account in decimals.

    Parameters
    ----------
    account : Account
        The account.

    Returns
    -------
    Balance
    """
    return Balance(
        lineage=account.lineage,
        spent_epsilon=decimal_of(account.epsilon),
        spent_delta=decimal_of(account.delta),
        cap_epsilon=None if account.cap_epsilon is None else decimal_of(account.cap_epsilon),
        cap_delta=None if account.cap_delta is None else decimal_of(account.cap_delta),
        runs=tuple(account.runs.values()),
    )


def _may_follow(run: Run, row: Mapping[str, Any]) -> bool:
    """Whether an event may come next, and holds what its state needs."""
    state, place = row["state"], row.get("place")
    if run.before_commitments:
        # What was published before the ledger knew of commitments is recorded in one step, with or without them.
        return run.state == "reserved" and state in ("committed", "void")
    if run.state not in _FOLLOWS.get(state, frozenset()):
        return False
    if state == "bound":
        return bool(row.get("key_commitment") and place)
    if state == "pinned":
        return bool(row["snapshot"])
    return state == "void" or bool(row["snapshot"] == run.snapshot and row.get("release_digest"))


def _parts(row: Mapping[str, Any]) -> dict[str, str] | None:
    text = row.get("asked")
    if text is None:
        return None
    try:
        return dict(json.loads(text))
    except (ValueError, TypeError):
        raise _inconsistent(row["sequence"]) from None


def _stored(row: Mapping[str, Any], column: str) -> Fraction:
    exact = stored_amount(row[column])
    if exact is None:
        raise _inconsistent(row["sequence"])
    return exact


def _inconsistent(sequence: int) -> EngineError:
    return EngineError(
        f"event {sequence} of the ledger does not follow from the events before it; restore the ledger from its backup."
    )
