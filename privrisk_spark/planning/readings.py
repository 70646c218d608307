"""What a policy says of reading: which columns are tidied, of the table and of its dictionaries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from privrisk_spark.planning.dictionaries import entry_of, true_dictionary
from privrisk_spark.policy.dictionaries import DictionaryTable
from privrisk_spark.policy.policy import Policy, QuasiIdentifier
from privrisk_spark.policy.values import Reading


@dataclass(frozen=True)
class Declared:
    """A reading, where the policy declares it.

    Attributes
    ----------
    key : str
        Such as ``columns.sex.read``.
    lenient : bool
        Whether values that cannot be cast are missing; else they are an error.
    """

    key: str
    reading: Reading
    lenient: bool = False


def readings_of(policy: Policy) -> dict[str, Declared]:
    """Return the readings of the policy's table, by column."""
    return {
        name: Declared(
            f"columns.{name}.read", given.read, isinstance(given, QuasiIdentifier) and given.unknown == "suppress"
        )
        for name, given in policy.columns.items()
        if given.read is not None
    }


def readings_of_dictionary(dictionary: DictionaryTable, *, key: str) -> dict[str, Declared]:
    """Return the readings of a dictionary, by its own column."""
    entries = {name: entry_of(given) for name, given in dictionary.columns.items()}
    return {
        entry.column: Declared(f"{key}.columns.{name}.read", entry.read)
        for name, entry in entries.items()
        if entry is not None and entry.read is not None
    }


def declared_readings(policy: Policy) -> dict[str, dict[str, Any]]:
    """Return every reading of a policy by its key, for a manifest: what was declared, and nothing of what was read."""
    found: dict[str, Mapping[str, Declared]] = {"table": readings_of(policy)}
    for one in (*policy.dictionaries, true_dictionary(policy)):
        if one is not None and one.table is not None:
            found[one.key] = readings_of_dictionary(one.table, key=one.key)
    return {given.key: given.reading.declared() for of_table in found.values() for given in of_table.values()}
