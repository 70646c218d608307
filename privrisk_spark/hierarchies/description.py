"""What there is to see of a hierarchy before it is used: its levels, short branches, labels that come again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.json_values import JsonDocument

MOST_EXAMPLES = 3


@dataclass(frozen=True)
class Level:
    """One level of a hierarchy.

    Attributes
    ----------
    number : int
        From 0, the values themselves.
    nodes : int
        Different nodes that values are generalized to.
    fewest, most : int
        Values under one of them.
    examples : tuple of str
        Labels: the first ones, the last one. Empty where labels are values of records and nobody asked for them.
    """

    number: int
    name: str
    nodes: int
    fewest: int
    most: int
    examples: tuple[str, ...]

    json_keys = (
        "level:number", "name", "nodes", "fewest_values:fewest", "most_values:most", "examples",
    )  # fmt: skip


@dataclass(frozen=True)
class Description(JsonDocument):
    """What there is to see of a hierarchy.

    Attributes
    ----------
    leaves, height : int
        Values, and generalization steps of the deepest of them.
    public : bool
        Whether the policy declares the values; if not, they come from the table.
    depths : mapping of int to int
        Number of values by the steps they can take; several where branches are short.
    repeated : mapping of str to tuple of int
        Levels of each label that stands on several, but for the root's and where labels are values of records.
    """

    attribute: str
    leaves: int
    height: int
    public: bool
    levels: tuple[Level, ...]
    depths: Mapping[int, int]
    repeated: Mapping[str, tuple[int, ...]]

    json_keys = (
        "attribute", "leaves", "height", "public", "levels", "depths", "repeated_labels:repeated",
    )  # fmt: skip


def describe(hierarchy: Hierarchy, *, values: bool = False) -> Description:
    """Return what there is to see of a hierarchy.

    Parameters
    ----------
    values : bool
        Show labels though they are values of records, or made of them.
    """
    told = hierarchy.public or values
    levels = []
    levels_of: dict[str, set[int]] = {}
    for number, name in enumerate(hierarchy.level_names):
        nodes = hierarchy.nodes_at_level(number)
        under = hierarchy.n_under[nodes]
        labels = [hierarchy.labels[node] or "(missing)" for node in nodes.tolist()]
        # Nodes are numbered deepest first; by their leaves they are in the order of the values.
        order = np.lexsort((nodes, hierarchy.first_leaf[nodes]))
        in_order = [labels[i] for i in order.tolist()]
        examples = in_order if len(labels) <= MOST_EXAMPLES else [*in_order[: MOST_EXAMPLES - 1], in_order[-1]]
        levels.append(
            Level(number, name, len(labels), int(under.min()), int(under.max()), tuple(examples) if told else ())
        )
        for node, label in zip(nodes.tolist(), labels, strict=True):
            # A short branch stays at the root.
            if node != hierarchy.root and told:
                levels_of.setdefault(label, set()).add(number)
    depths, counts = np.unique(hierarchy.depth[: hierarchy.n_leaves], return_counts=True)
    return Description(
        hierarchy.attribute,
        hierarchy.n_leaves,
        hierarchy.height,
        hierarchy.public,
        tuple(levels),
        dict(zip(depths.tolist(), counts.tolist(), strict=True)),
        {label: tuple(sorted(found)) for label, found in levels_of.items() if len(found) > 1},
    )
