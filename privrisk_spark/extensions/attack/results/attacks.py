"""What an attack has found, as figures for a program and for a person."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from privrisk_spark.claims import Status
from privrisk_spark.extensions.attack.kernels.evidence import Found
from privrisk_spark.extensions.attack.kernels.recall import Recall
from privrisk_spark.extensions.attack.kernels.scores import QUANTILES, Scores
from privrisk_spark.extensions.attack.results.inferences import (
    Figure,
    Inference,
    LearnedDistance,
    MatchModel,
    MembershipFound,
    RightRows,
    Search,
    found_figures,
    recall_figures,
    recall_sentence,
)
from privrisk_spark.json_values import as_json
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
        Mean over all of them.
    groups : tuple of Group
        Ascending.
    counted : {"records", "persons"}
    """

    prediction: str
    meaning: str
    predicted: float
    groups: tuple[Group, ...]
    counted: str = "records"


@dataclass(frozen=True)
class Attack:
    """One way to search, and what it has found.

    Attributes
    ----------
    title, meaning : str
        In words.
    candidates, distinct : int
        Rows, or people, in which is searched, and distinct ones in the columns the intruder knows.
    found : Found
        Of all records that were tried; or of all persons, where these may have several rows.
    absent : int
        Records, or persons, tried that are surely not where is searched.
    present : float
        Of them those who are there; expected ones where it is not known who is.
    classes : tuple of Group
        By the candidates that look like a record's own, or by the rows of a person.
    calibrations : tuple of Calibration
        Of records; of persons, where they are counted who begin.
    rows : RightRows or None
        Where persons are counted.
    recall : Recall or None
        Of a search in blocks; None where all pairs were compared.
    begun : int
        Rows of the protected table, or records of the people, that there are to begin with.
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
    rows: RightRows | None = None
    recall: Recall | None = None
    begun: int = 0

    @property
    def not_tried(self) -> int:
        """Rows, or records, of these that were not tried: not drawn, or of nobody who is known by an id."""
        return max(self.begun - (self.found.tried if self.rows is None else self.rows.linked), 0)

    @property
    def said_of_others(self) -> str:
        """How many were not tried, with a space before; nothing if all were."""
        if not self.not_tried:
            return ""
        what = "records of the people" if self.search.begins == "person" else "rows of the protected table"
        return f" NOT TRIED: {self.not_tried:,} of {self.begun:,} {what}."

    @property
    def said_of_blocks(self) -> str:
        """What a search in blocks loses, with a space before; nothing where all pairs were compared."""
        return recall_sentence(self.recall)

    @property
    def most(self) -> float:
        """Greatest share that may be found: the upper limit, and whoever may have lost candidates in blocks besides."""
        return min(self.found.high + (0.0 if self.recall is None else 1 - self.recall.low), 1.0)

    @property
    def counted(self) -> str:
        """What is counted: "records", or "persons" who may have several."""
        return "records" if self.rows is None else "persons"

    @property
    def guess(self) -> float:
        """Share that somebody finds who draws a candidate for each record; whoever is not there he cannot find."""
        if self.rows is not None:
            return self.rows.guess
        return self.present / max(self.found.tried, 1) / self.candidates

    @property
    def sentence(self) -> str:
        """What was found."""
        one = self.found
        return (
            f"{self.title}: {one.correct:,.1f} of {one.tried:,} {self.counted} are found, {100 * one.share:.3g} % "
            f"(95 % limits {100 * one.low:.3g} to {100 * one.high:.3g} %); guessing finds {100 * self.guess:.2g} %."
            f"{self.said_of_others}{self.said_of_blocks}"
        )


@dataclass(frozen=True)
class ScoredLinks:
    """One way to search where it is not known whose each row is: what was linked, and nothing is called right.

    Attributes
    ----------
    title, meaning : str
        In words.
    candidates, distinct : int
        Rows, or people, in which is searched, and distinct ones in the columns the intruder knows.
    scores : Scores
        Of all records that were linked.
    unit : {"distance", "bits"}
        Of the scores: the less, or the more, the better.
    recall : Recall or None
        Of a search in blocks; None where all pairs were compared.
    """

    search: Search
    title: str
    meaning: str
    candidates: int
    distinct: int
    scores: Scores
    unit: str
    recall: Recall | None = None

    @property
    def said_of_blocks(self) -> str:
        """What a search in blocks loses, with a space before; nothing where all pairs were compared."""
        return recall_sentence(self.recall)

    @property
    def guess(self) -> float:
        """Greatest share that somebody finds who draws a candidate for each record."""
        return 1 / self.candidates

    @property
    def right_share_at_most(self) -> float:
        """Greatest share of the links that can be expected to be right."""
        return self.scores.right_at_most / self.scores.linked

    @property
    def sentence(self) -> str:
        """What was linked."""
        of = self.scores
        return (
            f"{self.title}: {of.linked:,} are linked, {of.single:,} of them to one candidate alone. It is not known "
            f"which links are right; {100 * self.right_share_at_most:.3g} % can be expected to be at most."
            f"{self.said_of_blocks}"
        )

    def figures(self) -> Iterator[Figure]:
        """Its measures."""
        of = self.search.parameters
        yield "links_tried", self.scores.linked, "records", of
        yield "links_to_one_candidate", self.scores.single, "records", of
        yield "correct_links_at_most", self.scores.right_at_most, "records", of
        yield "correct_link_share_at_most", self.right_share_at_most, "share", of
        yield "random_guess_share", self.guess, "share", of
        for quantile, score in zip(QUANTILES, self.scores.quantiles, strict=True):
            name = "link_distance" if self.unit == "distance" else "link_weight"
            yield name, score, self.unit, {**of, "quantile": quantile}
        yield from recall_figures(self.recall, of)


@dataclass(frozen=True)
class AttackResult:
    """Attacks on a protected table.

    Attributes
    ----------
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
    scored : tuple of ScoredLinks
        Links of which it is not known whether they are right.
    models : tuple of MatchModel
        What an intruder estimated of agreement, of each search.
    learned : tuple of LearnedDistance
        What an intruder learned who had seen true pairs.
    inferences : tuple of Inference
        Of sensitive values.
    certain_at_most : float or None
        Greatest share of people of whom a value may be certain.
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
    scored: tuple[ScoredLinks, ...] = ()
    models: tuple[MatchModel, ...] = ()
    learned: tuple[LearnedDistance, ...] = ()
    inferences: tuple[Inference, ...] = ()
    membership: MembershipFound | None = None
    certain_at_most: float | None = None
    notes: tuple[str, ...] = ()

    status: ClassVar[Status] = "tested"
    """Of the links: they are exact. The limits are those of people drawn at random (proved)."""

    json_keys = (
        "run_id", "name:title", "date:created", "version", "methods", "status", "protected",
        "protected_rows:rows", "records", "known", "weights", "at_most", "certain_at_most", "passed",
        "paragraph", "attacks:told", "learned:learned_distances", "notes", "measures",
    )  # fmt: skip

    @property
    def methods(self) -> list[str]:
        """Names of the methods, each once."""
        others = [*(one.method for one in self.inferences), *([] if self.membership is None else ["membership"])]
        return list(dict.fromkeys([*(search.method for search in self.searches), *others]))

    @property
    def learned_distances(self) -> list[dict[str, Any]]:
        """What was learned by each search, with the search's parameters."""
        return [{**one.search.parameters, **as_json(one)} for one in self.learned]

    @property
    def strongest(self) -> Attack | None:
        """The attack that finds the most people; None where no links were tried."""
        return self.attacks[0] if self.attacks else None

    @property
    def searches(self) -> tuple[Search, ...]:
        """Ways in which links were searched."""
        return (*(one.search for one in self.attacks), *(one.search for one in self.scored))

    @property
    def high(self) -> float:
        """Greatest upper limit of all links."""
        return max((one.most for one in self.attacks), default=0.0)

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
    def passed(self) -> bool | None:
        """Whether no upper limit is more than may be found; None if the policy has no threshold."""
        return all(met for _, met in self.verdicts) if self.verdicts else None

    @property
    def told(self) -> tuple[str, ...]:
        """What was found by each method, in sentences."""
        members = [] if self.membership is None else [self.membership]
        found: tuple[Attack | ScoredLinks | Inference | MembershipFound, ...] = (
            *self.attacks,
            *self.scored,
            *self.inferences,
            *members,
        )
        return tuple(one.sentence for one in found)

    @property
    def paragraph(self) -> str:
        """What the strongest attack has found, and whether that may be."""
        return " ".join([*self.told[:1], *(said for said, _ in self.verdicts)])

    def measures(self) -> list[dict[str, Any]]:
        """Every figure as ``{name, value, unit, parameters, status}``, JSON-safe."""
        members = [] if self.membership is None else [self.membership]
        others: tuple[ScoredLinks | MatchModel | LearnedDistance | Inference | MembershipFound, ...] = (
            *self.scored,
            *self.models,
            *self.learned,
            *self.inferences,
            *members,
        )
        figures = [
            *(
                (name, value, unit, {**one.search.parameters, **of}, self.status)
                for one in self.attacks
                for name, value, unit, of in _figures(one)
            ),
            *(
                (*figure, one.status if isinstance(one, Inference) else self.status)
                for one in others
                for figure in one.figures()
            ),
        ]
        return [
            as_json({"name": name, "value": value, "unit": unit, "parameters": of, "status": status})
            for name, value, unit, of, status in figures
        ]

    def _repr_html_(self) -> str:
        head = ("attack", "records", "found", "share", "at least", "at most")
        found: tuple[Attack | Inference, ...] = (*self.attacks, *self.inferences)
        rows: list[tuple[str, int, float | None, float | None, float | None, float]] = [
            (one.title, one.found.tried, one.found.correct, one.found.share, one.found.low, one.found.high)
            for one in found
        ]
        rows += [(one.title, one.scores.linked, None, None, None, one.right_share_at_most) for one in self.scored]
        return html_table(f"Attack on {self.protected}", head, rows, notes=(self.paragraph, *self.notes))


def _figures(attack: Attack) -> Iterator[Figure]:
    unit = attack.counted
    yield from found_figures(attack.found, {}, unit)
    yield "random_guess_share", attack.guess, "share", {}
    yield f"absent_{unit}", attack.absent, unit, {}
    yield "links_not_tried", attack.not_tried, "rows" if attack.search.begins == "row" else "records", {}
    yield from recall_figures(attack.recall, {})
    if attack.rows is not None:
        yield "linked_rows", attack.rows.linked, "rows", {}
        yield "correctly_linked_rows", attack.rows.right, "rows", {}
    for group in attack.classes:
        of = {"candidates_alike" if attack.rows is None else "rows_of_person": group.name}
        yield from found_figures(group.found, of, unit)
    for one in attack.calibrations:
        yield "predicted_share", one.predicted, "share", {"prediction": one.prediction}
        for group in one.groups:
            of = {"prediction": one.prediction, "group": group.name}
            yield "predicted_share", group.predicted, "share", of
            yield from found_figures(group.found, of, one.counted)
