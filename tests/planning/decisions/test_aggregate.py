"""Which search decides the aggregate model: what is possible, then what is faster, and why."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from privrisk_spark.errors import InputError
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.planning.decisions.registry import decision_of
from privrisk_spark.policy.policy import Policy
from privrisk_spark.policy.reading import parse

TALL = Hierarchy.from_paths("x", [("a", "n", "m"), ("b", "m2", "m3")])


def asked(k: int, **changes: Any) -> tuple[Policy, dict[str, Hierarchy]]:
    """A policy over k attributes of four levels each."""
    names = [f"a{i}" for i in range(k)]
    document = yaml.safe_load("""
version: 1
run: {name: choice}
table: {path: t.csv, format: csv, record_id: id}
decision: {problem: max-aggregate, lambda: 1}
output: {path: out, vault: vault}
""")
    levels = {"tree": {"*": {"m": {"n": ["a"]}, "m3": {"m2": ["b"]}}}}
    document["columns"] = {name: {"role": "quasi-identifier", "hierarchy": levels} for name in names}
    document["columns"] |= {"id": {"role": "identifier"}, "p": {"role": "identifier"}}
    for path, value in changes.items():
        *above, last = path.split("__")
        here = document
        for key in above:
            here = here.setdefault(key, {})
        here[last] = value
    return parse(document), dict.fromkeys(names, TALL)


@pytest.mark.parametrize(
    ("k", "search", "why"),
    [
        (7, "exhaustive", "at most 16,384 nodes; up to 16,384, all records together"),
        (8, "aggregate", "at most 65,536 nodes; beyond 16,384, minimum cuts"),
        (11, "aggregate", "4,194,304 nodes, more than the 1,048,576"),
    ],
)
def test_what_is_faster_is_taken(k: int, search: str, why: str) -> None:
    policy, hierarchies = asked(k)
    choice = decision_of(policy).choice(hierarchies)
    assert choice.method == search
    assert why in choice.reason


BY_CUTS = [
    ({"decision__kappa": 0.5}, "decision.kappa: must be 0, 1 or 2 for 'aggregate'. Got 0.5"),
    ({"risk__model": "III"}, "the risk models I and II. Got model 'III'"),
    ({"risk__sensitivity": {"form": "multiplicative"}}, "a sum over attributes"),
    ({"counting__plan": "shuffle"}, "counting.plan"),
    ({"table__entity_id": "p"}, "entity_id asks for persons"),
    ({"dictionary": {"kind": "self", "consistency": "similar", "similar": {"a0": 0.8}}}, "likeness of labels"),
    (
        {"dictionary": {"kind": "minimax", "members": [{"name": "one", "kind": "self"}, {
            "name": "two", "kind": "table", "path": "d", "columns": {"a0": "a0"}}]}},
        "takes one dictionary, and there are several",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "why"), BY_CUTS)
def test_what_minimum_cuts_cannot_do_is_enumerated_or_refused(changes: dict[str, Any], why: str) -> None:
    policy, hierarchies = asked(8, **changes)
    choice = decision_of(policy).choice(hierarchies)
    assert choice.method == "exhaustive"
    assert "minimum cuts cannot do it" in choice.reason
    assert why in choice.reason
    policy, hierarchies = asked(11, **changes)
    with pytest.raises(InputError, match="4,194,304 nodes, more than the 1,048,576 to be enumerated, and minimum cuts"):
        decision_of(policy).choice(hierarchies)
