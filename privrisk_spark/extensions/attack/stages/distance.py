"""Distance-based record linkage in tasks: people to the nearest rows, or rows to the nearest people."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, Protocol
from uuid import uuid4

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses
from pyspark.sql import types as T  # noqa: N812

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import PARTS, Batches, Scratch, grouped, in_chunks, read_ipc, report, write_ipc
from privrisk_spark.engine.decided import integers
from privrisk_spark.extensions.attack.kernels.blocked import BlockedFile, ConsistentCells, PrincipalAxis
from privrisk_spark.extensions.attack.kernels.differences import Difference, LevelDifference, NumberDifference, Reading
from privrisk_spark.extensions.attack.kernels.evidence import Outcomes
from privrisk_spark.extensions.attack.kernels.nearest import Linked, SearchedFile
from privrisk_spark.extensions.attack.kernels.texts import TextDifference
from privrisk_spark.extensions.attack.stages.number_ends import NumberEnds
from privrisk_spark.extensions.attack.stages.protected import CONSISTENT, Tuples
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.arrays import BoolArray, FloatArray, IntArray, LongArray
from privrisk_spark.kernels.recoding.listed import Keys, keys_of, places_of
from privrisk_spark.storage.part_files import map_array, write_array
from privrisk_spark.storage.parts import PartDirectory

DISTANCE, TIED, NEAR, ALIKE, PRESENT = "distance", "tied_rows", "own_row_is_nearest", "rows_alike", "present"
BEGUN = "begun"

PLACE, FIRST, OPEN = "place", "first", "open"
"""Of stored links: which of the known tuples, the first candidate, and the people who may have a nearer one."""

Kind = Literal["levels", "number", "text"]
"""How the cells of a column are compared."""

SLICES, PAIRS = 64, 2**22
"""Tasks in which tuples are linked, at most, and pairs of tuples that are worth one; does not change a result."""

OUTCOMES = T.StructType(
    [
        T.StructField(schemas.RECORD_ID, T.StringType()),
        T.StructField(DISTANCE, T.DoubleType(), False),
        T.StructField(TIED, T.LongType(), False),
        T.StructField(NEAR, T.BooleanType(), False),
        T.StructField(ALIKE, T.LongType(), False),
        T.StructField(PRESENT, T.DoubleType(), False),
        T.StructField(BEGUN, T.DoubleType(), False),
        T.StructField(CONSISTENT, T.LongType()),
    ]
)
"""One row a record: the least distance, the rows of the file at it, whether its own is one of them, the rows that look
like its own, the probability that it is in the file at all, that the intruder begins with it, and the dictionary rows
it was decided by."""


def drawn(records: Batches, *, share: float, seed: int) -> Batches:
    """Draw records by their ids, the same ones however they are partitioned.

    Parameters
    ----------
    records : Batches
        With ``record_id``; or with ``entity``, so that persons are drawn with all of their rows.
    share : float
        In (0, 1].
    """
    if share >= 1:
        return records
    frame = records.frame()
    hashed = F.xxhash64(schemas.ENTITY if schemas.ENTITY in frame.columns else schemas.RECORD_ID, F.lit(seed))
    return Batches.of_frame(frame.where(F.pmod(hashed, F.lit(2**40)) < F.lit(int(share * 2**40))))


@dataclass(frozen=True)
class StoredFile:
    """A file in which is searched, in the scratch directory, as tasks compare records with it.

    Attributes
    ----------
    directory : PartDirectory
        Holds one ``.npy`` file per array.
    token : str
        Identity: a later one may lie in the same directory, and workers live on.
    tuples : int
        Distinct ones in the file.
    kinds : tuple of k {"levels", "number", "text"}
        How each column is compared.
    reading : {"nearest", "uniform", "midpoint"}
        What generalized cells are taken for.
    blocks : ConsistentCells, PrincipalAxis or None
        With which of its tuples each record is compared; None with all.
    own_ends : bool
        Whether known numbers have other ends than those of the file.
    """

    directory: PartDirectory
    token: str
    tuples: int
    kinds: tuple[Kind, ...]
    reading: Reading
    blocks: ConsistentCells | PrincipalAxis | None = None
    own_ends: bool = False

    def load(self) -> LoadedFile:
        """Map the arrays, once per process."""
        return _loaded_file(self)


class Searched(Protocol):
    """A file in which is searched, whatever its differences are; hashable, as tasks keep what they have loaded."""

    @property
    def tuples(self) -> int:
        """Distinct ones in the file."""

    def load(self) -> LoadedFile:
        """Map it in a task, once per process."""


@dataclass(frozen=True, eq=False)
class LoadedFile:
    """A file in which is searched, in a task.

    Attributes
    ----------
    nodes : ndarray of int32, shape (p, k)
        Its tuples.
    keys : ndarray of texts, shape (p,)
        Of these, as :func:`keys_of` makes them.
    present : ndarray of float64, shape (p,)
        Probability that somebody of each is in it.
    blocked : BlockedFile or None
        The file, where records are compared with some of its tuples alone.
    """

    file: SearchedFile
    nodes: IntArray
    keys: Keys
    present: FloatArray
    blocked: BlockedFile | None = None

    def rows_at(self, place: LongArray) -> LongArray:
        """Rows that look like each of some tuples; 1 where the file lacks it, at -1."""
        return np.where(place >= 0, self.file.rows[place], 1)

    def holds(self, known: IntArray, record: LongArray, linked: Linked) -> BoolArray:
        """Mark the known records whose own record is among those found.

        Parameters
        ----------
        known : ndarray of int32, shape (m, k)
        record : ndarray of int64, shape (m,)
            Position of each one's own among the tuples, -1 if it has none.
        linked : Linked
            Of the same.
        """
        return (self.blocked or self.file).holds(known, record, linked)


@functools.lru_cache(maxsize=4)
def _loaded_file(stored: StoredFile) -> LoadedFile:
    def array(name: str) -> np.ndarray:
        return np.ascontiguousarray(map_array(stored.directory, f"{name}.npy"))

    def difference(j: int, kind: Kind) -> Difference:
        nodes = array(f"nodes{j}")
        if kind == "number":
            mean = float(array(f"mean{j}")[0])
            known = (array(f"known_low{j}"), array(f"known_high{j}")) if stored.own_ends else None
            return NumberDifference(array(f"low{j}"), array(f"high{j}"), nodes, stored.reading, mean, known)
        if kind == "text":
            ends = array(f"first{j}"), array(f"last{j}"), array(f"unknown{j}")
            return TextDifference(array(f"texts{j}").tolist(), *ends, nodes)
        return LevelDifference(array(f"at_depth{j}"), array(f"leaves{j}"), nodes, stored.reading)

    differences = [difference(j, kind) for j, kind in enumerate(stored.kinds)]
    file = SearchedFile(tuple(differences), array("weights"), array("cells"), array("rows"))
    nodes = array("nodes")
    blocked = None if stored.blocks is None else BlockedFile(file, stored.blocks)
    return LoadedFile(file, nodes, keys_of(nodes), array("present"), blocked)


@dataclass(frozen=True, eq=False)
class Comparison:
    """How records are compared.

    Attributes
    ----------
    hierarchies : tuple of k Hierarchy
        Of the known columns.
    weights : tuple of k float
        At least 0, and of sum 1.
    ends : tuple of k (NumberEnds or None)
        Of the columns compared as numbers, what their nodes stand for.
    texts : frozenset of int
        Positions of the columns compared as texts.
    known_ends : tuple of k (NumberEnds or None), optional
        As `ends`, where a node is known; the same if not given.
    """

    hierarchies: tuple[Hierarchy, ...]
    weights: tuple[float, ...]
    ends: tuple[NumberEnds | None, ...]
    texts: frozenset[int] = frozenset()
    known_ends: tuple[NumberEnds | None, ...] | None = None

    @property
    def turned(self) -> Comparison:
        """The same, where the other file is searched."""
        if self.known_ends is None:
            return self
        return replace(self, ends=self.known_ends, known_ends=self.ends)

    def kind(self, j: int) -> Kind:
        """How a column is compared."""
        return "text" if j in self.texts else "levels" if self.ends[j] is None else "number"


def store_file(
    directory: PartDirectory, tuples: Tuples, compared: Comparison, present: FloatArray, *, reading: Reading
) -> StoredFile:
    """Write a file in which is searched where tasks map it.

    Parameters
    ----------
    present : ndarray of float64, shape (p,)
        Probability that somebody with the form of each tuple is in the file.
    reading : {"nearest", "uniform", "midpoint"}
        What generalized cells are taken for.
    """
    cells = np.empty(tuples.nodes.shape, dtype=np.int32)
    arrays: dict[str, np.ndarray] = {}
    kinds = tuple(compared.kind(j) for j in range(len(compared.hierarchies)))
    for j, (hierarchy, ends) in enumerate(zip(compared.hierarchies, compared.ends, strict=True)):
        arrays[f"nodes{j}"], place = np.unique(tuples.nodes[:, j], return_inverse=True)
        cells[:, j] = place.reshape(-1)
        if kinds[j] == "text":
            labels = hierarchy.labels[: hierarchy.n_leaves]
            arrays[f"texts{j}"] = np.array(["" if label is None else label for label in labels])
            arrays[f"first{j}"], arrays[f"last{j}"] = hierarchy.first_leaf, hierarchy.last_leaf
            arrays[f"unknown{j}"] = np.array([*(i for i, text in enumerate(labels) if text is None), hierarchy.root])
        elif ends is not None:
            arrays[f"low{j}"], arrays[f"high{j}"], arrays[f"mean{j}"] = ends.low, ends.high, np.array([ends.mean])
            known = None if compared.known_ends is None else compared.known_ends[j]
            if known is not None:
                arrays[f"known_low{j}"], arrays[f"known_high{j}"] = known.low, known.high
        else:
            arrays[f"at_depth{j}"], arrays[f"leaves{j}"] = hierarchy.at_depth, hierarchy.n_under
    arrays |= {"cells": cells, "nodes": tuples.nodes, "rows": tuples.rows, "present": present}
    arrays["weights"] = np.array(compared.weights, dtype=np.float64)
    for name, array in arrays.items():
        write_array(array, directory, f"{name}.npy")
    own_ends = compared.known_ends is not None
    return StoredFile(directory, uuid4().hex, len(tuples.rows), kinds, reading, own_ends=own_ends)


@dataclass(frozen=True)
class StoredLinks:
    """What is nearest to each distinct tuple that somebody knows, in the scratch directory.

    Attributes
    ----------
    stored : Searched
        In which was searched.
    known : PartDirectory
        Holds ``nodes.npy``, the tuples, and ``rows.npy``, how many there are of each.
    directory : PartDirectory
        Of parts with the distance and the rows of a slice of them.
    open : tuple of int or None
        People of each part of whom it is not proved that nothing is nearer outside of their blocks; None where all are
        compared with everything.
    """

    stored: Searched
    known: PartDirectory
    directory: PartDirectory
    parts: tuple[str, ...]
    open: tuple[int, ...] | None = None

    def load(self) -> tuple[Keys, Linked]:
        """Map the links, once per process: the keys of the known tuples, and what is nearest to each."""
        return _loaded_links(self)


@functools.lru_cache(maxsize=4)
def _loaded_links(links: StoredLinks) -> tuple[Keys, Linked]:
    keys = keys_of(np.ascontiguousarray(map_array(links.known, "nodes.npy")))
    table = pa.concat_tables([read_ipc(links.directory, name) for name in links.parts])
    place = table.column(PLACE).to_numpy()
    order = np.argsort(place)
    return keys, Linked(*(table.column(name).to_numpy()[order] for name in (DISTANCE, TIED, FIRST)))


def slices(known: int, tuples: int) -> list[tuple[int, int]]:
    """Begin and end of the slices of known tuples that tasks compare with a file."""
    tasks = min(known, SLICES, 1 + known * tuples // PAIRS)
    return list(pairwise(known * i // tasks for i in range(tasks + 1)))


def collect_links(scratch: Scratch, stored: Searched, known: Tuples, name: str) -> StoredLinks:
    """Link every distinct tuple that somebody knows, each once, in tasks.

    Parameters
    ----------
    stored : Searched
        As :func:`store_file` returns it.
    name : str
        Of the directories.
    """
    at, directory = scratch.directory(f"known-{name}"), scratch.directory(f"links-{name}")
    write_array(known.nodes, at, "nodes.npy")
    write_array(known.rows, at, "rows.npy")
    # Tuples of a block are linked by one task.
    blocked = stored.load().blocked
    write_array(np.arange(len(known.nodes)) if blocked is None else blocked.order(known.nodes), at, "order.npy")

    def link(part: tuple[int, int]) -> Iterator[pa.Table]:
        place = np.ascontiguousarray(map_array(at, "order.npy")[slice(*part)])
        nodes, loaded = map_array(at, "nodes.npy")[place], stored.load()
        open_people = np.zeros(len(place), dtype=np.int64)
        if loaded.blocked is None:
            found = loaded.file.linked(nodes)
        else:
            found, complete = loaded.blocked.told(nodes)
            open_people[~complete] = map_array(at, "rows.npy")[place[~complete]]
        told = {PLACE: place, DISTANCE: found.distance, TIED: found.rows, FIRST: found.first, OPEN: open_people}
        yield report(write_ipc(pa.table(told), directory), {"begin": part[0], OPEN: int(open_people.sum())})

    linked = scratch.collect_parts(
        Batches.of_parts(scratch.spark, slices(len(known.nodes), stored.tuples), link, PARTS)
    )
    parts = sorted(linked, key=lambda part: int(part["begin"]))
    open_people = None if blocked is None else tuple(int(part[OPEN]) for part in parts)
    return StoredLinks(stored, at, directory, tuple(part["name"] for part in parts), open_people)


def linked(
    records: Batches,
    links: StoredLinks,
    *,
    known: Sequence[str],
    own: Sequence[str],
    begun: FloatArray | None = None,
) -> Batches:
    """Say what records were linked to, and whether their own is among it.

    Parameters
    ----------
    records : Batches
        People beside their protected forms.
    links : StoredLinks
        A record whose known tuple was not linked is left out.
    known : sequence of k str
        Columns of what is known of each.
    own : sequence of k str
        Columns of its own record in the file.
    begun : ndarray of float64, shape (m,), optional
        Probability that a record is there to begin with, of each known tuple that was linked; 1 if not given.

    Returns
    -------
    Batches
        :data:`OUTCOMES`.
    """

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for chunk in in_chunks(tables):
            loaded, (keys, nearest) = links.stored.load(), links.load()
            of = places_of(keys, integers(chunk, known))
            table, of = chunk.filter(pa.array(of >= 0)), of[of >= 0]
            if not table.num_rows:
                continue
            place = places_of(loaded.keys, integers(table, own))
            first, member = grouped([of, place])
            nodes = integers(table.take(pa.array(first)), known)
            each = nearest.at(of[first])
            near = loaded.holds(nodes, place[first], each)
            there = place >= 0
            told = {
                schemas.RECORD_ID: table.column(schemas.RECORD_ID),
                DISTANCE: each.distance[member],
                TIED: each.rows[member],
                NEAR: near[member],
                ALIKE: np.where(there, loaded.file.rows[place], 0),
                PRESENT: np.where(there, loaded.present[place], 0.0),
                BEGUN: np.ones(len(of)) if begun is None else begun[of],
                CONSISTENT: table.column(CONSISTENT),
            }
            yield pa.table(told)

    return records.then(step, OUTCOMES)


def collect_outcomes(outcomes: Batches) -> Outcomes:
    """Count the records whose links came out alike.

    Parameters
    ----------
    outcomes : Batches
        :data:`OUTCOMES`.
    """
    names = (TIED, NEAR, ALIKE, PRESENT, BEGUN, CONSISTENT)
    counted = outcomes.frame().groupBy(*names).agg(F.count("*").alias(schemas.N_ROWS)).toArrow()
    found = counted.sort_by([(name, "ascending") for name in names])
    near, tied = found.column(NEAR).to_numpy(), found.column(TIED).to_numpy()
    present = found.column(PRESENT).to_numpy()
    return Outcomes(
        found.column(schemas.N_ROWS).to_numpy() * found.column(BEGUN).to_numpy(),
        np.where(near, present / tied, 0.0),
        found.column(ALIKE).to_numpy().astype(np.int64),
        present,
        found.column(CONSISTENT).fill_null(-1).to_numpy().astype(np.int64),
    )
