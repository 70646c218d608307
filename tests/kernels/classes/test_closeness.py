from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from strategies import hierarchies

from privrisk_spark.errors import InputError
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.classes.closeness import (
    TableDistribution,
    equal_distance,
    greatest_enhanced_gain,
    greatest_gain,
    greatest_log_ratio,
    greatest_log_ratio_present,
    hierarchical_distance,
    ordered_distance,
)
from privrisk_spark.kernels.classes.criteria import BETA_LIKENESS, DELTA_DISCLOSURE, ORDERED_CLOSENESS
from privrisk_spark.kernels.classes.diversity import SensitiveRuns
from privrisk_spark.kernels.classes.tally import ClassTally

Class = dict[int, int]


def runs_of(classes: list[Class]) -> SensitiveRuns:
    runs = [(s, c) for one in classes for s, c in sorted(one.items())]
    return SensitiveRuns(
        np.cumsum([0, *[len(one) for one in classes]]).astype(np.int64),
        np.array([s for s, _ in runs], dtype=np.int32),
        np.array([c for _, c in runs], dtype=np.int64),
    )


def table_of(classes: list[Class], v: int) -> TableDistribution:
    count = np.zeros(v, dtype=np.int64)
    for one in classes:
        for s, c in one.items():
            count[s] += c
    return TableDistribution(count)


def classes_of(v: int) -> st.SearchStrategy[list[Class]]:
    one = st.dictionaries(st.integers(0, v - 1), st.integers(1, 5), min_size=1, max_size=v)
    return st.lists(one, min_size=1, max_size=5)


def transport(q: list[float], p: list[float], distance: np.ndarray) -> float:
    """Least work that turns q into p, as a linear programme."""
    v = len(q)
    equal = np.zeros((2 * v, v * v))
    for i in range(v):
        equal[i, i * v : (i + 1) * v] = 1
        equal[v + i, i::v] = 1
    found = linprog(distance.ravel(), A_eq=equal, b_eq=[*q, *p], bounds=(0, None), method="highs")
    assert found.status == 0
    return float(found.fun)


def shares(one: Class, table: TableDistribution) -> tuple[list[float], list[float]]:
    n = sum(one.values())
    return [one.get(s, 0) / n for s in range(len(table.count))], (table.count / table.rows).tolist()


def path(ancestor: np.ndarray, s: int) -> list[int]:
    """Nodes from a value to the root, which comes once."""
    steps = [int(node) for node in ancestor[s]]
    return steps[: steps.index(steps[-1]) + 1]


def meeting(ancestor: np.ndarray, v: int) -> np.ndarray:
    """Level of the lowest common ancestor, the root's being the height, over the height: the ground distance."""
    height = ancestor.shape[1] - 1

    def apart(a: int, b: int) -> float:
        if a == b:
            return 0.0
        shared = 0  # nodes both paths have, from the root down
        for node, other in zip(path(ancestor, a)[::-1], path(ancestor, b)[::-1], strict=False):
            if node != other:
                break
            shared += 1
        return (height - (shared - 1)) / max(height, 1)

    return np.array([[apart(a, b) for b in range(v)] for a in range(v)])


def cost_of_nodes(one: Class, table: TableDistribution, ancestor: np.ndarray) -> float:
    """Li et al. 2007, section 5.2, literally: Σ over inner nodes of (height/H) · min(positive, negative extra).

    The height of a node is that of the root less the edges between them.
    """
    v, height = len(table.count), ancestor.shape[1] - 1
    n = sum(one.values())

    def extra(values: list[int]) -> Fraction:
        return sum(
            (Fraction(one.get(s, 0), n) - Fraction(int(table.count[s]), table.rows) for s in values), Fraction(0)
        )

    below: dict[tuple[int, ...], dict[tuple[int, ...], list[int]]] = {}  # node, child, its values; nodes by paths
    for s in range(v):
        down = path(ancestor, s)[::-1]
        for depth in range(len(down) - 1):
            children = below.setdefault(tuple(down[: depth + 1]), {})
            children.setdefault(tuple(down[: depth + 2]), []).append(s)
    total = Fraction(0)
    for node, children in below.items():
        parts = [extra(values) for values in children.values()]
        positive, negative = sum(e for e in parts if e > 0), -sum(e for e in parts if e < 0)
        total += Fraction(height - (len(node) - 1), height) * min(positive, negative)
    return float(total)


SALARIES = [{0: 1, 1: 1, 2: 1}, {3: 1, 5: 1, 8: 1}, {4: 1, 6: 1, 7: 1}]
"""Li et al. 2007, Table 3: salaries 3K … 11K are codes 0 … 8; classes 3-4-5K, 6-8-11K and 7-9-10K."""

DISEASES = Hierarchy.from_paths(
    "disease",
    [
        ("flu", "respiratory infection", "respiratory"),
        ("pneumonia", "respiratory infection", "respiratory"),
        ("bronchitis", "respiratory infection", "respiratory"),
        ("pulmonary edema", "vascular lung", "respiratory"),
        ("pulmonary embolism", "vascular lung", "respiratory"),
        ("gastric ulcer", "stomach", "digestive"),
        ("stomach cancer", "stomach", "digestive"),
        ("gastritis", "stomach", "digestive"),
        ("colitis", "colon", "digestive"),
        ("colon cancer", "colon", "digestive"),
    ],
)
"""Li et al. 2007, Figure 1, with its root above: H = 3."""


def of_diseases(*names: str) -> Class:
    return dict(Counter(DISEASES.labels.index(name) for name in names))


TABLE_5 = [
    of_diseases("gastric ulcer", "stomach cancer", "pneumonia"),
    of_diseases("gastritis", "flu", "bronchitis"),
    of_diseases("gastritis", "bronchitis", "stomach cancer"),
]


def test_salaries_of_the_worked_example() -> None:
    """Li et al. 2007, section 5: D[P1, Q] = 0.375 and D[P2, Q] = 0.167; by hand 27/9/8 and 12/9/8.

    The cumulated differences of shares are, in ninths for P1,
    2, 4, 6, 5, 4, 3, 2, 1, 0, 27 in all. Those of P2 are 1, 2, 3, 1, 2, 0, 1, 2, 0, 12 in all.
    """
    table = table_of(SALARIES, 9)
    found = ordered_distance(runs_of(SALARIES), table)
    np.testing.assert_allclose(found[:2], [3 / 8, 1 / 6], rtol=0, atol=1e-15)
    # Table 5 regroups them as 3-5-9K, 6-8-11K and 4-7-10K: "0.167-closeness w.r.t. salary"
    regrouped = [{0: 1, 2: 1, 6: 1}, SALARIES[1], {1: 1, 4: 1, 7: 1}]
    runs = runs_of(regrouped)
    keys = np.arange(3, dtype=np.int32)[:, None]
    found = ClassTally.of(ORDERED_CLOSENESS, ordered_distance(runs, table), runs.rows, keys, asked=1 / 6)
    assert found.achieved == pytest.approx(1 / 6, abs=1e-15)
    assert found.passed
    assert found.worst[0].key in {(0,), (1,)}


def test_diseases_of_the_worked_example() -> None:
    """Li et al. 2007: Table 5 "has 0.278-closeness w.r.t. disease", which is 5/18 and needs Q of 1/6 for each disease.

    By hand, with Q = 1/6 for each of the six diseases that occur: in every class three diseases exceed by 1/6 each, and
    one of the two middle nodes by 2/3 - 1/2 = 1/6, its parent as well: (1/2 + 1/6 + 1/6) / 3 = 5/18. With the shares of
    the nine rows (gastritis, stomach cancer and bronchitis twice) the three classes are at (5 + 1 + 1)/27, (4 + 2 +
    2)/27 and (3 + 1 + 1)/27.
    """
    runs = runs_of(TABLE_5)
    ancestor = DISEASES.ancestor
    assert ancestor.shape[1] == 4
    once = np.zeros(10, dtype=np.int64)
    once[sorted({s for one in TABLE_5 for s in one})] = 1
    np.testing.assert_allclose(hierarchical_distance(runs, TableDistribution(once), ancestor), [5 / 18] * 3, atol=1e-15)
    table = table_of(TABLE_5, 10)
    np.testing.assert_allclose(hierarchical_distance(runs, table, ancestor), [7 / 27, 8 / 27, 5 / 27], atol=1e-15)
    # "the distance between flu and bronchitis is 1/3, between flu and pulmonary embolism 2/3, flu and stomach cancer 1"
    level = meeting(ancestor, 10)
    flu, *others = (DISEASES.labels.index(d) for d in ("flu", "bronchitis", "pulmonary embolism", "stomach cancer"))
    assert [level[flu, other] for other in others] == [1 / 3, 2 / 3, 1]


@given(st.integers(1, 6).flatmap(lambda v: st.tuples(st.just(v), classes_of(v))))
@settings(max_examples=60, deadline=None)
def test_equal_and_ordered_are_the_least_work(table: tuple[int, list[Class]]) -> None:
    v, classes = table
    runs, whole = runs_of(classes), table_of(classes, v)
    ranks = np.abs(np.subtract.outer(np.arange(v), np.arange(v))) / max(v - 1, 1)
    for j, one in enumerate(classes):
        q, p = shares(one, whole)
        assert equal_distance(runs, whole)[j] == pytest.approx(transport(q, p, 1.0 - np.eye(v)), abs=1e-9)
        assert ordered_distance(runs, whole)[j] == pytest.approx(transport(q, p, ranks), abs=1e-9)


@given(hierarchies(max_leaves=6, max_depth=4), st.data())
@settings(max_examples=60, deadline=None)
def test_hierarchical_is_the_least_work_and_the_papers_sum(tree: Hierarchy, data: st.DataObject) -> None:
    v = tree.n_leaves
    classes = data.draw(classes_of(v))
    runs, whole = runs_of(classes), table_of(classes, v)
    found = hierarchical_distance(runs, whole, tree.ancestor)
    for j, one in enumerate(classes):
        assert found[j] == pytest.approx(cost_of_nodes(one, whole, tree.ancestor), abs=1e-14)
        assert found[j] == pytest.approx(transport(*shares(one, whole), meeting(tree.ancestor, v)), abs=1e-9)


@given(
    st.integers(2, 40).flatmap(lambda v: st.tuples(st.just(v), classes_of(v), st.lists(st.integers(0, 9), max_size=v)))
)
@settings(max_examples=80)
def test_ordered_is_the_sum_over_ranks(table: tuple[int, list[Class], list[int]]) -> None:
    """Wide domains with empty ranks, and a table with rows in no class here."""
    v, classes, more = table
    whole = TableDistribution(table_of(classes, v).count + np.array([*more, *[0] * (v - len(more))]))
    found = ordered_distance(runs_of(classes), whole)
    for j, one in enumerate(classes):
        n, above, below, total = sum(one.values()), 0, 0, Fraction(0)
        for s in range(v):
            above, below = above + one.get(s, 0), below + int(whole.count[s])
            total += abs(Fraction(above, n) - Fraction(below, whole.rows))
        assert found[j] == pytest.approx(float(total / (v - 1)), abs=1e-14)


@given(st.integers(1, 6).flatmap(lambda v: st.tuples(st.just(v), classes_of(v))), st.booleans())
def test_likeness_and_disclosure_are_those_of_the_definitions(table: tuple[int, list[Class]], enhanced: bool) -> None:
    v, classes = table
    runs, whole = runs_of(classes), table_of(classes, v)
    gains = (greatest_enhanced_gain if enhanced else greatest_gain)(runs, whole)
    ratios = greatest_log_ratio(runs, whole)
    for j, one in enumerate(classes):
        pairs = [pq for pq in zip(*shares(one, whole), strict=True) if pq[1] > 0]
        gain = max((q - p) / p if q > p else 0.0 for q, p in pairs)
        if enhanced and any((q - p) / p > -math.log(p) + 1e-12 for q, p in pairs):
            gain = math.inf
        assert gains[j] == pytest.approx(gain, abs=1e-14)
        ratio = max(abs(math.log(q / p)) if q else math.inf for q, p in pairs)
        assert ratios[j] == pytest.approx(ratio, abs=1e-14)


def test_likeness_and_disclosure_by_hand() -> None:
    """p = (1/2, 1/4, 1/4), q = (1/4, 3/4, 0) and (3/4, 0, 1/4), two more rows elsewhere."""
    runs = runs_of([{0: 1, 1: 3}, {0: 3, 2: 1}, {0: 4, 1: 2, 2: 2}])
    table = TableDistribution(np.array([10, 5, 5]))
    assert greatest_gain(runs, table).tolist() == [2.0, 0.5, 0.0]
    # gains of 2 > ln 4 and 0.5 <= ln 2
    assert greatest_enhanced_gain(runs, table).tolist() == [math.inf, 0.5, 0.0]
    assert greatest_log_ratio(runs, table).tolist() == [math.inf, math.inf, 0.0]
    present = greatest_log_ratio_present(runs, table)
    assert present == pytest.approx([math.log(3), math.log(1.5), 0.0])
    keys = np.arange(3, dtype=np.int32)[:, None]
    beta = ClassTally.of(BETA_LIKENESS, greatest_gain(runs, table), runs.rows, keys, asked=0.5)
    assert (beta.achieved, beta.failing_classes, beta.failing_rows) == (2.0, 1, 4)
    delta = ClassTally.of(DELTA_DISCLOSURE, greatest_log_ratio(runs, table), runs.rows, keys, asked=5.0)
    assert (delta.achieved, delta.failing_classes, delta.moments.infinite) == (math.inf, 2, 8)


@given(hierarchies(max_leaves=6), st.data())
def test_the_whole_table_is_at_no_distance(tree: Hierarchy, data: st.DataObject) -> None:
    v = tree.n_leaves
    one = data.draw(classes_of(v))[0]
    runs, whole = runs_of([one]), table_of([one], v)
    assert equal_distance(runs, whole).tolist() == [0.0]
    assert hierarchical_distance(runs, whole, tree.ancestor).tolist() == [0.0]
    assert ordered_distance(runs, whole)[0] <= 1e-15
    assert greatest_gain(runs, whole).tolist() == greatest_log_ratio(runs, whole).tolist() == [0.0]


@given(hierarchies(max_leaves=6), st.data())
def test_metamorphic_relations(tree: Hierarchy, data: st.DataObject) -> None:
    v = tree.n_leaves
    classes = data.draw(classes_of(v))
    runs, whole = runs_of(classes), table_of(classes, v)
    equal, ordered = equal_distance(runs, whole), ordered_distance(runs, whole)
    hierarchical = hierarchical_distance(runs, whole, tree.ancestor)
    # no ground distance is above 1
    assert (hierarchical <= equal + 1e-15).all()
    assert (ordered <= equal + 1e-15).all()
    # turning the order round changes nothing
    turned = [{v - 1 - s: c for s, c in one.items()} for one in classes]
    np.testing.assert_allclose(ordered_distance(runs_of(turned), table_of(turned, v)), ordered, atol=1e-14)
    # convex: a union is not farther than its parts on average
    union = runs_of([dict(sum((Counter(one) for one in classes[:2]), Counter()))])
    n = runs.rows[:2]
    for distance, parts in ((equal_distance, equal), (ordered_distance, ordered)):
        assert distance(union, whole)[0] <= (parts[:2] * n).sum() / n.sum() + 1e-14
    # ten times all rows
    tenfold = [{s: 10 * c for s, c in one.items()} for one in classes]
    np.testing.assert_allclose(ordered_distance(runs_of(tenfold), table_of(tenfold, v)), ordered, atol=1e-14)
    flat = np.stack([np.arange(v), np.full(v, v)], axis=1).astype(np.int32)
    np.testing.assert_allclose(hierarchical_distance(runs, whole, flat), equal, atol=1e-15)


@given(hierarchies(max_leaves=6), st.data())
@settings(max_examples=40)
def test_other_classes_of_a_task_do_not_matter(tree: Hierarchy, data: st.DataObject) -> None:
    v = tree.n_leaves
    classes = data.draw(classes_of(v))
    order = data.draw(st.permutations(range(len(classes))))
    whole = table_of(classes, v)

    def numbers(which: list[int]) -> list[np.ndarray]:
        runs = runs_of([classes[j] for j in which])
        return [
            equal_distance(runs, whole),
            ordered_distance(runs, whole),
            hierarchical_distance(runs, whole, tree.ancestor),
            greatest_enhanced_gain(runs, whole),
            greatest_log_ratio(runs, whole),
        ]

    together = numbers(order)
    for place, j in enumerate(order):
        for number, alone in zip(together, numbers([j]), strict=True):
            assert number[place : place + 1].tobytes() == alone.tobytes()
    assert all(len(number) == 0 for number in numbers([]))


def test_long_classes_do_not_depend_on_their_place() -> None:
    """Sums of many terms: the same bits wherever a class begins in memory."""
    generator = np.random.default_rng(3)
    long = {int(s): int(c) for s, c in enumerate(generator.integers(1, 1000, 5000))}
    short = [{int(s): 1 for s in range(n)} for n in range(1, 9)]
    whole = table_of([long, *short], 5000)
    alone = [f(runs_of([long]), whole).tobytes() for f in (equal_distance, ordered_distance)]
    for n in range(1, 9):
        runs = runs_of([*short[:n], long])
        assert [f(runs, whole)[-1:].tobytes() for f in (equal_distance, ordered_distance)] == alone


def test_wrong_tables_are_refused() -> None:
    runs = runs_of([{0: 2, 2: 1}])
    for count in ([2, 0], [1, 0, 1], [2, 5, 0]):
        table = TableDistribution(np.array(count))
        for distance in (equal_distance, ordered_distance, greatest_gain, greatest_log_ratio):
            with pytest.raises(InputError, match="more often than the whole table"):
                distance(runs, table)
    for wrong, rule in (
        ([0, 0], "at least 1 row"),
        ([], "at least 1 row"),
        ([-1, 2], "at least 0"),
        ([2**61] * 2, "2.62"),
    ):
        with pytest.raises(InputError, match=rule):
            TableDistribution(np.array(wrong, dtype=np.int64))
    table = TableDistribution(np.array([2, 0, 1]))
    for nodes, rule in (
        ([[0, 3], [1, 3]], "two levels"),
        ([[0], [1], [2]], "two levels"),
        ([[0, 3], [1, 3], [2, 4]], "one root for all"),
        ([[0, 3], [0, 3], [2, 3]], "tell all values apart"),
        ([[0, 3, 5, 7], [1, 3, 6, 7], [2, 4, 5, 7]], "level 1 part above"),
    ):
        with pytest.raises(InputError, match=rule):
            hierarchical_distance(runs, table, np.array(nodes, dtype=np.int32))
