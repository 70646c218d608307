from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privrisk_spark.extensions.attack.kernels.differences import NumberDifference
from privrisk_spark.extensions.attack.kernels.nearest import SearchedFile

NUMBERS = st.one_of(st.integers(-3, 3).map(float), st.floats(-1e6, 1e6), st.sampled_from([1e5, 1e5 + 1e-4, -1e6]))


def file_of(file: np.ndarray, known: np.ndarray, weights: np.ndarray) -> tuple[SearchedFile, np.ndarray]:
    """A file of numbers, and known records as nodes: the numbers that occur, then one that may be any."""
    p, k = file.shape
    differences, cells, codes = [], np.empty((p, k), dtype=np.int32), np.empty(known.shape, dtype=np.int32)
    for j in range(k):
        values = np.unique(np.concatenate([file[:, j], known[:, j][np.isfinite(known[:, j])]]))
        low, high = np.append(values, -np.inf), np.append(values, np.inf)
        nodes, place = np.unique(np.searchsorted(values, file[:, j]).astype(np.int32), return_inverse=True)
        cells[:, j] = place.reshape(-1)
        codes[:, j] = np.where(np.isfinite(known[:, j]), np.searchsorted(values, known[:, j]), len(values))
        differences.append(NumberDifference(low, high, nodes))
    return SearchedFile(tuple(differences), weights, cells, np.arange(1, p + 1)), codes


@given(st.data(), st.integers(1, 4), st.integers(1, 8), st.integers(1, 5))
@settings(max_examples=150, deadline=None)
def test_points_are_those_of_two_loops(data: st.DataObject, k: int, p: int, m: int) -> None:
    """Whatever cancels: numbers far from 0 and next to each other; some known records lack a number."""
    file = np.array(data.draw(st.lists(st.tuples(*[NUMBERS] * k), min_size=p, max_size=p, unique=True)))
    one = st.one_of(NUMBERS, st.just(float("nan")))
    known = np.array(data.draw(st.lists(st.tuples(*[one] * k), min_size=m, max_size=m)))
    weights = np.full(k, 1 / k)
    searched, codes = file_of(file, known, weights)
    found, slow = searched.linked(codes), replace(searched, as_points=False).linked(codes)
    np.testing.assert_allclose(found.distance, slow.distance, rtol=1e-9, atol=1e-12)
    for i in range(m):
        squares = np.nansum(weights * (file - known[i]) ** 2, axis=1)
        least = squares.min()
        tied = squares <= least + 1e-9 * (1 + least)
        # Where rounding decides whether there is a tie, both may be right.
        doubtful = np.abs(squares - least - 1e-9 * (1 + least)) <= 1e-12 * (1 + least)
        if not doubtful.any():
            assert found.rows[i] == slow.rows[i] == (np.flatnonzero(tied) + 1).sum()
            assert found.first[i] == slow.first[i] == np.flatnonzero(tied)[0]
            for j in range(p):
                own = np.array([j])
                alone = found.at(np.array([i]))
                assert searched.holds(codes[i : i + 1], own, alone).tolist() == [bool(tied[j])]


def test_many_points_are_linked_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(3)
    file, known = generator.normal(size=(300, 3)).round(1), generator.normal(size=(70, 3)).round(1)
    searched, codes = file_of(np.unique(file, axis=0), known, np.array([0.5, 0.3, 0.2]))
    whole = searched.linked(codes)
    monkeypatch.setattr("privrisk_spark.extensions.attack.kernels.points._PAIRS", 900)
    parts = replace(searched).linked(codes)
    assert whole.distance.tobytes() == parts.distance.tobytes()
    assert whole.rows.tolist() == parts.rows.tolist()
    slow = replace(searched, as_points=False).linked(codes)
    assert whole.rows.tolist() == slow.rows.tolist()
