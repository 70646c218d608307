"""A voter registry and the people it is a sample of, SYNTHETIC, and records with postal codes put to them.

Xia et al., Process-driven data privacy, CIKM 2015 (X15), attack the Adult table of UCI by North Carolina's voter
registry: 6,018,999 rows, taken for a uniform sample of 9,553,967 people. Neither the registry nor the census tables by
postal code come with this package. The people here follow public laws, which depend on no table of a user:

- *Places.* 808 postal codes, as many as North Carolina has areas of. Their sizes are the quantiles of a Weibull law of
  shape :data:`SHAPE`. For fewer people there are fewer codes, so that codes stay as large.
- *Race.* Shares like those of the census of 2010, in the five categories of Adult; each varies from code to code by a
  log-normal factor.
- *Age.* Whole years from 17, Adult's youngest and about the age of registration, to 120; shares fall along a logistic
  curve around 74. *Sex*: 51.2 % women up to 45, more from there on. Neither depends on the place.

The people are numbered, drawn one by one, and the first are those registered: a uniform sample without replacement.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy

from privrisk_spark.kernels.arrays import FloatArray, IntArray, LongArray
from reproduce.generated.clustered import keyed_uniforms

ROWS = 6_018_999
"""Rows of the registry in X15."""

PRIOR = 0.63
"""Share of the people that is registered: 6,018,999 of 9,553,967."""

CODES = 808
SHAPE = 0.69
"""With it 64 % of a generated table's records have more than 55 candidates, the share X15 reports of Adult."""

RACES = ("White", "Black", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other")
SEXES = ("Male", "Female")
YOUNGEST, TOP_CODED, OLDEST = 17, 90, 120

PEOPLE_OF_A_PART = 2**19
"""People drawn at a time; part of the definition of the data."""

AGES = OLDEST - YOUNGEST + 1
WHO = len(SEXES) * AGES
"""Sexes and ages of a place: a cell is ``(code * races + race) * WHO + sex * AGES + age - YOUNGEST``."""

_RACE_SHARES = (0.685, 0.215, 0.023, 0.013, 0.064)
_RACE_SPREADS = (0.0, 0.8, 1.0, 1.5, 0.6)
_TABLE_RACES = (0.854, 0.096, 0.032, 0.010, 0.008)
_TABLE_MEN = 0.669
_TABLE_TOP_CODED = 0.0013
_LAW_SEED = 2010


@dataclass(frozen=True, eq=False)
class Law:
    """Where people live, and who they are; the same for every seed.

    Attributes
    ----------
    codes : int
        Postal codes.
    """

    codes: int

    @classmethod
    def of_rows(cls, rows: int) -> Law:
        """The law of a registry of so many rows."""
        return cls(max(1, round(CODES * rows / ROWS)))

    @cached_property
    def places(self) -> FloatArray:
        """float64 (codes, races): share of each postal code and race."""
        middle = (np.arange(self.codes) + 0.5) / self.codes
        size = (-np.log1p(-middle)) ** (1 / SHAPE)
        z = scipy.special.ndtri(keyed_uniforms(_LAW_SEED, "races", (self.codes, len(RACES))))
        weights = size[:, None] * np.exp(np.array(_RACE_SPREADS) * z)
        shares: FloatArray = weights / weights.sum(axis=0) * np.array(_RACE_SHARES)
        return shares

    @cached_property
    def who(self) -> FloatArray:
        """float64 (sexes, ages): share of each sex and age, from 17 on."""
        age = np.arange(YOUNGEST, OLDEST + 1)
        share = 1 / (1 + np.exp((age - 74) / 7.5))
        women = np.minimum(0.512 + 0.0025 * np.maximum(age - 45, 0), 0.75)
        weights = np.stack([(1 - women) * share, women * share])
        shares: FloatArray = weights / weights.sum()
        return shares

    @property
    def cells(self) -> int:
        """Number of cells."""
        return self.places.size * WHO

    def drawn(self, seed: int, part: int, people: int) -> IntArray:
        """Cells of the people of one part.

        Parameters
        ----------
        part : int
            Number of the part; each has a random stream of its own.

        Returns
        -------
        ndarray of int32, shape (people,)
        """
        counter = np.array([0, 0, part, 0], dtype=np.uint64)
        uniform = np.random.Generator(np.random.Philox(key=seed, counter=counter)).random((2, people))
        place, who = (_at(shares.ravel(), u) for shares, u in zip((self.places, self.who), uniform, strict=True))
        return (place * WHO + who).astype(np.int32)


def _at(shares: FloatArray, uniform: FloatArray) -> LongArray:
    """Value of each uniform number under a law."""
    bounds = np.cumsum(shares)
    return np.minimum(np.searchsorted(bounds / bounds[-1], uniform, side="right"), len(shares) - 1)


@dataclass(frozen=True)
class Registry:
    """A registry and the people it is a sample of."""

    rows: int
    seed: int

    @property
    def people(self) -> int:
        """Size of the population."""
        return max(self.rows, round(self.rows / PRIOR))

    @cached_property
    def law(self) -> Law:
        """Law of the people."""
        return Law.of_rows(self.rows)

    @property
    def parts(self) -> list[tuple[int, int, int]]:
        """Number of each part, its people, and how many of them, the first, are registered."""
        starts = range(0, self.people, PEOPLE_OF_A_PART)
        sizes = [min(PEOPLE_OF_A_PART, self.people - start) for start in starts]
        return [
            (i, size, min(max(self.rows - start, 0), size))
            for i, (start, size) in enumerate(zip(starts, sizes, strict=True))
        ]

    def counted(self, cells: LongArray) -> tuple[LongArray, LongArray]:
        """Registered people and all people of cells, drawn part by part in this process.

        Parameters
        ----------
        cells : ndarray of int64, shape (m,)
            -1 for one nobody is in.

        Returns
        -------
        registered, people : ndarray of int64, shape (m,)
        """
        found = np.zeros((2, self.law.cells + 1), dtype=np.int64)  # the last, also number -1, stays empty
        for part, size, registered in self.parts:
            drawn = self.law.drawn(self.seed, part, size)
            for row, some in zip(found, (drawn[:registered], drawn), strict=True):
                row[:-1] += np.bincount(some, minlength=self.law.cells)
        return found[0, cells], found[1, cells]


@dataclass(frozen=True, eq=False)
class Persons:
    """Records by what they say of their person, before postal codes are put to them.

    Attributes
    ----------
    age, race, sex : ndarray of int64, shape (n,)
        Age in years; positions in :data:`RACES` and :data:`SEXES`.
    records : ndarray of int64, shape (n,)
        Of each combination.
    """

    age: LongArray
    race: LongArray
    sex: LongArray
    records: LongArray

    @classmethod
    def generated(cls, seed: int, records: int) -> Persons:
        """An Adult-like table: its margins of race and sex, an age law of its mean and spread, independent."""
        uniform = keyed_uniforms(seed, "persons", (records, 3))
        at = (np.arange(TOP_CODED - YOUNGEST + 1) + 0.5) / (TOP_CODED - YOUNGEST + 1)
        ages = at**0.47 * (1 - at) ** 2.5
        ages = ages / ages.sum() * (1 - _TABLE_TOP_CODED)
        ages[-1] += _TABLE_TOP_CODED
        laws = (ages, np.array(_TABLE_RACES), np.array([_TABLE_MEN, 1 - _TABLE_MEN]))
        columns = [_at(law, uniform[:, i]) for i, law in enumerate(laws)]
        distinct, counts = np.unique(np.column_stack(columns), axis=0, return_counts=True)
        return cls(distinct[:, 0] + YOUNGEST, distinct[:, 1], distinct[:, 2], counts.astype(np.int64))

    @property
    def total(self) -> int:
        """Number of records."""
        return int(self.records.sum())

    def in_order(self) -> Persons:
        """The same, in an order that does not depend on how they came."""
        order = np.lexsort((self.sex, self.race, self.age))
        return replace(
            self, age=self.age[order], race=self.race[order], sex=self.sex[order], records=self.records[order]
        )

    def placed(self, law: Law, seed: int) -> tuple[LongArray, LongArray]:
        """Put a postal code to every record, and an age from 90 to 120 to those top-coded at 90, as X15 §6.1 does.

        The code is drawn from the law's places given the race; the age is uniform.

        Returns
        -------
        cells : ndarray of int64, shape (m,)
            Distinct, ascending; -1 for an age nobody has in the law.
        records : ndarray of int64, shape (m,)
        """
        found: dict[int, int] = {}
        for cells in self._placed(law, seed):
            for cell, times in zip(*(a.tolist() for a in np.unique(cells, return_counts=True)), strict=True):
                found[cell] = found.get(cell, 0) + times
        cells = np.array(sorted(found), dtype=np.int64)
        return cells, np.array([found[cell] for cell in cells.tolist()], dtype=np.int64)

    def _placed(self, law: Law, seed: int) -> Iterator[LongArray]:
        """Cells of the records of each combination."""
        for age, race, sex, records in zip(*self._columns, strict=True):
            uniform = keyed_uniforms(seed, f"place {age} {race} {sex}", (records, 2))
            code = _at(law.places[:, race], uniform[:, 0])
            ages = np.full(records, age)
            if age == TOP_CODED:
                ages += (uniform[:, 1] * (OLDEST - TOP_CODED + 1)).astype(np.int64)
            inside = (ages >= YOUNGEST) & (ages <= OLDEST)
            cell = (code * len(RACES) + race) * WHO + sex * AGES + ages - YOUNGEST
            yield np.where(inside, cell, -1)

    def expected(self, law: Law, rows: int) -> tuple[FloatArray, FloatArray]:
        """Expected group sizes under a law, and how many records are expected to have each.

        Returns
        -------
        sizes, records : ndarray of float64, shape (n * codes,)
            Those top-coded count as 105 years old; an age nobody has counts with a group of 0.
        """
        age = np.where(self.age == TOP_CODED, (TOP_CODED + OLDEST) // 2, self.age) - YOUNGEST
        inside = (age >= 0) & (age < AGES)
        who = np.where(inside, law.who[self.sex, np.where(inside, age, 0)], 0.0)
        given = law.places / law.places.sum(axis=0)
        sizes = rows * law.places[:, self.race] * who
        return sizes.ravel(), (given[:, self.race] * self.records).ravel()

    @property
    def _columns(self) -> tuple[list[int], ...]:
        return tuple(column.tolist() for column in (self.age, self.race, self.sex, self.records))
