"""The registry of privacy models, and that other modules ask a model's traits instead of its kind."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from policies import DP, RISK, changed
from pydantic import TypeAdapter

from privrisk_spark.policy.guarantees import Guarantee
from privrisk_spark.policy.policy import Policy
from privrisk_spark.policy.privacy_model import PrivacyModel
from privrisk_spark.policy.reading import parse
from privrisk_spark.policy.rules.unused import find_unused_keys
from privrisk_spark.registry import MODELS, load
from privrisk_spark.reporting.models.texts import ModelTexts, texts_of

PACKAGE = Path(__file__).resolve().parents[1] / "privrisk_spark"
KINDS = "|".join(MODELS)
TYPES = r"\w*(Guarantee|Dp|AsPublished)"

OWN = (
    "planning/as_published", "planning/calibration", "extensions/perturb/", "planning/proposals", "planning/reuse",
    "planning/schemes", "pipelines/fit", "pipelines/release/private", "stages/private/as_published", "policy/",
)  # fmt: skip
"""Modules of one privacy model, and the policy, where each has its module."""

KNOWN = {
    "pipelines/release/published": 1,  # the key of a charge
    "results/release": 1,  # below the policy
    "runs/witnesses": 1,  # below the policy
}
"""Other modules that test a kind, and how often; a number may only become smaller."""


def find_tests_of_kind(tree: ast.Module) -> Iterator[int]:
    """Yield the lines that compare a guarantee's kind or check its type."""
    for node in ast.walk(tree):
        text = ast.unparse(node) if isinstance(node, ast.Compare | ast.Call) else ""
        compared = isinstance(node, ast.Compare) and re.search(r"guarantee|\bkind\b", text)
        of_type = re.fullmatch(rf"isinstance\([^,]*, {TYPES}( \| {TYPES})*\)", text)
        if of_type or (compared and re.search(f"'({KINDS})'", text)):
            yield node.lineno  # type: ignore[attr-defined]


def test_find_tests_of_kind_planted_tests_returns_each() -> None:
    planted = (
        "policy.guarantee.kind == 'dp'", "kind in ('risk', 'masked')", "isinstance(asked, KAnonymityGuarantee)",
        "isinstance(x, AsPublishedGuarantee | DpGuarantee)", "isinstance(dp, GlobalDp)",
    )  # fmt: skip
    assert [len(list(find_tests_of_kind(ast.parse(line)))) for line in planted] == [1] * len(planted)
    assert not list(find_tests_of_kind(ast.parse("policy.dictionary.kind == 'self'\nisinstance(x, Mechanism)")))


def test_modules_other_than_a_models_own_ask_traits() -> None:
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).with_suffix("").as_posix()
        lines = list(find_tests_of_kind(ast.parse(path.read_text())))
        if lines and not name.startswith(OWN):
            found[name] = len(lines)
    assert found == KNOWN


@pytest.mark.parametrize("kind", MODELS)
def test_load_every_entry_exists(kind: str) -> None:
    entries = MODELS[kind]
    model = load(entries.policy)
    assert issubclass(model, PrivacyModel)
    assert isinstance(texts_of(kind), ModelTexts)
    assert all(callable(load(entry)) for entry in (entries.job, entries.rules, entries.plan) if entry is not None)
    # What is drawn is planned, what is decided is not.
    assert (entries.plan is None) == model.decides


def test_models_of_a_policy_are_those_of_the_registry() -> None:
    mapping = TypeAdapter(Guarantee).json_schema()["discriminator"]["mapping"]
    assert set(mapping) == set(MODELS)


def has_key(model: object, path: list[str]) -> bool:
    """Return whether a key exists in a JSON schema, in any variant."""
    found = [model]
    for name in path:
        found = [one for part in found for one in parts_of(part, name)]
    return bool(found)


SCHEMA = Policy.model_json_schema()


def parts_of(schema: object, name: str) -> Iterator[object]:
    """Yield the schemas of a key, over references and variants."""
    if not isinstance(schema, dict):
        return
    if "$ref" in schema:
        yield from parts_of(SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]], name)
    if name in schema.get("properties", {}):
        yield schema["properties"][name]
    for other in (*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())):
        yield from parts_of(other, name)


def models() -> Iterator[type[PrivacyModel]]:
    """Yield every model, with its variants."""
    for kind in MODELS:
        model = load(MODELS[kind].policy)
        yield from (model, *model.__subclasses__())


@pytest.mark.parametrize("model", [*models()], ids=lambda model: model.__name__)
def test_unused_keys_exist_and_reasons_are_given(model: type[PrivacyModel]) -> None:
    for key, why in model.unused.items():
        assert has_key(SCHEMA, key.split(".")), key
        assert why
        assert not why.endswith(".")


def test_find_unused_keys_default_values_yield_no_error() -> None:
    same = [("counting.plan", "auto"), ("checks", {"row_count": {"at_least": 1}}), ("linkage", None)]
    assert not list(find_unused_keys(parse(changed(DP, *same))))
    assert not list(find_unused_keys(parse(RISK)))


def test_a_release_by_risk_imports_no_other_models_job_rules_plan_or_texts() -> None:
    others = {
        entry.partition(":")[0]
        for kind in MODELS.keys() - {"risk"}
        for entry in (MODELS[kind].job, MODELS[kind].texts, MODELS[kind].rules, MODELS[kind].plan)
        if entry not in (None, MODELS["risk"].job)
    }
    assert len(others) > 8
    program = (
        "import sys, privrisk_spark.pipelines.release.run\n"
        "from privrisk_spark.registry import MODELS, load\n"
        "load(MODELS['risk'].job), load(MODELS['risk'].texts)\n"
        f"print(sorted(set(sys.modules) & { ({f'privrisk_spark.{name}' for name in others})!r}))\n"
    )
    assert subprocess.check_output([sys.executable, "-c", program], text=True, cwd=PACKAGE.parent) == "[]\n"
