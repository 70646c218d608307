"""τ₁ and τ₂ against fitting by hand, against known populations, and at their bounds."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.measures.log_linear import MOST_CELLS, fitted, uniques_at_risk

TABLES = st.dictionaries(st.tuples(*[st.integers(0, 2)] * 3), st.integers(1, 6), min_size=1, max_size=12)


def arrays(table: dict[tuple[int, ...], int]) -> tuple[np.ndarray, np.ndarray]:
    return np.array(list(table), dtype=np.int32), np.array(list(table.values()), dtype=np.int64)


def by_hand(table: dict[tuple[int, ...], int], margins: list[tuple[int, ...]]) -> dict[tuple[int, ...], float]:
    """Deming and Stephan's procedure cell by cell, over all combinations of values that occur; as many rounds."""
    values = [sorted({cell[i] for cell in table}) for i in range(len(next(iter(table))))]
    cells = dict.fromkeys(itertools.product(*values), 1.0)
    for _ in range(200):
        for margin in margins:
            wanted: dict[tuple[int, ...], float] = {}
            there: dict[tuple[int, ...], float] = {}
            for cell, value in cells.items():
                key = tuple(cell[i] for i in margin)
                there[key] = there.get(key, 0.0) + value
                wanted[key] = wanted.get(key, 0.0) + table.get(cell, 0)
            for cell in cells:
                key = tuple(cell[i] for i in margin)
                cells[cell] *= wanted[key] / there[key] if there[key] else 0.0
    return cells


@settings(max_examples=12, deadline=None)
@given(TABLES)
def test_fitted_by_hand(table: dict[tuple[int, ...], int]) -> None:
    nodes, counts = arrays(table)
    for effects, size in (("main effects", 1), ("two-way", 2)):
        expected = by_hand(table, list(itertools.combinations(range(3), size)))
        found = fitted(nodes, counts, effects)  # type: ignore[arg-type]
        assert found is not None
        assert found == pytest.approx([expected[cell] for cell in table], rel=1e-6, abs=1e-7)


@settings(max_examples=40)
@given(TABLES, st.sampled_from([0.01, 0.3, 1.0]), st.randoms(use_true_random=False))
def test_bounds_and_order(table: dict[tuple[int, ...], int], fraction: float, pick) -> None:
    """Somebody alone is matched rightly, so τ₁ <= τ₂; all are, if everybody is in the sample."""
    nodes, counts = arrays(table)
    order = list(range(len(counts)))
    pick.shuffle(order)
    for effects in ("main effects", "two-way"):
        found = uniques_at_risk(nodes, counts, fraction, effects)
        assert found is not None
        assert 0 <= found.tau1 <= found.tau2 + 1e-12
        assert found.tau2 <= found.uniques + 1e-12
        low, high = found.interval
        assert 0 <= low <= found.tau1 <= high <= found.uniques + 1e-12
        if fraction == 1:
            assert found.tau1 == found.uniques == int((counts == 1).sum())
        again = uniques_at_risk(nodes[order], counts[order], fraction, effects)
        assert again is not None
        assert (again.tau1, again.tau2) == pytest.approx((found.tau1, found.tau2), rel=1e-7)


def test_worked_example() -> None:
    """Of the 2 x 2 table 1, 2 / 3, 4 the unique cell is expected to have 3 · 4 / 10 = 1.2, and with π = 1/2 d = 1.2."""
    nodes = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=np.int32)
    found = uniques_at_risk(nodes, np.array([1, 2, 3, 4]), 0.5, "main effects")
    assert found is not None
    assert found.tau1 == pytest.approx(math.exp(-1.2))
    assert found.tau2 == pytest.approx((1 - math.exp(-1.2)) / 1.2)
    # Two attributes and the effect of their pair are the table itself: d = 1.
    full = uniques_at_risk(nodes, np.array([1, 2, 3, 4]), 0.5, "two-way")
    assert full is not None
    assert full.tau1 == pytest.approx(math.exp(-1))


def test_a_population_of_the_model_is_found() -> None:
    """Independent attributes, cells drawn as Poisson numbers: what is estimated is what is so, within its interval."""
    pick = np.random.default_rng(11)
    shares = [1 / np.arange(1, 13), 1 / np.arange(1, 13) ** 1.5, 1 / np.arange(1, 9)]
    cells = np.einsum("i,j,k->ijk", *(share / share.sum() for share in shares))
    off, wide = 0.0, 0.0
    for _ in range(20):
        people = pick.poisson(4000 * cells)
        sample = pick.binomial(people, 0.1)
        nodes = np.argwhere(sample > 0).astype(np.int32)
        counts = sample[sample > 0].astype(np.int64)
        found = uniques_at_risk(nodes, counts, 0.1, "main effects")
        assert found is not None
        alone = int(((sample == 1) & (people == 1)).sum())
        off += found.tau1 - alone
        wide += found.deviation**2
        right = float((1 / people[sample == 1]).sum())
        assert found.tau2 == pytest.approx(right, rel=0.35)
    assert abs(off) < 4 * math.sqrt(wide)


def test_what_is_not_fitted_and_what_is_refused() -> None:
    codes = np.repeat(np.arange(600, dtype=np.int32)[:, None], 2, axis=1)
    assert MOST_CELLS < 600**2
    assert uniques_at_risk(codes, np.ones(600, dtype=np.int64), 0.5, "two-way") is None
    one = np.zeros((1, 1), dtype=np.int32)
    for nodes, counts, fraction, why in (
        (one, np.array([1, 2]), 0.5, "one count per combination"),
        (one, np.array([0]), 0.5, "at least 1"),
        (one, np.array([1]), 0.0, "sampling fraction"),
    ):
        with pytest.raises(InputError, match=why):
            uniques_at_risk(nodes, counts, fraction, "main effects")
    nothing = uniques_at_risk(one[:0], np.zeros(0, dtype=np.int64), 0.5, "two-way")
    assert nothing is not None
    assert (nothing.uniques, nothing.tau1, nothing.interval) == (0, 0.0, (0.0, 0.0))
