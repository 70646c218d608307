"""SYNTHETIC tables as their owners have them: several languages, dirty values, ids among the rest, nothing explained.

Nothing here comes from a real person. Each table comes with what somebody who knows it would say of its columns, so
that guesses can be scored. Every random number comes from a Philox stream whose key is the seed and the table's number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Said = tuple[str, str | None]
"""Role of a column, and the form of its hierarchy; None where it has none."""

_ID: Said = ("identifier", None)
_KEPT: Said = ("sensitive", None)
_PLAIN: Said = ("insensitive", None)


def _known(form: str) -> Said:
    return ("quasi-identifier", form)


@dataclass(frozen=True)
class Unprepared:
    """A table, and what is true of it.

    Attributes
    ----------
    table : pyarrow.Table
    truth : dict of column to (role, form)
        In the order of the table; see :data:`Said`.
    """

    name: str
    table: pa.Table
    truth: dict[str, Said]
    record_id: str | None
    entity_id: str | None


ADULT: dict[str, Said] = {
    "sex": _known("flat"), "age": _known("intervals"), "race": _known("flat"), "marital-status": _known("flat"),
    "education": _known("order"), "native-country": _known("flat"), "workclass": _known("flat"),
    "occupation": _known("flat"), "salary-class": _KEPT,
}  # fmt: skip
"""What is true of the Adult table (UCI), which is not generated; regions of the world would be groups to be written."""

_Texts = npt.NDArray[np.object_]


class _Draws:
    """Random columns of one table."""

    def __init__(self, seed: int, table: int) -> None:
        self.random = np.random.Generator(np.random.Philox(key=[seed, table]))

    def of(self, values: list[Any], rows: int, *, skew: float = 0.0) -> _Texts:
        """Draw values, the first ones more often by a power of their place."""
        weights = 1.0 / np.arange(1, len(values) + 1) ** skew
        return np.array(values, dtype=object)[self.random.choice(len(values), rows, p=weights / weights.sum())]

    def days(self, rows: int, first: str, last: str) -> npt.NDArray[np.datetime64]:
        """Draw days between two, both included."""
        low, high = np.datetime64(first, "D"), np.datetime64(last, "D")
        return low + self.random.integers(0, int((high - low) // np.timedelta64(1, "D")) + 1, rows)

    def births(self, rows: int) -> npt.NDArray[np.datetime64]:
        """Draw days of birth of 1930 to 2010, the middle ones more often."""
        share = self.random.beta(2.2, 2.0, rows)
        return np.datetime64("1930-01-01", "D") + (share * 29_000).astype(np.int64)

    def numbers(self, rows: int, low: int, high: int) -> npt.NDArray[np.int64]:
        """Draw whole numbers, ``high`` excluded."""
        return self.random.integers(low, high, rows)

    def dirty(self, values: _Texts, share: float) -> _Texts:
        """Spoil some values: blanks at the ends, small letters, nothing."""
        fault = self.random.choice(4, len(values), p=[1 - share, share / 2, share / 3, share / 6])
        spoilt = values.copy()
        spoilt[fault == 1] = [f" {value}" for value in values[fault == 1]]
        spoilt[fault == 2] = [f"{value} ".lower() for value in values[fault == 2]]
        spoilt[fault == 3] = ""
        return spoilt


_NAMES = ["Adler", "Bruno", "Cantor", "Dorn", "Eiger", "Falk", "Gries", "Hauk", "Imhof", "Jost", "Kolb", "Lenz", "Mohn",
          "Nagel", "Opitz", "Pfau", "Quant", "Rabe", "Stern", "Thoma", "Uhl", "Veit", "Wolf", "Zorn"]  # fmt: skip
_ENDINGS = ["", "er", "mann", "ski", "sen", "ez", "ini", "off", "berg", "stein", "aux", "ova", "ides", "ard"]


def _surnames() -> list[str]:
    return [name + ending for name in _NAMES for ending in _ENDINGS]


def visits(rows: int, *, people: int, seed: int = 2026) -> Unprepared:
    """Return visits to a hospital near a border; a patient has several."""
    draw = _Draws(seed, 1)
    german = draw.random.random(people) < 0.7
    here = draw.of([f"{number:05d}" for number in range(52062, 52385, 3)], people, skew=0.6)
    there = draw.of(
        [f"{n} {a}{b}" for n in range(6211, 6230) for a in "ABCDEGHJ" for b in "ABCDEGHJKL"], people, skew=0.5
    )
    sex, surname, birth = draw.of(["F", "M"], people), draw.of(_surnames(), people, skew=0.4), draw.births(people)
    who = np.concatenate([np.arange(people), draw.numbers(rows - people, 0, people)])
    draw.random.shuffle(who)
    word = np.array([{"F": ["F", "f", " F", "female", "W"], "M": ["M", "m", "M ", "male", "M"]}[s] for s in sex[who]])
    written = word[np.arange(rows), draw.random.choice(5, rows, p=[0.9, 0.04, 0.02, 0.03, 0.01])].astype(object)
    written[draw.random.random(rows) < 0.004] = "?"
    admitted = draw.days(rows, "2023-01-01", "2025-12-31").astype("datetime64[s]") + draw.numbers(rows, 0, 86_400)
    stay = (draw.random.gamma(1.3, 3.0, rows) * 86_400).astype(np.int64)
    codes = [f"{chapter}{n:02d}.{sub}" for chapter in "IJKMCFSGEN" for n in range(10, 60, 3) for sub in range(0, 9, 2)]
    cost = np.round(draw.random.lognormal(7.6, 0.9, rows), 2)
    birth_of = birth[who].astype(object)
    birth_of[draw.random.random(rows) < 0.01] = None
    table = pa.table(
        {
            "visit_id": pa.array(draw.random.permutation(rows) + 1_000_000),
            "patient_id": pa.array([f"P{10_000_000 + 37 * int(number)}" for number in who]),
            "family_name": pa.array(surname[who], pa.string()),
            "birth_date": pa.array(birth_of, pa.date32()),
            "sex": pa.array(written, pa.string()),
            "postcode": pa.array(np.where(german, here, there)[who], pa.string()),
            "country": pa.array(np.where(german, "DE", "NL")[who], pa.string()),
            "admitted_at": pa.array(admitted, pa.timestamp("us")),
            "discharged_at": pa.array(admitted + stay, pa.timestamp("us")),
            "ward": pa.array(draw.of([f"W{n}" for n in range(1, 15)], rows, skew=0.5), pa.string()),
            "icd10": pa.array(draw.of(codes, rows, skew=0.7), pa.string()),
            "cost": pa.array(cost),
            "hospital": pa.array(["St. Synthetica"] * rows),
        }
    )
    truth = {
        "visit_id": _ID, "patient_id": _ID, "family_name": _ID, "birth_date": _known("dates"), "sex": _known("flat"),
        "postcode": _known("mask"), "country": _known("flat"), "admitted_at": _known("dates"),
        "discharged_at": _known("dates"), "ward": _known("flat"), "icd10": _KEPT, "cost": _KEPT, "hospital": _PLAIN,
    }  # fmt: skip
    return Unprepared("visits", table, truth, "visit_id", "patient_id" if people < rows else None)


def census(rows: int, *, seed: int = 2026) -> Unprepared:
    """Return a census in French: dates written day first, official codes of municipalities, occupations, industries."""
    draw = _Draws(seed, 2)
    born = [f"{day.day:02d}/{day.month:02d}/{day.year}" for day in draw.births(rows).astype(object)]
    levels = ["Aucun", "Brevet", "CAP", "Bac", "Licence", "Master", "Doctorat"]
    industries = [
        f"{d:02d}.{g}{c}" for d in (1, 10, 25, 41, 47, 49, 56, 62, 84, 85, 86) for g in (1, 2) for c in (1, 2)
    ]
    jobs = [f"{a}{b}{c}{d}" for a in range(1, 10) for b in (1, 2, 3) for c in (1, 2) for d in (0, 1, 2)]
    places = [f"{d:02d}{c:03d}" for d in (13, 31, 33, 59, 69, 75) for c in range(1, 160, 4)]
    people = draw.of(["célibataire", "marié", "divorcé", "veuf"], rows, skew=0.6)
    table = pa.table(
        {
            "identifiant": pa.array(draw.random.permutation(rows) + 1),
            "menage": pa.array(draw.numbers(rows, 1, max(2, rows // 2))),
            "sexe": pa.array(draw.of(["Homme", "Femme"], rows), pa.string()),
            "date_naissance": pa.array(born),
            "code_commune": pa.array(draw.of(places, rows, skew=0.8), pa.string()),
            "etat_civil": pa.array(draw.dirty(people, 0.03), pa.string()),
            "niveau_etudes": pa.array(draw.of(levels, rows), pa.string()),
            "profession": pa.array(draw.of(jobs, rows, skew=0.5), pa.string()),
            "code_naf": pa.array(draw.of(industries, rows, skew=0.4), pa.string()),
            "nb_enfants": pa.array(np.minimum(draw.random.poisson(1.1, rows), 6)),
            "nationalite": pa.array(
                draw.of(["FR", "PT", "DZ", "MA", "IT", "ES", "BE", "TR"], rows, skew=2), pa.string()
            ),
            "religion": pa.array(draw.of(["sans", "A", "B", "C"], rows, skew=1), pa.string()),
            "revenu": pa.array(np.round(draw.random.lognormal(10.1, 0.6, rows), -1).astype(np.int64)),
        }
    )
    truth = {
        "identifiant": _ID, "menage": _ID, "sexe": _known("flat"), "date_naissance": _known("groups"),
        "code_commune": _known("mask"), "etat_civil": _known("flat"), "niveau_etudes": _known("order"),
        "profession": _known("mask"), "code_naf": _known("groups"), "nb_enfants": _known("intervals"),
        "nationalite": _known("flat"), "religion": _KEPT, "revenu": _KEPT,
    }  # fmt: skip
    return Unprepared("census", table, truth, "identifiant", None)


def transactions(rows: int, *, people: int, seed: int = 2026) -> Unprepared:
    """Return card transactions; numbers of cards and accounts have right check digits."""
    draw = _Draws(seed, 3)
    who = np.concatenate([np.arange(people), draw.numbers(rows - people, 0, people)])
    draw.random.shuffle(who)
    cards = np.array([_card(int(number)) for number in draw.random.integers(0, 10**13, people)], dtype=object)
    accounts = np.array([_iban(int(number)) for number in draw.random.integers(0, 10**17, people)], dtype=object)
    mails = np.array([f"user{number * 7}@example.org" for number in range(people)], dtype=object)
    born = draw.births(people).astype("datetime64[Y]").astype(np.int64) + 1970
    city = draw.of([f"Town {letter}{n}" for letter in "ABCDE" for n in range(9)], people, skew=0.7)
    moment = draw.days(rows, "2025-01-01", "2025-06-30").astype("datetime64[s]") + draw.numbers(rows, 0, 86_400)
    address = draw.numbers(4 * rows, 1, 255).reshape(rows, 4)
    words = [f"{draw.numbers(1, 0, 2**62)[0]:016x}" for _ in range(rows)]
    table = pa.table(
        {
            "transaction_id": pa.array([f"{w[:8]}-{w[8:12]}-4{w[12:15]}-a{w[1:4]}-{w[4:16]}" for w in words]),
            "customer_id": pa.array(who + 500_000),
            "card_number": pa.array(cards[who], pa.string()),
            "IBAN": pa.array(accounts[who], pa.string()),
            "e_mail": pa.array(mails[who], pa.string()),
            "clientIp": pa.array([".".join(map(str, one)) for one in address.tolist()]),
            "booked": pa.array([str(one).replace("T", " ") for one in moment]),
            "yearOfBirth": pa.array(born[who]),
            "city": pa.array(city[who], pa.string()),
            "mcc": pa.array(draw.of([5411, 5812, 5541, 4111, 5912, 8011, 7995, 5999], rows, skew=1.0).astype(np.int64)),
            "amount": pa.array(np.round(draw.random.lognormal(3.2, 1.1, rows), 2)),
            "currency": pa.array(draw.of(["EUR", "CHF"], rows, skew=4), pa.string()),
        }
    )
    truth = {
        "transaction_id": _ID, "customer_id": _ID, "card_number": _ID, "IBAN": _ID, "e_mail": _ID, "clientIp": _ID,
        "booked": _known("dates"), "yearOfBirth": _known("intervals"), "city": _known("flat"), "mcc": _KEPT,
        "amount": _KEPT, "currency": _PLAIN,
    }  # fmt: skip
    return Unprepared("transactions", table, truth, "transaction_id", "customer_id" if people < rows else None)


def employees(rows: int, *, seed: int = 2026) -> Unprepared:
    """Return employees in German, with a column nobody can read and one of free text."""
    draw = _Draws(seed, 4)
    first, last = (
        draw.of(["Anna", "Ben", "Cem", "Dora", "Emil", "Finn", "Gül", "Ida"], rows),
        draw.of(_surnames(), rows),
    )
    notes = draw.of(["wechselt im Mai in das neue Team", "arbeitet seit langem nur am Vormittag"], rows)
    table = pa.table(
        {
            "Personalnummer": pa.array([f"M{number:06d}" for number in draw.random.permutation(rows)]),
            "Vorname": pa.array(first, pa.string()),
            "Nachname": pa.array(last, pa.string()),
            "Telefon": pa.array([f"+49 228 {number}" for number in draw.numbers(rows, 100_000, 999_999)]),
            "Geburtsdatum": pa.array(draw.days(rows, "1960-01-01", "2004-12-31").astype(object), pa.date32()),
            "Eintrittsdatum": pa.array(draw.days(rows, "1995-01-01", "2025-12-31").astype(object), pa.date32()),
            "Geschlecht": pa.array(draw.of(["weiblich", "männlich", "divers"], rows, skew=1.0), pa.string()),
            "PLZ": pa.array(draw.of([f"{n}" for n in range(53111, 53359, 2)], rows, skew=0.5), pa.string()),
            "Abteilung": pa.array(
                draw.of(["Einkauf", "Vertrieb", "IT", "Personal", "Werk"], rows, skew=0.5), pa.string()
            ),
            "Gehaltsgruppe": pa.array(draw.of(["niedrig", "mittel", "hoch"], rows), pa.string()),
            "Jahresgehalt": pa.array(np.round(draw.random.lognormal(10.9, 0.35, rows), 2)),
            "Schwerbehindert": pa.array(draw.of(["nein", "ja"], rows, skew=3.5), pa.string()),
            "f07": pa.array(draw.numbers(rows, 0, 90)),
            "Bemerkung": pa.array([f"{first[i]} {last[i]} {notes[i]} {i}" for i in range(rows)]),
        }
    )
    truth = {
        "Personalnummer": _ID, "Vorname": _ID, "Nachname": _ID, "Telefon": _ID, "Geburtsdatum": _known("dates"),
        "Eintrittsdatum": _known("dates"), "Geschlecht": _known("flat"), "PLZ": _known("mask"),
        "Abteilung": _known("flat"), "Gehaltsgruppe": _KEPT, "Jahresgehalt": _KEPT, "Schwerbehindert": _KEPT,
        "f07": _known("intervals"), "Bemerkung": _ID,
    }  # fmt: skip
    return Unprepared("employees", table, truth, "Personalnummer", None)


TABLES: dict[str, Callable[[int], Unprepared]] = {
    "visits": lambda rows: visits(rows, people=rows * 7 // 20),
    "census": census,
    "transactions": lambda rows: transactions(rows, people=rows // 8),
    "employees": employees,
}
"""Tables by name, of so many rows."""


def _card(number: int) -> str:
    """A payment card's number with Luhn's check digit; 4 is no bank's alone."""
    text = f"4{number:014d}"
    total = sum(
        digit if place % 2 else digit * 2 - 9 * (digit > 4) for place, digit in enumerate(map(int, reversed(text)))
    )
    return f"{text}{-total % 10}"


def _iban(number: int) -> str:
    """A German IBAN (ISO 13616): what follows, letters as two digits, leaves 1 modulo 97."""
    account = f"{number:018d}"
    return f"DE{98 - int(f'{account}131400') % 97:02d}{account}"
