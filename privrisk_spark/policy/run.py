"""Name, date and engine of a run."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from privrisk_spark.policy.types import Day, Part, Text, unsaid

Engine = Literal["auto", "embedded", "spark"]


class Run(Part):
    """Name, date and engine of a run."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", description="Short name, part of the run id.")
    date: Day | None = Field(None, description="Business date; '{ds}' takes the scheduler's date or today.")
    scratch: Text | None = Field(
        None,
        description="Directory in HDFS or an object store, such as s3://bucket/scratch, where tasks hand parts to "
        "each other if the machines share no disk; by default they do in output.vault.",
        exclude_if=unsaid,
    )
    engine: Engine = Field(
        "auto",
        description="What executes the job: embedded, in this process without Java; spark; or auto, the first of a "
        "given session, a configured Spark, embedded and local Spark.",
        exclude_if=unsaid,
    )
