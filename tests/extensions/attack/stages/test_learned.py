from __future__ import annotations

from dataclasses import fields
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pytest

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import Batches, Scratch
from privrisk_spark.extensions.attack.kernels.learned.families import Kind
from privrisk_spark.extensions.attack.kernels.learned.fitting import Limits
from privrisk_spark.extensions.attack.stages.distance import Comparison, store_file
from privrisk_spark.extensions.attack.stages.learned import (
    DrawnPersons,
    Sample,
    collect_learned,
    collect_sample,
    collect_sample_of_persons,
)
from privrisk_spark.extensions.attack.stages.persons import Persons
from privrisk_spark.extensions.attack.stages.protected import Tuples, forms
from privrisk_spark.hierarchies.hierarchy import Hierarchy

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


def test_persons_are_drawn_with_all_of_their_records(spark: Any) -> None:
    """Three records each; of persons who are held out also those that the file, or the intruder, lacks."""
    i = np.arange(90)
    known = own = np.column_stack([i // 81, i // 9 % 9, i % 9]).astype(np.int32)
    codes, nodes = schemas.codes(3), schemas.nodes(3)

    def named(of: np.ndarray, names: list[str], rows: slice, parts: int) -> Batches:
        table = pa.table(
            [[f"p{i}" for i in range(90)], [f"h{i // 3}" for i in range(90)], *map(pa.array, of.T)],
            ["record_id", "entity", *names],
        )
        return Batches.of_frame(spark.createDataFrame(table.slice(rows.start, rows.stop)).repartition(parts))

    def draw(parts: int, training: int = 10, held_out: int = 5, seed: int = 1) -> Sample:
        persons = Persons(named(known, codes, slice(0, 90), parts), named(own, nodes, slice(1, 90), parts))
        sample = collect_sample_of_persons(
            people_of(spark, known, own, parts),
            persons,
            known=codes,
            own=nodes,
            training=training,
            held_out=held_out,
            seed=seed,
        )
        assert sample is not None
        return sample

    one = draw(1)
    assert isinstance(one.held_out, DrawnPersons)
    assert len(one.training.known) == 30
    assert (one.held_out.begun.tolist(), int(one.held_out.records.sum())) == ([3] * 5, 15)
    places = {tuple(row): i for i, row in enumerate(known.tolist())}

    def persons_of(records: np.ndarray) -> list[int]:
        return [places[tuple(row)] // 3 for row in records.tolist()]

    learned_from, tried = set(persons_of(one.training.known)), persons_of(one.held_out.known)
    assert len(learned_from) == 10
    assert not learned_from & set(tried)
    assert tried == [person for person in tried[::3] for _ in range(3)], "a person's records follow each other"
    assert persons_of(one.held_out.own) == np.repeat(tried[::3], one.held_out.searched).tolist()
    for parts in (4, 11):
        again = draw(parts)
        for part in ("training", "held_out"):
            for field in fields(getattr(one, part)):
                assert np.array_equal(
                    getattr(getattr(again, part), field.name), getattr(getattr(one, part), field.name)
                )
    every = draw(2, training=29, held_out=1)
    assert len(every.training.known) == 87
    few = draw(2, training=100, held_out=50).held_out
    assert isinstance(few, DrawnPersons)
    # The file lacks one record of one person.
    assert few.searched.min() == (2 if 0 in persons_of(few.known) else 3)


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
    return collect_learned(scratch, stored, sample, get_args(Kind), name="person", limits=limits)


def test_distances_are_learned_one_a_task(fitted: Any) -> None:
    """Of every kind, in order; whoever is not in the file is tried and not found; and half of each row is there."""
    assert [one.learned.kind for one in fitted] == list(get_args(Kind))
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
