"""What the distinct records of a table hold, as the driver collects it: sensitive values, persons, who holds which."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses
from pyspark.sql import types as T  # noqa: N812

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import Batches, decoded, grouped, in_chunks
from privrisk_spark.engine.decided import integers
from privrisk_spark.engine.number_texts import dictionary_of
from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import LongArray
from privrisk_spark.kernels.classes.diversity import SensitiveRuns
from privrisk_spark.kernels.numeric.distinct import distinct_rows
from privrisk_spark.kernels.recoding.holders import Holders
from privrisk_spark.kernels.recoding.listed import Keys, places_of
from privrisk_spark.kernels.recoding.persons import Persons
from privrisk_spark.stages.deciding.decide import value_numbers


def refuse_no_order(encoded: Batches, released: str, column: str) -> None:
    """Refuse a sensitive column whose values cannot be put in order.

    Parameters
    ----------
    released : str
        Its column ``r<j>``.

    Raises
    ------
    InputError
    """
    if isinstance(encoded.schema[released].dataType, T.ArrayType | T.MapType | T.StructType | T.BinaryType):
        kind = encoded.schema[released].dataType.simpleString()
        raise InputError(f"guarantee.also: column '{column}' is of type {kind}, whose values have no order here.")


def collect_values(
    encoded: Batches, names: Sequence[str], released: str, keys: Keys, *, most: int
) -> tuple[SensitiveRuns, pa.Array, LongArray]:
    """Collect how often each value of a sensitive column is in each distinct record.

    Parameters
    ----------
    names : sequence of str
        Columns of codes.
    released : str
        Of the values.
    keys : ndarray of texts, shape (m,)
        Of the distinct records.
    most : int
        Rows that the driver may hold.

    Returns
    -------
    runs : SensitiveRuns
        Of the distinct records.
    values : pa.Array
        In their order; a missing one is the last.
    total : ndarray of int64, shape (v,)
        Rows with each.

    Raises
    ------
    InputError
        If there is more than the driver may hold.
    """
    counted = (
        _once(encoded, [*names, released]).groupBy(*names, released).agg(F.sum(schemas.N_ROWS).alias(schemas.N_ROWS))
    )
    found = _collect_few(counted, most)
    values, code = _in_order(found.column(released))
    owner = places_of(keys, integers(found, names))
    rows = found.column(schemas.N_ROWS).to_numpy().astype(np.int64)
    total = np.zeros(len(values), dtype=np.int64)
    np.add.at(total, code, rows)
    return SensitiveRuns.of_entries(owner, code, rows, len(keys)), values, total


def collect_persons(encoded: Batches, names: Sequence[str], keys: Keys, *, most: int) -> Persons:
    """Collect how many persons are in each distinct record alone, and who is in several; errors as above.

    Parameters
    ----------
    names : sequence of str
        Columns of codes.
    keys : ndarray of texts, shape (m,)
        Of the distinct records.
    most : int
        Rows that the driver may hold.
    """
    found = _collect_whose(encoded, names, [], most)
    owner = places_of(keys, integers(found, names))
    return _beside(found, owner, _who(found), len(keys))


def collect_holders(
    encoded: Batches, names: Sequence[str], released: str, keys: Keys, persons: Persons, *, most: int
) -> tuple[Holders, pa.Array, LongArray]:
    """Collect how many persons hold each value of a sensitive column in one distinct record alone, and who in several.

    Parameters
    ----------
    encoded, names, released, keys, most
        As of :func:`collect_values`.
    persons : Persons
        Of the distinct records.

    Returns
    -------
    holders : Holders
        Of the distinct records.
    values : pa.Array
        As of :func:`collect_values`.
    total : ndarray of int64, shape (v,)
        Persons who hold each.

    Raises
    ------
    InputError
        If there is more than the driver may hold.
    """
    found = _collect_whose(encoded, names, [released], most)
    values, code = _in_order(found.column(released))
    of_known = None
    if values.null_count:
        known = _collect_whose(encoded, names, [], most, known=released)
        of_known = _beside(known, places_of(keys, integers(known, names)), _who(known), len(keys))
    owner, who = places_of(keys, integers(found, names)), _who(found)
    first, cell = distinct_rows([owner, code])
    of_cells = _beside(found, cell, who, len(first))
    several, _ = distinct_rows([code, who])
    total = np.zeros(len(values), dtype=np.int64)
    np.add.at(total, code[who < 0], found.column(schemas.N_ROWS).to_numpy()[who < 0])
    np.add.at(total, code[several[who[several] >= 0]], 1)
    return Holders.beside(owner[first], code[first], of_cells, persons, of_known), values, total


def _collect_whose(
    encoded: Batches, names: Sequence[str], more: Sequence[str], most: int, *, known: str | None = None
) -> pa.Table:
    """Collect distinct records, told apart by ``more`` too, with their persons.

    If ``known`` is given, rows in which this column is missing are left out.

    Persons who are in one of them alone are counted, in a row where ``who`` is missing; of the others there is a row
    each, wherever they are. A person is counted anew with each value of ``more``.
    """
    columns = [*names, *more, *([] if known is None else [known]), schemas.ENTITY]
    rows = _once(encoded, columns)
    rows = rows if known is None else rows.where(F.col(known).isNotNull())
    pairs = rows.select(*names, *more, schemas.ENTITY).distinct()
    several: Column = F.count("*").over(Window.partitionBy(schemas.ENTITY, *more)) > 1
    told = pairs.select(*names, *more, F.when(several, F.col(schemas.ENTITY)).alias("who"))
    return _collect_few(told.groupBy(*names, *more, "who").agg(F.count("*").alias(schemas.N_ROWS)), most)


def _who(found: pa.Table) -> LongArray:
    """Numbers of the persons of rows that are of one person each; -1 for the others."""
    _, person = dictionary_of(found.column("who"))
    number: LongArray = person.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return number


def _beside(found: pa.Table, owner: LongArray, who: LongArray, n: int) -> Persons:
    """Persons of the owners of rows."""
    alone = np.zeros(n, dtype=np.int64)
    np.add.at(alone, owner[who < 0], found.column(schemas.N_ROWS).to_numpy()[who < 0])
    return Persons.beside(alone, owner[who >= 0], who[who >= 0])


def _in_order(column: pa.ChunkedArray) -> tuple[pa.Array, LongArray]:
    """Distinct values of a column in their order, the missing one last, and the place of each."""
    distinct = pc.unique(column)
    values = distinct.take(pc.sort_indices(distinct))
    return values, pc.index_in(column, value_set=values).to_numpy().astype(np.int64)


def _once(encoded: Batches, names: Sequence[str]) -> DataFrame:
    """Rows of the table by some of their columns, each once a chunk, with their number."""

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in in_chunks(tables):
            first, member = grouped([value_numbers(table.column(name)) for name in names])
            times = pa.array(np.bincount(member, minlength=len(first)).astype(np.int64))
            yield decoded(table.select(names).take(pa.array(first))).append_column(schemas.N_ROWS, times)

    fields = [encoded.schema[name] for name in names]
    return encoded.then(step, T.StructType([*fields, T.StructField(schemas.N_ROWS, T.LongType())])).frame()


def _collect_few(frame: DataFrame, most: int) -> pa.Table:
    """Collect what a scheme is found by, as far as the driver may hold it."""
    table = frame.limit(most + 1).toArrow()
    if table.num_rows > most:
        raise InputError(
            f"counting.sorted_vectors: there are more than {most:,} distinct records with their sensitive values or "
            "persons; raise it if the driver has the memory, or use coarser hierarchies."
        )
    return table
