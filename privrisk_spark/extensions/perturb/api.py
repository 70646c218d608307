"""Masking a table as its policy says, as a value."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from privrisk_spark.api.policies import PolicyLike, as_policy
from privrisk_spark.api.releasing import Released, release
from privrisk_spark.extensions.perturb.rules import refuse_other_kinds

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def mask_table(
    table: DataFrame | None,
    policy: PolicyLike,
    *,
    output: str | Path | None = None,
    vault: str | Path | None = None,
    run_id: str | None = None,
    date: dt.date | None = None,
    accept_undecided: bool = False,
    announce: Callable[[str], object] | None = None,
) -> Released:
    """Mask the columns of a table as its policy says, and publish it; nothing is guaranteed.

    It is :func:`release` of a policy of the kind ``masked``, and of no other.

    Parameters
    ----------
    table : DataFrame or None
        None is the table the policy names.
    policy : Policy, str, Path or mapping
        With ``guarantee={"kind": "masked"}``, and a ``mask`` for every quasi-identifier.
    output : str or Path, optional
        Directory of published releases, or its URI in an object store, in place of ``output.path``.
    vault : str or Path, optional
        Directory of what must not be published, in place of ``output.vault``.
    run_id : str, optional
        Default from name, date and policy; a new one for a frame.
    date : date, optional
        Business date; default that of the policy, else today (UTC).
    accept_undecided : bool
        Release by the proposals for the columns in ``undecided``; else they are an error.
    announce : callable, optional
        Called with the plan once it is chosen.

    Returns
    -------
    Released

    Raises
    ------
    privrisk_spark.errors.InputError
        The policy, the session or the data must be mended; also if the policy is of another kind.
    privrisk_spark.errors.RefusedError
        A check forbids the release; nothing was published.
    privrisk_spark.errors.EngineError
        Spark or a file system failed; running again may help.

    References
    ----------
    Domingo-Ferrer and Torra, "Ordinal, continuous and heterogeneous k-anonymity through microaggregation", Data Mining
    and Knowledge Discovery 11, 2005, doi:10.1007/s10618-005-0007-5.

    Examples
    --------
    >>> import privrisk_spark as pr
    >>> rows = [(30 + i, 100 * i, "flu") for i in range(12)]
    >>> df = pr.session().createDataFrame(rows, "age int, income int, diagnosis string")
    >>> together = {"method": "microaggregation", "k": 3}
    >>> policy = pr.Policy(
    ...     columns={
    ...         "age": pr.quasi_identifier(mask=together),
    ...         "income": pr.quasi_identifier(mask=together),
    ...         "diagnosis": pr.sensitive(),
    ...     },
    ...     guarantee={"kind": "masked"},
    ... )
    >>> with pr.mask_table(df, policy) as done:
    ...     done.manifest["guarantee"]["parameters"]["k"], done.data.groupBy("age", "income").count().count()
    (3, 4)
    """
    policy = as_policy(policy, date)
    refuse_other_kinds(policy)
    return release(
        table,
        policy,
        output=output,
        vault=vault,
        run_id=run_id,
        date=date,
        accept_undecided=accept_undecided,
        announce=announce,
    )
