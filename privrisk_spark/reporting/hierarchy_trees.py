"""A value generalization hierarchy as a picture: a tree from the root to the values, elided where it is wide."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from matplotlib.figure import Figure

from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.reporting.charts import WIDTH, as_svg, chart_settings

ROWS = 40
"""Lines of a picture, about."""

_SHOWN_CHILDREN = 5
_LONGEST = 24
_ROW_INCHES = 0.19
_LEAST_COLUMN_INCHES = 1.35


@dataclass(frozen=True)
class Branch:
    """A node as it is drawn.

    Attributes
    ----------
    depth : int
        Edges from the root.
    below : tuple of Branch
        Children that are drawn, in order.
    elided : bool
        Whether it stands for several nodes, or for all below one.
    """

    label: str
    depth: int
    below: tuple[Branch, ...] = ()
    elided: bool = False

    @property
    def lines(self) -> int:
        """Lines it takes."""
        return sum(branch.lines for branch in self.below) or 1


def elided_tree(hierarchy: Hierarchy, *, rows: int = ROWS) -> Branch:
    """Return the tree with what does not fit replaced by how much it is.

    Lines are dealt to children evenly. Of children that are more than the lines of their node, some first ones are
    drawn and the last, and how many are between; where a node with children has one line, the number of its values.

    Parameters
    ----------
    rows : int
        Lines to deal, at least 3.
    """
    children: dict[int, list[int]] = {}
    for node in range(hierarchy.n_nodes - 1):
        children.setdefault(int(hierarchy.parent[node]), []).append(node)
    for below in children.values():
        below.sort(key=lambda node: int(hierarchy.first_leaf[node]))

    def branch(node: int, depth: int, lines: int) -> Branch:
        label = _short(hierarchy.labels[node] or "(missing)")
        below = children.get(node, [])
        if not below:
            return Branch(label, depth)
        if lines < 2 and int(hierarchy.n_under[node]) > 1:
            values = int(hierarchy.n_under[node])
            return Branch(label, depth, (Branch(f"… {values:,} values", depth + 1, elided=True),))
        if len(below) <= lines:
            share, more = divmod(lines, len(below))
            drawn = [branch(child, depth + 1, share + (i < more)) for i, child in enumerate(below)]
            return Branch(label, depth, tuple(drawn))
        kept = max(min(lines - 2, _SHOWN_CHILDREN - 1), 1)
        between = below[kept:-1]
        values = sum(int(hierarchy.n_under[child]) for child in between)
        what = f"… {len(between):,} more" + (f", {values:,} values" if values > len(between) else "")
        share = max((lines - 1) // (kept + 1), 1)
        first = [branch(child, depth + 1, share) for child in below[:kept]]
        last = branch(below[-1], depth + 1, share)
        return Branch(label, depth, (*first, Branch(what, depth + 1, elided=True), last))

    return branch(hierarchy.root, 0, max(rows, 3))


def draw_hierarchy(hierarchy: Hierarchy, *, prefix: str = "hierarchy", rows: int = ROWS) -> str:
    """Draw a hierarchy, the root at the left and the values at the right, as an ``<svg>`` element.

    Parameters
    ----------
    hierarchy : Hierarchy
        Every label of it may be read in the picture.
    prefix : str
        Prefix of the identifiers.
    rows : int
        Lines, about.
    """
    tree = elided_tree(hierarchy, rows=rows)
    columns = hierarchy.height + 1
    width = max(WIDTH, columns * _LEAST_COLUMN_INCHES)
    height = (tree.lines + 2) * _ROW_INCHES
    with chart_settings():
        figure = Figure(figsize=(width, height))
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_xlim(-0.08, columns)
        axes.set_ylim(tree.lines + 0.5, -1.5)
        axes.axis("off")
        for depth, name in enumerate(reversed(hierarchy.level_names)):
            axes.text(depth, -1, name, fontsize=8.5, fontweight="bold", va="center")
        for one, line, at in _placed(tree, 0.0):
            style = "italic" if one.elided else "normal"
            axes.text(one.depth, line, one.label, fontsize=8.5, style=style, va="center")
            start = one.depth + min(0.9, 0.05 + 0.055 * len(one.label))
            for end in at:
                axes.plot(
                    [start, one.depth + 0.93, one.depth + 0.98],
                    [line, end, end],
                    color="#999999",
                    linewidth=0.6,
                    zorder=0,
                )
        levels = ", ".join(hierarchy.level_names)
        return as_svg(
            figure,
            prefix,
            title=f"Hierarchy of {hierarchy.attribute or 'a column'}",
            description=f"{hierarchy.n_leaves:,} values in {hierarchy.height + 1} levels: {levels}. From the left to "
            "the right: the suppressed value, and what each node is made of.",
        )


def _placed(branch: Branch, top: float) -> Iterator[tuple[Branch, float, list[float]]]:
    """Each branch with its line, and the lines of its children."""
    at, lines = top, []
    for child in branch.below:
        placed = list(_placed(child, at))
        lines.append(placed[-1][1])
        yield from placed
        at += child.lines
    middle = (lines[0] + lines[-1]) / 2 if lines else top
    yield branch, middle, lines


def _short(label: str) -> str:
    return label if len(label) <= _LONGEST else f"{label[: _LONGEST - 1]}…"
