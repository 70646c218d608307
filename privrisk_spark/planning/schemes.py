"""Fitted schemes: made of what a search found, and held against the policy that is to apply one."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator, Mapping
from typing import Any

from privrisk_spark.errors import ConfigError, Fault
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.recoding.local.tree import Tree
from privrisk_spark.kernels.recoding.metrics import Facts
from privrisk_spark.planning.history import hierarchy_digests
from privrisk_spark.planning.trees import written_tree
from privrisk_spark.policy.anonymity import KAnonymityGuarantee
from privrisk_spark.policy.dictionaries import OneDictionary
from privrisk_spark.policy.policy import Policy
from privrisk_spark.policy.schemes import FittedPartition, FittedScheme, read_scheme

_KEY = "guarantee.scheme"


def approved_scheme(policy: Policy, hierarchies: Mapping[str, Hierarchy], path: str) -> FittedScheme | FittedPartition:
    """Read the scheme a policy is to apply.

    Parameters
    ----------
    policy : Policy
        With ``guarantee.kind: k-anonymity``.
    hierarchies : mapping of quasi-identifier to Hierarchy

    Raises
    ------
    ConfigError
        If nobody has approved what it holds, or it is of another guarantee or of other hierarchies; each by name.
    """
    scheme = read_scheme(path, key=_KEY)
    faults = list(_differences(policy, hierarchies, scheme))
    if scheme.approval is None:
        what = "was changed after it was approved" if scheme.approvals else "is not approved"
        faults.append(Fault(_KEY, f"'{path}' {what}; look at it, then run `privrisk approve {path} --by NAME`"))
    if faults:
        raise ConfigError(faults)
    return scheme


def _differences(
    policy: Policy, hierarchies: Mapping[str, Hierarchy], scheme: FittedScheme | FittedPartition
) -> Iterator[Fault]:
    assert isinstance(policy.guarantee, KAnonymityGuarantee)
    if policy.guarantee.local != isinstance(scheme, FittedPartition):
        what = "has classes with levels of their own" if isinstance(scheme, FittedPartition) else "has one level each"
        method = "mondrian" if isinstance(scheme, FittedPartition) else "best"
        yield Fault("guarantee.method", f"must be '{method}', as the scheme {what}. Got '{policy.guarantee.method}'")
    asked = guarantee_of(policy)
    for key in sorted(asked.keys() | scheme.guarantee.keys()):
        given, fitted = asked.get(key), scheme.guarantee.get(key)
        if given != fitted:
            yield Fault(
                f"guarantee.{key}",
                f"must be {json.dumps(fitted)}, as in the scheme. Got {json.dumps(given)}; or fit a scheme to it",
            )
    now, there = hierarchy_digests(policy, hierarchies), {column.name: column for column in scheme.columns}
    for name in sorted(there.keys() - now.keys()):
        yield Fault(f"columns.{name}.role", "must be 'quasi-identifier', as in the scheme")
    for name, digest in now.items():
        column = there.get(name)
        if column is None:
            yield Fault(f"columns.{name}.role", "is 'quasi-identifier', and the scheme does not have it; fit another")
            continue
        if column.hierarchy != digest:
            yield Fault(f"columns.{name}.hierarchy", "must be the hierarchy of the scheme; it is another; fit another")
        elif column.height != (height := hierarchies[name].height):
            # Leaves that come from the data may be at other depths another day, and a level then means something else.
            yield Fault(
                f"columns.{name}.hierarchy",
                f"must have {column.height} levels above its leaves, as in the scheme. With the leaves of this table "
                f"it has {height}; say how long values are, or which there are, and fit another",
            )
        if column.nulls != policy.quasi_identifiers[name].nulls:
            yield Fault(f"columns.{name}.nulls", f"must be '{column.nulls}', as in the scheme")


def population_of(policy: Policy) -> OneDictionary | None:
    """Return the dictionary whose people classes are held against; None where nothing is asked of any."""
    assert isinstance(policy.guarantee, KAnonymityGuarantee)
    if not policy.guarantee.asks_population:
        return None
    (one,) = policy.dictionaries
    return one


def refuse_other_population(given: FittedScheme, digest: str | None) -> None:
    """Refuse a scheme that was held against other people than those of the policy's dictionary.

    Parameters
    ----------
    digest : str or None
        Of the dictionary's people, as they were counted.

    Raises
    ------
    ConfigError
    """
    if given.population is None:
        fault = "does not say which people its classes were held against; fit another"
        raise ConfigError([Fault(_KEY, fault)])
    if given.population.digest != digest:
        rule = (
            f"must hold the people that the scheme of {given.date} was held against, consistent with classes by the "
            "same rule, and does not. Name that dictionary as it was, or fit a scheme to this one and have it "
            "approved. If it is as it was, a hierarchy has its leaves from the table, and not all that the dictionary "
            "names by level, age_in or mapping is above them: declare its leaves"
        )
        raise ConfigError([Fault("dictionary", rule)])


def guarantee_of(policy: Policy) -> dict[str, Any]:
    """What a scheme is fitted to: the guarantee, but for where a scheme is read from and how it is searched."""
    assert isinstance(policy.guarantee, KAnonymityGuarantee)
    given: dict[str, Any] = policy.guarantee.model_dump(mode="json", exclude={"scheme", "method"}, exclude_none=True)
    return given


def fitted_scheme(
    policy: Policy, hierarchies: Mapping[str, Hierarchy], figures: Mapping[str, Any], *, rows: int, date: dt.date
) -> FittedScheme:
    """Return what ``privrisk fit`` writes.

    Parameters
    ----------
    policy : Policy
        With ``guarantee.kind: k-anonymity``.
    hierarchies : mapping of quasi-identifier to Hierarchy
    figures : mapping
        Of the scheme that was found, as the vault's ``recoding``.
    rows : int
        Of the table.
    date : date
        Business date.
    """
    columns = [{**column, "level": figures["levels"][column["name"]]} for column in _columns(policy, hierarchies)]
    searched = {key: figures[key] for key in ("nodes_evaluated", "optimal", "population") if key in figures}
    return FittedScheme.model_validate(_fitted(policy, figures, rows, date) | searched | {"columns": columns})


def fitted_partition(
    policy: Policy,
    hierarchies: Mapping[str, Hierarchy],
    tree: Tree,
    figures: Mapping[str, Any],
    *,
    rows: int,
    date: dt.date,
) -> FittedPartition:
    """Return what ``privrisk fit`` writes where classes have levels of their own; parameters as above.

    Parameters
    ----------
    tree : Tree
        That was found.
    """
    nodes, rest = written_tree(tree, tuple(hierarchies.values()))
    columns = [{**column, "nodes": of} for column, of in zip(_columns(policy, hierarchies), nodes, strict=True)]
    return FittedPartition.model_validate(_fitted(policy, figures, rows, date) | rest | {"columns": columns})


def drift(given: FittedScheme | FittedPartition, facts: Facts) -> dict[str, Any]:
    """Return what was achieved on the table something was fitted to, and what it does on another.

    Parameters
    ----------
    given : FittedScheme or FittedPartition
        Approved.
    facts : Facts
        Of the other table.
    """
    assert given.approval is not None, "only an approved scheme is applied"
    fitted = given.achieved
    return {
        "scheme": {
            "digest": given.digest(),
            "date": given.date.isoformat(),
            "approved_by": given.approval.by,
            "approved_at": given.approval.at.isoformat(),
        },
        "fitted": fitted.model_dump(mode="json"),
        "suppressed_share": {
            "fitted": fitted.suppressed / max(fitted.rows, 1),
            "here": facts.suppressed / max(facts.rows, 1),
        },
    }


def _columns(policy: Policy, hierarchies: Mapping[str, Hierarchy]) -> list[dict[str, Any]]:
    digests = hierarchy_digests(policy, hierarchies)
    return [
        {
            "name": name,
            "height": hierarchy.height,
            "hierarchy": digests[name],
            "nulls": policy.quasi_identifiers[name].nulls,
        }
        for name, hierarchy in hierarchies.items()
    ]


def _fitted(policy: Policy, figures: Mapping[str, Any], rows: int, date: dt.date) -> dict[str, Any]:
    assert isinstance(policy.guarantee, KAnonymityGuarantee)
    reached = [key for key in ("suppressed", "classes", "metric", "people") if key in figures]
    return {
        "version": 1,
        "name": policy.run.name,
        "date": date,
        "policy_digest": policy.digest(),
        "guarantee": guarantee_of(policy),
        "achieved": {"rows": rows, **{key: figures[key] for key in reached}},
        "method": policy.guarantee.method,
    }
