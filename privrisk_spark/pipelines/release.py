"""The order of stages of a release, and every Spark action of it.

read → (reserve) → encode → count → decide, or admit → recode → threshold → write → validate → vault → publish

Each stage is a function of frames in another module; what runs when, and what is written where, is only here.
A function that makes Spark work is named ``collect_``, ``measure_`` or ``write_`` and is called from nowhere else.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from pyspark.sql import DataFrame, SparkSession

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import Batches, Scratch, pinned, take_parts
from privrisk_spark.engine.sources import Wanted, scan
from privrisk_spark.engine.tuples import TupleParts
from privrisk_spark.errors import BudgetError, SchemaError
from privrisk_spark.hierarchies.builders import is_public
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.counting.consistent import Axis
from privrisk_spark.ledger.ledger import Ledger
from privrisk_spark.planning.as_published import AsPublished, as_published
from privrisk_spark.planning.counting import PlanChoice
from privrisk_spark.planning.dictionaries import axes
from privrisk_spark.planning.mechanism import Mechanism, cost_of, mechanism
from privrisk_spark.planning.problem import lattice_size, problem, search_of, takes_infinite
from privrisk_spark.planning.reuse import CELLS, published_cells
from privrisk_spark.policy.decisions import DisclosePerRecord
from privrisk_spark.policy.dictionaries import Table
from privrisk_spark.policy.policy import DpGuarantee, Policy
from privrisk_spark.results.release import Check, Guarantee, Report
from privrisk_spark.runs.keystore import destroy_key, pin_snapshot, release_key
from privrisk_spark.runs.places import Workplace, write_json, write_text
from privrisk_spark.runs.progress import Progress, write_status
from privrisk_spark.stages.counting.dense_sorted import SpreadVectors, StoredCounts, cell_space, collect_counts, plan_of
from privrisk_spark.stages.deciding.decide import Conclusion, Decide, collect_infeasible, conclude
from privrisk_spark.stages.deciding.gather import collect_decisions
from privrisk_spark.stages.diagnostics.diagnostics import Further, collect_findings
from privrisk_spark.stages.private import admission, sampling
from privrisk_spark.stages.private.as_published import Draws, collect_elements
from privrisk_spark.stages.publishing import contracts, documents, measure
from privrisk_spark.stages.publishing.files import (
    files_for,
    labelled,
    name_files,
    named_nodes,
    parquet_files,
    read_back,
    with_labels,
    write_csv,
    write_empty,
)
from privrisk_spark.stages.publishing.row_order import ordered
from privrisk_spark.stages.tables.facts import InputFacts
from privrisk_spark.stages.tables.links import collect_links
from privrisk_spark.stages.tables.materialize import collect_pinned
from privrisk_spark.stages.tables.opening import check_columns, check_dictionary, collect_hierarchies, read
from privrisk_spark.stages.tables.unknown_values import refuse_values, write_unknown_values

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
    spark: SparkSession,
    policy: Policy,
    *,
    run_id: str,
    date: dt.date,
    announce: Announce | None = None,
    table: DataFrame | None = None,
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
    table : DataFrame, optional
        Rows to release in place of the policy's table.

    Raises
    ------
    InputError
        Exit code 2: the policy or the data must be mended.
    RefusedError
        Exit code 1: a check or the budget forbids the release; nothing was published.
    EngineError
        Exit code 3: running again may help.
    """
    place = Workplace(Path(policy.places.path).resolve(), Path(policy.places.vault).resolve(), run_id)
    with place.held():
        done = place.published()
        if done is not None:
            _settle(policy, place)
            write_status(place.vault, run_id, phase="published", code=0, message=f"release at {place.target}")
            return Outcome(done, False, place)
        job = _Job(spark, policy, place, date, announce, table)
        by_kind = {"risk": job.release_by_risk, "dp": job.release_privately, "as-published": job.release_as_published}
        published = by_kind[policy.guarantee.kind]()
        write_status(place.vault, run_id, phase="published", code=0, message=f"release at {place.target}")
    return Outcome(published, True, place)


class _Job:
    """One run: the stages, in order."""

    def __init__(
        self,
        spark: SparkSession,
        policy: Policy,
        place: Workplace,
        date: dt.date,
        announce: Announce | None,
        given: DataFrame | None = None,
    ) -> None:
        self.spark, self.policy, self.place, self.given = spark, policy, place, given
        self.date, self.announce, self.files = date, announce, 1
        self.progress = Progress(place.vault, place.run_id, documents.stages(policy.guarantee))
        self.table: DataFrame
        self.staged: DataFrame
        self.members: DataFrame | None = None
        self.further: Further
        self.dictionaries: dict[str, DataFrame] = {}
        self.scratch = Scratch(spark, place.scratch)
        self.choices: dict[str, PlanChoice] = {}
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
            self._choose_plans()
            self._explain(None)
            stage.sentence = (
                f"Opened the table with {self.k} quasi-identifiers; a record's lattice has up to "
                f"{lattice_size(self.hierarchies):,} nodes."
            )
        with progress.stage("encode") as stage:
            encoded, facts, checks = self._encode(blocks=False)
            if not takes_infinite(task.search, policy):
                contracts.refuse_infinite(facts, task.search)
            linked = collect_links(self.scratch, encoded, self.further.links)
            stage.sentence = "Encoded every value as an integer code and checked the input contract."
            stage.parameters = {"rows": facts.rows, "nulls": facts.nulls, "suppressed_unknown_values": facts.unknown}
        with progress.stage("count") as stage:
            counted = self._count(encoded)
            stage.sentence = documents.counting_sentence(policy, self.choices)
            stage.parameters = {
                "plan": self.plan,
                "why": documents.plan_reasons(self.choices),
                "dictionary_rows": self._dictionary_rows(counted),
            }
            stage.status = "tested"
        with progress.stage("decide") as stage:
            method, _ = search_of(policy, self.hierarchies)
            rows, decide_chunk, rule = collect_decisions(self.scratch, encoded, task, counted, policy, self.hierarchies)
            tuples, measured = self._conclude(rows, decide_chunk, method)
            if measured.infeasible and decision.infeasible == "error":
                asked = {"k": self.k, "infeasible": measured.infeasible, "total": measured.rows}
                cells_asked = decision.cells if isinstance(decision, DisclosePerRecord) else None
                raise collect_infeasible(encoded, task, cells=cells_asked, **asked)
            stage.sentence = documents.decision_sentence(policy, task, self.hierarchies)
            stage.parameters = {"infeasible_records_suppressed": measured.infeasible}
            guarantee = documents.risk_guarantee(policy, measured, self.hierarchies, rule)
            stage.status = guarantee.status
            made = (self.scratch, encoded, task, policy, self.hierarchies)
            linkage, sections = collect_findings(
                *made, counted=counted, linked=linked, further=self.further, dictionaries=self.dictionaries
            )
        with progress.stage("write") as stage:
            files, released = self._write(tuples)
            stage.sentence = "Wrote the release to staging in a canonical order and read it back."
        with progress.stage("validate") as stage:
            classes = self._classes()
            rules, values = contracts.release_rules(policy, released)
            exact_rules, exact_values = contracts.decision_rules(policy, facts, measured, released, classes)
            checks += self._validate(rules + exact_rules, values | exact_values)
            stage.sentence = "Checked the release contract on the staged files."
        self._fill_vault("Moved decisions and exact measures to the vault.")
        sections += [rule.section] if rule is not None else []
        run = self._run(guarantee, checks)
        rows_of = self._dictionary_rows(counted)
        vault, public = documents.risk_reports(
            run, measured, released, dictionary_rows=rows_of, classes=classes, linkage=linkage, sections=sections
        )
        self._write_vault(vault, plan=self.plan, snapshot=facts.snapshot)
        contracts.refuse_failures(checks, fail_on=policy.checks.fail_on)
        return self._publish(run, public, files, released, {"rows_read": facts.rows})

    def _conclude(self, rows: Batches, decide_chunk: Decide, method: str) -> tuple[TupleParts, measure.DecisionFacts]:
        """Decide rows and write the vault's decisions; return TUPLES and the facts."""
        scratch, names = self.place.scratch, list(self.hierarchies)
        conclusion = Conclusion(
            decisions=self.scratch.directory("decision-parts"),
            tuples=self.scratch.directory("tuples"),
            members=self.scratch.directory("members"),
            record_id=self.policy.table.record_id or schemas.RECORD_ID,
            attributes=tuple(names),
            roots=tuple(hierarchy.root for hierarchy in self.hierarchies.values()),
            heights=tuple(hierarchy.height for hierarchy in self.hierarchies.values()),
            method=method,
            files=self.files,
            named=named_nodes(self.hierarchies) if self.policy.guarantee.kind == "risk" else (),
        )
        parts = self.scratch.collect_parts(conclude(rows, decide_chunk, conclusion))
        decisions = [part["name"] for part in parts] or [conclusion.write_nothing()]
        take_parts(Path(conclusion.decisions), decisions, scratch / "decisions")
        members = [part["members"] for part in parts if part["members"]]
        if members:
            self.members = pinned(self.spark, conclusion.members, members, schemas.members(rows.schema, self.k)).frame()
        kept = [part["tuples"] for part in parts if part["tuples"]]
        tuples = TupleParts(conclusion.tuples, tuple(kept), schemas.tuples(rows.schema, self.k))
        return tuples, measure.decision_facts(parts, self.hierarchies)

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
            if dp.mode == "public-dictionary":
                self._choose_plans()
            self._explain(plan)
            stage.sentence = f"Opened the table with {self.k} quasi-identifiers, all of which form the released tuple."
        with progress.stage("reserve") as stage:
            digest = plan.digest(policy, self.hierarchies)
            cost = cost_of(policy, plan, self.place.run_id, digest)
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
            keys = sampling.ReleaseKeys.derive(key, run_id=self.place.run_id, snapshot=facts.snapshot, mechanism=digest)
            stage.sentence = "Encoded every value as an integer code; values outside a hierarchy are suppressed."
            if policy.table.entity_id is not None:
                one_each = self.scratch.write_frame(sampling.one_row_each(encoded, keys), "persons")
                encoded = Batches.of_frame(one_each)
                stage.sentence += (
                    " Of each person one row was drawn, by a keyed function of the row; the rest is not used."
                )
        recoding = sampling.Recoding.of_policy(policy, self.hierarchies, self.axes, plan)
        theta: dict[str, Any] = {}
        if plan.choice is not None:
            with progress.stage("choose") as stage:
                chosen = admission.collect_choice(self.scratch, encoded, recoding, keys)
                recoding = replace(recoding, mechanism=chosen)
                theta["chosen_schemes"] = [list(scheme) for scheme in chosen.schemes]
                stage.sentence, stage.parameters = documents.choice_sentence(plan), dict(theta)
                stage.status = "proved"
        if dp.mode == "global":
            recode = sampling.full_domain(recoding, keys)
        else:
            with progress.stage("admit") as stage:
                admissible, found = self._admit(encoded, recoding, keys)
                theta |= found
                recode = sampling.drawing(recoding, admissible, keys)
                stage.sentence = documents.admission_sentence(plan)
                said = {name: value for name, value in found.items() if name != "admitted"}
                stage.parameters = {"plan": self.plan, **said} if self.choices else said
                stage.status = "proved"
        with progress.stage("recode") as stage:
            tuples, exact = self._conclude(encoded, recode, dp.mode)
            stage.sentence = documents.recoding_sentence(plan)
            stage.status = "proved"
        with progress.stage("threshold") as stage:
            most = policy.counting.sorted_vectors
            crowds = sampling.crowd_histogram(tuples.frame(self.spark), k=self.k, crowd=plan.crowd)
            nodes, sizes = sampling.collect_histogram(self.scratch, crowds, k=self.k, most=most)
            files, released = self._write_histogram(nodes, sizes)
            stage.sentence = (
                f"Dropped every released tuple with fewer than k = {plan.crowd} rows and wrote the release from the "
                "remaining histogram alone."
            )
            stage.parameters = {"released_rows": released.rows, "released_tuples": released.classes}
            stage.status = "proved"
        with progress.stage("validate") as stage:
            rules, values = contracts.release_rules(policy, released)
            rules.append(
                contracts.Rule("crowd", f"every released tuple has at least k = {plan.crowd} rows", float(plan.crowd))
            )
            values["crowd"] = released.min_class_size if released.rows else plan.crowd
            checks += self._validate(rules, values)
            stage.sentence = "Checked the release contract on the staged files; it reads nothing but the release."
        self._fill_vault("Moved the drawn generalizations to the vault.")
        run = self._run(documents.dp_guarantee(plan), checks)
        levels = documents.tuple_levels(self.hierarchies, list(nodes.T), sizes)
        vault, public = documents.drawn_reports(run, plan, exact, released, sampled=exact.sampled, levels=levels)
        self._write_vault(
            vault,
            plan=self.plan if self.choices else dp.mode if dp.mode == "global" else "admission",
            snapshot=facts.snapshot,
        )
        contracts.refuse_failures(checks, fail_on=policy.checks.fail_on)
        with progress.stage("publish") as stage:
            # Costs nothing for a run that is still reserved, and refuses one that was voided meanwhile.
            Ledger(ledger.url).reserve(**cost)
            published = self._publish(run, public, files, released, theta)
            _settle(policy, self.place)
            stage.sentence = "Published, committed the ledger and destroyed the key."
        return published

    def _admit(
        self, encoded: Batches, recoding: sampling.Recoding, keys: sampling.ReleaseKeys
    ) -> tuple[sampling.Admissible, dict[str, Any]]:
        """Admit cells; return them and what the manifest says of them."""
        if not self.choices:
            reused = recoding.mechanism.reused
            if reused is not None:
                admitted = admission.admitted_before(reused, recoding)
                return admitted, {"admitted_cells": admitted.sizes}
            file = self.place.staging / CELLS
            admitted = admission.collect_admitted(self.scratch, encoded, recoding, keys, file=file)
            published = published_cells(file, self.policy, self.hierarchies, recoding.mechanism.schemes)
            return admitted, {"admitted_cells": admitted.sizes, "admitted": published}
        (counts,) = self._count(encoded)
        said = {"dictionary_rows": counts.dictionary_rows}
        if isinstance(counts, StoredCounts):
            return sampling.PublicCounts(counts), said
        most, space = self.policy.counting.sorted_vectors, cell_space(counts, self.policy, self.hierarchies)
        return admission.collect_frequent(self.scratch, counts, space, recoding, most=most), said

    # ----------------------------------------------------------- as published

    def release_as_published(self) -> dict[str, Any]:
        """Algorithm 6 or 7 of F12, for comparison: no guarantee, and nothing is charged."""
        policy, progress, place = self.policy, self.progress, self.place
        with progress.stage("read") as stage:
            self._open()
            plan = as_published(policy, self.hierarchies)
            self._choose_plans()
            self._explain(plan)
            stage.sentence = f"Opened the table with {self.k} quasi-identifiers, all of which form the released tuple."
        with progress.stage("encode") as stage:
            key = release_key(place.vault, place.run_id, reference=plan.policy.key)
            encoded, facts, checks = self._encode(blocks=True)
            pin_snapshot(place.vault, place.run_id, facts.snapshot)
            draws = Draws.of_policy(
                policy, self.hierarchies, self.axes, plan, key=key, run_id=place.run_id, facts=facts
            )
            stage.sentence = "Encoded every value as an integer code; values outside a hierarchy are suppressed."
        with progress.stage("count") as stage:
            (counts,) = self._count(encoded)
            elements = collect_elements(self.scratch, counts, policy, self.hierarchies, least=draws.least_counted)
            stage.sentence = (
                "Drew t between theta0 |D| and |D|, and counted the t-frequent elements in the table itself."
            )
        with progress.stage("draw") as stage:
            tuples, exact = self._conclude(encoded, draws.drawing(elements), "as-published")
            stage.sentence, stage.status = plan.sentence, "heuristic"
        with progress.stage("write") as stage:
            most = policy.counting.sorted_vectors
            whole = sampling.crowd_histogram(tuples.frame(self.spark), k=self.k, crowd=1)
            nodes, sizes = sampling.collect_histogram(self.scratch, whole, k=self.k, most=most)
            roots = np.array([hierarchy.root for hierarchy in self.hierarchies.values()], dtype=np.int32)
            nodes, sizes = np.vstack([nodes, roots]), np.append(sizes, 1)
            files, released = self._write_histogram(nodes, sizes)
            stage.sentence = "Wrote the release to staging in a canonical order and read it back."
        with progress.stage("validate") as stage:
            checks += self._validate(*contracts.release_rules(policy, released))
            stage.sentence = "Checked the release contract on the staged files."
        self._fill_vault("Moved the drawn generalizations to the vault.")
        run = self._run(plan.guarantee, checks)
        levels = documents.tuple_levels(self.hierarchies, list(nodes.T), sizes)
        vault, public = documents.drawn_reports(run, None, exact, released, sampled=exact.sampled, levels=levels)
        self._write_vault(vault, plan=self.plan, snapshot=facts.snapshot)
        contracts.refuse_failures(checks, fail_on=policy.checks.fail_on)
        published = self._publish(run, public, files, released, {})
        _settle(policy, place)
        return published

    # --------------------------------------------------------------- all kinds

    def _open(self) -> None:
        """Open the sources and build the hierarchies, which reads the table only where leaves come from the data."""
        policy = self.policy
        self.table = read(self.spark, policy.table, key="table") if self.given is None else self.given
        check_columns(self.table, policy)
        for one in policy.dictionaries:
            if one.table is not None:
                self.dictionaries[one.name] = read(self.spark, one.table, key=one.key)
                check_dictionary(self.dictionaries[one.name], one.table, key=one.key)
        if not all(is_public(spec.hierarchy) for spec in policy.quasi_identifiers.values()) and self.table.isEmpty():
            raise SchemaError("table: it has no rows, and hierarchies whose leaves come from the data have none then.")
        self.further = Further.opened(self.spark, policy, self.dictionaries)
        known = [(one.table, self.dictionaries[one.name]) for one in policy.dictionaries if one.table is not None]
        self.hierarchies = collect_hierarchies(policy, self.table, [*known, *self.further.dictionaries])
        self.axes = axes(policy, self.hierarchies)

    def _choose_plans(self) -> None:
        """Choose the plan of each dictionary; its rows are counted only if somebody wants to read the plan."""
        policy = self.policy
        for one in policy.dictionaries:
            choice = plan_of(policy, self.hierarchies, one)
            if choice.plan != "dense" and self.announce is not None:
                frame = self.table if one.table is None else self.dictionaries[one.name]
                choice = plan_of(policy, self.hierarchies, one, rows=frame.count())
            self.choices[one.name] = choice

    def _explain(self, plan: Mechanism | AsPublished | None) -> None:
        if self.announce is not None:
            self.announce(documents.explanation(self.policy, self.hierarchies, self.choices, plan))

    @property
    def plan(self) -> str:
        """Plan of the dictionary, or of each."""
        plans = {name: choice.plan for name, choice in self.choices.items()}
        return (
            ", ".join(f"{name}: {plan}" for name, plan in plans.items())
            if len(plans) > 1
            else next(iter(plans.values()))
        )

    def _count(self, encoded: Batches) -> list[StoredCounts | SpreadVectors]:
        """Count every dictionary by its plan."""
        counted = []
        for one in self.policy.dictionaries:
            self.choices[one.name], counts = collect_counts(
                self.scratch,
                encoded,
                self.dictionaries.get(one.name),
                self.policy,
                self.hierarchies,
                one,
                self.choices[one.name],
            )
            counted.append(counts)
        return counted

    def _dictionary_rows(self, counted: Sequence[StoredCounts | SpreadVectors]) -> int | dict[str, int]:
        rows = {one.name: counts.dictionary_rows for one, counts in zip(self.policy.dictionaries, counted, strict=True)}
        return rows if len(rows) > 1 else next(iter(rows.values()))

    def _encode(self, *, blocks: bool) -> tuple[Batches, InputFacts, list[Check]]:
        """Pin the table as codes, measure it, and hold it against the input contract."""
        policy = self.policy
        found = collect_pinned(self.scratch, self.table, policy, self.hierarchies, blocks=blocks)
        facts = found.facts
        if policy.guarantee.kind != "dp" and not facts.rows:
            raise SchemaError("table: it has no rows.")
        if policy.guarantee.kind == "risk":
            self.files = files_for(policy.places, facts.rows)
            refuse_values(policy, facts, self._set_aside, listed_in=self.place.vault / "unknown_values")
        rules, values = contracts.input_rules(policy, facts)
        checks = contracts.validate(
            "input", facts=values, rules=rules, frame=self.table, columns=list(policy.columns), vault=self.place.vault
        )
        contracts.refuse_failures(checks, fail_on=policy.checks.fail_on)
        return found.encoded, facts, checks

    def _set_aside(self, name: str) -> int:
        """List the values outside a hierarchy in the vault; return how many there are."""
        directory = self.place.scratch / "unknown_values"
        values = write_unknown_values(self.table, name, self.hierarchies[name], directory)
        self.place.swap_into_vault(directory, "unknown_values")
        return values

    def _classes(self) -> measure.ClassFacts | None:
        """Write the released classes with their persons and weighted population for the vault, and measure them."""
        if self.members is None:
            return None
        classes = self.scratch.write_frame(measure.released_classes(self.members, k=self.k), "class_nodes")
        with_labels(classes, self.hierarchies).write.parquet(str(self.place.scratch / "classes"))
        return measure.measure_classes(classes)

    def _write(self, tuples: TupleParts) -> tuple[list[dict[str, Any]], measure.ReleaseFacts]:
        """Write the release to staging and measure it from its files."""
        output, written, data = self.policy.places, self.place.parts, self.place.staging / "data"
        release = labelled(ordered(self.spark, tuples, files=self.files), self.policy, self.hierarchies)
        if output.format == "csv":
            write_csv(release, written)
            names = sorted(path.name for path in written.glob("part-*.csv"))
        else:
            written.mkdir()
            parts = self.scratch.collect_parts(parquet_files(release, str(written)))
            names = [part["name"] for part in sorted(parts, key=lambda part: int(part["file"]))]
            names = names or [write_empty(release, written)]
        files = name_files(written, names, data, output.format)
        self.staged = read_back(self.spark, output, data)
        wanted = [Wanted(f"a{i}", name, "text") for i, name in enumerate(self.hierarchies)]
        opened = scan(Table(path=str(data), format=output.format), self.staged, wanted)
        labels = {name: hierarchy.labels for name, hierarchy in self.hierarchies.items()}
        return files, measure.measure_release(self.scratch, opened, labels)

    def _write_histogram(
        self, nodes: npt.NDArray[np.int32], sizes: npt.NDArray[np.int64]
    ) -> tuple[list[dict[str, Any]], measure.ReleaseFacts]:
        """Write the release from the materialized tuples alone."""
        self.files = files_for(self.policy.places, int(sizes.sum()))
        named = np.column_stack([of[nodes[:, i]] for i, of in enumerate(named_nodes(self.hierarchies))])
        return self._write(TupleParts.of_vectors(self.scratch.directory("crowds"), named, sizes, files=self.files))

    def _fill_vault(self, sentence: str) -> None:
        with self.progress.stage("vault") as stage:
            self.place.swap_into_vault(self.place.scratch / "decisions", "decisions")
            self.place.swap_into_vault(self.place.scratch / "classes", "classes")
            stage.sentence = sentence

    def _validate(self, rules: list[contracts.Rule], values: Mapping[str, float | int]) -> list[Check]:
        policy = self.policy
        names = [name for name in policy.columns if name in self.hierarchies or name in policy.kept_columns]
        return contracts.validate(
            "release", facts=values, rules=rules, frame=self.staged, columns=names, vault=self.place.vault
        )

    def _run(self, guarantee: Guarantee, checks: list[Check]) -> documents.Run:
        return documents.Run(
            self.policy,
            self.hierarchies,
            self.place.run_id,
            self.date.isoformat(),
            guarantee,
            tuple(self.progress.records),
            tuple(checks),
        )

    def _write_vault(self, report: Report, *, plan: str, snapshot: str) -> None:
        vault = self.place.vault
        write_json(vault / "checks.json", [check.to_dict() for check in report.checks])
        write_text(vault / "report.html", render(report))
        write_json(
            vault / "summary.json",
            documents.summary(self.policy, report, plan=plan, snapshot=snapshot, seconds=self.progress.seconds),
        )

    def _publish(
        self,
        run: documents.Run,
        public: Report,
        files: list[dict[str, Any]],
        released: measure.ReleaseFacts,
        more: Mapping[str, Any],
    ) -> dict[str, Any]:
        staging = self.place.staging
        write_json(staging / "checks.json", [check.to_dict() for check in public.checks])
        write_json(staging / "dictionary.json", {"columns": documents.data_dictionary(self.policy, self.hierarchies)})
        write_text(staging / "report.html", render(public))
        return self.place.commit(documents.manifest(run, public, released, files=files, more=more))


def render(report: Report) -> str:
    """Page of a report; the packages that draw its charts are not imported before, so that tasks start sooner."""
    from privrisk_spark.reporting.report import render as page

    return page(report)


def _settle(policy: Policy, place: Workplace) -> None:
    """After publication: commit the ledger, if there is one, then destroy the key; safe to repeat."""
    if policy.guarantee.kind == "risk":
        return
    if policy.ledger is not None:
        ledger = Ledger(policy.ledger.url)
        states = {run.run_id: run.state for run in ledger.balance(policy.ledger.lineage).runs}
        if states.get(place.run_id) == "reserved":
            ledger.commit(lineage=policy.ledger.lineage, run_id=place.run_id, snapshot=place.recorded_snapshot())
    destroy_key(place.vault, place.run_id)
