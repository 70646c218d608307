"""Digests of the people of a dictionary: the same for the same people, and for no others."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from privrisk_spark.engine.chains import population_digest
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.counting.consistent import Axis

PATHS = {
    "place": [("z",), ("a", "north"), ("b", "north"), ("c", "far", "north"), ("d", "south")],
    "sex": [("F",), ("M",)],
}
Person = tuple[str, str]
"""A label of each attribute: a leaf, an inner node, the root, or one that is not there."""
PERSON = st.tuples(st.sampled_from(["z", "a", "c", "north", "far", "*", "nowhere"]), st.sampled_from(["F", "M", "*"]))


def digest(people: list[Person], seed: int = 0, *, known: bool = True, similar: float | None = None, **more) -> str:
    """Digest of people, with leaves, and people, in an order of no meaning."""
    pick = random.Random(seed)
    trees = {
        name: Hierarchy.from_paths(name, pick.sample(paths, len(paths)) if seed else paths)
        for name, paths in PATHS.items()
    }
    axes = [Axis(tree.at_depth, tree.ancestor, **more) for tree in trees.values()]
    axes[1] = replace(axes[1], known=known)
    codes = [{label: node for node, label in enumerate(tree.labels)} for tree in trees.values()]
    of_each = [[of.get(label, len(of)) for of, label in zip(codes, one, strict=True)] for one in people]
    vectors = np.array(pick.sample(of_each, len(of_each)), dtype=np.int32).reshape(-1, 2)
    counts = np.ones(len(vectors), dtype=np.int64)
    if not seed:  # grouped, as some plans have them
        vectors, counts = np.unique(vectors, axis=0, return_counts=True)
    return population_digest(vectors, counts, trees, axes, {} if similar is None else {"sex": similar})


@given(st.lists(PERSON, max_size=8), st.integers(1, 9))
def test_the_order_of_people_and_the_numbers_of_values_do_not_matter(people: list[Person], seed: int) -> None:
    assert digest(people) == digest(people, seed)


@given(st.lists(PERSON, max_size=5), st.lists(PERSON, max_size=5))
def test_other_people_have_another_digest(some: list[Person], others: list[Person]) -> None:
    assert (digest(some) == digest(others)) == (sorted(some) == sorted(others))


def test_so_has_another_rule_of_who_is_consistent_with_a_class() -> None:
    people = [("a", "F"), ("north", "M")]
    found = [digest(people), digest(people, consistency="compatible"), digest(people, wildcard=True)]
    found += [digest(people, known=False), digest(people, similar=0.8), digest(people, similar=0.9)]
    assert len(set(found)) == len(found)
    assert digest([("a", "F")], known=False) == digest([("a", "M")], known=False), "nobody knows it"
