"""Functions of users as integers, up to 64 side by side: a step of a walk takes the whole block of them at once.

A step of a block costs the same whether 64 of its columns are wanted or one, as it reads the rows of all friends. So a
block is stepped for many alone: where a few columns are left after the others have ended, or are to be read in another
number of bits than these, they are taken out, and each is stepped by itself from then on. A column by itself fits the
caches, and takes a sixth of the time of a block. What is done to its codes is the same to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privrisk_spark.extensions.network.kernels.graph import Graph
from privrisk_spark.extensions.network.kernels.walking import (
    NARROW_TOP,
    TOP,
    WIDTH,
    Codes,
    Sums,
    narrow,
    narrow_codes,
    nothing_seen,
    step,
    step_alone,
    turned,
    wide_codes,
)
from privrisk_spark.kernels.arrays import BoolArray, ByteArray, FloatArray

HALF = 0.5001
"""What a code is off by, in units of its scale, with room for the arithmetic in float64 around it."""

FEW = 4
"""Columns that are stepped one by one rather than with their block, at most."""

_UP = 2.0**-52


@dataclass(frozen=True, eq=False)
class Room:
    """Room for the codes of a block, before a step, after it, and in 8 bits; used again by the next block."""

    old: Codes
    new: Codes
    narrowed: ByteArray

    @classmethod
    def of(cls, n: int) -> Room:
        """Room for n users."""
        return cls(wide_codes(n), wide_codes(n), narrow_codes(n))

    @property
    def rows(self) -> Codes:
        """uint16 (WIDTH, n): room for codes, a row a function, until the first step."""
        return self.new.reshape(WIDTH, -1)


class Columns:
    """Functions as codes: after ``at`` steps a value is ``low + scale code``, off by at most ``off``.

    Parameters
    ----------
    own : ndarray of float64, shape (n, 4)
        Of :mod:`.walking`.
    mass : float
        Sum of the measure.
    """

    def __init__(self, graph: Graph, own: FloatArray, mass: float, room: Room) -> None:
        self._graph, self._own, self._mass = graph, own, mass
        self._old, self._new, self._narrowed = room.old, room.new, room.narrowed
        self.rows = room.rows
        self._alone: dict[int, Codes] = {}
        self.at, self.off = np.zeros(WIDTH, np.int64), np.zeros(WIDTH)
        self.low, self.scale = np.zeros(WIDTH), np.zeros(WIDTH)
        self.centre = np.zeros(WIDTH)
        self._seen = nothing_seen()
        self.norm = np.zeros(WIDTH)
        """At least the norm of the coded values less the centre, where the measure of all users together is 1."""

    def put(self, c: int, *, at: int, bottom: float, unit: float, norm: float, centre: float) -> None:
        """Note how the codes of a function are read that were written to its row, between 0 and :data:`TOP`."""
        self.at[c], self.low[c], self.scale[c], self.off[c] = at, bottom, unit, HALF * unit
        self._seen.least[c], self._seen.most[c] = 0, TOP
        self.norm[c], self.centre[c] = norm + HALF * unit, centre

    def begin(self) -> None:
        """Turn the rows, when all are written, into columns."""
        turned(self.rows, self._old)

    def range(self, c: int) -> tuple[float, float]:
        """Least and greatest coded value of a function."""
        low, scale = float(self.low[c]), float(self.scale[c])
        return low + scale * float(self._seen.least[c]), low + scale * float(self._seen.most[c])

    def reading(self, c: int) -> tuple[float, float]:
        """What a code of 0 means, and by how much more each next one."""
        return float(self.low[c]), float(self.scale[c])

    def codes(self, c: int) -> Codes:
        """uint16 (n,): codes of a function."""
        return self._alone.get(c, self._old[:, c])

    def narrowed_off(self) -> FloatArray:
        """float64 (WIDTH,): what the values would be off by after they have been read in 8 bits."""
        return self.off + HALF * self.scale * self._width / NARROW_TOP

    @property
    def _width(self) -> FloatArray:
        found: FloatArray = np.maximum(self._seen.most - self._seen.least.astype(np.float64), 1.0)
        return found

    def step(self, opened: Sequence[int], affordable: BoolArray) -> None:
        """One step of some functions.

        Parameters
        ----------
        affordable : ndarray of bool, shape (WIDTH,)
            Which of them are read in 8 bits.
        """
        seen = self._seen
        shift, width = seen.least.astype(np.float64), self._width
        in_bits = [[c for c in opened if affordable[c]], [c for c in opened if not affordable[c]]]
        self.off[in_bits[0]] = self.narrowed_off()[in_bits[0]]
        blocks = [self._in_block(some) for some in in_bits]
        if blocks[0]:
            narrow(self._old, shift, NARROW_TOP / width, self._narrowed)
            self._step_block(blocks[0], shift, width, 8, self._new)
        if blocks[1]:
            # Each function is found by itself: that others are read in 8 bits does not change it.
            into = wide_codes(self._graph.n) if blocks[0] else self._new
            self._step_block(blocks[1], shift, width, 16, into)
            if blocks[0]:
                self._new[:, blocks[1]] = into[:, blocks[1]]
        for some, bits in zip(in_bits, (8, 16), strict=True):
            for c in self._alone.keys() & set(some):
                self._step_alone(c, float(shift[c]), float(width[c]), bits)
        self._old, self._new = self._new, self._old
        self.low += self.scale * shift
        self.scale *= width / TOP
        self.off += HALF * self.scale
        for c in opened:
            self.at[c] += 1
            self.norm[c] = self._norm_of(c)

    def _in_block(self, some: Sequence[int]) -> list[int]:
        """Those of some columns that are stepped with their block; if these are few, they are taken out of it."""
        block = [c for c in some if c not in self._alone]
        if len(block) > FEW:
            return block
        self._alone.update({c: self._old[:, c].copy() for c in block})
        return []

    def _step_block(self, block: list[int], shift: FloatArray, width: FloatArray, bits: int, into: Codes) -> None:
        graph, found = self._graph, nothing_seen()
        sums: Sums
        if bits == 8:
            sums, less, factor = np.zeros(0, np.uint16), np.zeros(WIDTH), np.full(WIDTH, TOP / NARROW_TOP)
            step(graph.indptr, graph.indices, self._own, self._narrowed, into, sums, less, factor, found)
        else:
            sums = np.zeros(0, np.uint32)
            step(graph.indptr, graph.indices, self._own, self._old, into, sums, shift, TOP / width, found)
        seen = self._seen
        seen.least[block], seen.most[block] = found.least[block], found.most[block]
        seen.first[block], seen.second[block] = found.first[block], found.second[block]

    def _step_alone(self, c: int, shift: float, width: float, bits: int) -> None:
        graph, old, new, found = self._graph, self._alone[c], np.empty(self._graph.n, np.uint16), np.zeros(4)
        if bits == 8:
            scaled = (old.astype(np.float64) - shift) * (NARROW_TOP / width) + 0.5
            few = np.clip(scaled, 0.0, 255.0).astype(np.uint8)
            step_alone(graph.indptr, graph.indices, self._own, few, new, 0.0, TOP / NARROW_TOP, found)
        else:
            step_alone(graph.indptr, graph.indices, self._own, old, new, shift, TOP / width, found)
        self._alone[c] = new
        seen = self._seen
        seen.least[c], seen.most[c], seen.first[c], seen.second[c] = found

    def _norm_of(self, c: int) -> float:
        low, scale = self.low[c] - self.centre[c], self.scale[c]
        first, second = self._seen.first[c], self._seen.second[c]
        parts = scale**2 * second / self._mass, 2 * scale * low * first / self._mass, low**2
        rounding = (self._graph.n + 64) * _UP * sum(abs(part) for part in parts)
        return math.sqrt(max(sum(parts), 0.0) + rounding)
