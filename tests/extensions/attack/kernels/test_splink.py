"""Our model beside Splink's, by its own comparisons in SQL and its own EM, on the same generated files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest

from privrisk_spark.extensions.attack.kernels.agreement import LevelAgreement, LostWeight
from privrisk_spark.extensions.attack.kernels.fellegi_sunter import LinkageModel, fitted, started
from privrisk_spark.extensions.attack.kernels.patterns import ComparedFile, PatternCounts, digits_of
from privrisk_spark.extensions.attack.kernels.term_frequencies import TermWeight, term_frequencies
from privrisk_spark.hierarchies.hierarchy import Hierarchy

splink = pytest.importorskip("splink", reason="splink is not installed")

N = 400
VALUES = (12, 30, 20, 9)
ERRORS = (0.05, 0.1, 0.15, 0.02)
STEPS = 500
TREES = tuple(Hierarchy.from_paths(f"c{j}", [(f"v{i}", f"w{i // 3}") for i in range(n)]) for j, n in enumerate(VALUES))


def files() -> tuple[np.ndarray, np.ndarray]:
    """The same people twice, with errors; in each file some values are missing (the root)."""
    generator = np.random.default_rng(0)
    known = np.column_stack([generator.integers(0, n, N) for n in VALUES]).astype(np.int32)
    searched = known.copy()
    for j, (n, rate, tree) in enumerate(zip(VALUES, ERRORS, TREES, strict=True)):
        wrong = generator.random(N) < rate
        searched[wrong, j] = generator.integers(0, n, wrong.sum())
        known[generator.random(N) < 0.04, j] = tree.root
        searched[generator.random(N) < 0.04, j] = tree.root
    return known, searched


@pytest.fixture(scope="module")
def ours() -> tuple[PatternCounts, np.ndarray]:
    known, searched = files()
    cells, agreements = [], []
    for j, tree in enumerate(TREES):
        nodes, place = np.unique(searched[:, j], return_inverse=True)
        agreements.append(LevelAgreement(tree.at_depth, nodes))
        cells.append(place.reshape(-1).astype(np.int32))
    one_each = np.ones(N, dtype=np.int64)
    file = ComparedFile(tuple(agreements), np.column_stack(cells), one_each)
    return file.counted(known, one_each), digits_of(file.patterns(known).reshape(-1), file.levels)


def comparison(j: int, u: Sequence[float]) -> dict[str, Any]:
    """Agreement, the group of three, the rest; nothing where a value is missing."""
    left, right = f"c{j}_l", f"c{j}_r"
    levels: list[dict[str, Any]] = [
        {"sql_condition": f"{left} = {right}", "label_for_charts": "agree", "m_probability": 0.9},
        {"sql_condition": f"{left} // 3 = {right} // 3", "label_for_charts": "near", "m_probability": 0.05},
        {"sql_condition": "ELSE", "label_for_charts": "disagree", "m_probability": 0.05},
    ]
    for level, probability in zip(levels, u, strict=True):
        level["u_probability"] = probability
    missing = {"sql_condition": f"{left} IS NULL OR {right} IS NULL", "is_null_level": True, "label_for_charts": "null"}
    return {"output_column_name": f"c{j}", "comparison_levels": [missing, *levels]}


def frame(rows: np.ndarray) -> pd.DataFrame:
    columns: dict[str, Any] = {"unique_id": np.arange(N)}
    for j, tree in enumerate(TREES):
        values = pd.array(rows[:, j], dtype="Int64")
        values[rows[:, j] == tree.root] = pd.NA
        columns[f"c{j}"] = values
    return pd.DataFrame(columns)


def of_splink(
    start: LinkageModel, *, fixed_u: bool, term_frequencies: Sequence[int] = ()
) -> tuple[dict[str, Any], pd.DataFrame]:
    """Parameters and weights by Splink, of all pairs: its own u if it is fixed, else estimated from ours."""
    database = splink.DuckDBAPI()
    comparisons = [comparison(j, u) for j, u in enumerate(start.u)]
    for j in term_frequencies:
        comparisons[j]["comparison_levels"][1] |= {"tf_adjustment_column": f"c{j}", "tf_adjustment_weight": 1.0}
    settings = splink.SettingsCreator(
        link_type="link_only",
        comparisons=comparisons,
        probability_two_random_records_match=1 / N,
        em_convergence=1e-7,
        max_iterations=STEPS,
        blocking_rules_to_generate_predictions=["1=1"],
    )
    both = [database.register(frame(rows), dataset_display_name=name) for rows, name in zip(files(), "ab", strict=True)]
    linker = splink.Linker(both, settings, log_level=None)
    if fixed_u:
        # All pairs: by default it takes no more than suffice for a hundred of each level.
        linker.training.estimate_u_using_random_sampling(max_pairs=1e8, min_count_per_level=None, num_chunks=1)
    linker.training.estimate_parameters_using_expectation_maximisation(
        "1=1",
        estimate_without_term_frequencies=True,
        fix_u_probabilities=fixed_u,
        populate_probability_two_random_records_match_from_trained_values=True,
    )
    scored = linker.inference.predict(threshold_match_probability=0).as_pandas_dataframe()
    model: dict[str, Any] = linker.misc.save_model_to_json()
    return model, scored.sort_values(["unique_id_l", "unique_id_r"], ignore_index=True)


def test_parameters_and_weights_are_those_of_splink(ours: tuple[PatternCounts, np.ndarray]) -> None:
    """Both to within 1e-4, in weights 0.01 bits; the truth they both estimate is farther away.

    With free u; fixed ones are compared with those of the engine 'splink' in
    tests/extensions/attack/stages/test_by_splink.py.
    """
    counts, digits = ours
    start = started(counts, prior=1 / N)
    found = fitted(counts, start, fixed_u=False, tolerance=1e-7, most_steps=STEPS)
    assert found.converged
    assert found.parted
    model, scored = of_splink(start, fixed_u=False)
    assert model["probability_two_random_records_match"] == pytest.approx(found.model.prior, abs=1e-5)
    for j, theirs in enumerate(model["comparisons"]):
        for probability, mine in (("m_probability", found.model.m[j]), ("u_probability", found.model.u[j])):
            told = [level[probability] for level in theirs["comparison_levels"] if not level.get("is_null_level")]
            np.testing.assert_allclose(mine, told, atol=1e-4)
    assert len(scored) == N * N
    for j in range(len(VALUES)):
        assert (scored[f"gamma_c{j}"].to_numpy() == np.array([2, 1, 0, -1])[digits[:, j]]).all()
    weights = found.model.weights_of(digits)
    np.testing.assert_allclose(scored["match_probability"], found.model.posterior(weights), atol=1e-4)
    # Theirs has the prior odds in it. Of a level that nearly no linked pair has, each says that it is impossible.
    odds = np.log2(found.model.prior / (1 - found.model.prior))
    hardly = np.zeros(len(digits), dtype=np.bool_)
    for j, m in enumerate(found.model.m):
        hardly |= np.array([*m, 1.0])[digits[:, j]] < 1e-3
    assert hardly.mean() < 0.1
    np.testing.assert_allclose(scored["match_weight"][~hardly], weights[~hardly] + odds, atol=0.01)


def test_weights_by_term_frequencies_are_those_of_splink(ours: tuple[PatternCounts, np.ndarray]) -> None:
    """In two columns agreement on a value counts by its frequency in both files; the other two are as before."""
    counts, digits = ours
    start = started(counts, prior=1 / N)
    found = fitted(counts, start, fixed_u=True, tolerance=1e-7, most_steps=STEPS)
    _, scored = of_splink(start, fixed_u=True, term_frequencies=(0, 2))
    known, searched = files()
    weights = np.zeros((N, N))
    for j, tree in enumerate(TREES):
        agreement = LevelAgreement(tree.at_depth, searched[:, j])
        plain = LostWeight(agreement, found.model.weights[j])
        if j in (0, 2):
            rows = np.bincount(np.concatenate([known[:, j], searched[:, j]]), minlength=tree.n_nodes)
            frequencies = term_frequencies(tree.at_depth, rows)
            one = TermWeight(agreement, found.model.weights[j], found.model.u[j][0], frequencies)
            weights += one.greatest - one.of(known[:, j])
        else:
            weights += max(found.model.weights[j]) - plain.of(known[:, j])
    hardly = np.zeros(len(digits), dtype=np.bool_)
    for j, m in enumerate(found.model.m):
        hardly |= np.array([*m, 1.0])[digits[:, j]] < 1e-3
    odds = np.log2(found.model.prior / (1 - found.model.prior))
    np.testing.assert_allclose(scored["match_weight"][~hardly], weights.reshape(-1)[~hardly] + odds, atol=0.01)
    unadjusted = found.model.weights_of(digits)
    assert np.abs(weights.reshape(-1) - unadjusted).max() > 0.5
