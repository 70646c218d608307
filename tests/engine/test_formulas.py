"""Texts that a spreadsheet would run are quoted, and every text comes back."""

from __future__ import annotations

from privrisk_spark.engine.formulas import with_quoted_formulas, without_quoted_formulas

TEXTS = ["=1+1", "+5", "-5", "@x", "\tx", "\rx", "'=1", "''@", "'a", "a=1", " =1", "", None, "*", "'", "'\nx", "ü"]


def test_texts_that_would_run_are_quoted_and_all_come_back(spark):
    frame = spark.createDataFrame([(text, -1) for text in TEXTS], "`a.b` string, n int")
    quoted = with_quoted_formulas(frame)
    found = quoted.toArrow().column(0).to_pylist()
    assert not any(text and text[0] in "=+-@\t\r" for text in found)
    assert found == [f"'{t}" if t is not None and t.lstrip("'")[:1] in set("=+-@\t\r") else t for t in TEXTS]
    assert without_quoted_formulas(quoted).toArrow().to_pylist() == frame.toArrow().to_pylist()
