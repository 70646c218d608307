"""Releases in an Iceberg table of a catalog: a snapshot each, by the package pyiceberg."""

from __future__ import annotations

import datetime as dt
import itertools
import secrets
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from privrisk_spark.errors import EngineError, PrivriskError
from privrisk_spark.extras import require
from privrisk_spark.storage.lakes.footers import known, plain
from privrisk_spark.storage.lakes.iceberg import place_of
from privrisk_spark.storage.lakes.release_table import CameBetween, ReleaseTable, TableRelease, open_to_all
from privrisk_spark.storage.locations import Location, is_remote
from privrisk_spark.storage.opening import open_store
from privrisk_spark.storage.table_files import ObjectFile

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.manifest import DataFile
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table, Transaction

__all__ = ["IcebergReleases"]

_FORMAT: Final = 2
_RUN: Final = "privrisk.run_id"
_RELEASE: Final = "privrisk.release"
"""Of a snapshot, the digest of its release; of the table that of the newest, which outlives its snapshot."""
_NAMES: Final = "schema.name-mapping.default"
_SMALL: Final = (pa.int8(), pa.int16())
_EPOCH: Final = dt.date(1970, 1, 1)


@dataclass(frozen=True)
class _Copied:
    """Files of a release in the table's place, and a transaction on what was looked at."""

    transaction: Transaction
    paths: tuple[str, ...]
    attempt: str


@dataclass(frozen=True)
class IcebergReleases(ReleaseTable["Table", _Copied]):
    """An Iceberg table that a catalog of pyiceberg's configuration names."""

    @property
    def location(self) -> Location:
        """Where the table lies, or will."""
        table = self._opened()
        return self._future() if table is None else self._place(str(table.location()))

    def _faults(self) -> tuple[type[Exception], ...]:
        return (Exception,)  # of any store, catalog and database

    def _catalog(self) -> tuple[Catalog, str]:
        require("pyiceberg", self.asked.where)
        from pyiceberg.catalog import load_catalog
        from pyiceberg.exceptions import NotInstalledError

        name, _, identifier = (self.asked.catalog or "").partition(".")
        try:
            return load_catalog(name), identifier
        except (ValueError, KeyError, NotInstalledError) as error:  # what it says may quote credentials
            raise self.asked.fault(
                f"cannot be opened ({type(error).__name__}): there is no catalog '{name}' in pyiceberg's configuration "
                "(~/.pyiceberg.yaml, PYICEBERG_CATALOG__…), or not all it needs."
            ) from None
        except Exception as error:
            raise self._away(error) from None

    def _opened(self) -> Table | None:
        catalog, identifier = self._catalog()
        from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

        try:
            return catalog.load_table(identifier)
        except (NoSuchTableError, NoSuchNamespaceError):
            return None
        except Exception as error:
            raise self._away(error) from None

    def _away(self, error: Exception) -> EngineError:
        return EngineError(
            f"{self.asked.where} cannot be looked at ({type(error).__name__}): its catalog or its store does not "
            "answer, or its metadata are damaged. Run the same run id again."
        )

    def _place(self, path: str) -> Location:
        found = place_of(self.asked, f"{path.rstrip('/')}/x", 0)
        if isinstance(found, ObjectFile):
            return found.root
        if any(mark in path for mark in "?#"):
            raise self.asked.fault("lies in a directory with '?' or '#' in its name, which pyiceberg cuts off there.")
        return Location("file", "", str(Path(found).parent.resolve()))

    def _has(self, table: Table, digest: str) -> bool:
        said = (snapshot.summary for snapshot in table.snapshots())
        return any(one is not None and one.additional_properties.get(_RELEASE) == digest for one in said) or any(
            key.startswith(_RELEASE) and value == digest for key, value in table.properties.items()
        )

    def _refuse_place(self) -> None:
        self._future()

    def _future(self) -> Location:
        """Where the catalog would make the table."""
        catalog, identifier = self._catalog()
        from pyiceberg.exceptions import BadRequestError, ForbiddenError, TableAlreadyExistsError

        namespace = identifier.rpartition(".")[0]
        try:
            there = catalog.namespace_exists(namespace)
        except Exception as error:
            raise self._away(error) from None
        if not there:
            raise self.asked.fault(f"cannot be made: its catalog has no namespace '{namespace}'; make that first.")
        try:
            table = self._made(pa.schema([pa.field("any", pa.string())]), None)._table
        except PrivriskError:
            raise
        except TableAlreadyExistsError:  # since it was looked for
            return self.location
        except (ValueError, NotImplementedError, BadRequestError, ForbiddenError) as error:
            raise self.asked.fault(
                f"cannot be made ({type(error).__name__}): its catalog gives no place for a table (warehouse), or "
                "makes none; configure it, or another one."
            ) from None
        except Exception as error:
            raise self._away(error) from None
        return self._place(str(table.location()))

    def _files_of(self, table: Table, date: str | None = None) -> Iterator[str]:
        return (str(file.file_path) for file in self._files(table, date))

    def _reasons(self, table: Table) -> Iterator[str]:
        from pyiceberg.transforms import IdentityTransform

        if table.metadata.format_version != _FORMAT:
            yield f"it has format version {table.metadata.format_version}, and {_FORMAT} is written here"
            return
        schema, of_table = table.schema(), table.spec()
        by = [
            schema.find_column_name(one.source_id) if isinstance(one.transform, IdentityTransform) else None
            for one in of_table.fields
        ]
        files = list(self._files(table))
        if by != ([self.date_column] if self.date_column else []) or any(
            one.spec_id != of_table.spec_id for one in files
        ):
            yield "it is partitioned otherwise"
        if any(field.required for field in schema.fields):
            yield "it has columns that must not be missing"
        if any(one.content.value for one in files):
            yield "it has delete files"
        mapping = table.name_mapping()
        named = {} if mapping is None else {name: one.field_id for one in mapping.root for name in one.names}
        if any(named.get(field.name) != field.field_id for field in schema.fields):
            yield f"it does not map the names of files to its columns ({_NAMES})"

    def _columns(self, table: Table) -> Mapping[str, pa.DataType]:
        from pyiceberg.io.pyarrow import schema_to_pyarrow

        return {field.name: plain(field.type) for field in schema_to_pyarrow(table.schema())}

    def _kind_in_table(self, kind: pa.DataType) -> pa.DataType | None:
        if kind in _SMALL:
            return pa.int32()
        inner = [kind.field(i).type for i in range(kind.num_fields)]
        if pa.types.is_map(kind):
            inner = [kind.key_type, kind.item_type]
        # Without ids in the files fields in fields are not found, and Iceberg has no smaller integers.
        if pa.types.is_struct(kind) or any(one in _SMALL or self._kind_in_table(one) is None for one in inner):
            return None
        return kind if known(kind) else None

    def _uploaded(
        self, table: Table | None, schema: pa.Schema, release: TableRelease, before: _Copied | None
    ) -> _Copied:
        from pyiceberg.exceptions import TableAlreadyExistsError

        try:
            transaction = self._made(schema, self.date_column) if table is None else _begun(table)
            of = transaction._table
            places = of.location_provider()
            attempt = secrets.token_hex(4) if before is None else before.attempt

            def path_of(number: int) -> str:
                name = release.name_of(number)
                path = places.new_data_location(name)
                # A copy to a store that is stopped half-way is stored as far as it came. Of its own name, it does not
                # lie over the file that another attempt has committed.
                return places.new_data_location(f"{attempt}-{name}") if is_remote(path) else path

            paths = tuple(path_of(number) for number, _ in enumerate(release.files))
            if before is None or before.paths != paths:
                for path, file in zip(paths, release.files, strict=True):
                    self._copy(of, file, path)
        except PrivriskError:
            raise
        except TableAlreadyExistsError:
            raise CameBetween from None
        except Exception as error:
            raise self._away(error) from None
        return _Copied(transaction, paths, attempt)

    def _copy(self, table: Table, file: Path, path: str) -> None:
        above, _, name = path.rpartition("/")
        place = self._place(above)
        if not place.remote:
            # By a rename: another attempt's file of the name, which may be read already, stays whole.
            open_store(place).upload(name, file)
            open_to_all(Path(place.path, name))
            return
        with file.open("rb") as source, table.io.new_output(path).create(overwrite=True) as copy:
            shutil.copyfileobj(source, copy, 2**20)

    def _made(self, schema: pa.Schema, by: str | None) -> Transaction:
        """Begin to make the table: nobody sees it before the transaction is committed."""
        from pyiceberg.partitioning import PartitionField, PartitionSpec
        from pyiceberg.transforms import IdentityTransform

        catalog, identifier = self._catalog()
        fields = () if by is None else (PartitionField(len(schema) + 1, 1000, IdentityTransform(), by),)
        of = _numbered(schema if by is None else schema.append(pa.field(by, pa.date32())))
        return catalog.create_table_transaction(
            identifier, of, partition_spec=PartitionSpec(*fields), properties={"format-version": str(_FORMAT)}
        )

    def _committed(self, table: Table | None, schema: pa.Schema, uploaded: _Copied, release: TableRelease) -> int:
        del schema
        transaction = uploaded.transaction
        of = transaction._table
        said = {_RUN: release.run_id, _RELEASE: release.digest}
        marker = _RELEASE if self.date_column is None else f"{_RELEASE}.{release.date}"
        properties = {marker: release.digest}
        if table is None:
            properties[_NAMES] = of.schema().name_mapping.model_dump_json()
        transaction.set_properties(properties)
        before = [] if table is None else list(self._files(table, release.date))
        day = None if self.date_column is None else _day(release.date)
        with transaction.update_snapshot(snapshot_properties=said).overwrite() as update:
            for file in before:
                update.delete_data_file(file)
            for path, source in zip(uploaded.paths, release.files, strict=True):
                update.append_data_file(_data_file(path, source, day, of))
        transaction.commit_transaction()
        self._open(release.digest, uploaded.paths)
        return int(update.snapshot_id)

    def _files(self, table: Table, date: str | None = None) -> Iterator[DataFile]:
        """Its files; of one date only if it is given and each date has its rows."""
        snapshot = table.current_snapshot()
        day = None if self.date_column is None or date is None else _day(date)
        for manifest in () if snapshot is None else snapshot.manifests(table.io):
            for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
                if day is None or entry.data_file.partition[0] == day:
                    yield entry.data_file

    def _open(self, digest: str, copied: tuple[str, ...]) -> None:
        """Let everyone read what the commit has written on this machine."""
        table = self._opened()
        if table is None or self._place(str(table.location())).remote:
            return
        written = [str(table.metadata_location)]
        for snapshot in table.snapshots():
            if snapshot.summary is not None and snapshot.summary.additional_properties.get(_RELEASE) == digest:
                written += [snapshot.manifest_list, *(one.manifest_path for one in snapshot.manifests(table.io))]
        for path in written:
            file = place_of(self.asked, path, 0)
            if isinstance(file, str):
                open_to_all(Path(file), Path(file).parent)
        # Files of other commits may lie anywhere, as whoever made them wants it.
        for path in copied:
            file = place_of(self.asked, path, 0)
            if isinstance(file, str):
                open_to_all(Path(file).parent)


def _day(date: str) -> int:
    return (dt.date.fromisoformat(date) - _EPOCH).days


class _AsLookedAt:
    """A catalog that takes a commit only on the columns and the partitioning that were looked at."""

    def __init__(self, table: Table) -> None:
        self._catalog, self._metadata = table.catalog, table.metadata

    def __getattr__(self, name: str) -> Any:
        return getattr(self._catalog, name)

    def commit_table(self, table: Table, requirements: tuple[Any, ...], updates: tuple[Any, ...]) -> Any:
        from pyiceberg.table.update import AssertCurrentSchemaId, AssertDefaultSpecId

        more = (
            AssertCurrentSchemaId(current_schema_id=self._metadata.current_schema_id),
            AssertDefaultSpecId(default_spec_id=self._metadata.default_spec_id),
        )
        return self._catalog.commit_table(table, (*requirements, *more), updates)


def _begun(table: Table) -> Transaction:
    from pyiceberg.table import Table as Opened

    # A commit that is tried again on another snapshot would leave what that one added.
    properties = {**table.metadata.properties, "commit.retry.num-retries": "0"}
    metadata = table.metadata.model_copy(update={"properties": properties})
    catalog: Any = _AsLookedAt(table)
    return Opened(table.name(), metadata, table.metadata_location, table.io, catalog, table.config).transaction()


def _numbered(schema: pa.Schema) -> Schema:
    """Return the schema of a new table; columns have the first numbers."""
    from pyiceberg.io.pyarrow import pyarrow_to_schema

    inner = itertools.count(len(schema) + 1)

    def of(field: pa.Field, number: int) -> pa.Field:
        kind = field.type
        if pa.types.is_list(kind):
            kind = pa.list_(of(kind.value_field, next(inner)))
        elif pa.types.is_map(kind):
            kind = pa.map_(of(kind.key_field, next(inner)), of(kind.item_field, next(inner)))
        return pa.field(field.name, kind, field.nullable, {"PARQUET:field_id": str(number)})

    return pyarrow_to_schema(pa.schema([of(field, number) for number, field in enumerate(schema, 1)]))


def _data_file(path: str, source: Path, day: int | None, table: Table) -> DataFile:
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
    from pyiceberg.typedef import Record

    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=Record() if day is None else Record(day),
        record_count=pq.read_metadata(source).num_rows,
        file_size_in_bytes=source.stat().st_size,
        spec_id=table.spec().spec_id,
    )
