"""The commands ``privrisk fit`` and ``privrisk approve``."""

from __future__ import annotations

from typing import Annotated

import typer

from privrisk_spark.cli.attempt import start_job, told_errors
from privrisk_spark.cli.options import CommonOptions, Explain, PrivateOutput, take_common
from privrisk_spark.cli.printing import echo


@take_common
def fit(
    common: CommonOptions,
    output: PrivateOutput,
    explain: Explain = False,
) -> None:
    """Search for the scheme of a table that is to be k-anonymous, and write it for somebody to approve."""
    with start_job(common) as job:
        import privrisk_spark as pr
        from privrisk_spark.pipelines.fit import check_output

        job.attempt.tell_in(check_output(job.policy, output))
        found = pr.fit(None, job.policy, output=output, announce=echo if explain else None, **job.run)
    echo(f"Scheme of {found.rows:,} rows, {found.suppressed:,} of them suppressed, run id {job.attempt.run_id}")
    if found.levels is None:
        echo(f"  {found.classes:,} classes with levels of their own")
    for name, level in (found.levels or {}).items():
        title = job.policy.quasi_identifiers[name].hierarchy.named_level(level)
        echo(f"  {name}: level {level}" + ("" if title == f"level {level}" else f", {title}"))
    echo(f"  metric {found.metric}: {found.value:.8g} ({'the best of all' if found.optimal else 'not proved'})")
    echo(f"  {found.place} (never publish: exact figures; privrisk approve FILE --by NAME)")


@told_errors()
def approve(
    scheme: Annotated[str, typer.Argument(metavar="SCHEME", help="File scheme.json of privrisk fit.")],
    by: Annotated[str, typer.Option("--by", metavar="NAME", help="Who has looked at it and approves it.")],
) -> None:
    """Approve a fitted scheme as it is now; a release by it refuses whatever it holds that was not approved."""
    import privrisk_spark as pr

    found = pr.approve(scheme, by=by)
    echo(f"{scheme}: approved by {by}, content {found.digest}")
