"""Code that is kept is that of the sources as they are now, wherever the package lies."""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import machine_code as kept_for_tests
import numba
import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher
from sources import ROOT, needs_spark

from privrisk_spark import machine_code
from privrisk_spark.kernels.search.boxes.search import search
from privrisk_spark.machine_code import SOURCES, compiled

KERNELS = "privrisk_spark.kernels"


def test_the_code_lies_where_the_state_of_all_sources_says() -> None:
    assert os.environ["NUMBA_CACHE_DIR"] == str(kept_for_tests.CACHE)
    place = Path(search.stats.cache_path)  # type: ignore[attr-defined]
    assert place.parent == kept_for_tests.CACHE / f"privrisk-{machine_code.key()}"


def _named(code: CodeType) -> set[str]:
    inner = (part for part in code.co_consts if isinstance(part, CodeType))
    return set(code.co_names).union(*(_named(part) for part in inner))


def _home(module: ModuleType, name: str) -> str:
    """The module in which a global of a module stands."""
    for node in ast.parse(inspect.getsource(module)).body:
        if isinstance(node, ast.ImportFrom) and any((alias.asname or alias.name) == name for alias in node.names):
            return _home(importlib.import_module(str(node.module)), name)
    return module.__name__


def test_sources_are_all_that_compiled_functions_call_and_read() -> None:
    found, todo = set(), []
    for file in (ROOT / "privrisk_spark" / "kernels").rglob("*.py"):
        if "import compiled" in file.read_text():
            module = importlib.import_module(".".join(file.relative_to(ROOT).with_suffix("").parts))
            todo += [value for value in vars(module).values() if isinstance(value, Dispatcher)]
    assert len(todo) > 30
    for function in todo:
        module = inspect.getmodule(function.py_func)
        assert module is not None
        found.add(module.__name__)
        for name in _named(function.py_func.__code__) & vars(module).keys():
            value: Any = vars(module)[name]
            if not isinstance(value, ModuleType):
                found.add(value.py_func.__module__ if isinstance(value, Dispatcher) else _home(module, name))
    assert found == {f"{KERNELS}.{name.removesuffix('.py').replace('/', '.')}" for name in SOURCES}


@pytest.mark.parametrize("name", SOURCES)
def test_another_source_has_another_key(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = tmp_path / "kernels"
    shutil.copytree(ROOT / "privrisk_spark" / "kernels", tree, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr("importlib.resources.files", lambda _: tree)
    assert machine_code.key.__wrapped__() == machine_code.key()
    changed = tree / name
    changed.write_text(changed.read_text() + "\n")
    assert machine_code.key.__wrapped__() != machine_code.key()


CUT = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np
from privrisk_spark.kernels.search import row_sets
assert row_sets.__file__.startswith(sys.argv[1])
assert row_sets.bits_in(np.uint64(7)) == 3
print(row_sets.bits_in.stats.cache_path, sum(row_sets.bits_in.stats.cache_hits.values()))
"""


def test_a_package_in_an_archive_finds_the_code_of_another_run(tmp_path: Path) -> None:
    """As Spark sends it to executors: each run has a directory of its own, and compiled all anew."""
    seen = []
    for run in ("one", "two"):
        (tmp_path / run).mkdir()
        archive = shutil.make_archive(str(tmp_path / run / "package"), "zip", ROOT, "privrisk_spark")
        environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home")}
        command = [sys.executable, "-c", CUT, archive]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        seen.append(done.stdout.split())
    place = tmp_path / "home" / ".cache" / "privrisk_spark" / f"privrisk-{machine_code.key()}"
    assert Path(seen[0][0]).parent == place
    assert seen == [[seen[0][0], "0"], [seen[0][0], "1"]]


def test_the_directories_in_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "tree" / "kernel.py"
    file.parent.mkdir()
    file.touch()

    def kernel() -> int:
        return 1

    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "given"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    for wanted in (tmp_path / "given", file.parent / "__pycache__", tmp_path / "user" / "privrisk_spark"):
        locator = machine_code.BySource.from_function(kernel, str(file))
        assert locator is not None
        assert Path(locator.get_cache_path()).parent.parent == wanted
        shutil.rmtree(wanted)
        wanted.touch()  # a file where the directory should be: it cannot be written
    assert machine_code.BySource.from_function(kernel, str(file)) is None


def test_without_a_place_for_its_code_a_function_is_compiled_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """A read-only installation without a home."""
    monkeypatch.setattr(machine_code, "_directories", lambda _: iter(()))

    def plus_one(number: int) -> int:
        return number + 1

    function = compiled(plus_one)
    assert isinstance(function, Dispatcher)
    assert function(1) == 2
    assert function.stats.cache_path is None


def test_functions_of_others_are_kept_where_they_were() -> None:
    before = numba.config.CACHE_LOCATOR_CLASSES
    compiled(_a_function)
    assert before == numba.config.CACHE_LOCATOR_CLASSES


def _a_function(values: np.ndarray) -> float:
    return float(values.sum())


def test_what_imports_spark_is_told_from_what_does_not() -> None:
    tests = ROOT / "tests"
    assert needs_spark(tests / "stages" / "deciding" / "test_decide.py")
    assert not needs_spark(tests / "kernels" / "counting" / "test_counts.py")
