"""Risk over what the attacker knows (F12 Figs 3.1 and 3.3): the order of stages, and every Spark action of it.

read → encode → count → sample → evaluate → write

The dictionary is cut into nested samples, and the table's distinct records are decided against each of them for several
utility floors, by the kernels on the driver. All of it is exact and for the trusted zone alone.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import Batches
from privrisk_spark.engine.counts import StoredCounts, own_vectors
from privrisk_spark.engine.decided import WeightColumns, floats, integers
from privrisk_spark.engine.schemas import ID
from privrisk_spark.engine.value_codes import ids_are_numbers
from privrisk_spark.engine.vectors import vectors_of_table
from privrisk_spark.errors import SchemaError
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.json_values import as_json
from privrisk_spark.kernels.disclosure.disclosure import Disclosure
from privrisk_spark.kernels.disclosure.estimated import nested_counts
from privrisk_spark.kernels.disclosure.utility import UNITS
from privrisk_spark.kernels.search.dictionary_curves import DictionaryCurves, dictionary_curves
from privrisk_spark.kernels.search.method import Search
from privrisk_spark.pipelines.opening import Sources, open_hierarchies, open_sources
from privrisk_spark.pipelines.run import Announce, ResultRun, start_run
from privrisk_spark.planning.counting import plan_of
from privrisk_spark.planning.curves import CurveRequest, floors_of, growing_dictionary, refuse_other_problems
from privrisk_spark.planning.decisions.registry import decision_of
from privrisk_spark.planning.dictionaries import axes, true_dictionary
from privrisk_spark.planning.disclosure import disclosure_of
from privrisk_spark.planning.lakes import pin_tables, versions_of
from privrisk_spark.planning.places import all_dictionaries
from privrisk_spark.policy.dictionaries import OneDictionary
from privrisk_spark.policy.policy import Policy
from privrisk_spark.reporting.curves import curve_notes, curves_explanation, dictionary_in_words
from privrisk_spark.reporting.pages import render_curves
from privrisk_spark.results.curves import CurveResult
from privrisk_spark.runs.places import ResultPlace
from privrisk_spark.runs.progress import write_status
from privrisk_spark.stages.counting.dense_sorted import collect_held
from privrisk_spark.stages.diagnostics.estimated import collect_share_vectors, share_vectors
from privrisk_spark.tables.encode import dictionary_rows, id_of, identities
from privrisk_spark.tables.materialize import collect_codes
from privrisk_spark.version import __version__

STAGES = 6

READ = ("table", "dictionary")
"""Parts of a policy that name the tables that are read."""


def plan_only(spark: SparkSession, policy: Policy, request: CurveRequest, *, table: DataFrame | None = None) -> str:
    """Open everything the curves need, write nothing, and return the plan as text (``--dry-run``)."""
    policy = pin_tables(policy, READ, given=table is not None).policy
    return explained(policy, open_curves(spark, policy, request, table), request)


def curves(
    spark: SparkSession,
    policy: Policy,
    request: CurveRequest,
    *,
    place: ResultPlace,
    run_id: str,
    date: dt.date,
    announce: Announce | None = None,
    table: DataFrame | None = None,
) -> CurveResult:
    """Compute the curves and write ``curves.json``, ``curves.csv`` and ``curves.html``.

    Parameters
    ----------
    spark : SparkSession
    policy : Policy
        Of the kind ``risk``. Its first external dictionary grows, or the table itself; where it names an estimate and a
        true dictionary, the true one grows around the rows of the estimate.
    request : CurveRequest
    place : ResultPlace
        As :func:`privrisk_spark.planning.places.check_request` returns it.
    run_id : str
    date : date
        Business date.
    announce : callable, optional
        Called with the text of the plan once it is chosen (``--explain``).
    table : DataFrame, optional
        Of the same session; read instead of the policy's table. What the policy says of its columns holds.

    Raises
    ------
    InputError
        Exit code 2: the policy or the data must be mended.
    EngineError
        Exit code 3: running again may help.
    """
    with start_run(
        spark, policy, place, run_id=run_id, date=date, reads=READ, stages=STAGES, table=table, announce=announce
    ) as run:
        policy = run.policy
        opened, disclosure, search = read(run, request)
        encoded = encode(run, opened)
        counted = count(run, request, opened, encoded)
        sampled = sample(run, request, opened, encoded)
        drawn = evaluate(run, opened, disclosure, search, counted, sampled)
        bounded = counted.estimate is not None
        result = CurveResult(
            title=policy.run.name,
            run_id=run_id,
            created=date.isoformat(),
            version=__version__,
            dictionary=opened.dictionary,
            estimate="the policy's estimate" if bounded else "the smallest sample",
            model=policy.risk.model,
            utility_unit=UNITS[policy.utility.measure],
            curves=drawn,
            shares=tuple((share + 1) / request.shares for share in range(request.shares)),
            records=encoded.n_rows,
            distinct=sampled.distinct,
            used_records=int(sampled.records.column(schemas.N_ROWS).to_numpy().sum()),
            used_distinct=sampled.records.num_rows,
            notes=tuple(curve_notes(policy, opened.grown, bounded=bounded)),
        )
        write(run, result)
        write_status(place.status, run_id, phase="written", code=0, message=f"curves in {place}")
    return result


@dataclass(frozen=True, eq=False)
class Opened:
    """The table and the dictionaries as Spark opened them, and what is planned with them.

    Attributes
    ----------
    hierarchies : dict of quasi-identifier to Hierarchy
    grown : OneDictionary
        The dictionary that is cut into samples.
    dictionary : str
        The same in words.
    floors : tuple of float
        Least utilities, ascending.
    """

    sources: Sources
    hierarchies: dict[str, Hierarchy]
    grown: OneDictionary
    dictionary: str
    floors: tuple[float, ...]


def open_curves(spark: SparkSession, policy: Policy, request: CurveRequest, given: DataFrame | None) -> Opened:
    """Open the sources; reads the table only where leaves of a hierarchy come from the data."""
    sources = open_sources(spark, policy, given, all_dictionaries(policy))
    if sources.table.isEmpty():
        raise SchemaError("table: it has no rows.")
    hierarchies = open_hierarchies(policy, sources)
    refuse_other_problems(policy, hierarchies)
    grown = growing_dictionary(policy)
    floors = floors_of(policy, hierarchies, request.floors)
    named = dictionary_in_words(policy, grown)
    return Opened(sources, hierarchies, grown, named, floors)


def explained(policy: Policy, opened: Opened, request: CurveRequest) -> str:
    """What will be computed, as text."""
    choice = plan_of(policy, opened.hierarchies, opened.grown)
    return curves_explanation(
        opened.hierarchies, choice, dictionary=opened.dictionary, shares=request.shares, floors=opened.floors
    )


def read(run: ResultRun, request: CurveRequest) -> tuple[Opened, Disclosure, Search]:
    """Stage: open the sources; what records disclose, and the search that decides them."""
    with run.progress.stage("read") as stage:
        opened = open_curves(run.spark, run.policy, request, run.table)
        search = decision_of(run.policy).procedure(opened.hierarchies)
        assert isinstance(search, Search), "a decision of least risk is searched for"
        of_axes = axes(run.policy, opened.hierarchies, opened.grown)
        disclosure = disclosure_of(run.policy, opened.hierarchies, of_axes)
        if run.announce is not None:
            run.announce(explained(run.policy, opened, request))
        stage.sentence = f"Opened the table with {len(opened.hierarchies)} quasi-identifiers."
        versions = versions_of(run.policy)
        stage.parameters = {"table_versions": versions} if versions else {}
    return opened, disclosure, search


@dataclass(frozen=True, eq=False)
class Encoded:
    """The table as codes, materialized in scratch.

    Attributes
    ----------
    rows : Batches
        ENCODED, resolved.
    """

    rows: Batches
    n_rows: int


def encode(run: ResultRun, opened: Opened) -> Encoded:
    """Stage: the table as codes."""
    with run.progress.stage("encode") as stage:
        rows, n_rows = collect_codes(
            run.scratch, opened.sources.table, run.policy, opened.hierarchies, run.place, given=opened.sources.given
        )
        stage.sentence = "Encoded every value as an integer code."
    return Encoded(rows, n_rows)


@dataclass(frozen=True, eq=False)
class Counted:
    """The dictionaries, counted, and the samples of the one that grows.

    Attributes
    ----------
    grown : StoredCounts
        The whole of it.
    estimate : StoredCounts or None
        Of the policy's estimate, where the true dictionary grows around it.
    vectors : ndarray of int32, shape (m, k)
        Distinct vectors of the dictionary that grows.
    of_bucket : ndarray of int64, shape (m, n_shares)
        Rows of each that come with each sample.
    """

    grown: StoredCounts
    estimate: StoredCounts | None
    vectors: npt.NDArray[np.int32]
    of_bucket: npt.NDArray[np.int64]


def count(run: ResultRun, request: CurveRequest, opened: Opened, encoded: Encoded) -> Counted:
    """Stage: count whole dictionaries, which also refuses one that cannot be used, and cut one into samples."""
    with run.progress.stage("count") as stage:
        grown = _count(run, opened, encoded, opened.grown)
        bounded = true_dictionary(run.policy) is not None
        estimate = _count(run, opened, encoded, run.policy.dictionaries[0]) if bounded else None
        vectors, of_bucket = _cut(run, request, opened, encoded)
        stage.sentence = f"Cut {opened.dictionary} into {request.shares} nested samples."
    return Counted(grown, estimate, vectors, of_bucket)


def _count(run: ResultRun, opened: Opened, encoded: Encoded, dictionary: OneDictionary) -> StoredCounts:
    frame = opened.sources.dictionaries.get(dictionary.name)
    rows = dictionary_rows(encoded.rows, frame, dictionary, opened.hierarchies)
    return collect_held(run.scratch, rows, run.policy, opened.hierarchies, dictionary)


def _cut(
    run: ResultRun, request: CurveRequest, opened: Opened, encoded: Encoded
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """Cut the dictionary that grows into nested samples; rows of the estimate, if any, are in each."""
    policy, hierarchies, grown = run.policy, opened.hierarchies, opened.grown
    own, numbers, estimated = None, False, true_dictionary(policy) is not None
    if estimated:
        (estimate,) = policy.dictionaries
        frame = opened.sources.dictionaries.get(estimate.name)
        mine = (opened.sources.table, policy.table.record_id) if frame is None else (frame, id_of(estimate))
        numbers = ids_are_numbers((opened.sources.dictionaries.get(grown.name), id_of(grown)), mine)
    if grown.table is None:
        rows = own_vectors(encoded.rows.frame(), axes(policy, hierarchies, grown))
    else:
        rows = identities(opened.sources.dictionaries[grown.name], grown, policy, hierarchies, numbers=numbers)
    if estimated:
        if frame is None:
            own = encoded.rows.frame().select(F.col(schemas.RECORD_ID).alias(ID))
        else:
            own = identities(frame, estimate, policy, hierarchies, numbers=numbers).select(ID)
    split = run.scratch.write_frame(share_vectors(rows, own=own, shares=request.shares), "shares")
    names = schemas.dictionary_codes(len(hierarchies))
    return collect_share_vectors(split, names, most=policy.counting.sorted_vectors)


@dataclass(frozen=True, eq=False)
class Sampled:
    """The records that are decided.

    Attributes
    ----------
    records : pa.Table
        Distinct ones with their multiplicity, in their order.
    distinct : int
        How many distinct ones the table has.
    """

    records: pa.Table
    distinct: int


def sample(run: ResultRun, request: CurveRequest, opened: Opened, encoded: Encoded) -> Sampled:
    """Stage: collect the distinct records, at most as many as asked for."""
    with run.progress.stage("sample") as stage:
        k, n_weights = len(opened.hierarchies), len(run.policy.weight_columns)
        codes = schemas.codes(k)
        names = [*codes, *schemas.weights(n_weights)]
        records = run.scratch.write_frame(vectors_of_table(encoded.rows, k, n_weights), "records")
        distinct = records.count()
        if distinct > request.records:
            drawn = records.withColumn("draw", F.xxhash64(*codes)).orderBy("draw", *names)
            records = drawn.limit(request.records).drop("draw")
        collected = records.toArrow().sort_by([(name, "ascending") for name in names])
        stage.sentence = f"Chose {collected.num_rows:,} of {distinct:,} distinct records."
    return Sampled(collected, distinct)


def evaluate(
    run: ResultRun, opened: Opened, disclosure: Disclosure, search: Search, counted: Counted, sampled: Sampled
) -> DictionaryCurves:
    """Stage: decide the records for every utility floor against every sample."""
    with run.progress.stage("evaluate") as stage:
        records, grown, estimate = sampled.records, counted.grown, counted.estimate
        weights = WeightColumns.of_policy(run.policy, list(opened.hierarchies))
        given = floats(records, schemas.weights(weights.n))
        drawn = dictionary_curves(
            disclosure,
            opened.floors,
            nested_counts(grown.axes, counted.vectors, counted.of_bucket, plan=grown.plan),
            integers(records, schemas.codes(len(opened.hierarchies))),
            records.column(schemas.N_ROWS).to_numpy().astype(np.int64),
            method=search.method,
            neighbourhood=search.neighbourhood,
            estimate=None if estimate is None else estimate.load(),
            personal=weights.personal(given),
            record_weight=weights.of_record(given),
        )
        stage.sentence = f"Decided them for {len(opened.floors)} utility floors against each sample."
    return drawn


def write(run: ResultRun, result: CurveResult) -> None:
    """Stage: write the page and the figures."""
    with run.progress.stage("write") as stage:
        run.place.put_text("curves.html", render_curves(result))
        run.place.put_text("curves.csv", result.to_csv())
        run.place.put_json("curves.json", as_json(result))
        stage.sentence = "Wrote data and plots."
