"""Rules of a policy's decision that other keys take part in: what each variant cannot take.

What a variant is beyond its keys is in :mod:`privrisk_spark.planning.decisions`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from privrisk_spark.errors import Fault, listing, nearest
from privrisk_spark.policy.decisions import (
    SINGLE,
    AggregateDecision,
    CellsDecision,
    DecisionPolicy,
    DiscloseInAll,
    DisclosePerAttribute,
    DisclosePerRecord,
    GreatestUtilityDecision,
    LeastPenalizedDecision,
    LeastRiskDecision,
    ListedRulesDecision,
    SearchedDecision,
)
from privrisk_spark.policy.policy import Policy


def impossible_decision(policy: Policy, decision: DecisionPolicy) -> Iterable[Fault]:
    """Yield what the decision cannot take."""
    yield from _IMPOSSIBLE[type(decision)](policy, decision)


def _impossible_least_risk(policy: Policy, decision: LeastRiskDecision) -> Iterable[Fault]:
    if decision.neighbourhood != "swap" and decision.method != "aruba":
        yield Fault(
            "decision.neighbourhood",
            f"is only used by the method 'aruba', and decision.method is '{decision.method}'; leave it out",
        )
    yield from _impossible_search(policy, decision)


def _impossible_search(policy: Policy, decision: SearchedDecision) -> Iterable[Fault]:
    if decision.method in SINGLE:
        yield from against_record_search(policy, decision.method)
    elif decision.most_steps != 1_000_000 and decision.method != "auto":
        yield Fault("decision.most_steps", f"is only used by the methods {listing(SINGLE)}; leave it out")


_COMPOSED = (LeastRiskDecision, GreatestUtilityDecision, LeastPenalizedDecision)
_HEURISTIC = ("genetic", "approximate")


def against_history(decision: DecisionPolicy) -> Iterable[Fault]:
    """Yield what composition with earlier releases cannot take of a decision."""
    if not isinstance(decision, _COMPOSED):
        yield Fault(
            "decision.problem",
            f"must be 'min-risk', 'max-utility' or 'min-risk-minus-utility' with history. Got '{decision.problem}'",
        )
    elif decision.method in _HEURISTIC:
        yield Fault(
            "decision.method",
            "must be 'auto', 'exact', 'aruba', 'exhaustive', 'branch_and_bound' or 'btda' with history. "
            f"Got '{decision.method}'",
        )


def against_record_search(policy: Policy, method: str, *, enumerable: bool = True) -> Iterable[Fault]:
    """Yield what a search of one record at a time cannot take, whether it is named or a lattice's size chose it."""
    instead = "; use 'exhaustive'" if enumerable else ""
    decision = policy.decision
    if isinstance(decision, AggregateDecision) and decision.kappa not in (0, 1, 2):
        yield Fault("decision.kappa", f"must be 0, 1 or 2 for '{method}'{instead}. Got {decision.kappa:g}")
    ratios = method in ("aggregate", "approximate")
    if ratios and policy.dictionary.kind in ("bayes", "minimax"):
        yield Fault("decision.method", f"'{method}' takes one dictionary, and there are several{instead}")
    form = policy.risk.sensitivity.form
    if (form == "interaction" or (ratios and form == "multiplicative")) and policy.risk.model != "II":
        yield Fault(
            "decision.method",
            f"'{method}' needs a sensitivity that is a sum over attributes, and the form is '{form}'{instead}"
            f"{', or' if instead else '; use'} the form 'linear'",
        )
    if ratios and policy.risk.model == "III":
        yield Fault("decision.method", f"'{method}' is stated for the risk models I and II{instead}. Got model 'III'")
    if policy.counting.plan not in ("auto", "sorted"):
        yield Fault(
            "counting.plan",
            f"must be 'auto' or 'sorted': '{method}' reads the dictionary's vectors. Got '{policy.counting.plan}'",
        )
    if policy.table.entity_id is not None or any(
        one.table is not None and one.table.entity_id is not None for one in policy.dictionaries
    ):
        yield Fault("decision.method", f"'{method}' counts rows, and entity_id asks for persons{instead}")


def impossible_where_similar(policy: Policy, decision: DecisionPolicy) -> Iterable[Fault]:
    """Yield a search that leaves nodes out where counts are not monotone; a rule leaves none out."""
    if policy.dictionary.consistency == "similar" and decision.method in ("exact", "aruba", *SINGLE):
        yield Fault(
            "decision.method",
            "must be 'auto' or 'exhaustive' under the consistency 'similar', whose counts are not monotone: a search "
            f"that leaves nodes out may miss the least risk. Got '{decision.method}'",
        )


def _impossible_listed_rules(policy: Policy, decision: ListedRulesDecision) -> Iterable[Fault]:
    quasi = list(policy.quasi_identifiers)
    names = [rule.name or str(i) for i, rule in enumerate(decision.rules, 1)]
    for i, rule in enumerate(decision.rules):
        at = f"decision.rules.{i}"
        if names[i] in names[:i]:
            yield Fault(f"{at}.name", f"'{names[i]}' is the name of another rule; give each its own")
        mentioned = [(f"{at}.levels.{name}", name) for name in rule.levels]
        mentioned += [(f"{at}.suppress.{j}", name) for j, name in enumerate(rule.suppress)]
        for path, name in mentioned:
            if name not in quasi:
                yield Fault(
                    path, f"'{name}' is not a quasi-identifier{nearest(name, quasi)}; there are {listing(quasi)}"
                )
        for name in sorted(set(rule.levels).intersection(rule.suppress)):
            yield Fault(f"{at}.levels.{name}", "is suppressed by the same rule; give its level or suppress it")


def _impossible_cells_per_record(policy: Policy, decision: DisclosePerRecord) -> Iterable[Fault]:
    there = len(policy.quasi_identifiers)
    if decision.cells > there:
        yield Fault("decision.cells", f"must be at most {there}, the number of quasi-identifiers. Got {decision.cells}")
    yield from _impossible_cells(policy, decision)


def _impossible_cells(policy: Policy, decision: CellsDecision) -> Iterable[Fault]:
    del decision
    model, form = policy.risk.model, policy.risk.sensitivity.form
    if model == "III":
        yield Fault("risk.model", "must be 'I' or 'II' with 'minrisk', whose cells multiply to a risk. Got 'III'")
    elif model == "I" and form not in ("multiplicative", "constant"):
        yield Fault(
            "risk.sensitivity.form",
            f"must be 'multiplicative' or 'constant' with 'minrisk', whose cells multiply to a risk. Got '{form}'",
        )
    if len(policy.dictionaries) > 1:
        yield Fault(
            "dictionary.kind",
            f"must be one dictionary with 'minrisk': cells multiply over one alone. Got '{policy.dictionary.kind}'",
        )


_IMPOSSIBLE: Mapping[type[Any], Callable[[Policy, Any], Iterable[Fault]]] = {
    LeastRiskDecision: _impossible_least_risk,
    GreatestUtilityDecision: _impossible_search,
    LeastPenalizedDecision: _impossible_search,
    AggregateDecision: _impossible_search,
    DisclosePerRecord: _impossible_cells_per_record,
    DiscloseInAll: _impossible_cells,
    DisclosePerAttribute: _impossible_cells,
    ListedRulesDecision: _impossible_listed_rules,
}
