"""Counting without a driver: the plans ``shuffle`` and ``iceberg``, one groupby-sum per attribute.

Neither the table, nor its distinct records, nor the dictionary's distinct vectors need to fit one machine: rows are
expanded by a kernel inside Arrow UDFs and summed by the engine, cell by cell, and deciding looks its counts up by join
(:mod:`privrisk_spark.stages.counting.look_up`).

``shuffle`` counts every cell, or those that generalize a record. ``iceberg`` counts the *t*-frequent cells,
``{x : ρ(x) >= t}``; the proof that its pruning loses none of them is at :func:`frequent_cells`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses
from pyspark.sql import types as T  # noqa: N812 - the name every Spark program uses

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import Batches, Scratch, broadcast_small, in_chunks
from privrisk_spark.engine.counts import SpreadVectors
from privrisk_spark.errors import InternalError
from privrisk_spark.kernels.arrays import LongArray
from privrisk_spark.kernels.counting.cells import CellSpace

_ATTRIBUTE, _CLASS = "attribute", "class"
_FREQUENT = "frequent-"

Materialize = Callable[[DataFrame, str], DataFrame]
"""Writes a frame once under a name and reads it back; given by who may act."""


def words(space: CellSpace) -> list[str]:
    """Columns of a packed cell."""
    return [f"c{j}" for j in range(space.n_words)]


def long_fields(names: Sequence[str]) -> list[T.StructField]:
    """Columns of integers of 64 bits, none missing."""
    return [T.StructField(name, T.LongType(), False) for name in names]


def long_columns(table: pa.Table, names: Sequence[str]) -> list[LongArray]:
    """Such columns as arrays."""
    return [table.column(name).to_numpy().astype(np.int64, copy=False) for name in names]


# ----------------------------------------------------------------------------------------------- passes


class _Tally:
    """What is counted beside the words of a row: dictionary rows, or entities to be kept distinct."""

    def __init__(self, vectors: DataFrame, *, entities: bool) -> None:
        self.entities = entities
        self.name = schemas.ENTITY if entities else schemas.N_ROWS
        kind = vectors.schema[schemas.ENTITY].dataType if entities else T.LongType()
        self.field = T.StructField(self.name, kind, False)

    def read(self, table: pa.Table) -> tuple[LongArray, pa.Array | None]:
        """Rows as they are; entities as positions among the distinct ones of this chunk."""
        if not self.entities:
            return long_columns(table, [self.name])[0], None
        column = table.column(self.name).combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = column.chunk(0)
        if column.null_count:
            raise InternalError("counting: an entity is null.")
        encoded = pc.dictionary_encode(column)
        return encoded.indices.to_numpy().astype(np.int64), encoded.dictionary

    def arrow(self, tally: LongArray, dictionary: pa.Array | None) -> pa.Array:
        return pa.array(tally) if dictionary is None else pa.DictionaryArray.from_arrays(pa.array(tally), dictionary)

    def gathered(self, frame: DataFrame, keys: Sequence[str]) -> DataFrame:
        """Sum rows, or keep pairs distinct."""
        if self.entities:
            return frame.select(*keys, self.name).distinct()
        return frame.groupBy(*keys).agg(F.sum(self.name).alias(self.name))

    def counted(self, frame: DataFrame, keys: Sequence[str]) -> DataFrame:
        """``ρ`` of gathered rows."""
        if not self.entities:
            return frame
        return frame.groupBy(*keys).agg(F.count("*").alias(schemas.N_ROWS))


def _packed(space: CellSpace, table: pa.Table) -> list[LongArray]:
    names = schemas.dictionary_codes(len(space.order))
    codes = [long_columns(table, [name])[0].astype(np.int32) if name in table.column_names else None for name in names]
    return space.pack(codes, table.num_rows)


def _expanded(frame: DataFrame, space: CellSpace, tally: _Tally, *, slot: int | None, pack: bool) -> DataFrame:
    """Pack dictionary vectors, or expand one slot, or both at once; equal rows are gathered per chunk only."""
    names = words(space)

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in in_chunks(tables):
            counted, dictionary = tally.read(table)
            packed = _packed(space, table) if pack else long_columns(table, names)
            parts = (
                [(packed, counted)] if slot is None else space.expand(packed, counted, slot, distinct=tally.entities)
            )
            for columns, of_row in parts:
                arrays = [*[pa.array(column) for column in columns], tally.arrow(of_row, dictionary)]
                yield pa.table(arrays, names=[*names, tally.name])

    return Batches.of_frame(frame).then(step, T.StructType([*long_fields(names), tally.field])).frame()


def _prefix(space: CellSpace, slot: int, frame: str) -> list[Column]:
    """Words up to a slot, with the digits after it at 0."""
    packing = space.packing
    whole = [F.col(f"{frame}.c{j}") for j in range(packing.word[slot])]
    last = F.col(f"{frame}.c{packing.word[slot]}")
    stride = packing.stride[slot]
    return [*whole, last if stride == 1 else last - last % F.lit(stride)]


def _prefix_names(space: CellSpace, slot: int) -> list[str]:
    return words(space)[: space.packing.word[slot] + 1]


def _prefixes(frame: DataFrame, space: CellSpace, slot: int, *kept: str) -> DataFrame:
    """Rows as full words with nothing after a slot."""
    names = words(space)
    cut = [column.alias(name) for column, name in zip(_prefix(space, slot, "rows"), names, strict=False)]
    rest = [F.lit(0).cast("long").alias(name) for name in names[len(cut) :]]
    return frame.alias("rows").select(*cut, *rest, *[F.col(f"rows.{name}") for name in kept])


def _with_prefix_in(frame: DataFrame, prefixes: DataFrame, space: CellSpace, slot: int) -> DataFrame:
    """Keep the rows whose cell up to a slot is wanted."""
    left = _prefix(space, slot, "rows")
    right = [F.col(f"wanted.{name}") for name in _prefix_names(space, slot)]
    same = [a == b for a, b in zip(left, right, strict=True)]
    return frame.alias("rows").join(prefixes.alias("wanted"), same, "left_semi")


def count_cells(
    vectors: DataFrame,
    space: CellSpace,
    *,
    entities: bool = False,
    needed: DataFrame | None = None,
    prune: Collection[int] | None = None,
) -> DataFrame:
    """Return ``ρ`` of every cell with ``ρ > 0``: one expansion and one groupby per attribute.

    Parameters
    ----------
    vectors : DataFrame
        VECTORS of the dictionary: ``t<i>`` for each attribute it has; ``n_rows``, or ``entity``.
    entities : bool
        Count distinct entities instead of rows.
    needed : DataFrame, optional
        Holds the words of the cells wanted, repeated or not. Rows whose classes so far begin none of them are dropped
        before a shuffle; no wanted cell is lost. It is read once per slot pruned: give files, not a computation.
        Pointless where nearly every prefix is wanted, as when the table is its own dictionary.
    prune : collection of int, optional
        Slots (of ``space.passes``) after which to drop rows; by default after each.

    Returns
    -------
    DataFrame
        ``c<j>`` long, ``n_rows`` long; a cell that no dictionary row is consistent with has no row.
    """
    tally, names = _Tally(vectors, entities=entities), words(space)
    frame, passes = vectors, space.passes
    if not passes:
        frame = tally.gathered(_expanded(frame, space, tally, slot=None, pack=True), names)
    for slot in passes:
        frame = _expanded(frame, space, tally, slot=slot, pack=slot == passes[0])
        if needed is not None and (prune is None or slot in prune):
            wanted = _prefixes(needed, space, slot).select(*_prefix_names(space, slot)).distinct()
            frame = _with_prefix_in(frame, wanted, space, slot)
        frame = tally.gathered(frame, names)
    return tally.counted(frame, names)


# ---------------------------------------------------------------------------------------------- iceberg


def marginals(vectors: DataFrame, space: CellSpace, *, entities: bool = False) -> DataFrame:
    """Return ``ρ`` of the cells that disclose one attribute: ``attribute`` int, ``class`` int, ``n_rows`` long."""
    tally = _Tally(vectors, entities=entities)
    keys = [_ATTRIBUTE, _CLASS]
    fields = [T.StructField(name, T.IntegerType(), False) for name in keys]

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in in_chunks(tables):
            counted, dictionary = tally.read(table)
            for attribute, classes, of_class in space.marginals(
                _packed(space, table), counted, distinct=tally.entities
            ):
                column = pa.array(np.full(len(classes), attribute, dtype=np.int32))
                arrays = [column, pa.array(classes), tally.arrow(of_class, dictionary)]
                yield pa.table(arrays, names=[*keys, tally.name])

    frame = Batches.of_frame(vectors).then(step, T.StructType([*fields, tally.field])).frame()
    return tally.counted(tally.gathered(frame, keys), keys)


def collect_marginals(vectors: DataFrame, space: CellSpace, *, entities: bool = False) -> list[LongArray]:
    """Collect ``ρ`` of every class of each attribute alone: no more numbers than the hierarchies have nodes.

    Returns
    -------
    list of k ndarrays of int64, shape (n_classes_i,)
        Zeros for an attribute the dictionary lacks.
    """
    found = marginals(vectors, space, entities=entities).toArrow()
    attribute, classes, rows = (found.column(name).to_numpy() for name in (_ATTRIBUTE, _CLASS, schemas.N_ROWS))
    result = [np.zeros(relation.n_classes, dtype=np.int64) for relation in space.relations]
    for i, of_class in enumerate(result):
        of_class[classes[attribute == i]] = rows[attribute == i]
    return result


def collect_frequent(vectors: DataFrame, space: CellSpace, least: int, *, entities: bool = False) -> CellSpace:
    """Restrict the cells to classes that are frequent alone; collects no more numbers than the hierarchies have nodes.

    A class forgotten here is never expanded to, and dictionary codes that differ in forgotten classes only become one
    before the first shuffle, so that rare values cost nothing.

    Parameters
    ----------
    vectors, space, entities
        As in :func:`frequent_cells`.
    least : int
        ``t``.
    """
    found = marginals(vectors, space, entities=entities).where(F.col(schemas.N_ROWS) >= least).toArrow()
    attribute, classes = (found.column(name).to_numpy() for name in (_ATTRIBUTE, _CLASS))
    kept = [np.full(relation.n_classes, not relation.known) for relation in space.relations]
    for i, of_attribute in enumerate(kept):
        of_attribute[classes[attribute == i]] = True
    return space.restricted(kept)


def frequent_cells(
    vectors: DataFrame, space: CellSpace, least: int, *, materialize: Materialize, entities: bool = False
) -> DataFrame:
    """Return the *t*-frequent cells ``{x : ρ(x) >= t}``, pruned before each shuffle.

    Parameters
    ----------
    vectors : DataFrame
        VECTORS of the dictionary, as in :func:`count_cells`.
    space : CellSpace
        Best from :func:`collect_frequent`; restricted by :meth:`CellSpace.within` if only some schemes are wanted.
    least : int
        ``t``, at least 1.
    materialize : callable
        Called with ``rows-<slot>`` and ``frequent-<slot>``, frames used more than once or worth a broadcast.
    entities : bool
        Count distinct entities instead of rows.

    Returns
    -------
    DataFrame
        ``c<j>`` long, ``n_rows`` long (rows, or distinct entities).

    Raises
    ------
    ValueError
        If ``t < 1``, or if consistency is not monotone along a hierarchy, as under ``similar``.

    Notes
    -----
    Before attribute ``i`` is expanded, the rows hold ``(x_1,…,x_{i-1}, t_i,…,t_k)``. Forgetting ``t_{i+1},…,t_k`` and
    expanding ``t_i`` gives for every prefix ``p = (x_1,…,x_i)`` the sum ``σ(p)`` of its rows, on far fewer rows than
    the full expansion has. Prefixes with ``σ(p) < t`` are dropped before the full rows are shuffled.

    No frequent cell is lost. By induction the rows hold all dictionary rows of every prefix of a frequent cell: let
    ``x`` be frequent. ``C_i`` is 0 or 1, so leaving out the factors ``C_{i+1},…,C_k`` lowers no term of ``ρ(x)``, and
    ``σ(x_1,…,x_i) = Σ_t n[t] · C_1[x_1,t_1] ⋯ C_i[x_i,t_i] >= ρ(x) >= t``: the prefix stays, with all its rows. (The
    left side is ``ρ(x_1,…,x_i,⊥,…,⊥)``, so this is monotonicity along generalization.) Rows of a kept prefix are never
    dropped, so counts at the end are exact. Distinct entities: those of ``x`` are among those of its prefix.
    """
    if least < 1:
        raise ValueError(f"the least count must be at least 1. Got {least}.")
    if not space.monotone:
        raise ValueError(
            "iceberg counting needs consistency that is monotone along every hierarchy ('subsumes' or 'compatible'); "
            "under 'similar' a more general value may have fewer consistent rows and nothing may be pruned."
        )
    tally, names = _Tally(vectors, entities=entities), words(space)
    frame = tally.gathered(_expanded(vectors, space, tally, slot=None, pack=True), names)
    for slot in space.passes:
        last = slot == space.passes[-1]
        if not last:
            frame = materialize(frame, f"rows-{slot}")
            prefix = _prefix_names(space, slot)
            shorter = tally.gathered(_prefixes(frame, space, slot, tally.name), names)
            sums = tally.gathered(_expanded(shorter, space, tally, slot=slot, pack=False), prefix)
            enough = tally.counted(sums, prefix).where(F.col(schemas.N_ROWS) >= least).select(*prefix)
            frequent = materialize(enough, f"{_FREQUENT}{slot}")
        frame = _expanded(frame, space, tally, slot=slot, pack=False)
        frame = tally.gathered(frame if last else _with_prefix_in(frame, frequent, space, slot), names)
    return tally.counted(frame, names).where(F.col(schemas.N_ROWS) >= least)


def collect_frequent_cells(
    scratch: Scratch, spread: SpreadVectors, space: CellSpace, least: int
) -> tuple[CellSpace, DataFrame]:
    """Count the *t*-frequent cells of a dictionary that stays distributed, from end to end.

    Parameters
    ----------
    least : int
        ``t``, at least 1.

    Returns
    -------
    CellSpace
        Restricted to classes that are frequent alone.
    DataFrame
        As :func:`frequent_cells` returns it, from files.
    """

    def materialize(frame: DataFrame, name: str) -> DataFrame:
        held = scratch.write_frame(frame, name)
        return broadcast_small(held, held.count()) if name.startswith(_FREQUENT) else held

    space = collect_frequent(spread.vectors, space, least, entities=spread.entities)
    found = frequent_cells(spread.vectors, space, least, materialize=materialize, entities=spread.entities)
    return space, scratch.write_frame(found, "frequent")
