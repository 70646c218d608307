"""Run a published experiment, or all of them: ``python -m reproduce NAME|all [POLICY...] --output DIR``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from privrisk_spark.cli.attempt import Attempt, attempted, day_of
from privrisk_spark.cli.options import LogFormat
from privrisk_spark.cli.printing import echo
from privrisk_spark.errors import ConfigError, Fault
from privrisk_spark.policy.policy import Policy
from privrisk_spark.runs.places import ResultPlace
from reproduce import NAMES
from reproduce.collection import FIGURES, PAGE, check_collection, named, run_all
from reproduce.run import check_output, run
from reproduce.sizes import bounds, changed

if TYPE_CHECKING:
    import datetime as dt

    from pyspark.sql import SparkSession


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the arguments ask for.

    Parameters
    ----------
    arguments : sequence of str, optional
        Default: those of the process.

    Returns
    -------
    int
        Exit code, as ``privrisk`` returns it: 0 done, 2 policy or input error, 3 engine failure.
    """
    parser = argparse.ArgumentParser("python -m reproduce", description="Run published experiments again.")
    parser.add_argument("experiment", choices=(*NAMES, "all"))
    parser.add_argument("options", nargs=argparse.REMAINDER, help="see: python -m reproduce EXPERIMENT --help")
    asked = parser.parse_args(arguments)
    options = options_parser(asked.experiment).parse_intermixed_args(asked.options)
    name = "experiments" if asked.experiment == "all" else asked.experiment
    from privrisk_spark.engine.failures import named as named_errors

    try:
        with attempted(name, LogFormat.text) as attempt, named_errors():
            policy, day = _read(attempt, options)
            if asked.experiment == "all":
                _run_all(attempt, options, policy, day)
            else:
                _run_one(attempt, options, policy, day, name)
    except typer.Exit as ended:
        return ended.exit_code
    return 0


def options_parser(name: str) -> argparse.ArgumentParser:
    """Return the parser of an experiment's options: those of all experiments, and its sizes.

    Parameters
    ----------
    name : str
        Of the experiment, or ``all``.
    """
    parser = argparse.ArgumentParser(f"python -m reproduce {name}", allow_abbrev=False)
    parser.add_argument("policies", nargs="*", metavar="POLICY", help="YAML files: use this policy's table as well")
    parser.add_argument("--output", required=True, metavar="DIR", help="write to this directory, or object store URI")
    parser.add_argument("--set", action="append", metavar="KEY=VALUE", help="override a dotted key of the policy")
    parser.add_argument("--date", help="business date YYYY-MM-DD (default: today, UTC)")
    parser.add_argument("--quick", action="store_true", help="start from small sizes, to see that it runs")
    if name != "all":
        usual = named(name).usual
        for size, allowed in bounds(usual).items():
            most = "" if allowed.most is None else f" to {allowed.most:,}"
            text = f"from {allowed.least:,}{most} (default: {getattr(usual, size):,})"
            parser.add_argument(f"--{size}", type=int, metavar="N", help=text)
    return parser


def _read(attempt: Attempt, options: argparse.Namespace) -> tuple[Policy | None, dt.date]:
    """Read the policy, if one is given, and the business date."""
    if options.policies:
        attempt.asked = None
        return attempt.policy(options.policies, options.set, options.date)
    if options.set:
        raise ConfigError([Fault("--set", "changes a policy, and none is named")])
    return None, day_of(options.date)


@contextmanager
def _session(policy: Policy | None) -> Iterator[SparkSession | None]:
    """Hold a session if there is a policy. Without one Spark is not started."""
    if policy is None:
        yield None
        return
    from privrisk_spark.engine.session import held

    with held(None, "privrisk experiments", encrypt=False, engine=policy.run.engine) as (spark, _):
        yield spark


def _run_one(attempt: Attempt, options: argparse.Namespace, policy: Policy | None, day: dt.date, name: str) -> None:
    experiment = named(name)
    given = {size: getattr(options, size) for size in bounds(experiment.usual)}
    sizes = changed(
        experiment.quick if options.quick else experiment.usual,
        {size: value for size, value in given.items() if value is not None},
    )
    place = check_output(experiment, policy, options.output)
    attempt.tell_in(place)
    with _session(policy) as spark:
        result = run(experiment, spark, policy, sizes, place=place, run_id=attempt.run_id, date=day)
    echo(f"Experiments on {len(result.findings.tables)} tables, seed {result.sizes['seed']}")
    _print_files(place, [f"{name}.{ending}" for ending in ("html", "csv", "json")], private=result.private)


def _run_all(attempt: Attempt, options: argparse.Namespace, policy: Policy | None, day: dt.date) -> None:
    place = check_collection(options.output)
    attempt.tell_in(place)
    with _session(policy) as spark:
        result = run_all(spark, policy, place=place, run_id=attempt.run_id, date=day, quick=options.quick, tell=echo)
    words = [one.word for part in result.parts for one in part.claims]
    failed, open_ = len(result.failed), words.count("not decided")
    echo(
        f"{len(words) - open_} claims were decided; {failed} of them do not hold, or only in part. "
        f"{open_} are not decided"
    )
    _print_files(place, [PAGE, FIGURES], private=result.private)


def _print_files(place: ResultPlace, names: Sequence[str], *, private: bool) -> None:
    for name in names:
        echo(f"  {place.called(name)}")
    if private:
        echo("  never publish them: exact figures about the table")


if __name__ == "__main__":
    sys.exit(main())
