"""What sharing reads of a policy, what each level costs and is worth, and what decisions add up to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.network.kernels.diffusion import LEAST_ERROR, SQUARED_USERS, Leak, Series, ego_radius
from privrisk_spark.extensions.network.policy import (
    ColumnSensitivity,
    DetailUtility,
    Diffusion,
    DiversityUtility,
    ExponentialExposure,
    LeastLoss,
    ModifiedAggregate,
    MostUtility,
    OneClassTrust,
    PropagatedTrust,
    RuledTrust,
    SharingPolicy,
    StatedTrust,
    StepExposure,
    TableExposure,
    TableUtility,
    TradeOff,
    sharing_of,
)
from privrisk_spark.extensions.network.results import AttributeShown, CurvePoint, PairShown, Relation, Spread
from privrisk_spark.planning.assessment import reading_only
from privrisk_spark.policy.policy import Policy, RiskPolicy
from privrisk_spark.policy.sensitivity import LinearSensitivity, Personal

EDGES, PAIRS = "sharing.edges", "sharing.pairs"
"""Keys of the policy, for messages."""


def read_policy(policy: Policy) -> Policy:
    """Return the policy by which the profiles are read: quasi-identifiers and personal weights, and nothing else."""
    reading = reading_only(policy, [])
    asked = sharing_of(policy).sensitivity
    if not isinstance(asked, ColumnSensitivity):
        return reading
    risk = RiskPolicy(sensitivity=LinearSensitivity(personal=Personal(columns=asked.columns)))
    return reading.model_copy(update={"risk": risk})


def sensitivity_weights(policy: Policy) -> tuple[tuple[float, ...], tuple[int | None, ...]]:
    """What a level of each quasi-identifier costs, and which personal weight multiplies it, as they are read."""
    asked = sharing_of(policy).sensitivity
    columns = asked.columns if isinstance(asked, ColumnSensitivity) else {}
    read = read_policy(policy).weight_columns
    weights = tuple(asked.weights.get(name, 1.0) for name in policy.quasi_identifiers)
    of = tuple(read.index(columns[name]) if name in columns else None for name in policy.quasi_identifiers)
    return weights, of


def utility_weights(policy: Policy) -> tuple[float, ...]:
    """What a level of each quasi-identifier is worth, where no table says more."""
    asked = sharing_of(policy).utility
    given = asked.weights if isinstance(asked, DetailUtility) else {}
    return tuple(given.get(name, 1.0) for name in policy.quasi_identifiers)


def exposure_of(asked: SharingPolicy) -> dict[str, Any]:
    """Return the weight of a shown level at a trust, an :class:`~.kernels.trust.Exposure`."""
    given = asked.exposure
    if isinstance(given, ExponentialExposure):
        return {"form": "exponential", "scale": given.scale}
    if isinstance(given, StepExposure):
        return {"form": "step", "threshold": given.threshold, "below": given.below, "above": given.above}
    if isinstance(given, TableExposure):
        return {"form": "table", "table": tuple((point.trust, point.value) for point in given.points)}
    return {"form": "reciprocal"}


@dataclass(frozen=True)
class Spreading:
    """How information spreads, and how well it must be known.

    Attributes
    ----------
    leak : {"stochastic", "laplacian"}
    steps : int or None
        Steps of a walk that is taken instead.
    error : float
        Greatest error of an average, as a share of the largest value there is to average.
    """

    leak: Leak
    time: float
    steps: int | None
    error: float

    def mean(self, rate: float) -> float:
        """Steps that information takes, on average; the rate is that of :func:`.diffusion.rate`."""
        return float(self.steps) if self.steps is not None else rate * self.time

    def series(self, rate: float) -> Series:
        """Weights of the steps, which lack little of what is allowed; the rate is that of :func:`.diffusion.rate`."""
        if self.steps is not None:
            return Series.walk(self.steps)
        return Series.poisson(rate * self.time, max(self.error / 16, LEAST_ERROR))


def spreading_of(model: Diffusion) -> Spreading:
    """Return how information spreads."""
    return Spreading(model.leak, _time_of(model), model.steps, model.error)


def _time_of(model: Diffusion) -> float:
    return 1.0 if model.time is None else model.time


def trust_series(trust: PropagatedTrust) -> Series:
    """Weights of the steps that stated trust walks on."""
    if trust.time is not None:
        return Series.poisson(trust.time, trust.error)
    return Series.geometric(0.5 if trust.restart is None else trust.restart, trust.error)


Computation = Literal["whole", "ego", "series"]

MOST_RADIUS, AUTOMATIC_RADIUS = 6, 3
"""Largest radius of an ego network that is chosen, and without being asked for ego networks."""

MOST_MEAN = 10_000
"""Steps on a graph after one another that are begun: each takes all edges, and their cost grows with the time."""


def check_steps(spreading: Spreading, how: Computation, *, users: int, most_friends: int) -> None:
    """Refuse a time whose computation would not end soon; a series of joins has a limit of its own.

    Raises
    ------
    InputError
        With the longest time that is begun.
    """
    rate = most_friends if spreading.leak == "laplacian" else 1
    mean = spreading.mean(rate)
    if how == "series" or mean <= MOST_MEAN or (how == "whole" and users <= SQUARED_USERS):
        return
    if spreading.steps is not None:
        got, most = f"steps: Got {spreading.steps:,}", f"at most {MOST_MEAN:,}"
    else:
        got, most = f"time: Got {spreading.time:g}", f"at most {MOST_MEAN / rate:g}"
    friends = f", up to {rate:,} for each unit of time (leak: laplacian)" if rate > 1 else ""
    raise InputError(
        f"sharing.model.{got}, which is about {mean:,.0f} steps over the graph{friends}, and at most {MOST_MEAN:,} are "
        f"begun because the cost grows with them. Fix: choose {most}; or, with at most {SQUARED_USERS} members, "
        "computation: whole, whose cost does not grow."
    )


def refuse_radius(model: Diffusion, most_friends: int) -> None:
    """Refuse ego networks of the default radius which do not keep the error.

    Raises
    ------
    InputError
        With the radius that keeps it.
    """
    mean = spreading_of(model).mean(most_friends if model.leak == "laplacian" else 1)
    enough = model.steps or len(Series.poisson(mean, model.error).weights) - 1
    raise InputError(
        f"sharing.model.error: a radius of up to {MOST_RADIUS} does not keep {model.error:g} in every pair. Fix: set "
        f"sharing.model.radius: {enough}, which does, a greater error, or computation: whole or series."
    )


def computation_of(
    model: Diffusion, *, edges: int, most_edges: int, most_friends: int
) -> tuple[Computation, int | None]:
    """Where diffusion is computed, and on what radius.

    Parameters
    ----------
    edges : int
        Directed edges of the graph.
    most_edges : int
        What one machine may hold.
    most_friends : int
        Of one user.

    Returns
    -------
    {"whole", "ego", "series"}
    int or None
        Radius of ``ego``: the given one, or the least one up to :data:`MOST_RADIUS` that keeps the error for friends,
        or that one.
    """
    mean = _time_of(model) * (most_friends if model.leak == "laplacian" else 1)

    def least_radius(most: int) -> int | None:
        if model.steps is None:
            return ego_radius(mean, model.error, most)
        # A friend is one step away, so that so many more lead no further.
        return model.steps + 1 if model.steps < most else None

    if model.computation == "ego":
        return "ego", model.radius or least_radius(MOST_RADIUS) or MOST_RADIUS
    if model.computation != "automatic":
        return model.computation, None
    if edges <= most_edges:
        return "whole", None
    radius = least_radius(AUTOMATIC_RADIUS)
    return ("series", None) if radius is None else ("ego", radius)


def relations_of(
    facts: Sequence[Mapping[str, Any]], names: Sequence[str], reasons: Sequence[str], attributes: Sequence[str]
) -> tuple[tuple[Relation, ...], Relation]:
    """Put together what tasks counted of the pairs of each relation.

    Parameters
    ----------
    facts : sequence of mapping
        Of each slice of the pairs, in order: ``counts``, ``sums``, ``heuristic``, ``attributes``.
    names, reasons, attributes : sequence of str
        What the places in them stand for.

    Returns
    -------
    tuple of Relation
        Those that have pairs.
    Relation
        All of them together.
    """
    shapes = {"counts": (len(reasons),), "sums": (2,), "heuristic": (), "attributes": (len(attributes), 4)}
    totals = {
        of: sum((np.array(fact[of]) for fact in facts), np.zeros((len(names), *shape), dtype=np.int64))
        for of, shape in shapes.items()
    }

    def relation(name: str, members: Sequence[int]) -> Relation:
        here = {of: total[list(members)].sum(axis=0) for of, total in totals.items()}
        outcomes = dict(zip(reasons, here["counts"].tolist(), strict=True))
        shown = [
            AttributeShown(attribute, *numbers)
            for attribute, numbers in zip(attributes, here["attributes"].tolist(), strict=True)
        ]
        loss, utility = here["sums"].tolist()
        kept = {reason: count for reason, count in outcomes.items() if count}
        return Relation(name, kept, float(loss), float(utility), int(here["heuristic"]), tuple(shown))

    each = [relation(name, [i]) for i, name in enumerate(names)]
    return tuple(one for one in each if one.pairs), relation("all", range(len(names)))


def curve_of(points: Sequence[Mapping[str, float]]) -> tuple[CurvePoint, ...]:
    """Means of the sums that tasks found at each trade-off; none where the sample is empty."""
    return tuple(
        CurvePoint(
            point["trade_off"],
            int(point["pairs"]),
            point["loss"] / point["pairs"],
            point["utility"] / point["pairs"],
            point["shown"] / point["levels"] if point["levels"] else 0.0,
        )
        for point in points
        if point["pairs"]
    )


def examples_of(rows: Sequence[Mapping[str, Any]], attributes: Sequence[str]) -> tuple[PairShown, ...]:
    """Return some written decisions for the report."""
    return tuple(
        PairShown(
            **{of: row[of] for of in ("u", "v", "relation", "reason", "status")},
            values={name: row[f"shown_{name}"] for name in attributes},
        )
        for row in rows
    )


def in_words(asked: SharingPolicy) -> str:
    """What is decided of each pair."""
    model = asked.model
    if isinstance(model, ModifiedAggregate):
        which = "in all attributes" if model.consistency == "all" else "in at least one attribute"
        return (
            f"the greatest {model.lambda_:g} · ξ/Φ + u^{model.kappa:g} of each pair, where ξ common friends fit what "
            f"is shown {which}{_WITHOUT_FRIENDS[model.no_common_friend]} (Fouad 2012 §7.5)"
        )
    if isinstance(model, TradeOff):
        return f"the least loss less {model.lambda_:g} times the utility (Fouad 2012)"
    if isinstance(model, MostUtility):
        return f"the greatest utility at a loss of at most {model.loss_at_most:g} {_scope(model.scope)} (Fouad 2012)"
    if isinstance(model, LeastLoss):
        return f"the least loss at a utility of at least {model.utility_at_least:g} {_scope(model.scope)} (Fouad 2012)"
    how = f"over a time of {_time_of(model):g}" if model.steps is None else f"for {model.steps} steps"
    return (
        f"the most that may be shown at a risk of at most {model.risk_at_most:g}, as information spreads {how} "
        "(Fouad 2012 §7.3)"
    )


_WITHOUT_FRIENDS = {
    "reject": ", and a pair without common friends shows nothing",
    "owner": ", and in a pair without common friends ξ is 1, the owner",
    "as-published": ", and in a pair without common friends ξ is 0",
}

_WHERE = {
    "whole": "on the whole graph",
    "ego": "among the people around each user, within a radius of {radius}",
    "series": "by joins of Spark, step by step",
}


def spread_in_words(spread: Spread) -> str:
    """How diffusion was computed."""
    where = _WHERE[spread.computation].format(radius=spread.radius)
    return (
        f"What reaches whom was computed {where}. The risk of a level of sensitivity 1 is known to within "
        f"{spread.error:.3g}; of what is open the worst is assumed, so that the limit holds, and the gap of a pair is "
        "to what would be best if the best were true."
    )


def _scope(scope: str) -> str:
    return "of all users together" if scope == "network" else "of each user"


def notes_of(asked: SharingPolicy) -> tuple[str, ...]:
    """What a reader must know besides."""
    notes = [
        "A level is a step of a hierarchy: a value that is shown whole shows all its levels, one that is hidden none. "
        "Each shown level costs Φ and is worth Ψ of its attribute.",
    ]
    if isinstance(asked.model, ModifiedAggregate):
        notes.append(
            "What is shown of a user follows from his own profile and from how many common friends it is consistent "
            "with: of other people's profiles nothing else is in a decision."
        )
        zero = "is no candidate" if asked.model.zero_phi == "exclude" else "counts with the user's least positive Φ"
        notes.append(
            "Φ is the sensitivity of all levels shown, u their utility. The trust of a pair is ξ, its objective "
            f"λ · ξ/Φ + u^κ, and its loss Φ/ξ, the risk in Fouad 2012, with 1 in place of a ξ of 0. What costs nothing "
            f"{zero}."
        )
        notes.append(
            "If no common friend fits anything that could be shown, ξ is 0 and only the utility counts: the pair shows "
            "everything."
        )
        if asked.model.as_published is not None:
            notes.append(
                "For comparison, pairs are decided by Algorithm 8 as it was published, over layers of the sensitivity "
                f"whose ratio is {1 + asked.model.as_published.epsilon:g}, read as {asked.model.as_published.reading}. "
                "The gap of a pair is what its best decision is better by."
            )
    if asked.edges.directed:
        notes.append(
            "Edges have a direction: the second user of a row is a friend of the first, and not the other way round. "
            "Common friends of a pair are friends of the one who shows of whom the one who sees is a friend."
        )
    if isinstance(asked.trust, RuledTrust | OneClassTrust):
        notes.append("The trust of a pair says whether two profiles are alike, and so something of the other one.")
    if isinstance(asked.trust, StatedTrust | PropagatedTrust | OneClassTrust):
        notes.append("The trust of a pair also follows from what the one who shows has said of others.")
    if isinstance(asked.utility, DiversityUtility):
        notes.append("The utility of a pair says how much the two profiles differ, and so something of the other one.")
    if isinstance(asked.utility, TableUtility):
        notes.append("The utility is that of the one who sees; Fouad 2012 writes the index of the one who shows.")
    return tuple(notes)
