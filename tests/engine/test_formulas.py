"""Texts that a spreadsheet would run are quoted, and every text comes back."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import types as T

from privrisk_spark.engine.formulas import quoted_names, with_quoted_formulas, without_quoted_formulas

TEXTS = [
    "=1+1",
    "+5",
    "-5",
    "@x",
    "\tx",
    "\rx",
    "'=1",
    "''@",
    "'a",
    "a=1",
    " =1",
    "",
    None,
    "*",
    "'",
    "'\nx",
    "ü",
    "\n=1",
    "＝1",
    "＋1",
    "－1",
    "＠x",
    "'＝1",
    "x＝",
]
MARKS = "=+-@\t\r\n＝＋－＠"


def test_texts_that_would_run_are_quoted_and_all_come_back(spark):
    found = with_quoted_formulas(pa.array(TEXTS)).to_pylist()
    assert not any(text and text[0] in MARKS for text in found)
    assert found == [f"'{t}" if t is not None and t.lstrip("'")[:1] in set(MARKS) else t for t in TEXTS]
    quoted = spark.createDataFrame([(text, -1) for text in found], "`a.b` string, n int")
    assert without_quoted_formulas(quoted).toArrow().column(0).to_pylist() == TEXTS


def test_quoted_names_are_no_formulas_and_all_come_back(spark):
    names = [text for text in TEXTS if text]
    quoted = quoted_names(names)
    assert not any(name[0] in MARKS for name in quoted)
    assert len(set(quoted)) == len(names)
    schema = T.StructType([T.StructField(name, T.StringType()) for name in quoted])
    frame = spark.createDataFrame([tuple("x" for _ in quoted)], schema)
    assert without_quoted_formulas(frame).columns == names
