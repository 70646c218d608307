"""What only saves seconds at the start of a run, in one room, and off unless it is asked for.

One setting turns all of it on: the environment variable ``PRIVRISK_FAST=1``, or ``--fast`` of a command, which sets it.
No result depends on it. A session that is there already, as a notebook's, is never touched; one that spark-submit
prepared gets the allocators alone, and only if asked; Spark Connect gets nothing.

TABLE
"""

from __future__ import annotations

import os

from privrisk_spark.errors import ConfigError, Fault, listing

SETTING = "PRIVRISK_FAST"
"""The one setting."""

TRICKS = ("java", "classes", "workers", "allocators", "templates", "imports", "collector")
"""Names of the tricks, for measuring one of them alone: ``PRIVRISK_FAST=java,classes``."""


def ask() -> None:
    """Turn everything on for this process and those it starts (``--fast``), unless the setting names tricks already."""
    if not any(on(trick) for trick in TRICKS):
        os.environ[SETTING] = "1"


def on(trick: str) -> bool:
    """Return whether a trick is asked for.

    Parameters
    ----------
    trick : str
        One of :data:`TRICKS`.

    Raises
    ------
    ConfigError
        If the setting is neither 1 nor 0 nor names of tricks.
    """
    given = os.environ.get(SETTING, "").strip().lower()
    if given in ("", "0", "false", "no"):
        return False
    if given in ("1", "true", "yes"):
        return True
    names = [name.strip() for name in given.split(",")]
    unknown = [name for name in names if name not in TRICKS]
    if unknown:
        rule = f"must be 1, 0, or names among {listing(TRICKS)}. Got {given[:60]!r}"
        raise ConfigError([Fault(SETTING, rule)])
    return trick in names
