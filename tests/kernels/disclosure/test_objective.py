"""An infinite risk is equal to itself alone, worse than every other, and is compared without a warning."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from privrisk_spark.kernels.disclosure.objective import (
    GreatestUtility,
    LeastPenalized,
    LeastRisk,
    Objective,
    Valued,
    preferred,
)

RISKS, UTILITIES = (0.0, 1e-300, 1.0, 1e300, math.inf), (0.0, 3.0, 1e12)
OBJECTIVES = [
    LeastRisk(0.0),
    GreatestUtility(1.0),
    GreatestUtility(math.inf),
    *[LeastPenalized(t) for t in (0, 0.5, 1e9)],
]
POINTS: list[Valued] = [(r, u, (i,)) for i, (r, u) in enumerate(itertools.product(RISKS, UTILITIES))]


def criteria(objective: Objective, point: Valued) -> tuple[float, ...]:
    """What a objective minimizes, first things first; all differ by far more than the tolerance, or are equal."""
    risk, utility, _ = point
    if isinstance(objective, LeastRisk):
        return risk, -utility
    if isinstance(objective, GreatestUtility):
        return -utility, risk
    # Beside 1e300 a unit of utility is nothing; then the risk decides, and then the utility.
    return risk - objective.trade * utility, risk, -utility


@pytest.mark.parametrize("objective", OBJECTIVES, ids=str)
def test_infinite_and_finite_risks_are_told_apart(objective: Objective) -> None:
    for one, than in itertools.product(POINTS, POINTS):
        mine, other = criteria(objective, one), criteria(objective, than)
        numbers = [np.array([number]) for number in (one[0], one[1], than[0], than[1])]
        assert objective.ahead(*numbers).tolist() == [mine < other], (one, than)
        assert objective.prefers(one, than) == ((mine, one[2]) < (other, than[2])), (one, than)


def test_of_all_infinite_risks_the_most_useful_is_preferred() -> None:
    levels = np.array([[0], [1], [2]])
    utility = np.array([1.0, 2.0, 2.0])
    for objective in (LeastRisk(0.0), LeastPenalized(0.5)):
        assert preferred(objective, None, levels, np.full(3, math.inf), utility) == (math.inf, 2.0, (1,))
        one = preferred(objective, None, levels, np.array([math.inf, math.inf, 1e300]), utility)
        assert one == (1e300, 2.0, (2,))
