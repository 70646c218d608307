from __future__ import annotations

import itertools
import json
import math
import random
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import hierarchies, several_hierarchies

from privrisk_spark.errors import InputError, InternalError
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.json_values import as_json, from_json
from privrisk_spark.kernels.measures.classification import ClassificationTally
from privrisk_spark.kernels.measures.divergence import DivergenceTally, LeafCounts, entropy_loss, spread_over
from privrisk_spark.kernels.measures.loss import (
    CellTally,
    SizeTally,
    cell_volumes,
    fully_suppressed,
    leaf_ncp,
    node_levels,
    record_penalty,
    share_loss,
    step_loss,
)
from privrisk_spark.kernels.numeric.exact_sums import ExactMean
from reproduce.deciding.every_node import ClassSizes

Rows = list[tuple[list[int], list[int], int]]
"""Original leaves, released nodes, rows."""


@st.composite
def releases(draw: st.DrawFn, local: bool = True) -> tuple[list[Hierarchy], Rows]:
    """A table and a release of it, by a level per cell, or one per attribute."""
    of = draw(several_hierarchies())
    n = draw(st.integers(0, 8))
    same = [draw(st.integers(0, h.height)) for h in of]
    rows: Rows = []
    for _ in range(n):
        leaf = [draw(st.integers(0, h.n_leaves - 1)) for h in of]
        level = [draw(st.integers(0, h.height)) for h in of] if local else same
        node = [int(h.ancestor[a, x]) for h, a, x in zip(of, leaf, level, strict=True)]
        rows.append((leaf, node, draw(st.integers(1, 5))))
    return of, rows


def arrays(of: list[Hierarchy], rows: Rows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    shape = (len(rows), len(of))
    leaf = np.array([row[0] for row in rows], dtype=np.int32).reshape(shape)
    node = np.array([row[1] for row in rows], dtype=np.int32).reshape(shape)
    return leaf, node, np.array([row[2] for row in rows], dtype=np.int64)


def leaves_below(hierarchy: Hierarchy, node: int) -> set[int]:
    found = set()
    for leaf in range(hierarchy.n_leaves):
        at = leaf
        while at not in (node, hierarchy.root):
            at = int(hierarchy.parent[at])
        if at == node:
            found.add(leaf)
    return found


def grouped(keys: list[Any], rows: list[int]) -> Counter[Any]:
    found: Counter[Any] = Counter()
    for key, n in zip(keys, rows, strict=True):
        found[key] += n
    return found


# --------------------------------------------------------------------- the 4-anonymous release of 13 rows (R. 2023)
# Nine rows 130** and four 1485*; ages <30 (four rows), >=40 (four), [30,40) (five); nationality Any. Hierarchies of
# heights 5, 3 and 1. Sizes: 100,000 zip codes, 100 ages, 10 nationalities.

ZIP, AGE, ANY = {"130**": 0, "1485*": 1}, {"<30": 0, "[30,40)": 1, ">=40": 2}, 0
CLASSES = [("130**", "<30", 4), ("1485*", ">=40", 4), ("130**", "[30,40)", 5)]
NODES = np.array([[ZIP[zip_code], AGE[age], ANY] for zip_code, age, _ in CLASSES], dtype=np.int32)
ROWS = np.array([n for *_, n in CLASSES], dtype=np.int64)


def test_class_sizes_of_the_published_example():
    tally = SizeTally.of(ROWS, k=4)
    assert round(tally.average_size, 2) == 1.08  # 13 / (3 · 4)
    assert tally.discernibility == 57  # 4² + 4² + 5²
    # Asked for k = 5, the classes of four rows are charged the table: 25 + 8 · 13.
    assert SizeTally.of(ROWS, k=5).discernibility == 25 + 8 * 13
    assert SizeTally.of(ROWS, k=5).average_size == 13 / 15


def test_precision_of_the_published_example():
    """1 - (9 · 2/5 + 4 · 1/5 + 13/3 + 13/1) / 39 = 1 - 21.7333/39 = 0.4427, printed 0.44."""
    levels = [np.array([2, 1, 0, 5]), np.array([1, 1, 1, 3]), np.array([1, 0])]
    tally = CellTally.of(NODES, ROWS, [step_loss(level.astype(np.int32)) for level in levels])
    assert tally.retained == pytest.approx(1 - (9 * 2 / 5 + 4 / 5 + 13 / 3 + 13) / 39, rel=1e-15)
    assert round(tally.retained, 2) == 0.44
    assert tally.retained_by_attribute == pytest.approx([1 - (9 * 0.4 + 4 * 0.2) / 13, 2 / 3, 0])


def test_general_information_loss_of_the_published_example():
    """(9 · 100/100000 + 4 · 10/100000 + (4 · 30 + 4 · 60 + 5 · 10)/100 + 13 · 10/10) / 39 = 17.1094/39 = 0.43870.

    The denominator of the last term is printed as 100, which gives 0.139: the printed 0.438 (cut, not rounded) needs
    the domain of nationalities, 10.
    """
    losses = [
        share_loss(np.array([100, 10]), 100_000),
        share_loss(np.array([30.0, 10.0, 60.0]), 100),
        share_loss(np.array([10]), 10),
    ]
    tally = CellTally.of(NODES, ROWS, losses)
    assert math.floor(tally.mean * 1000) / 1000 == 0.438
    assert tally.mean == pytest.approx(17.1094 / 39, rel=1e-14)


def test_penalties_of_the_published_example():
    """(14850, 47) has 1 - 1/1, (1485*, [40-50)) has 1 - 1/(10 · 10)."""
    leaves = [np.array([1, 10]), np.array([1, 10])]
    penalty = record_penalty(np.array([[0, 0], [1, 1]], dtype=np.int32), leaves)
    assert penalty.tolist() == [0.0, 0.99]
    assert ExactMean.of(penalty, np.array([1, 3])).mean == float(Fraction(0.99) * 3 / 4)


def test_spread_of_the_published_example():
    """F(14850, 47, American) = 1/13 · 4/(10 · 60 · 10) = 5.1e-5."""
    leaves = [np.array([100, 10]), np.array([30, 10, 60]), np.array([10])]
    density = ROWS / cell_volumes(NODES, leaves) / 13
    assert density[1] == pytest.approx(4 / 6000 / 13, rel=1e-15)
    assert round(density[1], 5) == 5e-5


def test_classification_of_the_published_example():
    """Heart, Heart, Viral, Viral | Cancer, Heart, Viral, Viral | five times Cancer: 2 + 2 + 0 rows, each charged 4."""
    tally = ClassificationTally.of(
        np.array([0, 2, 5, 6]), np.array([1, 2, 0, 1, 2, 0], dtype=np.int32), np.array([2, 2, 1, 1, 2, 5])
    )
    assert (tally.records, tally.minority, tally.charged) == (13, 4, 16)
    assert tally.metric == 4 / 13


# ------------------------------------------------------------------------------------------------ against loops


@given(st.lists(st.tuples(st.integers(0, 9), st.booleans()), max_size=8), st.integers(1, 6), st.booleans())
def test_class_tallies_are_those_of_a_loop(classes, k, marked):
    rows = np.array([n for n, _ in classes], dtype=np.int64)
    marks = np.array([mark for _, mark in classes], dtype=bool)
    tally = SizeTally.of(rows, k=k, suppressed=marks if marked else None)
    n = sum(rows.tolist())
    there = [f for f in rows.tolist() if f]
    assert tally.average_size == (float(Fraction(n, len(there) * k)) if there else 0)
    assert tally.discernibility == sum(f * (n if f < k or (marked and mark) else f) for f, mark in classes)


@given(releases(local=False), st.integers(1, 4))
def test_class_tallies_agree_with_those_of_the_lattice(release, k):
    of, rows = release
    if not rows:
        return
    leaf, _, n = arrays(of, rows)
    sizes = ClassSizes.at_every_node([h.ancestor for h in of], leaf, n)
    for number, levels in enumerate(itertools.product(*[range(h.height + 1) for h in of])):
        lifted = [tuple(int(h.ancestor[a, x]) for h, a, x in zip(of, row[0], levels, strict=True)) for row in rows]
        classes = np.array(list(grouped(lifted, n.tolist()).values()), dtype=np.int64)
        tally = SizeTally.of(classes, k=k)
        assert tally.discernibility == sizes.discernibility(k)[number]


@given(hierarchies())
def test_losses_of_nodes_are_those_of_a_loop(hierarchy):
    def down(node: int) -> int:
        children = [c for c in range(hierarchy.n_nodes - 1) if hierarchy.parent[c] == node]
        return 1 + max(down(child) for child in children) if children else 0

    m = hierarchy.n_leaves
    level = node_levels(hierarchy.parent)
    assert level.tolist() == [down(node) for node in range(hierarchy.n_nodes)]
    assert level[hierarchy.root] == hierarchy.height
    assert step_loss(level).tolist() == [down(node) / hierarchy.height for node in range(hierarchy.n_nodes)]
    n = [len(leaves_below(hierarchy, node)) for node in range(hierarchy.n_nodes)]
    assert share_loss(hierarchy.n_under).tolist() == [a / m for a in n]
    assert leaf_ncp(hierarchy.n_under).tolist() == [0 if a == 1 else a / m for a in n]
    assert leaf_ncp(hierarchy.n_under, "iyengar").tolist() == [0 if m == 1 else (a - 1) / (m - 1) for a in n]
    for loss in (step_loss(level), share_loss(hierarchy.n_under), leaf_ncp(hierarchy.n_under)):
        assert (loss[hierarchy.parent] >= loss).all(), "no step lowers a loss"


def test_share_loss_beyond_the_domain_is_refused():
    with pytest.raises(InputError, match="between 0"):
        share_loss(np.array([1, 11]), 10)


@given(releases(), st.lists(st.sampled_from([0.0, 0.5, 2.0, 1 / 3]), min_size=3, max_size=3))
def test_cell_tallies_are_those_of_a_loop(release, weights):
    of, rows = release
    _, node, n = arrays(of, rows)
    losses = [leaf_ncp(h.n_under) for h in of]
    tally = CellTally.of(node, n, losses)
    total = sum(n.tolist())
    exact = [
        sum((Fraction(float(losses[i][row[1][i]])) * row[2] for row in rows), Fraction()) / max(total, 1)
        for i in range(len(of))
    ]
    assert tally.means == tuple(float(a) for a in exact)
    assert tally.mean == float(sum(exact) / len(of))
    assert tally.retained == float(1 - sum(exact) / len(of))
    # Millionths are another unit of the same weights.
    assert CellTally.of(node, n * 10**6, losses).means == tally.means
    wanted = [Fraction(w) for w in weights[: len(of)]]
    if sum(wanted):
        one = sum(w * a for w, a in zip(wanted, exact, strict=True)) / sum(wanted)
        assert tally.weighted_mean(weights[: len(of)]) == float(one)


@given(releases())
def test_penalties_are_those_of_a_loop(release):
    of, rows = release
    _, node, _ = arrays(of, rows)
    wanted = [1 - 1 / math.prod(len(leaves_below(h, v)) for h, v in zip(of, row[1], strict=True)) for row in rows]
    assert record_penalty(node, [h.n_under for h in of]).tolist() == wanted


def test_a_volume_may_pass_every_float():
    nodes = np.zeros((1, 60), dtype=np.int32)
    assert record_penalty(nodes, [np.array([2_000_000])] * 60).tolist() == [1.0]


labels_of = st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=6), max_size=5)


def runs(classes: list[list[int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    tallies = [sorted(Counter(labels).items()) for labels in classes]
    start = np.cumsum([0, *[len(tally) for tally in tallies]])
    flat = [pair for tally in tallies for pair in tally]
    value, count = (np.array([pair[i] for pair in flat]) for i in (0, 1))
    return start.astype(np.int64), value.astype(np.int32), count.astype(np.int64)


@given(labels_of, st.integers(0, 2**32), st.booleans())
def test_classification_tallies_are_those_of_a_loop(classes, seed, marked):
    pick = random.Random(seed)
    marks = [pick.random() < 0.3 for _ in classes]
    tally = ClassificationTally.of(*runs(classes), suppressed=np.array(marks, dtype=bool) if marked else None)
    minority = charged = 0
    for labels, mark in zip(classes, marks, strict=True):
        majority = Counter(labels).most_common(1)[0][0]
        for label in labels:
            minority += label != majority or (marked and mark)
            charged += len(labels) if label != majority else 0
    n = sum(map(len, classes))
    assert (tally.records, tally.minority, tally.charged) == (n, minority, charged)
    assert tally.metric == (minority / n if n else 0)


# -------------------------------------------------------------------------------------- divergence and entropy


def naive_spread(of: list[Hierarchy], vectors: list[tuple[int, ...]], cells: Counter[Any]) -> list[Fraction]:
    found = []
    for vector in vectors:
        total = Fraction()
        for cell, n in cells.items():
            below = [leaves_below(h, v) for h, v in zip(of, cell, strict=True)]
            if all(a in leaves for a, leaves in zip(vector, below, strict=True)):
                total += Fraction(n, math.prod(map(len, below)))
        found.append(total)
    return found


def distinct(of: list[Hierarchy], counts: Counter[Any]) -> tuple[np.ndarray, np.ndarray]:
    keys = list(counts)
    matrix = np.array(keys, dtype=np.int32).reshape(len(keys), len(of))
    return matrix, np.array([counts[key] for key in keys], dtype=np.int64)


def divergence(of: list[Hierarchy], rows: Rows) -> tuple[DivergenceTally, float]:
    """Tally, and the divergence by fractions and one logarithm a term."""
    vectors = grouped([tuple(row[0]) for row in rows], [row[2] for row in rows])
    cells = grouped([tuple(row[1]) for row in rows], [row[2] for row in rows])
    x, p = distinct(of, vectors)
    c, n = distinct(of, cells)
    spread = spread_over(x, c, n, at_depth=[h.at_depth for h in of], leaves=[h.n_under for h in of])
    naive = naive_spread(of, list(vectors), cells)
    assert spread == pytest.approx([float(s) for s in naive], rel=1e-14)
    total = sum(p.tolist())
    wanted = math.fsum(m / total * math.log(Fraction(m) / s) for m, s in zip(vectors.values(), naive, strict=True))
    return DivergenceTally.of(p, spread), wanted


@given(releases())
def test_divergence_is_that_of_a_loop(release):
    of, rows = release
    tally, wanted = divergence(of, rows)
    released = sum(row[2] for row in rows)
    assert tally.nats(released) == pytest.approx(wanted, abs=1e-12)
    assert tally.bits(released) == pytest.approx(wanted / math.log(2), abs=1e-12)
    assert tally.outside == 0


@given(releases())
def test_the_spread_adds_up_to_the_released_rows(release):
    of, rows = release
    cells, n = distinct(of, grouped([tuple(row[1]) for row in rows], [row[2] for row in rows]))
    every = np.array(list(itertools.product(*[range(h.n_leaves) for h in of])), dtype=np.int32)
    given_as = {"at_depth": [h.at_depth for h in of], "leaves": [h.n_under for h in of]}
    spread = spread_over(every, cells, n, **given_as)
    assert spread.sum() == pytest.approx(n.sum(), rel=1e-12)
    order = np.random.default_rng(1).permutation(len(n))
    assert spread_over(every, cells[order], n[order], **given_as).tolist() == spread.tolist()


@given(releases())
def test_an_identical_release_loses_nothing(release):
    of, rows = release
    same = [(leaf, leaf, n) for leaf, _, n in rows]
    assert divergence(of, same)[0].nats(sum(row[2] for row in rows)) == 0
    _, node, n = arrays(of, same)
    assert CellTally.of(node, n, [step_loss(node_levels(h.parent)) for h in of]).retained == 1
    assert CellTally.of(node, n, [leaf_ncp(h.n_under) for h in of]).mean == 0
    assert ExactMean.of(record_penalty(node, [h.n_under for h in of]), n).mean == 0
    assert all(entropy_loss(node[:, i], node[:, i], h.n_under).sum() == 0 for i, h in enumerate(of))


@given(releases(), st.integers(0, 2**32))
def test_one_more_step_loses_more(release, seed):
    of, rows = release
    i = random.Random(seed).randrange(len(of))
    further = [(leaf, [int(of[i].parent[v]) if j == i else v for j, v in enumerate(node)], n) for leaf, node, n in rows]
    leaf, node, n = arrays(of, rows)
    _, above, _ = arrays(of, further)
    for losses in ([leaf_ncp(h.n_under) for h in of], [share_loss(h.n_under) for h in of]):
        assert CellTally.of(above, n, losses).mean >= CellTally.of(node, n, losses).mean
    steps = [step_loss(node_levels(h.parent)) for h in of]
    before, after = CellTally.of(node, n, steps), CellTally.of(above, n, steps)
    moved = bool((above[:, i] != node[:, i]).any())
    assert (after.retained < before.retained) if moved else (after == before)
    leaves = [h.n_under for h in of]
    assert (record_penalty(above, leaves) >= record_penalty(node, leaves)).all()
    h, counts = of[i], LeafCounts.of(leaf, n, [h.n_leaves for h in of])
    under = counts.under(i, h.first_leaf, h.last_leaf)
    assert (entropy_loss(leaf[:, i], above[:, i], under) >= entropy_loss(leaf[:, i], node[:, i], under)).all()


@given(releases())
def test_entropy_is_that_of_a_loop(release):
    of, rows = release
    leaf, node, n = arrays(of, rows)
    counts = LeafCounts.of(leaf, n, [h.n_leaves for h in of])
    for i, h in enumerate(of):
        under = counts.under(i, h.first_leaf, h.last_leaf)
        wanted = []
        for row in rows:
            with_leaf = sum(other[2] for other in rows if other[0][i] == row[0][i])
            with_node = sum(other[2] for other in rows if other[0][i] in leaves_below(h, row[1][i]))
            wanted.append(0.0 if row[0][i] == row[1][i] else -math.log2(with_leaf / with_node))
        assert entropy_loss(leaf[:, i], node[:, i], under) == pytest.approx(wanted, abs=1e-14)


def test_entropy_by_hand():
    """A table with values a, a, a, b: under the root a has 3/4 and b 1/4."""
    h = Hierarchy.from_paths("x", [("a", "ab"), ("b", "ab"), ("c",)])
    counts = LeafCounts.of(np.array([[0], [0], [0], [1], [3]], dtype=np.int32), np.ones(5, dtype=np.int64), [3])
    assert counts.rows == (((0, 3), (1, 1)),)
    under = counts.under(0, h.first_leaf, h.last_leaf)
    root = np.full(3, h.root, dtype=np.int32)
    found = entropy_loss(np.array([0, 1, h.root], dtype=np.int32), root, under)
    assert found.tolist() == [math.log2(4 / 3), 2.0, 0.0]
    with pytest.raises(InputError, match="holds the original"):
        entropy_loss(np.array([2], dtype=np.int32), root[:1], under)


def test_an_original_outside_every_cell_is_infinitely_far():
    tally = DivergenceTally.of(np.array([3, 1]), np.array([2.0, 0.0]))
    assert (tally.outside, tally.nats(4)) == (1, math.inf)
    assert DivergenceTally().nats(0) == 0
    # Uniform over four vectors where all rows are one of them: ln 4.
    assert DivergenceTally.of(np.array([8]), np.array([2.0])).nats(8) == math.log(4)
    assert DivergenceTally.of(np.array([8]), np.array([2.0])).bits(8) == 2
    # Half as many rows released, in the same proportions.
    assert DivergenceTally.of(np.array([8, 2]), np.array([4.0, 1.0])).nats(5) == pytest.approx(0, abs=1e-15)


def test_keys_of_many_attributes_do_not_run_over():
    """Forty attributes of three leaves: 5^40 keys do not fit 63 bits."""
    h = Hierarchy.from_paths("x", [("a", "ab"), ("b", "ab"), ("c",)])
    pick = np.random.default_rng(5)
    vectors = pick.integers(0, 3, (50, 40)).astype(np.int32)
    cells = vectors.copy()
    cells[:, ::2] = h.ancestor[cells[:, ::2], 1]
    spread = spread_over(
        vectors, cells, np.ones(50, dtype=np.int64), at_depth=[h.at_depth] * 40, leaves=[h.n_under] * 40
    )
    below = cell_volumes(cells, [h.n_under] * 40)
    assert spread.tolist() == (1 / below).tolist()


# ----------------------------------------------------------------------------------------------------- parts


def through_json(tally: Any) -> Any:
    return from_json(type(tally), json.loads(json.dumps(as_json(tally))))


@given(releases(), st.integers(1, 4), st.integers(0, 2**32))
def test_parts_are_put_together_exactly(release, parts, seed):
    of, rows = release
    pick = random.Random(seed)
    order = list(rows)
    pick.shuffle(order)
    owner = [pick.randrange(parts) for _ in order]
    classes = grouped([tuple(row[1]) for row in rows], [row[2] for row in rows])
    cells, sizes = distinct(of, classes)
    home = np.array([pick.randrange(parts) for _ in classes], dtype=np.int64)
    roots = [h.root for h in of]

    def all_of(some: Rows, part: int | None) -> list[Any]:
        leaf, node, n = arrays(of, some)
        here = home == part if part is not None else np.ones(len(home), dtype=bool)
        penalty = record_penalty(node, [h.n_under for h in of])
        start = np.arange(int(here.sum()) + 1)
        lost = fully_suppressed(cells[here], roots)
        spread = sizes[here] / cell_volumes(cells[here], [h.n_under for h in of])
        return [
            CellTally.of(node, n, [leaf_ncp(h.n_under) for h in of]),
            ExactMean.of(penalty, n * 999_999),
            LeafCounts.of(leaf, n, [h.n_leaves for h in of]),
            SizeTally.of(sizes[here], k=3, suppressed=lost),
            ClassificationTally.of(start, start[1:].astype(np.int32), sizes[here], suppressed=lost),
            DivergenceTally.of(sizes[here], spread),
        ]

    total = None
    for part in range(parts):
        own = [row for row, at in zip(order, owner, strict=True) if at == part]
        found = [through_json(tally) for tally in all_of(own, part)]
        total = found if total is None else [a.plus(b) for a, b in zip(total, found, strict=True)]
    assert total == all_of(rows, None)


def test_what_does_not_fit_is_refused():
    nodes = np.zeros((2, 1), dtype=np.int32)
    two = np.ones(2, dtype=np.int64)
    with pytest.raises(InputError, match="k must be"):
        SizeTally.of(two, k=0)
    with pytest.raises(InternalError, match="one k"):
        SizeTally.of(two, k=2).plus(SizeTally(3))
    with pytest.raises(InputError, match="negative"):
        SizeTally.of(-two, k=2)
    with pytest.raises(InputError, match="one column"):
        CellTally.of(nodes, two, [])
    for wrong in (nodes + 1, nodes - 1):
        with pytest.raises(InputError, match="attribute 0"):
            CellTally.of(wrong, two, [np.zeros(1)])
    with pytest.raises(InputError, match="one weight"):
        CellTally.of(nodes, two, [np.zeros(1)]).weighted_mean([0.0])
    start = np.array([0, 2])
    with pytest.raises(InputError, match="ascend"):
        ClassificationTally.of(start, np.array([1, 1], dtype=np.int32), two)
    with pytest.raises(InputError, match="at least one each"):
        ClassificationTally.of(np.array([0, 0, 2]), np.array([1, 2], dtype=np.int32), two)
    with pytest.raises(InputError, match="at least one row"):
        ClassificationTally.of(start, np.array([1, 2], dtype=np.int32), two - 1)
    h = Hierarchy.from_paths("x", [("a",), ("b",)])
    with pytest.raises(InputError, match="come again"):
        spread_over(nodes, nodes, two, at_depth=[h.at_depth], leaves=[h.n_under])


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(1, 9)), min_size=1, max_size=6),
)
def test_the_loss_of_arx_is_the_geometric_mean_of_iyengars(cells: list[tuple[int, int, int]]) -> None:
    """By ARX's own definition: share of the leaves, 1 of a suppressed record, scaled so that a leaf costs nothing."""
    leaves = [np.array([1, 1, 2, 5]), np.array([1, 3, 3])]
    nodes = np.array([cell[:2] for cell in cells], dtype=np.int32)
    times = np.array([cell[2] for cell in cells])
    product = 1.0
    for i, below in enumerate(leaves):
        domain = int(below.max())
        share = sum(n * below[cell[i]] / domain for *cell, n in cells) / times.sum()
        product *= 1 + (share - 1 / domain) / (1 - 1 / domain)
    tally = CellTally.of(nodes, times, [leaf_ncp(below, "iyengar") for below in leaves])
    assert tally.geometric == pytest.approx(product ** (1 / 2) - 1, abs=1e-12)


def test_the_loss_of_arx_by_hand() -> None:
    """One of two columns half lost, the other as it was: √(3/2) - 1; all lost is 1, and nothing of no column is 0."""
    losses = [np.array([0.0, 1.0]), np.array([0.0, 1.0])]
    half = CellTally.of(np.array([[0, 0], [1, 0]], dtype=np.int32), np.array([1, 1]), losses)
    assert half.geometric == pytest.approx(math.sqrt(1.5) - 1)
    assert CellTally.of(np.array([[1, 1]], dtype=np.int32), np.array([3]), losses).geometric == pytest.approx(1.0)
    assert CellTally.empty(0).geometric == 0.0
