"""Deciding stage: each record's disclosure by a kernel inside Arrow UDFs over partitions, on distinct records."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses
from pyspark.sql import types as T  # noqa: N812

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import PARTS, Batches, decoded, grouped, in_chunks, part_name, report, write_ipc
from privrisk_spark.engine.sources import dictionary_of
from privrisk_spark.engine.tuples import write_tuples
from privrisk_spark.errors import InfeasibleError
from privrisk_spark.kernels.counting.consistent import Counts
from privrisk_spark.kernels.disclosure.decisions import Decisions
from privrisk_spark.kernels.disclosure.disclosure import Disclosure
from privrisk_spark.kernels.disclosure.objective import AnyObjective, GreatestUtility, LeastRisk
from privrisk_spark.kernels.disclosure.risk import Attacker, DictionaryRule
from privrisk_spark.kernels.disclosure.sensitivity import normalized, scaled
from privrisk_spark.kernels.numeric.bins import BinCounts
from privrisk_spark.kernels.numeric.moments import Moments, risk_histogram, rows_by_level
from privrisk_spark.kernels.search.method import Search
from privrisk_spark.kernels.search.table_search import decide, decide_kinds
from privrisk_spark.policy.decisions import DecisionPolicy, DisclosePerRecord
from privrisk_spark.policy.policy import Policy
from privrisk_spark.policy.sensitivity import InteractionSensitivity, Personal, RecordSensitivity, WeighedSensitivity
from privrisk_spark.stages.counting.dense_sorted import StoredCounts


@dataclass(frozen=True)
class WeightColumns:
    """Where the personal weights of a record lie among the columns ``w<i>``.

    Attributes
    ----------
    n : int
        Number of weight columns.
    of_attribute : tuple of k int or None
        Column of ``w'_{j,r}``, which multiplies the attribute's weight; None leaves that.
    attribute : tuple of k float
        ``w_j``, for the normalization.
    factor, record : int or None
        Columns of ``w'_r`` and of ``w_r``; of the form ``interaction`` one column is both.
    sum_to, at_most : float or None
        Normalization of a record's weights.
    """

    n: int = 0
    of_attribute: tuple[int | None, ...] = ()
    attribute: tuple[float, ...] = ()
    factor: int | None = None
    record: int | None = None
    sum_to: float | None = None
    at_most: float | None = None

    @classmethod
    def of_policy(cls, policy: Policy, attributes: Sequence[str]) -> WeightColumns:
        """Resolve the policy's column names to positions."""
        names, sensitivity = policy.weight_columns, policy.risk.sensitivity
        weighed = sensitivity if isinstance(sensitivity, WeighedSensitivity) else WeighedSensitivity()
        given = weighed.personal or Personal()
        of_record = sensitivity.record if isinstance(sensitivity, RecordSensitivity) else None
        if isinstance(sensitivity, InteractionSensitivity):
            # The factor scales all weights of a record, those of interactions too.
            of_record = given.factor
        return cls(
            n=len(names),
            of_attribute=tuple(
                names.index(given.columns[name]) if name in given.columns else None for name in attributes
            ),
            attribute=tuple(weighed.weights.get(name, 1.0) for name in attributes),
            factor=names.index(given.factor) if given.factor else None,
            record=names.index(of_record) if of_record else None,
            sum_to=given.sum_to,
            at_most=given.at_most,
        )

    def personal(self, weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64] | None:
        """Return ``w'_{j,r}`` of each record, shape (n, k), or None when no weight is personal."""
        if self.factor is None and all(position is None for position in self.of_attribute):
            return None
        ones = np.ones(len(weights))
        result = np.column_stack([ones if p is None else weights[:, p] for p in self.of_attribute])
        if self.factor is not None:
            result = scaled(result, weights[:, [self.factor]])
        total = self.sum_to or self.at_most
        if total is None:
            return result
        return normalized(result, total=total, at_most=self.sum_to is None, attribute=self.attribute)

    def of_record(self, weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64] | None:
        """Return ``w_r`` of each record, or None."""
        return None if self.record is None else weights[:, self.record]


def integers(table: pa.Table, names: Sequence[str]) -> npt.NDArray[np.int32]:
    """Columns of an Arrow table as one int32 matrix, shape (n, number of names)."""
    result = np.empty((table.num_rows, len(names)), dtype=np.int32, order="F")
    for i, name in enumerate(names):
        result[:, i] = table.column(name).to_numpy()
    return result


def floats(table: pa.Table, names: Sequence[str]) -> npt.NDArray[np.float64]:
    """Columns of an Arrow table as one float64 matrix, shape (n, number of names)."""
    result = np.empty((table.num_rows, len(names)), order="F")
    for i, name in enumerate(names):
        result[:, i] = table.column(name).to_numpy()
    return result


@dataclass(frozen=True, eq=False)
class Decided:
    """Rows of a chunk and their decisions.

    Attributes
    ----------
    table : pa.Table
        ENCODED rows.
    decisions : Decisions
        Of the distinct records of the chunk, of more, or of kinds of alike ones.
    rows : ndarray of int64, shape (n,)
        Decision of each row.
    kept : ndarray of bool, shape (n,)
        Whether the row is released.
    disclosed : tuple of k ndarrays of int32, shape (n,), or None
        Node of each row, where records of other values share its decision; None where they do not.
    """

    table: pa.Table
    decisions: Decisions
    rows: npt.NDArray[np.int64]
    kept: npt.NDArray[np.bool_]
    disclosed: tuple[npt.NDArray[np.int32], ...] | None = None

    def node(self, i: int) -> npt.NDArray[np.int32]:
        """Node of attribute ``i`` of each row."""
        return self.decisions.nodes[:, i][self.rows] if self.disclosed is None else self.disclosed[i]

    def with_columns(self) -> pa.Table:
        """Rows with the DECIDED columns."""
        table, decisions, rows = self.table, self.decisions, self.rows
        k = decisions.levels.shape[1]
        for i, name in enumerate(schemas.levels(k)):
            table = table.append_column(name, pa.array(decisions.levels[:, i][rows]))
        for i, name in enumerate(schemas.nodes(k)):
            table = table.append_column(name, pa.array(self.node(i)))
        table = table.append_column(schemas.RISK, pa.array(decisions.risk[rows]))
        table = table.append_column(schemas.RISK_BEFORE, pa.array(decisions.risk_before[rows]))
        table = table.append_column(schemas.UTILITY, pa.array(decisions.utility[rows]))
        table = table.append_column(schemas.CONSISTENT, pa.array(decisions.consistent[rows]))
        table = table.append_column(schemas.FEASIBLE, pa.array(decisions.feasible[rows]))
        table = table.append_column(schemas.KEPT, pa.array(self.kept))
        return table if decisions.gap is None else table.append_column(schemas.GAP, pa.array(decisions.gap[rows]))

    @classmethod
    def of_columns(cls, table: pa.Table, *, k: int) -> Decided:
        """Rows that have the DECIDED columns already, each with a decision of its own."""
        numbers = {
            name: table.column(name).to_numpy()
            for name in (schemas.RISK, schemas.RISK_BEFORE, schemas.UTILITY, schemas.CONSISTENT)
        }
        decisions = Decisions(
            levels=integers(table, schemas.levels(k)).astype(np.int8),
            nodes=integers(table, schemas.nodes(k)),
            risk=numbers[schemas.RISK],
            risk_before=numbers[schemas.RISK_BEFORE],
            utility=numbers[schemas.UTILITY],
            consistent=numbers[schemas.CONSISTENT],
            feasible=table.column(schemas.FEASIBLE).to_numpy(),
            gap=table.column(schemas.GAP).to_numpy() if schemas.GAP in table.column_names else None,
        )
        return cls(table, decisions, np.arange(table.num_rows), table.column(schemas.KEPT).to_numpy())


Decide = Callable[[pa.Table], Decided]


@dataclass(frozen=True)
class StoredAttacker:
    """The counts of every dictionary the attacker may know, as workers find them.

    Attributes
    ----------
    counts : tuple of StoredCounts
    rule : {"bayes", "minimax"}
    prior : tuple of float
    """

    counts: tuple[StoredCounts, ...]
    rule: DictionaryRule
    prior: tuple[float, ...]

    @classmethod
    def of(cls, policy: Policy, counts: Sequence[StoredCounts]) -> StoredAttacker:
        """Put the counts of a policy's dictionaries together."""
        if policy.dictionary.kind == "minimax":
            return cls(tuple(counts), "minimax", ())
        return cls(tuple(counts), "bayes", tuple(one.prior for one in policy.dictionaries))

    def load(self) -> Attacker:
        """Map the counts; once per process."""
        return Attacker(tuple(counts.load() for counts in self.counts), self.rule, self.prior)


def decided_table(
    table: pa.Table,
    counts: Counts,
    *,
    disclosure: Disclosure,
    search: Search,
    k: int,
    weights: WeightColumns,
    schema: T.StructType,
) -> pa.Table:
    """Decide a table of distinct records against given counts; returns the columns of the schema, that of DECIDED."""
    codes = integers(table, schemas.codes(k))
    given = floats(table, schemas.weights(weights.n))
    own = {"personal": weights.personal(given), "record_weight": weights.of_record(given)}
    decisions = decide(disclosure, search, counts, codes, **own)
    rows = np.arange(table.num_rows)
    records = table.select([name for name in table.column_names if name in schema.fieldNames()])
    return Decided(records, decisions, rows, np.ones(table.num_rows, dtype=np.bool_)).with_columns()


def deciding(
    disclosure: Disclosure, search: Search, attacker: StoredAttacker, *, k: int, weights: WeightColumns
) -> Decide:
    """Return the function that decides a chunk of ENCODED, each kind of alike records once.

    Parameters
    ----------
    disclosure : Disclosure
    search : Search
    attacker : StoredAttacker
    k : int
        Number of quasi-identifiers.
    weights : WeightColumns
    """

    def run(table: pa.Table) -> Decided:
        codes = integers(table, schemas.codes(k))
        given = floats(table, schemas.weights(weights.n))
        own = {"personal": weights.personal(given), "record_weight": weights.of_record(given)}
        decisions, kind = decide_kinds(disclosure, search, attacker.load(), codes, **own)
        disclosed = tuple(disclosure.disclosed(i, codes[:, i], decisions.levels[:, i][kind]) for i in range(k))
        return Decided(table, decisions, kind, np.ones(table.num_rows, dtype=np.bool_), disclosed)

    return run


def decided(rows: Batches, decide_chunk: Decide, *, k: int, gaps: bool = False) -> Batches:
    """Return DECIDED: every row with its decision, no shuffle; other columns pass through.

    Parameters
    ----------
    rows : Batches
        ENCODED, or distinct records.
    decide_chunk : callable
    k : int
    gaps : bool
        Whether decisions come with the gap that is left, as those of searches of single records do.
    """

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in in_chunks(tables):
            yield decide_chunk(table).with_columns()

    return rows.then(step, schemas.decided(rows.schema, k, gaps=gaps))


@dataclass(frozen=True)
class Conclusion:
    """Where the decisions of a chunk go, and under which names.

    Attributes
    ----------
    decisions, tuples, members : str
        Directories of parts: decisions as the vault keeps them, TUPLES and MEMBERS.
    record_id : str
        Name of the id column in the vault; :data:`schemas.RECORD_ID` instead if another column there has it.
    attributes : tuple of k str
    roots, heights : tuple of k int
    method : str
    files : int
        Files of the release.
    named : tuple of k ndarrays of int32, shape (n_nodes_i,)
        The node that stands for each in a release: the first with its label. Nodes that look alike must not be told
        apart by where their rows stand. Empty: every node stands for itself.
    """

    decisions: str
    tuples: str
    members: str
    record_id: str
    attributes: tuple[str, ...]
    roots: tuple[int, ...]
    heights: tuple[int, ...]
    method: str
    files: int = 1
    named: tuple[npt.NDArray[np.int32], ...] = ()

    def write(self, decided: Decided) -> pa.Table:
        """Write one chunk; return its row of PARTS."""
        name = self._write_decisions(decided)
        tuples = released_tuples(decided, k=len(self.attributes), named=self.named)
        held = write_tuples(tuples, self.tuples, files=self.files) if tuples.num_rows else None
        members = class_members(decided, k=len(self.attributes), named=self.named)
        facts = {"tuples": held, "tuple_rows": tuples.num_rows}
        facts["members"] = write_ipc(members, self.members) if members is not None else None
        return report(name, {**self._facts(decided), **facts})

    def write_nothing(self) -> str:
        """Write the decisions of no rows at all, a part with the columns; return its name."""
        k = len(self.attributes)
        none, no_numbers = np.zeros(0), np.zeros((0, k))
        table = pa.table({schemas.RECORD_ID: pa.array([], pa.string())})
        decisions = Decisions(
            no_numbers.astype(np.int8), no_numbers.astype(np.int32), none, none, none, none.astype(np.int64), none > 0
        )
        return self._write_decisions(Decided(table, decisions, none.astype(np.int64), none > 0))

    def _write_decisions(self, decided: Decided) -> str:
        rows, decisions = decided.rows, decided.decisions
        columns: dict[str, pa.Array] = {}
        for i, attribute in enumerate(self.attributes):
            columns[f"level_{attribute}"] = pa.array(decisions.levels[:, i][rows])
        columns["risk"] = pa.array(decisions.risk[rows])
        columns["utility"] = pa.array(decisions.utility[rows])
        columns["consistent"] = pa.array(decisions.consistent[rows])
        method = np.zeros(len(rows), dtype=np.int8)
        columns["method"] = pa.DictionaryArray.from_arrays(pa.array(method), pa.array([self.method]))
        if decisions.gap is not None:
            columns["gap"] = pa.array(decisions.gap[rows])
        # The table's id may have the name of a column here.
        identity = schemas.RECORD_ID if self.record_id in columns else self.record_id
        columns = {identity: decided.table.column(schemas.RECORD_ID), **columns}
        name = part_name("parquet")
        # The schema without Arrow's own metadata: a reader sees a plain text column. Ids and risks hardly repeat.
        few = [column for column in columns if column not in (identity, "risk", "consistent")]
        path = f"{self.decisions}/{name}"
        pq.write_table(pa.table(columns), path, store_schema=False, write_statistics=False, use_dictionary=few)
        return name

    def _facts(self, decided: Decided) -> dict[str, Any]:
        decisions = decided.decisions
        times = np.bincount(decided.rows, minlength=len(decisions.risk))
        verbatim = (decisions.levels == 0).all(axis=1) & (decisions.nodes != np.array(self.roots)).any(axis=1)
        levels = (
            rows_by_level(decisions.levels[:, i], decisions.nodes[:, i] == root, times, height)
            for i, (root, height) in enumerate(zip(self.roots, self.heights, strict=True))
        )
        return {
            "rows": len(decided.rows),
            "sampled": int(np.count_nonzero(decided.kept)),
            "infeasible": int(times[~decisions.feasible].sum()),
            "unproved": 0 if decisions.gap is None else int(times[decisions.gap > 0].sum()),
            "gap": 0.0 if decisions.gap is None else float(decisions.gap.max(initial=0.0)),
            "verbatim": int(times[verbatim].sum()),
            "risk_before": Moments.of(decisions.risk_before, times).to_dict(),
            "risk": Moments.of(decisions.risk, times).to_dict(),
            "utility": Moments.of(decisions.utility, times).to_dict(),
            "before": BinCounts.of(risk_histogram(decisions.risk_before, times)).to_dict(),
            "after": BinCounts.of(risk_histogram(decisions.risk, times)).to_dict(),
            "levels": [BinCounts.of(rows).to_dict() for rows in levels],
        }


def conclude(rows: Batches, decide_chunk: Decide, conclusion: Conclusion) -> Batches:
    """Decide every row, write decisions and TUPLES as parts, and return PARTS with the facts of each."""

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in in_chunks(tables):
            yield conclusion.write(decide_chunk(table))

    return rows.then(step, PARTS)


def collect_infeasible(
    rows: Batches,
    disclosure: Disclosure,
    asked: AnyObjective | DecisionPolicy,
    *,
    k: int,
    infeasible: int,
    total: int,
) -> InfeasibleError:
    """Say which floor every record could reach, how many values all have, or that a ceiling is too low for some.

    Parameters
    ----------
    rows : Batches
        ENCODED, resolved.
    disclosure : Disclosure
    asked : LeastRisk, GreatestUtility or DisclosePerRecord
        What not every record can give: a floor of utility, a ceiling of risk, or a number of values. No other decision
        finds a record infeasible.
    k, infeasible, total : int
        Quasi-identifiers; records for which nothing is feasible; records.
    """
    if isinstance(asked, GreatestUtility):
        return InfeasibleError(
            f"decision.risk_at_most: {infeasible:,} of {total:,} records have a higher risk than "
            f"{asked.ceiling:g} even fully suppressed. Raise it, or set decision.infeasible: suppress."
        )

    assert isinstance(asked, LeastRisk | DisclosePerRecord)

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in in_chunks(tables):
            codes = integers(table, schemas.codes(k))
            if isinstance(asked, LeastRisk):
                least = float(disclosure.greatest_utility(codes).min())
            else:
                least = float((codes != [len(depth) - 1 for depth in disclosure.code_depth]).sum(axis=1).min())
            yield pa.table({schemas.UTILITY: pa.array([least], pa.float64())})

    found = rows.then(step, T.StructType([T.StructField(schemas.UTILITY, T.DoubleType())])).frame().toArrow()
    most = min(found.column(0).to_pylist())
    if isinstance(asked, DisclosePerRecord):
        return InfeasibleError(
            f"decision.cells: {infeasible:,} of {total:,} records have fewer than {asked.cells} values, others being "
            f"missing; all have {most:g}. Lower it, or set decision.infeasible: suppress."
        )
    return InfeasibleError(
        f"decision.utility_at_least: {infeasible:,} of {total:,} records cannot reach {asked.floor:g} even unchanged "
        f"(missing values, or short branches of a hierarchy); all can reach {most:g}. "
        "Lower it, or set decision.infeasible: suppress."
    )


def released_tuples(decided: Decided, *, k: int, named: Sequence[npt.NDArray[np.int32]] = ()) -> pa.Table:
    """TUPLES of a chunk: what the kept rows release, nodes and released columns, each once with its rows."""
    kept = slice(None) if decided.kept.all() else np.flatnonzero(decided.kept)
    released = [name for name in decided.table.column_names if re.fullmatch(r"r\d+", name)]
    table = decided.table if isinstance(kept, slice) else decided.table.select(released).take(pa.array(kept))
    keys = [_key(table.column(name)) for name in released]
    nodes = [node[kept] for node in _seen(decided, k, named)]
    first, member = grouped([*nodes, *keys])
    columns = {name: pa.array(node[first]) for name, node in zip(schemas.nodes(k), nodes, strict=True)}
    columns |= {name: decoded(table.select([name]).take(pa.array(first))).column(0) for name in released}
    columns[schemas.N_ROWS] = pa.array(np.bincount(member, minlength=len(first)).astype(np.int64))
    return pa.table(columns)


def _seen(decided: Decided, k: int, named: Sequence[npt.NDArray[np.int32]]) -> list[npt.NDArray[np.int32]]:
    """Nodes of each row, per attribute; those a release shows alike as one."""
    nodes = [decided.node(i) for i in range(k)]
    return [of[node] for of, node in zip(named, nodes, strict=True)] if named else nodes


def class_members(decided: Decided, *, k: int, named: Sequence[npt.NDArray[np.int32]] = ()) -> pa.Table | None:
    """MEMBERS of a chunk; None if the policy names neither persons nor sampling weights."""
    there = decided.table.column_names
    if schemas.ENTITY not in there and schemas.SAMPLE_WEIGHT not in there:
        return None
    nodes = _seen(decided, k, named)
    keys: list[npt.NDArray[Any]] = list(nodes)
    if schemas.ENTITY in there:
        keys.append(_key(decided.table.column(schemas.ENTITY)))
    first, member = grouped(keys)
    columns = {name: pa.array(node[first]) for name, node in zip(schemas.nodes(k), nodes, strict=True)}
    if schemas.ENTITY in there:
        columns[schemas.ENTITY] = decoded(decided.table.select([schemas.ENTITY]).take(pa.array(first))).column(0)
    columns[schemas.N_ROWS] = pa.array(np.bincount(member, minlength=len(first)).astype(np.int64))
    if schemas.SAMPLE_WEIGHT in there:
        millionths = np.rint(decided.table.column(schemas.SAMPLE_WEIGHT).to_numpy() * 1e6).astype(np.int64)
        sums = np.zeros(len(first), dtype=np.int64)
        np.add.at(sums, member, millionths)
        columns[schemas.MILLIONTHS] = pa.array(sums)
    return pa.table(columns)


def _key(values: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """Number of each value of a released column; equal numbers only for the same bits."""
    kind = values.type
    if pa.types.is_nested(kind):
        return np.arange(len(values))
    if pa.types.is_floating(kind):
        # 0.0 and -0.0 are equal and are two values.
        doubles = values.cast(pa.float64()).combine_chunks()
        bits = np.ascontiguousarray(doubles.fill_null(0.0).to_numpy(zero_copy_only=False)).view(np.int64)
        missing = doubles.is_null().to_numpy(zero_copy_only=False).astype(np.int64)
        _, number = grouped([bits, missing])
        return number
    _, place = dictionary_of(values)
    numbers: npt.NDArray[np.int64] = place.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers


def join_decisions(
    encoded: DataFrame, decided: DataFrame, *, k: int, n_weights: int, more: Sequence[str] = ()
) -> DataFrame:
    """Give every row the decision of its distinct record, which ``more`` columns may tell apart; no key is null."""
    keys = [*schemas.codes(k), *schemas.weights(n_weights), *more]
    added = [name for name in decided.columns if name not in {*keys, schemas.N_ROWS}]
    left = encoded.alias("e")
    right = decided.select(*keys, *added).alias("d")
    same = [F.col(f"e.{key}").eqNullSafe(F.col(f"d.{key}")) for key in keys]
    return left.join(right, same).select("e.*", *[F.col(f"d.{name}") for name in added])
