from __future__ import annotations

import itertools
import json
import math
import random
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import strategies as st
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
    parts_of,
    path,
    policy_of,
    quasi,
    together,
    under,
)
from parts import at
from pyspark.sql import functions as F
from pyspark.sql import types as T

from privrisk_spark.engine import batches, schemas
from privrisk_spark.engine.batches import Batches, in_chunks, materialized, read_ipc
from privrisk_spark.engine.counts import StoredAttacker, StoredCounts
from privrisk_spark.engine.decided import Decided, KnownDecisions, WeightColumns
from privrisk_spark.engine.value_codes import resolve, resolved_vectors
from privrisk_spark.engine.vectors import collect_vectors, vectors_of_table
from privrisk_spark.kernels.disclosure.decisions import AfterHistory, Decisions
from privrisk_spark.kernels.search.table_search import decide_kinds
from privrisk_spark.planning.decisions.registry import decision_of
from privrisk_spark.planning.dictionaries import alphabets, axes
from privrisk_spark.planning.disclosure import disclosure_of
from privrisk_spark.stages.counting.dense_sorted import count_and_store, count_vectors, sum_vectors, to_dictionary_codes
from privrisk_spark.stages.deciding.decide import (
    Conclusion,
    class_members,
    collect_unreachable,
    conclude,
    decided,
    deciding,
    join_decisions,
    released_tuples,
)
from privrisk_spark.stages.publishing.measure import decision_facts
from privrisk_spark.tables.encode import encode, encode_dictionary
from privrisk_spark.tables.opening import collect_hierarchies

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
        frame = spark.createDataFrame(rows_of, "p string, c string")
        coded = encode_dictionary(frame, policy.dictionary, hierarchies)
        of = dict(zip(["t0", "t1"], alphabets(hierarchies, policy.dictionaries[0]).values(), strict=True))
        parts = directory.with_name(f"{directory.name}-parts")
        written = [part["name"] for part in parts_of(count_vectors(coded, of, at(parts)))]
        vectors, rows = sum_vectors(at(parts), written, of)
        vectors = resolved_vectors(vectors, list(of), hierarchies, policy.quasi_identifiers)
    return count_and_store(plan, axes(policy, hierarchies), vectors, rows, at(directory))


def columns_of(policy: Any) -> WeightColumns:
    return WeightColumns.of_policy(policy, list(policy.quasi_identifiers))


def decided_frame(rows: Any, task: Any, counts: Any, *, k: int, weights: Any = None) -> Any:
    """DECIDED of a whole frame."""
    return decided(rows, deciding(*task, known(counts), k=k, weights=weights or WeightColumns()), k=k).frame()


def known(counts: StoredCounts) -> StoredAttacker:
    """An attacker with one dictionary."""
    return StoredAttacker((counts,), "bayes", (1.0,))


def types_of(schema: Any) -> list[tuple[str, Any]]:
    return [(field.name, field.dataType) for field in schema.fields]


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
        "consistent_before": at((0, 0, 0))[2],
        "feasible": bool(allowed),
    }


# -------------------------------------------------------------------------------------------- tests


def test_each_decision_is_the_literal_search_of_its_record(spark, tmp_path):
    """Every problem at one layout, each another, in one job; neighbours in a batch of two have different lattices."""
    every, hierarchies = [], {}
    for number, given in enumerate(PROBLEMS):
        policy = policy_for(given)
        frame = layouts(spark, ROWS, SCHEMA)[number % 3]
        hierarchies = collect_hierarchies(policy, frame, None)
        encoded = encode(frame, policy, hierarchies, blocks=False)
        encoded = resolve(encoded, hierarchies, policy.quasi_identifiers, dictionary=False)
        plan = "sorted" if number % 2 else "dense"
        counts = store(spark, policy, hierarchies, encoded, plan, tmp_path / str(number))
        task = disclosure_of(policy, hierarchies, axes(policy, hierarchies)), decision_of(policy).procedure(hierarchies)
        assert task[1].method == given[3]
        result = decided_frame(encoded, task, counts, k=3, weights=columns_of(policy))
        assert types_of(result.schema) == types_of(schemas.decided(encoded.schema, 3))
        every.append(result.drop(*schemas.weights(columns_of(policy).n)))
    seen: dict[str, set[Any]] = {"levels": set(), "feasible": set(), "infinite": set(), "absent": set()}
    for given, rows in zip(PROBLEMS, together(every), strict=True):
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
            assert got["consistent_before"] == wanted["consistent_before"]
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
    task = disclosure_of(policy, hierarchies, axes(policy, hierarchies)), decision_of(policy).procedure(hierarchies)
    weights = columns_of(policy)
    direct = [decided_frame(rows, task, counts, k=3, weights=weights) for rows in encoded]
    joined = []
    # The size decides whether the decisions are broadcast, and nothing else.
    for rows, size in zip(encoded[1:], itertools.cycle([10, 10**9])):
        records = Batches.of_frame(vectors_of_table(rows, 3, weights.n).repartition(2))
        on_distinct = decided_frame(records, task, counts, k=3, weights=weights)
        joined.append(join_decisions(rows.frame(), on_distinct, distinct=size, k=3, n_weights=weights.n))
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
    counts = count_and_store("dense", axes(policy, hierarchies), theta, np.array([3, 3, 9, 5, 1]), at(tmp_path / "c"))
    frame = spark.createDataFrame([(str(i), *code) for i, code in enumerate(codes)], "record_id string, q0 int, q1 int")
    task = disclosure_of(policy, hierarchies, axes(policy, hierarchies)), decision_of(policy).procedure(hierarchies)
    result = decided_frame(Batches.of_frame(frame.coalesce(1)), task, counts, k=2)
    found = by("record_id", result.toArrow().to_pylist())
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
    counts = count_and_store("dense", axes(policy, hierarchies), theta, np.array([2, 3, 3]), at(tmp_path / "c"))
    frame = spark.createDataFrame([("i", 0, 0), ("j", 0, 1), ("k", 0, 0)], "record_id string, q0 int, q1 int")
    task = disclosure_of(policy, hierarchies, axes(policy, hierarchies)), decision_of(policy).procedure(hierarchies)
    found = by("record_id", decided_frame(Batches.of_frame(frame), task, counts, k=2).toArrow().to_pylist())
    assert [(found[i]["l0"], found[i]["l1"]) for i in "ik"] == [(1, 0)] * 2
    assert (found["i"]["utility"], found["i"]["consistent"]) == (2.5, 5)


def test_other_columns_pass_through_as_they_are(spark, tmp_path):
    policy = policy_of({"x": quasi({"flat": {"values": ["a", "b"]}})}, decision={"utility_at_least": 1})
    hierarchies = collect_hierarchies(policy, None, None)  # type: ignore[arg-type]
    counts = count_and_store(
        "sorted", axes(policy, hierarchies), np.array([[0]], dtype=np.int32), np.array([4]), at(tmp_path / "c")
    )
    frame = spark.sql(
        "select cast(id as string) as record_id, cast(id % 3 as int) as q0, "
        "if(id = 2, null, id * 10000000000000000 + 1) as r0, "
        "if(id = 1, double('nan'), if(id = 3, null, -0.0D)) as r1, cast(id / 3 as decimal(30,10)) as r2, "
        "array(cast(null as string), 'é') as r3, named_struct('a', id, 'b', date'0001-01-01') as r4, "
        "if(id = 0, null, cast('x' as binary)) as r5, timestamp'1900-01-01 00:00:00.123456' as r6, "
        "timestamp_ntz'2100-01-01 00:00:00' as r7, cast(id as tinyint) as r8, id > 2 as r9 from range(7)"
    )
    task = disclosure_of(policy, hierarchies, axes(policy, hierarchies)), decision_of(policy).procedure(hierarchies)
    result = decided_frame(Batches.of_frame(frame.repartition(2)), task, counts, k=1)
    found, given = (one.orderBy("record_id").toArrow() for one in (result.select(*frame.columns), frame))
    assert [field.type for field in found.schema] == [field.type for field in given.schema]
    assert repr(found.to_pylist()) == repr(given.to_pylist())
    result = decided_frame(Batches.of_frame(frame.where(F.col("q0") > 5)), task, counts, k=1)
    assert result.toArrow().num_rows == 0


def test_chunks_gather_batches_and_lose_no_row(monkeypatch):
    monkeypatch.setattr(batches, "CHUNK_ROWS", 5)
    spans = [(0, 2), (2, 2), (4, 2), (6, 0), (6, 7), (13, 1)]
    given = [pa.table({"x": np.arange(start, start + n)}) for start, n in spans]
    tables = list(in_chunks(given))
    assert [t.num_rows for t in tables] == [6, 7, 1]
    assert [x for t in tables for x in t.column("x").to_pylist()] == list(range(14))
    assert list(in_chunks([])) == []
    assert list(in_chunks([given[3]])) == []
    # Dictionaries of their own become one; nulls stay.
    texts = [["b", None], ["a", "b"], ["c", "a", None]]
    encoded = [pa.table({"x": pa.array(part, pa.string()).dictionary_encode()}) for part in texts]
    (whole,) = in_chunks(encoded)
    assert whole.column("x").num_chunks == 1
    assert whole.column("x").to_pylist() == [x for part in texts for x in part]


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


# -------------------------------------------------------------------------------------------- conclusions


def conclusion_in(directory: Path, hierarchies: Any, **change: Any) -> Conclusion:
    given: dict[str, Any] = {
        "decisions": at(directory / "decisions"),
        "tuples": at(directory / "tuples"),
        "members": at(directory / "members"),
        "record_id": "the id",
        "attributes": tuple(hierarchies),
        "roots": tuple(h.root for h in hierarchies.values()),
        "heights": tuple(h.height for h in hierarchies.values()),
        "method": "exact",
    }
    return Conclusion(**given | change)


def test_what_is_concluded_is_what_was_decided(spark, tmp_path):
    """Decisions in the vault, tuples and facts, decided in the same task or before, against the decided frame."""
    given = PROBLEMS[6]
    policy = policy_for(given)
    frames = layouts(spark, [*ROWS, *[(f"again-{row[0]}", *row[1:]) for row in ROWS[:9]]], SCHEMA)
    hierarchies = collect_hierarchies(policy, frames[0], None)
    specs = policy.quasi_identifiers
    encoded = [
        resolve(encode(frame, policy, hierarchies, blocks=False), hierarchies, specs, dictionary=False)
        for frame in frames
    ]
    counts = store(spark, policy, hierarchies, encoded[0], "dense", tmp_path / "counts")
    task = disclosure_of(policy, hierarchies, axes(policy, hierarchies)), decision_of(policy).procedure(hierarchies)
    weights = columns_of(policy)
    decide_chunk = deciding(*task, known(counts), k=3, weights=weights)
    frame = decided(encoded[1], decide_chunk, k=3).frame()
    rows = frame.toArrow().to_pylist()
    facts = []
    variants = [(rows_of, decide_chunk) for rows_of in encoded]
    variants.append((Batches.of_frame(frame.repartition(3)), partial(Decided.of_columns, k=3)))
    for number, (batches_of, chunk) in enumerate(variants):
        conclusion = conclusion_in(tmp_path / str(number), hierarchies)
        parts = parts_of(conclude(batches_of, chunk, conclusion))
        facts.append(decision_facts(parts, hierarchies))
        vault = spark.read.parquet(str(conclusion.decisions)).toArrow().to_pylist()
        assert sorted(map(repr, vault)) == sorted(
            repr(
                {"the id": r["record_id"]}
                | {f"level_{name}": r[f"l{i}"] for i, name in enumerate(hierarchies)}
                | {name: r[name] for name in ("risk", "utility", "consistent")}
                | {"method": "exact"}
            )
            for r in rows
        )
        total: Counter[Any] = Counter()
        for part in parts:
            if not part["tuples"]:
                assert part["tuple_rows"] == 0
                continue
            tuples = read_ipc(conclusion.tuples, part["tuples"]).to_pylist()
            keys = [tuple(r[name] for name in ("n0", "n1", "n2", "r0")) for r in tuples]
            assert len(set(keys)) == len(keys) == part["tuple_rows"], "each once a part"
            assert sum(r["n_rows"] for r in tuples) == part["rows"]
            total.update(dict(zip(keys, [r["n_rows"] for r in tuples], strict=True)))
        assert total == Counter(tuple(r[name] for name in ("n0", "n1", "n2", "r0")) for r in rows)
        names = [part["tuples"] for part in parts if part["tuples"]]
        schema = schemas.tuples(batches_of.schema, 3)
        assert schema.names == ["n0", "n1", "n2", "r0", "n_rows"]
        released = materialized(spark, conclusion.tuples, names, schema).frame()
        assert types_of(released.schema) == types_of(schema)
        assert sum(r["n_rows"] for r in released.toArrow().to_pylist()) == len(rows)
    assert all(other == facts[0] for other in facts[1:])
    one = facts[0]
    assert (one.rows, one.sampled) == (len(rows), len(rows))
    assert one.infeasible == sum(not r["feasible"] for r in rows) > 0
    roots = [h.root for h in hierarchies.values()]
    assert one.verbatim == sum(
        all(r[f"l{i}"] == 0 for i in range(3)) and [r[f"n{i}"] for i in range(3)] != roots for r in rows
    )
    for i, (levels, h) in enumerate(zip(one.levels, hierarchies.values(), strict=True)):
        tally = Counter(h.height if r[f"n{i}"] == h.root else r[f"l{i}"] for r in rows)
        assert list(levels.rows) == [tally[level] for level in range(h.height + 1)]
    for name, summary in (("risk", one.risk_after), ("risk_before", one.risk_before), ("utility", one.utility)):
        values = [r[name] for r in rows]
        assert (summary.min, summary.max) == (min(values), max(values))
        mean = math.inf if math.inf in values else float(sum(map(Fraction, values), Fraction()) / len(values))
        assert summary.mean == mean


def made_up(keys: npt.NDArray[np.int64]) -> Decisions:
    """Return a decision whose arrays depend on the key."""
    number = keys.astype(float)
    return Decisions(
        levels=np.column_stack([keys % 5, keys % 3]).astype(np.int8),
        nodes=np.column_stack([keys, keys + 1]).astype(np.int32),
        risk=number, risk_before=number + 1, utility=-number, consistent=keys, consistent_before=keys + 2,
        feasible=keys % 2 == 0, history=AfterHistory(number, number + 3, keys % 3 == 0),
    )  # fmt: skip


@hypothesis.given(
    st.lists(st.lists(st.integers(0, 40), min_size=1, unique=True).map(sorted), min_size=1), st.sampled_from([5, 1000])
)
def test_known_decisions_of_overlapping_chunks_are_made_once(chunks: list[list[int]], most: int) -> None:
    known, asked = KnownDecisions(), Counter[int]()
    for chunk in chunks:
        keys = np.array(chunk, dtype=np.int64)

        def decide_some(places: npt.NDArray[np.int64], keys: npt.NDArray[np.int64] = keys) -> Decisions:
            asked.update(keys[places].tolist())
            return made_up(keys[places])

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("privrisk_spark.engine.decided.MAX_KNOWN", most)
            found, wanted = known.decide(keys, decide_some), made_up(keys)
        for name in ("levels", "nodes", "risk", "risk_before", "utility", "consistent", "consistent_before"):
            np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name))
        np.testing.assert_array_equal(found.feasible, wanted.feasible)
        assert found.gap is None
        assert found.history is not None
        np.testing.assert_array_equal(found.history.out, keys + 3.0)
    if most == 1000:
        assert set(asked.values()) == {1}


def test_deciding_of_several_chunks_shares_decisions(spark, tmp_path, monkeypatch):
    policy = policy_for(next(problem for problem in PROBLEMS if not columns_of(policy_for(problem)).n))
    frame = layouts(spark, ROWS, SCHEMA)[0]
    hierarchies = collect_hierarchies(policy, frame, None)
    rows = resolve(
        encode(frame, policy, hierarchies, blocks=False), hierarchies, policy.quasi_identifiers, dictionary=False
    )
    counts = store(spark, policy, hierarchies, rows, "dense", tmp_path / "counts")
    task = disclosure_of(policy, hierarchies, axes(policy, hierarchies)), decision_of(policy).procedure(hierarchies)
    table = rows.frame().toArrow()
    whole = deciding(*task, known(counts), k=3, weights=WeightColumns())(table).with_columns()
    decided_rows = []

    def counted(*arguments: Any, **more: Any) -> Any:
        decided_rows.append(len(arguments[3]))
        return decide_kinds(*arguments, **more)

    monkeypatch.setattr("privrisk_spark.stages.deciding.decide.decide_kinds", counted)
    decide_chunk = deciding(*task, known(counts), k=3, weights=WeightColumns())
    half = table.num_rows // 2
    pieces = [decide_chunk(piece).with_columns() for piece in (table.slice(half), table.slice(0, half), table)]
    assert pa.concat_tables([pieces[1], pieces[0]]).equals(whole)
    assert pieces[2].equals(whole)
    first, *others = decided_rows
    assert first > 0
    assert len(others) <= 1, "the third piece has only kinds of the others"
    codes = zip(*whole.select(["q0", "q1", "q2"]).to_pydict().values(), strict=True)
    assert sum(decided_rows) <= len(set(codes))


DECIDED_VALUES = (
    "select cast(id as string) as record_id, cast(id % 3 as int) as q0, "
    "case id % 4 when 0 then 0.0D when 1 then -0.0D when 2 then double('nan') end as r0, "
    "case id % 3 when 0 then float(0) when 1 then float('-0.0') end as r1, "
    "if(id % 2 = 0, array(cast(null as string), 'a'), if(id % 3 = 0, null, array('null', 'a'))) as r2, "
    "if(id % 5 = 0, null, named_struct('a', if(id % 2 = 0, 0.0D, if(id % 3 = 0, null, -0.0D)))) as r3, "
    "if(id % 2 = 0, '', cast(null as string)) as r4, cast(id % 2 as decimal(30,10)) as r5, "
    "if(id % 3 = 0, cast('x' as binary), cast('' as binary)) as r6, "
    "timestamp'1900-01-01 00:00:00.123456' + make_dt_interval(0, 0, 0, id % 2) as r7, "
    "if(id % 3 = 0, null, id % 2 = 0) as r8, cast(id % 2 as tinyint) as r9, "
    "date_add(date'0001-01-01', cast(id % 2 as int)) as r10 from range(60)"
)


def test_tuples_tell_every_released_value_apart(spark, tmp_path):
    """0.0 and -0.0, NaN and nothing, an empty text and none; nested values may stand more than once."""
    policy = policy_of({"x": quasi({"flat": {"values": ["a", "b"]}})}, decision={"utility_at_least": 1})
    hierarchies = collect_hierarchies(policy, None, None)  # type: ignore[arg-type]
    of_policy = axes(policy, hierarchies)
    counts = count_and_store("sorted", of_policy, np.array([[0]], dtype=np.int32), np.array([4]), at(tmp_path / "c"))
    task = disclosure_of(policy, hierarchies, of_policy), decision_of(policy).procedure(hierarchies)
    whole = spark.sql(DECIDED_VALUES).toArrow()
    chunk = deciding(*task, known(counts), k=1, weights=WeightColumns())(whole)
    columns = [f"r{i}" for i in range(11)]
    variants = {"all": columns, "flat": [name for name in columns if name not in ("r2", "r3")], "none": []}
    variants |= {name: [name] for name in columns}
    for name, kept in variants.items():
        one = replace(chunk, table=whole.select(["record_id", "q0", *kept]))
        tuples = released_tuples(one, k=1)
        assert tuples.column_names == ["n0", *kept, "n_rows"]
        rows = [tuple(map(repr, row.values())) for row in one.with_columns().select(["n0", *kept]).to_pylist()]
        found = [tuple(map(repr, list(row.values())[:-1])) for row in tuples.to_pylist()]
        total: Counter[Any] = Counter()
        for key, n in zip(found, tuples.column("n_rows").to_pylist(), strict=True):
            total[key] += n
        assert total == Counter(rows)
        if name not in ("all", "r2", "r3"):
            assert len(set(found)) == len(found)
    # What is dictionary-encoded or in several pieces has the same tuples.
    texts = whole.select(["record_id", "q0", "r4"])
    pieces = pa.concat_tables([texts.slice(0, 7), texts.slice(7)])
    encoded = texts.set_column(2, "r4", texts.column("r4").dictionary_encode())
    wanted = released_tuples(replace(chunk, table=texts), k=1)
    for other in (pieces, encoded):
        found_rows = released_tuples(replace(chunk, table=other), k=1)
        assert found_rows.schema == wanted.schema
        assert found_rows.sort_by([("n0", "ascending"), ("r4", "ascending")]) == wanted.sort_by(
            [("n0", "ascending"), ("r4", "ascending")]
        )


@pytest.mark.parametrize("released", [["r0", "r4"], []])
def test_only_kept_rows_are_released(spark, tmp_path, released):
    """Tuples are of the sample; decisions and facts are of every record."""
    n = 40
    codes = np.arange(n) % 3
    table = pa.table({
        "record_id": [f"i{i}" for i in range(n)],
        "r0": pa.array([None if i % 7 == 0 else float(i % 2) for i in range(n)]),
        "r4": pa.array([None if i % 5 == 0 else "ab"[i % 2] for i in range(n)]).dictionary_encode(),
    })  # fmt: skip
    decisions = Decisions(
        levels=np.array([[0], [1], [0]], dtype=np.int8),
        nodes=np.array([[0], [2], [1]], dtype=np.int32),
        risk=np.array([0.5, 0.25, math.inf]),
        risk_before=np.array([1.0, 1.0, math.inf]),
        utility=np.array([1.0, 0.0, 1.0]),
        consistent=np.array([2, 4, 0]),
        consistent_before=np.array([1, 2, 0]),
        feasible=np.array([True, False, True]),
    )
    for number, kept in enumerate(([i % 4 == 1 for i in range(n)], [True] * n, [False] * n)):
        one = Decided(table.select(["record_id", *released]), decisions, codes, np.array(kept))
        policy = policy_of({"x": quasi({"flat": {"values": ["a", "b"]}})})
        hierarchies = collect_hierarchies(policy, None, None)  # type: ignore[arg-type]
        conclusion = conclusion_in(tmp_path / str(number), hierarchies)
        (report,) = conclusion.write(one).to_pylist()
        facts = json.loads(report["facts"])
        of_rows = [
            (int(decisions.nodes[codes[i], 0]), *[table.column(name)[i].as_py() for name in released])
            for i in range(n)
            if kept[i]
        ]
        assert (facts["rows"], facts["sampled"], facts["infeasible"]) == (n, sum(kept), int((codes == 1).sum()))
        assert facts["verbatim"] == int((codes != 1).sum())
        assert pq.read_table(f"{conclusion.decisions}/{report['name']}").num_rows == n
        if not any(kept):
            assert facts["tuples"] is None
            assert list((tmp_path / str(number) / "tuples").iterdir()) == []
            continue
        tuples = read_ipc(conclusion.tuples, facts["tuples"]).to_pylist()
        found = {tuple(row[name] for name in ("n0", *released)): row["n_rows"] for row in tuples}
        assert len(found) == len(tuples) == facts["tuple_rows"]
        assert found == Counter(of_rows)
        # The columns of DECIDED read back are the same rows.
        again = Decided.of_columns(one.with_columns(), k=1)
        assert again.kept.tolist() == kept
        same = released_tuples(again, k=1).to_pylist()
        assert {tuple(row[name] for name in ("n0", *released)): row["n_rows"] for row in same} == found


VAULT = [
    ("the id", "string"),
    ("level_pl`ace", "tinyint"),
    ("level_s.x", "tinyint"),
    ("risk", "double"),
    ("utility", "double"),
    ("consistent", "bigint"),
    ("method", "string"),
]


def test_vault_decisions_have_their_fixed_columns(spark, tmp_path):
    schema = schemas.decided(T.StructType([T.StructField("record_id", T.StringType())]), 2)
    rows = [
        ("a", 1, 0, 3, 4, 0.25, 1.0, 2.0, 4, 1, True, True),
        ("b", 0, 2, 1, 5, math.inf, 1.0, 0.0, 0, 0, True, False),
    ]
    rows += [(None, 0, 0, 0, 0, 0.5, 1.0, 1.0, 1, 1, False, True)]
    columns = {"pl`ace": quasi({"tree": PLACE}), "s.x": quasi({"tree": PLACE})}
    hierarchies = collect_hierarchies(policy_of(columns), None, None)  # type: ignore[arg-type]
    conclusion = conclusion_in(tmp_path, hierarchies)
    frame = spark.createDataFrame(rows, schema)
    parts = parts_of(conclude(Batches.of_frame(frame), partial(Decided.of_columns, k=2), conclusion))
    found = spark.read.parquet(str(conclusion.decisions))
    assert [(f.name, f.dataType.simpleString()) for f in found.schema] == VAULT
    assert sorted((tuple(r.values()) for r in found.toArrow().to_pylist()), key=repr) == [
        ("a", 1, 0, 0.25, 2.0, 4, "exact"),
        ("b", 0, 2, math.inf, 0.0, 0, "exact"),
        (None, 0, 0, 0.5, 1.0, 1, "exact"),
    ]
    for part in parts:
        # Readers that know Arrow see plain columns, too; and no statistic repeats a record's value.
        file = pq.ParquetFile(f"{conclusion.decisions}/{part['name']}")
        assert file.schema_arrow.field("method").type == pa.string()
        assert file.metadata.row_group(0).column(0).statistics is None


def test_persons_are_counted_by_what_a_reader_sees():
    """Two nodes of one label are one class: a person in both is one person of it, and its rows are together."""
    levels = np.zeros((3, 2), dtype=np.int8)
    nodes = np.array([[4, 7], [5, 7], [6, 7]], dtype=np.int32)
    none, true = np.zeros(3), np.ones(3, dtype=np.bool_)
    decisions = Decisions(levels, nodes, none, none, none, none.astype(np.int64), none.astype(np.int64), true)
    table = pa.table({"entity": ["p", "p", "q", "p"], "sample_weight": [1.5, 0.25, 2.0, 4.0]})
    rows, kept = np.array([0, 1, 1, 2]), np.ones(4, dtype=np.bool_)
    named = (np.array([0, 1, 2, 3, 4, 4, 6], dtype=np.int32), np.arange(8, dtype=np.int32))
    found = class_members(Decided(table, decisions, rows, kept), k=2, named=named)
    assert found is not None
    assert sorted(map(tuple, (row.values() for row in found.to_pylist()))) == [
        (4, 7, "p", 2, 1_750_000),
        (4, 7, "q", 1, 2_000_000),
        (6, 7, "p", 1, 4_000_000),
    ]
    apart = class_members(Decided(table, decisions, rows, kept), k=2)
    assert apart is not None
    assert apart.num_rows == 4
    assert class_members(Decided(table.select([]), decisions, rows, kept), k=2) is None


def test_decisions_of_no_rows_are_readable(spark, tmp_path):
    columns = {"pl`ace": quasi({"tree": PLACE}), "s.x": quasi({"tree": PLACE})}
    hierarchies = collect_hierarchies(policy_of(columns), None, None)  # type: ignore[arg-type]
    conclusion = conclusion_in(tmp_path, hierarchies)
    nothing = spark.createDataFrame([], schemas.decided(T.StructType([T.StructField("record_id", T.StringType())]), 2))
    assert parts_of(conclude(Batches.of_frame(nothing), partial(Decided.of_columns, k=2), conclusion)) == []
    assert list((tmp_path / "decisions").iterdir()) == []
    name = conclusion.write_nothing()
    assert [path.name for path in (tmp_path / "decisions").iterdir()] == [name]
    found = spark.read.parquet(str(conclusion.decisions))
    assert [(f.name, f.dataType.simpleString()) for f in found.schema] == VAULT
    assert found.count() == 0
    assert list((tmp_path / "tuples").iterdir()) == []


@pytest.mark.parametrize("name", ["risk", "utility", "consistent", "method", "level_x"])
def test_an_id_column_may_be_named_as_a_fact(spark, tmp_path, name):
    """A record's risk must not be written over its id."""
    policy = policy_of({"x": quasi({"flat": {"values": ["a", "b"]}})})
    hierarchies = collect_hierarchies(policy, None, None)  # type: ignore[arg-type]
    conclusion = conclusion_in(tmp_path, hierarchies, record_id=name)
    schema = schemas.decided(T.StructType([T.StructField("record_id", T.StringType())]), 1)
    frame = spark.createDataFrame([("the-id", 1, 2, 0.25, 1.0, 2.0, 4, 1, True, True)], schema)
    (part,) = parts_of(conclude(Batches.of_frame(frame), partial(Decided.of_columns, k=1), conclusion))
    table = pq.read_table(f"{conclusion.decisions}/{part['name']}")
    assert table.column_names == ["record_id", "level_x", "risk", "utility", "consistent", "method"]
    assert [column.to_pylist() for column in table.columns] == [["the-id"], [1], [0.25], [2.0], [4], ["exact"]]


def test_records_that_cannot_reach_the_floor_are_those_of_a_loop(spark):
    policy = policy_for(PROBLEMS[2])
    frames = layouts(spark, ROWS, SCHEMA)
    hierarchies = collect_hierarchies(policy, frames[0], None)
    disclosure = disclosure_of(policy, hierarchies, axes(policy, hierarchies))
    weights = {"place": 1, "chain": 1, "sex": 2}
    for wanted_rows in (ROWS, [row for row in ROWS if None not in row[1:4]]):
        greatest = [
            sum(w * len(n) for w, n in zip(weights.values(), nodes_of(row), strict=True)) for row in wanted_rows
        ]
        for floor in (0, min(greatest), min(greatest) + 1, max(greatest) + 1):
            asked = policy.model_copy(
                update={"decision": policy.decision.model_copy(update={"utility_at_least": floor})}
            )
            short = sum(utility < floor for utility in greatest)
            for frame in layouts(spark, wanted_rows, SCHEMA):
                coded = encode(frame, policy, hierarchies, blocks=False)
                coded = resolve(coded, hierarchies, policy.quasi_identifiers, dictionary=False)
                found = collect_unreachable(coded, disclosure, decision_of(asked), k=3)
                assert (found is None) == (short == 0)
                if found is not None:
                    assert f"{short:,} of {len(wanted_rows):,} records cannot reach {floor:g} even" in str(found)
                    assert f"all can reach {min(greatest):g}." in str(found)
