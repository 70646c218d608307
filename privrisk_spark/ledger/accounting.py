"""What the releases of a lineage cost together: basic sums, and a tighter figure by privacy-loss distributions.

The basic figure is the sum of what was claimed; it is *proved*, and the cap of a lineage binds on it unless the policy
has ``ledger.accounting: pld``. The tighter one, on which it binds then, composes the exact laws of the privacy loss:

* sampling and the crowd threshold by their whole profile (:mod:`privrisk_spark.kernels.dp.crowd_profile`), whose upper
  bounds at the points of a grid are connected by the pessimistic construction of Doroshenko et al. 2022;
* the noisy counts of an admission as w discrete Gaussians or Laplaces;
* a release of which only (epsilon, delta) is known by the law that is worst for that;
* each pick of a scheme among candidates by its epsilon alone, with delta 0;
* the event that a cell of one row is admitted, probability at most delta_select, by adding it to delta. That is
  enough in both directions. With the row, the output is ``(1 - s) G + s B``, G the law without such a cell and s the
  probability of the event; ``H_a((1 - s) G + s B || Q) <= s + H_a(G || Q)``. In reverse, ``H_a(Q || P) <= H_{a (1 -
  s)}(Q || G) = Q(S) - a (1 - s) G(S)`` for some S; if ``a G(S) <= 1`` that is at most ``H_a(Q || G) + s``, and else
  it is below ``1 - (1 - s)``. Over several releases s is the probability that any of the events happens.

An admitted set that was released may be used again: it is an output, and only sampling and threshold are paid anew.

Status of the tighter figure: *tested*. All discretization is pessimistic, but the convolutions are floating-point
Fourier transforms; ``ROUNDING`` is set aside for their error, and a delta that leaves nothing beside it gets the
basic figure. It also takes the parameters of each release as fixed whatever earlier ones published: no theorem is
known for losses composed by their laws where somebody chooses k or sigma after looking at earlier releases (for the
sums there is: Rogers et al. 2016). What a release draws may depend on earlier outputs, as admitted cells do. `RESTS_ON`
says so wherever the figure is binding.

References
----------
A. Koskela, J. Jälkö, A. Honkela, "Computing Tight Differential Privacy Guarantees Using FFT", AISTATS 2020. V.
Doroshenko, B. Ghazi, P. Kamath, R. Kumar, P. Manurangsi, "Connect the Dots: Tighter Discrete Approximations of
Privacy Loss Distributions", PoPETs 2022(4). R. Rogers, A. Roth, J. Ullman, S. Vadhan, "Privacy Odometers and
Filters: Pay-as-you-Go Composition", NeurIPS 2016. Y. Zhu, J. Dong, Y.-X. Wang, AISTATS 2022.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from dp_accounting.pld import common, pld_pmf
from dp_accounting.pld import privacy_loss_distribution as pld

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.dp.crowd_profile import profile
from privrisk_spark.kernels.dp.groups import group_delta
from privrisk_spark.kernels.numeric.rational import round_up
from privrisk_spark.kernels.random.keyed import KEEP_BITS
from privrisk_spark.ledger.losses import (
    Claimed,
    Component,
    GaussianCounts,
    LaplaceCounts,
    ReleaseEvents,
    Sampling,
    SchemePicks,
    basic,
)

INTERVAL = 1e-4
"""Distance of the points at which a privacy loss is looked at."""

ROUNDING = 1e-13
"""Part of delta set aside for the rounding of one convolution."""

RESTS_ON = (
    "privacy-loss distributions, discretized pessimistically and convolved in floating point with a part of delta set "
    "aside for its error: tested, and proved up to that error for releases whose parameters do not depend on what "
    "earlier ones published"
)
"""What the tighter figure rests on, in words."""

GROUPS = (2, 5, 10)
"""Rows of the groups a manifest speaks of."""

_CUT = 1e-6  # share of delta that the tails cut off may take, over all convolutions


def composed(events: Sequence[ReleaseEvents], delta: Fraction | Decimal | float) -> float:
    """Return an epsilon at which all releases together are private with the given delta.

    Parameters
    ----------
    events : sequence of ReleaseEvents
        In any order; the result does not depend on it.
    delta : Fraction, Decimal or float
        In (0, 1).

    Returns
    -------
    float
        Never above the basic sum if the basic deltas sum to at most ``delta``; infinite if nothing can be said.

    Raises
    ------
    InputError
        If ``delta`` is not between 0 and 1.
    """
    target = Fraction(delta)
    if not 0 < target < 1:
        raise InputError(f"delta must be between 0 and 1, both excluded. Got {delta}.")
    if not events:
        return 0.0
    epsilon_basic, delta_basic = basic(events)
    best = round_up(epsilon_basic) if delta_basic <= target else math.inf
    left = float(target - sum((event.delta_select for event in events), Fraction(0)))
    left -= ROUNDING * _convolutions(events)
    if left <= 0.0:
        return best
    return min(best, float(_loss(events, tail=left * _CUT).get_epsilon_for_delta(left)))


def account(events: ReleaseEvents) -> dict[str, Any]:
    """Return what a manifest says of the cost of one release, in both accountings.

    Returns
    -------
    dict
        ``basic`` and ``pld`` with epsilon, delta and status each.
    """
    epsilon = composed([events], events.delta)
    return {
        "basic": {"epsilon": _text(events.epsilon), "delta": _text(events.delta), "status": "proved"},
        # Digits beyond these would be those of the grid.
        "pld": {"epsilon": math.ceil(epsilon * 1e5) / 1e5, "delta": _text(events.delta), "status": "tested"},
    }


def further_guarantees(epsilon: Decimal, delta: Decimal) -> dict[str, Any]:
    """Return what a guarantee for one row says about groups of rows and about substituting one.

    Parameters
    ----------
    epsilon, delta : Decimal
        For adding or removing one row.

    Returns
    -------
    dict
        ``groups`` by number of rows, ``substitution``; each with epsilon and delta, rounded up. A delta of 1 is no
        guarantee.
    """

    def of(rows: int) -> dict[str, Any]:
        bound = group_delta(Fraction(epsilon), Fraction(delta), rows)
        return {"epsilon": _text(rows * Fraction(epsilon)), "delta": round_up(bound)}

    return {"groups": {str(rows): of(rows) for rows in GROUPS}, "substitution": of(2)}


def _text(value: Fraction) -> str:
    """Write a decimal number exactly."""
    return str(Decimal(value.numerator) / Decimal(value.denominator))


def _convolutions(events: Sequence[ReleaseEvents]) -> int:
    """Bound the number of convolutions: binary powering inside, one a component outside."""
    components = Counter(component for event in events for component in _components(event))
    return sum(2 + (times * _folds(component)).bit_length() * 2 for component, times in components.items())


def _components(event: ReleaseEvents) -> list[Component]:
    return [event.sampling, *(part for part in (event.counts, event.picks) if part is not None)]


def _folds(component: Component) -> int:
    if isinstance(component, Sampling | Claimed):
        return 1
    return component.times if isinstance(component, SchemePicks) else component.w


def _loss(events: Sequence[ReleaseEvents], *, tail: float) -> pld.PrivacyLossDistribution:
    """Compose everything the events hold; at most ``tail`` goes to infinity that need not."""
    components = Counter(component for event in events for component in _components(event))
    # Largest last, and in an order that does not depend on that of the events.
    ordered = sorted(components.items(), key=lambda item: (_folds(item[0]) * item[1], repr(item[0])))
    share = tail / (3 * len(ordered))
    total: pld.PrivacyLossDistribution | None = None
    for component, times in ordered:
        one = _of_component(component, share / times)
        folded = one if times * _folds(component) == 1 else one.self_compose(times * _folds(component), share)
        total = folded if total is None else total.compose(folded, share)
    assert total is not None
    return total


@lru_cache(maxsize=64)
def _of_component(component: Component, tail: float) -> pld.PrivacyLossDistribution:
    if isinstance(component, SchemePicks):
        claimed = common.DifferentialPrivacyParameters(round_up(component.epsilon), 0.0)
        return pld.from_privacy_parameters(claimed, value_discretization_interval=INTERVAL)
    if isinstance(component, Claimed):
        claimed = common.DifferentialPrivacyParameters(round_up(component.epsilon), round_up(component.delta))
        return pld.from_privacy_parameters(claimed, value_discretization_interval=INTERVAL)
    if isinstance(component, GaussianCounts):
        # A smaller sigma loses more.
        sigma = math.nextafter(math.sqrt(component.sigma_squared), 0.0)
        return pld.from_discrete_gaussian_mechanism(
            sigma, value_discretization_interval=INTERVAL, use_connect_dots=True
        )
    if isinstance(component, LaplaceCounts):
        rate = math.nextafter(float(1 / component.scale), math.inf)
        return pld.from_discrete_laplace_mechanism(rate, value_discretization_interval=INTERVAL, use_connect_dots=True)
    return _of_sampling(component, tail)


def _of_sampling(sampling: Sampling, tail: float) -> pld.PrivacyLossDistribution:
    """Connect the dots of the exact profile, in both directions."""
    beta = sampling.keep_numerator / (1 << KEEP_BITS)
    least = math.floor(math.log1p(-beta) / INTERVAL) - 1
    # Beyond this ratio only outcomes are left that need the row.
    most = max(-least, math.ceil(math.log(max(sampling.crowd * (1.0 - beta), 1.0)) / INTERVAL) + 1)
    try:
        points = np.arange(least, most + 1, dtype=np.int64)
        bounds = profile(sampling.crowd, sampling.keep_numerator, points.astype(np.float64) * INTERVAL)
    except InputError:
        # Too few rows are kept to follow the wait for a crowd; what is claimed still holds.
        claimed = common.DifferentialPrivacyParameters(float(sampling.epsilon), round_up(sampling.delta))
        return pld.from_privacy_parameters(claimed, value_discretization_interval=INTERVAL)
    with_row, without_row = (
        pld_pmf.create_pmf_pessimistic_connect_dots(INTERVAL, points[:last], values[:last])
        for values in (bounds.with_row, bounds.without_row)
        for last in [_last(values, tail)]
    )
    return pld.PrivacyLossDistribution(with_row, without_row)


def _last(values: np.ndarray[tuple[int], np.dtype[np.float64]], tail: float) -> int:
    """Return how many points to keep: what is beyond counts as lost without bound, and may be ``tail`` at most."""
    # Whatever is left at the end has no finite loss anyway.
    enough = np.flatnonzero(values <= values[-1] + tail)
    return int(enough[0]) + 1 if enough.size else len(values)
