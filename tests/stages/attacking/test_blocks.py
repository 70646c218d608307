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
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.linkage.blocked import BlockedFile, ConsistentCells, PrincipalAxis
from privrisk_spark.stages.attacking import blocks, distance
from privrisk_spark.stages.attacking.blocks import blocks_of, collect_recall
from privrisk_spark.stages.attacking.distance import Comparison, StoredLinks, collect_links, store_file
from privrisk_spark.stages.attacking.number_ends import NumberEnds
from privrisk_spark.stages.attacking.protected import Tuples


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
