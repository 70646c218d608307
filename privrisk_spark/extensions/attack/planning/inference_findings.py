"""What an attack has found without a link, in words: of sensitive values, and of who is there at all."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from privrisk_spark.extensions.attack.kernels.evidence import Found
from privrisk_spark.extensions.attack.kernels.membership import Bound, HeldOut, Membership
from privrisk_spark.extensions.attack.kernels.recall import Recall
from privrisk_spark.extensions.attack.results.inferences import Inference, MembershipFound
from privrisk_spark.policy.guarantees import model_of

INFERENCES: dict[tuple[str, str], str] = {
    ("homogeneity", "certain"): "The value of '{column}' is certain, as all rows of the class hold it",
    ("homogeneity", "guessed"): "The value of '{column}' is guessed rightly, as the most frequent one of the class",
    (
        "external",
        "certain",
    ): "The value of '{column}' is certain for another person of the class, who takes the own row away",
    ("background", "certain"): "The value of '{column}' is certain for somebody who knows the most telling false value",
    ("skewness", "exposed"): "The value of '{column}' is more than {gain_above:g} times as likely as in the table",
    ("similarity", "certain"): "What the values of '{column}' have in common, a level up, is certain",
    (
        "minimality",
        "exposed",
    ): "A value of '{column}' is believed with more than {alpha:g}, as a finer scheme was given up",
    ("composition", "certain"): "The value of '{column}' is certain after {releases} of the releases",
}
"""What is learned, in words."""


def inferred(
    method: str, column: str, outcome: str, found: Found, *, baseline: float | None = None, **parameters: str | float
) -> Inference:
    """What was inferred of the values of a column."""
    title = INFERENCES[method, outcome].format(column=column, **parameters)
    return Inference(method, column, outcome, parameters, title, found, baseline)


def membership_bound(manifest: Mapping[str, Any] | None) -> Bound | None:
    """What differential privacy allows an intruder to tell of who is in the original table, if a release has it."""
    if manifest is None or not model_of(manifest).private:
        return None
    claimed = manifest["guarantee"]["parameters"]["accounting"]["basic"]
    return Bound(float(Fraction(claimed["epsilon"])), float(Fraction(claimed["delta"])))


MOST_POINTS = 200
"""Thresholds of a membership attack that are told."""


def membership_found(
    found: Membership,
    on_others: tuple[HeldOut | None, HeldOut | None],
    bound: Bound | None,
    recall: Recall | None = None,
) -> MembershipFound:
    """How well members are told, of those who choose the attack and of others, beside what is allowed.

    Parameters
    ----------
    on_others : tuple of (HeldOut or None)
        Of the attacker who takes those who get most for members, and of the one who takes those who get the fewest.
    recall : Recall, optional
        Of the rows, where they were dealt in blocks.
    """
    n = len(found.true_positives)
    shown = np.unique(np.linspace(0, n - 1, min(n, MOST_POINTS)).astype(np.int64))
    points = zip(found.false_positives[shown].tolist(), found.true_positives[shown].tolist(), strict=True)
    said = None if bound is None else f"({bound.epsilon:g}, {bound.delta:g})-differential privacy"
    return MembershipFound(
        found.members,
        found.others,
        found.advantage,
        found.area,
        found.reversed_advantage,
        tuple(points),
        *on_others,
        None if bound is None else bound.advantage,
        said,
        recall,
    )
