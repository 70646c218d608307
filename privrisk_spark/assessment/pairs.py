"""Records of the table beside their released forms: measures that need to know which record became which."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses
from pyspark.sql import types as T  # noqa: N812

from privrisk_spark import schemas
from privrisk_spark.assessment.results import Measured
from privrisk_spark.assessment.sources import RELEASE, Release
from privrisk_spark.batches import Batches, Scratch
from privrisk_spark.errors import InputError, SchemaError
from privrisk_spark.hierarchy import Hierarchy
from privrisk_spark.kernels.concealment import (
    consistency_graph,
    matches,
    released_as,
    rows_per_original,
    rows_per_released,
)
from privrisk_spark.kernels.counting import distinct_rows
from privrisk_spark.kernels.exact_sums import ExactMean
from privrisk_spark.kernels.release_distribution import LeafCounts, entropy_loss
from privrisk_spark.policy_assess import Interval
from privrisk_spark.ranks import (
    collect_deviation,
    collect_disclosed,
    collect_ranks,
    deviation_disclosure,
    rank_disclosure,
)
from privrisk_spark.source import column, text

IntArray = npt.NDArray[np.int32]
LongArray = npt.NDArray[np.int64]

MOST_PAIRS = 1_000_000
"""Distinct pairs of an original and a released record the driver holds."""


def paired(table: Batches, release: Batches, k: int) -> DataFrame:
    """Nodes ``o<i>`` of a record in the table beside ``n<i>`` in the release, by record id.

    Parameters
    ----------
    table, release : Batches
        Rows of both, with ``record_id``.
    k : int
    """
    nodes = schemas.nodes(k)
    mine = table.frame().select(schemas.RECORD_ID, *[F.col(name).alias(f"o{name[1:]}") for name in nodes])
    theirs = release.frame().select(F.col(schemas.RECORD_ID).alias("of_record"), *nodes)
    return mine.join(theirs, F.col(schemas.RECORD_ID) == F.col("of_record"), "inner").drop("of_record")


def collect_entropy_loss(
    pairs: DataFrame, hierarchies: Mapping[str, Hierarchy], of: Mapping[str, object]
) -> list[Measured]:
    """Non-uniform entropy loss of the released cells, by attribute and over all.

    Parameters
    ----------
    pairs : DataFrame
        Of :func:`paired`.
    hierarchies : mapping of attribute to Hierarchy
    of : mapping
        Parameters of the measures.

    Raises
    ------
    InputError
        If a released cell does not generalize its record's value.
    """
    cells = F.array(
        *[
            F.struct(F.lit(i).alias("attribute"), F.col(f"o{i}").alias("original"), F.col(f"n{i}").alias("node"))
            for i in range(len(hierarchies))
        ]
    )
    counted = pairs.select(F.explode(cells).alias("cell")).groupBy("cell").count().select("cell.*", "count").toArrow()
    columns = [counted.column(name).to_numpy() for name in ("attribute", "original", "node", "count")]
    attribute, original, node, rows = columns
    means = []
    for i, (name, hierarchy) in enumerate(hierarchies.items()):
        here = attribute == i
        above = _above(hierarchy, original[here], node[here])
        if (above < 0).any():
            raise InputError(
                f"{RELEASE}: some released values of '{name}' do not generalize the record's own; was the release made "
                "of this table, by this hierarchy?"
            )
        leaves = LeafCounts.of(original[here][:, None], rows[here], (hierarchy.n_leaves,))
        under = leaves.under(0, hierarchy.first_leaf, hierarchy.last_leaf)
        loss = entropy_loss(original[here], above, under)
        means.append(ExactMean.of(loss, rows[here]))
    total = ExactMean()
    for mean in means:
        total = total.plus(mean)
    measured = [Measured("non_uniform_entropy", total.mean, of)]
    measured += [
        Measured("non_uniform_entropy", mean.mean, {**of, "column": name})
        for name, mean in zip(hierarchies, means, strict=True)
    ]
    return measured


def _above(hierarchy: Hierarchy, original: LongArray, node: LongArray) -> IntArray:
    """Most specific ancestor-or-self of each original that has the released node's label; -1 if none has."""
    first: dict[str | None, int] = {}
    label = np.array([first.setdefault(text, number) for number, text in enumerate(hierarchy.labels)], dtype=np.int32)
    result = np.full(len(node), -1, dtype=np.int32)
    for depth in range(hierarchy.at_depth.shape[1]):
        ancestor = hierarchy.at_depth[original, depth]
        result = np.where((ancestor >= 0) & (label[ancestor] == label[node]), ancestor, result)
    return result


def collect_concealment(
    pairs: DataFrame, rows: int, hierarchies: Sequence[Hierarchy], of: Mapping[str, object]
) -> list[Measured]:
    """(1,k), (k,1), (k,k) anonymity and k-concealment of a release.

    Parameters
    ----------
    pairs : DataFrame
        Of :func:`paired`.
    rows : int
        Records of the table.
    hierarchies : sequence of k Hierarchy
    of : mapping

    Raises
    ------
    InputError
        If there are too many distinct records, or the release does not hold each record once.
    """
    k = len(hierarchies)
    names = [*[f"o{i}" for i in range(k)], *schemas.nodes(k)]
    found = pairs.groupBy(*names).count().limit(MOST_PAIRS + 1).toArrow()
    if found.num_rows > MOST_PAIRS:
        raise InputError(
            f"assess.concealment: more than {MOST_PAIRS:,} distinct pairs of an original and a released record; leave "
            "it out, or assess a sample."
        )
    columns = [found.column(name).to_numpy() for name in names]
    times = found.column("count").to_numpy()
    if int(times.sum()) != rows:
        raise InputError(
            f"assess.concealment: {int(times.sum()):,} of {rows:,} records are in the release under their id; it is "
            "about releases that hold every record once."
        )
    codes = [np.where(c == h.root, h.n_leaves, c) for c, h in zip(columns[:k], hierarchies, strict=True)]
    first, original = distinct_rows(codes)
    firsts, released = distinct_rows(columns[k:])
    graph = consistency_graph(
        [hierarchy.ancestor for hierarchy in hierarchies],
        np.column_stack([code[first] for code in codes]).astype(np.int32),
        _summed(original, times, len(first)),
        np.column_stack([node[firsts] for node in columns[k:]]).astype(np.int32),
        _summed(released, times, len(firsts)),
    )
    flow = released_as(graph, original.astype(np.int32), released.astype(np.int32), times)
    one_k, k_one = int(rows_per_original(graph).min()), int(rows_per_released(graph).min())
    return [
        Measured("one_k", one_k, of),
        Measured("k_one", k_one, of),
        Measured("k_k", min(one_k, k_one), of),
        Measured("k_concealment", int(matches(graph, flow).min()), of),
    ]


def _summed(position: LongArray, rows: LongArray, n: int) -> LongArray:
    result = np.zeros(n, dtype=np.int64)
    np.add.at(result, position, rows)
    return result


def collect_intervals(
    scratch: Scratch,
    table: DataFrame,
    record_id: str,
    release: Release,
    intervals: Mapping[str, Interval],
    of: Mapping[str, object],
) -> Iterator[Measured]:
    """Rank and standard deviation interval disclosure of numeric columns.

    Raises
    ------
    SchemaError
        If the release lacks a masked column, or a column holds no numbers.
    """
    key = release.given.record_id
    assert key is not None
    for number, (name, interval) in enumerate(intervals.items()):
        masked = interval.masked or release.column(name)
        if masked not in release.frame.columns:
            raise SchemaError(f"assess.intervals.{name}.masked: the release has no column '{masked}'.")
        true = _number(table, name, f"assess.intervals.{name}").alias("original")
        known = _number(release.frame, masked, f"assess.intervals.{name}.masked").alias("masked")
        mine = table.select(text(table, record_id).alias(schemas.RECORD_ID), true)
        theirs = release.frame.select(text(release.frame, key).alias("of_record"), known)
        both = mine.join(theirs, F.col(schemas.RECORD_ID) == F.col("of_record"), "left").drop("of_record")
        about = {**of, "column": name, "p": interval.p}
        ranks = collect_ranks(scratch, theirs, "masked", store=f"ranks-{number}")
        deviation = collect_deviation(scratch, mine, "original")
        both_columns = (both, schemas.RECORD_ID, "original", "masked")
        by_rank = collect_disclosed(rank_disclosure(*both_columns, ranks, p=interval.p))
        by_deviation = collect_disclosed(deviation_disclosure(*both_columns, deviation, p=interval.p))
        for measure, found in (("rid", by_rank), ("sdid", by_deviation)):
            nothing = {**about, "reason": "no record has a number on both sides"}
            yield Measured(measure, found.share, about) if found.compared else Measured(measure, None, nothing)
        yield Measured("interval_missing", by_rank.missing, about)


def _number(frame: DataFrame, name: str, key: str) -> Column:
    """Column as doubles; a text that is no number is missing.

    Raises
    ------
    SchemaError
        If it holds neither numbers nor texts.
    """
    kind = frame.schema[name].dataType
    if not isinstance(kind, T.NumericType | T.StringType):
        raise SchemaError(f"{key}: the column '{name}' must hold numbers, not {kind.simpleString()}.")
    return column(name).try_cast("double")
