from __future__ import annotations

import itertools
import math
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from chispa import assert_df_equality
from naive_records import (
    NULL_LEAF,
    ROOT,
    Node,
    best,
    by,
    count,
    generalized,
    identification_risk,
    layouts,
    leaves_of,
    levels_above,
    node_of,
    path,
    policy_of,
    quasi,
    together,
    under,
)
from pyspark.sql import functions as F

from privrisk_spark import anonymize, schemas
from privrisk_spark.anonymize import WeightColumns, decide_records, in_chunks, join_decisions
from privrisk_spark.counts import (
    StoredCounts,
    axes,
    collect_vectors,
    count_and_store,
    to_dictionary_codes,
    vectors_of_dictionary,
    vectors_of_table,
)
from privrisk_spark.problem import problem
from privrisk_spark.table import collect_hierarchies, encode, encode_dictionary, resolve

PLACE = {"*": ["z", {"north": ["a", "b", {"far": ["c"]}]}, {"south": [{"deep": ["d", "e"]}, "f"]}]}
CHAIN = {"*": {"only": {"chain": ["p", "q"]}}}
SEX = {"*": ["u", "v"]}
TREES = {"place": PLACE, "chain": CHAIN, "sex": SEX}
LEAVES = {name: leaves_of(tree["*"]) for name, tree in TREES.items()}
NULLS = {"place": "own-value", "chain": "suppress", "sex": "wildcard"}
SCHEMA = (
    "id string, place string, chain string, sex string, w_place double, w_sex double, w_all double, w_record double, "
    "note string"
)


def table_rows(n: int = 40) -> list[tuple[Any, ...]]:
    pick = random.Random(5)
    rows = []
    for i in range(n):
        values = [pick.choice([*leaves, *leaves, None]) for leaves in LEAVES.values()]
        weights = [pick.choice([0.0, 0.5, 1.0, 4.0]) for _ in range(4)]
        rows.append((f"id-{i}", *values, *weights, pick.choice(["n", "", None])))
    return rows


ROWS = table_rows()
OTHER = [(("a", "p"), 3), (("north", "q"), 2), (("d", None), 2), ((None, "p"), 1), (("f", "q"), 4), (("z", "?"), 2)]


def nodes_of(row: tuple[Any, ...]) -> tuple[Node, ...]:
    return tuple(node_of(v, LEAVES[name], NULLS[name]) for name, v in zip(TREES, row[1:4], strict=True))


def leaves_under(name: str, node: Node) -> int:
    every = [*LEAVES[name].values(), *([NULL_LEAF] if NULLS[name] == "own-value" else [])]
    return sum(under(leaf, node) for leaf in every)


def theta_of(kind: str) -> list[tuple[Node | None, ...]]:
    if kind == "self":
        return [nodes_of(row) for row in ROWS]
    places = {**LEAVES["place"]}
    found: list[tuple[Node | None, ...]] = []
    for (place, chain), times in OTHER:
        x = NULL_LEAF if place is None else places.get(place, ("outside",))
        y = ROOT if chain is None else LEAVES["chain"].get(chain, ("outside",))
        found += [(x, y, None)] * times
    return found


# Risk, utility, floor, method, dictionary kind, consistency: every form, model, measure, search and consistency.
LINEAR = {"form": "linear", "weights": {"place": 2, "chain": 0, "sex": 1}}
INFINITE = {"form": "linear", "weights": {"place": 1, "chain": math.inf, "sex": 0}}
PERSONAL = {"form": "linear", "personal": {"columns": {"place": "w_place", "sex": "w_sex"}, "factor": "w_all"}}
CAPPED = {
    "form": "multiplicative",
    "weights": {"chain": 0.25},
    "personal": {"columns": {"place": "w_place"}, "factor": "w_all", "at_most": 2.0},
}
SUMMED = {"form": "linear", "personal": {"columns": {"place": "w_place", "sex": "w_sex"}, "sum_to": 3.0}}
RECORD = {"form": "record", "record": "w_record"}
PROBLEMS: list[tuple[dict[str, Any], dict[str, Any], float, str, str, str]] = [
    ({"model": "I", "sensitivity": LINEAR}, {"measure": "depth"}, 4, "exact", "self", "subsumes"),
    ({"model": "I", "sensitivity": LINEAR}, {"measure": "depth"}, 4, "aruba", "table", "compatible"),
    ({"model": "II"}, {"measure": "depth", "weights": {"sex": 2}}, 3, "exact", "self", "compatible"),
    ({"model": "II"}, {"measure": "lm"}, 1.5, "aruba", "self", "subsumes"),
    ({"model": "III", "sensitivity": LINEAR}, {"measure": "leaves"}, 1.5, "exact", "table", "compatible"),
    ({"model": "I", "sensitivity": INFINITE}, {"measure": "depth"}, 3, "aruba", "table", "subsumes"),
    ({"model": "I", "sensitivity": PERSONAL}, {"measure": "depth"}, 4, "exact", "self", "subsumes"),
    ({"model": "I", "sensitivity": CAPPED}, {"measure": "log-leaves"}, 1.0, "aruba", "self", "compatible"),
    ({"model": "III", "sensitivity": SUMMED}, {"measure": "depth"}, 4, "exact", "self", "subsumes"),
    ({"model": "I", "sensitivity": RECORD}, {"measure": "xiao-tao"}, 2.0, "exact", "self", "subsumes"),
    ({"model": "I", "sensitivity": {"form": "constant", "constant": 2}}, {}, 5, "aruba", "table", "compatible"),
]


def policy_for(given: tuple[dict[str, Any], dict[str, Any], float, str, str, str]) -> Any:
    risk, utility, floor, method, kind, consistency = given
    columns: dict[str, Any] = {"id": {"role": "identifier"}}
    columns |= {n: quasi({"tree": t}, nulls=NULLS[n], unknown="suppress") for n, t in TREES.items()}
    sensitivity = risk.get("sensitivity", {})
    personal = sensitivity.get("personal") or {}
    used = [*personal.get("columns", {}).values(), personal.get("factor"), sensitivity.get("record")]
    for name in ("w_place", "w_sex", "w_all", "w_record"):
        columns[name] = {"role": "weight"} if name in used else {"role": "insensitive", "action": "drop"}
    columns["note"] = {"role": "sensitive"}
    dictionary: dict[str, Any] = {"kind": "self", "consistency": consistency}
    if kind == "table":
        dictionary = {
            "kind": "table",
            "path": "in/o",
            "consistency": consistency,
            "columns": {"place": "p", "chain": "c"},
        }
    return policy_of(
        columns,
        table={"path": "in/table", "record_id": "id"},
        risk=risk,
        utility=utility,
        dictionary=dictionary,
        decision={"utility_at_least": floor, "method": method, "infeasible": "suppress"},
    )


def store(spark: Any, policy: Any, hierarchies: Any, encoded: Any, plan: Any, directory: Any) -> StoredCounts:
    if policy.dictionary.kind == "self":
        vectors, rows = collect_vectors(vectors_of_table(encoded, 3, 0), schemas.codes(3), most=1000)
        vectors = to_dictionary_codes(vectors, hierarchies)
    else:
        rows_of = [row for row, times in OTHER for _ in range(times)]
        coded = encode_dictionary(spark.createDataFrame(rows_of, "p string, c string"), policy, hierarchies)
        resolved = resolve(coded, hierarchies, policy.quasi_identifiers, dictionary=True)
        vectors, rows = collect_vectors(vectors_of_dictionary(resolved), schemas.dictionary_codes(3), most=1000)
    return count_and_store(plan, axes(policy, hierarchies), vectors, rows, directory)


def columns_of(policy: Any) -> WeightColumns:
    return WeightColumns.of_policy(policy, list(policy.quasi_identifiers))


# -------------------------------------------------------------------------------------------- the literal search


def node_utility(measure: str, name: str, node: Node) -> float:
    n, m = leaves_under(name, node), leaves_under(name, ROOT)
    return {
        "depth": len(node),
        "leaves": 1 / n,
        "log-leaves": math.log(m / n),
        "xiao-tao": 1 - (n - 1) / m,
        "lm": 1 - (n - 1) / (m - 1),
    }[measure]


def phi(sensitivity: dict[str, Any], row: tuple[Any, ...], disclosed: list[Node]) -> float:
    form = sensitivity.get("form", "linear")
    weights = dict(zip(["w_place", "w_sex", "w_all", "w_record"], row[4:8], strict=True))
    if form == "constant":
        return float(sensitivity["constant"])
    shown = [(name, node) for name, node in zip(TREES, disclosed, strict=True) if node != ROOT]
    if form == "record":
        return float(weights["w_record"]) * len(shown)
    of_attribute = dict.fromkeys(TREES, 1.0)
    personal = sensitivity.get("personal")
    if personal:
        factor = weights[personal["factor"]] if "factor" in personal else 1.0
        of_attribute = {
            name: factor * (weights[personal["columns"][name]] if name in personal["columns"] else 1.0)
            for name in TREES
        }
        total = sum(w * sensitivity.get("weights", {}).get(name, 1.0) for name, w in of_attribute.items())
        wanted = personal.get("sum_to") or personal.get("at_most")
        if wanted and total > 0 and ("sum_to" in personal or total > wanted):
            of_attribute = {name: w * wanted / total for name, w in of_attribute.items()}
    total = 0.0
    for name, node in shown:
        # The modified harmonic mean of n equal leaf weights w is w / n.
        own = sensitivity.get("weights", {}).get(name, 1.0) / leaves_under(name, node)
        if own and of_attribute[name]:
            total += own * of_attribute[name]
    return math.exp(total) if form == "multiplicative" else total


def literal(given: tuple[Any, ...], row: tuple[Any, ...], theta: list[tuple[Node | None, ...]]) -> dict[str, Any]:
    risk_policy, utility_policy, floor, _, _, consistency = given
    measure, scale = utility_policy.get("measure", "depth"), utility_policy.get("weights", {})
    record = nodes_of(row)
    nulls = list(NULLS.values())
    absent = count(record, theta, consistency, nulls) == 0

    def at(levels: tuple[int, ...]) -> tuple[float, float, int]:
        disclosed = [generalized(node, level) for node, level in zip(record, levels, strict=True)]
        rho = count(disclosed, theta, consistency, nulls) + absent
        value = phi(risk_policy.get("sensitivity", {}), row, disclosed)
        utility = sum(
            scale.get(name, 1) * node_utility(measure, name, node) for name, node in zip(TREES, disclosed, strict=True)
        )
        return identification_risk(risk_policy["model"], value, rho, len(theta) + absent), utility, rho

    options = [(levels, *at(levels)[:2]) for levels in levels_above(record)]
    allowed = [option for option in options if option[2] >= floor - 1e-9]
    top = tuple(len(node) for node in record)
    chosen = best(allowed) if allowed else top
    risk, utility, rho = at(chosen)
    return {
        "levels": chosen,
        "nodes": tuple(generalized(node, level) for node, level in zip(record, chosen, strict=True)),
        "risk": risk,
        "risk_before": at((0, 0, 0))[0],
        "utility": utility,
        "consistent": rho,
        "feasible": bool(allowed),
    }


# -------------------------------------------------------------------------------------------- tests


def test_each_decision_is_the_literal_search_of_its_record(spark, tmp_path):
    """Every problem at one layout, each another, in one job; neighbours in a batch of two have different lattices."""
    decided, hierarchies = [], {}
    for number, given in enumerate(PROBLEMS):
        policy = policy_for(given)
        frame = layouts(spark, ROWS, SCHEMA)[number % 3]
        hierarchies = collect_hierarchies(policy, frame, None)
        encoded = encode(frame, policy, hierarchies, blocks=False)
        encoded = resolve(encoded, hierarchies, policy.quasi_identifiers, dictionary=False)
        plan = "sorted" if number % 2 else "dense"
        counts = store(spark, policy, hierarchies, encoded, plan, tmp_path / str(number))
        task = problem(policy, hierarchies, axes(policy, hierarchies))
        assert task.search == given[3]
        result = decide_records(encoded, task, counts, k=3, weights=columns_of(policy))
        assert result.schema == schemas.decided(encoded.schema, 3)
        decided.append(result.drop(*schemas.weights(columns_of(policy).n)))
    seen: dict[str, set[Any]] = {"levels": set(), "feasible": set(), "infinite": set(), "absent": set()}
    for given, rows in zip(PROBLEMS, together(decided), strict=True):
        theta = theta_of(given[4])
        found = by("record_id", rows)
        assert set(found) == {row[0] for row in ROWS}
        for row in ROWS:
            wanted, got = literal(given, row, theta), found[row[0]]
            assert got["feasible"] == wanted["feasible"]
            assert tuple(got[f"l{i}"] for i in range(3)) == wanted["levels"], (given, row)
            nodes = tuple(path(h, got[f"n{i}"]) for i, h in enumerate(hierarchies.values()))
            assert nodes == wanted["nodes"]
            assert got["consistent"] == wanted["consistent"]
            for name in ("risk", "risk_before", "utility"):
                assert got[name] == pytest.approx(wanted[name], rel=1e-12, abs=1e-15), (given, row)
            assert got["r0"] == row[-1]
            assert got["kept"] is True
            seen["levels"].add(wanted["levels"])
            seen["feasible"].add(wanted["feasible"])
            seen["infinite"].add(math.isinf(wanted["risk_before"]))
            seen["absent"].add(count(nodes_of(row), theta, given[5], list(NULLS.values())) == 0)
    assert len(seen["levels"]) > 15
    assert [seen[name] for name in ("feasible", "infinite", "absent")] == [{True, False}] * 3


def test_decisions_do_not_depend_on_the_layout_nor_on_joining_back(spark, tmp_path):
    given = PROBLEMS[6]
    policy = policy_for(given)
    frames = layouts(spark, [*ROWS, *[(f"again-{row[0]}", *row[1:]) for row in ROWS[:9]]], SCHEMA)
    hierarchies = collect_hierarchies(policy, frames[0], None)
    encoded = [
        resolve(
            encode(frame, policy, hierarchies, blocks=True), hierarchies, policy.quasi_identifiers, dictionary=False
        )
        for frame in frames
    ]
    counts = store(spark, policy, hierarchies, encoded[0], "sorted", tmp_path / "counts")
    task, weights = problem(policy, hierarchies, axes(policy, hierarchies)), columns_of(policy)
    direct = [decide_records(frame, task, counts, k=3, weights=weights) for frame in encoded]
    joined = [
        join_decisions(
            frame,
            decide_records(vectors_of_table(frame, 3, weights.n).repartition(2), task, counts, k=3, weights=weights),
            k=3,
            n_weights=weights.n,
        )
        for frame in encoded[1:]
    ]
    assert joined[0].columns == direct[0].columns
    wanted, *others = [by("record_id", rows) for rows in together([*direct, *joined])]
    assert len(wanted) == len(ROWS) + 9
    for other in others:
        assert other == wanted
    for row in ROWS[:9]:
        same = [
            {k: v for k, v in wanted[i].items() if k not in ("record_id", "block")} for i in (row[0], f"again-{row[0]}")
        ]
        assert same[0] == same[1]


def test_neighbours_in_a_batch_decide_apart(spark, tmp_path):
    """Alternating records whose optima disagree, in one partition: what leaks across a batch shows."""
    columns = {"x": quasi({"tree": {"*": {"g": ["a", "b"], "h": ["c"]}}}), "y": quasi({"tree": SEX})}
    policy = policy_of(columns, decision={"utility_at_least": 2}, risk={"model": "II"})
    hierarchies = collect_hierarchies(policy, None, None)  # type: ignore[arg-type] - every leaf is declared
    # a and b have a crowd under g when y is hidden; c has one under y alone.
    codes = [(0, 0), (2, 1), (1, 0), (2, 1), (0, 1), (2, 0), (0, 0), (2, 1)]
    theta = np.array([(0, 0), (1, 0), (1, 1), (2, 1), (2, 0)], dtype=np.int32)
    counts = count_and_store("dense", axes(policy, hierarchies), theta, np.array([3, 3, 9, 5, 1]), tmp_path / "c")
    frame = spark.createDataFrame([(str(i), *code) for i, code in enumerate(codes)], "record_id string, q0 int, q1 int")
    decided = decide_records(
        frame.coalesce(1), problem(policy, hierarchies, axes(policy, hierarchies)), counts, k=2, weights=WeightColumns()
    )
    found = by("record_id", decided.toArrow().to_pylist())
    theta_nodes = [(0, 0)] * 3 + [(1, 0)] * 3 + [(1, 1)] * 9 + [(2, 1)] * 5 + [(2, 0)]

    def rho(code: tuple[int, int], levels: tuple[int, int]) -> int:
        group = {0: "g", 1: "g", 2: "h"}
        same_x = [lambda t: t == code[0], lambda t: group[t] == group[code[0]], lambda t: True][levels[0]]
        same_y = [lambda t: t == code[1], lambda t: True][levels[1]]
        return sum(same_x(t[0]) and same_y(t[1]) for t in theta_nodes)

    choices = set()
    for i, code in enumerate(codes):
        vectors = [v for v in itertools.product(range(3), range(2)) if sum(v) <= 1 and rho(code, v)]
        options = [(v, 1 / rho(code, v), 3.0 - sum(v)) for v in vectors]
        got = found[str(i)]
        if rho(code, (0, 0)):
            assert (got["l0"], got["l1"]) == best(options)
        choices.add((got["l0"], got["l1"]))
    assert choices == {(1, 0), (0, 1)}


@pytest.mark.parametrize("method", ["exact", "aruba"])
def test_a_tie_is_settled_over_all_feasible_nodes(spark, tmp_path, method):
    """The best maximal node (0, 1) has a rival (2, 0) of equal risk, and below the rival lies a more useful equal."""
    columns = {"x": quasi({"tree": {"*": {"g": ["a", "b"], "h": ["c"]}}}), "y": quasi({"tree": SEX})}
    decision = {"utility_at_least": 1.5, "method": method}
    policy = policy_of(columns, decision=decision, risk={"model": "II"}, utility={"weights": {"y": 1.5}})
    hierarchies = collect_hierarchies(policy, None, None)  # type: ignore[arg-type]
    # ρ(a, u) = 2; ρ(a, ⊥) = ρ(g, u) = ρ(⊥, u) = 5, with utilities 2, 2.5 and 1.5; all others are below the floor.
    theta = np.array([(0, 0), (0, 1), (1, 0)], dtype=np.int32)
    counts = count_and_store("dense", axes(policy, hierarchies), theta, np.array([2, 3, 3]), tmp_path / "c")
    frame = spark.createDataFrame([("i", 0, 0), ("j", 0, 1), ("k", 0, 0)], "record_id string, q0 int, q1 int")
    task = problem(policy, hierarchies, axes(policy, hierarchies))
    found = by("record_id", decide_records(frame, task, counts, k=2, weights=WeightColumns()).toArrow().to_pylist())
    assert [(found[i]["l0"], found[i]["l1"]) for i in "ik"] == [(1, 0)] * 2
    assert (found["i"]["utility"], found["i"]["consistent"]) == (2.5, 5)


def test_other_columns_pass_through_as_they_are(spark, tmp_path):
    policy = policy_of({"x": quasi({"flat": {"values": ["a", "b"]}})}, decision={"utility_at_least": 1})
    hierarchies = collect_hierarchies(policy, None, None)  # type: ignore[arg-type]
    counts = count_and_store(
        "sorted", axes(policy, hierarchies), np.array([[0]], dtype=np.int32), np.array([4]), tmp_path / "c"
    )
    frame = spark.sql(
        "select cast(id as string) as record_id, cast(id % 3 as int) as q0, "
        "if(id = 2, null, id * 10000000000000000 + 1) as r0, "
        "if(id = 1, double('nan'), if(id = 3, null, -0.0D)) as r1, cast(id / 3 as decimal(30,10)) as r2, "
        "array(cast(null as string), 'é') as r3, named_struct('a', id, 'b', date'0001-01-01') as r4, "
        "if(id = 0, null, cast('x' as binary)) as r5, timestamp'1900-01-01 00:00:00.123456' as r6, "
        "timestamp_ntz'2100-01-01 00:00:00' as r7, cast(id as tinyint) as r8, id > 2 as r9 from range(7)"
    )
    task = problem(policy, hierarchies, axes(policy, hierarchies))
    decided = decide_records(frame.repartition(2), task, counts, k=1, weights=WeightColumns())
    assert_df_equality(
        decided.select(*frame.columns), frame, ignore_row_order=True, allow_nan_equality=True, ignore_nullable=True
    )
    decided = decide_records(frame.where(F.col("q0") > 5), task, counts, k=1, weights=WeightColumns())
    assert decided.toArrow().num_rows == 0


def test_chunks_gather_batches_and_lose_no_row(monkeypatch):
    monkeypatch.setattr(anonymize, "CHUNK_ROWS", 5)
    spans = [(0, 2), (2, 2), (4, 2), (6, 0), (6, 7), (13, 1)]
    batches = [pa.record_batch({"x": np.arange(start, start + n)}) for start, n in spans]
    tables = list(in_chunks(batches))
    assert [t.num_rows for t in tables] == [6, 7, 1]
    assert [x for t in tables for x in t.column("x").to_pylist()] == list(range(14))
    assert list(in_chunks([])) == []
    assert list(in_chunks([batches[3]])) == []


def test_weight_columns_resolve_names_and_normalize():
    policy = policy_for(PROBLEMS[7])
    given = columns_of(policy)
    assert (given.n, given.of_attribute, given.factor, given.record) == (2, (0, None, None), 1, None)
    weights = np.array([[4.0, 1.0], [0.0, 0.5], [1.0, 0.0]])
    scaled = given.personal(weights)
    assert scaled is not None
    # Weights 4, 1/4 and 1 sum to 5.25 and are scaled to 2; 0, 1/8 and 1/2 do not exceed it.
    assert np.allclose(scaled, np.array([[8, 2, 2], [0, 0.5 * 5.25, 0.5 * 5.25], [0, 0, 0]]) / 5.25, rtol=1e-15)
    assert given.of_record(weights) is None
    nothing = WeightColumns(n=2, of_attribute=(0, None), attribute=(1.0, 1.0), factor=1).personal(
        np.array([[np.inf, 0.0], [np.inf, 2.0]])
    )
    assert nothing is not None
    assert nothing.tolist() == [[0, 0], [np.inf, 2]], "0 · inf is 0"
    plain = columns_of(policy_for(PROBLEMS[0]))
    assert plain.personal(np.empty((2, 0))) is None
