"""The command ``privrisk release``."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privrisk_spark.cli.attempt import days_of, start_job
from privrisk_spark.cli.options import AcceptUndecided, CommonOptions, DryRun, Explain, StatusFile, Until, take_common
from privrisk_spark.cli.printing import echo
from privrisk_spark.errors import PlaceError

if TYPE_CHECKING:
    from privrisk_spark.policy.policy import Policy


@take_common
def release(
    common: CommonOptions,
    until: Until = None,
    dry_run: DryRun = False,
    explain: Explain = False,
    accept_undecided: AcceptUndecided = False,
    status_file: StatusFile = None,
    scheme: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Apply an approved scheme of privrisk fit; as --set guarantee.scheme=FILE."),
    ] = None,
) -> None:
    """Read, encode, count, decide, validate and publish a table as its policy says."""
    if scheme is not None:
        common = common.override(f"guarantee.scheme={json.dumps(scheme)}")
    release_days(common, until, dry_run=dry_run, explain=explain, accept_undecided=accept_undecided, told=status_file)


def release_days(
    common: CommonOptions,
    until: str | None,
    *,
    dry_run: bool,
    explain: bool,
    accept_undecided: bool,
    told: Path | None,
    check: Callable[[Policy], None] | None = None,
) -> None:
    """Release the table of each day, or plan it; ``check`` raises an error for policies that are refused."""
    if accept_undecided:
        common = common.override("undecided=[]")
    for day in days_of(common.date, until, common.run_id):
        _release_day(replace(common, date=day), dry_run=dry_run, explain=explain, told=told, check=check)


def _release_day(
    common: CommonOptions,
    *,
    dry_run: bool,
    explain: bool,
    told: Path | None,
    check: Callable[[Policy], None] | None,
) -> None:
    with start_job(common, releasing=True, told=told) as job:
        from privrisk_spark.runs.vaults import vault_at
        from privrisk_spark.runs.workplace import Workplace, output_at

        policy, attempt = job.policy, job.attempt
        if not dry_run:
            place = Workplace(output_at(policy.places.path), vault_at(policy.places.vault), attempt.run_id)
            with suppress(PlaceError):  # which the release raises again, after what it finds wrong before
                place.check()
                attempt.tell_in(place.vault)
        import privrisk_spark as pr

        if check is not None:
            check(policy)
        if dry_run:
            echo(pr.plan(None, policy, **job.run))
            return
        done = pr.release(None, policy, announce=echo if explain else None, **job.run)
    what = "Released" if done.fresh else "Already released, nothing done:"
    echo(f"{what} {done.manifest['rows']:,} rows, run id {attempt.run_id}")
    echo(f"  manifest  {done.place}/manifest.json")
    echo(f"  data      {done.data_at}")
    echo(f"  report    {done.place}/report.html")
    echo(f"  vault     {done.vault} (never publish: exact risks, decisions, full report)")
    if not policy.guarantee.generalizes:
        echo(f"  {done.manifest['guarantee']['statement']}")
    if policy.guarantee.recodes:
        echo(f"  levels    {_levels(done.manifest)}")
        suppressed = next(check["observed"] for check in done.manifest["checks"] if check["name"] == "suppressed rows")
        echo(f"  suppressed rows: {suppressed:,}")


def _levels(manifest: Mapping[str, Any]) -> str:
    """Return the level of each quasi-identifier, of the greatest it has."""
    levels = manifest["guarantee"]["parameters"]["levels"]
    if levels is None:
        return "each class has its own"
    greatest = {column["name"]: column.get("levels") for column in manifest["columns"]}
    return ", ".join(f"{name} {level} of {greatest[name]}" for name, level in levels.items())
