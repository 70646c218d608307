"""Experiments on deciding: the comparisons of Fouad (2012), chapters 3 to 5, in the order they are run."""

from __future__ import annotations

from collections.abc import Iterator

from privrisk_spark.experiments.deciding.results import Sizes, TableResult, findings, run_on
from privrisk_spark.experiments.deciding.subject import Subject
from privrisk_spark.experiments.deciding.tables import collect_subject, narrowed
from privrisk_spark.experiments.run import Experiment, Source
from privrisk_spark.policy.policy import Policy
from privrisk_spark.results.experiment import Findings
from privrisk_spark.runs.progress import Progress


def find(sizes: Sizes, source: Source | None, progress: Progress) -> Findings:
    """Run the experiments on a generated table, and on the one of a policy.

    Parameters
    ----------
    sizes : Sizes
    source : Source or None
    progress : Progress

    Raises
    ------
    InputError
        If the policy's table cannot be used.
    """
    with progress.stage("generate") as stage:
        used, notes = narrowed(Subject.generated(sizes.seed, sizes.rows, sizes.attributes))
        subjects = [used]
        stage.sentence = f"Generated a table of {sizes.rows:,} rows."
    if source is not None:
        with progress.stage("read") as stage:
            whole = collect_subject(source)
            used, left_out = narrowed(whole)
            subjects.append(used)
            notes += [*_notes(source.policy, whole.name), *left_out]
            stage.sentence = f"Collected {len(whole.counts):,} distinct records."
    found: list[TableResult] = []
    for subject in subjects:
        with progress.stage(f"experiments on {subject.name}") as stage:
            found.append(run_on(subject, sizes))
            stage.sentence = f"Searched lattices of {subject.k} attributes."
    return findings(found, sizes, notes)


def _notes(policy: Policy, name: str) -> Iterator[str]:
    """What a reader must know besides."""
    if policy.risk.sensitivity.form != "linear":
        yield (
            f"{name}: the policy's sensitivity is of the form '{policy.risk.sensitivity.form}'; here its weights "
            "are added, as in Fouad (2012), section 4.6, and as minimum cuts need it."
        )
    if policy.utility.measure != "depth":
        yield f"{name}: the policy's utility is '{policy.utility.measure}'; here it is depth."
    if policy.dictionary.kind != "self" or policy.dictionary.consistency != "subsumes":
        yield f"{name}: the policy's dictionary is not used; the attacker knows the table, and values subsume."


EXPERIMENT = Experiment(
    name="deciding",
    title="Experiments on deciding",
    heading="Deciding",
    find=find,
    stages=2,
    stages_of_policy=2,
    further_files=("unknown_values",),
)
