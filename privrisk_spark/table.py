"""Reading: the only place that sees foreign types, missing values and values outside a hierarchy.

Columns become texts once, texts become integer codes once; every later stage gets ENCODED.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses
from pyspark.sql import types as T  # noqa: N812

from privrisk_spark import schemas
from privrisk_spark.builders import build, is_public
from privrisk_spark.errors import HierarchyError, SchemaError, listing, nearest
from privrisk_spark.hierarchy import Hierarchy
from privrisk_spark.policy import DictionaryColumn, Policy, QuasiIdentifier, Table, TableDictionary

try:
    from py4j.protocol import Py4JJavaError
except ImportError:  # the client of Spark Connect has no py4j, and raises PySparkException only
    Py4JJavaError = PySparkException

MAX_LEAVES = 2_000_000
"""Most distinct values a hierarchy may take from the data."""

_TEXT_TYPES = (
    T.StringType,
    T.BooleanType,
    T.IntegralType,
    T.DecimalType,
    T.FractionalType,
    T.DateType,
    T.CharType,
    T.VarcharType,
)


def column(name: str) -> Column:
    """Return a column by its exact name, dots and backticks included."""
    quoted = name.replace("`", "``")
    return F.col(f"`{quoted}`")


def read(spark: SparkSession, table: Table, *, key: str) -> DataFrame:
    """Open a table; only its schema is read.

    Parameters
    ----------
    spark : SparkSession
    table : Table
        Path and format, or catalog name.
    key : {"table", "dictionary"}
        Key of the policy, for messages.

    Raises
    ------
    SchemaError
        If Spark cannot open it.
    """
    where = f"{key}.catalog: '{table.catalog}'" if table.catalog else f"{key}.path: '{table.path}'"
    try:
        if table.catalog:
            return spark.table(table.catalog)
        options = {name: str(value) for name, value in table.options.items()}
        frame = spark.read.format(table.format).options(**options).load(table.path)
        frame.schema  # noqa: B018 - a lazy reader fails here
    except (PySparkException, Py4JJavaError) as error:
        condition = _condition(error)
        what = "there is nothing there" if condition == "PATH_NOT_FOUND" else f"Spark says {condition}"
        how = "" if table.catalog else f" as {table.format}"
        raise SchemaError(f"{where} cannot be read{how}: {what}.") from None
    return frame


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
    for name in policy.columns:
        if name not in there:
            faults.append(
                f"columns.{name}: the table has no such column{nearest(name, there)}; it has {listing(there)}."
            )
    for name in there:
        if name not in policy.columns:
            faults.append(
                f"columns: the table's column '{name}' has no role{nearest(name, list(policy.columns))}; "
                "give it one (action: drop leaves it out)."
            )
    kinds = {field.name: field.dataType for field in frame.schema.fields}
    for name in policy.quasi_identifiers:
        if name in kinds and not isinstance(kinds[name], _TEXT_TYPES):
            faults.append(
                f"columns.{name}: a quasi-identifier must hold texts, numbers, booleans or dates, "
                f"not {kinds[name].simpleString()}."
            )
    nested = policy.output.format != "csv"
    for name in policy.kept_columns:
        if name in kinds and not _releasable(kinds[name], nested=nested):
            simple = "texts, numbers, booleans, dates or times"
            allowed = f"{simple}, binary or nested values of these" if nested else f"{simple} in a csv release"
            faults.append(f"columns.{name}: a released column must hold {allowed}, not {kinds[name].simpleString()}.")
    for name in policy.weight_columns:
        if name in kinds and not isinstance(kinds[name], T.NumericType | T.StringType):
            faults.append(f"columns.{name}: a weight must be a number, not {kinds[name].simpleString()}.")
    if faults:
        raise SchemaError(" | ".join(faults))


def _releasable(kind: T.DataType, *, nested: bool) -> bool:
    """Whether a column of the type can be put in order, hashed and written; maps, variants and intervals cannot."""
    if isinstance(kind, T.ArrayType):
        return nested and _releasable(kind.elementType, nested=nested)
    if isinstance(kind, T.StructType):
        return nested and all(_releasable(field.dataType, nested=nested) for field in kind.fields)
    if isinstance(kind, T.BinaryType):
        return nested
    return isinstance(kind, (*_TEXT_TYPES, T.TimestampType, T.TimestampNTZType))


def text(frame: DataFrame, name: str) -> Column:
    """Text of a column, the form hierarchies are written in; NaN is missing."""
    value = column(name)
    as_text = value.cast("string")
    if isinstance(frame.schema[name].dataType, T.FloatType | T.DoubleType):
        return F.when(~F.isnan(value), as_text)
    return as_text


@dataclass(frozen=True)
class DictionaryMapping:
    """How a quasi-identifier's values appear in the dictionary.

    Attributes
    ----------
    column : str
        Column of the dictionary.
    nodes : dict of str to int
        Dictionary value to node.
    """

    column: str
    nodes: dict[str, int]


def collect_distinct_values(frames: Sequence[tuple[DataFrame, Mapping[str, str]]]) -> dict[str, list[str]]:
    """Collect the distinct values of columns whose hierarchies take their leaves from the data; one scan a frame.

    Parameters
    ----------
    frames : sequence of (DataFrame, mapping of attribute to column)

    Returns
    -------
    dict of attribute to its distinct non-missing texts

    Raises
    ------
    HierarchyError
        If an attribute has more than :data:`MAX_LEAVES`.
    """
    found: dict[str, set[str]] = {}
    for frame, columns in frames:
        attributes = list(columns)
        if not attributes:
            continue
        pairs = F.array(
            *[
                F.struct(F.lit(i).alias("attribute"), text(frame, columns[name]).alias("value"))
                for i, name in enumerate(attributes)
            ]
        )
        values = (
            frame.select(F.explode(pairs).alias("pair")).select("pair.*").where(F.col("value").isNotNull()).distinct()
        )
        table = values.limit(len(attributes) * MAX_LEAVES + 1).toArrow()
        position = table.column("attribute").to_numpy()
        texts = table.column("value").to_pandas().to_numpy()
        for i, name in enumerate(attributes):
            found.setdefault(name, set()).update(texts[position == i])
    for name, values_of in found.items():
        if len(values_of) > MAX_LEAVES:
            raise HierarchyError(
                f"columns.{name}.hierarchy: its leaves come from the data, which holds more than {MAX_LEAVES:,} "
                "distinct values; give a domain, or round the column first."
            )
    return {name: sorted(values_of) for name, values_of in found.items()}


def hierarchies_from_policy(policy: Policy) -> dict[str, Hierarchy | None]:
    """Build the hierarchies that need no data; None for one whose leaves come from the data."""
    return {
        name: build(spec.hierarchy, name, values=None, null_leaf=spec.nulls == "own-value")
        if is_public(spec.hierarchy)
        else None
        for name, spec in policy.quasi_identifiers.items()
    }


def collect_hierarchies(policy: Policy, table: DataFrame, dictionary: DataFrame | None) -> dict[str, Hierarchy]:
    """Build the hierarchy of every quasi-identifier, reading distinct values where the policy declares no domain."""
    ready = hierarchies_from_policy(policy)
    open_names = [name for name, hierarchy in ready.items() if hierarchy is None]
    sources: list[tuple[DataFrame, Mapping[str, str]]] = [(table, {name: name for name in open_names})]
    if dictionary is not None and isinstance(policy.dictionary, TableDictionary):
        leaf_columns = {}
        for name in open_names:
            entry = _entry(policy.dictionary.columns.get(name))
            if entry is not None and entry.level in (None, 0) and entry.age_in is None and entry.mapping is None:
                leaf_columns[name] = entry.column
        sources.append((dictionary, leaf_columns))
    values = collect_distinct_values(sources) if open_names else {}
    built = {}
    for name, spec in policy.quasi_identifiers.items():
        hierarchy = ready[name]
        if hierarchy is None:
            hierarchy = build(spec.hierarchy, name, values=values.get(name, []), null_leaf=spec.nulls == "own-value")
        built[name] = hierarchy
    return built


def _entry(given: str | DictionaryColumn | None) -> DictionaryColumn | None:
    return DictionaryColumn(column=given) if isinstance(given, str) else given


def map_dictionary(
    dictionary: TableDictionary, hierarchies: Mapping[str, Hierarchy]
) -> dict[str, DictionaryMapping | None]:
    """Resolve each dictionary column to nodes; None for an attribute the dictionary lacks.

    Raises
    ------
    HierarchyError
        If a mapping file or a level cannot be used.
    """
    result: dict[str, DictionaryMapping | None] = {}
    for name, hierarchy in hierarchies.items():
        entry = _entry(dictionary.columns.get(name))
        result[name] = (
            None if entry is None else DictionaryMapping(entry.column, _node_of_value(name, hierarchy, entry))
        )
    return result


def _node_of_value(name: str, hierarchy: Hierarchy, entry: DictionaryColumn) -> dict[str, int]:
    key = f"dictionary.columns.{name}"
    level = entry.level or 0
    if level > hierarchy.height:
        raise HierarchyError(
            f"{key}.level: must be at most {hierarchy.height}, the height of the hierarchy. Got {level}."
        )
    if entry.mapping is not None:
        return {value: hierarchy.find(label, level=entry.level) for value, label in _read_mapping(key, entry.mapping)}
    at_level = [int(node) for node in hierarchy.nodes_at_level(level) if hierarchy.labels[int(node)] is not None]
    # The root's label is how a suppressed value is written, whatever level the other values have.
    by_label = {str(hierarchy.labels[hierarchy.root]): hierarchy.root}
    for node in (node for node in at_level if node != hierarchy.root):
        label = str(hierarchy.labels[node])
        if label in by_label:
            raise HierarchyError(
                f"{key}.level: {_shown(hierarchy, label)} names several nodes at level {level}; use a mapping or "
                "another level."
            )
        by_label[label] = node
    if entry.age_in is None:
        return by_label
    ages = {}
    for label, node in by_label.items():
        if node == hierarchy.root:
            ages[label] = node
            continue
        if not label.isdecimal():
            raise HierarchyError(
                f"{key}.age_in: the labels at level {level} must be years, and {_shown(hierarchy, label)} is none."
            )
        if int(label) <= entry.age_in:
            ages[str(entry.age_in - int(label))] = node
    return ages


def _shown(hierarchy: Hierarchy, label: str) -> str:
    """Name a label only where it comes from the policy, not from records."""
    return f"the label '{label}'" if hierarchy.public else "a label"


def _read_mapping(key: str, path: str) -> list[tuple[str, str]]:
    try:
        with open(path, encoding="utf-8-sig", newline="") as stream:
            rows = [row for row in csv.reader(stream, delimiter=";") if row]
    except (OSError, UnicodeDecodeError):
        raise HierarchyError(f"{key}.mapping: '{path}' cannot be read as a UTF-8 file.") from None
    for number, row in enumerate(rows, 1):
        if len(row) != 2:
            raise HierarchyError(f"{key}.mapping: '{path}' line {number} must be 'dictionary value;node label'.")
    if len({row[0] for row in rows}) < len(rows):
        raise HierarchyError(f"{key}.mapping: '{path}' maps a dictionary value twice.")
    return [(row[0], row[1]) for row in rows]


def _value_codes(spark: SparkSession, code_of: Mapping[str, int]) -> DataFrame:
    arrays = [
        pa.array(list(code_of), type=pa.string()),
        pa.array(np.fromiter(code_of.values(), dtype=np.int32, count=len(code_of))),
    ]
    return spark.createDataFrame(pa.Table.from_arrays(arrays, names=["value", "code"]), schemas.VALUE_CODES)


def _with_codes(
    frame: DataFrame, columns: Sequence[tuple[Column, str, Mapping[str, int]]], *, keep: Sequence[Column]
) -> DataFrame:
    """Replace texts by codes through one broadcast join a column; missing is NULL, no match is UNKNOWN."""
    texts = [value.alias(f"v{i}") for i, (value, _, _) in enumerate(columns)]
    joined = frame.select(*keep, *texts)
    kept_names = [name for name in joined.columns if name not in {f"v{i}" for i in range(len(columns))}]
    for i, (_, name, code_of) in enumerate(columns):
        lookup = _value_codes(frame.sparkSession, code_of)
        lookup = lookup.select(F.col("value").alias(f"value{i}"), F.col("code").alias(f"code{i}"))
        joined = joined.join(F.broadcast(lookup), F.col(f"v{i}") == F.col(f"value{i}"), "left")
        code = (
            F.when(F.col(f"v{i}").isNull(), F.lit(schemas.NULL))
            .otherwise(F.coalesce(F.col(f"code{i}"), F.lit(schemas.UNKNOWN)))
            .cast("int")
        )
        rest = [F.col(f"v{j}") for j in range(i + 1, len(columns))]
        done = [F.col(columns[j][1]) for j in range(i)]
        joined = joined.select(*kept_names, *done, code.alias(name), *rest)
    return joined


def encode(table: DataFrame, policy: Policy, hierarchies: Mapping[str, Hierarchy], *, blocks: bool) -> DataFrame:
    """Return ENCODED: record ids, leaf codes, weights and the columns released as they are.

    Parameters
    ----------
    table : DataFrame
    policy : Policy
    hierarchies : mapping of attribute to Hierarchy
    blocks : bool
        Add ``block``, 16 bytes of SHA-256 of the record id: what the keyed draws of a record are made from.

    Notes
    -----
    A derived record id is the content of the row and its ordinal among identical rows. Identical rows are
    exchangeable, so any ordinal among them gives the same release.
    """
    given = policy.table.record_id
    identity = _content(table) if given is None else text(table, given)
    weights = schemas.weights(len(policy.weight_columns))
    kept = schemas.released(len(policy.kept_columns))
    values = [f"v{i}" for i in range(len(hierarchies))]
    # Renamed before anything is added: a column of the table may have any name, also one used here.
    renamed = table.select(
        identity.alias(schemas.RECORD_ID),
        *[column(name).try_cast("double").alias(to) for name, to in zip(policy.weight_columns, weights, strict=True)],
        *[column(name).alias(to) for name, to in zip(policy.kept_columns, kept, strict=True)],
        *[text(table, name).alias(to) for name, to in zip(hierarchies, values, strict=True)],
    )
    if given is None:
        ordinal = F.row_number().over(Window.partitionBy(schemas.RECORD_ID).orderBy(schemas.RECORD_ID))
        renamed = renamed.withColumn(schemas.RECORD_ID, F.concat_ws("-", schemas.RECORD_ID, ordinal))
    keep = [F.col(schemas.RECORD_ID)]
    if blocks:
        whole = F.unhex(F.sha2(F.col(schemas.RECORD_ID), 256))
        keep.append(F.substring(whole, 1, 16).alias(schemas.BLOCK))
    keep += [F.col(name) for name in (*weights, *kept)]
    coded = [
        (F.col(value), alias, hierarchy.code_of)
        for value, alias, hierarchy in zip(values, schemas.codes(len(hierarchies)), hierarchies.values(), strict=True)
    ]
    return _with_codes(renamed, coded, keep=keep)


def _content(table: DataFrame) -> Column:
    """128 bits of SHA-256 of a row, hex; rows differ in it iff they differ in any column."""
    fields = []
    for field in table.schema.fields:
        nested = isinstance(field.dataType, T.ArrayType | T.StructType | T.MapType)
        value = F.to_json(column(field.name)) if nested else column(field.name).cast("string")
        fields.append(F.coalesce(F.concat(F.octet_length(value).cast("string"), F.lit(":"), value), F.lit("-")))
    return F.substring(F.sha2(F.concat(*fields), 256), 1, 32)


def check_dictionary(frame: DataFrame, dictionary: TableDictionary) -> None:
    """Refuse a dictionary that lacks a mapped column.

    Raises
    ------
    SchemaError
        Naming every such column.
    """
    there = frame.columns
    faults = []
    for name, given in dictionary.columns.items():
        entry = _entry(given)
        if entry is not None and entry.column not in there:
            hint = nearest(entry.column, there)
            rule = f"the dictionary has no column '{entry.column}'{hint}; it has {listing(there)}."
            faults.append(f"dictionary.columns.{name}: {rule}")
    if faults:
        raise SchemaError(" | ".join(faults))


def encode_dictionary(dictionary: DataFrame, policy: Policy, hierarchies: Mapping[str, Hierarchy]) -> DataFrame:
    """Return the dictionary as node codes, with NULL and UNKNOWN; an attribute it lacks has no column.

    The mapped columns must be there (:func:`check_dictionary`).
    """
    assert isinstance(policy.dictionary, TableDictionary)
    mappings = map_dictionary(policy.dictionary, hierarchies)
    aliases = dict(zip(hierarchies, schemas.dictionary_codes(len(hierarchies)), strict=True))
    coded = [(text(dictionary, m.column), aliases[name], m.nodes) for name, m in mappings.items() if m is not None]
    return _with_codes(dictionary, coded, keep=[])


def resolve(
    frame: DataFrame, hierarchies: Mapping[str, Hierarchy], specs: Mapping[str, QuasiIdentifier], *, dictionary: bool
) -> DataFrame:
    """Replace NULL and UNKNOWN by codes, by the one declared policy.

    In the table a suppressed value is the code after the last leaf, ⊥ at every level; in the dictionary it is the root.
    A dictionary value outside the hierarchy is the code after the last node, consistent with ⊥ alone.
    """
    k = len(hierarchies)
    names = schemas.dictionary_codes(k) if dictionary else schemas.codes(k)
    columns = {}
    for (attribute, hierarchy), name in zip(hierarchies.items(), names, strict=True):
        if name not in frame.columns:
            continue
        suppressed = hierarchy.root if dictionary else hierarchy.n_leaves
        null_code = hierarchy.code_of_null if specs[attribute].nulls == "own-value" else suppressed
        unknown = hierarchy.n_nodes if dictionary else suppressed
        code = F.col(name)
        columns[name] = (
            F.when(code == schemas.NULL, F.lit(null_code))
            .when(code == schemas.UNKNOWN, F.lit(unknown))
            .otherwise(code)
            .cast("int")
        )
    return frame.withColumns(columns)
