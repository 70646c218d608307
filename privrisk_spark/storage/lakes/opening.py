"""Opening a version of a lake table, and tables for releases, whatever their format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from privrisk_spark.storage.lakes.release_table import ReleaseTable
from privrisk_spark.storage.lakes.snapshot import Asked, Pin, Snapshot

if TYPE_CHECKING:
    from privrisk_spark.storage.lakes.release_table import ReleaseTable

__all__ = ["open_snapshot", "release_table"]


def open_snapshot(asked: Asked, pin: Pin | None = None) -> Snapshot:
    """Open a version of a table; footers of its files are read, and no rows.

    Parameters
    ----------
    pin : Pin, optional
        The version to open instead of the one that is asked for: what a run of the same id opened before.

    Raises
    ------
    SchemaError
        If there is no such table or version, or reading its plain files would misread it.
    InputError
        If the package of the format is not installed.
    """
    if asked.form == "delta":
        from privrisk_spark.storage.lakes.delta import open_delta

        return open_delta(asked, pin)
    from privrisk_spark.storage.lakes.iceberg import open_iceberg

    return open_iceberg(asked, pin)


def release_table(asked: Asked, date_column: str | None = None) -> ReleaseTable[Any, Any]:
    """Return the table that releases are committed to; nothing is opened yet.

    Parameters
    ----------
    date_column : str, optional
        Column for the date of a release, by which the table is partitioned.
    """
    if asked.form == "delta":
        from privrisk_spark.storage.lakes.delta_releases import DeltaReleases

        return DeltaReleases(asked, date_column)
    from privrisk_spark.storage.lakes.iceberg_releases import IcebergReleases

    return IcebergReleases(asked, date_column)
