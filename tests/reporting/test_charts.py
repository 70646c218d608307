"""A label of a point stands beside its point."""

from __future__ import annotations

import math
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from privrisk_spark import extras
from privrisk_spark.errors import InputError
from privrisk_spark.reporting.charts import _scale, draw
from privrisk_spark.reporting.release_charts import levels_chart
from privrisk_spark.results.page import Page
from privrisk_spark.results.plots import Panel, Plot, Series
from privrisk_spark.results.release import AttributeLevels
from reproduce.texts import all_but_ends_blank


def test_labels_of_points_stand_beside_their_points_and_others_have_none() -> None:
    x, y = [0.002, 0.01, 0.04, 0.3], [1.0, 2.5, 4.0, 6.5]
    labels = all_but_ends_blank([f"k = {k}" for k in (50, 20, 10, 2)])
    points = Series.of("k-anonymity", x, y, points=True, labels=labels)
    optimum = Series.of("optimum", x, [value + 1 for value in y])
    panel = Panel("model I", "mean risk", "mean utility", (optimum, points), log_x=True)
    svg = draw(Plot(key="x", title="t", figure="f", found="f", panels=(panel,)), prefix="p")
    # Points are hollow, other marks are not; the last is the legend's.
    *marks, _ = [
        (float(a), float(b)) for a, b in re.findall(r'<use [^>]*x="([\d.]+)" y="([\d.]+)" style="fill-opacity: 0', svg)
    ]
    assert len(marks) == 4
    texts = {
        text: (float(a), float(b))
        for a, b, text in re.findall(r'<text [^>]* x="([\d.]+)" y="([\d.]+)"[^>]*>(k = \d+)</text>', svg)
    }
    assert set(texts) == {"k = 50", "k = 2"}
    for text, point in (("k = 50", 0), ("k = 2", 3)):
        distances = [math.dist(mark, texts[text]) for mark in marks]
        assert distances.index(min(distances)) == point
        assert min(distances) < 20


def test_no_share_of_generalized_values_is_less_than_none() -> None:
    """100 less two shares that are rounded may be below 0."""
    names = ("as it is", "level 1", "suppressed")
    for kept in range(1, 93):
        chart = levels_chart([AttributeLevels("age", 2, names, (kept, 0, 92 - kept))])
        assert " 0 % generalized" in chart, kept
        if 100 - 100 * kept / 92 - 100 * (92 - kept) / 92 < 0:
            return
    raise AssertionError("no share is rounded up")


def test_ticks_of_whole_numbers_are_whole_numbers() -> None:
    """Three attributes are numbered 1, 2, 3, not 1, 1.25, 1.5; shares in between keep their ticks."""
    ticks = []
    for x in ([1.0, 2.0, 3.0], [1.0, 2.5, 3.0]):
        axes = Figure().subplots()
        axes.plot(x, x)
        _scale(axes, Panel("", "attribute", "share", (Series.of("", x, x),)), ticks=6)
        ticks.append([tick for tick in axes.get_xticks().tolist() if 1 <= tick <= 3])
    assert ticks[0] == [1, 2, 3]
    assert 1.25 in ticks[1]


def test_save_figures_of_a_page_writes_each_as_a_document_of_its_own(tmp_path: Path) -> None:
    names = ("as it is", "level 1", "suppressed")
    levels = levels_chart([AttributeLevels("age & <sex>", 2, names, (1, 2, 3))])
    curve = Plot(key="x", title="t", figure="f", found="f", panels=(Panel("", "x", "y", (Series.of("", [1], [2]),)),))
    page = Page(f"<html><p>before</p>{levels}<p>between</p>{draw(curve, prefix='curve-1')}</html>")
    files = page.save_figures(tmp_path / "new" / "figures")
    assert [file.name for file in files] == ["levels.svg", "levels.png", "curve-1.svg", "curve-1.png"]
    for file in files[1::2]:
        with Image.open(file) as picture:
            assert picture.width == pytest.approx(7.2 * 300, abs=5)
            assert not picture.info, "no date, and no program"
            ink = np.asarray(picture.convert("L"))
            assert ink[0, 0] == 255
            assert (ink[:, : ink.shape[1] // 20] < 128).any(), "labels of the axis"
    for file, named in zip(files[::2], ["age & <sex>", "f"], strict=True):
        found = ElementTree.fromstring(file.read_text())
        assert found.tag == "{http://www.w3.org/2000/svg}svg"
        assert named in "".join(found.itertext())
        assert "var(" not in file.read_text(), "outside of a page nothing sets colours"
    assert Page("<p>no chart</p>").figures() == {}


def test_save_figures_without_the_extra_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "is_installed", lambda package: package != "resvg_py")
    page = Page(levels_chart([AttributeLevels("age", 1, ("as it is", "level 1"), (1, 2))]))
    with pytest.raises(InputError, match=r"Fix: pip install 'privrisk-spark\[charts\]'"):
        page.save_figures(tmp_path)
    assert Page("").save_figures(tmp_path) == []
