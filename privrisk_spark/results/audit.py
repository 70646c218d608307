"""Findings of an audit: every part with what is claimed and what was found, for a program and for a person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from privrisk_spark.kernels.dp.audit import Certified, Conformance, certify, conformance, false_alarm, published_law
from privrisk_spark.planning.audit import Experiment
from privrisk_spark.results.page import html_table
from privrisk_spark.results.release import json_safe

ALPHA = 1e-3
"""Most probability that an audit of a mechanism without fault flags one."""

WHOSE = ("target's", "others'")
"""The two kinds of records, in words."""

_MOST_TUPLES = 64
"""Different tuples whose rows are features; a mechanism without fault releases fewer."""

LongArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Bound:
    """A certified lower bound of epsilon for one pair of tables in one direction.

    Attributes
    ----------
    pair : str
    likelier : {"with the row", "without the row"}
        The side the event is likelier on.
    event : str
        In words.
    claimed, delta : float
        Of the mechanism.
    alpha : float
        Probability of a bound above the truth.
    certified : Certified
    """

    pair: str
    likelier: str
    event: str
    claimed: float
    delta: float
    alpha: float
    certified: Certified

    @property
    def flagged(self) -> bool:
        """Whether the claim is refuted."""
        return self.certified.epsilon > self.claimed


@dataclass(frozen=True)
class FittedCell:
    """A cell held against its law.

    Attributes
    ----------
    cell : str
    found : Conformance
    observed, expected : tuple of float
        Share of trials by published rows 0, 1, …; kept for large cells, to be drawn.
    """

    cell: str
    found: Conformance
    observed: tuple[float, ...] = ()
    expected: tuple[float, ...] = ()


@dataclass(frozen=True)
class Findings:
    """What one experiment found.

    Attributes
    ----------
    experiment : Experiment
    trials : int
        Of each table.
    rows : int
        Rows of all tables together.
    bounds : tuple of Bound
    least : int or None
        Fewest rows of a released tuple; None if none is released.
    below : int
        Released tuples with fewer than k rows.
    tuples : int
        Released tuples.
    cells : tuple of FittedCell
    """

    experiment: Experiment
    trials: int
    rows: int
    bounds: tuple[Bound, ...]
    least: int | None
    below: int
    tuples: int
    cells: tuple[FittedCell, ...]

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


@dataclass(frozen=True)
class AuditResult:
    """A whole audit.

    Attributes
    ----------
    title, created, version : str
    seed : int
    parameters : mapping
        Of the profile.
    findings : tuple of Findings
    repetitions : tuple of Repetition
    notes : tuple of str
    """

    title: str
    created: str
    version: str
    seed: int
    parameters: Mapping[str, object]
    findings: tuple[Findings, ...]
    repetitions: tuple[Repetition, ...]
    notes: tuple[str, ...] = field(default=())

    @property
    def flags(self) -> list[tuple[str, str]]:
        """Part and what it found, of everything that should not be."""
        found: list[tuple[str, str]] = []
        for one in self.findings:
            title, crowd = one.experiment.title, one.experiment.mechanism.crowd
            for bound in one.bounds:
                if bound.flagged:
                    what = f"epsilon is at least {bound.certified.epsilon:.2f}, claimed {bound.claimed:g}"
                    found.append(("bound", f"{title}, {bound.pair}: {what} ({bound.event})"))
            if one.below:
                found.append(("invariant", f"{title}: {one.below:,} released tuples have fewer than k = {crowd} rows"))
            found += [
                ("conformance", f"{title}, cell of {cell.cell}: {_misfit(cell.found)}")
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

    def to_dict(self) -> dict[str, Any]:
        """Return everything, JSON-safe, for ``audit.json``."""
        document = {
            "name": self.title,
            "date": self.created,
            "version": self.version,
            "passed": self.passed,
            "flags": [{"part": part, "finding": text} for part, text in self.flags],
            "false_alarm_probability_at_most": ALPHA,
            "seed": self.seed,
            "profile": dict(self.parameters),
            "experiments": [_document(one) for one in self.findings],
            "idempotence": [
                {"experiment": one.experiment, "execution": one.how, "identical": one.identical}
                for one in self.repetitions
            ],
            "notes": list(self.notes),
        }
        safe: dict[str, Any] = json_safe(document)
        return safe


def _misfit(found: Conformance) -> str:
    text = f"mean {found.mean:.4g} rows, expected {found.expected_mean:.4g}; law p = {found.fit_p:.2g}"
    return text + (f", mean z = {found.mean_z:.1f}, variance p = {found.variance_p:.2g}" if found.moments else "")


def _document(one: Findings) -> dict[str, object]:
    return {
        "name": one.experiment.name,
        "title": one.experiment.title,
        "claimed_epsilon": one.experiment.epsilon,
        "claimed_delta": one.experiment.delta,
        "trials": one.trials,
        "rows": one.rows,
        "bounds": [
            {
                "pair": bound.pair,
                "likelier": bound.likelier,
                "event": bound.event,
                "hits": bound.certified.hits,
                "other_hits": bound.certified.other_hits,
                "certifying_trials": bound.certified.trials,
                "alpha": bound.alpha,
                "epsilon_at_least": bound.certified.epsilon,
                "flagged": bound.flagged,
            }
            for bound in one.bounds
        ],
        "invariant": {"least_rows": one.least, "tuples_below_k": one.below, "tuples": one.tuples},
        "conformance": [
            {
                "cell": cell.cell,
                "cells": cell.found.cells,
                "mean": cell.found.mean,
                "expected_mean": cell.found.expected_mean,
                "mean_z": cell.found.mean_z if cell.found.moments else None,
                "variance_p": cell.found.variance_p if cell.found.moments else None,
                "law_p": cell.found.fit_p,
                "conforms": cell.found.conforms,
            }
            for cell in one.cells
        ],
    }


def alpha_of_bound(experiments: Sequence[Experiment]) -> float:
    """Share of :data:`ALPHA` for each bound: what the tests of conformance leave, by pairs and directions.

    A union bound over every comparison of an audit, so :data:`ALPHA` holds for all of them together. The invariant and
    the repetitions have no false alarms. Certified bounds hold this exactly; the tests of conformance as far as their
    normal and chi-square approximations are good. The probability is over keys: under one seed, an audit of the same
    code ends the same way every time.
    """
    spent = sum(false_alarm(moments=cell.large) for experiment in experiments for cell in experiment.cells)
    return (ALPHA - spent) / sum(2 * len(experiment.pairs) for experiment in experiments)


def judge(
    experiment: Experiment,
    *,
    trials: int,
    nodes: npt.NDArray[np.int32],
    rows: LongArray,
    cells: LongArray,
    manifest: Mapping[str, LongArray],
    released_as: Mapping[tuple[int, int], tuple[int, ...]],
    alpha: float,
) -> Findings:
    """Hold what was published against what is claimed.

    Parameters
    ----------
    experiment : Experiment
    trials : int
        n, of each of T tables.
    nodes : ndarray of int32, shape (m, 1 + k)
        Released tuples; the first column is the trial, ``table * n + number``.
    rows : ndarray of int64, shape (m,)
    cells : ndarray of int64, shape (n T, w, 2)
        Noisy counts of admitted cells, -1 if not admitted.
    manifest : mapping of str to ndarray of int64, shape (n T,)
    released_as : mapping of pairs of int to tuple of k int
        What either kind is released as under each scheme, by kind and number of the scheme; the one after the last is
        full suppression.
    alpha : float
        Of each bound.
    """
    total = trials * len(experiment.tables)
    counted, names = _rows_by_tuple(nodes, rows, total)
    words: dict[tuple[int, ...], str] = {}
    for (kind, scheme), released in released_as.items():
        suppressed = scheme == len(experiment.mechanism.schemes)
        under = f" under scheme {scheme + 1}" if len(experiment.mechanism.schemes) > 1 else ""
        words[released] = "suppressed rows" if suppressed else f"rows of the {WHOSE[kind]} tuple{under}"
    columns = {words.get(name, f"rows of tuple {i + 1}"): counted[:, i] for i, name in enumerate(names)}
    for j in range(cells.shape[1]):
        for kind, whose in enumerate(WHOSE):
            columns[f"noisy count of the {whose} cell under scheme {j + 1}"] = cells[:, j, kind]
    columns |= {f"{name} in the manifest": numbers for name, numbers in manifest.items()}
    features = np.column_stack(list(columns.values())).reshape(len(experiment.tables), trials, -1)
    bounds = []
    for pair in experiment.pairs:
        for one, other, likelier in (
            (pair.one, pair.other, "with the row"),
            (pair.other, pair.one, "without the row"),
        ):
            found = certify(features[one], features[other], delta=experiment.delta, alpha=alpha)
            event = f"{list(columns)[found.event.feature]} {found.event.relation} {found.event.value}"
            if found.hits == found.other_hits == found.trials:
                event = "none tells them apart"
            bounds.append(Bound(pair.name, likelier, event, experiment.epsilon, experiment.delta, alpha, found))
    place = {name: i for i, name in enumerate(names)}
    fitted = []
    for cell in experiment.cells:
        released = released_as[cell.kind, cell.scheme]
        column = counted[:, place[released]] if released in place else np.zeros(total, dtype=np.int64)
        sample = column.reshape(len(experiment.tables), trials)[list(cell.tables)].ravel()
        crowd = experiment.mechanism.crowd
        fit = conformance(sample, rows=cell.rows, keep=cell.keep, crowd=crowd, moments=cell.large)
        law = published_law(cell.rows, cell.keep, crowd) if cell.large else np.zeros(0)
        shares = np.bincount(sample, minlength=cell.rows + 1) / len(sample) if cell.large else np.zeros(0)
        fitted.append(FittedCell(cell.name, fit, tuple(shares.tolist()), tuple(law.tolist())))
    return Findings(
        experiment=experiment,
        trials=trials,
        rows=trials * sum(map(sum, experiment.tables)),
        bounds=tuple(bounds),
        least=int(rows.min()) if len(rows) else None,
        below=int(np.count_nonzero(rows < experiment.mechanism.crowd)),
        tuples=len(rows),
        cells=tuple(fitted),
    )


def _rows_by_tuple(
    nodes: npt.NDArray[np.int32], rows: LongArray, total: int
) -> tuple[LongArray, list[tuple[int, ...]]]:
    """Published rows of each trial and tuple, shape (trials, tuples), and the tuples without the trial."""
    distinct, which, times = np.unique(nodes[:, 1:], axis=0, return_inverse=True, return_counts=True)
    commonest = np.sort(np.argsort(-times, kind="stable")[:_MOST_TUPLES])
    column = np.full(len(distinct), -1, dtype=np.int64)
    column[commonest] = np.arange(len(commonest))
    place = column[which.reshape(-1)]
    counted = np.zeros((total, len(commonest)), dtype=np.int64)
    known = place >= 0
    np.add.at(counted, (nodes[known, 0], place[known]), rows[known])
    return counted, [tuple(map(int, distinct[i])) for i in commonest.tolist()]
