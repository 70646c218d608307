"""Sections of the policy that extensions declare; an extension is loaded when a policy has its section."""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic import BaseModel, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from privrisk_spark.policy.types import Part
from privrisk_spark.registry import EXTENSIONS


class Section(Part):
    """A section that an extension declares."""

    @property
    def weight_columns(self) -> list[str]:
        """Columns of the role ``weight`` that the section reads."""
        return []


@cache
def type_of(key: str) -> type[Section]:
    """Return the type of a section.

    Parameters
    ----------
    key : str
        Of the policy, such as ``attack``.
    """
    extension = next(one for one in EXTENSIONS if one.section == key)
    found: type[Section] = extension.load("policy", extension.policy)
    return found


def sections_of(policy: BaseModel) -> dict[str, Section]:
    """Return the sections of extensions that a policy has, by their keys.

    Parameters
    ----------
    policy : Policy
    """
    return {one.section: given for one in EXTENSIONS if (given := getattr(policy, one.section, None)) is not None}


class SectionOf:
    """What a section is annotated with, so that its type is loaded by the first policy that has it."""

    def __init__(self, key: str) -> None:
        self.key = key

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Validate by the section's own type."""
        return core_schema.no_info_plain_validator_function(lambda given: type_of(self.key).model_validate(given))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Return the schema of the section's own type."""
        # As one of several definitions, because pydantic writes a model's own schema inline.
        return handler(core_schema.definitions_schema(type_of(self.key).__pydantic_core_schema__, []))
