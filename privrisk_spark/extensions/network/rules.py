"""Rules of sharing in a network that take several keys together; each fault names the key to mend."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

from privrisk_spark.errors import Fault, listing, nearest
from privrisk_spark.extensions.network.policy import (
    ColumnSensitivity,
    DetailUtility,
    Diffusion,
    GivenPairs,
    ModifiedAggregate,
    OneClassTrust,
    PropagatedTrust,
    RuledTrust,
    SharingPolicy,
    StatedTrust,
    StepExposure,
    TableExposure,
    TableSensitivity,
    TableUtility,
    UserAttributes,
    UserPairs,
    sharing_of,
)
from privrisk_spark.policy.dictionaries import Table
from privrisk_spark.policy.policy import Policy, WeightColumn
from privrisk_spark.policy.rules.lakes import find_table_faults


def find_faults(policy: Policy) -> Iterable[Fault]:
    """Yield the faults of ``sharing`` that only show when several keys are seen together."""
    asked = sharing_of(policy)
    for key, table in tables_of(asked).items():
        yield from _source(key, table)
    if policy.table.record_id is None:
        yield Fault("table.record_id", "is needed by sharing: the column of the users' ids")
    if policy.table.entity_id is not None:
        yield Fault("table.entity_id", "is not available with sharing: the profiles have one row a user")
    yield from _names(policy, asked)
    yield from _trusted(asked)
    model = asked.model
    if isinstance(model, ModifiedAggregate) and model.as_published is not None and model.zero_phi != "exclude":
        rule = "needs zero_phi: exclude, as layers begin at the least positive sensitivity"
        yield Fault("sharing.model.as_published", rule)
    if isinstance(asked.model, ModifiedAggregate) and 0 < asked.model.kappa < 1:
        yield Fault("sharing.model.kappa", f"must be 0, or at least 1. Got {asked.model.kappa:g}")


def tables_of(asked: SharingPolicy) -> dict[str, UserPairs | UserAttributes]:
    """Return every table that sharing reads besides the profiles, by its key."""
    found: dict[str, UserPairs | UserAttributes] = {"sharing.edges": asked.edges}
    if isinstance(asked.pairs, GivenPairs):
        found["sharing.pairs"] = asked.pairs
    if isinstance(asked.sensitivity, TableSensitivity):
        found["sharing.sensitivity"] = asked.sensitivity
    if isinstance(asked.trust, StatedTrust | PropagatedTrust | OneClassTrust):
        found["sharing.trust"] = asked.trust
    if isinstance(asked.utility, TableUtility):
        found["sharing.utility"] = asked.utility
    return found


def _names(policy: Policy, asked: SharingPolicy) -> Iterator[Fault]:
    quasi = list(policy.quasi_identifiers)
    named = [(f"sharing.sensitivity.weights.{name}", name) for name in asked.sensitivity.weights]
    if isinstance(asked.sensitivity, ColumnSensitivity):
        named += [(f"sharing.sensitivity.columns.{name}", name) for name in asked.sensitivity.columns]
        for name, column in asked.sensitivity.columns.items():
            if not isinstance(policy.columns.get(column), WeightColumn):
                hint = "" if column in policy.columns else nearest(column, list(policy.columns))
                rule = f"'{column}' must be mentioned under columns with the role 'weight'{hint}"
                yield Fault(f"sharing.sensitivity.columns.{name}", rule)
    if isinstance(asked.utility, DetailUtility):
        named += [(f"sharing.utility.weights.{name}", name) for name in asked.utility.weights]
    if isinstance(asked.trust, RuledTrust):
        for i, one in enumerate(asked.trust.rules):
            named += [(f"sharing.trust.rules.{i}.same.{j}", name) for j, name in enumerate(one.same)]
    for path, name in named:
        if name not in quasi:
            there = listing(quasi) if quasi else "none"
            yield Fault(path, f"'{name}' is no quasi-identifier{nearest(name, quasi)}; there are {there}")
    if quasi and all(asked.sensitivity.weights.get(name, 1.0) == 0 for name in quasi):
        yield Fault("sharing.sensitivity.weights", "must leave one quasi-identifier with a weight above 0")


def _trusted(asked: SharingPolicy) -> Iterator[Fault]:
    """What is said of trust, and whether the model asks for it."""
    if isinstance(asked.model, ModifiedAggregate):
        for key in ("trust", "exposure"):
            if getattr(asked, key) is not None:
                yield Fault(
                    f"sharing.{key}",
                    "is not used by the model 'modified-aggregate', whose trust is the number of consistent common "
                    "friends; leave it out, or choose another model",
                )
        return
    if isinstance(asked.model, Diffusion) and not isinstance(asked.trust, StatedTrust):
        got = "none" if asked.trust is None else f"'{asked.trust.kind}'"
        yield Fault(
            "sharing.trust",
            f"must be of the kind 'table' with the model 'diffusion': it is asked of everybody the information may "
            f"reach. Got {got}",
        )
    if isinstance(asked.trust, PropagatedTrust) and asked.trust.restart is not None and asked.trust.time is not None:
        yield Fault("sharing.trust.time", "is used instead of restart; leave one of them out")
    if isinstance(asked.model, Diffusion) and asked.model.steps is not None:
        if asked.model.time is not None:
            yield Fault("sharing.model.steps", "are taken instead of a time; leave one of them out")
        if asked.model.leak != "stochastic":
            rule = f"are steps of the leak 'stochastic'; leave one of them out. Got leak '{asked.model.leak}'"
            yield Fault("sharing.model.steps", rule)
    if isinstance(asked.model, Diffusion) and asked.model.radius is not None and asked.model.computation != "ego":
        got = f"computation '{asked.model.computation}'"
        yield Fault("sharing.model.radius", f"is used by the computation 'ego' alone; leave it out. Got {got}")
    exposure = asked.exposure
    if isinstance(exposure, StepExposure) and exposure.above > exposure.below:
        yield Fault(
            "sharing.exposure.above",
            f"must be at most below = {exposure.below:g}: it must not rise with trust. Got {exposure.above:g}",
        )
    if isinstance(exposure, TableExposure):
        for i, (one, other) in enumerate(pairwise(exposure.points), start=1):
            if other.trust <= one.trust:
                yield Fault(f"sharing.exposure.points.{i}.trust", f"must be above {one.trust:g}. Got {other.trust:g}")
            if other.value > one.value:
                yield Fault(
                    f"sharing.exposure.points.{i}.value",
                    f"must be at most {one.value:g}: the function must not rise with trust. Got {other.value:g}",
                )


def _source(key: str, source: Table) -> Iterator[Fault]:
    yield from find_table_faults(key, source)
