"""A first policy and the profile behind it as one page: what is proposed of each column, floors, figures."""

from __future__ import annotations

from collections.abc import Sequence

from privrisk_spark.reporting.numbers import percent, rounded
from privrisk_spark.reporting.page_templates import draw_plot, fill
from privrisk_spark.results.first_policy import ColumnGuess, FirstPolicy
from privrisk_spark.results.plots import Panel, Plot, Series
from privrisk_spark.results.profile import ColumnProfile

__all__ = ["render_first_policy"]

_ROLES = {
    "identifier": "never released",
    "quasi-identifier": "generalized",
    "sensitive": "released as it is, or coarser",
    "insensitive": "released as it is",
}


def render_first_policy(result: FirstPolicy) -> str:
    """Return a first policy as a page to be written as UTF-8, for the vault; it loads nothing and runs nothing.

    It holds no value of a record: no least, greatest or frequent one.
    """
    floors = result.floors
    return fill(
        "profile.html.j2",
        result=result,
        profile=result.profile,
        guesses=result.columns,
        counts=[(role, said, sum(one.role == role for one in result.columns)) for role, said in _ROLES.items()],
        floors=floors,
        chart_svg=None if floors is None else draw_plot(_floor_plot(result), prefix="floors"),
        columns=[(one, _about(one)) for one in result.profile.columns],
        suppressed=[] if floors is None else _suppressed(result.columns, result),
        percent=percent,
        rounded=rounded,
    )


def _suppressed(columns: Sequence[ColumnGuess], result: FirstPolicy) -> list[tuple[str, list[str]]]:
    """Share of the rows in which each quasi-identifier is suppressed, by floor."""
    assert result.floors is not None
    return [
        (one.column, [percent(figure.suppressed[one.column]) for figure in result.floors.figures])
        for one in columns
        if one.role == "quasi-identifier"
    ]


def _floor_plot(result: FirstPolicy) -> Plot:
    floors = result.floors
    assert floors is not None
    series = Series(
        "floors",
        tuple(100 * one.kept for one in floors.figures),
        tuple(one.mean_risk for one in floors.figures),
        labels=tuple("proposed" if one is floors.chosen else "" for one in floors.figures),
    )
    return Plot(
        key="floors",
        title="Risk and what is kept, by floor",
        figure="",
        found="The less must be kept, the lower the risk.",
        panels=(Panel("", "information kept, %", "mean risk", (series,)),),
        data=result.title,
    )


def _about(column: ColumnProfile) -> list[tuple[str, str]]:
    """Figures of a column, by name."""
    found = [
        ("type", column.type if column.kind == column.type else f"{column.type}, holds {_HOLDS[column.kind]}"),
        ("missing", _of(column.missing + column.blank, column.rows)),
        ("different values", f"{column.distinct:,}" if column.exact else f"about {column.distinct:,}"),
        ("information", f"{rounded(column.information)} bits"),
    ]
    if column.unique is not None:
        found.append(("rows alone with their value", _of(column.unique, column.rows)))
    if column.lengths is not None:
        least, greatest, mean = column.lengths
        found.append(
            ("characters", str(least) if least == greatest else f"{least} to {greatest}, {rounded(mean)} on average")
        )
    if column.variants:
        found.append(("differ by case or blanks alone", f"{column.variants:,}"))
    if column.shapes:
        found.append(("shapes", ", ".join(f"{shape} {percent(share)}" for shape, share in column.shapes.items())))
    return found


_HOLDS = {
    "number": "numbers", "date": "dates", "time": "dates with a time of day", "boolean": "yes or no", "text": "texts",
    "other": "values without a text",
}  # fmt: skip


def _of(count: int, rows: int) -> str:
    return f"{count:,} ({percent(count / rows)})" if count else "none"
