"""What an attack reads of a policy, what it would cost, and what it predicts beside what it finds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import BoolArray, FloatArray, LongArray
from privrisk_spark.kernels.linkage.evidence import Found, deciles, found
from privrisk_spark.kernels.linkage.membership import Bound, Membership
from privrisk_spark.kernels.linkage.transparency import ExactLinks
from privrisk_spark.planning.assessment import reading_only
from privrisk_spark.policy.attacks import OF_VALUES, AttackPolicy, Errors
from privrisk_spark.policy.policy import Policy
from privrisk_spark.results.attacks import Attack, Calibration, Group, Inference, MembershipFound, Search

PROTECTED, SHARE, HIS_TABLE, OTHERS = (
    "attack.protected",
    "attack.intruder.share",
    "attack.intruder.table",
    "attack.also",
)
"""Keys of the policy, for messages."""

SIZES = ((1, 1), (2, 4), (5, 9), (10, 19), (20, 99), (100, None))
"""Groups of records by the candidates that look like their own."""


class LinkOutcomes(Protocol):
    """How links came out, those that came out alike together."""

    @property
    def people(self) -> LongArray:
        """Records of each, shape (n,)."""

    @property
    def probability(self) -> FloatArray:
        """That the link of each is right."""

    @property
    def alike(self) -> LongArray:
        """Candidates that look like its own; 0 where there is none."""

    @property
    def consistent(self) -> LongArray:
        """Dictionary rows it was decided by; -1 where that is not known."""


def attack_of(policy: Policy) -> AttackPolicy:
    """What is tried: what the policy says, or the defaults."""
    return policy.attack or AttackPolicy()


def known_columns(policy: Policy) -> list[str]:
    """Quasi-identifiers the intruder knows, in the order of the policy."""
    asked = attack_of(policy).intruder.columns
    return [name for name in policy.quasi_identifiers if not asked or name in asked]


def read_policy(policy: Policy) -> Policy:
    """Return the policy to read the original table by: quasi-identifiers, and sensitive values if they are tried."""
    return reading_only(policy, policy.sensitive_as_they_are if OF_VALUES & set(attack_of(policy).tried) else [])


def in_words(policy: Policy) -> dict[str, str]:
    """How each known column is compared."""
    asked = attack_of(policy)

    def compared(name: str) -> str:
        level = asked.intruder.levels.get(name, 0)
        how = (
            "as a number"
            if name in asked.numbers
            else "as a text"
            if name in asked.texts
            else "by levels of its hierarchy"
        )
        return f"{how}, known up to level {level}" if level else how

    return {name: compared(name) for name in known_columns(policy)}


def refuse_cost(asked: AttackPolicy, records: int, tuples: int, columns: int) -> None:
    """Refuse an attack that takes more comparisons than it may.

    Parameters
    ----------
    asked : AttackPolicy
    records : int
        Distinct ones to be linked.
    tuples : int
        Distinct ones each is compared with.
    columns : int

    Raises
    ------
    InputError
        Naming a share of the records that would do.
    """
    comparisons = records * tuples * columns
    if comparisons > asked.exact_pairs:
        enough = asked.intruder.share * asked.exact_pairs / comparisons
        unit = 10.0 ** math.floor(math.log10(enough))
        raise InputError(
            f"attack.exact_pairs: comparing {records:,} distinct records with {tuples:,} in {columns} columns "
            f"takes up to {comparisons:.2g} comparisons, more than {asked.exact_pairs:.2g}. Raise it, or attack a "
            f"sample, such as attack.intruder.share={math.floor(enough / unit) * unit:.1g}."
        )


def by_size(alike: LongArray, probability: FloatArray, people: LongArray) -> tuple[Group, ...]:
    """Group records by the candidates that look like their own.

    Parameters
    ----------
    alike, people : ndarray of int64, shape (n,)
    probability : ndarray of float64, shape (n,)
    """
    groups = []
    for low, high in SIZES:
        here = (alike >= low) & (alike <= (np.iinfo(np.int64).max if high is None else high))
        if not people[here].sum():
            continue
        name = f"{low} or more" if high is None else "1" if high == 1 else f"{low} to {high}"
        groups.append(_group(name, 1 / np.maximum(alike, 1), probability, people, here))
    return tuple(groups)


def calibrated(
    prediction: str, meaning: str, predicted: FloatArray, probability: FloatArray, people: LongArray
) -> Calibration:
    """Hold what was predicted of records against what was found, by tenths of what was predicted.

    Parameters
    ----------
    prediction, meaning : str
    predicted, probability : ndarray of float64, shape (n,)
    people : ndarray of int64, shape (n,)
        At least one in all.
    """
    tenth = deciles(predicted, people)
    groups = []
    for number in range(10):
        here = tenth == number
        if not people[here].sum():
            continue
        low, high = predicted[here].min(), predicted[here].max()
        name = f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"
        groups.append(_group(name, predicted, probability, people, here))
    mean = float((predicted * people).sum() / people.sum())
    return Calibration(prediction, meaning, mean, tuple(groups))


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


HOW: dict[str, str] = {"transparency": "by the levels that the table was recoded by"}
"""How is searched by a method, in words; where cells are read in one of several ways, those say it."""


PLANNED = (
    "planned",
    "the success of an adversary who approaches one of the ρ people after the other for as long as it pays him "
    "(assess.adversary; Xia et al. 2015), who may try more than one, or nobody.",
)
"""What an attack as a Markov decision process predicts of a row."""


def attacked(
    search: Search, outcomes: LinkOutcomes, candidates: int, distinct: int, planned: FloatArray | None = None
) -> Attack:
    """Hold what one attack has found against what was predicted.

    Parameters
    ----------
    search : Search
    outcomes : LinkOutcomes
    candidates, distinct : int
        Of the file in which was searched.
    planned : ndarray of float64, shape (n,), optional
        What a planned attack on a row of each would find.
    """
    name = search.begins
    title, meaning, (prediction, said) = ATTACKS[name]
    how = HOW[search.method] if search.cells is None else CELLS[search.cells]
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
    absent = int(people[~there].sum())
    classes = by_size(alike, right, people)
    return Attack(
        search,
        f"{title}, {how}",
        meaning,
        candidates,
        distinct,
        found(right, people),
        absent,
        classes,
        calibrations,
    )


def exactly_linked(links: ExactLinks, rows: int, people: int) -> list[Attack]:
    """Say what an intruder has found who knows the levels that a table was recoded by.

    Parameters
    ----------
    links : ExactLinks
    rows, people : int
        In which is searched.
    """
    known = Search("transparency", "person"), Search("transparency", "row")
    found = links.people_found, links.rows_found
    classes = by_size(links.rows, links.person, links.people), by_size(links.people, links.row, links.shown)
    absent = int(links.people[links.rows == 0].sum()), 0
    return [
        Attack(
            search,
            f"{ATTACKS[search.begins][0]}, {HOW[search.method]}",
            ATTACKS[search.begins][1],
            candidates,
            len(links.people),
            one,
            away,
            groups,
            (),
        )
        for search, candidates, one, away, groups in zip(known, (rows, people), found, absent, classes, strict=True)
    ]


INFERENCES: dict[tuple[str, str], str] = {
    ("homogeneity", "certain"): "The value of '{column}' is certain, as all rows of the class hold it",
    ("homogeneity", "guessed"): "The value of '{column}' is guessed rightly, as the most frequent one of the class",
    (
        "external",
        "certain",
    ): "The value of '{column}' is certain for another person of the class, who takes the own row away",
    ("background", "certain"): "The value of '{column}' is certain for somebody who knows the most telling false value",
    ("skewness", "exposed"): "The value of '{column}' is more than {gain_above:g} times as likely as in the table",
    ("similarity", "certain"): "What the values of '{column}' have in common, a level up, is certain",
    ("composition", "certain"): "The value of '{column}' is certain after {releases} of the releases",
}
"""What is learned, in words."""


def inferred(
    method: str, column: str, outcome: str, found: Found, *, baseline: float | None = None, **parameters: str | float
) -> Inference:
    """What was inferred of the values of a column."""
    title = INFERENCES[method, outcome].format(column=column, **parameters)
    return Inference(method, column, outcome, parameters, title, found, baseline)


def membership_bound(manifest: Mapping[str, Any] | None) -> Bound | None:
    """What differential privacy allows an intruder to tell of membership, if a release of ours has it."""
    if manifest is None or manifest["guarantee"]["kind"] != "dp":
        return None
    claimed = manifest["guarantee"]["parameters"]
    return Bound(float(claimed["epsilon"]), float(claimed["delta"]))


MOST_POINTS = 200
"""Thresholds of a membership attack that are told."""


def membership_found(found: Membership, bound: Bound | None) -> MembershipFound:
    """How well members are told, beside what is allowed."""
    n = len(found.true_positives)
    shown = np.unique(np.linspace(0, n - 1, min(n, MOST_POINTS)).astype(np.int64))
    points = zip(found.false_positives[shown].tolist(), found.true_positives[shown].tolist(), strict=True)
    said = None if bound is None else f"({bound.epsilon:g}, {bound.delta:g})-differential privacy"
    return MembershipFound(
        found.members,
        found.others,
        found.advantage,
        found.area,
        tuple(points),
        None if bound is None else bound.advantage,
        said,
    )


def _group(name: str, predicted: FloatArray, probability: FloatArray, people: LongArray, here: BoolArray) -> Group:
    mean = float((predicted[here] * people[here]).sum() / people[here].sum())
    return Group(name, mean, found(probability[here], people[here]))


def attack_notes(policy: Policy, *, sampled: bool, left_out: Sequence[str] = ()) -> tuple[str, ...]:
    """What a reader must know besides.

    Parameters
    ----------
    policy : Policy
    sampled : bool
        Whether the protected table holds only some of the records it could.
    left_out : sequence of str
        Attacks that were not tried, each with its reason.
    """
    asked = attack_of(policy)
    notes = [
        f"{_knowledge(asked)} Among t candidates that are equally good he draws one, so that the right one is found "
        "with probability 1/t.",
        "What is predicted by 1/ρ is how surely a released row is linked to its person. It says nothing of how surely "
        "a person is linked to a row: few rows may be left that a person's values are consistent with.",
        "A cell taken for the nearest value it covers is at no distance from all of them. Taken for any value it "
        "covers, a precise cell is nearer than a coarse one: the better guess where people are rarely suppressed.",
    ]
    if policy.table.entity_id is not None:
        notes.append("Each row of a person is tried by itself, and only a link to that very row counts as right.")
    if asked.intruder.share < 1:
        notes.append(f"The records tried are a sample: about {100 * asked.intruder.share:.3g} %, drawn by their ids.")
    if sampled:
        notes.append("The protected table holds only some of the records that it could hold; which is not known.")
    notes += [f"Not tried: {one}" for one in left_out]
    return tuple(notes)


def why_not_transparent(asked: AttackPolicy, levels: Mapping[str, int] | None) -> str | None:
    """Why an intruder cannot link by the levels of the protected table; None if he can."""
    his = asked.intruder
    if levels is None:
        return (
            "'transparency', as it is not known by which levels the whole table was recoded; say it in attack.levels."
        )
    if his.table is not None or his.errors != Errors() or any(his.levels.values()):
        return "'transparency', as the intruder does not know the values of the original table as they are."
    return None


def not_tried(
    policy: Policy,
    levels: Mapping[str, int] | None,
    inferences: Sequence[Inference],
    members: MembershipFound | None,
) -> list[str]:
    """What was asked for and could not be tried, each with its reason."""
    asked = attack_of(policy)
    tried = {one.method for one in inferences}
    found = []
    for method in asked.tried:
        if method == "transparency":
            reason = why_not_transparent(asked, levels)
            found += [] if reason is None else [reason]
        elif method == "membership":
            if members is None:
                found.append("'membership', as everybody the intruder knows is in the protected table, or nobody.")
        elif method in OF_VALUES and method not in tried:
            found.append(f"'{method}', as {_LACKING.get(method, _NO_VALUES)}.")
    return found


_NO_VALUES = "the protected table has no sensitive column that is released as it is"
_LACKING = {
    "similarity": "no hierarchy says which sensitive values are alike (assess.sensitive), or persons are counted",
    "composition": "no other release is named (attack.also)",
}


def _knowledge(asked: AttackPolicy) -> str:
    """What the intruder knows, in a sentence or two."""
    his = asked.intruder
    if his.table is not None:
        return "The intruder has a table of his own, and whom it lacks he cannot find."
    if his.errors == Errors() and not any(his.levels.values()):
        return "The intruder knows the true values of these columns of everybody in the original table."
    told = "The intruder knows everybody in the original table"
    coarse = [f"{name} up to level {level}" for name, level in his.levels.items() if level]
    if coarse:
        told += f", {', '.join(coarse)}"
    lost = [(his.errors.missing, "he lacks"), (his.errors.wrong, "he has wrong")]
    errors = [f"{100 * rate:.3g} % of the values {what}" for rate, what in lost if rate]
    return f"{told}. {' and '.join(errors).capitalize()}, drawn by the records' ids." if errors else f"{told}."


def weights_of(policy: Policy) -> dict[str, float]:
    """Weight of each known column, of sum 1."""
    asked = attack_of(policy)
    given = {name: asked.weights.get(name, 1.0) for name in known_columns(policy)}
    return {name: weight / sum(given.values()) for name, weight in given.items()}
