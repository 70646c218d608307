"""Differentially private stages: one row a person, admission, recoding and sampling, crowd histogram.

Every random number is a keyed function of a record or a cell (:mod:`privrisk_spark.kernels.random.keyed`), so retries
and other partitionings give the same bits. The keys travel inside UDF closures, never as column literals, which a query
plan would show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import Batches, grouped, in_chunks
from privrisk_spark.engine.counts import StoredCounts
from privrisk_spark.engine.decided import Decide, Decided, integers
from privrisk_spark.engine.fingerprints import record_blocks
from privrisk_spark.errors import InputError
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.arrays import BoolArray, FloatArray, IntArray, LongArray
from privrisk_spark.kernels.counting.cell_index import CellIndex
from privrisk_spark.kernels.counting.cells import CellSpace
from privrisk_spark.kernels.counting.consistent import Axis, consistent_at
from privrisk_spark.kernels.disclosure.decisions import Decisions
from privrisk_spark.kernels.disclosure.risk import identification_risk
from privrisk_spark.kernels.disclosure.sensitivity import Sensitivity
from privrisk_spark.kernels.dp.cell_places import CellPlaces
from privrisk_spark.kernels.dp.exponential import draw, negative_risk, objective, probabilities, reaching
from privrisk_spark.kernels.dp.scheme_cells import SchemeCells
from privrisk_spark.kernels.random import keyed
from privrisk_spark.ledger.calibrated import Calibrated, Drawing
from privrisk_spark.planning.disclosure import node_utilities, sensitivity
from privrisk_spark.policy.policy import Policy
from privrisk_spark.policy.private import AggregateObjective, ThresholdObjective
from privrisk_spark.stages.private.release_keys import ReleaseKeys


@dataclass(frozen=True, eq=False)
class Disclosing:
    """What a level vector discloses of a record, what that weighs and what it is worth.

    Attributes
    ----------
    ancestor : tuple of k ndarrays of int32, shape (n_leaves_i + 1, height_i + 1)
    code_depth : tuple of k ndarrays of int32, shape (n_leaves_i + 1,)
    utility : tuple of k ndarrays of float64, shape (n_nodes_i,)
    """

    ancestor: tuple[IntArray, ...]
    code_depth: tuple[IntArray, ...]
    utility: tuple[npt.NDArray[np.float64], ...]
    sensitivity: Sensitivity

    @staticmethod
    def tables(policy: Policy, hierarchies: Mapping[str, Hierarchy], axes: Sequence[Axis]) -> dict[str, Any]:
        """Attributes as the policy and its hierarchies have them; under risk model II every disclosure weighs 1."""
        by_weights = policy.risk.model == "I"
        return {
            "ancestor": tuple(hierarchy.ancestor for hierarchy in hierarchies.values()),
            "code_depth": tuple(axis.code_depth for axis in axes),
            "utility": node_utilities(policy, hierarchies),
            "sensitivity": sensitivity(policy.risk.sensitivity, hierarchies)
            if by_weights
            else Sensitivity("constant", ()),
        }

    def disclosed(self, codes: IntArray, levels: Sequence[int]) -> list[IntArray]:
        """Nodes of records at a level vector, per attribute."""
        return [
            np.ascontiguousarray(ancestor[:, level])[codes[:, i]]
            for i, (ancestor, level) in enumerate(zip(self.ancestor, levels, strict=True))
        ]


@dataclass(frozen=True, eq=False)
class Recoding(Disclosing):
    """What recoding a record depends on besides the record and the admitted cells."""

    mechanism: Calibrated

    @classmethod
    def of_policy(
        cls, policy: Policy, hierarchies: Mapping[str, Hierarchy], axes: Sequence[Axis], plan: Calibrated
    ) -> Recoding:
        """What the policy and its hierarchies say."""
        return cls(**cls.tables(policy, hierarchies, axes), mechanism=plan)

    @property
    def heights(self) -> list[int]:
        """The highest level of each attribute."""
        return [of_code.shape[1] - 1 for of_code in self.ancestor]

    @property
    def top(self) -> SchemeCells:
        """The cells of the highest levels."""
        return SchemeCells.of(self.ancestor, self.heights)


def admitted_cells(cells: Batches, recoding: Recoding, keys: ReleaseKeys) -> Batches:
    """Return the admitted CELLS: noise of its own on every count, those below t dropped.

    A cell's noise is a function of the key and the cell, so it is drawn once however often it is evaluated.
    """
    k = len(recoding.ancestor)
    mechanism, key = recoding.mechanism, keys.noise
    assert mechanism.admission is not None
    admission, frequent = mechanism.admission, mechanism.frequent

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in in_chunks(tables):
            numbers = table.column(schemas.SCHEME).to_numpy()
            nodes = integers(table, schemas.nodes(k))
            noisy = table.column(schemas.N_ROWS).to_numpy().astype(np.int64, copy=True)
            for number in np.unique(numbers):
                rows = np.flatnonzero(numbers == number)
                streams = keyed.Streams(key, keyed.cell_messages(int(number), nodes[rows]))
                noisy[rows] += admission.sample(streams, len(rows))
            frequent_cells = table.drop_columns([schemas.N_ROWS]).append_column(schemas.NOISY, pa.array(noisy))
            yield frequent_cells.filter(pa.array(noisy >= frequent))

    return cells.then(step, schemas.cells(k, noisy=True))


@dataclass(frozen=True, eq=False)
class AdmittedSet:
    """The admitted cells of every scheme: θ, released output of the admission.

    Attributes
    ----------
    nodes : tuple of ndarrays of int32, shape (n_admitted, k), one per scheme
        The cells, once each.
    noisy : tuple of ndarrays of int64, shape (n_admitted,)
        Their noisy counts.
    """

    nodes: tuple[IntArray, ...]
    noisy: tuple[LongArray, ...]

    @classmethod
    def collect_cells(cls, admitted: DataFrame, recoding: Recoding) -> AdmittedSet:
        """Collect the admitted cells; at most about (rows / t) per scheme."""
        return cls.of_table(admitted.toArrow(), recoding)

    @classmethod
    def of_table(cls, table: pa.Table, recoding: Recoding) -> AdmittedSet:
        """Index a table of admitted CELLS, in any order."""
        k = len(recoding.ancestor)
        numbers = table.column(schemas.SCHEME).to_numpy()
        nodes = integers(table, schemas.nodes(k))
        counts = table.column(schemas.NOISY).to_numpy()
        of_scheme = [np.flatnonzero(numbers == number) for number in range(len(recoding.mechanism.schemes))]
        return cls(tuple(nodes[rows] for rows in of_scheme), tuple(counts[rows] for rows in of_scheme))

    @property
    def sizes(self) -> list[int]:
        """Admitted cells per scheme."""
        return [len(noisy) for noisy in self.noisy]

    def counts(self, recoding: Recoding, codes: IntArray) -> tuple[LongArray, BoolArray]:
        """Noisy count of each record's cell under each scheme, and whether it is admitted; shape (n, w)."""
        columns = list(codes.T)
        counts = [
            np.append(noisy, 0)[places.find(columns)]
            for places, noisy in zip(self.places(recoding), self.noisy, strict=True)
        ]
        admitted = [places.find(columns) < places.n for places in self.places(recoding)]
        return np.column_stack(counts), np.column_stack(admitted)

    def places(self, recoding: Recoding) -> list[CellPlaces]:
        """Look-up of the admitted cells of each scheme."""
        schemes = recoding.mechanism.schemes
        return [CellPlaces.of(recoding.ancestor, s, nodes) for s, nodes in zip(schemes, self.nodes, strict=True)]

    def finder(self, recoding: Recoding) -> Finder:
        """The cells are the same for all records: what is known of them is worked out once."""
        places, top = self.places(recoding), recoding.top
        # After the cells of each scheme comes one that stands for all that are not admitted.
        nodes = [np.vstack([found, np.zeros((1, found.shape[1]), dtype=np.int32)]) for found in self.nodes]
        admitted = [np.arange(len(found)) < len(found) - 1 for found in nodes]
        counts = [np.append(noisy, 0) for noisy in self.noisy]
        cells = Cells.of(recoding, nodes, counts, admitted)

        def find(codes: list[IntArray]) -> tuple[Cells, LongArray]:
            return cells, cells.at([*(of_scheme.find(codes) for of_scheme in places), *top.words(codes)])

        return find


@dataclass(frozen=True)
class PublicCounts:
    """Counts of a public dictionary: admissibility and scores cost no budget."""

    stored: StoredCounts

    def counts(self, recoding: Recoding, codes: IntArray, scheme: Sequence[int]) -> tuple[LongArray, BoolArray]:
        """``ρ`` of each record's cell under a scheme, and whether it is t-frequent; shape (n,)."""
        counts = consistent_at(self.stored.load(), recoding.code_depth, codes, scheme)
        return counts, counts >= recoding.mechanism.frequent

    def finder(self, recoding: Recoding) -> Finder:
        """Count the cells that occur among the records asked for."""
        return _finder_of_counts(recoding, self.counts)


@dataclass(frozen=True, eq=False)
class FrequentCells:
    """The t-frequent cells of a public dictionary: admissibility and scores cost no budget.

    Attributes
    ----------
    index : CellIndex
        Of the cells' classes.
    rows : ndarray of int64
        ``ρ`` of each, in the order of the index.
    """

    space: CellSpace
    index: CellIndex
    rows: LongArray

    @classmethod
    def collect_cells(cls, cells: DataFrame, space: CellSpace, *, most: int) -> FrequentCells:
        """Collect the frequent cells; at most about (rows / t) per scheme.

        Raises
        ------
        InputError
            If there are more than ``most``.
        """
        table = cells.limit(most + 1).toArrow()
        if table.num_rows > most:
            raise InputError(
                f"counting.sorted_vectors: there are more than {most:,} frequent cells; raise it if the driver has the "
                "memory, or raise guarantee.frequent."
            )
        words = [table.column(name).to_numpy() for name in table.column_names if name != schemas.N_ROWS]
        classes = space.classes(words)
        radices = [relation.n_classes for relation in space.relations]
        index, member = CellIndex.build(list(classes.T), radices, len(classes))
        rows = np.zeros(len(classes), dtype=np.int64)
        rows[member] = table.column(schemas.N_ROWS).to_numpy()
        return cls(space, index, rows)

    def counts(self, recoding: Recoding, codes: IntArray, scheme: Sequence[int]) -> tuple[LongArray, BoolArray]:
        """``ρ`` of each record's cell under a scheme, 0 if not t-frequent, and whether it is; shape (n,)."""
        disclosed = recoding.disclosed(codes, scheme)
        classes = [r.node_class[node] for r, node in zip(self.space.relations, disclosed, strict=True)]
        position, admitted = self.index.find(classes, len(codes))
        counts = self.rows[position] if len(self.rows) else np.zeros(len(codes), dtype=np.int64)
        return np.where(admitted, counts, 0), admitted

    def finder(self, recoding: Recoding) -> Finder:
        """Count the cells that occur among the records asked for."""
        return _finder_of_counts(recoding, self.counts)


Admissible = AdmittedSet | PublicCounts | FrequentCells
"""The cells a record may be drawn to, with the counts its draw may read."""

Finder = Callable[[list[IntArray]], tuple["Cells", LongArray]]
"""Takes leaf codes, an array an attribute; returns cells, and those of each record, shape (n, w + 1)."""


@dataclass(frozen=True, eq=False)
class Cells:
    """Cells that records may be drawn to, those of one scheme after those of another, those of the highest levels last.

    The highest levels are ⊥ and so one cell, unless an attribute has no levels above its values.

    Attributes
    ----------
    first : ndarray of int64, shape (w + 1,)
        First cell of each scheme, and of the highest levels.
    nodes : ndarray of int32, shape (m, k)
    counts : ndarray of int64, shape (m,)
    admitted : ndarray of bool, shape (m,)
    phi, utility, scores : ndarray of float64, shape (m,)
    """

    first: LongArray
    nodes: IntArray
    counts: LongArray
    admitted: BoolArray
    phi: npt.NDArray[np.float64]
    utility: npt.NDArray[np.float64]
    scores: npt.NDArray[np.float64]

    @classmethod
    def of(
        cls,
        recoding: Recoding,
        nodes: Sequence[IntArray],
        counts: Sequence[LongArray],
        admitted: Sequence[BoolArray],
    ) -> Cells:
        """From the cells of each scheme."""
        mechanism = recoding.mechanism
        top = recoding.top
        highest = np.column_stack(top.unpacked([np.arange(prod(top.packing.radices))]))
        every = np.vstack([*nodes, highest])
        count = np.concatenate([*counts, np.full(len(highest), mechanism.count_cap, dtype=np.int64)])
        disclosed = list(np.ascontiguousarray(every.T))
        phi = recoding.sensitivity.phi(disclosed)
        utility = np.zeros(len(every))
        for of_node, node in zip(recoding.utility, disclosed, strict=True):
            utility += of_node[node]
        assert isinstance(mechanism, Drawing)
        asked = mechanism.objective
        columns = count[:, None], phi[:, None], utility[:, None]
        if isinstance(asked, ThresholdObjective):
            scores = negative_risk(*columns[:2], count_cap=mechanism.count_cap)
        else:
            scores = objective(
                *columns,
                lam=asked.lambda_, kappa=asked.kappa, phi_min=asked.phi_min, count_cap=mechanism.count_cap,
            )  # fmt: skip
        first = np.concatenate([[0], np.cumsum([len(of_scheme) for of_scheme in nodes])])
        all_admitted = np.concatenate([*admitted, np.ones(len(highest), dtype=np.bool_)])
        return cls(first, every, count, all_admitted, phi, utility, scores[:, 0])

    def at(self, places: Sequence[LongArray]) -> LongArray:
        """Cell of each record under each scheme and the highest levels, from its place among theirs; (n, w + 1)."""
        result = np.empty((len(places[0]), len(places)), dtype=np.int64)
        for j, place in enumerate(places):
            np.add(place, self.first[j], out=result[:, j])
        return result

    def law(self, at: LongArray, asked: AggregateObjective | ThresholdObjective) -> FloatArray:
        """Law of the draw of records by their cells."""
        admitted = self.admitted[at]
        if isinstance(asked, ThresholdObjective):
            admitted = reaching(self.utility[at], admitted, asked.utility_at_least)
        return probabilities(self.scores[at], admitted, asked.tau)


def _finder_of_counts(
    recoding: Recoding, counts: Callable[[Recoding, IntArray, Sequence[int]], tuple[LongArray, BoolArray]]
) -> Finder:
    def find(codes: list[IntArray]) -> tuple[Cells, LongArray]:
        rows = np.column_stack(codes)
        nodes, numbers, frequent, places = [], [], [], []
        for scheme in recoding.mechanism.schemes:
            disclosed = recoding.disclosed(rows, scheme)
            first, member = grouped(disclosed)
            of_cell, admitted = counts(recoding, rows[first], scheme)
            nodes.append(np.column_stack([node[first] for node in disclosed]))
            numbers.append(of_cell)
            frequent.append(admitted)
            places.append(member)
        cells = Cells.of(recoding, nodes, numbers, frequent)
        return cells, cells.at([*places, *recoding.top.words(codes)])

    return find


_DRAWN_AT_ONCE = 2**13
"""Records whose laws are worked out together: they stay in the nearer caches. Does not change a result."""


def drawing(recoding: Recoding, admissible: Admissible, keys: ReleaseKeys) -> Decide:
    """Return the function that draws one generalization per record of a chunk, and whether it is in the sample.

    Parameters
    ----------
    admissible : AdmittedSet, PublicCounts or FrequentCells
        Nothing else of the table may reach a record's draw.
    """
    names = schemas.codes(len(recoding.ancestor))
    mechanism = recoding.mechanism
    assert isinstance(mechanism, Drawing)
    recode_key, keep_key = keys.recode, keys.keep
    asked = mechanism.objective
    # Made by the first chunk of a task: it is larger than what it is made from.
    finders: list[Finder] = []

    def run(table: pa.Table) -> Decided:
        if not finders:
            finders.append(admissible.finder(recoding))
        codes = [table.column(name).to_numpy() for name in names]
        messages = keyed.record_messages(record_blocks(table))
        uniforms = keyed.uniforms(keyed.prf(recode_key, messages)[:, 0])
        kept = keyed.keep(keyed.prf(keep_key, messages)[:, 0], mechanism.keep_numerator)
        cells, at = finders[0](codes)
        drawn = np.zeros(table.num_rows, dtype=np.int64)
        for begin in range(0, table.num_rows, _DRAWN_AT_ONCE):
            rows = slice(begin, begin + _DRAWN_AT_ONCE)
            chosen = draw(cells.law(at[rows], asked), uniforms[rows])
            drawn[rows] = at[rows][np.arange(len(chosen)), chosen]
        decisions, member = _drawn_decisions(recoding, cells, drawn, codes)
        return Decided(table, decisions, member, kept)

    return run


def _drawn_decisions(
    recoding: Recoding, cells: Cells, drawn: LongArray, codes: list[IntArray]
) -> tuple[Decisions, LongArray]:
    """One decision for all records drawn to one cell that have values of the same depths and the same Φ as they are."""
    mechanism = recoding.mechanism
    # No exact count of the table is made: at most as if nobody else were like the record.
    before = recoding.sensitivity.phi(
        [of_code[code, 0] for of_code, code in zip(recoding.ancestor, codes, strict=True)]
    )
    depths = [depth[code] for depth, code in zip(recoding.code_depth, codes, strict=True)]
    first, member = grouped([drawn, *depths, before])
    cell = drawn[first]
    scheme = np.searchsorted(cells.first, cell, side="right") - 1
    levels = np.array([*mechanism.schemes, recoding.heights], dtype=np.int64)[scheme]
    counts, phi = cells.counts[cell], cells.phi[cell]
    decisions = Decisions(
        levels=np.minimum(levels, np.column_stack([depth[first] for depth in depths])).astype(np.int8),
        nodes=cells.nodes[cell],
        risk=identification_risk("I", phi, np.maximum(counts, 0), dictionary_rows=mechanism.count_cap),
        risk_before=before[first],
        utility=cells.utility[cell],
        consistent=counts,
        consistent_before=np.ones(len(first), dtype=np.int64),
        feasible=np.ones(len(first), dtype=np.bool_),
    )
    return decisions, member


def full_domain(recoding: Recoding, keys: ReleaseKeys) -> Decide:
    """Return the function that recodes a chunk by the one scheme of the mechanism, and says what is in the sample.

    No count of a cell is known: risks are those of a tuple with as many rows as the crowd threshold, which every
    released one has at least.
    """
    k = len(recoding.ancestor)
    mechanism, keep_key = recoding.mechanism, keys.keep
    (scheme,) = mechanism.schemes

    def run(table: pa.Table) -> Decided:
        codes = integers(table, schemas.codes(k))
        first, member = grouped(list(codes.T))
        distinct = codes[first]
        disclosed = recoding.disclosed(distinct, scheme)
        depths = np.column_stack([depth[distinct[:, i]] for i, depth in enumerate(recoding.code_depth)])
        crowd = np.full(len(first), mechanism.crowd, dtype=np.int64)
        phi = recoding.sensitivity.phi(disclosed)
        utility = np.zeros(len(first))
        for of_node, node in zip(recoding.utility, disclosed, strict=True):
            utility += of_node[node]
        decisions = Decisions(
            levels=np.minimum(np.array(scheme), depths).astype(np.int8),
            nodes=np.column_stack(disclosed),
            risk=identification_risk("I", phi, crowd, dictionary_rows=mechanism.count_cap),
            risk_before=recoding.sensitivity.phi(recoding.disclosed(distinct, [0] * k)),
            utility=utility,
            consistent=crowd,
            consistent_before=np.ones(len(first), dtype=np.int64),
            feasible=np.ones(len(first), dtype=np.bool_),
        )
        words = keyed.prf(keep_key, keyed.record_messages(record_blocks(table)))[:, 0]
        return Decided(table, decisions, member, keyed.keep(words, mechanism.keep_numerator))

    return run
