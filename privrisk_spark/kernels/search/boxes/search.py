"""The loop over boxes as machine code: in ascending order of their bound.

What is proved of it is said in :mod:`privrisk_spark.kernels.search.branch_and_bound`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from privrisk_spark.kernels.arrays import FloatArray, LongArray, WordArray
from privrisk_spark.kernels.lattice.lattice import TOLERANCE
from privrisk_spark.kernels.search.boxes.arrays import (
    GREATEST_UTILITY,
    LEAST_PENALIZED,
    LEAST_RISK,
    Record,
    factor_of,
    risk_at,
    risk_of,
    sum_of,
)
from privrisk_spark.kernels.search.boxes.bounds import (
    SLACK,
    affordable_sum,
    flat_optimum,
    least_penalized,
    least_sum,
    reached,
    utility_bound,
)
from privrisk_spark.kernels.search.row_sets import count, rows_within
from privrisk_spark.machine_code import compiled


class SearchResult(NamedTuple):
    """What a search came to.

    Attributes
    ----------
    any : bool
        Whether something satisfies the constraint.
    levels : ndarray of int64, shape (k,)
    bound : float
        Least bound of a box that is left, as the first criterion, to be minimized; infinity if none is left.
    visited : int
        Boxes evaluated.
    """

    any: bool
    levels: LongArray
    bound: float
    visited: int


class Best(NamedTuple):
    """The best level vector so far.

    Attributes
    ----------
    known : ndarray of bool, shape (1,)
    numbers : ndarray of float64, shape (2,)
        Its risk and utility.
    levels : ndarray of int64, shape (k,)
    """

    known: npt.NDArray[np.bool_]
    numbers: FloatArray
    levels: LongArray


class Workplace(NamedTuple):
    """Arrays that are filled again and again."""

    rows: WordArray
    some: WordArray
    rho: LongArray
    fewer: LongArray
    chosen: LongArray
    table: FloatArray


@compiled
def comes_before(levels: LongArray, other: LongArray) -> bool:
    """Whether a level vector is lexicographically smaller."""
    for i in range(len(levels)):
        if levels[i] != other[i]:
            return levels[i] < other[i]  # type: ignore[no-any-return]
    return False


@compiled
def lower_risk(risk: float, utility: float, levels: LongArray, best: Best, by_utility: bool) -> bool:
    """Lower risk, then higher utility if asked, then smaller levels than the best."""
    other = best.numbers[0]
    if risk < other * (1 - TOLERANCE) or risk > other * (1 + TOLERANCE):
        return risk < other  # type: ignore[no-any-return]
    if by_utility and abs(utility - best.numbers[1]) > TOLERANCE * max(1.0, abs(best.numbers[1])):
        return utility > best.numbers[1]  # type: ignore[no-any-return]
    return comes_before(levels, best.levels)


@compiled
def admits(record: Record, risk: float, utility: float) -> bool:
    """Whether a risk and utility satisfy the constraint."""
    if record.objective == LEAST_RISK:
        return utility >= record.constraint - TOLERANCE * max(1.0, abs(record.constraint))
    return record.objective == LEAST_PENALIZED or risk <= record.constraint * (1 + TOLERANCE)


@compiled
def offer(record: Record, best: Best, levels: LongArray, risk: float) -> bool:
    """Take a level vector if it satisfies the constraint and is better than the best so far."""
    utility = sum_of(record.utilities, levels)
    if not admits(record, risk, utility):
        return False
    if best.known[0]:
        other = best.numbers[1]
        if record.objective == LEAST_RISK:
            better = lower_risk(risk, utility, levels, best, True)
        elif record.objective == GREATEST_UTILITY:
            if abs(utility - other) > TOLERANCE * max(1.0, abs(other)):
                better = utility > other
            else:
                better = lower_risk(risk, utility, levels, best, False)
        else:
            mine = risk - record.constraint * utility
            theirs = best.numbers[0] - record.constraint * other
            if abs(mine - theirs) > TOLERANCE * max(1.0, abs(theirs)):
                better = mine < theirs
            else:
                better = lower_risk(risk, utility, levels, best, True)
        if not better:
            return False
    best.known[0] = True
    best.numbers[0], best.numbers[1] = risk, utility
    best.levels[:] = levels
    return True


@compiled
def descend(record: Record, best: Best, start: LongArray, work: Workplace) -> None:
    """From a level vector by steps of one level, and where none is better by swaps, as long as that is better.

    Ties within the tolerance may form a cycle, so only so many moves are made.
    """
    k, moves = len(start), 4 * (1 + record.heights.sum())
    at = start.copy()
    here = Best(np.zeros(1, dtype=np.bool_), np.zeros(2), start.copy())
    if not offer(record, here, at, risk_at(record, at, work.rows, work.rho)):
        return
    moved = True
    while moved and moves > 0:
        moved = False
        moves -= 1
        at[:] = here.levels
        for i in range(k):
            for step in (1, -1):
                if record.bottom[i] <= at[i] + step <= record.heights[i]:
                    at[i] += step
                    moved |= offer(record, here, at, risk_at(record, at, work.rows, work.rho))
                    at[i] -= step
        if moved:
            continue
        for i in range(k):
            for j in range(k):
                if i != j and at[i] < record.heights[i] and at[j] > record.bottom[j]:
                    at[i] += 1
                    at[j] -= 1
                    moved |= offer(record, here, at, risk_at(record, at, work.rows, work.rho))
                    at[i] -= 1
                    at[j] += 1
    offer(record, best, here.levels, here.numbers[0])


@compiled
def criteria(record: Record, best: Best) -> tuple[float, float]:
    """First and second criterion of the best, both to be minimized."""
    risk, utility = best.numbers[0], best.numbers[1]
    if record.objective == LEAST_RISK:
        return risk, -utility
    if record.objective == GREATEST_UTILITY:
        return -utility, risk
    return risk - record.constraint * utility, risk


@compiled
def slack_of(criterion: float, is_risk: bool) -> float:
    """Difference within which criteria count as equal."""
    if np.isinf(criterion):
        # Of two infinite risks; there is no difference.
        return 0.0
    return TOLERANCE * abs(criterion) if is_risk else TOLERANCE * max(1.0, abs(criterion))


@compiled
def hopeful(record: Record, best: Best, first: float, second: float, lo: LongArray) -> bool:
    """Whether a box may hold something better than the best, under the whole tie rule."""
    if not best.known[0]:
        return True
    mine, other = criteria(record, best)
    slack = slack_of(mine, record.objective == LEAST_RISK)
    if first > mine + slack:
        return False
    if first < mine - slack:
        return True
    gap = slack_of(other, record.objective != LEAST_RISK)
    if second > other + gap:
        return False
    # Of a penalized risk the levels are not the third criterion.
    if record.objective == LEAST_PENALIZED or second < other - gap:
        return True
    return comes_before(lo, best.levels)


@compiled
def floor_of(record: Record, best: Best) -> float:
    """Utility that something better than the best must reach."""
    if record.objective == LEAST_RISK:
        return record.constraint - TOLERANCE * max(1.0, abs(record.constraint))
    if record.objective == GREATEST_UTILITY and best.known[0]:
        return best.numbers[1] - 2 * TOLERANCE * max(1.0, abs(best.numbers[1]))  # type: ignore[no-any-return]
    return -np.inf


@compiled
def bounded(
    record: Record, best: Best, lo: LongArray, hi: LongArray, few: int, work: Workplace
) -> tuple[bool, float, float]:
    """Bound a box, whose corners are drawn together, and offer level vectors of it.

    Returns
    -------
    open : bool
        Whether the box must be looked into.
    first, second : float
        Bounds of the two criteria.
    """
    k = len(lo)
    at_lo = sum_of(record.utilities, lo)
    floor = floor_of(record, best)
    if at_lo < floor:
        return False, np.inf, 0.0
    if np.isfinite(floor):
        for i in range(k):
            need = floor - at_lo + record.utilities[i, lo[i]] - SLACK * (abs(floor) + at_lo)
            while hi[i] > lo[i] and record.utilities[i, hi[i]] < need:
                hi[i] -= 1
    risk = risk_at(record, hi, work.rows, work.rho)
    factor = factor_of(record, work.rho)
    offer(record, best, hi, risk)
    if factor == 0:
        # Every row is consistent with hi. Where that is so with lo too, no Φ matters: of equal risks lo has the most
        # utility, and nothing in the box comes before it.
        risk_at_lo = risk_at(record, lo, work.some, work.fewer)
        if factor_of(record, work.fewer) == 0:
            offer(record, best, lo, risk_at_lo)
            return False, 0.0, 0.0
    least = sum_of(record.weights, hi)
    exact = False
    if record.objective == LEAST_RISK:
        exact = sum_of(record.utilities, hi) >= floor
        first, second = risk, -at_lo
        if not exact:
            least = max(least, least_sum(record, lo, hi, floor, work.chosen))
            first = risk_of(record, least, factor) * (1 - SLACK)
    elif record.objective == GREATEST_UTILITY:
        first, second = utility_bound(record, lo, hi, at_lo, factor, work.chosen), risk
    else:
        first, second = least_penalized(record, lo, hi, factor, record.constraint, work.chosen), risk
    if not hopeful(record, best, first, second, lo):
        return False, first, second
    # A closer look: at the rows, at the level vector behind the bound, and at boxes where no row makes a difference.
    total = 0
    for d in range(len(work.rho)):
        total += work.rho[d]
    if not exact and np.isfinite(floor) and 1 < total <= few:
        reached(record, lo, work.rows, floor, work.fewer)
        factor = max(factor, factor_of(record, work.fewer))
        if record.objective == LEAST_RISK:
            first = risk_of(record, least, factor) * (1 - SLACK)
        else:
            first = utility_bound(record, lo, hi, at_lo, factor, work.chosen)
            second = risk_of(record, least, factor) * (1 - SLACK)
        if not hopeful(record, best, first, second, lo):
            return False, first, second
    if not exact:
        offer(record, best, work.chosen, risk_at(record, work.chosen, work.some, work.fewer))
    if record.objective != LEAST_PENALIZED and record.steps.shape[1] > 0:
        rows_within(record.rows, lo, work.some)
        count(record.rows, work.some, work.fewer)
        if factor >= factor_of(record, work.fewer) * (1 - SLACK):
            if not flat_optimum(record, lo, hi, floor, affordable_sum(record, factor), work.table, work.chosen):
                return False, first, second
            risk = risk_at(record, work.chosen, work.some, work.fewer)
            offer(record, best, work.chosen, risk)
            if admits(record, risk, sum_of(record.utilities, work.chosen)):
                return False, first, second
    if record.objective == LEAST_RISK and best.known[0] and first >= best.numbers[0] * (1 - 1e-9):
        # Where the least risk is met, levels at which the risk is greater are left out.
        ceiling = best.numbers[0] * (1 + TOLERANCE)
        work.chosen[:] = hi
        for i in range(k):
            while lo[i] < hi[i]:
                work.chosen[i] = lo[i]
                if risk_at(record, work.chosen, work.some, work.fewer) <= ceiling:
                    break
                lo[i] += 1
            work.chosen[i] = hi[i]
        at_lo = sum_of(record.utilities, lo)
        second = -at_lo
        if at_lo < floor or not hopeful(record, best, first, second, lo):
            return False, first, second
    for i in range(k):
        if lo[i] < hi[i]:
            return True, first, second
    return False, first, second


@compiled
def before(first: FloatArray, second: FloatArray, a: int, b: int) -> bool:
    """Whether box ``a`` is opened before box ``b``."""
    return first[a] < first[b] or (
        first[a] == first[b] and (second[a] < second[b] or (second[a] == second[b] and a < b))
    )


@compiled
def search(record: Record, most_boxes: int, few: int, room: int) -> SearchResult:
    """Search a record's lattice from ``bottom`` to ``heights``.

    Parameters
    ----------
    most_boxes : int
        Boxes evaluated before the search ends with what it has.
    few : int
        Most consistent rows of a box at which they are looked at one by one.
    room : int
        Boxes that there is room for at first; it is doubled as often as needed. Does not change a result.
    """
    k, words, n_dictionaries = len(record.heights), record.rows.tables.shape[1], len(record.dictionary_rows)
    best = Best(np.zeros(1, dtype=np.bool_), np.zeros(2), np.zeros(k, dtype=np.int64))
    units = np.int64(0)
    if record.steps.shape[1] > 0:
        for i in range(k):
            units += record.steps[i, record.heights[i]]
    work = Workplace(
        np.zeros(words, dtype=np.uint64),
        np.zeros(words, dtype=np.uint64),
        np.zeros(n_dictionaries, dtype=np.int64),
        np.zeros(n_dictionaries, dtype=np.int64),
        np.zeros(k, dtype=np.int64),
        np.zeros((k + 1, units + 1)),
    )
    if record.objective != GREATEST_UTILITY:
        descend(record, best, record.bottom, work)
    if record.objective != LEAST_RISK:
        descend(record, best, record.heights, work)
    # Boxes that are open, in slots that are used again; the heap holds slots.
    corners = np.zeros((room, 2, k), dtype=np.int8)
    first, second = np.zeros(room), np.zeros(room)
    heap = np.zeros(room, dtype=np.int64)
    free = np.arange(room)[::-1].copy()
    n_open, n_free = 0, room
    lo, hi = record.bottom.copy(), record.heights.copy()
    parent_lo, parent_hi = lo.copy(), hi.copy()
    visited, halves, axis = 0, 1, 0
    bound = np.inf
    while best.known[0]:
        for half in range(halves):
            if halves == 2:
                lo[:], hi[:] = parent_lo, parent_hi
                middle = (parent_lo[axis] + parent_hi[axis]) // 2
                if half == 0:
                    hi[axis] = middle
                else:
                    lo[axis] = middle + 1
            visited += 1
            open_, one, two = bounded(record, best, lo, hi, few, work)
            if not open_:
                continue
            if n_free == 0:
                corners = np.concatenate((corners, np.zeros((room, 2, k), dtype=np.int8)))
                first, second = np.concatenate((first, np.zeros(room))), np.concatenate((second, np.zeros(room)))
                heap = np.concatenate((heap, np.zeros(room, dtype=np.int64)))
                free = np.concatenate((np.arange(2 * room - 1, room - 1, -1), np.zeros(room, dtype=np.int64)))
                n_free, room = room, 2 * room
            n_free -= 1
            slot = free[n_free]
            for i in range(k):
                corners[slot, 0, i], corners[slot, 1, i] = lo[i], hi[i]
            first[slot], second[slot] = one, two
            at = n_open
            n_open += 1
            while at > 0 and before(first, second, slot, heap[(at - 1) // 2]):
                heap[at] = heap[(at - 1) // 2]
                at = (at - 1) // 2
            heap[at] = slot
        if n_open == 0 or visited >= most_boxes:
            # Infinity is for nothing left.
            bound = min(first[heap[0]], np.finfo(np.float64).max) if n_open else np.inf
            break
        slot = heap[0]
        n_open -= 1
        last, at = heap[n_open], 0
        while 2 * at + 1 < n_open:
            child = 2 * at + 1
            if child + 1 < n_open and before(first, second, heap[child + 1], heap[child]):
                child += 1
            if not before(first, second, heap[child], last):
                break
            heap[at] = heap[child]
            at = child
        heap[at] = last
        free[n_free] = slot
        n_free += 1
        for i in range(k):
            parent_lo[i], parent_hi[i] = corners[slot, 0, i], corners[slot, 1, i]
        halves = 0
        if hopeful(record, best, first[slot], second[slot], parent_lo):
            halves = 2
            spread = -1.0
            for i in range(k):
                if parent_hi[i] > parent_lo[i]:
                    part = record.utilities[i, parent_lo[i]] - record.utilities[i, parent_hi[i]]
                    if part > spread:
                        spread, axis = part, i
        else:
            mine, _ = criteria(record, best)
            if first[slot] > mine + slack_of(mine, record.objective == LEAST_RISK):
                # Boxes come in ascending order: the rest is beyond as well.
                break
    return SearchResult(best.known[0], best.levels, bound, visited)
