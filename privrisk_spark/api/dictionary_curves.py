"""How risk grows with what an attacker knows, as a value."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privrisk_spark.api.jobs import JobResult, run_job
from privrisk_spark.api.policies import PolicyLike
from privrisk_spark.engine.failures import named

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame

    from privrisk_spark.results.curves import CurveResult


@dataclass(frozen=True, eq=False, repr=False)
class Curves(JobResult):
    """Risk over the size of the attacker's dictionary. All of it is exact: never publish it.

    Attributes
    ----------
    result : privrisk_spark.results.curves.CurveResult
        Arrays by sample of the dictionary and utility floor, and what a reader must know besides.
    report : Page
        What a person reads.
    place : Path or str
        Directory with ``curves.json``, ``curves.csv`` and ``curves.html``.
    private : PrivateDirectory or None
        Of a result without an output; see :meth:`close`.
    """

    result: CurveResult

    @property
    def shares(self) -> tuple[float, ...]:
        """Share of the dictionary in each sample, ascending to 1."""
        return self.result.shares

    @property
    def floors(self) -> tuple[float, ...]:
        """Least utilities, ascending."""
        return tuple(float(floor) for floor in self.result.curves.floors)

    @property
    def status(self) -> str:
        """``tested``: the records that `result.basis` names are decided exactly."""
        return self.result.status

    def to_pandas(self) -> pd.DataFrame:
        """Return one row per sample and floor.

        Returns
        -------
        pandas.DataFrame of shape (n_shares * n_floors, 9)
            ``share``, ``dictionary_rows``, ``utility_at_least``, ``mean_least_risk``, ``mean_true_risk``,
            ``mean_estimated_risk``, ``infeasible_records``, ``absent_records``, ``status``.
        """
        return self.result.to_pandas()

    def __repr__(self) -> str:
        """Return how many points there are, and what they stand for."""
        return f"Curves(shares={len(self.shares)}, floors={len(self.floors)}): {self.result.basis}"


@named()
def curves(
    table: DataFrame | None,
    policy: PolicyLike,
    *,
    shares: int = 10,
    floors: Sequence[float] | None = None,
    records: int = 20_000,
    output: str | Path | None = None,
    run_id: str | None = None,
    date: dt.date | None = None,
    announce: Callable[[str], object] | None = None,
) -> Curves:
    """Compute risk over the size of the attacker's dictionary, and true against estimated risk.

    The dictionary is cut into nested samples, and the table's distinct records are decided against each of them, for
    several utility floors. Nothing is released. Without `output` the files are in a private temporary directory (mode
    0700) that lives as long as the result.

    Parameters
    ----------
    table : DataFrame or None
        None is the table the policy names.
    policy : Policy, str, Path or mapping
        Of the kind ``risk``, with a decision of the least risk. Its first external dictionary grows, or the table
        itself; where it names an estimate and a true dictionary, the true one grows around the rows of the estimate.
    shares : int
        Nested samples of the dictionary, 2 to 100.
    floors : sequence of float, optional
        Least utilities, up to 20; default five, evenly spaced up to the greatest.
    records : int
        Most distinct records to decide; beyond, a sample of them stands for all.
    output : str or Path, optional
        Directory for ``curves.json``, ``curves.csv`` and ``curves.html``; every worker must see it.
    run_id : str, optional
        Default from name, date and policy; a new one for a frame.
    date : date, optional
        Business date; default that of the policy, else today (UTC).
    announce : callable, optional
        Called with the text of the plan once it is chosen.

    Returns
    -------
    Curves

    Raises
    ------
    privrisk_spark.errors.InputError
        The policy, the session or the data must be mended.
    privrisk_spark.errors.EngineError
        Spark or a file system failed; running again may help.

    References
    ----------
    Fouad, "Risk-aware disclosure" (thesis, 2012), Figures 3.1 and 3.3.

    Examples
    --------
    >>> import privrisk_spark as pr
    >>> df = pr.session().createDataFrame([(34, "f"), (36, "m"), (36, "f"), (61, "f")], "age int, sex string")
    >>> policy = pr.Policy(
    ...     columns={"age": pr.quasi_identifier(pr.intervals(5, 10)), "sex": pr.quasi_identifier(pr.flat("f", "m"))},
    ...     decision={"utility_at_least": 1},
    ... )
    >>> with pr.curves(df, policy, shares=2, floors=[1, 2]) as found:
    ...     found.to_pandas()[["share", "utility_at_least"]].values.tolist()
    [[0.5, 1.0], [0.5, 2.0], [1.0, 1.0], [1.0, 2.0]]
    """
    from privrisk_spark.pipelines import curves as pipeline
    from privrisk_spark.planning.curves import request_of
    from privrisk_spark.planning.places import check_request

    asked: dict[str, Any] = {"output": output, "run_id": run_id, "date": date, "announce": announce}
    how: dict[str, Any] = {"check": partial(check_request, what="curves"), "page": "curves.html"}
    request = request_of(shares, floors, records)
    return Curves(*run_job("curves", table, policy, pipeline.curves, request=request, **how, **asked)[:4])
