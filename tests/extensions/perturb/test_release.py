"""A masked release from the command line: what is written, what is the same, what is refused, what is not told."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from canaries import plans
from deltalake import DeltaTable
from product import Ran, production_batches
from typer.testing import CliRunner

from benchmarks.s3_server import BUCKET
from privrisk_spark.cli.app import app
from privrisk_spark.storage.locations import Location
from privrisk_spark.storage.objects import ObjectStore

__all__ = ["plans"]

N = 400
KEY = "ab" * 32
AGGREGATED = {"method": "microaggregation", "k": 4}
COLUMNS: dict[str, Any] = {
    "who": {"role": "identifier"},
    "age": {"role": "quasi-identifier", "mask": AGGREGATED},
    "income": {"role": "quasi-identifier", "mask": AGGREGATED},
    "stay": {"role": "sensitive", "mask": {"method": "rank-swapping", "percent": 10}},
    "bill": {"role": "sensitive", "mask": {"method": "noise", "deviation": 10}},
    "ward": {"role": "insensitive"},
}


def rows() -> list[dict[str, Any]]:
    pick = random.Random(4)
    made: list[dict[str, Any]] = [
        {
            "who": f"canary-{i}",
            "age": None if i % 50 == 3 else pick.randint(18, 90),
            "income": None if i % 100 == 3 else 1000.25 + pick.randint(0, 9000),
            "stay": pick.randint(0, 40),
            "bill": pick.uniform(100, 900),
            "ward": pick.choice(["north", "south"]),
        }
        for i in range(N)
    ]
    made[17]["bill"] = 777777.125
    return made


def written(place: Path, table: list[dict[str, Any]], files: int) -> Path:
    """The rows in so many Parquet files."""
    place.mkdir()
    kinds = {"who": "string", "age": "int32", "income": "float64", "stay": "int64", "bill": "float64", "ward": "string"}
    schema = pa.schema(list(kinds.items()))
    size = -(-len(table) // files)
    for i in range(files):
        pq.write_table(pa.Table.from_pylist(table[i * size : (i + 1) * size], schema), place / f"{i}.parquet")
    return place


def policy(root: Path, table: Path, **more: Any) -> str:
    document = {
        "version": 1,
        "run": {"name": "masked"},
        "table": {"path": str(table), "record_id": "who"},
        "columns": COLUMNS,
        "guarantee": {"kind": "masked"},
        **more,
    }
    file = root / "policy.yaml"
    file.write_text(yaml.safe_dump(document, sort_keys=False))
    return str(file)


def mask(*arguments: str, root: Path, run_id: str = "r1") -> Ran:
    places = [f"--set=output.path={root / 'out'}", f"--set=output.vault={root / 'vault'}"]
    result = CliRunner().invoke(app, ["mask", *arguments, "--run-id", run_id, *places])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Ran(result.exit_code, result.stdout, result.stderr, root)


def bytes_of(root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((root / "out/releases/r1/data").rglob("*.parquet"))}


@pytest.fixture(scope="module", autouse=True)
def production(spark: Any) -> Iterator[None]:
    with production_batches(spark):
        yield


@pytest.fixture(scope="module")
def done(production: None, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    root = tmp_path_factory.mktemp("masked")
    file = policy(root, written(root / "table", rows(), 3), guarantee={"kind": "masked", "key": "env:MASKING_KEY"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MASKING_KEY", KEY)
        ran = mask(file, root=root)
    assert ran.code == 0, ran.err
    return ran


def test_values_are_masked_and_what_must_stay_stays(done: Ran) -> None:
    released, table = pq.read_table(done.data).to_pylist(), rows()
    assert list(released[0]) == ["age", "income", "stay", "bill", "ward"]
    assert pq.read_schema(next(done.data.iterdir())).types[:3] == [pa.int32(), pa.float64(), pa.int64()]
    assert len(released) == N
    assert Counter(row["stay"] for row in released) == Counter(row["stay"] for row in table)
    assert Counter(row["ward"] for row in released) == Counter(row["ward"] for row in table)
    for name, missing in (("age", 8), ("income", 4)):
        assert sum(row[name] is None for row in released) == missing
    incomes = [[row["income"] for row in of if row["income"] is not None] for of in (released, table)]
    assert sum(incomes[0]) == pytest.approx(sum(incomes[1]), rel=1e-12)
    assert not set(incomes[0]) & set(incomes[1])


def test_k_is_proved_on_the_files(done: Ran) -> None:
    sizes = Counter((row["age"], row["income"]) for row in pq.read_table(done.data).to_pylist())
    assert sizes.pop((None, None)) == 4, "what has no value tells nothing"
    assert min(sizes.values()) >= 4
    guarantee = done.manifest["guarantee"]
    assert (guarantee["kind"], guarantee["status"], guarantee["parameters"]["k"]) == ("masked", "proved", 4)
    assert guarantee["statement"].startswith("No guarantee: values are masked")
    assert "at least 4 rows are equal in all quasi-identifiers" in guarantee["statement"]
    assert "No guarantee: values are masked" in done.out
    (check,) = [one for one in done.manifest["checks"] if one["name"] == "smallest class with values"]
    assert check["passed"]
    assert check["observed"] == min(sizes.values())


def test_manifest_and_dictionary_say_what_may_be_known(done: Ran) -> None:
    said = {column["name"]: column["released"] for column in done.manifest["columns"]}
    assert said["age"] == {"method": "microaggregation", "k": 4, "algorithm": "mdav"}
    assert said["bill"] == {"method": "noise", "deviation": 10.0}
    assert said["ward"] == "as it is"
    assert "Not to be known is the key" in done.manifest["guarantee"]["parameters"]["known"]
    dictionary = json.loads((done.root / "out/releases/r1/dictionary.json").read_text())
    assert dictionary["columns"] == done.manifest["columns"]


def test_the_vault_has_the_table_before_and_after(done: Ran) -> None:
    found = done.summary["masking"]
    income = next(column for column in found["columns"] if column["name"] == "income")
    assert income["before"]["mean"] == pytest.approx(income["after"]["mean"], rel=1e-12)
    assert income["before"]["deviation"] > income["after"]["deviation"] > 0
    assert 0 < income["il1s"] < 1
    assert 0 < income["disclosed_by_rank"] <= 1
    assert found["numbers"] == ["age", "income", "stay", "bill"]
    owners = {row.pop("who"): row for row in pq.read_table(done.root / "vault/decisions").to_pylist()}
    assert set(owners) == {row["who"] for row in rows()}
    shown = Counter(tuple(row.values()) for row in owners.values())
    assert shown == Counter(tuple(row.values()) for row in pq.read_table(done.data).to_pylist())
    report = (done.root / "vault/report.html").read_text()
    assert "What masking did" in report
    assert "Correlation of age and income" in report


def test_nothing_of_the_table_or_the_key_is_told(done: Ran) -> None:
    published = [path for path in (done.root / "out").rglob("*") if path.is_file() and path.suffix != ".parquet"]
    assert len(published) >= 4
    for path in published:
        text = path.read_text()
        assert "canary" not in text, path
        assert "777777" not in text, path
    for text in (done.out, done.err, (done.root / "vault/summary.json").read_text()):
        assert "canary" not in text
        assert KEY not in text
    assert not any((done.root / "vault/keys").iterdir())
    assert 777777.125 not in {row["bill"] for row in pq.read_table(done.data).to_pylist()}


def test_the_same_key_and_table_make_the_same_bytes_in_any_files_and_order(
    done: Ran, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MASKING_KEY", KEY)
    table = random.Random(9).sample(rows(), N)
    file = policy(
        tmp_path, written(tmp_path / "table", table, 11), guarantee={"kind": "masked", "key": "env:MASKING_KEY"}
    )
    assert mask(file, root=tmp_path).code == 0
    assert bytes_of(tmp_path) == bytes_of(done.root)
    monkeypatch.setenv("MASKING_KEY", "cd" * 32)
    (tmp_path / "other").mkdir()
    assert mask(file, root=tmp_path / "other").code == 0
    assert bytes_of(tmp_path / "other") != bytes_of(done.root)


def test_tasks_that_share_no_disk_make_the_same_bytes(
    done: Ran, endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert endpoint
    monkeypatch.setenv("MASKING_KEY", KEY)
    store = ObjectStore(Location("s3", BUCKET, uuid4().hex), retry_seconds=5)
    file = policy(
        tmp_path,
        written(tmp_path / "table", rows(), 2),
        guarantee={"kind": "masked", "key": "env:MASKING_KEY"},
        run={"name": "masked", "scratch": f"{store.location}/scratch"},
    )
    ran = mask(file, root=tmp_path)
    assert ran.code == 0, ran.err
    assert bytes_of(tmp_path) == bytes_of(done.root)
    (check,) = [one for one in ran.manifest["checks"] if one["name"] == "smallest class with values"]
    assert check["observed"] >= 4
    assert not [entry.name for entry in store.entries()], "scratch is gone"


def test_a_run_id_stands_for_one_release(done: Ran, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASKING_KEY", KEY)
    before, file = bytes_of(done.root), str(done.root / "policy.yaml")
    again = mask(file, root=done.root)
    assert again.code == 0
    assert "Already released" in again.out
    other = mask(file, "--set=columns.bill.mask.deviation=11", root=done.root)
    assert other.code == 1
    assert "asked for with another content of: columns" in other.err
    assert bytes_of(done.root) == before


@pytest.mark.thorough("tests/pipelines/release/test_interruptions.py, of a private release")
def test_a_key_that_is_drawn_is_destroyed(spark: Any, tmp_path: Path) -> None:
    file = policy(tmp_path, written(tmp_path / "table", rows()[:60], 1), checks={"min_class_size": 40})
    refused = mask(file, root=tmp_path)
    assert refused.code == 1
    assert "smallest class" in refused.err
    (key,) = (tmp_path / "vault/keys").glob("*.key")
    kept = key.read_bytes()
    assert not (tmp_path / "out/manifest.json").exists()
    again = mask(file, "--set=checks.min_class_size=1", root=tmp_path)
    assert again.code == 0, again.err
    assert not key.exists()
    assert kept.hex() not in (tmp_path / "out/manifest.json").read_text()


@pytest.mark.thorough("tests/pipelines/release/test_lake_output.py, of releases by risk")
def test_masked_values_are_committed_to_a_lake_table(tmp_path: Path) -> None:
    table, lake = written(tmp_path / "table", rows()[:60], 1), tmp_path / "lake"
    asked = {"path": "o", "vault": "v", "lake": {"format": "delta", "path": str(lake)}}
    file = policy(tmp_path, table, output=asked)
    for run_id in ("r1", "r2"):
        ran = mask(file, root=tmp_path, run_id=run_id)
        assert ran.code == 0, ran.err
    assert DeltaTable(lake).to_pyarrow_table().num_rows == 60
    assert DeltaTable(lake).version() == 1


def test_no_plan_of_spark_holds_a_value_or_the_key(
    tmp_path: Path, plans: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MASKING_KEY", KEY)
    asked = {"kind": "masked", "key": "env:MASKING_KEY"}
    ran = mask(policy(tmp_path, written(tmp_path / "table", rows()[:60], 2), guarantee=asked), root=tmp_path)
    assert ran.code == 0, ran.err
    assert len(plans) > 8
    for plan in plans:
        assert "canary" not in plan
        assert "777777" not in plan
        assert KEY not in plan


@pytest.mark.thorough("tests/pipelines/release/test_partitioned.py, of releases by risk")
def test_csv_and_directories(spark: Any, tmp_path: Path) -> None:
    table = written(tmp_path / "table", rows()[:60], 1)
    asked_for: list[dict[str, Any]] = [{"format": "csv"}, {"partition_by": ["ward"]}]
    for i, asked in enumerate(asked_for):
        root = tmp_path / str(i)
        root.mkdir()
        ran = mask(policy(root, table, output={"path": "o", "vault": "v", **asked}), root=root)
        assert ran.code == 0, ran.err
        places = [path.relative_to(ran.data).as_posix() for path in sorted(ran.data.rglob("part-*"))]
        whole, apart = ["part-00000.csv"], ["ward=north/part-00000.parquet", "ward=south/part-00000.parquet"]
        assert places == (whole if i == 0 else apart)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("columns.ward.mask={method: noise, share: 0.1}", "columns.ward.mask: 'noise' is for numbers and days"),
        ("guarantee={kind: risk}", "guarantee.kind"),
        ("columns.age.nulls=forbid", "columns.age: 2 rows have no value"),
        ("columns.ward.mask={method: pram, matrix: {north: {north: 1}}}", "columns.ward.mask.matrix: "),
    ],
)
def test_what_is_refused(tmp_path: Path, change: str, said: str) -> None:
    more: dict[str, Any] = {"decision": {"utility_at_least": 1}} if "risk" in change else {}
    file = policy(tmp_path, written(tmp_path / "table", rows()[:60], 1), **more)
    ran = mask(file, f"--set={change}", root=tmp_path)
    assert ran.code == 2
    assert said in ran.err
    assert "canary" not in ran.err
    assert not (tmp_path / "out/manifest.json").exists()


UNCHANGED: dict[str, dict[str, Any]] = {
    "swapping": {"method": "rank-swapping", "percent": 0.1},
    "noise": {"method": "noise", "deviation": 0.0001},
    "rounding": {"method": "rounding", "base": 1},
    "bounds": {"method": "top-bottom", "low": -1, "high": 1000},
    "pram": {"method": "pram", "invariant": {"keep": 1}},
    "groups": {"method": "microaggregation", "algorithm": "univariate", "k": 2},
}
"""Masks that leave pairs of equal whole numbers as they are, each for another reason."""


def unchanged(root: Path, masks: dict[str, Any], form: str, values: Any = None) -> Ran:
    """Mask columns of 40 whole numbers: by default each occurs twice, and two are missing."""
    root.mkdir()
    numbers = [None if i in (2, 3) else i // 2 for i in range(40)] if values is None else values
    columns = {name: pa.array(numbers, pa.int64()) for name in masks}
    columns |= {"who": pa.array([f"p{i}" for i in range(40)]), "float": pa.array([0.1 * i for i in range(40)])}
    pq.write_table(pa.table(columns), root / "t.parquet")
    roles = {name: {"role": "sensitive", "mask": mask} for name, mask in masks.items()}
    roles |= {"who": {"role": "identifier"}, "float": {"role": "quasi-identifier", "mask": AGGREGATED}}
    return mask(policy(root, root / "t.parquet", columns=roles), f"--set=output.format={form}", root=root)


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_masks_that_change_no_value_are_refused(spark: Any, tmp_path: Path, form: str) -> None:
    ran = unchanged(tmp_path / "run", UNCHANGED, form)
    assert ran.code == 1
    for name, asked in UNCHANGED.items():
        said = f"columns.{name}.mask (method '{asked['method']}') changes at least one value; choose stronger"
        assert said in ran.err
    assert "columns.float.mask (method" not in ran.err
    assert not (tmp_path / "run/out/releases/r1").exists()


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_masks_that_change_few_values_are_warned_of_and_the_share_is_published(
    spark: Any, tmp_path: Path, form: str
) -> None:
    """Missing values are no part of the share, and a column without values is not refused."""
    masks = {"bounds": {"method": "top-bottom", "high": 18}, "most": {"method": "top-bottom", "low": 10}}
    ran = unchanged(tmp_path / "run", masks, form, [None, None, *range(1, 39)])
    assert ran.code == 0, ran.err
    numbers = ran.manifest["guarantee"]["parameters"]["changed"]
    assert numbers == {"bounds": round(20 / 38, 4), "most": round(9 / 38, 4), "float": 1.0}
    assert "'bounds' 53 %, 'most' 24 %" in ran.manifest["guarantee"]["statement"]
    few = unchanged(tmp_path / "few", {"bounds": {"method": "top-bottom", "high": 37}}, form, [None, *range(39)])
    assert few.code == 0, few.err
    assert "columns.bounds.mask: changes 2.6 % of the values only" in few.err
    assert few.manifest["guarantee"]["parameters"]["changed"]["bounds"] == round(1 / 39, 4)
    report = (few.root / "out/releases/r1/report.html").read_text()
    assert "share of the values of bounds changed" in report
    nothing = unchanged(tmp_path / "nothing", {"bounds": {"method": "top-bottom", "high": 37}}, form, [None] * 40)
    assert nothing.code == 0, nothing.err
    assert "bounds" not in nothing.manifest["guarantee"]["parameters"]["changed"]


def test_a_plan_says_that_nothing_is_guaranteed(spark: Any, tmp_path: Path) -> None:
    ran = mask(policy(tmp_path, written(tmp_path / "table", rows()[:60], 1)), "--dry-run", root=tmp_path)
    assert ran.code == 0
    assert "guarantee: No guarantee" in ran.out
    assert "age, income: aggregated together" in ran.out
