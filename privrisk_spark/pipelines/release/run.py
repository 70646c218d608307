"""The entry of a release: its places, a release that is there already, and the stages of its kind of guarantee."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from privrisk_spark.engine.labels import labels
from privrisk_spark.engine.shared import scratch_of
from privrisk_spark.pipelines.release.catalog_table import check_catalog_table, write_catalog_table
from privrisk_spark.pipelines.release.lake_output import check_lake, commit_to_lake, lake_place
from privrisk_spark.pipelines.release.opened import TABLES, Announce, Run
from privrisk_spark.pipelines.release.published import confirm, refuse_note, refuse_withdrawn
from privrisk_spark.planning.lakes import pin_tables
from privrisk_spark.planning.places import refuse_input, refuse_public_ledger
from privrisk_spark.planning.request import tables_of
from privrisk_spark.policy.guarantees import Guarantee
from privrisk_spark.policy.policy import Policy
from privrisk_spark.policy.private import DpGuarantee, PeeledDp
from privrisk_spark.runs.progress import LOGGER, Progress, write_status
from privrisk_spark.runs.vaults import vault_at
from privrisk_spark.runs.workplace import Workplace, output_at
from privrisk_spark.storage.metrics import write_metrics
from privrisk_spark.tables.completeness import awaited, check_arrived
from privrisk_spark.tables.sources import files_only_spark_knows
from privrisk_spark.version import __version__


def _by_risk(run: Run) -> dict[str, Any]:
    from privrisk_spark.pipelines.release.by_risk import release_by_risk

    return release_by_risk(run)


def _masked(run: Run) -> dict[str, Any]:
    from privrisk_spark.pipelines.release.masked import release_masked

    return release_masked(run)


def _privately(run: Run) -> dict[str, Any]:
    from privrisk_spark.pipelines.release.private import release_privately

    return release_privately(run)


def _as_published(run: Run) -> dict[str, Any]:
    from privrisk_spark.pipelines.release.as_published import release_as_published

    return release_as_published(run)


BY_KIND: dict[str, Callable[[Run], dict[str, Any]]] = {
    "risk": _by_risk,
    "k-anonymity": _by_risk,
    "masked": _masked,
    "dp": _privately,
    "as-published": _as_published,
}
"""The stages of each kind of guarantee, in order; a run imports those of its own kind."""


@dataclass(frozen=True)
class Outcome:
    """How a run ended.

    Attributes
    ----------
    manifest : dict
        Of the release.
    fresh : bool
        False when the run id's release was there already.
    place : Workplace
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
    places = {"output.path": place.output.location, "output.vault": place.vault.location}
    read = tables_of(policy, given=given)
    lake = lake_place(policy, place, read)
    refuse_input(
        {**places, **lake},
        {**files_only_spark_knows(spark, table, read), **opened.places},
    )
    refuse_public_ledger(policy, {"output.path": place.output.location, **lake})
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
        progress = Progress(place.vault.status, run_id, stages_of(policy.guarantee), labels(spark))
        try:
            with scratch_of(spark, policy, place.scratch, place.vault) as scratch:
                run = Run(spark, opened.policy, place, date, announce, table, scratch, progress, again)
                published = BY_KIND[policy.guarantee.kind](run)
        finally:
            _keep_metrics(policy, place, date, progress)
        commit_to_lake(policy, place, published)
        write_catalog_table(spark, policy, place, published)
        write_status(place.vault.status, run_id, phase="published", code=0, message=f"release at {place.target}")
    return Outcome(published, True, place)


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


def stages_of(guarantee: Guarantee) -> int:
    """Return the number of stages of a run."""
    if not isinstance(guarantee, DpGuarantee):
        return 7
    # Choosing takes the place of admitting in mode global, and comes before it with peel.
    return 9 + isinstance(guarantee, PeeledDp)
