from __future__ import annotations

from fractions import Fraction

import pytest
from policies import DP, changed, faults

from privrisk_spark.errors import ConfigError
from privrisk_spark.kernels.random.discrete_gaussian import Admission
from privrisk_spark.kernels.random.discrete_laplace import LaplaceAdmission
from privrisk_spark.planning.calibration import mechanism
from privrisk_spark.planning.mechanism import Mechanism
from privrisk_spark.policy.reading import parse
from privrisk_spark.reporting.guarantees import dp_guarantee

FREE = (
    ("guarantee.crowd", None),
    ("guarantee.frequent", None),
    ("columns.zip.hierarchy", {"tree": {"*": ["1", "2"]}}),
)


def planned(*changes) -> Mechanism:
    return mechanism(parse(changed(DP, *FREE, *changes)))


@pytest.mark.parametrize(
    ("schemes", "kind", "threshold"),
    # Half of delta = 1e-9 for the admission; the Gaussian needs a quarter for its counts, the Laplace none.
    [
        ([[0, 1]], LaplaceAdmission, 71),
        ([[0, 1], [1, 0]], LaplaceAdmission, 145),
        ([[0, 1], [1, 0], [1, 1]], Admission, 204),
    ],
)
def test_auto_takes_the_noise_with_the_lower_threshold(schemes, kind, threshold):
    plan = planned(("guarantee.schemes", schemes))
    assert isinstance(plan.admission, kind)
    assert plan.frequent == plan.admission.threshold == threshold
    each = {
        name: planned(("guarantee.schemes", schemes), ("guarantee.noise", name)) for name in ("gaussian", "laplace")
    }
    assert isinstance(each["gaussian"].admission, Admission)
    assert isinstance(each["laplace"].admission, LaplaceAdmission)
    thresholds = {name: found.frequent for name, found in each.items()}
    assert plan.frequent == min(thresholds.values())
    reason = dp_guarantee(plan).parameters["noise_reason"]
    assert all(str(value) in reason for value in thresholds.values())
    assert "noise_reason" not in dp_guarantee(each["laplace"]).parameters


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_the_parts_of_delta_sum_to_no_more_than_delta(noise):
    for delta in ("1e-9", "3e-8", "1e-12"):
        plan = planned(("guarantee.noise", noise), ("guarantee.delta", delta))
        assert plan.admission.delta + Fraction(plan.delta_crowd) <= Fraction(delta) * (1 + Fraction(1, 2**50))
        assert plan.to_dict()["noise"] == noise


def test_the_unit_is_the_person_where_persons_are_named():
    plans = [planned(), planned(("table.entity_id", "who"), ("columns.who", {"role": "identifier"}))]
    rows, persons = plans
    assert "adding or removing one row as it is parsed, one row per person," in rows.statement
    assert "one person with all their rows" in persons.statement
    assert [plan.to_dict()["unit"] for plan in plans] == ["one row per person", "person, one row drawn of each"]
    digests = {
        plan.digest(parse(changed(DP, *FREE, *more)), {})
        for plan, more in (
            (rows, ()),
            (persons, (("table.entity_id", "who"), ("columns.who", {"role": "identifier"}))),
            (persons, (("table.entity_id", "else"), ("columns.else", {"role": "identifier"}))),
        )
    }
    assert len(digests) == 3


def test_parameters_name_what_the_noise_has():
    gaussian, laplace = (planned(("guarantee.noise", noise)).to_dict() for noise in ("gaussian", "laplace"))
    assert "scale" not in gaussian
    assert laplace["scale"] == "20/3"
    assert not {"sigma_squared", "delta_gauss"} & set(laplace)


def test_a_threshold_below_that_of_the_noise_is_refused():
    assert planned(("guarantee.frequent", 145)).frequent == 145
    with pytest.raises(ConfigError, match="at least T = 145"):
        planned(("guarantee.frequent", 144))
    with pytest.raises(ConfigError, match="at least T = 165"):
        planned(("guarantee.frequent", 145), ("guarantee.noise", "gaussian"))


def test_noise_is_for_admissions():
    public = changed(
        DP,
        *FREE,
        ("guarantee.mode", "public-dictionary"),
        ("guarantee.epsilon.admit", 0),
        ("guarantee.frequent", 9),
        ("guarantee.noise", "laplace"),
        ("dictionary", {"kind": "table", "path": "p.csv", "public": True, "columns": {"age": "age", "zip": "zip"}}),
    )
    assert set(faults(public)) == {"guarantee.noise"}
    assert "noise" in str(faults(changed(DP, ("guarantee.noise", "cauchy"))))


@pytest.mark.parametrize("keep", ["7", "40"])
def test_a_keep_epsilon_that_takes_days_to_calibrate_is_refused_by_its_key(keep):
    with pytest.raises(ConfigError) as refused:
        planned(("guarantee.epsilon", {"admit": "0.3", "keep": keep}), ("guarantee.keep_fraction", 1))
    (fault,) = refused.value.faults
    assert fault.path == "guarantee.epsilon.keep"
    assert "crowd threshold above 5,000 rows; lower it or guarantee.keep_fraction" in fault.rule
