"""What runs of a test session share is what each would find by itself."""

from __future__ import annotations

import importlib
import sys
import xml.etree.ElementTree
from types import ModuleType

import pytest
from py4j.java_gateway import JavaPackage, JVMView
from shared import drawing, remember_java_names, submodules, without_charts

from privrisk_spark.reporting.page_templates import can_draw, draw_plot
from privrisk_spark.results.plots import Plot


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


def test_charts_are_left_out_where_they_are_not_drawn() -> None:
    plot = Plot(key="x", title="t", figure="f", found="f", panels=())
    with without_charts():
        assert draw_plot(plot, prefix="p") is None
        with drawing():
            assert can_draw()
        assert not can_draw()
    assert can_draw()
