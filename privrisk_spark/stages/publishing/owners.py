"""Whose the released rows are: persons of released classes, and of their sensitive values.

Whose a row is, is in no file of a release. It is in MEMBERS, which were written as the rows were decided. So what the
files hold, rows by labels and values, is held against what MEMBERS hold of the same labels and values, and the persons
are those of MEMBERS. They are counted by grouping them anew, not by what the scheme was found with.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import Batches
from privrisk_spark.engine.number_texts import dictionary_of
from privrisk_spark.errors import InputError, InternalError
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.arrays import LongArray
from privrisk_spark.kernels.numeric.distinct import distinct_rows

PERSONS = "persons"
"""Column of numbers of persons."""


def collect_owners(
    members: Batches, hierarchies: Sequence[Hierarchy], released: pa.Table, *, value: str | None, most: int
) -> LongArray:
    """Count the persons of groups of released rows.

    Parameters
    ----------
    members : Batches
        MEMBERS of all released rows, with the values of the column.
    hierarchies : sequence of k Hierarchy
    released : pa.Table
        Groups as the files have them, each once: ``a<i>`` texts of the attributes, ``value`` if it is given, and their
        rows.
    value : str or None
        Column ``r<j>`` whose values tell groups apart; None: the texts alone do.
    most : int
        Groups that the driver may hold.

    Returns
    -------
    ndarray of int64, shape (m,)
        Distinct persons of each group, in the order of ``released``.

    Raises
    ------
    InputError
        If there are more groups than the driver may hold.
    InternalError
        If the members' rows are not those of the files.
    """
    k = len(hierarchies)
    names, labels = schemas.nodes(k), [f"a{i}" for i in range(k)]
    more = [] if value is None else [value]
    persons, rows = F.count_distinct(schemas.ENTITY).alias(PERSONS), F.sum(schemas.N_ROWS).alias(schemas.N_ROWS)
    found = members.frame().groupBy(*names, *more).agg(persons, rows).limit(most + 1).toArrow()
    if found.num_rows > most:
        raise InputError(f"counting.sorted_vectors: there are more than {most:,} released tuples; raise it.")
    columns = []
    for name, label, hierarchy in zip(names, labels, hierarchies, strict=True):
        of_nodes = pa.array(list(hierarchy.labels), pa.string()).take(found.column(name).combine_chunks())
        columns.append(_numbers(released.column(label), pa.chunked_array([of_nodes])))
    if value is not None:
        columns.append(_numbers(released.column(value), found.column(value)))
    # Groups of the files first, then those of the members.
    first, group = distinct_rows(columns)
    in_files, of_members = group[: released.num_rows], group[released.num_rows :]
    shown, decided, who = np.zeros((3, len(first)), dtype=np.int64)
    np.add.at(shown, in_files, released.column(schemas.N_ROWS).to_numpy())
    np.add.at(decided, of_members, found.column(schemas.N_ROWS).to_numpy())
    if (shown != decided).any():
        raise InternalError(
            "The persons of released rows are counted by what was decided, and its rows are not those of the files: "
            f"{np.count_nonzero(shown != decided):,} of {len(first):,} groups of labels and values differ."
        )
    who[of_members] = found.column(PERSONS).to_numpy()
    return who[in_files]


def _numbers(released: pa.ChunkedArray, members: pa.ChunkedArray) -> LongArray:
    """Number the values of two columns, one after the other, by their common distinct values; a missing one is one."""
    both = pa.chunked_array([*released.chunks, *members.cast(released.type).chunks], released.type)
    distinct, place = dictionary_of(both)
    number: LongArray = place.fill_null(len(distinct)).to_numpy(zero_copy_only=False).astype(np.int64)
    return number
