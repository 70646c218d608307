"""The files of a table on mounted paths and in object stores, looked at before Spark or tasks read them.

Spark waits for a pipe for ever, leaves out a file of no bytes and a link to nothing, and fills a column that a Parquet
file lacks with missing values: each time the table is smaller than the policy's author thinks, and nothing says so.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, urlparse

import pyarrow as pa
from pyspark.sql import SparkSession

from privrisk_spark.engine.embedded import is_embedded
from privrisk_spark.errors import Fault, InputError, MissingError, SchemaError, listing
from privrisk_spark.policy.csv_dialect import parse_csv_dialect
from privrisk_spark.policy.dictionaries import Table
from privrisk_spark.policy.secrets import without_credentials
from privrisk_spark.results.facts import FilesRead
from privrisk_spark.storage.directories import is_link, is_there, resolved
from privrisk_spark.storage.documents import state_of
from privrisk_spark.storage.locations import is_remote, locate
from privrisk_spark.storage.table_files import LineFile, LocalFile, ObjectFile, files_below, files_of, named_here
from privrisk_spark.tables.parquet_types import read_footer

_FILES = ("parquet", "orc", "csv", "json", "text", "avro", "xml")
"""Formats whose tables are the files that lie there; others keep lists of their own."""

_PATTERN = frozenset("*[{")

_SELECTING = {"pathglobfilter", "modifiedbefore", "modifiedafter", "recursivefilelookup"}
"""Reader options by which Spark leaves files out because it is told to."""


def in_object_store(table: Table) -> bool:
    """Return True if a table is files of Parquet or CSV in an object store, which tasks read themselves."""
    if table.path is None or table.catalog is not None or not is_remote(table.path) or _PATTERN & set(table.path):
        return False
    form = table.format.lower()
    return (form == "parquet" and not table.options) or form == "csv"


def object_files(table: Table, *, key: str) -> list[ObjectFile]:
    """List the files of a table.

    Parameters
    ----------
    table : Table
        In an object store.
    key : str
        Of the policy, for messages.

    Raises
    ------
    SchemaError
        If there are none (MissingError), one has no bytes, or there is no such bucket.
    """
    location = locate(table.path or "", key=f"{key}.path")
    try:
        files = files_below(location)
    except InputError as error:  # no such bucket, or access is denied
        raise SchemaError([Fault(f"{key}.path", error.faults[0].rule)]) from None
    if not files:
        raise MissingError(f"{key}.path: '{location}' cannot be read as {table.format}: there is nothing there.")
    full = table.format.lower() == "parquet" or parse_csv_dialect(table.option_texts, f"{key}.options").header
    empty = next((file for file in files if full and not file.size), None)
    if empty is not None:
        raise SchemaError(
            f"{key}.path: '{location}': file {empty.name} has 0 bytes, so what it held is lost; write it anew or "
            "remove it."
        )
    return files


def local_files(table: Table) -> list[LocalFile]:
    """Return the data files a table's path stands for on this machine, as Spark finds them; none is opened.

    Returns
    -------
    list of LocalFile
        Empty for a table of a catalog, of a format that keeps a list of its files, or of another file system.
    """
    if table.path is None or table.catalog is not None or table.format.lower() not in _FILES:
        return []
    alternatives = "{" in table.path and not is_there(Path(table.path))  # Spark's own
    if urlparse(table.path).scheme not in ("", "file") or alternatives:
        return []
    found = []
    for place in named_here(table.path):
        for file in files_of(place):
            key = file.name if file == place else file.relative_to(place).as_posix()
            known = None
            with suppress(OSError):  # check_files names what cannot be read
                known = state_of(file)
            size, modified = (0, 0.0) if known is None else (known.size, known.modified)
            found.append(LocalFile(table.path, str(file.absolute()), key, size, modified))
    return found


def is_csv_by_tasks(table: Table) -> bool:
    """Return True if tasks read a table: CSV files that are reached without a file system of Java."""
    if table.catalog is not None or table.format.lower() != "csv":
        return False
    return bool(local_files(table)) or in_object_store(table)


def path_for_spark(spark: SparkSession, table: Table) -> str:
    """Return a table's path as the engine takes it.

    Parameters
    ----------
    table : Table
        With a path.

    Returns
    -------
    str
        Absolute, and escaped if a file or directory has the characters of a pattern in its name. For Spark with Java,
        whose default file system may be another one, a path of this machine begins with ``file:``. A path that names
        nothing on this machine is returned as it is written: to Spark it may be a place of another file system.
    """
    path = table.path or ""
    if not is_remote(path) and is_there(Path(path)):
        path = re.sub(r"([*?{}\[\]\\])", r"\\\1", path)
    elif not any(map(is_there, named_here(path))):
        return table.title
    return path if is_embedded(spark) or not path.startswith("/") else f"file:{path}"


_PARQUET_OPTIONS = {
    "basepath", "datetimerebasemode", "ignorecorruptfiles", "ignoremissingfiles", "int96rebasemode", "mergeschema",
    "modifiedafter", "modifiedbefore", "pathglobfilter", "recursivefilelookup",
}  # fmt: skip
"""In small letters."""


def _parquet_options(table: Table) -> set[str]:
    """Return the options in small letters that Spark's reader of Parquet knows; it ignores those of other formats."""
    return {name.lower() for name in table.options} & _PARQUET_OPTIONS


def merges_schemas(table: Table) -> bool:
    """Return True if a table has the columns of all its files by its option ``mergeSchema``."""
    return any(name.lower() == "mergeschema" and str(said).lower() == "true" for name, said in table.options.items())


def is_read_by_tasks(table: Table, files: Sequence[LocalFile]) -> bool:
    """Return True if tasks read Parquet files on this machine that Spark's own reader may refuse or read otherwise.

    Spark reads files whose directories or options have a meaning only it knows, and files that count days by another
    calendar.

    Parameters
    ----------
    files : sequence of LocalFile
        Of the table.
    """
    if _named_by_columns(files) != files or not _parquet_options(table) <= {"mergeschema"}:
        return False
    footers = [read_footer(file.place) for file in files]
    return any(of.unusual for of in footers) and not any(of.other_calendar for of in footers)


def find_unusual_columns(table: Table) -> list[str]:
    """Return the columns of Parquet files on this machine whose types Spark's own reader may refuse, with the types."""
    found: dict[str, pa.DataType] = {}
    for file in local_files(table) if table.format.lower() == "parquet" else ():
        with suppress(pa.ArrowException, OSError):  # an option may leave the file out
            footer = read_footer(file.place)
            found |= {name: footer.written.field(name).type for name in footer.unusual_columns}
    return [f"'{name}' ({kind})" for name, kind in found.items() if not pa.types.is_null(kind)]


def check_for_embedded(table: Table, *, key: str) -> bool:
    """Refuse a table that the embedded engine would read in another way than Spark. Return True if tasks can read it.

    The engine takes a path without files for a table without columns, and reads the formats other than Parquet, and the
    names of directories, in ways of its own.

    Parameters
    ----------
    key : str
        Of the policy, for messages.

    Raises
    ------
    SchemaError
        With the path.
    """
    if table.path is None:
        return False
    where, form = f"{key}.path: '{without_credentials(table.path)}'", table.format.lower()
    unread = f"{where} cannot be read as {table.format}"
    scheme, _, there = table.path.partition("://")
    if there and scheme != "file" and not is_remote(table.path):
        rule = f"the embedded engine reaches no file system '{scheme}://'"
        raise SchemaError(f"{unread}: {rule}. Fix: give --engine spark, or copy the files to a mounted path.")
    if not is_remote(table.path) and form in _FILES and not local_files(table):
        braces = ", or it has alternatives in braces, which need --engine spark" if "{" in table.path else ""
        raise MissingError(f"{unread}: there is nothing there{braces}.")
    if form not in ("csv", "parquet"):
        raise SchemaError(f"{unread}: this format needs --engine spark. Fix: give it, or write Parquet.")
    files = local_files(table)
    refuse_unread(files, where)
    if form == "parquet" and not _parquet_options(table) <= {"mergeschema"}:
        raise SchemaError(f"{where} has options that need --engine spark. Fix: give it, or write Parquet.")
    return True


def refuse_unread(files: Sequence[LineFile], where: str) -> None:
    """Refuse local files in directories whose names hold no value of a column: Spark reads none of them.

    Parameters
    ----------
    where : str
        The table, for messages.

    Raises
    ------
    SchemaError
    """
    local = [file for file in files if isinstance(file, LocalFile)]
    read = _named_by_columns(local)
    if len(read) != len(local):
        raise SchemaError(_others(where, len(local), len(read)))


def _named_by_columns(files: Sequence[LocalFile]) -> list[LocalFile]:
    """Return the files whose directories are each named for a column and its value."""
    return [file for file in files if all("=" in name for name in file.key.split("/")[:-1])]


def _others(where: str, there: int, read: int) -> str:
    return (
        f"{where}: there are {there:,} data files, and Spark reads {read:,} of them; remove what is not part of the "
        "table."
    )


def refuse_java_directory(files: Collection[str], *, table: Table, key: str) -> None:
    """Refuse files that Java finds in its own working directory, and that are not in that of this process.

    Parameters
    ----------
    files : collection of str
        URIs, as Spark lists them.
    table : Table
        Of which :func:`check_files` knows no files.

    Raises
    ------
    SchemaError
        With the path.
    """
    if table.path is not None and table.title != table.path and any(urlparse(uri).scheme == "file" for uri in files):
        raise MissingError(f"{key}.path: '{table.path}' cannot be read as {table.format}: there is nothing there.")


def check_files(table: Table, *, key: str, columns: Collection[str] | None = None) -> FilesRead | None:
    """Refuse files that Spark would wait for, leave out or fill up; count the others, and the rows they say they have.

    Parameters
    ----------
    key : str
        Of the policy, for messages.
    columns : collection of str, optional
        That each file must have, where files say what columns they have; by default those any file has.

    Returns
    -------
    FilesRead or None
        None where :func:`local_files` knows of none, and where options select among them.

    Raises
    ------
    SchemaError
        Naming table, file and column.
    """
    if table.pinned is not None:
        read = len(table.pinned.files)  # footers were held against the log when the version was opened
        return FilesRead(expected=read, processed=read, rows=table.pinned.rows, version=table.pinned.described())

    if in_object_store(table):
        held = object_files(table, key=key)
        parquet = table.format.lower() == "parquet"
        of_footers, rounded = _read_footers(held, table, key, columns, merging=False) if parquet else (None, ())
        return FilesRead(expected=len(held), processed=len(held), rows=of_footers, rounded=rounded)
    files = local_files(table)
    if not files:
        return None
    form = table.format.lower()
    options = {name.lower(): value.lower() for name, value in table.option_texts.items()}
    headed = form == "csv" and parse_csv_dialect(table.option_texts, f"{key}.options").header
    full = form in ("parquet", "orc") or headed
    for file in files:
        _refuse_lost(Path(file.place), f"{key}.path: '{table.path}': file {file.name}", empty=full)
    if _SELECTING & set(options):
        return None
    rows, rounded = None, ()
    if form == "parquet":
        rows, rounded = _read_footers(files, table, key, columns, merging=merges_schemas(table))
    return FilesRead(expected=len(files), processed=len(files), rows=rows, rounded=rounded)


def _refuse_lost(file: Path, where: str, *, empty: bool) -> None:
    try:
        found = state_of(file)
    except OSError as error:
        what = "is a link to nothing" if is_link(file) else f"cannot be read ({error.strerror})"
        raise SchemaError(f"{where} {what}; mend or remove it.") from None
    if found is None:
        raise SchemaError(f"{where} is a link to nothing; mend or remove it.")
    if not found.regular:
        raise SchemaError(f"{where} is no file but a pipe, socket or device, which can be read once at most; copy it.")
    if empty and found.size == 0:
        raise SchemaError(f"{where} has 0 bytes, so what it held is lost; write it anew or remove it.")


def _read_footers(
    files: Sequence[LineFile],
    table: Table,
    key: str,
    columns: Collection[str] | None,
    *,
    merging: bool,
) -> tuple[int, tuple[str, ...]]:
    """Return the number of rows, and the columns whose times are rounded."""
    rows, rounded = 0, set[str]()
    names: dict[LineFile, set[str]] = {}
    for file in files:
        try:
            footer = read_footer(file.place if isinstance(file, LocalFile) else file.reader())
        except (pa.ArrowException, OSError) as error:
            what = (
                error.strerror
                if isinstance(error, OSError) and error.errno is not None
                else "it is damaged, cut or of another format"
            )
            raise SchemaError(
                f"{key}.path: '{table.path}': file {file.name} cannot be read as parquet: {what}; write it anew."
            ) from None
        rows += footer.rows
        rounded |= footer.rounded
        # Directories in a store are compared when the table is opened (named_columns).
        parts = file.key.split("/")[:-1] if isinstance(file, LocalFile) else ()
        below = {unquote(part.partition("=")[0]) for part in parts if "=" in part}
        names[file] = below | {*footer.types}
    every = set().union(*names.values())
    wanted = every if columns is None else every & set(columns)
    for file, there in names.items():
        lacking = sorted(wanted - there)
        if lacking and not merging:
            raise SchemaError(
                f"{key}.path: '{table.path}': file {file.name} has no column {listing([repr(c) for c in lacking])}, "
                "which other files of the table have; write it anew, or set table option mergeSchema: true to take the "
                "values as missing."
            )
    return rows, tuple(sorted(rounded))


def refuse_others(read: FilesRead, files: Collection[str], *, table: Table, key: str) -> None:
    """Refuse a table of which Spark reads other files than there are.

    Parameters
    ----------
    read : FilesRead
        As :func:`check_files` counted them.
    files : collection of str
        URIs, as Spark lists them.

    Raises
    ------
    SchemaError
        With both numbers, or the file.
    """
    if in_object_store(table):
        return  # tasks read what was listed
    if any(urlparse(uri).scheme != "file" for uri in files):
        return  # to Spark the path means another file system
    processed = {unquote(urlparse(uri).path) for uri in files}
    if len(processed) != read.expected:
        raise SchemaError(_others(f"{key}.path: '{table.path}'", read.expected, len(processed)))
    expected = {file.place for file in local_files(table)}
    if expected and processed != expected:
        others = {resolved(file) for file in processed} - {resolved(file) for file in expected}
        if others:
            raise SchemaError(
                f"{key}.path: '{table.path}': Spark reads '{min(others)}', which is no file of the table; give the "
                "table's absolute path."
            )
