"""A scheme fitted to a table and not yet applied, for somebody to approve: the order of stages.

read → encode → search → write

Where classes are held against the people of a dictionary, these are counted before the search.

What is written, ``scheme.json``, holds exact figures of the table: it is for the trusted zone alone.
"""

from __future__ import annotations

import datetime as dt

from pyspark.sql import DataFrame, SparkSession

from privrisk_spark.engine.counts import StoredCounts
from privrisk_spark.errors import ConfigError, Fault, SchemaError
from privrisk_spark.pipelines.opening import open_hierarchies, open_sources
from privrisk_spark.pipelines.run import Announce, start_run
from privrisk_spark.planning.decisions.registry import decision_of
from privrisk_spark.planning.dictionaries import axes
from privrisk_spark.planning.disclosure import disclosure_of
from privrisk_spark.planning.places import all_dictionaries, check_private_place
from privrisk_spark.planning.rules import Recoding
from privrisk_spark.planning.schemes import fitted_partition, fitted_scheme, population_of
from privrisk_spark.policy.anonymity import KAnonymityGuarantee
from privrisk_spark.policy.policy import Policy
from privrisk_spark.policy.schemes import FittedPartition, FittedScheme
from privrisk_spark.reporting.explanation import explanation
from privrisk_spark.runs.places import DirectoryPlace, ResultPlace
from privrisk_spark.runs.progress import write_status
from privrisk_spark.stages.counting.dense_sorted import collect_held
from privrisk_spark.stages.deciding.local import fitted_tree
from privrisk_spark.stages.deciding.recode import chosen_scheme, collect_problem
from privrisk_spark.stages.deciding.rules import RuleInputs
from privrisk_spark.tables.encode import dictionary_rows
from privrisk_spark.tables.materialize import collect_codes

SCHEME = "scheme.json"

READ = ("table", "dictionary")
"""Parts of a policy that name the tables that are read."""

STAGES = 4


def refuse_other_guarantees(policy: Policy) -> None:
    """Refuse a policy whose guarantee is none a scheme is fitted to, or that names a scheme already.

    Raises
    ------
    ConfigError
    """
    asked = policy.guarantee
    if not isinstance(asked, KAnonymityGuarantee):
        raise ConfigError([Fault("guarantee.kind", f"must be 'k-anonymity' to fit a scheme. Got '{asked.kind}'")])
    if asked.local and asked.method != "mondrian":
        rule = f"'{asked.method}' makes classes that fit no other table; choose 'mondrian', whose cuts do, or 'best'"
        raise ConfigError([Fault("guarantee.method", rule)])
    if asked.ordered:
        rule = "cuts at medians, which are those of one table; leave it out to fit a scheme"
        raise ConfigError([Fault("guarantee.ordered", rule)])
    if asked.scheme is not None:
        raise ConfigError([Fault("guarantee.scheme", "is what `privrisk fit` writes; leave it out to fit one")])


def check_output(policy: Policy, output: str) -> DirectoryPlace:
    """Return the directory the scheme goes to.

    Raises
    ------
    ConfigError
        If it is no place for what stays private, or is in an object store.
    """
    place = check_private_place(policy, output, what="schemes")
    if not isinstance(place, DirectoryPlace):
        raise ConfigError([Fault("--output", "must be a local or mounted path: a scheme is approved in its file")])
    return place


def fit(
    spark: SparkSession,
    policy: Policy,
    *,
    place: ResultPlace,
    run_id: str,
    date: dt.date,
    table: DataFrame | None = None,
    announce: Announce | None = None,
) -> FittedScheme | FittedPartition:
    """Search for the scheme of a table, and write ``scheme.json``.

    Parameters
    ----------
    spark : SparkSession
    policy : Policy
        With ``guarantee.kind: k-anonymity``.
    place : ResultPlace
        As :func:`check_output` returns it.
    run_id : str
    date : date
        Business date.
    table : DataFrame, optional
        Of the same session; read instead of the policy's table. What the policy says of its columns holds.
    announce : callable, optional
        Called with what will be searched (``--explain``).

    Raises
    ------
    InputError
        Exit code 2: the policy or the data must be mended.
    RefusedError
        Exit code 1: no scheme meets the guarantee.
    EngineError
        Exit code 3: running again may help.
    """
    refuse_other_guarantees(policy)
    with start_run(
        spark, policy, place, run_id=run_id, date=date, reads=READ, stages=STAGES, table=table, announce=announce
    ) as run:
        policy, scratch, progress = run.policy, run.scratch, run.progress
        with progress.stage("read") as stage:
            sources = open_sources(spark, policy, table, all_dictionaries(policy), recode=True)
            hierarchies = open_hierarchies(policy, sources)
            people = population_of(policy)
            recoding = decision_of(policy).procedure(hierarchies)
            assert isinstance(recoding, Recoding), "a table is recoded to be k-anonymous"
            if announce is not None:
                announce(explanation(policy, hierarchies, {}, None))
            stage.sentence = f"Opened the table with {len(hierarchies)} quasi-identifiers."
        with progress.stage("encode") as stage:
            rows, n_rows = collect_codes(scratch, sources.table, policy, hierarchies, place, given=sources.given)
            if not n_rows:
                raise SchemaError("table: it has no rows.")
            stage.sentence = "Encoded every value as an integer code."
        with progress.stage("search") as stage:
            counted: tuple[StoredCounts, ...] = ()
            if people is not None:
                coded = dictionary_rows(rows, sources.dictionaries.get(people.name), people, hierarchies)
                counted = (collect_held(scratch, coded, policy, hierarchies, people),)
            disclosure = disclosure_of(policy, hierarchies, axes(policy, hierarchies))
            inputs = RuleInputs(scratch, disclosure, counted, policy, hierarchies, n_rows)
            problem = collect_problem(inputs, rows, recoding)
            scheme: FittedScheme | FittedPartition
            if recoding.asked.local:
                tree, section = fitted_tree(inputs, problem, recoding)
                scheme = fitted_partition(policy, hierarchies, tree, section.figures, rows=n_rows, date=date)
            else:
                section = chosen_scheme(inputs, problem, recoding)[1].section
                scheme = fitted_scheme(policy, hierarchies, section.figures, rows=n_rows, date=date)
            stage.sentence = section.paragraph
        with progress.stage("write") as stage:
            place.put_json(SCHEME, scheme.model_dump(mode="json"))
            stage.sentence = "Wrote the scheme, for somebody to approve."
        write_status(place.status, run_id, phase="written", code=0, message=f"scheme in {place}")
    return scheme
