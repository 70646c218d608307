from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import naive_recoding
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recodings import EIGHT, Labels, Rows, adult_table, small_tables, table_of

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.recoding.full_domain import FullDomain
from privrisk_spark.kernels.recoding.metrics import METRICS, Measured
from privrisk_spark.kernels.recoding.problem import Problem, at_least


@given(small_tables(), st.integers(1, 4))
def test_metrics_are_the_formulas_over_rows(given_table: tuple[Labels, Rows], k: int) -> None:
    labels, rows = given_table
    measured = Measured.of(table_of(labels, rows))
    for levels, classes in measured.table.every_node():
        for name, metric in METRICS.items():
            facts = Problem(measured, (at_least(k),), metric).facts(levels, classes)
            value, suppressed = naive_recoding.metric(name, labels, rows, levels, k)
            assert metric.value(facts) == pytest.approx(value, rel=1e-12, abs=1e-12), name
            assert facts.suppressed == suppressed


@given(small_tables())
def test_a_node_has_the_same_bits_however_it_is_reached(given_table: tuple[Labels, Rows]) -> None:
    """Other searches reach it by other ways, and must not find another optimum for it."""
    labels, rows = given_table
    measured = Measured.of(table_of(labels, rows))
    other = Measured.of(table_of(labels, rows[::-1]))
    for levels, classes in measured.table.every_node():
        problem = Problem(measured, (at_least(2),), METRICS["loss"])
        facts = problem.facts(levels, classes)
        assert facts == problem.facts(levels, measured.table.classes(levels))
        assert facts == Problem(other, (at_least(2),), METRICS["loss"]).facts(levels, other.table.classes(levels))


def test_sums_beyond_a_word_are_exact() -> None:
    """Two classes of 2^40 rows: squares of 2^81, which a double of their sum could not tell from one more."""
    ancestor = np.array([[0], [1]], dtype=np.int32)
    counts = np.array([2**40, 2**40 + 1])
    table = FullDomain.of([ancestor], np.array([[0], [1]], dtype=np.int32), counts)
    problem = Problem(Measured.of(table), (at_least(2),), METRICS["dm"])
    facts = problem.facts((0,), table.classes([0]))
    assert METRICS["dm"].exact(facts) == 2**80 + (2**40 + 1) ** 2
    assert METRICS["aecs"].exact(facts) == Fraction(2**41 + 1, 2)


def test_leaves_may_be_given_where_a_code_stands_for_more_or_none() -> None:
    """The code of a missing value is no leaf: it is the root at every level."""
    ancestor = np.array([[0, 2], [1, 2], [2, 2]], dtype=np.int32)
    leaves = np.array([[1, 2], [1, 2], [2, 2]])
    table = FullDomain.of([ancestor], np.array([[0], [2]], dtype=np.int32), np.array([3, 1]))
    measured = Measured.of(table, [leaves])
    facts = Problem(measured, (at_least(1),), METRICS["loss"]).facts((0,), table.classes([0]))
    assert (facts.leaves, facts.inner, facts.domains) == ((5,), (2,), (2,))
    assert METRICS["loss"].value(facts) == pytest.approx((5 / 8 - 1 / 2) / (1 / 2))
    for wrong in ([leaves[:2]], [leaves * 0], []):
        with pytest.raises(InputError, match="number of leaves"):
            Measured.of(table, wrong)


@pytest.mark.adult
@pytest.mark.parametrize(
    ("levels", "k", "suppressed", "loss"),
    [((0, 3, 0, 0, 1, 1, 1, 2), 5, 1458, 0.25185172), ((0, 4, 0, 1, 3, 2, 2, 1), 2, 0, 0.52664462)],
)
def test_losses_of_adult_that_independent_software_finds(
    adult: Path, levels: tuple[int, ...], k: int, suppressed: int, loss: float
) -> None:
    """The eight attributes; ARX prints the loss to eight places."""
    measured = adult_table(adult, EIGHT)
    facts = Problem(measured, (at_least(k),), METRICS["loss"]).facts(levels, measured.table.classes(levels))
    assert facts.suppressed == suppressed
    assert METRICS["loss"].value(facts) == pytest.approx(loss, abs=5e-9)
