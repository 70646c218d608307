"""What a release needs, looked at: tables, hierarchies, places, what is guaranteed, what is decided and counted."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from privrisk_spark.pipelines.opening import Inspection
from privrisk_spark.pipelines.release.catalog_table import check_catalog_table
from privrisk_spark.pipelines.release.opened import TABLES, Opened, list_files, open_run
from privrisk_spark.pipelines.release.published import refuse_note
from privrisk_spark.pipelines.release.run import refuse_places
from privrisk_spark.planning.counting import plan_of
from privrisk_spark.planning.decisions.registry import decision_of
from privrisk_spark.planning.dictionaries import axes
from privrisk_spark.planning.disclosure import disclosure_of
from privrisk_spark.planning.history import earlier_releases, refuse_differences
from privrisk_spark.planning.lakes import pin_tables
from privrisk_spark.policy.policy import Policy
from privrisk_spark.registry import MODELS, load
from privrisk_spark.reporting.explanation import explanation
from privrisk_spark.runs.vaults import vault_at
from privrisk_spark.runs.workplace import Workplace, output_at
from privrisk_spark.storage.permissions import check_usable


def inspect_release(
    inspection: Inspection,
    spark: SparkSession,
    policy: Policy,
    *,
    run_id: str,
    date: dt.date,
    table: DataFrame | None,
    possible: bool = True,
) -> str | None:
    """Look at everything a release needs; write nothing, and return what it would do, if nothing is wrong so far.

    Of the rows are read how many there are, what values columns hold that hierarchies do not, and the distinct values
    of quasi-identifiers whose hierarchies take their leaves from the data.

    Parameters
    ----------
    date : date
        Business date.
    table : DataFrame or None
        Of the same session; instead of the policy's table.
    possible : bool
        Whether the policy's keys fit each other; if not, only what it names is looked at.
    """
    pinned = None
    with inspection.at("table"):
        pinned = pin_tables(policy, TABLES, given=table is not None)
    if pinned is None:
        return None
    policy = pinned.policy
    opened = open_run(spark, policy, table, inspection)
    if not possible or policy.output is None:
        return None
    place = Workplace(output_at(policy.places.path), vault_at(policy.places.vault), run_id)
    refuse_places(spark, policy, place, pinned, table, inspection)
    with inspection.at("output.catalog"):
        check_catalog_table(spark, policy, place.output)
    for key, where in {"output.path": place.output.location, "output.vault": place.vault.location}.items():
        with inspection.at(key):
            (place.vault.check if key == "output.vault" else lambda: place.output.check(place.run_id))()
            if not where.remote:
                check_usable(Path(where.path), key)
                inspection.note(key, "can be written")
    return None if inspection.errors else _plan(policy, opened, place, date, inspection)


def _plan(policy: Policy, opened: Opened, place: Workplace, date: dt.date, inspection: Inspection) -> str | None:
    """Plan what would be guaranteed, decided and counted, and return it in words."""
    sources, hierarchies, files = opened.sources, opened.hierarchies, None
    with inspection.at("table"):
        if policy.ledger is not None:
            files = list_files(policy, sources)
    with inspection.at("ledger"):
        refuse_note(policy, place, files)
    guarantee, plan = policy.guarantee, None
    entry = MODELS[guarantee.kind].inspect
    if entry is not None:
        with inspection.at("columns"):
            explained: str = load(entry)(policy, sources.table.schema)
            return explained
        return None
    with inspection.at("guarantee"):
        entry = MODELS[guarantee.kind].plan
        plan = None if entry is None else load(entry)(policy, hierarchies)
    if plan is not None and guarantee.private and policy.ledger is not None:
        with inspection.at("ledger"):
            from privrisk_spark.ledger.administration import seen_of
            from privrisk_spark.ledger.ledger import Ledger
            from privrisk_spark.planning.cost import cost_of

            request = cost_of(policy, plan, place.run_id, plan.digest(policy, hierarchies), date=date, files=files)
            Ledger(policy.ledger.url).would_cost(request, seen=seen_of(policy))
    if guarantee.decides:
        with inspection.at("decision"):
            of_policy = axes(policy, hierarchies)
            decision_of(policy).procedure(hierarchies)
            disclosure_of(policy, hierarchies, of_policy)
    choices = {}
    if guarantee.decides or (plan is not None and guarantee.counts_frequent):
        for one in policy.dictionaries:
            with inspection.at("counting"):
                frame = sources.dictionaries.get(one.name, sources.table)
                choices[one.name] = plan_of(policy, hierarchies, one, rows=frame.count())
    composed = ""
    with inspection.at("history"):
        if policy.history is not None:
            earlier = earlier_releases(policy, own=place.remembered)
            refuse_differences(policy, hierarchies, earlier)
            composed = f"\ncomposes with: {', '.join(one.run_id for one in earlier) or 'no earlier release'}"
    if inspection.errors:
        return None
    if policy.decides:
        inspection.unknown.append("whether each record can be disclosed as asked")
    return explanation(policy, hierarchies, choices, plan) + composed
