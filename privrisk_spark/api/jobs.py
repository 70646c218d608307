"""The run of a job for the Python interface, and what its results have in common."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

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
    """Result of a job, its page and its directory; each job documents its own."""

    result: Any
    report: Page
    place: Path | str
    private: PrivateDirectory | None

    def to_dict(self) -> dict[str, Any]:
        """Return everything, JSON-safe, as in the JSON document in `place`."""
        found: dict[str, Any] = as_json(self.result)
        return found

    def _repr_html_(self) -> str:
        return str(self.result._repr_html_())


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
) -> tuple[R, Page, Path | str, PrivateDirectory | None, SparkSession]:
    """Run a job that writes to a directory: read its policy, check its output, hold a session and run its pipeline.

    `pipeline` takes session, policy, ``place``, ``run_id``, ``date``, ``table`` if a frame is given, and `more`.
    `check` returns the place of an output, `prepare` the policy for a run with or without a frame. The function returns
    the pipeline's result, the report, its address, the private directory of a result without an output, the session.
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
    return result, report, place.address, private, spark
