from __future__ import annotations

import naive_linkage
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.attack.kernels.texts import TextDifference
from privrisk_spark.hierarchies.hierarchy import Hierarchy

WORDS = st.lists(st.text("ABMRTH", min_size=1, max_size=7), min_size=1, max_size=6, unique=True)


def difference(tree: Hierarchy, nodes: list[int]) -> TextDifference:
    labels = ["" if label is None else label for label in tree.labels[: tree.n_leaves]]
    unknown = [tree.root, *(leaf for leaf in range(tree.n_leaves) if tree.labels[leaf] is None)]
    return TextDifference(labels, tree.first_leaf, tree.last_leaf, np.array(unknown), np.array(nodes, dtype=np.int32))


NAMES = [("MARTHA", "MARHTA", 0.961), ("DWAYNE", "DUANE", 0.840), ("DIXON", "DICKSONX", 0.813)]


@pytest.mark.parametrize(("one", "other", "similarity"), NAMES)
def test_the_names_of_the_literature(one: str, other: str, similarity: float) -> None:
    """MARTHA and MARHTA have a Jaro similarity of 0.944, and three first letters in common: 0.944 + 0.3 × 0.056."""
    tree = Hierarchy.from_paths("name", [(one,), (other,)])
    found = difference(tree, [0, 1]).of(np.array([0], dtype=np.int32))
    assert found[0, 0] == 0
    assert 1 - found[0, 1] == pytest.approx(similarity, abs=5e-4)


@given(WORDS, st.data())
def test_a_cell_is_as_near_as_the_nearest_text_it_covers(words: list[str], data: st.DataObject) -> None:
    """Leaves and nodes above them, a missing value and the root, against the letter of the definition."""
    groups = [data.draw(st.sampled_from(["up 1", "up 2"])) for _ in words]
    tree = Hierarchy.from_paths("name", list(zip(words, groups, strict=True)), null_leaf=True)
    nodes = list(range(tree.n_nodes))
    found = difference(tree, nodes).of(np.array(nodes, dtype=np.int32))

    def expected(a: int, b: int) -> float:
        mine, theirs = naive_linkage.leaves(tree, a), naive_linkage.leaves(tree, b)
        if any(tree.labels[leaf] is None for leaf in (*mine, *theirs)):  # also below the root
            return 0.0
        return min(1 - naive_linkage.winkler(tree.labels[x] or "", tree.labels[y] or "") for x in mine for y in theirs)

    np.testing.assert_allclose(found, [[expected(a, b) for b in nodes] for a in nodes], atol=1e-12)
    assert (found == found.T).all()


def test_cells_that_are_no_nodes_are_refused() -> None:
    tree = Hierarchy.from_paths("name", [("x",), ("y",)])
    with pytest.raises(InputError, match="a node of its hierarchy"):
        difference(tree, [3])
