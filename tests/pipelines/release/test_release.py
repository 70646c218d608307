"""The main job end to end on a small table: files, exit codes, idempotence, crashes, errors a newcomer makes."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from product import Privrisk, Ran
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from privrisk_spark.cli.app import app
from privrisk_spark.errors import EngineError
from privrisk_spark.storage.locations import Location
from privrisk_spark.storage.ownership import MARKER, claim


def digests(directory: Path) -> dict[str, str]:
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(directory.iterdir())}


def test_a_release_is_what_the_documents_say(privrisk: Privrisk, small: Path) -> None:
    ran = privrisk(str(small), "--run-id", "one")
    assert ran.code == 0, ran.err
    target = ran.root / "out" / "releases" / "one"
    assert {p.name for p in target.iterdir()} == {
        "data",
        "manifest.json",
        "checks.json",
        "dictionary.json",
        "report.html",
    }
    assert {p.name for p in (ran.root / "out").iterdir()} == {MARKER, "manifest.json", "releases"}
    manifest = ran.manifest
    assert manifest == json.loads((target / "manifest.json").read_text())
    assert manifest["rows"] == manifest["rows_read"] == 60
    assert manifest["guarantee"]["status"] == "proved"
    release = pq.read_table(ran.data).to_pandas()
    assert list(release.columns) == ["age", "sex", "city", "diagnosis"]
    assert sorted(release["diagnosis"].value_counts()) == [20, 20, 20]
    assert {f["name"] for f in manifest["data"]["files"]} == set(digests(ran.data))
    assert {f["sha256"] for f in manifest["data"]["files"]} == set(digests(ran.data).values())

    vault = ran.root / "vault"
    assert not [p for p in vault.iterdir() if p.name.startswith(".") and p.name != MARKER], "scratch and locks are gone"
    decisions = pd.read_parquet(vault / "decisions")
    assert list(decisions.columns) == [
        "id", "level_age", "level_sex", "level_city", "risk", "utility", "consistent", "method",
    ]  # fmt: skip
    assert {str(decisions[f"level_{name}"].dtype) for name in ("age", "sex", "city")} == {"int8"}
    assert decisions["id"].is_unique
    assert len(decisions) == 60
    summary = ran.summary
    assert summary["rows"] == 60
    assert summary["risk_after"]["mean"] == pytest.approx(decisions["risk"].mean(), rel=1e-12)
    assert summary["linkage"] is None
    assert summary["utility"]["min"] == decisions["utility"].min() == 3
    assert summary["risk_after"]["mean"] < summary["risk_before"]["mean"]
    assert set(summary["seconds"]) >= {"read", "encode", "count", "decide"}
    assert ran.status == {
        "run_id": "one", "phase": "published", "code": 0, "message": f"release at {target}", "what_to_do": "",
    }  # fmt: skip
    assert '<h2 id="linkage">' not in (vault / "report.html").read_text()
    assert "every rule holds" in (vault / "contracts" / "release.html").read_text()
    suites = json.loads((vault / "contracts" / "release-facts.json").read_text())
    assert len(suites["expectations"]) >= 5


def test_the_release_has_the_same_bytes_under_any_partitioning(
    privrisk: Privrisk, small: Path, spark: SparkSession, tmp_path: Path
) -> None:
    seen = []
    lines = (tmp_path / "table.csv").read_text().splitlines()
    for number, (partitions, order) in enumerate([("1", 1), ("11", -1)]):
        root = tmp_path / f"run{number}"
        root.mkdir()
        shuffled = root / "table.csv"
        shuffled.write_text("\n".join([lines[0], *lines[1:][::order]]) + "\n")
        usual = spark.conf.get("spark.sql.shuffle.partitions")
        spark.conf.set("spark.sql.shuffle.partitions", partitions)
        try:
            ran = privrisk(
                str(small), "--run-id", "same", f"--set=table.path={shuffled}", "--set=output.files=2", root=root
            )
        finally:
            spark.conf.set("spark.sql.shuffle.partitions", usual)
        assert ran.code == 0, ran.err
        seen.append(digests(ran.data))
    assert len(seen[0]) == 2
    assert seen[0] == seen[1]


def test_release_of_a_file_with_its_own_root_shows_that_root(privrisk: Privrisk, small: Path, tmp_path: Path) -> None:
    cities = tmp_path / "city.csv"
    cities.write_text("Ulm;U***;****\nBonn;B***;****\nKiel;K***;****\n")
    tree = 'tree: {"*": {south: [Ulm], north: [Bonn, Kiel]}}'
    assert tree in small.read_text()
    small.write_text(small.read_text().replace(tree, f"file: {cities}"))
    ran = privrisk(str(small), "--set=decision.utility_at_least=0")
    assert ran.code == 0, ran.err
    assert set(pd.read_parquet(ran.data)["city"]) == {"****"}


@pytest.mark.parametrize("form", ["34", "34.0", "3.4e1", "034"])
def test_release_against_a_dictionary_of_equal_numbers_finds_every_record(
    privrisk: Privrisk, small: Path, tmp_path: Path, form: str
) -> None:
    written = {"34": str, "34.0": lambda age: f"{age}.0", "3.4e1": lambda age: f"{age / 10}e1", "034": "{:03}".format}
    with (tmp_path / "register.csv").open("w") as file:
        file.write("years\n" + "\n".join(written[form](20 + i % 30) for i in range(60) for _ in range(4)) + "\n")
    text = small.read_text().replace(", domain: [0, 99]", "")
    text += f"""
dictionary:
  kind: table
  path: {tmp_path / "register.csv"}
  format: csv
  options: {{header: true}}
  columns: {{age: years}}
"""
    small.write_text(text)
    ran = privrisk(str(small))
    assert ran.code == 0, ran.err
    matched = form != "034"
    assert (ran.summary["risk_before"]["max"] == 3 / 8) == matched, ran.summary["risk_before"]
    assert ("Likely reason: leading zeros, such as 010 and 10" in ran.err) == (not matched)
    # The figures of the warning are exact.
    assert not any("values occur in the table" in page.read_text() for page in ran.root.rglob("*.html"))


def test_the_same_run_id_returns_the_same_release(privrisk: Privrisk, small: Path) -> None:
    first = privrisk(str(small), "--run-id", "one")
    before = {p: p.stat().st_mtime_ns for p in first.data.iterdir()}
    again = privrisk(str(small), "--run-id", "one")
    assert again.code == 0
    assert "Already released, nothing done" in again.out
    assert {p: p.stat().st_mtime_ns for p in again.data.iterdir()} == before
    two = (str(small), "--run-id", "two", "--set=decision.utility_at_least=2")
    other = privrisk(*two)
    assert other.manifest["sequence"] == 2
    assert (other.root / "out" / "releases" / "one" / "manifest.json").exists()
    # A crash between the two manifests is mended by running the id again.
    (other.root / "out" / "manifest.json").write_text(json.dumps({**first.manifest, "sequence": 1}))
    privrisk(*two)
    assert other.manifest["run_id"] == "two"
    # Running an old id again does not make it the current release.
    privrisk(str(small), "--run-id", "one")
    assert other.manifest["run_id"] == "two"


def test_a_run_id_is_one_request(privrisk: Privrisk, small: Path, tmp_path: Path) -> None:
    """Another policy, hierarchy file or table under an old run id is not told that it is released already."""
    places = tmp_path / "places.csv"
    places.write_text("Bonn;north;*\nKiel;north;*\nUlm;south;*\n")
    small.write_text(
        re.sub(r"  city: .*", f"  city: {{role: quasi-identifier, hierarchy: {{file: {places}}}}}", small.read_text())
    )
    one = (str(small), "--run-id", "one")
    first = privrisk(*one)
    assert first.code == 0, first.err
    recorded = json.loads((first.root / "vault" / "requests" / "one.json").read_text())["asked"]
    assert not set(recorded) & {"date", "output"}

    published = first.status
    assert (published["phase"], published["code"]) == ("published", 0)

    def refused(*more: str) -> str:
        ran = privrisk(*one, *more)
        assert ran.code == 1
        assert ran.status == published, "the release that is published stays, and so does its status"
        return ran.err

    assert "with another content of: decision. Use a new run id" in refused("--set=decision.utility_at_least=2")
    kept = places.read_text()
    places.write_text(kept.replace("Ulm;south", "Ulm;SOUTH"))
    assert "of: contents of columns.city.hierarchy.file." in refused()
    places.write_text(kept)
    mask = ["mask", *one, f"--set=output.path={first.root}/out", f"--set=output.vault={first.root}/vault"]
    assert CliRunner().invoke(app, mask).exit_code == 2, "the policy is not of that kind"
    assert first.status == published
    told = json.loads(refused("--set=decision.utility_at_least=2", "--log-format=json").splitlines()[-1])
    assert told["what_to_do"].startswith("The release that is published stays as it is")
    ended = tmp_path / "ended.json"
    refused("--set=decision.utility_at_least=2", f"--status-file={ended}")
    assert json.loads(ended.read_text())["code"] == 1, "a scheduler is told how the attempt ended"
    table = tmp_path / "table.csv"
    rows = table.read_text()
    table.write_text(rows + rows.splitlines()[-1] + "\n")
    assert "of: files of table." in refused()
    table.write_text(rows)
    assert "Already released" in privrisk(*one).out
    # A vault that is another one knows nothing: the manifest knows the policy as a whole.
    (first.root / "vault" / "requests" / "one.json").unlink()
    assert "Already released" in privrisk(*one).out
    assert "of: the policy, or a place it names" in refused("--set=decision.utility_at_least=2")


def test_what_the_environment_gave_is_not_taken_for_the_same_where_nobody_knows(
    privrisk: Privrisk, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The manifest's digest does not tell it, so that nobody can guess it; the vault of the release does."""
    monkeypatch.setenv("FLOOR", "1")
    one = (str(small), "--run-id", "one", "--set=decision.utility_at_least=${FLOOR}")
    first = privrisk(*one)
    assert first.code == 0, first.err
    assert "Already released" in privrisk(*one).out
    monkeypatch.setenv("FLOOR", "2")
    refused = privrisk(*one)
    assert refused.code == 1
    assert "with another content of: decision" in refused.err
    (first.root / "vault" / "requests" / "one.json").unlink()
    refused = privrisk(*one)
    assert refused.code == 1
    assert "does not tell what the environment gave for: decision.utility_at_least" in refused.err


STAGES = (
    "written.conclude",
    "written.parquet_files",
    "written.name_files",
    "published.render",
    "written.contracts.validate",
)


def test_a_crash_leaves_the_old_release(privrisk: Privrisk, small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = privrisk(str(small), "--run-id", "old")
    data = digests(old.data)
    new = (str(small), "--run-id", "new", "--set=decision.utility_at_least=2")

    def crash(*_: object, **__: object) -> None:
        raise EngineError("planted")

    for stage in STAGES:
        with monkeypatch.context() as patch:
            patch.setattr(f"privrisk_spark.pipelines.release.{stage}", crash)
            broken = privrisk(*new)
        assert broken.code == 3, stage
        assert "planted" in broken.err
        assert broken.status["code"] == 3
        assert broken.manifest["run_id"] == "old"
        assert digests(old.data) == data
        assert [p.name for p in (broken.root / "out" / "releases").iterdir()] == ["old"]
    mended = privrisk(*new)
    assert mended.code == 0
    assert mended.manifest["run_id"] == "new"


def test_a_failed_check_forbids_publication(privrisk: Privrisk, small: Path) -> None:
    ran = privrisk(str(small), "--set=checks.min_class_size=50")
    assert ran.code == 1
    assert "Not published" in ran.err
    assert "at least 50 rows" in ran.err
    assert not (ran.root / "out" / "manifest.json").exists()
    assert not list((ran.root / "out").glob("releases/*"))
    checks = json.loads((ran.root / "vault" / "checks.json").read_text())
    assert [c["name"] for c in checks if not c["passed"]] == ["smallest class"]
    assert ran.status["code"] == 1
    for option in ("row_count.at_least=61", "row_count.at_most=59"):
        refused = privrisk(str(small), f"--set=checks.{option}")
        assert refused.code == 1, option
    # Of several that fail, each is named.
    risks = ("--set=checks.max_mean_risk=0", "--set=checks.max_risk=0.01")
    several = privrisk(str(small), "--set=checks.forbid_verbatim=true", "--set=decision.utility_at_least=7", *risks)
    assert several.code == 1
    checks = json.loads((ran.root / "vault" / "checks.json").read_text())
    assert [c["name"] for c in checks if not c["passed"]] == ["mean risk", "largest risk", "verbatim records"]
    for name in ("mean risk", "largest risk", "verbatim"):
        assert name in several.err
    assert not (ran.root / "out" / "manifest.json").exists()


def test_dry_run_touches_nothing(privrisk: Privrisk, small: Path) -> None:
    before = sorted(small.parent.iterdir())
    ran = privrisk(str(small), "--dry-run")
    assert ran.code == 0
    assert "lattice: up to 30 nodes" in ran.out
    assert "counting plan of the table itself: dense" in ran.out
    assert sorted(small.parent.iterdir()) == before
    # It finds what a run would refuse, and leaves the status of the last run alone.
    refused = privrisk(str(small), "--set=decision.utility_at_least=9")
    status = refused.status
    assert (refused.code, "Got 9" in status["message"]) == (2, True)
    dry = privrisk(str(small), "--dry-run", "--set=decision.utility_at_least=8")
    assert (dry.code, "Got 8" in dry.err) == (2, True)
    assert dry.status == status


def test_dry_run_reads_the_leaves_it_needs_and_says_what_is_not_known(privrisk: Privrisk, small: Path) -> None:
    small.write_text(small.read_text().replace(", domain: [0, 99]", ""))
    ran = privrisk(str(small), "--dry-run")
    assert ran.code == 0, ran.err
    assert "age: 30 leaves, 5 levels" in ran.out
    assert "lattice: up to 30 nodes" in ran.out
    assert "dense: at most 60 rows" in ran.out
    assert "not known before the run: whether each record can be disclosed as asked" in ran.out
    # It finds what a run would refuse.
    assert "must be at most 7" in privrisk(str(small), "--dry-run", "--set=decision.utility_at_least=8").err
    (small.parent / "table.csv").write_text("id;age;sex;city;diagnosis\n")
    assert "table: it has no rows" in privrisk(str(small), "--dry-run").err


@pytest.mark.thorough("tests/pipelines/release/test_dictionaries.py::test_every_plan_makes_the_same_release")
def test_plans_and_methods_agree(privrisk: Privrisk, small: Path, tmp_path: Path) -> None:
    base = privrisk(str(small))
    expected = pd.read_parquet(base.root / "vault" / "decisions").sort_values("id").drop(columns="method")
    for plan, method in (("dense", "aruba"), ("sorted", "exact")):
        root = tmp_path / plan
        root.mkdir()
        asked = (f"--set=counting.plan={plan}", f"--set=decision.method={method}", "--explain")
        ran = privrisk(str(small), *asked, root=root)
        assert ran.code == 0, ran.err
        assert f"counting plan of the table itself: {plan} (forced by counting.plan" in ran.out
        found = pd.read_parquet(root / "vault" / "decisions").sort_values("id").drop(columns="method")
        pd.testing.assert_frame_equal(found.reset_index(drop=True), expected.reset_index(drop=True))
        assert ran.summary["plan"] == plan


def one_line(ran: Ran, *parts: str) -> None:
    assert ran.code == 2, ran.err
    message = [line for line in ran.err.splitlines() if line.startswith("privrisk: ")]
    assert len(message) == 1, ran.err
    for part in parts:
        assert part in message[0], message[0]


def test_errors_a_newcomer_makes(privrisk: Privrisk, small: Path, tmp_path: Path) -> None:
    policy = small.read_text()

    def with_policy(old: str, new: str) -> Ran:
        assert old in policy
        changed = tmp_path / "changed.yaml"
        changed.write_text(policy.replace(old, new))
        return privrisk(str(changed))

    one_line(
        with_policy("  sex:", "  sexe:"),
        "columns.sexe: the table has no such column (did you mean 'sex'?)",
        "'sex' has no role",
    )
    one_line(with_policy("  diagnosis: {role: sensitive}\n", ""), "the table's column 'diagnosis' has no role")
    one_line(
        with_policy("utility_at_least: 3", "utility_atleast: 3"),
        "decision.utility_atleast",
        "did you mean 'utility_at_least'?",
    )
    one_line(with_policy("utility_at_least: 3", "utility_at_least: 8"), "must be at most 7", "Got 8")
    one_line(
        with_policy("north: [Bonn, Kiel]", "north: [Bonn]"),
        "columns.city.hierarchy: 1 value(s) in 20 row(s) are not in the hierarchy",
    )
    one_line(
        with_policy("domain: [0, 99]", "domain: [0, 30]"), "columns.age.hierarchy", "in 38 row(s)",
        "Widen domain, or set a unit below 1 if values are between its steps, such as unit: 0.5", "unknown: suppress",
    )  # fmt: skip
    one_line(privrisk(str(tmp_path / "nowhere.yaml")), "there is no policy file")
    one_line(privrisk(), "name a policy file")
    one_line(
        privrisk(str(small), "--set=decision.method=minrisk"),
        "must be 'auto', 'exact'",
        "problem 'disclose-per-record'",
    )
    one_line(privrisk(str(small), "--set=output.format=delta"), "'delta' is not available in this version")
    one_line(privrisk(str(small), "--set=dictionary.kind=bayes"), "dictionary.members: is required")
    one_line(
        privrisk(str(small), "--set=guarantee.kind=magic"),
        "must be 'risk', 'k-anonymity', 'masked', 'dp' or 'as-published'",
    )
    one_line(privrisk(str(small), f"--set=table.path={tmp_path / 'absent'}"), "table.path", "there is nothing there")
    one_line(privrisk(str(small), "--run-id", "../escape"), "--run-id")
    empty = tmp_path / "empty.csv"
    empty.write_text("id;age;sex;city;diagnosis\n")
    one_line(privrisk(str(small), f"--set=table.path={empty}"), "table: it has no rows")


def test_output_onto_the_input_is_refused(privrisk: Privrisk, small: Path, tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from privrisk_spark.cli.app import app

    table = tmp_path / "table.csv"
    result = CliRunner().invoke(app, ["release", str(small), f"--set=output.path={table}"])
    assert result.exit_code == 2
    assert "output.path: must be neither table.path nor inside nor around it" in result.stderr
    assert table.is_file()


def test_unknown_values_are_set_aside_in_the_vault(privrisk: Privrisk, small: Path, tmp_path: Path) -> None:
    changed = tmp_path / "changed.yaml"
    changed.write_text(small.read_text().replace("north: [Bonn, Kiel]", "north: [Bonn]"))
    ran = privrisk(str(changed))
    assert "Kiel" not in ran.err + ran.out
    listed = "".join(p.read_text() for p in (ran.root / "vault" / "unknown_values").glob("*.csv"))
    assert listed.split() == ["value,count", "Kiel,20"]
    suppressed = privrisk(str(changed), "--set=columns.city.unknown=suppress", "--set=decision.utility_at_least=2")
    assert suppressed.code == 0, suppressed.err
    assert "*" in set(pq.read_table(suppressed.data).to_pandas()["city"])


def test_ids_must_be_unique_and_there(privrisk: Privrisk, small: Path, tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    text = table.read_text()
    table.write_text(text.replace("p59;", "p58;"))
    ran = privrisk(str(small))
    assert ran.code == 2
    assert "no two records share an id (duplicate record ids: 1)" in ran.err
    table.write_text(text.replace("p59;", ";"))
    ran = privrisk(str(small))
    assert ran.code == 2
    assert "every record has an id (null record ids: 1)" in ran.err


def test_nulls_and_an_infeasible_record(privrisk: Privrisk, small: Path, tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text(table.read_text().replace("p0;20;F;Ulm;a", "p0;;;;a"))
    ran = privrisk(str(small))
    assert ran.code == 2
    assert "1 of 60 records cannot reach 3 even unchanged" in ran.err
    assert "all can reach 0" in ran.err
    assert ": encode" in ran.err
    assert ": count" not in ran.err, "it is told before anything is counted"
    ran = privrisk(str(small), "--set=decision.infeasible=suppress")
    assert ran.code == 0, ran.err
    release = pq.read_table(ran.data).to_pandas()
    assert (release[["age", "sex", "city"]] == "*").all(axis=1).sum() == 1
    ran = privrisk(str(small), "--set=columns.sex.nulls=forbid")
    assert ran.code == 2
    assert "columns.sex.nulls: missing values are forbidden and 1 rows have one" in ran.err
    own = [f"--set=columns.{name}.nulls=own-value" for name in ("age", "sex", "city")]
    ran = privrisk(str(small), *own, "--run-id", "own", "--set=decision.utility_at_least=2")
    assert ran.code == 0, ran.err


@pytest.mark.thorough("tests/tables/test_coverage.py")
def test_a_dictionary_that_is_not_mapped_is_an_error(privrisk: Privrisk, small: Path, tmp_path: Path) -> None:
    (tmp_path / "register.csv").write_text("years,town\n21,Ulm\n22,Bonn\n")
    given = f"kind: table, path: {tmp_path}/register.csv, format: csv, options: {{header: true}}"
    missing = privrisk(str(small), f"--set=dictionary={{{given}, columns: {{age: year}}}}", "--dry-run")
    assert missing.code == 2
    assert "dictionary.columns.age: the dictionary has no column 'year' (did you mean 'years'?)" in missing.err
    unmapped = privrisk(str(small), f"--set=dictionary={{{given}, columns: {{city: years}}}}")
    assert unmapped.code == 2
    assert "dictionary.columns.city: none of the dictionary's values is in the hierarchy" in unmapped.err
    mapped = privrisk(str(small), f"--set=dictionary={{{given}, columns: {{age: years, city: town}}}}")
    assert mapped.code == 0, mapped.err
    report = (mapped.data.parent / "report.html").read_text()
    assert "dictionary_rows" not in report, "exact counts stay in the vault"


def test_a_ledger_among_what_is_published_is_refused(privrisk: Privrisk, small: Path, tmp_path: Path) -> None:
    cap = "cap: {epsilon: 1, delta: 1e-9}"
    ran = privrisk(str(small), f"--set=ledger={{url: 'sqlite:///{tmp_path}/out/ledger.db', lineage: l, {cap}}}")
    assert ran.code == 2
    assert "ledger.url: must not lie inside output.path, which is published" in ran.err
    assert not (tmp_path / "out").exists()


def test_names_with_dots_and_backticks_and_structs(privrisk: Privrisk, tmp_path: Path) -> None:
    """A hospital's Parquet file, released as a whole; columns that Spark would take for paths, one of them dropped."""
    n = 40
    visit = pa.array([{"ward": f"w{i % 3}", "bed.no": i} for i in range(n)])
    content = {
        "i.d": [f"p{i}" for i in range(n)], "age.x": [20 + i % 10 for i in range(n)],
        "post`code": [f"{i % 4}" for i in range(n)], "visit": visit, "a.b": [f"{i % 2}" for i in range(n)],
        "a": pa.array([{"b": "inside"}] * n),
    }  # fmt: skip
    pq.write_table(pa.table(content), tmp_path / "t.parquet")
    document = {
        "version": 1,
        "run": {"name": "hospital"},
        "table": {"path": str(tmp_path / "t.parquet"), "record_id": "i.d"},
        "columns": {
            "i.d": {"role": "identifier"},
            "age.x": {"role": "quasi-identifier", "hierarchy": {"intervals": {"widths": [5], "domain": [0, 99]}}},
            "post`code": {"role": "quasi-identifier", "hierarchy": {"flat": {"values": ["0", "1", "2", "3"]}}},
            "visit": {"role": "insensitive", "action": "drop"},
            "a.b": {"role": "sensitive"},
            "a": {"role": "insensitive", "action": "drop"},
        },
        "decision": {"problem": "min-risk", "utility_at_least": 2},
        "output": {"path": str(tmp_path / "out"), "vault": str(tmp_path / "vault")},
    }
    policy = tmp_path / "policy.yaml"
    policy.write_text(yaml.safe_dump(document, sort_keys=False))
    ran = privrisk(str(policy), "--run-id", "r1")
    assert ran.code == 0, ran.err
    released = pq.read_table(ran.data)
    assert released.column_names == ["age.x", "post`code", "a.b"]
    assert sorted(released.column("a.b").to_pylist()) == sorted(content["a.b"])
    assert "every rule holds" in (tmp_path / "vault" / "contracts" / "release.html").read_text()


def test_csv_output_and_json_log(privrisk: Privrisk, small: Path) -> None:
    ran = privrisk(str(small), "--set=output.format=csv", "--log-format", "json")
    assert ran.code == 0, ran.err
    (part,) = ran.data.iterdir()
    assert part.name == "part-00000.csv"
    assert part.read_text().splitlines()[0] == "age,sex,city,diagnosis"
    lines = [json.loads(line) for line in ran.err.splitlines() if line.startswith("{")]
    assert {line["run_id"] for line in lines} == {ran.manifest["run_id"]}
    assert re.fullmatch(r"small-\d{4}-\d\d-\d\d-[0-9a-f]{8}", ran.manifest["run_id"])


def test_rights_are_those_of_their_kind_whatever_the_umask(privrisk: Privrisk, small: Path, tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    vault.chmod(0o755)
    usual = os.umask(0o077)
    try:
        ran = privrisk(str(small), "--run-id", "one")
    finally:
        os.umask(usual)
    assert ran.code == 0, ran.err

    def rights(root: Path) -> set[tuple[bool, int]]:
        return {(path.is_dir(), stat.S_IMODE(path.stat().st_mode)) for path in (root, *root.rglob("*"))}

    assert rights(ran.root / "out") == {(True, 0o755), (False, 0o644)}
    assert rights(ran.root / "vault") == {(True, 0o700), (False, 0o600)}


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_what_is_not_validated_yet_nobody_reads(
    privrisk: Privrisk, small: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    """In the middle of the run: from the public place to each file there is a directory that only its owner enters."""
    seen = []

    def look(run: Any, *_: object, **__: object) -> None:
        root = run.place.output.root
        files = [path for path in root.rglob("*") if path.is_file()]
        files = [path for path in files if path.name not in (".lock", MARKER)]
        seen.extend(path.name for path in files)
        for path in files:
            above = [parent for parent in path.parents if root in parent.parents]
            modes = [stat.S_IMODE(parent.stat().st_mode) for parent in above] or [stat.S_IMODE(path.stat().st_mode)]
            assert any(not mode & 0o077 for mode in modes), path
        raise EngineError("planted")

    monkeypatch.setattr("privrisk_spark.pipelines.release.written.name_files", lambda *_: look(*held))
    held: list[Any] = []
    from privrisk_spark.pipelines.release import by_risk, written

    def write(run: Any, *rest: Any, **named: Any) -> Any:
        held.append(run)
        return written.write_release(run, *rest, **named)

    monkeypatch.setattr(by_risk, "write_release", write)
    assert privrisk(str(small), "--run-id", "one", f"--set=output.format={form}").code == 3
    assert any(name.startswith("part-") for name in seen)


def test_a_lock_that_is_a_link_is_refused_and_its_target_stays(privrisk: Privrisk, small: Path, tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("kept")
    claim(Location("file", "", str(tmp_path / "out")), "output.path", "releases", public=True)
    (tmp_path / "out" / ".lock").symlink_to(target)
    ran = privrisk(str(small), "--run-id", "one")
    assert ran.code == 2
    assert "output.path: must not hold a link named '.lock'; remove it" in ran.err
    assert target.read_text() == "kept"


def as_it_was(path: Path) -> tuple[int, int]:
    """Rights and time of change; that it was read does not count."""
    info = path.stat()
    return info.st_mode, info.st_mtime_ns


@pytest.mark.parametrize(("place", "key"), [("out", "output.path"), ("vault", "output.vault")])
@pytest.mark.parametrize(
    "written", ["file:{}/table.csv", "file://{}/table.csv", "{}/*.csv", "{}/../link", "{}/../other"]
)
def test_a_run_never_writes_onto_its_input_however_it_is_named(
    privrisk: Privrisk, small: Path, tmp_path: Path, written: str, place: str, key: str
) -> None:
    directory = tmp_path / place
    directory.mkdir()
    (tmp_path / "table.csv").rename(directory / "table.csv")
    (tmp_path / "link").symlink_to(directory)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "table.csv").symlink_to(directory / "table.csv")
    before = {path: as_it_was(path) for path in (directory, directory / "table.csv")}
    ran = privrisk(str(small), "--run-id", "one", f"--set=table.path={written.format(directory)}")
    assert ran.code == 2
    assert f"{key}: must be neither table.path nor inside nor around it" in ran.err
    assert {path: as_it_was(path) for path in before} == before


def test_a_table_of_the_catalog_is_not_written_onto(
    privrisk: Privrisk, small: Path, tmp_path: Path, spark: SparkSession
) -> None:
    table = spark.read.csv(str(tmp_path / "table.csv"), header=True, sep=";")
    table.write.option("path", str(tmp_path / "vault")).saveAsTable("onto_input")
    try:
        text = small.read_text()
        small.write_text(re.sub(r"^table: .*", "table: {catalog: onto_input, record_id: id}", text, flags=re.MULTILINE))
        before = as_it_was(tmp_path / "vault")
        ran = privrisk(str(small), "--run-id", "one")
        assert ran.code == 2
        assert "output.vault: must be neither the files of table nor inside nor around it" in ran.err
        assert as_it_was(tmp_path / "vault") == before
    finally:
        spark.sql("drop table onto_input")
