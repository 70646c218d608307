"""What chapter 7 of Fouad's thesis (2012; F12) says, and what this run shows of it.

Sentences are made from the figures of the run; nothing in them is fixed but the words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from reproduce.result import Claim
from reproduce.sharing.aggregate import Evenly, Run, TradedOff
from reproduce.sharing.aggregate_claims import of_algorithm_8, of_all_or_none, of_supermodularity, of_the_experiment
from reproduce.sharing.diffusing import Diffusing
from reproduce.sharing.limits import AccessControl
from reproduce.sharing.model_claims import of_access_control, of_diffusion, of_risk_alone, of_the_study, of_trust
from reproduce.sharing.proposition import Counterexample, Squares
from reproduce.sharing.trusting import Sensitivity

THESIS = "Fouad (2012)"


class Found(Protocol):
    """What claims are judged by."""

    @property
    def runs(self) -> tuple[Run, ...]:
        """Runs of Modified-Aggregate."""

    @property
    def squares(self) -> tuple[Squares, ...]:
        """Unit squares of lattices."""

    @property
    def counterexamples(self) -> Mapping[str, Counterexample | None]:
        """Smallest ones, by consistency."""

    @property
    def traded(self) -> tuple[TradedOff, ...]:
        """What is shown over λ."""

    @property
    def evenly(self) -> Evenly:
        """Pairs drawn evenly."""

    @property
    def access(self) -> AccessControl:
        """The three problems."""

    @property
    def trust(self) -> Sensitivity:
        """Kinds of trust."""

    @property
    def diffusing(self) -> Diffusing:
        """What leaks."""


def claims(found: Found) -> tuple[Claim, ...]:
    """Judge everything the chapter says that this run can say something of, in the order of the chapter.

    Parameters
    ----------
    found : Found
    """
    judged = (
        *of_all_or_none(found.runs),
        *of_risk_alone(found.access, found.traded),
        *of_diffusion(found.diffusing),
        *of_access_control(found.access),
        *of_trust(found.trust),
        *of_supermodularity(found.squares, found.counterexamples),
        *of_algorithm_8(found.runs),
        *of_the_study(found.traded, found.access),
        *of_the_experiment(found.runs, found.evenly),
    )
    return tuple(
        Claim(f"{THESIS}, {section}", claim, of, verdict, evidence) for section, claim, of, verdict, evidence in judged
    )
