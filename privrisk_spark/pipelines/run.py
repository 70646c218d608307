"""A run of any job: what its stages need, and how it begins."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar

from pyspark.sql import DataFrame, SparkSession

from privrisk_spark.engine.batches import Scratch
from privrisk_spark.engine.fingerprints import collect_frame_digest
from privrisk_spark.engine.labels import labels
from privrisk_spark.engine.shared import scratch_of
from privrisk_spark.planning.lakes import pin_tables
from privrisk_spark.planning.places import refuse_input
from privrisk_spark.policy.policy import Policy
from privrisk_spark.runs.places import ResultPlace
from privrisk_spark.runs.progress import Progress
from privrisk_spark.runs.workplace import Workplace
from privrisk_spark.storage.locations import Location
from privrisk_spark.tables.sources import files_only_spark_knows

Announce = Callable[[str], object]

P = TypeVar("P")


@dataclass(frozen=True, eq=False)
class Run(Generic[P]):
    """What every stage of a job needs.

    Attributes
    ----------
    policy : Policy
        With the versions of the lake tables that are read.
    place : Workplace or ResultPlace
        Where the release or the results go.
    date : date
        Business date.
    progress : Progress
        Records the stages as they end.
    table : DataFrame or None
        Read instead of the policy's table, if the caller gave one.
    announce : callable or None
        Called with the text of the plan once it is chosen.
    again : bool
        Whether the run id can be asked for again.
    """

    spark: SparkSession
    policy: Policy
    place: P
    run_id: str
    date: dt.date
    scratch: Scratch
    progress: Progress
    table: DataFrame | None = None
    announce: Announce | None = None
    again: bool = True

    @cached_property
    def frame_digest(self) -> str | None:
        """Digest of the given frame, by which a repeated run is known; None if no frame is given or none can come."""
        return collect_frame_digest(self.table) if self.table is not None and self.again else None


ReleaseRun = Run[Workplace]
"""A run that publishes."""

ResultRun = Run[ResultPlace]
"""A run whose results stay private."""


@contextmanager
def start_run(
    spark: SparkSession,
    policy: Policy,
    place: ResultPlace,
    *,
    run_id: str,
    date: dt.date,
    reads: Collection[str],
    stages: int,
    table: DataFrame | None = None,
    announce: Announce | None = None,
    files: Mapping[str, Iterable[Location]] | None = None,
) -> Iterator[ResultRun]:
    """Choose the versions of lake tables, and hold the place of a run whose results stay private.

    Parameters
    ----------
    place : ResultPlace
        Where the results go.
    date : date
        Business date.
    reads : collection of str
        Parts of the policy that name the tables that are read.
    stages : int
        How many there are.
    table : DataFrame, optional
        Read instead of the policy's table.
    announce : callable, optional
        Called with the text of the plan.
    files : mapping of key to locations, optional
        Files of other tables that are read, as Spark lists them.

    Raises
    ------
    InputError
        If a table is read from the place, or a version of a lake table does not exist.
    BusyError
        If another run is at work there.
    """
    given = table is not None
    known = files_only_spark_knows(spark, table, {} if given else {"table": policy.table})
    pinned = pin_tables(policy, reads, given=given)
    refuse_input({"--output": place.location}, {**known, **(files or {}), **pinned.places})
    policy = pinned.policy
    with place.held(run_id) as path, scratch_of(spark, policy, path, place=place) as scratch:
        progress = Progress(place.status, run_id, stages, labels(spark))
        yield Run(spark, policy, place, run_id, date, scratch, progress, table, announce)
