"""The keys of a private release, and the one row of each person they draw."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses
from pyspark.sql import types as T  # noqa: N812 - the name every Spark program uses

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import Batches, Scratch, in_chunks
from privrisk_spark.engine.fingerprints import record_blocks
from privrisk_spark.kernels.random import keyed


@dataclass(frozen=True, repr=False)
class ReleaseKeys:
    """Keys of one release, one per use; they never appear in a text.

    Attributes
    ----------
    noise, recode, keep, person, scheme : bytes
        Derived from the release key and bound to run id, snapshot and mechanism.
    """

    noise: bytes
    recode: bytes
    keep: bytes
    person: bytes
    scheme: bytes

    @classmethod
    def derive(cls, release_key: bytes, *, run_id: str, snapshot: str, mechanism: str) -> ReleaseKeys:
        """Derive independent keys; another snapshot or mechanism under the same run id gives unrelated draws."""
        bound = (run_id, snapshot, mechanism)
        return cls(
            *(keyed.derive_key(release_key, *bound, label) for label in ("noise", "recode", "keep", "person", "scheme"))
        )


def collect_one_row_each(scratch: Scratch, encoded: Batches, keys: ReleaseKeys) -> Batches:
    """Draw one row of each person, once, and hold it; rows that name no persons are persons, and are returned as given.

    Parameters
    ----------
    encoded : Batches
        ENCODED, with ``entity`` if a person may have several rows.
    """
    if schemas.ENTITY not in encoded.schema.fieldNames():
        return encoded
    return Batches.of_frame(scratch.write_frame(one_row_each(encoded, keys), "one-row-each"))


def one_row_each(encoded: Batches, keys: ReleaseKeys) -> DataFrame:
    """Return ENCODED with one row of each person, without ``entity``.

    It is the row with the smallest keyed function of its identity, hence one of the person's rows at random, and the
    same one however the rows are spread. A row that names no person is a person by itself: to refuse the table, or
    to drop the row, would make what is published depend on it in a way no proof covers.

    Which row of a person is drawn depends on that person's rows alone. So a person more or less, with however many
    rows, is a row more or less of what is returned, and the guarantee for a row becomes one for a person.

    Parameters
    ----------
    encoded : Batches
        With ``block`` and ``entity``.
    """
    key, kept = keys.person, [name for name in encoded.schema.fieldNames() if name != schemas.ENTITY]

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in in_chunks(tables):
            blocks = record_blocks(table)
            words = keyed.prf(key, keyed.record_messages(blocks))
            # The identity decides between equal draws, which happen with probability 2^-128.
            draws = np.hstack([np.ascontiguousarray(words.astype("<u8")).view(np.uint8).reshape(-1, 16), blocks])
            column = pa.FixedSizeBinaryArray.from_buffers(
                pa.binary(32), len(draws), [None, pa.py_buffer(draws.tobytes())]
            )
            yield table.append_column(_DRAW, column.cast(pa.binary()))

    schema = T.StructType([*encoded.schema.fields, T.StructField(_DRAW, T.BinaryType())])
    rows = encoded.then(step, schema).frame()
    alone = F.when(F.col(schemas.ENTITY).isNull(), F.col(schemas.BLOCK)).alias("alone")
    drawn = F.min_by(F.struct(*kept), _DRAW).alias("row")
    return rows.groupBy(schemas.ENTITY, alone).agg(drawn).select("row.*")


_DRAW = "draw"
