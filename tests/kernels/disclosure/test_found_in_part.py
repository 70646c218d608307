"""An attacker with part of the dictionary, against every part there is."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.disclosure.risk import found_in_part


@given(st.integers(1, 8), st.floats(1e-6, 1))
def test_it_is_the_mean_over_every_part(consistent: int, share: float) -> None:
    """Each of the others is there or not; who is found among ``1 + x`` is found with 1/(1 + x)."""
    parts = itertools.product((True, False), repeat=consistent - 1)
    expected = math.fsum(math.prod(share if there else 1 - share for there in part) / (1 + sum(part)) for part in parts)
    assert found_in_part(np.array([consistent]), share)[0] == pytest.approx(expected, rel=1e-9)


@given(st.lists(st.integers(1, 10**12), min_size=1), st.lists(st.floats(1e-9, 1), min_size=2, max_size=5))
def test_it_falls_with_the_share_and_with_the_number_and_ends_at_one_over_it(
    rows: list[int], shares: list[float]
) -> None:
    numbers = np.array(sorted(rows))
    found = [found_in_part(numbers, share) for share in sorted(shares)]
    for one in found:
        assert ((one > 0) & (one <= 1 + 1e-12)).all()
        assert (np.diff(one) <= 1e-12).all()
    for smaller, larger in itertools.pairwise(found):
        assert (larger <= smaller * (1 + 1e-9)).all()
    assert found_in_part(numbers, 1.0) == pytest.approx(1 / numbers, rel=1e-15)


@pytest.mark.parametrize("share", [0.0, -0.1, 1.1, math.nan])
def test_a_share_that_is_none_is_refused(share: float) -> None:
    with pytest.raises(InputError, match="above 0 and at most 1"):
        found_in_part(np.array([1]), share)


def test_a_record_nobody_fits_is_refused() -> None:
    with pytest.raises(InputError, match="the person's own"):
        found_in_part(np.array([1, 0]), 0.5)
