"""Best of given level vectors, and greedy descent with swaps, for node by node searches that are cut short."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from privrisk_spark.kernels.evaluation import Evaluation
from privrisk_spark.kernels.goal import Goal, GreatestUtility, LeastPenalized, LeastRisk, Valued

LongArray = npt.NDArray[np.int64]


def local_optimum(evaluation: Evaluation, goal: Goal) -> tuple[Valued | None, int]:
    """Best level vector that no single step improves.

    From the level vector that satisfies the constraint if any does - the record itself for a floor of utility, the top
    for a ceiling of risk; both, for no constraint - the best admitted neighbour is taken as long as one is better:
    of those one level away, and only where none is better, of those that raise one attribute and lower another. Ties
    within the tolerance may form a cycle, so at most ``4 (1 + Σ h_i)`` moves are made.

    Parameters
    ----------
    evaluation : Evaluation
    goal : LeastRisk or GreatestUtility or LeastPenalized

    Returns
    -------
    (risk, utility, levels) or None
        None where nothing satisfies the constraint.
    int
        Level vectors evaluated.
    """
    heights = evaluation.lattice.heights
    bottom = np.zeros_like(heights)
    match goal:
        case LeastRisk():
            starts = [bottom]
        case GreatestUtility():
            starts = [heights]
        case LeastPenalized():
            starts = [bottom, heights]
    k = len(heights)
    unit = np.eye(k, dtype=np.int64)
    steps = np.concatenate([unit, -unit])
    up, down = (~np.eye(k, dtype=np.bool_)).nonzero()
    swaps = unit[up] - unit[down]
    best: Valued | None = None
    evaluated = 0
    for start in starts:
        at = _best_of(evaluation, goal, start[None, :])
        evaluated += 1
        left = 4 * (1 + int(heights.sum()))
        while at is not None and left:
            left -= 1
            better = None
            for moves in (steps, swaps):
                near = np.array(at[2], dtype=np.int64)[None, :] + moves
                near = near[((near >= 0) & (near <= heights)).all(axis=1)]
                evaluated += len(near)
                found = _best_of(evaluation, goal, near)
                if found is not None and goal.prefers(found, at):
                    better = found
                    break
            if better is None:
                break
            at = better
        if at is not None and (best is None or goal.prefers(at, best)):
            best = at
    return best, evaluated


def _best_of(evaluation: Evaluation, goal: Goal, levels: LongArray) -> Valued | None:
    utility = evaluation.utility(levels)
    if isinstance(goal, LeastRisk):
        # The constraint is cheap here, the risk is not.
        levels = levels[goal.admits(utility, utility)]
        utility = evaluation.utility(levels)
    risk = evaluation.risk(levels)
    return preferred(goal, None, levels, risk, utility)


def preferred(
    goal: Goal,
    best: Valued | None,
    levels: LongArray,
    risk: npt.NDArray[np.float64],
    utility: npt.NDArray[np.float64],
) -> Valued | None:
    """Best of the best so far and of the level vectors that satisfy the constraint.

    Parameters
    ----------
    goal : LeastRisk or GreatestUtility or LeastPenalized
    best : (risk, utility, levels) or None
    levels : ndarray of int64, shape (n, k)
    risk, utility : ndarray of float64, shape (n,)

    Returns
    -------
    (risk, utility, levels) or None
    """
    admitted = np.flatnonzero(goal.admits(risk, utility))
    if not len(admitted):
        return best
    # Only those whose objective comes near the best can win.
    objective = goal.objective(risk, utility)[admitted]
    loss = -objective if isinstance(goal, GreatestUtility) else objective
    least = float(loss.min())
    near = admitted[loss <= least + 1e-9 * abs(least) + 1e-11]
    for j in near[np.lexsort(levels[near].T[::-1])].tolist():
        one = (float(risk[j]), float(utility[j]), tuple(levels[j].tolist()))
        if best is None or goal.prefers(one, best):
            best = one
    return best
