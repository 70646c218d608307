from __future__ import annotations

import datetime as dt
import hashlib
import json
import math
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from naive_records import layouts, parts_of, policy_of, quasi
from parts import at

from privrisk_spark.engine import batches
from privrisk_spark.engine.batches import PARTS, Batches, in_chunks, report
from privrisk_spark.engine.sources import read_back
from privrisk_spark.engine.tuples import TupleParts, write_tuples
from privrisk_spark.errors import BusyError
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.policy.policy import Output
from privrisk_spark.runs import places
from privrisk_spark.runs.places import Workplace, write_json
from privrisk_spark.stages.publishing import files as release
from privrisk_spark.stages.publishing.files import (
    ROWS_PER_FILE,
    files_for,
    labelled,
    name_files,
    named_nodes,
    parquet_files,
    write_csv,
    write_empty,
)
from privrisk_spark.stages.publishing.row_order import FILE, ordered
from privrisk_spark.stages.tables.opening import collect_hierarchies

PLACE = {"*": ["z", {"north": ["a b", 'q"q', {"far, away": ["c"]}]}, {"south": [{"deep": ["d"]}, " f "]}]}
SEX = {"*": ["u", "v"]}
TEXTS = [
    "plain",
    " led",
    "trailed ",
    'a "quoted" one',
    "back\\slash",
    "a,b;c",
    "ü€😀",
    "#hash",
    "two\nlines",
    "tab\t",
    "NULL",
    "'",
]


def policy_for(tmp_path: Path, file_format: str, **output: Any) -> Any:
    columns: dict[str, Any] = {
        "kept.1": {"role": "sensitive"},
        "pl`ace": quasi({"tree": PLACE}, nulls="own-value"),
        "dropped": {"role": "sensitive", "action": "drop"},
        "ssn": {"role": "identifier"},
        "sex": quasi({"tree": SEX}),
        "amount": {"role": "insensitive"},
        "when": {"role": "sensitive"},
        "cost": {"role": "sensitive"},
    }
    paths = {"path": str(tmp_path / "out"), "vault": str(tmp_path / "vault"), "format": file_format}
    return policy_of(columns, output=paths | output)


TUPLES = "n0 int, n1 int, r0 string, r1 double, r2 timestamp, r3 decimal(10,2), n_rows long"
COLUMNS = ["kept.1", "pl`ace", "sex", "amount", "when", "cost"]


def in_order(tuples: Any, directory: Path, *, files: int) -> Batches:
    """Write TUPLES as parts, one or more a partition, and put them in order."""
    place = at(directory)

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in in_chunks(tables):
            yield report(write_tuples(table, place, files=files), {})

    names = [part["name"] for part in parts_of(Batches.of_frame(tuples).then(step, PARTS))]
    # What a lost attempt left.
    (directory / "part-lost.arrow").write_bytes(b"ARROW1")
    return ordered(tuples.sparkSession, TupleParts(place, tuple(names), tuples.schema), files=files)


def write(tuples: Any, policy: Any, hierarchies: Any, directory: Path, *, files: int) -> list[dict[str, Any]]:
    """Write a release as a run does."""
    release_rows = labelled(
        in_order(tuples, directory.parent / f"{directory.name}-tuples", files=files), policy, hierarchies
    )
    written = directory.parent / f"{directory.name}-parts"
    if policy.output.format == "csv":
        names = write_csv(release_rows, written)
    else:
        parts = parts_of(parquet_files(release_rows, at(written)))
        names = [part["name"] for part in sorted(parts, key=lambda part: part["file"])]
        assert len({part["file"] for part in parts}) == len(parts)
        names = names or [write_empty(release_rows, at(written))]
        # What a lost attempt left.
        (written / "part-lost.parquet").write_bytes(b"PAR1")
    return name_files(at(written), names, directory, policy.output.format)


def tuple_rows(hierarchies: Any, n: int = 120) -> list[tuple[Any, ...]]:
    """TUPLES of single rows."""
    pick = random.Random(4)
    place, sex = hierarchies.values()
    rows = []
    for i in range(n):
        nodes = (pick.randrange(place.n_nodes), pick.randrange(sex.n_nodes))
        when = dt.datetime(1999, 1, 1) + dt.timedelta(
            seconds=pick.randrange(10**9), microseconds=pick.choice([0, 123456])
        )
        amount = pick.choice([0.0, -0.0, 1.5, -2.25, 1e300, 1 / 3, None, math.inf, math.nan])
        cost = pick.choice([Decimal("1.10"), Decimal("-0.01"), None])
        rows.append((*nodes, pick.choice(TEXTS), amount, when if i % 5 else None, cost, 1))
    zeros = [(0, 0, "plain", zero, None, None, 1) for zero in [0.0, -0.0] * 6]
    return rows + rows[:20] + zeros


def test_labels_stand_in_the_order_of_the_policy_and_nothing_else(spark, tmp_path):
    policy = policy_for(tmp_path, "parquet")
    hierarchies = collect_hierarchies(policy, None, None)  # type: ignore[arg-type] - every leaf is declared
    place, sex = hierarchies.values()
    rows = [(p, s, f"{p}/{s}", 1.0, None, None, 1) for p in range(place.n_nodes) for s in range(sex.n_nodes)]
    found = labelled(
        in_order(spark.createDataFrame(rows, TUPLES), tmp_path / "tuples", files=2), policy, hierarchies
    ).frame()
    assert found.columns == [FILE, *COLUMNS]
    assert [field.dataType.simpleString() for field in found.schema] == [
        "int", "string", "string", "string", "double", "timestamp", "decimal(10,2)"
    ]  # fmt: skip
    by_kept = {tuple(map(int, r["kept.1"].split("/"))): (r["pl`ace"], r["sex"]) for r in found.toArrow().to_pylist()}
    assert by_kept == {
        (p, s): (place.labels[p], sex.labels[s]) for p in range(place.n_nodes) for s in range(sex.n_nodes)
    }
    assert [p for p, _ in by_kept.values()].count(None) == sex.n_nodes  # the leaf that stands for null
    assert [p for p, _ in by_kept.values()].count("north") == sex.n_nodes


@contextmanager
def configured(spark: Any, **settings: Any) -> Iterator[None]:
    held = {key: spark.conf.get(key) for key in settings}
    for key, value in settings.items():
        spark.conf.set(key, str(value))
    try:
        yield
    finally:
        for key, value in held.items():
            spark.conf.set(key, value)


def gathered(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Equal tuples as one, except every third, which stands in pieces."""
    whole: dict[str, list[tuple[Any, ...]]] = {}
    for row in rows:
        whole.setdefault(repr(row[:-1]), []).append(row)
    found = []
    for i, same in enumerate(whole.values()):
        found += [(*same[0][:-1], len(same))] if i % 3 or len(same) == 1 else [(*same[0][:-1], len(same) - 1), same[0]]
    return found


@pytest.mark.parametrize(("file_format", "files"), [("parquet", 1), ("parquet", 4), ("csv", 3)])
def test_the_same_release_has_the_same_bytes(spark, tmp_path, file_format, files):
    policy = policy_for(tmp_path, file_format, files=files)
    hierarchies = collect_hierarchies(policy, None, None)  # type: ignore[arg-type]
    rows = tuple_rows(hierarchies)
    written = []
    frames = [*layouts(spark, rows, TUPLES), spark.createDataFrame(gathered(rows), TUPLES).repartition(5)]
    settings: list[dict[str, Any]] = [{}] * 4
    # Nor do the size of an Arrow batch and the engine's own parallelism show.
    frames += [frames[1]] * 2
    settings += [
        {"spark.sql.execution.arrow.maxRecordsPerBatch": 10_000},
        {"spark.sql.shuffle.partitions": 7, "spark.sql.adaptive.enabled": False},
    ]
    for i, (frame, setting) in enumerate(zip(frames, settings, strict=True)):
        directory = tmp_path / str(i)
        with configured(spark, **setting):
            entries = write(frame, policy, hierarchies, directory, files=files)
        assert [entry["name"] for entry in entries] == [f"part-{n:05d}.{file_format}" for n in range(files)]
        assert sorted(path.name for path in directory.iterdir()) == [entry["name"] for entry in entries]
        for entry in entries:
            data = (directory / entry["name"]).read_bytes()
            assert (entry["bytes"], entry["sha256"]) == (len(data), hashlib.sha256(data).hexdigest())
        written.append(entries)
    assert all(other == written[0] for other in written[1:])
    # Read back as a consumer would: every row, every text as it was.
    place, sex = hierarchies.values()
    found = read_back(spark, policy.output, tmp_path / "0").toArrow().to_pylist()
    assert list(found[0]) == COLUMNS

    def amount(value: Any) -> str:
        return "missing" if value is None else repr(float(value))

    texts = sorted((r["kept.1"], str(r["pl`ace"]), r["sex"], amount(r["amount"]), str(r["cost"])) for r in found)
    wanted = sorted((r[2], str(place.labels[r[0]]), sex.labels[r[1]], amount(r[3]), str(r[5])) for r in rows)
    assert texts == wanted
    if file_format == "parquet":
        times = sorted(repr(r["when"] and r["when"].replace(tzinfo=None)) for r in found)
        assert times == sorted(repr(r[4]) for r in rows)


NESTED = (
    "n0 int, r0 array<double>, r1 struct<a: string, b: array<float>>, r2 array<string>, r3 float, r4 binary, "
    + "n_rows long"
)


def test_nested_and_inexact_values_are_released_as_they_are(spark, tmp_path):
    """0.0 and -0.0 in an array, a missing text and the text 'null', NaN: other content, and other rows."""
    columns: dict[str, Any] = {"x": quasi({"flat": {"values": ["a", "b"]}})}
    columns |= {f"k{i}": {"role": "sensitive"} for i in range(5)}
    output = {"path": str(tmp_path / "out"), "vault": str(tmp_path / "vault")}
    policy = policy_of(columns, output=output)
    hierarchies = collect_hierarchies(policy, None, None)  # type: ignore[arg-type]
    pick = random.Random(6)
    rows = []
    for _ in range(150):
        b = pick.choice([None, [], [0.0], [-0.0], [math.nan]])
        rows.append((
            pick.randrange(3),
            pick.choice([None, [], [0.0], [-0.0], [math.nan], [None], [0.0, -0.0], [-0.0, 0.0]]),
            pick.choice([None, (None, b), ("a", b), ("{a", b)]),
            pick.choice([None, [None], ["null"], ["a", "b"], ["a, b"]]),
            pick.choice([None, 0.0, -0.0, math.nan, 1.5]),
            pick.choice([None, b"", b"\xff"]),
            1,
        ))  # fmt: skip
    written = []
    frames = [*layouts(spark, rows, NESTED), spark.createDataFrame(gathered(rows), NESTED)]
    settings: list[dict[str, Any]] = [{}] * 4
    frames += [frames[1]] * 2
    settings += [
        {"spark.sql.execution.arrow.maxRecordsPerBatch": 10_000},
        {"spark.sql.shuffle.partitions": 7, "spark.sql.adaptive.enabled": False},
    ]
    for i, (frame, setting) in enumerate(zip(frames, settings, strict=True)):
        with configured(spark, **setting):
            written.append(write(frame, policy, hierarchies, tmp_path / str(i), files=4))
    assert all(other == written[0] for other in written[1:])
    assert len(written[0]) == 4
    labels = next(iter(hierarchies.values())).labels
    found = pq.read_table(tmp_path / "0").to_pylist()
    wanted = [
        {"x": labels[r[0]], "k0": r[1], "k1": r[2] and {"a": r[2][0], "b": r[2][1]}, "k2": r[3], "k3": r[4], "k4": r[5]}
        for r in rows
    ]
    assert sorted(map(repr, found)) == sorted(map(repr, wanted))
    spark_reads = read_back(spark, policy.output, tmp_path / "0")
    assert spark_reads.count() == 150


def run(batches_of: Batches, tables: Iterator[pa.Table]) -> list[pa.Table]:
    """The steps of a stage in this process."""
    for step in batches_of.steps:
        tables = step(tables)
    return list(tables)


def test_row_groups_do_not_show_how_rows_came(spark, tmp_path, monkeypatch):
    """Chunks of 7 rows: tuples that stand more often than fits, several row groups, every split of the same rows."""
    monkeypatch.setattr(release, "CHUNK_ROWS", 7)
    policy = policy_for(tmp_path, "parquet")
    hierarchies = collect_hierarchies(policy, None, None)  # type: ignore[arg-type]
    rows = gathered(tuple_rows(hierarchies, 60))
    rows = [(*row[:-1], 1 + 40 * (i == 3) + i % 4) for i, row in enumerate(rows)]
    canonical = Batches.of_frame(in_order(spark.createDataFrame(rows, TUPLES), tmp_path / "tuples", files=1).frame())
    whole = canonical.frame().toArrow()
    total = sum(row[-1] for row in rows)
    files, place = [], next(iter(hierarchies.values()))
    for chunk, batch in ((7, 2), (7, 1000), (3, 5), (1000, 13), (1, 1)):
        monkeypatch.setattr(batches, "CHUNK_ROWS", chunk)
        directory = tmp_path / f"{chunk}-{batch}"
        directory.mkdir()
        written = parquet_files(labelled(canonical, policy, hierarchies), at(directory))
        (report,) = run(written, (pa.Table.from_batches([b]) for b in whole.to_batches(max_chunksize=batch)))
        assert report.num_rows == 1
        files.append((directory / report.column("name")[0].as_py()).read_bytes())
        assert [p.name for p in directory.iterdir()] == report.column("name").to_pylist()
    assert all(content == files[0] for content in files[1:])
    file = pq.ParquetFile(BytesIO(files[0]))
    groups = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
    assert groups == [7] * (total // 7) + ([total % 7] if total % 7 else [])
    assert len(groups) > 10
    assert file.schema_arrow.field("sex").type == pa.string()
    # Every tuple as often as it stands, in the canonical order.
    texts = file.read().column("pl`ace").to_pylist()
    wanted = [place.labels[n] for n, times in zip(*[whole.column(c).to_pylist() for c in ("n0", "n_rows")], strict=True)
              for _ in range(times)]  # fmt: skip
    assert texts == wanted
    # A task without rows writes no file.
    assert run(parquet_files(labelled(canonical, policy, hierarchies), at(tmp_path)), iter([])) == []


def test_a_released_column_may_have_any_name(spark, tmp_path):
    for file_format in ("parquet", "csv"):
        names = ["privrisk file", "n_rows", "file", " "]
        columns = {"x": quasi({"flat": {"values": ["a"]}})} | {name: {"role": "sensitive"} for name in names}
        output = {"path": str(tmp_path / "out"), "vault": str(tmp_path / "vault"), "format": file_format}
        policy = policy_of(columns, output=output)
        hierarchies = collect_hierarchies(policy, None, None)  # type: ignore[arg-type]
        rows = [(0, "mine", "n", "f", "s", 2)]
        frame = spark.createDataFrame(rows, "n0 int, r0 string, r1 string, r2 string, r3 string, n_rows long")
        write(frame, policy, hierarchies, tmp_path / file_format, files=1)
        found = read_back(spark, policy.output, tmp_path / file_format)
        assert found.toArrow().to_pylist() == [{"x": "a"} | dict(zip(names, rows[0][1:], strict=False))] * 2


def test_an_empty_text_is_not_a_missing_one_in_a_csv_release(spark, tmp_path):
    policy = policy_of(
        {"x": quasi({"flat": {"values": ["a"]}}, nulls="own-value"), "y": {"role": "sensitive"}},
        output={"path": str(tmp_path / "out"), "vault": str(tmp_path / "vault"), "format": "csv"},
    )
    hierarchies = collect_hierarchies(policy, None, None)  # type: ignore[arg-type]
    rows = [(0, "", 1), (1, None, 1), (2, "z", 1)]
    frame = spark.createDataFrame(rows, "n0 int, r0 string, n_rows long")
    write(frame, policy, hierarchies, tmp_path / "data", files=1)
    text = (tmp_path / "data" / "part-00000.csv").read_text()
    assert sorted(text.splitlines()) == sorted(["x,y", 'a,""', ",", "*,z"])
    found = read_back(spark, policy.output, tmp_path / "data").toArrow().to_pylist()
    assert {(r["x"], r["y"] or None) for r in found} == {("a", None), (None, None), ("*", "z")}


def test_the_files_are_those_asked_for_even_when_there_are_no_rows(spark, tmp_path):
    for file_format in ("parquet", "csv"):
        policy = policy_for(tmp_path, file_format)
        hierarchies = collect_hierarchies(policy, None, None)  # type: ignore[arg-type]
        entries = write(spark.createDataFrame([], TUPLES), policy, hierarchies, tmp_path / file_format, files=1)
        assert [entry["name"] for entry in entries] == [f"part-00000.{file_format}"]
        found = read_back(spark, policy.output, tmp_path / file_format)
        assert found.columns == COLUMNS
        assert found.count() == 0
        if file_format == "parquet":
            kinds = ["string", "string", "string", "double", "timestamp", "decimal(10,2)"]
            assert [field.dataType.simpleString() for field in found.schema] == kinds
    output = policy_for(tmp_path, "csv").output
    assert [files_for(output, rows) for rows in (0, 1, ROWS_PER_FILE, ROWS_PER_FILE + 1)] == [1, 1, 1, 2]
    assert files_for(Output(path="o", vault="v", files=7), 5) == 7


def test_what_lost_attempts_left_is_not_released(tmp_path):
    parts, data = tmp_path / "parts", tmp_path / "data"
    parts.mkdir()
    for name in ("part-b.parquet", "part-a.parquet", "part-lost.parquet", "_SUCCESS", ".part-a.parquet.crc"):
        (parts / name).write_text(name)
    entries = name_files(at(parts), ["part-b.parquet", "part-a.parquet"], data, "parquet")
    # A late attempt ends after its twin's file was taken.
    (parts / "part-late.parquet").write_text("late")
    assert [(entry["name"], entry["bytes"]) for entry in entries] == [
        ("part-00000.parquet", 14), ("part-00001.parquet", 14)
    ]  # fmt: skip
    assert {path.name: path.read_text() for path in data.iterdir()} == {
        "part-00000.parquet": "part-b.parquet",
        "part-00001.parquet": "part-a.parquet",
    }


# ------------------------------------------------------------------------------------------ the place of a run


class Killed(BaseException):
    """Stands for a process that ends between two steps."""


def place_of(tmp_path: Path, run_id: str) -> Workplace:
    return Workplace(tmp_path / "out", tmp_path / "vault", run_id)


def publish(place: Workplace, content: str) -> dict[str, Any]:
    with place.held():
        (place.staging / "data").write_text(content)
        return place.commit({"run_id": place.run_id, "date": "2026-01-31", "content": content})


def current(tmp_path: Path) -> Any:
    path = tmp_path / "out" / "manifest.json"
    return json.loads(path.read_text()) if path.exists() else None


def leftovers(tmp_path: Path) -> list[str]:
    return sorted(p.name for p in [*(tmp_path / "out").iterdir(), *(tmp_path / "vault").iterdir()] if p.name[0] == ".")


@contextmanager
def killed_at_write(monkeypatch: pytest.MonkeyPatch, number: int) -> Iterator[None]:
    """Die at the n-th JSON file (1: the release's manifest, 2: the root's), after the half of it is on disk."""
    calls = 0

    def write(path: Path, document: Any, **named: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == number:
            path.with_name(f".{path.name}.0").write_text('{"half":')
            raise Killed
        write_json(path, document, **named)

    with monkeypatch.context() as patch:
        patch.setattr(places, "write_json", write)
        with pytest.raises(Killed):
            yield


def test_a_release_is_published_once(tmp_path):
    place = place_of(tmp_path, "run-1")
    assert place.published() is None
    manifest = publish(place, "first")
    assert manifest == {"sequence": 1, "run_id": "run-1", "date": "2026-01-31", "content": "first"}
    assert current(tmp_path) == manifest
    assert (place.target / "data").read_text() == "first"
    assert leftovers(tmp_path) == []
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "out").rglob("*")}
    assert place.published() == manifest == place.published() == place_of(tmp_path, "run-1").published()
    assert {p: p.stat().st_mtime_ns for p in (tmp_path / "out").rglob("*")} == before
    assert stat.S_IMODE(place.target.stat().st_mode) == 0o755
    assert stat.S_IMODE(place.vault.stat().st_mode) == 0o700
    second = publish(place_of(tmp_path, "run-2"), "second")
    assert second["sequence"] == 2
    assert current(tmp_path) == second
    # An older release is still there, and asking for it does not make it the current one.
    assert place.published() == manifest
    assert current(tmp_path) == second


def test_killed_at_its_manifest_nothing_is_released_or_left(tmp_path, monkeypatch):
    old = publish(place_of(tmp_path, "old"), "old")
    place = place_of(tmp_path, "new")
    with killed_at_write(monkeypatch, 1):
        publish(place, "half")
    assert not place.target.exists(), "no name of a release without its manifest"
    assert place.published() is None
    assert current(tmp_path) == old
    again = publish(place_of(tmp_path, "new"), "whole")
    assert (place.target / "data").read_text() == "whole"
    assert sorted(p.name for p in place.target.iterdir()) == ["data", "manifest.json"]
    assert place.published() == again == current(tmp_path)
    assert again["sequence"] == 2


PUBLISH = """
import os, signal, sys
from pathlib import Path
from privrisk_spark.runs import places
place = places.Workplace(Path(sys.argv[1]) / "out", Path(sys.argv[1]) / "vault", sys.argv[2])
left = int(sys.argv[3])
def stopping(of):
    def call(*arguments, **options):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return of(*arguments, **options)
    return call
with place.held():
    (place.staging / "data").mkdir()
    (place.staging / "data" / "part").write_text(sys.argv[2])
    for name in ("write_json", "sync"):
        setattr(places, name, stopping(getattr(places, name)))
    os.utime, places.shutil.rmtree = stopping(os.utime), stopping(places.shutil.rmtree)
    Path.rename, Path.replace = stopping(Path.rename), stopping(Path.replace)
    place.commit({"run_id": sys.argv[2], "date": "2026-01-31"})
"""


def test_wherever_it_is_killed_nothing_is_left_that_is_no_release(tmp_path):
    """Killed in a process of its own before each step of the commit; then another run id publishes."""
    whole = set()
    for step in range(1, 100):
        root = tmp_path / str(step)
        publish(place_of(root, "old"), "old")
        command = [sys.executable, "-c", PUBLISH, str(root), "dead", str(step)]
        environment = {**os.environ, "PYTHONPATH": str(Path(release.__file__).resolve().parents[3])}
        ended = subprocess.run(command, env=environment, check=False).returncode
        dead = place_of(root, "dead").target
        assert not dead.exists() or json.loads((dead / "manifest.json").read_text())["sequence"] == 2
        whole.add(dead.exists())
        next_one = place_of(root, "next")
        with next_one.held():
            assert next_one.published() is None
            assert next_one.without_manifest() == []
            # Whoever looks at the root sees the release that was finished, before the next one is.
            assert current(root)["run_id"] == ("dead" if dead.exists() else "old")
        made = publish(next_one, "next")
        assert current(root) == made
        assert leftovers(root) == []
        there = {path.name for path in next_one.target.parent.iterdir()}
        assert there == {"old", "next"} | ({"dead"} if dead.exists() else set())
        numbers = [
            json.loads((path / "manifest.json").read_text())["sequence"] for path in next_one.target.parent.iterdir()
        ]
        assert len(set(numbers)) == len(numbers)
        assert made["sequence"] == max(numbers)
        if ended == 0:
            break
    assert ended == 0, "the steps came to an end"
    assert step > 5
    assert whole == {False, True}


def test_two_that_publish_at_once_have_numbers_of_their_own(tmp_path):
    """Two processes, ten run ids each, into one output: one waits for the other."""
    code = """
import sys, time
from pathlib import Path
from privrisk_spark.errors import BusyError
from privrisk_spark.runs.places import Workplace
for i in range(10):
    place = Workplace(Path(sys.argv[1]) / "out", Path(sys.argv[1]) / "vault", f"{sys.argv[2]}-{i}")
    while True:
        try:
            with place.held():
                print(place.commit({"run_id": place.run_id, "date": "2026-01-31"})["sequence"], flush=True)
            break
        except BusyError:
            time.sleep(0.001)
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(release.__file__).resolve().parents[3])}
    both = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path), name], stdout=subprocess.PIPE, text=True, env=environment
        )
        for name in ("one", "two")
    ]
    found = [[int(line) for line in process.communicate(timeout=120)[0].split()] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert all(numbers == sorted(numbers) for numbers in found)
    assert sorted([*found[0], *found[1]]) == list(range(1, 21))


def test_a_number_is_never_given_twice(tmp_path):
    """Whatever became of the root's manifest: lost, an old copy, or left behind by a run that was killed."""
    first, second = (publish(place_of(tmp_path, name), name) for name in ("one", "two"))
    root = tmp_path / "out" / "manifest.json"
    root.write_text(json.dumps(first))
    assert publish(place_of(tmp_path, "three"), "three")["sequence"] == 3
    root.unlink()
    assert place_of(tmp_path, "one").published() == first
    assert current(tmp_path)["run_id"] == "three", "the release with the greatest number, whoever looks"
    root.unlink()
    assert publish(place_of(tmp_path, "four"), "four")["sequence"] == 4
    # The latest one is withdrawn: its number is gone with it, but not given again.
    shutil.rmtree(place_of(tmp_path, "four").target)
    assert publish(place_of(tmp_path, "five"), "five")["sequence"] == 5
    assert second["sequence"] == 2


def test_a_directory_without_a_manifest_is_told_of_and_stays(tmp_path):
    """Of an earlier version, which gave a release its name first; or somebody's own."""
    publish(place_of(tmp_path, "old"), "old")
    left = tmp_path / "out" / "releases" / "dead"
    left.mkdir()
    (left / "data").write_text("rows")
    place = place_of(tmp_path, "new")
    with place.held():
        assert place.without_manifest() == ["dead"]
    publish(place, "new")
    assert (left / "data").read_text() == "rows"
    # Its own run id makes it anew.
    again = publish(place_of(tmp_path, "dead"), "whole")
    assert (left / "data").read_text() == "whole"
    assert again == current(tmp_path)


def test_killed_before_the_root_manifest_the_next_look_mends_it(tmp_path, monkeypatch):
    old = publish(place_of(tmp_path, "old"), "old")
    place = place_of(tmp_path, "new")
    with killed_at_write(monkeypatch, 2):
        publish(place, "whole")
    assert current(tmp_path) == old
    manifest = place.published()
    assert manifest is not None
    assert manifest["content"] == "whole"
    assert current(tmp_path) == manifest
    assert place.published() == manifest


def test_staging_is_private_and_gone_after_an_error(tmp_path):
    place = place_of(tmp_path, "run")

    def work() -> None:
        with place.held():
            for path in (place.staging, place.scratch):
                assert stat.S_IMODE(path.stat().st_mode) == 0o700
                (path / "deep").mkdir()
                (path / "deep" / "file").write_text("x")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work()
    assert leftovers(tmp_path) == []
    assert place.published() is None
    with place.held():  # the same object may be used again
        assert place.staging.exists()


HOLD = """
import sys, time
from pathlib import Path
from privrisk_spark.runs import places
from privrisk_spark.runs.places import Workplace
place = Workplace(Path(sys.argv[1]) / "out", Path(sys.argv[1]) / "vault", sys.argv[2])
with place.held():
    (place.staging / "data").write_text("at work")
    print(place.staging, place.scratch, flush=True)
    time.sleep(600)
"""


@contextmanager
def process_at_work(tmp_path: Path, run_id: str) -> Iterator[tuple[subprocess.Popen[str], list[Path]]]:
    """Another process that holds a run's directories until it is killed."""
    command = [sys.executable, "-c", HOLD, str(tmp_path), run_id]
    root = Path(release.__file__).resolve().parents[3]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            yield process, [Path(part) for part in process.stdout.readline().split()]
        finally:
            process.send_signal(signal.SIGKILL)


def test_a_live_run_is_left_alone_and_a_dead_one_is_swept(tmp_path):
    place = place_of(tmp_path, "other")
    with process_at_work(tmp_path, "live") as (process, directories):
        assert all(path.exists() for path in directories)
        for run_id in ("other", "live"):
            with (
                pytest.raises(BusyError, match=r"output.path: another run is at work"),
                place_of(tmp_path, run_id).held(),
            ):
                pass
        elsewhere = Workplace(tmp_path / "out2", tmp_path / "vault", "other")
        with pytest.raises(BusyError, match=r"output.vault: another run is at work"), elsewhere.held():
            pass
        assert (directories[0] / "data").read_text() == "at work"
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=30)
        assert all(path.exists() for path in directories)
        with place.held():
            assert not any(path.exists() for path in directories)
    publish(place_of(tmp_path, "live"), "after all")
    assert leftovers(tmp_path) == []


def test_a_lock_file_that_is_gone_lets_nobody_in(tmp_path, monkeypatch):
    """A run opens the lock file, the one before it ends and unlinks it, a third makes a new one: only that may work."""
    lock = places.fcntl.flock
    with ExitStack() as stack:

        def meanwhile(file: Any, operation: int) -> None:
            monkeypatch.setattr(places.fcntl, "flock", lock)
            (tmp_path / "out" / ".lock").unlink()
            stack.enter_context(place_of(tmp_path, "run").held())
            lock(file, operation)

        monkeypatch.setattr(places.fcntl, "flock", meanwhile)
        with pytest.raises(BusyError, match="another run is at work"), place_of(tmp_path, "run").held():
            pass
        assert (tmp_path / "out" / ".lock").exists()


def test_a_directory_of_the_vault_is_replaced_whole(tmp_path):
    for number in range(3):
        place = place_of(tmp_path, f"run-{number}")
        with place.held():
            source = place.scratch / "decisions"
            source.mkdir()
            (source / f"part-{number}").write_text("once")
            place.swap_into_vault(source, "decisions")
            assert not source.exists()
            # Twice in a run, as when a stage sets two columns' values aside.
            if number == 2:
                source.mkdir()
                (source / "part-2").write_text("again")
                place.swap_into_vault(source, "decisions")
        vault = place.vault / "decisions"
        assert [(p.name, p.read_text()) for p in vault.iterdir()] == [
            (f"part-{number}", "again" if number == 2 else "once")
        ]
    assert leftovers(tmp_path) == []


def test_the_snapshot_is_that_of_the_run_or_unrecorded(tmp_path):
    place = place_of(tmp_path, "run")
    assert place.recorded_snapshot() == "unrecorded"
    place.vault.mkdir()
    write_json(place.vault / "summary.json", {"run_id": "run", "snapshot": "5-abc"})
    assert place.recorded_snapshot() == "5-abc"
    write_json(place.vault / "summary.json", {"run_id": "later", "snapshot": "6-def"})
    assert place.recorded_snapshot() == "unrecorded"


def test_json_is_replaced_whole_and_takes_no_nan(tmp_path):
    path = tmp_path / "x.json"
    write_json(path, {"a": "é", "b": [1, 0.1]})
    assert json.loads(path.read_text(encoding="utf-8")) == {"a": "é", "b": [1, 0.1]}
    with pytest.raises(ValueError, match="JSON compliant"):
        write_json(path, {"a": math.inf})
    assert json.loads(path.read_text(encoding="utf-8")) == {"a": "é", "b": [1, 0.1]}
    assert [p.name for p in tmp_path.iterdir()] == ["x.json"]


def test_nodes_of_one_label_are_not_told_apart_by_order(spark, tmp_path):
    """Policies refuse two nodes of one label; if there were such, where rows stand must not say which it was."""
    policy = policy_for(tmp_path, "parquet")
    hierarchies = dict(collect_hierarchies(policy, None, None))  # type: ignore[arg-type]
    paths = [("z",), ("a b", "north"), ('q"q', "north"), ("c", "far, away", "north"), ("d", "north", "south")]
    place = Hierarchy.from_paths("pl`ace", [*paths, (" f ", "south")], null_leaf=True)
    hierarchies["pl`ace"] = place
    alike = [node for node, label in enumerate(place.labels) if label == "north"]
    assert len(alike) == 2
    named = named_nodes(hierarchies)
    assert named[0][alike].tolist() == [alike[0]] * 2
    assert [place.labels[node] for node in named[0]] == list(place.labels)
    rows = [(alike[i % 2], 0, TEXTS[i % len(TEXTS)], None, None, None, 1) for i in range(40)]
    frame = spark.createDataFrame([(int(named[0][row[0]]), *row[1:]) for row in rows], TUPLES)
    write(frame, policy, hierarchies, tmp_path / "data", files=1)
    found = pq.read_table(tmp_path / "data").column("kept.1").to_pylist()
    assert found == sorted(found, key=lambda text: text.encode())
