"""A release by Algorithm 6 or 7 of F12, for comparison: no guarantee, and nothing is charged.

read → encode → count → draw → write → validate → vault, and it is published.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from privrisk_spark.engine.counts import SpreadVectors, StoredCounts, cell_space
from privrisk_spark.pipelines.release.encoded import Counted, Encoded, count_dictionaries, encode_table
from privrisk_spark.pipelines.release.opened import Opened, announce_plan, choose_plans, open_run
from privrisk_spark.pipelines.release.published import fill_vault, publish, record_of, write_vault_report
from privrisk_spark.pipelines.release.written import (
    Decided,
    Histogram,
    Written,
    conclude_rows,
    validate_release,
    write_histogram,
)
from privrisk_spark.pipelines.run import ReleaseRun
from privrisk_spark.planning.as_published import AsPublished, as_published
from privrisk_spark.reporting.release_reports import drawn_reports, tuple_levels
from privrisk_spark.results.release import Check
from privrisk_spark.runs.keystore import destroy_key, pin_snapshot, release_key
from privrisk_spark.stages.counting.shuffle_iceberg import collect_frequent_cells
from privrisk_spark.stages.private import crowds
from privrisk_spark.stages.private.as_published import Draws, Elements
from privrisk_spark.stages.private.sampling import FrequentCells
from privrisk_spark.stages.publishing import contracts


def release_as_published(run: ReleaseRun) -> dict[str, Any]:
    """Draw every row's disclosure as the source writes it, and publish; returns the manifest."""
    opened, plan = read(run)
    encoded, draws = encode(run, opened, plan)
    counted, elements = count(run, opened, encoded, draws)
    drawn = draw(run, opened, plan, encoded, draws, elements)
    histogram = write(run, opened, drawn)
    checks = validate(run, opened, encoded, histogram.written)
    fill_vault(run, "Moved the drawn generalizations to the vault.")
    record = record_of(run, opened, plan.guarantee, checks)
    vault, public = drawn_reports(
        record,
        drawn.facts,
        histogram.written.facts,
        sampled=drawn.facts.sampled,
        levels=tuple_levels(opened.hierarchies, list(histogram.nodes.T), histogram.sizes),
    )
    write_vault_report(run, vault, plan=counted.plan, snapshot=encoded.facts.snapshot, read=encoded.read)
    contracts.refuse_failures(checks, fail_on=run.policy.checks.fail_on)
    published = publish(run, opened, record, public, histogram.written, {})
    destroy_key(run.place.vault.keys, run.place.run_id)
    return published


def read(run: ReleaseRun) -> tuple[Opened, AsPublished]:
    """Stage: open the sources, and plan what is drawn."""
    with run.progress.stage("read") as stage:
        opened = open_run(run.spark, run.policy, run.table)
        plan = as_published(run.policy, opened.hierarchies)
        opened = choose_plans(run, opened)
        announce_plan(run, opened, plan)
        stage.sentence = f"Opened the table with {opened.k} quasi-identifiers, all of which form the released tuple."
    return opened, plan


def encode(run: ReleaseRun, opened: Opened, plan: AsPublished) -> tuple[Encoded, Draws]:
    """Stage: the table as codes, and what is drawn by a key of this content."""
    place = run.place
    with run.progress.stage("encode") as stage:
        key = release_key(place.vault.keys, place.run_id, reference=plan.policy.key)
        encoded = encode_table(run, opened, blocks=True)
        pin_snapshot(place.vault.keys, place.run_id, encoded.facts.snapshot)
        draws = Draws.of_policy(
            run.policy, opened.hierarchies, opened.axes, plan, key=key, run_id=place.run_id, facts=encoded.facts
        )
        stage.sentence = "Encoded every value as an integer code; values outside a hierarchy are suppressed."
    return encoded, draws


def count(run: ReleaseRun, opened: Opened, encoded: Encoded, draws: Draws) -> tuple[Counted, Elements]:
    """Stage: count the table itself, and collect its frequent elements."""
    with run.progress.stage("count") as stage:
        counted = count_dictionaries(run, opened, encoded.rows)
        (counts,) = counted.counts
        elements = _frequent_elements(run, opened, counts, least=draws.least_counted)
        stage.sentence = "Drew t between theta0 |D| and |D|, and counted the t-frequent elements in the table itself."
    return counted, elements


def _frequent_elements(
    run: ReleaseRun, opened: Opened, counts: StoredCounts | SpreadVectors, *, least: int
) -> StoredCounts | FrequentCells:
    """Find the elements with at least that many rows (step 3 of Algorithm 6), unless all are counted already."""
    if isinstance(counts, StoredCounts):
        return counts
    space = cell_space(counts, run.policy, opened.hierarchies)
    space, cells = collect_frequent_cells(run.scratch, counts, space, least)
    return FrequentCells.collect_cells(cells, space, most=run.policy.counting.sorted_vectors)


def draw(
    run: ReleaseRun, opened: Opened, plan: AsPublished, encoded: Encoded, draws: Draws, elements: Elements
) -> Decided:
    """Stage: draw each row's disclosure among the frequent elements."""
    with run.progress.stage("draw") as stage:
        drawn = conclude_rows(run, opened, encoded.rows, draws.drawing(elements), method="as-published")
        stage.sentence, stage.status = plan.sentence, "heuristic"
    return drawn


def write(run: ReleaseRun, opened: Opened, drawn: Decided) -> Histogram:
    """Stage: write the release from its tuples, and a row that discloses nothing, which the algorithms add."""
    with run.progress.stage("write") as stage:
        whole = crowds.crowd_histogram(drawn.tuples.frame(run.spark), k=opened.k, crowd=1)
        most = run.policy.counting.sorted_vectors
        nodes, sizes = crowds.collect_histogram(run.scratch, whole, k=opened.k, most=most)
        roots = np.array([hierarchy.root for hierarchy in opened.hierarchies.values()], dtype=np.int32)
        nodes, sizes = np.vstack([nodes, roots]), np.append(sizes, 1)
        histogram = write_histogram(run, opened, nodes, sizes)
        stage.sentence = "Wrote the release to staging in a canonical order and read it back."
    return histogram


def validate(run: ReleaseRun, opened: Opened, encoded: Encoded, written: Written) -> tuple[Check, ...]:
    """Stage: hold the staged files against the release contract; returns the checks of the input and of the release."""
    with run.progress.stage("validate") as stage:
        rules, values = contracts.release_rules(run.policy, written.facts, written.label_rows)
        checks = validate_release(run, opened, written, rules, values)
        stage.sentence = "Checked the release contract on the staged files."
    return (*encoded.checks, *checks)
