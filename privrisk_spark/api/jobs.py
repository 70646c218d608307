"""The run of a job for the Python interface, and what its results have in common."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from privrisk_spark.api.policies import PolicyLike, as_policy, settle_run, with_frame
from privrisk_spark.api.workspace import Closeable, check_reach, directory_for
from privrisk_spark.json_values import as_json
from privrisk_spark.policy.policy import Policy
from privrisk_spark.results.page import Page
from privrisk_spark.storage.temporary import PrivateDirectory

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from privrisk_spark.runs.places import ResultPlace

R = TypeVar("R")


@dataclass(frozen=True, eq=False, repr=False)
class JobResult(Closeable):
    """Result of a job, its page and its directory.

    Attributes
    ----------
    result : object
        Result of the pipeline.
    report : Page
    place : Path or str
    private : PrivateDirectory or None
    """

    result: Any
    report: Page
    place: Path | str
    private: PrivateDirectory | None

    def to_dict(self) -> dict[str, Any]:
        """Return everything, JSON-safe, as in the JSON document in `place`.

        Returns
        -------
        dict
        """
        found: dict[str, Any] = as_json(self.result)
        return found

    def _repr_html_(self) -> str:
        return str(self.result._repr_html_())


class JobRun(NamedTuple, Generic[R]):
    """What a job left.

    Attributes
    ----------
    result : object
        Result of the pipeline.
    report : Page
    place : Path or str
    private : PrivateDirectory or None
        Directory of a result without an output.
    spark : SparkSession
    """

    result: R
    report: Page
    place: Path | str
    private: PrivateDirectory | None
    spark: SparkSession


def run_job(
    name: str,
    table: DataFrame | None,
    policy: PolicyLike,
    pipeline: Callable[..., R],
    *,
    check: Callable[[Policy, str], ResultPlace],
    output: str | Path | None,
    run_id: str | None,
    date: dt.date | None,
    page: str = "report.html",
    prepare: Callable[[Policy, bool], Policy] = with_frame,
    encrypt: bool = False,
    retries: bool = False,
    **more: Any,
) -> JobRun[R]:
    """Run a job that writes to a directory: read its policy, check its output, hold a session and run its pipeline.

    Parameters
    ----------
    name : str
        Command, for the name of the application.
    table : DataFrame or None
        Passed to `pipeline` as ``table``; None is the table the policy names.
    policy : Policy, str, Path or mapping
    pipeline : callable
        Takes session, policy, ``place``, ``run_id``, ``date`` and `more`.
    check : callable
        Returns the place that an output names.
    output : str or Path or None
        None is a private temporary directory, which an error removes.
    run_id, date
        As :func:`settle_run` takes them.
    page : str
        Name of the report in the place.
    prepare : callable
        Returns the policy for a run with or without a frame.
    encrypt, retries : bool
        As :func:`privrisk_spark.engine.session.held` takes them.
    **more : object
        Further arguments of `pipeline`.
    """
    from privrisk_spark.engine.session import held

    own = as_policy(policy, date)
    run, day = settle_run(own, run_id, date, given=table is not None)
    own = prepare(own, table is not None)
    with directory_for(output, name) as (where, private):
        place = check(own, where)
        title = f"privrisk {name} {own.run.name}"
        with held(table, title, encrypt=encrypt, retries=retries, engine=own.run.engine) as (spark, given):
            if private is not None:
                check_reach(spark, "output")
            if given is not None:
                more["table"] = given
            result = pipeline(spark, own, place=place, run_id=run, date=day, **more)
        report = Page((place.read(page) or b"").decode())
    return JobRun(result, report, place.address, private, spark)
