"""What a table is like, column by column, before anybody has written a policy for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from privrisk_spark.json_values import JsonDocument, as_json
from privrisk_spark.results.page import html_table

if TYPE_CHECKING:
    import pandas as pd

Kind = Literal["number", "date", "time", "boolean", "text", "other"]
"""What the values of a column are, whatever the type of the column: a text column may hold numbers."""


@dataclass(frozen=True)
class ColumnValues:
    """Values of a column. They are of records: no part of anything that is published.

    Attributes
    ----------
    least, greatest : str or None
        By number, date or text.
    quantiles : tuple of float
        Of numbers, at :data:`QUANTILES`; approximate. Empty for other columns.
    counts : tuple of (str, int), or None
        Every value with its rows, most frequent first; None where there are too many.
    sampled : tuple of str
        Different values of the sample, in order; empty where ``counts`` are known.
    """

    least: str | None = None
    greatest: str | None = None
    quantiles: tuple[float, ...] = ()
    counts: tuple[tuple[str, int], ...] | None = None
    sampled: tuple[str, ...] = ()

    @property
    def known(self) -> tuple[str, ...]:
        """Different values that are known: all, or those of the sample."""
        return self.sampled if self.counts is None else tuple(value for value, _ in self.counts)


QUANTILES = (0.01, *(sixteenth / 16 for sixteenth in range(1, 16)), 0.99)
"""Shares of a column's numbers below its quantiles."""


@dataclass(frozen=True)
class ColumnProfile:
    """One column in figures.

    Attributes
    ----------
    name, type : str
        As Spark has them.
    kind : str
        See :data:`Kind`.
    rows, missing, blank : int
        Rows of the table; those that are null, and those that hold nothing but blanks.
    distinct : int
        Different values, null none; exact where ``exact``, else within about 5 %.
    unique : int or None
        Rows with a value that no other row has; None where the values are too many to count.
    lengths : tuple of (int, int, float), or None
        Least, greatest and mean characters of the values as text.
    shapes, patterns : dict of str to float
        Share of the sampled values that have each, most frequent first; see
        :mod:`privrisk_spark.planning.first_policy.patterns`.
    information : float
        Entropy of the values in bits; of the sample, at most log2 of its rows, where values are too many to count.
    variants : int
        Values that differ from another one by case or by blanks alone.
    values : ColumnValues
        Shown nowhere, unless asked for.
    read : mapping
        How its texts were cleaned before they were counted, as ``read`` of a policy; empty if they were not.
    doubt : str
        Why its numbers may be others than those that were read; empty if there is no doubt.
    """

    name: str
    type: str
    kind: Kind
    rows: int
    missing: int
    blank: int
    distinct: int
    exact: bool
    unique: int | None
    lengths: tuple[int, int, float] | None
    shapes: dict[str, float]
    patterns: dict[str, float]
    information: float
    variants: int
    values: ColumnValues = field(repr=False)
    read: Mapping[str, Any] = field(default_factory=dict)
    doubt: str = ""

    json_keys = (
        "name", "type", "kind", "rows", "missing", "blank", "distinct", "distinct_is_exact:exact",
        "unique_rows:unique", "lengths", "shapes", "patterns", "information_bits:information",
        "case_or_blank_variants:variants", "constant",
    )  # fmt: skip

    @property
    def there(self) -> int:
        """Rows that hold a value."""
        return self.rows - self.missing - self.blank

    @property
    def constant(self) -> bool:
        """Whether all rows hold the same, a missing value counting as one."""
        return self.distinct == 0 or (self.distinct == 1 and self.missing + self.blank == 0)

    @property
    def distinction(self) -> float:
        """Different values over rows that hold one, at most 1."""
        return min(1.0, self.distinct / self.there) if self.there else 0.0

    def share(self, pattern: str) -> float:
        """Return the share of sampled values that have a pattern."""
        return self.patterns.get(pattern, 0.0)


@dataclass(frozen=True)
class ColumnSet:
    """How far a set of columns tells the rows of the sample apart.

    Attributes
    ----------
    distinct : int
        Different combinations.
    rows : int
        Of the sample.
    """

    columns: tuple[str, ...]
    distinct: int
    rows: int

    json_keys = ("columns", "distinct")

    @property
    def distinction(self) -> float:
        """Different combinations over rows, at most 1."""
        return min(1.0, self.distinct / self.rows) if self.rows else 0.0


@dataclass(frozen=True)
class Persons:
    """A column that may name a person who has several rows.

    Attributes
    ----------
    persons : int
        Different values, exact.
    most : int
        Rows of the value that has most.
    mean : float
        Rows a value.
    """

    column: str
    persons: int
    most: int
    mean: float


@dataclass(frozen=True)
class Naming:
    """Why a column seems to name individuals.

    Attributes
    ----------
    determines : tuple of (str, str)
        Two columns that its values determine and that are unrelated to each other.
    together : str or None
        The column that names individuals together with it; None if it does so alone.
    """

    determines: tuple[str, str]
    together: str | None = None

    @property
    def reason(self) -> str:
        """What was found, for the middle of a sentence."""
        same = "value" if self.together is None else f"value and the same {self.together}"
        one, other = self.determines
        return f"rows with the same {same} also have the same {one} and {other}, as rows of one individual do"


@dataclass(frozen=True)
class TableProfile(JsonDocument):
    """A table in figures. Its values are kept apart, and shown nowhere unless asked for.

    Attributes
    ----------
    rows, sampled : int
        Of the table, and of the sample that shapes and patterns are of.
    columns : tuple of ColumnProfile
        In the order of the table.
    keys : tuple of str
        Columns that hold a different value in every row; counted exactly.
    persons : tuple of Persons
        Columns that may name a person with several rows.
    sets : tuple of ColumnSet
        Pairs and triples of columns, those that tell most rows apart first.
    naming : dict of column to Naming
        Columns whose values repeat and seem to name individuals.
    """

    rows: int
    sampled: int
    columns: tuple[ColumnProfile, ...]
    keys: tuple[str, ...] = ()
    persons: tuple[Persons, ...] = ()
    sets: tuple[ColumnSet, ...] = ()
    naming: dict[str, Naming] = field(default_factory=dict)

    json_keys = ("rows", "sampled_rows:sampled", "columns", "keys", "persons", "sets", "naming")

    def __getitem__(self, name: str) -> ColumnProfile:
        """Return the profile of a column."""
        return next(column for column in self.columns if column.name == name)

    def __repr__(self) -> str:
        """Say how large the table is."""
        return f"TableProfile(rows={self.rows:,}, columns={len(self.columns)})"

    def to_pandas(self) -> pd.DataFrame:
        """Return one row a column, without values of records.

        Returns
        -------
        pandas.DataFrame of shape (n_columns, 15)
        """
        import pandas as pd

        return pd.DataFrame([as_json(column) for column in self.columns])

    def _repr_html_(self) -> str:
        rows = [
            (
                one.name, one.type, one.kind, one.missing + one.blank, one.distinct, round(one.information, 2),
                one.variants, ", ".join([*one.shapes][:2]),
            )
            for one in self.columns
        ]  # fmt: skip
        head = ("column", "type", "holds", "missing", "distinct", "bits", "variants", "shapes")
        notes = [f"Every row has a value of its own: {', '.join(self.keys)}."] if self.keys else []
        notes += [f"{one.column}: {one.persons:,} values, {one.mean:.3g} rows each." for one in self.persons]
        notes += [f"{name} seems to name individuals: {one.reason}." for name, one in self.naming.items()]
        return html_table(f"Profile of {self.rows:,} rows", head, rows, notes=notes)
