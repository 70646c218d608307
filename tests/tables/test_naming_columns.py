"""The sample in which columns that name individuals are looked for: bounded, and the same in any order and parts."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import types as T

from privrisk_spark.engine.batches import Batches
from privrisk_spark.hierarchies.builders import FlatHierarchy, build
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.tables.naming_columns import _one_row_each, _sampled


def sampled(table: pa.Table, parts: int, share: float) -> set[tuple[int, ...]]:
    """Return the rows of a sample, as the tasks of so many parts draw them."""
    names = [name for name in table.column_names if name.startswith("q")]
    kinds = [T.IntegerType() if name in names else T.StringType() for name in table.column_names]
    schema = T.StructType([T.StructField(*one) for one in zip(table.column_names, kinds, strict=True)])
    hierarchies = {name: hierarchy() for name in names}
    batches = _sampled(Batches(None, (), schema), {name: name for name in names}, hierarchies, share=share)  # type: ignore[arg-type]
    (step,) = batches.steps
    size = -(-table.num_rows // parts)
    found = [next(step([table.slice(start, size)])) for start in range(0, table.num_rows, size)]
    drawn = pa.concat_tables(found)
    drawn = _one_row_each(drawn) if "entity" in table.column_names else drawn
    return {tuple(row.values()) for row in drawn.to_pylist()}


def hierarchy() -> Hierarchy:
    return build(FlatHierarchy.model_validate({"flat": {"values": [str(n) for n in range(9)]}}), "q", values=set())


def encoded(rows: int, *, people: int | None = None) -> pa.Table:
    random = np.random.default_rng(3)
    entity = {} if people is None else {"entity": [f"p{n}" for n in random.integers(0, people, rows)]}
    codes = {f"q{i}": pa.array(random.integers(0, 10, rows).astype(np.int32)) for i in range(3)}
    return pa.table({"record_id": [f"r{n}" for n in range(rows)], **entity, **codes})


@pytest.mark.parametrize("people", [None, 300])
def test_sampled_rows_are_the_same_in_any_order_and_parts(people: int | None) -> None:
    table = encoded(4_000, people=people)
    turned = table.take(pa.array(np.random.default_rng(5).permutation(table.num_rows)))
    assert sampled(table, 1, 0.1) == sampled(turned, 7, 0.1)


def test_sampled_rows_are_a_share_of_all_and_suppressed_values_are_missing() -> None:
    found = sampled(encoded(20_000), 3, 0.1)
    assert 1_800 < len(found) < 2_200
    assert {code for row in found for code in row[2:]} == {-1, *range(9)}
    assert len(sampled(encoded(500), 1, 1.0)) == 500


def test_sampled_rows_with_individuals_are_one_of_each() -> None:
    assert len(sampled(encoded(4_000, people=300), 4, 1.0)) == 300
