"""The invented country of the SYNTHETIC population: its places, and the laws its people are drawn from.

Names of places are invented, and the laws are chosen for their shape only (a few large cities and many small ones, an
age pyramid, group shares that differ by region, a diagnosis that depends on age). The country is the same for every
seed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

REFERENCE_YEAR = 2006
FIRST_BIRTH_YEAR = 1906

SLOTS = 1 << 16
"""Of a law, one for each uniform 16-bit number."""

AGES = REFERENCE_YEAR - FIRST_BIRTH_YEAR + 1
_COUNTRY_KEY = 19_061_231

_REGIONS = ("Norland", "Sudmark", "Ostvale", "Westmere")
# blank-separated words
_STATES = (
    "Aldria Brenmark Calder Dunholt Estaria Farrow Glenmoor Halvia Istmark Jorvale "
    "Kestria Lorren Mardale Norvia Ostrey Pellmar Quenland Rovia Selmark Tarrow"
)
_STEMS = (
    "Ash Birch Clay Dorn Elm Fen Gold Hart Iron Jade Kirk Lin Mill "
    "North Oak Pine Quill Raven Stone Thorn Under Vale Wolf Yarrow Zeal"
)
_CITY_ENDINGS = (
    "bury bridge brook burgh cliff combe dale field ford gate ham haven hurst leigh mere mouth port stead ton wick"
)
_COUNTY_ENDINGS = "land marsh moor ridge shire wold"
_FIRST_NAMES = (
    "Ada Bela Caro Dario Edda Filo Gero Hana Ivo Jona Kaja Leno Mira "
    "Nilo Orla Pavo Quin Resa Silo Tove Ulla Vero Wim Xena Yara Zeno"
)
_NAME_ENDINGS = "er feld gard holm ing lund mann quist rup sen skov strand thal voss wald"

# detailed group -> broad group, and the share of each detailed group by region (rows need not sum to one)
RACES = (
    ("White European", "White", (56, 48, 40, 50)),
    ("White Middle Eastern", "White", (3, 2, 4, 3)),
    ("White Other", "White", (12, 8, 9, 10)),
    ("Black African", "Black", (4, 14, 7, 3)),
    ("Black Caribbean", "Black", (3, 8, 5, 1)),
    ("Black Other", "Black", (2, 6, 2, 1)),
    ("East Asian", "Asian", (5, 2, 12, 9)),
    ("South Asian", "Asian", (4, 2, 9, 5)),
    ("Southeast Asian", "Asian", (3, 1, 5, 7)),
    ("Indigenous Mainland", "Indigenous", (2, 2, 0.5, 4)),
    ("Indigenous Islander", "Indigenous", (0.2, 0.3, 0.2, 1)),
    ("Mixed", "Mixed or other", (4, 4, 4, 4)),
    ("Other", "Mixed or other", (1.8, 2.7, 2.3, 2)),
)
PARTIES = (
    ("Civic", (30, 22, 34, 26)),
    ("Union", (24, 36, 20, 22)),
    ("Liberty", (14, 20, 12, 18)),
    ("Green Field", (8, 4, 12, 14)),
    ("none", (24, 18, 22, 20)),
)
# diagnosis -> (prevalence weight, slope of its logarithm over a life)
DIAGNOSES = (
    ("upper respiratory infection", 30, -1.2),
    ("hypertension", 22, 2.6),
    ("back pain", 16, 0.8),
    ("type 2 diabetes", 11, 2.2),
    ("depression", 10, 0.2),
    ("asthma", 9, -1.0),
    ("osteoarthritis", 8, 3.0),
    ("influenza", 7, -0.4),
    ("anxiety disorder", 6, -0.3),
    ("migraine", 5, -0.2),
    ("otitis media", 5, -3.0),
    ("eczema", 4, -1.5),
    ("gastritis", 4, 0.5),
    ("coronary heart disease", 4, 3.2),
    ("hypothyroidism", 3, 1.0),
    ("anaemia", 3, 0.3),
    ("chronic obstructive pulmonary disease", 2.5, 3.0),
    ("cancer", 2.5, 2.8),
    ("epilepsy", 1.2, -0.3),
    ("hepatitis B", 0.7, 0.4),
    ("HIV infection", 0.5, 0.0),
    ("multiple sclerosis", 0.3, 0.3),
    ("tuberculosis", 0.2, 0.5),
    ("Huntington disease", 0.05, 0.6),
)


@dataclass(frozen=True)
class Country:
    """The invented places and the laws people are drawn from; the same for every seed.

    A law is an integer array of shape (groups, 65536): a uniform 16-bit number picks a slot of the row, and a
    value holds as many slots as its probability asks for.

    Attributes
    ----------
    city : list of tuple of str
        One row per city: city, county, state, region, ``*``.
    region_of_city : ndarray of int64, shape (cities,)
    cities, ages, races, sexes, parties, diagnoses : ndarray of uint16, shape (groups, 65536)
        ``races`` and ``parties`` by region, ``sexes`` and ``diagnoses`` by age; the others have one group.
    """

    city: list[tuple[str, ...]]
    region_of_city: npt.NDArray[np.int64]
    cities: npt.NDArray[np.uint16]
    ages: npt.NDArray[np.uint16]
    races: npt.NDArray[np.uint16]
    sexes: npt.NDArray[np.uint16]
    parties: npt.NDArray[np.uint16]
    diagnoses: npt.NDArray[np.uint16]


def invented_country() -> Country:
    """Build the invented country: 400 cities in 120 counties in 20 states in 4 regions, and its laws."""
    rng = np.random.Generator(np.random.Philox(key=_COUNTRY_KEY))
    cities, counties = 400, 120
    states, stems = _STATES.split(), _STEMS.split()
    state_of_county = _at_least_two(rng, counties, len(states))
    county_of_city = _at_least_two(rng, cities, counties)
    names = [stem + ending for stem in stems for ending in _CITY_ENDINGS.split()]
    names = [names[i] for i in rng.permutation(len(names))[:cities]]
    county_names = [f"{stem}{ending} County" for stem in stems for ending in _COUNTY_ENDINGS.split()]
    county_names = [county_names[i] for i in rng.permutation(len(county_names))[:counties]]
    region_of_state = np.arange(len(states)) * len(_REGIONS) // len(states)
    region_of_city = region_of_state[state_of_county[county_of_city]]
    city: list[tuple[str, ...]] = []
    for name, county in zip(names, county_of_city.tolist(), strict=True):
        state = state_of_county[county]
        city.append((name, county_names[county], states[state], _REGIONS[region_of_state[state]], "*"))
    rank = rng.permutation(cities) + 1  # size rank of each city, 1 is the largest
    age = np.arange(AGES)
    life = age / (AGES - 1)
    tilt = np.array([slope for _, _, slope in DIAGNOSES])
    prevalence = np.array([weight for _, weight, _ in DIAGNOSES])
    female = 0.488 + 0.0025 * np.maximum(age - 45, 0)
    return Country(
        city=city,
        region_of_city=region_of_city.astype(np.int64),
        cities=slot_law(rank**-0.95),
        ages=slot_law((1 + 0.12 * np.sin(2 * np.pi * (age - 8) / 28)) / (1 + np.exp((age - 74) / 7.5))),
        races=slot_law(np.array([shares for _, _, shares in RACES]).T),
        sexes=slot_law(np.stack([female, 1 - female], axis=1)),
        parties=slot_law(np.array([shares for _, shares in PARTIES]).T),
        diagnoses=slot_law(prevalence * np.exp(tilt * (life[:, None] - 0.4))),
    )


def person_names() -> list[str]:
    """Every invented name of a person."""
    surnames = [stem + ending for stem in _STEMS.split() for ending in _NAME_ENDINGS.split()]
    return [f"{first} {last}" for first in _FIRST_NAMES.split() for last in surnames]


def _at_least_two(rng: np.random.Generator, children: int, parents: int) -> npt.NDArray[np.int64]:
    """Return a parent for each child, sorted; each has two or more, so that every step up loses detail."""
    free = rng.integers(0, parents, size=children - 2 * parents)
    return np.sort(np.concatenate([np.repeat(np.arange(parents), 2), free]))


def slot_law(weights: npt.ArrayLike) -> npt.NDArray[np.uint16]:
    """Return the 65536 slots of each row of weights, shape (groups, values), by largest remainders."""
    shares = np.atleast_2d(np.asarray(weights, dtype=np.float64))
    shares = shares / shares.sum(axis=1, keepdims=True) * SLOTS
    law = np.empty((len(shares), SLOTS), dtype=np.uint16)
    for group, share in enumerate(shares):
        slots = np.floor(share).astype(np.int64)
        odd = np.argsort(slots - share, kind="stable")[: SLOTS - slots.sum()]
        slots[odd] += 1
        law[group] = np.repeat(np.arange(len(share), dtype=np.uint16), slots)
    return law
