"""Work that runs of a test session share or leave out: charts are sketched, and modules are listed once."""

from __future__ import annotations

import pickle
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache, wraps
from html import escape
from types import CodeType, ModuleType
from typing import IO, TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CHARTS = ("risk_chart", "levels_chart", "map_chart", "floor_chart")


def drawn_once(draw: Callable[..., str]) -> Callable[..., str]:
    """A chart is a function of its arguments; another process draws the same bytes (tests/reporting)."""
    known: dict[bytes, str] = {}

    @wraps(draw)
    def drawing(*arguments: Any, **named: Any) -> str:
        key = pickle.dumps((arguments, sorted(named.items())))
        if key not in known:
            known[key] = draw(*arguments, **named)
        return known[key]

    return drawing


def sketch(figure: Figure, file: IO[str]) -> None:
    """Write size and texts of a figure as SVG, without the drawing, which takes longer than most of a run."""
    from matplotlib.text import Text

    width, height = figure.get_size_inches() * 72
    texts = (part.get_text() for part in figure.findobj(Text) if isinstance(part, Text))
    inside = "".join(f"<text>{escape(one)}</text>" for one in texts if one)
    file.write(f'<svg viewBox="0 0 {width:g} {height:g}">{inside}</svg>')


Substitute = tuple[Any, str, Callable[..., Any]]

DRAWING = ContextVar("DRAWING", default=False)
"""Whether charts are drawn where they would be sketched."""


def sketches() -> Substitute:
    """The sketch in place of the drawing.

    Figures are made of what the run found, as always; how they are drawn is what tests of charts look at, runs in a
    process of their own, and tests marked ``alone``.
    """
    from matplotlib.figure import Figure

    draw = Figure.savefig

    def savefig(figure: Figure, file: IO[str], **options: Any) -> None:
        if DRAWING.get():
            draw(figure, file, **options)
        else:
            sketch(figure, file)

    return Figure, "savefig", savefig


@contextmanager
def drawing() -> Iterator[None]:
    """Draw, where sketches would be made."""
    before = DRAWING.set(True)
    yield
    DRAWING.reset(before)


def substitutes() -> list[Substitute]:
    """What a session's runs call in place of the drawing and the checking itself: module, name, function."""
    from privrisk_spark.reporting import pages, report

    return [
        *((report, name, drawn_once(getattr(report, name))) for name in CHARTS),
        (pages, "draw", drawn_once(pages.draw)),
        sketches(),
    ]


@contextmanager
def sharing(substitutes: Sequence[Substitute]) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for module, name, substitute in substitutes:
            patch.setattr(module, name, substitute)
        yield


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
