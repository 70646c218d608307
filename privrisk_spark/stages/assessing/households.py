"""Risk of households: records are dealt by household, and a task sees each household whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as T  # noqa: N812 - the name every Spark program uses

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import PARTS, Batches, Scratch, report
from privrisk_spark.engine.fingerprints import fingerprints
from privrisk_spark.engine.slices import dealt, read_slices
from privrisk_spark.engine.value_codes import as_text_column
from privrisk_spark.json_values import from_json
from privrisk_spark.kernels.arrays import FloatArray, WordArray
from privrisk_spark.kernels.measures.household import HouseholdTally
from privrisk_spark.kernels.measures.population_risk import negative_binomial_risk
from privrisk_spark.kernels.numeric.fold import folded
from privrisk_spark.stages.assessing.records import CLASS_SIZE, POPULATION, WEIGHT

HOUSEHOLD = "household"
"""Column of the household of a row, as text."""

ROWS_PER_BUCKET = 1_000_000
"""Rows of the table a task puts together."""


def with_household(rows: Batches, column: str) -> Batches:
    """Rows with a column as their household, as text.

    Parameters
    ----------
    column : str
        Its name among the rows.
    """

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in tables:
            named = as_text_column(table.column(column), HOUSEHOLD)
            yield table.append_column(HOUSEHOLD, named)

    return rows.then(step, T.StructType([*rows.schema.fields, T.StructField(HOUSEHOLD, T.StringType())]))


def collect_households(scratch: Scratch, beside: Batches, rows: int, *, store: str) -> dict[str, HouseholdTally]:
    """Tally the risk of each household.

    Parameters
    ----------
    beside : Batches
        ``record_id``, which holds the household, beside what is kept of each record's class. A record without a
        household is one of its own; one that is suppressed whole, and in no class, has no risk.
    rows : int
        Of the table.
    store : str
        Name of a directory in scratch.

    Returns
    -------
    dict of str to HouseholdTally
        By what the risk of a record is: ``prosecutor``, and ``journalist`` and ``individual`` where these are known.
    """
    columns = [name for name in beside.schema.fieldNames() if name in (CLASS_SIZE, POPULATION, WEIGHT)]
    buckets, directory = max(1, -(-rows // ROWS_PER_BUCKET)), scratch.directory(store)

    def alone(table: pa.Table) -> Mapping[str, object]:
        lonely = table.filter(pc.is_null(table.column(schemas.RECORD_ID)))
        own = np.arange(lonely.num_rows)
        return {"alone": {name: HouseholdTally.of(own, risk) for name, risk in _risks(lonely).items()}}

    kept = [schemas.RECORD_ID, *columns]
    parts = scratch.collect_parts(dealt(beside, _of_household, kept, buckets, directory, alone))
    names = tuple(part["name"] for part in parts)

    def read(bucket: int) -> Iterator[pa.Table]:
        table = read_slices(directory, names, bucket)
        if table is None:
            return
        table = table.filter(pc.is_valid(table.column(schemas.RECORD_ID)))
        code = table.column(schemas.RECORD_ID).combine_chunks().dictionary_encode().indices
        household = code.to_numpy(zero_copy_only=False).astype(np.int64)
        yield report("", {"found": {name: HouseholdTally.of(household, risk) for name, risk in _risks(table).items()}})

    found = [
        part["found"] for part in scratch.collect_parts(Batches.of_parts(scratch.spark, range(buckets), read, PARTS))
    ]
    told = [*(part["alone"] for part in parts), *found]
    names_of_risks = dict.fromkeys(name for one in told for name in one)
    return {
        name: folded(HouseholdTally.empty(), [from_json(HouseholdTally, one[name]) for one in told])
        for name in names_of_risks
    }


def _of_household(table: pa.Table) -> WordArray:
    return fingerprints(table.column(schemas.RECORD_ID))


def _risks(table: pa.Table) -> dict[str, FloatArray]:
    """Risks of records by name; 0 of those in no class, and where the population has nobody."""
    told = table.column(CLASS_SIZE).to_numpy()
    size = np.maximum(told, 1)
    risks = {"prosecutor": 1 / size}
    if POPULATION in table.column_names:
        people = table.column(POPULATION).to_numpy()
        risks["journalist"] = np.where(people > 0, 1 / np.maximum(people, 1), 0.0)
    if WEIGHT in table.column_names:
        weight = table.column(WEIGHT).to_numpy()
        risks["individual"] = negative_binomial_risk(size, size / np.maximum(weight, size))
    return {name: np.where(told == 0, 0.0, risk) for name, risk in risks.items()}
