"""The texts of a differentially private release, and its guarantee."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from privrisk_spark.ledger.calibrated import KEEP_DENOMINATOR, Calibrated, Choosing, OneScheme, ReusedCells
from privrisk_spark.planning.proposals import scheme_table
from privrisk_spark.policy.policy import Accounting, Policy
from privrisk_spark.reporting.models.texts import Hierarchies, ModelTexts, name_lines
from privrisk_spark.reporting.numbers import short_number
from privrisk_spark.results.release import Guarantee


class PrivateTexts(ModelTexts):
    """Its texts."""

    how = "made coarser until a crowd of records shares them"
    safe = (
        "To hand to any reader, whatever they know: what one row or person adds changes the chance of any release by a "
        "factor of e^ε at most, but for δ. Both are told below; the smaller they are, the safer it is."
    )
    proved = (
        "What is proved is how little one row, or one person, changes the chance of anything that is published. Not "
        "that the published rows are representative."
    )
    lost = "Only a random sample of the rows is published, and no rare combination of values."
    risk_basis = "admitted (noisy or public) counts; before: an upper bound, as if one row were consistent"
    guarantees = True

    def warn(self, parameters: Mapping[str, object]) -> list[str]:
        """Return what a reader of a differentially private release must know, in plain words."""
        epsilon = _number(parameters.get("epsilon_keep"))
        share = ""
        if epsilon is not None:
            share = f", here {100 * -math.expm1(-epsilon):.1f} % (ε₂ = {short_number(epsilon)})"
        least = _number(parameters.get("k"))
        crowd = "enough rows" if least is None else f"at least {short_number(least)} rows"
        return [
            f"At most 1 − e^(−ε₂) of the rows can be published{share}, whatever the other settings: what is "
            "published is a random sample.",
            f"Rare combinations of values are never published: one appears only if {crowd} of the sample share it.",
            "The exponential draw that picks how far a row is generalized is a utility feature. The privacy "
            "comes from the noise, the sampling and the crowd threshold.",
        ]

    def explain(self, policy: Policy, hierarchies: Hierarchies, plan: Any) -> list[str]:
        """Return the parameters and the schemes."""
        half, almost = plan.survival
        schemes = plan.candidates if isinstance(plan, Choosing) else plan.schemes
        frequent = None if isinstance(plan, OneScheme) else plan.frequent
        table = scheme_table(policy, hierarchies, schemes, frequent=frequent, crowd=plan.crowd, survival=plan.survival)
        rows = f"a cell needs {half} rows to be released with probability 50 %, {almost} for 99 %"
        return [*name_lines(dp_guarantee(plan).parameters), *table, rows]


def _number(value: object) -> float | None:
    """Return a parameter as a number, if it is one; exact ones arrive as text."""
    if value is None or isinstance(value, bool):
        return None
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def dp_guarantee(plan: Calibrated, bound_by: Accounting = "basic") -> Guarantee:
    """Guarantee of a differentially private release, its cost in both accountings, and what it says of several rows.

    Parameters
    ----------
    bound_by : {'basic', 'pld'}
        What the cap of its lineage binds on; the guarantee of the release itself is the same.
    """
    # Not before it is needed: its packages take a second to import.
    from privrisk_spark.ledger import accounting

    parameters = plan.parameters
    if plan.noise_reason is not None:
        parameters["noise_reason"] = plan.noise_reason
    if plan.proposed is not None:
        parameters["proposed_because"] = plan.proposed
    parameters["accounting"] = accounting.account(plan.events)
    if bound_by == "pld":
        parameters["accounting_of_the_cap"] = {
            "accounting": bound_by,
            "status": "tested",
            "rests_on": accounting.RESTS_ON,
        }
    parameters |= accounting.further_guarantees(plan.epsilon, plan.delta)
    return Guarantee("dp", plan.statement, "proved", parameters)


def choice_sentence(plan: Choosing) -> str:
    """What choosing the schemes of a differentially private release did, in words."""
    picks = "one scheme" if plan.picks == 1 else f"{plan.picks} schemes, one after the other,"
    return (
        f"Drew {picks} of {len(plan.candidates)} public candidates by the exponential mechanism with epsilon "
        f"{plan.epsilon_choose} a pick; the score is a scheme's precision times the rows of its cells beyond "
        f"t0 = {plan.beyond}."
    )


def admission_sentence(plan: Calibrated) -> str:
    """What the admission of a differentially private release did, in words."""
    if isinstance(plan, ReusedCells):
        return f"Took the cells that the run '{plan.reuse.run_id}' admitted and released; no row was counted for it."
    if plan.admission is None:
        return f"Counted the public dictionary; cells with at least t = {plan.frequent} rows are admissible."
    kind = "chosen" if isinstance(plan, Choosing) else "public"
    return (
        f"Admitted the cells of {plan.w} {kind} schemes whose count plus {plan.admission.noise} reaches "
        f"t = {plan.frequent}."
    )


def recoding_sentence(plan: Calibrated) -> str:
    """What recoding and sampling of a differentially private release did, in words."""
    if isinstance(plan, OneScheme):
        return (
            "Recoded every record by the chosen scheme, and kept each with probability "
            f"{plan.keep_numerator}/2^32, by a keyed function of the record."
        )
    return (
        "Drew each record's generalization among the admitted ones by the exponential objective, and kept each "
        f"record with probability {plan.keep_numerator}/2^32, both by keyed functions of the record."
    )


def row_needs(plan: Calibrated) -> dict[str, str | int | float]:
    """Return how many rows a cell needs to be released, for both reports."""
    half, almost = plan.survival
    return {f"rows a cell needs to be released with probability {p} %": rows for p, rows in ((50, half), (99, almost))}


def row_weight(plan: Calibrated) -> dict[str, str | int | float]:
    """Return how many rows a released one stands for, for the public report."""
    return {"weight of a released row": f"{KEEP_DENOMINATOR / plan.keep_numerator:.6g}"}


TEXTS = PrivateTexts()
