"""Whether what a run writes lies where it reads: places on local and mounted paths, as the system knows them."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote, urlparse

from privrisk_spark.errors import Fault

_PATTERN = re.compile(r"[*?\[{]")


def named_here(path: str) -> list[Path]:
    """Return what a path of a policy names on this machine.

    Parameters
    ----------
    path : str
        As Spark takes it: a path, a ``file:`` URI, or a pattern of either, which stands for what it matches now; of one
        with alternatives in braces the directory counts that holds all it may match.

    Returns
    -------
    list of Path
        In order; empty for another file system's, and for a pattern that matches nothing.
    """
    parsed = urlparse(path)
    if parsed.scheme == "file":
        path = unquote(parsed.path)
    elif "://" in path:
        return []
    if os.path.lexists(path) or not _PATTERN.search(path):
        return [Path(path)]
    before = path.partition("{")[0]
    fixed = path if before == path else before[: before.rfind("/") + 1] or "."
    return [Path(place) for place in sorted(glob.glob(fixed))]


def local_places(path: str) -> list[Path]:
    """Return what a path of a policy names on this machine, links followed, and what links in it point to."""
    return [there for place in named_here(path) for there in (place.resolve(), *_links(place))]


def _links(directory: Path) -> Iterator[Path]:
    for parent, directories, files in os.walk(directory):
        for name in (*directories, *files):
            path = Path(parent, name)
            if path.is_symlink():
                yield path.resolve()


def overlap(one: Path, other: Path) -> bool:
    """Tell whether two resolved places are one, or one lies in the other."""
    return one == other or one in other.parents or other in one.parents


def overlapping(places: Mapping[str, Path], key: str, read: Iterable[Path]) -> Iterable[Fault]:
    """Name the places a run writes to that overlap with what it reads.

    Parameters
    ----------
    places : mapping of key to Path
        Resolved.
    key : str
        Of what is read.
    read : iterable of Path
        Resolved.
    """
    found = list(read)
    for written, place in places.items():
        if any(overlap(place, there) for there in found):
            yield Fault(written, f"must be neither {key} nor inside nor around it: a run never writes onto its input")
