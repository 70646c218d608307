"""The rule that refuses every key the policy's guarantee does not use."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from privrisk_spark.errors import Fault
from privrisk_spark.policy.policy import Policy


def find_unused_keys(policy: Policy) -> Iterable[Fault]:
    """Yield an error for each key that differs from its default and that the guarantee does not use."""
    guarantee = policy.guarantee
    for key, why in guarantee.unused.items():
        # A key with an error of its own is hidden from the rules.
        with suppress(AttributeError):
            if _is_given(policy, key):
                rule = f"is not used when guarantee.kind is '{guarantee.kind}': {why}. Fix: leave it out"
                yield Fault(key, rule, guide=guarantee.guide_elsewhere)
    for name in policy.masks if guarantee.generalizes else ():
        yield Fault(
            f"columns.{name}.mask",
            f"is only used when guarantee.kind is 'masked', and it is '{guarantee.kind}'. Fix: write guarantee: "
            "{kind: masked}, or leave it out",
        )


def _is_given(policy: Policy, key: str) -> bool:
    """Return whether a key differs from its default; a part without the key has not."""
    value: object = policy
    default: object = None
    for name in key.split("."):
        field = getattr(type(value), "model_fields", {}).get(name)
        if field is None:
            return False
        default, value = field.get_default(call_default_factory=True), getattr(value, name)
    return value != default
