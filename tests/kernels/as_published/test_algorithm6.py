"""Algorithms 6 and 7 of F12 against literal twins and exact laws, and the counterexamples with their figures."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from privrisk_spark.errors import InputError
from privrisk_spark.experiments.generated.clustered import keyed_uniforms
from privrisk_spark.kernels.as_published import counterexamples as against
from privrisk_spark.kernels.as_published.algorithm6 import (
    NOTHING,
    algorithm_6,
    drawing_epsilon,
    element_law,
    eta_of_aggregate,
    least_size,
    random_threshold,
)
from privrisk_spark.kernels.as_published.algorithm7 import LayeredLattices, sample_point
from privrisk_spark.kernels.lattice.lattice import Lattice

# ------------------------------------------------------------------------------------------------ Algorithm 6


def test_parameters_as_printed() -> None:
    assert eta_of_aggregate(1, 1) == 4
    assert drawing_epsilon(1, 0.5, 4) == pytest.approx((1 + math.log(0.5)) / (3 * 4 * 0.5))
    # The largest preference between any two generalizations is exp(epsilon' eta / 2): hardly any.
    ratios = [math.exp(drawing_epsilon(1, beta, 4) * 2) for beta in (0.4, 0.5, 0.7, 0.9)]
    assert [round(ratio, 2) for ratio in ratios] == [1.02, 1.11, 1.43, 4.44]
    for beta in (math.exp(-1), 0.2, 1.0):
        with pytest.raises(InputError, match="beta must be above"):
            drawing_epsilon(1, beta, 4)
    with pytest.raises(InputError, match="positive"):
        drawing_epsilon(0, 0.5, 4)
    with pytest.raises(InputError, match="positive phi_l"):
        eta_of_aggregate(1, 0)
    with pytest.raises(InputError, match="theta0"):
        random_threshold(np.ones(1), theta0=1.0, rows=3)
    np.testing.assert_allclose(random_threshold(np.array([0.0, 0.5, 1.0]), theta0=0.2, rows=10), [2, 6, 10])


def test_the_size_that_the_proof_asks_for() -> None:
    # Adult with nine attributes: 12,960 generalizations of a record, of 30,162 rows.
    sizes = [
        least_size(beta, drawing_epsilon(1, beta, 4), generalizations=12_960, t_f=2) for beta in (0.4, 0.5, 0.7, 0.9)
    ]
    assert [round(size / 1000, 1) for size in sizes] == [8.8, 14.4, 43.2, 518.1]
    strength = drawing_epsilon(1, 0.4, 4)
    t = least_size(0.4, strength, generalizations=12_960, t_f=2, delta=1e-6)

    def fits(t: int) -> bool:
        taus = np.linspace(0, 1, 100_001)[:-1]
        size = 0.4 * 12_960 * math.exp(2 * strength) / ((1 - taus) * 0.6)
        return bool(((t >= size) & (12_960 * np.exp(-(taus**2) * 0.4 * t / 2) <= 5e-7)).any())

    assert sizes[0] < t
    assert fits(t + 1)
    assert not fits(t - 1)


def literal_law(
    counts: list[int], above: list[bool], t: float, strength: float, rows: int, renormalized: bool
) -> list[float]:
    weights = {x: math.exp(strength * counts[x] / rows) for x in range(len(counts)) if above[x]}
    frequent = [x for x in weights if counts[x] >= t]
    total = sum(weights[x] for x in (frequent if renormalized else weights))
    return [weights[x] / total if x in frequent else 0.0 for x in range(len(counts))]


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_the_law_of_an_element(data: st.DataObject) -> None:
    n, c = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 5))
    counts = data.draw(st.lists(st.integers(1, 9), min_size=c, max_size=c))
    above = np.array(data.draw(st.lists(st.lists(st.booleans(), min_size=c, max_size=c), min_size=n, max_size=n)))
    t, strength = data.draw(st.integers(0, 10)), data.draw(st.sampled_from([0.0, 0.3, 5.0]))
    renormalized = data.draw(st.booleans())
    found = element_law(
        np.tile(np.array(counts, dtype=np.float64), (n, 1)),
        above,
        np.tile(np.array(counts) >= t, (n, 1)),
        epsilon_drawing=strength,
        rows=9,
        reading="renormalized" if renormalized else "lost",
    )
    expected = [literal_law(counts, row, t, strength, 9, renormalized) for row in above.tolist()]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_drawing_follows_the_law() -> None:
    law = np.array([[0.5, 0.3, 0.0], [0.0, 1.0, 0.0]])
    members = np.array([0, 1] * 20_000)
    sampled, drawn = keyed_uniforms(5, "sampled", (40_000,)), keyed_uniforms(5, "drawn", (40_000,))
    found = algorithm_6(law, sampled, drawn, beta=0.4, members=members)
    np.testing.assert_array_equal(found, algorithm_6(law[members], sampled, drawn, beta=0.4))
    assert_law(Counter(found[members == 0].tolist()), {0: 0.3, 1: 0.18, NOTHING: 0.52})
    assert_law(Counter(found[members == 1].tolist()), {1: 0.6, NOTHING: 0.4})
    assert p_value(Counter(found[members == 0].tolist()), {0: 0.27, 1: 0.21, NOTHING: 0.52}) < 1e-9
    assert p_value(Counter(found[members == 1].tolist()), {1: 0.58, NOTHING: 0.42}) < 1e-6


def p_value(seen: Counter[int], law: dict[int, float]) -> float:
    assert set(seen) <= set(law)
    n = sum(seen.values())
    expected = {x: n * p for x, p in law.items() if p > 0}
    statistic = sum((seen[x] - e) ** 2 / e for x, e in expected.items())
    return float(chi2.sf(statistic, len(expected) - 1)) if len(expected) > 1 else 1.0


def assert_law(seen: Counter[int], law: dict[int, float]) -> None:
    assert p_value(seen, law) > 1e-4, (seen, law)


# ------------------------------------------------------------------------------------------------ Algorithm 7


def layered(heights: tuple[int, ...], rows: list[tuple[int, ...]], lam: float = 1.0) -> LayeredLattices:
    """A lattice whose counts are of generalization vectors, with Phi from 3 down to 1 in equal steps."""
    levels = Lattice(heights).levels(np.arange(Lattice(heights).n_nodes))
    consistent = (np.array(rows)[None, :, :] <= levels[:, None, :]).all(axis=2).sum(axis=1)
    phi = 3.0 - 2.0 * levels.sum(axis=1) / sum(heights)
    utility = float(sum(heights)) - levels.sum(axis=1)
    numerator = lam * consistent + phi * utility
    return LayeredLattices(heights, consistent[None], phi[None], numerator[None], 1.0, 3.0)


def density_law(
    one: LayeredLattices, layer: int, width: float, t: float, sigma: float, strength: float, rows: int, cells: int = 120
) -> dict[int, float]:
    """Law of a layer's output by quadrature over the cube, from the definitions of sections 5.2.2 to 6.5."""
    attributes = one.attribute.tolist()
    grid = (np.arange(cells) + 0.5) / cells
    mass: dict[int, float] = defaultdict(float)
    lattice = Lattice(one.heights)
    low, high = (1 + width) ** layer, (1 + width) ** (layer + 1)
    for point in itertools.product(grid.tolist(), repeat=len(attributes)):
        chains = [[x for x, i in zip(point, attributes, strict=True) if i == own] for own in range(len(one.heights))]
        if any(b > a for chain in chains for a, b in itertools.pairwise(chain)):
            continue
        cuts = [1.0, *sorted(point, reverse=True), 0.0]
        sets = []
        for a, b in itertools.pairwise(cuts):
            x = [sum(value >= a for value in chain) if a < 1 else 0 for chain in chains]
            sets.append((a - b, int(np.dot(x, lattice.strides))))
        if sum(p * one.consistent[0, x] for p, x in sets) < t:
            continue
        if not low <= sum(p * one.sensitivity[0, x] for p, x in sets) <= high:
            continue
        density = math.exp(strength * sum(p * one.numerator[0, x] for p, x in sets) / (rows * low))
        enough = [(p, x) for p, x in sets if one.consistent[0, x] >= sigma * t]
        for p, x in enough:
            mass[x] += density * p / sum(q for q, _ in enough)
    total = sum(mass.values())
    return {x: value / total for x, value in mass.items()}


CASES = [
    ((1, 1), [(0, 0), (0, 1), (1, 0), (1, 1), (1, 1), (1, 1)], 2.0),
    ((2,), [(0,), (1,), (2,), (2,), (2,)], 1.5),
    ((2,), [(0,), (1,), (2,), (2,), (2,)], 3.0),
]


@pytest.mark.parametrize(("heights", "rows", "t"), CASES)
def test_sampling_of_points_has_the_law_of_its_density(
    heights: tuple[int, ...], rows: list[tuple[int, ...]], t: float
) -> None:
    one = layered(heights, rows)
    n, steps, width, strength, sigma = 20_000, 60, 0.8, 3.0, 0.6
    assert one.layers(width) == 3
    uniforms = (
        keyed_uniforms(1, "layers", (n,)),
        keyed_uniforms(1, "walk", (steps, n, 4)),
        keyed_uniforms(1, "rounding", (n,)),
    )
    found = sample_point(
        one, epsilon_drawing=strength, width=width, rows=len(rows), t=t, sigma=sigma,
        members=np.zeros(n, dtype=np.int64), layers=uniforms[0], walk=uniforms[1], rounding=uniforms[2],
    )  # fmt: skip
    layer = (3 * uniforms[0]).astype(int)
    # Phi never exceeds 3, so the third layer (from 3.24 on) holds nothing.
    assert (found[layer == 2] == NOTHING).all()
    for i in (0, 1):
        seen = Counter(found[layer == i].tolist())
        law = density_law(one, i, width, t, sigma, strength, len(rows))
        if not law:
            assert set(seen) == {NOTHING}
            continue
        assert_law(seen, law)
        assert all(one.consistent[0, x] >= sigma * t for x in seen)
        flat = density_law(one, i, width, t, sigma, 0.0, len(rows))
        wrong = [flat, density_law(one, i, width, t, 1e-9, strength, len(rows))]
        far = [other for other in wrong if sum(abs(law.get(x, 0.0) - p) for x, p in other.items()) > 0.06]
        assert far or len(law) == 1 or t == 3.0
        for other in far:
            assert set(other) > set(law) or p_value(seen, other) < 1e-6


def drawn(one: LayeredLattices, members: npt.NDArray[np.int64], steps: int, rows: slice) -> npt.NDArray[np.int64]:
    """Draws of some of 6,000 rows, whose numbers are theirs whoever walks with them."""
    n, columns = 6_000, int(sum(one.heights)) + 2
    return sample_point(
        one, epsilon_drawing=9.0, width=0.8, rows=6, t=2.0, sigma=0.6, members=members[rows],
        layers=keyed_uniforms(2, "layers", (n,))[rows], walk=keyed_uniforms(2, "walk", (steps, n, columns))[:, rows],
        rounding=keyed_uniforms(2, "rounding", (n,))[rows],
    )  # fmt: skip


def test_records_walk_together_as_they_do_alone() -> None:
    heights, rows, _ = CASES[0]
    tables = [layered(heights, rows), layered(heights, [*rows[:3], (0, 0), (0, 1), (1, 1)], lam=3.0)]
    both = LayeredLattices(
        heights,
        *(
            np.concatenate([getattr(one, name) for one in tables])
            for name in ("consistent", "sensitivity", "numerator")
        ),
        1.0,
        3.0,
    )
    members = np.arange(6_000) % 2
    found = drawn(both, members, 5, slice(None))
    for part in (slice(0, 1), slice(1, 900), slice(900, 6_000)):
        np.testing.assert_array_equal(drawn(both, members, 5, part), found[part])
    for record in (0, 1):
        own = drawn(tables[record], 0 * members, 5, slice(None))
        np.testing.assert_array_equal(own[members == record], found[members == record])


def test_one_step_is_not_enough() -> None:
    heights, rows, t = CASES[0]
    one, members = layered(heights, rows), np.zeros(6_000, dtype=np.int64)
    layer = np.minimum((3 * keyed_uniforms(2, "layers", (6_000,))).astype(int), 2)
    law = density_law(one, 0, 0.8, t, 0.6, 9.0, len(rows))
    assert p_value(Counter(drawn(one, members, 60, slice(None))[layer == 0].tolist()), law) > 1e-4
    assert p_value(Counter(drawn(one, members, 1, slice(None))[layer == 0].tolist()), law) < 1e-6


def test_an_extension_is_a_mixture_of_nested_sets() -> None:
    # Examples 5.2.1 and 5.2.2: 0.7, 0.1, 0 of the first chain, 0.5, 0.4 of the second.
    ones = np.ones((1, 12))
    one = LayeredLattices((3, 2), np.arange(12)[None], ones, ones, 1.0, 1.0)
    weights, nodes = one.path(np.array([[0.7, 0.1, 0.0, 0.5, 0.4]]))
    np.testing.assert_allclose(weights, [[0.3, 0.2, 0.1, 0.3, 0.1, 0.0]], atol=1e-15)
    expected = [(0, 0), (1, 0), (1, 1), (1, 2), (2, 2), (3, 2)]
    assert Lattice((3, 2)).levels(nodes[0]).tolist() == [list(x) for x in expected]


def test_what_sampling_of_points_refuses() -> None:
    one = layered((1,), [(0,), (1,)])
    none = np.zeros((0, 1, 3))
    for width, sigma in ((0.0, 0.5), (1.0, 0.5), (0.5, 0.0), (0.5, 1.0)):
        with pytest.raises(InputError, match="between 0 and 1"):
            sample_point(
                one, epsilon_drawing=1, width=width, rows=2, t=1, sigma=sigma,
                members=np.zeros(1, dtype=np.int64), layers=np.ones(1) / 2, walk=none, rounding=np.ones(1) / 2,
            )  # fmt: skip


# ------------------------------------------------------------------------------------------------ counterexamples


def literal_removed(above: npt.NDArray[np.bool_], beta: float, t: float) -> tuple[float, float]:
    """Both divergences at epsilon 1 by running over every sample and every draw."""
    laws = []
    for part in (above, above[1:]):
        m, counts = len(part), part.sum(axis=0).tolist()
        strength = (1 + math.log(beta)) / (12 * (1 - beta))
        law: dict[tuple[int, ...], float] = {(): 1.0}
        for row in part.tolist():
            elements = literal_law(counts, row, t, strength, m, True)
            after: dict[tuple[int, ...], float] = defaultdict(float)
            for output, p in law.items():
                after[output] += p * beta
                for x, q in enumerate(elements):
                    after[tuple(sorted((*output, x)))] += p * q * (1 - beta)
            law = after
        laws.append(law)
    outputs = set(laws[0]) | set(laws[1])
    one, other = ([(law.get(o, 0.0)) for o in sorted(outputs)] for law in laws)
    return (
        sum(max(p - math.e * q, 0.0) for p, q in zip(one, other, strict=True)),
        sum(max(q - math.e * p, 0.0) for p, q in zip(one, other, strict=True)),
    )


@pytest.mark.parametrize(("rows", "beta", "t"), [(4, 0.5, 2), (6, 0.9, 3), (5, 0.4, 3)])
def test_enumeration_against_a_literal_one(rows: int, beta: float, t: float) -> None:
    above = against.two_leaves(rows)
    found = against.removed(above, epsilon=1, beta=beta, t=t)
    assert (found.with_row, found.without_row) == pytest.approx(literal_removed(above, beta, t), rel=1e-12, abs=1e-15)


@pytest.mark.parametrize(
    ("rows", "t", "beta", "delta"),
    [(10, 5, 0.5, 0.758), (10, 5, 0.9, 0.188), (20, 10, 0.5, 0.941), (20, 10, 0.9, 0.341)],
)
def test_a_fixed_threshold_reveals_the_row(rows: int, t: int, beta: float, delta: float) -> None:
    found = against.removed(against.two_leaves(rows), epsilon=1, beta=beta, t=t)
    assert found.delta == pytest.approx(delta, abs=5e-4)


def test_a_random_threshold_is_far_from_the_footnote() -> None:
    found = against.removed(against.two_leaves(20), epsilon=1, beta=0.5, theta0=0.3)
    assert found.delta == pytest.approx(0.0462, abs=5e-5)
    # The element that changes status is not even above the removed row.
    assert found.without_row == found.delta > 50 * found.with_row
    assert against.footnote(20, 2) == 0.005


def test_the_mixture_over_thresholds() -> None:
    above = against.two_leaves(6)
    thetas = 0.3 + 0.7 * (np.arange(700) + 0.5) / 700
    laws = [against.output_law(above, epsilon=1, beta=0.5, t=theta * 6) for theta in thetas.tolist()]
    np.testing.assert_allclose(
        against.output_law(above, epsilon=1, beta=0.5, theta0=0.3), np.mean(laws, axis=0), atol=2e-3
    )
    assert against.output_law(above, epsilon=1, beta=0.5, theta0=0.3).sum() == pytest.approx(1)


@pytest.mark.parametrize(
    ("rows", "levels", "delta", "hidden"),
    [
        (2_001, 100, 4.3e-2, 2.5e-5),
        (10_000, 50, 5.6e-3, 5.0e-7),
        (30_162, 300, 1.1e-2, 3.3e-7),
        (1_000_000, 300, 3.3e-4, 3.0e-10),
    ],
)
def test_twin_chains(rows: int, levels: int, delta: float, hidden: float) -> None:
    found = against.twin_chains(rows, levels, epsilon=1, beta=0.5, theta0=0.1)
    assert float(f"{found.delta:.1e}") == delta
    assert float(f"{against.footnote(rows, levels):.1e}") == hidden
    assert found.delta <= against.chain_bound(rows, levels, 0.1) * (1 + 1e-9)
    if levels < 0.02 * rows:
        assert found.delta == pytest.approx(against.chain_bound(rows, levels, 0.1), rel=2e-3)


def small_twin_chains(finest: int, next_level: int, others: int = 0) -> np.ndarray:
    """Two chains of two levels; the second has one row less under each level, ``others`` are under the root."""
    between = next_level - finest
    kinds = [[1, 1, 0, 0, 1], [0, 1, 0, 0, 1], [0, 0, 1, 1, 1], [0, 0, 0, 1, 1], [0, 0, 0, 0, 1]]
    return np.repeat(np.array(kinds, dtype=np.bool_), [finest, between, finest - 1, between, others], axis=0)


def test_the_law_of_finest_levels_is_that_of_the_enumerated_output() -> None:
    # Three rows at the first level, two more at the second: counts 3, 5 and 2, 4.
    above = small_twin_chains(3, 5)
    law = against.output_law(above, epsilon=1, beta=0.5, theta0=0.1)
    pairs = np.zeros((3, 3))
    for output in itertools.product(range(10), repeat=5):
        if law[output]:
            first = 0 if output[0] else 1 if output[1] else 2
            second = 0 if output[2] else 1 if output[3] else 2
            pairs[first, second] += law[output]
    found = against._pair_law(np.array([3, 5]), np.array([2, 4]), 9, drawing_epsilon(1, 0.5, 4), 0.5, 0.1)
    np.testing.assert_allclose(found, pairs, rtol=1e-9)


def test_both_readings_of_eq_6_2_fail_on_nine_rows() -> None:
    above = small_twin_chains(1, 3, 4)
    assert len(above) == 9
    kept, lost = (
        against.removed(above, epsilon=1, beta=0.38, theta0=0.05, reading=reading).delta
        for reading in ("renormalized", "lost")
    )
    assert kept == pytest.approx(0.063, abs=5e-4)
    assert lost == pytest.approx(0.029, abs=6e-4)
    assert min(kept, lost) > against.footnote(9, 2)


def test_what_is_not_enumerated() -> None:
    with pytest.raises(InputError, match="up to 16,777,216"):
        against.multiset_law(np.full((100, 5), 0.1))
    with pytest.raises(InputError, match="theta0 or a fixed t"):
        against.output_law(against.two_leaves(4), epsilon=1, beta=0.5)
    with pytest.raises(InputError, match="at least 50 rows"):
        against.twin_chains(49, 10, epsilon=1, beta=0.5, theta0=0.1)
