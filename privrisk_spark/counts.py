"""Counting stage: distinct records and dictionary vectors by groupby, then ``ρ`` by one of two plans.

A count is written once to the run's scratch directory and mapped from there by every worker, so that a cube of any size
is held once per machine and never travels inside a task.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from uuid import uuid4

import numpy as np
import numpy.typing as npt
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses

from privrisk_spark import schemas
from privrisk_spark.errors import InputError
from privrisk_spark.hierarchy import Hierarchy
from privrisk_spark.kernels.counting import Axis, Counts, DenseCounts, SortedCounts, dense_cells
from privrisk_spark.policy import Counting, Policy, TableDictionary
from privrisk_spark.table import map_dictionary

Plan = Literal["dense", "sorted"]


@dataclass(frozen=True)
class PlanChoice:
    """The physical plan of counting and why.

    Attributes
    ----------
    plan : {"dense", "sorted"}
    cells : int
        Cells the dense plan would hold at once, at most.
    reason : str
        One sentence.
    """

    plan: Plan
    cells: int
    reason: str


@dataclass(frozen=True)
class StoredCounts:
    """A count in the scratch directory.

    Attributes
    ----------
    plan : {"dense", "sorted"}
    directory : str
        Holds one ``.npy`` file per array; must be readable by every worker.
    axes : tuple of Axis
    dictionary_rows : int
    token : str
        Identity of this count: a later one may lie in the same directory, and workers live on.
    """

    plan: Plan
    directory: str
    axes: tuple[Axis, ...]
    dictionary_rows: int
    token: str

    def load(self) -> Counts:
        """Map the arrays; once per process."""
        if self.token not in _LOADED:
            _LOADED.clear()
            _LOADED[self.token] = self._map()
        return _LOADED[self.token]

    def _map(self) -> Counts:
        def array(name: str) -> npt.NDArray[np.int64]:
            mapped: npt.NDArray[np.int64] = np.load(Path(self.directory) / f"{name}.npy", mmap_mode="r")
            return mapped

        if self.plan == "dense":
            offsets = tuple(np.ascontiguousarray(array(f"offset{i}")) for i in range(len(self.axes)))
            return DenseCounts(array("cube"), offsets, self.dictionary_rows)
        vectors = np.ascontiguousarray(array("vectors")).astype(np.int32)
        return SortedCounts.group(self.axes, vectors, np.ascontiguousarray(array("counts")))


_LOADED: dict[str, Counts] = {}


def axes(policy: Policy, hierarchies: Mapping[str, Hierarchy]) -> tuple[Axis, ...]:
    """Return each quasi-identifier as counting sees it, under the policy's dictionary and consistency."""
    dictionary = policy.dictionary
    known = dictionary.columns if isinstance(dictionary, TableDictionary) else hierarchies
    return tuple(
        Axis(
            at_depth=hierarchy.at_depth,
            ancestor=hierarchy.ancestor,
            consistency=dictionary.consistency,
            known=name in known,
            wildcard=policy.quasi_identifiers[name].nulls == "wildcard",
        )
        for name, hierarchy in hierarchies.items()
    )


def choose_plan(policy: Policy, hierarchies: Mapping[str, Hierarchy], axes_of_policy: Sequence[Axis]) -> PlanChoice:
    """Choose the plan from the hierarchies alone: dense whenever its cells fit the budget.

    Raises
    ------
    InputError
        If the policy forces ``dense`` and the cells do not fit.
    """
    counting: Counting = policy.counting
    cells = dense_cells(axes_of_policy, _possible_codes(policy, hierarchies))
    fits = cells <= counting.dense_cells
    budget = f"{cells:,} cells against a budget of {counting.dense_cells:,}"
    if counting.plan == "dense" and not fits:
        raise InputError(f"counting.plan: 'dense' needs {budget} (counting.dense_cells); use 'sorted' or 'auto'.")
    if counting.plan != "auto":
        return PlanChoice(counting.plan, cells, f"forced by counting.plan; dense would hold {budget}")
    if fits:
        return PlanChoice("dense", cells, f"the cube fits: {budget}")
    return PlanChoice("sorted", cells, f"the cube does not fit: {budget}")


def _possible_codes(policy: Policy, hierarchies: Mapping[str, Hierarchy]) -> list[npt.NDArray[np.int32]]:
    mappings = (
        map_dictionary(policy.dictionary, hierarchies) if isinstance(policy.dictionary, TableDictionary) else None
    )
    result = []
    for name, hierarchy in hierarchies.items():
        if mappings is None:
            codes = [*range(hierarchy.n_leaves), hierarchy.root]
        else:
            mapping = mappings[name]
            special = [hierarchy.root, hierarchy.n_nodes]
            if hierarchy.code_of_null < hierarchy.n_leaves:
                special.append(hierarchy.code_of_null)
            codes = [0] if mapping is None else [*mapping.nodes.values(), *special]
        result.append(np.unique(np.array(codes, dtype=np.int32)))
    return result


def vectors_of_table(encoded: DataFrame, k: int, n_weights: int) -> DataFrame:
    """Return VECTORS of the table: distinct records with their multiplicity."""
    return encoded.groupBy(*schemas.codes(k), *schemas.weights(n_weights)).agg(F.count("*").alias(schemas.N_ROWS))


def vectors_of_dictionary(dictionary: DataFrame) -> DataFrame:
    """Return VECTORS of the dictionary: distinct node vectors with their multiplicity."""
    return dictionary.groupBy(*dictionary.columns).agg(F.count("*").alias(schemas.N_ROWS))


def collect_vectors(
    vectors: DataFrame, names: Sequence[str], *, most: int
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """Collect distinct vectors to the driver, as the plans ``dense`` and ``sorted`` are allowed to.

    Parameters
    ----------
    vectors : DataFrame
        VECTORS.
    names : sequence of str
        Columns in axis order; one that is not there (an attribute the dictionary lacks) becomes zeros.
    most : int
        Largest number of vectors to accept.

    Returns
    -------
    vectors : ndarray of int32, shape (m, k)
        In lexicographic order, so that what follows does not depend on the engine's order.
    counts : ndarray of int64, shape (m,)

    Raises
    ------
    InputError
        If there are more than ``most``.
    """
    table = vectors.limit(most + 1).toArrow()
    if table.num_rows > most:
        raise InputError(
            f"counting.sorted_vectors: there are more than {most:,} distinct vectors; raise it if the driver has the "
            "memory, or use coarser hierarchies."
        )
    columns = [
        table.column(name).to_numpy().astype(np.int32)
        if name in table.column_names
        else np.zeros(table.num_rows, dtype=np.int32)
        for name in names
    ]
    order = np.lexsort(columns[::-1])
    matrix = np.column_stack(columns)[order] if columns else np.empty((table.num_rows, 0), dtype=np.int32)
    return matrix, table.column(schemas.N_ROWS).to_numpy()[order].astype(np.int64)


def to_dictionary_codes(vectors: npt.NDArray[np.int32], hierarchies: Mapping[str, Hierarchy]) -> npt.NDArray[np.int32]:
    """Leaf codes of the table as dictionary codes, for a table that is its own dictionary: ⊥ becomes the root."""
    result = vectors.copy()
    for i, hierarchy in enumerate(hierarchies.values()):
        result[:, i] = np.where(vectors[:, i] == hierarchy.n_leaves, hierarchy.root, vectors[:, i])
    return result


def count_and_store(
    plan: Plan,
    axes_of_policy: Sequence[Axis],
    vectors: npt.NDArray[np.int32],
    counts: npt.NDArray[np.int64],
    directory: Path,
) -> StoredCounts:
    """Count by the chosen plan and write the arrays to scratch."""
    directory.mkdir(parents=True, exist_ok=True)
    if plan == "dense":
        dense = DenseCounts.roll_up(axes_of_policy, vectors, counts)
        np.save(directory / "cube.npy", dense.cube)
        for i, offset in enumerate(dense.offsets):
            np.save(directory / f"offset{i}.npy", offset)
    else:
        np.save(directory / "vectors.npy", vectors)
        np.save(directory / "counts.npy", counts)
    return StoredCounts(plan, str(directory), tuple(axes_of_policy), int(counts.sum()), uuid4().hex)
