"""Releases of adversarial tables by the stages of every release: the Spark side of an audit.

Rows are made by tasks, or read and given ids as a table without record ids is, and then go through the functions of
:mod:`privrisk_spark.stages.private.sampling` in the order of the pipeline: cells of the schemes, admission, draw and
sample, parts of tuples, crowd histogram. Before that, one row of each person is drawn where persons have several. The
choice of schemes reads a number per candidate: Spark counts that once, and every trial draws by it. Nothing is released
from here, and no key of a release can get here: what the draws are keyed with is derived from a public number and bound
to a run id that no release can have.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses
from pyspark.sql import types as T  # noqa: N812 - the name every Spark program uses

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import CHUNK_ROWS, PARTS, Batches, Scratch, in_chunks, report
from privrisk_spark.engine.decided import Decide
from privrisk_spark.engine.tuples import TupleParts, write_tuples
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.arrays import IntArray, LongArray
from privrisk_spark.kernels.counting.consistent import Axis
from privrisk_spark.kernels.disclosure.sensitivity import Sensitivity
from privrisk_spark.kernels.disclosure.utility import node_utility
from privrisk_spark.ledger.calibrated import Choosing, OneScheme
from privrisk_spark.planning.audit import RUN
from privrisk_spark.planning.audit_experiments import Experiment, People
from privrisk_spark.policy.policy import Insensitive, Policy, RiskPolicy
from privrisk_spark.stages.deciding.decide import released_tuples
from privrisk_spark.stages.private import admission, crowds, release_keys, sampling
from privrisk_spark.stages.private.scheme_cells import collect_cells
from privrisk_spark.tables.encode import encode

Attempts = Literal["once", "twice", "failing"]
"""How often a task does its work: once; twice, what it wrote the first time being left behind, as by a speculative or
lost attempt; or once, and then it fails, and Spark tries again."""


class PlannedFailure(Exception):  # noqa: N818 - nothing is wrong
    """A task failed because it was told to."""


def audit_keys(seed: int, experiment: str) -> release_keys.ReleaseKeys:
    """Return the keys of an experiment: public, the same for the same seed, and of no release."""
    public = hashlib.sha256(f"privrisk_spark audit {seed}".encode()).digest()
    return release_keys.ReleaseKeys.derive(public, run_id=RUN, snapshot="", mechanism=experiment)


@dataclass(frozen=True, eq=False)
class Trials:
    """An experiment so many times.

    Attributes
    ----------
    kinds : ndarray of int32, shape (2, k)
        Leaf codes of either kind of records.
    n : int
        Trials of each table; number ``table * n + trial`` stands in the trial column.
    """

    experiment: Experiment
    kinds: IntArray
    n: int

    @property
    def total(self) -> int:
        """Trials of all tables."""
        return self.n * len(self.experiment.tables)

    @property
    def k(self) -> int:
        """Attributes of the released tuple, the trial column among them."""
        return int(self.kinds.shape[1]) + 1

    def recoding(self, hierarchies: Mapping[str, Hierarchy], axes: Sequence[Axis]) -> sampling.Recoding:
        """What recoding depends on: the trial column has one level, so that nothing generalizes it."""
        numbers = np.arange(self.total, dtype=np.int32)
        return sampling.Recoding(
            ancestor=(numbers[:, None], *(hierarchy.ancestor for hierarchy in hierarchies.values())),
            code_depth=(np.zeros(self.total, dtype=np.int32), *(axis.code_depth for axis in axes)),
            utility=(
                np.zeros(self.total),
                *(node_utility("depth", h.depth, h.n_under) for h in hierarchies.values()),
            ),
            sensitivity=Sensitivity("constant", ()),
            mechanism=self.experiment.mechanism,
        )

    def released_as(self, recoding: sampling.Recoding) -> dict[tuple[int, int], tuple[int, ...]]:
        """Tuple without the trial that either kind is released as under each scheme, full suppression last."""
        roots = [ancestor.shape[1] - 1 for ancestor in recoding.ancestor]
        found = {}
        for kind, leaves in enumerate(self.kinds.tolist()):
            for j, scheme in enumerate([*recoding.mechanism.schemes, roots]):
                nodes = recoding.disclosed(np.array([[0, *leaves]], dtype=np.int32), scheme)
                found[kind, j] = tuple(int(node[0]) for node in nodes[1:])
        return found

    def rows(self, spark: SparkSession, *, parts: int, backwards: bool = False) -> Batches:
        """Rows as ENCODED without record ids, made by tasks; a row's identity is its trial and its number there."""
        tables = np.array(self.experiment.tables, dtype=np.int64)
        n, kinds, k = self.n, self.kinds, self.k
        several = [_persons_of(people) for people in self.experiment.people]
        per_trial = tables.sum(axis=1)
        bounds = np.linspace(0, self.total, parts + 1).round().astype(int)
        spans = [(a, b) for a, b in itertools.pairwise(bounds.tolist()) if a < b]
        step = -1 if backwards else 1

        def read(span: tuple[int, int]) -> Iterator[pa.Table]:
            # At most about CHUNK_ROWS rows at once.
            width = max(1, int(CHUNK_ROWS // max(1, per_trial.max())))
            for begin in range(span[0], span[1], width):
                trials = np.arange(begin, min(begin + width, span[1]), dtype=np.int64)
                rows = per_trial[trials // n]
                trial = np.repeat(trials, rows)
                number = np.arange(len(trial)) - np.repeat(np.cumsum(rows) - rows, rows)
                trial, number = trial[::step], number[::step]
                kind = (number >= tables[trial // n, 0]).astype(np.int64)
                identity = np.column_stack([trial, number]).astype("<i8")
                blocks = pa.FixedSizeBinaryArray.from_buffers(
                    pa.binary(16), len(trial), [None, pa.py_buffer(np.ascontiguousarray(identity).tobytes())]
                )
                codes = [trial.astype(np.int32), *(column[kind] for column in kinds.T)]
                arrays = [blocks.cast(pa.binary()), *(pa.array(code) for code in codes)]
                names = [schemas.BLOCK, *schemas.codes(k)]
                if several:
                    person = np.concatenate([several[table] for table in (trials // n).tolist()])[::step]
                    which = pa.array(person, mask=person < 0).cast(pa.string())
                    arrays.append(pc.binary_join_element_wise(pa.array(trial).cast(pa.string()), which, "-"))
                    names.append(schemas.ENTITY)
                yield pa.Table.from_arrays(arrays, names=names)

        return Batches.of_parts(spark, spans[::step], read, _rows_schema(k, persons=bool(several)))

    def rows_as_read(self, spark: SparkSession, policy: Policy, hierarchies: Mapping[str, Hierarchy]) -> Batches:
        """Rows of the first kind as ENCODED without record ids, made from a table of texts that has none."""
        (one, _), (other, _) = self.experiment.tables
        trial_column = "trial"
        while trial_column in hierarchies:
            trial_column += "_"
        of_trial = F.col("id") % (one + other)
        number = F.when(of_trial < one, F.lit(0)).otherwise(F.lit(self.n)) + F.floor(F.col("id") / (one + other))
        labels = [h.labels[code] for h, code in zip(hierarchies.values(), self.kinds[0].tolist(), strict=True)]
        frame = spark.range(0, (one + other) * self.n).select(
            number.cast("int").alias(trial_column),
            *(F.lit(label).alias(name) for name, label in zip(hierarchies, labels, strict=True)),
        )
        unnamed = policy.table.model_copy(update={"record_id": None, "entity_id": None, "weight": None})
        columns = {**policy.quasi_identifiers, trial_column: Insensitive(role="insensitive")}
        table = policy.model_copy(update={"table": unnamed, "columns": columns, "risk": RiskPolicy()})
        k = self.k

        def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
            for read in tables:
                coded = [read.column(name) for name in (schemas.BLOCK, *schemas.released(1), *schemas.codes(k - 1))]
                yield pa.Table.from_arrays(coded, names=[schemas.BLOCK, *schemas.codes(k)])

        return encode(frame, table, hierarchies, blocks=True).then(step, _rows_schema(k))

    def admitted(self, recoding: sampling.Recoding) -> sampling.AdmittedSet:
        """The cells admitted beforehand, in every trial."""
        cells = []
        numbers = np.arange(self.total, dtype=np.int32)
        for j, scheme in enumerate(recoding.mechanism.schemes):
            kinds = [kind for number, kind in self.experiment.admitted or () if number == j]
            codes = np.vstack([np.column_stack([numbers, *(np.full(self.total, c) for c in self.kinds[kind])])
                               for kind in kinds] or [np.zeros((0, self.k))])  # fmt: skip
            cells.append(np.unique(np.column_stack(recoding.disclosed(codes.astype(np.int32), scheme)), axis=0))
        most = recoding.mechanism.count_cap
        return sampling.AdmittedSet(tuple(cells), tuple(np.full(len(of), most, dtype=np.int64) for of in cells))


def _rows_schema(k: int, *, persons: bool = False) -> T.StructType:
    fields = [T.StructField(schemas.BLOCK, T.BinaryType())]
    fields += [T.StructField(name, T.IntegerType()) for name in schemas.codes(k)]
    return T.StructType([*fields, *([T.StructField(schemas.ENTITY, T.StringType())] if persons else [])])


def _persons_of(people: Sequence[People]) -> LongArray:
    """Number of the person of each row of a table, -1 of nobody; rows of the target's kind come first."""
    first = np.cumsum([0, *(one.number for one in people)]).tolist()
    kinds = []
    for rows in ([one.targets for one in people], [one.others for one in people]):
        for begin, one, each in zip(first, people, rows, strict=False):
            numbers = np.repeat(np.arange(begin, begin + one.number), each)
            kinds.append(numbers if one.named else np.full(len(numbers), -1))
    return np.concatenate(kinds).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Published:
    """What the releases of all trials publish, and nothing else.

    Attributes
    ----------
    nodes : ndarray of int32, shape (m, k)
        Released tuples; the first column is the trial.
    rows : ndarray of int64, shape (m,)
    cells : ndarray of int64, shape (trials, w, 2)
        Noisy counts of the admitted cells of either kind, -1 if not admitted; without any where they are public.
    manifest : mapping of str to ndarray of int64, shape (trials,)
        Numbers in the manifests.
    """

    nodes: IntArray
    rows: LongArray
    cells: LongArray
    manifest: Mapping[str, LongArray]

    def equals(self, other: Published) -> bool:
        """Whether it is the same, bit for bit, in whatever order tuples were collected."""
        one, two = np.lexsort(self.nodes.T), np.lexsort(other.nodes.T)
        return (
            np.array_equal(self.nodes[one], other.nodes[two])
            and np.array_equal(self.rows[one], other.rows[two])
            and np.array_equal(self.cells, other.cells)
            and all(np.array_equal(numbers, other.manifest[name]) for name, numbers in self.manifest.items())
        )


def collect_published(
    scratch: Scratch,
    trials: Trials,
    rows: Batches,
    recoding: sampling.Recoding,
    keys: release_keys.ReleaseKeys,
    *,
    attempts: Attempts = "once",
) -> Published:
    """Release every trial, and collect what is published.

    Parameters
    ----------
    scratch : Scratch
        With an empty directory.
    rows : Batches
        As :meth:`Trials.rows` or :meth:`Trials.rows_as_read` returns them.
    attempts : {"once", "twice", "failing"}
    """
    rows = release_keys.collect_one_row_each(scratch, rows, keys)
    if trials.experiment.admitted is None:
        exact = collect_cells(scratch, rows, recoding.ancestor, recoding.mechanism.schemes)
        found = sampling.admitted_cells(exact, recoding, keys).frame()
        theta = sampling.AdmittedSet.collect_cells(
            scratch.write_frame(disturbed(found, attempts), "admitted"), recoding
        )
        cells = _noisy_counts(theta, trials, recoding)
    else:
        theta = trials.admitted(recoding)
        cells = np.zeros((trials.total, 0, 2), dtype=np.int64)
    histogram = collect_histogram(scratch, rows, recoding, theta, keys, attempts=attempts)
    table = histogram.toArrow()
    nodes = np.column_stack([table.column(name).to_numpy() for name in schemas.nodes(trials.k)])
    sizes = table.column(schemas.N_ROWS).to_numpy().astype(np.int64)
    return Published(nodes, sizes, cells, manifest_numbers(nodes[:, 0], sizes, trials.total))


def collect_picks(
    scratch: Scratch, trials: Trials, hierarchies: Mapping[str, Hierarchy], axes: Sequence[Axis], seed: int
) -> list[LongArray]:
    """Choose the schemes of every trial: numbers of the candidates, in the order drawn, a row a trial, for each table.

    Rows are counted once a table: their counts are the same in every trial, the key is not.

    Parameters
    ----------
    hierarchies : mapping of attribute to Hierarchy
    """
    experiment = trials.experiment
    choice = experiment.mechanism
    assert isinstance(choice, Choosing)
    number_of = {candidate: number for number, candidate in enumerate(choice.candidates)}
    found = []
    for table, counts in enumerate(experiment.tables):
        one = Trials(replace(experiment, tables=(counts,)), trials.kinds, 1)
        own = scratch.below(f"{experiment.name}-{table}")
        excess = admission.collect_excess(own, one.rows(scratch.spark, parts=1), one.recoding(hierarchies, axes))
        picks = []
        for trial in range(trials.n):
            keys = audit_keys(seed, f"{experiment.name} {table} {trial}")
            chosen = admission.chosen(choice, excess, keys)
            picks.append([number_of[scheme] for scheme in chosen.schemes])
        found.append(np.array(picks, dtype=np.int64))
    return found


def collect_histogram(
    scratch: Scratch,
    rows: Batches,
    recoding: sampling.Recoding,
    admissible: sampling.AdmittedSet,
    keys: release_keys.ReleaseKeys,
    *,
    attempts: Attempts = "once",
    name: str = "histogram",
) -> DataFrame:
    """Draw, sample and count as the pipeline does, each stage from what the one before has written."""
    if isinstance(recoding.mechanism, OneScheme):
        decide_chunk = sampling.full_domain(recoding, keys)
    else:
        decide_chunk = sampling.drawing(recoding, admissible, keys)
    k = len(recoding.ancestor)
    tuples = collect_tuples(scratch, rows, decide_chunk, k, f"{name}-tuples", attempts=attempts)
    kept = crowds.crowd_histogram(tuples.frame(scratch.spark), k=k, crowd=recoding.mechanism.crowd)
    return scratch.write_frame(disturbed(kept, attempts), name)


def collect_tuples(
    scratch: Scratch, rows: Batches, decide_chunk: Decide, k: int, name: str, *, attempts: Attempts
) -> TupleParts:
    """Decide every row, and write TUPLES as parts."""
    directory = scratch.directory(name)

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in in_chunks(tables):
            for _ in range(2 if attempts == "twice" else 1):
                part = write_tuples(released_tuples(decide_chunk(table), k=k), directory, files=1)
            yield report(part, {})
        _fail(attempts)

    parts = scratch.collect_parts(rows.then(step, PARTS))
    return TupleParts(directory, tuple(part["name"] for part in parts), schemas.tuples(T.StructType([]), k))


def disturbed(frame: DataFrame, attempts: Attempts) -> DataFrame:
    """Return a frame, the tasks of which fail once after their work is done if they are to."""
    if attempts != "failing":
        return frame

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        yield from tables
        _fail(attempts)

    return Batches.of_frame(frame).then(step, frame.schema).frame()


def _fail(attempts: Attempts) -> None:
    task = TaskContext.get()
    if attempts == "failing" and task is not None and task.attemptNumber() == 0:
        raise PlannedFailure


def manifest_numbers(trial: IntArray, rows: LongArray, trials: int) -> dict[str, LongArray]:
    """What the manifest of each trial's release says of its rows: how many, and of how many tuples."""
    released = np.zeros(trials, dtype=np.int64)
    np.add.at(released, trial, rows)
    return {"rows": released, "tuples": np.bincount(trial, minlength=trials).astype(np.int64)}


def _noisy_counts(theta: sampling.AdmittedSet, trials: Trials, recoding: sampling.Recoding) -> LongArray:
    numbers = np.arange(trials.total, dtype=np.int32)
    of_kind = []
    for kind in trials.kinds:
        codes = np.column_stack([numbers, *(np.full(trials.total, code, dtype=np.int32) for code in kind)])
        counts, admitted = theta.counts(recoding, codes)
        of_kind.append(np.where(admitted, counts, -1))
    return np.stack(of_kind, axis=2)
