from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive_local import cost, first_regions, leaf_order, least_cost
from recodings import Labels, Rows, small_tables, table_of

from privrisk_spark.kernels.recoding.full_domain import FullDomain
from privrisk_spark.kernels.recoding.local import hilbert as module
from privrisk_spark.kernels.recoding.local.hilbert import curve, hilbert
from privrisk_spark.kernels.recoding.metrics import Measured


@pytest.mark.parametrize(("axes", "bits"), [(1, 4), (2, 1), (2, 4), (3, 3), (4, 2), (5, 1)])
def test_the_curve_passes_every_point_once_and_goes_a_step_at_a_time(axes: int, bits: int) -> None:
    """And each half, quarter and so on of it stays in a cube. Planted: the words without the Gray code."""
    grid = np.array(list(itertools.product(range(2**bits), repeat=axes))).T
    (at,) = curve(list(grid), bits)
    assert sorted(at.tolist()) == list(range(2 ** (axes * bits)))
    points = grid[:, np.argsort(at)].T
    assert (np.abs(np.diff(points, axis=0)).sum(axis=1) == 1).all()
    cubes = points.reshape(-1, 2**axes, axes) // 2
    assert (cubes == cubes[:, :1]).all()


def test_a_curve_that_needs_several_words_is_the_same() -> None:
    rng = np.random.default_rng(4)
    axes = list(rng.integers(0, 2**9, (7, 500)))
    words = curve(axes, 9)
    assert len(words) == 2
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_WORD_BITS", 5)
        short = curve(axes, 9)
    assert len(short) == 13
    assert (np.lexsort(words[::-1]) == np.lexsort(short[::-1])).all()


def side(of: list[list[int]]) -> tuple[list[int], int]:
    """Coordinate of each code, and bits: which of the siblings its node is, from the top."""
    places, bits = [0] * len(of), 0
    for level in reversed(range(len(of[0]))):
        siblings: dict[int | None, list[int]] = {}
        for code in leaf_order(of):
            above = of[code][level + 1] if level + 1 < len(of[0]) else None
            if of[code][level] not in siblings.setdefault(above, []):
                siblings[above].append(of[code][level])
        here = max(len(nodes) - 1 for nodes in siblings.values()).bit_length()
        for code, path in enumerate(of):
            above = path[level + 1] if level + 1 < len(path) else None
            places[code] = places[code] * 2**here + siblings[above].index(path[level])
        bits += here
    return places, bits


def hold_against_least_cost(labels: Labels, rows: Rows, k: int, stretch: int, **patched: int) -> None:
    """What runs cost, against all runs of every stretch."""
    table = table_of(labels, rows)
    sides = [side(of) for of in labels]
    bits = max(1, *(bits for _, bits in sides))

    def on_curve(row: tuple[int, ...]) -> int:
        at = [of[code] << (bits - own) for (of, own), code in zip(sides, row, strict=True)]
        return int(curve([np.array([axis]) for axis in at], bits)[0][0])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "STRETCH", stretch)
        for name, value in patched.items():
            patch.setattr(module, name, value)
        found = hilbert(Measured.of(table), k)
    expected = 0.0
    for region in first_regions(labels, [(row, 0) for row in rows]):
        if len(region) < k:
            continue
        different = sorted({row for row, _ in region}, key=on_curve)
        records = [[one for one in region if one[0] == row] for row in different]
        length = max(stretch, 4 * k)
        parts = [records[begin : begin + length] for begin in range(0, len(records), length)]
        if len(parts) > 1 and sum(len(record) for record in parts[-1]) < k:
            parts[-2:] = [parts[-2] + parts[-1]]
        expected += sum(least_cost(labels, part, k) for part in parts)
    by_class: dict[int, list] = {}
    for piece in range(len(found.of)):
        row = tuple(int(code) for code in table.vectors[piece])
        by_class.setdefault(int(found.of[piece]), []).extend([(row, 0)] * int(found.rows[piece]))
    by_class.pop(-1, None)
    assert math.isclose(sum(cost(labels, group) for group in by_class.values()), expected, abs_tol=1e-9)


@given(small_tables(most_rows=40), st.integers(1, 7), st.sampled_from([1, 2, 1000]), st.sampled_from([1, 10, 1000]))
def test_no_runs_of_a_stretch_cost_less(given_table: tuple[Labels, Rows], k: int, stretch: int, at_once: int) -> None:
    hold_against_least_cost(*given_table, k, stretch, _AT_ONCE=at_once)


@pytest.mark.parametrize("seed", range(8))
def test_so_it_is_of_tables_of_several_stretches_and_a_curve_of_several_words(seed: int) -> None:
    """Planted: a leaf has a cost; stretches of fewer than 4 k records; words in another order."""
    rng = np.random.default_rng(seed)
    ages = [[code, code // 2, code // 6, 0] for code in range(12)]
    places = [[code, code // 3, 0] for code in range(9)]
    rows = list(zip(rng.integers(0, 12, 70).tolist(), (rng.integers(0, 9, 70) ** 2 // 9).tolist(), strict=True))
    for k in (2, 3, 5):
        for stretch in (1, 16, 1000):
            hold_against_least_cost([ages, places], rows, k, stretch, _AT_ONCE=60, _WORD_BITS=3)


def test_runs_are_of_least_cost_and_not_as_short_as_they_may_be() -> None:
    """Two rows of value 0, one of 1, two of 2: 0 alone would leave the 1 to the 2, with which it has the root alone."""
    tree = np.array([[0, 0, 0], [1, 0, 0], [2, 1, 0]], dtype=np.int32)
    table = FullDomain.of([tree], np.arange(3, dtype=np.int32)[:, None], np.array([2, 1, 2]))
    assert hilbert(Measured.of(table), 2).levels[:, 0].tolist() == [1, 1, 0]
    # A leaf costs nothing: four rows at the root are less than nine at a half, and were not if leaves cost a quarter.
    tree = np.array([[0, 0, 0], [1, 0, 0], [2, 1, 0], [3, 1, 0]], dtype=np.int32)
    table = FullDomain.of([tree], np.arange(4, dtype=np.int32)[:, None], np.array([5, 1, 2, 1]))
    assert hilbert(Measured.of(table), 2).levels[:, 0].tolist() == [0, 2, 2, 2]
