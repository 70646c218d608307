"""All experiments together: what was claimed beside what was found, and what did not hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from privrisk_spark.errors import InternalError
from privrisk_spark.json_values import JsonDocument

Word = Literal["holds", "in part", "does not hold", "not decided"]

_WORDS: tuple[tuple[str, Word], ...] = (
    ("holds", "holds"),
    ("does not hold", "does not hold"),
    ("in ", "in part"),
    ("not decided: ", "not decided"),
)
"""How the verdicts of the experiments begin."""


def word_of(verdict: str) -> Word:
    """Return a verdict in one of four words.

    Parameters
    ----------
    verdict : str
        Such as ``in 15 of 24 cases``.

    Raises
    ------
    InternalError
        If it is no verdict.
    """
    for start, word in _WORDS:
        if verdict.startswith(start):
            return word
    raise InternalError(f"'{verdict}' is no verdict")


@dataclass(frozen=True)
class Judged:
    """A claim and what came of it.

    Attributes
    ----------
    data : str
        Name of the table.
    word : {"holds", "in part", "does not hold", "not decided"}
    verdict : str
        As the experiment has it, such as ``in 15 of 24 cases``, or ``not decided`` with the reason.
    """

    source: str
    claim: str
    data: str
    word: Word
    verdict: str
    evidence: str

    @classmethod
    def of(cls, source: str, claim: str, data: str, verdict: str, evidence: str) -> Judged:
        """Return a judged claim, with its verdict in one of four words."""
        return cls(source, claim, data, word_of(verdict), verdict, evidence)


@dataclass(frozen=True)
class LeftOut:
    """Something of the sources that is not run again, or not as it was.

    Attributes
    ----------
    why : str
        A sentence.
    """

    source: str
    what: str
    why: str


@dataclass(frozen=True)
class Part:
    """One experiment.

    Attributes
    ----------
    page : str
        Its page, below the directory of all.
    private : bool
        Whether it tells of a table of the user.
    why_not : str
        Why the user's table was not used; empty otherwise.
    """

    name: str
    heading: str
    page: str
    seconds: float
    private: bool
    why_not: str
    claims: tuple[Judged, ...]

    @classmethod
    def of(
        cls, name: str, heading: str, document: Mapping[str, Any], *, seconds: float, private: bool, why_not: str
    ) -> Part:
        """Read what an experiment wrote.

        Parameters
        ----------
        document : mapping
            Its JSON file.
        """
        claims = tuple(
            Judged.of(one["source"], one["claim"], one["data"], one["verdict"], one["evidence"])
            for one in document["claims"]
        )
        return cls(name, heading, f"{name}/{name}.html", seconds, private, why_not, claims)

    def counted(self, word: Word) -> int:
        """How many of its claims came out so."""
        return sum(one.word == word for one in self.claims)


@dataclass(frozen=True)
class Collection(JsonDocument):
    """All of them.

    Attributes
    ----------
    quick : bool
        Small sizes: to see that it runs, not to be cited.
    left_out : tuple of LeftOut
        What none of them runs again.
    """

    created: str
    version: str
    quick: bool
    parts: tuple[Part, ...]
    left_out: tuple[LeftOut, ...]

    json_keys = (
        "date:created", "version", "quick", "experiments:parts", "not_run_again:left_out",
    )  # fmt: skip

    @property
    def private(self) -> bool:
        """Whether anything tells of a table of the user."""
        return any(part.private for part in self.parts)

    @property
    def failed(self) -> tuple[tuple[Part, Judged], ...]:
        """Claims that do not hold, or only in part."""
        return tuple(
            (part, one) for part in self.parts for one in part.claims if one.word in ("does not hold", "in part")
        )
