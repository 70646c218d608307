"""Pages and tables as values a notebook shows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path

from privrisk_spark.extras import require
from privrisk_spark.storage.directories import make_plainly
from privrisk_spark.storage.documents import write_plainly

_FIGURE = re.compile(r'(<svg [^>]*aria-labelledby="(\S+)-title .*?</svg>)', re.DOTALL)
_OF_PAGE = re.compile(r"var\(--[\w-]+, (#\w+)\)")
"""A colour that follows the page, and the one it has alone."""


@dataclass(frozen=True)
class Page:
    """A self-contained HTML page.

    Attributes
    ----------
    html : str
        The whole document; it loads nothing and runs nothing.
    """

    html: str

    def __str__(self) -> str:
        """Return the document."""
        return self.html

    def __repr__(self) -> str:
        """Say how long it is, not all of it."""
        return f"Page({len(self.html):,} characters)"

    def save(self, path: str | Path) -> Path:
        """Write the page as UTF-8 and return where it is.

        Parameters
        ----------
        path : str or Path
        """
        place = Path(path)
        write_plainly(place, self.html)
        return place

    def figures(self) -> dict[str, str]:
        """Return the figures of the page by their names, such as ``risk``; none if charts are not installed.

        Returns
        -------
        dict of str to str
            SVG documents, in the order of the page.
        """
        found = {name: svg for svg, name in _FIGURE.findall(self.html)}
        return {name: _OF_PAGE.sub(r"\1", svg) for name, svg in found.items()}

    def save_figures(self, directory: str | Path) -> list[Path]:
        """Write each figure as ``NAME.svg`` and ``NAME.png``, and return the files.

        Parameters
        ----------
        directory : str or Path
            Made if it does not exist.

        Returns
        -------
        list of Path
        """
        place = Path(directory)
        make_plainly(place)
        contents: dict[Path, str | bytes] = {}
        for name, svg in self.figures().items():
            contents |= {place / f"{name}.svg": svg, place / f"{name}.png": _draw_png(svg)}
        for file, content in contents.items():
            write_plainly(file, content)
        return list(contents)

    def framed(self) -> str:
        """Return the page as an element of another one, such as a notebook.

        Returns
        -------
        str
            An ``<iframe>`` that runs nothing.
        """
        # In a frame of its own: neither page touches the style of the other.
        return (
            f'<iframe sandbox srcdoc="{escape(self.html)}" title="report" '
            'style="width: 100%; height: 40em; border: 1px solid #ccc"></iframe>'
        )

    def _repr_html_(self) -> str:
        return self.framed()


def _draw_png(svg: str) -> bytes:
    """Draw a figure with the font that its texts were placed for, at 300 dots per inch."""
    for package in ("matplotlib", "resvg_py"):
        require(package, "save_figures")
    import resvg_py

    fonts = str(files("matplotlib") / "mpl-data/fonts/ttf")
    return resvg_py.svg_to_bytes(svg, background="white", zoom=300 / 72, font_dirs=[fonts], skip_system_fonts=True)


def html_table(
    caption: str, head: Sequence[str], rows: Sequence[Sequence[object]], *, notes: Sequence[str] = ()
) -> str:
    """Return a small table for a notebook, every text escaped.

    Parameters
    ----------
    caption : str
        Above the table.
    rows : sequence of sequences
        As long as the head; numbers are shown with six digits.
    notes : sequence of str
        Paragraphs below.
    """
    columns = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(_shown(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    below = "".join(f"<p>{escape(note)}</p>" for note in notes)
    return (
        f"<div><p><b>{escape(caption)}</b></p>"
        f"<table><thead><tr>{columns}</tr></thead><tbody>{body}</tbody></table>{below}</div>"
    )


def _shown(cell: object) -> str:
    if isinstance(cell, float):
        return f"{cell:.6g}"
    if isinstance(cell, int) and not isinstance(cell, bool):
        return f"{cell:,}"
    return "" if cell is None else str(cell)
