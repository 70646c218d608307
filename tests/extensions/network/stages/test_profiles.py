"""What two profiles have in common, at values of different depth and missing ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from privrisk_spark.extensions.network.stages.profiles import store_trees
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.storage.parts import LocalParts

CITY = Hierarchy.from_paths("city", [("Ulm", "south"), ("Kiel", "coast", "north"), ("Bonn", "inland", "north")])
SEX = Hierarchy.from_paths("sex", [("F",), ("M",)])


def test_agreements_are_least_levels_that_cover_the_other(tmp_path: Path) -> None:
    trees = store_trees(LocalParts(str(tmp_path)), {"city": CITY, "sex": SEX}).load()
    code = {label: CITY.code_of[label] for label in ("Ulm", "Kiel", "Bonn")} | {None: CITY.n_leaves}
    values = list(code)
    left = np.array([[code[a], 0] for a in values for _ in values], dtype=np.int32)
    right = np.array([[code[b], SEX.n_leaves] for _ in values for b in values], dtype=np.int32)
    found = trees.agreements(left, right)
    assert found[:, 1].tolist() == [1] * 16, "a missing value is covered by the root alone"
    for (a, b), level in zip(((a, b) for a in values for b in values), found[:, 0].tolist(), strict=True):
        row = CITY.ancestor[code[a]]
        covers = [x for x in range(CITY.height + 1) if row[x] == CITY.root or (
            b is not None and CITY.first_leaf[row[x]] <= code[b] < CITY.last_leaf[row[x]])]  # fmt: skip
        assert level == min(covers), (a, b)
    assert trees.levels(left)[:, 0].tolist() == [depth for depth in (2, 3, 3, 0) for _ in values]
