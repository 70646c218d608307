"""Words that occur once are those of a counter, however they come in parts."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from privrisk_spark.kernels.numeric.uniqueness import alone, between, counted, singles, spanned


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


@pytest.mark.parametrize("ranges", [1, 3])
def test_who_has_a_word_alone_is_who_of_a_dict(ranges: int) -> None:
    generator = np.random.default_rng(6)
    words, persons = generator.integers(0, 2**64, 50, dtype=np.uint64), np.arange(30, dtype=np.uint64)
    drawn, who = generator.choice(words, 90), generator.choice(persons, 90)
    held: dict[int, set[int]] = {}
    for word, person in zip(drawn.tolist(), who.tolist(), strict=True):
        held.setdefault(word, set()).add(person)
    parts = [spanned(drawn[rows], who[rows]) for rows in np.array_split(np.arange(90), [0, 10, 11, 60])]
    found = [alone([between(part, i, ranges) for part in parts]) for i in range(ranges)]
    wanted = {person for persons_of in held.values() if len(persons_of) == 1 for person in persons_of}
    assert set(np.concatenate(found).tolist()) == wanted
    assert 0 < len(wanted) < 30
    assert len(alone([])) == 0
