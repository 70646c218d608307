"""Tables, builds and results that both references need."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import case_study
from benchmarks.case_study import BenchmarkError, Result
from benchmarks.measure import Measured, measure

FILES = Path(__file__).parent
POLICY = case_study.root() / "conf" / "adult-k-anonymity.yaml"
_CHUNK = 1_000_000
_WEIGHTS = (40, 161)
"""Range of the sampling weights: whole numbers, so that their sums are exact."""


def adult() -> dict[str, str]:
    """Return the variable of the environment by which the policy finds Adult and its hierarchies.

    Raises
    ------
    BenchmarkError
        If the table does not exist.
    """
    home = Path(os.environ.get("PRIVRISK_ADULT") or case_study.root().parent / "shared" / "data" / "adult")
    if not (home / "adult.csv").is_file():
        raise BenchmarkError(f"adult.csv does not exist in '{home}'. Fix: set PRIVRISK_ADULT to its directory.")
    return {"ADULT": str(home)}


def build(place: Path, make: Callable[[Path], None]) -> Path:
    """Return a directory or file of the cache, and make it if it does not exist.

    Parameters
    ----------
    make : callable
        Makes it at the path it is given. That path is renamed at the end, so an interrupted build leaves no trace.
    """
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f"{place.name}.", dir=place.parent) as partial:
            make(Path(partial, "made"))
            Path(partial, "made").rename(place)
    return place


def execute(
    program: str, *command: str | Path, environment: Mapping[str, str] | None = None, directory: Path | None = None
) -> Measured:
    """Run a command and measure it.

    Raises
    ------
    BenchmarkError
        If the command does not exist or fails.
    """
    if shutil.which(str(command[0])) is None:
        raise BenchmarkError(f"{program} needs the command '{command[0]}', which does not exist.")
    ran = measure([str(part) for part in command], environment=environment, directory=directory)
    return case_study.checked(program, ran)


def privrisk(command: str, settings: Mapping[str, object], *options: str | Path) -> Measured:
    """Run a command of this project on the embedded engine, by Adult's k-anonymous policy with other settings."""
    program = (sys.executable, "-m", "privrisk_spark.cli.app", command, POLICY, "--engine=embedded", "--quiet")
    changed = [f"--set={key}={value}" for key, value in settings.items()]
    return execute("product", *program, *changed, *options, environment=adult(), directory=case_study.root())


def table(rows: int, cache: Path, *, weighted: bool = False) -> Path:
    """Return a CSV file of rows of Adult, drawn with replacement unless Adult has the given number of rows.

    Parameters
    ----------
    weighted : bool
        Add a record id (``id``) and a sampling weight (``weight``).
    """

    def make(place: Path) -> None:
        head, *lines = Path(adult()["ADULT"], "adult.csv").read_text(encoding="utf-8").splitlines()
        draw = np.random.default_rng(case_study.SEED)
        with place.open("w", encoding="utf-8") as file:
            file.write(f"id;{head};weight\n" if weighted else f"{head}\n")
            for begin in range(0, rows, _CHUNK):
                ids = range(begin, min(begin + _CHUNK, rows))
                chosen = ids if rows == len(lines) else draw.integers(len(lines), size=len(ids)).tolist()
                if weighted:
                    weights = draw.integers(*_WEIGHTS, size=len(ids)).tolist()
                    drawn = zip(ids, chosen, weights, strict=True)
                    file.writelines(f"{number};{lines[at]};{weight}\n" for number, at, weight in drawn)
                else:
                    file.writelines(f"{lines[at]}\n" for at in chosen)

    kind = "weighted" if weighted else "plain"
    return build(cache / f"references-{kind}-{rows}-seed{case_study.SEED}.csv", make)


def compare_result(
    name: str, rows: int, load: float, ours: Measured, reference: Measured, differences: Sequence[str], **more: Any
) -> Result:
    """Return the result of two programs with the ratios of seconds, processor seconds and memory."""
    return Result(
        name=name,
        seconds=ours.seconds,
        floor_seconds=reference.seconds,
        peak_mb=round(ours.peak_mb, 1),
        parameters={
            "rows": rows,
            "equal": not differences,
            "processor_seconds": round(ours.processor_seconds, 2),
            "reference_processor_seconds": round(reference.processor_seconds, 2),
            "processor_ratio": round(ours.processor_seconds / reference.processor_seconds, 3),
            "reference_peak_mb": round(reference.peak_mb, 1),
            "memory_ratio": round(ours.peak_mb / reference.peak_mb, 3),
            "processors": len(os.sched_getaffinity(0)),
            "load_before": round(load, 2),
            **more,
        },
    )
