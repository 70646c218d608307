"""The commands ``privrisk ledger …``: look at a privacy budget, charge it, check it; no Spark is started."""

from __future__ import annotations

import typer

from privrisk_spark.cli.ledger_charge import create, reserve, void
from privrisk_spark.cli.ledger_check import move, reconcile, verify
from privrisk_spark.cli.ledger_show import plan, show

ledger_app = typer.Typer(
    no_args_is_help=True,
    help="The privacy budget of a table: what its releases have spent, what one more would cost.",
)
for command in (show, plan, reserve, void, verify, reconcile, move, create):
    ledger_app.command()(command)
