"""The worst case of record linkage in tasks: distances are learned from some people, and tried on others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import PARTS, Batches, Scratch, broadcast_small, grouped, report
from privrisk_spark.engine.decided import integers
from privrisk_spark.engine.quiet import quiet
from privrisk_spark.extensions.attack.kernels.evidence import found
from privrisk_spark.extensions.attack.kernels.learned.aggregates import Aggregate, WeightedMean
from privrisk_spark.extensions.attack.kernels.learned.families import Kind
from privrisk_spark.extensions.attack.kernels.learned.fitting import Limits, fit
from privrisk_spark.extensions.attack.kernels.learned.persons import KnownPersons, persons_found_by
from privrisk_spark.extensions.attack.kernels.learned.training import KnownRecords, found_by
from privrisk_spark.extensions.attack.planning.learned_findings import FittedDistance
from privrisk_spark.extensions.attack.results.inferences import RightRows
from privrisk_spark.extensions.attack.stages.distance import LoadedFile, StoredFile
from privrisk_spark.extensions.attack.stages.persons import Persons
from privrisk_spark.json_values import from_json
from privrisk_spark.kernels.arrays import IntArray, LongArray
from privrisk_spark.kernels.recoding.listed import places_of
from privrisk_spark.storage.part_files import map_array, write_array

_NUMBER, _TIMES = "number", "times"

LABEL = "learned"
"""Of the draw of people to learn from: another one than that of people who are tried."""


@dataclass(frozen=True, eq=False)
class Drawn:
    """People beside their own records in a file.

    Attributes
    ----------
    known : ndarray of int32, shape (m, k)
        Nodes of what is known of each.
    own : ndarray of int32, shape (m, k)
        Nodes of its own record in the file; -1 of somebody it lacks.
    """

    known: IntArray
    own: IntArray


@dataclass(frozen=True, eq=False)
class DrawnPersons:
    """Persons beside their own rows of a file, of whom there may be several.

    Attributes
    ----------
    begun, searched : ndarray of int64, shape (m,)
        Distinct records that are known of each person, and distinct ones of the person in the file.
    known, own : ndarray of int32, shapes (n, k) and (s, k)
        Their nodes, the first person's first.
    records, rows : ndarray of int64, shapes (n,) and (s,)
        How many there are of each.
    """

    begun: LongArray
    known: IntArray
    records: LongArray
    searched: LongArray
    own: IntArray
    rows: LongArray


@dataclass(frozen=True, eq=False)
class Sample:
    """People a distance is learned from, and others on whom it is tried: nobody is in both.

    Attributes
    ----------
    held_out : Drawn or DrawnPersons
        Persons, where they may have several records.
    """

    training: Drawn
    held_out: Drawn | DrawnPersons


def collect_sample(
    records: Batches, *, known: Sequence[str], own: Sequence[str], training: int, held_out: int, seed: int
) -> Sample | None:
    """Draw people by their ids, the same ones however they are partitioned.

    Parameters
    ----------
    records : Batches
        People beside their protected forms.
    known : sequence of k str
        Columns of what is known of each.
    own : sequence of k str
        Columns of its own record in the file in which is searched.
    training, held_out : int
        People of each kind, at least 1, that come to the driver. If there are fewer, they are divided in proportion.

    Returns
    -------
    Sample or None
        None if there are fewer than two people.
    """
    hashed = F.xxhash64(schemas.RECORD_ID, F.lit(seed), F.lit(LABEL))
    some = records.frame().orderBy(hashed, schemas.RECORD_ID, *known, *own).limit(training + held_out)
    table = some.select(*known, *own).toArrow()
    n = table.num_rows
    if n < 2:
        return None
    cut = _cut(n, training, held_out)
    of, theirs = integers(table, known), integers(table, own)
    return Sample(Drawn(of[:cut], theirs[:cut]), Drawn(of[cut:], theirs[cut:]))


def _cut(n: int, training: int, held_out: int) -> int:
    """How many of those drawn are learned from."""
    return training if n == training + held_out else min(max(n * training // (training + held_out), 1), n - 1)


def collect_sample_of_persons(
    records: Batches,
    persons: Persons,
    *,
    known: Sequence[str],
    own: Sequence[str],
    training: int,
    held_out: int,
    seed: int,
) -> Sample | None:
    """Draw persons with all of their records, the same ones however they are partitioned.

    Parameters
    ----------
    records : Batches
        People beside their protected forms, with ``record_id``: pairs that somebody may learn from.
    persons : Persons
        Whose the records are.
    known, own : sequence of k str
        Columns of what is known of each, and of its own record in the file in which is searched.
    training, held_out : int
        Persons of each kind, at least 1, all of whose records come to the driver. If there are fewer, they are divided
        in proportion.

    Returns
    -------
    Sample or None
        None if there are fewer than two persons. Pairs to learn from are records; those held out are persons.
    """
    whose = persons.people.frame().select(schemas.RECORD_ID, schemas.ENTITY)
    pairs = records.frame().select(schemas.RECORD_ID, *known, *own).join(whose, schemas.RECORD_ID)
    hashed = F.xxhash64(schemas.ENTITY, F.lit(seed), F.lit(LABEL))
    some = pairs.select(schemas.ENTITY).distinct().orderBy(hashed, schemas.ENTITY).limit(training + held_out).toArrow()
    n = some.num_rows
    if n < 2:
        return None
    cut = _cut(n, training, held_out)
    drawn = records.frame().sparkSession.createDataFrame(
        pa.table([some.column(0), pa.array(np.arange(n))], [schemas.ENTITY, _NUMBER])
    )
    numbered = broadcast_small(drawn, n)
    learned_from = pairs.join(numbered.where(F.col(_NUMBER) < cut), schemas.ENTITY).select(_NUMBER, *known, *own)
    table = learned_from.orderBy(_NUMBER, *known, *own).toArrow()
    tried = numbered.where(F.col(_NUMBER) >= cut)
    begun, of, times = _collect_of_persons(persons.people, tried, known, cut, n)
    searched, theirs, rows = _collect_of_persons(persons.rows, tried, own, cut, n)
    return Sample(
        Drawn(integers(table, known), integers(table, own)), DrawnPersons(begun, of, times, searched, theirs, rows)
    )


def _collect_of_persons(
    rows: Batches, numbered: DataFrame, names: Sequence[str], begin: int, end: int
) -> tuple[LongArray, IntArray, LongArray]:
    """Distinct records of each person, their nodes, and how many there are of each, the first person's first."""
    counted = rows.frame().join(numbered, schemas.ENTITY).groupBy(_NUMBER, *names).agg(F.count("*").alias(_TIMES))
    told = counted.orderBy(_NUMBER, *names).toArrow()
    number = told.column(_NUMBER).to_numpy().astype(np.int64) - begin
    return (
        np.bincount(number, minlength=end - begin).astype(np.int64),
        integers(told, names),
        told.column(_TIMES).to_numpy().astype(np.int64),
    )


def collect_learned(
    scratch: Scratch,
    stored: StoredFile,
    sample: Sample,
    kinds: Sequence[Kind],
    *,
    name: str,
    limits: Limits | None = None,
) -> tuple[FittedDistance, ...]:
    """Learn distances of several kinds, one a task.

    Parameters
    ----------
    stored : StoredFile
        In which is searched, with the standard weights.
    name : str
        Of the directory.

    Returns
    -------
    tuple of FittedDistance
        In the order of the kinds.

    Raises
    ------
    InputError
        If a measure has too many attributes.
    """
    at = scratch.directory(f"sample-{name}")
    for part, one in (("training", sample.training), ("held_out", sample.held_out)):
        for field in fields(one):
            write_array(getattr(one, field.name), at, f"{part}-{field.name}.npy")
    of_persons = isinstance(sample.held_out, DrawnPersons)

    def learn(kind: Kind) -> Iterator[pa.Table]:
        loaded = stored.load()

        def held(part: str, kind: type[Drawn | DrawnPersons]) -> dict[str, Any]:
            return {
                field.name: np.ascontiguousarray(map_array(at, f"{part}-{field.name}.npy")) for field in fields(kind)
            }

        training = _known(loaded, **held("training", Drawn))
        with quiet():
            learned = fit(kind, loaded.file, training, limits)
        facts: dict[str, Any] = {"learned": learned, "rows": None}
        standard: Aggregate = WeightedMean(loaded.file.weights)
        for name, aggregate in (("training_standard", standard), ("training", learned.aggregate)):
            facts[name] = found(found_by(aggregate, loaded.file, training), training.people)
        for name, aggregate in (("held_out_standard", standard), ("held_out", learned.aggregate)):
            if not of_persons:
                those = _known(loaded, **held("held_out", Drawn))
                facts[name] = found(found_by(aggregate, loaded.file, those), those.people)
                continue
            persons = _persons(loaded, DrawnPersons(**held("held_out", DrawnPersons)))
            links = persons_found_by(aggregate, loaded.file, persons)
            facts[name] = found(links.found, np.ones(len(links.found), dtype=np.int64))
            facts["rows"] = RightRows(int(persons.records.sum()), links.right, float(links.guessed.mean()))
        yield report(kind, facts)

    told = {one["name"]: one for one in scratch.collect_parts(Batches.of_parts(scratch.spark, kinds, learn, PARTS))}
    return tuple(from_json(FittedDistance, told[kind]) for kind in kinds)


def _known(loaded: LoadedFile, known: IntArray, own: IntArray) -> KnownRecords:
    """People who are alike, and whose own records are, together."""
    place = places_of(loaded.keys, own)
    first, member = grouped([*known.T, place])
    there = place[first] >= 0
    present = np.where(there, loaded.present[place[first]], 0.0)
    return KnownRecords(known[first], place[first], np.bincount(member).astype(np.int64), present)


def _persons(loaded: LoadedFile, drawn: DrawnPersons) -> KnownPersons:
    """Persons, and where their own rows are."""
    place = places_of(loaded.keys, drawn.own)
    there = np.where(place >= 0, drawn.rows * loaded.present[place], 0.0)
    return KnownPersons(drawn.begun, drawn.known, drawn.records, drawn.searched, place, there)
