"""Records whose values have the same depths and the same history, and so the same lattice, by their utilities."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from privrisk_spark.kernels.arrays import FloatArray, IntArray, LevelArray, LongArray
from privrisk_spark.kernels.lattice.lattice import Lattice
from privrisk_spark.kernels.numeric.distinct import distinct_rows

if TYPE_CHECKING:
    from privrisk_spark.kernels.disclosure.disclosure import Disclosure


@dataclass(frozen=True, eq=False)
class LatticeBlock:
    """Records of one lattice, in the order of their profiles.

    Attributes
    ----------
    rows : ndarray of int64, shape (n,)
        Their numbers among all records.
    lattice : Lattice
        Up to the depths, or to what is out already: nothing above it need be looked at.
    profile : ndarray of int64, shape (n,)
        Profile of each, ascending.
    chains : tuple of k ndarrays of float64, shape (h_i + 1, n_profiles)
        Utility of each level and profile.
    depths : tuple of k int
        Of their values.
    """

    rows: LongArray
    lattice: Lattice
    profile: LongArray
    chains: tuple[FloatArray, ...]
    depths: tuple[int, ...]

    @cached_property
    def starts(self) -> LongArray:
        """First record of each profile, and the number of records."""
        return np.searchsorted(self.profile, np.arange(self.chains[0].shape[1] + 1))

    def only(self, rows: LongArray) -> LatticeBlock:
        """Some of the records, ascending."""
        return LatticeBlock(self.rows[rows], self.lattice, self.profile[rows], self.chains, self.depths)

    def utility(self, levels: Sequence[int], profiles: LongArray | slice) -> FloatArray:
        """Utility at a level vector; summed as :meth:`Lattice.utility` sums."""
        total = np.zeros(1)
        for chain, level in zip(self.chains, levels, strict=True):
            total = total + chain[level][profiles]
        return total

    def members(self, profiles: LongArray) -> tuple[LongArray | slice, LongArray]:
        """Records of some profiles, ascending, and how many each has; a slice if they are all the records."""
        size = self.starts[profiles + 1] - self.starts[profiles]
        total = int(size.sum())
        if total == len(self.rows):
            return slice(None), size
        skipped = self.starts[profiles] - (np.cumsum(size) - size)
        return np.arange(total) + np.repeat(skipped, size), size


def lattice_blocks(
    disclosure: Disclosure, codes: IntArray, history: LevelArray | None = None
) -> Iterator[LatticeBlock]:
    """Divide records into blocks of one lattice, and of one history, each.

    Parameters
    ----------
    codes : ndarray of int32, shape (n, k)
    history : ndarray of int8, shape (n, k), optional
    """
    k = codes.shape[1]
    out = [] if history is None else list(history.T)
    of_profile, profile = distinct_rows([*(disclosure.profiles[i].take(codes[:, i]) for i in range(k)), *out])
    one = codes[of_profile]
    depths = [disclosure.code_depth[i].take(one[:, i]) for i in range(k)]
    of_shape, shape = distinct_rows([*depths, *(column[of_profile] for column in out)])
    for s, example in enumerate(of_shape.tolist()):
        of_values = tuple(int(depth[example]) for depth in depths)
        levels = of_values if history is None else tuple(history[of_profile[example]].tolist())
        lattice = Lattice(levels)
        profiles = np.flatnonzero(shape == s)
        number = np.full(len(of_profile), len(profiles))
        number[profiles] = np.arange(len(profiles))
        local = number[profile]
        order = np.argsort(local, kind="stable")[: np.count_nonzero(local < len(profiles))]
        chains = tuple(
            np.ascontiguousarray(utility[ancestor[one[profiles, i], : height + 1]].T)
            for i, (utility, ancestor, height) in enumerate(
                zip(disclosure.utility, disclosure.ancestor, lattice.heights, strict=True)
            )
        )
        yield LatticeBlock(order, lattice, local[order], chains, of_values)
