from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from policies_of_audit import audited

from privrisk_spark.errors import ConfigError, InputError
from privrisk_spark.kernels.dp.crowd import keep_numerator
from privrisk_spark.planning.audit import FILLER, RUN, TARGET, audit_profile
from privrisk_spark.planning.calibration import mechanism
from privrisk_spark.policy.reading import check_run_id
from privrisk_spark.runs.keystore import release_key
from privrisk_spark.stages.tables.opening import hierarchies_from_policy


def profile_of(**guarantee: Any) -> Any:
    policy = audited(**guarantee)
    hierarchies = {name: h for name, h in hierarchies_from_policy(policy).items() if h is not None}
    return audit_profile(mechanism(policy, hierarchies), hierarchies), hierarchies


def test_the_profile_is_the_least_crowd_a_release_may_have():
    """Golden: epsilon 1, k = 10 and the largest keep probability have delta* = 0.0199695734 at n* = 11."""
    profile, _ = profile_of()
    for experiment in profile.experiments:
        plan = experiment.mechanism
        assert (plan.keep_numerator, plan.crowd) == (2714937127, 10) == (keep_numerator(Fraction(1)), 10)
        assert plan.delta_crowd == pytest.approx(1.9969573407e-02, rel=1e-10)
        assert all(scheme[0] == 0 for scheme in plan.schemes), "nothing generalizes the trial"
        for pair in experiment.pairs:
            one, other = (experiment.tables[number] for number in (pair.one, pair.other))
            assert (one[0] - other[0], one[1] - other[1]) == (1, 0), "neighbours differ in one row"
    names = [pair.name for experiment in profile.experiments for pair in experiment.pairs]
    assert names == [
        "edge, 10 rows and 9", "edge, 11 rows and 10", "edge, 12 rows and 11", "singleton", "edge, 11 rows and 10",
        "F12 Example 6.3.1", "t-edge, 24 rows and 23",
    ]  # fmt: skip
    with pytest.raises(ConfigError, match=r"guarantee.crowd: must be at least 10|greater than or equal"):
        audited(crowd=9)


def test_the_kinds_differ_under_every_scheme_and_cells_are_reachable():
    profile, hierarchies = profile_of()
    target, filler = profile.kinds.tolist()
    for experiment in profile.experiments:
        for scheme in experiment.mechanism.schemes:
            nodes = [
                [
                    int(h.ancestor[leaf, level])
                    for h, leaf, level in zip(hierarchies.values(), kind, scheme[1:], strict=True)
                ]
                for kind in (target, filler)
            ]
            assert nodes[TARGET] != nodes[FILLER]
        assert len(set(experiment.mechanism.schemes)) == len(experiment.mechanism.schemes)
    draw = next(one for one in profile.experiments if one.name == "draw")
    assert len(draw.mechanism.schemes) >= 3
    keep = draw.mechanism.keep_numerator / 2**32
    assert draw.tables[1][1] * keep / (len(draw.mechanism.schemes) + 1) >= 10


def test_the_claim_end_to_end_is_the_sum():
    for noise in ("gaussian", "laplace"):
        profile, _ = profile_of(noise=noise)
        last = profile.experiments[-1]
        assert last.name == "admission"
        assert last.mechanism.admission.to_dict()["noise"] == noise
        assert last.epsilon == 1.5
        assert last.delta == pytest.approx(float(last.mechanism.admission.delta) + last.mechanism.delta_crowd)
        assert last.delta < 0.022
        assert last.tables[0][0] == last.mechanism.frequent == last.mechanism.admission.threshold
        assert profile.parameters()["noise"] == noise


def test_no_release_can_have_the_audits_run_id(tmp_path):
    """Keys are bound to the run id, and this one is refused wherever a release's goes through."""
    with pytest.raises(ConfigError, match="--run-id"):
        check_run_id(RUN)
    with pytest.raises(InputError, match="run id"):
        release_key(tmp_path, RUN)


def test_hierarchies_of_one_value_cannot_be_audited():
    policy = audited(columns={"place": {"flat": {"values": ["a"]}}}, schemes=[[1]])
    hierarchies = hierarchies_from_policy(policy)
    with pytest.raises(ConfigError, match="no hierarchy has two values"):
        audit_profile(mechanism(policy), hierarchies)  # type: ignore[arg-type] - every leaf is declared
