"""What a policy asks of classes, held against classes at, above and below each bound."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from privrisk_spark.kernels.classes.closeness import TableDistribution
from privrisk_spark.kernels.classes.diversity import SensitiveRuns
from privrisk_spark.kernels.recoding.full_domain import NodeClasses
from privrisk_spark.kernels.recoding.population import Population
from privrisk_spark.planning.recoding import asked_in_words, conditions, sensitive_of, shares_of
from privrisk_spark.policy.anonymity import Besides, KAnonymityGuarantee


def asked(*also: dict[str, Any], **more: Any) -> KAnonymityGuarantee:
    return KAnonymityGuarantee.model_validate({"kind": "k-anonymity", "k": 2, "also": list(also), **more})


def runs_of(*classes: tuple[int, ...]) -> SensitiveRuns:
    """Classes by how many rows of each value they have."""
    pairs = [[(value, n) for value, n in enumerate(one) if n] for one in classes]
    start = np.cumsum([0, *map(len, pairs)])
    value, count = np.array([pair for one in pairs for pair in one]).T
    return SensitiveRuns(start, value.astype(np.int32), count.astype(np.int64))


TABLE = (4, 4, 8)
"""Rows of the table with each of three values."""

CASES: list[tuple[dict[str, Any], list[tuple[tuple[int, ...], bool]], str, tuple[bool, bool]]] = [
    # At least: equal passes.
    (
        {"l_diversity": {"column": "x", "l": 2}},
        [((1, 1, 0), True), ((4, 0, 0), False), ((1, 1, 1), True)],
        "at least 2 distinct values of 'x' (missing ones do not count)",
        (True, True),
    ),
    (
        {"p_sensitivity": {"column": "x", "p": 3}},
        [((1, 1, 0), False), ((1, 1, 8), True)],
        "at least 3 distinct values of 'x' (missing ones do not count)",
        (True, True),
    ),
    (
        {"l_diversity": {"column": "x", "l": 2, "kind": "entropy"}},
        [((3, 3, 0), True), ((3, 2, 0), False), ((1, 1, 1), True), ((4, 1, 0), False), ((1, 0, 0), False)],
        "values of 'x' with an entropy of at least ln 2 (missing ones do not count)",
        (True, False),
    ),
    # r_1 < 2 (r_2 + r_3): equal fails. With l = 3 r_1 < 2 r_3.
    (
        {"l_diversity": {"column": "x", "l": 2, "kind": "recursive", "c": 2}},
        [((2, 1, 0), False), ((0, 1, 4), False), ((1, 1, 3), True), ((1, 1, 4), False), ((0, 3, 5), True)],
        "recursive (2, 2)-diversity of 'x' (missing ones do not count)",
        (True, False),
    ),
    (
        {"l_diversity": {"column": "x", "l": 3, "kind": "recursive", "c": 2}},
        [((2, 2, 2), True), ((2, 1, 2), False), ((3, 2, 3), True), ((3, 3, 0), False)],
        "recursive (2, 3)-diversity of 'x' (missing ones do not count)",
        (True, False),
    ),
    # Shares of the table are 1/4, 1/4, 1/2. At most: equal passes.
    (
        {"t_closeness": {"column": "x", "t": 0.25}},
        [((1, 1, 2), True), ((2, 0, 2), True), ((4, 1, 3), True), ((4, 1, 2), False), ((1, 0, 0), False)],
        "a distribution of 'x' within 0.25 of the table's (equal distance)",
        (True, False),
    ),
    # (|Q_1 - 1/4| + |Q_2 - 1/2|) / 2.
    (
        {"t_closeness": {"column": "x", "t": 0.25, "distance": "ordered"}},
        [
            ((2, 0, 2), True),
            ((0, 3, 1), True),
            ((0, 4, 0), False),
            ((2, 1, 1), True),
            ((4, 1, 2), False),
            ((0, 1, 3), True),
        ],
        "a distribution of 'x' within 0.25 of the table's (ordered distance)",
        (True, False),
    ),
    (
        {"alpha": {"column": "x", "alpha": 0.6}},
        [((3, 2, 0), True), ((2, 1, 0), False), ((0, 2, 3), True)],
        "no value of 'x' in more than a share of 0.6 (missing ones do not count)",
        (True, False),
    ),
    # (q - p) / p at most 1: q at most 1/2, 1/2, 1.
    (
        {"beta_likeness": {"column": "x", "beta": 1}},
        [((2, 2, 0), True), ((3, 2, 0), False), ((0, 0, 2), True), ((2, 0, 2), True)],
        "no share of 'x' more than 1 times above the table's",
        (True, False),
    ),
    # -ln(1/2) is 0.69, below 1: the third value may be in a share of 0.846 at most.
    (
        {"beta_likeness": {"column": "x", "beta": 1, "enhanced": True}},
        [((2, 2, 0), True), ((0, 0, 2), False), ((1, 1, 8), True), ((1, 0, 6), False)],
        "no share of 'x' more than 1 times above the table's (enhanced)",
        (True, False),
    ),
    # |ln(q/p)| below ln 2: every share above 1/8, 1/8, 1/4 and below 1/2, 1/2, 1; equal fails.
    (
        {"delta_disclosure": {"column": "x", "delta": math.log(2)}},
        [((1, 1, 2), True), ((2, 1, 1), False), ((3, 2, 2), True), ((1, 3, 4), False), ((4, 4, 8), True)],
        "shares of 'x' whose ratio to the table's has a logarithm below 0.693147",
        (True, False),
    ),
]


@pytest.mark.parametrize(("condition", "classes", "words", "monotone"), CASES, ids=lambda one: str(one)[:60])
def test_a_condition_is_met_by_the_classes_that_meet_it(
    condition: dict[str, Any], classes: list[tuple[tuple[int, ...], bool]], words: str, monotone: tuple[bool, bool]
) -> None:
    guarantee = asked(condition)
    k, held = conditions(guarantee, {"x": TableDistribution(np.array(TABLE))}, missing={})
    runs = runs_of(*(one for one, _ in classes))
    node = NodeClasses(np.arange(len(classes)), runs.rows, (runs,))
    assert held.meets(node).tolist() == [expected for _, expected in classes]
    assert k.meets(node).tolist() == [sum(one) >= 2 for one, _ in classes]
    assert (held.monotone_in_generalization, held.monotone_in_suppression) == monotone
    assert asked_in_words(guarantee, "rows") == ["at least 2 rows", words]


@pytest.mark.parametrize("counts", [False, True])
def test_conditions_leave_missing_values_out_unless_they_count(counts: bool) -> None:
    given = {"column": "x", **({"count_missing": True} if counts else {})}
    guarantee = asked({"l_diversity": {**given, "l": 2}}, {"alpha": {**given, "alpha": 0.5}})
    *_, distinct, alpha = conditions(guarantee, {"x": TableDistribution(np.array(TABLE))}, missing={"x": 2})
    runs = runs_of((1, 0, 1), (1, 1, 2), (0, 0, 2))
    node = NodeClasses(np.arange(3), runs.rows, (runs,))
    assert distinct.meets(node).tolist() == ([True, True, False] if counts else [False, True, False])
    assert alpha.meets(node).tolist() == ([True, True, False] if counts else [False, True, True])
    said = "a missing one counts" if counts else "missing ones do not count"
    assert all(said in words for words in asked_in_words(guarantee, "rows")[1:])


def test_of_every_condition_there_is_a_case() -> None:
    of_people = {"k_map", "delta_presence"}
    assert {name for condition, *_ in CASES for name in condition} == set(Besides.model_fields) - of_people


def test_people_of_the_dictionary_are_asked_about_in_their_order() -> None:
    of_x, of_people = {"alpha": {"column": "x", "alpha": 0.5}}, {"k_map": {"k": 4}}
    guarantee = asked(of_people, of_x, {"delta_presence": {"at_least": 0.25, "at_most": 0.5}})
    assert sensitive_of(guarantee) == ["x"]
    people = np.array([4, 3, 8, 16])
    population = Population(lambda classes: people[classes.member], monotone=True)
    found = conditions(guarantee, {"x": TableDistribution(np.array([4, 4]))}, None, population, missing={})
    runs = runs_of((1, 1), (1, 1), (1, 1), (2, 0))
    node = NodeClasses(np.arange(4), runs.rows, (runs,))
    assert [one.meets(node).tolist() for one in found] == [
        [True] * 4,
        [True, False, True, True],
        [True, True, True, False],
        [True, False, True, False],
    ]
    assert asked_in_words(guarantee, "rows") == [
        "at least 2 rows",
        "at least 4 people of the dictionary",
        "no value of 'x' in more than a share of 0.5 (missing ones do not count)",
        "rows for at least 0.25 and at most 0.5 of its people of the dictionary",
    ]
    (words,) = asked_in_words(asked({"delta_presence": {"at_most": 0.5}}), "rows")[1:]
    assert words == "rows for at most 0.5 of its people of the dictionary"


def test_conditions_come_in_their_order_each_of_its_column() -> None:
    """``y`` is named first, so its values come first."""
    of_y, of_x = {"alpha": {"column": "y", "alpha": 0.5}}, {"l_diversity": {"column": "x", "l": 2}}
    guarantee = asked(of_y, of_x, {"p_sensitivity": {"column": "y", "p": 3}}, k=4)
    assert sensitive_of(guarantee) == ["y", "x"]
    tables = {"y": TableDistribution(np.array([4, 4, 4])), "x": TableDistribution(np.array([6, 6]))}
    found = conditions(guarantee, tables, missing={})
    y, x = runs_of((2, 2, 0), (1, 1, 2), (2, 1, 1)), runs_of((4, 0), (2, 2), (1, 2))
    node = NodeClasses(np.arange(3), np.array([4, 4, 3]), (y, x))
    assert [one.meets(node).tolist() for one in found] == [
        [True, True, False],
        [True, True, True],
        [False, True, True],
        [False, True, True],
    ]
    assert asked_in_words(guarantee, "persons") == [
        "at least 4 persons",
        "no value of 'y' in more than a share of 0.5 of its persons (missing ones do not count)",
        "at least 2 distinct values of 'x' (missing ones do not count)",
        "at least 3 distinct values of 'y' (missing ones do not count)",
    ]
    assert sensitive_of(asked()) == []
    assert [one.name for one in conditions(asked(), {}, missing={})] == ["k-anonymity"]


def test_values_that_meet_low_in_a_hierarchy_are_near() -> None:
    """Shares of the table are 1/4, 1/4, 1/2; the first two meet at level 1 of 2, so half as far as the third."""
    tree = {"column": "x", "t": 0.25, "distance": "hierarchical", "hierarchy": {"flat": {}}}
    guarantee = asked({"p_sensitivity": {"column": "x", "p": 1}}, {"t_closeness": tree})
    ground = np.array([[0, 3, 5], [1, 3, 5], [2, 4, 5]], dtype=np.int32)
    *_, held = conditions(guarantee, {"x": TableDistribution(np.array(TABLE))}, {1: ground}, missing={})
    classes = [((2, 0, 2), True), ((1, 1, 0), False), ((3, 0, 1), False), ((0, 2, 2), True), ((1, 0, 3), True)]
    runs = runs_of(*(one for one, _ in classes))
    found = held.meets(NodeClasses(np.arange(len(classes)), runs.rows, (runs,)))
    assert found.tolist() == [expected for _, expected in classes]
    # (2, 0, 2): 1/4 goes half the way; (1, 1, 0): 1/2 goes all; (3, 0, 1): 1/4 half, 1/4 all; (1, 0, 3): 1/4 all.
    assert (held.monotone_in_generalization, held.monotone_in_suppression) == (True, False)
    words = "a distribution of 'x' within 0.25 of the table's (hierarchical distance)"
    assert asked_in_words(guarantee, "rows")[-1] == words


@pytest.mark.parametrize(
    ("limit", "rows", "most"),
    [
        (0.29, 100, 29),
        (0.07, 100, 7),
        (0.57, 100, 57),
        (0.05, 30162, 1508),
        (1.0, 12, 12),
        (0.0, 12, 0),
        (0, 12, 0),
        (0.3, 0, 0),
        (0.1, 9, 0),
        (0.999999, 10**6, 999_999),
        (1e-07, 10**8, 10),
        (0.1, 3 * 10**16, 3 * 10**15),
    ],
)
def test_the_rows_that_may_be_suppressed_are_those_of_the_decimal(limit: float, rows: int, most: int) -> None:
    assert asked(suppression_limit=limit).suppressed_at_most(rows) == most
    assert Fraction(most) <= Fraction(str(limit)) * rows < most + 1


def test_what_is_asked_of_persons_says_what_a_share_is_of() -> None:
    every = [one for one, *_ in CASES] + [{"delta_presence": {"at_least": 0.1, "at_most": 0.5}}]
    guarantee = asked(*every)
    assert shares_of(guarantee) == ["x"]
    assert shares_of(asked({"l_diversity": {"column": "x", "l": 2}}, {"p_sensitivity": {"column": "x", "p": 2}})) == []
    by_rows, by_persons = asked_in_words(guarantee, "rows"), asked_in_words(guarantee, "persons")
    values = ("distinct values",)
    for one, other in zip(by_rows, by_persons, strict=True):
        assert "person" not in one
        assert (one == other) == any(word in one for word in values), one
        assert ("person" in other) == (one != other)
    assert by_persons[-1] == "persons for at least 0.1 and at most 0.5 of its people of the dictionary"
