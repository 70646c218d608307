"""The command ``privrisk attack``."""

from __future__ import annotations

from typing import Annotated

import typer

from privrisk_spark.cli.attempt import start_job
from privrisk_spark.cli.options import CommonOptions, Explain, PrivateOutput, take_common
from privrisk_spark.cli.printing import echo, print_private


@take_common
def attack(
    common: CommonOptions,
    output: PrivateOutput,
    share: Annotated[
        float | None, typer.Option(min=0.0, max=1.0, help="Attack a sample of the records: attack.intruder.share.")
    ] = None,
    explain: Explain = False,
) -> None:
    """Attack a release: link each record to the released rows nearest to it, and say how many are found.

    Exit code 1 if more may be found than attack.correct_links_at_most.
    """
    if share is not None:
        common = common.override(f"attack.intruder.share={share!r}")
    with start_job(common) as job:
        import privrisk_spark as pr
        from privrisk_spark.extensions.attack.pipeline.run import check_output

        place = check_output(job.policy, output)
        job.attempt.tell_in(place)
        found = pr.attack(None, job.policy, output=output, announce=echo if explain else None, **job.run)
    echo(found.result.paragraph)
    print_private(place, "report.html", "measures.json", "attack.json", "pairs")
    if found.passed is False:
        raise typer.Exit(1)
