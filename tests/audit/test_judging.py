from __future__ import annotations

import math

import pytest
from policies_of_audit import CHOOSING, audited

from privrisk_spark.audit.judging import alpha_of_bound
from privrisk_spark.kernels.dp.audit import false_alarm
from privrisk_spark.planning.audit import audit_profile
from privrisk_spark.planning.calibration import mechanism
from privrisk_spark.results.audit import ALPHA
from privrisk_spark.tables.opening import hierarchies_from_policy


def test_false_alarms_of_all_comparisons_add_up_to_alpha():
    policy = audited(entity_id="who", **CHOOSING)
    hierarchies = {name: h for name, h in hierarchies_from_policy(policy).items() if h is not None}
    profile = audit_profile(mechanism(policy, hierarchies), hierarchies)
    each = alpha_of_bound(profile.experiments)
    bounds = sum(2 * len(experiment.pairs) for experiment in profile.experiments)
    tests = [false_alarm(moments=cell.large) for experiment in profile.experiments for cell in experiment.cells]
    # The noise of two counts, and their difference.
    assert [len(experiment.noisy) for experiment in profile.experiments] == [0, 0, 0, 2, 0, 0]
    tests += [false_alarm(moments=True)] * 3
    # The law of the picks for two tables.
    assert profile.experiments[-1].chooses
    tests += [false_alarm(moments=False)] * 2
    assert each * bounds + math.fsum(tests) == pytest.approx(ALPHA)
    assert each > 1.5e-5
