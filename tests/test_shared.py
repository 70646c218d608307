"""What runs of a test session share is what each would find by itself."""

from __future__ import annotations

import importlib
import sys
import xml.etree.ElementTree
from types import ModuleType

import pytest
from matplotlib.figure import Figure
from py4j.java_gateway import JavaPackage, JVMView
from shared import drawing, remember_java_names, sharing, sketches, submodules

from privrisk_spark.reporting.charts import as_svg, chart_settings


def used() -> object:
    return xml.etree.ElementTree.parse, xml.nowhere


def literal(names: set[str], package: ModuleType) -> list[ModuleType]:
    """As cloudpickle looks: every module below the package whose parts the code names."""
    prefix = f"{package.__name__}."
    there = [name for name in sys.modules if name.startswith(prefix)]
    return [sys.modules[name] for name in there if set(name.removeprefix(prefix).split(".")) <= names]


def test_modules_below_those_a_function_uses_are_found_as_they_come_and_go(monkeypatch: pytest.MonkeyPatch) -> None:
    package, names = importlib.import_module("xml"), set(used.__code__.co_names)
    none = (1, None, ModuleType("alone"))
    assert submodules(used.__code__, [package, *none]) == literal(names, package)
    assert xml.etree.ElementTree in submodules(used.__code__, [package])
    later = ModuleType("xml.nowhere")
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "xml.nowhere", later)
        assert later in submodules(used.__code__, [package])
    # One is gone and another is there: as many as before.
    monkeypatch.setitem(sys.modules, "somewhere_else", ModuleType("somewhere_else"))
    assert submodules(used.__code__, [package]) == literal(names, package)


def test_packages_of_java_are_looked_up_once_and_values_at_each_use(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def look_up(view: JVMView, name: str) -> object:
        asked.append(name)
        return JavaPackage(name, None, None) if name == "org" else len(asked)

    monkeypatch.setattr(JVMView, "__getattr__", look_up)
    remember_java_names(monkeypatch)
    view, other = object.__new__(JVMView), object.__new__(JVMView)
    assert view.org is view.org
    assert other.org is not view.org
    assert view.value < view.value
    assert asked == ["org", "org", "value", "value"]


def test_a_sketch_has_the_texts_of_the_drawing_and_its_alternatives() -> None:
    def chart() -> str:
        with chart_settings():
            figure = Figure(figsize=(2, 1))
            figure.add_subplot(title="a < b", xlabel="risk").plot([0, 1], [1, 0])
            return as_svg(figure, "p", title="told", description="described")

    drawn = chart()
    with sharing([sketches()]):
        sketched = chart()
        with drawing():
            assert chart() == drawn
    assert chart() == drawn
    assert "<path" not in sketched
    for text in (">a &lt; b</text>", ">risk</text>", ">told</title>", ">described</desc>", 'role="img"', "</svg>"):
        assert text in sketched
        assert text in drawn
