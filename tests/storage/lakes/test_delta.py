"""Versions of Delta tables as lists of plain files, and tables that plain files would misread, refused by name."""

from __future__ import annotations

import datetime as dt
import json
import shutil
import zipfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import lakes
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from privrisk_spark.errors import InputError, SchemaError
from privrisk_spark.storage.lakes.delta import open_delta
from privrisk_spark.storage.lakes.snapshot import Asked, Pin

DAY = dt.date(2026, 11, 1)
NOON = dt.datetime(2026, 1, 1, 12, 30, 1, 5, tzinfo=dt.UTC)


def rows(*ids: str) -> pa.Table:
    return pa.table({"id": list(ids), "n": pa.array(range(len(ids)), pa.int32())})


def asked(path: Path, **more: Any) -> Asked:
    return Asked("table", "delta", str(path), **more)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return lakes.delta_versions(tmp_path / "t", rows("a", "b"), rows("c"), rows("d", "e", "f"))


def ids(path: Path, pin: Pin | None = None, **more: Any) -> str:
    snapshot = open_delta(asked(path, **more), pin)
    return "".join(row["id"] for row in lakes.read_naively(snapshot, ["id"]))


def test_a_version_is_the_rows_that_were_there_then(table: Path) -> None:
    assert ids(table) == "abcdef"
    assert [ids(table, version=version) for version in range(3)] == ["ab", "abc", "abcdef"]
    DeltaTable(table).delete("id = 'a'")
    assert ids(table) == "bcdef"
    assert ids(table, version=2) == "abcdef"
    newest = open_delta(asked(table))
    assert (newest.pin.version, newest.rows, newest.described()["version"]) == (3, 5, 3)
    assert newest.root == table.resolve()


def test_a_moment_is_the_version_that_was_the_newest_then(table: Path) -> None:
    """Also where the clock of a later writer was behind: its version is no older than the ones before it."""
    for version, at in enumerate((1000, 3000, 2000)):

        def change(action: dict[str, Any], at: int = at) -> None:
            if "commitInfo" in action:
                action["commitInfo"]["timestamp"] = at

        lakes.edit_log(table, change, version)

    assert open_delta(asked(table, version=0)).committed == "1970-01-01T00:00:01+00:00"
    assert open_delta(asked(table, version=1)).committed == "1970-01-01T00:00:03+00:00"

    def at(milliseconds: int) -> str:
        return ids(table, timestamp=dt.datetime.fromtimestamp(milliseconds / 1000, dt.UTC))

    assert [at(1000), at(2500), at(3000), at(9999)] == ["ab", "ab", "abcdef", "abcdef"]
    with pytest.raises(SchemaError, match="no version as old as table"):
        at(999)
    with pytest.raises(SchemaError, match="lies in the future"):
        ids(table, timestamp=dt.datetime.now(dt.UTC) + dt.timedelta(days=1))


def test_a_pin_outlives_later_commits_and_not_the_table(table: Path, tmp_path: Path) -> None:
    pin = open_delta(asked(table)).pin
    write_deltalake(table, rows("z"), mode="overwrite")
    assert ids(table) == "z"
    assert ids(table, pin) == "abcdef"
    shutil.rmtree(table)
    lakes.delta_versions(table, *[rows(name) for name in "abcd"])
    with pytest.raises(SchemaError, match="is another table than the one this run id began to read"):
        open_delta(asked(table), pin)


def test_columns_of_partitions_come_from_the_log_in_their_types(tmp_path: Path) -> None:
    values = {
        "text": (pa.string(), ["x y%/ü", "a=b", "__HIVE", "7"]),
        "number": (pa.int32(), [-1, 2, None, 7]),
        "day": (pa.date32(), [DAY, None, DAY, dt.date(1500, 2, 3)]),
        "flag": (pa.bool_(), [True, False, None, True]),
        "price": (pa.decimal128(10, 2), [Decimal("1.50"), None, Decimal("0.25"), Decimal("3.00")]),
        "moment": (pa.timestamp("us", "UTC"), [NOON, None, NOON, NOON]),
    }
    given = pa.table({"id": list("abcd"), **{name: pa.array(of, kind) for name, (kind, of) in values.items()}})
    write_deltalake(tmp_path / "t", given, partition_by=list(values))

    def change(action: dict[str, Any]) -> None:  # the package writes no negative decimals that can be read
        if "add" in action and action["add"]["partitionValues"]["price"] == "0.25":
            action["add"]["partitionValues"]["price"] = "-0.25"

    lakes.edit_log(tmp_path / "t", change)
    snapshot = open_delta(asked(tmp_path / "t"))
    assert len(snapshot.files) == 4
    assert all(set(of.values) == set(values) for of in snapshot.files)
    expected = given.to_pylist()
    expected[2]["price"] = Decimal("-0.25")
    assert lakes.read_naively(snapshot, ["id"]) == expected
    assert snapshot.schema.field("price").type == pa.decimal128(10, 2)


def test_open_delta_refuses_a_partition_time_of_spark_without_an_offset(tmp_path: Path) -> None:
    """Spark's is a time of the session that wrote it, which nothing notes; deltalake's is in UTC."""
    zipfile.ZipFile(Path(__file__).with_name("delta_by_spark.zip")).extractall(tmp_path)
    table = tmp_path / "by_price"
    assert open_delta(asked(table)).rows == 9

    def in_berlin(action: dict[str, Any]) -> None:
        if "add" in action and action["add"]["partitionValues"]["price"] == "-2.25":
            action["add"]["partitionValues"]["at"] = "2026-01-01 13:00:00.000005"

    lakes.edit_log(table, in_berlin)
    with pytest.raises(SchemaError, match="a time without an offset in the partition column 'at'") as caught:
        open_delta(asked(table))
    assert "13:00" not in str(caught.value), "a value of a record is in no error"
    assert "utcTimestampPartitionValues = true" in str(caught.value)
    of_package = pa.table({"id": ["a", "b"], "at": pa.array([NOON, None], pa.timestamp("us", "UTC"))})
    write_deltalake(tmp_path / "t", of_package, partition_by=["at"])
    assert lakes.read_naively(open_delta(asked(tmp_path / "t")), ["id"]) == of_package.to_pylist()


def test_open_delta_decimal_partition_without_its_scale_names_the_column(tmp_path: Path) -> None:
    table = tmp_path / "t"
    prices = pa.array([Decimal("12.00")], pa.decimal128(10, 2))
    write_deltalake(table, pa.table({"id": ["a"], "c": ["x"], "price": prices}), partition_by=["c", "price"])

    def change(action: dict[str, Any]) -> None:
        if "add" in action:
            action["add"]["partitionValues"]["price"] = "12"

    lakes.edit_log(table, change)
    with pytest.raises(SchemaError) as caught:
        open_delta(asked(table))
    assert "the partition column 'price' that is not written as decimal(10,2); a decimal" in str(caught.value)
    assert "12" not in str(caught.value).replace(str(table), ""), "a value of a record is in no error"


def test_partitions_that_cannot_be_told_are_refused(tmp_path: Path) -> None:
    table = tmp_path / "t"
    write_deltalake(table, pa.table({"id": ["a"], "p": pa.array([1], pa.int64())}), partition_by=["p"])

    def change(action: dict[str, Any]) -> None:
        if "add" in action:
            action["add"]["partitionValues"]["p"] = "1.0"

    lakes.edit_log(table, change)
    with pytest.raises(SchemaError, match="a value of the partition column 'p' that is not written as long"):
        open_delta(asked(table))
    write_deltalake(tmp_path / "b", pa.table({"id": ["a"], "p": [b"x"]}), partition_by=["p"])
    with pytest.raises(SchemaError, match="partitioned by column 'p' of type binary"):
        open_delta(asked(tmp_path / "b"))


def test_the_log_is_believed_and_not_what_a_file_or_a_directory_says(tmp_path: Path) -> None:
    table = tmp_path / "t"
    write_deltalake(table, pa.table({"id": ["a"], "p": ["x"]}), partition_by=["p"])
    (file,) = table.glob("p=*/*.parquet")
    pq.write_table(pa.table({"id": ["a"], "p": ["of the file"]}), file)

    def change(action: dict[str, Any]) -> None:
        if "add" in action:
            action["add"]["partitionValues"]["p"] = "of the log"
            action["add"]["size"] = file.stat().st_size

    lakes.edit_log(table, change)
    snapshot = open_delta(asked(table))
    assert lakes.read_naively(snapshot, ["id"]) == [{"id": "a", "p": "of the log"}]
    assert "p" not in snapshot.files[0].columns


def test_a_column_that_was_added_later_is_missing_in_older_rows(table: Path) -> None:
    write_deltalake(table, rows("g").append_column("new", pa.array(["x"])), mode="append", schema_mode="merge")
    found = lakes.read_naively(open_delta(asked(table)), ["id"])
    assert [row["new"] for row in found] == [None] * 6 + ["x"]


@pytest.mark.parametrize(
    ("reader", "features", "configuration", "named"),
    [
        (3, ["somethingNew"], {}, "feature somethingNew"),
        (9, [], {}, "reader version 9"),
    ],
)
def test_tables_that_need_a_reader_we_are_not_are_refused_by_name(
    table: Path, reader: int, features: list[str], configuration: dict[str, str], named: str
) -> None:
    lakes.set_protocol(table, reader, *features, **configuration)
    with pytest.raises(SchemaError, match=f"table.path: '{table}' cannot be read as delta: .*{named}"):
        open_delta(asked(table))


@pytest.mark.parametrize(
    ("reader", "features", "configuration"),
    [
        (2, [], {}),
        (3, ["columnMapping", "deletionVectors", "timestampNtz"], {"delta.columnMapping.mode": "none"}),
        (3, ["v2Checkpoint", "vacuumProtocolCheck"], {}),
    ],
)
def test_features_a_version_makes_no_use_of_are_no_hindrance(
    table: Path, reader: int, features: list[str], configuration: dict[str, str]
) -> None:
    lakes.set_protocol(table, reader, *features, **configuration)
    assert ids(table) == "abcdef"


@pytest.mark.parametrize("mode", ["name", "id"])
def test_open_delta_column_mapping_finds_columns_of_each_mode(tmp_path: Path, mode: str) -> None:
    """By the name without regard to case, or by the id in the file; a file without ids is refused."""
    table = tmp_path / "t"
    write_deltalake(table, rows("a", "b"))

    def change(action: dict[str, Any]) -> None:
        if "metaData" in action:
            schema = json.loads(action["metaData"]["schemaString"])
            for number, field in enumerate(schema["fields"], start=1):
                physical = field["name"].upper() if mode == "name" else f"col-{number}"
                field["metadata"] = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": physical}
            action["metaData"]["schemaString"] = json.dumps(schema)

    lakes.edit_log(table, change)
    lakes.set_protocol(table, 2, **{"delta.columnMapping.mode": mode})
    if mode == "id":
        with pytest.raises(SchemaError, match="has columns without ids, and the table finds columns by ids"):
            open_delta(asked(table))
        return
    assert lakes.read_naively(open_delta(asked(table)), ["id"]) == rows("a", "b").to_pylist()


def test_open_delta_damaged_deletion_vector_raises(table: Path) -> None:
    lakes.set_protocol(table, 3, "deletionVectors")

    def change(action: dict[str, Any]) -> None:
        if "add" in action:
            inline = "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"
            vector = {"storageType": "i", "pathOrInlineDv": inline, "sizeInBytes": 40, "cardinality": 1}
            action["add"]["deletionVector"] = vector

    lakes.edit_log(table, change, 1)
    with pytest.raises(SchemaError, match=r"a deletion vector is damaged or gone|rows beyond them are deleted"):
        open_delta(asked(table))


def test_open_delta_deletion_vector_of_a_file_that_is_not_listed_raises(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the rows that it deletes would be read."""
    lakes.set_protocol(table, 3, "deletionVectors")
    vectors = pa.table({"filepath": [f"file://{table}/other.parquet"], "selection_vector": [[True, False]]})
    monkeypatch.setattr(DeltaTable, "deletion_vectors", lambda self: vectors)
    with pytest.raises(SchemaError, match="rows are deleted of a file that its log does not list"):
        open_delta(asked(table))


def test_files_that_are_not_those_of_the_log_are_refused(table: Path) -> None:
    files = sorted(table.glob("*.parquet"), key=lambda file: pq.read_metadata(file).num_rows)

    def refused() -> str:
        with pytest.raises(SchemaError, match="cannot be read") as caught:
            open_delta(asked(table))
        return str(caught.value)

    whole = files[1].read_bytes()
    files[1].write_bytes(whole + b"\0")
    assert f"file {files[1].name} is not readable as parquet (it is damaged or cut)" in refused()
    pq.write_table(rows("x", "y"), files[1], compression="none")
    assert "it is not the file that was committed" in refused()
    files[1].write_bytes(whole)

    def more(action: dict[str, Any]) -> None:
        if "add" in action:
            action["add"]["stats"] = json.dumps({"numRecords": 99})

    before = (table / "_delta_log" / f"{0:020}.json").read_text()
    lakes.edit_log(table, more)
    assert "holds 2 rows, and the table says 99" in refused()
    (table / "_delta_log" / f"{0:020}.json").write_text(before)
    files[1].unlink()
    assert f"file {files[1].name} is gone; if the table was vacuumed" in refused()


def test_a_type_in_a_file_that_is_not_the_tables_is_refused(table: Path) -> None:
    def change(action: dict[str, Any]) -> None:
        if "metaData" in action:
            action["metaData"]["schemaString"] = action["metaData"]["schemaString"].replace('"integer"', '"long"')

    lakes.edit_log(table, change)
    with pytest.raises(SchemaError, match="has column 'n' as int32, and the table as int64"):
        open_delta(asked(table))


def test_what_is_no_table_is_said(table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SchemaError, match="there is no such table"):
        open_delta(asked(tmp_path / "nothing"))
    with pytest.raises(SchemaError, match="no version 7"):
        open_delta(asked(table, version=7))
    monkeypatch.setitem(__import__("sys").modules, "deltalake", None)
    with pytest.raises(InputError, match=r"needs the package 'deltalake', .* pip install 'privrisk-spark\[delta\]"):
        open_delta(asked(table))


def test_old_calendars_are_refused(table: Path, tmp_path: Path) -> None:
    """A Spark before 3.0 counts days before 1582 otherwise; times as it writes them are read, of whatever width."""
    place = tmp_path / "times"
    given = pa.table({"id": ["a"], "at": pa.array([NOON], pa.timestamp("us", "UTC"))})
    write_deltalake(place, given)
    (file,) = place.glob("*.parquet")

    def rewrite(**how: Any) -> None:
        pq.write_table(given, file, **how)

        def change(action: dict[str, Any]) -> None:
            if "add" in action:
                action["add"]["size"] = file.stat().st_size

        lakes.edit_log(place, change)

    rewrite(use_deprecated_int96_timestamps=True)
    assert pq.read_metadata(file).schema.column(1).physical_type == "INT96"
    assert open_delta(asked(place)).rows == 1
    given = given.replace_schema_metadata({"org.apache.spark.version": "2.4.8"})
    rewrite()
    with pytest.raises(SchemaError, match=r"written by a Spark before 3\.0"):
        open_delta(asked(place))


def by_spark(i: int) -> dict[str, Any]:
    """Row ``i`` of the tables in delta_by_spark.zip."""
    return {
        "id": i,
        "name": f"v{i}",
        "city": (None, "x y%/=ü", "")[i % 3],
        "day": dt.date(2026, 1, 1 + i % 2),
        "price": Decimal(i) - Decimal("2.25"),
        "at": dt.datetime(2026, 1, 1, 12, 0, 0, 5, tzinfo=dt.UTC),
        "tags": [str(i)],
        "who": {"x": i},
    }


def test_tables_of_sparks_own_connector_are_read_or_refused(tmp_path: Path) -> None:
    """Written by Spark 4.0 with Delta 4.0: nine rows in two commits, by city and day, by price and moment, by nothing.

    Of the last one a row was deleted in a third commit, by a deletion vector. Its times are of 96 bits, without a zone.
    """
    zipfile.ZipFile(Path(__file__).with_name("delta_by_spark.zip")).extractall(tmp_path)

    def read(name: str, **more: Any) -> list[dict[str, Any]]:
        found = lakes.read_naively(open_delta(asked(tmp_path / name, **more)), ["id"])
        for row in found:
            if row["at"].tzinfo is None:
                row["at"] = row["at"].to_pydatetime().replace(tzinfo=dt.UTC)
        return found

    rows = [by_spark(i) for i in range(9)]
    assert read("by_price") == rows
    assert read("by_price", version=0) == rows[:6]
    # In a partition, Delta cannot tell an empty text from a missing one.
    assert read("by_city") == [{**row, "city": row["city"] or None} for row in rows]
    assert read("deleted", version=1) == rows
    assert len(read("deleted")) == 8
    assert all(row in rows for row in read("deleted"))
