"""The store of a place."""

from __future__ import annotations

from privrisk_spark.storage.local import LocalStore
from privrisk_spark.storage.locations import Location
from privrisk_spark.storage.objects import ObjectStore
from privrisk_spark.storage.store import Store

__all__ = ["open_store"]


def open_store(location: Location) -> Store:
    """Return the store of a place; nothing is read or written yet.

    Parameters
    ----------
    location : Location
    """
    return ObjectStore(location) if location.remote else LocalStore(location)
