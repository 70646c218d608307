"""Blocks of a file in which is searched: how they are made, how often they lose the nearest candidates; samples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, Protocol

import numpy as np
import pyarrow as pa

from privrisk_spark.engine.batches import PARTS, Batches, Scratch, read_ipc, report
from privrisk_spark.errors import InternalError
from privrisk_spark.extensions.attack.kernels.blocked import (
    ConsistentCells,
    PrincipalAxis,
    axis_blocks,
    consistent_blocks,
    fitting_attributes,
)
from privrisk_spark.extensions.attack.kernels.nearest import Linked
from privrisk_spark.extensions.attack.kernels.recall import Recall, drawn_people, drawn_tuples, kept, recall
from privrisk_spark.extensions.attack.stages.distance import DISTANCE, FIRST, OPEN, PLACE, TIED, LoadedFile, StoredLinks
from privrisk_spark.extensions.attack.stages.protected import Tuples
from privrisk_spark.storage.part_files import map_array

Way = Literal["automatic", "consistent_cells", "principal_axis"]
"""How blocks are made: the first of the other two that will do, or one of them."""

LEAST_DRAWN, MOST_DRAWN = 100, 1000
"""People who are compared with everything to measure a recall."""


class Blockable(Protocol):
    """A file in which may be searched in blocks, whatever its differences are."""

    def load(self) -> LoadedFile:
        """Map it, once per process."""


def sampled(known: Tuples, people: int, *, seed: int) -> Tuples:
    """Draw people whose pairs with a file a model is estimated from.

    Parameters
    ----------
    people : int
        So many.
    seed : int
        Draws them, each as likely, with replacement.

    Returns
    -------
    Tuples
        Those drawn, in their order.
    """
    places, times = drawn_tuples(known.rows, people, seed=seed, purpose="pairs of a model")
    return Tuples(np.ascontiguousarray(known.nodes[places]), times)


def blocks_of(stored: Blockable, known: Tuples, *, way: Way, most: int) -> ConsistentCells | PrincipalAxis | None:
    """Choose blocks by which a file is searched in so many comparisons.

    Parameters
    ----------
    stored : StoredFile or StoredWeights
    known : Tuples
        To be linked.
    way : {"automatic", "consistent_cells", "principal_axis"}
    most : int
        Comparisons of cells.

    Returns
    -------
    ConsistentCells, PrincipalAxis or None
        None if there are no such blocks.
    """
    file, found = stored.load().file, None
    if way != "principal_axis":
        found = consistent_blocks(file, known.nodes, fitting_attributes(file, known.nodes), most=most)
    if found is None and way != "consistent_cells":
        return axis_blocks(file, len(known.nodes), most=most)
    return found


def collect_recall(scratch: Scratch, links: StoredLinks, *, most: int, seed: int) -> Recall:
    """Measure how many of the people who were linked in blocks have lost no candidate, in tasks.

    Parameters
    ----------
    links : StoredLinks
        Found in blocks.
    most : int
        Comparisons of cells to be taken, where they are enough for 100 people; at most 1,000 are drawn.
    seed : int
        Draws them.
    """
    if links.open is None:
        raise InternalError("A recall was asked for of links that were compared with everything.")
    nodes, rows = (map_array(links.known, f"{name}.npy") for name in ("nodes", "rows"))
    people, left = int(rows.sum()), sum(links.open)
    if not left:
        return recall(people, people, drawn=0, kept=0)
    size = min(max(most // (links.stored.tuples * nodes.shape[1]), LEAST_DRAWN), MOST_DRAWN)
    drawn, ends = drawn_people(left, size, seed=seed), np.cumsum(links.open)
    of_part = np.searchsorted(ends, drawn, side="right")
    parts = [
        (links.parts[i], (drawn[of_part == i] - (ends[i] - links.open[i])).tolist())
        for i in np.unique(of_part).tolist()
    ]

    def compare(part: tuple[str, list[int]]) -> Iterator[pa.Table]:
        name, ranks = part
        table = read_ipc(links.directory, name)
        those = np.searchsorted(np.cumsum(table.column(OPEN).to_numpy()), ranks, side="right")
        first, times = np.unique(those, return_counts=True)
        in_blocks = Linked(*(table.column(one).to_numpy()[first] for one in (DISTANCE, TIED, FIRST)))
        mine = map_array(links.known, "nodes.npy")[table.column(PLACE).to_numpy()[first]]
        same = kept(in_blocks, links.stored.load().file.linked(mine))
        yield report(name, {"kept": int(times[same].sum())})

    told = scratch.collect_parts(Batches.of_parts(scratch.spark, parts, compare, PARTS))
    return recall(people, people - left, drawn=size, kept=sum(int(part["kept"]) for part in told))
