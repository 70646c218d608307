"""The contract of what is measured part by part and added up, held against every tally there is."""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privrisk_spark
from privrisk_spark.errors import InternalError
from privrisk_spark.extensions.attack.kernels.patterns import PatternCounts
from privrisk_spark.extensions.network.kernels.access import Entries
from privrisk_spark.extensions.network.kernels.access_tasks import Amounts, Search
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.json_values import as_json, from_json
from privrisk_spark.kernels.classes.classes import Classes
from privrisk_spark.kernels.classes.criteria import DELTA_DISCLOSURE, ENTROPY_DIVERSITY
from privrisk_spark.kernels.classes.diversity import SensitiveRuns
from privrisk_spark.kernels.classes.tally import ClassTally
from privrisk_spark.kernels.measures.classification import ClassificationTally
from privrisk_spark.kernels.measures.divergence import DivergenceTally, LeafCounts
from privrisk_spark.kernels.measures.household import HouseholdTally
from privrisk_spark.kernels.measures.identity import SizeHistogram
from privrisk_spark.kernels.measures.interval_disclosure import Deviation, IntervalTally
from privrisk_spark.kernels.measures.loss import CellTally, SizeTally
from privrisk_spark.kernels.measures.numeric_utility import NumericMeans, NumericSpread
from privrisk_spark.kernels.measures.population_risk import IndividualRiskTally
from privrisk_spark.kernels.measures.population_sizes import PopulationHistogram
from privrisk_spark.kernels.measures.special_uniques import ScoreTally, SpecialUniques
from privrisk_spark.kernels.measures.weighted_sizes import WeightTally
from privrisk_spark.kernels.numeric.bins import BinCounts
from privrisk_spark.kernels.numeric.covariance import CrossMoments
from privrisk_spark.kernels.numeric.exact_sums import ExactMean
from privrisk_spark.kernels.numeric.fold import Fold, folded, folded_dicts
from privrisk_spark.kernels.numeric.moments import Moments
from privrisk_spark.stages.assessing.tallies import ClassMeasures, Released, Sensitive, Tallies

Item = tuple[Any, ...]


@dataclass(frozen=True)
class Case:
    """A tally, and how to make one of items: the rows, records or classes of a part.

    Attributes
    ----------
    of : callable
        Tally of some items.
    empty : Fold
        Of the same question.
    items : strategy
        All items of a table.
    others : tuple of Fold
        Of other questions.
    """

    name: str
    of: Callable[[Sequence[Item]], Any]
    empty: Any
    items: st.SearchStrategy[list[Item]]
    others: tuple[Any, ...] = ()


def longs(values: Sequence[int]) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def ints(values: Sequence[Any], width: int) -> np.ndarray:
    return np.array(values, dtype=np.int32).reshape(-1, width)


def floats(values: Sequence[float]) -> np.ndarray:
    return np.array(values, dtype=np.float64)


def marks(values: Sequence[bool]) -> np.ndarray:
    return np.array(values, dtype=np.bool_)


def column(items: Sequence[Item], i: int) -> list[Any]:
    return [item[i] for item in items]


def runs_of(classes: Sequence[dict[int, int]]) -> SensitiveRuns:
    runs = [run for one in classes for run in sorted(one.items())]
    start = np.cumsum([0, *(len(one) for one in classes)]).astype(np.int64)
    return SensitiveRuns(start, ints([s for s, _ in runs], 1)[:, 0], longs([c for _, c in runs]))


def lists(*of: st.SearchStrategy[Any], key: Callable[[Item], Any] | None = None) -> st.SearchStrategy[list[Item]]:
    return st.lists(st.tuples(*of), max_size=9, unique_by=key)


# Values that add up to something else in another order, both zeros, and what few sums hold.
POSITIVE = st.one_of(st.floats(0, allow_infinity=False), st.sampled_from([0.0, -0.0, 0.1, 1e308, 5e-324, 2.0**53]))
SIGNED = st.one_of(POSITIVE, POSITIVE.map(lambda value: -value))
UP_TO_INFINITY = st.one_of(POSITIVE, st.just(math.inf))
MAYBE = st.one_of(SIGNED, st.just(math.nan))
ROWS = st.integers(1, 2**20)
WEIGHTS = st.integers(0, 2**62)
KEYS = (st.integers(0, 3), st.integers(0, 3))
NUMBERS = st.sampled_from([0.0, 0.25, 0.5, 0.5 + 1e-13, 1.0, math.log(3), math.inf])
HELD = st.dictionaries(st.integers(0, 4), st.integers(1, 6), min_size=1, max_size=5)

TREES = [
    Hierarchy.from_paths("p", [("a", "far"), ("b", "far"), ("c", "near"), ("d", "near")]),
    Hierarchy.from_paths("q", [("x",), ("y",), ("z",)]),
]
LOSSES = [floats([0.0, 0.1, 1 / 3, 0.7]), floats([0.0, 1.0])]
ANCESTOR = ints([[0, 5, 7], [1, 5, 7], [2, 6, 7], [3, 6, 7], [4, 6, 7]], 3)
ASKED = ClassMeasures(
    tuple(TREES),
    k=3,
    worst=2,
    thresholds=(0.1, 1 / 3),
    bounds={"t_closeness": 0.3},
    sensitive=(Sensitive("s", "ordered", None, 3.0, 99), Sensitive("t", "hierarchical", ANCESTOR, 0.5, 99)),
    label=1,
    tables=(longs([600, 300, 200, 100, 7]), longs([100] * 5)),
    cells=True,
    released=Released(ints([[4, 0], [5, 3], [6, 3]], 2), longs([3, 4, 5])),
)
PLAIN = ClassMeasures(tuple(TREES), k=3, worst=2, thresholds=())


def class_tally(items: Sequence[Item], most: int = 3) -> ClassTally:
    """Values that are equal often, so that codes decide which are the worst."""
    a, b, values, rows = (column(items, i) for i in range(4))
    keys = ints(list(zip(a, b, strict=True)), 2)
    return ClassTally.of(DELTA_DISCLOSURE, floats(values), longs(rows), keys, asked=math.log(3), most=most)


def score_tally(items: Sequence[Item]) -> ScoreTally:
    numbers = ints([item[1:3] for item in items], 2)
    contributions = longs([item[3:6] for item in items]).reshape(-1, 3)
    return ScoreTally.of(SpecialUniques(longs(column(items, 0)), numbers, contributions))


def leaf_counts(items: Sequence[Item]) -> LeafCounts:
    return LeafCounts.of(ints([item[:2] for item in items], 2), longs(column(items, 2)), (3, 2))


def classification(items: Sequence[Item]) -> ClassificationTally:
    runs = runs_of(column(items, 0))
    return ClassificationTally.of(runs.class_start, runs.value, runs.count, suppressed=marks(column(items, 1)))


def tallies(items: Sequence[Item]) -> Tallies:
    nodes, held, other, millionths, people, alike = (column(items, i) for i in range(6))
    runs = (runs_of(held), runs_of(other))
    rows = runs[0].rows if items else longs([])
    fellows = (rows + longs(alike), longs(millionths) + longs(alike))
    classes = Classes(ints(nodes, 2), rows, None, longs(millionths), runs, *fellows)
    return Tallies.of(classes, ASKED, longs(people))


def sides(items: Sequence[Item]) -> tuple[np.ndarray, np.ndarray]:
    """Two columns of numbers, original and masked."""
    return (floats([item[:2] for item in items]).reshape(-1, 2), floats([item[2:] for item in items]).reshape(-1, 2))


SMALL = st.one_of(st.floats(-1e9, 1e9), st.just(math.nan))
ABOUT = NumericMeans.of(floats([[0.1, 2.0], [0.3, -7.0]]), floats([[0.7, 1.0], [0.1, 1 / 3]]))


def amounts(items: Sequence[Item]) -> Amounts:
    loss, utility, tops, keys = (column(items, i) for i in range(4))
    entries = Entries(floats(loss), floats(utility), np.array(tops, dtype=np.int8))
    return Amounts.of(entries, np.array(keys, dtype=np.uint64), search=LIMITED)


LIMITED = Search("most-utility", 0.7)
NODES = st.tuples(st.integers(0, 6), st.integers(0, 3))
CASES = [
    Case(
        "moments",
        lambda items: Moments.of(floats(column(items, 0)), longs(column(items, 1))),
        Moments.empty(),
        lists(UP_TO_INFINITY, st.integers(0, 2**30)),
    ),
    Case(
        "exact mean",
        lambda items: ExactMean.of(floats(column(items, 0)), longs(column(items, 1))),
        ExactMean.empty(),
        lists(SIGNED, WEIGHTS),
    ),
    Case(
        "counts",
        lambda items: BinCounts.of(longs(items).reshape(-1, 3).sum(axis=0)),
        BinCounts.empty(3),
        lists(ROWS, ROWS, ROWS),
        (BinCounts.empty(2),),
    ),
    Case(
        "class tally",
        class_tally,
        ClassTally.empty(DELTA_DISCLOSURE, asked=math.log(3), most=3),
        lists(*KEYS, NUMBERS, ROWS, key=lambda item: item[:2]),
        (
            ClassTally.empty(DELTA_DISCLOSURE, asked=1.0, most=3),
            ClassTally.empty(ENTROPY_DIVERSITY, asked=math.log(3), most=3),
            ClassTally.empty(DELTA_DISCLOSURE, asked=math.log(3), most=4),
        ),
    ),
    Case("sizes", lambda items: SizeHistogram.of(longs(column(items, 0))), SizeHistogram.empty(), lists(ROWS)),
    Case(
        "sizes in the population",
        lambda items: PopulationHistogram.of(longs(column(items, 0)), longs(column(items, 1))),
        PopulationHistogram.empty(),
        lists(st.integers(1, 3), st.integers(0, 2**40)),
    ),
    Case(
        "weighted sizes",
        lambda items: WeightTally.of(longs(column(items, 0)), floats(column(items, 1)), (0.1, 1 / 3)),
        WeightTally.empty((0.1, 1 / 3)),
        lists(st.integers(1, 50), UP_TO_INFINITY),
        (WeightTally.empty((0.1, 0.3)), WeightTally.empty()),
    ),
    Case(
        "individual risk",
        lambda items: IndividualRiskTally.of(longs(column(items, 0)), floats(column(items, 1)), (0.1, 1 / 3)),
        IndividualRiskTally.empty((0.1, 1 / 3)),
        lists(st.integers(1, 50), st.floats(0, 1e9)),
        (IndividualRiskTally.empty((0.1, 0.3)), IndividualRiskTally.empty()),
    ),
    Case(
        "scores of special uniques",
        score_tally,
        ScoreTally.empty(3, 2),
        lists(ROWS, *[st.integers(0, 9)] * 2, *[st.integers(0, 2**40)] * 3),
        (ScoreTally.empty(2, 2), ScoreTally.empty(3, 1)),
    ),
    Case(
        "sizes against k",
        lambda items: SizeTally.of(longs(column(items, 0)), k=3, suppressed=marks(column(items, 1))),
        SizeTally.empty(k=3),
        lists(st.integers(0, 2**62), st.booleans()),
        (SizeTally.empty(k=4),),
    ),
    Case(
        "cells",
        lambda items: CellTally.of(ints([item[:2] for item in items], 2), longs(column(items, 2)), LOSSES),
        CellTally.empty(2),
        lists(st.integers(0, 3), st.integers(0, 1), WEIGHTS),
        (CellTally.empty(3),),
    ),
    Case(
        "agreement patterns",
        lambda items: PatternCounts.of(longs(column(items, 0)), longs(column(items, 1)), (3, 2)),
        PatternCounts.empty((3, 2)),
        lists(st.integers(0, 11), st.one_of(st.just(0), st.integers(0, 2**59))),
        (PatternCounts.empty((2, 3)), PatternCounts.empty((3,))),
    ),
    Case(
        "households",
        lambda items: HouseholdTally.of(
            longs([i for i, item in enumerate(items) for _ in item[0]]), floats([r for item in items for r in item[0]])
        ),
        HouseholdTally.empty(),
        lists(st.lists(st.floats(0, 1), min_size=1, max_size=4)),
    ),
    Case(
        "means of numbers",
        lambda items: NumericMeans.of(*sides(items)),
        NumericMeans.empty(2),
        lists(*[SMALL] * 4),
        (NumericMeans.empty(3),),
    ),
    Case(
        "spread of numbers",
        lambda items: NumericSpread.of(*sides(items), ABOUT),
        NumericSpread.empty(2),
        lists(*[SMALL] * 4),
        (NumericSpread.empty(1),),
    ),
    Case("classification", classification, ClassificationTally.empty(), lists(HELD, st.booleans())),
    Case(
        "divergence",
        lambda items: DivergenceTally.of(longs(column(items, 0)), floats(column(items, 1))),
        DivergenceTally.empty(),
        lists(ROWS, st.one_of(st.just(0.0), st.floats(1e-300, 1e9))),
    ),
    Case("leaves", leaf_counts, LeafCounts.empty((3, 2)), lists(*KEYS, ROWS), (LeafCounts.empty((2, 3)),)),
    Case(
        "interval disclosure",
        lambda items: IntervalTally.of(
            floats(column(items, 0)), floats(column(items, 1)), marks(column(items, 2)), longs(column(items, 3))
        ),
        IntervalTally.empty(),
        lists(MAYBE, MAYBE, st.booleans(), WEIGHTS),
    ),
    Case(
        "moments of several attributes",
        lambda items: CrossMoments.of(floats([list(item) for item in items]).reshape(-1, 3)),
        CrossMoments.empty(3),
        lists(MAYBE, SIGNED, SIGNED),
        (CrossMoments.empty(2),),
    ),
    Case(
        "deviation",
        lambda items: Deviation.of(floats(column(items, 0)), longs(column(items, 1))),
        Deviation.empty(),
        lists(MAYBE, WEIGHTS),
    ),
    Case(
        "amounts of access control",
        amounts,
        Amounts.empty(LIMITED),
        lists(
            st.sampled_from([0.0, 0.1, 1 / 3, 2.0, 1e300]),
            st.sampled_from([0.0, 0.1, 1 / 3, 2.0]),
            st.integers(0, 127),
            st.integers(0, 2**64 - 1),
            key=lambda item: item[3],
        ),
        (Amounts.empty(Search("least-loss", 0.7)), Amounts.empty(Search("most-utility", 0.7, bits=16))),
    ),
    Case(
        "all tallies of classes",
        tallies,
        Tallies.empty(ASKED, weighted=True, population=True, compatible=True),
        lists(
            NODES,
            HELD,
            HELD,
            st.integers(0, 10**9),
            st.integers(0, 9),
            st.integers(0, 9),
            key=lambda item: item[0],
        ),
        (
            Tallies.empty(ASKED, weighted=True, population=True),
            Tallies.empty(ASKED, population=True, compatible=True),
            Tallies.empty(PLAIN, weighted=True, population=True, compatible=True),
        ),
    ),
]

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def text(tally: Fold) -> str:
    """All bits of a tally, as it travels."""
    return json.dumps(as_json(tally), allow_nan=False)


def same(one: Any, other: Any) -> bool:
    """Of one type, equal, and written alike: 0.0 and -0.0 are not the same."""
    return type(one) is type(other) and one == other and text(one) == text(other)


def drawn(data: st.DataObject, case: Case, parts: int) -> tuple[list[Item], list[list[Item]]]:
    """A table, and its items dealt to parts, in some order."""
    items = data.draw(case.items, label="items")
    owner = data.draw(st.lists(st.integers(0, parts - 1), min_size=len(items), max_size=len(items)), label="owner")
    order = data.draw(st.permutations(range(len(items))), label="order")
    return items, [[items[i] for i in order if owner[i] == part] for part in range(parts)]


@every_case
@settings(max_examples=40)
@given(data=st.data())
def test_parts_add_up_to_the_whole_in_any_order(case: Case, data: st.DataObject) -> None:
    """Homomorphism, associativity and freedom of order, to the bit."""
    items, parts = drawn(data, case, 3)
    a, b, c = (case.of(part) for part in parts)
    whole = case.of(items)
    assert same(a.plus(b), b.plus(a))
    assert same(a.plus(b).plus(c), a.plus(b.plus(c)))
    for order in ((a, b, c), (c, a, b), (b, c, a)):
        assert same(folded(case.empty, order), whole)


@every_case
@settings(max_examples=25)
@given(data=st.data())
def test_the_empty_tally_changes_nothing(case: Case, data: st.DataObject) -> None:
    tally = case.of(data.draw(case.items))
    assert same(case.empty, case.of([]))
    assert same(case.empty.plus(tally), tally)
    assert same(tally.plus(case.empty), tally)
    assert same(folded(case.empty, []), case.empty)


@every_case
@settings(max_examples=25)
@given(data=st.data())
def test_nothing_is_lost_on_the_way_through_json(case: Case, data: st.DataObject) -> None:
    _, parts = drawn(data, case, 2)
    found = [case.of(part) for part in parts]
    for tally in (*found, case.empty, found[0].plus(found[1])):
        again = from_json(type(tally), json.loads(text(tally)))
        assert same(again, tally)
        assert hash_or_none(again) == hash_or_none(tally)
    sent = [json.loads(text(tally)) for tally in found]
    assert same(folded_dicts(case.empty, sent), found[0].plus(found[1]))


def hash_or_none(tally: Any) -> int | None:
    """Hash, where a tally holds no mapping: lists that come back instead of tuples have none."""
    return None if isinstance(tally, Tallies) else hash(tally)


@every_case
def test_tallies_of_other_questions_are_refused(case: Case) -> None:
    for other in case.others:
        with pytest.raises(InternalError):
            case.empty.plus(other)
        with pytest.raises(InternalError):
            other.plus(case.empty)


@every_case
def test_a_tally_cannot_be_changed(case: Case) -> None:
    assert dataclasses.is_dataclass(case.empty)
    for field in dataclasses.fields(case.empty):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(case.empty, field.name, None)


PACKAGE = Path(privrisk_spark.__file__).parent
CONTRACT = ("of", "empty", "plus")
OTHER_NAMES = {"merge", "merged", "combine", "combined", "__add__", "__iadd__", "__radd__", "join", "joined"}


@functools.cache
def methods() -> dict[tuple[str, str], set[str]]:
    """Methods by module and class."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        module = ".".join(("privrisk_spark", *path.relative_to(PACKAGE).with_suffix("").parts))
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                found[module, node.name] = {one.name for one in node.body if isinstance(one, ast.FunctionDef)}
    return found


def test_every_tally_there_is_is_in_the_list() -> None:
    there = {key for key, names in methods().items() if "plus" in names} - {
        ("privrisk_spark.kernels.numeric.fold", "Fold")
    }
    listed = {(type(case.empty).__module__, type(case.empty).__name__) for case in CASES}
    assert listed == there
    assert len(listed) == len(CASES)


def test_every_tally_has_the_whole_contract() -> None:
    for module, name in {key for key, names in methods().items() if "plus" in names}:
        kind = getattr(import_module(module), name)
        for method in CONTRACT:
            assert inspect.getdoc(getattr(kind, method)), f"{name}.{method}"
        for method in ("of", "empty"):
            assert isinstance(inspect.getattr_static(kind, method), classmethod), f"{name}.{method}"


def test_there_is_one_name_for_adding_up() -> None:
    """Boxes of a search, which are split and merged, are no tallies."""
    others = {
        key: names & OTHER_NAMES
        for key, names in methods().items()
        if key[0].startswith("privrisk_spark.kernels") and "search" not in key[0]
    }
    assert not {key: names for key, names in others.items() if names}
