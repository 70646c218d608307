"""Columns that name individuals are found; postcodes, birth dates and columns that do not repeat are not."""

from __future__ import annotations

import numpy as np
import pytest

from privrisk_spark.kernels.arrays import LongArray
from privrisk_spark.kernels.numeric.naming import NamingColumn, find_naming_columns


def individuals(rows: int, people: int, *, seed: int = 1) -> tuple[LongArray, np.random.Generator]:
    """Return columns: id, birth date, sex, a visit's ward."""
    random = np.random.default_rng(seed)
    who = random.integers(0, people, rows)
    birth, sex = random.integers(0, 20_000, people), random.integers(0, 2, people)
    return np.column_stack([who, birth[who], sex[who], random.integers(0, 9, rows)]).astype(np.int64), random


@pytest.mark.parametrize(("rows", "people"), [(3_000, 76), (3_000, 900), (30_000, 26_000)])
def test_find_naming_columns_id_of_individuals_is_found(rows: int, people: int) -> None:
    codes, _ = individuals(rows, people)
    assert find_naming_columns(codes, [0]) == [NamingColumn(0, (1, 2))]


def test_find_naming_columns_some_wrong_and_missing_values_is_found() -> None:
    codes, random = individuals(3_000, 200)
    for column in (1, 2):
        wrong = random.random(len(codes)) < 0.01
        codes[wrong, column] = codes[random.permutation(len(codes))[wrong.nonzero()[0]], column]
        codes[random.random(len(codes)) < 0.05, column] = -1
    codes[random.random(len(codes)) < 0.05, 0] = -1
    assert [one.column for one in find_naming_columns(codes, [0])] == [0]


def test_find_naming_columns_any_order_of_rows_is_the_same() -> None:
    codes, random = individuals(3_000, 200)
    assert find_naming_columns(codes[random.permutation(len(codes))], range(4)) == find_naming_columns(codes, range(4))


def test_find_naming_columns_postcode_with_city_and_state_is_not_found() -> None:
    random = np.random.default_rng(2)
    postcode = random.integers(0, 400, 5_000)
    city = postcode // 4
    codes = np.column_stack([postcode, city, city // 10, random.integers(0, 2, 5_000)]).astype(np.int64)
    assert find_naming_columns(codes, range(4)) == []


@pytest.mark.parametrize("changed", ["does not repeat", "few values", "one determined", "unrelated"])
def test_find_naming_columns_without_a_condition_is_not_found(changed: str) -> None:
    codes, random = individuals(3_000, 200)
    if changed == "does not repeat":
        codes[:, 0] = np.arange(len(codes))
    elif changed == "few values":
        codes, _ = individuals(3_000, 19)
    elif changed == "one determined":
        codes[:, 1] = random.integers(0, 20_000, len(codes))
    else:
        codes[:, 0] = random.permutation(codes[:, 0])
    assert find_naming_columns(codes, [0]) == []


def test_find_naming_columns_birth_dates_of_many_people_are_not_found() -> None:
    codes, _ = individuals(30_000, 25_000)
    assert find_naming_columns(codes, [1, 2, 3]) == []


def test_find_naming_columns_no_rows_finds_nothing() -> None:
    assert find_naming_columns(np.zeros((0, 3), dtype=np.int64), range(3)) == []
    assert find_naming_columns(np.full((50, 3), -1, dtype=np.int64), range(3)) == []
