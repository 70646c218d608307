"""Pairs of people and protected rows where nobody tells whose the rows are: what is linked, and how well it fits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses
from pyspark.sql import types as T  # noqa: N812

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import Batches, in_chunks
from privrisk_spark.engine.decided import integers
from privrisk_spark.extensions.attack.stages.distance import DISTANCE, TIED, StoredLinks, slices
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.arrays import IntArray
from privrisk_spark.kernels.recoding.listed import places_of
from privrisk_spark.storage.part_files import map_array

ROWS, ROW = "rows", "row_"

_FIRST = "first"


def pairs_of(known: dict[str, Hierarchy]) -> T.StructType:
    """Schema of pairs: one row for a person and the best rows, or for rows that are alike and the best people.

    ``record_id`` of the person, of several the least; ``rows`` of the protected table that look like the one linked;
    ``distance`` of the two; ``tied_rows``, candidates at that distance; ``row_<column>``, the label of the protected
    row in each known column, of several rows the first by the order of the hierarchies.
    """
    return T.StructType(
        [
            T.StructField(schemas.RECORD_ID, T.StringType()),
            T.StructField(ROWS, T.LongType(), False),
            T.StructField(DISTANCE, T.DoubleType(), False),
            T.StructField(TIED, T.LongType(), False),
            *(T.StructField(ROW + name, T.StringType()) for name in known),
        ]
    )


def scored_people(people: Batches, links: StoredLinks, known: dict[str, Hierarchy]) -> Batches:
    """Put people beside the best protected rows.

    Parameters
    ----------
    people : Batches
        Who is tried: ``record_id``, ``q<j>``.
    links : StoredLinks
        Of what is known of them with the rows of the protected table.
    known : dict of column to Hierarchy

    Returns
    -------
    Batches
        :func:`pairs_of`, a row for each.
    """
    codes, trees = schemas.codes(len(known)), list(known.values())

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        loaded, (keys, best) = links.stored.load(), links.load()
        for table in in_chunks(tables):
            each = best.at(places_of(keys, integers(table, codes)))
            told = [table.column(schemas.RECORD_ID), loaded.file.rows[each.first], each.distance, each.rows]
            yield pa.table([*map(_array, told), *_labels(loaded.nodes[each.first], trees)], names=names)

    schema = pairs_of(known)
    names = schema.fieldNames()
    return people.then(step, schema)


def scored_rows(
    spark: SparkSession, people: Batches, links: StoredLinks, known: dict[str, Hierarchy], distinct: int
) -> DataFrame:
    """Put protected rows beside the best people.

    Parameters
    ----------
    people : Batches
        In whom was searched: ``record_id``, ``q<j>``.
    links : StoredLinks
        Of the distinct rows of the protected table with what is known of people.
    known : dict of column to Hierarchy
    distinct : int
        Distinct rows.

    Returns
    -------
    DataFrame
        :func:`pairs_of`, a row for each distinct one.
    """
    codes, trees = schemas.codes(len(known)), list(known.values())
    schema = pairs_of(known)

    def read(part: tuple[int, int]) -> Iterator[pa.Table]:
        here = slice(*part)
        nodes, rows = (np.ascontiguousarray(map_array(links.known, f"{of}.npy")[here]) for of in ("nodes", "rows"))
        _, best = links.load()
        told = [best.first[here], rows, best.distance[here], best.rows[here]]
        names = [_FIRST, *schema.fieldNames()[1:]]
        yield pa.table([*map(_array, told), *_labels(nodes, trees)], names=names)

    def place(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        keys = links.stored.load().keys
        for table in in_chunks(tables):
            of = places_of(keys, integers(table, codes))
            yield pa.table({schemas.RECORD_ID: table.column(schemas.RECORD_ID), _FIRST: of})

    first = T.StructField(_FIRST, T.LongType(), False)
    rows = Batches.of_parts(
        spark, slices(distinct, links.stored.tuples), read, T.StructType([first, *schema.fields[1:]])
    )
    ids = people.then(place, T.StructType([T.StructField(schemas.RECORD_ID, T.StringType()), first]))
    named = ids.frame().groupBy(_FIRST).agg(F.min(schemas.RECORD_ID).alias(schemas.RECORD_ID))
    return rows.frame().join(named, _FIRST).select(*(F.col(f"`{name}`") for name in schema.fieldNames()))


def collect_linked(pairs: DataFrame, begins: str) -> int:
    """Count the records of some pairs: people, or the rows that are alike.

    Parameters
    ----------
    pairs : DataFrame
        :func:`pairs_of`.
    begins : {"person", "row"}
    """
    counted = F.count("*") if begins == "person" else F.coalesce(F.sum(ROWS), F.lit(0))
    told = pairs.agg(counted.alias("linked")).first()
    assert told is not None
    return int(told["linked"])


def _array(values: object) -> pa.Array | pa.ChunkedArray:
    return values if isinstance(values, pa.ChunkedArray) else pa.array(values)


def _labels(nodes: IntArray, hierarchies: Sequence[Hierarchy]) -> list[pa.Array]:
    """Labels of nodes, column by column."""
    return [pa.array(list(tree.labels), pa.string()).take(pa.array(nodes[:, j])) for j, tree in enumerate(hierarchies)]
