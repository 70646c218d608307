from __future__ import annotations

import hashlib
import json
import math
import os
import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privrisk_spark.json_values import as_json
from privrisk_spark.kernels.search.trade_off import AtFloor, Fits
from privrisk_spark.reporting import release_charts as charts
from privrisk_spark.reporting.numbers import short_number
from privrisk_spark.reporting.report import render
from privrisk_spark.results.headline import Compared, Headline
from privrisk_spark.results.release import AttributeLevels, Check, Guarantee, Histogram, Report, StageRecord, Summary
from privrisk_spark.results.trade_off import (
    AnonymousPoint,
    Evidence,
    PartPoint,
    RecodingPoint,
    RiskyClass,
    RowPair,
    TradeOffFacts,
)

EDGES = (0.0, 0.001, 0.01, 0.1, 1.0, math.inf)
HOSTILE = "<script>alert(1)</script>"
TRADE_OFF = TradeOffFacts(
    records=50,
    nodes=8,
    of_nodes=8,
    kept=((0, 1, 2, 3), (0, 1)),
    own=True,
    recodings=(
        RecodingPoint((0, 0), math.inf, 20.0),
        RecodingPoint((0, 1), 0.5, 18.0),
        RecodingPoint((2, 1), 0.04, 7.0),
        RecodingPoint((1, 1), 0.03, 9.0),
        RecodingPoint((3, 1), 0.0, 0.0),
    ),
    frontier=(4, 3, 1),
    floors=(AtFloor(0.0, 0.0, 0.0, 0, (3.0, 1.0)), AtFloor(8.0, 0.02, 8.5, 2, (1.25, 1.0))),
    anonymous=(AnonymousPoint(5, (1, 1), 0.025, 8.75, 2),),
    suppressed_at_most=0.05,
    risk=0.021,
    utility=8.25,
    fits_before=Fits(1, 1.0, 30),
    fits_after=Fits(7, 61.5, 0),
    parts=(PartPoint(1.0, 0.75, 0.0125), PartPoint(0.1, 0.875, 0.125)),
)
VAULT = Report(
    edition="vault",
    title=f"Adult {HOSTILE}",
    run_id="adult-2026-11",
    created="2026-11-21 10:30 UTC",
    version="0.1.0",
    guarantee=Guarantee(
        "risk", "No class has fewer than 7 records.", "tested", {"model": "I", "weights": {"age": 0.5}}
    ),
    stages=(
        StageRecord("Count", "Every class was counted once.", {"plan": "cube", "nodes": 12960}, "proved", 14.802),
        StageRecord("Group", "Small classes were merged.", {}, "heuristic", None),
    ),
    checks=(
        Check("input", "row count", "warning", False, "between 31,000 and 40,000 rows", 30162),
        Check("release", "no direct identifier", "error", True, "no identifier column", None),
    ),
    facts={"rows": 30162, "mean risk": 0.0183421, "name & place": "<b>x</b>"},
    risk_before=Summary(math.inf, math.inf, 0.0021),
    risk_after=Summary(0.0183, 0.52, 0.000012),
    risk_histogram_before=Histogram(EDGES, (0, 10, 100, 1000, 12)),
    risk_histogram_after=Histogram(EDGES, (1, 1000, 100, 21, 0)),
    utility=Summary(8.5, 14.0, 8.0),
    utility_max=20.0,
    levels=(
        AttributeLevels("age", 3, ("as is", "5 years", "10 years", "*"), (100, 200, 600, 222)),
        AttributeLevels(f'$a$ {HOSTILE} --> id="x" 年', 1, ("as is", "*"), (1000, 122)),
    ),
    headline=Headline("30,162 rows.", f"To nobody {HOSTILE}.", "Much."),
    compared=(
        Compared("rows", 30162, 30150),
        Compared("smallest class", None, 7),
        Compared("x", "60 %", "0 %", "of few"),
    ),
    floor=8.0,
    evidence=Evidence(
        pairs=(RowPair(("39", None), ("30-39", "*"), 4.5, 0.25), RowPair(("40", HOSTILE), (), 4.0, 0.0)),
        riskiest=(RiskyClass(("30-39", HOSTILE), 0.52, 3),),
        trade_off=TRADE_OFF,
    ),
)
DP = Report(
    edition="public",
    title="Adult",
    run_id="adult-2026-11",
    created="2026-11-21",
    version="0.1.0",
    guarantee=Guarantee(
        "dp",
        "(1, 1e-9)-differential privacy, add/remove one row, one row per person, PRF assumption.",
        "proved",
        {"epsilon": "1", "epsilon_keep": "0.7", "delta": "1e-9", "k": 31},
    ),
    stages=(StageRecord("Keep", "Each row was kept with probability 0.2517.", {"B": 1081074828}, "proved", None),),
    checks=(Check("release", "no direct identifier", "error", True, "no identifier column", None),),
    facts={"released rows": 6934},
    risk_before=None,
    risk_after=None,
    risk_histogram_before=None,
    risk_histogram_after=None,
    utility=None,
    utility_max=None,
    levels=(),
)
BARE = replace(DP, guarantee=Guarantee("risk", "Nothing.", "heuristic", {}), stages=(), checks=(), facts={})
VOID_TAGS = {"meta", "br", "img", "hr", "link", "input"}


class Page(HTMLParser):
    """Tags in order, identifiers, references and visible text; fails on a tag that is not closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.refers: set[str] = set()
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        for name, value in attrs:
            self.attributes.append((name, value or ""))
            if name == "id":
                self.ids.append(value)
            if name in ("aria-labelledby", "aria-describedby"):
                self.refers.update(value.split())
            if name == "href":
                self.refers.add(value.removeprefix("#"))
            self.refers.update(re.findall(r"url\(#([^)]*)\)", value or ""))
        if tag not in VOID_TAGS:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID_TAGS:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not self.open or self.open[-1] != "style":
            self.text += data


@pytest.fixture(scope="module")
def vault() -> str:
    return render(VAULT)


@pytest.mark.parametrize("report", [VAULT, DP, BARE], ids=["vault", "dp", "bare"])
def test_every_page_is_whole_and_loads_nothing(report: Report):
    html = render(report)
    page = Page(html)
    assert html.startswith("<!DOCTYPE html>")
    assert (
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">"
    ) in html
    assert re.findall(r"https?://[^\"' <]*", html.replace('xmlns="http://www.w3.org/2000/svg"', "")) == []
    assert not {"script", "link", "iframe", "object", "form", "base", "image", "foreignobject"} & set(page.tags)
    assert not [name for name, _ in page.attributes if name.startswith("on") or name == "src"]
    assert "@import" not in html
    # Only the page's own style sheet: one inside an SVG would reach the whole page.
    assert page.tags.count("style") == 1
    assert len(page.ids) == len(set(page.ids))
    assert page.refers <= set(page.ids)
    assert "None" not in page.text
    assert not re.search(r"\bnan\b|\binf\b", page.text)


def test_hostile_text_is_escaped_everywhere(vault: str):
    assert "<script" not in vault.lower()
    assert "<b>x</b>" not in vault
    text = Page(vault).text
    # Title and heading; text alternative, axis label (cut) and table rows of the chart.
    assert text.count(HOSTILE) >= 4
    assert '$a$ <script>alert(1)</script> --> id="x" 年' in text


def test_the_axis_label_of_a_hostile_column_is_its_own_text():
    page = Page(charts.levels_chart((AttributeLevels('$x$ id="y" <b>', 1, ("a", "*"), (1, 1)),)))
    assert '$x$ id="y" <b>' in page.text
    assert "b" not in page.tags


def test_the_same_report_gives_the_same_bytes(vault: str):
    with mpl.rc_context({"font.size": 30, "svg.fonttype": "path", "axes.facecolor": "red", "svg.hashsalt": None}):
        assert render(VAULT) == vault
        assert mpl.rcParams["font.size"] == 30


def test_another_process_gives_the_same_bytes():
    code = "import sys; sys.path[:0] = ['tests/reporting', '.']; import test_report as t; print(t.digest())"
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            check=True,
            capture_output=True,
            text=True,
            cwd=Path(__file__).resolve().parents[2],
            env={**os.environ, "PYTHONHASHSEED": seed, "SOURCE_DATE_EPOCH": seed, "TZ": zone},
        ).stdout
        for seed, zone in (("1", "UTC"), ("2", "Asia/Tokyo"))
    }
    assert found == {f"{digest()}\n"}


def digest() -> str:
    return hashlib.sha256(render(VAULT).encode()).hexdigest()


def test_every_chart_has_a_text_alternative_and_a_table(vault: str):
    drawings = re.findall(r"<svg\b.*?</svg>", vault, flags=re.DOTALL)
    assert len(drawings) == 4
    for drawing in drawings:
        assert 'role="img"' in drawing
        labels = re.search(r'aria-labelledby="(\S+) (\S+)"', drawing)
        assert labels
        for part, name in zip(("title", "desc"), labels.groups(), strict=True):
            assert re.search(rf'<{part} id="{name}">[^<]+</{part}>', drawing)
    after = vault.split("</svg>")[1:]
    assert all(re.match(r"\s*</div></figure>\s*(<div[^>]*>\s*<table|<details><summary>)", part) for part in after)
    assert vault.count("</details>") == 4
    assert "Before: 1,122 records, most of them at a risk of 0.1 to 1, the riskiest at 1 to ∞." in vault
    assert "age: 9 % released as is, 71 % generalized, 20 % suppressed." in vault
    assert (
        "8 recodings of 50 sampled records, 3 of them on the frontier. This release: mean weighted risk 0.021" in vault
    )
    assert "Floor 8: mean weighted risk 0.02." in vault


def test_parts_of_the_dictionary_are_told(vault: str):
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "|", vault))
    assert "|100 %||0.75||0.0125|" in text
    assert "|10 %||0.875||0.125|" in text
    assert "The dictionary is the table itself." in text
    another = replace(VAULT, evidence=replace(VAULT.evidence, trade_off=replace(TRADE_OFF, own=False)))
    assert "The dictionary is the one the policy names." in render(another)


def test_a_map_of_some_recodings_says_which(vault: str):
    part = replace(TRADE_OFF, nodes=6, kept=((0, 1, 3), (0, 1)))
    page = " ".join(render(replace(VAULT, evidence=replace(VAULT.evidence, trade_off=part))).split())
    said = (
        "Of the 8 recodings of these hierarchies 6 are evaluated, since all would take too long: levels of age are left"
    )
    assert said in page
    assert "are evaluated, since" not in vault


def test_the_numbers_of_the_charts_are_in_their_tables(vault: str):
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "|", vault))
    for row in (
        "|0||0.001||0||1|",
        "|1||∞||12||0|",
        "|age||2||10 years||600||53.5 %|",
        "|this release||0.021||8.25||–|",
        "|k = 5 |age: 5 years, $a$ &lt;script&gt;alert(1)&lt;/script&gt; --&gt; id=&#34;x&#34; 年: *|||0.025||8.75||2|",
        "|8||0.02||8.5||2||1.25||1.00|",
        "|rows||30,162||30,150|",
        "|smallest class||–||7|",
        "|x |of few|||60 %||0 %|",
        "|before||39||–||4.5|",
        "|after||30-39||*||0.25|",
        "|after||not released|",
        "|0.52||3|",
    ):
        assert row in text, row
    assert "|0.04||7|" not in text, "not on the frontier"


def test_a_mark_says_what_it_is_when_it_is_pointed_at(vault: str):
    """Without a script: titles inside the drawing, in the order of the marks."""
    drawing = next(one for one in re.findall(r"<svg\b.*?</svg>", vault, flags=re.DOTALL) if 'id="map-title"' in one)
    marks = re.findall(r'<use [^>]*x="([\d.]+)" y="([\d.]+)"[^>]*/><title>([^<]*)</title>', drawing)
    told = [text for *_, text in marks]
    # Risks that are not finite have no place.
    assert len(told) == 5 - 1 + 2 + 1 + 1
    assert told[-1] == "this release: mean weighted risk 0.021, mean utility 8.25"
    assert "floor 8: mean weighted risk 0.02, mean utility 8.5" in told
    assert [text for text in told if text.startswith("k = 5, age: 5 years")]
    places = {text.split(":")[-1]: (float(x), float(y)) for x, y, text in marks}
    high, low = places[" mean weighted risk 0.5, mean utility 18"], places[" mean weighted risk 0, mean utility 0"]
    assert high[0] > low[0], "more risk stands further right"
    assert high[1] < low[1], "more utility stands further up"


def test_the_first_screen_says_what_matters(vault: str):
    first = Page(vault).text.split("Disclosure risk")[0]
    for text in ("What is released", "30,162 rows.", "To whom it is safe", "What was lost", "Much."):
        assert text in first
    assert vault.index("At a glance") < vault.index("What this release states") < vault.index('aria-label="Contents"')


def test_contents_lead_to_every_section(vault: str):
    anchors = re.findall(r'<li><a href="#([^"]*)">', vault)
    assert len(anchors) == len(set(anchors))
    headings = re.findall(r'<h2 id="([^"]*)"', vault)
    assert anchors == [one for one in headings if one not in ("headline", "guarantee")]


@pytest.mark.parametrize("part", ["pairs", "riskiest", "trade_off"])
def test_a_public_edition_holds_nothing_of_records(part: str):
    public = replace(VAULT, edition="public", evidence=Evidence())
    kept = Evidence(**{part: getattr(VAULT.evidence, part)})
    with pytest.raises(ValueError, match="cannot hold evidence"):
        replace(public, evidence=kept)
    made_up = Evidence(pairs=(RowPair(("99",), ("*",)),))
    assert "fictitious" in render(replace(public, evidence=made_up, levels=VAULT.levels[:1]))


def test_sections_come_with_their_data_only(vault: str):
    assert re.findall(r"<h2[^>]*>([^<]*)</h2>", vault) == [
        "At a glance",
        "What this release states",
        "Rows before and after",
        "Disclosure risk",
        "Riskiest classes",
        "Utility",
        "Generalization by attribute",
        "Risk against utility",
        "Effect of the utility floor",
        "If the attacker's dictionary is smaller",
        "Key numbers",
        "Parameters of the statement",
        "Checks",
        "What was done",
        "Words used here",
    ]
    assert re.findall(r"<h2[^>]*>([^<]*)</h2>", render(BARE)) == ["What this release states", "Words used here"]
    bare = render(BARE)
    assert not {"table", "svg", "figure", "details", "ol", "ul"} & set(Page(bare).tags)


@pytest.mark.parametrize("kept", ["risk_after", "risk_histogram_after", "utility", "levels", "headline"])
def test_each_part_can_stand_alone(kept: str):
    page = render(replace(BARE, edition="vault", **{kept: getattr(VAULT, kept)}))
    assert len(re.findall("<h2", page)) == 3, "its own, what is stated, and the words"
    Page(page)


def test_each_status_is_a_word_with_its_meaning():
    for status, meaning in (
        ("proved", "mathematical proof"),
        ("tested", "this very table"),
        ("heuristic", "without a proof"),
    ):
        page = Page(render(replace(BARE, guarantee=Guarantee("risk", "Something.", status, {}))))
        assert status in page.text
        assert meaning in page.text


def test_infinity_is_shown_and_explained(vault: str):
    assert "∞ is the risk of a record" in vault
    assert "went from ∞ to 0.0183." in vault
    finite = replace(VAULT, risk_before=Summary(1.83, 2.0, 0.1))
    assert "went from 1.83 to 0.0183, a factor of 100 less." in render(finite)
    assert "∞ is the risk" not in render(finite)


def test_a_dp_report_says_what_it_costs():
    text = re.sub(r"\s+", " ", Page(render(DP)).text)
    assert DP.guarantee.statement in text
    assert "At most 1 − e^(−ε₂) of the rows can be published, here 50.3 % (ε₂ = 0.7)" in text
    assert "Rare combinations of values are never published: one appears only if at least 31 rows" in text
    assert "exponential draw" in text
    assert "is a utility feature" in text
    assert "delta = 1e-9" in text
    bare = Page(render(replace(DP, guarantee=replace(DP.guarantee, parameters={})))).text
    assert "can be published, whatever the other settings" in re.sub(r"\s+", " ", bare)


def test_only_the_vault_edition_shows_run_times_and_its_warning(vault: str):
    public = render(replace(VAULT, edition="public", evidence=Evidence()))
    assert "14.8 s" in vault
    assert "14.8 s" not in public
    assert "Keep inside the trusted zone" in vault
    assert "Keep inside the trusted zone" not in public


@pytest.mark.parametrize(
    "leak",
    [
        {"risk_before": Summary(1, 1, 1)},
        {"risk_after": Summary(1, 1, 1)},
        {"risk_histogram_before": Histogram((0.0, 1.0), (5,))},
        {"risk_histogram_after": Histogram((0.0, 1.0), (5,))},
        {"compared": (Compared("rows", 30162, 7),)},
        {"stages": (StageRecord("Keep", "Kept.", {}, None, 0.0),)},
        {"checks": (Check("input", "row count", "error", True, "some", 30162),)},
    ],
    ids=lambda leak: next(iter(leak)),
)
def test_a_public_dp_edition_cannot_hold_exact_facts(leak: dict):
    with pytest.raises(ValueError, match="public edition of a differentially private release cannot hold"):
        replace(DP, **leak)
    assert replace(DP, edition="vault", **leak)


def test_failed_checks_are_words_too(vault: str):
    assert "✗ failed" in vault
    assert "1 of 2 checks passed. 1 failed as warning." in vault
    stopped = replace(VAULT, checks=(replace(VAULT.checks[0], level="error"),))
    assert "1 failed as error: nothing may be published." in render(stopped)


@pytest.mark.parametrize("report", [VAULT, DP])
def test_to_dict_is_json_without_loss_of_infinity(report: Report):
    text = json.dumps(as_json(report), allow_nan=False)
    found = json.loads(text)
    assert found["guarantee"]["kind"] == report.guarantee.kind
    assert list(found) == list(report.__dataclass_fields__)
    if report is VAULT:
        assert found["risk_before"] == {"mean": "Infinity", "max": "Infinity", "min": 0.0021}
        assert found["risk_histogram_after"]["edges"][-1] == "Infinity"
        assert found["evidence"]["trade_off"]["recodings"][0] == {"levels": [0, 0], "risk": "Infinity", "utility": 20.0}
        assert "39" not in json.dumps(found["evidence"]), "rows are for the page alone"
        assert found["stages"][0]["seconds"] == 14.802


@pytest.mark.parametrize(
    "make",
    [
        lambda: Histogram((0.0, 1.0), ()),
        lambda: Histogram((0.0, 1.0), (1, 2)),
        lambda: Histogram((0.0, 0.0), (1,)),
        lambda: Histogram((math.nan, 1.0), (1,)),
        lambda: Histogram((0.0, 1.0), (-1,)),
        lambda: AttributeLevels("a", 0, ("*",), (1,)),
        lambda: AttributeLevels("a", 1, ("as is", "*"), (1,)),
        lambda: AttributeLevels("a", 1, ("as is",), (1, 2)),
        lambda: AttributeLevels("a", 1, ("as is", "*"), (1, -2)),
        lambda: replace(VAULT, risk_histogram_after=Histogram((0.0, 1.0), (1,))),
    ],
)
def test_parts_that_do_not_fit_are_refused(make):
    with pytest.raises(ValueError, match="must"):
        make()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (30162, "30,162"),
        (-1234567, "−1,234,567"),
        (0.0183421, "0.01834"),
        (105.23, "105.2"),
        (99999.6, "100,000"),
        (1.2e-05, "1.2e−5"),
        (9.2e-10, "9.2e−10"),
        (1.5e21, "1.5e21"),
        (math.inf, "∞"),
        (-math.inf, "−∞"),
        (math.nan, "undefined"),
    ],
)
def test_short_numbers(value: float, text: str):
    assert short_number(value) == text


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=9, unique=True).map(sorted),
    st.sampled_from(["plain", "positive", "from zero"]),
    st.booleans(),
    st.booleans(),
)
def test_bins_keep_their_order_on_any_axis(edges: list[float], kind: str, below: bool, above: bool):
    if kind != "plain":
        edges = sorted({abs(edge) + 1e-6 for edge in edges})
        edges = [0.0, *edges] if kind == "from zero" else edges
    edges = ([-math.inf] if below else []) + edges + ([math.inf] if above else [])
    if len(edges) < 2:
        return
    places, ticks = charts._bin_positions(edges)
    assert len(places) == len(edges)
    assert all(math.isfinite(place) for place in places)
    assert all(low <= high for low, high in pairwise(places))
    assert len(ticks) >= 2
    assert all(places[0] - 1e-9 <= place <= places[-1] + 1e-9 for place, _ in ticks)


def test_log_bins_of_one_ratio_have_one_width():
    places, ticks = charts._bin_positions((0.0, 0.001, 0.01, 0.1, 1.0, math.inf))
    assert np.diff(places) == pytest.approx([1.0] * 5)
    assert ticks[0] == (places[0], "0")
    assert ticks[-1] == (places[-1], "∞")


def test_text_on_every_level_has_contrast():
    def luminance(colour) -> float:
        parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in mpl.colors.to_rgb(colour)]
        return float(np.dot([0.2126, 0.7152, 0.0722], parts))

    for tallest in (1, 2, 5, 12):
        shades = charts._level_colours(tallest)
        lightness = [luminance(shade) for shade in (*shades, charts._SUPPRESSED)]
        assert all(low > high for low, high in pairwise(lightness))
        for shade, light in zip((*shades, charts._SUPPRESSED), lightness, strict=True):
            low, high = sorted((light, luminance(charts._ink_on(shade))))
            assert (high + 0.05) / (low + 0.05) >= 4.5
