"""What commands print: the one place that writes to a terminal."""

from __future__ import annotations

import typer

from privrisk_spark.errors import printable


def echo(text: object, *, err: bool = False, nl: bool = True) -> None:
    """Print a text, with control characters as escapes.

    Parameters
    ----------
    text : object
        Printed as ``str`` has it.
    err : bool
        To standard error.
    nl : bool
        Whether to end the line.
    """
    typer.echo(printable(str(text)), err=err, nl=nl)
