"""Every kind of page of ours by the rules of WCAG 2.2 AA, as far as a program can tell."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
import small_release
from accessibility import checked, faults
from product import ROOT, Privrisk
from typer.testing import CliRunner
from unprepared import TABLES

from privrisk_spark.cli.app import app
from privrisk_spark.kernels.dp.audit import Certified, Conformance, Event
from privrisk_spark.reporting.pages import render_audit
from privrisk_spark.results.audit import AuditResult, Bound, Claim, Findings, FittedCell, Repetition

pytestmark = pytest.mark.alone

BROKEN = """<!DOCTYPE html><html><head><title>t</title></head><body><main><h1>t</h1>
<p style="color: #aaa">pale</p><img src="data:," width="900" height="1"></main></body></html>"""


def test_a_fault_is_found(tmp_path: Path) -> None:
    """No language, pale text, a picture without words, and wider than a phone."""
    page = tmp_path / "broken.html"
    page.write_text(BROKEN)
    found = checked([page], profile=tmp_path / "profile")
    assert [one["view"] for one in found] == ["light", "dark", "narrow", "print"]
    for one in found[:3]:
        assert {"html-has-lang", "color-contrast", "image-alt"} <= {fault["id"] for fault in one["violations"]}
    assert [one["wide"] > 0 for one in found] == [False, False, True, True]


def ran(*arguments: str) -> None:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code in (0, 1), result.output


MASKS = "{method: pram, invariant: {keep: 0.8}}"
KINDS = {
    "risk": (),
    "masked": (
        "--set=guarantee={kind: masked}",
        "--set=decision=null",
        *(f"--set=columns.{name}={{role: quasi-identifier, mask: {MASKS}}}" for name in ("age", "sex", "city")),
    ),
    "k-anonymity": ("--set=guarantee={kind: k-anonymity, k: 3, suppression_limit: 0.2}", "--set=decision=null"),
}
"""Kinds of guarantee, and what makes the small policy one of them."""


@pytest.mark.parametrize(
    "kind",
    [
        "risk",
        *(
            pytest.param(kind, marks=pytest.mark.thorough("all reports have the same parts"))
            for kind in ("masked", "k-anonymity")
        ),
    ],
)
def test_reports_of_releases(kind: str, privrisk: Privrisk, small: Path, tmp_path: Path) -> None:
    made = privrisk(str(small), *KINDS[kind])
    assert made.code == 0, made.err
    pages = [made.root / "vault" / "report.html", made.data.parent / "report.html"]
    assert not faults(checked(pages, profile=tmp_path / "profile"))


@pytest.mark.thorough("test_reports_of_releases and test_pages_of_a_private_release; all pages have the same parts")
def test_pages_of_the_other_jobs(privrisk: Privrisk, small: Path, tmp_path: Path) -> None:
    assert privrisk(str(small)).code == 0
    places = {name: tmp_path / name for name in ("assess", "attack", "curves", "share")}
    published = "--set=assess.release=published"
    ran("assess", str(small), published, "--output", str(places["assess"]))
    ran("attack", str(small), "--output", str(places["attack"]))
    ran("curves", str(small), "--output", str(places["curves"]))
    ran("share", str(ROOT / "conf" / "sharing-demo.yaml"), "--output", str(places["share"]))
    pages = sorted(page for place in places.values() for page in place.glob("*.html"))
    assert len(pages) == len(places), pages
    assert not faults(checked(pages, profile=tmp_path / "profile"))


def test_pages_of_a_private_release(privrisk: Privrisk, tmp_path: Path) -> None:
    policy = small_release.policy("dp", small_release.write_table(tmp_path), tmp_path / "dp")
    made = privrisk(policy, root=tmp_path / "dp")
    assert made.code == 0, made.err
    contracts = [made.root / "vault" / "contracts" / f"{name}.html" for name in ("input", "release")]
    pages = [made.root / "vault" / "report.html", made.data.parent / "report.html", *contracts]
    assert not faults(checked(pages, profile=tmp_path / "profile"))


@pytest.mark.thorough("test_reports_of_releases and test_pages_of_a_private_release; all pages have the same parts")
def test_pages_of_a_profile_and_of_releases_together(privrisk: Privrisk, small: Path, tmp_path: Path) -> None:
    pq.write_table(TABLES["visits"](200).table, tmp_path / "visits.parquet")
    ran("init", str(tmp_path / "visits.parquet"), "--out", str(tmp_path / "visits"))
    vaults = [str(tmp_path / name / "vault") for name in ("first", "second")]
    for place, column in (("first", "age"), ("second", "city")):
        weights = f"--set=utility.weights={{{column}: 3}}"
        assert privrisk(str(small), "--set=history=[]", weights, root=tmp_path / place).code == 0
    together = tmp_path / "together"
    ran("assess", str(small), "--history", f"--set=history=[{', '.join(vaults)}]", "--output", str(together))
    pages = [tmp_path / "visits" / "profile.html", together / "composition.html"]
    assert not faults(checked(pages, profile=tmp_path / "profile"))


def audited(*, passed: bool) -> AuditResult:
    """Findings of one experiment, which no audit has made; its long texts are as long as real ones."""
    bound = Bound(
        "a cell of 12 rows and one row more", "with the row", "at least 10 rows of (north, *) are published",
        1, 0.02, 1e-5, Certified(Event(0, ">=", 10), 10_000, 1_370, 645, 0.6 if passed else 1.4),
    )  # fmt: skip
    law = tuple(1 / 60 for _ in range(60))
    fit = Conformance(1, 29.5, 29.5, 0.1 if passed else 9.0, 0.5, 0.4 if passed else 0.0, moments=True)
    found = Findings(
        Claim("draw", "Draws of rows, with a cell at the crowd threshold", 1, 0.02, 10), 20_000, 2_400_000,
        (bound,), 10 if passed else 9, 0 if passed else 3, 20_000, (FittedCell("(north, *)", fit, law, law),),
    )  # fmt: skip
    again = (Repetition("Draws of rows", "every task fails once, in another number of partitions", passed),)
    parameters = {"keep fraction": 0.86, "crowd threshold, rows": 10}
    return AuditResult("census", "2026-11-24", "1.0", 1, parameters, (found,), again, ("What is not seen.",))


def test_the_page_of_an_audit(tmp_path: Path) -> None:
    pages = [tmp_path / "passed.html", tmp_path / "flagged.html"]
    for page in pages:
        page.write_text(render_audit(audited(passed=page.stem == "passed")), encoding="utf-8")
    assert not faults(checked(pages, profile=tmp_path / "profile"))
