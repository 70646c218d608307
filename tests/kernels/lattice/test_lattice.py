from __future__ import annotations

import itertools

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privrisk_spark.kernels.lattice.lattice import Lattice, feasible_nodes, maximal_nodes, reaches, walk_frontier

heights_of = st.lists(st.integers(0, 3), min_size=1, max_size=4)


@st.composite
def problems(draw: st.DrawFn) -> tuple[Lattice, list[np.ndarray], float]:
    heights = draw(heights_of)
    steps = st.sampled_from([0.0, 0.5, 1.0, 1.0, 2.0])
    chains = [np.cumsum([0.0, *[draw(steps) for _ in range(h)]])[::-1].copy() for h in heights]
    lattice = Lattice(tuple(heights))
    top = sum(chain[0] for chain in chains)
    return lattice, chains, draw(st.floats(0, 1.2)) * top


def test_nodes_are_numbered_lexicographically() -> None:
    lattice = Lattice((2, 0, 1))
    assert lattice.n_nodes == 6
    assert [tuple(v) for v in lattice.levels(np.arange(6))] == list(naive.lattice((2, 0, 1)))


def test_a_floor_reached_up_to_rounding_is_reached() -> None:
    assert reaches(np.array([0.1 + 0.2]), 0.3).all()
    assert reaches(np.array([0.3]), 0.1 + 0.2).all()
    assert not reaches(np.array([0.3 - 1e-9]), 0.3).any()


@given(problems())
def test_maximal_and_frontier_nodes_are_the_definitions(problem: tuple[Lattice, list[np.ndarray], float]) -> None:
    lattice, chains, floor = problem
    feasible = {
        levels
        for levels in naive.lattice(lattice.heights)
        if sum(chain[x] for chain, x in zip(chains, levels, strict=True)) >= floor - 1e-12 * max(1, abs(floor))
    }

    def generalizations(levels: tuple[int, ...]) -> list[tuple[int, ...]]:
        return [
            (*levels[:i], levels[i] + 1, *levels[i + 1 :]) for i in range(len(levels)) if levels[i] < lattice.heights[i]
        ]

    maximal = {x for x in feasible if not any(y in feasible for y in generalizations(x))}
    frontier = {x for x in feasible if any(y not in feasible for y in generalizations(x))}
    found = lattice.levels(maximal_nodes(lattice, feasible_nodes(lattice, chains, floor)))
    assert {tuple(x) for x in found} == maximal
    top = tuple(lattice.heights)
    expected = {top} if top in feasible else frontier
    for neighbourhood in ("swap", "cube"):
        walked = lattice.levels(walk_frontier(lattice, chains, floor, neighbourhood))  # type: ignore[arg-type]
        assert {tuple(x) for x in walked} == expected
    # Every maximal node lies on the frontier, unless all nodes are feasible.
    assert maximal <= expected


def test_unit_moves_alone_do_not_connect_the_frontier() -> None:
    """Why the swaps are there: levels (2,0), (1,1) and (0,2) of a two-chain lattice share no edge."""
    lattice = Lattice((2, 2))
    chains = [np.array([2.0, 1.0, 0.0])] * 2
    frontier = {tuple(x) for x in lattice.levels(walk_frontier(lattice, chains, 2.0))}
    assert frontier == {(2, 0), (1, 1), (0, 2)}
    apart = [abs(a - c) + abs(b - d) for (a, b), (c, d) in itertools.combinations(sorted(frontier), 2)]
    assert min(apart) == 2


@pytest.mark.parametrize("neighbourhood", ["swap", "cube"])
def test_an_infeasible_floor_has_no_frontier_and_no_loop(neighbourhood: str) -> None:
    lattice = Lattice((2, 1))
    chains = [np.array([2.0, 1.0, 0.0]), np.array([1.0, 0.0])]
    assert len(walk_frontier(lattice, chains, 3.5, neighbourhood)) == 0  # type: ignore[arg-type]
    assert len(maximal_nodes(lattice, feasible_nodes(lattice, chains, 3.5))) == 0
