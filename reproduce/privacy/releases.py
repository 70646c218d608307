"""Releases simulated in memory: noisy admission, exponential draw, sample and crowd threshold on one table.

The kernels are those of a release; what differs is where the random numbers come from (a seed, so a simulation protects
nobody) and that everything is held in memory. The result is for comparison and never published.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from privrisk_spark.kernels.arrays import FloatArray, IntArray, LongArray
from privrisk_spark.kernels.counting.cell_index import CellIndex
from privrisk_spark.kernels.dp.crowd import KEEP_UNIT, keep_numerator, least_crowd
from privrisk_spark.kernels.dp.exponential import draw, objective, probabilities
from privrisk_spark.kernels.numeric.rational import round_down
from privrisk_spark.kernels.random.discrete_gaussian import Admission, calibrate_admission
from privrisk_spark.kernels.random.keyed import Streams, cell_messages
from reproduce.deciding.subject import Subject
from reproduce.generated.clustered import keyed_uniforms, simulation_key

ADMITTING = Fraction(3, 10)
"""Share of epsilon that the admission gets."""

SCHEMES = 8
"""Level vectors of a table whose policy names none."""


@dataclass(frozen=True)
class Public:
    """What is fixed before the table is read.

    Attributes
    ----------
    schemes : tuple of tuple of int
        Level vectors, cut at each value's depth.
    delta : Fraction
        Total, half of it for the admission.
    admitting : Fraction
        Share of epsilon for the admission.
    lam, kappa, tau : float
        Of the objective and its draw; the sensitivity is 1.
    count_cap : int
        Of the objective.
    """

    schemes: tuple[tuple[int, ...], ...]
    delta: Fraction = Fraction(1, 10**9)
    admitting: Fraction = ADMITTING
    lam: float = 0.0
    kappa: float = 1.0
    tau: float = 2.0
    count_cap: int = 1

    def first(self, k: int) -> Public:
        """The same for the first attributes of a table; schemes that become equal are one."""
        return replace(self, schemes=tuple(dict.fromkeys(scheme[:k] for scheme in self.schemes)))


@dataclass(frozen=True)
class Calibrated:
    """Parameters for one epsilon and sampling rate.

    Attributes
    ----------
    keep_numerator : int
        A row is kept with probability ``keep_numerator / 2**32``.
    """

    admission: Admission
    keep_numerator: int
    crowd: int

    @property
    def sampled(self) -> float:
        """Probability that a row is kept."""
        return self.keep_numerator / KEEP_UNIT

    @classmethod
    def of(cls, public: Public, epsilon: Fraction, keep_fraction: Fraction) -> Calibrated:
        """Calibrate for a total epsilon.

        Parameters
        ----------
        keep_fraction : Fraction
            Share of the greatest keep probability, in (0, 1].
        """
        admit = epsilon * public.admitting
        part = round_down(public.delta / 4)
        numerator = keep_numerator(epsilon - admit, keep_fraction)
        return cls(
            calibrate_admission(float(admit), len(public.schemes), part, part),
            numerator,
            least_crowd(public.delta / 2, numerator, epsilon - admit),
        )


@dataclass(frozen=True)
class Released:
    """What came out, as means over the runs.

    Attributes
    ----------
    share : float
        Published rows over rows of the table.
    precision : float
        Mean over published rows of ``depth / height`` over the attributes; NaN if there are none.
    suppressed : float
        Share of the sample that the crowd threshold deleted; NaN if nothing was sampled.
    """

    share: float
    precision: float
    suppressed: float


@dataclass(frozen=True, eq=False)
class Sampled:
    """The sampled rows of a table, what each was recoded to, and which are published.

    Attributes
    ----------
    record : ndarray of int64, shape (s,)
        Row of the subject's distinct records.
    scheme : ndarray of int64, shape (s,)
        By which it is recoded; the last one is full suppression.
    nodes : ndarray of int32, shape (s, k)
    published : ndarray of bool, shape (s,)
        Whether a crowd shows the same.
    """

    record: LongArray
    scheme: LongArray
    nodes: IntArray
    published: npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Candidates:
    """Cells of a table under every scheme, which no parameter but the schemes changes.

    Attributes
    ----------
    cells : tuple of (ndarray of int32, shape (c, k); ndarray of int64, shape (c,); ndarray of int64, shape (m,))
        Per scheme: nodes and rows of each cell, and the cell of each distinct record.
    utility, precision : ndarray of float64, shape (m, w + 1)
        Of each distinct record under each scheme and the root.
    """

    subject: Subject
    public: Public
    cells: tuple[tuple[IntArray, LongArray, LongArray], ...]
    utility: FloatArray
    precision: FloatArray
    rows: LongArray = field(repr=False)

    @classmethod
    def of(cls, subject: Subject, public: Public) -> Candidates:
        """Group the table by the cells of each scheme."""
        radices = [len(axis.at_depth) for axis in subject.axes]
        cells, utility, precision = [], [], []
        for scheme in (*public.schemes, subject.heights):
            nodes = subject.disclosed(scheme)
            utility.append(np.sum([u[node] for u, node in zip(subject.utilities, nodes, strict=True)], axis=0))
            precision.append(subject.precision(nodes))
            index, member = CellIndex.build(nodes, radices, len(subject.counts))
            first = np.zeros(len(index.ranks[-1]), dtype=np.int64)
            first[member[::-1]] = np.arange(len(member))[::-1]
            counts = np.bincount(member, weights=subject.counts, minlength=len(first)).astype(np.int64)
            cells.append((np.column_stack([node[first] for node in nodes]), counts, member))
        return cls(
            subject,
            public,
            tuple(cells),
            np.column_stack(utility),
            np.column_stack(precision),
            np.repeat(np.arange(len(subject.counts)), subject.counts),
        )

    def sampled(self, parameters: Calibrated, *, seed: int, run: int) -> Sampled:
        """Simulate one release, row by row."""
        public, (m, width) = self.public, self.utility.shape
        counts = np.full((m, width), public.count_cap, dtype=np.int64)
        admitted = np.ones((m, width), dtype=np.bool_)
        for j, (nodes, exact, member) in enumerate(self.cells[:-1]):
            streams = Streams(simulation_key(seed, f"noise {run}"), cell_messages(j, nodes))
            noisy = exact + parameters.admission.sample(streams, len(exact))
            counts[:, j] = noisy[member]
            admitted[:, j] = counts[:, j] >= parameters.admission.threshold
        scores = objective(
            counts, np.ones((m, width)), self.utility,
            lam=public.lam, kappa=public.kappa, phi_min=1.0, count_cap=public.count_cap,
        )  # fmt: skip
        law = probabilities(scores, admitted, public.tau)
        n = len(self.rows)
        chosen = draw(law, keyed_uniforms(seed, f"recode {run}", (n,)), self.rows)
        kept = keyed_uniforms(seed, f"keep {run}", (n,)) < parameters.sampled
        record, column = self.rows[kept], chosen[kept]
        # A tuple is its nodes: cells of different schemes can be the same tuple, where a value lies high.
        tuples = np.zeros((len(record), self.subject.k), dtype=np.int32)
        for j, (nodes, _, member) in enumerate(self.cells):
            at = column == j
            tuples[at] = nodes[member[record[at]]]
        published = np.zeros(len(record), dtype=np.bool_)
        if len(record):
            radices = [len(axis.at_depth) for axis in self.subject.axes]
            _, of_tuple = CellIndex.build(list(tuples.T), radices, len(tuples))
            published = np.bincount(of_tuple)[of_tuple] >= parameters.crowd
        return Sampled(record, column.astype(np.int64), tuples, published)

    def released(self, parameters: Calibrated, *, seed: int, run: int) -> Released:
        """Simulate one release, and say what is left of the table."""
        rows = self.sampled(parameters, seed=seed, run=run)
        if not len(rows.record):
            return Released(0.0, float("nan"), float("nan"))
        precision = self.precision[rows.record, rows.scheme][rows.published]
        return Released(
            float(rows.published.sum()) / len(self.rows),
            float(precision.mean()) if len(precision) else float("nan"),
            1.0 - float(rows.published.mean()),
        )

    def mean(self, parameters: Calibrated, *, seed: int, runs: int) -> Released:
        """Mean of several releases; precision over those that published something."""
        found = [self.released(parameters, seed=seed, run=run) for run in range(runs)]
        return Released(
            *(_mean([getattr(one, name) for one in found]) for name in ("share", "precision", "suppressed"))
        )


def public_schemes(subject: Subject, rows: int) -> tuple[tuple[int, ...], ...]:
    """Choose level vectors from the hierarchies alone, for a table whose policy names none.

    Scheme j starts at full suppression and goes round the attributes from number j on, disclosing each a step further
    as long as the vector has at most ``rows / 1000`` cells.

    Parameters
    ----------
    subject : Subject
        Its hierarchies are read, its records are not.
    rows : int
        A public estimate of their number.

    Returns
    -------
    tuple of tuple of int
        At most :data:`SCHEMES`, all different, none full suppression unless nothing else fits.
    """
    heights, k, most = subject.heights, subject.k, max(rows // 1000, 2)
    # The last code is a suppressed value, the root at every level.
    nodes_at = [[len(np.unique(axis.ancestor[:-1, level])) for level in range(h + 1)]
                for axis, h in zip(subject.axes, heights, strict=True)]  # fmt: skip
    found: dict[tuple[int, ...], None] = {}
    for j in range(SCHEMES):
        # Beyond k the round goes the other way.
        order = [(j + (i if j < k else -i)) % k for i in range(k)]
        levels = list(heights)
        moved = True
        while moved:
            moved = False
            for i in order:
                cells = 1
                for other, level in enumerate(levels):
                    cells *= nodes_at[other][level - (other == i)] if level else nodes_at[other][0]
                if levels[i] and cells <= most:
                    levels[i] -= 1
                    moved = True
        found[tuple(levels)] = None
    return tuple(found)


def _mean(values: Sequence[float]) -> float:
    known = [value for value in values if value == value]
    return sum(known) / len(known) if known else float("nan")
