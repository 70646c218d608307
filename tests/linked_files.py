"""Files in which is searched, for tests of record linkage: random ones, and noisy numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from hypothesis import strategies as st
from strategies import hierarchies

from privrisk_spark.extensions.attack.kernels.agreement import LevelAgreement, LostWeight
from privrisk_spark.extensions.attack.kernels.differences import LevelDifference, NumberDifference
from privrisk_spark.extensions.attack.kernels.learned.training import KnownRecords
from privrisk_spark.extensions.attack.kernels.nearest import SearchedFile
from privrisk_spark.extensions.attack.kernels.term_frequencies import TermWeight, term_frequencies
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.arrays import IntArray
from privrisk_spark.kernels.numeric.distinct import distinct_rows


def file_of(
    trees: list[Hierarchy], weights: list[float], records: list[tuple[int, ...]], rows: list[int]
) -> SearchedFile:
    """Distinct records of nodes, compared by levels."""
    cells, differences = [], []
    for i, tree in enumerate(trees):
        nodes, place = np.unique([record[i] for record in records], return_inverse=True)
        differences.append(LevelDifference(tree.at_depth, tree.n_under, nodes.astype(np.int32)))
        cells.append(place.reshape(-1).astype(np.int32))
    return SearchedFile(tuple(differences), np.array(weights), np.column_stack(cells), np.array(rows))


def weighed_file_of(
    trees: list[Hierarchy], weights: list[float], records: list[tuple[int, ...]], rows: list[int]
) -> SearchedFile:
    """Distinct records of nodes, compared by match weights: bits of agreement, of what is near, and of neither.

    Every second column counts agreement by the frequency of the value among the records of the file.
    """
    del weights
    file, lost = file_of(trees, [1 / len(trees)] * len(trees), records, rows), []
    for j, (tree, one) in enumerate(zip(trees, file.differences, strict=True)):
        near = (1,) if tree.height > 1 else ()
        bits = (3.0 + j, *(0.5 for _ in near), -2.0, 0.0)
        agreement = LevelAgreement(tree.at_depth, one.nodes, near)
        if j % 2:
            of_node = np.bincount(one.nodes[file.cells[:, j]], minlength=tree.n_nodes)
            lost.append(TermWeight(agreement, bits, 0.3, term_frequencies(tree.at_depth, of_node)))
        else:
            lost.append(LostWeight(agreement, bits))
    return replace(file, differences=tuple(lost))


@st.composite
def files(draw: st.DrawFn):
    """Hierarchies, weights, records of the file, rows of each, and known records."""
    trees = draw(st.lists(hierarchies(max_leaves=5, max_depth=3), min_size=1, max_size=4))
    one = st.tuples(*(st.integers(0, tree.n_nodes - 1) for tree in trees))
    records = draw(st.lists(one, min_size=1, max_size=25, unique=True))
    rows = draw(st.lists(st.integers(1, 4), min_size=len(records), max_size=len(records)))
    known = draw(st.lists(one, min_size=1, max_size=6))
    given_weights = draw(st.lists(st.sampled_from([0, 1, 2, 5]), min_size=len(trees), max_size=len(trees)))
    total = sum(given_weights)
    weights = [w / total for w in given_weights] if total else [1 / len(trees)] * len(trees)
    return trees, weights, records, rows, known


def file_of_numbers(values: np.ndarray, ends: np.ndarray) -> tuple[SearchedFile, np.ndarray]:
    """Rows of positions among numbers, equal weights; and which of the distinct records each row is."""
    first, member = distinct_rows([values[:, i] for i in range(values.shape[1])])
    cells, differences = [], []
    for i in range(values.shape[1]):
        nodes, place = np.unique(values[first, i], return_inverse=True)
        differences.append(NumberDifference(ends, ends, nodes.astype(np.int32)))
        cells.append(place.reshape(-1).astype(np.int32))
    k = values.shape[1]
    return SearchedFile(tuple(differences), np.full(k, 1 / k), np.column_stack(cells), np.bincount(member)), member


def noisy(rows: int, noise: Sequence[float], *, seed: int, steps: int = 200) -> tuple[IntArray, IntArray, np.ndarray]:
    """Normal numbers, the same with normal noise of each column's deviation, and what the positions stand for."""
    generator = np.random.default_rng(seed)
    clean = generator.normal(size=(rows, len(noise)))
    masked = clean + generator.normal(size=clean.shape) * np.array(noise)
    ends = np.linspace(-3.5, 3.5, steps)
    known, shown = (np.clip(np.searchsorted(ends, of), 0, steps - 1).astype(np.int32) for of in (clean, masked))
    return known, shown, ends


def of_rows(known: np.ndarray, member: np.ndarray, these: slice) -> KnownRecords:
    """Some rows' people, all of whom are in the file."""
    n = len(known[these])
    return KnownRecords(known[these], member[these], np.ones(n, dtype=np.int64), np.ones(n))
