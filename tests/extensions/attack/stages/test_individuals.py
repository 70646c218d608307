from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from privrisk_spark.engine.batches import Batches, Scratch
from privrisk_spark.errors import InputError
from privrisk_spark.extensions.attack.kernels.individuals import lessons
from privrisk_spark.extensions.attack.stages.individuals import collect_held, collect_learned, write_held
from privrisk_spark.extensions.attack.stages.presence import store_classes
from privrisk_spark.extensions.attack.stages.protected import Tuples

CLASSES = Tuples(np.array([[0, 2], [1, 1], [1, 2]], dtype=np.int32), np.array([5, 1, 2]))
ROWS = [
    ("p", 0, 2, 0), ("p", 0, 2, 0), ("p", 0, 2, 1), ("q", 0, 2, 0), ("r", 0, 2, 1),
    ("p", 1, 2, 2), ("s", 1, 2, 2),
    ("t", 5, 5, 0), ("t", -1, -1, 0), ("t", None, 2, 0),
]  # fmt: skip
"""Individual, two nodes, code of a value; nobody is in the second class, and t was not released."""


def frame_of(spark: Any, parts: int) -> Batches:
    columns = list(zip(*random.Random(parts).sample(ROWS, len(ROWS)), strict=True))
    kinds = (pa.string(), pa.int32(), pa.int32(), pa.int32())
    table = pa.table([pa.array(c, k) for c, k in zip(columns, kinds, strict=True)], ["entity", "n0", "n1", "s0"])
    return Batches.of_frame(spark.createDataFrame(table).repartition(parts))


@pytest.mark.parametrize("parts", [1, 7])
def test_collect_held_any_partitions_counts_released_individuals_once(spark: Any, tmp_path: Any, parts: int) -> None:
    scratch = Scratch(spark, tmp_path)
    stored = store_classes(scratch.directory("classes"), CLASSES)
    held = write_held(scratch, frame_of(spark, parts), stored, ["n0", "n1"], "s0", "held")
    found = collect_held(held, most=9, key="table")
    assert (found.places.tolist(), found.individuals, found.holders.tolist()) == ([0, 2], 4, [2, 2, 2])
    assert found.runs.members.tolist() == [3, 2]
    assert (found.runs.value.tolist(), found.runs.count.tolist()) == ([0, 1, 2], [2, 2, 2])
    together = found.together
    pairs = zip(together.owner, together.one, together.other, together.count, strict=True)
    assert list(pairs) == [(0, 0, 1, 1), (0, 1, 0, 1)]
    known = lessons(found.runs, found.together, found.holders, found.individuals, gain_above=1.5)
    learned = collect_learned(held, found, known, scratch.directory("lessons"))
    # Of p and s all of the class hold one value; of q and r the other one is certain of who does not hold the one.
    assert {name: of.correct for name, of in learned.items()} == pytest.approx(
        {"homogeneity": 2, "guess": 1 + 1 + 0.5 + 0.5, "marginal": 2, "external": 4, "background": 4, "skewness": 2}
    )
    assert {of.tried for of in learned.values()} == {4}
    with pytest.raises(InputError, match="table has more than 2 distinct rows"):
        collect_held(held, most=2, key="table")
