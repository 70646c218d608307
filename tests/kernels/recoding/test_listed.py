"""Vectors found again in a list, against a dictionary."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privrisk_spark.kernels.recoding.listed import keys_of, places_of

CODES = [0, 1, 2, 127, 128, 255, 256, 257, 65535, 65536, 65537, 2**24, 2**24 + 1, 2**30, 2**31 - 1]
"""With zero bytes at either end and in between, and with the highest bit of a byte."""

Vectors = list[tuple[int, ...]]


@st.composite
def lists_of_vectors(draw: st.DrawFn) -> tuple[int, Vectors, Vectors]:
    k = draw(st.integers(1, 3))
    vector = st.tuples(*[st.sampled_from(CODES)] * k)
    return k, draw(st.lists(vector, max_size=14, unique=True)), draw(st.lists(vector, max_size=12))


def codes(vectors: Vectors, k: int) -> np.ndarray:
    return np.array(vectors, dtype=np.int32).reshape(len(vectors), k)


@given(lists_of_vectors())
def test_every_vector_is_found_where_it_stands_and_no_other(given_lists: tuple[int, Vectors, Vectors]) -> None:
    k, listed, wanted = given_lists
    order = sorted(listed)
    keys = np.sort(keys_of(codes(listed, k)))
    assert (keys == keys_of(codes(order, k))).all(), "in the order of the vectors"
    place = {vector: i for i, vector in enumerate(order)}
    wanted = wanted + listed
    expected = [place.get(vector, -1) for vector in wanted]
    assert places_of(keys, codes(wanted, k)).tolist() == expected
    # One by one, of which no words are made where the list is long; and below zero nothing is listed.
    assert [places_of(keys, codes([vector], k)).tolist() for vector in wanted] == [[at] for at in expected]
    below = codes([(*vector[:-1], -1 - vector[-1]) for vector in wanted], k)
    assert (places_of(keys, below) == -1).all()


@pytest.mark.parametrize("kind", [np.int32, np.int64, np.int8])
def test_the_width_codes_come_in_and_how_they_lie_change_no_key(kind: type) -> None:
    vectors = np.array([[1, 0], [0, 1], [0, 0], [127, 3]], dtype=kind)
    expected = keys_of(vectors.astype(np.int32))
    assert (keys_of(vectors) == expected).all()
    assert (keys_of(np.asfortranarray(vectors)) == expected).all()
    assert (keys_of(vectors[::-1]) == expected[::-1]).all()
    assert len(set(expected.tolist())) == 4


def test_an_empty_list_holds_nothing() -> None:
    nothing = keys_of(np.zeros((0, 2), dtype=np.int32))
    assert places_of(nothing, np.array([[0, 0], [1, 2]], dtype=np.int32)).tolist() == [-1, -1]
    assert places_of(keys_of(np.zeros((1, 2), dtype=np.int32)), np.zeros((0, 2), dtype=np.int32)).tolist() == []
    # The zero vector is the empty text to numpy.
    assert places_of(keys_of(np.zeros((1, 2), dtype=np.int32)), np.array([[0, 0], [0, 1]])).tolist() == [0, -1]


def test_a_code_that_is_none_is_not_taken_for_another_vector() -> None:
    """In mixed radix (1, -1) would be (0, 1), and (0, 2) would be (1, 0)."""
    keys = keys_of(np.array([[0, 1], [1, 0]], dtype=np.int32))
    assert places_of(keys, np.array([[1, -1], [0, 2], [1, 0], [-1, 3]], dtype=np.int32)).tolist() == [-1, -1, 1, -1]
