"""The empirical audit of a differentially private mechanism: the order of its experiments, and its files.

Four parts, as each is blind to something. The *bounds* refute a claimed epsilon from what is published alone. The
*invariant* looks for a released tuple below the crowd threshold, *conformance* for a sample that is not what the
certificate was computed for, and *idempotence* for a second draw where Spark does work again. An audit refutes claims
and proves none; the proof is in :mod:`privrisk_spark.ledger.calibrated` and the kernels it names.

What runs is the code of a release at the audit profile (:mod:`privrisk_spark.planning.audit`). Nothing of the policy's
table is read, no ledger is asked, no key is made, and nothing is released.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import SparkSession

from privrisk_spark.audit import trials as adversary
from privrisk_spark.audit.judging import alpha_of_bound, judge, judge_choice
from privrisk_spark.engine.batches import Batches, Scratch
from privrisk_spark.engine.labels import labels
from privrisk_spark.engine.shared import scratch_of
from privrisk_spark.errors import ConfigError, Fault, InputError
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.json_values import as_json
from privrisk_spark.kernels.counting.consistent import Axis
from privrisk_spark.planning.audit import Profile, audit_profile
from privrisk_spark.planning.audit_experiments import Experiment
from privrisk_spark.planning.calibration import mechanism
from privrisk_spark.planning.dictionaries import axes
from privrisk_spark.policy.policy import Policy
from privrisk_spark.reporting.pages import render_audit
from privrisk_spark.results.audit import AuditResult, Findings, Repetition
from privrisk_spark.runs.places import ResultPlace, result_place
from privrisk_spark.runs.progress import Progress, write_status
from privrisk_spark.tables.opening import hierarchies_from_policy
from privrisk_spark.version import __version__

TRIALS = 20_000
"""Trials of each table."""

LEAST_TRIALS = 1_000
"""Fewer could not refute what a fault makes likely."""

REPEATED_TRIALS = 1_000
"""Trials of each table that are run again."""

REPEATED = ("draw", "admission", "persons")
"""Experiments that are run again: with the draws of rows, cells and persons, all that tasks draw."""

_ROWS_PER_TASK = 2_000_000


@dataclass(frozen=True, eq=False)
class Subject:
    """What is audited.

    Attributes
    ----------
    hierarchies : mapping of attribute to Hierarchy
    """

    policy: Policy
    hierarchies: dict[str, Hierarchy]
    axes: tuple[Axis, ...]
    profile: Profile
    seed: int

    @classmethod
    def of(cls, policy: Policy, seed: int) -> Subject:
        """Derive the profile of a policy.

        Raises
        ------
        InputError
            If the policy is refused, or its hierarchies have nothing to tell apart.
        """
        mechanism(policy)
        hierarchies = {name: found for name, found in hierarchies_from_policy(policy).items() if found is not None}
        profile = audit_profile(mechanism(policy, hierarchies), hierarchies)
        return cls(policy, hierarchies, axes(policy, hierarchies), profile, seed)


def check_output(policy: Policy, output: str) -> ResultPlace:
    """Return the place the audit goes to.

    Raises
    ------
    ConfigError, InputError
        If the policy claims no differential privacy, or the directory is no place for the files.
    """
    if not policy.guarantee.private:
        raise InputError(
            "guarantee.kind: an audit refutes claims of differential privacy, and the policy makes none; name one of "
            "the kind 'dp'."
        )
    place = result_place(output, "audit")
    place.check()
    return place


def audit(
    spark: SparkSession,
    policy: Policy,
    *,
    place: ResultPlace,
    run_id: str,
    date: dt.date,
    trials: int = TRIALS,
    seed: int = 1,
) -> AuditResult:
    """Audit a policy's mechanism, and write ``audit.json`` and ``audit.html``.

    Parameters
    ----------
    spark : SparkSession
    policy : Policy
        Of the kind ``dp``; hierarchies and the kind of noise are taken from it.
    place : ResultPlace
        As :func:`check_output` returns it; every worker must see it.
    run_id : str
    date : date
    trials : int
        Of each table.
    seed : int
        Public; another one gives other keys, hence another sample.

    Raises
    ------
    InputError
        Exit code 2: the policy must be mended.
    EngineError
        Exit code 3: running again may help.
    """
    if trials < LEAST_TRIALS:
        raise ConfigError([Fault("--trials", f"must be at least {LEAST_TRIALS:,}. Got {trials:,}")])
    subject = Subject.of(policy, seed)
    experiments = subject.profile.experiments
    findings: list[Findings] = []
    repetitions: list[Repetition] = []
    with place.held(run_id) as path, scratch_of(spark, policy, path, place=place) as scratch:
        progress = Progress(place.status, run_id, len(experiments) + 2, labels(spark))
        for experiment in experiments:
            with progress.stage(experiment.name) as stage:
                findings.append(collect_findings(scratch, subject, experiment, trials))
                found = findings[-1]
                stage.sentence = (
                    f"{len(experiment.tables) * found.trials:,} releases; epsilon is at least {found.epsilon:.2f}, "
                    f"claimed {experiment.epsilon:g}."
                )
        with progress.stage("repeat") as stage:
            for experiment in (one for one in experiments if one.name in REPEATED):
                few = min(trials, REPEATED_TRIALS)
                repetitions += collect_repetitions(scratch, subject, experiment, few)
            stage.sentence = f"{len(repetitions)} executions with the keys of another."
        result = AuditResult(
            title=policy.run.name,
            created=date.isoformat(),
            version=__version__,
            seed=seed,
            parameters=subject.profile.parameters(),
            findings=tuple(findings),
            repetitions=tuple(repetitions),
            notes=subject.profile.notes,
        )
        with progress.stage("write") as stage:
            place.put_text("audit.html", render_audit(result))
            place.put_json("audit.json", as_json(result))
            stage.sentence = "Wrote data and page."
        message = "passed" if result.passed else "flagged: " + ", ".join(result.parts)
        write_status(place.status, run_id, phase="written", code=0 if result.passed else 1, message=message)
    return result


def collect_findings(scratch: Scratch, subject: Subject, experiment: Experiment, trials: int) -> Findings:
    """Run one experiment, each of its tables so many times."""
    trials = experiment.trials_of(trials)
    alpha = alpha_of_bound(subject.profile.experiments)
    many = adversary.Trials(experiment, subject.profile.kinds, trials)
    if experiment.chooses:
        drawn = adversary.collect_picks(scratch, many, subject.hierarchies, subject.axes, subject.seed)
        return judge_choice(experiment, drawn, alpha=alpha)
    recoding = many.recoding(subject.hierarchies, subject.axes)
    if experiment.as_read:
        rows = many.rows_as_read(scratch.spark, subject.policy, subject.hierarchies)
    else:
        rows = many.rows(scratch.spark, parts=max(2, -(-trials * sum(map(sum, experiment.tables)) // _ROWS_PER_TASK)))
    own = scratch.below(experiment.name)
    keys = adversary.audit_keys(subject.seed, experiment.name)
    published = adversary.collect_published(own, many, rows, recoding, keys)
    return judge(
        experiment,
        trials=trials,
        nodes=published.nodes,
        rows=published.rows,
        cells=published.cells,
        manifest=published.manifest,
        released_as=many.released_as(recoding),
        alpha=alpha,
    )


def collect_repetitions(scratch: Scratch, subject: Subject, experiment: Experiment, trials: int) -> list[Repetition]:
    """Run one experiment several times with one key, and compare.

    Parameters
    ----------
    scratch, subject, experiment, trials
        As for :func:`collect_findings`.
    """
    spark = scratch.spark
    few = adversary.Trials(experiment, subject.profile.kinds, trials)
    recoding = few.recoding(subject.hierarchies, subject.axes)
    keys = adversary.audit_keys(subject.seed, experiment.name)

    def run(name: str, rows: Batches, attempts: adversary.Attempts) -> adversary.Published:
        own = scratch.below(f"{experiment.name}-{name}")
        return adversary.collect_published(own, few, rows, recoding, keys, attempts=attempts)

    first = run("first", few.rows(spark, parts=2), "once")
    ways: list[tuple[str, adversary.Attempts]] = [("every task does its work twice, as under speculation", "twice")]
    if tries_again(spark):
        ways.append(("every task fails once, after its work", "failing"))
    repetitions = []
    for number, (how, attempts) in enumerate(ways):
        with _other_layout(spark):
            again = run(f"again-{number}", few.rows(spark, parts=3 + number, backwards=True), attempts)
        what = f"other partitions, order and batches; {how}"
        repetitions.append(Repetition(experiment.title, what, first.equals(again)))
    return repetitions


@contextmanager
def _other_layout(spark: SparkSession) -> Iterator[None]:
    """Let Spark cut shuffles and batches elsewhere."""
    other = {"spark.sql.shuffle.partitions": "5", "spark.sql.execution.arrow.maxRecordsPerBatch": "777"}
    usual = {name: spark.conf.get(name) for name in other}
    try:
        for name, value in other.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, before in usual.items():
            if before is not None:
                spark.conf.set(name, before)


def tries_again(spark: SparkSession) -> bool:
    """Whether Spark starts a failed task once more: a local master does if it was told how often."""
    master = spark.conf.get("spark.master", "local") or "local"
    if not master.startswith("local"):
        return int(spark.conf.get("spark.task.maxFailures", "4") or 4) > 1
    told = re.fullmatch(r"local\[[^,\]]+,\s*(\d+)\]", master)
    return told is not None and int(told[1]) > 1
