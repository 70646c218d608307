"""The events of a lineage chained by hash: each hash covers the one before it and its own event.

Whoever may write the database can rewrite all of a chain, or cut its end; that shows because its last hash is also kept
where they may not write, in the vaults of the runs (`privrisk_spark.runs.witnesses`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

from privrisk_spark.ledger.request import canonical

__all__ = ["COLUMN", "first_link", "link"]

COLUMN: Final = "chain"
"""Of the event's own hash."""
_NOT_COVERED: Final = frozenset({COLUMN, "sequence"})
"""The number of an event is the database's; its place among the events of its lineage is what the chain says."""


def first_link(lineage: str) -> str:
    """Return what stands for the event before the first one of a lineage, as it is spelled in the ledger."""
    return hashlib.sha256(canonical(["privrisk ledger, events of the lineage", lineage]).encode()).hexdigest()


def link(previous: str, event: Mapping[str, Any]) -> str:
    """Return the hash of an event.

    Parameters
    ----------
    previous : str
        Hash of the event before it, or `first_link`.
    event : mapping
        By column; those that are not given are not in it.

    Returns
    -------
    str
        SHA-256 of the canonical JSON of both, hex.
    """
    content = {name: value for name, value in event.items() if name not in _NOT_COVERED and value is not None}
    # SQLite has no truth values of its own.
    content["nothing_left_the_zone"] = bool(content["nothing_left_the_zone"])
    return hashlib.sha256(canonical([previous, content]).encode()).hexdigest()
