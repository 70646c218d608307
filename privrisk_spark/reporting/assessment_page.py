"""An assessment as one page: the answer, before and after, what identifies, what is assumed, then every measure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from privrisk_spark.claims import Status
from privrisk_spark.reporting.numbers import short_number
from privrisk_spark.reporting.page_templates import can_draw, draw_plot, fill
from privrisk_spark.results.assessment import Assessment, Measured, Subject
from privrisk_spark.results.measures import Measure, read_families, read_measures

__all__ = ["render_assessment"]

_NAMES = {"table": "table", "release": "release"}

_HEADLINES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "Risk",
        (
            "records", "suppressed_records", "k", "uniques", "records_below_k", "prosecutor_max", "prosecutor_mean",
            "household_risk_max", "household_risk_mean",
            "k_map", "journalist_max", "marketer", "presence_max", "individual_risk_max", "expected_reidentifications",
            "tau_one", "tau_two",
            "special_uniques", "homogeneity_share", "t_closeness", "attacked_records", "p_reid_max",
        ),
    ),
    (
        "Utility",
        (
            "classes", "c_avg", "loss", "gcp", "precision", "non_uniform_entropy", "kl_divergence",
            "classification_metric",
            "classifier_accuracy", "majority_accuracy", "correlation_change",
        ),
    ),
)  # fmt: skip
"""Measures of the comparison, where they were taken."""

_ASSUMED = frozenset({"group", "candidates", "loss", "currency"})
"""Parameters that the table of assumptions has."""

_COUNTED = ("population", "sample", "households")
"""Parameters that say of how many a number is; they stand beside it."""

_UNSEEN = (
    frozenset({"subject", "set", "reason", "none", "rule", "failing_records", "asked", "counted", "interval"})
    | _ASSUMED
    | frozenset(_COUNTED)
)
"""Parameters that do not tell one row from another."""

_UNITLESS = frozenset({"share", "probability", "score"})

_SURETY: dict[Status, str] = {"proved": "exact", "tested": "exact", "heuristic": "estimate"}
"""What a number is to a reader; 'tested' is said of the program, and could be taken for the table's having passed."""


@dataclass(frozen=True)
class _Cell:
    """A value for a person: what is shown, and a remark below it."""

    text: str
    remark: str = ""


@dataclass(frozen=True)
class _Row:
    """A measure, of each subject."""

    measure: Measure
    about: str
    cells: tuple[_Cell, ...]
    surety: str


def render_assessment(result: Assessment) -> str:
    """Return an assessment as a page to be written as UTF-8, which loads nothing and runs nothing."""
    sets = list(dict.fromkeys(str(one.parameters["set"]) for s in result.subjects for one in s.measured))
    charts = [
        [
            (plot, draw_plot(plot, prefix=f"{subject.name}-{plot.key}"))
            for plot in subject.plots
            if not plot.key.startswith("sizes-")
        ]
        for subject in result.subjects
    ]
    spread = [
        (plot, draw_plot(plot, prefix=f"{subject.name}-{plot.key}"), subject)
        for subject in result.subjects
        for plot in subject.plots
        if plot.key.startswith("sizes-")
    ]
    return fill(
        "assessment.html.j2",
        result=result,
        sets=sets,
        names=[_NAMES.get(subject.name, subject.name) for subject in result.subjects],
        compared={name: list(_compared(result, name)) for name in sets},
        sizes={name: _sizes(result, name, f"bars-{number}") for number, name in enumerate(sets)},
        identifying={name: _identifying(result, name) for name in sets},
        charts=charts,
        spread=spread,
        families=[(read_families()[family], list(_family(result, family, sets))) for family in _families(result)],
        infinite=list(_infinities(result, sets)),
        catalogue=read_measures(),
    )


def _families(result: Assessment) -> list[str]:
    there = {family for subject in result.subjects for family in subject.families()}
    return [family for family in read_families() if family in there]


def _in_set(subject: Subject, name: str, set_name: str) -> list[Measured]:
    return subject.find(name, set=set_name)


def _compared(result: Assessment, set_name: str) -> Iterator[tuple[str, list[_Row]]]:
    """Rows of the headline's comparison: measures of the whole set, by heading."""
    for heading, names in _HEADLINES:
        rows = [row for name in names for row in _rows(result, name, set_name) if "column:" not in row.about]
        if heading == "Risk":
            rows += [
                row
                for name in ("homogeneity_share", "t_closeness")
                for row in _rows(result, name, set_name)
                if "column:" in row.about
            ]
        if rows:
            yield heading, rows


def _family(result: Assessment, family: str, sets: Sequence[str]) -> Iterator[tuple[str, list[_Row]]]:
    for set_name in sets:
        rows = [
            row
            for name, measure in read_measures().items()
            if measure.family == family and name != "records_by_class_size"  # which are told as a histogram
            for row in _rows(result, name, set_name)
        ]
        if rows:
            yield set_name, rows


def _rows(result: Assessment, name: str, set_name: str) -> Iterator[_Row]:
    """A row for every different parameter of a measure, in the order they were measured."""
    found: dict[str, dict[int, Measured]] = {}
    for number, subject in enumerate(result.subjects):
        for one in _in_set(subject, name, set_name):
            found.setdefault(_about(one), {})[number] = one
    for about, of in found.items():
        cells = tuple(_cell(of.get(number)) for number in range(len(result.subjects)))
        measure = read_measures()[name]
        yield _Row(measure, about, cells, _SURETY[measure.status])


def _about(one: Measured) -> str:
    """What tells a row from others of the measure."""
    named: Mapping[str, object] = {key: value for key, value in one.parameters.items() if key not in _UNSEEN}
    if one.name == "records_by_class_size":
        return _bin(one)
    return ", ".join(
        f"{key.replace('_', ' ')}: {short_number(value) if isinstance(value, int | float) else value}"
        for key, value in named.items()
    )


def _bin(one: Measured) -> str:
    least, most = one.parameters["from"], one.parameters.get("to")
    return f"{least} and more" if most is None else f"{least}" if least == most else f"{least} to {most}"


def _cell(one: Measured | None) -> _Cell:
    if one is None:
        return _Cell("–")
    if one.value is None:
        why = str(one.parameters.get("none", one.parameters.get("reason", "")))
        text, _, more = why.partition(":")
        if text == "none needed":
            return _Cell(text, more.strip())
        return _Cell("none" if "none" in one.parameters else "not computed", why)
    unit = str(one.parameters.get("currency", one.measure.unit))
    if one.value == 1 and unit.endswith("s") and not unit.endswith("ss"):
        unit = "class" if unit == "classes" else unit.removesuffix("s")
    text = short_number(one.value) + ("" if unit in _UNITLESS else f" {unit}")
    return _Cell(text, "; ".join(_remarks(one)))


def _remarks(one: Measured) -> Iterator[str]:
    """What stands beside a value."""
    given = one.parameters
    if "failing_records" in given:
        asked, failing = (short_number(_real(given[key])) for key in ("asked", "failing_records"))
        yield f"asked {asked}; {failing} records miss it"
    if isinstance(interval := given.get("interval"), list | tuple):
        yield f"95 %: {' to '.join(short_number(_real(end)) for end in interval)}"
    if "rule" in given:
        yield str(given["rule"])
    for key in _COUNTED:
        if key in given:
            yield f"{key}: {short_number(_real(given[key]))}"


def _real(value: object) -> float:
    assert isinstance(value, int | float)
    return float(value)


def _sizes(
    result: Assessment, set_name: str, prefix: str
) -> tuple[Markup | None, list[str], list[tuple[str, list[int]]]] | None:
    """The histogram of class sizes, of which subjects it is, and the same as rows of a table."""
    subjects, bins = [], []
    for subject in result.subjects:
        found = _in_set(subject, "records_by_class_size", set_name)
        if not found:  # a masked release has classes only where they are claimed
            continue
        bins = [_bin(one) for one in found]
        subjects.append((_NAMES.get(subject.name, subject.name), [int(one.value or 0) for one in found]))
    if not bins:
        return None
    short = [name.replace(" to ", "–").replace(" and more", "+") for name in bins]
    rows = [(name, [records[i] for _, records in subjects]) for i, name in enumerate(bins)]
    svg = None
    if can_draw():
        from privrisk_spark.reporting.assessment_charts import size_chart

        svg = Markup(size_chart(short, subjects, prefix=prefix))
    return svg, [name for name, _ in subjects], rows


def _identifying(result: Assessment, set_name: str) -> list[tuple[str, list[tuple[str, list[str]]]]]:
    """Measures of single columns, the columns that identify most first, and of all together at the end."""
    table = result.subjects[0]
    order = [
        str(one.parameters["column"])
        for one in sorted(
            (one for one in _in_set(table, "separation", set_name) if "column" in one.parameters),
            key=lambda one: -float(one.value or 0),
        )
    ]
    rows = []
    for column in [*order, None]:
        cells = []
        for name in ("separation", "distinction", "suda_contribution"):
            of_subjects = [
                next((m for m in _in_set(s, name, set_name) if m.parameters.get("column") == column), None)
                for s in result.subjects
            ]
            there = any(one is not None for one in of_subjects)
            cells.append((read_measures()[name].title, [_cell(one).text for one in of_subjects] if there else ["–"]))
        rows.append((column if column is not None else "all of them together", cells))
    return rows if order else []


_INFINITE = {
    "delta_disclosure": (
        "some class lacks a value that the table has, which tells an attacker that a person of the class does not hold "
        "it: ln 0. Over the values that the classes do hold it is {finite}.",
        "delta_disclosure_present",
    ),
    "enhanced_beta_likeness": (
        "in some class a value is more frequent than any β allows, as its gain is above -ln p. The greatest gain is "
        "{finite} (basic beta-likeness).",
        "beta_likeness",
    ),
    "kl_divergence": (
        "some combination of the table lies in no released cell, so that no finite number says how far.",
        "",
    ),
}
"""Why a measure is infinite, and the measure that has a finite value for it."""


def _infinities(result: Assessment, sets: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each infinite value with what it means, and the finite one beside it."""
    for subject in result.subjects:
        for one in subject.measured:
            if one.value is None or not math.isinf(one.value):
                continue
            where = f"{one.measure.title}, {_NAMES.get(subject.name, subject.name)}"
            about = [str(one.parameters[key]) for key in ("column",) if key in one.parameters]
            about += [f"set {one.parameters['set']}"] if len(sets) > 1 else []
            text, finite = _INFINITE.get(one.name, ("it has no finite value here.", ""))
            beside = [
                other
                for other in subject.find(finite, set=one.parameters["set"])
                if other.parameters.get("column") == one.parameters.get("column")
            ]
            value = short_number(beside[0].value) if beside and beside[0].value is not None else "not known"
            yield ", ".join([where, *about]), f"∞: {text.format(finite=value)}"
