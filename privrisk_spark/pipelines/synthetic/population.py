"""A seeded, census-like SYNTHETIC population: a public register, a table to release, and their hierarchies.

Nothing here comes from a real person, place or census. Names of places are invented, and the laws of ``country``
are chosen for their shape only, as is that of the skewed income, so that disclosure risk behaves as on real registers.

Every random number comes from a Philox stream whose key is the seed and whose counter names the purpose and
the chunk of people, so a chunk can be drawn alone, in any order, and memory does not grow with the
population (except for one 32-bit permutation that hands out the person numbers). The places, hierarchies
and laws do not depend on the seed: two seeds give two populations of one country, so an approved recoding
can be applied to a second batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from privrisk_spark.errors import InputError
from privrisk_spark.pipelines.synthetic.country import (
    AGES,
    DIAGNOSES,
    FIRST_BIRTH_YEAR,
    PARTIES,
    RACES,
    REFERENCE_YEAR,
    SLOTS,
    Country,
    invented_country,
    person_names,
)
from privrisk_spark.storage.directories import make_plainly, sweep
from privrisk_spark.storage.documents import write_plainly
from privrisk_spark.storage.locations import locate
from privrisk_spark.storage.ownership import claim

MANIFEST = "SYNTHETIC.md"
COMPLETE = "Status: complete"

_CHUNK = 1 << 18  # people drawn at a time; part of the definition of the data, not a tuning knob
_MOST_PEOPLE = 999_999_999  # limit of numpy's multivariate hypergeometric draw
_INCOME_STEP = 1_000
_INCOME_TOP = 300_000

_POPULATION, _TABLE, _SHARE, _NUMBERS = range(4)  # purposes of the random streams

# lower bounds of the income bins of level 1, 2 and 3; wider at the top, as statistical offices publish them
_INCOME_BOUNDS = (
    tuple(range(0, _INCOME_TOP + 1, 10_000)),
    (0, 50_000, 100_000, 200_000, _INCOME_TOP),
    (0, 100_000, _INCOME_TOP),
)

_Ints = npt.NDArray[np.integer[Any]]


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
    country = invented_country()
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


def _draw(
    rng: np.random.Generator, law: npt.NDArray[np.uint16], size: int, group: _Ints | None = None
) -> npt.NDArray[np.uint16]:
    """Draw one value per person from the law of the person's group (the only one, if none is given)."""
    slot = rng.integers(0, SLOTS, size=size, dtype=np.uint16)
    place = slot if group is None else group.astype(np.int64) * SLOTS + slot
    return law.ravel().take(place)


def _draw_people(rng: np.random.Generator, country: Country, size: int) -> dict[str, _Ints]:
    """Draw the codes of a chunk of people, each array of shape (size,)."""
    city = _draw(rng, country.cities, size)
    age = _draw(rng, country.ages, size)
    region = country.region_of_city[city]
    race = _draw(rng, country.races, size, region)
    party = _draw(rng, country.parties, size, region)
    sex = _draw(rng, country.sexes, size, age)
    return {"city": city, "race": race, "age": age, "party": party, "sex": sex}


def _register_rows(person: dict[str, _Ints], country: Country) -> pa.Table:
    """Return the chunk's rows of the public register."""
    return pa.table(
        {
            "city": _text(person["city"], [row[0] for row in country.city]),
            "race": _text(person["race"], [leaf for leaf, _, _ in RACES]),
            "age": pa.array(person["age"].astype(np.int32)),
            "party": _text(person["party"], [name for name, _ in PARTIES]),
            "sex": _text(person["sex"], ["female", "male"]),
        }
    )


def _table_rows(
    rng: np.random.Generator,
    person: dict[str, _Ints],
    country: Country,
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
    names = person_names()
    name = rng.integers(0, len(names), size=size, dtype=np.uint16)
    no_income, no_race = rng.random(size) < 0.05, rng.random(size) < 0.005
    columns = {
        "person_id": _person_ids(number),
        "name": _text(name, names),
        "city": _text(person["city"], [row[0] for row in country.city]),
        "race": _text(person["race"], [leaf for leaf, _, _ in RACES], no_race if nulls else None),
        "birthdate": pa.array(day.astype("datetime64[D]")),
        "income": pa.array(income, mask=no_income if nulls else None),
        "diagnosis": _text(diagnosis, [label for label, _, _ in DIAGNOSES]),
    }
    if not sensitive:
        del columns["diagnosis"]
    return pa.table(columns)


def _draw_income(rng: np.random.Generator, age: _Ints) -> npt.NDArray[np.int32]:
    """Draw incomes in dollars: log-normal around a median that peaks at 47, none under 16, top-coded."""
    median = 9_000 + 36_000 * np.exp(-(((np.arange(AGES) - 47) / 22) ** 2))
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
        make_plainly(directory)
        sweep(directory, "part-*.parquet")
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
    claim(locate(str(root), key="directory"), "directory", "synthetic data", public=True)
    write_plainly(root / MANIFEST, "# SYNTHETIC data\n\nStatus: incomplete; generate it again.\n")
    return root


def _write_hierarchies(root: Path, country: Country) -> None:
    """Write the three hierarchy files."""
    income = []
    for leaf in range(0, _INCOME_TOP, _INCOME_STEP):
        bins = []
        for bounds in _INCOME_BOUNDS:
            upper = int(np.searchsorted(bounds, leaf, side="right"))
            bins.append(f"[{bounds[upper - 1]},{bounds[upper]})")
        income.append((str(leaf), *bins, "*"))
    race = [(leaf, group, "*") for leaf, group, _ in RACES]
    for name, rows in (("city", country.city), ("race", race), ("income", income)):
        text = "".join(";".join(row) + "\n" for row in rows)
        write_plainly(root / f"{name}.csv", text)


def _describe(root: Path, *, people: int, rows: int, seed: int, files: int, nulls: bool, sensitive: bool) -> None:
    """Write the manifest that says what the directory holds."""
    missing = "about 5 % of income and 0.5 % of race" if nulls else "none"
    diagnosis = ", diagnosis (sensitive)" if sensitive else ""
    text = f"""# SYNTHETIC data

Everything in this directory is SYNTHETIC: drawn from a random number generator by
`privrisk_spark.pipelines.synthetic.population`. No row describes a real person; places, groups' shares, incomes and
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
    write_plainly(root / MANIFEST, text)
