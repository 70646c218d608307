"""Probabilistic record linkage in tasks: pairs counted by agreement pattern, and a file searched by match weight.

The order of steps: :func:`store_compared` writes the file in which is searched, :func:`collect_patterns` counts how it
agrees with what is known, or with a sample of it (:func:`~privrisk_spark.extensions.attack.stages.blocks.sampled`), a
model is
fitted to the counts, and :meth:`StoredComparisons.weighed` makes of the file and the model what
:func:`~privrisk_spark.extensions.attack.stages.distance.collect_links` searches, whole or in blocks.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal
from uuid import uuid4

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import PARTS, Batches, Scratch, read_ipc, report, write_ipc
from privrisk_spark.engine.decided import integers
from privrisk_spark.errors import InputError
from privrisk_spark.extensions.attack.kernels.agreement import Agreement, LevelAgreement, LostWeight, NumberAgreement
from privrisk_spark.extensions.attack.kernels.assignment import Owners
from privrisk_spark.extensions.attack.kernels.blocked import BlockedFile, ConsistentCells, PrincipalAxis
from privrisk_spark.extensions.attack.kernels.differences import Difference
from privrisk_spark.extensions.attack.kernels.fellegi_sunter import LEAST, LinkageModel
from privrisk_spark.extensions.attack.kernels.learned.aggregates import WeightedMean
from privrisk_spark.extensions.attack.kernels.learned.searched import Compared, all_distances
from privrisk_spark.extensions.attack.kernels.nearest import SearchedFile
from privrisk_spark.extensions.attack.kernels.optimal_rule import OptimalRule
from privrisk_spark.extensions.attack.kernels.patterns import ComparedFile, PatternCounts
from privrisk_spark.extensions.attack.kernels.term_frequencies import TermWeight, greatest_weight, rarest_of
from privrisk_spark.extensions.attack.stages.distance import DISTANCE, LoadedFile, slices
from privrisk_spark.extensions.attack.stages.protected import Tuples
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.arrays import FloatArray
from privrisk_spark.kernels.numeric.fold import folded
from privrisk_spark.kernels.recoding.listed import keys_of, places_of
from privrisk_spark.storage.part_files import map_array, write_array
from privrisk_spark.storage.parts import PartDirectory

CODE, N_PAIRS = "code", "pairs"

Class = Literal["linked", "clerical", "not linked"]
"""What a rule makes of a pair."""

SLACK = 1e-9
"""By which distances may differ that are of one match weight: what rounding adds."""


@dataclass(frozen=True, eq=False)
class LevelColumn:
    """A column compared by levels of its hierarchy.

    Attributes
    ----------
    near : tuple of int
        As :class:`~privrisk_spark.extensions.attack.kernels.agreement.LevelAgreement` takes them.
    frequencies : ndarray of float64, shape (n_nodes,), or None
        As :func:`~privrisk_spark.extensions.attack.kernels.term_frequencies.term_frequencies` returns them, where
        agreement on a
        rare value weighs more.
    """

    hierarchy: Hierarchy
    near: tuple[int, ...] = (1,)
    equal: bool = False
    frequencies: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class NumberColumn:
    """A column compared as a number.

    Attributes
    ----------
    low, high : ndarray of float64, shape (n_nodes,)
        As :func:`~privrisk_spark.extensions.attack.stages.number_ends.number_ends` returns them.
    within : tuple of float
        As :class:`~privrisk_spark.extensions.attack.kernels.agreement.NumberAgreement` takes them.
    """

    low: FloatArray
    high: FloatArray
    within: tuple[float, ...] = (0.0, 0.5)


@dataclass(frozen=True)
class StoredLevels:
    """How a column is compared, without its arrays: those of the hierarchy, or the ends of numbers.

    Attributes
    ----------
    bounds : tuple of float
        Depths of near values, or thresholds.
    rarest : float or None
        Least frequency of a value that occurs, where agreement is weighed by frequencies.
    """

    bounds: tuple[float, ...]
    number: bool
    equal: bool
    rarest: float | None = None


@dataclass(frozen=True)
class StoredComparisons:
    """A file with whose records others are compared, in the scratch directory.

    Attributes
    ----------
    directory : PartDirectory
        Holds one ``.npy`` file per array.
    token : str
        Identity: a later one may lie in the same directory, and workers live on.
    tuples : int
        Distinct ones in the file.
    columns : tuple of k StoredLevels
    levels : tuple of k int
        Agreement levels of each column.
    """

    directory: PartDirectory
    token: str
    tuples: int
    columns: tuple[StoredLevels, ...]
    levels: tuple[int, ...]

    def load(self) -> ComparedFile:
        """Map the arrays, once per process."""
        return _loaded_comparisons(self)

    def weighed(self, model: LinkageModel) -> StoredWeights:
        """Return the same file, to be searched for the greatest match weights."""
        u = tuple(max(one[0], LEAST) for one in model.u)
        greatest = tuple(
            greatest_weight(weights, agree, column.rarest)
            for weights, agree, column in zip(model.weights, u, self.columns, strict=True)
        )
        return StoredWeights(self, model.weights, u, greatest)


@dataclass(frozen=True)
class StoredWeights:
    """A file in which the records of greatest match weight are searched: a ``Searched`` of distance-based linkage.

    Its distance is what the match weight lacks of the greatest one there is, in bits, over the columns.

    Attributes
    ----------
    weights : tuple of k (tuple of float)
        Of each level of each column, as :attr:`LinkageModel.weights`.
    u, greatest : tuple of k float
        Probability of agreement among pairs of two people, and the greatest weight of a pair of cells, of each column.
    blocks : ConsistentCells, PrincipalAxis or None
        With which of its tuples each record is compared; None with all. There is no axis of match weights.
    """

    compared: StoredComparisons
    weights: tuple[tuple[float, ...], ...]
    u: tuple[float, ...]
    greatest: tuple[float, ...]
    blocks: ConsistentCells | PrincipalAxis | None = None

    @property
    def tuples(self) -> int:
        """Distinct ones in the file."""
        return self.compared.tuples

    def load(self) -> LoadedFile:
        """Map the arrays, once per process."""
        return _loaded_weights(self)

    def weights_at(self, distance: FloatArray) -> FloatArray:
        """Match weights of pairs at some distances, in bits; inverse of how distances are made of them."""
        return np.asarray(sum(self.greatest) - len(self.weights) * distance)

    def distance_at(self, weight: float) -> float:
        """Distance of pairs of a match weight in bits; inverse of :meth:`weights_at`."""
        return (sum(self.greatest) - weight) / len(self.weights)


def in_class(pairs: DataFrame, file: StoredWeights, rule: OptimalRule, name: Class) -> DataFrame:
    """Choose the records whose best candidate is in one of the classes of a rule without coins.

    Parameters
    ----------
    pairs : DataFrame
        :data:`~privrisk_spark.extensions.attack.stages.distance.OUTCOMES`.
    file : StoredWeights
        In which was searched.
    name : {"linked", "clerical", "not linked"}
    """
    upper, lower = (F.lit(file.distance_at(weight)) for weight in (rule.upper, rule.lower))
    slack = F.lit(SLACK)
    linked = F.col(DISTANCE) <= upper + (slack if rule.linked_at_upper == 1 else -slack)
    apart = F.col(DISTANCE) >= lower - (slack if rule.apart_at_lower == 1 else -slack)
    chosen = {"linked": linked, "clerical": ~linked & ~apart, "not linked": apart & ~linked}
    return pairs.where(chosen[name])


@functools.lru_cache(maxsize=4)
def _loaded_comparisons(stored: StoredComparisons) -> ComparedFile:
    def array(name: str) -> np.ndarray:
        return np.ascontiguousarray(map_array(stored.directory, f"{name}.npy"))

    agreements: list[Agreement] = []
    for j, one in enumerate(stored.columns):
        nodes = array(f"nodes{j}")
        if one.number:
            agreements.append(NumberAgreement(array(f"low{j}"), array(f"high{j}"), nodes, one.bounds))
        else:
            near = tuple(int(depth) for depth in one.bounds)
            agreements.append(LevelAgreement(array(f"at_depth{j}"), nodes, near, one.equal))
    return ComparedFile(tuple(agreements), array("cells"), array("rows"))


@functools.lru_cache(maxsize=4)
def _loaded_weights(stored: StoredWeights) -> LoadedFile:
    compared, directory = stored.compared.load(), stored.compared.directory
    lost: list[Difference] = []
    for j, (agreement, weights) in enumerate(zip(compared.agreements, stored.weights, strict=True)):
        if isinstance(agreement, LevelAgreement) and stored.compared.columns[j].rarest is not None:
            frequencies = np.ascontiguousarray(map_array(directory, f"frequencies{j}.npy"))
            lost.append(TermWeight(agreement, weights, stored.u[j], frequencies))
        else:
            lost.append(LostWeight(agreement, weights))
    k = len(lost)
    file = SearchedFile(tuple(lost), np.full(k, 1 / k), compared.cells, compared.rows)
    nodes, present = (np.ascontiguousarray(map_array(directory, f"{name}.npy")) for name in ("nodes", "present"))
    blocked = None if stored.blocks is None else BlockedFile(file, stored.blocks)
    return LoadedFile(file, nodes, keys_of(nodes), present, blocked)


def store_compared(
    directory: PartDirectory, tuples: Tuples, columns: Sequence[LevelColumn | NumberColumn], present: FloatArray
) -> StoredComparisons:
    """Write a file where tasks map it and compare records with it.

    Parameters
    ----------
    tuples : Tuples
        In which is searched.
    columns : sequence of k LevelColumn or NumberColumn
        How each is compared.
    present : ndarray of float64, shape (p,)
        Probability that somebody with the form of each tuple is in the file.

    Raises
    ------
    InputError
        If levels are out of order, or are too many.
    """
    cells, agreements, levels = np.empty(tuples.nodes.shape, dtype=np.int32), [], []
    arrays: dict[str, np.ndarray] = {}
    for j, column in enumerate(columns):
        nodes, place = np.unique(tuples.nodes[:, j], return_inverse=True)
        cells[:, j], arrays[f"nodes{j}"] = place.reshape(-1), nodes
        agreement: Agreement
        if isinstance(column, NumberColumn):
            arrays[f"low{j}"], arrays[f"high{j}"] = column.low, column.high
            agreement = NumberAgreement(column.low, column.high, nodes, column.within)
            levels.append(StoredLevels(column.within, True, False))
        else:
            arrays[f"at_depth{j}"] = column.hierarchy.at_depth
            agreement = LevelAgreement(column.hierarchy.at_depth, nodes, column.near, column.equal)
            rarest = None
            if column.frequencies is not None:
                arrays[f"frequencies{j}"] = column.frequencies
                rarest = rarest_of(column.frequencies)
            levels.append(StoredLevels(column.near, False, column.equal, rarest))
        agreements.append(agreement)
    compared = ComparedFile(tuple(agreements), cells, tuples.rows)
    arrays |= {"cells": cells, "nodes": tuples.nodes, "rows": tuples.rows, "present": present}
    for name, array in arrays.items():
        write_array(array, directory, f"{name}.npy")
    return StoredComparisons(directory, uuid4().hex, len(tuples.rows), tuple(levels), compared.levels)


def collect_patterns(scratch: Scratch, stored: StoredComparisons, known: Tuples, name: str) -> PatternCounts:
    """Count all pairs of what is known and the rows of a file by agreement pattern, in tasks.

    Parameters
    ----------
    known : Tuples
        Each counts as often as it has rows.
    name : str
        Of the directories.

    Returns
    -------
    PatternCounts
        The same however the known tuples are divided.
    """
    at, directory = scratch.directory(f"compared-{name}"), scratch.directory(f"patterns-{name}")
    write_array(known.nodes, at, "nodes.npy")
    write_array(known.rows, at, "rows.npy")

    def count(part: tuple[int, int]) -> Iterator[pa.Table]:
        nodes, rows = (np.ascontiguousarray(map_array(at, f"{of}.npy")[slice(*part)]) for of in ("nodes", "rows"))
        found = stored.load().counted(nodes, rows)
        told = pa.table({CODE: pa.array(found.code, pa.int64()), N_PAIRS: pa.array(found.pairs, pa.int64())})
        yield report(write_ipc(told, directory), {})

    counted = Batches.of_parts(scratch.spark, slices(len(known.nodes), stored.tuples), count, PARTS)
    tables = [read_ipc(directory, part["name"]) for part in scratch.collect_parts(counted)]
    parts = (
        PatternCounts.of(table.column(CODE).to_numpy(), table.column(N_PAIRS).to_numpy(), stored.levels)
        for table in tables
    )
    return folded(PatternCounts.empty(stored.levels), parts)


def collect_owners(records: Batches, known: Tuples, rows: Tuples, *, most: int) -> Owners:
    """Count the people of each pair of distinct tuples: what is known of them, and their own rows.

    Parameters
    ----------
    records : Batches
        People beside their protected forms.
    known, rows : Tuples
        Of the people, and of the protected table. Who is in one of them alone is nobody's pair.
    most : int
        Pairs that the driver may hold.

    Raises
    ------
    InputError
        If there are more.
    """
    k = known.nodes.shape[1]
    codes, nodes = schemas.codes(k), schemas.nodes(k)
    counted = records.frame().groupBy(*codes, *nodes).agg(F.count("*").alias(schemas.N_ROWS))
    told = counted.limit(most + 1).toArrow()
    if told.num_rows > most:
        raise InputError(
            f"counting.sorted_vectors: people and their own rows are more than {most:,} distinct pairs; raise it."
        )
    mine = places_of(keys_of(known.nodes), integers(told, codes))
    theirs = places_of(keys_of(rows.nodes), integers(told, nodes))
    there = (mine >= 0) & (theirs >= 0)
    persons = told.column(schemas.N_ROWS).to_numpy().astype(np.int64)[there]
    order = np.lexsort([theirs[there], mine[there]])
    return Owners(mine[there][order], theirs[there][order], persons[order])


def match_weights(file: StoredWeights, known: Tuples) -> FloatArray:
    """Return the match weights of all distinct known tuples with all of a file, in bits, shape (m, p)."""
    searched = file.load().file
    compared = Compared.of(searched.differences, list(searched.cells.T), known.nodes)
    return file.weights_at(all_distances(WeightedMean(searched.weights), compared))
