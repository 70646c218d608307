"""What an attack has found, as figures for a program and for a person."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from privrisk_spark.claims import Status
from privrisk_spark.kernels.linkage.evidence import Found
from privrisk_spark.results.inferences import (
    Figure,
    Inference,
    LearnedDistance,
    MatchModel,
    MembershipFound,
    Search,
    found_figures,
)
from privrisk_spark.results.json_values import json_safe
from privrisk_spark.results.page import html_table


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
    present : float
        Records tried that are there; expected ones where it is not known who is.
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
    present: float
    classes: tuple[Group, ...]
    calibrations: tuple[Calibration, ...]

    @property
    def guess(self) -> float:
        """Share that somebody finds who draws a candidate for each record; whoever is not there he cannot find."""
        return self.present / max(self.found.tried, 1) / self.candidates

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
        By links, the strongest first: the one with the greatest share found.
    at_most : float or None
        Greatest share that may be found.
    models : tuple of MatchModel
        What an intruder estimated of agreement, of each search.
    learned : tuple of LearnedDistance
        What an intruder learned who had seen true pairs.
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
    models: tuple[MatchModel, ...] = ()
    learned: tuple[LearnedDistance, ...] = ()
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
        """What may be found at most, in words, and whether no more is: not so where nothing was tried."""
        certain = any(one.outcome == "certain" for one in self.inferences)
        asked = (
            ("links", bool(self.attacks), self.high, self.at_most, "that may be found"),
            ("certain values", certain, self.certain_high, self.certain_at_most, "of whom a value may be certain"),
        )
        found = []
        for what, tried, high, most, said in asked:
            if most is None:
                continue
            if not tried:
                # Nothing is known to be within a bound that was not looked at.
                found.append((f"No {what} could be tried: it is not known whether {100 * most:.3g} % is met.", False))
                continue
            verdict = "is within" if high <= most else "exceeds"
            text = f"The greatest upper limit of {what}, {100 * high:.3g} %, {verdict} the {100 * most:.3g} % {said}."
            found.append((text, high <= most))
        return tuple(found)

    @property
    def passed(self) -> bool:
        """Whether no upper limit is more than may be found, where anything was asked."""
        return all(met for _, met in self.verdicts)

    @property
    def told(self) -> tuple[str, ...]:
        """What was found by each method, in sentences."""
        members = [] if self.membership is None else [self.membership]
        found: tuple[Attack | Inference | MembershipFound, ...] = (*self.attacks, *self.inferences, *members)
        return tuple(one.sentence for one in found)

    @property
    def paragraph(self) -> str:
        """What the strongest attack has found, and whether that may be."""
        return " ".join([*self.told[:1], *(said for said, _ in self.verdicts)])

    def measures(self) -> list[dict[str, Any]]:
        """Every figure as ``{name, value, unit, parameters, status}``, JSON-safe."""
        members = [] if self.membership is None else [self.membership]
        others: tuple[MatchModel | LearnedDistance | Inference | MembershipFound, ...] = (
            *self.models,
            *self.learned,
            *self.inferences,
            *members,
        )
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
            "learned": [one.to_dict() for one in self.learned],
            "notes": list(self.notes),
        }
        return {name: json_safe(value) for name, value in document.items()} | {"measures": self.measures()}

    def _repr_html_(self) -> str:
        head = ("attack", "records", "found", "share", "at least", "at most")
        found: tuple[Attack | Inference, ...] = (*self.attacks, *self.inferences)
        rows = [
            (one.title, one.found.tried, one.found.correct, one.found.share, one.found.low, one.found.high)
            for one in found
        ]
        return html_table(f"Attack on {self.protected}", head, rows, notes=(self.paragraph, *self.notes))


def _figures(attack: Attack) -> Iterator[Figure]:
    yield from found_figures(attack.found, {})
    yield "random_guess_share", attack.guess, "share", {}
    yield "absent_records", attack.absent, "records", {}
    for group in attack.classes:
        yield from found_figures(group.found, {"candidates_alike": group.name})
    for one in attack.calibrations:
        yield "predicted_share", one.predicted, "share", {"prediction": one.prediction}
        for group in one.groups:
            of = {"prediction": one.prediction, "group": group.name}
            yield "predicted_share", group.predicted, "share", of
            yield from found_figures(group.found, of)
