"""Labels: a release shows nothing else of a node, so two nodes have one label only up a chain of only children."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privrisk_spark.errors import HierarchyError
from privrisk_spark.hierarchies.builders import MaskHierarchy, build
from privrisk_spark.hierarchies.files import paths_of_tree, read_arx
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.hierarchies.paths import LeafPath, equal_labels, qualified
from privrisk_spark.hierarchies.text import FileHierarchy, Mask, TreeHierarchy

SWAPPED = "Aa;Bb;*\nBb;Aa;*\n"
"""A release would show every Aa as Bb, and every Bb as Aa."""

TWO_NORTHS = "a;North;N1;*\nb;North;S1;*\nc;South;S1;*\n"


def written(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "h.csv"
    file.write_text(text)
    return file


def test_values_and_labels_that_are_swapped_are_refused_by_line(tmp_path: Path) -> None:
    with pytest.raises(HierarchyError, match=r"line 1: the label 'Bb' .* under '\*' and under '\*'|line .*'(Aa|Bb)'"):
        read_arx(written(tmp_path, SWAPPED), attribute="x")


def test_one_label_under_two_parents_is_refused_by_name_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(HierarchyError) as refused:
        read_arx(written(tmp_path, TWO_NORTHS), attribute="x")
    for said in ("'x'", "h.csv", "line ", "'North'", "'* > N1'", "'* > S1'", "labels: qualify"):
        assert said in str(refused.value)
    with pytest.raises(HierarchyError, match="the label 'North' is that of two nodes"):
        paths_of_tree({"*": {"N1": {"North": ["a"]}, "S1": {"North": ["b"], "South": ["c"]}}}, "x")
    assert Hierarchy.from_paths("x", [("a", "North", "N1"), ("b", "North", "S1")]).n_nodes == 7, "inside, by path"


def test_a_label_may_be_repeated_up_a_chain_of_only_children() -> None:
    chain = [("a", "a", "up"), ("b", "middle", "middle", "other"), ("c", "middle", "middle", "other")]
    assert list(equal_labels(chain)) == []
    Hierarchy.from_paths("x", [("b", "m", "m", "o"), ("c", "m", "m", "o"), ("d", "up")])
    # Not where the upper of the two has more under it.
    assert list(equal_labels([*chain, ("d", "middle", "other")]))
    assert list(equal_labels([("a", "a"), ("b", "a")]))


def test_labels_from_the_data_are_not_named() -> None:
    masked: Any = MaskHierarchy(mask=Mask(steps=3))
    assert build(masked, "x", values=["abc", "abd"]).n_nodes == 5
    with pytest.raises(HierarchyError, match=r"two different nodes have one label.* a value of the column") as refused:
        build(masked, "x", values=["aa**a", "aaa*a"])
    assert "aa" not in str(refused.value)


def test_qualified_labels_tell_nodes_apart(tmp_path: Path) -> None:
    file = written(tmp_path, TWO_NORTHS)
    spec = FileHierarchy(file=str(file), labels="qualify")
    hierarchy = build(spec, "x")
    assert set(hierarchy.labels) == {"a", "b", "c", "N1/North", "S1/North", "South", "N1", "S1", "*"}
    assert read_arx(written(tmp_path, SWAPPED), attribute="x", qualify=True) == ([("Aa", "*/Bb"), ("Bb", "*/Aa")], "*")
    deep = [("a", "n", "m", "p"), ("b", "n", "m", "q")]
    assert qualified(deep, "*") == [("a", "p/m/n", "*/p/m", "p"), ("b", "q/m/n", "*/q/m", "q")]
    tree = TreeHierarchy(tree={"*": {"N1": {"North": ["a"]}, "S1": {"North": ["b"]}}}, labels="qualify")
    assert "N1/North" in build(tree, "x").labels


def test_a_policy_that_does_not_ask_for_it_keeps_its_digest() -> None:
    spec = FileHierarchy(file="a.csv")
    assert "labels" not in spec.model_dump()
    assert FileHierarchy(file="a.csv", labels="qualify").model_dump()["labels"] == "qualify"
    assert FileHierarchy.model_validate(spec.model_dump()) == spec


LABELS = st.sampled_from(["a", "b", "c", "d"])


@st.composite
def leaf_paths(draw: st.DrawFn) -> list[LeafPath]:
    above = draw(st.lists(st.lists(LABELS, max_size=3), min_size=1, max_size=6))
    return [(f"v{i}" if draw(st.booleans()) else f"{'abcdef'[i]}", *path) for i, path in enumerate(above)]


def literally_equal(paths: list[LeafPath]) -> bool:
    """Whether two nodes have one label though they do not have the same leaves, one above the other."""
    leaves: dict[LeafPath, set[LeafPath]] = {}
    for path in paths:
        for i in range(len(path)):
            leaves.setdefault(path[i:], set()).add(path)

    def chained(one: LeafPath, two: LeafPath) -> bool:
        lower, upper = (one, two) if len(one) > len(two) else (two, one)
        return leaves[one] == leaves[two] and lower[-len(upper) :] == upper

    return any(one != two and one[0] == two[0] and not chained(one, two) for one in leaves for two in leaves)


@given(leaf_paths())
def test_equal_labels_are_found_as_by_comparing_all_nodes(paths: list[LeafPath]) -> None:
    if len({path[0] for path in paths}) < len(paths) or any(p != q and p == q[-len(p) :] for p in paths for q in paths):
        return  # refused for another reason
    assert bool(list(equal_labels(paths))) == literally_equal(paths)


@given(leaf_paths())
def test_qualifying_changes_labels_alone_and_leaves_none_equal(paths: list[LeafPath]) -> None:
    if len({path[0] for path in paths}) < len(paths) or any(p != q and p == q[-len(p) :] for p in paths for q in paths):
        return
    found = qualified(paths, "*")
    assert not list(equal_labels(found))
    assert [path[0] for path in found] == [path[0] for path in paths]
    assert [len(path) for path in found] == [len(path) for path in paths]
    for (one, now_one), (two, now_two) in itertools.combinations(list(zip(paths, found, strict=True)), 2):
        for depth in range(1, min(len(one), len(two)) + 1):
            assert (one[-depth:] == two[-depth:]) == (now_one[-depth:] == now_two[-depth:])
