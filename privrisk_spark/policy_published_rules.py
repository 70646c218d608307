"""Rules of a policy that publishes by an algorithm without a proof; each fault names the key to mend."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from privrisk_spark.errors import Fault
from privrisk_spark.policy import AsPublishedGuarantee, Policy, RowCount
from privrisk_spark.policy_dictionaries import SelfDictionary

GUIDE = "as-published"
"""Section of the guide that every fault leads to."""


def impossible_as_published(policy: Policy, asked: AsPublishedGuarantee) -> Iterable[Fault]:
    """Yield the faults of a policy of the kind 'as-published'."""
    for fault in (*_not_accepted(policy, asked), *_constants(asked), *_unused(policy)):
        yield replace(fault, guide=GUIDE)


def _not_accepted(policy: Policy, asked: AsPublishedGuarantee) -> Iterable[Fault]:
    if not asked.accept_unproven:
        yield Fault(
            "guarantee.accept_unproven",
            "must be true: the theorem of Algorithm 6 does not hold, nothing is guaranteed, and such a release spoils "
            "the guarantees of everything else released from the table. Use the kind 'dp' or 'risk', or write "
            "accept_unproven: true to publish for comparison",
        )
    if policy.ledger is not None:
        yield Fault(
            "ledger",
            "must be left out with the kind 'as-published': nothing can be charged, as no loss is known; the release "
            "spoils the guarantees of everything else released from the table",
        )


def _constants(asked: AsPublishedGuarantee) -> Iterable[Fault]:
    least = math.exp(-asked.epsilon)
    if asked.beta <= least:
        yield Fault("guarantee.beta", f"must be above exp(-epsilon) = {least:.6g}. Got {asked.beta:g}")
    if asked.utility_at_least is None:
        if asked.phi_l is None:
            yield Fault("guarantee.phi_l", "is required by the aggregate objective: eta(k) = 2 (lambda / phi_l + 1)")
        if asked.phi_u is not None:
            yield Fault("guarantee.phi_u", "is only used by the threshold version, with utility_at_least; leave it out")
        return
    if asked.phi_u is None:
        yield Fault("guarantee.phi_u", "is required with utility_at_least: eta(k) = phi_u in the threshold version")
    unused = {"lambda": asked.lambda_ != 1, "kappa": asked.kappa != 1, "phi_l": asked.phi_l is not None}
    for key, given in unused.items():
        if given:
            yield Fault(
                f"guarantee.{key}", "is of the aggregate objective and not used with utility_at_least; leave it out"
            )


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
    }
    why = {
        "table.entity_id": "each row is a record of its own there",
        "dictionary": "Algorithm 6 counts in the table itself",
        "risk.sensitivity": "personal and record weights are not",
    }
    for key, given in unused.items():
        if given:
            yield Fault(key, f"is not available {kind}{': ' + why[key] if key in why else ''}; leave it out")
    for name in policy.kept_columns:
        yield Fault(
            f"columns.{name}",
            "would be released untouched, and what Algorithm 6 publishes are generalizations of whole rows: "
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
