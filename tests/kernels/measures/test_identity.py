from __future__ import annotations

import json
import math
import random
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privrisk_spark.errors import InputError, InternalError
from privrisk_spark.json_values import as_json, from_json
from privrisk_spark.kernels.measures.identity import SizeHistogram, records_by_size
from privrisk_spark.kernels.measures.population_sizes import PopulationHistogram
from privrisk_spark.kernels.measures.weighted_sizes import WeightTally
from privrisk_spark.kernels.numeric.fold import folded
from privrisk_spark.kernels.numeric.moments import risk_bins

# The thirteen rows (zip, age, nationality) of the lecture "k-Anonymity & Algorithms" (Raschia 2023), and its release.
RASCHIA = [
    ("13053", 28, "Russian"),
    ("13068", 29, "American"),
    ("13068", 21, "Japanese"),
    ("13053", 23, "American"),
    ("14853", 50, "Indian"),
    ("14853", 55, "Russian"),
    ("14850", 47, "American"),
    ("14850", 59, "American"),
    ("13053", 31, "American"),
    ("13053", 37, "Indian"),
    ("13068", 36, "Japanese"),
    ("13068", 32, "American"),
    ("13068", 33, "Chinese"),
]


def release(rows):
    return [(z[:3], "<30" if a < 30 else "[30,40)" if a < 40 else ">=40") for z, a, _ in rows]


def longs(values):
    return np.array(values, dtype=np.int64)


def sizes_of(rows):
    return longs(list(Counter(rows).values()))


def population_of(sample, people):
    f, big = Counter(sample), Counter(people)
    return longs(list(f.values())), longs([big[key] for key in f])


# --- published examples


def test_lecture_four_anonymous_release():
    before = SizeHistogram.of(sizes_of(RASCHIA)).risk()
    assert (before.k, before.classes, before.uniques, before.prosecutor_max, before.prosecutor_mean) == (
        1,
        13,
        13,
        1,
        1,
    )
    after = SizeHistogram.of(sizes_of(release(RASCHIA))).risk([0.2, 0.25])
    # Classes of 4, 4 and 5: k = 4, risk 1/4, mean 3/13; 1/5 is not above 0.2, and 1/4 not above 0.25.
    assert (after.k, after.classes, after.uniques, after.prosecutor_max) == (4, 3, 0, 0.25)
    assert after.prosecutor_mean == 3 / 13
    assert [(a.records, a.share) for a in after.above] == [(8, 8 / 13), (0, 0.0)]


def test_lecture_k_map():
    """D is rows 1, 6, 8 and 9 to 13 of U, both recoded alike: f = 1, 2, 5 and F = 4, 4, 5."""
    recoded = release(RASCHIA)
    sample = [recoded[i - 1] for i in (1, 6, 8, 9, 10, 11, 12, 13)]
    risk = PopulationHistogram.of(*population_of(sample, recoded)).risk([0.2, 0.25])
    assert (risk.k_map, risk.journalist_max) == (4, 0.25)
    assert risk.marketer == risk.marketer_covered == (1 / 4 + 2 / 4 + 5 / 5) / 8 == 0.21875
    assert (risk.sample_uniques, risk.population_uniques, risk.population_uniques_share) == (1, 0, 0.0)
    assert (risk.uncovered_records, risk.contradicting_records) == (0, 0)
    assert [a.records for a in risk.above] == [3, 0]
    assert SizeHistogram.of(population_of(sample, recoded)[0]).risk().k == 1


def test_slides_city_and_age():
    """The k-anonymous table of "Privacy models and disclosure risk" (Torra 2020): 2 of Barcelona, 3 of Tarragona."""
    rows = [("Barcelona", 30)] * 2 + [("Tarragona", 60)] * 3
    risk = SizeHistogram.of(sizes_of(rows)).risk([0.4])
    assert (risk.k, risk.prosecutor_max, risk.prosecutor_mean) == (2, 0.5, 2 / 5)
    assert [(bin_.least, bin_.classes, bin_.records) for bin_ in risk.by_size if bin_.classes] == [(2, 1, 2), (3, 1, 3)]
    # The original of it: six people, all different.
    people = [("Barcelona", 30), ("Barcelona", 32), ("Barcelona", 28), ("Tarragona", 62), ("Tarragona", 65)]
    people.append(("Tarragona", 60))
    assert SizeHistogram.of(sizes_of(people)).risk().uniques == 6


def test_slides_file_level_uniqueness():
    """P(PU|SU) = Σ I(F = 1, f = 1) / Σ I(f = 1): of four sample uniques one is alone in the population."""
    risk = PopulationHistogram.of(longs([1, 1, 1, 1, 2, 3]), longs([1, 2, 7, 2, 2, 9])).risk()
    assert (risk.sample_uniques, risk.population_uniques, risk.population_uniques_share) == (4, 1, 0.25)


# --- what is missing


def test_uncovered_classes_are_counted_and_not_taken_for_safe():
    risk = PopulationHistogram.of(longs([1, 2, 3]), longs([0, 0, 10])).risk([0.05])
    assert (risk.uncovered_classes, risk.uncovered_records) == (2, 3)
    assert (risk.k_map, risk.journalist_max) == (10, 0.1)
    # If the table lacks people who are in the data, a class has at least those: k-map is at least 1 here.
    assert (risk.k_map_contained, risk.journalist_max_contained) == (1, 1.0)
    assert risk.marketer == 0.3 / 6
    assert risk.marketer_covered == 0.3 / 3
    assert (risk.sample_uniques, risk.sample_uniques_uncovered, risk.population_uniques_share) == (1, 1, 0.0)
    assert (risk.above[0].records, risk.above[0].share) == (3, 1.0)


def test_no_class_covered():
    risk = PopulationHistogram.of(longs([2]), longs([0])).risk([0.5])
    assert risk.k_map is None
    assert risk.journalist_max is None
    assert risk.marketer_covered is None
    assert risk.population_uniques_share is None
    assert (risk.k_map_contained, risk.marketer, risk.above[0].share) == (2, 0.0, 0.0)


def test_contradictions():
    """A class of five of which the population has two."""
    risk = PopulationHistogram.of(longs([5, 1]), longs([2, 4])).risk()
    assert (risk.contradicting_classes, risk.contradicting_records) == (1, 5)
    assert (risk.k_map, risk.k_map_contained) == (2, 4)
    assert risk.marketer == (5 / 2 + 1 / 4) / 6
    assert risk.marketer <= 1


def test_empty():
    risk = SizeHistogram().risk([0.5])
    assert (risk.records, risk.k, risk.prosecutor_max, risk.prosecutor_mean, sum(risk.by_risk)) == (0, 0, 0.0, 0.0, 0)
    other = PopulationHistogram().risk([0.5])
    assert (other.records, other.k_map, other.marketer, other.k_map_contained) == (0, None, 0.0, 0)
    tally = WeightTally.of(longs([]), np.array([]), [0.5])
    assert (tally.population, tally.least_population, tally.journalist_max, tally.marketer) == (0.0, None, None, 0.0)


def test_a_threshold_is_compared_with_the_risk_as_written():
    for f in range(1, 200):
        assert SizeHistogram((f,), (1,)).risk([1 / f]).above[0].records == 0
        assert SizeHistogram((f,), (1,)).risk([np.nextafter(1 / f, 0)]).above[0].records == f


# --- naive twins

classes = st.lists(st.tuples(st.integers(1, 1200), st.integers(0, 3000)), max_size=30)
THRESHOLDS = [0.0, 0.01, 0.09, 0.2, 1 / 3, 0.5, 1.0]


@given(classes)
def test_sample_measures_record_by_record(table):
    risk = SizeHistogram.of(longs([f for f, _ in table])).risk(THRESHOLDS)
    records = [f for f, _ in table for _ in range(f)]
    assert (risk.records, risk.classes) == (len(records), len(table))
    if records:
        assert risk.k == min(records)
        assert risk.prosecutor_max == max(1 / f for f in records)
        assert risk.prosecutor_mean == float(sum((Fraction(1, f) for f in records), Fraction()) / len(records))
    for above in risk.above:
        assert above.records == sum(1 / f > above.threshold for f in records)
    for bin_ in risk.by_size:
        inside = [f for f, _ in table if bin_.least <= f <= (bin_.most or math.inf)]
        assert (bin_.classes, bin_.records) == (len(inside), sum(inside))
    assert sum(bin_.records for bin_ in risk.by_size) == sum(risk.by_risk) == len(records)
    edges = risk_bins()
    for number, low, high in zip(risk.by_risk, edges[:-1], edges[1:], strict=True):
        assert number == sum(low <= 1 / f < high for f in records)


@given(classes)
def test_population_measures_record_by_record(table):
    found = PopulationHistogram.of(longs([f for f, _ in table]), longs([big for _, big in table]))
    risk = found.risk(THRESHOLDS)
    records = [pair for pair in table for _ in range(pair[0])]
    covered = [(f, big) for f, big in records if big]
    assert (risk.records, risk.classes) == (len(records), len(table))
    assert risk.uncovered_records == len(records) - len(covered)
    assert risk.uncovered_classes == sum(big == 0 for _, big in table)
    assert risk.contradicting_records == sum(0 < big < f for f, big in records)
    assert risk.contradicting_classes == sum(0 < big < f for f, big in table)
    assert risk.k_map == min((big for _, big in covered), default=None)
    hits = float(sum((Fraction(1, big) for _, big in covered), Fraction()))
    if records:
        assert risk.marketer == pytest.approx(hits / len(records), rel=1e-14)
        assert risk.k_map_contained == min(max(f, big) for f, big in records)
        assert risk.marketer <= (risk.journalist_max or 0) * (1 + 1e-15)
    uniques = [big for f, big in table if f == 1]
    assert risk.sample_uniques == len(uniques)
    assert risk.population_uniques == uniques.count(1)
    for above in risk.above:
        assert above.records == sum(1 / big > above.threshold for _, big in covered)
    assert found.sizes == SizeHistogram.of(longs([f for f, _ in table]))


weighted = st.lists(st.tuples(st.integers(1, 50), st.floats(0, 1e6)), max_size=30)


@given(weighted)
def test_weights_class_by_class(table):
    tally = WeightTally.of(longs([f for f, _ in table]), np.array([w for _, w in table], dtype=float), THRESHOLDS)
    risks = [(1 / max(w, f), f) for f, w in table]
    total = sum((Fraction(w) for _, w in table), Fraction())
    assert tally.population == float(total)
    assert tally.below_classes == sum(w < f for f, w in table)
    assert tally.below_records == sum(f for f, w in table if w < f)
    if table:
        n = sum(f for f, _ in table)
        assert tally.marketer == float(sum((Fraction(r) * f for r, f in risks), Fraction()) / n)
        assert tally.journalist_max == max(r for r, _ in risks)
        assert tally.least_population == min(w for _, w in table)
        for threshold, records in zip(THRESHOLDS, tally.above, strict=True):
            assert records == sum(f for r, f in risks if r > threshold)


# --- partitioning


def split(rows, seed, parts):
    pick = random.Random(seed)
    result = [[] for _ in range(parts)]
    for row in rows:
        result[pick.randrange(parts)].append(row)
    for part in result:
        pick.shuffle(part)
    pick.shuffle(result)
    return result


def through_json(tally):
    return from_json(type(tally), json.loads(json.dumps(as_json(tally))))


@given(
    st.lists(st.tuples(st.integers(1, 40), st.integers(0, 60), st.floats(0, 1e9)), max_size=40),
    st.integers(0, 2**32),
    st.integers(1, 6),
)
def test_partitions_change_no_bit(table, seed, parts):
    def tallies(rows):
        f, big = longs([row[0] for row in rows]), longs([row[1] for row in rows])
        weights = np.array([row[2] for row in rows], dtype=float)
        return [SizeHistogram.of(f), PopulationHistogram.of(f, big), WeightTally.of(f, weights, THRESHOLDS)]

    whole = tallies(table)
    parted = [tallies(rows) for rows in split(table, seed, parts)]
    for i, (expected, empty) in enumerate(zip(whole, tallies([]), strict=True)):
        total = empty
        for part in parted:
            total = total.plus(through_json(part[i]))
        assert total == expected
        assert total == through_json(expected)
        assert expected.plus(empty) == empty.plus(expected) == expected
        # Any other grouping of the parts.
        backwards = parted[-1][i]
        for part in reversed(parted[:-1]):
            backwards = part[i].plus(backwards)
        assert backwards == expected
    sizes = folded(SizeHistogram.empty(), (part[0] for part in parted))
    pairs = folded(PopulationHistogram.empty(), (part[1] for part in parted))
    assert (sizes, pairs) == (whole[0], whole[1])
    assert sizes.risk(THRESHOLDS) == whole[0].risk(THRESHOLDS)
    assert pairs.risk(THRESHOLDS) == whole[1].risk(THRESHOLDS)


def test_the_empty_weight_tally_is_neutral_at_its_thresholds():
    tally, empty = WeightTally.of(longs([2]), np.array([3.0]), [0.1]), WeightTally.empty([0.1])
    assert empty.plus(tally) == tally.plus(empty) == tally
    with pytest.raises(InternalError, match="same thresholds"):
        WeightTally.empty([0.2]).plus(tally)


def test_results_are_json():
    json.dumps(as_json(SizeHistogram.of(longs([1, 2])).risk([0.1])), allow_nan=False)
    json.dumps(as_json(PopulationHistogram.of(longs([1, 2]), longs([0, 3])).risk([0.1])), allow_nan=False)


def test_beyond_int64():
    """Parts add up to more records than int64 holds."""
    part = PopulationHistogram(((2**40, 2**62),), (2**30,))
    risk = part.plus(part).risk()
    assert risk.records == 2**71
    assert risk.marketer == 1 / 2**62


def test_size_of_a_histogram():
    """A million records in classes of 1 to 1413: as many sizes as there can be."""
    sizes = np.arange(1, 1414)
    histogram = SizeHistogram.of(np.tile(sizes, 3))
    assert len(histogram.sizes) == 1413
    assert histogram.records == 3 * 1413 * 1414 // 2


# --- errors


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: SizeHistogram.of(longs([0])), "at least 1. Got 0"),
        (lambda: PopulationHistogram.of(longs([1]), longs([-1])), "in the population must be at least 0. Got -1"),
        (lambda: PopulationHistogram.of(longs([1]), longs([1, 2])), "one value per class"),
        (lambda: PopulationHistogram.of(longs([0]), longs([1])), "at least 1. Got 0"),
        (lambda: WeightTally.of(longs([1]), np.array([math.nan])), "negative or NaN"),
        (lambda: WeightTally.of(longs([1]), np.array([-1.0])), "negative or NaN"),
        (lambda: WeightTally.of(longs([1]), np.array([])), "one value per class"),
        (lambda: SizeHistogram().risk([1.5]), "between 0 and 1. Got 1.5"),
        (lambda: PopulationHistogram().risk([math.nan]), "between 0 and 1. Got nan"),
    ],
)
def test_errors(call, said):
    with pytest.raises(InputError, match=said):
        call()


@given(st.lists(st.tuples(st.integers(1, 30), st.integers(0, 40)), max_size=12))
def test_bins_of_sizes_and_shares_of_the_population(classes: list[tuple[int, int]]) -> None:
    """Every record is in one bin; presence is a share, of the classes that the population covers."""
    sizes, people = (np.array([one[i] for one in classes], dtype=np.int64) for i in (0, 1))
    bins = records_by_size(*SizeHistogram.of(sizes).candidates)
    for least, most, records in bins:
        assert records == sum(f for f, _ in classes if f >= least and (most is None or f <= most))
    assert sum(records for *_, records in bins) == sizes.sum()
    shares = [min(f / big, 1) for f, big in classes if big]
    expected = (min(shares), max(shares)) if shares else None
    assert PopulationHistogram.of(sizes, people).presence == expected
