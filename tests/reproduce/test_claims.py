"""Every claim of every experiment has a verdict that follows from numbers of the run: other numbers turn it round."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from reproduce.collection import NAMES, named
from reproduce.deciding.subject import Subject
from reproduce.result import Claim, Findings
from reproduce.sharing import diffusing
from reproduce.summary import word_of

SIZES: dict[str, dict[str, int]] = {
    "examples": {},
    "dictionaries": {"rows": 200, "attributes": 3},
    "deciding": {"rows": 150, "attributes": 3, "records": 40, "searches": 2},
    "recoding": {"rows": 200, "attributes": 3, "records": 40},
    "adversary": {"records": 500},
    "privacy": {"rows": 1_500, "large": 2_000, "attributes": 3, "records": 3, "runs": 1},
    "compare": {"rows": 60, "attributes": 2, "records": 30, "columns": 2},
    "sharing": {"users": 200, "pairs": 30, "attributes": 4},
}

PLANTED: dict[str, tuple[dict[str, float], ...]] = {
    "adversary": ({"lower": 58, "higher": 42, "records": 1_700},),
    "privacy": ({"condition": 2, "reached": 0},),
}
"""Numbers of several fields that only together turn a claim round."""

Turn = Callable[[np.ndarray], np.ndarray]
"""Puts other numbers in the place of those of the run."""

TURNS: tuple[Turn, ...] = (
    lambda x: np.zeros(x.shape),
    lambda x: np.full(x.shape, 1e6),
    *((lambda x, i=i: _along(x, i)) for i in range(3)),
    *((lambda x, i=i: 1e3 - _along(x, i)) for i in range(3)),
    *((lambda x, i=i: np.flip(x, i) if x.ndim > i else x) for i in range(2)),
    lambda x: np.full(x.shape, 1e-6),
    lambda x: np.ones(x.shape),
    lambda x: -np.ones(x.shape),
)


def _along(x: np.ndarray, axis: int) -> np.ndarray:
    """Numbers that grow along an axis alone."""
    axis = min(axis, x.ndim - 1)
    shape = [-1 if i == axis else 1 for i in range(x.ndim)]
    return np.broadcast_to(np.arange(1.0, 1.0 + x.shape[axis]).reshape(shape), x.shape)


class NoProgress:
    """Stages that nobody watches."""

    sentence = ""

    def stage(self, name: str) -> NoProgress:
        del name
        return self

    def __enter__(self) -> NoProgress:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def paths(value: Any, at: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Fields that hold numbers, each once however often its dataclass occurs."""
    if is_dataclass(value) and not isinstance(value, type | Subject):
        for field in fields(value):
            yield from paths(getattr(value, field.name), (*at, field.name))
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from paths(item, (*at, str(name)))
    elif isinstance(value, tuple | list):
        for item in value:
            yield from paths(item, at)
    elif isinstance(value, bool | int | float | np.ndarray):
        yield at


def turned(value: Any, path: tuple[str, ...], turn: Turn) -> Any:
    """The same with other numbers in one field; single numbers of several dataclasses are turned as one array."""
    single = list(_replaced(value, path, lambda one: one if isinstance(one, np.ndarray) else None)[1])
    numbers = iter(turn(np.array(single, dtype=np.float64)).tolist() if single else ())

    def other(one: Any) -> Any:
        if isinstance(one, np.ndarray):
            return turn(one).astype(one.dtype)
        return type(one)(next(numbers))

    return _replaced(value, path, other)[0]


def _replaced(value: Any, path: tuple[str, ...], other: Callable[[Any], Any]) -> tuple[Any, list[float]]:
    """A value with another one in a field, and the single numbers that were in its place."""
    single: list[float] = []

    def walked(one: Any, at: tuple[str, ...]) -> Any:
        if is_dataclass(one) and not isinstance(one, type | Subject):
            if at and at[0] in {field.name for field in fields(one)}:
                return replace(one, **{at[0]: walked(getattr(one, at[0]), at[1:])})
            return one
        if isinstance(one, dict):
            return {name: walked(item, at[1:]) if at[:1] == (str(name),) else item for name, item in one.items()}
        if isinstance(one, tuple | list):
            return tuple(walked(item, at) for item in one)
        if at or not isinstance(one, bool | int | float | np.ndarray):
            return one
        if not isinstance(one, np.ndarray):
            single.append(float(one))
        return other(one)

    return walked(value, path), single


def ran(name: str) -> tuple[Callable[..., Findings], tuple[Any, ...], dict[str, Any]]:
    """What makes findings of an experiment's results, and the results of a small run."""
    module = import_module(f"reproduce.{name}.experiment")
    experiment, findings, caught = named(name), module.findings, []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(diffusing, "NETWORKS", (12, 24))
        patch.setattr(module, "findings", lambda *given, **more: caught.append((given, more)))
        experiment.find(replace(experiment.quick, **SIZES[name]), None, NoProgress())  # type: ignore[arg-type]
    return findings, *caught[0]


def key(claim: Claim) -> tuple[str, str, str]:
    return claim.source, claim.claim, claim.data


def others(
    findings: Callable[..., Findings], given: tuple[Any, ...], more: dict[str, Any], name: str
) -> Iterator[Findings]:
    """Findings with other numbers in one field after the other, those that claims state among them."""
    kept = type(named(name).quick)
    printed = sorted({float(n) for one in findings(*given, **more).judged for n in re.findall(r"\d+\.?\d*", one.claim)})
    for planted in PLANTED.get(name, ()):
        changed = list(given)
        for i, argument in enumerate(given):
            for path in () if isinstance(argument, kept) else dict.fromkeys(paths(argument)):
                if path and path[-1] in planted:
                    n = planted[path[-1]]
                    changed[i] = turned(changed[i], path, lambda x, n=n: np.full(x.shape, n))
        yield findings(*changed, **more)
    for turn in (*TURNS, *((lambda x, n=n: np.full(x.shape, n)) for n in printed)):
        for i, argument in enumerate(given):
            for path in () if isinstance(argument, kept) else dict.fromkeys(paths(argument)):
                try:
                    yield findings(*given[:i], turned(argument, path, turn), *given[i + 1 :], **more)
                except (ArithmeticError, LookupError, ValueError, StopIteration):
                    continue  # numbers that no run can find


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore")
def test_every_claim_of_an_experiment_is_turned_round_by_other_numbers(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    findings, given, more = ran(name)
    monkeypatch.setattr(f"reproduce.{name}.results.plain", lambda value: value)
    found = findings(*given, **more)
    assert found.judged, "an experiment without a claim"
    words = {key(one): {word_of(one.verdict)} for one in found.judged}
    open_ = set(words)
    for other in others(findings, given, more, name):
        for one in other.judged:
            words.setdefault(key(one), set()).add(word_of(one.verdict))
        open_ = {one for one in open_ if len(words[one]) < 2 or words[one] <= {"holds", "not decided"}}
        if not open_:
            break
    assert not {one: words[one] for one in open_}
