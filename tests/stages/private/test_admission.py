from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from naive_records import ROOT, Node, generalized, leaves_of, path, policy_of, quasi, together
from scipy import stats

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import Batches, Scratch
from privrisk_spark.kernels.dp import scheme_cells as kernel
from privrisk_spark.kernels.random import keyed
from privrisk_spark.ledger.calibrated import Choosing
from privrisk_spark.planning.calibration import mechanism
from privrisk_spark.planning.dictionaries import axes
from privrisk_spark.stages.deciding.decide import decided
from privrisk_spark.stages.private.admission import chosen, collect_choice, rows_beyond
from privrisk_spark.stages.private.release_keys import ReleaseKeys
from privrisk_spark.stages.private.sampling import Recoding, full_domain
from privrisk_spark.stages.private.scheme_cells import collect_cells
from privrisk_spark.tables.opening import collect_hierarchies

PLACE = {"*": ["z", {"north": ["a", "b", {"far": ["c"]}]}, {"south": [{"deep": ["d", "e"]}, "f"]}]}
SEX = {"*": ["u", "v"]}
TREES = {"place": PLACE, "sex": SEX}
LEAVES = {name: leaves_of(tree["*"]) for name, tree in TREES.items()}
CANDIDATES = [(2, 0), (1, 0), (2, 1), (1, 1), (3, 0), (3, 1)]
BEYOND = 4


def keys_of(snapshot: str) -> ReleaseKeys:
    return ReleaseKeys.derive(bytes(range(32)), run_id="r", snapshot=snapshot, mechanism="m")


def recoding_of(choose: str = "0.05", **more: Any) -> tuple[Recoding, Any]:
    policy = policy_of(
        {name: quasi({"tree": tree}) for name, tree in TREES.items()},
        risk={"model": "I", "sensitivity": {"form": "linear", "weights": {"place": 2, "sex": 1}}},
        utility={"weights": {"place": 3}},
        guarantee={
            "kind": "dp",
            "mode": "global",
            "epsilon": {"choose": choose, "keep": "0.7"},
            "delta": "1e-7",
            "public_rows": 1000,
            "candidates": [list(scheme) for scheme in CANDIDATES],
            "frequent": BEYOND,
            **more,
        },
        ledger={"url": "sqlite://", "lineage": "l", "cap": {"epsilon": 9, "delta": "1e-5"}},
    )
    hierarchies = collect_hierarchies(policy, None, None)  # type: ignore[arg-type] - every leaf is declared
    plan = mechanism(policy, hierarchies)
    return Recoding.of_policy(policy, hierarchies, axes(policy, hierarchies), plan), hierarchies


RECODING, HIERARCHIES = recoding_of()
PLACES, SEXES = HIERARCHIES.values()


def node_of_code(hierarchy: Any, code: int) -> Node:
    return ROOT if code == hierarchy.n_leaves else path(hierarchy, code)


def cell_of(codes: tuple[int, ...], scheme: tuple[int, ...]) -> tuple[Node, ...]:
    return tuple(
        generalized(node_of_code(h, c), level) for h, c, level in zip(HIERARCHIES.values(), codes, scheme, strict=True)
    )


def rows_of(n: int, seed: int) -> list[tuple[int, int]]:
    pick = random.Random(seed)
    return [(pick.randrange(PLACES.n_leaves + 1), pick.randrange(SEXES.n_leaves + 1)) for _ in range(n)]


ROWS = rows_of(90, 3)


def literal_excess(rows: list[tuple[int, int]]) -> list[int]:
    sizes = [Counter(cell_of(codes, scheme) for codes in rows) for scheme in CANDIDATES]
    return [sum(max(0, n - BEYOND) for n in of.values()) for of in sizes]


def literal_precision(scheme: tuple[int, ...]) -> Fraction:
    """Place counts three times; heights are 3 and 1."""
    return 1 - (3 * Fraction(scheme[0], 3) + Fraction(scheme[1], 1)) / 4


def frame_of(spark: Any, rows: list[tuple[int, int]], partitions: int) -> Any:
    shuffled = list(enumerate(rows))
    random.Random(partitions).shuffle(shuffled)
    values = [(bytearray(i.to_bytes(16, "little")), *codes) for i, codes in shuffled]
    frame = spark.createDataFrame(values, "block binary, q0 int, q1 int")
    return frame.coalesce(1) if partitions == 1 else frame.repartition(partitions)


def scratch_in(spark: Any, directory: Path) -> Scratch:
    directory.mkdir()
    return Scratch(spark, directory)


def excess_frame(spark: Any, rows: list[tuple[int, int]], partitions: int, directory: Path) -> Any:
    read = Batches.of_frame(frame_of(spark, rows, partitions))
    cells = collect_cells(scratch_in(spark, directory), read, RECODING.ancestor, CANDIDATES)
    return rows_beyond(cells, BEYOND).frame()


@pytest.mark.parametrize("dense", [kernel.DENSE_CELLS, 0])
def test_the_rows_beyond_are_exact_at_every_layout(spark, tmp_path, monkeypatch, dense):
    """Planted: representatives by another candidate's level, rows beyond without the cut at 0."""
    monkeypatch.setattr(kernel, "DENSE_CELLS", dense)
    found = together([excess_frame(spark, ROWS, partitions, tmp_path / str(partitions)) for partitions in (1, 4, 11)])
    wanted = dict(enumerate(literal_excess(ROWS)))
    assert len(set(wanted.values())) > 3
    for rows in found:
        assert {row["scheme"]: row["excess"] for row in rows} == wanted


def test_values_no_candidate_tells_apart_are_counted_as_one():
    """No candidate is below level 1 of place, so siblings are one value; counts stay, vectors get fewer."""
    places, sexes = kernel.standing(RECODING.ancestor, CANDIDATES)
    distinct = {(places[place], sexes[sex]) for place, sex in ROWS}
    assert len(distinct) == len({cell_of(codes, (1, 0)) for codes in ROWS}) < len(set(ROWS))


def test_precision_is_public_and_weighed_by_the_policy():
    choice = RECODING.mechanism
    assert isinstance(choice, Choosing)
    assert choice.precision == tuple(literal_precision(scheme) for scheme in CANDIDATES)
    assert choice.beyond == BEYOND
    default, _ = recoding_of(frequent=None)
    assert isinstance(default.mechanism, Choosing)
    assert default.mechanism.beyond == default.mechanism.survival[0] > 10


def test_the_choice_depends_on_key_and_content_alone(spark, tmp_path):
    """The same scheme at every layout; over keys, the law of the literal scores, and no other."""
    found = [
        collect_choice(
            scratch_in(spark, tmp_path / str(n)), Batches.of_frame(frame_of(spark, ROWS, n)), RECODING, keys_of("s")
        ).schemes
        for n in (1, 4, 11)
    ]
    wanted = chosen(RECODING.mechanism, np.array(literal_excess(ROWS)), keys_of("s")).schemes
    assert found == [wanted] * 3
    assert len(wanted) == 1
    assert wanted[0] in CANDIDATES


def test_the_choice_follows_the_exponential_law_of_the_scores():
    excess = np.array(literal_excess(ROWS))
    draws = 3000
    seen: Counter[tuple[int, ...]] = Counter()
    for i in range(draws):
        seen[chosen(RECODING.mechanism, excess, keys_of(str(i))).schemes[0]] += 1

    def p_value(score: Any) -> float:
        weights = [math.exp(0.05 * score(i)) for i in range(len(CANDIDATES))]
        expected = [draws * weight / sum(weights) for weight in weights]
        return float(stats.chisquare([seen[scheme] for scheme in CANDIDATES], expected).pvalue)

    assert p_value(lambda i: float(literal_precision(CANDIDATES[i]) * excess[i])) > 1e-4
    assert p_value(lambda i: float(excess[i])) < 1e-9, "without precision"
    assert p_value(lambda i: float(literal_precision(CANDIDATES[i]) * len(ROWS))) < 1e-9, "without the table"
    assert p_value(lambda i: float(literal_precision(CANDIDATES[i]) * excess[i]) / 2) < 1e-9, "at half the epsilon"


def test_peeled_schemes_are_different_and_in_their_order():
    peeled, _ = recoding_of(
        mode="local",
        peel=3,
        epsilon={"choose": "0.05", "admit": "0.3", "keep": "0.7"},
        objective={"phi_min": 0.5},
        frequent=None,
    )
    plan = peeled.mechanism
    assert isinstance(plan, Choosing)
    assert plan.epsilon == Fraction("1.15")
    assert plan.w == 3
    assert plan.beyond == plan.frequent
    excess = np.array(literal_excess(ROWS))
    orders = {chosen(plan, excess, keys_of(str(i))).schemes for i in range(30)}
    assert all(len(set(schemes)) == 3 for schemes in orders)
    assert len(orders) > 10
    drawn = chosen(plan, excess, keys_of("s"))
    assert drawn.parameters == plan.parameters, "what was drawn is no parameter: it was not fixed beforehand"


def test_an_empty_table_draws_too(spark, tmp_path):
    empty = Batches.of_frame(spark.createDataFrame([], "block binary, q0 int, q1 int"))
    drawn = collect_choice(scratch_in(spark, tmp_path / "s"), empty, RECODING, keys_of("s"))
    assert drawn.schemes[0] in CANDIDATES


def test_full_domain_recoding_is_one_scheme_and_the_coin(spark):
    rows = rows_of(4000, 8)
    keys = keys_of("s")
    one = replace(RECODING, mechanism=RECODING.mechanism.with_schemes(((1, 1),)))
    frames = [
        decided(Batches.of_frame(frame_of(spark, rows, n)), full_domain(one, keys), k=2).frame() for n in (1, 4, 11)
    ]
    assert [(f.name, f.dataType) for f in frames[0].schema] == [
        (f.name, f.dataType) for f in schemas.decided(frame_of(spark, rows, 1).schema, 2)
    ]
    found = [sorted(of, key=lambda row: int.from_bytes(row["block"], "little")) for of in together(frames)]
    assert found[0] == found[1] == found[2]
    blocks = np.array([list(i.to_bytes(16, "little")) for i in range(len(rows))], dtype=np.uint8)
    words = keyed.prf(keys.keep, keyed.record_messages(blocks))[:, 0]
    for i, row in enumerate(found[0]):
        codes = rows[i]
        assert (row["q0"], row["q1"]) == codes
        assert (path(PLACES, row["n0"]), path(SEXES, row["n1"])) == cell_of(codes, (1, 1))
        depths = [len(node_of_code(h, c)) for h, c in zip(HIERARCHIES.values(), codes, strict=True)]
        assert (row["l0"], row["l1"]) == tuple(min(1, depth) for depth in depths)
        assert row["kept"] == (int(words[i]) >> 32 < one.mechanism.keep_numerator)
        assert row["consistent"] == one.mechanism.crowd
        assert row["utility"] == 3 * len(path(PLACES, row["n0"])) + len(path(SEXES, row["n1"]))
