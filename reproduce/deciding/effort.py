"""What the searches of one record's lattice cost and find (Fouad 2012, F12, Figs 3.7, 4.11): nodes, time, risk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import process_time

import numpy as np

from privrisk_spark.kernels.arrays import FloatArray, LongArray
from privrisk_spark.kernels.disclosure.objective import LeastRisk
from privrisk_spark.kernels.lattice.lattice import TOLERANCE
from privrisk_spark.kernels.search.branch_and_bound import branch_and_bound
from privrisk_spark.kernels.search.enumeration import Nodes, enumerate_nodes
from privrisk_spark.kernels.search.node_search import aruba, btda
from privrisk_spark.kernels.search.record import Answer, RecordLattice
from reproduce.deciding.subject import Subject

Search = Callable[[RecordLattice, LeastRisk], Answer | None]

MOST_CUBE = 8
"""Most attributes for which all ``3**k - 1`` moves are tried."""


def aruba_cube(record: RecordLattice, objective: LeastRisk) -> Answer | None:
    """ARUBA with the neighbourhood F12 prints."""
    return aruba(record, objective, neighbourhood="cube")


SEARCHES: dict[str, Search] = {
    "enumeration": enumerate_nodes,
    "ARUBA, cube": aruba_cube,
    "ARUBA, swap": aruba,
    "BTDA": btda,
    "branch and bound": branch_and_bound,
}
"""Searches compared; the first is what the others are checked against."""


@dataclass(frozen=True, eq=False)
class Sweep:
    """Means over records at each of P points.

    Attributes
    ----------
    at : ndarray of float64, shape (P,)
        Least utility as a share of the greatest, or number of attributes.
    records : ndarray of int64, shape (P,)
        Records searched whose greatest utility reaches the floor.
    lattice, frontier : ndarray of float64, shape (P,)
        Nodes of the lattice, and of its frontier.
    share : ndarray of float64, shape (P,)
        Mean share of the lattice that is frontier.
    visited : ndarray of float64, shape (P, S)
        Distinct nodes each search evaluated; boxes, for branch and bound. NaN where it was not run.
    part : ndarray of float64, shape (P, S)
        Mean of visited nodes over the nodes of the lattice.
    seconds : ndarray of float64, shape (P, S)
        CPU time measured, per record.
    risk : ndarray of float64, shape (P, S)
        Mean risk of what each search found; NaN where it was not run.
    worse : ndarray of int64, shape (P, S)
        Records for which a search missed the least risk.
    """

    at: FloatArray
    records: LongArray
    lattice: FloatArray
    frontier: FloatArray
    share: FloatArray
    visited: FloatArray
    part: FloatArray
    seconds: FloatArray
    risk: FloatArray
    worse: LongArray


@dataclass(frozen=True, eq=False)
class Effort:
    """Sweeps over the floor with all attributes, and over the attributes with the floor in the middle."""

    by_floor: Sweep
    by_attributes: Sweep


def effort(subject: Subject, *, seed: int, records: int, floors: Sequence[float], attributes: Sequence[int]) -> Effort:
    """Search some records' lattices by every method.

    Parameters
    ----------
    seed : int
        Draws the records.
    records : int
        How many, at each point.
    floors : sequence of float
        Shares of the greatest utility.
    attributes : sequence of int
        Numbers of first attributes; the floor is then half of the greatest utility.
    """
    compile_searches()
    return Effort(
        by_floor=_sweep(floors, [(subject, floor) for floor in floors], seed, records),
        by_attributes=_sweep(attributes, [(subject.first(k), 0.5) for k in attributes], seed, records),
    )


def compile_searches() -> None:
    """Have the machine code of the searches made before their time is measured."""
    edge = np.array([1.0, 0.0])
    record = RecordLattice.of_rows(np.array([[0, 0], [0, 1], [1, 1]]), [edge, edge], [edge, edge])
    branch_and_bound(record, LeastRisk(1.0))


def missed(found: Answer | None, least: Answer | None) -> bool:
    """Whether a search's risk is above the least, beyond the tolerance."""
    if found is None or least is None:
        return found is not least
    return found.risk > least.risk * (1 + 10 * TOLERANCE)


def _sweep(at: Sequence[float], points: Sequence[tuple[Subject, float]], seed: int, records: int) -> Sweep:
    n, s = len(points), len(SEARCHES)
    lattice, frontier, share = np.zeros(n), np.zeros(n), np.zeros(n)
    visited, part, seconds, risk = (np.zeros((n, s)) for _ in range(4))
    worse, searched = np.zeros((n, s), dtype=np.int64), np.zeros(n, dtype=np.int64)
    for p, (subject, floor) in enumerate(points):
        objective = LeastRisk(floor * subject.greatest_utility)
        for turn, row in enumerate(subject.drawn(seed, records).tolist()):
            record = subject.record(row, turn=turn)
            least = enumerate_nodes(record, objective)
            if least is None:
                continue
            searched[p] += 1
            on = int(Nodes.of_record(record).frontier(objective.floor).sum())
            lattice[p] += record.size
            frontier[p] += on
            share[p] += on / record.size
            for j, (name, search) in enumerate(SEARCHES.items()):
                if name == "ARUBA, cube" and subject.k > MOST_CUBE:
                    visited[p, j] = part[p, j] = seconds[p, j] = risk[p, j] = np.nan
                    continue
                started = process_time()
                found = search(record, objective)
                seconds[p, j] += process_time() - started
                assert found is not None
                visited[p, j] += found.visited
                part[p, j] += found.visited / record.size
                risk[p, j] += found.risk
                worse[p, j] += missed(found, least)
    over = np.maximum(searched, 1)
    return Sweep(
        at=np.array(at, dtype=np.float64),
        records=searched,
        lattice=lattice / over,
        frontier=frontier / over,
        share=share / over,
        visited=visited / over[:, None],
        part=part / over[:, None],
        seconds=seconds / over[:, None],
        risk=risk / over[:, None],
        worse=worse,
    )
