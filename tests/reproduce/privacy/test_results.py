"""Simulated releases and Algorithm 6 against literal twins on small tables, and sentences from planted figures."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from privrisk_spark.kernels.as_published.algorithm6 import least_size
from privrisk_spark.kernels.dp.crowd import certificate
from privrisk_spark.kernels.random.discrete_gaussian import Admission
from privrisk_spark.results.plots import Plot
from reproduce.deciding.subject import Subject
from reproduce.generated.clustered import keyed_uniforms
from reproduce.pages import render_experiment
from reproduce.privacy import plots
from reproduce.privacy.experiment import EXPERIMENT
from reproduce.privacy.releases import Calibrated, Candidates, Public, public_schemes
from reproduce.privacy.results import PrivacySizes, findings, run_on
from reproduce.privacy.sampling import (
    Compared,
    Elements,
    Unsampled,
    WorstCase,
    over_sampling,
    over_sizes,
    unsampled,
    worst_case,
)
from reproduce.result import ExperimentResult

TABLE = Subject.generated(5, 4_000, 3)
SCHEMES = public_schemes(TABLE, 40_000)
PUBLIC = Public(SCHEMES)


def rows_of(subject: Subject) -> list[tuple[int, ...]]:
    return [tuple(row) for row, times in zip(subject.vectors.tolist(), subject.counts.tolist(), strict=True)
            for _ in range(times)]  # fmt: skip


def at(subject: Subject, row: tuple[int, ...], levels: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(axis.ancestor[code, x]) for axis, code, x in zip(subject.axes, row, levels, strict=True))


def depths(subject: Subject, nodes: tuple[int, ...]) -> list[int]:
    return [int((axis.at_depth[node] >= 0).sum()) - 1 for axis, node in zip(subject.axes, nodes, strict=True)]


# ------------------------------------------------------------------------------------------------ releases


def test_a_release_is_that_of_the_literal_twin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Admission, "sample", lambda self, streams, n: np.zeros(n, dtype=np.int64))
    public = Public(public_schemes(TABLE, 400_000), lam=0.002, tau=1.5, count_cap=900)
    parameters = Calibrated(Admission(1, 60, 1e-9, 1e-9), 2**31, 40)
    found = Candidates.of(TABLE, public).released(parameters, seed=3, run=1)
    rows, heights = rows_of(TABLE), TABLE.heights
    cells = [Counter(at(TABLE, row, scheme) for row in rows) for scheme in public.schemes]
    recode, keep = keyed_uniforms(3, "recode 1", (len(rows),)), keyed_uniforms(3, "keep 1", (len(rows),))
    sample = []
    for row, u, v in zip(rows, recode.tolist(), keep.tolist(), strict=True):
        options = [
            (at(TABLE, row, scheme), cells[j][at(TABLE, row, scheme)]) for j, scheme in enumerate(public.schemes)
        ]
        options = [(cell, count) for cell, count in options if count >= 60] + [(at(TABLE, row, heights), 900)]
        weights = [math.exp(1.5 * (0.002 * min(count, 900) + sum(depths(TABLE, x)))) for x, count in options]
        cut, chosen = u * sum(weights), None
        for (x, _), weight in zip(options, weights, strict=True):
            cut -= weight
            if cut < 0 and chosen is None:
                chosen = x
        if v < 0.5:
            sample.append(chosen)
    groups = Counter(sample)
    published = [x for x in sample if x is not None and groups[x] >= 40]
    assert 0 < len(published) < len(sample)
    assert found.share == pytest.approx(len(published) / 4_000)
    assert found.suppressed == pytest.approx(1 - len(published) / len(sample))
    precision = [np.mean(np.array(depths(TABLE, x)) / heights) for x in published]
    assert found.precision == pytest.approx(np.mean(precision))


def test_calibration_meets_what_is_asked() -> None:
    found = Calibrated.of(PUBLIC, Fraction(1), Fraction(1, 2))
    # Of (1, 1e-9): 0.3 for the admission and 0.7 for the rest, half of delta each.
    assert certificate(found.crowd, found.keep_numerator, "0.7").delta <= Fraction(1, 2 * 10**9)
    assert certificate(found.crowd - 1, found.keep_numerator, "0.7").delta > Fraction(1, 2 * 10**9)
    assert found.sampled == pytest.approx((1 - math.exp(-0.7)) / 2, rel=1e-6)
    assert found.admission.delta <= Fraction(1, 2 * 10**9)
    assert found.crowd == 32


def test_nothing_is_released_of_a_small_table() -> None:
    few = TABLE.thinned(1, 0.01)
    found = Candidates.of(few, PUBLIC).mean(Calibrated.of(PUBLIC, Fraction(1), Fraction(1, 2)), seed=1, runs=2)
    assert found.share == 0
    assert math.isnan(found.precision)
    assert found.suppressed == 1


def test_schemes_come_from_the_hierarchies_alone() -> None:
    other = Subject.generated(5, 500, 3)
    assert other.heights == TABLE.heights
    assert public_schemes(other, 40_000) == SCHEMES
    for scheme in SCHEMES:
        assert scheme != TABLE.heights
        sizes = [len(set(axis.ancestor[:-1, x].tolist())) for axis, x in zip(TABLE.axes, scheme, strict=True)]
        assert math.prod(sizes) <= 40
        # No step further fits.
        for i, axis in enumerate(TABLE.axes):
            if scheme[i]:
                finer = len(set(axis.ancestor[:-1, scheme[i] - 1].tolist()))
                assert math.prod(sizes) // sizes[i] * finer > 40
    assert Public(((0, 1, 2), (0, 1, 3))).first(2).schemes == ((0, 1),)


# ------------------------------------------------------------------------------------------------ Algorithm 6


@pytest.mark.parametrize("t", [0.0, 300.0, 1_500.0])
def test_expected_precision_by_brute_force(t: float) -> None:
    drawn = TABLE.drawn(2, 3).tolist()
    elements = Elements.of(TABLE, drawn)
    rows, means = rows_of(TABLE), []
    strength = (1 + math.log(0.6)) / (3 * 4 * 0.4)
    for row in (tuple(TABLE.vectors[i].tolist()) for i in drawn):
        options = []
        for levels in np.ndindex(*[h + 1 for h in TABLE.heights]):
            node = at(TABLE, row, levels)
            count = sum(at(TABLE, other, levels) == node for other in rows)
            if count >= t:
                score = count + sum(depths(TABLE, node))
                precision = float(np.mean(np.array(depths(TABLE, node)) / TABLE.heights))
                options.append((math.exp(strength * score / len(rows)), precision))
        means.append(sum(w * p for w, p in options) / sum(w for w, _ in options))
    found = elements.expected(elements.precision, epsilon=1.0, beta=0.6, lam=1.0, t=t)
    assert found == pytest.approx(np.mean(means))


def test_points_without_an_instance_are_left_out() -> None:
    elements = Elements.of(TABLE, TABLE.drawn(2, 5).tolist())
    found = over_sampling(Candidates.of(TABLE, PUBLIC), elements, seed=1, runs=1)
    assert found.t.tolist()[0] > 4_000
    assert np.isnan(found.precision[0, 1:]).all()
    assert np.isnan(found.share[-1, 0])
    inside = found.t < 4_000
    assert inside.any()
    np.testing.assert_allclose(found.share[inside, 1], found.at[inside])
    assert (found.precision[inside, 2] <= found.precision[inside, 1] + 1e-12).all()
    strength = (1 + math.log(0.5)) / 6
    expected = least_size(0.5, strength, generalizations=elements.generalizations, t_f=2, delta=1e-9)
    assert found.t[found.at == 0.5].tolist() == [expected]


def test_parts_of_a_table_are_nested() -> None:
    small, large = TABLE.thinned(1, 0.2), TABLE.thinned(1, 0.6)
    of_large = Counter(rows_of(large))
    assert all(times <= of_large[row] for row, times in Counter(rows_of(small)).items())
    assert abs(small.rows - 800) < 120
    assert Counter(rows_of(TABLE.thinned(1, 1.0))) == Counter(rows_of(TABLE))
    found = over_sizes(TABLE, PUBLIC, seed=1, runs=1, records=3)
    assert found.at.tolist()[-1] == 4_000
    assert (np.diff(found.at) > 0).all()


def test_a_uniform_draw_and_the_optimum_bound_the_draw() -> None:
    found = unsampled(Elements.of(TABLE, TABLE.drawn(2, 20).tolist()), Fraction(1, 10**9))
    assert (found.whole >= found.uniform - 1e-12).all()
    assert (found.whole <= 1).all()
    # The draw prefers the highest score ever more, yet hardly.
    assert (np.diff(found.whole[0]) > 0).all()
    assert found.preference[1] == pytest.approx(math.exp((1 + math.log(0.5)) / 3))


# ------------------------------------------------------------------------------------------------ sentences


def compared(**changed: object) -> Compared:
    values = Compared(
        at=np.array([0.75, 4.0]),
        share=np.array([[0.2, 0.5, 0.5], [0.4, 0.5, 0.5]]),
        precision=np.array([[0.6, 0.3, 0.05], [0.5, 0.25, 0.04]]),
        retained=np.array([[0.12, 0.15, 0.025], [0.2, 0.125, 0.02]]),
        suppressed=np.array([0.1, 0.2]), t=np.array([900, 300]), crowd=np.array([32, 29]),
    )  # fmt: skip
    return replace(values, **changed)  # type: ignore[arg-type]


def verdicts(plot: Plot) -> list[str]:
    return [verdict for _, verdict in plot.claims]


def unsampled_of(**changes: object) -> Unsampled:
    values = Unsampled(
        np.array([0.75, 4]), np.array([1, 0.0004]), np.array([[0.2, 0.3], [0.5, 0.5]]),
        np.array([[0.4, np.nan], [np.nan, np.nan]]), np.array([[0.2, 0.2], [0.5, 0.5]]), np.array([1.02, 3.0]),
        np.array([[0.5, np.nan], [np.nan, np.nan]]), np.array([[0.6, np.nan], [np.nan, np.nan]]),
        np.array([np.nan, 0.95, 0.2]),
    )  # fmt: skip
    return replace(values, **changes)  # type: ignore[arg-type]


def test_claims_on_the_draw_compare_it_with_the_optimum() -> None:
    theorem = "not decided: no optimum is as large as the theorem asks for"
    assert verdicts(plots.unsampled_plot(unsampled_of())) == ["does not hold", theorem]
    near = unsampled_of(whole=np.array([[0.95, 0.9], [0.5, 1]]))
    assert verdicts(plots.unsampled_plot(near))[0] == "in 3 of 4 cases"
    met = np.array([[1.0, 2], [0.5, np.nan]])
    reached = np.array([[0.2, 0.3], [0.1, np.nan]])
    assert verdicts(plots.unsampled_plot(unsampled_of(condition=met, reached=reached)))[1] == "in 1 of 2 cases"
    none = np.full((2, 2), np.nan)
    assert verdicts(plots.unsampled_plot(unsampled_of(condition=none)))[1] == theorem
    assert verdicts(plots.sampling_plot(compared(), unsampled_of())) == ["in 1 of 2 cases"]
    assert not plots.epsilon_plot(compared()).claims
    # The condition of the theorem, by the letter: OPTIMUM >= l k |D| ln(h l) / epsilon'.
    elements = Elements.of(TABLE, TABLE.drawn(2, 20).tolist())
    found = unsampled(elements, Fraction(1, 10**9))
    h = elements.generalizations ** (1 / TABLE.k)
    t = least_size(0.5, (1 + math.log(0.5)) / 6, generalizations=elements.generalizations, t_f=2, delta=1e-9)
    scores = np.where(elements.consistent >= t, elements.scores(1.0), 0).max(axis=1).mean()
    asked = 4 * TABLE.k * 4_000 / ((1 + math.log(0.5)) / 6) * math.log(4 * h)
    assert found.condition[0, 1] == pytest.approx(scores / asked)
    assert found.reached[0, 1] >= found.frequent[0, 1]
    assert found.sampled[5] == pytest.approx(found.frequent[0, 1]), "half of the rows at ε = 1"


def test_sentences() -> None:
    whole = unsampled_of()
    found = plots.epsilon_plot(compared()).found
    assert "At ε = 0.75 the release with a proof publishes 20 % of the rows with precision 0.6" in found
    assert "Algorithm 6, with no guarantee, 50 % with 0.3 at the least t and 0.05 at a random one" in found
    assert "with its random t at 2 of the 2 points" in found
    assert found.endswith("and more than with the least t at 1.")
    nothing = compared(share=np.array([[0.0, np.nan, np.nan], [0.4, 0.5, 0.5]]),
                       precision=np.array([[np.nan] * 3, [0.5, 0.25, 0.04]]),
                       retained=np.array([[0.0, np.nan, np.nan], [0.2, 0.125, 0.02]]))  # fmt: skip
    found = plots.sizes_plot(nothing).found
    assert "At 0.75 rows the release with a proof publishes nothing; Algorithm 6 has no instance." in found
    assert "at 1 of the 1 points" in found
    found = plots.sampling_plot(nothing, whole).found
    assert "No t is admitted with 75 % sampled." in found
    assert "precision 0.5 at every rate it allows; it drops 10 % to 20 % of its sample" in found
    assert "falls from precision 0.3" in plots.sampling_plot(compared(), whole).found
    never = compared(precision=np.array([[0.6, np.nan, np.nan], [0.5, np.nan, np.nan]]))
    assert plots.sampling_plot(never, whole).found.startswith("No t below |D|")
    plot = plots.unsampled_plot(whole)
    assert "at most 10 % of the optimum is owed to it. The draw over t-frequent elements has 40 %." in plot.found
    assert "at most 0 % of the optimum is owed to it. The draw over t-frequent elements has no instance." in plot.found
    assert (
        "1.02 times likelier than another at ε = 0.75, 3 times at ε = 4. The optimum is at most 0.5 times" in plot.found
    )
    assert plot.panels[1].title == "λ = 4.0·10⁻⁴"


def test_the_worst_case_in_words() -> None:
    worst = WorstCase(
        np.array([300, 10**6]), np.array([0.05, 5e-5]), np.array([5e-4, 5e-11]), np.array([1 / 300, 1e-6]),
        np.array([0.1, 5e-5]), np.array([6, 20]), np.array([0.5, 0.94]), np.array([0.06, 0.046]),
        np.array([0.05, 0.005]),
    )  # fmt: skip
    found = plots.worst_case_plot(worst).found
    assert verdicts(plots.worst_case_plot(worst)) == ["does not hold"]
    assert verdicts(plots.worst_case_plot(replace(worst, chains=worst.claimed))) == ["holds"]
    assert "at least 5.0·10⁻⁵ with 1,000,000 rows, 50 times 1/|D| and 1.0·10⁶ times the hidden term" in found
    assert "(at 300 rows 100 times)" in found
    assert "It is 100 % of h/(|D|(1 − θ₀))" in found
    assert "20 rows δ is exactly 0.94 for fixed t and 0.046 for random t, where the hidden term is 0.005." in found
    # And the figures themselves are those of the counterexamples.
    found_worst = worst_case((300, 1_000), (6,))
    assert found_worst.claimed.tolist() == [50 / 300**2, 50 / 1_000**2]
    assert (found_worst.chains < found_worst.limit).all()
    assert (found_worst.chains > 10 * found_worst.single).all()


@pytest.mark.usefixtures("no_charts")
def test_a_run_is_a_function_of_data_and_seed() -> None:
    sizes = PrivacySizes(1_500, 1_500, 3, 3, 1, 9)
    worst = worst_case((300,), (6,))

    def result(seed: int) -> ExperimentResult:
        one = run_on(TABLE, PUBLIC, replace(sizes, seed=seed))
        found = findings([one, one], worst, sizes, delta=1e-9)
        return EXPERIMENT.result(found, sizes, date=dt.date(2026, 1, 1), private=False)

    one = result(9)
    document = json.loads(json.dumps(one.to_dict(), allow_nan=False))
    assert document == json.loads(json.dumps(result(9).to_dict()))
    assert document["experiments"] != json.loads(json.dumps(result(10).to_dict()))["experiments"]
    assert document["guarantee"].startswith("none")
    assert [plot["key"] for plot in document["plots"]] == [
        *[key for key in ("unsampled", "sampling", "epsilon", "sizes") for _ in range(2)], "worst-case",
    ]  # fmt: skip
    lines = one.to_csv().splitlines()
    assert {line.split(",")[0] for line in lines[1:]} == {plot["key"] for plot in document["plots"]}
    page = render_experiment(one)
    assert page.count(": not drawn.") == 9
    assert "which guarantees nothing" in page
    assert "Keep inside" not in page
    assert "Keep inside" in render_experiment(replace(one, private=True))
