"""Files that a policy is written in or names, read whole: of a file system, or of an object store."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from privrisk_spark.storage.locations import Location, is_remote, locate
from privrisk_spark.storage.opening import open_remote

__all__ = ["contents"]


def contents(path: str | Path) -> bytes:
    """Return what a file holds.

    Parameters
    ----------
    path : str or Path
        Or a URI of an object store.

    Raises
    ------
    OSError
        If there is none, it cannot be read, or it is a pipe or a device, which might never end.
    ConfigError
        If a URI is malformed or holds credentials.
    InputError, StorageError
        If a store refuses, or does not answer.
    """
    if isinstance(path, str) and is_remote(path):
        return _stored(locate(path, key="a file of the policy"))
    if not stat.S_ISREG(Path(path).stat().st_mode) and not Path(path).is_dir():
        raise OSError(errno.EINVAL, "it is a pipe or a device")
    return Path(path).read_bytes()


def _stored(place: Location) -> bytes:
    above, name = place.above
    try:
        return open_remote(above).read(name).content
    except FileNotFoundError:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(place)) from None
