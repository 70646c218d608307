"""Counts of a whole lattice at once, against the literal count at every node."""

from __future__ import annotations

import itertools

import naive
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from strategies import several_hierarchies

from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.counting.consistent import Axis, DenseCounts, SortedCounts
from privrisk_spark.kernels.counting.every_node import consistent_everywhere


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[Hierarchy], list[Axis], np.ndarray, np.ndarray]:
    hierarchies = draw(several_hierarchies())
    meaning = draw(st.sampled_from(["subsumes", "compatible"]))
    axes = [
        Axis(h.at_depth, h.ancestor, meaning, known=draw(st.integers(0, 4)) > 0, wildcard=draw(st.booleans()))
        for h in hierarchies
    ]
    n = draw(st.integers(0, 10))
    rows = np.array([[draw(st.integers(0, h.n_nodes)) for h in hierarchies] for _ in range(n)], dtype=np.int32)
    codes = np.array([[draw(st.integers(0, h.n_leaves)) for h in hierarchies] for _ in range(5)], dtype=np.int32)
    return hierarchies, axes, rows.reshape(n, len(hierarchies)), codes


@given(cases(), st.data())
def test_counts_of_a_lattice_are_the_naive_ones(
    case: tuple[list[Hierarchy], list[Axis], np.ndarray, np.ndarray], data: st.DataObject
) -> None:
    hierarchies, axes, rows, codes = case
    vectors, times = np.unique(rows, axis=0, return_counts=True)
    inner = [[x for x in range(1, h.height) if data.draw(st.booleans())] for h in hierarchies]
    kept = [np.array(sorted({0, *some, h.height})) for some, h in zip(inner, hierarchies, strict=True)]
    parents = [h.parent.tolist() for h in hierarchies]
    known = [[None if v == h.n_nodes else int(v) for v, h in zip(row, hierarchies, strict=True)] for row in rows]
    lacking = [i for i, axis in enumerate(axes) if not axis.known]
    wanted = [
        [
            naive.count(
                parents,
                [int(h.ancestor[code, x]) for h, code, x in zip(hierarchies, record, levels, strict=True)],
                known,
                axes[0].consistency,
                wildcards=[a.wildcard for a in axes],
                lacking=lacking,
            )
            for levels in itertools.product(*(some.tolist() for some in kept))
        ]
        for record in codes
    ]
    depths = [axis.code_depth for axis in axes]
    vectors = vectors.astype(np.int32)
    for plan in (DenseCounts.roll_up(axes, vectors, times), SortedCounts.group(axes, vectors, times)):
        assert consistent_everywhere(plan, depths, kept, codes).tolist() == wanted


def test_persons_in_signed_counts_are_exact():
    """A person with two rows is both vectors less the one they share, at every node."""
    tree = Hierarchy.from_paths("x", [(f"{i}{j}", f"{i}") for i in "ab" for j in "12"])
    axes = [Axis(tree.at_depth, tree.ancestor)]
    above = int(tree.ancestor[0, 1])
    vectors, signs = np.array([[0], [1], [above]], dtype=np.int32), np.array([1, 1, -1])
    plan = SortedCounts.group(axes, vectors, signs)
    found = consistent_everywhere(plan, [axes[0].code_depth], [np.arange(3)], np.array([[0], [2]], dtype=np.int32))
    assert found.tolist() == [[1, 1, 1], [0, 0, 1]]
