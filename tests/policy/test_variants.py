"""Variants of a part of the policy: no key is forgotten, and what says nothing is not held against anybody."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from policies import DP, DROP, RISK, changed, faults

from privrisk_spark.policy import as_published, private, sensitivity
from privrisk_spark.policy.reading import json_schema, parse
from privrisk_spark.policy.variants import Variant

VARIANTS: list[type[Variant]] = [
    *private.DpGuarantee.__subclasses__(),
    *as_published.AsPublishedGuarantee.__subclasses__(),
]
FORMS: list[type[Variant]] = [
    sensitivity.ConstantSensitivity,
    sensitivity.RecordSensitivity,
    *sensitivity.WeighedSensitivity.__subclasses__(),
]


def keys_of(variant: type[Variant]) -> set[str]:
    return {field.alias or name for name, field in variant.model_fields.items()}


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.__name__)
def test_every_key_is_the_variants_own_or_makes_another_or_is_refused_with_a_reason(variant: type[Variant]) -> None:
    own, switches, refused = keys_of(variant), set(variant.switches), set(variant.refusals)
    more = {"reuse"} if variant is private.PeeledDp else set()  # with both, the cells are taken and peel is refused
    assert own | switches | refused | more == set(variant.silent)
    assert not own & refused
    assert not own & switches
    assert set(variant.asks) <= own


@pytest.mark.parametrize("variant", FORMS, ids=lambda variant: variant.__name__)
def test_keys_of_a_form_are_among_those_of_all(variant: type[Variant]) -> None:
    assert keys_of(variant) <= set(variant.silent)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("guarantee.noise", "auto"),
        ("guarantee.schemes", None),
        ("guarantee.peel", None),
        ("guarantee.reuse", None),
        ("guarantee.objective", None),
        ("guarantee.epsilon.admit", 0.0),
    ],
)
def test_a_key_of_another_mode_that_says_nothing_changes_nothing(path: str, value: Any) -> None:
    one = changed(
        DP,
        ("guarantee.mode", "global"),
        ("guarantee.epsilon", {"choose": 0.1, "keep": 0.7}),
        ("guarantee.schemes", DROP),
        ("guarantee.objective", DROP),
    )
    assert parse(changed(one, (path, value))).digest() == parse(one).digest()


def test_zero_is_not_false() -> None:
    said = changed(RISK, ("risk.sensitivity.constant", True))
    assert "is only used by the form 'constant'" in faults(said)["risk.sensitivity.constant"]
    assert parse(changed(RISK, ("risk.sensitivity.constant", "1.0"))) == parse(RISK)


def test_the_schema_has_one_part_for_each_variant() -> None:
    schema = json_schema()
    assert {variant.__name__ for variant in (*VARIANTS, *FORMS)} <= set(schema["$defs"])
    validator = jsonschema.Draft202012Validator(schema)
    dp = json.loads(json.dumps(DP))
    assert validator.is_valid(dp)
    assert validator.is_valid(changed(dp, ("guarantee.mode", DROP)))
    assert not validator.is_valid(changed(dp, ("guarantee.mode", "global"))), "it has no objective"
    assert not validator.is_valid(changed(dp, ("guarantee.candidates", [[0, 1]]))), "of mode local only with peel"
    assert not validator.is_valid(changed(dp, ("guarantee.epsilon.admit", DROP)))
    risk = json.loads(json.dumps(RISK, default=str))
    assert not validator.is_valid(changed(risk, ("risk.sensitivity.form", "record"))), "it has no weights"


def test_a_part_that_is_no_mapping_is_told_what_belongs_there() -> None:
    found = faults(changed(RISK, ("risk.sensitivity", "linear")))
    assert found["risk.sensitivity"].startswith("must be a mapping with keys among form, constant")
    assert (
        "must be 'constant', 'linear'"
        in faults(changed(RISK, ("risk.sensitivity.form", "linaer")))["risk.sensitivity.form"]
    )
