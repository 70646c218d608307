"""Counts of a dictionary as stages hand them on: arrays that tasks map, or vectors that stay distributed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses
from pyspark.sql import types as T  # noqa: N812

from privrisk_spark.engine import schemas
from privrisk_spark.errors import InputError
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.arrays import LongArray
from privrisk_spark.kernels.counting.cells import CellSpace
from privrisk_spark.kernels.counting.consistent import Axis, Counts, DenseCounts, SortedCounts
from privrisk_spark.kernels.disclosure.risk import Attacker, DictionaryRule
from privrisk_spark.planning.dictionaries import possible_codes
from privrisk_spark.policy.policy import Policy
from privrisk_spark.storage.part_files import map_array
from privrisk_spark.storage.parts import PartDirectory

Held = Literal["dense", "sorted"]
"""Plans whose count the driver holds."""


@dataclass(frozen=True)
class StoredCounts:
    """A count in the scratch directory.

    Attributes
    ----------
    plan : {"dense", "sorted"}
    directory : PartDirectory
        Holds one ``.npy`` file per array.
    token : str
        Identity of this count: a later one may lie in the same directory, and workers live on.
    population : str or None
        Digest of the people, where a scheme is held against them
        (:func:`privrisk_spark.engine.chains.population_digest`).
    """

    plan: Held
    directory: PartDirectory
    axes: tuple[Axis, ...]
    dictionary_rows: int
    token: str
    population: str | None = None

    def load(self) -> Counts:
        """Map the arrays; once per process."""
        with _LOADING:  # tasks of the embedded engine are threads of one process
            if self.token not in _LOADED:
                # Counts of earlier runs lie in directories that are gone.
                for token in [token for token, (directory, _) in _LOADED.items() if not directory.there()]:
                    del _LOADED[token]
                _LOADED[self.token] = (self.directory, self._map())
            return _LOADED[self.token][1]

    def _map(self) -> Counts:
        def array(name: str) -> npt.NDArray[np.int64]:
            return map_array(self.directory, f"{name}.npy")

        if self.plan == "dense":
            offsets = tuple(np.ascontiguousarray(array(f"offset{i}")) for i in range(len(self.axes)))
            monotone = all(axis.monotone for axis in self.axes)
            return DenseCounts(array("cube"), offsets, self.dictionary_rows, monotone)
        vectors = np.ascontiguousarray(array("vectors")).astype(np.int32)
        return SortedCounts.group(self.axes, vectors, np.ascontiguousarray(array("counts")))


_LOADED: dict[str, tuple[PartDirectory, Counts]] = {}
_LOADING = threading.Lock()


@dataclass(frozen=True)
class SpreadVectors:
    """A dictionary that stays distributed.

    Attributes
    ----------
    plan : {"shuffle", "iceberg"}
    vectors : DataFrame
        ``t<i>`` of the attributes it has, ``n_rows``; or ``entity`` instead, once per vector and person.
    dictionary_rows : int
        Rows, or persons.
    """

    plan: Literal["shuffle", "iceberg"]
    axes: tuple[Axis, ...]
    vectors: DataFrame
    dictionary_rows: int
    entities: bool = False


def not_held(key: str, plan: str) -> InputError:
    """Return the error for a dictionary whose count the driver does not hold."""
    return InputError(
        f"counting.plan: {key} takes '{plan}', and evaluating given decisions takes 'dense' or 'sorted'; raise "
        "counting.sorted_vectors if the driver has the memory, use coarser hierarchies, or count rows, not persons."
    )


def cell_space(spread: SpreadVectors, policy: Policy, hierarchies: Mapping[str, Hierarchy]) -> CellSpace:
    """Cells of the policy's one dictionary, which stays distributed."""
    return CellSpace.of(spread.axes, possible_codes(hierarchies, policy.dictionaries[0]))


Asked = Callable[[pa.Table], list[LongArray]]
"""Words of the cells that the records of a chunk look up."""

Found = Callable[[pa.Table, Counts], pa.Table]
"""What is found of the records of one chunk, by the counts of their cells."""


class AskedCounts(Protocol):
    """Distinct records in chunks, each with the counts of the cells it asks for."""

    def each(self, found: Found, schema: T.StructType) -> DataFrame:
        """Let every chunk meet its counts."""


class CountLookup(Protocol):
    """How records look up the counts of a dictionary that stays distributed: what counting hands to deciding."""

    @property
    def spread(self) -> SpreadVectors:
        """The dictionary."""

    @property
    def space(self) -> CellSpace:
        """Its cells."""

    def collect_marginals(self) -> list[LongArray]:
        """Collect ``ρ`` of every class of each attribute alone: k arrays, shape (n_classes_i,)."""

    def collect_asked(self, records: DataFrame, asked: Asked, *, again: bool) -> AskedCounts:
        """Bring distinct records together with the counts they ask for; ``again`` if those are read repeatedly."""


def own_vectors(records: DataFrame, axes: Sequence[Axis], *more: Column | str) -> DataFrame:
    """Return the dictionary's codes ``t<i>`` of a table that is its own dictionary: ⊥ becomes the root.

    Parameters
    ----------
    records : DataFrame
        Leaf codes ``q<i>``, resolved, and other columns.
    axes : sequence of k Axis
    *more : Column or str
        Columns that follow the codes.
    """
    leaf, node = schemas.codes(len(axes)), schemas.dictionary_codes(len(axes))
    columns = [
        F.when(F.col(q) == len(axis.ancestor) - 1, axis.root).otherwise(F.col(q)).alias(t)
        for q, t, axis in zip(leaf, node, axes, strict=True)
    ]
    return records.select(*columns, *more)


@dataclass(frozen=True)
class StoredAttacker:
    """The counts of every dictionary the attacker may know, as workers find them.

    Attributes
    ----------
    rule : {"bayes", "minimax"}
    """

    counts: tuple[StoredCounts, ...]
    rule: DictionaryRule
    prior: tuple[float, ...]

    @classmethod
    def of(cls, policy: Policy, counts: Sequence[StoredCounts]) -> StoredAttacker:
        """Put the counts of a policy's dictionaries together."""
        if policy.dictionary.kind == "minimax":
            return cls(tuple(counts), "minimax", ())
        return cls(tuple(counts), "bayes", tuple(one.prior for one in policy.dictionaries))

    def load(self) -> Attacker:
        """Map the counts; once per process."""
        return Attacker(tuple(counts.load() for counts in self.counts), self.rule, self.prior)
