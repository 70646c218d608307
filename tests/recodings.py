"""Small tables with nested levels, for tests of recoding."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

from privrisk_spark.kernels.classes.closeness import TableDistribution
from privrisk_spark.kernels.classes.criteria import (
    ALPHA,
    BETA_LIKENESS,
    DELTA_DISCLOSURE,
    DISTINCT_DIVERSITY,
    ENTROPY_DIVERSITY,
    EQUAL_CLOSENESS,
    RECURSIVE_L,
)
from privrisk_spark.kernels.classes.diversity import SensitiveRuns
from privrisk_spark.kernels.recoding.full_domain import FullDomain
from privrisk_spark.kernels.recoding.holders import Holders
from privrisk_spark.kernels.recoding.local.partition import Partition
from privrisk_spark.kernels.recoding.metrics import Measured
from privrisk_spark.kernels.recoding.persons import Persons
from privrisk_spark.kernels.recoding.problem import Condition, held_to

EIGHT = ("sex", "age", "race", "marital-status", "education", "native-country", "workclass", "occupation")

Labels = list[list[list[int]]]
Row = tuple[int, ...]
Rows = list[Row]
Held = list[int]


@st.composite
def nested_levels(draw: st.DrawFn) -> list[list[int]]:
    """Of each code, its node at each level: each level is a coarser partition than the one below."""
    codes = draw(st.integers(1, 5))
    levels, height = [list(range(codes))], draw(st.integers(0, 3))
    for _ in range(height):
        below = levels[-1]
        of = {node: draw(st.integers(0, max(below))) for node in sorted(set(below))}
        levels.append([of[node] for node in below])
    return [list(column) for column in zip(*levels, strict=True)]


@st.composite
def small_tables(draw: st.DrawFn, most_rows: int = 14) -> tuple[Labels, Rows]:
    labels = draw(st.lists(nested_levels(), min_size=1, max_size=4))
    row = st.tuples(*(st.integers(0, len(of) - 1) for of in labels))
    return labels, draw(st.lists(row, max_size=most_rows))


def with_roots(labels: Labels) -> Labels:
    """One more level, of one node."""
    return [[[*path, 0] for path in of] for of in labels]


@st.composite
def small_tables_of_persons(draw: st.DrawFn, most_rows: int = 14) -> tuple[Labels, Rows, list[int]]:
    """A small table, and whose each row is."""
    labels, rows = draw(small_tables(most_rows))
    return labels, rows, [draw(st.integers(0, 5)) for _ in rows]


def persons_of(pairs: Sequence[tuple[int, int]], n_classes: int) -> Persons:
    """Persons of pairs of a distinct record and a person in it."""
    owner, person = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return Persons.of(owner, person, n_classes)


def table_of(labels: Labels, rows: Sequence[tuple[int, ...]], who: Sequence[int] | None = None) -> FullDomain:
    """The table of distinct rows, in an order of no meaning, and of the persons whose they are if that is said."""
    different = sorted(set(rows), reverse=True)
    counts = [rows.count(one) for one in different]
    vectors = np.array(different, dtype=np.int32).reshape(len(different), len(labels))
    ancestors = [np.array(of, dtype=np.int32) for of in labels]
    place = {row: i for i, row in enumerate(different)}
    pairs = None if who is None else [(place[row], person) for row, person in zip(rows, who, strict=True)]
    persons = None if pairs is None else persons_of(pairs, len(different))
    return FullDomain.of(ancestors, vectors, np.array(counts, dtype=np.int64), persons=persons)


@st.composite
def tables_with_values(draw: st.DrawFn, most_rows: int = 12) -> tuple[Labels, Rows, Held]:
    labels, rows = draw(small_tables(most_rows=most_rows))
    return labels, rows, [draw(st.integers(0, 3)) for _ in rows]


def table_with_values(labels: Labels, rows: Rows, held: Held) -> FullDomain:
    different = sorted(set(rows))
    counts = np.array([rows.count(one) for one in different], dtype=np.int64)
    start, value, count = [0], [], []
    for one in different:
        of = Counter(v for row, v in zip(rows, held, strict=True) if row == one)
        value += sorted(of)
        count += [of[v] for v in sorted(of)]
        start.append(len(value))
    runs = SensitiveRuns(np.array(start), np.array(value, dtype=np.int32), np.array(count, dtype=np.int64))
    vectors = np.array(different, dtype=np.int32).reshape(len(different), len(labels))
    return FullDomain.of([np.array(of, dtype=np.int32) for of in labels], vectors, counts, [runs])


MISSING = 0
"""Code of the missing value, where it does not count."""


def holders_of(places: Sequence[Row], who: Sequence[int], held: Sequence[int], n_classes: int) -> Holders:
    """Holders of rows whose distinct record is the first number of each place."""
    owner = np.array([place[0] for place in places], dtype=np.int64)
    return Holders.of(owner, np.array(held, dtype=np.int64), np.array(who, dtype=np.int64), n_classes, missing=MISSING)


def table_of_holders(labels: Labels, rows: Rows, who: Sequence[int], held: Held) -> FullDomain:
    """The table of distinct rows, of the persons whose they are, and of who holds which value."""
    table = table_of(labels, rows, who)
    place = {tuple(int(code) for code in row): i for i, row in enumerate(table.vectors)}
    holders = holders_of([(place[row],) for row in rows], who, held, len(place))
    return FullDomain.of(table.ancestors, table.vectors, table.counts, [holders], table.persons)


def conditions(held: Held) -> list[Condition]:
    """Of every kind, each of which some tables of values of 0 to 3 meet and some do not."""
    distribution = TableDistribution(np.bincount(held, minlength=4).astype(np.int64)) if held else None
    found = [
        held_to(DISTINCT_DIVERSITY, 2),
        held_to(ENTROPY_DIVERSITY, 1.7),
        held_to(RECURSIVE_L, 2, 2.0),
        held_to(ALPHA, 0.6),
    ]
    if distribution is not None:
        found += [held_to(one, 0.5, distribution) for one in (EQUAL_CLOSENESS, BETA_LIKENESS, DELTA_DISCLOSURE)]
    return found


def published_rows(table: FullDomain, labels: Labels, found: Partition) -> Counter:
    """Of every row what is published: (row, nodes by level and number, or None) with how often."""
    result: Counter = Counter()
    levels = found.levels
    for piece in range(len(found.record)):
        row = tuple(int(code) for code in table.vectors[found.record[piece]])
        nodes = tuple((int(level), labels[i][row[i]][level]) for i, level in enumerate(levels[piece]))
        result[row, nodes if found.of[piece] >= 0 else None] += int(found.rows[piece])
    return result


def adult_table(adult: Path, attributes: tuple[str, ...]) -> Measured:
    """The Adult table with its hierarchies."""
    with (adult / "adult.csv").open(newline="") as file:
        rows = list(csv.DictReader(file, delimiter=";"))
    ancestors, columns = [], []
    for name in attributes:
        with (adult / f"adult_hierarchy_{name}.csv").open(newline="") as file:
            paths = [row for row in csv.reader(file, delimiter=";") if row]
        levels = [np.unique(column, return_inverse=True)[1] for column in zip(*paths, strict=True)]
        code = {path[0]: number for number, path in enumerate(paths)}
        ancestors.append(np.column_stack(levels).astype(np.int32))
        columns.append([code[row[name]] for row in rows])
    vectors, counts = np.unique(np.array(columns, dtype=np.int32).T, axis=0, return_counts=True)
    return Measured.of(FullDomain.of(ancestors, vectors, counts.astype(np.int64)))
