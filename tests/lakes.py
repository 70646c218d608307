"""Lake tables for tests: written by their own packages, or changed by hand to what these would not write."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pyiceberg.catalog
import pytest
from deltalake import write_deltalake
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.manifest import (
    DataFile,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    write_manifest,
    write_manifest_list,
)
from pyiceberg.table import Table
from pyiceberg.utils.config import Config

from privrisk_spark.storage.lakes.snapshot import Snapshot
from privrisk_spark.storage.table_files import ObjectFile


def edit_log(table: Path, change: Callable[[dict[str, Any]], object], version: int = 0) -> None:
    """Change the actions of a Delta commit, each a mapping of one kind to its content."""
    log = table / "_delta_log" / f"{version:020}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        change(action)
    log.write_text("".join(json.dumps(action) + "\n" for action in actions))


def set_protocol(table: Path, reader: int, *features: str, **configuration: str) -> None:
    """Say of a Delta table what a reader must know."""

    def change(action: dict[str, Any]) -> None:
        if "protocol" in action:
            said = {"readerFeatures": list(features), "writerFeatures": list(features)} if reader == 3 else {}
            action["protocol"] = {
                "minReaderVersion": reader,
                "minWriterVersion": max(5, reader) if reader != 3 else 7,
                **said,
            }
        if "metaData" in action:
            action["metaData"]["configuration"] = configuration

    edit_log(table, change)


def delta_versions(table: Path, *rows: pa.Table, **how: Any) -> Path:
    """Write a Delta table, a version for each."""
    for one in rows:
        write_deltalake(table, one, mode="append", **how)
    return table


def catalog(place: Path) -> SqlCatalog:
    """Return a catalog of Iceberg in a directory, with the namespace ``lake``."""
    place.mkdir(parents=True, exist_ok=True)
    found = SqlCatalog("tests", uri=f"sqlite:///{place}/catalog.db", warehouse=f"file://{place}")
    found.create_namespace_if_not_exists("lake")
    return found


def iceberg_snapshots(place: Path, *rows: pa.Table, **how: Any) -> Table:
    """Write an Iceberg table, a snapshot for each."""
    table = catalog(place).create_table("lake.table", schema=rows[0].schema, **how)
    for one in rows:
        table.append(one)
    return table


def configure(monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
    """Name the catalog of a directory ``tests``, as pyiceberg's configuration does, here and in started processes."""
    catalog(place)
    monkeypatch.setenv("PYICEBERG_CATALOG__TESTS__URI", f"sqlite:///{place}/catalog.db")
    monkeypatch.setenv("PYICEBERG_CATALOG__TESTS__WAREHOUSE", f"file://{place}")
    monkeypatch.setattr(pyiceberg.catalog, "_ENV_CONFIG", Config())  # it is read when the package is imported


def map_names(table: Table) -> None:
    """Have the columns of an Iceberg table found in files that do not tell their ids."""
    with table.transaction() as transaction:
        transaction.set_properties({"schema.name-mapping.default": table.schema().name_mapping.model_dump_json()})


def metadata_of(table: Table) -> str:
    """Return the file of the newest metadata of an Iceberg table."""
    return table.metadata_location.removeprefix("file://")


def with_metadata(table: Table, change: Callable[[dict[str, Any]], object]) -> str:
    """Copy the newest metadata of an Iceberg table with a change; returns the file."""
    file = Path(metadata_of(table))
    document = json.loads(file.read_text())
    change(document)
    other = file.with_name("99999-changed.metadata.json")
    other.write_text(json.dumps(document))
    return str(other)


def with_file(table: Table, *, listed: ManifestContent = ManifestContent.DATA, **content: Any) -> str:
    """Add a file of the newest snapshot to it once more, told otherwise, as nothing that writes here does.

    Parameters
    ----------
    listed : ManifestContent
        What its manifest is said to hold.
    content
        What is said of the file; where nothing is said at all, the file is told as one that was removed.
    """
    snapshot, io, place = table.current_snapshot(), table.io, f"{table.location()}/metadata"
    assert snapshot is not None
    manifests = snapshot.manifests(io)
    (file, *_) = [entry.data_file for entry in manifests[0].fetch_manifest_entry(io)]
    names = ["content", "file_path", "file_format", "partition", "record_count", "file_size_in_bytes", "key_metadata"]
    described = {name: getattr(file, name) for name in names} | content
    status = ManifestEntryStatus.ADDED if content or listed != ManifestContent.DATA else ManifestEntryStatus.DELETED
    path = f"{place}/{uuid4().hex}.avro"
    number = snapshot.snapshot_id
    with write_manifest(2, table.spec(), table.schema(), io.new_output(path), number, "null") as writer:
        entry = ManifestEntry.from_args(status=status, snapshot_id=number, data_file=DataFile.from_args(2, **described))
        if status == ManifestEntryStatus.DELETED:
            entry.sequence_number = entry.file_sequence_number = 1
        writer.add_entry(entry)
    made = writer.to_manifest_file()
    told = ["manifest_path", "manifest_length", "partition_spec_id", "sequence_number", "min_sequence_number"]
    told += ["added_snapshot_id", "added_files_count", "existing_files_count", "deleted_files_count"]
    told += ["added_rows_count", "existing_rows_count", "deleted_rows_count", "partitions", "key_metadata"]
    more = ManifestFile.from_args(2, content=listed, **{name: getattr(made, name) for name in told})
    listing = f"{place}/{uuid4().hex}-list.avro"
    with write_manifest_list(2, io.new_output(listing), number, None, 99, "null") as all_of_them:
        all_of_them.add_manifests([*manifests, more])

    def change(document: dict[str, Any]) -> None:
        for one in document["snapshots"]:
            if one["snapshot-id"] == number:
                one["manifest-list"] = listing

    return with_metadata(table, change)


def read_naively(snapshot: Snapshot, order: Sequence[str]) -> list[dict[str, Any]]:
    """Rows of a version, file by file and column by column, in an order."""
    found: list[dict[str, Any]] = []
    for of in snapshot.files:
        assert not isinstance(of.file, ObjectFile)
        file = pq.ParquetFile(of.file)
        rows, lost, start = file.read(), set(), 0
        for group, places in enumerate(of.deleted or ()):
            lost |= {start + int(place) for place in places}
            start += file.metadata.row_group(group).num_rows
        for i in sorted(set(range(rows.num_rows)) - lost):
            held = {column: rows.column(name)[i].as_py() for column, name in of.columns.items()}
            found.append({name: {**of.values, **held}[name] for name in snapshot.schema.names})
    return sorted(found, key=lambda row: [(row[name] is None, row[name]) for name in order])
