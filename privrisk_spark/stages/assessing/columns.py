"""How well each quasi-identifier, and a whole set of them, tells the records of a subject apart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import types as T  # noqa: N812 - the name every Spark program uses

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import Batches, Scratch, read_ipc
from privrisk_spark.kernels.arrays import LongArray
from privrisk_spark.kernels.measures.separation import Separation
from privrisk_spark.kernels.numeric.distinct import distinct_rows
from privrisk_spark.stages.assessing.records import CLASS_SIZE, ROWS
from privrisk_spark.storage.parts import PartDirectory

_COUNTED = ("set", "attribute", "value", "count")
_KINDS = (T.IntegerType(), T.IntegerType(), T.LongType(), T.LongType())
_SCHEMA = T.StructType([T.StructField(name, kind, False) for name, kind in zip(_COUNTED, _KINDS, strict=True)])


@dataclass(frozen=True)
class KeptSet:
    """What is kept of the classes of a set of a subject.

    Attributes
    ----------
    parts : tuple of str
        Tables of classes in it.
    k : int
        Quasi-identifiers.
    """

    directory: PartDirectory
    parts: tuple[str, ...]
    k: int


@dataclass(frozen=True)
class Separated:
    """What tells the records of a set of a subject apart; rows, where a person has several too.

    Attributes
    ----------
    whole : Separation
        By all columns of the set.
    columns : tuple of k Separation
        By each alone.
    """

    whole: Separation
    columns: tuple[Separation, ...]


def collect_separation(scratch: Scratch, kept: Sequence[KeptSet]) -> list[Separated]:
    """Count the values of every column, and the sizes of classes; one job for all sets.

    What is suppressed whole and in no class is left out. A task hands over a row for each value of a column it has
    seen and each size of a class, so that the driver holds no more than hierarchies have nodes, times the parts.

    Returns
    -------
    list of Separated
        In order.
    """
    work = [(number, part) for number, one in enumerate(kept) for part in one.parts]
    held = tuple(kept)

    def read(at: int) -> Iterator[pa.Table]:
        number, part = work[at]
        yield from _counted(number, read_ipc(held[number].directory, part), held[number].k)

    told = Batches.of_parts(scratch.spark, range(len(work)), read, _SCHEMA).frame().toArrow()
    numbers, attributes, values, counts = (told.column(name).to_numpy() for name in _COUNTED)
    found = []
    for number, one in enumerate(held):
        here = numbers == number
        sizes = here & (attributes < 0)
        columns = []
        for attribute in range(one.k):
            of_column = here & (attributes == attribute)
            rows = _summed(values[of_column], counts[of_column])[1]
            columns.append(Separation.of(rows, np.ones(len(rows), dtype=np.int64)))
        found.append(Separated(Separation.of(*_summed(values[sizes], counts[sizes])), tuple(columns)))
    return found


def _counted(number: int, classes: pa.Table, k: int) -> Iterable[pa.Table]:
    """Rows with each value of each column, and, as attribute -1, how many classes have each size."""
    there = classes.column(CLASS_SIZE).to_numpy() > 0
    rows = classes.column(ROWS).to_numpy()[there]
    pairs = [(-1, *_summed(rows, np.ones(len(rows), dtype=np.int64)))]
    for attribute, name in enumerate(schemas.nodes(k)):
        pairs.append((attribute, *_summed(classes.column(name).to_numpy()[there].astype(np.int64), rows)))
    for attribute, values, counts in pairs:
        of = [np.full(len(values), one, dtype=np.int32) for one in (number, attribute)]
        yield pa.table(dict(zip(_COUNTED, (*of, values, counts), strict=True)))


def _summed(values: LongArray, counts: LongArray) -> tuple[LongArray, LongArray]:
    """Different values, and the sum of the counts of each."""
    first, member = distinct_rows([values])
    sums = np.zeros(len(first), dtype=np.int64)
    np.add.at(sums, member, counts)
    return values[first], sums
