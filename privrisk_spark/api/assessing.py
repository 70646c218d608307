"""How risky a table is, as a value."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privrisk_spark.api.jobs import run_job
from privrisk_spark.api.policies import Policy, PolicyLike, as_policy
from privrisk_spark.api.workspace import Closeable, opened_parts
from privrisk_spark.engine.failures import named
from privrisk_spark.errors import ConfigError, Fault
from privrisk_spark.policy import policy as written
from privrisk_spark.results.page import Page
from privrisk_spark.storage.temporary import PrivateDirectory

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame, SparkSession

    from privrisk_spark.results.assessment import Assessment, Measured, Verdict
    from privrisk_spark.runs.places import ResultPlace


@dataclass(frozen=True, eq=False, repr=False)
class Assessed(Closeable):
    """What an assessment found. All of it is exact: never publish it.

    Attributes
    ----------
    assessment : privrisk_spark.results.assessment.Assessment
        Subjects, worst classes, plots and stages.
    report : Page
        What a person reads.
    place : Path or str
        Directory with ``measures.json``, ``assessment.json``, ``report.html`` and the records.
    private : PrivateDirectory or None
        Of a result without an output; see :meth:`close`.
    spark : SparkSession
        Which opens the frames.
    there : tuple of str
        Directories of records.
    """

    assessment: Assessment
    report: Page
    place: Path | str
    private: PrivateDirectory | None
    spark: SparkSession
    there: tuple[str, ...] = ()

    @cached_property
    def records(self) -> DataFrame | None:
        """Class size and risks of each record of the table; None if ``assess.records`` is false."""
        return self._records("records")

    @cached_property
    def released_records(self) -> DataFrame | None:
        """The same of the release, if there is one whose records are known."""
        return self._records("released-records")

    def _records(self, name: str) -> DataFrame | None:
        if name not in self.there:
            return None
        return opened_parts(self.private, self.spark, self.place, name)

    @property
    def passed(self) -> bool | None:
        """Whether every threshold is met; None, which fails an ``assert``, if there is no threshold."""
        return self.assessment.passed

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """Each threshold, and how it came out."""
        return self.assessment.verdicts

    @property
    def measures(self) -> tuple[Measured, ...]:
        """Every number: of the table, then of the release if there is one."""
        return tuple(one for subject in self.assessment.subjects for one in subject.measured)

    def to_pandas(self) -> pd.DataFrame:
        """Return every number as a row.

        Returns
        -------
        pandas.DataFrame of shape (n_measures, 6)
            ``subject``, ``name``, ``value`` (NaN if it could not be computed), ``unit``, ``status``, ``parameters``.
        """
        return self.assessment.to_pandas()

    def __repr__(self) -> str:
        """Return the paragraph that says whether the table is anonymous."""
        return f"Assessed(passed={self.passed}): {self.assessment.paragraph}"

    def _repr_html_(self) -> str:
        return self.assessment._repr_html_()


@named()
def assess(
    table: DataFrame | None,
    policy: PolicyLike | None = None,
    *,
    quasi_identifiers: Mapping[str, Mapping[str, Any]] | None = None,
    sensitive: Sequence[str] = (),
    thresholds: Mapping[str, float] | None = None,
    record_id: str | None = None,
    output: str | Path | None = None,
    run_id: str | None = None,
    date: dt.date | None = None,
    announce: Callable[[str], object] | None = None,
) -> Assessed:
    """Measure the risk of a table, alone or against a release and a population; transform and publish nothing.

    Without `output` all files are written to a private temporary directory (mode 0700), which is removed when the
    result is closed, leaves its ``with`` block, or is no longer referred to: keep the result as long as you read its
    frames. Nothing is written beside your data.

    The frame's own session is used, with the settings a run relies on (time zone UTC, case sensitivity, ANSI, Arrow)
    set for the run and put back. A session without them computes the frame once, by its own settings, before.

    Parameters
    ----------
    table : DataFrame or None
        None is the table the policy names.
    policy : Policy, str, Path or mapping, optional
        Its columns and ``assess`` count; how it would release is not looked at.
    quasi_identifiers : mapping of str to dict, optional
        In place of a policy: the columns an attacker may know, and their hierarchies, such as ``{"zip": pr.mask(5)}``.
        Columns that are neither these nor sensitive are not looked at.
    sensitive : sequence of str
        With `quasi_identifiers`: columns an attacker wants to learn.
    thresholds : mapping of str to float, optional
        With `quasi_identifiers`: bound of each measure, such as ``{"k": 5}``; a table that misses one does not pass.
    record_id : str, optional
        With `quasi_identifiers`: column whose values name the records in `records`; by default these are digests.
    output : str or Path, optional
        Directory to write to, in place of a temporary one, which every worker must see; or a URI in an object store.
    run_id : str, optional
        Default from name, date and policy; a new one for a frame, unless the policy is private (dp) or has a history.
    date : date, optional
        Business date; default that of the policy, else today (UTC).
    announce : callable, optional
        Called with what will be measured, before it is.

    Returns
    -------
    Assessed

    Raises
    ------
    privrisk_spark.errors.InputError
        The policy, the session or the data must be mended.
    privrisk_spark.errors.EngineError
        Spark or a file system failed; running again may help.

    References
    ----------
    Each measure names its own, in the report and in :mod:`privrisk_spark.results.measures`.

    Examples
    --------
    >>> import privrisk_spark as pr
    >>> df = pr.session().createDataFrame([(34, "flu"), (36, "flu"), (36, "gout")], "age int, diagnosis string")
    >>> found = pr.assess(
    ...     df, quasi_identifiers={"age": pr.intervals(5, 10)}, sensitive=["diagnosis"], thresholds={"k": 2}
    ... )
    >>> found.passed
    False
    >>> [(verdict.name, verdict.observed) for verdict in found.verdicts]
    [('k', 1)]
    >>> found.close()
    """
    from privrisk_spark.pipelines.assess import run as pipeline
    from privrisk_spark.pipelines.assess.measured import RECORDS

    def measure(*given: Any, place: ResultPlace, **more: Any) -> tuple[Assessment, tuple[str, ...]]:
        found = pipeline.assess(*given, place=place, **more)
        return found, tuple(name for name in RECORDS.values() if place.holds(name))

    own = None if policy is None else as_policy(policy, date)
    asked = _asked(table, own, quasi_identifiers, sensitive, thresholds, record_id)
    more: dict[str, Any] = {"output": output, "run_id": run_id, "date": date, "announce": announce}
    run = run_job("assess", table, asked, measure, check=pipeline.check_output, **more)
    (found, there), report, place, private, spark = run
    return Assessed(found, report, place, private, spark, there)


def _asked(
    table: DataFrame | None,
    policy: written.Policy | None,
    quasi_identifiers: Mapping[str, Mapping[str, Any]] | None,
    sensitive: Sequence[str],
    thresholds: Mapping[str, float] | None,
    record_id: str | None,
) -> written.Policy:
    """Return the policy, or the one that the other arguments mean."""
    if policy is not None:
        if quasi_identifiers is not None or sensitive or thresholds is not None or record_id is not None:
            rule = "says this already; give a policy, or quasi_identifiers with sensitive, thresholds and record_id"
            raise ConfigError([Fault("policy", rule)])
        return policy
    if quasi_identifiers is None or table is None:
        rule = "give a policy, or a frame with quasi_identifiers such as {'zip': pr.mask(5)}"
        raise ConfigError([Fault("policy", rule)])
    from privrisk_spark.engine.session import check_frame

    check_frame(table)
    examples = {"quasi_identifiers": "{'age': pr.flat()}", "thresholds": "{'k': 5}"}
    for key, given in ("quasi_identifiers", quasi_identifiers), ("thresholds", thresholds or {}):
        if not isinstance(given, Mapping):
            rule = f"must be a mapping. Got {type(given).__name__}. Fix: write a mapping, such as {examples[key]}"
            raise ConfigError([Fault(key, rule)])
    if isinstance(sensitive, str):
        raise ConfigError([Fault("sensitive", f"must be a list of columns. Got a text. Fix: write [{sensitive!r}]")])
    columns: dict[str, dict[str, Any]] = {
        name: {"role": "quasi-identifier", "hierarchy": hierarchy} for name, hierarchy in quasi_identifiers.items()
    }
    roles = [*((name, "sensitive") for name in sensitive), *([] if record_id is None else [(record_id, "identifier")])]
    for name, role in roles:
        if name in columns:
            key = f"sensitive.{name}" if role == "sensitive" else "record_id"
            raise ConfigError(
                [Fault(key, f"'{name}' is a {columns[name]['role']} column already. Fix: give it one role")]
            )
        columns[name] = {"role": role}
    others = {name: {"role": "insensitive", "action": "drop"} for name in table.columns if name not in columns}
    named = None if record_id is None else {"record_id": record_id}
    return Policy(columns=columns | others, assess={"thresholds": dict(thresholds or {})}, table=named)
