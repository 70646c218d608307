"""Experiments on deciding: the comparisons of Fouad (2012), chapters 3 to 5, in the order they are run."""

from __future__ import annotations

from privrisk_spark.runs.progress import Progress
from reproduce.deciding.results import Sizes, TableResult, findings, run_on
from reproduce.deciding.subject import Subject
from reproduce.deciding.tables import MOST_NODES, collect_subject, narrowed, unused
from reproduce.result import Findings
from reproduce.run import Experiment, Source


def find(sizes: Sizes, source: Source | None, progress: Progress) -> Findings:
    """Run the experiments on a generated table, and on the one of a policy.

    Raises
    ------
    InputError
        If the policy's table cannot be used.
    """
    with progress.stage("generate") as stage:
        used, notes = narrowed(Subject.generated(sizes.seed, sizes.rows, sizes.attributes), MOST_NODES)
        subjects = [used]
        stage.sentence = f"Generated a table of {sizes.rows:,} rows."
    if source is not None:
        with progress.stage("read") as stage:
            whole = collect_subject(source)
            used, left_out = narrowed(whole, MOST_NODES)
            subjects.append(used)
            notes += [*unused(source.policy), *left_out]
            stage.sentence = f"Collected {len(whole.counts):,} distinct records."
    found: list[TableResult] = []
    for subject in subjects:
        with progress.stage(f"experiments on {subject.name}") as stage:
            found.append(run_on(subject, sizes))
            stage.sentence = f"Searched lattices of {subject.k} attributes."
    return findings(found, sizes, notes)


EXPERIMENT = Experiment(
    name="deciding",
    title="Experiments on deciding",
    heading="Deciding",
    find=find,
    stages=2,
    stages_of_policy=2,
    usual=Sizes(),
    quick=Sizes(rows=300, attributes=3, records=60, searches=2),
)
