"""One suite for every search: the optimum of the literal search, batch independence, inputs untouched."""

from __future__ import annotations

import math

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import several_hierarchies

from privrisk_spark.hierarchy import Hierarchy
from privrisk_spark.kernels.counting import Axis, DenseCounts, SortedCounts
from privrisk_spark.kernels.decide import Decisions, Problem, decide
from privrisk_spark.kernels.sensitivity import Sensitivity, harmonic_weights
from privrisk_spark.kernels.utility import node_utility

SEARCHES = [("exact", "swap"), ("aruba", "swap"), ("aruba", "cube")]


def build(
    hierarchies: list[Hierarchy],
    *,
    weights: list[float],
    form: str,
    model: str,
    measure: str,
    floor: float,
    search: str = "exact",
    neighbourhood: str = "swap",
) -> Problem:
    axes = [Axis(h.at_depth, h.ancestor) for h in hierarchies]
    return Problem(
        ancestor=tuple(h.ancestor for h in hierarchies),
        code_depth=tuple(axis.code_depth for axis in axes),
        utility=tuple(node_utility(measure, h.depth, h.n_under) for h in hierarchies),  # type: ignore[arg-type]
        sensitivity=Sensitivity(
            form,  # type: ignore[arg-type]
            tuple(
                harmonic_weights(h.parent, h.depth, h.n_leaves, np.full(h.n_leaves, w))
                for h, w in zip(hierarchies, weights, strict=True)
            ),
        ),
        model=model,  # type: ignore[arg-type]
        floor=floor,
        search=search,  # type: ignore[arg-type]
        neighbourhood=neighbourhood,  # type: ignore[arg-type]
    )


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[Hierarchy], np.ndarray, np.ndarray, dict[str, object], float]:
    hierarchies = draw(several_hierarchies())
    codes = np.array(
        [[draw(st.integers(0, h.n_leaves)) for h in hierarchies] for _ in range(draw(st.integers(1, 6)))],
        dtype=np.int32,
    )
    others = np.array(
        [[draw(st.integers(0, h.n_leaves - 1)) for h in hierarchies] for _ in range(draw(st.integers(0, 8)))],
        dtype=np.int32,
    ).reshape(-1, len(hierarchies))
    settings: dict[str, object] = {
        "weights": [draw(st.sampled_from([0.0, 0.3, 1.0, math.inf])) for _ in hierarchies],
        "form": draw(st.sampled_from(["constant", "linear", "record", "multiplicative"])),
        "model": draw(st.sampled_from(["I", "II", "III"])),
        "measure": draw(st.sampled_from(["depth", "leaves", "log-leaves", "xiao-tao", "lm"])),
    }
    return hierarchies, codes, others, settings, draw(st.floats(0, 1.1))


def naive_decision(
    problem: Problem, hierarchies: list[Hierarchy], record: np.ndarray, dictionary: np.ndarray, scale: list[float]
) -> tuple[tuple[int, ...] | None, float, float]:
    parents = [h.parent.tolist() for h in hierarchies]
    rows = [[int(v) for v in row] for row in dictionary]
    depths = [int(problem.code_depth[i][c]) for i, c in enumerate(record)]

    def nodes(levels: tuple[int, ...]) -> list[int]:
        return [int(h.ancestor[c, x]) for h, c, x in zip(hierarchies, record, levels, strict=True)]

    absent = int(naive.count(parents, nodes((0,) * len(depths)), rows, "subsumes") == 0)

    def risk(levels: tuple[int, ...]) -> float:
        here = nodes(levels)
        weights = [
            0.0 if w[n] == 0 or s == 0 else float(w[n]) * s
            for w, n, s in zip(problem.sensitivity.weights, here, scale, strict=True)
        ]
        suppressed = [n == h.root for n, h in zip(here, hierarchies, strict=True)]
        phi = naive.phi(problem.sensitivity.form, weights, suppressed)
        rho = naive.count(parents, here, rows, "subsumes") + absent
        return naive.risk(problem.model, phi, rho, len(rows) + absent)

    def utility(levels: tuple[int, ...]) -> float:
        return sum(float(u[n]) for u, n in zip(problem.utility, nodes(levels), strict=True))

    best = naive.least_risky(depths, risk, utility, problem.floor)
    answer = best if best is not None else tuple(depths)
    return best, risk(answer), utility(answer)


def to_dictionary(hierarchies: list[Hierarchy], codes: np.ndarray) -> np.ndarray:
    roots = np.array([h.root for h in hierarchies])
    leaves = np.array([h.n_leaves for h in hierarchies])
    return np.where(codes == leaves, roots, codes).astype(np.int32)


@pytest.mark.parametrize(("search", "neighbourhood"), SEARCHES)
@given(case=cases(), personal=st.booleans(), data=st.data())
def test_every_search_is_the_literal_search(
    search: str, neighbourhood: str, case: tuple[list[Hierarchy], np.ndarray, np.ndarray, dict[str, object], float],
    personal: bool, data: st.DataObject,
) -> None:  # fmt: skip
    hierarchies, codes, others, settings, share = case
    top = sum(float(node_utility(settings["measure"], h.depth, h.n_under).max()) for h in hierarchies)  # type: ignore[arg-type]
    problem = build(hierarchies, floor=share * top, search=search, neighbourhood=neighbourhood, **settings)  # type: ignore[arg-type]
    # The first record is left out of the dictionary: it is absent unless another is like it.
    dictionary = to_dictionary(hierarchies, np.concatenate([codes[1:], others]))
    if not len(dictionary):
        dictionary = to_dictionary(hierarchies, codes)
    vectors, multiplicity = np.unique(dictionary, axis=0, return_counts=True)
    axes = [Axis(h.at_depth, h.ancestor) for h in hierarchies]
    scale = np.ones(codes.shape)
    if personal:
        scale = np.array([[data.draw(st.sampled_from([0.0, 0.5, 2.0])) for _ in hierarchies] for _ in codes])
    for counts in (
        DenseCounts.roll_up(axes, vectors.astype(np.int32), multiplicity),
        SortedCounts.group(axes, vectors.astype(np.int32), multiplicity),
    ):
        before = codes.copy()
        found = decide(problem, counts, codes, personal=scale if personal else None)
        assert (codes == before).all()
        for i, record in enumerate(codes):
            levels, risk, utility = naive_decision(problem, hierarchies, record, dictionary, scale[i].tolist())
            assert found.feasible[i] == (levels is not None)
            if levels is not None:
                assert tuple(found.levels[i]) == levels
            assert found.risk[i] == pytest.approx(risk, rel=1e-9)
            assert found.utility[i] == pytest.approx(utility)


def golden() -> tuple[list[Hierarchy], DenseCounts, Problem]:
    """A lattice of heights (2,2,1) with ρ given by g-vectors:
    000x1 010x2 100x1 110x3 121x4 201x2 210x5 220x6 221x10."""

    def chain(name: str, height: int) -> Hierarchy:
        # Leaf 0 is the record's value; leaf g branches off its path at level g.
        paths = [("v0", *[f"up{j}" for j in range(1, height)])]
        for g in range(1, height + 1):
            paths.append((f"v{g}", *[f"side{g}.{j}" for j in range(1, g)], *[f"up{j}" for j in range(g, height)]))
        return Hierarchy.from_paths(name, paths)

    hierarchies = [chain("a", 2), chain("b", 2), chain("c", 1)]
    table = {"000": 1, "010": 2, "100": 1, "110": 3, "121": 4, "201": 2, "210": 5, "220": 6, "221": 10}
    rows = np.array([[h.find(f"v{g}") for h, g in zip(hierarchies, key, strict=True)] for key in table], dtype=np.int32)
    axes = [Axis(h.at_depth, h.ancestor) for h in hierarchies]
    counts = DenseCounts.roll_up(axes, rows, np.array(list(table.values())))
    weights = []
    for h, levels in zip(hierarchies, ([6, 2, 0], [4, 2, 0], [3, 0]), strict=True):
        of_node = np.zeros(h.n_nodes)
        for level, weight in enumerate(levels):
            of_node[h.ancestor[h.find("v0"), level]] = weight
        weights.append(of_node)
    problem = Problem(
        ancestor=tuple(h.ancestor for h in hierarchies),
        code_depth=tuple(axis.code_depth for axis in axes),
        utility=tuple(node_utility("depth", h.depth, h.n_under) for h in hierarchies),
        sensitivity=Sensitivity("linear", tuple(weights)),
        model="I",
        floor=5.0,
    )
    return hierarchies, counts, problem


@pytest.mark.parametrize(("search", "neighbourhood"), SEARCHES)
def test_golden_lattice(search: str, neighbourhood: str) -> None:
    """All values by enumeration of the 18 nodes: Φ/ρ and 1/ρ minima for floors 5 to 0; above 5 nothing is feasible."""
    hierarchies, counts, problem = golden()
    record = np.array([[h.code_of["v0"] for h in hierarchies]], dtype=np.int32)

    def solve(floor: float, model: str) -> Decisions:
        changed = {**problem.__dict__, "floor": floor, "model": model, "search": search, "neighbourhood": neighbourhood}
        return decide(Problem(**{f: changed[f] for f in Problem.__dataclass_fields__}), counts, record)

    expected = {
        5: ((0, 0, 0), 13),
        4: ((0, 1, 0), 11 / 3),
        3: ((1, 1, 0), 1),
        2: ((2, 1, 0), 5 / 12),
        1: ((2, 1, 1), 1 / 7),
    }
    for floor, (levels, risk) in expected.items():
        found = solve(floor, "I")
        assert tuple(found.levels[0]) == levels
        assert found.risk[0] == pytest.approx(risk)
    top = solve(0, "I")
    assert tuple(top.levels[0]) == (2, 2, 1)
    assert top.risk[0] == 0
    assert [solve(c, "II").risk[0] for c in (5, 4, 3, 2, 1, 0)] == pytest.approx(
        [1, 1 / 3, 1 / 7, 1 / 12, 1 / 18, 1 / 34]
    )
    nothing = solve(5.5, "I")
    assert not nothing.feasible[0]
    assert tuple(nothing.levels[0]) == (2, 2, 1)


@pytest.mark.parametrize(("search", "neighbourhood"), SEARCHES)
def test_a_record_is_decided_alone(search: str, neighbourhood: str) -> None:
    rng = np.random.default_rng(11)
    hierarchies = [
        Hierarchy.from_paths(name, [(f"{name}{i}", f"{name}g{i // 3}", f"{name}h{i // 6}") for i in range(12)])
        for name in "abc"
    ]
    codes = rng.integers(0, 12, (200, 3)).astype(np.int32)
    vectors, multiplicity = np.unique(codes, axis=0, return_counts=True)
    axes = [Axis(h.at_depth, h.ancestor) for h in hierarchies]
    counts = SortedCounts.group(axes, vectors.astype(np.int32), multiplicity)
    problem = build(
        hierarchies, weights=[1.0, 0.5, 2.0], form="linear", model="I", measure="log-leaves", floor=3.0,
        search=search, neighbourhood=neighbourhood,
    )  # fmt: skip
    whole = decide(problem, counts, codes)
    order = rng.permutation(200)
    parts = [decide(problem, counts, codes[part]) for part in np.array_split(order, 7)]
    assert (np.concatenate([p.levels for p in parts]) == whole.levels[order]).all()
    assert (np.concatenate([p.risk for p in parts]) == whole.risk[order]).all()
    assert len(np.unique(whole.levels, axis=0)) > 3, "neighbours must disagree for this test to mean anything"
