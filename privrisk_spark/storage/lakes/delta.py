"""Delta tables: a version of the log as a list of Parquet files, by the package deltalake."""

from __future__ import annotations

import datetime as dt
import itertools
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from privrisk_spark.errors import EngineError, listing
from privrisk_spark.extras import require
from privrisk_spark.storage.lakes.footers import FIELD_ID, Listed, Names, data_files, plain
from privrisk_spark.storage.lakes.snapshot import Asked, Pin, Places, Snapshot
from privrisk_spark.storage.locations import Location, is_remote, locate
from privrisk_spark.storage.opening import open_store
from privrisk_spark.storage.store import Entry, Store
from privrisk_spark.storage.table_files import ObjectFile

if TYPE_CHECKING:
    from deltalake import DeltaTable

__all__ = ["is_delta", "open_delta", "opened_delta"]

_KNOWN = {
    "columnMapping", "deletionVectors", "timestampNtz", "typeWidening", "v2Checkpoint", "vacuumProtocolCheck",
}  # fmt: skip
"""Features of the reader that are known."""

_PHYSICAL, _COLUMN_ID = "delta.columnMapping.physicalName", "delta.columnMapping.id"

_SQL_TYPE = "__CHAR_VARCHAR_TYPE_STRING"
"""Where Spark notes a type of texts with a length."""

_OFFSET = re.compile(r"(Z|[+-][0-9]{2}:?[0-9]{2})$")

_UNTOLD = "its log does not tell the partition of every file by values of the columns' types"
_BY_SPARK = "read it by Spark with Delta's connector (table.catalog), or write it anew without"


def open_delta(asked: Asked, pin: Pin | None = None) -> Snapshot:
    """Open a version of a table.

    Parameters
    ----------
    pin : Pin, optional
        The version to open instead of the one that is asked for.

    Raises
    ------
    SchemaError
        If there is no such version, or reading plain files would misread it.
    """
    location = locate(asked.path or "", key=f"{asked.key}.path")
    table = opened_delta(asked, location)
    identity = str(table.metadata().id)
    if pin is not None and pin.table != identity:
        raise asked.fault("is another table than the one this run id began to read; use a new run id.")
    version = asked.version if pin is None else pin.version
    if version is None and asked.timestamp is not None:
        version = _version_at(asked, _moments(location), asked.timestamp)
    if version is not None and version != table.version():
        table = opened_delta(asked, location, version)
    version = int(table.version())
    _refuse_unreadable(asked, table)
    schema = pa.schema([pa.field(field.name, plain(field.type)) for field in pa.schema(table.schema().to_arrow())])
    files = data_files(
        asked,
        schema,
        _listed(asked, table, location),
        _names(asked, table, schema),
        values_first=True,
        widened=_widened if "typeWidening" in _features(table) else None,
    )
    committed = _committed(location, version)
    root = None if location.remote else Path(location.path)
    return Snapshot("delta", Pin(version, identity), committed, schema, files, root)


def is_delta(asked: Asked, location: Location) -> bool:
    """Tell whether there is a Delta table at a place.

    Parameters
    ----------
    asked : Asked
        For messages.

    Raises
    ------
    EngineError
        If the place cannot be reached.
    InputError
        If the package deltalake is not installed.
    """
    require("deltalake", asked.where)
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

    try:
        return bool(DeltaTable.is_deltatable(str(location)))
    except (DeltaError, OSError, ValueError):
        raise EngineError(
            f"{asked.where} cannot be looked at: its store cannot be reached with the settings in the environment."
        ) from None


def opened_delta(asked: Asked, location: Location, version: int | None = None) -> DeltaTable:
    """Return a table of the package deltalake, at a version or at its newest.

    Parameters
    ----------
    asked : Asked
        For messages.

    Raises
    ------
    SchemaError
        If there is no such table or version, or the package does not know how to read it.
    InputError
        If the package is not installed.
    """
    require("deltalake", asked.where)
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError, TableNotFoundError

    try:
        return DeltaTable(str(location), version=version)
    except TableNotFoundError:
        raise asked.absent("cannot be read as delta: there is no such table.") from None
    except (DeltaError, OSError, ValueError) as error:
        # What the library says may quote an address with a token in it: only names of features are repeated.
        said = str(error)
        kind = re.search(r"[Ff]ailed to parse value '.*' as '([a-z]+(?:\([0-9, ]+\))?)'", said, re.DOTALL)
        why = _reason(said, version) if kind is None else _misread(location, kind[1])
        fault = asked.absent if why == _no_version(version) else asked.fault
        raise fault(f"cannot be read as delta: {why}.") from None


def _no_version(version: int | None) -> str:
    return f"its log has no version {version} any more, or not yet"


def _misread(location: Location, kind: str) -> str:
    """Say which partition columns of a type the log has a value for that is none of the type."""
    columns: list[str] = []
    store = open_store(location)
    for name in sorted(entry.name for entry in store.entries("_delta_log") if _COMMIT.fullmatch(entry.name)):
        for said in map(json.loads, store.read(name).content.splitlines()):
            if "metaData" in said:  # the last one holds
                fields = {one["name"]: one["type"] for one in json.loads(said["metaData"]["schemaString"])["fields"]}
                columns = [column for column in said["metaData"]["partitionColumns"] if fields.get(column) == kind]
    where = f"the partition column {listing([repr(name) for name in columns])}" if columns else "a partition column"
    rule = "; a decimal has as many digits after its point as its scale" if kind.startswith("decimal") else ""
    fix = "write the table anew, or read it by Spark with Delta's connector (table.catalog)"
    return f"its log has a value of {where} that is not written as {kind}{rule}. Fix: {fix}"


def _reason(said: str, version: int | None) -> str:
    feature = re.search(r"Feature '(\w+)' is not supported", said)
    reader = re.search(r"[Uu]nsupported minimum reader version (\d+)", said)
    if feature is not None:
        return f"it has the feature {feature[1]}, which is not read here; {_BY_SPARK} it"
    if reader is not None:
        return f"it needs reader version {reader[1]}, which is not known here; {_BY_SPARK} what needs it"
    if "column mapping" in said.lower():
        return f"it has column mapping, which is not read here; {_BY_SPARK} it"
    if version is not None:
        return _no_version(version)
    return "its log is damaged, or its store cannot be reached with the settings in the environment"


_COMMIT = re.compile(r"_delta_log/([0-9]{20})\.json")


def _moments(location: Location) -> dict[int, float]:
    """When each version was committed that the log still tells of, in milliseconds since 1970.

    The package's own history counts versions from the wrong end for a table that is not opened at its newest version.
    """
    store = open_store(location)
    found = ((_COMMIT.fullmatch(entry.name), entry) for entry in store.entries("_delta_log"))
    return {int(match[1]): _moment(store, entry) for match, entry in found if match is not None}


def _committed(location: Location, version: int) -> str | None:
    store, name = open_store(location), f"_delta_log/{version:020}.json"
    entry = next((one for one in store.entries("_delta_log") if one.name == name), None)
    return None if entry is None else dt.datetime.fromtimestamp(_moment(store, entry) / 1000, dt.UTC).isoformat()


def _moment(store: Store, entry: Entry) -> float:
    """What the commit says of itself; where it says nothing, when its file was written."""
    for line in store.read(entry.name).content.splitlines():
        said = json.loads(line).get("commitInfo") or {}
        for name in ("inCommitTimestamp", "timestamp"):
            if isinstance(said.get(name), int):
                return float(said[name])
    return entry.modified * 1000


def _version_at(asked: Asked, moments: dict[int, float], moment: dt.datetime) -> int:
    if moment > dt.datetime.now(dt.UTC):
        raise asked.absent(f"has no version at {moment.isoformat()} yet; {asked.key}.timestamp lies in the future.")
    # Clocks of writers may differ: a version is no older than the ones before it.
    versions = sorted(moments)
    moved = itertools.accumulate((moments[version] for version in versions), max)
    found = [version for version, at in zip(versions, moved, strict=True) if at <= moment.timestamp() * 1000]
    if not found:
        raise asked.fault(f"has no version as old as {asked.key}.timestamp {moment.isoformat()} in its log any more.")
    return found[-1]


def _refuse_unreadable(asked: Asked, table: DeltaTable) -> None:
    protocol = table.protocol()
    if protocol.min_reader_version > 3:
        raise asked.fault(f"cannot be read as delta: {_reason(_unsupported(protocol.min_reader_version), None)}.")
    unknown = sorted(_features(table) - _KNOWN)
    if unknown:
        raise asked.fault(
            f"cannot be read as delta: it has the feature {unknown[0]}, which is not read here; {_BY_SPARK} it."
        )
    for field in table.schema().fields:
        said = str(field.metadata.get(_SQL_TYPE, ""))
        if re.search(r"\bchar\(", said, re.IGNORECASE):
            raise asked.fault(
                f"cannot be read as delta: column '{field.name}' is of type {said}, which Spark fills up with blanks "
                f"when it reads; {_BY_SPARK} this type."
            )


def _features(table: DeltaTable) -> set[str]:
    """Return the features that a reader of a table has to know."""
    return {name.removesuffix("-preview") for name in table.protocol().reader_features or ()}


def _unsupported(version: int) -> str:
    return f"unsupported minimum reader version {version}"


def _names(asked: Asked, table: DeltaTable, schema: pa.Schema) -> Names:
    """Return how columns of files are found: by their names, or by column mapping's physical names or ids."""
    mode = table.metadata().configuration.get("delta.columnMapping.mode", "none")
    if mode == "none":
        return lambda of_file: _by_name({name: name for name in schema.names}, of_file)
    for field in pa.schema(table.schema().to_arrow()):
        if pa.types.is_nested(field.type):
            raise asked.fault(
                f"cannot be read as delta: it has column mapping and the column '{field.name}' of type {field.type}, "
                f"whose fields have other names in files; {_BY_SPARK} this column."
            )
    fields = {field.name: field.metadata for field in table.schema().fields}
    if mode == "id":
        ids = {int(said[_COLUMN_ID]): name for name, said in fields.items()}
        return lambda of_file: _by_id(ids, of_file)
    physical = {name: str(said.get(_PHYSICAL, name)) for name, said in fields.items()}
    return lambda of_file: _by_name(physical, of_file)


def _deleted(asked: Asked, table: DeltaTable, location: Location) -> dict[str, Places]:
    """Return the places of deleted rows by the place of each file that has some."""
    from deltalake.exceptions import DeltaError

    if "deletionVectors" not in _features(table):
        return {}
    try:
        vectors = pa.table(table.deletion_vectors())
    except DeltaError:
        raise asked.fault("cannot be read as delta: a deletion vector is damaged or gone; restore it.") from None
    places = (_place(_file(asked, location, path, 0)) for path in vectors["filepath"].to_pylist())
    lost = (np.flatnonzero(pc.invert(vector.values)) for vector in vectors["selection_vector"])
    return dict(zip(places, lost, strict=True))


def _place(file: str | ObjectFile) -> str:
    return file if isinstance(file, str) else str(file.root.below(file.key))


def _widened(has: pa.DataType, wanted: pa.DataType) -> bool:
    """Return True if Delta lets a type become the table's."""
    if pa.types.is_integer(has):
        if pa.types.is_decimal(wanted):
            return bool(wanted.precision - wanted.scale >= (20 if has == pa.int64() else 10))
        wider = pa.types.is_integer(wanted) and wanted.bit_width > has.bit_width
        return bool(wider or (wanted == pa.float64() and has.bit_width <= 32))
    if pa.types.is_decimal128(has) and pa.types.is_decimal128(wanted):
        whole = wanted.precision - wanted.scale >= has.precision - has.scale
        return bool(whole and wanted.scale >= has.scale)
    return (has, wanted) in ((pa.float32(), pa.float64()), (pa.date32(), pa.timestamp("us")))


def _listed(asked: Asked, table: DeltaTable, location: Location) -> list[Listed]:
    from deltalake.exceptions import DeltaError

    partitions, schema = table.metadata().partition_columns, pa.schema(table.schema().to_arrow())
    for name in partitions:
        if pa.types.is_binary(plain(schema.field(name).type)):
            raise asked.fault(f"cannot be read as delta: it is partitioned by column '{name}' of type binary.")
    untold = asked.fault(f"cannot be read as delta: {_UNTOLD}.")
    try:
        actions = pa.table(table.get_add_actions(flatten=False)).to_pylist()
        local = _local_times(table, [name for name in partitions if _zoned(schema.field(name).type)])
    except (DeltaError, OverflowError, ValueError):  # a value that is none of its column's type, or no date of Python's
        raise untold from None
    deleted = _deleted(asked, table, location)
    found = []
    for action in actions:
        values: dict[str, Any] = action.get("partition") or {}
        if set(values) != set(partitions):
            raise untold
        file = _file(asked, location, action["path"], int(action["size_bytes"]))
        without = next((name for name, times in local.items() if values[name] in times), None)
        lost = deleted.pop(_place(file), None)
        found.append(Listed(file, int(action["size_bytes"]), action.get("num_records"), values, without, lost))
    if deleted:  # their rows must not be read
        raise asked.fault("cannot be read as delta: rows are deleted of a file that its log does not list.")
    return sorted(found, key=lambda one: one.file if isinstance(one.file, str) else str(one.file.path))


def _zoned(kind: pa.DataType) -> bool:
    return pa.types.is_timestamp(kind) and kind.tz is not None


def _local_times(table: DeltaTable, columns: Sequence[str]) -> dict[str, set[dt.datetime]]:
    """Times that the log has without an offset, by column, as the package takes them: for UTC."""
    found: dict[str, set[dt.datetime]] = {name: set() for name in columns}
    for partition in table.partitions() if columns else ():
        for name in columns:
            text = partition[name]
            if text is not None and not _OFFSET.search(text):
                found[name].add(dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC))
    return found


def _file(asked: Asked, table: Location, path: str, size: int) -> str | ObjectFile:
    """Where a file is: below the table, or anywhere if the path says so, as in a clone. Paths are URI-encoded."""
    if urlparse(path).scheme == "file":
        return unquote(urlparse(path).path)
    place = unquote(path)
    if is_remote(place):
        above, _, name = place.rpartition("/")
        return ObjectFile(locate(above, key=f"{asked.key}.path"), name, size)
    if table.remote:
        return ObjectFile(table, place, size)
    return str(Path(table.path, place))


def _by_id(ids: Mapping[int, str], of_file: pa.Schema) -> dict[str, str]:
    """Find columns by the ids that the writer gave them."""
    own = {field.name: (field.metadata or {}).get(FIELD_ID) for field in of_file}
    if None in own.values():
        raise ValueError("has columns without ids, and the table finds columns by ids")
    return {ids[int(number)]: name for name, number in own.items() if number is not None and int(number) in ids}


def _by_name(names: Mapping[str, str], of_file: pa.Schema) -> dict[str, str]:
    """Find columns by their names in files; Delta knows no upper and lower case."""
    folded: dict[str, list[str]] = {}
    for name in of_file.names:
        folded.setdefault(name.casefold(), []).append(name)
    found = {}
    for column, name in names.items():
        there = folded.get(name.casefold(), [])
        if len(there) > 1:
            raise ValueError(f"has {len(there)} columns '{column}'")
        if there:
            found[column] = there[0]
    return found
