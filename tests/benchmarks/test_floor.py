from __future__ import annotations

import csv
import json
import sys
from datetime import date, timedelta
from functools import cache
from itertools import product
from math import exp
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from benchmarks import __main__ as command
from benchmarks import case_study, floor, measure
from privrisk_spark.pipelines.synthetic import population

ATTRIBUTES = ("city", "race", "birthdate", "income")
HEIGHTS = (4, 2, 3, 4)


def read(path: Path) -> pa.Table:
    return pa.concat_tables([pq.ParquetFile(part).read() for part in sorted(path.glob("part-*.parquet"))])


# ---- the literal twin: a node is its path of labels up to the root


def paths(data: Path) -> list[dict[str, tuple[str, ...]]]:
    found: list[dict[str, tuple[str, ...]]] = []
    for name in ATTRIBUTES:
        if name == "birthdate":
            first, end = date(1906, 1, 1), date(2007, 1, 1)
            days = [first + timedelta(days=i) for i in range((end - first).days)]
            found.append({str(day): (str(day), str(day)[:7], str(day)[:4], "*") for day in days})
        else:
            with (data / f"{name}.csv").open(encoding="utf-8", newline="") as lines:
                found.append({row[0]: tuple(row) for row in csv.reader(lines, delimiter=";")})
    return found


def node_weights(leaves: dict[str, tuple[str, ...]], leaf_weight: float) -> dict[tuple[str, ...], float]:
    """Modified harmonic mean over children, root 0 (F12 section 3.2)."""
    children: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
    for path in leaves.values():
        for level in range(len(path) - 1):
            children.setdefault(path[level + 1 :], set()).add(path[level:])

    @cache
    def weight(node: tuple[str, ...]) -> float:
        if node == ("*",):
            return 0.0
        if node not in children:
            return leaf_weight
        return 1 / sum(1 / weight(child) for child in sorted(children[node]))

    return {path[level:]: weight(path[level:]) for path in leaves.values() for level in range(len(path))}


def generalizes(a: tuple[str, ...], b: tuple[str, ...]) -> bool:
    return b[len(b) - len(a) :] == a


def naive(data: Path, utility_at_least: float, weights: dict[str, float]):
    """Per record: levels, risk, utility, count, released labels, how many nodes tie, absent or not."""
    leaves = paths(data)
    weight = [node_weights(leaves[i], weights[name]) for i, name in enumerate(ATTRIBUTES)]
    register = [
        (leaves[0][row["city"]], leaves[1][row["race"]], (str(2006 - row["age"]), "*"))
        for row in read(data / "population").to_pylist()
    ]

    @cache
    def consistent(attribute: int, node: tuple[str, ...]) -> frozenset[int]:
        if attribute == 3:
            return frozenset(range(len(register)))
        return frozenset(
            t
            for t, row in enumerate(register)
            if generalizes(row[attribute], node) or generalizes(node, row[attribute])
        )

    decided = []
    for row in read(data / "table").to_pylist():
        record = [leaves[i][str(row[name])] for i, name in enumerate(ATTRIBUTES)]
        nodes = []
        for levels in product(*(range(height + 1) for height in HEIGHTS)):
            value = [record[i][levels[i] :] for i in range(4)]
            count = len(frozenset.intersection(*(consistent(i, value[i]) for i in range(4))))
            utility = sum(len(node) - 1 for node in value)
            phi = exp(sum(weight[i][value[i]] for i in range(4)))
            nodes.append([levels, phi, utility, count, [node[0] for node in value]])
        absent = nodes[0][3] == 0
        feasible = []
        for levels, phi, utility, count, labels in nodes:
            if utility >= utility_at_least:
                feasible.append((levels, phi / (count + absent), utility, count + absent, labels))
        least = min(node[1] for node in feasible)
        tied = [node for node in feasible if node[1] <= least * (1 + 1e-12)]
        decided.append((*min(tied, key=lambda node: (-node[2], node[0])), len(tied), absent))
    return decided


def agree(data: Path, out: Path, utility_at_least: float, weights: dict[str, float]):
    result = floor.floor(data, out, utility_at_least=utility_at_least)
    table, decisions, release = read(data / "table"), read(out / "decisions"), read(out / "release")
    expected = naive(data, utility_at_least, weights)
    assert decisions["person_id"].to_pylist() == table["person_id"].to_pylist()
    levels = zip(*(decisions[f"level_{name}"].to_pylist() for name in ATTRIBUTES), strict=True)
    assert list(levels) == [row[0] for row in expected]
    np.testing.assert_allclose(decisions["risk"].to_numpy(), [row[1] for row in expected], rtol=1e-12)
    assert decisions["utility"].to_pylist() == [row[2] for row in expected]
    assert decisions["consistent"].to_pylist() == [row[3] for row in expected]
    labels = zip(*(release[name].to_pylist() for name in ATTRIBUTES), strict=True)
    assert [list(row) for row in labels] == [row[4] for row in expected]
    assert release["diagnosis"].to_pylist() == table["diagnosis"].to_pylist()
    assert release.column_names == [*ATTRIBUTES, "diagnosis"]
    assert result.rows == table.num_rows
    assert result.mean_risk == pytest.approx(np.mean([row[1] for row in expected]), rel=1e-12)
    assert result.mean_utility == pytest.approx(np.mean([row[2] for row in expected]))
    return expected


def thin(data: Path, keep: int) -> None:
    """Keep the first people of each part of the register, so that some records are not in it."""
    for part in (data / "population").iterdir():
        pq.write_table(pq.ParquetFile(part).read().slice(0, keep), part)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("data")
    population.generate(path, people=600, rows=300, seed=5, nulls=False, files=3)
    return path


@pytest.mark.parametrize("utility_at_least", [8, 7.5, 13, 3, 0])
def test_floor_is_the_literal_optimum(data, tmp_path, utility_at_least):
    agree(data, tmp_path, utility_at_least, floor.WEIGHTS)


@pytest.mark.parametrize("utility_at_least", [8, 9, 10])
def test_the_sizes_of_months_years_and_income_bins_matter(data, tmp_path, monkeypatch, utility_at_least):
    # heavy enough that birthdate and income are generalized before city, although that multiplies the count
    weights = {"city": 0.3, "race": 0.4, "birthdate": 50, "income": 75}
    monkeypatch.setattr(floor, "WEIGHTS", weights)
    expected = agree(data, tmp_path, utility_at_least, weights)
    assert {row[0][2] for row in expected} & {1, 2}
    assert {row[0][3] for row in expected} & {2, 3}


@pytest.mark.parametrize("utility_at_least", [8, 11])
def test_records_absent_from_the_register_are_added_to_it(tmp_path, utility_at_least):
    population.generate(tmp_path / "data", people=400, rows=200, seed=6, nulls=False, files=2)
    thin(tmp_path / "data", 40)
    expected = agree(tmp_path / "data", tmp_path / "out", utility_at_least, floor.WEIGHTS)
    assert 0 < sum(row[-1] for row in expected) < 200


def test_ties_go_to_the_lexicographically_smallest_levels(tmp_path, monkeypatch):
    # a county of three cities and a broad group of three weigh the same, and a register of one person has
    # equal counts at (0, 1, …) and (1, 0, …); the other weights are too small for those levels to be given up
    weights = {"city": 0.3, "race": 0.3, "birthdate": 1e-3, "income": 1e-3}
    monkeypatch.setattr(floor, "WEIGHTS", weights)
    population.generate(tmp_path / "data", people=400, rows=300, seed=7, nulls=False, files=1)
    thin(tmp_path / "data", 1)
    expected = agree(tmp_path / "data", tmp_path / "out", 12, weights)
    assert sum(row[-2] > 1 for row in expected) > 10


def test_blocks_do_not_change_the_result(data, tmp_path, monkeypatch):
    floor.floor(data, tmp_path / "a")
    monkeypatch.setattr(floor, "_BLOCK", 7)
    floor.floor(data, tmp_path / "b")
    assert read(tmp_path / "a" / "decisions").equals(read(tmp_path / "b" / "decisions"))
    assert read(tmp_path / "a" / "release").equals(read(tmp_path / "b" / "release"))


def test_file_by_file_the_floor_writes_the_same(data, tmp_path):
    whole = floor.floor(data, tmp_path / "whole")
    pieces = floor.floor(data, tmp_path / "pieces", in_pieces=True)
    for name in ("release", "decisions"):
        assert read(tmp_path / "pieces" / name) == read(tmp_path / "whole" / name)
    assert pieces.cells > whole.cells
    assert (pieces.rows, pieces.mean_risk, pieces.mean_utility) == (whole.rows, whole.mean_risk, whole.mean_utility)


def test_floor_as_a_program(data, tmp_path, capsys):
    assert floor.main([str(data), str(tmp_path), "8"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["rows"], printed["dictionary_rows"], printed["mean_utility"]) == (300, 600, 8.0)
    assert list(printed["seconds"]) == ["hierarchies", "count", "read", "decide", "write"]
    assert floor.main(["only one"]) == 2
    assert "usage" in capsys.readouterr().err


def test_floor_does_not_pay_for_pandas(data, tmp_path):
    code = "import sys, benchmarks.floor as f; f.floor(*sys.argv[1:]); print('pandas' in sys.modules)"
    ran = measure.measure(
        [sys.executable, "-c", code, str(data), str(tmp_path)], directory=Path(floor.__file__).parent.parent
    )
    assert (ran.exit_code, ran.output) == (0, "False\n")


def test_floor_refuses_what_it_does_not_know(tmp_path):
    population.generate(tmp_path / "nulls", people=600, rows=500, seed=5)
    with pytest.raises(ValueError, match="without missing values"):
        floor.floor(tmp_path / "nulls", tmp_path / "out")
    population.generate(tmp_path / "single", people=50, rows=20, nulls=False)
    lines = (tmp_path / "single" / "race.csv").read_text().splitlines()
    (tmp_path / "single" / "race.csv").write_text("\n".join(lines[:-1]) + "\n")
    with pytest.raises(ValueError, match="single child"):
        floor.floor(tmp_path / "single", tmp_path / "out")
    population.generate(tmp_path / "high", people=50, rows=20, nulls=False)
    with pytest.raises(ValueError, match="at most 13"):
        floor.floor(tmp_path / "high", tmp_path / "out", utility_at_least=13.5)


# ---- measuring


HOLD = "import time; held = bytearray(60 << 20); time.sleep(1)"
SPAWN = "import subprocess, sys; p = subprocess.Popen([sys.executable, '-S', '-c', {code!r}], {options})"
TREES = {
    "child": f"{SPAWN.format(code=HOLD, options='')}; {HOLD}; p.wait()",
    "session": f"{SPAWN.format(code=HOLD, options='start_new_session=True')}; {HOLD}; p.wait()",
    "orphan": f"{SPAWN.format(code=SPAWN.format(code=HOLD, options=''), options='')}; p.wait(); {HOLD}",
}


@pytest.mark.parametrize("tree", TREES)
def test_measure_counts_the_whole_tree(tree):
    ran = measure.measure([sys.executable, "-S", "-W", "ignore", "-c", TREES[tree]], interval=0.05)
    assert ran.exit_code == 0
    assert 120 < ran.peak_mb < 170  # two processes hold 60 MiB each
    assert 1 <= ran.seconds < 10


def test_measure_reports_failure_and_output():
    code = "import os, sys; print(os.environ['MARK']); print('went wrong', file=sys.stderr); sys.exit(7)"
    ran = measure.measure([sys.executable, "-S", "-c", code], environment={"MARK": "here"})
    assert (ran.exit_code, ran.output, ran.errors) == (7, "here\n", "went wrong\n")
    killed = measure.measure([sys.executable, "-S", "-c", "import os; os.kill(os.getpid(), 9)"])
    assert killed.exit_code == -9
    with pytest.raises(OSError, match="no-such-program"):
        measure.measure(["/no-such-program"])


# ---- comparing and reporting


def altered(source: Path, target: Path, **columns) -> Path:
    rows = read(source).sort_by([("person_id", "descending")])  # another order than the floor's
    for name, change in columns.items():
        rows = rows.set_column(rows.column_names.index(name), name, change(rows[name]))
    target.mkdir(parents=True)
    pq.write_table(rows, target / "part-0.parquet")
    return target


def test_compare_accepts_the_same_decisions_in_any_order(data, tmp_path):
    floor.floor(data, tmp_path / "floor")
    ours = tmp_path / "floor" / "decisions"
    same = altered(ours, tmp_path / "same", risk=lambda column: pc.multiply(column, 1 + 1e-13))
    assert case_study.compare(ours, same, rows=300) == 300
    assert 50 < case_study.compare(ours, same, rows=300, sample=100) < 150


@pytest.mark.parametrize(
    ("column", "change"),
    [
        ("level_birthdate", lambda column: pc.cast(pc.add(column, 1), pa.int8())),
        ("consistent", lambda column: pc.add(column, 1)),
        ("risk", lambda column: pc.multiply(column, 1 + 1e-6)),
        ("risk", lambda column: pc.multiply(column, float("nan"))),
        ("utility", lambda column: pc.subtract(column, 1.0)),
    ],
)
def test_compare_names_the_column_that_differs(data, tmp_path, column, change):
    floor.floor(data, tmp_path / "floor")
    ours = tmp_path / "floor" / "decisions"
    other = altered(ours, tmp_path / "other", **{column: change})
    with pytest.raises(case_study.BenchmarkError, match=rf"these differ: {column} in 300\.$"):
        case_study.compare(ours, other, rows=300)


def test_compare_needs_all_rows_and_the_same_records(data, tmp_path):
    floor.floor(data, tmp_path / "floor")
    ours = tmp_path / "floor" / "decisions"
    with pytest.raises(case_study.BenchmarkError, match="300 rows instead of 301"):
        case_study.compare(ours, ours, rows=301)
    other = altered(ours, tmp_path / "other", person_id=lambda column: pc.utf8_replace_slice(column, 1, 2, "9"))
    with pytest.raises(case_study.BenchmarkError, match="same records"):
        case_study.compare(ours, other, rows=300)


def test_prepare_generates_once_and_in_proportion(tmp_path, monkeypatch):
    data = case_study.prepare(1_000, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [data.name]
    assert read(data / "population").num_rows == 1_739  # 1000 * 9857623 / 5667004 = 1739.477
    monkeypatch.setattr(population, "generate", lambda *_, **__: pytest.fail("generated again"))
    assert case_study.prepare(1_000, tmp_path) == data
    monkeypatch.undo()
    (data / population.MANIFEST).unlink()
    assert case_study.prepare(1_000, tmp_path) == data
    assert read(data / "table").num_rows == 1_000
    assert case_study.dictionary_rows(case_study.ROWS) == case_study.DICTIONARY_ROWS


def stand_in(tmp_path: Path, monkeypatch, body: str) -> None:
    """Put a program in the place of the product: the floor itself, then ``body``."""
    program = tmp_path / "product.py"
    program.write_text(
        "import os\nfrom benchmarks.floor import floor\n"
        "out = os.environ['CASE_STUDY_OUT'] + '/vault'\nfloor(os.environ['CASE_STUDY_DATA'], out)\n"
        "open(out + '/summary.json', 'w').write('{\"seconds\": {\"read\": 0.1}}')\n" + body
    )

    def run(data, out):
        paths = {"CASE_STUDY_DATA": str(data), "CASE_STUDY_OUT": str(out), "PYTHONPATH": "."}
        return case_study.checked(
            "product",
            measure.measure([sys.executable, str(program)], environment=paths, directory=case_study.root()),
        )

    monkeypatch.setattr(case_study, "run_product", run)
    monkeypatch.setattr(case_study, "_FLOOR_RUNS", 1)


def test_the_benchmark_reports_a_ratio(tmp_path, monkeypatch, capsys):
    stand_in(tmp_path, monkeypatch, "")
    target = tmp_path / "new" / "results.json"
    arguments = ["case-study", "--rows", "500", "--cache", str(tmp_path / "cache"), "--json", str(target)]
    assert command.main(arguments) == 0
    (result,) = json.loads(target.read_text())
    assert list(result) == ["name", "seconds", "floor_seconds", "ratio", "peak_mb", "parameters"]
    assert result["ratio"] == pytest.approx(result["seconds"] / result["floor_seconds"], rel=0.01)
    assert (result["parameters"]["rows"], result["parameters"]["dictionary_rows"]) == (500, 870)
    assert result["parameters"]["records_compared"] == 500
    assert "case-study" in capsys.readouterr().out


def test_the_benchmark_reports_nothing_if_the_product_differs_or_fails(tmp_path, monkeypatch, capsys):
    spoil = (
        "import pyarrow.parquet as pq, pyarrow.compute as pc, glob\n"
        "part = sorted(glob.glob(out + '/decisions/*'))[0]\n"
        "rows = pq.ParquetFile(part).read()\n"
        "pq.write_table(rows.set_column(7, 'consistent', pc.add(rows['consistent'], 1)), part)\n"
    )
    target = tmp_path / "results.json"
    arguments = ["case-study", "--rows", "500", "--cache", str(tmp_path / "cache"), "--json", str(target)]
    for body, message in ((spoil, "these differ: consistent"), ("raise SystemExit(3)", "exit code 3")):
        stand_in(tmp_path, monkeypatch, body)
        assert command.main(arguments) == 1
        printed = capsys.readouterr()
        assert message in printed.err
        assert not printed.out
        assert not target.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["case-stud"],
            "no benchmark is named 'case-stud' (did you mean 'case-study'?); there are: case-study",
        ),
        (["case-study", "--rows", "0"], "--rows must be at least 1, got 0"),
    ],
)
def test_wrong_commands_are_refused(arguments, message, capsys):
    with pytest.raises(SystemExit) as ended:
        command.main(arguments)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err
