"""What a run would do, without doing it."""

from __future__ import annotations

import datetime as dt
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from privrisk_spark.api.policies import placed, with_frame
from privrisk_spark.policy import policy as written
from privrisk_spark.policy.reading import check_run_id
from privrisk_spark.results.plan import Plan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def plan(
    table: DataFrame | None,
    policy: written.Policy,
    *,
    of: Literal["release", "assess"] = "release",
    run_id: str | None = None,
    date: dt.date | None = None,
) -> Plan:
    """Check everything a run needs and say what it would do; write nothing.

    Parameters
    ----------
    table : DataFrame or None
        None is the table the policy names.
    policy : Policy
        To release by it, it needs a decision, or a guarantee that needs none; no output.
    of : {"release", "assess"}
        Which run.
    run_id : str, optional
        Default from name, date and policy.
    date : date, optional
        Business date; default that of the policy, else today (UTC).

    Returns
    -------
    Plan
        Its text is what ``--dry-run`` prints. Where leaves of hierarchies come from the data, lattice and counting plan
        are left open.

    Raises
    ------
    privrisk_spark.errors.InputError
        The policy, the session or the schema must be mended.
    privrisk_spark.errors.BudgetError
        The privacy budget does not allow the release.
    privrisk_spark.errors.EngineError
        Spark or a file system failed; running again may help.

    Examples
    --------
    >>> import privrisk_spark as pr
    >>> df = spark.createDataFrame([(34, "Ulm"), (36, "Bonn")], "age int, city string")
    >>> policy = pr.Policy(
    ...     columns={
    ...         "age": pr.quasi_identifier(pr.intervals(5, 10, domain=(0, 99))),
    ...         "city": pr.quasi_identifier(pr.flat("Bonn", "Ulm")),
    ...     },
    ...     decision={"utility_at_least": 2},
    ... )
    >>> "lattice" in str(pr.plan(df, policy))
    True
    """
    from privrisk_spark.engine.failures import named

    with named():
        from privrisk_spark.engine.session import held

        day = policy.run.date or date or dt.datetime.now(dt.UTC).date()
        run = check_run_id(policy.run_id(day) if run_id is None else run_id)
        asked = with_frame(policy, table is not None)
        if of == "release" and asked.output is None:
            # Places nothing is written to, for the rules that look at places.
            nowhere = Path(tempfile.gettempdir(), "privrisk-plan")
            asked = placed(asked, nowhere / "release", nowhere / "vault")
        elif of == "release":
            asked = placed(asked, asked.places.path, asked.places.vault)
        encrypt = of == "release" and not asked.decides
        with held(table, f"privrisk plan {asked.run.name}", encrypt=encrypt) as (spark, given):
            if of == "assess":
                from privrisk_spark.pipelines.assess.run import plan_only as assessment_plan

                return Plan(assessment_plan(spark, asked, table=given), run)
            from privrisk_spark.pipelines.plan import plan_only

            return Plan(plan_only(spark, asked, run_id=run, date=day, table=given), run)
