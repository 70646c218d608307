"""Rows whose id is missing or another row's too, told apart: a run that must not refuse them gives each its own draws.

Under differential privacy a missing or repeated id must not decide how a run ends, as one row decides whether there is
one. Every such row is known instead by its content and its ordinal among identical rows, as rows without ids are
(:func:`privrisk_spark.tables.encode.encode`): identical rows are exchangeable, and which ids are repeated
depends on the table alone, never on a draw. So with one row more or less every row still has draws of its own, and the
law of the release is the one that is proved. Rows with an id of their own keep their draws.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import Batches
from privrisk_spark.tables.record_ids import BLOCK_BYTES, content

_CONTENT, _SAME_ID, _ORDINAL = "content", "same_id", "ordinal"
_DOMAIN = b"repeated id"
"""Another function than the one of ids, so that no id can be made up whose row shares the draws of such a row."""


def told_apart(encoded: Batches) -> DataFrame:
    """Return ENCODED with a ``block`` of its own for every row whose id is missing, or another row's too.

    Parameters
    ----------
    encoded : Batches
        With ``block``.
    """
    rows = encoded.frame()
    of_row = content(rows.drop(schemas.BLOCK)).alias(_CONTENT)
    # Rows without an id are no group of their own: all of a table may be such.
    alike = F.coalesce(F.col(schemas.RECORD_ID), F.col(_CONTENT))
    identical = Window.partitionBy(_CONTENT).orderBy(_CONTENT)
    numbered = (
        rows.select("*", of_row)
        .withColumn(_SAME_ID, F.count(F.lit(1)).over(Window.partitionBy(alike)))
        .withColumn(_ORDINAL, F.row_number().over(identical))
    )

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in tables:
            missing = table.column(schemas.RECORD_ID).is_null().to_pylist()
            same, ordinals, contents, blocks = (
                table.column(name).to_pylist() for name in (_SAME_ID, _ORDINAL, _CONTENT, schemas.BLOCK)
            )
            own = [
                _block(contents[i], ordinals[i]) if missing[i] or same[i] > 1 else blocks[i]
                for i in range(table.num_rows)
            ]
            at = table.column_names.index(schemas.BLOCK)
            yield table.set_column(at, schemas.BLOCK, pa.array(own, pa.binary())).select(names)

    names = encoded.schema.fieldNames()
    return Batches.of_frame(numbered).then(step, encoded.schema).frame()


def _block(row: str, ordinal: int) -> bytes:
    return blake2b(f"{row}-{ordinal}".encode(), digest_size=BLOCK_BYTES, person=_DOMAIN).digest()
