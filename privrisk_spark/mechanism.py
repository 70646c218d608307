"""Mechanism R: the public parameters of a differentially private release, fixed before the table is read.

The release is admission of t-frequent cells under discrete Gaussian or Laplace noise, an exponential draw per record
among admitted generalizations (F12 eq 5.4), a keyed Bernoulli sample, and a crowd threshold on whole released tuples.

Status: *proved*, for add/remove of one row and one row per person (drawn beforehand where a person may have several:
``sampling.one_row_each``), assuming the keyed function is pseudo-random: the
admission is (ε₁, δ_gauss + δ_select)-DP (δ_gauss = 0 under Laplace noise), the rest is (ε₂, δ*)-DP for every admitted
set (:mod:`privrisk_spark.kernels.crowd`), and the two add up.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from privrisk_spark import __version__
from privrisk_spark.builders import is_public
from privrisk_spark.errors import ConfigError, Fault, InputError
from privrisk_spark.hierarchy import Hierarchy
from privrisk_spark.kernels.crowd import certificate, keep_numerator, least_crowd, survival_rows
from privrisk_spark.kernels.discrete_gaussian import Admission, calibrate_admission
from privrisk_spark.kernels.discrete_laplace import LaplaceAdmission, calibrate_laplace
from privrisk_spark.kernels.rational import round_down
from privrisk_spark.policy import DpGuarantee, Policy

KEEP_DENOMINATOR = 2**32


@dataclass(frozen=True)
class Mechanism:
    """Parameters of one release; everything here may be published.

    Attributes
    ----------
    policy : DpGuarantee
    schemes : tuple of tuple of int
        Public level vectors.
    admission : Admission, LaplaceAdmission or None
        Noise and least threshold of the admission; None with a public dictionary.
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
    survival : tuple of int
        Rows a cell needs to be released with probability 50 % and 99 %.
    """

    policy: DpGuarantee
    schemes: tuple[tuple[int, ...], ...]
    admission: Admission | LaplaceAdmission | None
    noise_reason: str | None
    frequent: int
    keep_numerator: int
    crowd: int
    delta_crowd: float
    count_cap: int
    persons: bool
    survival: tuple[int, int]

    @property
    def epsilon(self) -> Decimal:
        """Total ε."""
        return self.policy.epsilon.admit + self.policy.epsilon.keep

    @property
    def statement(self) -> str:
        """The guarantee, as printed with the release."""
        admitted = "" if self.admission else " The admissible cells come from a public dictionary and cost nothing."
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
        objective = self.policy.objective
        result: dict[str, object] = {
            "mode": self.policy.mode,
            "epsilon_admit": str(self.policy.epsilon.admit),
            "epsilon_keep": str(self.policy.epsilon.keep),
            "delta": str(self.policy.delta),
            "neighbours": "add or remove one person with all their rows" if self.persons else "add or remove one row",
            "unit": "person, one row drawn of each" if self.persons else "one row per person",
            "schemes": [list(scheme) for scheme in self.schemes],
            "w": len(self.schemes),
            "t": self.frequent,
            "keep_probability": f"{self.keep_numerator}/{KEEP_DENOMINATOR}",
            "k": self.crowd,
            "delta_crowd": self.delta_crowd,
            "objective": {
                "lambda": objective.lambda_,
                "kappa": objective.kappa,
                "tau": str(objective.tau),
                "phi_min": objective.phi_min,
                "count_cap": self.count_cap,
            },
            "public_rows": self.policy.public_rows,
        }
        if self.admission is not None:
            result |= self.admission.parameters()
        return result

    def digest(self, policy: Policy, hierarchies: Mapping[str, Hierarchy]) -> str:
        """SHA-256 over everything but the table that the released tuples depend on, hex.

        Hierarchies count by their content, a public dictionary by where it lies.
        """
        document: dict[str, object] = {
            "mechanism": self.parameters(),
            # Pairs, in the policy's order: the schemes' levels go by it.
            "columns": [[name, c.model_dump(mode="json", by_alias=True)] for name, c in policy.columns.items()],
            "risk": policy.risk.model_dump(mode="json"),
            "utility": policy.utility.model_dump(mode="json"),
            "dictionary": policy.dictionary.model_dump(mode="json"),
            "hierarchies": [[hierarchy.labels, hierarchy.parent.tolist()] for hierarchy in hierarchies.values()],
        }
        if self.persons:
            document["entity_id"] = policy.table.entity_id
        return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def mechanism(policy: Policy, hierarchies: Mapping[str, Hierarchy] | None = None) -> Mechanism:
    """Calibrate a release and refuse what the proof does not cover.

    Parameters
    ----------
    policy : Policy
        With ``guarantee.kind: dp``.
    hierarchies : mapping of attribute to Hierarchy, optional
        To check the schemes' levels against.

    Raises
    ------
    ConfigError
        If the certificate exceeds the asked δ, t is below T, a scheme leaves its lattice, or a hierarchy would take its
        leaves from the data.
    """
    dp = policy.guarantee
    assert isinstance(dp, DpGuarantee)
    faults = list(_private_domains(policy))
    if hierarchies is not None:
        faults += _levels_outside(dp, hierarchies)
    noisy = dp.mode == "local"
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
    admission, reason = None, None
    frequent = dp.frequent or 1
    if noisy:
        admission, reason = _admission(dp, budget)
        frequent = dp.frequent or admission.threshold
        if frequent < admission.threshold:
            faults.append(
                Fault(
                    "guarantee.frequent", f"must be at least T = {admission.threshold} for this delta. Got {frequent}"
                )
            )
    if faults:
        raise ConfigError(faults)
    return Mechanism(
        policy=dp,
        schemes=tuple(tuple(scheme) for scheme in dp.schemes),
        admission=admission,
        noise_reason=reason,
        frequent=frequent,
        keep_numerator=numerator,
        crowd=crowd,
        delta_crowd=proof.delta_float,
        count_cap=dp.objective.count_cap or dp.public_rows,
        persons=policy.table.entity_id is not None,
        survival=(survival_rows(crowd, numerator, 0.5), survival_rows(crowd, numerator, 0.99)),
    )


def _admission(dp: DpGuarantee, budget: Fraction) -> tuple[Admission | LaplaceAdmission, str | None]:
    """Calibrate the noise that is asked for, or the one that admits cells of fewer rows, and say why."""
    w, epsilon = len(dp.schemes), dp.epsilon.admit

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


def _levels_outside(dp: DpGuarantee, hierarchies: Mapping[str, Hierarchy]) -> list[Fault]:
    faults = []
    for position, scheme in enumerate(dp.schemes):
        for level, (name, hierarchy) in zip(scheme, hierarchies.items(), strict=True):
            if level > hierarchy.height:
                faults.append(
                    Fault(
                        f"guarantee.schemes.{position}",
                        f"level {level} of '{name}' exceeds the height {hierarchy.height} of its hierarchy",
                    )
                )
    return faults


def cost_of(policy: Policy, plan: Mechanism, run_id: str, digest: str) -> dict[str, Any]:
    """What the ledger is asked to reserve."""
    assert policy.ledger is not None
    return {
        "lineage": policy.ledger.lineage,
        "run_id": run_id,
        "epsilon": plan.epsilon,
        "delta": plan.policy.delta,
        "cap_epsilon": policy.ledger.cap.epsilon,
        "cap_delta": policy.ledger.cap.delta,
        "mechanism": {"parameters": plan.parameters(), "digest": digest, "version": __version__},
    }
