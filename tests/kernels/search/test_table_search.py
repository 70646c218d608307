"""One suite for every search: the optimum of the literal search, batch independence, inputs untouched."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive_decisions import Known, Relation, Task, build, check, naive_decision, subsuming, to_dictionary
from strategies import several_hierarchies

from privrisk_spark.errors import InputError
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.counting.consistent import Axis, Counts, DenseCounts, SortedCounts
from privrisk_spark.kernels.counting.similarity import node_similarity
from privrisk_spark.kernels.disclosure.decisions import Decisions
from privrisk_spark.kernels.disclosure.objective import LeastRisk
from privrisk_spark.kernels.disclosure.risk import Attacker
from privrisk_spark.kernels.disclosure.sensitivity import Sensitivity
from privrisk_spark.kernels.disclosure.utility import node_utility
from privrisk_spark.kernels.search import records as kernel
from privrisk_spark.kernels.search import table_search
from privrisk_spark.kernels.search.table_search import decide

SEARCHES = [("exact", "swap"), ("aruba", "swap"), ("aruba", "cube"), ("exhaustive", "swap")]
FIELDS = ("levels", "nodes", "risk", "risk_before", "utility", "consistent", "consistent_before", "feasible")


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[Hierarchy], np.ndarray, np.ndarray, dict[str, object], float]:
    hierarchies = draw(several_hierarchies())
    codes = np.array(
        [[draw(st.integers(0, h.n_leaves)) for h in hierarchies] for _ in range(draw(st.integers(1, 6)))],
        dtype=np.int32,
    )
    others = np.array(
        [[draw(st.integers(0, h.n_leaves - 1)) for h in hierarchies] for _ in range(draw(st.integers(0, 8)))],
        dtype=np.int32,
    ).reshape(-1, len(hierarchies))
    settings: dict[str, object] = {
        "weights": [draw(st.sampled_from([0.0, 0.3, 1.0, math.inf])) for _ in hierarchies],
        "form": draw(st.sampled_from(["constant", "linear", "record", "multiplicative"])),
        "model": draw(st.sampled_from(["I", "II", "III"])),
        "measure": draw(st.sampled_from(["depth", "leaves", "log-leaves", "xiao-tao", "lm"])),
    }
    return hierarchies, codes, others, settings, draw(st.floats(0, 1.1))


@pytest.mark.parametrize(("search", "neighbourhood"), SEARCHES)
@given(case=cases(), personal=st.booleans(), data=st.data())
def test_every_search_is_the_literal_search(
    search: str, neighbourhood: str, case: tuple[list[Hierarchy], np.ndarray, np.ndarray, dict[str, object], float],
    personal: bool, data: st.DataObject,
) -> None:  # fmt: skip
    hierarchies, codes, others, settings, share = case
    top = sum(float(node_utility(settings["measure"], h.depth, h.n_under).max()) for h in hierarchies)  # type: ignore[arg-type]
    problem = build(hierarchies, floor=share * top, search=search, neighbourhood=neighbourhood, **settings)  # type: ignore[arg-type]
    # The first record is left out of the dictionary: it is absent unless another is like it.
    dictionary = to_dictionary(hierarchies, np.concatenate([codes[1:], others]))
    if not len(dictionary):
        dictionary = to_dictionary(hierarchies, codes)
    vectors, multiplicity = np.unique(dictionary, axis=0, return_counts=True)
    axes = [Axis(h.at_depth, h.ancestor) for h in hierarchies]
    scale = np.ones(codes.shape)
    if personal:
        scale = np.array([[data.draw(st.sampled_from([0.0, 0.5, 2.0])) for _ in hierarchies] for _ in codes])
    for counts in (
        DenseCounts.roll_up(axes, vectors.astype(np.int32), multiplicity),
        SortedCounts.group(axes, vectors.astype(np.int32), multiplicity),
    ):
        before = codes.copy()
        found = decide(*problem, counts, codes, personal=scale if personal else None)
        assert (codes == before).all()
        for i, record in enumerate(codes):
            known = Known([[int(v) for v in row] for row in dictionary], subsuming(hierarchies))
            want = naive_decision(problem, hierarchies, record, [known], scale[i].tolist())
            check(found, i, want, hierarchies, record)


def draw_dictionary(
    data: st.DataObject, hierarchies: list[Hierarchy], codes: np.ndarray, meanings: list[str]
) -> tuple[Known, DenseCounts]:
    """A dictionary of any nodes, with some of the records, under meanings drawn per attribute."""
    relations: list[Relation] = []
    axes = []
    for h in hierarchies:
        meaning = data.draw(st.sampled_from(meanings))
        if meaning == "similar":
            axes.append(Axis(h.at_depth, h.ancestor, "similar", similarity=node_similarity(h.labels, 0.85)))
            relations.append(lambda x, t, h=h: naive.resembles(h.labels, x, t, 0.85))
        elif meaning == "lacking":
            axes.append(Axis(h.at_depth, h.ancestor, known=False))
            relations.append(lambda x, t: True)
        else:
            axes.append(Axis(h.at_depth, h.ancestor, meaning))  # type: ignore[arg-type]
            relations.append(lambda x, t, h=h, m=meaning: naive.consistent(h.parent.tolist(), x, t, m))
    rows = [[data.draw(st.integers(0, h.n_nodes)) for h in hierarchies] for _ in range(data.draw(st.integers(0, 6)))]
    rows += to_dictionary(hierarchies, codes[data.draw(st.integers(0, len(codes))) :]).tolist()
    rows = rows or [[h.root for h in hierarchies]]
    vectors, multiplicity = np.unique(np.array(rows, dtype=np.int32), axis=0, return_counts=True)
    literal = [[None if v == h.n_nodes else v for v, h in zip(row, hierarchies, strict=True)] for row in rows]
    return Known(literal, relations), DenseCounts.roll_up(axes, vectors.astype(np.int32), multiplicity)


PRIORS = {1: [(1.0,)], 2: [(1.0, 0.0), (0.5, 0.5), (0.1, 0.9)], 3: [(0.2, 0.3, 0.5), (0.0, 0.6, 0.4)]}


@given(case=cases(), rule=st.sampled_from(["bayes", "minimax"]), personal=st.booleans(), data=st.data())
def test_several_dictionaries_are_decided_by_the_literal_search(
    case: tuple[list[Hierarchy], np.ndarray, np.ndarray, dict[str, object], float],
    rule: str,
    personal: bool,
    data: st.DataObject,
) -> None:
    """Every search, every model; labels that resemble each other by exhaustion alone."""
    hierarchies, codes, _, settings, share = case
    top = sum(float(node_utility(settings["measure"], h.depth, h.n_under).max()) for h in hierarchies)  # type: ignore[arg-type]
    meanings = data.draw(st.sampled_from([["subsumes", "compatible", "lacking"], ["similar", "compatible"]]))
    n = data.draw(st.integers(1, 3))
    made = [draw_dictionary(data, hierarchies, codes, meanings) for _ in range(n)]
    prior = data.draw(st.sampled_from(PRIORS[n]))
    attacker = Attacker(tuple(counts for _, counts in made), rule, prior)  # type: ignore[arg-type]
    scale = np.ones(codes.shape)
    if personal:
        scale = np.array([[data.draw(st.sampled_from([0.0, 0.5, 2.0])) for _ in hierarchies] for _ in codes])
    for search, neighbourhood in SEARCHES:
        problem = build(hierarchies, floor=share * top, search=search, neighbourhood=neighbourhood, **settings)  # type: ignore[arg-type]
        if search != "exhaustive" and not attacker.monotone:
            with pytest.raises(InputError, match=f"decision.method: '{search}' needs risk that never rises"):
                decide(*problem, attacker, codes)
            continue
        found = decide(*problem, attacker, codes, personal=scale if personal else None)
        for i, record in enumerate(codes):
            dictionaries = [known for known, _ in made]
            want = naive_decision(problem, hierarchies, record, dictionaries, scale[i].tolist(), rule, prior)
            check(found, i, want, hierarchies, record)


@given(case=cases(), data=st.data())
def test_relations_between_attackers(
    case: tuple[list[Hierarchy], np.ndarray, np.ndarray, dict[str, object], float], data: st.DataObject
) -> None:
    """A prior of (1, 0) is the first dictionary, to the last bit; the worst dictionary costs at least the expected; a
    dictionary known twice is known."""
    hierarchies, codes, _, settings, share = case
    top = sum(float(node_utility(settings["measure"], h.depth, h.n_under).max()) for h in hierarchies)  # type: ignore[arg-type]
    problem = build(hierarchies, floor=share * top, **settings)  # type: ignore[arg-type]
    (_, one), (_, two) = (draw_dictionary(data, hierarchies, codes, ["subsumes", "compatible"]) for _ in range(2))
    alone = decide(*problem, one, codes)
    for attacker in (
        Attacker.knowing(one),
        Attacker((one, two), "bayes", (1.0, 0.0)),
        Attacker((one, one), "bayes", (0.5, 0.5)),
        Attacker((one, one), "minimax"),
    ):
        same = decide(*problem, attacker, codes)
        assert all(np.array_equal(getattr(alone, name), getattr(same, name)) for name in FIELDS)
    expected = decide(*problem, Attacker((one, two), "bayes", (0.3, 0.7)), codes)
    worst = decide(*problem, Attacker((one, two), "minimax"), codes)
    assert (worst.risk >= expected.risk * (1 - 1e-12)).all()
    assert (worst.risk_before >= expected.risk_before * (1 - 1e-12)).all()


@dataclass(frozen=True, eq=False)
class Telling:
    """A count that tells all codes apart, and notes how many records it is asked for."""

    counts: Counts
    codes: tuple[int, ...]
    asked: list[int]

    @property
    def dictionary_rows(self) -> int:
        return self.counts.dictionary_rows

    @property
    def monotone(self) -> bool:
        return self.counts.monotone

    @property
    def alike(self) -> tuple[np.ndarray, ...]:
        return tuple(np.arange(n, dtype=np.int32) for n in self.codes)

    def consistent(self, codes: Sequence[np.ndarray], levels: Sequence[int], depths: Sequence[int]) -> np.ndarray:
        self.asked.append(len(codes[0]))
        return self.counts.consistent(codes, levels, depths)


def telling(counts: Counts, hierarchies: list[Hierarchy]) -> Telling:
    return Telling(counts, tuple(h.n_leaves + 1 for h in hierarchies), [])


@pytest.mark.parametrize("clash", [False, True])
@given(case=cases(), search=st.sampled_from(["exact", "exhaustive"]), weights=st.booleans(), data=st.data())
def test_records_alike_are_decided_as_if_each_alone(
    clash: bool,
    case: tuple[list[Hierarchy], np.ndarray, np.ndarray, dict[str, object], float],
    search: str,
    weights: bool,
    data: st.DataObject,
) -> None:
    """To the last bit, also where the hashes of all records clash and keys overflow at every attribute."""
    hierarchies, _, _, settings, share = case
    codes = np.array(
        [[data.draw(st.integers(0, h.n_leaves)) for h in hierarchies] for _ in range(data.draw(st.integers(0, 12)))],
        dtype=np.int32,
    ).reshape(-1, len(hierarchies))
    top = sum(float(node_utility(settings["measure"], h.depth, h.n_under).max()) for h in hierarchies)  # type: ignore[arg-type]
    problem = build(hierarchies, floor=share * top, search=search, **settings)  # type: ignore[arg-type]
    meanings = [["compatible", "lacking"], ["similar"]][data.draw(st.integers(0, 1)) if search == "exhaustive" else 0]
    none = np.zeros((1, len(hierarchies)), dtype=np.int32)
    counts = [draw_dictionary(data, hierarchies, none, meanings)[1] for _ in range(2)]
    given_ = {}
    if weights:
        given_["personal"] = np.array(
            [[data.draw(st.sampled_from([0.0, 1.0, math.inf])) for _ in hierarchies] for _ in codes]
        ).reshape(codes.shape)
        given_["record_weight"] = np.array([data.draw(st.sampled_from([0.5, 2.0])) for _ in codes])
    apart = Attacker(tuple(telling(c, hierarchies) for c in counts), "minimax")
    want = [
        decide(*problem, apart, codes[[i]], **{name: value[[i]] for name, value in given_.items()})
        for i in range(len(codes))
    ]
    usual = kernel.fingerprint, kernel._KEY_LIMIT
    if clash:
        same = SimpleNamespace(of_rows=lambda _, n: np.zeros(n, dtype=np.uint64))
        kernel.fingerprint, kernel._KEY_LIMIT = same, 4
    try:
        found = decide(*problem, Attacker(tuple(counts), "minimax"), codes, **given_)
    finally:
        kernel.fingerprint, kernel._KEY_LIMIT = usual
    for i, one in enumerate(want):
        for name in FIELDS:
            assert np.array_equal(getattr(found, name)[i], getattr(one, name)[0]), name


def test_records_alike_are_decided_once() -> None:
    """Twelve days of two years, known by year: one decision a year, and each day its own node."""
    days = [(f"{y}-{m:02d}-{d:02d}", f"{y}-{m:02d}", f"{y}") for y in (1990, 1991) for m in (1, 2) for d in (1, 2, 3)]
    hierarchy = Hierarchy.from_paths("birthdate", days)
    axes = [Axis(hierarchy.at_depth, hierarchy.ancestor, "compatible")]
    years = np.array([[hierarchy.find("1990")], [hierarchy.find("1991")]], dtype=np.int32)
    counts = DenseCounts.roll_up(axes, years, np.array([3, 4]))
    problem = build([hierarchy], weights=[1.0], form="linear", model="I", measure="depth", floor=1.0)
    codes = np.arange(12, dtype=np.int32)[:, None]

    @dataclass(frozen=True, eq=False)
    class Asked(Telling):
        @property
        def alike(self) -> tuple[np.ndarray, ...]:
            return self.counts.alike

    apart = telling(counts, [hierarchy])
    together = Asked(counts, apart.codes, [])
    assert all(
        np.array_equal(getattr(decide(*problem, apart, codes), name), getattr(decide(*problem, together, codes), name))
        for name in FIELDS
    )
    assert (max(apart.asked), max(together.asked)) == (12, 2)
    assert decide(*problem, counts, codes).nodes[:, 0].tolist() == [years[0, 0]] * 6 + [years[1, 0]] * 6
    # A day that weighs more than the others is decided apart.
    weights = problem.disclosure.sensitivity.weights[0].copy()
    weights[4] *= 2
    together.asked.clear()
    decide(*problem.disclosing(sensitivity=Sensitivity("linear", (weights,))), together, codes)
    assert max(together.asked) == 3


def test_labels_that_resemble_each_other_need_an_exhaustive_search() -> None:
    """Two spellings of a name (Jaro 17/18) under a label like no other. The name is known to two rows, its group to
    none, so the record alone: generalizing doubles the risk. The only maximal node with u >= 1 is the group."""
    hierarchy = Hierarchy.from_paths("name", [("martha", "west"), ("marhta", "west"), ("jones", "east")])
    rows = np.array([[0], [1], [2]], dtype=np.int32)
    codes = np.array([[0]], dtype=np.int32)
    settings = {"weights": [1.0], "form": "constant", "model": "II", "measure": "depth", "floor": 1.0}
    matrix = node_similarity(hierarchy.labels)
    axis = Axis(hierarchy.at_depth, hierarchy.ancestor, "similar", similarity=matrix)
    counts = DenseCounts.roll_up([axis], rows, np.ones(3, dtype=np.int64))
    found = decide(*build([hierarchy], search="exhaustive", **settings), counts, codes)  # type: ignore[arg-type]
    assert (found.levels[0, 0], found.risk[0], found.consistent[0]) == (0, 0.5, 2)
    # What the search that looks at maximal nodes alone would answer, were it not refused.
    misled = decide(*build([hierarchy], **settings), replace(counts, monotone=True), codes)  # type: ignore[arg-type]
    assert misled.levels[0, 0] == 1
    at_group = decide(*build([hierarchy], search="exhaustive", **settings), counts, np.array([[2]], dtype=np.int32))  # type: ignore[arg-type]
    # "jones" is known to itself alone, and "east" to nobody: equal risk 1, so the utility decides.
    assert (at_group.levels[0, 0], at_group.risk[0], at_group.consistent[0]) == (0, 1.0, 1)
    for search in ("exact", "aruba"):
        with pytest.raises(ValueError, match="use 'exhaustive'"):
            decide(*build([hierarchy], search=search, **settings), counts, codes)  # type: ignore[arg-type]


def test_a_record_is_added_to_the_dictionaries_that_lack_it() -> None:
    """(a, b under g; c): a is in {a, a, c} but not in {b, c}, where it is the third row. At level 0 model III is
    ln(3/2) and ln(3/1); at level 1 ln(3/2) and, with b and itself, ln(3/2)."""
    hierarchy = Hierarchy.from_paths("x", [("a", "g"), ("b", "g"), ("c", "h")])
    axis = Axis(hierarchy.at_depth, hierarchy.ancestor)
    has, lacks = (
        DenseCounts.roll_up([axis], np.array(rows, dtype=np.int32)[:, None], np.array(n))
        for rows, n in (([0, 2], [2, 1]), ([1, 2], [1, 1]))
    )
    problem = build([hierarchy], weights=[1.0], form="constant", model="III", measure="depth", floor=1.0)
    code = np.array([[0]], dtype=np.int32)
    expected = decide(*problem, Attacker((has, lacks), "bayes", (0.25, 0.75)), code)
    assert expected.risk_before[0] == pytest.approx(0.25 * math.log(1.5) + 0.75 * math.log(3))
    assert expected.risk[0] == pytest.approx(math.log(1.5))
    worst = decide(*problem, Attacker((has, lacks), "minimax"), code)
    assert worst.risk_before[0] == pytest.approx(math.log(3))
    assert (worst.levels[0, 0], worst.consistent[0]) == (1, 2)
    assert (
        decide(*problem.seeking(objective=LeastRisk(2.0)), Attacker((has, lacks), "minimax"), code).consistent[0] == 1
    )


@given(case=cases(), at_once=st.sampled_from([0, 3, 50]))
def test_holding_fewer_candidates_does_not_change_a_result(
    case: tuple[list[Hierarchy], np.ndarray, np.ndarray, dict[str, object], float], at_once: int
) -> None:
    hierarchies, codes, others, settings, share = case
    top = sum(float(node_utility(settings["measure"], h.depth, h.n_under).max()) for h in hierarchies)  # type: ignore[arg-type]
    problem = build(hierarchies, floor=share * top, **settings)  # type: ignore[arg-type]
    axes = [Axis(h.at_depth, h.ancestor) for h in hierarchies]
    rows = to_dictionary(hierarchies, np.concatenate([codes, others]))
    vectors, multiplicity = np.unique(rows, axis=0, return_counts=True)
    counts = DenseCounts.roll_up(axes, vectors.astype(np.int32), multiplicity)
    want = decide(*problem, counts, codes)
    usual = table_search._CANDIDATES_AT_ONCE
    table_search._CANDIDATES_AT_ONCE = at_once
    try:
        found = decide(*problem, counts, codes)
    finally:
        table_search._CANDIDATES_AT_ONCE = usual
    assert all(np.array_equal(getattr(want, name), getattr(found, name)) for name in FIELDS)


def golden() -> tuple[list[Hierarchy], DenseCounts, Task]:
    """A lattice of heights (2,2,1) with ρ given by g-vectors:
    000x1 010x2 100x1 110x3 121x4 201x2 210x5 220x6 221x10."""

    def chain(name: str, height: int) -> Hierarchy:
        # Leaf 0 is the record's value; leaf g branches off its path at level g.
        paths = [("v0", *[f"up{j}" for j in range(1, height)])]
        for g in range(1, height + 1):
            paths.append((f"v{g}", *[f"side{g}.{j}" for j in range(1, g)], *[f"up{j}" for j in range(g, height)]))
        return Hierarchy.from_paths(name, paths)

    hierarchies = [chain("a", 2), chain("b", 2), chain("c", 1)]
    table = {"000": 1, "010": 2, "100": 1, "110": 3, "121": 4, "201": 2, "210": 5, "220": 6, "221": 10}
    rows = np.array([[h.find(f"v{g}") for h, g in zip(hierarchies, key, strict=True)] for key in table], dtype=np.int32)
    axes = [Axis(h.at_depth, h.ancestor) for h in hierarchies]
    counts = DenseCounts.roll_up(axes, rows, np.array(list(table.values())))
    weights = []
    for h, levels in zip(hierarchies, ([6, 2, 0], [4, 2, 0], [3, 0]), strict=True):
        of_node = np.zeros(h.n_nodes)
        for level, weight in enumerate(levels):
            of_node[h.ancestor[h.find("v0"), level]] = weight
        weights.append(of_node)
    problem = Task.of(
        LeastRisk(5.0),
        ancestor=tuple(h.ancestor for h in hierarchies),
        code_depth=tuple(axis.code_depth for axis in axes),
        utility=tuple(node_utility("depth", h.depth, h.n_under) for h in hierarchies),
        sensitivity=Sensitivity("linear", tuple(weights)),
        model="I",
    )
    return hierarchies, counts, problem


@pytest.mark.parametrize(("search", "neighbourhood"), SEARCHES)
def test_golden_lattice(search: str, neighbourhood: str) -> None:
    """All values by enumeration of the 18 nodes: Φ/ρ and 1/ρ minima for floors 5 to 0; above 5 nothing is feasible."""
    hierarchies, counts, problem = golden()
    record = np.array([[h.code_of["v0"] for h in hierarchies]], dtype=np.int32)

    def solve(floor: float, model: str) -> Decisions:
        sought = problem.seeking(objective=LeastRisk(floor), method=search, neighbourhood=neighbourhood)
        return decide(*sought.disclosing(model=model), counts, record)

    expected = {
        5: ((0, 0, 0), 13),
        4: ((0, 1, 0), 11 / 3),
        3: ((1, 1, 0), 1),
        2: ((2, 1, 0), 5 / 12),
        1: ((2, 1, 1), 1 / 7),
    }
    for floor, (levels, risk) in expected.items():
        found = solve(floor, "I")
        assert tuple(found.levels[0]) == levels
        assert found.risk[0] == pytest.approx(risk)
    top = solve(0, "I")
    assert tuple(top.levels[0]) == (2, 2, 1)
    assert top.risk[0] == 0
    assert [solve(c, "II").risk[0] for c in (5, 4, 3, 2, 1, 0)] == pytest.approx(
        [1, 1 / 3, 1 / 7, 1 / 12, 1 / 18, 1 / 34]
    )
    nothing = solve(5.5, "I")
    assert not nothing.feasible[0]
    assert tuple(nothing.levels[0]) == (2, 2, 1)


@pytest.mark.parametrize(("search", "neighbourhood"), SEARCHES)
def test_a_record_is_decided_alone(search: str, neighbourhood: str) -> None:
    rng = np.random.default_rng(11)
    hierarchies = [
        Hierarchy.from_paths(name, [(f"{name}{i}", f"{name}g{i // 3}", f"{name}h{i // 6}") for i in range(12)])
        for name in "abc"
    ]
    codes = rng.integers(0, 12, (200, 3)).astype(np.int32)
    vectors, multiplicity = np.unique(codes, axis=0, return_counts=True)
    axes = [Axis(h.at_depth, h.ancestor) for h in hierarchies]
    counts = SortedCounts.group(axes, vectors.astype(np.int32), multiplicity)
    problem = build(
        hierarchies, weights=[1.0, 0.5, 2.0], form="linear", model="I", measure="log-leaves", floor=3.0,
        search=search, neighbourhood=neighbourhood,
    )  # fmt: skip
    whole = decide(*problem, counts, codes)
    order = rng.permutation(200)
    parts = [decide(*problem, counts, codes[part]) for part in np.array_split(order, 7)]
    assert (np.concatenate([p.levels for p in parts]) == whole.levels[order]).all()
    assert (np.concatenate([p.risk for p in parts]) == whole.risk[order]).all()
    assert len(np.unique(whole.levels, axis=0)) > 3, "neighbours must disagree for this test to mean anything"
