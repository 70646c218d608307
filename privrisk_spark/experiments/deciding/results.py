"""The experiments of several tables, as figures for a program and as plots for a person."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np

from privrisk_spark.experiments.deciding.effort import Effort, effort
from privrisk_spark.experiments.deciding.heuristics import Genetic, genetic_search
from privrisk_spark.experiments.deciding.plots import plots
from privrisk_spark.experiments.deciding.risk_utility import RiskUtility, risk_utility
from privrisk_spark.experiments.deciding.subject import Subject
from privrisk_spark.experiments.deciding.trade_offs import TradeOff, trade_off
from privrisk_spark.kernels.lattice.lattice import Lattice
from privrisk_spark.results.plots import Plot
from privrisk_spark.results.release import json_safe

FLOORS = tuple(i / 10 for i in range(1, 10))
"""Least utilities, as shares of the greatest."""

ANONYMITY = (2, 5, 10, 20, 50, 100)
"""Values of k of k-anonymity; F12 goes from 1 to 100."""

BUDGETS = ((10, 5), (20, 10), (40, 20), (60, 60))
"""Population and generations of the genetic search."""

QUANTILES = tuple(i / 10 for i in range(11))
"""Of the records' crossings: the values of λ at which the aggregate model meets the threshold model."""

MEASURED = ("seconds", "exact_seconds")
"""Arrays that hold times; everything else is a function of the data and the options."""


@dataclass(frozen=True)
class Sizes:
    """How much is run.

    Attributes
    ----------
    rows : int
        Of the generated table.
    attributes : int
        Of the generated table.
    records : int
        Most distinct records decided for means over a table.
    searches : int
        Records whose lattices are searched one by one, at each point; five times as many for the aggregate model.
    seed : int
    """

    rows: int = 10_000
    attributes: int = 7
    records: int = 2_000
    searches: int = 10
    seed: int = 2012


@dataclass(frozen=True, eq=False)
class Experiment:
    """Everything about one table."""

    data: str
    basis: str
    attributes: tuple[str, ...]
    effort: Effort
    risk_utility: RiskUtility
    genetic: Genetic
    trade_off: TradeOff

    @property
    def plots(self) -> tuple[Plot, ...]:
        """Plots, in the order of the page."""
        return plots(self.data, self.attributes, self.effort, self.risk_utility, self.genetic, self.trade_off)


@dataclass(frozen=True, eq=False)
class DecidingResult:
    """The experiments of every table.

    Attributes
    ----------
    created, version : str
    sizes : Sizes
    experiments : tuple of Experiment
    notes : tuple of str
        What a reader must know besides.
    private : bool
        Whether figures are about a table of the user.
    """

    created: str
    version: str
    sizes: Sizes
    experiments: tuple[Experiment, ...]
    notes: tuple[str, ...] = ()
    private: bool = False

    @property
    def plots(self) -> list[list[Plot]]:
        """Plots of the same kind together, in the order of the page."""
        return [list(same) for same in zip(*(one.plots for one in self.experiments), strict=True)]

    def to_dict(self) -> dict[str, Any]:
        """Return everything, JSON-safe, for ``deciding.json``."""
        return {
            "date": self.created,
            "version": self.version,
            "sizes": plain(self.sizes),
            "notes": list(self.notes),
            "measured": list(MEASURED),
            "experiments": [plain(one) for one in self.experiments],
            "plots": sentences(plot for one in self.experiments for plot in one.plots),
        }

    def to_csv(self) -> str:
        """Return one line per drawn point, for ``deciding.csv``."""
        return points_csv(plot for one in self.experiments for plot in one.plots)


def run(subject: Subject, sizes: Sizes) -> Experiment:
    """Make every experiment on one table.

    Parameters
    ----------
    subject : Subject
        Of at least one attribute.
    sizes : Sizes
    """
    seed, searches = sizes.seed, sizes.searches
    attributes = range(min(2, subject.k), subject.k + 1)
    return Experiment(
        data=subject.name,
        basis=basis(subject),
        attributes=subject.attributes,
        effort=effort(subject, seed=seed, records=searches, floors=FLOORS, attributes=attributes),
        risk_utility=risk_utility(subject, seed=seed, records=sizes.records, floors=FLOORS, anonymity=ANONYMITY),
        genetic=genetic_search(
            subject,
            seed=seed,
            records=searches,
            floors=(0.25, 0.5, 0.75),
            attributes=attributes,
            budgets=BUDGETS,
        ),
        trade_off=trade_off(
            subject, seed=seed, records=5 * searches, timed=searches, quantiles=QUANTILES, attributes=attributes
        ),
    )


def basis(subject: Subject) -> str:
    """What a table is, in words."""
    nodes = Lattice(subject.heights).n_nodes
    draws = len(subject.weightings)
    turns = f" Its weights were drawn {draws} times; records take the draws in turn." if draws > 1 else ""
    heights = ", ".join(str(height) for height in subject.heights)
    return (
        f"{subject.rows:,} rows, {len(subject.counts):,} of them distinct; {subject.k} attributes with hierarchies of "
        f"heights {heights}, so that a record's lattice has up to {nodes:,} nodes.{turns}"
    )


def sentences(plots: Iterable[Plot]) -> list[dict[str, Any]]:
    """What each plot says, for a result's JSON."""
    return [
        {
            "key": plot.key,
            "data": plot.data,
            "title": plot.title,
            "figure": plot.figure,
            "claim": plot.claim,
            "found": plot.found,
            "measured": plot.measured,
        }
        for plot in plots
    ]


def points_csv(plots: Iterable[Plot]) -> str:
    """One line per drawn point."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["experiment", "data", "panel", "series", "x_is", "x", "y_is", "y", "measured"])
    for plot in plots:
        for panel in plot.panels:
            for series in panel.series:
                for x, y in zip(series.x, series.y, strict=True):
                    name = [plot.key, plot.data, panel.title, series.name]
                    point = [panel.x_label, json_safe(x), panel.y_label, json_safe(y)]
                    writer.writerow([*name, *point, "yes" if plot.measured else "no"])
    return stream.getvalue()


def plain(value: object) -> Any:
    """Return a result as JSON can hold it; what is not finite becomes null."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(item) for item in value]
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return json_safe(value)
