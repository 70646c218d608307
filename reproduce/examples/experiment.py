"""The worked examples of the sources as an experiment."""

from __future__ import annotations

from privrisk_spark.runs.progress import Progress
from reproduce.examples.results import ExampleSizes, findings
from reproduce.examples.worked import examples
from reproduce.result import Findings
from reproduce.run import Experiment, Source, no_policy


def find(sizes: ExampleSizes, source: Source | None, progress: Progress) -> Findings:  # noqa: ARG001 - it takes none
    """Compute the examples."""
    with progress.stage("compute") as stage:
        found = examples()
        stage.sentence = f"Computed {len(found)} numbers."
    return findings(found)


EXPERIMENT = Experiment(
    name="examples",
    title="Worked examples",
    heading="Worked examples",
    find=find,
    stages=1,
    stages_of_policy=0,
    usual=ExampleSizes(),
    quick=ExampleSizes(),
    check=no_policy,
)
