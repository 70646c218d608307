"""Quasi-identifiers that name individuals: found on a sample of the encoded rows, and refused."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import pyarrow as pa
from pyspark.sql import types as T  # noqa: N812 - the name every Spark program uses

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import Batches, in_chunks
from privrisk_spark.engine.fingerprints import fingerprints
from privrisk_spark.errors import Fault, SchemaError
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.arrays import LongArray, WordArray
from privrisk_spark.kernels.numeric.fingerprint import sampled
from privrisk_spark.kernels.numeric.naming import FEWEST_VALUES, LEAST_EXPECTED, find_naming_columns
from privrisk_spark.policy.policy import Policy

SAMPLED_ROWS = 100_000
"""Rows, or individuals, that are compared; a smaller table is compared whole."""

_DRAW, _ROW = "draw", "row"


def collect_naming_columns(
    encoded: Batches, policy: Policy, hierarchies: Mapping[str, Hierarchy], *, rows: int
) -> dict[str, tuple[str, str]]:
    """Find the quasi-identifiers that name individuals, each with two others that it determines.

    The sample depends on the rows only, not on their order or parts. If the policy names individuals, one row of each
    is compared: their own rows then cannot make another column look like an id.

    Parameters
    ----------
    encoded : Batches
        ENCODED, resolved.
    hierarchies : mapping of quasi-identifier to Hierarchy
        Empty if values are perturbed; the values are then compared.
    rows : int
        Of the table.
    """
    columns = _codes_of(policy, hierarchies)
    names = list(columns)
    asked = [
        place
        for place, (name, one) in enumerate(policy.quasi_identifiers.items())
        if not one.no_id and (name not in hierarchies or hierarchies[name].n_leaves >= FEWEST_VALUES)
    ]
    # A column and two others, and enough rows to compare.
    if not asked or len(names) < 3 or rows <= LEAST_EXPECTED:
        return {}
    drawn = _sampled(encoded, columns, hierarchies, share=min(1.0, SAMPLED_ROWS / rows)).frame().toArrow()
    if policy.table.entity_id is not None:
        drawn = _one_row_each(drawn)
    codes = np.column_stack([drawn.column(alias).to_numpy() for alias in columns.values()])
    return {
        names[column]: (names[one], names[other])
        for column, (one, other) in find_naming_columns(codes, asked, range(len(names))).items()
    }


def refuse_naming_columns(found: Mapping[str, tuple[str, str]]) -> None:
    """Refuse quasi-identifiers that name individuals.

    Parameters
    ----------
    found : mapping
        As :func:`collect_naming_columns` returns it.

    Raises
    ------
    SchemaError
        With one fault per column.
    """
    faults = [
        Fault(
            f"columns.{name}.role",
            f"the values seem to name individuals: they repeat, and rows with the same value also have the same {one} "
            f"and {other}, which are otherwise unrelated. Got 'quasi-identifier'. Fix: set role: identifier, and "
            f"table.entity_id: {name} if one individual has several rows; if the values name no individuals (for "
            f"example shops), set columns.{name}.no_id: true",
        )
        for name, (one, other) in found.items()
    ]
    if faults:
        raise SchemaError(faults)


def _codes_of(policy: Policy, hierarchies: Mapping[str, Hierarchy]) -> dict[str, str]:
    """Quasi-identifiers with their columns of ENCODED: codes, or the values themselves if these are perturbed."""
    quasi, kept = list(policy.quasi_identifiers), policy.kept_columns
    if hierarchies:
        return dict(zip(quasi, schemas.codes(len(quasi)), strict=True))
    released = dict(zip(kept, schemas.released(len(kept)), strict=True))
    return {name: released[name] for name in quasi}


def _sampled(
    encoded: Batches, columns: Mapping[str, str], hierarchies: Mapping[str, Hierarchy], *, share: float
) -> Batches:
    """Rows whose key has a low fingerprint, with codes that are negative for missing values."""
    of_entities = schemas.ENTITY in encoded.schema.fieldNames()
    key = schemas.ENTITY if of_entities else schemas.RECORD_ID
    names = list(columns.values())
    missing = {columns[name]: one.code_of_null for name, one in hierarchies.items()}

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in in_chunks(tables):
            draw = fingerprints(table.column(key))
            kept = np.flatnonzero(sampled(draw, share))
            rows = table.select([schemas.RECORD_ID, *names]).take(pa.array(kept))
            order = fingerprints(rows.column(schemas.RECORD_ID))
            found = {_DRAW: _signed(draw[kept]), _ROW: _signed(order)}
            for name in names:
                found[name] = _codes(rows.column(name), missing.get(name))
            yield _one_row_each(pa.table(found)) if of_entities else pa.table(found)

    return encoded.then(step, T.StructType([T.StructField(name, T.LongType()) for name in (_DRAW, _ROW, *names)]))


def _codes(values: pa.ChunkedArray, missing: int | None) -> LongArray:
    """Codes of leaves, of which those from `missing` on are no values; without it fingerprints. -1 for no value."""
    if missing is None:
        return np.where(values.is_null().to_numpy(), -1, _signed(fingerprints(values)))
    codes = values.to_numpy().astype(np.int64)
    return np.where(codes >= missing, -1, codes)


def _signed(words: WordArray) -> LongArray:
    return (words >> np.uint64(1)).astype(np.int64)


def _one_row_each(table: pa.Table) -> pa.Table:
    """The row of each individual with the lowest fingerprint."""
    draw, row = (table.column(name).to_numpy() for name in (_DRAW, _ROW))
    order = np.lexsort((row, draw))
    first = np.ones(len(order), dtype=np.bool_)
    first[1:] = draw[order][1:] != draw[order][:-1]
    return table.take(pa.array(order[first]))
