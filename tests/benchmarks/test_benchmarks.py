"""Benchmarks beyond the case study: what is computed from measurements, the table, and small runs from end to end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
import yaml
from deltalake import DeltaTable
from floors import measured, run_here

from benchmarks import __main__ as command
from benchmarks import (
    case_study,
    cluster,
    cluster_apart,
    entities,
    fmdp,
    growth,
    hundred_million,
    jobs,
    measures,
    object_store,
    persons,
    readers,
    standalone,
)
from benchmarks.floor import floor
from benchmarks.measure import Measured, measure
from privrisk_spark.kernels.adversary.process import solve
from privrisk_spark.policy.reading import parse


def result(name: str = "growth", *, seconds: float, peak: float, **parameters) -> case_study.Result:
    return case_study.Result(name, seconds, seconds / 10, peak, parameters)


# ---- growth


def test_the_sizes_are_the_published_one_its_double_and_its_quadruple():
    assert growth.sizes(case_study.ROWS) == [5_667_004, 11_334_008, 22_668_016]
    assert case_study.dictionary_rows(growth.sizes(case_study.ROWS)[-1]) == 39_430_492


def test_growth_is_measured_per_row_and_against_the_first():
    sizes = [
        result(seconds=10, peak=1000, rows=100),
        result(seconds=22, peak=1200, rows=200),  # 0.11 s a row against 0.10
        result(seconds=30, peak=900, rows=400),
    ]
    found = [growth.relative(sizes)[i].parameters for i in range(3)]
    assert [one["time_to_linear"] for one in found] == [1.0, 1.1, 0.75]
    assert [one["memory_to_first"] for one in found] == [1.0, 1.2, 0.9]
    assert (found[0]["time_to_linear_at_most"], found[0]["memory_to_first_at_most"]) == (1.1, 1.2)
    assert [one["rows"] for one in found] == [100, 200, 400]
    assert [one.seconds for one in growth.relative(sizes)] == [10, 22, 30]


def test_a_ratio_is_that_of_what_was_measured_and_not_of_what_is_shown():
    told = case_study.Result("small", 0.00041239, 0.00010001, 1.0, {"rows": 3}).to_json()
    assert list(told) == ["name", "seconds", "floor_seconds", "ratio", "peak_mb", "parameters"]
    assert (told["seconds"], told["floor_seconds"], told["ratio"]) == (0.0004124, 0.0001, 4.123)


def test_growth_runs_every_size_against_the_floor(tmp_path, monkeypatch, capsys):
    put_floor_in_place_of_the_product(monkeypatch)
    target = tmp_path / "growth.json"
    arguments = ["growth", "--rows", "300", "--cache", str(tmp_path / "cache"), "--json", str(target)]
    assert command.main(arguments) == 0
    results = json.loads(target.read_text())
    assert [one["parameters"]["rows"] for one in results] == [300, 600, 1200]
    assert [one["parameters"]["dictionary_rows"] for one in results] == [522, 1044, 2087]
    assert all(one["parameters"]["records_compared"] == one["parameters"]["rows"] for one in results)
    assert all(one["ratio"] == pytest.approx(one["seconds"] / one["floor_seconds"], rel=0.01) for one in results)
    for one in results:
        expected = one["seconds"] / one["parameters"]["rows"] / (results[0]["seconds"] / 300)
        assert one["parameters"]["time_to_linear"] == pytest.approx(expected, abs=1e-3)
    assert "to linear" in capsys.readouterr().out


# ---- stages


def put_floor_in_place_of_the_product(monkeypatch, seconds: str = '{"read": 0.25, "write": 0.5}') -> None:
    """The floor as the product: it writes what the product's vault would hold."""

    def run(data: Path, out: Path) -> Measured:
        ran = measured(lambda: floor(str(data), out / "vault"))
        (out / "vault" / "summary.json").write_text(f'{{"seconds": {seconds}}}')
        return ran

    monkeypatch.setattr(case_study, "run_product", run)
    run_here(monkeypatch)


def test_stages_and_what_they_leave_make_the_total(tmp_path, monkeypatch):
    put_floor_in_place_of_the_product(monkeypatch)
    (found,) = case_study.run(rows=200, cache=tmp_path)
    assert found.parameters["stages"] == {"read": 0.25, "write": 0.5}
    assert found.parameters["outside_stages"] == pytest.approx(found.seconds - 0.75, abs=2e-3)
    assert found.parameters["load_before"] >= 0


def test_a_product_without_a_summary_is_an_error(tmp_path):
    with pytest.raises(case_study.BenchmarkError, match=r"vault/summary\.json"):
        case_study.stage_seconds(tmp_path)


# ---- the table


def test_the_table_shows_the_parameters_some_result_has():
    lines = command._table(
        [
            result("cluster-local", seconds=20, peak=1000, rows=5667004, time_to_local=1.0),
            result("lattice", seconds=1.5, peak=80, rows=12, lattice_nodes=0),
            result("growth", seconds=1.5, peak=80, rows=12, lattice_nodes=12960),
        ]
    ).splitlines()
    assert lines[0].split() == ["name", "seconds", "floor", "s", "ratio", "peak", "MB", "rows", "nodes", "to", "local"]
    assert lines[1].split() == ["cluster-local", "20.00", "2.00", "10.00", "1000", "5,667,004", "1.00"]
    assert lines[2].split() == ["lattice", "1.50", "0.15", "10.00", "80", "12", "0"]
    assert lines[3].split() == ["growth", "1.50", "0.15", "10.00", "80", "12", "12,960"]
    assert len({len(line) for line in lines}) == 1
    assert lines[3].index("12,960") + 6 == lines[0].index("nodes") + 5  # a blank keeps its place
    assert lines[1].endswith("1.00")


@pytest.mark.parametrize("name", command.BENCHMARKS)
def test_every_benchmark_is_reached_by_its_name(name, monkeypatch, capsys):
    asked = {}

    def run(**given):
        asked.update(given)
        return [result(name, seconds=1, peak=1, rows=7)]

    monkeypatch.setitem(command.BENCHMARKS, name, run)
    assert command.main([name, "--rows", "7"]) == 0
    assert asked == {"rows": 7, "cache": None}
    assert capsys.readouterr().out.splitlines()[1].startswith(name)


def test_a_cluster_that_does_not_come_up_is_an_error(monkeypatch, capsys):
    def run(**given):
        raise standalone.ClusterError("The cluster did not come up: no")

    monkeypatch.setitem(command.BENCHMARKS, "cluster", run)
    assert command.main(["cluster"]) == 1
    assert "did not come up" in capsys.readouterr().err


# ---- the cluster


def test_cluster_time_is_against_the_local_run():
    found = cluster.relative([result(seconds=20, peak=1, rows=1), result(seconds=25, peak=1, rows=1)])
    assert [one.parameters["time_to_local"] for one in found] == [1.0, 1.25]


def test_only_the_master_differs_between_the_two_submissions():
    local = cluster.command("submit", "local[2]", Path("p.zip"))
    other = cluster.command("submit", "spark://h:1", Path("p.zip"))
    assert [(a, b) for a, b in zip(local, other, strict=True) if a != b] == [("local[2]", "spark://h:1")]
    assert local[local.index("--py-files") + 1 :][:2] == ["p.zip", "jobs/release.py"]


def test_submission_ignores_the_callers_spark_settings(tmp_path, monkeypatch):
    monkeypatch.setenv("SPARK_MASTER", "spark://elsewhere")
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--master yarn")
    environment = standalone.submit_environment(tmp_path)
    assert "SPARK_MASTER" not in environment
    assert "PYSPARK_SUBMIT_ARGS" not in environment
    assert environment["PYSPARK_PYTHON"] == sys.executable
    assert environment["PATH"] == os.environ["PATH"]


def test_what_one_job_is_asked_for_besides_comes_after_the_job():
    plain = cluster.command("submit", "local[2]", Path("p.zip"))
    more = cluster.command("submit", "local[2]", Path("p.zip"), object_store.placed("out"))
    assert more[: len(plain)] == plain
    assert more[len(plain) :] == [
        "--set=table.path=s3://privrisk/table",
        "--set=dictionary.path=s3://privrisk/population",
        "--set=output.path=s3://privrisk/out",
        "--set=run.scratch=s3://privrisk/scratch",
    ]


def test_a_cluster_that_shares_nothing_is_against_the_local_run_on_files_and_the_one_in_the_store():
    found = cluster_apart.relative([result(seconds=s, peak=1, rows=1) for s in (20, 25, 30)])
    assert [one.parameters["time_to_local"] for one in found] == [1.0, 1.25, 1.5]
    assert [one.parameters["time_to_stored"] for one in found] == [0.8, 1.0, 1.2]
    assert {one.parameters["time_to_local_at_most"] for one in found} == {1.4}
    assert {one.parameters["time_to_local_at_most"] for one in cluster.relative(found)} == {1.2}


def test_a_worker_that_sees_what_is_the_drivers_is_an_error(tmp_path):
    if not standalone.can_hide(tmp_path):
        pytest.skip("this user may not make mount namespaces")
    (tmp_path / "package.zip").touch()
    program = ["sh", "-c", "echo; exec sleep 60"]
    apart, beside = (
        subprocess.Popen([*before, *program], stdout=subprocess.PIPE)
        for before in ([*standalone._NAMESPACE, str(tmp_path)], [])
    )
    try:
        for one in (apart, beside):
            assert one.stdout is not None
            one.stdout.readline()  # it has started
        cluster_apart.refuse_shared([apart.pid], tmp_path)
        with pytest.raises(case_study.BenchmarkError, match="sees the driver's directory"):
            cluster_apart.refuse_shared([apart.pid, beside.pid], tmp_path)
    finally:
        for one in (apart, beside):
            one.kill()
            one.communicate()


def test_without_mount_namespaces_nothing_is_measured(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(cluster_apart, "can_hide", lambda _: False)
    assert command.main(["cluster-apart", "--rows", "200", "--cache", str(tmp_path)]) == 1
    assert "may not make mount namespaces" in capsys.readouterr().err


# ---- a hundred million rows


def test_many_rows_are_held_against_the_floor_in_pieces(tmp_path, monkeypatch, capsys):
    put_floor_in_place_of_the_product(monkeypatch)
    monkeypatch.setattr(hundred_million, "_PART", 100)
    target = tmp_path / "found.json"
    arguments = ["hundred-million", "--rows", "950", "--cache", str(tmp_path / "cache"), "--json", str(target)]
    assert command.main(arguments) == 0
    (found,) = json.loads(target.read_text())
    assert found["parameters"]["records_compared"] == found["parameters"]["rows"] == 950
    assert found["parameters"]["dictionary_rows"] == 94
    assert "read and write" in found["parameters"]["floor_phases"]
    assert (found["parameters"]["ratio_at_most"], found["parameters"]["peak_mb_at_most"]) == (4, 4096)
    assert capsys.readouterr().out.splitlines()[1].startswith("hundred-million")
    (data,) = (tmp_path / "cache").iterdir()
    assert len(list((data / "table").iterdir())) == 10
    assert hundred_million.prepare(950, tmp_path / "cache") == data


def test_at_the_full_size_the_register_is_the_published_one():
    assert hundred_million.dictionary_rows(hundred_million.ROWS) == case_study.DICTIONARY_ROWS


# ---- Spark's own readers


def test_a_connector_that_is_not_there_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PRIVRISK_CONNECTORS", str(tmp_path))
    assert command.main(["readers", "--rows", "200", "--cache", str(tmp_path / "cache")]) == 1
    assert "No delta-spark_*.jar" in capsys.readouterr().err
    (tmp_path / "delta-spark_4.2_2.13-4.4.0.jar").touch()
    with pytest.raises(case_study.BenchmarkError, match=r"No delta-storage-\*\.jar"):
        readers.run(rows=200, cache=tmp_path / "cache")
    assert not (tmp_path / "cache").exists()


def test_csv_and_delta_tables_hold_the_same_rows(tmp_path):
    data = case_study.prepare(300, tmp_path)
    copies = readers.prepare(data)
    assert readers.prepare(data) == copies
    for place in ("table", "population"):
        rows = pq.read_table(data / place)
        uris = [uri.removeprefix("file://") for uri in DeltaTable(copies / "delta" / place).file_uris()]
        assert pq.read_table(sorted(uris)) == rows
        files = sorted((copies / "csv" / place).iterdir())
        types = pc.ConvertOptions(column_types=rows.schema)
        assert len(files) == 4
        assert pa.concat_tables([pc.read_csv(file, convert_options=types) for file in files]) == rows


def test_readers_are_against_plain_parquet_and_each_is_asked_for_its_format(tmp_path, monkeypatch, capsys):
    for name in ("delta-spark_1.jar", "delta-storage-1.jar"):
        (tmp_path / name).touch()
    monkeypatch.setenv("PRIVRISK_CONNECTORS", str(tmp_path))
    put_floor_in_place_of_the_product(monkeypatch)
    plain = case_study.run_product
    asked = []

    def release(policy, data, out, options, environment):
        asked.append((options, environment))
        return plain(data, out)

    monkeypatch.setattr(case_study, "release", release)
    target = tmp_path / "readers.json"
    arguments = ["readers", "--rows", "300", "--cache", str(tmp_path / "cache"), "--json", str(target)]
    assert command.main(arguments) == 0
    results = json.loads(target.read_text())
    assert [one["name"] for one in results] == ["readers-parquet", "readers-csv", "readers-delta"]
    for one in results:
        expected = one["seconds"] / results[0]["seconds"]
        # Seconds are written with four digits, and the ratio of them as they were with three behind the point.
        rounding = 5e-4 * (1 + 2.01 * expected)
        assert one["parameters"]["time_to_plain"] == pytest.approx(expected, abs=rounding)
    assert "to plain" in capsys.readouterr().out
    (csv, of_csv), (delta, of_delta) = asked
    copies = next((tmp_path / "cache").glob("readers-of-*"))
    for part, place in (("table", "table"), ("dictionary", "population")):
        assert {f"--set={part}.format=csv", f"--set={part}.path={copies}/csv/{place}"} <= set(csv)
        assert {f"--set={part}.path=null", f"--set={part}.catalog=delta.`{copies}/delta/{place}`"} <= set(delta)
    assert of_csv == {}
    jars = f"--jars {tmp_path}/delta-spark_1.jar,{tmp_path}/delta-storage-1.jar "
    assert jars in of_delta["PYSPARK_SUBMIT_ARGS"]


# ---- the planned attack


def test_the_planned_attack_agrees_with_the_floor_and_both_programs(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(fmdp, "PROGRAM_ROWS", (50, 5_000))
    monkeypatch.setattr(fmdp, "FLAT_RECORDS", 3)
    target = tmp_path / "fmdp.json"
    assert command.main(["fmdp", "--rows", "40", "--json", str(target)]) == 0
    results = json.loads(target.read_text())
    assert [one["name"] for one in results] == ["attack", *["two-level program"] * 2, *["flat program"] * 2]
    assert [one["parameters"]["rows"] for one in results] == [40, 40, 40, 3, 3]
    assert [one["parameters"]["dictionary_rows"] for one in results] == [fmdp.ROWS, 50, 5_000, 50, 5_000]
    assert results[0]["parameters"]["known_threshold"] == 48
    assert "two-level program" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["payoff_of_belief", "flat", "TwoLevel"])
def test_payoffs_that_differ_are_an_error(name, monkeypatch, capsys):
    monkeypatch.setattr(fmdp, "PROGRAM_ROWS", (500_000,))
    monkeypatch.setattr(fmdp, "FLAT_RECORDS", 2)
    other = replace(fmdp.ATTACK, gain=8000.001)
    real = getattr(fmdp, name)
    if name == "payoff_of_belief":
        monkeypatch.setattr(fmdp, name, lambda solution, rows, densities: real(solve(other), rows, densities))
    else:
        monkeypatch.setattr(fmdp, name, lambda attack, *belief: real(other, *belief))
    assert command.main(["fmdp", "--rows", "3"]) == 1
    assert "payoffs differ" in capsys.readouterr().err


def test_records_under_attack_are_the_same_each_time():
    first, second = (fmdp.Targets.generated(1_000, fmdp.ROWS) for _ in range(2))
    assert first.densities.tolist() == second.densities.tolist()
    assert first.group_sizes.tolist() == second.group_sizes.tolist()
    assert (first.densities > 0).all()
    assert 0.2 < (first.group_sizes < 48).mean() < 0.8


# ---- every measure


def test_measures_are_held_against_the_count_of_the_same_run(tmp_path, monkeypatch, capsys):
    stages = {"read": 9.0, "encode": 1.5, "count": 0.5, "measure": 1.0, "compare": 2.0, "attack": 0.25, "write": 7.0}
    stages |= {"identify": 0.125, "tell": 0.125}

    def assess(data: Path, masked: Path, out: Path) -> Measured:
        assert (data / "population").is_dir()
        assert (masked / "release").is_dir()
        out.mkdir()
        told = [{"name": name, "seconds": seconds} for name, seconds in stages.items()]
        (out / "assessment.json").write_text(json.dumps({"stages": told}))
        (out / "measures.json").write_text(json.dumps([{"name": name, "value": 0} for name in measures.KINDS]))
        return Measured(30.0, 900.0, 40.0, 0, "", "")

    monkeypatch.setattr(measures, "run_product", assess)
    put_floor_in_place_of_the_product(monkeypatch, '{"count": 0.25}')
    target = tmp_path / "measures.json"
    assert command.main(["measures", "--rows", "200", "--cache", str(tmp_path), "--json", str(target)]) == 0
    (found,) = json.loads(target.read_text())
    assert (found["seconds"], found["floor_seconds"], found["ratio"], found["peak_mb"]) == (3.5, 2.0, 1.75, 900.0)
    assert found["parameters"]["case_study_count"] == 0.25
    assert found["parameters"]["stages"] == stages
    assert found["parameters"]["outside_stages"] == pytest.approx(8.5)
    assert capsys.readouterr().out.splitlines()[1].startswith("measures")


def test_a_kind_of_measure_that_is_missing_is_an_error(tmp_path):
    values = [{"name": name, "value": None if name == "rid" else 0} for name in measures.KINDS]
    (tmp_path / "measures.json").write_text(json.dumps(values))
    with pytest.raises(case_study.BenchmarkError, match="must hold rid"):
        measures.number_of_measures(tmp_path)


def test_the_masked_release_generalizes_every_record_and_keeps_its_id(tmp_path):
    data = case_study.prepare(200, tmp_path)
    masked = measures.prepare(data)
    assert measures.prepare(data) == masked
    table, release = (
        {row["person_id"]: row for row in pq.read_table(masked / name).to_pylist()} for name in ("table", "release")
    )
    assert len(table) == len(release) == 200
    assert list(table) != list(release)
    counties = dict(line.split(";")[:2] for line in (data / "city.csv").read_text().splitlines())
    for person, row in release.items():
        original = table[person]
        assert row["city"] == counties[original["city"]]
        assert row["birthdate"] == str(original["birthdate"].year)
        assert int(row["income"][1:].split(",")[0]) <= original["income"] < int(row["income"][:-1].split(",")[1])
        assert row["diagnosis"] == original["diagnosis"]
    moved = [row["savings"] - table[person]["savings"] for person, row in release.items()]
    assert 0 < abs(sum(moved) / 200) < max(map(abs, moved)) / 2


def test_visits_have_persons_of_very_different_numbers_of_rows(tmp_path):
    population = case_study.prepare(2000, tmp_path)
    data = persons.prepare(population, 2000, 350)
    assert persons.prepare(population, 2000, 350) == data
    visits = pq.read_table(data / "table")
    assert visits.num_rows == len(set(visits.column("visit_id").to_pylist())) == 2000
    often = Counter(visits.column("person_id").to_pylist())
    assert len(often) == 350
    assert min(often.values()) <= 2
    assert max(often.values()) > 50
    vectors = set(zip(*(visits.column(name).to_pylist() for name in ("person_id", "city", "income")), strict=True))
    assert 400 < len(vectors) < 1500


@pytest.mark.parametrize("wrong", [0, 1])
def test_a_number_of_persons_that_is_not_the_literal_one_is_an_error(tmp_path, wrong):
    population = case_study.prepare(2000, tmp_path)
    data = persons.prepare(population, 2000, 350)
    rows = pq.read_table(data / "table").to_pylist()
    top = {"level_city": 4, "level_race": 2, "level_age": 3, "level_income": 3}
    decided = [{"visit_id": row["visit_id"], "consistent": 350, **top} for row in rows]
    first = {row["person_id"] for row in rows if row["race"] == rows[0]["race"]}
    decided[0] |= {"level_race": 0, "consistent": len(first) + wrong}
    (tmp_path / "decisions").mkdir()
    pq.write_table(pa.Table.from_pylist(decided), tmp_path / "decisions" / "part.parquet")
    if wrong:
        with pytest.raises(case_study.BenchmarkError, match="not the literal one"):
            persons.check(population, data / "table", tmp_path / "decisions")
    else:
        assert persons.check(population, data / "table", tmp_path / "decisions") == 25


def test_persons_are_counted_by_shuffles_at_one_and_four_times_the_size(tmp_path, monkeypatch, capsys):
    asked = []

    def release(population, data, out, options):
        asked.append((pq.read_table(data / "table").num_rows, options))
        (out / "vault").mkdir(parents=True)
        (out / "vault" / "summary.json").write_text('{"seconds": {"count": 1.0}}')
        return Measured(10.0 if len(asked) < 4 else 60.0, 900.0, 70.0, 0, "", "")

    monkeypatch.setattr(persons, "_release", release)
    monkeypatch.setattr(persons, "check", lambda *_: 25)
    target = tmp_path / "entities.json"
    assert command.main(["entities", "--rows", "600", "--cache", str(tmp_path), "--json", str(target)]) == 0
    shuffled, by_rows = "--set=counting.plan=shuffle", "--set=table.entity_id=null"
    assert asked == [(600, [shuffled, by_rows]), (600, (shuffled,)), (2400, [shuffled, by_rows]), (2400, (shuffled,))]
    first, second = json.loads(target.read_text())
    assert [one["parameters"]["rows"] for one in (first, second)] == [600, 2400]
    assert [one["parameters"]["dictionary_rows"] for one in (first, second)] == [106, 424]
    assert (second["parameters"]["time_to_linear"], second["parameters"]["time_to_linear_at_most"]) == (1.5, 1.2)
    assert "to linear" in capsys.readouterr().out
    assert entities.FACTORS == (1, 4)


# ---- measuring


def test_memory_of_processes_beside_the_command_counts_with_their_children():
    hold = "held = bytearray(60 << 20); print(flush=True); import time; time.sleep(60)"
    nested = f"import subprocess, sys; subprocess.run([sys.executable, '-S', '-c', {hold!r}])"
    other = subprocess.Popen(
        [sys.executable, "-S", "-c", nested], stdout=subprocess.PIPE, start_new_session=True, text=True
    )
    try:
        assert other.stdout is not None
        other.stdout.readline()
        held = [sys.executable, "-S", "-c", "import time; held = bytearray(60 << 20); time.sleep(0.5)"]
        assert 60 < measure(held).peak_mb < 100
        assert 120 < measure(held, beside=(other.pid,)).peak_mb < 200
    finally:
        os.killpg(other.pid, signal.SIGKILL)
        other.communicate()


def test_a_variable_can_be_taken_away(monkeypatch):
    monkeypatch.setenv("MARK", "here")
    shown = [sys.executable, "-S", "-c", "import os; print(os.environ.get('MARK'))"]
    assert measure(shown).output == "here\n"
    assert measure(shown, environment={"MARK": None}).output == "None\n"


def test_jobs_are_measured_once_and_a_failure_is_a_line_of_the_table(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PRIVRISK_ADULT", str(tmp_path / "none"))
    chosen = {name: jobs.JOBS[name] for name in ("release-risk", "fit", "apply", "assess-release")}
    monkeypatch.setattr(jobs, "JOBS", chosen)
    commands = []

    def run(words, **more):
        if words[1:3] == ["-m", "benchmarks.jobs"]:
            return measure(words, **more)
        commands.append(words[3:])
        code = int(words[3] == "assess")
        return Measured(2.0, 100.0, 2.0, code, "", "the reason" if code else "")

    monkeypatch.setattr(jobs, "measure", run)
    assert command.main(["jobs", "--rows", "500", "--cache", str(tmp_path)]) == 0
    lines = capsys.readouterr()
    assert [line.split()[0] for line in lines.out.splitlines()[1:]] == list(chosen)
    assert "assess-release ended with exit code 1: the reason" in lines.err
    assert [one[0] for one in commands] == ["release", "fit", "approve", "release", "assess"]
    policies = [yaml.safe_load(Path(one[1]).read_text()) for one in commands if one[0] == "fit"]
    assert policies[0]["table"]["record_id"] == "id"
    # A second call measures nothing again.
    assert command.main(["jobs", "--rows", "500", "--cache", str(tmp_path)]) == 0
    assert len(commands) == 5


@pytest.mark.parametrize("name", jobs.JOBS)
def test_the_policy_of_each_job_is_valid(name, tmp_path, monkeypatch):
    monkeypatch.setenv("PRIVRISK_ADULT", str(tmp_path / "none"))
    data = jobs.prepare(20, tmp_path / "cache")
    written = []
    monkeypatch.setattr(jobs, "measure", lambda words, **_: written.append(words) or Measured(1, 1, 1, 0, "", ""))
    (tmp_path / name).mkdir()
    jobs._run(name, jobs.JOBS[name], data, tmp_path, 20)
    parse(yaml.safe_load(Path(written[-1][4]).read_text()), releasing="release" in written[-1])
