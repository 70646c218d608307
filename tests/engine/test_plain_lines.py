"""Lines of CSV files of which the bytes tell that Spark reads them whole, and those of which they do not."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from plain_texts import NOT_PLAIN, PLAIN
from pyspark.sql import SparkSession

from privrisk_spark.engine import plain_lines
from privrisk_spark.engine.plain_lines import collect_plain
from privrisk_spark.kernels.numeric.plain_lines import plain
from privrisk_spark.policy.dictionaries import Table
from privrisk_spark.stages.tables import completeness


@pytest.mark.parametrize("part", [1, 3, 7, 1000])
@pytest.mark.parametrize("block", [1, 5, 1000])
def test_every_line_is_looked_at_wherever_parts_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: int, block: int
) -> None:
    monkeypatch.setattr(plain_lines, "_BLOCK", max(block, 5))
    good = ["a,b", "1,2", "3,4", "5,6", "7,8"]
    file = tmp_path / "t.csv"

    def whole(lines: list[str]) -> bool:
        file.write_text("\n".join(lines) + "\n")
        size = file.stat().st_size
        return all(
            plain_lines._plain_part(file, start, min(start + part, size), b",", 1) for start in range(0, size, part)
        )

    assert whole(good)
    for at in range(len(good)):
        assert not whole([*good[:at], "x", *good[at + 1 :]]), at


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"header": "true"}, True),
        ({"header": "true", "mode": "PERMISSIVE"}, True),
        ({"header": "true", "SEP": ","}, True),
        ({"header": "true", "sep": "::"}, False),
        ({"header": "true", "encoding": "latin1"}, False),
        ({"header": "true", "comment": "#"}, False),
        ({"header": "true", "multiLine": "true"}, False),
    ],
)
def test_only_what_lines_alone_tell_is_plain(
    spark: SparkSession, tmp_path: Path, options: dict[str, str], expected: bool
) -> None:
    for i in range(2):
        (tmp_path / f"{i}.csv").write_text(PLAIN[0])
    table = Table(path=str(tmp_path), format="csv", options=options)
    schema = spark.read.options(header=True).csv(str(tmp_path)).schema
    assert collect_plain(spark, table, schema) is expected
    (tmp_path / "2.csv").write_text(NOT_PLAIN[0])
    assert not collect_plain(spark, table, schema)
    (tmp_path / "2.csv").rename(tmp_path / "2.csv.gz")
    assert not collect_plain(spark, table, schema)


def test_values_of_other_types_may_be_damaged(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(PLAIN[0])
    table = Table(path=str(tmp_path), format="csv", options={"header": "true"})
    frame = spark.read.options(header=True, inferSchema=True).csv(str(tmp_path))
    assert not collect_plain(spark, table, frame.schema)


def test_spark_finds_no_damage_in_plain_lines(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(completeness, "collect_plain", lambda *_: False)
    for i, text in enumerate(PLAIN):
        (tmp_path / f"{i}.csv").write_text(text)
    table = Table(path=str(tmp_path), format="csv", options={"header": "true"})
    frame = spark.read.options(header=True).csv(str(tmp_path))
    assert completeness._collect_damaged(spark, table, frame, "table") == (0, 0)
    assert frame.count() == sum(len(text.splitlines()) - 1 for text in PLAIN)


@pytest.mark.on_spark("the twin is Spark's own parser")
def test_spark_reads_whatever_is_plain_line_by_line(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 20,000 texts of what a parser may stumble over those that are plain, each as a file of its own."""
    monkeypatch.setattr(completeness, "collect_plain", lambda *_: False)
    pick = random.Random(7)
    texts = (
        "".join(pick.choices([",", "\n", '"', " ", "\t", "'", "#", "a", "ü", "\ufeff"], k=9)) for _ in range(20_000)
    )
    found = [text for text in texts if plain(text.encode(), b",", 1)]
    assert len(found) > 100
    assert sum('"' in text for text in found) > 10
    for i, text in enumerate(found):
        (tmp_path / f"{i}.csv").write_text(text)
    table = Table(path=str(tmp_path), format="csv", options={})
    frame = spark.read.schema("a string, b string").csv(str(tmp_path))
    assert completeness._collect_damaged(spark, table, frame, "table") == (0, 0)
    assert frame.count() == sum(len(text.rstrip("\n").split("\n")) for text in found)


def test_plain_lines_are_not_parsed_for_damage(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "t.csv").write_text(PLAIN[0])
    table = Table(path=str(tmp_path), format="csv", options={"header": "true"})
    frame = spark.read.options(header=True).csv(str(tmp_path))
    monkeypatch.setattr(completeness, "column", None)  # what the parse needs
    found = completeness.collect_files_read(spark, table, frame, key="table")
    assert found is not None
    assert (found.malformed, found.garbled) == (0, 0)
