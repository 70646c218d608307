"""The comparison with ARX and sdcMicro, without either: inputs, planted differences, and what the command prints."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from benchmarks import __main__ as command
from benchmarks import case_study, references
from benchmarks.jobs import COLUMNS
from benchmarks.references import arx, common, sdcmicro
from privrisk_spark.hierarchies.files import read_arx
from privrisk_spark.policy import reading

HIERARCHY = "20;20-29;*\n30;30-39;*\n21;20-29;*\n?;*;*\n"
"""A value of another branch between two of one branch, and a short branch."""

LINES = [f"record {number}" for number in range(5)]
CLASSES = {("a",) * 8: 7, ("b",) * 8: 5, ("*",) * 8: 3}
ANSWER = arx.Answer(dict.fromkeys(COLUMNS, 0), 0.25, CLASSES)
RISK: dict[str, list[Any]] = {
    "id": ["10", "9", "0"],
    "class_size": [3, 2, 1],
    "weighted_population": [300.0, 205.0, 134.0],
    "individual_risk": [0.005, 0.0094, 0.0368],
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PRIVRISK_ADULT", str(tmp_path))
    (tmp_path / "adult.csv").write_text("\n".join(["head", *LINES]) + "\n", encoding="utf-8")
    for name in COLUMNS:
        (tmp_path / f"adult_hierarchy_{name}.csv").write_text(HIERARCHY, encoding="utf-8")
    return tmp_path


def test_write_hierarchies_of_the_policy_keeps_every_path(home: Path) -> None:
    arx.write_hierarchies(reading.load([common.POLICY], environment=common.adult()), home / "written")
    assert {file.stem for file in (home / "written").iterdir()} == set(COLUMNS)
    for name in COLUMNS:
        given, written = home / f"adult_hierarchy_{name}.csv", home / "written" / f"{name}.csv"
        assert set(read_arx(written, attribute=name)[0]) == set(read_arx(given, attribute=name)[0])


def test_table_with_the_rows_of_adult_equals_adult(home: Path) -> None:
    assert common.table(5, home / "cache").read_text() == (home / "adult.csv").read_text()


def test_table_with_more_rows_draws_them_by_the_seed(home: Path) -> None:
    first, second = (common.table(200, home / name).read_text() for name in ("cache", "other"))
    assert first == second
    assert set(first.splitlines()) == {"head", *LINES}
    assert len(first.splitlines()) == 201


def test_table_weighted_has_ids_and_weights(home: Path) -> None:
    head, *lines = common.table(200, home / "cache", weighted=True).read_text().splitlines()
    assert head == "id;head;weight"
    ids, records, weights = zip(*(line.split(";") for line in lines), strict=True)
    assert (list(ids), set(records)) == ([str(number) for number in range(200)], set(LINES))
    assert all(40 <= int(weight) <= 160 for weight in weights)


def test_build_interrupted_leaves_no_file(tmp_path: Path) -> None:
    def make(place: Path) -> None:
        place.write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        common.build(tmp_path / "cache" / "made", make)
    assert not list((tmp_path / "cache").iterdir())


def test_answer_of_classes_counts_suppressed_rows_and_k() -> None:
    assert (ANSWER.suppressed, ANSWER.k) == (3, 5)


@pytest.mark.parametrize(
    ("planted", "expected"),
    [
        ({}, []),
        ({"levels": dict.fromkeys(COLUMNS, 1)}, []),  # several schemes are optimal
        ({"loss": 0.2500001}, ["the least loss"]),
        ({"classes": CLASSES | {("*",) * 8: 4}}, ["ARX suppresses 4 rows", "the levels are equal"]),
        ({"classes": CLASSES | {("b",) * 8: 4}}, ["the smallest class has 4", "the levels are equal"]),
        ({"classes": CLASSES | {("b",) * 8: 6}}, ["the levels are equal"]),
    ],
)
def test_arx_differences_planted_are_reported(planted: dict[str, Any], expected: list[str]) -> None:
    found = arx.differences(ANSWER, replace(ANSWER, **planted))
    assert len(found) == len(expected)
    assert all(line.startswith(start) for line, start in zip(found, expected, strict=True))


@pytest.mark.parametrize(
    ("column", "row", "value", "expected"),
    [
        ("class_size", 0, 3, ""),
        ("class_size", 0, 4, "class_size differs in 1 of 3 records"),
        ("weighted_population", 1, 205.001, "weighted_population differs in 1 of 3 records"),
        ("individual_risk", 0, 0.00506, ""),  # approximated: the class has three records
        ("individual_risk", 0, 0.0051, "individual_risk differs in 1 of 3 records"),
        ("individual_risk", 1, 0.00941, "individual_risk differs in 1 of 3 records"),
        ("individual_risk", 2, float("nan"), "individual_risk differs in 1 of 3 records"),
        ("id", 0, "11", "the two programs do not have the same records"),
    ],
)
def test_sdcmicro_differences_planted_are_reported(column: str, row: int, value: Any, expected: str) -> None:
    other = {name: list(values) for name, values in RISK.items()}
    other[column][row] = value
    reference = pa.table({name: values[::-1] for name, values in RISK.items()})
    found, _ = sdcmicro.differences(pa.table(other), reference)
    assert len(found) == bool(expected)
    assert not found or found[0].startswith(expected)


def test_references_without_sources_leaves_both_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["references"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [f"{name} is left out, because --{name} DIR is not given." for name in ("arx", "sdcmicro")]


def test_references_with_a_difference_exits_with_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    result = case_study.Result("references-arx", 2.0, 4.0, 1.0, {"rows": 5, "equal": False})
    monkeypatch.setattr(references.with_arx, "compare", lambda *_: (result, ["the least loss is another."]))
    assert command.main(["references", "--arx", str(tmp_path)]) == 1
    printed = capsys.readouterr()
    assert '"ratio": 0.5' in printed.out
    assert printed.err == "arx: the least loss is another.\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["jobs", "--arx", "."], "--arx needs the benchmark 'references'"),
        (["references", "--sdcmicro", "nowhere"], "--sdcmicro: the directory 'nowhere' does not exist"),
    ],
)
def test_main_with_a_wrong_source_exits_with_two(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(arguments)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err
