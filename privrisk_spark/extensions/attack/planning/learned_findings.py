"""What an intruder has found by distances that he learned from true pairs."""

from __future__ import annotations

from dataclasses import dataclass

from privrisk_spark.extensions.attack.kernels.evidence import Found
from privrisk_spark.extensions.attack.kernels.learned.fitting import Learned
from privrisk_spark.extensions.attack.planning.attacks import known_columns
from privrisk_spark.extensions.attack.planning.findings import ATTACKS
from privrisk_spark.extensions.attack.results.attacks import Attack
from privrisk_spark.extensions.attack.results.inferences import LearnedDistance, RightRows, Search
from privrisk_spark.json_values import as_json
from privrisk_spark.policy.policy import Policy


@dataclass(frozen=True, eq=False)
class FittedDistance:
    """A learned distance, and whom it finds beside the standard weights.

    Attributes
    ----------
    training_standard, training : Found
        Of the people it was learned from, by the standard weights and by the learned distance.
    held_out_standard, held_out : Found
        Of the others: what the attack is worth. Persons, where they may have several records.
    rows : RightRows or None
        Where persons were held out, their records.
    """

    learned: Learned
    training_standard: Found
    training: Found
    held_out_standard: Found
    held_out: Found
    rows: RightRows | None = None


LEARNED = {
    "weighted_mean": "weights of the columns",
    "ordered_weighted_average": "weights of the sorted differences",
    "bilinear": "a bilinear form of the differences",
    "choquet": "a measure of sets of columns (Choquet integral)",
}
"""What is learned, in words."""


def learned_distance(policy: Policy, fitted: FittedDistance) -> LearnedDistance:
    """Say what was learned, by the names of the columns."""
    one = fitted.learned
    kept = ", which are the standard ones, as nothing better was found" if one.fell_back else ""
    return LearnedDistance(
        search=Search("learned", "person", distance=one.kind),
        title=f"{ATTACKS['person'][0]}, by {LEARNED[one.kind]} learned from {fitted.training.tried:,} true pairs{kept}",
        weights=dict(zip(known_columns(policy), one.aggregate.weights_of_columns().tolist(), strict=True)),
        parameters=as_json(one.aggregate),
        training_standard=fitted.training_standard,
        training=fitted.training,
        held_out_standard=fitted.held_out_standard,
        held_out=fitted.held_out,
        status=one.status,
        gap=one.gap,
        fell_back=one.fell_back,
        rows=fitted.rows,
    )


def by_learned(one: LearnedDistance, rows: int, distinct: int) -> Attack:
    """Attack by a learned distance: what it finds of the people it was not learned from."""
    held_out = one.held_out
    # Those who are not in the table are in neither sample.
    return Attack(
        one.search,
        one.title,
        ATTACKS["person"][1],
        rows,
        distinct,
        held_out,
        0,
        float(held_out.tried),
        (),
        (),
        one.rows,
    )
