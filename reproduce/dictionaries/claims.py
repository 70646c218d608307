"""What is claimed of dictionaries and rules, and what one table shows of it.

Sources: Lebanon, Scannapieco, Fouad and Bertino (2006; LSFB06), section 5; Fouad (2012; F12), chapter 3. Sentences are
made from the figures of the run; nothing in them is fixed but the words.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from privrisk_spark.kernels.arrays import FloatArray
from privrisk_spark.reporting.numbers import percent, rounded
from reproduce.dictionaries.growth import Growth
from reproduce.dictionaries.rules import Rules
from reproduce.result import LITTLE, Claim, held, judged
from reproduce.texts import least_to_most

CORRELATION, NEAR = 0.858, 0.05
"""Of risk and utility over the rules of F12's case study (section 3.2), and how far from it counts as the same."""

_SLACK = 1e-12
"""Relative: the last bits of a mean are no claim."""

_Judged = tuple[str, str, str, str]


def claims(data: str, growth: Growth, rules: Rules) -> tuple[Claim, ...]:
    """Judge every claim on one table.

    Parameters
    ----------
    data : str
        Name of the table.
    """
    judged = (*_of_growth(growth), *_of_estimates(growth), *_of_rules(rules))
    return tuple(Claim(source, claim, data, verdict, evidence) for source, claim, verdict, evidence in judged)


def risen(values: FloatArray, axis: int) -> tuple[int, int]:
    """How many steps along an axis do not fall, and how many steps there are; those beside NaN are left out."""
    before, after = (
        np.take(values, at, axis=axis) for at in (range(values.shape[axis] - 1), range(1, values.shape[axis]))
    )
    told = ~(np.isnan(before) | np.isnan(after))
    return int((after >= before * (1 - _SLACK))[told].sum()), int(told.sum())


def _of_growth(growth: Growth) -> Iterator[_Judged]:
    every = np.stack(list(growth.risk.values()))
    rising, steps = risen(every, 1)
    most = growth.risk["linear"]
    yield (
        "Lebanon et al. (2006), Fig. 1",
        "The more attributes of a record are disclosed, the greater is the risk.",
        held(rising, steps),
        f"With {growth.attributes[-1]} attributes in place of {growth.attributes[0]} it is "
        f"{least_to_most((most[-1] / most[0]).tolist())} times as great, by size of the dictionary.",
    )
    falling, steps = risen(-every, 2)
    yield (
        "Lebanon et al. (2006), Fig. 1; Fouad (2012), Fig. 3.1",
        "The larger the attacker's dictionary is, the smaller is the risk.",
        held(falling, steps),
        f"A dictionary {rounded(growth.rows[-1] / growth.rows[0])} times as large leaves "
        f"{least_to_most((100 * most[:, -1] / most[:, 0]).tolist())} % of the risk: little is gained where records are "
        "unique among all people.",
    )
    rising, steps = risen(growth.curves.minimal, 1)
    yield (
        "Fouad (2012), Fig. 3.1",
        "The least risk grows with the utility c that is asked.",
        held(rising, steps),
        f"From c = {rounded(growth.curves.floors[0])} to {rounded(growth.curves.floors[-1])} it grows by factors of "
        f"{least_to_most((growth.curves.minimal[:, -1] / growth.curves.minimal[:, 0]).tolist())}.",
    )


def _of_estimates(growth: Growth) -> Iterator[_Judged]:
    bound = growth.curves.estimated >= growth.curves.true * (1 - _SLACK)
    yield (
        "Lebanon et al. (2006), Theorem 1 and Fig. 1",
        "The risk against an estimate that is part of the true dictionary is never below the true risk.",
        held(int(bound.sum()), bound.size),
        f"Of {bound.size} points, {int(bound.sum())} are on the line y = x or above it.",
    )
    looser = growth.curves.estimated / growth.curves.true
    rising, steps = risen(looser, 0)
    yield (
        "Lebanon et al. (2006), Fig. 1; Fouad (2012), Fig. 3.3",
        "The bound is the looser the larger the true dictionary is beside the estimate.",
        held(rising, steps),
        f"Against a dictionary {rounded(growth.rows[-1] / growth.rows[0])} times as large the estimated risk is "
        f"{least_to_most(looser[-1].tolist())} times the true one, by c.",
    )


def _of_rules(rules: Rules) -> Iterator[_Judged]:
    rising, steps = risen(rules.utility, 0)
    correlation = float(np.corrcoef(rules.risk, rules.utility)[0, 1])
    ranks = float(np.corrcoef(np.argsort(np.argsort(rules.risk)), np.argsort(np.argsort(rules.utility)))[0, 1])
    yield (
        "Fouad (2012), Fig. 3.5",
        f"The correlation of risk and utility over the rules of a table is {CORRELATION}, but for {NEAR}.",
        judged(abs(correlation - CORRELATION) <= NEAR),
        f"The correlation of {len(rules.risk)} rules is {correlation:.3f}, that of their ranks {ranks:.3f}. The "
        "paper's table and its weights are not public.",
    )
    yield (
        "Fouad (2012), Fig. 3.5",
        "The utility of a rule grows with its risk, with exceptions: in nine of ten steps to the next rule by risk.",
        judged(steps * (1 - LITTLE) <= rising < steps),
        f"In {steps - rising} of {steps} steps the utility falls.",
    )
    told = ~np.isnan(rules.least_risk) & ~np.isnan(rules.of_records)
    less = rules.of_records[told] <= rules.least_risk[told] * (1 + _SLACK)
    saved = 1 - rules.of_records[told] / np.where(rules.least_risk[told] > 0, rules.least_risk[told], 1)
    yield (
        "Fouad (2012), section 4.2",
        "A rule of its own for each record leaves no more risk than the best rule for the whole table at the same "
        "floor of utility.",
        held(int(less.sum()), int(told.sum())),
        f"Mean risk is less by {percent(float(saved.min()))} to {percent(float(saved.max()))}. The whole table's rule "
        "has the floor for the mean utility, each record's own for that record."
        if told.any()
        else "No floor can be reached by both.",
    )
