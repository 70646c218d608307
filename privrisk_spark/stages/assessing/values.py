"""A masked release and its table as values: moments and quantiles of numbers, classes of equal rows, a sample to learn.

Both sides are measured alike, each by itself, so that nothing here needs to know which record became which row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import combinations
from operator import and_

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses
from pyspark.sql import types as T  # noqa: N812

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import PARTS, Batches, Scratch, in_chunks, report
from privrisk_spark.engine.number_texts import column, exact_text
from privrisk_spark.kernels.arrays import FloatArray
from privrisk_spark.kernels.measures.identity import SizeHistogram, records_by_size
from privrisk_spark.kernels.measures.interval_disclosure import Deviation
from privrisk_spark.kernels.measures.prediction import sampling_words
from privrisk_spark.kernels.numeric.covariance import CrossMoments
from privrisk_spark.kernels.numeric.fold import folded_dicts
from privrisk_spark.policy.assessment import Classifiers
from privrisk_spark.results.assessment import Measured
from privrisk_spark.stages.assessing.classifiers import drawing, predictions
from privrisk_spark.stages.assessing.ranks import collect_ranks_of

SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Of the ranks, whose values are told of a column of numbers."""

_NO_NUMBERS = {"reason": "no record has a number"}
_ONE_NUMBER = {"reason": "fewer than two records have a number"}


def collect_moments(
    scratch: Scratch, rows: Batches, columns: Mapping[str, str], of: Mapping[str, object], *, store: str
) -> Iterator[Measured]:
    """Means, variances and quantiles of columns of numbers, and covariances and correlations of their pairs.

    Parameters
    ----------
    columns : mapping of name to str
        Column of doubles in the rows; what is not finite is not known.
    of : mapping
        Parameters of the measures.
    store : str
        Begins the names of new directories in the scratch directory.

    Notes
    -----
    Sums are exact, so that no partitioning changes a bit.
    """
    held, p = list(columns.values()), len(columns)
    if not held:
        return

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in in_chunks(tables):
            matrix = _matrix(table, held)
            each = [Deviation.of(matrix[:, j]) for j in range(p)]
            yield report("", {"each": each, "together": CrossMoments.of(matrix)})

    parts = scratch.collect_parts(rows.then(step, PARTS))
    for j, (name, at) in enumerate(columns.items()):
        moments = folded_dicts(Deviation.empty(), [part["each"][j] for part in parts])
        about = {**of, "column": name}
        yield Measured("mean", moments.mean, about if moments.weight else {**about, **_NO_NUMBERS})
        variance = moments.sample_variance
        yield Measured("variance", variance, about if variance is not None else {**about, **_ONE_NUMBER})
        ranks = collect_ranks_of(scratch, rows, at, store=f"{store}-ranks-{j}")
        for share, value in zip(SHARES, ranks.quantiles(SHARES), strict=False):
            yield Measured("quantile", value, {**about, "share": share})
    together = folded_dicts(CrossMoments.empty(p), [part["together"] for part in parts])
    covariance, correlation = together.covariance, together.correlation
    varies = np.diag(covariance) > 0
    for (i, one), (j, other) in combinations(enumerate(columns), 2):
        about = {**of, "column": f"{one}, {other}"}
        few = _ONE_NUMBER if together.n < 2 else {}
        yield Measured("covariance", None if few else float(covariance[i, j]), {**about, **few})
        still = few or ({} if varies[i] and varies[j] else {"reason": "a column does not vary"})
        yield Measured("correlation", None if still else float(correlation[i, j]), {**about, **still})


def _matrix(table: pa.Table, columns: Sequence[str]) -> FloatArray:
    matrix = np.column_stack([table.column(name).to_numpy(zero_copy_only=False) for name in columns])
    result: FloatArray = np.where(np.isfinite(matrix), matrix, np.nan)
    return result


def collect_value_classes(
    frame: DataFrame, columns: Sequence[str], of: Mapping[str, object], *, k: float, risk_above: Sequence[float]
) -> Iterator[Measured]:
    """Classes of rows that are equal in all quasi-identifiers, as values.

    Parameters
    ----------
    columns : sequence of str
        Quasi-identifiers; missing values are equal to each other, and rows without any value are in no class.
    of : mapping
        Parameters of the measures.
    k : float
        Of the records in smaller classes.
    risk_above : sequence of float
        Risks whose share of records above is told.
    """
    missing = reduce(and_, [column(name).isNull() for name in columns])
    counted = frame.groupBy(*map(column, columns)).agg(F.count("*").alias(schemas.N_ROWS))
    sizes = (
        counted.select(F.when(missing, 0).otherwise(F.col(schemas.N_ROWS)).alias("size"), schemas.N_ROWS)
        .groupBy("size")
        .agg(F.count("*").alias("classes"), F.sum(schemas.N_ROWS).alias("rows"))
        .toArrow()
    )
    found = {row["size"]: row for row in sizes.to_pylist()}
    apart = found.pop(0, {"rows": 0})["rows"]
    told = SizeHistogram.of_counts({size: row["classes"] for size, row in found.items()})
    risk = told.risk(risk_above)
    yield Measured("records", risk.records + apart, of)
    yield Measured("suppressed_records", apart, {**of, "counted": "apart"})
    yield Measured("classes", risk.classes, of)
    for least, most, records in records_by_size(*told.candidates):
        until = {} if most is None else {"to": most}
        yield Measured("records_by_class_size", records, {**of, "from": least, **until})
    yield Measured("k", risk.k, of)
    yield Measured("uniques", risk.uniques, of)
    yield Measured("unique_share", risk.uniques / risk.records if risk.records else 0.0, of)
    below = sum(size * row["classes"] for size, row in found.items() if size < k)
    yield Measured("records_below_k", below, {**of, "k": int(k) if float(k).is_integer() else k})
    yield Measured("prosecutor_max", risk.prosecutor_max, of)
    yield Measured("prosecutor_mean", risk.prosecutor_mean, of)
    for above in risk.above:
        yield Measured("prosecutor_share_above", above.share, {**of, "threshold": above.threshold})


_DRAWN, _HASH, _LABEL = "drawn", "hash", "label"


def collect_value_predictions(
    frame: DataFrame,
    numbers: Sequence[str],
    categories: Sequence[str],
    label: str,
    asked: Classifiers,
    of: Mapping[str, object],
) -> Iterator[Measured]:
    """Predict the label by each classifier, from numbers as numbers and from categories.

    Parameters
    ----------
    numbers : sequence of str
        Columns of doubles; what is not finite is missing.
    categories : sequence of str
        Columns of which each value is a category; a missing one is a category of its own.
    label : str
        Column that is predicted; rows without it are left out.
    of : mapping
        Parameters of the measures.

    Notes
    -----
    The sample is of the rows with the least fingerprints of their values and ordinal among equal rows, so that it is
    the same however they lie.
    """
    kinds = {field.name: field.dataType for field in frame.schema.fields}
    texts = {f"c{i}": exact_text(column(name), kinds[name]) for i, name in enumerate(categories)}
    # Of Spark's doubles NaN is the greatest: what is not finite is missing.
    finite = [F.when(F.abs(column(name)) < F.lit(float("inf")), column(name)) for name in numbers]
    doubles = {f"d{i}": one + 0.0 for i, one in enumerate(finite)}
    held = {**texts, **doubles, _LABEL: exact_text(column(label), kinds[label])}
    names = list(held)
    known = frame.select(*[to.alias(name) for name, to in held.items()]).where(F.col(_LABEL).isNotNull())
    counted = known.groupBy(*names).agg(F.count("*").alias(schemas.N_ROWS))
    counted = counted.select("*", F.xxhash64(*names).alias(_HASH))
    # One pass counts the rows, so that hardly more than are wanted are drawn.
    below = drawing(int(known.count()), asked.sample)

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in in_chunks(tables):
            times = table.column(schemas.N_ROWS).to_numpy().astype(np.int64)
            row, words = sampling_words([table.column(_HASH).to_numpy().astype(np.int64)], times)
            drawn, place = below(words)
            yield table.select(names).take(pa.array(row[drawn])).append_column(_DRAWN, pa.array(place))

    fields = [*known.schema.fields, T.StructField(_DRAWN, T.LongType(), False)]
    found = Batches.of_frame(counted).then(step, T.StructType(fields)).frame().toArrow()
    found = found.sort_by([(name, "ascending") for name in (_DRAWN, *names)]).slice(0, asked.sample)
    codes = [_codes(found.column(name)) for name in texts]
    values = [found.column(name).to_numpy(zero_copy_only=False).astype(np.float64) for name in doubles]
    yield from predictions(
        np.column_stack(codes) if codes else np.zeros((found.num_rows, 0), dtype=np.int32),
        _codes(found.column(_LABEL)),
        asked,
        of,
        numbers=np.column_stack(values) if values else None,
    )


def _codes(values: pa.ChunkedArray) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    """Texts as the places of theirs among all that occur, sorted; a missing one is the last."""
    texts = values.to_pylist()
    places = {text: i for i, text in enumerate(sorted({text for text in texts if text is not None}))}
    return np.array([len(places) if text is None else places[text] for text in texts], dtype=np.int32)
