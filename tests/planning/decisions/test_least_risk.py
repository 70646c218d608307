"""The least risk above a floor: from a policy to what the searches are asked."""

from __future__ import annotations

import numpy as np
import pytest

from privrisk_spark.hierarchies.builders import build
from privrisk_spark.kernels.counting.consistent import Axis, SortedCounts
from privrisk_spark.kernels.search import record_search
from privrisk_spark.kernels.search.branch_and_bound import branch_and_bound
from privrisk_spark.kernels.search.method import Search
from privrisk_spark.kernels.search.table_search import decide
from privrisk_spark.planning.decisions import searched
from privrisk_spark.planning.decisions.registry import decision_of
from privrisk_spark.planning.disclosure import disclosure_of
from privrisk_spark.policy.reading import parse

FLAT = {"role": "quasi-identifier", "hierarchy": {"flat": {"values": ["a"]}}}
POLICY = {
    "version": 1,
    "run": {"name": "small"},
    "table": {"path": "t.csv", "format": "csv", "record_id": "id"},
    "columns": {
        "id": {"role": "identifier"},
        "x": FLAT,
        "y": FLAT,
        "z": {"role": "quasi-identifier", "hierarchy": {"tree": {"*": ["b", {"n": ["c"]}]}}},
    },
    "risk": {"model": "III", "sensitivity": {"form": "multiplicative", "weights": {"x": 0, "y": 0.3, "z": 0}}},
    "decision": {"problem": "min-risk", "utility_at_least": 1},
    "output": {"path": "out", "vault": "vault"},
}


@pytest.mark.parametrize("enumerated", [True, False])
def test_a_small_policy_is_decided_alike_by_enumeration_and_by_boxes(
    enumerated: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records (a, a, b) and (a, a, c), c under a node of its own: only at z = ⊥ are both rows consistent, and the risk
    0. The most useful such level vectors are (0, 0, 1) and (0, 0, 2), of utility 2; suppressing y as well, which alone
    has a weight, saves nothing. Lattices have 2 · 2 · 3 nodes at most; with the limits of enumeration at 0 they are
    searched by boxes."""
    boxes = []
    if not enumerated:
        monkeypatch.setattr(searched, "EXACT_LIMIT", 0)
        monkeypatch.setattr(record_search, "_ENUMERATED", 0)
    monkeypatch.setattr(
        record_search, "branch_and_bound", lambda *given, **named: boxes.append(1) or branch_and_bound(*given, **named)
    )
    policy = parse(POLICY)
    hierarchies = {name: build(spec.hierarchy, name) for name, spec in policy.quasi_identifiers.items()}
    axes = tuple(Axis(h.at_depth, h.ancestor) for h in hierarchies.values())
    search = decision_of(policy).procedure(hierarchies)
    assert isinstance(search, Search)
    assert search.method == ("exact" if enumerated else "branch_and_bound")
    codes = np.array([[0, 0, hierarchies["z"].code_of[value]] for value in "bc"], dtype=np.int32)
    found = decide(
        disclosure_of(policy, hierarchies, axes),
        search,
        SortedCounts.group(axes, codes, np.ones(2, dtype=np.int64)),
        codes,
    )
    assert found.levels.tolist() == [[0, 0, 1], [0, 0, 2]]
    assert (found.risk.tolist(), found.utility.tolist()) == ([0, 0], [2, 2])
    assert len(boxes) == (0 if enumerated else 2)
