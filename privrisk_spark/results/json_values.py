"""Values as JSON can hold them.

An infinite number is the text ``"Infinity"`` or ``"-Infinity"`` and an undefined one ``"NaN"``, because JSON has no
such numbers and ``null`` already means *not given*; an exact number (decimal, fraction) is text; keys are attribute
names.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from numbers import Integral, Real
from typing import Any


def json_safe(value: object) -> Any:
    """Return a value as JSON can hold it.

    Parameters
    ----------
    value : object
        None, bool, text, a real number of any kind, date or time, enumeration member, a result of this
        module, or mappings, sets and sequences of these.

    Returns
    -------
    None, bool, int, float, str, list or dict
        See the module's conventions. Sets are sorted by their text; mapping keys become text.

    Raises
    ------
    TypeError
        If the value is something else.
    """
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, Enum):
        return json_safe(value.value)
    if isinstance(value, (Decimal, Fraction)):
        return str(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        number = float(value)
        if math.isfinite(number):
            return number
        return "NaN" if math.isnan(number) else ("Infinity" if number > 0 else "-Infinity")
    if isinstance(value, (date, datetime)):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(json_safe(key)): json_safe(item) for key, item in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted((json_safe(item) for item in value), key=str)
    if isinstance(value, (list, tuple)):
        return [json_safe(item) for item in value]
    if hasattr(value, "to_dict"):
        return json_safe(value.to_dict())
    raise TypeError(f"a result cannot hold a {type(value).__name__}")


def as_dict(result: Any) -> dict[str, Any]:
    """Return the fields of a frozen value by name, JSON-safe.

    Parameters
    ----------
    result : dataclass
    """
    return {item.name: json_safe(getattr(result, item.name)) for item in fields(result)}
