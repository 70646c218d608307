"""The page of an assessment: what it puts side by side, and what it must never suggest."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

import pytest

from privrisk_spark.reporting.assessment_page import render_assessment
from privrisk_spark.results.assessment import Assessment, Assumption, Measured, Subject, Verdict, WorstClass
from privrisk_spark.results.release import StageRecord

NAUGHTY = "<b>&'"
SIZES = ((1, 1), (2, 2), (3, 3), (4, 4), (5, 9), (10, 19), (20, 49), (50, 99), (100, 999), (1000, None))


def measured(subject: str, k: int, **more: Any) -> Iterator[Measured]:
    of = {"subject": subject, "set": "all"}
    yield Measured("records", 40, of)
    yield Measured("k", k, of)
    for least, most in SIZES:
        until = {} if most is None else {"to": most}
        yield Measured("records_by_class_size", 40 if least == k else 0, {**of, "from": least, **until})
    for column, apart in (("age", 0.4), (NAUGHTY, 0.9)):
        yield Measured("separation", apart / k, {**of, "column": column})
        yield Measured("distinction", 0.1, {**of, "column": column})
    yield Measured("separation", 0.95, of)
    yield Measured("delta_disclosure", math.inf, {**of, "column": "illness"})
    yield Measured("delta_disclosure_present", 2.5, {**of, "column": "illness"})
    yield Measured("least_group_size", None, {**of, "none": "none needed: every record is under the bound as it is"})
    yield Measured("expected_payoff_max", 12.5, {**of, "currency": "groats"})
    yield Measured("estimated_population_uniques", 7.0, {**of, "model": "pitman", "population": 100 * k})
    for name, value in more.items():
        yield Measured(name, value, of)


def page(*, verdicts: tuple[Verdict, ...] = (), released: bool = True) -> str:
    subjects = [
        Subject("table", "the table", tuple(measured("table", 1)), (WorstClass("k", (NAUGHTY,), 1, 1, {"set": "all"}),))
    ]
    if released:
        subjects.append(Subject("release", "release r1", tuple(measured("release", 5, loss=0.25))))
    return render_assessment(
        Assessment(
            f"t {NAUGHTY}",
            "run",
            "2026-11-24",
            "0",
            tuple(subjects),
            verdicts,
            "A paragraph.",
            stages=(StageRecord("measure", "Measured.", {"seconds": {"table, set all": 0.25}}, "tested", 1.5),),
            assumptions=(
                Assumption("gain", 8000.0, "groats", "What it brings.", True),
                Assumption("prior", 0.63, "", "A chance.", False),
            ),
        )
    )


def text(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", re.sub(r"<(style|svg).*?</\1>", "", html, flags=re.S)))


@pytest.fixture(scope="module")
def plain() -> str:
    return page()


def test_before_and_after_are_in_one_row(plain: str) -> None:
    told = text(plain)
    assert re.search(r"k-anonymity 1 record 5 records", told)
    assert re.search(r"Loss, geometric over columns – 0\.25", told)
    # A number that is of different populations is in one row, and says of which.
    assert re.search(
        r"Population uniques, estimated model: pitman .*? 7 persons population: 100 7 persons population: 500", told
    )


def test_nothing_is_passed_or_asked_that_nobody_asked(plain: str) -> None:
    told = text(plain)
    assert "No thresholds were asked for" in told
    assert not re.search(r"\bmet\b|\bmissed\b|✓|✗|\btested\b|\basked \d", told)
    judged = text(page(verdicts=(Verdict("k", 5, True, 5), Verdict("prosecutor_max", 0.1, False, 0.2))))
    assert ("✓ met" in judged, "✗ missed" in judged) == (True, True)


def test_infinity_is_explained_by_the_finite_value(plain: str) -> None:
    assert "Over the values that the classes do hold it is 2.5." in text(plain)
    assert text(plain).count("∞: some class lacks a value") == 2


def test_what_protects_is_none_needed(plain: str) -> None:
    assert "Group size that protects" in text(plain)
    assert "none needed every record is under the bound as it is" in text(plain)


def test_the_attack_has_its_assumptions_and_its_currency(plain: str) -> None:
    told = text(plain)
    assert "gain What it brings. 8,000 groats the policy" in told
    assert "prior A chance. 0.63 the default" in told
    assert "12.5 groats" in told


def test_columns_that_identify_most_come_first(plain: str) -> None:
    rows = re.findall(r'<th scope="row" class="text">([^<]*)</th><td class="number value">([^<]*)', plain)
    assert [row for row in rows if "→" in row[1]][:2] == [("&lt;b&gt;&amp;&#39;", "0.9 → 0.18"), ("age", "0.4 → 0.08")]


def test_every_link_of_the_contents_leads_somewhere(plain: str) -> None:
    links = re.findall(r'href="#([^"]*)"', plain.split("</nav>")[0].split("<nav")[1])
    assert len(links) >= 7
    assert all(plain.count(f'id="{link}"') == 1 for link in links)
    assert len(re.findall(r'\bid="([^"]*)"', plain)) == len(set(re.findall(r'\bid="([^"]*)"', plain)))


def test_it_is_whole_alone_and_the_same_again(plain: str) -> None:
    assert NAUGHTY not in plain
    assert "<script" not in plain
    assert not re.search(r'(src|href)="(?!#)', plain)
    assert "table, set all: 0.25 s" in text(plain)
    assert page() == plain
    alone = text(page(released=False))
    assert "In numbers" in alone
    assert "release" not in alone.replace("released", "").replace("records/", "").lower().split("every measure")[0]
