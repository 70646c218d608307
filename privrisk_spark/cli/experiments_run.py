"""How the commands ``privrisk experiments …`` run: with Spark where there is a policy."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from contextlib import ExitStack

import typer

from privrisk_spark.cli.attempt import attempted, day_of
from privrisk_spark.cli.options import LogFormat
from privrisk_spark.errors import ConfigError, Fault


def run_experiments(
    name: str,
    sizes: object,
    files: list[str],
    overrides: Sequence[str] | None,
    output: str,
    date: str | None,
    log_format: LogFormat,
) -> None:
    """Run experiments, with Spark where there is a policy, and say where they are."""
    from privrisk_spark.engine.failures import named

    with attempted(name, log_format) as attempt:
        policy, day = (None, day_of(date))
        if files:
            attempt.asked = None
            policy, day = attempt.policy(files, overrides, date)
        elif overrides:
            raise ConfigError([Fault("--set", "changes a policy, and none is named")])
        with named():
            from privrisk_spark.experiments import run as runner

            experiment = importlib.import_module(f"privrisk_spark.experiments.{name}.experiment").EXPERIMENT
            place = runner.check_output(experiment, policy, output)
            attempt.status = place
            with ExitStack() as stack:
                spark = None
                if policy is not None:
                    from privrisk_spark.engine.session import held

                    spark, _ = stack.enter_context(held(None, "privrisk experiments", encrypt=False))
                result = runner.run(experiment, spark, policy, sizes, place=place, run_id=attempt.run_id, date=day)
    typer.echo(f"Experiments on {len(result.findings.tables)} tables, seed {result.sizes['seed']}")
    for ending in ("html", "csv", "json"):
        typer.echo(f"  {place / f'{name}.{ending}'}")
    if result.private:
        typer.echo("  never publish them: exact figures about the table")
