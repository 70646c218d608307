"""Each record's class size and risks, as a table for the vault."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as T  # noqa: N812 - the name every Spark program uses

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import Batches, in_chunks
from privrisk_spark.kernels.measures.population_risk import negative_binomial_risk
from privrisk_spark.stages.assessing.attack import AttackTable, scaled

ROWS, CLASS_SIZE, POPULATION, WEIGHT = "rows", "class_size", "population_size", "weighted_population"
_ATTACK = ("p_reid", "expected_payoff", "exploits", "p_reid_baseline", "risk")


def of_records(
    rows: Batches,
    classes: DataFrame,
    *,
    k: int,
    record_id: str,
    attack: AttackTable | None,
    fraction: float | None,
) -> Batches:
    """Return one row a record: its id, class size, population size where it is known, and risks.

    A record that is in no class, as one that is suppressed whole, has nothing but its id.

    Parameters
    ----------
    rows : Batches
        Rows of the subject with ``record_id`` (:func:`privrisk_spark.stages.assessing.classes.table_rows`).
    classes : DataFrame
        Kept of the classes: ``n<i>``, ``class_size`` (0 of what is in no class), and ``population_size`` and
        ``weighted_population`` where there are such.
    k : int
    record_id : str
        Name of the id in what is returned; ``record_id`` where another column has that name.
    attack : AttackTable or None
    fraction : float or None
        Share of the population in the table, by which groups were scaled.
    """
    nodes = schemas.nodes(k)
    joined = rows.frame().select(schemas.RECORD_ID, *nodes).join(classes, nodes, "inner").drop(*nodes)
    there = [name for name in (CLASS_SIZE, POPULATION, WEIGHT) if name in joined.columns]
    risks = ["prosecutor", *(["journalist"] if POPULATION in there else [])]
    risks += ["individual_risk"] if WEIGHT in there else []
    added = [*risks, *(_ATTACK if attack is not None else ())]
    if record_id in (*there, *added):
        record_id = schemas.RECORD_ID

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in in_chunks(tables):
            told = table.column(CLASS_SIZE).to_numpy()
            apart, size = told == 0, np.maximum(told, 1)
            columns: dict[str, np.ndarray[tuple[int], np.dtype[np.float64]]] = {"prosecutor": 1 / size}
            group = scaled(size, fraction)
            if POPULATION in there:
                group = table.column(POPULATION).to_numpy()
                columns["journalist"] = np.where(group > 0, 1 / np.maximum(group, 1), np.nan)
            if WEIGHT in there:
                weight = table.column(WEIGHT).to_numpy()
                columns["individual_risk"] = negative_binomial_risk(size, size / np.maximum(weight, size))
            if attack is not None:
                columns |= attack.columns(group)
            known: Mapping[str, pa.Array] = {
                name: pa.array(column, mask=np.isnan(column) | apart) for name, column in columns.items()
            }
            yield pa.table(
                {record_id: table.column(schemas.RECORD_ID)}
                | {name: pa.array(table.column(name).to_numpy(), mask=apart) for name in there}
                | {name: known[name] for name in added}
            )

    kinds = {field.name: field.dataType for field in joined.schema.fields}
    fields = [T.StructField(record_id, T.StringType()), *(T.StructField(name, kinds[name]) for name in there)]
    fields += [T.StructField(name, T.DoubleType()) for name in added]
    return Batches.of_frame(joined).then(step, T.StructType(fields))
