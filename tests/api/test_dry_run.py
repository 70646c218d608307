"""What a dry run accepts before Spark is started."""

from __future__ import annotations

from typing import NoReturn

import pytest

import privrisk_spark as pr
from privrisk_spark.engine import session
from privrisk_spark.errors import ConfigError, EngineError


def test_plan_of_undecided_columns_needs_that_they_are_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    def held(*_: object, **__: object) -> NoReturn:
        raise EngineError("A session is started.")

    monkeypatch.setattr(session, "held", held)
    policy = pr.Policy(
        columns={"town": pr.quasi_identifier(pr.flat("Ulm", "Bonn"))},
        table={"path": "towns.csv"},
        decision={"utility_at_least": 1},
        undecided=["town"],
    )
    with pytest.raises(ConfigError, match="accept_undecided=True"):
        pr.plan(None, policy)
    with pytest.raises(EngineError, match="A session is started"):
        pr.plan(None, policy, accept_undecided=True)
