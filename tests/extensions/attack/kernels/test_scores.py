from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.attack.kernels.scores import QUANTILES, scores

groups = st.lists(st.tuples(st.integers(-5, 5), st.integers(1, 6), st.integers(0, 4)), min_size=1, max_size=20).filter(
    lambda drawn: any(records for _, _, records in drawn)
)


@given(groups)
def test_links_are_summed_up_one_by_one(drawn: list[tuple[int, int, int]]) -> None:
    """Each record written out by itself."""
    found = scores(*(np.array(of) for of in zip(*((float(s), t, n) for s, t, n in drawn), strict=True)))
    each = sorted((score, tied) for score, tied, records in drawn for _ in range(records))
    assert found.linked == len(each)
    assert found.single == sum(tied == 1 for _, tied in each)
    assert found.right_at_most == pytest.approx(sum(1 / tied for _, tied in each))
    for quantile, score in zip(QUANTILES, found.quantiles, strict=True):
        least = [s for s, _ in each if sum(other <= s for other, _ in each) >= quantile * len(each)]
        assert score == min(least)


def test_no_more_are_right_than_the_bound_says() -> None:
    """Two records that tie with three and one candidates: 4/3 are right at most, if both own ones are among them."""
    found = scores(np.array([0.0, 0.5]), np.array([3, 1]), np.array([1, 1]))
    assert found.right_at_most == pytest.approx(4 / 3)
    assert (found.linked, found.single) == (2, 1)


def test_links_to_nothing_are_refused() -> None:
    for tied, records in (([1], [0]), ([0], [1])):
        with pytest.raises(InputError, match="must have a candidate"):
            scores(np.zeros(1), np.array(tied), np.array(records))
