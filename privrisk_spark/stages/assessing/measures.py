"""Measures of a subject from its tallies: which number goes by which name.

Every function takes ``tallies`` of all classes of the subject, what was ``asked``, and ``of``, the parameters that all
its measures share (subject and set), and yields :class:`~privrisk_spark.results.assessment.Measured` in the order of
the report. What cannot be computed has the value None and a reason; what is of records of which there are none says so
(``none``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Literal

from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.classes.tally import ClassTally
from privrisk_spark.kernels.measures.estimate_intervals import sampling_interval
from privrisk_spark.kernels.measures.household import HouseholdTally
from privrisk_spark.kernels.measures.identity import SizeHistogram, records_by_size
from privrisk_spark.kernels.measures.population_risk import risks_at_fraction
from privrisk_spark.kernels.measures.population_sizes import PopulationRisk
from privrisk_spark.kernels.measures.population_uniques import (
    UniquesEstimate,
    decided,
    pitman,
    slide_negative_binomial,
    zayatz,
)
from privrisk_spark.kernels.measures.special_uniques import ScoreTally, SpecialUniques
from privrisk_spark.results.assessment import Measured, WorstClass
from privrisk_spark.stages.assessing.columns import Separated
from privrisk_spark.stages.assessing.tallies import ClassMeasures, Tallies

Parameters = Mapping[str, object]

BELIEVED = "the estimate to believe, by the rule of Dankar et al. 2012"
NO_UNIQUES = "no record is unique in the table"


@dataclass(frozen=True)
class Suppressed:
    """Records of a release that are suppressed whole.

    Attributes
    ----------
    counted : {"class", "apart", "compatible"}
        As a class like any, in no class, or compatible with all.
    """

    records: int
    counted: Literal["class", "apart", "compatible"]


def identity(
    tallies: Tallies, asked: ClassMeasures, of: Parameters, *, suppressed: Suppressed | None = None
) -> Iterator[Measured]:
    """Prosecutor risk and class sizes; how many records are suppressed whole, where that is asked."""
    risk = tallies.sizes.risk(asked.thresholds)
    below = {"k": int(tallies.small.asked) if tallies.small.asked.is_integer() else tallies.small.asked}
    yield Measured("records", tallies.rows, of)
    if suppressed is not None:
        yield Measured("suppressed_records", suppressed.records, {**of, "counted": suppressed.counted})
    if tallies.persons != tallies.rows - tallies.apart:
        yield Measured("persons", tallies.persons, of)
    yield Measured("classes", risk.classes, of)
    for least, most, records in records_by_size(*tallies.crowds.candidates):
        until = {} if most is None else {"to": most}
        yield Measured("records_by_class_size", records, {**of, "from": least, **until})
    wild = None if tallies.compatible is None else tallies.compatible.risk(asked.thresholds)
    if wild is None:
        yield Measured("k", risk.k, of)
        yield Measured("uniques", risk.uniques, of)
        yield Measured("unique_share", risk.uniques / risk.records if risk.records else 0.0, of)
        yield Measured("records_below_k", tallies.small.failing_rows, {**of, **below})
        yield Measured("prosecutor_max", risk.prosecutor_max, of)
        yield Measured("prosecutor_mean", risk.prosecutor_mean, of)
        for above in risk.above:
            yield Measured("prosecutor_share_above", above.share, {**of, "threshold": above.threshold})
        return
    # A missing value may be any: a record hides among all it is compatible with.
    of = {**of, "missing": "any value"}
    yield Measured("k", wild.k_map or 0, of)
    yield Measured("uniques", wild.population_uniques, of)
    yield Measured("unique_share", wild.population_uniques / wild.records if wild.records else 0.0, of)
    yield Measured("records_below_k", tallies.small.failing_rows, {**of, **below})
    yield Measured("prosecutor_max", wild.journalist_max or 0.0, of)
    yield Measured("prosecutor_mean", wild.marketer, of)
    for above in wild.above:
        yield Measured("prosecutor_share_above", above.share, {**of, "threshold": above.threshold})


def population(tallies: Tallies, asked: ClassMeasures, of: Parameters, fraction: float | None) -> Iterator[Measured]:
    """Journalist and marketer risk from a population table, or estimates from weights or a sampling fraction."""
    if tallies.population is not None:
        yield from _known(tallies.population.risk(asked.thresholds), tallies.population.presence, of)
    if tallies.weights is not None and tallies.individual is not None:
        model = {**of, "model": "negative binomial, sampling weights"}
        yield Measured("weighted_population", tallies.weights.population, of)
        scaled = {**of, "model": "sum of weights"}
        yield Measured("estimated_journalist_max", tallies.weights.journalist_max, scaled)
        yield Measured("individual_risk_max", tallies.individual.most, model)
        yield Measured("individual_risk_mean", tallies.individual.mean, model)
        yield Measured("expected_reidentifications", tallies.individual.hits, model)
        total = tallies.weights.population
        if fraction is None and total > tallies.persons > 0:
            fraction = tallies.persons / total
    elif fraction is not None:
        for name, tally in risks_at_fraction(tallies.crowds, fraction, asked.thresholds).items():
            model = {**of, "model": name, "fraction": fraction}
            if name == "scaling":
                yield Measured("estimated_journalist_max", tally.most, model)
            else:
                yield Measured("individual_risk_max", tally.most, model)
                yield Measured("individual_risk_mean", tally.mean, model)
                yield Measured("expected_reidentifications", tally.hits, model)
    if fraction is not None and fraction < 1:
        people = max(tallies.persons, round(tallies.persons / fraction))
        if tallies.compatible is not None:
            why = "missing or suppressed values may be any, so that classes overlap, which no model here has"
            yield Measured("estimated_population_uniques", None, {**of, "population": people, "reason": why})
            return
        chosen, alone = decided(tallies.sizes, people), tallies.sizes.classes_of(1)
        for estimated in (zayatz, pitman, slide_negative_binomial):
            estimate = estimated(tallies.sizes, people)
            model = {**of, "model": estimate.model, "population": people}
            if estimate.uniques is None:
                model["reason"] = estimate.reason
            elif estimate.model == chosen.model:
                model["rule"] = BELIEVED
            interval = sampling_interval(partial(_uniques_by, estimated), tallies.sizes, people)
            if interval is not None:
                model["interval"] = list(interval)
            yield Measured("estimated_population_uniques", estimate.uniques, model)
        rule = {**of, "model": chosen.model, "rule": BELIEVED, "population": people}
        if not alone:
            yield Measured("estimated_population_unique_share", None, {**of, "population": people, "none": NO_UNIQUES})
        elif chosen.uniques is not None:
            share = min(1.0, chosen.uniques * fraction / alone)
            yield Measured("estimated_population_unique_share", share, rule)


def _uniques_by(
    estimated: Callable[[SizeHistogram, int], UniquesEstimate], sizes: SizeHistogram, people: int
) -> float | None:
    return estimated(sizes, people).uniques


def _known(risk: PopulationRisk, presence: tuple[float, float] | None, of: Parameters) -> Iterator[Measured]:
    # Nothing is known of people the population lacks but that the table holds them.
    contained = risk.uncovered_records > 0
    held = {"uncovered_records": risk.uncovered_records}
    yield Measured("k_map", risk.k_map, {**of, **held, "at_least": risk.k_map_contained} if contained else of)
    yield Measured("uncovered_records", risk.uncovered_records, of)
    yield Measured("contradicted_classes", risk.contradicting_classes, of)
    most = {**of, **held, "at_most": risk.journalist_max_contained} if contained else of
    yield Measured("journalist_max", risk.journalist_max, most)
    for above in risk.above:
        yield Measured("journalist_share_above", above.share, {**of, "threshold": above.threshold})
    yield Measured("marketer", risk.marketer, of)
    yield Measured("population_uniques", risk.population_uniques, of)
    if presence is not None:
        rarest, commonest = presence
        yield Measured("presence_max", commonest, of)
        yield Measured("presence_min", rarest, of)
    none = {} if risk.sample_uniques else {"none": NO_UNIQUES}
    yield Measured("population_unique_share", risk.population_uniques_share, {**of, **none})


def households(found: Mapping[str, HouseholdTally] | None, of: Parameters) -> Iterator[Measured]:
    """Risk of households, by what the risk of a record is."""
    if found is None:
        reason = {"reason": "the release does not name its records (assess.release.record_id), so nor its households"}
        for name in ("household_risk_max", "household_risk_mean"):
            yield Measured(name, None, {**of, **reason})
        return
    for risk, tally in found.items():
        about = {**of, "risk": risk, "households": tally.households}
        yield Measured("household_risk_max", tally.most, about)
        yield Measured("household_risk_mean", tally.of_records.mean, about)


def attribute(
    tallies: Tallies, asked: ClassMeasures, of: Parameters, joint: Sequence[Mapping[str, ClassTally]] = ()
) -> Iterator[Measured]:
    """What the classes give away of each sensitive attribute, alone and to who knows the others."""
    of_each = zip(asked.sensitive, tallies.attribute, tallies.log_ratios, strict=True)
    for number, (sensitive, found, present) in enumerate(of_each):
        about = {**of, "column": sensitive.name}
        for name, tally in found.items():
            if name == "homogeneity":
                continue
            parameters: dict[str, object] = dict(about)
            if name == "t_closeness":
                parameters["distance"] = sensitive.distance
            if name == "l_recursive":
                parameters["c"] = sensitive.c
            if name in asked.bounds:  # nothing is failed that nobody asked for
                parameters["failing_records"] = tally.failing_rows
                parameters["asked"] = tally.asked
            whole = tally.criterion.whole and math.isfinite(tally.achieved)
            yield Measured(name, int(tally.achieved) if whole else tally.achieved, parameters)
            if name == "delta_disclosure":
                yield Measured("delta_disclosure_present", present, about)
        for name, tally in (joint[number] if joint else {}).items():
            c = {"c": sensitive.c} if name == "l_recursive_joint" else {}
            value = tally.achieved
            yield Measured(name, int(value) if tally.criterion.whole else value, {**about, **c})
        yield Measured("homogeneity_share", found["homogeneity"].failing_share, about)
        yield Measured(
            "majority_share_above", found["alpha"].failing_share, {**about, "threshold": found["alpha"].asked}
        )


def utility(
    tallies: Tallies, asked: ClassMeasures, of: Parameters, attributes: Sequence[str], *, original: Tallies | None
) -> Iterator[Measured]:
    """What a release, or the table itself, is still good for."""
    with_k = {**of, "k": asked.k}
    risk = tallies.sizes.risk(asked.thresholds)
    average = float(Fraction(risk.records, risk.classes * asked.k)) if risk.classes else 0.0
    yield Measured("c_avg", average, with_k)
    yield Measured("discernibility", tallies.spread.discernibility, with_k)
    for name, cells in tallies.cells.items():
        kept = name == "precision"
        yield Measured(name, cells.retained if kept else cells.mean, of)
        values = cells.retained_by_attribute if kept else cells.means
        for column, value in zip(attributes, values, strict=True):
            yield Measured(name, value, {**of, "column": column})
        if name == "iyengar_loss":
            yield Measured("loss", cells.geometric, of)
    if tallies.penalty is not None:
        yield Measured("penalty_mean", tallies.penalty.mean, of)
    if original is not None and original.divergence is not None:
        yield Measured("kl_divergence", original.divergence.nats(tallies.rows), of)
    if tallies.label is not None:
        yield Measured("classification_metric", tallies.label.metric, of)
        yield Measured("classification_penalty", tallies.label.charged, of)


def special(
    found: SpecialUniques, of: Parameters, columns: Sequence[str], *, size: int, fraction: float
) -> Iterator[Measured]:
    """Minimal sample uniques and their scores, and which columns they are due to."""
    tally, about = ScoreTally.of(found), {**of, "size": size}
    yield Measured("special_uniques", tally.special, about)
    for attributes, number in enumerate(tally.by_size, 1):
        yield Measured("minimal_uniques", number, {**about, "attributes": attributes})
    yield Measured("suda_max", tally.most, about)
    scores = tally.disclosure(found.scores, fraction)
    records = tally.records
    mean = math.fsum((scores * found.counts).tolist()) / records if records else 0.0
    yield Measured("dis_max", float(scores.max(initial=0.0)), {**about, "fraction": fraction})
    yield Measured("dis_mean", mean, {**about, "fraction": fraction})
    for column, share in zip(columns, tally.shares, strict=True):
        yield Measured("suda_contribution", share, {**about, "column": column})


def separation(found: Separated, of: Parameters, columns: Sequence[str]) -> Iterator[Measured]:
    """How well the set, and each of its columns, tells records apart."""
    for name in ("distinction", "separation"):
        yield Measured(name, getattr(found.whole, name), of)
        for column, alone in zip(columns, found.columns, strict=True):
            yield Measured(name, getattr(alone, name), {**of, "column": column})


def worst_classes(
    tallies: Tallies, asked: ClassMeasures, of: Parameters, hierarchies: Sequence[Hierarchy]
) -> Iterator[WorstClass]:
    """Classes at the unsafe end of each measure, the worst first."""

    def named(name: str, tally: ClassTally, parameters: Parameters) -> Iterator[WorstClass]:
        for one in tally.worst:
            labels = tuple(h.labels[node] or "(missing)" for h, node in zip(hierarchies, one.key, strict=True))
            value = int(one.value) if tally.criterion.whole else one.value
            yield WorstClass(name, labels, value, one.rows, parameters)

    yield from named("k", tallies.small, of)
    if tallies.mapped is not None:
        yield from named("k_map", tallies.mapped, of)
    for sensitive, found in zip(asked.sensitive, tallies.attribute, strict=True):
        for name, tally in found.items():
            if name != "homogeneity":
                yield from named(name, tally, {**of, "column": sensitive.name})
