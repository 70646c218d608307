"""The experiments on dictionaries: Lebanon et al. (2006), section 5, and Fouad (2012), chapter 3."""

from __future__ import annotations

from privrisk_spark.runs.progress import Progress
from reproduce.dictionaries.results import DictionarySizes, findings, run
from reproduce.result import Findings
from reproduce.run import Experiment, Source, no_policy


def find(sizes: DictionarySizes, source: Source | None, progress: Progress) -> Findings:  # noqa: ARG001 - it takes none
    """Run the experiments on a generated table."""
    with progress.stage("measure") as stage:
        subject, found = run(sizes)
        stage.sentence = f"Measured {len(found.rules.risk):,} rules, and {len(found.growth.rows)} dictionaries."
    return findings(subject, found)


EXPERIMENT = Experiment(
    name="dictionaries",
    title="Experiments on dictionaries",
    heading="Dictionaries and rules",
    find=find,
    stages=1,
    stages_of_policy=0,
    usual=DictionarySizes(),
    quick=DictionarySizes.quick(),
    check=no_policy,
)
