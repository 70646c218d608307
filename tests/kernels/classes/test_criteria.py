"""What criteria declare of recodings that get coarser: proved by random tables, or refuted by one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.classes.closeness import TableDistribution
from privrisk_spark.kernels.classes.concealment import confusion
from privrisk_spark.kernels.classes.consistency import ConsistencyGraph, consistency_graph
from privrisk_spark.kernels.classes.criteria import (
    ALPHA,
    BETA_LIKENESS,
    CLOSENESS,
    CRITERIA,
    DELTA_DISCLOSURE,
    DISTINCT_DIVERSITY,
    ENHANCED_BETA_LIKENESS,
    ENTROPY_DIVERSITY,
    EQUAL_CLOSENESS,
    HIERARCHICAL_CLOSENESS,
    HOMOGENEITY,
    K_ANONYMITY,
    K_CONCEALMENT,
    K_CONFUSION,
    K_MAP,
    K_ONE,
    ONE_K,
    ORDERED_CLOSENESS,
    P_SENSITIVITY,
    RECURSIVE_C,
    RECURSIVE_L,
    Criterion,
)
from privrisk_spark.kernels.classes.diversity import SensitiveRuns
from privrisk_spark.kernels.numeric.distinct import distinct_rows

Class = dict[int, int]
VALUES = 5
ANCESTOR = np.array([[0, 5, 7], [1, 5, 7], [2, 6, 7], [3, 6, 7], [4, 6, 7]], dtype=np.int32)

COUNTED = {K_ANONYMITY, K_MAP}
OF_CLASSES = {
    K_ANONYMITY: {},
    K_MAP: {},
    P_SENSITIVITY: {},
    DISTINCT_DIVERSITY: {},
    HOMOGENEITY: {},
    ENTROPY_DIVERSITY: {},
    RECURSIVE_C: {"least_l": 2},
    RECURSIVE_L: {"c": 3.0},
    ALPHA: {},
    EQUAL_CLOSENESS: {"table": None},
    ORDERED_CLOSENESS: {"table": None},
    HIERARCHICAL_CLOSENESS: {"table": None, "ancestor": ANCESTOR},
    BETA_LIKENESS: {"table": None},
    ENHANCED_BETA_LIKENESS: {"table": None},
    DELTA_DISCLOSURE: {"table": None},
}
OF_RECORDS = (ONE_K, K_ONE, K_CONCEALMENT)

of_classes = pytest.mark.parametrize("criterion", OF_CLASSES, ids=lambda criterion: criterion.name)


def runs_of(classes: list[Class]) -> SensitiveRuns:
    runs = [run for one in classes for run in sorted(one.items())]
    return SensitiveRuns(
        np.cumsum([0, *[len(one) for one in classes]]).astype(np.int64),
        np.array([s for s, _ in runs], dtype=np.int32),
        np.array([c for _, c in runs], dtype=np.int64),
    )


def numbers(criterion: Criterion, classes: list[Class], people: list[int], table: Class) -> np.ndarray:
    """Numbers of classes of a table, the distribution of which is of all its records."""
    runs = runs_of(classes)
    if criterion in COUNTED:
        return np.array(people if criterion is K_MAP else runs.rows, dtype=np.float64)
    given = dict(OF_CLASSES[criterion])
    if "table" in given:
        given["table"] = TableDistribution(np.array([table.get(s, 0) for s in range(VALUES)], dtype=np.int64))
    return criterion.numbers(runs, **given).astype(np.float64)


def united(classes: list[Class]) -> Class:
    return {s: sum(one.get(s, 0) for one in classes) for s in sorted(set().union(*classes))}


CLASSES = st.lists(
    st.dictionaries(st.integers(0, VALUES - 1), st.integers(1, 9), min_size=1, max_size=VALUES), min_size=2, max_size=7
)


def drawn(data: st.DataObject) -> tuple[list[Class], list[int], list[list[int]]]:
    """Classes of a recoding, the people in each, and which of them a coarser one unites."""
    classes = data.draw(CLASSES, label="classes")
    people = data.draw(st.lists(st.integers(0, 20), min_size=len(classes), max_size=len(classes)), label="people")
    into = data.draw(st.lists(st.integers(0, 2), min_size=len(classes), max_size=len(classes)), label="into")
    return classes, people, [[j for j, at in enumerate(into) if at == i] for i in sorted(set(into))]


def coarser(classes: list[Class], people: list[int], groups: list[list[int]]) -> tuple[list[Class], list[int]]:
    return [united([classes[j] for j in group]) for group in groups], [sum(people[j] for j in g) for g in groups]


def bound_passed_by(criterion: Criterion, number: float) -> float:
    """The hardest bound the number passes: itself, or hardly more where equality fails."""
    return number * (1 + 1e-9) + 1e-9 if criterion.strict else number


@of_classes
@settings(max_examples=150)
@given(data=st.data())
def test_what_is_declared_of_generalization_holds(criterion: Criterion, data: st.DataObject) -> None:
    """All classes pass, so all classes of a coarser recoding do."""
    assert criterion.monotone_in_generalization
    classes, people, groups = drawn(data)
    table = united(classes)
    fine = numbers(criterion, classes, people, table)
    coarse = numbers(criterion, *coarser(classes, people, groups), table)
    worst = float(fine.min() if criterion.direction == "at least" else fine.max())
    if math.isfinite(worst):
        asked = bound_passed_by(criterion, worst)
        assert not criterion.fails(fine, asked).any()
        assert not criterion.fails(coarse, asked).any()


@pytest.mark.parametrize("criterion", [one for one in OF_CLASSES if one.monotone_in_suppression], ids=lambda c: c.name)
@settings(max_examples=150)
@given(data=st.data())
def test_what_is_declared_of_suppression_holds(criterion: Criterion, data: st.DataObject) -> None:
    """A class that holds a passing one passes, whatever else it holds; so no more rows are suppressed."""
    classes, people, groups = drawn(data)
    table, rows = united(classes), runs_of(classes).rows
    fine = numbers(criterion, classes, people, table)
    coarse = numbers(criterion, *coarser(classes, people, groups), table)
    for number in fine:
        asked = bound_passed_by(criterion, float(number))
        failing, suppressed = criterion.fails(fine, asked), criterion.fails(coarse, asked)
        for group, lost in zip(groups, suppressed, strict=True):
            assert not lost or failing[group].all()
        assert sum(rows[group].sum() for group, lost in zip(groups, suppressed, strict=True) if lost) <= sum(
            rows[failing]
        )


# A = {a, b} is in order, B = {a, a, a, a} is not, and together they are not; C brings the table to p = (1/2, 1/2).
GOOD, BAD, REST = {0: 1, 1: 1}, {0: 4}, {1: 4}
REFUTED = {
    ENTROPY_DIVERSITY: (1.9, 2.0, math.exp(math.log(6) - 5 / 6 * math.log(5))),
    RECURSIVE_C: (3.0, 1.0, 5.0),
    RECURSIVE_L: (2.0, 2.0, 1.0),
    ALPHA: (0.5, 0.5, 5 / 6),
    EQUAL_CLOSENESS: (0.2, 0.0, 1 / 3),
    ORDERED_CLOSENESS: (0.05, 0.0, 1 / 12),
    HIERARCHICAL_CLOSENESS: (0.1, 0.0, 1 / 6),
    BETA_LIKENESS: (0.5, 0.0, 2 / 3),
    ENHANCED_BETA_LIKENESS: (0.5, 0.0, 2 / 3),
    DELTA_DISCLOSURE: (1.0, 0.0, math.log(3)),
}
"""Bound, number of A and number of A ∪ B."""


@pytest.mark.parametrize(
    "criterion", [one for one in OF_CLASSES if not one.monotone_in_suppression], ids=lambda c: c.name
)
def test_what_is_not_declared_of_suppression_has_a_counterexample(criterion: Criterion) -> None:
    """The finer recoding releases A and suppresses the others; the coarser one suppresses A with B."""
    asked, of_good, of_both = REFUTED[criterion]
    classes, people = [GOOD, BAD, REST], [0, 0, 0]
    table = united(classes)
    fine = numbers(criterion, classes, people, table)
    coarse = numbers(criterion, *coarser(classes, people, [[0, 1], [2]]), table)
    assert fine[0] == pytest.approx(of_good, abs=1e-14)
    assert coarse[0] == pytest.approx(of_both, abs=1e-14)
    assert criterion.fails(fine, asked).tolist() == [False, True, True]
    assert criterion.fails(coarse, asked).tolist() == [True, True]


TREES = [
    Hierarchy.from_paths("p", [("a", "far"), ("b", "far"), ("c", "near"), ("d", "near")]),
    Hierarchy.from_paths("q", [("x",), ("y",), ("z",)]),
]
LEAVES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=2, max_size=8)


def of_each_record(criterion: Criterion, leaves: np.ndarray, nodes: np.ndarray) -> list[int]:
    """Number of each row: of its original record, or for (k,1) of its released one."""
    first, original = distinct_rows(list(leaves.T))
    firsts, released = distinct_rows(list(nodes.T))
    graph = consistency_graph(
        [tree.ancestor for tree in TREES], leaves[first], np.bincount(original), nodes[firsts], np.bincount(released)
    )
    found = criterion.numbers(graph)
    return found[released if criterion is K_ONE else original].tolist()


@pytest.mark.parametrize("criterion", OF_RECORDS, ids=lambda criterion: criterion.name)
@settings(max_examples=60)
@given(leaves=LEAVES, data=st.data())
def test_the_number_of_a_record_never_gets_worse(criterion: Criterion, leaves: list[Any], data: st.DataObject) -> None:
    """Each record generalized further, or suppressed, in its own way: what is proved for both declarations."""
    assert criterion.monotone_in_generalization
    assert criterion.monotone_in_suppression
    codes = np.array(leaves, dtype=np.int32)
    level = [st.integers(0, tree.ancestor.shape[1] - 1) for tree in TREES]
    fine, more = (data.draw(st.lists(st.tuples(*level), min_size=len(leaves), max_size=len(leaves))) for _ in "ab")

    def released(levels: np.ndarray) -> np.ndarray:
        columns = [tree.ancestor[codes[:, i], levels[:, i]] for i, tree in enumerate(TREES)]
        return np.column_stack(columns).astype(np.int32)

    before = of_each_record(criterion, codes, released(np.array(fine)))
    after = of_each_record(criterion, codes, released(np.maximum(fine, more)))
    assert all(a <= b for a, b in zip(before, after, strict=True))
    lost = np.array(data.draw(st.lists(st.booleans(), min_size=len(leaves), max_size=len(leaves))))
    roots = [tree.ancestor.shape[1] - 1 for tree in TREES]
    after = of_each_record(criterion, codes, released(np.where(lost[:, None], roots, fine)))
    assert all(a <= b for a, b in zip(before, after, strict=True))


def test_confusion_of_a_method_may_get_worse() -> None:
    """A method that links to rows that fit, at random, and confuses with 0.4 or more: of three rows none does."""
    assert not K_CONFUSION.monotone_in_generalization
    assert not K_CONFUSION.monotone_in_suppression
    found = []
    for fitting in (2, 3):
        graph = ConsistencyGraph(
            np.array([0, fitting]), np.arange(fitting, dtype=np.int32), np.array([1]), np.ones(3, dtype=np.int64)
        )
        found.append(confusion(graph, np.full(fitting, 1 / fitting), 0.4).tolist())
    assert found == [[2], [0]]


def test_every_criterion_is_held_to_what_it_declares() -> None:
    assert set(CRITERIA.values()) == {*OF_CLASSES, *OF_RECORDS, K_CONFUSION}
    assert REFUTED.keys() == {one for one in OF_CLASSES if not one.monotone_in_suppression}
    for name, criterion in CRITERIA.items():
        assert criterion.name == name
        assert criterion.source
        assert (criterion.number is None) == (criterion in COUNTED)
        # What holds whatever a class is united with holds when it is united with its like.
        assert criterion.monotone_in_generalization or not criterion.monotone_in_suppression
    assert list(CLOSENESS) == ["equal", "ordered", "hierarchical"]
