"""What the members of a network show each other, as a value."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privrisk_spark.api.jobs import JobResult, run_job
from privrisk_spark.api.policies import PolicyLike, with_frame
from privrisk_spark.api.workspace import opened_parts
from privrisk_spark.engine.failures import named
from privrisk_spark.errors import ConfigError, Fault
from privrisk_spark.extensions.network.policy import sharing_of
from privrisk_spark.policy.dictionaries import GIVEN

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from privrisk_spark.extensions.network.results import SharingResult
    from privrisk_spark.policy.policy import Policy
    from privrisk_spark.runs.places import ResultPlace


@dataclass(frozen=True, eq=False, repr=False)
class Shared(JobResult):
    """What the members of a network show each other. All of it is exact: never publish it.

    Attributes
    ----------
    result : privrisk_spark.extensions.network.results.SharingResult
        What is shown to friends, friends of friends and strangers, at which loss and utility.
    report : Page
        What a person reads.
    place : Path or str
        Directory with ``decisions/``, ``summary.json``, ``measures.json``, ``sharing.json`` and ``report.html``.
    private : PrivateDirectory or None
        Of a result without an output; see :meth:`close`.
    spark : SparkSession
        Which opens the decisions.
    """

    result: SharingResult
    spark: SparkSession

    @cached_property
    def decisions(self) -> DataFrame:
        """One row a pair: what ``u`` shows ``v``. Never publish it.

        ``u``, ``v``; ``relation``, friend, friend of a friend or stranger; ``common_friends``; ``level_<attribute>``,
        the steps by which the value is generalized, all there are where it is hidden; ``loss``, ``utility``, ``trust``,
        ``gap``, ``status`` and ``reason``.
        """
        return opened_parts(self.private, self.spark, self.place, "decisions")

    def __repr__(self) -> str:
        """Return what was decided, in a sentence."""
        return f"Shared({self.result.paragraph})"


@named()
def share(
    edges: DataFrame | None,
    profiles: DataFrame | None,
    policy: PolicyLike,
    *,
    output: str | Path | None = None,
    run_id: str | None = None,
    date: dt.date | None = None,
    announce: Callable[[str], object] | None = None,
) -> Shared:
    """Decide what the members of a social network show each other: which attribute, at which level, at what cost.

    Parameters
    ----------
    edges : DataFrame or None
        Who is whose friend; None is the table that ``sharing.edges`` names.
    profiles : DataFrame or None
        One row a member; None is the table the policy names.
    policy : Policy, str, Path or mapping
        Its table, columns and ``sharing`` count.
    output : str or Path, optional
        Directory for ``decisions/`` and the documents; every worker must see it. Without it the files are in a private
        temporary directory (mode 0700) that lives as long as the result.
    run_id : str, optional
        Default from name, date and policy; a new one for a frame.
    date : date, optional
        Business date; default that of the policy, else today (UTC).
    announce : callable, optional
        Called with what will be done, once the tables are open.

    Returns
    -------
    Shared

    Raises
    ------
    privrisk_spark.errors.InputError
        The policy, the session or the data must be mended.
    privrisk_spark.errors.EngineError
        Spark or a file system failed; running again may help.

    References
    ----------
    M. R. Fouad, "A framework for privacy risk assessment and mitigation" (thesis, Purdue 2012), chapter 7.

    Examples
    --------
    >>> import privrisk_spark as pr
    >>> people = [("ann", 34), ("bob", 36), ("cid", 33), ("dee", 61)]
    >>> profiles = pr.session().createDataFrame(people, "who string, age int")
    >>> friends = [("ann", "bob"), ("bob", "cid"), ("ann", "cid"), ("cid", "dee")]
    >>> edges = pr.session().createDataFrame(friends, "u string, v string")
    >>> policy = pr.Policy(
    ...     table={"record_id": "who"},
    ...     columns={"who": pr.identifier(), "age": pr.quasi_identifier(pr.intervals(10))},
    ...     sharing={"edges": {}, "model": {"lambda": 2}},
    ... )
    >>> with pr.share(edges, profiles, policy) as shared:
    ...     shown = shared.decisions.orderBy("u", "v").select("u", "v", "level_age", "reason").collect()
    >>> [tuple(row) for row in shown][:2]
    [('ann', 'bob', 1, 'shown in part'), ('ann', 'cid', 1, 'shown in part')]
    """
    from privrisk_spark.engine.settings import fixed, whole_rows_if_parsed
    from privrisk_spark.extensions.network import pipeline as pipeline

    friends: DataFrame | None = None

    def check(own: Policy, where: str) -> ResultPlace:
        nonlocal friends
        place = pipeline.check_output(own, where)
        friends = None if edges is None else whole_rows_if_parsed(fixed(edges))
        return place

    def decide(*given: Any, table: DataFrame | None = None, **more: Any) -> SharingResult:
        return pipeline.share(*given, profiles=None if profiles is None else table, edges=friends, **more)

    def prepare(own: Policy, _: bool) -> Policy:
        return _with_edges(with_frame(own, profiles is not None), edges is not None)

    first = edges if profiles is None else profiles
    asked: dict[str, Any] = {"output": output, "run_id": run_id, "date": date, "announce": announce}
    return Shared(*run_job("share", first, policy, decide, check=check, prepare=prepare, **asked))


def _with_edges(policy: Policy, given: bool) -> Policy:
    """Return the policy for a run of a given frame of edges, or of the table that it names."""
    asked = sharing_of(policy)
    if given:
        place: dict[str, Any] = {"path": None, "catalog": GIVEN, "format": "parquet", "options": {}}
        edges = asked.edges.model_copy(update=place)
        return policy.model_copy(update={"sharing": asked.model_copy(update={"edges": edges})})
    if asked.edges.catalog == GIVEN:
        rule = "the policy names none, so a frame must be given; or write edges={'path': …} or {'catalog': …}"
        raise ConfigError([Fault("sharing.edges", rule)])
    return policy
