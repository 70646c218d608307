from __future__ import annotations

import json
import math
from collections import Counter

import naive_probabilistic
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.attack.kernels.agreement import LevelAgreement
from privrisk_spark.extensions.attack.kernels.fellegi_sunter import (
    LinkageModel,
    fitted,
    frequencies,
    started,
    started_alone,
)
from privrisk_spark.extensions.attack.kernels.patterns import ComparedFile, PatternCounts, n_patterns
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.json_values import as_json, from_json

TRUE = LinkageModel(
    m=((0.95, 0.03, 0.02), (0.9, 0.1), (0.85, 0.1, 0.05), (0.97, 0.03)),
    u=((0.05, 0.15, 0.8), (0.1, 0.9), (0.02, 0.18, 0.8), (0.3, 0.7)),
    prior=0.05,
)


def drawn_pairs(model: LinkageModel, n: int, seed: int, missing: float = 0.0) -> tuple[PatternCounts, np.ndarray]:
    """Patterns of pairs by the model's own law, an attribute missing in some; and which pairs are linked."""
    generator = np.random.default_rng(seed)
    linked = generator.random(n) < model.prior
    code = np.zeros(n, dtype=np.int64)
    for m, u in zip(model.m, model.u, strict=True):
        digit = np.where(linked, generator.choice(len(m), n, p=m), generator.choice(len(u), n, p=u))
        digit[generator.random(n) < missing] = len(m)
        code = code * (len(m) + 1) + digit
    return PatternCounts.of(code, np.ones(n, dtype=np.int64), model.levels), linked


@st.composite
def counts_and_starts(draw: st.DrawFn):
    levels = tuple(draw(st.lists(st.integers(2, 3), min_size=3, max_size=4)))
    some = draw(st.lists(st.tuples(st.integers(0, n_patterns(levels) - 1), st.integers(1, 50)), min_size=1, max_size=9))
    counts = PatternCounts.of(np.array([c for c, _ in some]), np.array([n for _, n in some]), levels)

    def shares(n: int) -> tuple[float, ...]:
        given = draw(st.lists(st.integers(1, 9), min_size=n, max_size=n))
        return tuple(g / sum(given) for g in given)

    start = LinkageModel(tuple(map(shares, levels)), tuple(map(shares, levels)), draw(st.floats(0.01, 0.9)))
    return counts, start


@given(counts_and_starts(), st.booleans(), st.booleans())
@settings(max_examples=80)
def test_steps_are_those_of_the_formulas(drawn, fixed_u: bool, fixed_prior: bool) -> None:
    counts, start = drawn
    pairs = Counter(dict(zip((tuple(row) for row in counts.digits.tolist()), counts.pairs, strict=True)))
    m, u, prior = [list(one) for one in start.m], [list(one) for one in start.u], start.prior
    trace = []
    for _ in range(5):
        m, u, prior, likelihood = naive_probabilistic.em_step(
            pairs, m, u, prior, fixed_u=fixed_u, fixed_prior=fixed_prior
        )
        trace.append(likelihood)
    found = fitted(counts, start, fixed_u=fixed_u, fixed_prior=fixed_prior, tolerance=0, most_steps=5)
    if found.exchanged:
        m, u, prior = u, m, 1 - prior
    for mine, theirs in ((found.model.m, m), (found.model.u, u)):
        for one, other in zip(mine, theirs, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-9)
    assert found.model.prior == pytest.approx(prior, abs=1e-9)
    # Where a step changes nothing at all, no more are taken.
    np.testing.assert_allclose(found.log_likelihood[: found.steps], trace[: found.steps], rtol=1e-9, atol=1e-9)


@given(counts_and_starts(), st.booleans(), st.booleans())
@settings(max_examples=80)
def test_the_likelihood_never_falls(drawn, fixed_u: bool, fixed_prior: bool) -> None:
    counts, start = drawn
    found = fitted(counts, start, fixed_u=fixed_u, fixed_prior=fixed_prior, most_steps=60)
    trace = np.array(found.log_likelihood)
    assert (np.diff(trace) >= -1e-10 * (1 + np.abs(trace[:-1]))).all()


def outside(found: LinkageModel, true: LinkageModel, pairs: int) -> float:
    """Greatest deviation of m, u and the prior from others, in standard errors for known classes of pairs."""
    worst = abs(found.prior - true.prior) / math.sqrt(true.prior * (1 - true.prior) / pairs)
    for share, mine, theirs in ((true.prior, found.m, true.m), (1 - true.prior, found.u, true.u)):
        for one, other in zip(mine, theirs, strict=True):
            for a, b in zip(one, other, strict=True):
                worst = max(worst, abs(a - b) / math.sqrt(b * (1 - b) / (pairs * share)))
    return worst


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_parameters_are_recovered_and_others_are_rejected(missing: float) -> None:
    """Half a million pairs, all parameters free; within five errors of the truth, doubled as classes are not known."""
    pairs = 500_000
    counts, _ = drawn_pairs(TRUE, pairs, 3, missing)
    found = fitted(counts, started(counts), fixed_u=False, tolerance=1e-7, most_steps=3000)
    assert found.converged
    assert found.parted
    assert not found.exchanged
    assert outside(found.model, TRUE, pairs) < 10
    wrong = LinkageModel((TRUE.m[0], TRUE.m[1], (0.80, 0.15, 0.05), TRUE.m[3]), TRUE.u, TRUE.prior)
    assert outside(found.model, wrong, pairs) > 10


def test_with_fixed_u_few_links_among_many_pairs_are_found() -> None:
    """One pair in two hundred is linked: u is taken from all pairs, and m comes out."""
    rare = LinkageModel(TRUE.m, TRUE.u, 0.005)
    counts, _ = drawn_pairs(rare, 400_000, 5)
    known_u = LinkageModel(started(counts).m, rare.u, 0.01)
    found = fitted(counts, known_u, tolerance=1e-9, most_steps=3000)
    assert found.converged
    assert found.model.u == rare.u
    assert outside(found.model, rare, 400_000) < 10
    from_all = fitted(counts, started(counts), tolerance=1e-9, most_steps=3000)
    for one, other in zip(from_all.model.m, rare.m, strict=True):
        np.testing.assert_allclose(one, other, atol=0.05)
    held = fitted(counts, started(counts, prior=0.005), fixed_prior=True)
    assert held.model.prior == 0.005


def test_exchanged_classes_are_put_in_their_place() -> None:
    counts, _ = drawn_pairs(TRUE, 100_000, 4)
    right = fitted(counts, started(counts), fixed_u=False, tolerance=1e-10, most_steps=3000)
    turned = LinkageModel(TRUE.u, TRUE.m, 1 - TRUE.prior)
    found = fitted(counts, turned, fixed_u=False, tolerance=1e-10, most_steps=3000)
    assert found.exchanged
    assert found.parted
    for one, other in zip(found.model.m, right.model.m, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)
    assert found.model.prior == pytest.approx(right.model.prior, abs=1e-6)
    # With fixed u they cannot be exchanged; that the model is none of links is said.
    stuck = fitted(counts, turned, fixed_u=True, most_steps=5)
    assert not stuck.exchanged
    assert not stuck.parted


def test_posteriors_are_calibrated() -> None:
    """As many pairs are linked as their posteriors say, by a test that rejects those of another prior."""
    counts, linked = drawn_pairs(TRUE, 300_000, 9, missing=0.1)

    def statistic(model: LinkageModel) -> float:
        weights = model.weights_of(counts.digits)
        expected = float((model.posterior(weights) * np.array(counts.pairs)).sum())
        return abs(expected - linked.sum()) / math.sqrt(len(linked) * TRUE.prior)

    assert statistic(TRUE) < stats.norm.ppf(0.9999)
    assert statistic(LinkageModel(TRUE.m, TRUE.u, 0.1)) > stats.norm.ppf(0.9999)


def test_weights_by_hand() -> None:
    """log2(0.8/0.1) = 3 and log2(0.2/0.9); at odds of 1 to 7, a weight of 3 makes 8 to 7."""
    model = LinkageModel(((0.8, 0.2),), ((0.1, 0.9),), 1 / 8)
    assert model.weights == ((pytest.approx(3.0), pytest.approx(math.log2(2 / 9)), 0.0),)
    assert model.greatest == pytest.approx(3.0)
    weights = model.weights_of(np.array([[0], [1], [2]], dtype=np.uint8))
    np.testing.assert_allclose(weights, [3, math.log2(2 / 9), 0])
    np.testing.assert_allclose(model.posterior(weights), [8 / 15, (2 / 9) / (2 / 9 + 7), 1 / 8])
    np.testing.assert_allclose(model.posterior(np.array([1e6, -1e6])), [1, 0], atol=1e-300)
    never = LinkageModel(((1.0, 0.0, 0.0),), ((0.5, 0.5, 0.0),), 0.5)
    assert never.weights == ((1.0, -39.0, 0.0, 0.0),)


def test_probabilities_of_all_patterns() -> None:
    code, m, u = naive_probabilistic.every_pattern(TRUE)
    assert (m.sum(), u.sum()) == (pytest.approx(1), pytest.approx(1))
    for number, one, other in zip(code.tolist(), m, u, strict=True):
        pattern = tuple(PatternCounts((*TRUE.levels,), (number,), (1,)).digits[0].tolist())
        assert one == pytest.approx(naive_probabilistic.probability(pattern, [list(p) for p in TRUE.m]))
        assert other == pytest.approx(naive_probabilistic.probability(pattern, [list(p) for p in TRUE.u]))
    every = PatternCounts.of(code, np.ones(len(code), dtype=np.int64), TRUE.levels)
    weights, of_links, of_others = TRUE.expected(every)
    np.testing.assert_allclose(weights, np.log2(m / u))
    np.testing.assert_allclose(of_links, TRUE.posterior(weights) / TRUE.posterior(weights).sum())
    assert of_others.sum() == pytest.approx(1)


def test_starting_values_by_hand() -> None:
    """Of 10 pairs that can be compared 1, 3 and 6 are at the levels; linked ones share 0.1 as 3 to 6."""
    counts = PatternCounts((3,), (0, 1, 2, 3), (1, 3, 6, 90))
    assert frequencies(counts) == ((0.1, 0.3, 0.6),)
    start = started(counts)
    assert start.m == ((0.9, pytest.approx(0.1 / 3), pytest.approx(0.2 / 3)),)
    assert start.prior == pytest.approx(0.1)
    nothing = started(PatternCounts((2, 3), (11,), (9,)), prior=0.2)
    assert nothing.m == ((0.9, pytest.approx(0.1)), (0.9, *[pytest.approx(0.05)] * 2))
    assert frequencies(PatternCounts((2, 3), (11,), (9,))) == ((0.5,) * 2, (1 / 3,) * 3)
    only_agree = started(PatternCounts((3,), (0,), (5,)))
    assert only_agree.m == ((0.9, pytest.approx(0.05), pytest.approx(0.05)),)


def test_starting_values_of_one_attribute_after_the_other_are_those_of_all_pairs() -> None:
    """With records that occur several times, missing values, and a column in which nothing can be compared."""
    generator = np.random.default_rng(4)
    tree = Hierarchy.from_paths("a", [(f"v{i}", f"w{i // 2}") for i in range(6)])
    known, searched = (generator.integers(0, tree.n_nodes, (40, 3)).astype(np.int32) for _ in range(2))
    searched[:, 2] = tree.root
    cells, agreements = np.empty_like(searched), []
    for j, near in enumerate(((1,), (), (1,))):
        nodes, place = np.unique(searched[:, j], return_inverse=True)
        cells[:, j] = place.reshape(-1)
        agreements.append(LevelAgreement(tree.at_depth, nodes, near))
    rows, times = (generator.integers(1, 5, 40) for _ in range(2))
    file = ComparedFile(tuple(agreements), cells, rows)
    assert started_alone(file, known, times, prior=0.1) == started(file.counted(known, times), prior=0.1)


def test_models_travel_as_json() -> None:
    assert from_json(LinkageModel, json.loads(json.dumps(as_json(TRUE)))) == TRUE
    counts, _ = drawn_pairs(TRUE, 1000, 1)
    found = fitted(counts, started(counts), most_steps=3)
    told = json.loads(json.dumps(as_json(found), allow_nan=False))
    assert from_json(LinkageModel, told["model"]) == found.model
    assert (found.steps, len(told["log_likelihood"]), told["converged"]) == (3, 4, False)


def test_what_is_no_model_is_refused() -> None:
    counts = PatternCounts((2, 2, 2), (0, 5), (3, 4))
    start = started(counts)
    none = PatternCounts.empty((2, 2, 2))
    for wrong, rule in (
        (lambda: LinkageModel(((0.5, 0.6),), ((0.5, 0.5),), 0.1), "of sum 1"),
        (lambda: LinkageModel(((-0.5, 1.5),), ((0.5, 0.5),), 0.1), "at least 0"),
        (lambda: LinkageModel(((0.5, 0.5),), ((0.5, 0.5),), 1.0), "between 0 and 1"),
        (lambda: LinkageModel(((0.5, 0.5),), ((0.2, 0.3, 0.5),), 0.1), "same attributes and levels"),
        (lambda: LinkageModel(((1.0,),), ((1.0,),), 0.1), "two levels or more"),
        (lambda: started(none), "no pair of records"),
        (lambda: started(counts, agreeing=1.0), "agree with a probability"),
        (lambda: fitted(none, start), "no pair of records"),
        (lambda: fitted(PatternCounts((2,), (0,), (1,)), start), "the attributes and levels of the pairs"),
        (
            lambda: fitted(PatternCounts((2,), (0,), (1,)), started(PatternCounts((2,), (0,), (1,))), fixed_u=False),
            "at least three attributes",
        ),
        (
            lambda: fitted(
                PatternCounts((2,), (1,), (1,)), LinkageModel(((1.0, 0.0),), ((1.0, 0.0),), 0.5), fixed_u=True
            ),
            "must allow every pattern",
        ),
    ):
        with pytest.raises(InputError, match=rule):
            wrong()
