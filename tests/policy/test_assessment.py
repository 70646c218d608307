"""What ``assess`` in a policy may hold, and how its faults are worded."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

import jsonschema
import pytest
import yaml
from policies import DROP, RISK, Document, changed

from privrisk_spark.errors import ConfigError
from privrisk_spark.policy.assessment import MaskedTable
from privrisk_spark.policy.reading import json_schema, parse
from privrisk_spark.results.measures import read_measures

LEAST: Document = yaml.safe_load("""
version: 1
run: {name: census}
table: {path: in/t, record_id: ssn}
columns:
  age: {role: quasi-identifier, hierarchy: {intervals: {widths: [5, 10], domain: [0, 99]}}}
  sex: {role: quasi-identifier, hierarchy: {flat: {values: [f, m]}}}
  sick: {role: sensitive}
  pay: {role: insensitive, action: drop}
  ssn: {role: identifier}
""")

EVERYTHING: Document = LEAST | {
    "assess": yaml.safe_load("""
release: {path: out/m.csv, format: csv, options: {sep: ";"}, columns: {age: years, sick: ill}, record_id: key}
population: {path: in/register, format: orc, columns: {age: {column: years, level: 1, age_in: 2006}}, weight: n}
sets: {both: [age, sex], "one of them": [sex]}
sensitive: {sick: {distance: hierarchical, hierarchy: {file: sick.csv}, c: 2}}
intervals: {pay: {masked: paid, p: 5}, sick: {}}
label: pay
k: 3
risk_above: [0.1, 1]
worst: 0
special_uniques: {size: 4, dis_fraction: 0.01}
concealment: true
adversary: {group: unknown, prior: 1, gain: 5, loss: 2, penalty: 7, fines: null, cost_access: 0, cost_link: 1,
            cost_exploit: 0, detection: {h0: -3, h1: 0.18}, discount: 0.5, risk_at_most: null}
records: false
thresholds: {k: 5, prosecutor_max: 0.2, t_closeness: 0}
""")
}


def faults(document: Document, *, releasing: bool = False) -> dict[str, str]:
    with pytest.raises(ConfigError) as caught:
        parse(document, releasing=releasing)
    paths = [fault.path for fault in caught.value.faults]
    assert len(paths) == len(set(paths)), "one fault per key"
    return {fault.path: fault.rule for fault in caught.value.faults}


def test_a_policy_without_decision_and_output_can_be_assessed_and_not_released() -> None:
    policy = parse(LEAST, releasing=False)
    assert policy.assess.release is None
    assert policy.assess.adversary is not None
    found = faults(LEAST, releasing=True)
    assert set(found) == {"decision", "output"}
    assert all("is required" in rule for rule in found.values())


def test_everything_that_can_be_asked() -> None:
    asked = parse(EVERYTHING, releasing=False).assess
    assert isinstance(asked.release, MaskedTable)
    assert asked.release.columns == {"age": "years", "sick": "ill"}
    assert asked.adversary is not None
    assert asked.adversary.fines is None
    assert asked.sets == {"both": ["age", "sex"], "one of them": ["sex"]}
    off = changed(EVERYTHING, ("assess.adversary", None), ("assess.special_uniques", None))
    assert parse(off, releasing=False).assess.adversary is None
    jsonschema.Draft202012Validator(json_schema()).validate(EVERYTHING | {"decision": {"utility_at_least": 1}})


def test_what_is_measured_takes_no_part_in_a_release() -> None:
    plain = parse(RISK)
    other = parse(RISK | {"assess": {"k": 9, "thresholds": {"k": 3}, "adversary": None}})
    assert plain.digest() == other.digest()
    assert plain.canonical() == other.canonical()


@pytest.mark.parametrize(
    ("change", "path", "words"),
    [
        (("release", "publised"), "release", "must be 'published', or a mapping"),
        (("release", 5), "release", "must be 'published', or a mapping"),
        (("release", "published"), "release", "there is no output.path"),
        (("release.colums", {}), "release.colums", "did you mean 'columns'?"),
        (("release.path", DROP), "release.path", "give exactly one of assess.release.path and assess.release.catalog"),
        (("release.catalog", "db.t"), "release.path", "Got both"),
        (("release.columns.agee", "x"), "release.columns.agee", "did you mean 'age'?"),
        (("population.columns", {}), "population.columns", "at least 1"),
        (("population.columns.pay", "x"), "population.columns.pay", "is no quasi-identifier"),
        (("population.columns.age.level", DROP), "population.columns.age.level", "is required with age_in"),
        (("population.path", DROP), "population.path", "exactly one of"),
        (("sampling_fraction", 0.1), "sampling_fraction", "only used where no population table is given"),
        (("sampling_fraction", 0), "sampling_fraction", "greater than 0"),
        (("sets.both", ["age", "sick"]), "sets.both.1", "'sick' is no quasi-identifier; there are age, sex"),
        (("sets.both", ["age", "agee"]), "sets.both.1", "did you mean 'age'?"),
        (("sets.both", ["age", "age"]), "sets.both.1", "is in the set already"),
        (("sets.both", []), "sets.both", "at least one quasi-identifier"),
        (("sensitive.pay", {}), "sensitive.pay", "is no column with the role 'sensitive'"),
        (("sensitive.sick.hierarchy", None), "sensitive.sick.hierarchy", "goes with distance: hierarchical"),
        (("sensitive.sick.distance", "equal"), "sensitive.sick.hierarchy", "goes with distance: hierarchical"),
        (("sensitive.sick.distance", "far"), "sensitive.sick.distance", "hierarchical"),
        (("sensitive.sick.c", 0), "sensitive.sick.c", "greater than 0"),
        (("intervals.age", {}), "intervals.age", "the role 'sensitive' or 'insensitive'"),
        (("intervals.pay.p", 101), "intervals.pay.p", "at most 100"),
        (("label", "sex"), "label", "the role 'sensitive' or 'insensitive'"),
        (("household", "age"), "household", "the role 'identifier', 'insensitive' or 'sensitive'"),
        (("household", "nobody"), "household", "'nobody' is no column"),
        (("classifiers", {"folds": 1}), "classifiers.folds", "at least 2"),
        (("classifiers", {"models": []}), "classifiers.models", "at least 1"),
        (("k", 0), "k", "greater than 0"),
        (("risk_above", [0.5, 1.5]), "risk_above.1", "at most 1"),
        (("worst", -1), "worst", "at least 0"),
        (("special_uniques.size", 7), "special_uniques.size", "at most 6"),
        (("adversary.discount", 1), "adversary.discount", "less than 1"),
        (("adversary.fines", -1), "adversary.fines", "at least 0"),
        (("adversary.cost", 1), "adversary.cost", "cost_"),
        (("thresholds.kk", 1), "thresholds.kk", "is no measure with a safe side (did you mean 'k_k'?)"),
        (("thresholds.c_avg", 1), "thresholds.c_avg", "is no measure with a safe side"),
        (("thresholds.k", -1), "thresholds.k", "at least 0"),
    ],
)
def test_faults_are_at_their_key(change: tuple[str, Any], path: str, words: str) -> None:
    document = changed(EVERYTHING, (f"assess.{change[0]}", change[1]))
    if change == ("release", "published"):
        document = changed(document, ("assess.intervals", {}), ("assess.concealment", False))
    found = faults(document)
    assert f"assess.{path}" in found, found
    assert words in found[f"assess.{path}"]


def test_keys_that_need_or_exclude_another() -> None:
    found = faults(changed(EVERYTHING, ("assess.household", "sick"), ("table.entity_id", "id")))
    assert "leave it out where table.entity_id" in found["assess.household"]
    found = faults(changed(EVERYTHING, ("assess.classifiers", {}), ("assess.label", None)))
    assert "predicts assess.label" in found["assess.classifiers"]


@pytest.mark.parametrize("lost", ["assess.release.record_id", "table.record_id", "assess.release"])
def test_pairs_need_record_ids(lost: str) -> None:
    found = faults(changed(EVERYTHING, (lost, DROP)))
    for key in ("intervals", "concealment"):
        assert "needs assess.release.record_id and table.record_id" in found[f"assess.{key}"]


def test_the_schema_refuses_what_is_no_assessment() -> None:
    validator = jsonschema.Draft202012Validator(json_schema())
    validator.validate(json.loads(json.dumps(changed(EVERYTHING, ("assess.release", "published")))))
    for change in (
        ("release", 5),
        ("release.colums", {}),
        ("sensitive.sick.distance", "far"),
        ("k", 0),
        ("adversary.discount", 1),
        ("thresholds.k", -1),
        ("special_uniques.size", 7),
    ):
        document = changed(EVERYTHING, (f"assess.{change[0]}", change[1]))
        assert not validator.is_valid(json.loads(json.dumps(document))), change


def test_every_measure_says_what_it_is() -> None:
    for name, measure in read_measures().items():
        assert re.fullmatch(r"[a-z][a-z_]*", name)
        assert measure.title, name
        assert measure.unit, name
        assert measure.means.endswith("."), name
    copied = copy.deepcopy(EVERYTHING)
    copied["assess"]["thresholds"] = {name: 1 for name, one in read_measures().items() if one.safe is not None}
    assert parse(copied, releasing=False).assess.thresholds
