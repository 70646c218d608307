"""Admitted cells of an earlier release: only those that the ledger has as committed are used again."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from ledgers import MECHANISM

from privrisk_spark.errors import BudgetError
from privrisk_spark.ledger.ledger import Ledger
from privrisk_spark.ledger.request import Request
from privrisk_spark.planning import reuse


def test_reuse_of_a_withdrawn_release_says_that_it_was_withdrawn(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, run = Ledger(f"sqlite:///{tmp_path}/ledger.db"), {"lineage": "census", "run_id": "r1"}
    costs = {"epsilon": "1", "delta": "1e-9", "cap_epsilon": "4", "cap_delta": "1e-7"}
    ledger.reserve(Request(**run, **costs, mechanism=MECHANISM))
    ledger.bind(**run, key="k", place="/out")
    ledger.pin(**run, snapshot="s")
    ledger.commit(**run, release="d")
    ledger.withdraw(**run, reason="x", place="/out")
    known = SimpleNamespace(lineage="census", run_id="r1", published=None, release="d")
    monkeypatch.setattr(reuse.Reused, "read", lambda *_, **__: known)
    monkeypatch.setattr(reuse, "ReusingDp", SimpleNamespace)
    policy: Any = SimpleNamespace(guarantee=SimpleNamespace(reuse="manifest.json"))
    with pytest.raises(BudgetError, match="the release of run id 'r1' was withdrawn"):
        reuse.refuse_unpaid(policy, policy, ledger)
