"""Every byte that does not travel through Spark goes through ``storage``: nobody else touches a disk or a store.

:func:`touches` walks one module; every kind of what it looks for has a planted violation that must be found, and what
merely looks like one must not be.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

PACKAGE: Final = Path(__file__).resolve().parents[2] / "privrisk_spark"

FREE: Final = ("storage", "cli")
"""Rooms that may: the one that is there for it, and the one a person types to."""

LIBRARIES: Final = {
    "bz2", "fcntl", "fileinput", "fsspec", "glob", "gzip", "lzma", "mmap", "obstore", "pyarrow.fs", "shelve", "shutil",
    "tarfile", "tempfile", "zipfile",
}  # fmt: skip
"""What is there to read and write files, and nothing else."""

CALLS: Final = {
    "open", "io.open", "io.open_code", "io.FileIO", "codecs.open", "logging.FileHandler",
    "np.fromfile", "np.genfromtxt", "np.load", "np.loadtxt", "np.memmap", "np.save", "np.savetxt", "np.savez",
    "np.savez_compressed",
    "pa.OSFile", "pa.create_memory_map", "pa.input_stream", "pa.memory_map", "pa.output_stream",
}  # fmt: skip
"""Functions by the names they are called by."""

METHODS: Final = {
    "chmod", "exists", "glob", "hardlink_to", "is_dir", "is_file", "is_fifo", "is_mount", "is_socket",
    "is_symlink", "iterdir", "lchmod", "lstat", "mkdir", "open", "read_bytes", "read_text", "readlink",
    "rename", "resolve", "rglob", "rmdir", "samefile", "stat", "symlink_to", "tofile", "touch", "unlink", "walk",
    "write_bytes", "write_text",
}  # fmt: skip
"""Methods of paths and files; ``replace`` is one with a single argument, where a text's has two."""

OF_NO_DISK: Final = {
    "cpu_count", "environ", "fspath", "getenv", "geteuid", "getpid", "getppid", "path.basename", "path.dirname",
    "path.join", "path.normpath", "pathsep", "sched_getaffinity", "sep", "strerror", "urandom",
}  # fmt: skip
"""What a module may take of ``os``: processes, the environment, and names of places."""

RESOURCES: Final = ("files", "resources.files", "importlib.resources.files")
"""What the package itself is made of is read as it was installed, from a directory or an archive."""

LOOK_ALIKE: Final[Mapping[str, str]] = {
    "self._storage.exists": "asks a ledger's storage whether there is one",
    "self.exists": "asks the same of itself",
    "self._store.open": "opens a file of a store, by the protocol of storage",
    "Series.walk": "begins a series of walks in a network",
}
"""Calls that are none of paths, by how they are written."""

OF_THEIR_OWN: Final[Mapping[str, str]] = {
    "engine.quiet": "turns the standard output of a process away while compiled code runs; no data is written",
    "machine_code": "stands below storage: numba asks it where compiled kernels are kept, while modules are imported",
}
"""Modules that touch a disk all the same, with the reason."""


def name_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES: Final = {
    name_of(path): path for path in sorted(PACKAGE.rglob("*.py")) if name_of(path).split(".")[0] not in FREE
}


def _root(node: ast.AST) -> ast.AST:
    """What a chain of attributes and calls begins with: in ``f(a).b(c).d`` the call of f."""
    while True:
        if isinstance(node, ast.Attribute):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if ast.unparse(node.func) in RESOURCES:
                return node
            node = node.func.value
        else:
            return node


def _imported(node: ast.AST) -> Iterator[str]:
    """What of the libraries a statement imports, or of ``os`` by its own name."""
    named: list[str] = []
    if isinstance(node, ast.Import):
        named = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and node.module is not None:
        named = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        if node.module.split(".")[0] == "os":
            for one in named[1:]:
                yield from () if one.removeprefix("os.") in OF_NO_DISK | {"path"} else (f"import of {one}",)
    for one in named:
        if any(f"{one}.".startswith(f"{library}.") for library in LIBRARIES):
            yield f"import of {one}"


def _called(node: ast.Call) -> Iterator[str]:
    called = ast.unparse(node.func)
    if called in LOOK_ALIKE:
        return
    if called.replace("numpy.", "np.", 1).replace("pyarrow.", "pa.", 1) in CALLS:
        yield called
    elif isinstance(node.func, ast.Attribute):
        root = _root(node.func)
        if isinstance(root, ast.Call) and ast.unparse(root.func) in RESOURCES:
            return
        of_path = node.func.attr == "replace" and len(node.args) == 1 and not node.keywords
        if node.func.attr in METHODS or of_path:
            yield called


def touches(source: str) -> list[str]:
    """What in a module touches a disk or a store, each with its line."""
    found: list[tuple[int, str]] = []
    inner: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            found += [(node.lineno, one) for one in _imported(node)]
        elif isinstance(node, ast.Call):
            found += [(node.lineno, one) for one in _called(node)]
        elif isinstance(node, ast.Attribute) and id(node) not in inner:
            dotted = ast.unparse(node)
            if dotted.startswith("os."):
                inner |= {id(below) for below in ast.walk(node)}
                short = dotted.removeprefix("os.")
                if not any(f"{short}.".startswith(f"{name}.") for name in OF_NO_DISK):
                    found.append((node.lineno, dotted))
    return [f"line {line}: {what}" for line, what in sorted(set(found))]


def test_nobody_but_storage_touches_a_disk() -> None:
    found = {name: touches(path.read_text()) for name, path in MODULES.items() if name not in OF_THEIR_OWN}
    assert len(found) > 300
    assert not {name: lines for name, lines in found.items() if lines}


def test_an_exception_is_one_that_is_needed() -> None:
    for name in OF_THEIR_OWN:
        assert touches(MODULES[name].read_text()), name


PLANTED: Final = [
    *(f"import {library}" for library in sorted(LIBRARIES)),
    *(f"from {library} import x" for library in sorted(LIBRARIES)),
    "from pyarrow import fs",
    "def inside():\n    import shutil as of_shells",
    "from os import remove",
    "from os.path import exists",
    *(f"{call}(place)" for call in sorted(CALLS)),
    "with open(place, 'rb') as file:\n    pass",
    "numpy.load(place)",
    *(f"(place / 'name').{method}()" for method in sorted(METHODS)),
    "place.replace(target)",
    "found = map(Path(where).joinpath(name).stat, names) and place.parent.stat()",
    *(f"os.{name}(place)" for name in ("remove", "link", "walk", "open", "stat", "path.exists", "path.realpath")),
    "flags = os.O_NOFOLLOW",
    "look = os.path.lexists",
]
"""One violation of every kind."""


def test_a_planted_violation_of_every_kind_is_found() -> None:
    assert not [source for source in PLANTED if not touches(source)]


INNOCENT: Final = [
    "text.replace('a', 'b'); moment.replace(tzinfo=None); replace(frozen, a=1)",
    "os.environ.get('HOME'); os.getpid(); os.path.join(a, b); os.fspath(a); os.environ.setdefault('A', 'b')",
    "from importlib.resources import files\nfiles('privrisk_spark.reporting').joinpath('a', 'b').read_text()",
    "resources.files('privrisk_spark.kernels').joinpath('a').read_bytes()",
    "Path(place).parent / 'name'; Path.cwd(); Path(place).absolute().with_name('b').relative_to('/')",
    "import io\nio.StringIO(text); import os",
    "from os import environ, path",
    "heapq.heappop(heap); store.read(name); directory.writing(name)",
]
"""What looks like one, and is none."""


@pytest.mark.parametrize("source", INNOCENT)
def test_what_looks_like_one_is_none(source: str) -> None:
    assert not touches(source)
