"""A small policy under differential privacy, whose table does not exist: an audit needs none."""

from __future__ import annotations

from typing import Any

from naive_records import policy_of, quasi

PLACE = {"tree": {"*": ["z", {"north": ["a", "b", {"far": ["c"]}]}, {"south": [{"deep": ["d", "e"]}, "f"]}]}}
SEX = {"flat": {"values": ["u", "v"]}}


def audited(columns: Any = None, **guarantee: Any) -> Any:
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
    return policy_of(
        {name: quasi(hierarchy) for name, hierarchy in columns.items()},
        guarantee=asked,
        ledger={"url": "sqlite://", "lineage": "l", "cap": {"epsilon": 9, "delta": "1e-5"}},
    )
