"""The command ``privrisk mask``."""

from __future__ import annotations

from privrisk_spark.cli.attempt import days_of
from privrisk_spark.cli.options import (
    AcceptUndecided,
    Configs,
    Date,
    DryRun,
    EngineOption,
    Explain,
    Log,
    LogFormat,
    Overrides,
    Policies,
    Quiet,
    RunId,
    StatusFile,
    Until,
    Verbose,
)
from privrisk_spark.cli.release import NOTHING_UNDECIDED, release_day


def mask(
    policies: Policies = None,
    config: Configs = None,
    overrides: Overrides = None,
    date: Date = None,
    until: Until = None,
    run_id: RunId = None,
    dry_run: DryRun = False,
    explain: Explain = False,
    accept_undecided: AcceptUndecided = False,
    log_format: Log = LogFormat.text,
    status_file: StatusFile = None,
    quiet: Quiet = False,  # noqa: ARG001 - acts when it is read
    verbose: Verbose = False,  # noqa: ARG001 - acts when it is read
    engine: EngineOption = None,  # noqa: ARG001 - acts when it is read
) -> None:
    """Mask the columns of a table as its policy says (guarantee.kind: masked), and publish it; no guarantee."""
    files = [*(policies or []), *(config or [])]
    if accept_undecided:
        overrides = [*(overrides or []), NOTHING_UNDECIDED]
    for day in days_of(date, until, run_id):
        release_day(
            files,
            overrides,
            day,
            run_id,
            dry_run=dry_run,
            explain=explain,
            log_format=log_format,
            told=status_file,
            masked=True,
        )
