"""Counting without a driver: the plans ``shuffle`` and ``iceberg``, one groupby-sum per attribute.

Neither the table, nor its distinct records, nor the dictionary's distinct vectors need to fit one machine: rows are
expanded by a kernel inside Arrow UDFs and summed by the engine, cell by cell, and deciding looks its counts up by join.

``shuffle`` counts every cell, or those that generalize a record. ``iceberg`` counts the *t*-frequent cells,
``{x : ρ(x) >= t}``; the proof that its pruning loses none of them is at :func:`frequent_cells`.

To look counts up, distinct records are cut into *chunks*; a chunk asks once for each cell any of its records may be
disclosed as. A general cell is so asked for once per chunk rather than once per record, and no join key is hot.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses
from pyspark.sql import types as T  # noqa: N812 - the name every Spark program uses

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import Batches, in_chunks
from privrisk_spark.errors import InternalError
from privrisk_spark.kernels.counting.cells import CellSpace
from privrisk_spark.kernels.counting.consistent import Axis, Counts
from privrisk_spark.kernels.counting.given_counts import GivenCounts
from privrisk_spark.kernels.disclosure.disclosure import Disclosure
from privrisk_spark.kernels.search.cells_asked import chunk_rows
from privrisk_spark.kernels.search.cells_asked import needed_cells as cells_to_ask

LongArray = npt.NDArray[np.int64]

CHUNK = "chunk"
"""Chunk of a distinct record."""

_ATTRIBUTE, _CLASS = "attribute", "class"

Materialize = Callable[[DataFrame, str], DataFrame]
"""Writes a frame once under a name and reads it back; given by who may act."""

Decide = Callable[[pa.Table, Counts], pa.Table]
"""Decides the records of one chunk by the counts of their cells."""


def words(space: CellSpace) -> list[str]:
    """Columns of a packed cell."""
    return [f"c{j}" for j in range(space.n_words)]


def _longs(names: Sequence[str]) -> list[T.StructField]:
    return [T.StructField(name, T.LongType(), False) for name in names]


def _read(table: pa.Table, names: Sequence[str]) -> list[LongArray]:
    return [table.column(name).to_numpy().astype(np.int64, copy=False) for name in names]


# ----------------------------------------------------------------------------------------------- passes


def own_vectors(records: DataFrame, axes: Sequence[Axis], *more: Column | str) -> DataFrame:
    """Return the dictionary's codes ``t<i>`` of a table that is its own dictionary: ⊥ becomes the root.

    Parameters
    ----------
    records : DataFrame
        Leaf codes ``q<i>``, resolved, and other columns.
    axes : sequence of k Axis
    *more : Column or str
        Columns that follow the codes.
    """
    leaf, node = schemas.codes(len(axes)), schemas.dictionary_codes(len(axes))
    columns = [
        F.when(F.col(q) == len(axis.ancestor) - 1, axis.root).otherwise(F.col(q)).alias(t)
        for q, t, axis in zip(leaf, node, axes, strict=True)
    ]
    return records.select(*columns, *more)


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
            return _read(table, [self.name])[0], None
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
    codes = [_read(table, [name])[0].astype(np.int32) if name in table.column_names else None for name in names]
    return space.pack(codes, table.num_rows)


def _expanded(frame: DataFrame, space: CellSpace, tally: _Tally, *, slot: int | None, pack: bool) -> DataFrame:
    """Pack dictionary vectors, or expand one slot, or both at once; equal rows are gathered per chunk only."""
    names = words(space)

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in in_chunks(tables):
            counted, dictionary = tally.read(table)
            packed = _packed(space, table) if pack else _read(table, names)
            parts = (
                [(packed, counted)] if slot is None else space.expand(packed, counted, slot, distinct=tally.entities)
            )
            for columns, of_row in parts:
                arrays = [*[pa.array(column) for column in columns], tally.arrow(of_row, dictionary)]
                yield pa.table(arrays, names=[*names, tally.name])

    return Batches.of_frame(frame).then(step, T.StructType([*_longs(names), tally.field])).frame()


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
    space : CellSpace
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
            frequent = materialize(enough, f"frequent-{slot}")
        frame = _expanded(frame, space, tally, slot=slot, pack=False)
        frame = tally.gathered(frame if last else _with_prefix_in(frame, frequent, space, slot), names)
    return tally.counted(frame, names).where(F.col(schemas.N_ROWS) >= least)


# ----------------------------------------------------------------------------------------------- look-up


def chunked(
    records: DataFrame, disclosure: Disclosure, *, tasks: int | None = None, rows: int | None = None
) -> DataFrame:
    """Cut distinct records into chunks of neighbours: adds ``chunk`` long.

    Which records share a chunk depends on the engine; materialize this before it is used twice. No result depends on
    it.

    Parameters
    ----------
    records : DataFrame
        VECTORS of the table.
    disclosure : Disclosure
    tasks : int, optional
        Partitions; by default the session's.
    rows : int, optional
        Records of a chunk, a power of two; by default :func:`privrisk_spark.kernels.search.cells_asked.chunk_rows`.
    """
    codes = schemas.codes(len(disclosure.ancestor))
    ranged = records.repartitionByRange(tasks, *codes) if tasks else records.repartitionByRange(*codes)
    near = ranged.sortWithinPartitions(*codes)
    bits = (rows or chunk_rows(disclosure)).bit_length() - 1
    # The engine's row number is its partition times 2**33 plus its place there: cutting bits off stays in a partition.
    return near.withColumn(CHUNK, F.shiftright(F.monotonically_increasing_id(), bits))


def needed_cells(chunks: DataFrame, space: CellSpace, looked_up: Callable[[pa.Table], list[LongArray]]) -> DataFrame:
    """Return the distinct cells each chunk can ask for: ``chunk`` long, ``c<j>`` long.

    Parameters
    ----------
    chunks : DataFrame
        Of :func:`chunked`, or the columns of it that ``looked_up`` reads.
    space : CellSpace
    looked_up : callable
        Gives words of the cells that the records of a chunk look up.
    """
    names = words(space)

    def run(table: pa.Table) -> pa.Table:
        cells = looked_up(table)
        chunk = np.full(len(cells[0]), table.column(CHUNK)[0].as_py(), dtype=np.int64)
        return pa.table([pa.array(chunk), *[pa.array(cell) for cell in cells]], names=[CHUNK, *names])

    schema = T.StructType(_longs([CHUNK, *names]))
    return chunks.groupBy(CHUNK).applyInArrow(run, schema)


def look_up(asked: DataFrame, counted: DataFrame, space: CellSpace) -> DataFrame:
    """Return ``ρ`` of every cell each chunk asks for, 0 where none was counted: ``chunk``, ``c<j>``, ``n_rows``."""
    names = words(space)
    zero = F.coalesce(F.col(schemas.N_ROWS), F.lit(0).cast("long")).alias(schemas.N_ROWS)
    return asked.join(counted, names, "left").select(CHUNK, *names, zero)


def decide_chunks(
    chunks: DataFrame,
    answers: DataFrame,
    space: CellSpace,
    decide: Decide,
    schema: T.StructType,
    *,
    dictionary_rows: int,
) -> DataFrame:
    """Decide distinct records: each chunk meets its counts.

    Parameters
    ----------
    chunks : DataFrame
        Of :func:`chunked`, materialized.
    answers : DataFrame
        Of :func:`look_up`.
    space : CellSpace
    decide : callable
        Gets the records of a chunk with all their columns, in no order, and a
        :class:`privrisk_spark.kernels.counting.given_counts.GivenCounts`; asking it for a cell that was not counted is
        an error. Its closure travels with every task.
    schema : StructType
        Of what ``decide`` returns.
    dictionary_rows : int
        ``N``: rows of the dictionary, or its distinct entities where those are counted.
    """
    names = words(space)

    def run(table: pa.Table, counted: pa.Table) -> pa.Table:
        tally = _read(counted, [schemas.N_ROWS])[0]
        return decide(table, GivenCounts.of(space, _read(counted, names), tally, dictionary_rows))

    return chunks.groupBy(CHUNK).cogroup(answers.groupBy(CHUNK)).applyInArrow(run, schema)


def shuffle_decisions(
    records: DataFrame,
    vectors: DataFrame,
    disclosure: Disclosure,
    floor: float | None,
    space: CellSpace,
    decide: Decide,
    schema: T.StructType,
    *,
    dictionary_rows: int,
    materialize: Materialize,
    entities: bool = False,
    prune: Collection[int] | None = (),
    tasks: int | None = None,
) -> DataFrame:
    """Decide distinct records by the plan ``shuffle``, from end to end.

    Parameters
    ----------
    records : DataFrame
        VECTORS of the table: ``q<i>`` and whatever else deciding needs.
    vectors : DataFrame
        VECTORS of the dictionary; see :func:`count_cells` and :func:`own_vectors`.
    disclosure : Disclosure
    floor : float or None
        Utility below which deciding looks at no node; None where it may look at any.
    space, decide, schema, dictionary_rows
        As in :func:`decide_chunks`.
    materialize : callable
        Called with ``chunks`` and ``needed``.
    entities, prune
        As in :func:`count_cells`; nothing is pruned by default, everywhere with None.
    tasks : int, optional
        Partitions of the records.
    """
    chunks = materialize(chunked(records, disclosure, tasks=tasks), "chunks")
    codes = schemas.codes(len(disclosure.ancestor))

    def looked_up(table: pa.Table) -> list[LongArray]:
        return cells_to_ask(disclosure, floor, space, np.column_stack(_read(table, codes)).astype(np.int32))

    asked = materialize(needed_cells(chunks.select(CHUNK, *codes), space, looked_up), "needed")
    wanted = None if prune is not None and not prune else asked
    counted = count_cells(vectors, space, entities=entities, needed=wanted, prune=prune)
    answers = look_up(asked, counted, space)
    return decide_chunks(chunks, answers, space, decide, schema, dictionary_rows=dictionary_rows)
