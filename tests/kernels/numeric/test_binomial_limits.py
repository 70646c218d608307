from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from privrisk_spark.kernels.numeric import binomial_limits


@given(trials=st.integers(1, 60), data=st.data(), alpha=st.sampled_from([0.3, 0.01, 1e-5]))
def test_limits_are_where_the_binomial_tail_is_alpha(trials, data, alpha):
    """Clopper and Pearson by their definition: the tail at the limit has probability alpha."""
    hits = data.draw(st.integers(0, trials))
    low = float(binomial_limits.lower_limit(np.array([hits]), trials, alpha)[0])
    high = float(binomial_limits.upper_limit(np.array([hits]), trials, alpha)[0])
    assert 0 <= low <= hits / trials <= high <= 1 or alpha > 0.25
    if hits:
        assert stats.binom.sf(hits - 1, trials, low) == pytest.approx(alpha, rel=1e-7)
    else:
        assert low == 0
    if hits < trials:
        assert stats.binom.cdf(hits, trials, high) == pytest.approx(alpha, rel=1e-7)
    else:
        assert high == 1
