"""Hierarchies held against a table by themselves: which of its values they do not hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from privrisk_spark.engine.value_codes import ValueCodes
from privrisk_spark.errors import Fault, SchemaError, listing, nearest
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.json_values import JsonDocument
from privrisk_spark.planning.lakes import pin_tables
from privrisk_spark.planning.readings import readings_of
from privrisk_spark.policy.policy import Policy
from privrisk_spark.results.validation import Coverage
from privrisk_spark.tables.coverage import Held, collect_coverage, collect_strangers_of
from privrisk_spark.tables.opening import collect_hierarchies, read, readable
from privrisk_spark.tables.tidying import tidied

MOST_VALUES = 20
"""Values of a column that are shown, the most frequent ones."""


@dataclass(frozen=True, eq=False)
class Checked(JsonDocument):
    """A hierarchy, and the table's column beside it.

    Attributes
    ----------
    suppressed : bool
        Whether the policy suppresses values that are outside.
    values : tuple of (str, int)
        Values that are outside with their rows, the most frequent ones, if somebody asked: they are values of records.
    """

    hierarchy: Hierarchy
    coverage: Coverage
    suppressed: bool
    values: tuple[tuple[str, int], ...] = ()

    json_keys = (
        "passed", "rows:coverage.rows", "missing:coverage.missing", "outside_rows:coverage.outside_rows",
        "outside_values:coverage.outside_values", "values:rows_of_values",
    )  # fmt: skip

    @property
    def rows_of_values(self) -> list[dict[str, str | int]]:
        """The values outside and their rows, by name."""
        return [{"value": value, "rows": rows} for value, rows in self.values]

    @property
    def passed(self) -> bool:
        """Whether a run would accept the column's values."""
        return self.suppressed or not self.coverage.outside_rows


def open_hierarchies(
    spark: SparkSession, policy: Policy, columns: list[str], *, table: DataFrame | None = None
) -> tuple[DataFrame, dict[str, Hierarchy]]:
    """Open the table, and build the hierarchies of some of its quasi-identifiers.

    Parameters
    ----------
    columns : list of str
        Quasi-identifiers.
    table : DataFrame, optional
        Of the same session; instead of the policy's table.

    Raises
    ------
    SchemaError, HierarchyError
        If a column is not there, or a hierarchy cannot be built.
    """
    policy = pin_tables(policy, ("table",), given=table is not None).policy
    return _opened(spark, policy, columns, table)


def _opened(
    spark: SparkSession, policy: Policy, columns: list[str], table: DataFrame | None
) -> tuple[DataFrame, dict[str, Hierarchy]]:
    source = read(spark, policy.table, key="table", used=columns) if table is None else table
    rows = tidied(source, readings_of(policy)).rows
    there = readable(rows, policy)
    faults = [
        Fault(
            f"columns.{name}",
            "the table has no such column of texts, numbers, booleans or dates"
            f"{nearest(name, rows.columns)}; it has {listing(rows.columns)}",
        )
        for name in columns
        if name not in there
    ]
    if faults:
        raise SchemaError(faults)
    wanted = {name: policy.quasi_identifiers[name] for name in columns}
    narrowed = policy.model_copy(update={"columns": wanted})
    return rows, collect_hierarchies(narrowed, rows, given=table is not None)


def check_hierarchies(
    spark: SparkSession, policy: Policy, columns: list[str], *, table: DataFrame | None = None, values: bool = False
) -> Mapping[str, Checked]:
    """Hold hierarchies against the table.

    Parameters
    ----------
    spark, policy, columns, table
        As :func:`open_hierarchies` takes them.
    values : bool
        Show values of records that are outside.
    """
    policy = pin_tables(policy, ("table",), given=table is not None).policy
    rows, hierarchies = _opened(spark, policy, columns, table)
    source = None if table is not None else policy.table
    held = {name: Held(name, ValueCodes.of_leaves(one)) for name, one in hierarchies.items()}
    found = {}
    for name, coverage in collect_coverage(source, rows, held).items():
        shown: list[tuple[str, int]] = []
        if values and coverage.outside_values:
            shown = collect_strangers_of(source, rows, name, held[name], most=MOST_VALUES)
        suppressed = policy.quasi_identifiers[name].unknown == "suppress"
        found[name] = Checked(hierarchies[name], coverage, suppressed, tuple(shown))
    return found
