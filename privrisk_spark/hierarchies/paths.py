"""Leaf paths of a hierarchy as they are written, and what is refused of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from privrisk_spark.errors import HierarchyError

LeafPath = tuple[str, ...]


MAX_HEIGHT = 127
"""Most levels above a leaf; a level is stored in one signed byte."""


def refuse_clashes(paths: Iterable[LeafPath], *, root: str, where: Callable[[int], str], public: bool) -> None:
    """Refuse a leaf given twice or above another one, an empty path, and the root label below the root."""
    index_of: dict[str, int] = {}
    path_of: dict[str, LeafPath] = {}
    above: dict[LeafPath, LeafPath] = {}
    for index, path in enumerate(paths):
        if not path:
            raise HierarchyError(f"{where(index)}: a path is empty; it must hold at least the leaf.")
        if root in path:
            raise HierarchyError(f"{where(index)}: the root label '{root}' may not stand below the root.")
        leaf = path[0]
        if leaf in path_of:
            text = two_places(path_of[leaf], path, root) if public else "a value has two paths."
            raise HierarchyError(f"{where(index)}: {text}")
        path_of[leaf] = path
        index_of[leaf] = index
        upper = path[1:]
        while upper and upper not in above:
            above[upper] = path
            upper = upper[1:]
    for leaf, path in path_of.items():
        if path in above:
            text = f"'{leaf}' is a leaf and also above '{above[path][0]}'" if public else "a leaf is also above another"
            raise HierarchyError(f"{where(index_of[leaf])}: {text}; give the leaf another label, or a node above it.")


def refuse_equal_labels(
    paths: Sequence[LeafPath], *, root: str, where: Callable[[int], str], public: bool, remedy: str
) -> None:
    """Refuse a label of two nodes: it is all that a release shows, and its reader would take one for the other.

    A node may bear the label of its only child, and so on up a chain. Inside, nodes are told apart by their paths.

    Parameters
    ----------
    paths : sequence of tuple of str
        Of leaves, without the root, that :func:`refuse_clashes` accepts.
    root : str
        Label of the root.
    where : callable
        Opening of a message about the path of a position.
    public : bool
        Whether messages may name labels.
    remedy : str
        What to do about it.

    Raises
    ------
    HierarchyError
    """
    for lower, upper in equal_labels(paths):
        head = where(next(i for i, path in enumerate(paths) if path[-len(lower) :] == lower))
        if not public:
            raise HierarchyError(
                f"{head}: two different nodes have one label, which a release could not tell apart; {remedy}."
            )
        one, other = (branch_text(node[1:], root) for node in (lower, upper))
        raise HierarchyError(
            f"{head}: the label '{lower[0]}' is that of two nodes, under {one} and under {other}, which a release "
            f"could not tell apart; {remedy}."
        )


def equal_labels(paths: Iterable[LeafPath]) -> Iterator[tuple[LeafPath, LeafPath]]:
    """Yield pairs of different nodes with one label, neither being above the other along only children.

    Parameters
    ----------
    paths : iterable of tuple of str
        Of leaves, without the root.

    Yields
    ------
    lower, upper : tuple of str
        The two nodes, each as the path from it up; the deeper one first.
    """
    first: dict[str, LeafPath] = {}
    several: dict[str, list[LeafPath]] = {}
    children: dict[LeafPath, int] = {}
    for path in paths:
        node = path
        # Where a node has children already, it and all above it were met.
        while node:
            known = first.setdefault(node[0], node)
            if known != node:
                several.setdefault(node[0], [known]).append(node)
            above = node[1:]
            children[above] = children.get(above, 0) + 1
            if children[above] > 1:
                break
            node = above
    for nodes in several.values():
        for lower, upper in pairwise(sorted(nodes, key=len, reverse=True)):
            steps = len(lower) - len(upper)
            alone = all(children[lower[i:]] == 1 for i in range(1, steps + 1))
            if not steps or lower[steps:] != upper or not alone:
                yield lower, upper


def qualified(paths: Sequence[LeafPath], root: str) -> list[LeafPath]:
    """Return paths in which inner nodes of equal labels bear those above before their own, such as ``South/Centre``.

    As many labels above as it takes to tell them apart. Leaves keep their labels: these are the values of records.

    Parameters
    ----------
    paths : sequence of tuple of str
        Of leaves, without the root.
    root : str
        Label of the root.
    """
    equal = {lower[0] for lower, _ in equal_labels(paths)}
    found = list(paths)
    for taken in range(2, MAX_HEIGHT + 2):
        if next(equal_labels(found), None) is None:
            break
        found = [
            (
                path[0],
                *(
                    "/".join(reversed((*path, root)[i : i + taken])) if path[i] in equal else path[i]
                    for i in range(1, len(path))
                ),
            )
            for path in paths
        ]
    return found


def two_places(first: LeafPath, second: LeafPath, root: str) -> str:
    """Say how a leaf that was given twice was given."""
    leaf = first[0]
    if first == second:
        return f"value '{leaf}' is listed twice."
    one, other = ((*path[1:], root)[0] for path in (first, second))
    if one == other:
        return (
            f"value '{leaf}' has two parents {branch_text(first[1:], root)} and {branch_text(second[1:], root)}; "
            "keep one of them."
        )
    return f"value '{leaf}' has two parents '{one}' and '{other}'; keep one of them."


def branch_text(above: LeafPath, root: str) -> str:
    """Return a node as the path from the root, for a message."""
    return "'" + " > ".join((root, *reversed(above))) + "'"


def message_head(attribute: str, path: str | Path | None = None) -> str:
    """Return the opening of a message."""
    of = f" of '{attribute}'" if attribute else ""
    return f"hierarchy{of}" + ("" if path is None else f", file '{path}'")
