"""Tables whose ids have names and forms that no vocabulary knows. All values are invented."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

ROWS, INDIVIDUALS = 300, 60

_TOWNS = ["Aachen", "Bonn", "Celle", "Dessau", "Essen"]
_ILLS = ["asthma", "burn", "cold", "flu"]


@dataclass(frozen=True)
class IdTable:
    """A table, and the columns that name an individual or a row; several of them do so together."""

    table: pa.Table
    ids: tuple[str, ...]


def _iban(number: int) -> str:
    account = f"50010517{number:010d}"
    return f"DE{98 - int(f'{account}131400') % 97:02d}{account}"


def _plate(number: int) -> str:
    area = ("K", "BN", "AC", "DO")[number % 4]
    letters = chr(65 + number // 26 % 26) + (chr(65 + number % 26) if number % 3 else "")
    return f"{area}-{letters} {number * 37 % 9000 + 10}"


_FORMS: dict[str, Callable[[int], object]] = {
    "KVNR": lambda n: f"{chr(65 + n % 26)}{100_000_000 + n * 7_654_321 % 800_000_000}",
    "token": lambda n: str(uuid.uuid5(uuid.NAMESPACE_URL, str(n))),
    "h1": lambda n: hashlib.sha256(str(n).encode()).hexdigest()[:16],
    "kontaktweg": lambda n: f"person{n}@example.org",
    "zahlweg": lambda n: _iban(n * 7919),
    "wagen": _plate,
    "vnx": lambda n: 4_000_000 + n * 74_747 % 5_000_000,
    "lx": lambda n: n + 1,
}
"""Ids of individuals: name of the column, and the id of individual n."""

NAMES = (*_FORMS, "of a row", "composed")
"""Names of the tables."""


def id_table(name: str, *, seed: int = 90) -> IdTable:
    """Return one of the tables: individuals with several rows each, or one row each."""
    random = np.random.default_rng([seed, NAMES.index(name)])
    who = np.concatenate([np.arange(INDIVIDUALS), random.integers(0, INDIVIDUALS, ROWS - INDIVIDUALS)])
    random.shuffle(who)
    if name == "of a row":
        who = np.arange(ROWS)
    people = int(who.max()) + 1
    births = np.datetime64("1950-01-01") + random.integers(0, 18_000, people)
    sex, town = random.choice(["f", "m"], people), random.choice(_TOWNS, people)
    known = {
        "born": pa.array(births[who].astype(str)),
        "sex": pa.array(sex[who]),
        "town": pa.array(town[who]),
        "diagnosis": pa.array(random.choice(_ILLS, ROWS)),
    }
    if name == "of a row":
        ids = {"stelle": pa.array([f"{n * 7 + 10_000:06d}-{n % 10}" for n in who])}
    elif name == "composed":
        ids = {"serie": pa.array([chr(65 + n % 4) for n in who]), "lauf": pa.array([n // 4 for n in who])}
    else:
        ids = {name: pa.array([_FORMS[name](int(n)) for n in who])}
    return IdTable(pa.table({**ids, **known}), tuple(ids))
