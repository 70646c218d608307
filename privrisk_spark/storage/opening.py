"""The store of a place."""

from __future__ import annotations

from privrisk_spark.storage.local import LocalStore
from privrisk_spark.storage.locations import Location
from privrisk_spark.storage.objects import ObjectStore, StorageOptions
from privrisk_spark.storage.store import Store

__all__ = ["open_store"]


def open_store(location: Location, options: StorageOptions | None = None) -> Store:
    """Return the store of a place; nothing is read or written yet.

    Parameters
    ----------
    location : Location
    options : StorageOptions, optional
        For object stores.
    """
    return ObjectStore(location, options) if location.remote else LocalStore(location)
