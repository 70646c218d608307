"""What a run asks of the ledger."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from privrisk_spark.ledger.ledger import Ledger
from privrisk_spark.planning.identity import TableIdentity, table_identity
from privrisk_spark.planning.mechanism import Mechanism, StoredMechanism, losses_of
from privrisk_spark.planning.modes import ReusedCells
from privrisk_spark.planning.request import asked_of
from privrisk_spark.planning.reuse import refuse_unpaid
from privrisk_spark.policy.policy import Accounting, Policy
from privrisk_spark.version import __version__


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
        As :func:`~privrisk_spark.planning.request.asked_of` gives it.
    table : TableIdentity
    accounting : {'basic', 'pld'}
        What the cap binds on.
    """

    lineage: str
    run_id: str
    epsilon: Decimal
    delta: Decimal
    cap_epsilon: Decimal
    cap_delta: Decimal
    stored: StoredMechanism
    asked: dict[str, str]
    table: TableIdentity
    accounting: Accounting = "basic"

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
            **self.table.arguments(),
            "unit": self.table.unit,
            "losses": losses_of if self.accounting == "pld" else None,
        }


def cost_of(
    policy: Policy,
    plan: Mechanism,
    run_id: str,
    digest: str,
    *,
    date: dt.date,
    files: Iterable[str] | None = None,
) -> RunCost:
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
    files : iterable of str, optional
        Of the table, as `table_identity` has them.

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
        table=table_identity(policy, files),
        accounting=policy.ledger.accounting,
    )
