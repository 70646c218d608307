"""What a reader of a release must know first."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Headline:
    """What a reader of a release must know first, in sentences.

    Attributes
    ----------
    released : str
        What is released.
    safe : str
        To whom it may be handed.
    lost : str
        What it costs.
    """

    released: str
    safe: str
    lost: str


@dataclass(frozen=True)
class Compared:
    """A number of the table beside that of its release.

    Attributes
    ----------
    name : str
        What is counted or measured.
    before, after : float, int, str or None
        None is not told.
    remark : str
        Its unit, or what it was measured on, if not on all.
    """

    name: str
    before: float | int | str | None
    after: float | int | str | None
    remark: str = ""
