"""``privrisk validate``: every fault at once, each by its key, and nothing written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from product import ROOT, Privrisk
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import privrisk_spark as pr
from privrisk_spark.cli.app import app

pytestmark = pytest.mark.spark


def validate(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["validate", *arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout + result.stderr


def found(*arguments: str) -> tuple[int, dict[str, Any]]:
    code, out = validate(*arguments, "--json")
    return code, dict(json.loads(out))


def keys(document: dict[str, Any]) -> list[str]:
    return [fault["key"] for fault in document["faults"]]


@pytest.fixture(autouse=True)
def _in_session(spark: SparkSession) -> None:
    """The commands find the session of the tests."""


def test_a_valid_policy_says_what_was_looked_at_and_writes_nothing(small: Path) -> None:
    before = sorted(small.parent.iterdir())
    code, out = validate(str(small))
    assert code == 0, out
    assert "release: valid; nothing was written" in out
    assert "columns.age.hierarchy: 100 leaves, levels as it is, width 5, width 10, width 20, suppressed" in out
    assert "every value of 60 rows is in it" in out
    assert "not known before the run: whether each record can be disclosed as asked" in out
    assert sorted(small.parent.iterdir()) == before
    code, document = found(str(small))
    assert (code, document["valid"], document["job"], document["faults"]) == (0, True, "release", [])
    assert "lattice: up to 30 nodes" in document["plan"]


def test_all_faults_are_told_at_once_each_by_its_key(small: Path) -> None:
    text = small.read_text()
    text = text.replace("domain: [0, 99]", "domain: [0, 29]")  # half of the ages are outside
    text = text.replace("tree: {", 'tree_file: "nowhere.yaml"}}\n  town: {role: quasi-identifier, hierarchy: {tree: {')
    text = text.replace("  sex: ", "  sexx: ")
    text = text.replace("decision: {problem: min-risk, utility_at_least: 3}\n", "")
    text = text.replace(f"path: {small.parent / 'out'}", f"path: {small}")
    small.write_text(text)
    table = (small.parent / "table.csv").read_bytes()
    code, document = found(str(small))
    assert code == 2
    assert keys(document) == [
        "decision", "columns.sexx", "columns.town", "columns", "columns.city.hierarchy", "columns.age.hierarchy",
    ]  # fmt: skip
    messages = {fault["key"]: fault["message"] for fault in document["faults"]}
    assert "40 row(s) are not in the hierarchy" in messages["columns.age.hierarchy"]
    assert "columns.age.unknown: suppress" in messages["columns.age.hierarchy"], "what would do"
    assert "the file cannot be read" in messages["columns.city.hierarchy"]
    assert document["plan"] is None
    for value in ("34", "49", "Ulm", "p17"):  # no value of a record is told
        assert f"'{value}'" not in json.dumps(document)
    assert (small.parent / "table.csv").read_bytes() == table


def test_a_dry_run_finds_the_same(privrisk: Privrisk, small: Path) -> None:
    small.write_text(small.read_text().replace("domain: [0, 99]", "domain: [0, 29]"))
    ran = privrisk(str(small), "--dry-run")
    assert ran.code == 2
    assert "columns.age.hierarchy: 20 value(s) in 40 row(s) are not in the hierarchy" in ran.err
    small.write_text(small.read_text().replace("[F, M]", "[F]"))
    ran = privrisk(str(small), "--dry-run")
    assert "columns.age.hierarchy: 20" in ran.err
    assert "columns.sex.hierarchy: 1 value(s) in 30 row(s)" in ran.err


def test_suppressed_strangers_and_missing_values_are_told_and_no_fault(small: Path) -> None:
    text = small.read_text().replace("domain: [0, 99]}}", "domain: [0, 29]}}, unknown: suppress")
    small.write_text(text)
    rows = (small.parent / "table.csv").read_text().replace("p3;23;M", "p3;23;")
    (small.parent / "table.csv").write_text(rows)
    code, out = validate(str(small))
    assert code == 0, out
    assert "20 value(s) in 40 row(s) are not in it, and suppressed" in out
    assert "1 rows have no value (suppress)" in out
    small.write_text(text.replace("values: [F, M]}}", "values: [F, M]}}, nulls: forbid"))
    code, document = found(str(small))
    assert (code, keys(document)) == (2, ["columns.sex.nulls"])


def test_places_dictionaries_and_floors_are_looked_at(small: Path) -> None:
    (small.parent / "file").write_text("in the way")
    code, document = found(
        str(small),
        f"--set=output.path={small.parent / 'file' / 'out'}",
        f"--set=dictionary={{kind: table, path: {small.parent / 'table.csv'}, format: csv, options: {{sep: ';', "
        "header: true}, columns: {age: {column: age, level: 9}, city: town}}",
    )
    assert code == 2
    assert keys(document) == ["dictionary.columns.city", "output.path"]
    assert "there is a file in the way" in document["faults"][1]["message"]
    code, document = found(
        str(small),
        f"--set=dictionary={{kind: table, path: {small.parent / 'table.csv'}, format: csv, options: {{sep: ';', "
        "header: true}, columns: {age: {column: age, level: 9}, city: city}}",
        "--set=decision.utility_at_least=88",
    )
    assert (code, keys(document)) == (2, ["dictionary.columns.age.level"])
    code, document = found(str(small), "--set=decision.utility_at_least=88")
    assert (code, keys(document)) == (2, ["decision.utility_at_least"])
    code, document = found(str(small), "--set=table.path=/nowhere.csv")
    assert (code, keys(document)) == (2, ["table.path"])


def test_policies_that_cannot_be_read_are_faults_too(tmp_path: Path, small: Path) -> None:
    assert validate(str(tmp_path / "none.yaml"))[0] == 2
    assert validate()[0] == 2
    code, document = found(str(small), "--set=version=7", "--set=decision.floor=1")
    assert code == 2
    assert sorted(keys(document)) == ["decision.floor", "version"]


def test_other_jobs_are_looked_at(small: Path, tmp_path: Path) -> None:
    text = small.read_text()
    assessed = tmp_path / "assess.yaml"
    assessed.write_text(text.partition("decision:")[0] + "assess: {thresholds: {k: 2}}\n")
    code, document = found(str(assessed), f"--output={tmp_path / 'found'}")
    assert (code, document["job"]) == (0, "assess"), document
    assert "set 'all': age, sex, city" in document["plan"]
    assert not (tmp_path / "found").exists()
    # The table itself is no place for findings.
    code, document = found(str(assessed), f"--output={tmp_path / 'table.csv'}")
    assert (code, keys(document)) == (2, ["--output"])
    attacked = tmp_path / "attack.yaml"
    attacked.write_text(
        text.partition("decision:")[0]
        + f"attack: {{protected: {{path: {tmp_path / 'table.csv'}, format: csv, options: {{sep: ';', header: true}}, "
        "record_id: nobody}}\n"
    )
    code, document = found(str(attacked))
    assert (document["job"], code, keys(document)) == ("attack", 2, ["attack.protected.record_id"])
    code, document = found(str(attacked), "--set=attack.intruder.levels.age=99")
    assert (code, sorted(keys(document))) == (2, ["attack.intruder.levels.age", "attack.protected.record_id"])
    assert found(str(small), "--for=attack")[1]["faults"][0]["message"].startswith("attack.protected: 'published'")
    code, document = found(str(small), "--for=share")
    assert (code, keys(document)) == (2, ["sharing"])


def test_validate_cut_line_of_the_linkage_table_is_an_error(small: Path) -> None:
    links = small.parent / "links.csv"
    links.write_text("id;p;town\np1;0.5;Ulm\np2\n")
    code, document = found(
        str(small),
        f"--set=linkage={{path: {links}, format: csv, options: {{sep: ';', header: true}}, record_id: id, "
        "probability: p, columns: {town: {column: town, hierarchy: {flat: {}}}}}",
    )
    assert (code, keys(document)) == (2, ["linkage.path"])


def test_validate_attack_labels_of_the_protected_table_are_leaves(small: Path, tmp_path: Path) -> None:
    protected, rows = tmp_path / "protected.csv", (tmp_path / "table.csv").read_text()
    protected.write_text(rows.replace("p0;20;F;Ulm;a", "p0;20;F;Ulm;another"))
    policy = tmp_path / "attack.yaml"
    policy.write_text(
        small.read_text().partition("decision:")[0]
        + f"attack: {{protected: {{path: {protected}, format: csv, options: {{sep: ';', header: true}}, "
        "record_id: id}, intruder: {columns: [age, diagnosis]}}\n"
    )
    code, document = found(str(policy), "--for=attack")
    assert (code, document["faults"]) == (0, [])


def test_masked_releases_and_sharing_of_the_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    code, document = found("conf/sharing-demo.yaml")
    assert (code, document["job"]) == (0, "share"), document
    assert "decided: " in document["plan"]
    code, document = found("conf/sharing-demo.yaml", "--set=sharing.edges.u=nobody")
    assert (code, keys(document)) == (2, ["sharing.edges.u"])
    friends = "{kind: table, path: conf/sharing-demo/friends.csv, format: csv, options: {header: true}, trust: nobody}"
    trust = f"--set=sharing.trust={friends}"
    code, document = found("conf/sharing-demo.yaml", trust, "--set=sharing.model={kind: trade-off}")
    assert (code, keys(document)) == (2, ["sharing.trust.trust"])
    table = tmp_path / "table.csv"
    table.write_text("id;age\n" + "".join(f"p{i};{i}\n" for i in range(20)))
    policy = tmp_path / "masked.yaml"
    policy.write_text(
        f"""
version: 1
run: {{name: masked}}
table: {{path: {table}, format: csv, options: {{sep: ";", header: true}}, record_id: id}}
columns:
  id: {{role: identifier}}
  age: {{role: quasi-identifier, mask: {{method: noise, deviation: 2}}}}
guarantee: {{kind: masked}}
output: {{path: {tmp_path / "out"}, vault: {tmp_path / "vault"}}}
"""
    )
    code, document = found(str(policy))
    assert (code, keys(document)) == (2, ["columns.age.mask"]), "the column holds texts"
    code, document = found(str(policy), "--set=columns.age.read={cast: integer}")
    assert code == 0, document


def test_in_python_a_frame_is_looked_at_with_a_policy_or_its_file(spark: SparkSession, small: Path) -> None:
    rows = [(34, "Ulm"), (36, "Kiel"), (36, "Kiel")]
    df = spark.createDataFrame(rows, "age int, town string")
    policy = pr.Policy(
        columns={"age": pr.quasi_identifier(pr.intervals(5, 10)), "town": pr.quasi_identifier(pr.flat("Ulm"))},
        decision={"utility_at_least": 2},
    )
    told = pr.validate(df, policy)
    assert not told.valid
    assert [fault.path for fault in told.faults] == ["columns.town.hierarchy"]
    assert "1 value(s) in 2 row(s)" in str(told)
    assert "Kiel" not in told._repr_html_()
    assert pr.validate(None, small).valid
    assert pr.validate(None, policy).faults[0].path == "table"
