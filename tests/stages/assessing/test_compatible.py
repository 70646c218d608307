"""What classes are compatible with, whatever the buckets, against every pair of rows compared."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from naive_records import layouts, parts_of

from privrisk_spark.engine.batches import Batches, Scratch
from privrisk_spark.errors import InputError
from privrisk_spark.stages.assessing.classes import Layout, count_rows, read_bucket
from privrisk_spark.stages.assessing.compatible import Overlap, collect_compatible

LAYOUT = Layout((6, 4, 3), weighted=True)
ROOTS = (5, 3, 2)

Row = tuple[int, ...]


def rows_of(n: int) -> list[Row]:
    pick = random.Random(8)
    nodes = [tuple(root if pick.random() < 0.3 else pick.randrange(root // 2 + 1) for root in ROOTS) for _ in range(n)]
    return [(*one, 1, pick.choice([0, 250_000, 1_000_000])) for one in [ROOTS, ROOTS, *nodes]]


def compatible(overlap: Overlap) -> Callable[[Row, Row], bool]:
    def of(one: Row, other: Row) -> bool:
        lost = [row[:3] == ROOTS for row in (one, other)]
        if any(lost) and overlap.suppressed == "compatible":
            return True
        if any(lost) and overlap.suppressed == "apart":
            return one[:3] == other[:3]
        return all(
            a == b or (i in overlap.wild and root in (a, b))
            for i, (a, b, root) in enumerate(zip(one, other, ROOTS, strict=False))
        )

    return of


@pytest.mark.parametrize(
    "overlap", [Overlap((0, 2)), Overlap((0, 1, 2), "apart"), Overlap((), "compatible"), Overlap((1,), "compatible")]
)
@pytest.mark.parametrize("buckets", [1, 5])
def test_crowds_whatever_the_buckets(spark: Any, tmp_path: Path, overlap: Overlap, buckets: int) -> None:
    rows = rows_of(60)
    (_, frame, _) = layouts(spark, rows, LAYOUT.schema)
    scratch = Scratch(spark, tmp_path)
    directory, target = scratch.directory("counted"), scratch.directory("compatible")
    parts = parts_of(count_rows(Batches.of_frame(frame), LAYOUT, buckets, directory))
    assert sum(part["suppressed"] for part in parts) == sum(row[:3] == ROOTS for row in rows)
    for i, root in enumerate(ROOTS):
        assert sum(part["at_root"][i] for part in parts) == sum(row[i] == root for row in rows)
    names = [part["name"] for part in parts]
    completed = collect_compatible(
        scratch, directory, names, buckets, LAYOUT, overlap, most=len(set(rows)), target=target
    )
    alike, found = compatible(overlap), {}
    for bucket in range(buckets):
        classes = completed(read_bucket(directory, names, bucket, LAYOUT), bucket)
        assert classes.compatible is not None
        assert classes.compatible_millionths is not None
        amounts = zip(classes.compatible.tolist(), classes.compatible_millionths.tolist(), strict=True)
        found |= dict(zip(map(tuple, classes.nodes.tolist()), amounts, strict=True))
    expected = {}
    for one in rows:
        fellows = [row for row in rows if alike(one, row)]
        expected[one[:3]] = (len(fellows), sum(row[4] for row in fellows))
    assert found == expected


def test_more_classes_than_a_task_may_hold_are_refused(spark: Any, tmp_path: Path) -> None:
    scratch = Scratch(spark, tmp_path)
    directory, target = scratch.directory("counted"), scratch.directory("compatible")
    (_, frame, _) = layouts(spark, rows_of(60), LAYOUT.schema)
    names = [part["name"] for part in parts_of(count_rows(Batches.of_frame(frame), LAYOUT, 3, directory))]
    with pytest.raises(InputError, match=r"counting\.sorted_vectors: there are more than 4 distinct records"):
        collect_compatible(scratch, directory, names, 3, LAYOUT, Overlap((0,)), most=4, target=target)
