"""Curves of risk over the attacker's dictionary end to end: figures, files, refusals, and nothing that leaks."""

from __future__ import annotations

import csv
import json
import math
import re
import shutil
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from product import Privrisk, release
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from typer.testing import CliRunner

from privrisk_spark.cli.app import app
from privrisk_spark.errors import EngineError
from privrisk_spark.kernels.disclosure.estimated import nested_counts
from privrisk_spark.kernels.search.dictionary_curves import dictionary_curves
from privrisk_spark.pipelines import curves as job
from privrisk_spark.planning.dictionaries import axes, map_dictionary
from privrisk_spark.planning.disclosure import disclosure_of
from privrisk_spark.policy.reading import load
from privrisk_spark.tables.opening import hierarchies_from_policy

TABLE = 80
REGISTER = 300
PLANTED = "zQxCanary"


@dataclass(frozen=True)
class Drawn:
    """How a run of ``privrisk curves`` ended."""

    code: int
    out: str
    err: str
    directory: Path

    @property
    def document(self) -> dict[str, Any]:
        return dict(json.loads((self.directory / "curves.json").read_text()))

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        return {name: np.array(values, dtype=float) for name, values in self.document["arrays"].items()}


Curves = Callable[..., Drawn]


@pytest.fixture
def curves(privrisk: Privrisk, tmp_path: Path) -> Curves:
    """``curves(*arguments, output=…)`` in the session of ``privrisk``."""

    def run(*arguments: str, output: Path = tmp_path / "curves") -> Drawn:
        result = CliRunner().invoke(app, ["curves", *arguments, f"--output={output}"])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Drawn(result.exit_code, result.stdout, result.stderr, output)

    return run


def age(i: int) -> int:
    return (7 * i + i * i // 5) % 60


def city(i: int) -> str:
    return ["Ulm", "Bonn", "Kiel", "Ulm", "Ulm"][(i * i) % 7]


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    """A table whose people are the first of a register that knows age and city but not sex."""
    rows = ["id;age;sex;city"] + [f"p{i};{age(i)};{'FM'[i % 2]};{city(i)}" for i in range(TABLE)]
    (tmp_path / "table.csv").write_text("\n".join(rows) + "\n")
    known = ["who;years;town;people"] + [f"p{i};{age(i)};{city(i)};{1 + i % 3}" for i in range(REGISTER)]
    (tmp_path / "register.csv").write_text("\n".join(known) + "\n")
    path = tmp_path / "policy.yaml"
    path.write_text(f"""
version: 1
run: {{name: small}}
table: {{path: {tmp_path}/table.csv, format: csv, options: {{sep: ";", header: true}}, record_id: id}}
columns:
  id: {{role: identifier}}
  age: {{role: quasi-identifier, hierarchy: {{intervals: {{widths: [5, 20], domain: [0, 59]}}}}}}
  sex: {{role: quasi-identifier, hierarchy: {{flat: {{values: [F, M]}}}}}}
  city: {{role: quasi-identifier, hierarchy: {{tree: {{"*": {{south: [Ulm], north: [Bonn, Kiel]}}}}}}}}
dictionary:
  kind: table
  path: {tmp_path}/register.csv
  format: csv
  options: {{sep: ";", header: true}}
  columns: {{age: years, city: town}}
risk: {{sensitivity: {{form: multiplicative, weights: {{age: 0.5, sex: 0.25, city: 0.75}}}}}}
decision: {{utility_at_least: 2}}
output: {{path: {tmp_path}/out, vault: {tmp_path}/vault}}
""")
    return path


def changed(policy: Path, **parts: Any) -> Path:
    """Copy of a policy with whole keys replaced."""
    document = yaml.safe_load(policy.read_text()) | parts
    target = policy.with_name("changed.yaml")
    target.write_text(yaml.safe_dump(document, sort_keys=False))
    return target


def external(policy: Path, **more: Any) -> dict[str, Any]:
    """The register as a part of another kind of dictionary."""
    given = yaml.safe_load(policy.read_text())["dictionary"]
    return {name: value for name, value in given.items() if name not in ("kind", "consistency")} | more


def test_the_figures_are_those_of_the_kernel(
    curves: Curves, privrisk: Privrisk, policy: Path, spark: SparkSession, tmp_path: Path
) -> None:
    ran = curves(str(policy), "--floors", "5,2,3.5", "--shares", "4", "--explain")
    assert ran.code == 0, ran.err
    assert "curves: 4 nested samples of the policy's dictionary" in ran.out
    found = ran.arrays

    # The same by pandas and the kernels; buckets are Spark's hash of the codes and the ordinal among equal rows.
    of_policy = load([policy])
    hierarchies = {name: h for name, h in hierarchies_from_policy(of_policy).items() if h is not None}
    (one,) = of_policy.dictionaries
    assert one.table is not None
    table = pd.read_csv(tmp_path / "table.csv", sep=";", dtype=str)
    codes = np.column_stack([table[name].map(h.code_of).to_numpy() for name, h in hierarchies.items()])
    distinct, times = np.unique(codes.astype(np.int32), axis=0, return_counts=True)
    assert len(distinct) < TABLE, "some records are equal"
    register = pd.read_csv(tmp_path / "register.csv", sep=";", dtype=str)
    mappings = map_dictionary(one.table, hierarchies)
    known = {
        f"t{i}": register[mapping.column].map(mapping.nodes)
        for i, mapping in enumerate(mappings.values())
        if mapping is not None
    }
    rows = pd.DataFrame(known).astype("int32")
    rows["ordinal"] = rows.groupby(["t0", "t2"]).cumcount() + 1
    drawn = spark.createDataFrame(rows).withColumn("bucket", F.pmod(F.xxhash64("t0", "t2", "ordinal"), F.lit(4)))
    counted = drawn.toPandas().groupby(["t0", "t2", "bucket"]).size().unstack("bucket", fill_value=0)
    vectors = np.array([(t0, 0, t2) for t0, t2 in counted.index], dtype=np.int32)
    of_axes = axes(of_policy, hierarchies)
    expected = dictionary_curves(
        disclosure_of(of_policy, hierarchies, of_axes),
        [2, 3.5, 5],
        nested_counts(of_axes, vectors, counted.to_numpy().astype(np.int64), plan="sorted"),
        distinct,
        times.astype(np.int64),
    )
    for name in ("floors", "dictionary_rows", "minimal", "true", "estimated", "infeasible", "absent"):
        np.testing.assert_allclose(found[name], getattr(expected, name), rtol=1e-12, err_msg=name)
    assert found["shares"].tolist() == [0.25, 0.5, 0.75, 1.0]
    assert found["dictionary_rows"][-1] == REGISTER
    assert found["absent"][0] > found["absent"][-1] == 0
    # Less risk the more the attacker knows, more the more utility is asked for; no true risk above its bound.
    assert (np.diff(found["minimal"], axis=0) <= 1e-12).all()
    assert (found["minimal"][0] - found["minimal"][-1] > 1e-3).all()
    assert (np.diff(found["minimal"], axis=1) >= 0).all()
    assert (found["true"] <= found["estimated"] * (1 + 1e-12)).all()
    assert (found["true"] >= found["minimal"] * (1 - 1e-12)).all()
    # Against the whole dictionary the least risk is that of a release.
    released = privrisk(str(policy), "--set=decision.utility_at_least=3.5")
    assert released.summary["risk_after"]["mean"] == pytest.approx(found["minimal"][-1, 1], rel=1e-12)


@pytest.mark.alone
def test_files_for_a_program_and_for_a_person(curves: Curves, policy: Path) -> None:
    ran = curves(str(policy), "--shares", "3", "--run-id", "one")
    assert ran.code == 0, ran.err
    assert {p.name for p in ran.directory.iterdir()} == {
        ".privrisk.json",
        "curves.json",
        "curves.csv",
        "curves.html",
        "status.json",
    }
    assert stat.S_IMODE(ran.directory.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in ran.directory.iterdir()} == {0o600}
    status = json.loads((ran.directory / "status.json").read_text())
    assert (status["phase"], status["code"], status["run_id"]) == ("written", 0, "one")
    document = ran.document
    assert document["status"] == "tested"
    assert document["records"] == document["evaluated_records"] == TABLE
    floors = document["arrays"]["floors"]
    assert floors == pytest.approx([1.2, 2.4, 3.6, 4.8, 6.0]), "5 floors up to the greatest utility, 3 + 1 + 2"
    for measure in document["measures"]:
        assert set(measure) == {"name", "value", "unit", "parameters", "status"}
    least = {
        (m["parameters"]["share"], m["parameters"]["utility_at_least"]): m["value"]
        for m in document["measures"]
        if m["name"] == "mean_least_risk"
    }
    lines = list(csv.DictReader((ran.directory / "curves.csv").read_text().splitlines()))
    assert len(lines) == len(least) == 15
    for line, risk in zip(lines, np.array(document["arrays"]["minimal"]).ravel(), strict=True):
        assert float(line["mean_least_risk"]) == risk
        assert least[float(line["share"]), float(line["utility_at_least"])] == risk
        assert line["status"] == "tested"
    page = (ran.directory / "curves.html").read_text()
    assert page.count("<svg") == page.count('role="img"') == 2
    for prefix, words in (("dictionary", "With utility at least 1.2: mean risk"), ("bound", "15 points, none below")):
        title = re.search(rf'<title id="{prefix}-title">([^<]+)', page)
        described = re.search(rf'<desc id="{prefix}-description">([^<]+)', page)
        assert title is not None
        assert described is not None
        assert words in described.group(1)
    assert "<script" not in page
    assert not re.search(r'(src|href)="(?!#)', page)
    assert "all 80 records" in page


def test_a_sample_of_the_records_is_said_to_be_one(
    curves: Curves, policy: Path, spark: SparkSession, tmp_path: Path
) -> None:
    ran = curves(str(policy), "--records", "20", "--shares", "2", "--floors", "3", "--run-id", "one")
    assert ran.code == 0, ran.err
    document = ran.document
    assert document["status"] == "tested"
    assert document["evaluated_distinct_records"] == 20 < document["distinct_records"]
    assert 20 <= document["evaluated_records"] < TABLE
    assert "Means over a sample: 20 of the" in document["basis"]
    assert "the means are theirs, not those of all records" in document["basis"]
    page = (ran.directory / "curves.html").read_text()
    assert "Each of them is decided exactly" in page
    assert "without a proof" not in page
    assert {measure["status"] for measure in document["measures"]} == {"tested"}
    # The sample is a function of the records, not of where they lie; and files of an earlier run are written again.
    before = {path.name: path.read_bytes() for path in ran.directory.glob("curves.*")}
    lines = (tmp_path / "table.csv").read_text().splitlines()
    (tmp_path / "table.csv").write_text("\n".join([lines[0], *lines[:0:-1]]) + "\n")
    usual = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "7")
    try:
        again = curves(str(policy), "--records", "20", "--shares", "2", "--floors", "3", "--run-id", "one")
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", usual)
    assert again.code == 0
    assert {path.name: path.read_bytes() for path in again.directory.glob("curves.*")} == before


def test_dictionary_ids_as_texts_of_numbers_match_numeric_ids(curves: Curves, policy: Path, tmp_path: Path) -> None:
    """The people of the table are in every sample of the true dictionary, and the bound compares them by their ids."""
    table = pd.read_csv(tmp_path / "table.csv", sep=";")
    table.assign(id=table["id"].str[1:].astype(int)).to_parquet(tmp_path / "table.parquet", index=False)
    register = pd.read_csv(tmp_path / "register.csv", sep=";")
    estimated = {"kind": "estimated", "estimate": {"kind": "self"}, "against": external(policy, id="who")}
    file = changed(policy, dictionary=estimated, table={"path": str(tmp_path / "table.parquet"), "record_id": "id"})
    found, bounds = [], []
    for form in ("{}", "{}.0"):
        ids = [form.format(name[1:]) for name in register["who"]]
        register.assign(who=ids).to_csv(tmp_path / "register.csv", sep=";", index=False)
        ran = curves(str(file), "--floors", "2,4", "--shares", "3", output=tmp_path / f"curves{len(found)}")
        assert ran.code == 0, ran.err
        found.append({name: array.tolist() for name, array in ran.arrays.items()})
        released = release(str(file), root=tmp_path / f"released{len(found)}")
        assert released.code == 0, released.err
        bounds.append(released.summary["bound"])
    assert found[0] == found[1]
    assert bounds[0] == bounds[1]


@pytest.mark.thorough(
    "test_the_figures_are_those_of_the_kernel; tests/pipelines/release/test_dictionaries.py has the kinds"
)
def test_dictionaries_of_every_kind(curves: Curves, policy: Path, tmp_path: Path) -> None:
    few = ("--shares", "3", "--floors", "2,4")
    plain = curves(str(policy), *few).arrays
    # Rows that stand for several people, and as many rows of one.
    people = external(policy, kind="table", weight="people")
    lines = (tmp_path / "register.csv").read_text().splitlines()
    repeated = [line for line in lines[1:] for _ in range(int(line.split(";")[3]))]
    (tmp_path / "long.csv").write_text("\n".join([lines[0], *repeated]) + "\n")
    weighted = curves(str(changed(policy, dictionary=people)), *few).arrays
    long = curves(str(changed(policy, dictionary={**people, "weight": None, "path": f"{tmp_path}/long.csv"})), *few)
    assert weighted["dictionary_rows"][-1] == long.arrays["dictionary_rows"][-1] == len(repeated)
    np.testing.assert_allclose(weighted["minimal"][-1], long.arrays["minimal"][-1], rtol=1e-12)
    assert (weighted["minimal"][-1] < plain["minimal"][-1]).all()

    own = curves(str(changed(policy, dictionary={"kind": "self", "consistency": "compatible"})), *few)
    of_itself = own.arrays["minimal"][-1]
    assert own.arrays["dictionary_rows"][-1] == TABLE
    assert own.document["dictionary"] == "the table itself"

    members = [{"kind": "self", "name": "us", "prior": 0.5}, external(policy, kind="table", name="them", prior=0.5)]
    one_of_two = curves(str(changed(policy, dictionary={"kind": "bayes", "members": members})), *few)
    assert one_of_two.document["dictionary"] == "the dictionary 'them'"
    np.testing.assert_array_equal(one_of_two.arrays["minimal"], plain["minimal"])
    assert "for certain" in " ".join(one_of_two.document["notes"])

    # The estimate is the table; its people are in every sample of the true dictionary, with the same values but no sex.
    estimated = {"kind": "estimated", "estimate": {"kind": "self"}, "against": external(policy, id="who")}
    bounded = curves(str(changed(policy, dictionary=estimated)), *few)
    assert bounded.code == 0, bounded.err
    found = bounded.arrays
    assert bounded.document["estimate"] == "the policy's estimate"
    assert found["dictionary_rows"][0] >= TABLE
    assert found["dictionary_rows"][-1] == REGISTER
    assert found["absent"].tolist() == [0, 0, 0]
    assert (found["true"] < found["estimated"]).all()
    np.testing.assert_allclose(found["minimal"][-1], plain["minimal"][-1], rtol=1e-12)
    # Decisions and bound are those of the table as its own dictionary.
    np.testing.assert_allclose(found["estimated"], of_itself, rtol=1e-12)


def refused(ran: Drawn, *parts: str) -> None:
    assert ran.code == 2, ran.err
    (message,) = [line for line in ran.err.splitlines() if line.startswith("privrisk: ")]
    for part in parts:
        assert part in message, message


DP = {
    "guarantee": {
        "kind": "dp",
        "epsilon": {"admit": 1, "keep": 1},
        "delta": 1e-6,
        "public_rows": 80,
        "schemes": [[1, 0, 1]],
        "objective": {"phi_min": 1},
    },
    "ledger": {"url": "sqlite://", "lineage": "small", "cap": {"epsilon": 4, "delta": 1e-5}},
}


def test_what_is_refused(curves: Curves, policy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    private = yaml.safe_load(policy.read_text()) | DP
    del private["decision"], private["dictionary"]
    dp = tmp_path / "dp.yaml"
    dp.write_text(yaml.safe_dump(private, sort_keys=False))
    refused(curves(str(dp)), "guarantee.kind: curves are exact figures")
    for place in (tmp_path / "out", tmp_path / "out" / "curves", tmp_path):
        refused(curves(str(policy), output=place), "--output: must be neither output.path nor inside nor around it")
    elsewhere = f"--set=output.path={tmp_path}/x/out"
    refused(curves(str(policy), elsewhere, output=tmp_path / "register.csv"), "neither dictionary.path nor inside")
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "letter.txt").write_text("mine")
    refused(curves(str(policy), output=kept), "--output: has other content")
    assert [path.name for path in kept.iterdir()] == ["letter.txt"]
    refused(curves(str(policy), "--floors", "1,x"), "--floors: must be up to 20 numbers", "Got '1,x'")
    refused(curves(str(policy), "--floors", "nan"), "--floors: must be up to 20 numbers")
    refused(curves(), "name a policy file")
    assert not (tmp_path / "curves").exists()
    above = curves(str(policy), "--floors", "2,6.5")
    refused(above, "floors: must be at most 6", "Got 6.5")
    assert json.loads((above.directory / "status.json").read_text())["code"] == 2
    assert sorted(path.name for path in above.directory.iterdir()) == [".privrisk.json", "status.json"]
    persons = external(policy, kind="table", entity_id="who")
    by_shuffle = changed(policy, dictionary=persons, counting={"plan": "shuffle"})
    refused(curves(str(by_shuffle)), "counting.plan: dictionary takes 'shuffle'")
    lacking = {"kind": "estimated", "estimate": {"kind": "self"}, "against": external(policy, id="whom")}
    refused(
        curves(str(changed(policy, dictionary=lacking))),
        "dictionary.against.id",
        "no column 'whom' (did you mean 'who'?)",
    )

    def crash(*_: object, **__: object) -> None:
        raise EngineError("planted")

    monkeypatch.setattr(job, "share_vectors", crash)
    broken = curves(str(policy))
    assert broken.code == 3
    assert json.loads((broken.directory / "status.json").read_text())["phase"] == "failed"
    assert sorted(path.name for path in broken.directory.iterdir()) == [".privrisk.json", "status.json"]


@pytest.mark.parametrize("decision", ["{problem: max-utility, risk_at_most: 1}", "{utility_at_least: 1, method: btda}"])
def test_curves_are_of_the_threshold_model_by_enumeration(curves: Curves, policy: Path, decision: str) -> None:
    refused = curves(str(policy), f"--set=decision={decision}", "--set=risk.sensitivity.form=linear")
    assert refused.code == 2
    assert "decision: curves are drawn of least risk over utility floors, by enumeration" in refused.err


def test_dry_run_touches_nothing(curves: Curves, policy: Path) -> None:
    before = sorted(policy.parent.iterdir())
    ran = curves(str(policy), "--dry-run")
    assert ran.code == 0, ran.err
    assert "utility at least 1.2, 2.4, 3.6, 4.8, 6" in ran.out
    assert sorted(policy.parent.iterdir()) == before


def test_nothing_leaks(curves: Curves, policy: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for name in ("table.csv", "register.csv"):
        content = (tmp_path / name).read_text()
        (tmp_path / name).write_text(content.replace("p7;", f"{PLANTED}Id;").replace("Kiel", f"{PLANTED}Town"))
    columns = yaml.safe_load(policy.read_text())["columns"]
    columns["city"]["hierarchy"] = {"flat": True}
    ran = curves(str(changed(policy, columns=columns)), "--shares", "2", "--explain", "--log-format", "json")
    assert ran.code == 0, ran.err
    captured = capfd.readouterr()
    assert PLANTED not in ran.out + ran.err + captured.out + captured.err
    assert not [path.name for path in ran.directory.iterdir() if PLANTED.encode() in path.read_bytes()]
    lines = [json.loads(line) for line in ran.err.splitlines() if line.startswith("{")]
    assert {line["stage"] for line in lines} == {"read", "encode", "count", "sample", "evaluate", "write"}
    # A value outside its hierarchy is counted, and listed where only the officer looks.
    shutil.rmtree(ran.directory)
    unknown = curves(str(policy))
    refused(unknown, "columns.city.hierarchy: 1 value(s) in", f"listed in {unknown.directory / 'unknown_values'}")
    captured = capfd.readouterr()
    assert PLANTED not in unknown.err + unknown.out + captured.out + captured.err
    listed = "".join(path.read_text() for path in (unknown.directory / "unknown_values").glob("*.csv"))
    assert f"{PLANTED}Town," in listed
    assert math.isfinite(curves(str(policy), "--set=columns.city.unknown=suppress").arrays["minimal"].max())
