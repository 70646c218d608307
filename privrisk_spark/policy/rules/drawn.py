"""Rules of a policy whose generalizations are drawn; each error names the key to fix."""

from __future__ import annotations

from collections.abc import Iterable

from privrisk_spark.errors import Fault
from privrisk_spark.policy.policy import Policy


def find_drawn_faults(policy: Policy) -> Iterable[Fault]:
    """Yield the errors of columns and risk if each record's generalization is drawn."""
    kind = policy.guarantee.kind
    reason = ", because an error about a rare value reveals it" if policy.guarantee.private else ""
    for name in policy.kept_columns:
        yield Fault(
            f"columns.{name}",
            f"would be released untouched, but with guarantee.kind '{kind}' only generalizations are released. "
            "Fix: drop it (action: drop) or make it a quasi-identifier with a hierarchy",
        )
    for name, column in policy.quasi_identifiers.items():
        for key, given in (("nulls", "forbid"), ("unknown", "error")):
            if getattr(column, key) == given:
                choices = "'suppress', 'own-value' or 'wildcard'" if key == "nulls" else "'suppress'"
                yield Fault(
                    f"columns.{name}.{key}",
                    f"'{given}' is not available when guarantee.kind is '{kind}'{reason}. Fix: choose {choices}",
                )
    if policy.risk.model == "III":
        yield Fault(
            "risk.model",
            f"must be 'I' or 'II' when guarantee.kind is '{kind}': objective (5.4) takes 1/risk = ρ/Φ or ρ. Got 'III'",
        )
