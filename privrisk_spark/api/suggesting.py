"""A table nobody has written a policy for: its profile, and the policy that is proposed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privrisk_spark.api.policies import Policy
from privrisk_spark.engine.failures import named
from privrisk_spark.policy.dictionaries import GIVEN
from privrisk_spark.results.first_policy import ColumnGuess, FirstPolicy, FloorTable
from privrisk_spark.results.page import Page
from privrisk_spark.results.profile import TableProfile

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

    from privrisk_spark.planning.first_policy.draft import Proposed


@dataclass(frozen=True, eq=False, repr=False)
class Suggested:
    """A policy that is proposed for a table. Its figures are exact figures of the table: never publish it.

    Attributes
    ----------
    policy : Policy
        To be given to :func:`release` with the frame; it has no output yet.
    text : str
        The same as commented YAML, each guess with its reason.
    found : privrisk_spark.results.first_policy.FirstPolicy
        Guesses, profile and floors.
    report : Page
        What a person reads.
    proposed : privrisk_spark.planning.first_policy.draft.Proposed
        What :meth:`write` writes.
    table : mapping
        Where the table is, as ``table`` of the policy.
    """

    policy: Policy
    text: str
    found: FirstPolicy
    report: Page
    proposed: Proposed
    table: Mapping[str, Any]

    @property
    def profile(self) -> TableProfile:
        """Figures of the table."""
        return self.found.profile

    @property
    def columns(self) -> tuple[ColumnGuess, ...]:
        """What is proposed of each column, and why."""
        return self.found.columns

    @property
    def floors(self) -> FloorTable | None:
        """What three least utilities would give."""
        return self.found.floors

    def write(self, directory: str | Path, *, overwrite: bool = False) -> Path:
        """Write ``policy.yaml``, ``hierarchies/`` and ``profile.html``, and return the path of the policy.

        For their owner alone.

        Parameters
        ----------
        directory : str or Path
            Made if it is not there.
        overwrite : bool
            Whether files of an earlier call may be replaced.

        Raises
        ------
        privrisk_spark.errors.ConfigError
            If there are such files and they must not be replaced.
        """
        from privrisk_spark.pipelines.first_policy_files import write_first_policy

        place = Path(directory).expanduser().absolute()
        return write_first_policy(self.proposed, self.table, place, overwrite=overwrite)

    def __repr__(self) -> str:
        """Return how many columns were guessed, and which are not sure."""
        return f"Suggested(columns={len(self.columns)}, to_decide={list(self.found.to_decide)})"

    def _repr_html_(self) -> str:
        return self.found._repr_html_()


@named()
def profile(df: DataFrame) -> TableProfile:
    """Profile a table: what each column holds, how far columns tell rows apart, which may be ids.

    Parameters
    ----------
    df : DataFrame

    Returns
    -------
    TableProfile
        Figures. What a notebook shows of it, its text and ``to_dict()`` hold no value of a record; ``values`` of a
        column does.

    Raises
    ------
    privrisk_spark.errors.InputError
        The table has no rows or no columns, or two of one name.
    privrisk_spark.errors.EngineError
        Spark failed; running again may help.

    Examples
    --------
    >>> import privrisk_spark as pr
    >>> df = pr.session().createDataFrame([(34, "f"), (36, "m"), (36, " f"), (61, "f")], "age int, sex string")
    >>> found = pr.profile(df)
    >>> found["age"].kind, found["age"].distinct, found["sex"].variants
    ('number', 3, 1)
    """
    from privrisk_spark.engine.session import held
    from privrisk_spark.pipelines.first_policy import profile_table

    with held(df, "privrisk profile", encrypt=False) as (_, given):
        assert given is not None
        return profile_table(given).profile


def suggest_policy(df: DataFrame, *, run: str = "table") -> Suggested:
    """Propose a policy for a table: a role and a hierarchy for every column, weights, and a floor.

    Every guess has a reason. Status: *heuristic*; somebody who knows the table reads it before a release.

    Parameters
    ----------
    df : DataFrame
    run : str
        Short name of runs, 1 to 64 letters, digits, ``.``, ``_`` or ``-``.

    Returns
    -------
    Suggested

    Raises
    ------
    privrisk_spark.errors.InputError
        The table has no rows or no columns, or none that others may know.
    privrisk_spark.errors.EngineError
        Spark failed; running again may help.

    Examples
    --------
    >>> import privrisk_spark as pr
    >>> rows = [(i, 20 + i % 40, "fm"[i % 2]) for i in range(200)]
    >>> df = pr.session().createDataFrame(rows, "person_id int, age int, sex string")
    >>> found = pr.suggest_policy(df)
    >>> [(one.column, one.role, one.hierarchy) for one in found.columns]
    [('person_id', 'identifier', None), ('age', 'quasi-identifier', 'intervals'), ('sex', 'quasi-identifier', 'flat')]
    """
    return _suggested(df, {"catalog": GIVEN}, run)


def suggest_policy_of(path: str, *, format: str | None = None, options: Mapping[str, str] | None = None) -> Suggested:
    """Propose a policy for a table that lies in files, as ``privrisk init`` does.

    Parameters
    ----------
    path : str
        File or directory.
    format : str, optional
        csv, parquet, orc, json, delta or iceberg; told by names and first bytes if not given.
    options : mapping of str to str, optional
        Of the reader, over those that are recognized.
    """
    from privrisk_spark.storage.locations import is_remote
    from privrisk_spark.tables.recognized import recognize_table

    found = recognize_table(path, format=format, options=options)
    place = path if is_remote(path) else str(Path(path).expanduser().absolute())
    table: dict[str, Any] = {"path": place, "format": found.format}
    if found.options:
        table["options"] = found.options
    return _suggested(None, table, name_of(path))


def name_of(path: str) -> str:
    """Return a name for runs of a table, by its path."""
    last = Path(path.rstrip("/")).name.split(".")[0]
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", last).strip("-._")[:64]
    return name or "table"


@named()
def _suggested(df: DataFrame | None, table: Mapping[str, Any], run: str) -> Suggested:
    from privrisk_spark.engine.session import held
    from privrisk_spark.pipelines.first_policy import opened, policy_of, propose_policy
    from privrisk_spark.pipelines.first_policy_files import first_policy_text
    from privrisk_spark.reporting.profile_page import render_first_policy

    with held(df, f"privrisk init {run}", encrypt=False) as (spark, given):
        frame = opened(spark, table) if given is None else given
        proposed = propose_policy(frame, table, title=run)
    policy = Policy.of(policy_of(proposed, table))
    text = first_policy_text(proposed, table, files={}, output=None, command="pr.release(df, policy)")
    return Suggested(policy, text, proposed.told, Page(render_first_policy(proposed.told)), proposed, table)
