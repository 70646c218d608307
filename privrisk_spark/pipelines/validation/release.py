"""What a release needs, looked at: tables, hierarchies, places, what is guaranteed, what is decided and counted."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812 - the name every Spark program uses

from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.pipelines.release.catalog_table import check_catalog_table
from privrisk_spark.pipelines.release.lake_output import check_lake, lake_place
from privrisk_spark.pipelines.release.opened import TABLES
from privrisk_spark.pipelines.release.published import refuse_note
from privrisk_spark.pipelines.validation.looks import (
    Looks,
    look_at_dictionary,
    look_at_hierarchies,
    look_at_nodes,
    look_at_table,
)
from privrisk_spark.planning.counting import plan_of
from privrisk_spark.planning.decisions.registry import decision_of
from privrisk_spark.planning.dictionaries import axes
from privrisk_spark.planning.disclosure import disclosure_of
from privrisk_spark.planning.history import earlier_releases, refuse_differences
from privrisk_spark.planning.lakes import Pinned, pin_tables
from privrisk_spark.planning.masking import mask_plan
from privrisk_spark.planning.places import all_dictionaries, refuse_input, refuse_public_ledger
from privrisk_spark.planning.request import tables_of
from privrisk_spark.policy.policy import Policy
from privrisk_spark.registry import MODELS, load
from privrisk_spark.reporting.explanation import explanation
from privrisk_spark.reporting.models.masked import masking_explanation
from privrisk_spark.runs.vaults import vault_at
from privrisk_spark.runs.workplace import Workplace, output_at
from privrisk_spark.stages.masking.numbers import check_types
from privrisk_spark.stages.publishing.directories import check_partitions
from privrisk_spark.storage.permissions import check_usable
from privrisk_spark.tables.links import open_links
from privrisk_spark.tables.sources import files_only_spark_knows, files_read
from privrisk_spark.tables.tidying import recoded


def look_at_release(
    looks: Looks,
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
    looks : Looks
    spark : SparkSession
    policy : Policy
    run_id : str
    date : date
        Business date.
    table : DataFrame or None
        Of the same session; instead of the policy's table.
    possible : bool
        Whether the policy's keys fit each other; if not, only what it names is looked at.
    """
    given, pinned = table is not None, None
    with looks.at("table"):
        pinned = pin_tables(policy, TABLES, given=given)
    if pinned is None:
        return None
    policy = pinned.policy
    opened = look_at_table(looks, spark, policy, table)
    dictionaries = {}
    for one in all_dictionaries(policy):
        found = None if one.table is None else look_at_dictionary(looks, spark, one.table, key=one.key)
        if found is not None:
            dictionaries[one.key] = found
    frames = {one.name: dictionaries[one.key][1].rows for one in policy.dictionaries if one.key in dictionaries}
    with looks.at("linkage"):
        if all(one.table is None or one.key in dictionaries for one in policy.dictionaries):
            open_links(spark, policy, frames)
    masked = not policy.guarantee.generalizes
    hierarchies: dict[str, Hierarchy] = {}
    if not masked:
        known = [(asked, there.rows) for asked, there in dictionaries.values()]
        hierarchies = look_at_hierarchies(looks, policy, opened, known, given=given)
        for key, (asked, there) in dictionaries.items():
            look_at_nodes(looks, asked, there, hierarchies, key=key)
    rows = None
    with looks.at("columns"):
        if opened is not None and not any(fault.path.startswith("columns") for fault in looks.faults):
            rows = recoded(opened.rows, policy)
    if possible and policy.output is not None:
        place = Workplace(output_at(policy.places.path), vault_at(policy.places.vault), run_id)
        _look_at_places(looks, spark, policy, place, pinned, table)
        if not looks.errors and rows is not None and opened is not None:
            files = None
            with looks.at("table"):
                if policy.ledger is not None:
                    files = files_read(None, table) if table is not None else files_read(policy.table, opened.as_read)
            return _planned(looks, policy, hierarchies, rows, frames, place, date=date, files=files)
    return None


def _look_at_places(
    looks: Looks, spark: SparkSession, policy: Policy, place: Workplace, pinned: Pinned, table: DataFrame | None
) -> None:
    """Look at where would be written: that nobody reads there, and that somebody may write."""
    read = tables_of(policy, given=table is not None)
    lake = {}
    with looks.at("output.lake"):
        lake = lake_place(policy, place, read)
        check_lake(policy, place.output)
    with looks.at("output.catalog"):
        check_catalog_table(spark, policy, place.output)
    places = {"output.path": place.output.location, "output.vault": place.vault.location}
    # A table that cannot be opened is a fault already, and has no files to be told.
    if not looks.faults:
        with looks.at("output.path"):
            refuse_input({**places, **lake}, {**files_only_spark_knows(spark, table, read), **pinned.places})
    with looks.at("ledger.url"):
        refuse_public_ledger(policy, {"output.path": place.output.location, **lake})
    for key, where in places.items():
        with looks.at(key):
            (place.vault.check if key == "output.vault" else lambda: place.output.check(place.run_id))()
            if not where.remote:
                check_usable(Path(where.path), key)
                looks.saw(key, "can be written")


def _planned(
    looks: Looks,
    policy: Policy,
    hierarchies: dict[str, Hierarchy],
    rows: DataFrame,
    frames: dict[str, DataFrame],
    place: Workplace,
    *,
    date: dt.date,
    files: list[str] | None,
) -> str | None:
    """Plan what would be guaranteed, decided and counted, and return it in words."""
    schema: T.StructType = rows.schema
    with looks.at("output.partition_by"):
        check_partitions(policy, hierarchies, schema)
    with looks.at("ledger"):
        refuse_note(policy, place, files)
    if not policy.guarantee.generalizes:
        with looks.at("columns"):
            of_masks = mask_plan(policy)
            check_types(of_masks, schema)
            return masking_explanation(policy, of_masks)
        return None
    guarantee, plan = policy.guarantee, None
    with looks.at("guarantee"):
        entry = MODELS[guarantee.kind].plan
        plan = None if entry is None else load(entry)(policy, hierarchies)
    if plan is not None and guarantee.private and policy.ledger is not None:
        with looks.at("ledger"):
            from privrisk_spark.ledger.administration import seen_of
            from privrisk_spark.ledger.ledger import Ledger
            from privrisk_spark.planning.cost import cost_of

            request = cost_of(policy, plan, place.run_id, plan.digest(policy, hierarchies), date=date, files=files)
            Ledger(policy.ledger.url).would_cost(request, seen=seen_of(policy))
    if guarantee.decides:
        with looks.at("decision"):
            of_policy = axes(policy, hierarchies)
            decision_of(policy).procedure(hierarchies)
            disclosure_of(policy, hierarchies, of_policy)
    choices = {}
    if guarantee.decides or (plan is not None and guarantee.counts_frequent):
        for one in policy.dictionaries:
            with looks.at("counting"):
                frame = rows if one.table is None else frames[one.name]
                choices[one.name] = plan_of(policy, hierarchies, one, rows=frame.count())
    composed = ""
    with looks.at("history"):
        if policy.history is not None:
            earlier = earlier_releases(policy, own=place.remembered)
            refuse_differences(policy, hierarchies, earlier)
            composed = f"\ncomposes with: {', '.join(one.run_id for one in earlier) or 'no earlier release'}"
    if looks.errors:
        return None
    if policy.decides:
        looks.unknown.append("whether each record can be disclosed as asked")
    return explanation(policy, hierarchies, choices, plan) + composed
