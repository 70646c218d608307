"""Work that runs of a test session share: of the same facts the same charts are drawn."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any

import pytest

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


Substitute = tuple[Any, str, Callable[..., Any]]


def substitutes() -> list[Substitute]:
    """What a session's runs call in place of the drawing and the checking itself: module, name, function."""
    from privrisk_spark.reporting import pages, report

    return [
        *((report, name, drawn_once(getattr(report, name))) for name in CHARTS),
        (pages, "draw", drawn_once(pages.draw)),
    ]


@contextmanager
def sharing(substitutes: Sequence[Substitute]) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for module, name, substitute in substitutes:
            patch.setattr(module, name, substitute)
        yield
