"""What an audit runs: a release's mechanism with constants at which its tail can be seen, and adversarial tables.

The functions audited are those of every release; the constants are not. A release has a delta of 1e-9 or so, and what
goes wrong with such a probability is seen by no experiment. The *audit profile* is the same mechanism at epsilon₂ = 1,
the largest keep probability this allows, and k = 10. Its certificate delta* = 0.01997 (Theorem A of
:mod:`privrisk_spark.kernels.dp.crowd`) is the claim: in cells of about n* = 11 rows, which attain it, some percent of
the trials are in the tail. Where the policy's mechanism admits cells under noise, the profile has noise of the same
kind, calibrated by the same function to epsilon₁ = 0.5 and delta₁ = 0.002. Where it draws one row of each person, so
do releases of tables in which persons have many; and where it picks schemes, schemes are picked at epsilon₀ = 0.5 each.
Of the policy the profile takes the hierarchies and the kind of noise.

k = 10 is also the least k any release may have, whatever its delta would permit. So the profile is as low as k goes;
but no policy can ask for it, as a delta of 0.02 is far beyond what a policy may claim. The profile is a calibrated
mechanism with other numbers put in its place, it exists here alone, and nothing that releases takes it.

Every trial is a release of its own. Its number, the *trial column*, is part of the released tuple, is public, and is
never generalized (its lattice has one level), so that one run over many trials is as many independent releases.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from privrisk_spark.errors import ConfigError, Fault
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.arrays import FloatArray, IntArray
from privrisk_spark.kernels.dp.audit import gaussian_noise, laplace_noise, law_of_picks
from privrisk_spark.kernels.dp.crowd import certificate, keep_numerator
from privrisk_spark.kernels.dp.scheme_choice import precision, scores
from privrisk_spark.kernels.random.discrete_gaussian import Admission, calibrate_admission
from privrisk_spark.kernels.random.discrete_laplace import LaplaceAdmission, calibrate_laplace
from privrisk_spark.ledger.calibrated import (
    KEEP_DENOMINATOR,
    Calibrated,
    Choosing,
    Drawing,
    LocalSchemes,
    OneScheme,
    PublicCells,
    Scheme,
    protects,
)
from privrisk_spark.planning.audit_experiments import FILLER, TARGET, Cell, Experiment, NoisyCell, Pair, People
from privrisk_spark.policy.private import AggregateObjective

M = TypeVar("M", bound=Calibrated)

EPSILON_KEEP = Fraction(1)
EPSILON_ADMIT = Fraction(1, 2)
EPSILON_CHOOSE = Fraction(1, 2)
"""Of one pick."""
DELTA_ADMIT = Fraction(2, 1000)
CROWD = 10
FILLERS = 300
"""Rows of the large public cell in a table."""

_CANDIDATES = 8
"""Most generalizations a record draws from where the draw is audited."""

_PICKED = 4
"""Most candidates that schemes are picked from."""

_PICKS = 2
"""Most picks."""

_BEYOND = 2
"""Rows of a cell that do not count towards the score of its scheme."""

_SEVERAL = 30
"""Rows of the person in whom neighbouring tables differ: counted as persons, they are more than a crowd."""

_PERSONS = 80
"""Persons with a row of either kind."""

_PERSON_TRIALS = 2_000
_CHOICE_TRIALS = 4_000

RUN = " audit"
"""Run id the audit's keys are bound to; it has a blank, and no run id of a release can have one."""


@dataclass(frozen=True, eq=False)
class Profile:
    """The audit of a policy.

    Attributes
    ----------
    kinds : ndarray of int32, shape (2, k)
        Leaf codes of the target's and the other records.
    notes : tuple of str
        What of the policy's mechanism is not audited.
    """

    kinds: IntArray
    experiments: tuple[Experiment, ...]
    notes: tuple[str, ...]

    def parameters(self) -> dict[str, object]:
        """Constants of the profile."""
        first = self.experiments[0].mechanism
        found: dict[str, object] = {
            "epsilon_keep": float(EPSILON_KEEP),
            "keep_probability": f"{first.keep_numerator}/{KEEP_DENOMINATOR}",
            "k": first.crowd,
            "delta_crowd": first.delta_crowd,
        }
        for experiment in self.experiments:
            if experiment.admitted is None and experiment.mechanism.admission is not None:
                found |= {"epsilon_admit": float(EPSILON_ADMIT), "t": experiment.mechanism.frequent}
                found |= experiment.mechanism.admission.to_dict()
            choice = experiment.mechanism
            if isinstance(choice, Choosing) and experiment.chooses:
                found |= {"epsilon_choose": float(choice.epsilon_choose), "picks": choice.picks, "t0": choice.beyond}
        return found


def audit_profile(plan: Calibrated, hierarchies: Mapping[str, Hierarchy]) -> Profile:
    """Derive the audit of a policy's mechanism.

    Parameters
    ----------
    plan : Calibrated
        Of the policy.
    hierarchies : mapping of attribute to Hierarchy

    Raises
    ------
    ConfigError
        If no quasi-identifier has two values that could be told apart.
    """
    kinds = _kinds(hierarchies)
    schemes = _schemes(hierarchies, kinds)
    if not schemes:
        raise ConfigError([Fault("columns", "no hierarchy has two values, so every release is full suppression")])
    numerator = keep_numerator(EPSILON_KEEP)
    proof = certificate(CROWD, numerator, EPSILON_KEEP)
    finest = ((0, *schemes[0]),)
    sampling = {
        "noise_reason": None,
        "keep_numerator": numerator,
        "crowd": CROWD,
        "delta_crowd": proof.delta_float,
        **protects(persons=False),
    }
    base: Calibrated
    if isinstance(plan, OneScheme):
        base = plan.model_copy(update={**sampling, "schemes": finest})
    else:
        # The finest admitted candidate wins: the map of records to tuples is then known.
        preferred = _preferred(plan, kappa=1.0, tau=math.inf)
        base = _as(PublicCells, plan.model_copy(update=sampling), schemes=finest, least=1, objective=preferred)
    keep = numerator / KEEP_DENOMINATOR
    experiments = [_crowd(base, proof.worst_n, keep), _as_read(base, proof.worst_n, keep), _draw(base, schemes, keep)]
    notes = ["The audit reads nothing of the table: it needs the policy's mechanism and hierarchies alone."]
    if plan.admission is None:
        notes.append("The policy admits no cells under noise, so there is no experiment on admission.")
    else:
        experiments.append(_admission(base, plan.admission, schemes, keep))
    if plan.persons:
        experiments.append(_persons(base, keep))
    else:
        notes.append(
            "The policy takes every row for a person, so there is no experiment on the draw of a person's row."
        )
    if isinstance(plan, Choosing):
        experiments.append(_choice(base, plan.picks, hierarchies, schemes))
    else:
        notes.append("The policy chooses no schemes, so there is no experiment on their choice.")
    if plan.mode == "public-dictionary":
        notes.append(
            "How the cells of the public dictionary are counted is not audited: they may be known to everybody."
        )
    return Profile(kinds, tuple(experiments), tuple(notes))


def _as(kind: type[M], base: Calibrated, **own: Any) -> M:
    """Return a mechanism of another kind, which samples as the base does."""
    common = {name: getattr(base, name) for name in Calibrated.model_fields if name != "mode"}
    return kind(**{**common, "epsilon_admit": Decimal(0), "w": len(own["schemes"]), **own})


def _preferred(plan: Calibrated, *, kappa: float, tau: float) -> AggregateObjective:
    """The aggregate objective without counts; Φ is floored as the policy says."""
    asked = plan.objective if isinstance(plan, Drawing) else None
    phi_min = asked.phi_min if isinstance(asked, AggregateObjective) else 1.0
    return AggregateObjective(lambda_=0.0, kappa=kappa, tau=tau, phi_min=phi_min, count_cap=FILLERS)


def _kinds(hierarchies: Mapping[str, Hierarchy]) -> IntArray:
    """The first and the last leaf of every hierarchy that have labels."""
    of_labels = [sorted(hierarchy.code_of.values()) for hierarchy in hierarchies.values()]
    ends = [(codes[0], codes[-1]) if codes else (0, 0) for codes in of_labels]
    return np.array(ends, dtype=np.int32).T


def _schemes(hierarchies: Mapping[str, Hierarchy], kinds: IntArray) -> list[Scheme]:
    """Level vectors from no generalization upwards, one attribute after the other, that tell the two kinds apart."""
    heights = [hierarchy.height for hierarchy in hierarchies.values()]
    levels = [0] * len(heights)
    chain = [tuple(levels)]
    for i, height in enumerate(heights):
        for level in range(1, height + 1):
            levels[i] = level
            chain.append(tuple(levels))

    def apart(scheme: Scheme) -> bool:
        return any(
            h.ancestor[kinds[TARGET, i], level] != h.ancestor[kinds[FILLER, i], level]
            for i, (h, level) in enumerate(zip(hierarchies.values(), scheme, strict=True))
        )

    def nodes(scheme: Scheme) -> tuple[int, ...]:
        return tuple(
            int(h.ancestor[kinds[FILLER, i], level])
            for i, (h, level) in enumerate(zip(hierarchies.values(), scheme, strict=True))
        )

    # Uneven branches: some levels disclose the same.
    different = {nodes(scheme): scheme for scheme in reversed(chain) if apart(scheme)}
    return list(reversed(different.values()))


def _crowd(base: Calibrated, worst: int, keep: float) -> Experiment:
    """Sampling and crowd threshold, for given admissible cells."""
    k = base.crowd
    edges = sorted({k, k + 1, worst, k + 2})
    rows = sorted({0, 1, *edges, *(n - 1 for n in edges)})
    table = {n: i for i, n in enumerate(rows)}
    cells = [Cell(f"{FILLERS} rows", FILLER, 0, tuple(range(len(rows))), FILLERS, keep, True)]
    cells += [Cell(f"{n} rows", TARGET, 0, (table[n],), n, keep, False) for n in rows if n]
    return Experiment(
        name="crowd",
        title="Sampling and crowd threshold",
        mechanism=base,
        epsilon=float(EPSILON_KEEP),
        delta=base.delta_crowd,
        tables=tuple((n, FILLERS) for n in rows),
        pairs=(
            *(Pair(f"edge, {n} rows and {n - 1}", table[n], table[n - 1]) for n in edges),
            Pair("singleton", table[1], table[0]),
        ),
        cells=tuple(cells),
        admitted=((0, TARGET), (0, FILLER)),
    )


def _as_read(base: Calibrated, worst: int, keep: float) -> Experiment:
    """The worst edge again, of identical rows that Spark reads and that have no id of their own."""
    n = worst
    return Experiment(
        name="identity",
        title="Identical rows without ids",
        mechanism=base,
        epsilon=float(EPSILON_KEEP),
        delta=base.delta_crowd,
        tables=((n, 0), (n - 1, 0)),
        pairs=(Pair(f"edge, {n} rows and {n - 1}", 0, 1),),
        cells=tuple(Cell(f"{rows} rows", TARGET, 0, (i,), rows, keep, False) for i, rows in enumerate((n, n - 1))),
        admitted=((0, TARGET),),
        as_read=True,
    )


def _draw(base: Calibrated, schemes: list[Scheme], keep: float) -> Experiment:
    """F12 Example 6.3.1: one row can only be suppressed, the others draw among many generalizations and that."""
    places = np.unique(np.linspace(0, len(schemes) - 1, min(_CANDIDATES, len(schemes))).round().astype(int))
    chosen = [schemes[i] for i in places.tolist()]
    k, share = base.crowd, keep / (len(chosen) + 1)
    others = math.ceil(k / share)
    return Experiment(
        name="draw",
        title="Exponential draw",
        # All scores are equal: a uniform draw.
        mechanism=_as(
            PublicCells,
            base,
            schemes=tuple((0, *scheme) for scheme in chosen),
            least=1,
            objective=_preferred(base, kappa=0.0, tau=1.0),
        ),
        epsilon=float(EPSILON_KEEP),
        delta=base.delta_crowd,
        tables=((1, others), (0, others)),
        pairs=(Pair("Fouad 2012, Example 6.3.1", 0, 1),),
        cells=(
            *(
                Cell(f"{others} rows, candidate {j + 1}", FILLER, j, (0, 1), others, share, False)
                for j in range(len(chosen))
            ),
            Cell(f"{others} rows, suppressed", FILLER, len(chosen), (1,), others, share, False),
        ),
        admitted=tuple((j, FILLER) for j in range(len(chosen))),
    )


def _admission(base: Calibrated, asked: Admission | LaplaceAdmission, schemes: list[Scheme], keep: float) -> Experiment:
    """End to end: admission under noise, then all the rest."""
    chosen = [schemes[0], schemes[-1]] if len(schemes) > 1 else schemes
    w = len(chosen)
    admission: Admission | LaplaceAdmission
    if isinstance(asked, LaplaceAdmission):
        admission = calibrate_laplace(EPSILON_ADMIT, w, DELTA_ADMIT)
    else:
        half = float(DELTA_ADMIT) / 2
        admission = calibrate_admission(float(EPSILON_ADMIT), w, half, half)
    t = admission.threshold
    assert isinstance(base, Drawing)
    return Experiment(
        name="admission",
        title="Admission under noise, end to end",
        mechanism=_as(
            LocalSchemes,
            base,
            epsilon_admit=Decimal(str(float(EPSILON_ADMIT))),
            schemes=tuple((0, *scheme) for scheme in chosen),
            least=t,
            objective=base.objective,
            **admission.to_dict(),
        ),
        epsilon=float(EPSILON_ADMIT + EPSILON_KEEP),
        delta=float(admission.delta) + base.delta_crowd,
        tables=((t, FILLERS), (t - 1, FILLERS)),
        pairs=(Pair(f"t-edge, {t} rows and {t - 1}", 0, 1),),
        cells=(Cell(f"{FILLERS} rows", FILLER, 0, (0, 1), FILLERS, keep, True),),
        admitted=None,
        noisy=tuple(NoisyCell(FILLER, j, FILLERS) for j in range(w)),
    )


def _persons(base: Calibrated, keep: float) -> Experiment:
    """Persons with several rows, of each of whom one is drawn before anything is counted."""
    nobodys = People(60, 0, 1, named=False)
    both = People(_PERSONS, 1, 1)
    people = ((People(1, _SEVERAL, 0), nobodys), (nobodys,), (both,))
    cells = [
        Cell(f"{nobodys.number} rows that name nobody", FILLER, 0, (0, 1), nobodys.number, keep, True),
        Cell(f"one person of {_SEVERAL} rows", TARGET, 0, (0,), 1, keep, False),
    ]
    # One row of the two is drawn, then kept: a law of its own for either kind.
    cells += [
        Cell(f"{_PERSONS} persons of two rows, {whose}", kind, 0, (2,), _PERSONS, keep / 2, False)
        for kind, whose in ((TARGET, "the first drawn"), (FILLER, "the second drawn"))
    ]
    return Experiment(
        name="persons",
        title="One row of each person",
        mechanism=base,
        epsilon=float(EPSILON_KEEP),
        delta=base.delta_crowd,
        tables=tuple(
            (sum(one.number * one.targets for one in table), sum(one.number * one.others for one in table))
            for table in people
        ),
        pairs=(Pair(f"one person of {_SEVERAL} rows and none", 0, 1),),
        cells=tuple(cells),
        admitted=((0, TARGET), (0, FILLER)),
        people=people,
        most_trials=_PERSON_TRIALS,
    )


def _choice(base: Calibrated, picks: int, hierarchies: Mapping[str, Hierarchy], schemes: list[Scheme]) -> Experiment:
    """The choice of schemes, for the table at which half and twice the epsilon are told best from it."""
    heights = [hierarchy.height for hierarchy in hierarchies.values()]
    places = np.unique(np.linspace(0, len(schemes) - 1, min(_PICKED - 1, len(schemes))).round().astype(int))
    # The two kinds are one cell under the last.
    candidates = (*(schemes[i] for i in places.tolist()), tuple(heights))
    weights = [Fraction(1)] * len(heights)
    choice = _as(
        OneScheme,
        base,
        schemes=(),
        candidates=tuple((0, *scheme) for scheme in candidates),
        precision=tuple(precision(scheme, heights, weights) for scheme in candidates),
        epsilon_choose=Decimal(str(float(EPSILON_CHOOSE))),
        picks=min(picks, _PICKS, len(candidates)),
        beyond=_BEYOND,
    )
    few = range(_BEYOND + 1, _BEYOND + 20)
    table = max(((n, n) for n in few), key=lambda table: _told_apart(choice, table))
    return Experiment(
        name="choice",
        title="Choice of schemes",
        mechanism=choice,
        epsilon=float(choice.picks * EPSILON_CHOOSE),
        delta=0.0,
        tables=(table, (table[0] - 1, table[1])),
        pairs=(Pair(f"{table[0]} rows and {table[0] - 1}", 0, 1),),
        cells=(),
        admitted=(),
        most_trials=_CHOICE_TRIALS,
    )


def law_of_choice(choice: Choosing, table: tuple[int, int], *, sharper: float = 1.0) -> dict[tuple[int, ...], float]:
    """Return the law of the picks for a table of either kind's rows; the last candidate puts both into one cell.

    Parameters
    ----------
    sharper : float
        Factor of epsilon.
    """
    last = len(choice.candidates) - 1
    cells = [[sum(table)] if number == last else table for number in range(last + 1)]
    excess = np.array([sum(max(0, rows - choice.beyond) for rows in one) for one in cells], dtype=np.int64)
    exact = np.array([float(score) for score in scores(excess, choice.precision)])
    return law_of_picks(exact, sharper * float(choice.epsilon_choose), choice.picks)


def _told_apart(choice: Choosing, table: tuple[int, int]) -> float:
    """Least distance in total variation from the laws at half and at twice the epsilon."""
    law = law_of_choice(choice, table)
    others = [law_of_choice(choice, table, sharper=factor) for factor in (0.5, 2.0)]
    return min(sum(abs(law[one] - other[one]) for one in law) / 2 for other in others)


def law_of_noise(admission: Admission | LaplaceAdmission) -> FloatArray:
    """Return the law of the noise of a count, on -reach, …, reach."""
    if isinstance(admission, LaplaceAdmission):
        return laplace_noise(float(admission.scale))
    return gaussian_noise(admission.sigma_squared)
