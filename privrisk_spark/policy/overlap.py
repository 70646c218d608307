"""Whether what a run writes lies where it reads: places as the system knows them, and prefixes of object stores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress

from privrisk_spark.errors import ConfigError, Fault
from privrisk_spark.policy.secrets import without_credentials
from privrisk_spark.storage.directories import resolved
from privrisk_spark.storage.locations import Location, is_remote, locate
from privrisk_spark.storage.table_files import PATTERN, links_in, named_here


def places_read(path: str) -> list[Location]:
    """Return what a path of a policy names: links followed, and what links in it point to, or a place in a store.

    Of a pattern in an object store the prefix counts that holds all it may match. A path of another file system names
    nothing that a run could write to.
    """
    if is_remote(path):
        before = PATTERN.split(path, maxsplit=1)[0]
        named = path if before == path else before[: before.rfind("/") + 1]
        for text in (named, without_credentials(named)):
            with suppress(ConfigError):
                return [locate(text, key="path")]
        return []
    found = [there for place in named_here(path) for there in (resolved(place), *links_in(place))]
    return [Location("file", "", str(place)) for place in found]


def overlapping(places: Mapping[str, Location], key: str, read: Iterable[Location]) -> Iterable[Fault]:
    """Name the places a run writes to that overlap with what it reads.

    Parameters
    ----------
    places : mapping of key to Location
    key : str
        Of what is read.
    """
    found = list(read)
    for written, place in places.items():
        if any(place.overlaps(there) for there in found):
            yield Fault(written, f"must be neither {key} nor inside nor around it: a run never writes onto its input")
