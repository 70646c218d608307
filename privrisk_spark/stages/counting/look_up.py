"""Counts that stay distributed, looked up by records: by join, chunk by chunk.

Distinct records are cut into *chunks*; a chunk asks once for each cell any of its records may be disclosed as. A
general cell is so asked for once per chunk rather than once per record, and no join key is hot.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses
from pyspark.sql import types as T  # noqa: N812 - the name every Spark program uses

from privrisk_spark.engine import schemas
from privrisk_spark.engine.counts import Asked, Found, SpreadVectors
from privrisk_spark.engine.failures import carried
from privrisk_spark.kernels.arrays import LongArray
from privrisk_spark.kernels.counting.cells import CellSpace
from privrisk_spark.kernels.counting.given_counts import GivenCounts
from privrisk_spark.kernels.disclosure.disclosure import Disclosure

if TYPE_CHECKING:
    from privrisk_spark.stages.counting.shuffle_iceberg import Materialize

CHUNK = "chunk"
"""Chunk of a distinct record."""


@dataclass(frozen=True, eq=False)
class SpreadLookup:
    """A dictionary that stays distributed, and how records look its counts up.

    Attributes
    ----------
    space : CellSpace
        Its cells.
    disclosure : Disclosure
        What records of a chunk may be disclosed as.
    materialize : callable
        Called with ``chunks``, ``needed`` and ``answers``: writes a frame once and reads it back.
    prune : collection of int, or None
        Slots after which cells that nobody asks for are dropped, see
        :func:`privrisk_spark.stages.counting.shuffle_iceberg.count_cells`: none if it is empty, all if it is None.
    tasks : int, optional
        Partitions of the records; by default the session's.
    """

    spread: SpreadVectors
    space: CellSpace
    disclosure: Disclosure
    materialize: Materialize
    prune: Collection[int] | None = ()
    tasks: int | None = None

    def collect_marginals(self) -> list[LongArray]:
        """Collect ``ρ`` of every class of each attribute alone."""
        from privrisk_spark.stages.counting.shuffle_iceberg import collect_marginals

        return collect_marginals(self.spread.vectors, self.space, entities=self.spread.entities)

    def collect_asked(self, records: DataFrame, asked: Asked, *, again: bool) -> AskedCounts:
        """Bring distinct records together with the counts of the cells they ask for.

        Parameters
        ----------
        records : DataFrame
            VECTORS of the table: ``q<i>`` and whatever else deciding needs.
        asked : callable
            Gives words of the cells that the records of a chunk look up.
        again : bool
            Whether the counts are read more than once; they are then written to files.
        """
        from privrisk_spark.stages.counting.shuffle_iceberg import count_cells, words

        chunks = self.materialize(self._chunked(records), "chunks")
        needed = self.materialize(self._needed(chunks, asked), "needed")
        counted = count_cells(
            self.spread.vectors,
            self.space,
            entities=self.spread.entities,
            needed=None if self.prune is not None and not self.prune else needed,
            prune=self.prune,
        )
        names = words(self.space)
        zero = F.coalesce(F.col(schemas.N_ROWS), F.lit(0).cast("long")).alias(schemas.N_ROWS)
        answers = needed.join(counted, names, "left").select(CHUNK, *names, zero)
        if again:
            answers = self.materialize(answers, "answers")
        return AskedCounts(chunks, answers, self.space, self.spread.dictionary_rows)

    def _chunked(self, records: DataFrame) -> DataFrame:
        """Cut distinct records into chunks of neighbours.

        Which records share a chunk depends on the engine, and no result depends on it; but it must not change between
        two uses.
        """
        from privrisk_spark.kernels.search.cells_asked import chunk_rows

        codes = schemas.codes(len(self.disclosure.ancestor))
        ranged = records.repartitionByRange(self.tasks, *codes) if self.tasks else records.repartitionByRange(*codes)
        bits = chunk_rows(self.disclosure).bit_length() - 1
        # The engine's row number is its partition times 2**33 plus its place there: cutting bits off stays in it.
        number = F.shiftright(F.monotonically_increasing_id(), bits)
        return ranged.sortWithinPartitions(*codes).withColumn(CHUNK, number)

    def _needed(self, chunks: DataFrame, asked: Asked) -> DataFrame:
        """Distinct cells each chunk can ask for: ``chunk`` long, ``c<j>`` long."""
        from privrisk_spark.stages.counting.shuffle_iceberg import long_fields, words

        names = words(self.space)

        def run(table: pa.Table) -> pa.Table:
            with carried():
                cells = asked(table)
            chunk = np.full(len(cells[0]), table.column(CHUNK)[0].as_py(), dtype=np.int64)
            return pa.table([pa.array(chunk), *[pa.array(cell) for cell in cells]], names=[CHUNK, *names])

        return chunks.groupBy(CHUNK).applyInArrow(run, T.StructType(long_fields([CHUNK, *names])))


@dataclass(frozen=True, eq=False)
class AskedCounts:
    """Distinct records in chunks, each with the counts of the cells it asks for.

    Attributes
    ----------
    chunks : DataFrame
        The records, with ``chunk``.
    answers : DataFrame
        ``chunk``, ``c<j>``, ``n_rows``: ``ρ`` of every cell a chunk asks for, 0 where none was counted.
    dictionary_rows : int
        ``N``: rows of the dictionary, or its distinct entities where those are counted.
    """

    chunks: DataFrame
    answers: DataFrame
    space: CellSpace
    dictionary_rows: int

    def each(self, found: Found, schema: T.StructType) -> DataFrame:
        """Let every chunk meet its counts.

        Parameters
        ----------
        found : callable
            Gets the records of a chunk with all their columns, in no order, and their counts; asking these for a cell
            that was not counted is an error. Its closure travels with every task.
        schema : StructType
            Of what it returns.
        """
        from privrisk_spark.stages.counting.shuffle_iceberg import long_columns, words

        space, names, dictionary_rows = self.space, words(self.space), self.dictionary_rows

        def run(table: pa.Table, counted: pa.Table) -> pa.Table:
            tally = long_columns(counted, [schemas.N_ROWS])[0]
            with carried():
                return found(table, GivenCounts.of(space, long_columns(counted, names), tally, dictionary_rows))

        return self.chunks.groupBy(CHUNK).cogroup(self.answers.groupBy(CHUNK)).applyInArrow(run, schema)
