"""Whether what a run writes lies where it reads: places as the system knows them, and prefixes of object stores."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, urlparse

from privrisk_spark.errors import ConfigError, Fault
from privrisk_spark.policy.secrets import without_credentials
from privrisk_spark.storage.locations import Location, is_remote, locate

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


def places_read(path: str) -> list[Location]:
    """Return what a path of a policy names: links followed, and what links in it point to, or a place in a store.

    Of a pattern in an object store the prefix counts that holds all it may match. A path of another file system names
    nothing that a run could write to.
    """
    if is_remote(path):
        before = _PATTERN.split(path, maxsplit=1)[0]
        named = path if before == path else before[: before.rfind("/") + 1]
        for text in (named, without_credentials(named)):
            with suppress(ConfigError):
                return [locate(text, key="path")]
        return []
    found = [there for place in named_here(path) for there in (place.resolve(), *_links(place))]
    return [Location("file", "", str(place)) for place in found]


def _links(directory: Path) -> Iterator[Path]:
    for parent, directories, files in os.walk(directory):
        for name in (*directories, *files):
            path = Path(parent, name)
            if path.is_symlink():
                yield path.resolve()


def overlapping(places: Mapping[str, Location], key: str, read: Iterable[Location]) -> Iterable[Fault]:
    """Name the places a run writes to that overlap with what it reads.

    Parameters
    ----------
    places : mapping of key to Location
    key : str
        Of what is read.
    read : iterable of Location
    """
    found = list(read)
    for written, place in places.items():
        if any(place.overlaps(there) for there in found):
            yield Fault(written, f"must be neither {key} nor inside nor around it: a run never writes onto its input")
