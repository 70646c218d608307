"""How risky a table is, alone or against a release and a population: the order of stages.

read → encode → count → measure → compare → identify → attack → tell → judge

Each subject, the table as it is and a release of it by labels, is counted once; its classes lie in buckets, and every
measure is a tally of the classes of a bucket. A masked release is compared as values. Nothing is transformed or
published: all of it is exact and for the trusted zone.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from privrisk_spark.errors import RefusedError, SchemaError
from privrisk_spark.extras import require
from privrisk_spark.json_values import as_json
from privrisk_spark.pipelines.assess.counted import Counted, Encoded, count_subjects
from privrisk_spark.pipelines.assess.measured import (
    RECORDS,
    MeasuredSets,
    compare_pairs,
    find_households,
    find_log_linear,
    find_separation,
    find_special_uniques,
    measure_sets,
    predict_labels,
    subject_of,
    write_records,
)
from privrisk_spark.pipelines.assess.opened import Opened, note_release, open_release, population_of
from privrisk_spark.pipelines.opening import FIRST_ERROR, Inspection, open_hierarchies, open_sources
from privrisk_spark.pipelines.run import Announce, ResultRun, start_run
from privrisk_spark.planning.assessment import (
    POPULATION,
    RELEASE,
    assumptions_of,
    narrowed,
    predicts_values,
    refuse_other_kind,
    sets_of,
)
from privrisk_spark.planning.lakes import versions_of
from privrisk_spark.planning.places import check_private_place
from privrisk_spark.policy.assessment import MaskedTable
from privrisk_spark.policy.dictionaries import Table
from privrisk_spark.policy.policy import Policy
from privrisk_spark.registry import MODELS, load
from privrisk_spark.reporting.assessment_page import render_assessment
from privrisk_spark.reporting.explanation import assessment_explanation
from privrisk_spark.reporting.verdict import assessment_notes, paragraph
from privrisk_spark.results.assessment import Assessment, Subject, Verdict, judged
from privrisk_spark.results.facts import values_changed
from privrisk_spark.runs.places import ResultPlace
from privrisk_spark.runs.progress import warn_of_one_row, write_status
from privrisk_spark.stages.assessing.sources import Vocabulary, collect_strangers, collect_vocabularies
from privrisk_spark.tables.materialize import collect_codes
from privrisk_spark.version import __version__

STAGES = 9

READ = ("table", "assess")
"""Parts of a policy that name the tables that are read."""


def check_output(policy: Policy, output: str) -> ResultPlace:
    """Return the place the assessment goes to.

    Raises
    ------
    ConfigError
        If it is no place for what stays private.
    """
    read_too: list[tuple[str, Table]] = []
    if isinstance(policy.assess.release, MaskedTable):
        read_too.append((RELEASE, policy.assess.release))
    if policy.assess.population is not None:
        read_too.append((POPULATION, policy.assess.population))
    return check_private_place(policy, output, what="assessments", more=read_too)


def assess(
    spark: SparkSession,
    policy: Policy,
    *,
    place: ResultPlace,
    run_id: str,
    date: dt.date,
    announce: Announce | None = None,
    table: DataFrame | None = None,
) -> Assessment:
    """Assess a table, and write ``measures.json``, ``assessment.json``, ``report.html`` and ``records/``.

    Parameters
    ----------
    spark : SparkSession
    policy : Policy
        Its table, columns and ``assess``; how it would release is not looked at.
    place : ResultPlace
        As :func:`check_output` returns it; every worker must see it.
    run_id : str
    date : date
    announce : callable, optional
        Called with what will be measured (``--explain``).
    table : DataFrame, optional
        Of the same session; read instead of the policy's table. What the policy says of its columns holds.

    Raises
    ------
    InputError
        Exit code 2: the policy or the data must be mended.
    EngineError
        Exit code 3: running again may help.
    """
    if policy.assess.classifiers is not None:
        require("sklearn", "assess.classifiers")
    with start_run(
        spark, policy, place, run_id=run_id, date=date, reads=READ, stages=STAGES, table=table, announce=announce
    ) as run:
        opened, masked, vocabularies = read(run)
        encoded = encode(run, opened)
        counted = count(run, opened, encoded, vocabularies)
        measured = measure(run, opened, counted)
        subjects = compare_and_attack(run, opened, encoded, counted, measured, masked)
        verdicts = judge(run, subjects)
        result = Assessment(
            title=policy.run.name,
            run_id=run_id,
            created=date.isoformat(),
            version=__version__,
            subjects=tuple(subjects),
            verdicts=verdicts,
            paragraph=paragraph(subjects, verdicts),
            notes=tuple(
                assessment_notes(
                    run.policy,
                    release=opened.release is not None,
                    released_persons=counted.subjects[-1].layout.persons,
                    masked=masked is not None,
                )
            ),
            stages=tuple(run.progress.records),
            assumptions=assumptions_of(run.policy),
        )
        write(run, result)
        code = RefusedError.exit_code if result.passed is False else 0
        failed = sum(not verdict.passed for verdict in result.verdicts)
        message = f"assessment in {place}" + (f"; {failed} thresholds are missed" if failed else "")
        write_status(place.status, run_id, phase="assessed", code=code, message=message)
    return result


def open_assessment(
    spark: SparkSession, policy: Policy, table: DataFrame | None, inspection: Inspection = FIRST_ERROR
) -> tuple[Opened, Any]:
    """Open the table, the population and the release, and collect the leaves of hierarchies that come from the data.

    Parameters
    ----------
    policy : Policy
        As it is given.
    table : DataFrame or None
        Read instead of the policy's table.
    inspection : Inspection, optional
        Collects errors.

    Raises
    ------
    InputError
        If a source cannot be opened, lacks a column, or has labels that are no nodes.
    """
    reading, asked = narrowed(policy), policy.assess.release
    sources = open_sources(spark, reading, table, [population_of(reading)], inspection=inspection)
    hierarchies = open_hierarchies(reading, sources, inspection=inspection)
    release, masked = None, None
    with inspection.at(RELEASE):
        if asked is not None and not policy.guarantee.generalizes:
            masked = load(str(MODELS[policy.guarantee.kind].open_values))(spark, policy, asked)
        elif asked is not None:
            needed, used = list(policy.quasi_identifiers), reading.used_columns
            release = open_release(spark, policy, asked, needed, key=RELEASE, used=used)
            refuse_other_kind(policy, release.manifest)
            collect_strangers(release, hierarchies, key=RELEASE)
        note_release(release if masked is None else masked.release, RELEASE, inspection)
    return Opened(reading, sources, release, hierarchies, sets_of(policy)), masked


def explain(policy: Policy, opened: Opened, masked: Any) -> str:
    """Return what is measured, as text."""
    release = opened.release if masked is None else masked.release
    title = None if release is None else release.title
    return assessment_explanation(policy, opened.hierarchies, opened.sets, release=title)


def inspect(spark: SparkSession, policy: Policy, table: DataFrame | None, inspection: Inspection) -> str | None:
    """Open everything an assessment needs, and return what it would measure; None if there is an error.

    Parameters
    ----------
    policy : Policy
        With the versions of the lake tables that are read.
    table : DataFrame or None
        Read instead of the policy's table.
    inspection : Inspection
        Collects errors.
    """
    with inspection.at("assess.classifiers"):
        if policy.assess.classifiers is not None:
            require("sklearn", "assess.classifiers")
    opened, masked = open_assessment(spark, policy, table, inspection)
    return None if inspection.errors else explain(policy, opened, masked)


def read(run: ResultRun) -> tuple[Opened, Any, list[Vocabulary]]:
    """Stage: open the sources, and collect the values of the columns the classes hold."""
    with run.progress.stage("read") as stage:
        opened, masked = open_assessment(run.spark, run.policy, run.table)
        if run.announce is not None:
            run.announce(explain(run.policy, opened, masked))
        sources = opened.sources
        vocabularies = collect_vocabularies(run.policy, sources.table, opened.release, given=sources.given)
        stage.sentence = f"Opened the table with {len(opened.hierarchies)} quasi-identifiers."
        changed = values_changed(sources.values)
        versions = versions_of(run.policy)
        stage.parameters = {
            **({"values_changed_on_reading": changed} if changed else {}),
            **({"table_versions": versions} if versions else {}),
        }
    return opened, masked, vocabularies


def encode(run: ResultRun, opened: Opened) -> Encoded:
    """Stage: the table as codes."""
    with run.progress.stage("encode") as stage:
        rows, n_rows = collect_codes(
            run.scratch, opened.sources.table, opened.policy, opened.hierarchies, run.place, given=opened.sources.given
        )
        if not n_rows:
            raise SchemaError("table: it has no rows.")
        warn_of_one_row(n_rows)
        stage.sentence = "Encoded every value as an integer code."
    return Encoded(rows, n_rows)


def count(run: ResultRun, opened: Opened, encoded: Encoded, vocabularies: Sequence[Vocabulary]) -> Counted:
    """Stage: count each subject and the population once."""
    with run.progress.stage("count") as stage:
        counted = count_subjects(run, opened, encoded, vocabularies)
        stage.sentence = "Counted the rows of each combination of quasi-identifiers and sensitive values, once."
    return counted


def measure(run: ResultRun, opened: Opened, counted: Counted) -> MeasuredSets:
    """Stage: measure every class of every set."""
    with run.progress.stage("measure") as stage:
        measured, seconds = measure_sets(run, opened, counted)
        stage.parameters = {"seconds": seconds}
        stage.sentence = "Measured every class of each set of quasi-identifiers."
        stage.status = "tested"
    return measured


def compare_and_attack(
    run: ResultRun,
    opened: Opened,
    encoded: Encoded,
    counted: Counted,
    measured: MeasuredSets,
    masked: Any,
) -> list[Subject]:
    """Stages: compare records with their released forms, find what identifies, plan the attack, tell each record.

    Minimal sample uniques are found beside the first: one long task a set, which leaves the other cores to what
    follows.
    """
    with ThreadPoolExecutor(1) as beside:
        finding = beside.submit(find_special_uniques, run, opened, measured)
        with run.progress.stage("compare") as stage:
            pairs = list(compare_pairs(run, opened, counted, encoded.n_rows))
            predictions = {} if predicts_values(run.policy) else predict_labels(run, opened, counted)
            beside_release: list[Subject] = []
            if masked is not None:
                measure = load(str(MODELS[run.policy.guarantee.kind].measure_values))
                of_table, released = measure(run, masked)
                predictions["table"] = [*of_table, *predictions.get("table", [])]
                beside_release.append(released)
            stage.sentence = (
                "Compared the table and its masked release as values."
                if masked is not None
                else "Compared records with their released forms."
                if pairs
                else "No records to compare with released forms."
            )
            if run.policy.assess.classifiers is not None and predictions:
                stage.sentence += " Predicted the label by classifiers."
            stage.status = "tested"
        with run.progress.stage("identify") as stage:
            separated = find_separation(run, measured)
            households = find_households(run, opened, counted, measured, encoded.n_rows)
            log_linear = find_log_linear(run, measured)
            special = finding.result()
            stage.sentence = "Found how well each column, and few values together, single records out."
            stage.status = "tested"
    with run.progress.stage("attack") as stage:
        subjects = [
            subject_of(
                run,
                opened,
                counted,
                measured,
                special,
                separated,
                households,
                log_linear,
                subject,
                [*predictions.get(subject.name, []), *(pairs if subject.name == "release" else [])],
            )
            for subject in counted.subjects
        ] + beside_release
        attacked = run.policy.assess.adversary is not None
        stage.sentence = (
            "Planned the attack of the adversary assumed on every group size."
            if attacked
            else "No adversary to plan for."
        )
        stage.status = "tested" if attacked else None
    with run.progress.stage("tell") as stage:
        if run.policy.assess.records:
            write_records(run, opened, counted, measured)
            stage.sentence = "Wrote the risks of each record."
        else:
            stage.sentence = "No risks of single records were asked for."
    return subjects


def judge(run: ResultRun, subjects: Sequence[Subject]) -> tuple[Verdict, ...]:
    """Stage: hold the last subject against the thresholds."""
    with run.progress.stage("judge") as stage:
        verdicts = judged(run.policy.assess.thresholds, subjects[-1])
        missed = sum(not verdict.passed for verdict in verdicts)
        stage.sentence = (
            f"Held the {subjects[-1].name} against {len(verdicts)} thresholds, and it misses {missed}."
            if verdicts
            else "No thresholds were given."
        )
    return verdicts


def write(run: ResultRun, result: Assessment) -> None:
    """Put the records and the documents of an assessment in their place."""
    for name in RECORDS.values():
        run.place.put_directory(run.scratch.path / name, name)
    run.place.put_json("measures.json", result.measures())
    run.place.put_json("assessment.json", as_json(result))
    run.place.put_text("report.html", render_assessment(result))
