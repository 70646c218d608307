"""The public interface: what it loads, what it returns, what it leaves behind, and what it raises."""

from __future__ import annotations

import datetime as dt
import json
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest
import small_release
import yaml
from product import production_batches
from pyspark.sql import types as T

import privrisk_spark as pr
from privrisk_spark.engine.embedded import is_embedded
from privrisk_spark.policy import reading
from privrisk_spark.policy.policy import Output

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROOT = Path(__file__).resolve().parents[2]
FOREIGN = {
    "spark.sql.session.timeZone": "Asia/Tokyo",
    "spark.sql.caseSensitive": "false",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "false",
}
SCHEMA = T.StructType(
    [
        T.StructField("id", T.StringType()),
        T.StructField("age", T.IntegerType()),
        T.StructField("born", T.DateType()),
        T.StructField("city", T.StringType()),
        T.StructField("diagnosis", T.StringType()),
        T.StructField("seen", T.TimestampType()),
    ]
)
ROWS = [
    (
        f"p{i}",
        20 + i % 30,
        dt.date(1990 + i % 10, 1 + i % 12, 1),
        ["Ulm", "Bonn", "Kiel"][i % 3],
        "abc"[i % 3],
        dt.datetime(2020, 1, 1, tzinfo=dt.UTC) + dt.timedelta(hours=7 * i),
    )
    for i in range(60)
]
COLUMNS = {
    "id": pr.identifier(),
    "age": pr.quasi_identifier(pr.intervals(5, 10, domain=(0, 99))),
    "born": pr.quasi_identifier(pr.dates("day", "month", "year")),
    "city": pr.quasi_identifier(pr.tree({"*": {"south": ["Ulm"], "north": ["Bonn", "Kiel"]}})),
    "diagnosis": pr.sensitive(),
    "seen": pr.insensitive(),
}


@pytest.fixture(scope="module")
def policy() -> pr.Policy:
    return pr.Policy(columns=COLUMNS, table={"record_id": "id"}, decision={"utility_at_least": 4})


@pytest.fixture(scope="module")
def table(spark: SparkSession) -> Iterator[DataFrame]:
    with production_batches(spark):
        yield spark.createDataFrame(ROWS, SCHEMA)


@pytest.fixture(scope="module")
def usual(table: DataFrame, policy: pr.Policy, tmp_path_factory: pytest.TempPathFactory) -> pr.Released:
    """The release of the table with the run id ``one``, where its caller wants it."""
    root = tmp_path_factory.mktemp("usual")
    return pr.release(table, policy, output=root / "out", vault=root / "vault", run_id="one")


@pytest.fixture(scope="module")
def assessed(table: DataFrame, policy: pr.Policy, tmp_path_factory: pytest.TempPathFactory) -> pr.Assessed:
    """Findings about the table, where its caller wants them."""
    return pr.assess(table, policy, output=tmp_path_factory.mktemp("assessed") / "found")


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary directories are made."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    return place


@pytest.fixture
def foreign(spark: SparkSession) -> Iterator[SparkSession]:
    before = {name: spark.conf.get(name, None) for name in FOREIGN}
    for name, value in FOREIGN.items():
        spark.conf.set(name, value)
    yield spark
    assert {name: spark.conf.get(name) for name in FOREIGN} == FOREIGN, "a run must put settings back"
    for name, value in before.items():
        if value is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, value)


def content(released: pr.Released) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((released.place / "data").glob("*.parquet"))}


# ------------------------------------------------------------------------------------------------ import


def test_importing_the_package_loads_nothing() -> None:
    program = (
        "import sys, privrisk_spark as pr\n"
        "assert sorted([*pr.__all__, '__version__']) == dir(pr)\n"
        "pr.errors.ConfigError\n"
        "heavy = {'pyspark', 'pandas', 'numpy', 'pydantic', 'pyarrow', 'yaml', 'privrisk_spark.policy'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
        "pr.Policy(columns={'age': pr.quasi_identifier(pr.intervals(5, 10))})\n"
        "assert not {'pyspark', 'pandas', 'pyarrow'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT)


def test_every_public_name_is_there_and_no_other() -> None:
    for name in pr.__all__:
        assert getattr(pr, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'asses'"):
        _ = pr.asses  # type: ignore[attr-defined]


def test_session_is_that_of_the_process_or_refused(spark: SparkSession) -> None:
    assert pr.session() is spark
    ours, other = ("embedded", "spark") if is_embedded(spark) else ("spark", "embedded")
    assert pr.session(ours) is spark
    with pytest.raises(pr.errors.ConfigError, match=f"engine of the session that this process has. Got '{other}'"):
        pr.session(other)


def test_the_function_audit_survives_the_package_of_that_name() -> None:
    import privrisk_spark.audit.trials  # noqa: F401

    assert callable(pr.audit)
    from privrisk_spark import audit

    assert audit is pr.audit


def test_type_checkers_see_the_names(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import privrisk_spark as pr\n"
        "policy = pr.Policy(columns={'age': pr.quasi_identifier(pr.intervals(5, 10))})\n"
        "reveal_type(pr.release(None, policy).data)\n"
        "reveal_type(pr.assess(None, policy).passed)\n"
        "pr.assess(None, policy, outptu='x')\n"
    )
    # With what `make lint` knows already of the libraries.
    command = [sys.executable, "-m", "mypy", f"--cache-dir={ROOT / '.mypy_cache'}", str(program)]
    said = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True).stdout
    assert 'Revealed type is "pyspark.sql.dataframe.DataFrame"' in said, said
    assert 'Revealed type is "bool | None"' in said, said
    assert 'Unexpected keyword argument "outptu" for "assess"' in said, said


# ------------------------------------------------------------------------------------------------ policies


def test_a_policy_written_in_python_is_the_one_in_a_file(tmp_path: Path) -> None:
    document = {
        "version": 1,
        "run": {"name": "x"},
        "table": {"path": "t.csv", "format": "csv", "record_id": "id"},
        "columns": COLUMNS,
        "decision": {"utility_at_least": 4},
    }
    file = tmp_path / "policy.yaml"
    file.write_text(yaml.safe_dump(document, sort_keys=False))
    loaded = pr.load(file)
    made = pr.Policy(
        columns=COLUMNS,
        run="x",
        table={"path": "t.csv", "format": "csv", "record_id": "id"},
        decision={"utility_at_least": 4},
    )
    assert isinstance(loaded, pr.Policy)
    assert loaded == made
    assert made.canonical() == reading.load([file], releasing=False).canonical()
    assert made.model_copy(update={}) == made


@pytest.mark.parametrize(
    ("made", "key"),
    [
        (lambda: pr.Policy(columns={"a": pr.quasi_identifier(pr.intervals(5, 7))}), "columns.a.hierarchy"),
        (lambda: pr.Policy(columns={"a": pr.quasi_identifier({"maks": 5})}), "columns.a.hierarchy"),
        (lambda: pr.Policy(columns={}), "columns"),
        (lambda: pr.Policy(columns={"a": pr.sensitive()}, decisoin={}), "decisoin"),
        (pr.load, "name a policy file"),
        (lambda: pr.load("nowhere.yaml"), "nowhere.yaml"),
    ],
)
def test_what_is_wrong_with_a_policy_is_named(made: Any, key: str) -> None:
    with pytest.raises(pr.errors.ConfigError, match=key):
        made()


def test_policies_may_be_paths_and_mappings_and_name_no_table_where_a_frame_is_given(
    table: DataFrame, policy: pr.Policy, tmp_path: Path
) -> None:
    document: dict[str, Any] = {
        "version": 1,
        "run": {"name": "table"},
        "columns": {name: dict(column) for name, column in COLUMNS.items()},
        "decision": {"utility_at_least": 4},
    }
    file = tmp_path / "policy.yaml"
    file.write_text(yaml.safe_dump(document))
    expected = str(pr.plan(table, pr.Policy(columns=COLUMNS, decision={"utility_at_least": 4})))
    for given in (file, str(file), document, pr.load(file)):
        assert str(pr.plan(table, given)) == expected
    assert pr.validate(table, document).valid
    assert pr.validate(table, file).valid
    with pr.release(table, str(file)) as done:
        assert done.manifest["rows"] == 60
    with pr.assess(table, file) as found:
        assert found.passed is None, "no threshold was given, and an assert of it must fail"
    for run in (pr.plan, pr.release, pr.assess, pr.attack, pr.fit, pr.curves, pr.compose, pr.mask_table):
        with pytest.raises(pr.errors.ConfigError, match=r"policy: must be a Policy, the path .* Got int"):
            run(table, 7)  # type: ignore[operator]
        with pytest.raises(pr.errors.ConfigError, match="there is no policy file"):
            run(table, tmp_path / "none.yaml")  # type: ignore[operator]
        with pytest.raises(pr.errors.ConfigError, match="columns: must hold at least 1 item"):
            run(table, {"version": 1})  # type: ignore[operator]
    with pytest.raises(pr.errors.ConfigError, match="columns: must be a mapping"):
        pr.plan(table, {"columns": ["age"]})
    with pytest.raises(pr.errors.ConfigError, match=r"^table: the policy names none, so a frame must be given"):
        pr.release(None, file)
    assert [fault.path for fault in pr.validate(None, file).faults] == ["table"]


def test_commands_need_a_policy_that_names_its_table(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from privrisk_spark.cli.app import app

    file = tmp_path / "policy.yaml"
    columns = {"age": {"role": "quasi-identifier", "hierarchy": {"flat": {"values": ["1"]}}}}
    file.write_text(yaml.safe_dump({"version": 1, "run": {"name": "x"}, "columns": columns}))
    for command in ("release", "mask", "validate"):
        ran = CliRunner().invoke(app, [command, str(file)])
        assert ran.exit_code == 2
        assert "table: is required" in ran.output


def test_builders_say_what_a_file_says() -> None:
    assert pr.mask(3, side="left", character="#", length=5) == {
        "mask": {"steps": 3, "from": "left", "character": "#", "length": 5}
    }
    assert pr.intervals(cuts=[[0, 18, 40], [0, 40]], unit=1) == {
        "intervals": {"cuts": [[0, 18, 40], [0, 40]], "unit": 1}
    }
    assert pr.tree("a.yaml") == {"tree_file": "a.yaml"}
    assert pr.file(Path("a.csv"), separator=",") == {"file": "a.csv", "separator": ","}
    assert pr.flat() == {"flat": {}}
    columns = {
        "a": pr.quasi_identifier(pr.mask(3, side="left")),
        "b": pr.quasi_identifier(pr.flat(), nulls="own-value", unknown="suppress"),
        "c": pr.quasi_identifier(pr.order(["x", "y", "z"], [2])),
        "d": pr.quasi_identifier(pr.dates("day", "year", domain=(dt.date(2000, 1, 1), "2001-12-31"))),
        "e": pr.insensitive("drop"),
        "f": pr.weight(),
        "g": pr.quasi_identifier(pr.flat("F", "M"), read={"case": "upper", "null_if": ["?"]}),
        "h": pr.sensitive(release={"round": 100}, read={"cast": "number"}),
        "i": pr.insensitive(release={"top_code": 90}, read={"trim": True}),
        "j": pr.identifier(read={"trim": True}),
    }
    assert columns["g"]["read"] == {"case": "upper", "null_if": ["?"]}
    assert columns["h"] == {
        "role": "sensitive", "action": "keep", "release": {"round": 100}, "read": {"cast": "number"}
    }  # fmt: skip
    assert columns["i"] == {
        "role": "insensitive", "action": "keep", "release": {"top_code": 90}, "read": {"trim": True}
    }  # fmt: skip
    assert columns["j"] == {"role": "identifier", "read": {"trim": True}}
    assert pr.weight(read={"cast": "number"}) == {"role": "weight", "read": {"cast": "number"}}
    assert pr.weight(release=True) == {"role": "weight", "release": True}
    assert pr.sensitive() == {"role": "sensitive", "action": "keep"}, "what is not said is not written"
    pr.Policy(columns=columns, risk={"sensitivity": {"personal": {"factor": "f"}}})


# ------------------------------------------------------------------------------------------------ assess


def test_assess_by_keywords(table: DataFrame, temporary: Path) -> None:
    asked: dict[str, Any] = {"quasi_identifiers": {"age": pr.intervals(5, 10), "city": pr.flat()}}
    with pr.assess(table, **asked, sensitive=["diagnosis"], thresholds={"k": 5}) as found:
        (private,) = temporary.iterdir()
        assert stat.S_IMODE(private.stat().st_mode) == 0o700
        assert not found.passed
        (verdict,) = found.verdicts
        assert (verdict.name, verdict.observed) == ("k", 2)  # 60 rows in 30 combinations
        frame = found.to_pandas()
        assert len(frame) == len(found.measures)
        assert frame.loc[frame["name"] == "k", "value"].tolist() == [2.0]
        assert found.records is not None
        assert found.records.count() == 60
        assert "missed" in found._repr_html_()
        assert "<html" in str(found.report)
        assert "sandbox" in found.report._repr_html_()
        with pytest.raises(FrozenInstanceError):
            found.place = Path()  # type: ignore[misc]
    assert not list(temporary.iterdir())


def test_a_private_directory_goes_with_the_last_that_needs_it(
    table: DataFrame, policy: pr.Policy, temporary: Path
) -> None:
    records = pr.assess(table, policy).records
    assert records is not None
    assert records.count() == 60, "a frame keeps its files though the result is gone"
    assert list(temporary.iterdir())
    del records
    import gc

    gc.collect()
    assert not list(temporary.iterdir())


def test_assess_writes_where_it_is_told(temporary: Path, request: pytest.FixtureRequest) -> None:
    found: pr.Assessed = request.getfixturevalue("assessed")  # made here, if no test before has asked for it
    found.close()
    measures = json.loads(Path(found.place, "measures.json").read_text())
    assert measures == found.assessment.measures()
    assert not list(temporary.iterdir())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "give a policy, or a frame with quasi_identifiers"),
        ({"quasi_identifiers": {"age": pr.flat()}, "sensitive": ["age"]}, "quasi-identifier column already"),
        ({"quasi_identifiers": {"age": pr.flat()}, "record_id": "age"}, "record_id: 'age' is a quasi-identifier"),
        (
            {"quasi_identifiers": ["age"]},
            r"quasi_identifiers: must be a mapping. Got list. Fix: .* {'age': pr.flat\(\)}",
        ),
        ({"quasi_identifiers": {"age": pr.flat()}, "sensitive": "age"}, r"sensitive: .* Fix: write \['age'\]"),
        ({"quasi_identifiers": {"age": pr.flat()}, "thresholds": ["k"]}, "thresholds: must be a mapping. Got list"),
        ({"quasi_identifiers": {"agee": pr.flat()}}, "did you mean 'age'"),
        ({"quasi_identifiers": {"age": pr.flat()}, "thresholds": {"kk": 5}}, "assess.thresholds.kk"),
    ],
)
def test_assess_names_what_is_missing(table: DataFrame, given: Any, said: str) -> None:
    with pytest.raises(pr.errors.InputError, match=said):
        pr.assess(table, **given)


def test_assess_with_record_id_names_the_records_by_it(spark: SparkSession) -> None:
    frame = spark.createDataFrame([("a", 34), ("b", 36), ("c", 36)], "who string, age int")
    with pr.assess(frame, quasi_identifiers={"age": pr.flat()}, record_id="who") as found:
        assert found.records is not None
        assert {row["who"]: row["class_size"] for row in found.records.collect()} == {"a": 1, "b": 2, "c": 2}


@pytest.mark.parametrize("given", [pd.DataFrame({"age": [34]}), "table.csv", ["age"]])
def test_job_of_a_table_that_is_no_frame_is_refused(policy: pr.Policy, given: Any) -> None:
    for run in (
        lambda: pr.assess(given, quasi_identifiers={"age": pr.flat()}),
        lambda: pr.assess(given, policy),
        lambda: pr.plan(given, policy),
        lambda: pr.release(given, policy),
        lambda: pr.suggest_policy(given),
        lambda: pr.profile(given),
        lambda: pr.curves(given, policy),
    ):
        with pytest.raises(pr.errors.ConfigError, match=r"table: must be a DataFrame of a Spark session. Got .*Fix: "):
            run()


def test_without_a_frame_the_policy_must_name_a_table(policy: pr.Policy) -> None:
    for run in (pr.assess, pr.plan, pr.release):
        with pytest.raises(pr.errors.ConfigError, match=r"^table: the policy names none, so a frame must be given"):
            run(None, policy)  # type: ignore[operator]


# ------------------------------------------------------------------------------------------------ plan and release


def test_a_plan_is_what_a_dry_run_prints(small: Path, spark: SparkSession) -> None:
    from typer.testing import CliRunner

    from privrisk_spark.cli.app import app

    found = pr.plan(None, pr.load(small))
    assert CliRunner().invoke(app, ["release", str(small), "--dry-run"]).stdout == f"{found}\n"
    assert "<pre>" in found._repr_html_()
    assessed = pr.plan(None, pr.load(small), of="assess")
    ran = CliRunner().invoke(app, ["assess", str(small), "--dry-run", "--output", str(small.parent / "x")])
    assert ran.stdout == f"{assessed}\n"
    assert not (small.parent / "out").exists()
    assert not (small.parent / "vault").exists()


def test_release_of_a_frame(table: DataFrame, policy: pr.Policy, usual: pr.Released, temporary: Path) -> None:
    with pr.release(table, policy, run_id="one") as done:
        assert done.fresh
        assert done.manifest["rows"] == done.data.count() == 60
        assert done.data.columns == ["age", "born", "city", "diagnosis", "seen"]
        assert done.decisions is not None
        assert {row.id for row in done.decisions.select("id").collect()} == {row[0] for row in ROWS}
        assert sorted(row.seen for row in done.data.collect()) == sorted(row.seen for row in table.collect())
        assert done.vault_report is not None
        assert str(done.vault_report) != str(done.report)
        assert done._repr_html_() == done.vault_report._repr_html_()
        assert "What was lost" in done._repr_html_()
        (private,) = temporary.iterdir()
        assert stat.S_IMODE(private.stat().st_mode) == 0o700
        assert content(done) == content(usual), "the same release, which this place did not know of"
    assert not list(temporary.iterdir())


def test_a_frame_is_released_as_it_is_and_not_as_the_files_it_came_from(
    table: DataFrame, policy: pr.Policy, tmp_path: Path
) -> None:
    """Tasks may open the files of a policy's table themselves; those of a frame hold other rows."""
    table.coalesce(1).write.parquet(str(tmp_path / "files"))
    some = table.sparkSession.read.parquet(str(tmp_path / "files")).where("age < 35")
    named = pr.Policy(columns=COLUMNS, table={"path": str(tmp_path / "files")}, decision={"utility_at_least": 4})
    with pr.release(some, named) as done:
        assert done.manifest["rows"] == 30
    with pr.assess(some, named) as found:
        assert found.assessment.subjects[0].find("records")[0].value == 30


def test_release_writes_where_it_is_told_and_is_known_by_its_id(
    table: DataFrame, policy: pr.Policy, usual: pr.Released, temporary: Path
) -> None:
    out = Path(usual.place).parents[1]
    places: dict[str, Any] = {"output": out, "vault": out.with_name("vault"), "run_id": "one"}
    assert (out / "manifest.json").exists()
    again = pr.release(table, policy, **places)
    assert not again.fresh
    assert content(again) == content(usual)
    assert not list(temporary.iterdir())
    pr.release(table, policy, **(places | {"run_id": "two"}))
    assert not list(temporary.iterdir())
    first = pr.release(table, policy, **places)
    assert first.decisions is None, "the vault holds those of the later run"
    assert first.data.count() == 60


def test_release_of_another_frame_without_a_run_id_is_a_new_release(
    table: DataFrame, policy: pr.Policy, tmp_path: Path
) -> None:
    places: dict[str, Any] = {"output": tmp_path / "out", "vault": tmp_path / "vault"}
    first = pr.release(table, policy, **places)
    second = pr.release(table.where("age < 35"), policy, **places)
    assert (first.manifest["rows"], second.manifest["rows"]) == (60, 30)
    assert second.fresh
    assert second.data.count() == 30
    assert first.run_id != second.run_id
    again = pr.release(table.where("age < 35").repartition(3), policy, **places, run_id=second.run_id)
    assert not again.fresh
    assert content(again) == content(second)


def test_release_of_another_frame_under_one_run_id_is_refused(
    table: DataFrame, policy: pr.Policy, usual: pr.Released, temporary: Path, tmp_path: Path
) -> None:
    out = Path(usual.place).parents[1]
    places: dict[str, Any] = {"output": out, "vault": out.with_name("vault"), "run_id": "one"}
    others = [
        table.where("id != 'p7'"),
        table.union(table.limit(1)),
        table.selectExpr("id", "age", "born", "city", "if(id = 'p7', 'c', diagnosis) as diagnosis", "seen"),
        table.selectExpr("id", "age", "born", "city", "if(id = 'p7', null, diagnosis) as diagnosis", "seen"),
        table.selectExpr("id", "cast(age as bigint) as age", "born", "city", "diagnosis", "seen"),
    ]
    for other in others:
        with pytest.raises(
            pr.errors.RefusedError, match=r"run id one is released already, of other rows .*run_id"
        ) as no:
            pr.release(other, policy, **places)
        assert no.value.exit_code == 1
    with pytest.raises(pr.errors.RefusedError, match=r"run id one is released already, this vault does not know"):
        pr.release(table, policy, **(places | {"vault": tmp_path / "another"}))
    assert not pr.release(table, policy, **places).fresh
    known = json.loads((out.with_name("vault") / "requests" / "one.json").read_text())["asked"]["the given frame"]
    assert not any(known.encode() in path.read_bytes() for path in out.rglob("*") if path.is_file())


def test_frames_are_not_hashed_for_a_release_nobody_can_ask_for_again(
    table: DataFrame, policy: pr.Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    from privrisk_spark.pipelines import run

    monkeypatch.setattr(run, "collect_frame_digest", lambda _: pytest.fail("the frame was read once more"))
    pr.release(table, policy).close()


def test_private_release_of_another_frame_is_refused_and_of_the_same_charges_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    places = {"path": str(tmp_path / "out"), "vault": str(tmp_path / "vault")}
    document = small_release.document("dp", tmp_path, tmp_path, ("output", places))
    private = pr.Policy(**{**document, "table": {}})
    pairs = [line.split(";") for line in small_release.rows()]
    table = spark.createDataFrame([(int(age), city) for age, city in pairs], "age int, city string")
    first = pr.release(table, private)
    assert first.fresh
    again = pr.release(table.repartition(3), private)
    assert (again.fresh, again.run_id) == (False, first.run_id)
    with pytest.raises(pr.errors.RefusedError, match=r"of other rows .* give another run_id .* charges the budget"):
        pr.release(table.limit(3999), private)
    assert small_release.charged(tmp_path) == small_release.CHARGED
    known = json.loads((tmp_path / "vault" / "requests" / f"{first.run_id}.json").read_text())["asked"]
    assert list(known) == ["the given frame"]
    published = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert published
    assert not any(known["the given frame"].encode() in path.read_bytes() for path in published)


def test_jobs_of_two_frames_without_a_run_id_have_two_run_ids(table: DataFrame, policy: pr.Policy) -> None:
    days = [pr.plan(table, policy).run_id for _ in range(2)]
    assert len(set(days)) == 2
    found = [pr.assess(table, policy) for _ in range(2)]
    assert len({one.assessment.run_id for one in found}) == 2


def test_a_run_never_writes_onto_its_input(table: DataFrame, policy: pr.Policy, tmp_path: Path) -> None:
    table.coalesce(1).write.parquet(str(tmp_path / "files"))
    read = table.sparkSession.read.parquet(str(tmp_path / "files"))
    with pytest.raises(pr.errors.ConfigError, match=r"^output.path: must be neither the files of the given frame"):
        pr.release(read, policy, output=tmp_path / "files", vault=tmp_path / "vault")


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_release_of_the_data_of_a_release_into_its_place_is_refused(
    table: DataFrame, policy: pr.Policy, tmp_path: Path, form: str
) -> None:
    """Also of CSV, of which Spark lists no files, because tasks read them."""
    places = {"path": str(tmp_path / "out"), "vault": str(tmp_path / "vault"), "format": form}
    own = policy.model_copy(update={"output": Output.model_validate(places)})
    with pr.release(table, own, run_id="r1") as done:
        columns = {name: {"role": "quasi-identifier", "hierarchy": {"flat": {}}} for name in done.data.columns}
        again = pr.Policy(columns=columns, decision={"utility_at_least": 0}, output=places)
        with pytest.raises(pr.errors.ConfigError, match=r"^output.path: must be neither the files of the given frame"):
            pr.release(done.data, again, run_id="r2")


def test_what_a_release_lacks_is_named(table: DataFrame, temporary: Path) -> None:
    with pytest.raises(pr.errors.ConfigError, match="decision: is required"):
        pr.release(table, pr.Policy(columns=COLUMNS))
    with pytest.raises(pr.errors.SchemaError, match="has no role"):
        pr.release(table, pr.Policy(columns={"age": COLUMNS["age"]}, decision={"utility_at_least": 1}))
    assert not list(temporary.iterdir())


def test_nothing_of_spark_leaves(table: DataFrame, policy: pr.Policy) -> None:
    failing = table.selectExpr("id", "cast(raise_error('x') as int) as age", "born", "city", "diagnosis", "seen")
    with pytest.raises(pr.errors.EngineError, match="Spark failed"):
        pr.release(failing, policy)
    done = pr.release(table, policy)
    done.close()
    with pytest.raises(pr.errors.EngineError, match="does not exist"):
        _ = done.data


# ------------------------------------------------------------------------------------------------ foreign sessions


def test_a_foreign_session_gets_the_same_release_and_its_settings_back(
    policy: pr.Policy, usual: pr.Released, assessed: pr.Assessed, foreign: SparkSession
) -> None:
    theirs = foreign.createDataFrame(ROWS, SCHEMA)  # ansi off, Tokyo, no Arrow
    with pr.release(theirs, policy, run_id="one") as found:
        assert content(found) == content(usual)
        seen = found.data.selectExpr("cast(seen as long) as s").collect()
        measured = pr.assess(theirs, policy)
    assert measured.assessment.measures() == assessed.assessment.measures()
    plain = dict(zip(FOREIGN, ("UTC", "true", "true", "true"), strict=True))
    for name, value in plain.items():
        foreign.conf.set(name, value)
    assert sorted(seen) == sorted(usual.data.selectExpr("cast(seen as long) as s").collect())
    for name, value in FOREIGN.items():
        foreign.conf.set(name, value)


def test_a_run_on_a_foreign_session_does_not_either(
    table: DataFrame, policy: pr.Policy, foreign: SparkSession, tmp_path: Path
) -> None:
    """Whose frame is computed first, and then knows of no files itself."""
    table.coalesce(1).write.parquet(str(tmp_path / "files"))
    before = sorted(file.name for file in (tmp_path / "files").iterdir())
    read = foreign.read.parquet(str(tmp_path / "files"))
    with pytest.raises(pr.errors.ConfigError, match=r"^output.path: must be neither the files of the given frame"):
        pr.release(read, policy, output=tmp_path / "files", vault=tmp_path / "vault")
    assert sorted(file.name for file in (tmp_path / "files").iterdir()) == before


def test_a_foreign_session_is_given_back_after_an_error(policy: pr.Policy, foreign: SparkSession) -> None:
    with pytest.raises(pr.errors.SchemaError):
        pr.release(foreign.createDataFrame([(1,)], "age int"), policy)


def test_columns_that_differ_in_case_alone(spark: SparkSession, foreign: SparkSession) -> None:
    asked: dict[str, Any] = {"quasi_identifiers": {"Age": pr.flat(), "age": pr.flat()}}
    rows = [(1, 2), (1, 3)]
    with pytest.raises(pr.errors.ConfigError, match=r"^spark\.sql\.caseSensitive: must be true to tell the columns"):
        pr.assess(foreign.createDataFrame(rows, "Age int, age int"), **asked)
    foreign.conf.set("spark.sql.caseSensitive", "true")
    found = pr.assess(foreign.createDataFrame(rows, "Age int, age int"), **asked, thresholds={"k": 1})
    foreign.conf.set("spark.sql.caseSensitive", "false")
    assert [one.observed for one in found.verdicts] == [1]


@pytest.mark.on_spark("the embedded engine writes nothing to disks that would have to be encrypted")
def test_keys_need_an_encrypting_session(table: DataFrame, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from privrisk_spark.engine import session, settings

    private = pr.Policy(
        columns=COLUMNS | {"diagnosis": pr.sensitive("drop"), "seen": pr.insensitive("drop")},
        guarantee={"kind": "dp", "epsilon": {"admit": 0.5, "keep": 0.5}, "delta": 1e-6, "public_rows": 60,
                   "objective": {"phi_min": 0.1}},
        ledger={"url": f"sqlite:///{tmp_path}/ledger.db", "lineage": "x", "cap": {"epsilon": 4, "delta": 1e-5}},
        output={"path": str(tmp_path / "out"), "vault": str(tmp_path / "vault")},
    )  # fmt: skip
    monkeypatch.setattr(session, "check_encryption", settings.check_encryption)
    with pytest.raises(pr.errors.ConfigError, match=r"must be true for a release whose keys travel inside tasks"):
        pr.release(table, private)
    assert not (tmp_path / "ledger.db").exists()


# ------------------------------------------------------------------------------------------------ audit


def test_values_are_tidied_and_made_coarser_as_the_builders_say(spark: SparkSession, temporary: Path) -> None:
    rows = [(f"p{i}", " f" if i % 2 else "M ", 1234 + i) for i in range(12)]
    table = spark.createDataFrame(rows, "id string, sex string, cost int")
    policy = pr.Policy(
        columns={
            "id": pr.identifier(),
            "sex": pr.quasi_identifier(pr.flat("F", "M"), read={"trim": True, "case": "upper"}),
            "cost": pr.sensitive(release={"round": 1000}),
        },
        table={"record_id": "id"},
        decision={"utility_at_least": 1},
    )
    with pr.release(table, policy) as released:
        found = released.data.toPandas()
    assert sorted(set(found["sex"])) == ["F", "M"]
    assert set(found["cost"]) == {1000}


def test_curves_of_a_frame(table: DataFrame, policy: pr.Policy, temporary: Path, tmp_path: Path) -> None:
    said: list[str] = []
    with pr.curves(table, policy, shares=2, floors=[4, 2], announce=said.append, date=dt.date(2026, 1, 1)) as found:
        assert found.shares == (0.5, 1)
        assert found.floors == (2, 4)
        assert found.status == "tested"
        figures = found.to_pandas()
        assert figures.shape == (4, 9)
        assert figures["dictionary_rows"].tolist()[2:] == [60, 60]
        written = json.loads((found.place / "curves.json").read_text())
        assert written == json.loads(json.dumps(found.to_dict()))
        assert figures["mean_least_risk"].tolist() == [risk for of in written["arrays"]["minimal"] for risk in of]
        assert "Mean least risk of table" in found._repr_html_()
        assert "means over all 60 records" in repr(found).lower()
        assert str(found.report).startswith("<!DOCTYPE html>")
        assert stat.S_IMODE(found.place.parent.stat().st_mode) == 0o700
        assert said
        with pytest.raises(FrozenInstanceError):
            found.place = tmp_path  # type: ignore[misc]
    assert not list(temporary.iterdir())
    kept = pr.curves(table, policy, shares=2, floors=[4, 2], output=tmp_path / "kept", date=dt.date(2026, 1, 1))
    kept.close()
    csv_text = (tmp_path / "kept" / "curves.csv").read_text()
    assert csv_text.splitlines()[0].split(",") == figures.columns.tolist()
    with pytest.raises(pr.errors.ConfigError, match=r"shares: must be in 2(?s:.*)floors: must be(?s:.*)records: must"):
        pr.curves(table, policy, shares=1, floors=[float("nan")], records=0)
    assert not list(temporary.iterdir())


def test_an_audit_needs_a_claim(policy: pr.Policy, spark: SparkSession, temporary: Path) -> None:
    with pytest.raises(pr.errors.InputError, match="the policy makes none"):
        pr.audit(policy)
    assert not list(temporary.iterdir())
