"""Leaf paths of a hierarchy from what a person writes: a file of ARX, a YAML or JSON tree, a nested mapping.

Every fault names attribute, file and line. Labels of these files belong to the policy, so messages may show them.
The row format is the one ARX writes.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from privrisk_spark.errors import HierarchyError, listing
from privrisk_spark.hierarchies.hierarchy import MAX_LEAVES, ROOT
from privrisk_spark.hierarchies.paths import (
    MAX_HEIGHT,
    LeafPath,
    branch_text,
    message_head,
    qualified,
    refuse_clashes,
    refuse_equal_labels,
    two_places,
)
from privrisk_spark.hierarchies.yaml_texts import load_json, load_yaml, scalar_text
from privrisk_spark.storage.whole_files import contents

_REMEDY = "give one of them another label, or write labels: qualify, which puts the label above before it"


def read_arx(
    path: str | Path, *, attribute: str, separator: str = ";", qualify: bool = False
) -> tuple[list[LeafPath], str]:
    """Read a hierarchy in the format of ARX: one row ``leaf;level 1;…;root`` per leaf.

    UTF-8 with or without byte order mark; cells may be quoted; blank lines are passed over. The root is the label at
    the end of every row, such as ``*`` or ``*****``. If it is repeated at the end of a row, that row is a short branch
    of an unbalanced tree.

    Parameters
    ----------
    path : str or Path
        The file.
    attribute : str
        Name of the attribute, for messages.
    separator : str
        One character between cells.
    qualify : bool
        Put the labels above before labels of several nodes, instead of refusing them.

    Returns
    -------
    paths : list of tuple of str
        ``(leaf, parent, …)`` without the root, in file order; see :meth:`Hierarchy.from_paths`.
    root : str
        Label of the root.

    Raises
    ------
    HierarchyError
        Naming attribute, file and line: unreadable file, not UTF-8, bad quoting, no rows, ragged row, empty
        cell, several labels in the last column, root followed by something else, a leaf given twice or with two
        parents, two nodes of one label.
    """
    where = message_head(attribute, path)
    if len(separator) != 1 or separator in '"\r\n':
        raise HierarchyError(f"{where}: separator must be one character, not a quote or line end. Got {separator!r}.")
    reader = csv.reader(io.StringIO(_read_text(path, where), newline=""), delimiter=separator, strict=True)
    rows: list[list[str]] = []
    lines: list[int] = []
    try:
        for row in reader:
            if row:
                rows.append(row)
                lines.append(reader.line_num)
    except csv.Error as error:
        raise HierarchyError(f"{where}, line {reader.line_num}: not readable as CSV ({error}).") from error
    if not rows:
        raise HierarchyError(f"{where}: the file has no rows; give one row per value.")
    width = len(rows[0])
    if width < 2:
        raise HierarchyError(
            f"{where}, line {lines[0]}: a row must have at least a value and the root. Got one column with "
            f"separator '{separator}'; is the separator another one?"
        )
    for row, line in zip(rows, lines, strict=True):
        if len(row) != width:
            raise HierarchyError(
                f"{where}, line {line}: every row must have {width} columns like the first. Got {len(row)}."
            )
        for column, cell in enumerate(row, start=1):
            if not cell.strip():
                raise HierarchyError(
                    f"{where}, line {line}, column {column}: the cell is empty; a hierarchy may have no gaps."
                )
    root = rows[0][-1]
    tops = dict.fromkeys(row[-1] for row in rows)
    if len(tops) > 1:
        wrong = next(line for row, line in zip(rows, lines, strict=True) if row[-1] != root)
        raise HierarchyError(
            f"{where}, line {wrong}: the last column must be the root's label in every row, such as '{ROOT}'; "
            f"found {len(tops)} different labels: {listing(list(tops))}."
        )
    paths: list[LeafPath] = []
    for row, line in zip(rows, lines, strict=True):
        end = row.index(root)
        if end == 0:
            raise HierarchyError(f"{where}, line {line}: the value is the root label '{root}' itself; leave it out.")
        for column in range(end, width):
            if row[column] != root:
                raise HierarchyError(
                    f"{where}, line {line}, column {column + 1}: the root label '{root}' is followed by "
                    f"'{row[column]}'; after the root only the root may come."
                )
        paths.append(tuple(row[:end]))
    paths = qualified(paths, root) if qualify else paths
    refuse_clashes(paths, root=root, where=lambda index: f"{where}, line {lines[index]}", public=True)
    refuse_equal_labels(
        paths, root=root, where=lambda index: f"{where}, line {lines[index]}", public=True, remedy=_REMEDY
    )
    return paths, root


def arx_text(paths: Sequence[LeafPath], *, separator: str = ";", root: str = ROOT) -> str:
    """Return paths in the format that :func:`read_arx` reads, one row a leaf.

    Parameters
    ----------
    paths : sequence of tuple of str
        ``(leaf, parent, …)`` without the root.
    separator : str
        One character between cells.
    root : str
        Label of the root, at the end of every row.
    """
    written = io.StringIO()
    csv.writer(written, delimiter=separator, lineterminator="\n").writerows((*path, root) for path in paths)
    return written.getvalue()


def read_tree(path: str | Path, *, attribute: str, root: str = ROOT, qualify: bool = False) -> list[LeafPath]:
    """Read a hierarchy written as a nested mapping: JSON if the file is named ``*.json``, else safe YAML.

    Parameters
    ----------
    path : str or Path
        The file.
    attribute : str
        Name of the attribute, for messages.
    root : str
        Label of the root.
    qualify : bool
        As :func:`read_arx` takes it.

    Returns
    -------
    list of tuple of str
        See :func:`paths_of_tree`.

    Raises
    ------
    HierarchyError
        Unreadable file, not UTF-8, not JSON or YAML, a key given twice, or refused by `paths_of_tree`.
    """
    where = message_head(attribute, path)
    text = _read_text(path, where)
    try:
        tree = load_json(text) if Path(path).suffix.lower() == ".json" else load_yaml(text)
    except RecursionError:
        raise HierarchyError(f"{where}: the tree is nested too deeply; at most {MAX_HEIGHT} levels.") from None
    except ValueError as error:
        raise HierarchyError(f"{where}: {error}.") from error
    return paths_of_tree(tree, attribute, root, source=path, qualify=qualify)


def paths_of_tree(
    tree: Mapping[Any, Any],
    attribute: str,
    root: str = ROOT,
    *,
    source: str | Path | None = None,
    qualify: bool = False,
) -> list[LeafPath]:
    """Return the leaf paths of a nested mapping: ``{"*": {"North": ["a", "b"], "South": {"x": ["c"]}}}``.

    A mapping is an inner node per key; a list holds leaves or further mappings; a scalar is a leaf, by its
    text. The top key may be the root label; any other top keys are put under the root.

    Parameters
    ----------
    tree : mapping
        The tree.
    attribute : str
        Name of the attribute, for messages.
    root : str
        Label of the root.
    source : str or Path, optional
        The file it came from, for messages.
    qualify : bool
        As :func:`read_arx` takes it.

    Returns
    -------
    list of tuple of str
        ``(leaf, parent, …)`` without the root, in order of appearance; see :meth:`Hierarchy.from_paths`.

    Raises
    ------
    HierarchyError
        Not a mapping, empty inner node, list in a list, null as a label, a leaf given twice or
        with two parents, the root label below the root, a node that contains itself, more than `MAX_HEIGHT`
        levels or `MAX_LEAVES` leaves.
    """
    where = message_head(attribute, source)
    if not isinstance(tree, Mapping):
        raise HierarchyError(f"{where}: a tree must be a mapping such as {{'{root}': {{...}}}}.")
    content: Any = tree
    if root in tree:
        if len(tree) > 1:
            others = [str(key) for key in tree if key != root]
            raise HierarchyError(
                f"{where}: the root '{root}' must be the only top key. Got {listing(others)} beside it."
            )
        content = tree[root]

    paths: list[LeafPath] = []
    path_of: dict[str, LeafPath] = {}
    open_nodes: set[int] = set()

    def text_of(scalar: object, above: LeafPath) -> str:
        label = scalar_text(scalar)
        if label is None:
            raise HierarchyError(
                f"{where}: under {branch_text(above, root)} a label reads as {scalar!r}; write it in quotes."
            )
        if not label.strip():
            raise HierarchyError(f"{where}: under {branch_text(above, root)} a label is empty.")
        return label

    def add_leaf(scalar: object, above: LeafPath) -> None:
        path = (text_of(scalar, above), *above)
        # Refused on the spot: an alias used over and over would otherwise unfold without end.
        if path[0] in path_of:
            raise HierarchyError(f"{where}: {two_places(path_of[path[0]], path, root)}")
        if len(paths) == MAX_LEAVES:
            raise HierarchyError(f"{where}: it must have at most {MAX_LEAVES:,} leaves.")
        path_of[path[0]] = path
        paths.append(path)

    def walk(node: object, above: LeafPath) -> None:
        if not isinstance(node, Mapping | list | tuple):
            if node is None:
                raise HierarchyError(f"{where}: {branch_text(above, root)} has nothing under it; give it leaves.")
            add_leaf(node, above)
            return
        if id(node) in open_nodes:
            raise HierarchyError(f"{where}: {branch_text(above, root)} contains itself; a hierarchy may have no cycle.")
        if len(above) >= MAX_HEIGHT:
            raise HierarchyError(f"{where}: the tree is nested too deeply; at most {MAX_HEIGHT} levels.")
        if not node:
            raise HierarchyError(f"{where}: {branch_text(above, root)} has nothing under it; give it leaves.")
        open_nodes.add(id(node))
        if isinstance(node, Mapping):
            for key, below in node.items():
                walk(below, (text_of(key, above), *above))
        else:
            for item in node:
                if isinstance(item, list | tuple):
                    raise HierarchyError(
                        f"{where}: under {branch_text(above, root)} a list stands in a list; name the inner node."
                    )
                if isinstance(item, Mapping):
                    walk(item, above)
                else:
                    add_leaf(item, above)
        open_nodes.discard(id(node))

    walk(content, ())
    paths = qualified(paths, root) if qualify else paths
    refuse_clashes(paths, root=root, where=lambda _: where, public=True)
    refuse_equal_labels(paths, root=root, where=lambda _: where, public=True, remedy=_REMEDY)
    return paths


def _read_text(path: str | Path, where: str) -> str:
    """Read a file of the policy as UTF-8, without its byte order mark."""
    try:
        data = contents(path)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise HierarchyError(f"{where}: the file cannot be read ({reason}).") from error
    data = data.removeprefix(b"\xef\xbb\xbf")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        byte = error.start - (data.rfind(b"\n", 0, error.start) + 1) + 1
        raise HierarchyError(
            f"{where}, line {line}, byte {byte}: not UTF-8 (0x{data[error.start]:02x}); save it as UTF-8."
        ) from error
