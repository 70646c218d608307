from __future__ import annotations

import copy
import traceback
from collections.abc import Iterator
from typing import Any
from unittest.mock import ANY

import pytest
from policies import DP, DROP, RISK, SECRET, Document, Keys, changed, faults

from privrisk_spark.errors import ConfigError
from privrisk_spark.policy.reading import parse

# ---------------------------------------------------------------------------------------- unknown keys


FREE = {"options", "weights", "node_weights", "tree"}  # names in there are the user's own


def parts(document: Any, keys: Keys = ()) -> Iterator[Keys]:
    """Key paths of all mappings whose keys the models know."""
    if isinstance(document, dict):
        if keys not in {("columns",), ("dictionary", "columns"), ("risk", "sensitivity", "personal", "columns")}:
            yield keys
        for key, value in document.items():
            if key not in FREE:
                yield from parts(value, (*keys, key))


@pytest.mark.parametrize(("base", "keys"), [(base, keys) for base in (RISK, DP) for keys in parts(base)])
def test_an_unknown_key_is_told_what_is_allowed_at_every_depth(base: Document, keys: Keys) -> None:
    document = copy.deepcopy(base)
    here: Any = document
    for key in keys:
        here = here[key]
    written = list(here)
    here["zzz"] = 1
    path = ".".join(map(str, (*keys, "zzz")))
    found = faults(document)
    assert list(found) == [path]
    allowed = found[path].partition("there is no such key; allowed here: ")[2].split(", ")
    assert set(written) <= set(allowed)
    assert "zero_phi" not in allowed  # nor what is not available


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("tabel", "(did you mean 'table'?)"),
        ("run.nmae", "(did you mean 'name'?)"),
        ("columns.age.hierachy", "(did you mean 'hierarchy'?)"),
        ("columns.City.hierarchy.seperator", "(did you mean 'separator'?); allowed here: labels, file, separator"),
        (
            "columns.zip.hierarchy.mask.form",
            "(did you mean 'from' or 'risk.sensitivity.form'?); allowed here: from, steps",
        ),
        ("columns.age.hierarchy.intervals.domian", "(did you mean 'domain'?); allowed here: domain, unit, widths"),
        ("columns.pay.hierarchy.intervals.cutz", "(did you mean 'cuts'?); allowed here: domain, unit, cuts"),
        ("columns.born.hierarchy.dates.stps", "(did you mean 'steps'?); allowed here: steps, domain"),
        ("columns.job.hierarchy.tre_file", "(did you mean 'tree_file'?)"),
        ("dictionary.columns.born.levl", "(did you mean 'level'?); allowed here: column, level, age_in, mapping"),
        ("risk.sensitivity.personal.fator", "(did you mean 'factor'?)"),
        ("min_class_size", "(did you mean 'checks.min_class_size'?)"),
        ("risk.weights", "(did you mean 'risk.sensitivity.weights' or 'utility.weights'?)"),
        ("risk.form", "(did you mean 'risk.sensitivity.form'?)"),
        ("columns.sick.hierarchy", "(it goes with role 'quasi-identifier')"),
        ("guarantee.delta", "(it goes with kind 'dp')"),
        ("decision.zero_phi", "(it goes with problem 'max-aggregate')"),
        ("decision.risk_at_most", "(it goes with problem 'max-utility')"),
        ("dictionary.table", "there is no such key"),  # a key named like the kind of its mapping
    ],
)
def test_an_unknown_key_is_told_the_nearest(path: str, message: str) -> None:
    found = faults(changed(RISK, (path, 1)))
    assert list(found) == [path]
    assert message in found[path]


@pytest.mark.parametrize(
    "path",
    [
        "columns.ssn.key",
        "risk.aggregation",
        "risk.loss_if_not_identified",
    ],
)
def test_keys_of_later_versions(path: str) -> None:
    assert faults(changed(RISK, (path, "x"))) == {path: "is not available in this version; leave it out"}


@pytest.mark.parametrize(
    ("path", "value", "choose"),
    [
        ("output.format", "delta", "'parquet' or 'csv'"),
        ("columns.ssn.action", "pseudonym", "'drop'"),
    ],
)
def test_choices_of_later_versions(path: str, value: str, choose: str) -> None:
    assert faults(changed(RISK, (path, value))) == {
        path: f"'{value}' is not available in this version; choose {choose}"
    }


# ---------------------------------------------------------------------------------- values and their types


@pytest.mark.parametrize(
    ("path", "value", "rule"),
    [
        ("version", 2, "must be 1. Got 2"),
        ("version", "1", "must be 1. Got '1'; write it without quotes"),
        ("version", True, "must be a number, not true or false. Got true"),
        ("run.name", DROP, "is required: short name, part of the run id"),
        ("run.name", 2026, "must be a text; write it in quotes. Got 2026"),
        ("run.name", "a b", "must be 1 to 64 letters, digits, '.', '_' or '-'"),
        ("run.name", "x" * 70, "… (70 characters)"),
        ("run.date", 20, "must be a date YYYY-MM-DD"),  # not 20 seconds after 1970
        ("run.date", "tomorrow", "must be a date YYYY-MM-DD"),
        (
            "table",
            "t.csv",
            "must be a mapping with keys among path, catalog, format, options, version, snapshot, timestamp, "
            "record_id, entity_id, weight. "
            "Got a text",
        ),
        ("table.path", "", "must not be empty"),
        ("table.options", "x", "must be a mapping: reader options of the path. Got a text"),
        ("table.options.sep", None, "must be a text, a number, true or false. Got nothing"),
        ("columns", None, "must be a mapping: a role for every column of the table. Got nothing"),
        ("columns", {}, "must hold at least 1 item. Got 0"),
        ("columns.age", "sensitive", "must be a mapping with keys among role, hierarchy"),
        ("columns.age.role", DROP, "is required; choose 'quasi-identifier', 'sensitive', 'insensitive', 'identifier'"),
        ("columns.age.role", "quasi_identifier", "Got 'quasi_identifier' (did you mean 'quasi-identifier'?)"),
        ("columns.age.role", ["sensitive"], "Got a list"),
        ("columns.age.hierarchy", DROP, "is required: how values are generalized, such as {file: age.csv}"),
        ("columns.age.hierarchy", "age.csv", "a hierarchy must be a mapping with one of the keys file, tree"),
        ("columns.age.hierarchy", {"maks": {}}, "got 'maks' (did you mean 'mask'?)"),
        (
            "columns.age.hierarchy",
            {"mask": {"steps": 1}, "file": "x"},
            "must be of one kind; got mask, file: leave one",
        ),
        ("columns.age.nulls", "own_value", "(did you mean 'own-value'?)"),
        ("columns.age.hierarchy.intervals.widths", 5, "must be a list, such as [1, 2]. Got 5"),
        ("columns.age.hierarchy.intervals.domain", [0], "must hold 2 items. Got 1"),
        ("columns.age.hierarchy.intervals.domain", [0, 1, 2], "must hold 2 items. Got 3"),
        ("columns.born.hierarchy.dates", 5, "must be a list of steps, such as [day, month, year]"),
        ("columns.zip.hierarchy.mask.steps", "5", "must be a whole number; write it without quotes. Got '5'"),
        ("columns.City.hierarchy.separator", ";;", "must be one character, not a quote or line end. Got ';;'"),
        ("columns.sick.action", "drp", "must be 'keep' or 'drop'. Got 'drp' (did you mean 'drop'?)"),
        ("dictionary.kind", DROP, "is required; choose 'self', 'table', 'bayes', 'minimax' or 'estimated'"),
        ("dictionary.columns.age", 5, "must be the name of a dictionary column, or a mapping {column"),
        ("dictionary.columns.born.age_in", 10_000, "must be at most 9999. Got 10000"),
        ("dictionary.columns.born.column", DROP, "is required: name of the dictionary column"),
        ("risk.model", 1, "must be 'I', 'II' or 'III'. Got 1"),
        ("risk.sensitivity.weights.age", -1, "must be at least 0. Got -1"),
        ("risk.sensitivity.weights.age", float("nan"), "must be at least 0. Got nan"),
        ("risk.sensitivity.weights.age", "heavy", "must be a number. Got 'heavy'"),
        ("risk.sensitivity.weights", [1], "must be a mapping: leaf weight per quasi-identifier"),
        ("risk.sensitivity.personal.sum_to", 0, "must be greater than 0. Got 0"),
        ("utility.weights.age", float("inf"), "must be a finite number. Got inf"),
        ("decision.utility_at_least", DROP, "is required: the floor c of every record's utility"),
        ("decision.utility_at_least", True, "must be a number, not true or false. Got true"),
        ("decision.utility_at_least", [3], "must be a number. Got a list"),
        ("counting.dense_cells", "1e4", "must be a whole number in digits. Got '1e4'"),
        ("counting.dense_cells", 1.5, "must be a whole number. Got 1.5"),
        ("checks.row_count.at_least", True, "must be a number, not true or false"),
        ("checks.forbid_verbatim", "maybe", "must be true or false. Got 'maybe'"),
        ("output", None, "is required to release; write output: {path: …, vault: …}"),
        ("output.vault", DROP, "is required: directory of what must not be published"),
        ("output.files", 10_001, "must be at most 10000. Got 10001"),
    ],
)
def test_a_wrong_value_is_one_fault_with_rule_and_value(path: str, value: Any, rule: str) -> None:
    found = faults(changed(RISK, (path, value)))
    assert list(found) == [path]
    assert rule in found[path]


@pytest.mark.parametrize(
    ("path", "value", "rule"),
    [
        (
            "guarantee.kind",
            "ddp",
            "must be 'risk', 'k-anonymity', 'masked', 'dp' or 'as-published'. Got 'ddp' (did you mean 'dp'?)",
        ),
        ("guarantee.mode", "as_published", "must be 'local', 'global' or 'public-dictionary'. Got 'as_published'"),
        ("guarantee.epsilon", 1, "must be a mapping with keys among choose, admit, keep. Got a single value"),
        ("guarantee.epsilon.admit", -1, "must be greater than 0 in mode 'local'. Got -1"),
        ("guarantee.epsilon.keep", 0, "must be greater than 0. Got 0"),
        ("guarantee.epsilon.keep", True, "must be a number, not true or false"),
        ("guarantee.delta", 1, "must be less than 1. Got 1"),
        ("guarantee.delta", "nan", "must be a finite number. Got 'nan'"),
        ("guarantee.public_rows", "1e4", "must be a whole number in digits. Got '1e4'"),
        ("guarantee.schemes", [], "must hold at least 1 item. Got 0"),
        ("guarantee.schemes", 5, "must be a list, such as [[1, 2], [0, 3]]. Got 5"),
        ("guarantee.objective.lambda", -1, "must be at least 0. Got -1"),
        ("guarantee.objective.kind", "treshold", "'aggregate' or 'threshold'"),
        ("guarantee.objective.phi_min", DROP, "is required: public floor of Φ"),
        ("guarantee.crowd", 9, "must be at least 10. Got 9"),
        ("guarantee.keep_fraction", 1.5, "must be at most 1. Got 1.5"),
        ("ledger.lineage", 2026, "must be a text; write it in quotes. Got 2026"),
        ("ledger.cap.delta", 0, "must be greater than 0. Got 0"),
    ],
)
def test_a_wrong_value_under_dp(path: str, value: Any, rule: str) -> None:
    found = faults(changed(DP, (path, value)))
    assert list(found) == [path]
    assert rule in found[path]


@pytest.mark.parametrize(
    ("decision", "path", "rule"),
    [
        ({"rules": [{"suppress": "age"}]}, "rules.0.suppress", "must be a list, such as [age, city]. Got 'age'"),
        (
            {"rules": {"coarse": {"age": 1}}},
            "rules",
            "must be a list, such as [{levels: {age: 2}, suppress: [city]}]. Got a mapping",
        ),
    ],
)
def test_a_list_is_shown_with_items_of_its_kind(decision: Document, path: str, rule: str) -> None:
    document = {**RISK, "decision": {"problem": "rules", "utility_at_least": 1, **decision}}
    assert faults(document) == {f"decision.{path}": rule}


def test_items_of_lists_are_named_by_their_place() -> None:
    found = faults(changed(DP, ("guarantee.schemes", [[1, -2], ["a", 1], [True, 1], 3])))
    assert list(found) == [f"guarantee.schemes.{place}" for place in ("0.1", "1.0", "2.0", "3")]
    found = faults(changed(RISK, ("columns.born.hierarchy.dates", ["day", "yaer"])))
    assert list(found) == ["columns.born.hierarchy.dates.1"]  # the short form has no key 'steps'


@pytest.mark.parametrize(
    ("attack", "keys"),
    [
        ({"methods": ["guess"]}, ["attack.methods.0"]),
        ({"methods": ["guess"], "cells": ["midpont"]}, ["attack.methods.0", "attack.cells.0"]),
        ({"methods": []}, ["attack.methods"]),
        ({"intruder": {"columns": ["agee"], "levels": {"age": 1}}}, ["attack.intruder.columns.0"]),
        (
            {"intruder": {"columns": ["agee"]}, "weights": {"agge": 1}},
            ["attack.intruder.columns.0", "attack.weights.agge"],
        ),
    ],
)
def test_faults_of_a_wrong_item_are_of_the_item_only(attack: Document, keys: list[str]) -> None:
    assert list(faults({**RISK, "attack": attack})) == keys


def test_all_faults_at_once() -> None:
    wrong = changed(
        RISK,
        ("version", DROP),
        ("tabel", 1),
        ("columns.age.nulls", "maybe"),
        ("columns.zip.hierarchy.mask.foo", 1),
        ("risk.model", "IV"),
        ("output.files", 0),
    )
    with pytest.raises(ConfigError) as caught:
        parse(wrong)
    assert {fault.path for fault in caught.value.faults} == {
        "version",
        "tabel",
        "columns.age.nulls",
        "columns.zip.hierarchy.mask.foo",
        "risk.model",
        "output.files",
    }
    text = str(caught.value)
    assert text.startswith("6 faults in the policy: ")
    assert "\n" not in text
    assert caught.value.exit_code == 2
    several = faults(changed(RISK, ("output.vault", "out/t/v"), ("utility.weights.sick", 1), ("decision", DROP)))
    assert list(several) == ["utility.weights.sick", "output.vault", "decision"]


# ------------------------------------------------------------------------------------------ several keys


TABLE = {"kind": "table", "path": "d", "columns": {"age": "a"}}
SELF = {"kind": "self"}
W = ("columns.w", {"role": "weight"})


@pytest.mark.parametrize(
    ("changes", "path", "rule"),
    [
        ([("columns", {"a": {"role": "sensitive"}})], "columns", "at least one column must have the role"),
        ([("table.record_id", "snn")], "table.record_id", "'snn' is not among columns (did you mean 'ssn'?)"),
        ([("table.record_id", "age")], "columns.age.role", "must be 'identifier', as it is table.record_id"),
        ([("risk.sensitivity.weights", {"agee": 1})], "risk.sensitivity.weights.agee", "(did you mean 'age'?)"),
        ([("risk.sensitivity.node_weights", {"x": {}})], "risk.sensitivity.node_weights.x", "there are age, zip"),
        ([("utility.weights", {"sick": 1})], "utility.weights.sick", "is not a quasi-identifier; there are age"),
        ([("dictionary.columns.sick", "x")], "dictionary.columns.sick", "is not a quasi-identifier"),
        (
            [W, ("risk.sensitivity.personal", {"columns": {"sick": "w"}})],
            "risk.sensitivity.personal.columns.sick",
            "is not a quasi-identifier",
        ),
        (
            [("risk.sensitivity.personal", {"columns": {"age": "sick"}})],
            "risk.sensitivity.personal.columns.age",
            "'sick' must be mentioned under columns with the role 'weight'",
        ),
        ([("risk.sensitivity.personal", {"factor": "sck"})], "risk.sensitivity.personal.factor", "mean 'sick'?)"),
        (
            [("risk.sensitivity", {"form": "record", "record": "q"})],
            "risk.sensitivity.record",
            "'q' must be mentioned under columns with the role 'weight'",
        ),
        ([W], "columns.w.role", "neither risk.sensitivity nor table.weight uses the column"),
        ([("risk.sensitivity", {"form": "linear", "constant": 2})], "risk.sensitivity.constant", "form 'constant'"),
        (
            [W, ("risk.sensitivity", {"form": "linear", "record": "w"})],
            "risk.sensitivity.record",
            "is only used by the form 'record', and risk.sensitivity.form is 'linear'",
        ),
        (
            [("risk.sensitivity", {"form": "constant", "weights": {"age": 1}})],
            "risk.sensitivity.weights",
            "form 'linear' or 'multiplicative'",
        ),
        (
            [("risk.sensitivity", {"form": "record", "node_weights": {"age": {"1": 1}}})],
            "risk.sensitivity.node_weights",
            "form 'linear' or 'multiplicative'",
        ),
        (
            [W, ("risk.sensitivity", {"form": "constant", "personal": {"factor": "w"}})],
            "risk.sensitivity.personal",
            "form 'linear' or 'multiplicative'",
        ),
        (
            [W, ("risk.sensitivity.personal", {"factor": "w", "sum_to": 1, "at_most": 1})],
            "risk.sensitivity.personal",
            "not both",
        ),
        ([("risk.sensitivity.personal", {})], "risk.sensitivity.personal", "needs columns or factor"),
        ([("risk.sensitivity", {"form": "interaction"})], "risk.sensitivity.interactions", "is required by the form"),
        (
            [("risk.sensitivity", {"form": "linear", "interactions": [{"columns": ["age", "zip"], "weight": 1}]})],
            "risk.sensitivity.interactions",
            "is only used by the form 'interaction', and risk.sensitivity.form is 'linear'",
        ),
        (
            [("risk.sensitivity", {"form": "interaction", "interactions": [{"columns": ["age", "zp"], "weight": 1}]})],
            "risk.sensitivity.interactions.0.columns.1",
            "'zp' is not a quasi-identifier (did you mean 'zip'?)",
        ),
        (
            [("risk.sensitivity", {"form": "interaction", "interactions": [{"columns": ["age", "age"], "weight": 1}]})],
            "risk.sensitivity.interactions.0.columns",
            "names a column twice",
        ),
        (
            [("risk.sensitivity", {"form": "interaction", "interactions": [{"columns": ["age"], "weight": 1}]})],
            "risk.sensitivity.interactions.0.columns",
            "must hold at least 2 items. Got 1",
        ),
        (
            [
                (
                    "risk.sensitivity",
                    {"form": "interaction", "interactions": [{"columns": ["age", "zip"], "weight": -1}]},
                )
            ],
            "risk.sensitivity.interactions.0.weight",
            "must be at least 0. Got -1",
        ),
        (
            [
                (
                    "risk.sensitivity",
                    {
                        "form": "interaction",
                        "interactions": [{"columns": c, "weight": 1} for c in (["age", "zip"], ["zip", "age"])],
                    },
                )
            ],
            "risk.sensitivity.interactions.1",
            "repeats risk.sensitivity.interactions.0",
        ),
        (
            [
                W,
                (
                    "risk.sensitivity",
                    {
                        "form": "interaction",
                        "interactions": [{"columns": ["age", "zip"], "weight": 1}],
                        "personal": {"factor": "w", "sum_to": 2},
                    },
                ),
            ],
            "risk.sensitivity.personal.sum_to",
            "leave it out",
        ),
        (
            [
                (
                    "risk.sensitivity",
                    {"form": "interaction", "interactions": [{"columns": ["age", "zip"], "weight": 1}]},
                ),
                ("decision.method", "branch_and_bound"),
                ("counting", {}),
            ],
            "decision.method",
            "and the form is 'interaction'; use 'exhaustive', or the form 'linear'",
        ),
        ([("decision.neighbourhood", "cube")], "decision.neighbourhood", "and decision.method is 'exact'"),
        ([("decision", DROP)], "decision", "is required when guarantee.kind is 'risk'"),
        ([("table.path", DROP)], "table.path", "exactly one of table.path and table.catalog. Got none of them"),
        ([("table.catalog", "c")], "table.path", "Got both"),
        (
            [("table", {"catalog": "c", "options": {"a": 1}})],
            "table.options",
            "is only used with table.path",
        ),
        ([("dictionary.path", DROP)], "dictionary.path", "exactly one of dictionary.path and dictionary.catalog"),
        (
            [("dictionary.columns.age", {"column": "a", "age_in": 2000})],
            "dictionary.columns.age.level",
            "is required with age_in",
        ),
        ([("checks.row_count", {"at_least": 5, "at_most": 4})], "checks.row_count.at_most", "at_least = 5. Got 4"),
        ([("output.vault", "s3://bucket")], "output.vault", "must be a directory of its own in the bucket"),
        (
            [("output.path", "s3://bucket/x"), ("output.vault", "s3a://bucket/x/v")],
            "output.vault",
            "is never published",
        ),
        ([("output.path", "s3://bucket/x/o"), ("output.vault", "s3a://bucket/x")], "output.path", "the vault never is"),
        ([("output.vault", "s3://key:secret@b/x")], "output.vault", "must hold no credentials"),
        ([("output.path", "s3://bucket")], "output.path", "must be a directory of its own in the bucket"),
        ([("output.path", "dbfs://b/x")], "output.path", "is on a file system ('dbfs') that is not available"),
        ([("output.path", "s3://key:secret@b/x")], "output.path", "must hold no credentials"),
        ([("output.vault", "dbfs://b/x")], "output.vault", "is on a file system ('dbfs') that is not available"),
        ([("output.vault", "out/t")], "output.vault", "must not be output.path or inside it"),
        ([("output.vault", "out/t/../t/v")], "output.vault", "must not be output.path or inside it"),
        ([("output.path", "vault/t/x")], "output.path", "must not be inside output.vault"),
        ([("output.path", "in/t.csv")], "output.path", "a run never writes onto its input"),
        ([("output.path", "in/t.csv/x")], "output.path", "a run never writes onto its input"),
        ([("output.vault", "in")], "output.vault", "must be neither table.path nor inside nor around it"),
        ([("output.vault", "d")], "output.vault", "must be neither dictionary.path nor inside nor around it"),
    ],
)
def test_keys_that_do_not_go_together(changes: list[tuple[str, Any]], path: str, rule: str) -> None:
    calm = changed(
        RISK,
        ("columns.w", DROP),
        ("dictionary", TABLE),
        ("risk.sensitivity", {}),
        ("utility.weights", {}),
        ("table.record_id", DROP),
        ("table.options", DROP),
        ("checks", {}),
        ("decision", {"utility_at_least": 3, "method": "exact"}),
    )
    parse(calm)
    if path == "columns":
        calm = changed(calm, ("dictionary", SELF))
    found = faults(changed(calm, *changes))
    assert list(found) == [path]
    assert rule in found[path]
    # A wrong key elsewhere hides no fault.
    assert faults(changed(calm, *changes, ("run.nme", "x"))) == {**found, "run.nme": ANY}


def test_parse_with_several_wrong_keys_reports_every_fault_at_once() -> None:
    wrong = [("table.record_idd", "id"), ("columns.age.nulls", "keep"), ("output.formt", "csv")]
    found = faults(changed(RISK, *wrong, ("output.path", "out"), ("output.vault", "out/vault")))
    assert list(found) == [*(path for path, _ in wrong), "output.vault"]


def test_parse_with_a_wrong_key_reports_the_faults_of_sections_of_extensions() -> None:
    sharing = {"edges": {"path": "edges.csv"}, "model": {"kind": "modified-aggregate", "kappa": 0.5}}
    found = faults(changed(RISK, ("atack", {}), ("sharing", sharing), ("table.record_id", DROP)))
    assert {"atack", "sharing.model.kappa", "table.record_id"} <= set(found)


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (("columns.zip.role", "quasi"), "columns.zip.role"),
        (("columns.zip.hierarchy", {"maks": {}}), "columns.zip.hierarchy"),
        (("table.record_id", 3), "table.record_id"),
        (("outputs", {}), "outputs"),
        (("version", DROP), "version"),
        (("columns", DROP), "columns"),
        (("columns", {3: {"role": "sensitive"}}), "columns.3"),
        (("guarantee", {"kind": "k-anonymity", "k": "ten"}), "guarantee.k"),
        (("decision", {"utility_at_leest": 3}), "decision.utility_at_leest"),
    ],
)
def test_parse_with_a_wrong_key_adds_no_fault_that_only_follows_from_it(change: tuple[str, Any], path: str) -> None:
    dropped = [("output", DROP)] if path == "outputs" else []
    found = faults(changed(RISK, change, *dropped))
    assert set(found) <= {path, "decision.utility_at_least"}
    assert path in found


PUBLIC = [
    ("guarantee.mode", "public-dictionary"),
    ("guarantee.epsilon.admit", 0),
    ("dictionary", {**TABLE, "public": True}),
]
PEELED = [
    ("guarantee.epsilon.choose", 0.05),
    ("guarantee.schemes", DROP),
    ("guarantee.candidates", [[0, 1], [1, 0], [1, 1]]),
    ("guarantee.peel", 2),
]
REUSED = [
    ("guarantee.epsilon.admit", 0),
    ("guarantee.schemes", DROP),
    ("guarantee.frequent", DROP),
    ("guarantee.reuse", "out/releases/r1/manifest.json"),
]
GLOBAL = [
    ("guarantee.mode", "global"),
    ("guarantee.epsilon.choose", 0.1),
    ("guarantee.epsilon.admit", 0),
    ("guarantee.schemes", DROP),
    ("guarantee.objective", DROP),
    ("guarantee.candidates", [[0, 1], [1, 0], [1, 1]]),
]


@pytest.mark.parametrize(
    ("changes", "path", "rule"),
    [
        ([("decision", {"utility_at_least": 3})], "decision", "is not used when guarantee.kind is 'dp'"),
        ([("ledger", DROP)], "ledger", "is required when guarantee.kind is 'dp'"),
        ([("guarantee.schemes", [[0, 1], [0]])], "guarantee.schemes.1", "each of the 2 quasi-identifiers"),
        ([("guarantee.schemes", [[0, 1], [1, 1], [0, 1]])], "guarantee.schemes.2", "repeats guarantee.schemes.0"),
        ([("guarantee.delta", 1e-6)], "guarantee.delta", "= 3.33e-7. Got 0.000001"),
        ([("guarantee.delta", 2e-6), ("guarantee.public_rows", 10)], "guarantee.delta", "= 0.000001. Got 0.000002"),
        ([("columns.s", {"role": "sensitive"})], "columns.s", "would be released untouched"),
        ([("columns.s", {"role": "insensitive"})], "columns.s", "would be released untouched"),
        ([("columns.age.nulls", "forbid")], "columns.age.nulls", "'forbid' is not available"),
        ([("columns.zip.unknown", "error")], "columns.zip.unknown", "'error' is not available"),
        ([W, ("risk.sensitivity.personal.factor", "w")], "risk.sensitivity.personal", "weights are not available"),
        ([("risk.model", "III")], "risk.model", "must be 'I' or 'II' when guarantee.kind is 'dp'"),
        ([("checks.max_risk", 1)], "checks.max_risk", "would read exact data"),
        ([("checks.max_mean_risk", 1)], "checks.max_mean_risk", "would read exact data"),
        ([("checks.forbid_verbatim", True)], "checks.forbid_verbatim", "would read exact data"),
        ([("checks.row_count.at_least", 2)], "checks.row_count", "would read exact data"),
        ([("dictionary", TABLE)], "dictionary", "in mode 'local' counts come from"),
        (
            [("dictionary", {"kind": "self", "consistency": "compatible"})],
            "dictionary",
            "is not used when guarantee.kind is 'dp'",
        ),
        ([("guarantee.epsilon.admit", 0)], "guarantee.epsilon.admit", "must be greater than 0 in mode 'local'"),
        ([("guarantee.objective", DROP)], "guarantee.objective", "is required in mode 'local'"),
        ([("guarantee.epsilon.choose", 0.1)], "guarantee.epsilon.choose", "must be 0 where no scheme is chosen"),
        ([("guarantee.candidates", [[0, 1]])], "guarantee.candidates", "without peel; add peel"),
        ([*PUBLIC, ("guarantee.candidates", [[0, 1]])], "guarantee.candidates", "is not used in mode 'public-dict"),
        ([*PUBLIC, ("guarantee.peel", 1)], "guarantee.peel", "is not used in mode 'public-dictionary'"),
        ([*PEELED, ("guarantee.schemes", [[0, 1]])], "guarantee.schemes", "are drawn from guarantee.candidates"),
        ([*PEELED, ("guarantee.peel", 4)], "guarantee.peel", "must be at most the 3 candidates. Got 4"),
        ([*PEELED, ("guarantee.epsilon.choose", 0)], "guarantee.epsilon.choose", "must be greater than 0 with peel"),
        ([*PEELED, ("guarantee.candidates", [[0, 1], [1]])], "guarantee.candidates.1", "each of the 2 quasi"),
        ([*GLOBAL, ("guarantee.candidates", [[0, 1]] * 2)], "guarantee.candidates.1", "repeats guarantee.candidates.0"),
        ([*GLOBAL, ("guarantee.epsilon.choose", 0)], "guarantee.epsilon.choose", "must be greater than 0 in mode 'g"),
        ([*GLOBAL, ("guarantee.epsilon.admit", 0.1)], "guarantee.epsilon.admit", "must be 0 in mode 'global'"),
        ([*GLOBAL, ("guarantee.schemes", [[0, 1]])], "guarantee.schemes", "is not used in mode 'global'"),
        ([*GLOBAL, ("guarantee.peel", 1)], "guarantee.peel", "is not used in mode 'global'"),
        ([*GLOBAL, ("guarantee.objective", {"phi_min": 1})], "guarantee.objective", "is not used in mode 'global'"),
        ([*GLOBAL, ("guarantee.noise", "laplace")], "guarantee.noise", "is not used in mode 'global'"),
        ([*GLOBAL, ("dictionary", TABLE)], "dictionary", "mode 'global' looks no value up"),
        ([*GLOBAL, ("counting.plan", "sorted")], "counting.plan", "mode 'global' counts cells of candidates"),
        ([("guarantee.public_shares", {"agee": {"a": 1}})], "guarantee.public_shares.agee", "did you mean 'age'"),
        ([*GLOBAL, ("guarantee.reuse", "m.json")], "guarantee.reuse", "is not used in mode 'global'"),
        (
            [*PUBLIC, ("dictionary", DROP), ("guarantee.reuse", "m.json")],
            "guarantee.reuse",
            "is only used in mode 'local', and the mode is 'public-dictionary'",
        ),
        ([*REUSED, ("guarantee.epsilon.admit", 0.1)], "guarantee.epsilon.admit", "must be 0 with reuse"),
        ([*REUSED, ("guarantee.epsilon.choose", 0.1)], "guarantee.epsilon.choose", "must be 0 with reuse"),
        ([*REUSED, ("guarantee.frequent", 900)], "guarantee.frequent", "is not used with reuse"),
        ([*REUSED, ("guarantee.noise", "laplace")], "guarantee.noise", "is not used with reuse"),
        ([*REUSED, ("guarantee.candidates", [[0, 1]])], "guarantee.candidates", "is not used with reuse"),
        ([*REUSED, ("guarantee.peel", 1)], "guarantee.peel", "is not used with reuse"),
        ([*PUBLIC, ("dictionary", SELF)], "dictionary.kind", "must be 'table' in mode 'public-dictionary'"),
        ([*PUBLIC, ("dictionary", TABLE)], "dictionary.public", "must be true in mode 'public-dictionary'"),
        ([*PUBLIC, ("guarantee.epsilon.admit", 0.1)], "guarantee.epsilon.admit", "must be 0"),
        ([*PUBLIC, ("guarantee.frequent", DROP)], "guarantee.frequent", "is required in mode 'public-dictionary'"),
    ],
)
def test_what_differential_privacy_refuses(changes: list[tuple[str, Any]], path: str, rule: str) -> None:
    for mode in (PUBLIC, GLOBAL, PEELED, REUSED):
        parse(changed(DP, *mode))
    found = faults(changed(DP, *changes))
    assert list(found) == [path]
    assert rule in found[path]


CSV = [("table.format", "csv"), ("table.options.header", True)]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("multiLine", True),
        ("MULTILINE", "true"),
        ("mode", "FAILFAST"),
        ("mode", "DROPMALFORMED"),
        ("comment", "#"),
        ("emptyValue", "x"),
    ],
)
def test_no_reader_option_lets_one_line_decide_about_others_under_dp(option: str, value: Any) -> None:
    found = faults(changed(DP, *CSV, (f"table.options.{option}", value)))
    assert list(found) == [f"table.options.{option}"]
    assert "is refused under dp" in found[f"table.options.{option}"]
    for kind in ("parquet", "ORC"):
        found = faults(changed(DP, ("table.format", kind), (f"table.options.{option}", value)))
        assert list(found) == [f"table.options.{option}"]


@pytest.mark.parametrize("encoding", ["iso2022_jp", "hz", "utf-7", "UTF-16", "Shift_JIS"])
def test_parse_of_an_encoding_of_several_bytes_is_refused_under_dp(encoding: str) -> None:
    """Bytes of one line could change how the next ones are read."""
    found = faults(changed(DP, *CSV, ("table.options.encoding", encoding)))
    assert list(found) == ["table.options.encoding"]
    for allowed in ("UTF-8", "windows-1252", "latin-1"):
        parse(changed(DP, *CSV, ("table.options.encoding", allowed)))


def test_parse_of_an_option_that_csv_lacks_is_refused_under_dp() -> None:
    found = faults(changed(DP, *CSV, ("table.options.maxColumns", 3)))
    assert "is an unknown option of csv" in found["table.options.maxColumns"]


def test_how_a_line_is_cut_into_values_may_be_said_under_dp() -> None:
    options = {"header": "true", "delimiter": "|", "quote": "'", "escape": "'", "encoding": "UTF-8", "NULLVALUE": "-"}
    parse(changed(DP, ("table.format", "CSV"), ("table.options", options)))


@pytest.mark.parametrize("options", [{}, {"sep": ";"}, {"header": False}])
def test_columns_are_not_read_off_the_first_row_under_dp(options: dict[str, Any]) -> None:
    found = faults(changed(DP, ("table.format", "csv"), ("table.options", options)))
    assert "must be true under dp" in found["table.options.header"]


# --------------------------------------------------------------------------------------------- secrets


@pytest.mark.parametrize(
    "changes",
    [
        [("guarantee.key", SECRET)],
        [("guarantee.key", [SECRET])],
        [("guarantee.key", {"value": SECRET})],
        [("guarantee.kye", SECRET)],
        [("guarantee", SECRET)],
        [("guarantee", [SECRET])],
        [("ledger", f"postgresql://user:{SECRET}@host/db")],
        [("ledger.url", [f"postgresql://user:{SECRET}@host/db"])],
        [("ledger.url", {"password": SECRET})],
        [("ledger.url", 2)],
        [("ledger.urll", SECRET)],
        [("ledger.cap", SECRET)],
        [("ledger.url", f"postgresql://user:{SECRET}@host/db"), ("guarantee.delta", 0.5), ("output.path", "in")],
    ],
)
def test_secrets_are_never_repeated(changes: list[tuple[str, Any]]) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(changed(DP, *changes))
    shown = [str(caught.value), repr(caught.value), "".join(traceback.format_exception(caught.value))]
    assert not any("hunter2" in text or "Got 2" in text for text in shown)


# ------------------------------------------------------------------------------- several dictionaries, persons, plans

MEMBERS = [
    {"name": "own", "kind": "self", "prior": 0.25},
    {"name": "voters", "kind": "table", "path": "known/voters", "columns": {"age": "a"}, "prior": 0.75},
]


def member(number: int, **changes: object) -> list[dict[str, object]]:
    """The members with one changed; None leaves a key out."""
    merged = {**MEMBERS[number], **changes}
    members: list[dict[str, object]] = [dict(one) for one in MEMBERS]
    members[number] = {key: value for key, value in merged.items() if value is not None}
    return members


def several(kind: str, members: list[dict[str, object]]) -> tuple[str, object]:
    return ("dictionary", {"kind": kind, "members": members})


def estimated(**changes: object) -> tuple[str, object]:
    true = {"path": "known/voters", "columns": {"age": "a"}, "id": "no"}
    return ("dictionary", {"kind": "estimated", "estimate": {"kind": "self"}, "against": true} | changes)


@pytest.mark.parametrize(
    ("changes", "path", "message"),
    [
        ([several("bayes", member(0, prior=None))], "dictionary.members.0.prior", "is required by the kind 'bayes'"),
        ([several("bayes", member(0, prior=0.5))], "dictionary.members", "must sum to 1. They sum to 1.25"),
        ([several("minimax", member(0, prior=None))], "dictionary.members.1.prior", "only used by the kind 'bayes'"),
        ([several("bayes", member(0, name="voters"))], "dictionary.members.1.name", "is the name of another member"),
        (
            [several("bayes", member(1, columns={"sick": "s"}))],
            "dictionary.members.1.columns.sick",
            "is not a quasi-identifier",
        ),
        (
            [several("bayes", member(1, path="out/t/x"))],
            "output.path",
            "must be neither dictionary.members.1.path nor inside nor around it",
        ),
        ([estimated(consistency="subsumes")], "dictionary.consistency", "must be 'compatible' with the kind"),
        (
            [estimated(), ("table.record_id", None)],
            "table.record_id",
            "is required where dictionary.against is held against the table itself",
        ),
        ([("dictionary.similar", {"age": 0.8})], "dictionary.similar", "only used by the consistency 'similar'"),
        (
            [("dictionary.consistency", "similar"), ("decision.method", "auto"), ("decision.neighbourhood", DROP),
             ("counting.plan", "auto")],
            "dictionary.similar",
            "must name at least one quasi-identifier",
        ),
        (
            [("dictionary.consistency", "similar"), ("dictionary.similar", {"age": 0.8}), ("counting.plan", "auto")],
            "decision.method",
            "must be 'auto' or 'exhaustive' under the consistency 'similar'",
        ),
        (
            [("dictionary.consistency", "similar"), ("dictionary.similar", {"age": 0.8}), ("counting.plan", "sorted"),
             ("decision.method", "auto"), ("decision.neighbourhood", DROP)],
            "counting.plan",
            "'sorted' needs a consistency that follows the hierarchy",
        ),
        ([("counting.plan", "iceberg")], "counting.plan", "'iceberg' counts only cells with at least t rows"),
        ([("table.entity_id", "sick")], "columns.sick.role", "must be 'identifier', as it is table.entity_id"),
        ([("table.entity_id", "nobody")], "table.entity_id", "is not among columns"),
        ([("table.entity_id", "ssn")], "table.entity_id", "must be another column than table.record_id"),
        ([("table.weight", "sick")], "columns.sick.role", "must be 'weight', as it is table.weight"),
        (
            [("dictionary.consistency", "similar"), ("dictionary.similar", {"age": 0.8}), ("counting.plan", "dense"),
             ("decision.method", "auto"), ("decision.neighbourhood", DROP), ("dictionary.entity_id", "who")],
            "counting.plan",
            "'dense' cannot count distinct persons under the consistency 'similar'",
        ),
        (
            [("dictionary.entity_id", "who"), ("dictionary.weight", "n"), ("counting.plan", "auto")],
            "dictionary.weight",
            "give one of them",
        ),
    ],
)  # fmt: skip
def test_what_does_not_go_together_about_dictionaries(
    changes: list[tuple[str, object]], path: str, message: str
) -> None:
    found = faults(changed(RISK, *changes))
    assert message in found[path]
    assert len(found) == 1


def test_dictionaries_in_their_order() -> None:
    policy = parse(changed(RISK, several("bayes", [dict(one) for one in MEMBERS])))
    assert [(one.name, one.table is None, one.prior, one.key) for one in policy.dictionaries] == [
        ("own", True, 0.25, "dictionary.members.0"),
        ("voters", False, 0.75, "dictionary.members.1"),
    ]
    (alone,) = parse(changed(RISK, estimated())).dictionaries
    assert (alone.name, alone.table, alone.key) == ("estimate", None, "dictionary.estimate")
