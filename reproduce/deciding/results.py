"""The experiments on deciding, each on one table, and what they find together (Fouad 2012; F12)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from privrisk_spark.kernels.lattice.lattice import Lattice
from privrisk_spark.reporting.numbers import short_number
from privrisk_spark.results.plots import Plot
from reproduce.deciding.effort import Effort, effort
from reproduce.deciding.heuristics import Genetic, genetic_search
from reproduce.deciding.plots import plots
from reproduce.deciding.risk_utility import RiskUtility, risk_utility
from reproduce.deciding.subject import Subject
from reproduce.deciding.trade_offs import TradeOff, trade_off
from reproduce.result import Findings, Remark, plain
from reproduce.sizes import size

FLOORS = tuple(i / 10 for i in range(1, 10))
"""Least utilities, as shares of the greatest."""

ANONYMITY = (2, 5, 10, 20, 50, 100)
"""Values of k of k-anonymity; F12 goes from 1 to 100."""

BUDGETS = ((10, 5), (20, 10), (40, 20), (60, 60))
"""Population and generations of the genetic search."""

QUANTILES = tuple(i / 10 for i in range(11))
"""Of the records' crossings: the values of λ at which the aggregate model meets the threshold model."""

MEASURED = ("seconds", "exact_seconds", "unprobed_seconds")
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
    """

    rows: int = size(10_000)
    attributes: int = size(7, 2, 10)
    records: int = size(2_000)
    searches: int = size(10)
    seed: int = size(2012, 0)


@dataclass(frozen=True, eq=False)
class TableResult:
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


def run_on(subject: Subject, sizes: Sizes) -> TableResult:
    """Make every experiment on one table.

    Parameters
    ----------
    subject : Subject
        Of at least one attribute.
    """
    seed, searches = sizes.seed, sizes.searches
    attributes = range(min(2, subject.k), subject.k + 1)
    return TableResult(
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


def findings(found: Sequence[TableResult], sizes: Sizes, notes: Sequence[str] = ()) -> Findings:
    """Put together what was found on every table.

    Parameters
    ----------
    found : sequence of TableResult
        At least one.
    sizes : Sizes
        Those it was found with.
    notes : sequence of str, default ()
        What a reader must know besides.
    """
    searches, models = short_number(sizes.searches), short_number(5 * sizes.searches)
    return Findings(
        statement="The comparisons of Fouad (2012), chapters 3 to 5, on tables one can have: utility is depth, "
        "sensitivity is additive with modified harmonic means for inner nodes, and the attacker knows the table.",
        tables=tuple(Remark(one.basis, one.data) for one in found),
        remarks=(
            Remark(
                f"Searches of one lattice are means over {searches} records per point (of the aggregate model, "
                f"{models}), table means over {short_number(sizes.records)} distinct records at most, both drawn by "
                "how often they occur."
            ),
            Remark(
                "Times are CPU times of one process on one machine and differ from run to run; everything else is a "
                "function of data, sizes and seed."
            ),
        ),
        plots=tuple(zip(*(one.plots for one in found), strict=True)),
        figures={"measured": list(MEASURED), "experiments": [plain(one) for one in found]},
        notes=tuple(notes),
    )
