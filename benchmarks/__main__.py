"""Run a benchmark: ``python -m benchmarks NAME [--rows N] [--json FILE] [--cache DIR]``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks import (
    case_study,
    cluster,
    cluster_apart,
    deciding,
    dp_release,
    entities,
    fmdp,
    growth,
    hospital,
    hundred_million,
    jobs,
    kanon,
    lattice_nodes,
    linkage,
    linkage_blocks,
    measures,
    object_store,
    persons,
    readers,
    references,
    sharing,
)
from benchmarks.s3_server import ServerError
from benchmarks.standalone import ClusterError
from privrisk_spark.errors import listing, nearest

BENCHMARKS: dict[str, Callable[..., list[case_study.Result]]] = {
    "case-study": case_study.run,
    "case-study-both": case_study.run_both,
    "growth": growth.run,
    "hospital": hospital.run,
    "hundred-million": hundred_million.run,
    "jobs": jobs.run,
    "kanon": kanon.run,
    "cluster": cluster.run,
    "cluster-apart": cluster_apart.run,
    "lattice-nodes": lattice_nodes.run,
    "linkage": linkage.run,
    "linkage-blocks": linkage_blocks.run,
    "deciding": deciding.run,
    "dp-release": dp_release.run,
    "entities": entities.run,
    "fmdp": fmdp.run,
    "measures": measures.run,
    "object-store": object_store.run,
    "persons": persons.run,
    "readers": readers.run,
    "references": references.run,
    "sharing": sharing.run,
    "sharing-growth": sharing.run_growth,
}

_COLUMNS = {
    "rows": ("rows", "{:,}"),
    "exit": ("exit", "{}"),
    "memory_to_lean": ("memory to lean", "{:.1f}"),
    "dictionary_rows": ("dictionary", "{:,}"),
    "lattice_nodes": ("nodes", "{:,}"),
    "attributes": ("k", "{}"),
    "processor_seconds": ("processor s", "{:.1f}"),
    "bar": ("bar s", "{:g}"),
    "slowest": ("slowest s", "{:.4f}"),
    "proved": ("proved", "{}"),
    "recall": ("recall", "{:.4f}"),
    "time_to_linear": ("to linear", "{:.2f}"),
    "memory_to_first": ("memory", "{:.2f}"),
    "time_to_local": ("to local", "{:.2f}"),
    "time_to_plain": ("to plain", "{:.2f}"),
}
"""Parameters the table shows where some result has them: heading and format."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one benchmark, print its table and write its JSON; return the exit code (2 for a wrong command)."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Ratios to the floor, in one run.")
    parser.add_argument("name", metavar="NAME", help="one of: " + listing(list(BENCHMARKS)))
    parser.add_argument("--rows", type=int, help="rows of the (first) table; the register grows in proportion")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the results there")
    parser.add_argument("--cache", type=Path, metavar="DIR", help="where generated data is kept")
    parser.add_argument("--arx", type=Path, metavar="DIR", help="read the source of ARX there (references)")
    parser.add_argument("--sdcmicro", type=Path, metavar="DIR", help="read the source of sdcMicro there (references)")
    given = parser.parse_args(arguments)
    if given.name not in BENCHMARKS:
        names = list(BENCHMARKS)
        parser.error(f"no benchmark is named '{given.name}'{nearest(given.name, names)}; there are: {listing(names)}")
    if given.rows is not None and given.rows < 1:
        parser.error(f"--rows must be at least 1, got {given.rows}")
    sources = {name: vars(given)[name] for name in ("arx", "sdcmicro") if vars(given)[name] is not None}
    for name, source in sources.items():
        if given.name != "references":
            parser.error(f"--{name} needs the benchmark 'references'")
        if not source.is_dir():
            parser.error(f"--{name}: the directory '{source}' does not exist")
    try:
        results = BENCHMARKS[given.name](rows=given.rows, cache=given.cache, **sources)
    except (case_study.BenchmarkError, ClusterError, ServerError) as error:
        print(error, file=sys.stderr)
        return 1
    print(_table(results))
    if given.json is not None:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps([result.to_json() for result in results], indent=2) + "\n", encoding="utf-8")
    return 0


def _seconds(seconds: float) -> str:
    """Write seconds with two decimals, or four where they are less than a tenth."""
    return f"{seconds:.2f}" if seconds >= 0.1 else f"{seconds:.4f}"


def _table(results: Sequence[case_study.Result]) -> str:
    """Return the results as aligned text, blank where a result lacks a parameter that another has."""
    shown = [name for name in _COLUMNS if any(result.parameters.get(name) for result in results)]
    head = ["name", "seconds", "floor s", "ratio", "peak MB", *[_COLUMNS[name][0] for name in shown]]
    lines = []
    for result in results:
        given = [result.parameters.get(name) for name in shown]
        lines.append(
            [
                result.name,
                _seconds(result.seconds),
                _seconds(result.floor_seconds),
                f"{result.ratio:.2f}",
                f"{result.peak_mb:.0f}",
                *["" if v is None else _COLUMNS[name][1].format(v) for name, v in zip(shown, given, strict=True)],
            ]
        )
    widths = [max(map(len, column)) for column in zip(head, *lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) if at == 0 else cell.rjust(width) for at, (cell, width) in enumerate(row))
        for row in (list(zip(line, widths, strict=True)) for line in (head, *lines))
    )


if __name__ == "__main__":
    sys.exit(main())
