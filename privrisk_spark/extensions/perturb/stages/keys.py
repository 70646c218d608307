"""The keys of a masked release, one per use, and what they draw for a record."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from privrisk_spark.engine.fingerprints import record_blocks
from privrisk_spark.kernels.arrays import WordArray
from privrisk_spark.kernels.random import keyed


@dataclass(frozen=True, repr=False)
class MaskKeys:
    """Keys of one release; they never appear in a text.

    Attributes
    ----------
    bound : tuple of str
        Run id and snapshot: another table under the same run id gives unrelated draws.
    """

    release_key: bytes
    bound: tuple[str, ...]

    def of(self, label: str) -> bytes:
        """Derive the key of one use."""
        return keyed.derive_key(self.release_key, *self.bound, "mask", label)


def record_words(key: bytes, table: pa.Table) -> WordArray:
    """Draw two words for each record.

    Parameters
    ----------
    table : pa.Table
        With ``block``.

    Returns
    -------
    ndarray of uint64, shape (n, 2)
    """
    words: WordArray = keyed.prf(key, keyed.record_messages(record_blocks(table)))
    return words
