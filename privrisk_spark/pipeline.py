"""The order of stages of a release, and every Spark action of it.

read → (reserve) → encode → count → decide, or admit → recode → threshold → write → validate → vault → publish

Each stage is a function of frames in another module; what runs when, and what is written where, is only here.
A function that makes Spark work is named ``collect_``, ``measure_`` or ``write_`` and is called from nowhere else.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses

from privrisk_spark import __version__, schemas
from privrisk_spark.anonymize import WeightColumns, decide_records, join_decisions
from privrisk_spark.contracts import Rule, decision_rules, input_rules, refuse_failures, release_rules, validate
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
from privrisk_spark.documents import (
    Run,
    data_dictionary,
    dp_reports,
    explanation,
    manifest,
    risk_guarantee,
    risk_reports,
    summary,
    tuple_levels,
)
from privrisk_spark.errors import BudgetError, EngineError, HierarchyError, InfeasibleError, SchemaError
from privrisk_spark.hierarchy import Hierarchy
from privrisk_spark.kernels.counting import Axis
from privrisk_spark.kernels.decide import Problem
from privrisk_spark.kernels.sensitivity import Sensitivity
from privrisk_spark.keystore import destroy_key, pin_snapshot, release_key
from privrisk_spark.ledger import Ledger
from privrisk_spark.measure import (
    DecisionFacts,
    InputFacts,
    ReleaseFacts,
    measure_decisions,
    measure_input,
    measure_release,
)
from privrisk_spark.mechanism import Mechanism, mechanism
from privrisk_spark.policy import DpGuarantee, Policy, TableDictionary
from privrisk_spark.problem import lattice_size, node_utilities, problem, sensitivity
from privrisk_spark.progress import Progress, write_status
from privrisk_spark.release import (
    Workplace,
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
from privrisk_spark.results import Check, Guarantee, Report
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
    check_columns,
    check_dictionary,
    collect_hierarchies,
    column,
    encode,
    encode_dictionary,
    hierarchies_from_policy,
    read,
    resolve,
    text,
)

DECISIONS_PER_TASK = 250_000

Announce = Callable[[str], object]


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


def release(
    spark: SparkSession, policy: Policy, *, run_id: str, date: dt.date, announce: Announce | None = None
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
    with place.held():
        done = place.published()
        if done is not None:
            _settle(policy, place)
            write_status(place.vault, run_id, phase="published", code=0, message=f"release at {place.target}")
            return Outcome(done, False, place)
        job = _Job(spark, policy, place, date, announce or (lambda _: None))
        published = job.release_by_risk() if policy.guarantee.kind == "risk" else job.release_privately()
        write_status(place.vault, run_id, phase="published", code=0, message=f"release at {place.target}")
    return Outcome(published, True, place)


class _Job:
    """One run: the stages, in order."""

    def __init__(
        self, spark: SparkSession, policy: Policy, place: Workplace, date: dt.date, announce: Announce
    ) -> None:
        self.spark, self.policy, self.place = spark, policy, place
        self.date, self.announce = date, announce
        self.progress = Progress(place.vault, place.run_id, 7 if policy.guarantee.kind == "risk" else 9)
        self.table: DataFrame
        self.dictionary: DataFrame | None = None
        self.hierarchies: dict[str, Hierarchy]
        self.axes: tuple[Axis, ...]

    @cached_property
    def k(self) -> int:
        return len(self.hierarchies)

    # ---------------------------------------------------------------- by risk

    def release_by_risk(self) -> dict[str, Any]:
        policy, progress = self.policy, self.progress
        decision = policy.decision
        assert decision is not None
        with progress.stage("read") as stage:
            self._open()
            task = problem(policy, self.hierarchies, self.axes)
            choice = choose_plan(policy, self.hierarchies, self.axes)
            self.announce(explanation(policy, self.hierarchies, choice, None))
            stage.sentence = (
                f"Opened the table with {self.k} quasi-identifiers; a record's lattice has up to "
                f"{lattice_size(self.hierarchies):,} nodes."
            )
        with progress.stage("encode") as stage:
            encoded, facts, checks = self._encode(blocks=False)
            stage.sentence = "Encoded every value as an integer code and checked the input contract."
            stage.parameters = {"rows": facts.rows, "nulls": facts.nulls, "suppressed_unknown_values": facts.unknown}
        with progress.stage("count") as stage:
            counts = self._count(encoded, choice)
            stage.sentence = (
                f"Counted consistent dictionary rows by the plan '{choice.plan}' ({choice.reason}); "
                f"consistency '{policy.dictionary.consistency}'."
            )
            stage.parameters = {"plan": choice.plan, "dictionary_rows": counts.dictionary_rows}
            stage.status = "tested"
        with progress.stage("decide") as stage:
            decided = self._decide(encoded, task, counts)
            measured = measure_decisions(decided, self.hierarchies)
            if measured.infeasible and decision.infeasible == "error":
                raise self._infeasible(decided, task, measured)
            stage.sentence = (
                f"Chose each record's disclosure by '{task.search}': least model-{task.model} risk with "
                f"{policy.utility.measure} utility at least {task.floor:g}."
            )
            stage.parameters = {"infeasible_records_suppressed": measured.infeasible}
            stage.status = "proved"
        with progress.stage("write") as stage:
            files, released = self._write(decided, rows=measured.rows)
            stage.sentence = "Wrote the release to staging in a canonical order and read it back."
        with progress.stage("validate") as stage:
            rules, values = release_rules(policy, released)
            exact_rules, exact_values = decision_rules(policy, facts, measured, released)
            checks += self._validate(rules + exact_rules, values | exact_values)
            stage.sentence = "Checked the release contract on the staged files."
        with progress.stage("vault") as stage:
            self._write_decisions(decided, task.search)
            stage.sentence = "Wrote decisions and exact measures to the vault."
        run = self._run(risk_guarantee(policy, suppressed=measured.infeasible), checks)
        vault, public = risk_reports(run, measured, released, dictionary_rows=counts.dictionary_rows)
        self._write_vault(vault, plan=choice.plan, snapshot=facts.snapshot)
        refuse_failures(checks, fail_on=policy.checks.fail_on)
        return self._publish(run, public, files, released, {"rows_read": facts.rows})

    def _decide(self, encoded: DataFrame, task: Problem, counts: StoredCounts) -> DataFrame:
        """Decide every row where it is, or its distinct record first.

        The dense plan only looks up, so rows are decided without a shuffle. The sorted plan groups the dictionary once
        per task and lattice node: distinct records, in few tasks, joined back.
        """
        weights = WeightColumns.of_policy(self.policy, list(self.hierarchies))
        if counts.plan == "dense":
            decided = decide_records(encoded, task, counts, k=self.k, weights=weights)
        else:
            records = self._materialize(vectors_of_table(encoded, self.k, weights.n), "records")
            tasks = max(2, -(-records.count() // DECISIONS_PER_TASK))
            on_distinct = decide_records(records.repartition(tasks), task, counts, k=self.k, weights=weights)
            decided = join_decisions(encoded, on_distinct, k=self.k, n_weights=weights.n)
        return self._materialize(decided, "decided")

    # ------------------------------------------------- differentially private

    def release_privately(self) -> dict[str, Any]:
        policy, progress = self.policy, self.progress
        dp, ledger = policy.guarantee, policy.ledger
        assert isinstance(dp, DpGuarantee)
        assert ledger is not None
        with progress.stage("read") as stage:
            # Of the table only its schema: nothing private is read before the budget is reserved.
            mechanism(policy)
            self._open()
            plan = mechanism(policy, self.hierarchies)
            choice = choose_plan(policy, self.hierarchies, self.axes) if dp.mode == "public-dictionary" else None
            self.announce(explanation(policy, self.hierarchies, choice, plan))
            stage.sentence = f"Opened the table with {self.k} quasi-identifiers, all of which form the released tuple."
        with progress.stage("reserve") as stage:
            digest = plan.digest(policy, self.hierarchies)
            cost = _cost(policy, plan, self.place.run_id, digest)
            if Ledger(ledger.url).reserve(**cost).state == "committed":
                raise BudgetError(
                    f"The run id '{self.place.run_id}' is committed in the ledger but its release is not at "
                    "output.path; its key is destroyed, so it cannot be made again. Use a new run id."
                )
            key = release_key(self.place.vault, self.place.run_id, reference=dp.key)
            stage.sentence = f"Reserved epsilon {plan.epsilon} and delta {dp.delta} in the ledger before making a key."
        with progress.stage("encode") as stage:
            encoded, facts, checks = self._encode(blocks=True)
            pin_snapshot(self.place.vault, self.place.run_id, facts.snapshot)
            keys = ReleaseKeys.derive(key, run_id=self.place.run_id, snapshot=facts.snapshot, mechanism=digest)
            stage.sentence = "Encoded every value as an integer code; values outside a hierarchy are suppressed."
        recoding = self._recoding(plan)
        with progress.stage("admit") as stage:
            admissible: AdmittedSet | PublicCounts
            theta: dict[str, Any]
            if choice is not None:
                counts = self._count(encoded, choice)
                admissible, theta = PublicCounts(counts), {"dictionary_rows": counts.dictionary_rows}
                stage.sentence = (
                    f"Counted the public dictionary; cells with at least t = {plan.frequent} rows are admissible."
                )
                stage.parameters = {"plan": choice.plan, **theta}
            else:
                assert plan.admission is not None
                cells = scheme_cells(vectors_of_table(encoded, self.k, 0), recoding)
                admitted = self._materialize(admitted_cells(cells, recoding, keys), "admitted")
                admissible = AdmittedSet.collect_cells(admitted, recoding)
                theta = {"admitted_cells": admissible.sizes}
                stage.sentence = (
                    f"Admitted the cells of {len(plan.schemes)} public schemes whose count plus discrete Gaussian "
                    f"noise (sigma² = {plan.admission.sigma_squared}) reaches t = {plan.frequent}."
                )
                stage.parameters = {**theta}
            stage.status = "proved"
        with progress.stage("recode") as stage:
            decided = self._materialize(recode(encoded, recoding, admissible, keys), "decided")
            stage.sentence = (
                "Drew each record's generalization among the admitted ones by the exponential objective, and kept each "
                f"record with probability {plan.keep_numerator}/2^32, both by keyed functions of the record."
            )
            stage.status = "proved"
        with progress.stage("threshold") as stage:
            histogram = self._materialize(crowd_histogram(decided, k=self.k, crowd=plan.crowd), "histogram")
            tuples, sizes = collect_vectors(histogram, schemas.nodes(self.k), most=policy.counting.sorted_vectors)
            copies = F.explode(F.sequence(F.lit(1), F.col(schemas.N_ROWS).cast("int")))
            files, released = self._write(histogram.withColumn("copy", copies), rows=int(sizes.sum()))
            stage.sentence = (
                f"Dropped every released tuple with fewer than k = {plan.crowd} rows and wrote the release from the "
                "remaining histogram alone."
            )
            stage.parameters = {"released_rows": released.rows, "released_tuples": released.classes}
            stage.status = "proved"
        with progress.stage("validate") as stage:
            rules, values = release_rules(policy, released)
            rules.append(Rule("crowd", f"every released tuple has at least k = {plan.crowd} rows", float(plan.crowd)))
            values["crowd"] = released.min_class_size if released.rows else plan.crowd
            checks += self._validate(rules, values)
            stage.sentence = "Checked the release contract on the staged files; it reads nothing but the release."
        with progress.stage("vault") as stage:
            exact = measure_decisions(decided, self.hierarchies)
            sampled = decided.where(F.col(schemas.KEPT)).count()
            self._write_decisions(decided, dp.mode)
            stage.sentence = "Wrote the drawn generalizations to the vault."
        run = self._run(Guarantee("dp", plan.statement, "proved", plan.parameters()), checks)
        levels = tuple_levels(self.hierarchies, list(tuples.T), sizes)
        vault, public = dp_reports(run, plan, exact, released, sampled=sampled, levels=levels)
        self._write_vault(vault, plan="admission" if choice is None else choice.plan, snapshot=facts.snapshot)
        refuse_failures(checks, fail_on=policy.checks.fail_on)
        with progress.stage("publish") as stage:
            # Costs nothing for a run that is still reserved, and refuses one that was voided meanwhile.
            Ledger(ledger.url).reserve(**cost)
            published = self._publish(run, public, files, released, theta)
            _settle(policy, self.place)
            stage.sentence = "Published, committed the ledger and destroyed the key."
        return published

    def _recoding(self, plan: Mechanism) -> Recoding:
        by_weights = self.policy.risk.model == "I"
        return Recoding(
            ancestor=tuple(hierarchy.ancestor for hierarchy in self.hierarchies.values()),
            code_depth=tuple(axis.code_depth for axis in self.axes),
            utility=node_utilities(self.policy, self.hierarchies),
            sensitivity=sensitivity(self.policy.risk.sensitivity, self.hierarchies)
            if by_weights
            else Sensitivity("constant", ()),
            mechanism=plan,
        )

    # ------------------------------------------------------------ both kinds

    def _open(self) -> None:
        """Open the sources and build the hierarchies, which reads the table only where leaves come from the data."""
        policy = self.policy
        self.table = read(self.spark, policy.table, key="table")
        check_columns(self.table, policy)
        if isinstance(policy.dictionary, TableDictionary):
            self.dictionary = read(self.spark, policy.dictionary, key="dictionary")
            check_dictionary(self.dictionary, policy.dictionary)
        if policy.guarantee.kind == "risk" and self.table.isEmpty():
            raise SchemaError("table: it has no rows.")
        self.hierarchies = collect_hierarchies(policy, self.table, self.dictionary)
        self.axes = axes(policy, self.hierarchies)

    def _materialize(self, frame: DataFrame, name: str) -> DataFrame:
        """Write a frame once and go on from the files: what follows cannot evaluate it again."""
        directory = str(self.place.scratch / name)
        frame.write.parquet(directory)
        return self.spark.read.schema(frame.schema).parquet(directory)

    def _encode(self, *, blocks: bool) -> tuple[DataFrame, InputFacts, list[Check]]:
        """Pin the table as codes, measure it, and hold it against the input contract."""
        policy = self.policy
        pinned = self._materialize(encode(self.table, policy, self.hierarchies, blocks=blocks), "encoded")
        facts = measure_input(pinned, list(self.hierarchies), policy.weight_columns)
        if policy.guarantee.kind == "risk":
            self._refuse_values(facts)
        rules, values = input_rules(policy, facts)
        checks = validate(
            "input", facts=values, rules=rules, frame=self.table, columns=list(policy.columns), vault=self.place.vault
        )
        refuse_failures(checks, fail_on=policy.checks.fail_on)
        return resolve(pinned, self.hierarchies, policy.quasi_identifiers, dictionary=False), facts, checks

    def _refuse_values(self, facts: InputFacts) -> None:
        specs = self.policy.quasi_identifiers
        for name, spec in specs.items():
            if facts.nulls[name] and spec.nulls == "forbid":
                raise SchemaError(
                    f"columns.{name}.nulls: missing values are forbidden and {facts.nulls[name]:,} rows have one; "
                    "mend the table or choose 'suppress', 'own-value' or 'wildcard'."
                )
        for name, rows in facts.bad_weights.items():
            if rows:
                raise SchemaError(
                    f"columns.{name}: a weight must be a non-negative number, and {rows:,} rows have none such."
                )
        for name, spec in specs.items():
            if facts.unknown[name] and spec.unknown != "suppress":
                values = self._set_aside(name)
                raise HierarchyError(
                    f"columns.{name}.hierarchy: {values:,} value(s) in {facts.unknown[name]:,} row(s) are not in the "
                    f"hierarchy; they are listed in {self.place.vault / 'unknown_values'}. Add them, or set "
                    f"columns.{name}.unknown: suppress."
                )

    def _set_aside(self, name: str) -> int:
        """List the values outside a hierarchy in the vault, with their row counts; return how many there are."""
        hierarchy = self.hierarchies[name]
        leaves = node_labels(self.spark, hierarchy).where(F.col("node") < hierarchy.n_leaves)
        values = (
            self.table.select(text(self.table, name).alias("value"))
            .where(F.col("value").isNotNull())
            .groupBy("value")
            .count()
            .join(F.broadcast(leaves), F.col("value") == F.col("label"), "left_anti")
        )
        scratch = self.place.scratch / "unknown_values"
        values.coalesce(1).write.option("header", True).csv(str(scratch))
        self.place.swap_into_vault(scratch, "unknown_values")
        return values.count()

    def _count(self, encoded: DataFrame, choice: PlanChoice) -> StoredCounts:
        """Count the attacker's dictionary by the chosen plan."""
        policy, most = self.policy, self.policy.counting.sorted_vectors
        if self.dictionary is None:
            own = vectors_of_table(encoded, self.k, 0)
            vectors, rows = collect_vectors(own, schemas.codes(self.k), most=most)
            vectors = to_dictionary_codes(vectors, self.hierarchies)
        else:
            coded = encode_dictionary(self.dictionary, policy, self.hierarchies)
            grouped = self._materialize(vectors_of_dictionary(coded), "dictionary")
            self._refuse_dictionary_values(grouped)
            resolved = resolve(grouped, self.hierarchies, policy.quasi_identifiers, dictionary=True)
            vectors, rows = collect_vectors(resolved, schemas.dictionary_codes(self.k), most=most)
            if not len(rows):
                raise SchemaError("dictionary: it has no rows.")
        return count_and_store(choice.plan, self.axes, vectors, rows, self.place.scratch / "counts")

    def _refuse_dictionary_values(self, grouped: DataFrame) -> None:
        """Refuse missing values where they are forbidden, and a column none of whose values is in its hierarchy."""
        there = [
            (name, alias)
            for name, alias in zip(self.hierarchies, schemas.dictionary_codes(self.k), strict=True)
            if alias in grouped.columns
        ]
        rows = F.col(schemas.N_ROWS)
        row = grouped.agg(
            F.sum(rows).alias("rows"),
            *[F.sum(F.when(F.col(alias) == schemas.NULL, rows)).alias(f"null_{alias}") for _, alias in there],
            *[F.sum(F.when(F.col(alias) == schemas.UNKNOWN, rows)).alias(f"unknown_{alias}") for _, alias in there],
        ).first()
        assert row is not None
        for name, alias in there:
            nulls, unknown = row[f"null_{alias}"] or 0, row[f"unknown_{alias}"] or 0
            if nulls and self.policy.quasi_identifiers[name].nulls == "forbid":
                raise SchemaError(
                    f"columns.{name}.nulls: missing values are forbidden and {nulls:,} dictionary rows have one."
                )
            if unknown and unknown + nulls == row["rows"]:
                raise HierarchyError(
                    f"dictionary.columns.{name}: none of the dictionary's values is in the hierarchy; map them with "
                    "level, age_in or mapping."
                )

    def _infeasible(self, decided: DataFrame, task: Problem, measured: DecisionFacts) -> InfeasibleError:
        codes = schemas.codes(self.k)
        worst = decided.where(~F.col(schemas.FEASIBLE)).select(*codes).distinct().limit(100_000).toArrow()
        least = float(task.greatest_utility(np.column_stack([worst.column(name).to_numpy() for name in codes])).min())
        return InfeasibleError(
            f"decision.utility_at_least: {measured.infeasible:,} of {measured.rows:,} records cannot reach "
            f"{task.floor:g} even unchanged (missing values, or short branches of a hierarchy); of those looked at "
            f"all can reach {least:g}. Lower it, or set decision.infeasible: suppress."
        )

    def _write(self, frame: DataFrame, *, rows: int) -> tuple[list[dict[str, Any]], ReleaseFacts]:
        """Write the release to staging and measure it from its files."""
        output, data = self.policy.output, self.place.staging / "data"
        files = write_data(labelled(frame, self.policy, self.hierarchies, files=files_for(output, rows)), output, data)
        labels = {name: node_labels(self.spark, h).select("label").distinct() for name, h in self.hierarchies.items()}
        staged = read_back(self.spark, output, data)
        return files, measure_release(staged, labels, {name: column(name) for name in self.hierarchies})

    def _validate(self, rules: list[Rule], values: Mapping[str, float | int]) -> list[Check]:
        policy = self.policy
        names = [name for name in policy.columns if name in self.hierarchies or name in policy.kept_columns]
        staged = read_back(self.spark, policy.output, self.place.staging / "data")
        return validate("release", facts=values, rules=rules, frame=staged, columns=names, vault=self.place.vault)

    def _run(self, guarantee: Guarantee, checks: list[Check]) -> Run:
        return Run(
            self.policy,
            self.hierarchies,
            self.place.run_id,
            self.date.isoformat(),
            guarantee,
            tuple(self.progress.records),
            tuple(checks),
        )

    def _write_decisions(self, decided: DataFrame, method: str) -> None:
        record_id = self.policy.table.record_id or schemas.RECORD_ID
        write_decisions(decided, list(self.hierarchies), record_id, method, self.place.scratch / "decisions")
        self.place.swap_into_vault(self.place.scratch / "decisions", "decisions")

    def _write_vault(self, report: Report, *, plan: str, snapshot: str) -> None:
        vault = self.place.vault
        write_json(vault / "checks.json", [check.to_dict() for check in report.checks])
        write_text(vault / "report.html", render(report))
        write_json(
            vault / "summary.json",
            summary(self.policy, report, plan=plan, snapshot=snapshot, seconds=self.progress.seconds),
        )

    def _publish(
        self,
        run: Run,
        public: Report,
        files: list[dict[str, Any]],
        released: ReleaseFacts,
        more: Mapping[str, Any],
    ) -> dict[str, Any]:
        staging = self.place.staging
        write_json(staging / "checks.json", [check.to_dict() for check in public.checks])
        write_json(staging / "dictionary.json", {"columns": data_dictionary(self.policy, self.hierarchies)})
        write_text(staging / "report.html", render(public))
        return self.place.commit(manifest(run, public, released, files=files, more=more))


def _settle(policy: Policy, place: Workplace) -> None:
    """After publication: commit the ledger, then destroy the key; safe to repeat."""
    if policy.ledger is None:
        return
    ledger = Ledger(policy.ledger.url)
    states = {run.run_id: run.state for run in ledger.balance(policy.ledger.lineage).runs}
    if states.get(place.run_id) == "reserved":
        ledger.commit(lineage=policy.ledger.lineage, run_id=place.run_id, snapshot=place.recorded_snapshot())
    destroy_key(place.vault, place.run_id)


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


def plan_only(spark: SparkSession, policy: Policy, *, run_id: str) -> str:
    """Resolve everything a run needs, write nothing, and return the plan as text (``--dry-run``).

    Hierarchies whose leaves come from the data are not built, and the counting plan is then left open.
    """
    table = read(spark, policy.table, key="table")
    check_columns(table, policy)
    dictionary = policy.dictionary
    if isinstance(dictionary, TableDictionary):
        check_dictionary(read(spark, dictionary, key="dictionary"), dictionary)
    found = hierarchies_from_policy(policy)
    complete = {name: hierarchy for name, hierarchy in found.items() if hierarchy is not None}
    plan = None
    if isinstance(policy.guarantee, DpGuarantee):
        assert policy.ledger is not None
        plan = mechanism(policy, complete)
        Ledger(policy.ledger.url).would_cost(**_cost(policy, plan, run_id, plan.digest(policy, complete)))
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


def engine_failure(error: Exception) -> EngineError:
    """Say what failed in Spark without its message, which may quote data."""
    condition = error.getCondition() if isinstance(error, PySparkException) else None
    return EngineError(f"Spark failed ({condition or type(error).__name__}); its own log has the details.")
