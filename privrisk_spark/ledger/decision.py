"""What a lineage allows: whether a request is charged, and by which rule it is refused.

No database here. A request may ask that the cap binds on the tight composition of all charged runs instead of the sums
(`privrisk_spark.ledger.composition`): each reservation is checked by the accounting it names, and both are of all runs,
whatever these were checked by.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from decimal import Decimal
from fractions import Fraction
from typing import Final

from privrisk_spark.errors import BudgetError
from privrisk_spark.ledger.account import Account
from privrisk_spark.ledger.amounts import decimal_of
from privrisk_spark.ledger.composition import charged_events, composed_epsilon, events_of
from privrisk_spark.ledger.records import Reservation, Run
from privrisk_spark.ledger.request import Request

__all__ = [
    "decide",
    "differences",
    "on_record",
    "refuse_accepted",
    "refuse_noted",
    "refuse_other_table",
    "refuse_other_unit",
    "refuse_second_budget",
    "refuse_withdrawn",
]

_MECHANISM: Final = "mechanism"
_NAMES: Final = ("epsilon", "delta")


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
        refuse_withdrawn(run)
        refuse_noted(run)
        refuse_accepted(run)
        found = differences(run, request)
        if found:
            raise BudgetError(
                f"run id {request.run_id} was reserved with other parameters; use a new run id. What differs: "
                f"{', '.join(found)}."
            )
        if run.state == "void":
            raise BudgetError(f"run id {request.run_id} was voided and cannot be reserved again; use a new run id.")
        return on_record(account, run)
    refuse_other_table(account, request.tables)
    refuse_other_unit(account, request.unit)
    for name, cap, recorded in zip(_NAMES, request.caps, account.caps or request.caps, strict=True):
        if cap > recorded:
            raise BudgetError(
                f"ledger.cap.{name} must be at most {decimal_of(recorded)}, the cap recorded for "
                f"ledger.lineage {account.lineage}. Got {decimal_of(cap)}. A cap can be lowered but not "
                "raised, because releases made under it promised that no more would ever be spent."
            )
    epsilon, delta = account.spent[0] + request.epsilon, account.spent[1] + request.delta
    composed = _composed(account, request) if request.accounting == "pld" else None
    if composed is None and (epsilon > request.cap_epsilon or delta > request.cap_delta):
        amounts = "; ".join(
            f"{name} asked {decimal_of(asked)}, spent {decimal_of(spent)}, cap {decimal_of(cap)}, "
            f"left {decimal_of(max(cap - spent, Fraction(0)))}"
            for name, asked, spent, cap in zip(_NAMES, request.cost, account.spent, request.caps, strict=True)
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


def _composed(account: Account, request: Request) -> Decimal:
    """Return what the lineage has spent with the request, or refuse it."""
    events = charged_events(account.runs.values())
    before = composed_epsilon(events, request.cap_delta)
    events.append(events_of(request.mechanism, request.epsilon, request.delta))
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


def refuse_accepted(run: Run) -> None:
    """Refuse a run id whose events were lost, so that nobody can tell what was drawn for it.

    Raises
    ------
    BudgetError
    """
    if run.state == "accepted":
        raise BudgetError(
            f"run id {run.run_id} was accepted into the ledger after its own events were lost, and nobody can tell "
            "what was drawn for it; use a new run id."
        )


def refuse_withdrawn(run: Run) -> None:
    """Refuse a run id whose release was withdrawn.

    Raises
    ------
    BudgetError
    """
    if run.state == "withdrawn":
        raise BudgetError(f"the release of run id {run.run_id} was withdrawn; use a new run id for another release.")


def refuse_other_table(account: Account, tables: Collection[str]) -> None:
    """Refuse a table that is not the one the lineage was first used for.

    Parameters
    ----------
    tables : collection of str
        Identities of the table; empty if it is not known.

    Raises
    ------
    BudgetError
    """
    if tables and account.tables and account.tables.isdisjoint(tables):
        raise BudgetError(
            f"ledger.lineage {account.lineage} is of another table than the policy's: a lineage is of the table it was "
            "first used for. Name the lineage of this table; or, if it is the same table at another place, state so "
            "with 'privrisk ledger move'."
        )


def refuse_other_unit(account: Account, unit: str | None) -> None:
    """Refuse to protect something else than the lineage's earlier releases do, as their losses do not add up to its.

    Parameters
    ----------
    unit : str or None
        What the release protects; None if it is not known.

    Raises
    ------
    BudgetError
    """
    if unit is None or not account.units or unit in account.units:
        return
    known = " or ".join(map(repr, sorted(account.units)))
    raise BudgetError(
        f"ledger.lineage {account.lineage} protects {known} (table.entity_id), and the losses of its releases add up "
        f"for that alone. Got {unit!r}. Set table.entity_id as it was; if the column has another name now, state so "
        "with 'privrisk ledger move'; for another unit take a lineage of its own, which 'privrisk ledger move "
        "--beside' allows for the same table."
    )


def refuse_second_budget(account: Account, others: Collection[str]) -> None:
    """Refuse to spend on a table that other lineages of the ledger are of: it would have two budgets.

    Parameters
    ----------
    others : collection of str
        These lineages, without those that somebody stated to be beside this one.

    Raises
    ------
    BudgetError
    """
    if others:
        names = ", ".join(map(repr, sorted(others)))
        raise BudgetError(
            f"ledger.lineage {account.lineage}: the policy's table, or a file of it, is that of the lineage {names}, "
            "and a table has one budget. Set ledger.lineage to that; or, if the losses of both are to be counted "
            "apart, state so with 'privrisk ledger move --beside', which is kept."
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
        ``epsilon``, ``delta``, names of what was asked, and keys of the mechanism record; empty if they agree.
    """
    found = [name for name, one, other in zip(_NAMES, run.cost, request.cost, strict=True) if one != other]
    if run.asked is not None:
        asked = request.asked
        found += [name for name in sorted({*run.asked, *asked}) if run.asked.get(name) != asked.get(name)]
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
    caps = account.caps or (Fraction(0), Fraction(0))
    return Reservation(
        lineage=account.lineage,
        run_id=run.run_id,
        fresh=False,
        state=run.state,
        epsilon=run.epsilon,
        delta=run.delta,
        spent_epsilon=decimal_of(account.spent[0]),
        spent_delta=decimal_of(account.spent[1]),
        cap_epsilon=decimal_of(caps[0]),
        cap_delta=decimal_of(caps[1]),
        snapshot=run.snapshot,
        place=run.place,
        composed_epsilon=run.composed_epsilon,
        events=len(account.chain),
        head=account.head,
    )
