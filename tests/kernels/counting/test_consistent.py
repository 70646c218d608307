from __future__ import annotations

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import several_hierarchies

from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.counting import cell_index
from privrisk_spark.kernels.counting.cell_index import CellIndex
from privrisk_spark.kernels.counting.consistent import Axis, DenseCounts, SortedCounts, consistent_at, incidence
from privrisk_spark.kernels.numeric import distinct
from privrisk_spark.kernels.numeric.distinct import distinct_keys, distinct_rows
from privrisk_spark.kernels.search import dictionary_view
from privrisk_spark.kernels.search.dictionary_view import DictionaryRows


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[Hierarchy], list[Axis], np.ndarray, np.ndarray, list[int]]:
    hierarchies = draw(several_hierarchies())
    meaning = draw(st.sampled_from(["subsumes", "compatible"]))
    lacking = [i for i in range(len(hierarchies)) if draw(st.integers(0, 4)) == 0]
    axes = [
        Axis(h.at_depth, h.ancestor, meaning, known=i not in lacking, wildcard=draw(st.booleans()))
        for i, h in enumerate(hierarchies)
    ]
    n = draw(st.integers(1, 12))
    rows = np.array([[draw(st.integers(0, h.n_nodes)) for h in hierarchies] for _ in range(n)], dtype=np.int32)
    codes = np.array([[draw(st.integers(0, h.n_leaves)) for h in hierarchies] for _ in range(4)], dtype=np.int32)
    return hierarchies, axes, rows, codes, lacking


def expected(
    hierarchies: list[Hierarchy], axes: list[Axis], rows: np.ndarray, lacking: list[int], nodes: list[int]
) -> int:
    parents = [h.parent.tolist() for h in hierarchies]
    known = [[None if v == h.n_nodes else int(v) for v, h in zip(row, hierarchies, strict=True)] for row in rows]
    return naive.count(
        parents, nodes, known, axes[0].consistency, wildcards=[a.wildcard for a in axes], lacking=lacking
    )


@given(cases())
def test_both_plans_are_the_naive_count(
    case: tuple[list[Hierarchy], list[Axis], np.ndarray, np.ndarray, list[int]],
) -> None:
    hierarchies, axes, rows, codes, lacking = case
    vectors, multiplicity = np.unique(rows, axis=0, return_counts=True)
    plans = [
        DenseCounts.roll_up(axes, vectors.astype(np.int32), multiplicity),
        SortedCounts.group(axes, vectors.astype(np.int32), multiplicity),
    ]
    for record in codes:
        depths = [int(axis.code_depth[code]) for axis, code in zip(axes, record, strict=True)]
        for levels in naive.lattice(depths):
            nodes = [int(h.ancestor[code, x]) for h, code, x in zip(hierarchies, record, levels, strict=True)]
            want = expected(hierarchies, axes, rows, lacking, nodes)
            for plan in plans:
                got = plan.consistent([np.array([code], dtype=np.int32) for code in record], levels, depths)
                assert got.tolist() == [want], (type(plan).__name__, levels)
    assert plans[0].dictionary_rows == plans[1].dictionary_rows == len(rows)


@given(cases(), st.sampled_from([0, 2**27]))
def test_least_levels_are_the_naive_count(
    case: tuple[list[Hierarchy], list[Axis], np.ndarray, np.ndarray, list[int]], kept: int
) -> None:
    """A row is consistent with a record disclosed at x if and only if its vector of least levels is at most x."""
    hierarchies, axes, rows, codes, lacking = case
    vectors, multiplicity = np.unique(rows, axis=0, return_counts=True)
    usual = dictionary_view._TABLE_BYTES
    dictionary_view._TABLE_BYTES = kept
    try:
        dictionary = DictionaryRows(tuple(axes), vectors.astype(np.int32), multiplicity)
        for record in codes:
            least = dictionary.levels(record.tolist())
            assert least.shape == vectors.shape
            depths = [int(axis.code_depth[code]) for axis, code in zip(axes, record, strict=True)]
            assert (least <= depths).all()
            for levels in naive.lattice(depths):
                nodes = [int(h.ancestor[code, x]) for h, code, x in zip(hierarchies, record, levels, strict=True)]
                found = multiplicity[(least <= levels).all(axis=1)].sum()
                assert found == expected(hierarchies, axes, rows, lacking, nodes)
    finally:
        dictionary_view._TABLE_BYTES = usual


@given(cases())
def test_keys_past_63_bits_count_the_same(
    case: tuple[list[Hierarchy], list[Axis], np.ndarray, np.ndarray, list[int]],
) -> None:
    """A tiny key limit forces the replacement of keys by ranks at every attribute."""
    _, axes, rows, codes, _ = case
    vectors, multiplicity = np.unique(rows, axis=0, return_counts=True)
    depth_of = [axis.code_depth for axis in axes]
    levels = [1] * len(axes)
    usual = consistent_at(SortedCounts.group(axes, vectors.astype(np.int32), multiplicity), depth_of, codes, levels)
    limit = cell_index._KEY_LIMIT
    cell_index._KEY_LIMIT = 40
    try:
        ranked = SortedCounts.group(axes, vectors.astype(np.int32), multiplicity)
        assert consistent_at(ranked, depth_of, codes, levels).tolist() == usual.tolist()
    finally:
        cell_index._KEY_LIMIT = limit


def test_sixty_wide_columns_do_not_overflow() -> None:
    rng = np.random.default_rng(5)
    columns = [rng.integers(0, 50, 200).astype(np.int32) for _ in range(60)]
    index, member = CellIndex.build(columns, [50] * 60, 200)
    position, found = index.find(columns, 200)
    assert found.all()
    assert (position == member).all()
    other = [column.copy() for column in columns]
    other[0] = (other[0] + 1) % 50
    assert not index.find(other, 200)[1].any()
    first, of = distinct_rows(columns)
    rows = np.column_stack(columns)
    assert (rows[first][of] == rows).all()
    assert len(first) == len(np.unique(rows, axis=0))


@given(cases())
def test_metamorphic_relations(case: tuple[list[Hierarchy], list[Axis], np.ndarray, np.ndarray, list[int]]) -> None:
    """The root counts all; a wider level never counts less; doubling the dictionary doubles; order does not matter."""
    _, axes, rows, codes, _ = case
    vectors, multiplicity = np.unique(rows, axis=0, return_counts=True)
    once = SortedCounts.group(axes, vectors.astype(np.int32), multiplicity)
    twice = DenseCounts.roll_up(axes, vectors[::-1].astype(np.int32), 2 * multiplicity[::-1])
    depth_of = [axis.code_depth for axis in axes]
    heights = [int(depth.max()) for depth in depth_of]
    everything = consistent_at(once, depth_of, codes, heights)
    assert everything.tolist() == [len(rows)] * len(codes)
    before = np.zeros(len(codes), dtype=np.int64)
    for level in range(max(heights) + 1):
        now = consistent_at(once, depth_of, codes, [level] * len(axes))
        assert (now >= before).all()
        assert (consistent_at(twice, depth_of, codes, [level] * len(axes)) == 2 * now).all()
        before = now


def test_an_empty_histogram_counts_nothing() -> None:
    hierarchy = Hierarchy.from_paths("a", [("x", "u"), ("y", "u"), ("z",)])
    axes = [Axis(hierarchy.at_depth, hierarchy.ancestor)]
    none = (np.empty((0, 1), dtype=np.int32), np.empty(0, dtype=np.int64))
    codes = np.array([[0], [2], [3]], dtype=np.int32)
    for plan in (DenseCounts.roll_up(axes, *none), SortedCounts.group(axes, *none)):
        assert consistent_at(plan, [axes[0].code_depth], codes, [2]).tolist() == [0, 0, 0]


def test_nodes_that_a_coarser_dictionary_cannot_tell_apart_share_a_cell() -> None:
    """A dictionary of years: a day, its month and its year are consistent with the same rows."""
    days = [(f"{y}-{m:02d}-{d:02d}", f"{y}-{m:02d}", f"{y}") for y in (1990, 1991) for m in (1, 2) for d in (1, 2, 3)]
    hierarchy = Hierarchy.from_paths("birthdate", days)
    years = np.array([hierarchy.find("1990"), hierarchy.find("1991")], dtype=np.int32)
    axis = Axis(hierarchy.at_depth, hierarchy.ancestor, "compatible")
    classes, matrix = incidence(axis, np.sort(years))
    assert matrix.shape == (3, 2)
    assert classes[hierarchy.find("1990-01-02")] == classes[hierarchy.find("1990-02")] == classes[years[0]]


@pytest.mark.parametrize("plan", ["dense", "sorted"])
def test_a_null_is_counted_by_its_policy(plan: str) -> None:
    """Rows a, b, null: the value a is known to 1 row, or to 2 if a missing value may be anything."""
    hierarchy = Hierarchy.from_paths("a", [("a",), ("b",)])
    rows = np.array([[0], [1], [hierarchy.root]], dtype=np.int32)
    ones = np.ones(3, dtype=np.int64)
    make = DenseCounts.roll_up if plan == "dense" else SortedCounts.group
    counts = {
        wildcard: make([Axis(hierarchy.at_depth, hierarchy.ancestor, wildcard=wildcard)], rows, ones)
        for wildcard in (False, True)
    }
    code = [np.array([0], dtype=np.int32)]
    assert counts[False].consistent(code, [0], [1]).tolist() == [1]
    assert counts[True].consistent(code, [0], [1]).tolist() == [2]
    null = [np.array([2], dtype=np.int32)]
    assert counts[False].consistent(null, [0], [0]).tolist() == [3]


@given(cases())
def test_codes_alike_are_counted_alike_at_every_level(
    case: tuple[list[Hierarchy], list[Axis], np.ndarray, np.ndarray, list[int]],
) -> None:
    """Exchanging the codes of one depth and number leaves every count as it is, on both plans."""
    _, axes, rows, codes, _ = case
    vectors, multiplicity = np.unique(rows, axis=0, return_counts=True)
    record = codes[0]
    depths = [int(axis.code_depth[code]) for axis, code in zip(axes, record, strict=True)]
    for plan in (
        DenseCounts.roll_up(axes, vectors.astype(np.int32), multiplicity),
        SortedCounts.group(axes, vectors.astype(np.int32), multiplicity),
    ):
        others = [
            np.flatnonzero((alike == alike[code]) & (axis.code_depth == depth))
            for alike, axis, code, depth in zip(plan.alike, axes, record, depths, strict=True)
        ]
        grid = [part.ravel().astype(np.int32) for part in np.meshgrid(*others)]
        for levels in naive.lattice(depths):
            assert len(set(plan.consistent(grid, levels, depths).tolist())) == 1


@pytest.mark.parametrize("plan", ["dense", "sorted"])
def test_days_are_alike_to_a_dictionary_of_years(plan: str) -> None:
    days = [(f"{y}-{m:02d}-{d:02d}", f"{y}-{m:02d}", f"{y}") for y in (1990, 1991) for m in (1, 2) for d in (1, 2, 3)]
    hierarchy = Hierarchy.from_paths("birthdate", days)
    years = np.array([[hierarchy.find("1990")], [hierarchy.find("1991")]], dtype=np.int32)
    axes = [
        Axis(hierarchy.at_depth, hierarchy.ancestor, "compatible"),
        Axis(hierarchy.at_depth, hierarchy.ancestor, known=False),
    ]
    make = DenseCounts.roll_up if plan == "dense" else SortedCounts.group
    known, lacking = make(axes, years[:, [0, 0]], np.array([3, 4])).alike
    # Two years and ⊥.
    assert [len(set(part)) for part in (known[:6], known[6:12], known)] == [1, 1, 3]
    assert len(set(lacking)) == 1


COLUMNS = st.lists(
    st.sampled_from(
        [
            st.integers(-2, 2),
            st.sampled_from([-(2**63), -1, 0, 2**40, 2**63 - 1]),
            st.sampled_from([0.0, 0.5, -1.5, np.inf]),
            st.booleans(),
        ]
    ),
    min_size=1,
    max_size=5,
)


@given(COLUMNS, st.integers(0, 12), st.sampled_from([0, 32]), st.sampled_from([40, 2**63 - 1]), st.data())
def test_distinct_rows_are_the_sorted_set(
    kinds: list[st.SearchStrategy[object]], n: int, spread: int, limit: int, data: st.DataObject
) -> None:
    """By table or by sorting, packed or ranked: lexicographic order, the first row of each, every row's number."""
    table = [[data.draw(kind) for kind in kinds] for _ in range(n)]
    columns = [np.array([row[i] for row in table]) for i in range(len(kinds))]
    usual = distinct._SPREAD, distinct._KEY_LIMIT
    distinct._SPREAD, distinct._KEY_LIMIT = spread, limit
    try:
        first, member = distinct_rows(columns)
    finally:
        distinct._SPREAD, distinct._KEY_LIMIT = usual
    rows = [tuple(row) for row in table]
    want = sorted(set(rows))
    assert [rows[f] for f in first] == want
    assert [rows.index(row) for row in want] == first.tolist()
    assert [want.index(row) for row in rows] == member.tolist()


def test_no_records_are_counted_as_none() -> None:
    hierarchy = Hierarchy.from_paths("a", [("x", "u"), ("y",)])
    axes = [Axis(hierarchy.at_depth, hierarchy.ancestor)]
    counts = DenseCounts.roll_up(axes, np.zeros((1, 1), dtype=np.int32), np.ones(1, dtype=np.int64))
    assert consistent_at(counts, [axes[0].code_depth], np.zeros((0, 1), dtype=np.int32), [0]).tolist() == []


@pytest.mark.parametrize("bound", [5_000, 2**50])
def test_distinct_keys_come_with_their_first_rows(bound):
    key = np.random.default_rng(3).integers(0, 40, 500) * (bound // 40)
    first, member = distinct_keys(key, bound)
    rows = key.tolist()
    assert first.tolist() == [rows.index(value) for value in sorted(set(rows))]
    assert key[first][member].tolist() == rows
    assert [len(part) for part in distinct_keys(key[:0], bound)] == [0, 0]
