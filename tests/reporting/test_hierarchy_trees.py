"""A hierarchy as a picture: all of it where it fits, and how much is left out where it does not."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree import ElementTree

import pytest

from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.reporting.hierarchy_trees import Branch, draw_hierarchy, elided_tree


def drawn(branch: Branch) -> Iterator[Branch]:
    yield branch
    for below in branch.below:
        yield from drawn(below)


def test_a_small_tree_is_drawn_whole() -> None:
    hierarchy = Hierarchy.from_paths("city", [("Ulm", "south"), ("Bonn", "north"), ("Kiel", "north"), ("Rest",)])
    tree = elided_tree(hierarchy)
    assert [one.label for one in drawn(tree)] == ["*", "south", "Ulm", "north", "Bonn", "Kiel", "Rest"]
    assert [one.depth for one in drawn(tree)] == [0, 1, 2, 1, 2, 2, 1]
    assert not any(one.elided for one in drawn(tree))
    assert tree.lines == 4


@pytest.mark.parametrize("rows", [3, 10, 40])
def test_what_is_left_out_is_told_and_adds_up(rows: int) -> None:
    paths = [(f"v{i}", f"g{i // 7}", f"r{i // 70}") for i in range(700)]
    tree = elided_tree(Hierarchy.from_paths("x", paths), rows=rows)
    assert tree.lines <= 3 * rows
    values = 0
    for one in drawn(tree):
        if one.elided:
            numbers = [int(word.replace(",", "")) for word in one.label.replace(",", "").split() if word.isdigit()]
            values += numbers[-1]
        elif not one.below:
            values += 1
    assert values == 700


def test_the_picture_is_svg_with_a_text_alternative_and_the_same_bytes_again() -> None:
    hierarchy = Hierarchy.from_paths("a<b", [("R&D", "up & down"), ("x" * 60, "up & down")], steps=("unit", "branch"))
    svg = draw_hierarchy(hierarchy)
    root = ElementTree.fromstring(svg)
    texts = "".join(root.itertext())
    for said in ("Hierarchy of a<b", "R&D", "up & down", "branch", "suppressed", "2 values in 3 levels"):
        assert said in texts
    assert "x" * 60 not in texts, "long labels are cut"
    assert svg == draw_hierarchy(hierarchy)
