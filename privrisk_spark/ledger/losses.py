"""What one release does to the privacy of a row, part by part: what accounting composes, and the sum that binds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Sampling:
    """Bernoulli sampling and the crowd threshold of one release.

    Attributes
    ----------
    keep_numerator : int
        B of the keep probability B / 2^32.
    crowd : int
        k.
    epsilon : Fraction
        ε₂, at which it is claimed.
    delta : Fraction
        Its certificate there.
    """

    keep_numerator: int
    crowd: int
    epsilon: Fraction
    delta: Fraction


@dataclass(frozen=True)
class Claimed:
    """A release of which no more is known than what was claimed of it."""

    epsilon: Fraction
    delta: Fraction


@dataclass(frozen=True)
class GaussianCounts:
    """Noisy counts of an admission: one row adds one to each of w."""

    sigma_squared: int
    w: int


@dataclass(frozen=True)
class LaplaceCounts:
    """Noisy counts of an admission: one row adds one to each of w."""

    scale: Fraction
    w: int


@dataclass(frozen=True)
class SchemePicks:
    """Picks of a scheme among candidates.

    Attributes
    ----------
    epsilon : Fraction
        Of one.
    """

    epsilon: Fraction
    times: int


Component = Sampling | Claimed | GaussianCounts | LaplaceCounts | SchemePicks


@dataclass(frozen=True)
class ReleaseEvents:
    """What one release does to the privacy of a row.

    Attributes
    ----------
    sampling : Sampling or Claimed
        Claimed: all of the release.
    counts : GaussianCounts, LaplaceCounts or None
        None if the admissible cells are public, or were released before.
    delta_select : Fraction
        Probability that a cell of the row alone is admitted; 0 without counts.
    epsilon, delta : Fraction
        What is claimed for the release.
    picks : SchemePicks or None
        None if the schemes are public, or were released before.
    """

    sampling: Sampling | Claimed
    counts: GaussianCounts | LaplaceCounts | None
    delta_select: Fraction
    epsilon: Fraction
    delta: Fraction
    picks: SchemePicks | None = None

    @classmethod
    def claimed(cls, epsilon: Fraction, delta: Fraction) -> ReleaseEvents:
        """Return what a release costs of which only its claim is known."""
        return cls(Claimed(epsilon, delta), None, Fraction(0), epsilon, delta)


def basic(events: Iterable[ReleaseEvents]) -> tuple[Fraction, Fraction]:
    """Return the sums of the claimed epsilons and deltas.

    Returns
    -------
    (Fraction, Fraction)
        epsilon, delta.
    """
    every = list(events)
    return sum((e.epsilon for e in every), Fraction(0)), sum((e.delta for e in every), Fraction(0))
