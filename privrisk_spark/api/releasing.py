"""Releasing a table as its policy says, as a value."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privrisk_spark.api.policies import PolicyLike, as_policy, placed, settle_run, with_frame
from privrisk_spark.api.workspace import Closeable, check_reach, opened
from privrisk_spark.engine.failures import named
from privrisk_spark.errors import ConfigError, Fault
from privrisk_spark.policy import policy as written
from privrisk_spark.policy.reading import check_run_id
from privrisk_spark.results.page import Page
from privrisk_spark.results.withdrawal import Withdrawal
from privrisk_spark.storage.temporary import PrivateDirectory

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from privrisk_spark.pipelines.release.run import Outcome
    from privrisk_spark.storage.locations import Location


@dataclass(frozen=True, eq=False, repr=False)
class Released(Closeable):
    """A release, and what the vault holds of its run.

    Attributes
    ----------
    run_id : str
    fresh : bool
        False if the run id's release was there already: it was returned as it is, and nothing was read.
    manifest : mapping
        What a consumer gets: guarantee, columns, files, checks.
    report : Page
        Public edition of the report, as it is published with the data.
    vault_report : Page or None
        Of the vault, never to be published: the report with exact figures. None if a later run has replaced it.
    place : Path or str
        Directory of the release; its URI in an object store.
    vault : Path or str
        Directory of what must not be published; in an object store, the URI of what this run left.
    private : PrivateDirectory or None
        Of a result without an output; see :meth:`close`.
    spark : SparkSession
        Which opens the frames.
    output : privrisk_spark.policy.policy.Output
        How they were written.
    data_at : privrisk_spark.storage.locations.Location
        Where the released rows lie.
    checks : list of dict
        What was checked, as published.
    """

    run_id: str
    fresh: bool
    manifest: Mapping[str, Any]
    report: Page
    vault_report: Page | None
    place: Path | str
    vault: Path | str
    private: PrivateDirectory | None
    spark: SparkSession
    output: written.Output
    data_at: Location
    checks: Sequence[Mapping[str, Any]]

    @cached_property
    def data(self) -> DataFrame:
        """The released rows."""
        from privrisk_spark.tables.released import Partitions, read_published

        published, key = Partitions.of_manifest(self.manifest), "output.path"
        return opened(
            self.private,
            self.spark,
            lambda: read_published(self.spark, self.output, self.data_at, key=key, partitions=published),
        )

    @cached_property
    def decisions(self) -> DataFrame | None:
        """Each record's generalization, and under a risk guarantee its exact risk and utility: never publish it.

        Of the vault; None if a later run has replaced it.
        """
        if self.vault_report is None:
            return None
        from privrisk_spark.storage.locations import locate
        from privrisk_spark.tables.released import parts_at

        decisions = locate(str(self.vault), key="output.vault").below("decisions")
        return opened(self.private, self.spark, lambda: parts_at(self.spark, decisions))

    def __repr__(self) -> str:
        """Say what was released and what it promises."""
        kind = self.manifest["guarantee"]["kind"]
        return f"Released({self.manifest['rows']:,} rows, run id {self.run_id}, guarantee {kind})"

    def _repr_html_(self) -> str:
        # The trusted zone's edition, where there is one: a notebook that can release has the table too.
        return (self.vault_report or self.report).framed()


@named()
def release(
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
    """Read, encode, count, decide, validate and publish a table as its policy says.

    Where neither an argument nor the policy names a place, it is in a private temporary directory (mode 0700), which is
    removed when the result is closed, leaves its ``with`` block, or is no longer referred to: keep the result as long
    as you read its frames. Nothing is written beside your data. A differentially private policy also writes to the
    ledger it names, and what is charged stays charged.

    The frame's own session is used, with the settings a run relies on (time zone UTC, case sensitivity, ANSI, Arrow)
    set for the run and put back. A session without them computes the frame once, by its own settings, before. A frame
    whose rows differ each time it is computed must be written first.

    Parameters
    ----------
    table : DataFrame or None
        None is the table the policy names.
    policy : Policy, str, Path or mapping
        With a decision, or a guarantee that needs none.
    output : str or Path, optional
        Directory of published releases, or its URI in an object store, in place of ``output.path``.
    vault : str or Path, optional
        Directory of what must not be published, or its URI in an object store, in place of ``output.vault``.
    run_id : str, optional
        Default for the policy's table: name, date and policy; a new id for a frame. If a release with this id is
        published already, it is returned if it is of the same frame, and refused if the frame has other rows or
        columns: give another id then. Under dp a frame has the default of a table, so that calling again charges
        nothing; other rows on the same day need an id of their own and are charged.
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
        The policy, the session or the data must be mended.
    privrisk_spark.errors.RefusedError
        A check or the privacy budget forbids the release; nothing was published.
    privrisk_spark.errors.EngineError
        Spark or a file system failed; running again may help.

    References
    ----------
    Lebanon, Scannapieco, Fouad and Bertino, "Beyond k-Anonymity: A Decision Theoretic Framework for Assessing Privacy
    Risk", PSD 2006, doi:10.1007/11930242_19.

    Examples
    --------
    >>> import privrisk_spark as pr
    >>> rows = [(30 + i % 3, "Ulm" if i % 2 else "Bonn", "flu") for i in range(12)]
    >>> df = pr.session().createDataFrame(rows, "age int, city string, diagnosis string")
    >>> policy = pr.Policy(
    ...     columns={
    ...         "age": pr.quasi_identifier(pr.intervals(5, 10, domain=(0, 99))),
    ...         "city": pr.quasi_identifier(pr.flat("Bonn", "Ulm")),
    ...         "diagnosis": pr.sensitive(),
    ...     },
    ...     decision={"utility_at_least": 2},
    ... )
    >>> with pr.release(df, policy) as done:
    ...     done.manifest["rows"], done.data.columns
    (12, ['age', 'city', 'diagnosis'])
    """
    from privrisk_spark.engine.session import held
    from privrisk_spark.pipelines.release import run as pipeline

    policy = as_policy(policy, date)
    if accept_undecided:
        policy = policy.model_copy(update={"undecided": ()})
    run, day = settle_run(policy, run_id, date, given=table is not None)
    wanted = {"output": output, "vault": vault}
    if policy.output is not None:
        wanted = {"output": output or policy.output.path, "vault": vault or policy.output.vault}
    private = PrivateDirectory() if None in wanted.values() else None
    try:
        places = {
            name: private.path / name if where is None and private is not None else where or ""
            for name, where in wanted.items()
        }
        asked = placed(with_frame(policy, table is not None), places["output"], places["vault"])
        # Keys travel inside tasks.
        encrypt = not asked.decides or asked.history is not None
        title = f"privrisk release {asked.run.name}"
        with held(table, title, encrypt=encrypt, engine=asked.run.engine) as (spark, given):
            if private is not None:
                check_reach(spark, " and ".join(name for name, where in wanted.items() if where is None))
            outcome = pipeline.release(
                spark, asked, run_id=run, date=day, announce=announce, table=given, again=private is None
            )
            return _opened(spark, outcome, asked, private)
    except BaseException:
        if private is not None:
            private.close()
        raise


def withdraw(
    policy: PolicyLike,
    run_id: str,
    *,
    reason: str,
    output: str | Path | None = None,
    vault: str | Path | None = None,
) -> Withdrawal:
    """Take a published release away from its output, and what it left in the vault; no Spark is started.

    The output keeps a tombstone, and its current release is the one before. A budget that was charged stays spent. The
    run id cannot be used again. If it fails or is stopped, call it again: it completes what is left.

    Parameters
    ----------
    policy : Policy, str, Path or mapping
    run_id : str
    reason : str
        For the ledger; never a record's value.
    output, vault : str or Path, optional
        As :func:`release` was given them, in place of ``output.path`` and ``output.vault``.

    Returns
    -------
    Withdrawal

    Raises
    ------
    privrisk_spark.errors.InputError
        There is no such release, or no output is named.
    privrisk_spark.errors.RefusedError
        The ledger does not know the release.
    privrisk_spark.errors.EngineError
        A file system or the ledger failed, or another run is at work; call it again.

    Examples
    --------
    >>> import pathlib, tempfile, privrisk_spark as pr
    >>> df = pr.session().createDataFrame([("f", 1), ("m", 1), ("f", 2), ("m", 2)], "sex string, n int")
    >>> columns = {"sex": pr.quasi_identifier(pr.flat("f", "m")), "n": pr.insensitive()}
    >>> policy = pr.Policy(columns=columns, decision={"utility_at_least": 1})
    >>> place = pathlib.Path(tempfile.mkdtemp())
    >>> places = {"output": place / "out", "vault": place / "vault"}
    >>> with pr.release(df, policy, run_id="monday", **places) as released:
    ...     released.fresh
    True
    >>> pr.withdraw(policy, "monday", reason="erasure request 17", **places).fresh
    True
    """
    from privrisk_spark.pipelines import withdrawal

    # What was released once was decided, or accepted.
    policy = as_policy(policy).model_copy(update={"undecided": ()})
    found = policy.output
    at = output or (None if found is None else found.path)
    private = vault or (None if found is None else found.vault)
    if at is None or private is None:
        raise ConfigError([Fault("output", "is required: name the path and the vault of the release")])
    asked = placed(policy, at, private)
    today = dt.datetime.now(dt.UTC).date()
    return withdrawal.withdraw(asked, check_run_id(run_id), reason=reason, today=today)


def _opened(
    spark: SparkSession, outcome: Outcome, policy: written.Policy, private: PrivateDirectory | None
) -> Released:
    """What a run left."""
    place, manifest = outcome.place, outcome.manifest
    exact = place.left("report.html")
    private_at = place.left_at or place.vault.location
    published = partial(place.output.read, place.run_id)
    return Released(
        run_id=place.run_id,
        fresh=outcome.fresh,
        manifest=manifest,
        report=Page((published("report.html") or b"").decode()),
        vault_report=None if exact is None else Page(exact.decode()),
        place=str(place.target) if place.target.remote else Path(place.target.path),
        vault=str(private_at) if private_at.remote else Path(private_at.path),
        private=private,
        spark=spark,
        output=policy.places.model_copy(update={"format": manifest["data"]["format"]}),
        data_at=place.output.location.below(manifest["data"]["path"]),
        checks=json.loads(published("checks.json") or b"[]"),
    )
