"""Publishing: release frames become files in a canonical order, and files become a release by renaming.

Layout of an output directory::

    manifest.json                  the current release; replaced atomically, last of all
    releases/<run id>/manifest.json    a release exists iff this file does
    releases/<run id>/data/part-00000.parquet …    or data/<column>=<value>/part-00000.parquet …
    releases/<run id>/checks.json, dictionary.json, report.html

A crash leaves the old release or the new one, never a mixture; staging directories of dead runs are swept by the next.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses
from pyspark.sql import types as T  # noqa: N812

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import (
    CHUNK_ROWS,
    PARTS,
    Batches,
    broadcast_small,
    compact,
    in_chunks,
    part_name,
    report,
    together,
    write_no_rows,
)
from privrisk_spark.engine.schemas import node_labels
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.policy.policy import Output, Policy
from privrisk_spark.stages.publishing.directories import Directories, stretches
from privrisk_spark.stages.publishing.row_order import FILE
from privrisk_spark.storage.directories import move
from privrisk_spark.storage.documents import size_and_digest, sync
from privrisk_spark.storage.parts import PartDirectory

ROWS_PER_FILE = 1_000_000


def labelled(canonical: Batches, policy: Policy, hierarchies: Mapping[str, Hierarchy]) -> Batches:
    """Return RELEASE: labels in place of nodes, every tuple as often as it stands, and nothing else.

    The first column, the number of the file, is not released.

    Parameters
    ----------
    canonical : Batches
        As :func:`privrisk_spark.stages.publishing.row_order.ordered` returns it; order is kept.
    hierarchies : mapping of attribute to Hierarchy
    """
    kinds = {field.name: field.dataType for field in canonical.schema.fields}
    sources = dict(zip(policy.kept_columns, schemas.released(len(policy.kept_columns)), strict=True))
    nodes = dict(zip(hierarchies, schemas.nodes(len(hierarchies)), strict=True))
    labels = {name: np.array(hierarchy.labels, dtype=object) for name, hierarchy in hierarchies.items()}
    names = [name for name in policy.columns if name in nodes or name in sources]

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in in_chunks(tables):
            ends = np.cumsum(table.column(schemas.N_ROWS).to_numpy())
            values = {
                name: _labels(table.column(nodes[name]), labels[name])
                if name in nodes
                else _encoded(table.column(sources[name]))
                for name in names
            }
            file = table.column(FILE)
            # A tuple may stand more often than fits at once.
            for begin in range(0, int(ends[-1]), CHUNK_ROWS):
                rows = np.arange(begin, min(begin + CHUNK_ROWS, int(ends[-1])))
                place = pa.array(np.searchsorted(ends, rows, side="right"))
                yield pa.table([column.take(place) for column in (file, *values.values())], names=[FILE, *names])

    fields = [T.StructField(FILE, T.IntegerType())]
    fields += [T.StructField(name, T.StringType() if name in nodes else kinds[sources[name]]) for name in names]
    return canonical.then(step, T.StructType(fields))


def _labels(nodes: pa.ChunkedArray, labels: npt.NDArray[np.object_]) -> pa.Array:
    """Labels of nodes, null for a node without one; only those that occur, and each once.

    Of a dictionary in which a value stands twice, Parquet writes memory it never filled.
    """
    codes = nodes.to_numpy()
    present = np.zeros(len(labels), dtype=np.bool_)
    present[codes] = True
    present &= np.array([label is not None for label in labels])
    distinct, number = np.unique(labels[present], return_inverse=True)
    place = np.full(len(labels), -1, dtype=np.int32)
    place[present] = number
    place = place[codes]
    return pa.DictionaryArray.from_arrays(pa.array(place, mask=place < 0), pa.array(distinct, pa.string()))


def _encoded(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Texts by their distinct values, so that repeating a row repeats a number."""
    return values.dictionary_encode() if pa.types.is_string(values.type) else values


def parquet_files(release: Batches, directory: PartDirectory, partition_by: Sequence[str] = ()) -> Batches:
    """Write RELEASE as Parquet, one file a task with rows, or one a directory of it, and return PARTS.

    Row groups hold exactly :data:`CHUNK_ROWS` rows each but the last of a file, however the rows come.

    Parameters
    ----------
    partition_by : sequence of str
        Columns that are not in the files; rows in which they are equal come together.

    Raises
    ------
    InputError
        In a task, if a value is no name of a directory, or they are too many.
    """

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        directories = Directories(tuple(partition_by))
        for (number, *names), rows in groupby(_pieces(tables, partition_by), key=itemgetter(0)):
            place = directories.place(names)
            name = part_name("parquet")
            _write_rows((piece for _, piece in rows), directory, name)
            yield report(name, {"file": number, "directory": place})

    return release.then(step, PARTS)


def _pieces(tables: Iterable[pa.Table], partition_by: Sequence[str]) -> Iterator[tuple[tuple[Any, ...], pa.Table]]:
    """Rows as they come, cut where a value changes that is not written, with the file's number and these values."""
    for table in tables:
        number = table.column(FILE)[0].as_py()
        bare = table.drop_columns([FILE, *partition_by])
        for begin, end, values in stretches([table.column(name) for name in partition_by], table.num_rows):
            yield (number, *values), _narrowed(bare.slice(begin, end - begin))


def _narrowed(piece: pa.Table) -> pa.Table:
    """A piece of a table without the values of all others: what it costs must not grow with how many there are."""
    for i, column in enumerate(piece.schema):
        if pa.types.is_dictionary(column.type) and piece.num_rows:
            held = piece.column(i)
            if len(held.chunk(0).dictionary) > piece.num_rows:
                piece = piece.set_column(i, column.name, held.cast(column.type.value_type).dictionary_encode())
    return piece


def _write_rows(tables: Iterable[pa.Table], directory: PartDirectory, name: str) -> None:
    """Write a file of the tables, of which there is one at least."""
    held: list[pa.Table] = []
    rows = 0
    with ExitStack() as opened:
        writer = None

        def flush(upto: int) -> None:
            nonlocal held, rows
            assert writer is not None
            whole = together(held)
            # Sliced before its dictionaries are made small: the bytes must not show how rows came.
            writer.write_table(compact(whole.slice(0, upto)), row_group_size=CHUNK_ROWS)
            held, rows = [whole.slice(upto)], rows - upto

        for table in tables:
            if writer is None:
                path = opened.enter_context(directory.writing(name))
                # Without Arrow's own metadata a reader sees plain columns.
                writer = opened.enter_context(pq.ParquetWriter(path, table.schema, store_schema=False))
            held.append(table)
            rows += table.num_rows
            while rows >= CHUNK_ROWS:
                flush(CHUNK_ROWS)
        if rows:
            flush(rows)


def with_labels(classes: DataFrame, hierarchies: Mapping[str, Hierarchy]) -> DataFrame:
    """Nodes ``n<i>`` replaced by labels under the attributes' names; other columns follow.

    Another column of an attribute's name is named with ``_`` after it.
    """
    more = [name for name in classes.columns if name not in schemas.nodes(len(hierarchies))]
    named = classes
    for i, hierarchy in enumerate(hierarchies.values()):
        lookup = node_labels(classes.sparkSession, hierarchy)
        lookup = lookup.select(F.col("node").alias(f"node{i}"), F.col("label").alias(f"label{i}"))
        named = named.join(broadcast_small(lookup, hierarchy.n_nodes), F.col(f"n{i}") == F.col(f"node{i}"), "left")
    labels = [F.col(f"label{i}").alias(attribute) for i, attribute in enumerate(hierarchies)]
    taken, others = {*hierarchies}, []
    for name in more:
        free = name
        while free in taken:
            free += "_"
        taken.add(free)
        others.append(F.col(name).alias(free))
    return named.select(*labels, *others)


def files_for(output: Output, rows: int) -> int:
    """Return the number of data files: the policy's, or one per million rows."""
    return output.files or max(1, -(-rows // ROWS_PER_FILE))


def write_empty(release: Batches, directory: PartDirectory) -> str:
    """Write a Parquet file with the columns of RELEASE and no rows; return its name."""
    fields = [field for field in release.schema.fields if field.name != FILE]
    return write_no_rows(release.base.sparkSession, T.StructType(fields), directory)


def name_files(
    parts: PartDirectory, order: Sequence[str], directory: Path, kind: str, places: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Take the files that count to a directory made for them, under their fixed names.

    What else tasks left, or a late one still leaves, stays behind.

    Parameters
    ----------
    parts : PartDirectory
        Where tasks wrote them.
    order : sequence of str
        The files, in the order of their numbers.
    kind : str
        Suffix.
    places : sequence of str
        Directory of each file below ``directory``, in which files are numbered by themselves; by default they are in
        it.

    Returns
    -------
    list of dict
        ``name``, ``bytes`` and ``sha256`` of each file.
    """
    parts.take(order, directory)
    entries = []
    within: Counter[str] = Counter()
    for name, place in zip(order, places or [""] * len(order), strict=True):
        target = directory / place / f"part-{within[place]:05d}.{kind}"
        within[place] += 1
        move(directory / name, target)
        sync(target)
        size, digest = size_and_digest(target)
        called = target.relative_to(directory).as_posix()
        entries.append({"name": called, "bytes": size, "sha256": digest})
    return entries
