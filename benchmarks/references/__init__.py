"""Compare the embedded engine with two reference programs: ARX (``--arx DIR``) and sdcMicro (``--sdcmicro DIR``).

Each directory is a checkout of the program's source. ARX needs a JDK and Maven. sdcMicro needs R and the R packages
that it imports. Both are built once into the cache directory. Delete ``references-*`` there to build another version.
A reference without a directory is left out.

Each case prints one line of JSON. ``floor_seconds`` is the time of the reference, from the start of its process to the
end, with reading and writing CSV. If the two answers differ, the command prints the differences and exits with code 1.
"""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks import case_study
from benchmarks.case_study import BenchmarkError, Result
from benchmarks.references import arx as with_arx
from benchmarks.references import sdcmicro as with_sdcmicro


def run(
    *, rows: int | None = None, cache: Path | None = None, arx: Path | None = None, sdcmicro: Path | None = None
) -> list[Result]:
    """Run each reference whose source is given, and this project on the same table.

    Parameters
    ----------
    rows : int, optional
        Rows of the table. If not given, 30,162 (Adult itself) for ARX and 10,000 for sdcMicro.
    cache : Path, optional
        As for the case study.
    arx, sdcmicro : Path, optional
        Checkouts of the references.

    Returns
    -------
    list of Result
        One for each reference that ran.

    Raises
    ------
    BenchmarkError
        If a program fails, or the answers of two programs differ.
    """
    cache = cache or case_study.default_cache()
    results, wrong = [], []
    for name, source, compare in (
        ("arx", arx, with_arx.compare),
        ("sdcmicro", sdcmicro, with_sdcmicro.compare),
    ):
        if source is None:
            print(f"{name} is left out, because --{name} DIR is not given.", flush=True)
            continue
        result, differences = compare(source.resolve(), rows, cache)
        print(json.dumps(result.to_json()), flush=True)
        results.append(result)
        wrong += [f"{name}: {difference}" for difference in differences]
    if wrong:
        raise BenchmarkError("\n".join(wrong))
    return results
