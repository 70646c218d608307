"""The command ``privrisk synthesize``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privrisk_spark.cli.attempt import told_errors
from privrisk_spark.cli.printing import echo
from privrisk_spark.errors import EngineError


@told_errors()
def synthesize(
    directory: Annotated[Path, typer.Argument(help="Where to write; must not exist or be empty.")],
    rows: Annotated[int, typer.Option(min=1, help="Rows of the table.")] = 20_000,
    people: Annotated[int | None, typer.Option(min=1, help="Rows of the register; default 1.74 times rows.")] = None,
    seed: Annotated[int, typer.Option(help="Same seed, same bytes.")] = 2026,
) -> None:
    """Write a SYNTHETIC census-like table, a register to attack it with, and hierarchies."""
    from privrisk_spark.pipelines.synthetic.population import generate

    try:
        generate(directory, people=people or round(rows * 1.7395), rows=rows, seed=seed)
    except OSError as error:
        raise EngineError(f"The file system failed: {error.strerror or type(error).__name__}.") from None
    echo(f"Synthetic population of {rows:,} rows at {directory}")
