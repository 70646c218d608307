"""The aggregate model against all level vectors, its networks against their function, its theorems and false claims."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import naive_min_norm
import numpy as np
import pytest

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.search import aggregate as kernel
from privrisk_spark.kernels.search import closure
from privrisk_spark.kernels.search.aggregate import aggregate, crossing, optima
from privrisk_spark.kernels.search.closure import Box, Closure, best_in_box
from privrisk_spark.kernels.search.record import RecordLattice

Levels = tuple[int, ...]

# Heights (2, 2, 1), N = 34. Φ and u are sums of three numbers each, ρ is to be counted by eye.
ROWS = {"000": 1, "010": 2, "100": 1, "110": 3, "121": 4, "201": 2, "210": 5, "220": 6, "221": 10}
EXAMPLE = RecordLattice.of_rows(
    np.array([[int(level) for level in row] for row in ROWS]),
    [np.array(w, dtype=float) for w in ([6, 2, 0], [4, 2, 0], [3, 0])],
    [np.array(d, dtype=float) for d in ([2, 1, 0], [2, 1, 0], [1, 0])],
    counts=np.array(list(ROWS.values())),
)


@pytest.mark.parametrize("most_nodes", [10**6, 0])
@pytest.mark.parametrize(
    ("kappa", "trade_off", "zero_phi", "levels", "value"),
    [
        (0, 1, "exclude", (2, 1, 1), 8),  # 14/2 + 1
        (1, 0.5, "exclude", (0, 0, 0), 0.5 / 13 + 5),
        (1, 1, "exclude", (2, 1, 1), 8),  # 7 + 1, against 5 + 1/13
        (2, 2, "exclude", (0, 0, 0), 2 / 13 + 25),
        (2, 5, "exclude", (2, 1, 1), 36),  # 5·7 + 1
        (1, 1, "floor", (2, 2, 1), 17),  # 34/2, as φ = min(2, 2, 3)
        (1, 0.2, "floor", (0, 0, 0), 0.2 / 13 + 5),
    ],
)
def test_worked_example(
    most_nodes: int, kappa: float, trade_off: float, zero_phi: str, levels: Levels, value: float
) -> None:
    found = aggregate(EXAMPLE, trade_off=trade_off, kappa=kappa, zero_phi=zero_phi, most_nodes=most_nodes)  # type: ignore[arg-type]
    assert tuple(found.levels) == levels
    assert found.objective == pytest.approx(value, rel=1e-12)
    assert found.bound == pytest.approx(value, rel=1e-9)
    assert found.bound >= found.objective
    assert found.status == "proved"
    assert found.risk == EXAMPLE.risk(found.levels)
    assert (found.visited == 18) == (most_nodes > 0)


def test_worked_crossing() -> None:
    """(5 - 1) / (14/2 - 1/13): suppressing all but the second attribute gains the most."""
    assert crossing(EXAMPLE) == pytest.approx(4 / (7 - 1 / 13))
    assert crossing(EXAMPLE, kappa=0) == 0
    for most_nodes in (10**6, 0):
        sweep = optima(EXAMPLE, [3, 0.57, 0, 0.58, 0.1], most_nodes=most_nodes)
        assert [(trade_off, tuple(found.levels)) for trade_off, found in sweep] == [(0, (0, 0, 0)), (0.58, (2, 1, 1))]
    floored = optima(EXAMPLE, [0.1, 0.29, 0.3], zero_phi="floor")  # 17 λ against 5 + λ/13: 0.2955
    assert [(trade_off, tuple(found.levels)) for trade_off, found in floored] == [(0.1, (0, 0, 0)), (0.3, (2, 2, 1))]


@pytest.mark.parametrize("most_nodes", [10**6, 0])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_of_equal_values_the_most_useful_is_chosen(order: tuple[int, int], most_nodes: int) -> None:
    """Releasing the first attribute alone gives 10 + 1, the second alone 9 + 2; both, 1/2 + 3."""
    rows = np.array([[0, 0]] + [[0, 1]] * 9 + [[1, 0]] * 8)[:, order]
    utilities = [np.array([1.0, 0.0]), np.array([2.0, 0.0])]
    lattice = RecordLattice.of_rows(rows, [np.array([1.0, 0.0])] * 2, [utilities[i] for i in order])
    found = aggregate(lattice, trade_off=1.0, most_nodes=most_nodes)
    assert (found.objective, found.utility, found.consistent) == (11, 2, 9)


def test_a_tie_lost_to_rounding_is_decided_by_the_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    """The network prefers the top by a unit; (1, 0) is worth the same and more specific."""
    rows = np.array([[0, 0]] + [[1, 0]] * 9)
    flat = RecordLattice.of_rows(
        rows, [np.array([6.0, 2, 2]), np.array([1.0, 1])], [np.array([2.0, 1, 1]), np.zeros(2)]
    )

    def rounded(box: Box, *arguments: float) -> tuple[np.ndarray, np.ndarray, float]:
        least, _, resolution = best_in_box(box, *arguments)  # type: ignore[arg-type]
        return least, box.heights, resolution

    monkeypatch.setattr(kernel, "best_in_box", rounded)
    monkeypatch.setattr(kernel._Cuts, "ascend", lambda self: None)
    monkeypatch.setattr(kernel._Cuts, "shrunk", lambda self, box, alpha: box)
    found = aggregate(flat, trade_off=1.0, most_nodes=0)
    assert found.levels.tolist() == [1, 0]
    assert found.objective == 10 / 3 + 1


@dataclass(frozen=True)
class Known:
    """All level vectors of a lattice with ρ, Φ, u, from the definitions."""

    lattice: RecordLattice

    @cached_property
    def nodes(self) -> list[tuple[Levels, int, float, float]]:
        record = self.lattice
        found = []
        for x in itertools.product(*(range(h + 1) for h in record.heights)):
            rho = int(record.counts[(record.vectors <= np.array(x)).all(axis=1)].sum())
            phi = math.fsum(w[level] for w, level in zip(record.weights, x, strict=True))
            u = math.fsum(d[level] for d, level in zip(record.utilities, x, strict=True))
            found.append((x, rho, phi if record.model == "I" else 1.0, u))
        return found

    def best(self, trade_off: float, kappa: float, zero_phi: str) -> tuple[Levels, float]:
        """Of level vectors of equal f the most useful, of those the first."""
        positive = [phi for _, _, phi, _ in self.nodes if phi > 0]
        if trade_off == 0 or self.nodes[0][2] == 0:
            return self.nodes[0][0], self.nodes[0][3] ** kappa
        values = []
        for x, rho, phi, u in self.nodes:
            if phi > 0 or zero_phi == "floor":
                values.append((trade_off * rho / (phi or min(positive)) + u**kappa, u, x))
        highest = max(values)[0]
        tied = [(u, x) for value, u, x in values if value >= highest * (1 - 1e-12)]
        most = max(tied)[0]
        return min(x for u, x in tied if u >= most - 1e-12 * max(1, most)), highest


def chain(random: np.random.Generator, height: int, *, integer: bool, powers: bool) -> np.ndarray:
    """Non-increasing; often 0 at the top, at several top levels, or everywhere."""
    values = random.random(height + 1)
    if powers:
        values = 10.0 ** random.uniform(-9, 9, height + 1)
    elif integer:
        # Ties that floating point misses: 0.1 + 0.2 against 0.3.
        values = random.integers(0, 4, height + 1) * random.choice([1.0, 0.1, 1 / 3])
    values = -np.sort(-values)
    kind = random.random()
    if kind < 0.6:
        values[-1] = 0
    if kind < 0.2:
        values[-2:] = 0
    if kind < 0.05:
        values[:] = 0
    return values


def instances(
    seed: int, n: int, *, widest: int = 5, highest: int = 3, powers: bool = False
) -> Iterator[tuple[np.random.Generator, RecordLattice]]:
    random = np.random.default_rng(seed)
    for _ in range(n):
        heights = random.integers(0, highest + 1, random.integers(1, widest + 1))
        integer = bool(random.random() < 0.5)
        n_rows = int(random.integers(1, 60))
        rows = np.stack([random.integers(0, h + 1, n_rows) for h in heights], axis=1)
        yield (
            random,
            RecordLattice.of_rows(
                rows,
                [chain(random, h, integer=integer, powers=powers) for h in heights],
                [chain(random, h, integer=integer, powers=powers and bool(random.random() < 0.5)) for h in heights],
                model="I" if random.random() < 0.8 else "II",
            ),
        )


@pytest.mark.parametrize("mode", ["shrunk", "divided", "cuts alone"])
@pytest.mark.parametrize("highest", [1, 3])
def test_enumeration_and_cuts_are_the_literal_search(mode: str, highest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """200 lattices near their crossings, as shipped, and by Dinkelbach's iteration alone, on boxes or divided boxes."""
    monkeypatch.setattr(kernel, "_LARGE", -1 if mode == "divided" else 10**9)
    if mode != "shrunk":
        monkeypatch.setattr(kernel._Cuts, "ascend", lambda self: None)
        monkeypatch.setattr(kernel._Cuts, "shrunk", lambda self, box, alpha: box)
    cuts = inner = 0
    for random, lattice in instances(highest, 200, highest=highest):
        known, kappa = Known(lattice), int(random.integers(0, 3))
        star = crossing(lattice, kappa=kappa)
        star = star if 0 < star < math.inf else 1.0
        for factor in (0.5, 0.999, 1.0, 1.3):
            zero_phi = "floor" if random.random() < 0.4 else "exclude"
            levels, value = known.best(star * factor, kappa, zero_phi)
            for most_nodes in (10**6, 0):
                found = aggregate(
                    lattice,
                    trade_off=star * factor,
                    kappa=kappa,
                    zero_phi=zero_phi,  # type: ignore[arg-type]
                    most_nodes=most_nodes,
                )
                assert tuple(found.levels) == levels
                assert found.objective == pytest.approx(value, rel=1e-12)
                assert found.objective <= found.bound <= found.objective * (1 + 1e-9)
                assert found.status == "proved"
            cuts += found.visited
            inner += 0 < sum(levels) < lattice.heights.sum()
    assert cuts > {"shrunk": 50, "divided": -1, "cuts alone": 400}[mode]
    assert inner > 50


def test_wide_ranges() -> None:
    """Weights of 18 orders of magnitude: the value is right, and where it is not proved the bound holds."""
    proved = 0
    for random, lattice in instances(11, 200, powers=True):
        known, kappa = Known(lattice), int(random.integers(0, 3))
        star = crossing(lattice, kappa=kappa)
        star = star if 0 < star < math.inf else 1.0
        _, value = known.best(star, kappa, "exclude")
        found = aggregate(lattice, trade_off=star, kappa=kappa, most_nodes=0)
        assert found.bound >= value * (1 - 1e-12)
        if found.status == "proved":
            assert found.objective == pytest.approx(value, rel=1e-9)
            proved += 1
    assert proved > 140


@pytest.mark.parametrize("kappa", [1, 1.5, 2, 3, 7])
def test_other_powers_are_enumerated(kappa: float) -> None:
    for _, lattice in instances(21, 40):
        star = crossing(lattice, kappa=kappa)
        star = star if 0 < star < math.inf else 1.0
        levels, value = Known(lattice).best(star, kappa, "exclude")
        found = aggregate(lattice, trade_off=star, kappa=kappa)
        assert tuple(found.levels) == levels
        assert found.objective == pytest.approx(value)


@pytest.mark.parametrize("most_nodes", [10**6, 0])
def test_infinite_weights_are_left(most_nodes: int) -> None:
    """Values that must not be identified: 1/r is 0 there, whatever ρ."""
    for random, lattice in instances(31, 100):
        weights = tuple(
            np.where(np.arange(len(w)) < random.integers(0, len(w) + 1) * (random.random() < 0.5), math.inf, w)
            for w in lattice.weights
        )
        with np.errstate(invalid="ignore"):
            unwilling = replace(lattice, weights=weights, model="I")
        levels, value = Known(unwilling).best(0.3, 1, "exclude")
        found = aggregate(unwilling, trade_off=0.3, most_nodes=most_nodes)
        assert tuple(found.levels) == levels
        assert found.objective == pytest.approx(value)


@pytest.mark.parametrize("most_nodes", [10**6, 0])
@pytest.mark.parametrize("zero_phi", ["exclude", "floor"])
def test_nothing_to_protect_or_to_gain_is_released_as_it_is(most_nodes: int, zero_phi: str) -> None:
    harmless = replace(EXAMPLE, weights=tuple(np.zeros(len(w)) for w in EXAMPLE.weights))
    for lattice, trade_off in ((harmless, 3.0), (EXAMPLE, 0.0)):
        found = aggregate(lattice, trade_off=trade_off, kappa=2, zero_phi=zero_phi, most_nodes=most_nodes)  # type: ignore[arg-type]
        assert found.levels.tolist() == [0, 0, 0]
        assert (found.objective, found.bound, found.status) == (25, 25, "proved")
    assert crossing(harmless) == math.inf


def test_counts_merge_and_scale() -> None:
    """Rows in another order, or each twice at half the λ, change nothing."""
    for random, lattice in instances(41, 60):
        rows = np.repeat(lattice.vectors, 2 * lattice.counts, axis=0)[random.permutation(2 * lattice.counts.sum())]
        twice = RecordLattice.of_rows(rows, lattice.weights, lattice.utilities, model=lattice.model)
        before = [a.copy() for a in (lattice.vectors, lattice.counts, *lattice.weights, *lattice.utilities)]
        for most_nodes in (10**6, 0):
            one = aggregate(lattice, trade_off=0.5, most_nodes=most_nodes)
            two = aggregate(twice, trade_off=0.25, most_nodes=most_nodes)
            assert one.levels.tolist() == two.levels.tolist()
            assert one.objective == two.objective
        after = (lattice.vectors, lattice.counts, *lattice.weights, *lattice.utilities)
        assert all((a == b).all() for a, b in zip(after, before, strict=True))


def test_a_limit_of_cuts_leaves_a_gap_that_holds() -> None:
    limited = 0
    for _, lattice in instances(51, 150):
        star = crossing(lattice)
        star = star if 0 < star < math.inf else 1.0
        full = aggregate(lattice, trade_off=star, most_nodes=0)
        for most_cuts in (0, 1):
            found = aggregate(lattice, trade_off=star, most_nodes=0, most_cuts=most_cuts)
            assert found.visited <= most_cuts
            assert found.objective <= full.objective * (1 + 1e-12)
            assert found.bound >= full.objective * (1 - 1e-12)
            if found.status == "heuristic":
                limited += 1
                assert found.gap == found.bound - found.objective > 0
            else:
                assert found.objective == pytest.approx(full.objective, rel=1e-12)
    assert limited > 20


def test_larger_lattices() -> None:
    """Half a million nodes with thousands of rows: the boxes are divided and still agree with enumeration."""
    random = np.random.default_rng(3)
    heights = np.array([4, 4, 4, 4, 4, 4, 4, 4])
    for kappa in (1, 2):
        rows = np.stack([random.integers(0, h + 1, 60_000) for h in heights], axis=1)
        weights = [np.append(-np.sort(-random.random(h)), 0.0) for h in heights]
        lattice = RecordLattice.of_rows(rows, weights, [np.arange(h, -1.0, -1.0) for h in heights])
        star = crossing(lattice, kappa=kappa)
        for factor in (0.9, 1.0, 1.1):
            one = aggregate(lattice, trade_off=star * factor, kappa=kappa)
            two = aggregate(lattice, trade_off=star * factor, kappa=kappa, most_nodes=0)
            assert one.visited == lattice.size
            assert two.visited < 100
            assert one.levels.tolist() == two.levels.tolist()
            assert one.status == two.status == "proved"


def on_box(box: Box, trade_off: float, kappa: float, alpha: float) -> Callable[[Sequence[int]], float]:
    """``λρ + Φu^κ - αΦ`` from the definitions."""

    def value(x: Sequence[int]) -> float:
        rho = box.always + int(box.counts[(box.columns <= np.array(x)[:, None]).all(axis=0)].sum())
        phi = box.weight + sum(w[level] for w, level in zip(box.weights, x, strict=True))
        u = box.utility + sum(d[level] for d, level in zip(box.utilities, x, strict=True))
        return float(trade_off * rho + phi * u**kappa - alpha * phi)

    return value


def boxes(seed: int, n: int, **settings: int) -> Iterator[tuple[np.random.Generator, Box, float, int, float]]:
    """Random parts of lattices, with λ and α for which the ends of the box are about equal."""
    for random, lattice in instances(seed, n, **settings):  # type: ignore[arg-type]
        whole = kernel._whole(lattice)
        low = random.integers(0, lattice.heights // 2 + 1)
        high = random.integers(low, lattice.heights + 1)
        box = whole.part(low, high) if random.random() < 0.5 else whole
        kappa = int(random.integers(0, 3))
        bottom, top = np.zeros_like(box.heights), box.heights
        alpha = float(random.choice([0.0, 0.5, 2.0, 8.0, 32.0]))
        saved = on_box(box, 0, kappa, alpha)(bottom) - on_box(box, 0, kappa, alpha)(top)
        gained = box.consistent(top) - box.consistent(bottom)
        trade_off = saved / gained if saved > 0 and gained > 0 else 1.0
        yield random, box, trade_off, kappa, alpha


def wrong_cuts(seed: int, n: int, **settings: int) -> tuple[int, int]:
    """Boxes whose cut is not the least maximizer, or does not have the highest value; and those with one inside."""
    wrong = inner = 0
    for _, box, trade_off, kappa, alpha in boxes(seed, n, **settings):
        value = on_box(box, trade_off, kappa, alpha)
        nodes = list(itertools.product(*(range(h + 1) for h in box.heights)))
        values = np.array([value(x) for x in nodes])
        slack = 1e-11 * max(1.0, float(np.abs(values).max()))
        tied = np.array([x for x, v in zip(nodes, values, strict=True) if v >= values.max() - slack])
        want = tied.reshape(len(tied), -1).min(axis=0)
        least, exact, resolution = best_in_box(box, trade_off, kappa, alpha)  # type: ignore[arg-type]
        fault = (
            tuple(least) != tuple(want)
            or (exact < want).any()
            or value(exact) < values.max() - resolution - slack / 100
        )
        wrong += fault
        inner += not fault and 0 < want.sum() < box.heights.sum()
    return wrong, inner


@pytest.mark.parametrize("seed", [101, 102])
def test_the_cut_is_the_least_maximizer_on_its_box(seed: int) -> None:
    wrong, inner = wrong_cuts(seed, 400, highest=2)
    assert wrong == 0
    assert inner > 40


def is_row(network: closure.Network, n_variables: int) -> np.ndarray:
    middle = (network.head >= n_variables) & (network.head < network.source)
    return (network.tail == network.source) & middle


def is_pair(network: closure.Network, n_variables: int) -> np.ndarray:
    finite = network.capacity < network.capacity.max(initial=0)
    chain = (network.tail - network.head == 1) & ~finite
    return (network.tail < n_variables) & (network.head < n_variables) & ~chain


def is_chain(network: closure.Network, n_variables: int) -> np.ndarray:
    within = (network.tail < n_variables) & (network.head < n_variables)
    return within & ~is_pair(network, n_variables)


def is_triple(network: closure.Network, n_variables: int) -> np.ndarray:
    return (network.tail >= n_variables) & (network.head == network.sink)


@pytest.mark.parametrize(
    ("arcs", "reverse"), [(is_pair, False), (is_pair, True), (is_row, False), (is_chain, False), (is_triple, False)]
)
def test_networks_built_wrongly_are_noticed(
    arcs: Callable[[closure.Network, int], np.ndarray], reverse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dropped and reversed arcs: what the comparison above is worth."""
    build = closure.closure_network

    def wrongly(*arguments: object) -> Closure:
        right = build(*arguments)  # type: ignore[arg-type]
        network = right.network
        chosen = arcs(network, len(right.attribute))
        tail, head = np.where(chosen, network.head, network.tail), np.where(chosen, network.tail, network.head)
        if reverse:
            return replace(right, network=replace(network, tail=tail, head=head))
        return replace(right, network=replace(network, capacity=np.where(chosen, 0, network.capacity)))

    monkeypatch.setattr(closure, "closure_network", wrongly)
    wrong, _ = wrong_cuts(103, 150, highest=2)
    assert wrong >= 2


def test_boxes_count_as_their_lattice_does() -> None:
    for random, box, *_ in boxes(104, 150):
        low = random.integers(0, box.heights + 1)
        high = random.integers(low, box.heights + 1)
        part = box.part(low, high).merged()
        outer, inner = on_box(box, 1, 0, 0.0), on_box(part, 1, 0, 0.0)
        phi_u = on_box(box, 0, 1, 0.0), on_box(part, 0, 1, 0.0)
        for _ in range(4):
            x = random.integers(low, high + 1)
            y = (x - low)[high > low]
            assert inner(y) == pytest.approx(outer(x))
            assert phi_u[1](y) == pytest.approx(phi_u[0](x))
            assert part.consistent(y) == box.consistent(x)
            assert tuple(part.of_levels(y)) == tuple(box.of_levels(x))
            profiles = part.profiles(y)
            for i, h in enumerate(part.heights):
                for s in range(h + 1):
                    z = y.copy()
                    z[i] = s
                    assert profiles.consistent[i, s] == part.consistent(z)
                    assert profiles.inside[i, s]
                    assert profiles.sensitivity[i, s] == pytest.approx(on_box(part, 0, 0, 0.0)(z))


def test_hundreds_of_attributes_are_counted() -> None:
    """More than a byte counts, and row 0 violates 256 of them."""
    k = 300
    rows = np.zeros((3, k), dtype=np.int64)
    rows[0, :256], rows[1, 299], rows[2, [0, 299]] = 1, 1, 1
    lattice = RecordLattice.of_rows(rows, [np.array([1.0, 0.0])] * k, [np.array([1.0, 0.0])] * k)
    profiles = kernel._whole(lattice).profiles(np.zeros(k, dtype=np.int64))
    assert (profiles.consistent[:, 0] == 1).all()
    assert (profiles.consistent[:, 1] == np.where(np.arange(k) == 299, 2, 1)).all()
    found = aggregate(lattice, trade_off=300.0)
    assert (found.status, found.visited < 100) == ("proved", True)
    # All four rows at Φ = 1 by releasing any of the attributes 256 to 298; the first of them leads the order.
    assert found.objective == 300 * 4 + 1
    assert np.flatnonzero(found.levels == 0).tolist() == [256]


@pytest.mark.parametrize("kappa", [0, 1, 1.5, 2])
def test_the_point_of_least_norm_finds_the_same_maximum(kappa: float) -> None:
    """Another algorithm, for real powers too."""
    for random, lattice in instances(61, 25, widest=3, highest=2):
        box = kernel._whole(lattice)
        alpha, trade_off = float(random.uniform(0, 6)), float(random.uniform(0, 0.5))
        value = on_box(box, trade_off, kappa, alpha)
        highest = max(value(x) for x in itertools.product(*(range(h + 1) for h in box.heights)))
        levels, negative = naive_min_norm.minimize(lambda x, value=value: -value(x), box.heights.tolist())
        assert -negative == pytest.approx(highest, rel=1e-9, abs=1e-9)
        assert value(levels) == -negative
        if kappa != 1.5 and trade_off > 0:
            _, exact, resolution = best_in_box(box, trade_off, int(kappa), alpha)  # type: ignore[arg-type]
            assert value(exact) == pytest.approx(-negative, abs=1e-9 + resolution)


def violations(function: Callable[[Levels], float], heights: Sequence[int]) -> int:
    """Pairs with ``g(x) + g(y) > g(x ∨ y) + g(x ∧ y)``: g is not supermodular."""
    nodes = list(itertools.product(*(range(h + 1) for h in heights)))
    values = {x: function(x) for x in nodes}
    slack = 1e-9 * max(1.0, *(abs(v) for v in values.values()))
    count = 0
    for x, y in itertools.combinations(nodes, 2):
        join = tuple(map(max, x, y))
        meet = tuple(map(min, x, y))
        count += values[x] + values[y] > values[join] + values[meet] + slack
    return count


@pytest.mark.parametrize("kappa", [0, 1, 1.5, 2, 3, 4])
def test_what_is_maximized_is_supermodular(kappa: float) -> None:
    for random, lattice in instances(71, 25, widest=3, highest=2):
        value = on_box(kernel._whole(lattice), 0.7, kappa, float(random.uniform(0, 9)))
        assert violations(value, lattice.heights.tolist()) == 0


def test_what_is_refused_is_not_supermodular() -> None:
    """κ of one half, Φ = exp Σw, a loss in place of a utility, and friends who know at least one attribute."""
    root = multiplied = loss = 0
    for _, lattice in instances(72, 40, widest=3, highest=2):
        heights, whole = lattice.heights.tolist(), kernel._whole(replace(lattice, model="I"))
        root += violations(on_box(whole, 0, 0.5, 0.0), heights) > 0
        phi = on_box(whole, 0, 0, 0.0)
        multiplied += violations(lambda x, phi=phi: -math.exp(phi(x)), heights) > 0  # type: ignore[misc]
        top = float(sum(d[0] for d in lattice.utilities))
        loss += violations(on_box(replace(whole, utility=-top), 0, 2, 0.0), heights) > 0
    assert min(root, multiplied, loss) > 2
    # One friend with g = (1, 1), counted where x reaches g in some attribute: F12 Proposition 7.5.1 does not hold.
    assert violations(lambda x: float(x[0] >= 1 or x[1] >= 1), [1, 1]) == 1
    assert violations(lambda x: float(x[0] >= 1 and x[1] >= 1), [1, 1]) == 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kappa": 0.5}, r"decision.kappa: must be 0 or finite and at least 1, not 0\.5"),
        ({"kappa": -1}, "decision.kappa: .* not -1"),
        ({"kappa": math.nan}, "decision.kappa: .* not nan"),
        ({"trade_off": -0.1}, r"decision.lambda: must be finite and at least 0, not -0\.1"),
        ({"trade_off": math.inf}, "decision.lambda: .* not inf"),
        ({"kappa": 3, "most_nodes": 17}, "decision.kappa: a lattice of more than 17 nodes .* not for 3"),
        ({"kappa": 1.5, "most_nodes": 17}, "decision.kappa: .* not for 1.5"),
    ],
)
def test_what_cannot_be_solved_is_refused(settings: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        aggregate(EXAMPLE, **{"trade_off": 1.0, **settings})  # type: ignore[arg-type]


def test_the_third_model_is_refused() -> None:
    with pytest.raises(InputError, match=r"risk\.model: .* not for 'III'"):
        aggregate(replace(EXAMPLE, model="III"), trade_off=1)
