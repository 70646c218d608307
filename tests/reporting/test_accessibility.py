"""Every kind of page of ours by the rules of WCAG 2.2 AA, as far as a program can tell."""

from __future__ import annotations

from pathlib import Path

import pytest
from accessibility import checked, faults
from product import ROOT, Privrisk
from typer.testing import CliRunner

from privrisk_spark.cli.app import app

BROKEN = """<!DOCTYPE html><html><head><title>t</title></head><body><main><h1>t</h1>
<p style="color: #aaa">pale</p><img src="data:," width="900" height="1"></main></body></html>"""


def test_a_fault_is_found(tmp_path: Path) -> None:
    """No language, pale text, a picture without words, and wider than a phone."""
    page = tmp_path / "broken.html"
    page.write_text(BROKEN)
    found = checked([page], profile=tmp_path / "profile")
    assert [one["view"] for one in found] == ["light", "dark", "narrow"]
    for one in found:
        assert {"html-has-lang", "color-contrast", "image-alt"} <= {fault["id"] for fault in one["violations"]}
    assert [one["wide"] > 0 for one in found] == [False, False, True]


def ran(*arguments: str) -> None:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code in (0, 1), result.output


KINDS = {
    "risk": (),
    "k-anonymity": ("--set=guarantee={kind: k-anonymity, k: 3, suppression_limit: 0.2}", "--set=decision=null"),
}
"""Kinds of guarantee, and what makes the small policy one of them."""


@pytest.mark.parametrize("kind", KINDS)
def test_reports_of_releases(kind: str, privrisk: Privrisk, small: Path, tmp_path: Path) -> None:
    made = privrisk(str(small), *KINDS[kind])
    assert made.code == 0, made.err
    pages = [made.root / "vault" / "report.html", made.data.parent / "report.html"]
    assert not faults(checked(pages, profile=tmp_path / "profile"))


def test_pages_of_the_other_jobs(privrisk: Privrisk, small: Path, tmp_path: Path) -> None:
    assert privrisk(str(small)).code == 0
    places = {name: tmp_path / name for name in ("assess", "attack", "curves", "share", "adversary")}
    published = "--set=assess.release=published"
    ran("assess", str(small), published, "--output", str(places["assess"]))
    ran("attack", str(small), "--output", str(places["attack"]))
    ran("curves", str(small), "--output", str(places["curves"]))
    ran("share", str(ROOT / "conf" / "sharing-demo.yaml"), "--output", str(places["share"]))
    ran("experiments", "adversary", "--records", "300", "--output", str(places["adversary"]))
    pages = sorted(page for place in places.values() for page in place.glob("*.html"))
    assert len(pages) == len(places), pages
    assert not faults(checked(pages, profile=tmp_path / "profile"))
