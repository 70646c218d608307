"""What every variant of a decision must tell: a search or a rule, sentences, and a contract that notices."""

from __future__ import annotations

import ast
import dataclasses
import pickle
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from privrisk_spark.hierarchies.builders import build
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.counting.consistent import Axis
from privrisk_spark.kernels.disclosure.objective import (
    GreatestAggregate,
    GreatestUtility,
    LeastPenalized,
    LeastRisk,
)
from privrisk_spark.kernels.search.method import Search
from privrisk_spark.planning.decisions.registry import VARIANTS, decision_of
from privrisk_spark.planning.disclosure import disclosure_of
from privrisk_spark.planning.rules import (
    BestListedRule,
    LeastExposedInOrder,
    LeastExposedOfRecord,
    LevelRule,
    Rule,
)
from privrisk_spark.policy.decisions import (
    AggregateDecision,
    DecisionPolicy,
    DiscloseInAll,
    DisclosePerAttribute,
    DisclosePerRecord,
    GreatestUtilityDecision,
    LeastPenalizedDecision,
    LeastRiskDecision,
    ListedRulesDecision,
)
from privrisk_spark.policy.policy import Policy
from privrisk_spark.policy.reading import parse
from privrisk_spark.results.contract import FactRule
from privrisk_spark.results.facts import DecisionFacts, ReleaseFacts
from privrisk_spark.results.release import AttributeLevels, ChosenRule, Histogram, Section, Summary

PACKAGE = Path(__file__).resolve().parents[3] / "privrisk_spark"
ASKED_OF = set(get_args(get_args(DecisionPolicy)[0]))
"""Types a policy's decision can have."""

FILES = ReleaseFacts(rows=10, classes=2, min_class_size=5, off_hierarchy={}, label_rows={})

KEPT = DecisionFacts(
    rows=10,
    sampled=10,
    infeasible=0,
    verbatim=0,
    risk_before=Summary(mean=0.5, max=0.9, min=0.1),
    risk_after=Summary(mean=0.2, max=0.25, min=0.1),
    utility=Summary(mean=2.0, max=3.0, min=1.5),
    levels=(
        AttributeLevels("x", 2, ("as it is", "level 1", "suppressed"), (6, 0, 4)),
        AttributeLevels("y", 1, ("as it is", "suppressed"), (6, 4)),
    ),
    before=Histogram((0.0, 1.0), (10,)),
    after=Histogram((0.0, 1.0), (10,)),
)
"""Decisions with a least utility of 1.5, a mean of 2, a largest risk of 0.25, and 6 values of each of 2 attributes."""

FEWER = replace(KEPT, levels=(replace(KEPT.levels[0], rows=(5, 0, 5)), KEPT.levels[1]))
"""The same, with a value of x suppressed that was not."""

UNPROVED = replace(KEPT, unproved=3, gap=0.125)
SUMMED = {"sensitivity": {"form": "linear"}}
MULTIPLIED = {"sensitivity": {"form": "multiplicative"}}


@dataclass(frozen=True)
class Case:
    """A variant as a policy asks for it, and what it must tell."""

    asked: Mapping[str, Any]
    procedure: Search | Rule
    method: str
    objective: str
    parameters: Mapping[str, object]
    facts: Mapping[str, float]
    broken: DecisionFacts | None
    kept: DecisionFacts = KEPT
    infeasible: str | None = None
    most: float | None = None
    risk: Mapping[str, Any] = dataclasses.field(default_factory=lambda: SUMMED)
    heuristic: bool = False
    stated: str = "Each record is disclosed at the level vector of {}."


RULES = [{"name": "coarse", "levels": {"x": 1}}, {"suppress": ["y"]}]

CASES: dict[type[Any], Case] = {
    LeastRiskDecision: Case(
        asked={"utility_at_least": 1.5, "method": "aruba", "neighbourhood": "cube"},
        procedure=Search(LeastRisk(1.5), "aruba", "cube"),
        method="aruba",
        objective="least risk among those with depth utility at least 1.5",
        parameters={"utility_at_least": 1.5},
        facts={"least utility": 1.5},
        broken=replace(KEPT, utility=replace(KEPT.utility, min=1.4)),
        infeasible="decision.utility_at_least: 2 of 10 records cannot reach 1.5 even unchanged (missing values, or "
        "short branches of a hierarchy); all can reach 1. Lower it, or set decision.infeasible: suppress.",
        most=1.0,
    ),
    GreatestUtilityDecision: Case(
        asked={"problem": "max-utility", "risk_at_most": 0.25},
        procedure=Search(GreatestUtility(0.25), "exhaustive"),
        method="exhaustive",
        objective="greatest depth utility among those with risk at most 0.25",
        parameters={"risk_at_most": 0.25},
        facts={"risk": 0.25},
        broken=replace(KEPT, risk_after=replace(KEPT.risk_after, max=0.26)),
        infeasible="decision.risk_at_most: 2 of 10 records have a higher risk than 0.25 even fully suppressed. Raise "
        "it, or set decision.infeasible: suppress.",
    ),
    LeastPenalizedDecision: Case(
        asked={"problem": "min-risk-minus-utility", "lambda": 0.01, "method": "branch_and_bound", "most_steps": 7},
        procedure=Search(LeastPenalized(0.01), "branch_and_bound", most_steps=7),
        method="branch_and_bound",
        objective="least risk less 0.01 times its depth utility",
        parameters={"lambda": 0.01},
        facts={},
        broken=None,
    ),
    AggregateDecision: Case(
        asked={"problem": "max-aggregate", "lambda": 0.5, "kappa": 2, "zero_phi": "floor"},
        procedure=Search(GreatestAggregate(0.5, 2.0, "floor"), "exhaustive"),
        method="exhaustive",
        objective="greatest sum of 0.5 divided by its risk, and its depth utility to the power 2",
        parameters={"lambda": 0.5, "kappa": 2, "zero_phi": "floor"},
        facts={},
        broken=None,
    ),
    DisclosePerRecord: Case(
        asked={"problem": "disclose-per-record", "cells": 1},
        procedure=LeastExposedOfRecord(1),
        method="minrisk",
        objective="of each record the 1 value of least exposure exp(w) N/ρ alone, and nothing else "
        "(MinRisk of Lebanon et al. 2006): the least risk of all ways to disclose so many, if the attributes of the "
        "dictionary were independent",
        parameters={"cells": 1},
        facts={"values disclosed": 12},
        broken=KEPT,
        kept=replace(KEPT, rows=12),
        infeasible="decision.cells: 2 of 10 records have fewer than 1 values, others being missing; all have 1. Lower "
        "it, or set decision.infeasible: suppress.",
        most=1.0,
        risk=MULTIPLIED,
        stated="What is disclosed is {}.",
    ),
    DiscloseInAll: Case(
        asked={"problem": "disclose-in-all", "cells": 12},
        procedure=LeastExposedInOrder(12, "table"),
        method="minrisk",
        objective="the 12 values of the table with the least exposure exp(w) N/ρ alone, and nothing else: if the "
        "attributes of the dictionary were independent, the mean logarithm of the risk would be the least of all ways "
        "to disclose so many; for its mean this is a heuristic",
        parameters={"cells": 12},
        facts={"values disclosed": 12},
        broken=FEWER,
        risk=MULTIPLIED,
        heuristic=True,
        stated="What is disclosed is {}.",
    ),
    DisclosePerAttribute: Case(
        asked={"problem": "disclose-per-attribute", "cells": 6},
        procedure=LeastExposedInOrder(6, "attribute"),
        method="minrisk",
        objective="the 6 values of each attribute with the least exposure exp(w) N/ρ alone, and nothing else: if the "
        "attributes of the dictionary were independent, the mean logarithm of the risk would be the least of all ways "
        "to disclose so many; for its mean this is a heuristic",
        parameters={"cells": 6},
        facts={"values of x disclosed": 6, "values of y disclosed": 6},
        broken=FEWER,
        risk=MULTIPLIED,
        heuristic=True,
        stated="What is disclosed is {}.",
    ),
    ListedRulesDecision: Case(
        asked={"problem": "rules", "utility_at_least": 2, "rules": RULES},
        procedure=BestListedRule((LevelRule("coarse", (1, 0)), LevelRule("2", (0, 1))), 2.0),
        method="rules",
        objective="of 2 listed ones that of least mean risk among those with a mean depth utility of at least 2",
        parameters={"utility_at_least": 2.0, "rules": 2},
        facts={"mean utility": 2.0},
        broken=replace(KEPT, utility=replace(KEPT.utility, mean=1.9)),
        stated="Every record is disclosed by the rule 'coarse', {}.",
    ),
}

CHOSEN = ChosenRule("coarse", {"x": 1, "y": 0}, Section("rules", "Listed rules", "", "proved", {}))
every_variant = pytest.mark.parametrize("case", CASES.values(), ids=lambda case: str(case.asked.get("problem")))


def policy_of(case: Case, **changes: Any) -> tuple[Policy, dict[str, Hierarchy]]:
    policy = parse(
        {
            "version": 1,
            "run": {"name": "every"},
            "table": {"path": "t.csv", "format": "csv", "record_id": "id"},
            "columns": {
                "id": {"role": "identifier"},
                "x": {"role": "quasi-identifier", "hierarchy": {"tree": {"*": {"n": ["a", "b"], "m": ["c"]}}}},
                "y": {"role": "quasi-identifier", "hierarchy": {"flat": {"values": ["a", "b"]}}},
            },
            "risk": dict(case.risk),
            "decision": dict(case.asked),
            "output": {"path": "out", "vault": "vault"},
            **changes,
        }
    )
    return policy, {name: build(spec.hierarchy, name) for name, spec in policy.quasi_identifiers.items()}


# --------------------------------------------------------------------------------------------------------- the registry


def missing(asked_of: Collection[type[Any]], told_of: Collection[type[Any]]) -> set[str]:
    """Names of decisions a policy can ask for of which nothing is known, and of those nobody can ask for."""
    return {one.__name__ for one in set(asked_of) ^ set(told_of)}


def test_there_is_a_variant_for_every_decision_of_a_policy_and_a_case_for_each() -> None:
    assert missing(ASKED_OF, VARIANTS) == set()
    assert missing(ASKED_OF, CASES) == set()
    assert len(set(VARIANTS.values())) == len(VARIANTS)


@pytest.mark.parametrize("left_out", sorted(ASKED_OF, key=lambda one: one.__name__), ids=lambda one: one.__name__)
def test_a_variant_that_is_left_out_is_noticed(left_out: type[Any]) -> None:
    assert missing(ASKED_OF, {one for one in VARIANTS if one is not left_out}) == {left_out.__name__}


def test_nothing_but_a_variants_module_looks_at_the_type_of_a_decision() -> None:
    """Curves are drawn of one problem alone, and say so."""
    looking = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module == "privrisk_spark.policy.decisions":
                looking.add(path.relative_to(PACKAGE).parent.as_posix() + "/" + path.stem)
    allowed = {f"planning/decisions/{path.stem}" for path in (PACKAGE / "planning" / "decisions").glob("*.py")}
    assert looking - allowed == {"planning/curves", "policy/policy", "policy/rules/decisions"}


# ------------------------------------------------------------------------------------------------------- the contract


@every_variant
def test_a_variant_is_a_frozen_value_of_its_policy(case: Case) -> None:
    policy, _ = policy_of(case)
    decision = decision_of(policy)
    assert decision == decision_of(policy_of(case)[0])
    assert decision != decision_of(policy_of(case, utility={"measure": "leaves"})[0])
    assert dataclasses.is_dataclass(decision)
    assert decision.__dataclass_params__.frozen  # type: ignore[attr-defined]


@every_variant
def test_a_variant_gives_its_search_or_rule(case: Case) -> None:
    policy, hierarchies = policy_of(case)
    decision = decision_of(policy)
    assert decision.procedure(hierarchies) == case.procedure
    choice = decision.choice(hierarchies)
    assert choice.method == case.method
    assert choice.reason
    if isinstance(case.procedure, Search):
        assert case.procedure.method == choice.method


@every_variant
def test_a_variant_says_what_is_asked_and_what_is_promised(case: Case) -> None:
    policy, _ = policy_of(case)
    decision = decision_of(policy)
    assert decision.objective(risk="risk") == case.objective
    assert decision.parameters() == case.parameters
    asked = decision.objective(risk="model-I risk")
    assert asked == case.objective.replace("risk", "model-I risk", 1)
    assert decision.statement(asked, KEPT, method=case.method, rule=CHOSEN) == case.stated.format(asked)
    assert decision.expectation(4.0).endswith("of at most 4" if case.method == "aruba" else "; utility at most 4")
    for told in (decision.remarks(), decision.proof(KEPT)):
        assert not told or (told.startswith(" ") and told.endswith("."))


@every_variant
def test_a_variant_says_what_is_not_proved(case: Case) -> None:
    policy, _ = policy_of(case)
    decision = decision_of(policy)
    assert decision.is_heuristic(KEPT) == case.heuristic
    assert decision.is_heuristic(UNPROVED)
    assert "3" in decision.proof(UNPROVED)
    assert "0.125" in decision.proof(UNPROVED)


@every_variant
def test_a_contract_holds_of_decisions_as_asked_and_notices_others(case: Case) -> None:
    policy, _ = policy_of(case)
    decision = decision_of(policy)
    held = list(decision.contract(case.kept, FILES))
    assert {rule.name: fact for rule, fact in held} == case.facts
    assert all(within(rule, fact) for rule, fact in held)
    assert (case.broken is None) == (not held), "what has a contract has decisions that break it"
    if case.broken is not None:
        assert not all(within(rule, fact) for rule, fact in decision.contract(case.broken, FILES))


def within(rule: FactRule, fact: float) -> bool:
    return (rule.at_least is None or rule.at_least <= fact) and (rule.at_most is None or fact <= rule.at_most)


@every_variant
def test_a_variant_that_may_be_infeasible_says_what_would_do(case: Case) -> None:
    """Of the records (a, b) and (⊥, a) the second has one value, of depth 1."""
    policy, hierarchies = policy_of(case)
    decision = decision_of(policy)
    assert policy.decision is not None
    assert ("infeasible" in type(policy.decision).model_fields) == (case.infeasible is not None)
    if case.infeasible is None:
        assert decision.reach() is None
        with pytest.raises(AssertionError, match="every record can be disclosed"):
            decision.shortfall(2, 10, None)
        return
    found, most = decision.reach(), None
    if found is not None:
        reach, asked = found
        assert asked == getattr(policy.decision, "utility_at_least", getattr(policy.decision, "cells", None))
        axes = tuple(Axis(h.at_depth, h.ancestor) for h in hierarchies.values())
        codes = np.array([[0, 1], [hierarchies["x"].n_leaves, 0]], dtype=np.int32)
        of_each = pickle.loads(pickle.dumps(reach))(disclosure_of(policy, hierarchies, axes), codes)
        assert of_each.shape == (2,)
        most = of_each.min()
    assert most == case.most
    assert decision.shortfall(2, 10, most) == case.infeasible


@pytest.mark.parametrize("asked_of", [LeastRiskDecision, GreatestUtilityDecision], ids=lambda one: one.__name__)
def test_where_records_are_suppressed_instead_nothing_is_held_against_their_bound(asked_of: type[Any]) -> None:
    policy, _ = policy_of(CASES[asked_of])
    assert list(decision_of(policy).contract(replace(KEPT, infeasible=1), FILES)) == []


def test_suppressed_records_disclose_no_cell() -> None:
    policy, _ = policy_of(CASES[DisclosePerRecord])
    ((rule, _),) = decision_of(policy).contract(replace(KEPT, rows=15, infeasible=3), FILES)
    assert (rule.at_least, rule.at_most, rule.text) == (12, 12, "12 values are disclosed")


# ------------------------------------------------------------------------------------------------------------ remarks


SIMILAR = {"kind": "self", "consistency": "similar", "similar": {"x": 0.8}}
WORST = {
    "kind": "minimax",
    "members": [
        {"name": "one", "kind": "self"},
        {"name": "two", "kind": "table", "path": "d", "columns": {"x": "x"}},
    ],
}
SEARCHED = [one for one, case in CASES.items() if isinstance(case.procedure, Search)]


@pytest.mark.parametrize("asked_of", SEARCHED, ids=lambda one: one.__name__)
@pytest.mark.parametrize(
    ("dictionary", "said"),
    [(SIMILAR, " Every feasible node was looked at"), (WORST, " The mean of the records' worst risks is")],
)
def test_searches_say_what_the_dictionary_makes_of_them(
    asked_of: type[Any], dictionary: dict[str, Any], said: str
) -> None:
    case = replace(
        CASES[asked_of],
        asked={
            key: value
            for key, value in CASES[asked_of].asked.items()
            if key not in ("method", "neighbourhood", "most_steps")
        },
    )
    policy, _ = policy_of(case, dictionary=dictionary)
    remarks = decision_of(policy).remarks()
    assert said in remarks
    assert ("nearly all or nothing" in remarks) == (asked_of is AggregateDecision)


def test_a_rule_of_a_list_says_how_several_dictionaries_count() -> None:
    policy, _ = policy_of(CASES[ListedRulesDecision], dictionary=WORST)
    assert "the largest of these is the least there is" in decision_of(policy).objective(risk="risk")
    assert decision_of(policy).remarks() == ""
