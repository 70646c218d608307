from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive_crowd import thresholded
from policies import DP, DROP, changed

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.dp.crowd import KEEP_UNIT, certificate, keep_numerator
from privrisk_spark.kernels.dp.crowd_profile import profile, waiting_time
from privrisk_spark.kernels.dp.groups import group_delta
from privrisk_spark.kernels.random.discrete_gaussian import calibrate_admission, delta_of_fold
from privrisk_spark.ledger import accounting
from privrisk_spark.ledger.accounting import _loss, account, composed, further_guarantees
from privrisk_spark.ledger.calibrated import Choosing, calibrated
from privrisk_spark.ledger.losses import GaussianCounts, LaplaceCounts, ReleaseEvents, Sampling, SchemePicks, basic
from privrisk_spark.planning.calibration import mechanism
from privrisk_spark.policy.reading import parse
from privrisk_spark.reporting.models.private import dp_guarantee


def sampled(beta: float, crowd: int, epsilon: str) -> ReleaseEvents:
    """A release whose admissible cells are public."""
    numerator = int(beta * KEEP_UNIT)
    proof = certificate(crowd, numerator, epsilon)
    sampling = Sampling(numerator, crowd, Fraction(epsilon), proof.delta)
    return ReleaseEvents(sampling, None, Fraction(0), Fraction(epsilon), proof.delta)


SMALL = sampled(0.2516, 31, "0.7")


def admitted(w: int = 8) -> ReleaseEvents:
    found = calibrate_admission(0.3, w, 2.5e-10, 2.5e-10)
    counts = GaussianCounts(found.sigma_squared, w)
    return ReleaseEvents(SMALL.sampling, counts, Fraction(found.delta_select), Fraction(1), Fraction("1e-9"))


# --- golden


@pytest.mark.parametrize(
    ("beta", "crowd", "epsilon", "expected"),
    # At delta 1e-6 in all, for 1, 4, 12 and 52 releases; basic composition has 0.7 or 1 for each.
    [
        (0.2516, 31, "0.7", (0.37, 0.59, 0.93, 1.88)),
        (0.6321, 97, "1", (0.63, 1.09, 1.83, 3.88)),
        (0.3161, 30, "1", (0.53, 0.82, 1.29, 2.60)),
        (0.1259, 17, "0.7", (0.29, 0.42, 0.63, 1.21)),
    ],
)
def test_composition_of_samplings_golden(beta, crowd, epsilon, expected):
    one = sampled(beta, crowd, epsilon)
    for times, value in zip((1, 4, 12, 52), expected, strict=True):
        assert round(composed([one] * times, 1e-6), 2) == value
        assert basic([one] * times)[0] == times * Fraction(epsilon)


def delta_at(events: list[ReleaseEvents], epsilon: float) -> float:
    """A delta at which all releases together are private with the given epsilon."""
    selected = float(sum((event.delta_select for event in events), Fraction(0)))
    return min(1.0, selected + float(_loss(events, tail=1e-15).get_delta_for_epsilon(epsilon)))


def reusing(event: ReleaseEvents) -> ReleaseEvents:
    """What a release costs that takes the cells an earlier one admitted."""
    drawn = event.sampling
    return replace(event, counts=None, delta_select=Fraction(0), epsilon=drawn.epsilon, delta=drawn.delta, picks=None)


def test_composition_with_admissions_golden():
    one = admitted()
    reused = [one, *[reusing(one)] * 11]
    assert round(composed(reused, 1e-6), 3) == 0.956
    assert round(composed(reused, 1e-8), 2) == 1.22
    assert basic(reused)[0] == Fraction("8.7")
    many = [*[one] * 4, *[reusing(one)] * 48]
    assert round(composed(many, 1e-6), 2) == 1.94
    assert basic(many)[0] == Fraction("37.6")


# --- against exact hockey-sticks


def pair(event: ReleaseEvents) -> tuple[np.ndarray, np.ndarray]:
    law = waiting_time(event.sampling.crowd, event.sampling.keep_numerator)
    return np.append(law, 0.0), np.insert(law, 0, 0.0)


def exact(events: list[ReleaseEvents], epsilon: float) -> float:
    """The larger of both hockey-sticks of the product of the dominating pairs, summed over all outcomes."""
    p, q = np.ones(1), np.ones(1)
    for event in events:
        one, other = pair(event)
        p, q = np.multiply.outer(p, one).ravel(), np.multiply.outer(q, other).ravel()
    a = math.exp(epsilon)
    return max(math.fsum(np.maximum(x - a * y, 0.0)) for x, y in ((p, q), (q, p)))


@pytest.mark.parametrize("epsilon", [0.3, 0.45, 0.7])
@pytest.mark.parametrize("event", [SMALL, sampled(0.6321, 40, "1"), sampled(0.1259, 17, "0.7")])
def test_composition_is_that_of_the_exact_laws(event, epsilon):
    one, two = (exact([event] * times, epsilon) for times in (1, 2))
    # These epsilons are points of the grid: nothing is lost for one release, little for two.
    assert one * (1 - 1e-9) <= delta_at([event], epsilon) <= one * (1 + 1e-6) + 2e-15
    assert two * (1 - 1e-9) <= delta_at([event] * 2, epsilon) <= two * 1.001 + 2e-15


def test_both_directions_follow_the_profile():
    """At the points of the grid the discretized loss has the profile itself; between them it is above."""
    loss = accounting._of_component(SMALL.sampling, 1e-16)
    for points, slack in ((np.arange(0, 12_000, 997) * 1e-4, 1e-9), (np.arange(0, 12_000, 997) * 1e-4 + 5e-5, 1e-3)):
        found = profile(SMALL.sampling.crowd, SMALL.sampling.keep_numerator, points)
        directions = ((loss._pmf_remove, found.with_row), (loss._pmf_add, found.without_row))
        for epsilons, (law, wanted) in itertools.product([points], directions):
            discrete = law.get_delta_for_epsilon(epsilons)
            assert (discrete >= wanted * (1 - 1e-9) - 1e-15).all()
            assert (discrete <= wanted * (1 + slack) + 1e-9 * slack + 1e-14).all()
    assert (found.with_row[1:3] > 2 * found.without_row[1:3]).all(), "or the test could not tell them apart"


def test_small_deltas_are_not_lost_in_rounding():
    for epsilon in (0.9, 1.1, 1.3):
        two = exact([SMALL] * 2, epsilon)
        assert 1e-13 < two < 1e-8
        assert two * (1 - 1e-9) - accounting.ROUNDING <= delta_at([SMALL] * 2, epsilon) <= two * 1.01 + 3e-15


def test_no_table_of_one_cell_exceeds_the_composition():
    """Two releases of n rows that all map to one cell: the published counts, both directions."""
    event, beta = sampled(0.5, 12, "1"), Fraction(1, 2)
    for n, epsilon in itertools.product((12, 17, 23, 30), (0.1, 0.5, 1.0)):
        p, q = (np.array([float(v) for _, v in sorted(thresholded(m, 12, beta).items())]) for m in (n, n - 1))
        q = np.pad(q, (0, len(p) - len(q)))
        a = math.exp(epsilon)
        products = [(np.multiply.outer(x, x), np.multiply.outer(y, y)) for x, y in ((p, q), (q, p))]
        literal = max(math.fsum(np.maximum(x - a * y, 0.0).ravel()) for x, y in products)
        assert literal <= delta_at([event] * 2, epsilon) * (1 + 1e-9) + 1e-13


@pytest.mark.parametrize("w", [1, 4, 64])
def test_gaussian_counts_cost_what_their_sum_does(w):
    found = calibrate_admission(0.3, w, 2.5e-10, 2.5e-10)
    counts = GaussianCounts(found.sigma_squared, w)
    loss = accounting._of_component(counts, 1e-16).self_compose(w, 1e-16)
    for epsilon in (0.1, 0.2, 0.3):
        direct = delta_of_fold(found.sigma_squared, w, epsilon)
        assert direct * (1 - 2e-6) - 1e-13 <= loss.get_delta_for_epsilon(epsilon) <= direct * 1.05 + 1e-13


@pytest.mark.parametrize("w", [1, 2, 3])
def test_laplace_counts_cost_what_their_product_does(w):
    scale = Fraction(10 * w, 3)
    r = math.exp(-1 / scale)
    y = np.arange(-int(60 * scale), int(60 * scale) + 1) if w < 3 else np.arange(-150, 151)
    law = (1 - r) / (1 + r) * r ** np.abs(y)
    shifted = (1 - r) / (1 + r) * r ** np.abs(y - 1)
    p, q = np.ones(1), np.ones(1)
    for _ in range(w):
        p, q = np.multiply.outer(p, shifted).ravel(), np.multiply.outer(q, law).ravel()
    loss = accounting._of_component(LaplaceCounts(scale, w), 1e-16)
    loss = loss.self_compose(w, 1e-16) if w > 1 else loss
    for epsilon in (0.05, 0.1, 0.2):
        literal = np.maximum(p - math.exp(epsilon) * q, 0.0).sum()
        assert literal * (1 - 1e-6) <= loss.get_delta_for_epsilon(epsilon) <= literal * 1.01 + 1e-12
    # Never more than the pure guarantee.
    assert loss.get_delta_for_epsilon(0.3 + 2e-4 * w) <= 1e-12


def test_selection_is_paid_by_delta():
    one = admitted()
    dearer = replace(one, delta_select=one.delta_select + Fraction("1e-8"), delta=one.delta + Fraction("1e-8"))
    assert delta_at([dearer], 0.5) == pytest.approx(delta_at([one], 0.5) + 1e-8, rel=1e-6)
    assert composed([dearer], 5e-9) == math.inf


# --- relations


def test_a_pick_of_a_scheme_costs_its_epsilon():
    """Added to the sums as often as it is made; tightly no more than that, and never less than the rest alone."""
    more = (("guarantee.mode", "global"), ("guarantee.schemes", DROP), ("guarantee.objective", DROP))
    candidates = [[0, 1], [1, 0], [1, 1]]
    chosen = changed(
        DP,
        *more,
        ("guarantee.epsilon", {"choose": "0.1", "keep": "0.7"}),
        ("guarantee.candidates", candidates),
        ("guarantee.crowd", None),
        ("guarantee.frequent", None),
        ("columns.zip.hierarchy", {"tree": {"*": ["1", "2"]}}),
    )
    events = mechanism(parse(chosen)).events
    assert events.picks == SchemePicks(Fraction(1, 10), 1)
    assert events.epsilon == Fraction(8, 10)
    assert events.counts is None
    without = replace(events, picks=None, epsilon=Fraction(7, 10))
    assert composed([without], events.delta) < composed([events], events.delta) <= 0.8
    again = replace(events, picks=SchemePicks(Fraction(1, 10), 3), epsilon=Fraction(1))
    assert composed([events], events.delta) < composed([again], events.delta) <= 1
    assert reusing(events) == replace(without, delta=events.sampling.delta)
    # Several picks: each has its share of the sum.
    peeled = changed(
        DP,
        ("guarantee.schemes", DROP),
        ("guarantee.candidates", candidates),
        ("guarantee.peel", 2),
        ("guarantee.epsilon.choose", "0.05"),
        ("guarantee.crowd", None),
        ("guarantee.frequent", None),
        ("columns.zip.hierarchy", {"tree": {"*": ["1", "2"]}}),
    )
    plan = mechanism(parse(peeled))
    events = plan.events
    assert events.epsilon == Fraction(11, 10) == Fraction(plan.epsilon)
    assert events.counts is not None
    assert events.counts.w == 2
    assert isinstance(plan, Choosing)
    assert plan.beyond == plan.frequent == plan.admission.threshold


def test_an_admitted_set_costs_once():
    one = admitted()
    again = reusing(one)
    assert again.counts is None
    assert (again.epsilon, again.delta) == (SMALL.sampling.epsilon, SMALL.sampling.delta)
    assert composed([again], 1e-6) == composed([SMALL], 1e-6)
    assert composed([one, again], 1e-6) < composed([one, one], 1e-6)
    assert reusing(again) == again


def test_the_order_of_releases_is_of_no_account():
    events = [admitted(), SMALL, sampled(0.3161, 30, "1"), SMALL, admitted(4)]
    values = {composed(list(order), 1e-7) for order in itertools.islice(itertools.permutations(events), 0, 120, 17)}
    assert len(values) == 1


def test_never_above_the_basic_sum_and_rising_with_releases():
    one = admitted()
    values = [composed([one] * times, 1e-7) for times in range(1, 6)]
    assert values == sorted(values)
    for times, value in enumerate(values, start=1):
        assert value <= times
    for looser, tighter in itertools.pairwise([composed([one] * 3, delta) for delta in (1e-6, 1e-7, 1e-8)]):
        assert looser < tighter
    # A delta below what the convolutions may be off by: the basic figure, where its delta suffices.
    tiny = replace(SMALL, delta=Fraction("1e-20"))
    assert composed([tiny], 1e-14) == pytest.approx(0.7)
    assert composed([SMALL], 1e-14) == math.inf
    assert composed([], 1e-9) == 0.0


def test_hardly_any_rows_kept_falls_back_to_the_claim():
    numerator = keep_numerator("0.7", "1e-6")
    proof = certificate(10, numerator, "0.7")
    sampling = Sampling(numerator, 10, Fraction("0.7"), proof.delta)
    events = [ReleaseEvents(sampling, None, Fraction(0), Fraction("0.7"), proof.delta)] * 3
    assert 1.9 < composed(events, 1e-9) <= 2.1


@pytest.mark.parametrize("delta", [0, 1, -1, 2.0])
def test_other_deltas_are_refused(delta):
    with pytest.raises(InputError, match="delta must be"):
        composed([SMALL], delta)


# --- parameters, as a ledger holds them

PUBLIC_ZIP = ("columns.zip.hierarchy", {"tree": {"*": ["1", "2"]}})


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_events_come_from_published_parameters(noise):
    free = (("guarantee.crowd", None), ("guarantee.frequent", None), PUBLIC_ZIP, ("guarantee.noise", noise))
    plan = mechanism(parse(changed(DP, *free)))
    stored = json.loads(json.dumps(plan.parameters))
    events = plan.events
    assert events == calibrated(stored).events == calibrated(dp_guarantee(plan).parameters).events
    assert (events.epsilon, events.delta) == (1, Fraction("1e-9"))
    assert events.sampling == Sampling(plan.keep_numerator, plan.crowd, Fraction("0.7"), Fraction(plan.delta_crowd))
    if noise == "gaussian":
        assert events.counts == GaussianCounts(plan.admission.sigma_squared, 2)
    else:
        assert events.counts == LaplaceCounts(Fraction(20, 3), 2)
    for name in ("k", "keep_probability", "epsilon_keep", "delta_crowd", "delta_select", "w", "delta"):
        with pytest.raises(InputError, match=f"lack '{name}'"):
            calibrated({key: value for key, value in stored.items() if key != name})
    for name, value in (("k", "x"), ("keep_probability", "1/2"), ("delta", "a lot"), ("w", None)):
        with pytest.raises(InputError, match=f"not those of a mechanism: '{name}'"):
            calibrated(stored | {name: value})


def test_a_manifest_reports_both_accountings_and_further_guarantees():
    free = (("guarantee.crowd", None), ("guarantee.frequent", None), PUBLIC_ZIP)
    plan = mechanism(parse(changed(DP, *free)))
    parameters = dp_guarantee(plan).parameters
    found = parameters["accounting"]
    assert found["basic"] == {"epsilon": "1", "delta": "1E-9", "status": "proved"}
    assert found["pld"]["delta"] == "1E-9"
    assert found["pld"]["status"] == "tested"
    events = plan.events
    assert 0 <= found["pld"]["epsilon"] - composed([events], Decimal("1e-9")) <= 1.1e-5
    assert found["pld"]["epsilon"] < 0.95
    assert parameters["groups"]["10"]["epsilon"] == "10"
    assert parameters["substitution"]["epsilon"] == "2"
    assert account(calibrated(json.loads(json.dumps(parameters))).events) == found


# --- groups


def test_groups_golden():
    further = further_guarantees(Decimal("1"), Decimal("1e-9"))
    assert {rows: (f["epsilon"], f"{f['delta']:.1e}") for rows, f in further["groups"].items()} == {
        "2": ("2", "3.7e-09"),
        "5": ("5", "8.6e-08"),
        "10": ("10", "1.3e-05"),
    }
    assert further["substitution"] == further["groups"]["2"]


@given(st.fractions("1/100", 4, max_denominator=1000), st.integers(1, 12), st.sampled_from(["1e-9", "1e-5", "0.3"]))
def test_group_delta_is_the_geometric_sum_rounded_up(epsilon, rows, delta):
    bound = group_delta(epsilon, Fraction(delta), rows)
    literal = Fraction(delta) * sum(Fraction(math.exp(i * epsilon)) for i in range(rows))
    assert bound <= 1
    if literal < Fraction(999, 1000):
        assert literal * (1 - Fraction(1, 10**14)) <= bound <= literal * (1 + Fraction(1, 10**14))
    elif literal > Fraction(1001, 1000):
        assert bound == 1


def test_group_delta_is_attained_by_a_chain():
    """Laws whose neighbours are exactly (epsilon, delta) apart: randomized response over a line, c steps long."""
    epsilon, delta = math.log(2.0), 0.01
    # P_i(1) grows by P_{i+1} = e^epsilon P_i + delta.
    mass = [0.001]
    for _ in range(5):
        mass.append(2.0 * mass[-1] + delta)
    for rows in range(1, 6):
        bound = float(group_delta(Fraction(epsilon), Fraction(1, 100), rows))
        assert mass[rows] - 2.0**rows * mass[0] == pytest.approx(bound, rel=1e-12)


def test_other_groups_are_refused():
    for arguments in ((Fraction(-1), Fraction(0), 1), (Fraction(1), Fraction(2), 1), (Fraction(1), Fraction(0), 0)):
        with pytest.raises(InputError):
            group_delta(*arguments)
