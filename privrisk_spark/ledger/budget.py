"""What a lineage has left, and what one more release would do to it: a forecast and balances, as text and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from privrisk_spark.errors import BudgetError
from privrisk_spark.ledger.amounts import decimal_of
from privrisk_spark.ledger.composition import charged_events, composed_epsilon, events_of
from privrisk_spark.ledger.ledger import Ledger
from privrisk_spark.ledger.losses import ReleaseEvents, basic
from privrisk_spark.ledger.records import Balance, Reservation
from privrisk_spark.ledger.request import Request
from privrisk_spark.policy.policy import Accounting
from privrisk_spark.runs.witnesses import Seen

__all__ = ["Forecast", "balance_document", "forecast", "table", "tighter"]


MOST_TOLD = 1024
"""Most releases that are counted to say how many fit by the tight composition."""


@dataclass(frozen=True)
class Forecast:
    """What a run would do to the budget of its lineage.

    Attributes
    ----------
    request : Request
        What the run asks.
    balance : Balance
        Of the lineage, now.
    caps : tuple of Fraction
        What binds the run, epsilon and delta: the policy's cap, or the recorded one if it is lower.
    reservation : Reservation or None
        What reserving would come to; None if it is refused.
    refusal : BudgetError or None
        Why it is refused.
    releases_that_fit : int
        How many releases of this cost fit in what is left now; the run itself is one of them unless it is charged
        already.
    tighter : dict or None
        As :func:`tighter` gives it, of all counted runs and this one.
    """

    request: Request
    balance: Balance
    caps: tuple[Fraction, Fraction]
    reservation: Reservation | None
    refusal: BudgetError | None
    releases_that_fit: int
    tighter: dict[str, Any] | None

    @property
    def document(self) -> dict[str, Any]:
        """The forecast for JSON: exact amounts as text. What is left is told of the sums."""
        made, asked, balance = self.reservation, self.request, self.balance
        after = (None, None) if made is None else (made.spent_epsilon, made.spent_delta)
        epsilon, delta = map(decimal_of, self.caps)
        return {
            "lineage": balance.lineage,
            "run_id": asked.run_id,
            "state": "refused" if made is None else "new" if made.fresh else made.state,
            "refusal": None if self.refusal is None else str(self.refusal),
            "epsilon": _amounts(balance.spent_epsilon, epsilon) | _costs(asked.epsilon, after[0], epsilon),
            "delta": _amounts(balance.spent_delta, delta) | _costs(asked.delta, after[1], delta),
            "releases_that_fit": self.releases_that_fit,
            "accounting": asked.accounting,
            "tighter": self.tighter,
        }


def forecast(ledger: Ledger, request: Request, *, seen: Seen) -> Forecast:
    """Say what a run would cost and what would be left; nothing is written.

    Parameters
    ----------
    seen : Seen
        What output and vault know of the ledger.

    Raises
    ------
    EngineError
        If the ledger fails.
    """
    balance = ledger.balance(request.lineage)
    reservation, refusal = None, None
    try:
        reservation = ledger.would_cost(request, seen=seen)
    except BudgetError as error:
        refusal = error
    caps = (
        min(request.cap_epsilon, Fraction(balance.cap_epsilon or request.cap_epsilon)),
        min(request.cap_delta, Fraction(balance.cap_delta or request.cap_delta)),
    )
    one = events_of(request.mechanism, request.epsilon, request.delta)
    if request.accounting == "pld":
        fits = _fit(charged_events(balance.runs), one, *caps)
    else:
        fits = min(
            max(caps[0] - Fraction(balance.spent_epsilon), Fraction(0)) // request.epsilon,
            max(caps[1] - Fraction(balance.spent_delta), Fraction(0)) // request.delta,
        )
    fresh = reservation is not None and reservation.fresh
    closer = tighter(balance, one if fresh else None, accounting=request.accounting, cap=caps[1])
    return Forecast(request, balance, caps, reservation, refusal, fits, closer)


def tighter(
    balance: Balance,
    further: ReleaseEvents | None = None,
    *,
    accounting: Accounting | None = None,
    cap: Fraction | Decimal | None = None,
) -> dict[str, Any] | None:
    """Compose what the counted runs did by their privacy-loss distributions.

    Parameters
    ----------
    further : ReleaseEvents, optional
        Of one that would run besides.
    accounting : {'basic', 'pld'}, optional
        What the policy's cap binds on; without a policy, that of the last run.
    cap : Fraction or Decimal, optional
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
    events = charged_events(counted)
    if further is not None:
        events.append(further)
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
    """Return a balance for JSON: exact amounts as text."""
    return {
        "lineage": balance.lineage,
        "epsilon": _amounts(balance.spent_epsilon, balance.cap_epsilon),
        "delta": _amounts(balance.spent_delta, balance.cap_delta),
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


def _amounts(spent: Decimal, cap: Decimal | None) -> dict[str, str | None]:
    left = None if cap is None else str(_left(cap, spent))
    return {"spent": str(spent), "cap": None if cap is None else str(cap), "left": left}


def _costs(cost: Fraction, after: Decimal | None, cap: Decimal) -> dict[str, str | None]:
    return {"cost": str(decimal_of(cost)), "left_after": None if after is None else str(_left(cap, after))}


def _left(cap: Decimal, spent: Decimal) -> Decimal:
    return decimal_of(max(Fraction(cap) - Fraction(spent), Fraction(0)))


def table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as lines with aligned columns.

    Parameters
    ----------
    rows : sequence of sequence of str
        The first one names the columns.
    """
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )
