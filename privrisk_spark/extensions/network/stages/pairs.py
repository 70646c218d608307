"""Whom to decide for: all friends, friends of friends, a drawn sample."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from privrisk_spark.engine.batches import PARTS, Batches, Scratch, part_name, report
from privrisk_spark.errors import InputError
from privrisk_spark.extensions.network.stages.network import Network, StoredNetwork
from privrisk_spark.extensions.network.stages.user_pairs import (
    Pieces,
    StoredPairs,
    collect_buckets,
    cuts_of,
    once,
    packed,
    stored,
    unpacked,
)
from privrisk_spark.extensions.network.stages.users import StoredUsers
from privrisk_spark.kernels.arrays import IndexArray, LongArray, WordArray
from privrisk_spark.kernels.random.keyed import derive_key, prf, uniforms
from privrisk_spark.storage.part_files import write_array

DRAWN = 2**18
"""Pairs drawn by a task."""

WALKS = 2**22
"""Walks over a common friend that a task lists at once, of more than one user."""


def collect_sample(scratch: Scratch, users: StoredUsers, *, pairs: int, seed: int) -> StoredPairs:
    """Draw pairs of different users evenly, as many as asked for; one that is drawn again is there once.

    Parameters
    ----------
    users : StoredUsers
        At least two.
    seed : int
        Public; which pairs are drawn depends on it and on the users alone.
    """
    directory = scratch.directory("pairs-pieces")
    key = derive_key(hashlib.sha256(f"privrisk sharing {seed}".encode()).digest(), "pairs")
    n = users.n

    def draw(part: int) -> Iterator[pa.Table]:
        numbers = np.arange(part * DRAWN, min((part + 1) * DRAWN, pairs), dtype=np.uint64)
        messages = np.zeros((len(numbers), 4), dtype=np.uint32)
        messages[:, 0], messages[:, 1] = numbers & np.uint64(2**32 - 1), numbers >> np.uint64(32)
        words = prf(key, messages)
        u = np.minimum((uniforms(words[:, 0]) * n).astype(np.int64), n - 1)
        v = np.minimum((uniforms(words[:, 1]) * (n - 1)).astype(np.int64), n - 2)
        name = part_name("pairs")
        write_array(np.sort(packed(u, v + (v >= u))), directory, name)
        yield report(name, {})

    if n < 2:
        raise InputError("sharing.pairs: there is one user, and nobody to show anything to.")
    parts = scratch.collect_parts(Batches.of_parts(scratch.spark, range(-(-pairs // DRAWN)), draw, PARTS))
    pieces = Pieces(directory, tuple(part["name"] for part in parts), read=pairs)
    return collect_buckets(scratch, pieces, users, "pairs")


def friendliness(_bucket: int, _words: WordArray, first: IndexArray) -> dict[str, int]:
    """Measure the users of a bucket: most friends, and those without any."""
    degrees = np.diff(first).astype(np.int64)
    return {
        "most_friends": int(degrees.max()) if len(degrees) else 0,
        "alone": int(np.count_nonzero(degrees == 0)),
    }


def collect_friends_of_friends(
    scratch: Scratch, users: StoredUsers, network: StoredNetwork, *, most_walks: int
) -> StoredPairs:
    """List the pairs of which the second is a friend of a friend of the first, and no friend.

    Parameters
    ----------
    most_walks : int
        Walks over a common friend that may be listed.

    Raises
    ------
    InputError
        If there are more.
    """
    there = collect_walks(scratch, network)
    if there > most_walks:
        raise InputError(
            f"sharing.pairs.most_walks: there are {there:,} walks over a common friend, more than {most_walks:,}. "
            "Raise it, or decide for a sample: sharing.pairs={kind: sample, pairs: 100000}."
        )
    directory = scratch.directory("pairs")
    offsets = users.offsets

    def fill(bucket: int) -> Iterator[pa.Table]:
        low, high = int(offsets[bucket]), int(offsets[bucket + 1])
        held = network.load()
        found = [np.zeros(0, dtype=np.uint64)]
        for some in _chunks(held, np.arange(low, high)):
            first, friends = held.friends(some)
            owner = np.repeat(some, np.diff(first))
            again, theirs = held.friends(friends)
            words = once(packed(np.repeat(owner, np.diff(again)), theirs))
            u, v = unpacked(words)
            found.append(words[(u != v) & ~held.are_friends(u, v)])
        words, name = np.concatenate(found), part_name("pairs")
        first_of = np.searchsorted(words, np.arange(low, high + 1, dtype=np.uint64) << np.uint64(32))
        write_array(words, directory, name)
        write_array(first_of, directory, f"{name}.first")
        yield report(name, {"bucket": bucket, "pairs": len(words), "cuts": cuts_of(first_of), "facts": {}})

    parts = scratch.collect_parts(Batches.of_parts(scratch.spark, range(len(users.counts)), fill, PARTS))
    return stored(directory, sorted(parts, key=lambda part: int(part["bucket"])))


def collect_walks(scratch: Scratch, network: StoredNetwork) -> int:
    """Count the walks of two steps: of every edge, the friends of its second user."""

    def count(bucket: int) -> Iterator[pa.Table]:
        held = network.load()
        _, friends = unpacked(np.asarray(held.words[bucket]))
        yield report("", {"walks": int(held.degrees(friends).sum())})

    parts = scratch.collect_parts(Batches.of_parts(scratch.spark, range(len(network.edges.names)), count, PARTS))
    return sum(int(part["walks"]) for part in parts)


def _chunks(network: Network, users: LongArray) -> Iterator[LongArray]:
    """Deal users into chunks of about :data:`WALKS` walks of two steps; at least one user each."""
    degrees = network.degrees(users)
    for some in split(degrees, WALKS):
        first, friends = network.friends(users[some])
        reached = np.concatenate([[0], np.cumsum(network.degrees(friends))])[first]
        for few in split(np.diff(reached), WALKS):
            yield users[some][few]


def split(sizes: LongArray, most: int, *, rows: int | None = None) -> Iterator[slice]:
    """Cut a sequence into runs of at most so much in sum, or of one member, and of at most so many members."""
    ends = np.cumsum(sizes)
    begin = 0
    while begin < len(sizes):
        before = int(ends[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, before + most, side="right")))
        end = end if rows is None else min(end, begin + rows)
        yield slice(begin, end)
        begin = end
