from __future__ import annotations

from collections import Counter
from dataclasses import replace

import naive_probabilistic
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import hierarchies

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.attack.kernels import patterns
from privrisk_spark.extensions.attack.kernels.agreement import LevelAgreement
from privrisk_spark.extensions.attack.kernels.patterns import ComparedFile, PatternCounts, n_patterns
from privrisk_spark.hierarchies.hierarchy import Hierarchy


def file_of(
    trees: list[Hierarchy], near: list[tuple[int, ...]], records: list[tuple[int, ...]], rows: list[int]
) -> ComparedFile:
    cells, agreements = [], []
    for i, tree in enumerate(trees):
        nodes, place = np.unique([record[i] for record in records], return_inverse=True)
        agreements.append(LevelAgreement(tree.at_depth, nodes.astype(np.int32), near[i]))
        cells.append(place.reshape(-1).astype(np.int32))
    return ComparedFile(tuple(agreements), np.column_stack(cells), np.array(rows))


@st.composite
def files(draw: st.DrawFn):
    trees = draw(st.lists(hierarchies(max_leaves=5, max_depth=3), min_size=1, max_size=4))
    near = [draw(st.sampled_from([(), (1,), (2, 1)])) for _ in trees]
    one = st.tuples(*(st.integers(0, tree.n_nodes - 1) for tree in trees))
    records = draw(st.lists(one, min_size=1, max_size=15))
    rows = draw(st.lists(st.integers(1, 4), min_size=len(records), max_size=len(records)))
    known = draw(st.lists(one, max_size=15))
    known_rows = draw(st.lists(st.integers(0, 3), min_size=len(known), max_size=len(known)))
    return trees, near, records, rows, known, known_rows


def as_counter(counts: PatternCounts) -> Counter[tuple[int, ...]]:
    return Counter(dict(zip((tuple(row) for row in counts.digits.tolist()), counts.pairs, strict=True)))


@given(files())
@settings(max_examples=120)
def test_counts_are_those_of_two_loops(drawn) -> None:
    trees, near, records, rows, known, known_rows = drawn
    file = file_of(trees, near, records, rows)
    codes = np.array(known, dtype=np.int32).reshape(-1, len(trees))
    found = file.counted(codes, np.array(known_rows, dtype=np.int64))
    assert as_counter(found) == naive_probabilistic.counted(trees, near, known, known_rows, records, rows)
    assert found == replace(file, together=False).counted(codes, np.array(known_rows, dtype=np.int64))
    every = file.patterns(codes)
    weight = np.array(known_rows, dtype=np.int64)[:, None] * np.array(rows)[None, :]
    assert PatternCounts.of(every.reshape(-1), weight.reshape(-1), file.levels) == found


def generated(k: int, card: int, n: int, m: int) -> tuple[ComparedFile, np.ndarray]:
    generator = np.random.default_rng(7)
    tree = Hierarchy.from_paths("a", [(f"v{i}", f"w{i // 3}") for i in range(card)])
    records = [tuple(row) for row in generator.integers(0, tree.n_nodes, (n, k)).tolist()]
    file = file_of([tree] * k, [(1,)] * k, records, generator.integers(1, 9, n).tolist())
    return file, generator.integers(0, tree.n_nodes, (m, k)).astype(np.int32)


def test_blocks_and_shared_look_ups_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nine attributes need codes of 32 bits, eight of 16; blocks of one record, and of all."""
    for k in (8, 9):
        file, known = generated(k, 6, 400, 300)
        rows = np.random.default_rng(1).integers(0, 5, len(known))
        found = file.counted(known, rows)
        assert found.total == int(rows.sum()) * int(file.rows.sum())
        assert found == replace(file, together=False).counted(known, rows)
        with monkeypatch.context() as patched:
            for name in ("_LEVELS", "_PAIRS"):
                patched.setattr(patterns, name, 2**9)
            assert found == file.counted(known, rows)
            assert (file.patterns(known) == replace(file, together=False).patterns(known)).all()
        halves = [file.counted(known[part], rows[part]) for part in (slice(0, 120), slice(120, None))]
        assert halves[0].plus(halves[1]) == found


def test_counts_are_exact_where_floats_are_not() -> None:
    """Of 2^31 + 1 times 2^31 + 1 pairs, and as many again that agree otherwise, no one is lost."""
    tree = Hierarchy.from_paths("a", [("x",), ("y",)])
    many = 2**31 + 1
    file = file_of([tree], [()], [(0,), (1,)], [many, 1])
    found = file.counted(np.array([[0]], dtype=np.int32), np.array([many]))
    assert found.pairs == (many * many, many)
    with pytest.raises(InputError, match="2\\^63 or more"):
        file.counted(np.array([[0]], dtype=np.int32), np.array([2**32]))


def test_counts_by_hand() -> None:
    """Two known a's and one b against three a's and a suppressed row: 6 agree, 3 disagree, 3 cannot be compared."""
    tree = Hierarchy.from_paths("x", [("a",), ("b",)])
    found = file_of([tree], [()], [(0,), (tree.root,)], [3, 1]).counted(
        np.array([[0], [1]], dtype=np.int32), np.array([2, 1])
    )
    assert found == PatternCounts((2,), (0, 1, 2), (6, 3, 3))


def test_what_cannot_be_counted_is_refused() -> None:
    tree = Hierarchy.from_paths("a", [("x",), ("y",)])
    good = file_of([tree], [()], [(0,)], [1])
    for changes, rule in (
        ({"rows": np.array([0])}, "has no records"),
        ({"cells": np.zeros((0, 1), dtype=np.int32), "rows": np.zeros(0, dtype=np.int64)}, "has no records"),
        ({"agreements": good.agreements * 2}, "one agreement for each"),
        ({"agreements": good.agreements * 30, "cells": np.zeros((1, 30), dtype=np.int32)}, "Take fewer levels"),
    ):
        with pytest.raises(InputError, match=rule):
            replace(good, **changes)
    known = np.array([[0]], dtype=np.int32)
    for rows in (np.array([-1]), np.array([1, 1])):
        with pytest.raises(InputError, match="must have a number of rows"):
            good.counted(known, rows)
    for levels in ((), (1,), (2, 0)):
        with pytest.raises(InputError, match="two levels or more"):
            n_patterns(levels)
    for code, pairs in ((3, 1), (-1, 1), (0, -1)):
        with pytest.raises(InputError, match="patterns must be numbers below 3"):
            PatternCounts.of(np.array([code]), np.array([pairs]), (2,))
