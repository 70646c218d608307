"""The command ``privrisk assess``."""

from __future__ import annotations

from typing import Annotated

import typer

from privrisk_spark.cli.attempt import Job, start_job
from privrisk_spark.cli.options import CommonOptions, DryRun, Explain, PrivateOutput, take_common
from privrisk_spark.cli.printing import echo, print_private

History = Annotated[
    bool, typer.Option("--history", help="Report what the policy's earlier releases disclose together.")
]


@take_common
def assess(
    common: CommonOptions,
    output: PrivateOutput,
    dry_run: DryRun = False,
    explain: Explain = False,
    history: History = False,
) -> None:
    """Measure the risk of a table, alone or against a release and a population. Transforms and publishes nothing.

    With --history instead: the risk of its records after the earlier releases that the policy names.

    Exit code 1 if a threshold of assess.thresholds is missed.
    """
    with start_job(common) as job:
        if history:
            _compose(job, output, dry_run=dry_run)
            return
        import privrisk_spark as pr
        from privrisk_spark.pipelines.assess.run import check_output

        place = check_output(job.policy, output)
        if dry_run:
            echo(pr.plan(None, job.policy, of="assess", **job.run))
            return
        job.attempt.tell_in(place)
        found = pr.assess(None, job.policy, output=output, announce=echo if explain else None, **job.run)
    echo(found.assessment.paragraph)
    for verdict in found.verdicts:
        echo(f"  {'met   ' if verdict.passed else 'MISSED'}  {verdict.rule}")
    print_private(place, "report.html", "measures.json", "assessment.json")
    if found.passed is False:
        raise typer.Exit(1)


def _compose(job: Job, output: str, *, dry_run: bool) -> None:
    """Report what earlier releases disclose together."""
    import privrisk_spark as pr
    from privrisk_spark.pipelines import composition
    from privrisk_spark.planning.history import earlier_releases

    place = composition.check_output(job.policy, output)
    if dry_run:
        for one in earlier_releases(job.policy, own=None):
            echo(f"{one.run_id}  {one.date}  {one.manifest}")
        return
    job.attempt.tell_in(place)
    found = pr.compose(None, job.policy, output=output, **job.run)
    echo(found.result.paragraph)
    print_private(place, *composition.FILES)
