"""Arguments and options that several commands take."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any

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


@dataclass(frozen=True)
class CommonOptions:
    """Options that every job takes; ``--quiet``, ``--verbose`` and ``--engine`` act when they are parsed."""

    policies: Policies = None
    config: Configs = None
    overrides: Overrides = None
    date: Date = None
    run_id: RunId = None
    log_format: Log = LogFormat.text
    quiet: Quiet = False
    verbose: Verbose = False
    engine: EngineOption = None

    @property
    def files(self) -> list[str]:
        """Policy files, in the order of merging."""
        return [*(self.policies or []), *(self.config or [])]

    def override(self, *more: str) -> CommonOptions:
        """Return the options with further overrides ``KEY=VALUE``."""
        return replace(self, overrides=[*(self.overrides or []), *more])


_COMMON = tuple(signature(CommonOptions, eval_str=True).parameters.values())


def take_common(command: Callable[..., None]) -> Callable[..., None]:
    """Add the common options to a command, which gets them as its first argument."""
    own = list(signature(command, eval_str=True).parameters.values())[1:]
    required = sum(one.default is Parameter.empty for one in own)

    @wraps(command)
    def run(**given: Any) -> None:
        common = CommonOptions(**{one.name: given.pop(one.name) for one in _COMMON})
        command(common, **given)

    shown = [*own[:required], *_COMMON[:3], *own[required:], *_COMMON[3:]]
    run.__signature__ = Signature(shown)  # type: ignore[attr-defined]
    return run
