"""Modified-Aggregate against all level vectors; with shortcuts, without, and where they prove nothing."""

from __future__ import annotations

from dataclasses import replace

import naive_sharing
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privrisk_spark.errors import InputError, InternalError
from privrisk_spark.extensions.network.kernels import modified_aggregate as kernel
from privrisk_spark.extensions.network.kernels.level_boxes import bound, corner_boxes, shrink
from privrisk_spark.extensions.network.kernels.modified_aggregate import (
    Pairs,
    Shown,
    modified_aggregate,
)
from privrisk_spark.extensions.network.kernels.pair_lattice import count, counts_around, pair_of, total, value
from privrisk_spark.kernels.search.aggregate import aggregate
from privrisk_spark.kernels.search.record import RecordLattice

Friends = list[tuple[int, ...]]


def one_pair(weights: list[list[float]], utilities: list[list[float]], friends: Friends) -> Pairs:
    """A pair whose heights the weights tell."""
    k, width = len(weights), max(map(len, weights), default=1)
    w, d = np.zeros((1, k, width)), np.zeros((1, k, width))
    for i in range(k):
        w[0, i, : len(weights[i])], d[0, i, : len(utilities[i])] = weights[i], utilities[i]
    heights = np.array([[len(values) - 1 for values in weights]], dtype=np.int8)
    rows = np.array(friends, dtype=np.int8).reshape(len(friends), k)
    return Pairs(heights, w, d, np.array([0, len(friends)]), rows)


def together(pairs: list[Pairs]) -> Pairs:
    width = max(p.weights.shape[2] for p in pairs)
    wide = [np.pad(a, ((0, 0), (0, 0), (0, width - a.shape[2]))) for p in pairs for a in (p.weights, p.utilities)]
    first = np.cumsum([0, *(len(p.agreements) for p in pairs)])
    return Pairs(
        np.concatenate([p.heights for p in pairs]),
        np.concatenate(wide[::2]),
        np.concatenate(wide[1::2]),
        first,
        np.concatenate([p.agreements for p in pairs]),
    )


@st.composite
def problems(draw: st.DrawFn, k: int = 4, height: int = 3) -> Pairs:
    """Weights that fall to nothing or do not, with plateaus; heights of 0."""
    heights = draw(st.lists(st.integers(0, height), min_size=1, max_size=k))
    step = st.sampled_from([0.0, 0.25, 1.0, 1.5, 3.0])

    def chains(zero: bool) -> list[list[float]]:
        found = []
        for h in heights:
            falls = draw(st.lists(step, min_size=h + 1, max_size=h + 1))
            if zero:
                falls[-1] = 0.0
            found.append(np.cumsum(falls[::-1])[::-1].tolist())
        return found

    friend = st.tuples(*(st.integers(0, h) for h in heights))
    return one_pair(chains(draw(st.booleans())), chains(draw(st.booleans())), draw(st.lists(friend, max_size=8)))


QUESTIONS = st.fixed_dictionaries(
    {
        "trade_off": st.sampled_from([0.0, 0.1, 0.5, 1.0, 2.0, 5.0, 20.0]),
        "kappa": st.sampled_from([0, 1, 2, 1.5]),
        "consistency": st.sampled_from(["all", "any"]),
        "zero_phi": st.sampled_from(["exclude", "floor"]),
    }
)


def expected(pairs: Pairs, question: dict) -> tuple[tuple[int, ...], float]:
    return naive_sharing.modified_aggregate(
        pairs.heights[0].tolist(),
        pairs.weights[0].tolist(),
        pairs.utilities[0].tolist(),
        pairs.agreements.tolist(),
        **question,
    )


def holds(found: Shown, pairs: Pairs, question: dict) -> None:
    """It is the one of all level vectors, and its figures are right."""
    levels, best = expected(pairs, question)
    assert found.proved[0]
    assert found.objective[0] == pytest.approx(best, rel=1e-9)
    assert found.bound[0] == found.objective[0]
    assert found.gap[0] == 0
    assert tuple(found.levels[0].tolist()) == levels
    counting = [i for i, h in enumerate(pairs.heights[0]) if h]
    for figure, values in ((found.sensitivity, pairs.weights), (found.utility, pairs.utilities)):
        assert figure[0] == pytest.approx(sum(values[0, i, levels[i]] for i in counting))
    assert found.consistent[0] == naive_sharing.consistent(
        pairs.agreements.tolist(), pairs.heights[0].tolist(), levels, question["consistency"]
    )


@given(problems(), QUESTIONS)
@settings(max_examples=300, deadline=None)
def test_it_is_the_best_of_all_level_vectors_by_enumeration(pairs: Pairs, question: dict) -> None:
    holds(modified_aggregate(pairs, **question), pairs, question)


@given(problems(), QUESTIONS)
@settings(max_examples=400, deadline=None)
def test_it_is_the_best_by_boxes_alone(pairs: Pairs, question: dict) -> None:
    holds(modified_aggregate(pairs, **question, most_nodes=0, most_cuts=0), pairs, question)


@given(problems(), QUESTIONS)
@settings(max_examples=300, deadline=None)
def test_it_is_the_best_by_minimum_cuts_alone(pairs: Pairs, question: dict) -> None:
    question |= {"consistency": "all", "kappa": int(question["kappa"])}
    holds(modified_aggregate(pairs, **question, most_nodes=0, most_boxes=0), pairs, question)


@given(problems(k=5), QUESTIONS, st.integers(0, 3))
@settings(max_examples=200, deadline=None)
def test_what_is_not_proved_has_a_bound_that_holds(pairs: Pairs, question: dict, boxes: int) -> None:
    """Searches that give up soon. The bound of a part of a box was once taken for that of what was cut off it."""
    found = modified_aggregate(pairs, **question, most_nodes=0, most_boxes=boxes, most_cuts=0)
    _, best = expected(pairs, question)
    assert found.objective[0] <= best * (1 + 1e-9)
    assert found.bound[0] >= best * (1 - 1e-9)
    assert found.gap[0] >= (best - found.objective[0]) * (1 - 1e-9) - 1e-9 * best
    if found.proved[0]:
        assert found.objective[0] == pytest.approx(best, rel=1e-9)


@given(st.lists(problems(), min_size=2, max_size=4), QUESTIONS)
@settings(max_examples=60, deadline=None)
def test_pairs_do_not_touch_each_other(several: list[Pairs], question: dict) -> None:
    k = several[0].heights.shape[1]
    several = [pairs for pairs in several if pairs.heights.shape[1] == k]
    found = modified_aggregate(together(several), **question)
    for p, pairs in enumerate(several):
        alone = modified_aggregate(pairs, **question)
        assert found.levels[p].tolist() == alone.levels[0].tolist()
        assert found.objective[p] == alone.objective[0]
        assert found.consistent[p] == alone.consistent[0]


# Heights (2, 2, 1), 34 rows; as in the tests of the aggregate model, where the values are derived by eye.
ROWS = {"000": 1, "010": 2, "100": 1, "110": 3, "121": 4, "201": 2, "210": 5, "220": 6, "221": 10}
EXAMPLE = one_pair(
    [[6, 2, 0], [4, 2, 0], [3, 0]],
    [[2, 1, 0], [2, 1, 0], [1, 0]],
    [tuple(map(int, row)) for row, times in ROWS.items() for _ in range(times)],
)


@pytest.mark.parametrize("shortcuts", [{}, {"most_nodes": 0}, {"most_nodes": 0, "most_boxes": 0}])
@pytest.mark.parametrize(
    ("kappa", "trade_off", "zero_phi", "levels", "best"),
    [
        (0, 1, "exclude", (2, 1, 1), 8),  # 14/2 + 1
        (1, 0.5, "exclude", (0, 0, 0), 0.5 / 13 + 5),
        (1, 1, "exclude", (2, 1, 1), 8),  # 7 + 1, against 5 + 1/13
        (2, 2, "exclude", (0, 0, 0), 2 / 13 + 25),
        (2, 5, "exclude", (2, 1, 1), 36),  # 35 + 1
        (1, 1, "floor", (2, 2, 1), 17),  # 34/2: nothing is shown
        (1, 0.2, "floor", (0, 0, 0), 0.2 / 13 + 5),
    ],
)
def test_the_example_of_the_aggregate_model(kappa, trade_off, zero_phi, levels, best, shortcuts) -> None:
    found = modified_aggregate(EXAMPLE, trade_off=trade_off, kappa=kappa, zero_phi=zero_phi, **shortcuts)
    assert tuple(found.levels[0].tolist()) == levels
    assert found.objective[0] == pytest.approx(best)
    assert found.proved[0]


def test_proposition_7_5_1_fails_for_any_at_one_friend() -> None:
    """One friend who agrees with neither value: ξ(1,0) + ξ(0,1) = 2 > 1 = ξ(1,1) + ξ(0,0). Under all it holds."""
    pairs = one_pair([[1, 0], [1, 0]], [[1, 0], [1, 0]], [(1, 1)])

    def xi(consistency: str) -> list[int]:
        pair, _ = pair_of(
            pairs.heights[0], pairs.weights[0], pairs.utilities[0], pairs.agreements, 1.0, 1.0, consistency == "any",
            False,
        )  # fmt: skip
        return [count(pair, np.array(x)) for x in ((0, 0), (0, 1), (1, 0), (1, 1))]

    assert xi("any") == [0, 1, 1, 1]
    assert xi("all") == [0, 0, 0, 1]


def test_what_an_owner_lacks_counts_nowhere() -> None:
    """An attribute of height 0 makes no friend consistent under any, costs nothing and is worth nothing."""
    pairs = one_pair([[5.0], [2, 1, 0.5]], [[7.0], [2, 1, 0]], [(0, 2), (0, 1)])
    found = modified_aggregate(pairs, trade_off=1.0, consistency="any")
    # f of levels 0, 1, 2: 0/2 + 2, 1/1 + 1, 2/0.5 + 0.
    assert found.levels.tolist() == [[0, 2]]
    assert found.objective[0] == 4
    assert found.sensitivity[0] == 0.5
    assert found.consistent[0] == 2


def test_modified_aggregate_without_friends_shows_everything_and_with_a_consistent_one_less() -> None:
    chains = [[2.0, 0.1]], [[1.0, 0.0]]
    shown = [modified_aggregate(one_pair(*chains, friends), trade_off=1.0).levels.tolist() for friends in ([], [(0,)])]
    assert shown == [[[0]], [[1]]]


@given(problems(), st.sampled_from([0.5, 1.0, 5.0]), st.sampled_from([0, 1, 2]))
@settings(max_examples=60, deadline=None)
def test_under_all_it_is_the_aggregate_model_with_friends_for_a_table(pairs: Pairs, trade_off, kappa) -> None:
    """Without attributes of height 0, whose weights count there; there, a record of no equal row equals itself."""
    counting = np.flatnonzero(pairs.heights[0])
    if not len(counting):
        return
    if pairs.agreements.any(axis=1).all():
        own = np.zeros((1, pairs.heights.shape[1]), dtype=np.int8)
        pairs = replace(pairs, agreements=np.concatenate([pairs.agreements, own]), first=pairs.first + np.array([0, 1]))
    chains = [
        [values[0, i, : int(pairs.heights[0, i]) + 1] for i in counting] for values in (pairs.weights, pairs.utilities)
    ]
    lattice = RecordLattice.of_rows(pairs.agreements[:, counting], *chains)
    table = aggregate(lattice, trade_off=trade_off, kappa=kappa)
    found = modified_aggregate(pairs, trade_off=trade_off, kappa=kappa)
    assert found.levels[0, counting].tolist() == table.levels.tolist()
    assert found.objective[0] == pytest.approx(table.objective)


def large(seed: int, n: int, k: int, friends: int, near: float, *, height: int = 10, steepness: float = 1.0) -> Pairs:
    """Random pairs with weights and utilities of any falling shape."""
    rng = np.random.default_rng(seed)
    heights = rng.integers(1, height + 1, (n, k)).astype(np.int8)
    level = np.arange(height + 1)
    top = np.where(level <= heights[:, :, None], 1.0, 0.0)
    weights, utilities = (-np.sort(-rng.exponential(1.0, (n, k, height + 1)), axis=2) * top for _ in range(2))
    weights = weights**steepness
    wide = np.repeat(heights, friends, axis=0)
    rows = np.minimum(rng.random((n * friends, k)) ** near * (wide + 1), wide).astype(np.int8)
    return Pairs(heights, weights, utilities, np.arange(n + 1) * friends, rows)


@pytest.mark.parametrize("consistency", ["all", "any"])
@pytest.mark.parametrize("seed", range(4))
def test_graded_optima_are_found_by_boxes(seed: int, consistency: str) -> None:
    """Weights of any falling shape: the best is neither end. What was cut off for a smaller α was once lost."""
    rng = np.random.default_rng(seed)
    for _ in range(60):
        k, friends = int(rng.integers(2, 5)), int(rng.integers(1, 9))
        pairs = large(int(rng.integers(2**31)), 1, k, friends, 0.3, height=3, steepness=3.0)
        question = {
            "trade_off": float(rng.choice([0.05, 0.5, 3.0, 30.0])),
            "kappa": float(rng.choice([0, 1, 1, 2, 1.7])),
            "consistency": consistency,
            "zero_phi": "exclude",
        }
        holds(modified_aggregate(pairs, **question, most_nodes=0, most_cuts=0), pairs, question)


@pytest.mark.parametrize(
    ("seed", "k", "friends", "near", "height", "steepness", "trade_off", "consistency"),
    [(60, 2, 1, 0.3, 2, 1.0, 0.5, "any"), (277, 2, 3, 2.0, 3, 3.0, 0.05, "all"), (90, 3, 1, 2.0, 2, 3.0, 1.0, "all")],
)
def test_a_box_is_begun_again_when_something_better_is_found(
    seed: int, k: int, friends: int, near: float, height: int, steepness: float, trade_off: float, consistency: str
) -> None:
    """One pair in ten thousand: what was cut off for a smaller α is better than what was then found."""
    pairs = large(seed, 40, k, friends, near, height=height, steepness=steepness)
    boxes, enumerated = (
        modified_aggregate(pairs, trade_off=trade_off, consistency=consistency, most_nodes=most, most_cuts=0)
        for most in (0, 2**20)
    )
    assert boxes.levels.tolist() == enumerated.levels.tolist()


@given(problems(), st.booleans(), st.data())
@settings(max_examples=100, deadline=None)
def test_counts_around_a_level_vector_are_those_of_its_neighbours(pairs: Pairs, any_of: bool, data) -> None:
    pair, _ = pair_of(pairs.heights[0], pairs.weights[0], pairs.utilities[0], pairs.agreements, 1.0, 1.0, any_of, False)
    levels = np.array([data.draw(st.integers(0, h)) for h in pair.heights.tolist()], dtype=np.int64)
    found = np.zeros((len(levels), pairs.weights.shape[2]))
    counts_around(pair, levels, found)
    for i, h in enumerate(pair.heights.tolist()):
        for s in range(h + 1):
            neighbour = levels.copy()
            neighbour[i] = s
            assert found[i, s] == count(pair, neighbour)


@pytest.mark.parametrize("consistency", ["all", "any"])
@pytest.mark.parametrize("trade_off", [1.0, 20.0, 80.0, 320.0])
def test_boxes_and_cuts_agree_on_large_lattices(trade_off: float, consistency: str) -> None:
    """Seventy attributes, where nothing can be enumerated; κ = 1.5 has no cuts, and any has none either."""
    pairs = large(3, 6, 70, 30, 0.5)
    for kappa in (1.0, 1.5):
        found = modified_aggregate(pairs, trade_off=trade_off, kappa=kappa, consistency=consistency, most_cuts=0)
        assert found.proved.mean() >= 0.8
        assert (found.objective <= found.bound).all()
    if consistency == "all":
        boxes = modified_aggregate(pairs, trade_off=trade_off, most_cuts=0)
        cuts = modified_aggregate(pairs, trade_off=trade_off, most_boxes=0)
        assert boxes.proved.all()
        assert cuts.proved.all()
        assert cuts.visited.any() == (trade_off > 1)
        assert boxes.levels.tolist() == cuts.levels.tolist()


def test_many_friends_are_sets_of_many_words() -> None:
    """Enumeration against boxes with more than 64 friends."""
    pairs = large(5, 4, 3, 150, 0.7)
    for consistency in ("all", "any"):
        enumerated, boxes = (
            modified_aggregate(pairs, trade_off=0.02, consistency=consistency, most_nodes=most, most_cuts=0)
            for most in (2**20, 0)
        )
        assert enumerated.levels.tolist() == boxes.levels.tolist()
        assert enumerated.consistent.tolist() == boxes.consistent.tolist()


@given(problems(), QUESTIONS, st.data())
@settings(max_examples=150, deadline=None)
def test_bounds_hold_and_what_is_cut_off_a_box_holds_nothing_better(pairs: Pairs, question: dict, data) -> None:
    """The two proofs, box by box, against every level vector of it."""
    pair, _ = pair_of(
        pairs.heights[0], pairs.weights[0], pairs.utilities[0], pairs.agreements, question["trade_off"] + 0.1,
        float(question["kappa"]), question["consistency"] == "any", question["zero_phi"] == "floor",
    )  # fmt: skip
    if not len(pair.heights) or total(pair.weights, np.zeros(len(pair.heights), dtype=np.int64)) == 0:
        return
    los, his, bases = corner_boxes(pair)
    held = []
    for low, high, base in zip(los, his, bases, strict=True):
        lo = np.array([data.draw(st.integers(a, b)) for a, b in zip(low.tolist(), high.tolist(), strict=True)])
        hi = np.array([data.draw(st.integers(a, b)) for a, b in zip(lo.tolist(), high.tolist(), strict=True)])
        inside = [np.array(x) for x in np.ndindex(*(hi - lo + 1).tolist())]
        f = {tuple((lo + x).tolist()): figure(pair, lo + x, base) for x in inside}
        assert bound(pair, lo, hi, base, -np.inf) >= max(f.values()) * (1 - 1e-12)
        alpha = data.draw(st.sampled_from(sorted(f.values())))
        smaller = lo.copy(), hi.copy()
        shrink(pair, *smaller, base, alpha)
        kept = [v for x, v in f.items() if (smaller[0] <= x).all() and (x <= smaller[1]).all()]
        # The best by Φ(f - α) is kept, so something at least as good as α is if anything is.
        assert (max(kept, default=-1) >= alpha * (1 - 1e-9)) == (max(f.values()) >= alpha * (1 - 1e-9))
        held += [tuple(x) for x in (low + np.array(step) for step in np.ndindex(*(high - low + 1).tolist()))]
    assert len(held) == len({tuple(map(int, x)) for x in held})
    candidates = sum(np.isfinite(figure(pair, np.array(x), 0.0)) for x in np.ndindex(*(pair.heights + 1).tolist()))
    assert len(held) == candidates


def figure(pair, levels: np.ndarray, base: float) -> float:
    sensitivity = base + total(pair.weights, levels)
    return value(pair, float(count(pair, levels)), sensitivity, total(pair.utilities, levels))


def test_parameters_out_of_range_are_refused() -> None:
    for wrong in (
        {"trade_off": -1.0}, {"trade_off": np.inf}, {"trade_off": 1e-70}, {"trade_off": 1.0, "kappa": 0.5},
        {"trade_off": 1.0, "kappa": 300.0},
    ):  # fmt: skip
        with pytest.raises(InputError, match="sharing"):
            modified_aggregate(EXAMPLE, **wrong)


@pytest.mark.parametrize("kappa", [0, 1, 2, 1.5])
@pytest.mark.parametrize("consistency", ["all", "any"])
def test_no_figure_leaves_the_range_of_numbers(kappa: float, consistency: str) -> None:
    """A warning would be an error."""
    small, large_one = kernel.SMALLEST, kernel.LARGEST
    chains = ([small, 0.0], [large_one, small], [large_one, 0.0], [1.0, 1.0])
    for weights in chains:
        for utilities in chains:
            pairs = one_pair([weights, [1.0, 0.0]], [utilities, [1.0, 0.0]], [(0, 1), (1, 1)])
            for trade_off in (small, 1.0, large_one):
                for shortcuts in ({}, {"most_nodes": 0}, {"most_nodes": 0, "most_boxes": 0}):
                    question = {"trade_off": trade_off, "kappa": kappa, "consistency": consistency}
                    found = modified_aggregate(pairs, **question, **shortcuts)
                    assert np.isfinite(found.objective).all()
                    assert np.isfinite(found.bound).all()
                    assert (found.bound >= found.objective).all()


@pytest.mark.parametrize(
    "change",
    [
        {"agreements": np.full((34, 3), 2, dtype=np.int8)},
        {"heights": np.array([[3, 2, 1]], dtype=np.int8)},
        {"weights": EXAMPLE.weights[:, :, ::-1]},
        {"utilities": np.full_like(EXAMPLE.utilities, np.inf)},
        {"first": np.array([0, 33])},
        {"utilities": EXAMPLE.utilities[:, :2]},
    ],
)
def test_pairs_that_contradict_themselves_are_refused(change: dict) -> None:
    with pytest.raises(InternalError):
        replace(EXAMPLE, **change)


def test_no_pairs_and_no_attributes() -> None:
    none = Pairs(
        *(np.zeros(s) for s in ((0, 2), (0, 2, 3), (0, 2, 3))), np.zeros(1, np.int64), np.zeros((0, 2), np.int8)
    )
    none = replace(none, heights=np.zeros((0, 2), dtype=np.int8))
    assert modified_aggregate(none, trade_off=1.0).levels.shape == (0, 2)
    assert modified_aggregate(one_pair([], [], [(), ()]), trade_off=1.0).objective.tolist() == [0.0]


def test_a_network_that_is_too_large_leaves_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = large(3, 2, 12, 30, 0.5)
    monkeypatch.setattr(kernel, "_ARCS", 10)
    found = modified_aggregate(pairs, trade_off=10.0, most_boxes=0)
    exact = modified_aggregate(pairs, trade_off=10.0, most_cuts=0)
    assert not found.proved.all()
    assert (found.bound >= exact.objective * (1 - 1e-9)).all()
