"""Experiments on recoding, in the order they are run."""

from __future__ import annotations

from privrisk_spark.errors import ConfigError, Fault
from privrisk_spark.kernels.disclosure.risk import RiskModel
from privrisk_spark.policy.policy import Policy
from privrisk_spark.runs.progress import Progress
from reproduce.deciding.subject import Subject
from reproduce.deciding.tables import collect_subject, narrowed, unused
from reproduce.recoding.results import RecodingSizes, TableResult, findings, run_on
from reproduce.result import Findings
from reproduce.run import Experiment, Source

MOST_NODES = 10_000
"""Largest lattice, as every node is looked at; of more attributes, the first are taken."""


def check(policy: Policy) -> None:
    """Refuse a policy whose rows are not persons.

    Raises
    ------
    ConfigError
    """
    if policy.table.entity_id is not None:
        rule = "must be left out: local recoding counts rows, and all algorithms are compared on the same table"
        raise ConfigError([Fault("table.entity_id", rule)])


def find(sizes: RecodingSizes, source: Source | None, progress: Progress) -> Findings:
    """Run the experiments on a generated table, and on the one of a policy.

    Raises
    ------
    InputError
        If the policy's table cannot be used.
    """
    with progress.stage("generate") as stage:
        whole = Subject.generated(sizes.seed, sizes.rows, sizes.attributes)
        used, notes = narrowed(whole, MOST_NODES)
        tables: list[tuple[Subject, RiskModel]] = [(used, "I")]
        stage.sentence = f"Generated a table of {sizes.rows:,} rows."
    if source is not None:
        with progress.stage("read") as stage:
            whole = collect_subject(source)
            used, left_out = narrowed(whole, MOST_NODES)
            tables.append((used, source.policy.risk.model))
            notes += [*unused(source.policy), *left_out]
            stage.sentence = f"Collected {len(whole.counts):,} distinct records."
    found: list[TableResult] = []
    for subject, model in tables:
        with progress.stage(f"experiments on {subject.name}") as stage:
            found.append(run_on(subject, sizes, model=model))
            stage.sentence = f"Recoded a table of {subject.k} attributes with every algorithm."
    return findings(found, sizes, notes)


EXPERIMENT = Experiment(
    name="recoding",
    title="Experiments on recoding",
    heading="Recoding",
    find=find,
    stages=2,
    stages_of_policy=2,
    usual=RecodingSizes(),
    quick=RecodingSizes(rows=300, attributes=3, records=60),
    check=check,
)
