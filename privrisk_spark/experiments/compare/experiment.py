"""The comparison of protections and attacks, in the order it is run."""

from __future__ import annotations

from privrisk_spark.errors import ConfigError, Fault
from privrisk_spark.experiments.compare.linking import attacked
from privrisk_spark.experiments.compare.numbers import generated, lost, masked, records_found
from privrisk_spark.experiments.compare.protecting import changed, disclosed, recoded
from privrisk_spark.experiments.compare.results import Compared, CompareSizes, Tried, findings
from privrisk_spark.experiments.deciding.results import basis
from privrisk_spark.experiments.deciding.subject import Subject
from privrisk_spark.experiments.deciding.tables import collect_subject, narrowed, unused
from privrisk_spark.experiments.run import Experiment, Source
from privrisk_spark.kernels.disclosure.risk import RiskModel
from privrisk_spark.policy.policy import Policy
from privrisk_spark.results.experiment import Findings
from privrisk_spark.runs.progress import Progress

MOST_NODES = 10_000
"""Largest lattice; of more attributes, the first are taken."""


def check(policy: Policy) -> None:
    """Refuse a policy whose rows are not persons.

    Parameters
    ----------
    policy : Policy

    Raises
    ------
    ConfigError
    """
    if policy.table.entity_id is not None:
        rule = "must be left out: protections are compared by rows, each of which is somebody"
        raise ConfigError([Fault("table.entity_id", rule)])


def find(sizes: CompareSizes, source: Source | None, progress: Progress) -> Findings:
    """Compare protections of generated tables, and of the one of a policy.

    Parameters
    ----------
    sizes : CompareSizes
    source : Source or None
    progress : Progress

    Raises
    ------
    InputError
        If the policy's table cannot be used.
    """
    found, notes = [], []
    with progress.stage("compare on numbers") as stage:
        found.append(on_numbers(sizes))
        stage.sentence = f"Masked {sizes.records:,} records of {sizes.columns} numbers in {len(found[0].tried)} ways."
    subject, left_out = narrowed(Subject.generated(sizes.seed, sizes.rows, sizes.attributes), MOST_NODES)
    notes += left_out
    with progress.stage("compare on generated") as stage:
        found.append(on_hierarchies(subject, sizes, "I"))
        stage.sentence = f"Protected a generated table of {sizes.rows:,} rows in {len(found[-1].tried)} ways."
    if source is not None:
        with progress.stage("read") as stage:
            whole = collect_subject(source)
            subject, left_out = narrowed(whole, MOST_NODES)
            notes += [*unused(source.policy), *left_out]
            stage.sentence = f"Collected {len(whole.counts):,} distinct records."
        with progress.stage(f"compare on {subject.name}") as stage:
            found.append(on_hierarchies(subject, sizes, source.policy.risk.model))
            stage.sentence = f"Protected the table in {len(found[-1].tried)} ways."
    return findings(found, sizes, notes)


def on_hierarchies(subject: Subject, sizes: CompareSizes, model: RiskModel) -> Compared:
    """Protect a table over hierarchies in every way, and attack each."""
    limit = sizes.suppressed * subject.rows // 100
    tried = []
    for tables in (recoded(subject, limit), disclosed(subject, model), changed(subject, sizes.seed)):
        for one in tables:
            by, loss = attacked(subject, one)
            tried.append(Tried(one.family, one.name, loss, by))
    measure = "loss: mean difference from a draw of the cell"
    return Compared(subject.name, basis(subject), subject.rows, measure, tuple(tried))


def on_numbers(sizes: CompareSizes) -> Compared:
    """Mask a generated table of numbers in every way, and attack each."""
    values = generated(sizes.seed, sizes.records, sizes.columns)
    tried = tuple(
        Tried(one.family, one.name, lost(values, one.values), {"distance": records_found(values, one.values)})
        for one in masked(values, sizes.seed)
    )
    said = f"{sizes.records:,} generated records of {sizes.columns} normal numbers, each two of correlation 0.5."
    return Compared("numbers", said, sizes.records, "loss: IL1s", tried)


EXPERIMENT = Experiment(
    name="compare",
    title="Protections and attacks compared",
    heading="Protections and attacks",
    find=find,
    stages=2,
    stages_of_policy=2,
    check=check,
    further_files=("unknown_values",),
)
