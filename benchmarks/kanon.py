"""k-anonymity: the optimal scheme of the case study beside its floor and a release by risk, Mondrian, large lattices.

The floor (:mod:`benchmarks.kanon_floor`) finds the scheme in its own way, and there is a figure only if levels,
suppressed rows and loss are equal. ``mondrian`` cuts the table in tasks, as the driver may hold a few records only
(``counting.sorted_vectors``), at half the rows and at all. ``kanon-adult`` is a release of Adult with nine attributes
from start to end. ``kanon-lattice`` is a generated census-like table of fourteen attributes, whose lattice has more
than ten million nodes, in the kernel alone: the optimum with nothing suppressed, and with 5 % what is proved.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import yaml

from benchmarks import case_study
from benchmarks.case_study import BenchmarkError, Result
from benchmarks.measure import Measured, measure
from privrisk_spark.kernels.recoding.full_domain import FullDomain
from privrisk_spark.kernels.recoding.metrics import METRICS
from privrisk_spark.kernels.recoding.metrics import Measured as MeasuredTable
from privrisk_spark.kernels.recoding.problem import Problem, Scheme, at_least
from privrisk_spark.kernels.recoding.searches import SEARCHES

K = 5
SUPPRESSED = 5
"""Rows that may be suppressed, in per cent."""

TO_COUNTING_AT_MOST = 2.0
GROWTH_AT_MOST = 1.2
MONDRIAN_AT_MOST = 15.0
ADULT_SECONDS_AT_MOST = 10.0
LATTICE_SECONDS_AT_MOST = 120.0

HEIGHTS = (1, 5, 2, 3, 3, 2, 2, 2, 3, 1, 2, 2, 2, 2)
LEAVES = (2, 74, 5, 7, 16, 41, 8, 14, 25, 2, 9, 6, 5, 12)
"""Of the census-like table: those of Adult and some more; 10,077,696 nodes."""

_POLICY = ["--set", "decision=null", "--set", "guarantee.kind=k-anonymity", "--set", f"guarantee.k={K}",
           "--set", f"guarantee.suppression_limit={SUPPRESSED / 100}"]  # fmt: skip
_MONDRIAN = ["--set", "guarantee.method=mondrian", "--set", "counting.sorted_vectors=10000"]


def run(*, rows: int | None = None, cache: Path | None = None) -> list[Result]:
    """Run every part.

    Parameters
    ----------
    rows : int, optional
        Of the case study, and of the fourteen attributes at most 30,162; the published ones if not given.
    cache : Path, optional
        As for the case study.

    Raises
    ------
    BenchmarkError
        If a program fails, or the floor and the product do not find the same. A target missed is no failure.
    """
    rows = case_study.ROWS if rows is None else rows
    return [*optimum(rows, cache), *mondrian(rows, cache), *adult(), *lattice(min(rows, 30_162))]


def optimum(rows: int, cache: Path | None = None) -> list[Result]:
    """The optimal scheme against its floor, and a release by risk of the same table beside it."""
    data, limit = case_study.prepare(rows, cache), SUPPRESSED * rows // 100
    with tempfile.TemporaryDirectory(prefix="kanon-") as scratch:
        lean, found = _floor(data, Path(scratch, "floor"), limit)
        ran, summary = _released(data, Path(scratch, "product"), _POLICY)
        by_risk, other = _released(data, Path(scratch, "by-risk"), [])
        recoding = summary["recoding"]
        ours = (list(recoding["levels"].values()), recoding["suppressed"], recoding["metric"]["value"])
        theirs = (found["levels"], found["suppressed"], found["loss"])
        if ours[:2] != theirs[:2] or abs(ours[2] - theirs[2]) > 1e-12:
            raise BenchmarkError(f"The floor found {theirs}, the product {ours}: levels, suppressed rows, loss.")
        if not recoding["optimal"]:
            raise BenchmarkError("The product did not prove its scheme.")
        stages = summary["seconds"]
        return [
            _result("kanon", ran, lean, rows, {
                "lattice_nodes": case_study.LATTICE_NODES,
                "levels": ours[0],
                "suppressed": ours[1],
                "loss": ours[2],
                "nodes_evaluated": recoding["nodes_evaluated"],
                "floor_nodes": found["nodes"],
                "floor_phases": found["seconds"],
                "stages": stages,
                "decide_to_count": round(stages["decide"] / stages["count"], 2),
                "decide_to_count_at_most": TO_COUNTING_AT_MOST,
            }),
            _result("kanon-by-risk", by_risk, lean, rows, {"stages": other["seconds"]}),
        ]  # fmt: skip


def mondrian(rows: int, cache: Path | None = None) -> list[Result]:
    """Mondrian in tasks at half the rows and at all, against what the floor reads and writes."""
    results = []
    for size in (rows // 2, rows):
        data = case_study.prepare(size, cache)
        with tempfile.TemporaryDirectory(prefix="kanon-") as scratch:
            lean, found = _floor(data, Path(scratch, "floor"), SUPPRESSED * size // 100)
            ran, summary = _released(data, Path(scratch, "product"), [*_POLICY, *_MONDRIAN])
            seconds = found["seconds"]["read"] + found["seconds"]["write"]
            at = replace(lean, seconds=seconds)
            recoding = summary["recoding"]
            results.append(
                _result("kanon-mondrian", ran, at, size, {
                    "ratio_at_most": MONDRIAN_AT_MOST,
                    "classes": recoding["classes"],
                    "loss": recoding["metric"]["value"],
                    "stages": summary["seconds"],
                })
            )  # fmt: skip
    return growth(results)


def growth(results: Sequence[Result]) -> list[Result]:
    """Add to each result its seconds per row over those of the first."""
    first = results[0]
    return [
        replace(
            one,
            parameters=one.parameters
            | {
                "time_to_linear": round(
                    one.seconds / first.seconds * first.parameters["rows"] / one.parameters["rows"], 3
                ),
                "time_to_linear_at_most": GROWTH_AT_MOST,
            },
        )
        for one in results
    ]


def adult() -> list[Result]:
    """A release of Adult with nine attributes, from start to end; nothing stands beside it."""
    root = case_study.root()
    policy = yaml.safe_load((root / "conf" / "adult-k-anonymity.yaml").read_text(encoding="utf-8"))
    home = Path(os.environ.get("PRIVRISK_ADULT") or root.parent / "shared" / "data" / "adult")
    name = "salary-class"
    policy["columns"][name] = {
        "role": "quasi-identifier",
        "hierarchy": {"file": "${ADULT}/adult_hierarchy_" + name + ".csv"},
    }
    with tempfile.TemporaryDirectory(prefix="kanon-") as scratch:
        policy["output"] = {"path": f"{scratch}/out", "vault": f"{scratch}/vault"}
        file = Path(scratch, "policy.yaml")
        file.write_text(yaml.safe_dump(policy, sort_keys=False), encoding="utf-8")
        command = [sys.executable, "-m", "privrisk_spark.cli.app", "release", str(file), "--run-id", "adult"]
        ran = case_study.checked("product", measure(command, environment={"ADULT": str(home)}, directory=root))
        (path,) = Path(scratch, "vault").rglob("summary.json")
        summary = json.loads(path.read_text(encoding="utf-8"))
    recoding = summary["recoding"]
    return [
        _result("kanon-adult", ran, ran, summary["rows"], {
            "seconds_at_most": ADULT_SECONDS_AT_MOST,
            "lattice_nodes": 12_960,
            "levels": list(recoding["levels"].values()),
            "suppressed": recoding["suppressed"],
            "loss": recoding["metric"]["value"],
            "nodes_evaluated": recoding["nodes_evaluated"],
            "proved": recoding["optimal"],
            "stages": summary["seconds"],
        })
    ]  # fmt: skip


def census(rows: int) -> FullDomain:
    """A generated table of fourteen attributes with skewed marginals, as distinct records."""
    draw = np.random.default_rng(case_study.SEED)
    ancestors, columns = [], []
    for height, leaves in zip(HEIGHTS, LEAVES, strict=True):
        width = int(np.ceil(leaves ** (1 / height)))
        levels = [np.arange(leaves) // width**level for level in range(height)]
        ancestors.append(np.column_stack([*levels, np.zeros(leaves, dtype=np.int64)]).astype(np.int32))
        weight = 1 / np.arange(1, leaves + 1) ** 1.5
        columns.append(draw.choice(leaves, rows, p=weight / weight.sum()))
    codes = np.stack(columns, axis=1).astype(np.int32)
    vectors, counts = np.unique(codes, axis=0, return_counts=True)
    return FullDomain.of(ancestors, vectors, counts.astype(np.int64))


def lattice(rows: int) -> list[Result]:
    """The optimum of a lattice of more than ten million nodes, or its gap; nothing stands beside it."""
    results = []
    for name, limit in (("kanon-lattice", 0), ("kanon-lattice-5%", SUPPRESSED * rows // 100)):
        command = [sys.executable, "-m", "benchmarks.kanon", str(rows), str(limit)]
        ran = case_study.checked("product", measure(command, directory=case_study.root()))
        told = json.loads(ran.output)
        seconds_at_most = {"seconds_at_most": LATTICE_SECONDS_AT_MOST}
        results.append(_result(name, ran, ran, rows, told | seconds_at_most))
    return results


def _floor(data: Path, out: Path, limit: int) -> tuple[Measured, dict[str, Any]]:
    command = [sys.executable, "-m", "benchmarks.kanon_floor", str(data), str(out), str(K), str(limit)]
    ran = case_study.checked("floor", measure(command, directory=case_study.root()))
    shutil.rmtree(out)
    return ran, json.loads(ran.output)


def _released(data: Path, out: Path, options: Sequence[str]) -> tuple[Measured, dict[str, Any]]:
    out.mkdir()
    ran = case_study.release(case_study.POLICY, data, out, options)
    summary = json.loads((out / "vault" / "summary.json").read_text(encoding="utf-8"))
    shutil.rmtree(out)
    return ran, summary


def _result(name: str, ran: Measured, floor: Measured, rows: int, more: dict[str, Any]) -> Result:
    return Result(
        name=name,
        seconds=ran.seconds,
        floor_seconds=floor.seconds,
        peak_mb=round(ran.peak_mb, 1),
        parameters={
            "rows": rows,
            "k": K,
            "seed": case_study.SEED,
            "processors": len(os.sched_getaffinity(0)),
            "load_before": round(os.getloadavg()[0], 2),
            **more,
        },
    )


def told_of(scheme: Scheme, nodes: int, distinct: int, seconds: float) -> dict[str, Any]:
    """What is told of a search in the kernel."""
    return {
        "lattice_nodes": nodes,
        "distinct": distinct,
        "levels": list(scheme.levels),
        "suppressed": scheme.facts.suppressed,
        "loss": scheme.value,
        "nodes_evaluated": scheme.nodes_evaluated,
        "proved": scheme.optimal,
        "gap": scheme.gap,
        "search_seconds": round(seconds, 3),
    }


def main(arguments: list[str]) -> int:
    """Search the census-like table's lattice and print what was found as JSON; return the exit code."""
    if len(arguments) != 2:
        print("usage: python -m benchmarks.kanon ROWS LIMIT", file=sys.stderr)
        return 2
    rows, limit = map(int, arguments)
    table = census(rows)
    start = perf_counter()
    found = SEARCHES["best"](Problem(MeasuredTable.of(table), (at_least(K),), METRICS["loss"], limit))
    seconds = perf_counter() - start
    if found is None:
        print("No scheme keeps the limit.", file=sys.stderr)
        return 1
    print(json.dumps(told_of(found, table.lattice.n_nodes, len(table.counts), seconds)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
