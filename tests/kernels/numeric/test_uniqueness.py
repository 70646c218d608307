"""Words that occur once are those of a counter, however they come in parts."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from privrisk_spark.kernels.numeric.uniqueness import between, counted, singles


@pytest.mark.parametrize("ranges", [1, 2, 7])
def test_words_that_occur_once_are_those_of_a_counter(ranges: int) -> None:
    generator = np.random.default_rng(4)
    words = generator.integers(0, 2**64, 300, dtype=np.uint64, endpoint=False)
    drawn = generator.choice(np.append(words, [np.uint64(0), np.uint64(2**64 - 1)]), 400)
    drawn = np.append(drawn, [np.uint64(2**64 - 1)])
    parts = [counted(part) for part in np.array_split(drawn, [0, 10, 11, 300])]
    found = sum(singles([between(part, i, ranges) for part in parts]) for i in range(ranges))
    assert found == sum(count == 1 for count in Counter(drawn.tolist()).values())
    assert found > 0


def test_nothing_has_no_words() -> None:
    assert singles([]) == 0
    assert singles([counted(np.zeros(0, dtype=np.uint64))]) == 0
