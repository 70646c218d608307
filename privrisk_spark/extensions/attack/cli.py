"""The command ``privrisk attack``."""

from __future__ import annotations

from typing import Annotated

import typer

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


def attack(
    output: PrivateOutput,
    policies: Policies = None,
    config: Configs = None,
    overrides: Overrides = None,
    share: Annotated[
        float | None, typer.Option(min=0.0, max=1.0, help="Attack a sample of the records: attack.intruder.share.")
    ] = None,
    date: Date = None,
    run_id: RunId = None,
    explain: Explain = False,
    log_format: Log = LogFormat.text,
    quiet: Quiet = False,  # noqa: ARG001 - acts when it is read
    verbose: Verbose = False,  # noqa: ARG001 - acts when it is read
    engine: EngineOption = None,  # noqa: ARG001 - acts when it is read
) -> None:
    """Attack a release: link each record to the released rows nearest to it, and say how many are found.

    Exit code 1 if more may be found than attack.correct_links_at_most.
    """
    given = [*(overrides or []), *([] if share is None else [f"attack.intruder.share={share!r}"])]
    with attempted(run_id, log_format) as attempt:
        policy, day = attempt.policy([*(policies or []), *(config or [])], given, date, releasing=False)
        import privrisk_spark as pr
        from privrisk_spark.engine.failures import named

        with named():
            from privrisk_spark.extensions.attack.pipeline.run import check_output

            place = check_output(policy, output)
        attempt.tell_in(place)
        found = pr.attack(
            None, policy, output=output, run_id=attempt.run_id, date=day, announce=echo if explain else None
        )
    echo(found.result.paragraph)
    for name in ("report.html", "measures.json", "attack.json"):
        echo(f"  {place.called(name)}")
    echo(f"  {place.called('pairs')}")
    echo("  never publish them: exact figures about the table")
    if found.passed is False:
        raise typer.Exit(1)
