"""Work that runs of a test session share or leave out: charts are left out, and modules are listed once."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from types import CodeType, ModuleType
from typing import Any

import pytest

DRAWING = ContextVar("DRAWING", default=False)
"""Whether charts are drawn in runs whose charts are left out otherwise."""


@contextmanager
def without_charts() -> Iterator[None]:
    """Pages as without the extra ``charts``: their numbers, but no drawings, which take longer than most of a run."""

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("privrisk_spark.reporting.page_templates.is_installed", lambda _: DRAWING.get())
        yield


@contextmanager
def drawing() -> Iterator[None]:
    """Draw the charts, inside of :func:`without_charts`."""
    before = DRAWING.set(True)
    yield
    DRAWING.reset(before)


def submodules(code: CodeType, used: Iterable[Any]) -> list[ModuleType]:
    """What pickling a function asks of all imported modules, which are thousands in a process of tests: those below a
    module that it uses, whose names its code has."""
    names, below = set(code.co_names), _below(len(sys.modules), next(reversed(sys.modules)))
    packages = [module for module in used if isinstance(module, ModuleType) and getattr(module, "__package__", None)]
    return [
        sys.modules[f"{package.__name__}.{name}"]
        for package in packages
        for name, parts in below.get(package.__name__, ())
        if parts <= names
    ]


@lru_cache(maxsize=1)
def _below(_: int, __: str) -> dict[str, list[tuple[str, frozenset[str]]]]:
    """Rest and parts of the names of the modules below each, anew when their number or the last one is another."""
    found: defaultdict[str, list[tuple[str, frozenset[str]]]] = defaultdict(list)
    for name in list(sys.modules):
        parts = name.split(".")
        for depth in range(1, len(parts)):
            found[".".join(parts[:depth])].append((".".join(parts[depth:]), frozenset(parts[depth:])))
    return found


def remember_java_names(patch: pytest.MonkeyPatch) -> None:
    """Packages, classes and their methods are looked up once, not at each use: half of what a driver asks of Java."""
    from py4j.java_gateway import JavaClass, JavaMember, JavaPackage, JVMView

    for owner in (JVMView, JavaPackage, JavaClass):
        patch.setattr(owner, "__getattr__", _remembering(owner.__getattr__, (JavaPackage, JavaClass, JavaMember)))


def _remembering(look_up: Callable[[Any, str], Any], kinds: tuple[type, ...]) -> Callable[[Any, str], Any]:
    def found(self: Any, name: str) -> Any:
        value = look_up(self, name)
        if isinstance(value, kinds):
            vars(self)[name] = value
        return value

    return found
