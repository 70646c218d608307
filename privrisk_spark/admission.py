"""What a differentially private release fixes of the table before a record is recoded: its schemes, admitted cells.

Each is materialized once, and everything after reads what was materialized: a second evaluation would be a second draw
but for the keyed randomness, and the guarantee must not rest on that alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses
from pyspark.sql import types as T  # noqa: N812

from privrisk_spark import cells, sampling, schemas
from privrisk_spark.anonymize import integers
from privrisk_spark.batches import Batches, Scratch, in_chunks
from privrisk_spark.counts import SpreadVectors, vectors_of_table
from privrisk_spark.kernels import randomness
from privrisk_spark.kernels.cells import CellSpace
from privrisk_spark.kernels.scheme_choice import peel, scores
from privrisk_spark.mechanism import Mechanism
from privrisk_spark.reuse import Reused
from privrisk_spark.sampling import AdmittedSet, FrequentCells, Recoding, ReleaseKeys

EXCESS = "excess"


def told_apart(encoded: Batches, recoding: Recoding, schemes: Sequence[Sequence[int]]) -> Batches:
    """Return the codes of ENCODED, one code for all values that no scheme tells apart.

    Values with one node at the lowest level any scheme has share their nodes at all others, so cells and their counts
    stay as they are, and there are fewer distinct records to count them from.

    Parameters
    ----------
    encoded : Batches
    recoding : Recoding
    schemes : sequence of sequence of int
        At least one.
    """
    names = schemas.codes(len(recoding.ancestor))
    standing = []
    for ancestor, level in zip(recoding.ancestor, np.min(schemes, axis=0), strict=True):
        _, first, member = np.unique(ancestor[:, level], return_index=True, return_inverse=True)
        standing.append(first[member].astype(np.int32))

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in in_chunks(tables):
            codes = integers(table, names)
            yield pa.table([pa.array(stands[codes[:, i]]) for i, stands in enumerate(standing)], names=names)

    return encoded.then(step, T.StructType([T.StructField(name, T.IntegerType()) for name in names]))


def rows_beyond(cells_of_schemes: DataFrame, least: int) -> DataFrame:
    """Return, per scheme, ``excess``: the sum over its cells of the rows beyond ``least``.

    Parameters
    ----------
    cells_of_schemes : DataFrame
        CELLS with exact counts.
    least : int
    """
    beyond = F.greatest(F.col(schemas.N_ROWS) - F.lit(least), F.lit(0))
    return cells_of_schemes.groupBy(schemas.SCHEME).agg(F.sum(beyond).alias(EXCESS))


def collect_choice(scratch: Scratch, encoded: Batches, recoding: Recoding, keys: ReleaseKeys) -> Mechanism:
    """Draw the schemes of a release from its candidates.

    All candidates are counted in one pass; a number for each is all that is collected.

    Parameters
    ----------
    scratch : Scratch
    encoded : Batches
        One row a person.
    recoding : Recoding
        Of a mechanism with a choice.
    keys : ReleaseKeys

    Returns
    -------
    Mechanism
        With the schemes drawn, in the order drawn.
    """
    mechanism = recoding.mechanism
    choice = mechanism.choice
    assert choice is not None
    vectors = vectors_of_table(told_apart(encoded, recoding, choice.candidates), len(recoding.ancestor), 0)
    every = replace(recoding, mechanism=replace(mechanism, schemes=choice.candidates))
    frame = rows_beyond(sampling.scheme_cells(vectors, every), choice.beyond)
    table = scratch.write_frame(frame, "scores").toArrow()
    excess = np.zeros(len(choice.candidates), dtype=np.int64)
    excess[table.column(schemas.SCHEME).to_numpy()] = table.column(EXCESS).to_numpy()
    return chosen(mechanism, excess, keys)


def chosen(mechanism: Mechanism, excess: npt.NDArray[np.int64], keys: ReleaseKeys) -> Mechanism:
    """Draw schemes by the scores that the rows beyond the threshold give.

    Parameters
    ----------
    mechanism : Mechanism
        With a choice.
    excess : ndarray of int64, shape (n_candidates,)
    keys : ReleaseKeys

    Returns
    -------
    Mechanism
        With the schemes drawn, in the order drawn.
    """
    choice = mechanism.choice
    assert choice is not None
    picks = np.arange(choice.picks, dtype=np.int32)[:, None]
    streams = randomness.Streams(keys.scheme, randomness.cell_messages(0, picks))
    drawn = peel(scores(excess, choice.precision), Fraction(choice.epsilon), streams)
    return replace(mechanism, schemes=tuple(choice.candidates[position] for position in drawn))


def collect_admitted(
    scratch: Scratch, encoded: Batches, recoding: Recoding, keys: ReleaseKeys, *, file: Path
) -> AdmittedSet:
    """Admit the cells of the mechanism's schemes under its noise, and write them to a file that may be published.

    The file's bytes are a function of the cells: they stand in their order, with their noisy counts.
    """
    exact = sampling.scheme_cells(vectors_of_table(encoded, len(recoding.ancestor), 0), recoding)
    admitted = scratch.write_frame(sampling.admitted_cells(exact, recoding, keys), "admitted")
    table = admitted.toArrow()
    names = [schemas.SCHEME, *schemas.nodes(len(recoding.ancestor)), schemas.NOISY]
    table = table.select(names).sort_by([(name, "ascending") for name in names]).combine_chunks()
    pq.write_table(table.replace_schema_metadata(None), file, store_schema=False)
    return AdmittedSet.of_table(table, recoding)


def admitted_before(reused: Reused, recoding: Recoding) -> AdmittedSet:
    """Return the cells that an earlier release admitted."""
    return AdmittedSet.of_table(pq.read_table(reused.path), recoding)


def collect_frequent(
    scratch: Scratch, spread: SpreadVectors, space: CellSpace, recoding: Recoding, *, most: int
) -> FrequentCells:
    """Count the cells of the schemes with at least t rows of a public dictionary; collect them, at most ``most``."""
    frequent = recoding.mechanism.frequent
    materialize: Callable[[DataFrame, str], DataFrame] = scratch.write_frame
    space = space.within(np.array(recoding.mechanism.schemes))
    space = cells.collect_frequent(spread.vectors, space, frequent, entities=spread.entities)
    found = cells.frequent_cells(spread.vectors, space, frequent, entities=spread.entities, materialize=materialize)
    return FrequentCells.collect_cells(scratch.write_frame(found, "frequent"), space, most=most)
