"""The command ``privrisk init``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privrisk_spark.cli.attempt import attempted
from privrisk_spark.cli.options import EngineOption, Log, LogFormat
from privrisk_spark.cli.printing import echo


def init(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="File or directory of the table.")],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Where to write; by default NAME-policy here.")
    ] = None,
    format: Annotated[
        str | None,
        typer.Option("--format", help="csv, parquet, orc, json, delta or iceberg; told by the files if not given."),
    ] = None,
    options: Annotated[
        list[str] | None,
        typer.Option("--option", metavar="KEY=VALUE", help="Set an option of the reader, such as sep=|; repeatable."),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the files of an earlier call.")] = False,
    log_format: Log = LogFormat.text,
    engine: EngineOption = None,  # noqa: ARG001 - acts when it is read
) -> None:
    """Profile a table, and write a commented policy to release it by, with its hierarchies and a page."""
    with attempted(None, log_format):
        from privrisk_spark.api.suggesting import name_of, suggest_policy_of
        from privrisk_spark.errors import ConfigError, Fault
        from privrisk_spark.pipelines.first_policy_files import refuse_existing

        given = dict(option.partition("=")[::2] for option in options or [])
        if "" in given or any("=" not in option for option in options or []):
            raise ConfigError([Fault("--option", "must be written KEY=VALUE, such as --option sep=|")])
        place = (Path(f"{name_of(table)}-policy") if out is None else out).expanduser().absolute()
        refuse_existing(place, table, overwrite=overwrite)
        found = suggest_policy_of(table, format=format, options=given)
        policy = found.write(place, overwrite=overwrite)
    told, floors = found.found, found.floors
    roles = [one.role for one in told.columns]
    echo(
        f"{told.title}: {told.profile.rows:,} rows, {len(roles)} columns: {roles.count('identifier')} identifiers, "
        f"{roles.count('quasi-identifier')} quasi-identifiers, {roles.count('sensitive')} sensitive"
    )
    if told.to_decide:
        echo(f"  to decide  {', '.join(told.to_decide)} (a release refuses them until you do)")
    if floors is not None:
        one = floors.chosen
        echo(f"  floor      {one.floor:g} of {floors.greatest:.4g} bits: mean risk {one.mean_risk:.2g}")
    echo(f"  policy     {policy}")
    echo(f"  profile    {policy.parent / 'profile.html'} (never publish)")
    echo(f"Next: read the policy, then privrisk release {policy}")
