"""Risk over what the attacker knows (F12 Figs 3.1 and 3.3): the order of stages, and every Spark action of it.

read → encode → count → sample → evaluate → write

The dictionary is cut into nested samples, and the table's distinct records are decided against each of them for several
utility floors, by the kernels on the driver. All of it is exact and for the trusted zone alone.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses

from privrisk_spark import __version__
from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import Batches, Scratch
from privrisk_spark.errors import ConfigError, Fault, InfeasibleError, InputError, SchemaError
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.disclosure.disclosure import Disclosure
from privrisk_spark.kernels.disclosure.estimated import nested_counts
from privrisk_spark.kernels.disclosure.utility import UNITS
from privrisk_spark.kernels.lattice.lattice import reaches
from privrisk_spark.kernels.search.dictionary_curves import DictionaryCurves, dictionary_curves
from privrisk_spark.kernels.search.method import Search
from privrisk_spark.planning.counting import explained
from privrisk_spark.planning.dictionaries import axes, true_dictionary
from privrisk_spark.planning.disclosure import disclosure_of, greatest_utility
from privrisk_spark.planning.places import all_dictionaries
from privrisk_spark.planning.search import decides_records, method_of, search_of
from privrisk_spark.policy.decisions import LeastRiskDecision
from privrisk_spark.policy.dictionaries import OneDictionary, SeveralDictionaries
from privrisk_spark.policy.policy import Policy
from privrisk_spark.reporting.report import render_curves
from privrisk_spark.results.curves import CurveResult
from privrisk_spark.runs.places import held, write_json, write_text
from privrisk_spark.runs.progress import Progress, write_status
from privrisk_spark.stages.counting.dense_sorted import StoredCounts, plan_of, vectors_of_table
from privrisk_spark.stages.counting.shuffle_iceberg import own_vectors
from privrisk_spark.stages.deciding.decide import WeightColumns, floats, integers
from privrisk_spark.stages.diagnostics.estimated import collect_held, collect_share_vectors, identities, share_vectors
from privrisk_spark.stages.tables.encode import ID
from privrisk_spark.stages.tables.materialize import collect_codes
from privrisk_spark.stages.tables.opening import check_columns, check_dictionary, collect_hierarchies, read

FLOORS = 5
"""Utility floors, evenly spaced up to the greatest utility, unless others are asked for."""

MOST_FLOORS = 20

FILES = ("curves.json", "curves.csv", "curves.html", "status.json", "unknown_values", ".lock")

Announce = Callable[[str], object]


@dataclass(frozen=True)
class Asked:
    """What the curves are drawn of.

    Attributes
    ----------
    shares : int
        Nested samples of the dictionary.
    floors : tuple of float or None
        Least utilities ``c``; None spaces them evenly.
    records : int
        Most distinct records to decide; beyond, a sample of them stands for all.
    """

    shares: int = 10
    floors: tuple[float, ...] | None = None
    records: int = 20_000


def curves(
    spark: SparkSession,
    policy: Policy,
    asked: Asked,
    *,
    place: Path,
    run_id: str,
    date: dt.date,
    announce: Announce | None = None,
) -> CurveResult:
    """Compute the curves and write ``curves.json``, ``curves.csv`` and ``curves.html``.

    Parameters
    ----------
    spark : SparkSession
    policy : Policy
        Of the kind ``risk``. Its first external dictionary grows, or the table itself; where it names an estimate and a
        true dictionary, the true one grows around the rows of the estimate.
    asked : Asked
    place : Path
        As :func:`check_request` returns it.
    run_id : str
    date : date
        Business date.
    announce : callable, optional
        Called with the text of the plan once it is chosen (``--explain``).

    Raises
    ------
    InputError
        Exit code 2: the policy or the data must be mended.
    EngineError
        Exit code 3: running again may help.
    """
    with held(place, run_id) as scratch:
        result = _Curves(spark, policy, asked, place, scratch, run_id).compute(date, announce or (lambda _: None))
        write_status(place, run_id, phase="written", code=0, message=f"curves in {place}")
    return result


def plan_only(spark: SparkSession, policy: Policy, asked: Asked) -> str:
    """Open everything the curves need, write nothing, and return the plan as text (``--dry-run``)."""
    return _Sources.opened(spark, policy, asked).explanation()


@dataclass(frozen=True)
class _Sources:
    """The opened table and dictionaries, and what is asked of them."""

    policy: Policy
    table: DataFrame
    frames: dict[str, DataFrame]
    hierarchies: dict[str, Hierarchy]
    grown: OneDictionary
    floors: tuple[float, ...]
    shares: int

    @classmethod
    def opened(cls, spark: SparkSession, policy: Policy, asked: Asked) -> _Sources:
        """Open the sources; reads the table only where leaves of a hierarchy come from the data."""
        table = read(spark, policy.table, key="table")
        check_columns(table, policy)
        frames, known = {}, []
        for one in all_dictionaries(policy):
            if one.table is not None:
                frames[one.name] = read(spark, one.table, key=one.key)
                check_dictionary(frames[one.name], one.table, key=one.key)
                known.append((one.table, frames[one.name]))
        if table.isEmpty():
            raise SchemaError("table: it has no rows.")
        hierarchies = collect_hierarchies(policy, table, known)
        if not isinstance(policy.decision, LeastRiskDecision) or decides_records(method_of(policy, hierarchies)[0]):
            raise InputError(
                "decision: curves are drawn of least risk over utility floors, by enumeration; use the problem "
                "'min-risk', the method 'auto' or 'exact', and lattices that can be enumerated."
            )
        true = true_dictionary(policy)
        external = [one for one in policy.dictionaries if one.table is not None]
        grown = true or (external or list(policy.dictionaries))[0]
        floors = _floors(policy, hierarchies, asked.floors)
        return cls(policy, table, frames, hierarchies, grown, floors, asked.shares)

    @property
    def named(self) -> str:
        """Which dictionary grows, in words."""
        if self.grown.table is None:
            return "the table itself"
        names = {"dictionary": "the policy's dictionary", "estimate": "the policy's estimate"}
        names |= {"true": "the policy's true dictionary"}
        several = isinstance(self.policy.dictionary, SeveralDictionaries)
        return f"the dictionary '{self.grown.name}'" if several else names[self.grown.name]

    def explanation(self) -> str:
        """What will be computed, as text."""
        lines = [f"{name}: {h.n_leaves:,} leaves, {h.height + 1} levels" for name, h in self.hierarchies.items()]
        lines += explained(plan_of(self.policy, self.hierarchies, self.grown), name=self.named)
        lines.append(f"curves: {self.shares} nested samples of {self.named}")
        lines.append("utility at least " + ", ".join(f"{floor:g}" for floor in self.floors))
        return "\n".join(lines)


def _floors(policy: Policy, hierarchies: dict[str, Hierarchy], given: Sequence[float] | None) -> tuple[float, ...]:
    greatest = greatest_utility(policy, hierarchies)
    if given is None:
        return tuple(greatest * (i + 1) / FLOORS for i in range(FLOORS))
    for floor in given:
        if not reaches(np.array([greatest]), floor)[0]:
            raise InfeasibleError(
                f"--floors: must be at most {greatest:g}, the {policy.utility.measure} utility of a record released as "
                f"it is. Got {floor:g}."
            )
    return tuple(sorted(set(given)))


def parse_floors(text: str) -> tuple[float, ...]:
    """Read ``--floors a,b,c``.

    Raises
    ------
    ConfigError
        If it is not a list of finite numbers.
    """
    try:
        floors = tuple(float(part) for part in text.split(","))
    except ValueError:
        floors = ()
    if not floors or len(floors) > MOST_FLOORS or not all(math.isfinite(floor) for floor in floors):
        rule = f"must be up to {MOST_FLOORS} numbers with commas between, such as 2,4,6.5. Got {text!r}"
        raise ConfigError([Fault("--floors", rule)])
    return floors


class _Curves:
    """One run: the stages, in order."""

    def __init__(
        self, spark: SparkSession, policy: Policy, asked: Asked, place: Path, scratch: Path, run_id: str
    ) -> None:
        self.spark, self.policy, self.asked, self.place, self.run_id = spark, policy, asked, place, run_id
        self.scratch = Scratch(spark, scratch)
        self.progress = Progress(place, run_id, 6)

    def compute(self, date: dt.date, announce: Announce) -> CurveResult:
        policy, progress = self.policy, self.progress
        with progress.stage("read") as stage:
            sources = _Sources.opened(self.spark, policy, self.asked)
            k = len(sources.hierarchies)
            search = search_of(policy, sources.hierarchies)
            of_axes = axes(policy, sources.hierarchies, sources.grown)
            disclosure = disclosure_of(policy, sources.hierarchies, of_axes)
            announce(sources.explanation())
            stage.sentence = f"Opened the table with {k} quasi-identifiers."
        with progress.stage("encode") as stage:
            encoded, rows = collect_codes(self.scratch, sources.table, policy, sources.hierarchies, self.place)
            stage.sentence = "Encoded every value as an integer code."
        with progress.stage("count") as stage:
            grown = self._count(sources, encoded, sources.grown)
            bounded = true_dictionary(policy) is not None
            estimate = self._count(sources, encoded, policy.dictionaries[0]) if bounded else None
            vectors, of_bucket = self._shares(sources, encoded)
            stage.sentence = f"Cut {sources.named} into {self.asked.shares} nested samples."
        with progress.stage("sample") as stage:
            records, distinct = self._records(encoded, k)
            stage.sentence = f"Chose {records.num_rows:,} of {distinct:,} distinct records."
        with progress.stage("evaluate") as stage:
            found = self._evaluate(disclosure, search, sources, grown, estimate, (vectors, of_bucket), records)
            stage.sentence = f"Decided them for {len(sources.floors)} utility floors against each sample."
        result = CurveResult(
            title=policy.run.name,
            run_id=self.run_id,
            created=date.isoformat(),
            version=__version__,
            dictionary=sources.named,
            estimate="the policy's estimate" if bounded else "the smallest sample",
            model=policy.risk.model,
            utility_unit=UNITS[policy.utility.measure],
            curves=found,
            shares=tuple((s + 1) / self.asked.shares for s in range(self.asked.shares)),
            records=rows,
            distinct=distinct,
            used_records=int(records.column(schemas.N_ROWS).to_numpy().sum()),
            used_distinct=records.num_rows,
            notes=tuple(_notes(policy, sources.grown, bounded=bounded)),
        )
        with progress.stage("write") as stage:
            write_text(self.place / "curves.html", render_curves(result))
            write_text(self.place / "curves.csv", result.to_csv())
            write_json(self.place / "curves.json", result.to_dict())
            stage.sentence = "Wrote data and plots."
        return result

    def _count(self, sources: _Sources, encoded: Batches, one: OneDictionary) -> StoredCounts:
        """Count a whole dictionary, which also refuses one that cannot be used."""
        frame = sources.frames.get(one.name)
        return collect_held(self.scratch, encoded, frame, self.policy, sources.hierarchies, one)

    def _shares(self, sources: _Sources, encoded: Batches) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        """Cut the dictionary that grows into nested samples; rows of the estimate, if any, are in each."""
        policy, hierarchies, one = self.policy, sources.hierarchies, sources.grown
        of_axes = axes(policy, hierarchies, one)
        own = None
        if one.table is None:
            rows = own_vectors(encoded.frame(), of_axes)
        else:
            rows = identities(sources.frames[one.name], one, policy, hierarchies)
        if true_dictionary(policy) is not None:
            (of_estimate,) = policy.dictionaries
            if of_estimate.table is None:
                own = encoded.frame().select(F.col(schemas.RECORD_ID).alias(ID))
            else:
                own = identities(sources.frames[of_estimate.name], of_estimate, policy, hierarchies).select(ID)
        split = self.scratch.write_frame(share_vectors(rows, own=own, shares=self.asked.shares), "shares")
        names = schemas.dictionary_codes(len(hierarchies))
        return collect_share_vectors(split, names, most=policy.counting.sorted_vectors)

    def _records(self, encoded: Batches, k: int) -> tuple[pa.Table, int]:
        """Distinct records with their multiplicity, at most as many as asked for, and how many there are."""
        codes = schemas.codes(k)
        names = [*codes, *schemas.weights(len(self.policy.weight_columns))]
        records = self.scratch.write_frame(vectors_of_table(encoded, k, len(self.policy.weight_columns)), "records")
        distinct = records.count()
        if distinct > self.asked.records:
            drawn = records.withColumn("draw", F.xxhash64(*codes)).orderBy("draw", *names)
            records = drawn.limit(self.asked.records).drop("draw")
        return records.toArrow().sort_by([(name, "ascending") for name in names]), distinct

    def _evaluate(
        self,
        disclosure: Disclosure,
        search: Search | None,
        sources: _Sources,
        grown: StoredCounts,
        estimate: StoredCounts | None,
        shares: tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]],
        records: pa.Table,
    ) -> DictionaryCurves:
        weights = WeightColumns.of_policy(self.policy, list(sources.hierarchies))
        given = floats(records, schemas.weights(weights.n))
        vectors, of_bucket = shares
        assert search is not None, "a decision of least risk is searched for"
        return dictionary_curves(
            disclosure,
            sources.floors,
            nested_counts(grown.axes, vectors, of_bucket, plan=grown.plan),
            integers(records, schemas.codes(len(sources.hierarchies))),
            records.column(schemas.N_ROWS).to_numpy().astype(np.int64),
            method=search.method,
            neighbourhood=search.neighbourhood,
            estimate=None if estimate is None else estimate.load(),
            personal=weights.personal(given),
            record_weight=weights.of_record(given),
        )


def _notes(policy: Policy, grown: OneDictionary, *, bounded: bool) -> Iterator[str]:
    """What a reader must know besides."""
    if isinstance(policy.dictionary, SeveralDictionaries):
        yield (
            f"The policy names several dictionaries; here the attacker holds '{grown.name}' for certain, whatever its "
            "prior."
        )
    if bounded:
        yield (
            "The rows of the estimate's people are in every sample; whether the bound is proved is said in the vault's "
            "report of a release."
        )
    elif policy.risk.model != "III" and policy.dictionary.consistency != "similar":
        yield (
            "Samples are nested, so that no record is easier to identify in a larger one: a line never rises, and no "
            "point lies below the line of equal risks."
        )
    if policy.risk.model == "III":
        yield "Risk model III grows with the number of dictionary rows; it need not fall, and the estimate is no bound."
    yield "A record that a sample has no row for is counted as a row of its own there."
    if policy.linkage is not None:
        yield "Record linkage is left out here."
