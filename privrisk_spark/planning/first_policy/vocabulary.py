"""What columns are called, in English, German, French, Spanish, Italian, Dutch and Portuguese.

A *concept* is what a column is about, such as ``birth_date``. Words are written as :func:`normalized` leaves them:
small letters, without accents, blanks and signs. A name that is made of several words is looked up as a whole, then
by its longest run of whole words, then by what it begins or ends with, as compounds do (``patientengeburtsdatum``).
"""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True)
class Vocabulary:
    """The words of ``vocabulary.json``.

    Attributes
    ----------
    concepts : dict of str to str
        Word to the concept it names. If several concepts have a word, the first one.
    ids, persons, rows, person_ids, fillers : frozenset of str
        Words for an id, a person, a row and the id of a person, and words that are skipped.
    scales : tuple of tuple of str
        Ordered words. A column is ordinal if all its values are words of one scale.
    """

    concepts: dict[str, str]
    ids: frozenset[str]
    persons: frozenset[str]
    rows: frozenset[str]
    person_ids: frozenset[str]
    fillers: frozenset[str]
    scales: tuple[tuple[str, ...], ...]


@cache
def read_vocabulary() -> Vocabulary:
    """Return the words that name concepts and ids, and the scales."""
    text = files("privrisk_spark.planning.first_policy").joinpath("vocabulary.json").read_text(encoding="utf-8")
    lists = json.loads(text)
    concepts: dict[str, str] = {}
    for group in lists["concepts"].values():
        for concept, lines in group.items():
            for word in " ".join(lines).split():
                concepts.setdefault(word, concept)
    for word, concept in list(concepts.items()):
        # German writes ä as ae if a keyboard has no ä; a name with ä is normalized to a.
        concepts.setdefault(word.replace("ae", "a").replace("oe", "o").replace("ue", "u"), concept)
    ids, persons, rows, person_ids, fillers = (
        frozenset(" ".join(lists[name]).split()) for name in ("id", "person", "row", "person_id", "filler")
    )
    scales = tuple(tuple(scale.split()) for scale in lists["scales"])
    return Vocabulary(concepts, ids, persons, rows, person_ids, fillers, scales)


@dataclass(frozen=True)
class Named:
    """What a column's name says.

    Attributes
    ----------
    concept : str
        What the column is about.
    words : str
        The part of the name that says so, normalized.
    confidence : float
        In (0, 1).
    """

    concept: str
    words: str
    confidence: float


def words_of(name: str) -> list[str]:
    """Return the words of a name, each normalized: ``BirthDate``, ``birth_date`` and ``birth-date`` have two."""
    apart = re.sub(r"(?<=[a-zß-ÿ0-9])(?=[A-ZÀ-Þ])", " ", name)
    return [word for part in re.split(r"[\W_]+", apart) if (word := normalized(part))]


def normalized(text: str) -> str:
    """Return a text in small letters, without accents and signs; ä is a and ß is ss."""
    plain = unicodedata.normalize("NFKD", text.casefold())
    return "".join(letter for letter in plain if letter.isascii() and letter.isalnum())


def named(name: str) -> Named | None:
    """Return what a column's name says, or None if it says nothing.

    Parameters
    ----------
    name : str
        Of the column.
    """
    words = words_of(name)
    whole = "".join(words)
    if not words:
        return None
    of_ids = _of_ids(words, whole)
    if of_ids is not None:
        return of_ids
    known = read_vocabulary().concepts
    plain = [word for word in words if word not in read_vocabulary().fillers] or words
    if (joined := "".join(plain)) in known:
        return Named(known[joined], joined, 0.95)
    if whole in known:
        return Named(known[whole], whole, 0.95)
    for size in range(len(plain), 0, -1):
        for begin in range(len(plain) - size, -1, -1):
            run = "".join(plain[begin : begin + size])
            if run in known:
                return Named(known[run], run, 0.85)
    found = [word for word in known if len(word) >= _COMPOUND and (whole.endswith(word) or whole.startswith(word))]
    if found:
        # German compounds end with what they are: a Geburtsdatum is a Datum.
        best = max(found, key=lambda word: (len(word), whole.endswith(word), word))
        return Named(known[best], best, 0.75)
    without_number = name.rstrip("0123456789")
    return named(without_number) if without_number not in ("", name) else None


_ENDINGS = ("id", "kennung", "kennzahl", "nr", "number", "nummer", "numero", "schluessel", "uid")


def names_an_id(name: str) -> bool:
    """Return whether a column's name ends as names of ids do: ``Befundnr``, ``visit_id``."""
    words = words_of(name)
    return bool(words) and (words[-1] in read_vocabulary().ids or words[-1].endswith(_ENDINGS))


_COMPOUND = 5
"""Letters a word has at least that is looked for inside others."""


def _of_ids(words: list[str], whole: str) -> Named | None:
    known = read_vocabulary()
    if whole in known.person_ids:
        return Named("person_id", whole, 0.9)
    # "visit id" and "id visit", but "postal code" and "account number" have concepts of their own.
    if len(words) == 1:
        for ending in known.ids:
            if len(ending) > 1 and whole.endswith(ending) and whole.removesuffix(ending) in known.persons:
                return Named("person_id", whole, 0.85)
        return Named("row_id", whole, 0.6) if whole in {"id", "uid", "key", "rowid", "index", "nr"} else None
    if not (known.ids & {words[0], words[-1]}) or whole in known.concepts:
        return None
    if known.rows & set(words):
        return Named("row_id", whole, 0.9)
    if known.persons & set(words):
        return Named("person_id", whole, 0.9)
    rest = "".join(word for word in words if word not in known.ids)
    if {"id", "uid", "identifier"} & {words[0], words[-1]} and rest not in known.concepts:
        return Named("row_id", whole, 0.6)
    return None
