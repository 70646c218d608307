"""The command ``privrisk release``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from privrisk_spark.cli.attempt import attempted, days_of
from privrisk_spark.cli.options import (
    AcceptUndecided,
    Configs,
    Date,
    DryRun,
    EngineOption,
    Explain,
    Log,
    LogFormat,
    Overrides,
    Policies,
    Quiet,
    RunId,
    StatusFile,
    Until,
    Verbose,
)
from privrisk_spark.cli.printing import echo
from privrisk_spark.errors import PlaceError


def release(
    policies: Policies = None,
    config: Configs = None,
    overrides: Overrides = None,
    date: Date = None,
    until: Until = None,
    run_id: RunId = None,
    dry_run: DryRun = False,
    explain: Explain = False,
    accept_undecided: AcceptUndecided = False,
    log_format: Log = LogFormat.text,
    status_file: StatusFile = None,
    scheme: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Apply an approved scheme of privrisk fit; as --set guarantee.scheme=FILE."),
    ] = None,
    quiet: Quiet = False,  # noqa: ARG001 - acts when it is read
    verbose: Verbose = False,  # noqa: ARG001 - acts when it is read
    engine: EngineOption = None,  # noqa: ARG001 - acts when it is read
) -> None:
    """Read, encode, count, decide, validate and publish a table as its policy says."""
    files = [*(policies or []), *(config or [])]
    if scheme is not None:
        overrides = [*(overrides or []), f"guarantee.scheme={json.dumps(scheme)}"]
    if accept_undecided:
        overrides = [*(overrides or []), NOTHING_UNDECIDED]
    for day in days_of(date, until, run_id):
        release_day(
            files, overrides, day, run_id, dry_run=dry_run, explain=explain, log_format=log_format, told=status_file
        )


NOTHING_UNDECIDED = "undecided=[]"
"""Override by which the proposals for undecided columns are accepted."""


def release_day(
    files: list[str],
    overrides: list[str] | None,
    date: str | None,
    run_id: str | None,
    *,
    dry_run: bool,
    explain: bool,
    log_format: LogFormat,
    told: Path | None,
    masked: bool = False,
) -> None:
    """Release one day's table, or plan it; ``masked`` refuses policies of another kind."""
    with attempted(run_id, log_format, told=told) as attempt:
        from privrisk_spark.runs.vaults import vault_at
        from privrisk_spark.runs.workplace import Workplace, output_at

        policy, day = attempt.policy(files, overrides, date)
        if not dry_run:
            place = Workplace(output_at(policy.places.path), vault_at(policy.places.vault), attempt.run_id)
            with suppress(PlaceError):  # which the release raises again, after what it finds wrong before
                place.check()
                attempt.tell_in(place.vault)
        import privrisk_spark as pr
        from privrisk_spark.policy.rules.masking import refuse_other_kinds

        if masked:
            refuse_other_kinds(policy)
        if dry_run:
            echo(pr.plan(None, policy, run_id=attempt.run_id, date=day))
            return
        announce = echo if explain else None
        done = pr.release(None, policy, run_id=attempt.run_id, date=day, announce=announce)
    what = "Released" if done.fresh else "Already released, nothing done:"
    echo(f"{what} {done.manifest['rows']:,} rows, run id {attempt.run_id}")
    echo(f"  manifest  {done.place}/manifest.json")
    echo(f"  data      {done.data_at}")
    echo(f"  report    {done.place}/report.html")
    echo(f"  vault     {done.vault} (never publish: exact risks, decisions, full report)")
    if policy.guarantee.kind == "masked":
        echo(f"  {done.manifest['guarantee']['statement']}")
    if policy.guarantee.kind == "k-anonymity":
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
