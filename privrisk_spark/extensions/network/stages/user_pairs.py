"""Tables of pairs of users as sorted numbers in files of buckets: edges, pairs to decide for, trust.

A pair (u, v) is one word, u in its upper and v in its lower half. A task sorts the pairs of its chunk; another gathers
those of its bucket of u from all chunks. Hence no pair is shuffled by Spark, and none is seen by the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from privrisk_spark.engine.batches import PARTS, Batches, Scratch, in_chunks, part_name, report
from privrisk_spark.engine.fingerprints import fingerprints
from privrisk_spark.engine.value_codes import ValueCodes, as_text_column
from privrisk_spark.errors import Fault, SchemaError, listing, nearest
from privrisk_spark.extensions.network.policy import PropagatedTrust, StatedTrust, UserAttributes, UserPairs
from privrisk_spark.extensions.network.stages.users import StoredUsers
from privrisk_spark.kernels.arrays import FloatArray, IndexArray, LongArray, WordArray
from privrisk_spark.storage.part_files import map_array, write_array
from privrisk_spark.storage.parts import PartDirectory
from privrisk_spark.tables.row_groups import Wanted
from privrisk_spark.tables.sources import scan

SLICE = 2**13
"""Pairs decided by a task, about; part of how results are dealt to files."""

_HALF = np.uint64(32)


def packed(u: LongArray, v: LongArray) -> WordArray:
    """Return pairs as words."""
    return (u.astype(np.uint64) << _HALF) | v.astype(np.uint64)


def unpacked(words: WordArray) -> tuple[LongArray, LongArray]:
    """Return the two users of each word."""
    return (words >> _HALF).astype(np.int64), (words & np.uint64(2**32 - 1)).astype(np.int64)


@dataclass(frozen=True)
class Pieces:
    """Pairs as tasks found them: each piece ascending, with pairs that are in others too.

    Attributes
    ----------
    names : tuple of str
        Words; beside them ``….values``, where the pairs have some.
    read, nulls, unknown, loops : int
        Rows of the table, and of them those that lack an end, name somebody who is no user, or one user twice
        where that says nothing.
    """

    directory: PartDirectory
    names: tuple[str, ...]
    read: int = 0
    nulls: int = 0
    unknown: int = 0
    loops: int = 0
    valued: bool = False


@dataclass(frozen=True)
class StoredPairs:
    """Distinct pairs in the scratch directory, a file a bucket of the first user.

    Attributes
    ----------
    token : str
        Identity: later ones may lie in the same directory, and workers live on.
    names : tuple of n_buckets str
        Words, ascending; beside them ``….values``, where the pairs have some, and ``….first`` of each user's.
    counts : tuple of n_buckets int
    cuts : tuple of n_buckets tuple of int
        Places at which a bucket is cut into slices, each all pairs of some users.
    facts : mapping of str to int
        Sums over the buckets.
    """

    directory: PartDirectory
    token: str
    names: tuple[str, ...]
    counts: tuple[int, ...]
    cuts: tuple[tuple[int, ...], ...]
    facts: Mapping[str, int] = field(default_factory=dict, hash=False)

    @property
    def n(self) -> int:
        """Number of pairs."""
        return sum(self.counts)

    @property
    def slices(self) -> list[tuple[int, int, int]]:
        """Bucket, begin and end of each slice, in order; none is empty."""
        return [(bucket, begin, end) for bucket, cuts in enumerate(self.cuts) for begin, end in pairwise(cuts)]

    def words(self, piece: tuple[int, int, int]) -> WordArray:
        """Map the pairs of a slice."""
        bucket, begin, end = piece
        return np.asarray(map_array(self.directory, self.names[bucket])[begin:end])


def check_columns(frame: DataFrame, named: Mapping[str, str], *, key: str) -> None:
    """Refuse a table that lacks a column.

    Parameters
    ----------
    named : mapping of str to str
        Columns by the option that names them.
    key : str
        Of the policy, for messages.

    Raises
    ------
    SchemaError
        Naming every such column.
    """
    faults = []
    for option, column in named.items():
        if column not in frame.columns:
            hint = nearest(column, frame.columns)
            rule = f"the table has no column '{column}'{hint}; it has {listing(frame.columns)}"
            faults.append(Fault(f"{key}.{option}", rule))
    if faults:
        raise SchemaError(faults)


def columns_of(table: UserPairs | UserAttributes) -> dict[str, str]:
    """Return the columns that are read, by their options: the two ends of a row first, then its number, if any."""
    if isinstance(table, UserAttributes):
        return {"user": table.user, "attribute": table.attribute, "value": table.value}
    number = {"trust": table.trust} if isinstance(table, StatedTrust | PropagatedTrust) else {}
    return {"u": table.u, "v": table.v, **number}


def collect_pieces(
    scratch: Scratch,
    users: StoredUsers,
    frame: DataFrame,
    table: UserPairs | UserAttributes,
    *,
    key: str,
    both: bool = False,
    attributes: Sequence[str] = (),
    given: bool = False,
) -> Pieces:
    """Number the users of a table of pairs, or of users and attributes, in tasks.

    Parameters
    ----------
    frame : DataFrame
        The table as Spark opened it.
    key : str
        Of the policy, for messages; its last word names the directory.
    both : bool
        Whether each pair stands for its other direction too.
    attributes : sequence of str
        Names that stand for the second user of a table of users and attributes, by their places.
    given : bool
        Whether a caller gave the frame; then it is read by Spark alone.

    Raises
    ------
    SchemaError
        If there is a row without two users, unless the policy says to ignore it; or a number that is none.
    """
    named = columns_of(table)
    check_columns(frame, named, key=key)
    first, second, *numbered = named.values()
    wanted = [Wanted("u", first, "text", distinct=True), Wanted("v", second, "text", distinct=not attributes)]
    places = ValueCodes.of({attribute: place for place, attribute in enumerate(attributes)})
    wanted += [Wanted("value", column, "number") for column in numbered]
    name = key.rpartition(".")[2]
    directory = scratch.directory(f"{name}-pieces")

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for rows in in_chunks(tables):
            u = _numbers(users, rows.column("u"))
            v = places.encoded(rows.column("v")).astype(np.int64) if attributes else _numbers(users, rows.column("v"))
            there = pc.and_(rows.column("u").is_valid(), rows.column("v").is_valid()).to_numpy()
            inside = (u >= 0) & (v >= 0)
            # What somebody says of himself is said; that he is his own friend is not.
            loops = inside & (u == v) & (not numbered and not attributes)
            kept = inside & ~loops
            facts = {
                "read": rows.num_rows,
                "nulls": int(np.count_nonzero(~there)),
                "unknown": int(np.count_nonzero(there & ~inside)),
                "loops": int(np.count_nonzero(loops)),
            }
            words = packed(u[kept], v[kept])
            part = part_name("pairs")
            if not numbered:
                if both:
                    words = np.concatenate([words, packed(v[kept], u[kept])])
                write_array(np.sort(words), directory, part)
            else:
                numbers = rows.column("value").to_numpy()[kept].astype(np.float64)
                order = np.argsort(words, kind="stable")
                write_array(words[order], directory, part)
                write_array(numbers[order], directory, f"{part}.values")
                bad = ~np.isfinite(numbers) | (bool(attributes) & (numbers < 0))
                facts["bad"] = int(np.count_nonzero(bad))
            yield report(part, facts)

    parts = scratch.collect_parts(scan(None if given else table, frame, wanted).then(step, PARTS))
    total = {fact: sum(int(part[fact]) for part in parts) for fact in ("read", "nulls", "unknown", "loops")}
    lost = total["nulls"] + total["unknown"]
    if lost and table.unknown == "refuse":
        raise SchemaError(
            f"{key}: {total['unknown']:,} of {total['read']:,} rows name somebody whom table does not have"
            f"{', or no quasi-identifier' if attributes else ''}, and {total['nulls']:,} lack an end. Mend the table, "
            f"or set {key}.unknown: ignore to leave them out."
        )
    if sum(int(part.get("bad", 0)) for part in parts):
        rule = "no finite numbers, or negative" if attributes else "no finite numbers"
        raise SchemaError(f"{key}.{[*named][-1]}: there are values that are {rule}; mend the column.")
    return Pieces(directory, tuple(part["name"] for part in parts), **total, valued=bool(numbered))


def _numbers(users: StoredUsers, ids: pa.ChunkedArray) -> LongArray:
    """User of each id; -1 for nobody's, and where there is none."""
    if pa.types.is_dictionary(ids.type):
        ids = ids.cast(pa.string())
    found = users.load().numbers(fingerprints(as_text_column(ids, "", numbers=users.numbers)))
    return np.where(ids.is_valid().to_numpy(), found, -1)


Measure = Callable[[int, WordArray, LongArray], Mapping[str, int]]
"""Says something of the pairs of a bucket: its number, its pairs, and the first of each user's."""


def collect_buckets(
    scratch: Scratch,
    pieces: Pieces,
    users: StoredUsers,
    name: str,
    *,
    key: str = "",
    measure: Measure | None = None,
) -> StoredPairs:
    """Gather the pairs of each bucket of users, each once.

    Parameters
    ----------
    name : str
        Of the directory.
    key : str
        Of the policy, for messages.
    measure : callable, optional
        What is to be said of the pairs of each bucket.

    Raises
    ------
    SchemaError
        If a pair has two values.
    """
    directory = scratch.directory(name)
    offsets = users.offsets
    held, at, valued = pieces.names, pieces.directory, pieces.valued

    def fill(bucket: int) -> Iterator[pa.Table]:
        low, high = int(offsets[bucket]), int(offsets[bucket + 1])
        found: list[WordArray] = [np.zeros(0, dtype=np.uint64)]
        values: list[FloatArray] = [np.zeros(0)]
        for piece in held:
            words = map_array(at, piece)
            begin, end = np.searchsorted(words, np.array([low << 32, high << 32], dtype=np.uint64))
            found.append(words[begin:end])
            if valued:
                values.append(map_array(at, f"{piece}.values")[begin:end])
        part = part_name("pairs")
        pairs = np.concatenate(found)
        again = 0
        if valued:
            order = np.argsort(pairs, kind="stable")
            pairs = pairs[order]
            write_array(np.concatenate(values)[order], directory, f"{part}.values")
            again = int(np.count_nonzero(pairs[1:] == pairs[:-1]))
        else:
            pairs = once(pairs)
        write_array(pairs, directory, part)
        first = np.searchsorted(pairs, np.arange(low, high + 1, dtype=np.uint64) << _HALF)
        write_array(first, directory, f"{part}.first")
        facts = {} if measure is None else measure(bucket, pairs, first)
        yield report(
            part, {"bucket": bucket, "pairs": len(pairs), "again": again, "cuts": cuts_of(first), "facts": dict(facts)}
        )

    parts = scratch.collect_parts(Batches.of_parts(scratch.spark, range(len(users.counts)), fill, PARTS))
    parts.sort(key=lambda part: int(part["bucket"]))
    if any(part["again"] for part in parts):
        again = sum(part["again"] for part in parts)
        raise SchemaError(f"{key}: {again:,} pairs are there more than once; a pair has one value. Mend the table.")
    return stored(directory, parts)


def once(words: WordArray) -> WordArray:
    """Return words in ascending order, each once; much faster than numpy's own function, which hashes."""
    ordered = np.sort(words)
    return ordered[np.append(True, ordered[1:] != ordered[:-1])] if len(ordered) else ordered


def stored(directory: PartDirectory, parts: list[dict[str, Any]]) -> StoredPairs:
    """Put together what tasks said of the buckets they filled."""
    facts: dict[str, int] = {}
    for part in parts:
        for fact, number in part["facts"].items():
            facts[fact] = max(facts.get(fact, 0), number) if fact.startswith("most") else facts.get(fact, 0) + number
    return StoredPairs(
        directory,
        uuid4().hex,
        tuple(part["name"] for part in parts),
        tuple(part["pairs"] for part in parts),
        tuple(tuple(part["cuts"]) for part in parts),
        facts,
    )


def cuts_of(first: IndexArray) -> list[int]:
    """Cut a bucket into slices of about :data:`SLICE` pairs, each all pairs of some users."""
    cuts = [0]
    total = int(first[-1])
    while cuts[-1] < total:
        end = int(first[np.searchsorted(first, min(cuts[-1] + SLICE, total))])
        cuts.append(end)
    return cuts
