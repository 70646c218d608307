"""Users as numbers, and their profiles as arrays that tasks map.

A user's number is the place of the fingerprint of his id among all of them: it does not depend on how the rows are
dealt. Fingerprints are spread evenly, so that equal ranges of them are buckets of about as many users, which tasks fill
and no driver sees. Profiles, friends and pairs of a bucket lie in files of their own.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import PARTS, Batches, Scratch, in_chunks, read_ipc, report, together, write_ipc
from privrisk_spark.engine.decided import floats, integers
from privrisk_spark.engine.fingerprints import fingerprints
from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import LongArray, WordArray
from privrisk_spark.storage.part_files import map_array, write_array
from privrisk_spark.storage.parts import PartDirectory

USERS_OF_A_BUCKET, MOST_BUCKETS = 2**16, 256
"""Users whose files are made by one task, about, and buckets at most; does not change a result."""

MOST_USERS = 2**31 - 1

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Buckets:
    """Rows of users in the order of their numbers, a file a bucket.

    Attributes
    ----------
    offsets : ndarray of int64, shape (n_buckets + 1,)
        First number of each bucket, and the number of users.
    pieces : tuple of n_buckets ndarrays
        Rows of each.
    """

    offsets: LongArray
    pieces: tuple[Array, ...]

    def take(self, users: LongArray) -> Array:
        """Return the rows of users, in the order given."""
        if len(self.pieces) == 1:
            whole: Array = self.pieces[0][users]
            return whole
        of = np.searchsorted(self.offsets, users, side="right") - 1
        first = self.pieces[0]
        found = np.empty((len(users), *first.shape[1:]), dtype=first.dtype)
        for bucket in np.unique(of).tolist():
            here = of == bucket
            found[here] = self.pieces[bucket][users[here] - self.offsets[bucket]]
        return found


@dataclass(frozen=True)
class StoredUsers:
    """Users and their profiles in the scratch directory.

    Attributes
    ----------
    token : str
        Identity: a later one may lie in the same directory, and workers live on.
    names : tuple of n_buckets str
        The ids of a bucket; beside them are ``….words``, ``….codes`` and ``….weights``.
    counts : tuple of n_buckets int
        Users of each.
    numbers : bool
        Whether their ids are numbers, so that texts of equal numbers name one user.
    """

    directory: PartDirectory
    token: str
    names: tuple[str, ...]
    counts: tuple[int, ...]
    numbers: bool = False

    @property
    def n(self) -> int:
        """Number of users."""
        return sum(self.counts)

    @property
    def offsets(self) -> LongArray:
        """First number of each bucket, and the number of users; shape (n_buckets + 1,)."""
        return np.concatenate([[0], np.cumsum(self.counts, dtype=np.int64)])

    def load(self) -> Users:
        """Map the arrays, once per process."""
        return _loaded_users(self)


@dataclass(frozen=True, eq=False)
class Users:
    """Users and their profiles, in a task.

    Attributes
    ----------
    offsets : ndarray of int64, shape (n_buckets + 1,)
    words : tuple of ndarrays of uint64
        Fingerprints of each bucket, ascending.
    profiles : Buckets
        Leaf codes, int32 of shape (k,) a user; ``n_leaves`` where a value is missing.
    weights : Buckets
        Personal weights, float64 a user.
    texts : tuple of pa.Array
        Ids of each bucket.
    """

    offsets: LongArray
    words: tuple[WordArray, ...]
    profiles: Buckets
    weights: Buckets
    texts: tuple[pa.Array, ...]

    def numbers(self, words: WordArray) -> LongArray:
        """Return the user of each fingerprint; -1 for nobody's. Equal fingerprints are taken for equal ids."""
        found = np.full(len(words), -1, dtype=np.int64)
        of = np.searchsorted(first_words(len(self.words)), words, side="right") - 1
        order = np.argsort(of, kind="stable")
        cuts = np.searchsorted(of[order], np.arange(len(self.words) + 1))
        for bucket, here in enumerate(self.words):
            rows = order[cuts[bucket] : cuts[bucket + 1]]
            if not len(rows) or not len(here):
                continue
            place = np.minimum(np.searchsorted(here, words[rows]), len(here) - 1)
            found[rows] = np.where(here[place] == words[rows], place + self.offsets[bucket], -1)
        return found

    def ids(self, users: LongArray) -> pa.Array:
        """Return the ids of users, in the order given."""
        of = np.searchsorted(self.offsets, users, side="right") - 1
        order = np.argsort(of, kind="stable")
        cuts = np.searchsorted(of[order], np.arange(len(self.texts) + 1))
        taken = [
            texts.take(pa.array(users[order[cuts[b] : cuts[b + 1]]] - self.offsets[b]))
            for b, texts in enumerate(self.texts)
        ]
        back = np.empty(len(users), dtype=np.int64)
        back[order] = np.arange(len(users))
        return pa.concat_arrays(taken).take(pa.array(back)) if taken else pa.array([], pa.string())


@functools.lru_cache(maxsize=2)
def _loaded_users(stored: StoredUsers) -> Users:
    def arrays(kind: str) -> tuple[Array, ...]:
        return tuple(map_array(stored.directory, f"{name}.{kind}") for name in stored.names)

    texts = [read_ipc(stored.directory, name).column(0).combine_chunks() for name in stored.names]
    texts = [pa.concat_arrays(one.chunks) if isinstance(one, pa.ChunkedArray) else one for one in texts]
    offsets = stored.offsets
    return Users(
        offsets, arrays("words"), Buckets(offsets, arrays("codes")), Buckets(offsets, arrays("weights")), tuple(texts)
    )


def first_words(n_buckets: int) -> WordArray:
    """Return the least fingerprint of each bucket: equal ranges of words of 64 bits."""
    return np.array([-(-(b << 64) // n_buckets) for b in range(n_buckets)], dtype=np.uint64)


def pieces_of(first: WordArray, words: WordArray, bucket: int) -> slice:
    """Return where the words of a bucket are among ascending ones; the least word of each bucket is given."""
    begin = int(np.searchsorted(words, first[bucket]))
    end = int(np.searchsorted(words, first[bucket + 1])) if bucket + 1 < len(first) else len(words)
    return slice(begin, end)


def collect_users(scratch: Scratch, encoded: Batches, rows: int, *, k: int, n_weights: int) -> StoredUsers:
    """Number the users, and store their profiles where tasks map them.

    Parameters
    ----------
    encoded : Batches
        ENCODED, resolved; ids are there and differ.
    k : int
        Attributes.
    n_weights : int
        Columns of personal weights.

    Raises
    ------
    InputError
        If there are too many users, or two ids have one fingerprint.
    """
    if rows > MOST_USERS:
        raise InputError(f"table: at most {MOST_USERS:,} users are possible. Got {rows:,}.")
    first = first_words(max(1, min(MOST_BUCKETS, -(-rows // USERS_OF_A_BUCKET))))
    pieces, directory = scratch.directory("user-pieces"), scratch.directory("users")
    codes, weights = schemas.codes(k), schemas.weights(n_weights)

    def sort(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in in_chunks(tables):
            words = fingerprints(table.column(schemas.RECORD_ID))
            order = np.argsort(words)
            yield report(_write_users(pieces, words[order], table.take(pa.array(order)), codes, weights), {})

    names = [part["name"] for part in scratch.collect_parts(encoded.then(sort, PARTS))]

    def fill(bucket: int) -> Iterator[pa.Table]:
        found, held = [], []
        for name in names:
            words = map_array(pieces, f"{name}.words")
            here = pieces_of(first, words, bucket)
            found.append(words[here])
            columns = {schemas.RECORD_ID: read_ipc(pieces, name).column(0)[here]}
            for kind, of_kind in (("codes", codes), ("weights", weights)):
                array = map_array(pieces, f"{name}.{kind}")[here]
                columns |= {column: pa.chunked_array([pa.array(array[:, i])]) for i, column in enumerate(of_kind)}
            held.append(pa.table(columns))
        words, table = np.concatenate(found), together(held)
        order = np.argsort(words)
        words = words[order]
        name = _write_users(directory, words, table.take(pa.array(order)), codes, weights)
        again = int(np.count_nonzero(words[1:] == words[:-1]))
        yield report(name, {"bucket": bucket, "users": len(words), "again": again})

    parts = scratch.collect_parts(Batches.of_parts(scratch.spark, range(len(first)), fill, PARTS))
    if any(part["again"] for part in parts):
        raise InputError("table.record_id: two of the ids have the same 64-bit fingerprint; rename one of all users.")
    parts.sort(key=lambda part: int(part["bucket"]))
    return StoredUsers(
        directory, uuid4().hex, tuple(part["name"] for part in parts), tuple(part["users"] for part in parts)
    )


def _write_users(
    directory: PartDirectory, words: WordArray, table: pa.Table, codes: Sequence[str], weights: Sequence[str]
) -> str:
    name = write_ipc(table.select([schemas.RECORD_ID]), directory)
    write_array(words, directory, f"{name}.words")
    write_array(np.ascontiguousarray(integers(table, codes)), directory, f"{name}.codes")
    write_array(np.ascontiguousarray(floats(table, weights)), directory, f"{name}.weights")
    return name
