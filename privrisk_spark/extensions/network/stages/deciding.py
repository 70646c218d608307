"""What is shown in every pair, in tasks: decisions as files, and what they add up to as facts.

How it is decided is a :class:`Decider`; here users become profiles and profiles rows. Slices are those of the pairs,
which do not depend on how the input was dealt, and so neither do the files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from privrisk_spark.engine.batches import PARTS, Batches, Scratch, part_name, report
from privrisk_spark.extensions.network.stages.network import Network, StoredNetwork
from privrisk_spark.extensions.network.stages.pairs import split
from privrisk_spark.extensions.network.stages.profiles import StoredTrees, Trees
from privrisk_spark.extensions.network.stages.user_pairs import StoredPairs, packed, unpacked
from privrisk_spark.extensions.network.stages.users import StoredUsers, Users
from privrisk_spark.kernels.arrays import BoolArray, ByteArray, FloatArray, IntArray, LevelArray, LongArray, WordArray
from privrisk_spark.kernels.numeric.fingerprint import mixed
from privrisk_spark.storage.directories import move
from privrisk_spark.storage.part_files import map_array, write_array
from privrisk_spark.storage.parts import PartDirectory

CHUNK = 2**11
"""Pairs decided at once; does not change a result."""

SORTED = 2**20
"""Pairs that are written to one file, in the order of the ids; more are written to files of which each is in order."""

FRIENDS = 2**19
"""Friends looked up at once, about; does not change a result."""

RELATIONS = ("friend", "friend of a friend", "stranger")
"""Of the one who sees to the one who shows; a friend of a friend is not his own one."""

REASONS = ("shown whole", "shown in part", "nothing is shown", "no common friend", "nothing to show")
"""How a decision came out."""

WHOLE, IN_PART, NOTHING, NO_COMMON, EMPTY = range(5)


@dataclass(frozen=True, eq=False)
class Acquainted:
    """Pairs of users, with what is known of both.

    Attributes
    ----------
    numbers : ndarray of int64, shape (n,)
        Place of each pair among all.
    u, v : ndarray of int64, shape (n,)
        Who shows, and who sees.
    codes : ndarray of int32, shape (n, k)
        Profile of u.
    levels : ndarray of int8, shape (n, k)
        Levels that u's values have: what may be shown at most.
    first : ndarray of int64, shape (n + 1,)
    friends : ndarray of int64
        Common friends of pair p are ``friends[first[p]:first[p + 1]]``.
    """

    users: Users
    trees: Trees
    numbers: LongArray
    u: LongArray
    v: LongArray
    codes: IntArray
    levels: LevelArray
    first: LongArray
    friends: LongArray

    @property
    def common(self) -> LongArray:
        """Number of common friends of each pair, int64 (n,)."""
        return np.diff(self.first)


@dataclass(frozen=True, eq=False)
class Showing:
    """What is shown in some pairs.

    Attributes
    ----------
    shown : ndarray of int8, shape (n, k)
        Levels that v sees: 0 is nothing, and the levels of u's value all of it.
    loss, utility, trust : ndarray of float64, shape (n,)
    objective : ndarray of float64, shape (n,)
        The figure that is optimized; NaN if a rule decides the pair and nothing is optimized.
    gap : ndarray of float64, shape (n,)
        By how much the objective may be better; 0 where the decision is proved to be the best.
    no_common : ndarray of bool, shape (n,)
        Pairs rejected for want of a common friend.
    """

    shown: LevelArray
    loss: FloatArray
    utility: FloatArray
    trust: FloatArray
    objective: FloatArray
    gap: FloatArray
    no_common: BoolArray


class Decider(Protocol):
    """How it is decided what is shown; small, as it goes to every task.

    Attributes
    ----------
    whole_users : bool
        Whether it wants all pairs of a user at once.
    """

    @property
    def whole_users(self) -> bool:
        """Whether it wants all pairs of a user at once."""

    def decide(self, pairs: Acquainted) -> Showing:
        """Decide some pairs, each by itself."""

    def at(self, trade_off: float) -> Decider:
        """Return the same with another trade-off between loss and utility."""


@dataclass(frozen=True)
class Ground:
    """What every task needs to decide."""

    users: StoredUsers
    network: StoredNetwork
    trees: StoredTrees
    pairs: StoredPairs

    def names(self, users: Sequence[int]) -> list[str]:
        """Return the ids of a few users."""
        found: list[str] = self.users.load().ids(np.array(users, dtype=np.int64)).to_pylist()
        return found

    def acquainted(
        self,
        piece: tuple[int, int, int],
        *,
        whole_users: bool = False,
        kept: Callable[[WordArray], BoolArray] | None = None,
    ) -> Iterator[Acquainted]:
        """Yield the pairs of a slice in chunks, with what is known of both.

        Parameters
        ----------
        piece : tuple of int
            Of the pairs' slices.
        whole_users : bool
            Whether all pairs of a user are in one chunk.
        kept : callable, optional
            Says which pairs are wanted.
        """
        users, network, trees = self.users.load(), self.network.load(), self.trees.load()
        words = self.pairs.words(piece)
        bucket, begin, _ = piece
        numbers = np.arange(len(words)) + (sum(self.pairs.counts[:bucket]) + begin)
        if kept is not None:
            here = kept(words)
            words, numbers = words[here], numbers[here]
        u, v = unpacked(words)
        walked = network.degrees(u) if network.directed else np.minimum(network.degrees(u), network.degrees(v))
        for some in _chunks(u, walked, whole_users=whole_users):
            codes = users.profiles.take(u[some])
            first, friends = network.common_friends(u[some], v[some])
            yield Acquainted(users, trees, numbers[some], u[some], v[some], codes, trees.levels(codes), first, friends)


def _chunks(u: LongArray, sizes: LongArray, *, whole_users: bool) -> Iterator[slice]:
    """Cut pairs into chunks of about :data:`CHUNK`, of so many friends to look up, or of whole users."""
    if not whole_users:
        yield from split(sizes, FRIENDS, rows=CHUNK)
        return
    cuts = np.concatenate([[0], np.flatnonzero(np.diff(u)) + 1, [len(u)]]) if len(u) else np.zeros(1, dtype=np.int64)
    for users in split(np.diff(cuts), CHUNK):
        yield slice(int(cuts[users.start]), int(cuts[users.stop]))


@dataclass(frozen=True)
class DecidedSlices:
    """Decisions in the scratch directory, and what they add up to.

    Attributes
    ----------
    names : tuple of str
        Parquet files, each in the order of the ids: one, or of more pairs than :data:`SORTED` one a slice.
    facts : tuple of mapping
        Of each, as :meth:`Tally.facts` makes them.
    links : tuple of str
        Arrays of the pairs that see enough, beside each file.
    """

    directory: PartDirectory
    names: tuple[str, ...]
    facts: tuple[dict[str, Any], ...]
    links: tuple[str, ...]

    @property
    def n_links(self) -> int:
        """Pairs that see enough."""
        return sum(int(fact["links"]) for fact in self.facts)

    def linked(self) -> tuple[LongArray, LongArray]:
        """Return the users of all pairs that see enough; as long as the pairs are many."""
        words = [np.asarray(map_array(self.directory, name)) for name in self.links]
        return unpacked(np.concatenate([np.zeros(0, dtype=np.uint64), *words]))


def collect_decisions(
    scratch: Scratch, ground: Ground, decider: Decider, attributes: Sequence[str], *, exposed: int, connected_at: int
) -> DecidedSlices:
    """Decide every pair, in tasks, and write the decisions.

    Parameters
    ----------
    attributes : sequence of k str
    exposed : int
        Users of the greatest loss that each task names by number.
    connected_at : int
        Levels of each value of u that are enough for v; all, if the value has fewer.
    """
    directory = scratch.directory("decisions")
    slices, names = ground.pairs.slices, tuple(attributes)
    schema = decisions_schema(names)

    def decide(number: int) -> Iterator[pa.Table]:
        part = part_name("parquet")
        total, seen = Tally(len(names), exposed), [np.zeros(0, dtype=np.uint64)]
        network, rows = ground.network.load(), [schema.empty_table()]
        for pairs in ground.acquainted(slices[number], whole_users=decider.whole_users):
            showing = decider.decide(pairs)
            relation = relations(network, pairs)
            reason = reasons(pairs, showing)
            rows.append(_rows(pairs, showing, relation, reason, names, schema))
            total.add(pairs, showing, relation, reason)
            enough = (showing.shown >= np.minimum(pairs.levels, connected_at)).all(axis=1)
            # Who has nothing to show is seen by nobody.
            enough &= pairs.levels.any(axis=1)
            seen.append(packed(pairs.u[enough], pairs.v[enough]))
        _write_sorted(rows, directory, part)
        links, words = part_name("npy"), np.concatenate(seen)
        write_array(words, directory, links)
        yield report(part, {"slice": number, "links": len(words), "seen": links, **total.facts()})

    parts = scratch.collect_parts(Batches.of_parts(scratch.spark, range(len(slices)), decide, PARTS))
    parts.sort(key=lambda part: int(part["slice"]))
    files, arrays = (tuple(part[of] for part in parts) for of in ("name", "seen"))
    if len(files) > 1 and ground.pairs.n <= SORTED:

        def merge(_: int) -> Iterator[pa.Table]:
            part = part_name("parquet")
            _write_sorted([pq.read_table(directory.path(name)) for name in files], directory, part)
            yield report(part, {})

        files = tuple(one["name"] for one in scratch.collect_parts(Batches.of_parts(scratch.spark, [0], merge, PARTS)))
    return DecidedSlices(directory, files, tuple(parts), arrays)


def _write_sorted(rows: Sequence[pa.Table], directory: PartDirectory, name: str) -> None:
    """Write decisions in the order of u and v."""
    table = pa.concat_tables(rows).sort_by([("u", "ascending"), ("v", "ascending")])
    with directory.writing(name) as path:
        pq.write_table(table, path, store_schema=False)


def decisions_schema(attributes: Sequence[str]) -> pa.Schema:
    """Columns of the decisions."""
    fields = [("u", pa.string()), ("v", pa.string()), ("relation", pa.string()), ("common_friends", pa.int64())]
    for name in attributes:
        fields += [(f"shown_{name}", pa.string()), (f"level_{name}", pa.int8())]
    fields.append(("missing", pa.string()))
    fields += [(name, pa.float64()) for name in ("loss", "utility", "trust", "objective", "gap")]
    return pa.schema([*fields, ("status", pa.string()), ("reason", pa.string())])


def write_decisions(decided: DecidedSlices, place: Path, attributes: Sequence[str]) -> None:
    """Move the decisions to a new directory, under names in the order of the pairs; of no pairs, a file of no rows."""
    decided.directory.take(decided.names, place)
    for number, name in enumerate(decided.names):
        move(place / name, place / f"part-{number:05d}.parquet")
    if not decided.names:
        pq.write_table(decisions_schema(attributes).empty_table(), place / "part-00000.parquet", store_schema=False)


def read_first(decided: DecidedSlices, most: int) -> list[dict[str, Any]]:
    """Return the first few decisions as they are written."""
    if not decided.names or not most:
        return []
    with pq.ParquetFile(decided.directory.path(decided.names[0])) as file:
        batch = next(file.iter_batches(batch_size=most), None)
    return [] if batch is None else list(batch.to_pylist())


def relations(network: Network, pairs: Acquainted) -> ByteArray:
    """Return the relation of each pair, a number of :data:`RELATIONS`."""
    near = network.are_friends(pairs.u, pairs.v)
    return np.where(near, 0, np.where(pairs.common > 0, 1, 2)).astype(np.uint8)


def reasons(pairs: Acquainted, showing: Showing) -> ByteArray:
    """Return how each decision came out, a number of :data:`REASONS`."""
    most, shown = pairs.levels.sum(axis=1, dtype=np.int64), showing.shown.sum(axis=1, dtype=np.int64)
    found = np.select(
        [most == 0, showing.no_common, shown == 0, shown == most], [EMPTY, NO_COMMON, NOTHING, WHOLE], IN_PART
    )
    return found.astype(np.uint8)


def _rows(
    pairs: Acquainted,
    showing: Showing,
    relation: ByteArray,
    reason: ByteArray,
    attributes: Sequence[str],
    schema: pa.Schema,
) -> pa.Table:
    # What is not shown at all is at the height of the hierarchy, however deep the value is.
    steps = np.where(showing.shown == 0, np.array(pairs.trees.heights, dtype=np.int8), pairs.levels - showing.shown)
    columns: dict[str, pa.Array] = {
        "u": pairs.users.ids(pairs.u),
        "v": pairs.users.ids(pairs.v),
        "relation": pa.array(RELATIONS).take(pa.array(relation)),
        "common_friends": pa.array(pairs.common),
        "missing": pa.array(_missing(pairs.levels, attributes)),
        "loss": pa.array(showing.loss),
        "utility": pa.array(showing.utility),
        "trust": pa.array(showing.trust),
        "objective": pa.array(showing.objective, from_pandas=True),
        "gap": pa.array(showing.gap),
        "status": pa.array(["proved", "heuristic"]).take(pa.array((showing.gap > 0).astype(np.uint8))),
        "reason": pa.array(REASONS).take(pa.array(reason)),
    }
    for j, name in enumerate(attributes):
        columns[f"shown_{name}"] = pairs.trees.values(pairs.codes, showing.shown, j)
        columns[f"level_{name}"] = pa.array(np.ascontiguousarray(steps[:, j]))
    return pa.table([columns[name] for name in schema.names], schema=schema)


def _missing(levels: LevelArray, attributes: Sequence[str]) -> list[str]:
    """Return the attributes of which the owner of each pair has no value, which is not hidden but missing."""
    found, of = np.unique(levels == 0, axis=0, return_inverse=True)
    texts = [", ".join(name for name, gone in zip(attributes, row, strict=True) if gone) for row in found.tolist()]
    return [texts[i] for i in of.ravel().tolist()]


class Tally:
    """What the decisions of a slice add up to.

    Parameters
    ----------
    k : int
        Attributes.
    exposed : int
        Users to be named.
    """

    def __init__(self, k: int, exposed: int) -> None:
        n = len(RELATIONS)
        self.exposed = exposed
        self.counts = np.zeros((n, len(REASONS)), dtype=np.int64)
        self.sums = np.zeros((n, 2))
        self.heuristic = np.zeros(n, dtype=np.int64)
        self.gap = 0.0
        self.attributes = np.zeros((n, k, 4), dtype=np.int64)
        self.owners: dict[int, float] = {}

    def add(self, pairs: Acquainted, showing: Showing, relation: ByteArray, reason: ByteArray) -> None:
        """Add some pairs."""
        np.add.at(self.counts, (relation, reason), 1)
        for r in range(len(RELATIONS)):
            here = relation == r
            if not here.any():
                continue
            self.sums[r] += showing.loss[here].sum(), showing.utility[here].sum()
            self.heuristic[r] += np.count_nonzero(showing.gap[here] > 0)
            levels, shown = pairs.levels[here], showing.shown[here]
            self.attributes[r, :, 0] += np.count_nonzero(levels, axis=0)
            self.attributes[r, :, 1] += np.count_nonzero(shown, axis=0)
            self.attributes[r, :, 2] += levels.sum(axis=0, dtype=np.int64)
            self.attributes[r, :, 3] += shown.sum(axis=0, dtype=np.int64)
        self.gap = max(self.gap, float(showing.gap.max(initial=0.0)))
        owner, of = np.unique(pairs.u, return_inverse=True)
        for user, loss in zip(owner.tolist(), np.bincount(of, showing.loss).tolist(), strict=True):
            self.owners[user] = self.owners.get(user, 0.0) + loss

    def facts(self) -> dict[str, Any]:
        """Return all of it, JSON-safe."""
        worst = sorted(self.owners.items(), key=lambda one: (-one[1], one[0]))[: self.exposed]
        return {
            "counts": self.counts.tolist(),
            "sums": self.sums.tolist(),
            "heuristic": self.heuristic.tolist(),
            "gap": self.gap,
            "attributes": self.attributes.tolist(),
            "owners": len(self.owners),
            "exposed": [[user, loss] for user, loss in worst if loss > 0],
        }


def collect_curve(
    scratch: Scratch, ground: Ground, decider: Decider, trade_offs: Sequence[float], *, pairs: int
) -> list[dict[str, float]]:
    """Decide a sample of the pairs at other trade-offs, in tasks.

    Parameters
    ----------
    pairs : int
        Of the sample, about; all if there are no more.

    Returns
    -------
    list of dict
        Of each trade-off: pairs, and the sums of loss, utility, levels shown and levels there are.
    """
    slices, total = ground.pairs.slices, ground.pairs.n
    limit = np.uint64(2**64 - 1) if total <= pairs else np.uint64(int(pairs / total * 2**64))
    tasks = min(len(slices), 64)
    values = tuple(trade_offs)

    def decide(number: int) -> Iterator[pa.Table]:
        sums = np.zeros((len(values), 4))
        there = 0
        for piece in slices[number::tasks]:
            for some in ground.acquainted(piece, kept=lambda words: mixed(words) <= limit):
                there += len(some.u)
                for i, value in enumerate(values):
                    showing = decider.at(value).decide(some)
                    shown, levels = showing.shown.sum(dtype=np.int64), some.levels.sum(dtype=np.int64)
                    sums[i] += showing.loss.sum(), showing.utility.sum(), shown, levels
        yield report("", {"task": number, "pairs": there, "sums": sums.tolist()})

    parts = scratch.collect_parts(Batches.of_parts(scratch.spark, range(tasks), decide, PARTS))
    parts.sort(key=lambda part: int(part["task"]))
    sums = sum((np.array(part["sums"]) for part in parts), np.zeros((len(values), 4)))
    there = sum(int(part["pairs"]) for part in parts)
    names = ("loss", "utility", "shown", "levels")
    return [
        {"trade_off": value, "pairs": there, **dict(zip(names, row, strict=True))}
        for value, row in zip(values, sums.tolist(), strict=True)
    ]
