"""The commands ``privrisk fit`` and ``privrisk approve``."""

from __future__ import annotations

from typing import Annotated

import typer

from privrisk_spark.cli.attempt import attempted, told_errors
from privrisk_spark.cli.options import (
    Configs,
    Date,
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


def fit(
    output: PrivateOutput,
    policies: Policies = None,
    config: Configs = None,
    overrides: Overrides = None,
    date: Date = None,
    run_id: RunId = None,
    explain: Explain = False,
    log_format: Log = LogFormat.text,
    quiet: Quiet = False,  # noqa: ARG001 - acts when it is read
    verbose: Verbose = False,  # noqa: ARG001 - acts when it is read
    engine: EngineOption = None,  # noqa: ARG001 - acts when it is read
) -> None:
    """Search for the scheme of a table that is to be k-anonymous, and write it for somebody to approve."""
    with attempted(run_id, log_format) as attempt:
        policy, day = attempt.policy([*(policies or []), *(config or [])], overrides, date, releasing=False)
        import privrisk_spark as pr
        from privrisk_spark.engine.failures import named

        with named():
            from privrisk_spark.pipelines.fit import check_output

            attempt.tell_in(check_output(policy, output))
        found = pr.fit(None, policy, output=output, run_id=attempt.run_id, date=day, announce=echo if explain else None)
    echo(f"Scheme of {found.rows:,} rows, {found.suppressed:,} of them suppressed, run id {attempt.run_id}")
    if found.levels is None:
        echo(f"  {found.classes:,} classes with levels of their own")
    for name, level in (found.levels or {}).items():
        title = policy.quasi_identifiers[name].hierarchy.named_level(level)
        echo(f"  {name}: level {level}" + ("" if title == f"level {level}" else f", {title}"))
    echo(f"  metric {found.metric}: {found.value:.8g} ({'the best of all' if found.optimal else 'not proved'})")
    echo(f"  {found.place} (never publish: exact figures; privrisk approve FILE --by NAME)")


def approve(
    scheme: Annotated[str, typer.Argument(metavar="SCHEME", help="File scheme.json of privrisk fit.")],
    by: Annotated[str, typer.Option("--by", metavar="NAME", help="Who has looked at it and approves it.")],
) -> None:
    """Approve a fitted scheme as it is now; a release by it refuses whatever it holds that was not approved."""
    with told_errors():
        import privrisk_spark as pr

        found = pr.approve(scheme, by=by)
    echo(f"{scheme}: approved by {by}, content {found.digest}")
