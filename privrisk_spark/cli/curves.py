"""The command ``privrisk curves``."""

from __future__ import annotations

from typing import Annotated

import typer

from privrisk_spark.cli.attempt import start_job
from privrisk_spark.cli.options import CommonOptions, DryRun, Explain, PrivateOutput, take_common
from privrisk_spark.cli.printing import echo, print_private


@take_common
def curves(
    common: CommonOptions,
    output: PrivateOutput,
    shares: Annotated[int, typer.Option(min=2, max=100, help="Nested samples of the dictionary.")] = 10,
    floors: Annotated[
        str | None, typer.Option(metavar="A,B,…", help="Least utilities; default 5, evenly spaced.")
    ] = None,
    records: Annotated[
        int, typer.Option(min=1, help="Most distinct records to decide; beyond, a sample of them.")
    ] = 20_000,
    dry_run: DryRun = False,
    explain: Explain = False,
) -> None:
    """Compute risk over the size of the attacker's dictionary, and true against estimated risk: data and plots."""
    with start_job(common, releasing=True) as job:
        import privrisk_spark as pr
        from privrisk_spark.engine.session import held
        from privrisk_spark.pipelines.curves import plan_only
        from privrisk_spark.planning.curves import parse_floors, request_of
        from privrisk_spark.planning.places import check_request

        policy = job.policy
        asked = request_of(shares, None if floors is None else parse_floors(floors), records)
        place = check_request(policy, output, what="curves")
        if dry_run:
            title = f"privrisk curves {policy.run.name}"
            with held(None, title, encrypt=False, engine=policy.run.engine) as (spark, _):
                echo(plan_only(spark, policy, asked))
            return
        job.attempt.tell_in(place)
        found = pr.curves(
            None,
            policy,
            shares=asked.shares,
            floors=asked.floors,
            records=asked.records,
            output=output,
            announce=echo if explain else None,
            **job.run,
        )
    echo(f"Curves of {len(found.shares)} dictionary sizes ({found.status}), run id {job.attempt.run_id}")
    print_private(place, "curves.html", "curves.csv", "curves.json")
