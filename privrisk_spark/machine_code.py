"""Loops of kernels as machine code, by Numba, kept from process to process.

Numba and the code take a second to import: kernels that use this are imported where a record's lattice is searched or
records are grouped or swapped, and nowhere else.

Numba keeps the code of a function beside the file in which it stands, and looks at that file alone to see whether the
code is still right. But the code holds, too, the functions it calls and the numbers it reads, which stand in other
files; and a package that Spark sends to its executors as an archive lies in a new directory in every run. So the code
is kept here in a directory named after the content of the files it was made from: those of its chapter of the kernels,
so that a change of one chapter leaves the code of the others as it is.
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
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.caching import _CacheLocator
from numba.extending import intrinsic

P = ParamSpec("P")
R = TypeVar("R")

_CONFIG: Any = numba.config
"""Which has its attributes at run time alone."""

SOURCES = {
    "perturb": (
        "extensions/perturb/kernels/grouping.py",
        "extensions/perturb/kernels/partners.py",
        "extensions/perturb/kernels/point_tree.py",
    ),
    "numeric": ("kernels/numeric/min_cut.py",),
    "search": (
        "kernels/lattice/lattice.py",
        "kernels/search/row_sets.py",
        "kernels/search/boxes/arrays.py",
        "kernels/search/boxes/bounds.py",
        "kernels/search/boxes/search.py",
    ),
    "network": (
        "kernels/lattice/lattice.py",
        "kernels/search/row_sets.py",
        "extensions/network/kernels/graph.py",
        "extensions/network/kernels/level_boxes.py",
        "extensions/network/kernels/level_search.py",
        "extensions/network/kernels/pair_lattice.py",
        "extensions/network/kernels/walking.py",
    ),
}
"""Files of all that the compiled functions of a package of kernels call and read, except this module. A change of
another file does not compile the functions of the package again."""


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function of numbers and arrays on its first call.

    The code is kept in the first of these directories that can be written: the one that ``NUMBA_CACHE_DIR`` names,
    ``__pycache__`` beside this module, the user's cache directory. Where there is none, every process compiles its own.
    The function, and what it calls and reads, stand in `SOURCES`, by its chapter.
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


@intrinsic
def _fetch(typing: Any, array: Any, place: Any) -> Any:  # noqa: ARG001 - types, as Numba gives them
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        build: Any = cgutils
        held = build.create_struct_proxy(signature.args[0])(context, builder, arguments[0])
        start = builder.bitcast(held.data, cgutils.voidptr_t)
        (apart,) = build.unpack_tuple(builder, held.strides, 1)
        address = builder.gep(start, [builder.mul(arguments[1], apart)])
        number = ir.IntType(32)
        takes = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, number, number, number])
        ask = builder.module.declare_intrinsic("llvm.prefetch", [cgutils.voidptr_t], takes)
        # To read it; into every cache; it is data.
        builder.call(ask, [address, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


fetch = cast("Callable[[Any, Any], None]", _fetch)
"""Ask the processor for a number of an array before it is needed: ``fetch(array, place)``, in compiled functions alone.

It changes nothing, and goes on at once: the line of the cache in which ``array[place]`` lies is on its way while others
are read. Without it what is read in no order is waited for, which takes half of a walk over a graph that is larger than
the caches. The array has one dimension; a place outside of it is allowed, and of no use.
"""


class BySource(_CacheLocator):
    """Where the code of a function is kept."""

    def __init__(self, function: Any, directory: Path) -> None:
        # Two modules may have functions of one name.
        self._key = key(chapter_of(function))
        self._directory = directory / f"privrisk-{self._key}" / function.__module__
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
        return self._key

    def get_disambiguator(self) -> str:
        """Return what tells functions of one name in one module apart."""
        return str(self._line)


def chapter_of(function: Any) -> str | None:
    """Return the key of `SOURCES` in whose package a function is defined, or None."""
    top, *inside = function.__module__.split(".")
    return next((part for part in inside if part in SOURCES), None) if top == __package__ else None


@functools.cache
def key(chapter: str | None) -> str:
    """Return what the content of a chapter's `SOURCES`, or of all, is known by: 16 hexadecimal digits."""
    names = SOURCES[chapter] if chapter else sorted({name for some in SOURCES.values() for name in some})
    package, found = resources.files("privrisk_spark"), hashlib.sha256()
    for name in (*names, "machine_code.py"):
        source = package.joinpath(*name.split("/"))
        found.update(f"{name}\0{hashlib.sha256(source.read_bytes()).hexdigest()}\n".encode())
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
