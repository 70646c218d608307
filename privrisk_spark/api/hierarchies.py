"""Hierarchies by themselves, for the command line: those of a policy, or the one in a file; and beside a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from privrisk_spark.api.policies import Policy
from privrisk_spark.engine.failures import named
from privrisk_spark.errors import ConfigError, Fault, listing, nearest
from privrisk_spark.hierarchies.builders import build, is_public
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.policy import policy as written
from privrisk_spark.policy.hierarchy_files import policy_or_hierarchy

if TYPE_CHECKING:
    from privrisk_spark.pipelines.hierarchies import Checked


def hierarchies_of(
    path: str, *, column: str | None = None, separator: str = ";", overrides: Sequence[str] = ()
) -> dict[str, Hierarchy]:
    """Return the hierarchies of a policy, or the one in a file; the table is read only for values no policy declares.

    Parameters
    ----------
    path : str
        Of a policy, a tree in YAML or JSON, or a file in ARX's format.
    column : str, optional
        One quasi-identifier of the policy; a name for the hierarchy of a file.
    separator : str
        Of a file in ARX's format.
    overrides : sequence of str
        Of a policy: ``dotted.key=value``.

    Raises
    ------
    privrisk_spark.errors.InputError
        Policy, file or table must be mended.
    privrisk_spark.errors.EngineError
        Spark or a file system failed; running again may help.
    """
    found = policy_or_hierarchy(path, separator=separator, overrides=overrides)
    if not isinstance(found, written.Policy):
        name = column or Path(path).stem
        return {name: build(found, name)}
    names = _chosen(found, column)
    if all(is_public(found.quasi_identifiers[name].hierarchy) for name in names):
        specs = {name: found.quasi_identifiers[name] for name in names}
        return {name: build(of.hierarchy, name, null_leaf=of.nulls == "own-value") for name, of in specs.items()}
    with named():
        from privrisk_spark.engine.session import held
        from privrisk_spark.pipelines.hierarchies import open_hierarchies

        with held(None, "privrisk hierarchy", encrypt=False) as (spark, _):
            return open_hierarchies(spark, found, names)[1]


def check_hierarchies(
    path: str,
    table: str | None,
    *,
    column: str | None = None,
    separator: str = ";",
    overrides: Sequence[str] = (),
    form: str | None = None,
    options: Mapping[str, str] | None = None,
    values: bool = False,
) -> Mapping[str, Checked]:
    """Hold hierarchies against a table.

    Parameters
    ----------
    path, column, separator, overrides
        As :func:`hierarchies_of` takes them; the hierarchy of a file is for the column of its name by default.
    table : str or None
        Path; None is the table of the policy.
    form : str, optional
        Format of the table at that path; by default ``csv`` with a header if it is named so, else ``parquet``.
    options : mapping of str to str, optional
        Reader options, such as ``sep``.
    values : bool
        Show values of records that are outside.

    Raises
    ------
    privrisk_spark.errors.InputError
        Policy, file or table must be mended.
    privrisk_spark.errors.EngineError
        Spark or a file system failed; running again may help.
    """
    asked = policy_or_hierarchy(path, separator=separator, overrides=overrides)
    place = None
    if table is not None:
        kind = form or ("csv" if table.lower().endswith((".csv", ".csv.gz")) else "parquet")
        usual = {"header": "true"} if kind == "csv" else {}
        place = {"path": table, "format": kind, "options": usual | dict(options or {})}
    if not isinstance(asked, written.Policy):
        if place is None:
            raise ConfigError([Fault("TABLE", "is required beside the file of a hierarchy; name a path")])
        name = column or Path(path).stem
        asked = Policy(columns={name: {"role": "quasi-identifier", "hierarchy": asked}}, table=place)
    elif place is not None:
        asked = asked.model_copy(update={"table": type(asked.table).model_validate(place)})
    names = _chosen(asked, column)
    with named():
        from privrisk_spark.engine.session import held
        from privrisk_spark.pipelines.hierarchies import check_hierarchies as check

        with held(None, "privrisk hierarchy", encrypt=False) as (spark, _):
            return check(spark, asked, names, values=values)


def _chosen(policy: written.Policy, column: str | None) -> list[str]:
    """The quasi-identifiers of a policy that are looked at: all, but for masked ones, or the one that is named."""
    names = [name for name in policy.quasi_identifiers if name not in policy.masks]
    if column is None and names:
        return names
    if column not in names:
        there = f"; there are {listing(names)}" if names else "; the policy has none"
        hint = "" if column is None else nearest(column, names)
        raise ConfigError(
            [Fault("--column", f"must be a quasi-identifier with a hierarchy. Got {column!r}{hint}{there}")]
        )
    return [column]
