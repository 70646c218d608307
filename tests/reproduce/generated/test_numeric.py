"""The generated table of numbers has the correlations it says, and is one of the seed."""

from __future__ import annotations

import numpy as np
import pytest

from privrisk_spark.errors import InputError
from reproduce.generated.numeric import NumericTable

BLOCKS = NumericTable("blocks", 20_000, 5, 2, 0.8, 0.2)


def test_correlations_are_those_that_are_told() -> None:
    said = BLOCKS.correlation()
    assert said.tolist()[0] == [1, 0.8, 0.2, 0.2, 0.2]
    assert said.tolist()[4] == [0.2, 0.2, 0.2, 0.2, 1]
    values = BLOCKS.values(3)
    # A correlation r of n normal pairs has the deviation (1 - r^2) / sqrt(n): 0.05 is seven of the largest.
    np.testing.assert_allclose(np.corrcoef(values.T), said, atol=0.05)
    assert abs(values.mean(axis=0)).max() < 0.05
    np.testing.assert_allclose(values.std(axis=0), 1, atol=0.05)


def test_a_table_depends_on_seed_and_name_and_amounts_are_exponentials() -> None:
    small = NumericTable("blocks", 50, 5, 2, 0.8, 0.2)
    np.testing.assert_array_equal(small.values(3), BLOCKS.values(3)[:50])
    assert not np.array_equal(small.values(3), small.values(4))
    assert not np.array_equal(small.values(3), NumericTable("other", 50, 5, 2, 0.8, 0.2).values(3))
    amounts = NumericTable("blocks", 50, 5, 2, 0.8, 0.2, amounts=True).values(3)
    np.testing.assert_array_equal(amounts, np.exp(small.values(3)))


@pytest.mark.parametrize("wrong", [(0, 1, 1, 0.5, 0.5), (1, 1, 0, 0.5, 0.5), (1, 1, 1, 0.2, 0.5), (1, 1, 1, 1.0, 0.5)])
def test_what_cannot_be_drawn_is_refused(wrong: tuple[int, int, int, float, float]) -> None:
    with pytest.raises(InputError, match="blocks of at least 1"):
        NumericTable("wrong", *wrong)
