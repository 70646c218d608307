"""The sample of the decisions: the same however rows are dealt to tasks, and its riskiest classes those of all."""

from __future__ import annotations

import json
import random
from dataclasses import fields
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from privrisk_spark.engine import schemas
from privrisk_spark.engine.decided import Decided, WeightColumns
from privrisk_spark.engine.fingerprints import fingerprints
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.counting.consistent import Axis, SortedCounts
from privrisk_spark.kernels.disclosure.decisions import Decisions
from privrisk_spark.kernels.disclosure.disclosure import Disclosure
from privrisk_spark.kernels.disclosure.objective import LeastRisk
from privrisk_spark.kernels.disclosure.risk import Attacker
from privrisk_spark.kernels.disclosure.sensitivity import Sensitivity
from privrisk_spark.kernels.disclosure.utility import node_utility
from privrisk_spark.kernels.search.method import Search
from privrisk_spark.kernels.search.table_search import decide
from privrisk_spark.planning.trade_off import SHOWN, SampleSize
from privrisk_spark.results.trade_off import RowPair
from privrisk_spark.stages.deciding.sampled import Sample, Sampling, sampled_facts, trade_off

TREES = (
    Hierarchy.from_paths("city", [(f"{i}{j}", f"{i}") for i in "abc" for j in "123"]),
    Hierarchy.from_paths("sex", [("f",), ("m",)]),
)
AXES = tuple(Axis(tree.at_depth, tree.ancestor) for tree in TREES)
ROWS = 400
WHOLE = SampleSize(ROWS, ROWS, 6)


def decided_rows() -> tuple[Decided, Disclosure, SortedCounts]:
    """Rows of a small table, the last value missing, each decided for a floor of 1; every ninth is not released."""
    draw = np.random.default_rng(3)
    codes = np.column_stack([draw.integers(0, tree.n_leaves, ROWS) for tree in TREES]).astype(np.int32)
    codes[-1, 0] = TREES[0].n_leaves
    own = np.where(codes == [tree.n_leaves for tree in TREES], [tree.root for tree in TREES], codes).astype(np.int32)
    vectors, times = np.unique(own, axis=0, return_counts=True)
    counts = SortedCounts.group(AXES, vectors, times)
    disclosure = Disclosure(
        ancestor=tuple(tree.ancestor for tree in TREES),
        code_depth=tuple(axis.code_depth for axis in AXES),
        utility=tuple(node_utility("depth", tree.depth, tree.n_under) for tree in TREES),
        sensitivity=Sensitivity("constant", tuple(np.ones(tree.n_nodes) for tree in TREES)),
        model="I",
    )
    decisions = decide(disclosure, Search(LeastRisk(1.0)), counts, codes)
    columns: dict[str, Any] = {schemas.RECORD_ID: [f"id {i}" for i in range(ROWS)]}
    columns |= dict(zip(schemas.codes(2), codes.T, strict=True))
    table = pa.table({name: pa.array(values) for name, values in columns.items()})
    return Decided(table, decisions, np.arange(ROWS), np.arange(ROWS) % 9 > 0), disclosure, counts


def part(whole: Decided, rows: list[int]) -> Decided:
    """Some rows as a chunk of their own."""
    columns = {one.name: getattr(whole.decisions, one.name) for one in fields(Decisions)}
    kept = {name: column[rows] for name, column in columns.items() if column is not None}
    return Decided(whole.table.take(pa.array(rows)), Decisions(**kept), np.arange(len(rows)), whole.kept[rows])


def sampled(whole: Decided, sampling: Sampling, layout: list[list[int]]) -> Sample:
    facts = [sampled_facts(part(whole, rows), sampling, (), k=2) for rows in layout]
    return Sample.of_parts(json.loads(json.dumps(facts)), sampling, k=2)


def content(sample: Sample) -> list[object]:
    arrays = [getattr(sample, name) for name in ("codes", "weights", "levels", "released", "risk", "utility")]
    return [*(array.tolist() for array in arrays), sample.riskiest]


@pytest.mark.parametrize("records", [5, 40, ROWS, 10 * ROWS])
def test_the_sample_is_the_same_however_rows_are_dealt(records: int) -> None:
    whole, _, _ = decided_rows()
    sampling = Sampling(records, ROWS, 0)
    every = list(range(ROWS))
    found = [sampled(whole, sampling, [every])]
    for parts in (4, 11):
        random.Random(parts).shuffle(every)
        found.append(sampled(whole, sampling, [every[i::parts] for i in range(parts)]))
    assert content(found[0]) == content(found[1]) == content(found[2])
    draw = fingerprints(whole.table.column(schemas.RECORD_ID))
    first = np.argsort(draw)[:records]
    assert found[0].risk.tolist() == whole.decisions.risk[first].tolist()
    assert found[0].released.tolist() == whole.kept[first].tolist()


def test_what_a_task_reports_does_not_grow_with_its_rows() -> None:
    """Planted: every row reported, of which the driver keeps a few."""
    sampling = Sampling(16, 10**9, 0)
    whole, _, _ = decided_rows()
    assert len(sampled_facts(whole, sampling, (), k=2)["sample"]["draw"]) < 5
    assert sampling.below / 2**64 == pytest.approx(56 / 10**9)


def test_the_riskiest_classes_are_those_of_all_released_rows() -> None:
    every, _, _ = decided_rows()
    top = every.decisions.risk.argmax()
    unreleased = np.logical_and.reduce([every.node(a) == every.node(a)[top] for a in range(2)])
    whole = Decided(every.table, every.decisions, every.rows, every.kept & ~unreleased)
    known: dict[tuple[int, ...], tuple[float, int]] = {}
    for i in range(ROWS):
        if whole.kept[i]:
            nodes = tuple(int(whole.node(a)[i]) for a in range(2))
            risk, consistent = float(whole.decisions.risk[i]), int(whole.decisions.consistent[i])
            had = known.get(nodes, (risk, consistent))
            known[nodes] = max(had[0], risk), min(had[1], consistent)
    wanted = sorted(((nodes, *found) for nodes, found in known.items()), key=lambda one: (-one[1], one[0]))[:SHOWN]
    found = sampled(whole, Sampling(8, ROWS, 0), [list(range(ROWS))])
    assert list(found.riskiest) == wanted
    labels = [one.labels for one in found.risky_classes(TREES)]
    assert labels[0] == tuple(tree.labels[node] for tree, node in zip(TREES, wanted[0][0], strict=True))


def test_rows_are_shown_as_a_reader_sees_them() -> None:
    whole, _, _ = decided_rows()
    # The one with the missing value, one that is not released, and one that is.
    rows = [ROWS - 1, 0, 1]
    pairs = sampled(whole, Sampling(3, 3, 0), [rows]).pairs(TREES)
    found = {pair.before: pair for pair in pairs}
    for row in rows:
        codes, levels = ([int(whole.table.column(f"q{a}")[row].as_py()) for a in range(2)], whole.decisions.levels[row])
        before = tuple(None if c == tree.n_leaves else tree.labels[c] for tree, c in zip(TREES, codes, strict=True))
        after = tuple(tree.labels[tree.ancestor[c, x]] for tree, c, x in zip(TREES, codes, levels, strict=True))
        shown = after if whole.kept[row] else ()
        risks = float(whole.decisions.risk_before[row]), float(whole.decisions.risk[row])
        assert found[before] == RowPair(before, shown, *risks)
    assert any(pair.before[0] is None for pair in pairs)
    assert sum(not pair.after for pair in pairs) == 1


def test_a_release_lies_on_the_map_of_its_own_floor() -> None:
    """If all records are sampled and released, its means are those of the floor it was made for."""
    whole, disclosure, counts = decided_rows()
    everything = Decided(whole.table, whole.decisions, whole.rows, np.ones(ROWS, dtype=np.bool_))
    sample = sampled(everything, Sampling(ROWS, ROWS, 0), [list(range(ROWS))])
    facts = trade_off(sample, disclosure, Attacker.knowing(counts), WeightColumns(), size=WHOLE, own=True, floor=1.0)
    (own,) = [one for one in facts.floors if one.floor == 1.0]
    assert (facts.risk, facts.utility) == pytest.approx((own.risk, own.utility))
    assert facts.risk == pytest.approx(whole.decisions.risk.mean())
    assert facts.fits_before.alone == int((sample.risk_before == 1).sum())
    assert facts.fits_after.least == whole.decisions.consistent.min()
    assert [one.share for one in facts.parts] == [1, 0.5, 0.2, 0.1, 0.01]
    assert facts.parts[0].after == pytest.approx((1 / whole.decisions.consistent).mean())
    assert all(one.before >= one.after for one in facts.parts)
    assert [one.before for one in facts.parts] == sorted(one.before for one in facts.parts)
    assert [one.k for one in facts.anonymous] == [2, 5, 10]
    held = sampled(whole, Sampling(ROWS, ROWS, 0), [list(range(ROWS))])
    less = trade_off(held, disclosure, Attacker.knowing(counts), WeightColumns(), size=WHOLE, own=True, floor=1.0)
    assert less.utility < facts.utility, "records that are not released count as suppressed"


def test_of_a_large_lattice_some_levels_stand_for_all() -> None:
    whole, disclosure, counts = decided_rows()
    sample = sampled(whole, Sampling(ROWS, ROWS, 0), [list(range(ROWS))])
    size = SampleSize(ROWS, 100, 6, ((0, 2), (0, 1)))
    facts = trade_off(sample, disclosure, Attacker.knowing(counts), WeightColumns(), size=size, own=True, floor=1.0)
    assert (facts.records, facts.nodes, facts.of_nodes, facts.kept) == (100, 4, 6, ((0, 2), (0, 1)))
    assert {one.levels for one in facts.recodings} <= {(0, 0), (0, 1), (2, 0), (2, 1)}
    # The release is where it is, whatever else was evaluated.
    all_levels = SampleSize(ROWS, 100, 6)
    full = trade_off(
        sample, disclosure, Attacker.knowing(counts), WeightColumns(), size=all_levels, own=True, floor=1.0
    )
    assert (facts.risk, facts.utility) == (full.risk, full.utility)
    assert (facts.fits_before, facts.fits_after) == (full.fits_before, full.fits_after)
