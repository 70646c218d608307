"""Mechanism R: the public parameters of a differentially private release, fixed before the table is read.

The release is admission of t-frequent cells under discrete Gaussian or Laplace noise, an exponential draw per record
among admitted generalizations (F12 eq 5.4), a keyed Bernoulli sample, and a crowd threshold on whole released tuples.
Beforehand the schemes whose cells are counted may be drawn from public candidates; in mode ``global`` one is, all
records take it, and nothing is admitted.

Status: *proved*, for add/remove of one row and one row per person (drawn beforehand where a person may have several:
``sampling.one_row_each``), assuming the keyed function is pseudo-random: the
admission is (ε₁, δ_gauss + δ_select)-DP (δ_gauss = 0 under Laplace noise), the rest is (ε₂, δ*)-DP for every admitted
set (:mod:`privrisk_spark.kernels.dp.crowd`), each of w picks of a scheme is (ε₀, 0)-DP
(:mod:`privrisk_spark.kernels.dp.scheme_choice`), and all add up: what follows holds for every scheme and set that may
have come out before.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from privrisk_spark import __version__
from privrisk_spark.errors import ConfigError, Fault, InputError
from privrisk_spark.hierarchies.builders import is_public
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.dp.crowd import certificate, keep_numerator, least_crowd, survival_rows
from privrisk_spark.kernels.dp.scheme_choice import precision
from privrisk_spark.kernels.numeric.rational import round_down
from privrisk_spark.kernels.random.discrete_gaussian import Admission, calibrate_admission
from privrisk_spark.kernels.random.discrete_laplace import LaplaceAdmission, calibrate_laplace
from privrisk_spark.ledger.ledger import Ledger
from privrisk_spark.planning.proposals import Proposal, most_schemes, proposed_candidates, proposed_schemes
from privrisk_spark.planning.reuse import Reused
from privrisk_spark.policy.policy import AggregateObjective, DpGuarantee, Policy

KEEP_DENOMINATOR = 2**32


@dataclass(frozen=True)
class Choice:
    """Schemes drawn from public candidates.

    Attributes
    ----------
    candidates : tuple of tuple of int
    precision : tuple of Fraction
        ``π`` of each, in [0, 1].
    epsilon : Decimal
        ε₀ of one pick.
    picks : int
        w.
    beyond : int
        ``t₀``: a scheme's score is π times the sum of its cells' rows beyond this.
    """

    candidates: tuple[tuple[int, ...], ...]
    precision: tuple[Fraction, ...]
    epsilon: Decimal
    picks: int
    beyond: int

    def parameters(self) -> dict[str, object]:
        """What may be published of it."""
        return {
            "epsilon_choose": str(self.epsilon),
            "picks": self.picks,
            "t0": self.beyond,
            "candidates": [list(scheme) for scheme in self.candidates],
            "precision": [str(precision) for precision in self.precision],
        }


@dataclass(frozen=True)
class Mechanism:
    """Parameters of one release; everything here may be published.

    Attributes
    ----------
    policy : DpGuarantee
    schemes : tuple of tuple of int
        Level vectors: public, or chosen; none as long as they are to be chosen.
    choice : Choice or None
        How they are chosen.
    admission : Admission, LaplaceAdmission or None
        Noise and least threshold of the admission; None with a public dictionary and in mode global.
    noise_reason : str or None
        Why this noise, where ``guarantee.noise`` left it open.
    frequent : int
        ``t``: cells with a (noisy) count below it are not admitted.
    keep_numerator : int
        ``B``; a row is kept with probability ``B / 2**32``.
    crowd : int
        ``k``: tuples with fewer kept rows are not released.
    delta_crowd : float
        Certificate of the sampling and threshold, rounded up.
    count_cap : int
        Public cap of counts in the objective.
    persons : bool
        Whether one row of each person is drawn beforehand; else every row is a person.
    reused : Reused or None
        Admitted cells of an earlier release, taken in place of an admission.
    proposed : str or None
        Why these schemes or candidates, where the policy names none.
    survival : tuple of int
        Rows a cell needs to be released with probability 50 % and 99 %.
    """

    policy: DpGuarantee
    schemes: tuple[tuple[int, ...], ...]
    choice: Choice | None
    admission: Admission | LaplaceAdmission | None
    noise_reason: str | None
    frequent: int
    keep_numerator: int
    crowd: int
    delta_crowd: float
    count_cap: int
    persons: bool
    survival: tuple[int, int]
    reused: Reused | None = None
    proposed: str | None = None

    @property
    def epsilon(self) -> Decimal:
        """Total ε."""
        chosen = self.choice.picks * self.choice.epsilon if self.choice is not None else Decimal(0)
        return chosen + self.policy.epsilon.admit + self.policy.epsilon.keep

    @property
    def w(self) -> int:
        """Number of schemes."""
        return len(self.schemes) if self.choice is None else self.choice.picks

    @property
    def statement(self) -> str:
        """The guarantee, as printed with the release."""
        admitted = ""
        if self.policy.mode == "public-dictionary":
            admitted = " The admissible cells come from a public dictionary and cost nothing."
        if self.reused is not None:
            admitted = (
                f" The admissible cells are those released by the run '{self.reused.run_id}' and cost nothing more."
            )
        unit = "one row, one row per person,"
        if self.persons:
            unit = (
                "one person with all their rows, of which one is drawn (a row that names nobody is a person by itself),"
            )
        return (
            f"({self.epsilon}, {self.policy.delta})-differential privacy for adding or removing {unit} under the "
            f"assumption that the keyed function is pseudo-random.{admitted}"
        )

    def parameters(self) -> dict[str, object]:
        """Everything that determines the law of the release given the table; all of it may be published."""
        result: dict[str, object] = {
            "mode": self.policy.mode,
            "epsilon_admit": str(self.policy.epsilon.admit),
            "epsilon_keep": str(self.policy.epsilon.keep),
            "delta": str(self.policy.delta),
            "neighbours": "add or remove one person with all their rows" if self.persons else "add or remove one row",
            "unit": unit_of(self.persons),
            "w": self.w,
            "keep_probability": f"{self.keep_numerator}/{KEEP_DENOMINATOR}",
            "k": self.crowd,
            "delta_crowd": self.delta_crowd,
            "public_rows": self.policy.public_rows,
        }
        if self.choice is not None:
            result |= self.choice.parameters()
        else:
            result["schemes"] = [list(scheme) for scheme in self.schemes]
        objective = self.policy.objective
        if isinstance(objective, AggregateObjective):
            result |= {
                "t": self.frequent,
                "objective": {
                    "lambda": objective.lambda_,
                    "kappa": objective.kappa,
                    "tau": str(objective.tau),
                    "phi_min": objective.phi_min,
                    "count_cap": self.count_cap,
                },
            }
        elif objective is not None:
            result |= {
                "t": self.frequent,
                "objective": {
                    "kind": objective.kind,
                    "utility_at_least": objective.utility_at_least,
                    "tau": str(objective.tau),
                    "count_cap": self.count_cap,
                },
            }
        if self.admission is not None:
            result |= self.admission.parameters()
        if self.reused is not None:
            result["reuse"] = self.reused.parameters()
        return result

    def digest(self, policy: Policy, hierarchies: Mapping[str, Hierarchy]) -> str:
        """SHA-256 over everything but the table that the released tuples depend on, hex.

        Hierarchies count by their content, a public dictionary by where it lies.
        """
        document: dict[str, object] = {"mechanism": self.parameters()}
        if self.persons:
            document["entity_id"] = policy.table.entity_id
        return content_digest(document, policy, hierarchies)


def content_digest(document: Mapping[str, object], policy: Policy, hierarchies: Mapping[str, Hierarchy]) -> str:
    """SHA-256 of a document together with columns, risk, utility, dictionary and hierarchies, hex."""
    whole = {
        **document,
        # Pairs, in the policy's order: the schemes' levels go by it.
        "columns": [[name, c.model_dump(mode="json", by_alias=True)] for name, c in policy.columns.items()],
        "risk": policy.risk.model_dump(mode="json"),
        "utility": policy.utility.model_dump(mode="json"),
        "dictionary": policy.dictionary.model_dump(mode="json"),
        "hierarchies": [[hierarchy.labels, hierarchy.parent.tolist()] for hierarchy in hierarchies.values()],
    }
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()


def unit_of(persons: bool) -> str:
    """What a release protects, in words."""
    return "person, one row drawn of each" if persons else "one row per person"


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
    if hierarchies is not None and not faults:
        for key, vectors in (("guarantee.schemes", dp.schemes), ("guarantee.candidates", dp.candidates)):
            faults += _levels_outside(key, vectors or (), hierarchies)
    persons = policy.table.entity_id is not None
    reused = None if dp.reuse is None else Reused.read(dp.reuse)
    if reused is not None:
        known = None if hierarchies is None or faults else hierarchies
        faults += reused.differences(policy, known, unit=unit_of(persons))
    noisy = dp.mode == "local" and reused is None
    budget = Fraction(dp.delta) / 2 if noisy else Fraction(dp.delta)
    epsilon_keep = Fraction(dp.epsilon.keep)
    numerator = keep_numerator(epsilon_keep, Fraction(str(dp.keep_fraction)))
    crowd = dp.crowd if dp.crowd is not None else least_crowd(budget, numerator, epsilon_keep)
    proof = certificate(crowd, numerator, epsilon_keep)
    if proof.delta > budget:
        faults.append(
            Fault(
                "guarantee.crowd",
                f"must be at least {least_crowd(budget, numerator, epsilon_keep)} for delta {dp.delta}. Got {crowd}",
            )
        )
    survival = (survival_rows(crowd, numerator, 0.5), survival_rows(crowd, numerator, 0.99))
    chooses = dp.mode == "global" or dp.peel is not None
    schemes = reused.schemes if reused is not None else _tuples(dp.schemes)
    candidates, proposal = _tuples(dp.candidates), None
    if hierarchies is not None and not faults and not (candidates if chooses else schemes):
        proposal = _proposal(policy, hierarchies, budget if noisy else None, survival[1], chooses=chooses)
        schemes, candidates = ((), proposal.schemes) if chooses else (proposal.schemes, ())
        if dp.peel is not None and dp.peel > len(candidates):
            faults.append(Fault("guarantee.peel", f"must be at most the {len(candidates)} candidates. Got {dp.peel}"))
    admission, reason = None, None
    frequent = dp.frequent or (reused.frequent if reused is not None else 1)
    if noisy:
        # Schemes that are not known yet are at least one.
        admission, reason = _admission(dp, budget, dp.peel or len(schemes) or 1)
        frequent = dp.frequent or admission.threshold
        if frequent < admission.threshold:
            faults.append(
                Fault(
                    "guarantee.frequent", f"must be at least T = {admission.threshold} for this delta. Got {frequent}"
                )
            )
    choice = None
    if chooses:
        weights = [Fraction(str(policy.utility.weights.get(name, 1))) for name in policy.quasi_identifiers]
        if not any(weights):
            faults.append(Fault("utility.weights", "must not all be 0: they weigh the precision of candidates"))
        beyond = frequent if noisy else dp.frequent or survival[0]
        precisions = () if faults or hierarchies is None else _precisions(candidates, hierarchies, weights)
        choice = Choice(candidates, precisions, dp.epsilon.choose, dp.peel or 1, beyond)
    if faults:
        raise ConfigError(faults)
    return Mechanism(
        policy=dp,
        schemes=schemes,
        choice=choice,
        admission=admission,
        noise_reason=reason,
        frequent=frequent,
        keep_numerator=numerator,
        crowd=crowd,
        delta_crowd=proof.delta_float,
        count_cap=(dp.objective.count_cap if dp.objective is not None else None) or dp.public_rows,
        persons=persons,
        reused=reused,
        survival=survival,
        proposed=None if proposal is None else proposal.because,
    )


def _tuples(vectors: Sequence[Sequence[int]] | None) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(vector) for vector in vectors or ())


def _proposal(
    policy: Policy, hierarchies: Mapping[str, Hierarchy], noisy: Fraction | None, survive: int, *, chooses: bool
) -> Proposal:
    """Propose schemes or candidates; ``noisy`` is the delta of an admission, if there is one."""
    dp = policy.guarantee
    assert isinstance(dp, DpGuarantee)
    need, why = survive, f"N99 = {survive} to survive with probability 99 %"
    if dp.mode != "global":
        w = dp.peel or most_schemes(dp.public_rows)
        least = dp.frequent or 1
        if noisy is not None and dp.frequent is None:
            least = _admission(dp, noisy, w)[0].threshold
        need, why = max(need, least), f"t = {least} to be admitted, of up to {w} schemes, and {why}"
    return (proposed_candidates if chooses else proposed_schemes)(policy, hierarchies, need=need, why=why)


def _admission(dp: DpGuarantee, budget: Fraction, w: int) -> tuple[Admission | LaplaceAdmission, str | None]:
    """Calibrate the noise that is asked for, or the one that admits cells of fewer rows, and say why."""
    epsilon = dp.epsilon.admit

    def gaussian() -> Admission:
        # Half of the budget for the noisy counts, half for cells of one row.
        return calibrate_admission(float(epsilon), w, round_down(budget / 2), round_down(budget / 2))

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


def cost_of(policy: Policy, plan: Mechanism, run_id: str, digest: str) -> dict[str, Any]:
    """What the ledger is asked to reserve.

    Raises
    ------
    BudgetError
        If it takes admitted cells again that the ledger knows no payment of.
    """
    assert policy.ledger is not None
    if plan.reused is not None:
        plan.reused.refuse_unpaid(Ledger(policy.ledger.url))
    return {
        "lineage": policy.ledger.lineage,
        "run_id": run_id,
        "epsilon": plan.epsilon,
        "delta": plan.policy.delta,
        "cap_epsilon": policy.ledger.cap.epsilon,
        "cap_delta": policy.ledger.cap.delta,
        "mechanism": {"parameters": plan.parameters(), "digest": digest, "version": __version__},
    }
