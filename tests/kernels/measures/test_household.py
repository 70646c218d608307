"""The risk of a household against the product over its records."""

from __future__ import annotations

import random

import naive_assess as naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.measures.household import HouseholdTally, household_risk

RECORDS = st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0.0, 1e-12, 0.2, 0.5, 1.0])), min_size=1, max_size=9)


def arrays(records: list[tuple[int, float]]) -> tuple[np.ndarray, np.ndarray]:
    """Households numbered from 0 without gaps, and risks."""
    number = {key: i for i, key in enumerate(sorted({key for key, _ in records}))}
    return np.array([number[key] for key, _ in records], dtype=np.int64), np.array([risk for _, risk in records])


@given(RECORDS, st.randoms(use_true_random=False))
def test_one_less_the_product_of_what_is_missed(records: list[tuple[int, float]], pick: random.Random) -> None:
    household, risk = arrays(records)
    most, mean = naive.households(risk.tolist(), household.tolist())
    tally = HouseholdTally.of(household, risk)
    assert tally.most == pytest.approx(most, rel=1e-12, abs=1e-14)
    assert tally.of_records.mean == pytest.approx(mean, rel=1e-12, abs=1e-14)
    assert tally.households == len(set(household.tolist()))
    # A household is at least as exposed as any of its members, and never more than all together.
    found = household_risk(household, risk)
    for number, one in enumerate(found):
        members = risk[household == number]
        assert members.max() - 1e-15 <= one <= min(members.sum(), 1.0) + 1e-15
    order = list(range(len(records)))
    pick.shuffle(order)
    assert household_risk(household[order], risk[order]).tobytes() == found.tobytes()


def test_worked_examples() -> None:
    """Of risks 1/2, 1/4 and 1/5 there is a chance of 1/2 · 3/4 · 4/5 = 3/10 to miss all; a sure one is enough."""
    found = household_risk(np.array([0, 1, 0, 0, 1]), np.array([0.5, 1.0, 0.25, 0.2, 0.1]))
    assert found.tolist() == pytest.approx([0.7, 1.0], abs=1e-15)
    # What 1 - Π loses to rounding: two of 1e-17 are 2e-17, and not 0.
    assert household_risk(np.zeros(2, dtype=np.int64), np.full(2, 1e-17))[0] == pytest.approx(2e-17)
    assert HouseholdTally.of(np.zeros(0, dtype=np.int64), np.zeros(0)) == HouseholdTally.empty()


@pytest.mark.parametrize(
    ("household", "risk", "why"),
    [
        ([0], [0.1, 0.2], "one household per record"),
        ([0], [1.5], "probabilities between 0 and 1"),
        ([0], [np.nan], "probabilities between 0 and 1"),
    ],
)
def test_what_is_refused(household: list[int], risk: list[float], why: str) -> None:
    with pytest.raises(InputError, match=why):
        household_risk(np.array(household), np.array(risk))
