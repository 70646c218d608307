"""What is not read of a table is refused by name: files, lines, letters."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privrisk_spark.engine.embedded import is_embedded
from privrisk_spark.engine.failures import named
from privrisk_spark.errors import InputError, PrivriskError, SchemaError
from privrisk_spark.policy.policy import Table
from privrisk_spark.results.facts import FilesRead
from privrisk_spark.tables.completeness import collect_files_read
from privrisk_spark.tables.opening import read
from privrisk_spark.tables.source_files import local_files

CSV = {"sep": ";", "header": True}


def opened(spark, table, **more):
    frame = read(spark, table, key="table", **more)
    return frame, collect_files_read(spark, table, frame, key="table")


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    """Three parts of a Parquet table."""
    place = tmp_path / "rows"
    place.mkdir()
    for i in range(3):
        pq.write_table(pa.table({"a": [f"{i}-{j}" for j in range(200)], "b": range(200)}), place / f"part-{i}.parquet")
    (place / "_SUCCESS").write_text("")
    (place / ".hidden").write_text("x")
    return place


def test_all_files_and_rows_are_counted(spark, tmp_path, parts):
    assert opened(spark, Table(path=str(parts)))[1] == FilesRead(expected=3, processed=3, rows=600)
    assert opened(spark, Table(path=f"file://{parts}"))[1] == FilesRead(expected=3, processed=3, rows=600)
    assert opened(spark, Table(path=f"{parts}/part-[12]*"))[1] == FilesRead(expected=2, processed=2, rows=400)
    if not is_embedded(spark):  # which refuses the option
        chosen = Table(path=str(parts), options={"pathGlobFilter": "part-[12]*"})
        assert (opened(spark, chosen)[0].count(), opened(spark, chosen)[1]) == (400, None)
    by_day = tmp_path / "by_day"
    for i, part in enumerate(sorted(parts.glob("*.parquet"))):
        (by_day / f"day={i}").mkdir(parents=True)
        part.rename(by_day / f"day={i}" / part.name)
    assert opened(spark, Table(path=str(by_day)))[1] == FilesRead(expected=3, processed=3, rows=600)
    (tmp_path / "t.csv").write_text("a;b\n1;2\n")
    assert opened(spark, Table(path=str(tmp_path / "t.csv"), format="csv", options=CSV))[1] == FilesRead(1, 1)
    assert not local_files(Table(path="s3a://bucket/t"))
    assert not local_files(Table(catalog="t"))


def cut(parts: Path) -> None:
    whole = (parts / "part-1.parquet").read_bytes()
    (parts / "part-1.parquet").write_bytes(whole[: len(whole) // 2])


def garble(parts: Path) -> None:
    (parts / "part-1.parquet").write_bytes(bytes(range(256)) * 20)


def empty(parts: Path) -> None:
    (parts / "part-1.parquet").write_bytes(b"")


def dangle(parts: Path) -> None:
    (parts / "part-1.parquet").rename(parts.parent / "elsewhere")
    (parts / "part-1.parquet").symlink_to(parts.parent / "nowhere")


def pipe(parts: Path) -> None:
    (parts / "part-1.parquet").unlink()
    os.mkfifo(parts / "part-1.parquet")


def lack(parts: Path) -> None:
    pq.write_table(pa.table({"b": range(3)}), parts / "part-1.parquet")


def bury(parts: Path) -> None:
    (parts / "older").mkdir()
    (parts / "part-1.parquet").rename(parts / "older" / "part-1.parquet")


LOST = {
    cut: "file part-1.parquet cannot be read as parquet: it is damaged, cut or of another format",
    garble: "file part-1.parquet cannot be read as parquet: it is damaged, cut or of another format",
    empty: "file part-1.parquet has 0 bytes",
    dangle: "file part-1.parquet is a link to nothing",
    pipe: "file part-1.parquet is no file but a pipe",
    lack: "file part-1.parquet has no column 'a', which other files of the table have",
    bury: "there are 3 data files, and Spark reads 2 of them",
}


@pytest.mark.parametrize(("harm", "message"), LOST.items(), ids=[harm.__name__ for harm in LOST])
def test_a_part_that_would_be_lost_is_refused_by_name(spark, parts, harm, message):
    harm(parts)
    with pytest.raises(SchemaError, match=re.escape(f"table.path: '{parts}': {message}")):
        read(spark, Table(path=str(parts)), key="table")


def test_a_part_that_may_not_be_read_is_refused_by_name(spark, parts, monkeypatch):
    """Whoever runs the tests may read all, so the system's answer is planted."""
    original = pq.read_metadata

    def refused(file, *more):
        if Path(file).name == "part-1.parquet":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(file))
        return original(file, *more)

    monkeypatch.setattr(pq, "read_metadata", refused)
    message = "file part-1.parquet cannot be read as parquet: Permission denied"
    with pytest.raises(SchemaError, match=re.escape(f"table.path: '{parts}': {message}")):
        read(spark, Table(path=str(parts)), key="table")


def test_a_pipe_in_place_of_the_table_is_not_waited_for(spark, tmp_path):
    os.mkfifo(tmp_path / "t.csv")
    with pytest.raises(SchemaError, match=r"file t\.csv is no file but a pipe"):
        read(spark, Table(path=str(tmp_path / "t.csv"), format="csv"), key="dictionary")


def test_only_columns_that_are_looked_at_must_be_in_every_part(spark, parts):
    lack(parts)
    assert read(spark, Table(path=str(parts)), key="dictionary", columns=["b"]).select("b").count() == 403
    first = read(spark, Table(path=str(parts)), key="dictionary", columns=["b"])
    assert first.where("a is null").count() == 3
    merged = Table(path=str(parts), options={"mergeSchema": True})
    assert opened(spark, merged)[0].where("a is null").count() == 3


DAMAGED = {
    "cut": (b"7", "1 lines are cut, have more values than there are columns, or are not csv"),
    "too long": (b"7;x;y", "1 lines are cut"),
    "open quote": (b'"7;x', "1 lines are cut"),
    "bytes that are no text": (b"7;\xff\xfe", "1 rows have bytes that are no text in UTF-8"),
    "what stands for such": ("7;x\ufffdy".encode(), "1 rows have bytes that are no text in UTF-8"),
}


QUOTE = pytest.mark.on_spark("the embedded engine refuses lines whose quotes only Spark's parser knows to read")


@pytest.mark.parametrize(
    ("line", "message"),
    [pytest.param(*of, id=name, marks=[QUOTE] if "quote" in name else []) for name, of in DAMAGED.items()],
)
def test_lines_that_lose_something_are_counted_and_refused(spark, tmp_path, line, message):
    (tmp_path / "t.csv").write_bytes(b"a;b\n1;x\n" + line + b"\n2;y\n3;\n;\n")
    given = Table(path=str(tmp_path / "t.csv"), format="csv", options=CSV)
    with pytest.raises(SchemaError, match=re.escape(f"table.path: '{tmp_path}/t.csv': {message}")):
        opened(spark, given)
    permissive = given.model_copy(update={"options": {**CSV, "mode": "PERMISSIVE"}})
    files = opened(spark, permissive)[1]
    assert (files.malformed, files.garbled) == ((0, 1) if "text" in message else (1, 0))
    # How a private run ends does not depend on a line.
    frame = read(spark, given, key="table", private=True)
    assert collect_files_read(spark, given, frame, key="table", private=True) == FilesRead(1, 1)


def test_hundreds_of_columns_are_looked_at(spark, tmp_path):
    names = [f"c{i}" for i in range(1500)]
    (tmp_path / "t.csv").write_text(";".join(names) + "\n" + ";".join(["1"] * 1500) + "\n" + ";".join(["2"] * 1499))
    with pytest.raises(SchemaError, match="1 lines are cut"):
        opened(spark, Table(path=str(tmp_path / "t.csv"), format="csv", options=CSV))


def test_the_right_encoding_loses_nothing(spark, tmp_path):
    (tmp_path / "t.csv").write_bytes("a;b\n1;Köln\n".encode("latin-1"))
    given = Table(path=str(tmp_path / "t.csv"), format="csv", options={**CSV, "encoding": "ISO-8859-1"})
    frame, files = opened(spark, given)
    assert (frame.collect()[0].b, files.garbled) == ("Köln", 0)


# --------------------------------------------------------------------------------------- found in tasks


def fails(work) -> PrivriskError:
    with pytest.raises(PrivriskError) as caught, named():
        work()
    return caught.value


def test_types_that_differ_between_parts_are_named(spark, parts):
    pq.write_table(pa.table({"a": ["x"], "b": ["canary"]}), parts / "part-1.parquet")
    error = fails(lambda: read(spark, Table(path=str(parts)), key="table").select("b").toArrow())
    assert isinstance(error, InputError)
    if is_embedded(spark):
        assert "file part-1.parquet has column 'b' of type string, and file part-0.parquet of type" in str(error)
    else:
        assert f"The table at '{parts}': file part-" in str(error)
        assert "column 'b' is of the type" in str(error)
    assert "canary" not in str(error)


@pytest.mark.on_spark("the message is Spark's own")
def test_a_damaged_page_is_named_by_spark_too(spark, parts):
    whole = bytearray((parts / "part-2.parquet").read_bytes())
    whole[30:400] = b"\x77" * 370
    (parts / "part-2.parquet").write_bytes(whole)
    error = fails(lambda: read(spark, Table(path=str(parts)), key="table").toArrow())
    assert isinstance(error, InputError)
    assert f"The table at '{parts}': file part-2.parquet cannot be read (FAILED_READ_FILE" in str(error)


def test_malformed_lines_that_shall_fail_are_an_error_of_the_input(spark, tmp_path):
    (tmp_path / "t.csv").write_text("a;b\n1;x\ncanary\n")
    given = Table(path=str(tmp_path / "t.csv"), format="csv", options={**CSV, "mode": "FAILFAST"})
    error = fails(lambda: read(spark, given, key="table").toArrow())
    assert isinstance(error, InputError)
    assert "canary" not in str(error)


def test_collect_files_read_of_a_catalog_table_states_its_name_format_and_files(spark, tmp_path):
    spark.sql(f"CREATE TABLE rows_of_catalog USING parquet LOCATION '{tmp_path}/rows' AS SELECT 1 AS a")
    spark.table("rows_of_catalog").createOrReplaceTempView("view_of_catalog")
    try:
        for name, form in (("rows_of_catalog", {"format": "parquet"}), ("view_of_catalog", {})):
            found = opened(spark, Table(catalog=name))[1]
            assert found == FilesRead(1, 1, version={"catalog": name, **form})
    finally:
        spark.catalog.dropTempView("view_of_catalog")
        spark.sql("DROP TABLE rows_of_catalog")
