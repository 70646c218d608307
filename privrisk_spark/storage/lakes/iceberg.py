"""Iceberg tables: a snapshot as a list of Parquet files, by the package pyiceberg."""

from __future__ import annotations

import datetime as dt
import os
import zlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from privrisk_spark.errors import InputError
from privrisk_spark.extras import require
from privrisk_spark.storage.lakes.footers import FIELD_ID, Listed, Names, data_files, plain
from privrisk_spark.storage.lakes.snapshot import Asked, Pin, Places, Snapshot, Value
from privrisk_spark.storage.locations import Location, is_remote, locate
from privrisk_spark.storage.opening import open_store
from privrisk_spark.storage.table_files import ObjectFile

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot as OfTable

__all__ = ["open_iceberg", "place_of"]

_NEWEST_FORMAT = 3
_APPLIED = (
    "CALL CATALOG.system.rewrite_data_files(table => 'TABLE', options => map('delete-file-threshold', '1')), then "
    "CALL CATALOG.system.rewrite_position_delete_files(table => 'TABLE', options => map('rewrite-all', 'true'))"
)
"""Two statements of Iceberg's connector: the first leaves delete files behind that nothing needs, and the second drops
them."""

_BY_SPARK = "read the table by Spark with Iceberg's connector (table.catalog without table.format)"

_SETTINGS = {
    "AWS_ENDPOINT_URL": "s3.endpoint",
    "AWS_ACCESS_KEY_ID": "s3.access-key-id",
    "AWS_SECRET_ACCESS_KEY": "s3.secret-access-key",
    "AWS_SESSION_TOKEN": "s3.session-token",
    "AWS_REGION": "s3.region",
}
"""What other readers of object stores take from the environment, and its name here."""


def open_iceberg(asked: Asked, pin: Pin | None = None) -> Snapshot:
    """Open a snapshot of a table.

    Parameters
    ----------
    pin : Pin, optional
        The snapshot to open instead of the one that is asked for.

    Raises
    ------
    SchemaError
        If there is no such snapshot, or reading plain files would misread it.
    """
    table = _opened(asked)
    identity = str(table.metadata.table_uuid)
    if pin is not None and pin.table != identity:
        raise asked.fault("is another table than the one this run id began to read; use a new run id.")
    if table.metadata.format_version > _NEWEST_FORMAT:
        raise asked.fault(
            f"cannot be read as iceberg: it has format version {table.metadata.format_version}, and {_NEWEST_FORMAT} "
            f"is the newest that is read here; {_BY_SPARK}."
        )
    snapshot = _snapshot(asked, table, pin)
    of_table = _schema(asked, table, snapshot, pin)
    with_ids = _arrow(of_table)
    schema = pa.schema([pa.field(field.name, plain(field.type)) for field in with_ids])
    files = data_files(
        asked,
        schema,
        _listed(asked, table, of_table, snapshot),
        _by_id(table, of_table, with_ids),
        values_first=False,
        widened=_widened,
    )
    committed = dt.datetime.fromtimestamp(snapshot.timestamp_ms / 1000, dt.UTC).isoformat()
    location = locate(table.location(), key=f"{asked.key}.path")
    root = None if location.remote else Path(location.path)
    return Snapshot("iceberg", Pin(snapshot.snapshot_id, identity, of_table.schema_id), committed, schema, files, root)


def _opened(asked: Asked) -> Table:
    require("pyiceberg", asked.where)
    from pyiceberg.catalog import load_catalog
    from pyiceberg.exceptions import NoSuchTableError
    from pyiceberg.table import StaticTable

    try:
        if asked.catalog is not None:
            name, _, identifier = asked.catalog.partition(".")
            return load_catalog(name).load_table(identifier)
        location = locate(asked.path or "", key=f"{asked.key}.path")
        place = str(location)
        given = {name: os.environ[variable] for variable, name in _SETTINGS.items() if variable in os.environ}
        if not place.endswith(".json"):
            place += _compressed_metadata(location)
        return StaticTable.from_metadata(place, given if location.remote else {})
    except InputError:
        raise
    except Exception as error:  # of any store, catalog and database; what they say may quote credentials
        how = (
            "there is no such table in a catalog of this name in pyiceberg's configuration"
            if asked.catalog is not None
            else "there is no metadata of a table: name its newest …/metadata/….metadata.json, or a directory whose "
            "metadata/version-hint.text names it"
        )
        kind = asked.absent if isinstance(error, FileNotFoundError | NoSuchTableError) else asked.fault
        raise kind(f"cannot be read as iceberg ({type(error).__name__}): {how}.") from None


def _compressed_metadata(location: Location) -> str:
    """Return the newest metadata below a table's directory if it is compressed, which pyiceberg does not look for."""
    store = open_store(location)
    try:
        newest = store.read("metadata/version-hint.text").content.decode().strip()
    except FileNotFoundError:
        return ""
    name = f"metadata/v{newest}.gz.metadata.json"
    return "" if store.find(name) is None else f"/{name}"


def _snapshot(asked: Asked, table: Table, pin: Pin | None) -> OfTable:
    number = asked.snapshot if pin is None else pin.version
    if number is not None:
        found = table.snapshot_by_id(number)
        if found is None:
            raise asked.absent(f"has no snapshot {number} any more, or not yet.")
        return found
    if asked.timestamp is not None:
        moment = asked.timestamp
        if moment > dt.datetime.now(dt.UTC):
            raise asked.absent(
                f"has no snapshot at {moment.isoformat()} yet; {asked.key}.timestamp lies in the future."
            )
        found = table.snapshot_as_of_timestamp(int(moment.timestamp() * 1000))
        if found is None:
            raise asked.fault(f"has no snapshot as old as {asked.key}.timestamp {moment.isoformat()} any more.")
        return found
    found = table.current_snapshot()
    if found is None:
        raise asked.absent("has no snapshot: nothing was ever written to it.")
    return found


def _schema(asked: Asked, table: Table, snapshot: OfTable, pin: Pin | None) -> Schema:
    """Return the schema of now for the newest snapshot, and that of the time for one that is named."""
    named = asked.snapshot is not None or asked.timestamp is not None
    number = snapshot.schema_id if named else table.metadata.current_schema_id
    if pin is not None and pin.schema is not None:
        number = pin.schema
    found = table.schemas()
    return found.get(table.metadata.current_schema_id if number is None else number) or table.schema()


def _arrow(schema: Schema) -> pa.Schema:
    from pyiceberg.io.pyarrow import schema_to_pyarrow

    return schema_to_pyarrow(schema)


def _listed(asked: Asked, table: Table, schema: Schema, snapshot: OfTable) -> list[Listed]:
    from pyiceberg.manifest import DataFileContent, ManifestContent

    found, deletes = [], False
    defaults = {field.name: _value(field.initial_default, field.field_type) for field in schema.fields}
    within = set(schema.field_ids) - {field.field_id for field in schema.fields}
    for field in (schema.find_field(number) for number in sorted(within)):
        if field.initial_default is not None:
            raise asked.fault(
                f"cannot be read as iceberg: '{schema.find_column_name(field.field_id)}' is a field in a column and "
                f"has a default; {_BY_SPARK}."
            )
    for manifest in snapshot.manifests(table.io):
        entries = manifest.fetch_manifest_entry(table.io, discard_deleted=True)
        of_deletes = manifest.content == ManifestContent.DELETES
        kind = DataFileContent.POSITION_DELETES if of_deletes else DataFileContent.DATA
        for entry in entries:
            file = entry.data_file
            if file.content != kind:
                raise asked.fault(
                    f"cannot be read as iceberg: rows of snapshot {snapshot.snapshot_id} are deleted by the values of "
                    "columns (equality deletes), which are not read here; apply them to the data files by "
                    f"{_APPLIED}, or {_BY_SPARK}."
                )
            if of_deletes:
                deletes = True
                continue
            if file.file_format.value.upper() != "PARQUET":
                raise asked.fault(
                    f"cannot be read as iceberg: it has files of the format {file.file_format.value}, and parquet is "
                    f"read here; {_BY_SPARK}."
                )
            if getattr(file, "key_metadata", None):
                raise asked.fault(f"cannot be read as iceberg: its files are encrypted; {_BY_SPARK}.")
            values = defaults | _identities(table, schema, file)
            place = place_of(asked, str(file.file_path), int(file.file_size_in_bytes))
            found.append((file.file_path, Listed(place, int(file.file_size_in_bytes), int(file.record_count), values)))
    lost = _deleted(asked, table, snapshot) if deletes else {}
    listed = [replace(one, deleted=lost.get(path)) for path, one in found]
    return sorted(listed, key=lambda one: one.file if isinstance(one.file, str) else str(one.file.path))


def _deleted(asked: Asked, table: Table, snapshot: OfTable) -> dict[str, Places]:
    """Return the places of rows that delete files and deletion vectors name, by the path of each data file."""
    # Nothing public reads them but together with the rows, in the driver.
    from pyiceberg.io.pyarrow import _read_deletes

    tasks = list(table.scan(snapshot_id=snapshot.snapshot_id).plan_files())
    files = {one.file_path: one for task in tasks for one in task.delete_files}
    vectors = {path for path, one in files.items() if one.file_format.value.upper() == "PUFFIN"}
    found = {}
    try:
        for path in vectors:
            _check_vectors(table, path)
        read = {path: _read_deletes(table.io, one) for path, one in files.items()}
        for task in tasks:
            path = task.file.file_path
            # A file of positions may be of other data files; a vector is of the one that its manifest names.
            named = [read[one.file_path] for one in task.delete_files if one.file_path in vectors]
            if not all(path in places for places in named):
                raise ValueError("A deletion vector is of another file.")
            places = [read[one.file_path][path] for one in task.delete_files if path in read[one.file_path]]
            if places:
                found[path] = np.unique(np.concatenate([one.to_numpy() for one in places]))
    except (ValueError, OSError, pa.ArrowException):
        raise asked.fault("cannot be read as iceberg: a delete file is damaged or gone; restore it.") from None
    return found


def _check_vectors(table: Table, path: str) -> None:
    """Compare the deletion vectors of a file with their checksums, which pyiceberg skips; ValueError if one differs."""
    from pyiceberg.table.puffin import PuffinFile

    with table.io.new_input(path).open() as stream:
        file = PuffinFile(stream.read())
    for blob in file.footer.blobs:
        # Four bytes of length, what is summed, and four bytes of its CRC-32.
        content = file.get_blob_payload(blob)
        if zlib.crc32(content[4:-4]) != int.from_bytes(content[-4:], "big"):
            raise ValueError("The checksum of a deletion vector differs.")


def place_of(asked: Asked, path: str, size: int) -> str | ObjectFile:
    """Where a file is; paths of Iceberg are as they are, without escapes."""
    if is_remote(path):
        above, _, name = path.rpartition("/")
        return ObjectFile(locate(above, key=f"{asked.key}.path"), name, size)
    scheme, colon, rest = path.partition(":")
    if not colon or "/" in scheme:
        return path
    if scheme != "file":
        locate(path, key=f"{asked.key}.path")  # raises: a file system that is not available
    return "/" + rest.lstrip("/")


def _identities(table: Table, schema: Schema, file: DataFile) -> dict[str, Value]:
    """Values of the columns a file was partitioned by as they are: one that was added from elsewhere may lack them."""
    from pyiceberg.transforms import IdentityTransform

    names = {field.field_id: field for field in schema.fields}
    spec = table.specs()[file.spec_id]
    found = {}
    for i, partition in enumerate(spec.fields):
        field = names.get(partition.source_id)
        if field is not None and isinstance(partition.transform, IdentityTransform):
            found[field.name] = _value(file.partition[i], field.field_type)
    return found


def _value(value: Any, kind: Any) -> Value:
    from pyiceberg.types import DateType, TimestampType, TimestamptzType

    if isinstance(value, int) and isinstance(kind, DateType):
        return dt.date(1970, 1, 1) + dt.timedelta(days=value)
    if isinstance(value, int) and isinstance(kind, TimestampType | TimestamptzType):
        zone = dt.UTC if isinstance(kind, TimestamptzType) else None
        return dt.datetime(1970, 1, 1, tzinfo=zone) + dt.timedelta(microseconds=value)
    found: Value = value
    return found


def _by_id(table: Table, schema: Schema, with_ids: pa.Schema) -> Names:
    """Columns by the ids the table gave them, so that renamed and swapped ones are found."""
    ids = {field.field_id: field.name for field in schema.fields}
    mapping = table.name_mapping()
    mapped: dict[str, int] = {}
    for one in mapping.root if mapping is not None else ():
        mapped |= {name: one.field_id for name in one.names if one.field_id is not None}

    def names(of_file: pa.Schema) -> dict[str, str]:
        own = {field.name: _id(field) for field in of_file}
        if any(number is not None for number in own.values()):
            found = _matched(own, ids)
            for column, name in found.items():
                if not _same_ids(of_file.field(name), with_ids.field(column)):
                    raise ValueError(f"has column '{column}' with other fields in it than the table")
            return found
        if mapping is None:
            raise ValueError(
                "has no ids of columns, and the table has no mapping of names (schema.name-mapping.default)"
            )
        found = _matched({name: mapped.get(name) for name in of_file.names}, ids)
        for column, name in found.items():
            if _holds_fields(of_file.field(name).type):
                raise ValueError(f"has column '{column}' with fields in it, and no ids of them")
        return found

    return names


def _matched(of_file: dict[str, int | None], of_table: dict[int, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, number in of_file.items():
        column = None if number is None else of_table.get(number)
        if column is not None:
            if column in found:
                raise ValueError(f"has two columns for '{column}'")
            found[column] = name
    return found


def _id(field: pa.Field) -> int | None:
    said = (field.metadata or {}).get(FIELD_ID)
    return None if said is None or int(said) < 0 else int(said)


def _inner(kind: pa.DataType) -> list[pa.Field]:
    if pa.types.is_struct(kind):
        return list(kind)
    if pa.types.is_map(kind):
        return [kind.key_field, kind.item_field]
    return [kind.value_field] if pa.types.is_list(kind) or pa.types.is_large_list(kind) else []


def _same_ids(has: pa.Field, wanted: pa.Field) -> bool:
    """Return True if fields of one name have one id; a structure in a file may lack fields that were added later."""
    one, other = _inner(has.type), _inner(wanted.type)
    if pa.types.is_struct(has.type) and pa.types.is_struct(wanted.type):
        mine, ids = {field.name: field for field in one}, {_id(field) for field in one} - {None}
        fits = all(
            _same_ids(mine[field.name], field) if field.name in mine else _id(field) not in ids for field in other
        )
    else:
        fits = len(one) == len(other) and all(map(_same_ids, one, other))
    return _id(has) == _id(wanted) and fits


def _holds_fields(kind: pa.DataType) -> bool:
    return bool(pa.types.is_struct(kind)) or any(_holds_fields(field.type) for field in _inner(kind))


def _widened(has: pa.DataType, wanted: pa.DataType) -> bool:
    """Return True if Iceberg lets a type become the table's; a structure may have more fields then."""
    if has == wanted:
        return True
    if pa.types.is_struct(has) and pa.types.is_struct(wanted):
        return all(_widened(has.field(of.name).type, of.type) for of in wanted if has.get_field_index(of.name) >= 0)
    inner = (_inner(has), _inner(wanted))
    if all(inner) and has.id == wanted.id:
        return all(_widened(a.type, b.type) for a, b in zip(*inner, strict=True))
    if pa.types.is_decimal128(has) and pa.types.is_decimal128(wanted):
        return bool(has.scale == wanted.scale and has.precision <= wanted.precision)
    if has in (pa.int8(), pa.int16()):  # Iceberg's smallest integers have 32 bits
        return wanted in (pa.int32(), pa.int64())
    return (has, wanted) in ((pa.int32(), pa.int64()), (pa.float32(), pa.float64()))
