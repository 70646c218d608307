"""The benchmark of record linkage compares the kernel with what a lean program finds, and says so where they differ."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from benchmarks import linkage
from benchmarks.case_study import BenchmarkError
from privrisk_spark.extensions.attack.kernels.nearest import Linked, SearchedFile


def test_kernels_and_floors_find_the_same() -> None:
    for part, name in ((linkage.levels, "linkage-levels"), (linkage.numbers, "linkage-numbers")):
        found = part(300)
        assert found.name == name
        assert found.parameters["rows"] == 300
        assert found.seconds > 0
        assert found.floor_seconds > 0


@pytest.mark.parametrize("part", [linkage.levels, linkage.numbers])
def test_another_answer_is_no_figure(part: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    right = SearchedFile.linked

    def wrong(self: SearchedFile, known: Any) -> Linked:
        found = right(self, known)
        return replace(found, rows=found.rows + (found.distance == found.distance.max()))

    monkeypatch.setattr(SearchedFile, "linked", wrong)
    with pytest.raises(BenchmarkError, match="do not find the same"):
        part(100)
