"""How the commands ``privrisk experiments …`` run: with Spark where there is a policy."""

from __future__ import annotations

import datetime as dt
import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from privrisk_spark.cli.attempt import Attempt, attempted, day_of
from privrisk_spark.cli.options import LogFormat
from privrisk_spark.errors import ConfigError, Fault

if TYPE_CHECKING:
    from privrisk_spark.policy.policy import Policy


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
        policy, day = _asked(attempt, files, overrides, date)
        with named():
            from privrisk_spark.experiments import run as runner

            experiment = importlib.import_module(f"privrisk_spark.experiments.{name}.experiment").EXPERIMENT
            place = runner.check_output(experiment, policy, output)
            attempt.status = place
            with runner.session_for(policy) as spark:
                result = runner.run(experiment, spark, policy, sizes, place=place, run_id=attempt.run_id, date=day)
    typer.echo(f"Experiments on {len(result.findings.tables)} tables, seed {result.sizes['seed']}")
    for ending in ("html", "csv", "json"):
        typer.echo(f"  {place / f'{name}.{ending}'}")
    if result.private:
        typer.echo("  never publish them: exact figures about the table")


def run_collection(
    files: list[str],
    overrides: Sequence[str] | None,
    output: str,
    date: str | None,
    log_format: LogFormat,
    *,
    quick: bool,
) -> None:
    """Run all experiments, with Spark where there is a policy, and say where they are."""
    from privrisk_spark.engine.failures import named

    with attempted("experiments", log_format) as attempt:
        policy, day = _asked(attempt, files, overrides, date)
        with named():
            from privrisk_spark.experiments import collection
            from privrisk_spark.experiments.run import session_for

            place = collection.check_collection(output)
            attempt.status = place
            with session_for(policy) as spark:
                result = collection.run_all(
                    spark,
                    policy,
                    place=place,
                    run_id=attempt.run_id,
                    date=day,
                    quick=quick,
                    tell=typer.echo,
                )
    judged = [one for part in result.parts for one in part.claims if one.word != "not judged"]
    typer.echo(f"{len(judged)} claims were judged; {len(result.failed)} of them do not hold, or only in part")
    for name in (collection.PAGE, collection.FIGURES):
        typer.echo(f"  {place / name}")
    if result.private:
        typer.echo("  never publish them: exact figures about the table")


def _asked(
    attempt: Attempt, files: list[str], overrides: Sequence[str] | None, date: str | None
) -> tuple[Policy | None, dt.date]:
    """Read the policy, if one is named, and the business date."""
    if files:
        attempt.asked = None
        return attempt.policy(files, overrides, date)
    if overrides:
        raise ConfigError([Fault("--set", "changes a policy, and none is named")])
    return None, day_of(date)
