"""One suite for every search of one record's lattice, against the literal search of all level vectors."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import naive_searches as literal
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.disclosure.objective import GreatestUtility, LeastPenalized, LeastRisk, Objective
from privrisk_spark.kernels.search import branch_and_bound as boxes
from privrisk_spark.kernels.search import row_sets
from privrisk_spark.kernels.search.aggregate import aggregate
from privrisk_spark.kernels.search.boxes import arrays
from privrisk_spark.kernels.search.boxes import search as box_search
from privrisk_spark.kernels.search.boxes.arrays import record_of
from privrisk_spark.kernels.search.boxes.search import Best, Workplace, descend
from privrisk_spark.kernels.search.branch_and_bound import branch_and_bound, root_bound
from privrisk_spark.kernels.search.enumeration import enumerate_nodes
from privrisk_spark.kernels.search.evaluation import Evaluation
from privrisk_spark.kernels.search.genetic import genetic, uniforms_per_individual
from privrisk_spark.kernels.search.node_search import aruba, btda, walk
from privrisk_spark.kernels.search.record import Answer, RecordLattice
from privrisk_spark.kernels.search.relaxation import approximate
from privrisk_spark.kernels.search.rules import choose_rule, least_exposed, log_exposure

Search = Callable[[RecordLattice, LeastRisk], Answer | None]


def evolve(lattice: RecordLattice, objective: LeastRisk) -> Answer | None:
    shape = (6, 8, uniforms_per_individual(lattice))
    return genetic(lattice, objective, np.random.default_rng(3).uniform(size=shape))


EXACT: dict[str, Search] = {
    "branch_and_bound": branch_and_bound,
    "btda": btda,
    "aruba-swap": aruba,
    "aruba-cube": lambda lattice, objective: aruba(lattice, objective, neighbourhood="cube"),
}
CUT_SHORT: dict[str, Search] = {
    "branch_and_bound-cut": lambda lattice, objective: branch_and_bound(lattice, objective, most_boxes=2),
    "btda-cut": lambda lattice, objective: btda(lattice, objective, most_nodes=3),
    "aruba-cut": lambda lattice, objective: aruba(lattice, objective, most_nodes=2),
}
SEARCHES: dict[str, Search] = {**EXACT, **CUT_SHORT, "genetic": evolve, "approximate": approximate}


@dataclass(frozen=True)
class Case:
    record: literal.Record
    share: float

    @property
    def floor(self) -> float:
        return self.share * self.record.utility((0,) * len(self.record.weights))

    @property
    def lattice(self) -> RecordLattice:
        return lattice_of(self.record)


def lattice_of(record: literal.Record) -> RecordLattice:
    return RecordLattice.of_dictionaries(
        [
            (np.array(rows, dtype=np.int64), np.ones(len(rows), dtype=np.int64))
            for rows in (record.rows, *record.further)
        ],
        [np.array(w) for w in record.weights],
        [np.array(d) for d in record.utilities],
        model=record.model,  # type: ignore[arg-type]
        exponential=record.exponential,
        rule=record.rule,  # type: ignore[arg-type]
        prior=record.prior,
    )


def random_case(rng: np.random.Generator, *, most: int = 5, widely: bool = False) -> Case:
    """Chains with plateaus (steps 0, 1, 2), with any reals, or with decimals whose sums round differently."""
    k = int(rng.integers(1, most + 1))
    heights = rng.integers(0, 4, k).tolist()
    steps: list[Callable[[int], np.ndarray]] = [
        lambda n: rng.choice([0.0, 1.0, 1.0, 2.0], n),
        lambda n: rng.uniform(size=n),
        lambda n: rng.choice([0.0, 0.1, 0.2, 0.3, 1 / 3], n),
    ]
    step = steps[int(rng.integers(3))]

    def chain(height: int) -> list[float]:
        falls = step(height + 1)
        if rng.uniform() < 0.7:
            falls[-1] = 0
        values: list[float] = np.cumsum(falls[::-1])[::-1].tolist()
        return values

    def some_rows() -> list[literal.Levels]:
        rows = [tuple(int(rng.integers(0, h + 1)) for h in heights) for _ in range(int(rng.integers(0, 26)))]
        return [*rows, (0,) * k]

    record = literal.Record(
        some_rows(), [chain(h) for h in heights], [chain(h) for h in heights], str(rng.choice(["I", "II", "III"]))
    )
    if widely:
        prior = rng.dirichlet(np.ones(3))
        record = replace(
            record,
            exponential=bool(rng.integers(2)),
            further=[some_rows() for _ in range(2)],
            rule=str(rng.choice(["bayes", "minimax"])),
            prior=tuple(prior.tolist()),
        )
    return Case(record, float(rng.choice([-0.5, 0, 0.25, 0.5, 0.5, 0.75, 1, 1.1])))


def levels_of(found: Answer | None) -> tuple[int, ...] | None:
    return None if found is None else tuple(found.levels.tolist())


def check(found: Answer | None, record: literal.Record, best: tuple[int, ...] | None, floor: float) -> None:
    """What every answer owes: feasible, truthful, not better than the optimum, and a bound that is one."""
    if best is None:
        assert found is None
        return
    assert found is not None
    levels = levels_of(found)
    assert levels is not None
    assert literal.reaches(record.utility(levels), floor)
    assert found.risk == pytest.approx(record.risk(levels), rel=1e-12)
    assert found.utility == pytest.approx(record.utility(levels), rel=1e-12)
    assert found.consistent == record.rho(levels)
    assert found.objective == found.risk
    least = record.risk(best)
    assert found.objective >= least * (1 - 1e-12)
    assert found.bound <= least * (1 + 1e-12)
    assert found.visited >= 1
    if found.status == "proved":
        assert levels == best
        assert found.gap == 0


@pytest.mark.parametrize("name", SEARCHES)
def test_least_risk_is_that_of_all_level_vectors(name: str) -> None:
    rng = np.random.default_rng(len(name))
    proved = 0
    for _ in range(60 if name == "approximate" else 150):
        case = random_case(rng)
        if name == "approximate" and case.record.model == "III":
            continue
        found = SEARCHES[name](case.lattice, LeastRisk(case.floor))
        check(found, case.record, literal.least_risk(case.record, case.floor), case.floor)
        if name in EXACT and found is not None:
            assert found.status == "proved"
        proved += found is not None and found.status == "proved"
    assert name not in EXACT or proved > 100


@pytest.mark.parametrize("name", sorted(set(SEARCHES) - {"approximate"}))
def test_several_dictionaries_and_products(name: str) -> None:
    """Expected and largest risk over three dictionaries, and Φ = exp(Σ w)."""
    rng = np.random.default_rng(100 + len(name))
    for _ in range(80):
        case = random_case(rng, widely=True)
        found = SEARCHES[name](case.lattice, LeastRisk(case.floor))
        check(found, case.record, literal.least_risk(case.record, case.floor), case.floor)
        assert name not in EXACT or found is None or found.status == "proved"


@pytest.mark.parametrize("name", [*EXACT, "enumeration"])
@pytest.mark.parametrize("model", ["I", "II"])
def test_infinite_weights(name: str, model: str) -> None:
    """Levels that may not be disclosed: left out where that is possible, and else the risk is infinite and the record
    itself, of the highest utility, is released."""
    rng = np.random.default_rng(3)
    infinite = 0
    for _ in range(60):
        case = random_case(rng, widely=bool(rng.integers(2)))
        weights = [list(w) for w in case.record.weights]
        for w in weights:
            for level in range(int(rng.integers(len(w) + 1)) if rng.uniform() < 0.5 else 0):
                w[level] = math.inf
        record = replace(case.record, weights=weights, model=model)
        search = enumerate_nodes if name == "enumeration" else EXACT[name]
        best = literal.least_risk(record, case.floor)
        found = search(lattice_of(record), LeastRisk(case.floor))
        assert levels_of(found) == best
        if found is not None and best is not None:
            assert found.status == "proved"
            assert found.risk == pytest.approx(record.risk(best))
            infinite += math.isinf(found.risk)
        if name == "branch_and_bound":
            ceiling = float(rng.choice([0.1, 1, 3]))
            most = branch_and_bound(lattice_of(record), GreatestUtility(ceiling))
            assert levels_of(most) == literal.greatest_utility(record, ceiling)
            if not math.isinf(record.risk(record.nodes[-1])):
                penalized = branch_and_bound(lattice_of(record), LeastPenalized(0.1))
                assert levels_of(penalized) == literal.least_penalized(record, 0.1)
    assert model == "II" or infinite > 3


@pytest.mark.parametrize("seed", range(4))
def test_all_goals_of_branch_and_bound(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(200):
        case = random_case(rng, widely=bool(rng.integers(2)))
        record, lattice = case.record, case.lattice
        best = literal.least_risk(record, case.floor)
        check(branch_and_bound(lattice, LeastRisk(case.floor)), record, best, case.floor)
        ceiling = record.risk((0,) * lattice.k) * float(rng.choice([0, 0.01, 0.1, 0.3, 1]))
        most = branch_and_bound(lattice, GreatestUtility(ceiling))
        assert levels_of(most) == literal.greatest_utility(record, ceiling)
        trade = float(rng.choice([0, 0.01, 0.1, 1, 10]))
        penalized = branch_and_bound(lattice, LeastPenalized(trade))
        assert levels_of(penalized) == literal.least_penalized(record, trade)
        for objective, found in ((GreatestUtility(ceiling), most), (LeastPenalized(trade), penalized)):
            if found is None:
                continue
            assert found.status == "proved"
            cut = branch_and_bound(lattice, objective, most_boxes=1)
            assert cut is not None
            sign = -1 if isinstance(objective, GreatestUtility) else 1
            slack = 1e-12 * max(1, abs(found.objective))
            for bound in (cut.bound, root_bound(lattice, objective)):
                assert sign * bound <= sign * found.objective + slack
            assert sign * cut.objective >= sign * found.objective - slack


@pytest.mark.parametrize("shift", [1e-7, 1e-9, 3e-12, -3e-12, -1e-7])
def test_a_constraint_that_is_just_missed(shift: float) -> None:
    """All level vectors have the same ρ, and the floor or ceiling is one of their utilities or risks but for a little
    more than counts as equal: what misses it by that is no answer, and hides none."""
    rng = np.random.default_rng(61)
    found = 0
    for _ in range(150):
        k = int(rng.integers(3, 6))
        weights = [[float(rng.integers(1, 9)), 0.0] for _ in range(k)]
        utilities = [[float(rng.integers(1, 6)), 0.0] for _ in range(k)]
        record = literal.Record([(0,) * k], weights, utilities, "I", exponential=bool(rng.integers(2)))
        at = tuple(rng.integers(0, 2, k).tolist())
        lattice, floor = lattice_of(record), record.utility(at) * (1 + shift)
        least = branch_and_bound(lattice, LeastRisk(floor))
        assert levels_of(least) == literal.least_risk(record, floor)
        ceiling = record.risk(at) * (1 + shift)
        most = branch_and_bound(lattice, GreatestUtility(ceiling))
        assert levels_of(most) == literal.greatest_utility(record, ceiling)
        found += least is not None and most is not None
    assert found > 50


def test_a_sensitivity_too_large_for_a_float() -> None:
    """Φ = exp(2001) is infinite, and e is not: a record that may keep the last attribute alone does. No local step
    leads there, as one of the first two alone is infinite as well. And 0 · inf is 0: every row is consistent."""
    chains = [[1000.0, 0], [1000.0, 0], [1.0, 0]]
    record = literal.Record([(0, 0, 0)], chains, [[1.0, 0]] * 3, "I", exponential=True)
    lattice = lattice_of(record)
    for search in (*EXACT.values(), enumerate_nodes):
        assert levels_of(search(lattice, LeastRisk(1))) == (1, 1, 0)
    assert levels_of(branch_and_bound(lattice, GreatestUtility(3))) == (1, 1, 0)
    assert levels_of(branch_and_bound(lattice, LeastPenalized(2.0))) == (1, 1, 0)
    everything = branch_and_bound(lattice, LeastRisk(3))
    assert everything is not None
    assert (levels_of(everything), everything.status, everything.gap) == ((0, 0, 0), "proved", 0)
    cut = branch_and_bound(lattice_of(replace(record, rows=[(0, 0, 0), (1, 1, 1)])), LeastRisk(3), most_boxes=1)
    assert cut is not None
    assert math.isinf(cut.objective)
    for objective in (LeastRisk(1), GreatestUtility(0), LeastPenalized(0)):
        found = branch_and_bound(replace(lattice, model="III"), objective)
        assert (levels_of(found), found and found.risk) == ((0, 0, 0), 0)


def test_a_cycle_of_ties_ends() -> None:
    """Beside a weight of 1e12 less than 1 counts as equal: from nothing suppressed to the first attribute (2 less), to
    the second and third (each 0.7 more, equal, and of more utility), and back (0.6 more, equal, of more utility)."""
    record = literal.Record(
        [(0, 0, 0, 0)], [[1e12], [2.0, 0], [1.3, 0], [0.6, 0]], [[0.0], [3.0, 0], [2.5, 0], [2.0, 0]], "I"
    )
    objective = LeastRisk(4.5)
    down = btda(lattice_of(record), objective, most_nodes=1)
    for found in (branch_and_bound(lattice_of(record), objective), down):
        assert found is not None
        assert found.utility >= 4.5
        assert found.risk == pytest.approx(1e12, rel=4e-12)


def test_of_equal_penalized_risks_the_more_useful_is_taken() -> None:
    """With λ = 0 and model III several level vectors have no risk; no step or swap leads from the local optimum to the
    most useful of them, which comes after it in lexicographic order."""
    record = literal.Record(
        [(0, 0, 0), (0, 0, 3), (1, 1, 2), (1, 1, 3)],
        [[2, 1, 0], [0, 0], [2, 1, 0, 0]],
        [[3, 2, 0], [2, 0], [3, 2, 1, 0]],
        "III",
    )
    assert literal.least_penalized(record, 0) == (2, 0, 2)
    assert levels_of(branch_and_bound(lattice_of(record), LeastPenalized(0))) == (2, 0, 2)


def test_rows_that_repeat_beyond_32_bits() -> None:
    """Multiplicities near 2**31, 2**40 and 2**60: ρ is counted by their binary digits."""
    rng = np.random.default_rng(71)
    for power in (31, 40, 60):
        for model in ("I", "III"):
            heights = rng.integers(1, 4, 4)
            rows = np.stack([rng.integers(0, h + 1, 4) for h in heights], axis=1)
            chains = [np.arange(h, -1, -1.0) for h in heights]
            counts = 2**power - rng.integers(1, 9, 4)
            lattice = RecordLattice.of_rows(rows, chains, chains, counts=counts, model=model)  # type: ignore[arg-type]
            for objective in (LeastRisk(2), GreatestUtility(2.0 ** (1 - power)), LeastPenalized(0.1)):
                found, want = branch_and_bound(lattice, objective), enumerate_nodes(lattice, objective)
                assert levels_of(found) == levels_of(want)
                assert found is not None
                assert found.risk == want.risk  # type: ignore[union-attr]
            words = np.zeros(1, dtype=np.uint64)
            rho = np.zeros(1, dtype=np.int64)
            record = arrays.record_of(lattice, LeastRisk(-1.0))
            assert record is not None
            for x in itertools.product(*[range(h + 1) for h in heights]):
                arrays.risk_at(record, np.array(x, dtype=np.int64), words, rho)
                assert tuple(rho) == lattice.rho(np.array(x))


def test_room_for_open_boxes_grows() -> None:
    """However little there is at first, every box is where it was; and the answer is that of 531,441 nodes."""
    rng = np.random.default_rng(2)
    k, heights = 12, [2] * 12
    weights, utilities = ([np.sort(rng.uniform(size=3))[::-1] for _ in heights] for _ in range(2))
    rows = np.stack([rng.integers(0, h + 1, 400) for h in heights], axis=1)
    lattice = RecordLattice.of_rows(rows, weights, utilities)
    goals: list[Objective] = [
        LeastRisk(0.5 * (lattice.utility(np.zeros(k, dtype=np.int64)) + lattice.utility(lattice.heights))),
        GreatestUtility(0.02 * lattice.risk(np.zeros(k, dtype=np.int64))),
        LeastPenalized(0.02),
    ]
    for objective in goals:
        record = arrays.record_of(lattice, objective)
        assert record is not None
        for limit in (600, 10**6):
            usual, little = (box_search.search(record, limit, 128, room) for room in (2**14, 1))
            assert usual.visited == little.visited > 500
            assert usual.bound == little.bound
            assert usual.levels.tolist() == little.levels.tolist()
        assert levels_of(enumerate_nodes(lattice, objective)) == tuple(little.levels.tolist())


def test_utilities_of_any_size() -> None:
    """Too large to be counted in units, beside some a billion times less, and a floor far below zero."""
    rng = np.random.default_rng(67)
    for _ in range(150):
        case = random_case(rng)
        large = float(rng.choice([1e3, 1e9, 1e15, 1e21]))
        utilities = [
            [d * large if i == 0 else d + (large if large < 1e12 else 0) * (i == 1) for d in chain]
            for i, chain in enumerate(case.record.utilities)
        ]
        record = replace(case.record, utilities=utilities)
        for floor in (record.utility(record.nodes[int(rng.integers(len(record.nodes)))]), -1e30):
            found = branch_and_bound(lattice_of(record), LeastRisk(floor))
            check(found, record, literal.least_risk(record, floor), floor)
            assert found is not None
            assert found.status == "proved"


@pytest.mark.parametrize("few", [0, 10**9])
def test_how_boxes_are_looked_at_does_not_change_the_answer(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows one by one in every box or in none, tables of single attributes, few slopes, no dynamic programming."""
    rng = np.random.default_rng(few % 97)
    cases = [random_case(rng, widely=i % 2 == 1) for i in range(80)]
    goals: list[Objective] = []
    for case in cases:
        ceiling = case.record.risk((0,) * case.lattice.k) * float(rng.choice([0.1, 0.3, 1]))
        goals.append([LeastRisk(case.floor), GreatestUtility(ceiling), LeastPenalized(0.1)][int(rng.integers(3))])

    def answers() -> list[tuple[int, ...] | None]:
        return [
            levels_of(branch_and_bound(case.lattice, objective)) for case, objective in zip(cases, goals, strict=True)
        ]

    want, down = answers(), [levels_of(btda(case.lattice, LeastRisk(case.floor))) for case in cases]
    monkeypatch.setattr(boxes, "_FEW_ROWS", few)
    monkeypatch.setattr(row_sets, "_COMBINATIONS", 1)
    monkeypatch.setattr(arrays, "_SLOPES", 2)
    monkeypatch.setattr(arrays, "_UNITS", 10**6 if few else -1)
    assert answers() == want
    assert [levels_of(btda(case.lattice, LeastRisk(case.floor))) for case in cases] == down


@pytest.mark.parametrize("k", [7, 9])
@pytest.mark.parametrize("model", ["I", "II", "III"])
def test_larger_lattices_with_few_weights_that_tie(k: int, model: str) -> None:
    """Many attributes alike, so that many level vectors have the least risk; by enumeration in arrays."""
    rng = np.random.default_rng(k)
    for share in (0.3, 0.6):
        heights = rng.integers(1, 3, k)
        chains = [np.arange(h, -1, -1.0) for h in heights]
        rows = np.stack([rng.integers(0, h + 1, 300) for h in heights], axis=1)
        lattice = RecordLattice.of_rows(rows, chains, chains, model=model)  # type: ignore[arg-type]
        floor = share * float(heights.sum())
        every = np.array(list(itertools.product(*[range(h + 1) for h in heights])))
        evaluation = Evaluation(lattice)
        risk, utility = evaluation.risk(every), evaluation.utility(every)
        feasible = utility >= floor - 1e-12
        tied = np.flatnonzero(feasible & (risk <= risk[feasible].min() * (1 + 1e-12)))
        best = tied[utility[tied] == utility[tied].max()][0]
        found = branch_and_bound(lattice, LeastRisk(floor))
        assert found is not None
        assert found.status == "proved"
        assert found.levels.tolist() == every[best].tolist()


@given(st.integers(0, 10**6))
@settings(max_examples=30)
def test_evaluation_counts_rows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    case = random_case(rng, most=4)
    counts = rng.integers(1, 100, len(case.record.rows))
    repeated = [g for g, c in zip(case.record.rows, counts.tolist(), strict=True) for _ in range(c)]
    record = replace(case.record, rows=repeated)
    every = np.array(record.nodes)
    lattice = lattice_of(record)
    assert Evaluation(lattice).rho(every).tolist() == [[record.rho(x) for x in record.nodes]]
    several = replace(record, further=[case.record.rows], prior=(0.5, 0.5))
    assert Evaluation(lattice_of(several)).rho(every).T.tolist() == [several.rhos(x) for x in record.nodes]
    partial = Evaluation(lattice, floor=case.floor)
    found = partial.rho(every)[0]
    for x, count in zip(record.nodes, found.tolist(), strict=True):
        assert count <= record.rho(x)
        if literal.reaches(record.utility(x), case.floor):
            assert count == record.rho(x)


# ----------------------------------------------------------------------------------- golden values and printed errors


def golden(model: str = "I") -> literal.Record:
    """F12's kind of record: heights (2,2,1), 34 rows."""
    table = {"000": 1, "010": 2, "100": 1, "110": 3, "121": 4, "201": 2, "210": 5, "220": 6, "221": 10}
    rows = [tuple(map(int, key)) for key, count in table.items() for _ in range(count)]
    return literal.Record(rows, [[6, 2, 0], [4, 2, 0], [3, 0]], [[2, 1, 0], [2, 1, 0], [1, 0]], model)


@pytest.mark.parametrize("name", EXACT)
def test_golden_record(name: str) -> None:
    """Of the 18 nodes: Φ/ρ = 13/1, 11/3, 7/7, 5/12, 2/14, 0/34 and 1/ρ = 1, 1/3, 1/7, 1/12, 1/18, 1/34."""
    search = EXACT[name]
    expected = {
        5: ((0, 0, 0), 13),
        4: ((0, 1, 0), 11 / 3),
        3: ((1, 1, 0), 1),
        2: ((2, 1, 0), 5 / 12),
        1: ((2, 1, 1), 1 / 7),
        0: ((2, 2, 1), 0),
    }
    lattice = lattice_of(golden())
    for floor, (levels, risk) in expected.items():
        found = search(lattice, LeastRisk(floor))
        assert levels_of(found) == levels
        assert found is not None
        assert found.risk == pytest.approx(risk)
    assert search(lattice, LeastRisk(5.5)) is None
    constant = [search(lattice_of(golden("II")), LeastRisk(c)) for c in (5, 4, 3, 2, 1, 0)]
    assert [found and found.risk for found in constant] == pytest.approx([1, 1 / 3, 1 / 7, 1 / 12, 1 / 18, 1 / 34])


def test_golden_frontiers_and_their_visits() -> None:
    """Frontier sizes 1, 3, 5, 5, 3 for floors 5 to 1; at 0 the frontier is empty and the top is walked to instead."""
    record = golden()
    lattice = lattice_of(record)
    for neighbourhood, moves in (("swap", 12), ("cube", 26)):
        for floor, size in {5: 1, 4: 3, 3: 5, 2: 5, 1: 3}.items():
            found = walk(lattice, LeastRisk(floor), neighbourhood=neighbourhood)  # type: ignore[arg-type]
            assert {tuple(x) for x in found.levels.tolist()} == literal.frontier(record, floor)
            assert (len(found.levels), found.probes) == (size, size * moves)
            assert size <= found.distinct <= 18
        top = walk(lattice, LeastRisk(0), neighbourhood=neighbourhood)  # type: ignore[arg-type]
        assert top.levels.tolist() == [[2, 2, 1]]
    assert literal.frontier(record, 0) == set()


def test_swaps_look_at_fewer_nodes_than_the_cube() -> None:
    rng = np.random.default_rng(5)
    heights = [3] * 6
    chains = [np.arange(h, -1, -1.0) for h in heights]
    rows = np.stack([rng.integers(0, h + 1, 500) for h in heights], axis=1)
    lattice = RecordLattice.of_rows(rows, chains, chains)
    objective = LeastRisk(9.0)
    swap, cube = walk(lattice, objective), walk(lattice, objective, neighbourhood="cube")
    assert np.array_equal(swap.levels, cube.levels)
    assert swap.distinct < cube.distinct
    assert swap.probes == len(swap.levels) * 42
    assert cube.probes == len(cube.levels) * 728
    down, exact = btda(lattice, objective), branch_and_bound(lattice, objective)
    assert down is not None
    assert exact is not None
    assert levels_of(down) == levels_of(exact)
    assert exact.visited < down.visited <= lattice.size


@pytest.mark.parametrize("name", EXACT)
def test_model_three_as_printed_would_mislead(name: str) -> None:
    """F12's Φ log(1/ρ) is 0 for the fully suppressed record and negative above it, so the top looks worst.

    With Φ = (1, 0) and ρ = (2, 3) it ranks level 0 first, as -0.69 < 0; with Φ = (10, 1, 0) and ρ = (5, 6, 7) levels 0
    and 1 before 2. Φ log(N/ρ) falls with every level, and all searches agree on the top.
    """
    two = literal.Record([(0,), (0,), (1,)], [[1, 0]], [[1, 0]], "III")
    three = literal.Record([(0,)] * 5 + [(1,), (2,)], [[10, 1, 0]], [[2, 1, 0]], "III")
    for record, floor, best in ((two, 0, (1,)), (three, 1, (1,)), (three, 0, (2,))):
        printed = {x: record.printed_model_three(x) for x in record.nodes}
        assert min(printed, key=printed.__getitem__) == (0,)
        assert max(printed, key=printed.__getitem__) == max(record.nodes)
        risks = [record.risk(x) for x in record.nodes]
        assert risks == sorted(risks, reverse=True)
        assert levels_of(EXACT[name](lattice_of(record), LeastRisk(floor))) == best


@pytest.mark.parametrize("name", EXACT)
def test_an_optimum_need_not_be_a_frontier_node(name: str) -> None:
    """F12 Theorem 4.5.2. The risk is flat from 0 to 1 and u(1) >= c, so level 0, which is no frontier node, has the
    same risk and more utility. And where the top is feasible there is no frontier at all."""
    record = literal.Record([(0,), (2,)], [[1, 1, 0]], [[3, 2, 0]], "I")
    assert literal.frontier(record, 1) == {(1,)}
    assert levels_of(EXACT[name](lattice_of(record), LeastRisk(1))) == (0,)
    leaves = literal.Record([(0,), (1,)], [[1, 0]], [[1, 0.5]], "I")
    assert literal.frontier(leaves, 0.5) == set()
    assert levels_of(EXACT[name](lattice_of(leaves), LeastRisk(0.5))) == (1,)


@pytest.mark.parametrize("name", SEARCHES)
def test_degenerate_lattices(name: str) -> None:
    search = SEARCHES[name]
    fixed = literal.Record([(0, 0), (0, 0)], [[0.0], [2.0]], [[0.0], [1.0]], "I")
    assert levels_of(search(lattice_of(fixed), LeastRisk(1))) == (0, 0)
    assert search(lattice_of(fixed), LeastRisk(1.5)) is None
    # A leaf of weight 0 makes all its ancestors 0: no risk anywhere, so everything is disclosed.
    harmless = literal.Record([(0, 0), (1, 2)], [[0, 0], [0, 0, 0]], [[1, 0], [2, 1, 0]], "I")
    found = search(lattice_of(harmless), LeastRisk(0))
    assert found is not None
    assert found.risk == 0
    if name in EXACT:
        assert levels_of(found) == (0, 0)
    alone = literal.Record([(0, 0)], [[2, 1], [2, 1, 0]], [[1, 0], [2, 1, 0]], "II")
    found = search(lattice_of(alone), LeastRisk(0))
    assert found is not None
    assert found.risk == 1


# Not "approximate": a vertex of its relaxation need not stay the one found.
@pytest.mark.parametrize("name", sorted(set(SEARCHES) - {"approximate"}))
def test_order_of_rows_and_scales_do_not_matter(name: str) -> None:
    """Rows in any order; weights, or utilities and their floor, times 4; each row twice, in models I and II."""
    search = SEARCHES[name]
    rng = np.random.default_rng(17)
    for _ in range(12):
        case = random_case(rng, most=4)
        record, floor = case.record, case.floor
        want = search(lattice_of(record), LeastRisk(floor))
        shuffled = replace(record, rows=[record.rows[j] for j in rng.permutation(len(record.rows))])
        heavier = replace(record, weights=[[4 * w for w in chain] for chain in record.weights])
        finer = replace(record, utilities=[[4 * d for d in chain] for chain in record.utilities])
        for other, c in ((shuffled, floor), (heavier, floor), (finer, 4 * floor)):
            assert levels_of(search(lattice_of(other), LeastRisk(c))) == levels_of(want)
        if record.model != "III":
            doubled = search(lattice_of(replace(record, rows=record.rows * 2)), LeastRisk(floor))
            assert levels_of(doubled) == levels_of(want)
            assert want is None or (doubled is not None and doubled.risk == pytest.approx(want.risk / 2))


@pytest.mark.parametrize("name", EXACT)
def test_order_of_attributes_does_not_change_the_risk(name: str) -> None:
    rng = np.random.default_rng(23)
    for _ in range(20):
        case = random_case(rng)
        record, order = case.record, rng.permutation(len(case.record.weights)).tolist()
        turned = literal.Record(
            [tuple(row[i] for i in order) for row in record.rows],
            [record.weights[i] for i in order],
            [record.utilities[i] for i in order],
            record.model,
        )
        one, two = (EXACT[name](lattice_of(r), LeastRisk(case.floor)) for r in (record, turned))
        assert (one is None) == (two is None)
        if one is not None and two is not None:
            assert one.risk == pytest.approx(two.risk, rel=1e-12)
            assert one.utility == pytest.approx(two.utility, rel=1e-9)


def test_what_a_search_refuses() -> None:
    lattice = lattice_of(golden())
    objective = LeastRisk(1)
    with pytest.raises(InputError, match="most_boxes"):
        branch_and_bound(lattice, objective, most_boxes=0)
    for search in (btda, aruba):
        with pytest.raises(InputError, match="most_nodes"):
            search(lattice, objective, most_nodes=0)
    infinite = replace(lattice, weights=(np.array([np.inf, 1, 0]), *lattice.weights[1:]))
    with pytest.raises(InputError, match="no infinite weights in model 'III'"):
        branch_and_bound(replace(infinite, model="III"), objective)
    with pytest.raises(InputError, match="'approximate' takes finite weights alone"):
        approximate(infinite, objective)
    for search in (approximate, lambda lattice, objective: aggregate(lattice, trade_off=1.0)):
        with pytest.raises(InputError, match="takes one dictionary"):
            search(replace(lattice, further=(lattice.counts,), prior=(0.5, 0.5)), objective)
        with pytest.raises(InputError, match="a sum over attributes"):
            search(replace(lattice, exponential=True), objective)
    with pytest.raises(InputError, match="not negative"):
        LeastPenalized(-1.0)
    with pytest.raises(InputError, match="shape"):
        genetic(lattice, objective, np.zeros((2, 8, 3)))
    with pytest.raises(InputError, match="model III"):
        approximate(replace(lattice, model="III"), objective)
    with pytest.raises(InputError, match="share"):
        approximate(lattice, objective, share=0.0)
    wide = RecordLattice.of_rows(np.zeros((1, 64), dtype=np.int64), [np.arange(1, -1, -1.0)] * 64, [np.ones(2)] * 64)
    with pytest.raises(InputError, match="2\\*\\*63"):
        aruba(wide, LeastRisk(0))
    assert levels_of(branch_and_bound(wide, LeastRisk(0))) == (1,) * 64
    with pytest.raises(InputError, match="12 attributes"):
        walk(
            RecordLattice.of_rows(np.zeros((1, 13), dtype=np.int64), [np.ones(2)] * 13, [np.ones(2)] * 13),
            objective,
            neighbourhood="cube",
        )


# ------------------------------------------------------------------------------------------------------ single searches


def test_the_bound_of_a_box_is_that_of_the_knapsack(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two attributes whose weight falls in one piece, (4, 4, 0), at the second level: of two units of utility each
    must be lost to save 4. Saved by level, the second step alone would promise 4 for one unit, 8 in all. By dynamic
    programming the box is solved: with a floor of 1 only one attribute can be suppressed."""
    alike = literal.Record([(0, 0)], [[4, 4, 0]] * 2, [[2, 1, 0]] * 2, "I")
    assert root_bound(lattice_of(alike), LeastRisk(1)) == pytest.approx(4)
    assert root_bound(lattice_of(alike), GreatestUtility(2)) == 0
    monkeypatch.setattr(arrays, "_UNITS", -1)
    assert root_bound(lattice_of(alike), LeastRisk(2)) == pytest.approx(4)
    assert root_bound(lattice_of(alike), LeastRisk(1)) == pytest.approx(2)
    # 8 may be had for a utility of 4, and each unit of Φ less costs half a unit.
    assert root_bound(lattice_of(alike), GreatestUtility(2)) == pytest.approx(1)


def test_a_limit_leaves_a_bound_that_closes() -> None:
    """Heights 1 to 4, 8 attributes: with more boxes the bound rises and the answer does not get worse."""
    rng = np.random.default_rng(2)
    heights = rng.integers(2, 5, 8)
    chains = [np.sort(rng.uniform(size=h + 1))[::-1] for h in heights]
    rows = np.stack([rng.integers(0, h + 1, 2000) for h in heights], axis=1)
    lattice = RecordLattice.of_rows(rows, chains, [np.arange(h, -1, -1.0) for h in heights])
    objective = LeastRisk(0.5 * float(heights.sum()))
    best = branch_and_bound(lattice, objective)
    assert best is not None
    assert best.status == "proved"
    bounds, risks = [], []
    for limit in (1, 9, 65, 257):
        found = branch_and_bound(lattice, objective, most_boxes=limit)
        again = branch_and_bound(lattice, objective, most_boxes=limit)
        assert found is not None
        assert again is not None
        assert found.visited <= limit + 1
        assert (levels_of(again), again.bound, again.visited) == (levels_of(found), found.bound, found.visited)
        assert found.status == "heuristic"
        assert found.gap == found.objective - found.bound > 0
        bounds.append(found.bound)
        risks.append(found.risk)
    assert bounds == sorted(bounds)
    assert risks == sorted(risks, reverse=True)
    assert bounds[-1] <= best.risk <= risks[-1]


def descended(
    lattice: RecordLattice, objective: Objective, start: np.ndarray
) -> tuple[float, float, tuple[int, ...]] | None:
    record = record_of(lattice, objective)
    assert record is not None
    best = Best(np.zeros(1, dtype=np.bool_), np.zeros(2), np.zeros(lattice.k, dtype=np.int64))
    words, n = np.zeros(record.rows.tables.shape[1], dtype=np.uint64), len(record.rows.counts)
    rho, levels = np.zeros(n, dtype=np.int64), np.zeros(lattice.k, dtype=np.int64)
    descend(record, best, start, Workplace(words, words.copy(), rho, rho.copy(), levels, np.zeros((1, 1))))
    return (float(best.numbers[0]), float(best.numbers[1]), tuple(best.levels.tolist())) if best.known[0] else None


def test_a_local_descent_ends_where_no_neighbour_is_better() -> None:
    """No admitted neighbour by a step or a swap is better; nothing is found only where nothing is admitted."""
    rng = np.random.default_rng(31)
    for _ in range(60):
        case = random_case(rng, most=4)
        record, lattice = case.record, case.lattice
        ceiling = record.risk((0,) * lattice.k) * float(rng.choice([0, 0.1, 0.5]))
        bottom, top = np.zeros(lattice.k, dtype=np.int64), lattice.heights
        starts: list[tuple[Objective, np.ndarray]] = [
            (LeastRisk(case.floor), bottom),
            (GreatestUtility(ceiling), top),
            (LeastPenalized(0.3), bottom),
            (LeastPenalized(0.3), top),
        ]
        for objective, start in starts:
            found = descended(lattice, objective, start)
            values = np.array([[record.risk(x), record.utility(x)] for x in record.nodes])
            admitted = objective.admits(values[:, 0], values[:, 1])
            assert (found is None) == (not admitted.any())
            if found is None:
                continue
            for x, (risk, utility), ok in zip(record.nodes, values.tolist(), admitted.tolist(), strict=True):
                step = np.subtract(x, found[2])
                near = np.abs(step).sum() == 1 or (np.abs(step).sum() == 2 and step.sum() == 0 and step.max() == 1)
                if ok and near:
                    assert not objective.prefers((risk, utility, x), found)


def test_the_genetic_search_ends_on_the_frontier_and_repeats_itself() -> None:
    rng = np.random.default_rng(41)
    optimal = 0
    for _ in range(40):
        case = random_case(rng, most=4)
        lattice, objective = case.lattice, LeastRisk(case.floor)
        draws = rng.uniform(size=(11, 20, uniforms_per_individual(lattice)))
        found, again = genetic(lattice, objective, draws), genetic(lattice, objective, draws.copy())
        best = literal.least_risk(case.record, case.floor)
        check(found, case.record, best, case.floor)
        if found is None or again is None or best is None:
            optimal += 1
            continue
        assert found.status == "heuristic"
        assert (levels_of(again), again.visited) == (levels_of(found), found.visited)
        edge = literal.frontier(case.record, case.floor) or {tuple(lattice.heights.tolist())}
        assert levels_of(found) in edge
        optimal += found.risk <= case.record.risk(best) * (1 + 1e-12)
    # 20 individuals and 10 generations are optimal at four attributes.
    assert optimal >= 38


def test_later_generations_improve_on_random_paths() -> None:
    """On the geometric mean of five records, selection finds less risk than as many random paths, in fewer nodes."""
    rng = np.random.default_rng(43)
    ratios, fewer = [], []
    for _ in range(5):
        heights = rng.integers(2, 6, 8)
        weights = [rng.uniform(0.1, 1) / 3.0 ** np.arange(h + 1) for h in heights]
        # Many rows share the record's value, the others lie far: fan-outs of 3.
        below = [1 - rng.uniform(0.4, 0.9) * (1 - 3.0 ** (np.arange(h + 1) - h)) for h in heights]
        rows = np.stack([np.searchsorted(share, rng.uniform(size=2000)) for share in below], axis=1)
        lattice = RecordLattice.of_rows(rows, weights, [np.arange(h, -1, -1.0) for h in heights])
        objective = LeastRisk(0.5 * float(heights.sum()))
        draws = rng.uniform(size=(40, 40, uniforms_per_individual(lattice)))
        evolved, blind = (
            genetic(lattice, objective, draws),
            genetic(lattice, objective, draws.reshape(1, -1, draws.shape[2])),
        )
        best = branch_and_bound(lattice, objective)
        assert evolved is not None
        assert blind is not None
        assert best is not None
        assert best.status == "proved"
        assert best.risk <= evolved.risk * (1 + 1e-12)
        ratios.append(math.log(evolved.risk / blind.risk))
        fewer.append(evolved.visited < blind.visited)
    assert sum(ratios) < 0
    assert all(fewer)


@pytest.mark.parametrize("m", [1, 100])
def test_no_rounding_of_the_relaxation_has_a_ratio(m: int) -> None:
    """F12 Theorem 5.2.3 fails: rows (0,0), (1,0) m times and (1,1) 2m times. (1,0) has ρ/Φ = 1 + m, but the only
    optimum of the relaxation is (1/2, 1/2), of value (2 + 3m) / 2, and its thresholds give nothing or everything."""
    record = literal.Record([(0, 0)] + [(1, 0)] * m + [(1, 1)] * (2 * m), [[1, 0]] * 2, [[1, 0]] * 2, "I")
    found = approximate(lattice_of(record), LeastRisk(1))
    assert found is not None
    assert levels_of(found) == (0, 0)
    assert 1 / found.risk == pytest.approx(0.5)
    theta, sigma_1, sigma_2, epsilon = 0.5, 0.1, 2.2, 0.1
    assert (1 - theta) / (1 - theta * sigma_1) + 1 / sigma_2 < 1
    best = literal.least_risk(record, 1)
    assert best == (1, 0)
    assert 1 / record.risk(best) == 1 + m
    assert 1 / found.risk < (1 + m) / (sigma_2 * (1 + epsilon))
    assert found.bound == pytest.approx(2 / (2 + 3 * m), rel=1e-5)


def test_the_relaxation_bounds_and_a_share_asks_for_less() -> None:
    """Where Φ = 0 is within reach of the relaxation, the bound is 0."""
    rng = np.random.default_rng(47)
    for _ in range(25):
        case = random_case(rng, most=4)
        if case.record.model == "III":
            continue
        lattice, objective = case.lattice, LeastRisk(case.floor)
        hard, soft = approximate(lattice, objective), approximate(lattice, objective, share=0.3)
        assert (hard is None) == (soft is None)
        if hard is not None and soft is not None:
            assert soft.risk <= hard.risk * (1 + 1e-12)
            assert soft.utility >= min(0.3 * case.floor, case.floor) - 1e-9
    free = literal.Record([(0,), (1,)], [[1, 0]], [[1, 1]], "I")
    found = approximate(lattice_of(free), LeastRisk(1))
    assert found is not None
    assert (levels_of(found), found.risk, found.bound) == ((1,), 0, 0)


# -------------------------------------------------------------------------------------------------------- listed rules


def test_cells_of_least_exposure_are_optimal_under_the_product_form() -> None:
    """LSFB06 Theorem 2 and its analogues: brute force over all rules, ρ = N Π ρ_j/N and Φ = exp Σ w."""
    rng = np.random.default_rng(53)
    n, k, rows = 3, 3, 50
    weights, alone = rng.uniform(0, 1, (n, k)), rng.integers(1, rows, (n, k))
    exposure = log_exposure(weights, alone, rows)
    assert (exposure >= 0).all()
    loss = np.exp(weights) * rows / alone

    def losses(cells: np.ndarray) -> np.ndarray:
        found: np.ndarray = np.where(cells, loss, 1.0).prod(axis=1) / rows
        return found

    rules = [np.array(bits).reshape(n, k) for bits in itertools.product([False, True], repeat=n * k)]
    for disclosed in range(k + 1):
        per_record = [rule for rule in rules if (rule.sum(axis=1) == disclosed).all()]
        chosen = losses(least_exposed(exposure, disclosed))
        assert chosen.mean() == pytest.approx(min(losses(rule).mean() for rule in per_record))
        per_attribute = [rule for rule in rules if (rule.sum(axis=0) == disclosed).all()]
        chosen = losses(least_exposed(exposure, disclosed, "attribute"))
        assert chosen.prod() == pytest.approx(min(losses(rule).prod() for rule in per_attribute))
    for disclosed in range(n * k + 1):
        in_all = [rule for rule in rules if rule.sum() == disclosed]
        chosen = losses(least_exposed(exposure, disclosed, "table"))
        assert chosen.prod() == pytest.approx(min(losses(rule).prod() for rule in in_all))
    with pytest.raises(InputError, match="3 cells"):
        least_exposed(exposure, 4)


def test_the_mean_loss_of_a_table_needs_more_than_the_exposure() -> None:
    """Two cells of a table, exposures (2, 2) and (2.1, 2.1): by exposure the first record is disclosed whole, losses
    4 + 1; one cell of each has 2 + 2.1."""
    exposure = np.log([[2.0, 2.0], [2.1, 2.1]])
    assert least_exposed(exposure, 2, "table").tolist() == [[True, True], [False, False]]
    assert 4 + 1 > 2 + 2.1


def test_equal_exposures_go_to_the_first_attribute_then_the_first_record() -> None:
    equal = np.zeros((2, 2))
    assert least_exposed(equal, 1, "table").tolist() == [[True, False], [False, False]]
    assert least_exposed(equal, 3, "table").tolist() == [[True, True], [True, False]]
    assert least_exposed(equal, 1, "record").tolist() == [[True, False], [True, False]]
    assert least_exposed(equal, 1, "attribute").tolist() == [[True, True], [False, False]]
    # A value that no row has is known to the record itself.
    assert log_exposure(np.zeros((1, 1)), np.zeros((1, 1), dtype=np.int64), 8)[0, 0] == pytest.approx(math.log(8))


def test_choice_among_listed_rules() -> None:
    risks, utilities = np.array([0.5, 0.2, 0.2, 0.2, 0.1]), np.array([9.0, 5.0, 6.0, 6.0, 1.0])
    assert choose_rule(risks, utilities, 5.0) == 2
    assert choose_rule(risks, utilities, 0.0) == 4
    assert choose_rule(risks, utilities, 7.0) == 0
    assert choose_rule(risks, utilities, 9.5) is None
    assert choose_rule(risks, utilities, 6 + 1e-14) == 2
