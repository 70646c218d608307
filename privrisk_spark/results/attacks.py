"""What an attack has found, as figures for a program and for a person."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from privrisk_spark.claims import Status
from privrisk_spark.kernels.linkage.evidence import Found
from privrisk_spark.results.page import html_table
from privrisk_spark.results.release import json_safe


@dataclass(frozen=True)
class Group:
    """Records that are alike in what was predicted of them.

    Attributes
    ----------
    name : str
        In words, such as "2 to 4".
    predicted : float or None
        Mean of the predicted probabilities; None where nothing is predicted.
    found : Found
    """

    name: str
    predicted: float | None
    found: Found


@dataclass(frozen=True)
class Calibration:
    """What was predicted beside what was found.

    Attributes
    ----------
    prediction : str
        Name of what was predicted, such as "prosecutor".
    meaning : str
        In a sentence.
    predicted : float
        Mean over all records.
    groups : tuple of Group
        Ascending.
    """

    prediction: str
    meaning: str
    predicted: float
    groups: tuple[Group, ...]


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
    """

    method: str
    begins: str
    cells: str | None = None

    @property
    def key(self) -> str:
        """Name of its pairs, such as "person-nearest"."""
        return f"{self.begins}-{self.cells or self.method}"

    @property
    def one_by_one(self) -> bool:
        """Whether records are linked one by one, so that there are pairs; else classes are."""
        return self.method != "transparency"

    @property
    def parameters(self) -> dict[str, str]:
        """Of its measures."""
        of = {"method": self.method, "attack": self.begins}
        return of if self.cells is None else {**of, "cells": self.cells}


@dataclass(frozen=True)
class Attack:
    """One way to search, and what it has found.

    Attributes
    ----------
    search : Search
    title, meaning : str
        In words.
    candidates, distinct : int
        Rows, or people, in which is searched, and distinct ones in the columns the intruder knows.
    found : Found
        Of all records that were tried.
    absent : int
        Records tried that are surely not where is searched.
    classes : tuple of Group
        By the candidates that look like a record's own.
    calibrations : tuple of Calibration
    """

    search: Search
    title: str
    meaning: str
    candidates: int
    distinct: int
    found: Found
    absent: int
    classes: tuple[Group, ...]
    calibrations: tuple[Calibration, ...]

    @property
    def guess(self) -> float:
        """Share that somebody finds who draws a candidate for each record."""
        return 1 / self.candidates

    @property
    def sentence(self) -> str:
        """What was found."""
        one = self.found
        return (
            f"{self.title}: {one.correct:,.1f} of {one.tried:,} are found, {100 * one.share:.3g} % (95 % limits "
            f"{100 * one.low:.3g} to {100 * one.high:.3g} %); guessing finds {100 * self.guess:.2g} %."
        )


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
    """

    method: str
    column: str
    outcome: str
    parameters: Mapping[str, str | float]
    title: str
    found: Found
    baseline: float | None = None

    @property
    def sentence(self) -> str:
        """What was found."""
        one = self.found
        beside = "" if self.baseline is None else f" Without the protected table: {100 * self.baseline:.3g} %."
        return (
            f"{self.title}: {one.correct:,.1f} of {one.tried:,} people, {100 * one.share:.3g} % (95 % limits "
            f"{100 * one.low:.3g} to {100 * one.high:.3g} %).{beside}"
        )

    def figures(self) -> Iterator[Figure]:
        """Its measures."""
        of = {"method": self.method, "column": self.column, **self.parameters}
        name = f"values_{self.outcome}"
        yield "people_tried", self.found.tried, "people", {**of, "outcome": self.outcome}
        yield name, self.found.correct, "people", of
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
    points : tuple of (float, float)
        FPR and TPR, at most 200 of them.
    bound : float or None
        Greatest advantage that the release's differential privacy allows.
    claim : str or None
        That privacy, in words.
    """

    members: float
    others: float
    advantage: float
    area: float
    points: tuple[tuple[float, float], ...]
    bound: float | None = None
    claim: str | None = None

    @property
    def sentence(self) -> str:
        """What was found."""
        beside = ""
        if self.bound is not None:
            verdict = "within" if self.advantage <= self.bound + 1e-9 else "ABOVE"
            beside = f" It is {verdict} the {self.bound:.3g} that {self.claim} allows."
        return (
            f"Who is in the protected table: of {self.members:,.0f} members and {self.others:,.0f} others an intruder "
            f"tells members with an advantage of {self.advantage:.3g} (0 by guessing, 1 without error).{beside}"
        )

    def figures(self) -> Iterator[Figure]:
        """Its measures."""
        of: dict[str, Any] = {"method": "membership"}
        yield "members", self.members, "people", of
        yield "others", self.others, "people", of
        yield "membership_advantage", self.advantage, "probability", of
        yield "membership_area", self.area, "probability", of
        if self.bound is not None:
            yield "membership_advantage_bound", self.bound, "probability", of


Figure = tuple[str, float | int | None, str, dict[str, Any]]
"""Name, value, unit and parameters of a measure."""


@dataclass(frozen=True)
class AttackResult:
    """Attacks on a protected table.

    Attributes
    ----------
    title, run_id, created, version : str
    protected : str
        What was attacked, in words.
    rows, records : int
        Of the protected table, and of the original one.
    known : dict of column to str
        How each column the intruder knows was compared, in words.
    weights : dict of column to float
        Of sum 1.
    attacks : tuple of Attack
        By links, the strongest first: the one with the greatest share found.
    at_most : float or None
        Greatest share that may be found.
    inferences : tuple of Inference
        Of sensitive values.
    membership : MembershipFound or None
    certain_at_most : float or None
        Greatest share of people of whom a value may be certain.
    notes : tuple of str
    """

    title: str
    run_id: str
    created: str
    version: str
    protected: str
    rows: int
    records: int
    known: Mapping[str, str]
    weights: Mapping[str, float]
    attacks: tuple[Attack, ...]
    at_most: float | None
    inferences: tuple[Inference, ...] = ()
    membership: MembershipFound | None = None
    certain_at_most: float | None = None
    notes: tuple[str, ...] = ()

    status: ClassVar[Status] = "tested"
    """Of the links: they are exact. The limits are those of people drawn at random (proved)."""

    @property
    def strongest(self) -> Attack | None:
        """The attack that finds the most people; None where no links were tried."""
        return self.attacks[0] if self.attacks else None

    @property
    def high(self) -> float:
        """Greatest upper limit of all links."""
        return max((one.found.high for one in self.attacks), default=0.0)

    @property
    def certain_high(self) -> float:
        """Greatest upper limit of the share of people of whom a value is certain."""
        return max((one.found.high for one in self.inferences if one.outcome == "certain"), default=0.0)

    @property
    def verdicts(self) -> tuple[tuple[str, bool], ...]:
        """What may be found at most, in words, and whether no more is."""
        asked = (
            ("links", self.high, self.at_most, "that may be found"),
            ("certain values", self.certain_high, self.certain_at_most, "of whom a value may be certain"),
        )
        return tuple(
            (
                f"The greatest upper limit of {what}, {100 * high:.3g} %, {'is within' if high <= most else 'exceeds'} "
                f"the {100 * most:.3g} % {said}.",
                high <= most,
            )
            for what, high, most, said in asked
            if most is not None
        )

    @property
    def passed(self) -> bool:
        """Whether no upper limit is more than may be found, where anything was asked."""
        return all(met for _, met in self.verdicts)

    @property
    def told(self) -> tuple[str, ...]:
        """What was found by each method, in sentences."""
        found = (*self.attacks, *self.inferences, *([] if self.membership is None else [self.membership]))
        return tuple(one.sentence for one in found)

    @property
    def paragraph(self) -> str:
        """What the strongest attack has found, and whether that may be."""
        return " ".join([*self.told[:1], *(said for said, _ in self.verdicts)])

    def measures(self) -> list[dict[str, Any]]:
        """Every figure as ``{name, value, unit, parameters, status}``, JSON-safe."""
        others = (*self.inferences, *([] if self.membership is None else [self.membership]))
        figures = [
            *(
                (name, value, unit, {**one.search.parameters, **of})
                for one in self.attacks
                for name, value, unit, of in _figures(one)
            ),
            *(figure for one in others for figure in one.figures()),
        ]
        return [
            json_safe({"name": name, "value": value, "unit": unit, "parameters": of, "status": self.status})
            for name, value, unit, of in figures
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return everything, JSON-safe, for ``attack.json``."""
        document = {
            "run_id": self.run_id,
            "name": self.title,
            "date": self.created,
            "version": self.version,
            "methods": list(
                dict.fromkeys(
                    [
                        *(one.search.method for one in self.attacks),
                        *(one.method for one in self.inferences),
                        *([] if self.membership is None else ["membership"]),
                    ]
                )
            ),
            "status": self.status,
            "protected": self.protected,
            "protected_rows": self.rows,
            "records": self.records,
            "known": dict(self.known),
            "weights": dict(self.weights),
            "at_most": self.at_most,
            "certain_at_most": self.certain_at_most,
            "passed": self.passed,
            "paragraph": self.paragraph,
            "attacks": list(self.told),
            "notes": list(self.notes),
        }
        return {name: json_safe(value) for name, value in document.items()} | {"measures": self.measures()}

    def _repr_html_(self) -> str:
        head = ("attack", "records", "found", "share", "at least", "at most")
        rows = [
            (one.title, one.found.tried, one.found.correct, one.found.share, one.found.low, one.found.high)
            for one in (*self.attacks, *self.inferences)
        ]
        return html_table(f"Attack on {self.protected}", head, rows, notes=(self.paragraph, *self.notes))


def _figures(attack: Attack) -> Iterator[Figure]:
    yield from _found(attack.found, {})
    yield "random_guess_share", attack.guess, "share", {}
    yield "absent_records", attack.absent, "records", {}
    for group in attack.classes:
        yield from _found(group.found, {"candidates_alike": group.name})
    for one in attack.calibrations:
        yield "predicted_share", one.predicted, "share", {"prediction": one.prediction}
        for group in one.groups:
            of = {"prediction": one.prediction, "group": group.name}
            yield "predicted_share", group.predicted, "share", of
            yield from _found(group.found, of)


def _found(one: Found, of: dict[str, Any]) -> Iterator[Figure]:
    yield "links_tried", one.tried, "records", of
    yield "correct_links", one.correct, "records", of
    yield "correct_link_share", one.share, "share", of
    yield "correct_link_share_low", one.low, "share", {**of, "confidence": 0.95}
    yield "correct_link_share_high", one.high, "share", {**of, "confidence": 0.95}
