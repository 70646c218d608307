"""A differentially private release of ten million rows against the time of the case study.

There is no floor with the same answer, as the draws are the product's own. What it is held against is the case study,
run before it: ``floor_seconds`` are the case study's seconds for as many rows, and the target of the ratio is 1.5.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

from benchmarks import case_study
from benchmarks.case_study import BenchmarkError, Result
from benchmarks.measure import measure

ROWS = 2 * case_study.ROWS
"""Twice the case study, which the benchmark ``growth`` uses as well."""

RATIO_AT_MOST = 1.5
POLICY = Path(__file__).with_name("dp-release.yaml")


def run(*, rows: int | None = None, cache: Path | None = None) -> list[Result]:
    """Run the case study at its size, then the release.

    Parameters
    ----------
    rows : int, optional
        Rows of the release; 11,334,008 if not given. The case study has at most its own number of them.
    cache : Path, optional
        As for the case study.

    Returns
    -------
    list of Result
        One result.

    Raises
    ------
    BenchmarkError
        If a program fails or the release breaks its promise about crowds. A target missed is no failure.
    """
    size = ROWS if rows is None else rows
    smaller = min(size, case_study.ROWS)
    small, large = case_study.prepare(smaller, cache), case_study.prepare(size, cache)
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="dp-release-") as scratch:
        usual = case_study.run_product(small, Path(scratch, "case-study"))
        out = Path(scratch, "dp")
        command = [sys.executable, "-m", "privrisk_spark.cli.app", "release", str(POLICY)]
        command += ["--run-id", "dp-release"]
        paths = {"CASE_STUDY_DATA": str(large), "CASE_STUDY_OUT": str(out)}
        ran = case_study.checked("product", measure(command, environment=paths, directory=case_study.root()))
        stages = case_study.stage_seconds(out)
        manifest = json.loads((out / "release" / "manifest.json").read_text(encoding="utf-8"))
    parameters = manifest["guarantee"]["parameters"]
    if manifest["rows"] < parameters["k"]:
        raise BenchmarkError(f"The release has {manifest['data']['rows']} rows, fewer than one crowd.")
    scaled = usual.seconds * size / smaller
    return [
        Result(
            name="dp-release",
            seconds=ran.seconds,
            floor_seconds=scaled,
            peak_mb=round(ran.peak_mb, 1),
            parameters={
                "rows": size,
                "dictionary_rows": 0,
                "released_rows": manifest["rows"],
                "case_study_seconds": round(usual.seconds, 3),
                "case_study_rows": smaller,
                "ratio_at_most": RATIO_AT_MOST,
                "stages": stages,
                "w": parameters["w"],
                "k": parameters["k"],
                "load_before": round(load, 2),
                "processors": len(os.sched_getaffinity(0)),
                "seed": case_study.SEED,
                "synthetic": True,
            },
        )
    ]
