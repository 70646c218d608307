"""One suite for everything that counts consistent rows: the contract of ``Counts``, against the naive count."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import several_hierarchies

from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.counting.cells import CellSpace
from privrisk_spark.kernels.counting.consistent import Axis, Counts, DenseCounts, SortedCounts
from privrisk_spark.kernels.counting.given_counts import GivenCounts
from privrisk_spark.kernels.numeric.packing import gathered

Levels = tuple[int, ...]
Make = Callable[[Sequence[Axis], np.ndarray, np.ndarray], Counts]


def given_counts(room: int) -> Make:
    """Every cell there is, counted pass by pass as the shuffled plans do; ``room`` is what one word holds."""

    def make(axes: Sequence[Axis], vectors: np.ndarray, multiplicity: np.ndarray) -> Counts:
        present = [np.arange(len(axis.at_depth) + 1, dtype=np.int32) for axis in axes]
        space = CellSpace.of(list(axes), present, room=room)
        columns = [vectors[:, i] if axis.known else None for i, axis in enumerate(axes)]
        words, tally = space.pack(columns, len(vectors)), multiplicity
        for slot in space.passes:
            parts = list(space.expand(words, tally, slot, distinct=False, most=3))
            if parts:
                words = [np.concatenate(word) for word in zip(*[part[0] for part in parts], strict=True)]
                tally = np.concatenate([part[1] for part in parts])
        words, tally = gathered(words, tally, distinct=False)
        found = {tuple(c): int(n) for c, n in zip(space.classes(words).tolist(), tally.tolist(), strict=True)}
        cells = list(itertools.product(*[range(relation.n_classes) for relation in space.relations]))
        listed = np.array(cells, dtype=np.int64)[::-1]
        counts = np.array([found.get(tuple(cell), 0) for cell in listed.tolist()], dtype=np.int64)
        packed = space.packing.pack([listed[:, i] for i in space.order], len(listed))
        return GivenCounts.of(space, packed, counts, int(multiplicity.sum()))

    return make


PLANS: dict[str, Make] = {
    "dense": DenseCounts.roll_up,
    "sorted": SortedCounts.group,
    "given": given_counts(2**63),
    "given in many words": given_counts(12),
}


@dataclass
class Case:
    """Hierarchies, how the dictionary knows each attribute, its rows, and codes of the records that are asked about."""

    hierarchies: list[Hierarchy]
    axes: list[Axis]
    rows: np.ndarray
    codes: np.ndarray

    def counts(self, make: Make, times: int = 1) -> Counts:
        vectors, multiplicity = np.unique(self.rows, axis=0, return_counts=True)
        return make(self.axes, vectors.astype(np.int32), times * multiplicity)

    def depths(self, record: np.ndarray) -> list[int]:
        return [int(axis.code_depth[code]) for axis, code in zip(self.axes, record, strict=True)]

    def naive(self, record: np.ndarray, levels: Levels) -> int:
        nodes = [int(h.ancestor[code, x]) for h, code, x in zip(self.hierarchies, record, levels, strict=True)]
        sizes = [h.n_nodes for h in self.hierarchies]
        known = [[None if v == size else int(v) for v, size in zip(row, sizes, strict=True)] for row in self.rows]
        return naive.count(
            [h.parent.tolist() for h in self.hierarchies],
            nodes,
            known,
            self.axes[0].consistency,
            wildcards=[axis.wildcard for axis in self.axes],
            lacking=[i for i, axis in enumerate(self.axes) if not axis.known],
        )


def one(counts: Counts, record: np.ndarray, levels: Levels, depths: list[int]) -> int:
    (found,) = counts.consistent([np.array([code], dtype=np.int32) for code in record], levels, depths).tolist()
    return int(found)


@st.composite
def cases(draw: st.DrawFn, least_rows: int = 0) -> Case:
    hierarchies = draw(several_hierarchies(2))
    meaning = draw(st.sampled_from(["subsumes", "compatible"]))
    axes = [
        Axis(h.at_depth, h.ancestor, meaning, known=draw(st.integers(0, 4)) > 0, wildcard=draw(st.booleans()))
        for h in hierarchies
    ]
    rows = [[draw(st.integers(0, h.n_nodes)) for h in hierarchies] for _ in range(draw(st.integers(least_rows, 10)))]
    codes = [[draw(st.integers(0, h.n_leaves)) for h in hierarchies] for _ in range(draw(st.integers(1, 4)))]
    return Case(
        hierarchies,
        axes,
        np.array(rows, dtype=np.int32).reshape(len(rows), len(hierarchies)),
        np.array(codes, dtype=np.int32),
    )


@pytest.mark.parametrize("plan", PLANS)
@given(case=cases())
def test_every_count_is_the_naive_one(plan: str, case: Case) -> None:
    counts = case.counts(PLANS[plan])
    assert counts.dictionary_rows == len(case.rows)
    for record in case.codes:
        depths = case.depths(record)
        for levels in naive.lattice(depths):
            assert one(counts, record, levels, depths) == case.naive(record, levels), levels


@pytest.mark.parametrize("plan", PLANS)
@given(case=cases(least_rows=1))
def test_many_records_are_counted_as_each_alone(plan: str, case: Case) -> None:
    """Records of the same depths in one call, in any number; none of them is an array of none."""
    counts = case.counts(PLANS[plan])
    depths = case.depths(case.codes[0])
    alike = np.array([record for record in case.codes if case.depths(record) == depths] * 2, dtype=np.int32)
    for levels in naive.lattice(depths):
        found = counts.consistent(list(alike.T.copy()), levels, depths)
        assert found.tolist() == [one(counts, record, levels, depths) for record in alike]
    none = counts.consistent(list(alike[:0].T.copy()), depths, depths)
    assert none.shape == (0,)


@pytest.mark.parametrize("plan", PLANS)
@given(case=cases())
def test_what_is_said_of_counts_holds(plan: str, case: Case) -> None:
    """At the top every row counts; ``monotone``: generalizing loses none; ``alike``: exchanging codes changes none;
    rows that are there thrice count thrice."""
    counts, thrice = case.counts(PLANS[plan]), case.counts(PLANS[plan], times=3)
    assert counts.monotone
    for record in case.codes:
        depths = case.depths(record)
        assert one(counts, record, tuple(depths), depths) == len(case.rows)
        others = [
            np.flatnonzero((group == group[code]) & (axis.code_depth == depth))
            for group, axis, code, depth in zip(counts.alike, case.axes, record, depths, strict=True)
        ]
        grid = [part.ravel().astype(np.int32) for part in np.meshgrid(*others)]
        for levels in naive.lattice(depths):
            here = one(counts, record, levels, depths)
            assert set(counts.consistent(grid, levels, depths).tolist()) == {here}
            assert one(thrice, record, levels, depths) == 3 * here
            for i, depth in enumerate(depths):
                if levels[i] < depth:
                    above = (*levels[:i], levels[i] + 1, *levels[i + 1 :])
                    assert one(counts, record, above, depths) >= here
