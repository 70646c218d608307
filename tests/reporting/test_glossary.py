"""Words of the glossary: in order, with a place in the code, and explained on the pages that use them."""

from __future__ import annotations

import re
from pathlib import Path

from privrisk_spark.policy.reading import json_schema
from privrisk_spark.reporting.glossary import read_glossary, words_of
from privrisk_spark.reporting.page_templates import fill
from privrisk_spark.results.release import Check

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "privrisk_spark"
CODES = re.compile(r"\b(?:F12|LSFB06|X15|T20|R23)\b")


def test_words_are_in_order_once_and_where_they_say() -> None:
    words = [term.word for term in read_glossary()]
    assert words == sorted(words, key=str.lower)
    assert len(set(words)) == len(words)
    for term in read_glossary():
        assert term.means.endswith("."), term.word
        assert not term.where or (PACKAGE / term.where).is_file(), term.where


ASKED = """
equivalence class, quasi-identifier, value generalization hierarchy, level, generalization lattice, dictionary,
consistent records, sensitivity, weighted risk, utility, floor, frontier, t-frequent, hockey-stick divergence
"""


def test_the_words_that_readers_ask_for_are_there() -> None:
    assert {word.strip() for word in ASKED.split(",")} <= {term.word for term in read_glossary()}


def test_a_page_explains_what_it_uses_and_no_more() -> None:
    found = [term.word for term in words_of("<p>Two hierarchies, and the frontier.</p><style>.lattice</style>")]
    assert found == ["frontier", "value generalization hierarchy"]
    assert words_of('<svg><text>lattice</text></svg><p class="vault">classic</p>') == []


def test_every_page_ends_with_its_words_and_links_to_them() -> None:
    checks = [Check("k", "release", "error", True, "every class has at least 5 rows", 7.0)]
    page = fill("contract.html.j2", contract="release", checks=checks, failed=0, missing=["x"], surplus=[])
    head, _, rest = page.partition("</header>")
    assert '<a href="#words">' in head
    assert rest.index('id="words"') < rest.index("</main>")
    assert "equivalence class" in rest.partition('id="words"')[2]
    assert page.count('id="words"') == 1


def test_users_are_told_authors_and_no_codes_of_papers() -> None:
    assert not CODES.search(str(json_schema()))
    texts = [ROOT / "README.md", ROOT / "docs" / "policy-keys.md", *PACKAGE.glob("reporting/templates/*")]
    texts += PACKAGE.glob("reporting/guides/*.md")
    for path in texts:
        assert not CODES.search(path.read_text()), path.name
    for path in PACKAGE.rglob("*.py"):
        # Docstrings and comments are for who reads the program, whose sources are spelled out in the design.
        code = re.sub(r'(?s)r?""".*?"""|#[^\n]*', "", path.read_text())
        # A release as published is keyed by a digest of what it says of its source, where the code is spelled out.
        code = code.replace("F12 (Fouad, thesis, 2012)", "")
        assert not CODES.search(code), path
