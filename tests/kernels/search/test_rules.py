"""Rules of LSFB06 §3 and F12 Algorithm 1 on arrays: the order of all cells, MinRisk and its gap, levels of a rule."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive_decisions import Known, disclose, literal, subsuming, to_dictionary
from strategies import several_hierarchies

from privrisk_spark.errors import InputError
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.counting.cells import CellSpace
from privrisk_spark.kernels.counting.consistent import Axis, DenseCounts
from privrisk_spark.kernels.disclosure.disclosure import Disclosure
from privrisk_spark.kernels.disclosure.risk import Attacker
from privrisk_spark.kernels.disclosure.sensitivity import Sensitivity
from privrisk_spark.kernels.search import rules as kernel
from privrisk_spark.kernels.search.cell_order import DIGITS, CellOrder
from privrisk_spark.kernels.search.cells_asked import cells_at
from privrisk_spark.kernels.search.rules import (
    Exposure,
    decide_at,
    generalizing,
    least_exposed,
    marginal_counts,
    min_risk,
    risks_at,
    suppressing,
)

# ------------------------------------------------------------------------------------------------ the order of cells


def found_in_parts(order: CellOrder, parts: list[tuple[np.ndarray, np.ndarray]]) -> CellOrder:
    while not order.done:
        tallies = [order.tally(exposure, records) for exposure, records in parts]
        order = order.next(*(np.concatenate(columns) for columns in zip(*tallies, strict=True)))
    return order


@given(data=st.data())
def test_the_last_cell_is_that_of_a_sort_however_the_table_is_cut(data: st.DataObject) -> None:
    """Ties in exposure and attribute, infinite exposures, missing cells; records by the order of their fingerprints."""
    n, k = data.draw(st.integers(1, 8)), data.draw(st.integers(1, 3))
    value = st.sampled_from([0.0, 5e-324, 0.1, 0.1 + 2**-56, 1.0, 3.5, math.inf, math.nan])
    exposure = np.array([[data.draw(value) for _ in range(k)] for _ in range(n)])
    near = st.sampled_from([0, 1, 2**16, 2**16 + 1, 2**48, 2**63, 2**63 + 1, 2**64 - 1, 7, 9])
    records = np.array(data.draw(st.lists(near, min_size=n, max_size=n, unique=True)), dtype=np.uint64)
    cells = sorted(
        (exposure[i, j], j, int(records[i]), i) for i in range(n) for j in range(k) if not math.isnan(exposure[i, j])
    )
    cut = data.draw(st.integers(0, n))
    parts = [(exposure[:cut], records[:cut]), (exposure[cut:], records[cut:])]
    for scope in ("table", "attribute"):
        groups = [cells] if scope == "table" else [[c for c in cells if c[1] == j] for j in range(k)]
        asked = data.draw(st.integers(0, min(map(len, groups))))
        order = found_in_parts(CellOrder.wanted(scope, k, asked), parts)  # type: ignore[arg-type]
        wanted = {(i, j) for group in groups for _, j, _, i in group[:asked]}
        shown = np.concatenate([order.disclosed(*part) for part in parts])
        assert {(int(i), int(j)) for i, j in np.argwhere(shown)} == wanted
        fewest = min(map(len, groups))
        with pytest.raises(InputError, match=f"there are {fewest} cells to disclose"):
            found_in_parts(CellOrder.wanted(scope, k, fewest + 1), parts)  # type: ignore[arg-type]


def test_records_that_are_not_told_apart_are_rather_suppressed() -> None:
    exposure, records = np.zeros((3, 1)), np.array([4, 4, 2], dtype=np.uint64)
    order = CellOrder.wanted("table", 1, 2)
    while not order.done:
        order = order.next(*order.tally(exposure, records))
    assert order.step == DIGITS
    assert order.disclosed(exposure, records)[:, 0].tolist() == [False, False, True]


def test_where_a_whole_digit_is_taken_nothing_more_is_counted() -> None:
    order = CellOrder.wanted("table", 2, 2)
    order = order.next(*order.tally(np.array([[1.0, 9.0], [1.0, np.nan]]), np.array([1, 2], dtype=np.uint64)))
    assert order.done


# ------------------------------------------------------------------------------------------------ MinRisk


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[Hierarchy], np.ndarray, Disclosure, list[list[int]], DenseCounts]:
    hierarchies = draw(several_hierarchies())
    record = st.tuples(*[st.integers(0, h.n_leaves) for h in hierarchies])
    codes = np.array(draw(st.lists(record, min_size=1, max_size=6)), dtype=np.int32)
    disclosure = disclose(
        hierarchies,
        weights=[draw(st.sampled_from([0.0, 0.3, 1.0])) for _ in hierarchies],
        form=draw(st.sampled_from(["multiplicative", "constant"])),
        model=draw(st.sampled_from(["I", "II"])),
        measure="depth",
    )
    dictionary = to_dictionary(hierarchies, codes[draw(st.integers(0, len(codes) - 1)) :])
    vectors, multiplicity = np.unique(dictionary, axis=0, return_counts=True)
    counts = DenseCounts.roll_up([Axis(h.at_depth, h.ancestor) for h in hierarchies], vectors, multiplicity)
    return hierarchies, codes, disclosure, dictionary.tolist(), counts


@given(table=tables(), personal=st.booleans(), bounded=st.booleans(), data=st.data())
def test_min_risk_is_the_literal_rule_and_its_gap_holds(
    table: tuple[list[Hierarchy], np.ndarray, Disclosure, list[list[int]], DenseCounts],
    personal: bool,
    bounded: bool,
    data: st.DataObject,
) -> None:
    hierarchies, codes, disclosure, dictionary, counts = table
    n, k = codes.shape
    cells = data.draw(st.integers(0, k))
    scale = np.array([[data.draw(st.sampled_from([0.5, 1.0, 2.0])) for _ in range(k)] for _ in range(n)])
    exposure = Exposure.of(disclosure, marginal_counts(counts, disclosure.code_depth), counts.dictionary_rows)
    most = kernel.MOST_ALTERNATIVES
    kernel.MOST_ALTERNATIVES = 1 if bounded else most
    try:
        found = min_risk(
            disclosure, Attacker.knowing(counts), codes, exposure, cells, personal=scale if personal else None
        )
    finally:
        kernel.MOST_ALTERNATIVES = most
    known = Known(dictionary, subsuming(hierarchies))
    for r in range(n):
        of = literal(disclosure, hierarchies, codes[r], [known], scale[r].tolist() if personal else [1.0] * k)

        def levels(shown: tuple[int, ...], depths: list[int] = of.depths) -> tuple[int, ...]:
            return tuple(0 if j in shown else depth for j, depth in enumerate(depths))

        there = [j for j, depth in enumerate(of.depths) if depth > 0]
        gammas = {}
        for j in there:
            node = [h.root for h in hierarchies]
            node[j] = int(codes[r, j])
            alone = naive.count_any(known.relations, node, known.rows)
            weight = 0.0
            if disclosure.model == "I" and disclosure.sensitivity.form == "multiplicative":
                weight = float(disclosure.sensitivity.weights[j][codes[r, j]]) * (scale[r, j] if personal else 1.0)
            gammas[j] = weight + math.log(len(dictionary)) - math.log(max(alone, 1))
        assert found.feasible[r] == (len(there) >= cells)
        if len(there) < cells:
            assert tuple(found.levels[r]) == tuple(of.depths)
            assert found.gap is not None
            assert found.gap[r] == 0
            continue
        shown = tuple(sorted(there, key=lambda j: (round(gammas[j], 12), j))[:cells])
        near = {round(gammas[j], 9) for j in shown} & {round(gammas[j], 9) for j in set(there) - set(shown)}
        if not near:
            assert tuple(found.levels[r]) == levels(shown)
        chosen = tuple(int(x) for x in found.levels[r])
        assert sum(x == 0 for x, d in zip(chosen, of.depths, strict=True) if d) == cells
        assert found.risk[r] == pytest.approx(of.risk(chosen), rel=1e-12)
        assert found.risk_before[r] == pytest.approx(of.risk((0,) * k), rel=1e-12)
        assert found.utility[r] == pytest.approx(of.utility(chosen))
        assert found.consistent[r] == of.consistent(chosen)
        best = min(of.risk(levels(one)) for one in itertools.combinations(there, cells))
        open_ = found.risk[r] - best
        assert found.gap is not None
        if bounded:
            assert found.gap[r] >= open_ - 1e-12
            if cells == 1 and naive.count_any(
                known.relations, [int(c) for c in to_dictionary(hierarchies, codes[[r]])[0]], known.rows
            ):
                assert found.gap[r] == pytest.approx(0, abs=1e-12), "one value alone is counted as it is"
        else:
            assert found.gap[r] == pytest.approx(max(open_, 0.0), abs=1e-12)


@given(table=tables(), data=st.data())
def test_levels_of_a_rule_have_their_true_risk(
    table: tuple[list[Hierarchy], np.ndarray, Disclosure, list[list[int]], DenseCounts], data: st.DataObject
) -> None:
    """Against two dictionaries, expected and at worst; the original record is what it was."""
    hierarchies, codes, disclosure, dictionary, counts = table
    other = to_dictionary(hierarchies, codes[:1])
    second = DenseCounts.roll_up([Axis(h.at_depth, h.ancestor) for h in hierarchies], other, np.ones(1, dtype=np.int64))
    known = [Known(dictionary, subsuming(hierarchies)), Known(other.tolist(), subsuming(hierarchies))]
    rule = [data.draw(st.integers(0, h.height)) for h in hierarchies]
    levels = generalizing(disclosure, codes, rule)
    for name, prior in (("bayes", (0.25, 0.75)), ("minimax", ())):
        attacker = Attacker((counts, second), name, prior)  # type: ignore[arg-type]
        found = decide_at(disclosure, attacker, codes, levels)
        each, _ = risks_at(disclosure, attacker, codes, levels)
        for r, record in enumerate(codes):
            of = literal(disclosure, hierarchies, record, known, [1.0] * len(rule), name, prior or (0.5, 0.5))
            want = tuple(min(level, depth) for level, depth in zip(rule, of.depths, strict=True))
            assert tuple(found.levels[r]) == want
            assert found.risk[r] == pytest.approx(of.risk(want), rel=1e-12)
            assert found.consistent[r] == of.consistent(want)
            for d, one in enumerate(known):
                alone = literal(disclosure, hierarchies, record, [one], [1.0] * len(rule))
                assert each[d][r] == pytest.approx(alone.risk(want), rel=1e-12)


@given(table=tables(), data=st.data())
def test_cells_to_ask_are_those_that_are_looked_up(
    table: tuple[list[Hierarchy], np.ndarray, Disclosure, list[list[int]], DenseCounts], data: st.DataObject
) -> None:
    """Each cell once, in one word or several."""
    hierarchies, codes, disclosure, dictionary, _ = table
    axes = [Axis(h.at_depth, h.ancestor) for h in hierarchies]
    present = [np.unique([row[i] for row in dictionary]).astype(np.int32) for i in range(len(axes))]
    shown = np.array([[data.draw(st.booleans()) for _ in hierarchies] for _ in codes])
    vectors = [np.zeros(codes.shape, dtype=np.int8), suppressing(disclosure, codes, shown)]
    for room in (2**63, max(2, max(h.n_nodes for h in hierarchies) + 1)):
        space = CellSpace.of(axes, present, room=room)
        found = list(zip(*[word.tolist() for word in cells_at(space, codes, vectors)], strict=True))
        want = set()
        for levels in vectors:
            for record, of in zip(codes, levels, strict=True):
                words = space.words_at([record[[i]] for i in range(len(axes))], of.tolist())
                want.add(tuple(int(word[0]) for word in words))
        assert found == sorted(want)


@pytest.mark.parametrize(
    ("model", "form"), [("I", "linear"), ("I", "record"), ("I", "interaction"), ("III", "multiplicative")]
)
@given(table=tables())
def test_cells_that_do_not_multiply_have_no_exposure(
    model: str, form: str, table: tuple[list[Hierarchy], np.ndarray, Disclosure, list[list[int]], DenseCounts]
) -> None:
    _, _, disclosure, _, counts = table
    other = replace(disclosure, model=model, sensitivity=replace(disclosure.sensitivity, form=form))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="'minrisk' ranks cells"):
        Exposure.of(other, marginal_counts(counts, disclosure.code_depth), counts.dictionary_rows)


def test_a_missing_cell_is_disclosed_by_no_rule() -> None:
    exposure = np.array([[np.nan, 2.0], [1.0, np.inf]])
    assert least_exposed(exposure, 2, "record").tolist() == [[False, True], [True, True]]
    assert least_exposed(exposure, 2, "attribute").tolist() == [[False, True], [True, True]]
    assert least_exposed(exposure, 2, "table").tolist() == [[False, True], [True, False]]


def flat(values: int) -> tuple[np.ndarray, np.ndarray]:
    """``at_depth`` and ``ancestor`` of values under one root."""
    at_depth = np.array([[values, j] for j in range(values)] + [[values, -1]], dtype=np.int32)
    ancestor = np.array([[j, values] for j in range(values)] + [[values, values]], dtype=np.int32)
    return at_depth, ancestor


def flat_disclosure(values: list[int], weights: list[float]) -> tuple[Disclosure, list[Axis]]:
    axes = [Axis(*flat(n)) for n in values]
    return Disclosure(
        ancestor=tuple(axis.ancestor for axis in axes),
        code_depth=tuple(axis.code_depth for axis in axes),
        utility=tuple(np.append(np.ones(n), 0.0) for n in values),
        sensitivity=Sensitivity(
            "multiplicative", tuple(np.append(np.full(n, w), 0.0) for n, w in zip(values, weights, strict=True))
        ),
        model="I",
    ), axes


@pytest.mark.parametrize("cells", [1, 2, 3])
def test_the_bound_of_single_values_holds_where_attributes_depend_on_each_other(
    monkeypatch: pytest.MonkeyPatch, cells: int
) -> None:
    """Also for records that the dictionary lacks, whose counts are one more."""
    monkeypatch.setattr(kernel, "MOST_ALTERNATIVES", 0)
    rng = np.random.default_rng(cells)
    disclosure, axes = flat_disclosure([3, 3, 2, 3], [0.3, 0.9, 0.1, 0.5])
    opened = 0
    for _ in range(40):
        base = rng.integers(0, 3, 12)
        theta = np.column_stack([base, (base + (rng.uniform(size=12) < 0.3)) % 3, base % 2, rng.integers(0, 3, 12)])
        codes = np.concatenate([theta[:4], rng.integers(0, 2, (4, 4))]).astype(np.int32)
        counts = DenseCounts.roll_up(axes, *np.unique(theta.astype(np.int32), axis=0, return_counts=True))
        exposure = Exposure.of(disclosure, marginal_counts(counts, disclosure.code_depth), counts.dictionary_rows)
        found = min_risk(disclosure, Attacker.knowing(counts), codes, exposure, cells)
        assert found.gap is not None
        for r, record in enumerate(codes):
            absent = not (theta == record).all(axis=1).any()
            risks = {
                shown: math.exp(sum([0.3, 0.9, 0.1, 0.5][j] for j in shown))
                / ((theta[:, shown] == record[list(shown)]).all(axis=1).sum() + absent)
                for shown in itertools.combinations(range(4), cells)
            }
            open_ = float(found.risk[r]) - min(risks.values())
            assert found.gap[r] >= open_ - 1e-12
            assert found.gap[r] < found.risk[r]
            opened += open_ > 1e-9
    assert opened > 3


def test_a_label_unlike_any_other_counts_the_record_itself() -> None:
    """Where labels only resemble each other, a more general value may have no row at all: the risk is not 0 then."""

    class Unlike:
        dictionary_rows, monotone, alike = 5, False, ()

        def consistent(self, codes: list[np.ndarray], levels: list[int], depths: list[int]) -> np.ndarray:
            del depths
            return np.full(len(codes[0]), 0 if any(levels) else 2, dtype=np.int64)

    disclosure, _ = flat_disclosure([2, 2], [1.0, 1.0])
    codes = np.zeros((1, 2), dtype=np.int32)
    found = decide_at(disclosure, Attacker.knowing(Unlike()), codes, np.array([[0, 1]], dtype=np.int8))  # type: ignore[arg-type]
    assert found.consistent.tolist() == [1]
    assert found.risk[0] == pytest.approx(math.e)
