"""Whether the differential privacy of a policy's mechanism can be refuted, as a value."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privrisk_spark.api.jobs import JobResult, run_job
from privrisk_spark.api.policies import PolicyLike
from privrisk_spark.engine.failures import named

if TYPE_CHECKING:
    from privrisk_spark.results.audit import AuditResult


@dataclass(frozen=True, eq=False, repr=False)
class Audited(JobResult):
    """What an audit found. It reads nothing of the policy's table, so it may be shown to anybody.

    Attributes
    ----------
    result : privrisk_spark.results.audit.AuditResult
        Every experiment with what is claimed and what was found.
    report : Page
        What a person reads.
    place : Path or str
        Directory with ``audit.json`` and ``audit.html``.
    private : PrivateDirectory or None
        Of a result without an output; see :meth:`close`.
    """

    result: AuditResult

    @property
    def passed(self) -> bool:
        """Whether nothing is flagged."""
        return self.result.passed

    @property
    def flags(self) -> tuple[tuple[str, str], ...]:
        """Part of the audit and what it found, of everything that should not be."""
        return tuple(self.result.flags)

    def __repr__(self) -> str:
        """Return the verdict and what is flagged."""
        return f"Audited(passed={self.passed}, flags={list(self.flags)})"


@named()
def audit(
    policy: PolicyLike,
    *,
    trials: int = 20_000,
    seed: int = 1,
    output: str | Path | None = None,
    run_id: str | None = None,
    date: dt.date | None = None,
) -> Audited:
    """Try to refute the differential privacy of a policy's mechanism, by releases of adversarial tables.

    An audit refutes claims and proves none. Nothing of the policy's table is read, no ledger is asked, and nothing is
    released. The session is the one that is there, or a new local one. Without `output` the files are in a private
    temporary directory (mode 0700) that lives as long as the result.

    Parameters
    ----------
    policy : Policy, str, Path or mapping
        With a guarantee of the kind ``dp``.
    trials : int
        Releases of each adversarial table, at least 1,000.
    seed : int
        Public; the same seed gives the same audit. No release is drawn by it.
    output : str or Path, optional
        Directory for ``audit.json`` and ``audit.html``; every worker must see it.
    run_id : str, optional
        Default from name, date and policy.
    date : date, optional
        Business date; default that of the policy, else today (UTC).

    Returns
    -------
    Audited

    Raises
    ------
    privrisk_spark.errors.InputError
        The policy makes no claim of differential privacy, or must be mended.
    privrisk_spark.errors.EngineError
        Spark or a file system failed; running again may help.

    References
    ----------
    Jagielski, Ullman and Oprea, "Auditing Differentially Private Machine Learning", NeurIPS 2020.

    Examples
    --------
    >>> import privrisk_spark as pr
    >>> policy = pr.Policy(columns={"age": pr.quasi_identifier(pr.intervals(5, 10))})
    >>> pr.audit(policy)
    Traceback (most recent call last):
    ...
    privrisk_spark.errors.InputError: guarantee.kind: an audit refutes claims of differential privacy, ...
    """
    from privrisk_spark.pipelines import audit as pipeline

    asked: dict[str, Any] = {"output": output, "run_id": run_id, "date": date, "trials": trials, "seed": seed}
    how: dict[str, Any] = {"page": "audit.html", "prepare": lambda own, _: own, "retries": True}
    return Audited(*run_job("audit", None, policy, pipeline.audit, check=pipeline.check_output, **how, **asked)[:4])
