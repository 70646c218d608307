from __future__ import annotations

import json
from typing import get_args

import naive_learned
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import aggregates, weights

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.attack.kernels.learned.aggregates import (
    Aggregate,
    Bilinear,
    OrderedWeightedAverage,
    WeightedMean,
    onto_simplex,
    sorted_columns,
)
from privrisk_spark.extensions.attack.kernels.learned.choquet import ChoquetIntegral
from privrisk_spark.extensions.attack.kernels.learned.families import Kind, aggregate_from
from privrisk_spark.json_values import as_json

# ----------------------------------------------------------------------------------- what every distance must be

every_kind = pytest.mark.parametrize("kind", get_args(Kind))


@st.composite
def cases(draw: st.DrawFn, kind: Kind) -> tuple[Aggregate, np.ndarray]:
    """A distance and some vectors of differences, with ties and zeros among them."""
    n = draw(st.integers(1, 4))
    one = st.lists(st.integers(0, 12).map(lambda x: x / 4), min_size=n, max_size=n)
    return draw(aggregates(kind, n)), np.array(draw(st.lists(one, min_size=1, max_size=5)))


def twin(one: Aggregate) -> naive_learned.Distance:
    if isinstance(one, WeightedMean):
        return naive_learned.weighted_mean(one.weights)
    if isinstance(one, OrderedWeightedAverage):
        return naive_learned.ordered_weighted_average(one.weights)
    if isinstance(one, Bilinear):
        return naive_learned.bilinear(one.matrix)
    assert isinstance(one, ChoquetIntegral)
    return naive_learned.choquet(naive_learned.of_sets(one.measure))


@every_kind
@given(st.data())
def test_distances_are_those_of_the_definition(kind: Kind, data: st.DataObject) -> None:
    one, vectors = data.draw(cases(kind))
    np.testing.assert_allclose(one.distance(vectors), [twin(one)(d) for d in vectors], atol=1e-12)
    assert one.n == vectors.shape[1]


@every_kind
@given(st.data(), st.integers(1, 50))
def test_distances_are_0_at_0_and_grow_in_proportion(kind: Kind, data: st.DataObject, times: int) -> None:
    one, vectors = data.draw(cases(kind))
    assert one.distance(0 * vectors).tolist() == [0.0] * len(vectors)
    found = one.distance(vectors)
    assert (found >= 0).all()
    np.testing.assert_allclose(one.distance(times * vectors), times * found, atol=1e-10)


@every_kind
@given(st.data())
def test_no_distance_falls_that_says_so(kind: Kind, data: st.DataObject) -> None:
    one, vectors = data.draw(cases(kind))
    i = data.draw(st.integers(0, one.n - 1))
    more = vectors.copy()
    more[:, i] += 1.0
    assert not one.monotone or (one.distance(more) >= one.distance(vectors) - 1e-12).all()
    assert one.monotone or kind == "bilinear"


def test_a_form_with_a_negative_interaction_may_fall() -> None:
    """(u - v)² / 2 of u = 1 is 1/2 beside v = 0, and nothing beside v = 1."""
    form = Bilinear(np.array([[0.5, -0.5], [-0.5, 0.5]]))
    assert form.distance(np.array([[1.0, 0.0], [1.0, 1.0]])).tolist() == [0.5, 0.0]
    assert not form.monotone


@every_kind
@given(st.data())
def test_bits_do_not_depend_on_what_is_computed_beside(kind: Kind, data: st.DataObject) -> None:
    one, vectors = data.draw(cases(kind))
    together = one.distance(np.stack([vectors, vectors[::-1]]))
    assert together.shape == (2, len(vectors))
    assert together[0].tobytes() == b"".join(one.distance(d).tobytes() for d in vectors)
    assert together[1].tobytes() == one.distance(vectors)[::-1].tobytes()
    # As blocks are laid out: attributes first.
    first = np.ascontiguousarray(vectors.T)
    assert one.distance(np.moveaxis(first, 0, -1)).tobytes() == together[0].tobytes()


@every_kind
@given(st.data())
def test_a_distance_is_read_as_it_was_written(kind: Kind, data: st.DataObject) -> None:
    one, vectors = data.draw(cases(kind))
    again = aggregate_from(json.loads(json.dumps(as_json(one))))
    assert type(again) is type(one)
    assert as_json(again) == as_json(one)
    assert again.distance(vectors).tobytes() == one.distance(vectors).tobytes()
    told = one.weights_of_columns()
    assert told.shape == (one.n,)
    assert (told >= 0).all()
    assert told.sum() == pytest.approx(1.0, abs=1e-9)


# ----------------------------------------------------------------------------------------------- special cases


@given(st.integers(1, 5).flatmap(lambda n: st.tuples(weights(n), weights(n))))
def test_special_cases(drawn: tuple[np.ndarray, np.ndarray]) -> None:
    of, vector = drawn
    mean, ordered = WeightedMean(of).distance(vector), OrderedWeightedAverage(of).distance(vector)
    sets = [[i for i in range(len(of)) if number >> i & 1] for number in range(2 ** len(of))]
    additive, symmetric = (
        np.array([part.sum() for part in parts])
        for parts in ([of[members] for members in sets], [of[: len(members)] for members in sets])
    )
    for measure, expected in ((additive, mean), (symmetric, ordered)):
        measure[-1] = 1.0
        one = ChoquetIntegral(np.minimum(measure, 1.0))
        assert one.distance(vector) == pytest.approx(float(expected), abs=1e-12)
    # Of roots, a diagonal form is the weighted mean of squares.
    assert Bilinear(np.diag(of)).distance(vector) == pytest.approx(float(mean), abs=1e-12)


def test_ordered_weights_begin_with_the_greatest_difference() -> None:
    vector = np.array([0.25, 1.0, 0.5])
    for of, expected in (([1, 0, 0], 1.0), ([0, 0, 1], 0.25), ([0.5, 0.5, 0], 0.75)):
        assert OrderedWeightedAverage(np.array(of, dtype=np.float64)).distance(vector) == expected


@given(st.lists(st.lists(st.integers(-9, 9), min_size=3, max_size=3), min_size=1, max_size=12))
def test_exchanges_sort(columns: list[list[int]]) -> None:
    given_columns = np.array(columns)
    assert (sorted_columns(given_columns) == np.sort(given_columns, axis=0)[::-1]).all()
    assert (sorted_columns(given_columns, ascending=True) == np.sort(given_columns, axis=0)).all()


# ------------------------------------------------------------------------------------------------- projections


def test_projections_onto_the_simplex_by_hand() -> None:
    """(1/2, 2) less 3/4 is (-1/4, 5/4), whose negative part goes: (0, 1). (0.7, 0.5) less 0.1 each."""
    assert onto_simplex(np.array([0.5, 2.0])).tolist() == [0.0, 1.0]
    np.testing.assert_allclose(onto_simplex(np.array([0.7, 0.5])), [0.6, 0.4], atol=1e-15)


@given(st.lists(st.integers(-20, 20).map(lambda x: x / 8), min_size=1, max_size=5), st.data())
def test_no_point_of_the_simplex_is_nearer(values: list[float], data: st.DataObject) -> None:
    point = np.array(values)
    found = onto_simplex(point)
    assert found.sum() == pytest.approx(1.0, abs=1e-12)
    assert (found >= 0).all()
    other = data.draw(weights(len(values)))
    assert ((found - point) ** 2).sum() <= ((other - point) ** 2).sum() + 1e-12


@given(st.integers(1, 4).flatmap(lambda n: st.lists(st.integers(-6, 6), min_size=n * n, max_size=n * n)), st.data())
def test_no_form_is_nearer_than_the_projected_one(entries: list[int], data: st.DataObject) -> None:
    n = round(len(entries) ** 0.5)
    matrix = np.array(entries, dtype=np.float64).reshape(n, n) / 4
    matrix = (matrix + matrix.T) / 2
    found = Bilinear.projected(matrix).matrix
    assert np.linalg.eigvalsh(found)[0] >= -1e-12
    assert np.trace(found) == pytest.approx(1.0, abs=1e-12)
    other = data.draw(aggregates("bilinear", n))
    assert isinstance(other, Bilinear)
    assert ((found - matrix) ** 2).sum() <= ((other.matrix - matrix) ** 2).sum() + 1e-9
    np.testing.assert_allclose(Bilinear.projected(other.matrix).matrix, other.matrix, atol=1e-12)


# --------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize("kind", [WeightedMean, OrderedWeightedAverage])
@pytest.mark.parametrize("wrong", [[], [0.5], [1.5, -0.5], [np.nan, 1.0], [[1.0]]])
def test_weights_that_are_none_are_refused(kind: type[WeightedMean], wrong: list[float]) -> None:
    with pytest.raises(InputError, match="at least 0, and their sum 1"):
        kind(np.array(wrong, dtype=np.float64))


@pytest.mark.parametrize(
    ("matrix", "rule"),
    [
        ([[1.0, 0.0]], "square and symmetric"),
        ([[0.5, 0.1], [0.2, 0.5]], "square and symmetric"),
        ([[np.nan]], "square and symmetric"),
        ([[0.5, 0.0], [0.0, 0.4]], "trace 1"),
        ([[0.5, 0.6], [0.6, 0.5]], "positive semi-definite"),
    ],
)
def test_matrices_that_are_no_form_are_refused(matrix: list[list[float]], rule: str) -> None:
    with pytest.raises(InputError, match=rule):
        Bilinear(np.array(matrix))


def test_what_is_no_aggregate_is_refused() -> None:
    with pytest.raises(InputError, match=r"must be one of weighted_mean.*Got 'mean'"):
        aggregate_from({"aggregate": "mean"})
