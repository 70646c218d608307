"""What only saves seconds at the start of a run, in one room, and off unless it is asked for.

One setting turns all of it on: the environment variable ``PRIVRISK_FAST=1``, or ``--fast`` of a command, which sets it.
No result depends on it. A session that is there already, as a notebook's, is never touched; one that spark-submit
prepared gets the allocators alone, and only if asked; Spark Connect gets nothing.

What each saves: processor seconds of one ``privrisk release conf/demo.yaml`` (20,000 rows, after ``privrisk synthesize
demo/data``), each trick alone against none. 2026-11-22, ONE run each on a busy machine (load 30 on 2 cores):
differences of a few seconds mean little. Without any it took 53.8 (239 s of wall time there), with all 28.3 (140 s).

============  ==============================================  ==========  =========================================
trick         what it does                                    saved       risk
============  ==============================================  ==========  =========================================
java          one compiler tier for what runs often, and the  12.8 s      Java's own work is slower where there is
              smallest collector                                          much of it, as in large shuffles
classes       maps Java's classes from an archive, made by    9.7 s more  160 MB in the cache; Java dies of a damaged
              ``privrisk prepare-java``; with ``java``                    archive, so a changed one is not used
workers       forks workers from a process that has imported  none seen   a library that starts threads on import
              what they need                                              would not survive; a test forbids it
allocators    workers keep memory instead of giving it back   1.4 s       more resident memory (it saved 2 of 16 s
                                                                          of 5,667,004 rows)
imports       imports what checks and reports need, and       none seen   a failing import shows later; it overlaps,
              warms a worker, while Java starts                           so it saves wall time of an idle core
collector     no search for garbage during imports, nor       not         garbage among what was imported stays
              among what was imported later                   measured
============  ==============================================  ==========  =========================================

Only the allocators reach the workers of a cluster; everything else is of a process that starts Java on this machine.
"""

from __future__ import annotations

import os

from privrisk_spark.errors import ConfigError, Fault, listing

SETTING = "PRIVRISK_FAST"
"""The one setting."""

TRICKS = ("java", "classes", "workers", "allocators", "imports", "collector")
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
