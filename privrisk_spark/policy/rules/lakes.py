"""Rules of where a table is, and of a lake table, that take several keys together."""

from __future__ import annotations

from collections.abc import Iterable

from privrisk_spark.errors import Fault
from privrisk_spark.policy.csv_dialect import find_csv_faults
from privrisk_spark.policy.dictionaries import Table
from privrisk_spark.policy.policy import LakeOutput, Output, Policy
from privrisk_spark.storage.lakes.snapshot import Form

_NO_NAME: dict[Form, tuple[str, str]] = {
    "delta": (" ,;{}()\n\t=", "no spaces, tabs or line ends, and none of ,;{}()="),
    "iceberg": (".", "no dots, which stand for fields in fields"),
}
"""What no name of a column holds in a Delta table without column mapping, and in an Iceberg table."""


def find_table_faults(key: str, table: Table) -> Iterable[Fault]:
    """Yield what does not go together in what says where a table is and how it is written.

    Parameters
    ----------
    key : str
        Of the policy.
    """
    if (table.path is None) == (table.catalog is None):
        got = "none of them" if table.path is None else "both"
        yield Fault(f"{key}.path", f"give exactly one of {key}.path and {key}.catalog. Got {got}")
    if table.catalog is not None and table.options:
        yield Fault(f"{key}.options", f"is only used with {key}.path; leave it out with {key}.catalog")
    elif table.format.lower() == "csv":
        yield from find_csv_faults(table.option_texts, f"{key}.options")
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
    output : Output
        Of the policy.
    """
    if output.lake is None:
        return
    yield from _where(policy, output.lake)
    if output.format != "parquet":
        yield Fault("output.lake", f"takes Parquet files only; write output.format: parquet. Got '{output.format}'")
    a = "a Delta" if output.lake.format == "delta" else "an Iceberg"
    marks, allowed = _NO_NAME[output.lake.format]
    before: dict[str, str] = {}
    named = [(f"columns.{name}", name) for name in dict.fromkeys((*policy.quasi_identifiers, *policy.kept_columns))]
    if output.lake.date_column is not None:
        named.append(("output.lake.date_column", output.lake.date_column))
    for key, name in named:
        other = before.setdefault(name.casefold(), key)
        if other != key:
            yield Fault(
                key, f"is the name of {other} to {a} table (output.lake), whose readers know no upper and lower case"
            )
        if any(mark in name for mark in marks):
            yield Fault(key, f"is no name of {a} table's column (output.lake): {allowed}")


def _where(policy: Policy, lake: LakeOutput) -> Iterable[Fault]:
    """Yield what does not say which table it is."""
    key = "output.lake.catalog"
    if lake.format == "delta":
        if lake.catalog is not None:
            yield Fault(key, "is only used with output.lake.format: iceberg; give output.lake.path. Got 'delta'")
        if lake.path is None:
            yield Fault("output.lake.path", "is required with output.lake.format: delta: the directory of the table")
        return
    if lake.path is not None:
        yield Fault(
            "output.lake.path",
            "is not used by the format 'iceberg': of a table that a path alone names two writers could lose each "
            f"other's commits. Give {key}: catalog.namespace.table, of a catalog of pyiceberg's configuration",
        )
    parts = [] if lake.catalog is None else lake.catalog.split(".")
    if lake.path is None and (len(parts) < 3 or not all(parts)):
        got = "nothing" if lake.catalog is None else f"'{lake.catalog}'"
        yield Fault(key, f"must be catalog.namespace.table of pyiceberg's configuration. Got {got}")
    read = [("table", policy.table), *((one.key, one.table) for one in policy.dictionaries)]
    for other, table in (*read, ("linkage", policy.linkage)):
        if table is not None and table.lake == "iceberg" and table.catalog == lake.catalog is not None:
            yield Fault(key, f"must not be {other}.catalog: a run never writes onto its input")
