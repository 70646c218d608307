"""The case study of a planned attack: the registry's laws, counts behind the plots, verdicts from planted figures."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from privrisk_spark.kernels.adversary.process import TOLERANCE, solve
from privrisk_spark.kernels.adversary.risk import assess, baseline
from reproduce.adversary import case_study, plots
from reproduce.adversary.case_study import (
    LARGE,
    PROGRAM_ROWS,
    SETTINGS,
    SPREADS,
    STUDY,
    Groups,
    by_group,
    changed,
    deterred,
    of_table,
    runtime,
)
from reproduce.adversary.experiment import EXPERIMENT
from reproduce.adversary.results import AdversarySizes, TableResult, claims, figures, findings, run_on
from reproduce.generated import registry
from reproduce.generated.registry import AGES, WHO, Law, Persons, Registry
from reproduce.pages import render_experiment
from reproduce.result import Claim, ExperimentResult

SIZES = AdversarySizes(40_000, 400, 9)
REGISTRY = Registry(SIZES.rows, SIZES.seed)
PERSONS = Persons.generated(SIZES.seed, SIZES.records)
BY_GROUP, DETERRED = by_group(), deterred()


def placed() -> Groups:
    cells, records = PERSONS.placed(REGISTRY.law, SIZES.seed)
    return (*REGISTRY.counted(cells), records)


GROUPS = placed()
ON_TABLE = run_on("generated", PERSONS, GROUPS, SIZES)


# ------------------------------------------------------------------------------------------------ the registry


def test_laws_are_shares_of_the_people() -> None:
    law = Law(50)
    assert law.places.sum() == pytest.approx(1)
    assert law.who.sum() == pytest.approx(1)
    np.testing.assert_allclose(law.places.sum(axis=0), registry._RACE_SHARES)
    of_code = law.places.sum(axis=1)
    assert of_code.max() > 4 / 50, "a few codes are large"
    assert Law.of_rows(registry.ROWS).codes == 808
    assert Law.of_rows(10).codes == 1
    assert law.cells == 50 * len(registry.RACES) * WHO


def test_the_people_follow_the_laws() -> None:
    law = Law(20)
    cells = law.drawn(4, 0, 200_000)
    assert law.drawn(4, 1, 10).tolist() != cells[:10].tolist()
    place, who = np.divmod(cells.astype(np.int64), WHO)
    for found, shares in ((place, law.places.ravel()), (who, law.who.ravel())):
        seen = np.bincount(found, minlength=len(shares)) / 200_000
        assert np.abs(seen - shares).max() < 5 * math.sqrt(shares.max() / 200_000)


@pytest.mark.parametrize("rows", [1, 1_000, 2**19, 700_000])
def test_parts_hold_every_person_once_and_the_first_are_registered(rows: int) -> None:
    made = Registry(rows, 1)
    assert sum(people for _, people, _ in made.parts) == made.people == max(rows, round(rows / 0.63))
    assert sum(registered for _, _, registered in made.parts) == rows
    seen = [registered == people for _, people, registered in made.parts]
    assert seen == sorted(seen, reverse=True)
    assert Registry(registry.ROWS, 1).people == 9_553_967


def test_cells_are_counted_as_one_counts_people(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "PEOPLE_OF_A_PART", 1_000)
    made = Registry(2_500, 6)
    drawn = [cell for part, people, _ in made.parts for cell in made.law.drawn(6, part, people).tolist()]
    everyone, registered = Counter(drawn), Counter(drawn[:2_500])
    cells = np.array([-1, *sorted(everyone)[:200]])
    found = made.counted(cells)
    assert found[0].tolist() == [registered[cell] for cell in cells.tolist()]
    assert found[1].tolist() == [everyone[cell] for cell in cells.tolist()]
    assert found[0][0] == 0


def test_a_generated_table_is_like_adult() -> None:
    table = Persons.generated(3, 20_000)
    assert table.total == 20_000
    mean = (table.age * table.records).sum() / table.total
    assert mean == pytest.approx(38.5, abs=0.5)
    shares = np.bincount(table.race, weights=table.records) / table.total
    np.testing.assert_allclose(shares, registry._TABLE_RACES, atol=0.01)
    assert table.records[table.sex == 0].sum() / table.total == pytest.approx(0.669, abs=0.01)
    assert (table.age.min(), table.age.max()) == (17, 90)


def test_a_postal_code_is_put_to_every_record() -> None:
    law = Law(30)
    table = Persons(np.array([40, 90, 16, 121]), np.array([1, 0, 0, 0]), np.array([1, 0, 0, 1]),
                    np.array([20_000, 31_000, 3, 2]))  # fmt: skip
    cells, records = table.placed(law, 5)
    assert records.sum() == table.total
    assert (np.diff(cells) > 0).all()
    assert records[cells == -1].tolist() == [5], "nobody is 16 or 121 years old"
    place, who = np.divmod(cells, WHO)
    code, race = np.divmod(place, len(registry.RACES))
    sex, age = np.divmod(who, AGES)
    age += registry.YOUNGEST
    middle = (age == 40) & (cells >= 0)
    assert set(race[middle].tolist()) == {1}
    assert set(sex[middle].tolist()) == {1}
    given = law.places[:, 1] / law.places[:, 1].sum()
    seen = np.bincount(code[middle], weights=records[middle], minlength=30) / 20_000
    np.testing.assert_allclose(seen, given, atol=0.015)
    old = np.bincount(age[age >= 90], weights=records[age >= 90])[90:]
    assert len(old) == 31
    assert np.abs(old - 1_000).max() < 200, "top-coded ages are uniform from 90 to 120"
    order = np.array([2, 0, 3, 1])
    other = Persons(*(column[order] for column in (table.age, table.race, table.sex, table.records)))
    assert other.placed(law, 5)[1].tolist() == records.tolist()
    assert table.placed(law, 6)[1].tolist() != records.tolist()


def test_expected_sizes_are_those_drawn() -> None:
    table = Persons(np.array([40, 16]), np.array([0, 0]), np.array([0, 0]), np.array([5_000, 10]))
    made = Registry(400_000, 2)
    sizes, records = table.expected(made.law, made.rows)
    assert records.sum() == pytest.approx(5_010)
    cells, times = table.placed(made.law, 2)
    drawn, _ = made.counted(cells)
    expected = (sizes * records).sum() / records.sum()
    assert (drawn * times).sum() / times.sum() == pytest.approx(expected, rel=0.05)
    assert records[sizes == 0].sum() == pytest.approx(10)


def test_the_law_is_shaped_for_the_published_share() -> None:
    sizes, records = Persons.generated(2015, 32_561).expected(Law.of_rows(registry.ROWS), registry.ROWS)
    assert records[sizes > LARGE].sum() / records.sum() == pytest.approx(0.64, abs=0.01)


# ------------------------------------------------------------------------------------------------ the attack


def test_the_published_thresholds() -> None:
    assert BY_GROUP.known.tolist() == [45, 48, 29]
    assert BY_GROUP.sunk.tolist() == [51, 54, 46]
    assert BY_GROUP.exploited[2][:14].tolist() == [*range(1, 14), 12]
    assert BY_GROUP.exploited[2][19] == 7
    assert BY_GROUP.linked[2][28] > 0 == BY_GROUP.exploited[2][28]
    # Of 20 candidates, 7 are exploited: he stops before the 8th, with 13 left, and still exploits with 14.
    assert BY_GROUP.least_left[19] == 14
    assert BY_GROUP.least_left[45:].max() == 0
    # 8000 * 0.63 / 23 - 0.01 * 10000 - 110, with the probability of detection in full.
    assert BY_GROUP.payoff[3][22] == pytest.approx(5040 / 23 - 10_000 / (1 + math.exp(4.59)) - 110)
    assert DETERRED.told.tolist() == [[9, 2], [9, 2], [7, 2]]
    for thresholds in DETERRED.thresholds.values():
        assert (np.diff(thresholds, axis=1) <= 0).all()
    # Detection keeps growing where its first probability is swept.
    assert (DETERRED.thresholds["detection"][2] < DETERRED.thresholds["detection"][0]).any()


def test_records_are_counted_one_by_one() -> None:
    """Against a loop over the records."""
    random = np.random.default_rng(1)
    people = random.integers(40, 110, size=400)
    registered = random.binomial(people, 0.63)
    records = random.integers(1, 4, size=400)
    rows, population = 630_000, 1_000_000
    found = of_table((registered, people, records), rows=rows, people=population)
    lower = higher = large = exceeding = 0
    mean = np.zeros(4)
    attacked = np.zeros(4)
    solved = [solve(attack) for attack in SETTINGS.values()]
    for g, n, times in zip(registered.tolist(), people.tolist(), records.tolist(), strict=True):
        one = np.array([g])
        known = [float(assess(solution, one).p_reid[0]) for solution in solved] + [float(baseline(STUDY, one)[0])]
        unknown = float(assess(solved[1], one, np.array([rows]), np.array([n / population])).p_reid[0])
        lower += times * (unknown < known[1])
        higher += times * (unknown > known[1])
        large += times * (g > 55)
        exceeding += times * any(known[3] > risk for risk in known[:3])
        mean += times * np.array(known)
        attacked += times * (np.array(known) > 0)
    total = int(records.sum())
    assert lower > 0 < higher
    assert (found.lower, found.higher, found.exceeding) == (lower, higher, exceeding)
    assert found.records == total
    assert found.large == large / total
    np.testing.assert_allclose(found.mean_risk, mean / total)
    np.testing.assert_allclose(found.attacked, attacked / total)
    assert (found.full_lower, found.full_higher) == (lower, higher), "with one fine it is all or nothing"
    assert found.lower_at[2].sum() == lower
    assert (found.lower_at[0] < 48).all()
    assert ((found.higher_at[0] >= 48) & (found.higher_at[0] < 54)).all()
    assert (found.higher_at[1] <= found.believed + 1e-9).all()
    assert (found.lower_at[1] > found.believed).all()
    few = registered[registered <= 60]
    assert found.with_size.sum() == records[registered <= 60].sum()
    assert found.with_size[few[0]] == records[registered == few[0]].sum()


def test_uneven_rates_against_sums_over_group_sizes() -> None:
    people, records = np.array([60, 75, 78, 90]), np.array([1, 2, 3, 4])
    groups = (people, people, records)
    found = changed(PERSONS, groups, rows=630_000, people=1_000_000)
    solution = solve(STUDY)
    lower = higher = 0.0
    for n, times in zip(people.tolist(), records.tolist(), strict=True):
        chance = binom.pmf(np.arange(n + 1), n, 0.63)
        sizes = np.arange(n + 1)
        known = assess(solution, sizes).p_reid > 0
        access = assess(solution, sizes, np.full(n + 1, 630_000), np.full(n + 1, n / 1e6))
        paid = (access.expected_payoff > TOLERANCE)[0]
        lower += times * chance[known & (access.p_reid == 0)].sum()
        higher += times * chance[~known & (access.p_reid > 0)].sum()
        assert paid == (n * 0.63 < 49.1)
    assert found.spreads[0] == 0
    assert found.lower[0] == pytest.approx(lower / 10, rel=1e-9)
    assert found.higher[0] == pytest.approx(higher / 10, rel=1e-9)
    assert found.lower[-1] > found.lower[0]
    assert (np.diff(found.large) <= 0).all(), "more codes, smaller groups"
    assert (np.diff(found.attacked) >= 0).all()


def test_what_is_timed_is_all_records() -> None:
    ticks = iter(range(100))
    found = runtime(GROUPS, people=REGISTRY.people, seed=1, clock=lambda: float(next(ticks)))
    assert found.records == 400
    assert found.rows.tolist() == list(PROGRAM_ROWS)
    assert found.seconds.tolist() == [1.0] * 4
    assert found.distinct == len(set(GROUPS[1].tolist()))


# ------------------------------------------------------------------------------------------------ words


def verdicts(groups: case_study.ByGroup, experiments: list[TableResult]) -> dict[int, Claim]:
    return dict(enumerate(claims(groups, experiments), start=1))


def test_claims_follow_the_figures() -> None:
    found = verdicts(BY_GROUP, [ON_TABLE])
    assert [found[i].verdict for i in (1, 2, 3)] == ["holds", "holds", "in 1 of 2 cases"]
    risk = BY_GROUP.risk.copy()
    risk[3, 2] = 0.64
    exploited = BY_GROUP.exploited.copy()
    exploited[0, 9] = 4.5
    planted = replace(BY_GROUP, risk=risk, exploited=exploited, subsets=np.array([0, 1, 0, 0, 0]))
    table = replace(ON_TABLE.table, lower=0, higher=7)
    none = replace(ON_TABLE.table, lower=0, higher=0)
    pair = [replace(ON_TABLE, table=table), replace(ON_TABLE, data="other", table=none)]
    found = verdicts(planted, pair)
    assert found[1].verdict == "does not hold"
    assert "at 1 of 60" in found[1].evidence
    assert found[2].verdict == "in 43 of 44 cases"
    assert found[2].evidence == "44 group sizes are attacked, 1 of them in part."
    assert found[3].verdict == "holds"
    assert found[4].verdict == "does not hold"
    assert found[5].verdict == "in 1 of 2 cases"
    assert "7 of 400 (generated), 0 of 400 (other)" in found[5].evidence
    exceeding = [replace(ON_TABLE, table=replace(ON_TABLE.table, exceeding=1))]
    assert verdicts(BY_GROUP, exceeding)[1].verdict == "does not hold"
    flat = BY_GROUP.exploited.copy()
    flat[2] = np.where(flat[2] == BY_GROUP.sizes, flat[2], 0)
    assert verdicts(replace(BY_GROUP, exploited=flat), pair)[3].verdict == "does not hold"


def test_published_figures_beside_those_found() -> None:
    table = replace(ON_TABLE.table, lower=58, higher=42, records=1_700)
    found = list(figures(BY_GROUP, DETERRED, [replace(ON_TABLE, table=table)]))
    of = {one.what: one for one in found}
    assert [(one.published, one.found, one.claim.verdict) for one in found[:6]] == [
        (48, 48, "holds"), (51, 54, "does not hold"), (14, 14, "holds"), (29, 29, "holds"), (9, 9, "holds"),
        (2, 2, "holds"),
    ]  # fmt: skip
    assert of["of the others, share at less risk if not known"].found == 0.58
    assert of["share at the same risk, known or not"].found == pytest.approx(1600 / 1700)
    assert of["share at the same risk, known or not"].claim.verdict == "holds"
    none = replace(ON_TABLE.table, lower=0, higher=0)
    last = list(figures(BY_GROUP, DETERRED, [replace(ON_TABLE, table=none)]))[-1]
    assert math.isnan(last.found)
    assert last.claim.verdict == "not decided: there is none"


def test_sentences() -> None:
    change = replace(ON_TABLE.changed, lower=np.linspace(0, 0.08, len(SPREADS)),
                     higher=np.full(len(SPREADS), 0.01))  # fmt: skip
    table = replace(ON_TABLE.table, records=1_000, lower=30, higher=10, believed=48.51)
    found = plots.unknown_plot(table, change).found
    assert "40 records (4 %) have another risk, 30 (75 %) less and 10 more; the others, 96 %, the same" in found
    assert "48.5 expected candidates" in found
    # Lower is 0.16 s, so that 0.16 s + 0.01 = 1920 / 32561 at s = 0.306; its share of the sum is 4/9 at s = 0.05 and
    # 8/13 at s = 0.1, and 1118 / 1920 between them at 0.0903.
    assert "deviate by 0.0903" in found
    assert found.endswith("differ if by 0.306.")
    never = replace(change, lower=np.zeros(len(SPREADS)))
    assert plots.unknown_plot(table, never).found.endswith("differ if by nothing drawn.")
    found = plots.exploits_plot(BY_GROUP).found
    assert "all are exploited below 14 candidates, some from 14 to 28, and none from 29 on" in found
    whole = replace(BY_GROUP, exploited=np.where(BY_GROUP.exploited < BY_GROUP.sizes, 0.0, BY_GROUP.exploited))
    assert plots.exploits_plot(whole).found.endswith("no group is exploited in part.")
    found = plots.payoff_plot(BY_GROUP).found
    assert "An attack pays up to 23 candidates for the baseline, and up to 44, 47, 28." in found
    rising = {**DETERRED.thresholds, "penalty": DETERRED.thresholds["penalty"][:, ::-1]}
    assert "rising" in plots.deterrence_plot(replace(DETERRED, thresholds=rising)).found
    assert math.isnan(plots.crossing(np.array([0.0, 1.0]), np.array([1.0, 1.0]), 2.0))


@pytest.mark.usefixtures("no_charts")
def test_a_run_is_a_function_of_data_and_seed() -> None:
    def result(one: TableResult = ON_TABLE) -> ExperimentResult:
        found = findings([one, one], BY_GROUP, DETERRED, SIZES)
        return EXPERIMENT.result(found, SIZES, date=dt.date(2026, 1, 1), private=False)

    def timeless(one: ExperimentResult) -> str:
        document = json.loads(json.dumps(one.to_dict(), allow_nan=False))
        document["plots"] = [plot for plot in document["plots"] if not plot["measured"]]
        for experiment in document["experiments"]:
            experiment["runtime"].pop("seconds")
        return json.dumps(document)

    one = result()
    assert timeless(one) == timeless(result(run_on("generated", PERSONS, placed(), SIZES)))
    document = one.to_dict()
    keys = [plot["key"] for plot in document["plots"]]
    assert keys == ["groups"] * 2 + ["runtime"] * 2 + ["risk"] * 2 + ["payoff", "exploits"] + ["unknown"] * 2 + [
        "costs", "deterrence",
    ]  # fmt: skip
    assert [claim["source"] for claim in document["claims"][:5]] == [
        f"Xia et al. (2015), finding {i}" for i in range(1, 6)
    ]
    lines = one.to_csv().splitlines()
    assert {line.split(",")[0] for line in lines[1:]} == set(keys)
    page = render_experiment(one)
    assert page.count(": not drawn.") == page.count("The chart as a table") == 12
    assert "in 1 of 2 cases" in page
    assert "40,000 rows, a uniform sample of 63,492 people" in page
    assert "Keep inside" not in page
    assert "Keep inside" in render_experiment(replace(one, private=True))
