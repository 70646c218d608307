"""What commands have in common: their arguments and options."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from privrisk_spark.runs.verbosity import ASKED


class LogFormat(StrEnum):
    """Form of log lines."""

    text = "text"
    json = "json"


class EngineName(StrEnum):
    """What executes a job."""

    auto = "auto"
    embedded = "embedded"
    spark = "spark"


def _take_engine(context: typer.Context, asked: EngineName | None) -> EngineName | None:
    if asked is not None:
        before = os.environ.get(_ENGINE)
        os.environ[_ENGINE] = asked.value
        context.call_on_close(
            lambda: os.environ.pop(_ENGINE) if before is None else os.environ.update({_ENGINE: before})
        )
    return asked


_ENGINE = "PRIVRISK_ENGINE"


Policies = Annotated[
    list[str] | None,
    typer.Argument(metavar="POLICY...", help="YAML files; later ones are merged over earlier ones."),
]
Configs = Annotated[list[str] | None, typer.Option("--config", help="A policy file, as for spark-submit; repeatable.")]
Overrides = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override a dotted key; repeatable.")
]
Date = Annotated[str | None, typer.Option(help="Business date YYYY-MM-DD, for {ds}; default today (UTC).")]
Until = Annotated[
    str | None, typer.Option(help="Release each day from --date to this one, in order; what is there already stays.")
]
RunId = Annotated[str | None, typer.Option(help="Run id; default from name, date and policy.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Check all, print the plan, write nothing.")]
AcceptUndecided = Annotated[
    bool,
    typer.Option("--accept-undecided", help="Release by the proposals for undecided columns; as --set undecided=[]."),
]
StatusFile = Annotated[
    Path | None,
    typer.Option(
        "--status-file",
        metavar="FILE",
        help="Also write there how the run ended, for schedulers that lose exit codes and do not see the vault.",
    ),
]
Explain = Annotated[bool, typer.Option("--explain", help="Print the plan before running it.")]
Log = Annotated[LogFormat, typer.Option(help="Form of log lines.")]


def _be_quiet(asked: bool) -> bool:
    ASKED.quiet = asked
    return asked


def _show_spark(asked: bool) -> bool:
    ASKED.spark = asked
    return asked


Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet", callback=_be_quiet, help="Log warnings alone and show no progress; results are printed all the same."
    ),
]
Verbose = Annotated[
    bool, typer.Option("--verbose", callback=_show_spark, help="Show the warnings of Spark's own log, too.")
]
EngineOption = Annotated[
    EngineName | None,
    typer.Option(
        "--engine",
        callback=_take_engine,
        help="Execute the job by embedded (in this process, without Java) or by spark; overrides run.engine.",
    ),
]
PrivateOutput = Annotated[
    str,
    typer.Option(
        "--output", metavar="DIR", help="Directory to write to, or a URI in HDFS or an object store; never publish it."
    ),
]
