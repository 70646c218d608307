"""How many records of a release can be found, as a value."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privrisk_spark.api.jobs import JobResult, run_job
from privrisk_spark.api.policies import PolicyLike
from privrisk_spark.api.workspace import opened_parts
from privrisk_spark.engine.failures import named

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from privrisk_spark.extensions.attack.results.attacks import AttackResult


@dataclass(frozen=True, eq=False, repr=False)
class Attacked(JobResult):
    """What an attack on a protected table has found. All of it is exact: never publish it.

    Attributes
    ----------
    result : privrisk_spark.extensions.attack.results.attacks.AttackResult
        What was found, with limits, beside what guessing finds and what was predicted.
    report : Page
        What a person reads.
    place : Path or str
        Directory with ``attack.json``, ``measures.json``, ``report.html`` and ``pairs/``.
    private : PrivateDirectory or None
        Of a result without an output; see :meth:`close`.
    spark : SparkSession
        Which opens the pairs.
    """

    result: AttackResult
    spark: SparkSession

    @property
    def passed(self) -> bool | None:
        """Whether no more is found than the thresholds of ``attack`` allow; None if there is no threshold."""
        return self.result.passed

    @property
    def share(self) -> float:
        """Share of the records, or persons, whom the strongest attack finds; 0 where no links were tried."""
        strongest = self.result.strongest
        return 0.0 if strongest is None else strongest.found.share

    @cached_property
    def pairs(self) -> Mapping[str, DataFrame]:
        """By attack, one row a record that was tried: never publish it.

        ``person-nearest`` looks for a person's row, taking a generalized cell for the nearest value it covers, and
        ``row-uniform`` for a row's person, taking it for any of them; and so on. ``record_id``; ``distance``, the least
        there is; ``tied_rows``, candidates at that distance; ``own_row_is_nearest``, whether the record's own is among
        them; ``rows_alike``, candidates that look like its own; ``present``, the probability that its own is a
        candidate; ``begun``, the probability that he can begin with it; ``consistent``, the dictionary rows it was
        decided by.

        Where persons may have several rows, ``entity`` is the person, and ``rows`` of the person are alike;
        ``own_rows_nearest``, how many of the candidates are expected to be of the same person.

        Where it is not known whose each row is, a pair names both: ``record_id`` of the person; ``row_<column>``, the
        labels of the protected row; ``rows`` that look like it; ``distance``; ``tied_rows``. Of several people or rows
        at the least distance it is the first.
        """
        return {
            name: opened_parts(self.private, self.spark, self.place, f"pairs/{name}")
            for name in (search.key for search in self.result.searches if search.one_by_one)
        }

    def __repr__(self) -> str:
        """Return what was found, in a sentence."""
        return f"Attacked({self.result.paragraph})"


@named()
def attack(
    table: DataFrame | None,
    policy: PolicyLike,
    *,
    output: str | Path | None = None,
    run_id: str | None = None,
    date: dt.date | None = None,
    announce: Callable[[str], object] | None = None,
) -> Attacked:
    """Attack a release by record linkage, and say how many of the records are found.

    Somebody who knows the quasi-identifiers of the people in the table links each of them to the released rows that are
    nearest, and each released row to the people who are nearest, by a weighted mean of differences: levels of the
    hierarchies, or numbers in standard deviations. The vault tells which link is right. Nothing is released. Without
    `output` the files are in a private temporary directory (mode 0700) that lives as long as the result.

    Parameters
    ----------
    table : DataFrame or None
        The original records; None is the table the policy names.
    policy : Policy, str, Path or mapping
        Its table, columns and ``attack`` count. By default what it released last is attacked, by all its
        quasi-identifiers.
    output : str or Path, optional
        Directory for ``attack.json``, ``measures.json``, ``report.html`` and ``pairs/``; every worker must see it.
    run_id : str, optional
        Default from name, date and policy; a new one for a frame, unless the policy is private (dp) or has a history.
    date : date, optional
        Business date; default that of the policy, else today (UTC).
    announce : callable, optional
        Called with what will be done, once the tables are open.

    Returns
    -------
    Attacked

    Raises
    ------
    privrisk_spark.errors.InputError
        The policy, the session or the data must be mended.
    privrisk_spark.errors.EngineError
        Spark or a file system failed; running again may help.

    References
    ----------
    V. Torra, "Privacy models and disclosure risk" (2020), record linkage. C. Clopper, E. Pearson, Biometrika 26 (1934).

    Examples
    --------
    >>> import privrisk_spark as pr
    >>> df = pr.session().createDataFrame([("a", 34), ("b", 36), ("c", 61), ("d", 67)], "id string, age int")
    >>> rows = [("a", "[30,40)"), ("b", "[30,40)"), ("c", "61"), ("d", "*")]
    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/masked"
    >>> pr.session().createDataFrame(rows, "id string, age string").write.parquet(path)
    >>> policy = pr.Policy(
    ...     table={"record_id": "id"},
    ...     columns={"id": pr.identifier(), "age": pr.quasi_identifier(pr.intervals(10))},
    ...     attack={"protected": {"path": path, "record_id": "id"}},
    ... )
    >>> with pr.attack(df, policy) as found:
    ...     [(one.search.key, round(one.found.correct, 3)) for one in found.result.attacks]
    [('row-nearest', 2.25), ('row-uniform', 2.25), ('person-nearest', 2.167), ('person-uniform', 2.0)]
    """
    from privrisk_spark.extensions.attack.pipeline import run as pipeline

    asked: dict[str, Any] = {"output": output, "run_id": run_id, "date": date, "announce": announce}
    return Attacked(*run_job("attack", table, policy, pipeline.attack, check=pipeline.check_output, **asked))
