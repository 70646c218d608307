from __future__ import annotations

import itertools
import math
from dataclasses import replace

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive_decisions import Known, Task, build, check, naive_decision, subsuming, to_dictionary
from strategies import several_hierarchies

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.counting.consistent import Axis, DenseCounts, SortedCounts
from privrisk_spark.kernels.disclosure.disclosure import Disclosure
from privrisk_spark.kernels.disclosure.objective import GreatestAggregate, LeastPenalized, LeastRisk
from privrisk_spark.kernels.disclosure.risk import Attacker
from privrisk_spark.kernels.disclosure.sensitivity import Sensitivity, interaction
from privrisk_spark.kernels.disclosure.utility import node_utility
from privrisk_spark.kernels.search.crossing import crossings
from privrisk_spark.kernels.search.table_search import decide


@pytest.mark.parametrize("order", [2, 3, 4])
def test_interactions_are_the_sum_over_disclosed_subsets(order: int) -> None:
    rng = np.random.default_rng(order)
    n, k = 40, 4
    disclosed = rng.uniform(size=(n, k)) < 0.7
    sets = list(itertools.combinations(range(k), order))
    for weights in (rng.uniform(size=len(sets)), rng.uniform(size=(n, len(sets)))):
        found = interaction(disclosed, sets, weights)
        for r in range(n):
            shown = set(np.flatnonzero(disclosed[r]).tolist())
            of_record = weights[r] if weights.ndim == 2 else weights
            want = sum(w for members, w in zip(sets, of_record.tolist(), strict=True) if set(members) <= shown)
            assert found[r] == pytest.approx(want)
        for j in range(k):
            less = disclosed.copy()
            less[:, j] = False
            assert (interaction(less, sets, weights) <= found).all()


def test_an_infinite_weight_counts_only_where_its_set_is_disclosed() -> None:
    found = interaction(np.array([[True, True], [True, False]]), [(1, 0)], np.array([np.inf]))
    assert found.tolist() == [np.inf, 0]


@pytest.mark.parametrize("sets", [[(0,)], [(0, 0)], [(0, 2)], [(-1, 0)], [(0, 1), (1, 0)]])
def test_what_is_no_set_of_attributes_is_refused(sets: list[tuple[int, ...]]) -> None:
    with pytest.raises(InputError, match="interactions"):
        interaction(np.ones((1, 2), dtype=np.bool_), sets, np.ones(len(sets)))


def test_negative_weights_are_refused() -> None:
    for weight in (-1.0, np.nan):
        with pytest.raises(InputError, match="negative"):
            interaction(np.ones((1, 2), dtype=np.bool_), [(0, 1)], np.array([weight]))


@st.composite
def sensitivities(draw: st.DrawFn, k: int) -> tuple[tuple[tuple[int, ...], ...], tuple[float, ...]]:
    """Sets of two or more of k attributes, and weights; the same set never twice."""
    every = [s for size in range(2, k + 1) for s in itertools.combinations(range(k), size)]
    sets = draw(st.lists(st.sampled_from(every), min_size=1, max_size=4, unique=True)) if every else []
    return tuple(sets), tuple(draw(st.sampled_from([0.0, 0.4, 2.0, math.inf])) for _ in sets)


@given(data=st.data())
def test_the_form_is_the_linear_one_and_the_sets_disclosed_whole(data: st.DataObject) -> None:
    """Personal weights scale single attributes, the record's factor the sets; a node of weight 0 is disclosed."""
    k = data.draw(st.integers(1, 4))
    sets, of_set = data.draw(sensitivities(k))
    weight = st.sampled_from([0.0, 0.5, 1.5])
    weights = tuple(np.array([data.draw(weight), data.draw(weight), 0.0]) for _ in range(k))
    n = data.draw(st.integers(1, 5))
    nodes = np.array([[data.draw(st.integers(0, 2)) for _ in range(k)] for _ in range(n)], dtype=np.int32)
    personal = np.array([[data.draw(st.sampled_from([0.0, 1.0, 3.0])) for _ in range(k)] for _ in range(n)])
    factor = np.array([data.draw(st.sampled_from([0.0, 1.0, 2.5])) for _ in range(n)])
    sensitivity = Sensitivity("interaction", weights, sets=sets, set_weights=of_set)
    columns = [nodes[:, j] for j in range(k)]
    plain = sensitivity.phi(columns)
    scaled = sensitivity.phi(columns, personal=personal, record_weight=factor)
    for r in range(n):
        suppressed = [bool(node == 2) for node in nodes[r]]
        own = [float(w[node]) for w, node in zip(weights, nodes[r], strict=True)]
        together = list(zip(sets, of_set, strict=True))
        assert plain[r] == pytest.approx(naive.phi("interaction", own, suppressed, interactions=together))
        own = [w * float(p) for w, p in zip(own, personal[r], strict=True)]
        want = naive.phi("interaction", own, suppressed, record=float(factor[r]), interactions=together)
        assert scaled[r] == pytest.approx(want)


@pytest.mark.parametrize(("search", "neighbourhood"), [("exact", "swap"), ("aruba", "cube"), ("exhaustive", "swap")])
@given(data=st.data())
def test_searches_that_enumerate_are_the_literal_search(search: str, neighbourhood: str, data: st.DataObject) -> None:
    """Also where records are alike but for what a set weighs, and with weights of a record's own."""
    hierarchies = data.draw(several_hierarchies())
    k = len(hierarchies)
    record = st.tuples(*[st.integers(0, h.n_leaves) for h in hierarchies])
    codes = np.array(data.draw(st.lists(record, min_size=1, max_size=6)), dtype=np.int32)
    top = sum(float(node_utility("depth", h.depth, h.n_under).max()) for h in hierarchies)
    problem = build(
        hierarchies,
        weights=[data.draw(st.sampled_from([0.0, 0.3, 1.0])) for _ in hierarchies],
        form="interaction",
        model=data.draw(st.sampled_from(["I", "II", "III"])),
        measure="depth",
        floor=data.draw(st.floats(0, 1)) * top,
        search=search,
        neighbourhood=neighbourhood,
    )
    sets, of_set = data.draw(sensitivities(k))
    problem = problem.disclosing(sensitivity=replace(problem.disclosure.sensitivity, sets=sets, set_weights=of_set))
    dictionary = to_dictionary(hierarchies, codes[data.draw(st.integers(0, len(codes) - 1)) :])
    vectors, multiplicity = np.unique(dictionary, axis=0, return_counts=True)
    counts = DenseCounts.roll_up([Axis(h.at_depth, h.ancestor) for h in hierarchies], vectors, multiplicity)
    scale = np.array([[data.draw(st.sampled_from([0.0, 1.0, 2.0])) for _ in hierarchies] for _ in codes])
    personal = data.draw(st.booleans())
    found = decide(*problem, counts, codes, personal=scale if personal else None)
    known = Known([[int(v) for v in row] for row in dictionary], subsuming(hierarchies))
    for i, one in enumerate(codes):
        own = scale[i].tolist() if personal else [1.0] * k
        check(found, i, naive_decision(problem, hierarchies, one, [known], own), hierarchies, one)


def test_records_of_other_factors_are_not_alike() -> None:
    """Two equal records, of which one's factor makes the set dearer than suppressing an attribute saves."""
    at_depth = np.array([[1, 0], [1, -1]], dtype=np.int32)
    ancestor = np.array([[0, 1], [1, 1]], dtype=np.int32)
    axes = [Axis(at_depth, ancestor)] * 2
    leaf = np.array([1.0, 0.0])
    problem = Task.of(
        LeastPenalized(2.0),
        method="exhaustive",
        ancestor=(ancestor, ancestor),
        code_depth=tuple(axis.code_depth for axis in axes),
        utility=(np.array([1.0, 0.0]), np.array([2.0, 0.0])),
        sensitivity=Sensitivity("interaction", (leaf, leaf), sets=((0, 1),), set_weights=(1.0,)),
        model="I",
    )
    counts = DenseCounts.roll_up(axes, np.zeros((1, 2), dtype=np.int32), np.array([1]))
    codes = np.zeros((2, 2), dtype=np.int32)
    # r - 2u of all disclosed is f - 4, of the second alone -3.
    found = decide(*problem, counts, codes, record_weight=np.array([0.5, 5.0]))
    assert found.levels.tolist() == [[0, 0], [1, 0]]
    assert found.risk.tolist() == [2.5, 1.0]


def test_crossings_weigh_the_sets_and_the_weights_of_a_record() -> None:
    """One row, so 1/r is 1/Φ: 1/(a + b + f) as it is, 1/b with the second attribute alone, which loses one unit of
    utility, and 1/a with the first, which loses two."""
    at_depth = np.array([[1, 0], [1, -1]], dtype=np.int32)
    ancestor = np.array([[0, 1], [1, 1]], dtype=np.int32)
    axes = [Axis(at_depth, ancestor)] * 2
    disclosure = Disclosure(
        ancestor=(ancestor, ancestor),
        code_depth=tuple(axis.code_depth for axis in axes),
        utility=(np.array([1.0, 0.0]), np.array([2.0, 0.0])),
        sensitivity=Sensitivity("interaction", (np.array([1.0, 0.0]),) * 2, sets=((0, 1),), set_weights=(1.0,)),
        model="I",
    )
    counts = Attacker.knowing(DenseCounts.roll_up(axes, np.zeros((1, 2), dtype=np.int32), np.array([1])))
    codes = np.zeros((3, 2), dtype=np.int32)
    personal, factor = np.array([[1.0, 1.0], [1.0, 1.0], [0.5, 4.0]]), np.array([0.5, 5.0, 0.0])
    found = crossings(disclosure, GreatestAggregate(1.0), counts, codes, personal=personal, record_weight=factor)
    assert found == pytest.approx([1 / (1 - 1 / 2.5), 1 / (1 - 1 / 7), 2 / (2 - 1 / 4.5)])


@pytest.mark.parametrize("search", ["branch_and_bound", "btda", "genetic", "approximate"])
def test_a_search_of_one_record_refuses_what_is_no_sum(search: str) -> None:
    at_depth = np.array([[1, 0], [1, -1]], dtype=np.int32)
    ancestor = np.array([[0, 1], [1, 1]], dtype=np.int32)
    axis = Axis(at_depth, ancestor)
    problem = Task.of(
        LeastRisk(0.0),
        method=search,
        ancestor=(ancestor, ancestor),
        code_depth=(axis.code_depth, axis.code_depth),
        utility=(np.array([1.0, 0.0]),) * 2,
        sensitivity=Sensitivity("interaction", (np.array([1.0, 0.0]),) * 2, sets=((0, 1),), set_weights=(1.0,)),
        model="I",
    )
    counts = SortedCounts.group([axis, axis], np.zeros((1, 2), dtype=np.int32), np.array([1]))
    with pytest.raises(InputError, match="'interaction' use 'exact' or 'exhaustive'"):
        decide(*problem, counts, np.zeros((1, 2), dtype=np.int32))
