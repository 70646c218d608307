"""The reference is that of the docstrings, and every docstring says what it must, with an example that runs."""

from __future__ import annotations

import doctest
import importlib.util
import inspect
import re
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
from product import production_batches

import privrisk_spark as pr

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DOCS = Path(__file__).resolve().parents[2] / "docs"
NAMES = [name for name in pr.__all__ if name != "errors"]
FUNCTIONS = [name for name in NAMES if inspect.isfunction(getattr(pr, name))]


def program() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reference", DOCS / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def sections(thing: Any) -> dict[str, str]:
    return dict(program().sections(inspect.cleandoc(thing.__doc__)))


def test_the_page_is_up_to_date() -> None:
    made = program().page()
    assert (DOCS / "api.md").read_text() == made, "run: python docs/reference.py"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("Plan\n    Its text.\n    Its end.", ["- *Plan*", "  Its text.", "  Its end."]),
        ("A\n    Of a.\nB\n    Of b.", ["- *A*", "  Of a.", "- *B*", "  Of b."]),
        ("k : int\n    At least 2.", ["- **k** : *int*", "  At least 2."]),
    ],
)
def test_listed_for_one_or_more_items_keeps_descriptions_below_them(text: str, lines: list[str]) -> None:
    assert list(program().listed(text)) == lines


def test_the_page_has_every_public_name() -> None:
    groups = program().GROUPS
    assert sorted(name for names in groups.values() for name in names) == sorted(NAMES)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_say_what_they_take_return_and_raise(name: str) -> None:
    function = getattr(pr, name)
    found = sections(function)
    assert found[""].splitlines()[0].endswith(".")
    parameters = inspect.signature(function).parameters
    said = re.findall(r"^\*?(\w+(?:, \w+)*) : ", found.get("Parameters", ""), re.MULTILINE)
    assert [one for line in said for one in line.split(", ")] == list(parameters)
    assert found["Returns"].strip()
    assert found["Examples"].strip()
    if name in ("assess", "audit", "load", "plan", "release"):
        assert "privrisk_spark.errors." in found["Raises"]


@pytest.mark.parametrize("name", sorted(set(NAMES) - set(FUNCTIONS)))
def test_classes_say_what_they_hold(name: str) -> None:
    thing = getattr(pr, name)
    found = sections(thing)
    held = "Attributes" if hasattr(thing, "__dataclass_fields__") else "Parameters"
    names = {
        one for line in re.findall(r"^\*{0,2}(\w+(?:, \w+)*) : ", found[held], re.MULTILINE) for one in line.split(", ")
    }
    fields = {name for name in getattr(thing, "__dataclass_fields__", ()) if not name.startswith("_")}
    wanted = fields or set(inspect.signature(thing.__init__).parameters) - {"self"}
    assert names == wanted
    for member, value in program().members(thing):
        assert value.__doc__, member


@pytest.mark.parametrize("name", [*FUNCTIONS, "Policy"])
def test_every_example_runs(name: str, spark: SparkSession, request: pytest.FixtureRequest) -> None:
    thing = getattr(pr, name)
    found = doctest.DocTestFinder(recurse=False).find(thing, name, globs={})
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    said: list[str] = []
    with production_batches(spark):
        for test in found:
            assert test.examples
            runner.run(test, out=said.append)
    assert not runner.summarize(verbose=False).failed, "".join(said)
