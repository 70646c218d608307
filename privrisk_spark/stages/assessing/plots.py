"""Plots of an assessment: class sizes, risk, and what the adversary does by group size."""

from __future__ import annotations

import numpy as np

from privrisk_spark.kernels.adversary.deterrence import sweep
from privrisk_spark.kernels.adversary.process import Solution
from privrisk_spark.kernels.measures.population_sizes import PopulationHistogram
from privrisk_spark.policy.assessment import AdversaryPolicy
from privrisk_spark.results.plots import Panel, Plot, Series
from privrisk_spark.stages.assessing.attack import AttackTable, Groups, attack_of, played
from privrisk_spark.stages.assessing.tallies import ClassMeasures, Tallies

MOST_SHOWN = 200
"""Largest group size in a plot."""

Planned = tuple[Groups, Solution, AttackTable]


def plots_of(
    tallies: Tallies, asked: ClassMeasures, planned: Planned | None, policy: AdversaryPolicy | None, name: str
) -> list[Plot]:
    """All plots of one set of quasi-identifiers."""
    plots = [_sizes(tallies, asked, name)]
    if planned is not None and policy is not None:
        groups, solution, _ = planned
        plots += [_attack(policy, groups, solution, name), *_deterrence(policy, name)]
    return plots


def _sizes(tallies: Tallies, asked: ClassMeasures, name: str) -> Plot:
    """Records by the size of their class, and by the risk that follows from it."""
    candidates, records = tallies.crowds.candidates
    sizes = candidates.astype(np.float64)
    total = max(float(records.sum()), 1.0)
    small = float(records[sizes < asked.k].sum()) / total
    at_most = tuple((np.cumsum(records) / total).tolist())
    risks = [Series("prosecutor", tuple((1 / sizes).tolist()), at_most)]
    if tallies.population is not None:
        risks.append(Series("journalist", *_journalist(tallies.population)))
    return Plot(
        key=f"sizes-{name}",
        title="Distribution of class sizes and risk",
        figure="",
        found=f"{100 * small:.3g} % of the records are in classes of fewer than {asked.k}.",
        panels=(
            Panel(
                "Class sizes",
                "class size f",
                "share of records in classes up to f",
                (Series("prosecutor", tuple(sizes.tolist()), at_most),),
                log_x=True,
            ),
            Panel("Risk", "risk", "share of records at least that risky", tuple(risks), log_x=True),
        ),
        data=name,
    )


def _journalist(histogram: PopulationHistogram) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Risks ``1/F`` of the covered records and the share of them at least as risky."""
    pairs = zip(histogram.pairs, histogram.numbers, strict=True)
    covered = np.array([(people, size * number) for (size, people), number in pairs if people], dtype=np.float64)
    if not len(covered):
        return (), ()
    people, at = np.unique(covered[:, 0], return_inverse=True)
    records = np.bincount(at, weights=covered[:, 1])
    return tuple((1 / people).tolist()), tuple((np.cumsum(records) / records.sum()).tolist())


def _attack(policy: AdversaryPolicy, groups: Groups, solution: Solution, name: str) -> Plot:
    """What the adversary does by group size, whether or not the table has groups of the size."""
    end = len(solution.values)
    most = min(end - 1 if not solution.complete else end + end // 5 + 1, MOST_SHOWN, max(groups.people, 1))
    sizes = np.arange(1, most + 1, dtype=np.int64)
    found = played(policy, solution, sizes, groups.people).assessment
    x = tuple(sizes.astype(float).tolist())
    risk = (
        Series("planning adversary", x, tuple(found.p_reid.tolist())),
        Series("one try at random", x, tuple(found.p_reid_baseline.tolist())),
    )
    payoff = (Series("expected payoff", x, tuple(found.expected_payoff.tolist())),)
    plan = (
        Series("candidates at the start", x, x),
        Series("left where he stops", x, tuple((sizes - found.exploits).tolist())),
    )
    near = int(groups.records[groups.sizes <= most].sum())
    share = 100 * near / max(int(groups.records.sum()), 1)
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
        found=f"{text} Candidates: {groups.basis}; {share:.3g} % of the records have no more than shown.",
        panels=(
            Panel("Re-identification", "candidates of the record", "probability", risk),
            Panel("Payoff", "candidates of the record", policy.currency, payoff),
            Panel("Plan", "candidates of the record", "candidates", plan),
        ),
        data=name,
    )


_FACTORS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


def _deterrence(policy: AdversaryPolicy, name: str) -> list[Plot]:
    """Group sizes that deter, against cost of access, cost of an exploit, fine and detection (X15 Figure 10)."""
    attack = attack_of(policy)
    asked = {
        "cost_access": ("cost of access", attack.cost_access),
        "cost_exploit": ("cost of an exploit", attack.cost_exploit),
        "penalty": ("fine", attack.penalty),
        "detection": ("detection probability", float(attack.detection(0))),
    }
    if attack.most_groups is None:
        return []
    plots = []
    for key, title, parameters in (
        ("costs", "What deters: costs", ("cost_access", "cost_exploit")),
        ("fines", "What deters: fines and detection", ("penalty", "detection")),
    ):
        panels = []
        for parameter in parameters:
            label, base = asked[parameter]
            values = [base * factor for factor in _FACTORS if parameter != "detection" or base * factor < 1]
            if not base:
                continue
            found = sweep(attack, parameter, values)
            y = tuple(float(one) if one >= 0 else float("nan") for one in found.known.tolist())
            series = Series("threshold", tuple(found.values.tolist()), y)
            panels.append(Panel("", label, "group size without access", (series,), log_x=True))
        if panels:
            plots.append(
                Plot(
                    key=f"{key}-{name}",
                    title=title,
                    figure="",
                    found="Group sizes from which an adversary who knows them stays away, if one parameter is changed.",
                    panels=tuple(panels),
                    data=name,
                )
            )
    return plots
