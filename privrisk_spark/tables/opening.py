"""Opening tables and dictionaries, checking their columns, and the hierarchies and mappings that read them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812

from privrisk_spark.engine.batches import find_batches
from privrisk_spark.engine.embedded import is_embedded
from privrisk_spark.engine.failures import list_spark_errors
from privrisk_spark.engine.settings import whole_rows, whole_rows_if_parsed
from privrisk_spark.errors import EngineError, Fault, HierarchyError, MissingError, SchemaError, listing, nearest
from privrisk_spark.hierarchies.builders import build, is_public
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.planning.dictionaries import entry_of, leaf_columns
from privrisk_spark.planning.readings import readings_of, readings_of_dictionary
from privrisk_spark.policy.csv_dialect import parse_csv_dialect
from privrisk_spark.policy.dictionaries import DictionaryTable, Table
from privrisk_spark.policy.policy import Insensitive, Policy
from privrisk_spark.policy.secrets import without_credentials
from privrisk_spark.tables import sources
from privrisk_spark.tables.coverage import LeafSource, collect_distinct_values, warn_of_mismatch
from privrisk_spark.tables.parquet_tables import parquet_frame
from privrisk_spark.tables.row_groups import lake_frame
from privrisk_spark.tables.source_files import (
    check_files,
    check_for_embedded,
    find_unusual_columns,
    is_csv_by_tasks,
    local_files,
    path_for_spark,
    refuse_java_directory,
    refuse_others,
)
from privrisk_spark.tables.tidying import OpenTable, tidied

_TEXT_TYPES = (
    T.StringType, T.BooleanType, T.IntegralType, T.DecimalType, T.FractionalType, T.DateType, T.CharType, T.VarcharType
)  # fmt: skip

_ROW_INDEX = "_tmp_metadata_row_index"  # by which Spark's reader of Parquet asks for the number of each row
_SELF_DESCRIBING = ("parquet", "orc", "delta", "iceberg")
"""Providers of tables of a catalog whose rows are told apart by their format and not by what they hold."""


def read(
    spark: SparkSession,
    table: Table,
    *,
    key: str,
    columns: Collection[str] | None = None,
    used: Collection[str] | None = None,
    private: bool = False,
) -> DataFrame:
    """Open a table; only its schema is read.

    Parameters
    ----------
    table : Table
        Path and format, or catalog name.
    key : {"table", "dictionary"}
        Key of the policy, for messages.
    columns : collection of str, optional
        Those that are looked at, which no file may lack; all by default.
    used : collection of str, optional
        Columns of Parquet whose type must be readable; by default those of ``columns``.
    private : bool
        Whether how the run ends must not depend on one of its rows: limits of the reader are then put out of reach.

    Raises
    ------
    SchemaError
        If Spark cannot open it.
    """
    if table.lake is not None:
        if table.pinned is None:
            raise EngineError(f"{key}: the version of the table was not chosen before it is read; run again.")
        return lake_frame(spark, table.pinned)
    named = table.catalog or without_credentials(table.path or "")
    where = f"{key}.{'catalog' if table.catalog else 'path'}: '{named}'"
    files = check_files(table, key=key, columns=columns)
    frame: DataFrame | None = None
    by_tasks = is_embedded(spark) and check_for_embedded(table, key=key)
    try:
        if table.catalog:
            if private:
                _refuse_parsed_texts(spark, table.catalog, where)
            frame = whole_rows_if_parsed(spark.table(table.catalog))
        elif is_csv_by_tasks(table):
            from privrisk_spark.tables.csv_rows import read_csv_table

            by_tasks = True
            frame = read_csv_table(spark, table, key=key, private=private)
        elif table.format.lower() == "parquet":
            frame = parquet_frame(spark, table, key=key, used=columns if used is None else used)
            by_tasks |= frame is not None and find_batches(frame) is not None
        if frame is None:
            options = table.option_texts
            if table.format.lower() == "csv":
                options = _find_options_of_spark(table, key, where, private=private)
            frame = spark.read.format(table.format).options(**options).load(path_for_spark(spark, table))
            if any(name.lower() == "mode" and value.lower() != "permissive" for name, value in options.items()):
                frame = whole_rows(frame)
        frame.schema  # noqa: B018 - a lazy reader fails here
    except list_spark_errors() as error:
        condition = _condition(error)
        what = f"Spark says {condition}"
        unusual = find_unusual_columns(table)
        what += f" of {listing(unusual)}" if unusual else ""
        if unusual or condition == "PARQUET_TYPE_ILLEGAL":
            what += ". Fix: give the table's path without options, for tasks to read"
        what = "there is nothing there" if condition == "PATH_NOT_FOUND" else what
        scheme = (table.path or "").partition("://")
        if scheme[1] and scheme[0] != "file" and not condition.isupper():  # Java's own, of a file system
            what = (
                f"Spark reaches no file system '{scheme[0]}://' ({condition}). It needs the file system's package and "
                "settings (such as spark.jars.packages), or copy the files to a mounted path"
            )
        how = "" if table.catalog else f" as {table.format}"
        kind = MissingError if condition in ("PATH_NOT_FOUND", "TABLE_OR_VIEW_NOT_FOUND") else SchemaError
        raise kind(f"{where} cannot be read{how}: {what}.") from None
    if _ROW_INDEX in frame.columns:
        raise SchemaError(f"{where} has the column '{_ROW_INDEX}', a name that Spark keeps for itself. Rename it.")
    if files is not None and not by_tasks:
        refuse_others(files, frame.inputFiles(), table=table, key=key)
    elif not by_tasks and table.catalog is None and not local_files(table):
        refuse_java_directory(frame.inputFiles(), table=table, key=key)
    return frame


def _find_options_of_spark(table: Table, key: str, where: str, *, private: bool) -> dict[str, str]:
    """Return the options for Spark's own reader of CSV, which reads from places that only Spark reaches."""
    dialect = parse_csv_dialect(table.option_texts, f"{key}.options")
    if private or dialect.skip_rows:
        what = "under dp" if private else "with skipRows"
        raise SchemaError(
            f"{where} is read by Spark only, which is refused {what}. Fix: copy the files, or write Parquet."
        )
    return dialect.spark_options


def _refuse_parsed_texts(spark: SparkSession, name: str, where: str) -> None:
    """Refuse a table of a catalog that is parsed from texts by options nobody looked at."""
    provider = sources.catalog_properties(spark, name).get("Provider", "").lower()
    if provider and provider not in _SELF_DESCRIBING:  # a view has none, and its rows are those it says
        raise SchemaError(
            f"{where} is a table of the format {provider}, which is refused under dp: one of its lines may be many "
            f"rows or none, by options of the catalog. Convert it to one of {listing(_SELF_DESCRIBING)}, or give its "
            "path."
        )


def open_table(spark: SparkSession, policy: Policy, given: DataFrame | None = None) -> OpenTable:
    """Open the policy's table, or take what is given instead of it, and tidy its values; only its schema is read.

    Parameters
    ----------
    given : DataFrame, optional
        Held against the policy's columns all the same.

    Raises
    ------
    SchemaError
        If it cannot be opened, or its columns are not those of the policy.
    """
    if given is None:
        private = policy.guarantee.private
        given = read(spark, policy.table, key="table", used=policy.used_columns, private=private)
    opened = tidied(given, readings_of(policy))
    check_columns(opened.rows, policy)
    return opened


def open_dictionary(spark: SparkSession, dictionary: DictionaryTable, *, key: str = "dictionary") -> OpenTable:
    """Open a dictionary of the policy, and tidy its values; only its schema is read.

    Raises
    ------
    SchemaError
        If it cannot be opened, or lacks a mapped column.
    """
    entries = [entry_of(given) for given in dictionary.columns.values()]
    columns = {entry.column for entry in entries if entry is not None}
    columns |= {name for name in (dictionary.weight, dictionary.entity_id) if name is not None}
    frame = read(spark, dictionary, key=key, columns=columns)
    check_dictionary(frame, dictionary, key=key)
    return tidied(frame, readings_of_dictionary(dictionary, key=key))


def _condition(error: Exception) -> str:
    """Name of Spark's error condition, without the message, which may quote data."""
    if isinstance(error, PySparkException) and error.getCondition():
        return str(error.getCondition())
    # Classic sessions hand some failures of a data source over as they are in Java.
    found = re.search(r"\[([A-Z][A-Z0-9_.]+)\]", str(error))
    return found.group(1) if found else type(error).__name__


def check_columns(frame: DataFrame, policy: Policy) -> None:
    """Refuse a table whose columns are not exactly those the policy gives a role, or have an unusable type.

    Raises
    ------
    SchemaError
        Naming every such column at once.
    """
    faults = []
    there = frame.columns
    if not there:
        raise SchemaError("table: it has no columns; its files are empty, or of another format than table.format says.")
    # A name that stands on both sides is meant as it stands, and is no misspelling of another.
    free = [name for name in there if name not in policy.columns]
    missing = [name for name in policy.columns if name not in there]
    roles = policy.columns.items()
    unused = [name for name, of in roles if name in there and isinstance(of, Insensitive) and of.action == "drop"]
    for name in missing:
        hint = nearest(name, [*free, *unused])
        faults.append(Fault(f"columns.{name}", f"the table has no such column{hint}; it has {listing(there)}"))
    for name in free:
        rule = (
            f"the table's column '{name}' has no role{nearest(name, missing)}; give it one, such as "
            f"{name}: {{role: insensitive, action: drop}} to leave it out"
        )
        faults.append(Fault("columns", rule))
    for name in sorted({name for name in there if there.count(name) > 1}):
        rule = f"the table has {there.count(name)} columns of this name; rename all but one"
        faults.append(Fault(f"columns.{name}", rule))
    kinds = {field.name: field.dataType for field in frame.schema.fields}
    for name in policy.quasi_identifiers:
        if name in kinds and not isinstance(kinds[name], _TEXT_TYPES):
            times = isinstance(kinds[name], T.TimestampType | T.TimestampNTZType)
            way = f"; set columns.{name}.read: {{cast: date}} to take their days" if times else ""
            rule = (
                f"a quasi-identifier must hold texts, numbers, booleans or dates, not {kinds[name].simpleString()}{way}"
            )
            faults.append(Fault(f"columns.{name}", rule))
    nested = policy.output is None or policy.output.format != "csv"
    for name in policy.kept_columns:
        if name in kinds and not _releasable(kinds[name], nested=nested):
            simple = "texts, numbers, booleans, dates or times"
            allowed = f"{simple}, binary or nested values of these" if nested else f"{simple} in a csv release"
            rule = f"a released column must hold {allowed}, not {kinds[name].simpleString()}"
            faults.append(Fault(f"columns.{name}", rule))
    for name in set(kinds) & {policy.table.record_id, policy.table.entity_id}:
        if not _releasable(kinds[name], nested=False):
            faults.append(Fault(f"columns.{name}", f"an id must be text or number, not {kinds[name].simpleString()}"))
    for name in policy.weight_columns:
        if name in kinds and not isinstance(kinds[name], T.NumericType | T.StringType):
            faults.append(Fault(f"columns.{name}", f"a weight must be a number, not {kinds[name].simpleString()}"))
    if faults:
        raise SchemaError(faults)


def readable(frame: DataFrame, policy: Policy) -> list[str]:
    """Return the quasi-identifiers that a table holds as what :func:`check_columns` asks for, in their order.

    Parameters
    ----------
    frame : DataFrame
        Whose columns may have faults.
    """
    kinds = {field.name: field.dataType for field in frame.schema.fields if frame.columns.count(field.name) == 1}
    return [name for name in policy.quasi_identifiers if isinstance(kinds.get(name), _TEXT_TYPES)]


def _releasable(kind: T.DataType, *, nested: bool) -> bool:
    """Whether a column of the type can be put in order, hashed and written; maps, variants and intervals cannot."""
    if isinstance(kind, T.ArrayType):
        return nested and _releasable(kind.elementType, nested=nested)
    if isinstance(kind, T.StructType):
        return nested and all(_releasable(field.dataType, nested=nested) for field in kind.fields)
    if isinstance(kind, T.BinaryType):
        return nested
    return isinstance(kind, (*_TEXT_TYPES, T.TimestampType, T.TimestampNTZType))


def hierarchies_from_policy(
    policy: Policy, faults: list[Fault] | None = None, *, numbers: Collection[str] = ()
) -> dict[str, Hierarchy | None]:
    """Build the hierarchies that need no data; None for one whose leaves come from the data.

    Parameters
    ----------
    faults : list of Fault, optional
        Takes those of hierarchies that cannot be built, which are left out then.
    numbers : collection of str
        Columns that hold numbers or booleans.

    Raises
    ------
    HierarchyError
        Naming every hierarchy that cannot be built, unless there is a list to take them.
    """
    found: dict[str, Hierarchy | None] = {}
    told: list[Fault] = [] if faults is None else faults
    for name, spec in policy.quasi_identifiers.items():
        if not is_public(spec.hierarchy):
            found[name] = None
            continue
        with _faults_in(told, name):
            found[name] = build(spec.hierarchy, name, null_leaf=spec.nulls == "own-value", numbers=name in numbers)
    if faults is None and told:
        raise HierarchyError(told)
    return found


@contextmanager
def _faults_in(faults: list[Fault], name: str) -> Iterator[None]:
    """Put what is wrong with the hierarchy of a column among the faults, by its key."""
    try:
        yield
    except HierarchyError as error:
        faults += [Fault(fault.path or f"columns.{name}.hierarchy", fault.rule) for fault in error.faults]


def collect_hierarchies(
    policy: Policy,
    table: DataFrame | None,
    dictionaries: Sequence[tuple[DictionaryTable, DataFrame]] | None = None,
    *,
    given: bool = True,
    faults: list[Fault] | None = None,
) -> dict[str, Hierarchy]:
    """Build the hierarchy of every quasi-identifier, reading distinct values where the policy declares no domain.

    Parameters
    ----------
    table : DataFrame or None
        None where every leaf is declared.
    dictionaries : sequence of (DictionaryTable, DataFrame), optional
        As the policy names them.
    given : bool
        Whether a caller gave the frame instead of the policy's table; then it is read by Spark alone.
    faults : list of Fault, optional
        Takes those of hierarchies that cannot be built, which are left out then.

    Raises
    ------
    HierarchyError
        Naming every hierarchy that cannot be built, unless there is a list to take them.
    """
    told: list[Fault] = [] if faults is None else faults
    sources = []
    if table is not None:
        columns = {name: name for name in policy.quasi_identifiers if name in table.columns}
        sources.append(LeafSource(None if given else policy.table, table, columns))
    for dictionary, frame in dictionaries or ():
        columns = {name: of for name, of in leaf_columns(dictionary).items() if name in policy.quasi_identifiers}
        sources.append(LeafSource(dictionary, frame, columns))
    numbers = {name for source in sources for name in source.columns if source.is_spelled(name)}
    ready = hierarchies_from_policy(policy, told, numbers=numbers)
    open_names = [name for name, hierarchy in ready.items() if hierarchy is None]
    found = collect_distinct_values([source.narrow(open_names) for source in sources]) if open_names else []
    values = {name: set().union(*(of.get(name, ()) for of in found)) for name in open_names}
    if table is not None:
        for (dictionary, _), of in zip(dictionaries or (), found[1:], strict=False):
            key = next((one.key for one in policy.dictionaries if one.table is dictionary), "dictionary")
            for name in of:
                warn_of_mismatch(f"{key}.columns.{name}", found[0].get(name, set()), of[name], name in numbers)
    built = {}
    for name, hierarchy in ready.items():
        if hierarchy is not None:
            built[name] = hierarchy
            continue
        spec = policy.quasi_identifiers[name]
        rule, null = spec.hierarchy, spec.nulls == "own-value"
        with _faults_in(told, name):
            built[name] = build(rule, name, values=values.get(name, []), null_leaf=null, numbers=name in numbers)
    if faults is None and told:
        raise HierarchyError(told)
    return built


def check_dictionary(frame: DataFrame, dictionary: DictionaryTable, *, key: str = "dictionary") -> None:
    """Refuse a dictionary that lacks a mapped column.

    Raises
    ------
    SchemaError
        Naming every such column.
    """
    there = frame.columns
    faults = []
    named = {entry.column for entry in map(entry_of, dictionary.columns.values()) if entry is not None}
    free = [name for name in there if name not in named]
    for name, given in dictionary.columns.items():
        entry = entry_of(given)
        if entry is not None and entry.column not in there:
            hint = nearest(entry.column, free)
            rule = f"the dictionary has no column '{entry.column}'{hint}; it has {listing(there)}"
            faults.append(Fault(f"{key}.columns.{name}", rule))
    for option, column in (("weight", dictionary.weight), ("entity_id", dictionary.entity_id)):
        if column is not None and column not in there:
            hint = nearest(column, there)
            rule = f"the dictionary has no column '{column}'{hint}; it has {listing(there)}"
            faults.append(Fault(f"{key}.{option}", rule))
    if faults:
        raise SchemaError(faults)
