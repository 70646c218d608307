"""Rows of events, as they are appended."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Final

from privrisk_spark.ledger.account import Account
from privrisk_spark.ledger.amounts import Amounts, decimal_of
from privrisk_spark.ledger.reconciliation import Lost
from privrisk_spark.ledger.records import Run, State
from privrisk_spark.ledger.request import Request, canonical, digest_of

__all__ = ["accept", "charge", "move", "new_files", "note", "noted", "step"]

_NOTHING: Final = (Fraction(0), Fraction(0))


def charge(account: Account, request: Request, composed: Decimal | None) -> dict[str, object]:
    """Return the event that charges a run to its lineage."""
    return _event(
        account,
        request.run_id,
        "reserved",
        request.mechanism,
        {
            "asked": canonical(request.asked),
            "table_identity": request.table,
            "unit": request.unit,
            "composed_epsilon": None if composed is None else str(composed),
            "files": new_files(account, request.files),
        },
        cost=request.cost,
        caps=request.caps,
        charge=1,
    )


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
    what : str
        Its kind of guarantee.
    table : str or None
        Identity of the table.
    files : collection of str
        Identities of its files.
    """
    reason = f"released with guarantee.kind '{what}', which no budget covers"
    held = {"place": place, "table_identity": table, "files": new_files(account, files)}
    return _event(account, run_id, "noted", canonical(noted(what)), {"reason": reason, **held})


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
    table : str
        Identity of the table.
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
    return _event(account, run_id, "moved", canonical(stated), {"reason": reason, **held})


def accept(account: Account, lost: Lost, reason: str) -> dict[str, object]:
    """Return the event that charges again a run whose own events were lost; its run id is no run's if it has some."""
    run_id = lost.run_id if lost.run_id not in account.runs else f"accepted {lost.about} of {lost.run_id}"
    stated = canonical({"heads": sorted(lost.heads)})
    held = {"reason": reason, "place": lost.place, "release_digest": lost.release}
    return _event(account, run_id, "accepted", stated, held, cost=lost.cost, charge=1)


def step(
    account: Account, run: Run, state: State, *, nothing_left: bool = False, **held: str | None
) -> dict[str, object]:
    """Return the event that takes a charged run to its next state.

    Parameters
    ----------
    state : {'bound', 'pinned', 'committed', 'void', 'withdrawn'}
    nothing_left : bool
        Give back what the run was charged.
    **held : str or None
        Further columns of the event, by name.
    """
    return _event(account, run.run_id, state, run.mechanism, held, cost=run.cost, charge=-1 if nothing_left else 0)


def _event(
    account: Account,
    run_id: str,
    state: str,
    mechanism: str,
    held: Mapping[str, str | None],
    *,
    cost: Amounts = _NOTHING,
    caps: Amounts | None = None,
    charge: int = 0,
) -> dict[str, object]:
    """Return an event: ``charge`` is 1, 0 or -1 times the cost; without caps of its own it repeats those on record."""
    event: dict[str, object] = {
        "run_id": run_id,
        "state": state,
        "mechanism": mechanism,
        "mechanism_digest": digest_of(mechanism),
        "nothing_left_the_zone": charge < 0,
        "created_at": _now(),
        **held,
    }
    # Where no cap is on record yet, nobody is held to this one.
    for name, one, cap, spent in zip(
        ("epsilon", "delta"), cost, caps or account.caps or _NOTHING, account.spent, strict=True
    ):
        event |= {
            name: str(decimal_of(one)),
            f"cap_{name}": str(decimal_of(cap)),
            f"spent_{name}_before": str(decimal_of(spent)),
            f"spent_{name}_after": str(decimal_of(spent + charge * one)),
        }
    return event


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
