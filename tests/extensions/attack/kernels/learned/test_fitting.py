from __future__ import annotations

import json
from functools import cache
from itertools import pairwise
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from linked_files import file_of, file_of_numbers, files, noisy, of_rows

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.attack.kernels.learned.aggregates import Bilinear, OrderedWeightedAverage, WeightedMean
from privrisk_spark.extensions.attack.kernels.learned.choquet import ChoquetIntegral
from privrisk_spark.extensions.attack.kernels.learned.families import Kind
from privrisk_spark.extensions.attack.kernels.learned.fitting import Learned, Limits, fit
from privrisk_spark.extensions.attack.kernels.learned.training import KnownRecords, found_by
from privrisk_spark.extensions.attack.kernels.nearest import SearchedFile
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.json_values import as_json, from_json

every_kind = pytest.mark.parametrize("kind", get_args(Kind))
RELAXED = Limits(constraints=0)

NOISE = (0.003, 3, 3, 3)
"""One column that tells who somebody is, and three that do not."""


@cache
def planted() -> tuple[SearchedFile, KnownRecords, KnownRecords]:
    """A file of 400 rows, and the people of 150 and of another 150."""
    known, shown, ends = noisy(400, NOISE, seed=8, steps=4000)
    file, member = file_of_numbers(shown, ends)
    return file, of_rows(known, member, slice(0, 150)), of_rows(known, member, slice(150, 300))


@cache
def learned(kind: Kind) -> Learned:
    file, training, _ = planted()
    return fit(kind, file, training, RELAXED)


def shares(file: SearchedFile, one: Learned, records: KnownRecords) -> tuple[float, float]:
    """People found by the standard weights and by the learned ones."""
    return tuple(float(found_by(by, file, records).sum()) for by in (WeightedMean(file.weights), one.aggregate))  # type: ignore[return-value]


@pytest.mark.parametrize("kind", ["weighted_mean", "bilinear", "choquet"])
def test_the_column_that_tells_who_somebody_is_is_found(kind: Kind) -> None:
    weights = learned(kind).aggregate.weights_of_columns()
    assert weights[0] > 0.9
    assert weights[1:].max() < 0.05


@pytest.mark.parametrize("kind", ["weighted_mean", "bilinear", "choquet"])
def test_people_held_out_are_found_too(kind: Kind) -> None:
    """Of 150 the mean finds less than a twentieth, and the learned distance four times as many."""
    file, training, held_out = planted()
    one = learned(kind)
    assert shares(file, one, training) == (pytest.approx(one.standard, abs=1e-9), pytest.approx(one.found, abs=1e-9))
    before, after = shares(file, one, held_out)
    assert before < 7.5
    assert after > 4 * before
    assert not one.fell_back


def test_least_differences_are_found_by_order() -> None:
    """Each row has one number of three changed, never the same: a distance without the greatest difference is 0."""
    generator = np.random.default_rng(5)
    known = generator.integers(0, 200, (120, 3)).astype(np.int32)
    shown = known.copy()
    shown[np.arange(120), generator.integers(0, 3, 120)] = generator.integers(0, 200, 120)
    file, member = file_of_numbers(shown, np.arange(200.0))
    training = of_rows(known, member, slice(0, 60))
    one = fit("ordered_weighted_average", file, training, RELAXED)
    assert isinstance(one.aggregate, OrderedWeightedAverage)
    assert one.aggregate.weights[0] < 0.1
    before, after = shares(file, one, of_rows(known, member, slice(60, 120)))
    assert after > 1.5 * before


def test_noise_that_columns_share_is_found_by_forms_alone() -> None:
    """Two columns with nearly the same great noise: their difference tells who somebody is.

    Differences without a sign see the noise's sizes, |e| and nearly |e|: ``(|e₁| - |e₂|)²`` is small of the own row.
    """
    generator = np.random.default_rng(3)
    clean = generator.normal(size=(300, 2))
    shown = clean + 2 * generator.normal(size=(300, 1)) + 0.02 * generator.normal(size=(300, 2))
    ends = np.linspace(-9, 9, 900)
    known_at, shown_at = (np.searchsorted(ends, of).astype(np.int32) for of in (clean, shown))
    file, member = file_of_numbers(shown_at, ends)
    training, held_out = (of_rows(known_at, member, slice(a, a + 100)) for a in (0, 100))
    form, mean = (fit(kind, file, training, RELAXED) for kind in ("bilinear", "weighted_mean"))
    assert isinstance(form.aggregate, Bilinear)
    assert form.aggregate.matrix[0, 1] < -0.4
    assert shares(file, form, held_out)[1] >= 2 * shares(file, mean, held_out)[1]


def test_sets_of_columns_are_found_by_measures_alone() -> None:
    """Of either two columns one is kept: what tells is ``min(d₁, d₂) + min(d₃, d₄)``."""
    generator = np.random.default_rng(6)
    known, other = (generator.integers(0, 100, (300, 4)) for _ in range(2))
    kept = generator.integers(0, 2, (300, 2))
    keep = np.column_stack([kept[:, 0] == 0, kept[:, 0] == 1, kept[:, 1] == 0, kept[:, 1] == 1])
    file, member = file_of_numbers(np.where(keep, known, other).astype(np.int32), np.arange(100.0))
    training, held_out = (of_rows(known.astype(np.int32), member, slice(a, a + 150)) for a in (0, 150))
    of_sets, mean = (fit(kind, file, training, RELAXED) for kind in ("choquet", "weighted_mean"))
    assert isinstance(of_sets.aggregate, ChoquetIntegral)
    assert shares(file, of_sets, held_out)[1] > shares(file, mean, held_out)[1] + 10


def noisy_digits(seed: int, n: int, k: int) -> tuple[SearchedFile, KnownRecords]:
    """Digits of some people, and the same with noise."""
    generator = np.random.default_rng(seed)
    known = generator.integers(0, 12, (n, k)).astype(np.int32)
    noise = np.rint(generator.normal(size=(n, k)) * generator.choice([2, 4, 7], k)).astype(int)
    file, member = file_of_numbers(np.clip(known + noise, 0, 11).astype(np.int32), np.arange(12.0))
    return file, of_rows(known, member, slice(0, n))


@pytest.mark.parametrize("seed", [1, pytest.param(0, marks=pytest.mark.thorough("the same in another table"))])
def test_fit_bilinear_of_few_records_is_proved_and_no_form_of_a_grid_does_better(seed: int) -> None:
    """Forms of two columns are a disk: ((1 + a, b), (b, 1 - a)) / 2 with a² + b² at most 1; each is tried literally."""
    file, records = noisy_digits(seed, 9, 2)
    one, mean = (fit(kind, file, records) for kind in ("bilinear", "weighted_mean"))
    assert one.status == "proved"
    assert one.found >= mean.found
    grid = np.linspace(-1, 1, 41)
    firmly = [
        _first(Bilinear(np.array([[1 + a, b], [b, 1 - a]]) / 2), file, records)
        for a in grid
        for b in grid
        if a * a + b * b <= 1
    ]
    assert max(firmly) <= one.firmly + 1e-9


def _first(aggregate: Bilinear, file: SearchedFile, records: KnownRecords) -> int:
    """People whose own row is the only nearest one, clearly."""
    found = 0
    for known, own in zip(records.known, records.own, strict=True):
        columns = [of.of(known[[j]])[0][file.cells[:, j]] for j, of in enumerate(file.differences)]
        every = aggregate.distance(np.stack(columns, axis=-1))
        nearest = np.flatnonzero(every <= every.min() + 0.05)
        found += nearest.tolist() == [int(own)] and file.rows[own] == 1
    return found


@pytest.mark.parametrize("seed", [6, pytest.param(3, marks=pytest.mark.thorough("the same in another table"))])
def test_fit_bilinear_never_finds_fewer_than_the_weighted_mean_it_contains(seed: int) -> None:
    file, records = noisy_digits(seed, 12 if seed % 2 else 20, 3)
    one, mean = (fit(kind, file, records) for kind in ("bilinear", "weighted_mean"))
    assert one.found >= mean.found - 1e-9
    assert one.status == "proved"


# ------------------------------------------------------------------------------------------------ what always holds


@st.composite
def cases(draw: st.DrawFn) -> tuple[SearchedFile, KnownRecords]:
    trees, weights, records, rows, known = draw(files())
    file, m = file_of(trees, weights, records, rows), len(known)
    own = draw(st.lists(st.integers(-1, len(records) - 1), min_size=m, max_size=m))
    people = draw(st.lists(st.integers(1, 3), min_size=m, max_size=m))
    return file, KnownRecords(np.array(known, dtype=np.int32), np.array(own), np.array(people), np.ones(m))


@every_kind
@given(cases())
@settings(max_examples=20)
def test_no_fewer_are_found_than_by_the_standard(kind: Kind, drawn: Any) -> None:
    file, records = drawn
    one = fit(kind, file, records, Limits(rounds=2, ramps=1, constraints=60, nodes=200))
    standard, found = (
        float(found_by(by, file, records) @ records.people) for by in (WeightedMean(file.weights), one.aggregate)
    )
    assert one.standard == pytest.approx(standard, abs=1e-9)
    assert one.found == pytest.approx(found, abs=1e-9)
    assert found >= standard - 1e-9
    assert one.firmly <= one.found + 1e-9
    assert one.people == records.people.sum()
    assert (one.status == "proved") == (one.gap < 1e-5)
    assert one.fell_back == (found <= standard + 1e-9)
    assert not one.fell_back or as_json(one.aggregate) == as_json(WeightedMean(file.weights))
    again = from_json(Learned, json.loads(json.dumps(as_json(one))))
    assert as_json(again) == as_json(one)


def most_first(file: SearchedFile, records: KnownRecords, margin: float) -> float:
    """People whose rows any two weights put first by a margin: one weight of each piece between crossings."""
    tables = [one.of(records.known[:, i].copy()) for i, one in enumerate(file.differences)]
    of = np.stack([table[:, file.cells[:, i]] for i, table in enumerate(tables)], axis=-1)
    gaps = of - of[np.arange(len(of)), records.own][:, None, :]
    a, b = gaps[..., 0].ravel(), gaps[..., 1].ravel()
    with np.errstate(divide="ignore", invalid="ignore"):
        at = (margin - b) / (a - b)
    ends = sorted({0.0, 1.0, *at[(at > 0) & (at < 1)].tolist()})
    told = (abs(gaps) > 1e-9).any(axis=-1)
    alike = (~told) @ file.rows
    best = 0.0
    for weight in [*ends, *((x + y) / 2 for x, y in pairwise(ends))]:
        first = ((gaps @ np.array([weight, 1 - weight]) >= margin - 1e-12) | ~told).all(axis=1)
        best = max(best, float((records.people * first / alike).sum()))
    return best


@pytest.mark.parametrize("seed", range(4))
def test_the_program_of_two_weights_is_solved(seed: int) -> None:
    known, shown, ends = noisy(60, (0.4, 0.8), seed=seed, steps=40)
    file, member = file_of_numbers(shown, ends)
    records = of_rows(known, member, slice(0, 30))
    one = fit("weighted_mean", file, records)
    assert one.status == "proved"
    best = most_first(file, records, one.margin)
    assert one.at_most == pytest.approx(best, abs=1e-6)
    assert one.firmly == pytest.approx(best, abs=1e-6)
    assert fit("weighted_mean", file, records, RELAXED).firmly <= best + 1e-9


@every_kind
def test_bounds_hold_for_any_parameters(kind: Kind) -> None:
    """None of 200 random distances of the family puts more first than the bound says."""
    known, shown, ends = noisy(40, (0.3, 0.6, 1.0), seed=1, steps=40)
    file, member = file_of_numbers(shown, ends)
    records = of_rows(known, member, slice(0, 12))
    one = fit(kind, file, records, Limits(nodes=500))
    generator = np.random.default_rng(9)
    tables = [of.of(records.known[:, i].copy()) for i, of in enumerate(file.differences)]
    vectors = np.stack([table[:, file.cells[:, i]] for i, table in enumerate(tables)], axis=-1)
    each = np.arange(len(records.own))
    for _ in range(200):
        root = generator.normal(size=(3, 3)) * generator.random(3)
        weights = generator.dirichlet(np.full(3, 0.5))
        lifted = np.sort(generator.random(8))
        lifted[0], lifted[-1] = 0, 1
        by: Any = {
            "weighted_mean": WeightedMean(weights),
            "ordered_weighted_average": OrderedWeightedAverage(weights),
            "bilinear": Bilinear.projected(root @ root.T / (root**2).sum()),
            "choquet": ChoquetIntegral(lifted),
        }[kind]
        distance = by.distance(vectors)
        gaps = distance - distance[each, records.own][:, None]
        gaps[each, records.own] = np.inf
        assert (gaps.min(axis=1) >= one.margin).sum() <= one.at_most + 1e-6


@every_kind
def test_a_file_as_it_was_gives_everybody_away_at_once(kind: Kind) -> None:
    known, _, ends = noisy(50, (1, 1), seed=0)
    file, member = file_of_numbers(known, ends)
    one = fit(kind, file, of_rows(known, member, slice(0, 30)))
    assert one.status == "proved"
    assert (one.found, one.gap, one.fell_back) == (pytest.approx(one.standard), 0.0, True)


def test_rows_that_none_tells_apart_share_a_person() -> None:
    """Suppressed rows are at no difference from anybody: three of them, one's own among them."""
    tree = Hierarchy.from_paths("a", [("v0",), ("v1",)])
    file = file_of([tree], [1.0], [(0,), (tree.root,)], [2, 3])
    records = KnownRecords(np.zeros((1, 1), dtype=np.int32), np.array([1]), np.ones(1, dtype=np.int64), np.ones(1))
    one = fit("weighted_mean", file, records)
    assert (one.status, one.found, one.firmly, one.at_most) == ("proved", 1 / 5, 1 / 5, 1 / 5)


def test_the_standard_weights_are_no_ordered_ones() -> None:
    """A difference in the one column or in the other is one to any order; by the second column it is the wrong row."""
    tree = Hierarchy.from_paths("a", [("v0",), ("v1",)])
    file = file_of([tree, tree], [0.0, 1.0], [(0, 0), (1, 1)], [1, 1])
    known = np.array([[0, 1]], dtype=np.int32)
    records = KnownRecords(known, np.array([0]), np.ones(1, dtype=np.int64), np.ones(1))
    one = fit("ordered_weighted_average", file, records)
    assert (one.standard, one.found, one.at_most, one.fell_back) == (0.0, 0.5, 0.5, False)
    mean = fit("weighted_mean", file, records)
    assert (mean.standard, mean.found, mean.firmly) == (0.0, 1.0, 1.0)


def test_equal_people_count_as_often_as_they_are() -> None:
    file, training, _ = planted()
    few = training.only(np.arange(40))
    twice = KnownRecords(few.known, few.own, 2 * few.people, few.present)
    one, two = (fit("weighted_mean", file, of, RELAXED) for of in (few, twice))
    assert two.found == pytest.approx(2 * one.found, abs=1e-9)
    assert two.people == 80


def test_nobody_cannot_be_learned_from() -> None:
    file, training, _ = planted()
    with pytest.raises(InputError, match="needs records to be learned from"):
        fit("weighted_mean", file, training.only(np.zeros(150, dtype=np.bool_)))
