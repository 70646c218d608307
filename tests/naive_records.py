"""Literal reading of records, trees and dictionaries as plain Python values, and short ways to set the stage.

A node of a tree is its path from the root as a tuple of labels: the root is ``()``, and ``a ⪯ b`` ("b is a or an
ancestor of a") holds iff ``b`` is a prefix of ``a``. Nothing here uses the package's hierarchies, counts or kernels.
"""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from privrisk_spark.policy.policy import Policy
from privrisk_spark.policy.reading import parse

Node = tuple[Any, ...]

ROOT: Node = ()
NULL_LEAF: Node = (None,)
OUTSIDE: Node = ("a value no tree holds",)
TOLERANCE = 1e-12


def policy_of(columns: Mapping[str, Any], **more: Any) -> Policy:
    """A policy with the least a policy needs."""
    document: dict[str, Any] = {
        "version": 1,
        "run": {"name": "test"},
        "table": {"path": "in/table"},
        "columns": columns,
        "output": {"path": "out", "vault": "vault"},
    }
    if more.get("guarantee", {}).get("kind") != "dp":
        document["decision"] = {"utility_at_least": 0}
    return parse(document | more)


def quasi(hierarchy: Any, **more: Any) -> dict[str, Any]:
    return {"role": "quasi-identifier", "hierarchy": hierarchy, **more}


# ------------------------------------------------------------------------------------------------ trees


def leaves_of(tree: Any, above: Node = ()) -> dict[str, Node]:
    """Leaf text to node of ``{"*": {"north": ["a", "b"], ...}}`` without the top key."""
    if isinstance(tree, Mapping):
        found = [leaves_of(below, (*above, key)) for key, below in tree.items()]
    elif isinstance(tree, list):
        found = [leaves_of(below, above) for below in tree]
    else:
        return {str(tree): (*above, str(tree))}
    return {leaf: node for part in found for leaf, node in part.items()}


def under(node: Node, above: Node) -> bool:
    """``node ⪯ above``."""
    return node[: len(above)] == above


def node_of(value: str | None, leaves: Mapping[str, Node], nulls: str) -> Node:
    """Node of a table's value under a null policy; a value outside the tree is suppressed."""
    if value is None:
        return NULL_LEAF if nulls == "own-value" else ROOT
    return leaves.get(value, ROOT)


def generalized(node: Node, level: int) -> Node:
    return node[: max(0, len(node) - level)]


def levels_above(record: Sequence[Node]) -> Iterator[tuple[int, ...]]:
    """Level vectors of a record's lattice, in lexicographic order."""
    return itertools.product(*[range(len(node) + 1) for node in record])


def consistent(t: Node | None, x: Node, consistency: str, nulls: str) -> bool:
    """Whether a dictionary value (None: the dictionary lacks the attribute) is consistent with a disclosed node."""
    if t is None:
        return True
    if consistency == "compatible":
        return under(t, x) or under(x, t)
    return under(t, x) or (nulls == "wildcard" and t == ROOT)


def count(x: Sequence[Node], theta: Sequence[Sequence[Node | None]], consistency: str, nulls: Sequence[str]) -> int:
    """``|ρ(x, θ)|`` row by row."""
    return sum(
        all(consistent(t, node, consistency, of) for t, node, of in zip(row, x, nulls, strict=True)) for row in theta
    )


def path(hierarchy: Any, node: int) -> Node:
    """The package's node number as a path of labels."""
    labels: list[Any] = []
    while node != hierarchy.root:
        labels.append(hierarchy.labels[node])
        node = int(hierarchy.parent[node])
    return tuple(reversed(labels))


# --------------------------------------------------------------------------------------------- decisions


def identification_risk(model: str, phi: float, rho: int, n: int) -> float:
    if rho == 0:
        return 0.0
    if model == "II":
        return 1 / rho
    if model == "I":
        return phi / rho
    surprisal = math.log(n / rho)
    return 0.0 if surprisal == 0 else phi * surprisal


def best(options: Sequence[tuple[tuple[int, ...], float, float]]) -> tuple[int, ...]:
    """Level vector of (levels, risk, utility) with the lowest risk, then the highest utility, then the smallest vector.

    Numbers within a relative 1e-12 of each other count as equal.
    """
    least = min(risk for _, risk, _ in options)
    near = [option for option in options if option[1] <= least * (1 + TOLERANCE)]
    most = max(utility for _, _, utility in near)
    return min(levels for levels, _, utility in near if utility >= most - TOLERANCE * max(1.0, abs(most)))


# ------------------------------------------------------------------------------------------------ frames


def shuffled(frame_rows: Sequence[Any], seed: int) -> list[Any]:
    rows = list(frame_rows)
    random.Random(seed).shuffle(rows)
    return rows


def layouts(spark: Any, rows: Sequence[Any], schema: Any) -> list[DataFrame]:
    """The same rows in 1, 4 and 11 partitions, each time in another order."""
    return [
        spark.createDataFrame(shuffled(rows, seed), schema).repartition(partitions)
        if partitions > 1
        else spark.createDataFrame(shuffled(rows, seed), schema).coalesce(1)
        for seed, partitions in enumerate((1, 4, 11))
    ]


def together(frames: Sequence[DataFrame]) -> list[list[dict[str, Any]]]:
    """Collect several frames of one schema by one job; the rows of each, in no order."""
    tagged = [frame.withColumn("_which", F.lit(i)) for i, frame in enumerate(frames)]
    union = tagged[0]
    for frame in tagged[1:]:
        union = union.unionByName(frame)
    found: list[list[dict[str, Any]]] = [[] for _ in frames]
    for row in union.toArrow().to_pylist():
        found[row.pop("_which")].append(row)
    return found


def parts_of(written: Any) -> list[dict[str, Any]]:
    """Run the tasks that write parts; name and facts of each."""
    rows = written.frame().toArrow().to_pylist()
    return [{"name": row["name"], **json.loads(row["facts"])} for row in rows]


def by(key: str, rows: Sequence[dict[str, Any]]) -> dict[Any, dict[str, Any]]:
    """Rows by a key that must be unique."""
    indexed = {row[key]: row for row in rows}
    assert len(indexed) == len(rows), f"{key} is not unique"
    return indexed
