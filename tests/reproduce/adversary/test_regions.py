"""The plan of the attacker as regions, against the literal twin and the published setting."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from naive_attack import TOLERANCE, Twin, attacks

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.adversary.process import Attack, solve
from privrisk_spark.kernels.adversary.risk import exploitation
from reproduce.adversary.regions import policy_regions

GROWING = Attack(
    prior=0.63, gain=8000, penalty=10000, fines_paid=None, cost_access=100, cost_exploit=10, h0=-4.59, h1=0.18
)


@settings(max_examples=50, deadline=None)
@given(attacks(), st.integers(1, 8))
def test_regions_are_the_plan(attack, group):
    solution = solve(attack)
    found = policy_regions(solution, [group])
    twin = Twin(attack)
    assume(twin.clear(twin.linked(group), *twin.decisions(group)))
    linked = twin.linked(group) > TOLERANCE
    covered = set()
    for g, fines, exploits, least, most in zip(
        found.group_size, found.fines, found.exploits, found.least, found.most, strict=True
    ):
        assert g == group
        assert 1 <= least <= most <= group - max(fines, 0)
        for r in range(least, most + 1):
            assert (r, fines) not in covered
            covered.add((r, int(fines)))
            paid = range(group - r + 1) if fines < 0 else [fines]
            for p in paid:
                assert exploits == (linked and twin.q(group, r, int(p)) > TOLERANCE)
    if (found.fines < 0).all():
        assert {r for r, _ in covered} == set(range(1, group + 1))
    else:
        levels = range(attack.fines_paid + 1)
        assert covered == {(r, p) for p in levels for r in range(1, group - p + 1)}


def test_regions_of_the_published_setting():
    # 12 of 14 are exploited: down to 3 remaining; 29 and 60 are not attacked, but 29 is once accessed
    solution = solve(GROWING)
    found = policy_regions(solution, [13, 14, 29, 60])
    rows = list(zip(found.group_size, found.exploits, found.least, found.most, strict=True))
    assert rows[:3] == [(13, True, 1, 13), (14, True, 3, 14), (14, False, 1, 2)]
    planned = int(exploitation(solution, np.array([29])).planned[0])
    assert rows[3:] == [(29, True, 30 - planned, 29), (29, False, 1, 29 - planned), (60, False, 1, 60)]
    assert set(found.fines.tolist()) == {-1}


def test_group_of_no_candidates_is_refused():
    with pytest.raises(InputError, match="at least 1"):
        policy_regions(solve(GROWING), [0])
