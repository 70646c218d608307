"""What each column of a table may be: an identifier, a quasi-identifier, sensitive, or neither.

A guess is made by what a column is called (`vocabulary`), what its values look like (`patterns`) and how far they tell
rows apart. What an attacker may know and no rule knows better is a quasi-identifier: a wrong guess then costs utility,
and not somebody's privacy. Status: *heuristic*; every guess has its reason, and one that is not sure is marked. A
release refuses a column that is not sure and may be an id (:func:`may_be_ids`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from privrisk_spark.planning.first_policy.codes import MANY, code_form, may_be_given_out
from privrisk_spark.planning.first_policy.patterns import CODED, IDENTIFYING
from privrisk_spark.planning.first_policy.vocabulary import Named, named, names_an_id
from privrisk_spark.results.profile import ColumnProfile, TableProfile

Role = Literal["identifier", "quasi-identifier", "sensitive", "insensitive"]

SURE = 0.75
"""A guess of less confidence is marked."""

SAFE_HARBOR = {
    "person_name": "A, names", "address": "B, geographic subdivisions", "phone": "D and E, telephone and fax numbers",
    "email": "F, e-mail addresses", "ssn": "G, social security numbers", "national_id": "G, social security numbers",
    "medical_record": "H, medical record numbers", "account": "J, account numbers", "iban": "J, account numbers",
    "card": "J, account numbers", "passport": "K, certificate and license numbers", "vehicle": "L, vehicle identifiers",
    "device": "M, device identifiers", "mac": "M, device identifiers", "url": "N, URLs", "ip": "O, IP addresses",
    "photo": "P and Q, biometric identifiers and photographs", "person_id": "R, any other unique number",
    "row_id": "R, any other unique number", "user_name": "R, any other unique code", "uuid": "R, any other unique code",
}  # fmt: skip
"""Which of the 18 identifiers of HIPAA Safe Harbor, 45 CFR 164.514(b)(2)(i), a concept or pattern is."""

_DIRECT = {
    "person_name", "email", "phone", "address", "national_id", "passport", "account", "card", "medical_record",
    "vehicle", "device", "url", "ip", "user_name", "photo", "free_text", "coordinates", "person_id", "row_id",
}  # fmt: skip
_SENSITIVE = {
    "diagnosis", "procedure", "medication", "laboratory", "income", "amount", "credit", "performance", "belief",
    "disability", "crime", "merchant",
}  # fmt: skip
_KNOWN = {
    "birth_date", "birth_year", "death_date", "age", "sex", "postcode", "place", "region", "country", "nationality",
    "language", "marital_status", "ethnicity", "education", "occupation", "industry", "department", "employer",
    "household", "body", "event_date",
}  # fmt: skip
_IN_WORDS = {
    "birth_date": "a date of birth", "birth_year": "a year of birth", "death_date": "a date of death", "age": "an age",
    "sex": "the sex", "postcode": "a postcode", "place": "a place", "region": "a region", "country": "a country",
    "marital_status": "a marital status", "event_date": "the date of an event", "person_id": "the id of a person",
    "row_id": "the id of a row", "amount": "an amount of money", "body": "a measure of the body",
    "belief": "a belief or an affiliation", "medical_record": "a medical record number", "person_name": "a name",
    "address": "an address", "email": "an e-mail address", "phone": "a telephone number", "ip": "an IP address",
    "url": "a URL", "free_text": "free text", "employer": "an employer or a place of work",
    "household": "the size of a household", "technical": "how the record was made", "account": "an account number",
    "occupation": "an occupation", "industry": "an industry", "income": "an income", "diagnosis": "a diagnosis",
}  # fmt: skip
_INDEX = "it is a first column without a name, as pandas and R write names or numbers of rows"
_DATED = {"birth_date", "death_date", "event_date"}
_RELEASED = ": worth protecting, released"
_SAFE_SIDE = "; it is treated as if an attacker knew it, which is the safe side"
_UNSURE_NAMES = {
    "merchant": 0.6,
    "employer": 0.6,
    "technical": 0.6,
    "coordinates": 0.6,
    "department": 0.8,
    "performance": 0.8,
}


@dataclass(frozen=True)
class Guess:
    """What a column may be.

    Attributes
    ----------
    role : str
        See :data:`Role`.
    concept : str
        What it is about, such as ``birth_date``; "unknown" where nothing says.
    confidence : float
        In (0, 1); no probability, but an order of how much speaks for the guess.
    reason : str
        A sentence without its full stop. It holds no value of a record.
    kept : bool
        Whether the column is in a release.
    """

    column: str
    role: Role
    concept: str
    confidence: float
    reason: str
    kept: bool = True

    @property
    def unsure(self) -> bool:
        """Whether the role may well be another."""
        return self.confidence < SURE


@dataclass(frozen=True)
class Ids:
    """Which columns say which rows are one record's and one person's.

    Attributes
    ----------
    reason : str
        A sentence without its full stop.
    unsure : bool
        Whether one of them may well be another column.
    """

    record: str | None
    entity: str | None
    reason: str
    unsure: bool


def guess_roles(profile: TableProfile) -> tuple[Guess, ...]:
    """Guess the role of every column, in the order of the table."""
    first, second = [*(column.name for column in profile.columns[:2]), "", ""][:2]
    index = first if first == "_c0" and second != "_c1" else None  # every column of a file without a header is named so
    return tuple(
        Guess(column.name, "identifier", "row_id", 0.8, _INDEX, kept=False)
        if column.name == index
        else _safe(_individuals(_guess(column, profile), profile))
        for column in profile.columns
    )


def may_name_individuals(guesses: Sequence[Guess]) -> list[str]:
    """Return the columns that may be ids of individuals by an unknown name: all whose role is not sure, and ids."""
    return [one.column for one in guesses if one.concept != "free_text" and (one.role == "identifier" or one.unsure)]


def may_be_ids(guesses: Sequence[Guess], profile: TableProfile) -> set[str]:
    """Return the columns that may be ids of individuals, and whose role is not sure.

    They are identifiers that repeat, as they may be the missing `entity_id`, and quasi-identifiers of many texts or of
    numbers that may be given out. An identifier with a different value in every row is dropped whatever it is. Neither
    a measurement, a date nor a column of few values is an id.
    """
    found = set[str]()
    for one in guesses:
        column = profile[one.column]
        if one.unsure and one.role == "identifier" and one.concept != "free_text":
            found |= {one.column} - set(profile.keys)
        elif one.unsure and one.role == "quasi-identifier" and may_be_given_out(column):
            found.add(one.column)
    return found


def released_as_they_are(guesses: Sequence[Guess]) -> list[str]:
    """Return the columns that a release would hold as they are, by names that are sure: these may be wrong, too."""
    return [one.column for one in guesses if one.role in ("sensitive", "insensitive") and one.kept]


def _individuals(guess: Guess, profile: TableProfile) -> Guess:
    """Take a column that repeats and determines two unrelated ones for the id of an individual, or a part of it."""
    found = profile.naming.get(guess.column)
    if found is None or guess.concept == "person_id":
        return guess
    sure = guess.role == "identifier" and not guess.unsure
    confidence = guess.confidence if sure else min(guess.confidence, 0.6)
    reason = f"{guess.reason.removesuffix(_RELEASED).removesuffix(_SAFE_SIDE)}; {found.reason}"
    concept = "person_id" if found.together is None else guess.concept
    return Guess(guess.column, "identifier", concept, confidence, reason, kept=False)


def _safe(guess: Guess) -> Guess:
    """Leave out what would be released as it is, where nobody is sure that it may be."""
    if not (guess.unsure and guess.kept and guess.role in ("sensitive", "insensitive")):
        return guess
    reason = f"{guess.reason.removesuffix(_RELEASED)}; as that is not sure, it is left out until you include it"
    return replace(guess, reason=reason, kept=False)


def _guess(column: ColumnProfile, profile: TableProfile) -> Guess:
    by_name = named(column.name)
    by_pattern = _identifying(column)
    if by_pattern is not None and not _explained(by_name, by_pattern[0]):
        return _by_pattern(column, *by_pattern)
    if by_name is not None and by_name.concept in _DIRECT:
        return _direct(column, by_name, profile)
    if column.kind == "other":
        reason = f"its type {column.type.partition('<')[0]} cannot be generalized, so it is left out"
        return Guess(column.name, "insensitive", "unknown", 0.4, reason, kept=False)
    if column.constant:
        reason = "every row holds the same, which tells nobody from another"
        return Guess(column.name, "insensitive", "constant", 0.9, reason)
    if _is_free_text(column):
        reason = "nearly every row has a text of several words of its own, and such texts name people"
        return Guess(column.name, "identifier", "free_text", 0.7 if by_name is None else 0.8, reason, kept=False)
    if by_name is not None:
        return _by_name(column, by_name)
    return _by_values(column, profile)


# ---------------------------------------------------------------------------------------------- by patterns


def _identifying(column: ColumnProfile) -> tuple[str, float] | None:
    """The pattern of an identifier that most values have, or that some values of a text have."""
    found = [(name, share) for name, share in column.patterns.items() if name in IDENTIFYING]
    # Digits alone pass a check by chance, one in eleven or in ten: only where nearly all do, it is none.
    by_chance = {"bsn", "card", "cpf", "phone"}
    found = [one for one in found if one[1] >= (0.95 if one[0] in by_chance else 0.02)]
    if column.kind not in ("text", "number"):
        return None
    return max(found, key=lambda one: (one[1], one[0] != "phone"), default=None)


def _explained(name: Named | None, pattern: str) -> bool:
    """Whether a pattern that digits have by chance says less than the name does."""
    return name is not None and pattern in ("phone", "bsn", "cpf") and name.concept in (_KNOWN | _SENSITIVE)


def _by_pattern(column: ColumnProfile, pattern: str, share: float) -> Guess:
    which = f" (HIPAA Safe Harbor {SAFE_HARBOR[pattern]})" if pattern in SAFE_HARBOR else ""
    reason = f"{100 * share:.0f} % of its values are {IDENTIFYING[pattern]}{which}"
    concept = {"ssn": "national_id", "nino": "national_id", "dni": "national_id", "nir": "national_id",
               "bsn": "national_id", "codice_fiscale": "national_id", "cpf": "national_id", "iban": "account",
               "mac": "device", "uuid": "row_id"}.get(pattern, pattern)  # fmt: skip
    return Guess(column.name, "identifier", concept, 0.97 if share > 0.8 else 0.7, reason, kept=False)


# -------------------------------------------------------------------------------------------------- by name


def _called(found: Named) -> str:
    what = _IN_WORDS.get(found.concept, found.concept.replace("_", " "))
    return f"its name says {what} ('{found.words}')"


def _direct(column: ColumnProfile, found: Named, profile: TableProfile) -> Guess:
    which = f" (HIPAA Safe Harbor {SAFE_HARBOR[found.concept]})" if found.concept in SAFE_HARBOR else ""
    confidence = min(found.confidence, _UNSURE_NAMES.get(found.concept, 1.0))
    reason = f"{_called(found)}{which}"
    if found.concept in ("person_id", "row_id"):
        if column.name in profile.keys:
            return Guess(column.name, "identifier", found.concept, 0.95, f"{reason}; every row has its own", kept=False)
        if column.distinct < MANY and column.distinction < 0.02 and found.concept == "row_id":
            reason = f"{reason}, but few values are different: it may be a code"
            return Guess(column.name, "quasi-identifier", "unknown", 0.5, reason)
    elif column.kind in ("number", "date", "time", "boolean") and found.concept in (
        "person_name",
        "photo",
        "free_text",
    ):
        return replace(_by_values(column, profile), confidence=0.4)
    elif column.exact and column.distinct <= 20 and profile.rows > 1000:
        reason = f"{reason}, though it has only {column.distinct} different values"
        confidence = min(confidence, 0.6)
    return Guess(column.name, "identifier", found.concept, confidence, reason, kept=False)


def _by_name(column: ColumnProfile, found: Named) -> Guess:
    confidence = min(found.confidence, _UNSURE_NAMES.get(found.concept, 1.0))
    reason = _called(found)
    fits, why = _fits(column, found.concept)
    form = code_form(column)
    # Codes of diseases and the like have no form of their own, so ids must not hide behind such a name.
    of_text = found.concept in _SENSITIVE and column.kind == "text"
    if form is not None and (not fits or of_text or names_an_id(column.name)):
        return Guess(column.name, "identifier", "unknown", 0.6, f"{reason}, but {form}, as ids have", kept=False)
    if not fits:
        reason, confidence = f"{reason}, but {why}", min(confidence, 0.6)
    elif why:
        reason, confidence = f"{reason}, and {why}", max(confidence, 0.9)
    if found.concept in _SENSITIVE:
        pointing = column.kind in ("text", "time") and column.distinction > 0.5
        if pointing:
            reason = f"{reason}; most rows have a value of their own, so it is left out"
            return Guess(column.name, "sensitive", found.concept, min(confidence, 0.6), reason, kept=False)
        return Guess(column.name, "sensitive", found.concept, confidence, f"{reason}{_RELEASED}")
    if found.concept == "technical":
        if column.distinct <= 50:
            return Guess(column.name, "insensitive", "technical", confidence, reason)
        if form is not None:
            return Guess(column.name, "identifier", "unknown", 0.5, f"{reason}, but {form}, as ids have", kept=False)
        return Guess(column.name, "quasi-identifier", "unknown", 0.4, f"{reason}, but it has many values")
    if column.kind == "text" and column.distinction > 0.9 and found.concept not in ("postcode", *_DATED):
        reason = f"{reason}, but nearly every row has a value of its own"
        return Guess(column.name, "identifier", found.concept, 0.5, reason, kept=False)
    return Guess(column.name, "quasi-identifier", found.concept, confidence, f"{reason}, which others may know")


def _fits(column: ColumnProfile, concept: str) -> tuple[bool, str]:
    """Whether what a column holds can be what its name says; and what speaks for or against it."""
    low, high = (column.values.quantiles[0], column.values.quantiles[-1]) if column.values.quantiles else (0.0, 0.0)
    if concept in _DATED:
        dated = column.kind in ("date", "time") or column.share("written_date") > 0.8
        return dated, "its values are dates" if dated else "its values are no dates"
    if concept == "birth_year":
        year = column.share("year") > 0.9
        return year, "its values are years" if year else "its values are no years"
    if concept == "age" and column.kind == "number":
        return low >= 0 and high <= 125, "its values are ages" if low >= 0 and high <= 125 else "no age is so high"
    if concept == "postcode":
        coded = column.share("postcode") > 0.8 or column.kind == "number"
        return coded, "its values have the form of postcodes" if coded else "its values are no postcodes"
    if concept == "sex":
        return column.distinct <= 30, "" if column.distinct <= 30 else "it has too many values"
    if concept in ("diagnosis", "industry"):
        pattern = "icd10" if concept == "diagnosis" else "nace"
        coded = column.share(pattern) > 0.8
        return True, f"its values are {CODED[pattern]}" if coded else ""
    if concept in ("income", "amount", "body") and column.kind in ("date", "time"):
        return False, "its values are dates"
    return True, ""


# ------------------------------------------------------------------------------------------------ by values


def _is_free_text(column: ColumnProfile) -> bool:
    return column.kind == "text" and column.share("words") > 0.6 and column.distinction > 0.3


def _by_values(column: ColumnProfile, profile: TableProfile) -> Guess:
    if column.kind in ("date", "time"):
        return Guess(column.name, "quasi-identifier", "event_date", 0.65, "its values are dates, which others may know")
    if column.share("icd10") > 0.9 and column.distinct >= 10 and column.kind == "text":
        return Guess(column.name, "sensitive", "diagnosis", 0.7, "its values have the form of ICD-10 codes")
    if column.share("atc") > 0.9 and column.kind == "text":
        return Guess(column.name, "sensitive", "medication", 0.7, "its values have the form of ATC codes")
    if column.share("written_date") > 0.9:
        return Guess(column.name, "quasi-identifier", "event_date", 0.65, "its values are dates, which others may know")
    nothing = "nothing says what it is"
    form = code_form(column)
    if form is not None:
        reason = f"{nothing}, and {form}, as ids have"
        return Guess(column.name, "identifier", "unknown", 0.65, reason, kept=False)
    if column.name in profile.keys and not _is_measured(column):
        reason = f"{nothing}, and every row has a value of its own, as an id has"
        return Guess(column.name, "identifier", "row_id", 0.65, reason, kept=False)
    if column.kind == "text" and column.distinction > 0.5:
        reason = f"{nothing}, and most rows have a value of their own"
        return Guess(column.name, "identifier", "unknown", 0.6, reason, kept=False)
    return Guess(column.name, "quasi-identifier", "unknown", 0.4, f"{nothing}{_SAFE_SIDE}")


def _is_measured(column: ColumnProfile) -> bool:
    """Whether numbers are measured and not given out: they have decimals."""
    return column.kind == "number" and any("." in shape for shape in column.shapes)


# ------------------------------------------------------------------------------------------------------ ids

_NAMES_A_PERSON = ("person_id", "national_id", "medical_record", "account", "card", "email", "row_id")
"""Concepts of columns that tell one person from another, the best first."""


def person_candidates(guesses: Sequence[Guess], profile: TableProfile) -> list[str]:
    """Columns that may name a person who has several rows: few, for each is counted exactly."""
    return [guess.column for guess in _persons(guesses) if guess.column not in profile.keys][:3]


def _persons(guesses: Sequence[Guess]) -> Iterator[Guess]:
    for concept in _NAMES_A_PERSON:
        yield from (one for one in guesses if one.role == "identifier" and one.concept == concept)


def guess_ids(guesses: Sequence[Guess], profile: TableProfile) -> Ids:
    """Guess which column identifies a record, and which a person, if one has several rows.

    Parameters
    ----------
    profile : TableProfile
        With the columns of :func:`person_candidates` counted.
    """
    order = {"row_id": 0, "person_id": 1, "medical_record": 2, "national_id": 3}
    keys = [one for one in guesses if one.column in profile.keys and one.role == "identifier"]
    record = min(keys, key=lambda one: order.get(one.concept, 9), default=None)
    several = {one.column: one for one in profile.persons}
    # One row in a hundred beyond a person's first is a slip; four rows in five of few values are no persons'.
    able = [
        one
        for one in _persons(guesses)
        if one.column in several
        and several[one.column].mean > 1.01
        and (several[one.column].persons > profile.rows / 1000 or one.column in profile.naming)
    ]
    entity = able[0] if able else None
    said = []
    if record is None:
        said.append("no column holds a different value in every row, so an id is made of each row's content")
    else:
        said.append(f"every row has its own {record.column}")
    if entity is not None:
        found = several[entity.column]
        said.append(
            f"{entity.column} has {found.persons:,} values in {profile.rows:,} rows, {found.mean:.3g} each: persons "
            "are counted, not rows"
        )
    sure = (record is None or record.confidence >= SURE) and (
        entity is None or (entity.confidence >= SURE and entity.concept == "person_id")
    )
    return Ids(
        None if record is None else record.column,
        None if entity is None else entity.column,
        "; ".join(said),
        not sure,
    )
