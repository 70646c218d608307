"""The privacy budget of a policy: what a run of it costs, and what its lineage has left.

No Spark: what a differentially private release costs is fixed before its table is opened, so the policy and its
hierarchies suffice, and the same run id asks the ledger for the same here and in a release.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from privrisk_spark.errors import BudgetError, ConfigError, Fault
from privrisk_spark.hierarchies.builders import build
from privrisk_spark.ledger.amounts import decimal_of
from privrisk_spark.ledger.composition import charged_events, composed_epsilon
from privrisk_spark.ledger.ledger import Ledger
from privrisk_spark.ledger.losses import ReleaseEvents, basic
from privrisk_spark.ledger.records import Balance, Reservation
from privrisk_spark.ledger.urls import file_of
from privrisk_spark.planning.calibration import mechanism
from privrisk_spark.planning.cost import RunCost, cost_of
from privrisk_spark.planning.mechanism import Mechanism, losses_of
from privrisk_spark.policy.policy import Accounting, LedgerPolicy, Policy
from privrisk_spark.runs.vaults import vault_at
from privrisk_spark.runs.witnesses import Seen, look
from privrisk_spark.runs.workplace import output_at
from privrisk_spark.storage.directories import resolved
from privrisk_spark.storage.locations import Location

__all__ = [
    "Forecast",
    "balance_document",
    "claim_vault_of_ledger",
    "forecast",
    "ledger_of",
    "reserve",
    "run_cost",
    "seen_of",
    "table",
    "tighter",
]


MOST_TOLD = 1024
"""Most releases that are counted to say how many fit by the tight composition."""


def ledger_of(policy: Policy) -> LedgerPolicy:
    """Return the ledger of a policy.

    Parameters
    ----------
    policy : Policy

    Returns
    -------
    LedgerPolicy

    Raises
    ------
    ConfigError
        If it names none.
    """
    if policy.ledger is None:
        raise ConfigError([Fault("ledger", "is not in the policy: only guarantee.kind 'dp' spends a budget")])
    return policy.ledger


def seen_of(policy: Policy) -> Seen:
    """Return what output and vault of a policy know of its ledger."""
    return Seen() if policy.output is None else look(output_at(policy.output.path), vault_at(policy.output.vault))


def claim_vault_of_ledger(policy: Policy) -> None:
    """Mark the vault before a ledger file is made in it: releases refuse a vault that has files and no marker.

    Parameters
    ----------
    policy : Policy

    Raises
    ------
    PlaceError
        If the directory of the vault holds files of other programs.
    """
    file = file_of(ledger_of(policy).url)
    if file is None or policy.output is None:
        return
    vault = vault_at(policy.output.vault)
    if Location("file", "", str(resolved(file))).lies_in(vault.location):
        vault.claim()


def run_cost(policy: Policy, run_id: str, date: dt.date) -> RunCost:
    """Return what a run of the policy asks of the ledger.

    Parameters
    ----------
    policy : Policy
        With guarantee.kind ``dp``.
    run_id : str
    date : date
        Business date.

    Returns
    -------
    RunCost

    Raises
    ------
    InputError
        If the policy is not differentially private, or its mechanism or a hierarchy is refused.
    """
    ledger_of(policy)
    if not policy.guarantee.private:
        raise ConfigError([Fault("guarantee.kind", "only 'dp' spends a budget; a release of another kind is noted")])
    # First without hierarchies: it refuses those that would take their leaves from the data.
    mechanism(policy)
    hierarchies = {
        name: build(spec.hierarchy, name, values=None, null_leaf=spec.nulls == "own-value")
        for name, spec in policy.quasi_identifiers.items()
    }
    plan = mechanism(policy, hierarchies)
    return cost_of(policy, plan, run_id, plan.digest(policy, hierarchies), date=date)


@dataclass(frozen=True)
class Forecast:
    """What a run would do to the budget of its lineage.

    Attributes
    ----------
    run_id : str
    epsilon, delta : decimal.Decimal
        What the run costs.
    balance : Balance
        Of the lineage, now.
    cap_epsilon, cap_delta : decimal.Decimal
        What binds the run: the policy's cap, or the recorded one if it is lower.
    reservation : Reservation or None
        What reserving would come to; None if it is refused.
    refusal : BudgetError or None
        Why it is refused.
    releases_that_fit : int
        How many releases of this cost fit in what is left now; the run itself is one of them unless it is charged
        already.
    tighter : dict or None
        As :func:`tighter` gives it, of all counted runs and this one.
    accounting : {'basic', 'pld'}
        What the cap binds on. What is left is told of the sums.
    """

    run_id: str
    epsilon: Decimal
    delta: Decimal
    balance: Balance
    cap_epsilon: Decimal
    cap_delta: Decimal
    reservation: Reservation | None
    refusal: BudgetError | None
    releases_that_fit: int
    tighter: dict[str, Any] | None
    accounting: Accounting = "basic"

    @property
    def left(self) -> tuple[Decimal, Decimal]:
        """Epsilon and delta left now."""
        return (
            _left(self.cap_epsilon, self.balance.spent_epsilon),
            _left(self.cap_delta, self.balance.spent_delta),
        )

    @property
    def left_after(self) -> tuple[Decimal, Decimal] | None:
        """Epsilon and delta left once the run is reserved; None if it is refused."""
        made = self.reservation
        if made is None:
            return None
        return _left(self.cap_epsilon, made.spent_epsilon), _left(self.cap_delta, made.spent_delta)

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON: exact amounts as text."""
        made, after = self.reservation, self.left_after
        return {
            "lineage": self.balance.lineage,
            "run_id": self.run_id,
            "state": "refused" if made is None else "new" if made.fresh else made.state,
            "refusal": None if self.refusal is None else str(self.refusal),
            "epsilon": _amounts(self.epsilon, self.balance.spent_epsilon, self.cap_epsilon, after and after[0]),
            "delta": _amounts(self.delta, self.balance.spent_delta, self.cap_delta, after and after[1]),
            "releases_that_fit": self.releases_that_fit,
            "accounting": self.accounting,
            "tighter": self.tighter,
        }


def forecast(policy: Policy, run_id: str, date: dt.date) -> Forecast:
    """Say what a run would cost and what would be left; nothing is written.

    Parameters
    ----------
    policy : Policy
        With guarantee.kind ``dp``.
    run_id : str
    date : date
        Business date.

    Returns
    -------
    Forecast

    Raises
    ------
    InputError
        If the policy or the ledger's URL is refused.
    EngineError
        If the ledger fails.
    """
    cost, seen = run_cost(policy, run_id, date), seen_of(policy)
    ledger = Ledger(ledger_of(policy).url)
    balance = ledger.balance(cost.lineage)
    reservation, refusal = None, None
    try:
        reservation = ledger.would_cost(**cost.arguments(), seen=seen)
    except BudgetError as error:
        refusal = error
    cap_epsilon = min(cost.cap_epsilon, balance.cap_epsilon or cost.cap_epsilon)
    cap_delta = min(cost.cap_delta, balance.cap_delta or cost.cap_delta)
    accounting, plan = cost.accounting, cost.stored.mechanism
    if accounting == "pld":
        events = charged_events(balance.runs, losses_of)
        fits = _fit(events, plan.events, Fraction(cap_epsilon), Fraction(cap_delta))
    else:
        fits = min(
            Fraction(_left(cap_epsilon, balance.spent_epsilon)) // Fraction(cost.epsilon),
            Fraction(_left(cap_delta, balance.spent_delta)) // Fraction(cost.delta),
        )
    fresh = reservation is not None and reservation.fresh
    return Forecast(
        run_id=run_id,
        epsilon=decimal_of(Fraction(cost.epsilon)),
        delta=decimal_of(Fraction(cost.delta)),
        balance=balance,
        cap_epsilon=cap_epsilon,
        cap_delta=cap_delta,
        reservation=reservation,
        refusal=refusal,
        releases_that_fit=fits,
        tighter=tighter(balance, plan if fresh else None, accounting=accounting, cap=cap_delta),
        accounting=accounting,
    )


def reserve(policy: Policy, run_id: str, date: dt.date) -> Reservation:
    """Charge a run to its lineage now; the release of this run id is then charged nothing more.

    Parameters
    ----------
    policy : Policy
        With guarantee.kind ``dp``.
    run_id : str
    date : date
        Business date.

    Returns
    -------
    Reservation

    Raises
    ------
    BudgetError
        If the budget does not allow it; see `Ledger.reserve`.
    InputError, EngineError
        As `forecast`.
    """
    cost, seen = run_cost(policy, run_id, date), seen_of(policy)
    claim_vault_of_ledger(policy)
    return Ledger(ledger_of(policy).url).reserve(**cost.arguments(), seen=seen)


def tighter(
    balance: Balance,
    further: Mechanism | None = None,
    *,
    accounting: Accounting | None = None,
    cap: Decimal | None = None,
) -> dict[str, Any] | None:
    """Compose what the counted runs did by their privacy-loss distributions.

    Parameters
    ----------
    balance : Balance
    further : Mechanism, optional
        One that would run besides.
    accounting : {'basic', 'pld'}, optional
        What the policy's cap binds on; without a policy, that of the last run.
    cap : Decimal, optional
        The policy's cap of delta, if it is lower than the recorded one.

    Returns
    -------
    dict or None
        epsilon at ``delta``, the number of ``runs``, its ``status``, whether it ``binds``, and what it ``rests_on``.
        delta is the cap's where it binds, and else the sum of the runs. None if there is no run, or nothing to say.
    """
    counted = [run for run in balance.runs if run.counted]
    if accounting is None:
        accounting = "pld" if counted and counted[-1].composed_epsilon is not None else "basic"
    events = charged_events(counted, losses_of)
    if further is not None:
        events.append(further.events)
    if not events:
        return None
    caps = [Fraction(known) for known in (balance.cap_delta, cap) if known is not None]
    delta = min(caps) if accounting == "pld" and caps else basic(events)[1]
    epsilon = None if delta >= 1 else composed_epsilon(events, delta)
    if epsilon is None:
        return None
    # Its packages take seconds to import.
    from privrisk_spark.ledger.accounting import RESTS_ON

    return {
        "epsilon": float(epsilon),
        "delta": str(decimal_of(delta)),
        "runs": len(events),
        "status": "tested",
        "binds": accounting == "pld",
        "rests_on": RESTS_ON,
    }


def _fit(events: Sequence[ReleaseEvents], one: ReleaseEvents, epsilon: Fraction, delta: Fraction) -> int:
    """Return how many releases more the tight composition admits, up to MOST_TOLD."""

    def within(more: int) -> bool:
        found = composed_epsilon([*events, *[one] * more], delta)
        return found is not None and Fraction(found) <= epsilon

    low, high = 0, 1
    while within(high):
        low, high = high, 2 * high
        if low >= MOST_TOLD:
            return MOST_TOLD
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if within(middle) else (low, middle)
    return low


def balance_document(balance: Balance) -> dict[str, Any]:
    """Return a balance for JSON: exact amounts as text.

    Parameters
    ----------
    balance : Balance

    Returns
    -------
    dict
    """
    return {
        "lineage": balance.lineage,
        "epsilon": _amounts(None, balance.spent_epsilon, balance.cap_epsilon),
        "delta": _amounts(None, balance.spent_delta, balance.cap_delta),
        "runs": [
            {
                "run_id": run.run_id,
                "state": run.state,
                "counted": run.counted,
                "epsilon": str(run.epsilon),
                "delta": str(run.delta),
                "reserved_at": run.reserved_at,
                "closed_at": run.closed_at,
                "place": run.place,
                "snapshot": run.snapshot,
                "release_digest": run.release,
                "reason": run.reason,
                "mechanism_digest": run.mechanism_digest,
                "accounting": "basic" if run.composed_epsilon is None else "pld",
                "composed_epsilon": None if run.composed_epsilon is None else str(run.composed_epsilon),
            }
            for run in balance.runs
        ],
        "statements": [asdict(statement) for statement in balance.statements],
    }


def _amounts(
    cost: Decimal | None, spent: Decimal, cap: Decimal | None, after: Decimal | None = None
) -> Mapping[str, str | None]:
    known = {} if cost is None else {"cost": str(cost), "left_after": None if after is None else str(after)}
    left = None if cap is None else str(_left(cap, spent))
    return {"spent": str(spent), "cap": None if cap is None else str(cap), "left": left, **known}


def _left(cap: Decimal, spent: Decimal) -> Decimal:
    return decimal_of(max(Fraction(cap) - Fraction(spent), Fraction(0)))


def table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as lines with aligned columns.

    Parameters
    ----------
    rows : sequence of sequence of str
        The first one names the columns.

    Returns
    -------
    str
    """
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )
