from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from policies_of_audit import CHOOSING, GLOBAL, audited

from privrisk_spark.errors import ConfigError, InputError
from privrisk_spark.kernels.dp.crowd import keep_numerator
from privrisk_spark.planning.audit import RUN, audit_profile, law_of_choice
from privrisk_spark.planning.audit_experiments import FILLER, TARGET
from privrisk_spark.planning.calibration import mechanism
from privrisk_spark.policy.reading import check_run_id
from privrisk_spark.runs.keystore import release_key
from privrisk_spark.tables.opening import hierarchies_from_policy


def profile_of(*, entity_id: str | None = None, **guarantee: Any) -> Any:
    policy = audited(entity_id=entity_id, **guarantee)
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
        "Fouad 2012, Example 6.3.1", "t-edge, 24 rows and 23",
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


def test_persons_and_choices_are_audited_where_the_policy_has_them_and_named_where_not():
    of_rows, _ = profile_of()
    assert [one.name for one in of_rows.experiments] == ["crowd", "identity", "draw", "admission"]
    assert any("every row for a person" in note for note in of_rows.notes)
    assert any("chooses no schemes" in note for note in of_rows.notes)
    for guarantee in (CHOOSING, GLOBAL):
        both, _ = profile_of(entity_id="who", **guarantee)
        assert [one.name for one in both.experiments][-2:] == ["persons", "choice"]
        assert not any("not audited" in note or "no experiment on the" in note for note in both.notes)
        for experiment in both.experiments[-2:]:
            for table, people in zip(experiment.tables, experiment.people, strict=False):
                assert table == (
                    sum(one.number * one.targets for one in people),
                    sum(one.number * one.others for one in people),
                )
        assert both.parameters()["epsilon_choose"] == 0.5
    persons, choice = both.experiments[-2:]
    one, none, _ = persons.people
    assert (one[0].number, one[1:]) == (1, none), "neighbours differ in one person, with all their rows"
    assert one[0].targets > 2 * persons.mechanism.crowd
    (with_row, without) = choice.tables
    assert (with_row[0] - without[0], with_row[1] - without[1]) == (1, 0)
    assert choice.epsilon == 0.5


@pytest.mark.parametrize("guarantee", [CHOOSING, GLOBAL])
def test_the_law_of_a_choice_tells_half_and_twice_the_epsilon(guarantee):
    """By total variation: what is flagged at 4,000 trials must be far from the law."""
    profile, _ = profile_of(**guarantee)
    experiment = profile.experiments[-1]
    choice = experiment.mechanism
    law = law_of_choice(choice, experiment.tables[0])
    assert sum(law.values()) == pytest.approx(1)
    assert max(law.values()) < 0.95, "the best scheme always must be seen"
    for factor in (0.5, 2):
        other = law_of_choice(choice, experiment.tables[0], sharper=factor)
        assert sum(abs(law[one] - other[one]) for one in law) / 2 > 0.1
    # Of neighbouring tables nothing differs by more than the claim.
    without = law_of_choice(choice, experiment.tables[1])
    assert all(abs(math.log(law[one] / without[one])) <= experiment.epsilon + 1e-12 for one in law)


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
