"""What a run asks of the ledger; no Spark: a private release's cost is fixed before its table is opened."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable

from privrisk_spark.errors import ConfigError, Fault
from privrisk_spark.hierarchies.builders import build
from privrisk_spark.ledger.administration import ledger_of
from privrisk_spark.ledger.calibrated import Calibrated, ReusedCells
from privrisk_spark.ledger.identity import table_identity
from privrisk_spark.ledger.ledger import Ledger
from privrisk_spark.ledger.request import Request
from privrisk_spark.planning.calibration import mechanism
from privrisk_spark.planning.request import asked_of
from privrisk_spark.planning.reuse import refuse_unpaid
from privrisk_spark.policy.policy import Policy
from privrisk_spark.version import __version__

__all__ = ["cost_of", "run_cost"]


def run_cost(policy: Policy, run_id: str, date: dt.date) -> Request:
    """Return what a run of the policy asks of the ledger; a release with the same run id asks for the same.

    Parameters
    ----------
    policy : Policy
        With guarantee.kind ``dp``.
    date : date
        Business date.

    Raises
    ------
    InputError
        If the policy is not differentially private, or its mechanism or a hierarchy is refused.
    """
    ledger_of(policy)
    if not policy.guarantee.private:
        raise ConfigError([Fault("guarantee.kind", "only 'dp' spends a budget; a release of another kind is noted")])
    # First without hierarchies: it refuses those that would take their leaves from the data.
    mechanism(policy)
    hierarchies = {
        name: build(spec.hierarchy, name, values=None, null_leaf=spec.nulls == "own-value")
        for name, spec in policy.quasi_identifiers.items()
    }
    plan = mechanism(policy, hierarchies)
    return cost_of(policy, plan, run_id, plan.digest(policy, hierarchies), date=date)


def cost_of(
    policy: Policy,
    plan: Calibrated,
    run_id: str,
    digest: str,
    *,
    date: dt.date,
    files: Iterable[str] | None = None,
) -> Request:
    """Return what the ledger is asked to reserve.

    Parameters
    ----------
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
    ledger = ledger_of(policy)
    if isinstance(plan, ReusedCells):
        refuse_unpaid(policy, plan.reuse, Ledger(ledger.url))
    table = table_identity(policy, files)
    return Request(
        lineage=ledger.lineage,
        run_id=run_id,
        epsilon=plan.epsilon,
        delta=plan.delta,
        cap_epsilon=ledger.cap.epsilon,
        cap_delta=ledger.cap.delta,
        mechanism={"parameters": plan.parameters, "digest": digest, "version": __version__},
        asked=asked_of(policy, date),
        table=table.table,
        files=table.files,
        unit=table.unit,
        accounting=ledger.accounting,
    )
