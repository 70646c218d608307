"""Pages made from the program are current; every part of a policy has an accepted example, every key a word."""

from __future__ import annotations

import importlib.util
import typing
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pydantic
import pytest
import yaml

from privrisk_spark.policy.policy import Policy
from privrisk_spark.policy.sections import SectionOf, type_of
from privrisk_spark.results.measures import read_measures

DOCS = Path(__file__).resolve().parents[2] / "docs"


@cache
def program() -> ModuleType:
    spec = importlib.util.spec_from_file_location("catalogues", DOCS / "catalogues.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def parts(annotation: Any, found: dict[str, type[pydantic.BaseModel]]) -> dict[str, type[pydantic.BaseModel]]:
    """Return every type a policy is made of, by name."""
    for extra in getattr(annotation, "__metadata__", ()):
        if isinstance(extra, SectionOf):
            return parts(type_of(extra.key), found)
    is_part = isinstance(annotation, type) and issubclass(annotation, pydantic.BaseModel)
    if is_part and annotation.__name__ not in found:
        found[annotation.__name__] = annotation
        for field in annotation.model_fields.values():
            parts(field.annotation, found)
    for inner in typing.get_args(getattr(annotation, "__value__", annotation)):
        parts(inner, found)
    return found


PARTS = {name: part for name, part in parts(Policy, {}).items() if part is not Policy}
EXAMPLES = yaml.safe_load((DOCS / "policy_examples.yaml").read_text())


@pytest.mark.parametrize("page", ["policy-keys.md", "command-line.md", "measures.md", "bibliography.md"])
def test_a_page_is_up_to_date(page: str) -> None:
    assert (DOCS / page).read_text() == program().PAGES[page](), "run: python docs/catalogues.py"


def test_every_part_of_a_policy_has_an_example_and_nothing_else_has() -> None:
    assert sorted(EXAMPLES) == sorted(PARTS)


@pytest.mark.parametrize("name", sorted(PARTS))
def test_an_example_is_accepted_and_has_no_key_of_another_part(name: str) -> None:
    accepted = PARTS[name].model_validate(EXAMPLES[name])
    assert isinstance(accepted, PARTS[name])


def test_policy_keys_have_descriptions() -> None:
    schema = Policy.model_json_schema(by_alias=True)
    types = schema["$defs"]

    def is_described(one: dict[str, Any]) -> bool:
        inner = [types[other].get("description") for other in program().within(one)]
        return bool("const" in one or one.get("description") or all(inner or [None]))

    sections = {"": schema, **{name: types[name] for name in PARTS}}
    keys = [(f"{name}.{key}", one) for name, part in sections.items() for key, one in part["properties"].items()]
    assert len(keys) > len(PARTS)
    assert [key for key, one in keys if not is_described(one)] == []


def test_the_page_of_keys_has_every_section_and_part() -> None:
    page = program().policy_keys()
    for section in Policy.model_fields:
        assert section == "version" or f"\n## `{section}`\n" in page
    for name in PARTS:
        assert page.count(f"\n### {name}\n") == 1


def test_the_page_of_measures_has_all_of_them() -> None:
    page = program().measures()
    assert all(page.count(f"| `{name}` |") == 1 for name in read_measures())
