"""One version of a lake table: its columns and its Parquet files, told once by the driver.

A version never changes, so what is told here of one holds for as long as its files are there.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from privrisk_spark.errors import MissingError, SchemaError
from privrisk_spark.storage.table_files import ObjectFile

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Asked", "DataFile", "Form", "Pin", "Places", "Snapshot", "Value", "name_of"]

Places = npt.NDArray[np.int64]
"""Of rows in a file or in a part of it, ascending."""

Form = Literal["delta", "iceberg"]
Value = str | int | float | bool | bytes | Decimal | dt.date | dt.datetime | None
"""Of a column that a file does not hold; None for a missing one."""


@dataclass(frozen=True)
class Asked:
    """What a policy says of a lake table.

    Attributes
    ----------
    key : str
        Of the policy, for messages.
    form : {"delta", "iceberg"}
    path : str or None
        Directory of the table, or file of an Iceberg table's metadata.
    catalog : str or None
        Instead of a path: catalog, namespace and table of Iceberg, with dots between them.
    version : int or None
        Of a Delta table.
    snapshot : int or None
        Of an Iceberg table.
    timestamp : datetime or None
        The version that was the newest then; with a time zone.
    """

    key: str
    form: Form
    path: str | None = None
    catalog: str | None = None
    version: int | None = None
    snapshot: int | None = None
    timestamp: dt.datetime | None = None

    @property
    def where(self) -> str:
        """Key and place, for messages."""
        return f"{self.key}.path: '{self.path}'" if self.catalog is None else f"{self.key}.catalog: '{self.catalog}'"

    def fault(self, what: str) -> SchemaError:
        """Return the error that says what is wrong with the table."""
        return SchemaError(f"{self.where} {what}")

    def absent(self, what: str) -> MissingError:
        """Return the error that the table, or what is asked for of it, does not exist."""
        return MissingError(f"{self.where} {what}")

    def identity(self) -> dict[str, Any]:
        """Return what tells it from any other request, JSON-safe; the key of the policy is none of it."""
        return {
            "format": self.form,
            "path": self.path,
            "catalog": self.catalog,
            "version": self.version,
            "snapshot": self.snapshot,
            "timestamp": None if self.timestamp is None else self.timestamp.astimezone(dt.UTC).isoformat(),
        }


@dataclass(frozen=True)
class Pin:
    """Which version a run reads, whatever the table becomes meanwhile.

    Attributes
    ----------
    version : int
        Version of a Delta table, snapshot of an Iceberg table.
    table : str
        Id the table was given when it was made: another table at the same place has another.
    schema : int or None
        Schema of an Iceberg table by which the snapshot is read.
    """

    version: int
    table: str
    schema: int | None = None


@dataclass(frozen=True)
class DataFile:
    """A Parquet file of a version.

    Attributes
    ----------
    file : str or ObjectFile
        Its path, or where it is in an object store.
    groups : tuple of int
        Rows of its row groups, without deleted ones.
    columns : mapping of column to name in the file
        Of the table's columns, those it holds.
    values : mapping of column to Value
        The others.
    deleted : tuple of ndarray of int64, or None
        Of each row group the places of deleted rows in it, ascending; None if no row is deleted.
    """

    file: str | ObjectFile
    groups: tuple[int, ...]
    columns: Mapping[str, str]
    values: Mapping[str, Value]
    deleted: tuple[Places, ...] | None = field(default=None, compare=False)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return sum(self.groups)


@dataclass(frozen=True)
class Snapshot:
    """A version of a lake table.

    Attributes
    ----------
    form : {"delta", "iceberg"}
    committed : str or None
        When the version was made, in ISO 8601; None where the log does not tell of it any more.
    schema : Schema of Arrow
        Of the table.
    root : Path or None
        Directory of the table, links followed; None in an object store.
    """

    form: Form
    pin: Pin
    committed: str | None
    schema: pa.Schema
    files: tuple[DataFile, ...]
    root: Path | None

    @property
    def rows(self) -> int:
        """Number of rows."""
        return sum(file.rows for file in self.files)

    @property
    def places(self) -> list[Path]:
        """What is read on local and mounted paths, links followed."""
        files = [Path(of.file).resolve() for of in self.files if isinstance(of.file, str)]
        return files if self.root is None else [self.root, *files]

    def described(self) -> dict[str, Any]:
        """Return what a manifest says of it."""
        name = "version" if self.form == "delta" else "snapshot"
        return {"format": self.form, name: self.pin.version, "committed": self.committed}


def name_of(file: str | ObjectFile) -> str:
    """Return the last part of a file's place."""
    return Path(file).name if isinstance(file, str) else file.name
