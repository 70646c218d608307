"""The command ``privrisk assess``."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Annotated

import typer

from privrisk_spark.cli.attempt import Attempt, attempted
from privrisk_spark.cli.options import (
    Configs,
    Date,
    DryRun,
    EngineOption,
    Explain,
    Log,
    LogFormat,
    Overrides,
    Policies,
    PrivateOutput,
    Quiet,
    RunId,
    Verbose,
)
from privrisk_spark.cli.printing import echo

if TYPE_CHECKING:
    from privrisk_spark.policy.policy import Policy

History = Annotated[
    bool, typer.Option("--history", help="Report what the policy's earlier releases disclose together.")
]


def assess(
    output: PrivateOutput,
    policies: Policies = None,
    config: Configs = None,
    overrides: Overrides = None,
    date: Date = None,
    run_id: RunId = None,
    dry_run: DryRun = False,
    explain: Explain = False,
    history: History = False,
    log_format: Log = LogFormat.text,
    quiet: Quiet = False,  # noqa: ARG001 - acts when it is read
    verbose: Verbose = False,  # noqa: ARG001 - acts when it is read
    engine: EngineOption = None,  # noqa: ARG001 - acts when it is read
) -> None:
    """Measure the risk of a table, alone or against a release and a population. Transforms and publishes nothing.

    With --history instead: the risk of its records after the earlier releases that the policy names.

    Exit code 1 if a threshold of assess.thresholds is missed.
    """
    with attempted(run_id, log_format) as attempt:
        files = [*(policies or []), *(config or [])]
        policy, day = attempt.policy(files, overrides, date, releasing=False)
        if history:
            _compose(attempt, policy, day, output, dry_run=dry_run)
            return
        import privrisk_spark as pr
        from privrisk_spark.engine.failures import named

        with named():
            from privrisk_spark.pipelines.assess.run import check_output

            place = check_output(policy, output)
        if dry_run:
            echo(pr.plan(None, policy, of="assess", run_id=attempt.run_id, date=day))
            return
        attempt.tell_in(place)
        announce = echo if explain else None
        found = pr.assess(None, policy, output=output, run_id=attempt.run_id, date=day, announce=announce)
    echo(found.assessment.paragraph)
    for verdict in found.verdicts:
        echo(f"  {'met   ' if verdict.passed else 'MISSED'}  {verdict.rule}")
    for name in ("report.html", "measures.json", "assessment.json"):
        echo(f"  {place.called(name)}")
    echo("  never publish them: exact figures about the table")
    if found.passed is False:
        raise typer.Exit(1)


def _compose(attempt: Attempt, policy: Policy, day: dt.date, output: str, *, dry_run: bool) -> None:
    """Report what earlier releases disclose together."""
    from privrisk_spark.engine.failures import named

    with named():
        from privrisk_spark.engine.session import held
        from privrisk_spark.pipelines import composition
        from privrisk_spark.planning.history import earlier_releases

        place = composition.check_output(policy, output)
        if dry_run:
            for one in earlier_releases(policy, own=None):
                echo(f"{one.run_id}  {one.date}  {one.manifest}")
            return
        attempt.tell_in(place)
        with held(None, f"privrisk assess {policy.run.name}", encrypt=True, engine=policy.run.engine) as (spark, _):
            found = composition.compose(spark, policy, place=place, run_id=attempt.run_id, date=day)
    echo(found.paragraph)
    for name in composition.FILES:
        echo(f"  {place.called(name)}")
    echo("  never publish them: exact figures about the table")
