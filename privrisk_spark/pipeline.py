"""The order of stages of a release, and every Spark action of it.

read → encode → count → decide (risk) or admit → recode → threshold (dp) → measure → validate → publish

Each stage is a function of frames in another module; what runs when, and what is written where, is only here.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses

from privrisk_spark import __version__, schemas
from privrisk_spark.anonymize import WeightColumns, decide_records, join_decisions
from privrisk_spark.contracts import Rule, failed, validate
from privrisk_spark.counts import (
    PlanChoice,
    StoredCounts,
    axes,
    choose_plan,
    collect_vectors,
    count_and_store,
    to_dictionary_codes,
    vectors_of_dictionary,
    vectors_of_table,
)
from privrisk_spark.errors import (
    BudgetError,
    CheckError,
    EngineError,
    HierarchyError,
    InfeasibleError,
    SchemaError,
)
from privrisk_spark.hierarchy import Hierarchy
from privrisk_spark.kernels.counting import Axis
from privrisk_spark.kernels.sensitivity import Sensitivity
from privrisk_spark.kernels.utility import UNITS
from privrisk_spark.keystore import destroy_key, release_key
from privrisk_spark.ledger import Ledger
from privrisk_spark.measure import (
    DecisionFacts,
    InputFacts,
    ReleaseFacts,
    decision_facts,
    input_facts,
    level_names,
    release_facts,
)
from privrisk_spark.mechanism import Mechanism, mechanism
from privrisk_spark.policy import DpGuarantee, Policy, TableDictionary
from privrisk_spark.problem import greatest_utility, lattice_size, node_utilities, problem, sensitivity
from privrisk_spark.progress import Progress, write_status
from privrisk_spark.release import (
    Workplace,
    data_dictionary,
    files_for,
    labelled,
    node_labels,
    read_back,
    write_data,
    write_decisions,
    write_json,
    write_text,
)
from privrisk_spark.report import render
from privrisk_spark.results import AttributeLevels, Check, Guarantee, Report, StageRecord
from privrisk_spark.sampling import (
    AdmittedSet,
    PublicCounts,
    Recoding,
    ReleaseKeys,
    admitted_cells,
    crowd_histogram,
    recode,
    scheme_cells,
)
from privrisk_spark.table import (
    build_hierarchies,
    check_columns,
    column,
    encode,
    encode_dictionary,
    hierarchies_from_policy,
    read,
    resolve,
)

DECISIONS_PER_TASK = 250_000


@dataclass(frozen=True)
class Outcome:
    """How a run ended.

    Attributes
    ----------
    manifest : dict
        Of the release.
    fresh : bool
        False when the run id's release was there already.
    place : Workplace
    """

    manifest: dict[str, Any]
    fresh: bool
    place: Workplace


@dataclass(frozen=True)
class Inputs:
    """What the first stage opened."""

    table: DataFrame
    dictionary: DataFrame | None
    hierarchies: dict[str, Hierarchy]
    axes: tuple[Axis, ...]


def release(
    spark: SparkSession, policy: Policy, *, run_id: str, date: dt.date, announce: Any = None
) -> Outcome:
    """Run a policy to a published release.

    Parameters
    ----------
    spark : SparkSession
    policy : Policy
    run_id : str
        Running it again returns the same release.
    date : date
        Business date, recorded as the release's date.
    announce : callable, optional
        Called with the text of the plan once it is chosen (``--explain``).

    Raises
    ------
    InputError
        Exit code 2: the policy or the data must be mended.
    RefusedError
        Exit code 1: a check or the budget forbids the release; nothing was published.
    EngineError
        Exit code 3: running again may help.
    """
    place = Workplace(Path(policy.output.path).resolve(), Path(policy.output.vault).resolve(), run_id)
    done = place.published()
    if done is not None:
        _settle(policy, place)
        return Outcome(done, False, place)
    with place.held():
        if isinstance(policy.guarantee, DpGuarantee):
            manifest = _release_dp(spark, policy, place, date, announce)
        else:
            manifest = _release_risk(spark, policy, place, date, announce)
    write_status(place.vault, run_id, phase="published", code=0, message=f"release at {place.target}")
    return Outcome(manifest, True, place)


def _release_risk(
    spark: SparkSession, policy: Policy, place: Workplace, date: dt.date, announce: Any
) -> dict[str, Any]:
    progress = Progress(place.vault, place.run_id, 7)
    decision = policy.decision
    assert decision is not None
    with progress.stage("read") as stage:
        inputs = _open(spark, policy)
        hierarchies, k = inputs.hierarchies, len(inputs.hierarchies)
        task = problem(policy, hierarchies, inputs.axes)
        choice = choose_plan(policy, hierarchies, inputs.axes)
        if announce:
            announce(explanation(policy, hierarchies, choice, None))
        stage.sentence = (
            f"Opened the table with {k} quasi-identifiers; a record's lattice has up to {lattice_size(hierarchies):,} nodes."
        )
    with progress.stage("encode") as stage:
        encoded, facts, checks = _encode(spark, policy, inputs, place, blocks=False)
        stage.sentence = "Encoded every value as an integer code and checked the input contract."
        stage.parameters = {"rows": facts.rows, "nulls": facts.nulls, "suppressed_unknown_values": facts.unknown}
    weights = WeightColumns.of_policy(
        policy.weight_columns, list(hierarchies), policy.risk.sensitivity.personal, policy.risk.sensitivity.record
    )
    with progress.stage("count") as stage:
        counts, vectors = _count(spark, policy, inputs, encoded, choice, weights, place)
        stage.sentence = (
            f"Counted consistent dictionary rows by the plan '{choice.plan}' ({choice.reason}); "
            f"consistency '{policy.dictionary.consistency}'."
        )
        stage.parameters = {"plan": choice.plan, "dictionary_rows": counts.dictionary_rows}
        stage.status = "tested"
    with progress.stage("decide") as stage:
        if vectors is None:
            decided = decide_records(encoded, task, counts, k=k, weights=weights)
        else:
            tasks = max(2, -(-vectors.count() // DECISIONS_PER_TASK))
            on_distinct = decide_records(vectors.repartition(tasks), task, counts, k=k, weights=weights)
            decided = join_decisions(encoded, on_distinct, k=k, n_weights=weights.n)
        decided = _materialize(spark, decided, place.scratch / "decided")
        measured = decision_facts(decided, hierarchies)
        if measured.infeasible and decision.infeasible == "error":
            raise _infeasible(decided, policy, inputs, measured)
        stage.sentence = (
            f"Chose each record's disclosure by '{task.search}': least model-{task.model} risk with "
            f"{policy.utility.measure} utility at least {task.floor:g}."
        )
        stage.parameters = {"infeasible_records_suppressed": measured.infeasible}
        stage.status = "proved"
    with progress.stage("stage") as stage:
        frame = labelled(decided, policy, hierarchies, files=files_for(policy.output, measured.rows))
        files = write_data(frame, policy.output, place.staging / "data")
        released = _measure_release(spark, policy, inputs, place)
        stage.sentence = "Wrote the release to staging in a canonical order and read it back."
    with progress.stage("validate") as stage:
        rules = _release_rules(policy, released) + _decision_rules(policy, measured, facts, released)
        values = _release_values(released) | _decision_values(measured)
        checks += _validate_release(spark, policy, inputs, place, rules, values)
        stage.sentence = "Checked the release contract on the staged files."
    guarantee = _risk_guarantee(policy, measured)
    with progress.stage("vault") as stage:
        record_id = policy.table.record_id or schemas.RECORD_ID
        write_decisions(decided, list(hierarchies), record_id, task.search, place.scratch / "decisions")
        place.swap_into_vault(place.scratch / "decisions", "decisions")
        stage.sentence = "Wrote decisions and exact measures to the vault."
    report = Report(
        edition="vault",
        title=policy.run.name,
        run_id=place.run_id,
        created=date.isoformat(),
        version=__version__,
        guarantee=guarantee,
        stages=tuple(progress.records),
        checks=tuple(checks),
        facts={
            "records": measured.rows,
            "released classes": released.classes,
            "smallest released class": released.min_class_size,
            "dictionary rows": counts.dictionary_rows,
            "records suppressed as infeasible": measured.infeasible,
        },
        risk_before=measured.risk_before,
        risk_after=measured.risk_after,
        risk_histogram_before=measured.before,
        risk_histogram_after=measured.after,
        utility=measured.utility,
        utility_max=greatest_utility(policy, hierarchies),
        levels=measured.levels,
    )
    _write_vault(place, policy, report, plan=choice.plan, snapshot=facts.snapshot, progress=progress)
    _refuse_failures(checks, policy)
    public = Report(
        edition="public",
        title=policy.run.name,
        run_id=place.run_id,
        created=date.isoformat(),
        version=__version__,
        guarantee=guarantee,
        stages=tuple(progress.records),
        checks=tuple(check for check in checks if check.contract == "release"),
        facts={"released rows": released.rows, "released classes": released.classes},
        risk_before=None,
        risk_after=measured.risk_after,
        risk_histogram_before=None,
        risk_histogram_after=None,
        utility=measured.utility,
        utility_max=greatest_utility(policy, hierarchies),
        levels=measured.levels,
    )
    return _publish(policy, place, public, inputs, files, released, {"rows_read": facts.rows})


def _release_dp(
    spark: SparkSession, policy: Policy, place: Workplace, date: dt.date, announce: Any
) -> dict[str, Any]:
    assert isinstance(policy.guarantee, DpGuarantee)
    assert policy.ledger is not None
    progress = Progress(place.vault, place.run_id, 8)
    with progress.stage("reserve") as stage:
        public = {n: h for n, h in hierarchies_from_policy(policy).items() if h is not None}
        plan = mechanism(policy, public if len(public) == len(policy.quasi_identifiers) else None)
        digest = plan.digest(policy)
        reservation = Ledger(policy.ledger.url).reserve(**_cost(policy, plan, place.run_id, digest))
        if reservation.state == "committed":
            raise BudgetError(
                f"The run id '{place.run_id}' is committed in the ledger but its release is not at output.path; its key "
                "is destroyed, so it cannot be made again. Use a new run id."
            )
        key = release_key(place.vault, place.run_id, reference=policy.guarantee.key)
        stage.sentence = (
            f"Reserved epsilon {plan.epsilon} and delta {policy.guarantee.delta} in the ledger before making a key."
        )
        stage.parameters = plan.parameters()
    with progress.stage("read") as stage:
        inputs = _open(spark, policy)
        hierarchies, k = inputs.hierarchies, len(inputs.hierarchies)
        recoding = Recoding(
            ancestor=tuple(h.ancestor for h in hierarchies.values()),
            code_depth=tuple(axis.code_depth for axis in inputs.axes),
            utility=node_utilities(policy, hierarchies),
            sensitivity=sensitivity(policy.risk.sensitivity, hierarchies)
            if policy.risk.model == "I"
            else Sensitivity("constant", ()),
            mechanism=plan,
        )
        choice = None
        if policy.guarantee.mode == "public-dictionary":
            choice = choose_plan(policy, hierarchies, inputs.axes)
        if announce:
            announce(explanation(policy, hierarchies, choice, plan))
        stage.sentence = f"Opened the table with {k} quasi-identifiers, all of which form the released tuple."
    with progress.stage("encode") as stage:
        encoded, facts, checks = _encode(spark, policy, inputs, place, blocks=True)
        keys = ReleaseKeys.derive(key, run_id=place.run_id, snapshot=facts.snapshot, mechanism=digest)
        stage.sentence = "Encoded every value as an integer code; values outside a hierarchy are suppressed."
    with progress.stage("admit") as stage:
        admissible: AdmittedSet | PublicCounts
        if choice is not None:
            counts, _ = _count(spark, policy, inputs, encoded, choice, WeightColumns(), place)
            admissible = PublicCounts(counts)
            stage.sentence = f"Counted the public dictionary; cells with at least t = {plan.frequent} rows are admissible."
            stage.parameters = {"plan": choice.plan, "dictionary_rows": counts.dictionary_rows, "t": plan.frequent}
        else:
            assert plan.admission is not None
            cells = scheme_cells(vectors_of_table(encoded, k, 0), recoding)
            theta = _materialize(spark, admitted_cells(cells, recoding, keys), place.scratch / "admitted")
            admissible = AdmittedSet.collect(theta, recoding)
            stage.sentence = (
                f"Admitted the cells of {len(plan.schemes)} public schemes whose count plus discrete Gaussian noise "
                f"(sigma² = {plan.admission.sigma_squared}) reaches t = {plan.frequent}."
            )
            stage.parameters = {"admitted_cells": admissible.sizes}
        stage.status = "proved"
    with progress.stage("recode") as stage:
        decided = _materialize(spark, recode(encoded, recoding, admissible, keys), place.scratch / "decided")
        stage.sentence = (
            "Drew each record's generalization among the admitted ones by the exponential objective, and kept each "
            f"record with probability {plan.keep_numerator}/2^32, both by keyed functions of the record."
        )
        stage.status = "proved"
    with progress.stage("threshold") as stage:
        histogram = crowd_histogram(decided, k=k, crowd=plan.crowd)
        histogram = _materialize(spark, histogram, place.scratch / "histogram")
        rows = histogram.agg(F.coalesce(F.sum(schemas.N_ROWS), F.lit(0))).first()
        assert rows is not None
        levels = _tuple_levels(histogram, hierarchies)
        expanded = histogram.withColumn("copy", F.explode(F.sequence(F.lit(1), F.col(schemas.N_ROWS).cast("int"))))
        frame = labelled(expanded, policy, hierarchies, files=files_for(policy.output, rows[0]))
        files = write_data(frame, policy.output, place.staging / "data")
        released = _measure_release(spark, policy, inputs, place)
        stage.sentence = (
            f"Dropped every released tuple with fewer than k = {plan.crowd} rows and wrote the release from the "
            "remaining histogram alone."
        )
        stage.parameters = {"released_rows": released.rows, "released_tuples": released.classes}
        stage.status = "proved"
    with progress.stage("validate") as stage:
        rules = [
            *_release_rules(policy, released),
            Rule("crowd", f"every released tuple has at least k = {plan.crowd} rows", at_least=float(plan.crowd)),
        ]
        values = _release_values(released) | {"crowd": released.min_class_size if released.rows else plan.crowd}
        checks += _validate_release(spark, policy, inputs, place, rules, values)
        stage.sentence = "Checked the release contract on the staged files; it reads nothing but the release."
    exact = decision_facts(decided, hierarchies)
    guarantee = Guarantee("dp", plan.statement, "proved", plan.parameters())
    with progress.stage("vault") as stage:
        record_id = policy.table.record_id or schemas.RECORD_ID
        write_decisions(decided, list(hierarchies), record_id, policy.guarantee.mode, place.scratch / "decisions")
        place.swap_into_vault(place.scratch / "decisions", "decisions")
        stage.sentence = "Wrote the drawn generalizations to the vault."
    sampled = decided.where(F.col(schemas.KEPT)).count()
    report = Report(
        edition="vault",
        title=policy.run.name,
        run_id=place.run_id,
        created=date.isoformat(),
        version=__version__,
        guarantee=guarantee,
        stages=tuple(progress.records),
        checks=tuple(checks),
        facts={
            "records": exact.rows,
            "sampled records": sampled,
            "released rows": released.rows,
            "released tuples": released.classes,
            "rows a cell needs to be released with probability 50 %": plan.survival[0],
            "rows a cell needs to be released with probability 99 %": plan.survival[1],
        },
        risk_before=exact.risk_before,
        risk_after=exact.risk_after,
        risk_histogram_before=exact.before,
        risk_histogram_after=exact.after,
        utility=exact.utility,
        utility_max=greatest_utility(policy, hierarchies),
        levels=exact.levels,
    )
    _write_vault(place, policy, report, plan="admission" if choice is None else choice.plan, snapshot=facts.snapshot,
                 progress=progress)  # fmt: skip
    _refuse_failures(checks, policy)
    public_report = Report(
        edition="public",
        title=policy.run.name,
        run_id=place.run_id,
        created=date.isoformat(),
        version=__version__,
        guarantee=guarantee,
        stages=tuple(_without_seconds(record) for record in progress.records if record.name != "vault"),
        checks=tuple(check for check in checks if check.contract == "release"),
        facts={
            "released rows": released.rows,
            "released tuples": released.classes,
            "weight of a released row": f"{2**32 / plan.keep_numerator:.6g}",
            "rows a cell needs to be released with probability 50 %": plan.survival[0],
            "rows a cell needs to be released with probability 99 %": plan.survival[1],
        },
        risk_before=None,
        risk_after=None,
        risk_histogram_before=None,
        risk_histogram_after=None,
        utility=None,
        utility_max=None,
        levels=levels,
    )
    # Idempotent for a run that is still reserved; refuses one that was voided meanwhile.
    Ledger(policy.ledger.url).reserve(**_cost(policy, plan, place.run_id, digest))
    manifest = _publish(policy, place, public_report, inputs, files, released, _theta(admissible, recoding))
    _settle(policy, place)
    return manifest


def plan_only(spark: SparkSession, policy: Policy, *, run_id: str) -> str:
    """Resolve everything a run needs, write nothing, and return the plan as text (``--dry-run``).

    Hierarchies whose leaves come from the data are not built, and the counting plan is then left open.
    """
    table = read(spark, policy.table, key="table")
    check_columns(table, policy)
    dictionary = policy.dictionary
    if isinstance(dictionary, TableDictionary):
        read(spark, dictionary, key="dictionary")
    found = hierarchies_from_policy(policy)
    complete = {name: hierarchy for name, hierarchy in found.items() if hierarchy is not None}
    plan = None
    if isinstance(policy.guarantee, DpGuarantee):
        assert policy.ledger is not None
        plan = mechanism(policy, complete if len(complete) == len(found) else None)
        Ledger(policy.ledger.url).would_cost(**_cost(policy, plan, run_id, plan.digest(policy)))
    if len(complete) < len(found):
        open_names = ", ".join(name for name in found if name not in complete)
        return f"The leaves of {open_names} come from the data; lattice and plan are known once it is read."
    of_policy = axes(policy, complete)
    if plan is None:
        problem(policy, complete, of_policy)
    choice = None
    if plan is None or plan.policy.mode == "public-dictionary":
        choice = choose_plan(policy, complete, of_policy)
    return explanation(policy, complete, choice, plan)


def explanation(
    policy: Policy, hierarchies: Mapping[str, Hierarchy], choice: PlanChoice | None, plan: Mechanism | None
) -> str:
    """Return what a run will do and what it holds in memory, as text."""
    lines = [f"{name}: {h.n_leaves:,} leaves, {h.height + 1} levels" for name, h in hierarchies.items()]
    lines.append(f"lattice: up to {lattice_size(hierarchies):,} nodes a record")
    if choice is not None:
        size = f"{choice.cells * 8 / 2**20:,.1f} MiB" if choice.plan == "dense" else "the distinct dictionary vectors"
        lines.append(f"counting plan: {choice.plan} ({choice.reason}); memory: {size}")
    if policy.decision is not None:
        best = greatest_utility(policy, hierarchies)
        lines.append(f"floor: utility at least {policy.decision.utility_at_least:g} of at most {best:g}")
    if plan is not None:
        lines.append(plan.statement)
        lines += [f"{name}: {value}" for name, value in plan.parameters().items()]
        lines.append(f"a cell needs {plan.survival[0]} rows to be released with probability 50 %, {plan.survival[1]} for 99 %")
    return "\n".join(lines)


def _open(spark: SparkSession, policy: Policy) -> Inputs:
    table = read(spark, policy.table, key="table")
    check_columns(table, policy)
    dictionary = None
    if isinstance(policy.dictionary, TableDictionary):
        dictionary = read(spark, policy.dictionary, key="dictionary")
    if not isinstance(policy.guarantee, DpGuarantee) and table.isEmpty():
        raise SchemaError("table: it has no rows.")
    hierarchies = build_hierarchies(policy, table, dictionary)
    return Inputs(table, dictionary, hierarchies, axes(policy, hierarchies))


def _materialize(spark: SparkSession, frame: DataFrame, directory: Path) -> DataFrame:
    """Write a frame once and go on from the files: what follows cannot evaluate it again."""
    frame.write.parquet(str(directory))
    return spark.read.schema(frame.schema).parquet(str(directory))


def _encode(
    spark: SparkSession, policy: Policy, inputs: Inputs, place: Workplace, *, blocks: bool
) -> tuple[DataFrame, InputFacts, list[Check]]:
    """Pin the table as codes, measure it, and hold it against the input contract."""
    attributes = list(inputs.hierarchies)
    encoded = encode(inputs.table, policy, inputs.hierarchies, blocks=blocks)
    pinned = _materialize(spark, encoded, place.scratch / "encoded")
    facts = input_facts(pinned, attributes, policy.weight_columns)
    private = isinstance(policy.guarantee, DpGuarantee)
    if not private:
        _refuse_values(policy, inputs, place, facts)
    rules = [
        Rule("null record ids", "every record has an id", at_most=0),
        Rule("duplicate record ids", "no two records share an id", at_most=0),
    ]
    values: dict[str, int] = {"null record ids": facts.null_ids, "duplicate record ids": facts.duplicate_ids}
    if not private:
        allowed = policy.checks.row_count
        rules.append(Rule("rows", "the number of rows is in the expected range", allowed.at_least, allowed.at_most))
        values["rows"] = facts.rows
        for name in attributes:
            rules.append(Rule(f"suppressed unknown values of {name}", "values outside the hierarchy are rare",
                              at_most=facts.rows / 2, level="warning"))  # fmt: skip
            values[f"suppressed unknown values of {name}"] = facts.unknown[name]
    checks = validate(
        "input", facts=values, rules=rules, frame=inputs.table, columns=list(policy.columns), vault=place.vault
    )
    wrong = failed(checks, fail_on=policy.checks.fail_on)
    if wrong:
        raise _check_error(wrong)
    return resolve(pinned, inputs.hierarchies, policy.quasi_identifiers, dictionary=False), facts, checks


def _refuse_values(policy: Policy, inputs: Inputs, place: Workplace, facts: InputFacts) -> None:
    for name, spec in policy.quasi_identifiers.items():
        if facts.nulls[name] and spec.nulls == "forbid":
            raise SchemaError(
                f"columns.{name}.nulls: missing values are forbidden and {facts.nulls[name]:,} rows have one; "
                "mend the table or choose 'suppress', 'own-value' or 'wildcard'."
            )
    for name, rows in facts.bad_weights.items():
        if rows:
            raise SchemaError(
                f"columns.{name}: a weight must be a finite non-negative number, and {rows:,} rows have none such."
            )
    for name, spec in policy.quasi_identifiers.items():
        if facts.unknown[name] and spec.unknown != "suppress":
            values = _write_unknown_values(inputs, place, name)
            raise HierarchyError(
                f"columns.{name}.hierarchy: {values:,} value(s) in {facts.unknown[name]:,} row(s) are not in the hierarchy; "
                f"they are listed in {place.vault / 'unknown_values'}. Add them, or set columns.{name}.unknown: suppress."
            )


def _write_unknown_values(inputs: Inputs, place: Workplace, name: str) -> int:
    """Set the values outside a hierarchy aside in the vault, with their row counts; return how many there are."""
    hierarchy = inputs.hierarchies[name]
    leaves = node_labels(inputs.table.sparkSession, hierarchy).where(F.col("node") < hierarchy.n_leaves)
    values = (
        inputs.table.select(column(name).cast("string").alias("value"))
        .where(F.col("value").isNotNull())
        .groupBy("value")
        .count()
        .join(F.broadcast(leaves), F.col("value") == F.col("label"), "left_anti")
    )
    scratch = place.scratch / "unknown_values"
    values.coalesce(1).write.option("header", True).csv(str(scratch))
    place.swap_into_vault(scratch, "unknown_values")
    return values.count()


def _count(
    spark: SparkSession,
    policy: Policy,
    inputs: Inputs,
    encoded: DataFrame,
    choice: PlanChoice,
    weights: WeightColumns,
    place: Workplace,
) -> tuple[StoredCounts, DataFrame | None]:
    """Count by the chosen plan; also the distinct records, where deciding them once and joining back pays.

    The sorted plan groups the dictionary once per task and lattice node, so its records are decided distinct and few
    tasks; the dense plan only looks up, and decides rows where they are, without a shuffle.
    """
    k, hierarchies = len(inputs.hierarchies), inputs.hierarchies
    vectors = None
    if choice.plan == "sorted":
        vectors = _materialize(spark, vectors_of_table(encoded, k, weights.n), place.scratch / "vectors")
    if inputs.dictionary is None:
        own = vectors_of_table(encoded, k, 0)
        collected, rows = collect_vectors(own, schemas.codes(k), most=policy.counting.sorted_vectors)
        collected = to_dictionary_codes(collected, hierarchies)
    else:
        coded, _ = encode_dictionary(inputs.dictionary, policy, hierarchies)
        grouped = _materialize(spark, vectors_of_dictionary(coded), place.scratch / "dictionary")
        _refuse_dictionary_nulls(grouped, policy, inputs)
        resolved = resolve(grouped, hierarchies, policy.quasi_identifiers, dictionary=True)
        merged = resolved.groupBy(*[name for name in resolved.columns if name != schemas.N_ROWS]).agg(
            F.sum(schemas.N_ROWS).alias(schemas.N_ROWS)
        )
        names = schemas.dictionary_codes(k)
        collected, rows = collect_vectors(merged, names, most=policy.counting.sorted_vectors)
        if not len(rows):
            raise SchemaError("dictionary: it has no rows.")
    return count_and_store(choice.plan, inputs.axes, collected, rows, place.scratch / "counts"), vectors


def _refuse_dictionary_nulls(grouped: DataFrame, policy: Policy, inputs: Inputs) -> None:
    k = len(inputs.hierarchies)
    for name, alias in zip(inputs.hierarchies, schemas.dictionary_codes(k), strict=True):
        if policy.quasi_identifiers[name].nulls == "forbid" and alias in grouped.columns:
            row = grouped.where(F.col(alias) == schemas.NULL).agg(F.sum(schemas.N_ROWS)).first()
            if row is not None and row[0]:
                raise SchemaError(
                    f"columns.{name}.nulls: missing values are forbidden and {row[0]:,} dictionary rows have one."
                )


def _infeasible(decided: DataFrame, policy: Policy, inputs: Inputs, measured: DecisionFacts) -> InfeasibleError:
    assert policy.decision is not None
    k = len(inputs.hierarchies)
    task = problem(policy, inputs.hierarchies, inputs.axes)
    worst = decided.where(~F.col(schemas.FEASIBLE)).select(*schemas.codes(k)).distinct().limit(100_000).toArrow()
    codes = np.column_stack([worst.column(name).to_numpy() for name in schemas.codes(k)])
    least = float(task.greatest_utility(codes).min())
    return InfeasibleError(
        f"decision.utility_at_least: {measured.infeasible:,} of {measured.rows:,} records cannot reach {task.floor:g} even "
        f"unchanged (missing values, or short branches of a hierarchy); all can reach {least:g}. Lower it, or set "
        "decision.infeasible: suppress."
    )


def _measure_release(spark: SparkSession, policy: Policy, inputs: Inputs, place: Workplace) -> ReleaseFacts:
    staged = read_back(spark, policy.output, place.staging / "data")
    labels = {}
    for name, hierarchy in inputs.hierarchies.items():
        known = node_labels(spark, hierarchy).select("label").distinct()
        if policy.output.format == "csv":
            known = known.select(F.when(F.col("label") != "", F.col("label")).alias("label")).distinct()
        labels[name] = known
    return release_facts(staged, labels, {name: column(name) for name in inputs.hierarchies})


def _release_rules(policy: Policy, released: ReleaseFacts) -> list[Rule]:
    rules = [
        Rule(f"texts of {name} outside its hierarchy", "every released text is a node of its hierarchy", at_most=0)
        for name in released.off_hierarchy
    ]
    if policy.checks.min_class_size is not None:
        size = policy.checks.min_class_size
        rules.append(Rule("smallest class", f"every released class has at least {size} rows", at_least=size))
    return rules


def _release_values(released: ReleaseFacts) -> dict[str, float | int]:
    values: dict[str, float | int] = {
        f"texts of {name} outside its hierarchy": rows for name, rows in released.off_hierarchy.items()
    }
    return values | {"smallest class": released.min_class_size, "released rows": released.rows}


def _decision_rules(
    policy: Policy, measured: DecisionFacts, facts: InputFacts, released: ReleaseFacts
) -> list[Rule]:
    assert policy.decision is not None
    rules = [Rule("released rows", "every record read is released", facts.rows, facts.rows)]
    if not measured.infeasible:
        floor = policy.decision.utility_at_least
        rules.append(Rule("least utility", f"every record's utility is at least {floor:g}", at_least=floor - 1e-9))
    if policy.checks.max_mean_risk is not None:
        limit = policy.checks.max_mean_risk
        rules.append(Rule("mean risk", f"the mean risk is at most {limit:g}", at_most=limit))
    if policy.checks.max_risk is not None:
        limit = policy.checks.max_risk
        rules.append(Rule("largest risk", f"no record's risk exceeds {limit:g}", at_most=limit))
    if policy.checks.forbid_verbatim:
        rules.append(Rule("verbatim records", "no record is released with all its original values", at_most=0))
    return rules


def _decision_values(measured: DecisionFacts) -> dict[str, float | int]:
    return {
        "least utility": measured.utility.min,
        "mean risk": measured.risk_after.mean,
        "largest risk": measured.risk_after.max,
        "verbatim records": measured.verbatim,
    }


def _validate_release(
    spark: SparkSession,
    policy: Policy,
    inputs: Inputs,
    place: Workplace,
    rules: list[Rule],
    values: Mapping[str, float | int],
) -> list[Check]:
    names = [name for name in policy.columns if name in inputs.hierarchies or name in policy.kept_columns]
    staged = read_back(spark, policy.output, place.staging / "data")
    return validate("release", facts=values, rules=rules, frame=staged, columns=names, vault=place.vault)


def _refuse_failures(checks: list[Check], policy: Policy) -> None:
    wrong = failed(checks, fail_on=policy.checks.fail_on)
    if wrong:
        raise _check_error(wrong)


def _check_error(wrong: list[Check]) -> CheckError:
    parts = [
        f"{check.contract} contract: {check.rule} ({check.name}"
        + ("" if check.observed is None else f": {check.observed:g}")
        + ")"
        for check in wrong
    ]
    return CheckError("Not published. " + " | ".join(parts) + ".")


def _risk_guarantee(policy: Policy, measured: DecisionFacts) -> Guarantee:
    assert policy.decision is not None
    against = "the table itself" if policy.dictionary.kind == "self" else "the given dictionary"
    form = policy.risk.sensitivity.form
    statement = (
        f"Each record is disclosed at the level vector of least model-{policy.risk.model} risk ({form} sensitivity) against "
        f"{against} among those with {policy.utility.measure} utility at least {policy.decision.utility_at_least:g}. "
        "The risk is that of a uniform attacker who knows that dictionary; it is no promise against one who knows more."
    )
    if measured.infeasible:
        statement += " Records that could not reach the floor are fully suppressed."
    parameters: dict[str, object] = {
        "risk_model": policy.risk.model,
        "sensitivity": form,
        "dictionary": policy.dictionary.kind,
        "consistency": policy.dictionary.consistency,
        "utility": policy.utility.measure,
        "utility_unit": UNITS[policy.utility.measure],
        "utility_at_least": policy.decision.utility_at_least,
    }
    return Guarantee("risk", statement, "proved", parameters)


def _cost(policy: Policy, plan: Mechanism, run_id: str, digest: str) -> dict[str, Any]:
    assert policy.ledger is not None
    return {
        "lineage": policy.ledger.lineage,
        "run_id": run_id,
        "epsilon": plan.epsilon,
        "delta": plan.policy.delta,
        "cap_epsilon": policy.ledger.cap.epsilon,
        "cap_delta": policy.ledger.cap.delta,
        "mechanism": {"parameters": plan.parameters(), "digest": digest, "version": __version__},
    }


def _settle(policy: Policy, place: Workplace) -> None:
    """After publication: commit the ledger, then destroy the key; safe to repeat."""
    if not isinstance(policy.guarantee, DpGuarantee):
        return
    assert policy.ledger is not None
    Ledger(policy.ledger.url).commit(
        lineage=policy.ledger.lineage, run_id=place.run_id, snapshot=place.recorded_snapshot()
    )
    destroy_key(place.vault, place.run_id)


def _tuple_levels(histogram: DataFrame, hierarchies: Mapping[str, Hierarchy]) -> tuple[AttributeLevels, ...]:
    """Generalization of released rows, from the histogram alone: steps above the deepest leaf."""
    table = histogram.toArrow()
    rows = table.column(schemas.N_ROWS).to_numpy().astype(np.int64)
    levels = []
    for name, (attribute, hierarchy) in zip(schemas.nodes(len(hierarchies)), hierarchies.items(), strict=True):
        level = hierarchy.height - hierarchy.depth[table.column(name).to_numpy()]
        counts = np.bincount(level, weights=rows, minlength=hierarchy.height + 1).astype(np.int64)
        levels.append(
            AttributeLevels(
                attribute, hierarchy.height, level_names(hierarchy.height), tuple(int(count) for count in counts)
            )
        )
    return tuple(levels)


def _without_seconds(record: StageRecord) -> StageRecord:
    """How long a stage took depends on the table, and under differential privacy is not published."""
    return replace(record, seconds=None)


def _theta(admissible: AdmittedSet | PublicCounts, recoding: Recoding) -> dict[str, Any]:
    """What of the admission the manifest may state."""
    if isinstance(admissible, PublicCounts):
        return {"dictionary_rows": admissible.stored.dictionary_rows}
    return {"admitted_cells": admissible.sizes}


def _write_vault(
    place: Workplace, policy: Policy, report: Report, *, plan: str, snapshot: str, progress: Progress
) -> None:
    summary = {
        "run_id": place.run_id,
        "rows": report.facts["records"],
        "risk_before": report.risk_before.to_dict() if report.risk_before else None,
        "risk_after": report.risk_after.to_dict() if report.risk_after else None,
        "risk_model": policy.risk.model,
        "risk_basis": "dictionary counts"
        if report.guarantee.kind == "risk"
        else "admitted (noisy or public) counts; before: an upper bound, as if one row were consistent",
        "utility": report.utility.to_dict() if report.utility else None,
        "utility_unit": UNITS[policy.utility.measure],
        "plan": plan,
        "seconds": progress.seconds,
        "guarantee": report.guarantee.to_dict(),
        "facts": dict(report.facts),
        "levels": [level.to_dict() for level in report.levels],
        "snapshot": snapshot,
        "policy_digest": policy.digest(),
        "version": __version__,
    }
    write_json(place.vault / "checks.json", [check.to_dict() for check in report.checks])
    write_text(place.vault / "report.html", render(report))
    write_json(place.vault / "summary.json", summary)


def _publish(
    policy: Policy,
    place: Workplace,
    report: Report,
    inputs: Inputs,
    files: list[dict[str, Any]],
    released: ReleaseFacts,
    more: Mapping[str, Any],
) -> dict[str, Any]:
    write_json(place.staging / "checks.json", [check.to_dict() for check in report.checks])
    write_json(place.staging / "dictionary.json", data_dictionary(policy, inputs.hierarchies))
    write_text(place.staging / "report.html", render(report))
    manifest = {
        "run_id": place.run_id,
        "name": policy.run.name,
        "date": report.created,
        "version": __version__,
        "policy_digest": policy.digest(),
        "guarantee": report.guarantee.to_dict(),
        "columns": data_dictionary(policy, inputs.hierarchies)["columns"],
        "rows": released.rows,
        "tuples": released.classes,
        "data": {"path": f"releases/{place.run_id}/data", "format": policy.output.format, "files": files},
        "checks": [check.to_dict() for check in report.checks],
        **more,
    }
    return place.commit(manifest)


def engine_failure(error: Exception) -> EngineError:
    """Say what failed in Spark without its message, which may quote data."""
    condition = error.getCondition() if isinstance(error, PySparkException) else None
    return EngineError(f"Spark failed ({condition or type(error).__name__}); its own log has the details.")
