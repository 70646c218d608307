"""Differentially private stages: one row a person, admission, recoding and sampling, crowd histogram.

Every random number is a keyed function of a record or a cell (:mod:`privrisk_spark.kernels.randomness`), so retries and
other partitionings give the same bits. The keys travel inside UDF closures, never as column literals, which a query
plan would show.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses
from pyspark.sql import types as T  # noqa: N812 - the name every Spark program uses

from privrisk_spark import schemas
from privrisk_spark.anonymize import Decide, Decided, integers
from privrisk_spark.batches import Batches, Scratch, grouped, in_chunks
from privrisk_spark.counts import StoredCounts, collect_vectors
from privrisk_spark.errors import InputError
from privrisk_spark.hierarchy import Hierarchy
from privrisk_spark.kernels import randomness
from privrisk_spark.kernels.cells import CellSpace
from privrisk_spark.kernels.counting import Axis, CellIndex, consistent_at
from privrisk_spark.kernels.decide import Decisions
from privrisk_spark.kernels.exponential import draw, negative_risk, objective, probabilities, reaching
from privrisk_spark.kernels.risk import identification_risk
from privrisk_spark.kernels.sensitivity import Sensitivity
from privrisk_spark.mechanism import Mechanism
from privrisk_spark.policy import Policy, ThresholdObjective
from privrisk_spark.problem import node_utilities, sensitivity

IntArray = npt.NDArray[np.int32]
LongArray = npt.NDArray[np.int64]


@dataclass(frozen=True, repr=False)
class ReleaseKeys:
    """Keys of one release, one per use; they never appear in a text.

    Attributes
    ----------
    noise, recode, keep, person, scheme : bytes
        Derived from the release key and bound to run id, snapshot and mechanism.
    """

    noise: bytes
    recode: bytes
    keep: bytes
    person: bytes
    scheme: bytes

    @classmethod
    def derive(cls, release_key: bytes, *, run_id: str, snapshot: str, mechanism: str) -> ReleaseKeys:
        """Derive independent keys; another snapshot or mechanism under the same run id gives unrelated draws."""
        bound = (run_id, snapshot, mechanism)
        return cls(
            *(
                randomness.derive_key(release_key, *bound, label)
                for label in ("noise", "recode", "keep", "person", "scheme")
            )
        )


@dataclass(frozen=True, eq=False)
class Disclosing:
    """What a level vector discloses of a record, what that weighs and what it is worth.

    Attributes
    ----------
    ancestor : tuple of k ndarrays of int32, shape (n_leaves_i + 1, height_i + 1)
    code_depth : tuple of k ndarrays of int32, shape (n_leaves_i + 1,)
    utility : tuple of k ndarrays of float64, shape (n_nodes_i,)
    sensitivity : Sensitivity
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
    """What recoding a record depends on besides the record and the admitted cells.

    Attributes
    ----------
    mechanism : Mechanism
    """

    mechanism: Mechanism

    @classmethod
    def of_policy(
        cls, policy: Policy, hierarchies: Mapping[str, Hierarchy], axes: Sequence[Axis], plan: Mechanism
    ) -> Recoding:
        """What the policy and its hierarchies say."""
        return cls(**cls.tables(policy, hierarchies, axes), mechanism=plan)

    @property
    def radices(self) -> list[int]:
        """Exclusive upper bound of the nodes of each attribute."""
        return [len(utility) for utility in self.utility]


_DRAW = "draw"


def one_row_each(encoded: Batches, keys: ReleaseKeys) -> DataFrame:
    """Return ENCODED with one row of each person, without ``entity``.

    It is the row with the smallest keyed function of its identity, hence one of the person's rows at random, and the
    same one however the rows are spread. A row that names no person is a person by itself: to refuse the table, or
    to drop the row, would make what is published depend on it in a way no proof covers.

    Which row of a person is drawn depends on that person's rows alone. So a person more or less, with however many
    rows, is a row more or less of what is returned, and the guarantee for a row becomes one for a person.

    Parameters
    ----------
    encoded : Batches
        With ``block`` and ``entity``.
    keys : ReleaseKeys
    """
    key, kept = keys.person, [name for name in encoded.schema.fieldNames() if name != schemas.ENTITY]

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in in_chunks(tables):
            blocks = record_blocks(table)
            words = randomness.prf(key, randomness.record_messages(blocks))
            # The identity decides between equal draws, which happen with probability 2^-128.
            draws = np.hstack([np.ascontiguousarray(words.astype("<u8")).view(np.uint8).reshape(-1, 16), blocks])
            column = pa.FixedSizeBinaryArray.from_buffers(
                pa.binary(32), len(draws), [None, pa.py_buffer(draws.tobytes())]
            )
            yield table.append_column(_DRAW, column.cast(pa.binary()))

    schema = T.StructType([*encoded.schema.fields, T.StructField(_DRAW, T.BinaryType())])
    rows = encoded.then(step, schema).frame()
    alone = F.when(F.col(schemas.ENTITY).isNull(), F.col(schemas.BLOCK)).alias("alone")
    drawn = F.min_by(F.struct(*kept), _DRAW).alias("row")
    return rows.groupBy(schemas.ENTITY, alone).agg(drawn).select("row.*")


def scheme_cells(vectors: DataFrame, recoding: Recoding) -> DataFrame:
    """Return CELLS with exact counts: the non-empty cells of every scheme."""
    k = len(recoding.ancestor)
    schemes = recoding.mechanism.schemes

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in in_chunks(tables):
            codes = integers(table, schemas.codes(k))
            rows = table.column(schemas.N_ROWS).to_numpy()
            for number, scheme in enumerate(schemes):
                nodes = recoding.disclosed(codes, scheme)
                index, member = CellIndex.build(nodes, recoding.radices, len(codes))
                first = np.zeros(len(index.ranks[-1]), dtype=np.int64)
                first[member[::-1]] = np.arange(len(codes))[::-1]
                counts = np.zeros(len(first), dtype=np.int64)
                np.add.at(counts, member, rows)
                arrays = [np.full(len(first), number, dtype=np.int32), *[node[first] for node in nodes], counts]
                yield pa.Table.from_arrays(
                    [pa.array(array) for array in arrays],
                    names=[schemas.SCHEME, *schemas.nodes(k), schemas.N_ROWS],
                )

    partial = Batches.of_frame(vectors).then(step, schemas.cells(k, noisy=False)).frame()
    return partial.groupBy(schemas.SCHEME, *schemas.nodes(k)).agg(F.sum(schemas.N_ROWS).alias(schemas.N_ROWS))


def admitted_cells(cells: DataFrame, recoding: Recoding, keys: ReleaseKeys) -> DataFrame:
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
                streams = randomness.Streams(key, randomness.cell_messages(int(number), nodes[rows]))
                noisy[rows] += admission.sample(streams, len(rows))
            frequent_cells = table.drop_columns([schemas.N_ROWS]).append_column(schemas.NOISY, pa.array(noisy))
            yield frequent_cells.filter(pa.array(noisy >= frequent))

    return Batches.of_frame(cells).then(step, schemas.cells(k, noisy=True)).frame()


@dataclass(frozen=True, eq=False)
class AdmittedSet:
    """The admitted cells of every scheme: θ, released output of the admission.

    Attributes
    ----------
    indexes : tuple of CellIndex, one per scheme
    noisy : tuple of ndarrays of int64
        Noisy count of each admitted cell, in the order of its index.
    """

    indexes: tuple[CellIndex, ...]
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
        indexes, noisy = [], []
        for number in range(len(recoding.mechanism.schemes)):
            rows = np.flatnonzero(numbers == number)
            index, member = CellIndex.build(list(nodes[rows].T), recoding.radices, len(rows))
            ordered = np.zeros(len(rows), dtype=np.int64)
            ordered[member] = counts[rows]
            indexes.append(index)
            noisy.append(ordered)
        return cls(tuple(indexes), tuple(noisy))

    @property
    def sizes(self) -> list[int]:
        """Admitted cells per scheme."""
        return [len(noisy) for noisy in self.noisy]

    def counts(self, recoding: Recoding, codes: IntArray) -> tuple[LongArray, npt.NDArray[np.bool_]]:
        """Noisy count of each record's cell under each scheme, and whether it is admitted; shape (n, w)."""
        n, w = len(codes), len(self.indexes)
        counts, admitted = np.zeros((n, w), dtype=np.int64), np.zeros((n, w), dtype=np.bool_)
        for j, (index, noisy) in enumerate(zip(self.indexes, self.noisy, strict=True)):
            position, found = index.find(recoding.disclosed(codes, recoding.mechanism.schemes[j]), n)
            if len(noisy):
                counts[:, j] = np.where(found, noisy[position], 0)
            admitted[:, j] = found
        return counts, admitted


@dataclass(frozen=True)
class PublicCounts:
    """Counts of a public dictionary: admissibility and scores cost no budget."""

    stored: StoredCounts

    def counts(self, recoding: Recoding, codes: IntArray) -> tuple[LongArray, npt.NDArray[np.bool_]]:
        """``ρ`` of each record's cell under each scheme, and whether it is t-frequent; shape (n, w)."""
        loaded = self.stored.load()
        columns = [consistent_at(loaded, recoding.code_depth, codes, scheme) for scheme in recoding.mechanism.schemes]
        counts = np.column_stack(columns)
        return counts, counts >= recoding.mechanism.frequent


@dataclass(frozen=True, eq=False)
class FrequentCells:
    """The t-frequent cells of a public dictionary: admissibility and scores cost no budget.

    Attributes
    ----------
    space : CellSpace
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

    def counts(self, recoding: Recoding, codes: IntArray) -> tuple[LongArray, npt.NDArray[np.bool_]]:
        """``ρ`` of each record's cell under each scheme, 0 if not t-frequent, and whether it is; shape (n, w)."""
        n, w = len(codes), len(recoding.mechanism.schemes)
        counts, admitted = np.zeros((n, w), dtype=np.int64), np.zeros((n, w), dtype=np.bool_)
        for j, scheme in enumerate(recoding.mechanism.schemes):
            disclosed = recoding.disclosed(codes, scheme)
            classes = [r.node_class[node] for r, node in zip(self.space.relations, disclosed, strict=True)]
            position, admitted[:, j] = self.index.find(classes, n)
            if len(self.rows):
                counts[:, j] = np.where(admitted[:, j], self.rows[position], 0)
        return counts, admitted


Admissible = AdmittedSet | PublicCounts | FrequentCells
"""The cells a record may be drawn to, with the counts its draw may read."""


def drawing(recoding: Recoding, admissible: Admissible, keys: ReleaseKeys) -> Decide:
    """Return the function that draws one generalization per record of a chunk, and whether it is in the sample.

    Parameters
    ----------
    recoding : Recoding
    admissible : AdmittedSet, PublicCounts or FrequentCells
        Nothing else of the table may reach a record's draw.
    keys : ReleaseKeys
    """
    k = len(recoding.ancestor)
    mechanism = recoding.mechanism
    recode_key, keep_key = keys.recode, keys.keep

    def run(table: pa.Table) -> Decided:
        codes = integers(table, schemas.codes(k))
        messages = randomness.record_messages(record_blocks(table))
        first, member = grouped(list(codes.T))
        candidates = _candidates(recoding, admissible, codes[first])
        uniforms = randomness.uniforms(randomness.prf(recode_key, messages)[:, 0])
        chosen = draw(candidates.law, uniforms, member)
        kept = randomness.keep(randomness.prf(keep_key, messages)[:, 0], mechanism.keep_numerator)
        # One decision per (distinct record, candidate); rows point at theirs.
        return Decided(table, candidates.decisions, member * candidates.law.shape[1] + chosen, kept)

    return run


def full_domain(recoding: Recoding, keys: ReleaseKeys) -> Decide:
    """Return the function that recodes a chunk by the one scheme of the mechanism, and says what is in the sample.

    No count of a cell is known: risks are those of a tuple with as many rows as the crowd threshold, which every
    released one has at least.

    Parameters
    ----------
    recoding : Recoding
    keys : ReleaseKeys
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
            feasible=np.ones(len(first), dtype=np.bool_),
        )
        words = randomness.prf(keep_key, randomness.record_messages(record_blocks(table)))[:, 0]
        return Decided(table, decisions, member, randomness.keep(words, mechanism.keep_numerator))

    return run


def record_blocks(table: pa.Table) -> npt.NDArray[np.uint8]:
    """Blocks of records as a byte matrix; one buffer per chunk."""
    column = table.column(schemas.BLOCK).combine_chunks().cast(pa.binary(16))
    array = column if isinstance(column, pa.Array) else pa.concat_arrays(column.chunks)
    start = array.offset * 16
    raw = np.frombuffer(array.buffers()[1], dtype=np.uint8)[start : start + 16 * len(array)]
    return raw.reshape(-1, 16)


@dataclass(frozen=True, eq=False)
class _Candidates:
    law: npt.NDArray[np.float64]
    decisions: Decisions


def _candidates(recoding: Recoding, admissible: Admissible, codes: IntArray) -> _Candidates:
    """Law of the draw of distinct records, and the decision each candidate stands for; the root comes last."""
    mechanism = recoding.mechanism
    n, k = codes.shape
    counts, admitted = admissible.counts(recoding, codes)
    counts = np.column_stack([counts, np.full(n, mechanism.count_cap)])
    admitted = np.column_stack([admitted, np.ones(n, dtype=np.bool_)])
    depths = np.column_stack([depth[codes[:, i]] for i, depth in enumerate(recoding.code_depth)])
    heights = [ancestor.shape[1] - 1 for ancestor in recoding.ancestor]
    width = counts.shape[1]
    phi, utility = np.zeros((n, width)), np.zeros((n, width))
    levels = np.zeros((n, width, k), dtype=np.int8)
    nodes = np.zeros((n, width, k), dtype=np.int32)
    for j, scheme in enumerate([*mechanism.schemes, heights]):
        disclosed = recoding.disclosed(codes, scheme)
        nodes[:, j, :] = np.column_stack(disclosed)
        levels[:, j, :] = np.minimum(np.array(scheme), depths)
        phi[:, j] = recoding.sensitivity.phi(disclosed)
        for table, node in zip(recoding.utility, disclosed, strict=True):
            utility[:, j] += table[node]
    asked = mechanism.policy.objective
    assert asked is not None
    if isinstance(asked, ThresholdObjective):
        scores = negative_risk(counts, phi, count_cap=mechanism.count_cap)
        admitted = reaching(utility, admitted, asked.utility_at_least)
    else:
        scores = objective(
            counts, phi, utility,
            lam=asked.lambda_, kappa=asked.kappa, phi_min=asked.phi_min, count_cap=mechanism.count_cap,
        )  # fmt: skip
    law = probabilities(scores, admitted, asked.tau)
    flat = counts.ravel()
    before = recoding.sensitivity.phi(recoding.disclosed(codes, [0] * k))
    risk = identification_risk("I", phi.ravel(), np.maximum(flat, 0), dictionary_rows=mechanism.count_cap)
    decisions = Decisions(
        levels=levels.reshape(-1, k),
        nodes=nodes.reshape(-1, k),
        risk=risk,
        # No exact count of the table is made: at most as if nobody else were like the record.
        risk_before=np.repeat(before, width),
        utility=utility.ravel(),
        consistent=flat,
        feasible=np.ones(n * width, dtype=np.bool_),
    )
    return _Candidates(law, decisions)


def collect_histogram(
    scratch: Scratch, histogram: DataFrame, *, k: int, most: int
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """Materialize a histogram of released tuples; return their nodes, in order, and rows.

    Raises
    ------
    InputError
        If there are more than ``most``.
    """
    return collect_vectors(scratch.write_frame(histogram, "histogram"), schemas.nodes(k), most=most)


def crowd_histogram(tuples: DataFrame, *, k: int, crowd: int) -> DataFrame:
    """Return TUPLES: sampled records by the whole released tuple, tuples below the crowd threshold dropped."""
    return (
        tuples.groupBy(*schemas.nodes(k))
        .agg(F.sum(schemas.N_ROWS).alias(schemas.N_ROWS))
        .where(F.col(schemas.N_ROWS) >= F.lit(crowd))
    )
