from __future__ import annotations

import naive_attribute_attacks as naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.attack.kernels.transparency import exact_links


@given(st.lists(st.tuples(st.integers(1, 6), st.integers(0, 6)), max_size=8), st.booleans())
def test_links_are_those_of_loops(drawn: list[tuple[int, int]], kept: bool) -> None:
    people, released = [n for n, _ in drawn], [min(n, f) for n, f in drawn]
    found = exact_links(np.array(people, dtype=np.int64), np.array(released, dtype=np.int64), kept=kept)
    of_people, of_rows = naive.exact_links(people, released, kept=kept)
    np.testing.assert_allclose(found.person, [float(one) for one in of_people], atol=1e-15)
    np.testing.assert_allclose(found.row, [float(one) for one in of_rows], atol=1e-15)
    assert found.shown.sum() == (sum(people) if kept else sum(released))
    assert found.people_found.tried == sum(people)


def test_a_suppressed_row_is_of_somebody_whose_class_is_not_released() -> None:
    """Classes of 5, 6, 2 and 1 people, 5-anonymous: the three suppressed rows are of three people, and not of 14."""
    people, released = np.array([5, 6, 2, 1]), np.array([5, 6, 0, 0])
    found = exact_links(people, released, kept=True, k=5)
    assert found.suspects == 3
    assert found.rows.tolist() == [5, 6, 3, 3]
    np.testing.assert_allclose(found.person, [1 / 5, 1 / 6, 1 / 3, 1 / 3], atol=1e-15)
    np.testing.assert_allclose(found.row, [1 / 5, 1 / 6, 1 / 3, 1 / 3], atol=1e-15)
    assert found.people_found.correct == pytest.approx(3, abs=1e-12)  # one in each class, and one of the suppressed
    gone = exact_links(people, released, kept=False, k=5)
    assert (gone.people_found.correct, gone.rows_found.tried) == (pytest.approx(2, abs=1e-12), 11)
    assert gone.suspects == 0


@given(st.lists(st.integers(1, 9), min_size=1, max_size=8), st.integers(1, 9))
def test_no_class_of_k_gives_more_than_one_in_k_away(people: list[int], k: int) -> None:
    sizes = np.array(people)
    found = exact_links(sizes, np.where(sizes >= k, sizes, 0), kept=True, k=k)
    assert (found.person[sizes >= k] <= 1 / k).all()
    lost = int(sizes[sizes < k].sum())
    classes = int((sizes >= k).sum()) + (lost > 0)
    assert found.people_found.correct == pytest.approx(classes, abs=1e-9)


def test_another_scheme_is_refused() -> None:
    with pytest.raises(InputError, match="not those of the release"):
        exact_links(np.array([2]), np.array([3]), kept=True)
    with pytest.raises(InputError, match="classes of 2 people or more"):
        exact_links(np.array([3]), np.array([0]), kept=True, k=2)
    nothing = np.zeros(0, dtype=np.int64)
    assert exact_links(nothing, nothing, kept=True).people_found.tried == 0
