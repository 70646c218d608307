"""What a run would do, without doing it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from privrisk_spark.api.policies import PolicyLike, as_policy, placed, settle_run, with_frame
from privrisk_spark.engine.failures import named
from privrisk_spark.errors import ConfigError, Fault
from privrisk_spark.policy import policy as written
from privrisk_spark.policy.reading import load_with_faults
from privrisk_spark.policy.rules.release import impossible
from privrisk_spark.results.plan import Plan
from privrisk_spark.results.validation import Job, Validation
from privrisk_spark.storage.temporary import temporary_root

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@named()
def plan(
    table: DataFrame | None,
    policy: PolicyLike,
    *,
    of: Literal["release", "assess"] = "release",
    run_id: str | None = None,
    date: dt.date | None = None,
    accept_undecided: bool = False,
) -> Plan:
    """Check everything a run needs and say what it would do; write nothing.

    Parameters
    ----------
    table : DataFrame or None
        None is the table the policy names.
    policy : Policy, str, Path or mapping
        To release by it, it needs a decision, or a guarantee that needs none; no output.
    of : {"release", "assess"}
        Which run.
    run_id : str, optional
        Default from name, date and policy; a new one for a frame, unless it is private (dp) or has a history.
    date : date, optional
        Business date; default that of the policy, else today (UTC).
    accept_undecided : bool
        As for :func:`release`.

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
    >>> df = pr.session().createDataFrame([(34, "Ulm"), (36, "Bonn")], "age int, city string")
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
    from privrisk_spark.engine.session import held

    policy = as_policy(policy, date)
    if accept_undecided:
        policy = policy.model_copy(update={"undecided": ()})
    run, day = settle_run(policy, run_id, date, given=table is not None)
    asked = _for_release(policy, table is not None) if of == "release" else with_frame(policy, table is not None)
    encrypt = of == "release" and (not asked.decides or asked.history is not None)
    with held(table, f"privrisk plan {asked.run.name}", encrypt=encrypt, engine=asked.run.engine) as (spark, given):
        from privrisk_spark.pipelines.validation.run import plan_only

        return Plan(plan_only(spark, asked, job=of, run_id=run, date=day, table=given), run)


def _for_release(policy: written.Policy, given: bool) -> written.Policy:
    """The policy with places, those that nothing is written to where it has none: for the rules that look at them."""
    asked = with_frame(policy, given)
    if asked.output is not None:
        return placed(asked, asked.places.path, asked.places.vault)
    nowhere = temporary_root() / "privrisk-plan"
    return placed(asked, nowhere / "release", nowhere / "vault")


@named()
def validate(
    table: DataFrame | None,
    policy: PolicyLike | Sequence[str | Path],
    *,
    of: Job | None = None,
    output: str | Path | None = None,
    overrides: Sequence[str] = (),
    run_id: str | None = None,
    date: dt.date | None = None,
) -> Validation:
    """Look at everything a run needs, and return every fault at once; write nothing.

    The policy's keys, the table's schema, its values against the hierarchies, dictionaries, the places that would be
    written to, the privacy budget; and what the run would do, if nothing is wrong.

    Parameters
    ----------
    table : DataFrame or None
        None is the table the policy names.
    policy : Policy, mapping, or path of one or several YAML files
        Of files that are no policy yet, the faults are returned too.
    of : {"release", "assess", "attack", "share"}, optional
        Which run. By default a release if the policy has an output; else what it has a section for, ``assess``,
        ``attack`` or ``sharing``; else a release.
    output : str or Path, optional
        Where an assessment, an attack or decisions of sharing would be written.
    overrides : sequence of str
        With files: ``dotted.key=value``.
    run_id : str, optional
        Default from name, date and policy; a new one for a frame.
    date : date, optional
        Business date; default that of the policy, else today (UTC).

    Returns
    -------
    Validation
        ``valid``, ``faults`` and what was looked at; its text is what ``privrisk validate`` prints.

    Raises
    ------
    privrisk_spark.errors.EngineError
        Spark or a file system failed; running again may help.

    Examples
    --------
    >>> import privrisk_spark as pr
    >>> df = pr.session().createDataFrame([(34, "Ulm"), (36, "Kiel")], "age int, town string")
    >>> policy = pr.Policy(
    ...     columns={
    ...         "age": pr.quasi_identifier(pr.intervals(5, 10, domain=(0, 30))),
    ...         "town": pr.quasi_identifier(pr.flat("Bonn", "Ulm")),
    ...     },
    ...     decision={"utility_at_least": 2},
    ... )
    >>> [fault.path for fault in pr.validate(df, policy).faults]
    ['columns.age.hierarchy', 'columns.town.hierarchy']
    """
    from privrisk_spark.engine.session import held
    from privrisk_spark.pipelines.validation.run import validate as look

    today = date or dt.datetime.now(dt.UTC).date()
    faults: list[Fault] = []
    found: written.Policy | None
    if isinstance(policy, written.Policy | Mapping):
        try:
            found = as_policy(policy)
        except ConfigError as error:
            found, faults = None, list(error.faults)
    else:
        files = [policy] if isinstance(policy, str | Path) else list(policy)
        framed = table is not None
        found, faults = load_with_faults(files, overrides=overrides, date=today, releasing=False, frames=framed)
    if found is None:
        return Validation(of or "release", run_id or "", (), tuple(faults), (), (), None)
    job, day = of or _job_of(found), found.run.date or today
    try:
        run = settle_run(found, run_id, date, given=table is not None)[0]
        asked = with_frame(found, table is not None)
        if job == "release" and (table is None or asked.output is not None):
            faults = list(dict.fromkeys([*faults, *impossible(asked, releasing=True)]))
        elif job == "release" and not faults:
            asked = _for_release(found, given=True)
    except ConfigError as error:
        return Validation(job, run_id or "", (), (*faults, *error.faults), (), (), None)
    with held(table, f"privrisk validate {asked.run.name}", encrypt=False, engine=asked.run.engine) as (
        spark,
        given,
    ):
        where = None if output is None else str(output)
        return look(spark, asked, job=job, run_id=run, date=day, table=given, output=where, faults=faults)


def _job_of(policy: written.Policy) -> Job:
    """What a policy is for, if nobody says."""
    sections: dict[str, Job] = {"output": "release", "assess": "assess", "attack": "attack", "sharing": "share"}
    return next((job for part, job in sections.items() if part in policy.model_fields_set), "release")
