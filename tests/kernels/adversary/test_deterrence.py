"""What deters: least penalties and group sizes, thresholds; and what is not monotone."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_attack import attacks

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.adversary.deterrence import (
    SWEPT,
    Table,
    least_group,
    least_penalty,
    sweep,
)
from privrisk_spark.kernels.adversary.process import Attack, solve
from privrisk_spark.kernels.adversary.risk import assess, reidentification_probability

ONE_FINE = Attack(prior=0.63, gain=8000, penalty=10000, fines_paid=1, cost_access=100, cost_exploit=10, h0=-4.59)


def record(group_size: int, loss: float = 1.0) -> Table:
    """The table of one record whose group size is known."""
    return Table(np.array([group_size]), np.array([1]), np.array([loss]))


GROWING = replace(ONE_FINE, fines_paid=None, h1=0.18)
RISES = Attack(prior=0.3, gain=100, penalty=10, fines_paid=1, cost_access=1, cost_exploit=2, h0=0.0, h1=0.5, gamma=0.9)
"""P_reid of groups of 1 to 8: .3, .3, .3, .2962, .2994, .2991, .2988, 0: it rises from 4 to 5."""


def table(*entries: tuple[int, int, float]) -> Table:
    group_sizes, counts, losses = zip(*entries, strict=True)
    return Table(np.array(group_sizes), np.array(counts), np.array(losses, dtype=np.float64))


tables = st.lists(
    st.tuples(st.integers(0, 12), st.integers(1, 5), st.sampled_from([0.0, 1.0, 3.0])), min_size=1, max_size=5
).map(lambda entries: table(*entries))


def risk_of(attack: Attack, given_table: Table, statistic: str) -> float:
    """By hand."""
    probabilities = reidentification_probability(solve(attack, 12), given_table.group_sizes)
    rows = list(zip(probabilities, given_table.counts, given_table.losses, strict=True))
    if statistic == "max":
        return max(p * loss for p, _, loss in rows)
    return sum(p * n * loss for p, n, loss in rows) / sum(n for _, n, _ in rows)


# ---- the penalty


def test_the_least_penalty_of_one_record_by_hand():
    # known alone, always fined with d = 1/2: γ (G - C_p/2) - C_e = C_d/γ² for g = 1
    attack = Attack(prior=1, gain=1000, penalty=0, fines_paid=None, cost_access=81, cost_exploit=10, h0=0.0, gamma=0.9)
    found = least_penalty(attack, record(1), 0.0)
    # v = 100 at the border: 0.9 (1000 - C_p / 2) = 110
    assert found.penalty == pytest.approx(2 * (1000 - 110 / 0.9), rel=1e-9)
    assert (found.risk, found.risk_below) == (0, 1)


@settings(max_examples=40, deadline=None)
@given(attacks(), tables, st.sampled_from(["mean", "max"]), st.sampled_from([0.0, 0.1, 0.5, 0.9, 2.0]))
def test_the_least_penalty_is_just_enough(attack, given_table, statistic, bound):
    found = least_penalty(attack, given_table, bound, statistic)
    assert found is not None  # every exploit may be detected, so that some penalty suffices
    enough = risk_of(replace(attack, penalty=found.penalty), given_table, statistic)
    assert enough == pytest.approx(found.risk, abs=1e-12)
    assert enough <= bound + 1e-9
    if found.penalty == 0:
        assert math.isnan(found.risk_below)
        return
    below = math.nextafter(found.penalty, 0)
    assert risk_of(replace(attack, penalty=below), given_table, statistic) > bound
    assert found.risk_below > bound
    for factor in (1.01, 2, 100):
        more = replace(attack, penalty=found.penalty * factor)
        assert risk_of(more, given_table, statistic) <= bound + 1e-9


@settings(max_examples=60, deadline=None)
@given(attacks(), st.integers(1, 15))
def test_risk_never_rises_with_the_penalty(attack, group):
    found = [
        reidentification_probability(solve(replace(attack, penalty=c), 15), np.array([group]))[0]
        for c in np.geomspace(0.1, 5000, 40)
    ]
    assert (np.diff(found) <= 1e-12).all()


def test_no_penalty_suffices_where_none_is_paid():
    assert least_penalty(replace(ONE_FINE, fines_paid=0), record(5), 0.1) is None
    assert least_penalty(replace(ONE_FINE, h0=-math.inf), record(5), 0.1) is None
    nothing = least_penalty(replace(ONE_FINE, h0=-math.inf), record(5), 0.7)
    assert nothing is not None
    assert (nothing.penalty, nothing.risk) == (0, pytest.approx(0.63))


def test_detection_that_begins_late_leaves_the_first_exploits():
    """Nothing is detected at first: the first exploit stays free, whatever the penalty."""
    late = replace(ONE_FINE, fines_paid=None, h0=-800.0, h1=400.0, cost_access=1, prior=1)
    assert least_penalty(late, record(10), 0.05) is None
    # two exploits are free, the third is caught with probability 1/2
    found = least_penalty(late, record(10), 0.2)
    assert found is not None
    assert found.risk == pytest.approx(0.2)
    assert found.risk_below > 0.2


def test_the_bound_at_the_prior_needs_no_penalty():
    assert least_penalty(ONE_FINE, record(3), 0.63).penalty == 0


def test_the_mean_needs_less_than_the_greatest():
    entries = table((1, 1, 1.0), (30, 99, 1.0))
    mean = least_penalty(ONE_FINE, entries, 0.01, "mean")
    most = least_penalty(ONE_FINE, entries, 0.01, "max")
    assert (mean.risk, most.risk) == (pytest.approx(0.0063), 0)
    assert mean.penalty < most.penalty
    assert mean.penalty == least_penalty(ONE_FINE, record(30), 0).penalty
    assert most.penalty == least_penalty(ONE_FINE, record(1), 0).penalty


def test_losses_weigh():
    assert least_penalty(ONE_FINE, record(30, loss=0.1), 0.07).penalty == 0
    assert least_penalty(ONE_FINE, record(30, loss=2.0), 0.07).penalty > 0


def test_the_least_penalty_where_groups_are_not_known():
    rows, density = 10**6, 20e-6
    hidden = Table(np.array([50]), np.array([1]), np.array([1.0]), np.array([rows]), np.array([density]))
    found = least_penalty(ONE_FINE, hidden, 0.1)
    at = assess(solve(replace(ONE_FINE, penalty=found.penalty)), np.array([50]), np.array([rows]), np.array([density]))
    assert at.p_reid.tolist() == [0]
    below = replace(ONE_FINE, penalty=math.nextafter(found.penalty, 0))
    assert assess(solve(below), np.array([50]), np.array([rows]), np.array([density])).p_reid[0] > 0.1
    assert found.penalty > least_penalty(ONE_FINE, record(50), 0.1).penalty


# ---- the group size


def test_the_least_group_is_the_threshold():
    assert least_group(ONE_FINE, record(1), 0.5).group_size == 48
    assert least_group(ONE_FINE, record(1), 0.5, accessed=True).group_size == 54
    assert least_group(ONE_FINE, record(1), 0.63).group_size == 1
    # partial exploitation: 0.63 · exploits / g <= 0.3
    found = least_group(GROWING, record(1), 0.3)
    p = reidentification_probability(solve(GROWING), np.arange(40))
    assert (p[found.group_size :] <= 0.3).all()
    assert p[found.group_size - 1] > 0.3
    assert found.risk == p[found.group_size :].max()


def test_risk_may_rise_with_the_group_and_the_answer_knows():
    p = reidentification_probability(solve(RISES), np.arange(1, 10))
    assert p[3] < p[4] < p[2]
    bound = (p[3] + p[6]) / 2
    found = least_group(RISES, record(1), bound)
    assert (found.first, found.group_size, found.risk) == (4, 8, 0)
    loose = least_group(RISES, record(1), (p[2] + p[4]) / 2)
    assert (loose.first, loose.group_size, loose.risk) == (4, 4, p[4])


@settings(max_examples=60, deadline=None)
@given(attacks(), tables, st.sampled_from(["mean", "max"]), st.sampled_from([0.0, 0.02, 0.29, 0.5]), st.booleans())
def test_the_least_group_holds_however_far_groups_grow(attack, given_table, statistic, bound, accessed):
    found = least_group(attack, given_table, bound, statistic, accessed=accessed)
    assert found is not None
    assert found.first <= found.group_size
    assert found.risk <= bound + 1e-12
    solution = solve(attack)
    end = solution.cut_off
    access = np.ones(end + 2, dtype=bool) if accessed else None
    p = reidentification_probability(solution, np.arange(end + 2), access)

    def worst(least: int) -> float:
        """Every record in the worst group at least as large as its own and ``least``."""
        worst_of = [p[min(max(g, least), end) :].max() for g in given_table.group_sizes.tolist()]
        risks = np.array(worst_of) * given_table.losses
        return risks.max() if statistic == "max" else (risks * given_table.counts).sum() / given_table.counts.sum()

    for size in range(found.group_size, end + 2):
        assert worst(size) <= bound + 1e-12
    if found.group_size > 1:
        assert worst(found.group_size - 1) > bound


def test_groups_without_a_limit():
    free = replace(ONE_FINE, cost_exploit=0, penalty=0)
    with pytest.raises(InputError, match="largest group"):
        least_group(free, record(1), 0.5)
    assert least_group(free, record(1), 0.5, largest_group=30) is None
    assert least_group(free, record(1), 0.7, largest_group=30).group_size == 1
    with pytest.raises(InputError, match="raise the largest group"):
        least_group(free, record(31), 0.5, largest_group=30)


# ---- detection


def test_risk_may_rise_with_detection():
    """The second of two fines is soon paid, and then there is nothing to lose."""
    attack = Attack(prior=0.5, gain=300, penalty=100, fines_paid=1, cost_access=10, cost_exploit=2, h0=-1.0, gamma=1)
    p = [reidentification_probability(solve(attack.with_detection(d)), np.array([3]))[0] for d in (0.8, 1.0)]
    assert p[0] < p[1] == 0.5


@settings(max_examples=40, deadline=None)
@given(attacks(), st.sampled_from(["cost_access", "cost_exploit", "penalty", "detection"]))
def test_thresholds_never_rise_with_what_deters(attack, parameter):
    values = [0.1, 0.3, 0.5, 0.9, 1.0] if parameter == "detection" else [1.0, 2.0, 10.0, 50.0, 300.0]
    found = sweep(attack, parameter, values)
    assert (np.diff(found.known) <= 0).all()
    assert (np.diff(found.sunk) <= 0).all()
    assert (found.known <= found.sunk).all()


# ---- sweeps


def test_the_published_sweep_of_the_penalty():
    """X15 §7.3: below 9 at a penalty of 10,000, one alone at 50,000; with P_det = 0.014, which it does not state."""
    base = Attack(
        prior=1, gain=1000, penalty=20000, fines_paid=None, cost_access=100, cost_exploit=10, h0=0.0
    ).with_detection(0.014)
    for fines in (None, 1):
        found = sweep(replace(base, fines_paid=fines), "penalty", [10000, 50000])
        assert found.known.tolist() == [9, 2]


@pytest.mark.parametrize("parameter", SWEPT)
def test_a_sweep_solves_each_value(parameter):
    values = [0.2, 0.7]
    found = sweep(ONE_FINE, parameter, values)
    assert (found.parameter, found.values.tolist()) == (parameter, values)
    for value, known, sunk in zip(values, found.known, found.sunk, strict=True):
        changed = (
            ONE_FINE.with_detection(value) if parameter == "detection" else replace(ONE_FINE, **{parameter: value})
        )
        one = solve(changed)
        assert (one.known_threshold, one.sunk_threshold) == (known, sunk)


def test_a_threshold_beyond_the_largest_group():
    found = sweep(ONE_FINE, "cost_exploit", [0.0, 10.0], largest_group=50)
    assert found.known.tolist() == [-1, 48]
    assert found.sunk.tolist() == [-1, -1]


def test_wrong_sweeps_are_refused():
    with pytest.raises(InputError, match=r"'penaltys' \(did you mean 'penalty'\?\)"):
        sweep(ONE_FINE, "penaltys", [1.0])
    with pytest.raises(InputError, match=r"attack\.cost_access must"):
        sweep(ONE_FINE, "cost_access", [-1.0])


# ---- what is refused


def test_wrong_tables_are_refused():
    one = np.array([1])
    with pytest.raises(InputError, match="one length"):
        Table(one, np.array([1, 2]), np.array([1.0]))
    with pytest.raises(InputError, match="group size"):
        table((-1, 1, 1.0))
    with pytest.raises(InputError, match="Counts"):
        table((1, -1, 1.0))
    with pytest.raises(InputError, match="Counts"):
        table((1, 0, 1.0))
    with pytest.raises(InputError, match="loss"):
        table((1, 1, math.nan))
    with pytest.raises(InputError, match="both"):
        Table(one, one, np.array([1.0]), rows=one)


def test_other_arguments_are_refused():
    with pytest.raises(InputError, match="bound"):
        least_penalty(ONE_FINE, record(1), -0.1)
    with pytest.raises(InputError, match="bound"):
        least_group(ONE_FINE, record(1), math.nan)
    with pytest.raises(InputError, match="mean or max"):
        least_penalty(ONE_FINE, record(1), 0.1, "median")
    hidden = Table(np.array([50]), np.array([1]), np.array([1.0]), np.array([100]), np.array([0.5]))
    with pytest.raises(InputError, match="accessed"):
        least_group(ONE_FINE, hidden, 0.1)


def test_records_without_weight_do_not_count():
    assert least_penalty(ONE_FINE, table((600, 1, 1.0), (1, 0, 1.0)), 0.1).penalty == 0
