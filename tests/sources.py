"""What a module runs when it is imported: its own source, and those of the project that it imports."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def _modules() -> dict[str, Path]:
    """Sources of the project by the names that pytest lets them be imported by."""
    found = {}
    for place in (ROOT, ROOT / "tests"):
        for directory, below, files in os.walk(place):
            below[:] = [name for name in below if not name.startswith(".") and name != "build"]
            package = Path(directory).relative_to(place).parts
            for file in files:
                if file.endswith(".py"):
                    parts = package if file == "__init__.py" else (*package, file[:-3])
                    found[".".join(parts)] = Path(directory, file)
    return found


MODULES = _modules()


_TEXT = re.compile(r'("""|\'\'\').*?\1', re.DOTALL)
_IMPORT = re.compile(r"^import +([\w.]+)|^from +([\w.]+) +import +(\([^)]*\)|[^\n]*)", re.MULTILINE)
"""What is indented runs later, or is for type checkers alone. A whole parser takes seconds for all files."""


@cache
def _named(file: Path) -> frozenset[str]:
    """Modules a file imports, and what may be modules: the names it imports from them."""
    found = set()
    for match in _IMPORT.finditer(_TEXT.sub("", file.read_text())):
        module = match[1] or match[2]
        found |= {module, *(f"{module}.{name}" for name in re.findall(r"\w+", match[3] or ""))}
    return frozenset(found)


@cache
def _files(name: str) -> tuple[Path, ...]:
    """Sources of the project that an import of a module runs: the module's and those of the packages it is in."""
    parts = name.split(".")
    names = (".".join(parts[:n]) for n in range(1, len(parts) + 1))
    return tuple(MODULES[name] for name in names if name in MODULES)


@cache
def reached(file: Path) -> tuple[frozenset[Path], frozenset[str]]:
    """Sources of the project that an import of a file runs, itself among them, and libraries these import."""
    todo, sources, libraries = [file], {file}, set()
    while todo:
        for name in _named(todo.pop()):
            files = _files(name)
            if not files:
                libraries.add(name.split(".")[0])
            todo += [other for other in files if other not in sources]
            sources |= set(files)
    return frozenset(sources), frozenset(libraries)


def needs_spark(file: Path) -> bool:
    """Whether a file cannot be imported without Spark."""
    return "pyspark" in reached(file)[1]
