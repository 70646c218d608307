from __future__ import annotations

import datetime as dt
import hashlib
import math
import random
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from naive_records import layouts, parts_of, policy_of, quasi
from parts import at

from privrisk_spark.engine import batches
from privrisk_spark.engine.batches import PARTS, Batches, Scratch, in_chunks, report
from privrisk_spark.engine.tuples import TupleParts, write_tuples
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.policy.policy import Output
from privrisk_spark.stages.publishing import files as release
from privrisk_spark.stages.publishing.csv_files import write_csv_files, write_empty_csv
from privrisk_spark.stages.publishing.files import (
    ROWS_PER_FILE,
    files_for,
    labelled,
    name_files,
    parquet_files,
    write_empty,
)
from privrisk_spark.stages.publishing.row_order import FILE, ordered
from privrisk_spark.tables.csv_tables import collect_csv_header
from privrisk_spark.tables.opening import collect_hierarchies
from privrisk_spark.tables.released import Partitions, read_back

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
        header = collect_csv_header(tuples.sparkSession, release_rows.schema.fieldNames()[1:])
        scratch = Scratch(tuples.sparkSession, directory.parent).below(f"{directory.name}-fields")
        parts = parts_of(write_csv_files(scratch, release_rows, at(written), header))
        nothing = partial(write_empty_csv, at(written), header)
    else:
        parts = parts_of(parquet_files(release_rows, at(written)))
        nothing = partial(write_empty, release_rows, at(written))
    names = [part["name"] for part in sorted(parts, key=lambda part: part["file"])]
    assert len({part["file"] for part in parts}) == len(parts)
    names = names or [nothing()]
    # What a lost attempt left.
    (written / f"part-lost.{policy.output.format}").write_bytes(b"PAR1")
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
    found = read_back(spark, policy.output, tmp_path / "0", Partitions(columns=tuple(COLUMNS))).toArrow().to_pylist()
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
    spark_reads = read_back(spark, policy.output, tmp_path / "0", Partitions())
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
        found = read_back(spark, policy.output, tmp_path / file_format, Partitions(columns=("x", *names)))
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
    found = read_back(spark, policy.output, tmp_path / "data", Partitions(columns=("x", "y"))).toArrow().to_pylist()
    assert {(r["x"], r["y"] or None) for r in found} == {("a", None), (None, None), ("*", "z")}


def test_the_files_are_those_asked_for_even_when_there_are_no_rows(spark, tmp_path):
    for file_format in ("parquet", "csv"):
        policy = policy_for(tmp_path, file_format)
        hierarchies = collect_hierarchies(policy, None, None)  # type: ignore[arg-type]
        entries = write(spark.createDataFrame([], TUPLES), policy, hierarchies, tmp_path / file_format, files=1)
        assert [entry["name"] for entry in entries] == [f"part-00000.{file_format}"]
        found = read_back(spark, policy.output, tmp_path / file_format, Partitions(columns=tuple(COLUMNS)))
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


def test_nodes_of_one_label_are_not_told_apart_by_order(spark, tmp_path):
    """Policies refuse two nodes of one label; if there were such, where rows stand must not say which it was."""
    policy = policy_for(tmp_path, "parquet")
    hierarchies = dict(collect_hierarchies(policy, None, None))  # type: ignore[arg-type]
    paths = [("z",), ("a b", "north"), ('q"q', "north"), ("c", "far, away", "north"), ("d", "north", "south")]
    place = Hierarchy.from_paths("pl`ace", [*paths, (" f ", "south")], null_leaf=True)
    hierarchies["pl`ace"] = place
    alike = [node for node, label in enumerate(place.labels) if label == "north"]
    assert len(alike) == 2
    named = [hierarchy.named for hierarchy in hierarchies.values()]
    assert named[0][alike].tolist() == [alike[0]] * 2
    assert [place.labels[node] for node in named[0]] == list(place.labels)
    rows = [(alike[i % 2], 0, TEXTS[i % len(TEXTS)], None, None, None, 1) for i in range(40)]
    frame = spark.createDataFrame([(int(named[0][row[0]]), *row[1:]) for row in rows], TUPLES)
    write(frame, policy, hierarchies, tmp_path / "data", files=1)
    found = pq.read_table(tmp_path / "data").column("kept.1").to_pylist()
    assert found == sorted(found, key=lambda text: text.encode())
