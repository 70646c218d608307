"""Where rows come from: any source Spark can read, or plain Parquet files that the tasks open themselves.

Spark hands rows to Python one value at a time, which costs more than everything a task then does with them. Parquet
files on a local or mounted path, of types both sides read alike, are therefore read by the tasks as Arrow; Spark says
which files there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_type

from privrisk_spark.engine.batches import CHUNK_ROWS, Batches, find_batches
from privrisk_spark.engine.embedded import is_embedded
from privrisk_spark.engine.number_texts import (
    INEXACT,
    SPELLED,
    as_double,
    column,
    present,
    text_of,
)
from privrisk_spark.engine.settings import input_files
from privrisk_spark.errors import ConfigError, EngineError
from privrisk_spark.policy.dictionaries import Table
from privrisk_spark.storage.directories import is_directory, is_file
from privrisk_spark.storage.documents import size_and_digest
from privrisk_spark.storage.lakes.snapshot import Value
from privrisk_spark.storage.locations import Location, is_remote, locate
from privrisk_spark.storage.parts import PartDirectory
from privrisk_spark.storage.table_files import ObjectFile
from privrisk_spark.tables.parquet_types import read_footer
from privrisk_spark.tables.partitions import object_partitions, partition_values, repeated
from privrisk_spark.tables.row_groups import (
    ALIKE,
    ROWS_PER_TASK,
    RowGroups,
    Source,
    Wanted,
    batches_of,
    lake_tasks,
    opened,
    pieces_of,
    together,
    without_nan,
)
from privrisk_spark.tables.source_files import in_object_store, local_files, object_files

_NUMBERS = (T.ByteType, T.ShortType, T.IntegerType, T.LongType, T.FloatType, T.DoubleType)


def computed(value: Column, name: str) -> Column:
    """Name a column that is no longer as the files of its table have it: tasks must not read it from them."""
    return value.alias(name, metadata={_COMPUTED: True})


_COMPUTED = "privrisk.computed"


def scan(
    table: Table | None,
    frame: DataFrame,
    wanted: Sequence[Wanted],
    *,
    more: Sequence[Column] = (),
    rows_per_task: int | None = None,
) -> Batches:
    """Open the wanted columns.

    Parameters
    ----------
    table : Table or None
        Of the policy; None for a frame that a caller gave, which may be any rows of any files: only Spark can
        read it.
    frame : DataFrame
        The table as Spark opened it.
    more : sequence of Column
        Expressions only Spark can compute; they come first.
    rows_per_task : int, optional
        About so many rows a task, where tasks read the files themselves; :data:`ROWS_PER_TASK` by default.
    """
    if table is not None and not more and _read_by_files(frame, wanted):
        spark, schema, size = frame.sparkSession, frame.schema, rows_per_task or ROWS_PER_TASK
        by_tasks = _ready_in_tasks(frame, wanted)
        files = lake_tasks(table.pinned, size) if table.pinned is not None else _plain_files(table, frame, wanted, size)
        if files is not None and by_tasks:
            return batches_of(spark, schema, files, wanted)
        if files is not None and find_batches(frame) is not None:
            # Tasks read only the columns that are wanted, which Spark cannot tell a frame that they make.
            names = dict.fromkeys(want.name for want in wanted)
            frame = batches_of(spark, schema, files, [Wanted(name, name, "value") for name in names]).frame()
        made = find_batches(frame) if by_tasks and table.format.lower() == "csv" else None
        if made is not None:
            return _select_texts(made, wanted)
    chosen = {
        "text": lambda name: _text_or_number(frame, name),
        "number": lambda name: as_double(column(name), frame.schema[name].dataType),
        "value": lambda name: present(column(name), frame.schema[name].dataType),
    }
    return Batches.of_frame(frame.select(*more, *[chosen[w.kind](w.name).alias(w.alias) for w in wanted]))


def _text_or_number(frame: DataFrame, name: str) -> Column:
    """Return a column of texts; numbers and booleans become texts in tasks (:func:`as_texts`)."""
    kind = frame.schema[name].dataType
    return present(column(name), kind) if isinstance(kind, SPELLED) else text_of(column(name), kind)


def _select_texts(rows: Batches, wanted: Sequence[Wanted]) -> Batches:
    """Select the wanted columns of a CSV table whose lines tasks read; all are texts."""
    names, aliases = [want.name for want in wanted], [want.alias for want in wanted]

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in tables:
            yield pa.Table.from_arrays([table.column(name) for name in names], names=aliases)

    return rows.then(step, T.StructType([T.StructField(alias, T.StringType()) for alias in aliases]))


def _read_by_files(frame: DataFrame, wanted: Sequence[Wanted]) -> bool:
    """Whether the columns are as the files of the table have them."""
    return bool(wanted) and not any(_COMPUTED in frame.schema[want.name].metadata for want in wanted)


def _ready_in_tasks(frame: DataFrame, wanted: Sequence[Wanted]) -> bool:
    """Whether tasks make of the values in files what is wanted; the rest is left to expressions of Spark."""
    kinds = [(want.kind, frame.schema[want.name].dataType) for want in wanted]
    return all(
        form == "value" or isinstance(kind, _NUMBERS if form == "number" else tuple(set(ALIKE) - set(INEXACT)))
        for form, kind in kinds
    )


def _plain_files(
    table: Table, frame: DataFrame, wanted: Sequence[Wanted], rows_per_task: int
) -> list[tuple[RowGroups, ...]] | None:
    """Row groups of Parquet files that tasks read as Spark would, or None if that is not sure."""
    stored = in_object_store(table)
    if table.catalog is not None or table.format != "parquet" or table.options:
        return None
    types = {field.name: field.dataType for field in frame.schema.fields}
    names = {want.name for want in wanted}
    files: list[Source] = []
    found: list[dict[str, Value]] | None
    if stored:
        listed = object_files(table, key="table")
        files, found = list(listed), object_partitions(listed, types)
    else:
        uris = sorted(frame.inputFiles())
        if any(urlparse(uri).scheme != "file" for uri in uris):
            return None
        # The engine lists no files of a table that tasks read.
        places = [unquote(urlparse(uri).path) for uri in uris] or [one.place for one in local_files(table)]
        paths = [Path(place) for place in places]
        files = [str(path.absolute()) for path in paths if is_file(path)]
        found = _partitions(table, paths, types, names) if len(files) == len(paths) else None
    if not found or not names - set(found[0]):
        return None
    tasks: list[RowGroups] = []
    for file, values in zip(files, found, strict=True):
        try:
            footer = read_footer(opened(file))
        except (pa.ArrowException, OSError):
            return None
        # Spark believes a directory's name rather than the file.
        if {name.casefold() for name in values} & {name.casefold() for name in footer.types}:
            return None
        if footer.other_calendar:
            return None
        for name in names - set(values):
            if footer.written.get_field_index(name) < 0 or name in footer.unreadable:
                return None
            if from_arrow_type(footer.types[name], prefer_timestamp_ntz=True) != types[name]:
                return None
        tasks += pieces_of(file, footer.groups, rows_per_task, values)
    return together(tasks, rows_per_task)


def _partitions(
    table: Table, files: Sequence[Path], types: dict[str, T.DataType], names: Set[str]
) -> list[dict[str, Value]] | None:
    """Values of the columns in the names of each file's directories; None where Spark might read others for ``names``.

    What a pattern or a file stands for, Spark begins to read names at another directory.
    """
    root = Path(table.path or "").absolute()
    if is_directory(root) and all(file.is_relative_to(root) for file in files):
        values = partition_values([file.relative_to(root).as_posix() for file in files], types)
        if values is not None:
            return values
    columns = {unquote(part.partition("=")[0]) for file in files for part in file.parts if "=" in part}
    return None if columns & names else [{} for _ in files]


def scan_parts(
    spark: SparkSession,
    directory: PartDirectory,
    names: Sequence[str],
    schema: T.StructType,
    wanted: Sequence[Wanted],
    *,
    named: Sequence[tuple[str, Mapping[str, Value]]] | None = None,
) -> Batches:
    """Open the wanted columns of Parquet parts, one a task.

    Parameters
    ----------
    schema : StructType
        Of the parts.
    named : sequence of (str, mapping of column to value), optional
        Of each part the SHA-256, in hex, of the file it has become, and what the name of its directory holds.

    Raises
    ------
    EngineError
        In a task: if a part is not the file that was named.
    """
    of_parts = named or [("", {})] * len(names)
    held = [(name, digest, dict(values)) for name, (digest, values) in zip(names, of_parts, strict=True)]
    kinds = {field.name: field.dataType for field in schema.fields}

    def read(part: tuple[str, str, dict[str, Value]]) -> Iterator[pa.Table]:
        name, digest, values = part
        path = directory.path(name)
        if digest and size_and_digest(Path(path))[1] != digest:
            raise EngineError("a file of the release was changed while it was put in its directory; run again.")
        columns = list(dict.fromkeys(want.name for want in wanted if want.name not in values))
        with pq.ParquetFile(path, memory_map=True) as file:
            for batch in file.iter_batches(batch_size=CHUNK_ROWS, columns=columns):
                arrays = [
                    repeated(values[want.name], to_arrow_type(kinds[want.name]), batch.num_rows, encoded=False)
                    if want.name in values
                    else without_nan(batch.column(batch.schema.get_field_index(want.name)))
                    for want in wanted
                ]
                yield pa.Table.from_arrays(arrays, names=[want.alias for want in wanted])

    fields = [T.StructField(want.alias, kinds[want.name]) for want in wanted]
    return Batches.of_parts(spark, held, read, T.StructType(fields))


def files_only_spark_knows(
    spark: SparkSession, given: DataFrame | None, tables: Mapping[str, Table]
) -> dict[str, list[Location]]:
    """Return the files of what is read, but of tables whose path the policy names.

    Parameters
    ----------
    given : DataFrame or None
        Read instead of the policy's table.
    tables : mapping of key to Table

    Returns
    -------
    dict of key to list of Location
        As Spark lists them; links followed. A table of a catalog that is not there has none.
    """
    found = {}
    for key, table in tables.items():
        if table.catalog is not None and table.lake is None and spark.catalog.tableExists(table.catalog):
            frame = spark.table(table.catalog)
            # Spark lists no files of a table of Iceberg's connector, but its place.
            found[key] = _locations([*input_files(frame), *_place_in_catalog(frame, table.catalog)])
    if given is not None:
        found["the given frame"] = _locations(input_files(given))
    return found


def _locations(uris: Iterable[str]) -> list[Location]:
    found = []
    for uri in uris:
        with suppress(ConfigError):  # of another file system, to which nothing is written
            found.append(locate(unquote(uri) if is_remote(uri) else uri, key="table"))
    return found


def files_read(table: Table | None, frame: DataFrame) -> list[str]:
    """Return the files that a table consists of, as paths and URIs; nothing is read but lists of files.

    Parameters
    ----------
    table : Table or None
        None for a frame that a caller gave.
    frame : DataFrame
        As Spark opened it.

    Returns
    -------
    list of str
        Of a frame or a view all files that it is computed from, as far as Spark tells; none for one of rows in memory.
        Of a lake table also its URN, and of a catalog's table also its place: both stay when its files are rewritten.
    """
    if table is not None and table.pinned is not None:
        return [f"urn:uuid:{table.pinned.pin.table}", *(_text_of(of.file) for of in table.pinned.files)]
    if table is not None and in_object_store(table):
        return [_text_of(file) for file in object_files(table, key="table")]
    # The rows of some tables come from tasks, so that Spark knows no files of them.
    files = [_decoded(uri) for uri in input_files(frame)] or [
        file.place for file in (() if table is None else local_files(table))
    ]
    return files if table is None or table.catalog is None else [*_place_in_catalog(frame, table.catalog), *files]


def _text_of(file: str | ObjectFile) -> str:
    return file if isinstance(file, str) else str(file.root.below(file.key))


def _decoded(uri: str) -> str:
    parsed = urlparse(uri)
    return unquote(parsed.path if parsed.scheme == "file" else uri)


def _place_in_catalog(frame: DataFrame, name: str) -> list[str]:
    """Place of a catalog's table; a view has none."""
    try:
        described = catalog_properties(frame.sparkSession, name)
    except PySparkException:
        return []
    return [_decoded(described["Location"])] if "Location" in described else []


def catalog_properties(spark: SparkSession, name: str) -> dict[str, str]:
    """Return the properties that a catalog lists of a table, such as ``Provider`` and ``Location``; a view has neither.

    Parameters
    ----------
    name : str
        As ``spark.table`` takes it.
    """
    lines = (
        spark.sql(f"DESCRIBE TABLE EXTENDED {quote_identifier(spark, name)}").select("col_name", "data_type").toArrow()
    )
    names, values = (lines.column(i).to_pylist() for i in range(2))
    begun = names.index(_DETAILED) if _DETAILED in names else len(names)
    return dict(zip(names[begun:], values[begun:], strict=True))


def quote_identifier(spark: SparkSession, name: str) -> str:
    """Return the name of a table of a catalog as part of a statement.

    Parameters
    ----------
    name : str
        As ``spark.table`` takes it.
    """
    if is_embedded(spark):  # it has no IDENTIFIER
        found = spark.catalog.getTable(name)
        return ".".join("`" + part.replace("`", "``") + "`" for part in (*(found.namespace or ()), found.name))
    # Delta's and Iceberg's extensions of Spark's parser pass no parameters on: the name is a literal.
    literal = name.replace("\\", "\\\\").replace("'", "\\'")
    return f"IDENTIFIER('{literal}')"


_DETAILED = "# Detailed Table Information"
"""After this line come no more columns."""
