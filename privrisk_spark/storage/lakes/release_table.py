"""A lake table that holds the newest release, or that of each date, by one commit a release.

However often and by how many it is tried: a commit names its release, so that who comes later finds it; and it is made
on the version that was looked at, or not at all, so that no two of them mix.
"""

from __future__ import annotations

import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Generic, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from privrisk_spark.errors import EngineError, SchemaError
from privrisk_spark.storage.lakes.footers import known, plain
from privrisk_spark.storage.lakes.snapshot import Asked
from privrisk_spark.storage.locations import Location

__all__ = ["OF_RELEASE", "CameBetween", "ReleaseTable", "TableRelease", "open_to_all", "schema_of"]

_PUBLIC_FILE: Final = 0o644
_PUBLIC_DIRECTORY: Final = 0o755
_ATTEMPTS: Final = 12
"""Commits that may come between two looks at the table; more of them is no race."""

_OF_PROGRAMS: Final = (AssertionError, AttributeError, LookupError, NameError, NotImplementedError, TypeError)
"""What no table says and no store: somebody's program is wrong, and trying again would hide it."""

OF_RELEASE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*-[0-9a-f]{16}-part-[0-9]{5,}\.parquet")
"""Names of the files of releases: :meth:`TableRelease.name_of`, or that after the number of an attempt."""

T = TypeVar("T")
"""A table of the format, as its package opens it."""
U = TypeVar("U")
"""The files of a release that are in the table's place, and what a commit of them takes."""


class CameBetween(Exception):  # noqa: N818
    """Somebody made the table after it was looked at."""


@dataclass(frozen=True)
class TableRelease:
    """A release as the table knows it.

    Attributes
    ----------
    digest : str
        Of its sealed manifest, hex.
    files : tuple of Path
        Its Parquet files on this machine, in order.
    date : str
        Its business date, YYYY-MM-DD.
    """

    run_id: str
    digest: str
    files: tuple[Path, ...]
    date: str

    def name_of(self, number: int) -> str:
        """Name of a file in the table, the same in every attempt; of another release it is another."""
        return f"{self.run_id}-{self.digest[:16]}-part-{number:05d}.parquet"


@dataclass(frozen=True)
class ReleaseTable(ABC, Generic[T, U]):
    """A table that is there, or that the first release makes.

    Attributes
    ----------
    asked : Asked
        What the policy says of it.
    date_column : str or None
        Column the table is partitioned by, in which a release has its date; it then replaces that date alone.
    """

    asked: Asked
    date_column: str | None = None

    @property
    @abstractmethod
    def location(self) -> Location:
        """Where the table lies, or will."""

    @property
    def key(self) -> str:
        """Of the policy, that says which table it is."""
        return f"{self.asked.key}.{'path' if self.asked.catalog is None else 'catalog'}"

    def check(self, releases: Callable[[], Iterable[str]], columns: Mapping[str, pa.DataType | None]) -> None:
        """Refuse a place that no release can be committed to, as far as that is known before one is made.

        Parameters
        ----------
        releases : callable
            Gives digests of what has been released to the same output.
        columns : mapping of name to DataType of Arrow
            Of the releases; None for a type that is not known yet.

        Raises
        ------
        SchemaError
            If there is something else, or a table of other columns, or one that a commit would break.
        InputError
            If the package of the format is not installed.
        """
        self._refuse(self._opened(), releases, columns)

    def holds(self, digest: str) -> bool:
        """Tell whether a release has been committed, whatever was committed after it."""
        table = self._opened()
        return table is not None and self._has(table, digest)

    def others(self, date: str) -> int:
        """Count the data files that no release wrote and that a release of a date replaces.

        They hold rows of another writer, or rows of a release that another program wrote anew.
        """
        table = self._opened()
        names = () if table is None else self._files_of(table, date)
        return sum(OF_RELEASE.fullmatch(name.rpartition("/")[2]) is None for name in names)

    def commit(
        self, release: TableRelease, *, newest: Callable[[], bool], releases: Callable[[], Iterable[str]]
    ) -> int | None:
        """Make the table, or its partition of the release's date, hold a release and nothing else, by one commit.

        Parameters
        ----------
        newest : callable
            Tells whether it is the newest of its output, or of its date there; asked after the table was looked at, so
            that who publishes a newer one commits after this.
        releases : callable
            Gives digests of what has been released to the same output.

        Returns
        -------
        int or None
            The version or snapshot; None if there is nothing to do: it was committed before, or is not the newest any
            more.

        Raises
        ------
        SchemaError
            As :meth:`check`.
        EngineError
            If it cannot be committed; running again may help.
        """
        faults = self._faults()
        schema = schema_of(release.files[0])
        uploaded: U | None = None
        fault: type[Exception] = CameBetween
        for attempt in range(_ATTEMPTS):
            table = self._opened()
            if (table is not None and self._has(table, release.digest)) or not newest():
                return None
            self._refuse(table, releases, dict(zip(schema.names, schema.types, strict=True)))
            with suppress(CameBetween):
                uploaded = self._uploaded(table, schema, release, uploaded)
                try:
                    return self._committed(table, schema, uploaded, release)
                except _OF_PROGRAMS:
                    raise
                except faults as error:  # what it says may quote credentials
                    fault = type(error)
            # Somebody came between, or the answer was lost: then the next look finds the commit.
            time.sleep(min(0.05 * 2**attempt, 2))
        raise EngineError(
            f"{self.asked.where} could not be committed to ({fault.__name__}): others commit too often, or its catalog "
            "or store does not take the commit. Run the same run id again."
        )

    @abstractmethod
    def _faults(self) -> tuple[type[Exception], ...]:
        """What a commit raises that was not made, or of which no answer came."""

    @abstractmethod
    def _opened(self) -> T | None:
        """Return the table as it is now; None if there is none."""

    @abstractmethod
    def _has(self, table: T, digest: str) -> bool:
        """Tell whether a release was ever committed to it."""

    @abstractmethod
    def _uploaded(self, table: T | None, schema: pa.Schema, release: TableRelease, before: U | None) -> U:
        """Copy the files of a release to the table's place, but those that an attempt before has copied.

        Raises
        ------
        CameBetween
        """

    @abstractmethod
    def _committed(self, table: T | None, schema: pa.Schema, uploaded: U, release: TableRelease) -> int:
        """Make one commit on the table that was looked at, or none."""

    @abstractmethod
    def _refuse_place(self) -> None:
        """Refuse a place where no table can be made."""

    @abstractmethod
    def _files_of(self, table: T, date: str | None = None) -> Iterable[str]:
        """Return the addresses of its data files; of one date only if it is given and each date has its rows."""

    @abstractmethod
    def _reasons(self, table: T) -> Iterable[str]:
        """Yield why a commit of plain files would break the table, or would be misread."""

    @abstractmethod
    def _columns(self, table: T) -> Mapping[str, pa.DataType]:
        """Return its columns, in plain types."""

    @abstractmethod
    def _kind_in_table(self, kind: pa.DataType) -> pa.DataType | None:
        """Return the type a column has in the table; None if it can have none."""

    def _refuse(
        self, table: T | None, releases: Callable[[], Iterable[str]], columns: Mapping[str, pa.DataType | None]
    ) -> None:
        for name, kind in columns.items():
            if kind is not None and not (known(kind) and self._kind_in_table(kind) is not None):
                raise self.asked.fault(
                    f"cannot have column '{name}' of type {kind}; drop it, or cast it when it is read."
                )
        if table is None:
            self._refuse_place()
            return
        if any(True for _ in self._files_of(table)) and not any(self._has(table, digest) for digest in releases()):
            raise self.asked.fault(
                "holds rows, and no release of this output.path: a release would replace them. Name another "
                f"{self._named}, or delete the rows by a commit if they may go."
            )
        for reason in self._reasons(table):
            raise self.asked.fault(f"cannot be replaced by a release: {reason}. Let the first release make the table.")
        self._refuse_other_columns(table, columns)

    def _refuse_other_columns(self, table: T, columns: Mapping[str, pa.DataType | None]) -> None:
        has = self._columns(table)
        if self.date_column is not None:
            columns = {**columns, self.date_column: pa.date32()}
        for name, kind in columns.items():
            if name not in has:
                raise self._other_columns(f"lacks column '{name}' of the release")
            if kind is not None and self._kind_in_table(kind) != has[name]:
                raise self._other_columns(f"has column '{name}' as {has[name]}, and the release as {kind}")
        for name in has:
            if name not in columns:
                raise self._other_columns(f"has column '{name}', which the release lacks")

    def _other_columns(self, what: str) -> SchemaError:
        return self.asked.fault(f"{what}; name another {self._named}, or change the table's columns first.")

    @property
    def _named(self) -> str:
        return "directory" if self.asked.catalog is None else "table"


def schema_of(file: Path) -> pa.Schema:
    """Return columns and types of a released Parquet file, as a table has them."""
    return pa.schema([pa.field(field.name, plain(field.type)) for field in pq.read_schema(file)])


def open_to_all(*paths: Path) -> None:
    """Let everyone read what is written, as all that is released, whatever the umask says."""
    for path in paths:
        with suppress(FileNotFoundError, PermissionError):  # another's, or one that is gone
            path.chmod(_PUBLIC_DIRECTORY if path.is_dir() else _PUBLIC_FILE)
