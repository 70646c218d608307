"""How much a process says of its runs on standard error: asked for once, by the command line."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Verbosity:
    """What was asked for.

    Attributes
    ----------
    quiet : bool
        Say nothing but warnings, and show no progress.
    spark : bool
        Show what Spark logs of warnings, too; it is in a file of the run else.
    """

    quiet: bool = False
    spark: bool = False


ASKED = Verbosity()
"""Of this process."""
