"""The entry of a release: its places, a release that is there already, and the stages of its kind of guarantee."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from privrisk_spark.engine.shared import scratch_of
from privrisk_spark.engine.sources import files_only_spark_knows
from privrisk_spark.pipelines.release.as_published import release_as_published
from privrisk_spark.pipelines.release.by_risk import release_by_risk
from privrisk_spark.pipelines.release.opened import Announce, Run
from privrisk_spark.pipelines.release.private import release_privately
from privrisk_spark.pipelines.release.published import confirm
from privrisk_spark.planning.places import refuse_input, refuse_public_ledger
from privrisk_spark.planning.request import tables_of
from privrisk_spark.policy.guarantees import Guarantee
from privrisk_spark.policy.policy import Policy
from privrisk_spark.policy.private import DpGuarantee, PeeledDp
from privrisk_spark.runs.places import Workplace
from privrisk_spark.runs.progress import LOGGER, Progress, write_status

BY_KIND: dict[str, Callable[[Run], dict[str, Any]]] = {
    "risk": release_by_risk,
    "dp": release_privately,
    "as-published": release_as_published,
}
"""The stages of each kind of guarantee, in order."""


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
    place = Workplace(Path(policy.places.path).resolve(), Path(policy.places.vault).resolve(), run_id)
    # Before anything is written or any right is changed there.
    refuse_input(
        {"output.path": place.root, "output.vault": place.vault},
        files_only_spark_knows(spark, table, tables_of(policy, given=table is not None)),
    )
    refuse_public_ledger(policy, place.root)
    with place.held():
        done = place.published()
        if done is not None:
            confirm(policy, place, done, date=date, given=table is not None)
            write_status(place.vault, run_id, phase="published", code=0, message=f"release at {place.target}")
            return Outcome(done, False, place)
        for name in place.without_manifest():
            LOGGER.warning(
                "output.path: 'releases/%s' has no manifest, so it is no release; what made it was stopped, or it is "
                "not ours. It stays as it is: remove it, or run its run id again.",
                name,
            )
        progress = Progress(place.vault, run_id, stages_of(policy.guarantee))
        with scratch_of(spark, policy, place.scratch) as scratch:
            run = Run(spark, policy, place, date, announce, table, scratch, progress)
            published = BY_KIND[policy.guarantee.kind](run)
        write_status(place.vault, run_id, phase="published", code=0, message=f"release at {place.target}")
    return Outcome(published, True, place)


def stages_of(guarantee: Guarantee) -> int:
    """Return the number of stages of a run."""
    if not isinstance(guarantee, DpGuarantee):
        return 7
    # Choosing takes the place of admitting in mode global, and comes before it with peel.
    return 9 + isinstance(guarantee, PeeledDp)
