"""Equivalence classes at every lattice node: Adult (UCI), 9 attributes, 12,960 level vectors.

The floor groups the records once per node: one packed key per record, one ``np.unique``. The product rolls every node
up from one count (``reproduce.deciding.every_node``). Both are child processes that read the same files
with the same code, each timed from its start to its end, and a ratio is reported only if their histograms are equal at
every node. Nothing is generated: the table is the real one, in ``$PRIVRISK_ADULT`` or ``../shared/data/adult``.
"""

from __future__ import annotations

import csv
import json
import os
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import numpy as np
import numpy.typing as npt

from benchmarks.case_study import BenchmarkError, Result
from benchmarks.measure import Measured, measure
from privrisk_spark.hierarchies.files import read_arx
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from reproduce.deciding.every_node import ClassSizes

SEED = 2026

_RUNS = 3  # of the product; the floor takes long enough for one
_PROGRAMS = ("product", "floor")

_Longs = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Table:
    """Records as leaf codes.

    Attributes
    ----------
    hierarchies : tuple of k Hierarchy
    codes : ndarray of int32, shape (n, k)
    """

    hierarchies: tuple[Hierarchy, ...]
    codes: npt.NDArray[np.int32]


@dataclass(frozen=True)
class Histograms:
    """Class sizes of every node, nodes in lexicographic order of their level vectors.

    Attributes
    ----------
    offsets : ndarray of int64, shape (n_nodes + 1,)
    sizes, numbers : ndarrays of int64, shape (n_entries,)
        Different sizes of each node, ascending, and the classes of that size.
    """

    offsets: _Longs
    sizes: _Longs
    numbers: _Longs


def run(*, rows: int | None = None, cache: Path | None = None) -> list[Result]:  # noqa: ARG001
    """Run both programs and compare them.

    Parameters
    ----------
    rows : int, optional
        Records, drawn without replacement; all 30,162 if not given.
    cache : Path, optional
        Not used: nothing is generated.

    Returns
    -------
    list of Result
        One result.

    Raises
    ------
    BenchmarkError
        If the table is absent or too short, a program fails, or a histogram differs.
    """
    table = read(rows)
    home = Path(__file__).resolve().parent.parent
    with tempfile.TemporaryDirectory(prefix="lattice-nodes-") as scratch:
        out = {program: Path(scratch, f"{program}.npz") for program in _PROGRAMS}

        def timed(program: str) -> Measured:
            command = [sys.executable, "-m", "benchmarks.lattice_nodes", program, str(len(table.codes))]
            measured = measure([*command, str(out[program])], directory=home)
            if measured.exit_code:
                raise BenchmarkError(f"The {program} ended with {measured.exit_code}: {measured.errors.strip()}")
            return measured

        fast = [timed("product") for _ in range(_RUNS)]
        lean = timed("floor")
        nodes = compare(_loaded(out["floor"]), _loaded(out["product"]))
    seconds = statistics.median(one.seconds for one in fast)
    return [
        Result(
            name="lattice-nodes",
            seconds=seconds,
            floor_seconds=lean.seconds,
            peak_mb=round(max(one.peak_mb for one in fast), 1),
            parameters={
                "rows": len(table.codes),
                "dictionary_rows": 0,
                "attributes": len(table.hierarchies),
                "lattice_nodes": nodes,
                "seed": SEED,
                "synthetic": False,
                "processors": len(os.sched_getaffinity(0)),
                "nodes_compared": nodes,
                "all_seconds": [round(one.seconds, 3) for one in fast],
                "grouping_seconds": [json.loads(one.output)["grouping_seconds"] for one in fast],
                "floor_grouping_seconds": json.loads(lean.output)["grouping_seconds"],
                "floor_peak_mb": round(lean.peak_mb, 1),
            },
        )
    ]


def read(rows: int | None = None) -> Table:
    """Read the table and encode it.

    Raises
    ------
    BenchmarkError
        If the table is absent, has fewer rows than asked, or a value outside its hierarchy.
    """
    root = Path(__file__).resolve().parents[2]
    home = Path(os.environ.get("PRIVRISK_ADULT") or root / "shared" / "data" / "adult")
    path = home / "adult.csv"
    if not path.is_file():
        raise BenchmarkError(
            f"The Adult table is not in '{home}'; set PRIVRISK_ADULT to a directory that holds adult.csv and its "
            "hierarchies."
        )
    with path.open(encoding="utf-8", newline="") as file:
        names, *records = csv.reader(file, delimiter=";")
    hierarchies = tuple(
        Hierarchy.from_paths(name, read_arx(home / f"adult_hierarchy_{name}.csv", attribute=name)[0]) for name in names
    )
    columns = zip(*records, strict=True)
    codes = np.column_stack([h.encode(column) for h, column in zip(hierarchies, columns, strict=True)])
    if (codes < 0).any():
        raise BenchmarkError("Some value of the Adult table is outside its hierarchy.")
    if rows is not None and rows > len(codes):
        raise BenchmarkError(f"The Adult table has {len(codes)} rows. Got --rows {rows}.")
    if rows is not None and rows < len(codes):
        codes = codes[np.sort(np.random.default_rng(SEED).choice(len(codes), rows, replace=False))]
    return Table(hierarchies, codes)


def roll_up(table: Table) -> Histograms:
    """All nodes from one count of the distinct records."""
    vectors, counts = np.unique(table.codes, axis=0, return_counts=True)
    found = ClassSizes.at_every_node([h.ancestor for h in table.hierarchies], vectors, counts)
    return Histograms(found.offsets, found.sizes, found.numbers)


def group_each(table: Table) -> Histograms:
    """Every node from the records: add up what each attribute contributes to the key, sort, count."""
    shape = [h.height + 1 for h in table.hierarchies]
    stride = 1
    parts: list[list[_Longs]] = []
    for i, hierarchy in enumerate(table.hierarchies):
        node = hierarchy.ancestor[table.codes[:, i]].astype(np.int64) * stride
        parts.append(list(np.ascontiguousarray(node.T)))
        stride *= hierarchy.n_nodes
    if stride >= 2**63:
        raise BenchmarkError("The floor packs a record into one key of 63 bits; these hierarchies are too wide.")
    sizes, numbers = [], []
    for levels in np.ndindex(*shape):
        key = np.zeros(len(table.codes), dtype=np.int64)
        for part, level in zip(parts, levels, strict=True):
            key += part[level]
        size, number = np.unique(np.unique(key, return_counts=True)[1], return_counts=True)
        sizes.append(size)
        numbers.append(number)
    offsets = np.concatenate([[0], np.cumsum([len(size) for size in sizes])])
    return Histograms(offsets, np.concatenate(sizes), np.concatenate(numbers))


def compare(floor: Histograms, product: Histograms) -> int:
    """Return the number of nodes, at all of which the histograms must be equal.

    Raises
    ------
    BenchmarkError
        If they are not.
    """
    for name in ("offsets", "sizes", "numbers"):
        if not np.array_equal(getattr(floor, name), getattr(product, name)):
            raise BenchmarkError(f"The floor and the product do not have the same class sizes: {name} differ.")
    return len(floor.offsets) - 1


def _loaded(path: Path) -> Histograms:
    with np.load(path) as arrays:
        return Histograms(arrays["offsets"], arrays["sizes"], arrays["numbers"])


def main(arguments: list[str]) -> int:
    """Run one program and write its histograms; return the exit code."""
    if len(arguments) != 3 or arguments[0] not in _PROGRAMS:
        print("usage: python -m benchmarks.lattice_nodes (product | floor) ROWS OUT", file=sys.stderr)
        return 2
    program, rows, out = arguments
    try:
        table = read(int(rows))
    except BenchmarkError as error:
        print(error, file=sys.stderr)
        return 1
    start = perf_counter()
    found = roll_up(table) if program == "product" else group_each(table)
    seconds = perf_counter() - start
    np.savez(out, offsets=found.offsets, sizes=found.sizes, numbers=found.numbers)
    print(json.dumps({"grouping_seconds": round(seconds, 3)}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
