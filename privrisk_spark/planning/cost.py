"""What a run asks of the ledger."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from privrisk_spark import __version__
from privrisk_spark.ledger.ledger import Ledger
from privrisk_spark.planning.mechanism import Mechanism, StoredMechanism
from privrisk_spark.planning.modes import ReusedCells
from privrisk_spark.planning.reuse import refuse_unpaid
from privrisk_spark.policy.contents import contents_of
from privrisk_spark.policy.policy import Policy

_APART: Final = ("columns", "guarantee")
"""Parts of a policy that are told apart key by key."""


@dataclass(frozen=True)
class RunCost:
    """What a run costs, and of what it is charged to.

    Attributes
    ----------
    lineage, run_id : str
    epsilon, delta : Decimal
        Of the run.
    cap_epsilon, cap_delta : Decimal
        Of the lineage, by the policy.
    stored : StoredMechanism
        What the ledger keeps of the mechanism.
    asked : dict of str to str
        As :func:`asked_of` gives it.
    """

    lineage: str
    run_id: str
    epsilon: Decimal
    delta: Decimal
    cap_epsilon: Decimal
    cap_delta: Decimal
    stored: StoredMechanism
    asked: dict[str, str]

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `Ledger.reserve` and `Ledger.would_cost`."""
        return {
            "lineage": self.lineage,
            "run_id": self.run_id,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "cap_epsilon": self.cap_epsilon,
            "cap_delta": self.cap_delta,
            "mechanism": self.stored.to_dict(),
            "asked": self.asked,
        }


def cost_of(policy: Policy, plan: Mechanism, run_id: str, digest: str, *, date: dt.date) -> RunCost:
    """What the ledger is asked to reserve.

    Parameters
    ----------
    policy : Policy
    plan : Mechanism
    run_id : str
    digest : str
        Of the plan, with policy and hierarchies.
    date : date
        Business date.

    Raises
    ------
    BudgetError
        If it takes admitted cells again that the ledger knows no payment of.
    """
    assert policy.ledger is not None
    if isinstance(plan.mode, ReusedCells):
        refuse_unpaid(policy, plan.mode.cells, Ledger(policy.ledger.url))
    return RunCost(
        lineage=policy.ledger.lineage,
        run_id=run_id,
        epsilon=plan.epsilon,
        delta=plan.delta,
        cap_epsilon=policy.ledger.cap.epsilon,
        cap_delta=policy.ledger.cap.delta,
        stored=StoredMechanism(plan, digest, __version__),
        asked=asked_of(policy, date),
    )


def asked_of(policy: Policy, date: dt.date) -> dict[str, str]:
    """Return digests of all that a release is asked for, by name: a retry of the run must agree in each.

    Parameters
    ----------
    policy : Policy
        Part by part, and the contents of the hierarchy and mapping files it names. A table counts by what the policy
        says of it; what it holds is another matter (the snapshot).
    date : date
        Business date.
    """
    return {name: hashlib.sha256(text.encode()).hexdigest()[:32] for name, text in _asked(policy, date)}


def _asked(policy: Policy, date: dt.date) -> Iterator[tuple[str, str]]:
    yield "date", (policy.run.date or date).isoformat()
    for part, value in json.loads(policy.canonical()).items():
        for name in value if part in _APART else ():
            yield f"{part}.{name}", json.dumps(value[name], sort_keys=True)
        if part not in _APART:
            yield part, json.dumps(value, sort_keys=True)
    for key, digest in contents_of(policy, but=("assess",)).items():
        yield f"contents of {key}", digest
