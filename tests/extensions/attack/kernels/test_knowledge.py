from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.attack.kernels.knowledge import coarser, mistaken
from privrisk_spark.hierarchies.hierarchy import Hierarchy

TREE = Hierarchy.from_paths("age", [("1", "low"), ("2", "low"), ("8", "high"), ("9", "high")], null_leaf=True)


def drawn(nodes: np.ndarray, words: np.ndarray, missing: float, wrong: float, values: int = 4) -> np.ndarray:
    return mistaken(nodes, words, values=values, root=TREE.root, missing=missing, wrong=wrong)


def test_shares_are_those_asked_for_and_every_other_value_is_as_likely() -> None:
    """40,000 values of 8: a tenth is lost, a fifth is 1, 2 or 9, each as often; a law of another share is rejected."""
    n = 40_000
    words = np.random.default_rng(5).integers(0, 2**64, n, dtype=np.uint64)
    found = drawn(np.full(n, 2, dtype=np.int32), words, 0.1, 0.2)
    counts = np.bincount(found, minlength=TREE.n_nodes)[[0, 1, 3, TREE.root, 2]]
    assert counts.sum() == n
    assert chisquare(counts, n * np.array([0.2 / 3, 0.2 / 3, 0.2 / 3, 0.1, 0.7])).pvalue > 1e-6
    assert chisquare(counts, n * np.array([0.22 / 3, 0.22 / 3, 0.22 / 3, 0.1, 0.68])).pvalue < 1e-6


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=20), st.integers(1, 4))
def test_each_value_is_by_itself(words: list[int], values: int) -> None:
    of = np.array(words, dtype=np.uint64)
    nodes = (np.arange(len(words)) % values).astype(np.int32)
    found = drawn(nodes, of, 0.3, 0.4, values)
    for i, (word, node) in enumerate(zip(words, nodes.tolist(), strict=True)):
        u, step = (word >> 32) / 2**32, word & (2**32 - 1)
        if u < 0.3:
            expected = TREE.root
        elif u < 0.7 and values > 1:
            expected = (*range(node + 1, values), *range(node))[step % (values - 1)]
            assert expected != node
        else:
            expected = node
        assert found[i] == expected
    assert (drawn(nodes, of, 0.0, 0.0, values) == nodes).all()


def test_what_is_no_value_stays() -> None:
    nodes = np.array([4, TREE.root], dtype=np.int32)  # the leaf of missing values, and the root
    assert drawn(nodes, np.zeros(2, dtype=np.uint64), 0.5, 0.5).tolist() == nodes.tolist()
    with pytest.raises(InputError, match="add up to 1 at most"):
        drawn(nodes, np.zeros(2, dtype=np.uint64), 0.6, 0.5)


def test_somebody_knows_ages_by_decades() -> None:
    nodes = np.array([0, 3, 4, TREE.root], dtype=np.int32)

    def known(level: int) -> list[str | None]:
        return [TREE.labels[node] for node in coarser(nodes, TREE.ancestor, root=TREE.root, level=level)]

    assert known(0) == ["1", "9", None, "*"]
    assert known(1) == ["low", "high", "*", "*"]
    assert known(2) == known(9) == ["*", "*", "*", "*"]
