"""Codes that were given out, such as member numbers: values of one form, many of them, that measure nothing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from privrisk_spark.planning.first_policy.patterns import shape_of
from privrisk_spark.policy.values import BLANKS
from privrisk_spark.results.profile import QUANTILES, ColumnProfile

MANY = 30
"""Distinct values from which on codes may name individuals; age bands and grades have fewer."""

_ONE_FORM = 0.95
"""Share of the values that have the most frequent form."""

_LISTED = ("atc", "icd10", "iso_date", "iso_time", "written_date", "year")
"""Patterns of lists and of dates; values that have one are no ids."""

_SHORT_NUMBER, _LONG_NUMBER, _LONGER_NUMBER = 4, 5, 7
"""Digits of numbers of one length that may be given out and that look so, and of numbers that may differ by a digit."""

_SEQUENCE = 100
"""Distinct whole numbers without gaps from which on they look counted off."""


def code_form(column: ColumnProfile) -> str | None:
    """Return why the values of a column look like ids that were given out; None if they do not.

    Returns
    -------
    str or None
        The reason, for the middle of a sentence. It holds no value of a record.
    """
    if column.distinct < MANY or column.kind not in ("text", "number"):
        return None
    values = [value.strip(BLANKS) for value in column.values.known]
    values = [value for value in values if value]
    if not values:  # no sample was drawn yet
        return None
    if column.kind == "number":
        return _number_form(column, values)
    listed = [name for name in _LISTED if column.share(name) > 0.9]
    if listed and not (listed == ["icd10"] and _is_long(values)):
        return None
    return _text_form(values)


def may_be_given_out(column: ColumnProfile) -> bool:
    """Return True if a column may hold ids, though its form does not show it: many texts, or numbers of one pattern.

    Whole numbers do if they have four or more digits each, or are spread evenly, with gaps as wide as you like.
    """
    if column.distinct < MANY or column.kind not in ("text", "number"):
        return False
    if column.kind == "text":
        return True
    numbers = _whole_numbers(column.values.known)
    if numbers is None or column.share("year") > 0.9:
        return False
    lengths = {len(f"{number:.0f}") for number in numbers}
    even = len(numbers) >= _SEQUENCE and _is_even(column.values.quantiles)
    return even or (len(lengths) == 1 and min(lengths) >= _SHORT_NUMBER)


def _is_long(values: Sequence[str]) -> bool:
    """Whether values are longer than codes of diseases are, and of one length."""
    return len({len(value) for value in values}) == 1 and len(values[0]) >= 6 and "." not in values[0]


def _text_form(values: Sequence[str]) -> str | None:
    digits = sum(any(sign.isdigit() for sign in value) for value in values)
    if digits < _ONE_FORM * len(values) or any(sign in value for value in values[:100] for sign in "%$€£"):
        return None
    if re.fullmatch(r"[0-9]{1,2}:[0-9]{2}(:[0-9]{2})?", values[0]):
        return None
    forms = Counter(_form(value) for value in values)
    form, most = forms.most_common(1)[0]
    if most >= _ONE_FORM * len(values) and form.count(" ") <= 2:
        return f"it has {len(values):,} codes of one form"
    length, most = Counter(map(len, values)).most_common(1)[0]
    if most >= _ONE_FORM * len(values) and length >= 6 and not any(" " in value for value in values):
        return f"it has {len(values):,} codes of one length"
    return None


def _form(value: str) -> str:
    """A value with each run of digits as one 9 and each run of letters as one A."""
    return re.sub(r"9[9+]*", "9", re.sub(r"[Aa][Aa+]*", "A", shape_of(value)))


def _number_form(column: ColumnProfile, values: Sequence[str]) -> str | None:
    numbers = _whole_numbers(values)
    if numbers is None or column.share("year") > 0.9:
        return None
    lengths = {len(f"{number:.0f}") for number in numbers}
    shortest, longest = min(lengths), max(lengths)
    if (shortest == longest >= _LONG_NUMBER) or (shortest >= _LONGER_NUMBER and longest - shortest <= 1):
        return f"it has {column.distinct:,} whole numbers of one length"
    span = max(numbers) - min(numbers) + 1
    if len(numbers) >= _SEQUENCE and len(numbers) > 0.5 * span and _is_even(column.values.quantiles):
        return f"its {column.distinct:,} whole numbers look counted off"
    return None


def _whole_numbers(values: Sequence[str]) -> list[float] | None:
    """Return the numbers of a column; None if one is negative or has decimals, or if there is none."""
    numbers = [float(value) for value in values if re.fullmatch(r"[+-]?[0-9.]+([eE][+-]?[0-9]+)?", value)]
    return numbers if numbers and min(numbers) >= 0 and all(number.is_integer() for number in numbers) else None


def _is_even(quantiles: Sequence[float]) -> bool:
    """Whether all numbers between the least and the greatest are about equally frequent."""
    if len(quantiles) != len(QUANTILES) or quantiles[0] == quantiles[-1]:
        return False
    width, span = quantiles[-1] - quantiles[0], QUANTILES[-1] - QUANTILES[0]
    off = [
        (number - quantiles[0]) / width - (share - QUANTILES[0]) / span
        for number, share in zip(quantiles, QUANTILES, strict=True)
    ]
    return max(map(abs, off)) <= _EVEN


_EVEN = 0.08
"""Most that a quantile of evenly spread numbers may be off, as a share of their range."""
