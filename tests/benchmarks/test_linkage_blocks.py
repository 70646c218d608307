"""The benchmark of blocks measures every search at every size, and tells of no figure where a proof does not hold."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from benchmarks import linkage_blocks
from benchmarks.case_study import BenchmarkError
from privrisk_spark.extensions.attack.kernels.blocked import BlockedFile


def test_every_search_is_measured_at_every_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linkage_blocks, "SIZES", 2)
    found = linkage_blocks.run(rows=250)
    assert [(one.name, one.parameters["rows"]) for one in found] == [
        (name, rows) for name in linkage_blocks.SEARCHES for rows in (250, 500)
    ]
    for one in found:
        assert one.seconds > 0
        assert one.floor_seconds > 0
        assert 0.9 < one.parameters["recall"] <= 1
        assert one.parameters["block_columns"] >= 1
    assert [one.parameters["time_to_linear"] for one in found[::2]] == [1.0] * 3


def test_a_proof_that_does_not_hold_is_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    right = BlockedFile.told

    def wrong(self: BlockedFile, known: Any) -> Any:
        found, complete = right(self, known)
        return replace(found, rows=found.rows + 1), np.ones_like(complete)

    monkeypatch.setattr(BlockedFile, "told", wrong)
    files = linkage_blocks.Files.of(200)
    with pytest.raises(BenchmarkError, match="said to lose nothing"):
        linkage_blocks.beside("a", linkage_blocks.distances(files), files)
    monkeypatch.setattr(linkage_blocks, "COMPARISONS", 1)
    with pytest.raises(BenchmarkError, match="no blocks will do for 200 records"):
        linkage_blocks.beside("a", linkage_blocks.distances(files), files)
