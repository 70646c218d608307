from __future__ import annotations

from dataclasses import replace

import naive_linkage
import numpy as np
import pytest
from hypothesis import given, settings
from linked_files import file_of, files

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.attack.kernels.differences import LevelDifference, NumberDifference
from privrisk_spark.extensions.attack.kernels.nearest import SearchedFile
from privrisk_spark.hierarchies.hierarchy import Hierarchy


@given(files())
@settings(max_examples=150, deadline=None)
def test_links_are_those_of_two_loops(drawn) -> None:
    trees, weights, records, rows, known = drawn
    file = replace(file_of(trees, weights, records, rows), few=0)
    known_codes = np.array(known, dtype=np.int32)
    found = file.linked(known_codes)
    expected = naive_linkage.linked(trees, weights, known, records, rows)
    np.testing.assert_allclose(found.distance, [least for least, _, _ in expected], atol=1e-12)
    assert found.rows.tolist() == [tied for _, tied, _ in expected]
    assert found.first.tolist() == [min(near) for _, _, near in expected]
    for j in range(len(records)):
        own = np.full(len(known), j, dtype=np.int64)
        assert file.holds(known_codes, own, found).tolist() == [j in tied for _, _, tied in expected]
    nobody = np.full(len(known), -1, dtype=np.int64)
    assert not file.holds(known_codes, nobody, found).any()


@given(files())
@settings(max_examples=100, deadline=None)
def test_passing_groups_over_changes_no_bit(drawn) -> None:
    trees, weights, records, rows, known = drawn
    file = replace(file_of(trees, weights, records, rows), few=0)
    codes = np.array(known, dtype=np.int32)
    quick = file.linked(codes)
    for other in (replace(file, passing_over=False), replace(file, few=len(records))):
        slow = other.linked(codes)
        assert quick.distance.tobytes() == slow.distance.tobytes()
        assert (quick.rows.tolist(), quick.first.tolist()) == (slow.rows.tolist(), slow.first.tolist())


def test_groups_are_passed_over_and_nothing_else_changes() -> None:
    """A file large enough that the first attributes group it, records in another order, and rows dealt differently."""
    generator = np.random.default_rng(5)
    tree = Hierarchy.from_paths("a", [(f"v{i}", f"w{i // 3}", f"x{i // 9}") for i in range(27)])
    records = sorted({tuple(row) for row in generator.integers(0, tree.n_nodes, (900, 4)).tolist()})
    rows = generator.integers(1, 9, len(records)).tolist()
    file = file_of([tree] * 4, [0.4, 0.3, 0.2, 0.1], records, rows)
    known = generator.integers(0, 27, (60, 4)).astype(np.int32)
    found = file.linked(known)
    alone = replace(file, passing_over=False).linked(known)
    assert found.distance.tobytes() == alone.distance.tobytes()
    assert found.rows.tolist() == alone.rows.tolist()
    shuffled = generator.permutation(len(records))
    other = file_of([tree] * 4, [0.4, 0.3, 0.2, 0.1], [records[j] for j in shuffled], [rows[j] for j in shuffled])
    assert other.linked(known).rows.tolist() == found.rows.tolist()
    one_by_one = [file.linked(known[b : b + 1]) for b in range(len(known))]
    assert b"".join(one.distance.tobytes() for one in one_by_one) == found.distance.tobytes()


def test_an_untouched_file_gives_everybody_away_as_far_as_they_are_alone() -> None:
    """Of values as they are, each record is linked to those that equal it: unique, or tied with its like."""
    tree = Hierarchy.from_paths("a", [(f"v{i}",) for i in range(3)])
    file = file_of([tree, tree], [0.5, 0.5], [(0, 0), (0, 1), (2, 2)], [1, 3, 2])
    known = np.array([[0, 0], [0, 1], [2, 2]], dtype=np.int32)
    found = file.linked(known)
    assert found.distance.tolist() == [0.0, 0.0, 0.0]
    assert found.rows.tolist() == [1, 3, 2]
    assert file.holds(known, np.arange(3), found).all()


def test_ties_that_rounding_parts_are_ties() -> None:
    """0.1 + 0.2 in one order and 0.3 in one term are one distance."""
    tree = Hierarchy.from_paths("a", [("v0",), ("v1",)])
    file = file_of([tree] * 4, [0.1, 0.2, 0.3, 0.4], [(1, 1, 0, 0), (0, 0, 1, 0)], [2, 5])
    found = file.linked(np.zeros((1, 4), dtype=np.int32))
    assert found.rows.tolist() == [7]
    assert file.holds(np.zeros((2, 4), dtype=np.int32), np.array([0, 1]), found.at(np.zeros(2, dtype=np.int64))).all()


def test_numbers_and_levels_go_together() -> None:
    """A number half a unit away at half the weight is nearer than another category at the other half."""
    ends = np.array([[0.0, 1.0], [2.0, 2.0], [1.5, 1.5]])
    number = NumberDifference(ends[:, 0], ends[:, 1], np.array([0, 1], dtype=np.int32))
    tree = Hierarchy.from_paths("a", [("v0",), ("v1",)])
    level = LevelDifference(tree.at_depth, tree.n_under, np.array([0, 1], dtype=np.int32))
    cells = np.array([[0, 0], [1, 1]], dtype=np.int32)
    file = SearchedFile((number, level), np.array([0.5, 0.5]), cells, np.array([1, 1]))
    found = file.linked(np.array([[2, 1]], dtype=np.int32))
    assert found.distance.tolist() == [0.125]
    assert file.holds(np.array([[2, 1]], dtype=np.int32), np.array([1]), found).all()


def test_files_that_cannot_be_linked_are_refused() -> None:
    tree = Hierarchy.from_paths("a", [("v0",), ("v1",)])
    good = file_of([tree], [1.0], [(0,)], [1])
    for changes, rule in (
        ({"rows": np.array([0])}, "has no records"),
        ({"cells": np.zeros((0, 1), dtype=np.int32), "rows": np.zeros(0, dtype=np.int64)}, "has no records"),
        ({"weights": np.array([0.5])}, "their sum 1"),
        ({"weights": np.array([2.0])}, "their sum 1"),
        ({"weights": np.array([0.5, 0.5])}, "one difference and one weight"),
    ):
        with pytest.raises(InputError, match=rule):
            replace(good, **changes)
