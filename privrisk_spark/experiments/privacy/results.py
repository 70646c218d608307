"""The experiments on privacy of several tables, as figures for a program and as plots for a person."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from privrisk_spark.experiments.deciding.results import basis, plain, points_csv, sentences
from privrisk_spark.experiments.deciding.subject import Subject
from privrisk_spark.experiments.privacy.plots import plots, worst_case_plot
from privrisk_spark.experiments.privacy.releases import Candidates, Public
from privrisk_spark.experiments.privacy.sampling import (
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
from privrisk_spark.results.plots import Plot

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
    seed : int
    """

    rows: int = 30_000
    large: int = 1_000_000
    attributes: int = 5
    records: int = 100
    runs: int = 3
    seed: int = 2012


@dataclass(frozen=True, eq=False)
class PrivacyExperiment:
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


@dataclass(frozen=True, eq=False)
class PrivacyResult:
    """The experiments of every table, and the worst case of none in particular.

    Attributes
    ----------
    created, version : str
    sizes : PrivacySizes
    delta : float
        Of the releases and of Algorithm 6's claim.
    worst : WorstCase
    experiments : tuple of PrivacyExperiment
    notes : tuple of str
        What a reader must know besides.
    private : bool
        Whether figures are about a table of the user.
    """

    created: str
    version: str
    sizes: PrivacySizes
    delta: float
    worst: WorstCase
    experiments: tuple[PrivacyExperiment, ...]
    notes: tuple[str, ...] = ()
    private: bool = False

    @property
    def plots(self) -> list[list[Plot]]:
        """Plots of the same kind together, in the order of the page."""
        of_tables = [list(same) for same in zip(*(one.plots for one in self.experiments), strict=True)]
        return [*of_tables, [worst_case_plot(self.worst)]]

    def to_dict(self) -> dict[str, Any]:
        """Return everything, JSON-safe, for ``privacy.json``."""
        return {
            "date": self.created,
            "version": self.version,
            "sizes": plain(self.sizes),
            "delta": self.delta,
            "notes": list(self.notes),
            "guarantee": "none: simulated from a seed; nothing here may be published as differentially private",
            "worst_case": plain(self.worst),
            "experiments": [plain(one) for one in self.experiments],
            "plots": sentences(plot for same in self.plots for plot in same),
        }

    def to_csv(self) -> str:
        """Return one line per drawn point, for ``privacy.csv``."""
        return points_csv(plot for same in self.plots for plot in same)


def run_privacy(subject: Subject, public: Public, sizes: PrivacySizes) -> PrivacyExperiment:
    """Make every experiment on one table.

    Parameters
    ----------
    subject : Subject
    public : Public
    sizes : PrivacySizes
    """
    seed, runs = sizes.seed, sizes.runs
    elements = Elements.of(subject, subject.drawn(seed, sizes.records).tolist())
    table = Candidates.of(subject, public)
    return PrivacyExperiment(
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
