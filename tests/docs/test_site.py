"""The site is built without a warning, every link in it leads somewhere, and nothing of it comes from another host."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from accessibility import checked, faults

DOCS = Path(__file__).resolve().parents[2] / "docs"


class Page(HTMLParser):
    """What a page links to, loads, and can be linked at."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()
        self.headings = 0
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.anchors.update(value for key in ("id", "name") if (value := found.get(key)))
        self.headings += tag == "h1"
        if tag == "a" and found.get("href"):
            self.links.append(str(found["href"]))
        if tag == "link" and found.get("rel") not in ("canonical", "next", "prev"):
            self.loads.append(str(found["href"]))
        if tag in ("script", "img", "source", "iframe") and found.get("src"):
            self.loads.append(str(found["src"]))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    into = tmp_path_factory.mktemp("site") / "built"
    ran = subprocess.run(
        [sys.executable, DOCS / "site.py", into], capture_output=True, text=True, check=False, timeout=120
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return into / "site"


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, Page]:
    return {file.name: Page(file) for file in site.glob("*.html") if file.name != "404.html"}


def in_navigation(nav: list[Any]) -> Iterator[str]:
    for one in nav:
        for value in one.values() if isinstance(one, dict) else [one]:
            yield from in_navigation(value) if isinstance(value, list) else [value]


def test_every_page_is_in_the_navigation_once(pages: dict[str, Page]) -> None:
    named = sorted(in_navigation(tomllib.loads((DOCS / "zensical.toml").read_text())["project"]["nav"]))
    assert named == sorted(f"{name.removesuffix('.html')}.md" for name in pages)
    assert {path.name for path in DOCS.glob("*.md")} <= set(named)


def test_links_lead_to_pages_and_to_what_is_on_them(site: Path, pages: dict[str, Page]) -> None:
    wrong = []
    for name, page in pages.items():
        for link in page.links:
            to = urlsplit(link)
            if to.scheme:
                continue
            target = to.path or name
            lost = to.fragment and target in pages and unquote(to.fragment) not in pages[target].anchors
            if lost or not (site / target).is_file():
                wrong.append((name, link))
    assert not wrong


def test_nothing_is_loaded_from_another_host(pages: dict[str, Page]) -> None:
    loads = [load for page in pages.values() for load in page.loads]
    assert loads
    assert not [load for load in loads if urlsplit(load).netloc]


def test_a_page_has_one_heading_of_the_first_level(pages: dict[str, Page]) -> None:
    assert {name: page.headings for name, page in pages.items()} == dict.fromkeys(pages, 1)


def test_files_that_pages_link_to_are_those_of_the_project(site: Path) -> None:
    copies = [path for path in (site / "files").rglob("*") if path.is_file()]
    assert any(path.name == "adult.yaml" for path in copies)
    for path in copies:
        assert path.read_bytes() == (DOCS.parent / path.relative_to(site / "files")).read_bytes()


@pytest.mark.thorough("tests/reporting/test_accessibility.py holds the pages of runs against the same rules")
def test_pages_can_be_read_by_everybody(site: Path, tmp_path: Path) -> None:
    """Of each kind one: a table of links, texts, code, wide tables, a notebook, generated pages."""
    names = (
        "index",
        "readme",
        "start",
        "officer",
        "attacks",
        "performance",
        "measures",  # as the other generated pages are, and shorter
        "quickstart",
        "errata",
    )
    assert faults(checked([site / f"{name}.html" for name in names], profile=tmp_path)) == []
