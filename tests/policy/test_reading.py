from __future__ import annotations

import copy
import datetime as dt
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from policies import DP, DROP, RISK, SECRET, Document, Keys, changed

from privrisk_spark.errors import ConfigError
from privrisk_spark.hierarchies.builders import build
from privrisk_spark.policy.dictionaries import DictionaryColumn
from privrisk_spark.policy.policy import Policy
from privrisk_spark.policy.reading import check_run_id, json_schema, load, parse

ROOT = Path(__file__).resolve().parents[2]
DAY = dt.date(2026, 11, 21)


def write(tmp_path: Path, *documents: Document | str) -> list[Path]:
    files = []
    for number, document in enumerate(documents):
        file = tmp_path / f"{number}.yaml"
        file.write_text(document if isinstance(document, str) else yaml.safe_dump(document, sort_keys=False), "utf-8")
        files.append(file)
    return files


def loaded(files: list[Path], *overrides: str, **environment: str) -> Policy:
    return load(files, overrides=overrides, environment=environment, date=DAY)


def load_faults(files: list[Path], *overrides: str, **environment: str) -> list[tuple[str, str]]:
    with pytest.raises(ConfigError) as caught:
        loaded(files, *overrides, **environment)
    return [(fault.path, fault.rule) for fault in caught.value.faults]


# ---------------------------------------------------------------------------------------------- layers


def test_later_layers_win_default_files_environment_overrides(tmp_path: Path) -> None:
    plain = changed(RISK, ("output.format", DROP))
    first, second = changed(RISK, ("output.format", "csv")), {"output": {"format": "parquet"}}
    env = {"PRIVRISK__OUTPUT__FORMAT": "csv"}
    assert loaded(write(tmp_path, plain)).output.format == "parquet"
    assert loaded(write(tmp_path, first)).output.format == "csv"
    assert loaded(write(tmp_path, first, second)).output.format == "parquet"
    assert loaded(write(tmp_path, first, second), **env).output.format == "csv"
    assert loaded(write(tmp_path, first, second), "output.format=parquet", **env).output.format == "parquet"
    assert loaded(write(tmp_path, first), "output.files=1", "output.files=2").output.files == 2


def test_mappings_are_merged_and_lists_replaced(tmp_path: Path) -> None:
    above = {"columns": {"age": {"nulls": "suppress", "hierarchy": {"intervals": {"widths": [20]}}}}}
    policy = loaded(write(tmp_path, RISK, above))
    assert list(policy.columns) == list(RISK["columns"])
    age = policy.columns["age"].model_dump(mode="json")
    assert (age["nulls"], age["hierarchy"]["intervals"]["widths"]) == ("suppress", [20])
    assert age["hierarchy"]["intervals"]["domain"] == [0, 99]


def test_a_part_of_another_kind_replaces_the_one_below(tmp_path: Path) -> None:
    base = changed(RISK, ("table.record_id", DROP), ("utility.weights", {}))
    above = {"dictionary": {"kind": "self"}, "columns": {"ssn": {"role": "sensitive"}}}
    policy = loaded(write(tmp_path, base, above))
    assert policy.dictionary.kind == "self"
    assert policy.dictionary.consistency == "subsumes"
    assert policy.columns["ssn"].model_dump() == {"role": "sensitive", "action": "keep"}
    # Only there: a column or option that happens to be called kind is merged like any other.
    odd = changed(
        base,
        ("columns.kind", {"role": "sensitive"}),
        ("table.format", "json"),
        ("table.options", {"kind": "x", "role": "x", "sep": ";"}),
    )
    policy = loaded(write(tmp_path, odd, {"table": {"options": {"kind": "y", "role": "y"}}}))
    assert policy.table.options == {"kind": "y", "role": "y", "sep": ";"}


def test_environment_finds_keys_whatever_their_case(tmp_path: Path) -> None:
    policy = loaded(
        write(tmp_path, RISK),
        PRIVRISK__COLUMNS__CITY__NULLS="forbid",
        PRIVRISK__DECISION__UTILITY_AT_LEAST="5",
        PRIVRISKOUTPUT__PATH="not ours",
        PRIVRISK_ADULT="not ours",
    )
    city = policy.quasi_identifiers["City"]
    assert city.nulls == "forbid"
    assert "city" not in policy.columns
    assert policy.decision is not None
    assert policy.decision.utility_at_least == 5


def test_a_fault_names_the_layer_it_comes_from(tmp_path: Path) -> None:
    files = write(tmp_path, RISK)
    env = {"PRIVRISK__OUTPUT__PAHT": "x"}
    found = dict(load_faults(files, "runn.name=x", "checks={min_class_size: 0}", "output.path=a", **env))
    assert found["output.paht"].endswith("(set by PRIVRISK__OUTPUT__PAHT)")
    assert found["runn"].endswith("(set by --set runn.name)")
    assert found["checks.min_class_size"].endswith("(set by --set checks)")
    assert len(found) == 3


def test_malformed_layers_are_all_reported(tmp_path: Path) -> None:
    env = {"PRIVRISK__": "x", "PRIVRISK__A____B": "x", "PRIVRISK__RUN__NAME": "[x"}
    overrides = ["secret", "=x", "a..b=1", "run.name=[", "columns.age.hierarchy.intervals.widths.0=5"]
    missing = tmp_path / "none.yaml"
    found = load_faults([*write(tmp_path, RISK), missing], *overrides, **env)
    assert [path for path, _ in found] == [
        "",
        "PRIVRISK__",
        "PRIVRISK__A____B",
        "PRIVRISK__RUN__NAME",
        "--set number 1",
        "--set number 2",
        "--set number 3",
        "--set run.name",
        "--set columns.age.hierarchy.intervals.widths.0",
    ]
    assert f"there is no policy file '{missing}'" in found[0][1]
    assert "list columns.age.hierarchy.intervals.widths; set a list as a whole" in found[-1][1]
    assert not any("secret" in rule for _, rule in found)


def test_load_with_malformed_layers_reports_wrong_keys_at_once(tmp_path: Path) -> None:
    files = write(tmp_path, changed(RISK, ("decision", DROP), ("utility.measure", "depht")))
    found = load_faults(files, "decision={utility_at_least: 3", "checks.min_class_size=0", PRIVRISK__RUN__NAME="[x")
    # A decision is missing only because its layer is malformed.
    named = ["PRIVRISK__RUN__NAME", "--set decision", "utility.measure", "checks.min_class_size"]
    assert [path for path, _ in found] == named


# --------------------------------------------------------------------------------------- interpolation


def test_references_and_the_date(tmp_path: Path) -> None:
    document = changed(
        RISK,
        ("table.path", "${IN}/t-{ds}.csv"),
        ("output.path", "${OUT:-out/{ds}}"),
        ("output.vault", "${EMPTY:-vault}/${VAULT:-x}"),
        ("run.date", "{ds}"),
        ("checks.min_class_size", "${K}"),
        ("columns.job.hierarchy.tree", {"*": {"${NOT_A_VALUE}": ["${LEAF}"]}}),
    )
    policy = loaded(write(tmp_path, document), IN="/data/{ds}", EMPTY="", VAULT="v", K="4", LEAF="l")
    assert policy.table.path == "/data/2026-11-21/t-2026-11-21.csv"
    places = policy.model_dump()["output"]
    assert (places["path"], places["vault"]) == ("out/2026-11-21", "vault/v")
    assert policy.run.date == DAY
    assert policy.checks.min_class_size == 4
    tree = policy.columns["job"].model_dump()["hierarchy"]["tree"]
    assert tree == {"*": {"${NOT_A_VALUE}": ["l"]}}  # keys are names, and left alone


def test_unset_references_are_reported_with_everything_else(tmp_path: Path) -> None:
    document = changed(
        RISK,
        ("output.path", "${A}/${B}"),
        ("run.name", "${NAME}"),  # not also a fault of the pattern
        ("columns.sex.hierarchy.flat.values", ["f", "${C}"]),
        ("table.path", "${1X}"),
        ("output.vault", "${D:-${E}}"),
        ("utility.measure", "depht"),
    )
    found = load_faults(write(tmp_path, document))
    assert [path for path, _ in found] == [
        "run.name",
        "table.path",
        "columns.sex.hierarchy.flat.values.1",
        "output.path",
        "output.path",
        "output.vault",
        "utility.measure",
    ]
    text = dict(reversed(found))
    assert text["output.path"] == "the environment variable A is not set; set it, or write ${A:-default}"
    assert text["table.path"] == text["output.vault"]
    assert "${NAME} or ${NAME:-default}" in text["table.path"]


# ------------------------------------------------------------------------------------------------ YAML


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must hold a mapping of keys"),
        ("- a", "must hold a mapping of keys"),
        ("a: 1\na: 2", "line 2, column 1: the key 'a' is given twice"),
        ("b: {x: 1, 'x': 2}", "line 1, column 11: the key 'x' is given twice"),
        ("1: a\n'1': b", "the key '1' is given twice"),
        ("'1': a\n1: b", "the key '1' is given twice"),
        ("columns: {~: {role: sensitive}}", "the key '~' is not read as text; write it in quotes"),
        ("{a: 1}: 2", "a key must be a text"),
        ("a: [1", "line 1, column 6: expected ',' or ']'"),
        ("a: {ds}/x", "in quotes"),
        ("a:\n\t- b", "indent with spaces"),
        ("a: &x [*x]", "itself a part of"),
        ("a: !!python/object/apply:os.getcwd []", "could not determine a constructor"),
        ("a: \x07", "a character YAML does not allow"),
        ("a: 1\n---\nb: 1", "another document"),
    ],
)
def test_yaml_that_is_wrong_or_would_be_misread(tmp_path: Path, text: str, message: str) -> None:
    ((path, rule),) = load_faults(write(tmp_path, text))
    assert path == ""
    assert message in rule
    assert str(tmp_path / "0.yaml") in rule


def test_yaml_merge_keys_numbers_and_byte_order_mark(tmp_path: Path) -> None:
    document = changed(RISK, ("output", DROP), ("run", DROP), ("decision", DROP))
    tail = """
run: &run {name: x, date: 2026-01-02}
output: {path: out, vault: vault, files: 0x10}
decision: {utility_at_least: +0.5}
"""
    again = "run: {<<: {name: x}, name: y}\n"
    files = write(tmp_path, "\ufeff" + yaml.safe_dump(document) + tail, again)
    policy = loaded(files)
    assert (policy.run.name, policy.run.date) == ("y", dt.date(2026, 1, 2))
    assert policy.output.files == 16
    assert policy.decision is not None
    assert policy.decision.utility_at_least == 0.5


def test_load_scalars_without_quotes_keep_their_texts(tmp_path: Path) -> None:
    text = yaml.safe_dump(changed(RISK, ("table", DROP), ("columns.zip", DROP)), sort_keys=False)
    odd = ["010", "01.10", "12:30", "1_000", "0x1F", "NO", "1e3", "true", "1", "01"]
    written = f"""
table: {{path: t, format: csv, options: {{nullValue: NO, header: true, sep: 0, comment: 7}}}}
columns:
  zip:
    role: quasi-identifier
    hierarchy: {{tree: {{"*": {{{", ".join(f"{one}: [x{one}]" for one in odd)}}}}}}}
    read: {{trim: yes, null_if: [{", ".join(odd)}], map: {{{", ".join(f"a{one}: {one}, 00{one}: on" for one in odd)}}}}}
  time: {{role: quasi-identifier, hierarchy: {{flat: {{values: [{", ".join(odd)}]}}}}}}
  day: {{role: quasi-identifier, hierarchy: {{dates: {{steps: [day, month], domain: [2020-01-01, 2020-12-31]}}}}}}
"""
    more = f"columns.time.hierarchy.flat.values=[{', '.join(odd)}, 00]"
    files = write(tmp_path, text.replace("columns:", written, 1))
    policy = loaded(files, more, PRIVRISK__TABLE__OPTIONS__EMPTYVALUE="OFF")
    options = {"comment": "7", "header": "true", "nullValue": "NO", "emptyvalue": "OFF", "sep": "0"}
    assert policy.table.option_texts == options
    zips, times = policy.quasi_identifiers["zip"], policy.quasi_identifiers["time"]
    assert zips.read is not None
    assert zips.read.trim is True
    assert zips.read.null_if == tuple(odd)
    assert zips.read.map == {**{f"a{one}": one for one in odd}, **{f"00{one}": "on" for one in odd}}
    labels = build(zips.hierarchy, "zip").labels
    assert labels == (*[f"x{one}" for one in odd], *odd, "*")
    assert list(build(times.hierarchy, "time").code_of) == [*odd, "00"]
    assert parse(policy.model_dump(mode="json")).digest() == policy.digest()


def bomb(*, merged: bool) -> str:
    """Nine aliases of nine aliases of …: 9^10 values in half a kilobyte; or one mapping merged so often."""
    lines = ["a0: &a0 {x: 1}"] if merged else ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    for i in range(1, 10):
        nine = ", ".join([f"*a{i - 1}"] * 9)
        lines.append(f"a{i}: &a{i} {{<<: [{nine}]}}" if merged else f"a{i}: &a{i} [{nine}]")
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (bomb(merged=False), "make it stand for more than 4,000,000 values"),
        (bomb(merged=True), "make it stand for more than 4,000,000 values"),
        ("a: &a [1, *a]", "stands for something it is itself a part of"),
        ("a: &a {b: {c: *a}}", "stands for something it is itself a part of"),
        ("a: " + "[" * 5000 + "]" * 5000, "it is nested too deeply"),
    ],
    ids=["lists", "merged", "endless", "endless in a mapping", "deep"],
)
def test_what_would_never_be_read_to_its_end_is_refused(tmp_path: Path, text: str, message: str) -> None:
    ((path, rule),) = load_faults(write(tmp_path, text))
    assert path == ""
    assert message in rule


def test_aliases_a_person_writes_are_read(tmp_path: Path) -> None:
    text = yaml.safe_dump(changed(RISK, ("columns.sick", DROP), ("columns.note", DROP)), sort_keys=False)
    kept = "columns:\n  sick: &kept {role: sensitive}\n  also: *kept"
    policy = loaded(write(tmp_path, text.replace("columns:", kept, 1)))
    assert policy.columns["also"] == policy.columns["sick"]


def test_a_pipe_is_no_policy_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "policy.yaml")
    ((_, rule),) = load_faults([tmp_path / "policy.yaml"])
    assert "it is a pipe or a device" in rule


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes(b"run: \xff")
    found = load_faults([tmp_path / "none", tmp_path, tmp_path / "latin"])
    messages = ["there is no policy file", "cannot be read", "is not UTF-8 text"]
    for (_, rule), message in zip(found, messages, strict=True):
        assert message in rule


def test_secrets_of_layers_are_never_repeated(tmp_path: Path) -> None:
    overrides = [f"guarantee.key:{SECRET}", f"ledger.url=[{SECRET}", f"guarantee.key={SECRET}"]
    env = {"PRIVRISK__LEDGER__URL": f"{{{SECRET}", "PRIVRISK__GUARANTEE__KEY": SECRET}
    for override in overrides:
        assert SECRET not in str(load_faults(write(tmp_path, DP), override))
    for name, value in env.items():
        assert SECRET not in str(load_faults(write(tmp_path, DP), **{name: value}))


# -------------------------------------------------------------------------------------- digest and run id


def leaves(document: Any, keys: Keys = ()) -> Iterator[Keys]:
    if isinstance(document, dict | list):
        for key, value in document.items() if isinstance(document, dict) else enumerate(document):
            yield from leaves(value, (*keys, key))
    else:
        yield keys


OTHER: dict[str, Any] = {
    "run.date": "2026-11-02",
    "table.record_id": None,
    "columns.age.nulls": "wildcard",
    "columns.zip.hierarchy.mask.from": "left",
    "columns.zip.unknown": "error",
    "columns.City.hierarchy.separator": ",",
    "columns.born.hierarchy.dates.steps.0": "month",
    "columns.born.hierarchy.dates.steps.1": "decade",
    "columns.born.hierarchy.dates.domain.0": "2000-01-02",
    "columns.born.hierarchy.dates.domain.1": "2001-12-30",
    "columns.sick.action": "drop",
    "columns.note.action": "keep",
    "dictionary.consistency": "compatible",
    "dictionary.columns.born.level": 0,
    "risk.model": "I",
    "risk.sensitivity.form": "linear",
    "risk.sensitivity.weights.zip": 7,
    "utility.measure": "lm",
    "decision.method": "auto",
    "decision.neighbourhood": "swap",
    "decision.infeasible": "error",
    "counting.plan": "auto",
    "checks.fail_on": "error",
    "output.format": "parquet",
    "guarantee.key": "file:/k",
    "guarantee.keep_fraction": 0.5,
    "guarantee.epsilon.admit": 0.25,
    "guarantee.epsilon.keep": 0.5,
    "guarantee.delta": "2e-9",
    "ledger.cap.delta": "1e-8",
    "guarantee.objective.count_cap": 501,
}
ONE_CHOICE = {"version", "decision.problem", "guarantee.kind", "guarantee.mode", "dictionary.kind"}


def options(base: Document) -> list[Keys]:
    fixed = {keys for keys in leaves(base) if ".".join(map(str, keys)) in ONE_CHOICE or keys[-1] == "role"}
    fixed |= {("columns", name, "action") for name in ("ssn",)} | {("ledger", "url")}
    fixed |= {("columns", "born", "hierarchy", "dates", "steps", place) for place in (0, 1)}
    return [keys for keys in leaves(base) if keys not in fixed]


@pytest.mark.parametrize(("base", "keys"), [(base, keys) for base in (RISK, DP) for keys in options(base)])
def test_the_digest_changes_with_every_option(base: Document, keys: Keys) -> None:
    document = copy.deepcopy(base)
    here: Any = document
    for key in keys[:-1]:
        here = here[key]
    old, path = here[keys[-1]], ".".join(map(str, keys))
    if path in OTHER:
        here[keys[-1]] = OTHER[path]
    elif isinstance(old, bool):
        here[keys[-1]] = not old
    elif isinstance(old, int | float):
        here[keys[-1]] = old * 2 if old else 10
        if "domain" in keys or "cuts" in keys or "widths" in keys:
            return  # several of them must change together; see below
    else:
        here[keys[-1]] = old + "x"
    # The model alone: rules on several keys are not what is tested.
    before, after = Policy.model_validate(base), Policy.model_validate(document)
    assert before.digest() != after.digest(), path


def test_the_digest_changes_with_what_is_nested_and_ordered() -> None:
    digests = [
        parse(document).digest()
        for document in (
            DP,
            changed(DP, ("columns.age.hierarchy.intervals.widths", [5, 20])),
            changed(DP, ("columns.age.hierarchy.intervals.domain", [0, 98])),
            changed(DP, ("columns", dict(reversed(DP["columns"].items())))),  # schemes go by the order of columns
            changed(DP, ("guarantee.schemes", [[1, 0], [0, 1]])),
            changed(DP, ("guarantee.key", DROP)),
            changed(DP, ("ledger.lineage", "x")),
            changed(DP, ("guarantee.epsilon.keep", "0.7000000000000000000000000000000000001")),
        )
    ]
    assert len(set(digests)) == len(digests)
    plain = changed(RISK, ("risk.sensitivity.personal.sum_to", None))
    infinite = [parse(changed(plain, ("risk.sensitivity.weights.zip", w))).digest() for w in (float("inf"), 1e308)]
    assert infinite[0] != infinite[1]


def test_the_digest_does_not_change_with_what_means_the_same(tmp_path: Path) -> None:
    same = [
        changed(RISK),
        dict(reversed(RISK.items())),
        changed(RISK, ("risk.sensitivity.weights", dict(reversed(RISK["risk"]["sensitivity"]["weights"].items())))),
        changed(RISK, ("table.options", {"header": True, "sep": ";"})),
        changed(RISK, ("utility.weights", {"zip": 1.0, "age": 2.0})),
        changed(RISK, ("risk.sensitivity.constant", 1)),  # the default, said
        changed(RISK, ("columns.sick", {"role": "sensitive"})),
        changed(RISK, ("run.date", "2026-11-01")),
    ]
    assert len({parse(document).digest() for document in same}) == 1
    under_dp = [
        DP,
        changed(DP, ("ledger.url", "postgresql://user:pw@host/db")),
        changed(DP, ("ledger.cap.epsilon", "4.00"), ("guarantee.delta", "0.000000001")),
        changed(DP, ("guarantee.epsilon", {"keep": "0.70", "admit": "3e-1"})),
        changed(DP, ("dictionary", {"kind": "self"})),
    ]
    assert len({parse(document).digest() for document in under_dp}) == 1
    base = changed(RISK, ("output.files", 1))
    by_layers = loaded(write(tmp_path, base), "output.files=3")
    assert by_layers.digest() == parse(RISK).digest()


def test_the_canonical_policy_is_json_without_secrets_and_reads_back() -> None:
    policy = parse(changed(DP, ("ledger.url", f"postgresql://user:{SECRET}@host/db")))
    assert SECRET not in policy.canonical()
    assert json.loads(policy.canonical())["guarantee"]["key"] == "env:RELEASE_KEY"  # a reference, not a key
    for document in (RISK, DP):
        policy = parse(document)
        read = json.loads(policy.canonical(), parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
        if read["ledger"]:
            read["ledger"]["url"] = document["ledger"]["url"]
        assert parse(read) == policy
        assert len(policy.digest()) == 64


def test_default_run_id() -> None:
    policy = parse(DP)
    assert policy.run_id(DAY) == f"census-2026-11-21-{policy.digest()[:8]}"
    dated = parse(changed(DP, ("run.date", "2026-11-01")))
    assert dated.run_id(DAY) == f"census-2026-11-01-{dated.digest()[:8]}"  # the policy's own date wins
    assert check_run_id(policy.run_id(DAY)) == policy.run_id(DAY)
    longest = parse(changed(DP, ("run.name", "x" * 64)))
    check_run_id(longest.run_id(DAY))


@pytest.mark.parametrize("run_id", ["", "../x", "a/b", ".hidden", "-x", "a b", "x" * 129, "é", "a\n"])
def test_run_ids_that_are_no_directory_names(run_id: str) -> None:
    with pytest.raises(ConfigError, match=r"--run-id: must be 1 to 128 letters"):
        check_run_id(run_id)


# ----------------------------------------------------------------------------- models, schema, shipped policies


def test_what_the_stages_read_from_a_policy() -> None:
    policy = parse(RISK)
    assert list(policy.quasi_identifiers) == ["age", "zip", "City", "born", "job", "rank", "pay", "sex"]
    assert policy.kept_columns == ["sick"]
    assert policy.weight_columns == ["w"]
    assert policy.dictionary.kind == "table"
    assert policy.dictionary.columns["age"] == "AGE"
    assert policy.dictionary.columns["born"] == DictionaryColumn(column="years", level=1, age_in=2006)
    assert list(policy.utility.weights) == ["age", "zip"]


def test_the_schema_is_valid_and_knows_every_policy() -> None:
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    for document in (RISK, DP):
        validator.validate(json.loads(json.dumps(document, default=str)))
    for change in (
        ("tabel", 1),
        ("version", 2),
        ("run.date", 5),
        ("columns.age.role", "x"),
        ("columns.age.hierarchy", {"mask": {"steps": 1}, "file": "x"}),
        ("columns.zip.hierarchy.mask.steps", 0),
        ("dictionary.columns.age", 5),
        ("utility.weights.age", -1),
        ("output.files", 0),  # bounds are there, as JSON Schema words
        ("counting.dense_cells", 0),
        ("decision.utility_at_least", True),
    ):
        assert not validator.is_valid(json.loads(json.dumps(changed(RISK, change), default=str))), change
    assert validator.is_valid(json.loads(json.dumps(changed(RISK, ("run.date", "{ds}")))))
    assert '"gt"' not in json.dumps(schema)


OVER = {"adult-assess.yaml": ROOT / "conf" / "adult.yaml"}
"""Files that are merged over another one."""

SHIPPED = sorted([*(ROOT / "conf").glob("*.yaml"), *(ROOT / "benchmarks").glob("*.yaml")])


@pytest.mark.parametrize("file", SHIPPED, ids=[file.name for file in SHIPPED])
def test_shipped_policies_are_read_as_they_are(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    places = {"CASE_STUDY_DATA": "/data", "CASE_STUDY_OUT": "/out", "MEASURES_DATA": "/measures"}
    places |= {"PERSONS_DATA": "/persons", "PERSONS_OUT": "/out", "HOSPITAL_DATA": "/hospital", "HOSPITAL_OUT": "/out"}
    needed = {name: place for name, place in places.items() if name in text}
    files = [OVER[file.name], file] if file.name in OVER else [file]
    policy = load(files, environment=needed, date=DAY, releasing="\noutput:" in text)
    assert policy.quasi_identifiers
    if "ADULT" in text:
        assert policy.table.title == "../shared/data/adult/adult.csv"
        elsewhere = load(files, environment={"ADULT": "/adult"}, date=DAY)
        assert elsewhere.table.path == "/adult/adult.csv"
    if file.name in OVER:
        assert policy.assess.thresholds
        return
    document = json.loads(json.dumps(yaml.safe_load(text), default=str))
    jsonschema.Draft202012Validator(json_schema()).validate(document)


def test_policies_are_shipped() -> None:
    assert SHIPPED
