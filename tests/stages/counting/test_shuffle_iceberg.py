from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import naive
import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import types as T

from privrisk_spark.engine import schemas
from privrisk_spark.engine.counts import SpreadVectors, own_vectors
from privrisk_spark.engine.decided import integers
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.counting.cells import CellSpace
from privrisk_spark.kernels.counting.consistent import Axis, DenseCounts
from privrisk_spark.kernels.disclosure.disclosure import Disclosure
from privrisk_spark.kernels.disclosure.objective import LeastRisk
from privrisk_spark.kernels.disclosure.sensitivity import Sensitivity, harmonic_weights
from privrisk_spark.kernels.disclosure.utility import node_utility
from privrisk_spark.kernels.search.cells_asked import needed_cells
from privrisk_spark.kernels.search.method import Search
from privrisk_spark.kernels.search.table_search import decide
from privrisk_spark.stages.counting.look_up import SpreadLookup
from privrisk_spark.stages.counting.shuffle_iceberg import (
    collect_frequent,
    count_cells,
    frequent_cells,
    marginals,
    words,
)

PATHS = [
    [("a", "far", "north"), ("b", "north"), ("c", "north"), ("d", "deep", "south"), ("e", "deep", "south"), ("z",)],
    [("p", "chain", "only"), ("q", "chain", "only")],
    [("k", "left"), ("l", "left"), ("m", "right")],
]
HIERARCHIES = [Hierarchy.from_paths(name, paths) for name, paths in zip("abc", PATHS, strict=True)]
PRESENT = [np.arange(h.n_nodes + 1, dtype=np.int32) for h in HIERARCHIES]
K = len(HIERARCHIES)


class World:
    """Records, a dictionary with multiplicities and owners, and everything naive about them."""

    def __init__(self, meaning: str, *, lacking: tuple[int, ...] = (), rows: int = 30, seed: int = 0) -> None:
        pick = np.random.default_rng(seed)
        self.meaning, self.lacking = meaning, lacking
        self.axes = [
            Axis(h.at_depth, h.ancestor, meaning, known=i not in lacking, wildcard=i == 0)  # type: ignore[arg-type]
            for i, h in enumerate(HIERARCHIES)
        ]
        leaves = [pick.integers(0, h.n_leaves + 1, 20) for h in HIERARCHIES]
        self.records = np.unique(np.column_stack(leaves).astype(np.int32), axis=0)
        # Mostly leaves, so that frequencies are uneven; any node and values outside besides.
        nodes = []
        for h in HIERARCHIES:
            leaf, node = pick.integers(0, h.n_leaves, rows) // 2, pick.integers(0, h.n_nodes + 1, rows)
            nodes.append(np.where(pick.random(rows) < 0.7, leaf, node))
        self.theta = np.column_stack(nodes).astype(np.int32)
        self.weights = pick.integers(1, 4, rows)
        self.owners = [f"person-{n}" for n in pick.integers(0, 9, rows)]

    def vectors(self, spark: Any, *, entities: bool = False) -> Any:
        """VECTORS of the dictionary; a vector may come in several rows."""
        tally = self.owners if entities else self.weights.tolist()
        known = [i for i in range(K) if i not in self.lacking]
        rows = [(*map(int, row[known]), n) for row, n in zip(self.theta, tally, strict=True)]
        fields = [*[f"t{i} int" for i in known], "entity string" if entities else "n_rows long"]
        return spark.createDataFrame(rows, ", ".join(fields))

    def rho(self, space: CellSpace, *, entities: bool = False) -> dict[tuple[int, ...], int]:
        """Naive counts above 0 by class vector."""
        parents = [h.parent.tolist() for h in HIERARCHIES]
        flags = [a.wildcard for a in self.axes]
        rows = [[None if v == h.n_nodes else int(v) for v, h in zip(r, HIERARCHIES, strict=True)] for r in self.theta]
        result = {}
        for nodes in itertools.product(*[range(h.n_nodes) for h in HIERARCHIES]):
            cell = tuple(int(r.node_class[x]) for r, x in zip(space.relations, nodes, strict=True))
            if cell in result:
                continue
            found = [
                bool(naive.count(parents, nodes, [row], self.meaning, wildcards=flags, lacking=self.lacking))
                for row in rows
            ]
            hit = np.flatnonzero(found)
            n = len({self.owners[i] for i in hit}) if entities else int(self.weights[hit].sum())
            if n:
                result[cell] = n
        return result

    @property
    def dense(self) -> DenseCounts:
        vectors, member = np.unique(self.theta, axis=0, return_inverse=True)
        sums = np.zeros(len(vectors), dtype=np.int64)
        np.add.at(sums, member.ravel(), self.weights)
        return DenseCounts.roll_up(self.axes, vectors.astype(np.int32), sums)

    @property
    def disclosure(self) -> Disclosure:
        return Disclosure(
            ancestor=tuple(h.ancestor for h in HIERARCHIES),
            code_depth=tuple(axis.code_depth for axis in self.axes),
            utility=tuple(node_utility("depth", h.depth, h.n_under) for h in HIERARCHIES),
            sensitivity=Sensitivity(
                "linear",
                tuple(harmonic_weights(h.parent, h.depth, h.n_leaves, np.ones(h.n_leaves)) for h in HIERARCHIES),
            ),
            model="I",
        )


class Scratch:
    """Writes frames once and remembers how many rows each had."""

    def __init__(self, spark: Any, directory: Path) -> None:
        self.spark, self.directory = spark, directory
        self.rows: dict[str, int] = {}

    def __call__(self, frame: Any, name: str) -> Any:
        assert name not in self.rows
        frame.write.parquet(str(self.directory / name))
        back = self.spark.read.schema(frame.schema).parquet(str(self.directory / name))
        self.rows[name] = back.count()
        return back


def by_class(frame: Any, space: CellSpace) -> dict[tuple[int, ...], int]:
    table = frame.toArrow()
    assert table.column_names == [*words(space), "n_rows"]
    assert all(field.type == pa.int64() for field in table.schema)
    cells = space.classes([table.column(name).to_numpy() for name in words(space)])
    found = {tuple(c): n for c, n in zip(cells.tolist(), table.column("n_rows").to_pylist(), strict=True)}
    assert len(found) == table.num_rows, "one row per cell"
    return found


def decide_step(disclosure: Disclosure, search: Search) -> tuple[Any, T.StructType]:
    names = [*schemas.codes(K), "w0", *schemas.levels(K), "risk", "consistent"]

    def step(table: pa.Table, counts: Any) -> pa.Table:
        codes = np.column_stack([table.column(name).to_numpy() for name in schemas.codes(K)])
        decisions = decide(disclosure, search, counts, codes.astype(np.int32))
        levels = [pa.array(column) for column in decisions.levels.T]
        kept = [table.column(name).combine_chunks() for name in names[: K + 1]]
        return pa.table([*kept, *levels, pa.array(decisions.risk), pa.array(decisions.consistent)], names=names)

    kinds = ["int"] * K + ["double"] + ["tinyint"] * K + ["double", "long"]
    return step, T.StructType.fromDDL(", ".join(f"{n} {k}" for n, k in zip(names, kinds, strict=True)))


@pytest.mark.parametrize(
    ("partitions", "meaning", "lacking", "room", "prune", "rows"),
    [
        (1, "subsumes", (), 2**63, (), 30),
        (4, "compatible", (), 40, None, 30),
        (11, "compatible", (1,), 2**63, (0,), 30),
        (2, "subsumes", (0, 1, 2), 2**63, (), 30),
        (3, "subsumes", (), 8, None, 0),
    ],
    ids=["one", "four-words", "eleven-lacking", "lacks-all", "empty"],
)
def test_decisions_by_shuffle_are_those_of_the_dense_plan(
    spark: Any,
    tmp_path: Path,
    partitions: int,
    meaning: str,
    lacking: tuple[int, ...],
    room: int,
    prune: Any,
    rows: int,
) -> None:
    world = World(meaning, lacking=lacking, rows=rows)
    space = CellSpace.of(world.axes, PRESENT, room=room)
    assert (space.n_words > 1) == (room < 2**63)
    disclosure, search = world.disclosure, Search(LeastRisk(4.0))
    step, schema = decide_step(disclosure, search)
    scratch = Scratch(spark, tmp_path)
    # Every record twice, with two weights: both are decided.
    twice = [(*map(int, record), w) for w in (0.5, 2.0) for record in world.records]
    records = spark.createDataFrame(twice, "q0 int, q1 int, q2 int, w0 double").repartition(partitions)
    vectors = world.vectors(spark).repartition(partitions)
    spread = SpreadVectors("shuffle", world.axes, vectors, int(world.weights.sum()))
    lookup = SpreadLookup(spread, space, disclosure, scratch, prune=prune, tasks=partitions)

    def asked(table: pa.Table) -> list[Any]:
        return needed_cells(disclosure, 4.0, space, integers(table, schemas.codes(K)))

    again = partitions % 2 == 1
    found = lookup.collect_asked(records, asked, again=again).each(step, schema)
    assert ("answers" in scratch.rows) == again
    got = sorted(tuple(row.values()) for row in found.toArrow().to_pylist())
    want = decide(disclosure, search, world.dense, world.records)
    rows_wanted = [
        (*map(int, record), w, *levels, risk, rho)
        for w in (0.5, 2.0)
        for record, levels, risk, rho in zip(
            world.records, want.levels.tolist(), want.risk.tolist(), want.consistent.tolist(), strict=True
        )
    ]
    assert got == sorted(rows_wanted)
    # A chunk asks once for a cell, however many of its records generalize to it.
    alone = len(needed_cells(disclosure, 4.0, space, world.records)[0])
    assert alone <= scratch.rows["needed"] <= alone * partitions


@pytest.mark.parametrize("entities", [False, True], ids=["rows", "entities"])
def test_every_cell_is_the_naive_count_and_frequent_ones_are_those_above_t(
    spark: Any, tmp_path: Path, entities: bool
) -> None:
    world = World("compatible" if entities else "subsumes", seed=1, rows=40)
    space = CellSpace.of(world.axes, PRESENT, order=[0, 2, 1], room=100 if entities else 2**63)
    rho = world.rho(space, entities=entities)
    vectors = world.vectors(spark, entities=entities).repartition(4)
    assert by_class(count_cells(vectors, space, entities=entities), space) == rho

    one_by_one = marginals(vectors, space, entities=entities).toArrow().to_pylist()
    alone = {(row["attribute"], row["class"]): row["n_rows"] for row in one_by_one}
    roots = [int(r.node_class[h.root]) for r, h in zip(space.relations, HIERARCHIES, strict=True)]
    singles = {
        (i, c): [*roots[:i], c, *roots[i + 1 :]] for i, r in enumerate(space.relations) for c in range(r.n_classes)
    }
    assert alone == {key: rho[tuple(cell)] for key, cell in singles.items() if tuple(cell) in rho}

    least = sorted(rho.values())[-25]
    wanted = {cell: n for cell, n in rho.items() if n >= least}
    assert 25 <= len(wanted) < len(rho) / 2
    frequent = collect_frequent(vectors, space, least, entities=entities)
    all_rows, pruned, both = (Scratch(spark, tmp_path / name) for name in ("all", "pruned", "both"))
    for scratch, cells, t in ((all_rows, space, 1), (pruned, space, least), (both, frequent, least)):
        found = frequent_cells(vectors, cells, t, materialize=scratch, entities=entities)
        assert by_class(found, space) == (rho if t == 1 else wanted)
    # Rows expanded after the first attribute: fewer with pruning, fewer still when rare classes were never made.
    assert pruned.rows["rows-1"] < all_rows.rows["rows-1"]
    assert both.rows["rows-0"] < pruned.rows["rows-0"] == all_rows.rows["rows-0"]
    assert both.rows["rows-1"] < pruned.rows["rows-1"]
    assert both.rows["frequent-1"] <= pruned.rows["frequent-1"] < all_rows.rows["frequent-1"]


def test_a_table_is_its_own_dictionary_with_its_nulls_as_roots(spark: Any) -> None:
    world = World("subsumes", seed=2)
    records = spark.createDataFrame(
        [(*map(int, record), 0.5, 3) for record in world.records], "q0 int, q1 int, q2 int, w0 double, n_rows long"
    )
    vectors = own_vectors(records, world.axes, "n_rows")
    assert vectors.columns == [*schemas.dictionary_codes(K), "n_rows"]
    world.theta = np.column_stack(
        [np.where(c == h.n_leaves, h.root, c) for c, h in zip(world.records.T, HIERARCHIES, strict=True)]
    ).astype(np.int32)
    assert (world.theta[:, 0] == HIERARCHIES[0].root).any()
    world.weights = np.full(len(world.records), 3)
    space = CellSpace.of(world.axes, PRESENT)
    assert by_class(count_cells(vectors, space), space) == world.rho(space)


def test_pruned_counts_are_those_of_the_cells_needed(spark: Any) -> None:
    world = World("compatible", seed=3)
    space = CellSpace.of(world.axes, PRESENT, room=30)
    needed = needed_cells(world.disclosure, 5.0, space, world.records[:1])
    rows = list(zip(*[word.tolist() for word in needed], strict=True))
    frame = spark.createDataFrame([*rows, *rows[:2]], ", ".join(f"{name} long" for name in words(space)))
    asked = {tuple(c) for c in space.classes(needed).tolist()}
    rho = world.rho(space)
    found = by_class(count_cells(world.vectors(spark), space, needed=frame), space)
    assert found == {cell: n for cell, n in rho.items() if cell in asked}
    assert len(found) < len(rho)
    half = by_class(count_cells(world.vectors(spark), space, needed=frame, prune=[0]), space)
    assert {cell: n for cell, n in half.items() if cell in asked} == found
    assert len(found) < len(half) < len(rho)


def test_iceberg_is_refused_where_nothing_may_be_pruned(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World("subsumes")
    space = CellSpace.of(world.axes, PRESENT)
    vectors = world.vectors(spark)
    with pytest.raises(ValueError, match="at least 1"):
        frequent_cells(vectors, space, 0, materialize=lambda frame, _: frame)
    monkeypatch.setattr(CellSpace, "monotone", False)
    with pytest.raises(ValueError, match="under 'similar'"):
        frequent_cells(vectors, space, 2, materialize=lambda frame, _: frame)
