"""Individuals who have several records: what their classes give away, and who is there, each counted once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses
from pyspark.sql import types as T  # noqa: N812

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import Batches, Scratch, in_chunks
from privrisk_spark.engine.decided import integers
from privrisk_spark.errors import InputError
from privrisk_spark.extensions.attack.kernels.evidence import Found, found
from privrisk_spark.extensions.attack.kernels.individuals import LEARNED, Lessons, Together, learn
from privrisk_spark.extensions.attack.stages.distance import PLACE
from privrisk_spark.extensions.attack.stages.presence import (
    DIGITS,
    HALF,
    Halves,
    Histories,
    StoredClasses,
    known_histories,
    known_presence,
)
from privrisk_spark.extensions.attack.stages.protected import Tuples
from privrisk_spark.kernels.arrays import BoolArray, FloatArray, IntArray, LongArray
from privrisk_spark.kernels.classes.diversity import SensitiveRuns
from privrisk_spark.kernels.numeric.independent import any_of
from privrisk_spark.kernels.recoding.listed import keys_of, places_of
from privrisk_spark.storage.part_files import map_array, write_array
from privrisk_spark.storage.parts import PartDirectory

_VALUE, _OTHER, _HELD, _COUNT = "value", "other", "held", "individuals"

_UNIT = 2.0**32
"""Sums over individuals are of whole numbers of this part of 1, so that their order changes nothing."""

HELD = T.StructType(
    [
        T.StructField(schemas.ENTITY, T.StringType()),
        T.StructField(PLACE, T.LongType(), False),
        T.StructField(_VALUE, T.LongType(), False),
    ]
)
"""One row for each value that an individual holds in a class."""


def write_held(
    scratch: Scratch,
    rows: Batches,
    classes: StoredClasses,
    names: Sequence[str],
    column: str,
    name: str,
    *,
    group: IntArray | None = None,
    without: int | None = None,
) -> DataFrame:
    """Write which individual holds which value in which class of a protected table.

    Parameters
    ----------
    rows : Batches
        ``entity``, columns of nodes, codes of the values.
    classes : StoredClasses
        Of the rows the protected table has. What is in none of them is left out: it was not released.
    names : sequence of str
        Columns of nodes.
    column : str
        Of the codes.
    name : str
        Of the directory.
    group : ndarray of int32, shape (v,), optional
        Of each value; groups are then held instead of values.
    without : int, optional
        Code of a value that is left out, as nobody learns anything of it: the missing one.

    Returns
    -------
    DataFrame
        :data:`HELD`.
    """

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in in_chunks(tables):
            nodes = integers(pa.table({of: table.column(of).fill_null(-1) for of in names}), names)
            place = np.where((nodes < 0).any(axis=1), -1, places_of(classes.load(), np.maximum(nodes, 0)))
            value = table.column(column).to_numpy().astype(np.int64)
            there = pa.array((place >= 0) & (value != (-1 if without is None else without)))
            told = {
                schemas.ENTITY: table.column(schemas.ENTITY),
                PLACE: place.astype(np.int64),
                _VALUE: value if group is None else group[value].astype(np.int64),
            }
            yield pa.table(told).filter(there)

    frame = rows.frame().select(schemas.ENTITY, *names, column)
    return scratch.write_frame(Batches.of_frame(frame).then(step, HELD).frame().distinct(), name)


def collect_individuals(rows: Batches) -> int:
    """Count the individuals of some rows with ``entity``."""
    counted = rows.frame().agg(F.count_distinct(schemas.ENTITY).alias(_COUNT)).first()
    assert counted is not None
    return int(counted[_COUNT])


@dataclass(frozen=True, eq=False)
class HeldInClasses:
    """How many individuals hold which values in the classes of a protected table.

    Attributes
    ----------
    places : ndarray of int64, shape (m,)
        The classes somebody is in, ascending, by their place among all.
    runs : SensitiveRuns
        Of these classes.
    holders : ndarray of int64, shape (v,)
        Individuals who hold each value, in whatever class.
    """

    places: LongArray
    runs: SensitiveRuns
    together: Together
    holders: LongArray
    individuals: int


def collect_held(held: DataFrame, *, most: int, key: str) -> HeldInClasses:
    """Count individuals by class and value.

    Parameters
    ----------
    held : DataFrame
        As :func:`write_held` returns it.
    most : int
        Classes and values, and pairs of values, that the driver may hold.
    key : str
        Of the policy, for messages.

    Raises
    ------
    InputError
        If there are more, or nobody.
    """

    def collected(frame: DataFrame, names: Sequence[str]) -> list[LongArray]:
        told = frame.limit(most + 1).toArrow()
        if told.num_rows > most:
            raise InputError(
                f"counting.sorted_vectors: {key} has more than {most:,} distinct rows of what is known and sensitive "
                "values; raise it."
            )
        columns = [told.column(name).to_numpy().astype(np.int64) for name in names]
        order = np.lexsort(columns[::-1])
        return [column[order] for column in columns]

    place, value, count = collected(
        held.groupBy(PLACE, _VALUE).agg(F.count("*").alias(_COUNT)), [PLACE, _VALUE, _COUNT]
    )
    if not len(place):
        raise InputError(f"{key}: there are no rows.")
    places, members = collected(
        held.groupBy(PLACE).agg(F.count_distinct(schemas.ENTITY).alias(_COUNT)), [PLACE, _COUNT]
    )
    others = held.select(schemas.ENTITY, PLACE, F.col(_VALUE).alias(_OTHER))
    both = held.join(others, [schemas.ENTITY, PLACE]).where(F.col(_VALUE) < F.col(_OTHER))
    pairs = collected(
        both.groupBy(PLACE, _VALUE, _OTHER).agg(F.count("*").alias(_COUNT)), [PLACE, _VALUE, _OTHER, _COUNT]
    )
    whose, holding = collected(
        held.groupBy(_VALUE).agg(F.count_distinct(schemas.ENTITY).alias(_COUNT)), [_VALUE, _COUNT]
    )
    holders = np.zeros(int(whose.max()) + 1, dtype=np.int64)
    holders[whose] = holding
    runs = SensitiveRuns.of_entries(np.searchsorted(places, place), value, count, len(places))
    return HeldInClasses(
        places,
        SensitiveRuns(runs.class_start, runs.value, runs.count, members),
        Together.of_pairs(np.searchsorted(places, pairs[0]), *pairs[1:]),
        holders,
        collect_individuals(Batches.of_frame(held)),
    )


def collect_learned(
    held: DataFrame, classes: HeldInClasses, lessons: Lessons, directory: PartDirectory
) -> dict[str, Found]:
    """Count the individuals of whom something is learned, each once.

    Parameters
    ----------
    held : DataFrame
        As :func:`write_held` returns it, of the individuals who are tried.
    classes : HeldInClasses
        Of all individuals.
    lessons : Lessons
        Of these classes.
    directory : PartDirectory
        Empty; tasks map the lessons from it.

    Returns
    -------
    dict of str to Found
        By what is learned, as :data:`~privrisk_spark.extensions.attack.kernels.individuals.LEARNED` names it.
    """
    runs = lessons.runs
    arrays: dict[str, npt.NDArray[Any]] = {
        "places": classes.places,
        "start": runs.class_start,
        "value": runs.value,
        "count": runs.count,
        "members": runs.members,
        "telling": lessons.telling,
        "gained": lessons.gained,
        "common": lessons.common,
    }
    for name, array in arrays.items():
        write_array(array, directory, f"{name}.npy")

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        of = {name: map_array(directory, f"{name}.npy") for name in arrays}
        known = Lessons(
            SensitiveRuns(of["start"], of["value"], of["count"], of["members"]),
            of["telling"],
            of["gained"],
            of["common"],
        )
        for table in in_chunks(tables):
            start, pairs = in_lists(table.column(_HELD))
            place, value = (pairs.field(name).to_numpy(zero_copy_only=False) for name in (PLACE, _VALUE))
            told = learn(known, start, np.searchsorted(of["places"], place), value)
            yield pa.table(dict(zip(LEARNED, np.rint(told.T * _UNIT).astype(np.int64), strict=True)))

    each = held.groupBy(schemas.ENTITY).agg(F.sort_array(F.array_agg(F.struct(PLACE, _VALUE))).alias(_HELD))
    schema = T.StructType([T.StructField(name, T.LongType(), False) for name in LEARNED])
    told = Batches.of_frame(each.select(_HELD)).then(step, schema).frame()
    sums = told.agg(F.count("*").alias(_COUNT), *(F.sum(name).alias(name) for name in LEARNED)).first()
    assert sums is not None
    n = int(sums[_COUNT])
    share = {name: min(int(sums[name] or 0) / _UNIT / max(n, 1), 1.0) for name in LEARNED}
    return {name: found(np.array([one]), np.array([n])) for name, one in share.items()}


@dataclass(frozen=True, eq=False)
class Members:
    """Individuals by what their records get of the rows of a release, and whether they are in it.

    Attributes
    ----------
    score : ndarray of float64, shape (g,)
        Rows that all records of an individual get, rounded to :data:`DIGITS`.
    members, others : ndarray of float64, shape (g,)
        Individuals who have a record in the release, and who have none; expected ones where it is not known who has.
    chosen : ndarray of bool, shape (g,)
        Whether they are of the half that chooses the attack, drawn by their ids.
    """

    score: FloatArray
    members: FloatArray
    others: FloatArray
    chosen: BoolArray

    @property
    def halves(self) -> tuple[Halves, Halves]:
        """Members and others of the half that was drawn, and of the other half."""
        mine = np.where(self.chosen, 1.0, 0.0)
        theirs = 1.0 - mine
        return (self.members * mine, self.others * mine), (self.members * theirs, self.others * theirs)


def collect_members(
    people: Batches,
    released: Batches,
    present: FloatArray,
    known: Tuples,
    got: FloatArray,
    directory: PartDirectory,
    *,
    seed: int,
    most: int,
    key: str,
) -> Members:
    """Count individuals by what their records get, and by whether one of these is in a release.

    Parameters
    ----------
    people, released, present, seed, most, key
        As :func:`~privrisk_spark.extensions.attack.stages.presence.collect_presence` takes them; people with
        ``entity``.
    known : Tuples
        What is known of everybody.
    got : ndarray of float64, shape (p,)
        What a record of each of these gets.
    directory : PartDirectory
        Empty; tasks map what is known from it.

    Raises
    ------
    InputError
        If there are more groups of individuals than the driver may hold.
    """
    write_array(known.nodes, directory, "known.npy")
    write_array(got, directory, "got.npy")
    write_array(np.append(present, 0.0), directory, "present.npy")
    frame, names = known_presence(people, released, known.nodes.shape[1], seed=seed)
    score, inside = "score", "member"
    record = F.struct(*names, PLACE)
    each = frame.groupBy(schemas.ENTITY, HALF).agg(F.sort_array(F.array_agg(record)).alias(_HELD))
    schema = T.StructType(
        [
            T.StructField(score, T.DoubleType(), False),
            T.StructField(inside, T.DoubleType(), False),
            T.StructField(HALF, T.IntegerType(), False),
        ]
    )

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        keys = keys_of(np.ascontiguousarray(map_array(directory, "known.npy")))
        of, there = map_array(directory, "got.npy"), map_array(directory, "present.npy")
        for table in in_chunks(tables):
            start, records = in_lists(table.column(_HELD))
            nodes = np.column_stack([records.field(name).to_numpy(zero_copy_only=False) for name in names])
            place = records.field(PLACE).to_numpy(zero_copy_only=False)
            whose = np.repeat(np.arange(len(start) - 1), np.diff(start))
            total = np.add.reduceat(of[places_of(keys, nodes.astype(np.int32))], start[:-1])
            member = any_of(whose, there[place])
            yield pa.table({score: np.round(total, DIGITS), inside: member, HALF: table.column(HALF)})

    counted = Batches.of_frame(each.select(_HELD, HALF)).then(step, schema).frame()
    told = counted.groupBy(score, inside, HALF).agg(F.count("*").alias(_COUNT)).limit(most + 1).toArrow()
    if told.num_rows > most:
        raise InputError(f"counting.sorted_vectors: {key} has more than {most:,} groups of individuals; raise it.")
    told = told.sort_by([(score, "descending"), (inside, "ascending"), (HALF, "ascending")])
    count, member = told.column(_COUNT).to_numpy().astype(np.float64), told.column(inside).to_numpy()
    return Members(
        told.column(score).to_numpy(), count * member, count * (1 - member), told.column(HALF).to_numpy() == 0
    )


def in_lists(column: pa.ChunkedArray) -> tuple[LongArray, pa.StructArray]:
    """Return where the list of each row begins and ends, and what is in all of them."""
    lists = column.combine_chunks()
    return np.concatenate([[0], np.cumsum(lists.value_lengths().to_numpy())]).astype(np.int64), lists.flatten()


def collect_composed(
    people: Batches,
    releases: Sequence[Batches],
    sensitive: str,
    histories: Histories,
    flags: Sequence[tuple[BoolArray, BoolArray]],
    directory: PartDirectory,
) -> list[Found]:
    """Count the individuals of whom some record's value is certain after the first releases.

    Parameters
    ----------
    people, releases, sensitive
        As :func:`~privrisk_spark.extensions.attack.stages.presence.collect_histories` takes them; with ``entity``.
    histories : Histories
        That this returned.
    flags : sequence of (ndarray of bool, ndarray of bool), shape (g,)
        After each release, of each history: whether it is in one, and whether a value is certain.
    directory : PartDirectory
        Empty; tasks map the histories from it.
    """
    write_array(np.column_stack([histories.places, histories.own]).astype(np.int32) + 1, directory, "histories.npy")
    write_array(np.column_stack([of for pair in flags for of in pair]), directory, "flags.npy")
    names = [f"{what}{r}" for r in range(len(flags)) for what in ("seen", "certain")]
    frame, places = known_histories(people, releases, sensitive, whose=[schemas.ENTITY])

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        keys, told = keys_of(map_array(directory, "histories.npy")), map_array(directory, "flags.npy")
        for table in in_chunks(tables):
            held = np.column_stack([table.column(name).to_numpy() for name in places]).astype(np.int32) + 1
            of = told[places_of(keys, held)].astype(np.int8)
            columns = {name: of[:, j] for j, name in enumerate(names)}
            yield pa.table({schemas.ENTITY: table.column(schemas.ENTITY), **columns})

    schema = [T.StructField(schemas.ENTITY, T.StringType()), *(T.StructField(n, T.ByteType(), False) for n in names)]
    rows = Batches.of_frame(frame).then(step, T.StructType(schema)).frame()
    each = rows.groupBy(schemas.ENTITY).agg(*(F.max(name).alias(name) for name in names))
    sums = each.agg(*(F.sum(F.col(name).cast("long")).alias(name) for name in names)).first()
    assert sums is not None
    counts = [(int(sums[f"seen{r}"] or 0), int(sums[f"certain{r}"] or 0)) for r in range(len(flags))]
    return [found(np.array([1.0, 0.0]), np.array([certain, seen - certain])) for seen, certain in counts]
