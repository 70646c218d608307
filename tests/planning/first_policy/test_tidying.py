"""How texts must be cleaned so that they are numbers or dates."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from privrisk_spark.planning.first_policy.columns import column_profile
from privrisk_spark.planning.first_policy.draft import _coarser
from privrisk_spark.planning.first_policy.patterns import matches
from privrisk_spark.planning.first_policy.tidying import find_cleaning, reading
from privrisk_spark.results.profile import QUANTILES, ColumnProfile


def profiled(values: list[str], **figures: Any) -> ColumnProfile:
    found = {"missing": 0, "blank": 0, "distinct": len(set(values)), "numbers": 0, "leadingzeros": 0, **figures}
    counts = {value: values.count(value) for value in values}
    return column_profile("x", "string", len(values), found, values, counts)


@pytest.mark.parametrize(
    ("values", "read", "doubt"),
    [
        (["1", "2.5", "-3e2"], {}, ""),
        (["34", "NA", "36"], {"null_if": ["NA"]}, ""),
        (["34", " n/a", "36 ", "-"], {"trim": True, "null_if": ["-", "n/a"]}, ""),
        (["2026-01-02", ".", "2026-01-03"], {"null_if": ["."]}, ""),
        (["2026-01-02", "2026-01-03"], {}, ""),
        (["1,5", "20,25"], {"number": {"decimal": ","}}, ""),
        (["1.234,5", "7"], {"number": {"decimal": ",", "thousands": "."}}, ""),
        (["1.234.567", "7"], {"number": {"decimal": ",", "thousands": "."}}, ""),
        (["1,234.5", "7"], {"number": {"decimal": ".", "thousands": ","}}, ""),
        (["1,234,567", "7"], {"number": {"decimal": ".", "thousands": ","}}, ""),
        (["1'234.5", "7", "#N/A"], {"null_if": ["#N/A"], "number": {"decimal": ".", "thousands": "'"}}, ""),
        (["1 234,5", "7"], {"number": {"decimal": ",", "thousands": " "}}, ""),
        (["1.234", "5.678", "7"], {}, "three digits follow each point"),
        (["1,234", "5,678", "7"], {"number": {"decimal": ","}}, "three digits follow each comma"),
        (["1.234", "0.678", "7"], {}, ""),
        (["01067", "02,5"], {}, ""),
        (["NA", "x"], {}, ""),
        (["NA", "-"], {}, ""),
        (["1.234,5", "1,234.5"], {}, ""),
    ],
)
def test_find_cleaning_of_texts_returns_words_and_marks(values: list[str], read: dict[str, Any], doubt: str) -> None:
    found = find_cleaning(profiled(values))
    assert found[0] == read
    assert found[1].startswith(doubt) == bool(doubt or not found[1])


def test_reading_of_a_cleaned_column_keeps_how_it_was_cleaned() -> None:
    column = replace(profiled(["1", "2"], numbers=2), read={"null_if": ["NA"], "number": {"decimal": ","}})
    read, reason = reading(column, "unknown")
    assert read == {"null_if": ["NA"], "number": {"decimal": ","}}
    assert "words that stand for a missing value" in reason
    assert "other marks than a point" in reason


@pytest.mark.parametrize(
    ("value", "is_phone"),
    [("52.520008", False), ("8.4037", False), ("0.123456789", False), ("030 1234567", True), ("+49 30 1234567", True),
     ("040.1234567", True), ("0228-123456", True)],
)  # fmt: skip
def test_matches_of_a_decimal_number_is_no_telephone_number(value: str, is_phone: bool) -> None:
    assert matches("phone", value) == is_phone


def test_coarser_of_numbers_hides_the_least_and_the_greatest() -> None:
    quantiles = [100.0 + 10 * i for i in range(len(QUANTILES))]
    column = profiled(["100", "260"], numbers=2, quantiles=quantiles)
    assert _coarser(column) == {"bottom_code": 100, "top_code": 260, "round": 10}
