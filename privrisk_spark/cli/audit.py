"""The command ``privrisk audit``."""

from __future__ import annotations

from typing import Annotated

import typer

from privrisk_spark.cli.attempt import start_job
from privrisk_spark.cli.options import CommonOptions, take_common
from privrisk_spark.cli.printing import echo


@take_common
def audit(
    common: CommonOptions,
    output: Annotated[str, typer.Option(metavar="DIR", help="Where to write audit.json and audit.html.")],
    trials: Annotated[int, typer.Option(min=1_000, help="Releases of each adversarial table.")] = 20_000,
    seed: Annotated[
        int, typer.Option(min=0, help="Same seed, same audit. It is public: no release is drawn by it.")
    ] = 1,
) -> None:
    """Try to refute the differential privacy of a policy's mechanism by releases of adversarial tables.

    Reads nothing of the policy's table. Exit code 1 if anything is flagged.
    """
    with start_job(common, releasing=True) as job:
        import privrisk_spark as pr
        from privrisk_spark.pipelines.audit import check_output

        place = check_output(job.policy, output)
        job.attempt.tell_in(place)
        found = pr.audit(job.policy, output=output, trials=trials, seed=seed, **job.run)
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
