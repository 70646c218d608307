"""Releases in a Delta table: an application transaction each, by the package deltalake."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq

from privrisk_spark.storage.lakes.delta import is_delta, opened_delta
from privrisk_spark.storage.lakes.footers import plain
from privrisk_spark.storage.lakes.release_table import OF_RELEASE, ReleaseTable, TableRelease, open_to_all
from privrisk_spark.storage.locations import Location, locate
from privrisk_spark.storage.opening import open_store

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable
    from deltalake.transaction import AddAction

__all__ = ["DeltaReleases"]

_KNOWN: Final = {"appendOnly", "deletionVectors", "invariants", "timestampNtz", "vacuumProtocolCheck", "v2Checkpoint"}
"""Features of a writer that files which are there already can be added under."""


@dataclass(frozen=True)
class DeltaReleases(ReleaseTable["DeltaTable", "list[AddAction]"]):
    """A Delta table in a directory or below a prefix of an object store."""

    @property
    def location(self) -> Location:
        """Where the table lies, or will."""
        return locate(self.asked.path or "", key=self.key)

    def _faults(self) -> tuple[type[Exception], ...]:
        from deltalake.exceptions import DeltaError

        return DeltaError, OSError

    def _opened(self) -> DeltaTable | None:
        location = self.location
        if not location.remote and Path(location.path).is_file():
            raise self.asked.fault("is a file; name a directory that is empty or not there, or a Delta table.")
        return opened_delta(self.asked, location) if is_delta(self.asked, location) else None

    def _has(self, table: DeltaTable, digest: str) -> bool:
        return table.transaction_version(_application(digest)) is not None

    def _uploaded(
        self, table: DeltaTable | None, schema: pa.Schema, release: TableRelease, before: list[AddAction] | None
    ) -> list[AddAction]:
        from deltalake.transaction import AddAction

        del table, schema
        if before is not None:
            return before
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
        self, table: DeltaTable | None, schema: pa.Schema, uploaded: list[AddAction], release: TableRelease
    ) -> int:
        from deltalake import Schema
        from deltalake.transaction import create_table_with_add_actions

        properties, by = _properties(release), self.date_column
        if table is None:
            create_table_with_add_actions(
                str(self.location),
                Schema.from_arrow(schema if by is None else schema.append(pa.field(by, pa.date32()))),
                uploaded,
                mode="error",
                partition_by=[] if by is None else [by],
                commit_properties=properties,
            )
            self._open_to_all("_delta_log", *self._logged(0))
            return 0
        # All that the version held (of the date) is removed by the commit, and no other version is taken in its place.
        version = int(table.version()) + 1
        table.create_write_transaction(
            [*uploaded],
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
        if not self.location.remote:
            open_to_all(*(Path(self.location.path, name) for name in names))

    def _refuse_place(self) -> None:
        others = [entry.name for entry in open_store(self.location).entries() if not OF_RELEASE.fullmatch(entry.name)]
        if others:
            raise self.asked.fault(
                f"holds files and is no Delta table ('{others[0]}'); name a directory that is empty or not there."
            )

    def _files_of(self, table: DeltaTable, date: str | None = None) -> Iterable[str]:
        by = self.date_column
        if by is None or date is None:
            return table.file_uris()
        actions = pa.table(table.get_add_actions(flatten=False)).to_pylist()
        return [action["path"] for action in actions if str((action.get("partition") or {}).get(by)) == date]

    def _reasons(self, table: DeltaTable) -> Iterable[str]:
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
        return [reason for reason, applies in reasons.items() if applies]

    def _columns(self, table: DeltaTable) -> Mapping[str, pa.DataType]:
        return {field.name: plain(field.type) for field in pa.schema(table.schema().to_arrow())}

    def _kind_in_table(self, kind: pa.DataType) -> pa.DataType | None:
        return kind


def _application(digest: str) -> str:
    return f"privrisk:{digest}"


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
