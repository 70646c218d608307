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
        The strongest first: the one with the greatest share found.
    at_most : float or None
        Greatest share that may be found.
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
    notes: tuple[str, ...] = ()

    status: ClassVar[Status] = "tested"
    """Of the links: they are exact. The limits are those of people drawn at random (proved)."""

    @property
    def strongest(self) -> Attack:
        """The attack that finds the most."""
        return self.attacks[0]

    @property
    def high(self) -> float:
        """Greatest upper limit of all attacks."""
        return max(one.found.high for one in self.attacks)

    @property
    def passed(self) -> bool:
        """Whether no upper limit is more than may be found, where anything was asked."""
        return self.at_most is None or self.high <= self.at_most

    @property
    def paragraph(self) -> str:
        """What the strongest attack has found, and whether that may be."""
        told = self.strongest.sentence
        if self.at_most is None:
            return told
        verdict = "is within" if self.passed else "exceeds"
        limit = f"The greatest upper limit, {100 * self.high:.3g} %, {verdict}"
        return f"{told} {limit} the {100 * self.at_most:.3g} % that may be found."

    def measures(self) -> list[dict[str, Any]]:
        """Every figure as ``{name, value, unit, parameters, status}``, JSON-safe."""
        figures: list[dict[str, Any]] = []
        for attack in self.attacks:
            for name, value, unit, parameters in _figures(attack):
                of = {**attack.search.parameters, **parameters}
                figure = {"name": name, "value": value, "unit": unit, "parameters": of, "status": self.status}
                figures.append(json_safe(figure))
        return figures

    def to_dict(self) -> dict[str, Any]:
        """Return everything, JSON-safe, for ``attack.json``."""
        document = {
            "run_id": self.run_id,
            "name": self.title,
            "date": self.created,
            "version": self.version,
            "methods": list(dict.fromkeys(one.search.method for one in self.attacks)),
            "status": self.status,
            "protected": self.protected,
            "protected_rows": self.rows,
            "records": self.records,
            "known": dict(self.known),
            "weights": dict(self.weights),
            "at_most": self.at_most,
            "passed": self.passed,
            "paragraph": self.paragraph,
            "attacks": [one.sentence for one in self.attacks],
            "notes": list(self.notes),
        }
        return {name: json_safe(value) for name, value in document.items()} | {"measures": self.measures()}

    def _repr_html_(self) -> str:
        head = ("attack", "records", "found", "share", "at least", "at most")
        rows = [
            (one.title, one.found.tried, one.found.correct, one.found.share, one.found.low, one.found.high)
            for one in self.attacks
        ]
        return html_table(f"Attack on {self.protected}", head, rows, notes=(self.paragraph, *self.notes))


Figure = tuple[str, float | int | None, str, dict[str, Any]]


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
