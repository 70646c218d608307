"""A differentially private release.

read → reserve → encode → (choose) → (admit) → recode → threshold → validate → vault → publish

The schemes are chosen in the mode ``global``, or where some are peeled; cells are admitted in every other mode. Of the
table only its schema is read before the budget is reserved.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from privrisk_spark.engine.counts import StoredCounts, cell_space
from privrisk_spark.engine.decided import Decide
from privrisk_spark.ledger.administration import ledger_of
from privrisk_spark.ledger.calibrated import Calibrated, Choosing, OneScheme, PublicCells, ReusedCells
from privrisk_spark.ledger.charge import Charge
from privrisk_spark.ledger.records import Reservation
from privrisk_spark.pipelines.release.encoded import Encoded, count_dictionaries, encode_table
from privrisk_spark.pipelines.release.opened import Opened, announce_plan, choose_plans, list_files, open_run
from privrisk_spark.pipelines.release.published import (
    charge_of,
    fill_vault,
    record_of,
    stage_documents,
    write_vault_report,
)
from privrisk_spark.pipelines.release.written import (
    Decided,
    Histogram,
    Written,
    conclude_rows,
    validate_release,
    write_histogram,
)
from privrisk_spark.pipelines.run import ReleaseRun
from privrisk_spark.planning.calibration import mechanism
from privrisk_spark.planning.cost import cost_of
from privrisk_spark.planning.request import FRAME
from privrisk_spark.planning.reuse import CELLS, Reused, published_cells
from privrisk_spark.policy.private import DpGuarantee, ReusingDp
from privrisk_spark.reporting.budget import budget_section
from privrisk_spark.reporting.models.private import (
    admission_sentence,
    choice_sentence,
    dp_guarantee,
    recoding_sentence,
    row_needs,
    row_weight,
)
from privrisk_spark.reporting.release_reports import RunRecord, drawn_reports, tuple_levels
from privrisk_spark.results.contract import FactRule
from privrisk_spark.results.release import Check, Report
from privrisk_spark.runs.sealing import release_digest
from privrisk_spark.stages.counting.shuffle_iceberg import collect_frequent_cells
from privrisk_spark.stages.private import admission, crowds, release_keys, sampling
from privrisk_spark.stages.publishing import contracts


def release_privately(run: ReleaseRun) -> dict[str, Any]:
    """Draw every row's disclosure under differential privacy, and publish; returns the manifest."""
    opened, plan = read(run)
    reserved = reserve(run, opened, plan)
    encoded, keys = encode(run, opened, reserved)
    recoding = sampling.Recoding.of_policy(run.policy, opened.hierarchies, opened.axes, plan)
    chosen: dict[str, Any] = {}
    if isinstance(plan, Choosing):
        recoding, chosen = choose(run, plan, encoded, recoding, keys)
    if isinstance(plan, OneScheme):
        drawing = Drawing(sampling.full_domain(recoding, keys), {}, "global")
    else:
        drawing = admit(run, opened, plan, encoded, recoding, keys)
    drawn = recode(run, opened, plan, encoded, drawing)
    histogram = threshold(run, opened, plan, drawn)
    checks = validate(run, opened, plan, encoded, histogram.written)
    fill_vault(run, "Moved the drawn generalizations to the vault.")
    record = record_of(run, opened, dp_guarantee(plan, ledger_of(run.policy).accounting), checks)
    vault, public = drawn_reports(
        record,
        drawn.facts,
        histogram.written.facts,
        sampled=drawn.facts.sampled,
        levels=tuple_levels(opened.hierarchies, list(histogram.nodes.T), histogram.sizes),
        sections=(budget_section(reserved.made),),
        needed=row_needs(plan),
        weight=row_weight(plan),
    )
    write_vault_report(run, vault, plan=drawing.counted_by, snapshot=encoded.facts.snapshot, read=encoded.read)
    contracts.refuse_failures(checks, fail_on=run.policy.checks.fail_on)
    return publish_and_settle(run, opened, reserved, record, public, histogram.written, chosen | drawing.stated)


def read(run: ReleaseRun) -> tuple[Opened, Calibrated]:
    """Stage: open the sources, of the table only its schema, and plan the mechanism."""
    policy = run.policy
    with run.progress.stage("read") as stage:
        # Refuses what no data can mend before a source is opened.
        mechanism(policy)
        opened = open_run(run.spark, run.policy, run.table)
        plan = mechanism(policy, opened.hierarchies)
        if isinstance(plan, PublicCells):
            opened = choose_plans(run, opened)
        announce_plan(run, opened, plan)
        stage.sentence = f"Opened the table with {opened.k} quasi-identifiers, all of which form the released tuple."
    return opened, plan


@dataclass(frozen=True, eq=False)
class Reserved:
    """Budget set aside in the ledger, and the secret that was made after it.

    Attributes
    ----------
    digest : str
        Of the mechanism.
    key : bytes
        Secret of the run.
    made : Reservation
        What the ledger answered.
    """

    charge: Charge
    digest: str
    key: bytes
    made: Reservation


def reserve(run: ReleaseRun, opened: Opened, plan: Calibrated) -> Reserved:
    """Stage: reserve the budget, make the key, and have the ledger hold the run to it before anything is read.

    Raises
    ------
    BudgetError
        If the budget does not suffice, or the run was begun with another key, or for another place.
    """
    policy, place = run.policy, run.place
    with run.progress.stage("reserve") as stage:
        digest = plan.digest(policy, opened.hierarchies)
        files = list_files(policy, opened.sources)
        request = cost_of(policy, plan, place.run_id, digest, date=run.date, files=files)
        charge = charge_of(policy, place, request)
        made = charge.reserve()
        key = charge.begin(made)
        stage.sentence = (
            f"Reserved epsilon {plan.epsilon} and delta {plan.delta} in the ledger before making a key, and bound the "
            "run to key and place."
        )
    return Reserved(charge, digest, key, made)


def encode(run: ReleaseRun, opened: Opened, reserved: Reserved) -> tuple[Encoded, release_keys.ReleaseKeys]:
    """Stage: the table as codes, one row a person, and the keys of this content."""
    place = run.place
    with run.progress.stage("encode") as stage:
        encoded = encode_table(run, opened, blocks=True)
        snapshot = encoded.facts.snapshot
        reserved.charge.pin(snapshot)
        keys = release_keys.ReleaseKeys.derive(
            reserved.key, run_id=place.run_id, snapshot=snapshot, mechanism=reserved.digest
        )
        stage.sentence = "Encoded every value as an integer code; values outside a hierarchy are suppressed."
        encoded = replace(encoded, rows=release_keys.collect_one_row_each(run.scratch, encoded.rows, keys))
        if run.policy.table.entity_id is not None:
            stage.sentence += " Of each person one row was drawn, by a keyed function of the row; the rest is not used."
    return encoded, keys


def choose(
    run: ReleaseRun, plan: Choosing, encoded: Encoded, recoding: sampling.Recoding, keys: release_keys.ReleaseKeys
) -> tuple[sampling.Recoding, dict[str, Any]]:
    """Stage: draw the schemes; returns the recoding by them, and what the manifest states of them."""
    with run.progress.stage("choose") as stage:
        chosen = admission.collect_choice(run.scratch, encoded.rows, recoding, keys)
        stated = {"chosen_schemes": [list(scheme) for scheme in chosen.schemes]}
        stage.sentence, stage.parameters = choice_sentence(plan), dict(stated)
        stage.status = "proved"
    return replace(recoding, mechanism=chosen), stated


@dataclass(frozen=True, eq=False)
class Drawing:
    """How each row's disclosure is drawn.

    Attributes
    ----------
    stated : dict
        What the manifest states of the admitted cells.
    counted_by : str
        Plan of a public dictionary, or what took its place; for the vault.
    """

    recode: Decide
    stated: dict[str, Any]
    counted_by: str


def admit(
    run: ReleaseRun,
    opened: Opened,
    plan: Calibrated,
    encoded: Encoded,
    recoding: sampling.Recoding,
    keys: release_keys.ReleaseKeys,
) -> Drawing:
    """Stage: admit cells by a public dictionary, an earlier release or noisy counts; rows are drawn among them."""
    with run.progress.stage("admit") as stage:
        if opened.choices:
            admitted = _by_public_dictionary(run, opened, encoded, recoding)
        else:
            admitted = _by_noisy_counts(run, opened, encoded, recoding, keys)
        drawing = Drawing(sampling.drawing(recoding, admitted.cells, keys), admitted.stated, admitted.counted_by)
        stage.sentence = admission_sentence(plan)
        stage.parameters = {name: value for name, value in admitted.stated.items() if name != "admitted"}
        if opened.choices:
            stage.parameters = {"plan": admitted.counted_by, **stage.parameters}
        stage.status = "proved"
    return drawing


@dataclass(frozen=True, eq=False)
class Admitted:
    """Cells a record may be released as.

    Attributes
    ----------
    stated : dict
        What the manifest states of them.
    counted_by : str
        As :class:`Drawing` has it.
    """

    cells: sampling.Admissible
    stated: dict[str, Any]
    counted_by: str


def _by_public_dictionary(run: ReleaseRun, opened: Opened, encoded: Encoded, recoding: sampling.Recoding) -> Admitted:
    """Count the public dictionary, which may be known to everybody."""
    counted = count_dictionaries(run, opened, encoded.rows)
    (counts,) = counted.counts
    stated = {"dictionary_rows": counts.dictionary_rows}
    if isinstance(counts, StoredCounts):
        return Admitted(sampling.PublicCounts(counts), stated, counted.plan)
    most, mechanism = run.policy.counting.sorted_vectors, recoding.mechanism
    space = cell_space(counts, run.policy, opened.hierarchies).within(np.array(mechanism.schemes))
    space, cells = collect_frequent_cells(run.scratch, counts, space, mechanism.frequent)
    frequent = sampling.FrequentCells.collect_cells(cells, space, most=most)
    return Admitted(frequent, stated, counted.plan)


def _by_noisy_counts(
    run: ReleaseRun, opened: Opened, encoded: Encoded, recoding: sampling.Recoding, keys: release_keys.ReleaseKeys
) -> Admitted:
    """Admit cells by noisy counts of the table, or take those that an earlier release admitted."""
    plan, asked = recoding.mechanism, run.policy.guarantee
    if isinstance(plan, ReusedCells) and isinstance(asked, ReusingDp):
        cells = admission.admitted_before(Reused.read(asked.reuse, planned=plan.reuse), recoding)
        return Admitted(cells, {"admitted_cells": cells.sizes}, "admission")
    file = run.place.staging / CELLS
    cells = admission.collect_admitted(run.scratch, encoded.rows, recoding, keys, file=file)
    published = published_cells(file, run.policy, opened.hierarchies, recoding.mechanism.schemes)
    return Admitted(cells, {"admitted_cells": cells.sizes, "admitted": published}, "admission")


def recode(run: ReleaseRun, opened: Opened, plan: Calibrated, encoded: Encoded, drawing: Drawing) -> Decided:
    """Stage: draw each row's disclosure, and whether it is kept."""
    asked = run.policy.guarantee
    assert isinstance(asked, DpGuarantee)
    with run.progress.stage("recode") as stage:
        drawn = conclude_rows(run, opened, encoded.rows, drawing.recode, method=asked.mode)
        stage.sentence = recoding_sentence(plan)
        stage.status = "proved"
    return drawn


def threshold(run: ReleaseRun, opened: Opened, plan: Calibrated, drawn: Decided) -> Histogram:
    """Stage: drop tuples with too few rows, and write the release from the rest."""
    with run.progress.stage("threshold") as stage:
        kept = crowds.crowd_histogram(drawn.tuples.frame(run.spark), k=opened.k, crowd=plan.crowd)
        most = run.policy.counting.sorted_vectors
        nodes, sizes = crowds.collect_histogram(run.scratch, kept, k=opened.k, most=most)
        histogram = write_histogram(run, opened, nodes, sizes)
        stage.sentence = (
            f"Dropped every released tuple with fewer than k = {plan.crowd} rows and wrote the release from the "
            "remaining histogram alone."
        )
        released = histogram.written.facts
        stage.parameters = {"released_rows": released.rows, "released_tuples": released.classes}
        stage.status = "proved"
    return histogram


def validate(
    run: ReleaseRun, opened: Opened, plan: Calibrated, encoded: Encoded, written: Written
) -> tuple[Check, ...]:
    """Stage: hold the staged files against the release contract; returns the checks of the input and of the release."""
    with run.progress.stage("validate") as stage:
        rules, values = contracts.release_rules(run.policy, written.facts, written.label_rows)
        rules.append(FactRule("crowd", f"every released tuple has at least k = {plan.crowd} rows", float(plan.crowd)))
        values["crowd"] = written.facts.min_class_size if written.facts.rows else plan.crowd
        checks = validate_release(run, opened, written, rules, values)
        stage.sentence = "Checked the release contract on the staged files; it reads nothing but the release."
    return (*encoded.checks, *checks)


def publish_and_settle(
    run: ReleaseRun,
    opened: Opened,
    reserved: Reserved,
    record: RunRecord,
    public: Report,
    written: Written,
    more: Mapping[str, Any],
) -> dict[str, Any]:
    """Stage: commit the ledger to the release, publish it, then destroy the key."""
    with run.progress.stage("publish") as stage:
        # Which releases add up: whoever holds two of them must be able to tell, and a ledger that is lost.
        of = {"lineage": ledger_of(run.policy).lineage}
        manifest = stage_documents(run, opened, record, public, written, of | dict(more))
        if run.frame_digest is not None:
            # In the vault only: the ledger commits to what was drawn from, and the manifest states nothing of it.
            run.place.record_request({FRAME: run.frame_digest})
        published = reserved.charge.publish(release_digest(manifest), lambda: run.place.commit(manifest))
        stage.sentence = "Committed the ledger, published and destroyed the key."
    return published
