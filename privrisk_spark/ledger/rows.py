"""Rows of events, as they are appended."""

from __future__ import annotations

from datetime import UTC, datetime
from fractions import Fraction

from privrisk_spark.ledger.account import Account, Run, State
from privrisk_spark.ledger.amounts import decimal_of
from privrisk_spark.ledger.request import Request

__all__ = ["charge", "step"]


def charge(account: Account, request: Request) -> dict[str, object]:
    """Return the event that charges a run to its lineage."""
    return {
        "run_id": request.run_id,
        "state": "reserved",
        "epsilon": str(decimal_of(request.epsilon)),
        "delta": str(decimal_of(request.delta)),
        "cap_epsilon": str(decimal_of(request.cap_epsilon)),
        "cap_delta": str(decimal_of(request.cap_delta)),
        **_totals(account, account.epsilon + request.epsilon, account.delta + request.delta),
        "mechanism": request.mechanism,
        "mechanism_digest": request.digest,
        "nothing_left_the_zone": False,
        "created_at": _now(),
        "asked": request.asked,
    }


def step(
    account: Account, run: Run, state: State, *, nothing_left: bool = False, **held: str | None
) -> dict[str, object]:
    """Return the event that takes a charged run to its next state.

    Parameters
    ----------
    account : Account
    run : Run
    state : {'bound', 'pinned', 'committed', 'void'}
    nothing_left : bool
        Give back what the run was charged.
    **held : str or None
        Further columns of the event, by name.
    """
    back = (Fraction(run.epsilon), Fraction(run.delta)) if nothing_left else (Fraction(0), Fraction(0))
    return {
        "run_id": run.run_id,
        "state": state,
        "epsilon": str(run.epsilon),
        "delta": str(run.delta),
        "cap_epsilon": str(decimal_of(account.cap_epsilon or Fraction(0))),
        "cap_delta": str(decimal_of(account.cap_delta or Fraction(0))),
        **_totals(account, account.epsilon - back[0], account.delta - back[1]),
        "mechanism": run.mechanism,
        "mechanism_digest": run.mechanism_digest,
        "nothing_left_the_zone": nothing_left,
        "created_at": _now(),
        **held,
    }


def _totals(account: Account, epsilon: Fraction, delta: Fraction) -> dict[str, str]:
    return {
        "spent_epsilon_before": str(decimal_of(account.epsilon)),
        "spent_epsilon_after": str(decimal_of(epsilon)),
        "spent_delta_before": str(decimal_of(account.delta)),
        "spent_delta_after": str(decimal_of(delta)),
    }


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
