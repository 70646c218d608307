from __future__ import annotations

import naive_probabilistic
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.attack.kernels import assignment
from privrisk_spark.extensions.attack.kernels.assignment import Owners, assigned, right_links


def longs(values: list[int]) -> np.ndarray:
    return np.array(values, dtype=np.int64)


@st.composite
def blocks(draw: st.DrawFn):
    """Few values of weights, so that ties are many; at most four rows on each side."""
    known_rows = draw(st.lists(st.integers(1, 3), min_size=1, max_size=4).filter(lambda rows: sum(rows) <= 4))
    rows = draw(st.lists(st.integers(1, 3), min_size=1, max_size=4).filter(lambda rows: sum(rows) <= 4))
    value = st.sampled_from([-2.0, 0.0, 0.5, 1.0, 1.25, 3.0])
    weights = [draw(st.lists(value, min_size=len(rows), max_size=len(rows))) for _ in known_rows]
    threshold = draw(st.sampled_from([-1.0, 0.0, 0.5, 5.0]))
    own = []
    left, right = list(known_rows), list(rows)
    for a in range(len(left)):
        for b in range(len(right)):
            t = draw(st.integers(0, min(left[a], right[b])))
            left[a], right[b] = left[a] - t, right[b] - t
            if t:
                own.append((a, b, t))
    return weights, known_rows, rows, threshold, own


@pytest.mark.parametrize("by", ["rows", "transport"])
@given(drawn=blocks())
@settings(max_examples=50)
def test_links_are_the_best_of_all_permutations(by: str, drawn) -> None:
    weights, known_rows, rows, threshold, own = drawn
    best, fewest, most = naive_probabilistic.best_assignments(weights, known_rows, rows, threshold, own)
    owners = Owners(*(longs([one[i] for one in own]) for i in range(3)))
    given_ = np.array(weights), longs(known_rows), longs(rows)
    with pytest.MonkeyPatch.context() as patched:
        if by == "transport":
            patched.setattr(assignment, "MOST_CELLS", -1)
        found = assigned(*given_, threshold=threshold)
        assert found.gain == pytest.approx(best, abs=1e-9)
        low, high = right_links(*given_, owners, threshold=threshold)
        assert (low, high) == (pytest.approx(fewest, abs=1e-5), pytest.approx(most, abs=1e-5))
    assert (np.bincount(found.known, found.links, len(known_rows)) <= known_rows).all()
    assert (np.bincount(found.record, found.links, len(rows)) <= rows).all()
    assert (given_[0][found.known, found.record] > threshold).all()
    assert (found.links > 0).all()


def test_the_best_for_each_is_not_the_best_for_all() -> None:
    """Both known rows like the first record best; together 4 + 3 is more than 5 + 1."""
    found = assigned(np.array([[5.0, 3.0], [4.0, 1.0]]), longs([1, 1]), longs([1, 1]), threshold=0)
    assert (found.known.tolist(), found.record.tolist(), found.links.tolist()) == ([0, 1], [1, 0], [1, 1])
    assert (found.gain, found.total) == (7.0, 2)
    # Above 1.5 the crossed links gain 1.5 + 2.5 against 3.5 of one; above 2.5 one link of 2.5 is more than 0.5 + 1.5.
    for threshold, links in ((1.5, [0, 1]), (2.5, [0])):
        again = assigned(np.array([[5.0, 3.0], [4.0, 1.0]]), longs([1, 1]), longs([1, 1]), threshold=threshold)
        assert again.known.tolist() == links


def test_equal_rows_are_exchangeable() -> None:
    """Three equal persons drawn for three equal rows: one is expected at its own place, however many they are."""
    for n in (1, 3, 10_000):
        one = np.array([[2.0]]), longs([n]), longs([n])
        assert assigned(*one, threshold=0).links.tolist() == [n]
        found = right_links(*one, Owners(longs([0]), longs([0]), longs([n])), threshold=0)
        assert found == (pytest.approx(1, abs=1e-6), pytest.approx(1, abs=1e-6))


def test_ties_are_between_the_fewest_and_the_most() -> None:
    """Two persons who differ where the rows do not: straight and crossed are one weight, both right or both wrong."""
    block = np.array([[1.0, 2.0], [3.0, 4.0]]), longs([1, 1]), longs([1, 1])
    owners = Owners(longs([0, 1]), longs([0, 1]), longs([1, 1]))
    assert right_links(*block, owners, threshold=0) == (0.0, 2.0)


def test_many_rows_go_by_transport() -> None:
    """A million rows in fifty distinct ones on each side: the weight of both ways is one."""
    generator = np.random.default_rng(4)
    weights = generator.normal(0, 5, (50, 50))
    few = longs(generator.integers(1, 20, 50).tolist()), longs(generator.integers(1, 20, 50).tolist())
    by_rows = assigned(weights, *few, threshold=1)
    many = assigned(weights, few[0] * 2000, few[1] * 2000, threshold=1)
    assert many.gain == pytest.approx(2000 * by_rows.gain, rel=1e-12)
    assert many.total > 10**5


def test_what_cannot_be_assigned_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for weights, mine, theirs in (
        (np.zeros((1, 2)), [1], [1]),
        (np.zeros((1, 1)), [0], [1]),
        (np.zeros((1, 1)), [1], [0]),
    ):
        with pytest.raises(InputError, match="at least 1 row"):
            assigned(weights, longs(mine), longs(theirs), threshold=0)
    one = Owners(longs([0]), longs([0]), longs([2]))
    with pytest.raises(InputError, match="no more persons"):
        right_links(np.ones((1, 1)), longs([1]), longs([3]), one, threshold=0)
    monkeypatch.setattr(assignment, "MOST_CELLS", 3)
    monkeypatch.setattr(assignment, "MOST_ARCS", 1)
    with pytest.raises(InputError, match="take smaller blocks"):
        assigned(np.ones((2, 2)), longs([1, 1]), longs([1, 1]), threshold=0)
    assert assigned(np.ones((2, 2)), longs([1, 1]), longs([1, 1]), threshold=1).total == 0
