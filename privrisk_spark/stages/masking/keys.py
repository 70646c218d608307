"""The keys of a masked release, one per use, and what they draw for a record."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from privrisk_spark.engine import schemas
from privrisk_spark.kernels.arrays import WordArray
from privrisk_spark.kernels.random import keyed


@dataclass(frozen=True, repr=False)
class MaskKeys:
    """Keys of one release; they never appear in a text.

    Attributes
    ----------
    release_key : bytes
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
    key : bytes
    table : pa.Table
        With ``block``.

    Returns
    -------
    ndarray of uint64, shape (n, 2)
    """
    column = table.column(schemas.BLOCK).combine_chunks().cast(pa.binary(16))
    array = column if isinstance(column, pa.Array) else pa.concat_arrays(column.chunks)
    start = array.offset * 16
    raw = np.frombuffer(array.buffers()[1], dtype=np.uint8)[start : start + 16 * len(array)]
    words: WordArray = keyed.prf(key, keyed.record_messages(raw.reshape(-1, 16)))
    return words
