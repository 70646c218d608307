"""Rules of a policy whose table is recoded to be k-anonymous; each fault names the key to mend."""

from __future__ import annotations

from collections.abc import Iterable

from privrisk_spark.errors import Fault, nearest
from privrisk_spark.policy.anonymity import (
    Besides,
    DeltaPresence,
    KAnonymityGuarantee,
    KMap,
    LDiversity,
    OfColumn,
    TCloseness,
)
from privrisk_spark.policy.policy import Policy, QuasiIdentifier, Sensitive


def find_anonymity_faults(policy: Policy, asked: KAnonymityGuarantee) -> Iterable[Fault]:
    """Yield the errors of a policy of the kind 'k-anonymity' that take several keys together."""
    if asked.local:
        yield from _impossible_local(policy, asked)
    yield from _impossible_order(policy, asked)
    for i, part in enumerate(asked.also):
        key = f"guarantee.also.{i}"
        given = part.given
        if len(given) != 1:
            names = ", ".join(Besides.model_fields)
            yield Fault(key, f"must hold exactly one of {names}. Got {', '.join(given) or 'none'}")
        for name, one in given.items():
            if isinstance(one, OfColumn):
                yield from _impossible_column(policy, f"{key}.{name}.column", one)
            else:
                yield from _impossible_population(policy, f"{key}.{name}", asked, one)
            if isinstance(one, LDiversity):
                yield from _impossible_diversity(f"{key}.{name}", one)
            if isinstance(one, TCloseness) and (one.distance == "hierarchical") != (one.hierarchy is not None):
                yield Fault(f"{key}.{name}.hierarchy", "goes with distance: hierarchical; give both or none of them")


def _impossible_local(policy: Policy, asked: KAnonymityGuarantee) -> Iterable[Fault]:
    if policy.table.entity_id is not None and policy.counting.plan == "shuffle":
        yield Fault(
            "counting.plan",
            f"'{asked.method}' counts persons on the driver, and tasks of the plan 'shuffle' count rows; choose "
            "'sorted' or 'auto'",
        )
    if asked.metric in ("height", "precision", "entropy"):
        yield Fault(
            "guarantee.metric",
            f"'{asked.metric}' is measured of one level for the whole table alone, and '{asked.method}' has several; "
            "choose 'loss', 'ncp', 'aecs', 'dm' or 'classes'",
        )
    if asked.scheme is not None and asked.method != "mondrian":
        rule = f"is of one level for each column, or of mondrian's cuts; '{asked.method}' has neither; leave it out"
        yield Fault("guarantee.scheme", rule)
    if asked.scheme is not None and policy.counting.plan == "shuffle":
        yield Fault("counting.plan", "'shuffle' does not apply guarantee.scheme; choose 'sorted' or 'auto'")


def _impossible_order(policy: Policy, asked: KAnonymityGuarantee) -> Iterable[Fault]:
    if asked.ordered and asked.method != "mondrian":
        yield Fault(
            "guarantee.ordered", f"says where 'mondrian' cuts, and the method is '{asked.method}'; leave it out"
        )
    known = [name for name, one in policy.columns.items() if isinstance(one, QuasiIdentifier)]
    for name in asked.ordered:
        if name not in known:
            yield Fault("guarantee.ordered", f"'{name}' is not a quasi-identifier{nearest(name, known)}")


def _impossible_population(
    policy: Policy, key: str, asked: KAnonymityGuarantee, one: KMap | DeltaPresence
) -> Iterable[Fault]:
    if policy.dictionary.kind != "table":
        yield Fault(
            key,
            "is held against the people of a dictionary of the kind 'table'; of the table itself guarantee.k is what a "
            f"class has. Got dictionary.kind '{policy.dictionary.kind}'",
        )
    if policy.counting.plan == "shuffle":
        yield Fault(key, "looks people up on the driver, and counting.plan is 'shuffle'; choose 'sorted' or 'auto'")
    if asked.local:
        yield Fault(key, f"is counted by schemes of the whole table, and '{asked.method}' has none; choose 'best'")
    if isinstance(one, DeltaPresence) and one.at_least > one.at_most:
        yield Fault(f"{key}.at_least", f"must be at most at_most, {one.at_most:g}. Got {one.at_least:g}")


def _impossible_column(policy: Policy, key: str, asked: OfColumn) -> Iterable[Fault]:
    column = policy.columns.get(asked.column)
    sensitive = [name for name, one in policy.columns.items() if isinstance(one, Sensitive)]
    if column is None:
        yield Fault(key, f"'{asked.column}' is not among columns{nearest(asked.column, sensitive)}")
    elif not isinstance(column, Sensitive):
        yield Fault(key, f"must have the role 'sensitive'. '{asked.column}' has the role '{column.role}'")
    elif column.action == "drop":
        yield Fault(key, f"'{asked.column}' is dropped, so that no class holds a value of it; leave the condition out")


def _impossible_diversity(key: str, asked: LDiversity) -> Iterable[Fault]:
    if asked.kind == "recursive" and asked.c is None:
        yield Fault(f"{key}.c", "is required by the kind 'recursive': r_1 < c (r_l + ... + r_m)")
    if asked.kind != "recursive" and asked.c is not None:
        yield Fault(f"{key}.c", f"is only used by the kind 'recursive', and it is '{asked.kind}'; leave it out")
    if asked.kind != "entropy" and asked.l != int(asked.l):
        yield Fault(f"{key}.l", f"must be a whole number with the kind '{asked.kind}'. Got {asked.l:g}")
