"""Parameters that a manifest and the ledger hold, written and read by the types of their fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Self, TypeVar

from pydantic import BeforeValidator, PlainSerializer, Strict, TypeAdapter, ValidationError

from privrisk_spark.errors import InputError

T = TypeVar("T")

_UNREADABLE = "The parameters of a release are not those of a mechanism: '{}' cannot be read."


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
        raise InputError(_UNREADABLE.format(key)) from None


def exact(value: Any) -> Decimal:
    """Read an exact amount."""
    if not isinstance(value, str):
        raise ValueError("must be a text")
    try:
        return Decimal(value)
    except ArithmeticError as error:
        raise ValueError("must be a number") from error


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


Whole = Annotated[int, Strict()]
Number = Annotated[float, Strict()]
Exact = Annotated[Decimal, BeforeValidator(exact)]
AsText = Annotated[float, PlainSerializer(str)]
"""A number that may be infinite; JSON has no infinity."""
Vectors = tuple[tuple[Whole, ...], ...]


class Stored:
    """The base of frozen dataclasses that a manifest and the ledger hold, each field by its alias.

    Attributes
    ----------
    inline : tuple of str
        Keys of parts whose fields are in the mapping itself.
    """

    inline: ClassVar[tuple[str, ...]] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return it as published; the order of the keys is that of the fields."""
        document = _adapter(type(self)).dump_python(self, mode="json", by_alias=True)
        parts = ((value if key in self.inline else {key: value}) for key, value in document.items())
        return {key: value for part in parts for key, value in part.items()}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read it; further keys are ignored.

        Raises
        ------
        InputError
            If a key is missing or wrong; names the key.
        """
        document = document if isinstance(document, Mapping) else {}
        try:
            found: Self = _adapter(cls).validate_python({**document, **dict.fromkeys(cls.inline, document)})
        except ValidationError as error:
            first = error.errors()[0]
            if first["type"] == "missing":
                raise InputError(f"The parameters of a release lack '{first['loc'][-1]}'.") from None
            if isinstance(cause := first.get("ctx", {}).get("error"), InputError):
                raise cause from None
            # Locations also hold tags of variants, positions in lists and names of parts that are inline.
            key = [part for part in first["loc"] if part in document][-1]
            raise InputError(_UNREADABLE.format(key)) from None
        return found


_ADAPTERS: dict[type[Stored], TypeAdapter[Any]] = {}


def _adapter(of: type[Stored]) -> TypeAdapter[Any]:
    if of not in _ADAPTERS:
        _ADAPTERS[of] = TypeAdapter(of)
    return _ADAPTERS[of]
