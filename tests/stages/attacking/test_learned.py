from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import Batches, Scratch
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.linkage.learned.families import KINDS
from privrisk_spark.kernels.linkage.learned.fitting import Limits
from privrisk_spark.stages.attacking.distance import Comparison, store_file
from privrisk_spark.stages.attacking.learned import Sample, collect_learned, collect_sample
from privrisk_spark.stages.attacking.protected import Tuples, forms

TREE = Hierarchy.from_paths("a", [(f"v{i}", f"w{i // 3}") for i in range(9)])


def beside(n: int, *, seed: int = 7) -> tuple[np.ndarray, np.ndarray]:
    """People of three columns, of which two are kept and one is noise; no two are alike."""
    first = np.random.default_rng(seed).integers(0, 9, n)
    i = np.arange(n)
    known, own = (np.column_stack([first, second, i % 9]).astype(np.int32) for second in (i // 81, i // 9 % 9))
    return known, own


def people_of(spark: Any, known: np.ndarray, own: np.ndarray, parts: int) -> Batches:
    ids = pa.array([f"p{i}" for i in range(len(known))])
    columns = [ids, *map(pa.array, known.T), *map(pa.array, own.T), pa.nulls(len(known), pa.int64())]
    names = ["record_id", *schemas.codes(3), *schemas.nodes(3), "consistent"]
    return Batches.of_frame(spark.createDataFrame(pa.table(columns, names), forms(3)).repartition(parts))


def drawn(spark: Any, parts: int, *, training: int = 60, held_out: int = 40, seed: int = 1, n: int = 300) -> Sample:
    people = people_of(spark, *beside(n), parts)
    codes, nodes = schemas.codes(3), schemas.nodes(3)
    sample = collect_sample(people, known=codes, own=nodes, training=training, held_out=held_out, seed=seed)
    assert sample is not None
    return sample


def rows(sample: Sample) -> list[list[list[int]]]:
    return [np.hstack([one.known, one.own]).tolist() for one in (sample.training, sample.held_out)]


def test_samples_do_not_depend_on_partitions_and_share_nobody(spark: Any) -> None:
    """Of distinct people; more of those held out, and other people under another seed."""
    one = drawn(spark, 1)
    assert [rows(drawn(spark, parts)) for parts in (4, 11)] == [rows(one)] * 2
    training, held_out = ({tuple(row) for row in part} for part in rows(one))
    everybody = {tuple(row) for row in np.hstack(beside(300)).tolist()}
    assert len(everybody) == 300
    assert (len(training), len(held_out)) == (60, 40)
    assert not training & held_out
    assert training | held_out < everybody
    assert {tuple(row) for row in rows(drawn(spark, 1, held_out=90))[0]} == training
    assert {tuple(row) for row in rows(drawn(spark, 1, seed=2))[0]} != training


def test_a_small_table_is_divided_in_proportion(spark: Any) -> None:
    for n, expected in ((10, (6, 4)), (2, (1, 1)), (100, (60, 40))):
        one = drawn(spark, 2, n=n)
        assert (len(one.training.known), len(one.held_out.known)) == expected
    alone = people_of(spark, *beside(1), 2)
    names = schemas.codes(3), schemas.nodes(3)
    assert collect_sample(alone, known=names[0], own=names[1], training=60, held_out=40, seed=1) is None


@pytest.fixture(scope="module")
def fitted(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    scratch = Scratch(spark, tmp_path_factory.mktemp("learned"))
    _, own = beside(300)
    nodes, of = np.unique(own, axis=0, return_counts=True)
    compared = Comparison((TREE,) * 3, (1 / 3,) * 3, (None,) * 3)
    present = np.full(len(nodes), 0.5)
    stored = store_file(scratch.directory("rows"), Tuples(nodes, of), compared, present, reading="nearest")
    sample = drawn(spark, 3)
    sample.held_out.own[0] = -1  # somebody the file lacks
    limits = Limits(rounds=2, ramps=1, nodes=20)
    return collect_learned(scratch, stored, sample, KINDS, name="person", limits=limits)


def test_distances_are_learned_one_a_task(fitted: Any) -> None:
    """Of every kind, in order; whoever is not in the file is tried and not found; and half of each row is there."""
    assert [one.learned.kind for one in fitted] == list(KINDS)
    for one in fitted:
        assert (one.training.tried, one.held_out.tried) == (60, 40)
        assert one.training_standard.correct == pytest.approx(one.learned.standard, abs=1e-9)
        assert one.training.correct == pytest.approx(one.learned.found, abs=1e-9)
        assert one.training.correct >= one.training_standard.correct
        assert one.held_out.low <= one.held_out.share <= one.held_out.high
    mean = fitted[0].learned
    assert not mean.fell_back
    assert mean.aggregate.weights_of_columns().argmin() == 1
    assert fitted[0].held_out.correct > fitted[0].held_out_standard.correct
    assert len({one.held_out_standard for one in fitted}) == 1
