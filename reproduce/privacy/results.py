"""The experiments on privacy, each on one table, and what they find together (Fouad 2012, chapter 6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from privrisk_spark.reporting.numbers import short_number
from privrisk_spark.results.plots import Plot
from reproduce.deciding.results import basis
from reproduce.deciding.subject import Subject
from reproduce.privacy.plots import plots, worst_case_plot
from reproduce.privacy.releases import Candidates, Public
from reproduce.privacy.sampling import (
    Compared,
    Elements,
    Unsampled,
    WorstCase,
    over_epsilon,
    over_sampling,
    over_sizes,
    unsampled,
    worst_case,
)
from reproduce.result import Findings, Remark, plain
from reproduce.sizes import size

ROWS = (300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
"""Sizes of the tables of twin chains."""

FEW = (6, 8, 10, 12, 14, 16, 18, 20)
"""Sizes of the tables of two leaves."""


@dataclass(frozen=True)
class PrivacySizes:
    """How much is run.

    Attributes
    ----------
    rows, large : int
        Of the two generated tables.
    attributes : int
        Of the generated tables.
    records : int
        Most distinct records whose lattices Algorithm 6 is evaluated on.
    runs : int
        Simulated releases per point.
    """

    rows: int = size(30_000)
    large: int = size(1_000_000)
    attributes: int = size(5, 2, 10)
    records: int = size(100)
    runs: int = size(3)
    seed: int = size(2012, 0)


@dataclass(frozen=True, eq=False)
class TableResult:
    """Everything about one table."""

    data: str
    basis: str
    parameters: str
    schemes: tuple[tuple[int, ...], ...]
    unsampled: Unsampled
    sampling: Compared
    epsilon: Compared
    sizes: Compared

    @property
    def plots(self) -> tuple[Plot, ...]:
        """Plots, in the order of the page."""
        return plots(self.data, self.unsampled, self.epsilon, self.sampling, self.sizes)


def run_on(subject: Subject, public: Public, sizes: PrivacySizes) -> TableResult:
    """Make every experiment on one table."""
    seed, runs = sizes.seed, sizes.runs
    elements = Elements.of(subject, subject.drawn(seed, sizes.records).tolist())
    table = Candidates.of(subject, public)
    return TableResult(
        data=subject.name,
        basis=basis(subject),
        parameters=parameters(public),
        schemes=public.schemes,
        unsampled=unsampled(elements, public.delta),
        sampling=over_sampling(table, elements, seed=seed, runs=runs),
        epsilon=over_epsilon(table, elements, seed=seed, runs=runs),
        sizes=over_sizes(subject, public, seed=seed, runs=runs, records=sizes.records),
    )


def parameters(public: Public) -> str:
    """The release's public parameters, in a sentence."""
    return (
        f"The release has {len(public.schemes)} public level vectors, {float(public.admitting):.2g} of ε for their "
        f"admission, and draws with λ = {public.lam:g}, κ = {public.kappa:g}, τ = {public.tau:g}."
    )


def run_worst_case() -> WorstCase:
    """Compute the worst case at :data:`ROWS` and :data:`FEW`."""
    return worst_case(ROWS, FEW)


def findings(
    found: Sequence[TableResult], worst: WorstCase, sizes: PrivacySizes, *, delta: float, notes: Sequence[str] = ()
) -> Findings:
    """Put together what was found on every table, and the worst case of none in particular.

    Parameters
    ----------
    found : sequence of TableResult
        At least one.
    sizes : PrivacySizes
        Those it was found with.
    delta : float
        Of the releases and of Algorithm 6's claim.
    notes : sequence of str, default ()
        What a reader must know besides.
    """
    runs, records = short_number(sizes.runs), short_number(sizes.records)
    return Findings(
        statement="The experiment of Fouad (2012), section 6.6, on the impact of sampling: Algorithm 6 as published, "
        "which guarantees nothing, beside a release with a proof at equal ε and δ = "
        f"{short_number(delta)}.",
        tables=tuple(Remark(f"{one.basis} {one.parameters}", one.data) for one in found),
        remarks=(
            Remark(
                "Everything is simulated in memory from a seed, by the kernels of a release: nothing here is private, "
                "and nothing was published or charged. "
                f"Figures of the release are means of {runs} runs on the whole table."
            ),
            Remark(
                f"Figures of Algorithm 6 are expectations over its draws, for {records} distinct records at most, "
                "drawn by how often they occur. It has λ = 1 and Φ = 1, with which its theorem has an instance, and is "
                "shown with the least t that the proof admits, fixed, with which it is not private by its own account, "
                "and as printed with t = θ|D|, θ uniform from there on. Where no t below |D| is admitted, there is no "
                "point."
            ),
            Remark(
                "Precision is the mean of depth over height of the attributes: 1 for a row as it is, 0 for a "
                "suppressed one."
            ),
        ),
        plots=(*zip(*(one.plots for one in found), strict=True), (worst_case_plot(worst),)),
        figures={
            "delta": delta,
            "guarantee": "none: simulated from a seed; nothing here may be published as differentially private",
            "worst_case": plain(worst),
            "experiments": [plain(one) for one in found],
        },
        notes=tuple(notes),
    )
