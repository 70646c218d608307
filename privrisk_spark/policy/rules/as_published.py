"""Rules of a policy that publishes by an algorithm without a proof; each fault names the key to mend."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from privrisk_spark.errors import Fault
from privrisk_spark.policy.dictionaries import SelfDictionary
from privrisk_spark.policy.policy import AsPublishedGuarantee, Policy, RowCount

GUIDE = "as-published"
"""Section of the guide that every fault leads to."""


def impossible_as_published(policy: Policy, asked: AsPublishedGuarantee) -> Iterable[Fault]:
    """Yield the faults of a policy of the kind 'as-published'."""
    of_walk = _walk(policy, asked) if asked.algorithm == 7 else _no_walk(asked)
    for fault in (*_not_accepted(policy, asked), *_constants(asked), *of_walk, *_unused(policy)):
        yield replace(fault, guide=GUIDE)


def _doubt(asked: AsPublishedGuarantee) -> str:
    if asked.algorithm == 6:
        return "the theorem of Algorithm 6 does not hold"
    return "the theorem of Algorithm 6, on which Algorithm 7 rests, does not hold"


def _not_accepted(policy: Policy, asked: AsPublishedGuarantee) -> Iterable[Fault]:
    if not asked.accept_unproven:
        yield Fault(
            "guarantee.accept_unproven",
            f"must be true: {_doubt(asked)}, nothing is guaranteed, and such a release spoils "
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
        if asked.phi_u is not None and asked.algorithm == 6:
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


def _no_walk(asked: AsPublishedGuarantee) -> Iterable[Fault]:
    for key in ("steps", "layer_width", "sigma"):
        if getattr(asked, key) is not None:
            yield Fault(f"guarantee.{key}", "is of Algorithm 7 and not used by 6; leave it out, or write algorithm: 7")


def _walk(policy: Policy, asked: AsPublishedGuarantee) -> Iterable[Fault]:
    if asked.utility_at_least is not None:
        yield Fault(
            "guarantee.utility_at_least",
            "is not available with Algorithm 7, which is printed for the aggregate objective alone; leave it out",
        )
    elif asked.phi_u is None:
        yield Fault("guarantee.phi_u", "is required by Algorithm 7: its layers go from phi_l to phi_u")
    elif asked.phi_l is not None and asked.phi_u < asked.phi_l:
        yield Fault("guarantee.phi_u", f"must be at least phi_l = {asked.phi_l:g}. Got {asked.phi_u:g}")
    required = {
        "steps": "is required by Algorithm 7: how long each row's walk is. The print gives no length, and no bound on "
        "how far the walk is from its law then",
        "layer_width": "is required by Algorithm 7: epsilon'', between 0 and 1",
        "sigma": "is required by Algorithm 7: what is put out has at least sigma t rows, sigma between 0 and 1",
    }
    for key, rule in required.items():
        if getattr(asked, key) is None:
            yield Fault(f"guarantee.{key}", rule)
    if 0 < asked.kappa < 1:
        yield Fault(
            "guarantee.kappa",
            "must be 0, or at least 1, with Algorithm 7: the objective's numerator is not supermodular otherwise. "
            f"Got {asked.kappa:g}",
        )
    if policy.risk.model != "I":
        return
    given = policy.risk.sensitivity
    if given.form not in ("constant", "linear", "record"):
        yield Fault(
            "risk.sensitivity.form",
            "must be 'constant', 'linear' or 'record' with Algorithm 7, whose layers need a Φ that is a sum over the "
            f"attributes. Got '{given.form}'",
        )
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
