"""The store of a place."""

from __future__ import annotations

import os
from typing import Final

from privrisk_spark.storage.local import LocalStore
from privrisk_spark.storage.locations import Location
from privrisk_spark.storage.store import RETRY_SECONDS, RemoteStore, Store

__all__ = ["open_remote", "open_store"]

_OPENED: Final[dict[tuple[int, Location, str], RemoteStore]] = {}


def open_store(location: Location) -> Store:
    """Return the store of a place; nothing is read or written yet."""
    return open_remote(location) if location.remote else LocalStore(location)


def open_remote(location: Location, *, retry_seconds: float = RETRY_SECONDS) -> RemoteStore:
    """Return this process's store of a place, which keeps its connections.

    Parameters
    ----------
    location : Location
        Not of kind ``file``.
    retry_seconds : float
        For how long a request that failed is tried again.
    """
    from privrisk_spark.storage.hdfs import HdfsStore
    from privrisk_spark.storage.objects import ObjectStore

    kind = HdfsStore if location.kind == "hdfs" else ObjectStore
    if retry_seconds != RETRY_SECONDS:
        return kind(location, retry_seconds=retry_seconds)
    # The libraries' threads do not survive a fork, by which Spark makes workers.
    key = (os.getpid(), location, location.key)
    if key not in _OPENED:
        _OPENED[key] = kind(location)
    return _OPENED[key]
