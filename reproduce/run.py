"""The runner of all experiments: it holds the directory, tells the progress, and writes the files.

An experiment declares what it is called, what it asks of a policy, and a function that returns its findings. Without a
policy it runs on generated data alone, and needs no Spark. With one it has the policy's table as well; what is computed
of that is exact and for the trusted zone alone.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from privrisk_spark.engine.batches import Scratch
from privrisk_spark.engine.labels import labels
from privrisk_spark.engine.shared import scratch_of
from privrisk_spark.errors import ConfigError, Fault
from privrisk_spark.planning.places import check_private_place, check_request
from privrisk_spark.policy.policy import Policy
from privrisk_spark.runs.places import ResultPlace, result_place
from privrisk_spark.runs.progress import Progress, write_status
from privrisk_spark.tables.opening import open_table
from privrisk_spark.version import __version__
from reproduce.pages import render_experiment
from reproduce.result import ExperimentResult, Findings, plain

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SizesT = TypeVar("SizesT")


@dataclass(frozen=True)
class Source:
    """A table of the user.

    Attributes
    ----------
    scratch : Scratch
        For what Spark writes while the experiment runs.
    place : ResultPlace
        Where the results go.
    """

    spark: SparkSession
    policy: Policy
    scratch: Scratch
    place: ResultPlace

    def read(self) -> DataFrame:
        """Return the table with the values as the policy reads them.

        Raises
        ------
        InputError
            If it cannot be read, or its columns are not those of the policy.
        """
        return open_table(self.spark, self.policy).rows


def _nothing_more(policy: Policy) -> None:
    """Ask nothing of a policy."""


def no_policy(policy: Policy) -> None:  # noqa: ARG001 - whatever it says
    """Refuse every policy: an experiment on generated data alone."""
    raise ConfigError([Fault("", "This experiment is about tables of its own, and takes no policy")])


@dataclass(frozen=True)
class Experiment(Generic[SizesT]):
    """An experiment to be run.

    Attributes
    ----------
    name : str
        Of its files: ``<name>.json``, ``<name>.csv`` and ``<name>.html``.
    title, heading : str
        Of its page.
    find : callable
        ``find(sizes, source, progress)`` returns the findings. Sizes are a frozen dataclass of integers with a
        ``seed``; the source is None without a policy. It opens its own stages of the progress.
    stages, stages_of_policy : int
        How many stages it opens without a policy, and how many more with one.
    usual, quick : dataclass
        Sizes for figures to be cited, and to see that it runs.
    exact : bool
        Whether it tells exact figures, which only a policy of the kind ``risk`` allows.
    check : callable
        ``check(policy)`` raises ConfigError or InputError if it cannot be run with a policy.
    """

    name: str
    title: str
    heading: str
    find: Callable[[SizesT, Source | None, Progress], Findings]
    stages: int
    stages_of_policy: int
    usual: SizesT
    quick: SizesT
    exact: bool = True
    check: Callable[[Policy], None] = _nothing_more

    def result(self, findings: Findings, sizes: SizesT, *, date: dt.date, private: bool) -> ExperimentResult:
        """Return findings with what they were found with.

        Parameters
        ----------
        sizes : dataclass
        date : date
            Business date.
        private : bool
            Whether figures are about a table of the user.
        """
        return ExperimentResult(
            name=self.name,
            title=self.title,
            heading=self.heading,
            created=date.isoformat(),
            version=__version__,
            sizes=plain(sizes),
            findings=findings,
            private=private,
        )


def check_output(experiment: Experiment[Any], policy: Policy | None, output: str) -> ResultPlace:
    """Return the place an experiment's results go to.

    Parameters
    ----------
    output : str
        What the user gave.

    Raises
    ------
    ConfigError, InputError
        If the experiment cannot be run with the policy, or it is no place for its results.
    """
    if policy is None:
        place = result_place(output, "experiments")
        place.check()
        return place
    experiment.check(policy)
    checked = check_request if experiment.exact else check_private_place
    return checked(policy, output, what="experiments")


def run(
    experiment: Experiment[SizesT],
    spark: SparkSession | None,
    policy: Policy | None,
    sizes: SizesT,
    *,
    place: ResultPlace,
    run_id: str,
    date: dt.date,
) -> ExperimentResult:
    """Run an experiment and write ``<name>.json``, ``<name>.csv`` and ``<name>.html``.

    Parameters
    ----------
    spark : SparkSession or None
        Needed for a policy alone.
    sizes : dataclass
        How much is run.
    place : ResultPlace
        As :func:`check_output` returns it.
    date : date
        Business date.

    Raises
    ------
    InputError
        Exit code 2: the policy or the data must be mended.
    EngineError
        Exit code 3: running again may help.
    """
    with place.held(run_id) as path, ExitStack() as held:
        source = None
        if policy is not None and spark is not None:
            scratch = held.enter_context(scratch_of(spark, policy, path, place=place))
            source = Source(spark, policy, scratch, place)
        stages = 1 + experiment.stages + (experiment.stages_of_policy if policy is not None else 0)
        watched = () if spark is None else (labels(spark),)
        progress = Progress(place.status, run_id, stages, *watched)
        findings = experiment.find(sizes, source, progress)
        result = experiment.result(findings, sizes, date=date, private=policy is not None)
        with progress.stage("write") as stage:
            place.put_text(f"{experiment.name}.html", render_experiment(result))
            place.put_text(f"{experiment.name}.csv", result.to_csv())
            place.put_json(f"{experiment.name}.json", result.to_dict())
            stage.sentence = "Wrote data and plots."
        write_status(place.status, run_id, phase="written", code=0, message=f"experiments in {place}")
    return result
