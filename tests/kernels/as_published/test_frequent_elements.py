"""Elements found attribute by attribute, and counts of whole lattices, against enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.as_published.frequent_elements import consistent_elements, frequent_elements, lattice_counts
from privrisk_spark.kernels.counting.consistent import Axis, DenseCounts, SortedCounts
from privrisk_spark.kernels.numeric.distinct import distinct_rows

# Leaves 0-3 under 4 and 5, and a leaf right under the root: values of unequal depth.
PARENT = [4, 4, 5, 5, 7, 7, 7, 7]
FLAT = [2, 2, 2]


def axis(parent: list[int], leaves: list[int]) -> Axis:
    root = len(parent) - 1
    paths = []
    for node in range(len(parent)):
        path = [node]
        while path[-1] != root:
            path.append(parent[path[-1]])
        paths.append(path)
    height = max(len(path) for path in paths) - 1
    at_depth = np.array([path[::-1] + [-1] * (height + 1 - len(path)) for path in paths], dtype=np.int32)
    ancestor = np.array([paths[leaf] + [root] * (height + 1 - len(paths[leaf])) for leaf in [*leaves, root]])
    return Axis(at_depth, ancestor.astype(np.int32))


AXES = [axis(PARENT, [0, 1, 2, 3, 6]), axis(FLAT, [0, 1]), axis(PARENT, [0, 1, 2, 3, 6])]
LEAVES = [[0, 1, 2, 3, 6], [0, 1], [0, 1, 2, 3, 6]]


@st.composite
def tables(draw: st.DrawFn) -> npt.NDArray[np.int32]:
    """Codes of records; the last code of an attribute is a suppressed value."""
    row = st.tuples(st.integers(0, 5), st.integers(0, 2), st.integers(0, 5))
    return np.array(draw(st.lists(row, min_size=1, max_size=12)), dtype=np.int32)


def counted(codes: npt.NDArray[np.int32]) -> tuple[DenseCounts, SortedCounts]:
    nodes = np.column_stack(
        [np.array([*leaves, axis.root])[codes[:, i]] for i, (leaves, axis) in enumerate(zip(LEAVES, AXES, strict=True))]
    )
    first, member = distinct_rows(list(nodes.T))
    vectors, counts = nodes[first].astype(np.int32), np.bincount(member).astype(np.int64)
    return DenseCounts.roll_up(AXES, vectors, counts), SortedCounts.group(AXES, vectors, counts)


def literal(codes: npt.NDArray[np.int32], record: int) -> dict[tuple[int, ...], int]:
    """Every element of a record's lattice with its count, straight from the ancestors."""
    found = {}
    for levels in itertools.product(
        *(range(int(a.code_depth[c]) + 1) for a, c in zip(AXES, codes[record], strict=True))
    ):
        rows = 0
        for row in codes:
            rows += all(
                a.ancestor[c, level] in a.ancestor[other]
                for a, c, other, level in zip(AXES, codes[record], row, levels, strict=True)
            )
        found[levels] = rows
    return found


@given(tables(), st.integers(0, 6), st.sampled_from([1, 7, 10_000]), st.sampled_from([0, 1]))
@settings(max_examples=60)
def test_elements_are_those_of_enumeration(codes: npt.NDArray[np.int32], least: int, at_once: int, plan: int) -> None:
    counts = counted(codes)[plan]
    code_depth = [a.code_depth for a in AXES]
    depths = np.column_stack([depth[codes[:, i]] for i, depth in enumerate(code_depth)])
    blocks = list(
        frequent_elements(
            codes, depths, lambda c, x: consistent_elements(counts, code_depth, c, x), least=least, at_once=at_once
        )
    )
    assert [block.begin for block in blocks] + [len(codes)] == [0] + [block.end for block in blocks]
    for block in blocks:
        found = zip(
            (block.record + block.begin).tolist(), block.levels.tolist(), block.consistent.tolist(), strict=True
        )
        expected = [
            (record, list(levels), rows)
            for record in range(block.begin, block.end)
            for levels, rows in literal(codes, record).items()
            if rows >= least
        ]
        assert list(found) == expected


@given(tables())
@settings(max_examples=40)
def test_whole_lattices(codes: npt.NDArray[np.int32]) -> None:
    depths = np.column_stack([a.code_depth[codes[:, i]] for i, a in enumerate(AXES)])
    for counts in counted(codes):
        of = lattice_counts(counts)
        for heights in {tuple(row) for row in depths.tolist()}:
            records = np.flatnonzero((depths == heights).all(axis=1))
            expected = [list(literal(codes, record).values()) for record in records.tolist()]
            np.testing.assert_array_equal(of.of_records(codes[records], heights), expected)


def test_counts_of_other_plans_are_refused() -> None:
    with pytest.raises(InputError, match="'dense' or 'sorted'"):
        lattice_counts(None)  # type: ignore[arg-type]
