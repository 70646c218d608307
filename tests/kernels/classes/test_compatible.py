from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from privrisk_spark.kernels.classes.compatible import compatible_persons, compatible_sums

K, ROOT = 3, 2

CLASSES = st.lists(st.tuples(*[st.integers(0, ROOT)] * K), unique=True, max_size=20)
WILD = st.sets(st.integers(0, K - 1))


@given(CLASSES, WILD, st.booleans())
def test_sums_over_pairs_of_compatible_classes(keys: list[tuple[int, ...]], wild: set[int], suppressed: bool) -> None:
    """Literally: every pair compared, value by value."""
    amounts = np.array([[i + 1, 1000 * i] for i in range(len(keys))], dtype=np.int64).reshape(-1, 2)
    lost = [suppressed and key == (ROOT,) * K for key in keys]

    def compatible(a: int, b: int) -> bool:
        one, other = keys[a], keys[b]
        return (
            lost[a]
            or lost[b]
            or all(x == y or (i in wild and ROOT in (x, y)) for i, (x, y) in enumerate(zip(one, other, strict=True)))
        )

    expected = [
        sum((amounts[b] for b in range(len(keys)) if compatible(a, b)), np.zeros(2, dtype=np.int64))
        for a in range(len(keys))
    ]
    found = compatible_sums(
        np.array(keys, dtype=np.int32).reshape(-1, K),
        amounts,
        [ROOT] * K,
        sorted(wild),
        np.array(lost, dtype=np.bool_) if suppressed else None,
    )
    assert found.tolist() == [one.tolist() for one in expected]


def test_a_record_without_any_value_is_in_every_crowd() -> None:
    nodes = np.array([[0, 0], [1, 0], [ROOT, 0], [ROOT, ROOT]], dtype=np.int32)
    rows = np.array([[1], [1], [1], [5]], dtype=np.int64)
    assert compatible_sums(nodes, rows, [ROOT, ROOT], [0, 1])[:, 0].tolist() == [7, 7, 8, 8]
    assert compatible_sums(nodes, rows, [ROOT, ROOT], [0])[:, 0].tolist() == [2, 2, 3, 5]
    assert compatible_sums(nodes, rows, [ROOT, ROOT], [], nodes[:, 1] == ROOT)[:, 0].tolist() == [6, 6, 6, 8]


@given(CLASSES.filter(len), WILD, st.lists(st.tuples(st.integers(0, 19), st.integers(0, 4)), max_size=40))
def test_each_person_counts_once_in_overlapping_classes(
    keys: list[tuple[int, ...]], wild: set[int], pairs: list[tuple[int, int]]
) -> None:
    """Literally: who has a row in any class that is compatible."""
    pairs = [(number % len(keys), who) for number, who in pairs]

    def compatible(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
        return all(x == y or (i in wild and ROOT in (x, y)) for i, (x, y) in enumerate(zip(one, other, strict=True)))

    expected = [len({who for number, who in pairs if compatible(key, keys[number])}) for key in keys]
    found = compatible_persons(
        np.array(keys, dtype=np.int32),
        np.array([number for number, _ in pairs], dtype=np.int64),
        np.array([who for _, who in pairs], dtype=np.int64),
        [ROOT] * K,
        sorted(wild),
    )
    assert found.tolist() == expected
