"""What a run would do, without doing it (``--dry-run``)."""

from __future__ import annotations

import datetime as dt

from pyspark.sql import DataFrame, SparkSession

from privrisk_spark.ledger.ledger import Ledger
from privrisk_spark.pipelines.release.lake_output import check_lake, lake_place
from privrisk_spark.pipelines.release.opened import TABLES, open_hierarchies, open_sources
from privrisk_spark.pipelines.release.published import refuse_note
from privrisk_spark.planning.as_published import AsPublished, as_published
from privrisk_spark.planning.budget import seen_of
from privrisk_spark.planning.calibration import mechanism
from privrisk_spark.planning.cost import cost_of
from privrisk_spark.planning.counting import plan_of
from privrisk_spark.planning.decisions.registry import decision_of
from privrisk_spark.planning.dictionaries import axes
from privrisk_spark.planning.disclosure import disclosure_of
from privrisk_spark.planning.history import earlier_releases, refuse_differences
from privrisk_spark.planning.lakes import pin_tables
from privrisk_spark.planning.masking import mask_plan
from privrisk_spark.planning.mechanism import Mechanism
from privrisk_spark.planning.modes import PublicCells
from privrisk_spark.planning.request import tables_of
from privrisk_spark.policy.as_published import AsPublishedGuarantee
from privrisk_spark.policy.policy import Policy
from privrisk_spark.policy.private import DpGuarantee
from privrisk_spark.reporting.explanation import explanation
from privrisk_spark.reporting.masking import masking_explanation
from privrisk_spark.runs.vaults import vault_at
from privrisk_spark.runs.workplace import Workplace, output_at
from privrisk_spark.stages.masking.numbers import check_types
from privrisk_spark.stages.publishing.directories import check_partitions


def plan_only(
    spark: SparkSession, policy: Policy, *, run_id: str, date: dt.date, table: DataFrame | None = None
) -> str:
    """Resolve everything a run needs, write nothing, and return the plan as text (``--dry-run``).

    Of the rows are read how many there are, and the distinct values of quasi-identifiers whose hierarchies take their
    leaves from the data. Whether every record can be disclosed as asked is known when the table is decided.

    Parameters
    ----------
    spark : SparkSession
    policy : Policy
    run_id : str
    date : date
        Business date.
    table : DataFrame, optional
        Of the same session; instead of the policy's table.
    """
    policy = pin_tables(policy, TABLES, given=table is not None).policy
    sources = open_sources(spark, policy, table)
    masked = policy.guarantee.kind == "masked"
    complete = {} if masked else open_hierarchies(policy, sources)
    check_partitions(policy, complete, sources.table.schema)
    plan: Mechanism | AsPublished | None = None
    if isinstance(policy.guarantee, AsPublishedGuarantee):
        plan = as_published(policy, complete)
    if isinstance(policy.guarantee, DpGuarantee):
        assert policy.ledger is not None
        plan = mechanism(policy, complete)
        cost = cost_of(policy, plan, run_id, plan.digest(policy, complete), date=date)
        Ledger(policy.ledger.url).would_cost(**cost.arguments(), seen=seen_of(policy))
    place = Workplace(output_at(policy.places.path), vault_at(policy.places.vault), run_id)
    refuse_note(policy, place, date=date)
    lake_place(policy, place, tables_of(policy, given=table is not None))
    check_lake(policy, place.output)
    if masked:
        of_masks = mask_plan(policy)
        check_types(of_masks, sources.table.schema)
        return masking_explanation(policy, of_masks)
    of_policy = axes(policy, complete)
    if plan is None:
        decision_of(policy).procedure(complete)
        disclosure_of(policy, complete, of_policy)
    choices = {}
    if not isinstance(plan, Mechanism) or isinstance(plan.mode, PublicCells):
        for dictionary in policy.dictionaries:
            frame = sources.table if dictionary.table is None else sources.dictionaries[dictionary.name]
            choices[dictionary.name] = plan_of(policy, complete, dictionary, rows=frame.count())
    text = explanation(policy, complete, choices, plan)
    if policy.history is not None:
        earlier = earlier_releases(policy, own=place.remembered)
        refuse_differences(policy, complete, earlier)
        text += f"\ncomposes with: {', '.join(one.run_id for one in earlier) or 'no earlier release'}"
    if policy.decides:
        text += "\nnot known before the rows are decided: whether each of them can be disclosed as asked"
    return text
