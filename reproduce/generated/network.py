"""A social network like that of F12 §7.7, SYNTHETIC: heavy-tailed friendships, and profiles of few to many attributes.

Fouad (2012; F12) takes 500,000 users with 1 to k attributes, categorical or numeric, over hierarchies of heights 1 to
10, and says nothing of how they are connected. What stands in for it:

* *Friendships.* Half of them are between people of one circle of :data:`CIRCLE` users, so that friends have friends in
  common; of the others both ends are drawn in proportion to ``1/sqrt(rank)``, which makes degrees fall with the third
  power, as in a network that grows by preferential attachment (Barabási and Albert 1999).
* *Profiles.* A user has m of the k attributes, m even over 1 to k. Each attribute has a height and a kind of its own. A
  value of height h is a word of h bits; a user shares the first bits with the prototype of his circle, as many as is
  drawn, so that friends are alike to every degree.

Everything is a function of the seed and of the number of a part, never of the order in which parts are made.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from privrisk_spark.kernels.arrays import LongArray
from privrisk_spark.storage.directories import make_plainly
from reproduce.generated.clustered import keyed_uniforms

CIRCLE = 40
DEGREE = 50
"""Friends of a user, on average, edges named again counted."""

PART = 2**16
"""Users, and edges, made at a time; part of the definition of the data."""


@dataclass(frozen=True)
class SocialNetwork:
    """A network of so many users.

    Attributes
    ----------
    users : int
        At least 2.
    attributes : int
        k.
    heights : tuple of int
        Least and greatest height of a hierarchy.
    """

    users: int
    attributes: int
    seed: int = 2026
    heights: tuple[int, int] = (1, 10)

    @cached_property
    def tops(self) -> LongArray:
        """Height of each attribute, shape (k,)."""
        low, high = self.heights
        return low + (self._uniforms("heights", self.attributes) * (high - low + 1)).astype(np.int64)

    @cached_property
    def numeric(self) -> npt.NDArray[np.bool_]:
        """Which attributes are numbers, shape (k,)."""
        chosen: npt.NDArray[np.bool_] = self._uniforms("kinds", self.attributes) < 0.5
        return chosen

    @property
    def n_edges(self) -> int:
        """Edges that are drawn."""
        return self.users * DEGREE // 2

    def columns(self) -> dict[str, dict[str, Any]]:
        """Return the columns of a policy for the profiles."""
        found: dict[str, dict[str, Any]] = {"user": {"role": "identifier"}}
        for j, top in enumerate(self.tops.tolist()):
            found[f"a{j}"] = {"role": "quasi-identifier", "hierarchy": self._hierarchy(j, top)}
        return found

    def _hierarchy(self, j: int, top: int) -> dict[str, Any]:
        if not self.numeric[j]:
            return {"mask": {"from": "right", "steps": top}}
        if top == 1:
            return {"flat": {"values": ["0", "1"]}}
        return {"intervals": {"widths": [2**i for i in range(1, top)], "domain": [0, 2**top - 1]}}

    def numbers(self) -> Iterator[LongArray]:
        """Yield the profiles as numbers below ``2**tops[j]``, a part at a time: int64 (n, k), -1 for no value."""
        for part in range(-(-self.users // PART)):
            users = np.arange(part * PART, min((part + 1) * PART, self.users))
            n, k = len(users), self.attributes
            first = (self._uniforms("first", n, part) * k).astype(np.int64)
            number = 1 + (self._uniforms("number", n, part) * k).astype(np.int64)
            found = np.empty((n, k), dtype=np.int64)
            for j, top in enumerate(self.tops.tolist()):
                circles, at = np.unique(users // CIRCLE, return_inverse=True)
                # A circle lies in one part or two; its prototype depends on its own number.
                law = keyed_uniforms(self.seed, f"network circle {j}", (int(circles[-1]) + 1,))[circles]
                prototype = (law * 2**top).astype(np.int64)[at]
                own = (self._uniforms(f"value {j}", n, part) * 2**top).astype(np.int64)
                left = (self._uniforms(f"shared {j}", n, part) * (top + 1)).astype(np.int64)
                value = (prototype >> left << left) | (own & ((1 << left) - 1))
                found[:, j] = np.where((j - first) % k < number, value, -1)
            yield found

    def profiles(self) -> Iterator[pa.Table]:
        """Yield the profiles, a table a part: ``user``, and ``a<j>`` as texts or whole numbers."""
        start = 0
        for numbers in self.numbers():
            columns: dict[str, pa.Array] = {"user": _ids(np.arange(start, start + len(numbers)))}
            for j, top in enumerate(self.tops.tolist()):
                columns[f"a{j}"] = self._values(j, top, np.maximum(numbers[:, j], 0), numbers[:, j] < 0)
            start += len(numbers)
            yield pa.table(columns)

    def _values(self, j: int, top: int, value: LongArray, absent: npt.NDArray[np.bool_]) -> pa.Array:
        if self.numeric[j]:
            return pa.array(value, pa.int32(), mask=absent)
        words = pa.array([format(i, f"0{top}b").translate(_LETTERS) for i in range(2**top)])
        return pa.DictionaryArray.from_arrays(pa.array(value.astype(np.int32), mask=absent), words).cast(pa.string())

    def friendships(self) -> Iterator[tuple[LongArray, LongArray]]:
        """Yield both ends of the edges as numbers of users, a part at a time; some are named again, none is a loop."""
        for part in range(-(-self.n_edges // PART)):
            n = min(PART, self.n_edges - part * PART)
            drawn = keyed_uniforms(self.seed, f"network edges {part}", (n, 3))
            near = drawn[:, 0] < 0.5
            anybody = (drawn[:, 1] * self.users).astype(np.int64)
            popular = (drawn[:, 1] ** 2 * self.users).astype(np.int64)
            u = np.where(near, anybody, popular)
            start = u // CIRCLE * CIRCLE
            size = np.minimum(CIRCLE, self.users - start)
            others = start + (drawn[:, 2] * size).astype(np.int64)
            v = np.where(near, others, (drawn[:, 2] ** 2 * self.users).astype(np.int64))
            yield u, np.where(u == v, (v + 1) % self.users, v)

    def edges(self) -> Iterator[pa.Table]:
        """Yield the edges, a table a part: ``u`` and ``v``, ids of users."""
        for u, v in self.friendships():
            yield pa.table({"u": _ids(u), "v": _ids(v)})

    def write(self, directory: Path) -> None:
        """Write ``profiles/`` and ``edges/``, Parquet files of some parts each, to a new directory."""
        for name, tables in (("profiles", self.profiles()), ("edges", self.edges())):
            make_plainly(directory / name)
            writer: pq.ParquetWriter | None = None
            for number, table in enumerate(tables):
                if number % 8 == 0:
                    if writer is not None:
                        writer.close()
                    writer = pq.ParquetWriter(directory / name / f"part-{number // 8:04d}.parquet", table.schema)
                assert writer is not None
                writer.write_table(table)
            if writer is not None:
                writer.close()

    def _uniforms(self, label: str, n: int, part: int = 0) -> npt.NDArray[np.float64]:
        return keyed_uniforms(self.seed, f"network {label} {part}", (n,))


_LETTERS = str.maketrans("01", "ab")


def _ids(users: LongArray) -> pa.Array:
    """Return the ids of users: their numbers, which say nothing of how many friends they have."""
    # An odd factor permutes the numbers below 2^32.
    mixed = (users.astype(np.uint64) * np.uint64(2654435761)) % np.uint64(2**32)
    return pa.array(np.char.add("u", mixed.astype("U10")))
