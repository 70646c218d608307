"""What a run would do, as a value."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape


@dataclass(frozen=True)
class Plan:
    """What a run would do.

    Attributes
    ----------
    text : str
        As ``--dry-run`` prints it.
    run_id : str
        The run's id, if it is run with the same policy and date.
    """

    text: str
    run_id: str

    def __str__(self) -> str:
        """Return what ``--dry-run`` prints."""
        return self.text

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.text)}</pre>"
