"""A lineage's events replayed: what it has spent, and whether its events follow from each other.

No database here: events come in as mappings. Accounting is basic composition, the epsilons add and the deltas add
(Dwork and Roth, *The Algorithmic Foundations of Differential Privacy*, 2014, Theorem 3.16), over every run whose
reservation was not given back. What is refused by it is in `privrisk_spark.ledger.decision`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Final

from privrisk_spark.errors import EngineError
from privrisk_spark.ledger import chain
from privrisk_spark.ledger.amounts import Amounts, decimal_of, stored_amount
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
_FREE: Final = frozenset({"noted", "moved", "accepted"})
"""States whose events bind no cap: what they tell is so whatever the cap is."""
_FIRST: Final = _FREE | {"reserved"}
"""States that a run begins in."""
_NEEDS: Final[Mapping[str, tuple[str, ...]]] = {
    "reserved": ("asked",),
    "bound": ("key_commitment", "place"),
    "pinned": ("snapshot",),
    "committed": ("snapshot", "release_digest"),
    "noted": ("place",),
    "moved": ("table_identity",),
    "accepted": ("reason",),
    "withdrawn": ("reason",),
}
"""What the event of a state holds."""
_NOT_TEXT: Final = frozenset({"sequence", "nothing_left_the_zone"})
_NOTHING: Final = (Fraction(0), Fraction(0))


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


@dataclass
class Account:
    """The events of one lineage, replayed.

    Attributes
    ----------
    lineage : str
        The lineage.
    runs : dict of str to Run
        By run id, in the order of their reservations.
    spent : tuple of Fraction
        Exact sums of epsilon and of delta over the counted runs.
    caps : tuple of Fraction, or None
        The lowest caps of epsilon and delta on record; None before the first reservation.
    chain : list of str
        Hash of each event.
    tables : set of str
        Identities of the table the lineage is of: the first one used, those it was moved to, and those of its files.
    units : set of str
        What its releases protect, as the runs and moves that say so have it.
    beside : set of str
        Other lineages, by `lineage_name`, that somebody stated to be of the same table.
    accepted : set of str
        Hashes that vaults know and this history does not hold, and that somebody stated to be lost.
    statements : list of Statement
        What was stated, in order.
    """

    lineage: str
    runs: dict[str, Run] = field(default_factory=dict)
    spent: Amounts = _NOTHING
    caps: Amounts | None = None
    chain: list[str] = field(default_factory=list)
    tables: set[str] = field(default_factory=set)
    units: set[str] = field(default_factory=set)
    beside: set[str] = field(default_factory=set)
    accepted: set[str] = field(default_factory=set)
    statements: list[Statement] = field(default_factory=list)

    @property
    def head(self) -> str:
        """Hash of the last event."""
        return self.chain[-1] if self.chain else chain.first_link(self.lineage)


def replay(lineage: str, events: Iterable[Mapping[str, Any]]) -> Account:
    """Add up the events of a lineage, and refuse them if they do not follow from each other.

    Parameters
    ----------
    lineage : str
        The lineage.
    events : iterable of mapping
        Its events in the order of their numbers 1, 2, 3, …, keyed by the ledger's column names.

    Raises
    ------
    BrokenHistoryError
        If a value is of another type than the ledger writes, an amount is unreadable, a stored running total is not the
        sum of the events before it or above its cap, a cap rose, a mechanism does not have its digest, a state follows
        one it cannot follow or lacks what it needs, a number is missing, or an event does not have its hash.
    """
    account = Account(lineage)
    for row in events:
        _refuse_types(row)
        _add(account, row)
    return account


def _add(account: Account, row: Mapping[str, Any]) -> None:
    """Add an event to an account, or refuse it."""
    state, earlier = row["state"], account.runs.get(row["run_id"])
    cost, cap = _pair(row, "{}"), _pair(row, "cap_{}")
    refunded = state == "void" and bool(row["nothing_left_the_zone"])
    charge = 1 if state in ("reserved", "accepted") else -1 if refunded else 0
    spent = account.spent[0] + charge * cost[0], account.spent[1] + charge * cost[1]
    composed = None if row.get("composed_epsilon") is None else _amount(row, "composed_epsilon")
    others = beside_of(row["mechanism"]) if state == "moved" else frozenset()
    follows = (
        row["sequence"] == len(account.chain) + 1
        and row["run_id"].isprintable()
        and bool(row["run_id"].strip())
        and _pair(row, "spent_{}_before") == account.spent
        and _pair(row, "spent_{}_after") == spent
        and row["mechanism_digest"] == digest_of(row["mechanism"])
        and (account.caps is None or _at_most(cap, account.caps))
        and all(row.get(name) for name in _NEEDS.get(state, ()))
        and (refunded or not row["nothing_left_the_zone"])
        # The cap binds a reservation, by the sums or by another figure; what follows one repeats its totals.
        and (composed is None or (state == "reserved" and composed <= cap[0]))
        and (state != "reserved" or composed is not None or _at_most(spent, cap))
        and (state not in ("noted", "moved") or not any(cost))
        and (state != "moved" or bool(account.tables or others))
        and (earlier is None if state in _FIRST else earlier is not None and _may_follow(earlier, row, cost))
    )
    if not follows:
        raise _inconsistent(row["sequence"])
    head = chain.link(account.head, row)
    if row.get(chain.COLUMN) != head:
        raise BrokenHistoryError(
            row["sequence"], "is not what was written, or one before it is missing: it does not have its hash"
        )
    if earlier is not None:
        account.runs[earlier.run_id] = replace(
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
    elif state != "moved":
        account.runs[row["run_id"]] = Run(
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
            closed_at=row["created_at"] if state in _FREE else None,
            asked=_parts(row),
            place=row.get("place"),
            release=row.get("release_digest"),
            composed_epsilon=None if composed is None else decimal_of(composed),
            table=row.get("table_identity"),
        )
    account.chain.append(head)
    account.spent = spent
    account.tables |= held_by(row)
    account.units |= {row["unit"]} if row.get("unit") is not None else set()
    account.beside |= others
    if state in ("moved", "accepted"):
        account.statements.append(Statement(state, row["run_id"], row["reason"] or "", row["created_at"]))
    if state == "accepted":
        account.accepted |= _listed(row["mechanism"], "heads")
    if state not in _FREE and state != "withdrawn":
        account.caps = cap


def balance_of(account: Account) -> Balance:
    """Return an account in decimals.

    Parameters
    ----------
    account : Account
        The account.
    """
    caps = (None, None) if account.caps is None else (decimal_of(account.caps[0]), decimal_of(account.caps[1]))
    return Balance(
        lineage=account.lineage,
        spent_epsilon=decimal_of(account.spent[0]),
        spent_delta=decimal_of(account.spent[1]),
        cap_epsilon=caps[0],
        cap_delta=caps[1],
        runs=tuple(account.runs.values()),
        statements=tuple(account.statements),
    )


def _may_follow(run: Run, row: Mapping[str, Any], cost: Amounts) -> bool:
    """Whether an event may come next for a run."""
    return (
        run.state in _FOLLOWS.get(row["state"], ())
        and cost == run.cost
        and row["mechanism_digest"] == run.mechanism_digest
        and (row["state"] != "committed" or row["snapshot"] == run.snapshot)
        and (row["state"] != "withdrawn" or row.get("release_digest") == run.release)
    )


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


def _pair(row: Mapping[str, Any], form: str) -> Amounts:
    return _amount(row, form.format("epsilon")), _amount(row, form.format("delta"))


def _amount(row: Mapping[str, Any], column: str) -> Fraction:
    exact = stored_amount(row[column])
    if exact is None:
        raise _inconsistent(row["sequence"])
    return exact


def _at_most(amounts: Amounts, caps: Amounts) -> bool:
    return amounts[0] <= caps[0] and amounts[1] <= caps[1]


def _inconsistent(sequence: int) -> BrokenHistoryError:
    return BrokenHistoryError(sequence, "does not follow from the events before it")
