"""Numbers of the experiments against literal twins on small tables, and sentences that follow from planted figures."""

from __future__ import annotations

import datetime as dt
import itertools
import json
import time
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_searches import Record, least_risk
from naive_searches import frontier as naive_frontier

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.counting.consistent import Axis
from privrisk_spark.kernels.disclosure.objective import LeastRisk
from privrisk_spark.kernels.search.branch_and_bound import branch_and_bound
from privrisk_spark.kernels.search.enumeration import MOST_NODES, Nodes, enumerate_nodes
from privrisk_spark.kernels.search.record import Answer, RecordLattice
from privrisk_spark.reporting.charts import draw
from privrisk_spark.results.plots import Panel, Plot, Series
from reproduce.deciding import model_plots, plots
from reproduce.deciding.effort import SEARCHES, Effort, Sweep, effort
from reproduce.deciding.experiment import EXPERIMENT
from reproduce.deciding.heuristics import EXACT, Genetic, genetic_search
from reproduce.deciding.results import MEASURED, Sizes, findings, run_on
from reproduce.deciding.risk_utility import RiskUtility, full_domain, risk_utility
from reproduce.deciding.subject import WEIGHTINGS, Subject, counted
from reproduce.deciding.trade_offs import METHODS, TradeOff, trade_off
from reproduce.deciding.trade_offs import undominated as undominated_nodes
from reproduce.generated.clustered import BalancedTree, clustered_table, keyed_uniforms
from reproduce.pages import render_experiment, table
from reproduce.result import ExperimentResult

SMALL = Subject.generated(7, 120, 3)


def generalized(subject: Subject, row: int, i: int, level: int) -> int:
    return int(subject.axes[i].ancestor[subject.vectors[row, i], level])


def naive_record(subject: Subject, row: int, model: str = "I", *, turn: int = 0) -> Record:
    """One record with every row of the table as a vector of least consistent levels, found by comparing nodes."""
    rows = []
    for other, times in enumerate(subject.counts.tolist()):
        vector = tuple(
            next(x for x in range(h + 1) if generalized(subject, row, i, x) == generalized(subject, other, i, x))
            for i, h in enumerate(subject.heights)
        )
        rows += [vector] * times
    chains = [[generalized(subject, row, i, x) for x in range(h + 1)] for i, h in enumerate(subject.heights)]
    return Record(
        rows,
        [[float(w[node]) for node in chain] for w, chain in zip(subject.weightings[turn % 5], chains, strict=True)],
        [[float(d[node]) for node in chain] for d, chain in zip(subject.utilities, chains, strict=True)],
        model,
    )


# ------------------------------------------------------------------------------------------------ generated data


@pytest.mark.parametrize(("height", "branching"), [(1, 2), (2, 3), (4, 2)])
def test_balanced_trees(height: int, branching: int) -> None:
    tree = BalancedTree(height, branching)
    paths = list(itertools.product(range(branching), repeat=height))
    assert tree.leaves == len(paths)
    n_nodes = sum(branching**d for d in range(height + 1))
    assert len(tree.parent) == len(tree.depth) == len(tree.n_under) == n_nodes
    assert tree.parent[-1] == n_nodes - 1
    for code, path in enumerate(paths):
        for level in range(height + 1):
            node = int(tree.ancestor[code, level])
            above = code
            for _ in range(level):
                above = int(tree.parent[above])
            assert node == above
            assert tree.depth[node] == height - level
            assert tree.n_under[node] == sum(other[: height - level] == path[: height - level] for other in paths)
            assert tree.at_depth[code, height - level] == node
            assert (tree.at_depth[node] >= 0).sum() == height - level + 1
            assert tree.at_depth[node, height - level] == node
    assert (tree.ancestor[-1] == n_nodes - 1).all()


def test_uniform_numbers_depend_on_seed_label_and_place() -> None:
    one = keyed_uniforms(1, "a", (4, 3))
    np.testing.assert_array_equal(one.ravel(), keyed_uniforms(1, "a", (6, 3)).ravel()[:12])
    assert len({one[0, 0], keyed_uniforms(2, "a", (1,))[0], keyed_uniforms(1, "b", (1,))[0]}) == 3
    many = keyed_uniforms(3, "c", (20_000,))
    assert 0 < many.min() < many.max() < 1
    assert abs(many.mean() - 0.5) < 0.01
    assert keyed_uniforms(1, "a", (0, 3)).shape == (0, 3)


def test_rows_of_a_cluster_share_ancestors() -> None:
    (tree,) = (BalancedTree(4, 3),)
    codes = clustered_table(5, 100, [tree])[:, 0]
    (most,) = Counter((codes // 27).tolist()).most_common(1)
    # One cluster: a row shares the prototype's ancestor of level 3 with probability 1 - 1/16 and more by chance.
    assert most[1] >= 85
    assert len(set(codes.tolist())) > 10
    assert (clustered_table(6, 100, [tree])[:, 0] != codes).any()
    with pytest.raises(InputError, match="0 rows"):
        clustered_table(5, 0, [tree])


def test_first_attributes_of_a_table() -> None:
    whole = Subject.generated(7, 120, 4)
    np.testing.assert_array_equal(whole.first(3).vectors, SMALL.vectors)
    np.testing.assert_array_equal(whole.first(3).counts, SMALL.counts)
    assert whole.first(2).rows == whole.rows == 120
    assert whole.first(2).heights == whole.heights[:2]
    sizes = np.cumprod(np.array(whole.heights) + 1)
    assert whole.within(int(sizes[2])).k == 3
    assert whole.within(int(sizes[2]) - 1).k == 2
    assert whole.within(1).k == 1
    with pytest.raises(InputError, match="first 5"):
        whole.first(5)


def test_records_are_drawn_by_how_often_they_occur() -> None:
    counts = np.array([1, 1, 1, 1, 96], dtype=np.int64)
    subject = replace(SMALL, vectors=SMALL.vectors[:5], counts=counts)
    drawn = Counter(int(subject.drawn(seed, 1)[0]) for seed in range(200))
    assert drawn[4] > 180
    assert sorted(set(subject.drawn(1, 3).tolist())) == subject.drawn(1, 3).tolist()
    assert len(subject.drawn(1, 9)) == 5


def test_records_take_the_draws_of_the_weights_in_turn() -> None:
    leaf = [[float(values[0]) for values in weights] for weights in SMALL.weightings]
    assert len({weight for weights in leaf for weight in weights}) == WEIGHTINGS * SMALL.k
    assert all(0.1 < weight < 1 for weights in leaf for weight in weights)
    for turn in range(7):
        found = SMALL.first(2).record(4, turn=turn)
        assert [float(weights[0]) for weights in found.weights] == leaf[turn % WEIGHTINGS][:2]
    # A policy's weights are what its owner gave, and are not drawn.
    given = replace(SMALL, more_weights=())
    assert given.record(4, turn=3).weights[0][0] == leaf[0][0]


def test_the_searches_are_compiled_before_they_are_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that is slow once, as machine code is when it is made, is not slow at the first point of a plot."""
    calls = 0

    def slow_once(record: RecordLattice, goal: LeastRisk) -> Answer | None:
        nonlocal calls
        calls += 1
        until = time.process_time() + (calls == 1)
        while time.process_time() < until:
            pass
        return branch_and_bound(record, goal)

    monkeypatch.setattr("reproduce.deciding.effort.branch_and_bound", slow_once)
    monkeypatch.setitem(SEARCHES, "branch and bound", slow_once)
    assert effort(SMALL, seed=3, records=2, floors=(0.5,), attributes=(2,)).by_floor.seconds.max() < 0.25
    calls = 0
    few = {"seed": 4, "records": 2, "floors": (0.5,), "attributes": (2,), "budgets": ((4, 1),)}
    assert genetic_search(SMALL, **few).exact_seconds.max() < 0.25  # type: ignore[arg-type]
    calls = 0
    found = trade_off(SMALL, seed=5, records=2, timed=2, quantiles=(0.5,), attributes=(2,))
    assert found.seconds[:, -1].max() < 0.25


# ------------------------------------------------------------------------------------------------ every node


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_every_node_is_that_of_the_literal_twin(data: st.DataObject) -> None:
    heights = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=3))
    number = st.integers(0, 4).map(float)
    chain = [data.draw(st.lists(number, min_size=h + 1, max_size=h + 1).map(sorted)) for h in heights]
    chain_u = [data.draw(st.lists(number, min_size=h + 1, max_size=h + 1).map(sorted)) for h in heights]
    rows = data.draw(st.lists(st.tuples(*[st.integers(0, h) for h in heights]), min_size=1, max_size=12))
    rows.append((0,) * len(heights))
    model = data.draw(st.sampled_from(["I", "II", "III"]))
    twin = Record(rows, [w[::-1] for w in chain], [d[::-1] for d in chain_u], model)
    record = RecordLattice.of_rows(
        np.array(rows), [np.array(w) for w in twin.weights], [np.array(d) for d in twin.utilities], model=model
    )
    nodes = Nodes.of_record(record)
    levels = [tuple(x) for x in nodes.lattice.levels(np.arange(record.size)).tolist()]
    assert levels == twin.nodes
    assert nodes.rho[0].tolist() == [twin.rho(x) for x in levels]
    np.testing.assert_allclose(nodes.risk, [twin.risk(x) for x in levels], rtol=1e-12, atol=1e-14)
    floor = data.draw(st.integers(-1, 13))
    assert {levels[i] for i in np.flatnonzero(nodes.frontier(floor))} == naive_frontier(twin, floor)
    found = enumerate_nodes(record, LeastRisk(floor))
    expected = least_risk(twin, floor)
    assert (None if found is None else tuple(found.levels.tolist())) == expected
    undominated = [(twin.risk(levels[i]), twin.utility(levels[i])) for i in undominated_nodes(nodes)]
    values = {(twin.risk(x), twin.utility(x)) for x in levels}
    literal = {
        (r, u)
        for r, u in values
        if not any((a <= r + 1e-12 and b > u) or (a < r * (1 - 1e-9) - 1e-12 and b >= u) for a, b in values)
    }
    assert len(undominated) == len({(round(r, 9), u) for r, u in literal})


def test_a_lattice_too_large_is_refused() -> None:
    chain = [np.zeros(9)] * 9
    record = RecordLattice.of_rows(np.zeros((1, 9), dtype=np.int64), chain, chain)
    assert record.size > MOST_NODES
    with pytest.raises(InputError, match="enumerated up to"):
        Nodes.of_record(record)


# ------------------------------------------------------------------------------------------------ experiments


def test_effort_against_brute_force() -> None:
    found = effort(SMALL, seed=3, records=3, floors=(0.2, 0.5, 1.0), attributes=(2, 3))
    rows = SMALL.drawn(3, 3).tolist()
    for p, floor in enumerate((0.2, 0.5, 1.0)):
        twins = [naive_record(SMALL, row) for row in rows]
        c = floor * SMALL.greatest_utility
        assert found.by_floor.frontier[p] == pytest.approx(np.mean([len(naive_frontier(twin, c)) for twin in twins]))
        shares = [len(naive_frontier(twin, c)) / len(twin.nodes) for twin in twins]
        assert found.by_floor.share[p] == pytest.approx(np.mean(shares))
        assert found.by_floor.visited[p, 0] == found.by_floor.lattice[p] == len(twins[0].nodes)
    assert found.by_floor.records.tolist() == [3, 3, 3]
    assert found.by_floor.worse.sum() == found.by_attributes.worse.sum() == 0
    np.testing.assert_allclose(found.by_floor.risk, np.broadcast_to(found.by_floor.risk[:, :1], (3, 5)))
    twins = [naive_record(SMALL, row, turn=turn) for turn, row in enumerate(rows)]
    least_risks = [twin.risk(least_risk(twin, 0.5 * SMALL.greatest_utility)) for twin in twins]  # type: ignore[arg-type]
    assert found.by_floor.risk[1, 0] == pytest.approx(np.mean(least_risks))
    assert found.by_attributes.lattice.tolist() == [np.prod(np.array(SMALL.heights[:k]) + 1) for k in (2, 3)]
    assert (found.by_floor.seconds > 0).all()
    # A record without a value of the first attribute cannot reach the greatest utility: there is nothing to search.
    leaves = len(SMALL.axes[0].ancestor) - 1
    short = replace(SMALL, vectors=np.array([[leaves, 0, 0]], dtype=np.int32), counts=np.ones(1, dtype=np.int64))
    found = effort(short, seed=1, records=2, floors=(0.1, 1.0), attributes=(2,))
    assert found.by_floor.records.tolist() == [1, 0]
    assert found.by_floor.lattice.tolist() == [np.prod(np.array(SMALL.heights[1:]) + 1), 0]


def test_a_search_that_misses_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def bottom(record: RecordLattice, goal: LeastRisk) -> object:
        return enumerate_nodes(record, LeastRisk(sum(float(d[0]) for d in record.utilities)))

    monkeypatch.setitem(SEARCHES, "BTDA", bottom)  # type: ignore[arg-type]
    found = effort(SMALL, seed=3, records=4, floors=(0.5,), attributes=(2,))
    j = list(SEARCHES).index("BTDA")
    assert found.by_floor.worse[0, j] == 4
    assert found.by_floor.worse.sum() == 4
    assert "The least risk was missed" in plots.visited_plot(found).found


@pytest.mark.parametrize("seed", range(1, 7))
def test_full_domain_recoding_against_brute_force(seed: int) -> None:
    # Values are missing, so that the records of a class of ties differ in utility; small trees, so that there are ties.
    trees = [BalancedTree(height, 2) for height in (1, 2, 2, 1)]
    codes = clustered_table(seed, 60, trees)
    codes[: 7 * seed, seed % 4] = trees[seed % 4].leaves
    vectors, counts = counted(codes)
    subject = Subject(
        "small",
        ("a", "b", "c", "d"),
        tuple(Axis(tree.at_depth, tree.ancestor) for tree in trees),
        tuple(tree.depth.astype(np.float64) for tree in trees),
        tuple(tree.depth.astype(np.float64) for tree in trees),
        vectors,
        counts,
    )
    table_rows = np.repeat(np.arange(len(subject.counts)), subject.counts).tolist()
    wanted = (1, 2, 3, 5, 8, 12, 20, 30, 60, 61)
    found = full_domain(subject, wanted)
    for k in wanted:
        options = []
        for levels in itertools.product(*[range(h + 1) for h in subject.heights]):
            key = [tuple(generalized(subject, row, i, x) for i, x in enumerate(levels)) for row in table_rows]
            classes = Counter(key)
            if min(classes.values()) < k:
                continue
            utility = np.mean([sum(subject.utilities[i][node] for i, node in enumerate(one)) for one in key])
            options.append((-round(float(utility), 9), len(classes), levels))
        assert found.get(k) == (min(options)[2] if options else None)
    assert 61 not in found


def test_rows_count_in_the_utility_of_a_recoding() -> None:
    tree = BalancedTree(1, 2)
    none = tree.leaves
    depth = (tree.depth.astype(np.float64),) * 2
    codes = np.array([[0, none], [none, 0], [none, 1], [0, 0]], dtype=np.int32)
    axes = (Axis(tree.at_depth, tree.ancestor),) * 2
    # 11 of 15 rows know the first attribute and 5 the second, but 2 and 3 of the 4 distinct records do.
    subject = Subject("gaps", ("a", "b"), axes, depth, depth, *counted(codes, np.array([10, 2, 2, 1])))
    assert full_domain(subject, (2,)) == {2: (0, 1)}


def test_the_optimum_and_k_anonymity_in_means() -> None:
    found = risk_utility(SMALL, seed=1, records=1000, floors=(0.3, 0.6), anonymity=(2, 5))
    assert found.records == len(SMALL.counts)
    assert found.rows == 120
    times = SMALL.counts
    for m, model in enumerate(("I", "II", "III")):
        twins = [naive_record(SMALL, row, model, turn=row) for row in range(len(times))]
        for f, floor in enumerate(found.floors.tolist()):
            chosen = [least_risk(twin, floor) for twin in twins]
            pairs = [(t, x) for t, x in zip(twins, chosen, strict=True) if x is not None]
            assert len(pairs) == len(twins)
            risks = [twin.risk(x) for twin, x in pairs]
            assert found.risk[m, f] == pytest.approx(np.average(risks, weights=times))
            utilities = [twin.utility(x) for twin, x in pairs]
            assert found.utility[m, f] == pytest.approx(np.average(utilities, weights=times))
            if model == "I":
                np.testing.assert_allclose(found.chosen[f], np.average([x for _, x in pairs], axis=0, weights=times))
        for a, levels in enumerate(found.levels.tolist()):
            risks = [twin.risk(tuple(levels)) for twin in twins]
            assert found.anonymous_risk[m, a] == pytest.approx(np.average(risks, weights=times))
    assert (found.matched_risk <= found.anonymous_risk * (1 + 1e-12)).all()
    assert (found.matched_utility >= found.anonymous_utility - 1e-9).all()


def test_the_genetic_search_never_beats_the_optimum_and_is_reproducible() -> None:
    few = {"seed": 4, "records": 3, "floors": (0.5,), "attributes": (2, 3), "budgets": ((4, 1), (20, 10))}
    found, again = genetic_search(SMALL, **few), genetic_search(SMALL, **few)  # type: ignore[arg-type]
    for name in ("mean_gap", "greatest_gap", "optimal", "visited"):
        np.testing.assert_array_equal(getattr(found, name), getattr(again, name))
    assert (found.mean_gap >= 0).all()
    assert (found.greatest_gap >= found.mean_gap).all()
    np.testing.assert_array_equal(found.unprobed_gap, again.unprobed_gap)
    assert (found.unprobed_gap[:, 0] >= found.mean_gap[:, 0]).all(), "four paths see more than one"
    assert (found.unprobed_seconds > 0).all()
    assert found.optimal[:, 1].tolist() == [1, 1]
    assert found.records.tolist() == [3, 3]
    assert (found.seconds > 0).all()
    # Four paths of a lattice of thousands of nodes are not enough.
    large = Subject.generated(2012, 300, 6)
    poor = genetic_search(large, seed=4, records=5, floors=(0.5,), attributes=(6,), budgets=((4, 0),))
    assert poor.mean_gap[0, 0] > 0.01
    assert poor.greatest_gap[0, 0] > poor.mean_gap[0, 0]
    assert poor.optimal[0, 0] < 1
    assert poor.visited[0, 0] <= 4


def test_models_of_trade_off() -> None:
    found = trade_off(SMALL, seed=5, records=6, timed=2, quantiles=(0.5,), attributes=(2, 3))
    assert found.worse == 0
    rows = SMALL.drawn(5, 6).tolist()
    twins = [naive_record(SMALL, row, turn=turn) for turn, row in enumerate(rows)]
    bottom = (0, 0, 0)
    crossings = []
    for twin in twins:
        gains = []
        for i, weights in enumerate(twin.weights):
            top = [len(w) - 1 for w in twin.weights]
            top[i] = max(level for level, w in enumerate(weights) if w > 0)
            gain = 1 / twin.risk(tuple(top)) - 1 / twin.risk(bottom)
            gains.append((twin.utility(bottom) - twin.utility(tuple(top))) / gain)
        crossings.append(min(gains))
    expected = [min(crossings) / 2, np.median(crossings), 2 * max(crossings)]
    np.testing.assert_allclose(found.trade_offs, expected)
    # Hardly any weight on risk: all released as they are; hardly any on utility: one attribute left.
    assert found.as_it_is.tolist()[0] == 1
    assert found.one_left.tolist()[2] == 1
    assert found.utility[0] == pytest.approx(np.mean([twin.utility(bottom) for twin in twins]))
    risks = [twin.risk(bottom) for twin in twins]
    np.testing.assert_allclose(found.aggregate_risk[0], [np.mean(risks), max(risks), min(risks)])
    least = [least_risk(twin, float(found.utility[1])) for twin in twins]
    bounded = [twin.risk(x) for twin, x in zip(twins, least, strict=True) if x is not None]
    np.testing.assert_allclose(found.threshold_risk[1], [np.mean(bounded), max(bounded), min(bounded)])
    assert (found.threshold_risk[:, 0] <= found.aggregate_risk[:, 0] + 1e-12).all() or found.as_it_is[1] not in (0, 1)
    assert found.retained[0] == 1
    assert (np.diff(found.retained) <= 1e-12).all()
    # λ* is where the release as it is stops being the best, unless something between beats it earlier.
    assert (found.distinct >= 2).all()
    assert (found.distinct <= found.undominated).all()
    for distinct, jump in zip(found.distinct.tolist(), found.jump.tolist(), strict=True):
        assert 0 < jump <= 1
        assert (distinct > 2) or jump == 1


# ------------------------------------------------------------------------------------------------ sentences


def sweep(at: list[float], part: list[list[float]], seconds: list[list[float]], share: list[float]) -> Sweep:
    n = len(at)
    ones = np.full(n, 100.0)
    return Sweep(
        np.array(at), np.full(n, 4), ones, 100 * np.array(share), np.array(share),
        100 * np.array(part), np.array(part), np.array(seconds), np.ones((n, 5)), np.zeros((n, 5), dtype=np.int64),
    )  # fmt: skip


def planted() -> Effort:
    by_floor = sweep(
        [0.1, 0.5, 0.9],
        [[1, 0.2, 0.1, 0.3, 0.05], [1, 0.92, 0.4, 0.33, 0.07], [1, 0.5, 0.2, 0.9, 0.01]],
        [[1, 2, 3, 4, 5], [0.001, 0.02, 0.03, 0.004, 0.005], [1, 9, 3, 4, 5]],
        [0.02, 0.25, 0.005],
    )
    return Effort(by_floor, sweep([2, 6], [[1] * 5, [1] * 5], [[1] * 5, [1] * 5], [0.5, 0.125]))


def test_sentences_on_effort() -> None:
    found = plots.frontier_plot(planted()).found
    assert "largest at c = 0.5, 25 % of the lattice; it is 2 % at c = 0.1 and 0.5 % at c = 0.9" in found
    assert "from 50 % with 2 attributes to 12 % with 6" in found
    found = plots.visited_plot(planted()).found
    assert "visits 92 % of the lattice at c = 0.5, with swap moves 40 %, BTDA 33 %" in found
    assert "evaluates 7 boxes for 100 nodes" in found
    assert "fewer nodes than BTDA at c = 0.1, 0.9, with swap moves at c = 0.1, 0.9." in found
    assert found.endswith("All of them found the least risk in each of 20 searches.")
    found = plots.time_plot(planted()).found
    assert "enumeration 1 ms, ARUBA, cube 20 ms, ARUBA, swap 30 ms, BTDA 4 ms, branch and bound 5 ms" in found
    assert "faster than BTDA at c = 0.1, with swap moves at c = 0.1, 0.9." in found


def verdicts(plot: Plot) -> list[str]:
    return [verdict for _, verdict in plot.claims]


def test_claims_on_effort() -> None:
    found = planted()
    assert verdicts(plots.frontier_plot(found)) == ["holds", "holds"]
    flat = replace(found, by_floor=replace(found.by_floor, share=np.array([0.1, 0.2, 0.3])))
    assert verdicts(plots.frontier_plot(flat)) == ["does not hold", "does not hold"]
    assert verdicts(plots.visited_plot(found)) == ["does not hold", "holds"]
    fewer = replace(found, by_attributes=replace(found.by_attributes, visited=np.array([[9, 1, 1, 2, 1]] * 2)))
    assert verdicts(plots.visited_plot(fewer)) == ["holds", "holds"]
    assert verdicts(plots.time_plot(found)) == ["in 1 of 3 cases", "does not hold", "holds"]
    slow = replace(found, by_attributes=replace(found.by_attributes, seconds=np.array([[1.0, 3, 1, 4, 1]] * 2)))
    assert verdicts(plots.time_plot(slow))[1:] == ["holds", "does not hold"]
    plot = plots.bounding_plot(found)
    assert verdicts(plot) == ["does not hold", "holds"]
    assert plot.found.startswith(
        "Branch and bound takes 1 to 5 times the time of brute force, on lattices of up to 100"
    )
    worse = np.array([[1.0, 1, 1, 1, 1.2], [1, 1, 1, 1, 1]])
    quick = replace(
        found, by_attributes=replace(found.by_attributes, risk=worse, seconds=np.array([[1.0, 3, 1, 4, 0.5]] * 2))
    )
    assert verdicts(plots.bounding_plot(quick)) == ["in 2 of 5 cases", "in 4 of 5 cases"]
    assert "finds 1 to 1.2 times the least risk" in plots.bounding_plot(quick).found
    unrun = replace(found, by_attributes=replace(found.by_attributes, seconds=np.full((2, 5), np.nan)))
    assert verdicts(plots.visited_plot(unrun))[0] == "not decided: nothing to compare"


def risks(**changed: object) -> RiskUtility:
    values = RiskUtility(
        records=10, rows=20, floors=np.array([1.0, 2.0, 3.0]), risk=np.ones((3, 3)), utility=np.ones((3, 3)),
        infeasible=np.zeros(3, dtype=np.int64), anonymity=np.array([2, 10]), levels=np.zeros((2, 2), dtype=np.int64),
        anonymous_risk=np.array([[4.0, 3.0]] * 3), anonymous_utility=np.ones(2),
        matched_risk=np.array([[2.0, 0.5]] * 3), matched_utility=np.ones((3, 2)),
        chosen=np.array([[2.0, 4.0], [1.0, 1.0], [0.5, 1.5]]), heights=np.array([2, 4]),
    )  # fmt: skip
    return replace(values, **changed)  # type: ignore[arg-type]


def test_sentences_on_risk_and_utility() -> None:
    found = plots.risk_utility_plot(risks()).found
    assert "the optimum never has more risk" in found
    assert "model I: 2 to 6 times; model II: 2 to 6 times" in found
    assert "in model I rises from 2 at k = 2 to 2.5 at k = 10" in found
    worse = np.array([[5.0, 2.5]] * 3)
    assert "has more risk in 3 of 6 cases" in plots.risk_utility_plot(risks(matched_risk=worse)).found
    assert "falls" in plots.risk_utility_plot(risks(matched_risk=np.array([[0.0, 1.0]] * 3))).found
    none = risks(anonymous_risk=np.zeros((3, 0)), matched_risk=np.zeros((3, 0)))
    assert plots.risk_utility_plot(none).found.startswith("No level vector")
    rising = risks(chosen=risks().chosen[::-1].copy())
    assert plots.levels_plot(rising, ["age", "city"]).found.startswith("The mean level goes from 31 %")
    lacking = np.array([0, 3, 7])
    assert plots.risk_utility_plot(risks(infeasible=lacking)).found.endswith(
        "At c = 3 7 of 20 rows are out of reach and suppressed."
    )
    assert "out of reach" not in plots.risk_utility_plot(risks()).found
    found = plots.levels_plot(risks(), ["age", "city"]).found
    assert "from 100 % of the height at c = 1 to 31 % at c = 3, never rising for 1 of 2 attributes" in found
    assert found.startswith("The mean level falls from")
    assert verdicts(plots.risk_utility_plot(risks())) == ["holds", "holds"]
    assert verdicts(plots.risk_utility_plot(risks(matched_risk=worse))) == ["in 3 of 6 cases", "holds"]
    falls = risks(matched_risk=np.array([[0.0, 1.0]] * 3))
    assert verdicts(plots.risk_utility_plot(falls)) == ["holds", "does not hold"]
    assert verdicts(plots.risk_utility_plot(none)) == ["not decided: nothing to compare"] * 2
    assert verdicts(plots.levels_plot(risks(), ["age", "city"])) == ["in 3 of 4 cases", "holds"]
    alike = risks(chosen=np.array([[2.0, 4.0], [1.0, 2.0], [0.5, 1.0]]))
    assert verdicts(plots.levels_plot(alike, ["age", "city"])) == ["holds", "does not hold"]
    assert "At c = 3 city is generalized most (38 % of its height) and age least (25 %)" in found


def test_sentences_on_heuristics() -> None:
    planted = Genetic(
        np.array([2, 5]), np.array([[10, 5], [60, 60]]), np.array([8, 8]), np.array([[0, 0], [0.3, 0.004]]),
        np.array([[0.08, 0], [2.5, 0.05]]), np.array([[1, 1], [0.5, 0.9]]), np.ones((2, 2)),
        np.array([[1, 1], [0.002, 0.04]]), np.array([[1, 1, 1], [np.nan, 0.005, 0.006]]),
        np.array([[0.02, 0], [0.4, 0.01]]), np.array([[2, 2], [0.001, 0.03]]),
    )  # fmt: skip
    assert planted.sufficient.tolist() == [0, 1]
    assert verdicts(plots.gap_plot(planted)) == ["does not hold", "does not hold"]
    exact = replace(planted, mean_gap=np.zeros((2, 2)), greatest_gap=np.full((2, 2), 0.07))
    assert verdicts(plots.gap_plot(exact)) == ["holds", "holds"]
    assert verdicts(plots.genetic_time_plot(planted)) == ["does not hold", "holds", "does not hold"]
    assert "takes 1 times the time of the printed ARUBA. Without probing" in plots.genetic_time_plot(planted).found
    assert "it takes 2 times as long, and is up to 2 % above the least risk" in plots.genetic_time_plot(planted).found
    quick = replace(planted, exact_seconds=np.full((2, 3), 9.0))
    assert verdicts(plots.genetic_time_plot(quick)) == ["holds", "in 1 of 2 cases", "holds"]
    never = replace(planted, mean_gap=np.ones((2, 2)))
    assert never.sufficient.tolist() == [-1, -1]
    assert plots.genetic_time_plot(never).found.endswith("No budget is within 7 % of the least risk in the mean.")
    assert verdicts(plots.genetic_time_plot(never)) == ["not decided: nothing to compare"] * 3
    found = plots.gap_plot(planted).found
    assert "With 5 attributes, 10 paths × 5 generations are 30 % above the least risk in the mean and 250 %" in found
    assert "60 paths × 60 generations are 0.4 % above the least risk in the mean and 5 % at worst" in found
    assert "optimal for 90 % of the searches" in found
    assert "more than 7 % in 2 of 4 combinations of attributes and budget; the largest loss is 250 %" in found
    found = plots.genetic_time_plot(planted).found
    assert "took 2 ms per record, 60 paths × 60 generations 40 ms; ARUBA, cube not run, ARUBA, swap 5 ms" in found
    assert len(EXACT) == 3


def trades(**changed: object) -> TradeOff:
    values = TradeOff(
        records=2, trade_offs=np.array([0.1, 1, 10]), utility=np.array([9.0, 4.0, 1.0]),
        aggregate_risk=np.array([[1.0, 1, 1], [0.6, 1, 0], [0, 0, 0]]),
        threshold_risk=np.array([[1.0, 1, 1], [0.02, 1, 0], [0, 0, 0]]),
        as_it_is=np.array([1.0, 0.4, 0]), one_left=np.array([0, 0.6, 1.0]), attributes=np.array([2, 3]),
        seconds=np.array([[1.0] * 5, [0.001, 0.002, np.nan, 0.004, 0.005]]), worse=0, sweep=np.array([-9.0, 0, 9]),
        retained=np.array([1, 0.1, 0.1]), distinct=np.array([2, 3]), undominated=np.array([11, 13]),
        jump=np.array([1.0, 0.8]),
    )  # fmt: skip
    return replace(values, **changed)  # type: ignore[arg-type]


def test_sentences_on_models() -> None:
    found = model_plots.models_plot(trades()).found
    assert "has 30 times the mean risk" in found
    assert "releases 40 % of the records as they are, and of 60 % one attribute or none" in found
    assert verdicts(model_plots.models_plot(trades())) == ["in 2 of 3 cases"]
    near = trades(threshold_risk=trades().aggregate_risk / 2)
    assert verdicts(model_plots.models_plot(near)) == ["holds"]
    assert verdicts(model_plots.models_time_plot(trades())) == ["does not hold"]
    assert verdicts(model_plots.models_time_plot(trades(seconds=np.array([[1.0, 1, 3, 1, 1]] * 2)))) == ["holds"]
    assert verdicts(model_plots.bang_bang_plot(trades())) == ["does not hold"]
    assert verdicts(model_plots.bang_bang_plot(trades(jump=np.array([0.1, 0.8])))) == ["in 1 of 2 cases"]
    assert model_plots.models_plot(trades(utility=np.array([9.0, 9, 1]))).found.startswith("No λ")
    found = model_plots.models_time_plot(trades()).found
    assert "with 3 attributes: aggregate, cuts 1 ms, aggregate, enumeration 2 ms, ARUBA, cube not run" in found
    assert "never missed" in found
    assert "missed the best value 2 times" in model_plots.models_time_plot(trades(worse=2)).found
    assert len(METHODS) == 5
    found = model_plots.bang_bang_plot(trades()).found
    assert "Over 18 decades of λ a record has 2.5 different optima in the mean and 3 at most, of 12" in found
    assert "one jump loses 90 %" in found
    assert model_plots.bang_bang_plot(trades(records=0)).found.startswith("No record")


# ------------------------------------------------------------------------------------------------ pages and files


def test_a_panel_as_a_table() -> None:
    shared = Panel("p", "x", "y", (Series("a", (1, 2), (3, 4)), Series("b", (1, 2), (5, float("nan")))))
    assert table(shared) == (["a", "b"], [[1, 3, 5], [2, 4, None]])
    apart = Panel("p", "x", "y", (Series("a", (2, 1), (3, 4)), Series("b", (1.5,), (5,))))
    assert table(apart)[1] == [[1, 4, None], [1.5, None, 5], [2, 3, None]]
    long = Panel("p", "x", "y", (Series("a", tuple(range(200)), tuple(range(200))),))
    rows = table(long)[1]
    assert len(rows) <= 61
    assert (rows[0], rows[-1]) == ([0, 0], [199, 199])


def without_times(value: object) -> object:
    if isinstance(value, dict):
        timed = value.get("measured") is True
        value = {name: item for name, item in value.items() if not (timed and name in ("verdict", "evidence"))}
        return {
            name: without_times(item)
            for name, item in value.items()
            if name not in MEASURED and not (timed and name == "found")
        }
    if isinstance(value, list):
        return [without_times(item) for item in value]
    return value


@pytest.mark.usefixtures("no_charts")
def test_a_run_is_a_function_of_data_and_seed_but_for_times() -> None:
    sizes = Sizes(rows=150, attributes=3, records=40, searches=2, seed=9)

    def result() -> ExperimentResult:
        found = findings([run_on(Subject.generated(9, 150, 3), sizes)], sizes)
        return EXPERIMENT.result(found, sizes, date=dt.date(2026, 1, 1), private=False)

    one, two = result(), result()
    document = json.loads(json.dumps(one.to_dict(), allow_nan=False))
    assert without_times(document) == without_times(two.to_dict())
    assert document["sizes"]["seed"] == 9
    assert "seconds" in document["experiments"][0]["effort"]["by_floor"]
    lines = [line for line in one.to_csv().splitlines() if line.endswith(",no")]
    assert lines == [line for line in two.to_csv().splitlines() if line.endswith(",no")]
    assert len(lines) > 100
    page = render_experiment(one)
    assert page.count(": not drawn.") == 11
    for plot in one.plots:
        assert draw(plot, prefix="x") == draw(plot, prefix="x")
    assert "Keep inside" not in page
    assert "Keep inside" in render_experiment(replace(one, private=True))
