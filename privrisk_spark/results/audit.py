"""Findings of an audit: every part with what is claimed and what was found, for a program and for a person."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from privrisk_spark.results.page import html_table

if TYPE_CHECKING:
    from privrisk_spark.kernels.dp.audit import Certified, Conformance

ALPHA = 1e-3
"""Most probability that an audit of a mechanism without fault flags one."""


@dataclass(frozen=True)
class Bound:
    """A certified lower bound of epsilon for one pair of tables in one direction.

    Attributes
    ----------
    likelier : str
        The side the event is likelier on, ``with the row`` or ``without the row``; or the person.
    event : str
        In words.
    claimed, delta : float
        Of the mechanism.
    alpha : float
        Probability of a bound above the truth.
    """

    pair: str
    likelier: str
    event: str
    claimed: float
    delta: float
    alpha: float
    certified: Certified

    json_keys = (
        "pair", "likelier", "event", "hits:certified.hits", "other_hits:certified.other_hits",
        "certifying_trials:certified.trials", "alpha", "epsilon_at_least:certified.epsilon", "flagged",
    )  # fmt: skip

    @property
    def flagged(self) -> bool:
        """Whether the claim is refuted."""
        return self.certified.epsilon > self.claimed


@dataclass(frozen=True)
class FittedCell:
    """A cell held against its law.

    Attributes
    ----------
    observed, expected : tuple of float
        Share of trials by published rows 0, 1, …; kept for large cells, to be drawn.
    unit : str
        Of the means.
    """

    cell: str
    found: Conformance
    observed: tuple[float, ...] = ()
    expected: tuple[float, ...] = ()
    unit: str = "rows"

    json_keys = (
        "cell", "cells:found.cells", "mean:found.mean", "expected_mean:found.expected_mean", "mean_z",
        "variance_p", "law_p:found.fit_p", "conforms:found.conforms",
    )  # fmt: skip

    @property
    def mean_z(self) -> float | None:
        """Standardized difference of the means; None if they are not compared."""
        return self.found.mean_z if self.found.moments else None

    @property
    def variance_p(self) -> float | None:
        """Probability of such a variance; None if it is not compared."""
        return self.found.variance_p if self.found.moments else None


@dataclass(frozen=True)
class Claim:
    """An experiment, and what is claimed of its releases.

    Attributes
    ----------
    crowd : int or None
        k: no released tuple has fewer rows; None where none are released.
    """

    name: str
    title: str
    epsilon: float
    delta: float
    crowd: int | None


@dataclass(frozen=True)
class Findings:
    """What one experiment found.

    Attributes
    ----------
    trials : int
        Of each table.
    rows : int
        Rows of all tables together.
    least : int or None
        Fewest rows of a released tuple; None if none is released.
    below : int
        Released tuples with fewer than k rows.
    tuples : int
        Released tuples.
    """

    experiment: Claim
    trials: int
    rows: int
    bounds: tuple[Bound, ...]
    least: int | None
    below: int
    tuples: int
    cells: tuple[FittedCell, ...]

    json_keys = (
        "name:experiment.name", "title:experiment.title", "claimed_epsilon:experiment.epsilon",
        "claimed_delta:experiment.delta", "trials", "rows", "bounds", "invariant", "conformance:cells",
    )  # fmt: skip

    @property
    def invariant(self) -> dict[str, int | None]:
        """Released tuples, and the fewest rows of one."""
        return {"least_rows": self.least, "tuples_below_k": self.below, "tuples": self.tuples}

    @property
    def epsilon(self) -> float:
        """The greatest certified bound."""
        return max(bound.certified.epsilon for bound in self.bounds)


@dataclass(frozen=True)
class Repetition:
    """A second execution with the same key.

    Attributes
    ----------
    experiment : str
        Title.
    how : str
        What was different.
    identical : bool
        Whether what is published is, bit for bit.
    """

    experiment: str
    how: str
    identical: bool

    json_keys = ("experiment", "execution:how", "identical")


@dataclass(frozen=True)
class AuditResult:
    """A whole audit.

    Attributes
    ----------
    parameters : mapping
        Of the profile.
    """

    title: str
    created: str
    version: str
    seed: int
    parameters: Mapping[str, object]
    findings: tuple[Findings, ...]
    repetitions: tuple[Repetition, ...]
    notes: tuple[str, ...] = field(default=())

    json_keys = (
        "name:title", "date:created", "version", "passed", "flags:findings_by_part",
        "false_alarm_probability_at_most:alpha", "seed", "profile:parameters", "experiments:findings",
        "idempotence:repetitions", "notes",
    )  # fmt: skip
    alpha = ALPHA

    @property
    def findings_by_part(self) -> list[dict[str, str]]:
        """The flags, each with the names of its two texts."""
        return [{"part": part, "finding": text} for part, text in self.flags]

    @property
    def flags(self) -> list[tuple[str, str]]:
        """Part and what it found, of everything that should not be."""
        found: list[tuple[str, str]] = []
        for one in self.findings:
            title, crowd = one.experiment.title, one.experiment.crowd
            for bound in one.bounds:
                if bound.flagged:
                    what = f"epsilon is at least {bound.certified.epsilon:.2f}, claimed {bound.claimed:g}"
                    found.append(("bound", f"{title}, {bound.pair}: {what} ({bound.event})"))
            if one.below:
                found.append(("invariant", f"{title}: {one.below:,} released tuples have fewer than k = {crowd} rows"))
            found += [
                ("conformance", f"{title}, cell of {cell.cell}: {_misfit(cell)}")
                for cell in one.cells
                if not cell.found.conforms
            ]
        found += [
            ("idempotence", f"{one.experiment}, {one.how}: the same key does not give the same release")
            for one in self.repetitions
            if not one.identical
        ]
        return found

    @property
    def passed(self) -> bool:
        """Whether nothing is flagged."""
        return not self.flags

    @property
    def parts(self) -> list[str]:
        """Parts that flag something."""
        return list(dict.fromkeys(part for part, _ in self.flags))

    def _repr_html_(self) -> str:
        rows = [(one.experiment.title, one.experiment.epsilon, one.epsilon, one.trials) for one in self.findings]
        notes = [f"{part}: {text}" for part, text in self.flags]
        head = ("experiment", "claimed epsilon", "epsilon is at least", "releases of each table")
        verdict = "passed" if self.passed else "flagged"
        return html_table(f"Audit of {self.title}: {verdict}", head, rows, notes=notes)


def _misfit(cell: FittedCell) -> str:
    found = cell.found
    text = f"mean {found.mean:.4g} {cell.unit}, expected {found.expected_mean:.4g}; law p = {found.fit_p:.2g}"
    return text + (f", mean z = {found.mean_z:.1f}, variance p = {found.variance_p:.2g}" if found.moments else "")
