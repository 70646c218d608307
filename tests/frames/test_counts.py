from __future__ import annotations

import itertools
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from naive_records import (
    NULL_LEAF,
    OUTSIDE,
    ROOT,
    Node,
    count,
    generalized,
    layouts,
    leaves_of,
    levels_above,
    node_of,
    path,
    policy_of,
    quasi,
    shuffled,
    together,
)

from privrisk_spark import schemas
from privrisk_spark.counts import (
    axes,
    choose_plan,
    collect_vectors,
    count_and_store,
    to_dictionary_codes,
    vectors_of_dictionary,
    vectors_of_table,
)
from privrisk_spark.errors import InputError
from privrisk_spark.kernels.counting import consistent_at
from privrisk_spark.table import collect_hierarchies, encode, encode_dictionary, resolve

TREES: list[Any] = [
    {"*": ["z", {"north": ["a", "b", {"far": ["c"]}]}, {"south": [{"deep": ["d", "e"]}, "f"]}]},
    {"*": {"only": {"chain": ["p", "q"]}}},
    {"*": ["u", "v"]},
    {"*": {"left": ["k", "l", "m"], "right": {"one": {"two": ["n"]}}}},
]
COLUMNS = "xyz"


class Case:
    """A random table and dictionary over three attributes, and everything naive about them."""

    def __init__(self, seed: int, *, kind: str, consistency: str) -> None:
        pick = random.Random(seed)
        self.kind, self.consistency = kind, consistency
        self.trees = [pick.choice(TREES) for _ in COLUMNS]
        self.leaves = [leaves_of(tree["*"]) for tree in self.trees]
        self.nulls = [pick.choice(["own-value", "wildcard", "suppress"]) for _ in COLUMNS]
        self.rows = [
            tuple(pick.choice([*leaves, None, "?"] if pick.random() < 0.4 else [*leaves]) for leaves in self.leaves)
            for _ in range(24)
        ]
        self.rows += self.rows[:4]
        self.columns: dict[str, Any] = {}
        self.values: list[dict[str, Node] | None] = []
        for name, leaves in zip(COLUMNS, self.leaves, strict=True):
            how = pick.choice(["leaf", "renamed", "coarser", "lacking"]) if self.columns else "renamed"
            level = {"leaf": None, "renamed": 0, "coarser": pick.choice([1, 2]), "lacking": None}[how]
            level = None if level is None else min(level, max(len(node) for node in leaves.values()))
            if how == "lacking":
                self.values.append(None)
                continue
            nodes = {generalized(node, level or 0) for node in leaves.values()}
            self.values.append({node[-1] if node else "*": node for node in nodes})
            self.columns[name] = name if how == "leaf" else {"column": f"{name}_of", "level": level}
        self.other = [
            tuple(
                None if values is None else pick.choice([*values, *values, *values, None, "outside", "*"])
                for values in self.values
            )
            for _ in range(40)
        ]

    @property
    def policy(self) -> Any:
        specs = {
            name: quasi({"tree": tree}, nulls=nulls, unknown="suppress")
            for name, tree, nulls in zip(COLUMNS, self.trees, self.nulls, strict=True)
        }
        if self.kind == "self":
            return policy_of(specs, dictionary={"kind": "self", "consistency": self.consistency})
        dictionary = {"kind": "table", "path": "in/o", "consistency": self.consistency, "columns": self.columns}
        return policy_of(specs, dictionary=dictionary)

    @property
    def records(self) -> list[tuple[Node, ...]]:
        """The table as nodes."""
        return [
            tuple(node_of(v, leaves, nulls) for v, leaves, nulls in zip(row, self.leaves, self.nulls, strict=True))
            for row in self.rows
        ]

    @property
    def theta(self) -> list[tuple[Node | None, ...]]:
        """The dictionary as nodes; None where it lacks the attribute."""
        if self.kind == "self":
            return list(self.records)
        return [
            tuple(
                None
                if values is None
                else (NULL_LEAF if nulls == "own-value" else ROOT)
                if value is None
                else ROOT
                if value == "*"
                else values.get(value, OUTSIDE)
                for value, values, nulls in zip(row, self.values, self.nulls, strict=True)
            )
            for row in self.other
        ]

    @property
    def other_schema(self) -> str:
        named = [entry if isinstance(entry, str) else entry["column"] for entry in self.columns.values()]
        return ", ".join(f"`{name}` string" for name in named)

    @property
    def other_rows(self) -> list[tuple[str | None, ...]]:
        known = [i for i, values in enumerate(self.values) if values is not None]
        return [tuple(row[i] for i in known) for row in self.other]


def codes_of(spark: Any, case: Case) -> tuple[Any, Any, Any, Any]:
    """Policy, hierarchies, resolved table and resolved dictionary (or None)."""
    policy = case.policy
    frame = spark.createDataFrame(case.rows, "x string, y string, z string").repartition(3)
    hierarchies = collect_hierarchies(policy, frame, None)
    encoded = resolve(
        encode(frame, policy, hierarchies, blocks=False), hierarchies, policy.quasi_identifiers, dictionary=False
    )
    if case.kind == "self":
        return policy, hierarchies, encoded, None
    other = spark.createDataFrame(case.other_rows, case.other_schema).repartition(2)
    coded = encode_dictionary(other, policy, hierarchies)
    return policy, hierarchies, encoded, resolve(coded, hierarchies, policy.quasi_identifiers, dictionary=True)


CASES = [(0, "self", "subsumes"), (1, "self", "compatible")]
CASES += [(seed, "table", "subsumes") for seed in (22, 26, 34)] + [
    (seed, "table", "compatible") for seed in (13, 25, 38)
]


@pytest.mark.parametrize(("seed", "kind", "consistency"), CASES)
def test_both_plans_are_the_double_loop(spark, tmp_path, seed, kind, consistency):
    case = Case(seed, kind=kind, consistency=consistency)
    policy, hierarchies, encoded, coded = codes_of(spark, case)
    own, multiplicity = collect_vectors(vectors_of_table(encoded, 3, 0), schemas.codes(3), most=1000)
    assert multiplicity.sum() == len(case.rows)
    assert own.tolist() == sorted(own.tolist())
    if coded is None:
        vectors, rows = to_dictionary_codes(own, hierarchies), multiplicity
    else:
        vectors, rows = collect_vectors(vectors_of_dictionary(coded), schemas.dictionary_codes(3), most=1000)
    assert rows.sum() == len(case.theta)
    of_policy = axes(policy, hierarchies)
    stored = {plan: count_and_store(plan, of_policy, vectors, rows, tmp_path / plan) for plan in ("dense", "sorted")}
    assert stored["dense"].load().cube.size <= choose_plan(policy, hierarchies, of_policy).cells
    nodes = [list(h.labels) for h in hierarchies.values()]
    assert all(len(labels) == h.n_nodes for labels, h in zip(nodes, hierarchies.values(), strict=True))
    depth = [axis.code_depth for axis in of_policy]
    checked = 0
    for codes in own[:: max(1, len(own) // 7)]:
        record = tuple(
            ROOT if code == h.n_leaves else path(h, int(code))
            for code, h in zip(codes, hierarchies.values(), strict=True)
        )
        assert record in case.records
        depths = [int(d[code]) for d, code in zip(depth, codes, strict=True)]
        assert depths == [len(node) for node in record]
        for levels in levels_above(record):
            disclosed = [generalized(node, level) for node, level in zip(record, levels, strict=True)]
            wanted = count(disclosed, case.theta, consistency, case.nulls)
            columns = [np.array([code], dtype=np.int32) for code in codes]
            for plan, kept in stored.items():
                assert kept.load().consistent(columns, levels, depths).tolist() == [wanted], (plan, record, levels)
            checked += 1
    assert checked >= 50
    # All records of any depth at once, cut at the depth of their values; the top counts the whole dictionary.
    heights = [h.height for h in hierarchies.values()]
    for levels in [(0, 0, 0), (1, 0, 2), (1, 1, 1), tuple(heights)]:
        cut = [min(level, height) for level, height in zip(levels, heights, strict=True)]
        wanted_all = [
            count(
                [generalized(ROOT if c == h.n_leaves else path(h, int(c)), level) for c, h, level in zip(
                    codes, hierarchies.values(), cut, strict=True)],
                case.theta, consistency, case.nulls,
            )
            for codes in own
        ]  # fmt: skip
        for kept in stored.values():
            assert consistent_at(kept.load(), depth, own, cut).tolist() == wanted_all
    assert wanted_all == [len(case.theta)] * len(own)


def test_the_cases_above_meet_every_kind_of_dictionary():
    kinds = set()
    for seed, kind, consistency in CASES:
        case = Case(seed, kind=kind, consistency=consistency)
        if kind == "table":
            kinds |= {(consistency, "lacking") for values in case.values if values is None}
            kinds |= {
                (consistency, "coarser")
                for entry in case.columns.values()
                if not isinstance(entry, str) and entry["level"]
            }
            kinds |= {(consistency, nulls) for nulls in case.nulls}
    wanted = ["lacking", "coarser", "own-value", "wildcard", "suppress"]
    assert kinds == set(itertools.product(["subsumes", "compatible"], wanted))


def test_vectors_do_not_depend_on_the_layout(spark):
    case = Case(3, kind="table", consistency="compatible")
    policy = case.policy
    frames = layouts(spark, case.rows, "x string, y string, z string")
    hierarchies = collect_hierarchies(policy, frames[0], None)

    def table_of(frame: Any) -> Any:
        encoded = encode(frame, policy, hierarchies, blocks=False)
        return vectors_of_table(resolve(encoded, hierarchies, policy.quasi_identifiers, dictionary=False), 3, 0)

    def dictionary_of(frame: Any) -> Any:
        coded = encode_dictionary(frame, policy, hierarchies)
        return vectors_of_dictionary(resolve(coded, hierarchies, policy.quasi_identifiers, dictionary=True))

    for names, parts in (
        (schemas.codes(3), [table_of(frame) for frame in frames]),
        (schemas.dictionary_codes(3), [dictionary_of(f) for f in layouts(spark, case.other_rows, case.other_schema)]),
    ):
        variants = together(parts)
        collected = [
            collect_vectors(spark.createDataFrame(shuffled(rows, 7), parts[0].schema), names, most=10**6)
            for rows in variants
        ]
        for vectors, counts in collected[1:]:
            assert np.array_equal(vectors, collected[0][0])
            assert np.array_equal(counts, collected[0][1])
        assert collected[0][0].dtype == np.int32
        assert collected[0][1].dtype == np.int64


def test_weights_split_records_but_not_counts(spark):
    rows = [(0, 1, 0.5), (0, 1, 0.5), (0, 1, 2.0), (1, 0, -0.0), (1, 0, 0.0)]
    frame = spark.createDataFrame(rows, "q0 int, q1 int, w0 double")
    split, plain = vectors_of_table(frame, 2, 1), vectors_of_table(frame, 2, 0)
    assert split.columns == ["q0", "q1", "w0", "n_rows"]
    found = [tuple(r.values()) for r in split.toArrow().to_pylist()]
    assert sorted(found) == [(0, 1, 0.5, 2), (0, 1, 2.0, 1), (1, 0, 0.0, 2)]
    vectors, counts = collect_vectors(plain, ["q0", "q1"], most=2)
    assert vectors.tolist() == [[0, 1], [1, 0]]
    assert counts.tolist() == [3, 2]


def test_more_vectors_than_allowed_are_refused(spark):
    frame = spark.createDataFrame([(i, 1) for i in range(3)], "q0 int, n_rows long")
    with pytest.raises(InputError, match=r"counting\.sorted_vectors: there are more than 2 distinct"):
        collect_vectors(frame, ["q0"], most=2)
    vectors, counts = collect_vectors(frame.where("q0 < 0"), ["q0", "q1"], most=2)
    assert vectors.shape == (0, 2)
    assert counts.shape == (0,)


def test_the_plan_is_chosen_by_its_cells_and_a_forced_one_must_fit():
    def choose(**counting: Any) -> Any:
        columns = {"x": quasi({"flat": {"values": ["a", "b"]}}), "y": quasi({"flat": {"values": ["c", "d", "e"]}})}
        policy = policy_of(columns, counting=counting)
        hierarchies = collect_hierarchies(policy, None, None)  # type: ignore[arg-type] - every leaf is declared
        return choose_plan(policy, hierarchies, axes(policy, hierarchies))

    # Two flat attributes of 2 and 3 leaves have 3 · 4 cells, of the table's own nodes.
    assert (choose().plan, choose().cells) == ("dense", 12)
    assert choose(dense_cells=12).plan == "dense"
    assert choose(dense_cells=11).plan == "sorted"
    assert "12 cells against a budget of 11" in choose(dense_cells=11).reason
    assert choose(plan="sorted").plan == "sorted"
    with pytest.raises(InputError, match=r"counting\.plan: 'dense' needs 12 cells against a budget of 11 .*'sorted'"):
        choose(plan="dense", dense_cells=11)


@pytest.mark.parametrize("plan", ["dense", "sorted"])
def test_a_count_in_the_place_of_an_older_one_is_not_mixed_up_with_it(tmp_path: Path, plan):
    columns = {"x": quasi({"flat": {"values": ["a", "b"]}})}
    policy = policy_of(columns)
    hierarchies = collect_hierarchies(policy, None, None)  # type: ignore[arg-type]
    of_policy = axes(policy, hierarchies)
    vectors = np.array([[0], [1]], dtype=np.int32)
    asked = ([np.array([0, 1], dtype=np.int32)], [0], [1])
    for rows in ([5, 7], [2, 1]):
        # A run that failed is run again under its id: same directory, same worker process.
        stored = count_and_store(plan, of_policy, vectors, np.array(rows), tmp_path / "counts")
        assert stored.load().consistent(*asked).tolist() == rows
        assert stored.load() is stored.load()
        shutil.rmtree(tmp_path / "counts")
