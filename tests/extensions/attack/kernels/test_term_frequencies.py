from __future__ import annotations

from math import log2

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import hierarchies

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.attack.kernels.agreement import LevelAgreement
from privrisk_spark.extensions.attack.kernels.term_frequencies import TermWeight, term_frequencies
from privrisk_spark.hierarchies.hierarchy import Hierarchy


def ancestors(tree: Hierarchy, node: int) -> list[int]:
    found = [node]
    while found[-1] != tree.root:
        found.append(int(tree.parent[found[-1]]))
    return found


@given(hierarchies(max_leaves=6, max_depth=3), st.data())
def test_a_node_is_as_frequent_as_what_it_covers(tree: Hierarchy, data: st.DataObject) -> None:
    """Record by record: each counts for its own node and for all above it."""
    cells = data.draw(st.lists(st.integers(0, tree.n_nodes - 1), max_size=15))
    rows = np.bincount(cells, minlength=tree.n_nodes) if cells else np.zeros(tree.n_nodes, dtype=np.int64)
    there = [cell for cell in cells if cell != tree.root]
    expected = [
        1.0 if node == tree.root else sum(node in ancestors(tree, cell) for cell in there) / max(len(there), 1)
        for node in range(tree.n_nodes)
    ]
    assert term_frequencies(tree.at_depth, rows).tolist() == pytest.approx(expected)


@given(hierarchies(max_leaves=6, max_depth=3), st.data())
def test_agreement_is_weighed_by_the_frequency_of_the_coarser_cell(tree: Hierarchy, data: st.DataObject) -> None:
    every = np.arange(tree.n_nodes, dtype=np.int32)
    rows = np.array(data.draw(st.lists(st.integers(1, 5), min_size=tree.n_nodes, max_size=tree.n_nodes)))
    agreement = LevelAgreement(tree.at_depth, every, (1,) if tree.height > 1 else ())
    frequencies = term_frequencies(tree.at_depth, rows)
    weights = (4.0, *(-float(level) for level in range(1, agreement.levels)), 0.0)
    one = TermWeight(agreement, weights, 0.25, frequencies)
    found, levels = one.of(every), agreement.of(every)
    for a in range(tree.n_nodes):
        for b in range(tree.n_nodes):
            weight = weights[levels[a, b]]
            if levels[a, b] == 0:
                weight += log2(0.25 / max(frequencies[a], frequencies[b]))
            assert found[a, b] == pytest.approx(one.greatest - weight, abs=1e-12)
    assert (found >= 0).all()


def test_a_rare_name_says_more_than_a_frequent_one() -> None:
    """Of 16 records one is called Ada and twelve Ann: agreement on Ada is worth log2 12 bits more."""
    tree = Hierarchy.from_paths("name", [("Ada",), ("Ann",), ("Eve",)])
    frequencies = term_frequencies(tree.at_depth, np.array([1, 12, 3, 9]))
    assert frequencies.tolist() == [1 / 16, 12 / 16, 3 / 16, 1.0]
    one = TermWeight(
        LevelAgreement(tree.at_depth, np.arange(3, dtype=np.int32), ()), (3.0, -2.0, 0.0), 0.5, frequencies
    )
    found = one.of(np.arange(3, dtype=np.int32))
    assert found[1, 1] - found[0, 0] == pytest.approx(log2(12))
    assert one.greatest == pytest.approx(3 + log2(0.5 * 16))
    assert found[0, 0] == 0


def test_what_is_no_weight_is_refused() -> None:
    tree = Hierarchy.from_paths("name", [("Ada",), ("Ann",)])
    agreement = LevelAgreement(tree.at_depth, np.arange(2, dtype=np.int32), ())
    with pytest.raises(InputError, match="one finite weight"):
        TermWeight(agreement, (1.0,), 0.5, np.ones(3))
    with pytest.raises(InputError, match=r"in \(0, 1\]"):
        TermWeight(agreement, (1.0, 0.0, 0.0), 0.0, np.ones(3))
