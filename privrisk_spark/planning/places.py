"""Places for what never leaves the trusted zone, held against what a policy reads and publishes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from privrisk_spark.errors import ConfigError, Fault, InputError, OverlapError
from privrisk_spark.planning.dictionaries import true_dictionary
from privrisk_spark.policy.dictionaries import OneDictionary, Table
from privrisk_spark.policy.overlap import overlapping, places_read
from privrisk_spark.policy.policy import Policy
from privrisk_spark.runs.places import ResultPlace, result_place
from privrisk_spark.storage.directories import resolved
from privrisk_spark.storage.locations import Location, locate


def check_request(policy: Policy, output: str, *, what: str) -> ResultPlace:
    """Return the place the curves, or other exact figures, go to.

    Raises
    ------
    ConfigError, InputError
        If the policy's figures may not be computed exactly, or it is no place for them.
    """
    check_exact(policy, what=what)
    return check_private_place(policy, output, what=what)


def check_exact(policy: Policy, *, what: str) -> None:
    """Refuse exact figures about a table whose policy does not allow them.

    Raises
    ------
    InputError
        If it is differentially private, or of a kind that decides nothing.
    """
    if policy.guarantee.keyed:
        which = "no differentially private policy allows" if policy.guarantee.private else "the kind is not for"
        raise InputError(
            f"guarantee.kind: {what} are exact figures about the table, which {which}; use a policy of the kind 'risk'."
        )


def check_private_place(
    policy: Policy, output: str, *, what: str, more: Sequence[tuple[str, Table]] = ()
) -> ResultPlace:
    """Return a place for what never leaves the trusted zone.

    Raises
    ------
    ConfigError, InputError
        If it has other content, or is where the policy reads or publishes.
    """
    fault = "--output"
    place = result_place(output, what)
    here = place.location
    for key, path in () if policy.output is None else policy.output.published.items():
        if here.overlaps(locate(path, key=key)):
            rule = f"must be neither {key} nor inside nor around it: {what} stay private"
            raise ConfigError([Fault(fault, rule)])
    sources: list[tuple[str, Table]] = [("table", policy.table), *more]
    sources += [(one.key, one.table) for one in all_dictionaries(policy) if one.table is not None]
    for key, source in sources:
        there = [] if source.place is None else places_read(source.place)
        faults = list(overlapping({fault: here}, f"{key}.path", there))
        if faults:
            raise ConfigError(faults)
    place.check()
    return place


def all_dictionaries(policy: Policy) -> list[OneDictionary]:
    """Return the dictionaries a policy decides against, and the one an estimate is held against."""
    true = true_dictionary(policy)
    return [*policy.dictionaries, *([true] if true is not None else [])]


def refuse_input(places: Mapping[str, Location], read: Mapping[str, Iterable[Location]]) -> None:
    """Refuse to write where files are read of which only Spark knows: those of a frame, or of a table in a catalog.

    Parameters
    ----------
    places : mapping of key to Location
        Where is written.
    read : mapping of key to iterable of Location
        Files as Spark lists them, links followed.

    Raises
    ------
    OverlapError
        Naming the places.
    """
    faults = [fault for key, files in read.items() for fault in overlapping(places, f"the files of {key}", files)]
    if faults:
        raise OverlapError(faults)


def refuse_public_ledger(policy: Policy, published: Mapping[str, Location]) -> None:
    """Refuse a ledger that would lie among published releases.

    Parameters
    ----------
    published : mapping of key to Location
        Where releases are published.

    Raises
    ------
    ConfigError
        Naming the key.
    """
    if policy.ledger is None:
        return
    from privrisk_spark.ledger.urls import file_of

    file = file_of(policy.ledger.url)
    for key, place in published.items():
        if file is not None and Location("file", "", str(resolved(file))).lies_in(place):
            raise ConfigError([Fault("ledger.url", f"must not lie inside {key}, which is published")])
