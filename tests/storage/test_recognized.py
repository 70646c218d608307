"""What a table's files are, by names and first bytes."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privrisk_spark.errors import ConfigError
from privrisk_spark.storage.recognized import Recognized, recognized

CSV = {
    "a;b\n1;2,5\n": {"sep": ";", "header": True},
    "a,b\n1,2\n3,4\n": {"header": True},
    "a\tb\n1\t2\n": {"sep": "\t", "header": True},
    '"a","b"\n"x ""y""",2\n': {"escape": '"', "header": True},
    "34,f\n36,m\n": {"header": False},
    "last, first, title;age\nAda;34\nBen;36\n": {"sep": ";", "header": True},
    "only\nx\n": {"sep": ";", "header": True},
}


@pytest.mark.parametrize("text", CSV)
def test_separator_and_header_of_csv(tmp_path: Path, text: str) -> None:
    (tmp_path / "table.csv").write_text(text)
    assert recognized(str(tmp_path / "table.csv")) == Recognized("csv", CSV[text])


def test_an_encoding_that_is_not_utf_8_is_named(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_bytes("näme;b\nä;2\n".encode("latin-1"))
    found = recognized(str(tmp_path / "table.csv"))
    assert found.options == {"encoding": "ISO-8859-1", "sep": ";", "header": True}


def test_directories_by_what_lies_in_them(tmp_path: Path) -> None:
    pq.write_to_dataset(pa.table({"a": [1, 2], "r": ["x", "y"]}), tmp_path / "parts", partition_cols=["r"])
    (tmp_path / "parts" / "_SUCCESS").touch()
    assert recognized(str(tmp_path / "parts")) == Recognized("parquet", {})
    (tmp_path / "lake" / "_delta_log").mkdir(parents=True)
    assert recognized(str(tmp_path / "lake")).format == "delta"
    pq.write_table(pa.table({"a": [1]}), tmp_path / "unnamed")
    assert recognized(str(tmp_path / "unnamed")).format == "parquet"
    assert recognized("s3://bucket/x/table.csv.gz") == Recognized("csv", {"header": True})


@pytest.mark.parametrize("name", ["nothing", "table.doc"])
def test_what_is_not_there_or_unknown_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "table.doc").write_text("x")
    with pytest.raises(ConfigError, match=r"TABLE: (there is nothing|nothing says)"):
        recognized(str(tmp_path / name))
    assert recognized(str(tmp_path / "table.doc"), format="orc").format == "orc"
