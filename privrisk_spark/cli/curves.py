"""The command ``privrisk curves``."""

from __future__ import annotations

from typing import Annotated

import typer

from privrisk_spark.cli.attempt import attempted
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


def curves(
    output: PrivateOutput,
    policies: Policies = None,
    config: Configs = None,
    overrides: Overrides = None,
    shares: Annotated[int, typer.Option(min=2, max=100, help="Nested samples of the dictionary.")] = 10,
    floors: Annotated[
        str | None, typer.Option(metavar="A,B,…", help="Least utilities; default 5, evenly spaced.")
    ] = None,
    records: Annotated[
        int, typer.Option(min=1, help="Most distinct records to decide; beyond, a sample of them.")
    ] = 20_000,
    date: Date = None,
    run_id: RunId = None,
    dry_run: DryRun = False,
    explain: Explain = False,
    log_format: Log = LogFormat.text,
    quiet: Quiet = False,  # noqa: ARG001 - acts when it is read
    verbose: Verbose = False,  # noqa: ARG001 - acts when it is read
    engine: EngineOption = None,  # noqa: ARG001 - acts when it is read
) -> None:
    """Compute risk over the size of the attacker's dictionary, and true against estimated risk: data and plots."""
    with attempted(run_id, log_format) as attempt:
        policy, day = attempt.policy([*(policies or []), *(config or [])], overrides, date)
        import privrisk_spark as pr
        from privrisk_spark.engine.failures import named

        with named():
            from privrisk_spark.engine.session import held
            from privrisk_spark.pipelines import curves as job
            from privrisk_spark.planning.curves import parse_floors, request_of
            from privrisk_spark.planning.places import check_request

            asked = request_of(shares, None if floors is None else parse_floors(floors), records)
            place = check_request(policy, output, what="curves")
            if dry_run:
                with held(None, f"privrisk curves {policy.run.name}", encrypt=False, engine=policy.run.engine) as (
                    spark,
                    _,
                ):
                    echo(job.plan_only(spark, policy, asked))
                return
        attempt.tell_in(place)
        found = pr.curves(
            None,
            policy,
            shares=asked.shares,
            floors=asked.floors,
            records=asked.records,
            output=output,
            run_id=attempt.run_id,
            date=day,
            announce=echo if explain else None,
        )
    echo(f"Curves of {len(found.shares)} dictionary sizes ({found.status}), run id {attempt.run_id}")
    for name in ("curves.html", "curves.csv", "curves.json"):
        echo(f"  {place.called(name)}")
    echo("  never publish them: exact figures about the table")
