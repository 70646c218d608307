"""Deciding stage: each record's disclosure by a kernel inside Arrow UDFs over partitions, on distinct records."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses
from pyspark.sql import types as T  # noqa: N812

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import (
    PARTS,
    Batches,
    broadcast_small,
    decoded,
    grouped,
    in_chunks,
    part_name,
    report,
    write_ipc,
)
from privrisk_spark.engine.counts import StoredAttacker
from privrisk_spark.engine.decided import (
    Decide,
    Decided,
    WeightColumns,
    floats,
    history_of,
    integers,
    known_decisions,
)
from privrisk_spark.engine.fingerprints import fingerprints, present
from privrisk_spark.engine.number_texts import dictionary_of
from privrisk_spark.engine.tuples import write_tuples
from privrisk_spark.errors import InfeasibleError
from privrisk_spark.kernels.arrays import LongArray
from privrisk_spark.kernels.counting.consistent import Counts
from privrisk_spark.kernels.disclosure.decisions import Decisions
from privrisk_spark.kernels.disclosure.disclosure import Disclosure
from privrisk_spark.kernels.disclosure.risk import identification_risk
from privrisk_spark.kernels.lattice.lattice import TOLERANCE
from privrisk_spark.kernels.numeric import fingerprint
from privrisk_spark.kernels.numeric.bins import BinCounts
from privrisk_spark.kernels.numeric.distinct import distinct_keys
from privrisk_spark.kernels.numeric.moments import Moments, risk_histogram, rows_by_level
from privrisk_spark.kernels.search.method import Search
from privrisk_spark.kernels.search.records import kind_keys
from privrisk_spark.kernels.search.table_search import decide, decide_kinds
from privrisk_spark.planning.decisions.decision import Decision
from privrisk_spark.storage.parts import PartDirectory

if TYPE_CHECKING:
    from privrisk_spark.stages.deciding.sampled import Sampling


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
    personal, record_weight = weights.personal(given), weights.of_record(given)
    decisions = decide(disclosure, search, counts, codes, personal=personal, record_weight=record_weight)
    rows = np.arange(table.num_rows)
    records = table.select([name for name in table.column_names if name in schema.fieldNames()])
    return Decided(records, decisions, rows, np.ones(table.num_rows, dtype=np.bool_)).with_columns()


def deciding(
    disclosure: Disclosure, search: Search, attacker: StoredAttacker, *, k: int, weights: WeightColumns
) -> Decide:
    """Return the function that decides a chunk of ENCODED, each kind of alike records once.

    Records without weights of their own are decided once for all chunks of a process.

    Parameters
    ----------
    k : int
        Number of quasi-identifiers.
    """
    name = uuid4().hex

    def run(table: pa.Table) -> Decided:
        codes = integers(table, schemas.codes(k))
        given = floats(table, schemas.weights(weights.n))
        own = {"personal": weights.personal(given), "record_weight": weights.of_record(given)}
        out = history_of(table, k)
        dictionaries = attacker.load()
        found = kind_keys(disclosure, dictionaries, codes, out) if not weights.n else None
        if found is None:
            decisions, kind = decide_kinds(disclosure, search, dictionaries, codes, history=out, **own)
        else:
            keys, bound = found
            first, kind = distinct_keys(keys, bound)

            def decide_new(places: LongArray) -> Decisions:
                rows = first[places]
                past = None if out is None else out[rows]
                made, of = decide_kinds(disclosure, search, dictionaries, codes[rows], history=past)
                return made.take(of)

            decisions = known_decisions(name).decide(keys[first], decide_new)
        disclosed = tuple(disclosure.disclosed(i, codes[:, i], decisions.levels[:, i][kind]) for i in range(k))
        return Decided(table, decisions, kind, np.ones(table.num_rows, dtype=np.bool_), disclosed)

    return run


def decided(rows: Batches, decide_chunk: Decide, *, k: int, gaps: bool = False) -> Batches:
    """Return DECIDED: every row with its decision, no shuffle; other columns pass through.

    Parameters
    ----------
    rows : Batches
        ENCODED, or distinct records.
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
    decisions, tuples, members : PartDirectory
        Directories of parts: decisions as the vault keeps them, TUPLES and MEMBERS.
    record_id : str
        Name of the id column in the vault; :data:`schemas.RECORD_ID` instead if another column there has it.
    attributes : tuple of k str
    roots, heights : tuple of k int
    files : int
        Files of the release.
    named : tuple of k ndarrays of int32, shape (n_nodes_i,)
        The node that stands for each in a release: the first with its label. Nodes that look alike must not be told
        apart by where their rows stand. Empty: every node stands for itself.
    meant : tuple of k ndarrays of int32, shape (n_nodes_i,)
        The node whose rows the release must show each node's rows as; empty: it is not reported.
    remembered : PartDirectory or None
        Of parts of what the vault remembers for later releases; None: it remembers nothing.
    paths : tuple of k ndarrays of int64, shape (n_leaves_i + 1,)
        What stands for each code with its path to the root, for what is remembered.
    secret : bytes
        Key of the digests of record ids, for what is remembered.
    sampled : Sampling or None
        The sample of the decisions that is reported for the vault.
    valued : tuple of str
        Columns ``r<j>`` whose values MEMBERS hold, beside their words: those of which it is checked who holds what.
    """

    decisions: PartDirectory
    tuples: PartDirectory
    members: PartDirectory
    record_id: str
    attributes: tuple[str, ...]
    roots: tuple[int, ...]
    heights: tuple[int, ...]
    method: str
    files: int = 1
    named: tuple[npt.NDArray[np.int32], ...] = ()
    meant: tuple[npt.NDArray[np.int32], ...] = ()
    remembered: PartDirectory | None = None
    paths: tuple[npt.NDArray[np.int64], ...] = ()
    secret: bytes = field(default=b"", repr=False)
    sampled: Sampling | None = None
    valued: tuple[str, ...] = ()

    def write(self, decided: Decided) -> pa.Table:
        """Write one chunk; return its row of PARTS."""
        name = self._write_decisions(decided)
        tuples = released_tuples(decided, k=len(self.attributes), named=self.named)
        held = write_tuples(tuples, self.tuples, files=self.files) if tuples.num_rows else None
        members = class_members(decided, k=len(self.attributes), named=self.named, valued=self.valued)
        facts = {"tuples": held, "tuple_rows": tuples.num_rows}
        facts["members"] = write_ipc(members, self.members) if members is not None else None
        if self.meant:
            meant = [of[decided.node(i)[decided.kept]] for i, of in enumerate(self.meant)]
            facts["label_rows"] = [
                *(fingerprint.of_counts(np.bincount(nodes)) for nodes in meant),
                fingerprint.of_tuples(meant, np.ones(np.count_nonzero(decided.kept), dtype=np.int64)),
            ]
        if self.sampled is not None:
            from privrisk_spark.stages.deciding.sampled import sampled_facts

            facts |= sampled_facts(decided, self.sampled, self.named, k=len(self.attributes))
        if self.remembered is not None:
            levels = decided.decisions.levels[decided.rows]
            facts["remembered"] = part_name("parquet")
            from privrisk_spark.stages.deciding.history import remembered_part

            part = remembered_part(decided.table, levels, self.paths, self.secret)
            with self.remembered.writing(facts["remembered"]) as path:
                pq.write_table(part, path, store_schema=False)
        return report(name, {**self._facts(decided), **facts})

    def write_nothing(self) -> str:
        """Write the decisions of no rows at all, a part with the columns; return its name."""
        k = len(self.attributes)
        none, no_numbers = np.zeros(0), np.zeros((0, k))
        table = pa.table({schemas.RECORD_ID: pa.array([], pa.string())})
        decisions = Decisions(
            levels=no_numbers.astype(np.int8),
            nodes=no_numbers.astype(np.int32),
            risk=none,
            risk_before=none,
            utility=none,
            consistent=none.astype(np.int64),
            consistent_before=none.astype(np.int64),
            feasible=none > 0,
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
        if decisions.history is not None:
            columns[schemas.RISK_ALONE] = pa.array(decisions.history.alone[rows])
            columns[schemas.RISK_OUT] = pa.array(decisions.history.out[rows])
            columns[schemas.BEYOND] = pa.array(decisions.history.beyond[rows])
        # The table's id may have the name of a column here.
        identity = schemas.RECORD_ID if self.record_id in columns else self.record_id
        columns = {identity: decided.table.column(schemas.RECORD_ID), **columns}
        name = part_name("parquet")
        # The schema without Arrow's own metadata: a reader sees a plain text column. Ids and risks hardly repeat.
        few = [column for column in columns if column not in (identity, "risk", "consistent", *_HARDLY_REPEAT)]
        with self.decisions.writing(name) as path:
            pq.write_table(pa.table(columns), path, store_schema=False, write_statistics=False, use_dictionary=few)
        return name

    def _facts(self, decided: Decided) -> dict[str, Any]:
        decisions = decided.decisions
        every = np.bincount(decided.rows, minlength=len(decisions.risk))
        # Rows that a scheme leaves out have no risk or level in what is released.
        left = decided.rows if decided.suppressed is None else decided.rows[decided.kept]
        times = np.bincount(left, minlength=len(decisions.risk))
        verbatim = (decisions.levels == 0).all(axis=1) & (decisions.nodes != np.array(self.roots)).any(axis=1)
        levels = (
            rows_by_level(decisions.levels[:, i], decisions.nodes[:, i] == root, times, height)
            for i, (root, height) in enumerate(zip(self.roots, self.heights, strict=True))
        )
        return {
            "rows": len(decided.rows),
            "sampled": int(np.count_nonzero(decided.kept)),
            "suppressed": 0 if decided.suppressed is None else int(np.count_nonzero(decided.suppressed)),
            "infeasible": int(every[~decisions.feasible].sum()),
            "unproved": 0 if decisions.gap is None else int(times[decisions.gap > 0].sum()),
            "gap": 0.0 if decisions.gap is None else float(decisions.gap.max(initial=0.0)),
            "verbatim": int(times[verbatim].sum()),
            "risk_before": Moments.of(decisions.risk_before, every),
            "risk": Moments.of(decisions.risk, times),
            "identified_before": Moments.of(_identified(decisions.consistent_before), every),
            "identified": Moments.of(_identified(decisions.consistent), times),
            "utility": Moments.of(decisions.utility, times),
            "before": BinCounts.of(risk_histogram(decisions.risk_before, every)),
            "after": BinCounts.of(risk_histogram(decisions.risk, times)),
            "levels": [BinCounts.of(rows) for rows in levels],
            **({} if decisions.history is None else {"history": _history_facts(decided, times)}),
        }


def _identified(consistent: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Probability that a record is found among the dictionary rows that fit it; 0 where there are none."""
    return identification_risk("II", np.ones(len(consistent)), consistent, dictionary_rows=1)


_HARDLY_REPEAT = (schemas.RISK_ALONE, schemas.RISK_OUT)


def _history_facts(decided: Decided, times: npt.NDArray[np.int64]) -> dict[str, Any]:
    decisions, after = decided.decisions, decided.decisions.history
    assert after is not None
    bounded = np.where(after.beyond, 0, times)
    return {
        "records": int(np.count_nonzero(decided.table.column(schemas.RELEASES).to_numpy())),
        "changed": int(np.count_nonzero(decided.table.column(schemas.CHANGED).to_numpy())),
        "beyond": int(times[after.beyond].sum()),
        "raised": int(times[decisions.risk > after.out * (1 + TOLERANCE)].sum()),
        "alone": Moments.of(after.alone, times),
        "out": Moments.of(after.out, times),
        "bounded": Moments.of(decisions.risk[bounded > 0], bounded[bounded > 0]),
        "bins": BinCounts.of(risk_histogram(after.alone, times)),
    }


def conclude(rows: Batches, decide_chunk: Decide, conclusion: Conclusion) -> Batches:
    """Decide every row, write decisions and TUPLES as parts, and return PARTS with the facts of each."""

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in in_chunks(tables):
            yield conclusion.write(decide_chunk(table))

    return rows.then(step, PARTS)


def collect_unreachable(rows: Batches, disclosure: Disclosure, decision: Decision, *, k: int) -> InfeasibleError | None:
    """Look for records that can never be disclosed as asked, whatever the counts are.

    Parameters
    ----------
    rows : Batches
        ENCODED, resolved.
    k : int
        Number of quasi-identifiers.

    Returns
    -------
    InfeasibleError or None
        None where there are none, or where only counts can tell.
    """
    found = decision.reach()
    if found is None:
        return None
    reach, asked = found
    # What is nearly enough is left to the search, which has a tolerance of its own.
    enough = asked - 1e-9 * max(1.0, abs(asked))

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in in_chunks(tables):
            of_each = reach(disclosure, integers(table, schemas.codes(k)))
            counts = [[len(of_each)], [int((of_each < enough).sum())], [float(of_each.min())]]
            yield pa.table(counts, schema=_REACHED_ARROW)

    total, short, least = (column.to_numpy() for column in rows.then(step, _REACHED).frame().toArrow().columns)
    if not short.sum():
        return None
    return InfeasibleError(decision.shortfall(int(short.sum()), int(total.sum()), float(least.min())))


_REACHED = T.StructType(
    [
        T.StructField(schemas.N_ROWS, T.LongType()),
        T.StructField("short", T.LongType()),
        T.StructField(schemas.UTILITY, T.DoubleType()),
    ]
)
_REACHED_ARROW = pa.schema([(schemas.N_ROWS, pa.int64()), ("short", pa.int64()), (schemas.UTILITY, pa.float64())])


def released_tuples(decided: Decided, *, k: int, named: Sequence[npt.NDArray[np.int32]] = ()) -> pa.Table:
    """TUPLES of a chunk: what the kept rows release, nodes and released columns, each once with its rows."""
    kept = slice(None) if decided.kept.all() else np.flatnonzero(decided.kept)
    released = [name for name in decided.table.column_names if re.fullmatch(r"r\d+", name)]
    table = decided.table if isinstance(kept, slice) else decided.table.select(released).take(pa.array(kept))
    keys = [value_numbers(table.column(name)) for name in released]
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


def class_members(
    decided: Decided, *, k: int, named: Sequence[npt.NDArray[np.int32]] = (), valued: Sequence[str] = ()
) -> pa.Table | None:
    """MEMBERS of a chunk; None if the policy names neither persons nor sampling weights."""
    there = decided.table.column_names
    if schemas.ENTITY not in there and schemas.SAMPLE_WEIGHT not in there:
        return None
    decided = _kept_alone(decided)
    nodes = _seen(decided, k, named)
    keys: list[npt.NDArray[Any]] = list(nodes)
    if schemas.ENTITY in there:
        keys.append(value_numbers(decided.table.column(schemas.ENTITY)))
    kept = [name for name in there if re.fullmatch(r"r\d+", name)] if schemas.ENTITY in there else []
    words = [fingerprints(decided.table.column(name)) for name in kept]
    if kept:
        words.append(fingerprint.of_rows(words, decided.table.num_rows))
        keys.append(words[-1].view(np.int64))
    first, member = grouped(keys)
    columns = {name: pa.array(node[first]) for name, node in zip(schemas.nodes(k), nodes, strict=True)}
    if schemas.ENTITY in there:
        columns[schemas.ENTITY] = decoded(decided.table.select([schemas.ENTITY]).take(pa.array(first))).column(0)
    if kept:
        missing = [~present(decided.table.column(name))[first] for name in kept] + [np.zeros(len(first), np.bool_)]
        for name, word, mask in zip(schemas.kept_words(len(kept)), words, missing, strict=True):
            columns[name] = pa.array(word[first].view(np.int64), mask=mask)
    for name in valued:
        columns[name] = decoded(decided.table.select([name]).take(pa.array(first))).column(0)
    columns[schemas.N_ROWS] = pa.array(np.bincount(member, minlength=len(first)).astype(np.int64))
    if schemas.SAMPLE_WEIGHT in there:
        millionths = np.rint(decided.table.column(schemas.SAMPLE_WEIGHT).to_numpy() * 1e6).astype(np.int64)
        sums = np.zeros(len(first), dtype=np.int64)
        np.add.at(sums, member, millionths)
        columns[schemas.MILLIONTHS] = pa.array(sums)
    return pa.table(columns)


def _kept_alone(decided: Decided) -> Decided:
    """Rows that are released."""
    if decided.kept.all():
        return decided
    kept = np.flatnonzero(decided.kept)
    disclosed = None if decided.disclosed is None else tuple(node[kept] for node in decided.disclosed)
    suppressed = None if decided.suppressed is None else decided.suppressed[kept]
    table = decided.table.take(pa.array(kept))
    return Decided(table, decided.decisions, decided.rows[kept], decided.kept[kept], disclosed, suppressed)


def value_numbers(values: pa.ChunkedArray) -> npt.NDArray[np.int64]:
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
    encoded: DataFrame, decided: DataFrame, *, distinct: int, k: int, n_weights: int, more: Sequence[str] = ()
) -> DataFrame:
    """Give every row the decision of its distinct record, which ``more`` columns may tell apart; no key is null.

    Every task holds all decisions if there are few ``distinct`` records; otherwise both sides are shuffled.
    """
    keys = [*schemas.codes(k), *schemas.weights(n_weights), *more]
    added = [name for name in decided.columns if name not in {*keys, schemas.N_ROWS}]
    left = encoded.alias("e")
    right = broadcast_small(decided.select(*keys, *added), distinct).alias("d")
    same = [F.col(f"e.{key}").eqNullSafe(F.col(f"d.{key}")) for key in keys]
    return left.join(right, same).select("e.*", *[F.col(f"d.{name}") for name in added])
