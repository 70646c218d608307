"""The command ``privrisk validate``."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from privrisk_spark.cli.attempt import attempted, day_of
from privrisk_spark.cli.options import CommonOptions, take_common
from privrisk_spark.cli.printing import echo
from privrisk_spark.errors import ConfigError, Fault
from privrisk_spark.results.validation import Job


@take_common
def validate(
    common: CommonOptions,
    job: Annotated[
        Job | None,
        typer.Option("--for", help="What the policy is to be run for; default what it has an output or section for."),
    ] = None,
    output: Annotated[
        str | None, typer.Option("--output", metavar="DIR", help="Look at it as the place for findings, too.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was found as JSON.")] = False,
) -> None:
    """Look at everything a run needs, and print every fault at once, each with its key. Writes nothing.

    Reads the policy, schemas, the values of quasi-identifiers against their hierarchies, dictionaries, places and
    budget. Exit code 2 if something is to be mended, 1 if only the privacy budget forbids the run.
    """
    files = common.files
    with attempted(common.run_id, common.log_format):
        if not files:
            raise ConfigError([Fault("", "name a policy file, such as conf/demo.yaml")])
        import privrisk_spark as pr

        found = pr.validate(
            None,
            files,
            of=job,
            output=output,
            overrides=common.overrides or [],
            run_id=common.run_id,
            date=day_of(common.date),
        )
    echo(json.dumps(found.to_dict(), indent=2, ensure_ascii=False) if as_json else str(found))
    if not found.valid:
        raise typer.Exit(found.exit_code)
