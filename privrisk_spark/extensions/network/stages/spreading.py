"""Diffusion by joins of Spark, step by step, for graphs that no machine holds.

Amounts are whole numbers of units of 2^-62, so that sums do not depend on how rows are dealt, and every rounding is
down: what is missing of the sum of all is then a bound, counted exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses
from pyspark.sql import types as T  # noqa: N812

from privrisk_spark.engine.batches import PARTS, Batches, Scratch, broadcast_small, in_chunks, part_name, report
from privrisk_spark.errors import InputError
from privrisk_spark.extensions.network.kernels.diffusion import (
    Leak,
    flow,
    missing_units,
    of_units,
    unit_weights,
    weighted,
    whole_unit,
)
from privrisk_spark.extensions.network.kernels.trust import Exposure
from privrisk_spark.extensions.network.planning import Spreading
from privrisk_spark.extensions.network.stages.deciding import Ground
from privrisk_spark.extensions.network.stages.network import StoredNetwork
from privrisk_spark.extensions.network.stages.reaching import FromStoredSpread, needed
from privrisk_spark.extensions.network.stages.user_pairs import Pieces, collect_buckets, packed, unpacked
from privrisk_spark.kernels.arrays import FloatArray, LongArray
from privrisk_spark.storage.part_files import write_array

MOST_STEPS = 1000
"""Joins after one another that are begun."""


def _longs(*names: str) -> T.StructType:
    return T.StructType([T.StructField(name, T.LongType(), False) for name in names])


EDGES = _longs("user", "friend", "friends_degree")
ASKED = _longs("v", "user", "degree")
FLOWS = _longs("v", "user", "degree", "kept", "to_each")
TERMS = _longs("v", "user", "part")


def collect_spread(
    scratch: Scratch, ground: Ground, table: StoredNetwork, exposure: Exposure, spreading: Spreading
) -> FromStoredSpread:
    """Spread from everybody who sees, and keep what reaches those whom the ones who show name.

    Parameters
    ----------
    table : StoredNetwork
        Stated trust, with values.

    Raises
    ------
    InputError
        If it takes more than :data:`MOST_STEPS` steps.
    """
    leak, most = spreading.leak, ground.network.edges.facts.get("most_friends", 0)
    rate = most if leak == "laplacian" else 1
    series = spreading.series(rate)
    if len(series.weights) > MOST_STEPS:
        key = "time" if spreading.steps is None else "steps"
        raise InputError(
            f"sharing.model.{key}: the series has {len(series.weights):,} steps, one join of Spark each, and at most "
            f"{MOST_STEPS:,} are begun. Choose less, leak: stochastic, or computation: whole."
        )
    all_edges = scratch.write_frame(edges_of(scratch, ground.network), "spread-edges")
    edges = broadcast_small(all_edges, all_edges.count())
    asked = scratch.write_frame(_asked(scratch, ground, table, exposure), "spread-asked")
    amounts = _distinct(asked).withColumn("amount", F.lit(whole_unit()))
    terms = []
    for number, weight in enumerate(unit_weights(series).tolist()):
        amounts = scratch.write_frame(amounts, f"spread-amounts-{number}")
        terms.append(_terms(amounts, weight))
        if number + 1 < len(series.weights):
            amounts = step(amounts, edges, leak=leak, rate=rate)
    # Both sums below are of these: no term is weighed twice, and one join keeps what is asked for.
    ended = scratch.write_frame(_united(terms).groupBy("v", "user").agg(F.sum("part").alias("part")), "spread-ended")
    wanted = broadcast_small(asked.select("v", "user").where("user >= 0"), asked.count())
    reached = ended.join(wanted, ["v", "user"], "left_semi")
    whole = ended.groupBy("v").agg(F.sum("part").alias("part")).select("v", F.col("v").alias("user"), "part")
    return FromStoredSpread(
        _collect_values(scratch, ground, reached, "spread", of_units),
        _collect_values(scratch, ground, whole, "missing", missing_units),
    )


def edges_of(scratch: Scratch, network: StoredNetwork) -> DataFrame:
    """Directed edges as rows, with how many friends the second user has."""

    def read(bucket: int) -> Iterator[pa.Table]:
        held = network.load()
        user, friend = unpacked(np.asarray(held.words[bucket]))
        yield pa.table({"user": user, "friend": friend, "friends_degree": held.degrees(friend)})

    return Batches.of_parts(scratch.spark, range(len(network.edges.names)), read, EDGES).frame()


def _asked(scratch: Scratch, ground: Ground, table: StoredNetwork, exposure: Exposure) -> DataFrame:
    """Whose share of what starts at whom is asked for, with the friends of the start; of every start, one row more."""
    slices, pairs, network = ground.pairs.slices, ground.pairs, ground.network

    def read(number: int) -> Iterator[pa.Table]:
        words = pairs.words(slices[number])
        v, j = needed(table, exposure, words)
        seeing = np.unique(v)
        start, end = np.concatenate([v, seeing]), np.concatenate([j, np.full(len(seeing), -1)])
        yield pa.table({"v": start, "user": end, "degree": network.load().degrees(start)})

    return Batches.of_parts(scratch.spark, range(len(slices)), read, ASKED).frame().distinct()


def _distinct(asked: DataFrame) -> DataFrame:
    """Where information starts: at each v, with his friends."""
    return asked.where("user = -1").select("v", F.col("v").alias("user"), "degree")


def step(amounts: DataFrame, edges: DataFrame, *, leak: Leak, rate: int) -> DataFrame:
    """One step of all walks: AMOUNTS to AMOUNTS, EDGES being those of all users."""

    def flows(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in in_chunks(tables):
            amount, degree = (table.column(name).to_numpy() for name in ("amount", "degree"))
            kept, to_each = flow(leak, rate, amount, degree)
            yield (
                table.drop_columns(["amount"])
                .append_column("kept", pa.array(kept))
                .append_column("to_each", pa.array(to_each))
            )

    flowing = Batches.of_frame(amounts).then(flows, FLOWS).frame()
    sent = (
        flowing.where("to_each > 0")
        .join(edges, "user")
        .select(
            "v",
            F.col("friend").alias("user"),
            F.col("friends_degree").alias("degree"),
            F.col("to_each").alias("amount"),
        )
    )
    kept = flowing.where("kept > 0").select("v", "user", "degree", F.col("kept").alias("amount"))
    return sent.unionByName(kept).groupBy("v", "user", "degree").agg(F.sum("amount").alias("amount"))


def _terms(amounts: DataFrame, weight: int) -> DataFrame:
    def weigh(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in in_chunks(tables):
            part = weighted(table.column("amount").to_numpy(), weight)
            yield table.select(["v", "user"]).append_column("part", pa.array(part))

    return Batches.of_frame(amounts).then(weigh, TERMS).frame()


def _united(frames: list[DataFrame]) -> DataFrame:
    found = frames[0]
    for frame in frames[1:]:
        found = found.unionByName(frame)
    return found


def _collect_values(
    scratch: Scratch, ground: Ground, frame: DataFrame, name: str, value: Callable[[LongArray], FloatArray]
) -> StoredNetwork:
    """Sums of units as values from v to users, where tasks map them."""
    directory = scratch.directory(f"{name}-pieces")

    def sort(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in in_chunks(tables):
            v, user, part = (table.column(of).to_numpy() for of in ("v", "user", "part"))
            words = packed(v, user)
            order = np.argsort(words)
            piece = part_name("pairs")
            write_array(words[order], directory, piece)
            write_array(value(part[order]), directory, f"{piece}.values")
            yield report(piece, {})

    parts = scratch.collect_parts(Batches.of_frame(frame).then(sort, PARTS))
    pieces = Pieces(directory, tuple(part["name"] for part in parts), valued=True)
    return StoredNetwork(collect_buckets(scratch, pieces, ground.users, name, key=name), ground.network.offsets, True)
