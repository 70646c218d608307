"""Policies given in Python: mappings with references as in files, and the run ids of frames."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

import privrisk_spark as pr
from privrisk_spark.api.policies import as_policy, settle_run
from privrisk_spark.errors import ConfigError

DAY = dt.date(2026, 11, 27)
COLUMNS: dict[str, Any] = {"town": {"role": "quasi-identifier", "hierarchy": {"flat": {"values": ("Ulm", "${TOWN}")}}}}


def test_as_policy_mapping_with_references_is_read_as_a_file_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOWN", "Bonn")
    document = {"columns": COLUMNS, "table": {"path": "t-{ds}.csv", "format": "csv"}, "run": "towns"}
    found = as_policy(document, DAY)
    assert str(found.table.path).endswith("/t-2026-11-27.csv")
    assert found.quasi_identifiers["town"].hierarchy.model_dump()["flat"]["values"] == ("Ulm", "Bonn")
    assert found.run.name == "towns"


@pytest.mark.parametrize(
    ("more", "key"),
    [({}, "TOWN is not set"), ({"self": 1}, "self"), ({"kind": 1}, "kind"), ({"columns": {1: {}}}, "columns")],
)
def test_as_policy_mapping_with_faults_names_them(more: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigError, match=key):
        as_policy({"columns": COLUMNS, **more})


@pytest.mark.parametrize(("parts", "new"), [({}, True), ({"history": []}, False)])
def test_settle_run_frame_has_a_new_id_unless_a_history_would_grow(parts: dict[str, Any], new: bool) -> None:
    """A second try with a history would count the first as a release before it."""
    columns = {"town": pr.quasi_identifier(pr.flat("Ulm", "Bonn")), "who": pr.identifier()}
    policy = pr.Policy(columns=columns, table={"record_id": "who"}, decision={"utility_at_least": 1}, **parts)
    ids = {settle_run(policy, None, DAY, given=True)[0] for _ in range(2)}
    assert len(ids) == (2 if new else 1)
