"""Parts of a policy of which there are several variants, each with keys of its own.

Variants are told apart by a key that is written (``form``, ``mode``, ``algorithm``) and by keys whose presence alone
makes another variant (``peel``); the tag of a variant in its union is how a person would name it, such as
``form 'linear'``. A key of another variant is refused, unless it says nothing (its default there): canonical policies
hold the keys of all variants, and a layer may take back what a layer below it says.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import EllipsisType
from typing import Any, ClassVar

from pydantic import SerializationInfo, SerializerFunctionWrapHandler, model_serializer, model_validator

from privrisk_spark.policy.types import Part


class Variant(Part):
    """One of several variants of a part.

    Attributes
    ----------
    told_by : str
        The written key that tells the variants apart; empty where the part around it does.
    silent : mapping
        Every key of all variants in the canonical order, by which digests go, with the value that says nothing; ``...``
        where every value says something.
    switches : tuple of str
        Keys of other variants whose presence makes the part another variant.
    refusals : mapping of str to str
        Why a key of another variant is not for this one.
    asks : mapping of str to str
        Where or by what a key is asked for, to be said where it is missing or 0.
    guide : str or None
        Section of the guide that faults lead to, where their path does not say it.
    """

    told_by: ClassVar[str] = ""
    silent: ClassVar[Mapping[str, Any]] = {}
    switches: ClassVar[tuple[str, ...]] = ()
    refusals: ClassVar[Mapping[str, str]] = {}
    asks: ClassVar[Mapping[str, str]] = {}
    guide: ClassVar[str | None] = None

    @model_validator(mode="before")
    @classmethod
    def without_silent_keys(cls, value: Any) -> Any:
        """Leave out what says nothing: other variants' keys at their defaults, and null where a value is required."""
        if not isinstance(value, Mapping):
            return value
        optional = {key for name, field in cls.model_fields.items() for key in (name, field.alias)}
        required = {
            key for name, field in cls.model_fields.items() if field.is_required() for key in (name, field.alias)
        }
        return {
            key: given
            for key, given in value.items()
            if (key in optional and not (key in required and given is None))
            or not _says_nothing(given, cls.silent.get(key, ...))
        }

    @model_serializer(mode="wrap")
    def with_silent_keys(self, handler: SerializerFunctionWrapHandler, info: SerializationInfo) -> dict[str, Any]:
        """Return the keys of all variants, so that the canonical form does not depend on how they are divided."""
        own: dict[str, Any] = handler(self)
        names = {field.alias or name: name for name, field in type(self).model_fields.items()}
        written = {key: key if info.by_alias else names.get(key, key) for key in self.silent}
        return {name: own.get(name, self.silent[key]) for key, name in written.items()}


def _says_nothing(given: object, silent: object) -> bool:
    """Whether a value is the one that says nothing; Python counts True as 1, a policy does not."""
    if isinstance(silent, EllipsisType) or isinstance(given, bool):
        return False
    if isinstance(silent, float) and isinstance(given, str):
        try:
            return float(given) == silent
        except ValueError:
            return False
    return given == silent
