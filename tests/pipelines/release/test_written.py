"""What is written is what was decided: the staged files are held against the decisions, not only against the labels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
import small_release
from product import Privrisk
from pyspark.sql import SparkSession
from small_release import write_table

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import Batches
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.ledger.ledger import Ledger
from privrisk_spark.pipelines.release import written


@pytest.mark.parametrize("kind", ["risk", "dp"])
def test_labels_that_stand_in_other_rows_than_decided_are_not_published(
    privrisk: Privrisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """A writer that takes one node for another is found out by the files, though every text of them is a label."""

    def others(hierarchy: Hierarchy) -> npt.NDArray[np.int32]:
        return np.append(np.arange(hierarchy.root)[::-1], hierarchy.root).astype(np.int32)

    places = [(f"output.{name}", str(tmp_path / place)) for name, place in (("path", "out"), ("vault", "vault"))]
    policy = small_release.policy(kind, write_table(tmp_path), tmp_path, *places)
    Ledger(f"sqlite:///{tmp_path / 'ledger.db'}").create()
    monkeypatch.setattr(Hierarchy, "named", property(others))
    ran = privrisk(policy, "--run-id", "r1")
    assert ran.code == 1, ran.err
    assert "every label stands in as many rows as were decided for its values (labels of " in ran.err
    assert "outside its hierarchy" not in ran.err
    assert not (tmp_path / "out" / "manifest.json").exists()


def test_labels_that_stand_beside_others_than_decided_are_not_published(
    privrisk: Privrisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer that turns a column round: each label stands as often as it must."""
    in_order = written.ordered

    def turned(spark: SparkSession, parts: Any, *, files: int, first: Sequence[str]) -> Batches:
        def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
            for table in tables:
                times = table.column(schemas.N_ROWS).to_numpy()
                rows = table.take(pa.array(np.repeat(np.arange(len(times)), times)))
                changed = {schemas.N_ROWS: np.ones(rows.num_rows, dtype=np.int64)}
                changed["n1"] = rows.column("n1").to_numpy()[::-1]
                for name, values in changed.items():
                    rows = rows.set_column(rows.column_names.index(name), name, pa.array(values))
                yield rows

        tuples = in_order(spark, parts, files=files, first=first)
        return tuples.then(step, tuples.schema)

    monkeypatch.setattr(written, "ordered", turned)
    # Every row as it is, so that there are many tuples.
    policy = small_release.policy("risk", write_table(tmp_path), tmp_path, ("decision.utility_at_least", 5))
    ran = privrisk(policy, "--run-id", "r1", root=tmp_path)
    assert ran.code == 1, ran.err
    assert "and with those that were decided beside it (tuples of labels in other rows" in ran.err
    assert "labels of " not in ran.err.replace("tuples of labels", "")
    assert not (tmp_path / "out" / "manifest.json").exists()
