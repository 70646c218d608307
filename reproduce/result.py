"""What a published experiment found when it was run again: figures for a program, sentences and plots for a person."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from privrisk_spark.json_values import as_json
from privrisk_spark.results.plots import Plot

POINT = ("experiment", "data", "panel", "series", "x_is", "x", "y_is", "y", "measured")
"""Columns of a result's rows."""

MUCH = 2.0
"""Factor from which a claim of "much" or "significantly" holds, and up to which one of "comparable" does."""

LITTLE = 0.1
"""Share up to which a claim of "a little" or "hardly" holds."""


@dataclass(frozen=True)
class Remark:
    """One point of a list, after a lead that says what it is about; the lead may be empty."""

    text: str
    lead: str = ""


@dataclass(frozen=True)
class Listing:
    """A table of the page that no chart shows.

    Attributes
    ----------
    label : str
        What the table holds, for who cannot see it.
    rows : tuple of tuple
        Text, or numbers in the columns of numbers; None where there is nothing to tell.
    numbers : tuple of int
        Positions of the columns of numbers.
    strong : tuple of int
        Positions of the columns to look at first.
    long : bool
        Whether it is to be looked up in, not read: it comes after the charts, folded.
    """

    key: str
    title: str
    label: str
    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    numbers: tuple[int, ...] = ()
    strong: tuple[int, ...] = ()
    long: bool = False


@dataclass(frozen=True)
class Claim:
    """A claim and what was found.

    Attributes
    ----------
    data : str
        Name of the table.
    verdict : str
        As :func:`judged`, :func:`held` or :func:`undecided` return it, computed from numbers of the run.
    evidence : str
        A sentence.
    measured : bool
        Whether it is about times, which differ from run to run.
    """

    source: str
    claim: str
    data: str
    verdict: str
    evidence: str
    measured: bool = False


@dataclass(frozen=True)
class Findings:
    """What an experiment returns.

    Attributes
    ----------
    statement : str
        What was computed, in a sentence that names the source.
    tables : tuple of Remark
        The tables it was computed on, each with what it is.
    remarks : tuple of Remark
        How it was computed.
    plots : tuple of tuples of Plot
        Plots of the same kind together, in the order of the page.
    figures : mapping of str
        JSON-safe, by the key of the JSON file.
    claims : tuple of Claim
        Those that no plot states.
    notes : tuple of str
        What a reader must know besides.
    """

    statement: str
    tables: tuple[Remark, ...]
    remarks: tuple[Remark, ...]
    plots: tuple[tuple[Plot, ...], ...]
    figures: Mapping[str, Any]
    claims: tuple[Claim, ...] = ()
    notes: tuple[str, ...] = ()
    listings: tuple[Listing, ...] = ()

    @property
    def judged(self) -> tuple[Claim, ...]:
        """Every claim with its verdict: those that no plot states, then those of the plots."""
        plots = (plot for same in self.plots for plot in same)
        of_plots = (
            Claim(plot.figure, claim, plot.data, verdict, plot.found, plot.measured)
            for plot in plots
            for claim, verdict in plot.claims
        )
        return (*self.claims, *of_plots)


@dataclass(frozen=True)
class ExperimentResult:
    """The findings of one run.

    Attributes
    ----------
    name : str
        Of the experiment and of its files.
    title, heading : str
        Of the page.
    sizes : mapping of str to int
        How much was run, with the seed.
    private : bool
        Whether figures are about a table of the user.
    """

    name: str
    title: str
    heading: str
    created: str
    version: str
    sizes: Mapping[str, int]
    findings: Findings
    private: bool = False

    @property
    def plots(self) -> tuple[Plot, ...]:
        """All plots, in the order of the page."""
        return tuple(plot for same in self.findings.plots for plot in same)

    def to_dict(self) -> dict[str, Any]:
        """Return everything, JSON-safe, for the JSON file."""
        return {
            "date": self.created,
            "version": self.version,
            "sizes": dict(self.sizes),
            "notes": list(self.findings.notes),
            "claims": [plain(one) for one in self.findings.judged],
            **self.findings.figures,
            "plots": [_sentences(plot) for plot in self.plots],
        }

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Every drawn point, with the columns of :data:`POINT`; JSON-safe."""
        for plot in self.plots:
            measured = "yes" if plot.measured else "no"
            for panel in plot.panels:
                for series in panel.series:
                    for x, y in zip(series.x, series.y, strict=True):
                        name = (plot.key, plot.data, panel.title, series.name)
                        yield (*name, panel.x_label, as_json(x), panel.y_label, as_json(y), measured)

    def to_csv(self) -> str:
        """Return one line per drawn point, for the CSV file."""
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(POINT)
        writer.writerows(self.rows())
        return stream.getvalue()


def _sentences(plot: Plot) -> dict[str, Any]:
    """What a plot says."""
    return {name: getattr(plot, name) for name in ("key", "data", "title", "figure", "found", "measured")}


def judged(holds: object) -> str:
    """Return a verdict on a claim that one comparison decides.

    Parameters
    ----------
    holds : bool or numpy bool
    """
    return "holds" if holds else "does not hold"


def undecided(reason: str) -> str:
    """Return the verdict on a claim that the run cannot decide.

    Parameters
    ----------
    reason : str
        Why, without a full stop.
    """
    return f"not decided: {reason}"


def held(cases: int, of: int) -> str:
    """Return in how many cases a claim holds, as a verdict.

    Parameters
    ----------
    cases, of : int
        Those in which it holds, and those that were tried.
    """
    if not of:
        return undecided("nothing to compare")
    return "holds" if cases == of else "does not hold" if not cases else f"in {cases} of {of} cases"


def held_in_each(cases: npt.NDArray[np.bool_] | Sequence[bool]) -> str:
    """Return in how many cases a claim holds, as :func:`held` does.

    Parameters
    ----------
    cases : ndarray of bool, or sequence of bool
        Whether it holds, one for each case that was tried.
    """
    return held(int(np.count_nonzero(cases)), np.size(cases))


def plain(value: object) -> Any:
    """Return a dataclass, an array, or a sequence of them as JSON can hold it; what is not finite becomes null."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(item) for item in value]
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return as_json(value)
