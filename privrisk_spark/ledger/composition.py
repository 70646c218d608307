"""The tight composition that the cap of a lineage binds on under ``ledger.accounting: pld``.

Each charged run counts by the laws of its privacy loss, and by its claim alone where the ledger does not hold them.
What comes out is never above the sums where these fit the cap, so that no run is refused that basic accounting admits.

Status: that of :mod:`privrisk_spark.ledger.accounting`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Final

from privrisk_spark.ledger.amounts import decimal_of
from privrisk_spark.ledger.calibrated import losses_of
from privrisk_spark.ledger.losses import ReleaseEvents, basic
from privrisk_spark.ledger.records import Run

__all__ = ["charged_events", "composed_epsilon", "events_of"]

_DIGITS: Final = 10**5
"""The figure is rounded up to a multiple of 1 / this; digits beyond would be those of the grid."""


def charged_events(runs: Iterable[Run]) -> list[ReleaseEvents]:
    """Return what the counted runs did to the privacy of a row.

    Returns
    -------
    list of ReleaseEvents
        By its claim alone for a run whose mechanism is not one, or is of another claim than was charged.
    """
    return [events_of(run.mechanism, *run.cost) for run in runs if run.counted]


def events_of(mechanism: str, epsilon: Fraction, delta: Fraction) -> ReleaseEvents:
    """Return what one run does, as :func:`charged_events` does."""
    found = losses_of(mechanism)
    if found is None or (found.epsilon, found.delta) != (epsilon, delta):
        return ReleaseEvents.claimed(epsilon, delta)
    return found


def composed_epsilon(events: Iterable[ReleaseEvents], delta: Fraction) -> Decimal | None:
    """Return an epsilon at which all releases together are private with the given delta.

    Parameters
    ----------
    events : iterable of ReleaseEvents
        In any order.
    delta : Fraction
        In [0, 1).

    Returns
    -------
    Decimal or None
        Rounded up, at most the sum of the claimed epsilons if those of the deltas is at most ``delta``; None if there
        is none.
    """
    counted = Counter(event for event in events if event.epsilon or event.delta)
    epsilons, deltas = basic(counted.elements())
    tight = math.inf if delta == 0 or not counted else _composed(frozenset(counted.items()), delta)
    found = [epsilons] if deltas <= delta else []
    if math.isfinite(tight):
        found.append(Fraction(math.ceil(Fraction(tight) * _DIGITS), _DIGITS))
    return decimal_of(min(found)) if found else None


@lru_cache(maxsize=64)
def _composed(counted: frozenset[tuple[ReleaseEvents, int]], delta: Fraction) -> float:
    # Its packages take seconds to import.
    from privrisk_spark.ledger.accounting import composed

    return composed([event for event, times in counted for _ in range(times)], delta)
