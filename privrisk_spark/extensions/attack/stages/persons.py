"""Persons who have several rows: whose rows are linked to rows of the same person, and who is found by that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.pandas.types import to_arrow_schema

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import Batches, in_chunks
from privrisk_spark.errors import InputError, SchemaError
from privrisk_spark.extensions.attack.kernels.evidence import PersonOutcomes, PredictedPersons
from privrisk_spark.extensions.attack.kernels.persons import found_by_classes, found_persons, pairs_of_persons
from privrisk_spark.extensions.attack.stages.distance import DISTANCE, TIED, StoredLinks
from privrisk_spark.kernels.arrays import BoolArray, FloatArray, IntArray, LongArray
from privrisk_spark.kernels.recoding.listed import places_of

ROWS, OWN_NEAR = "rows", "own_rows_nearest"

_PERSON_ROWS, _OWN_ROWS, _FOUND, _RIGHT, _GUESSED, _PREDICTED, _PAIRS = (
    "person_rows",
    "own_rows",
    "found",
    "right_rows",
    "guessed",
    "predicted",
    "pairs",
)

_UNIT = 2.0**32
"""Sums over persons are of whole numbers of this part of 1, so that their order changes nothing."""

_PAIR = T.StructType(
    [
        T.StructField(ROWS, T.LongType(), False),
        T.StructField(DISTANCE, T.DoubleType(), False),
        T.StructField(TIED, T.LongType(), False),
        T.StructField(OWN_NEAR, T.DoubleType(), False),
    ]
)
"""Rows of a person that are alike, the least distance, the candidates at it, and those of them expected to be the
person's."""

_PERSONS = T.StructType(
    [
        T.StructField(schemas.ENTITY, T.StringType()),
        T.StructField(_PERSON_ROWS, T.LongType(), False),
        T.StructField(_OWN_ROWS, T.LongType(), False),
        T.StructField(_FOUND, T.DoubleType(), False),
        T.StructField(_RIGHT, T.DoubleType(), False),
        T.StructField(_GUESSED, T.DoubleType(), False),
        T.StructField(_PREDICTED, T.DoubleType(), False),
        T.StructField(_PAIRS, T.ArrayType(_PAIR, False), False),
    ]
)
"""One row a person: rows that are begun with, candidates of the same person, the probability that the person is found,
the links expected to be right, the probability that who draws a candidate for each row finds the person, that who knows
the classes of all rows of the person does, the pairs."""


@dataclass(frozen=True, eq=False)
class Persons:
    """Whose rows both files hold.

    Attributes
    ----------
    people : Batches
        Everybody the intruder knows: ``entity``, ``q<j>``.
    rows : Batches
        Of the protected table: ``entity``, ``n<j>``.
    """

    people: Batches
    rows: Batches


def with_persons(rows: Batches, people: Batches, *, strangers: bool) -> Batches:
    """Name the persons of rows by their record ids.

    Parameters
    ----------
    rows : Batches
        ``record_id`` and others.
    people : Batches
        Of the original table: ``record_id``, ``entity``.
    strangers : bool
        Whether a record that the original table lacks is a person of its own, or is left out.

    Returns
    -------
    Batches
        ``entity`` besides.
    """
    named = people.frame().select(schemas.RECORD_ID, schemas.ENTITY)
    joined = rows.frame().join(named, schemas.RECORD_ID, "left" if strangers else "inner")
    alone = F.concat(F.lit("\0"), F.col(schemas.RECORD_ID))
    return Batches.of_frame(joined.withColumn(schemas.ENTITY, F.coalesce(F.col(schemas.ENTITY), alone)))


def collect_nameless(rows: Batches, key: str) -> None:
    """Count rows that name no person, and refuse a table with any.

    Raises
    ------
    SchemaError
        Saying how many.
    """
    nameless = rows.frame().where(F.col(schemas.ENTITY).isNull()).count()
    if nameless:
        raise SchemaError(f"{key}.entity_id: every row must name its person, and {nameless:,} rows name none.")


def collect_known_persons(tried: Batches, rows: Batches) -> None:
    """Look for persons who are tried in a protected table, and refuse it if there is none.

    Raises
    ------
    InputError
        If no person is in both.
    """
    if rows.frame().join(tried.frame(), schemas.ENTITY, "left_semi").isEmpty():
        raise InputError(
            "attack.protected: nobody who is tried is in it; its entity_id must hold the ids of table.entity_id. Where "
            "few are drawn, raise attack.intruder.share."
        )


def linked_persons(
    begun: Batches, searched: Batches, links: StoredLinks, *, known: Sequence[str], own: Sequence[str]
) -> Batches:
    """Say which persons are linked to rows of their own.

    Parameters
    ----------
    begun : Batches
        Rows that are begun with: ``entity`` and the columns of `known`. One that was not linked is left out.
    searched : Batches
        Rows in which is searched: ``entity`` and the columns of `own`.
    known, own : sequence of k str

    Returns
    -------
    Batches
        One row a person, for :func:`collect_persons` and :func:`person_pairs`.
    """
    mine, theirs = _of_person(begun, known, "begun"), _of_person(searched, own, "searched")
    joined = mine.join(theirs, schemas.ENTITY, "left")

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        loaded, (keys, nearest) = links.stored.load(), links.load()
        for table in in_chunks(tables):
            entity = table.column(schemas.ENTITY)
            n_begun, nodes, rows = _flat(table.column("begun"), known)
            of = places_of(keys, nodes)
            linked = of >= 0
            n_begun = np.bincount(np.repeat(np.arange(len(n_begun)), n_begun)[linked], minlength=len(n_begun))
            nodes, rows, each = nodes[linked], rows[linked], nearest.at(of[linked])
            n_own, own_nodes, own_rows = _flat(table.column("searched"), own)
            place = places_of(loaded.keys, own_nodes)
            there = np.where(place >= 0, own_rows * loaded.present[place], 0.0)
            near = np.zeros(len(nodes))
            for a, b in pairs_of_persons(n_begun, n_own):
                held: BoolArray = loaded.holds(nodes[a], place[b], each.at(a))
                np.add.at(near, a, np.where(held, there[b], 0.0))
            some = n_begun > 0
            persons = np.repeat(np.arange(len(n_own)), n_own)
            owned = np.bincount(persons[there > 0], own_rows[there > 0], minlength=len(n_own)).astype(np.int64)
            right = np.minimum(near / each.rows, 1.0)
            starts = np.concatenate([[0], np.cumsum(n_begun[some])])
            # Sums of each person's rows, in their order.
            totals = (
                np.add.reduceat(np.column_stack([rows, rows * right]), starts[:-1]) if len(rows) else np.zeros((0, 2))
            )
            pairs = pa.StructArray.from_arrays(
                [pa.array(one) for one in (rows, each.distance, each.rows, near)], fields=list(to_arrow_schema(_PAIR))
            )
            told = {
                schemas.ENTITY: entity.filter(pa.array(some)),
                _PERSON_ROWS: totals[:, 0].astype(np.int64),
                _OWN_ROWS: owned[some],
                _FOUND: found_persons(n_begun[some], rows, right),
                _RIGHT: totals[:, 1],
                _GUESSED: found_persons(
                    np.ones(len(totals), dtype=np.int64),
                    totals[:, 0].astype(np.int64),
                    np.minimum(owned[some] / loaded.file.rows.sum(), 1.0),
                ),
                _PREDICTED: found_by_classes(n_own, own_rows, loaded.rows_at(place), there)[some],
                _PAIRS: pa.ListArray.from_arrays(pa.array(starts.astype(np.int32)), pairs),
            }
            yield pa.table(told)

    return Batches.of_frame(joined).then(step, _PERSONS)


def _of_person(rows: Batches, names: Sequence[str], to: str) -> DataFrame:
    """Distinct rows of each person, in order, and how many there are of each."""
    counted = rows.frame().groupBy(schemas.ENTITY, *names).agg(F.count("*").alias(ROWS))
    return counted.groupBy(schemas.ENTITY).agg(F.sort_array(F.array_agg(F.struct(*names, ROWS))).alias(to))


def _flat(lists: pa.ChunkedArray, names: Sequence[str]) -> tuple[LongArray, IntArray, LongArray]:
    """Length of each list, and the nodes and numbers of the rows in them."""
    one = lists.combine_chunks()
    lengths = pc.fill_null(pc.list_value_length(one), 0).to_numpy().astype(np.int64)
    rows = one.flatten()
    nodes = np.column_stack([rows.field(name).to_numpy(zero_copy_only=False) for name in names]).astype(np.int32)
    return lengths, nodes, rows.field(ROWS).to_numpy(zero_copy_only=False).astype(np.int64)


def collect_persons(linked: DataFrame) -> PersonOutcomes:
    """Count persons by their rows, and those who are found.

    Parameters
    ----------
    linked : DataFrame
        As :func:`linked_persons` returns it.
    """
    units = {
        name: F.sum(F.round(F.col(name) * F.lit(_UNIT)).cast("long")).alias(name) for name in (_FOUND, _RIGHT, _GUESSED)
    }
    there = (F.col(_OWN_ROWS) > 0).alias("there")
    counted = linked.groupBy(_PERSON_ROWS, there).agg(F.count("*").alias("persons"), *units.values()).toArrow()
    found = counted.sort_by([(_PERSON_ROWS, "ascending"), ("there", "ascending")])
    rows, persons = (found.column(name).to_numpy().astype(np.int64) for name in (_PERSON_ROWS, "persons"))
    return PersonOutcomes(
        rows,
        np.asarray(found.column("there").to_numpy(), dtype=np.bool_),
        persons,
        np.minimum(found.column(_FOUND).to_numpy() / _UNIT / persons, 1.0),
        int((rows * persons).sum()),
        int(found.column(_RIGHT).to_numpy().sum()) / _UNIT,
        int(found.column(_GUESSED).to_numpy().sum()) / _UNIT,
        _collect_predicted(linked),
    )


def _collect_predicted(linked: DataFrame) -> PredictedPersons:
    """Group persons by what is predicted of them, in steps of a hundredth; at most some thousand groups."""
    step = F.floor(F.log(F.col(_PREDICTED)) * F.lit(100.0))
    units = [F.sum(F.round(F.col(name) * F.lit(_UNIT)).cast("long")).alias(name) for name in (_PREDICTED, _FOUND)]
    there = linked.where((F.col(_OWN_ROWS) > 0) & (F.col(_PREDICTED) > 0))
    told = there.groupBy(step.alias("step")).agg(F.count("*").alias("persons"), *units).toArrow().sort_by("step")
    persons = told.column("persons").to_numpy().astype(np.int64)
    predicted, found = (
        np.minimum(told.column(name).to_numpy() / _UNIT / np.maximum(persons, 1), 1.0) for name in (_PREDICTED, _FOUND)
    )
    return PredictedPersons(persons, predicted, found)


def person_pairs(linked: DataFrame) -> DataFrame:
    """One row for the rows of a person that are alike: ``entity``, and the pair.

    Parameters
    ----------
    linked : DataFrame
        As :func:`linked_persons` returns it.
    """
    return linked.select(schemas.ENTITY, F.inline(_PAIRS))


def collect_right_rows(pairs: DataFrame) -> tuple[FloatArray, FloatArray]:
    """Count the rows of persons by how likely their link is right.

    Parameters
    ----------
    pairs : DataFrame
        As :func:`person_pairs` returns them.

    Returns
    -------
    probability : ndarray of float64, shape (n,)
    rows : ndarray of float64, shape (n,)
    """
    counted = pairs.groupBy(TIED, OWN_NEAR).agg(F.sum(ROWS).alias(ROWS)).toArrow()
    found = counted.sort_by([(TIED, "ascending"), (OWN_NEAR, "ascending")])
    near, tied = found.column(OWN_NEAR).to_numpy(), found.column(TIED).to_numpy()
    return np.minimum(near / np.maximum(tied, 1), 1.0), found.column(ROWS).to_numpy().astype(np.float64)
