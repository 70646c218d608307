"""Parameters as a manifest and the ledger hold them: read by key, and refused by the key that is wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from privrisk_spark.errors import InputError

T = TypeVar("T")


def taken(document: Mapping[str, Any], key: str, of: Callable[[Any], T]) -> T:
    """Return a parameter of a stored mechanism.

    Raises
    ------
    InputError
        If it is missing or is not what a mechanism has; names the key.
    """
    if key not in document:
        raise InputError(f"The parameters of a release lack '{key}'.")
    try:
        return of(document[key])
    except (KeyError, ValueError, TypeError, ArithmeticError, AttributeError):
        raise InputError(f"The parameters of a release are not those of a mechanism: '{key}' cannot be read.") from None


def whole(value: Any) -> int:
    """Read a whole number."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError
    return value


def number(value: Any) -> float:
    """Read a number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError
    return float(value)
