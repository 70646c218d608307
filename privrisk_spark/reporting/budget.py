"""What a differentially private release costs its lineage, and what is left: for the vault."""

from __future__ import annotations

from decimal import Decimal

from privrisk_spark.ledger.records import Reservation
from privrisk_spark.results.release import Section


def budget_section(charged: Reservation) -> Section:
    """Return the budget of a lineage as it was when a run was charged."""
    pairs = {
        "epsilon": (charged.epsilon, charged.spent_epsilon, charged.cap_epsilon),
        "delta": (charged.delta, charged.spent_delta, charged.cap_delta),
    }
    facts: dict[str, str | int | float] = {}
    for name, (cost, spent, cap) in pairs.items():
        facts[f"{name} of this release"] = _plain(cost)
        facts[f"{name} spent of {_plain(cap)}"] = _plain(spent)
        facts[f"{name} left"] = _plain(cap - spent)
    paragraph = (
        f"Every release of the lineage '{charged.lineage}' is charged to one budget. Spent is the sum of all its "
        "releases, this one included, when this one was charged (privrisk ledger show)."
    )
    figures: dict[str, object] = {
        name: {"cost": cost, "spent": spent, "cap": cap} for name, (cost, spent, cap) in pairs.items()
    }
    remarks: tuple[str, ...] = ()
    if charged.composed_epsilon is not None:
        composed = _plain(charged.composed_epsilon)
        figures["composed_epsilon"] = charged.composed_epsilon
        remarks = (f"The cap binds on privacy-loss distributions: by these epsilon {composed} is spent.",)
    return Section("budget", "Privacy budget", paragraph, "tested", facts, remarks, figures)


def _plain(number: Decimal) -> str:
    return f"{number.normalize():g}"
