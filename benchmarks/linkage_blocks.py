"""Record linkage in blocks: links of distances and match weights, and membership, beside the exact searches.

Files of ten columns of two levels, three in ten cells generalized and one in fifty wrong. Blocks are chosen by the rule
of the product, of 10,000 comparisons of cells a record, and choosing them counts. The floor is the same search with
everybody, of 2,000 records at most, and is multiplied up to all of them. Both must find the same of every record of
which blocks are said to lose nothing; of the others the share that lose nothing is told, and nobody is asked to meet
it. Each size is twice the one before.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks import case_study
from benchmarks.case_study import BenchmarkError, Result
from benchmarks.linkage import COLUMNS, LEAVES
from privrisk_spark.extensions.attack.kernels.agreement import LevelAgreement, LostWeight
from privrisk_spark.extensions.attack.kernels.blocked import BlockedFile, consistent_blocks, fitting_attributes
from privrisk_spark.extensions.attack.kernels.differences import Difference, LevelDifference
from privrisk_spark.extensions.attack.kernels.fellegi_sunter import fitted, started
from privrisk_spark.extensions.attack.kernels.membership import dealt, dealt_in_blocks
from privrisk_spark.extensions.attack.kernels.nearest import Linked, SearchedFile
from privrisk_spark.extensions.attack.kernels.patterns import ComparedFile
from privrisk_spark.extensions.attack.kernels.recall import drawn_tuples, kept
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.arrays import IntArray, LongArray

ROWS, SIZES, EXACT = 10_000, 4, 2_000
COMPARISONS = 10_000
"""Of cells, for each record: a thousand candidates of ten columns."""

GENERALIZED, WRONG = 0.3, 0.02

Told = tuple[Linked, npt.NDArray[np.bool_]]


@dataclass(frozen=True, eq=False)
class Files:
    """People, and rows of a protected table, which are distinct in what is known.

    Attributes
    ----------
    trees : list of k Hierarchy
    known : ndarray of int32, shape (m, k)
        Of people.
    cells : ndarray of int32, shape (p, k)
        Which of the distinct nodes of each column a row has.
    nodes : list of k ndarray of int32
    rows : ndarray of int64, shape (p,)
    """

    trees: list[Hierarchy]
    known: IntArray
    cells: IntArray
    nodes: list[IntArray]
    rows: LongArray

    @classmethod
    def of(cls, records: int) -> Files:
        """Draw them."""
        draw = np.random.default_rng(case_study.SEED)
        trees = [Hierarchy.from_paths("a", [(f"v{i}", f"g{i // 5}") for i in range(n)]) for n in LEAVES]
        known = np.column_stack([draw.integers(0, tree.n_leaves, records) for tree in trees]).astype(np.int32)
        shown = known.copy()
        for j, tree in enumerate(trees):
            wrong, up = draw.random(records) < WRONG, draw.random(records) < GENERALIZED
            shown[wrong, j] = draw.integers(0, tree.n_leaves, int(wrong.sum()))
            shown[up, j] = tree.parent[shown[up, j]]
        distinct, rows = np.unique(shown, axis=0, return_counts=True)
        found = [np.unique(distinct[:, j], return_inverse=True) for j in range(COLUMNS)]
        cells = np.column_stack([place.reshape(-1) for _, place in found]).astype(np.int32)
        return cls(trees, known, cells, [nodes for nodes, _ in found], rows.astype(np.int64))

    def searched(self, differences: list[Difference]) -> SearchedFile:
        """The rows as a file in which is searched by differences of equal weight."""
        return SearchedFile(tuple(differences), np.full(COLUMNS, 1 / COLUMNS), self.cells, self.rows)


def run(*, rows: int | None = None, cache: Path | None = None) -> list[Result]:
    """Run every search at every size.

    Parameters
    ----------
    rows : int, optional
        Of the first size; 10,000 if not given. There are four, each twice the one before.
    cache : Path, optional
        Not used: the files are drawn in memory.

    Returns
    -------
    list of Result
        Of a search one for each size; ``time_to_linear`` is seconds per record over those of the first size.

    Raises
    ------
    BenchmarkError
        If no blocks will do, or a record is said to lose nothing and does.
    """
    del cache
    first = ROWS if rows is None else rows
    every = [Files.of(first * 2**i) for i in range(SIZES)]
    return [result for name, search in SEARCHES.items() for result in grown(name, search, every)]


def grown(name: str, search: Callable[[Files], Search], sizes: list[Files]) -> list[Result]:
    """Results of one search, at every size."""
    results: list[Result] = []
    for files in sizes:
        seconds, floor, more = beside(name, search(files), files)
        small = (results[0].seconds, results[0].parameters["rows"]) if results else (seconds, len(files.known))
        more["time_to_linear"] = round(seconds / small[0] / (len(files.known) / small[1]), 3)
        results.append(Result(name, seconds, floor, 0.0, more))
    return results


@dataclass(frozen=True, eq=False)
class Search:
    """A search, exact and in blocks.

    Attributes
    ----------
    exact : callable
        Of known records, with everybody.
    told : callable
        Of known records, in blocks.
    """

    file: SearchedFile
    exact: Callable[[IntArray], object]
    told: Callable[[BlockedFile, IntArray], Told]


def distances(files: Files) -> Search:
    """Links to the least distance, as ``attack.methods: [distance]``."""
    file = files.searched(_levels(files))
    return Search(file, file.linked, lambda blocked, known: blocked.told(known))


def match_weights(files: Files) -> Search:
    """Links to the greatest match weight, by a model that is estimated from the pairs of a sample."""
    agreements = tuple(
        LevelAgreement(tree.at_depth, nodes) for tree, nodes in zip(files.trees, files.nodes, strict=True)
    )
    alike = np.ones(len(files.known), dtype=np.int64)
    places, times = drawn_tuples(alike, min(EXACT, len(alike)), seed=case_study.SEED, purpose="pairs of a model")
    counts = ComparedFile(agreements, files.cells, files.rows).counted(files.known[places], times)
    model = fitted(counts, started(counts, prior=1 / len(files.known)), fixed_prior=True).model
    lost: list[Difference] = [LostWeight(one, bits) for one, bits in zip(agreements, model.weights, strict=True)]
    file = files.searched(lost)
    return Search(file, file.linked, lambda blocked, known: blocked.told(known))


def membership(files: Files) -> Search:
    """Records dealt to the nearest of the file, as rows of a release are to people to tell members."""
    file, ones = files.searched(_levels(files)), np.ones(len(files.known), dtype=np.int64)

    def told(blocked: BlockedFile, known: IntArray) -> Told:
        _, linked, complete = dealt_in_blocks(blocked, known, ones[: len(known)])
        return linked, complete

    return Search(file, lambda known: dealt(file, known, ones[: len(known)]), told)


SEARCHES: dict[str, Callable[[Files], Search]] = {
    "linkage-blocks-distance": distances,
    "linkage-blocks-weights": match_weights,
    "linkage-blocks-membership": membership,
}


def beside(name: str, search: Search, files: Files) -> tuple[float, float, dict[str, Any]]:
    """Search in blocks, and some of the records with everybody: seconds of both, and what was found."""
    n, known = len(files.known), files.known
    start = perf_counter()
    blocks = consistent_blocks(search.file, known, fitting_attributes(search.file, known), most=COMPARISONS * n)
    if blocks is None:
        raise BenchmarkError(f"{name}: no blocks will do for {n:,} records.")
    blocked = BlockedFile(search.file, blocks)
    order = blocked.order(known)
    linked, complete = search.told(blocked, known[order])
    seconds = perf_counter() - start
    some = np.random.default_rng(case_study.SEED).permutation(n)[:EXACT]
    start = perf_counter()
    search.exact(known[order][some])
    floor = (perf_counter() - start) * n / len(some)
    same = kept(linked.at(some), search.file.linked(known[order][some]))
    if not same[complete[some]].all():
        raise BenchmarkError(f"{name}: a record is said to lose nothing in blocks, and does.")
    return (
        seconds,
        floor,
        {
            "rows": n,
            "columns": COLUMNS,
            "block_columns": len(blocks.attributes),
            "exact_records": len(some),
            "recall": round(float(same.mean()), 4),
            "proved": f"{100 * complete.mean():.3g} %",
            "seed": case_study.SEED,
            "processors": len(os.sched_getaffinity(0)),
            "load_before": round(os.getloadavg()[0], 2),
        },
    )


def _levels(files: Files) -> list[Difference]:
    return [
        LevelDifference(tree.at_depth, tree.n_under, nodes)
        for tree, nodes in zip(files.trees, files.nodes, strict=True)
    ]
