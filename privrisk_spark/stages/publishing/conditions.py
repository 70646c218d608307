"""What is asked of sensitive values in every released class, held against the staged files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import Batches
from privrisk_spark.engine.grounds import grounds_of
from privrisk_spark.engine.sources import dictionary_of
from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import LongArray
from privrisk_spark.kernels.classes.closeness import TableDistribution
from privrisk_spark.kernels.classes.diversity import SensitiveRuns
from privrisk_spark.kernels.numeric.distinct import distinct_rows
from privrisk_spark.kernels.recoding.full_domain import NodeClasses
from privrisk_spark.planning.recoding import asked_in_words, conditions, sensitive_of
from privrisk_spark.policy.anonymity import KAnonymityGuarantee


def measure_conditions(
    asked: KAnonymityGuarantee,
    release: Batches,
    table: Batches,
    columns: Mapping[str, str],
    roots: Sequence[str | None],
    *,
    most: int,
) -> dict[str, int]:
    """Count the released classes that do not meet each condition besides k.

    Parameters
    ----------
    asked : KAnonymityGuarantee
    release : Batches
        ``a<i>`` texts of the attributes, ``r<j>`` kept columns, read from the staged files.
    table : Batches
        ENCODED, whose sensitive values the classes are compared with.
    columns : mapping of sensitive column to its column ``r<j>``
    roots : sequence of k str or None
        Labels of suppressed values. Rows with all of them are of no class where suppressed rows are released.
    most : int
        Distinct tuples with their values that the driver may hold.

    Returns
    -------
    dict of words to number of classes
    """
    labels = [f"a{i}" for i in range(len(roots))]
    held, distributions, texts, keys = [], {}, {}, None
    for name in sensitive_of(asked):
        value = columns[name]
        counted = release.frame().groupBy(*labels, value).agg(F.count("*").alias(schemas.N_ROWS))
        found = counted.limit(most + 1).toArrow()
        if found.num_rows > most:
            raise InputError(f"counting.sorted_vectors: there are more than {most:,} released tuples; raise it.")
        whole = table.frame().groupBy(value).agg(F.count("*").alias(schemas.N_ROWS)).toArrow().sort_by(value)
        code = pc.index_in(found.column(value), value_set=whole.column(value)).to_numpy().astype(np.int64)
        owner, keys = _classes(found, labels)
        rows = found.column(schemas.N_ROWS).to_numpy().astype(np.int64)
        held.append(SensitiveRuns.of_entries(owner, code, rows, keys.num_rows))
        texts[name] = whole.column(value)
        distributions[name] = TableDistribution(whole.column(schemas.N_ROWS).to_numpy().astype(np.int64))
    if keys is None:
        return {}
    rows = held[0].rows
    classes = NodeClasses(np.arange(len(rows)), rows, tuple(held))
    told = np.ones(len(rows), dtype=np.bool_)
    if asked.suppressed == "keep":
        same = [
            pc.equal(keys.column(i), root) if root is not None else pc.is_null(keys.column(i))
            for i, root in enumerate(roots)
        ]
        told = ~np.logical_and.reduce([of.fill_null(False).to_numpy() for of in same])
    held_to = conditions(asked, distributions, grounds_of(asked, texts))
    of_each = zip(asked_in_words(asked, "rows")[1:], held_to[1:], strict=True)
    return {words: int(np.count_nonzero(told & ~condition.meets(classes))) for words, condition in of_each}


def _classes(found: pa.Table, labels: Sequence[str]) -> tuple[LongArray, pa.Table]:
    """Class of each row of a table, by the order of the labels alone, and the labels of each class."""
    ranks = []
    for name in labels:
        distinct, place = dictionary_of(found.column(name))
        rank = np.empty(len(distinct) + 1, dtype=np.int64)
        rank[pc.sort_indices(distinct).to_numpy()] = np.arange(len(distinct))
        rank[-1] = len(distinct)
        ranks.append(rank[place.fill_null(len(distinct)).to_numpy(zero_copy_only=False)])
    first, member = distinct_rows(ranks)
    return member, found.select(labels).take(pa.array(first))
