"""The floor of the benchmark ``hospital``: the leanest single-process numpy/pyarrow program that gives the same answer.

It knows the hospital and nothing else: postcodes of six digits, no missing values, one weight per leaf of an attribute,
the table as its own dictionary. It imports nothing of ``privrisk_spark``, so it is also an independent check of its
decisions.

Why it can be lean:

- Every maximal feasible node has the same sum of levels, and the least risk is at one of them. Where a node of a
  hierarchy has a single child, which leaves from the data may give, risk is the same below and utility higher: every
  candidate is therefore moved down such edges before it is compared.
- A record is in the table, so its count at a node is the size of its cell: cells are numbered densely, over the nodes
  that occur, and one ``bincount`` a node counts them; a sort does only where there are too many.
- Nodes are numbers made from numbers: a postcode without its last digit is its quotient by ten.

Run ``python -m benchmarks.hospital_floor DATA OUT [UTILITY]``.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from math import prod
from pathlib import Path
from time import perf_counter
from typing import Any
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

ATTRIBUTES = ("postcode", "birth_date", "sex", "ward")
WEIGHTS = {"postcode": 0.6, "birth_date": 0.5, "sex": 0.2, "ward": 0.4}
TIE = 1e-12  # relative difference of two risks that counts as none

_CELLS = 16  # cells a record up to which they are counted by direct addressing
_BLOCK = 2**16  # records decided at a time

_Ints = npt.NDArray[np.integer[Any]]
_Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class FloorResult:
    """What the floor did; ``seconds`` by phase, in order."""

    rows: int
    dictionary_rows: int
    mean_risk: float
    mean_utility: float
    seconds: dict[str, float]


@dataclass(frozen=True)
class _Tree:
    """A hierarchy over the leaves that occur: rank, label and weight of the node of each leaf at each level.

    ``lowest`` is the lowest level at which the node is the same set of leaves.
    """

    rank: tuple[npt.NDArray[np.int32], ...]
    labels: tuple[list[str], ...]
    weight: tuple[_Floats, ...]
    lowest: tuple[npt.NDArray[np.int8], ...]

    @property
    def height(self) -> int:
        return len(self.rank) - 1


def floor(data_dir: str | Path, out_dir: str | Path, *, utility_at_least: float = 6) -> FloorResult:
    """Decide, release and record the hospital's stays.

    Writes ``release/part-*.parquet`` (the attributes as labels, diagnosis) and ``decisions/part-*.parquet`` (stay_id,
    ``level_*``, risk, utility, consistent).

    Raises
    ------
    ValueError
        If the data is outside what the floor knows, or the utility cannot be reached.
    """
    data, out = Path(data_dir), Path(out_dir)
    clock = [perf_counter()]
    seconds: dict[str, float] = {}

    def lap(phase: str) -> None:
        clock.append(perf_counter())
        seconds[phase] = clock[-1] - clock[-2]

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        files = sorted((data / "table").rglob("*.parquet"))
        parts = list(pool.map(_read, files))
        ends = np.cumsum([0, *(part.num_rows for part, _ in parts)])
        values = [np.concatenate([columns[i] for _, columns in parts]) for i in range(2)]
        sexes, sex = _coded([part["sex"].chunk(0) for part, _ in parts])
        names = [unquote(file.parent.name.partition("=")[2]) for file in files]
        wards = sorted(set(names))
        values += [sex, np.repeat(np.array([wards.index(name) for name in names], dtype=np.int32), np.diff(ends))]
        lap("read")
        postcodes, days = (np.flatnonzero(np.bincount(v - v.min())) + int(v.min()) for v in values[:2])
        trees = [_postcode(postcodes), _calendar(days), _flat(sexes, WEIGHTS["sex"]), _flat(wards, WEIGHTS["ward"])]
        leaf = [_rank(values[0], postcodes), _rank(values[1], days), values[2], values[3]]
        lap("hierarchies")
        heights = [tree.height for tree in trees]
        steps = int(np.floor(sum(heights) - utility_at_least))
        if not 0 <= steps <= sum(heights):
            raise ValueError(f"The utility must be at most {sum(heights)}. Got {utility_at_least}.")
        nodes = [node for node in itertools.product(*(range(h + 1) for h in heights)) if sum(node) == steps]
        counts = list(pool.map(lambda node: _counts(trees, leaf, node), nodes))
        lap("count")
        decided = [(a, min(a + _BLOCK, int(ends[-1]))) for a in range(0, int(ends[-1]), _BLOCK)]
        levels = np.empty((int(ends[-1]), len(trees)), dtype=np.int8)
        risk, consistent = np.empty(len(levels)), np.empty(len(levels), dtype=np.int64)

        def decide(block: tuple[int, int]) -> None:
            at = slice(*block)
            chosen = _decide(trees, [column[at] for column in leaf], nodes, [of[at] for of in counts])
            levels[at], risk[at], consistent[at] = chosen

        list(pool.map(decide, decided))
        utility = (sum(heights) - levels.sum(axis=1)).astype(np.float64)
        lap("decide")
        for name in ("release", "decisions"):
            (out / name).mkdir(parents=True, exist_ok=True)

        def write(number: int) -> None:
            at = slice(int(ends[number]), int(ends[number + 1]))
            some = [column[at] for column in leaf]
            _write(out, number, parts[number][0], trees, some, levels[at], risk[at], utility[at], consistent[at])

        list(pool.map(write, range(len(parts))))
        lap("write")
    return FloorResult(
        rows=len(levels),
        dictionary_rows=len(levels),
        mean_risk=float(risk.mean()),
        mean_utility=float(utility.mean()),
        seconds={phase: round(value, 4) for phase, value in seconds.items()},
    )


def _read(path: Path) -> tuple[pa.Table, list[npt.NDArray[np.int32]]]:
    """Read a part: the table, and postcodes and days as numbers."""
    with pq.ParquetFile(path, read_dictionary=["postcode", "sex", "diagnosis"], memory_map=True) as file:
        rows = file.read(["stay_id", "postcode", "birth_date", "sex", "diagnosis"], use_threads=False)
    rows = rows.unify_dictionaries().combine_chunks()
    if any(column.null_count for column in rows.columns):
        raise ValueError("The floor needs a table without missing values.")
    texts = rows["postcode"].chunk(0).dictionary.to_pylist()
    if any(len(text) != 6 or not text.isascii() or not text.isdigit() for text in texts):
        raise ValueError("The floor needs postcodes of six digits.")
    postcode = np.array([int(text) for text in texts], dtype=np.int32)[_integers(rows["postcode"].chunk(0).indices)]
    return rows, [postcode, _integers(rows["birth_date"].chunk(0).view(pa.int32()))]


def _integers(array: pa.Array) -> npt.NDArray[np.int32]:
    return np.frombuffer(array.buffers()[1], dtype=np.int32)[array.offset : array.offset + len(array)]


def _coded(columns: list[pa.DictionaryArray]) -> tuple[list[str], npt.NDArray[np.int32]]:
    """Return the texts that occur and the place of each row's among them."""
    texts = sorted(set().union(*(column.dictionary.to_pylist() for column in columns)))
    pieces = [
        np.array([texts.index(text) for text in column.dictionary.to_pylist()], dtype=np.int32)[
            _integers(column.indices)
        ]
        for column in columns
    ]
    return texts, np.concatenate(pieces)


def _rank(values: npt.NDArray[np.int32], leaves: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
    low = int(leaves[0])
    place = np.zeros(int(leaves[-1]) - low + 1, dtype=np.int32)
    place[leaves - low] = np.arange(len(leaves), dtype=np.int32)
    return place.take(values - low)


def _postcode(leaves: npt.NDArray[np.int64]) -> _Tree:
    nodes = [leaves // 10**level for level in range(6)]
    labels = [[f"{node:0{6 - level}d}" + "*" * level for node in np.unique(of)] for level, of in enumerate(nodes)]
    return _tree(nodes, labels, WEIGHTS["postcode"])


def _calendar(leaves: npt.NDArray[np.int64]) -> _Tree:
    days = leaves.astype("datetime64[D]")
    nodes = [days, days.astype("datetime64[M]"), days.astype("datetime64[Y]")]
    return _tree(
        [node.astype(np.int64) for node in nodes], [np.unique(of).astype(str).tolist() for of in nodes],
        WEIGHTS["birth_date"],
    )  # fmt: skip


def _flat(texts: list[str], weight: float) -> _Tree:
    return _tree([np.arange(len(texts))], [texts], weight)


def _tree(nodes: list[npt.NDArray[np.int64]], labels: list[list[str]], leaf_weight: float) -> _Tree:
    """Add the root and weights: with equal leaf weights w the modified harmonic mean is w / size, root 0."""
    ranks: list[npt.NDArray[np.int32]] = []
    weights: list[_Floats] = []
    lowest: list[npt.NDArray[np.int8]] = []
    below = np.zeros(len(nodes[0]), dtype=np.int64)
    for level, node in enumerate([*nodes, np.zeros(len(nodes[0]), dtype=np.int64)]):
        _, rank = np.unique(node, return_inverse=True)
        size = np.bincount(rank)[rank]
        root = level == len(nodes)
        ranks.append(rank.astype(np.int32))
        weights.append(np.zeros(len(rank)) if root else leaf_weight / size)
        # The root weighs nothing whatever its child: an edge to it is never flat.
        flat = (size == below) & (not root)
        lowest.append(np.where(flat, lowest[-1] if lowest else 0, level).astype(np.int8))
        below = size
    return _Tree(tuple(ranks), (*labels, ["*"]), tuple(weights), tuple(lowest))


def _counts(trees: list[_Tree], leaf: list[npt.NDArray[np.int32]], node: tuple[int, ...]) -> npt.NDArray[np.int32]:
    """Return the rows of the cell of every record at a node."""
    cells = prod(len(tree.labels[level]) for tree, level in zip(trees, node, strict=True))
    key: _Ints = np.zeros(len(leaf[0]), dtype=np.int32 if cells < 2**31 else np.int64)
    for tree, column, level in zip(trees, leaf, node, strict=True):
        if level < tree.height:
            key *= len(tree.labels[level])
            key += tree.rank[level].take(column)
    if cells > _CELLS * len(key):
        _, key = np.unique(key, return_inverse=True)
    return np.bincount(key).astype(np.int32).take(key)


def _decide(
    trees: list[_Tree],
    leaf: list[npt.NDArray[np.int32]],
    nodes: list[tuple[int, ...]],
    counts: list[npt.NDArray[np.int32]],
) -> tuple[npt.NDArray[np.int8], _Floats, npt.NDArray[np.int64]]:
    """Decide some records: lower risk, then higher utility, then the lexicographically smallest level vector."""
    n = len(leaf[0])
    factor = [[np.exp(weight).take(column) for weight in t.weight] for t, column in zip(trees, leaf, strict=True)]
    lowest = [[low.take(column) for low in tree.lowest] for tree, column in zip(trees, leaf, strict=True)]
    widths = np.array([tree.height + 1 for tree in trees])
    strides = np.append(np.cumprod(widths[:0:-1])[::-1], 1)
    best = np.full(n, np.inf)
    # Order of preference at equal risk as one number: sum of levels, then the level vector.
    order, most = np.full(n, np.iinfo(np.int64).max), int(widths.prod())
    consistent = np.zeros(n, dtype=np.int64)
    for node, count in zip(nodes, counts, strict=True):
        risk = factor[0][node[0]] * factor[1][node[1]] * factor[2][node[2]] * factor[3][node[3]] / count
        near = np.flatnonzero(risk <= best * (1 + TIE))
        at = [low[level].take(near).astype(np.int64) for low, level in zip(lowest, node, strict=True)]
        rank = sum(at) * most + sum(levels * stride for levels, stride in zip(at, strides.tolist(), strict=True))
        lower = risk[near] < best[near] * (1 - TIE)
        better = lower | (rank < order[near])
        taken = near[better]
        best[taken], order[taken], consistent[taken] = risk[taken], rank[better], count[taken]
    chosen = order % most
    levels = np.stack([chosen // stride % width for stride, width in zip(strides, widths, strict=True)], axis=1)
    return levels.astype(np.int8), best, consistent


def _write(
    out: Path,
    number: int,
    part: pa.Table,
    trees: list[_Tree],
    leaf: list[npt.NDArray[np.int32]],
    levels: npt.NDArray[np.int8],
    risk: _Floats,
    utility: _Floats,
    consistent: npt.NDArray[np.int64],
) -> None:
    """Write one part of the release and of the decisions."""
    columns = {"stay_id": part["stay_id"]}
    released = {}
    for i, (name, tree, column) in enumerate(zip(ATTRIBUTES, trees, leaf, strict=True)):
        level = np.ascontiguousarray(levels[:, i])
        columns[f"level_{name}"] = pa.array(level)
        starts = np.cumsum([0, *(len(of) for of in tree.labels)])
        nodes = np.stack([rank + start for rank, start in zip(tree.rank, starts, strict=False)], axis=1).astype(
            np.int32
        )
        code = nodes.ravel().take(column * np.int32(tree.height + 1) + level)
        released[name] = pa.DictionaryArray.from_arrays(pa.array(code), pa.array([*itertools.chain(*tree.labels)]))
    released["diagnosis"] = part["diagnosis"]
    columns["risk"], columns["utility"], columns["consistent"] = map(pa.array, (risk, utility, consistent))
    file = f"part-{number:05d}.parquet"
    pq.write_table(pa.table(released), out / "release" / file, store_schema=False, write_statistics=False)
    repeated = [*(f"level_{name}" for name in ATTRIBUTES), "utility"]
    pq.write_table(pa.table(columns), out / "decisions" / file, use_dictionary=repeated, write_statistics=False)


def main(arguments: list[str]) -> int:
    """Run the floor and print its result as JSON; return the exit code."""
    if len(arguments) not in (2, 3):
        print("usage: python -m benchmarks.hospital_floor DATA OUT [UTILITY]", file=sys.stderr)
        return 2
    result = floor(arguments[0], arguments[1], utility_at_least=float(arguments[2]) if arguments[2:] else 6)
    print(json.dumps(asdict(result)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
