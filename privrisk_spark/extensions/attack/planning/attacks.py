"""What an attack reads of a policy, what it would cost, and what it predicts beside what it finds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from privrisk_spark.errors import Fault, InputError, listing
from privrisk_spark.extensions.attack.policy import OF_VALUES, AttackPolicy, Errors, attack_of
from privrisk_spark.extensions.attack.results.inferences import Inference, MembershipFound
from privrisk_spark.planning.assessment import reading_only
from privrisk_spark.policy.dictionaries import DictionaryTable, Table
from privrisk_spark.policy.guarantees import anonymity_of, model_of
from privrisk_spark.policy.masking import NUMERIC
from privrisk_spark.policy.policy import Policy, QuasiIdentifier

PROTECTED, SHARE, HIS_TABLE, OTHERS = (
    "attack.protected",
    "attack.intruder.share",
    "attack.intruder.table",
    "attack.also",
)
"""Keys of the policy, for messages."""


def known_columns(policy: Policy) -> list[str]:
    """Columns the intruder knows, in the order of the policy: quasi-identifiers, and others released as they are."""
    asked = attack_of(policy).intruder.columns
    return [name for name in policy.columns if name in (asked or policy.quasi_identifiers)]


def known_as_they_are(policy: Policy) -> list[str]:
    """Known columns that are no quasi-identifiers, so that all rows show them as they are, or masked."""
    return [name for name in known_columns(policy) if name not in policy.quasi_identifiers]


def read_policy(policy: Policy) -> Policy:
    """Return the policy to read the original table by: what the intruder knows, and what he wants to infer."""
    known = known_as_they_are(policy)
    inferred = [name for name in policy.sensitive_as_they_are if name not in known]
    reading = reading_only(policy, inferred if OF_VALUES & set(attack_of(policy).tried) else [])
    # Masked numbers are no nodes of a hierarchy.
    flat: dict[str, QuasiIdentifier] = {
        name: column.model_copy(update={"hierarchy": _FLAT.hierarchy})
        for name, column in reading.quasi_identifiers.items()
        if isinstance(column.mask, NUMERIC)
    }
    flat |= {name: _FLAT.model_copy(update={"read": policy.columns[name].read}) for name in known}
    return reading.model_copy(update={"columns": {**reading.columns, **flat}}) if flat else reading


_FLAT = QuasiIdentifier.model_validate({"role": "quasi-identifier", "hierarchy": {"flat": {}}})


def compared_as_numbers(policy: Policy) -> list[str]:
    """Known columns that are compared as numbers: those that are named, and those that are masked as numbers."""
    asked = attack_of(policy)
    return [
        name
        for name in known_columns(policy)
        if name in asked.numbers or (isinstance(policy.masks.get(name), NUMERIC) and name not in asked.texts)
    ]


def leaves_of(source: Table, columns: Mapping[str, str]) -> DictionaryTable:
    """Return a table as one that may hold leaves of hierarchies.

    Parameters
    ----------
    columns : mapping of quasi-identifier to column
    """
    fields = {name: getattr(source, name) for name in Table.model_fields}
    return DictionaryTable(**fields, columns=dict(columns)).at(source.pinned)


def in_words(policy: Policy) -> dict[str, str]:
    """How each known column is compared."""
    asked, numbers, as_they_are = attack_of(policy), compared_as_numbers(policy), known_as_they_are(policy)

    def compared(name: str) -> str:
        level = asked.intruder.levels.get(name, 0)
        how = "as a number" if name in numbers else "as a text" if name in asked.texts else "by levels of its hierarchy"
        if name in as_they_are and name not in numbers and name not in asked.texts:
            how = "as a category, equal or not"
        return f"{how}, known up to {_level(policy, name, level)}" if level else how

    return {name: compared(name) for name in known_columns(policy)}


def _level(policy: Policy, name: str, level: int) -> str:
    """Name of a level of a quasi-identifier, quoted; of another column its number."""
    column = policy.quasi_identifiers.get(name)
    return f"level {level}" if column is None else f"the level '{column.hierarchy.named_level(level)}'"


BLOCKED = ("distance", "probabilistic", "membership")
"""Methods that can search in blocks."""


def beyond(asked: AttackPolicy) -> str:
    """What becomes of each method that is tried where comparing all pairs takes more than it may, in words."""
    if asked.blocking == "never":
        return "beyond, it is refused"
    told = []
    axis = asked.blocking == "principal_axis"
    blocked = [name for name in asked.tried if name in BLOCKED and not (axis and name == "probabilistic")]
    if blocked:
        told.append(f"{listing(blocked)} in blocks ({asked.blocking}) whose recall is measured and told")
    if "probabilistic" in asked.tried:
        told.append("match weights have no axis: refused" if axis else "match weights estimated from a sample")
    if "transparency" in asked.tried:
        told.append("transparency by masks refused if the windows that masks leave take more")
    return "beyond: " + ("; ".join(told) if told else "no method that is tried is held to it")


def too_many(asked: AttackPolicy, records: int, tuples: int, columns: int) -> bool:
    """Whether comparing all pairs of records takes more comparisons of cells than an attack may."""
    return records * tuples * columns > asked.exact_pairs


def refuse_cost(
    asked: AttackPolicy, records: int, tuples: int, columns: int, *, people: int | None, why: str = ""
) -> None:
    """Refuse an attack that takes more comparisons than it may.

    Parameters
    ----------
    records : int
        Distinct ones to be linked.
    tuples : int
        Distinct ones each is compared with.
    people : int or None
        Whose the records are, at least as many; None where a sample of the people makes them no fewer.
    why : str, optional
        Sentences on why all pairs must be compared.

    Raises
    ------
    InputError
        Naming a share of the people that would do: so many are expected to be drawn that all may be different.
    """
    comparisons = records * tuples * columns
    if too_many(asked, records, tuples, columns):
        way = "Raise it"
        if people is not None:
            enough = asked.intruder.share * asked.exact_pairs / (people * tuples * columns)
            unit = 10.0 ** math.floor(math.log10(enough))
            way += f", or attack a sample, such as attack.intruder.share={math.floor(enough / unit) * unit:.1g}"
        raise InputError(
            f"attack.exact_pairs: comparing {records:,} distinct records with {tuples:,} in {columns} columns "
            f"takes up to {comparisons:.2g} comparisons, more than {asked.exact_pairs:.2g}. {why}{way}."
        )


SPLINK_PAIRS = 10**7
"""Pairs of records that Splink compares at most: 20 seconds and about 1.2 GB with eight columns."""

LEAST_PEOPLE = 100
"""Of whom a model of match weights is estimated at least."""

ENGINE = "attack.probabilistic.engine"
"""The key, for messages."""


def by_splink(asked: AttackPolicy) -> bool:
    """Whether Splink estimates match weights that are tried."""
    return "probabilistic" in asked.tried and asked.probabilistic.engine == "splink"


def compared_people(asked: AttackPolicy, records: int, people: int, rows: int, tuples: int, columns: int) -> int | None:
    """How many people to draw from whose pairs with all rows match weights are estimated; None for all.

    Parameters
    ----------
    records, people : int
        Distinct people, and all.
    rows, tuples : int
        Of the protected table, and distinct ones.

    Raises
    ------
    InputError
        If Splink would have to compare more pairs than it can.
    """
    most = []
    if too_many(asked, records, tuples, columns):
        most.append(asked.exact_pairs // (tuples * columns))
    if by_splink(asked) and people * rows > SPLINK_PAIRS:
        most.append(SPLINK_PAIRS // rows)
        if min(people, LEAST_PEOPLE) > most[-1]:
            raise InputError(
                f"{ENGINE}: Splink compares pairs of records one by one in the driver, {SPLINK_PAIRS:,} at most; the "
                f"protected table has {rows:,} rows, and with each of them {LEAST_PEOPLE} people must be compared. "
                "Take 'own', which counts pairs of distinct records."
            )
    return max(min(most), LEAST_PEOPLE) if most else None


def refuse_levels(asked: AttackPolicy, heights: Mapping[str, int]) -> None:
    """Refuse levels that a hierarchy does not have: of the protected table, and of what the attacker knows.

    Parameters
    ----------
    heights : mapping of known column to int
        Of its hierarchy.

    Raises
    ------
    InputError
        Naming the columns.
    """
    beyond = [
        Fault(f"{key}.{name}", f"must be a level of the hierarchy, 0 to {heights[name]}. Got {level}")
        for key, levels in (("attack.intruder.levels", asked.intruder.levels), ("attack.levels", asked.levels))
        for name, level in levels.items()
        if level > heights.get(name, level)
    ]
    if beyond:
        raise InputError(beyond)


def attack_notes(
    policy: Policy,
    *,
    sampled: bool,
    by_risk: bool,
    strangers: tuple[int, int] = (0, 0),
    blocked: bool = False,
    dealt_in_blocks: bool = False,
    left_out: Sequence[str] = (),
) -> tuple[str, ...]:
    """What a reader must know besides.

    Parameters
    ----------
    sampled : bool
        Whether the protected table holds only some of the records it could.
    by_risk : bool
        Whether it is known by how many people each of its rows was decided.
    strangers : tuple of (int, int)
        Rows of the protected table whose id the original table lacks, and all.
    blocked : bool
        Whether some links were searched in blocks.
    dealt_in_blocks : bool
        Whether rows were dealt in blocks, to tell who is a member.
    left_out : sequence of str
        Attacks that were not tried, each with its reason.
    """
    asked = attack_of(policy)
    notes = [
        f"{_knowledge(policy)} Among t candidates that are equally good he draws one, so that the right one is found "
        "with probability 1/t.",
    ]
    if strangers[0]:
        notes.append(
            f"{strangers[0]:,} of {strangers[1]:,} rows of the protected table have an id that no record of the "
            "original table has. They are not tried as rows, and their people count as not found. If these are not "
            "strangers, write the ids of both tables in the same way: for example without blanks or leading zeros."
        )
    if by_risk and asked.truth:
        notes.append(
            "What is predicted by 1/ρ is how surely a released row is linked to its person. It says nothing of how "
            "surely a person is linked to a row: few rows may be left that a person's values are consistent with."
        )
    if "distance" in asked.tried:
        notes.append(
            "A cell taken for the nearest value it covers is at no distance from all of them. Taken for any value it "
            "covers, a precise cell is nearer than a coarse one: the better guess where people are rarely suppressed."
        )
    if blocked:
        notes.append(
            "Comparing all pairs would take more than attack.exact_pairs. Searches in blocks may miss the nearest "
            "candidate, so that fewer people are found. Against attack.correct_links_at_most everybody counts as found "
            "whose link may have lost one, by the lower limit of the recall."
        )
    if dealt_in_blocks:
        notes.append(
            "Comparing all rows with everybody would take more than attack.exact_pairs. To tell members, rows are "
            "dealt to the nearest people of a block: of consistent cells the nearest of all, where somebody fits a row."
        )
    if asked.texts and "probabilistic" in asked.tried:
        notes.append("Match weights compare the columns of attack.texts by levels of their hierarchies.")
    if not asked.truth:
        notes.append(
            "It is not known whose each row of the protected table is, so no link is called right. Of those to t tied "
            "candidates at most 1/t are right, on average: the sum of these bounds what is found."
        )
    if policy.table.entity_id is not None and asked.truth:
        notes.append(
            "Persons are counted. Each row of a person is linked by itself; a link is right if it leads to any row of "
            "the same person, and a person is found if one of the rows is linked rightly. Distances are learned from "
            "rows of some persons, and tried on other persons. What is predicted of a row, and found by levels, is of "
            "rows: there a link is right to that very row alone."
        )
        if OF_VALUES.intersection(asked.tried):
            notes.append(
                "Of values each individual counts once: a value is certain, or exposed, if the class of one of the "
                "individual's records makes it so. A guess is right if at least one of the classes leads to a value "
                "that the individual holds."
            )
    if by_splink(asked):
        notes.append(
            "How probable agreement is was estimated by Splink on DuckDB, from pairs of records; links by its match "
            "weights are searched as by our own."
        )
    terms = asked.probabilistic.term_frequencies
    if terms and "probabilistic" in asked.tried:
        notes.append(
            f"By match weights agreement on a rare value weighs more than on a frequent one: {listing(terms)}."
        )
    if asked.intruder.share < 1:
        notes.append(f"The records tried are a sample: about {100 * asked.intruder.share:.3g} %, drawn by their ids.")
    if sampled:
        notes.append("The protected table holds only some of the records that it could hold; which is not known.")
    notes += [f"Not tried: {one}" for one in left_out]
    return tuple(notes)


def why_not_transparent(
    policy: Policy, levels: Mapping[str, int] | None, *, masks: int | None = None, local: bool = False
) -> str | None:
    """Why an intruder cannot link by what he is told of how the table was protected; None if he can.

    Parameters
    ----------
    levels : mapping of column to int, or None
        Of one scheme for the whole table.
    masks : int or None
        How many masks leave him some rows and not others; None where the table is not masked.
    local : bool
        Whether it is a release of classes that have levels of their own, which he can make again.
    """
    his, kept = attack_of(policy).intruder, known_as_they_are(policy)
    if masks == 0:
        return "'transparency', as the masks of the columns he knows leave every row possible."
    if local and set(policy.quasi_identifiers) - set(known_columns(policy)):
        return "'transparency', as classes can be made again by who knows all quasi-identifiers alone."
    if masks is None and kept and not local:
        return f"'transparency', as suppressed rows still show what no scheme recodes: {listing(kept)}."
    if masks is None and levels is None and not local:
        return (
            "'transparency', as it is not known by which levels the whole table was recoded; say it in attack.levels."
        )
    if his.table is not None or his.errors != Errors() or any(his.levels.values()):
        return "'transparency', as the intruder does not know the values of the original table as they are."
    return None


def alpha_of(policy: Policy, column: str, *, missing: bool) -> tuple[float, int] | None:
    """Greatest share of a class that may hold a value of a column, and k, if the policy's guarantee asks for it.

    None if values are missing and the guarantee does not count them: the shares are then not of all rows of a class.
    """
    guarantee = anonymity_of(policy.guarantee)
    if guarantee is None:
        return None
    asked = [besides.alpha for besides in guarantee.also if besides.alpha is not None]
    of = next((one for one in asked if one.column == column), None)
    return None if of is None or (missing and not of.count_missing) else (of.alpha, guarantee.k)


def is_masked(manifest: Mapping[str, Any] | None) -> bool:
    """Whether a release of ours has changed values, so that nobody's class is told by what is known of him."""
    return manifest is not None and not model_of(manifest).generalizes


def is_local(manifest: Mapping[str, Any] | None, levels: Mapping[str, int] | None) -> bool:
    """Whether it is a k-anonymous release of ours whose classes have levels of their own (Mondrian and others)."""
    return manifest is not None and model_of(manifest).recodes and levels is None


def why_not_minimal(
    policy: Policy, levels: Mapping[str, int] | None, *, manifest: Mapping[str, Any] | None, rows: int
) -> str | None:
    """Why it cannot be computed what a finer scheme tells that was given up; None if it can.

    Parameters
    ----------
    levels : mapping of column to int, or None
        Of one scheme for the whole table.
    manifest : mapping or None
        Of the protected table, if it is a release of ours.
    rows : int
        Of the original table.
    """
    guarantee = anonymity_of(policy.guarantee)
    told = "no condition 'alpha' on a released sensitive column of a k-anonymous release"
    if guarantee is None or manifest is None:
        return f"'minimality', as there is {told}."
    asked = [(name, one) for besides in guarantee.also for name, one in besides.given.items()]
    if not any(name == "alpha" for name, _ in asked):
        return f"'minimality', as there is {told}."
    if len(asked) > 1:
        return (
            "'minimality', as guarantee.also has other conditions besides one 'alpha': a finer scheme may have been "
            "given up for any of them."
        )
    if policy.table.entity_id is not None:
        return "'minimality', as individuals may have several records and values (table.entity_id)."
    if guarantee.suppressed_at_most(rows):
        return (
            "'minimality', as rows may be suppressed (guarantee.suppression_limit): a finer scheme may have been given "
            "up for what it costs."
        )
    if guarantee.scheme is not None or guarantee.method == "datafly":
        return "'minimality', as the scheme was not chosen as the best one of all."
    if set(policy.quasi_identifiers) - set(known_columns(policy)):
        return "'minimality', as the attacker does not know all quasi-identifiers, and so not the classes."
    reason = why_not_transparent(policy, levels)
    return None if reason is None else reason.replace("'transparency'", "'minimality'", 1)


def not_tried(
    policy: Policy,
    levels: Mapping[str, int] | None,
    inferences: Sequence[Inference],
    members: MembershipFound | None,
    *,
    learned: bool,
    minimality: str | None,
    masks: int | None = None,
    local: bool = False,
) -> list[str]:
    """What was asked for and could not be tried, each with its reason; that of minimality is given."""
    asked = attack_of(policy)
    tried = {one.method for one in inferences}
    found = []
    for method in asked.asked:
        if method not in asked.tried:
            found.append(f"'{method}', as it is not known of which record each row is (attack.protected.record_id).")
        elif method == "transparency":
            reason = why_not_transparent(policy, levels, masks=masks, local=local)
            found += [] if reason is None else [reason]
        elif method == "learned":
            if not learned:
                found.append("'learned', as fewer than two people who are tried are in the protected table.")
        elif method == "membership":
            if members is None:
                found.append(
                    "'membership', as everybody the intruder knows is in the protected table, or nobody; of a "
                    "differentially private one, in the original table: give him strangers (attack.intruder.table)."
                )
        elif method == "minimality" and method not in tried and minimality is not None:
            found.append(minimality)
        elif method in OF_VALUES and method not in tried:
            found.append(f"'{method}', as {_LACKING.get(method, _NO_VALUES)}.")
    return found


_NO_VALUES = (
    "the protected table has no sensitive column that is released as it is and holds a value, or masked "
    "quasi-identifiers, by which nobody's class is known, or nobody whom the intruder knows"
)
_LACKING = {
    "similarity": "no hierarchy says which sensitive values are alike (assess.sensitive)",
    "composition": "no other release is named (attack.also)",
    "minimality": "the column of the condition 'alpha' is not released as it is, or holds no value, or has missing "
    "values that the condition does not count (count_missing)",
}


def _knowledge(policy: Policy) -> str:
    """What the intruder knows, in a sentence or two."""
    his = attack_of(policy).intruder
    if his.table is not None:
        return "The intruder has a table of his own, and whom it lacks he cannot find."
    if his.errors == Errors() and not any(his.levels.values()):
        return "The intruder knows the true values of these columns of everybody in the original table."
    told = "The intruder knows everybody in the original table"
    coarse = [f"{name} up to {_level(policy, name, level)}" for name, level in his.levels.items() if level]
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
