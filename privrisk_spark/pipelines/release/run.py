"""The entry of a release: its places, a release that is there already, and the stages of its kind of guarantee."""

from __future__ import annotations

import datetime as dt
from dataclasses import asdict, dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from privrisk_spark.engine.labels import labels
from privrisk_spark.engine.shared import scratch_of
from privrisk_spark.pipelines.opening import FIRST_ERROR, Inspection
from privrisk_spark.pipelines.release.catalog_table import check_catalog_table, write_catalog_table
from privrisk_spark.pipelines.release.lake_output import check_lake, commit_to_lake, lake_place
from privrisk_spark.pipelines.release.opened import TABLES
from privrisk_spark.pipelines.release.published import confirm, refuse_note, refuse_withdrawn
from privrisk_spark.pipelines.run import Announce, Run
from privrisk_spark.planning.lakes import Pinned, pin_tables
from privrisk_spark.planning.places import refuse_input, refuse_public_ledger
from privrisk_spark.planning.request import tables_of
from privrisk_spark.policy.policy import Policy
from privrisk_spark.registry import MODELS, load
from privrisk_spark.runs.progress import LOGGER, Progress, write_status
from privrisk_spark.runs.vaults import vault_at
from privrisk_spark.runs.workplace import Workplace, output_at
from privrisk_spark.storage.metrics import write_metrics
from privrisk_spark.tables.completeness import awaited, check_arrived
from privrisk_spark.tables.sources import files_only_spark_knows
from privrisk_spark.version import __version__


@dataclass(frozen=True)
class Outcome:
    """How a run ended.

    Attributes
    ----------
    manifest : dict
        Of the release.
    fresh : bool
        False when the run id's release was there already.
    """

    manifest: dict[str, Any]
    fresh: bool
    place: Workplace


def release(
    spark: SparkSession,
    policy: Policy,
    *,
    run_id: str,
    date: dt.date,
    announce: Announce | None = None,
    table: DataFrame | None = None,
    again: bool = True,
) -> Outcome:
    """Run a policy to a published release.

    Parameters
    ----------
    spark : SparkSession
    policy : Policy
    run_id : str
        Running it again returns the same release.
    date : date
        Business date, recorded as the release's date.
    announce : callable, optional
        Called with the text of the plan once it is chosen (``--explain``).
    table : DataFrame, optional
        Of the same session; read instead of the policy's table. What the policy says of its columns holds.
    again : bool
        Whether the run id can be asked for again; not at a place that is removed with the result.

    Raises
    ------
    InputError
        Exit code 2: the policy or the data must be mended.
    RefusedError
        Exit code 1: a check or the budget forbids the release, or what is there under the run id is not it; nothing
        was published.
    EngineError
        Exit code 3: running again may help.
    """
    with awaited(policy.checks.complete):
        return _release(spark, policy, run_id=run_id, date=date, announce=announce, table=table, again=again)


def _release(
    spark: SparkSession,
    policy: Policy,
    *,
    run_id: str,
    date: dt.date,
    announce: Announce | None,
    table: DataFrame | None,
    again: bool,
) -> Outcome:
    place = Workplace(output_at(policy.places.path), vault_at(policy.places.vault), run_id)
    given = table is not None
    # Of a release that is there already nothing is read, so that no table need be there any more.
    opened = pin_tables(policy, () if place.released else TABLES, given=given, recorded=place.recorded_pins())
    # Before anything is written or any right is changed there.
    refuse_places(spark, policy, place, opened, table)
    place.check()
    with place.held():
        check_catalog_table(spark, policy, place.output)
        done = place.published()
        if done is not None:
            confirm(policy, place, done, date=date, table=table)
            place.settle(done)
            commit_to_lake(policy, place, done)
            write_catalog_table(spark, policy, place, done)
            write_status(place.vault.status, run_id, phase="published", code=0, message=f"release at {place.target}")
            return Outcome(done, False, place)
        refuse_withdrawn(place)
        refuse_note(policy, place)
        check_lake(policy, place.output)
        for name in place.output.without_manifest(run_id):
            LOGGER.warning(
                "output.path: 'releases/%s' has no manifest, so it is no release; what made it was stopped, is at "
                "work, or is not ours. It stays as it is: remove it if you do not need it.",
                name,
            )
        if policy.checks.complete is not None and not given:
            check_arrived(policy.table, policy.checks.complete, date=date)
        if opened.record:
            place.record_pins(opened.record)
        progress = Progress(place.vault.status, run_id, policy.guarantee.stages, labels(spark))
        try:
            with scratch_of(spark, policy, place.scratch, place.vault) as scratch:
                run = Run(spark, opened.policy, place, run_id, date, scratch, progress, table, announce, again)
                published = load(MODELS[policy.guarantee.kind].job)(run)
        finally:
            _keep_metrics(policy, place, date, progress)
        commit_to_lake(policy, place, published)
        write_catalog_table(spark, policy, place, published)
        write_status(place.vault.status, run_id, phase="published", code=0, message=f"release at {place.target}")
    return Outcome(published, True, place)


def refuse_places(
    spark: SparkSession,
    policy: Policy,
    place: Workplace,
    pinned: Pinned,
    table: DataFrame | None,
    inspection: Inspection = FIRST_ERROR,
) -> None:
    """Refuse to write where tables are read, and a ledger where releases are published.

    Parameters
    ----------
    pinned : Pinned
        The versions of lake tables that are read.
    table : DataFrame or None
        Read instead of the policy's table.
    inspection : Inspection, optional
        Collects errors.

    Raises
    ------
    InputError
        Naming the places.
    """
    read, lake = tables_of(policy, given=table is not None), {}
    with inspection.at("output.lake"):
        lake = lake_place(policy, place, read)
        if inspection.collects:  # a run checks the table while it holds the place
            check_lake(policy, place.output)
    places = {"output.path": place.output.location, "output.vault": place.vault.location, **lake}
    # A table that cannot be opened is an error already, and Spark lists no files of it.
    if not inspection.faults:
        with inspection.at("output.path"):
            refuse_input(places, {**files_only_spark_knows(spark, table, read), **pinned.places})
    with inspection.at("ledger.url"):
        refuse_public_ledger(policy, {"output.path": place.output.location, **lake})


def _keep_metrics(policy: Policy, place: Workplace, date: dt.date, progress: Progress) -> None:
    """Add what the stages took to the vault's metrics table; a run that has ended does not fail for it."""
    known = {
        "run_id": place.run_id,
        "attempt": place.attempt,
        "run": policy.run.name,
        "date": date,
        "guarantee": policy.guarantee.kind,
        "version": __version__,
    }
    try:
        write_metrics(
            place.private, place.attempt, place.run_id, [{**known, **asdict(one)} for one in progress.timings]
        )
    except OSError as error:
        LOGGER.warning("the metrics of the run cannot be written to output.vault (%s)", error.strerror)
