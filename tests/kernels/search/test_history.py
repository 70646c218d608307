"""Decisions after earlier releases, against an attacker who literally holds all of them."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive_decisions import Known, Task, asked, best, build, check, subsuming, to_dictionary
from naive_history import after
from strategies import several_hierarchies

from privrisk_spark.errors import InputError
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.counting.consistent import Axis, Counts, DenseCounts, SortedCounts
from privrisk_spark.kernels.disclosure.objective import GreatestAggregate
from privrisk_spark.kernels.search import record_search
from privrisk_spark.kernels.search.table_search import decide

SEARCHES = [
    ("exact", "risk", 0),
    ("aruba", "risk", 0),
    ("exhaustive", "risk", 0),
    ("exhaustive", "utility", 0),
    ("exhaustive", "penalized", 0),
    # Lattices so small are enumerated; with none, branch and bound itself is looked at.
    ("branch_and_bound", "risk", 2**15),
    ("branch_and_bound", "utility", 2**15),
    ("branch_and_bound", "risk", 0),
    ("branch_and_bound", "utility", 0),
    ("branch_and_bound", "penalized", 0),
    ("btda", "risk", 0),
]
SINGLE = ("branch_and_bound", "btda")


Case = tuple[list[Hierarchy], np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Hierarchies, records, other rows, the levels of two earlier releases, and what is measured."""
    hierarchies = draw(several_hierarchies())
    codes = np.array(
        [[draw(st.integers(0, h.n_leaves)) for h in hierarchies] for _ in range(draw(st.integers(1, 5)))],
        dtype=np.int32,
    )
    others = np.array(
        [[draw(st.integers(0, h.n_leaves - 1)) for h in hierarchies] for _ in range(draw(st.integers(1, 8)))],
        dtype=np.int32,
    ).reshape(-1, len(hierarchies))
    settings = {
        "weights": [draw(st.sampled_from([0.0, 0.3, 1.0])) for _ in hierarchies],
        "form": draw(st.sampled_from(["constant", "linear", "record", "multiplicative"])),
        "model": draw(st.sampled_from(["I", "II", "III"])),
        "measure": draw(st.sampled_from(["depth", "leaves", "xiao-tao"])),
    }
    depths = depth_of(hierarchies, codes)
    releases = np.array(
        [[[draw(st.integers(0, int(d))) for d in row] for row in depths] for _ in range(draw(st.integers(0, 2)))],
        dtype=np.int8,
    ).reshape(-1, *codes.shape)
    return hierarchies, codes, others, releases, settings


def depth_of(hierarchies: list[Hierarchy], codes: np.ndarray) -> np.ndarray:
    axes = [Axis(h.at_depth, h.ancestor) for h in hierarchies]
    return np.column_stack([axis.code_depth[codes[:, i]] for i, axis in enumerate(axes)]).astype(np.int8)


def counted(hierarchies: list[Hierarchy], dictionary: np.ndarray) -> tuple[Counts, Counts]:
    vectors, multiplicity = np.unique(dictionary, axis=0, return_counts=True)
    axes = [Axis(h.at_depth, h.ancestor) for h in hierarchies]
    return (
        SortedCounts.group(axes, vectors.astype(np.int32), multiplicity),
        DenseCounts.roll_up(axes, vectors.astype(np.int32), multiplicity),
    )


@pytest.mark.parametrize(("search", "kind", "enumerated"), SEARCHES)
@given(case=cases(), data=st.data())
def test_every_search_is_the_literal_one_of_who_holds_all_releases(
    search: str, kind: str, enumerated: int, case: Case, data: st.DataObject,
) -> None:  # fmt: skip
    hierarchies, codes, others, releases, settings = case
    # The first record is left out of the dictionary: it is absent unless another is like it.
    dictionary = to_dictionary(hierarchies, np.concatenate([codes[1:], others]))
    problem: Task = build(hierarchies, floor=0.0, **settings)
    known = Known([list(map(int, row)) for row in dictionary], subsuming(hierarchies))
    out = [[tuple(map(int, release[i])) for release in releases] for i in range(len(codes))]
    of = [
        after(problem.disclosure, hierarchies, record, known, [1.0] * len(hierarchies), out[i])
        for i, record in enumerate(codes)
    ]
    problem = problem.seeking(objective=asked(data.draw, kind, of), method=search)
    history = depth_of(hierarchies, codes)
    for release in releases:
        history = np.minimum(history, release)
    in_order, dense = counted(hierarchies, dictionary)
    for counts in (in_order,) if search in SINGLE else (in_order, dense):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(record_search, "_ENUMERATED", enumerated)
            found = decide(*problem, counts, codes, history=history)
        assert found.history is not None
        for i, record in enumerate(codes):
            levels = best(problem.search.objective, of[i])
            top = tuple(of[i].depths)
            answer = top if levels is None else levels
            bottom = (0,) * len(answer)
            rho = of[i].consistent(answer), of[i].consistent(bottom)
            want = levels, of[i].risk(answer), of[i].risk(bottom), of[i].utility(answer), *rho
            check(found, i, want, hierarchies, record)
            assert found.history.out[i] == pytest.approx(of[i].risk(top), rel=1e-9)
            assert found.history.alone[i] == pytest.approx(of[i].alone(answer), rel=1e-9)
            alone = [best(problem.search.objective, _single(of[i])), levels]
            # Beyond the bound already: it could be met, were nothing out, by suppressing the record whole.
            beyond = levels is None and alone[0] is not None and kind == "utility"
            assert found.history.beyond[i] == beyond


def _single(of: Any) -> Any:
    return SimpleNamespace(**{**vars(of), "risk": of.alone})


def batch(rng: np.random.Generator) -> tuple[list[Hierarchy], np.ndarray, Counts, Task]:
    hierarchies = [
        Hierarchy.from_paths(f"a{i}", [(f"l{j}", f"m{j // 2}", f"u{j // 4}") for j in range(8)]) for i in range(3)
    ]
    codes = rng.integers(0, 9, (300, 3)).astype(np.int32)
    problem = build(hierarchies, floor=4.0, weights=[1.0, 0.5, 0.25], form="linear", model="I", measure="depth")
    return hierarchies, codes, counted(hierarchies, to_dictionary(hierarchies, codes))[0], problem


@pytest.mark.parametrize("search", ["exact", "branch_and_bound"])
def test_a_record_is_decided_by_its_own_history_whatever_others_have(search: str) -> None:
    rng = np.random.default_rng(5)
    hierarchies, codes, counts, problem = batch(rng)
    problem = problem.seeking(method=search)
    history = np.minimum(rng.integers(0, 4, codes.shape), depth_of(hierarchies, codes)).astype(np.int8)
    whole = decide(*problem, counts, codes, history=history)
    order = rng.permutation(len(codes))
    for rows in (order[:7], order[7:150], order[150:]):
        part = decide(*problem, counts, codes[rows], history=history[rows])
        for name in ("levels", "nodes", "risk", "utility", "consistent", "feasible"):
            assert getattr(part, name).tobytes() == getattr(whole, name)[rows].tobytes()
        assert part.history is not None
        assert whole.history is not None
        assert part.history.out.tobytes() == whole.history.out[rows].tobytes()


@pytest.mark.parametrize("search", ["exact", "aruba", "exhaustive", "branch_and_bound", "btda"])
def test_no_history_is_a_history_of_suppressed_records(search: str) -> None:
    hierarchies, codes, counts, problem = batch(np.random.default_rng(6))
    problem = problem.seeking(method=search)
    plain = decide(*problem, counts, codes)
    nothing = decide(*problem, counts, codes, history=depth_of(hierarchies, codes))
    assert plain.history is None
    assert nothing.history is not None
    for name in ("levels", "nodes", "risk", "risk_before", "utility", "consistent", "consistent_before", "feasible"):
        assert getattr(plain, name).tobytes() == getattr(nothing, name).tobytes()
    assert nothing.history.alone.tobytes() == plain.risk.tobytes()


@pytest.mark.parametrize("search", ["exact", "branch_and_bound"])
def test_releasing_again_what_is_out_adds_no_risk_and_more_history_never_lowers_it(search: str) -> None:
    rng = np.random.default_rng(7)
    _, codes, counts, problem = batch(rng)
    problem = problem.seeking(method=search)
    first = decide(*problem, counts, codes)
    again = decide(*problem, counts, codes, history=first.levels)
    assert again.history is not None
    assert (again.levels == first.levels).all()
    assert np.allclose(again.risk, first.risk, rtol=1e-12)
    assert np.allclose(again.history.out, first.risk, rtol=1e-12)
    history, least = first.levels, again.risk
    for _ in range(3):
        history = np.minimum(history, rng.integers(0, 4, codes.shape)).astype(np.int8)
        more = decide(*problem, counts, codes, history=history)
        assert (more.risk >= least * (1 - 1e-12)).all()
        least = more.risk


def test_an_aggregate_takes_no_history() -> None:
    hierarchies, codes, counts, problem = batch(np.random.default_rng(8))
    problem = problem.seeking(objective=GreatestAggregate(1.0, 1.0, "exclude"), method="exhaustive")
    with pytest.raises(InputError, match="max-aggregate"):
        decide(*problem, counts, codes, history=depth_of(hierarchies, codes))


def test_an_infinite_risk_that_is_out_stays() -> None:
    hierarchies = [Hierarchy.from_paths("a", [("x", "m"), ("y", "m")])]
    problem = build(hierarchies, floor=0.0, weights=[math.inf], form="linear", model="I", measure="depth")
    codes = np.array([[0], [1]], dtype=np.int32)
    counts = counted(hierarchies, codes)[1]
    found = decide(*problem, counts, codes, history=np.array([[0], [2]], dtype=np.int8))
    assert found.risk.tolist() == [math.inf, 0.0]
    assert found.levels.tolist() == [[0], [2]]
