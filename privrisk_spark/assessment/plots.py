"""Plots of an assessment: class sizes, risk, and what the adversary does by group size."""

from __future__ import annotations

import numpy as np

from privrisk_spark.assessment.attack import AttackTable, Groups, attack_of
from privrisk_spark.assessment.tallies import Asked, Tallies
from privrisk_spark.experiments.plots import Panel, Plot, Series
from privrisk_spark.kernels.attack_process import Solution
from privrisk_spark.kernels.deterrence import sweep
from privrisk_spark.policy_assess import AdversaryPolicy

Planned = tuple[Groups, Solution, AttackTable]


def plots_of(
    tallies: Tallies, asked: Asked, planned: Planned | None, policy: AdversaryPolicy | None, name: str
) -> list[Plot]:
    """All plots of one set of quasi-identifiers."""
    plots = [_sizes(tallies, asked, name)]
    if planned is not None and policy is not None:
        plots += [_attack(*planned, name), _deterrence(policy, name)]
    return plots


def _sizes(tallies: Tallies, asked: Asked, name: str) -> Plot:
    sizes = np.array(tallies.sizes.sizes, dtype=np.float64)
    records = sizes * np.array(tallies.sizes.numbers)
    share = np.cumsum(records) / max(records.sum(), 1)
    small = float(records[sizes < asked.k].sum() / max(records.sum(), 1))
    series = [Series("records in classes of at most that size", tuple(sizes.tolist()), tuple(share.tolist()))]
    return Plot(
        key=f"sizes-{name}",
        title="Class sizes",
        figure="",
        claim="",
        found=f"{100 * small:.3g} % of the records are in classes of fewer than {asked.k}.",
        panels=(Panel("", "class size f", "share of the records", tuple(series), log_x=True),),
        data=name,
    )


def _attack(groups: Groups, solution: Solution, table: AttackTable, name: str) -> Plot:
    end = len(solution.values)
    near = groups.sizes <= 2 * max(end, 1)
    x = tuple(groups.sizes[near].astype(float).tolist())
    found = table.assessment
    risk = (
        Series("planning adversary", x, tuple(found.p_reid[near].tolist()), points=True),
        Series("one try at random", x, tuple(found.p_reid_baseline[near].tolist()), points=True),
    )
    payoff = (Series("expected payoff", x, tuple(found.expected_payoff[near].tolist()), points=True),)
    exploits = (Series("candidates approached", x, tuple(found.exploits[near].tolist()), points=True),)
    threshold = solution.known_threshold
    text = (
        f"Whoever knows the group size walks away from {threshold} candidates on."
        if threshold is not None
        else "No group size up to the largest solved keeps the adversary away."
    )
    return Plot(
        key=f"attack-{name}",
        title="The adversary by group size",
        figure="",
        claim="",
        found=text + f" Candidates: {groups.basis}.",
        panels=(
            Panel("Re-identification", "candidates of the record", "probability", risk),
            Panel("Payoff", "candidates of the record", "money", payoff),
            Panel("Plan", "candidates of the record", "candidates approached", exploits),
        ),
        data=name,
    )


_FACTORS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


def _deterrence(policy: AdversaryPolicy, name: str) -> Plot:
    """Group sizes that deter, against cost of access, cost of an exploit, fine and detection (X15 Figure 10)."""
    attack = attack_of(policy)
    detection = float(attack.detection(0))
    panels = []
    for parameter, base, label in (
        ("cost_access", attack.cost_access, "cost of access"),
        ("cost_exploit", attack.cost_exploit, "cost of an exploit"),
        ("penalty", attack.penalty, "fine"),
        ("detection", detection, "probability of detection"),
    ):
        values = [base * factor for factor in _FACTORS if parameter != "detection" or base * factor < 1]
        if not base or (parameter == "cost_exploit" and attack.fines_paid is not None and attack.most_groups is None):
            continue
        found = sweep(attack, parameter, values, largest_group=None if attack.most_groups is not None else 1000)
        y = tuple(float(one) if one >= 0 else float("nan") for one in found.known.tolist())
        panels.append(
            Panel(
                label,
                label,
                "group size without access",
                (Series("threshold", tuple(float(value) for value in found.values), y),),
                log_x=True,
            )
        )
    return Plot(
        key=f"deterrence-{name}",
        title="What deters",
        figure="",
        claim="",
        found="Group sizes from which an adversary who knows them stays away; each cost alone is changed.",
        panels=tuple(panels),
        data=name,
    )
