"""The comparison of protections and attacks, in the order it is run."""

from __future__ import annotations

from privrisk_spark.errors import ConfigError, Fault
from privrisk_spark.kernels.disclosure.risk import RiskModel
from privrisk_spark.policy.policy import Policy
from privrisk_spark.runs.progress import Progress
from reproduce.compare.claims import Tried
from reproduce.compare.learning import TRAINING
from reproduce.compare.linking import attacked
from reproduce.compare.masking import masked
from reproduce.compare.numbers import attacked as attacked_numbers
from reproduce.compare.numbers import lost, rows_attacked
from reproduce.compare.protecting import changed, disclosed, private, recoded
from reproduce.compare.results import Compared, CompareSizes, findings
from reproduce.deciding.results import basis
from reproduce.deciding.subject import Subject
from reproduce.deciding.tables import collect_subject, narrowed, unused
from reproduce.generated.numeric import NumericTable
from reproduce.result import Findings
from reproduce.run import Experiment, Source

MOST_NODES = 10_000
"""Largest lattice; of more attributes, the first are taken."""


def check(policy: Policy) -> None:
    """Refuse a policy whose rows are not persons.

    Raises
    ------
    ConfigError
    """
    if policy.table.entity_id is not None:
        rule = "must be left out: protections are compared by rows, each of which is somebody"
        raise ConfigError([Fault("table.entity_id", rule)])


def find(sizes: CompareSizes, source: Source | None, progress: Progress) -> Findings:
    """Compare protections of generated tables, and of the one of a policy.

    Raises
    ------
    InputError
        If the policy's table cannot be used.
    """
    found, notes = [], []
    for table in tables_of_numbers(sizes):
        with progress.stage(f"compare on {table.name}") as stage:
            found.append(on_numbers(table, sizes.seed))
            ways = len(found[-1].tried)
            stage.sentence = f"Masked {table.rows:,} records of {table.columns} numbers in {ways} ways."
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
    seed = sizes.seed
    for tables in (recoded(subject, limit), disclosed(subject, model), private(subject, seed), changed(subject, seed)):
        for one in tables:
            by, of_rows, loss = attacked(subject, one, seed)
            tried.append(Tried(one.family, one.name, loss, by, of_rows))
    measure = "loss: mean difference from a draw of the cell"
    return Compared(subject.name, basis(subject), subject.rows, measure, tuple(tried))


def tables_of_numbers(sizes: CompareSizes) -> tuple[NumericTable, ...]:
    """Of the shape of the two files of the literature: normal numbers, and amounts in blocks that go together."""
    k = sizes.columns
    return (
        NumericTable("numbers", sizes.records, k, block=k, within=0.5, between=0.5),
        NumericTable(
            "amounts", max(2, sizes.records * 3 // 4), max(1, k - 1), 4, within=0.8, between=0.2, amounts=True
        ),
    )


def on_numbers(table: NumericTable, seed: int) -> Compared:
    """Mask a generated table of numbers in every way, and attack each."""
    values = table.values(seed)
    tried = tuple(
        Tried(
            one.family,
            one.name,
            lost(values, one.values),
            attacked_numbers(values, one, seed=seed, training=TRAINING),
            rows_attacked(values, one),
        )
        for one in masked(values, seed)
    )
    kind = "amounts, exponentials of normal numbers" if table.amounts else "normal numbers"
    said = f"{table.rows:,} generated records of {table.columns} {kind}, each two of correlation {table.within:g}"
    if table.between < table.within:
        said += f" in a block of {table.block}, {table.between:g} else"
    return Compared(table.name, said + ".", table.rows, "loss: IL1s", tried)


EXPERIMENT = Experiment(
    name="compare",
    title="Protections and attacks compared",
    heading="Protections and attacks",
    find=find,
    stages=3,
    stages_of_policy=2,
    usual=CompareSizes(),
    quick=CompareSizes.quick(),
    check=check,
)
