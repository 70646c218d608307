"""What commands print: the one place that writes to a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from privrisk_spark.errors import printable

if TYPE_CHECKING:
    from privrisk_spark.runs.places import ResultPlace


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


def print_private(place: ResultPlace, *names: str, about: str = "the table") -> None:
    """Print where the files of a job are, and that they must not be published."""
    for name in names:
        echo(f"  {place.called(name)}")
    echo(f"  never publish them: exact figures about {about}")
