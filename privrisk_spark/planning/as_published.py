"""Algorithms 6 and 7 of Fouad 2012 as published: constants, and what a release says of itself. For comparison only.

Status: **no guarantee**. The theorem that was stated for them is wrong at its constants
(:mod:`privrisk_spark.kernels.as_published.algorithm6`), so nothing is charged for them anywhere: no figure would be
true.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from privrisk_spark.errors import ConfigError, Fault
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.as_published.algorithm6 import drawing_epsilon, eta_of_aggregate
from privrisk_spark.ledger.calibrated import content_digest
from privrisk_spark.planning.search import lattice_size
from privrisk_spark.policy.as_published import (
    AggregateAsPublished,
    AnyAsPublished,
    AsPublishedGuarantee,
    ThresholdAsPublished,
    WalkAsPublished,
)
from privrisk_spark.policy.policy import Policy
from privrisk_spark.results.release import Guarantee

MOST_ELEMENTS = 2**16
"""Elements a record's lattice may have: each may have to be weighed for each distinct record."""


_OF_ALL = {"epsilon": "epsilon claimed there", "beta": "beta (a row is not sampled)", "theta0": "theta0"}
_OF_AGGREGATE = {"lambda": "lambda", "kappa": "kappa", "phi_l": "phi_l"}
_OF: dict[type[Any], dict[str, str]] = {
    AggregateAsPublished: _OF_AGGREGATE,
    ThresholdAsPublished: {"phi_u": "phi_u", "utility_at_least": "utility_at_least"},
    WalkAsPublished: {
        **_OF_AGGREGATE,
        "phi_u": "phi_u",
        "steps": "steps of the walk",
        "layer_width": "epsilon'' of the layers",
        "sigma": "sigma",
    },
}
"""Keys of the policy, and how a manifest names them."""


@dataclass(frozen=True)
class AsPublished:
    """Constants of one release; everything here may be published.

    Attributes
    ----------
    policy : AggregateAsPublished, ThresholdAsPublished or WalkAsPublished
    eta : float
        ``eta(k)``.
    epsilon_drawing : float
        ``epsilon'`` of step 1.
    """

    policy: AnyAsPublished
    eta: float
    epsilon_drawing: float

    @property
    def version(self) -> str:
        """Which of the algorithm's two versions is asked for."""
        return "threshold" if isinstance(self.policy, ThresholdAsPublished) else "aggregate"

    @property
    def statement(self) -> str:
        """What is printed with the release in place of a guarantee."""
        asked = self.policy
        doubt = "its theorem does not hold at these constants"
        if isinstance(asked, WalkAsPublished):
            doubt = (
                "the theorem it rests on does not hold at these constants, and how far a walk of "
                f"{asked.steps:,} steps is from the law it walks to is not known"
            )
        return (
            f"No guarantee: Algorithm {asked.algorithm} of Fouad 2012 as published; {doubt}. The release is for "
            "comparison only (accept_unproven: true), and it spoils the guarantees of everything else released from "
            "the table: they say nothing about the releases together."
        )

    @property
    def guarantee(self) -> Guarantee:
        """The absence of a guarantee, as manifest and report hold it."""
        return Guarantee("as-published", self.statement, "heuristic", self.to_dict())

    def to_dict(self) -> dict[str, object]:
        """Everything that determines the law of the release given the table, in the notation of F12."""
        asked = self.policy.model_dump(by_alias=True)
        walks = isinstance(self.policy, WalkAsPublished)
        return {
            "accept_unproven": self.policy.accept_unproven,
            "source": f"F12 (Fouad, thesis, 2012), section {'6.5' if walks else '6.4'}",
            "algorithm": self.policy.algorithm,
            "version": self.version,
            **{written: asked[key] for key, written in _OF_ALL.items()},
            "eta(k)": self.eta,
            "epsilon' of the draw": self.epsilon_drawing,
            "reading": (
                "layers go from phi_l to phi_u, and a point whose Φ lies in none is not drawn; a row whose layer is "
                "empty is left out; rounding is drawn given that it is frequent enough"
                if walks
                else "the draw is renormalized over the t-frequent elements; Φ is cut at its bound"
            ),
            **{written: asked[key] for key, written in _OF[type(self.policy)].items()},
        }

    def digest(self, policy: Policy, hierarchies: Mapping[str, Hierarchy]) -> str:
        """SHA-256 over everything but the table that the released tuples depend on, hex."""
        return content_digest({"as-published": self.to_dict()}, policy, hierarchies)

    @property
    def sentence(self) -> str:
        """What the drawing stage did."""
        if isinstance(self.policy, WalkAsPublished):
            return (
                f"Sampled each row with probability 1 - beta = {1 - self.policy.beta:g} and drew one of its "
                f"generalizations with about t rows by a walk of {self.policy.steps:,} steps in a layer drawn for it "
                "(Algorithm 7), all by keyed functions of the row. One more row is fully suppressed."
            )
        among = "t-frequent generalizations"
        if isinstance(self.policy, ThresholdAsPublished):
            among += f" of utility at least {self.policy.utility_at_least:g}"
        return (
            f"Sampled each row with probability 1 - beta = {1 - self.policy.beta:g} and drew one of its {among} by the "
            "exponential distribution (6.2), both by keyed functions of the row. One more row is fully suppressed "
            "(step 8)."
        )


def as_published(policy: Policy, hierarchies: Mapping[str, Hierarchy] | None = None) -> AsPublished:
    """Return the constants of a release as published.

    Parameters
    ----------
    policy : Policy
        With ``guarantee.kind: as-published``.
    hierarchies : mapping of attribute to Hierarchy, optional
        To hold the size of the lattice against the limit.

    Raises
    ------
    ConfigError
        If a record's lattice may be too large.
    """
    asked = policy.guarantee
    assert isinstance(asked, AsPublishedGuarantee)
    nodes = 0 if hierarchies is None else lattice_size(hierarchies)
    if nodes > MOST_ELEMENTS:
        fault = Fault(
            "guarantee.algorithm",
            f"{asked.algorithm} weighs every element of a record's lattice, which may have {MOST_ELEMENTS:,} at most; "
            f"these hierarchies give up to {nodes:,}. Use coarser ones, or fewer quasi-identifiers",
            guide=asked.guide,
        )
        raise ConfigError([fault])
    eta = asked.phi_u if isinstance(asked, ThresholdAsPublished) else eta_of_aggregate(asked.lambda_, asked.phi_l)
    return AsPublished(asked, eta, drawing_epsilon(asked.epsilon, asked.beta, eta))
