"""Protected forms of a table over hierarchies: recoded, disclosed by risk, private, or with categories changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from privrisk_spark.extensions.perturb.kernels.pram import perturbed
from privrisk_spark.kernels.arrays import IntArray, LongArray
from privrisk_spark.kernels.disclosure.risk import RiskModel
from reproduce.deciding.sample import Sample
from reproduce.deciding.subject import Subject
from reproduce.generated.clustered import keyed_uniforms
from reproduce.privacy.releases import Calibrated, Candidates, Public, public_schemes
from reproduce.recoding.algorithms import Recoded, partitioned, searched

ANONYMITY = (2, 5, 10, 50)
LOCAL = ("mondrian", "hilbert", "bang")
FLOORS = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3)
"""Least utilities of disclosures by risk, as shares of the greatest."""
EPSILONS = (Fraction(1, 2), Fraction(1), Fraction(2), Fraction(4))
"""Of differentially private releases."""
FINER = 10
"""Their level vectors have at most as many cells as those of a table of so many times the rows: a cell for 100 rows."""
KEPT = (0.95, 0.9, 0.8, 0.65, 0.5)
"""Probabilities with which a category stays; else it is drawn from the table."""


@dataclass(frozen=True, eq=False)
class Protected:
    """A table as it is shown, in pieces: a distinct record, or part of its rows.

    Attributes
    ----------
    family : str
        Such as "k-anonymous".
    name : str
        With the parameter, such as "best, k = 5".
    record : ndarray of int64, shape (p,)
        Row of ``subject.vectors`` of each piece.
    rows : ndarray of int64, shape (p,)
        At least 1.
    nodes : ndarray of int32, shape (p, k)
        What is shown.
    scheme : bool
        Whether one scheme, which an attacker may know, made it.
    absent : ndarray of int64, shape (m,), or None
        Rows of each of ``subject.vectors`` that are not shown; None where all are.
    """

    family: str
    name: str
    record: LongArray
    rows: LongArray
    nodes: IntArray
    scheme: bool = False
    absent: LongArray | None = None


def recoded(subject: Subject, limit: int, anonymity: Sequence[int] = ANONYMITY) -> Iterator[Protected]:
    """Yield k-anonymous tables: optimal schemes by the metric ``loss``, and local recoding.

    Parameters
    ----------
    limit : int
        Rows that may be suppressed.
    """
    for k in anonymity:
        made = [("best", searched(subject, "best", "loss", k, limit)[1])]
        made += [(method, partitioned(subject, method, k, limit)[1]) for method in LOCAL]
        for method, table in made:
            if table is not None:
                yield of_levels(subject, "k-anonymous", f"{method}, k = {k}", table, scheme=method == "best")


def disclosed(subject: Subject, model: RiskModel, floors: Sequence[float] = FLOORS) -> Iterator[Protected]:
    """Yield tables whose records are disclosed by least risk at a floor; who cannot reach it is suppressed."""
    everyone = Sample.of(subject, seed=0, records=len(subject.counts))
    heights = np.array(subject.heights, dtype=np.int64)
    for floor in floors:
        found = everyone.decided(model, floor * subject.greatest_utility)
        levels = np.where(found.feasible[:, None], found.levels, heights)
        table = Recoded(everyone.record, everyone.times.astype(np.int64), levels, ~found.feasible)
        yield of_levels(subject, "by risk", f"floor {floor:g}", table)


def private(subject: Subject, seed: int, epsilons: Sequence[Fraction] = EPSILONS) -> Iterator[Protected]:
    """Yield differentially private releases, simulated with the kernels of a release; none where nothing is published.

    Level vectors are chosen from the hierarchies and the number of rows, which counts as public; half of the rows that
    epsilon allows are sampled, and delta is 1e-9.

    Parameters
    ----------
    seed : int
        In place of the release's key.
    """
    public = Public(public_schemes(subject, FINER * subject.rows))
    candidates = Candidates.of(subject, public)
    for epsilon in epsilons:
        rows = candidates.sampled(Calibrated.of(public, epsilon, Fraction(1, 2)), seed=seed, run=0)
        if rows.published.any():
            record, nodes = rows.record[rows.published], rows.nodes[rows.published]
            absent = subject.counts - np.bincount(record, minlength=len(subject.counts))
            each = np.ones(len(record), dtype=np.int64)
            yield Protected("private", f"epsilon = {float(epsilon):g}", record, each, nodes, absent=absent)


def changed(subject: Subject, seed: int, kept: Sequence[float] = KEPT) -> Iterator[Protected]:
    """Yield tables whose categories are changed by invariant PRAM, ``p I + (1 - p) 1 π'``, row by row.

    Parameters
    ----------
    subject : Subject
        Missing values stay missing.
    kept : sequence of float
        p.
    """
    row = np.repeat(np.arange(len(subject.counts)), subject.counts)
    for keep in kept:
        columns = []
        for j, axis in enumerate(subject.axes):
            codes = subject.vectors[row, j]
            there = axis.code_depth[codes] > 0
            values, at = np.unique(codes[there], return_inverse=True)
            share = np.bincount(at, minlength=len(values)) / max(len(at), 1)
            matrix = keep * np.eye(len(values)) + (1 - keep) * np.tile(share, (len(values), 1))
            drawn = keyed_uniforms(seed, f"pram {j} {keep:g}", (len(row),))[there]
            shown = codes.copy()
            if len(values):
                shown[there] = values[perturbed(at.astype(np.int32), matrix / matrix.sum(axis=1)[:, None], drawn)]
            columns.append(axis.ancestor[shown, 0])
        yield Protected(
            "changed by chance",
            f"PRAM, {keep:g} kept",
            row.astype(np.int64),
            np.ones(len(row), dtype=np.int64),
            np.column_stack(columns).astype(np.int32),
        )


def of_levels(subject: Subject, family: str, name: str, table: Recoded, *, scheme: bool = False) -> Protected:
    """Return a table of levels as what it shows."""
    codes = subject.vectors[table.record]
    nodes = [axis.ancestor[codes[:, i], table.levels[:, i]] for i, axis in enumerate(subject.axes)]
    return Protected(family, name, table.record, table.rows, np.column_stack(nodes).astype(np.int32), scheme)
