"""Which storage a ``ledger.url`` names."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import sqlalchemy as sa

from privrisk_spark.errors import InputError
from privrisk_spark.ledger.postgresql import LedgerServer
from privrisk_spark.ledger.sqlite import LedgerFile
from privrisk_spark.ledger.storage import Storage

__all__ = ["file_of", "storage_of"]

_FILE: Final = "sqlite:///"
_SERVER: Final = "postgresql+psycopg://"
_REFERENCE: Final = "env:"


def storage_of(url: str) -> Storage:
    """Return the storage of a URL; see `privrisk_spark.ledger.ledger.Ledger`.

    Raises
    ------
    InputError
        If it names none.
    """
    # No message repeats the URL or a part of it: it may hold a password, in its place or, mistyped, in another.
    if url.startswith(_REFERENCE):
        url = os.environ.get(url.removeprefix(_REFERENCE), "")
        if not url:
            raise InputError("ledger.url names an environment variable that is not set; write env:NAME of one that is.")
        if url.startswith(_FILE) and not url.startswith(f"{_FILE}/"):
            raise InputError(
                "ledger.url names an environment variable with a relative path, which is another ledger in every "
                "directory. Fix: set it to sqlite:////absolute/path."
            )
    if url.startswith(_FILE):
        return LedgerFile(_path_of(url.removeprefix(_FILE)))
    if not url.startswith(_SERVER):
        raise InputError(f"ledger.url must start with {_FILE} or {_SERVER}, or be env:NAME of a variable that does.")
    try:
        parsed = sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError):
        parsed = None
    if parsed is None or not parsed.database:
        raise InputError(
            f"ledger.url must name a database, as {_SERVER}role:password@host:port/database; write : / ? # [ ] @ and % "
            "in a password as %3A %2F %3F %23 %5B %5D %40 and %25."
        )
    return LedgerServer(parsed)


def file_of(url: str) -> Path | None:
    """Return the file of a ledger that is one, else None.

    Raises
    ------
    InputError
        If the URL names no ledger.
    """
    storage = storage_of(url)
    return storage.path if isinstance(storage, LedgerFile) else None


def _path_of(name: str) -> Path:
    if not name or name.endswith("/") or name.startswith((":memory:", "file:")) or "?" in name or "\0" in name:
        raise InputError(
            "ledger.url must name a file, as sqlite:///relative/path or sqlite:////absolute/path, without "
            "options; a ledger in memory would forget what was spent."
        )
    return Path(name)
