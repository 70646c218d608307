"""The floor of k-anonymization: the leanest single-process numpy program with the same optimal scheme.

It knows the case study's table and the metric ``loss`` and nothing else, and finds the optimum in its own way: a packed
key for every row, no roll-ups; nodes in the order of what they would cost if nothing were suppressed, until the next
costs more than the best. It imports nothing of ``privrisk_spark``.

Run ``python -m benchmarks.kanon_floor DATA OUT K LIMIT``, the limit in rows.
"""

from __future__ import annotations

import itertools
import json
import math
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from os import sched_getaffinity
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.floor import ATTRIBUTES, WEIGHTS, Keys, Records, Tree, calendar, read_tree

_Codes = dict[str, npt.NDArray[np.int32]]
_Levels = tuple[int, ...]


@dataclass(frozen=True)
class FloorScheme:
    """What the floor found.

    Attributes
    ----------
    levels : tuple of int
        In the order of ``ATTRIBUTES``.
    suppressed, rows, nodes : int
        Nodes are those whose classes were counted.
    seconds : dict of str to float
        By phase.
    """

    levels: _Levels
    suppressed: int
    rows: int
    nodes: int
    loss: float
    seconds: dict[str, float]


def floor(data: Path, out: Path, *, k: int, limit: int) -> FloorScheme:
    """Find the scheme of least loss and write the release by it.

    Parameters
    ----------
    data, out : Path
        As for :func:`benchmarks.floor.floor`.
    limit : int
        Rows that may be suppressed.

    Raises
    ------
    ValueError
        If the data is outside what the floor knows, or no scheme keeps the limit.
    """
    clock = perf_counter()
    seconds: dict[str, float] = {}

    def lap(phase: str) -> None:
        nonlocal clock
        seconds[phase], clock = round(perf_counter() - clock, 4), perf_counter()

    trees = {name: read_tree(data / f"{name}.csv", WEIGHTS[name]) for name in ("city", "race", "income")}
    trees["birthdate"] = calendar(WEIGHTS["birthdate"])
    keys = Keys(trees)
    with ThreadPoolExecutor(len(sched_getaffinity(0))) as pool:
        parts = list(pool.map(keys.read, sorted((data / "table").glob("*.parquet"))))
        lap("read")
        codes = {name: np.concatenate([part.leaf[name] for part in parts]) for name in ATTRIBUTES}
        levels, lost, loss, nodes = _search(trees, codes, k, limit)
        lap("search")
        (out / "release").mkdir(parents=True, exist_ok=True)
        ends = np.cumsum([len(part.cell) for part in parts])
        pieces = zip(parts, np.split(lost, ends[:-1]), strict=True)
        list(pool.map(lambda job: _write(trees, levels, out, job[0], *job[1]), enumerate(pieces)))
        lap("write")
    return FloorScheme(levels, int(lost.sum()), len(lost), nodes, loss, seconds)


def _search(
    trees: dict[str, Tree], codes: _Codes, k: int, limit: int
) -> tuple[_Levels, npt.NDArray[np.bool_], float, int]:
    """Levels, which rows are suppressed, loss, and nodes counted."""
    n = len(codes["city"])
    heights = [trees[name].height for name in ATTRIBUTES]
    totals = []
    for name in ATTRIBUTES:
        rows = np.bincount(codes[name], minlength=len(trees[name].ancestor))
        totals.append(rows @ trees[name].size[trees[name].ancestor])
    domains = [len(trees[name].ancestor) for name in ATTRIBUTES]

    def cost(leaves: list[int]) -> float:
        each = [(total - n) / (n * (domain - 1)) for total, domain in zip(leaves, domains, strict=True)]
        return float(math.prod(1 + one for one in each) ** (1 / len(each)) - 1)

    lattice = sorted(
        (cost([int(total[level]) for total, level in zip(totals, levels, strict=True)]), levels)
        for levels in itertools.product(*(range(height + 1) for height in heights))
    )
    best: tuple[float, int, _Levels] | None = None
    lost = np.zeros(n, dtype=np.bool_)
    failed: list[_Levels] = []
    nodes = 0
    for least, levels in lattice:
        if best is not None and least > best[0] * (1 + 1e-12):
            break
        if any(all(x <= y for x, y in zip(levels, other, strict=True)) for other in failed):
            continue
        nodes += 1
        small = _in_small_classes(trees, codes, levels, k, limit)
        if small is None:
            failed.append(levels)
            continue
        suppressed = int(small.sum())
        leaves = []
        for name, level, total, domain in zip(ATTRIBUTES, levels, totals, domains, strict=True):
            tree = trees[name]
            of_lost = int(tree.size[tree.ancestor[codes[name][small], level]].sum())
            leaves.append(int(total[level]) - of_lost + suppressed * domain)
        found = (cost(leaves), suppressed, levels)
        if best is None or found < best:
            best, lost = found, small
    if best is None:
        raise ValueError("No scheme keeps the limit.")
    return best[2], lost, best[0], nodes


def _in_small_classes(
    trees: dict[str, Tree], codes: _Codes, levels: _Levels, k: int, limit: int
) -> npt.NDArray[np.bool_] | None:
    """Mark the rows in classes of fewer than k; None if they are more than the limit."""
    key, space = np.zeros(len(codes["city"]), dtype=np.int64), 1
    for name, level in zip(ATTRIBUTES, levels, strict=True):
        nodes, number = np.unique(trees[name].ancestor[:, level], return_inverse=True)
        key *= len(nodes)
        key += number.reshape(-1)[codes[name]]
        space *= len(nodes)
    if space <= 8 * len(key):
        sizes = np.bincount(key, minlength=space)
        if int(sizes[(sizes > 0) & (sizes < k)].sum()) > limit:
            return None
        small: npt.NDArray[np.bool_] = sizes[key] < k
        return small
    ascending = np.sort(key)
    starts = np.flatnonzero(np.concatenate([[True], ascending[1:] != ascending[:-1]]))
    sizes = np.diff(np.append(starts, len(key)))
    if int(sizes[sizes < k].sum()) > limit:
        return None
    few = ascending[starts[sizes < k]]
    marked: npt.NDArray[np.bool_] = np.isin(key, few)
    return marked


def _write(
    trees: dict[str, Tree], levels: _Levels, out: Path, number: int, part: Records, lost: npt.NDArray[np.bool_]
) -> None:
    columns: dict[str, Any] = {}
    for name, level in zip(ATTRIBUTES, levels, strict=True):
        tree = trees[name]
        node = np.where(lost, tree.ancestor[0, -1], tree.ancestor[part.leaf[name], level])
        columns[name] = pa.DictionaryArray.from_arrays(pa.array(node), tree.label)
    columns["diagnosis"] = part.kept["diagnosis"]
    pq.write_table(pa.table(columns), out / "release" / f"part-{number:05d}.parquet", compression="zstd")


def main(arguments: list[str]) -> int:
    """Run the floor and print what it found as JSON; return the exit code."""
    if len(arguments) != 4:
        print("usage: python -m benchmarks.kanon_floor DATA OUT K LIMIT", file=sys.stderr)
        return 2
    data, out, k, limit = arguments
    try:
        found = floor(Path(data), Path(out), k=int(k), limit=int(limit))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    print(json.dumps(asdict(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
