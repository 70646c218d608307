"""The code that tests run compiled is that of the sources as they are now."""

from __future__ import annotations

import os
from pathlib import Path

import machine_code
import pytest
from sources import ROOT, needs_spark

from privrisk_spark.kernels.search.boxes.search import search

CALLED = ("search/row_sets.py", "search/boxes/bounds.py", "search/boxes/arrays.py", "lattice/lattice.py")
"""Files of functions that the search calls, and of a number it reads: Numba does not look at them."""


def test_the_code_lies_where_the_state_of_all_sources_says() -> None:
    directory = machine_code.CACHE / machine_code.key_of(machine_code.sources())
    assert os.environ["NUMBA_CACHE_DIR"] == str(directory)
    assert Path(search.stats.cache_path).parent == directory


@pytest.mark.parametrize("name", CALLED)
def test_another_source_of_what_is_called_has_another_place(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    files, changed = machine_code.sources(), machine_code.KERNELS / name
    assert changed in files
    before, read = machine_code.key_of(files), Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda file: read(file) + b"\n" * (file == changed))
    assert machine_code.key_of(files) != before


def test_what_imports_spark_is_told_from_what_does_not() -> None:
    tests = ROOT / "tests"
    assert needs_spark(tests / "stages" / "deciding" / "test_decide.py")
    assert not needs_spark(tests / "kernels" / "counting" / "test_counts.py")
