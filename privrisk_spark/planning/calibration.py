"""Calibration of a differentially private release: from policy and hierarchies to the mechanism's parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from privrisk_spark.errors import ConfigError, Fault, InputError
from privrisk_spark.hierarchies.builders import is_public
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.dp.crowd import (
    CROWD_MAX,
    certificate,
    greatest_keep,
    keep_numerator,
    least_crowd,
    survival_rows,
)
from privrisk_spark.kernels.dp.scheme_choice import precision
from privrisk_spark.kernels.random.discrete_gaussian import divide_admission
from privrisk_spark.kernels.random.discrete_laplace import calibrate_laplace
from privrisk_spark.planning.mechanism import Mechanism, unit_of
from privrisk_spark.planning.modes import (
    Choice,
    LocalSchemes,
    Mode,
    Noise,
    OneScheme,
    PeeledSchemes,
    PublicCells,
    ReusedCells,
    Schemes,
    draw_of,
)
from privrisk_spark.planning.proposals import Proposal, most_schemes, proposed_candidates, proposed_schemes
from privrisk_spark.planning.reuse import Reused
from privrisk_spark.policy.policy import Policy
from privrisk_spark.policy.private import AnyDp, DpGuarantee, GlobalDp, LocalDp, PeeledDp, PublicDp, ReusingDp

KEEP_FRACTION = Fraction(1, 2)
"""Share of the most rows that may be kept for which a crowd threshold is found, where the policy names neither."""


def mechanism(policy: Policy, hierarchies: Mapping[str, Hierarchy] | None = None) -> Mechanism:
    """Calibrate a release and refuse what the proof does not cover.

    Parameters
    ----------
    policy : Policy
        With ``guarantee.kind: dp``.
    hierarchies : mapping of attribute to Hierarchy, optional
        To check the schemes' levels against, and to propose schemes where the policy names none.

    Raises
    ------
    ConfigError
        If the certificate exceeds the asked δ, t is below T, a scheme leaves its lattice, or a hierarchy would take its
        leaves from the data; or if an earlier release whose admitted cells are taken differs.
    """
    dp = policy.guarantee
    assert isinstance(dp, DpGuarantee)
    faults = list(_private_domains(policy))
    chooses, noisy = isinstance(dp, PeeledDp | GlobalDp), isinstance(dp, LocalDp | PeeledDp)
    vectors = _tuples(dp.candidates if isinstance(dp, PeeledDp | GlobalDp) else dp.schemes)
    if hierarchies is not None and not faults:
        faults += _levels_outside("guarantee.candidates" if chooses else "guarantee.schemes", vectors, hierarchies)
    persons = policy.table.entity_id is not None
    reused = Reused.read(dp.reuse) if isinstance(dp, ReusingDp) else None
    if reused is not None:
        known = None if hierarchies is None or faults else hierarchies
        faults += reused.differences(policy, known, unit=unit_of(persons))
        vectors = reused.schemes
    # Half of delta for the admission, where there is one; what sampling leaves of the other half goes to it too.
    share = Fraction(dp.delta) / 2 if noisy else Fraction(dp.delta)
    crowd, numerator = _sampling(dp, share, faults)
    proof = certificate(crowd, numerator, Fraction(dp.epsilon.keep))
    rest = max(Fraction(dp.delta) - Fraction(proof.delta_float), Fraction(dp.delta) / 2)
    survival = (survival_rows(crowd, numerator, 0.5), survival_rows(crowd, numerator, 0.99))
    proposal = None
    if hierarchies is not None and not faults and not vectors:
        proposal = _proposal(policy, dp, hierarchies, rest, survival[1])
        vectors = proposal.schemes
        if isinstance(dp, PeeledDp) and dp.peel > len(vectors):
            faults.append(Fault("guarantee.peel", f"must be at most the {len(vectors)} candidates. Got {dp.peel}"))
    precisions: tuple[Fraction, ...] = ()
    if chooses:
        weights = [Fraction(str(policy.utility.weights.get(name, 1))) for name in policy.quasi_identifiers]
        if not any(weights):
            faults.append(Fault("utility.weights", "must not all be 0: they weigh the precision of candidates"))
        elif not faults and hierarchies is not None:
            precisions = _precisions(vectors, hierarchies, weights)
    mode, reason = _mode(dp, vectors, precisions, rest, beyond=survival[0], reused=reused)
    if isinstance(mode, LocalSchemes | PeeledSchemes) and mode.frequent < mode.admission.threshold:
        faults.append(
            Fault(
                "guarantee.frequent",
                f"must be at least T = {mode.admission.threshold} for this delta. Got {mode.frequent}",
            )
        )
    if faults:
        raise ConfigError(faults)
    return Mechanism(
        mode=mode,
        epsilon_keep=dp.epsilon.keep,
        delta=dp.delta,
        keep_numerator=numerator,
        crowd=crowd,
        delta_crowd=proof.delta_float,
        public_rows=dp.public_rows,
        persons=persons,
        noise_reason=reason,
        proposed=None if proposal is None else proposal.because,
    )


def _mode(
    dp: AnyDp,
    vectors: Schemes,
    precisions: tuple[Fraction, ...],
    budget: Fraction,
    *,
    beyond: int,
    reused: Reused | None,
) -> tuple[Mode, str | None]:
    """Return what the mode fixes, and why this noise where it was left open."""
    admit = dp.epsilon.admit
    if isinstance(dp, GlobalDp):
        return OneScheme(admit, Choice(dp.epsilon.choose, 1, dp.frequent or beyond, vectors, precisions)), None
    draw = draw_of(dp.objective, public_rows=dp.public_rows)
    if isinstance(dp, PublicDp):
        return PublicCells(admit, vectors, dp.frequent, draw), None
    if isinstance(dp, ReusingDp):
        assert reused is not None
        return ReusedCells(admit, vectors, reused.frequent, draw, reused.cells), None
    if isinstance(dp, PeeledDp):
        admission, reason = _admission(dp, budget, dp.peel)
        frequent = dp.frequent or admission.threshold
        choice = Choice(dp.epsilon.choose, dp.peel, frequent, vectors, precisions)
        return PeeledSchemes(admit, choice, frequent, draw, admission), reason
    # Schemes that are not known yet are at least one.
    admission, reason = _admission(dp, budget, len(vectors) or 1)
    return LocalSchemes(admit, vectors, dp.frequent or admission.threshold, draw, admission), reason


def _sampling(dp: AnyDp, share: Fraction, faults: list[Fault]) -> tuple[int, int]:
    """Return crowd threshold and keep numerator: both as they are named, or k for the usual B and then B for that k."""
    epsilon = Fraction(dp.epsilon.keep)
    named = KEEP_FRACTION if dp.keep_fraction is None else Fraction(str(dp.keep_fraction))
    numerator = keep_numerator(epsilon, named)
    if dp.crowd is None:
        crowd = _least_crowd(share, numerator, epsilon, faults)
        return crowd, numerator if dp.keep_fraction is not None else greatest_keep(share, crowd, epsilon, numerator)
    if certificate(dp.crowd, numerator, epsilon).delta > share:
        least = _least_crowd(share, numerator, epsilon, faults)
        faults.append(Fault("guarantee.crowd", f"must be at least {least} for delta {dp.delta}. Got {dp.crowd}"))
    return dp.crowd, numerator


def _least_crowd(budget: Fraction, numerator: int, epsilon: Fraction, faults: Sequence[Fault]) -> int:
    try:
        return least_crowd(budget, numerator, epsilon)
    except InputError as error:
        rule = (
            f"takes a crowd threshold above {CROWD_MAX:,} rows; lower it or guarantee.keep_fraction, or raise "
            f"guarantee.delta. Got {float(epsilon):g}"
        )
        raise ConfigError([*faults, Fault("guarantee.epsilon.keep", rule)]) from error


def _tuples(vectors: Sequence[Sequence[int]] | None) -> Schemes:
    return tuple(tuple(vector) for vector in vectors or ())


def _proposal(
    policy: Policy, dp: AnyDp, hierarchies: Mapping[str, Hierarchy], budget: Fraction, survive: int
) -> Proposal:
    """Propose schemes or candidates; ``budget`` is the delta of an admission, if there is one."""
    need, why = survive, f"N99 = {survive} to survive with probability 99 %"
    if isinstance(dp, GlobalDp):
        return proposed_candidates(policy, hierarchies, need=need, why=why)
    w = dp.peel if isinstance(dp, PeeledDp) else most_schemes(dp.public_rows)
    least = 1
    if not isinstance(dp, ReusingDp) and dp.frequent is not None:
        least = dp.frequent
    elif isinstance(dp, LocalDp | PeeledDp):
        least = _admission(dp, budget, w)[0].threshold
    need, why = max(need, least), f"t = {least} to be admitted, of up to {w} schemes, and {why}"
    propose = proposed_candidates if isinstance(dp, PeeledDp) else proposed_schemes
    return propose(policy, hierarchies, need=need, why=why)


def _admission(dp: LocalDp | PeeledDp, budget: Fraction, w: int) -> tuple[Noise, str | None]:
    """Calibrate the noise that is asked for, or the one that admits cells of fewer rows, and say why."""
    epsilon = dp.epsilon.admit

    def gaussian() -> Noise:
        return divide_admission(float(epsilon), w, budget)

    if dp.noise == "gaussian":
        return gaussian(), None
    laplace = calibrate_laplace(Fraction(epsilon), w, budget)
    if dp.noise == "laplace":
        return laplace, None
    try:
        other = gaussian()
    except InputError:
        return laplace, f"Laplace: T = {laplace.threshold}; no Gaussian noise is enough"
    # On a tie the Gaussian: lighter tails, and a smaller loss in tight accounting.
    if laplace.threshold < other.threshold:
        return laplace, f"Laplace: T = {laplace.threshold}; with Gaussian noise it would be {other.threshold}"
    return other, f"Gaussian: T = {other.threshold}; with Laplace noise it would be {laplace.threshold}"


def _private_domains(policy: Policy) -> list[Fault]:
    return [
        Fault(
            f"columns.{name}.hierarchy",
            "takes its leaves from the data, which no differentially private release may: "
            "declare its values (file, tree, values or domain)",
        )
        for name, column in policy.quasi_identifiers.items()
        if not is_public(column.hierarchy)
    ]


def _precisions(
    candidates: Sequence[Sequence[int]], hierarchies: Mapping[str, Hierarchy], weights: Sequence[Fraction]
) -> tuple[Fraction, ...]:
    heights = [hierarchy.height for hierarchy in hierarchies.values()]
    return tuple(precision(scheme, heights, weights) for scheme in candidates)


def _levels_outside(key: str, vectors: Sequence[Sequence[int]], hierarchies: Mapping[str, Hierarchy]) -> list[Fault]:
    faults = []
    for position, scheme in enumerate(vectors):
        for level, (name, hierarchy) in zip(scheme, hierarchies.items(), strict=True):
            if level > hierarchy.height:
                faults.append(
                    Fault(
                        f"{key}.{position}",
                        f"level {level} of '{name}' exceeds the height {hierarchy.height} of its hierarchy",
                    )
                )
    return faults
