"""A bounded sample of the rows of a subject, the same however they lie, and what classifiers predict of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import types as T  # noqa: N812 - the name every Spark program uses

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import Batches, Scratch
from privrisk_spark.engine.slices import read_slices
from privrisk_spark.kernels.arrays import FloatArray, IntArray, LongArray, WordArray
from privrisk_spark.kernels.measures.prediction import predicted, sampling_words
from privrisk_spark.kernels.numeric.distinct import distinct_rows
from privrisk_spark.policy.assessment import Classifiers
from privrisk_spark.results.assessment import Measured
from privrisk_spark.stages.assessing.classes import Layout
from privrisk_spark.storage.parts import PartDirectory

_DRAWN, _LABEL = "drawn", "label"


def collect_predictions(
    scratch: Scratch, directory: PartDirectory, names: Sequence[str], buckets: int, layout: Layout,
    positions: Sequence[int], label: int, rows: int, asked: Classifiers, of: Mapping[str, object],
) -> Iterator[Measured]:  # fmt: skip
    """Predict the label from quasi-identifiers by each classifier.

    Parameters
    ----------
    directory, names, layout
        As :func:`privrisk_spark.stages.assessing.classes.read_bucket` takes them, of all quasi-identifiers.
    positions : sequence of int
        Quasi-identifiers to predict from.
    label : int
        Which of the held columns is to be predicted.
    rows : int
        Of the subject.
    of : mapping
        Parameters of the measures.
    """
    sample = _collect_sample(scratch, directory, names, buckets, layout, label, rows, asked.sample)
    codes = np.column_stack([sample.column(f"n{i}").to_numpy() for i in positions]).astype(np.int32)
    labels = sample.column(_LABEL).to_numpy().astype(np.int32)
    yield from predictions(codes, labels, asked, of)


def predictions(
    codes: IntArray,
    labels: IntArray,
    asked: Classifiers,
    of: Mapping[str, object],
    *,
    numbers: FloatArray | None = None,
) -> Iterator[Measured]:
    """Predict the labels of a sample by each classifier, and by the most frequent one.

    Parameters
    ----------
    codes : ndarray of int32, shape (n, k)
    labels : ndarray of int32, shape (n,)
    of : mapping
        Parameters of the measures.
    numbers : ndarray of float64, shape (n, c), optional
        Columns that are compared as numbers.
    """
    about = {**of, "sample": len(labels), "folds": asked.folds}
    if len(labels) < asked.folds:
        reason = "fewer records have a label than there are folds"
        yield Measured("majority_accuracy", None, {**about, "reason": reason})
        for model in asked.models:
            yield Measured("classifier_accuracy", None, {**about, "model": model, "reason": reason})
        return
    for number, model in enumerate(dict.fromkeys(asked.models)):
        found = predicted(codes, labels, model=model, folds=asked.folds, numbers=numbers)
        if not number:
            yield Measured("majority_accuracy", found.baseline, about)
        yield Measured("classifier_accuracy", found.accuracy, {**about, "model": model})


def drawing(rows: int, most: int) -> Callable[[WordArray], tuple[LongArray, LongArray]]:
    """Return what tells of fingerprints which are of a sample's rows, and in which order these are.

    Parameters
    ----------
    rows : int
        There are.
    most : int
        Rows of the sample.
    """
    # Six deviations more than are wanted, so that fewer are drawn next to never.
    share = min(1.0, (most + 6 * math.sqrt(most) + 36) / max(rows, 1))
    bound = np.uint64(min(int(share * 2.0**64), 2**64 - 1))

    def below(words: WordArray) -> tuple[LongArray, LongArray]:
        drawn = np.flatnonzero(words < bound) if share < 1 else np.arange(len(words))
        # Spark has no unsigned integers; the order stays.
        return drawn, (words[drawn] ^ np.uint64(2**63)).view(np.int64)

    return below


def _collect_sample(
    scratch: Scratch, directory: PartDirectory, names: Sequence[str], buckets: int, layout: Layout,
    label: int, rows: int, most: int,
) -> pa.Table:  # fmt: skip
    """At most so many rows with a label, those of the least fingerprints; equal rows are told apart by ordinal."""
    held, k = tuple(names), len(layout.radices)
    column, missing = schemas.sensitive(len(layout.value_counts))[label], layout.value_counts[label]
    below = drawing(rows, most)

    def read(bucket: int) -> Iterator[pa.Table]:
        table = read_slices(directory, held, bucket)
        if table is None or not table.num_rows:
            return
        keys = [table.column(name).to_numpy() for name in (*schemas.nodes(k), column)]
        first, member = distinct_rows(keys)
        times = np.zeros(len(first), dtype=np.int64)
        np.add.at(times, member, table.column(schemas.N_ROWS).to_numpy())
        distinct = [key[first].astype(np.int64) for key in keys]
        times[distinct[-1] == missing] = 0
        row, words = sampling_words(distinct, times)
        drawn, place = below(words)
        columns = {
            name: key[row[drawn]].astype(np.int32) for name, key in zip(schemas.nodes(k), distinct, strict=False)
        }
        yield pa.table({**columns, _LABEL: distinct[-1][row[drawn]].astype(np.int32), _DRAWN: place})

    fields = [T.StructField(name, T.IntegerType(), False) for name in (*schemas.nodes(k), _LABEL)]
    schema = T.StructType([*fields, T.StructField(_DRAWN, T.LongType(), False)])
    found = Batches.of_parts(scratch.spark, range(buckets), read, schema).frame().toArrow()
    keys = [found.column(name).to_numpy() for name in (*schemas.nodes(k), _LABEL)]
    order = np.lexsort((*keys[::-1], found.column(_DRAWN).to_numpy()))
    return found.take(pa.array(order[:most]))
