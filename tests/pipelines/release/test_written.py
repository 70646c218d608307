"""What is written is what was decided: the staged files are held against the decisions, not only against the labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import small_release
from product import Privrisk
from small_release import write_table

from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.ledger.ledger import Ledger


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
