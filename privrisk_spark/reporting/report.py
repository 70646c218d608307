"""The report a person reads: one HTML file that is complete in itself.

The page loads nothing and runs nothing, and says so to the browser (content security policy); whatever text
it is given is escaped. Every chart has a title, a description and its numbers in a table. The same `Report`
gives the same bytes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from markupsafe import Markup

from privrisk_spark.claims import Status
from privrisk_spark.errors import listing
from privrisk_spark.reporting.headline import RISK_NAMES, RISK_UNITS, anonymity_name, recoding_name, shown
from privrisk_spark.reporting.models.texts import texts_of
from privrisk_spark.reporting.numbers import short_number
from privrisk_spark.reporting.page_templates import can_draw, fill
from privrisk_spark.results.release import AttributeLevels, LinkageFacts, Report, Summary
from privrisk_spark.results.trade_off import TradeOffFacts

__all__ = ["MEANINGS", "render"]

_EDITIONS: Final = {"public": "public edition", "vault": "vault edition"}
_COMPARED: Final = {
    "vault": "The table and its release, side by side; – is not measured by a release (privrisk assess does)",
    "public": "The release in figures that this edition may tell",
}
MEANINGS: Final[Mapping[Status, str]] = {
    "proved": (
        "There is a mathematical proof of this statement, under the assumptions it names, and the program is "
        "tested against the formulas of the proof."
    ),
    "tested": (
        "This was computed or checked on this very table and release. It says nothing about other tables, or "
        "about an adversary who knows more than the dictionary used here."
    ),
    "heuristic": (
        "This is the result of a search or an approximation without a proof. Nothing better was found; that "
        "does not mean that nothing better exists."
    ),
}
"""What a status means, for a person."""

# Rows of the frontier's table; a frontier can be long.
_FRONTIER_ROWS: Final = 60


def render(report: Report) -> str:
    """Return a report as one self-contained HTML page.

    Parameters
    ----------
    report : Report
        What to show. Sections whose data are None or empty are left out. A public edition shows no run times.

    Returns
    -------
    str
        The page, to be written as UTF-8.
    """
    before, after = report.risk_histogram_before, report.risk_histogram_after
    histograms = [(name, item) for name, item in (("before", before), ("after", after)) if item is not None]
    risk_rows = _risk_rows(report)
    statuses = {stage.status for stage in report.stages}
    texts, meanings = texts_of(report.guarantee.kind), dict(MEANINGS)
    if texts.unproved is not None:
        meanings["heuristic"] = texts.unproved
    return fill(
        "report.html.j2",
        report=report,
        edition=_EDITIONS[report.edition],
        dp=texts.guarantees,
        meanings=meanings,
        proved=texts.proved if report.guarantee.status == "proved" else None,
        stage_meanings=[(status, text) for status, text in meanings.items() if status in statuses],
        warnings=texts.warn(report.guarantee.parameters),
        risk_rows=risk_rows,
        risk_name=RISK_NAMES[report.risk_model],
        risk_unit=RISK_UNITS[report.risk_model],
        risk_caption=_RISK_CAPTIONS[report.risk_model],
        risk_sentence=_risk_sentence(report),
        infinite_risk=any(math.isinf(number) for _, item in risk_rows for number in (item.mean, item.max)),
        histograms=bool(histograms),
        linkage_sentences=_linkage_sentences(report.linkage) if report.linkage is not None else [],
        linkage_rows=_linkage_rows(report.linkage) if report.linkage is not None else [],
        bin_names=[name for name, _ in histograms],
        bins=_bins([item.edges for _, item in histograms], [item.counts for _, item in histograms]),
        utility_percent=_utility_percent(report),
        level_rows=_level_rows(report),
        **_trade_off(report),
        **_charts(report),
        compared_rows=[(one, shown(one.before), shown(one.after)) for one in report.compared],
        told_before=report.edition == "vault",
        compared_caption=_COMPARED[report.edition],
        contents=_contents(report),
        checks_sentence=_checks_sentence(report),
        checks_observed=any(check.observed is not None for check in report.checks),
    )


def _charts(report: Report) -> dict[str, Markup | None]:
    """The charts of the page, each None where there is nothing to draw, or charts are not drawn."""
    charts: dict[str, Markup | None] = dict.fromkeys(["risk_svg", "levels_svg", "map_svg", "floor_svg"])
    if not can_draw():
        return charts
    from privrisk_spark.reporting import release_charts, trade_off_charts

    name = RISK_NAMES[report.risk_model]
    before, after = report.risk_histogram_before, report.risk_histogram_after
    if before is not None or after is not None:
        charts["risk_svg"] = Markup(release_charts.risk_chart(before, after, name=name))
    if report.levels:
        charts["levels_svg"] = Markup(release_charts.levels_chart(report.levels))
    facts = report.evidence.trade_off
    if facts is not None:
        charts["map_svg"] = Markup(trade_off_charts.map_chart(facts, report.levels, name=name))
        charts["floor_svg"] = Markup(trade_off_charts.floor_chart(facts, asked=report.floor, name=name))
    return charts


_RISK_CAPTIONS: Final = {
    "I": "Over the records. 1/ρ is a probability; the weighted risk Φ/ρ has the unit of the sensitivity Φ.",
    "II": "Over the records. 1/ρ is a probability.",
    "III": "Over the records. 1/ρ is a probability; the weighted risk Φ · ln(N/ρ) has the unit of Φ times nats.",
}


def _risk_rows(report: Report) -> list[tuple[str, Summary]]:
    """Probability and weighted risk, before and after; under model II, of which the risk is the probability, once."""
    found, weighted = "probability that a record is found, 1/ρ", "weighted risk, Φ/ρ"
    if report.risk_model == "III":
        weighted = "weighted risk, Φ · ln(N/ρ)"
    rows = [(f"{found}: before", report.identified_before), (f"{found}: after", report.identified_after)]
    if report.risk_model != "II" or not any(summary for _, summary in rows):
        name = found if report.risk_model == "II" else weighted
        rows += [(f"{name}: before", report.risk_before), (f"{name}: after", report.risk_after)]
    return [(name, summary) for name, summary in rows if summary is not None]


def _risk_sentence(report: Report) -> str | None:
    sentences = []
    probability = _change("probability that a record is found", report.identified_before, report.identified_after)
    if probability:
        sentences.append(probability)
    if report.risk_model != "II" or not probability:
        sentences.append(_change(RISK_NAMES[report.risk_model], report.risk_before, report.risk_after))
    return " ".join(filter(None, sentences)) or None


def _change(name: str, before: Summary | None, after: Summary | None) -> str:
    """What a mean went from and to, in a sentence; empty where one is not told."""
    if before is None or after is None:
        return ""
    text = f"The mean {name} went from {short_number(before.mean)} to {short_number(after.mean)}"
    if math.isfinite(before.mean) and 0 < after.mean < before.mean:
        text += f", a factor of {short_number(before.mean / after.mean)} less"
    return f"{text}."


def _linkage_sentences(facts: LinkageFacts) -> list[str]:
    before, after = facts.unlinked_risk.mean, facts.linked_risk.mean
    rise = f"The mean weighted risk of a record goes from {short_number(before)} to {short_number(after)}"
    if 0 < before < after < math.inf:
        rise += f", a factor of {short_number(after / before)} more"
    share = f" ({100 * facts.linked / facts.rows:.1f} %)" if facts.rows else ""
    sentences = [
        f"An attacker may link released records to rows that tell {listing(facts.attributes)} too, with the "
        f"probabilities of the linkage table. {rise}.",
        f"{short_number(facts.linked)} of {short_number(facts.rows)} records{share} have a link, "
        f"{short_number(facts.links)} links in all. What the probabilities of a record leave of 1 is no link.",
    ]
    if facts.contradicted:
        sentences.append(
            f"The dictionary holds no row that fits the record and {short_number(facts.contradicted)} of these links. "
            "Such a record is counted as a row of its own, which is an upper bound of its risk."
        )
    return sentences


def _linkage_rows(facts: LinkageFacts) -> list[tuple[str, Summary]]:
    return [
        ("the release alone", facts.unlinked_risk),
        ("expected after linkage", facts.linked_risk),
        ("with each record's costliest possible link", facts.greatest_risk),
    ]


def _bins(
    edges: Sequence[Sequence[float]], counts: Sequence[Sequence[int]]
) -> list[tuple[float, float, tuple[int, ...]]]:
    if not edges:
        return []
    return [(edges[0][i], edges[0][i + 1], tuple(column[i] for column in counts)) for i in range(len(counts[0]))]


def _utility_percent(report: Report) -> float | None:
    if report.utility is None or report.utility_max is None:
        return None
    percent = 100 * report.utility.mean / report.utility_max if report.utility_max else math.nan
    return percent if 0 <= percent <= 100 else None


def _level_rows(report: Report) -> list[tuple[str, int, str, int, str]]:
    rows = []
    for attribute in report.levels:
        total = sum(attribute.rows)
        for level, (name, count) in enumerate(zip(attribute.level_names, attribute.rows, strict=True)):
            share = f"{100 * count / total:.1f} %" if total else "–"
            rows.append((attribute.attribute, level, name, count, share))
    return rows


def _trade_off(report: Report) -> dict[str, Any]:
    """What the page shows of other recodings."""
    facts, names = report.evidence.trade_off, report.levels
    if facts is None:
        return {"trade_off": None}
    best = [facts.recodings[i] for i in facts.frontier]
    hidden = len(best) > _FRONTIER_ROWS
    return {
        "trade_off": facts,
        "anonymity": anonymity_name(facts),
        "anonymous_rows": [(one, recoding_name(one.levels, names)) for one in facts.anonymous],
        "frontier_rows": [(recoding_name(one.levels, names), one) for one in best[-_FRONTIER_ROWS:]],
        "frontier_caption": f"The frontier of {facts.nodes:,} recodings"
        + (f"; the last {_FRONTIER_ROWS} of {len(best):,} rows" if hidden else ""),
        "some": _some(facts, names),
        "of_sample": f"of {facts.records:,} records that are sampled by a fingerprint of their ids",
    }


def _some(facts: TradeOffFacts, names: Sequence[AttributeLevels]) -> str:
    """Say which recodings were evaluated, where not all were."""
    if facts.nodes == facts.of_nodes:
        return ""
    thinned = [one.attribute for one, kept in zip(names, facts.kept, strict=True) if len(kept) < len(one.level_names)]
    return (
        f"Of the {facts.of_nodes:,} recodings of these hierarchies {facts.nodes:,} are evaluated, since all would take "
        f"too long: levels of {listing(thinned)} are left out evenly, the first and the last never. The frontier, the "
        "squares and the points of k are the best of these; the release was chosen among all, so it may be better."
    )


def _contents(report: Report) -> list[tuple[str, str]]:
    """Anchor and heading of each section that the page has, in its order."""
    evidence = report.evidence
    found = {
        ("limits", "What the guarantee costs"): texts_of(report.guarantee.kind).guarantees,
        ("rows", "Rows before and after"): bool(evidence.pairs),
        ("risk", "Disclosure risk"): report.risk_before is not None
        or report.risk_after is not None
        or report.risk_histogram_before is not None
        or report.risk_histogram_after is not None,
        ("riskiest", "Riskiest classes"): bool(evidence.riskiest),
        ("linkage", "Record linkage"): report.linkage is not None,
        ("utility", "Utility"): report.utility is not None,
        ("levels", "Generalization by attribute"): bool(report.levels),
        ("map", "Risk against utility"): evidence.trade_off is not None,
        ("floor", "Effect of the utility floor"): evidence.trade_off is not None,
        ("part", "If the attacker's dictionary is smaller"): evidence.trade_off is not None,
        **{(f"section-{i}", section.heading): True for i, section in enumerate(report.sections, 1)},
        ("numbers", "Key numbers"): bool(report.facts),
        ("parameters", "Parameters"): bool(report.guarantee.parameters),
        ("checks", "Checks"): bool(report.checks),
        ("stages", "What was done"): bool(report.stages),
        ("words", "Words used here"): True,
    }
    return [anchor for anchor, there in found.items() if there]


def _checks_sentence(report: Report) -> str:
    passed = sum(check.passed for check in report.checks)
    text = f"{passed} of {len(report.checks)} checks passed."
    errors = sum(not check.passed and check.level == "error" for check in report.checks)
    warnings = len(report.checks) - passed - errors
    if errors:
        text += f" {errors} failed as error: nothing may be published."
    if warnings:
        text += f" {warnings} failed as warning."
    return text
