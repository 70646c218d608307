"""What a table's files are, by names and first rows."""

from __future__ import annotations

import bz2
import gzip
from pathlib import Path
from typing import Any
from uuid import uuid4

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.s3_server import BUCKET
from privrisk_spark.errors import ConfigError
from privrisk_spark.storage.locations import locate
from privrisk_spark.storage.opening import open_store
from privrisk_spark.tables.recognized import Recognized, recognize_table

CSV: dict[str, dict[str, Any]] = {
    "a;b\n1;2,5\n": {"sep": ";", "header": True},
    "a,b\n1,2\n3,4\n": {"header": True},
    "a\tb\n1\t2\n": {"sep": "\t", "header": True},
    '"a","b"\n"x ""y""",2\n': {"header": True},
    '"a","b"\n"x \\"y\\", z",2\n"u",3\n': {"escape": "\\", "header": True},
    "34,f\n36,m\n": {"header": False},
    "39,State-gov,5\n50,Private,6\n38,State-gov,7\n": {"header": False},
    "last, first, title;age\nAda;34\nBen;36\n": {"sep": ";", "header": True},
    ",age,sex\n0,34,f\n1,36,m\n": {"header": True},
    '"","age","sex"\n"1",34,"f"\n"2",36,"m"\n': {"header": True},
    "sex,city\nf,Ulm\nm,Bonn\nm,Ulm\nf,Bonn\n": {"header": True},
    "f,Ulm\nm,Bonn\nf,Bonn\nm,Ulm\n": {"header": False},
    "Report 2020;;\n;;\nid;age;sex\n1;34;f\n2;36;m\n3;38;f\n": {"sep": ";", "skipRows": 2, "header": True},
    "sep=;\nid;age\n1;34\n2;36\n": {"sep": ";", "skipRows": 1, "header": True},
    "full name\nAnna Meier\nBen Bauer\nAnna Meier\nAnna Meier\n": {"header": True},
    'id,t\n1,"say \\"x\\", 1"\n2,"y"\n': {"escape": "\\", "header": True},
    "when;what\n01.02.2026;x\n02.02.2026;x\n": {"sep": ";", "header": True},
    "Report 2026\n\na;b\n1;2\n3;4\n": {"sep": ";", "skipRows": 2, "header": True},
    'a,b\n1,"two\nlines"\n2,x\n': {"multiLine": True, "header": True},
    '"a" "b"\n1 2\n3 4\n': {"sep": " ", "header": True},
    "NA,b\nx,1\ny,NA\n": {"header": True},
    "a,b\rx,1\ry,2\r": {"header": True},
}


@pytest.mark.parametrize("text", CSV)
def test_recognize_table_of_csv_finds_separator_quoting_and_header(tmp_path: Path, text: str) -> None:
    (tmp_path / "table.csv").write_bytes(text.encode())
    assert recognize_table(str(tmp_path / "table.csv")) == Recognized("csv", CSV[text])


def test_recognize_table_takes_given_options_for_true(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("1;2\n3;4\n")
    found = recognize_table(str(tmp_path / "table.csv"), options={"header": "true"})
    assert found.options == {"sep": ";", "header": "true"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('"age" "sex"\n"1" 34 "f"\n"2" 36 "m"\n', "one name less than the rows have values, as write.table of R"),
        (",0,1\n0,34,5\n1,36,6\n", "the first row may be a header or a record. Fix: give --option header=true"),
        ("only\nx\n", "the first row may be a header or a record"),
        ("name,town\nAda,Ulm\nBen,Bonn\n", "the first row may be a header or a record"),
        ("age,2019,2020\n34,7,8\n36,9,10\n", "the first row may be a header or a record"),
        ("1,>89,m\n2,34,f\n3,36,m\n4,38,f\n", "the first row may be a header or a record"),
        ("sex,town\nf,x\nm,town\nf,x\nm,x\n", "the first row may be a header or a record"),
        ("id,a\n1,f\n2,m\nid,a\n3,f\n4,m\n5,f\n", "the first row may be a header or a record"),
        (",age,\n1,34,f\n2,36,m\n", "the first row may be a header or a record"),
        ("# source: register, extract 4\nid,age\n1,34\n2,36\n", "the first line begins with '#'. Fix: give --option"),
        ("id,2019,2020\nx,7,8\ny,9,10\n", "the first row may be a header or a record"),
        ("1990,1991,1992\n1,2,3\n4,5,6\n", "the first row may be a header or a record"),
    ],
)
def test_recognize_table_of_unclear_header_asks(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "table.csv").write_text(text)
    with pytest.raises(ConfigError, match=message):
        recognize_table(str(tmp_path / "table.csv"))


@pytest.mark.parametrize(
    ("encoding", "text", "expected"),
    [
        ("latin-1", "näme;b\nä;2\n", "ISO-8859-1"),
        ("cp1252", "näme;b\n€;2\n", "windows-1252"),
        ("cp1252", "b;näme\n2;" + "x" * 2**19 + "\n3;€\n", "windows-1252"),
        ("utf-16", "näme;b\nä;2\n", "UTF-16"),
        ("utf-16-le", "näme;b\nä;2\n", "UTF-16LE"),
        ("utf-16-be", "näme;b\nä;2\n", "UTF-16BE"),
        ("utf-8-sig", "näme;b\nä;2\n", None),
        ("utf-8", "b;näme\n2;" + "x" * 2**19 + "\n3;€\n", None),
    ],
)
@pytest.mark.parametrize(("ending", "pack"), [("", bytes), (".gz", gzip.compress), (".bz2", bz2.compress)])
def test_recognize_table_names_the_encoding(
    tmp_path: Path, encoding: str, text: str, expected: str | None, ending: str, pack: Any
) -> None:
    place = tmp_path / f"table.csv{ending}"
    place.write_bytes(pack(text.encode(encoding)))
    found = recognize_table(str(place))
    assert found.options == {"sep": ";", "header": True} | ({} if expected is None else {"encoding": expected})


def test_recognize_table_of_csv_of_pandas_finds_its_header(tmp_path: Path) -> None:
    frame = pd.DataFrame({"age": [34, 36, 61], "sex": ["f", "m", None]})
    frame.to_csv(tmp_path / "table.csv")
    assert recognize_table(str(tmp_path / "table.csv")).options == {"header": True}


def test_directories_by_what_lies_in_them(tmp_path: Path) -> None:
    pq.write_to_dataset(pa.table({"a": [1, 2], "r": ["x", "y"]}), tmp_path / "parts", partition_cols=["r"])
    (tmp_path / "parts" / "_SUCCESS").touch()
    assert recognize_table(str(tmp_path / "parts")) == Recognized("parquet", {})
    (tmp_path / "lake" / "_delta_log").mkdir(parents=True)
    (tmp_path / "lake" / "_delta_log" / "0.json").touch()
    assert recognize_table(str(tmp_path / "lake")).format == "delta"
    pq.write_table(pa.table({"a": [1]}), tmp_path / "unnamed")
    assert recognize_table(str(tmp_path / "unnamed")).format == "parquet"


@pytest.mark.parametrize(("log", "form"), [("_delta_log/0.json", "delta"), ("metadata/v1.metadata.json", "iceberg")])
def test_recognize_table_of_a_lake_in_an_object_store_finds_its_log(
    endpoint: str, tmp_path: Path, log: str, form: str
) -> None:
    del endpoint
    (tmp_path / "a").write_text("{}")
    uri = f"s3://{BUCKET}/{uuid4().hex}"
    store = open_store(locate(uri, key="TABLE"))
    for name in ("part-0.parquet", log):
        store.upload(name, tmp_path / "a")
    assert recognize_table(uri).format == form


def test_recognize_table_in_an_object_store_reads_its_first_rows(endpoint: str, tmp_path: Path) -> None:
    del endpoint
    (tmp_path / "a.csv").write_text("34;f\n36;m\n")
    uri = f"s3://{BUCKET}/{uuid4().hex}"
    with pytest.raises(ConfigError, match=r"has no files\. Fix: name a file or a directory of files"):
        recognize_table(uri)
    open_store(locate(uri, key="TABLE")).upload("a.csv", tmp_path / "a.csv")
    for path in (uri, f"{uri}/a.csv"):
        assert recognize_table(path) == Recognized("csv", {"sep": ";", "header": False})


@pytest.mark.parametrize("name", ["table.XLSX", "table.sav"])
def test_recognize_table_of_another_program_names_it(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"PK")
    with pytest.raises(ConfigError, match=r"is a file of (Excel|SPSS), which is not read\. Fix: write CSV in UTF-8"):
        recognize_table(str(tmp_path / name))


@pytest.mark.parametrize("name", ["nothing", "table.doc"])
def test_what_is_not_there_or_unknown_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "table.doc").write_text("x")
    with pytest.raises(ConfigError, match=r"TABLE: (.*nothing' does not exist|no name and no first bytes)"):
        recognize_table(str(tmp_path / name))
    assert recognize_table(str(tmp_path / "table.doc"), format="orc").format == "orc"
