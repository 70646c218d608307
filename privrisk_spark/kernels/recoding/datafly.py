"""Datafly (Sweeney 1998): generalize the attribute of the most distinct values until few enough rows are suppressed.

A heuristic for any metric: one way through the lattice, which does not look at the metric.
"""

from __future__ import annotations

import numpy as np

from privrisk_spark.kernels.recoding.floors import Floors, look
from privrisk_spark.kernels.recoding.problem import Problem, Scheme, best_of

__all__ = ["datafly"]


def datafly(problem: Problem) -> Scheme | None:
    """Return the first scheme of its way that keeps the limit; None if none of its way does.

    Distinct values are those of all rows at the levels that are reached. Of attributes with as many the first is taken;
    one at its highest level is out. Where the problem is monotone, None says that no scheme keeps the limit, as the way
    ends at the top.
    """
    table = problem.measured.table
    heights, levels = table.lattice.heights, [0] * len(table.ancestors)
    classes, looks = table.classes(levels), 1
    while (facts := look(problem, tuple(levels), classes).facts) is None:
        open_ = [i for i, level in enumerate(levels) if level < heights[i]]
        if not open_:
            return None
        values = {i: len(np.unique(table.ancestors[i][table.vectors[classes.member, i], levels[i]])) for i in open_}
        levels[max(open_, key=lambda i: (values[i], -i))] += 1
        classes, looks = table.classes(levels, classes), looks + 1
    return best_of(problem, [facts], nodes_evaluated=looks, optimal=False, least=Floors(problem).of_lattice())
