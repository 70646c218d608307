"""What a differentially private release fixes of the table before a record is recoded: its schemes, admitted cells.

Each is evaluated once and held, and everything after reads what is held: a second evaluation would be a second draw but
for the keyed randomness, and the guarantee must not rest on that alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import types as T  # noqa: N812

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import Batches, Scratch
from privrisk_spark.kernels.dp.scheme_choice import peel, scores
from privrisk_spark.kernels.random import keyed
from privrisk_spark.ledger.calibrated import Choosing
from privrisk_spark.planning.reuse import Reused
from privrisk_spark.stages.private import sampling
from privrisk_spark.stages.private.release_keys import ReleaseKeys
from privrisk_spark.stages.private.sampling import AdmittedSet, Recoding
from privrisk_spark.stages.private.scheme_cells import collect_cells

EXCESS = "excess"


def rows_beyond(cells_of_schemes: Batches, least: int) -> Batches:
    """Return, per scheme, ``excess``: the sum over its cells of the rows beyond ``least``; one row or several to add.

    Parameters
    ----------
    cells_of_schemes : Batches
        CELLS with exact counts.
    """

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in tables:
            schemes, member = np.unique(table.column(schemas.SCHEME).to_numpy(), return_inverse=True)
            excess = np.zeros(len(schemes), dtype=np.int64)
            np.add.at(excess, member, np.maximum(table.column(schemas.N_ROWS).to_numpy() - least, 0))
            yield pa.table({schemas.SCHEME: pa.array(schemes.astype(np.int32)), EXCESS: pa.array(excess)})

    fields = [T.StructField(schemas.SCHEME, T.IntegerType()), T.StructField(EXCESS, T.LongType())]
    return cells_of_schemes.then(step, T.StructType(fields))


def collect_choice(scratch: Scratch, encoded: Batches, recoding: Recoding, keys: ReleaseKeys) -> Choosing:
    """Draw the schemes of a release from its candidates.

    Parameters
    ----------
    scratch, encoded, recoding
        As for :func:`collect_excess`.

    Returns
    -------
    Choosing
        With the schemes drawn, in the order drawn.
    """
    assert isinstance(recoding.mechanism, Choosing)
    return chosen(recoding.mechanism, collect_excess(scratch, encoded, recoding), keys)


def collect_excess(scratch: Scratch, encoded: Batches, recoding: Recoding) -> npt.NDArray[np.int64]:
    """Return the rows beyond the threshold of the choice in the cells of each candidate.

    All candidates are counted in one pass; a number for each is all that is collected.

    Parameters
    ----------
    encoded : Batches
        One row a person.
    recoding : Recoding
        Of a mechanism with a choice.

    Returns
    -------
    ndarray of int64, shape (n_candidates,)
    """
    choice = recoding.mechanism
    assert isinstance(choice, Choosing)
    counted = collect_cells(scratch, encoded, recoding.ancestor, choice.candidates, name="candidates")
    table = rows_beyond(counted, choice.beyond).frame().toArrow()
    excess = np.zeros(len(choice.candidates), dtype=np.int64)
    np.add.at(excess, table.column(schemas.SCHEME).to_numpy(), table.column(EXCESS).to_numpy())
    return excess


def chosen(mechanism: Choosing, excess: npt.NDArray[np.int64], keys: ReleaseKeys) -> Choosing:
    """Draw schemes by the scores that the rows beyond the threshold give.

    Parameters
    ----------
    excess : ndarray of int64, shape (n_candidates,)

    Returns
    -------
    Choosing
        With the schemes drawn, in the order drawn.
    """
    picks = np.arange(mechanism.picks, dtype=np.int32)[:, None]
    streams = keyed.Streams(keys.scheme, keyed.cell_messages(0, picks))
    drawn = peel(scores(excess, mechanism.precision), Fraction(mechanism.epsilon_choose), streams)
    return mechanism.with_schemes(tuple(mechanism.candidates[position] for position in drawn))


def collect_admitted(
    scratch: Scratch, encoded: Batches, recoding: Recoding, keys: ReleaseKeys, *, file: Path
) -> AdmittedSet:
    """Admit the cells of the mechanism's schemes under its noise, and write them to a file that may be published.

    The file's bytes are a function of the cells: they stand in their order, with their noisy counts.
    """
    exact = collect_cells(scratch, encoded, recoding.ancestor, recoding.mechanism.schemes)
    found = sampling.admitted_cells(exact, recoding, keys).frame().toArrow()
    names = [schemas.SCHEME, *schemas.nodes(len(recoding.ancestor)), schemas.NOISY]
    columns = {name: found.column(name) for name in names}
    table = pa.table(columns).sort_by([(name, "ascending") for name in names]).combine_chunks()
    pq.write_table(table, file, store_schema=False)
    return AdmittedSet.of_table(table, recoding)


def admitted_before(reused: Reused, recoding: Recoding) -> AdmittedSet:
    """Return the cells that an earlier release admitted."""
    return AdmittedSet.of_table(pq.read_table(reused.path), recoding)
