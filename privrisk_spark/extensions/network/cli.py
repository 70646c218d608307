"""The command ``privrisk share``."""

from __future__ import annotations

from privrisk_spark.cli.attempt import start_job
from privrisk_spark.cli.options import CommonOptions, Explain, PrivateOutput, take_common
from privrisk_spark.cli.printing import echo, print_private


@take_common
def share(
    common: CommonOptions,
    output: PrivateOutput,
    explain: Explain = False,
) -> None:
    """Decide what the members of a social network show each other: which attribute, at which level, and its cost."""
    with start_job(common) as job:
        import privrisk_spark as pr
        from privrisk_spark.extensions.network.pipeline import check_output

        place = check_output(job.policy, output)
        job.attempt.tell_in(place)
        found = pr.share(None, None, job.policy, output=output, announce=echo if explain else None, **job.run)
    echo(found.result.paragraph)
    files = ("report.html", "summary.json", "measures.json", "sharing.json", "decisions")
    print_private(place, *files, about="the members")
