"""The first screen of a release's report: what is released, to whom it is safe, what was lost, before and after."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from privrisk_spark.errors import listing
from privrisk_spark.kernels.disclosure.risk import RiskModel
from privrisk_spark.policy.policy import Policy
from privrisk_spark.reporting.models.texts import texts_of
from privrisk_spark.reporting.numbers import percent, short_number
from privrisk_spark.results.facts import DecisionFacts, ReleaseFacts
from privrisk_spark.results.headline import Compared, Headline
from privrisk_spark.results.release import AttributeLevels, Guarantee, Summary
from privrisk_spark.results.trade_off import TradeOffFacts


def headline(
    policy: Policy,
    guarantee: Guarantee,
    released: ReleaseFacts,
    *,
    measured: DecisionFacts | None,
    levels: tuple[AttributeLevels, ...],
    utility_max: float | None,
) -> Headline:
    """Say in three short paragraphs what a reader must know first.

    Parameters
    ----------
    measured : DecisionFacts or None
        None where the edition may not tell exact figures.
    levels : tuple of AttributeLevels
        As this edition shows them.
    utility_max : float or None
        Utility if nothing were generalized.
    """
    return Headline(
        " ".join(_released(policy, released)),
        " ".join(_safe(policy, guarantee)),
        " ".join(_lost(policy, measured, levels, utility_max)),
    )


def _released(policy: Policy, released: ReleaseFacts) -> Iterator[str]:
    texts = texts_of(policy.guarantee.kind)
    quasi, masked = list(policy.quasi_identifiers), _masked(policy)
    kept = [name for name in policy.kept_columns if name not in masked]
    subject = quasi if policy.guarantee.generalizes else masked
    yield f"{_counted(released.rows, 'row')}."
    if subject:
        yield f"{_counted(len(subject), 'column')}, {texts.how}: {listing(subject)}."
    exact = [name for name in kept if name not in policy.recodings]
    if exact:
        yield f"Released as they are: {listing(exact)}."
    coarser = [name for name in kept if name not in exact]
    if coarser:
        yield f"Made coarser for all rows alike: {listing(coarser)}."
    gone = [name for name in policy.columns if name not in (*quasi, *policy.kept_columns)]
    if gone:
        yield f"Left out: {listing(gone)}."


def _masked(policy: Policy) -> list[str]:
    return [name for name, mask in policy.masks.items() if mask.method != "none"]


def _safe(policy: Policy, guarantee: Guarantee) -> Iterator[str]:
    known = "the original table" if policy.dictionary.kind == "self" else "the given dictionary"
    asked = guarantee.parameters.get("k")
    alike = f"at least {asked}" if asked is not None else "so many as was asked"
    yield texts_of(guarantee.kind).safe.format(known=known, alike=alike)
    masked = _masked(policy)
    kept = [name for name in policy.kept_columns if name not in masked]
    if kept:
        yield f"Not safe from a reader who knows values of {listing(kept)}."


def _lost(
    policy: Policy,
    measured: DecisionFacts | None,
    levels: tuple[AttributeLevels, ...],
    utility_max: float | None,
) -> Iterator[str]:
    if measured is not None and utility_max:
        yield f"Of the utility of the table, {percent(measured.utility.mean / utility_max)} is left on average."
    if levels:
        shares = {one.attribute: one.rows[-1] / sum(one.rows) for one in levels if sum(one.rows)}
        whole = [f"{name} ({percent(share)})" for name, share in shares.items() if share >= _TOLD_FROM]
        exact = {one.attribute: one.rows[0] / sum(one.rows) for one in levels if sum(one.rows)}
        best = [f"{name} ({percent(share)})" for name, share in exact.items() if share >= _TOLD_FROM]
        if whole:
            yield f"Suppressed in most rows: {listing(whole)}."
        if best:
            yield f"Exact in most rows: {listing(best)}."
        if not whole and not best:
            yield "No column is exact or suppressed in most rows."
    lost = texts_of(policy.guarantee.kind).lost
    if lost is not None:
        yield lost
    if measured is not None and measured.infeasible + measured.suppressed:
        yield f"{_counted(measured.infeasible + measured.suppressed, 'record')} suppressed as a whole."


_TOLD_FROM = 0.5
"""Share of the rows from which a column is named."""


def _counted(number: int, unit: str) -> str:
    return f"{number:,} {unit}{'' if number == 1 else 's'}"


RISK_NAMES: Final[Mapping[RiskModel, str]] = {
    "I": "weighted risk",
    "II": "probability that a record is found",
    "III": "weighted risk in nats",
}
"""What the risk of each model is called; only that of model II is a probability."""


RISK_UNITS: Final[Mapping[RiskModel, str]] = {
    "I": "in the unit of the sensitivity Φ",
    "II": "",
    "III": "in nats times the unit of the sensitivity Φ",
}
"""What a risk is told in; a probability has no unit."""


def _risks(measured: DecisionFacts, model: RiskModel) -> Iterator[tuple[str, str, Summary, Summary]]:
    """Names and units of risks, before and after: the probability, and the weighted risk where it is another number."""
    before, after = measured.identified_before, measured.identified_after
    told = before is not None and after is not None
    if before is not None and after is not None:
        yield RISK_NAMES["II"], RISK_UNITS["II"], before, after
    if model != "II" or not told:
        yield RISK_NAMES[model], RISK_UNITS[model], measured.risk_before, measured.risk_after


def compared(
    released: ReleaseFacts,
    *,
    rows: int | None,
    measured: DecisionFacts | None,
    risk_before: bool,
    utility_max: float | None,
    sample: TradeOffFacts | None = None,
    model: RiskModel = "I",
    utility_unit: str = "",
) -> tuple[Compared, ...]:
    """Return the table and its release side by side; what an edition may not tell of the table is None.

    Parameters
    ----------
    rows : int or None
        Of the table.
    risk_before : bool
        Whether the risk of the table may be told.
    sample : TradeOffFacts or None
        What is known from sampled records.
    model : {"I", "II", "III"}
        Says what the risk is.
    """
    found = [Compared("rows", rows, released.rows)]
    if measured is not None:
        for name, unit, before, after in _risks(measured, model):
            found.append(Compared(f"mean {name}", before.mean if risk_before else None, after.mean, unit))
            found.append(Compared(f"largest {name}", before.max if risk_before else None, after.max, unit))
    if sample is not None:
        of = f"of {sample.records:,} sampled records"
        alone_before, alone_after = (one.alone / sample.records for one in (sample.fits_before, sample.fits_after))
        found.append(
            Compared(
                "records that one row of the dictionary alone fits",
                percent(alone_before),
                percent(alone_after),
                of,
            )
        )
        found.append(
            Compared(
                "dictionary rows that fit a record, median", sample.fits_before.median, sample.fits_after.median, of
            )
        )
    found.append(Compared("different combinations of quasi-identifiers", None, released.classes))
    found.append(Compared("rows of the smallest class", None, released.min_class_size))
    found.append(Compared("rows alone in their class", None, released.unique_by_cells))
    if measured is not None and utility_max is not None:
        of = "" if risk_before else f"of {short_number(utility_max)}, if nothing were generalized"
        of = ", ".join(part for part in (of, f"in {utility_unit}" if utility_unit else "") if part)
        before_utility = utility_max if risk_before else None
        found.append(Compared("mean utility of a record", before_utility, measured.utility.mean, of))
    return tuple(found)


def shown(value: float | str | None) -> str:
    """Return a compared value for a person."""
    return "not told" if value is None else value if isinstance(value, str) else short_number(value)


def recoding_name(levels: Sequence[int], attributes: Sequence[AttributeLevels]) -> str:
    """Return a level vector in words, each attribute by the name of its level.

    Parameters
    ----------
    levels : sequence of k int
    attributes : sequence of k AttributeLevels
    """
    return ", ".join(
        f"{one.attribute}: {one.level_names[level]}" for one, level in zip(attributes, levels, strict=True)
    )


def anonymity_name(facts: TradeOffFacts) -> str:
    """Return what a point of k is: k-anonymity of the table, or k-map against another dictionary."""
    return "k-anonymity" if facts.own else "k-map"
