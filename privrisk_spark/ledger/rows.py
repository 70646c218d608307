"""Rows of events, as they are appended."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction

from privrisk_spark.ledger.account import Account
from privrisk_spark.ledger.amounts import decimal_of
from privrisk_spark.ledger.reconciliation import Lost
from privrisk_spark.ledger.records import Run, State
from privrisk_spark.ledger.request import Request, canonical, digest_of

__all__ = ["accept", "charge", "move", "new_files", "note", "noted", "step"]


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
        "asked": canonical(request.asked),
        "table_identity": request.table,
        "unit": request.unit,
        "composed_epsilon": None if composed is None else str(composed),
        "files": new_files(account, request.files),
    }


def new_files(account: Account, files: Collection[str]) -> str | None:
    """Return the JSON list of the files that a lineage does not hold yet; None if it holds all."""
    new = sorted(set(files) - account.tables)
    return canonical(new) if new else None


def note(
    account: Account, run_id: str, what: str, *, place: str, table: str | None, files: Collection[str] = ()
) -> dict[str, object]:
    """Return the event that a release was made which no budget is charged for.

    Parameters
    ----------
    account : Account
    run_id : str
    what : str
        Its kind of guarantee.
    place : str
    table : str or None
        Identity of the table.
    files : collection of str
        Identities of its files.
    """
    reason = f"released with guarantee.kind '{what}', which no budget covers"
    held = {"place": place, "table_identity": table, "files": new_files(account, files)}
    return {**_free(account, run_id, "noted", noted(what), reason), **held}


def noted(what: str) -> dict[str, object]:
    """Return what a note keeps of the release: its kind of guarantee."""
    return {"guarantee": what}


def move(
    account: Account,
    table: str,
    reason: str,
    *,
    files: Collection[str] = (),
    unit: str | None = None,
    beside: Sequence[str] = (),
) -> dict[str, object]:
    """Return the event that the table of the lineage is at another place now; its run id is no run's.

    Parameters
    ----------
    account : Account
    table : str
        Identity of the table.
    reason : str
    files : collection of str
        Identities of its files.
    unit : str or None
        What its releases protect.
    beside : sequence of str
        Other lineages of the same table, by `lineage_name`.
    """
    # An event of its own for each pair: one that was recorded is not changed.
    new = new_files(account, files)
    about = digest_of(canonical([table, unit, sorted(beside), new]))[:16]
    run_id = f"table {table}" if not beside and table not in account.tables else f"table {table} {about}"
    stated: dict[str, object] = {"beside": sorted(beside)} if beside else {}
    held = {"table_identity": table, "unit": unit, "files": new}
    return {**_free(account, run_id, "moved", stated, reason), **held}


def accept(account: Account, lost: Lost, reason: str) -> dict[str, object]:
    """Return the event that charges again a run whose own events were lost; its run id is no run's if it has some."""
    run_id = lost.run_id if lost.run_id not in account.runs else f"accepted {lost.about} of {lost.run_id}"
    epsilon, delta = lost.cost
    return {
        **_free(account, run_id, "accepted", {"heads": sorted(lost.heads)}, reason),
        "epsilon": str(decimal_of(epsilon)),
        "delta": str(decimal_of(delta)),
        **_totals(account, account.epsilon + epsilon, account.delta + delta),
        "place": lost.place,
        "release_digest": lost.release,
    }


def _free(account: Account, run_id: str, state: str, stated: dict[str, object], reason: str) -> dict[str, object]:
    text = canonical(stated)
    return {
        "run_id": run_id,
        "state": state,
        "epsilon": "0",
        "delta": "0",
        # The cap on record; where there is none yet, nobody is held to this one.
        "cap_epsilon": str(decimal_of(account.cap_epsilon or Fraction(0))),
        "cap_delta": str(decimal_of(account.cap_delta or Fraction(0))),
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
    state : {'bound', 'pinned', 'committed', 'void', 'withdrawn'}
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
