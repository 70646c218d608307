"""Opening a version of a lake table, whatever its format."""

from __future__ import annotations

from privrisk_spark.storage.lakes.delta import open_delta
from privrisk_spark.storage.lakes.iceberg import open_iceberg
from privrisk_spark.storage.lakes.snapshot import Asked, Pin, Snapshot

__all__ = ["open_snapshot"]


def open_snapshot(asked: Asked, pin: Pin | None = None) -> Snapshot:
    """Open a version of a table; footers of its files are read, and no rows.

    Parameters
    ----------
    asked : Asked
    pin : Pin, optional
        The version to open instead of the one that is asked for: what a run of the same id opened before.

    Raises
    ------
    SchemaError
        If there is no such table or version, or reading its plain files would misread it.
    InputError
        If the package of the format is not installed.
    """
    return open_delta(asked, pin) if asked.form == "delta" else open_iceberg(asked, pin)
