"""The words of reports and documents, each with a sentence, its formula and where it is in the code."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from html import unescape
from importlib.resources import files


@dataclass(frozen=True)
class Term:
    """A word of the field, as it is used here.

    Attributes
    ----------
    means : str
        One or two sentences.
    formula : str
        Empty where there is none.
    where : str
        Module below the package; empty where a word is of no one module.
    others : tuple of str
        Words by which a page is found to use it, besides the word itself.
    """

    word: str
    means: str
    formula: str = ""
    where: str = ""
    others: tuple[str, ...] = ()

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        words = "|".join(re.escape(word) for word in (self.word, *self.others))
        return re.compile(rf"(?<!\w)(?:{words})(?:s|es)?(?!\w)", re.IGNORECASE)

    def used_in(self, text: str) -> bool:
        """Whether a text uses the word."""
        # The pattern is tried at every letter; most words are not there at all.
        lowered = text.lower()
        return any(word.lower() in lowered for word in (self.word, *self.others)) and bool(self._pattern.search(text))


@cache
def read_glossary() -> tuple[Term, ...]:
    """Return the terms in the order of the alphabet."""
    terms = json.loads(files("privrisk_spark.reporting").joinpath("glossary.json").read_text(encoding="utf-8"))
    return tuple(Term(**{**term, "others": tuple(term.get("others", ()))}) for term in terms)


def words_of(page: str) -> Sequence[Term]:
    """Return the terms that a page uses, in the order of the glossary.

    Parameters
    ----------
    page : str
        HTML; what is inside of tags, style and pictures does not count.
    """
    text = re.sub(r"<(style|svg)\b.*?</\1>", " ", page, flags=re.DOTALL)
    text = unescape(re.sub(r"<[^>]*>", " ", text))
    return [term for term in read_glossary() if term.used_in(text)]
