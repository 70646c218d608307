"""Levels of records as tasks find them, against a dictionary."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from privrisk_spark.engine.stored_levels import StoredLevels
from privrisk_spark.errors import InternalError
from privrisk_spark.storage.parts import LocalParts, PartDirectory

HEIGHTS = (3, 2)
Vectors = list[tuple[int, int]]


@pytest.fixture
def codes() -> np.ndarray:
    """Records in no order, some twice, with codes of zero bytes."""
    generator = np.random.default_rng(7)
    return generator.choice([0, 1, 255, 256, 65536, 2**24], size=(60, 2)).astype(np.int32)


def place(tmp_path: Path) -> PartDirectory:
    return LocalParts(str(tmp_path)).below("levels")


def check(stored: StoredLevels, codes: np.ndarray, expected: dict[tuple[int, int], tuple[int, ...] | None]) -> None:
    """Also of another process, which maps the files."""
    for one in (stored, pickle.loads(pickle.dumps(stored))):
        levels, suppressed = one.of(codes)
        assert levels.dtype == np.int8
        assert levels.shape == codes.shape
        assert suppressed.tolist() == [expected[tuple(row)] is None for row in codes.tolist()]
        assert [tuple(row) for row in levels.tolist()] == [expected[tuple(row)] or HEIGHTS for row in codes.tolist()]
    assert stored.of(codes[:0])[0].shape == (0, 2)
    assert stored.of(codes[:0])[1].tolist() == []


def test_a_scheme_is_that_of_every_record_that_is_not_listed(codes: np.ndarray, tmp_path: Path) -> None:
    different = sorted(set(map(tuple, codes.tolist())))
    listed = different[::3][::-1]
    stored = StoredLevels.of_scheme((1, 0), np.array(listed, dtype=np.int32), HEIGHTS, place(tmp_path))
    check(stored, codes, {one: None if one in listed else (1, 0) for one in different})
    assert not stored.of(np.array([[7, 7]], dtype=np.int32))[1].any(), "one that the table has not is not suppressed"


@pytest.mark.parametrize("all_of_them", [True, False])
def test_a_scheme_may_suppress_all_or_nothing(codes: np.ndarray, tmp_path: Path, all_of_them: bool) -> None:
    different = np.unique(codes, axis=0)
    listed = different if all_of_them else different[:0]
    stored = StoredLevels.of_scheme((0, 2), listed, HEIGHTS, place(tmp_path))
    check(stored, codes, {tuple(one): None if all_of_them else (0, 2) for one in different.tolist()})


def test_every_record_may_have_its_own_levels(codes: np.ndarray, tmp_path: Path) -> None:
    different = np.unique(codes, axis=0)
    generator = np.random.default_rng(8)
    vectors = different[generator.permutation(len(different))]
    levels = generator.integers(0, 3, vectors.shape).astype(np.int8)
    levels[::4, 1] = -1
    expected = {
        tuple(one): None if min(of) < 0 else tuple(of)
        for one, of in zip(vectors.tolist(), levels.tolist(), strict=True)
    }
    assert None in expected.values()
    check(StoredLevels.of_records(vectors, levels, HEIGHTS, place(tmp_path)), codes, expected)


def test_what_a_task_holds_is_not_the_list(codes: np.ndarray, tmp_path: Path) -> None:
    many = np.arange(200_000, dtype=np.int32).reshape(-1, 2)
    stored = StoredLevels.of_scheme((1, 0), many, HEIGHTS, place(tmp_path))
    assert len(pickle.dumps(stored)) < 2_000
    assert stored.of(many)[1].all()


def test_a_record_that_was_not_recoded_gets_no_others_levels(tmp_path: Path) -> None:
    vectors, levels = np.array([[0, 1], [2, 3]], dtype=np.int32), np.array([[1, 0], [0, 1]], dtype=np.int8)
    (tmp_path / "records").mkdir()
    stored = StoredLevels.of_records(vectors, levels, (2, 2), LocalParts(str(tmp_path / "records")))
    assert stored.of(vectors[[1, 0, 1]])[0].tolist() == [[0, 1], [1, 0], [0, 1]]
    with pytest.raises(InternalError, match="not among those"):
        stored.of(np.array([[0, 1], [0, 2]], dtype=np.int32))
