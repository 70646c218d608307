from __future__ import annotations

from fractions import Fraction

import naive_attribute_attacks as naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.linkage.minimality import Parts, credibility

Class = tuple[list[naive.Part], int]


def parts_of(classes: list[Class]) -> Parts:
    parts = [part for of, _ in classes for part in of]
    return Parts(
        np.repeat(np.arange(len(classes)), [len(of) for of, _ in classes]),
        np.array([inside for inside, _, _ in parts], dtype=np.int64),
        np.array([holders for _, holders in classes], dtype=np.int64),
        np.array([outside for _, outside, _ in parts], dtype=np.int64),
        np.array([seen for _, _, seen in parts], dtype=np.int64),
    )


@st.composite
def classes_of(draw: st.DrawFn, most: int) -> list[Class]:
    result = []
    for _ in range(draw(st.integers(1, most))):
        parts = []
        for inside in draw(st.lists(st.integers(1, 3), min_size=1, max_size=3)):
            outside = draw(st.integers(0, 3))
            parts.append((inside, outside, draw(st.integers(0, outside))))
        result.append((parts, draw(st.integers(0, sum(inside for inside, _, _ in parts)))))
    return result


@given(classes_of(3), st.sampled_from([(1, 2), (1, 3), (2, 3), (1, 1)]), st.integers(1, 4))
@settings(deadline=None)
def test_each_class_by_all_its_tables(classes: list[Class], limit: tuple[int, int], k: int) -> None:
    alpha = Fraction(*limit)
    found = credibility(parts_of(classes), alpha=float(alpha), k=k, recoding="local")
    expected = [of for one in naive.credibility(classes, alpha, k, together=False) for of in one]
    assert found.possible.tolist() == [one is not None for one in expected]
    told = [float(now if now is not None else before) for now, before in zip(expected, found.before, strict=True)]
    np.testing.assert_allclose(found.after, told, atol=1e-11)
    before = [Fraction(holders, sum(n for n, _, _ in of)) for of, holders in classes for _ in of]
    np.testing.assert_allclose(found.before, [float(one) for one in before], atol=1e-15)


@given(classes_of(2), st.sampled_from([(1, 2), (1, 3), (1, 1)]), st.integers(1, 3))
@settings(deadline=None)
def test_all_classes_by_all_tables(classes: list[Class], limit: tuple[int, int], k: int) -> None:
    alpha = Fraction(*limit)
    found = credibility(parts_of(classes), alpha=float(alpha), k=k, recoding="global")
    expected = [of for one in naive.credibility(classes, alpha, k, together=True) for of in one]
    assert found.possible.tolist() == [one is not None for one in expected]
    told = [float(now if now is not None else before) for now, before in zip(expected, found.before, strict=True)]
    np.testing.assert_allclose(found.after, told, atol=1e-11)


def test_two_who_must_be_ill() -> None:
    """Wong et al. 2007: two people of q1 and four of q2; two of each are released as Q, two of them ill, 2-diverse.

    Were one of the ill of q2, it would have at most 1 of 4 and q1 1 of 2, and nothing would be generalized; were both,
    q2 would have 2 of 4, and the same. So both are of q1: a credibility of 1 where 2-diversity promises 1/2.
    """
    parts = Parts(np.array([0, 0]), np.array([2, 2]), np.array([2]), np.array([0, 2]), np.array([0, 0]))
    found = credibility(parts, alpha=1 / 2, recoding="local")
    np.testing.assert_allclose(found.after, [1, 0], atol=1e-12)
    assert found.before.tolist() == [0.5, 0.5]
    assert found.m == pytest.approx(1, abs=1e-12)
    assert (found.above(0.5).correct, found.above(0.5).tried) == (2, 4)
    # If all of q2 is generalized too, nothing else changes: 2 of 6, and q1 must have them all.
    whole = Parts(np.array([0, 0]), np.array([2, 4]), np.array([2]))
    np.testing.assert_allclose(credibility(whole, alpha=1 / 2, recoding="global").after, [1, 0], atol=1e-12)
    # 3 of 6 ill: either q1 has 2 of 2, in C(2,2) C(4,1) = 4 tables, or q2 has 3 of 4, in C(4,3) = 4 tables.
    more = credibility(Parts(np.array([0, 0]), np.array([2, 4]), np.array([3])), alpha=1 / 2, recoding="local")
    # So q1 is expected to have (4 · 2 + 4 · 0)/8 = 1 of 2, and q2 the other 2 of 4: nothing is learned.
    np.testing.assert_allclose(more.after, [0.5, 0.5], atol=1e-12)


def test_what_was_generalized_for_its_size_tells_nothing() -> None:
    parts = Parts(np.array([0, 0]), np.array([2, 2]), np.array([2]), np.array([0, 2]), np.array([0, 0]))
    found = credibility(parts, alpha=1 / 2, k=3, recoding="local")
    np.testing.assert_allclose(found.after, [0.5, 0.5], atol=1e-12)
    assert found.m == pytest.approx(2, abs=1e-12)
    # Where no table violates, there was another reason.
    fine = credibility(Parts(np.array([0, 0]), np.array([4, 4]), np.array([1])), alpha=1 / 2, recoding="local")
    assert not fine.possible.any()
    assert fine.after.tolist() == fine.before.tolist() == [1 / 8, 1 / 8]
    nobody = credibility(Parts(np.array([0]), np.array([4]), np.array([0])), alpha=1 / 2, recoding="global")
    assert nobody.m == np.inf


def test_improbable_tables_are_told() -> None:
    """3,000 of 10,000 are ill, and only a part of 4,000 of whom 0.7 are would have violated: improbable beyond floats.

    That is 2,800 or more of the 4,000; the 6,000 cannot. The least number is by far the most probable one: the ratio of
    C(4000, 2801) C(6000, 199) to C(4000, 2800) C(6000, 200) is (1200/2801)(200/5801) = 0.0148.
    """
    parts = Parts(np.array([0, 0]), np.array([4000, 6000]), np.array([3000]))
    found = credibility(parts, alpha=0.6999, recoding="local")
    assert 2800.01 < found.after[0] * 4000 < 2800.02
    assert found.after @ found.people == pytest.approx(3000, rel=1e-9)
    # And with 20 such classes, the one of them that violates may be any.
    many = 20
    several = Parts(np.repeat(np.arange(many), 2), np.tile([4000, 6000], many), np.full(many, 3000))
    any_of = credibility(several, alpha=0.6999, recoding="global")
    expected = (found.after[0] + (many - 1) * 0.3) / many
    np.testing.assert_allclose(any_of.after[::2], expected, rtol=1e-9)


def test_sums_are_kept() -> None:
    """The expected holders of a class are as many as it has, whatever is known."""
    generator = np.random.default_rng(11)
    owner = np.repeat(np.arange(40), generator.integers(1, 9, 40))
    rows = generator.integers(1, 30, len(owner))
    sizes = np.bincount(owner, rows).astype(np.int64)
    parts = Parts(owner, rows, generator.integers(0, sizes + 1))
    for recoding in ("local", "global"):
        found = credibility(parts, alpha=0.3, k=2, recoding=recoding)  # type: ignore[arg-type]
        np.testing.assert_allclose(np.bincount(owner, found.after * rows), parts.sensitive, rtol=1e-9)


def test_parts_that_are_none_are_refused() -> None:
    one, two = np.array([0]), np.array([2])
    for given_parts, rule in (
        ((one, np.array([0]), one), "at least 1 row"),
        ((np.array([1, 0]), np.array([1, 1]), np.array([0, 0])), "in the order of their classes"),
        ((one, one + 1, two), "more rows than it has"),
        ((one, two, one, two), "all and those with the value"),
        ((one, two, one, one, two), "by more rows than there are"),
    ):
        with pytest.raises(InputError, match=rule):
            Parts(*given_parts)
    parts = Parts(one, two, np.array([1]))
    for alpha, k in ((0.0, 1), (1.1, 1), (0.5, 0)):
        with pytest.raises(InputError, match="alpha must be"):
            credibility(parts, alpha=alpha, k=k, recoding="local")
    with pytest.raises(InputError, match="steps are needed"):
        credibility(Parts(one, np.array([10**6]), np.array([10**5])), alpha=0.5, recoding="local")
    nothing = np.zeros(0, dtype=np.int64)
    for recoding in ("local", "global"):
        assert len(credibility(Parts(nothing, nothing, nothing), alpha=0.5, recoding=recoding).after) == 0  # type: ignore[arg-type]
