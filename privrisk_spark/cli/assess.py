"""The command ``privrisk assess``."""

from __future__ import annotations

import typer

from privrisk_spark.cli.attempt import attempted
from privrisk_spark.cli.options import (
    Configs,
    Date,
    DryRun,
    Explain,
    Fast,
    Log,
    LogFormat,
    Overrides,
    Policies,
    PrivateOutput,
    RunId,
)


def assess(
    output: PrivateOutput,
    policies: Policies = None,
    config: Configs = None,
    overrides: Overrides = None,
    date: Date = None,
    run_id: RunId = None,
    dry_run: DryRun = False,
    explain: Explain = False,
    log_format: Log = LogFormat.text,
    fast: Fast = False,  # noqa: ARG001 - acts when it is read
) -> None:
    """Measure the risk of a table, alone or against a release and a population. Transforms and publishes nothing.

    Exit code 1 if a threshold of assess.thresholds is missed.
    """
    with attempted(run_id, log_format) as attempt:
        files = [*(policies or []), *(config or [])]
        policy, day = attempt.policy(files, overrides, date, releasing=False)
        from privrisk_spark import api
        from privrisk_spark.engine.failures import named

        with named():
            from privrisk_spark.pipelines.assess.run import check_output

            place = check_output(policy, output)
        attempt.status = None if dry_run else place
        if dry_run:
            typer.echo(api.plan(None, policy, of="assess", run_id=attempt.run_id, date=day))
            return
        announce = typer.echo if explain else None
        found = api.assess(None, policy, output=output, run_id=attempt.run_id, date=day, announce=announce)
    typer.echo(found.assessment.paragraph)
    for verdict in found.verdicts:
        typer.echo(f"  {'met   ' if verdict.passed else 'MISSED'}  {verdict.rule}")
    for name in ("report.html", "measures.json", "assessment.json"):
        typer.echo(f"  {place / name}")
    typer.echo("  never publish them: exact figures about the table")
    if not found.passed:
        raise typer.Exit(1)
