"""The contract of a masked release."""

from __future__ import annotations

from privrisk_spark.extensions.perturb.results import FEW_CHANGED, MaskingFacts
from privrisk_spark.results.contract import FactRule
from privrisk_spark.results.facts import InputFacts, ReleaseFacts


def masked_rules(
    facts: InputFacts, released: ReleaseFacts, masked: MaskingFacts, *, as_decided: bool, proved_k: int | None
) -> tuple[list[FactRule], dict[str, float | int]]:
    """Rules on the staged files of a masked release, and the facts they read.

    Parameters
    ----------
    released : ReleaseFacts
        Its classes are those of values.
    as_decided : bool
        Whether the files hold the masked values of which the changes were counted.
    proved_k : int or None
        What microaggregation over all quasi-identifiers proves.
    """
    rules = [FactRule("released rows", "every record read is released", facts.rows, facts.rows)]
    values: dict[str, float | int] = {"released rows": released.rows}
    fact = "masked values in other rows"
    rules.append(FactRule(fact, "the files hold the masked values of each record, as they were measured", at_most=0))
    values[fact] = int(not as_decided)
    for column in masked.columns:
        share = masked.changed.get(column.name)
        if share is None:
            continue
        text = (
            f"columns.{column.name}.mask (method '{column.method}') changes at least one value; choose stronger "
            "parameters, or leave the mask out"
        )
        rules.append(FactRule(f"changed values of {column.name}", text, at_least=1))
        values[f"changed values of {column.name}"] = column.changed
        text = f"columns.{column.name}.mask changes at least {100 * FEW_CHANGED:g} % of the values"
        rules.append(FactRule(f"share of changed values of {column.name}", text, FEW_CHANGED, None, "warning"))
        values[f"share of changed values of {column.name}"] = share
    if proved_k is not None:
        text = f"every released class with a value in a quasi-identifier has at least {proved_k:,} rows"
        rules.append(FactRule("smallest class with values", text, at_least=proved_k))
        least = released.min_telling_size
        values["smallest class with values"] = proved_k if least is None else least
    return rules, values
