"""Splink's estimate beside our own, of the same pairs: its comparisons in SQL agree where our hierarchies do."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

from privrisk_spark.errors import EngineError
from privrisk_spark.extensions.attack.kernels.agreement import LevelAgreement, NumberAgreement
from privrisk_spark.extensions.attack.kernels.fellegi_sunter import fitted, started
from privrisk_spark.extensions.attack.kernels.patterns import ComparedFile, PatternCounts
from privrisk_spark.extensions.attack.stages.by_splink import estimated_by_splink
from privrisk_spark.extensions.attack.stages.probabilistic import LevelColumn, NumberColumn
from privrisk_spark.extensions.attack.stages.protected import Tuples
from privrisk_spark.hierarchies.hierarchy import Hierarchy

pytest.importorskip("splink", reason="splink is not installed")

N = 200
TREE = Hierarchy.from_paths("a", [(f"v{i}", f"w{i // 3}", f"x{i // 6}") for i in range(60)])
FLAT = Hierarchy.from_paths("b", [(f"v{i}",) for i in range(40)])
NUMBERS = 30
LOW = np.array([*np.arange(NUMBERS) / 4, -np.inf, 0.2, -np.inf])
HIGH = np.array([*np.arange(NUMBERS) / 4, np.inf, 1.0, 1.0])
"""Thirty numbers, one that may be any, an interval, and all numbers up to one."""
COLUMNS = [LevelColumn(TREE, (2, 1), equal=True), NumberColumn(LOW, HIGH), LevelColumn(FLAT, ()), LevelColumn(TREE)]


def files() -> tuple[Tuples, Tuples]:
    """The same people twice: in the second file a third of the cells is generalized or missing, and a tenth wrong."""
    generator = np.random.default_rng(5)
    kinds = [TREE, None, FLAT, TREE]
    leaves = [NUMBERS if tree is None else tree.n_leaves for tree in kinds]
    true = np.column_stack([generator.integers(0, n, N) for n in leaves]).astype(np.int32)
    shown = true.copy()
    for j, tree in enumerate(kinds):
        wrong = generator.random(N) < 0.1
        shown[wrong, j] = generator.integers(0, leaves[j], wrong.sum())
        coarse = generator.random(N) < 0.3
        shown[coarse, j] = (
            generator.integers(NUMBERS, NUMBERS + 3, coarse.sum()) if tree is None else tree.parent[shown[coarse, j]]
        )
    known, rows = (Tuples(*np.unique(of, axis=0, return_counts=True)) for of in (true, shown))
    return known, rows


def counted(known: Tuples, rows: Tuples, columns: list[Any]) -> PatternCounts:
    agreements: list[Any] = []
    cells = np.empty(rows.nodes.shape, dtype=np.int32)
    for j, column in enumerate(columns):
        nodes, place = np.unique(rows.nodes[:, j], return_inverse=True)
        cells[:, j] = place.reshape(-1)
        if isinstance(column, NumberColumn):
            agreements.append(NumberAgreement(column.low, column.high, nodes, column.within))
        else:
            agreements.append(LevelAgreement(column.hierarchy.at_depth, nodes, column.near, column.equal))
    return ComparedFile(tuple(agreements), cells, rows.rows).counted(known.nodes, known.rows)


@pytest.mark.parametrize(("fixed_u", "fixed_prior"), [(True, True), (False, False)])
def test_splink_estimates_what_our_own_does(
    fixed_u: bool, fixed_prior: bool, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Of equal cells, of those one of which covers the other, of near ones and of numbers; it says nothing of them."""
    known, rows = files()
    counts = counted(known, rows, COLUMNS)
    start = started(counts, prior=1 / N)
    with caplog.at_level(logging.DEBUG):
        found = estimated_by_splink(known, rows, COLUMNS, start, fixed_u=fixed_u, fixed_prior=fixed_prior)
    own = fitted(counts, start, fixed_u=fixed_u, fixed_prior=fixed_prior)
    assert own.converged
    assert found.parted
    assert found.prior == pytest.approx(own.model.prior, rel=1e-3)
    for name in ("m", "u"):
        for theirs, ours in zip(getattr(found, name), getattr(own.model, name), strict=True):
            np.testing.assert_allclose(theirs, ours, atol=1e-4)
    assert not [record for record in caplog.records if record.name.startswith("splink")]
    assert capfd.readouterr() == ("", "")
    assert logging.getLogger("splink").level == logging.NOTSET


def test_levels_that_no_pair_has_and_columns_that_cannot_be_compared_are_no_evidence() -> None:
    """Splink tells of them what it was given to begin with: 0.9 of pairs of one person would agree."""
    known, _ = files()
    known = Tuples(known.nodes[:40], known.rows[:40])
    nodes = known.nodes.copy()
    nodes[:, 0], nodes[:, 2] = TREE.root, 39
    known.nodes[:, 2] %= 39
    rows = Tuples(nodes, known.rows)
    start = started(counted(known, rows, COLUMNS), prior=1 / 40)
    found = estimated_by_splink(known, rows, COLUMNS, start, fixed_u=True, fixed_prior=True)
    assert found.u[2] == found.m[2] == (0.0, 1.0)
    assert found.weights[2] == (0.0, 0.0, 0.0)
    assert found.u[0] == pytest.approx(start.u[0])


def test_what_splink_says_when_it_fails_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    import splink

    def fails(*_: object, **__: object) -> None:
        raise ValueError("'secret' is no number")

    monkeypatch.setattr(splink, "Linker", fails)
    known, rows = files()
    start = started(counted(known, rows, COLUMNS))
    with pytest.raises(EngineError, match=r"could not estimate the model \(ValueError\)") as told:
        estimated_by_splink(known, rows, COLUMNS, start, fixed_u=True, fixed_prior=True)
    assert "secret" not in str(told.value)
    assert told.value.__suppress_context__
