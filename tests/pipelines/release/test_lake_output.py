"""Releases in a lake table: the published bytes in one version each, wherever a run was stopped."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import lakes
import pyarrow as pa
import pyarrow.parquet as pq
import pyiceberg.catalog
import pytest
import small_release
from deltalake import DeltaTable, write_deltalake
from policies import RISK
from product import Privrisk, Ran
from pyiceberg.utils.config import Config
from pyspark.sql import SparkSession

from benchmarks.s3_server import BUCKET
from privrisk_spark.errors import EngineError
from privrisk_spark.pipelines.release import lake_output
from privrisk_spark.policy.reading import parse
from privrisk_spark.runs.local_output import LocalOutput
from privrisk_spark.runs.sealing import release_digest, sealed
from privrisk_spark.runs.vaults import DirectoryVault
from privrisk_spark.runs.workplace import Workplace
from privrisk_spark.storage.lakes.delta_releases import DeltaReleases
from privrisk_spark.storage.lakes.iceberg_releases import IcebergReleases
from privrisk_spark.storage.lakes.opening import open_snapshot
from privrisk_spark.storage.lakes.release_table import ReleaseTable
from privrisk_spark.storage.lakes.snapshot import Asked, Form


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELEASE_KEY", small_release.KEY)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return small_release.write_table(tmp_path)


class Stopped(BaseException):
    """The driver is gone: nothing catches this."""


def lake(path: Path | str) -> tuple[str, Any]:
    return "output.lake", {"format": "delta", "path": str(path)}


@dataclass(frozen=True)
class Lake:
    """The table of a format that belongs to the output below a root."""

    form: Form
    root: Path

    def key(self, **more: str) -> tuple[str, Any]:
        place = {"path": str(self.root / "lake")} if self.form == "delta" else {"catalog": "tests.lake.table"}
        return "output.lake", {"format": self.form, **place, **more}

    @property
    def releases(self) -> type[ReleaseTable[Any, Any]]:
        return DeltaReleases if self.form == "delta" else IcebergReleases

    @property
    def place(self) -> Path:
        return self.root / "lake" / ("" if self.form == "delta" else "lake/table")

    def versions(self) -> int:
        if self.form == "delta":
            return len(versions(self.root))
        catalog = lakes.catalog(self.root / "lake")
        there = catalog.table_exists("lake.table")
        return len(catalog.load_table("lake.table").snapshots()) if there else 0

    def files(self) -> list[Path]:
        """Of the newest version, in the order of their names."""
        if self.form == "delta":
            return sorted(map(Path, DeltaTable(self.root / "lake").file_uris()))
        table = lakes.catalog(self.root / "lake").load_table("lake.table")
        return sorted(Path(task.file.file_path.removeprefix("file://")) for task in table.scan().plan_files())

    def digests(self) -> list[str]:
        return [hashlib.sha256(file.read_bytes()).hexdigest() for file in self.files()]

    def make(self, rows: pa.Table) -> None:
        """Write somebody's table."""
        if self.form == "delta":
            write_deltalake(self.root / "lake", rows)
        else:
            lakes.map_names(lakes.iceberg_snapshots(self.root / "lake", rows))

    def append(self, rows: pa.Table) -> None:
        """Add rows as another program does."""
        if self.form == "delta":
            write_deltalake(self.root / "lake", rows, mode="append")
        else:
            lakes.catalog(self.root / "lake").load_table("lake.table").append(rows)

    def empty(self) -> None:
        if self.form == "delta":
            DeltaTable(self.root / "lake").delete()
        else:
            lakes.catalog(self.root / "lake").load_table("lake.table").delete()


@pytest.fixture(params=["delta", "iceberg"])
def of(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    if request.param == "iceberg":
        lakes.configure(monkeypatch, tmp_path / "x" / "lake")
    return Lake(request.param, tmp_path / "x")


def released(
    privrisk: Privrisk, kind: str, table: Path, root: Path, *changes: tuple[str, Any], run_id: str = "r1", **more: Any
) -> Ran:
    keyed = [("guarantee.key", "env:RELEASE_KEY")] if kind == "dp" else []
    place = [] if any(key == "output.lake" for key, _ in changes) else [lake(root / "lake")]
    document = small_release.policy(kind, table, root, *keyed, *place, *changes)
    return privrisk(document, "--run-id", run_id, root=root, **more)


def versions(root: Path) -> list[str]:
    return sorted(path.name for path in (root / "lake" / "_delta_log").glob("*.json"))


def in_table(root: Path, version: int | None = None) -> list[str]:
    """SHA-256 of the files of a version, in the order of their names."""
    uris = sorted(DeltaTable(root / "lake", version=version).file_uris())
    return [hashlib.sha256(Path(uri).read_bytes()).hexdigest() for uri in uris]


def of_release(ran: Ran, run_id: str = "r1") -> list[str]:
    manifest = json.loads((ran.root / "out" / "releases" / run_id / "manifest.json").read_text())
    return [entry["sha256"] for entry in manifest["data"]["files"]]


@pytest.mark.parametrize("kind", small_release.KINDS)
def test_the_table_holds_the_published_bytes_and_one_version(
    privrisk: Privrisk, table: Path, tmp_path: Path, kind: str, of: Lake, undisturbed: Callable[..., Ran]
) -> None:
    ran = released(privrisk, kind, table, tmp_path / "x", ("output.files", 2), of.key())
    assert ran.code == 0, ran.err
    assert of.digests() == of_release(ran)
    again = released(privrisk, kind, table, tmp_path / "x", ("output.files", 2), of.key())
    assert (again.code, "Already released" in again.out) == (0, True), again.err
    assert of.versions() == 1
    # Without the key the release is the same, to the byte.
    without = undisturbed(kind, 2)
    assert small_release.digests(without.root) == small_release.digests(ran.root)
    assert without.manifest.keys() == ran.manifest.keys()
    public = [file.read_bytes() for file in (ran.root / "out").rglob("*") if file.is_file()]
    assert not any(str(ran.root / "lake").encode() in content for content in public)
    if kind == "dp":
        assert small_release.charged(ran.root) == small_release.CHARGED


def test_each_date_is_a_version_that_is_read_back(
    privrisk: Privrisk, spark: SparkSession, table: Path, tmp_path: Path
) -> None:
    first = released(privrisk, "risk", table, tmp_path / "x", ("run.date", "2026-11-21"), run_id="r1")
    with table.open("a") as more:
        more.write("20;Ulm\n" * 50)
    second = released(privrisk, "risk", table, tmp_path / "x", ("run.date", "2026-11-22"), run_id="r2")
    assert (first.code, second.code) == (0, 0), first.err + second.err
    for version, (run_id, rows) in enumerate([("r1", 4000), ("r2", 4050)]):
        of_version = DeltaTable(tmp_path / "x" / "lake", version=version)
        assert in_table(first.root, version) == of_release(first, run_id)
        frame = spark.read.schema("age string, city string").parquet(*of_version.file_uris())
        expected = pq.read_table(tmp_path / "x" / "out" / "releases" / run_id / "data")
        assert sorted(map(tuple, frame.collect())) == sorted(zip(*expected.to_pydict().values(), strict=True))
        assert expected.num_rows == rows == sum(pa.table(of_version.get_add_actions())["num_records"].to_pylist())
        (said,) = [one for one in DeltaTable(tmp_path / "x" / "lake").history() if one["version"] == version]
        assert said["privrisk.run_id"] == run_id


def test_an_iceberg_table_is_read_back_and_is_no_place_for_a_release_of_it(
    privrisk: Privrisk, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rows are those that were released, and its files may be read by their path as well."""
    lakes.configure(monkeypatch, tmp_path / "x" / "lake")
    key = Lake("iceberg", tmp_path / "x").key
    ran = released(privrisk, "risk", table, tmp_path / "x", key(date_column="day"))
    assert ran.code == 0, ran.err
    rows = pq.read_table(ran.root / "out" / "releases" / "r1" / "data").to_pylist()
    snapshot = open_snapshot(Asked("table", "iceberg", catalog="tests.lake.table"))
    held = lakes.read_naively(snapshot, ["age", "city"])
    assert {str(row.pop("day")) for row in held} == {ran.manifest["date"]}
    assert held == sorted(rows, key=lambda row: (row["age"], row["city"]))
    onto = released(
        privrisk, "risk", table, tmp_path / "z", key(), ("table", {"path": str(snapshot.root), "format": "parquet"})
    )
    assert onto.code == 2
    assert "output.lake.catalog: must be neither the files of table.path nor" in " ".join(onto.err.split())


@pytest.mark.parametrize("key", ["output.path", "output.vault"])
def test_a_table_whose_catalog_lays_it_into_another_place_is_refused(
    privrisk: Privrisk, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    """A policy does not tell where such a table lies."""
    place = tmp_path / "x" / {"output.path": "out", "output.vault": "vault"}[key]
    lakes.configure(monkeypatch, place)
    ran = released(privrisk, "risk", table, tmp_path / "x", Lake("iceberg", tmp_path / "x").key())
    assert ran.code == 2
    assert f"output.lake.catalog: must be neither {key} nor inside nor around it" in " ".join(ran.err.split())
    assert not (place / "lake").exists()
    assert privrisk(str(ran.root / "policy.yaml"), "--run-id", "r1", "--dry-run", root=ran.root).code == 2


def test_intermediate_results_do_not_lie_in_a_table_that_is_published(
    privrisk: Privrisk, table: Path, tmp_path: Path, endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A policy does not tell where the table of a catalog lies."""
    assert endpoint
    lakes.configure(monkeypatch, tmp_path / "x" / "lake")
    place = f"s3://{BUCKET}/{uuid4().hex}"
    monkeypatch.setenv("PYICEBERG_CATALOG__TESTS__WAREHOUSE", place)
    monkeypatch.setattr(pyiceberg.catalog, "_ENV_CONFIG", Config())
    scratch = ("run.scratch", f"{place}/lake/table/scratch")
    ran = released(privrisk, "risk", table, tmp_path / "x", Lake("iceberg", tmp_path / "x").key(), scratch)
    assert ran.code == 2, ran.err
    assert "output.lake.catalog: must be neither run.scratch nor inside nor around it" in " ".join(ran.err.split())


POINTS: dict[str, tuple[Any, str, bool]] = {
    "before the release is published": (Workplace, "commit", False),
    "after it is published": (Workplace, "commit", True),
    "before the table has its files": (None, "_uploaded", False),
    "after the table has its files": (None, "_uploaded", True),
    "before the commit to the table": (None, "_committed", False),
    "after the commit to the table": (None, "_committed", True),
}
"""In the order of a run."""


@pytest.mark.parametrize("kind", small_release.KINDS)
def test_a_stopped_run_leaves_nothing_in_the_table_or_its_release_and_is_brought_to_its_end(
    privrisk: Privrisk, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, of: Lake
) -> None:
    """Each attempt goes on with what the one before it left, and is stopped one step later."""
    committed: list[str] = []
    for point, (owner, name, afterwards) in POINTS.items():
        place = owner or of.releases
        original = getattr(place, name)

        def stopping(*arguments: Any, original: Any = original, afterwards: bool = afterwards, **options: Any) -> Any:
            if afterwards:
                original(*arguments, **options)
            raise Stopped

        with monkeypatch.context() as patch:
            patch.setattr(place, name, stopping)
            with pytest.raises(Stopped):
                released(privrisk, kind, table, tmp_path / "x", of.key())
        published = (tmp_path / "x" / "out" / "manifest.json").exists()
        assert published == (point != "before the release is published"), point
        there = point == "after the commit to the table"
        assert of.versions() == there, point
        committed = of.digests() if there else []
    ran = released(privrisk, kind, table, tmp_path / "x", of.key())
    assert ran.code == 0, ran.err
    assert of.digests() == committed == of_release(ran)
    assert of.versions() == 1
    if kind == "dp":
        assert small_release.charged(ran.root) == small_release.CHARGED, "spent once"
        assert not list((ran.root / "vault" / "keys").glob("*"))


def test_a_release_that_was_overtaken_does_not_come_into_the_table_later(
    privrisk: Privrisk, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of: Lake
) -> None:
    for error in (EngineError("the store is away."), AttributeError("a fault of ours")):

        def fail(*_: Any, error: Exception = error, **__: Any) -> None:
            raise error

        with monkeypatch.context() as patch:
            patch.setattr(ReleaseTable, "commit", fail)
            ran = released(privrisk, "risk", table, tmp_path / "x", of.key())
        assert ran.code == 3
        assert "the release is published at" in ran.err
        assert "run the same run id again" in ran.err
        assert ran.status["code"] == 3
    with table.open("a") as more:
        more.write("20;Ulm\n" * 50)
    second = released(privrisk, "risk", table, tmp_path / "x", of.key(), run_id="r2")
    assert second.code == 0, second.err
    table.write_text("\n".join(["age;city", *small_release.rows()]) + "\n")
    late = released(privrisk, "risk", table, tmp_path / "x", of.key())
    assert late.code == 0, late.err
    assert of.digests() == of_release(second, "r2")
    assert of.versions() == 1


@pytest.mark.parametrize(
    ("there", "kind"), [("other files", "dp"), ("other rows", "risk"), ("other rows", "dp"), ("other columns", "dp")]
)
def test_a_place_that_takes_no_release_is_refused_before_anything_is_charged(
    privrisk: Privrisk, table: Path, tmp_path: Path, kind: str, there: str, of: Lake
) -> None:
    place = of.place
    place.mkdir(parents=True)
    said = {
        "other files": "holds files and is no Delta table",
        "other rows": "holds rows, and no release of this output.path",
        "other columns": "has column 'more', which the release lacks",
    }[there]
    if there == "other files" and of.form == "iceberg":  # no obstacle: its catalog says where its tables lie
        lakes.catalog(of.root / "lake").drop_namespace("lake")
        said = "its catalog has no namespace 'lake'"
    elif there == "other files":
        (place / "notes.txt").write_text("mine")
    else:
        more = {"more": ["x"]} if there == "other columns" else {}
        of.make(pa.table({"age": ["x"], "city": ["y"], **more}))
        if there == "other columns":
            of.empty()
    before = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    ran = released(privrisk, kind, table, tmp_path / "x", of.key())
    assert ran.code == 2, ran.err
    assert said in " ".join(ran.err.split())
    assert small_release.charged(ran.root) == []
    assert not (ran.root / "out" / "releases").exists()
    assert {path: path.read_bytes() for path in place.rglob("*") if path.is_file()} == before
    planned = privrisk(str(ran.root / "policy.yaml"), "--run-id", "r1", "--dry-run", root=ran.root)
    assert planned.code == 2
    assert said in " ".join(planned.err.split())


def test_a_kept_column_of_another_type_is_refused_before_anybody_sees_the_release(
    privrisk: Privrisk, tmp_path: Path
) -> None:
    """Of kept columns the types are known when the release is staged."""
    lines = [line.split(";") for line in small_release.rows()]
    names = {"age": [int(age) for age, _ in lines], "city": [city for _, city in lines]}
    changes = [
        ("table", {"path": str(tmp_path / "t.parquet"), "format": "parquet"}),
        ("columns.cost", {"role": "insensitive"}),
    ]
    for run_id, cost in (("r1", pa.int64()), ("r2", pa.float64())):
        pq.write_table(pa.table({**names, "cost": pa.array([1] * 4000, cost)}), tmp_path / "t.parquet")
        ran = released(privrisk, "risk", tmp_path, tmp_path / "x", *changes, run_id=run_id)
        if run_id == "r1":
            assert ran.code == 0, ran.err
    assert ran.code == 2, ran.err
    assert "has column 'cost' as int64, and the release as double" in " ".join(ran.err.split())
    assert ran.manifest["run_id"] == "r1"
    assert not (ran.root / "out" / "releases" / "r2").exists()
    assert len(versions(ran.root)) == 1


@pytest.mark.parametrize("kind", small_release.KINDS)
def test_output_and_table_in_an_object_store(
    privrisk: Privrisk,
    endpoint: str,
    table: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    undisturbed: Callable[..., Ran],
) -> None:
    bucket = f"s3://{BUCKET}/{uuid4().hex}"
    root, place = tmp_path / "x", lake(f"{bucket}/lake")

    def stop(*_: Any) -> None:
        raise Stopped

    with monkeypatch.context() as patch:
        patch.setattr(DeltaReleases, "_committed", stop)
        with pytest.raises(Stopped):
            released(privrisk, kind, table, root, place, ("output.files", 2), output=f"{bucket}/out")
    for _ in range(2):
        ran = released(privrisk, kind, table, root, place, ("output.files", 2), output=f"{bucket}/out")
        assert ran.code == 0, ran.err
    without = undisturbed(kind, 2).manifest
    found = DeltaTable(f"{bucket}/lake")
    assert found.version() == 0
    files = sorted(pa.table(found.get_add_actions()).to_pylist(), key=lambda file: str(file["path"]))
    assert sum(file["num_records"] for file in files) == without["rows"]
    assert [file["size_bytes"] for file in files] == [entry["bytes"] for entry in without["data"]["files"]]


@pytest.mark.thorough("test_each_date_is_a_version_that_is_read_back; tests/storage/lakes/test_release_table.py")
def test_where_each_date_has_its_rows_a_late_release_comes_into_its_own(
    privrisk: Privrisk, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of: Lake
) -> None:
    """Of a date another release has overtaken, it does not."""
    by_day = of.key(date_column="day")

    def ran(run_id: str, day: int) -> Ran:
        return released(privrisk, "risk", table, tmp_path / "x", by_day, ("run.date", f"2026-11-{day}"), run_id=run_id)

    def of_each_day() -> list[tuple[str, int]]:
        asked = Asked("table", of.form, **{key: of.key()[1].get(key) for key in ("path", "catalog")})
        files = open_snapshot(asked).files
        return sorted((f"{file.values['day']}", Path(str(file.file)).name.partition("-")[0]) for file in files)

    def fail(*_: Any, **__: Any) -> None:
        raise EngineError("the store is away.")

    with monkeypatch.context() as patch:
        patch.setattr(ReleaseTable, "commit", fail)
        assert [ran(run_id, day).code for run_id, day in (("a", 20), ("b", 21), ("c", 22))] == [3, 3, 3]
    assert ran("d", 22).code == 0
    assert of_each_day() == [("2026-11-22", "d")]
    for run_id, day in (("b", 21), ("c", 22), ("a", 20)):
        again = ran(run_id, day)
        assert again.code == 0, again.err
    assert of_each_day() == [("2026-11-20", "a"), ("2026-11-21", "b"), ("2026-11-22", "d")]


def test_release_warns_of_rows_that_another_program_added(
    privrisk: Privrisk, table: Path, tmp_path: Path, of: Lake
) -> None:
    said = "the table holds 1 data files that no release wrote"
    first = released(privrisk, "risk", table, tmp_path / "x", of.key())
    assert first.code == 0, first.err
    of.append(pa.table({"age": ["x"], "city": ["y"]}))
    second = released(privrisk, "risk", table, tmp_path / "x", of.key(), run_id="r2")
    assert second.code == 0, second.err
    assert said in second.err
    assert said not in first.err
    third = released(privrisk, "risk", table, tmp_path / "x", of.key(), run_id="r3")
    assert said not in third.err, "the rows are replaced"


def test_check_lake_after_the_release_it_holds_was_withdrawn_knows_that_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known: set[str] = set()

    class Table:
        def check(self, releases: Callable[[], Any], _columns: Any) -> None:
            known.update(releases())

    place = Workplace(LocalOutput(tmp_path / "out"), DirectoryVault(tmp_path / "vault"), "r1")
    with place.held():
        manifest = place.commit(sealed({"run_id": "r1", "date": "2026-11-20", "data": {"files": []}}, place.staging))
        place.output.withdraw("r1", dt.date(2026, 12, 1))
    monkeypatch.setattr(lake_output, "lake_of", lambda policy: Table())
    lake_output.check_lake(parse(RISK), place.output)
    assert known == {release_digest(manifest)}
