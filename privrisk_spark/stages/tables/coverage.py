"""Whether hierarchies hold the values of a table: counted in tasks, of which only distinct strangers are shuffled."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses
from pyspark.sql import types as T  # noqa: N812

from privrisk_spark.engine.row_groups import Wanted
from privrisk_spark.engine.sources import as_texts, dictionary_of, scan
from privrisk_spark.engine.value_codes import ValueCodes
from privrisk_spark.policy.dictionaries import Table
from privrisk_spark.results.validation import Coverage

_STRANGERS = T.StructType(
    [
        T.StructField("column", T.IntegerType(), nullable=False),
        T.StructField("value", T.StringType()),
        T.StructField("rows", T.LongType(), nullable=False),
    ]
)
_STRANGERS_ARROW = pa.schema([("column", pa.int32()), ("value", pa.string()), ("rows", pa.int64())])
_ALL = -1
"""Number of the column that stands for all rows of the table."""


@dataclass(frozen=True, eq=False)
class Held:
    """The values of a column that are known.

    Attributes
    ----------
    column : str
    known : ValueCodes
    """

    column: str
    known: ValueCodes


def strangers(table: Table | None, frame: DataFrame, held: Mapping[str, Held]) -> DataFrame:
    """Return the values that are not known: number of the column, value, rows of it.

    Parameters
    ----------
    table : Table or None
        Of the policy; None for a frame that a caller gave.
    frame : DataFrame
        The table as Spark opened it.
    held : mapping of name to Held

    Returns
    -------
    DataFrame
        ``column`` (position in `held`), ``value`` and ``rows``. A value that is null stands for missing ones; column
        −1 has the rows of the whole table. A value may stand in several rows, one a task.
    """
    wanted = [Wanted(f"v{i}", one.column, "text") for i, one in enumerate(held.values())]
    known = [one.known for one in held.values()]

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        rows = 0
        seen: list[list[pa.Table]] = [[] for _ in known]
        for chunk in tables:
            rows += chunk.num_rows
            for i, of in enumerate(known):
                seen[i].append(_unknown_in(chunk.column(f"v{i}"), of))
        yield _rows(_ALL, pa.array([None], pa.string()), pa.array([rows], pa.int64()))
        for i, pieces in enumerate(seen):
            if pieces:  # of one task, each value once
                once = pa.concat_tables(pieces).group_by("value").aggregate([("rows", "sum")]).combine_chunks()
                yield _rows(i, once.column("value"), once.column("rows_sum"))

    return scan(table, frame, wanted).then(step, _STRANGERS).frame()


def _unknown_in(column: pa.ChunkedArray, known: ValueCodes) -> pa.Table:
    """Values of a chunk that are not known, and null for missing ones, with their rows."""
    distinct, place = dictionary_of(column)
    texts = as_texts(distinct).cast(pa.string())
    unknown = pc.is_null(known.find(distinct)).to_numpy(zero_copy_only=False)
    # One more entry, for missing values.
    positions = place.fill_null(len(texts)).to_numpy(zero_copy_only=False)
    rows = np.bincount(positions, minlength=len(texts) + 1)
    values = pa.concat_arrays([texts, pa.array([None], pa.string())])
    kept = pa.array(np.append(unknown, True) & (rows > 0))
    return pa.table({"value": values.filter(kept), "rows": pa.array(rows, pa.int64()).filter(kept)})


def _rows(column: int, values: pa.ChunkedArray | pa.Array, rows: pa.ChunkedArray | pa.Array) -> pa.Table:
    number = pa.array(np.full(len(values), column, dtype=np.int32))
    return pa.table({"column": number, "value": values, "rows": rows}, schema=_STRANGERS_ARROW)


def collect_coverage(table: Table | None, frame: DataFrame, held: Mapping[str, Held]) -> dict[str, Coverage]:
    """Count, for each column, the rows without a value and with one that is not known.

    Parameters
    ----------
    table, frame, held
        As :func:`strangers` takes them.

    Returns
    -------
    dict of name to Coverage
    """
    if not held:
        return {}
    once = strangers(table, frame, held).groupBy("column", "value").agg(F.sum("rows").alias("rows"))
    is_missing = F.col("value").isNull()
    told = (
        once.groupBy("column")
        .agg(
            F.coalesce(F.sum(F.when(is_missing, F.col("rows"))), F.lit(0)).alias("missing"),
            F.coalesce(F.sum(F.when(~is_missing, F.col("rows"))), F.lit(0)).alias("outside_rows"),
            F.count_if(~is_missing).alias("outside_values"),
        )
        .toArrow()
        .to_pylist()
    )
    found = {row["column"]: row for row in told}
    rows = found[_ALL]["missing"] if _ALL in found else 0
    nothing = {"missing": 0, "outside_rows": 0, "outside_values": 0}
    return {name: Coverage(rows, *(int(found.get(i, nothing)[key]) for key in nothing)) for i, name in enumerate(held)}


def collect_strangers_of(
    table: Table | None, frame: DataFrame, name: str, one: Held, *, most: int
) -> list[tuple[str, int]]:
    """Collect values of a column that are not known, the most frequent first; equals in the order of their texts.

    They are values of records: who calls this answers for where they go.

    Parameters
    ----------
    table, frame
        As :func:`strangers` takes them.
    name : str
    one : Held
    most : int
        At most so many.

    Returns
    -------
    list of (str, int)
        Value and rows.
    """
    found = (
        strangers(table, frame, {name: one})
        .where((F.col("column") == 0) & F.col("value").isNotNull())
        .groupBy("value")
        .agg(F.sum("rows").alias("rows"))
        .orderBy(F.col("rows").desc(), "value")
        .limit(most)
        .toArrow()
    )
    return list(zip(found.column("value").to_pylist(), found.column("rows").to_pylist(), strict=True))
