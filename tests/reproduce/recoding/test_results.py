"""Experiments on recoding against literal twins on small tables, and verdicts that follow from planted figures."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.adversary.process import solve
from privrisk_spark.kernels.adversary.risk import reidentification_probability
from privrisk_spark.kernels.counting.consistent import Axis
from privrisk_spark.kernels.disclosure.sensitivity import harmonic_weights
from privrisk_spark.kernels.recoding.local.algorithms import PARTITIONS
from privrisk_spark.kernels.recoding.searches import SEARCHES
from reproduce.adversary.case_study import STUDY
from reproduce.deciding.sample import Sample
from reproduce.deciding.subject import Subject, counted
from reproduce.recoding.algorithms import COSTS, OPTIMAL, Recoded, leaves_under, partitioned, searched
from reproduce.recoding.monotone import monotone
from reproduce.recoding.results import ANONYMITY, COMPARED, RecodingSizes, TableResult, findings, run_on
from reproduce.recoding.risks import by_classes, frontier
from reproduce.result import Claim

PLACES = Hierarchy.from_paths("place", [("z",), ("a", "north"), ("b", "north"), ("c", "far", "north"), ("d", "south")])
AGES = Hierarchy.from_paths("age", [(str(i), f"{i // 3}x") for i in range(9)])
SEXES = Hierarchy.from_paths("sex", [("F",), ("M",)])
TREES = (PLACES, AGES, SEXES)


def ragged(rows: int = 90, seed: int = 5) -> Subject:
    """A table over a ragged hierarchy; some values are missing and at the root from the start."""
    draw = np.random.default_rng(seed)
    codes = np.column_stack([draw.integers(0, tree.n_leaves + (i == 0), rows) for i, tree in enumerate(TREES)])
    return Subject(
        "ragged",
        ("place", "age", "sex"),
        tuple(Axis(tree.at_depth, tree.ancestor) for tree in TREES),
        tuple(harmonic_weights(tree.parent, tree.depth, tree.n_leaves, np.full(tree.n_leaves, 0.5)) for tree in TREES),
        tuple(tree.depth.astype(np.float64) for tree in TREES),
        *counted(codes.astype(np.int32)),
    )


SUBJECTS = {"generated": Subject.generated(7, 120, 3), "ragged": ragged()}


def released(subject: Subject, recoded: Recoded) -> list[tuple[tuple[int, ...], bool]]:
    """Every row as it is released, and whether it is suppressed."""
    rows = []
    for record, times, levels, lost in zip(
        recoded.record, recoded.rows, recoded.levels, recoded.suppressed, strict=True
    ):
        nodes = tuple(int(axis.ancestor[subject.vectors[record, i], levels[i]]) for i, axis in enumerate(subject.axes))
        rows += [(nodes, bool(lost))] * int(times)
    return rows


def under(subject: Subject, i: int) -> Counter[int]:
    """Leaves of every node: those of its codes that are leaves, each once."""
    axis, found = subject.axes[i], Counter[int]()
    for chain in axis.ancestor.tolist()[:-1]:
        found.update(set(chain))
    return found


def costs(subject: Subject, rows: list[tuple[tuple[int, ...], bool]]) -> dict[str, float]:
    """The four costs by their definitions, from the rows as they are released."""
    n, sizes = len(rows), Counter(nodes for nodes, lost in rows if not lost)
    suppressed = sum(lost for _, lost in rows)
    product, ncp = 1.0, Fraction(0)
    for i in range(subject.k):
        leaves = under(subject, i)
        domain = max(leaves.values())
        shares = [Fraction(1) if lost else Fraction(max(leaves[nodes[i]], 1), domain) for nodes, lost in rows]
        product *= 1 + float((sum(shares, Fraction(0)) / n - Fraction(1, domain)) / (1 - Fraction(1, domain)))
        ncp += sum((share if share > Fraction(1, domain) else Fraction(0) for share in shares), Fraction(0))
    return {
        "loss": product ** (1 / subject.k) - 1,
        "aecs": n / (len(sizes) + bool(suppressed)),
        "dm": sum(size**2 for size in sizes.values()) + suppressed * n,
        "ncp": float(ncp / (n * subject.k)),
    }


def test_leaves_are_those_of_the_hierarchies() -> None:
    for tree, found in zip(TREES, leaves_under(SUBJECTS["ragged"]), strict=True):
        np.testing.assert_array_equal(found, tree.n_under)
    for i, found in enumerate(leaves_under(SUBJECTS["generated"])):
        expected = under(SUBJECTS["generated"], i)
        assert {node: int(count) for node, count in enumerate(found) if node in expected} == dict(expected)


@pytest.mark.parametrize("name", SUBJECTS)
@pytest.mark.parametrize("k", [2, 5])
def test_what_is_released_has_the_costs_and_classes_that_are_told(name: str, k: int) -> None:
    subject, limit, seen = SUBJECTS[name], 12, 0
    made = [searched(subject, method, metric, k, limit) for method in SEARCHES for metric in ("loss", "dm")]
    made += [partitioned(subject, method, k, limit) for method in PARTITIONS]
    for outcome, recoded in made:
        if recoded is None:
            assert not outcome.found
            continue
        seen += 1
        rows = released(subject, recoded)
        assert len(rows) == subject.rows
        sizes = Counter(nodes for nodes, lost in rows if not lost)
        assert min(sizes.values()) >= k, outcome.method
        assert (len(sizes), sum(lost for _, lost in rows)) == (outcome.classes, outcome.suppressed)
        expected = costs(subject, rows)
        for metric in COSTS:
            assert outcome.cost(metric) == pytest.approx(expected[metric], rel=1e-12), (outcome.method, metric)
        if outcome.metric:
            assert (recoded.levels[~recoded.suppressed] == np.array(outcome.levels)).all()
    assert seen >= len(made) - 2


def test_optimal_searches_are_optimal_and_agree() -> None:
    for subject, metric in itertools.product(SUBJECTS.values(), COSTS):
        best = min(
            costs(subject, rows)[metric]
            for levels in itertools.product(*(range(height + 1) for height in subject.heights))
            if (rows := at_levels(subject, levels, 3)) is not None and sum(lost for _, lost in rows) <= 6
        )
        for method in OPTIMAL:
            outcome, _ = searched(subject, method, metric, 3, 6)
            assert outcome.optimal
            assert outcome.cost(metric) == pytest.approx(best, rel=1e-12), method


def at_levels(subject: Subject, levels: tuple[int, ...], k: int) -> list[tuple[tuple[int, ...], bool]]:
    """The rows of a table at one level vector, those of small classes suppressed."""
    whole = Recoded(
        np.arange(len(subject.counts)),
        subject.counts,
        np.tile(np.array(levels), (len(subject.counts), 1)),
        np.zeros(len(subject.counts), dtype=np.bool_),
    )
    rows = released(subject, whole)
    sizes = Counter(nodes for nodes, _ in rows)
    return [(nodes, sizes[nodes] < k) for nodes, _ in rows]


def test_nothing_is_found_where_nothing_keeps_the_limit() -> None:
    subject = SUBJECTS["ragged"]
    for method in ("best", "datafly"):
        outcome, recoded = searched(subject, method, "loss", subject.rows + 1, 0)
        assert (outcome.found, recoded, outcome.classes) == (False, None, 0)
        assert math.isnan(outcome.cost("loss"))
    outcome, recoded = partitioned(subject, "mondrian", subject.rows + 1, 0)
    assert (outcome.found, recoded) == (False, None)


@pytest.mark.parametrize("name", SUBJECTS)
def test_every_step_of_the_lattice_is_judged(name: str) -> None:
    subject, ks, limits = SUBJECTS[name], (2, 4), (0, 9)
    found = monotone(subject, ks, limits)
    lattice = list(itertools.product(*(range(height + 1) for height in subject.heights)))
    assert found.nodes == len(lattice)
    for (i, limit), (a, k) in itertools.product(enumerate(limits), enumerate(ks)):
        rows = {levels: at_levels(subject, levels, k) for levels in lattice}
        kept = {levels for levels in lattice if sum(lost for _, lost in rows[levels]) <= limit}
        steps = [
            (below, above)
            for below, above in itertools.product(lattice, lattice)
            if sum(above) == sum(below) + 1 and all(x <= y for x, y in zip(below, above, strict=True))
        ]
        covered = {above for below, above in steps if below in kept}
        inside = [(below, above) for below, above in steps if below in kept and above in kept]
        assert found.kept[i, a] == len(kept)
        assert found.minimal[i, a] == len(kept - covered)
        assert found.unsafe[i, a] == sum(below in kept and above not in kept for below, above in steps) == 0
        assert found.steps[i, a] == len(inside)
        of = {levels: costs(subject, rows[levels]) for levels in kept}
        for m, metric in enumerate(COSTS):
            fallen = sum(of[above][metric] < of[below][metric] - 1e-12 for below, above in inside)
            assert found.cheaper[i, a, m] == fallen, metric
            outcome, _ = searched(subject, "best", metric, k, limit)
            assert found.best_is_minimal[i, a, m] == (outcome.levels in kept - covered)
    assert found.cheaper[1].any(), "the twin must see metrics that fall"


@pytest.mark.parametrize("name", SUBJECTS)
def test_attackers_are_those_of_the_papers(name: str) -> None:
    subject = SUBJECTS[name]
    for made in (searched(subject, "best", "loss", 4, 15), partitioned(subject, "mondrian_relaxed", 4, 0)):
        recoded = made[1]
        assert recoded is not None
        rows = released(subject, recoded)
        sizes = Counter(nodes for nodes, _ in rows)
        risks = by_classes(subject, recoded)
        assert risks.prosecutor_max == 1 / min(sizes[nodes] for nodes, lost in rows if not lost)
        assert risks.prosecutor_mean == pytest.approx(sum(1 / sizes[nodes] for nodes, _ in rows) / len(rows))
        solution = solve(STUDY, max(sizes.values()))
        of = {size: float(reidentification_probability(solution, np.array([size]))[0]) for size in set(sizes.values())}
        each = [of[sizes[nodes]] for nodes, _ in rows]
        assert risks.reidentified == pytest.approx(sum(each) / len(each))
        attacked = sum(p > 0 and not lost for p, (_, lost) in zip(each, rows, strict=True))
        assert risks.attacked == attacked / len(rows)


def test_a_group_of_48_is_not_attacked() -> None:
    subject = replace(SUBJECTS["ragged"], vectors=np.zeros((1, 3), dtype=np.int32), counts=np.array([47]))
    whole = Recoded(np.array([0]), subject.counts, np.zeros((1, 3), dtype=np.int64), np.array([False]))
    assert by_classes(subject, whole).attacked == 1
    larger = replace(subject, counts=np.array([48]))
    assert by_classes(larger, replace(whole, rows=larger.counts)).attacked == 0


def test_the_frontier_is_the_mean_of_all_rows() -> None:
    subject = SUBJECTS["ragged"]
    tables = []
    for method in ("mondrian", "mondrian_relaxed"):
        recoded = partitioned(subject, method, 5, 0)[1]
        assert recoded is not None
        tables.append((method, 5, recoded))
    best = searched(subject, "best", "loss", 5, 9)[1]
    assert best is not None
    tables.append(("best", 5, best))
    found = frontier(subject, tables, seed=1, records=10_000, model="I", floors=(0.5,))
    every = released(
        subject,
        Recoded(
            np.arange(len(subject.counts)),
            subject.counts,
            np.zeros_like(subject.vectors, dtype=np.int64),
            np.zeros(len(subject.counts), dtype=np.bool_),
        ),
    )
    chains = [
        {int(chain[0]): set(chain.tolist()) for chain in axis.ancestor} for axis in subject.axes
    ]  # by the value's own node
    for place, (_, _, recoded) in enumerate(tables):
        risk, utility = [], []
        for nodes, _ in released(subject, recoded):
            rho = sum(all(node in chains[i][own[i]] for i, node in enumerate(nodes)) for own, _ in every)
            weight = sum(float(of[node]) for of, node in zip(subject.weights, nodes, strict=True))
            risk.append(weight / rho)
            utility.append(sum(float(of[node]) for of, node in zip(subject.utilities, nodes, strict=True)))
        assert found.recoded_risk[place] == pytest.approx(np.mean(risk), rel=1e-9)
        assert found.recoded_utility[place] == pytest.approx(np.mean(utility), rel=1e-9)
    assert (found.matched_utility >= found.recoded_utility - 1e-9).all()
    assert np.isnan(found.matched_below).tolist() == [True, True, False]
    assert (found.optimal_risk <= found.recoded_risk + 1e-12).all()
    assert found.optimal_risk.max() > 0
    sample = Sample.of(subject, seed=1, records=10_000)
    decided = sample.decided("I", float(found.recoded_utility[2]))
    sizes = Counter[tuple[int, ...]]()
    for record, levels, times in zip(sample.record, decided.levels, sample.times, strict=True):
        nodes = tuple(int(a.ancestor[subject.vectors[record, i], levels[i]]) for i, a in enumerate(subject.axes))
        sizes[nodes] += int(times)
    below = sum(size for size in sizes.values() if size < 5)
    assert found.matched_below[2] == below / subject.rows


@pytest.fixture(scope="module")
def small_run() -> TableResult:
    return run_on(SUBJECTS["generated"], RecodingSizes(120, 3, 50, 10, 7))


def verdict(result: TableResult, source: str, part: str = "") -> Claim:
    (one,) = (claim for claim in result.claims if claim.source == source and part in claim.claim)
    return one


def test_every_algorithm_is_run_for_every_k_and_metric(small_run: TableResult) -> None:
    ran = Counter((one.method, one.metric, one.k) for one in small_run.outcomes)
    expected = [*itertools.product(SEARCHES, COSTS, ANONYMITY), *itertools.product(PARTITIONS, ("",), ANONYMITY)]
    assert ran == Counter(expected)
    assert small_run.limit == 12
    assert {one.method for one in small_run.attacked} == set(COMPARED)
    assert small_run.monotone.limits.tolist() == [0, 12]


def test_verdicts_follow_from_the_figures(small_run: TableResult) -> None:
    assert verdict(small_run, "their papers").verdict == "holds"
    worse = tuple(
        replace(one, suppressed=one.suppressed + 1) if (one.method, one.metric, one.k) == ("flash", "dm", 5) else one
        for one in small_run.outcomes
    )
    assert verdict(replace(small_run, outcomes=worse), "their papers").verdict == "in 15 of 16 cases"
    unproved = tuple(replace(one, optimal=False) if one.method == "top_down" else one for one in small_run.outcomes)
    assert verdict(replace(small_run, outcomes=unproved), "their papers").verdict == "does not hold"

    bound = verdict(small_run, "Raschia (2023)", "by 1/k")
    assert bound.verdict == "holds"
    attacked = small_run.attacked
    above = (replace(attacked[0], risks=replace(attacked[0].risks, prosecutor_max=0.9)), *attacked[1:])
    broken = verdict(replace(small_run, attacked=above), "Raschia (2023)", "by 1/k")
    assert broken.verdict == f"in {len(attacked) - 1} of {len(attacked)} cases"

    safe = verdict(small_run, "Raschia (2023)", "so is every generalization")
    assert safe.verdict == "holds"
    found = small_run.monotone
    unsafe = replace(found, unsafe=found.unsafe + 1)
    told = verdict(replace(small_run, monotone=unsafe), "Raschia (2023)", "so is every generalization")
    steps = int(found.steps.sum())
    assert told.verdict == f"in {steps} of {steps + 8} cases"
    assert "8 times does a step up" in told.evidence

    safer = replace(small_run.frontier, matched_risk=small_run.frontier.recoded_risk / 2)
    told = verdict(replace(small_run, frontier=safer), "Fouad (2012), eq 4.2")
    assert told.verdict == "holds"
    assert "have 2 times their mean risk" in told.evidence
    riskier = replace(small_run.frontier, matched_risk=small_run.frontier.recoded_risk + 1)
    assert verdict(replace(small_run, frontier=riskier), "Fouad (2012), eq 4.2").verdict == "does not hold"
    assert verdict(small_run, "Fouad (2012), eq 4.3").verdict == "holds"
    beaten = replace(small_run.frontier, optimal_risk=small_run.frontier.recoded_risk + 1)
    assert verdict(replace(small_run, frontier=beaten), "Fouad (2012), eq 4.3").verdict == "does not hold"

    slow = tuple(replace(one, seconds=9.0) if one.method == "flash" else one for one in small_run.outcomes)
    assert verdict(replace(small_run, outcomes=slow), "Kohlmayer et al. (2012)").verdict == "does not hold"
    dear = tuple(
        replace(one, costs=tuple(2 * cost for cost in one.costs)) if one.method == "bang" else one
        for one in small_run.outcomes
    )
    assert (
        verdict(replace(small_run, outcomes=dear), "Anjum and Raschia (2017)").verdict
        != verdict(small_run, "Anjum and Raschia (2017)").verdict
    )


def test_a_table_that_nothing_keeps_the_limit_of_is_told() -> None:
    one = run_on(SUBJECTS["generated"].thinned(3, 0.02), RecodingSizes(2, 3, 5, 0, 7))
    assert not any(outcome.found for outcome in one.outcomes if outcome.k == 50)
    told = findings([one], RecodingSizes())
    assert all(claim.evidence.endswith(".") for claim in one.claims)
    assert all(plot.found.endswith(".") for same in told.plots for plot in same)
