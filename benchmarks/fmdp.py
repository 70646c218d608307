"""The planned attack on a table, against the two linear programs of Xia et al., CIKM 2015 (§7.1).

*attack*: payoff, probability and exploits for each of 32,561 records whose group size the adversary does not know, of
6,018,999 rows. The floor has the same answers by other code: the recurrence in plain Python for every group size, and
the binomial of scipy over all records at once.

*two-level* and *flat*: the linear programs by HiGHS, at the numbers of rows the paper measured and fewer records; the
floor is the kernel on the same records, and payoffs must agree within 1e-9 of the gain. The programs' seconds hold the
enumeration of states, in Python, as well. The paper's own: 616 and 13,444 s for 5,000 records of 500,000 rows.

All data is SYNTHETIC: probabilities of cells of age, race, gender and postal code, as products of made-up shares;
records are drawn from the cells, group sizes from the binomial.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import binom

from benchmarks.attack_programs import START, TwoLevel, binomial_belief, flat
from benchmarks.case_study import BenchmarkError, Result
from privrisk_spark.kernels.adversary.process import TOLERANCE, Attack, solve
from privrisk_spark.kernels.adversary.risk import assess, payoff_of_belief

RECORDS = 32_561
ROWS = 6_018_999
SEED = 2026
BAR = 1.0
"""Most seconds of the kernel."""

ATTACK = Attack(
    prior=0.63, gain=8000.0, penalty=10000.0, fines_paid=1, cost_access=100.0, cost_exploit=10.0, h0=-4.59, h1=0.0
)
"""X15 §7.1."""

PROGRAM_ROWS = (5_000, 50_000, 500_000)
TWO_LEVEL_RECORDS, FLAT_RECORDS = 1_000, 20

_AGES, _CODES = 73, 800
_RACES = (0.69, 0.22, 0.06, 0.02, 0.01)

_Floats = npt.NDArray[np.float64]
_Longs = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Targets:
    """Records under attack.

    Attributes
    ----------
    densities : ndarray of float64, shape (n,)
        Probability of each record's cell.
    group_sizes : ndarray of int64, shape (n,)
        Rows of the identified table in it.
    """

    densities: _Floats
    group_sizes: _Longs

    @classmethod
    def generated(cls, records: int, rows: int, *, seed: int = SEED) -> Targets:
        """Draw records from cells, and group sizes among ``rows``."""
        random = np.random.default_rng([seed, records])
        ages = np.exp(-((np.arange(_AGES) / 55) ** 2))
        codes = random.lognormal(sigma=1.2, size=_CODES)
        shares = [ages / ages.sum(), np.array(_RACES), np.array([0.49, 0.51]), codes / codes.sum()]
        densities = np.ones(records)
        for share in shares:
            densities *= share[random.choice(len(share), size=records, p=share)]
        return cls(densities, random.binomial(rows, densities))


def run(*, rows: int | None = None, cache: Path | None = None) -> list[Result]:  # noqa: ARG001
    """Assess all records by the kernel, then some of them by the programs.

    Parameters
    ----------
    rows : int, optional
        Records; 32,561 if not given. The programs have at most 1,000 (two-level) and 20 (flat) of them.
    cache : Path, optional
        Not used: generating takes no time.

    Returns
    -------
    list of Result
        One result for the table, and one for each program at each number of rows.

    Raises
    ------
    BenchmarkError
        If two ways to the same figures differ. A target missed is no failure.
    """
    records = RECORDS if rows is None else rows
    targets = Targets.generated(records, ROWS)
    results = [_attack(targets)]
    for table_rows in PROGRAM_ROWS:
        results.append(_program("two-level", targets, min(records, TWO_LEVEL_RECORDS), table_rows))
    for table_rows in PROGRAM_ROWS:
        results.append(_program("flat", targets, min(records, FLAT_RECORDS), table_rows))
    return results


def _attack(targets: Targets) -> Result:
    start = perf_counter()
    solution = solve(ATTACK)
    solved = perf_counter() - start
    found = assess(solution, targets.group_sizes, np.full(len(targets.densities), ROWS), targets.densities)
    seconds = perf_counter() - start
    start = perf_counter()
    payoff, probability = _floor(targets, ROWS)
    floor = perf_counter() - start
    _agree("the table", found.expected_payoff, payoff)
    if not np.allclose(found.p_reid, probability, rtol=0, atol=1e-12):
        raise BenchmarkError("The kernel and the floor find different probabilities of re-identification.")
    return _result(
        "attack",
        seconds,
        floor,
        {
            "rows": len(payoff),
            "dictionary_rows": ROWS,
            "bar": BAR,
            "slowest": round(seconds, 4),
            "seconds_solving": round(solved, 4),
            "distinct_densities": len(np.unique(targets.densities)),
            "known_threshold": solution.known_threshold,
            "sunk_threshold": solution.sunk_threshold,
            "attacked": int((found.expected_payoff > 0).sum()),
            "at_risk": int((found.p_reid > 0).sum()),
        },
    )


def _program(form: str, targets: Targets, records: int, table_rows: int) -> Result:
    densities = targets.densities[:records]
    start = perf_counter()
    ours = payoff_of_belief(solve(ATTACK), np.full(records, table_rows), densities)
    floor = perf_counter() - start
    start = perf_counter()
    beliefs = [binomial_belief(table_rows, density) for density in densities.tolist()]
    states = []
    if form == "flat":
        payoffs = []
        for belief in beliefs:
            found = flat(ATTACK, belief)
            payoffs.append(found[START])
            states.append(len(found))
    else:
        program = TwoLevel(ATTACK)
        payoffs = [program.payoff(belief) for belief in beliefs]
        states = [program.states]
    seconds = perf_counter() - start
    _agree(f"{form}, {table_rows:,} rows", np.maximum(ours, 0.0), np.array(payoffs))
    return _result(
        f"{form} program",
        seconds,
        floor,
        {
            "rows": records,
            "dictionary_rows": table_rows,
            "most_states": max(states),
            "largest_group": max(max(belief) for belief in beliefs),
            "seconds_a_record": round(seconds / records, 5),
        },
    )


def _agree(what: str, found: _Floats, expected: _Floats) -> None:
    """Compare payoffs; those within the tolerance of 0 are none."""
    found, expected = (np.where(values > TOLERANCE, values, 0.0) for values in (found, expected))
    worst = float(np.abs(found - expected).max())
    if worst > 1e-9 * ATTACK.gain:
        raise BenchmarkError(f"{what}: payoffs differ by {worst:.3g}, more than 1e-9 of the gain.")


def _floor(targets: Targets, rows: int) -> tuple[_Floats, _Floats]:
    """Payoff and probability of every record, by the recurrence in plain Python and the binomial of scipy."""
    attack = ATTACK
    caught = 1 / (1 + np.exp(-attack.h0))
    outside = (1 - attack.prior) / attack.prior

    linked, probability = [0.0], [0.0]
    while True:
        g = len(linked)
        # value and probability of success with r candidates left, before and after the only fine
        worth, reached = [0.0, 0.0], [0.0, 0.0]
        for r in range(1, g + 1):
            success = 1 / (r + g * outside)
            after = [(1 - caught) * worth[0] + caught * worth[1], worth[1]]
            then = [(1 - caught) * reached[0] + caught * reached[1], reached[1]]
            for paid, fine in ((0, attack.penalty), (1, 0.0)):
                earned = success * attack.gain - caught * fine + (1 - success) * after[paid]
                q = attack.gamma * earned - attack.cost_exploit
                worth[paid] = max(q, 0.0)
                reached[paid] = success + (1 - success) * then[paid] if q > TOLERANCE else 0.0
        if worth[0] == 0:
            break
        linked.append(max(0.0, attack.gamma * worth[0] - attack.cost_link))
        probability.append(reached[0])
    groups = np.arange(len(linked))
    weights = binom.pmf(groups, rows, targets.densities[:, None])
    payoff = attack.gamma * weights @ np.array(linked) - attack.cost_access
    attacked = (payoff > TOLERANCE) & (targets.group_sizes < len(linked))
    at = np.where(attacked, targets.group_sizes, 0)
    return np.where(payoff > TOLERANCE, payoff, 0.0), np.array(probability)[at]


def _result(name: str, seconds: float, floor: float, parameters: dict[str, Any]) -> Result:
    return Result(
        name=name,
        seconds=seconds,
        floor_seconds=floor,
        peak_mb=0.0,
        parameters={
            **parameters,
            "seed": SEED,
            "synthetic": True,
            "processors": len(os.sched_getaffinity(0)),
            "load_before": round(os.getloadavg()[0], 2),
        },
    )
