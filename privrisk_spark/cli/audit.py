"""The command ``privrisk audit``."""

from __future__ import annotations

from typing import Annotated

import typer

from privrisk_spark.cli.attempt import attempted
from privrisk_spark.cli.options import (
    Configs,
    Date,
    EngineOption,
    Log,
    LogFormat,
    Overrides,
    Policies,
    Quiet,
    RunId,
    Verbose,
)
from privrisk_spark.cli.printing import echo


def audit(
    output: Annotated[str, typer.Option(metavar="DIR", help="Where to write audit.json and audit.html.")],
    policies: Policies = None,
    config: Configs = None,
    overrides: Overrides = None,
    trials: Annotated[int, typer.Option(min=1_000, help="Releases of each adversarial table.")] = 20_000,
    seed: Annotated[
        int, typer.Option(min=0, help="Same seed, same audit. It is public: no release is drawn by it.")
    ] = 1,
    date: Date = None,
    run_id: RunId = None,
    log_format: Log = LogFormat.text,
    quiet: Quiet = False,  # noqa: ARG001 - acts when it is read
    verbose: Verbose = False,  # noqa: ARG001 - acts when it is read
    engine: EngineOption = None,  # noqa: ARG001 - acts when it is read
) -> None:
    """Try to refute the differential privacy of a policy's mechanism by releases of adversarial tables.

    Reads nothing of the policy's table. Exit code 1 if anything is flagged.
    """
    with attempted(run_id, log_format) as attempt:
        policy, day = attempt.policy([*(policies or []), *(config or [])], overrides, date)
        import privrisk_spark as pr
        from privrisk_spark.engine.failures import named

        with named():
            from privrisk_spark.pipelines.audit import check_output

            place = check_output(policy, output)
        attempt.tell_in(place)
        found = pr.audit(policy, output=output, run_id=attempt.run_id, date=day, trials=trials, seed=seed)
    verdict = "passed" if found.passed else "FLAGGED"
    echo(
        f"Audit {verdict}: {len(found.result.findings)} experiments with {trials:,} releases of each table, seed {seed}"
    )
    for part, text in found.flags:
        echo(f"  {part}: {text}")
    for name in ("audit.html", "audit.json"):
        echo(f"  {place.called(name)}")
    if not found.passed:
        raise typer.Exit(1)
