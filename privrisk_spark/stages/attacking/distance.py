"""Distance-based record linkage in tasks: people to the nearest rows, or rows to the nearest people."""

from __future__ import annotations

import datetime as dt
import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from uuid import uuid4

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses
from pyspark.sql import types as T  # noqa: N812

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import Batches, grouped, in_chunks, map_array, write_array
from privrisk_spark.engine.decided import integers
from privrisk_spark.errors import InputError
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.arrays import FloatArray, LongArray
from privrisk_spark.kernels.linkage.differences import (
    Difference,
    LevelDifference,
    NumberDifference,
    Reading,
    standard_units,
)
from privrisk_spark.kernels.linkage.nearest import Linked, SearchedFile
from privrisk_spark.kernels.recoding.listed import keys_of, places_of
from privrisk_spark.stages.attacking.protected import CONSISTENT, Tuples
from privrisk_spark.storage.parts import PartDirectory

DISTANCE, TIED, NEAR, ALIKE, PRESENT = "distance", "tied_rows", "own_row_is_nearest", "rows_alike", "present"

OUTCOMES = T.StructType(
    [
        T.StructField(schemas.RECORD_ID, T.StringType()),
        T.StructField(DISTANCE, T.DoubleType(), False),
        T.StructField(TIED, T.LongType(), False),
        T.StructField(NEAR, T.BooleanType(), False),
        T.StructField(ALIKE, T.LongType(), False),
        T.StructField(PRESENT, T.DoubleType(), False),
        T.StructField(CONSISTENT, T.LongType()),
    ]
)
"""One row a record: the least distance, the rows of the file at it, whether its own is one of them, the rows that look
like its own, the probability that it is in the file at all, and the dictionary rows it was decided by."""


def drawn(records: Batches, *, share: float, seed: int) -> Batches:
    """Draw records by their ids, the same ones however they are partitioned.

    Parameters
    ----------
    records : Batches
        With ``record_id``.
    share : float
        In (0, 1].
    seed : int
    """
    if share >= 1:
        return records
    hashed = F.xxhash64(schemas.RECORD_ID, F.lit(seed))
    return Batches.of_frame(records.frame().where(F.pmod(hashed, F.lit(2**40)) < F.lit(int(share * 2**40))))


def numbers_of(name: str, hierarchy: Hierarchy) -> FloatArray:
    """Numbers that the leaves of a hierarchy are, or dates in days; NaN is the leaf of missing values.

    Returns
    -------
    ndarray of float64, shape (n_leaves,)

    Raises
    ------
    InputError
        If one is neither.
    """
    found = np.full(hierarchy.n_leaves, np.nan)
    for leaf, label in enumerate(hierarchy.labels[: hierarchy.n_leaves]):
        if label is None:
            continue
        try:
            found[leaf] = float(label)
        except ValueError:
            try:
                found[leaf] = dt.date.fromisoformat(label).toordinal()
            except ValueError:
                raise InputError(
                    f"attack.numbers: every value of the hierarchy of '{name}' must be a number or a date YYYY-MM-DD; "
                    "leave it out to compare by levels."
                ) from None
    return found


def number_ends(name: str, hierarchy: Hierarchy, rows_of_node: LongArray) -> tuple[FloatArray, FloatArray]:
    """Ends of what each node of a hierarchy of numbers stands for, in standard deviations of the people's values.

    Parameters
    ----------
    name : str
    hierarchy : Hierarchy
    rows_of_node : ndarray of int64, shape (n_nodes,)
        People with each node as their value.

    Returns
    -------
    low, high : ndarray of float64, shape (n_nodes,)
        Infinite of the root, which stands for every number.
    """
    numbers = numbers_of(name, hierarchy)
    _, deviation = standard_units(numbers, rows_of_node[: hierarchy.n_leaves])
    low, high = np.full(hierarchy.n_nodes, -np.inf), np.full(hierarchy.n_nodes, np.inf)
    for node in range(hierarchy.n_nodes - 1):
        under = numbers[hierarchy.first_leaf[node] : hierarchy.last_leaf[node]] / deviation
        low[node], high[node] = under.min(), under.max()
    return low, high


@dataclass(frozen=True)
class StoredFile:
    """A file in which is searched, in the scratch directory, as tasks compare records with it.

    Attributes
    ----------
    directory : PartDirectory
        Holds one ``.npy`` file per array.
    token : str
        Identity: a later one may lie in the same directory, and workers live on.
    numbers : tuple of k bool
        Which columns are compared as numbers.
    reading : {"nearest", "uniform", "midpoint"}
        What generalized cells are taken for.
    """

    directory: PartDirectory
    token: str
    numbers: tuple[bool, ...]
    reading: Reading

    def load(self) -> tuple[SearchedFile, Tuples, FloatArray]:
        """Map the arrays, once per process: the file, its tuples, and how probably somebody of each is in it."""
        return _loaded(self)


@functools.lru_cache(maxsize=4)
def _loaded(stored: StoredFile) -> tuple[SearchedFile, Tuples, FloatArray]:
    def array(name: str) -> np.ndarray:
        return np.ascontiguousarray(map_array(stored.directory, f"{name}.npy"))

    differences: list[Difference] = []
    for j, number in enumerate(stored.numbers):
        of, nodes = ("low", "high") if number else ("at_depth", "leaves"), array(f"nodes{j}")
        kind = NumberDifference if number else LevelDifference
        differences.append(kind(array(f"{of[0]}{j}"), array(f"{of[1]}{j}"), nodes, stored.reading))
    rows = array("rows")
    file = SearchedFile(tuple(differences), array("weights"), array("cells"), rows)
    return file, Tuples(array("nodes"), rows), array("present")


@dataclass(frozen=True, eq=False)
class Comparison:
    """How records are compared.

    Attributes
    ----------
    hierarchies : tuple of k Hierarchy
        Of the known columns.
    weights : tuple of k float
        At least 0, and of sum 1.
    ends : tuple of k (pair of ndarray of float64, or None)
        Of the columns compared as numbers, what their nodes stand for, as :func:`number_ends` returns it.
    """

    hierarchies: tuple[Hierarchy, ...]
    weights: tuple[float, ...]
    ends: tuple[tuple[FloatArray, FloatArray] | None, ...]


def store_file(
    directory: PartDirectory, tuples: Tuples, compared: Comparison, present: FloatArray, *, reading: Reading
) -> StoredFile:
    """Write a file in which is searched where tasks map it.

    Parameters
    ----------
    directory : PartDirectory
    tuples : Tuples
    compared : Comparison
    present : ndarray of float64, shape (p,)
        Probability that somebody with the form of each tuple is in the file.
    reading : {"nearest", "uniform", "midpoint"}
        What generalized cells are taken for.
    """
    cells = np.empty(tuples.nodes.shape, dtype=np.int32)
    arrays: dict[str, np.ndarray] = {}
    for j, (hierarchy, ends) in enumerate(zip(compared.hierarchies, compared.ends, strict=True)):
        arrays[f"nodes{j}"], place = np.unique(tuples.nodes[:, j], return_inverse=True)
        cells[:, j] = place.reshape(-1)
        if ends is None:
            arrays[f"at_depth{j}"], arrays[f"leaves{j}"] = hierarchy.at_depth, hierarchy.n_under
        else:
            arrays[f"low{j}"], arrays[f"high{j}"] = ends
    arrays |= {"cells": cells, "nodes": tuples.nodes, "rows": tuples.rows, "present": present}
    arrays["weights"] = np.array(compared.weights, dtype=np.float64)
    for name, array in arrays.items():
        write_array(array, directory, f"{name}.npy")
    return StoredFile(directory, uuid4().hex, tuple(ends is not None for ends in compared.ends), reading)


def rows_of_nodes(tuples: Tuples, position: int, hierarchy: Hierarchy) -> LongArray:
    """People with each node of a column as their value; ndarray of int64, shape (n_nodes,)."""
    rows = np.zeros(hierarchy.n_nodes, dtype=np.int64)
    np.add.at(rows, tuples.nodes[:, position], tuples.rows)
    return rows


def linked(
    records: Batches,
    stored: StoredFile,
    *,
    known: Sequence[str],
    own: Sequence[str],
    among: StoredFile | None = None,
) -> Batches:
    """Link records to the nearest ones of a file, and say whether their own is among these.

    Parameters
    ----------
    records : Batches
        People beside their protected forms.
    stored : StoredFile
    known : sequence of k str
        Columns of what is known of each.
    own : sequence of k str
        Columns of its own record in the file.
    among : StoredFile, optional
        Only what this file has is known: records whose known tuple it lacks are left out.

    Returns
    -------
    Batches
        :data:`OUTCOMES`.
    """

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for chunk in in_chunks(tables):
            table = chunk
            if among is not None:
                _, there_are, _ = among.load()
                table = table.filter(pa.array(places_of(keys_of(there_are.nodes), integers(table, known)) >= 0))
            if not table.num_rows:
                continue
            file, tuples, present = stored.load()
            place = places_of(keys_of(tuples.nodes), integers(table, own))
            columns = [table.column(name).to_numpy() for name in known]
            first, member = grouped([*columns, place])
            value, of = grouped([column[first] for column in columns])
            distinct = np.column_stack([column[first] for column in columns]).astype(np.int32)
            found = file.linked(distinct[value])
            each = Linked(found.distance[of], found.rows[of])
            near = file.holds(distinct, place[first], each)
            there = place >= 0
            told = {
                schemas.RECORD_ID: table.column(schemas.RECORD_ID),
                DISTANCE: each.distance[member],
                TIED: each.rows[member],
                NEAR: near[member],
                ALIKE: np.where(there, tuples.rows[place], 0),
                PRESENT: np.where(there, present[place], 0.0),
                CONSISTENT: table.column(CONSISTENT),
            }
            yield pa.table(told)

    return records.then(step, OUTCOMES)


@dataclass(frozen=True, eq=False)
class Outcomes:
    """How the links of all records came out, those that came out alike together.

    Attributes
    ----------
    people : ndarray of int64, shape (n,)
    probability : ndarray of float64, shape (n,)
        That the link of each is right.
    alike : ndarray of int64, shape (n,)
        Rows of the file that look like its own; 0 where the file lacks it.
    consistent : ndarray of int64, shape (n,)
        Dictionary rows it was decided by; -1 where that is not known.
    """

    people: LongArray
    probability: FloatArray
    alike: LongArray
    consistent: LongArray


def collect_outcomes(outcomes: Batches) -> Outcomes:
    """Count the records whose links came out alike.

    Parameters
    ----------
    outcomes : Batches
        :data:`OUTCOMES`.
    """
    names = (TIED, NEAR, ALIKE, PRESENT, CONSISTENT)
    counted = outcomes.frame().groupBy(*names).agg(F.count("*").alias(schemas.N_ROWS)).toArrow()
    found = counted.sort_by([(name, "ascending") for name in names])
    near, tied = found.column(NEAR).to_numpy(), found.column(TIED).to_numpy()
    return Outcomes(
        found.column(schemas.N_ROWS).to_numpy().astype(np.int64),
        np.where(near, found.column(PRESENT).to_numpy() / tied, 0.0),
        found.column(ALIKE).to_numpy().astype(np.int64),
        found.column(CONSISTENT).fill_null(-1).to_numpy().astype(np.int64),
    )
