"""A masked release: columns are changed as each of them says, and nothing is guaranteed.

read → encode → learn → mask → write → validate → vault, and it is published.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses
from pyspark.sql.types import StructType

from privrisk_spark.engine import schemas
from privrisk_spark.engine.fingerprints import collect_frame_digest
from privrisk_spark.engine.schemas import doubles
from privrisk_spark.extensions.perturb.page import (
    masked_guarantee,
    masked_reports,
    masking_explanation,
    masking_section,
    masking_sentence,
    unchanged_warnings,
)
from privrisk_spark.extensions.perturb.planning import MaskPlan, in_blocks, key_reference, mask_plan
from privrisk_spark.extensions.perturb.results import MaskingFacts
from privrisk_spark.extensions.perturb.stages.arranging import collect_arrangement
from privrisk_spark.extensions.perturb.stages.contracts import masked_rules
from privrisk_spark.extensions.perturb.stages.held import Held, collect_held
from privrisk_spark.extensions.perturb.stages.keys import MaskKeys
from privrisk_spark.extensions.perturb.stages.masked import (
    PERCENT,
    MaskedRows,
    bounds_of,
    collect_masked,
    masking_facts,
)
from privrisk_spark.extensions.perturb.stages.numbers import check_types
from privrisk_spark.extensions.perturb.stages.solving import collect_solved, measure_block_loss
from privrisk_spark.kernels.measures.interval_disclosure import IntervalTally
from privrisk_spark.pipelines.release.encoded import Encoded, encode_table
from privrisk_spark.pipelines.release.opened import Opened, open_run
from privrisk_spark.pipelines.release.published import fill_vault, publish, record_of, write_vault_report
from privrisk_spark.pipelines.release.written import Written, validate_release, write_release
from privrisk_spark.pipelines.run import ReleaseRun
from privrisk_spark.policy.masking import TopBottom
from privrisk_spark.policy.policy import Policy
from privrisk_spark.reporting.kept_columns import uniqueness_warnings
from privrisk_spark.results.release import Check
from privrisk_spark.runs.keystore import destroy_key, pin_snapshot, release_key
from privrisk_spark.runs.progress import LOGGER
from privrisk_spark.stages.assessing.ranks import collect_rank_disclosure, collect_ranks_of
from privrisk_spark.stages.publishing import contracts
from privrisk_spark.stages.publishing.files import files_for
from privrisk_spark.stages.publishing.value_classes import measure_value_classes


def release_masked(run: ReleaseRun) -> dict[str, Any]:
    """Mask every column as the policy says, and publish; returns the manifest."""
    opened, plan = read(run)
    encoded, keys = encode(run, opened)
    held = learn(run, plan, encoded)
    files = files_for(run.policy.places, encoded.facts.rows)
    masked, facts = mask(run, held, keys, files=files)
    written = write(run, opened, masked, files=files)
    checks = validate(run, opened, plan, encoded, written, facts, as_decided=holds_masked_values(run, masked, written))
    fill_vault(run, "Moved the masked values with their ids, and exact measures, to the vault.")
    record = record_of(run, opened, masked_guarantee(run.policy, plan, facts), checks)
    vault, public = masked_reports(record, facts, written.facts, masking_section(facts))
    write_vault_report(run, vault, plan="not used", snapshot=encoded.facts.snapshot, read=encoded.read)
    contracts.refuse_failures(checks, fail_on=run.policy.checks.fail_on)
    published = publish(run, opened, record, public, written, {"rows_read": encoded.facts.rows, **encoded.stated})
    destroy_key(run.place.vault.keys, run.place.run_id)
    return published


def read(run: ReleaseRun) -> tuple[Opened, MaskPlan]:
    """Stage: open the table, and plan what is done to its columns."""
    with run.progress.stage("read") as stage:
        opened = open_run(run.spark, run.policy, run.table)
        plan = mask_plan(run.policy)
        check_types(plan, opened.sources.table.schema)
        if run.announce is not None:
            run.announce(masking_explanation(run.policy, plan))
        stage.sentence = f"Opened the table; {len(plan.masks)} of {len(run.policy.kept_columns)} columns are masked."
    return opened, plan


def encode(run: ReleaseRun, opened: Opened) -> tuple[Encoded, MaskKeys]:
    """Stage: read the table once, and draw a key for this content."""
    place = run.place
    with run.progress.stage("encode") as stage:
        key = release_key(place.vault.keys, place.run_id, reference=key_reference(run.policy))
        encoded = encode_table(run, opened, blocks=True)
        pin_snapshot(place.vault.keys, place.run_id, encoded.facts.snapshot)
        stage.sentence = "Read every record and checked the input contract."
        stage.rows = encoded.facts.rows
        stage.parameters = {"rows": encoded.facts.rows}
    return encoded, MaskKeys(key, (place.run_id, encoded.facts.snapshot))


def learn(run: ReleaseRun, plan: MaskPlan, encoded: Encoded) -> Held:
    """Stage: learn what the masks need of all records together."""
    with run.progress.stage("learn") as stage:
        held = collect_held(run.scratch, encoded.rows, run.policy.kept_columns, plan)
        forbidden = [name for name, column in run.policy.quasi_identifiers.items() if column.nulls == "forbid"]
        contracts.refuse_missing({name: held.missing[name] for name in forbidden if name in held.missing})
        stage.sentence = "Computed means, variances, covariances and shares of the columns that are masked."
        stage.parameters = {"missing_values": held.missing}
    return held


def mask(run: ReleaseRun, held: Held, keys: MaskKeys, *, files: int) -> tuple[MaskedRows, MaskingFacts]:
    """Stage: mask every record, and measure what that did."""
    scratch, plan = run.scratch, held.plan
    with run.progress.stage("mask") as stage:
        solved, losses = [], []
        for i, one in enumerate(plan.arranged):
            key = keys.of(one.label)
            arrangement = collect_arrangement(scratch, held, one, key, store=f"order{i}")
            solved.append(collect_solved(scratch, held, arrangement, store=f"solved{i}"))
            if in_blocks(one, held.patterns[one.label]):
                losses.append(measure_block_loss(scratch, held, one, keys.of(f"sample {one.label}")))
        masked = collect_masked(
            scratch,
            held,
            solved,
            keys,
            _bounds(run, held),
            record_id=run.policy.table.record_id or schemas.RECORD_ID,
            files=files,
        )
        masked.decisions.take(masked.decision_names, run.place.scratch / "decisions")
        facts = masking_facts(held, masked, solved, losses, _by_rank(run, held, masked))
        stage.sentence = masking_sentence(plan)
        stage.parameters = {"suppressed_values": facts.suppressed, "clipped_values": facts.clipped}
        stage.status = masked_guarantee(run.policy, plan).status
    return masked, facts


def _bounds(run: ReleaseRun, held: Held) -> dict[str, tuple[float | None, float | None]]:
    """Bounds of columns that are coded at top or bottom; quantiles are values of the column."""
    found: dict[str, tuple[float | None, float | None]] = {}
    for name, asked in held.plan.masks.items():
        if isinstance(asked, TopBottom) and asked.quantiles is not None:
            (column,) = doubles([held.position(name)])
            ranks = collect_ranks_of(run.scratch, held.frame(run.spark), column, store=f"ranks-{column}")
            low, high = ranks.quantiles(asked.quantiles) if ranks.rows else (None, None)
            found[name] = low, high
        elif isinstance(asked, TopBottom):
            found[name] = bounds_of(asked)
    return found


def _by_rank(run: ReleaseRun, held: Held, masked: MaskedRows) -> dict[str, IntervalTally]:
    """Interval disclosure by ranks of every column of numbers that is masked."""
    found = {}
    for name in held.plan.masked_numbers:
        before, after = (f"{kind}{held.position(name)}" for kind in ("o", "m"))
        ranks = collect_ranks_of(run.scratch, masked.compared, after, store=f"ranks-{after}")
        found[name] = collect_rank_disclosure(run.scratch, masked.compared, before, after, ranks, p=PERCENT)
    return found


def write(run: ReleaseRun, opened: Opened, masked: MaskedRows, *, files: int) -> Written:
    """Stage: write the release to staging, and count the classes of its files."""
    with run.progress.stage("write") as stage:
        written = write_release(run, opened, masked.tuples, {}, files=files)
        kept = run.policy.kept_columns
        columns = dict(zip(kept, schemas.released(len(kept)), strict=True))
        classes = measure_value_classes(written.texts, [columns[name] for name in run.policy.quasi_identifiers])
        as_they_are = set(kept) - set(run.policy.masks)
        # Values that are nearly all different by noise point out no record.
        noisy = set(run.policy.masks) - set(run.policy.quasi_identifiers)
        facts = replace(
            written.facts,
            classes=classes.classes,
            min_class_size=classes.least,
            min_telling_size=classes.least_telling,
            unique_by_cells=classes.uniques,
            unique_by_all=None if noisy else written.facts.unique_by_all,
            unique_by_kept={name: n for name, n in written.facts.unique_by_kept.items() if name in as_they_are},
        )
        stage.sentence = "Wrote the release to staging in a canonical order and read it back."
    return replace(written, facts=facts)


def holds_masked_values(run: ReleaseRun, masked: MaskedRows, written: Written) -> bool:
    """Whether the files hold the masked values that were compared with the table's, each as often."""
    kept, schema = run.policy.kept_columns, masked.tuples.schema
    names = [name for name, of in zip(schemas.released(len(kept)), kept, strict=True) if of in run.policy.masks]
    # A file of lines holds texts.
    columns = [F.col(name).cast(schema[name].dataType).alias(name) for name in names]
    in_files = collect_frame_digest(written.texts.frame().select(*columns))
    decided = masked.tuples.frame(run.spark).select(*columns, schemas.N_ROWS)
    return in_files == collect_frame_digest(decided, times=schemas.N_ROWS)


def validate(
    run: ReleaseRun,
    opened: Opened,
    plan: MaskPlan,
    encoded: Encoded,
    written: Written,
    facts: MaskingFacts,
    *,
    as_decided: bool,
) -> tuple[Check, ...]:
    """Stage: hold the staged files against the release contract; returns the checks of the input and of the release."""
    with run.progress.stage("validate") as stage:
        rules, values = contracts.release_rules(run.policy, written.facts, written.label_rows)
        more, measured = masked_rules(
            encoded.facts, written.facts, facts, as_decided=as_decided, proved_k=plan.proved_k
        )
        checks = validate_release(run, opened, written, rules + more, values | measured)
        for sentence in [*uniqueness_warnings(written.facts), *unchanged_warnings(facts)]:
            LOGGER.warning("%s", sentence)
        stage.sentence = "Checked the release contract on the staged files."
    return (*encoded.checks, *checks)


def inspect(policy: Policy, schema: StructType) -> str:
    """Return what a masked release would do, as text.

    Parameters
    ----------
    schema : StructType
        Of the table.

    Raises
    ------
    InputError
        If a mask cannot be applied to its column.
    """
    plan = mask_plan(policy)
    check_types(plan, schema)
    return masking_explanation(policy, plan)
