"""Measures of an adversary who attacks if it pays."""

from __future__ import annotations

from privrisk_spark.kernels.measures.measure import Measure

_XIA = "Xia et al. 2015"

ATTACK: dict[str, Measure] = {
    "attacked_records": Measure(
        "attack",
        "Records worth attacking",
        "records",
        "Records at least one candidate of which is approached.",
        _XIA,
        "low",
    ),
    "p_reid_max": Measure(
        "attack",
        "Re-identification by the planning adversary, highest",
        "probability",
        "Chance that an adversary who attacks only while it pays re-identifies the record worst off.",
        _XIA,
        "low",
    ),
    "p_reid_mean": Measure(
        "attack",
        "Re-identification by the planning adversary, mean",
        "probability",
        "The same over all records.",
        _XIA,
        "low",
    ),
    "expected_loss": Measure(
        "attack",
        "Expected loss",
        "loss",
        "Sum over the records of re-identification probability times loss.",
        _XIA,
        "low",
    ),
    "p_reid_baseline_mean": Measure(
        "attack",
        "Re-identification by a single try, mean",
        "probability",
        "The same for an adversary who approaches one candidate at random, if that pays.",
        _XIA,
        "low",
    ),
    "expected_payoff_max": Measure(
        "attack", "Best expected payoff", "money", "What the adversary expects to earn by the best record.", _XIA, "low"
    ),
    "access_threshold": Measure(
        "attack",
        "Group size without access",
        "candidates",
        "From so many candidates on the adversary does not even buy access.",
        _XIA,
    ),
    "sunk_threshold": Measure(
        "attack",
        "Group size without attack after access",
        "candidates",
        "From so many candidates on nobody is approached, even if access is paid already.",
        _XIA,
    ),
    "least_group_size": Measure(
        "attack",
        "Group size that protects",
        "candidates",
        "The least size of all classes that brings every record's risk under the bound.",
        _XIA,
    ),
    "least_penalty": Measure(
        "attack",
        "Penalty that protects",
        "money",
        "The least fine that brings every record's risk under the bound.",
        _XIA,
    ),
}
"""In the order of the report."""
