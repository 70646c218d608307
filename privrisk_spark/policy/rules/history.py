"""Rules of a policy whose releases compose with earlier ones."""

from __future__ import annotations

from collections.abc import Iterable

from privrisk_spark.errors import Fault
from privrisk_spark.policy.policy import Policy
from privrisk_spark.policy.rules.decisions import against_history


def impossible_history(policy: Policy) -> Iterable[Fault]:
    """Yield what composition with earlier releases does not take, each by its key."""
    if policy.history is None or "history" in policy.guarantee.unused:
        return
    if policy.table.record_id is None:
        yield Fault(
            "table.record_id", "is required with history: records of several releases are matched by the column"
        )
    kind, consistency = policy.dictionary.kind, policy.dictionary.consistency
    if kind not in ("self", "table"):
        yield Fault("dictionary.kind", f"must be 'self' or 'table' with history, which takes one. Got '{kind}'")
    if consistency == "similar":
        yield Fault(
            "dictionary.consistency",
            "must be 'subsumes' or 'compatible' with history: labels that are 'similar' follow no tree",
        )
    if policy.linkage is not None:
        yield Fault("linkage", "is not available with history; leave one of them out")
    if policy.counting.plan == "shuffle":
        yield Fault("counting.plan", "must be 'auto', 'dense' or 'sorted' with history. Got 'shuffle'")
    if policy.decision is not None:
        yield from against_history(policy.decision)
