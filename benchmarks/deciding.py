"""Deciding in high dimension: searches of one record's lattice, and a job of them.

*Searches* (``bounds``, ``aggregate``): seconds a record in one process. The floor is what any search must do at least:
put the record against every row of the dictionary and count the rows consistent with the answer, whose number must be
the one the search gives. Where the lattice can be enumerated, the risk must be the least of all its nodes besides.

*Jobs* (``job``): ``privrisk release`` of wide tables, from the start of the process to its end. The floor decides the
same records with the same kernels in one process, without Spark; the risks must be equal.

All data is SYNTHETIC: attributes with balanced hierarchies of height 1 to 5, values uniform; weights are the harmonic
means of equal leaves.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from benchmarks.case_study import BenchmarkError, Result
from benchmarks.measure import measure
from privrisk_spark.kernels.disclosure.objective import LeastRisk
from privrisk_spark.kernels.search.aggregate import aggregate, crossing
from privrisk_spark.kernels.search.branch_and_bound import branch_and_bound
from privrisk_spark.kernels.search.record import Answer, RecordLattice

SEED = 2026
RECORDS = 5
"""Records searched in each line."""

JOB_RECORDS = 200
SHARES = (0.25, 0.5, 0.75)
"""Floors of utility, as shares of that of a record released as it is."""

TRADE_OFFS = (0.5, 1.0, 2.0)
"""``λ`` as multiples of the crossing, where one record's optimum jumps."""

BOUNDS = {8: 0.010, 12: 0.2, 16: 2.0, 20: 4.0}
"""Attributes, and most seconds a record, of branch and bound against 20,000 rows."""

AGGREGATES = {(20, 10_000): None, (20, 100_000): None, (40, 10_000): None, (40, 100_000): 2.0, (70, 10_000): None,
              (70, 100_000): 4.0}  # fmt: skip
"""Attributes and rows, and most seconds a record, of the aggregate model."""

JOBS = {(20, 10_000): "bounds", (40, 10_000): "aggregate", (40, 100_000): "aggregate", (70, 100_000): "aggregate"}
"""Attributes and rows of the register, and the model decided."""

_Codes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class World:
    """A register over balanced hierarchies, its first rows being the table.

    Attributes
    ----------
    fan_out : int
        Children of every inner node.
    codes : ndarray of int64, shape (n, k)
        Leaves; ``code // fan_out**s`` is the ancestor at level s.
    """

    fan_out: int
    heights: tuple[int, ...]
    codes: _Codes

    @classmethod
    def generated(cls, attributes: int, rows: int, *, fan_out: int = 3, seed: int = SEED) -> World:
        """Values uniform and independent."""
        random = np.random.default_rng([seed, attributes, rows])
        heights = tuple(int(h) for h in random.integers(1, 6, attributes))
        columns = [random.integers(0, fan_out**height, rows) for height in heights]
        return cls(fan_out, heights, np.column_stack(columns))

    @property
    def chains(self) -> tuple[list[npt.NDArray[np.float64]], list[npt.NDArray[np.float64]]]:
        """Weights and utilities of every level, of any record."""
        weights = [np.append(float(self.fan_out) ** -np.arange(h), 0.0) for h in self.heights]
        return weights, [np.arange(h, -1, -1.0) for h in self.heights]

    def levels(self, record: int) -> npt.NDArray[np.int8]:
        """Least level at which a record covers each row, int8 (n, k)."""
        found = np.zeros(self.codes.shape, dtype=np.int8)
        for i, height in enumerate(self.heights):
            column = self.codes[:, i]
            for step in range(height):
                found[:, i] += column // self.fan_out**step != column[record] // self.fan_out**step
        return found

    def lattice(self, record: int) -> RecordLattice:
        """One record against the register."""
        weights, utilities = self.chains
        return RecordLattice.of_rows(self.levels(record), weights, utilities)


def run(*, rows: int | None = None, cache: Path | None = None) -> list[Result]:  # noqa: ARG001
    """Run searches and jobs.

    Parameters
    ----------
    rows : int, optional
        Records of each job, and of each search at most five; 200 and 5 if not given.
    cache : Path, optional
        Not used: generating takes a second.

    Returns
    -------
    list of Result
        ``parameters["bar"]`` is the most seconds a record may take, where there is such a figure.

    Raises
    ------
    BenchmarkError
        If a search or a job does not agree with the floor.
    """
    records = min(RECORDS, rows or RECORDS)
    results = [*bounds(records), *aggregates(records)]
    for (attributes, size), model in JOBS.items():
        results.append(job(World.generated(attributes, size), model, rows or JOB_RECORDS))
    return results


def bounds(records: int) -> Iterator[Result]:
    """Least risk by branch and bound."""
    branch_and_bound(World.generated(2, 10).lattice(0), LeastRisk(0.0))
    for attributes, bar in BOUNDS.items():
        world = World.generated(attributes, 20_000)
        for share in SHARES:
            objective = LeastRisk(round(share * sum(world.heights)))
            yield _searched(world, records, f"bounds c={share:g}", bar, partial(branch_and_bound, objective=objective))


def aggregates(records: int) -> Iterator[Result]:
    """Greatest ``λ/r + u`` by minimum cuts."""
    aggregate(World.generated(2, 10).lattice(0), trade_off=1.0, most_nodes=0)
    for (attributes, rows), bar in AGGREGATES.items():
        world = World.generated(attributes, rows)
        for factor in TRADE_OFFS:
            yield _searched(
                world,
                records,
                f"aggregate λ*×{factor:g}",
                bar,
                partial(_near_the_crossing, factor=factor),
            )


def _near_the_crossing(lattice: RecordLattice, *, factor: float) -> Answer:
    return aggregate(lattice, trade_off=factor * crossing(lattice))


def _searched(
    world: World, records: int, name: str, bar: float | None, search: Callable[[RecordLattice], Answer | None]
) -> Result:
    seconds, floor, proved, visited = [], [], 0, []
    for record in range(records):
        lattice = world.lattice(record)
        start = perf_counter()
        found = search(lattice)
        seconds.append(perf_counter() - start)
        if found is None:
            raise BenchmarkError(f"{name}: nothing found.")
        proved += found.status == "proved"
        visited.append(found.visited)
        start = perf_counter()
        consistent = int((world.levels(record) <= found.levels).all(axis=1).sum())
        floor.append(perf_counter() - start)
        if consistent != found.consistent:
            raise BenchmarkError(f"{name}: {found.consistent} rows are consistent by the search, {consistent} by hand.")
    return _result(
        name,
        statistics.mean(seconds),
        statistics.mean(floor),
        0.0,
        {
            "attributes": len(world.heights),
            "dictionary_rows": len(world.codes),
            "rows": records,
            "bar": bar,
            "slowest": round(max(seconds), 4),
            "proved": f"{proved}/{records}",
            "visited": int(statistics.mean(visited)),
        },
    )


def job(world: World, model: str, records: int) -> Result:
    """Run a release of the register's first rows, against the same decisions without Spark."""
    weights, _ = world.chains
    decision: dict[str, Any]
    if model == "bounds":
        decision = {"utility_at_least": sum(world.heights) // 2, "method": "branch_and_bound"}
    else:
        decision = {"problem": "max-aggregate", "lambda": 1e-3, "method": "aggregate"}
    with tempfile.TemporaryDirectory(prefix="deciding-") as scratch:
        policy = _policy(world, records, decision, Path(scratch))
        home = Path(__file__).resolve().parent.parent
        command = [sys.executable, "-m", "privrisk_spark.cli.app", "release", str(policy)]
        ran = measure(command, directory=home)
        if ran.exit_code:
            raise BenchmarkError(f"The job ended with {ran.exit_code}: {ran.errors.strip()}")
        decided = pq.read_table(Path(scratch, "vault", "decisions"), columns=["id", "risk"]).to_pydict()
        summary = json.loads(Path(scratch, "vault", "summary.json").read_text(encoding="utf-8"))
    risk = dict(zip(decided["id"], decided["risk"], strict=True))
    start = perf_counter()
    for record in range(records):
        lattice = world.lattice(record)
        if model == "bounds":
            found = branch_and_bound(lattice, LeastRisk(float(decision["utility_at_least"])))
        else:
            found = aggregate(lattice, trade_off=float(decision["lambda"]))
        if found is None or abs(found.risk - risk[f"p{record}"]) > 1e-9 * found.risk:
            raise BenchmarkError(f"The job and the kernel decide record {record} differently.")
    floor = perf_counter() - start
    return _result(
        f"job, {model}",
        ran.seconds,
        floor,
        ran.peak_mb,
        {
            "attributes": len(weights),
            "dictionary_rows": len(world.codes),
            "rows": records,
            "plan": summary["plan"],
            "stages": summary["seconds"],
        },
    )


def _policy(world: World, records: int, decision: dict[str, Any], place: Path) -> Path:
    names = [f"a{i}" for i in range(len(world.heights))]
    columns: dict[str, Any] = {"id": {"role": "identifier"}}
    for name, height in zip(names, world.heights, strict=True):
        values = [f"v{code:03}" for code in range(world.fan_out**height)]
        order = {"order": {"values": values, "fanouts": [world.fan_out] * (height - 1)}}
        columns[name] = {
            "role": "quasi-identifier",
            "hierarchy": order if height > 1 else {"flat": {"values": values}},
        }
    texts = [pa.array([f"v{code:03}" for code in column.tolist()]) for column in world.codes.T]
    register = pa.table([pa.array([f"p{i}" for i in range(len(world.codes))]), *texts], names=["id", *names])
    pq.write_table(register, place / "register.parquet")
    pq.write_table(register.slice(0, records), place / "table.parquet")
    policy = {
        "version": 1,
        "run": {"name": "deciding"},
        "table": {"path": str(place / "table.parquet"), "record_id": "id"},
        "columns": columns,
        "dictionary": {
            "kind": "table",
            "path": str(place / "register.parquet"),
            "columns": {name: name for name in names},
        },
        "risk": {"sensitivity": {"form": "linear"}},
        "decision": decision,
        "output": {"path": str(place / "out"), "vault": str(place / "vault")},
    }
    file = place / "deciding.yaml"
    file.write_text(yaml.safe_dump(policy, sort_keys=False), encoding="utf-8")
    return file


def _result(name: str, seconds: float, floor: float, peak_mb: float, parameters: dict[str, Any]) -> Result:
    return Result(
        name=name,
        seconds=seconds,
        floor_seconds=floor,
        peak_mb=round(peak_mb, 1),
        parameters={
            **parameters,
            "seed": SEED,
            "synthetic": True,
            "processors": len(os.sched_getaffinity(0)),
            "load_before": round(os.getloadavg()[0], 2),
        },
    )
