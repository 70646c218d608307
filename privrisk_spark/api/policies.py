"""Policies: read from files, or written in Python."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from privrisk_spark.errors import ConfigError, Fault
from privrisk_spark.policy import policy as written
from privrisk_spark.policy import reading
from privrisk_spark.policy.dictionaries import GIVEN
from privrisk_spark.policy.rules.release import impossible

"""Stands in a policy for the table of which a frame is given."""


class Policy(written.Policy):
    """What is measured and published, and how: a checked, frozen policy.

    Each argument is the part of a policy file of the same name, as mappings; ``privrisk config schema`` prints all
    keys. Parts that are left out have the defaults of a file.

    Parameters
    ----------
    columns : mapping of str to dict
        A role for every column of the table, such as ``{"age": pr.quasi_identifier(pr.intervals(5, 10))}``.
    table : mapping, optional
        Where the table is, and its ``record_id``, ``entity_id`` and ``weight``. Without ``path`` and ``catalog`` a
        frame must be given wherever the policy is used.
    run : str or mapping
        Short name of runs, 1 to 64 letters, digits, ``.``, ``_`` or ``-``.
    version : int
        Of the policy format.
    **parts : mapping
        ``dictionary``, ``risk``, ``utility``, ``decision``, ``guarantee``, ``counting``, ``linkage``, ``checks``,
        ``output``, ``ledger``, ``assess``, ``attack``, ``sharing``, and ``undecided``, a list.

    Raises
    ------
    privrisk_spark.errors.ConfigError
        With all faults at once, each with its key, the rule, and what would do.

    Examples
    --------
    >>> import privrisk_spark as pr
    >>> policy = pr.Policy(
    ...     columns={
    ...         "age": pr.quasi_identifier(pr.intervals(5, 10, domain=(0, 99))),
    ...         "city": pr.quasi_identifier(pr.flat("Bonn", "Ulm")),
    ...         "diagnosis": pr.sensitive(),
    ...     },
    ...     decision={"utility_at_least": 2},
    ... )
    >>> list(policy.quasi_identifiers)
    ['age', 'city']
    """

    def __init__(
        self,
        *,
        columns: Mapping[str, Mapping[str, Any]],
        table: Mapping[str, Any] | None = None,
        run: str | Mapping[str, Any] = "table",
        version: int = 1,
        **parts: Any,
    ) -> None:
        name = {"name": run} if isinstance(run, str) else run
        given = dict(columns) if isinstance(columns, Mapping) else columns
        document = {"version": version, "run": name, "table": table, "columns": given, **parts}
        self.__setstate__(reading.parse(document, releasing=False, frames=True).__getstate__())

    @classmethod
    def of(cls, policy: written.Policy) -> Self:
        """Return a checked policy as one of this class.

        Parameters
        ----------
        policy : privrisk_spark.policy.policy.Policy
        """
        made = cls.__new__(cls)
        made.__setstate__(policy.__getstate__())
        return made


def load(*files: str | Path, overrides: Sequence[str] = (), date: dt.date | None = None) -> Policy:
    """Read a policy from YAML files.

    Layers are merged, later ones win: the files in order, environment variables ``PRIVRISK__KEY__KEY``, overrides.

    Parameters
    ----------
    *files : str or Path
        At least one; a later one is merged over those before.
    overrides : sequence of str
        ``dotted.key=value``, the value read as YAML.
    date : date, optional
        What ``{ds}`` stands for; today (UTC) by default.

    Returns
    -------
    Policy

    Raises
    ------
    privrisk_spark.errors.ConfigError
        With all faults at once. What only a release needs, an output and a decision, is asked for by :func:`release`,
        and ``table`` only where no frame is given.

    Examples
    --------
    >>> import pathlib, tempfile, privrisk_spark as pr
    >>> path = pathlib.Path(tempfile.mkdtemp(), "policy.yaml")
    >>> _ = path.write_text('''
    ... version: 1
    ... run: {name: small}
    ... table: {path: people.csv, format: csv}
    ... columns: {age: {role: quasi-identifier, hierarchy: {intervals: {widths: [5, 10]}}}}
    ... ''')
    >>> pr.load(path, overrides=["run.name=smaller"]).run.name
    'smaller'
    """
    if not files:
        raise ConfigError([Fault("", "name a policy file, such as conf/demo.yaml")])
    return Policy.of(reading.load(files, overrides=overrides, date=date, releasing=False, frames=True))


PolicyLike = written.Policy | str | Path | Mapping[str, Any]
"""A policy, the path of a policy file, or the content of one as a mapping."""


def as_policy(policy: PolicyLike, date: dt.date | None = None) -> written.Policy:
    """Return the policy that a caller gives.

    Parameters
    ----------
    policy : Policy, str, Path or mapping
        A policy, the path of a policy file, or the content of one.
    date : date, optional
        What ``{ds}`` stands for in a file or a mapping.

    Raises
    ------
    ConfigError
        If it is none, or has errors.
    """
    if isinstance(policy, written.Policy):
        return policy
    if isinstance(policy, str | Path):
        return load(policy, date=date)
    if isinstance(policy, Mapping) and all(isinstance(key, str) for key in policy):
        document: dict[str, Any] = {"version": 1, "run": "table", "columns": {}, **policy}
        name = document["run"]
        document["run"] = {"name": name} if isinstance(name, str) else name
        return Policy.of(reading.parse_given(document, date=date))
    rule = "must be a Policy, the path of a policy file, or the content of one as a mapping"
    raise ConfigError([Fault("policy", f"{rule}. Got {type(policy).__name__}")])


def with_frame(policy: written.Policy, given: bool) -> written.Policy:
    """Return the policy for a run of a given frame, whose files tasks never open past Spark, or of its own table.

    Parameters
    ----------
    policy : privrisk_spark.policy.policy.Policy
    given : bool
        Whether there is a frame.

    Raises
    ------
    ConfigError
        If there is neither a frame nor a table.
    """
    if given:
        place: dict[str, Any] = {"path": None, "catalog": GIVEN, "format": "parquet", "options": {}}
        return policy.model_copy(update={"table": policy.table.model_copy(update=place)})
    if policy.table.catalog == GIVEN:
        rule = "the policy names none, so a frame must be given; or write table={'path': …} or {'catalog': …}"
        raise ConfigError([Fault("table", rule)])
    return policy


def settle_run(policy: written.Policy, run_id: str | None, date: dt.date | None, *, given: bool) -> tuple[str, dt.date]:
    """Return the run id and the business date of a run.

    Parameters
    ----------
    policy : privrisk_spark.policy.policy.Policy
    run_id : str or None
        What the caller asks for. Without it, a run of a frame gets a new id, because nothing but its rows tells it from
        another frame. Under dp, and with a history, it keeps the id of the day and the policy, so that trying again
        costs no budget, and adds nothing to the history.
    given : bool
        Whether there is a frame.

    Raises
    ------
    ConfigError
        If the id is not allowed.
    """
    day = policy.run.date or date or dt.datetime.now(dt.UTC).date()
    if run_id is None:
        new = given and not policy.guarantee.private and policy.history is None
        run_id = policy.run_id(day) + (f"-{uuid.uuid4().hex[:8]}" if new else "")
    return reading.check_run_id(run_id), day


def placed(policy: written.Policy, path: Path | str, vault: Path | str) -> written.Policy:
    """Return the policy with its places, checked as one to release by.

    Parameters
    ----------
    policy : privrisk_spark.policy.policy.Policy
    path, vault : str or Path
        ``output.path`` and ``output.vault``.

    Raises
    ------
    ConfigError
        If no release can be made by it.
    """
    # A text may be an absolute path that knows how it was written: str() would drop that.
    texts = {name: at if isinstance(at, str) else str(at) for name, at in (("path", path), ("vault", vault))}
    output = written.Output(**texts)
    if policy.output is not None:
        output = policy.output.model_copy(update={"path": output.path, "vault": output.vault})
    complete = policy.model_copy(update={"output": output})
    faults = list(impossible(complete, releasing=True))
    if faults:
        raise ConfigError(faults)
    return complete
