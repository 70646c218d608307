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
from privrisk_spark.machine_code import SOURCES, chapter_of, compiled, fetch


def test_the_code_lies_where_the_state_of_all_sources_says() -> None:
    assert os.environ["NUMBA_CACHE_DIR"] == str(kept_for_tests.CACHE)
    place = Path(search.stats.cache_path)  # type: ignore[attr-defined]
    assert place.parent == kept_for_tests.CACHE / f"privrisk-{machine_code.key('search')}"


def _named(code: CodeType) -> set[str]:
    inner = (part for part in code.co_consts if isinstance(part, CodeType))
    return set(code.co_names).union(*(_named(part) for part in inner))


def _home(module: ModuleType, name: str) -> str:
    """The module in which a global of a module stands."""
    for node in ast.parse(inspect.getsource(module)).body:
        if isinstance(node, ast.ImportFrom) and any((alias.asname or alias.name) == name for alias in node.names):
            return _home(importlib.import_module(str(node.module)), name)
    return module.__name__


def _read_by(function: Dispatcher, known: dict[Dispatcher, set[str]]) -> set[str]:
    """The modules in which stands what a compiled function calls and reads, itself included."""
    if function not in known:
        module = inspect.getmodule(function.py_func)
        assert module is not None
        found = known[function] = {module.__name__}
        for name in _named(function.py_func.__code__) & vars(module).keys():
            value: Any = vars(module)[name]
            if isinstance(value, Dispatcher):
                found |= _read_by(value, known)
            elif not isinstance(value, ModuleType):
                found.add(_home(module, name))
    return known[function]


def test_sources_are_all_that_compiled_functions_of_a_chapter_call_and_read() -> None:
    known: dict[Dispatcher, set[str]] = {}
    found: dict[str | None, set[str]] = {}
    for file in (ROOT / "privrisk_spark").rglob("*.py"):
        if "import compiled" in file.read_text():
            module = importlib.import_module(".".join(file.relative_to(ROOT).with_suffix("").parts))
            for value in vars(module).values():
                if isinstance(value, Dispatcher) and value.py_func.__module__ == module.__name__:
                    found.setdefault(chapter_of(value.py_func), set()).update(_read_by(value, known))
    assert len(known) > 30
    itself = machine_code.__name__
    for chapter, modules in found.items():
        names = {f"privrisk_spark.{name.removesuffix('.py').replace('/', '.')}" for name in SOURCES[str(chapter)]}
        assert modules - {itself} == names
    assert found.keys() == SOURCES.keys()


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Another copy of the package, of which keys are made."""
    package = tmp_path / "privrisk_spark"
    shutil.copytree(ROOT / "privrisk_spark", package, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr("importlib.resources.files", lambda name: tmp_path.joinpath(*name.split(".")))
    return package


def test_another_source_has_another_key_in_the_chapters_that_read_it(tree: Path) -> None:
    fresh, before = machine_code.key.__wrapped__, {chapter: machine_code.key(chapter) for chapter in [*SOURCES, None]}
    assert {chapter: fresh(chapter) for chapter in before} == before
    for name in {name for names in SOURCES.values() for name in names}:
        changed = tree / name
        text = changed.read_text()
        changed.write_text(text + "\n")
        others = {chapter for chapter in before if fresh(chapter) != before[chapter]}
        assert others == {None, *(chapter for chapter, names in SOURCES.items() if name in names)}
        changed.write_text(text)


def test_another_way_to_fetch_makes_all_code_anew(tree: Path) -> None:
    before = [machine_code.key(chapter) for chapter in SOURCES]
    with (tree / "machine_code.py").open("a") as file:
        file.write("\n")
    assert not set(before) & {machine_code.key.__wrapped__(chapter) for chapter in SOURCES}


def test_what_a_chapter_compiles_another_does_not_wait_for(tmp_path: Path) -> None:
    with kept_for_tests.alone(tmp_path, "network"), kept_for_tests.alone(tmp_path, "search"):
        assert {file.name for file in tmp_path.iterdir()} == {"lock-network", "lock-search"}


@numba.njit
def _sum_of_what_was_asked_for(numbers: np.ndarray, order: np.ndarray) -> float:
    total = 0.0
    for i in range(len(order)):
        fetch(numbers, order[i] + 10**6)
        fetch(numbers, order[min(i + 2, len(order) - 1)])
        total += numbers[order[i]]
    return total


@pytest.mark.parametrize("step", [1, 3])
def test_what_is_fetched_is_not_changed(step: int) -> None:
    """Of an array with gaps too, and for a place outside of it."""
    numbers = np.arange(30.0)[::step]
    order = np.random.default_rng(1).permutation(len(numbers))
    assert _sum_of_what_was_asked_for(numbers, order) == numbers.sum()
    assert all("llvm.prefetch" in code for code in _sum_of_what_was_asked_for.inspect_llvm().values())


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
    place = tmp_path / "home" / ".cache" / "privrisk_spark" / f"privrisk-{machine_code.key('search')}"
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
