"""Pages and tables as values a notebook shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from privrisk_spark.storage.documents import write_plainly


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


def html_table(
    caption: str, head: Sequence[str], rows: Sequence[Sequence[object]], *, notes: Sequence[str] = ()
) -> str:
    """Return a small table for a notebook, every text escaped.

    Parameters
    ----------
    caption : str
        Above the table.
    head : sequence of str
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
