"""A recoding of a table as tasks find it: the levels of its distinct records, in arrays they map."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privrisk_spark.errors import InternalError
from privrisk_spark.kernels.arrays import BoolArray, IntArray, LevelArray
from privrisk_spark.kernels.numeric.distinct import distinct_rows
from privrisk_spark.kernels.recoding.listed import Keys, keys_of, places_of
from privrisk_spark.storage.part_files import map_array, write_array
from privrisk_spark.storage.parts import PartDirectory

_VECTORS, _LEVELS = "vectors.npy", "levels.npy"


@dataclass(frozen=True)
class StoredLevels:
    """Levels of distinct records, and which of them are suppressed.

    Attributes
    ----------
    directory : PartDirectory
        Of the arrays.
    scheme : tuple of k int or None
        Levels of every released record, under full-domain recoding; only suppressed records are listed then. None:
        every record is listed with its own.
    heights : tuple of k int
        Levels of a suppressed record, cut at the depths of its values.
    """

    directory: PartDirectory
    scheme: tuple[int, ...] | None
    heights: tuple[int, ...]

    @classmethod
    def of_scheme(
        cls, scheme: tuple[int, ...], suppressed: IntArray, heights: tuple[int, ...], directory: PartDirectory
    ) -> StoredLevels:
        """Keep one level vector for the table, and the distinct records that are suppressed.

        Parameters
        ----------
        scheme : tuple of k int
        suppressed : ndarray of int32, shape (m, k)
            Codes of distinct records, in any order.
        heights : tuple of k int
        directory : PartDirectory
            New and empty.
        """
        write_array(np.sort(keys_of(suppressed)), directory, _VECTORS)
        return cls(directory, scheme, heights)

    @classmethod
    def of_records(
        cls, vectors: IntArray, levels: LevelArray, heights: tuple[int, ...], directory: PartDirectory
    ) -> StoredLevels:
        """Keep the levels of every distinct record; a suppressed one has a level below 0.

        Parameters
        ----------
        vectors : ndarray of int32, shape (m, k)
        levels : ndarray of int8, shape (m, k)
        heights : tuple of k int
        directory : PartDirectory
            New and empty.
        """
        keys = keys_of(vectors)
        order = np.argsort(keys)
        write_array(keys[order], directory, _VECTORS)
        write_array(levels[order], directory, _LEVELS)
        return cls(directory, None, heights)

    def of(self, codes: IntArray) -> tuple[LevelArray, BoolArray]:
        """Look records up.

        Parameters
        ----------
        codes : ndarray of int32, shape (n, k)

        Returns
        -------
        levels : ndarray of int8, shape (n, k)
            Not yet cut at the depth of each value.
        suppressed : ndarray of bool, shape (n,)
        """
        # Looking up a vector takes longer than finding equal ones.
        first, member = distinct_rows(list(codes.T))
        levels, suppressed = self._of_distinct(codes[first])
        return levels[member], suppressed[member]

    def _of_distinct(self, codes: IntArray) -> tuple[LevelArray, BoolArray]:
        keys: Keys = map_array(self.directory, _VECTORS)
        place = places_of(keys, codes)
        if self.scheme is None and (place < 0).any():
            raise InternalError("A record is not among those the table was recoded by.")
        listed = np.array(self.scheme) if self.scheme is not None else map_array(self.directory, _LEVELS)[place]
        suppressed: BoolArray = place >= 0 if self.scheme is not None else listed.min(axis=1) < 0
        return np.where(suppressed[:, None], np.array(self.heights), listed).astype(np.int8), suppressed
