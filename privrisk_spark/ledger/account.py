"""The rules of a privacy budget: the replay of a lineage's events, and what is refused.

No database here: events come in as mappings, decisions go out. Accounting is basic composition, the
epsilons add and the deltas add (Dwork and Roth, *The Algorithmic Foundations of Differential Privacy*,
2014, Theorem 3.16), over every run whose reservation was not given back. A request may ask that the cap binds on the
tight composition of these runs instead (`privrisk_spark.ledger.composition`): each reservation is checked by the
accounting it names, and both are of all runs, whatever these were checked by.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

from privrisk_spark.errors import BudgetError, EngineError
from privrisk_spark.ledger import chain
from privrisk_spark.ledger.amounts import decimal_of, stored_amount
from privrisk_spark.ledger.composition import Losses, charged_events, composed_epsilon, events_of
from privrisk_spark.ledger.records import Balance, Reservation, Run
from privrisk_spark.ledger.request import Request, digest_of

__all__ = [
    "Account",
    "BrokenHistoryError",
    "balance_of",
    "decide",
    "differences",
    "on_record",
    "refuse_noted",
    "refuse_other_table",
    "replay",
]

_FOLLOWS: Final[Mapping[str, frozenset[str]]] = {
    "bound": frozenset({"reserved"}),
    "pinned": frozenset({"bound"}),
    "committed": frozenset({"pinned"}),
    "void": frozenset({"reserved", "bound", "pinned"}),
}
"""Which states a state follows; see docs/charge.md."""
_MECHANISM: Final = "mechanism"


class BrokenHistoryError(EngineError):
    """An event of the ledger is not what was written, or does not follow from those before it.

    Parameters
    ----------
    event : int
        Its number.
    how : str
        What is wrong with it.
    """

    def __init__(self, event: int, how: str) -> None:
        self.event = event
        super().__init__(f"event {event} of the ledger {how}; restore the ledger from its backup.")


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
    chain : tuple of str
        Hash of each event.
    tables : frozenset of str
        Identities of the table the lineage is of: the first one used, and those it was moved to.
    """

    lineage: str
    runs: Mapping[str, Run]
    epsilon: Fraction
    delta: Fraction
    cap_epsilon: Fraction | None
    cap_delta: Fraction | None
    last: int
    chain: tuple[str, ...] = ()
    tables: frozenset[str] = frozenset()

    @property
    def head(self) -> str:
        """Hash of the last event."""
        return self.chain[-1] if self.chain else chain.first_link(self.lineage)


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
    BrokenHistoryError
        If an amount is unreadable, a stored running total is not the sum of the events before it or above its cap,
        a cap rose, a mechanism does not have its digest, a state follows one it cannot follow, a number is missing, or
        an event does not have its hash.
    """
    runs: dict[str, Run] = {}
    last = 0
    epsilon = delta = Fraction(0)
    caps: tuple[Fraction, Fraction] | None = None
    hashes: list[str] = []
    tables: set[str] = set()
    chained = tightly = False
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
        run: Run | None = None
        composed = None if row.get("composed_epsilon") is None else _stored(row, "composed_epsilon")
        follows = follows and (composed is None or (row["state"] == "reserved" and composed <= cap[0]))
        tightly = tightly or composed is not None
        if row["state"] == "moved":
            follows = follows and earlier is None and not any(cost) and bool(tables)
        elif row["state"] in ("reserved", "noted"):
            charged = row["state"] == "reserved"
            follows = follows and earlier is None and (charged or not any(cost))
            epsilon, delta = epsilon + cost[0], delta + cost[1]
            run = Run(
                run_id=row["run_id"],
                state=row["state"],
                epsilon=decimal_of(cost[0]),
                delta=decimal_of(cost[1]),
                counted=charged,
                mechanism=row["mechanism"],
                mechanism_digest=row["mechanism_digest"],
                snapshot=None,
                reason=row["reason"],
                reserved_at=row["created_at"],
                closed_at=None if charged else row["created_at"],
                asked=_parts(row),
                place=row.get("place"),
                composed_epsilon=None if composed is None else decimal_of(composed),
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
        # The sums are within the cap until a run was held against it by another figure; they never bind it after.
        within = composed is not None or (epsilon <= cap[0] and delta <= cap[1])
        if row["state"] != "reserved" and tightly:
            within = True
        if not follows or after != (epsilon, delta) or not within:
            raise _inconsistent(row["sequence"])
        hashes.append(chain.link(hashes[-1] if hashes else chain.first_link(lineage), row))
        # Events of the schemas before the chain have no hash, and none of what came with it.
        earliest = row["state"] not in ("noted", "moved") and row.get("table_identity") is None and composed is None
        if (row.get(chain.COLUMN) or (hashes[-1] if earliest and not chained else None)) != hashes[-1]:
            raise BrokenHistoryError(
                row["sequence"], "is not what was written, or one before it is missing: it does not have its hash"
            )
        chained = row.get(chain.COLUMN) is not None
        if run is not None:
            runs[run.run_id] = run
        if row.get("table_identity") is not None:
            tables.add(row["table_identity"])
        caps, last = cap, row["sequence"]
    cap_epsilon, cap_delta = caps or (None, None)
    return Account(
        lineage, runs, epsilon, delta, cap_epsilon, cap_delta, last, chain=tuple(hashes), tables=frozenset(tables)
    )


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
        refuse_noted(run)
        found = differences(run, request)
        if found:
            raise BudgetError(
                f"run id {request.run_id} was reserved with other parameters; use a new run id. What differs: "
                f"{', '.join(found)}."
            )
        if run.state == "void":
            raise BudgetError(f"run id {request.run_id} was voided and cannot be reserved again; use a new run id.")
        return on_record(account, run)
    refuse_other_table(account, request.table)
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
    composed = None if request.losses is None else _composed(account, request, request.losses)
    if composed is None and (epsilon > request.cap_epsilon or delta > request.cap_delta):
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
        composed_epsilon=composed,
        events=len(account.chain),
        head=account.head,
    )


def _composed(account: Account, request: Request, losses: Losses) -> Decimal:
    """Return what the lineage has spent with the request, or refuse it."""
    events = charged_events(account.runs.values(), losses)
    before = composed_epsilon(events, request.cap_delta)
    events.append(events_of(request.mechanism, request.epsilon, request.delta, losses))
    after = composed_epsilon(events, request.cap_delta)
    if after is None or Fraction(after) > request.cap_epsilon:
        told = ["no epsilon" if figure is None else f"epsilon {figure}" for figure in (before, after)]
        raise BudgetError(
            f"the budget of ledger.lineage {account.lineage} does not allow the run: by privacy-loss distributions "
            f"(ledger.accounting 'pld') all runs cost {told[0]} now and {told[1]} with it, at delta "
            f"{decimal_of(request.cap_delta)}; cap {decimal_of(request.cap_epsilon)}."
        )
    return after


def refuse_noted(run: Run) -> None:
    """Refuse a run id under which something was released without a charge.

    Raises
    ------
    BudgetError
    """
    if run.state == "noted":
        raise BudgetError(
            f"run id {run.run_id} is that of a release that is not private, and was noted without a charge; use a new "
            "run id."
        )


def refuse_other_table(account: Account, table: str | None) -> None:
    """Refuse a table that is not the one the lineage was first used for.

    Parameters
    ----------
    account : Account
    table : str or None
        Identity of the table; None if it is not known.

    Raises
    ------
    BudgetError
    """
    if table is not None and account.tables and table not in account.tables:
        raise BudgetError(
            f"ledger.lineage {account.lineage} is of another table than the policy's: a lineage is of the table it was "
            "first used for. Name the lineage of this table; or, if it is the same table at another place, state so "
            "with 'privrisk ledger move'."
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
        composed_epsilon=run.composed_epsilon,
        events=len(account.chain),
        head=account.head,
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


def _inconsistent(sequence: int) -> BrokenHistoryError:
    return BrokenHistoryError(sequence, "does not follow from the events before it")
