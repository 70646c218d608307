from __future__ import annotations

import itertools
import math
import random
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
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
    parts_of,
    path,
    policy_of,
    quasi,
    shuffled,
    together,
)
from parts import at
from pyspark.sql import types as T

from privrisk_spark.engine import batches, schemas
from privrisk_spark.engine.batches import Batches, Scratch, write_ipc
from privrisk_spark.engine.counts import StoredCounts
from privrisk_spark.engine.value_codes import resolve, resolved_vectors
from privrisk_spark.engine.vectors import collect_records, collect_vectors, vectors_of_table
from privrisk_spark.errors import InputError
from privrisk_spark.kernels.counting.consistent import consistent_at
from privrisk_spark.kernels.numeric.histogram import VectorHistogram
from privrisk_spark.planning.counting import plan_of
from privrisk_spark.planning.dictionaries import Alphabet, alphabets, axes
from privrisk_spark.policy.dictionaries import OneDictionary
from privrisk_spark.stages.counting import dense_sorted as counting_stage
from privrisk_spark.stages.counting.dense_sorted import (
    collect_counts,
    count_and_store,
    count_vectors,
    sum_vectors,
    to_dictionary_codes,
    vectors_of,
)
from privrisk_spark.tables.encode import encode, encode_dictionary
from privrisk_spark.tables.opening import collect_hierarchies

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
    """Policy, hierarchies, resolved table and the dictionary's codes (or None)."""
    policy = case.policy
    frame = spark.createDataFrame(case.rows, "x string, y string, z string").repartition(3)
    hierarchies = collect_hierarchies(policy, frame, None)
    encoded = resolve(
        encode(frame, policy, hierarchies, blocks=False), hierarchies, policy.quasi_identifiers, dictionary=False
    )
    if case.kind == "self":
        return policy, hierarchies, encoded, None
    other = spark.createDataFrame(case.other_rows, case.other_schema).repartition(2)
    return policy, hierarchies, encoded, encode_dictionary(other, policy.dictionary, hierarchies)


def alphabets_of(hierarchies: Any, one: OneDictionary) -> dict[str, Alphabet]:
    columns = dict(zip(hierarchies, (schemas.dictionary_codes if one.table else schemas.codes)(3), strict=True))
    return {columns[name]: alphabet for name, alphabet in alphabets(hierarchies, one).items()}


def counted(
    spark: Any, coded: Any, hierarchies: Any, directory: Path, one: OneDictionary
) -> tuple[Any, Any, list[str]]:
    """Vectors of codes and their counts by the driver's sum and by Spark's, which must agree; and their columns."""
    directory.mkdir()
    found = alphabets_of(hierarchies, one)
    names = list(found)
    reported = parts_of(count_vectors(coded, found, at(directory)))
    parts = [part["name"] for part in reported]
    # A part nobody reported is not read.
    write_ipc(pa.table({name: pa.array([0], pa.int32()) for name in names}), at(directory))
    vectors, rows = sum_vectors(at(directory), parts, found)
    assert sum(part["rows"] for part in reported) == rows.sum()
    assert sum(part["wrong"] for part in reported) == 0
    for kind, code in (("nulls", schemas.NULL), ("unknown", schemas.UNKNOWN)):
        wanted = [int(rows[vectors[:, i] == code].sum()) for i in range(len(names))]
        assert [sum(part[kind][i] for part in reported) for i in range(len(names))] == wanted
    grouped = vectors_of(spark, at(directory), parts, names)
    assert grouped.columns == [*names, "n_rows"]
    same, same_rows = collect_vectors(grouped, names, most=1000)
    assert np.array_equal(vectors, same)
    assert np.array_equal(rows, same_rows)
    assert (vectors.dtype, rows.dtype) == (np.int32, np.int64)
    return vectors, rows, names


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
        vectors, rows, names = counted(spark, encoded, hierarchies, tmp_path / "vectors", policy.dictionaries[0])
        assert names == schemas.codes(3)
        assert np.array_equal(vectors, own)
        assert np.array_equal(rows, multiplicity)
        vectors = to_dictionary_codes(vectors, hierarchies)
    else:
        vectors, rows, names = counted(spark, coded, hierarchies, tmp_path / "vectors", policy.dictionaries[0])
        assert names == [name for name, of in zip(schemas.dictionary_codes(3), case.values, strict=True) if of]
        vectors = resolved_vectors(vectors, names, hierarchies, policy.quasi_identifiers)
        assert (vectors.shape, vectors.dtype) == ((len(rows), 3), np.int32)
    assert rows.sum() == len(case.theta)
    of_policy = axes(policy, hierarchies)
    stored = {
        plan: count_and_store(plan, of_policy, vectors, rows, at(tmp_path / plan)) for plan in ("dense", "sorted")
    }
    assert stored["dense"].load().cube.size <= plan_of(policy, hierarchies, policy.dictionaries[0]).cells
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


def test_vectors_do_not_depend_on_the_layout(spark, tmp_path):
    case = Case(3, kind="table", consistency="compatible")
    policy = case.policy
    frames = layouts(spark, case.rows, "x string, y string, z string")
    hierarchies = collect_hierarchies(policy, frames[0], None)
    tables = [
        resolve(
            encode(frame, policy, hierarchies, blocks=False), hierarchies, policy.quasi_identifiers, dictionary=False
        )
        for frame in frames
    ]
    records = [vectors_of_table(table, 3, 0) for table in tables]
    collected = [
        collect_vectors(spark.createDataFrame(shuffled(rows, 7), records[0].schema), schemas.codes(3), most=10**6)
        for rows in together(records)
    ]
    (one,), own = policy.dictionaries, OneDictionary("self", None, "dictionary")
    by_parts = [counted(spark, table, hierarchies, tmp_path / f"t{i}", own)[:2] for i, table in enumerate(tables)]
    dictionaries = []
    for i, frame in enumerate(layouts(spark, case.other_rows, case.other_schema)):
        coded = encode_dictionary(frame, policy.dictionary, hierarchies)
        dictionaries.append(counted(spark, coded, hierarchies, tmp_path / f"d{i}", one)[:2])
    for variants in ([*collected, *by_parts], dictionaries):
        for vectors, counts in variants[1:]:
            assert np.array_equal(vectors, variants[0][0])
            assert np.array_equal(counts, variants[0][1])
        assert variants[0][0].dtype == np.int32
        assert variants[0][1].dtype == np.int64
        assert variants[0][0].tolist() == sorted(variants[0][0].tolist())
    assert dictionaries[0][0].min() == schemas.NULL


def test_resolved_vectors_are_those_of_resolved_frames(spark):
    for seed, kind, consistency in CASES:
        if kind == "self":
            continue
        case = Case(seed, kind=kind, consistency=consistency)
        policy, hierarchies, _, coded = codes_of(spark, case)
        names = coded.schema.fieldNames()
        raw = np.array([list(row.values()) for row in coded.frame().toArrow().to_pylist()], dtype=np.int32)
        clean = resolve(coded, hierarchies, policy.quasi_identifiers, dictionary=True).frame().toArrow().to_pylist()
        found = resolved_vectors(raw, names, hierarchies, policy.quasi_identifiers)
        wanted = [tuple(row.get(name, 0) for name in schemas.dictionary_codes(3)) for row in clean]
        assert sorted(map(tuple, found.tolist())) == sorted(wanted)


def test_a_task_that_holds_too_many_vectors_writes_several_parts(tmp_path, monkeypatch):
    """In one process, so that small limits hold: chunks of three rows, histograms of four vectors."""
    monkeypatch.setattr(batches, "CHUNK_ROWS", 3)
    monkeypatch.setattr(
        counting_stage, "VectorHistogram", lambda radices: VectorHistogram([r * 2**20 for r in radices], most_held=4)
    )
    pick = random.Random(1)
    rows = [(pick.randrange(-2, 6), pick.randrange(-2, 2)) for _ in range(100)]
    arrays = [pa.array([row[i] for row in rows], pa.int32()) for i in range(2)]
    tables = pa.table(arrays, names=["q0", "q1"]).to_batches(max_chunksize=2)
    none = Batches(None, (), T.StructType([]))  # type: ignore[arg-type] - steps are run here
    of = {"q0": Alphabet.of(range(6)), "q1": Alphabet.of([1, 0])}
    (step,) = count_vectors(none, of, at(tmp_path)).steps
    reports = list(step(pa.Table.from_batches([batch]) for batch in tables))
    parts = [report.column("name")[0].as_py() for report in reports]
    assert len(parts) > 3
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(parts)
    for order in (parts, parts[::-1]):
        vectors, times = sum_vectors(at(tmp_path), order, of)
        found = {tuple(vector): n for vector, n in zip(vectors.tolist(), times.tolist(), strict=True)}
        assert found == Counter(rows)
        assert vectors.tolist() == sorted(vectors.tolist())
    # A task without rows still says so.
    (nothing,) = list(step(iter([])))
    vectors, times = sum_vectors(at(tmp_path), [nothing.column("name")[0].as_py()], of)
    assert (vectors.shape, times.shape) == ((0, 2), (0,))
    assert sum_vectors(at(tmp_path), [], of)[0].shape == (0, 2)


def test_a_row_may_stand_for_several_people(spark, tmp_path):
    good = [(0, 3.0), (0, 2.0), (5, 0.0), (-1, 2.0**53 - 1), (-2, 1.0), (5, 7.0)]
    bad = [(0, -1.0), (0, 0.5), (0, math.nan), (0, None), (0, math.inf), (0, 2.0**53)]
    of = {"t0": Alphabet.of([0, 5])}
    for name, rows, wrong in (("good", good, 0), ("bad", good + bad, 6)):
        (tmp_path / name).mkdir()
        frame = spark.createDataFrame(shuffled(rows, 2), "t0 int, people double").repartition(3)
        reported = parts_of(count_vectors(Batches.of_frame(frame), of, at(tmp_path / name)))
        vectors, times = sum_vectors(at(tmp_path / name), [part["name"] for part in reported], of)
        found = dict(zip(vectors[:, 0].tolist(), times.tolist(), strict=True))
        assert {code: n for code, n in found.items() if n} == {0: 5, 5: 7, -1: 2**53 - 1, -2: 1}
        assert sum(part["wrong"] for part in reported) == wrong
        assert sum(part["rows"] for part in reported) == 13 + 2**53 - 1
        assert sum(part["nulls"][0] for part in reported) == 1
        assert sum(part["unknown"][0] for part in reported) == 2**53 - 1


@pytest.mark.parametrize("plan", ["dense", "sorted"])
def test_more_people_than_a_float_can_count_are_refused_before_they_overflow(spark, tmp_path, plan):
    """Each row is allowed, and 2,000 of them, in one task, are 2^63 and more: the sum would be negative."""
    dictionary = {"kind": "table", "path": "in/d", "columns": {"x": "x"}, "weight": "people"}
    policy = policy_of({"x": quasi({"flat": {"values": ["a", "b"]}})}, dictionary=dictionary, counting={"plan": plan})
    hierarchies = collect_hierarchies(policy, None, None)  # type: ignore[arg-type] - every leaf is declared
    (one,) = policy.dictionaries
    choice = plan_of(policy, hierarchies, one)
    for people, rows in ((2**53 - 2, 1), (2**53 - 1, 1), (2**53 - 1, 2000)):
        register = spark.createDataFrame([("a", float(people))] * rows + [("b", 1.0)], "x string, people double")
        rows_of = encode_dictionary(register.coalesce(1), policy.dictionary, hierarchies)
        given = (rows_of, policy, hierarchies, one, choice)
        scratch = Scratch(spark, tmp_path / f"{people}-{rows}")
        scratch.path.mkdir()
        if rows * people + 1 < 2**53:
            counts = collect_counts(scratch, *given)[1]
            assert isinstance(counts, StoredCounts)
            assert counts.load().dictionary_rows == rows * people + 1
            continue
        with pytest.raises(InputError, match=r"dictionary\.weight: .* fewer than 9,007,199,254,740,992") as refused:
            collect_counts(scratch, *given)
        assert f"Got {rows * people + 1:,};" in str(refused.value)


@pytest.mark.parametrize(
    ("values", "warned"),
    [
        ([*["a"] * 3, *(f"A{n}" for n in range(600)), None], "only 0.50% of the dictionary is in the hierarchy. It "),
        (["a", "b", "c", *(f"A{n}" for n in range(600))], None),  # a register of more places than the table's
        ([*["a"] * 7, *(f"A{n}" for n in range(600))], None),
        (["a", *[None] * 600], None),
    ],
)
def test_collect_counts_of_a_dictionary_almost_outside_its_hierarchy_warns(
    spark, tmp_path, monkeypatch, values, warned
):
    dictionary = {"kind": "table", "path": "in/d", "columns": {"x": "x"}}
    specs = {"x": quasi({"flat": {"values": ["a", "b", "c"]}}, nulls="suppress")}
    policy = policy_of(specs, dictionary=dictionary)
    hierarchies = collect_hierarchies(policy, None, None)  # type: ignore[arg-type] - every leaf is declared
    (one,) = policy.dictionaries
    frame = spark.createDataFrame([(value,) for value in values], "x string").repartition(2)
    logged: list[str] = []
    monkeypatch.setattr(counting_stage.LOGGER, "warning", lambda form, *of: logged.append(form % of))
    rows = encode_dictionary(frame, policy.dictionary, hierarchies)
    collect_counts(Scratch(spark, tmp_path), rows, policy, hierarchies, one, plan_of(policy, hierarchies, one))
    assert len(logged) == (warned is not None)
    for line in logged:
        assert line.startswith(f"dictionary.columns.x: {warned}")


def test_alphabets_hold_what_a_column_can_hold(spark):
    assert Alphabet.of([7, 3, 3]).codes.tolist() == [-2, -1, 3, 7]
    ranks = Alphabet.of([7, 3]).ranks()
    assert [int(ranks[code + 2]) for code in (-2, -1, 3, 7)] == [0, 1, 2, 3]
    for seed, kind, consistency in CASES:
        case = Case(seed, kind=kind, consistency=consistency)
        policy, hierarchies, encoded, coded = codes_of(spark, case)
        of = alphabets_of(hierarchies, policy.dictionaries[0])
        rows = (encoded if coded is None else coded).frame().toArrow().to_pylist()
        assert all(row[name] in of[name].codes for row in rows for name in of)


def test_weights_split_records_but_not_counts(spark):
    rows = [(0, 1, 0.5), (0, 1, 0.5), (0, 1, 2.0), (1, 0, -0.0), (1, 0, 0.0)]
    frame = spark.createDataFrame(rows, "q0 int, q1 int, w0 double")
    rows_of = Batches.of_frame(frame)
    split, plain = vectors_of_table(rows_of, 2, 1), vectors_of_table(rows_of, 2, 0)
    assert split.columns == ["q0", "q1", "w0", "n_rows"]
    found = [tuple(r.values()) for r in split.toArrow().to_pylist()]
    assert sorted(found) == [(0, 1, 0.5, 2), (0, 1, 2.0, 1), (1, 0, 0.0, 2)]
    vectors, counts = collect_vectors(plain, ["q0", "q1"], most=2)
    assert vectors.tolist() == [[0, 1], [1, 0]]
    assert counts.tolist() == [3, 2]
    assert vectors_of_table(Batches.of_frame(frame.limit(0)), 2, 1).toArrow().num_rows == 0


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
        return plan_of(policy, hierarchies, policy.dictionaries[0])

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
        stored = count_and_store(plan, of_policy, vectors, np.array(rows), at(tmp_path / "counts"))
        assert stored.load().consistent(*asked).tolist() == rows
        assert stored.load() is stored.load()
        shutil.rmtree(tmp_path / "counts")


@pytest.mark.parametrize("parts", [1, 4, 11])
def test_records_are_collected_alike_with_and_without_a_shuffle(spark, parts):
    """Where it is known that the table has few enough rows, its chunks' distinct records come as they are."""
    rows = [(i % 5, (i * i) % 3, 7 - i % 2) for i in range(400)]
    frame = spark.createDataFrame(rows, "q0 int, q1 int, q2 int").repartition(parts)
    table = Batches.of_frame(frame)
    vectors, counts = collect_records(table, 3, most=1000)
    assert [(*vector, n) for vector, n in zip(vectors.tolist(), counts.tolist(), strict=True)] == [
        (*vector, n) for vector, n in sorted(Counter(rows).items())
    ]
    for read in (0, 399, 400, 10**6):
        again, times = collect_records(table, 3, most=399, rows=read)
        np.testing.assert_array_equal(again, vectors)
        np.testing.assert_array_equal(times, counts)
        assert (again.dtype, times.dtype) == (np.int32, np.int64)
    with pytest.raises(InputError, match=r"counting\.sorted_vectors: there are more than 4 distinct"):
        collect_records(table, 3, most=4, rows=400)
    empty = Batches.of_frame(frame.limit(0))
    vectors, counts = collect_records(empty, 3, most=10, rows=0)
    assert (vectors.shape, counts.shape) == ((0, 3), (0,))
