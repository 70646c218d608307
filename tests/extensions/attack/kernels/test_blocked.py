from __future__ import annotations

from dataclasses import replace
from typing import Any

import naive_linkage
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from linked_files import file_of, file_of_numbers, files, noisy, weighed_file_of

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.attack.kernels.agreement import LevelAgreement, LostWeight, NumberAgreement
from privrisk_spark.extensions.attack.kernels.blocked import (
    BlockedFile,
    ConsistentCells,
    PrincipalAxis,
    axis_blocks,
    consistent_blocks,
    fitting_attributes,
)
from privrisk_spark.extensions.attack.kernels.membership import dealt_in_blocks
from privrisk_spark.extensions.attack.kernels.nearest import SearchedFile
from privrisk_spark.extensions.attack.kernels.recall import kept
from privrisk_spark.hierarchies.hierarchy import Hierarchy


def check_complete(blocked: BlockedFile, known: np.ndarray) -> np.ndarray:
    """What is said to be complete is what every record gives, and nothing found in a block is nearer than the truth."""
    found, complete = blocked.told(known)
    every = blocked.file.linked(known)
    np.testing.assert_array_equal(found.rows[complete], every.rows[complete])
    np.testing.assert_array_equal(found.first[complete], every.first[complete])
    np.testing.assert_allclose(found.distance[complete], every.distance[complete], atol=1e-12)
    assert (found.distance >= every.distance - 1e-12).all()
    return complete


@given(files(), st.data())
@settings(max_examples=120, deadline=None)
def test_blocks_of_consistent_cells_are_those_of_two_loops(drawn: Any, data: st.DataObject) -> None:
    """The candidates are the records whose chosen cells are nearest to the known ones; among them two loops search."""
    trees, weights, records, rows, known = drawn
    weighty = [j for j in range(len(trees)) if weights[j]]
    by = tuple(sorted(data.draw(st.sets(st.sampled_from(weighty), min_size=1))))
    blocked = BlockedFile(file_of(trees, weights, records, rows), ConsistentCells(by))
    codes = np.array(known, dtype=np.int32)
    found = blocked.linked(codes)
    for i, mine in enumerate(known):
        apart = [
            sum(weights[j] * naive_linkage.level_difference(trees[j], mine[j], theirs[j]) for j in by)
            for theirs in records
        ]
        block = [r for r, d in enumerate(apart) if d <= min(apart) + 1e-7]
        ((least, tied, near),) = naive_linkage.linked(
            trees, weights, [mine], [records[r] for r in block], [rows[r] for r in block]
        )
        assert found.distance[i] == pytest.approx(least, abs=1e-12)
        assert (found.rows[i], found.first[i]) == (tied, block[min(near)])
        own = np.arange(len(records))
        held = blocked.holds(np.repeat(codes[i : i + 1], len(own), axis=0), own, found.at(np.full(len(own), i)))
        assert np.flatnonzero(held).tolist() == sorted(block[r] for r in near)
    check_complete(blocked, codes)


@given(files())
@settings(max_examples=60, deadline=None)
def test_whoever_fits_a_record_loses_nothing(drawn: Any) -> None:
    """Blocks cannot lose where some record is at no distance: all of these are in the block, and the others are not."""
    trees, weights, records, rows, known = drawn
    file = file_of(trees, weights, records, rows)
    blocks = ConsistentCells(tuple(j for j in range(len(trees)) if weights[j]))
    codes = np.array([*known, *records], dtype=np.int32)
    for reading in ("nearest", "uniform"):
        read = replace(file, differences=tuple(replace(one, reading=reading) for one in file.differences))
        complete = check_complete(BlockedFile(read, blocks), codes)
        if reading == "nearest":
            assert complete[file.linked(codes).distance == 0].all()


NAMES = {"distance": lambda drawn: file_of(*drawn[:4]), "match weights": lambda drawn: weighed_file_of(*drawn[:4])}


@pytest.mark.parametrize("kind", NAMES)
@given(files(), st.data())
@settings(max_examples=100, deadline=None)
def test_blocks_find_what_comparing_with_everything_finds_or_say_that_it_is_open(
    kind: str, drawn: Any, data: st.DataObject
) -> None:
    """The contract of all searches in blocks; where a block holds everything it is met with nothing open."""
    trees, _, records, _, known = drawn
    file = NAMES[kind](drawn)
    weighty = [j for j in range(len(trees)) if file.weights[j]]
    by = tuple(sorted(data.draw(st.sets(st.sampled_from(weighty), min_size=1))))
    blocked, codes = BlockedFile(file, ConsistentCells(by)), np.array(known, dtype=np.int32)
    check_complete(blocked, codes)
    # A column in which all known cells are suppressed parts nobody.
    whole = codes.copy()
    whole[:, list(by)] = [trees[j].root for j in by]
    every, (found, complete) = file.linked(whole), blocked.told(whole)
    assert complete.all()
    assert found.distance.tobytes() == every.distance.tobytes()
    assert (found.rows.tolist(), found.first.tolist()) == (every.rows.tolist(), every.first.tolist())
    own = np.arange(len(records))
    for i in range(len(whole)):
        asked = np.repeat(whole[i : i + 1], len(own), axis=0), own
        same = every.at(np.full(len(own), i))
        assert blocked.holds(*asked, same).tolist() == file.holds(*asked, same).tolist()


@given(files(), st.data())
@settings(max_examples=80, deadline=None)
def test_candidates_by_match_weights_are_those_whose_cells_fit(drawn: Any, data: st.DataObject) -> None:
    """By two loops over labels: records that cover or are covered in the columns of the block, or are suppressed."""
    trees, _, records, _, known = drawn
    by = tuple(sorted(data.draw(st.sets(st.sampled_from(range(len(trees))), min_size=1))))
    blocked = BlockedFile(weighed_file_of(*drawn[:4]), ConsistentCells(by))
    codes = np.array(known, dtype=np.int32)
    for those, candidates, _ in blocked.compared(codes):
        mine = known[those[0]]
        fitting = [
            r
            for r, theirs in enumerate(records)
            if all(naive_linkage.level_difference(trees[j], mine[j], theirs[j]) == 0 for j in by)
        ]
        # Where nobody fits, those of the block lack least; that is not for a loop to say.
        assert not fitting or candidates.tolist() == fitting


def test_a_tie_at_the_edge_of_a_block_is_not_said_to_be_complete() -> None:
    """Outside there is one as near as the nearest inside: the answer lacks it, and that is open. A bit nearer is not.

    A record known as (0, 1) has (0, 0) in the block of the first column, at the weight of the second; outside of it
    (1, 1) is at the weight of the first.
    """
    trees = [Hierarchy.from_paths("a", [("u",), ("v",)])] * 2
    known = np.array([[0, 1]], dtype=np.int32)
    for weight, sure in ((0.5, False), (0.5 + 1e-10, False), (0.51, True), (0.49, False)):
        by_distance = file_of(trees, [weight, 1 - weight], [(0, 0), (1, 1)], [1, 1])
        # Bits that are lost where cells differ, as far apart.
        lost = tuple(
            LostWeight(LevelAgreement(tree.at_depth, one.nodes, ()), (bits, 0.0, 0.0))
            for tree, one, bits in zip(trees, by_distance.differences, (weight, 1 - weight), strict=True)
        )
        for file in (by_distance, replace(by_distance, differences=lost, weights=np.full(2, 0.5))):
            blocked = BlockedFile(file, ConsistentCells((0,)))
            found, complete = blocked.told(known)
            got, linked, dealt_wholly = dealt_in_blocks(blocked, known, np.ones(1, dtype=np.int64))
            assert complete.tolist() == dealt_wholly.tolist() == [sure]
            assert found.rows.tolist() == linked.rows.tolist() == [1]
            assert got.tolist() == [1.0, 0.0]
            missed = abs(weight - 0.5) < 1e-9 or weight < 0.5
            assert bool(kept(found, file.linked(known))[0]) is not missed


def test_what_no_candidate_has_counts_to_what_is_proved() -> None:
    """Of a suppressed known cell every candidate lacks the same, so that it speaks against none of them."""
    tree = Hierarchy.from_paths("a", [(f"v{i}",) for i in range(4)])
    records = [(0, 0, 1), (1, 1, 1), (2, 1, 2)]
    file = weighed_file_of([tree] * 3, [], records, [1, 1, 1])
    known = np.array([[0, tree.root, 1], [1, tree.root, tree.root]], dtype=np.int32)
    assert check_complete(BlockedFile(file, ConsistentCells((0,))), known).all()


def test_numbers_that_were_changed_a_little_are_in_each_others_blocks_by_match_weights() -> None:
    """Candidates are those within half a deviation in the columns of the block: without noise beyond none is lost."""
    known, shown, ends = noisy(300, (0.1, 0.1, 0.1), seed=6)
    by_numbers, member = file_of_numbers(shown, ends)
    lost = tuple(
        LostWeight(NumberAgreement(ends, ends, one.nodes), (6.0, 3.0, -4.0, 0.0)) for one in by_numbers.differences
    )
    file = replace(by_numbers, differences=lost)
    assert fitting_attributes(file, known) == [0, 1, 2]
    blocks = consistent_blocks(file, known, [0, 1, 2], most=300 * 300 * 3)
    assert blocks is not None
    blocked = BlockedFile(file, blocks)
    for those, candidates, _ in blocked.compared(known):
        values = np.column_stack([ends[one.nodes[file.cells[:, j]]] for j, one in enumerate(by_numbers.differences)])
        apart = np.abs(values - ends[known[those[0]]])[:, list(blocks.attributes)]
        near = np.flatnonzero((apart <= 0.5).all(axis=1))
        assert not len(near) or candidates.tolist() == near.tolist()
    complete = check_complete(blocked, known)
    assert complete.mean() > 0.8
    within = (np.abs(ends[known] - ends[shown]) <= 0.5).all(axis=1)
    found = blocked.linked(known)
    # Whoever's own row is the likeliest of all is in the own block, but for noise of more than half a deviation.
    held = blocked.holds(known, member, found)
    every = file.linked(known)
    assert held[within & file.holds(known, member, every)].all()


@pytest.mark.parametrize("kind", NAMES)
@given(files(), st.data())
@settings(max_examples=30, deadline=None)
def test_some_records_are_searched_by_their_own_cells_to_the_same_bits(
    kind: str, drawn: Any, data: st.DataObject
) -> None:
    """As in the whole file, whose terms are added in an order of their own; and others of these in turn."""
    _, _, records, _, known = drawn
    file, codes = NAMES[kind](drawn), np.array(known, dtype=np.int32)
    some = sorted(data.draw(st.sets(st.sampled_from(range(len(records))), min_size=1)))
    for few in (0, 2**12):
        there = replace(file, few=few).among(np.array(some))
        assert all(one.cells <= len(some) for one in there.differences)
        found = there.linked(codes)
        for i in range(len(codes)):
            every = file.distances(np.repeat(codes[i : i + 1], len(some), axis=0), np.array(some))
            assert found.distance[i] == every.min()
            assert found.rows[i] == file.rows[some][every <= every.min() + 1e-9 * (1 + every.min())].sum()
    last = there.among(np.array([len(some) - 1])).linked(codes)
    assert last.distance.tolist() == file.distances(codes, np.full(len(codes), some[-1])).tolist()


def test_a_block_does_not_look_up_what_the_rest_of_the_file_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers, all different: in 40 blocks of 10 records each compares 10 pairs a record, not 400."""
    n, tree = 400, Hierarchy.from_paths("a", [(f"v{i}",) for i in range(40)])
    nodes, own, ends = np.arange(40, dtype=np.int32), np.arange(n, dtype=np.int32), np.linspace(0, 1, n)
    levels = LostWeight(LevelAgreement(tree.at_depth, nodes, ()), (5.0, -3.0, 0.0))
    numbers = LostWeight(NumberAgreement(ends, ends, own), (6.0, 3.0, -4.0, 0.0))
    cells = np.column_stack([own % 40, own])
    file = SearchedFile((levels, numbers), np.full(2, 0.5), cells, np.ones(n, dtype=np.int64))
    blocked, looked_up, of = BlockedFile(file, ConsistentCells((0,))), [], NumberAgreement.of
    monkeypatch.setattr("privrisk_spark.extensions.attack.kernels.blocked._MOST_CELLS", 1)

    def counted(self: NumberAgreement, known: Any) -> Any:
        looked_up.append(len(known) * self.cells)
        return of(self, known)

    monkeypatch.setattr(NumberAgreement, "of", counted)
    assert blocked.told(cells)[1].all()
    assert sum(looked_up) == 10 * n
    looked_up.clear()
    got, _, complete = dealt_in_blocks(blocked, cells, np.ones(n, dtype=np.int64))
    assert complete.all()
    assert (got == 1).all()
    assert sum(looked_up) == 10 * n


def axis_of(
    values: np.ndarray, ends: np.ndarray, most: int, known: int
) -> tuple[SearchedFile, np.ndarray, PrincipalAxis]:
    file, member = file_of_numbers(values, ends)
    blocks = axis_blocks(file, known, most=most)
    assert blocks is not None
    return file, member, blocks


def test_blocks_on_the_axis_are_those_of_a_loop() -> None:
    """By the letter: covariance, its first vector, records in the order of their scores, three blocks for each."""
    known, shown, ends = noisy(400, (0.3, 0.3, 0.3), seed=4)
    known = known + np.array([[0, 0, 0]], dtype=np.int32)
    file, _, blocks = axis_of(shown, ends, 400 * 3 * 3 * 40, 400)
    assert blocks.size == 40
    points = np.column_stack([ends[one.nodes][file.cells[:, j]] for j, one in enumerate(file.differences)]) / np.sqrt(3)
    weights = file.rows / file.rows.sum()
    centre = weights @ points
    covariance = sum(w * np.outer(p - centre, p - centre) for w, p in zip(weights, points, strict=True))
    axis = np.array(blocks.direction)
    np.testing.assert_allclose(covariance @ axis, np.linalg.eigvalsh(covariance)[-1] * axis, atol=1e-9)
    assert axis[np.abs(axis).argmax()] > 0
    score = points @ axis
    order = np.argsort(score, kind="stable")
    number = len(order) // 40
    pieces = [order[40 * b : 40 * (b + 1) if b < number - 1 else None] for b in range(number)]
    blocked = BlockedFile(file, blocks)
    found, complete = blocked.told(known)
    for i in range(len(known)):
        mine = ends[known[i]] / np.sqrt(3)
        home = sum(score[piece[0]] <= mine @ axis for piece in pieces[1:])
        candidates = np.sort(np.concatenate(pieces[max(home - 1, 0) : home + 2]))
        apart = ((points[candidates] - mine) ** 2).sum(axis=1)
        near = candidates[apart <= apart.min() + 1e-9]
        assert found.distance[i] == pytest.approx(apart.min(), abs=1e-12)
        assert (found.rows[i], found.first[i]) == (file.rows[near].sum(), near[0])
        own = np.arange(len(points))
        held = blocked.holds(np.repeat(known[i : i + 1], len(own), axis=0), own, found.at(np.full(len(own), i)))
        assert np.flatnonzero(held).tolist() == near.tolist()
        others = np.setdiff1d(own, candidates)
        if complete[i] and len(others):
            assert ((points[others] - mine) ** 2).sum(axis=1).min() > apart.min()
    assert check_complete(blocked, known).mean() > 0.5
    # Blocks as large as the file lose nothing, and of intervals nothing is proved.
    assert BlockedFile(file, replace(blocks, size=len(points))).told(known)[1].all()
    wide = replace(file, differences=tuple(replace(one, high=ends + 0.01) for one in file.differences))
    assert not BlockedFile(wide, blocks).told(known)[1].any()
    points_known = tuple(replace(one, known=(ends, ends)) for one in wide.differences)
    assert not BlockedFile(replace(wide, differences=points_known), blocks).told(known)[1].any(), (
        "the file has intervals"
    )


def test_the_fewest_columns_make_blocks_and_none_where_none_will_do() -> None:
    """Costs are counted by loops: pairs of distinct cells, and of the records in each other's blocks."""
    generator = np.random.default_rng(7)
    trees = [Hierarchy.from_paths("a", [(f"v{i}",) for i in range(n)]) for n in (3, 4, 40)]
    records = sorted({tuple(int(generator.integers(tree.n_leaves)) for tree in trees) for _ in range(300)})
    file = file_of(trees, [0.5, 0.25, 0.25], records, [1] * len(records))
    known = np.array(records, dtype=np.int32)

    def cost(*columns: int) -> int:
        cells = [tuple(record[j] for j in columns) for record in records]
        return len(columns) * len(set(cells)) ** 2 + 3 * sum(a == b for a in cells for b in cells)

    assert cost(2) < cost(0, 1) < cost(1) < cost(0)
    assert consistent_blocks(file, known, [0, 1, 2], most=cost(2)) == ConsistentCells((2,))
    assert consistent_blocks(file, known, [0, 1], most=cost(1)) == ConsistentCells((1,))
    assert consistent_blocks(file, known, [0, 1], most=cost(1) - 1) == ConsistentCells((0, 1))
    assert consistent_blocks(file, known, [0, 1], most=cost(0, 1)) == ConsistentCells((0, 1))
    assert consistent_blocks(file, known, [0, 1], most=cost(0, 1) - 1) is None
    assert consistent_blocks(file, known, [], most=10**9) is None
    light = replace(file, weights=np.array([1.0, 0.0, 0.0]))
    assert consistent_blocks(light, known, [0, 1, 2], most=10**9) == ConsistentCells((0,))
    assert axis_blocks(file, len(known), most=10**9) is None, "no column is a number"


def test_an_axis_needs_numbers_that_vary_and_blocks_of_some_size() -> None:
    file, _ = file_of_numbers(np.array([[1, 2], [3, 2]], dtype=np.int32), np.arange(5.0))
    assert axis_blocks(file, 10, most=32 * 10 * 3 * 2) == PrincipalAxis((1.0, 0.0), 32)
    assert axis_blocks(file, 10, most=32 * 10 * 3 * 2 - 1) is None
    same, _ = file_of_numbers(np.array([[2, 2]], dtype=np.int32), np.arange(5.0))
    assert axis_blocks(same, 1, most=10**9) is None
    for blocks in (ConsistentCells(()), ConsistentCells((2,)), PrincipalAxis((1.0,), 3), PrincipalAxis((1.0, 0.0), 0)):
        with pytest.raises(InputError, match=r"Record linkage: .* must "):
            BlockedFile(file, blocks)


def test_blocks_do_not_depend_on_what_is_asked_together() -> None:
    known, shown, ends = noisy(200, (0.2, 0.4), seed=9)
    file, _, blocks = axis_of(shown, ends, 200 * 3 * 2 * 32, 200)
    for by in (blocks, ConsistentCells((0,))):
        blocked = BlockedFile(file, by)
        whole, complete = blocked.told(known)
        parts = [blocked.told(known[b : b + 7]) for b in range(0, 200, 7)]
        assert np.concatenate([one.rows for one, _ in parts]).tolist() == whole.rows.tolist()
        assert np.concatenate([sure for _, sure in parts]).tolist() == complete.tolist()
        order = blocked.order(known)
        assert sorted(order.tolist()) == list(range(200))
