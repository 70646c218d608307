"""The texts of a masked release: no guarantee, the masks, and what they did to the columns."""

from __future__ import annotations

from dataclasses import replace

from privrisk_spark.extensions.perturb.planning import BLOCK_ROWS, EXACT_ROWS, MaskPlan, declared_masks
from privrisk_spark.extensions.perturb.results import FEW_CHANGED, MaskedColumn, MaskingFacts
from privrisk_spark.json_values import as_json
from privrisk_spark.policy.policy import Policy
from privrisk_spark.reporting.kept_columns import uniqueness_section
from privrisk_spark.reporting.models.texts import ModelTexts
from privrisk_spark.reporting.numbers import percent, short_number
from privrisk_spark.reporting.release_reports import RunRecord, fill_report
from privrisk_spark.results.facts import ReleaseFacts
from privrisk_spark.results.release import Guarantee, Report, Section

KNOWN = (
    "Whoever has the release may know the methods and their parameters. Not to be known is the key that drew the "
    "noise, the partners and the categories; the run destroys it, unless it was given one. Neither is what the "
    "parameters do not say of the table: its variances, its groups, its shares."
)
"""What an intruder may know, for a manifest."""


def masked_guarantee(policy: Policy, plan: MaskPlan, found: MaskingFacts | None = None) -> Guarantee:
    """Guarantee of a masked release: none, but for the classes of microaggregation over all quasi-identifiers.

    Parameters
    ----------
    found : MaskingFacts, optional
        What was measured of the release, if there is one.
    """
    statement = (
        "No guarantee: values are masked, that is changed so that they are hard to link to a person, and how hard it "
        "is shows in an attack alone (privrisk attack)."
    )
    parameters: dict[str, object] = {"masks": declared_masks(policy), "known": KNOWN}
    if found is not None and found.changed:
        shares = ", ".join(f"'{name}' {percent(share)}" for name, share in found.changed.items())
        statement += f" Share of the values that were changed, by column: {shares}."
        parameters["changed"] = {name: round(share, 4) for name, share in found.changed.items()}
    if plan.proved_k is None:
        return Guarantee("masked", statement, "heuristic", parameters)
    statement += (
        f" One thing holds of every released row: at least {plan.proved_k:,} rows are equal in all quasi-identifiers, "
        "as these are aggregated together, or the row has none of them. It is counted on the written files. It is no "
        "promise of columns that are not quasi-identifiers."
    )
    return Guarantee("masked", statement, "proved", {"k": plan.proved_k, **parameters})


def unchanged_warnings(found: MaskingFacts) -> list[str]:
    """Return a warning for each column of which masking changes a few values only."""
    return [
        f"columns.{name}.mask: changes {percent(share)} of the values only; the others are published as they are. "
        "Choose stronger parameters."
        for name, share in found.changed.items()
        if 0 < share < FEW_CHANGED
    ]


def masking_sentence(plan: MaskPlan) -> str:
    """What the masking stage did, in words."""
    methods = dict.fromkeys(mask.method for mask in plan.masks.values())
    named = [f"'{method}'" for method in methods]
    return f"Masked {len(plan.masks)} columns by {', '.join(named)}; what is drawn, is drawn by a key of each record."


def masking_explanation(policy: Policy, plan: MaskPlan) -> str:
    """What a run will do, as text."""
    lines = ["guarantee: " + masked_guarantee(policy, plan).statement]
    for name in policy.kept_columns:
        mask = plan.masks.get(name)
        said = "as it is" if mask is None else ", ".join(f"{key} {value}" for key, value in mask.declared().items())
        lines.append(f"{name}: {said}")
    for one in plan.arranged:
        if one.together:
            lines.append(
                f"{', '.join(one.columns)}: aggregated together, up to {EXACT_ROWS:,} rows all at once, and beyond in "
                f"blocks of {BLOCK_ROWS:,} along the first principal axis"
            )
    return "\n".join(lines)


def masking_section(found: MaskingFacts) -> Section:
    """Return the masked columns before and after, for the vault."""
    facts: dict[str, str | int | float] = {}
    for column in found.columns:
        facts |= _column_facts(column, found.percent, found.changed.get(column.name))
    lost = "" if found.il1s is None else f" The loss IL1s of the columns of numbers is {found.il1s:.4g} on average."
    paragraph = (
        f"{len(found.columns)} columns of {found.rows:,} records are masked.{lost} Within so many percent of the "
        "ranks, or of the standard deviation, of a masked value the true one is found as often as is told below "
        "(interval disclosure)."
    )
    return Section("masking", "What masking did", paragraph, "tested", facts, tuple(_remarks(found)), as_json(found))


def _column_facts(column: MaskedColumn, within: float, share: float | None) -> dict[str, str | int | float]:
    facts: dict[str, str | int | float] = {f"{column.name}: records changed": column.changed}
    if share is not None:
        facts[f"{column.name}: share of the values changed"] = share
    if column.missing_before or column.missing_after:
        facts[f"{column.name}: missing, before → after"] = f"{column.missing_before:,} → {column.missing_after:,}"
    if column.before is not None and column.after is not None:
        pairs = {"mean": (column.before.mean, column.after.mean)}
        pairs["standard deviation"] = (column.before.deviation, column.after.deviation)
        for name, (before, after) in pairs.items():
            facts[f"{column.name}: {name}, before → after"] = f"{short_number(before)} → {short_number(after)}"
    measures = {
        "loss IL1s": column.il1s,
        f"share within {within:g} % of the ranks": column.disclosed_by_rank,
        f"share within {within:g} % of the standard deviation": column.disclosed_by_deviation,
    }
    return facts | {f"{column.name}: {name}": value for name, value in measures.items() if value is not None}


def _remarks(found: MaskingFacts) -> list[str]:
    remarks = []
    for i, one in enumerate(found.numbers):
        for j in range(i + 1, len(found.numbers)):
            before, after = found.correlations_before[i][j], found.correlations_after[i][j]
            remarks.append(f"Correlation of {one} and {found.numbers[j]}: {before:.3f} before, {after:.3f} after.")
    for loss in found.losses:
        remarks.append(
            f"Grouped in blocks along the first principal axis ({loss.label}). On {loss.sampled:,} records drawn by "
            f"key, groups of four blocks lose {100 * loss.blocks:.3g} % of the sum of squares, and groups of all "
            f"at once {100 * loss.exact:.3g} %."
        )
    if found.suppressed:
        remarks.append(
            f"{found.suppressed:,} values are missing in the release, as fewer than k records lack the same columns."
        )
    if found.clipped:
        remarks.append(f"{found.clipped:,} masked values left the range of their type, and are its end.")
    remarks.append("Whole numbers and days are rounded back to whole ones after they are masked.")
    return remarks


def masked_reports(
    run: RunRecord, masked: MaskingFacts, released: ReleaseFacts, found: Section
) -> tuple[Report, Report]:
    """Vault and public report of a masked release.

    Parameters
    ----------
    released : ReleaseFacts
        Its classes are those of values of quasi-identifiers.
    found : Section
        What masking did; for the vault.
    """
    kept = uniqueness_section(released) if released.unique_by_kept else None
    if kept is not None:
        both, cells = released.unique_by_all or 0, released.unique_by_cells
        text = (
            f"Columns without a mask are released as they are. Of {released.rows:,} rows, {both:,} differ from all "
            f"others in quasi-identifiers and kept columns together, {cells:,} in quasi-identifiers alone."
        )
        kept = replace(kept, paragraph=text)
    of_release = () if kept is None else (kept,)
    shared: dict[str, str | int | float] = {
        "released rows": released.rows,
        "different combinations of quasi-identifiers": released.classes,
        "rows of the rarest combination": released.min_class_size,
        "rows whose combination no other has": released.unique_by_cells,
    }
    shared |= {f"share of the values of {name} changed": round(share, 4) for name, share in masked.changed.items()}
    vault = fill_report(run, "vault", {"records": masked.rows, **shared}, None, released)
    public = fill_report(run, "public", shared, None, released)
    return replace(vault, sections=(found, *of_release)), replace(public, sections=of_release)


class MaskedTexts(ModelTexts):
    """Its texts."""

    how = "their values changed by a mask"
    safe = (
        "Nothing is proved of a reader who tries to link records. Hand it to whom an attack on it was judged tolerable "
        "for (privrisk attack)."
    )
    proved = (
        "What is proved is how many released rows are equal in all quasi-identifiers. Not that nobody can be found by "
        "other columns, and nothing else of the masks."
    )
    unproved = (
        "There is no proof of anything here. Whether people can be found in this release is shown by an attack alone."
    )
    lost = "Single values are not true any more; what masking did to means and correlations is told below."
    risk_basis = "none: no risk is computed; privrisk attack measures it"


TEXTS = MaskedTexts()
