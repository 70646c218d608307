"""What is measured of the table while it is encoded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any


@dataclass(frozen=True)
class InputFacts:
    """Facts of the encoded table.

    Attributes
    ----------
    rows, null_ids, duplicate_ids, null_entities : int
    nulls, unknown : dict of attribute to rows
    bad_weights : dict of weight column to rows that are missing, NaN or negative
    infinite_weights : dict of weight column to rows
    snapshot : str
        Identity of the content: independent of order and partitioning; private.
    """

    rows: int
    null_ids: int
    duplicate_ids: int
    null_entities: int
    nulls: dict[str, int]
    unknown: dict[str, int]
    bad_weights: dict[str, int]
    infinite_weights: dict[str, int]
    snapshot: str


def input_facts(
    parts: Sequence[Mapping[str, Any]], duplicate_ids: int, attributes: Sequence[str], weight_columns: Sequence[str]
) -> InputFacts:
    """Put the facts of the parts of ENCODED together.

    Parameters
    ----------
    parts : sequence of mapping
        As :func:`privrisk_spark.stages.tables.encode.pin` reports them.
    duplicate_ids : int
    attributes, weight_columns : sequence of str
    """
    rows = sum(part["rows"] for part in parts)
    total = sum(part["sum"] for part in parts) % 2**64
    other = reduce(lambda a, b: a ^ b, [part["xor"] for part in parts], 0)

    def by_name(names: Sequence[str], key: str) -> dict[str, int]:
        return {name: sum(part[key][i] for part in parts) for i, name in enumerate(names)}

    return InputFacts(
        rows=rows,
        null_ids=sum(part["null_ids"] for part in parts),
        duplicate_ids=duplicate_ids,
        null_entities=sum(part.get("null_entities", 0) for part in parts),
        nulls=by_name(attributes, "nulls"),
        unknown=by_name(attributes, "unknown"),
        bad_weights=by_name(weight_columns, "bad_weights"),
        infinite_weights=by_name(weight_columns, "infinite_weights"),
        snapshot=f"{rows}-{total:016x}{other:016x}",
    )
