"""Command line: ``init``, ``validate``, ``release``, ``mask``, ``assess``, ``attack``, ``share`` and so on."""

from __future__ import annotations

import atexit
import gc
from typing import Annotated

import typer

from privrisk_spark.cli.assess import assess
from privrisk_spark.cli.attack import attack
from privrisk_spark.cli.audit import audit
from privrisk_spark.cli.config import config_app
from privrisk_spark.cli.curves import curves
from privrisk_spark.cli.experiments import experiments_app
from privrisk_spark.cli.fit import approve, fit
from privrisk_spark.cli.guide import guide
from privrisk_spark.cli.hierarchy import hierarchy_app
from privrisk_spark.cli.init import init
from privrisk_spark.cli.ledger import ledger_app
from privrisk_spark.cli.mask import mask
from privrisk_spark.cli.printing import echo
from privrisk_spark.cli.release import release
from privrisk_spark.cli.share import share
from privrisk_spark.cli.synthetic import synthesize
from privrisk_spark.cli.validate import validate
from privrisk_spark.cli.withdraw import withdraw
from privrisk_spark.version import __version__

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Measure the privacy risk of tables and publish anonymized releases.",
)
app.add_typer(config_app, name="config")
app.add_typer(experiments_app, name="experiments")
app.add_typer(hierarchy_app, name="hierarchy")
app.add_typer(ledger_app, name="ledger")
COMMANDS = (
    init, validate, release, mask, withdraw, assess, attack, share, fit, approve, curves, audit, synthesize, guide,
)  # fmt: skip
for command in COMMANDS:
    app.command()(command)


def _version(asked: bool) -> None:
    if asked:
        echo(f"privrisk_spark {__version__}")
        raise typer.Exit


@app.callback()
def _top(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    del version


def main() -> None:
    """Entry point of ``privrisk``."""
    # A run makes many objects that stay. Looking through them for garbage, also at the end of the process, takes a
    # sixth of the time of a small release.
    gc.set_threshold(20_000)
    atexit.register(gc.freeze)
    app(prog_name="privrisk")


if __name__ == "__main__":
    main()
