"""A seeded, census-like SYNTHETIC population: a public register, a table to release, and their hierarchies.

Nothing here comes from a real person, place or census. Names of places are invented, and the laws below are
chosen for their shape only (a few large cities and many small ones, an age pyramid, group shares that
differ by region, a skewed income, a diagnosis that depends on age), so that disclosure risk behaves as on
real registers.

Every random number comes from a Philox stream whose key is the seed and whose counter names the purpose and
the chunk of people, so a chunk can be drawn alone, in any order, and memory does not grow with the
population (except for one 32-bit permutation that hands out the person numbers). The places, hierarchies
and laws do not depend on the seed: two seeds give two populations of one country, so an approved recoding
can be applied to a second batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from privrisk_spark.errors import InputError

REFERENCE_YEAR = 2006
FIRST_BIRTH_YEAR = 1906
MANIFEST = "SYNTHETIC.md"
COMPLETE = "Status: complete"

_AGES = REFERENCE_YEAR - FIRST_BIRTH_YEAR + 1
_CHUNK = 1 << 18  # people drawn at a time; part of the definition of the data, not a tuning knob
_SLOTS = 1 << 16
_MOST_PEOPLE = 999_999_999  # limit of numpy's multivariate hypergeometric draw
_INCOME_STEP = 1_000
_INCOME_TOP = 300_000
_COUNTRY_KEY = 19_061_231  # the country is the same for every seed

_POPULATION, _TABLE, _SHARE, _NUMBERS = range(4)  # purposes of the random streams

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
_RACE = (
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
_PARTY = (
    ("Civic", (30, 22, 34, 26)),
    ("Union", (24, 36, 20, 22)),
    ("Liberty", (14, 20, 12, 18)),
    ("Green Field", (8, 4, 12, 14)),
    ("none", (24, 18, 22, 20)),
)
# diagnosis -> (prevalence weight, slope of its logarithm over a life)
_DIAGNOSIS = (
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
# lower bounds of the income bins of level 1, 2 and 3; wider at the top, as statistical offices publish them
_INCOME_BOUNDS = (
    tuple(range(0, _INCOME_TOP + 1, 10_000)),
    (0, 50_000, 100_000, 200_000, _INCOME_TOP),
    (0, 100_000, _INCOME_TOP),
)

_Ints = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True)
class _Country:
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


def generate(
    directory: str | Path,
    *,
    people: int,
    rows: int,
    seed: int = 2026,
    sensitive: bool = True,
    files: int = 4,
    nulls: bool = True,
) -> None:
    """Write a SYNTHETIC population, a table about some of its people, and the hierarchies of the table.

    ``directory`` receives

    - ``population/part-*.parquet``: the public register, one row per person: ``city``, ``race``, ``age``
      (whole years, 2006 minus the year of birth), ``party``, ``sex``;
    - ``table/part-*.parquet``: ``rows`` distinct persons of it: ``person_id`` (unique, in random order),
      ``name``, ``city``, ``race``, ``birthdate`` (a day from 1906-01-01 to 2006-12-31), ``income`` (dollars,
      rounded to 1000, at most 299000) and ``diagnosis``;
    - ``city.csv`` (height 4), ``race.csv`` (height 2), ``income.csv`` (height 4): hierarchies in the CSV
      form of ARX, ``leaf;level1;…;*``, without a header; no inner node has a single child;
    - ``SYNTHETIC.md``: what this is, with the seed and the sizes. It is written last.

    The rows do not depend on ``files``: the parts, read in order of their names, are one sequence cut into
    equal pieces. The register is in no order, and neither is the table. Equal arguments give equal bytes
    under one version of numpy and pyarrow.

    Parameters
    ----------
    directory : str or Path
        Created if absent. An earlier data set of this function is replaced; a ``population`` or ``table``
        directory that something else wrote is refused.
    people : int
        Persons in the register, 1 to 999999999.
    rows : int
        Rows of the table, 1 to ``people``.
    seed : int, default 2026
        Key of all random streams, 0 to 2**64 - 1.
    sensitive : bool, default True
        Whether the table has the column ``diagnosis``.
    files : int, default 4
        Parts of the register, and of the table; 1 to ``rows``.
    nulls : bool, default True
        Whether about 5 % of ``income`` and 0.5 % of ``race`` are missing in the table. All other values are
        the same either way.

    Raises
    ------
    InputError
        If a size, the seed or the directory is not acceptable.
    """
    for name, given, most in (
        ("people", people, _MOST_PEOPLE),
        ("rows", rows, people),
        ("files", files, rows),
    ):
        if not 1 <= given <= most:
            raise InputError(f"{name} must be between 1 and {most}. Got {given}.")
    if not 0 <= seed < 1 << 64:
        raise InputError("seed must be between 0 and 2**64 - 1.")
    root = _claim(Path(directory))
    country = _country()
    _write_hierarchies(root, country)

    sizes = np.full(-(-people // _CHUNK), _CHUNK, dtype=np.int64)
    sizes[-1] = people - _CHUNK * (len(sizes) - 1)
    share = _stream(seed, _SHARE, 0).multivariate_hypergeometric(sizes, rows)
    numbers = np.arange(people, dtype=np.int32)
    _stream(seed, _NUMBERS, 0).shuffle(numbers)

    register = _Parts(root / "population", people, files)
    table = _Parts(root / "table", rows, files, plain=("person_id",))
    with register, table:
        for chunk, size in enumerate(sizes.tolist()):
            person = _draw_people(_stream(seed, _POPULATION, chunk), country, size)
            register.write(_register_rows(person, country))
            rng = _stream(seed, _TABLE, chunk)
            chosen = rng.permutation(size)[: share[chunk]]
            person = {name: values[chosen] for name, values in person.items()}
            number = numbers[chunk * _CHUNK + chosen]
            table.write(_table_rows(rng, person, country, number, sensitive=sensitive, nulls=nulls))
    _describe(root, people=people, rows=rows, seed=seed, files=files, nulls=nulls, sensitive=sensitive)


def _stream(seed: int, purpose: int, chunk: int) -> np.random.Generator:
    """Return the random stream of one purpose and chunk; streams are 2**128 blocks apart and cannot meet."""
    counter = np.array([0, 0, chunk, purpose], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=seed, counter=counter))


def _law(weights: npt.ArrayLike) -> npt.NDArray[np.uint16]:
    """Return the 65536 slots of each row of weights, shape (groups, values), by largest remainders."""
    shares = np.atleast_2d(np.asarray(weights, dtype=np.float64))
    shares = shares / shares.sum(axis=1, keepdims=True) * _SLOTS
    law = np.empty((len(shares), _SLOTS), dtype=np.uint16)
    for group, share in enumerate(shares):
        slots = np.floor(share).astype(np.int64)
        odd = np.argsort(slots - share, kind="stable")[: _SLOTS - slots.sum()]
        slots[odd] += 1
        law[group] = np.repeat(np.arange(len(share), dtype=np.uint16), slots)
    return law


def _draw(
    rng: np.random.Generator, law: npt.NDArray[np.uint16], size: int, group: _Ints | None = None
) -> npt.NDArray[np.uint16]:
    """Draw one value per person from the law of the person's group (the only one, if none is given)."""
    slot = rng.integers(0, _SLOTS, size=size, dtype=np.uint16)
    place = slot if group is None else group.astype(np.int64) * _SLOTS + slot
    return law.ravel().take(place)


def _country() -> _Country:
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
    age = np.arange(_AGES)
    life = age / (_AGES - 1)
    tilt = np.array([slope for _, _, slope in _DIAGNOSIS])
    prevalence = np.array([weight for _, weight, _ in _DIAGNOSIS])
    female = 0.488 + 0.0025 * np.maximum(age - 45, 0)
    return _Country(
        city=city,
        region_of_city=region_of_city.astype(np.int64),
        cities=_law(rank**-0.95),
        ages=_law((1 + 0.12 * np.sin(2 * np.pi * (age - 8) / 28)) / (1 + np.exp((age - 74) / 7.5))),
        races=_law(np.array([shares for _, _, shares in _RACE]).T),
        sexes=_law(np.stack([female, 1 - female], axis=1)),
        parties=_law(np.array([shares for _, shares in _PARTY]).T),
        diagnoses=_law(prevalence * np.exp(tilt * (life[:, None] - 0.4))),
    )


def _at_least_two(rng: np.random.Generator, children: int, parents: int) -> npt.NDArray[np.int64]:
    """Return a parent for each child, sorted; each has two or more, so that every step up loses detail."""
    free = rng.integers(0, parents, size=children - 2 * parents)
    return np.sort(np.concatenate([np.repeat(np.arange(parents), 2), free]))


def _draw_people(rng: np.random.Generator, country: _Country, size: int) -> dict[str, _Ints]:
    """Draw the codes of a chunk of people, each array of shape (size,)."""
    city = _draw(rng, country.cities, size)
    age = _draw(rng, country.ages, size)
    region = country.region_of_city[city]
    race = _draw(rng, country.races, size, region)
    party = _draw(rng, country.parties, size, region)
    sex = _draw(rng, country.sexes, size, age)
    return {"city": city, "race": race, "age": age, "party": party, "sex": sex}


def _register_rows(person: dict[str, _Ints], country: _Country) -> pa.Table:
    """Return the chunk's rows of the public register."""
    return pa.table(
        {
            "city": _text(person["city"], [row[0] for row in country.city]),
            "race": _text(person["race"], [leaf for leaf, _, _ in _RACE]),
            "age": pa.array(person["age"].astype(np.int32)),
            "party": _text(person["party"], [name for name, _ in _PARTY]),
            "sex": _text(person["sex"], ["female", "male"]),
        }
    )


def _table_rows(
    rng: np.random.Generator,
    person: dict[str, _Ints],
    country: _Country,
    number: _Ints,
    *,
    sensitive: bool,
    nulls: bool,
) -> pa.Table:
    """Return the table's rows about the chosen people of a chunk; all draws are made whatever the options."""
    size, age = len(number), person["age"].astype(np.int64)
    years = np.arange(FIRST_BIRTH_YEAR, REFERENCE_YEAR + 2).astype(str).astype("datetime64[D]").astype(np.int64)
    year = REFERENCE_YEAR - age - FIRST_BIRTH_YEAR
    day = years[year] + rng.integers(0, np.diff(years)[year], size=size)
    income = _draw_income(rng, age)
    diagnosis = _draw(rng, country.diagnoses, size, age)
    surnames = [stem + ending for stem in _STEMS.split() for ending in _NAME_ENDINGS.split()]
    names = [f"{first} {last}" for first in _FIRST_NAMES.split() for last in surnames]
    name = rng.integers(0, len(names), size=size, dtype=np.uint16)
    no_income, no_race = rng.random(size) < 0.05, rng.random(size) < 0.005
    columns = {
        "person_id": _person_ids(number),
        "name": _text(name, names),
        "city": _text(person["city"], [row[0] for row in country.city]),
        "race": _text(person["race"], [leaf for leaf, _, _ in _RACE], no_race if nulls else None),
        "birthdate": pa.array(day.astype("datetime64[D]")),
        "income": pa.array(income, mask=no_income if nulls else None),
        "diagnosis": _text(diagnosis, [label for label, _, _ in _DIAGNOSIS]),
    }
    if not sensitive:
        del columns["diagnosis"]
    return pa.table(columns)


def _draw_income(rng: np.random.Generator, age: _Ints) -> npt.NDArray[np.int32]:
    """Draw incomes in dollars: log-normal around a median that peaks at 47, none under 16, top-coded."""
    median = 9_000 + 36_000 * np.exp(-(((np.arange(_AGES) - 47) / 22) ** 2))
    income = median[age] * np.exp(0.75 * rng.standard_normal(len(age)))
    rounded = np.minimum(np.rint(income / _INCOME_STEP), _INCOME_TOP // _INCOME_STEP - 1) * _INCOME_STEP
    return np.where(age < 16, 0, rounded).astype(np.int32)


def _text(codes: _Ints, labels: list[str], missing: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    """Return labels by code as a dictionary array (in the Parquet file: an ordinary string column)."""
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int16), mask=missing), pa.array(labels, pa.string()))


def _person_ids(number: _Ints) -> pa.Array:
    """Return ``P`` and ten digits for each number, as a string array."""
    digits = 10
    text = np.empty((len(number), digits + 1), dtype=np.uint8)
    text[:, 0] = ord("P")
    rest = number.astype(np.int64)
    for place in range(digits, 0, -1):
        rest, digit = np.divmod(rest, 10)
        text[:, place] = digit + ord("0")
    ends = np.arange(len(number) + 1, dtype=np.int32) * (digits + 1)
    return pa.StringArray.from_buffers(len(number), pa.py_buffer(ends), pa.py_buffer(text))


class _Parts:
    """Writes a known number of rows as equal Parquet parts; one row group per piece handed in.

    Parameters
    ----------
    directory : Path
        Created; parts that are already there are removed.
    rows : int
        Rows that will be written in all.
    files : int
        Number of parts; part ``i`` holds the rows from ``i * rows // files`` on.
    plain : sequence of str, default ()
        Columns without a dictionary page, for values that do not repeat.
    """

    def __init__(self, directory: Path, rows: int, files: int, plain: tuple[str, ...] = ()) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        for part in directory.glob("part-*.parquet"):
            part.unlink()
        self._directory = directory
        self._bounds = [part * rows // files for part in range(files + 1)]
        self._plain = plain
        self._row = 0
        self._part = 0
        self._writer: pq.ParquetWriter | None = None

    def __enter__(self) -> _Parts:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._writer is not None:
            self._writer.close()

    def write(self, rows: pa.Table) -> None:
        """Append rows, starting new parts where they begin."""
        for piece in self._cut(rows):
            if self._writer is None:
                self._writer = self._open(piece.schema)
            self._writer.write_table(piece)
            self._row += piece.num_rows
            if self._row == self._bounds[self._part + 1]:
                self._writer.close()
                self._writer = None
                self._part += 1

    def _cut(self, rows: pa.Table) -> Iterator[pa.Table]:
        while rows.num_rows:
            room = self._bounds[self._part + 1] - self._row
            yield rows.slice(0, room)
            rows = rows.slice(room)

    def _open(self, schema: pa.Schema) -> pq.ParquetWriter:
        return pq.ParquetWriter(
            self._directory / f"part-{self._part:05d}.parquet",
            schema,
            compression="snappy",
            store_schema=False,
            use_dictionary=[name for name in schema.names if name not in self._plain],
        )


def _claim(root: Path) -> Path:
    """Make the directory ours, or refuse it; the manifest says incomplete until the end."""
    manifest = root / MANIFEST
    for name in ("population", "table"):
        if (root / name).exists() and not manifest.exists():
            raise InputError(
                f"{root} must be a new directory, or one this function filled (it has {MANIFEST}). "
                f"It holds '{name}' from elsewhere."
            )
    root.mkdir(parents=True, exist_ok=True)
    manifest.write_text("# SYNTHETIC data\n\nStatus: incomplete; generate it again.\n", encoding="utf-8")
    return root


def _write_hierarchies(root: Path, country: _Country) -> None:
    """Write the three hierarchy files."""
    income = []
    for leaf in range(0, _INCOME_TOP, _INCOME_STEP):
        bins = []
        for bounds in _INCOME_BOUNDS:
            upper = int(np.searchsorted(bounds, leaf, side="right"))
            bins.append(f"[{bounds[upper - 1]},{bounds[upper]})")
        income.append((str(leaf), *bins, "*"))
    race = [(leaf, group, "*") for leaf, group, _ in _RACE]
    for name, rows in (("city", country.city), ("race", race), ("income", income)):
        text = "".join(";".join(row) + "\n" for row in rows)
        (root / f"{name}.csv").write_text(text, encoding="utf-8", newline="\n")


def _describe(root: Path, *, people: int, rows: int, seed: int, files: int, nulls: bool, sensitive: bool) -> None:
    """Write the manifest that says what the directory holds."""
    missing = "about 5 % of income and 0.5 % of race" if nulls else "none"
    diagnosis = ", diagnosis (sensitive)" if sensitive else ""
    text = f"""# SYNTHETIC data

Everything in this directory is SYNTHETIC: drawn from a random number generator by
`privrisk_spark.experiments.generated.population`. No row describes a real person; places, groups' shares, incomes and
diagnoses are invented. Do not use it to learn anything about the world.

{COMPLETE}

| what | value |
|---|---|
| seed | {seed} |
| people in `population/` (the public register) | {people} |
| rows in `table/` (distinct persons of it) | {rows} |
| parts of each | {files} |
| missing values in the table | {missing} |
| reference year of `age` | {REFERENCE_YEAR} |

- `population/`: city, race, age (= {REFERENCE_YEAR} - year of birth), party, sex.
- `table/`: person_id, name (direct identifiers, invented), city, race, birthdate, income{diagnosis}.
- `city.csv` (city; county; state; region; *), `race.csv` (detailed; broad; *) and `income.csv` (dollars;
  three widths; *): hierarchies in the CSV form of ARX. Births are from {FIRST_BIRTH_YEAR}-01-01 to
  {REFERENCE_YEAR}-12-31.
"""
    (root / MANIFEST).write_text(text, encoding="utf-8", newline="\n")
