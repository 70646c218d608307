"""The inspection of what a run needs, for every job."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from privrisk_spark.errors import ConfigError, Fault
from privrisk_spark.pipelines.opening import Inspection
from privrisk_spark.planning.lakes import pin_tables
from privrisk_spark.policy.policy import Policy
from privrisk_spark.registry import EXTENSIONS
from privrisk_spark.results.validation import Job, Validation


def validate(
    spark: SparkSession,
    policy: Policy,
    *,
    job: Job,
    run_id: str,
    date: dt.date,
    table: DataFrame | None = None,
    output: str | None = None,
    faults: Sequence[Fault] = (),
) -> Validation:
    """Look at everything a run needs, and return every fault; write nothing.

    Parameters
    ----------
    spark : SparkSession
    policy : Policy
    job : {"release", "assess", "attack", "share"}
    run_id : str
    date : date
        Business date.
    table : DataFrame, optional
        Of the same session; instead of the policy's table.
    output : str, optional
        Where the findings of a job that publishes nothing would go.
    faults : sequence of Fault
        Of the policy by itself; what it names is looked at all the same.

    Raises
    ------
    EngineError
        Exit code 3: running again may help.
    """
    inspection, plan = _inspect(spark, policy, job, run_id, date, table, output, faults)
    return inspection.conclude(job, run_id, plan)


def plan_only(
    spark: SparkSession,
    policy: Policy,
    *,
    job: Job,
    run_id: str,
    date: dt.date,
    table: DataFrame | None = None,
) -> str:
    """Look at everything a run needs, and return what it would do (``--dry-run``); write nothing.

    Parameters
    ----------
    spark, policy, job, run_id, date, table
        As :func:`validate` takes them.

    Raises
    ------
    InputError
        Naming every fault.
    RefusedError
        If the privacy budget forbids the run.
    EngineError
        Exit code 3: running again may help.
    """
    inspection, plan = _inspect(spark, policy, job, run_id, date, table, None, ())
    inspection.raise_errors()
    return "\n".join([plan or "", *(f"not known before the run: {one}" for one in inspection.unknown)]).strip()


def _inspect(
    spark: SparkSession,
    policy: Policy,
    job: Job,
    run_id: str,
    date: dt.date,
    table: DataFrame | None,
    output: str | None,
    faults: Sequence[Fault],
) -> tuple[Inspection, str | None]:
    inspection = Inspection()
    if faults:
        inspection.faults += faults
        inspection.errors.append(ConfigError(faults))
    else:
        inspection.note("policy", "every key has a value that is allowed, and they fit each other")
    # Each job by its own modules: those of the others take longer to import than a small table to look at.
    if job == "release":
        from privrisk_spark.pipelines.validation.release import inspect_release

        plan = inspect_release(inspection, spark, policy, run_id=run_id, date=date, table=table, possible=not faults)
        return inspection, plan
    if job == "assess":
        from privrisk_spark.pipelines.assess import run as assessing

        reads, check_output, inspect = assessing.READ, assessing.check_output, assessing.inspect
    else:
        extension = next(one for one in EXTENSIONS if one.job == job)
        reads = extension.load(extension.pipeline, "READ")
        check_output = extension.load(extension.pipeline, "check_output")
        inspect = extension.load(extension.pipeline, "inspect")
    if output is not None:
        with inspection.at("--output"):
            check_output(policy, output).check_writable()
            inspection.note("--output", "can be written")
    pinned = None
    with inspection.at("table"):
        pinned = pin_tables(policy, reads, given=table is not None).policy
    return inspection, None if pinned is None else inspect(spark, pinned, table, inspection)
