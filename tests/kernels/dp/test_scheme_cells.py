from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privrisk_spark.kernels.dp import scheme_cells
from privrisk_spark.kernels.dp.cell_places import CellPlaces
from privrisk_spark.kernels.dp.scheme_cells import SchemeCells, standing


@st.composite
def ancestors(draw: st.DrawFn) -> np.ndarray:
    """Nodes of leaf codes by level: any maps from one level to the next; numbers of nodes are as they come."""
    n, height = draw(st.integers(1, 9)), draw(st.integers(0, 3))
    node = draw(st.permutations(range(n)))
    table, offset = [list(node)], n
    for _ in range(height):
        above = {below: offset + draw(st.integers(0, 3)) for below in set(table[-1])}
        table.append([above[below] for below in table[-1]])
        offset += 4
    return np.array(table, dtype=np.int32).T


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[np.ndarray], list[list[int]], list[np.ndarray]]:
    tables = draw(st.lists(ancestors(), min_size=1, max_size=4))
    schemes = draw(st.lists(st.tuples(*[st.integers(0, t.shape[1] - 1) for t in tables]), min_size=1, max_size=3))
    n = draw(st.integers(0, 40))
    codes = [np.array(draw(st.lists(st.integers(0, len(t) - 1), min_size=n, max_size=n)), np.int32) for t in tables]
    return tables, [list(scheme) for scheme in schemes], codes


def literal(tables: list[np.ndarray], scheme: list[int], codes: list[np.ndarray]) -> list[tuple[int, ...]]:
    return [
        tuple(int(t[c, level]) for t, c, level in zip(tables, row, scheme, strict=True))
        for row in zip(*(column.tolist() for column in codes), strict=True)
    ]


@pytest.mark.parametrize("dense", [scheme_cells.DENSE_CELLS, 0])
def test_cells_are_counted(monkeypatch: pytest.MonkeyPatch, dense: int) -> None:
    """Planted: one code stands for all by the highest level, multiplicities left out where cells are dense."""
    monkeypatch.setattr(scheme_cells, "DENSE_CELLS", dense)

    @settings(max_examples=80, deadline=None)
    @given(cases(), st.integers(0, 5))
    def holds(case: tuple[list[np.ndarray], list[list[int]], list[np.ndarray]], seed: int) -> None:
        tables, schemes, codes = case
        times = np.random.default_rng(seed).integers(1, 5, len(codes[0]))
        stands = standing(tables, schemes)
        for scheme in schemes:
            cells = SchemeCells.of(tables, scheme)
            wanted = Counter(literal(tables, scheme, codes))
            weighed: Counter[tuple[int, ...]] = Counter()
            for cell, n in zip(literal(tables, scheme, codes), times.tolist(), strict=True):
                weighed[cell] += n
            alike = [of[code] for of, code in zip(stands, codes, strict=True)]
            for asked, given_times, expected in (
                (codes, None, wanted), (codes, times, weighed), (alike, None, wanted), (alike, times, weighed),
            ):  # fmt: skip
                words, counts = cells.counted(asked, given_times)
                nodes = cells.unpacked(words)
                found = list(zip(*(node.tolist() for node in nodes), strict=True))
                assert found == sorted(expected)
                assert counts.tolist() == [expected[cell] for cell in found]

    holds()


def test_cells_beyond_one_word() -> None:
    """Ten attributes of 200 values are 2^76 cells."""
    n = 200
    tables = [np.column_stack([np.arange(n), np.full(n, n)]).astype(np.int32) for _ in range(10)]
    codes = [np.random.default_rng(i).integers(0, n, 500).astype(np.int32) for i in range(10)]
    codes = [np.concatenate([code, code[:100]]) for code in codes]
    cells = SchemeCells.of(tables, [0] * 10)
    assert cells.packing.n_words > 1
    words, counts = cells.counted(codes)
    found = list(zip(*(node.tolist() for node in cells.unpacked(words)), strict=True))
    wanted = Counter(literal(tables, [0] * 10, codes))
    assert found == sorted(wanted)
    assert counts.tolist() == [wanted[cell] for cell in found]


@pytest.mark.parametrize("most", [2**22, 0])
def test_cells_are_found(most: int) -> None:
    """By an array of places or by bisection. Planted: a node that does not occur taken for the last that does."""

    @settings(max_examples=120, deadline=None)
    @given(cases(), st.integers(0, 2**32 - 1))
    def holds(case: tuple[list[np.ndarray], list[list[int]], list[np.ndarray]], seed: int) -> None:
        tables, schemes, codes = case
        generator = np.random.default_rng(seed)
        for scheme in schemes:
            # Some cells of the records and some others, in any order.
            there = {cell for cell in literal(tables, scheme, codes) if generator.random() < 0.5}
            random_codes = [generator.integers(0, len(t), 5).astype(np.int32) for t in tables]
            there |= set(literal(tables, scheme, random_codes))
            given_cells = [list(cell) for cell in there] if generator.random() < 0.9 else []
            nodes = np.array(given_cells, dtype=np.int32).reshape(-1, len(tables))
            places = CellPlaces.of(tables, scheme, nodes, most=most)
            place_of = {tuple(cell): i for i, cell in enumerate(given_cells)}
            found = places.find(codes)
            assert found.tolist() == [place_of.get(cell, len(nodes)) for cell in literal(tables, scheme, codes)]

    holds()
