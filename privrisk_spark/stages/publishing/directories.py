"""Directories of a release that are named after values (``output.partition_by``): which there are, and what is in them.

What a directory's name says is nowhere else in a release, so whole rows are held against those that were decided, the
values of the names among them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np
import pyarrow as pa
from pyspark.sql import types as T  # noqa: N812 - the name every Spark program uses

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import PARTS, Batches, Scratch, materialized, report
from privrisk_spark.engine.fingerprints import fingerprints
from privrisk_spark.engine.number_texts import as_texts, dictionary_of
from privrisk_spark.engine.tuples import TupleParts
from privrisk_spark.errors import InputError, InternalError, SchemaError
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.arrays import WordArray
from privrisk_spark.kernels.numeric import fingerprint
from privrisk_spark.policy.policy import Policy
from privrisk_spark.tables.partitions import MISSING, NAMES, directory_name

__all__ = [
    "MOST",
    "Directories",
    "check_partitions",
    "measure_rows_decided",
    "measure_rows_found",
    "refuse_many",
    "stretches",
]

MOST = 10_000
"""Directories of a release."""

_KEY = "output.partition_by"
_LONGEST = 255
"""Bytes of a name on the file systems there are."""


def check_partitions(policy: Policy, hierarchies: Mapping[str, Hierarchy], table: T.StructType) -> None:
    """Refuse what no directory can be named after, as far as labels and types tell it: before a row is decided.

    Parameters
    ----------
    hierarchies : mapping of quasi-identifier to Hierarchy
    table : StructType
        Of the table, kept columns as they are released.

    Raises
    ------
    SchemaError
        If a kept column has a type whose values have no text that says exactly what they are.
    InputError
        If a label is no name; under other guarantees than ``risk`` also if the labels allow for too many directories,
        as a release that has been drawn must not be refused for how many it has.
    """
    names = policy.places.partition_by if policy.output is not None else ()
    for name in names:
        if name not in hierarchies:
            kind = table[name].dataType
            if not isinstance(kind, tuple(map(type, NAMES.values()))):
                raise SchemaError(
                    f"{_KEY}: column '{name}' is of type {kind.simpleString()}, of which readers make another value "
                    "than the one a directory is named after; texts, whole numbers, true and false and dates can be "
                    "names. Leave it out."
                )
            continue
        for label in hierarchies[name].labels:
            _named(name, label)
    if names and not policy.decides:
        allowed = prod(len(set(hierarchies[name].labels)) for name in names)
        if allowed > MOST:
            raise InputError(
                f"{_KEY}: the hierarchies allow for {allowed:,} directories, and at most {MOST:,} can be made: under "
                f"{policy.guarantee.kind} that must be sure before anything is drawn. Name fewer columns, or columns "
                "with fewer labels."
            )


def _named(column: str, text: str | None) -> str:
    """Return the name of a value's directory.

    Raises
    ------
    InputError
        If there is none that says it.
    """
    if text in ("", MISSING):
        what = "an empty text" if text == "" else f"the text {MISSING}"
        raise InputError(
            f"{_KEY}: column '{column}' has {what}, which is a missing value to who reads a directory's name; read it "
            f'as missing (columns.{column}.read: {{null_if: ["{text}"]}}), or leave the column out.'
        )
    name = directory_name(column, text)
    if len(name.encode()) > _LONGEST:
        raise InputError(
            f"{_KEY}: column '{column}' has a value that makes a directory's name of more than {_LONGEST} bytes, which "
            "no file system takes; leave the column out."
        )
    return name


@dataclass
class Directories:
    """Directories that a task has written to.

    Attributes
    ----------
    columns : tuple of str
        Whose values they are named after.
    """

    columns: tuple[str, ...]
    made: set[str] = field(default_factory=set)

    def place(self, texts: Sequence[str | None]) -> str:
        """Return the directory for values, below that of the release; empty if columns are not named.

        Raises
        ------
        InputError
            If a value is no name, or there are too many.
        """
        place = "/".join(_named(column, text) for column, text in zip(self.columns, texts, strict=True))
        if place in self.made:
            raise InternalError(f"{_KEY}: rows of one directory do not come together.")
        self.made.add(place)
        refuse_many(len(self.made))
        return place


def refuse_many(directories: int) -> None:
    """Refuse more directories than readers list in a reasonable time.

    Raises
    ------
    InputError
    """
    if directories > MOST:
        raise InputError(
            f"{_KEY}: the release has more than {MOST:,} directories; nothing was published. Name fewer columns, or "
            "columns with fewer values."
        )


def stretches(columns: Sequence[pa.ChunkedArray], rows: int) -> Iterator[tuple[int, int, tuple[str | None, ...]]]:
    """Give where rows begin and end in which columns have the same values, with the texts of these.

    Parameters
    ----------
    columns : sequence of ChunkedArray
        Of types that are :func:`checked <check_partitions>`.
    rows : int
        At least 1.
    """
    encoded = [dictionary_of(column) for column in columns]
    codes = [places.fill_null(-1).to_numpy(zero_copy_only=False) for _, places in encoded]
    texts = [_texts(values) for values, _ in encoded]
    changes = np.zeros(rows, dtype=np.bool_)
    changes[0] = True
    for of_column in codes:
        changes[1:] |= of_column[1:] != of_column[:-1]
    begins = np.flatnonzero(changes).tolist()
    for begin, end in zip(begins, [*begins[1:], rows], strict=True):
        at = [int(of_column[begin]) for of_column in codes]
        yield begin, end, tuple(None if i < 0 else texts[j][i] for j, i in enumerate(at))


def _texts(values: pa.Array) -> list[str]:
    texts: list[str] = as_texts(values).to_pylist()
    if pa.types.is_date(values.type) and any(not _DAY.fullmatch(text) for text in texts):
        raise InputError(f"{_KEY}: a column has a date outside the years 1 to 9999, which is no name; leave it out.")
    return texts


_DAY = re.compile("(?!0000)[0-9]{4}-[0-9]{2}-[0-9]{2}")


def measure_rows_decided(scratch: Scratch, tuples: TupleParts, hierarchies: Mapping[str, Hierarchy]) -> int:
    """Return a fingerprint of the rows that are to be released, to be that of :func:`measure_rows_found`.

    Parameters
    ----------
    hierarchies : mapping of quasi-identifier to Hierarchy
        In the order of the tuples' nodes.
    """
    labels = [fingerprints(pa.chunked_array([pa.array(list(one.labels), pa.string())])) for one in hierarchies.values()]
    nodes = schemas.nodes(len(labels))
    kept = [name for name in tuples.schema.fieldNames() if name not in {*nodes, schemas.N_ROWS}]

    def words(table: pa.Table) -> list[WordArray]:
        of_nodes = [of_label[table.column(n).to_numpy()] for n, of_label in zip(nodes, labels, strict=True)]
        return of_nodes + [_words(table.column(name)) for name in kept]

    rows = materialized(scratch.spark, tuples.directory, tuples.names, tuples.schema)
    return _measure_summed(scratch, rows, words, weighed=True)


def measure_rows_found(scratch: Scratch, release: Batches) -> int:
    """Return a fingerprint of the rows of a release: the sum of theirs, below 2^64.

    Parameters
    ----------
    release : Batches
        Labels in the order of the policy, then kept columns in the order of the policy.
    """
    return _measure_summed(scratch, release, lambda table: [_words(column) for column in table.columns], weighed=False)


def _measure_summed(
    scratch: Scratch, rows: Batches, words: Callable[[pa.Table], list[WordArray]], *, weighed: bool
) -> int:
    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        total = np.uint64(0)
        with np.errstate(over="ignore"):
            for table in tables:
                of_rows = fingerprint.of_rows(words(table), table.num_rows)
                if weighed:
                    of_rows = of_rows * table.column(schemas.N_ROWS).to_numpy().astype(np.uint64)
                total += np.sum(of_rows, dtype=np.uint64)
        yield report("", {"rows": int(total)})

    return sum(int(part["rows"]) for part in scratch.collect_parts(rows.then(step, PARTS))) % 2**64


def _words(column: pa.ChunkedArray) -> WordArray:
    """Fingerprint of each value, whatever a file makes of its type: a time has no zone here, a text no width.

    Values within values are left out, as one file may name their fields otherwise than another.
    """
    if pa.types.is_nested(column.type):
        return np.zeros(len(column), dtype=np.uint64)
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    if pa.types.is_large_string(column.type):
        column = column.cast(pa.string())
    return fingerprints(column)
