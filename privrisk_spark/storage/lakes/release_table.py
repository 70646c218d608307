"""A Delta table that holds the newest release, or that of each date, by one commit a release.

However often and by how many it is tried: a commit names its release by an application transaction, so that who comes
later finds it; and it is made on the version that was looked at, or not at all, so that no two of them mix.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq

from privrisk_spark.errors import EngineError, SchemaError
from privrisk_spark.storage.lakes.delta import is_delta, opened_delta
from privrisk_spark.storage.lakes.footers import known, plain
from privrisk_spark.storage.lakes.snapshot import Asked
from privrisk_spark.storage.locations import Location
from privrisk_spark.storage.opening import open_store

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable
    from deltalake.transaction import AddAction

__all__ = ["ReleaseTable", "TableRelease", "schema_of"]

_KNOWN: Final = {"appendOnly", "invariants", "timestampNtz", "vacuumProtocolCheck", "v2Checkpoint"}
"""Features of a writer that files which are there already can be added under."""

_OURS: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*-[0-9a-f]{16}-part-[0-9]{5,}\.parquet")
_PUBLIC_FILE: Final = 0o644
_PUBLIC_DIRECTORY: Final = 0o755
_ATTEMPTS: Final = 12
"""Commits that may come between two looks at the table; more of them is no race."""


@dataclass(frozen=True)
class TableRelease:
    """A release as the table knows it.

    Attributes
    ----------
    run_id : str
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
class ReleaseTable:
    """A Delta table that is there, or that the first release makes.

    Attributes
    ----------
    asked : Asked
        What the policy says of it.
    location : Location
    date_column : str or None
        Column the table is partitioned by, in which a release has its date; it then replaces that date alone.
    """

    asked: Asked
    location: Location
    date_column: str | None = None

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
            If the package deltalake is not installed.
        """
        self._refuse(self._opened(), releases, columns)

    def holds(self, digest: str) -> bool:
        """Tell whether a release has been committed, whatever was committed after it."""
        table = self._opened()
        return table is not None and _has(table, digest)

    def commit(
        self, release: TableRelease, *, newest: Callable[[], bool], releases: Callable[[], Iterable[str]]
    ) -> int | None:
        """Make the table, or its partition of the release's date, hold a release and nothing else, by one commit.

        Parameters
        ----------
        release : TableRelease
        newest : callable
            Tells whether it is the newest of its output, or of its date there; asked after the table was looked at, so
            that who publishes a newer one commits after this.
        releases : callable
            Gives digests of what has been released to the same output.

        Returns
        -------
        int or None
            The version; None if there is nothing to do: it was committed before, or is not the newest any more.

        Raises
        ------
        SchemaError
            As :meth:`check`.
        EngineError
            If it cannot be committed; running again may help.
        """
        from deltalake.exceptions import DeltaError

        schema = schema_of(release.files[0])
        actions: list[AddAction] = []
        for attempt in range(_ATTEMPTS):
            table = self._opened()
            if (table is not None and _has(table, release.digest)) or not newest():
                return None
            self._refuse(table, releases, dict(zip(schema.names, schema.types, strict=True)))
            actions = actions or self._uploaded(release)
            with suppress(DeltaError, OSError):
                return self._committed(table, schema, actions, release)
            # Somebody came between, or the answer was lost: then the next look finds the commit.
            time.sleep(min(0.05 * 2**attempt, 2))
        raise EngineError(
            f"{self.asked.where} could not be committed to: others commit too often, or its store does not answer. Run "
            "the same run id again."
        )

    def _opened(self) -> DeltaTable | None:
        if not self.location.remote and Path(self.location.path).is_file():
            raise self.asked.fault("is a file; name a directory that is empty or not there, or a Delta table.")
        return opened_delta(self.asked, self.location) if is_delta(self.asked, self.location) else None

    def _refuse(
        self,
        table: DeltaTable | None,
        releases: Callable[[], Iterable[str]],
        columns: Mapping[str, pa.DataType | None],
    ) -> None:
        for name, kind in columns.items():
            if kind is not None and not known(kind):
                raise self.asked.fault(
                    f"cannot have column '{name}' of type {kind}; drop it, or cast it when it is read."
                )
        if table is None:
            self._refuse_other_files()
            return
        self._refuse_other_rows(table, releases)
        self._refuse_what_breaks(table)
        self._refuse_other_columns(table, columns)

    def _uploaded(self, release: TableRelease) -> list[AddAction]:
        from deltalake.transaction import AddAction

        store, actions = open_store(self.location), []
        for number, path in enumerate(release.files):
            name, rows = release.name_of(number), pq.read_metadata(path).num_rows
            store.upload(name, path)
            self._open_to_all(name)
            said = json.dumps({"numRecords": rows})
            values = {} if self.date_column is None else {self.date_column: release.date}
            actions.append(AddAction(name, path.stat().st_size, values, int(time.time() * 1000), True, said))
        return actions

    def _committed(
        self, table: DeltaTable | None, schema: pa.Schema, actions: Sequence[AddAction], release: TableRelease
    ) -> int:
        from deltalake import Schema
        from deltalake.transaction import create_table_with_add_actions

        properties, by = _properties(release), self.date_column
        if table is None:
            create_table_with_add_actions(
                str(self.location),
                Schema.from_arrow(schema if by is None else schema.append(pa.field(by, pa.date32()))),
                list(actions),
                mode="error",
                partition_by=[] if by is None else [by],
                commit_properties=properties,
            )
            self._open_to_all("_delta_log", *self._logged(0))
            return 0
        # All that the version held (of the date) is removed by the commit, and no other version is taken in its place.
        version = int(table.version()) + 1
        table.create_write_transaction(
            list(actions),
            "overwrite",
            table.schema(),
            partition_by=None if by is None else [by],
            partition_filters=None if by is None else [(by, "=", release.date)],
            commit_properties=properties,
        )
        self._open_to_all(*self._logged(version))
        return version

    def _logged(self, version: int) -> list[str]:
        """Files that a commit may have written: its own, and a checkpoint."""
        names = [entry.name for entry in Path(self.location.path, "_delta_log").glob("*checkpoint*")]
        return [f"_delta_log/{name}" for name in (f"{version:020}.json", *names)]

    def _open_to_all(self, *names: str) -> None:
        """Let everyone read what is written, as all that is released, whatever the umask says."""
        for name in () if self.location.remote else names:
            path = Path(self.location.path, name)
            with suppress(FileNotFoundError, PermissionError):  # another's checkpoint, or one that is gone
                path.chmod(_PUBLIC_DIRECTORY if path.is_dir() else _PUBLIC_FILE)

    def _refuse_other_files(self) -> None:
        others = [entry.name for entry in open_store(self.location).entries() if not _OURS.fullmatch(entry.name)]
        if others:
            raise self.asked.fault(
                f"holds files and is no Delta table ('{others[0]}'); name a directory that is empty or not there."
            )

    def _refuse_other_rows(self, table: DeltaTable, releases: Callable[[], Iterable[str]]) -> None:
        if table.file_uris() and not any(_has(table, digest) for digest in releases()):
            raise self.asked.fault(
                "holds rows, and no release of this output.path: a release would replace them. Name another directory, "
                "or delete the rows by a commit if they may go."
            )

    def _refuse_what_breaks(self, table: DeltaTable) -> None:
        protocol, metadata = table.protocol(), table.metadata()
        said = metadata.configuration
        reasons = {
            "it is partitioned otherwise": metadata.partition_columns
            != ([self.date_column] if self.date_column else []),
            "it has column mapping": said.get("delta.columnMapping.mode", "none") != "none",
            "it is append-only": said.get("delta.appendOnly", "false").lower() == "true",
            "it has constraints": any(key.startswith("delta.constraints.") for key in said),
            "it has columns that must not be missing, or that are computed": any(
                not field.nullable or field.metadata for field in table.schema().fields
            ),
        }
        reasons |= {f"it has the feature {name}": name not in _KNOWN for name in protocol.writer_features or ()}
        found = [reason for reason, applies in reasons.items() if applies]
        if found:
            raise self.asked.fault(
                f"cannot be replaced by a release: {found[0]}. Let the first release make the table."
            )

    def _refuse_other_columns(self, table: DeltaTable, columns: Mapping[str, pa.DataType | None]) -> None:
        has = {field.name: plain(field.type) for field in pa.schema(table.schema().to_arrow())}
        if self.date_column is not None:
            columns = {**columns, self.date_column: pa.date32()}
        for name, kind in columns.items():
            if name not in has:
                raise self._other_columns(f"lacks column '{name}' of the release")
            if kind is not None and kind != has[name]:
                raise self._other_columns(f"has column '{name}' as {has[name]}, and the release as {kind}")
        for name in has:
            if name not in columns:
                raise self._other_columns(f"has column '{name}', which the release lacks")

    def _other_columns(self, what: str) -> SchemaError:
        return self.asked.fault(f"{what}; name another directory, or change the table's columns first.")


def schema_of(file: Path) -> pa.Schema:
    """Return columns and types of a released Parquet file, as a table has them."""
    return pa.schema([pa.field(field.name, plain(field.type)) for field in pq.read_schema(file)])


def _application(digest: str) -> str:
    return f"privrisk:{digest}"


def _has(table: DeltaTable, digest: str) -> bool:
    return table.transaction_version(_application(digest)) is not None


def _properties(release: TableRelease) -> CommitProperties:
    from deltalake import CommitProperties, Transaction

    said = {"privrisk.run_id": release.run_id, "privrisk.release": release.digest}
    return CommitProperties(
        # The last is the one that Spark's connector shows in a table's history.
        custom_metadata={**said, "userMetadata": json.dumps(said)},
        # A commit that is tried again on another version would leave what that one added.
        max_commit_retries=0,
        app_transactions=[Transaction(_application(release.digest), 1)],
    )
