"""What several releases of one table disclose together: the order of stages.

read → encode → count → compose

Nothing is released: the releases under ``history`` of the policy are out already.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from privrisk_spark.engine.batches import Batches
from privrisk_spark.engine.counts import StoredAttacker, StoredCounts
from privrisk_spark.engine.decided import WeightColumns
from privrisk_spark.errors import ConfigError, Fault, SchemaError
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.json_values import as_json
from privrisk_spark.pipelines.opening import Sources, open_hierarchies, open_sources
from privrisk_spark.pipelines.run import ResultRun, start_run
from privrisk_spark.planning.dictionaries import axes
from privrisk_spark.planning.disclosure import disclosure_of
from privrisk_spark.planning.history import EarlierRelease, earlier_releases, refuse_differences, refuse_disks
from privrisk_spark.planning.lakes import versions_of
from privrisk_spark.planning.places import check_private_place
from privrisk_spark.policy.policy import Policy
from privrisk_spark.reporting.pages import render_composition
from privrisk_spark.results.composition import Composition
from privrisk_spark.runs.places import ResultPlace
from privrisk_spark.runs.progress import write_status
from privrisk_spark.stages.counting.dense_sorted import collect_held
from privrisk_spark.stages.deciding.history import Evaluation, measure_disclosed_risk, write_disclosed_risk
from privrisk_spark.tables.encode import dictionary_rows
from privrisk_spark.tables.materialize import collect_codes
from privrisk_spark.version import __version__

FILES = ("composition.html", "measures.json", "composition.json")

STAGES = 4


def check_output(policy: Policy, output: str) -> ResultPlace:
    """Return the directory the figures go to, resolved.

    Raises
    ------
    ConfigError
        If it is no place for what stays private, or the policy names no earlier releases.
    """
    if not policy.history:
        raise ConfigError(
            [Fault("history", "is required with --history: the vaults of the releases, manifests, or lineage")]
        )
    return check_private_place(policy, output, what="compositions")


@dataclass(frozen=True, eq=False)
class Opened:
    """The table and its dictionary as Spark opened them, and the releases.

    Attributes
    ----------
    hierarchies : dict of quasi-identifier to Hierarchy
    """

    sources: Sources
    hierarchies: dict[str, Hierarchy]
    earlier: tuple[EarlierRelease, ...]


def compose(
    spark: SparkSession,
    policy: Policy,
    *,
    place: ResultPlace,
    run_id: str,
    date: dt.date,
    table: DataFrame | None = None,
) -> Composition:
    """Find the risk of each record after the releases under ``history``, and write it with a page.

    Parameters
    ----------
    spark : SparkSession
    policy : Policy
        With ``history``; how it would release is not looked at.
    place : ResultPlace
        As :func:`check_output` returns it.
    run_id : str
    date : date
    table : DataFrame, optional
        Of the same session; read instead of the policy's table.

    Raises
    ------
    InputError
        Exit code 2: the policy or the data must be mended.
    EngineError
        Exit code 3: running again may help.
    """
    with start_run(
        spark, policy, place, run_id=run_id, date=date, reads=("table", "dictionary"), stages=STAGES, table=table
    ) as run:
        policy = run.policy
        opened = read(run)
        rows, n_rows = encode(run, opened)
        counts = count(run, opened, rows)
        with run.progress.stage("compose") as stage:
            evaluation = Evaluation(
                disclosure_of(policy, opened.hierarchies, axes(policy, opened.hierarchies)),
                StoredAttacker.of(policy, [counts]),
                WeightColumns.of_policy(policy, list(opened.hierarchies)),
            )
            risks = write_disclosed_risk(run.scratch, rows, opened.earlier, opened.hierarchies, evaluation)
            found, risen = measure_disclosed_risk(risks, opened.earlier)
            result = Composition(
                title=policy.run.name,
                run_id=run_id,
                created=date.isoformat(),
                version=__version__,
                model=policy.risk.model,
                rows=n_rows,
                releases=tuple(found[:-1]),
                together=found[-1],
                risen=risen,
            )
            stage.sentence = "Put together what every release has disclosed of each record."
        place.put_json("composition.json", as_json(result))
        place.put_json("measures.json", result.measures())
        place.put_text("composition.html", render_composition(result))
        write_status(place.status, run_id, phase="composed", code=0, message=f"composition in {place}")
    return result


def read(run: ResultRun) -> Opened:
    """Stage: open the sources, and hold the releases against the hierarchies of now."""
    policy = run.policy
    with run.progress.stage("read") as stage:
        sources = open_sources(run.spark, policy, run.table, policy.dictionaries)
        if sources.table.isEmpty():
            raise SchemaError("table: it has no rows.")
        hierarchies = open_hierarchies(policy, sources)
        earlier = earlier_releases(policy, own=None)
        if not earlier:
            raise ConfigError([Fault("history", "names no release that a vault remembers yet")])
        if run.scratch.shared is not None:
            refuse_disks(earlier)
        refuse_differences(policy, hierarchies, earlier)
        stage.sentence = f"Opened the table and {len(earlier)} releases."
        versions = versions_of(policy)
        stage.parameters = {"table_versions": versions} if versions else {}
    return Opened(sources, hierarchies, earlier)


def encode(run: ResultRun, opened: Opened) -> tuple[Batches, int]:
    """Stage: the table as codes."""
    with run.progress.stage("encode") as stage:
        rows, n_rows = collect_codes(
            run.scratch,
            opened.sources.table,
            run.policy,
            opened.hierarchies,
            run.place,
            given=opened.sources.given,
            unique=True,
        )
        stage.sentence = "Encoded every value as an integer code."
    return rows, n_rows


def count(run: ResultRun, opened: Opened, rows: Batches) -> StoredCounts:
    """Stage: count the rows of the dictionary."""
    (dictionary,) = run.policy.dictionaries
    with run.progress.stage("count") as stage:
        wanted = dictionary_rows(rows, opened.sources.dictionaries.get(dictionary.name), dictionary, opened.hierarchies)
        counts = collect_held(run.scratch, wanted, run.policy, opened.hierarchies, dictionary)
        stage.sentence = "Counted the rows of the dictionary."
    return counts
