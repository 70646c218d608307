from __future__ import annotations

import base64
import hashlib
import math
import random
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from naive_records import ROOT, Node, generalized, leaves_of, parts_of, path, policy_of, quasi, together
from parts import at
from pyspark.sql import functions as F
from scipy import stats

import privrisk_spark.stages.private.scheme_cells
from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import Batches, Scratch, materialized
from privrisk_spark.engine.decided import Decided
from privrisk_spark.kernels.dp import scheme_cells as kernel
from privrisk_spark.kernels.random import keyed
from privrisk_spark.kernels.random.discrete_gaussian import Admission
from privrisk_spark.kernels.random.discrete_laplace import LaplaceAdmission
from privrisk_spark.ledger.calibrated import Drawing, LocalSchemes, PublicCells
from privrisk_spark.planning.calibration import mechanism
from privrisk_spark.planning.dictionaries import axes
from privrisk_spark.planning.disclosure import node_utilities, sensitivity
from privrisk_spark.policy.private import AggregateObjective, ThresholdObjective
from privrisk_spark.stages.counting.dense_sorted import count_and_store
from privrisk_spark.stages.deciding.decide import Conclusion, conclude, decided
from privrisk_spark.stages.private.crowds import crowd_histogram
from privrisk_spark.stages.private.release_keys import ReleaseKeys, one_row_each
from privrisk_spark.stages.private.sampling import AdmittedSet, PublicCounts, Recoding, admitted_cells, drawing
from privrisk_spark.stages.private.scheme_cells import collect_cells
from privrisk_spark.tables.opening import collect_hierarchies

PLACE = {"*": ["z", {"north": ["a", "b", {"far": ["c"]}]}, {"south": [{"deep": ["d", "e"]}, "f"]}]}
SEX = {"*": ["u", "v"]}
TREES = {"place": PLACE, "sex": SEX}
LEAVES = {name: leaves_of(tree["*"]) for name, tree in TREES.items()}
SCHEMES = [(0, 0), (1, 0), (2, 1), (1, 1), (3, 0)]
KEYS = ReleaseKeys.derive(bytes(range(32)), run_id="r", snapshot="s", mechanism="m")
OTHER_KEYS = ReleaseKeys.derive(bytes(range(32)), run_id="r", snapshot="another", mechanism="m")


def recoding_of(
    *, noise: str = "gaussian", frequent: int | None = None, crowd: int | None = None, public: bool = False
) -> tuple[Recoding, Any]:
    objective = {"phi_min": 0.5, "lambda": 0.02, "kappa": 1.5, "tau": 1.25, "count_cap": 60}
    policy = policy_of(
        {name: quasi({"tree": tree}) for name, tree in TREES.items()},
        risk={"model": "I", "sensitivity": {"form": "linear", "weights": {"place": 2, "sex": 1}}},
        guarantee={
            "kind": "dp",
            "epsilon": {"admit": "0.5", "keep": "0.7"},
            "delta": "1e-7",
            "noise": noise,
            "public_rows": 1000,
            "schemes": [list(scheme) for scheme in SCHEMES],
            "objective": objective,
        },
        ledger={"url": "sqlite://", "lineage": "l", "cap": {"epsilon": 9, "delta": "1e-5"}},
    )
    hierarchies = collect_hierarchies(policy, None, None)  # type: ignore[arg-type] - every leaf is declared
    plan = mechanism(policy, hierarchies)
    assert isinstance(plan, LocalSchemes)
    changes = {"least": frequent, "crowd": crowd}
    plan = plan.model_copy(update={name: value for name, value in changes.items() if value is not None})
    if public:
        plan = PublicCells(**{name: getattr(plan, name) for name in PublicCells.model_fields if name != "mode"})
    recoding = Recoding(
        ancestor=tuple(h.ancestor for h in hierarchies.values()),
        code_depth=tuple(axis.code_depth for axis in axes(policy, hierarchies)),
        utility=node_utilities(policy, hierarchies),
        sensitivity=sensitivity(policy.risk.sensitivity, hierarchies),
        mechanism=plan,
    )
    return recoding, hierarchies


RECODING, HIERARCHIES = recoding_of(frequent=40, crowd=12)
PLACES, SEXES = HIERARCHIES.values()


def node_of_code(hierarchy: Any, code: int) -> Node:
    return ROOT if code == hierarchy.n_leaves else path(hierarchy, code)


def number_of(hierarchy: Any, node: Node) -> int:
    return next(n for n in range(hierarchy.n_nodes) if path(hierarchy, n) == node)


def cell_of(codes: tuple[int, int], scheme: tuple[int, ...]) -> tuple[Node, ...]:
    return tuple(
        generalized(node_of_code(h, c), level) for h, c, level in zip(HIERARCHIES.values(), codes, scheme, strict=True)
    )


def cells_as_nodes(rows: list[dict[str, Any]], value: str) -> Counter[tuple[int, tuple[Node, ...]]]:
    found: Counter[tuple[int, tuple[Node, ...]]] = Counter()
    for row in rows:
        cell = tuple(path(h, row[f"n{i}"]) for i, h in enumerate(HIERARCHIES.values()))
        assert (row["scheme"], cell) not in found
        found[row["scheme"], cell] = row[value]
    return found


def encoded(spark: Any, codes: np.ndarray, order: np.ndarray, partitions: int) -> Any:
    """ENCODED rows ``i`` with id ``record-i`` in a given order and number of partitions."""
    ids = [f"record-{i}" for i in order]
    blocks = [hashlib.sha256(text.encode()).digest()[:16] for text in ids]
    arrays = [pa.array(ids), pa.array(blocks, type=pa.binary())]
    arrays += [pa.array(codes[order, i], type=pa.int32()) for i in range(2)]
    schema = "record_id string, block binary, q0 int, q1 int"
    frame = spark.createDataFrame(pa.Table.from_arrays(arrays, names=["record_id", "block", "q0", "q1"]), schema)
    return frame.coalesce(1) if partitions == 1 else frame.repartition(partitions)


def recode(frame: Any, recoding: Recoding, admissible: Any, keys: ReleaseKeys) -> Any:
    """DECIDED of a whole frame."""
    return decided(Batches.of_frame(frame), drawing(recoding, admissible, keys), k=2).frame()


# ------------------------------------------------------------------------------------------ one row a person


def of_persons(spark: Any, persons: list[str | None], order: np.ndarray, partitions: int) -> Batches:
    """ENCODED rows ``i`` of persons; the first code is the row's number."""
    codes = np.column_stack([np.arange(len(persons)), np.zeros(len(persons))]).astype(np.int32)
    frame = encoded(spark, codes, order, 1).toArrow()
    who = pa.array([persons[i] for i in order], pa.string())
    table = frame.append_column("entity", who)
    schema = "record_id string, block binary, q0 int, q1 int, entity string"
    rows = spark.createDataFrame(table, schema)
    return Batches.of_frame(rows.coalesce(1) if partitions == 1 else rows.repartition(partitions))


PERSONS: list[str | None] = [*(f"p{i // 3}" for i in range(3000)), None, None, None, "", "", "alone"]


@pytest.fixture(scope="module")
def one_each(spark):
    generator = np.random.default_rng(5)
    frames = [
        one_row_each(of_persons(spark, PERSONS, generator.permutation(len(PERSONS)), partitions), keys)
        for keys, partitions in ((KEYS, 1), (KEYS, 4), (KEYS, 11), (OTHER_KEYS, 4))
    ]
    fewer = [person for person in PERSONS if person not in ("p0", "p7", "")]
    numbers = [i for i, person in enumerate(PERSONS) if person not in ("p0", "p7", "")]
    whole = of_persons(spark, PERSONS, np.array(numbers), 3)
    assert len(fewer) == len(numbers)
    frames.append(one_row_each(whole, KEYS))
    assert all(frame.columns == ["record_id", "block", "q0", "q1"] for frame in frames)
    return [sorted(row["q0"] for row in rows) for rows in together(frames)]


def test_one_row_of_each_person_whatever_the_layout(one_each):
    one, four, eleven, other, fewer = one_each
    assert one == four == eleven
    persons = [PERSONS[i] for i in one]
    assert Counter(persons) == Counter({**dict.fromkeys(PERSONS, 1), None: 3}), "who names nobody is a person"
    blocks = np.array(
        [list(hashlib.sha256(f"record-{i}".encode()).digest()[:16]) for i in range(len(PERSONS))], np.uint8
    )
    words = keyed.prf(KEYS.person, keyed.record_messages(blocks))
    of_person: dict[Any, list[tuple[bytes, int]]] = {}
    for i, person in enumerate(PERSONS):
        drawn = int(words[i, 0]).to_bytes(8, "little") + int(words[i, 1]).to_bytes(8, "little")
        of_person.setdefault((i,) if person is None else person, []).append((drawn, i))
    assert one == sorted(min(rows)[1] for rows in of_person.values()), "the smallest keyed function"
    # A person less changes nothing for the others.
    assert fewer == [i for i in one if PERSONS[i] not in ("p0", "p7", "")]
    assert other != one


def test_which_row_of_a_person_is_drawn_is_uniform(one_each):
    one, _, _, other, _ = one_each
    for rows in (one, other):
        place = np.bincount([i % 3 for i in rows if i < 3000], minlength=3)
        assert stats.chisquare(place).pvalue > 1e-3
    # Two keys agree on a third of the persons.
    both = len({i for i in one if i < 3000} & {i for i in other if i < 3000})
    assert abs(both - 1000 / 3) < 4 * math.sqrt(1000 * 2 / 9)


# ------------------------------------------------------------------------------------------ admission


def cells_of(spark: Any, rows: Any, directory: Path) -> Batches:
    """CELLS with exact counts."""
    directory.mkdir()
    return collect_cells(Scratch(spark, directory), Batches.of_frame(rows), RECODING.ancestor, SCHEMES)


@pytest.mark.parametrize("changed", [{}, {"DENSE_CELLS": 0}, {"ROWS_HELD": 7, "_MARK": 2, "CELLS_PER_TASK": 4}])
def test_scheme_cells_are_exact_at_every_layout(spark, tmp_path, monkeypatch, changed):
    """Also sorted instead of dense, and in many small parts and ranges. Planted: ranges that share a bound."""
    for name, value in changed.items():
        monkeypatch.setattr(
            kernel if name == "DENSE_CELLS" else privrisk_spark.stages.private.scheme_cells, name, value
        )
    pick = random.Random(3)
    rows = [(pick.randrange(PLACES.n_leaves + 1), pick.randrange(SEXES.n_leaves + 1)) for _ in range(60)]
    frames = []
    for partitions in (1, 4, 11):
        pick.shuffle(rows)
        frame = spark.createDataFrame(rows, "q0 int, q1 int")
        frame = frame.coalesce(1) if partitions == 1 else frame.repartition(partitions)
        frames.append(cells_of(spark, frame, tmp_path / str(partitions)).frame())
    assert [(f.name, f.dataType) for f in frames[0].schema] == [
        (f.name, f.dataType) for f in schemas.cells(2, noisy=False)
    ]
    wanted = Counter((j, cell_of(codes, scheme)) for j, scheme in enumerate(SCHEMES) for codes in rows)
    for found in together(frames):
        assert cells_as_nodes(found, "n_rows") == wanted
    if not changed:
        empty = cells_of(spark, spark.createDataFrame([], "q0 int, q1 int"), tmp_path / "empty")
        assert empty.frame().toArrow().num_rows == 0


def noisy_cells(spark: Any, recoding: Recoding, keys: ReleaseKeys, partitions: int, n: int) -> Any:
    cells = spark.range(2 * n).select(
        (F.col("id") % 2).cast("int").alias("scheme"),
        F.floor(F.col("id") / 2).cast("int").alias("n0"),
        F.lit(0).alias("n1"),
        F.lit(1000).cast("long").alias("n_rows"),
    )
    cells = cells.coalesce(1) if partitions == 1 else cells.repartition(partitions)
    return admitted_cells(Batches.of_frame(cells), recoding, keys).frame()


def moments(admission: Any) -> tuple[float, float]:
    """Variance of the noise, and its fourth central moment."""
    if isinstance(admission, Admission):
        return admission.sigma_squared, 3 * admission.sigma_squared**2
    y = np.arange(-60 * math.ceil(admission.scale), 60 * math.ceil(admission.scale) + 1)
    law = np.exp(-np.abs(y) / float(admission.scale))
    return tuple(float((law * y**power).sum() / law.sum()) for power in (2, 4))  # type: ignore[return-value]


@pytest.mark.parametrize("asked", ["gaussian", "laplace"])
def test_noise_is_a_function_of_key_and_cell_with_the_right_moments(spark, asked):
    """20,000 cells under fixed keys: bounds of 4 standard errors, which a Gaussian scale 5 % off would exceed."""
    n = 10_000
    everything, _ = recoding_of(noise=asked, frequent=-(10**6))
    assert isinstance(everything.mechanism.admission, Admission if asked == "gaussian" else LaplaceAdmission)
    variance, fourth = moments(everything.mechanism.admission)
    frames = [noisy_cells(spark, everything, KEYS, partitions, n) for partitions in (1, 4, 11)]
    frames.append(noisy_cells(spark, everything, OTHER_KEYS, 4, n))
    assert frames[0].schema == schemas.cells(2, noisy=True)
    noise = np.zeros((4, 2, n), dtype=np.int64)
    for i, frame in enumerate(frames):
        table = frame.toArrow()
        assert table.num_rows == 2 * n
        noise[i, table["scheme"].to_numpy(), table["n0"].to_numpy()] = table["noisy"].to_numpy() - 1000
    assert np.array_equal(noise[0], noise[1])
    assert np.array_equal(noise[0], noise[2])
    for sample in (noise[0], noise[3]):
        flat = sample.ravel()
        assert abs(flat.mean()) < 4 * math.sqrt(variance / flat.size)
        assert abs(flat.var() / variance - 1) < 4 * math.sqrt((fourth / variance**2 - 1) / flat.size)
    # Another key, and the same nodes under another scheme, have unrelated noise.
    pairs = [(noise[0].ravel(), noise[3].ravel()), (noise[0, 0], noise[0, 1])]
    for one, other in pairs:
        assert abs(np.corrcoef(one, other)[0, 1]) < 4 / math.sqrt(one.size)
        assert (one == other).mean() < 0.1


def test_cells_below_t_after_noise_are_not_admitted(spark):
    sigma = math.sqrt(RECODING.mechanism.admission.sigma_squared)  # type: ignore[union-attr]
    threshold = round(1000 + sigma)
    strict, _ = recoding_of(frequent=threshold)
    everything, _ = recoding_of(frequent=-(10**6))
    passed, all_cells = together([noisy_cells(spark, r, KEYS, 4, 400) for r in (strict, everything)])
    noisy = {(r["scheme"], r["n0"]): r["noisy"] for r in all_cells}
    assert {(r["scheme"], r["n0"]): r["noisy"] for r in passed} == {c: z for c, z in noisy.items() if z >= threshold}
    assert 0 < len(passed) < len(all_cells)


# ------------------------------------------------------------------------------------------ recoding


THETA: dict[int, dict[tuple[Node, ...], int]] = {
    0: {(("z",), ("u",)): 45, (("north", "a"), ("v",)): 50},
    1: {(("north",), ("u",)): 90, (("south", "deep"), ("u",)): 41, (("south",), ("v",)): -3, (ROOT, ("v",)): 47},
    2: {(("south",), ROOT): 52, (("north",), ROOT): 44, (ROOT, ROOT): 400},
    3: {(("north",), ROOT): 61, (("south", "deep"), ROOT): 43},
    4: {(ROOT, ("u",)): 300},
}
"""Admitted cells by scheme with noisy counts; one noisy count is negative, one exceeds the cap."""


def admitted_set(spark: Any) -> AdmittedSet:
    rows = [
        (j, number_of(PLACES, place), number_of(SEXES, sex), noisy)
        for j, cells in THETA.items()
        for (place, sex), noisy in cells.items()
    ]
    random.Random(1).shuffle(rows)
    frame = spark.createDataFrame(rows, schemas.cells(2, noisy=True)).repartition(3)
    return AdmittedSet.collect_cells(frame, RECODING)


def leaves_under(name: str, node: Node) -> int:
    return sum(leaf[: len(node)] == node for leaf in LEAVES[name].values())


def literal_law(codes: tuple[int, int], *, tau: float) -> dict[tuple[tuple[Node, ...], int], float]:
    """(5.4) read literally: probability of every (cell, noisy count) above a record."""
    assert isinstance(RECODING.mechanism, Drawing)
    objective = RECODING.mechanism.objective
    assert isinstance(objective, AggregateObjective)
    cap = RECODING.mechanism.count_cap

    def score(cell: tuple[Node, ...], z: int) -> float:
        phi = sum(
            weight / leaves_under(name, node)
            for (name, weight), node in zip({"place": 2, "sex": 1}.items(), cell, strict=True)
            if node != ROOT
        )
        utility = sum(len(node) for node in cell)
        return objective.lambda_ * min(z, cap) / max(phi, objective.phi_min) + utility**objective.kappa

    options = [(cell_of(codes, scheme), THETA[j]) for j, scheme in enumerate(SCHEMES)]
    scored = [(cell, theta[cell], score(cell, theta[cell])) for cell, theta in options if cell in theta]
    scored.append(((ROOT, ROOT), cap, score((ROOT, ROOT), cap)))
    most = max(s for _, _, s in scored)
    weights: Counter[tuple[tuple[Node, ...], int]] = Counter()
    for cell, z, s in scored:
        weights[cell, z] += math.exp(tau * (s - most))  # type: ignore[assignment]
    total = sum(weights.values())
    return {outcome: weight / total for outcome, weight in weights.items()}


TYPES = [(p, s) for p in range(PLACES.n_leaves + 1) for s in range(SEXES.n_leaves + 1)]
N = 12_000


@pytest.fixture(scope="module")
def recoded(spark):
    """12,000 records of 24 kinds, recoded at three layouts and under another key; rows in the order of the records."""
    generator = np.random.default_rng(11)
    codes = np.array(TYPES, dtype=np.int32)[generator.integers(len(TYPES), size=N)]
    theta = admitted_set(spark)
    assert theta.sizes == [len(cells) for cells in THETA.values()]
    drawn = []
    for keys, partitions in ((KEYS, 1), (KEYS, 4), (KEYS, 11), (OTHER_KEYS, 4)):
        frame = encoded(spark, codes, generator.permutation(N), partitions)
        result = recode(frame, RECODING, theta, keys)
        wanted = schemas.decided(frame.schema, 2)
        assert [(f.name, f.dataType) for f in result.schema] == [(f.name, f.dataType) for f in wanted]
        table = result.toArrow()
        order = np.argsort([int(text.removeprefix("record-")) for text in table["record_id"].to_pylist()])
        assert table.num_rows == N
        drawn.append(table.take(pa.array(order)))
    return codes, drawn


def test_draws_do_not_depend_on_the_layout_but_on_the_key(recoded):
    _, (one, four, eleven, other) = recoded
    assert one.combine_chunks().equals(four.combine_chunks())
    assert one.combine_chunks().equals(eleven.combine_chunks())
    for name in ("n0", "n1", "kept"):
        assert not one.column(name).equals(other.column(name))
    beta = RECODING.mechanism.keep_numerator / 2**32
    both = (one["kept"].to_numpy() & other["kept"].to_numpy()).sum()
    assert abs(both - N * beta**2) < 4 * math.sqrt(N * beta**2 * (1 - beta**2))


def test_the_kept_share_is_that_of_the_certificate(recoded):
    codes, (one, _, _, other) = recoded
    beta = RECODING.mechanism.keep_numerator / 2**32
    for table in (one, other):
        kept = table["kept"].to_numpy()
        assert abs(kept.sum() - N * beta) / math.sqrt(N * beta * (1 - beta)) < 4
        # Nor does keeping a record depend on what was drawn for it.
        drawn = table["n0"].to_numpy() * 100 + table["n1"].to_numpy()
        kinds = np.unique(np.column_stack([codes, drawn]), axis=0, return_inverse=True)[1]
        of_kind = np.bincount(kinds)
        busy = of_kind >= 50
        z = (np.bincount(kinds, weights=kept) - of_kind * beta) / np.sqrt(of_kind * beta * (1 - beta))
        assert stats.chi2.sf((z[busy] ** 2).sum(), busy.sum()) > 1e-4


def chi_square(recoded: Any, which: int, tau: float) -> float:
    """Upper tail probability of the drawn outcomes under the law at tau; every outcome must be possible."""
    _, tables = recoded
    table = tables[which]
    numbers = [table[name].to_numpy() for name in ("q0", "q1", "n0", "n1", "consistent")]
    found: dict[tuple[int, int], Counter[Any]] = {kind: Counter() for kind in TYPES}
    for q0, q1, n0, n1, noisy in zip(*numbers, strict=True):
        found[q0, q1][(path(PLACES, n0), path(SEXES, n1)), int(noisy)] += 1
    statistic, freedom = 0.0, 0
    for kind, outcomes in found.items():
        law = literal_law(kind, tau=tau)
        assert set(outcomes) <= set(law), "an outcome that is neither an admitted cell nor the root"
        n = sum(outcomes.values())
        rare = [o for o, p in law.items() if n * p < 5]
        cells = [(outcomes[o], n * p) for o, p in law.items() if o not in rare]
        if rare:
            cells.append((sum(outcomes[o] for o in rare), n * sum(law[o] for o in rare)))
        cells = [(seen, expected) for seen, expected in cells if expected > 0.5]
        statistic += sum((seen - expected) ** 2 / expected for seen, expected in cells)
        freedom += len(cells) - 1
    assert freedom > 40
    return float(stats.chi2.sf(statistic, freedom))


def test_the_draw_follows_the_exponential_law_and_no_other(recoded):
    tau = RECODING.mechanism.objective.tau
    assert chi_square(recoded, 0, tau) > 1e-4
    assert chi_square(recoded, 3, tau) > 1e-4
    assert chi_square(recoded, 0, 0.7 * tau) < 1e-9
    assert chi_square(recoded, 0, 1.3 * tau) < 1e-9


def threshold_law(codes: tuple[int, int], floor: float, tau: float) -> dict[tuple[tuple[Node, ...], int], float]:
    """Minus the risk Φ/z among admitted cells of enough utility, read literally; suppression where there are none."""
    cap = RECODING.mechanism.count_cap
    scored: dict[tuple[tuple[Node, ...], int], list[float]] = {}
    for j, scheme in enumerate(SCHEMES):
        cell = cell_of(codes, scheme)
        if cell in THETA[j] and sum(map(len, cell)) >= floor:
            phi = sum(
                weight / leaves_under(name, node)
                for (name, weight), node in zip({"place": 2, "sex": 1}.items(), cell, strict=True)
                if node != ROOT
            )
            scored.setdefault((cell, THETA[j][cell]), []).append(-phi / min(THETA[j][cell], cap))
    if not scored:
        return {((ROOT, ROOT), cap): 1.0}
    weights = {outcome: sum(math.exp(tau * s) for s in scores) for outcome, scores in scored.items()}
    return {outcome: weight / sum(weights.values()) for outcome, weight in weights.items()}


def test_the_threshold_objective_draws_by_risk_among_those_of_enough_utility(spark):
    floor, tau = 1.0, 30.0
    plan = RECODING.mechanism
    asked = ThresholdObjective(kind="threshold", utility_at_least=floor, tau=tau, count_cap=plan.count_cap)
    recoding = replace(RECODING, mechanism=plan.model_copy(update={"objective": asked}))
    generator = np.random.default_rng(12)
    codes = np.array(TYPES, dtype=np.int32)[generator.integers(len(TYPES), size=N)]
    drawn = recode(encoded(spark, codes, np.arange(N), 4), recoding, admitted_set(spark), KEYS).toArrow()
    found: dict[tuple[int, int], Counter[Any]] = {kind: Counter() for kind in TYPES}
    for q0, q1, n0, n1, noisy in zip(
        *(drawn[name].to_numpy() for name in ("q0", "q1", "n0", "n1", "consistent")), strict=True
    ):
        found[q0, q1][(path(PLACES, n0), path(SEXES, n1)), int(noisy)] += 1

    def tail(tau: float) -> float:
        statistic, freedom = 0.0, 0
        for kind, outcomes in found.items():
            law = threshold_law(kind, floor, tau)
            assert set(outcomes) <= set(law)
            n = sum(outcomes.values())
            statistic += sum((outcomes[o] - n * p) ** 2 / (n * p) for o, p in law.items() if n * p > 5)
            freedom += sum(n * p > 5 for p in law.values()) - 1
        assert freedom > 5
        return float(stats.chi2.sf(statistic, freedom))

    assert any(law.keys() == {((ROOT, ROOT), plan.count_cap)} for law in (threshold_law(k, floor, tau) for k in TYPES))
    assert tail(tau) > 1e-4
    assert tail(0.7 * tau) < 1e-6
    assert tail(1.4 * tau) < 1e-6


def test_identical_rows_draw_apart_and_levels_fit_nodes(recoded):
    codes, (table, *_) = recoded
    nodes = np.column_stack([table["n0"].to_numpy(), table["n1"].to_numpy()])
    levels = np.column_stack([table["l0"].to_numpy(), table["l1"].to_numpy()])
    kept = table["kept"].to_numpy()
    for kind in TYPES:
        same = (codes == kind).all(axis=1)
        assert same.sum() > 300
        assert 0 < kept[same].sum() < same.sum()
        if len({cell for cell, _ in literal_law(kind, tau=1.0)}) > 1:
            assert len(np.unique(nodes[same], axis=0)) > 1
    for (q0, q1), (n0, n1), (l0, l1) in set(zip(map(tuple, codes), map(tuple, nodes), map(tuple, levels), strict=True)):
        for h, q, n, level in ((PLACES, q0, n0, l0), (SEXES, q1, n1, l1)):
            leaf = node_of_code(h, int(q))
            assert path(h, int(n)) == generalized(leaf, int(level))
            assert level <= len(leaf)
    assert not table["utility"].to_numpy().min() < 0
    assert np.isfinite(table["risk"].to_numpy()).all()
    assert np.isfinite(table["risk_before"].to_numpy()).all()


def conclusion_in(directory: Path) -> Conclusion:
    return Conclusion(
        decisions=at(directory / "decisions"),
        tuples=at(directory / "tuples"),
        members=at(directory / "members"),
        record_id="id",
        attributes=tuple(HIERARCHIES),
        roots=tuple(h.root for h in HIERARCHIES.values()),
        heights=tuple(h.height for h in HIERARCHIES.values()),
        method="global",
    )


def tuples_of(spark: Any, frame: Any, decide_chunk: Any, directory: Path) -> Any:
    """TUPLES as the tasks that draw leave them."""
    conclusion, rows = conclusion_in(directory), Batches.of_frame(frame)
    parts = parts_of(conclude(rows, decide_chunk, conclusion))
    assert sum(part["tuple_rows"] for part in parts) > 0
    names = [part["tuples"] for part in parts if part["tuples"]]
    return materialized(spark, conclusion.tuples, names, schemas.tuples(rows.schema, 2)).frame()


def test_the_histogram_has_no_tuple_below_the_crowd(spark, tmp_path, recoded):
    codes, (table, *_) = recoded
    tuples = Counter(zip(*[table.filter(table["kept"])[name].to_pylist() for name in ("n0", "n1")], strict=True))
    exactly = sorted(tuples.values())[-2]
    frames = []
    read_back = partial(Decided.of_columns, k=2)
    for crowd, partitions in ((60, 1), (60, 4), (60, 11), (max(tuples.values()) + 1, 4), (exactly, 2)):
        frame = spark.createDataFrame(table).repartition(partitions)
        found = tuples_of(spark, frame, read_back, tmp_path / f"{crowd}-{partitions}")
        assert found.columns == ["n0", "n1", "n_rows"]
        frames.append(crowd_histogram(found, k=2, crowd=crowd))
    # Drawn in the very tasks that count, too.
    drawn = drawing(RECODING, admitted_set(spark), KEYS)
    rows = encoded(spark, codes, np.arange(N), 4)
    frames.append(crowd_histogram(tuples_of(spark, rows, drawn, tmp_path / "drawn"), k=2, crowd=60))
    assert frames[0].columns == ["n0", "n1", "n_rows"]
    wanted = {cell: n for cell, n in tuples.items() if n >= 60}
    assert 0 < len(wanted) < len(tuples)
    one, four, eleven, none, two, drawn_rows = together(frames)
    for rows_of in (one, four, eleven, drawn_rows):
        assert {(r["n0"], r["n1"]): r["n_rows"] for r in rows_of} == wanted
        assert len(rows_of) == len(wanted)
    assert none == []
    assert sorted(r["n_rows"] for r in two) == sorted(tuples.values())[-2:]


def test_without_admitted_cells_everything_is_suppressed(spark):
    theta = AdmittedSet.collect_cells(spark.createDataFrame([], schemas.cells(2, noisy=True)), RECODING)
    assert theta.sizes == [0] * len(SCHEMES)
    codes = np.array(TYPES, dtype=np.int32)
    table = recode(encoded(spark, codes, np.arange(len(TYPES)), 2), RECODING, theta, KEYS).toArrow()
    assert set(table["n0"].to_pylist()) == {PLACES.root}
    assert set(table["n1"].to_pylist()) == {SEXES.root}
    assert recode(encoded(spark, codes, np.arange(0), 2), RECODING, theta, KEYS).toArrow().num_rows == 0


def test_public_counts_admit_by_consistent_rows(spark, tmp_path):
    """A public dictionary: t-frequent cells by the count itself, no noise; the same law with those counts."""
    public, hierarchies = recoding_of(frequent=3, public=True)
    policy = policy_of({name: quasi({"tree": tree}) for name, tree in TREES.items()})
    a, d, u, v = (number_of(h, n) for h, n in [(PLACES, ("north", "a")), (PLACES, ("south", "deep", "d")),
                                               (SEXES, ("u",)), (SEXES, ("v",))])  # fmt: skip
    vectors = np.array([(a, u), (a, v), (d, u)], dtype=np.int32)
    stored = count_and_store("dense", axes(policy, hierarchies), vectors, np.array([2, 3, 1]), at(tmp_path / "c"))
    codes = np.array([(a, u)] * 60 + [(a, v)] * 60 + [(d, u)] * 60, dtype=np.int32)
    table = recode(encoded(spark, codes, np.arange(180), 4), public, PublicCounts(stored), KEYS).toArrow()
    found: dict[tuple[int, int], set[Any]] = {}
    for row in table.to_pylist():
        outcome = (path(PLACES, row["n0"]), path(SEXES, row["n1"]), row["consistent"])
        found.setdefault((row["q0"], row["q1"]), set()).add(outcome)
    # (0,0), (1,0), (2,1), (1,1), (3,0) of each record, with ρ; ⊥ itself counts as the cap.
    root = (ROOT, ROOT)
    allowed = {
        (a, u): {(("north",), ROOT, 5), (*root, 6), (ROOT, ("u",), 3), (*root, 60)},
        (a, v): {(("north", "a"), ("v",), 3), (("north",), ("v",), 3), (*root, 6), (("north",), ROOT, 5),
                 (ROOT, ("v",), 3), (*root, 60)},
        (d, u): {(ROOT, ("u",), 3), (*root, 60)},
    }  # fmt: skip
    for kind, outcomes in found.items():
        assert outcomes <= allowed[kind]
        assert len(outcomes) > 1


# ------------------------------------------------------------------------------------------ keys


def test_keys_are_bound_to_run_snapshot_mechanism_and_use():
    release_key = bytes(range(32))
    variants = [("r", "s", "m"), ("r2", "s", "m"), ("r", "s2", "m"), ("r", "s", "m2"), ("rs", "", "m"), ("r", "sm", "")]
    derived = [ReleaseKeys.derive(release_key, run_id=r, snapshot=s, mechanism=m) for r, s, m in variants]
    derived.append(ReleaseKeys.derive(bytes(32), run_id="r", snapshot="s", mechanism="m"))
    every = [key for keys in derived for key in (keys.noise, keys.recode, keys.keep, keys.person, keys.scheme)]
    assert len(set(every)) == len(every)
    assert {len(key) for key in every} == {32}
    assert ReleaseKeys.derive(release_key, run_id="r", snapshot="s", mechanism="m") == derived[0]


def forms(key: bytes) -> list[str]:
    return [repr(key)[2:-1], key.hex(), key.hex(" "), key.hex().upper(), base64.b64encode(key).decode(), str(list(key))]


@pytest.mark.on_spark("plans of the embedded engine show no literals to look for")
def test_keys_show_in_no_text_and_no_plan(spark, tmp_path, capsys):
    secret = [form for key in (KEYS.noise, KEYS.recode, KEYS.keep, KEYS.person, KEYS.scheme) for form in forms(key)]
    for text in (repr(KEYS), str(KEYS), f"{KEYS}", repr([KEYS]), repr({"keys": KEYS})):
        assert not any(form in text for form in secret)
    frame = encoded(spark, np.array(TYPES, dtype=np.int32), np.arange(len(TYPES)), 2)
    cells = cells_of(spark, frame, tmp_path / "cells")
    drawn = drawing(RECODING, admitted_set(spark), KEYS)
    tuples = tuples_of(spark, frame, drawn, tmp_path / "written")
    frames = [
        admitted_cells(cells, RECODING, KEYS).frame(),
        recode(frame, RECODING, admitted_set(spark), KEYS),
        conclude(Batches.of_frame(frame), drawn, conclusion_in(tmp_path / "planned")).frame(),
        crowd_histogram(tuples, k=2, crowd=2),
        one_row_each(of_persons(spark, PERSONS[:20], np.arange(20), 2), KEYS),
    ]
    written = [path.read_bytes() for path in (tmp_path / "written").rglob("part-*")]
    assert len(written) >= 4
    for key in (KEYS.noise, KEYS.recode, KEYS.keep, KEYS.person, KEYS.scheme):
        assert not any(key in content for content in written)
    control = frame.withColumn("key", F.lit(KEYS.recode))
    plans = []
    for planned in (*frames, control):
        for mode in ("extended", "formatted", "codegen"):
            capsys.readouterr()
            planned.explain(mode=mode)
            plans.append(capsys.readouterr().out)
    # A column literal does show, so looking for it means something.
    assert any(form in plan for form in secret for plan in plans[-3:])
    assert "MapInArrow" in plans[0]
    for plan in plans[:-3]:
        assert not any(form in plan for form in secret)
    assert not any(form in str(planned.schema) + repr(planned) for planned in frames for form in secret)
