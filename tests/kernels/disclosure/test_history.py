"""What is out already of a record, against a loop over releases, records and values."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from privrisk_spark.kernels.disclosure.history import meet


@given(data=st.data(), n=st.integers(1, 5), k=st.integers(1, 3), e=st.integers(0, 12))
def test_the_meet_is_the_deepest_level_of_an_unchanged_value(data: st.DataObject, n: int, k: int, e: int) -> None:
    def numbers(rows: int, high: int) -> np.ndarray:
        return np.array([[data.draw(st.integers(0, high)) for _ in range(k)] for _ in range(rows)]).reshape(rows, k)

    depths, known, levels, paths = numbers(n, 4), numbers(n, 2), numbers(e, 4), numbers(e, 2)
    record = np.array([data.draw(st.integers(0, n - 1)) for _ in range(e)], dtype=np.int64)
    found = meet(depths.astype(np.int8), record, levels.astype(np.int8), paths, known)
    for r in range(n):
        mine = [j for j in range(e) if record[j] == r]
        for i in range(k):
            out = [int(levels[j, i]) for j in mine if paths[j, i] == known[r, i]]
            assert found.levels[r, i] == min([int(depths[r, i]), *out])
        assert found.releases[r] == len(mine)
        assert found.changed[r] == any(paths[j, i] != known[r, i] for j in mine for i in range(k))
