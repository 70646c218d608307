"""Plots as values: panels of series with what was claimed and what was found."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Series:
    """A line of a panel.

    Attributes
    ----------
    name : str
    x, y : tuple of float
        NaN where there is no point.
    points : bool
        Draw markers without a line.
    labels : tuple of str
        Text beside each point; empty for none.
    """

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    points: bool = False
    labels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Panel:
    """One pair of axes; a logarithmic scale leaves out what is not positive."""

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    log_x: bool = False
    log_y: bool = False


@dataclass(frozen=True)
class Plot:
    """A chart with its two sentences.

    Attributes
    ----------
    key : str
        Same for all data.
    title : str
    figure : str
        Figure or equation of F12.
    claim, found : str
    panels : tuple of Panel
    data : str
        Name of the data.
    measured : bool
        Whether it shows times, which differ from run to run.
    """

    key: str
    title: str
    figure: str
    claim: str
    found: str
    panels: tuple[Panel, ...]
    data: str = ""
    measured: bool = False
