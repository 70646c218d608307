"""The adversary of an assessment at the edges of what a policy may assume of him."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.measures.identity import SizeHistogram
from privrisk_spark.kernels.measures.population_sizes import PopulationHistogram
from privrisk_spark.policy.assessment import AdversaryPolicy
from privrisk_spark.stages.assessing.attack import Groups, attacked, planned

SIZES, RECORDS = np.array([1, 2, 70]), np.array([10, 10, 140])


def measures(people: int = 500, **assumed: Any) -> dict[str, Any]:
    policy, groups = AdversaryPolicy(**assumed), Groups(SIZES, RECORDS, people, "of the table")
    return {one.name: one.value for one in attacked(policy, groups, *planned(policy, groups), {})}


@pytest.mark.parametrize("group", ["known", "unknown"])
@pytest.mark.parametrize("fines", [0, 1, None])
def test_no_cost_limits_the_groups(group: str, fines: int | None) -> None:
    """Detection with a fine ends the attack all the same; without one every group is worth it."""
    found = measures(group=group, fines=fines, cost_exploit=0, cost_access=0)
    assert found["p_reid_max"] == pytest.approx(0.63)
    if fines == 0:
        assert found["attacked_records"] == 160
        assert (found["least_group_size"], found["least_penalty"]) == (None, None)
    else:
        assert found["attacked_records"] == 20
        assert 2 < found["least_group_size"] <= found["sunk_threshold"] <= 70
        assert found["least_penalty"] > 0


def test_too_many_sizes_are_a_fault_of_the_policy() -> None:
    with pytest.raises(InputError, match=r"^assess\.adversary: .*adversary: null"):
        measures(gain=1e9)


def test_groups_where_missing_values_may_be_any() -> None:
    """Two unique records that fit 3 others, and a class of 4 that fits 5."""
    own = PopulationHistogram.of(np.array([1, 1, 4]), np.array([3, 3, 5]))
    groups = Groups.of_table(own, None)
    assert (groups.sizes.tolist(), groups.records.tolist(), groups.people) == ([3, 5], [2, 4], 6)
    scaled = Groups.of_table(own, 0.5)
    assert (scaled.sizes.tolist(), scaled.records.tolist(), scaled.people) == ([6, 10], [2, 4], 12)
    plain = Groups.of_table(SizeHistogram.of(np.array([1, 1, 4])), 0.4)
    assert (plain.sizes.tolist(), plain.records.tolist(), plain.people) == ([2, 10], [2, 4], 15)
