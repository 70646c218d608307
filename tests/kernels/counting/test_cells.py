from __future__ import annotations

import itertools
from dataclasses import dataclass

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_decisions import Task
from scipy import sparse
from strategies import several_hierarchies

from privrisk_spark.errors import InternalError
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.counting import cells as kernel
from privrisk_spark.kernels.counting.cells import CellSpace
from privrisk_spark.kernels.counting.consistent import Axis, DenseCounts, SortedCounts
from privrisk_spark.kernels.counting.given_counts import GivenCounts
from privrisk_spark.kernels.disclosure.objective import LeastRisk
from privrisk_spark.kernels.disclosure.sensitivity import Sensitivity, harmonic_weights
from privrisk_spark.kernels.disclosure.utility import node_utility
from privrisk_spark.kernels.lattice.lattice import Lattice, feasible_nodes
from privrisk_spark.kernels.numeric.packing import Packing, gathered
from privrisk_spark.kernels.search import cells_asked
from privrisk_spark.kernels.search.cells_asked import chunk_rows, needed_cells
from privrisk_spark.kernels.search.table_search import decide

Cell = tuple[int, ...]


@dataclass
class Case:
    hierarchies: list[Hierarchy]
    axes: list[Axis]
    rows: np.ndarray
    weights: np.ndarray
    entities: np.ndarray
    codes: np.ndarray
    lacking: list[int]
    order: list[int]
    room: int
    most: int

    @property
    def space(self) -> CellSpace:
        present = [np.arange(h.n_nodes + 1, dtype=np.int32) for h in self.hierarchies]
        return CellSpace.of(self.axes, present, self.order, room=self.room)

    def packed(self, space: CellSpace) -> list[np.ndarray]:
        columns = [None if i in self.lacking else self.rows[:, i] for i in range(len(self.axes))]
        return space.pack(columns, len(self.rows))

    def rho(self, nodes: Cell, weights: np.ndarray | None = None) -> int:
        """Naive count; each row counts as often as its weight says."""
        parents = [h.parent.tolist() for h in self.hierarchies]
        sizes = [h.n_nodes for h in self.hierarchies]
        known = [[None if v == size else int(v) for v, size in zip(row, sizes, strict=True)] for row in self.rows]
        flags = [a.wildcard for a in self.axes]
        found = [
            naive.count(parents, nodes, [row], self.axes[0].consistency, wildcards=flags, lacking=self.lacking)
            for row in known
        ]
        return int(np.dot(found, self.weights if weights is None else weights))

    def owners(self, nodes: Cell) -> int:
        """Naive number of distinct entities."""
        return sum(self.rho(nodes, (self.entities == e).astype(int)) > 0 for e in np.unique(self.entities))

    def every_node_vector(self) -> list[Cell]:
        return list(itertools.product(*[range(h.n_nodes) for h in self.hierarchies]))


@st.composite
def cases(draw: st.DrawFn, max_attributes: int = 3) -> Case:
    hierarchies = draw(several_hierarchies(max_attributes))
    meaning = draw(st.sampled_from(["subsumes", "compatible"]))
    lacking = [i for i in range(len(hierarchies)) if draw(st.integers(0, 4)) == 0]
    axes = [
        Axis(h.at_depth, h.ancestor, meaning, known=i not in lacking, wildcard=draw(st.booleans()))
        for i, h in enumerate(hierarchies)
    ]
    n = draw(st.integers(0, 10))
    rows = [[draw(st.integers(0, h.n_nodes)) for h in hierarchies] for _ in range(n)]
    codes = [[draw(st.integers(0, h.n_leaves)) for h in hierarchies] for _ in range(draw(st.integers(1, 5)))]
    return Case(
        hierarchies,
        axes,
        np.array(rows, dtype=np.int32).reshape(n, len(hierarchies)),
        np.array([draw(st.integers(1, 3)) for _ in range(n)], dtype=np.int64),
        np.array([draw(st.integers(0, 3)) for _ in range(n)], dtype=np.int64),
        np.array(codes, dtype=np.int32),
        lacking,
        draw(st.permutations(range(len(hierarchies)))),
        draw(st.sampled_from([2**63, 300, 12])),
        draw(st.sampled_from([1, 3, 10**6])),
    )


def one_pass(space, words, tally, slot, *, distinct, most):
    parts = list(space.expand(words, tally, slot, distinct=distinct, most=most))
    if not parts:
        return words, tally
    together = [np.concatenate(columns) for columns in zip(*[p[0] for p in parts], strict=True)]
    return gathered(together, np.concatenate([p[1] for p in parts]), distinct=distinct)


def counted(case: Case, space: CellSpace, *, distinct: bool) -> dict[Cell, int]:
    """Classes to counts, by all passes one after the other."""
    words, tally = case.packed(space), case.entities if distinct else case.weights
    for slot in space.passes:
        words, tally = one_pass(space, words, tally, slot, distinct=distinct, most=case.most)
    if distinct:
        words, tally = gathered(words, np.ones(len(tally), dtype=np.int64), distinct=False)
    else:
        words, tally = gathered(words, tally, distinct=False)
    return {tuple(c): int(n) for c, n in zip(space.classes(words).tolist(), tally.tolist(), strict=True)}


def class_of(space: CellSpace, nodes: Cell) -> Cell:
    return tuple(int(r.node_class[x]) for r, x in zip(space.relations, nodes, strict=True))


@settings(max_examples=60)
@given(case=cases(max_attributes=2), distinct=st.booleans())
def test_the_passes_are_the_naive_count(case: Case, distinct: bool) -> None:
    """Every cell of every node vector, whatever the order of passes, the size of a step and the words of a cell."""
    space = case.space
    found = counted(case, space, distinct=distinct)
    asked = set()
    for nodes in case.every_node_vector():
        want = case.owners(nodes) if distinct else case.rho(nodes)
        assert found.get(class_of(space, nodes), 0) == want, nodes
        asked.add(class_of(space, nodes))
    assert set(found) <= asked


@given(case=cases())
def test_one_attribute_alone_is_the_naive_count(case: Case) -> None:
    space, roots = case.space, [h.root for h in case.hierarchies]
    for distinct in (False, True):
        tally = case.entities if distinct else case.weights
        seen = []
        for i, classes, of_class in space.marginals(case.packed(space), tally, distinct=distinct):
            seen.append(i)
            for node, c in enumerate(space.relations[i].node_class):
                nodes = [*roots[:i], node, *roots[i + 1 :]]
                here = of_class[classes == c]
                if distinct:
                    assert len(here) == len(set(here.tolist())) == case.owners(tuple(nodes))
                else:
                    assert here.sum() == case.rho(tuple(nodes))
        assert seen == [i for i in space.order if i not in case.lacking]


@settings(max_examples=60)
@given(case=cases(max_attributes=2), data=st.data())
def test_forgotten_classes_change_no_other_cell_and_merge_codes(case: Case, data: st.DataObject) -> None:
    space = case.space
    kept = [np.array([data.draw(st.booleans()) for _ in range(r.n_classes)]) for r in space.relations]
    kept = [k | (not r.known) for k, r in zip(kept, space.relations, strict=True)]
    full, part = (counted(case, s, distinct=False) for s in (space, space.restricted(kept)))
    assert part == {c: n for c, n in full.items() if all(k[x] for k, x in zip(kept, c, strict=True))}
    for relation, k in zip(space.restricted(kept).relations, kept, strict=True):
        patterns = {tuple(relation.members[a:b]) for a, b in itertools.pairwise(relation.starts)}
        assert len(patterns) == relation.n_columns
        assert all(k[c] for pattern in patterns for c in pattern)


@settings(max_examples=60)
@given(case=cases(max_attributes=2), data=st.data())
def test_cells_of_schemes_are_those_some_scheme_has(case: Case, data: st.DataObject) -> None:
    """Seventy schemes need a second mask word; the cells of the schemes' nodes keep their counts, no other has one."""
    space = case.space
    levels = [st.integers(0, h.height + 1) for h in case.hierarchies]
    schemes = np.array([[data.draw(level) for level in levels] for _ in range(data.draw(st.sampled_from([1, 2])))])
    schemes = np.concatenate([np.repeat(schemes[:1], data.draw(st.sampled_from([1, 69])), axis=0), schemes])
    codes = [np.arange(h.n_leaves + data.draw(st.integers(0, 1)), dtype=np.int32) for h in case.hierarchies]
    wanted = set()
    for scheme in schemes:
        nodes = [
            {int(h.ancestor[c, min(x, h.height)]) for c in of}
            for h, x, of in zip(case.hierarchies, scheme, codes, strict=True)
        ]
        wanted |= {class_of(space, vector) for vector in itertools.product(*nodes)}
    full, part = (counted(case, s, distinct=False) for s in (space, space.within(schemes, codes)))
    assert part == {c: n for c, n in full.items() if c in wanted}


def test_a_cell_needs_one_scheme_that_has_all_its_classes() -> None:
    """Leaf x under u; schemes (0, 1) and (1, 0): cells (x, u) and (u, x), neither (x, x) nor (u, u)."""
    hierarchies = [Hierarchy.from_paths(name, [("x", "u"), ("y", "u"), ("z", "v")]) for name in "ab"]
    axes = [Axis(h.at_depth, h.ancestor) for h in hierarchies]
    schemes = np.array([[0, 1]] * 64 + [[1, 0]])
    space = CellSpace.of(axes, [np.arange(3, dtype=np.int32)] * 2).within(schemes)
    x = np.zeros(1, dtype=np.int32)
    words, tally = space.pack([x, x], 1), np.ones(1, dtype=np.int64)
    for slot in space.passes:
        words, tally = one_pass(space, words, tally, slot, distinct=False, most=10)
    u = hierarchies[0].find("u")
    assert sorted(map(tuple, space.nodes(words).tolist())) == [(0, u), (u, 0)]


@given(case=cases())
def test_representatives_are_the_most_general_nodes_of_their_class(case: Case) -> None:
    space = case.space
    for h, relation in zip(case.hierarchies, space.relations, strict=True):
        for c, node in enumerate(relation.representative):
            same = np.flatnonzero(relation.node_class == c)
            assert node == min(same, key=lambda x: (h.depth[x], x))
    vectors = np.array(case.every_node_vector())[:50]
    words = space.packing.pack([space.relations[i].node_class[vectors[:, i]] for i in space.order], len(vectors))
    nodes = space.nodes(words)
    for row, node in zip(vectors, nodes, strict=True):
        assert class_of(space, tuple(node)) == class_of(space, tuple(row))


# ------------------------------------------------------------------------------------------- look-ups


def problem_of(hierarchies: list[Hierarchy], share: float, search: str = "exact", measure: str = "depth") -> Task:
    utility = tuple(node_utility(measure, h.depth, h.n_under) for h in hierarchies)  # type: ignore[arg-type]
    weights = [0.3, 1.0, 0.5]
    return Task.of(
        LeastRisk(share * sum(float(u.max()) for u in utility)),
        method=search,
        ancestor=tuple(h.ancestor for h in hierarchies),
        code_depth=tuple(Axis(h.at_depth, h.ancestor).code_depth for h in hierarchies),
        utility=utility,
        sensitivity=Sensitivity(
            "multiplicative",
            tuple(
                harmonic_weights(h.parent, h.depth, h.n_leaves, np.full(h.n_leaves, w))
                for h, w in zip(hierarchies, weights, strict=False)
            ),
        ),
        model="I",
    )


@given(
    case=cases(),
    share=st.floats(0, 1.1),
    search=st.sampled_from(["exact", "aruba"]),
    measure=st.sampled_from(["depth", "leaves", "lm"]),
)
def test_given_counts_decide_like_the_other_plans(case: Case, share: float, search: str, measure: str) -> None:
    space = case.space
    problem = problem_of(case.hierarchies, share, search, measure)
    needed = needed_cells(problem.disclosure, problem.search.floor, space, case.codes)
    vectors, member = np.unique(case.rows, axis=0, return_inverse=True)
    multiplicity = np.zeros(len(vectors), dtype=np.int64)
    np.add.at(multiplicity, member.ravel(), case.weights)
    rho = counted(case, space, distinct=False)
    counts = np.array([rho.get(tuple(c), 0) for c in space.classes(needed).tolist()], dtype=np.int64)
    shuffle = np.random.default_rng(3).permutation(len(counts))
    mine = GivenCounts.of(space, [w[shuffle] for w in needed], counts[shuffle], int(multiplicity.sum()))
    assert mine.dictionary_rows == multiplicity.sum()
    got = decide(*problem, mine, case.codes)
    for plan in (DenseCounts.roll_up, SortedCounts.group):
        want = decide(*problem, plan(case.axes, vectors.astype(np.int32), multiplicity), case.codes)
        for name in (
            "levels",
            "nodes",
            "risk",
            "risk_before",
            "utility",
            "consistent",
            "consistent_before",
            "feasible",
        ):
            assert np.array_equal(getattr(got, name), getattr(want, name)), name


@given(
    case=cases(),
    share=st.floats(0, 1.1),
    measure=st.sampled_from(["depth", "leaves", "log-leaves"]),
    at_once=st.sampled_from([1, 20, 2**22]),
)
def test_needed_cells_are_the_feasible_nodes_the_record_and_the_top(
    case: Case, share: float, measure: str, at_once: int
) -> None:
    space, problem = case.space, problem_of(case.hierarchies, share, measure=measure)
    wanted = set()
    for record in case.codes:
        lattice = Lattice(tuple(int(d[c]) for d, c in zip(problem.disclosure.code_depth, record, strict=True)))
        feasible = feasible_nodes(lattice, problem.disclosure.chains(record), problem.search.floor)
        for node in {0, lattice.n_nodes - 1, *np.flatnonzero(feasible).tolist()}:
            levels = lattice.levels(np.array([node]))[0]
            nodes = [int(a[c, x]) for a, c, x in zip(problem.disclosure.ancestor, record, levels, strict=True)]
            wanted.add(class_of(space, tuple(nodes)))
    usual = cells_asked._CELLS_AT_ONCE
    cells_asked._CELLS_AT_ONCE = at_once
    try:
        found = needed_cells(problem.disclosure, problem.search.floor, space, case.codes)
    finally:
        cells_asked._CELLS_AT_ONCE = usual
    listed = list(zip(*[word.tolist() for word in found], strict=True))
    assert listed == sorted(set(listed))
    assert {tuple(c) for c in space.classes(found).tolist()} == wanted
    assert needed_cells(problem.disclosure, problem.search.floor, space, case.codes[:0])[0].shape == (0,)


def flat_pair(room: int) -> tuple[CellSpace, Task]:
    hierarchies = [Hierarchy.from_paths(name, [("x", "u"), ("y", "u"), ("z",)]) for name in "ab"]
    axes = [Axis(h.at_depth, h.ancestor) for h in hierarchies]
    return CellSpace.of(axes, [np.arange(6, dtype=np.int32)] * 2, room=room), problem_of(hierarchies, 0.9)


@pytest.mark.parametrize("room", [2**63, 2])
def test_a_cell_that_was_not_given_is_an_error_and_never_a_zero(room: int) -> None:
    space, problem = flat_pair(room)
    codes = np.array([[0, 0], [1, 2]], dtype=np.int32)
    cells = needed_cells(problem.disclosure, problem.search.floor, space, codes)
    assert len(cells) == (1 if room > 2 else 2)
    counts = GivenCounts.of(space, cells, np.arange(len(cells[0])), 10)
    asked = [codes[:, 0], codes[:, 1]]
    assert counts.consistent(asked, [0, 0], [2, 2]).shape == (2,)
    # Both values of these cells occur, in other cells.
    with pytest.raises(InternalError, match="had not been counted"):
        counts.consistent([np.array([0], dtype=np.int32), np.array([2], dtype=np.int32)], [0, 0], [2, 1])
    with pytest.raises(InternalError, match="had not been counted"):
        counts.consistent(asked, [1, 1], [2, 1])
    none = GivenCounts.of(space, [cell[:0] for cell in cells], np.zeros(0, dtype=np.int64), 10)
    with pytest.raises(InternalError, match="had not been counted"):
        none.consistent(asked, [0, 0], [2, 2])
    with pytest.raises(InternalError, match="given twice"):
        GivenCounts.of(space, [np.repeat(cell, 2) for cell in cells], np.repeat(np.arange(len(cells[0])), 2), 10)


def test_a_code_that_cannot_occur_is_an_error() -> None:
    hierarchy = Hierarchy.from_paths("a", [("x", "u"), ("y", "u"), ("z",)])
    axis = Axis(hierarchy.at_depth, hierarchy.ancestor)
    space = CellSpace.of([axis], [np.array([0, 2], dtype=np.int32)])
    assert space.classes(space.pack([np.array([0, 2], dtype=np.int32)], 2)).shape == (2, 1)
    for code in (1, -1, -2, 6):
        with pytest.raises(InternalError, match="dictionary code"):
            space.pack([np.array([0, code], dtype=np.int32)], 2)


def test_consistency_that_is_not_monotone_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes x, y, z, u above x and y, root. Similarity of labels may link x to z but not u, or not all to the root."""
    hierarchy = Hierarchy.from_paths("a", [("x", "u"), ("y", "u"), ("z",)])
    everything = np.arange(hierarchy.n_nodes + 1, dtype=np.int32)
    for meaning, wildcard in itertools.product(["subsumes", "compatible"], [False, True]):
        axis = Axis(hierarchy.at_depth, hierarchy.ancestor, meaning, wildcard=wildcard)  # type: ignore[arg-type]
        assert CellSpace.of([axis], [everything]).monotone
    tree = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 1, 1]], dtype=np.int64)
    sideways, short = tree.copy(), tree.copy()
    sideways[0, 2] = 1
    short[4, 2] = short[2, 2] = 0
    for matrix, monotone in ((tree, True), (sideways, False), (short, False)):
        given_rows = (np.arange(5, dtype=np.int32), sparse.csr_array(matrix))
        monkeypatch.setattr(kernel, "incidence", lambda axis, present, rows=given_rows: rows)
        space = CellSpace.of([Axis(hierarchy.at_depth, hierarchy.ancestor)], [everything[:3]])
        assert space.monotone == monotone
        # Any 0/1 relation is counted as it is given.
        rows = np.array([0, 1, 2, 2], dtype=np.int32)
        words, tally = one_pass(space, space.pack([rows], 4), np.ones(4, dtype=np.int64), 0, distinct=False, most=10)
        found = dict(zip(space.classes(words)[:, 0].tolist(), tally.tolist(), strict=True))
        want = (matrix[:, rows]).sum(axis=1)
        assert found == {node: int(n) for node, n in enumerate(want) if n}


# -------------------------------------------------------------------------------------------- packing


@given(
    radices=st.lists(st.sampled_from([1, 2, 3, 1000, 2**20, 2**31 - 1, 2**32]), min_size=1, max_size=9), data=st.data()
)
def test_packing_is_exact_over_any_number_of_words(radices: list[int], data: st.DataObject) -> None:
    packing = Packing(tuple(radices))
    edge = [[0] * len(radices), [r - 1 for r in radices]]
    vectors = edge + [[data.draw(st.integers(0, r - 1)) for r in radices] for _ in range(4)]
    digits = [np.array(column, dtype=np.int64) for column in zip(*vectors, strict=True)]
    words = packing.pack(digits, len(vectors))
    assert len(words) == packing.n_words
    for slot, digit in enumerate(digits):
        assert packing.digit(words, slot).tolist() == digit.tolist()
    # As few words as consecutive slots allow, none past 2**63 - 1.
    fewest, held = 1, 1
    for radix in radices:
        fewest, held = (fewest + 1, radix) if held * radix > 2**63 else (fewest, held * radix)
    assert packing.n_words == fewest
    # Order is lexicographic.
    keys = list(zip(*[w.tolist() for w in words], strict=True))
    assert sorted(range(len(keys)), key=lambda i: (keys[i], i)) == sorted(
        range(len(keys)), key=lambda i: (vectors[i], i)
    )


def test_a_word_is_filled_to_the_last_value() -> None:
    assert Packing((2**32, 2**31)).n_words == 1
    assert Packing((2**32, 2**31)).pack([np.array([2**32 - 1]), np.array([2**31 - 1])], 1)[0].tolist() == [2**63 - 1]
    assert Packing((2**32, 2**31 + 1)).n_words == 2


@given(rows=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1), st.integers(-5, 5)), max_size=12))
def test_gathering_is_a_dictionary(rows: list[tuple[int, int, int]]) -> None:
    columns = [np.array([r[j] for r in rows], dtype=np.int64) for j in range(3)]
    sums: dict[tuple[int, int], int] = {}
    for a, b, n in rows:
        sums[a, b] = sums.get((a, b), 0) + n
    (a, b), n = gathered(columns[:2], columns[2], distinct=False)
    assert list(zip(a.tolist(), b.tolist(), n.tolist(), strict=True)) == [(*k, v) for k, v in sorted(sums.items())]
    (a, b), e = gathered(columns[:2], columns[2], distinct=True)
    assert list(zip(a.tolist(), b.tolist(), e.tolist(), strict=True)) == sorted(set(rows))


def test_chunks_hold_bounded_cells() -> None:
    """Lattices of 3 and of 20 · 15 = 300 nodes: 2**22 // 300 = 13981, so 2**13 records."""
    flat = Hierarchy.from_paths("a", [("x",), ("y",)])
    assert chunk_rows(problem_of([flat], 0.5).disclosure) == 2**16
    deep = [Hierarchy.from_paths("a", [tuple(f"n{i}" for i in range(height))]) for height in (19, 14)]
    assert chunk_rows(problem_of(deep, 0.5).disclosure) == 2**13
