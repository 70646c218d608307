"""Rows of events, as they are appended."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction

from privrisk_spark.ledger.account import Account
from privrisk_spark.ledger.amounts import decimal_of
from privrisk_spark.ledger.records import Run, State
from privrisk_spark.ledger.request import Request, canonical, digest_of

__all__ = ["charge", "move", "note", "step"]


def charge(account: Account, request: Request, composed: Decimal | None) -> dict[str, object]:
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
        "table_identity": request.table,
        "composed_epsilon": None if composed is None else str(composed),
    }


def note(
    account: Account, run_id: str, what: str, *, place: str, cap: tuple[Fraction, Fraction], table: str | None
) -> dict[str, object]:
    """Return the event that a release was made which no budget is charged for.

    Parameters
    ----------
    account : Account
    run_id : str
    what : str
        Its kind of guarantee.
    place : str
    cap : tuple of Fraction
        epsilon and delta, if the account has no cap yet.
    table : str or None
        Identity of the table.
    """
    reason = f"released with guarantee.kind '{what}', which no budget covers"
    return {
        **_free(account, run_id, "noted", {"guarantee": what}, cap, reason),
        "place": place,
        "table_identity": table,
    }


def move(account: Account, table: str, reason: str) -> dict[str, object]:
    """Return the event that the table of the lineage is at another place now; its run id is no run's."""
    cap = Fraction(account.cap_epsilon or 0), Fraction(account.cap_delta or 0)
    return {**_free(account, f"table {table}", "moved", {}, cap, reason), "table_identity": table}


def _free(
    account: Account,
    run_id: str,
    state: str,
    mechanism: dict[str, str],
    cap: tuple[Fraction, Fraction],
    reason: str,
) -> dict[str, object]:
    text = canonical(mechanism)
    # A cap that is on record binds; nothing here lowers it.
    binding = [
        asked if known is None else known
        for asked, known in zip(cap, (account.cap_epsilon, account.cap_delta), strict=True)
    ]
    return {
        "run_id": run_id,
        "state": state,
        "epsilon": "0",
        "delta": "0",
        "cap_epsilon": str(decimal_of(binding[0])),
        "cap_delta": str(decimal_of(binding[1])),
        **_totals(account, account.epsilon, account.delta),
        "mechanism": text,
        "mechanism_digest": digest_of(text),
        "nothing_left_the_zone": False,
        "reason": reason,
        "created_at": _now(),
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
