"""Policies whose table is recoded to be k-anonymous: what they may ask, and each fault by its key."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
import yaml
from policies import DP, DROP, RISK, Document, changed, faults

from privrisk_spark.policy.anonymity import Besides, KAnonymityGuarantee
from privrisk_spark.policy.reading import json_schema, parse

BASE: Document = yaml.safe_load("""
version: 1
run: {name: ward}
table: {path: in/t.csv, format: csv}
columns:
  age: {role: quasi-identifier, hierarchy: {intervals: {widths: [10, 50], domain: [0, 99]}}}
  sick: {role: sensitive}
  gone: {role: sensitive, action: drop}
  note: {role: insensitive}
  who: {role: identifier}
guarantee: {kind: k-anonymity, k: 5}
output: {path: out, vault: vault}
""")

EVERY: list[Document] = [
    {"l_diversity": {"column": "sick", "l": 2}},
    {"l_diversity": {"column": "sick", "l": 1.5, "kind": "entropy"}},
    {"l_diversity": {"column": "sick", "l": 2, "kind": "recursive", "c": 3}},
    {"p_sensitivity": {"column": "sick", "p": 2}},
    {"t_closeness": {"column": "sick", "t": 0.2}},
    {"t_closeness": {"column": "sick", "t": 1, "distance": "ordered"}},
    {"t_closeness": {"column": "sick", "t": 0.2, "distance": "hierarchical", "hierarchy": {"flat": {}}}},
    {"alpha": {"column": "sick", "alpha": 0.5}},
    {"beta_likeness": {"column": "sick", "beta": 0, "enhanced": True}},
    {"delta_disclosure": {"column": "sick", "delta": 0.1}},
]
"""Of every kind of condition one."""


def asked(*changes: tuple[str, Any]) -> Document:
    return changed(BASE, *((f"guarantee.{key}", value) for key, value in changes))


def test_what_is_left_out_is_usual() -> None:
    policy = parse(BASE)
    assert isinstance(policy.guarantee, KAnonymityGuarantee)
    assert policy.guarantee.model_dump() == {
        "kind": "k-anonymity",
        "k": 5,
        "also": [],
        "suppression_limit": 0.0,
        "metric": "loss",
        "method": "best",
        "suppressed": "keep",
    }
    assert policy.decides
    assert parse(RISK).decides
    assert not parse(DP).decides
    said = asked(("also", []), ("suppression_limit", 0), ("metric", "loss"), ("method", "best"), ("suppressed", "keep"))
    assert parse(said).digest() == policy.digest(), "what says the usual says nothing"
    for key, value in [
        ("k", 6),
        ("also", EVERY[:1]),
        ("suppression_limit", 0.1),
        ("metric", "dm"),
        ("method", "flash"),
        ("suppressed", "drop"),
    ]:
        assert parse(asked((key, value))).digest() != policy.digest(), key


def test_every_condition_is_read_and_in_the_schema() -> None:
    people: list[Document] = [{"k_map": {"k": 2}}, {"delta_presence": {"at_most": 0.5}}]
    document = asked(("also", [*EVERY, *people])) | {
        "dictionary": {"kind": "table", "path": "p", "columns": {"age": "a"}}
    }
    guarantee = parse(document).guarantee
    assert isinstance(guarantee, KAnonymityGuarantee)
    assert {name for part in guarantee.also for name in part.given} == set(Besides.model_fields)
    schema = json_schema()
    validator = jsonschema.Draft202012Validator(schema)
    assert validator.is_valid(json.loads(json.dumps(document)))
    for key, value in [
        ("k", 1),
        ("suppression_limit", 1.5),
        ("metric", "los"),
        ("method", "fast"),
        ("suppressed", "x"),
    ]:
        assert not validator.is_valid(asked((key, value))), key
    assert not validator.is_valid(asked(("also", [{"l_diversity": {"column": "sick", "l": 0.5}}])))


@pytest.mark.parametrize(
    ("changes", "path", "rule"),
    [
        ([("guarantee.k", DROP)], "guarantee.k", "is required"),
        ([("guarantee.k", 1)], "guarantee.k", "at least 2. Got 1"),
        ([("guarantee.k", 0)], "guarantee.k", "at least 2. Got 0"),
        ([("guarantee.k", 2.5)], "guarantee.k", "whole number"),
        ([("guarantee.k", True)], "guarantee.k", "must be a number, not true or false"),
        ([("guarantee.k", None)], "guarantee.k", ""),
        ([("guarantee.suppression_limit", -0.01)], "guarantee.suppression_limit", "at least 0. Got -0.01"),
        ([("guarantee.suppression_limit", 1.01)], "guarantee.suppression_limit", "at most 1. Got 1.01"),
        ([("guarantee.suppression_limit", float("nan"))], "guarantee.suppression_limit", ""),
        ([("guarantee.suppression_limit", True)], "guarantee.suppression_limit", "not true or false"),
        ([("guarantee.metric", "los")], "guarantee.metric", "'loss'"),
        ([("guarantee.method", "beste")], "guarantee.method", "'best'"),
        ([("guarantee.suppressed", "hide")], "guarantee.suppressed", "'keep'"),
        ([("guarantee.limit", 0.1)], "guarantee.limit", "there is no such key"),
        ([("decision", {"utility_at_least": 1})], "decision", "guarantee.metric decides. Fix: leave it out"),
        ([("checks", {"min_class_size": 5})], "checks.min_class_size", "guarantee.k is the least class size"),
        ([("history", {"lineage": "ward"})], "history", "classes of one release do not bound what several tell"),
    ],
)
def test_a_fault_is_named_by_its_key(changes: list[tuple[str, Any]], path: str, rule: str) -> None:
    found = faults(changed(BASE, *changes))
    assert list(found) == [path]
    assert rule in found[path]


@pytest.mark.parametrize(
    ("condition", "path", "rule"),
    [
        ({}, "", "must hold exactly one of l_diversity, p_sensitivity, t_closeness, alpha, beta_likeness, "),
        ({}, "", "Got none"),
        ({**EVERY[0], **EVERY[3]}, "", "Got l_diversity, p_sensitivity"),
        ({"k_maps": {"k": 5}}, "k_maps", "there is no such key (did you mean 'k_map'?)"),
        ({"k_map": {"k": 5}}, "k_map", "people of a dictionary of the kind 'table'"),
        ({"k_map": {"k": 5}}, "k_map", "Got dictionary.kind 'self'"),
        ({"delta_presence": {"at_most": 1.5}}, "delta_presence.at_most", "at most 1"),
        ({"delta_presence": {}}, "delta_presence.at_most", "is required"),
        ({"alpha": {"alpha": 0.5}}, "alpha.column", "is required"),
        ({"alpha": {"column": "sikc", "alpha": 0.5}}, "alpha.column", "is not among columns (did you mean 'sick'?)"),
        ({"alpha": {"column": "age", "alpha": 0.5}}, "alpha.column", "'age' has the role 'quasi-identifier'"),
        ({"alpha": {"column": "note", "alpha": 0.5}}, "alpha.column", "'note' has the role 'insensitive'"),
        ({"alpha": {"column": "gone", "alpha": 0.5}}, "alpha.column", "'gone' is dropped"),
        ({"alpha": {"column": "sick", "alpha": 1.5}}, "alpha.alpha", "at most 1"),
        ({"l_diversity": {"column": "sick", "l": 2.5}}, "l_diversity.l", "whole number with the kind 'distinct'"),
        ({"l_diversity": {"column": "sick", "l": 0}}, "l_diversity.l", "at least 1"),
        ({"l_diversity": {"column": "sick", "l": float("inf")}}, "l_diversity.l", ""),
        ({"l_diversity": {"column": "sick", "l": 2, "kind": "recursive"}}, "l_diversity.c", "is required by the kind"),
        ({"l_diversity": {"column": "sick", "l": 2, "c": 3}}, "l_diversity.c", "is only used by the kind 'recursive'"),
        (
            {"l_diversity": {"column": "sick", "l": 2.5, "kind": "recursive", "c": 1}},
            "l_diversity.l",
            "whole number with the kind 'recursive'. Got 2.5",
        ),
        ({"l_diversity": {"column": "sick", "l": 2, "kind": "recursive", "c": 0}}, "l_diversity.c", "greater than 0"),
        ({"l_diversity": {"column": "sick", "l": 2, "kind": "exact"}}, "l_diversity.kind", "'entropy'"),
        ({"p_sensitivity": {"column": "sick", "p": 0}}, "p_sensitivity.p", "greater than 0"),
        ({"t_closeness": {"column": "sick", "t": -0.1}}, "t_closeness.t", "at least 0"),
        ({"t_closeness": {"column": "sick", "t": 0.1, "distance": "tree"}}, "t_closeness.distance", "'ordered'"),
        (
            {"t_closeness": {"column": "sick", "t": 0.1, "distance": "hierarchical"}},
            "t_closeness.hierarchy",
            "goes with distance: hierarchical",
        ),
        (
            {"t_closeness": {"column": "sick", "t": 0.1, "hierarchy": {"flat": {}}}},
            "t_closeness.hierarchy",
            "give both or none of them",
        ),
        ({"beta_likeness": {"column": "sick", "beta": -1}}, "beta_likeness.beta", "at least 0"),
        ({"delta_disclosure": {"column": "sick", "delta": 0}}, "delta_disclosure.delta", "greater than 0"),
    ],
)
def test_a_fault_of_a_condition_is_named_by_its_place(condition: Document, path: str, rule: str) -> None:
    found = faults(asked(("also", [EVERY[0], condition])))
    assert list(found) == ["guarantee.also.1" + (f".{path}" if path else "")]
    assert rule in next(iter(found.values()))


KNOWN = {"kind": "table", "path": "people", "columns": {"age": "age"}}


@pytest.mark.parametrize("condition", [{"k_map": {"k": 5}}, {"delta_presence": {"at_least": 0.1, "at_most": 0.5}}])
def test_people_are_those_of_a_dictionary(condition: Document) -> None:
    policy = parse(asked(("also", [condition])) | {"dictionary": KNOWN})
    assert isinstance(policy.guarantee, KAnonymityGuarantee)
    assert policy.guarantee.asks_population
    assert not any("column" in one for one in policy.guarantee.also[0].model_dump(exclude_none=True).values())
    (name,) = condition

    def refused(*changes: tuple[str, Any]) -> Document:
        return faults(changed(asked(("also", [condition])) | {"dictionary": KNOWN}, *changes))

    at = f"guarantee.also.0.{name}"
    assert list(refused(("guarantee.method", "mondrian"))) == [at]
    assert list(refused(("counting", {"plan": "shuffle"}))) == [at]
    applied = changed(asked(("also", [condition])) | {"dictionary": KNOWN}, ("guarantee.scheme", "scheme.json"))
    assert parse(applied).guarantee.asks_population
    swapped = [{"delta_presence": {"at_least": 0.6, "at_most": 0.5}}]
    (fault,) = refused(("guarantee.also", swapped)).items()
    assert fault == ("guarantee.also.0.delta_presence.at_least", "must be at most at_most, 0.5. Got 0.6")


def test_every_condition_goes_with_persons_and_all_faults_come_at_once() -> None:
    persons = changed(BASE, ("table.entity_id", "who"))
    people = {"dictionary": {"kind": "table", "path": "people", "columns": {"age": "age"}}}
    every = [*EVERY, {"k_map": {"k": 9}}, {"delta_presence": {"at_most": 0.5}}]
    assert parse(changed(persons, ("guarantee.also", every)) | people).table.entity_id == "who"
    several = changed(
        persons,
        ("guarantee.also", [EVERY[0], {"alpha": {"column": "gone", "alpha": 1}}]),
        ("decision", {"utility_at_least": 1}),
        ("checks", {"min_class_size": 2}),
    )
    found = faults(several)
    assert set(found) == {"guarantee.also.1.alpha.column", "decision", "checks.min_class_size"}


def test_where_regions_are_cut_at_the_median_is_said_of_mondrian_and_quasi_identifiers_alone() -> None:
    cut = changed(BASE, ("guarantee.method", "mondrian"), ("guarantee.ordered", ["age"]))
    assert parse(cut).guarantee.model_dump()["ordered"] == ["age"]
    (fault,) = faults(changed(cut, ("guarantee.ordered", ["ages"]))).items()
    assert fault == ("guarantee.ordered", "'ages' is not a quasi-identifier (did you mean 'age'?)")
    (fault,) = faults(changed(cut, ("guarantee.method", "hilbert"))).items()
    assert fault == ("guarantee.ordered", "says where 'mondrian' cuts, and the method is 'hilbert'; leave it out")


def test_persons_of_local_recoding_are_counted_on_the_driver() -> None:
    persons = changed(BASE, ("table.entity_id", "who"), ("guarantee.method", "bang"))
    assert parse(persons).table.entity_id == "who"
    assert list(faults(persons | {"counting": {"plan": "shuffle"}})) == ["counting.plan"]
