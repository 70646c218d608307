"""Values of sensitive columns in the hierarchies that hierarchical distances name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from privrisk_spark.engine.grounds import grounds_of
from privrisk_spark.errors import HierarchyError
from privrisk_spark.policy.anonymity import KAnonymityGuarantee

FLAT = {"distance": "hierarchical", "hierarchy": {"flat": {}}}


def asked(*also: dict[str, Any]) -> KAnonymityGuarantee:
    return KAnonymityGuarantee.model_validate({"kind": "k-anonymity", "k": 2, "also": list(also)})


def closeness(column: str, **more: Any) -> dict[str, Any]:
    return {"t_closeness": {"column": column, "t": 0.2, **more}}


def test_values_have_their_nodes_in_the_order_they_come(tmp_path: Path) -> None:
    file = tmp_path / "sick.csv"
    file.write_text("flu;lung;*\ncold;lung;*\nms;*;*\n")
    guarantee = asked(
        {"alpha": {"column": "sick", "alpha": 0.5}},
        closeness("sick"),
        closeness("sick", distance="hierarchical", hierarchy={"file": str(file)}),
        closeness("age", **FLAT),
    )
    values = {"sick": pa.array(["ms", None, "cold", "flu"]), "age": pa.chunked_array([pa.array([30, 4])])}
    found = grounds_of(guarantee, values)
    assert list(found) == [2, 3], "by their places; others have none"
    ms, null, cold, flu = found[2].tolist()
    assert cold[0] != flu[0]
    assert cold[1:] == flu[1:]
    assert len({row[0] for row in (ms, null, cold, flu)}) == 4
    assert ms[1] == null[1] == cold[2], "a value at the first step below the root comes to it at once"
    assert len({row[-1] for row in (ms, null, cold, flu)}) == 1
    assert found[3][:, 0].tolist() != found[3][::-1, 0].tolist()
    assert grounds_of(asked(closeness("sick")), {}) == {}


def test_values_outside_are_counted_and_not_named(tmp_path: Path) -> None:
    file = tmp_path / "sick.csv"
    file.write_text("flu;*\n")
    guarantee = asked(closeness("sick", distance="hierarchical", hierarchy={"file": str(file)}))
    with pytest.raises(HierarchyError) as caught:
        grounds_of(guarantee, {"sick": pa.array(["flu", "plague", "cold"])})
    assert str(caught.value) == ("guarantee.also.0.t_closeness.hierarchy: 2 distinct values of 'sick' are not in it.")
