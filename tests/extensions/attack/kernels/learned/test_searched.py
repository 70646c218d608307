from __future__ import annotations

from typing import Any, get_args

import naive_learned
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from linked_files import file_of, files
from strategies import aggregates

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.attack.kernels.learned import searched
from privrisk_spark.extensions.attack.kernels.learned.aggregates import (
    Aggregate,
    Bilinear,
    OrderedWeightedAverage,
    WeightedMean,
)
from privrisk_spark.extensions.attack.kernels.learned.choquet import ChoquetIntegral
from privrisk_spark.extensions.attack.kernels.learned.families import Kind
from privrisk_spark.extensions.attack.kernels.learned.searched import ComparedFile, searched_by
from privrisk_spark.extensions.attack.kernels.nearest import SearchedFile
from privrisk_spark.hierarchies.hierarchy import Hierarchy

SOME: dict[Kind, Aggregate] = {
    "weighted_mean": WeightedMean(np.array([0.5, 0.2, 0.3])),
    "ordered_weighted_average": OrderedWeightedAverage(np.array([0.1, 0.3, 0.6])),
    "bilinear": Bilinear.projected(np.array([[0.5, -0.2, 0.1], [-0.2, 0.3, 0.0], [0.1, 0.0, 0.2]])),
    "choquet": ChoquetIntegral(np.array([0, 0.2, 0.3, 0.9, 0.1, 0.2, 0.4, 1.0])),
}

every_kind = pytest.mark.parametrize("kind", get_args(Kind))


def vectors(file: SearchedFile, known: np.ndarray) -> list[list[list[float]]]:
    """Differences of each known record from each of the file, cell by cell."""
    tables = [one.of(known[:, i].copy()) for i, one in enumerate(file.differences)]
    return [[[float(t[a, file.cells[b, i]]) for i, t in enumerate(tables)] for b in range(len(file.rows))]
            for a in range(len(known))]  # fmt: skip


@every_kind
@given(files(), st.data())
@settings(max_examples=40)
def test_links_are_those_of_two_loops(kind: Kind, drawn: Any, data: st.DataObject) -> None:
    trees, weights, records, rows, known = drawn
    file, codes = file_of(trees, weights, records, rows), np.array(known, dtype=np.int32)
    one = data.draw(aggregates(kind, len(trees)))
    found_in = searched_by(one, file.differences, file.cells, file.rows)
    found = found_in.linked(codes)
    of = vectors(file, codes)
    expected = naive_learned.linked(lambda d: float(one.distance(np.array(d))), of, rows)
    np.testing.assert_allclose(found.distance, [least for least, _, _ in expected], atol=1e-12)
    assert found.rows.tolist() == [tied for _, tied, _ in expected]
    assert found.first.tolist() == [min(near) for _, _, near in expected]
    for j in range(len(records)):
        own = np.full(len(known), j, dtype=np.int64)
        assert found_in.holds(codes, own, found).tolist() == [j in tied for _, _, tied in expected]
        every = [float(one.distance(np.array(of[a][j]))) for a in range(len(known))]
        np.testing.assert_allclose(found_in.distances(codes, own), every, atol=1e-12)
    assert not found_in.holds(codes, np.full(len(known), -1, dtype=np.int64), found).any()


@given(files(), st.data())
@settings(max_examples=40)
def test_weighted_means_are_searched_as_ever_and_no_otherwise(drawn: Any, data: st.DataObject) -> None:
    trees, weights, records, rows, known = drawn
    file, codes = file_of(trees, weights, records, rows), np.array(known, dtype=np.int32)
    mean = WeightedMean(file.weights)
    quick = searched_by(mean, file.differences, file.cells, file.rows)
    assert isinstance(quick, SearchedFile)
    slow = ComparedFile(mean, file.differences, file.cells, file.rows)
    np.testing.assert_allclose(quick.linked(codes).distance, slow.linked(codes).distance, atol=1e-12)
    assert quick.linked(codes).rows.tolist() == slow.linked(codes).rows.tolist()


@every_kind
def test_blocks_change_no_bit(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does the order of the records, nor what is searched for beside."""
    generator = np.random.default_rng(11)
    tree = Hierarchy.from_paths("a", [(f"v{i}", f"w{i // 3}", f"x{i // 9}") for i in range(27)])
    records = sorted({tuple(row) for row in generator.integers(0, tree.n_nodes, (300, 3)).tolist()})
    rows = generator.integers(1, 9, len(records)).tolist()
    file = file_of([tree] * 3, [1 / 3] * 3, records, rows)
    one = SOME[kind]
    known = generator.integers(0, 27, (40, 3)).astype(np.int32)
    whole = ComparedFile(one, file.differences, file.cells, file.rows)
    found = whole.linked(known)
    monkeypatch.setattr(searched, "_PAIRS", 1000)
    monkeypatch.setattr(searched, "_AT_ONCE", 17)
    again = whole.linked(known)
    assert again.distance.tobytes() == found.distance.tobytes()
    assert again.rows.tolist() == found.rows.tolist()
    back = ComparedFile(one, file.differences, file.cells[::-1], file.rows[::-1]).linked(known)
    assert back.distance.tobytes() == found.distance.tobytes()
    assert back.rows.tolist() == found.rows.tolist()


def test_ties_that_rounding_parts_are_ties() -> None:
    """0.1 + 0.2 of two columns and 0.3 of one are one distance, whatever the aggregate."""
    tree = Hierarchy.from_paths("a", [("v0",), ("v1",)])
    file = file_of([tree] * 4, [0.25] * 4, [(1, 1, 0, 0), (0, 0, 1, 0)], [2, 5])
    one = WeightedMean(np.array([0.1, 0.2, 0.3, 0.4]))
    found = ComparedFile(one, file.differences, file.cells, file.rows).linked(np.zeros((1, 4), dtype=np.int32))
    assert found.rows.tolist() == [7]


def test_files_that_cannot_be_searched_are_refused() -> None:
    tree = Hierarchy.from_paths("a", [("v0",), ("v1",)])
    file = file_of([tree, tree], [0.5, 0.5], [(0, 0), (1, 1)], [1, 1])
    one = OrderedWeightedAverage(np.array([0.5, 0.5]))
    with pytest.raises(InputError, match="has no records"):
        searched_by(one, file.differences, file.cells, np.array([0, 1]))
    with pytest.raises(InputError, match="one difference for each attribute"):
        searched_by(OrderedWeightedAverage(np.ones(1)), file.differences, file.cells, file.rows)
