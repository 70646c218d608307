"""Columns that name individuals are found; postcodes, birth dates and columns that do not repeat are not."""

from __future__ import annotations

import numpy as np
import pytest

from privrisk_spark.kernels.arrays import LongArray
from privrisk_spark.kernels.numeric import naming
from privrisk_spark.kernels.numeric.naming import find_naming_columns


def individuals(rows: int, people: int, *, seed: int = 1) -> tuple[LongArray, np.random.Generator]:
    """Return columns: id, birth date, sex, a visit's ward."""
    random = np.random.default_rng(seed)
    who = random.integers(0, people, rows)
    birth, sex = random.integers(0, 20_000, people), random.integers(0, 2, people)
    return np.column_stack([who, birth[who], sex[who], random.integers(0, 9, rows)]).astype(np.int64), random


@pytest.mark.parametrize(("rows", "people"), [(3_000, 76), (3_000, 900), (30_000, 26_000)])
def test_find_naming_columns_id_of_individuals_is_found(rows: int, people: int) -> None:
    codes, _ = individuals(rows, people)
    assert find_naming_columns(codes, [0]) == {0: (1, 2)}


def test_find_naming_columns_some_wrong_and_missing_values_is_found() -> None:
    codes, random = individuals(3_000, 200)
    for column in (1, 2):
        wrong = random.random(len(codes)) < 0.01
        codes[wrong, column] = codes[random.permutation(len(codes))[wrong.nonzero()[0]], column]
        codes[random.random(len(codes)) < 0.05, column] = -1
    codes[random.random(len(codes)) < 0.05, 0] = -1
    assert list(find_naming_columns(codes, [0])) == [0]


def test_find_naming_columns_any_order_of_rows_is_the_same() -> None:
    codes, random = individuals(3_000, 200)
    assert find_naming_columns(codes[random.permutation(len(codes))], range(4)) == find_naming_columns(codes, range(4))


def test_find_naming_columns_postcode_with_city_and_state_is_not_found() -> None:
    random = np.random.default_rng(2)
    postcode = random.integers(0, 400, 5_000)
    city = postcode // 4
    codes = np.column_stack([postcode, city, city // 10, random.integers(0, 2, 5_000)]).astype(np.int64)
    assert find_naming_columns(codes, range(4)) == {}


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
    assert find_naming_columns(codes, [0]) == {}


def test_find_naming_columns_birth_dates_of_many_people_are_not_found() -> None:
    codes, _ = individuals(30_000, 25_000)
    assert find_naming_columns(codes, [1, 2, 3]) == {}


def test_find_naming_columns_no_rows_finds_nothing() -> None:
    assert find_naming_columns(np.zeros((0, 3), dtype=np.int64), range(3)) == {}
    assert find_naming_columns(np.full((50, 3), -1, dtype=np.int64), range(3)) == {}


def test_find_naming_columns_many_unrelated_columns_compares_few_of_them_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    codes, random = individuals(5_000, 300)
    unrelated = np.column_stack([random.integers(0, random.integers(2, 900), 5_000) for _ in range(40)])
    table, compared = np.column_stack([codes, unrelated]).astype(np.int64), 0
    whole = naming._Groups.unexplained

    def unexplained(groups: naming._Groups, of: LongArray) -> float | None:
        nonlocal compared
        compared += 1
        return whole(groups, of)

    monkeypatch.setattr(naming._Groups, "unexplained", unexplained)
    # The birth date of an individual is one of 20,000 here, and so nearly an id itself.
    assert list(find_naming_columns(table, [0, *range(3, 44)])) == [0]
    assert compared < 100


@pytest.mark.parametrize("seed", range(5))
def test_find_naming_columns_comparing_pairs_first_leaves_out_no_determined_column(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    codes, random = individuals(4_000, 150, seed=seed)
    for column, share in ((1, 0.04), (2, 0.04), (3, 0.2)):
        wrong = random.random(len(codes)) < share
        codes[wrong, column] = random.permutation(codes[:, column])[wrong]
    rare = (codes[:, 0] < 3).astype(np.int64)
    table = np.column_stack([codes, rare, np.where(random.random(len(codes)) < 0.5, -1, codes[:, 2])])
    columns = range(table.shape[1])
    expected = [naming.determined_columns(table, column) for column in columns]
    assert expected[0]
    monkeypatch.setattr(naming, "_may_be_determined", lambda *_: True)
    assert expected == [naming.determined_columns(table, column) for column in columns]
