"""Values of columns: those that hierarchies take their leaves from, and those outside of hierarchies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses
from pyspark.sql import types as T  # noqa: N812

from privrisk_spark.engine.batches import Batches, Scratch
from privrisk_spark.engine.number_texts import SPELLED, as_texts, dictionary_of
from privrisk_spark.engine.value_codes import ValueCodes
from privrisk_spark.errors import Fault, HierarchyError, SchemaError
from privrisk_spark.hierarchies.hierarchy import MAX_LEAVES, Hierarchy
from privrisk_spark.hierarchies.numbers import equal_text
from privrisk_spark.hierarchies.text import Builder
from privrisk_spark.planning.dictionaries import ALMOST_NONE, describe_mismatch
from privrisk_spark.policy.dictionaries import Table
from privrisk_spark.policy.policy import Policy
from privrisk_spark.results.facts import InputFacts
from privrisk_spark.results.validation import Coverage
from privrisk_spark.runs.progress import LOGGER
from privrisk_spark.tables.csv_tables import write_csv
from privrisk_spark.tables.encode import MOST_WEIGHT
from privrisk_spark.tables.row_groups import Wanted
from privrisk_spark.tables.sources import scan

if TYPE_CHECKING:
    from privrisk_spark.results.validation import Coverage

_STRANGERS = T.StructType(
    [
        T.StructField("column", T.IntegerType(), nullable=False),
        T.StructField("value", T.StringType()),
        T.StructField("rows", T.LongType(), nullable=False),
    ]
)
_STRANGERS_ARROW = pa.schema([("column", pa.int32()), ("value", pa.string()), ("rows", pa.int64())])
_ALL = -1
"""Number of the column that stands for all rows of the table."""


@dataclass(frozen=True, eq=False)
class Held:
    """The values of a column that are known."""

    column: str
    known: ValueCodes


def strangers(table: Table | None, frame: DataFrame, held: Mapping[str, Held]) -> DataFrame:
    """Return the values that are not known: number of the column, value, rows of it.

    Parameters
    ----------
    table : Table or None
        Of the policy; None for a frame that a caller gave.
    frame : DataFrame
        The table as Spark opened it.
    held : mapping of name to Held

    Returns
    -------
    DataFrame
        ``column`` (position in `held`), ``value`` and ``rows``. A value that is null stands for missing ones; column
        −1 has the rows of the whole table. A value may stand in several rows, one a task.
    """
    wanted = [Wanted(f"v{i}", one.column, "text") for i, one in enumerate(held.values())]
    known = [one.known for one in held.values()]

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        rows = 0
        seen: list[list[pa.Table]] = [[] for _ in known]
        for chunk in tables:
            rows += chunk.num_rows
            for i, of in enumerate(known):
                seen[i].append(_unknown_in(chunk.column(f"v{i}"), of))
        yield _rows(_ALL, pa.array([None], pa.string()), pa.array([rows], pa.int64()))
        for i, pieces in enumerate(seen):
            if pieces:  # of one task, each value once
                once = pa.concat_tables(pieces).group_by("value").aggregate([("rows", "sum")]).combine_chunks()
                yield _rows(i, once.column("value"), once.column("rows_sum"))

    return scan(table, frame, wanted).then(step, _STRANGERS).frame()


def _unknown_in(column: pa.ChunkedArray, known: ValueCodes) -> pa.Table:
    """Values of a chunk that are not known, and null for missing ones, with their rows."""
    distinct, place = dictionary_of(column)
    texts = as_texts(distinct).cast(pa.string())
    unknown = pc.is_null(known.find(distinct)).to_numpy(zero_copy_only=False)
    # One more entry, for missing values.
    positions = place.fill_null(len(texts)).to_numpy(zero_copy_only=False)
    rows = np.bincount(positions, minlength=len(texts) + 1)
    values = pa.concat_arrays([texts, pa.array([None], pa.string())])
    kept = pa.array(np.append(unknown, True) & (rows > 0))
    return pa.table({"value": values.filter(kept), "rows": pa.array(rows, pa.int64()).filter(kept)})


def _rows(column: int, values: pa.ChunkedArray | pa.Array, rows: pa.ChunkedArray | pa.Array) -> pa.Table:
    number = pa.array(np.full(len(values), column, dtype=np.int32))
    return pa.table({"column": number, "value": values, "rows": rows}, schema=_STRANGERS_ARROW)


def collect_coverage(table: Table | None, frame: DataFrame, held: Mapping[str, Held]) -> dict[str, Coverage]:
    """Count, for each column, the rows without a value and with one that is not known.

    Parameters
    ----------
    table, frame, held
        As :func:`strangers` takes them.

    Returns
    -------
    dict of name to Coverage
    """
    if not held:
        return {}
    once = strangers(table, frame, held).groupBy("column", "value").agg(F.sum("rows").alias("rows"))
    is_missing = F.col("value").isNull()
    told = (
        once.groupBy("column")
        .agg(
            F.coalesce(F.sum(F.when(is_missing, F.col("rows"))), F.lit(0)).alias("missing"),
            F.coalesce(F.sum(F.when(~is_missing, F.col("rows"))), F.lit(0)).alias("outside_rows"),
            F.count_if(~is_missing).alias("outside_values"),
        )
        .toArrow()
        .to_pylist()
    )
    found = {row["column"]: row for row in told}
    rows = found[_ALL]["missing"] if _ALL in found else 0
    nothing = {"missing": 0, "outside_rows": 0, "outside_values": 0}
    from privrisk_spark.results.validation import Coverage

    return {name: Coverage(rows, *(int(found.get(i, nothing)[key]) for key in nothing)) for i, name in enumerate(held)}


def collect_strangers_of(
    table: Table | None, frame: DataFrame, name: str, one: Held, *, most: int
) -> list[tuple[str, int]]:
    """Collect values of a column that are not known, the most frequent first; equals in the order of their texts.

    They are values of records: who calls this answers for where they go.

    Parameters
    ----------
    table, frame
        As :func:`strangers` takes them.
    most : int
        At most so many.

    Returns
    -------
    list of (str, int)
        Value and rows.
    """
    found = (
        strangers(table, frame, {name: one})
        .where((F.col("column") == 0) & F.col("value").isNotNull())
        .groupBy("value")
        .agg(F.sum("rows").alias("rows"))
        .orderBy(F.col("rows").desc(), "value")
        .limit(most)
        .toArrow()
    )
    return list(zip(found.column("value").to_pylist(), found.column("rows").to_pylist(), strict=True))


@dataclass(frozen=True, eq=False)
class LeafSource:
    """Columns a hierarchy may take leaves from.

    Attributes
    ----------
    table : Table or None
        Of the policy, whose files tasks may read themselves; None for a frame that a caller gave.
    frame : DataFrame
        As Spark opened it.
    columns : mapping of attribute to column
    """

    table: Table | None
    frame: DataFrame
    columns: Mapping[str, str]

    def is_spelled(self, name: str) -> bool:
        """Whether the column of an attribute holds numbers or booleans."""
        return isinstance(self.frame.schema[self.columns[name]].dataType, SPELLED)

    def narrow(self, names: Sequence[str]) -> LeafSource:
        """Return the source with fewer columns."""
        return replace(self, columns={name: column for name, column in self.columns.items() if name in names})


def collect_distinct_values(sources: Sequence[LeafSource]) -> list[dict[str, set[str]]]:
    """Collect the distinct values of columns whose hierarchies take their leaves from the data; one scan a source.

    Returns
    -------
    list of dict of attribute to set of str
        Of each source its distinct non-missing texts.

    Raises
    ------
    HierarchyError
        If an attribute has more than :data:`MAX_LEAVES`.
    SchemaError
        In tasks: if a text is none.
    """
    found = []
    for source in sources:
        found.append(of := {name: set[str]() for name in source.columns})
        if not source.columns:
            continue
        # Only where tasks find more than the driver should take, they are told apart on the way to it.
        found_in_tasks, most = _distinct_in_tasks(source, MAX_LEAVES + 1), len(source.columns) * MAX_LEAVES + 1
        values = found_in_tasks.frame()
        # No more than there are rows are found; to limit them is a shuffle.
        few = found_in_tasks.read is not None and found_in_tasks.read <= MAX_LEAVES
        table = (values if few else values.limit(most)).toArrow()
        if table.num_rows == most:
            table = values.distinct().limit(most).toArrow()
        position = table.column("attribute").to_numpy()
        texts = table.column("value").to_pandas().to_numpy()
        for i, name in enumerate(source.columns):
            of[name].update(texts[position == i])
    for name in dict.fromkeys(name for of in found for name in of):
        if len(set[str]().union(*(of.get(name, ()) for of in found))) > MAX_LEAVES:
            raise HierarchyError(
                f"columns.{name}.hierarchy: its leaves come from the data, which holds more than {MAX_LEAVES:,} "
                "distinct values; give a domain, or round the column first."
            )
    return found


def warn_of_mismatch(key: str, table: Set[str], dictionary: Set[str], numbers: bool) -> None:
    """Log a warning if a column of a dictionary holds almost no value of the table: no record would be found in it.

    The figures are exact, so that no public report may hold them.

    Parameters
    ----------
    key : str
        Of the column, for the message.
    table, dictionary : set of str
        Distinct values.
    numbers : bool
        Whether one of the columns holds numbers.
    """
    if numbers:
        table, dictionary = set(map(equal_text, table)), set(map(equal_text, dictionary))
    few = min(len(table), len(dictionary))
    if not few or len(table & dictionary) > few * ALMOST_NONE:
        return
    reasons = (why for why, change in _REASONS if _shared(table, dictionary, change) * 2 >= few)
    shared = f"only {len(table & dictionary):,} of the dictionary's {len(dictionary):,} values occur in the table"
    LOGGER.warning("%s", describe_mismatch(key, shared, next(reasons, None)))


def _shared(table: Set[str], dictionary: Set[str], change: Callable[[str], str]) -> int:
    return len(set(map(change, table)) & set(map(change, dictionary)))


_REASONS: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("Likely reason: decimals, such as 34 and 34.0. Fix: set read: {cast: number} for both", equal_text),
    (
        "Likely reason: leading zeros, such as 010 and 10. Fix: write both columns as texts of one length",
        lambda text: equal_text(text.lstrip("0")),
    ),
    (
        "Likely reason: case, or blanks at the ends. Fix: set read: {trim: true, case: upper} for both",
        lambda text: text.strip().casefold(),
    ),
)


def _distinct_in_tasks(source: LeafSource, most: int) -> Batches:
    """Pairs of attribute and text, each once a task; ``most`` of an attribute are too many wherever they are."""
    names = list(source.columns.values())
    aliases = [f"v{i}" for i in range(len(names))]
    opened = scan(
        source.table, source.frame, [Wanted(to, name, "text") for to, name in zip(aliases, names, strict=True)]
    )

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        found = [pa.array([], pa.string()) for _ in names]
        for table in tables:
            for i, (alias, name) in enumerate(zip(aliases, names, strict=True)):
                if len(found[i]) < most:
                    new = _texts_that_occur(table.column(alias), name)
                    found[i] = pc.unique(pa.concat_arrays([found[i], new]))[:most]
        for i, texts in enumerate(found):
            yield pa.table([pa.array(np.full(len(texts), i, dtype=np.int32)), texts], schema=_LEAVES_ARROW)

    return opened.then(step, _LEAVES)


def _texts_that_occur(column: pa.ChunkedArray, name: str) -> pa.Array:
    """Distinct texts of a column, as Spark writes them; a file's dictionary may hold others."""
    distinct, place = dictionary_of(column)
    texts = as_texts(distinct.take(pc.unique(place).drop_null())).drop_null()
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        raise SchemaError(
            f"columns.{name}: it has bytes that are no text in UTF-8. Fix: correct them, or write the table again "
            "from texts."
        ) from None
    return texts


_LEAVES = T.StructType([T.StructField("attribute", T.IntegerType()), T.StructField("value", T.StringType())])
_LEAVES_ARROW = pa.schema([("attribute", pa.int32()), ("value", pa.string())])


def write_unknown_values(scratch: Scratch, table: DataFrame, name: str, hierarchy: Hierarchy) -> tuple[Path, int]:
    """List the values of a column that are outside its hierarchy, with their row counts.

    Returns
    -------
    Path
        A directory of the driver: what workers write for themselves would stay where they are.
    int
        How many there are.
    """
    values = (
        strangers(None, table, {name: Held(name, ValueCodes.of_leaves(hierarchy))})
        .where((F.col("column") == 0) & F.col("value").isNotNull())
        .groupBy("value")
        .agg(F.sum("rows").alias("count"))
    )
    return write_csv(scratch, values, "unknown_values"), values.count()


def missing_forbidden(name: str, rows: int) -> Fault:
    """Fault of a column that has missing values where they are forbidden.

    Parameters
    ----------
    rows : int
        Without a value.
    """
    rule = f"missing values are forbidden and {rows:,} rows have one; mend the table or choose"
    return Fault(f"columns.{name}.nulls", f"{rule} 'suppress', 'own-value' or 'wildcard'")


def outside_hierarchy(name: str, hierarchy: Builder, values: int, rows: int, where: str) -> Fault:
    """Fault of a column with values outside its hierarchy.

    Parameters
    ----------
    hierarchy : Builder
        As the policy declares it.
    values, rows : int
        How many, and in how many rows.
    where : str
        Where they can be looked at, as a clause.
    """
    rule = f"{values:,} value(s) in {rows:,} row(s) are not in the hierarchy; {where}"
    remedy = f"{hierarchy.remedy()}, or set columns.{name}.unknown: suppress"
    return Fault(f"columns.{name}.hierarchy", f"{rule}. {remedy}")


def refuse_values(policy: Policy, facts: InputFacts, set_aside: Callable[[str], int], *, listed_in: Path | str) -> None:
    """Refuse values nobody can decide on: missing where that is forbidden, no weights, outside a hierarchy.

    Parameters
    ----------
    set_aside : callable
        Lists an attribute's values outside its hierarchy in the vault and returns how many there are.

    Raises
    ------
    SchemaError, HierarchyError
        Naming attribute and number of rows, never a value.
    """
    # Of masked columns there are no codes.
    specs = {name: spec for name, spec in policy.quasi_identifiers.items() if name in facts.nulls}
    for name, spec in specs.items():
        if facts.nulls[name] and spec.nulls == "forbid":
            raise SchemaError([missing_forbidden(name, facts.nulls[name])])
    for name, rows in facts.bad_weights.items():
        if rows:
            sampled = name == policy.table.weight
            below, fix = (f" below {MOST_WEIGHT:,.0f}", "; divide all by one number") if sampled else ("", "")
            raise SchemaError(
                f"columns.{name}: a weight must be a non-negative number{below}, and {rows:,} rows have none such{fix}."
            )
    if facts.null_entities:
        raise SchemaError(
            f"table.entity_id: every row must name its person, and {facts.null_entities:,} rows name none."
        )
    for name, spec in specs.items():
        if facts.unknown[name] and spec.unknown != "suppress":
            values = set_aside(name)
            where = f"they are listed in {listed_in}"
            rule = outside_hierarchy(name, spec.hierarchy, values, facts.unknown[name], where)
            raise HierarchyError([rule])
