"""Groups as they are given, whoever formed them: what is joined, and what is suppressed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.recoding.full_domain import FullDomain
from privrisk_spark.kernels.recoding.local.partition import Asked, published
from privrisk_spark.kernels.recoding.metrics import Measured
from privrisk_spark.kernels.recoding.persons import Persons
from privrisk_spark.kernels.recoding.problem import Condition

TREE = np.array([[0, 0, 0], [1, 0, 0], [2, 1, 0], [3, 1, 0]], dtype=np.int32)
NOT_FOUR = Condition("not four rows", lambda classes: classes.rows != 4, False, False)


def of(counts: list[int], ancestors: np.ndarray = TREE) -> Measured:
    vectors = np.arange(len(counts), dtype=np.int32)[:, None]
    return Measured.of(FullDomain.of([ancestors], vectors, np.array(counts)))


def test_groups_too_small_that_look_alike_are_a_class() -> None:
    found = published(of([1, 1, 1, 1]), Asked(4), np.array([0, 5, 5, 0]))
    assert found.classes.rows.tolist() == [4]
    assert found.levels.tolist() == [[2]] * 4
    assert found.classes.member.tolist() == [0]


def test_what_is_joined_may_fail_what_its_groups_meet() -> None:
    """Two groups of two rows are not four rows each. Planted: conditions are asked of the groups."""
    found = published(of([1, 1, 1, 1]), Asked(2, (NOT_FOUR,)), np.array([0, 1, 1, 0]))
    assert found.suppressed == 4
    assert found.of.tolist() == [-1] * 4


def test_a_class_of_roots_cannot_be_told_from_what_is_suppressed() -> None:
    """Values 0 and 3 meet what is asked as a class of roots, until the single row of 1 is suppressed beside them."""
    given = of([3, 1, 3, 2])
    assert published(given, Asked(2), np.array([0, 0, 1, 0])).suppressed == 0
    found = published(given, Asked(2), np.array([0, 1, 2, 0]))
    assert found.of.tolist() == [-1, -1, 0, -1]
    assert published(given, Asked(2), np.array([0, -1, 2, 0])).of.tolist() == [-1, -1, 0, -1]
    assert found.levels.tolist() == [[2], [2], [0], [2]]
    apart = np.array([[0, 0], [1, 0], [2, 1]], dtype=np.int32)
    assert published(of([3, 3, 1], apart), Asked(2), np.array([0, 0, 1])).of.tolist() == [0, 0, -1], "no root"


def test_groups_that_cannot_be_published_are_refused() -> None:
    apart = np.array([[0, 0], [1, 1]], dtype=np.int32)
    with pytest.raises(InputError, match="Attribute 0: rows of one group have no common ancestor"):
        published(of([1, 1], apart), Asked(1), np.array([0, 0]))
    pieces = {"record": np.array([0, 0]), "rows": np.array([1, 1])}
    assert published(of([2]), Asked(1), np.array([0, 1]), **pieces).rows.tolist() == [2]
    with pytest.raises(InputError, match="where the rows of one record come into several classes"):
        published(of([2]), Asked(1, (NOT_FOUR,)), np.array([0, 1]), **pieces)


def test_rows_are_not_taken_for_persons() -> None:
    """Two rows of one person each are a class of two rows, and not of two persons."""
    given = of([2, 2])
    persons = Persons.of(np.array([0, 1]), np.array([0, 1]), 2)
    with pytest.raises(InputError, match="counts rows, and persons are given"):
        published(replace(given, table=replace(given.table, persons=persons)), Asked(2), np.array([0, 1]))
