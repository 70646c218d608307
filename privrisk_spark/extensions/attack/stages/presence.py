"""Who is in which release, in which class: for attacks on several releases, and on being in one at all."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from uuid import uuid4

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses
from pyspark.sql import types as T  # noqa: N812

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import PARTS, Batches, Scratch, in_chunks, read_ipc, report, write_ipc
from privrisk_spark.engine.decided import integers
from privrisk_spark.errors import InputError
from privrisk_spark.extensions.attack.kernels.membership import dealt, dealt_in_blocks
from privrisk_spark.extensions.attack.stages.distance import (
    DISTANCE,
    FIRST,
    OPEN,
    PLACE,
    TIED,
    StoredFile,
    StoredLinks,
    slices,
)
from privrisk_spark.extensions.attack.stages.protected import Tuples
from privrisk_spark.kernels.arrays import FloatArray, IntArray, LongArray
from privrisk_spark.kernels.numeric.distinct import distinct_rows
from privrisk_spark.kernels.recoding.listed import Keys, keys_of, places_of
from privrisk_spark.storage.part_files import map_array, write_array
from privrisk_spark.storage.parts import PartDirectory

HALF = "half"
"""Column: 0 of people who choose an attack, 1 of those it is tried on."""

PLACED = T.StructType([T.StructField(schemas.RECORD_ID, T.StringType()), T.StructField(PLACE, T.LongType(), False)])
"""One row a record: its class among those of a release; -1 if it has none there."""


@dataclass(frozen=True)
class StoredClasses:
    """The tuples of the classes of a release where tasks map them.

    Attributes
    ----------
    directory : PartDirectory
        Holds ``nodes.npy``.
    token : str
        Identity: a later one may lie in the same directory, and workers live on.
    """

    directory: PartDirectory
    token: str

    def load(self) -> Keys:
        """Return the keys of the tuples, made once per process."""
        return _loaded(self)


@functools.lru_cache(maxsize=8)
def _loaded(stored: StoredClasses) -> Keys:
    return keys_of(np.ascontiguousarray(map_array(stored.directory, "nodes.npy")))


def store_classes(directory: PartDirectory, tuples: Tuples) -> StoredClasses:
    """Write the classes of a release where tasks map them."""
    write_array(tuples.nodes, directory, "nodes.npy")
    return StoredClasses(directory, uuid4().hex)


def placed(records: Batches, classes: StoredClasses, names: Sequence[str]) -> Batches:
    """Find the class of each record.

    Parameters
    ----------
    records : Batches
        ``record_id``, and columns of nodes, negative or missing for a record the release lacks.
    classes : StoredClasses
        Of the rows the release shows; or, where rows overlap and an intruder cannot tell which class somebody is in,
        of the tuples he knows, with the values of
        :mod:`~privrisk_spark.extensions.attack.stages.classes`.
    names : sequence of str
        ``n<j>`` for the former, ``q<j>`` for the latter.

    Returns
    -------
    Batches
        :data:`PLACED`.
    """

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in in_chunks(tables):
            nodes = integers(pa.table({name: table.column(name).fill_null(-1) for name in names}), names)
            place = np.where((nodes < 0).any(axis=1), -1, places_of(classes.load(), np.maximum(nodes, 0)))
            yield pa.table({schemas.RECORD_ID: table.column(schemas.RECORD_ID), PLACE: place.astype(np.int64)})

    return records.then(step, PLACED)


def everybody_in(records: Batches) -> Batches:
    """Return :data:`PLACED` of a table that has one class, which is everybody's who is in it.

    Parameters
    ----------
    records : Batches
        With ``record_id``, no record twice.
    """
    return Batches.of_frame(records.frame().select(schemas.RECORD_ID, F.lit(0).cast("long").alias(PLACE)))


@dataclass(frozen=True, eq=False)
class Histories:
    """People by the classes they are in, and what they hold.

    Attributes
    ----------
    places : ndarray of int64, shape (g, r)
        Class in each release, -1 for none; in lexicographic order, then by what they hold.
    own : ndarray of int32, shape (g,)
        Code of the sensitive value.
    people : ndarray of int64, shape (g,)
    """

    places: LongArray
    own: IntArray
    people: LongArray


def known_histories(
    people: Batches, releases: Sequence[Batches], sensitive: str, *, whose: Sequence[str] = ()
) -> tuple[DataFrame, list[str]]:
    """Put the classes of people in several releases next to their value.

    Parameters
    ----------
    people, releases, sensitive
        As :func:`collect_histories` takes them.
    whose : sequence of str
        Columns of the people that are kept.

    Returns
    -------
    frame : DataFrame
    names : list of str
        Its columns of classes, -1 for none, and of the value.
    """
    frame = people.frame().select(schemas.RECORD_ID, *whose, F.col(sensitive).alias("own"))
    places = [f"{PLACE}{r}" for r in range(len(releases))]
    for name, release in zip(places, releases, strict=True):
        of_release = release.frame().select(schemas.RECORD_ID, F.col(PLACE).alias(name))
        frame = frame.join(of_release, schemas.RECORD_ID, "left")
    known = [F.coalesce(F.col(name), F.lit(-1)).alias(name) for name in places]
    return frame.select(*whose, *known, "own"), [*places, "own"]


def collect_histories(
    people: Batches, releases: Sequence[Batches], sensitive: str, *, most: int, key: str
) -> Histories:
    """Count people by their classes in several releases, and by their value.

    Parameters
    ----------
    people : Batches
        Everybody: ``record_id``, which the releases share, and codes of the sensitive value.
    releases : sequence of r Batches
        :data:`PLACED`, no record twice. Records that are not among the people are passed over.
    sensitive : str
        Column of the codes.
    most : int
        Groups of people that the driver may hold.
    key : str
        Of the policy, for messages.

    Raises
    ------
    InputError
        If there are more, or nobody.
    """
    frame, names = known_histories(people, releases, sensitive)
    grouped = frame.groupBy(*names).agg(F.count("*").alias(schemas.N_ROWS))
    told = grouped.limit(most + 1).toArrow()
    _refuse_size(told, most, key)
    columns = [told.column(name).to_numpy().astype(np.int64) for name in names]
    order = np.lexsort(columns[::-1])
    return Histories(
        np.column_stack(columns[:-1])[order] if releases else np.zeros((len(order), 0), dtype=np.int64),
        columns[-1][order].astype(np.int32),
        told.column(schemas.N_ROWS).to_numpy().astype(np.int64)[order],
    )


Halves = tuple[FloatArray, FloatArray]
"""Members and others of a half of the people, by groups."""


@dataclass(frozen=True, eq=False)
class Presence:
    """How many of the people who are alike to an intruder are in a release.

    Attributes
    ----------
    known : Tuples
        What is known of people, and how many they are.
    members : ndarray of float64, shape (p,)
        Those in the release: a whole number, or an expected one where only so many of a class are released.
    half, half_members : ndarray of float64, shape (p,)
        Of a half of the people, drawn by their ids: all, and members.
    """

    known: Tuples
    members: FloatArray
    half: FloatArray
    half_members: FloatArray

    @property
    def others(self) -> FloatArray:
        """Those who are not, ndarray of float64, shape (p,)."""
        return np.asarray(self.known.rows - self.members)

    @property
    def halves(self) -> tuple[Halves, Halves]:
        """Members and others of the half that was drawn, and of the other half."""
        half_others = np.asarray(self.half - self.half_members)
        return (self.half_members, half_others), (self.members - self.half_members, self.others - half_others)


def known_presence(people: Batches, released: Batches, k: int, *, seed: int) -> tuple[DataFrame, list[str]]:
    """Put what is known of people next to the class they have in a release.

    Parameters
    ----------
    people, released, k, seed
        As :func:`collect_presence` takes them.

    Returns
    -------
    frame : DataFrame
        ``entity`` if there is one, what is known, the class, -1 for none, and the half they are in.
    names : list of str
        Columns of what is known.
    """
    names, frame = schemas.codes(k), people.frame()
    entity = [schemas.ENTITY] if schemas.ENTITY in frame.columns else []
    (whose,) = entity or [schemas.RECORD_ID]
    of_half = F.pmod(F.xxhash64(F.lit(PLACE), F.lit(seed), whose), F.lit(2)).cast("int").alias(HALF)
    those = frame.select(schemas.RECORD_ID, *entity, *names, of_half)
    joined = those.join(released.frame(), schemas.RECORD_ID, "left")
    return joined.select(*entity, *names, F.coalesce(F.col(PLACE), F.lit(-1)).alias(PLACE), HALF), names


def collect_presence(
    people: Batches, released: Batches, present: FloatArray, k: int, *, seed: int, most: int, key: str
) -> Presence:
    """Count people by what is known of them, and those of them who are in a release.

    Parameters
    ----------
    people : Batches
        Everybody who may be: ``record_id``, ``q<j>`` of ``k`` known columns.
    released : Batches
        :data:`PLACED`, no record twice.
    present : ndarray of float64, shape (m,)
        Probability that a record of each class is in the release: 1, but where not all of a class are, and it is not
        known which.
    seed : int
        Draws a half of the people; of persons with several rows all of them.
    most : int
        Pairs of what is known and class that the driver may hold.
    key : str
        Of the policy, for messages.

    Raises
    ------
    InputError
        If there are more, or nobody.
    """
    known, names = known_presence(people, released, k, seed=seed)
    counted = known.groupBy(*names, PLACE, HALF)
    told = counted.agg(F.count("*").alias(schemas.N_ROWS)).limit(most + 1).toArrow()
    _refuse_size(told, most, key)
    nodes, place = integers(told, names), told.column(PLACE).to_numpy().astype(np.int64)
    rows = told.column(schemas.N_ROWS).to_numpy().astype(np.int64)
    # In one order, so that sums of probabilities are the same however the rows came.
    chosen = told.column(HALF).to_numpy() == 0
    order = np.lexsort([chosen, place, *nodes.T[::-1]])
    nodes, place, rows, chosen = nodes[order], place[order], rows[order], chosen[order]
    first, member = distinct_rows([nodes[:, j] for j in range(k)])
    total = np.zeros(len(first), dtype=np.int64)
    inside, half, half_inside = np.zeros(len(first)), np.zeros(len(first)), np.zeros(len(first))
    expected = rows * np.append(present, 0.0)[place]
    np.add.at(total, member, rows)
    np.add.at(inside, member, expected)
    np.add.at(half, member[chosen], rows[chosen])
    np.add.at(half_inside, member[chosen], expected[chosen])
    known_of = Tuples(np.ascontiguousarray(nodes[first]), total)
    return Presence(known_of, np.minimum(inside, total), half, np.minimum(half_inside, half))


DIGITS = 9
"""To which what people get is rounded, so that equal sums of fractions are equal."""


def collect_dealt(
    scratch: Scratch, people: StoredFile, rows: Tuples, name: str
) -> tuple[FloatArray, StoredLinks | None]:
    """Deal the rows of a release to the people nearest to them, in tasks.

    Parameters
    ----------
    people : StoredFile
        Everybody who may be in it, as :func:`~privrisk_spark.extensions.attack.stages.distance.store_file` returns it.
    rows : Tuples
        Of the release.
    name : str
        Of the directories.

    Returns
    -------
    got : ndarray of float64, shape (p,)
        What each single one of the people of each distinct tuple gets, rounded to :data:`DIGITS`.
    links : StoredLinks or None
        To whom each row was dealt in blocks; None if all pairs were compared.
    """
    at, directory = scratch.directory(f"rows-{name}"), scratch.directory(f"dealt-{name}")
    in_blocks = scratch.directory(f"dealt-links-{name}")
    write_array(rows.nodes, at, "nodes.npy")
    write_array(rows.rows, at, "rows.npy")
    # Rows of a block are dealt by one task.
    blocked = people.load().blocked
    write_array(np.arange(len(rows.nodes)) if blocked is None else blocked.order(rows.nodes), at, "order.npy")

    def deal(part: tuple[int, int]) -> Iterator[pa.Table]:
        place = np.ascontiguousarray(map_array(at, "order.npy")[slice(*part)])
        nodes, times = (map_array(at, f"{of}.npy")[place] for of in ("nodes", "rows"))
        loaded, facts = people.load(), {"begin": part[0], OPEN: 0, "links": ""}
        if loaded.blocked is None:
            got = dealt(loaded.file, nodes, times)
        else:
            got, found, complete = dealt_in_blocks(loaded.blocked, nodes, times)
            left = np.where(complete, 0, times)
            told = {PLACE: place, DISTANCE: found.distance, TIED: found.rows, FIRST: found.first, OPEN: left}
            facts |= {OPEN: int(left.sum()), "links": write_ipc(pa.table(told), in_blocks)}
        yield report(write_ipc(pa.table({"got": got}), directory), facts)

    reports = scratch.collect_parts(
        Batches.of_parts(scratch.spark, slices(len(rows.nodes), people.tuples), deal, PARTS)
    )
    parts, total = sorted(reports, key=lambda one: int(one["begin"])), np.zeros(people.tuples)
    for part in parts:
        total += read_ipc(directory, part["name"]).column("got").to_numpy()
    links = None
    if blocked is not None:
        names, left = tuple(part["links"] for part in parts), tuple(int(part[OPEN]) for part in parts)
        links = StoredLinks(people, at, in_blocks, names, left)
    return np.round(total, DIGITS), links


def _refuse_size(told: pa.Table, most: int, key: str) -> None:
    if told.num_rows > most:
        raise InputError(f"counting.sorted_vectors: {key} has more than {most:,} distinct rows; raise it.")
    if not told.num_rows:
        raise InputError(f"{key}: there are no rows.")
