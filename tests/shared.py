"""Work that runs of a test session share: of the same facts the same charts are drawn, the same contract is checked."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

CHARTS = ("risk_chart", "levels_chart", "map_chart")


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


def checked_once(run: Callable[..., list[bool]], kept: Path) -> Callable[..., list[bool]]:
    """A contract is checked on facts and on column names alone; what it leaves in the vault is copied."""
    known: dict[object, tuple[list[bool], Path]] = {}

    def checking(
        contract: str, facts: Mapping[str, float], rules: Sequence[Any], frame: Any, columns: Sequence[str], vault: Path
    ) -> list[bool]:
        numbers = tuple((name, float(value)) for name, value in facts.items())
        key = contract, repr(numbers), tuple(rules), repr(frame.schema), tuple(columns)
        docs, suites = Path("data_docs", contract), Path("contracts")
        if key in known:
            outcomes, before = known[key]
            shutil.copytree(before / docs, vault / docs, dirs_exist_ok=True)
            shutil.copytree(before / suites, vault / suites, dirs_exist_ok=True)
            return list(outcomes)
        outcomes, before = run(contract, facts, rules, frame, columns, vault), kept / str(len(known))
        shutil.copytree(vault / docs, before / docs)
        (before / suites).mkdir()
        for file in (vault / suites).glob(f"{contract}-*"):
            shutil.copy2(file, before / suites)
        known[key] = outcomes, before
        return list(outcomes)

    return checking


Substitute = tuple[Any, str, Callable[..., Any]]


def substitutes(kept: Path) -> list[Substitute]:
    """What a session's runs call in place of the drawing and the checking itself: module, name, function."""
    from privrisk_spark.reporting import report
    from privrisk_spark.stages.publishing import contracts

    found: list[Substitute] = [(report, name, drawn_once(getattr(report, name))) for name in CHARTS]
    return [*found, (contracts, "_run", checked_once(contracts._run, kept))]


@contextmanager
def sharing(substitutes: Sequence[Substitute]) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for module, name, substitute in substitutes:
            patch.setattr(module, name, substitute)
        yield
