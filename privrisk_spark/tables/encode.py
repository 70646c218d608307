"""Encoding: texts become integer codes once, in tasks, by looking at the distinct values of a chunk.

The only place that sees foreign types, missing values and values outside a hierarchy; every later stage gets ENCODED.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812 - the name every Spark program uses

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import CHUNK_ROWS, PARTS, Batches, in_chunks, report, write_ipc
from privrisk_spark.engine.fingerprints import fingerprints
from privrisk_spark.engine.schemas import ID
from privrisk_spark.engine.value_codes import ValueCodes, as_text_column, resolve
from privrisk_spark.errors import SchemaError, listing, nearest
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.numeric import fingerprint
from privrisk_spark.planning.dictionaries import map_dictionary
from privrisk_spark.policy.dictionaries import DictionaryTable, OneDictionary, Table, TableEstimate, TrueDictionary
from privrisk_spark.policy.policy import Policy
from privrisk_spark.storage.part_files import map_array, write_array
from privrisk_spark.storage.parts import PartDirectory
from privrisk_spark.tables.record_ids import HASHES_PER_TASK, content, contents_of, identity_blocks, numbered
from privrisk_spark.tables.row_groups import Wanted
from privrisk_spark.tables.sources import scan


def encode(
    frame: DataFrame,
    policy: Policy,
    hierarchies: Mapping[str, Hierarchy],
    *,
    blocks: bool,
    given: bool = False,
    contents: bool = False,
) -> Batches:
    """Return ENCODED: record ids, leaf codes, weights and the columns released as they are.

    Parameters
    ----------
    frame : DataFrame
        The table.
    hierarchies : mapping of attribute to Hierarchy
    blocks : bool
        Add ``block``, 16 bytes of SHA-256 of the record id: what the keyed draws of a record are made from.
    given : bool
        Whether the caller gave the frame instead of the policy's table; then it is read by Spark alone.
    contents : bool
        Whether a record id that is derived shall be the content alone, without a shuffle and without ``block``
        (:func:`privrisk_spark.tables.record_ids.collect_numbered` completes it).

    Raises
    ------
    SchemaError
        In tasks: if a text is none, but under dp, where it is a value outside its hierarchy.

    Notes
    -----
    A derived record id is the content of the row and its ordinal among identical rows. Identical rows are
    exchangeable, so any ordinal among them gives the same release.
    """
    identity = policy.table.record_id
    weights = schemas.weights(len(policy.weight_columns))
    kept = schemas.released(len(policy.kept_columns))
    values = [f"v{i}" for i in range(len(hierarchies))]
    wanted = [
        *[Wanted(to, name, "number") for name, to in zip(policy.weight_columns, weights, strict=True)],
        *[Wanted(to, name, "value") for name, to in zip(policy.kept_columns, kept, strict=True)],
        *[Wanted(to, name, "text") for name, to in zip(hierarchies, values, strict=True)],
    ]
    more = []
    if policy.table.entity_id is not None:
        wanted.append(Wanted(schemas.ENTITY, policy.table.entity_id, "text", distinct=True))
        more.append(schemas.ENTITY)
    if policy.table.weight is not None:
        wanted.append(Wanted(schemas.SAMPLE_WEIGHT, policy.table.weight, "number"))
        more.append(schemas.SAMPLE_WEIGHT)
    source = None if given else policy.table
    if identity is None:
        opened = _with_contents(source, frame, wanted)
        if contents:
            blocks = False
        else:
            opened = Batches.of_frame(numbered(opened.frame()))
    else:
        # One chunk and so one part a task.
        wanted = [Wanted(schemas.RECORD_ID, identity, "text", distinct=True), *wanted]
        opened = scan(source, frame, wanted, rows_per_task=CHUNK_ROWS)
    codes = schemas.codes(len(hierarchies))
    lookups = [ValueCodes.of_leaves(hierarchy) for hierarchy in hierarchies.values()]
    leading = [schemas.RECORD_ID, *more, *weights, *kept]
    ids = [name for name in (schemas.RECORD_ID, schemas.ENTITY) if name in leading]
    if identity is None:
        ids.remove(schemas.RECORD_ID)

    texts = {} if policy.guarantee.private else {want.alias: want.name for want in wanted if want.kind != "number"}

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for rows in in_chunks(tables):
            _refuse_garbled(rows, texts)
            coded = rows.select(leading)
            for name in ids:
                position = leading.index(name)
                coded = coded.set_column(position, name, as_text_column(rows.column(name), name))
            if blocks:
                coded = coded.add_column(1, schemas.BLOCK, identity_blocks(coded.column(schemas.RECORD_ID)))
            for name, value, lookup in zip(codes, values, lookups, strict=True):
                coded = coded.append_column(name, pa.array(lookup.encoded(rows.column(value))))
            yield coded

    of_source = {field.name: field.dataType for field in opened.schema.fields}
    of_source |= dict.fromkeys([schemas.RECORD_ID, *ids], T.StringType())
    fields = [T.StructField(name, of_source[name]) for name in leading]
    if blocks:
        fields.insert(1, T.StructField(schemas.BLOCK, T.BinaryType()))
    fields += [T.StructField(name, T.IntegerType()) for name in codes]
    return opened.then(step, T.StructType(fields))


def _with_contents(source: Table | None, frame: DataFrame, wanted: Sequence[Wanted]) -> Batches:
    """Open the wanted columns, and the content of each row as its id: hashed in tasks if they read the files."""
    names = [f"f{i}" for i in range(len(frame.columns))]
    every = [Wanted(to, name, "text") for to, name in zip(names, frame.columns, strict=True)]
    opened = scan(source, frame, [*wanted, *every], rows_per_task=CHUNK_ROWS)
    if not opened.steps:
        return scan(source, frame, wanted, more=[content(frame).alias(schemas.RECORD_ID)])

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in in_chunks(tables):
            contents = contents_of([table.column(name) for name in names])
            yield table.drop_columns(names).append_column(schemas.RECORD_ID, contents)

    kept = [field for field in opened.schema.fields if field.name not in names]
    return opened.then(step, T.StructType([*kept, T.StructField(schemas.RECORD_ID, T.StringType())]))


def _refuse_garbled(rows: pa.Table, texts: Mapping[str, str]) -> None:
    """Refuse bytes that are no text, which would be released as others."""
    for alias, name in texts.items():
        try:
            rows.column(alias).validate(full=True)
        except pa.ArrowInvalid:
            raise SchemaError(
                f"columns.{name}: it has bytes that are no text in UTF-8. Fix: correct them, or write the table "
                "again from texts."
            ) from None


def encode_dictionary(
    frame: DataFrame,
    dictionary: DictionaryTable,
    hierarchies: Mapping[str, Hierarchy],
    *,
    key: str = "dictionary",
    identity: str | None = None,
    numbers: bool = False,
) -> Batches:
    """Return the dictionary as node codes, with NULL and UNKNOWN; an attribute it lacks has no column.

    ``people`` and ``entity`` follow where the policy names them, and ``id``, the text of the column ``identity``, where
    one is asked for. With ``numbers``, ids that write one number are equal.

    The mapped columns must be there (:func:`privrisk_spark.tables.opening.check_dictionary`).

    Raises
    ------
    SchemaError
        If there is no column ``identity``.
    """
    if identity is not None and identity not in frame.columns:
        hint = nearest(identity, frame.columns)
        raise SchemaError(
            f"{key}.id: the dictionary has no column '{identity}'{hint}; it has {listing(frame.columns)}."
        )
    mappings = map_dictionary(dictionary, hierarchies, key=key)
    aliases = dict(zip(hierarchies, schemas.dictionary_codes(len(hierarchies)), strict=True))
    known = {aliases[name]: mapping for name, mapping in mappings.items() if mapping is not None}
    wanted = [Wanted(to, mapping.column, "text") for to, mapping in known.items()]
    fields = [T.StructField(to, T.IntegerType()) for to in known]
    more = []
    if dictionary.weight is not None:
        wanted.append(Wanted(schemas.PEOPLE, dictionary.weight, "number"))
        fields.append(T.StructField(schemas.PEOPLE, T.DoubleType()))
        more.append(schemas.PEOPLE)
    if dictionary.entity_id is not None:
        wanted.append(Wanted(schemas.ENTITY, dictionary.entity_id, "text", distinct=True))
        fields.append(T.StructField(schemas.ENTITY, T.StringType()))
        more.append(schemas.ENTITY)
    if identity is not None:
        wanted.append(Wanted(ID, identity, "text", distinct=True))
        fields.append(T.StructField(ID, T.StringType()))
        more.append(ID)
    opened = scan(dictionary, frame, wanted)
    lookups = {to: ValueCodes.of(mapping.nodes, numbers=mapping.numbers) for to, mapping in known.items()}

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for rows in in_chunks(tables):
            columns = {to: pa.array(lookup.encoded(rows.column(to))) for to, lookup in lookups.items()}
            ids = {name: as_text_column(rows.column(name), name, numbers=numbers and name == ID) for name in more}
            yield pa.table(columns | ids)

    return opened.then(step, T.StructType(fields))


def dictionary_rows(
    table: Batches, frame: DataFrame | None, one: OneDictionary, hierarchies: Mapping[str, Hierarchy]
) -> Batches:
    """Return the rows of one of a policy's dictionaries as codes, to be counted.

    Parameters
    ----------
    table : Batches
        ENCODED, resolved: the rows, where the table is the dictionary.
    frame : DataFrame or None
        The dictionary as Spark opened it; None where it is the table itself.
    hierarchies : mapping of attribute to Hierarchy
    """
    if one.table is None or frame is None:
        return table
    return encode_dictionary(frame, one.table, hierarchies, key=one.key)


def id_of(one: OneDictionary) -> str | None:
    """Column of an external dictionary that identifies its rows."""
    return one.table.id if isinstance(one.table, TableEstimate | TrueDictionary) else None


def identities(
    frame: DataFrame,
    one: OneDictionary,
    policy: Policy,
    hierarchies: Mapping[str, Hierarchy],
    *,
    numbers: bool = False,
) -> DataFrame:
    """Return an external dictionary as codes, resolved: ``t<i>``, ``people`` and, where the policy has one, ``id``.

    Raises
    ------
    SchemaError
        If the column of the id is not there.
    """
    table = one.table
    assert table is not None
    coded = encode_dictionary(frame, table, hierarchies, key=one.key, identity=id_of(one), numbers=numbers)
    return resolve(coded, hierarchies, policy.quasi_identifiers, dictionary=True).frame()


MOST_WEIGHT = 1e9
"""Sampling weights must stay below; they are summed in millionths."""


def materialize(encoded: Batches, directory: PartDirectory, *, k: int, n_weights: int, ids: bool = True) -> Batches:
    """Write ENCODED as parts in a directory, and return PARTS with the facts of each.

    With ``ids``, the sorted fingerprints of the record ids of each part are written too, for :func:`duplicates`.
    """
    codes, weights = schemas.codes(k), schemas.weights(n_weights)
    there = encoded.schema.fieldNames()

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in tables:
            of_rows = table.column(schemas.RECORD_ID)
            hashes = [fingerprints(table.column(name)) for name in table.column_names if name != schemas.BLOCK]
            rows = fingerprint.of_rows(hashes, table.num_rows)
            total, other = fingerprint.of_table(rows)
            name = write_ipc(table, directory)
            if ids:
                present = hashes[0][of_rows.is_valid().to_numpy()] if of_rows.null_count else hashes[0]
                write_array(np.sort(present), directory, f"{name}.ids.npy")
            numbers = {column: table.column(column).to_numpy() for column in (*codes, *weights)}
            facts: dict[str, Any] = {
                "rows": table.num_rows,
                "null_ids": of_rows.null_count,
                "sum": total,
                "xor": other,
                "nulls": [int(np.count_nonzero(numbers[column] == schemas.NULL)) for column in codes],
                "unknown": [int(np.count_nonzero(numbers[column] == schemas.UNKNOWN)) for column in codes],
                "bad_weights": [int(np.count_nonzero(~(numbers[column] >= 0))) for column in weights],
                "infinite_weights": [int(np.count_nonzero(np.isinf(numbers[column]))) for column in weights],
            }
            if schemas.SAMPLE_WEIGHT in there:
                sampled = table.column(schemas.SAMPLE_WEIGHT).to_numpy()
                facts["bad_weights"].append(int(np.count_nonzero(~((sampled >= 0) & (sampled < MOST_WEIGHT)))))
                facts["infinite_weights"].append(0)
            if schemas.ENTITY in there:
                facts["null_entities"] = table.column(schemas.ENTITY).null_count
            yield report(name, facts)

    return encoded.then(step, PARTS)


def duplicates(spark: SparkSession, parts: Sequence[str], rows: int, directory: PartDirectory) -> Batches:
    """Count the record ids whose fingerprint another record has too: one row a task, each a range of fingerprints.

    Parameters
    ----------
    parts : sequence of str
        Names of the parts :func:`materialize` wrote.
    """
    tasks = max(1, -(-rows // HASHES_PER_TASK))
    names = tuple(parts)
    width = 2**64 // tasks + 1

    def read(number: int) -> Iterator[pa.Table]:
        low, high = number * width, min((number + 1) * width, 2**64) - 1
        pieces = []
        for name in names:
            hashes = map_array(directory, f"{name}.ids.npy")
            start = np.searchsorted(hashes, np.uint64(low), side="left")
            end = np.searchsorted(hashes, np.uint64(high), side="right")
            pieces.append(hashes[start:end])
        # Stable is a merge, which takes the order of the pieces as it finds it.
        ordered = np.sort(np.concatenate(pieces), kind="stable") if pieces else np.zeros(0, dtype=np.uint64)
        again = int(np.count_nonzero(ordered[1:] == ordered[:-1]))
        yield pa.table({"duplicates": pa.array([again], pa.int64())})

    schema = T.StructType([T.StructField("duplicates", T.LongType())])
    return Batches.of_parts(spark, range(tasks), read, schema)
