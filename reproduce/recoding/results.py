"""The experiments on recoding, each on one table, and what they find together (Raschia 2023; R23)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from privrisk_spark.kernels.disclosure.risk import RiskModel
from privrisk_spark.reporting.numbers import short_number
from privrisk_spark.results.plots import Plot
from reproduce.deciding.results import basis
from reproduce.deciding.subject import Subject
from reproduce.recoding.algorithms import Outcome, Recoded, run_all
from reproduce.recoding.claims import claims
from reproduce.recoding.monotone import Monotone, monotone
from reproduce.recoding.plots import plots
from reproduce.recoding.risks import ByClasses, Frontier, by_classes, frontier
from reproduce.result import Claim, Findings, Listing, Remark, plain
from reproduce.sizes import size

ANONYMITY = (2, 5, 10, 50)
"""Values of k."""

COMPARED = ("best", "datafly", "mondrian", "mondrian_relaxed", "hilbert", "bang")
"""Algorithms whose releases are attacked and held against optimal disclosures; of searches, by the metric ``loss``."""

MEASURED = ("seconds",)
"""Figures that are times; everything else is a function of the data and the options."""


@dataclass(frozen=True)
class RecodingSizes:
    """How much is run.

    Attributes
    ----------
    rows, attributes : int
        Of the generated table.
    records : int
        Most distinct records decided for means over a table.
    suppressed : int
        Rows that may be suppressed, in per cent, 0 to 100.
    """

    rows: int = size(10_000)
    attributes: int = size(7, 2, 10)
    records: int = size(2_000)
    suppressed: int = size(5, 0, 100)
    seed: int = size(2012, 0)


@dataclass(frozen=True)
class Attacked:
    """What the release of one algorithm is worth to an attacker."""

    method: str
    k: int
    risks: ByClasses


@dataclass(frozen=True, eq=False)
class TableResult:
    """Everything about one table."""

    data: str
    basis: str
    attributes: tuple[str, ...]
    limit: int
    outcomes: tuple[Outcome, ...]
    attacked: tuple[Attacked, ...]
    monotone: Monotone
    frontier: Frontier

    @property
    def plots(self) -> tuple[Plot, ...]:
        """Plots, in the order of the page."""
        of_classes = [(one.method, one.k, one.risks) for one in self.attacked]
        return plots(self.data, self.outcomes, of_classes, self.monotone, self.frontier)

    @property
    def claims(self) -> tuple[Claim, ...]:
        """What was claimed, and what was found."""
        of_classes = [(one.method, one.k, one.risks) for one in self.attacked]
        return claims(self.data, self.outcomes, of_classes, self.monotone, self.frontier)


def run_on(subject: Subject, sizes: RecodingSizes, *, model: RiskModel = "I") -> TableResult:
    """Run every algorithm on one table.

    Parameters
    ----------
    subject : Subject
        Of at least one attribute.
    model : {"I", "II", "III"}
        Of the officer's risk.
    """
    limit = sizes.suppressed * subject.rows // 100
    outcomes: list[Outcome] = []
    tables: list[tuple[str, int, Recoded]] = []
    for outcome, recoded in run_all(subject, ANONYMITY, limit):
        outcomes.append(outcome)
        if recoded is not None and outcome.method in COMPARED and outcome.metric in ("loss", ""):
            tables.append((outcome.method, outcome.k, recoded))
    return TableResult(
        data=subject.name,
        basis=basis(subject),
        attributes=subject.attributes,
        limit=limit,
        outcomes=tuple(outcomes),
        attacked=tuple(Attacked(method, k, by_classes(subject, table)) for method, k, table in tables),
        monotone=monotone(subject, ANONYMITY, sorted({0, limit})),
        frontier=frontier(subject, tables, seed=sizes.seed, records=sizes.records, model=model),
    )


def findings(found: Sequence[TableResult], sizes: RecodingSizes, notes: Sequence[str] = ()) -> Findings:
    """Put together what was found on every table.

    Parameters
    ----------
    found : sequence of TableResult
        At least one.
    sizes : RecodingSizes
        Those it was found with.
    notes : sequence of str, default ()
        What a reader must know besides.
    """
    return Findings(
        statement="Algorithms of k-anonymization that Raschia (2023) presents, on the same tables: what they cost, "
        "what they find, what attackers make of it, and how it compares with disclosures decided by risk.",
        tables=tuple(Remark(one.basis, one.data) for one in found),
        remarks=(
            Remark(
                f"Up to {sizes.suppressed} % of the rows may be suppressed as wholes. Every search is run for every k "
                "and metric, from the distinct records on; a node is one vector of levels for the whole table."
            ),
            Remark(
                "Local recoding gives every class levels of its own; these algorithms minimise no metric, and are "
                "measured by all. Suppressed rows are one class to an attacker."
            ),
            Remark(
                "The planning attacker has the parameters of Xia et al. (2015), and the table for the identified one: "
                "a person's group is the released class."
            ),
            Remark(
                f"Risk and utility of the frontier are means over {short_number(sizes.records)} distinct records at "
                "most, drawn by how often they occur; utility is depth, and an optimal disclosure has, of every "
                "record, at least the mean utility of the recoded table it is compared with."
            ),
            Remark(
                "Times are CPU times of one process on one machine and differ from run to run; everything else is a "
                "function of data, sizes and seed."
            ),
        ),
        plots=tuple(zip(*(one.plots for one in found), strict=True)),
        figures={
            "measured": list(MEASURED),
            "experiments": [plain(one) for one in found],
        },
        claims=tuple(claim for one in found for claim in one.claims),
        notes=tuple(notes),
        listings=tuple(_schemes(one) for one in found),
    )


def _schemes(one: TableResult) -> Listing:
    """The optimum of each k by each metric."""
    best = [outcome for outcome in one.outcomes if outcome.method == "best" and outcome.found]
    return Listing(
        f"optima-{one.data}".replace(" ", "-"),
        f"Optimal schemes: {one.data}",
        f"optimal schemes of {one.data}",
        ("k", "Metric", "Levels", "Value", "Suppressed rows", "Classes", "Nodes evaluated", "Proved"),
        tuple(
            (
                outcome.k,
                outcome.metric,
                ", ".join(map(str, outcome.levels)),
                outcome.cost(outcome.metric),
                outcome.suppressed,
                outcome.classes,
                outcome.nodes,
                "yes" if outcome.optimal else "no",
            )
            for outcome in best
        ),
        numbers=(0, 3, 4, 5, 6),
        strong=(2,),
    )
