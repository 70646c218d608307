"""Every job writes the same bytes on the embedded engine as on Spark, needs no Java, and leaves nothing on the disk."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet
import pytest
import yaml
from engine_program import MORE, digests
from product import ROOT

from benchmarks.jobs import JOBS, prepare
from privrisk_spark.errors import SchemaError
from privrisk_spark.policy.dictionaries import Table
from privrisk_spark.tables.source_files import check_for_embedded

ROWS = 3_000

NO_JAVA = {"JAVA_HOME": "/nowhere", "PATH": "/usr/bin:/bin"}


def environment(engine: str, **more: str) -> dict[str, str]:
    """Of a process of its own; where there is no Java, unless it is asked for Spark."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    path = os.pathsep.join(map(str, (ROOT, ROOT / "tests")))
    return {**kept, "PYTHONPATH": path, "PRIVRISK_ENGINE": engine, **(NO_JAVA if engine == "embedded" else {}), **more}


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What each engine printed of each job."""
    place = tmp_path_factory.mktemp("engines")
    data = prepare(ROWS, place)
    found: dict[str, dict[str, Any]] = {}
    for engine in ("embedded", "spark"):
        # In one place after the other, as policies and manifests name it.
        home = place / "home"
        command = [sys.executable, str(ROOT / "tests" / "engine_program.py"), str(data), str(home), str(ROWS)]
        ran = subprocess.run(
            command, env=environment(engine), cwd=place, capture_output=True, text=True, timeout=900, check=False
        )
        assert ran.returncode == 0, ran.stderr[-3000:]
        found[engine] = {of["job"]: of for of in map(json.loads, ran.stdout.splitlines())}
        home.rename(place / engine)
    return found


@pytest.mark.parametrize("job", [*JOBS, *MORE])
def test_job_writes_the_same_bytes_on_both_engines(done: dict[str, dict[str, Any]], job: str) -> None:
    embedded, spark = done["embedded"][job], done["spark"][job]
    assert (embedded["code"], spark["code"]) == (0, 0), embedded["said"] + spark["said"]
    assert embedded["files"] == spark["files"]
    assert len(spark["files"]) >= 2 or job == "validate"


def privrisk(*arguments: str, cwd: Path, engine: str = "embedded", **more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "privrisk_spark.cli.app", *arguments]
    variables = environment(engine, **more)
    return subprocess.run(command, env=variables, cwd=cwd, capture_output=True, text=True, timeout=300, check=False)


def policy(place: Path, options: dict[str, Any]) -> None:
    document = {
        "version": 1,
        "run": {"name": "own", "engine": "embedded"},
        "table": {"path": "table.csv", "format": "csv", "options": {"sep": ";", "header": True, **options}},
        "columns": {
            "age": {"role": "quasi-identifier", "hierarchy": {"intervals": {"widths": [10], "domain": [0, 99]}}},
            "city": {"role": "sensitive"},
        },
        "decision": {"utility_at_least": 1},
        "output": {"path": "out", "vault": "vault"},
    }
    (place / "policy.yaml").write_text(yaml.safe_dump(document))


def released(place: Path) -> list[dict[str, str]]:
    (data,) = (place / "out" / "releases").glob("*/data/*.parquet")
    table: pa.Table = pa.parquet.read_table(data)
    return sorted(table.to_pylist(), key=str)


def test_csv_of_another_encoding_and_of_quoted_separators_is_the_same_on_both_engines(tmp_path: Path) -> None:
    rows = [f'{20 + i % 50};"{("Köln; Dom", "Zürich", "Ulm")[i % 3]}"' for i in range(90)]
    written = []
    for engine in ("embedded", "spark"):
        place = tmp_path / engine
        place.mkdir()
        (place / "table.csv").write_bytes("\r\n".join(["age;city", *rows, ""]).encode("latin-1"))
        policy(place, {"encoding": "ISO-8859-1"})
        ran = privrisk("release", "policy.yaml", "--engine", engine, cwd=place, engine=engine)
        assert ran.returncode == 0, ran.stderr
        assert f"engine: {'embedded' if engine == 'embedded' else 'Spark (local[*])'}" in ran.stderr
        written.append(digests(place / "out"))
        assert any("Köln; Dom" in str(row) for row in released(place))
    assert written[0] == written[1]


@pytest.mark.parametrize(
    ("options", "lines", "said"),
    [
        ({"inferSchema": True}, [], "table.options.inferSchema: is an unknown option of csv"),
        ({}, ["30"], "1 lines are cut"),
        ({}, ['30;"a"b"'], "1 have a quoted value that does not end on its line. Fix: set table.options.multiLine"),
        ({"multiLine": True}, ['30;"a"b"'], "1 have a quoted value that does not end, or ends before the value does"),
    ],
)
def test_release_of_malformed_csv_names_line_counts_and_fix(
    tmp_path: Path, options: dict[str, Any], lines: list[str], said: str
) -> None:
    (tmp_path / "table.csv").write_text("\n".join(["age;city", "30;Ulm", *lines]) + "\n")
    policy(tmp_path, options)
    ran = privrisk("release", "policy.yaml", cwd=tmp_path)
    assert ran.returncode == 2, ran.stderr
    assert said in " ".join(ran.stderr.split())
    assert not list((tmp_path / "out").glob("releases/*/data"))


@pytest.mark.parametrize("form", ["csv", "parquet", "orc"])
@pytest.mark.parametrize("place", ["missing", "empty", "{missing,empty}"])
def test_path_without_files_is_refused_on_the_embedded_engine(tmp_path: Path, form: str, place: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(SchemaError, match=r"table\.path: .* cannot be read as .*: there is nothing there"):
        check_for_embedded(Table(path=str(tmp_path / place), format=form), key="table")


def test_release_of_a_missing_table_exits_2_and_names_the_path(tmp_path: Path) -> None:
    policy(tmp_path, {})
    ran = privrisk("release", "policy.yaml", cwd=tmp_path)
    assert ran.returncode == 2, ran.stderr
    assert "table.csv' cannot be read as csv: there is nothing there" in " ".join(ran.stderr.split())


def test_embedded_engine_writes_no_temporary_file(tmp_path: Path) -> None:
    """A query that does not fit in memory fails; one that does leaves nothing beside output and vault."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    pc.write_csv(
        pa.table({"age": [20 + i % 50 for i in range(900)], "city": [("Ulm", "Bonn")[i % 2] for i in range(900)]}),
        tmp_path / "table.csv",
        pc.WriteOptions(delimiter=";"),
    )
    policy(tmp_path, {})
    ran = privrisk("release", "policy.yaml", cwd=tmp_path, TMPDIR=str(temporary))
    assert ran.returncode == 0, ran.stderr
    assert not list(temporary.iterdir())
    assert {file.name for file in tmp_path.iterdir()} == {"temporary", "table.csv", "policy.yaml", "out", "vault"}
    sort = (
        "from privrisk_spark.engine.session import build\n"
        "from pyspark.errors import PySparkException\n"
        "spark = build('sort', engine='embedded')\n"
        "rows = spark.range(3_000_000).selectExpr('hash(id) AS h', 'repeat(cast(id as string), 9) AS t').orderBy('h')\n"
        "try:\n"
        "    rows.toArrow()\n"
        "except PySparkException as error:\n"
        "    print('refused:', error)\n"
    )
    pool = {"SAIL_RUNTIME__MEMORY_POOL__TYPE": "greedy", "SAIL_RUNTIME__MEMORY_POOL__GREEDY__MAX_SIZE": str(50_000_000)}
    small = subprocess.run(
        [sys.executable, "-c", sort], env=environment("embedded", TMPDIR=str(temporary), **pool), cwd=tmp_path,
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    # Which part of the sort asks for the missing memory depends on timing.
    assert re.search(r"refused: Memory Exhausted while \w+ \(DiskManager is disabled\)", small.stdout), small.stderr
    assert not list(temporary.iterdir())
