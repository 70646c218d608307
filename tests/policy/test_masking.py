"""Masks of columns, and what takes several keys together."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
import yaml
from policies import DROP, RISK, Document, changed

from privrisk_spark.errors import ConfigError
from privrisk_spark.policy.masking import Microaggregation, NoMask
from privrisk_spark.policy.policy import Policy
from privrisk_spark.policy.reading import json_schema, load, parse

MASKED: Document = yaml.safe_load("""
version: 1
run: {name: masked}
table: {path: in/t.csv, format: csv, options: {header: true}, record_id: id}
columns:
  id: {role: identifier}
  age: {role: quasi-identifier, mask: {method: microaggregation, k: 5}}
  zip: {role: quasi-identifier, mask: {method: microaggregation, k: 5}, hierarchy: {mask: {steps: 5}}}
  sex: {role: quasi-identifier, mask: {method: pram, matrix: {f: {f: 0.9, m: 0.1}, m: {f: 0.1, m: 0.9}}}}
  city: {role: quasi-identifier, mask: {method: none}}
  born: {role: quasi-identifier, mask: {method: rank-swapping, percent: 5}}
  pay: {role: sensitive, mask: {method: noise, share: 0.1, group: money}}
  rent: {role: sensitive, mask: {method: noise, share: 0.1, group: money}}
  stay: {role: insensitive, mask: {method: shuffle, known: [age, pay]}}
  cost: {role: insensitive, mask: {method: top-bottom, quantiles: [0.01, 0.99]}}
  days: {role: insensitive, mask: {method: rounding, base: 7}}
guarantee: {kind: masked}
output: {path: out/t, vault: vault/t}
""")


def faults(document: Document) -> dict[str, str]:
    with pytest.raises(ConfigError) as raised:
        parse(document)
    return {fault.path: fault.rule for fault in raised.value.faults}


def test_every_method_is_read_and_in_the_schema() -> None:
    policy = parse(MASKED)
    assert list(policy.masks) == [name for name in MASKED["columns"] if name != "id"]
    assert isinstance(policy.masks["city"], NoMask)
    assert policy.masks["age"] == Microaggregation(method="microaggregation", k=5)
    assert policy.kept_columns == list(policy.masks)
    assert policy.decides
    validator = jsonschema.Draft202012Validator(json_schema())
    validator.validate(json.loads(json.dumps(MASKED)))
    assert not validator.is_valid(changed(MASKED, ("columns.age.mask", DROP))), "neither hierarchy nor mask"
    assert not validator.is_valid(changed(MASKED, ("columns.age.mask.k", 1)))
    assert Policy.model_validate_json(policy.canonical()).digest() == policy.digest()


def test_a_column_without_a_mask_still_needs_its_hierarchy() -> None:
    found = faults(changed(RISK, ("columns.age.hierarchy", DROP)))
    assert found == {
        "columns.age.hierarchy": "is required: how values are generalized, such as {file: age.csv}; where there is a "
        "mask, none is needed"
    }


def test_columns_of_a_policy_of_another_kind_keep_their_meaning_and_digest() -> None:
    policy = parse(RISK)
    assert policy.kept_columns == ["sick"]
    assert '"mask":{"method"' not in policy.canonical()
    assert "mask" not in json.loads(policy.canonical())["columns"]["age"]


@pytest.mark.parametrize(
    ("path", "value", "at", "rule"),
    [
        ("columns.age.mask.k", 1, "", "must be at least 2. Got 1"),
        ("columns.age.mask.gamma", 0.2, "columns.age.mask", "takes gamma with algorithm: v-mdav alone"),
        ("columns.age.mask.algorithm", "best", "", "must be 'mdav', 'v-mdav' or 'univariate'. Got 'best'"),
        ("columns.age.mask.method", "mdav", "", "must be 'none', 'microaggregation', 'noise'"),
        ("columns.age.mask", {"k": 5}, "columns.age.mask.method", "is required; choose 'none'"),
        ("columns.age.mask.percent", 5, "", "there is no such key (it goes with method 'rank-swapping')"),
        ("columns.born.mask.percent", 0, "", "must be greater than 0. Got 0"),
        ("columns.born.mask.percent", 101, "", "must be at most 100. Got 101"),
        ("columns.pay.mask.deviation", 3, "columns.pay.mask", "takes exactly one of share and deviation"),
        ("columns.pay.mask.share", DROP, "columns.pay.mask", "takes exactly one of share and deviation"),
        ("columns.sex.mask.invariant", {"keep": 0.8}, "columns.sex.mask", "takes exactly one of matrix and invariant"),
        ("columns.sex.mask.matrix.f.m", 0.2, "columns.sex.mask", "'f' probabilities that sum to 1.1, not to 1"),
        ("columns.sex.mask.matrix.f", {"f": 0.5, "d": 0.5}, "columns.sex.mask", "become 'd', which has no row"),
        ("columns.cost.mask.low", 3, "columns.cost.mask", "takes low or high or both of them, or else quantiles"),
        ("columns.cost.mask.quantiles", [0.9, 0.1], "columns.cost.mask", "must have a low bound below the high one"),
        ("columns.days.mask.base", 0, "", "must be greater than 0"),
    ],
)
def test_a_wrong_mask(path: str, value: Any, at: str, rule: str) -> None:
    found = faults(changed(MASKED, (path, value)))
    assert list(found) == [at or path]
    assert rule in found[at or path]


@pytest.mark.parametrize(
    ("changes", "at", "rule"),
    [
        (
            [("columns.city.mask", DROP), ("columns.city.hierarchy", {"flat": {}})],
            "columns.city.mask",
            "{method: none}",
        ),
        ([("guarantee", {"kind": "risk"}), ("decision", {"utility_at_least": 1})], "columns.age.mask", "it is 'risk'"),
        ([("columns.cost.action", "drop")], "columns.cost.mask", "action is 'drop'"),
        ([("columns.cost.release", {"round": 10})], "columns.cost.release", "say two things of one column"),
        ([("columns.zip.mask.k", 4)], "columns.zip.mask.k", "must be that of columns.age.mask, 5"),
        ([("columns.rent.mask.share", 0.2)], "columns.rent.mask.share", "are of the group 'money'. Got 0.2"),
        ([("columns.rent.mask.group", "other")], "columns.pay.mask.group", "'money' has no other column"),
        ([("columns.stay.mask.known", ["stay"])], "columns.stay.mask.known.0", "is the column itself"),
        ([("columns.stay.mask.known", ["agee"])], "columns.stay.mask.known.0", "did you mean 'age'?"),
        ([("columns.stay.mask.known", ["id"])], "columns.stay.mask.known.0", "is not released"),
        ([("columns.stay.mask.known", ["age", "age"])], "columns.stay.mask.known.1", "is there already"),
        ([("decision", {"utility_at_least": 1})], "decision", "is not used when guarantee.kind is 'masked'"),
        ([("table.entity_id", "id"), ("table.record_id", DROP)], "table.entity_id", "give one row per person"),
        ([("checks", {"max_risk": 0.5})], "checks.max_risk", "use attack.correct_links_at_most"),
        ([("assess", {"concealment": True})], "assess.concealment", "changed values are consistent with no record"),
        ([("history", [])], "history", "releases by risk and k-anonymity are composed alone"),
    ],
)
def test_what_several_keys_say_together(changes: list[tuple[str, Any]], at: str, rule: str) -> None:
    assert rule in faults(changed(MASKED, *changes))[at]


def test_one_column_at_least_is_masked() -> None:
    bare = {"id": MASKED["columns"]["id"], "city": MASKED["columns"]["city"]}
    assert faults(changed(MASKED, ("columns", bare))) == {
        "columns": "no column is masked; give one at least a mask when guarantee.kind is 'masked'"
    }


def test_a_layer_may_change_the_method(tmp_path: Any) -> None:
    (tmp_path / "a.yaml").write_text(yaml.safe_dump(MASKED, sort_keys=False))
    (tmp_path / "b.yaml").write_text("columns: {age: {mask: {method: rounding, base: 5}}}")
    policy = load([tmp_path / "a.yaml", tmp_path / "b.yaml"], environment={})
    assert policy.masks["age"].declared() == {"method": "rounding", "base": 5}
