"""Rules of a lake table that take several keys together."""

from __future__ import annotations

from collections.abc import Iterable

from privrisk_spark.errors import Fault
from privrisk_spark.policy.dictionaries import Table
from privrisk_spark.policy.policy import Output, Policy

_NO_NAME = " ,;{}()\n\t="
"""What no name of a column holds in a Delta table without column mapping."""


def lake_faults(key: str, table: Table) -> Iterable[Fault]:
    """Yield what does not go together in what says where a table is.

    Parameters
    ----------
    key : str
        Of the policy.
    table : Table
    """
    for name, form, number in (("version", "delta", table.version), ("snapshot", "iceberg", table.snapshot)):
        if number is not None and table.lake != form:
            yield Fault(f"{key}.{name}", f"is only used with {key}.format: {form}. Got '{table.format}'")
        if number is not None and table.timestamp is not None:
            yield Fault(f"{key}.timestamp", f"says which version is read, and so does {key}.{name}; give one of them")
    if table.lake is None:
        if table.timestamp is not None:
            yield Fault(f"{key}.timestamp", f"is only used with {key}.format: delta or iceberg. Got '{table.format}'")
        return
    if table.path is not None and table.options:
        yield Fault(f"{key}.options", f"is not used by the format '{table.lake}'; leave it out")
    if table.catalog is not None and table.lake == "delta":
        yield Fault(
            f"{key}.catalog",
            f"goes without {key}.format for a table of Spark's catalog, which Spark's own connector reads; give "
            f"{key}.path to read a Delta table by its log",
        )
    if table.catalog is not None and table.lake == "iceberg" and "." not in table.catalog:
        yield Fault(
            f"{key}.catalog",
            f"must be catalog.namespace.table of pyiceberg's configuration with {key}.format: iceberg. "
            f"Got '{table.catalog}'",
        )


def impossible_lake(policy: Policy, output: Output) -> Iterable[Fault]:
    """Yield what a release cannot be committed to a table for.

    Parameters
    ----------
    policy : Policy
    output : Output
        Of the policy.
    """
    if output.lake is None:
        return
    if output.format != "parquet":
        yield Fault("output.lake", f"takes Parquet files only; write output.format: parquet. Got '{output.format}'")
    before: dict[str, str] = {}
    named = [(f"columns.{name}", name) for name in (*policy.quasi_identifiers, *policy.kept_columns)]
    if output.lake.date_column is not None:
        named.append(("output.lake.date_column", output.lake.date_column))
    for key, name in named:
        other = before.setdefault(name.casefold(), key)
        if other != key:
            yield Fault(
                key, f"is the name of {other} to a Delta table (output.lake), which knows no upper and lower case"
            )
        if any(mark in name for mark in _NO_NAME):
            yield Fault(
                key,
                "is no name of a Delta table's column (output.lake): no spaces, tabs or line ends, and none of ,;{}()=",
            )
