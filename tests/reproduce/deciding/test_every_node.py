from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from random import Random

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import several_hierarchies

from privrisk_spark.errors import InputError
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from reproduce.deciding import every_node, grouping
from reproduce.deciding.every_node import ClassSizes


@st.composite
def tables(
    draw: st.DrawFn, max_attributes: int = 4, max_rows: int = 12
) -> tuple[list[Hierarchy], np.ndarray, np.ndarray]:
    """Unbalanced trees, codes with ⊥, multiplicities with zeros."""
    hierarchies = draw(several_hierarchies(max_attributes))
    n = draw(st.integers(0, max_rows))
    rows = [[draw(st.integers(0, h.n_leaves)) for h in hierarchies] for _ in range(n)]
    counts = [draw(st.sampled_from([0, 1, 1, 2, 5, 70, 10**6])) for _ in range(n)]
    vectors = np.array(rows, dtype=np.int32).reshape(n, len(hierarchies))
    return hierarchies, vectors, np.array(counts, dtype=np.int64)


# ---- the literal twin: climb the parents, count equal rows


def climbed(parent: Sequence[int], n_leaves: int, code: int, level: int) -> int:
    """The node some steps up; ⊥ stays ⊥."""
    node = len(parent) - 1 if code == n_leaves else code
    for _ in range(level):
        node = parent[node]
    return node


def class_sizes(
    hierarchies: Sequence[Hierarchy], vectors: np.ndarray, counts: np.ndarray, levels: Sequence[int]
) -> list[int]:
    """Rows of each class of the table recoded at one level vector."""
    sizes: Counter[tuple[int, ...]] = Counter()
    for row, count in zip(vectors.tolist(), counts.tolist(), strict=True):
        recoded = [
            climbed(h.parent.tolist(), h.n_leaves, code, x) for h, code, x in zip(hierarchies, row, levels, strict=True)
        ]
        sizes[tuple(recoded)] += count
    return [size for size in sizes.values() if size]


def grouped(hierarchies: Sequence[Hierarchy], vectors: np.ndarray, counts: np.ndarray, **kept: int) -> ClassSizes:
    return ClassSizes.at_every_node([h.ancestor for h in hierarchies], vectors, counts, **kept)


def same(a: ClassSizes, b: ClassSizes) -> bool:
    """Whether two results are equal in every array."""
    names = ("classes", "smallest", "squares", "offsets", "sizes", "numbers")
    return a.records == b.records and all(np.array_equal(getattr(a, name), getattr(b, name)) for name in names)


def assert_is_literal(
    found: ClassSizes, hierarchies: Sequence[Hierarchy], vectors: np.ndarray, counts: np.ndarray
) -> None:
    rows = sum(counts.tolist())
    assert found.records == rows
    assert found.lattice.heights == tuple(h.height for h in hierarchies)
    asked = (1, 2, 3, 6, 71, 10**7)
    below = {k: (found.rows_below(k), found.classes_below(k), found.discernibility(k)) for k in asked}
    for node, levels in enumerate(naive.lattice(found.lattice.heights)):
        sizes = class_sizes(hierarchies, vectors, counts, levels)
        size, number = found.histogram(node)
        assert list(zip(size.tolist(), number.tolist(), strict=True)) == sorted(Counter(sizes).items())
        assert found.classes[node] == len(sizes)
        assert found.smallest[node] == min(sizes, default=0)
        assert found.uniques[node] == sizes.count(1)
        assert found.squares[node] == sum(f * f for f in sizes)
        for k in asked:
            small = [f for f in sizes if f < k]
            penalty = sum(f * f if f >= k else f * rows for f in sizes)
            assert [column[node] for column in below[k]] == [sum(small), len(small), penalty]
            assert found.anonymous(k)[node] == (not small)
            assert found.anonymous(k, suppressed=6)[node] == (sum(small) <= 6)
        if rows:
            assert found.mean_risk()[node] == pytest.approx(float(sum(f * Fraction(1, f) for f in sizes) / rows))


@given(tables())
def test_every_node_is_the_literal_grouping(table: tuple[list[Hierarchy], np.ndarray, np.ndarray]) -> None:
    assert_is_literal(grouped(*table), *table)


@given(tables(max_attributes=3, max_rows=30), st.sampled_from(["word", "batch", "nodes", "small"]))
def test_neither_word_width_nor_batching_changes_a_result(
    table: tuple[list[Hierarchy], np.ndarray, np.ndarray], which: str
) -> None:
    """Sort by position instead of by packed keys; one class, or one node, per batch; all sizes counted by sorting."""
    usual = grouped(*table)
    module, name, value = {
        "word": (grouping, "_WORD", 0),
        "batch": (every_node, "_BATCH_CLASSES", 1),
        "nodes": (every_node, "_BATCH_NODES", 2),
        "small": (every_node, "_SMALL", 1),
    }[which]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, name, value)
        assert same(grouped(*table), usual)


@given(tables(), st.randoms(use_true_random=False))
def test_the_order_of_rows_and_their_split_do_not_matter(
    table: tuple[list[Hierarchy], np.ndarray, np.ndarray], random: Random
) -> None:
    hierarchies, vectors, counts = table
    order = list(range(2 * len(vectors)))
    random.shuffle(order)
    twice = np.concatenate([vectors, vectors])[order]
    halves = np.concatenate([counts // 2, counts - counts // 2])[order]
    assert same(grouped(hierarchies, twice, halves), grouped(hierarchies, vectors, counts))


@given(tables())
def test_multiplying_the_table_multiplies_the_sizes(table: tuple[list[Hierarchy], np.ndarray, np.ndarray]) -> None:
    """Sizes of up to 62 bits leave no room beside a key in one word."""
    hierarchies, vectors, counts = table
    once, often = grouped(*table), grouped(hierarchies, vectors, counts * 2**37)
    assert np.array_equal(often.sizes, once.sizes * 2**37)
    assert np.array_equal(often.numbers, once.numbers)
    assert np.array_equal(often.offsets, once.offsets)
    assert often.squares.tolist() == [square * 2**74 for square in once.squares.tolist()]


@given(tables())
def test_generalizing_merges_classes(table: tuple[list[Hierarchy], np.ndarray, np.ndarray]) -> None:
    """Along every edge of the lattice: fewer classes, none smaller, fewer rows to suppress; rows are kept at each."""
    found = grouped(*table)
    shape = found.lattice.shape
    total = np.add.reduceat(np.append(found.sizes * found.numbers, 0), found.offsets[:-1])
    assert (total[found.classes > 0] == found.records).all()
    for axis in range(len(shape)):
        step = [np.diff(array.reshape(shape), axis=axis) for array in (found.classes, found.rows_below(5))]
        assert all((change <= 0).all() for change in step)
        assert (np.diff(found.smallest.reshape(shape), axis=axis) >= 0).all()
    if found.records:
        assert found.classes[-1] == 1
        assert found.smallest[-1] == found.records


@given(tables(), st.integers(2, 80))
def test_kept_sizes_are_the_small_ones(table: tuple[list[Hierarchy], np.ndarray, np.ndarray], below: int) -> None:
    whole, part = grouped(*table), grouped(*table, kept_below=below)
    assert part.kept_below == below
    for node in range(whole.lattice.n_nodes):
        sizes, numbers = whole.histogram(node)
        found = part.histogram(node)
        assert found[0].tolist() == sizes[sizes < below].tolist()
        assert found[1].tolist() == numbers[sizes < below].tolist()
    for name in ("classes", "smallest", "squares", "uniques"):
        assert np.array_equal(getattr(whole, name), getattr(part, name))
    for k in (1, 2, below):
        assert np.array_equal(whole.rows_below(k), part.rows_below(k))
        assert np.array_equal(whole.discernibility(k), part.discernibility(k))
    with pytest.raises(InputError, match=f"k must be at most {below}"):
        part.rows_below(below + 1)


def test_attributes_whose_product_passes_64_bits() -> None:
    """70 attributes of 100 values and height 0, two more with levels: 10^144 cells."""
    rng = np.random.default_rng(7)
    flat = np.append(np.arange(100), 100).astype(np.int32)[:, None]
    tall = np.column_stack([np.arange(101), np.append(100 + np.arange(100) // 10, 110), np.full(101, 110)])
    tall[100, 0] = 110
    ancestors = [*[flat] * 35, tall.astype(np.int32), *[flat] * 35, tall.astype(np.int32)]
    distinct = rng.integers(0, 101, (40, len(ancestors))).astype(np.int32)
    # rows that differ in one column only, at either end of the key and in the attributes with levels
    near = np.repeat(distinct, 4, axis=0)
    near[1::4, 0] = (near[1::4, 0] + 1) % 101
    near[2::4, 35] = (near[2::4, 35] + 1) % 101
    near[3::4, -1] = (near[3::4, -1] + 1) % 101
    counts = rng.integers(1, 4, len(near))
    found = ClassSizes.at_every_node(ancestors, near, counts)
    assert found.lattice.n_nodes == 9
    for node, levels in enumerate(naive.lattice(found.lattice.heights)):
        sizes: Counter[tuple[int, ...]] = Counter()
        for row, count in zip(near.tolist(), counts.tolist(), strict=True):
            sizes[tuple(int(a[c, x]) for a, c, x in zip(ancestors, row, levels, strict=True))] += count
        size, number = found.histogram(node)
        assert dict(zip(size.tolist(), number.tolist(), strict=True)) == Counter(sizes.values())


def test_many_wide_attributes_with_levels() -> None:
    """Nine attributes of 5,000 leaves, the last 70 of them directly under the root: 110 bits."""
    rng = np.random.default_rng(11)
    paths = [(str(i), f"u{i % 70}") for i in range(4_930)] + [(str(i),) for i in range(4_930, 5_000)]
    hierarchies = [Hierarchy.from_paths("a", paths)] * 9
    vectors = rng.integers(0, 5_001, (60, 9)).astype(np.int32)
    vectors[30:, 1:] = vectors[:30, 1:]
    counts = rng.integers(1, 4, 60)
    found = grouped(hierarchies, vectors, counts)
    for node in rng.choice(found.lattice.n_nodes, 30, replace=False):
        levels = found.lattice.levels(np.array([node]))[0].tolist()
        sizes = class_sizes(hierarchies, vectors, counts, levels)
        assert found.classes[node] == len(sizes)
        assert found.squares[node] == sum(f * f for f in sizes)


def test_published_worked_example() -> None:
    """Thirteen rows in classes of 4, 5 and 4 at k = 4: C_avg = 13 / (3 · 4) = 1.08, C_dsc = 16 + 25 + 16 = 57."""
    paths = [("a1", "a"), ("a2", "a"), ("b1", "b"), ("c1", "c"), ("c2", "c")]
    hierarchy = Hierarchy.from_paths("v", paths)
    codes = np.array([[hierarchy.code_of[label]] for label in ("a1", "a2", "b1", "c1", "c2")], dtype=np.int32)
    found = grouped([hierarchy], codes, np.array([1, 3, 5, 2, 2]))
    assert found.classes.tolist() == [5, 3, 1]
    assert found.smallest.tolist() == [1, 4, 13]
    assert found.anonymous(4).tolist() == [False, True, True]
    assert found.anonymous(3, suppressed=5).tolist() == [True, True, True]
    assert found.anonymous(3, suppressed=4).tolist() == [False, True, True]
    assert found.discernibility(4).tolist() == [8 * 13 + 25, 57, 169]
    assert found.mean_risk().tolist() == [5 / 13, 3 / 13, 1 / 13]


def test_sums_of_squares_past_int64_are_exact() -> None:
    hierarchy = Hierarchy.from_paths("a", [("x",), ("y",)])
    codes = np.array([[0], [1]], dtype=np.int32)
    big = 3 * 10**9
    assert grouped([hierarchy], codes, np.array([big, 1])).discernibility().dtype == np.int64
    found = grouped([hierarchy], codes, np.array([big, big + 1]))
    assert found.discernibility().tolist() == [big**2 + (big + 1) ** 2, (2 * big + 1) ** 2]
    assert found.discernibility(big + 1).tolist() == [big * (2 * big + 1) + (big + 1) ** 2, (2 * big + 1) ** 2]
    assert found.rows_below(big + 1).tolist() == [big, 0]
    most = grouped([hierarchy], codes, np.array([2**61, 2**61 - 1]))
    assert most.smallest.tolist() == [2**61 - 1, 2**62 - 1]
    assert most.histogram(0)[0].tolist() == [2**61 - 1, 2**61]
    with pytest.raises(InputError, match=re.escape("fewer than 2^62 rows")):
        grouped([hierarchy], codes, np.array([2**63 - 1, 2**63 - 1]))


def test_running_sums_over_nodes_may_wrap() -> None:
    """Rows of all nodes together pass 2**63; those of each do not."""
    hierarchies = [Hierarchy.from_paths("a", [("x",), ("y",)])] * 3
    codes = np.array([[0, 0, 0], [1, 1, 1]], dtype=np.int32)
    found = grouped(hierarchies, codes, np.array([2**61, 5]))
    assert found.rows_below(2**62).tolist() == [2**61 + 5] * 8
    assert found.rows_below(6).tolist() == [5] * 7 + [0]


def test_a_table_without_rows_has_no_classes() -> None:
    hierarchy = Hierarchy.from_paths("a", [("x", "u"), ("y",)])
    for vectors in (np.empty((0, 1), dtype=np.int32), np.array([[1]], dtype=np.int32)):
        found = grouped([hierarchy], vectors, np.zeros(len(vectors), dtype=np.int64))
        for array in (found.classes, found.smallest, found.squares, found.uniques, found.rows_below(3)):
            assert array.tolist() == [0, 0, 0]
        assert found.discernibility(2).tolist() == [0, 0, 0]
        assert found.histogram(1)[0].tolist() == []
        assert found.anonymous(9).all()
        assert found.mean_risk().tolist() == [0, 0, 0]


def test_one_attribute_and_none() -> None:
    hierarchy = Hierarchy.from_paths("a", [("x",), ("y",)])
    found = grouped([hierarchy], np.array([[1], [2], [1]], dtype=np.int32), np.array([4, 1, 2]))
    assert [array.tolist() for array in found.histogram(0)] == [[1, 6], [1, 1]]
    nothing = ClassSizes.at_every_node([], np.empty((3, 0), dtype=np.int32), np.array([1, 2, 3]))
    assert nothing.lattice.n_nodes == 1
    assert [array.tolist() for array in nothing.histogram(0)] == [[6], [1]]


def test_a_height_of_zero_has_one_level() -> None:
    """Codes that are one node at level 0 are one value: here all of them, then none."""
    codes = np.array([[0], [1], [2]], dtype=np.int32)
    ones = np.ones(3, dtype=np.int64)
    assert ClassSizes.at_every_node([np.zeros((3, 1), dtype=np.int32)], codes, ones).classes.tolist() == [1]
    assert ClassSizes.at_every_node([np.arange(3, dtype=np.int32)[:, None]], codes, ones).classes.tolist() == [3]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"vectors": np.zeros((2, 2), dtype=np.int32)}, "one column of codes per hierarchy"),
        ({"counts": np.ones(3, dtype=np.int64)}, "one count per vector"),
        ({"vectors": np.array([[0], [4]], dtype=np.int32)}, "attribute 0 must be between 0 and 3"),
        ({"vectors": np.array([[0], [-1]], dtype=np.int32)}, "attribute 0 must be between 0 and 3"),
        ({"counts": np.array([1, -1])}, "Counts must be at least 0"),
        ({"kept_below": 1}, "kept_below must be at least 2. Got 1"),
        ({"ancestors": [np.zeros((4, 0), dtype=np.int32)]}, "attribute 0 must be codes by levels"),
        (
            {"ancestors": [np.array([[0, 3, 4], [1, 3, 5], [2, 5, 5], [6, 6, 6]], dtype=np.int32)]},
            "share a node at level 1 must share one at level 2",
        ),
    ],
)
def test_what_cannot_be_grouped_is_refused(change: dict[str, object], message: str) -> None:
    given = {
        "ancestors": [np.array([[0, 4], [1, 4], [2, 4], [4, 4]], dtype=np.int32)],
        "vectors": np.array([[0], [1]], dtype=np.int32),
        "counts": np.array([1, 1]),
    }
    assert ClassSizes.at_every_node(**given).classes.tolist() == [2, 1]  # type: ignore[arg-type]
    with pytest.raises(InputError, match=message):
        ClassSizes.at_every_node(**{**given, **change})  # type: ignore[arg-type]


def test_a_threshold_below_one_is_refused() -> None:
    found = grouped([Hierarchy.from_paths("a", [("x",)])], np.zeros((1, 1), dtype=np.int32), np.ones(1, dtype=np.int64))
    for ask in (found.rows_below, found.classes_below, found.discernibility, found.anonymous):
        with pytest.raises(InputError, match=re.escape("k must be at least 1. Got 0")):
            ask(0)
    with pytest.raises(InputError, match=re.escape("at least 0. Got -1")):
        found.anonymous(2, suppressed=-1)
