"""A lineage's events replayed: what it has spent, and whether its events follow from each other.

No database here: events come in as mappings. Accounting is basic composition, the epsilons add and the deltas add
(Dwork and Roth, *The Algorithmic Foundations of Differential Privacy*, 2014, Theorem 3.16), over every run whose
reservation was not given back. What is refused by it is in `privrisk_spark.ledger.decision`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

from privrisk_spark.errors import EngineError
from privrisk_spark.ledger import chain
from privrisk_spark.ledger.amounts import decimal_of, stored_amount
from privrisk_spark.ledger.records import Balance, Run, Statement
from privrisk_spark.ledger.request import digest_of

__all__ = [
    "Account",
    "BrokenHistoryError",
    "balance_of",
    "beside_of",
    "held_by",
    "replay",
]

_FOLLOWS: Final[Mapping[str, frozenset[str]]] = {
    "bound": frozenset({"reserved"}),
    "pinned": frozenset({"bound"}),
    "committed": frozenset({"pinned"}),
    "void": frozenset({"reserved", "bound", "pinned"}),
    "withdrawn": frozenset({"committed", "noted", "accepted"}),
}
"""Which states a state follows; see docs/charge.md."""
_STATEMENTS: Final = frozenset({"moved", "accepted"})
"""States in which somebody says what the ledger cannot know."""
_FREE: Final = frozenset({"noted", "moved", "accepted"})
"""States whose events bind no cap: what they tell is so whatever the cap is."""
_NOT_TEXT: Final = frozenset({"sequence", "nothing_left_the_zone"})


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
        Identities of the table the lineage is of: the first one used, those it was moved to, and those of its files.
    units : frozenset of str
        What its releases protect, as the runs and moves that say so have it.
    beside : frozenset of str
        Other lineages, by `lineage_name`, that somebody stated to be of the same table.
    accepted : frozenset of str
        Hashes that vaults know and this history does not hold, and that somebody stated to be lost.
    statements : tuple of Statement
        What was stated, in order.
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
    units: frozenset[str] = frozenset()
    beside: frozenset[str] = frozenset()
    accepted: frozenset[str] = frozenset()
    statements: tuple[Statement, ...] = ()

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
        If a value is of another type than the ledger writes, an amount is unreadable, a stored running total is not the
        sum of the events before it or above its cap, a cap rose, a mechanism does not have its digest, a state follows
        one it cannot follow, a number is missing, or an event does not have its hash.
    """
    runs: dict[str, Run] = {}
    last = 0
    epsilon = delta = Fraction(0)
    caps: tuple[Fraction, Fraction] | None = None
    hashes: list[str] = []
    tables: set[str] = set()
    units: set[str] = set()
    beside: set[str] = set()
    accepted: set[str] = set()
    statements: list[Statement] = []
    for row in events:
        _refuse_types(row)
        state, free = row["state"], row["state"] in _FREE
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
        follows = follows and (composed is None or (state == "reserved" and composed <= cap[0]))
        if free:
            follows = follows and earlier is None and (state == "accepted" or not any(cost))
        if state == "moved":
            others = beside_of(row["mechanism"])
            follows = follows and bool(tables or others)
            beside |= others
        elif free or state == "reserved":
            follows = follows and earlier is None
            epsilon, delta = epsilon + cost[0], delta + cost[1]
            accepted |= _listed(row["mechanism"], "heads") if state == "accepted" else frozenset()
            run = Run(
                run_id=row["run_id"],
                state=state,
                epsilon=decimal_of(cost[0]),
                delta=decimal_of(cost[1]),
                counted=state == "reserved" or any(cost),
                mechanism=row["mechanism"],
                mechanism_digest=row["mechanism_digest"],
                snapshot=None,
                reason=row["reason"],
                reserved_at=row["created_at"],
                closed_at=row["created_at"] if free else None,
                asked=_parts(row),
                place=row.get("place"),
                release=row.get("release_digest"),
                composed_epsilon=None if composed is None else decimal_of(composed),
                table=row.get("table_identity"),
            )
        else:
            if earlier is None or not _may_follow(earlier, row):
                raise _inconsistent(row["sequence"])
            follows = follows and cost == (Fraction(earlier.epsilon), Fraction(earlier.delta))
            follows = follows and row["mechanism_digest"] == earlier.mechanism_digest
            refunded = state == "void" and row["nothing_left_the_zone"]
            if refunded:
                epsilon, delta = epsilon - cost[0], delta - cost[1]
            run = replace(
                earlier,
                state=state,
                counted=earlier.counted and not refunded,
                snapshot=row["snapshot"] or earlier.snapshot,
                reason=row["reason"],
                closed_at=row["created_at"] if state in ("committed", "void", "withdrawn") else None,
                key=row.get("key_commitment") or earlier.key,
                place=row.get("place") or earlier.place,
                release=row.get("release_digest"),
            )
        # The cap binds a reservation, by the sums or by another figure; what follows one repeats its totals.
        within = state != "reserved" or composed is not None or (epsilon <= cap[0] and delta <= cap[1])
        if not follows or after != (epsilon, delta) or not within:
            raise _inconsistent(row["sequence"])
        hashes.append(chain.link(hashes[-1] if hashes else chain.first_link(lineage), row))
        if row.get(chain.COLUMN) != hashes[-1]:
            raise BrokenHistoryError(
                row["sequence"], "is not what was written, or one before it is missing: it does not have its hash"
            )
        if run is not None:
            runs[run.run_id] = run
        tables |= held_by(row)
        units |= {row["unit"]} if row.get("unit") is not None else set()
        if state in _STATEMENTS:
            statements.append(Statement(state, row["run_id"], row["reason"] or "", row["created_at"]))
        caps, last = caps if free or state == "withdrawn" else cap, row["sequence"]
    cap_epsilon, cap_delta = caps or (None, None)
    return Account(
        lineage,
        runs,
        epsilon,
        delta,
        cap_epsilon,
        cap_delta,
        last,
        chain=tuple(hashes),
        tables=frozenset(tables),
        units=frozenset(units),
        beside=frozenset(beside),
        accepted=frozenset(accepted),
        statements=tuple(statements),
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
        statements=account.statements,
    )


def _may_follow(run: Run, row: Mapping[str, Any]) -> bool:
    """Whether an event may come next, and holds what its state needs."""
    state, place = row["state"], row.get("place")
    if run.state not in _FOLLOWS.get(state, frozenset()):
        return False
    if state == "bound":
        return bool(row.get("key_commitment") and place)
    if state == "pinned":
        return bool(row["snapshot"])
    if state == "withdrawn":
        return bool(row["reason"] and row.get("release_digest") == run.release)
    return state == "void" or bool(row["snapshot"] == run.snapshot and row.get("release_digest"))


def _parts(row: Mapping[str, Any]) -> dict[str, str] | None:
    text = row.get("asked")
    if text is None:
        return None
    try:
        return dict(json.loads(text))
    except (ValueError, TypeError):
        raise _inconsistent(row["sequence"]) from None


def beside_of(statement: str) -> frozenset[str]:
    """Return the other lineages of the same table that a move names, by the JSON text of its event; none if it is none.

    Parameters
    ----------
    statement : str
    """
    return _listed(statement, "beside")


def held_by(row: Mapping[str, Any]) -> frozenset[str]:
    """Return the identities of the table and of its files that an event tells, by its columns."""
    files = row.get("files")
    try:
        told = [] if files is None else [str(one) for one in json.loads(files)]
    except (ValueError, TypeError):
        told = []
    return frozenset(told) | (frozenset() if row.get("table_identity") is None else {row["table_identity"]})


def _listed(statement: str, name: str) -> frozenset[str]:
    try:
        return frozenset(str(one) for one in json.loads(statement).get(name, []))
    except (ValueError, TypeError, AttributeError):
        return frozenset()


def _refuse_types(row: Mapping[str, Any]) -> None:
    """Refuse a value that is no text, such as a BLOB, which SQLite takes into any column."""
    for name, value in row.items():
        if name not in _NOT_TEXT and not isinstance(value, str | None):
            raise BrokenHistoryError(row["sequence"], f"is not what was written: its {name} is no text")


def _stored(row: Mapping[str, Any], column: str) -> Fraction:
    exact = stored_amount(row[column])
    if exact is None:
        raise _inconsistent(row["sequence"])
    return exact


def _inconsistent(sequence: int) -> BrokenHistoryError:
    return BrokenHistoryError(sequence, "does not follow from the events before it")
