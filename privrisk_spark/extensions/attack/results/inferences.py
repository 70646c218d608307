"""What attacks find beside links record by record: what is learned from true pairs, of values, and of membership."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from privrisk_spark.claims import Status
from privrisk_spark.extensions.attack.kernels.evidence import Found
from privrisk_spark.extensions.attack.kernels.membership import HeldOut
from privrisk_spark.extensions.attack.kernels.recall import Recall

Figure = tuple[str, float | int | None, str, dict[str, Any]]
"""Name, value, unit and parameters of a measure."""


@dataclass(frozen=True)
class Search:
    """One way to search.

    Attributes
    ----------
    method : str
        Such as "distance".
    begins : {"person", "row"}
        What the intruder begins with.
    cells : {"nearest", "uniform", "midpoint"} or None
        What he takes generalized cells for, where the method can take them for several things.
    distance : str or None
        What was learned, such as "weighted_mean"; or how what is known of masks is used, such as "intersection".
    standardization : {"each_file"} or None
        By whose mean and deviation numbers are standardized, where it is not that of the people.
    engine : {"splink"} or None
        Who estimated the model, where it is not our own.
    """

    method: str
    begins: str
    cells: str | None = None
    distance: str | None = None
    standardization: str | None = None
    engine: str | None = None

    @property
    def key(self) -> str:
        """Name of its pairs, such as "person-nearest"."""
        own = "" if self.standardization is None else f"-{self.standardization}"
        return f"{self.begins}-{self.cells or self.distance or self.method}{own}"

    @property
    def one_by_one(self) -> bool:
        """Whether all records are linked one by one, so that there are pairs."""
        return self.method not in ("transparency", "learned")

    @property
    def parameters(self) -> dict[str, str]:
        """Of its measures."""
        more = {
            "cells": self.cells,
            "distance": self.distance,
            "standardization": self.standardization,
            "engine": self.engine,
        }
        told = {name: value for name, value in more.items() if value is not None}
        return {"method": self.method, "attack": self.begins, **told}


@dataclass(frozen=True)
class RightRows:
    """Rows of persons who may have several.

    Attributes
    ----------
    right : float
        Those linked to a row of the same person.
    guess : float
        Share of the persons that somebody finds who draws a candidate for each row.
    """

    linked: int
    right: float
    guess: float


@dataclass(frozen=True)
class Agreement:
    """One way in which a column of two records may agree.

    Attributes
    ----------
    m, u : float
        Its probability among pairs of one person, and among the others.
    weight : float
        ``log2(m/u)``, in bits.
    """

    column: str
    level: str
    m: float
    u: float
    weight: float


@dataclass(frozen=True)
class OneToOne:
    """Links of which every row has one at most, of the greatest sum of match weights.

    Attributes
    ----------
    right_low, right_high : float or None
        Of these, the fewest and the most that are expected to be right: several such links may be as good. None where
        it is not known whose each row is.
    """

    links: int
    right_low: float | None
    right_high: float | None


@dataclass(frozen=True)
class MatchModel:
    """What an intruder has estimated of agreement, and how far it leads.

    Attributes
    ----------
    agreements : tuple of Agreement
        Column after column.
    prior : float
        Share of the pairs that are of one person.
    converged : bool
        Whether the estimation has come to its end.
    parted : bool
        Whether by the estimate agreement speaks for a link at all. If not, pairs of one person are taken to agree with
        probability 0.9 in each column instead.
    upper, lower : float
        A pair of a greater weight is linked, one of less is not, in bits; a clerk decides between them.
    classes : mapping of {"linked", "clerical", "not linked"} to Found
        Records by the weight of their best candidate, and those of them that are linked rightly if it is taken; none
        where it is not known whose each row is.
    records : mapping of {"linked", "clerical", "not linked"} to float
        How many records each of these classes has; expected ones where it is not known who is there.
    one_to_one : OneToOne or None
        None where the files are too large for it, or it is the search from rows.
    sampled : int or None
        People, drawn, from whose pairs with all rows it was estimated; None where it was from all pairs.
    """

    search: Search
    agreements: tuple[Agreement, ...]
    prior: float
    converged: bool
    parted: bool
    upper: float
    lower: float
    classes: Mapping[str, Found]
    records: Mapping[str, float]
    one_to_one: OneToOne | None = None
    sampled: int | None = None

    @property
    def estimated_from(self) -> str:
        """From which pairs it was estimated, in words."""
        return "all pairs" if self.sampled is None else f"the pairs of {self.sampled:,} people, drawn, with all rows"

    def figures(self) -> Iterator[Figure]:
        """Its measures."""
        of = self.search.parameters
        if self.one_to_one is not None:
            at = {**of, "assignment": "one-to-one"}
            yield "links", self.one_to_one.links, "records", at
            if self.one_to_one.right_low is not None:
                yield "correct_links_low", self.one_to_one.right_low, "records", at
                yield "correct_links_high", self.one_to_one.right_high, "records", at
        for name, records in self.records.items():
            if name in self.classes:
                yield from found_figures(self.classes[name], {**of, "class": name})
            else:
                yield "links_tried", records, "records", {**of, "class": name}
        for one in self.agreements:
            at = {**of, "column": one.column, "level": one.level}
            yield "m_probability", one.m, "probability", at
            yield "u_probability", one.u, "probability", at
            yield "match_weight", one.weight, "bits", at
        yield "match_prior", self.prior, "probability", of
        yield "upper_threshold", self.upper, "bits", of
        yield "lower_threshold", self.lower, "bits", of
        if self.sampled is not None:
            yield "people_compared", self.sampled, "people", of


@dataclass(frozen=True)
class LearnedDistance:
    """What an intruder has learned from true pairs, and what it is worth.

    Attributes
    ----------
    title : str
        In words.
    weights : mapping of column to float
        How much each counts, of sum 1; of a measure its Shapley values.
    parameters : mapping
        Of the distance, JSON-safe.
    training_standard, training : Found
        Of the records it was learned from, by the standard weights and by the learned distance.
    held_out_standard, held_out : Found
        Of the others, likewise: the attack is the last.
    status : {"proved", "heuristic"}
        Whether no parameters put more of the training records first.
    gap : float
        Training records that other parameters might put first besides.
    fell_back : bool
        Whether nothing better than the standard weights was found.
    rows : RightRows or None
        Where persons were held out, who may have several records.
    """

    search: Search
    title: str
    weights: Mapping[str, float]
    parameters: Mapping[str, Any]
    training_standard: Found
    training: Found
    held_out_standard: Found
    held_out: Found
    status: Status
    gap: float
    fell_back: bool
    rows: RightRows | None = None

    json_keys = ("weights", "parameters", "status", "gap", "fell_back")

    def figures(self) -> Iterator[Figure]:
        """Its measures, but for what it finds of the others."""
        of, counted = self.search.parameters, "records" if self.rows is None else "persons"
        yield from found_figures(self.training, {**of, "records": "training"})
        yield from found_figures(self.held_out_standard, {**of, "records": "held_out_standard"}, counted)
        yield from found_figures(self.training_standard, {**of, "records": "training_standard"})
        for column, weight in self.weights.items():
            yield "column_weight", weight, "share", {**of, "column": column}
        yield "training_gap", self.gap, "records", of


_ESTIMATED: dict[Status, str] = {"tested": "", "proved": "", "heuristic": " This figure is an estimate."}


@dataclass(frozen=True)
class Inference:
    """What is learned of the people without a link: of a sensitive value, or whether they are there at all.

    Attributes
    ----------
    method : str
        Such as "homogeneity".
    column : str
        The sensitive one.
    outcome : {"certain", "guessed", "exposed"}
        What is counted: people whose value is certain, is guessed rightly, or is far more likely than in the table.
    parameters : mapping of str to (str or number)
        Such as how many values are known to be false.
    title : str
        In words.
    found : Found
        Of the people who are in the protected table.
    baseline : float or None
        Share that somebody finds who knows the table's shares alone.
    counted : {"people", "records"}
        What is counted: individuals, or records of which it is not known which of them were released.
    status : {"tested", "heuristic"}
        Whether the figure is exact.
    known : int
        People, or records, the attacker knows and looks for.
    """

    method: str
    column: str
    outcome: str
    parameters: Mapping[str, str | float]
    title: str
    found: Found
    baseline: float | None = None
    counted: str = "people"
    status: Status = "tested"
    known: int = 0

    @property
    def not_tried(self) -> int:
        """Of these who are not in the protected table, by their ids."""
        return max(self.known - self.found.tried, 0)

    @property
    def sentence(self) -> str:
        """What was found."""
        one = self.found
        left = self.not_tried
        absent = f" NOT TRIED: {left:,} of {self.known:,} {self.counted}, not in the protected table." if left else ""
        beside = "" if self.baseline is None else f" Without the protected table: {100 * self.baseline:.3g} %."
        return (
            f"{self.title}: {one.correct:,.1f} of {one.tried:,} {self.counted}, {100 * one.share:.3g} % (95 % limits "
            f"{100 * one.low:.3g} to {100 * one.high:.3g} %).{beside}{absent}{_ESTIMATED[self.status]}"
        )

    def figures(self) -> Iterator[Figure]:
        """Its measures."""
        of = {"method": self.method, "column": self.column, **self.parameters}
        name = f"values_{self.outcome}"
        yield f"{self.counted}_tried", self.found.tried, self.counted, {**of, "outcome": self.outcome}
        yield f"{self.counted}_not_tried", self.not_tried, self.counted, {**of, "outcome": self.outcome}
        yield name, self.found.correct, self.counted, of
        yield f"{name}_share", self.found.share, "share", of
        yield f"{name}_share_low", self.found.low, "share", {**of, "confidence": 0.95}
        yield f"{name}_share_high", self.found.high, "share", {**of, "confidence": 0.95}
        if self.baseline is not None:
            yield "baseline_share", self.baseline, "share", of


@dataclass(frozen=True)
class MembershipFound:
    """How well an intruder tells who is in the protected table.

    Attributes
    ----------
    members, others : float
        People, expected ones where it is drawn who is released.
    advantage, area : float
        Greatest TPR - FPR, and the area under all thresholds.
    reversed_advantage : float
        Advantage of the attacker who takes those who get the fewest rows for members.
    points : tuple of (float, float)
        FPR and TPR, at most 200 of them.
    held_out : HeldOut or None
        What an attack that one half of the people has chosen tells of the other half; None where there are too few.
    reversed_held_out : HeldOut or None
        Likewise, of the attacker who takes those who get the fewest rows for members.
    bound : float or None
        Greatest advantage that the release's differential privacy allows, whose members are those of the original
        table.
    claim : str or None
        That privacy, in words.
    recall : Recall or None
        Of the rows, where they were dealt in blocks; None where all pairs were compared.
    """

    members: float
    others: float
    advantage: float
    area: float
    reversed_advantage: float
    points: tuple[tuple[float, float], ...]
    held_out: HeldOut | None = None
    reversed_held_out: HeldOut | None = None
    bound: float | None = None
    claim: str | None = None
    recall: Recall | None = None

    @property
    def sentence(self) -> str:
        """What was found."""
        where = "the protected table" if self.bound is None else "the original table"
        both = [one for one in (self.held_out, self.reversed_held_out) if one is not None]
        beside = f" Taking those who get the fewest for members has an advantage of {self.reversed_advantage:.3g}."
        if both:
            tried = " and ".join(f"{one.advantage:.3g} (95 % limits {one.low:.3g} to {one.high:.3g})" for one in both)
            beside += f" With what half of them choose these are {tried} on the other half."
        if self.bound is not None:
            allowed = f"the {self.bound:.3g} that {self.claim} allows on average over its noise"
            if not both:
                verdict = f"{allowed[0].upper()}{allowed[1:]} cannot be held against anything: there are too few people"
            elif any(one.low > self.bound + 1e-9 for one in both):
                verdict = f"That is ABOVE {allowed}"
            elif all(one.high <= self.bound + 1e-9 for one in both):
                verdict = f"That is within {allowed}"
            else:
                verdict = f"It is not told apart from {allowed}"
            beside += f" {verdict}."
        return (
            f"Who is in {where}: of {self.members:,.0f} members and {self.others:,.0f} others an intruder who deals "
            f"the rows to the people nearest to them tells members with an advantage of {self.advantage:.3g} (0 by "
            f"guessing, 1 without error).{beside}{recall_sentence(self.recall, 'rows')}"
        )

    def figures(self) -> Iterator[Figure]:
        """Its measures."""
        of: dict[str, Any] = {"method": "membership"}
        yield "members", self.members, "people", of
        yield "others", self.others, "people", of
        yield "membership_advantage", self.advantage, "probability", of
        yield "membership_area", self.area, "probability", of
        fewest = {**of, "taken": "fewest"}
        yield "membership_advantage", self.reversed_advantage, "probability", fewest
        for told, one in ((of, self.held_out), (fewest, self.reversed_held_out)):
            if one is None:
                continue
            at = {**told, "people": "held_out"}
            for name in ("advantage", "true_positives", "false_positives"):
                yield f"membership_{name}", getattr(one, name), "probability", at
            yield "membership_advantage_low", one.low, "probability", {**at, "confidence": 0.95}
            yield "membership_advantage_high", one.high, "probability", {**at, "confidence": 0.95}
        if self.bound is not None:
            yield "membership_advantage_bound", self.bound, "probability", of
        yield from recall_figures(self.recall, of, "rows")


def recall_sentence(one: Recall | None, what: str = "links") -> str:
    """How many links of a search in blocks lose no candidate, with a space before; nothing where all was compared.

    Parameters
    ----------
    what : {"links", "rows"}
        What candidates were searched for.
    """
    if one is None:
        return ""
    if one.proved == one.people:
        of = what.removesuffix("s")
        return f" It was searched in blocks, and it is proved of every {of} that nothing is lost by that."
    return (
        f" It was searched in blocks: {100 * one.share:.3g} % of the {what} (95 % limits {100 * one.low:.3g} to "
        f"{100 * one.high:.3g} %) lose no candidate by that. Of {100 * one.proved / one.people:.3g} % it is proved, of "
        f"the others {one.drawn:,} were drawn and compared with everything."
    )


def recall_figures(one: Recall | None, of: dict[str, Any], unit: str = "records") -> Iterator[Figure]:
    """Measures of what a search in blocks loses; none where all pairs were compared."""
    if one is not None:
        yield "link_recall", one.share, "share", of
        yield "link_recall_low", one.low, "share", {**of, "confidence": 0.95}
        yield "link_recall_high", one.high, "share", {**of, "confidence": 0.95}
        yield "links_proved_complete", one.proved, unit, of


def found_figures(one: Found, of: dict[str, Any], unit: str = "records") -> Iterator[Figure]:
    """Measures of how many were found: records, or persons."""
    yield "links_tried", one.tried, unit, of
    yield "correct_links", one.correct, unit, of
    yield "correct_link_share", one.share, "share", of
    yield "correct_link_share_low", one.low, "share", {**of, "confidence": 0.95}
    yield "correct_link_share_high", one.high, "share", {**of, "confidence": 0.95}
