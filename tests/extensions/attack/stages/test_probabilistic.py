from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

from privrisk_spark.engine.batches import Batches, Scratch
from privrisk_spark.extensions.attack.kernels.fellegi_sunter import LinkageModel, fitted, started
from privrisk_spark.extensions.attack.kernels.patterns import digits_of
from privrisk_spark.extensions.attack.stages import distance
from privrisk_spark.extensions.attack.stages.distance import collect_links, collect_outcomes, linked
from privrisk_spark.extensions.attack.stages.number_ends import number_ends
from privrisk_spark.extensions.attack.stages.probabilistic import (
    LevelColumn,
    NumberColumn,
    StoredComparisons,
    collect_patterns,
    store_compared,
)
from privrisk_spark.extensions.attack.stages.protected import Tuples, forms
from privrisk_spark.hierarchies.hierarchy import Hierarchy

AGE = Hierarchy.from_paths("age", [("1", "low"), ("2", "low"), ("8", "high"), ("9", "high")], null_leaf=True)
TOWN = Hierarchy.from_paths("town", [("u", "south"), ("m", "south"), ("k", "north"), ("b", "north")])
LOW, AGE_ROOT = AGE.labels.index("low"), AGE.root
SOUTH, TOWN_ROOT = TOWN.labels.index("south"), TOWN.root
ENDS = number_ends("age", AGE, np.array([1, 1, 1, 1, 0, 0, 0, 0]))

RECORDS = Tuples(
    np.array([[0, 2], [2, 3], [LOW, SOUTH], [LOW, TOWN_ROOT], [AGE_ROOT, 0]], dtype=np.int32), np.array([1, 2, 3, 1, 1])
)
KNOWN = Tuples(np.array([[0, 0], [0, 2], [1, 1], [2, 3], [3, 0]], dtype=np.int32), np.array([2, 1, 1, 1, 2]))


def stored_in(scratch: Scratch, records: Tuples = RECORDS) -> StoredComparisons:
    columns = [NumberColumn(ENDS.low, ENDS.high), LevelColumn(TOWN, equal=True)]
    return store_compared(scratch.directory("rows"), records, columns, np.linspace(0.2, 1, len(records.rows)))


@pytest.mark.parametrize("pairs", [distance.PAIRS, 1])
def test_patterns_do_not_depend_on_tasks(
    spark: SparkSession, tmp_path: Any, monkeypatch: pytest.MonkeyPatch, pairs: int
) -> None:
    """In one task, and in one a tuple."""
    monkeypatch.setattr(distance, "PAIRS", pairs)
    stored = stored_in(Scratch(spark, tmp_path))
    found = collect_patterns(Scratch(spark, tmp_path), stored, KNOWN, "person")
    assert (stored.levels, stored.tuples, found.total) == ((3, 4), 5, 7 * 8)
    assert found == stored.load().counted(KNOWN.nodes, KNOWN.rows)
    assert found.digits[:, 1].max() == 4  # a town that is suppressed


def test_links_are_those_of_greatest_weight(spark: SparkSession, tmp_path: Any) -> None:
    """Of the age 2 bits if it agrees, else below 0; of the town 3 if equal, 1 if covered, 0 if near, and -4."""
    scratch = Scratch(spark, tmp_path)
    stored = stored_in(scratch)
    model = LinkageModel(((0.8, 0.15, 0.05), (0.8, 0.1, 0.05, 0.05)), ((0.2, 0.4, 0.4), (0.1, 0.05, 0.05, 0.8)), 0.1)
    weighed = stored.weighed(model)
    assert (weighed.tuples, weighed.weights) == (5, model.weights)
    links = collect_links(scratch, weighed, KNOWN, "person")
    _, nearest = links.load()
    digits = digits_of(stored.load().patterns(KNOWN.nodes).reshape(-1), stored.levels)
    weights = model.weights_of(digits).reshape(5, 5)
    np.testing.assert_allclose(weighed.weights_at(nearest.distance), weights.max(axis=1), atol=1e-9)
    tied = [int(RECORDS.rows[row >= row.max() - 1e-9].sum()) for row in weights]
    assert nearest.rows.tolist() == tied
    people = [("a", *KNOWN.nodes[0], LOW, SOUTH, 2), ("b", *KNOWN.nodes[1], 0, 2, 1), ("c", *KNOWN.nodes[4], 0, 2, 1)]
    frame = spark.createDataFrame([(p[0], *(int(n) for n in p[1:])) for p in people], forms(2))
    records = Batches.of_frame(frame)
    outcomes = linked(records, links, known=["q0", "q1"], own=["n0", "n1"])
    told = {row["record_id"]: row for row in outcomes.frame().collect()}
    for name, known, own in (("a", 0, 2), ("b", 1, 0), ("c", 4, 0)):
        assert told[name]["own_row_is_nearest"] == (weights[known, own] >= weights[known].max() - 1e-9)
        assert told[name]["tied_rows"] == tied[known]
    assert {told[name]["own_row_is_nearest"] for name in told} == {True, False}
    assert collect_outcomes(outcomes).people.sum() == 3


def test_a_fitted_model_finds_people(spark: SparkSession, tmp_path: Any) -> None:
    """Three columns, of which one is generalized in every row and one wrong in a tenth: most people are found."""
    generator = np.random.default_rng(11)
    tree = Hierarchy.from_paths("a", [(f"v{i}", f"w{i // 3}") for i in range(30)])
    true = np.unique(generator.integers(0, 30, (300, 4)), axis=0).astype(np.int32)
    released = true.copy()
    released[:, 0] = tree.parent[true[:, 0]]
    wrong = generator.random(len(true)) < 0.1
    released[wrong, 1] = generator.integers(0, 30, wrong.sum())
    # Some rows of the release are alike now.
    nodes, place = np.unique(released, axis=0, return_inverse=True)
    rows = np.bincount(place.reshape(-1)).astype(np.int64)
    known = Tuples(true, np.ones(len(true), dtype=np.int64))
    scratch = Scratch(spark, tmp_path)
    columns = [LevelColumn(tree)] * 4
    stored = store_compared(scratch.directory("rows"), Tuples(nodes, rows), columns, np.ones(len(rows)))
    counts = collect_patterns(scratch, stored, known, "person")
    found = fitted(counts, started(counts))
    assert found.converged
    assert found.parted
    # About a tenth of linked pairs disagree in the second column, and none elsewhere.
    assert 0.85 < found.model.m[1][0] < 0.95
    assert min(found.model.m[j][0] for j in (0, 2, 3)) > 0.98
    assert found.model.prior == pytest.approx(1 / len(true), rel=0.05)
    weighed = stored.weighed(found.model)
    loaded, (_, nearest) = weighed.load(), collect_links(scratch, weighed, known, "person").load()
    right = loaded.file.holds(true, place.reshape(-1).astype(np.int64), nearest) / nearest.rows
    assert right.mean() > 0.9
