"""Snapshots of Iceberg tables as lists of plain files, and tables that plain files would misread, refused by name."""

from __future__ import annotations

import datetime as dt
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import lakes
import pyarrow as pa
import pyarrow.parquet as pq
import pyiceberg.catalog
import pytest
from pyiceberg.manifest import DataFileContent, FileFormat, ManifestContent
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DateType, IntegerType, LongType, NestedField, StringType
from pyiceberg.utils.config import Config

from privrisk_spark.errors import InputError, SchemaError
from privrisk_spark.storage.lakes.iceberg import open_iceberg
from privrisk_spark.storage.lakes.snapshot import Asked, Pin


def rows(*ids: str, **more: Any) -> pa.Table:
    return pa.table({"id": list(ids), "n": pa.array(range(len(ids)), pa.int32()), **more})


def asked(path: str | Path, **more: Any) -> Asked:
    return Asked("table", "iceberg", str(path), **more)


def newest(table: Table, **more: Any) -> Asked:
    return asked(lakes.metadata_of(table), **more)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return lakes.iceberg_snapshots(tmp_path / "warehouse", rows("a", "b"), rows("c"), rows("d", "e", "f"))


def read(of: Asked, pin: Pin | None = None, order: str = "id") -> list[dict[str, Any]]:
    return lakes.read_naively(open_iceberg(of, pin), [order])


def ids(of: Asked, pin: Pin | None = None) -> str:
    return "".join(row["id"] for row in read(of, pin))


def test_a_snapshot_is_the_rows_that_were_there_then(table: Table) -> None:
    assert ids(newest(table)) == "abcdef"
    numbers = [entry.snapshot_id for entry in table.history()]
    assert [ids(newest(table, snapshot=number)) for number in numbers] == ["ab", "abc", "abcdef"]
    moments = [entry.timestamp_ms for entry in table.history()]

    def at(milliseconds: int) -> str:
        return ids(newest(table, timestamp=dt.datetime.fromtimestamp(milliseconds / 1000, dt.UTC)))

    assert [at(moment) for moment in moments] == ["ab", "abc", "abcdef"]
    with pytest.raises(SchemaError, match="no snapshot as old as table"):
        at(moments[0] - 1)
    with pytest.raises(SchemaError, match="lies in the future"):
        ids(newest(table, timestamp=dt.datetime.now(dt.UTC) + dt.timedelta(days=1)))
    with pytest.raises(SchemaError, match="has no snapshot 17"):
        ids(newest(table, snapshot=17))
    said = open_iceberg(newest(table)).described()
    assert (said["format"], said["snapshot"]) == ("iceberg", numbers[-1])


def test_a_table_is_found_by_its_metadata_its_directory_and_its_catalog(
    table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = Path(table.location().removeprefix("file://"))
    with pytest.raises(SchemaError, match="version-hint"):
        open_iceberg(asked(root))
    (root / "metadata" / "version-hint.text").write_text(Path(lakes.metadata_of(table)).name)
    assert ids(asked(root)) == "abcdef"
    by_catalog = Asked("table", "iceberg", catalog="tests.lake.table")
    with pytest.raises(SchemaError, match="in a catalog of this name in pyiceberg's configuration"):
        open_iceberg(by_catalog)
    monkeypatch.setenv("PYICEBERG_CATALOG__TESTS__URI", f"sqlite:///{tmp_path}/warehouse/catalog.db")
    monkeypatch.setattr(pyiceberg.catalog, "_ENV_CONFIG", Config())  # it is read when the package is imported
    assert ids(by_catalog) == "abcdef"
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "pyiceberg", None)
        with pytest.raises(InputError, match=r"package 'pyiceberg', .* pip install 'privrisk-spark\[iceberg\]"):
            open_iceberg(by_catalog)


def test_a_pin_outlives_later_snapshots_and_schemas_and_not_the_table(table: Table, tmp_path: Path) -> None:
    pin = open_iceberg(newest(table)).pin
    with table.update_schema() as update:
        update.rename_column("n", "m")
    table.overwrite(pa.table({"id": ["z"], "m": pa.array([1], pa.int32())}))
    assert read(newest(table)) == [{"id": "z", "m": 1}]
    assert (ids(newest(table), pin), set(read(newest(table), pin)[0])) == ("abcdef", {"id", "n"})
    other = lakes.iceberg_snapshots(tmp_path / "other", rows("x"))
    with pytest.raises(SchemaError, match="is another table than the one this run id began to read"):
        open_iceberg(newest(other), pin)


def test_columns_are_found_by_their_ids(table: Table) -> None:
    """Renamed, swapped, dropped and made anew, added later, widened: as the newest schema says of every file."""
    with table.update_schema() as update:
        update.add_column("city", StringType())
    table.append(pa.table({"id": ["g"], "n": pa.array([7], pa.int32()), "city": ["Ulm"]}))
    with table.update_schema() as update:
        update.rename_column("id", "was_id")
        update.rename_column("city", "id")
        update.update_column("n", LongType())
    with table.update_schema() as update:
        update.rename_column("was_id", "city")
    found = read(newest(table), order="city")
    assert found[0] == {"city": "a", "n": 0, "id": None}
    assert found[-1] == {"city": "g", "n": 7, "id": "Ulm"}
    with table.update_schema() as update:
        update.delete_column("n")
    with table.update_schema() as update:
        update.add_column("n", LongType())
    assert [row["n"] for row in read(newest(table), order="city")] == [None] * 7
    schema = open_iceberg(newest(table)).schema
    assert schema.field("n").type == pa.int64()
    assert schema.field("city").type == pa.string()


def test_partitions_that_changed_are_read_from_the_files(tmp_path: Path) -> None:
    table = lakes.iceberg_snapshots(tmp_path / "w", rows("a", "b"))
    with table.update_spec() as update:
        update.add_field("n", IdentityTransform(), "by_n")
    table.append(rows("c", "d"))
    with table.update_spec() as update:
        update.remove_field("by_n")
        update.add_field("id", IdentityTransform(), "by_id")
    table.append(rows("e"))
    assert [(row["id"], row["n"]) for row in read(newest(table))] == [("a", 0), ("b", 1), ("c", 0), ("d", 1), ("e", 0)]


def test_files_from_elsewhere_have_their_partition_by_the_metadata(tmp_path: Path) -> None:
    """Files that were added as they are have no ids, and may lack the column they are partitioned by."""
    schema = Schema(
        NestedField(1, "id", StringType()), NestedField(2, "day", DateType()), NestedField(3, "n", IntegerType())
    )
    spec = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "day"))
    table = lakes.catalog(tmp_path / "w").create_table("lake.table", schema=schema, partition_spec=spec)
    day = dt.date(2026, 11, 1)
    whole = pa.table({"id": ["a", "b"], "day": [day, day], "n": pa.array([1, 2], pa.int32())})
    file = tmp_path / "added.parquet"
    pq.write_table(whole, file)
    table.add_files([str(file)])
    size = file.stat().st_size
    assert read(newest(table)) == whole.to_pylist()
    # Without the column; of the same size, as the metadata states it.
    lacking = whole.drop_columns(["day"])
    for padding in range(size):
        with pq.ParquetWriter(file, lacking.schema) as writer:
            writer.write_table(lacking)
            writer.add_key_value_metadata({"x": "-" * padding})
        if file.stat().st_size == size:
            break
    assert file.stat().st_size == size
    assert read(newest(table)) == whole.to_pylist()
    with table.transaction() as change:
        change.remove_properties("schema.name-mapping.default")
    with pytest.raises(SchemaError, match="has no ids of columns, and the table has no mapping of names"):
        read(newest(table))


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ({"listed": ManifestContent.DELETES}, "are deleted by the values of columns"),
        ({"content": DataFileContent.EQUALITY_DELETES}, "are deleted by the values of columns"),
        ({"file_format": FileFormat.ORC}, "it has files of the format ORC"),
        ({"key_metadata": b"key"}, "its files are encrypted"),
    ],
)
def test_files_that_are_no_plain_rows_are_refused_by_name(table: Table, content: dict[str, Any], named: str) -> None:
    with pytest.raises(SchemaError, match=named):
        open_iceberg(asked(lakes.with_file(table, **content)))
    assert ids(asked(lakes.with_file(table))) == "abcdef", "what is added is all that is wrong with it"


def test_tables_that_need_a_reader_we_are_not_are_refused_by_name(table: Table, tmp_path: Path) -> None:
    def version(document: dict[str, Any]) -> None:
        document |= {"format-version": 4, "next-row-id": 0}

    with pytest.raises(SchemaError, match=r"cannot be read as iceberg"):
        open_iceberg(asked(lakes.with_metadata(table, version)))
    with pytest.raises(SchemaError, match="has no snapshot: nothing was ever written to it"):
        open_iceberg(newest(lakes.catalog(tmp_path / "e").create_table("lake.t", schema=rows("a").schema)))
    times = rows("a", at=pa.array([dt.time(1)], pa.time64("us")))
    with pytest.raises(SchemaError, match="column 'at' is of type time64"):
        open_iceberg(newest(lakes.iceberg_snapshots(tmp_path / "times", times)))


def test_open_iceberg_column_with_a_default_has_it_in_older_rows(table: Table) -> None:
    def add(document: dict[str, Any]) -> None:
        document |= {"format-version": 3, "next-row-id": 0}
        for schema in document["schemas"]:
            schema["fields"] += [
                {"id": 90, "name": "given", "required": False, "type": "int", "initial-default": 5},
                {"id": 91, "name": "day", "required": False, "type": "date", "initial-default": "2026-11-28"},
            ]

    def add_within(document: dict[str, Any]) -> None:
        document |= {"format-version": 3, "next-row-id": 0}
        inner = {"id": 93, "name": "b", "required": False, "type": "int", "initial-default": 7}
        kind = {"type": "struct", "fields": [inner]}
        for schema in document["schemas"]:
            schema["fields"].append({"id": 92, "name": "s", "required": False, "type": kind})

    with pytest.raises(SchemaError, match=r"'s\.b' is a field in a column and has a default"):
        open_iceberg(asked(lakes.with_metadata(table, add_within)))
    found = lakes.read_naively(open_iceberg(asked(lakes.with_metadata(table, add))), ["id"])
    assert {(row["given"], row["day"]) for row in found} == {(5, dt.date(2026, 11, 28))}


def test_nested_columns_are_read_or_refused(tmp_path: Path) -> None:
    person = pa.struct([("name", pa.string()), ("born", pa.int32())])
    given = pa.table(
        {
            "id": ["a"],
            "tags": [["x", "y"]],
            "who": pa.array([{"name": "n", "born": 1}], person),
            "price": pa.array([Decimal("1.50")], pa.decimal128(6, 2)),
        }
    )
    table = lakes.iceberg_snapshots(tmp_path / "w", given)
    assert read(newest(table)) == given.to_pylist()
    with table.update_schema() as update:
        update.rename_column("who.name", "called")
    with pytest.raises(SchemaError, match="has column 'who' with other fields in it"):
        open_iceberg(newest(table))
    with table.update_schema() as update:
        update.delete_column("who.called")
    with table.update_schema() as update:
        update.add_column(("who", "name"), StringType())
    with pytest.raises(SchemaError, match="column 'who'"):
        open_iceberg(newest(table))


def test_files_that_are_gone_are_named(table: Table) -> None:
    snapshot = open_iceberg(newest(table))
    file = Path(str(snapshot.files[0].file))
    file.unlink()
    with pytest.raises(
        SchemaError, match=f"file {file.name} is gone; if the table was vacuumed or its snapshots expired"
    ):
        open_iceberg(newest(table))
