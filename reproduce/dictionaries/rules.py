"""Every rule for a whole table: one level vector for all records, its mean risk and its mean utility.

Fouad (2012), section 3.2: the risks of all rules in ascending order beside their utilities (Fig. 3.5), the least risk
of a rule by the utility that is asked, and the greatest utility by the risk that is allowed (Fig. 3.6). Beside the best
rule stands what is possible where each record has a rule of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from privrisk_spark.kernels.arrays import FloatArray
from privrisk_spark.kernels.disclosure.estimated import risk_of
from privrisk_spark.kernels.disclosure.objective import LeastRisk
from privrisk_spark.kernels.search.method import Search
from privrisk_spark.kernels.search.table_search import decide
from reproduce.dictionaries.growth import Nested


@dataclass(frozen=True, eq=False)
class Rules:
    """Rules of a lattice, in ascending order of risk; of equal risk, that of less utility first.

    Attributes
    ----------
    risk, utility : ndarray of float64, shape (R,)
        Means over the rows.
    floors : ndarray of float64, shape (F,)
        Utilities that are asked.
    least_risk : ndarray of float64, shape (F,)
        Of a rule whose mean utility is at least the floor; NaN where there is none.
    of_records : ndarray of float64, shape (F,)
        Mean risk where every record has the least risk at that utility by a rule of its own; NaN where one cannot.
    bounds : ndarray of float64, shape (B,)
        Risks that are allowed.
    greatest_utility : ndarray of float64, shape (B,)
        Of a rule whose risk is at most the bound; NaN where there is none.
    """

    risk: FloatArray
    utility: FloatArray
    floors: FloatArray
    least_risk: FloatArray
    of_records: FloatArray
    bounds: FloatArray
    greatest_utility: FloatArray


def every_rule(nested: Nested, floors: Sequence[float], bounds: int) -> Rules:
    """Measure every rule against the largest dictionary.

    Parameters
    ----------
    nested : Nested
        With few attributes: every node of the lattice is a rule.
    floors : sequence of float
        As shares of the greatest utility.
    bounds : int
        How many bounds of risk, spread evenly over the logarithm of the rules' positive risks.
    """
    subject, counts = nested.subject, nested.dictionaries[-1]
    problem = nested.disclosure("multiplicative")
    depth = np.column_stack([axis.code_depth[nested.codes[:, i]] for i, axis in enumerate(subject.axes)])
    risks, utilities = [], []
    for levels in product(*(range(height + 1) for height in subject.heights)):
        chosen = np.broadcast_to(np.array(levels), nested.codes.shape)
        risks.append(nested.mean(risk_of(problem, counts, nested.codes, chosen).risk))
        utilities.append(nested.mean((depth - np.minimum(chosen, depth)).sum(axis=1).astype(np.float64)))
    order = np.lexsort([utilities, risks])
    risk, utility = np.array(risks)[order], np.array(utilities)[order]
    asked = np.array([share * subject.greatest_utility for share in floors])
    own = []
    for floor in asked.tolist():
        decided = decide(problem, Search(LeastRisk(floor)), counts, nested.codes)
        own.append(nested.mean(decided.risk) if decided.feasible.all() else np.nan)
    positive = risk[risk > 0]
    allowed = np.geomspace(positive.min(), positive.max(), bounds) if len(positive) else np.zeros(0)
    return Rules(
        risk,
        utility,
        asked,
        np.array([min(risk[utility >= floor], default=np.nan) for floor in asked.tolist()]),
        np.array(own),
        allowed,
        np.array([max(utility[risk <= bound], default=np.nan) for bound in allowed.tolist()]),
    )
