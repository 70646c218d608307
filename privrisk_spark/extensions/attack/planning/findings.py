"""What an attack has found, beside what was predicted of the same people, in words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from privrisk_spark.extensions.attack.kernels.evidence import Outcomes, PersonOutcomes, deciles, found
from privrisk_spark.extensions.attack.kernels.fellegi_sunter import LinkageModel
from privrisk_spark.extensions.attack.kernels.optimal_rule import OptimalRule
from privrisk_spark.extensions.attack.kernels.scores import Scores
from privrisk_spark.extensions.attack.kernels.transparency import ExactLinks
from privrisk_spark.extensions.attack.planning.attacks import known_columns
from privrisk_spark.extensions.attack.results.attacks import Attack, Calibration, Group, ScoredLinks
from privrisk_spark.extensions.attack.results.inferences import Agreement, MatchModel, RightRows, Search
from privrisk_spark.kernels.arrays import BoolArray, FloatArray, LongArray
from privrisk_spark.policy.policy import Policy

SIZES = ((1, 1), (2, 4), (5, 9), (10, 19), (20, 99), (100, None))
"""Groups of records by the candidates that look like their own, and of persons by their rows."""

_MOST = np.iinfo(np.int64).max


def by_size(alike: LongArray, probability: FloatArray, people: LongArray | FloatArray) -> tuple[Group, ...]:
    """Group records by the candidates that look like their own.

    Parameters
    ----------
    alike : ndarray of int64, shape (n,)
    probability : ndarray of float64, shape (n,)
    people : ndarray of int64 or float64, shape (n,)
    """
    groups = []
    for low, high in SIZES:
        here = (alike >= low) & (alike <= (_MOST if high is None else high))
        if not people[here].sum():
            continue
        name = f"{low} or more" if high is None else "1" if high == 1 else f"{low} to {high}"
        groups.append(_group(name, 1 / np.maximum(alike, 1), probability, people, here))
    return tuple(groups)


def calibrated(
    prediction: str, meaning: str, predicted: FloatArray, probability: FloatArray, people: LongArray | FloatArray
) -> Calibration:
    """Hold what was predicted of records against what was found, by tenths of what was predicted.

    Parameters
    ----------
    predicted, probability : ndarray of float64, shape (n,)
    people : ndarray of int64 or float64, shape (n,)
        Some in all.
    """
    tenth = deciles(predicted, people)
    parts = [here for here in (tenth == number for number in range(10)) if people[here].sum()]
    ranges = [(float(predicted[here].min()), float(predicted[here].max())) for here in parts]
    groups = [
        _group(name, predicted, probability, people, here)
        for name, here in zip(_range_names(ranges), parts, strict=True)
    ]
    mean = float((predicted * people).sum() / people.sum())
    return Calibration(prediction, meaning, mean, tuple(groups))


def _range_names(ranges: Sequence[tuple[float, float]]) -> list[str]:
    """Names of ranges, with three digits, or as many more as tell them apart."""
    for digits in range(3, 18):
        names = [
            f"{low:.{digits}g}" if low == high else f"{low:.{digits}g} to {high:.{digits}g}" for low, high in ranges
        ]
        if len(set(names)) == len(names):
            break
    return names


ATTACKS = {
    "person": (
        "From a person to the row",
        "The intruder knows a person, and looks for the row of the protected table that is the person's.",
        ("prosecutor", "1/f, for a row that looks like f rows of the protected table in the columns he knows."),
    ),
    "row": (
        "From a row to the person",
        "The intruder has a row of the protected table, and looks for the person among all people of the original one.",
        ("identification", "1/ρ, for a row that was decided to be consistent with ρ people of the dictionary."),
    ),
}
"""What the intruder begins with: in words, and what the model predicts of it."""


CELLS: dict[str, str] = {
    "nearest": "taking a cell for the nearest value it covers",
    "uniform": "taking a cell for any value it covers",
    "midpoint": "taking a cell for its midpoint",
}
"""What a generalized cell is taken for, in words."""


HOW: dict[str, str] = {
    "probabilistic": "by match weights",
    "transparency": "by the levels that the table was recoded by",
}
"""How is searched by a method, in words; where cells are read in one of several ways, those say it."""


ENGINES: dict[str, str] = {"splink": "Splink"}
"""Who estimated match weights, in words, where it is not our own."""


MADE: dict[str, str] = {
    "intersection": "by the rows that are possible in every column, as it is known how each was masked",
    "repetition": "by grouping the known values again, as the table was microaggregated",
    "classes": "by making the classes again, as the table was recoded",
}
"""How is searched by somebody who knows how the protected table was made, in words."""


PLANNED = (
    "planned",
    "the success of an adversary who approaches one of the ρ people after the other for as long as it pays him "
    "(assess.adversary; Xia et al. 2015), who may try more than one, or nobody.",
)
"""What an attack as a Markov decision process predicts of a row."""


def how(search: Search) -> str:
    """How is searched, in words."""
    said = HOW[search.method] if search.cells is None else CELLS[search.cells]
    if search.engine is not None:
        said += f" that {ENGINES[search.engine]} estimated"
    return said if search.standardization is None else f"{said}, each file by its own mean and deviation"


def attacked(
    search: Search, outcomes: Outcomes, candidates: int, distinct: int, planned: FloatArray | None = None
) -> Attack:
    """Hold what one attack has found against what was predicted.

    Parameters
    ----------
    candidates, distinct : int
        Of the file in which was searched.
    planned : ndarray of float64, shape (n,), optional
        What a planned attack on a row of each would find.
    """
    name = search.begins
    title, meaning, (prediction, said) = ATTACKS[name]
    people, right, alike = outcomes.people, outcomes.probability, outcomes.alike
    there = alike > 0
    of = np.maximum(alike if name == "person" else outcomes.consistent, 0)
    told = of > 0
    predictions = {(prediction, said): 1 / np.maximum(of, 1)}
    if planned is not None:
        predictions[PLANNED] = planned
    calibrations = tuple(
        calibrated(*meant, predicted[told], right[told], people[told])
        for meant, predicted in predictions.items()
        if told.any()
    )
    absent = round(float(people[~there].sum()))
    classes = by_size(alike, right, people)
    return Attack(
        search,
        f"{title}, {how(search)}",
        meaning,
        candidates,
        distinct,
        found(right, people),
        absent,
        math.fsum((outcomes.present * people).tolist()),
        classes,
        calibrations,
    )


HOUSEHOLD = (
    "prosecutor",
    "1 - Π (1 - c/f)^c of a person, over the classes of the person's rows: f rows look alike, c of them the person's.",
)
"""What is predicted of persons with several rows."""


def attacked_persons(
    search: Search, outcomes: PersonOutcomes, candidates: int, distinct: int, calibrations: tuple[Calibration, ...]
) -> Attack:
    """Say which persons one attack has found.

    Parameters
    ----------
    candidates, distinct : int
        Rows of the file in which was searched.
    calibrations : tuple of Calibration
        Of rows; of an attack from persons they are of persons instead.
    """
    title, meaning, _ = ATTACKS[search.begins]
    predicted = outcomes.predicted
    if search.begins == "person":
        calibrations = ()
        if len(predicted.persons):
            told = calibrated(*HOUSEHOLD, predicted.predicted, predicted.found, predicted.persons)
            calibrations = (replace(told, counted="persons"),)
    groups = []
    for low, high in SIZES:
        here = outcomes.there & (outcomes.rows >= low) & (outcomes.rows <= (_MOST if high is None else high))
        if outcomes.persons[here].sum():
            name = f"{low} or more" if high is None else "1" if high == 1 else f"{low} to {high}"
            groups.append(Group(name, None, found(outcomes.found[here], outcomes.persons[here])))
    return Attack(
        search,
        f"{title}, {how(search)}",
        meaning,
        candidates,
        distinct,
        found(outcomes.found, outcomes.persons),
        int(outcomes.persons[~outcomes.there].sum()),
        float(outcomes.persons[outcomes.there].sum()),
        tuple(groups),
        calibrations,
        RightRows(outcomes.linked_rows, outcomes.right_rows, outcomes.guessed / max(int(outcomes.persons.sum()), 1)),
    )


def scored(search: Search, found: Scores, candidates: int, distinct: int) -> ScoredLinks:
    """Say what was linked where it is not known whose each row is.

    Parameters
    ----------
    candidates, distinct : int
        Of the file in which was searched.
    """
    title, meaning, _ = ATTACKS[search.begins]
    unit = "bits" if search.method == "probabilistic" else "distance"
    return ScoredLinks(search, f"{title}, {how(search)}", meaning, candidates, distinct, found, unit)


def exactly_linked(links: ExactLinks, rows: int, people: int) -> list[Attack]:
    """Say what an intruder has found who knows the levels that a table was recoded by.

    Parameters
    ----------
    rows, people : int
        In which is searched.
    """
    known = Search("transparency", "person"), Search("transparency", "row")
    found = links.people_found, links.rows_found
    classes = by_size(links.rows, links.person, links.people), by_size(links.people, links.row, links.shown)
    absent = int(links.people[links.rows == 0].sum()), 0
    present = float(links.shown.sum()), float(links.shown.sum())
    return [
        Attack(
            search,
            f"{ATTACKS[search.begins][0]}, {HOW[search.method]}",
            ATTACKS[search.begins][1],
            candidates,
            len(links.people),
            one,
            away,
            there,
            groups,
            (),
        )
        for search, candidates, one, away, there, groups in zip(
            known, (rows, people), found, absent, present, classes, strict=True
        )
    ]


def linked_as_made(
    way: str, possible: tuple[LongArray, FloatArray, LongArray], *, absent: int, rows: int, distinct: int
) -> Attack:
    """Say what an intruder has found who knows how the protected table was made.

    Parameters
    ----------
    way : {"intersection", "repetition", "classes"}
    possible : tuple of ndarray
        Rows that people can have become, the probability that the own one is drawn of them, and how many people.
    absent : int
        People without a row.
    rows, distinct : int
        In which is searched.
    """
    left, right, people = possible
    search = Search("transparency", "person", distance="intersection" if way == "intersection" else "repetition")
    title, meaning, _ = ATTACKS["person"]
    every = np.append(people, absent)
    return Attack(
        search,
        f"{title}, {MADE[way]}",
        meaning,
        rows,
        distinct,
        found(np.append(right, 0.0), every),
        absent,
        float(people.sum()),
        by_size(left, right, people),
        (),
    )


def match_model(
    policy: Policy,
    search: Search,
    model: LinkageModel,
    rule: OptimalRule,
    classes: Mapping[str, tuple[FloatArray, FloatArray]],
    records: Mapping[str, float],
    *,
    converged: bool,
    parted: bool,
) -> MatchModel:
    """Say what was estimated of agreement, by the names of the columns.

    Parameters
    ----------
    model : LinkageModel
        By which was searched.
    classes : mapping of class to (ndarray of float64, ndarray of float64)
        Probability of the links of records, and how many records there are with each; none where that is not known.
    records : mapping of class to float
        Records by the weight of their best candidate; expected ones where it is not known who is there.
    converged, parted : bool
        As :class:`MatchModel` tells them.
    """
    agreements = []
    for j, column in enumerate(known_columns(policy)):
        n = len(model.m[j])
        named = ["agrees", *(f"near ({i})" if n > 3 else "near" for i in range(1, n - 1)), "differs"]
        for level, m, u, weight in zip(named, model.m[j], model.u[j], model.weights[j][:n], strict=True):
            agreements.append(Agreement(column, level, m, u, weight))
    return MatchModel(
        search,
        tuple(agreements),
        model.prior,
        converged,
        parted,
        rule.upper,
        rule.lower,
        {name: found(*of) for name, of in classes.items()},
        records,
    )


def _group(
    name: str, predicted: FloatArray, probability: FloatArray, people: LongArray | FloatArray, here: BoolArray
) -> Group:
    mean = float((predicted[here] * people[here]).sum() / people[here].sum())
    return Group(name, mean, found(probability[here], people[here]))
