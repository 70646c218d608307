"""The command ``privrisk share``."""

from __future__ import annotations

from privrisk_spark.cli.attempt import attempted
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


def share(
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
    """Decide what the members of a social network show each other: which attribute, at which level, and its cost."""
    with attempted(run_id, log_format) as attempt:
        policy, day = attempt.policy([*(policies or []), *(config or [])], overrides or [], date, releasing=False)
        import privrisk_spark as pr
        from privrisk_spark.engine.failures import named

        with named():
            from privrisk_spark.extensions.network.pipeline import check_output

            place = check_output(policy, output)
        attempt.tell_in(place)
        found = pr.share(
            None, None, policy, output=output, run_id=attempt.run_id, date=day, announce=echo if explain else None
        )
    echo(found.result.paragraph)
    for name in ("report.html", "summary.json", "measures.json", "sharing.json"):
        echo(f"  {place.called(name)}")
    echo(f"  {place.called('decisions')}")
    echo("  never publish them: exact figures about the members")
