"""Distinct persons as dictionary vectors with signed counts: each cell's number of persons, in every way of working."""

from __future__ import annotations

import time

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import several_hierarchies

from privrisk_spark.errors import InputError
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.counting import persons
from privrisk_spark.kernels.counting.consistent import Axis, DenseCounts, SortedCounts
from privrisk_spark.kernels.counting.persons import Joins, signed_vectors
from privrisk_spark.kernels.counting.similarity import node_similarity
from privrisk_spark.kernels.search.counted_records import CountedRecords

WAYS = {
    "as it is": (2**20, {}),
    "joins worked out": (0, {}),
    "cells written out": (2**20, {"most_joined": 1}),
    "one person at a time": (2**20, {"pairs_at_once": 1}),
}


def counted(axes: list[Axis], person: np.ndarray, rows: np.ndarray, way: str) -> tuple[np.ndarray, np.ndarray]:
    table, options = WAYS[way]
    columns = [
        rows[:, i].astype(np.int32) if axis.known else np.zeros(len(rows), dtype=np.int32)
        for i, axis in enumerate(axes)
    ]
    parts = list(signed_vectors(Joins.of(axes, table=table), person, columns, **options))
    if not parts:
        return np.zeros((0, len(axes)), dtype=np.int32), np.zeros(0, dtype=np.int64)
    vectors = np.concatenate([np.column_stack(part[0]) for part in parts])
    distinct, member = np.unique(vectors, axis=0, return_inverse=True)
    counts = np.zeros(len(distinct), dtype=np.int64)
    np.add.at(counts, member.ravel(), np.concatenate([part[1] for part in parts]))
    return distinct.astype(np.int32), counts


Case = tuple[list[Hierarchy], list[Axis], np.ndarray, np.ndarray, list[int]]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    hierarchies = draw(several_hierarchies())
    meaning = draw(st.sampled_from(["subsumes", "compatible"]))
    axes = [
        Axis(h.at_depth, h.ancestor, meaning, known=draw(st.integers(0, 4)) > 0, wildcard=draw(st.booleans()))
        for h in hierarchies
    ]
    n = draw(st.integers(0, 14))
    rows = np.array([[draw(st.integers(0, h.n_nodes)) for h in hierarchies] for _ in range(n)], dtype=np.int32)
    person = np.array([draw(st.integers(0, 4)) for _ in range(n)], dtype=np.int64)
    record = [draw(st.integers(0, h.n_leaves)) for h in hierarchies]
    return hierarchies, axes, person, rows.reshape(n, len(hierarchies)), record


@pytest.mark.parametrize("way", WAYS)
@given(cases())
def test_every_cell_counts_each_person_once(way: str, case: Case) -> None:
    hierarchies, axes, person, rows, record = case
    vectors, counts = counted(axes, person, rows, way)
    assert counts.sum() == len(np.unique(person))
    plans = [DenseCounts.roll_up(axes, vectors, counts), SortedCounts.group(axes, vectors, counts)]
    lacking = [i for i, axis in enumerate(axes) if not axis.known]
    parents = [h.parent.tolist() for h in hierarchies]
    known = [[None if v == h.n_nodes else int(v) for v, h in zip(row, hierarchies, strict=True)] for row in rows]
    depths = [int(axis.code_depth[code]) for axis, code in zip(axes, record, strict=True)]
    for levels in naive.lattice(depths):
        nodes = [int(h.ancestor[code, x]) for h, code, x in zip(hierarchies, record, levels, strict=True)]
        want = sum(
            naive.count(
                parents,
                nodes,
                [row for row, who in zip(known, person, strict=True) if who == one],
                axes[0].consistency,
                wildcards=[axis.wildcard for axis in axes],
                lacking=lacking,
            )
            > 0
            for one in np.unique(person)
        )
        columns = [np.array([code], dtype=np.int32) for code in record]
        for plan in plans:
            assert plan.consistent(columns, levels, depths).tolist() == [want]
        assert CountedRecords(plans[1], columns, depths).consistent(slice(None), levels).tolist() == [want]


def world() -> tuple[list[Hierarchy], list[Axis]]:
    towns = [(f"town {i}", f"county {i // 4}", f"state {i // 16}") for i in range(64)]
    ages = [(f"{i}", f"of five {i // 5}", f"of twenty {i // 20}") for i in range(100)]
    hierarchies = [Hierarchy.from_paths("x", paths) for paths in (towns, ages)]
    return hierarchies, [Axis(h.at_depth, h.ancestor) for h in hierarchies]


@pytest.mark.parametrize("most", [4, 64])
def test_ways_agree_on_persons_of_very_different_numbers_of_rows(most: int) -> None:
    hierarchies, axes = world()
    rng = np.random.default_rng(7)
    visits = np.minimum(rng.zipf(1.5, 400), 300)
    person = np.repeat(np.arange(400), visits)
    rows = np.column_stack([rng.integers(0, h.n_leaves, len(person)) for h in hierarchies])
    shuffled = rng.permutation(len(person))
    joins = Joins.of(axes)
    columns = [rows[shuffled, i].astype(np.int32) for i in range(2)]
    parts = list(signed_vectors(joins, person[shuffled], columns, most_joined=most, pairs_at_once=1000))
    vectors = np.concatenate([np.column_stack(part[0]) for part in parts])
    counts = np.concatenate([part[1] for part in parts])
    plan = DenseCounts.roll_up(axes, vectors, counts)
    record = [np.arange(5, dtype=np.int32), np.arange(5, dtype=np.int32)]
    for levels in naive.lattice([3, 3]):
        at = [h.ancestor[:, x] for h, x in zip(hierarchies, levels, strict=True)]
        want = [
            len(set(person[(at[0][rows[:, 0]] == at[0][a]) & (at[1][rows[:, 1]] == at[1][b])].tolist()))
            for a, b in zip(*record, strict=True)
        ]
        assert plan.consistent(record, levels, [3, 3]).tolist() == want


def test_two_vectors_of_a_person_are_three_terms() -> None:
    """``t_1 + t_2 - t_1 ∨ t_2``: towns 0 and 5 meet in their state, ages 30 and 31 in their five years."""
    _, axes = world()
    (columns, counts), *rest = [
        part
        for part in signed_vectors(
            Joins.of(axes), np.zeros(2, dtype=np.int64), [np.array([0, 5], np.int32), np.array([30, 31], np.int32)]
        )
        if len(part[1])
    ]
    assert not rest
    assert sorted(counts.tolist()) == [-1, 1, 1]
    joined = [int(column[counts.tolist().index(-1)]) for column in columns]
    for axis, code, depth in zip(axes, joined, (1, 2), strict=True):
        assert code >= len(axis.at_depth)
        shared = axis.at_depth[{1: 0, 2: 30}[depth]][: depth + 1].tolist()
        assert axis.dictionary_chain()[code].tolist()[: depth + 2] == [*shared, code]


def test_a_relation_that_is_no_tree_is_refused() -> None:
    hierarchies, _ = world()
    of = hierarchies[0]
    axis = Axis(of.at_depth, of.ancestor, "similar", similarity=node_similarity(of.labels, 0.9))
    with pytest.raises(InputError, match="'shuffle' alone"):
        Joins.of([axis])


def test_what_is_written_out_at_once_is_bounded_by_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forty persons of 300 vectors each: by pairs alone they would be one piece of half a million cells."""
    _, axes = world()
    rng = np.random.default_rng(2)
    person = np.repeat(np.arange(40), 300)
    columns = [rng.integers(0, size, len(person)).astype(np.int32) for size in (64, 100)]
    monkeypatch.setattr(persons, "_CELLS_AT_ONCE", 20_000)
    seen: list[int] = []
    real = persons._put_together

    def counted(who, vectors, counts):  # type: ignore[no-untyped-def]
        seen.append(len(who))
        return real(who, vectors, counts)

    monkeypatch.setattr(persons, "_put_together", counted)
    totals = [part[1].sum() for part in signed_vectors(Joins.of(axes), person, columns, most_joined=10)]
    assert sum(totals) == 40
    assert max(seen) < 2 * 20_000


@pytest.mark.parametrize("general", [0.0, 0.02, 0.1])
def test_thousands_of_vectors_that_spread_take_no_minutes(general: float) -> None:
    """One person's 3,000 vectors, some of them general: what each of many cells counts is one or nothing."""
    hierarchies = world()[0]
    axes = [Axis(h.at_depth, h.ancestor, "compatible") for h in hierarchies]
    hierarchies, axes = [*hierarchies, hierarchies[1]], [*axes, axes[1]]
    rng = np.random.default_rng(3)
    rows = np.column_stack(
        [
            np.where(
                rng.random(3000) < general, rng.choice([h.root, h.parent[0]], 3000), rng.integers(0, h.n_leaves, 3000)
            )
            for h in hierarchies
        ]
    )
    rows = rows[(rows != [h.root for h in hierarchies]).any(axis=1)]
    columns = [rows[:, i].astype(np.int32) for i in range(3)]
    start = time.process_time()
    parts = list(signed_vectors(Joins.of(axes), np.zeros(len(rows), dtype=np.int64), columns))
    assert time.process_time() - start < 15  # one by one: more than a minute
    vectors = np.concatenate([np.column_stack(part[0]) for part in parts])
    counts = np.concatenate([part[1] for part in parts])
    plan = SortedCounts.group(axes, *_once(vectors, counts))
    records = np.column_stack([rng.integers(0, h.n_leaves, 50) for h in hierarchies])
    alike = [
        [(h.at_depth[node, : (h.at_depth[node] >= 0).sum()]).tolist() for node in range(h.n_nodes)] for h in hierarchies
    ]
    for levels in naive.lattice([3, 3, 3]):
        cells = [
            [int(h.ancestor[code, x]) for h, code, x in zip(hierarchies, record, levels, strict=True)]
            for record in records
        ]
        want = []
        for cell in cells:
            of_cell = np.ones(len(rows), dtype=bool)
            for i, node in enumerate(cell):
                fits = np.array([node in alike[i][code] or code in alike[i][node] for code in range(len(alike[i]))])
                of_cell &= fits[rows[:, i]]
            want.append(int(of_cell.any()))
        at = [records[:, i].astype(np.int32) for i in range(3)]
        assert plan.consistent(at, levels, [3, 3, 3]).tolist() == want


def _once(vectors: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    distinct, member = np.unique(vectors, axis=0, return_inverse=True)
    sums = np.zeros(len(distinct), dtype=np.int64)
    np.add.at(sums, member.ravel(), counts)
    return distinct.astype(np.int32), sums
