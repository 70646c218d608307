"""Loops of kernels as machine code, by Numba, kept from process to process.

Numba and the code take a second to import: kernels that use this are imported where a record's lattice is searched or
records are grouped or swapped, and nowhere else.

Numba keeps the code of a function beside the file in which it stands, and looks at that file alone to see whether the
code is still right. But the code holds, too, the functions it calls and the numbers it reads, which stand in other
files; and a package that Spark sends to its executors as an archive lies in a new directory in every run. So the code
is kept here in a directory named after the content of all files it was made from.
"""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import numba
from numba.core.caching import _CacheLocator

P = ParamSpec("P")
R = TypeVar("R")

_CONFIG: Any = numba.config
"""Which has its attributes at run time alone."""

SOURCES = (
    "lattice/lattice.py",
    "masking/grouping.py",
    "masking/partners.py",
    "masking/point_tree.py",
    "numeric/min_cut.py",
    "search/row_sets.py",
    "search/boxes/arrays.py",
    "search/boxes/bounds.py",
    "search/boxes/search.py",
    "sharing/graph.py",
    "sharing/level_boxes.py",
    "sharing/level_search.py",
    "sharing/pair_lattice.py",
    "sharing/walking.py",
)
"""Files, below ``kernels``, of all that compiled functions call and read."""


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function of numbers and arrays on its first call.

    The code is kept in the first of these directories that can be written: the one that ``NUMBA_CACHE_DIR`` names,
    ``__pycache__`` beside this module, the user's cache directory. Where there is none, every process compiles its own.
    The function, and what it calls and reads, stand in `SOURCES`.
    """
    usual = _CONFIG.CACHE_LOCATOR_CLASSES
    try:
        # Numba's own way to be told where to look; other packages' functions keep theirs.
        _CONFIG.CACHE_LOCATOR_CLASSES = f"{__name__}.{BySource.__name__}"
        return cast("Callable[P, R]", numba.njit(function, cache=True))
    except RuntimeError:
        # No directory to keep the code in: a read-only installation without a home.
        return cast("Callable[P, R]", numba.njit(function))
    finally:
        _CONFIG.CACHE_LOCATOR_CLASSES = usual


class BySource(_CacheLocator):
    """Where the code of a function is kept."""

    def __init__(self, function: Any, directory: Path) -> None:
        # Two modules may have functions of one name.
        self._directory = directory / f"privrisk-{key()}" / function.__module__
        self._line = function.__code__.co_firstlineno

    @classmethod
    def from_function(cls, function: Any, file: str) -> BySource | None:
        """Return the first directory that can be written, or None."""
        for directory in _directories(Path(file)):
            found = cls(function, directory)
            try:
                found.ensure_cache_path()  # type: ignore[no-untyped-call]
            except OSError:
                continue
            return found
        return None

    def get_cache_path(self) -> str:
        """Return the directory, which exists."""
        return str(self._directory)

    def get_source_stamp(self) -> str:
        """Return what kept code must bear to be right."""
        return key()

    def get_disambiguator(self) -> str:
        """Return what tells functions of one name in one module apart."""
        return str(self._line)


@functools.cache
def key() -> str:
    """Return what the content of `SOURCES` is known by: 16 hexadecimal digits."""
    kernels = resources.files("privrisk_spark.kernels")
    found = hashlib.sha256()
    for name in SOURCES:
        source = kernels.joinpath(*name.split("/")).read_bytes()
        found.update(f"{name}\0{hashlib.sha256(source).hexdigest()}\n".encode())
    return found.hexdigest()[:16]


def _directories(file: Path) -> Iterator[Path]:
    if _CONFIG.CACHE_DIR:
        yield Path(_CONFIG.CACHE_DIR)
    if file.is_file():  # not in an archive
        yield file.parent / "__pycache__"
    try:
        yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "privrisk_spark").absolute()
    except RuntimeError:
        return  # nobody's home
