"""What several releases of one table disclose together, as a value."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privrisk_spark.api.jobs import JobResult, run_job
from privrisk_spark.api.policies import PolicyLike
from privrisk_spark.engine.failures import named

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame

    from privrisk_spark.results.composition import Composition, DisclosedRisk


@dataclass(frozen=True, eq=False, repr=False)
class Composed(JobResult):
    """Risk of records after several releases of them. All of it is exact: never publish it.

    Attributes
    ----------
    result : privrisk_spark.results.composition.Composition
    report : Page
        What a person reads.
    place : Path or str
        Directory with ``composition.html``, ``composition.json`` and ``measures.json``.
    private : PrivateDirectory or None
        Of a result without an output; see :meth:`close`.
    """

    result: Composition

    @property
    def releases(self) -> tuple[DisclosedRisk, ...]:
        """Risk after each release alone, by date."""
        return self.result.releases

    @property
    def together(self) -> DisclosedRisk:
        """Risk after all of them."""
        return self.result.together

    @property
    def risen(self) -> int:
        """Records whose risk after all releases is greater than after any one alone."""
        return self.result.risen

    @property
    def status(self) -> str:
        """``tested``: the risk of each record is computed exactly, by the counts of now."""
        return "tested"

    def to_pandas(self) -> pd.DataFrame:
        """Return a row for each release, by date, and one for all of them.

        Returns
        -------
        pandas.DataFrame of shape (n_releases + 1, 8)
            ``run_id`` (missing in the last row), ``date``, ``records``, ``changed``, ``mean_risk``, ``min_risk``,
            ``max_risk``, ``status``.
        """
        import pandas as pd

        return pd.DataFrame(
            [
                {
                    "run_id": None if one.release is None else one.release["run_id"],
                    "date": None if one.release is None else one.release["date"],
                    "records": one.records,
                    "changed": one.changed,
                    "mean_risk": one.risk.mean,
                    "min_risk": one.risk.min,
                    "max_risk": one.risk.max,
                    "status": self.status,
                }
                for one in (*self.releases, self.together)
            ]
        )

    def __repr__(self) -> str:
        """Return what was found, in words."""
        return f"Composed(releases={len(self.releases)}): {self.result.paragraph}"

    def _repr_html_(self) -> str:
        return self.report._repr_html_()


@named()
def compose(
    table: DataFrame | None,
    policy: PolicyLike,
    *,
    output: str | Path | None = None,
    run_id: str | None = None,
    date: dt.date | None = None,
) -> Composed:
    """Find the risk of each record after the earlier releases that a policy names; release nothing.

    Without `output` the files are in a private temporary directory (mode 0700) that lives as long as the result.

    Parameters
    ----------
    table : DataFrame or None
        The table of now, whose records and dictionary count. None is the table the policy names.
    policy : Policy, str, Path or mapping
        With ``history``, which names vaults or manifests of releases, or a lineage; how it would release is not looked
        at.
    output : str or Path, optional
        Directory for ``composition.html``, ``composition.json`` and ``measures.json``; every worker must see it.
    run_id : str, optional
        Default from name, date and policy; a new one for a frame, unless the policy is private (dp) or has a history.
    date : date, optional
        Business date; default that of the policy, else today (UTC).

    Returns
    -------
    Composed

    Raises
    ------
    privrisk_spark.errors.InputError
        The policy, the session or the data must be mended.
    privrisk_spark.errors.EngineError
        Spark or a file system failed; running again may help.

    Examples
    --------
    >>> import tempfile
    >>> import privrisk_spark as pr
    >>> place = tempfile.mkdtemp()
    >>> df = pr.session().createDataFrame(
    ...     [("a", 34, "f"), ("b", 36, "m"), ("c", 36, "f"), ("d", 61, "f")], "id string, age int, sex string"
    ... )
    >>> def policy(history, weights):
    ...     return pr.Policy(
    ...         run={"name": "visits"},
    ...         table={"record_id": "id"},
    ...         columns={
    ...             "id": pr.identifier(),
    ...             "age": pr.quasi_identifier(pr.intervals(5, 10, domain=(0, 99))),
    ...             "sex": pr.quasi_identifier(pr.flat("f", "m")),
    ...         },
    ...         utility={"measure": "depth", "weights": weights},
    ...         decision={"utility_at_least": 1},
    ...         history=history,
    ...         output={"path": f"{place}/releases", "vault": f"{place}/vault"},
    ...     )
    >>> for day, weights in {"monday": {"age": 1, "sex": 0}, "tuesday": {"age": 0, "sex": 1}}.items():
    ...     pr.release(df, policy([], weights), run_id=day).close()
    >>> with pr.compose(df, policy({"lineage": "visits"}, {})) as found:
    ...     found.risen, found.to_pandas()[["run_id", "records"]].values.tolist()
    (4, [['monday', 4], ['tuesday', 4], [None, 4]])
    """
    from privrisk_spark.pipelines import composition as pipeline

    asked: dict[str, Any] = {"output": output, "run_id": run_id, "date": date}
    how: dict[str, Any] = {"page": "composition.html", "encrypt": True}
    return Composed(
        *run_job("assess", table, policy, pipeline.compose, check=pipeline.check_output, **how, **asked)[:4]
    )
