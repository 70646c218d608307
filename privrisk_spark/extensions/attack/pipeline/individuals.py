"""What the attacker learns of the values of individuals who have several records, each counted once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from pyspark.sql import DataFrame

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import Batches
from privrisk_spark.extensions.attack.kernels.evidence import Found
from privrisk_spark.extensions.attack.kernels.individuals import lessons
from privrisk_spark.extensions.attack.kernels.intersection import intersected
from privrisk_spark.extensions.attack.pipeline.opened import Opened
from privrisk_spark.extensions.attack.pipeline.protected import Protected, rows_in
from privrisk_spark.extensions.attack.planning.attacks import OTHERS, PROTECTED
from privrisk_spark.extensions.attack.planning.inference_findings import inferred
from privrisk_spark.extensions.attack.policy import attack_of
from privrisk_spark.extensions.attack.results.inferences import Inference
from privrisk_spark.extensions.attack.stages.classes import beside_values
from privrisk_spark.extensions.attack.stages.individuals import (
    HeldInClasses,
    collect_composed,
    collect_held,
    collect_learned,
    write_held,
)
from privrisk_spark.extensions.attack.stages.persons import with_persons
from privrisk_spark.extensions.attack.stages.presence import StoredClasses, collect_histories, placed, store_classes
from privrisk_spark.extensions.attack.stages.protected import Tuples, collect_tuples, of_both
from privrisk_spark.kernels.arrays import BoolArray, IntArray
from privrisk_spark.pipelines.run import ResultRun
from privrisk_spark.stages.assessing.sources import Vocabulary


@dataclass(frozen=True, eq=False)
class Individuals:
    """Released records of individuals, next to the sensitive values.

    Attributes
    ----------
    everybody : Batches
        All records: ``record_id``, ``entity``, codes of the values.
    people : Batches
        Likewise, of the individuals who are tried.
    tried, shown : Batches
        Next to their released forms: records that are tried, and all.
    classes : StoredClasses
        Of the rows of the protected table.
    same : bool
        Whether all are tried.
    """

    vocabularies: tuple[Vocabulary, ...]
    everybody: Batches
    people: Batches
    tried: Batches
    shown: Batches
    classes: StoredClasses
    same: bool


def individuals_of(
    run: ResultRun,
    opened: Opened,
    protected: Protected,
    vocabularies: tuple[Vocabulary, ...],
    everybody: Batches,
    people: Batches,
) -> Individuals | None:
    """Put the released records of individuals next to their values; None where it is not known whose all rows are.

    Parameters
    ----------
    everybody, people : Batches
        ``record_id``, ``entity``, codes of the values: of all records, and of those that are tried.
    """
    if protected.persons is None or not bool((protected.present == 1).all()):
        return None
    k, n = protected.rows.nodes.shape[1], len(vocabularies)
    # An intruder with a table of his own tries only those in it, and the classes hold others, too.
    same = protected.whole and opened.his is None
    tried = beside_values(protected.told, people, k, n)
    tried = Batches.of_frame(run.scratch.write_frame(of_both(tried).frame(), "tried-values"))
    shown = tried if same else beside_values(protected.persons.rows, everybody, k, n)
    if opened.decisions is None and shown.frame().count() < protected.rows.total:
        return None  # The values of strangers' rows are unknown, so it is not known what their classes tell.
    classes = store_classes(run.scratch.directory("classes-released"), protected.rows)
    return Individuals(vocabularies, everybody, people, tried, shown, classes, same)


def of_individuals(
    run: ResultRun, opened: Opened, protected: Protected, individuals: Individuals, i: int
) -> Iterator[Inference]:
    """Infer the values of one column from the classes that individuals are in."""
    asked, vocabulary = attack_of(run.policy), individuals.vocabularies[i]
    name, most = vocabulary.name, run.policy.counting.sorted_vectors
    shown, tried = held_by(run, protected, individuals, i, to=f"held-{i}")
    classes = collect_held(shown, most=most, key=PROTECTED)
    if not classes.holders[: vocabulary.count].any():
        return  # That all values are missing tells nobody from others.
    missing, learned = classes.holders[vocabulary.count :].any(), None
    if "skewness" in asked.tried:  # compares shares with the table's, of which those of missing values are some
        learned = learned_of(run, tried, classes, asked.gain_above, f"lessons-{i}")
        yield inferred("skewness", name, "exposed", learned["skewness"], gain_above=asked.gain_above)
    if missing:
        shown, tried = held_by(run, protected, individuals, i, to=f"known-{i}", without=vocabulary.count)
        if tried.isEmpty():
            return
        classes, learned = collect_held(shown, most=most, key=PROTECTED), None
    if {"homogeneity", "external", "background"}.intersection(asked.tried):
        learned = learned or learned_of(run, tried, classes, asked.gain_above, f"lessons-known-{i}")
        if "homogeneity" in asked.tried:
            yield inferred("homogeneity", name, "certain", learned["homogeneity"])
            yield inferred("homogeneity", name, "guessed", learned["guess"], baseline=learned["marginal"].share)
        if "external" in asked.tried:
            yield inferred("external", name, "certain", learned["external"])
        if "background" in asked.tried:
            yield inferred("background", name, "certain", learned["background"], false_values=1)
    groups = vocabulary.groups
    if "similarity" in asked.tried and groups is not None:
        alike, of_tried = held_by(
            run, protected, individuals, i, to=f"alike-{i}", group=groups, without=vocabulary.count
        )
        of_groups = collect_held(alike, most=most, key=PROTECTED)
        found = learned_of(run, of_tried, of_groups, 1.0, f"lessons-alike-{i}")
        yield inferred("similarity", name, "certain", found["homogeneity"])
    if "composition" in asked.tried and asked.also:
        yield from composed_of_individuals(run, opened, protected, individuals, classes, i)


def learned_of(
    run: ResultRun, tried: DataFrame, classes: HeldInClasses, gain_above: float, to: str
) -> Mapping[str, Found]:
    """Count the individuals who are tried by what their classes give away."""
    told = lessons(classes.runs, classes.together, classes.holders, classes.individuals, gain_above=gain_above)
    return collect_learned(tried, classes, told, run.scratch.directory(to))


def held_by(
    run: ResultRun,
    protected: Protected,
    individuals: Individuals,
    i: int,
    *,
    to: str,
    group: IntArray | None = None,
    without: int | None = None,
) -> tuple[DataFrame, DataFrame]:
    """Write who holds which value in which class: of all individuals, and of those who are tried."""
    nodes = schemas.nodes(protected.rows.nodes.shape[1])
    column = schemas.sensitive(len(individuals.vocabularies))[i]
    files = [(individuals.shown, to), *([] if individuals.same else [(individuals.tried, f"{to}-tried")])]
    written = [
        write_held(run.scratch, rows, individuals.classes, nodes, column, name, group=group, without=without)
        for rows, name in files
    ]
    return written[0], written[-1]


def composed_of_individuals(
    run: ResultRun, opened: Opened, protected: Protected, individuals: Individuals, classes: HeldInClasses, i: int
) -> Iterator[Inference]:
    """Intersect the values of the classes that the records of individuals are in, release after release."""
    vocabulary, scratch, nodes = individuals.vocabularies[i], run.scratch, schemas.nodes(len(opened.known))
    most = run.policy.counting.sorted_vectors
    told = [0]  # After each release, the last of them that tells something.
    held, places = [classes], [in_classes(run, individuals.tried, protected.rows, classes, nodes, f"{i}")]
    for r, other in enumerate(opened.others):
        key = f"{OTHERS}.{r}"
        rows = rows_in(other, opened, identity=True, key=key, values=[vocabulary])
        named = with_persons(rows, individuals.everybody, strangers=True)
        tuples = collect_tuples(rows, nodes, most=most, key=key)
        stored = store_classes(scratch.directory(f"classes-{i}-{r}"), tuples)
        written = write_held(
            scratch, named, stored, nodes, schemas.sensitive(1)[0], f"held-{i}-{r}", without=vocabulary.count
        )
        if written.isEmpty():  # None of its rows has a value, so that it tells nothing.
            told.append(len(held) - 1)
            continue
        told.append(len(held))
        held.append(collect_held(written, most=most, key=key))
        places.append(in_classes(run, rows, tuples, held[-1], nodes, f"{i}-{r}"))
    own = schemas.sensitive(len(individuals.vocabularies))[i]
    histories = collect_histories(individuals.people, places, own, most=most, key=OTHERS)
    runs, together = [of.runs for of in held], [of.together for of in held]
    # Nothing is learned of a record whose value is missing.
    known = histories.own != vocabulary.count
    if not known.any():
        return
    left = intersected(histories.places[known], runs, histories.own[known], histories.people[known], together)
    flags = [(spread(one.seen, known), spread(one.certain > 0, known)) for one in left]
    found = collect_composed(individuals.people, places, own, histories, flags, scratch.directory(f"histories-{i}"))
    for n, last in enumerate(told, start=1):
        yield inferred("composition", vocabulary.name, "certain", found[last], releases=n)


def spread(flags: BoolArray, known: BoolArray) -> BoolArray:
    """Return flags of some histories as flags of all."""
    whole = np.zeros(len(known), dtype=np.bool_)
    whole[known] = flags
    return whole


def in_classes(
    run: ResultRun, rows: Batches, tuples: Tuples, held: HeldInClasses, names: list[str], to: str
) -> Batches:
    """Find the class of each record, among those that somebody is in."""
    there = Tuples(np.ascontiguousarray(tuples.nodes[held.places]), tuples.rows[held.places])
    return placed(rows, store_classes(run.scratch.directory(f"classes-held-{to}"), there), names)
