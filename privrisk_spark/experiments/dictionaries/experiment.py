"""The experiments on dictionaries: Lebanon et al. (2006), section 5, and Fouad (2012), chapter 3."""

from __future__ import annotations

from privrisk_spark.errors import ConfigError, Fault
from privrisk_spark.experiments.dictionaries.results import DictionarySizes, findings, run
from privrisk_spark.experiments.run import Experiment, Source
from privrisk_spark.policy.policy import Policy
from privrisk_spark.results.experiment import Findings
from privrisk_spark.runs.progress import Progress


def find(sizes: DictionarySizes, source: Source | None, progress: Progress) -> Findings:  # noqa: ARG001 - it takes none
    """Run the experiments on a generated table.

    Parameters
    ----------
    sizes : DictionarySizes
    source : None
    progress : Progress
    """
    with progress.stage("measure") as stage:
        subject, found = run(sizes)
        stage.sentence = f"Measured {len(found.rules.risk):,} rules, and {len(found.growth.rows)} dictionaries."
    return findings(subject, found)


def refuse(policy: Policy) -> None:  # noqa: ARG001 - whatever it says
    """Refuse a policy: ``privrisk curves`` does this for a table of the user."""
    raise ConfigError([Fault("", "This experiment takes no policy; privrisk curves shows risk by dictionary for one")])


EXPERIMENT = Experiment(
    name="dictionaries",
    title="Experiments on dictionaries",
    heading="Dictionaries and rules",
    find=find,
    stages=1,
    stages_of_policy=0,
    usual=DictionarySizes(),
    quick=DictionarySizes.quick(),
    check=refuse,
)
