"""Searches in blocks, in tasks: links of the blocks alone, and a recall as a loop over everybody finds it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from linked_files import noisy

from privrisk_spark.engine.batches import Scratch
from privrisk_spark.errors import InternalError
from privrisk_spark.extensions.attack.kernels.blocked import BlockedFile, ConsistentCells, PrincipalAxis
from privrisk_spark.extensions.attack.kernels.fellegi_sunter import fitted, started
from privrisk_spark.extensions.attack.kernels.membership import dealt
from privrisk_spark.extensions.attack.kernels.recall import Recall
from privrisk_spark.extensions.attack.stages import blocks, distance
from privrisk_spark.extensions.attack.stages.blocks import blocks_of, collect_recall, sampled
from privrisk_spark.extensions.attack.stages.distance import Comparison, StoredLinks, collect_links, store_file
from privrisk_spark.extensions.attack.stages.number_ends import NumberEnds
from privrisk_spark.extensions.attack.stages.presence import collect_dealt
from privrisk_spark.extensions.attack.stages.probabilistic import LevelColumn, collect_patterns, store_compared
from privrisk_spark.extensions.attack.stages.protected import Tuples
from privrisk_spark.hierarchies.hierarchy import Hierarchy


def tuples(nodes: np.ndarray, seed: int) -> Tuples:
    distinct = np.unique(nodes, axis=0).astype(np.int32)
    return Tuples(distinct, np.random.default_rng(seed).integers(1, 5, len(distinct)))


@pytest.fixture
def linked(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Scratch, Tuples, StoredLinks, np.ndarray]:
    """Numbers with much noise, linked on an axis in several tasks; and of whom a loop finds that nothing is lost."""
    monkeypatch.setattr(distance, "PAIRS", 2**14)
    known, shown, ends = noisy(500, (0.5, 0.5), seed=2)
    tree = Hierarchy.from_paths("a", [(f"{end:.6f}",) for end in ends])
    both = NumberEnds(np.append(ends, -np.inf), np.append(ends, np.inf), 0.0)
    rows, people = tuples(shown, 1), tuples(known, 2)
    scratch = Scratch(spark, tmp_path)
    compared = Comparison((tree, tree), (0.5, 0.5), (both, both))
    stored = store_file(scratch.directory("rows"), rows, compared, np.ones(len(rows.rows)), reading="nearest")
    most = 3 * len(people.rows) * 2 * 33
    by = blocks_of(stored, people, way="automatic", most=most)
    assert isinstance(by, PrincipalAxis)
    assert blocks_of(stored, people, way="consistent_cells", most=most) is None
    links = collect_links(scratch, replace(stored, blocks=by), people, "some")
    every = stored.load().file.linked(people.nodes)
    found, _ = BlockedFile(stored.load().file, by).told(people.nodes)
    same = (found.distance <= every.distance + 1e-9) & (found.rows == every.rows)
    _, best = links.load()
    assert best.rows.tolist() == found.rows.tolist()
    assert best.distance.tobytes() == found.distance.tobytes()
    assert best.first.tolist() == found.first.tolist()
    assert len(links.parts) > 3
    return scratch, people, links, same


def test_recall_is_measured_on_those_of_whom_it_is_not_proved(
    linked: tuple[Scratch, Tuples, StoredLinks, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch, people, links, same = linked
    truth = people.rows[same].sum() / people.rows.sum()
    assert truth < 1
    found = collect_recall(scratch, links, most=10**9, seed=1)
    assert (found.people, found.drawn) == (people.rows.sum(), 1000)
    assert links.open is not None
    assert found.proved == found.people - sum(links.open)
    assert 0 < found.proved < found.people
    assert found.kept < found.drawn
    assert found.low < truth < found.high
    # Many draws come to the truth: those of whom it is not proved are drawn as often as they have people.
    monkeypatch.setattr(blocks, "MOST_DRAWN", 60_000)
    assert collect_recall(scratch, links, most=10**9, seed=1).share == pytest.approx(truth, abs=0.004)
    few = collect_recall(scratch, links, most=1, seed=1)
    assert few.drawn == blocks.LEAST_DRAWN
    with pytest.raises(InternalError, match="compared with everything"):
        collect_recall(scratch, replace(links, open=None), most=1, seed=1)


def test_levels_make_blocks_of_consistent_cells(spark: Any, tmp_path: Path) -> None:
    tree = Hierarchy.from_paths("a", [(f"v{i}", f"w{i // 4}") for i in range(16)])
    generator = np.random.default_rng(5)
    rows, people = (tuples(generator.integers(0, top, (200, 3)), 3) for top in (tree.n_nodes, 16))
    scratch = Scratch(spark, tmp_path)
    compared = Comparison((tree,) * 3, (1 / 3,) * 3, (None,) * 3)
    stored = store_file(scratch.directory("rows"), rows, compared, np.ones(len(rows.rows)), reading="uniform")
    most = len(rows.rows) * len(people.rows)
    by = blocks_of(stored, people, way="automatic", most=most)
    assert isinstance(by, ConsistentCells)
    assert blocks_of(stored, people, way="principal_axis", most=10**9) is None
    texts = replace(compared, texts=frozenset({0, 1, 2}))
    spelled = store_file(scratch.directory("texts"), rows, texts, np.ones(len(rows.rows)), reading="nearest")
    assert blocks_of(spelled, people, way="automatic", most=10**9) is None, "texts may be spelled in two ways"
    links = collect_links(scratch, replace(stored, blocks=by), people, "some")
    assert links.open is not None
    assert 0 < sum(links.open) < people.total


def within(found: Recall, same: np.ndarray, people: Tuples) -> None:
    """A recall that was measured has what a loop finds within its limits, and proves none that is lost."""
    truth = people.rows[same].sum() / people.rows.sum()
    assert found.low <= truth <= found.high
    assert 0 < found.proved <= people.rows[same].sum()
    assert found.drawn > 0


def damaged(seed: int, rows: int) -> tuple[Hierarchy, Tuples, Tuples]:
    """People, and rows a third of whose cells are generalized, a tenth suppressed and a tenth wrong."""
    generator = np.random.default_rng(seed)
    tree = Hierarchy.from_paths("a", [(f"v{i}", f"w{i // 4}") for i in range(24)])
    true = generator.integers(0, 24, (rows, 4)).astype(np.int32)
    shown, drawn = true.copy(), generator.random(true.shape)
    shown[drawn < 0.3] = tree.parent[true[drawn < 0.3]]
    shown[(drawn >= 0.3) & (drawn < 0.4)] = tree.root
    wrong = drawn >= 0.9
    shown[wrong] = generator.integers(0, 24, wrong.sum())
    return tree, *(Tuples(*np.unique(of, axis=0, return_counts=True)) for of in (shown, true))


def test_match_weights_are_estimated_from_a_sample_and_searched_in_blocks(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The estimate is near that of all pairs; links are those of the kernel, and the recall is that of a loop."""
    monkeypatch.setattr(distance, "PAIRS", 2**16)
    tree, rows, people = damaged(3, 600)
    scratch = Scratch(spark, tmp_path)
    columns = [LevelColumn(tree), LevelColumn(tree), LevelColumn(tree, (), frequencies=np.full(tree.n_nodes, 0.04))]
    stored = store_compared(scratch.directory("rows"), rows, [*columns, LevelColumn(tree)], np.ones(len(rows.rows)))
    some = sampled(people, 300, seed=5)
    assert some.total == 300
    assert len(some.rows) < 300
    again = sampled(people, 300, seed=5)
    assert (again.nodes.tobytes(), again.rows.tolist()) == (some.nodes.tobytes(), some.rows.tolist())
    models = []
    for name, known in (("some", some), ("all", people)):
        counts = collect_patterns(scratch, stored, known, name)
        models.append(fitted(counts, started(counts, prior=1 / 600), fixed_prior=True).model)
    for of in ("m", "u"):
        for one, other in zip(getattr(models[0], of), getattr(models[1], of), strict=True):
            np.testing.assert_allclose(one, other, atol=0.06)
    weighed = stored.weighed(models[0])
    assert blocks_of(weighed, people, way="principal_axis", most=10**9) is None, "match weights have no axis"
    by = blocks_of(weighed, people, way="automatic", most=len(rows.rows) * len(people.rows))
    assert isinstance(by, ConsistentCells)
    links = collect_links(scratch, replace(weighed, blocks=by), people, "weighed")
    assert len(links.parts) > 3
    file, (_, best) = weighed.load().file, links.load()
    found, every = BlockedFile(file, by).linked(people.nodes), file.linked(people.nodes)
    assert best.rows.tolist() == found.rows.tolist()
    assert best.distance.tobytes() == found.distance.tobytes()
    same = (found.distance <= every.distance + 1e-9) & (found.rows == every.rows)
    assert 0.8 < same.mean() < 1
    within(collect_recall(scratch, links, most=10**9, seed=1), same, people)


def test_rows_are_dealt_in_blocks_and_what_is_lost_is_told(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In several tasks as in none; with all rows in blocks of everybody to the same figures as without blocks."""
    monkeypatch.setattr(distance, "PAIRS", 2**16)
    tree, rows, people = damaged(4, 500)
    scratch = Scratch(spark, tmp_path)
    compared = Comparison((tree,) * 4, (0.25,) * 4, (None,) * 4)
    stored = store_file(scratch.directory("people"), people, compared, np.ones(len(people.rows)), reading="nearest")
    by = blocks_of(stored, rows, way="automatic", most=len(rows.rows) * len(people.rows))
    assert isinstance(by, ConsistentCells)
    some, links_of_some = collect_dealt(scratch, replace(stored, blocks=by), rows, "some")
    assert links_of_some is not None
    assert len(links_of_some.parts) > 3
    assert some @ people.rows == pytest.approx(rows.total)
    file = stored.load().file
    found, every = BlockedFile(file, by).linked(rows.nodes), file.linked(rows.nodes)
    _, best = links_of_some.load()
    assert best.rows.tolist() == found.rows.tolist()
    same = (found.distance <= every.distance + 1e-9) & (found.rows == every.rows)
    assert same.mean() < 1
    within(collect_recall(scratch, links_of_some, most=10**9, seed=1), same, rows)
    exact, links_of_exact = collect_dealt(scratch, stored, rows, "exact")
    assert links_of_exact is None
    np.testing.assert_allclose(exact, dealt(file, rows.nodes, rows.rows), atol=1e-8)
    # Rows that show nothing in a column are in one block of it, with everybody.
    bare = Tuples(np.unique(np.where(np.arange(4) == 0, tree.root, rows.nodes), axis=0), np.ones(1, dtype=np.int64))
    bare = replace(bare, rows=np.ones(len(bare.nodes), dtype=np.int64))
    whole, links_of_whole = collect_dealt(scratch, replace(stored, blocks=ConsistentCells((0,))), bare, "whole")
    assert links_of_whole is not None
    assert links_of_whole.open is not None
    assert sum(links_of_whole.open) == 0
    assert whole.tobytes() == collect_dealt(scratch, stored, bare, "bare")[0].tobytes()
