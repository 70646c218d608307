"""Plots as values: panels of series with what was claimed, the verdict, and what was found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.generic] | Sequence[float]


@dataclass(frozen=True)
class Series:
    """A line of a panel.

    Attributes
    ----------
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

    @classmethod
    def of(cls, name: str, x: Numbers, y: Numbers, *, points: bool = False, labels: Sequence[str] = ()) -> Series:
        """Make a line from arrays.

        Parameters
        ----------
        x, y : ndarray of a real type, shape (n,), or sequence of n float
        points : bool, default False
        labels : sequence of str, default ()
        """
        along, up = (tuple(float(value) for value in np.asarray(values).tolist()) for values in (x, y))
        return cls(name, along, up, points, tuple(labels))


@dataclass(frozen=True)
class Panel:
    """One pair of axes; a logarithmic scale leaves out what is not positive.

    Attributes
    ----------
    diagonal : str
        Name of the line on which y equals x, to be drawn besides on axes of the same limits; empty for none.
    """

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    log_x: bool = False
    log_y: bool = False
    diagonal: str = ""


@dataclass(frozen=True)
class Plot:
    """A chart with the sentence that it shows.

    Attributes
    ----------
    key : str
        Same for all data.
    figure : str
        Figure, equation or section of the source the claims are from; empty for none.
    data : str
        Name of the data.
    measured : bool
        Whether it shows times, which differ from run to run.
    claims : tuple of (str, str)
        What the figure is said to show, each claim with its verdict; ``found`` is the evidence.
    """

    key: str
    title: str
    figure: str
    found: str
    panels: tuple[Panel, ...]
    data: str = ""
    measured: bool = False
    claims: tuple[tuple[str, str], ...] = ()


def lines(names: Sequence[str], x: Numbers, y: npt.NDArray[np.generic]) -> tuple[Series, ...]:
    """Make one line of each column.

    Parameters
    ----------
    names : sequence of m str
    x : ndarray of a real type, shape (n,), or sequence of n float
    y : ndarray of a real type, shape (n, m)
    """
    return tuple(Series.of(name, x, y[:, j]) for j, name in enumerate(names))
