"""Where every row is consistent, model III has no risk whatever Φ is: the most useful such level vector is taken."""

from __future__ import annotations

import math
from collections.abc import Iterator

import naive_searches as literal
import numpy as np
import pytest
from naive_decisions import build

from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.counting.consistent import Axis, SortedCounts
from privrisk_spark.kernels.disclosure.objective import GreatestUtility, LeastPenalized, LeastRisk
from privrisk_spark.kernels.search import record_search
from privrisk_spark.kernels.search.branch_and_bound import branch_and_bound
from privrisk_spark.kernels.search.enumeration import enumerate_nodes
from privrisk_spark.kernels.search.record import Answer, RecordLattice
from privrisk_spark.kernels.search.table_search import decide


@pytest.fixture(autouse=True)
def boxes_alone() -> Iterator[None]:
    """No lattice is enumerated instead, however small."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(record_search, "_ENUMERATED", 0)
        yield


def levels_of(found: Answer | None) -> tuple[int, ...] | None:
    return None if found is None else tuple(found.levels.tolist())


def test_of_level_vectors_without_risk_the_most_useful_is_the_answer() -> None:
    """Two attributes of two values, and a third of four leaves: leaf 3 alone under a node n. The dictionary holds the
    record (a, a, leaf 3) and a row (a, a, leaf 0), so N = 2. With the third attribute at leaf 3 or n only the record is
    consistent, ρ = 1; at ⊥ both rows are, and ln(N/ρ) = 0. Utilities by depth are (1, 0), (1, 0), (2, 1, 0), and 1 is
    asked for. So the risk is 0 at (·, ·, 2) but (1, 1, 2), whose utility 0 is too little: (0, 0, 2) of utility 2, (0,
    1, 2) and (1, 0, 2) of utility 1. The most useful is (0, 0, 2). The second attribute has the only weight, so (0, 1,
    2) and (1, 1, ·) have the least Φ = exp(0), which is no reason to suppress it."""
    tree = Hierarchy.from_paths("z", [("leaf0",), ("leaf1",), ("leaf2",), ("leaf3", "n")])
    hierarchies = [Hierarchy.from_paths("x", [("a",)]), Hierarchy.from_paths("y", [("a",)]), tree]
    axes = [Axis(h.at_depth, h.ancestor) for h in hierarchies]
    rows = np.array([[0, 0, tree.code_of["leaf0"]], [0, 0, tree.code_of["leaf3"]]], dtype=np.int32)
    counts = SortedCounts.group(axes, rows, np.ones(2, dtype=np.int64))
    for search in ("exact", "branch_and_bound", "btda"):
        disclosure, how = build(
            hierarchies,
            weights=[0.0, 0.3, 0.0],
            form="multiplicative",
            model="III",
            measure="depth",
            floor=1.0,
            search=search,
        )
        found = decide(disclosure, how, counts, rows[1:])
        assert (found.levels.tolist(), found.risk.tolist()) == ([[0, 0, 2]], [0.0])
        assert (found.utility.tolist(), found.consistent.tolist()) == ([2.0], [2])


def test_what_a_register_does_not_know_is_kept_where_nobody_can_be_told_apart() -> None:
    """Ten attributes of height 4 and weights i · (1, 1/2, 1/4, 1/8, 0), i = 1 to 10; the register knows two, the first,
    in which its other rows are consistent from level 3 on. At (3, 3, 0, …, 0) everybody in it is consistent: no risk,
    and utility 1 + 1 + 8 · 4 = 34. A floor of 24 is no reason to lose 10 of it for a Φ that nothing depends on."""
    vectors = np.zeros((2, 10), dtype=np.int64)
    vectors[1, :2] = 3
    utilities = [np.arange(4, -1, -1.0)] * 10
    weights = [i * np.array([1, 1 / 2, 1 / 4, 1 / 8, 0]) for i in range(1, 11)]
    lattice = RecordLattice.of_rows(vectors, weights, utilities, counts=np.array([5, 95]), model="III")
    for objective in (LeastRisk(24), GreatestUtility(0), LeastPenalized(1e-6)):
        found = branch_and_bound(lattice, objective)
        assert found is not None
        assert levels_of(found) == (3, 3, *[0] * 8)
        assert (found.risk, found.utility, found.consistent, found.status) == (0, 34, 100, "proved")


def random_record(rng: np.random.Generator) -> literal.Record:
    """Model III with many rows like the record: in some attributes all are consistent at some level below ⊥. Utilities
    in units, or halves, or any reals; weights and utilities with plateaus."""
    k = int(rng.integers(1, 6))
    heights = rng.integers(0, 4, k).tolist()
    reach = [int(rng.integers(0, h + 1)) for h in heights]

    def rows() -> list[literal.Levels]:
        some = [tuple(int(rng.integers(0, r + 1)) for r in reach) for _ in range(int(rng.integers(0, 5)))]
        return [*some, (0,) * k]

    def chain(height: int, falls: np.ndarray) -> list[float]:
        falls = rng.choice(falls, height + 1)
        if rng.uniform() < 0.7:
            falls[-1] = 0
        values: list[float] = np.cumsum(falls[::-1])[::-1].tolist()
        return values

    of_utility = [np.array([1.0]), np.array([0, 1.0, 2.0]), np.array([0, 0.5, 1.5]), rng.uniform(size=5)]
    of_weight = [np.array([1.0]), np.array([0, 0, 0.3]), rng.uniform(size=5), np.array([0, 300.0])]
    utility, weight = of_utility[int(rng.integers(4))], of_weight[int(rng.integers(4))]
    several = rng.uniform() < 0.3
    return literal.Record(
        rows(),
        [chain(h, weight) for h in heights],
        [chain(h, utility) for h in heights],
        "III",
        exponential=bool(rng.integers(2)),
        further=[rows() for _ in range(2)] if several else [],
        rule=str(rng.choice(["bayes", "minimax"])) if several else "bayes",
        prior=(0.2, 0.3, 0.5) if several else (1.0,),
    )


def lattice_of(record: literal.Record) -> RecordLattice:
    return RecordLattice.of_dictionaries(
        [(np.array(rows), np.ones(len(rows), dtype=np.int64)) for rows in (record.rows, *record.further)],
        [np.array(w) for w in record.weights],
        [np.array(d) for d in record.utilities],
        model="III",
        exponential=record.exponential,
        rule=record.rule,  # type: ignore[arg-type]
        prior=record.prior,
    )


def without_risk(record: literal.Record) -> list[literal.Levels]:
    """Level vectors at which every row of every dictionary is consistent."""
    sizes = [len(rows) for rows in (record.rows, *record.further)]
    return [x for x in record.nodes if record.rhos(x) == sizes]


@pytest.mark.parametrize("seed", range(4))
def test_every_objective_is_that_of_all_level_vectors_where_some_have_no_risk(seed: int) -> None:
    """Floors at utilities of level vectors, ceilings at their risks, and beside; no weight is too large for a float."""
    rng = np.random.default_rng(seed)
    reached = 0
    for _ in range(150):
        record = random_record(rng)
        lattice = lattice_of(record)
        none = without_risk(record)
        at = none[int(rng.integers(len(none)))] if rng.uniform() < 0.7 else record.nodes[0]
        floor = record.utility(at) * float(rng.choice([1.0, 1.0, 0.7, 1 + 1e-9, 1.3]))
        ceiling = record.risk(at) if math.isfinite(record.risk(at)) else 1.0
        for objective in (LeastRisk(floor), GreatestUtility(ceiling), LeastPenalized(float(rng.choice([0, 0.1, 1])))):
            found, want = branch_and_bound(lattice, objective), enumerate_nodes(lattice, objective)
            assert levels_of(found) == levels_of(want)
            assert found is None or (found.status, found.risk) == ("proved", want.risk)  # type: ignore[union-attr]
        best = literal.least_risk(record, floor)
        assert levels_of(branch_and_bound(lattice, LeastRisk(floor))) == best
        reached += best in none and best != (0,) * lattice.k
    assert reached > 30
