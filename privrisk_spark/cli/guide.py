"""The command ``privrisk guide``."""

from __future__ import annotations

from typing import Annotated

import typer

from privrisk_spark.cli.attempt import told_errors
from privrisk_spark.cli.printing import echo
from privrisk_spark.reporting.guide import text


@told_errors()
def guide(
    section: Annotated[str | None, typer.Argument(metavar="[SECTION]", help="One section; without it, all.")] = None,
) -> None:
    """Print the privacy officer's guide: what a differentially private release promises, how to choose its figures."""
    echo(text(section), nl=False)
