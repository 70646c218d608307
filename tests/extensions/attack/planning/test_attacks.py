from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.attack.kernels.evidence import Outcomes
from privrisk_spark.extensions.attack.planning.attacks import (
    alpha_of,
    beyond,
    compared_people,
    refuse_cost,
    refuse_levels,
    why_not_minimal,
)
from privrisk_spark.extensions.attack.planning.findings import attacked, by_size, calibrated
from privrisk_spark.extensions.attack.policy import AttackPolicy, Intruder, ProbabilisticPolicy
from privrisk_spark.extensions.attack.results.inferences import Search
from privrisk_spark.policy.policy import Policy

LINKS = Outcomes(
    np.array([3, 6, 5, 2]),
    np.array([1.0, 0.5, 0.0, 0.0]),
    np.array([1, 2, 4, 0]),
    np.array([1.0, 1.0, 1.0, 0.0]),
    np.array([2, 2, 4, -1]),
)
"""Three people alone, six in pairs and five in fours that are missed, and two who are not there."""


def test_costs_are_refused_with_a_share_that_passes() -> None:
    asked = AttackPolicy(exact_pairs=10**6, intruder=Intruder(share=0.5))
    refuse_cost(asked, 1000, 500, 2, people=10**6)
    for records, tuples, columns in ((1001, 500, 2), (5_000_000, 3, 4), (12345, 6789, 7)):
        for alike in (1, 30):
            people = records * alike
            with pytest.raises(InputError, match=r"attack\.intruder\.share=") as refused:
                refuse_cost(asked, records, tuples, columns, people=people)
            share = float(str(refused.value).split("share=")[1].rstrip("."))
            assert 0 < share < 0.5
            # However few of the people who are drawn are alike.
            drawn = int(people * share / 0.5)
            refuse_cost(asked, min(records, drawn), tuples, columns, people=drawn)
    with pytest.raises(InputError, match=r"more than 1e\+06\. Raise it\.$"):
        refuse_cost(asked, 1001, 500, 2, people=None)


def test_what_becomes_of_each_method_above_the_limit_is_told_beforehand() -> None:
    """By what is tried and how blocks are made: nothing is said of methods that compare no pairs."""
    every = AttackPolicy(methods=("all",))
    blocked = "in blocks (automatic) whose recall is measured and told"
    told = (
        "match weights estimated from a sample",
        "transparency by masks refused if the windows that masks leave take more",
    )
    assert beyond(every) == "; ".join((f"beyond: distance, probabilistic, membership {blocked}", *told))
    assert beyond(AttackPolicy()) == f"beyond: distance {blocked}"
    axis = AttackPolicy(methods=("distance", "probabilistic"), blocking="principal_axis")
    assert beyond(axis).startswith("beyond: distance in blocks (principal_axis)")
    assert beyond(axis).endswith("match weights have no axis: refused")
    assert beyond(AttackPolicy(methods=("homogeneity",))) == "beyond: no method that is tried is held to it"
    assert beyond(AttackPolicy(methods=("learned",))) == "beyond: no method that is tried is held to it"
    assert beyond(AttackPolicy(blocking="never")) == "beyond, it is refused"


def test_of_how_many_people_a_model_is_estimated() -> None:
    """Own counts distinct records; Splink compares each with each row, and refuses where 100 people are too many."""
    own = AttackPolicy(methods=("probabilistic",), exact_pairs=10**6)
    splink = own.model_copy(update={"probabilistic": ProbabilisticPolicy(engine="splink")})
    few: dict[str, int] = {"records": 50, "people": 20_000, "rows": 10_000, "tuples": 50, "columns": 4}
    assert compared_people(own, **few) is None
    assert compared_people(splink, **few) == 1000
    assert compared_people(splink, **few | {"people": 1000}) is None
    many = {"records": 10_000, "people": 20_000, "rows": 10_000, "tuples": 1000, "columns": 4}
    assert compared_people(own, **many) == 250
    assert compared_people(splink, **many) == 250
    assert compared_people(own, **many | {"tuples": 10_000}) == 100
    large = few | {"rows": 100_001}
    assert compared_people(own, **large) is None
    with pytest.raises(InputError, match=r"attack\.probabilistic\.engine: .* 10,000,000 at most; .* has 100,001 rows"):
        compared_people(splink, **large)
    assert compared_people(splink, **large | {"people": 99}) is None
    # What is not tried is not refused.
    assert compared_people(splink.model_copy(update={"methods": ("distance",)}), **large) is None


def test_groups_by_candidates_alike() -> None:
    found = by_size(LINKS.alike, LINKS.probability, LINKS.people)
    assert [(one.name, one.found.tried, one.found.correct) for one in found] == [("1", 3, 3.0), ("2 to 4", 11, 3.0)]
    assert found[1].predicted == pytest.approx((6 / 2 + 5 / 4) / 11)


def test_an_attack_from_a_person_is_held_against_one_over_f() -> None:
    """(3 + 6/2 + 5/4) / 14 is predicted of those who are there, and 6 of all 16 are found."""
    found = attacked(Search("distance", "person", "nearest"), LINKS, 20, 4)
    assert (found.found.tried, found.found.correct, found.absent) == (16, 6.0, 2)
    assert found.guess == pytest.approx(14 / 16 / 20), "two cannot be drawn"
    (one,) = found.calibrations
    assert one.prediction == "prosecutor"
    assert one.predicted == pytest.approx((3 + 6 / 2 + 5 / 4) / 14)
    assert sum(group.found.tried for group in one.groups) == 14
    assert [group.name for group in one.groups] == ["0.25", "0.5", "1"]


def test_an_attack_from_a_row_is_held_against_one_over_rho() -> None:
    found = attacked(Search("distance", "row", "nearest"), LINKS, 20, 4)
    (one,) = found.calibrations
    assert one.prediction == "identification"
    assert one.predicted == pytest.approx((9 / 2 + 5 / 4) / 14)
    unknown = Outcomes(LINKS.people, LINKS.probability, LINKS.alike, LINKS.present, np.full(4, -1))
    assert attacked(Search("distance", "row", "uniform"), unknown, 20, 4).calibrations == ()


def test_a_planned_attack_is_held_against_what_is_found() -> None:
    """Of the 14 who are there, nine are expected to be found with 1/4 and five with 1/8."""
    expected = np.array([0.25, 0.25, 0.125, 0.0])
    found = attacked(Search("distance", "row", "nearest"), LINKS, 20, 4, expected)
    assert [one.prediction for one in found.calibrations] == ["identification", "planned"]
    planned = found.calibrations[1]
    assert planned.predicted == pytest.approx((9 / 4 + 5 / 8) / 14)
    assert [(group.name, group.found.tried, group.found.correct) for group in planned.groups] == [
        ("0.125", 5, 0.0), ("0.25", 9, 6.0)
    ]  # fmt: skip


def policy_of(*, k: int = 2, also: Sequence[dict[str, object]] = (), **changes: object) -> Policy:
    city = {"role": "quasi-identifier", "hierarchy": {"flat": {"values": ["Ulm", "Bonn"]}}}
    guarantee = {"kind": "k-anonymity", "k": k, "also": list(also), **changes.pop("guarantee", {})}  # type: ignore[dict-item]
    columns = {"who": {"role": "identifier"}, "city": city, "age": city, "ill": {"role": "sensitive"}}
    document: dict[str, object] = {
        "version": 1,
        "run": {"name": "minimal"},
        "table": {"path": "t.parquet", "record_id": "who"},
        "columns": columns,
        "guarantee": guarantee,
        "output": {"path": "out", "vault": "vault"},
        **changes,
    }
    return Policy.model_validate(document)


ALPHA = {"alpha": {"column": "ill", "alpha": 0.5}}


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        (policy_of(also=[ALPHA]), None),
        (policy_of(), "there is no condition 'alpha'"),
        (policy_of(also=[ALPHA, {"t_closeness": {"column": "ill", "t": 0.5}}]), "guarantee.also has other conditions"),
        (
            policy_of(also=[ALPHA], table={"path": "t.parquet", "record_id": "who", "entity_id": "p"}),
            "individuals may have several records",
        ),
        (policy_of(also=[ALPHA], guarantee={"suppression_limit": 0.1}), "rows may be suppressed"),
        (policy_of(also=[ALPHA], guarantee={"suppression_limit": 0.04}), None),  # of 20 rows none
        (policy_of(also=[ALPHA], guarantee={"method": "datafly"}), "not chosen as the best one"),
        (policy_of(also=[ALPHA], attack={"intruder": {"columns": ["age"]}}), "does not know all quasi-identifiers"),
    ],
)
def test_why_not_minimal_names_what_else_may_have_caused_the_violation(policy: Policy, reason: str | None) -> None:
    found = why_not_minimal(policy, {"city": 1, "age": 0}, manifest={"guarantee": {}}, rows=20)
    assert (found is None) == (reason is None)
    assert reason is None or reason in (found or "")
    assert "there is no condition 'alpha'" in (why_not_minimal(policy, {}, manifest=None, rows=20) or "")
    if reason is None:
        unknown = why_not_minimal(policy, None, manifest={"guarantee": {}}, rows=20)
        assert unknown == (
            "'minimality', as it is not known by which levels the whole table was recoded; say it in attack.levels."
        )


def test_calibrated_groups_that_round_to_the_same_digits_have_different_names() -> None:
    predicted = 0.1234 + np.arange(10) * 1e-6
    found = calibrated("prosecutor", "1/f", predicted, np.zeros(10), np.ones(10, dtype=np.int64))
    assert [group.name for group in found.groups] == [f"{0.1234 + i * 1e-6:.6g}" for i in range(10)]
    apart = calibrated("prosecutor", "1/f", np.array([0.5, 0.25]), np.zeros(2), np.ones(2, dtype=np.int64))
    assert [group.name for group in apart.groups] == ["0.25", "0.5"]


def test_refuse_levels_above_the_height_names_every_key() -> None:
    asked = AttackPolicy(levels={"age": 3, "city": 1}, intruder=Intruder(levels={"age": 2, "city": 5}))
    with pytest.raises(InputError) as refused:
        refuse_levels(asked, {"age": 2, "city": 1})
    assert [str(fault) for fault in refused.value.faults] == [
        "attack.intruder.levels.city: must be a level of the hierarchy, 0 to 1. Got 5.",
        "attack.levels.age: must be a level of the hierarchy, 0 to 2. Got 3.",
    ]
    refuse_levels(AttackPolicy(levels={"age": 2}, intruder=Intruder(levels={"other": 9})), {"age": 2})


@pytest.mark.parametrize(
    ("missing", "counted", "expected"), [(False, False, (0.5, 2)), (True, False, None), (True, True, (0.5, 2))]
)
def test_alpha_of_column_with_missing_values_that_do_not_count_is_none(
    missing: bool, counted: bool, expected: tuple[float, int] | None
) -> None:
    """Minimality takes shares of all rows of a class, and the condition has taken them of the known values."""
    policy = policy_of(also=[{"alpha": ALPHA["alpha"] | {"count_missing": counted}}])
    assert alpha_of(policy, "ill", missing=missing) == expected
