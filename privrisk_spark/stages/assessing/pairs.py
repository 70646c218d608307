"""Records of the table beside their released forms: measures that need to know which record became which."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses
from pyspark.sql import types as T  # noqa: N812

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import PARTS, Batches, Scratch, in_chunks, report
from privrisk_spark.errors import InputError
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.arrays import IntArray, LongArray
from privrisk_spark.kernels.classes.concealment import confusion, matches, released_as
from privrisk_spark.kernels.classes.consistency import consistency_graph, rows_per_original, rows_per_released
from privrisk_spark.kernels.measures.divergence import LeafCounts, entropy_loss
from privrisk_spark.kernels.measures.interval_disclosure import IntervalTally, both_known, rid, within
from privrisk_spark.kernels.numeric.distinct import distinct_rows
from privrisk_spark.kernels.numeric.exact_sums import ExactMean
from privrisk_spark.kernels.numeric.fold import folded
from privrisk_spark.planning.assessment import RELEASE
from privrisk_spark.policy.assessment import Interval
from privrisk_spark.results.assessment import Measured
from privrisk_spark.stages.assessing.matched import Matched, originals
from privrisk_spark.stages.assessing.ranks import StoredRanks, collect_deviation_of, collect_ranks_of

MOST_PAIRS = 1_000_000
"""Distinct pairs of an original and a released record the driver holds."""


def collect_entropy_loss(
    matched: Matched, hierarchies: Mapping[str, Hierarchy], of: Mapping[str, object]
) -> list[Measured]:
    """Non-uniform entropy loss of the released cells, by attribute and over all.

    Parameters
    ----------
    hierarchies : mapping of attribute to Hierarchy
    of : mapping
        Parameters of the measures.

    Raises
    ------
    InputError
        If a released cell does not generalize its record's value.
    """
    names = list(zip(originals(len(hierarchies)), schemas.nodes(len(hierarchies)), strict=True))

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in in_chunks(tables):
            known = _known(table)
            for i, pair in enumerate(names):
                columns = [table.column(name).to_numpy()[known] for name in pair]
                first, member = distinct_rows(columns)
                count = np.bincount(member, minlength=len(first)).astype(np.int64)
                cells = (np.full(len(first), i, dtype=np.int32), *(column[first] for column in columns), count)
                yield pa.table(dict(zip(_CELL, cells, strict=True)))

    kinds = (T.IntegerType(), T.IntegerType(), T.IntegerType(), T.LongType())
    schema = T.StructType([T.StructField(name, kind, False) for name, kind in zip(_CELL, kinds, strict=True)])
    counted = matched.rows.then(step, schema).frame().toArrow()
    columns = [counted.column(name).to_numpy() for name in _CELL]
    first, member = distinct_rows(columns[:3])
    attribute, original, node = (column[first] for column in columns[:3])
    rows = _summed(member, columns[3], len(first))
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
    measured = [Measured("non_uniform_entropy", folded(ExactMean.empty(), means).mean, of)]
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


_CELL = ("attribute", "original", "node", "count")


def _known(table: pa.Table) -> npt.NDArray[np.bool_]:
    """Which released rows are of a record of the table; all of them where nothing but numbers is compared."""
    (first,) = originals(1)
    if first not in table.column_names:
        return np.ones(table.num_rows, dtype=np.bool_)
    known: npt.NDArray[np.bool_] = table.column(first).to_numpy() >= 0
    return known


def collect_concealment(
    matched: Matched, rows: int, hierarchies: Sequence[Hierarchy], of: Mapping[str, object]
) -> list[Measured]:
    """(1,k), (k,1), (k,k) anonymity, k-concealment and k-confusion of a release.

    Parameters
    ----------
    rows : int
        Records of the table.
    hierarchies : sequence of k Hierarchy

    Raises
    ------
    InputError
        If there are too many distinct records, or the release does not hold each record once.
    """
    k = len(hierarchies)
    names = [*originals(k), *schemas.nodes(k)]
    pairs = matched.rows.frame().where(F.col(names[0]) >= 0)
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
    fitting = rows_per_original(graph)
    one_k, k_one = int(fitting.min()), int(rows_per_released(graph).min())
    confused = confusion(graph, 1 / fitting[graph.original])
    return [
        Measured("one_k", one_k, of),
        Measured("k_one", k_one, of),
        Measured("k_k", min(one_k, k_one), of),
        Measured("k_concealment", int(matches(graph, flow).min()), of),
        Measured("k_confusion", int(confused.min()), {**of, "method": "one of the released rows that fit, at random"}),
    ]


def _summed(position: LongArray, rows: LongArray, n: int) -> LongArray:
    result = np.zeros(n, dtype=np.int64)
    np.add.at(result, position, rows)
    return result


def collect_intervals(
    scratch: Scratch,
    matched: Matched,
    table: Batches,
    asked: Mapping[str, tuple[Interval, str]],
    of: Mapping[str, object],
) -> Iterator[Measured]:
    """Rank and standard deviation interval disclosure of numeric columns.

    Parameters
    ----------
    matched : Matched
        With the numbers ``x<j>`` and ``y<j>`` of the j-th column.
    table : Batches
        Records of the table.
    asked : mapping of column to (Interval, str)
        What is asked, and the column of ``table`` that holds the originals, as doubles.
    """
    for j, (name, (interval, original)) in enumerate(asked.items()):
        ranks = collect_ranks_of(scratch, matched.rows, f"y{j}", store=f"ranks-{j}")
        deviation = collect_deviation_of(scratch, table, original)
        tally = partial(_disclosed, j=j, ranks=ranks, width=deviation.width(interval.p), p=interval.p)
        parts = scratch.collect_parts(matched.rows.then(tally, PARTS))
        compared, by_rank, by_deviation, missing = (
            sum(part[key] for part in parts) for key in ("compared", "rid", "sdid", "missing")
        )
        missing += matched.absent
        about = {**of, "column": name, "p": interval.p}
        for measure, disclosed in (("rid", by_rank), ("sdid", by_deviation)):
            if compared:
                yield Measured(measure, IntervalTally(compared, disclosed, missing).share, about)
            else:
                yield Measured(measure, None, {**about, "reason": "no record has a number on both sides"})
        yield Measured("interval_missing", missing, about)


def _disclosed(tables: Iterable[pa.Table], *, j: int, ranks: StoredRanks, width: float, p: float) -> Iterator[pa.Table]:
    """Count the records that the j-th column discloses."""
    for table in in_chunks(tables):
        here = _known(table)
        before, after = (table.column(f"{side}{j}").to_numpy()[here] for side in "xy")
        known = both_known(before, after)
        told = {"rid": rid(before, after, p, ranks=ranks.load()), "sdid": within(before, after, width)}
        counts = {key: int(np.count_nonzero(disclosed & known)) for key, disclosed in told.items()}
        compared = int(np.count_nonzero(known))
        yield report("", {**counts, "compared": compared, "missing": len(known) - compared})
