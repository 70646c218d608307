"""What a run would do, without doing it (``--dry-run``), and what is said when the engine fails."""

from __future__ import annotations

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from privrisk_spark.errors import EngineError
from privrisk_spark.ledger.ledger import Ledger
from privrisk_spark.planning.as_published import AsPublished, as_published
from privrisk_spark.planning.dictionaries import axes
from privrisk_spark.planning.mechanism import Mechanism, cost_of, mechanism
from privrisk_spark.planning.problem import problem
from privrisk_spark.policy.policy import AsPublishedGuarantee, DpGuarantee, Policy
from privrisk_spark.stages.counting.dense_sorted import plan_of
from privrisk_spark.stages.diagnostics.diagnostics import Further
from privrisk_spark.stages.publishing.documents import explanation
from privrisk_spark.stages.tables.opening import check_columns, check_dictionary, hierarchies_from_policy, read


def plan_only(spark: SparkSession, policy: Policy, *, run_id: str, table: DataFrame | None = None) -> str:
    """Resolve everything a run needs, write nothing, and return the plan as text (``--dry-run``).

    Hierarchies whose leaves come from the data are not built, and the counting plan is then left open.
    """
    table = read(spark, policy.table, key="table") if table is None else table
    check_columns(table, policy)
    frames = {"": table}
    for one in policy.dictionaries:
        if one.table is not None:
            frames[one.name] = read(spark, one.table, key=one.key)
            check_dictionary(frames[one.name], one.table, key=one.key)
    Further.opened(spark, policy, frames)
    found = hierarchies_from_policy(policy)
    complete = {name: hierarchy for name, hierarchy in found.items() if hierarchy is not None}
    plan: Mechanism | AsPublished | None = None
    if isinstance(policy.guarantee, AsPublishedGuarantee):
        plan = as_published(policy, complete)
    if isinstance(policy.guarantee, DpGuarantee):
        assert policy.ledger is not None
        plan = mechanism(policy, complete)
        Ledger(policy.ledger.url).would_cost(**cost_of(policy, plan, run_id, plan.digest(policy, complete)))
    if len(complete) < len(found):
        open_names = ", ".join(name for name in found if name not in complete)
        return f"The leaves of {open_names} come from the data; lattice and plan are known once it is read."
    of_policy = axes(policy, complete)
    if plan is None:
        problem(policy, complete, of_policy)
    choices = {}
    if not isinstance(plan, Mechanism) or plan.policy.mode == "public-dictionary":
        for one in policy.dictionaries:
            rows = frames["" if one.table is None else one.name].count()
            choices[one.name] = plan_of(policy, complete, one, rows=rows)
    return explanation(policy, complete, choices, plan)


def engine_failure(error: Exception) -> EngineError:
    """Say what failed in Spark without its message, which may quote data."""
    condition = error.getCondition() if isinstance(error, PySparkException) else None
    return EngineError(f"Spark failed ({condition or type(error).__name__}); its own log has the details.")
