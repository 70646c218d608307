"""How the commands ``privrisk experiments …`` run: with Spark where there is a policy."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from privrisk_spark.cli.attempt import Attempt, attempted, day_of
from privrisk_spark.cli.options import LogFormat
from privrisk_spark.cli.printing import echo
from privrisk_spark.errors import ConfigError, Fault

if TYPE_CHECKING:
    from privrisk_spark.policy.policy import Policy


def run_experiments(
    name: str,
    sizes: dict[str, int],
    files: list[str],
    overrides: Sequence[str] | None,
    output: str,
    date: str | None,
    log_format: LogFormat,
    *,
    quick: bool = False,
) -> None:
    """Run experiments, with Spark where there is a policy, and say where they are."""
    import privrisk_spark as pr
    from privrisk_spark.engine.failures import named

    with attempted(name, log_format) as attempt:
        policy, day = _asked(attempt, files, overrides, date)
        with named():
            from reproduce import collection, run

            place = run.check_output(collection.named(name), policy, output)
            attempt.tell_in(place)
        asked: dict[str, Any] = {"quick": quick, "sizes": sizes, "output": output, "run_id": attempt.run_id}
        found = pr.experiment(None, policy, name, date=day, **asked)
    echo(f"Experiments on {len(found.result.findings.tables)} tables, seed {found.result.sizes['seed']}")
    for ending in ("html", "csv", "json"):
        echo(f"  {place.called(f'{name}.{ending}')}")
    if found.result.private:
        echo("  never publish them: exact figures about the table")


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
    import privrisk_spark as pr
    from privrisk_spark.engine.failures import named

    with attempted("experiments", log_format) as attempt:
        policy, day = _asked(attempt, files, overrides, date)
        with named():
            from reproduce import collection

            place = collection.check_collection(output)
            attempt.tell_in(place)
        asked: dict[str, Any] = {"quick": quick, "output": output, "run_id": attempt.run_id, "announce": echo}
        found = pr.all_experiments(None, policy, date=day, **asked)
    words = [one.word for part in found.result.parts for one in part.claims]
    failed, open_ = len(found.result.failed), words.count("not decided")
    echo(
        f"{len(words) - open_} claims were decided; {failed} of them do not hold, or only in part. "
        f"{open_} are not decided"
    )
    for name in (collection.PAGE, collection.FIGURES):
        echo(f"  {place.called(name)}")
    if found.result.private:
        echo("  never publish them: exact figures about the table")


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
