"""Rules of a policy that publishes by an algorithm without a proof; each fault names the key to mend."""

from __future__ import annotations

import math
from collections.abc import Iterable

from privrisk_spark.errors import Fault
from privrisk_spark.policy.as_published import AnyAsPublished, WalkAsPublished
from privrisk_spark.policy.policy import Policy
from privrisk_spark.policy.rules.drawn import find_drawn_faults
from privrisk_spark.policy.sensitivity import WeighedSensitivity


def find_as_published_faults(policy: Policy, asked: AnyAsPublished) -> Iterable[Fault]:
    """Yield the errors of a policy of the kind 'as-published' that take several keys together."""
    yield from find_drawn_faults(policy)
    if policy.counting.plan == "shuffle":
        yield Fault(
            "counting.plan",
            "'shuffle' is not available when guarantee.kind is 'as-published'. Fix: choose 'iceberg', which counts "
            "only frequent cells",
        )
    if isinstance(asked, WalkAsPublished):
        yield from _walk(policy)


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
