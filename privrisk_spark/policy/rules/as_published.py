"""Rules of a policy that publishes by an algorithm without a proof; each fault names the key to mend."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from privrisk_spark.errors import Fault
from privrisk_spark.policy.as_published import AnyAsPublished, AsPublishedGuarantee, WalkAsPublished
from privrisk_spark.policy.checks import RowCount
from privrisk_spark.policy.dictionaries import SelfDictionary
from privrisk_spark.policy.policy import Policy
from privrisk_spark.policy.sensitivity import WeighedSensitivity

GUIDE = AsPublishedGuarantee.guide
"""Section of the guide that every fault leads to."""


def impossible_as_published(policy: Policy, asked: AnyAsPublished) -> Iterable[Fault]:
    """Yield the faults of a policy of the kind 'as-published'."""
    of_walk = _walk(policy) if isinstance(asked, WalkAsPublished) else ()
    for fault in (*of_walk, *_unused(policy)):
        yield replace(fault, guide=GUIDE)


def _walk(policy: Policy) -> Iterable[Fault]:
    """Yield what has no layers."""
    if policy.risk.model != "I":
        return
    given = policy.risk.sensitivity
    if given.form not in ("constant", "linear", "record"):
        yield Fault(
            "risk.sensitivity.form",
            "must be 'constant', 'linear' or 'record' with Algorithm 7, whose layers need a Φ that is a sum over the "
            f"attributes. Got '{given.form}'",
        )
    if not isinstance(given, WeighedSensitivity):
        return
    weights = {"weights": given.weights, **{f"node_weights.{name}": of for name, of in given.node_weights.items()}}
    for key, of in weights.items():
        if any(math.isinf(weight) for weight in of.values()):
            yield Fault(f"risk.sensitivity.{key}", "must be finite with Algorithm 7, whose layers end at phi_u")


def _unused(policy: Policy) -> Iterable[Fault]:
    kind = "with the kind 'as-published'"
    checks = policy.checks
    unused = {
        "decision": policy.decision is not None,
        "linkage": policy.linkage is not None,
        "table.entity_id": policy.table.entity_id is not None,
        "table.weight": policy.table.weight is not None,
        "dictionary": policy.dictionary != SelfDictionary(),
        "risk.sensitivity": bool(policy.weight_columns),
        "checks.row_count": checks.row_count != RowCount(),
        "checks.max_mean_risk": checks.max_mean_risk is not None,
        "checks.max_risk": checks.max_risk is not None,
        "checks.forbid_verbatim": checks.forbid_verbatim,
        "checks.kept_uniqueness_at_most": checks.kept_uniqueness_at_most is not None,
    }
    why = {
        "table.entity_id": "each row is a record of its own there",
        "dictionary": "Algorithms 6 and 7 count in the table itself",
        "risk.sensitivity": "personal and record weights are not",
    }
    for key, given in unused.items():
        if given:
            yield Fault(key, f"is not available {kind}{': ' + why[key] if key in why else ''}; leave it out")
    for name in policy.kept_columns:
        yield Fault(
            f"columns.{name}",
            "would be released untouched, and what Algorithms 6 and 7 publish are generalizations of whole rows: "
            "drop it (action: drop) or make it a quasi-identifier with a hierarchy",
        )
    for name, column in policy.quasi_identifiers.items():
        if column.nulls == "forbid":
            yield Fault(f"columns.{name}.nulls", f"'forbid' is not available {kind}; choose 'suppress' or 'own-value'")
        if column.unknown == "error":
            yield Fault(f"columns.{name}.unknown", f"'error' is not available {kind}; choose 'suppress'")
    if policy.risk.model == "III":
        yield Fault("risk.model", f"must be 'I' or 'II' {kind}: objective (5.4) takes 1/risk = ρ/Φ or ρ. Got 'III'")
    if policy.counting.plan == "shuffle":
        yield Fault("counting.plan", f"'shuffle' is not available {kind}; 'iceberg' counts frequent cells alone")
