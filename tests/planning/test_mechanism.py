from __future__ import annotations

import time
from fractions import Fraction

import pytest
from policies import DP, changed, faults

from privrisk_spark.errors import ConfigError
from privrisk_spark.kernels.dp.crowd import certificate, keep_numerator
from privrisk_spark.kernels.random.discrete_gaussian import Admission
from privrisk_spark.kernels.random.discrete_laplace import LaplaceAdmission
from privrisk_spark.ledger.calibrated import Calibrated
from privrisk_spark.planning.calibration import mechanism
from privrisk_spark.policy.reading import parse
from privrisk_spark.reporting.models.private import dp_guarantee

FREE = (
    ("guarantee.crowd", None),
    ("guarantee.frequent", None),
    ("columns.zip.hierarchy", {"tree": {"*": ["1", "2"]}}),
)


def planned(*changes) -> Calibrated:
    return mechanism(parse(changed(DP, *FREE, *changes)))


@pytest.mark.parametrize(
    ("schemes", "kind", "threshold"),
    # 6.4e-10 of delta = 1e-9 for the admission; the Gaussian needs some of it for its counts, the Laplace nothing.
    [
        ([[0, 1]], LaplaceAdmission, 70),
        ([[0, 1], [1, 0]], LaplaceAdmission, 143),
        ([[0, 1], [1, 0], [1, 1]], Admission, 200),
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
    taken = min(thresholds, key=lambda name: thresholds[name])
    digests = {
        found.digest(parse(changed(DP, *FREE, ("guarantee.schemes", schemes), *more)), {})
        for found, more in ((plan, ()), (each[taken], [("guarantee.noise", taken)]))
    }
    assert len(digests) == 1, "the same mechanism, however it was chosen, so the same draws"


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_the_parts_of_delta_sum_to_no_more_than_delta(noise):
    for delta in ("1e-9", "3e-8", "1e-12"):
        plan = planned(("guarantee.noise", noise), ("guarantee.delta", delta))
        assert plan.admission.delta + Fraction(plan.delta_crowd) <= Fraction(delta) * (1 + Fraction(1, 2**50))
        assert plan.parameters["noise"] == noise


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("keep_fraction", [0.25, 0.5, None])
def test_what_the_certificate_leaves_of_its_share_goes_to_the_admission(noise, keep_fraction):
    """k is whole: with 1e-9 its certificate is 3.4e-10 of 5e-10 at half the keep probability."""
    for frequent in (None, 400):
        plan = planned(
            ("guarantee.noise", noise),
            ("guarantee.keep_fraction", keep_fraction),
            ("guarantee.frequent", frequent),
            ("guarantee.schemes", [[0, 1], [1, 0], [1, 1]]),
        )
        left = Fraction("1e-9") - Fraction(plan.delta_crowd)
        assert Fraction("4.9999e-10") <= left
        assert (keep_fraction is None) == (left < Fraction("5.0001e-10"))
        assert Fraction("0.85") * left < plan.admission.delta <= left
        assert plan.frequent == (frequent or plan.admission.threshold)


def test_a_named_crowd_above_the_least_leaves_nearly_all_of_delta_to_the_admission():
    least, more = (
        planned(("guarantee.keep_fraction", 0.5)),
        planned(("guarantee.keep_fraction", 0.5), ("guarantee.crowd", 60)),
    )
    assert (least.crowd, more.crowd) == (32, 60)
    assert more.delta_crowd < 1e-15
    assert more.frequent < least.frequent
    assert more.admission.delta > Fraction("8e-10")


KEYS = [(None, None), (0.5, None), (None, 40), (0.5, 40)]


@pytest.mark.parametrize(("keep_fraction", "crowd"), KEYS)
def test_beta_is_raised_to_the_limit_of_its_k_unless_either_is_named(keep_fraction, crowd):
    plan = planned(("guarantee.keep_fraction", keep_fraction), ("guarantee.crowd", crowd))
    half = keep_numerator("0.7", "1/2")
    assert plan.crowd == (crowd or 32)
    if keep_fraction is None and crowd is None:
        share = Fraction("5e-10")
        assert plan.keep_numerator > half
        assert certificate(32, plan.keep_numerator, "0.7").delta <= share
        assert certificate(32, plan.keep_numerator + 1, "0.7").delta > share
        assert Fraction(plan.delta_crowd) <= share * (1 + Fraction(1, 2**50))
    else:
        assert plan.keep_numerator == half


@pytest.mark.parametrize("keep", ["0.01", "0.7", "5", "20"])
def test_calibration_takes_less_than_a_second(keep):
    began = time.process_time()
    planned(("guarantee.epsilon", {"admit": "0.3", "keep": keep}), ("guarantee.keep_fraction", None))
    assert time.process_time() - began < 1.0


def test_the_unit_is_the_person_where_persons_are_named():
    plans = [planned(), planned(("table.entity_id", "who"), ("columns.who", {"role": "identifier"}))]
    rows, persons = plans
    assert "adding or removing one row as it is parsed, one row per person," in rows.statement
    assert "one person with all their rows" in persons.statement
    assert [plan.parameters["unit"] for plan in plans] == ["one row per person", "person, one row drawn of each"]
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
    gaussian, laplace = (planned(("guarantee.noise", noise)).parameters for noise in ("gaussian", "laplace"))
    assert "scale" not in gaussian
    assert laplace["scale"] == "20/3"
    assert not {"sigma_squared", "delta_gauss"} & set(laplace)


def test_a_threshold_below_that_of_the_noise_is_refused():
    assert planned(("guarantee.frequent", 143)).frequent == 143
    with pytest.raises(ConfigError, match="at least T = 143"):
        planned(("guarantee.frequent", 142))
    with pytest.raises(ConfigError, match="at least T = 162"):
        planned(("guarantee.frequent", 143), ("guarantee.noise", "gaussian"))


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
