"""What a ledger tells: of one run, of a lineage, and of what a reservation came to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Literal

from privrisk_spark.ledger.amounts import Amounts

__all__ = ["Balance", "Reservation", "Run", "State", "Statement"]

State = Literal["reserved", "bound", "pinned", "committed", "void", "noted", "accepted", "withdrawn"]


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
    state : {'reserved', 'bound', 'pinned', 'committed', 'noted', 'accepted'}
        ``committed`` means that it is settled, to the byte, what is published for this run; the last two are of runs
        that no reservation was made for.
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
    composed_epsilon : decimal.Decimal or None
        Under accounting by privacy-loss distributions: what the lineage has spent at ``cap_delta``, as it was when this
        run was charged; None if the sums bound it.
    events : int
        How many events the lineage has after this call.
    head : str
        Hash of the last of them (`privrisk_spark.ledger.chain`).
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
    composed_epsilon: Decimal | None = None
    events: int = 0
    head: str = ""


@dataclass(frozen=True)
class Run:
    """One run of a lineage, as the ledger knows it.

    Attributes
    ----------
    run_id : str
        The run.
    state : {'reserved', 'bound', 'pinned', 'committed', 'void', 'noted', 'accepted', 'withdrawn'}
        Its last recorded state; ``noted`` is a release that is not private, which is charged nothing; ``accepted`` is
        a run whose events were lost and which was charged again for what is published or known of it; ``withdrawn`` is
        a run whose release was taken away, and whose charge stays.
    epsilon, delta : decimal.Decimal
        What it reserved.
    counted : bool
        Whether that is part of the lineage's spent budget: always, except for a run voided with the
        statement that nothing left the trusted zone, and one that cost nothing when it was noted or accepted.
    mechanism, mechanism_digest : str
        Canonical JSON of its mechanism record, and its SHA-256 in hexadecimal.
    asked : mapping of str to str, or None
        Digests of what it was asked for, by name; None for a run that nothing was reserved for.
    key : str or None
        Commitment to its release key.
    place : str or None
        Where it publishes, resolved.
    snapshot : str or None
        What it read.
    release : str or None
        Digest of what it publishes.
    composed_epsilon : decimal.Decimal or None
        What the lineage had spent with this run, by privacy-loss distributions at the cap's delta of then; None for a
        run that was checked by the sums.
    table : str or None
        Identity of the table, if the run says it.
    reason : str or None
        Reason named when it was voided or accepted.
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
    composed_epsilon: Decimal | None = None
    table: str | None = None

    @property
    def cost(self) -> Amounts:
        """What it reserved, exactly."""
        return Fraction(self.epsilon), Fraction(self.delta)


@dataclass(frozen=True)
class Statement:
    """What somebody stated of a lineage that the ledger cannot know.

    Attributes
    ----------
    state : {'moved', 'accepted'}
    about : str
        The table, or the run.
    stated_at : str
        UTC, ISO 8601.
    """

    state: str
    about: str
    reason: str
    stated_at: str


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
    statements : tuple of Statement
        What was stated of it, in order.
    """

    lineage: str
    spent_epsilon: Decimal
    spent_delta: Decimal
    cap_epsilon: Decimal | None
    cap_delta: Decimal | None
    runs: tuple[Run, ...]
    statements: tuple[Statement, ...] = ()
