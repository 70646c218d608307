"""Values outside a hierarchy: refused, and listed in the vault alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses

from privrisk_spark.engine.batches import Scratch
from privrisk_spark.engine.value_codes import ValueCodes
from privrisk_spark.errors import Fault, HierarchyError, SchemaError
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.hierarchies.text import Builder
from privrisk_spark.policy.policy import Policy
from privrisk_spark.results.facts import InputFacts
from privrisk_spark.stages.tables.coverage import Held, strangers
from privrisk_spark.stages.tables.encode import MOST_WEIGHT


def write_unknown_values(scratch: Scratch, table: DataFrame, name: str, hierarchy: Hierarchy) -> tuple[Path, int]:
    """List the values of a column that are outside its hierarchy, with their row counts.

    Returns
    -------
    Path
        A directory of the driver: what workers write for themselves would stay where they are.
    int
        How many there are.
    """
    from privrisk_spark.engine.csv_tables import write_csv

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
    name : str
    rows : int
        Without a value.
    """
    rule = f"missing values are forbidden and {rows:,} rows have one; mend the table or choose"
    return Fault(f"columns.{name}.nulls", f"{rule} 'suppress', 'own-value' or 'wildcard'")


def outside_hierarchy(name: str, hierarchy: Builder, values: int, rows: int, where: str) -> Fault:
    """Fault of a column with values outside its hierarchy.

    Parameters
    ----------
    name : str
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
    policy : Policy
    facts : InputFacts
    set_aside : callable
        Lists an attribute's values outside its hierarchy in the vault and returns how many there are.
    listed_in : Path or str

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
