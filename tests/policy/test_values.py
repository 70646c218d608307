"""What a policy says of values: faults are told by their key, and policies that say nothing are as they were."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from policies import DP, RISK, changed, faults

from privrisk_spark.policy.reading import json_schema, parse


@pytest.mark.parametrize(
    ("path", "value", "rule"),
    [
        ("columns.zip.read", {}, "must hold at least one of trim, case, null_if, map and cast"),
        ("columns.zip.read", {"cast": "time"}, "must be 'date', 'integer' or 'number'. Got 'time'"),
        ("columns.zip.read", {"case": "title"}, "must be 'upper' or 'lower'. Got 'title'"),
        ("columns.zip.read", {"null_if": "?"}, 'must be a list, such as ["", "?"]'),
        ("columns.zip.read", {"map": {"a": [1]}}, "must be a text. Got a list"),
        ("columns.zip.read", {"case": "upper", "map": {"m": "M"}}, "names the text 'm'"),
        ("columns.zip.read", {"trim": True, "null_if": [" ?"]}, "trim and case come first; write '?'"),
        ("columns.zip.read", {"null_if": ["?"], "map": {"?": "x"}}, "in null_if and in map"),
        ("columns.sick.release", {}, "must hold at least one of bottom_code, top_code, round and intervals"),
        ("columns.sick.release", {"round": 0}, "must be greater than 0. Got 0"),
        ("columns.sick.release", {"round": 5, "intervals": [0]}, "takes round or intervals, not both"),
        ("columns.sick.release", {"intervals": [5, 5]}, "cuts must ascend; got 5 after 5"),
        ("columns.sick.release", {"bottom_code": 9, "top_code": 9}, "bottom_code must be below top_code"),
        ("columns.note.release", {"round": 5}, "is only used by columns that are kept"),
        ("columns.ssn.release", {"round": 5}, "there is no such key"),
        ("dictionary.columns.City.read", {"cast": 1}, "must be 'date', 'integer' or 'number'. Got 1"),
    ],
)
def test_what_cannot_be_meant_is_told_by_its_key(path: str, value: Any, rule: str) -> None:
    found = faults(changed(RISK, (path, value)))
    (key,) = found
    assert key.startswith(path)
    assert rule in found[key]


def test_a_column_of_a_dictionary_is_read_in_one_way() -> None:
    document = copy.deepcopy(RISK)
    both = {"column": "AGE", "read": {"trim": True}}
    document["dictionary"]["columns"] |= {"age": both, "zip": "AGE"}
    assert list(faults(document)) == ["dictionary.columns.zip"]
    document["dictionary"]["columns"]["zip"] = both
    assert parse(document)


def test_a_column_that_is_dropped_needs_a_role_and_is_told_so() -> None:
    found = faults(changed(RISK, ("columns.note", {"action": "drop"})))
    assert "such as {role: insensitive, action: drop}" in found["columns.note.role"]
    assert "insensitive, action" not in faults(changed(RISK, ("columns.note", {})))["columns.note.role"]


def test_digest_of_policies_without_readings_is_the_golden_one() -> None:
    """Their run ids, and what a ledger and a vault hold of them, name it."""
    assert parse(RISK).digest() == "bbfa9cdd08b204ae0d0cabbad67f4b11645acf1e2049eb7cf67dfa91847a1f8e"
    assert parse(DP).digest() == "1d4ce06d7f1e78e2d6cf4f75b072b41535fc60f49e11266e8690dcbc58f85fd6"


def test_what_is_said_of_values_is_part_of_what_is_asked() -> None:
    plain = parse(RISK).digest()
    document = changed(RISK, ("columns.zip.read", {"trim": True}))
    assert parse(document).digest() != plain
    again = changed(RISK, ("columns.zip.read", {"map": {"a": "x", "b": "y"}}))
    turned = changed(RISK, ("columns.zip.read", {"map": {"b": "y", "a": "x"}}))
    assert parse(again).digest() == parse(turned).digest()
    assert parse(changed(RISK, ("columns.sick.release", {"round": 5}))).digest() != plain


def test_the_schema_for_editors_has_them() -> None:
    known = json_schema()["$defs"]
    assert list(known["Reading"]["properties"]) == ["trim", "case", "null_if", "map", "cast", "number"]
    assert "read" in known["QuasiIdentifier"]["properties"]
    assert "release" in known["Sensitive"]["properties"]
