"""Plots of risk by dictionary and by rule: what is claimed, what this run found, and the lines that show it."""

from __future__ import annotations

import numpy as np

from privrisk_spark.reporting.numbers import rounded
from privrisk_spark.results.plots import Panel, Plot, Series, lines
from reproduce.dictionaries.growth import FORMS, Growth
from reproduce.dictionaries.rules import Rules
from reproduce.texts import least_to_most

_ROWS = "rows of the dictionary"


def plots(growth: Growth, rules: Rules) -> tuple[Plot, ...]:
    """All plots of one table, in the order of the page."""
    return (size_plot(growth), floor_plot(growth), bound_plot(growth), rules_plot(rules), best_plot(rules))


def size_plot(growth: Growth) -> Plot:
    """Risk by size of the dictionary and number of attributes (Lebanon et al. 2006, Fig. 1, left)."""
    names = [f"{k} attributes" if k > 1 else "1 attribute" for k in growth.attributes.tolist()]
    drop = growth.risk["linear"][:, 0] / growth.risk["linear"][:, -1]
    return Plot(
        key="size",
        title="Risk by dictionary and by what is disclosed",
        figure="Lebanon et al. 2006, Fig. 1 (left)",
        found=f"From the smallest dictionary to the largest, risk falls by factors of {least_to_most(drop.tolist())}, "
        f"most where {names[int(drop.argmax())]} {'is' if growth.attributes[drop.argmax()] == 1 else 'are'} disclosed.",
        panels=tuple(
            Panel(title, _ROWS, "mean risk", lines(names, growth.rows, growth.risk[form].T), log_y=True)
            for form, title in zip(FORMS, ("additive sensitivity", "multiplicative sensitivity"), strict=True)
        ),
    )


def floor_plot(growth: Growth) -> Plot:
    """Least risk by dictionary and floor (F12 Fig. 3.1)."""
    curves = growth.curves
    names = [f"c = {rounded(floor)}" for floor in curves.floors.tolist()]
    return Plot(
        key="floor",
        title="Least risk by dictionary and by the utility that is asked",
        figure="Fouad 2012, Fig. 3.1",
        found=f"At c = {rounded(curves.floors[-1])} it falls from {rounded(curves.minimal[0, -1])} to "
        f"{rounded(curves.minimal[-1, -1])}, at c = {rounded(curves.floors[0])} from "
        f"{rounded(curves.minimal[0, 0])} to {rounded(curves.minimal[-1, 0])}.",
        panels=(
            Panel(
                "", _ROWS, "mean of the least risks", lines(names, curves.dictionary_rows, curves.minimal), log_y=True
            ),
        ),
    )


def bound_plot(growth: Growth) -> Plot:
    """Estimated over true risk (Lebanon et al. 2006, Fig. 1, right; F12 Fig. 3.3)."""
    curves = growth.curves
    series = tuple(
        Series.of(f"true dictionary of {rows:,} rows", curves.true[s], curves.estimated, points=True)
        for s, rows in enumerate(curves.dictionary_rows.tolist())
    )
    ratio = curves.estimated / curves.true[-1]
    return Plot(
        key="bound",
        title="Estimated beside true risk",
        figure="Lebanon et al. 2006, Fig. 1 (right)",
        found=f"{int((curves.estimated < curves.true).sum())} of {curves.true.size} points lie below the line. Of the "
        f"largest dictionary the estimate is {least_to_most(ratio.tolist())} times the true risk.",
        panels=(Panel("", "true risk", "estimated risk", series, log_x=True, log_y=True, diagonal="y = x"),),
    )


def rules_plot(rules: Rules) -> Plot:
    """Every rule: risk over utility (F12 Fig. 3.5)."""
    order = np.arange(1, len(rules.risk) + 1)
    return Plot(
        key="rules",
        title="Every rule for a whole table",
        figure="Fouad 2012, Fig. 3.5",
        found=f"Here it is {float(np.corrcoef(rules.risk, rules.utility)[0, 1]):.3f} over {len(rules.risk)} rules.",
        panels=(
            Panel("risk", "rules by risk", "mean risk", (Series.of("risk", order, rules.risk),)),
            Panel(
                "utility", "rules by risk", "mean utility", (Series.of("utility", order, rules.utility, points=True),)
            ),
            Panel("both", "mean utility", "mean risk", (Series.of("rule", rules.utility, rules.risk, points=True),)),
        ),
    )


def best_plot(rules: Rules) -> Plot:
    """Best rules (F12 Fig. 3.6), beside a rule of its own for each record."""
    return Plot(
        key="best",
        title="The best rule",
        figure="Fouad 2012, Fig. 3.6",
        found=f"The least risk goes from {rounded(float(np.nanmin(rules.least_risk)))} to "
        f"{rounded(float(np.nanmax(rules.least_risk)))} as more utility is asked; with a rule of its own for each "
        f"record from {rounded(float(np.nanmin(rules.of_records)))} to {rounded(float(np.nanmax(rules.of_records)))}.",
        panels=(
            Panel(
                "least risk",
                "least utility c",
                "mean risk",
                (
                    Series.of("one rule for the table", rules.floors, rules.least_risk),
                    Series.of("a rule for each record", rules.floors, rules.of_records),
                ),
            ),
            Panel(
                "greatest utility",
                "greatest risk c",
                "mean utility",
                (Series.of("one rule for the table", rules.bounds, rules.greatest_utility),),
                log_x=True,
            ),
        ),
    )
