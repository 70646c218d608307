"""The commands ``privrisk config …``."""

from __future__ import annotations

import json

import typer

from privrisk_spark.cli.printing import echo

config_app = typer.Typer(no_args_is_help=True, help="About policies.")


@config_app.command("schema")
def schema() -> None:
    """Print the JSON Schema of a policy."""
    from privrisk_spark.policy.reading import json_schema

    echo(json.dumps(json_schema(), indent=2))
