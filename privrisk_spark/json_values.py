"""Values as JSON can hold them, and back.

An infinite number is the text ``"Infinity"`` or ``"-Infinity"`` and an undefined one ``"NaN"``, because JSON has no
such numbers and ``null`` already means *not given*; an exact number (decimal, fraction) is text. A dataclass is an
object of its fields. If its document has other keys, the class lists them in ``json_keys``: a tuple of attributes,
properties and methods without arguments, each ``attribute`` or ``key:attribute``; the attribute may be one of a field,
such as ``rows:coverage.rows``.
"""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import date
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import cache
from numbers import Integral, Real
from operator import attrgetter
from pathlib import PurePath
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")


class JsonDocument:
    """A dataclass whose document is for users, too."""

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON can hold it; exact amounts are text."""
        found: dict[str, Any] = as_json(self)
        return found


def as_json(value: object) -> Any:
    """Return a value as JSON can hold it.

    Parameters
    ----------
    value : object
        None, bool, text, a real number of any kind, date or time, path, enumeration member, array, dataclass, or
        mappings, sets and sequences of these.

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
        return as_json(value.value)
    if isinstance(value, (Decimal, Fraction, PurePath)):
        return str(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        number = float(value)
        if math.isfinite(number):
            return number
        return "NaN" if math.isnan(number) else ("Infinity" if number > 0 else "-Infinity")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(as_json(key)): as_json(item) for key, item in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted((as_json(item) for item in value), key=str)
    if isinstance(value, (list, tuple)):
        return [as_json(item) for item in value]
    if hasattr(value, "tolist"):  # of numpy, which takes long to import
        return as_json(value.tolist())
    if is_dataclass(value) and not isinstance(value, type):
        kind: Any = type(value)
        return {key: as_json(read(value)) for key, read in _keys(kind)}
    raise TypeError(f"a result cannot hold a {type(value).__name__}")


def from_json(kind: type[T], given: Any) -> T:
    """Return the value that :func:`as_json` wrote, by the types of its fields.

    Parameters
    ----------
    kind : type
        A number, bool, text, array or dataclass, or a union with None, tuple, list or mapping of such. A field of a
        dataclass may name its reader in ``metadata["from_json"]``.
    given : object
        As JSON holds it.

    Raises
    ------
    KeyError
        If a field is missing.
    """
    of: Any = kind
    found: T = _reader(of)(given)
    return found


@cache
def _keys(kind: Any) -> tuple[tuple[str, Callable[[object], object]], ...]:
    """Key and reader of each value of a dataclass's document."""
    names = getattr(kind, "json_keys", None) or [one.name for one in fields(kind)]
    pairs = [(key, path or key) for key, _, path in (name.partition(":") for name in names)]
    return tuple((key, _called(attrgetter(path))) for key, path in pairs)


def _called(get: Callable[[object], object]) -> Callable[[object], object]:
    def read(value: object) -> object:
        found = get(value)
        return found() if callable(found) else found

    return read


@cache
def _reader(kind: Any) -> Callable[[Any], Any]:
    """Function that reads a value of a type."""
    origin, of = get_origin(kind), get_args(kind)
    if origin in (types.UnionType, Union):
        read = _reader(next(one for one in of if one is not type(None)))
        return lambda given: None if given is None else read(given)
    if origin is tuple and of[-1] is not Ellipsis:
        each = [_reader(one) for one in of]
        return lambda given: tuple(read(one) for read, one in zip(each, given, strict=True))
    if origin in (tuple, list):
        item = _reader(of[0])
        return lambda given: origin(item(one) for one in given)
    if getattr(origin, "__name__", "") == "ndarray":
        import numpy as np

        (dtype,) = get_args(of[1])
        return lambda given: np.array(given, dtype=dtype)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        item = _reader(of[1])
        return lambda given: {key: item(one) for key, one in given.items()}
    if is_dataclass(kind):
        make: Any = kind
        hints = get_type_hints(kind)
        parts = [(f.name, f.metadata.get("from_json") or _reader(hints[f.name])) for f in fields(kind) if f.init]
        return lambda given: make(**{name: read(given[name]) for name, read in parts})
    return kind if kind in (int, float) else lambda given: given
