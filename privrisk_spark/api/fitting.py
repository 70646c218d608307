"""A scheme for a table that is to be k-anonymous: fitted, looked at, approved, and then applied by a release."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privrisk_spark.api.jobs import run_job
from privrisk_spark.api.policies import PolicyLike
from privrisk_spark.api.workspace import Closeable
from privrisk_spark.engine.failures import named
from privrisk_spark.errors import ConfigError, Fault
from privrisk_spark.policy.schemes import FittedPartition, FittedScheme, read_scheme
from privrisk_spark.results.page import html_table
from privrisk_spark.storage.temporary import PrivateDirectory

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from privrisk_spark.policy.policy import Policy
    from privrisk_spark.runs.places import ResultPlace


@dataclass(frozen=True, eq=False, repr=False)
class Fitted(Closeable):
    """A scheme that was fitted to a table. Its figures are exact: never publish them.

    Attributes
    ----------
    scheme : privrisk_spark.policy.schemes.FittedScheme or privrisk_spark.policy.schemes.FittedPartition
        As the file has it.
    place : Path
        The file, which ``guarantee.scheme`` names.
    private : PrivateDirectory or None
        Of a result without an output; see :meth:`close`.
    """

    scheme: FittedScheme | FittedPartition
    place: Path
    private: PrivateDirectory | None

    @property
    def levels(self) -> dict[str, int] | None:
        """Level of each quasi-identifier; None where classes have levels of their own."""
        if isinstance(self.scheme, FittedPartition):
            return None
        return {column.name: column.level for column in self.scheme.columns}

    @property
    def classes(self) -> int:
        """Classes of the table that are released."""
        return self.scheme.achieved.classes

    @property
    def rows(self) -> int:
        """Rows of the table."""
        return self.scheme.achieved.rows

    @property
    def suppressed(self) -> int:
        """Rows of the table that the scheme suppresses."""
        return self.scheme.achieved.suppressed

    @property
    def metric(self) -> str:
        """Name of the metric that was minimised."""
        return self.scheme.achieved.metric.name

    @property
    def value(self) -> float:
        """What the scheme costs by it."""
        return self.scheme.achieved.metric.value

    @property
    def optimal(self) -> bool:
        """Whether it is proved that no scheme costs less."""
        return isinstance(self.scheme, FittedScheme) and self.scheme.optimal

    @property
    def digest(self) -> str:
        """SHA-256 of what is approved, hex."""
        return self.scheme.digest()

    @property
    def approved_by(self) -> str | None:
        """Who has approved what it holds; None: nobody."""
        return None if self.scheme.approval is None else self.scheme.approval.by

    def approve(self, by: str) -> Fitted:
        """Approve it, in its file; see :func:`approve`."""
        found = approve(self.place, by=by)
        return Fitted(found.scheme, found.place, self.private)

    def __repr__(self) -> str:
        """Return the levels, or how many classes there are, and what they cost."""
        what = f"{self.classes:,} classes" if self.levels is None else self.levels
        return f"Fitted({what}): {self.metric} {self.value:.6g}, {self.suppressed:,} of {self.rows:,} suppressed"

    def _repr_html_(self) -> str:
        levels = self.levels or {}
        rows = [(one.name, str(levels.get(one.name, "by class")), str(one.height)) for one in self.scheme.columns]
        return html_table(repr(self), ("quasi-identifier", "level", "height"), rows)


@named()
def fit(
    table: DataFrame | None,
    policy: PolicyLike,
    *,
    output: str | Path | None = None,
    run_id: str | None = None,
    date: dt.date | None = None,
    announce: Callable[[str], object] | None = None,
) -> Fitted:
    """Search for the scheme that makes a table k-anonymous at the least cost; nothing is released.

    A release by ``guarantee: {kind: k-anonymity, …, scheme: FILE}`` applies it to another batch once it is approved.
    Without `output` the file is in a private temporary directory (mode 0700) that lives as long as the result.

    Parameters
    ----------
    table : DataFrame or None
        None is the table the policy names.
    policy : Policy, str, Path or mapping
        Of the kind ``k-anonymity``.
    output : str or Path, optional
        Directory for ``scheme.json``; every worker must see it.
    run_id : str, optional
        Default from name, date and policy; a new one for a frame, unless the policy is private (dp) or has a history.
    date : date, optional
        Business date; default that of the policy, else today (UTC).
    announce : callable, optional
        Called with what will be done, once the tables are open.

    Returns
    -------
    Fitted

    Raises
    ------
    privrisk_spark.errors.InputError
        The policy, the session or the data must be mended.
    privrisk_spark.errors.RefusedError
        No scheme meets what is asked.
    privrisk_spark.errors.EngineError
        Spark or a file system failed; running again may help.

    References
    ----------
    Samarati, "Protecting respondents' identities in microdata release", IEEE TKDE 13(6), 2001.

    Examples
    --------
    >>> import privrisk_spark as pr
    >>> df = pr.session().createDataFrame([(34, "f"), (36, "m"), (36, "f"), (61, "f")], "age int, sex string")
    >>> policy = pr.Policy(
    ...     columns={"age": pr.quasi_identifier(pr.intervals(5, 10, domain=(0, 99))),
    ...              "sex": pr.quasi_identifier(pr.flat("f", "m"))},
    ...     guarantee={"kind": "k-anonymity", "k": 2, "suppression_limit": 0.25},
    ... )
    >>> with pr.fit(df, policy) as found:
    ...     found.levels, found.suppressed
    ({'age': 3, 'sex': 0}, 1)
    """
    from privrisk_spark.pipelines import fit as pipeline

    def check(own: Policy, where: str) -> ResultPlace:
        pipeline.refuse_other_guarantees(own)
        return pipeline.check_output(own, where)

    asked: dict[str, Any] = {"output": output, "run_id": run_id, "date": date, "announce": announce}
    scheme, _, place, private, _ = run_job("fit", table, policy, pipeline.fit, check=check, **asked)
    return Fitted(scheme, Path(place) / pipeline.SCHEME, private)


def approve(scheme: str | Path, *, by: str) -> Fitted:
    """Approve a fitted scheme as it is now, in its file.

    Parameters
    ----------
    scheme : str or Path
        File that :func:`fit` wrote, on a disk.
    by : str
        Who has looked at it.

    Returns
    -------
    Fitted

    Raises
    ------
    privrisk_spark.errors.ConfigError
        If the file is not a scheme, or no approver is named.

    Examples
    --------
    >>> import pathlib, tempfile, privrisk_spark as pr
    >>> df = pr.session().createDataFrame([("f", 1), ("m", 1), ("f", 2), ("m", 2)], "sex string, n int")
    >>> columns = {"sex": pr.quasi_identifier(pr.flat("f", "m")), "n": pr.insensitive()}
    >>> asked = {"kind": "k-anonymity", "k": 2}
    >>> place = pathlib.Path(tempfile.mkdtemp(), "fit")
    >>> pr.fit(df, pr.Policy(columns=columns, guarantee=asked), output=place).approved_by is None
    True
    >>> scheme = pr.approve(place / "scheme.json", by="A. Officer").place
    >>> policy = pr.Policy(columns=columns, guarantee={**asked, "scheme": str(scheme)})
    >>> with pr.release(df, policy) as released:
    ...     released.manifest["guarantee"]["parameters"]["levels"]
    {'sex': 0}
    """
    from privrisk_spark.storage.documents import write_json

    if not by.strip():
        raise ConfigError([Fault("--by", "must name who approves the scheme")])
    found = read_scheme(str(scheme), key="SCHEME")
    approved = found.approved(by.strip(), dt.datetime.now(dt.UTC).replace(microsecond=0))
    write_json(Path(scheme), approved.model_dump(mode="json"))
    return Fitted(approved, Path(scheme), None)
