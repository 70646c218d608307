"""A small policy under differential privacy, whose table does not exist: an audit needs none."""

from __future__ import annotations

from typing import Any

from naive_records import policy_of, quasi

PLACE = {"tree": {"*": ["z", {"north": ["a", "b", {"far": ["c"]}]}, {"south": [{"deep": ["d", "e"]}, "f"]}]}}
SEX = {"flat": {"values": ["u", "v"]}}


CHOOSING = {
    "schemes": None,
    "candidates": [[0, 0], [1, 0], [2, 0], [2, 1]],
    "peel": 2,
    "epsilon": {"choose": "0.1", "admit": "0.5", "keep": "0.7"},
}
"""Two schemes are picked, and then cells of both are admitted."""

GLOBAL = {
    **CHOOSING,
    "mode": "global",
    "peel": None,
    "epsilon": {"choose": "0.1", "keep": "0.7"},
    "noise": None,
    "objective": None,
}
"""One scheme is picked for all rows."""


def audited(columns: Any = None, *, entity_id: str | None = None, **guarantee: Any) -> Any:
    columns = columns or {"place": PLACE, "sex": SEX}
    asked = {
        "kind": "dp",
        "epsilon": {"admit": "0.5", "keep": "0.7"},
        "delta": "1e-7",
        "noise": "gaussian",
        "public_rows": 1000,
        "schemes": [[0, 0], [1, 0], [2, 1]],
        "objective": {"phi_min": 0.5},
        **guarantee,
    }
    more = {} if entity_id is None else {"table": {"path": "in/table", "entity_id": entity_id}}
    roles = {name: quasi(hierarchy) for name, hierarchy in columns.items()}
    return policy_of(
        roles if entity_id is None else {**roles, entity_id: {"role": "identifier"}},
        guarantee={key: value for key, value in asked.items() if value is not None},
        **more,
        ledger={"url": "sqlite://", "lineage": "l", "cap": {"epsilon": 9, "delta": "1e-5"}},
    )
