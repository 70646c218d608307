"""Releases in directories that are named after values: which rows are in which, whatever way they came."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import random
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from chispa import assert_df_equality
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_records import layouts, parts_of, policy_of, quasi
from parts import at
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from privrisk_spark.engine import batches
from privrisk_spark.engine.batches import PARTS, Batches, report
from privrisk_spark.engine.embedded import is_embedded
from privrisk_spark.engine.number_texts import column
from privrisk_spark.engine.tuples import TupleParts, write_tuples
from privrisk_spark.errors import InputError, InternalError, SchemaError
from privrisk_spark.policy.policy import Policy
from privrisk_spark.stages.publishing import directories
from privrisk_spark.stages.publishing.directories import Directories, check_partitions, stretches
from privrisk_spark.stages.publishing.files import _pieces, labelled, name_files, parquet_files
from privrisk_spark.stages.publishing.row_order import FILE, ordered, sorted_tuples
from privrisk_spark.tables.opening import collect_hierarchies
from privrisk_spark.tables.partitions import MISSING
from privrisk_spark.tables.released import Partitions, read_back

# ---------------------------------------------------------------------------------------- as a run writes them

PLACE = {"*": ["..", {"n/rth": ["a=b", "50%", "ü ü"]}, {"south": ["."]}]}
COLUMNS: dict[str, Any] = {
    "pl/ace=%": quasi({"tree": PLACE}, nulls="own-value"),
    "sex": quasi({"flat": {"values": ["u", "v"]}}),
    "kept.1": {"role": "sensitive"},
    "year": {"role": "insensitive"},
    "day": {"role": "insensitive"},
    "was": {"role": "insensitive"},
    "cost": {"role": "insensitive"},
}
TUPLES = "n0 int, n1 int, r0 string, r1 int, r2 date, r3 boolean, r4 double, n_rows long"
BY = {"pl/ace=%": "n0", "year": "r1", "day": "r2", "was": "r3", "kept.1": "r0"}


def policy_by(tmp_path: Path, *by: str, **output: Any) -> Policy:
    paths = {"path": str(tmp_path / "out"), "vault": str(tmp_path / "vault"), "partition_by": list(by)}
    return policy_of(COLUMNS, output=paths | output)


def tuple_rows(hierarchies: Any, n: int = 150) -> list[tuple[Any, ...]]:
    pick = random.Random(7)
    place, sex = hierarchies.values()
    texts = ["a:b", "x'y", "01", " led", None, "Ünï", "a/b", "[z]"]
    days = [dt.date(2026, 11, 23), dt.date(1, 1, 1), None]
    rows = [
        (
            int(place.named[pick.randrange(place.n_nodes)]),
            pick.randrange(sex.n_nodes),
            pick.choice(texts),
            pick.choice([-5, 2026, None]),
            pick.choice(days),
            pick.choice([True, False, None]),
            pick.choice([0.0, -0.0, 1.5, None]),
            pick.choice([1, 3]),
        )
        for _ in range(n)
    ]
    return rows + rows[:20]


def write(tuples: Any, policy: Policy, hierarchies: Any, directory: Path, *, files: int) -> list[dict[str, Any]]:
    """Write a release as a run does."""
    place = at(directory.parent / f"{directory.name}-tuples")

    def step(tables: Any) -> Any:
        for table in batches.in_chunks(tables):
            yield report(write_tuples(table, place, files=files), {})

    names = tuple(part["name"] for part in parts_of(Batches.of_frame(tuples).then(step, PARTS)))
    by = policy.places.partition_by
    rows = ordered(
        tuples.sparkSession, TupleParts(place, names, tuples.schema), files=files, first=[BY[name] for name in by]
    )
    written = directory.parent / f"{directory.name}-parts"
    parts = parts_of(parquet_files(labelled(rows, policy, hierarchies), at(written), by))
    (written / "part-lost.parquet").write_bytes(b"PAR1")
    parts.sort(key=lambda part: (part["directory"], part["file"]))
    order, places = [part["name"] for part in parts], [part["directory"] for part in parts]
    return name_files(at(written), order, directory, "parquet", places=places)


@pytest.mark.parametrize(
    ("by", "files"), [(("pl/ace=%",), 1), (("pl/ace=%", "year"), 3), (("day", "was"), 4), (("kept.1",), 2)]
)
def test_partitioned_rows_are_those_of_the_same_release_and_have_the_same_bytes_however_they_came(
    spark: SparkSession, tmp_path: Path, by: tuple[str, ...], files: int
) -> None:
    policy, plain = policy_by(tmp_path, *by), policy_by(tmp_path)
    hierarchies = collect_hierarchies(policy, None, None)  # type: ignore[arg-type] - every leaf is declared
    frame = spark.createDataFrame(tuple_rows(hierarchies), TUPLES)
    whole = write(frame, plain, hierarchies, tmp_path / "plain", files=files)
    assert [entry["name"] for entry in whole] == [f"part-{n:05d}.parquet" for n in range(files)]
    written = []
    rows = tuple_rows(hierarchies)
    for i, layout in enumerate([*layouts(spark, rows, TUPLES), frame.repartition(11), frame.coalesce(1)]):
        written.append(write(layout, policy, hierarchies, tmp_path / str(i), files=files))
    assert all(entries == written[0] for entries in written[1:])
    directory = tmp_path / "0"
    there = sorted(path.relative_to(directory).as_posix() for path in directory.rglob("*.parquet"))
    assert there == sorted(entry["name"] for entry in written[0])
    for entry in written[0]:
        data = (directory / entry["name"]).read_bytes()
        assert (entry["bytes"], entry["sha256"]) == (len(data), hashlib.sha256(data).hexdigest())
        assert not set(by) & set(pq.read_schema(directory / entry["name"]).names)
    assert all(name.count("/") == len(by) for name in there)
    # Read as anybody would, by an explicit schema, and by our own way.
    expected = read_back(spark, plain.places, tmp_path / "plain", Partitions())
    kinds = {field.name: field for field in expected.schema}
    schema = T.StructType([*[kinds[name] for name in kinds if name not in by], *[kinds[name] for name in by]])
    if not is_embedded(spark):
        same_rows(spark.read.schema(schema).parquet(str(directory)), expected)
    partitions = Partitions({name: kinds[name].dataType.simpleString() for name in by}, tuple(COLUMNS))
    ours = read_back(spark, policy.places, directory, partitions)
    assert ours.columns == expected.columns
    same_rows(ours, expected)
    if is_embedded(spark):
        return
    # Without a schema, and without guesses, Spark has texts.
    texts = spark.read.parquet(str(directory))
    assert {texts.schema[name].dataType for name in by} == {T.StringType()}
    same_rows(texts, expected, as_texts=True)


def same_rows(found: DataFrame, expected: DataFrame, *, as_texts: bool = False) -> None:
    """Chispa takes a dot in a name for a field of a field."""

    def plain(frame: DataFrame) -> DataFrame:
        values = [column(name) for name in expected.columns]
        values = [value.cast("string") for value in values] if as_texts else values
        return frame.select(*[value.alias(f"x{i}") for i, value in enumerate(values)])

    assert_df_equality(plain(found), plain(expected), ignore_row_order=True, allow_nan_equality=True)


def test_a_missing_value_has_a_directory_of_its_own(spark: SparkSession, tmp_path: Path) -> None:
    policy = policy_by(tmp_path, "pl/ace=%")
    hierarchies = collect_hierarchies(policy, None, None)  # type: ignore[arg-type]
    place = hierarchies["pl/ace=%"]
    assert None in place.labels
    rows = [(node, 0, "k", 1, None, True, 1.0, 1) for node in range(place.n_nodes)]
    write(spark.createDataFrame(rows, TUPLES), policy, hierarchies, tmp_path / "d", files=1)
    names = {path.name for path in (tmp_path / "d").iterdir()}
    assert names == {
        "pl%2Face%3D%25=" + value for value in (MISSING, "..", ".", "n%2Frth", "a%3Db", "50%25", "ü ü", "south", "%2A")
    }


# ---------------------------------------------------------------------------------------- without Spark

VALUES = st.sampled_from(["a", "A", "b/c", "..", "x=1", "100%", "%2F", " ", "ü", "tab\t", "q'\"", None])
ROWS = st.lists(st.tuples(VALUES, st.sampled_from([-1, 0, 7, None]), st.integers(0, 3), st.integers(1, 3)), min_size=1)


def in_memory(rows: list[tuple[Any, ...]], by: list[str], root: Path) -> ds.Dataset:
    """Write TUPLES as one task does, in chunks of a few rows, and open what it wrote."""
    names = ["k", "v", "x"]
    columns = [pa.array([row[i] for row in rows], kind) for i, kind in enumerate([pa.string(), pa.int32(), pa.int64()])]
    tuples = pa.table([*columns, pa.array([row[3] for row in rows], pa.int64())], names=[*names, "n_rows"])
    once = sorted_tuples(tuples, first=by)
    repeats = once.column("n_rows").to_pylist()
    table = once.select(names).take(pa.array([i for i, n in enumerate(repeats) for _ in range(n)]))
    table = table.add_column(0, FILE, pa.array([0] * table.num_rows, pa.int32()))
    table = table.set_column(1, "k", table.column("k").dictionary_encode())
    chunks = [table.slice(begin, 3) for begin in range(0, table.num_rows, 3)]
    release = parquet_files(Batches(None, (), T.StructType()), at(root / "parts"), by)  # type: ignore[arg-type]
    parts = pa.concat_tables(release.steps[-1](iter(chunks))).to_pylist()
    facts = sorted((json.loads(part["facts"])["directory"], part["name"]) for part in parts)
    name_files(
        at(root / "parts"), [name for _, name in facts], root / "data", "parquet", places=[where for where, _ in facts]
    )
    schema = pa.schema([("k", pa.string()), ("v", pa.int32()), ("x", pa.int64())])
    hive = ds.HivePartitioning(pa.schema([schema.field(name) for name in by]), null_fallback=MISSING)
    return ds.dataset(root / "data", schema=schema, partitioning=hive)


@settings(max_examples=60)
@given(ROWS, st.sampled_from([["k"], ["v"], ["k", "v"], ["v", "k"]]), st.randoms())
def test_partitioning_moves_rows_and_changes_none(rows: list[tuple[Any, ...]], by: list[str], pick: Any) -> None:
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        found = in_memory(rows, by, root).to_table().to_pylist()
        expected = Counter()
        for k, v, x, n in rows:
            expected[k, v, x] += n
        assert Counter((row["k"], row["v"], row["x"]) for row in found) == expected
        # One file a directory, all below the release, and no way the rows came shows.
        shuffled = [part for row in rows for part in ([(*row[:3], 1)] * row[3])]
        pick.shuffle(shuffled)
        again = in_memory(shuffled, by, root / "again")
        files = {path.relative_to(root / "data"): path.read_bytes() for path in (root / "data").rglob("*.parquet")}
        assert len(files) == len({tuple(row["kv".index(name)] for name in by) for row in rows})
        assert files == {Path(f).relative_to(root / "again" / "data"): Path(f).read_bytes() for f in again.files}


def test_what_a_file_costs_does_not_grow_with_the_values_of_the_others(tmp_path: Path) -> None:
    """Pieces of a chunk do not drag its whole dictionary along."""
    table = pa.table({FILE: pa.array([0] * 1000, pa.int32()), "d": [i // 2 for i in range(1000)]})
    table = table.append_column("t", pa.array([f"text {i}" for i in range(1000)]).dictionary_encode())
    pieces = list(_pieces([table], ["d"]))
    assert [key for key, _ in pieces] == [(0, str(i)) for i in range(500)]
    assert {len(piece.column("t").chunk(0).dictionary) for _, piece in pieces} == {2}
    assert [text for _, piece in pieces for text in piece.column("t").to_pylist()] == [f"text {i}" for i in range(1000)]


@pytest.mark.parametrize("first", [[], ["b"]])
def test_rows_of_a_directory_come_together(first: list[str]) -> None:
    tuples = pa.table({"a": [1, 2, 1, 2], "b": ["x", "y", "y", None], "n_rows": pa.array([1, 1, 1, 1], pa.int64())})
    found = sorted_tuples(tuples, first=first).to_pydict()
    assert found["b"] == ([None, "x", "y", "y"] if first else ["x", "y", None, "y"])


def test_stretches_are_cut_where_any_value_changes() -> None:
    columns = [pa.chunked_array([["a", "a", "a", None, None]]), pa.chunked_array([[True, True, False, False, False]])]
    assert list(stretches(columns, 5)) == [(0, 2, ("a", "true")), (2, 3, ("a", "false")), (3, 5, (None, "false"))]
    assert list(stretches([], 5)) == [(0, 5, ())]


# ---------------------------------------------------------------------------------------- what is refused


def test_a_task_that_comes_back_to_a_directory_is_a_bug() -> None:
    places = Directories(("k",))
    assert places.place(["a"]) == "k=a"
    places.place(["b"])
    with pytest.raises(InternalError, match="do not come together"):
        places.place(["a"])


@pytest.mark.parametrize(
    ("text", "said"),
    [("", "has an empty text, which is a missing value"), (MISSING, MISSING), ("ü" * 127, "more than 255 bytes")],
)
def test_values_that_are_no_names_are_refused(text: str, said: str) -> None:
    with pytest.raises(InputError, match=r"output\.partition_by: column 'k'") as caught:
        Directories(("k",)).place([text])
    assert said in str(caught.value)
    assert "ü" not in str(caught.value)
    assert Directories(("k",)).place(["ü" * 126])


def test_too_many_directories_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directories, "MOST", 2)
    places = Directories(("k",))
    places.place(["a"])
    places.place(["b"])
    with pytest.raises(InputError, match="more than 2 directories; nothing was published"):
        places.place(["c"])


@pytest.mark.parametrize("day", [-719163, 2932897])
def test_a_date_no_reader_makes_of_a_name_is_refused(day: int) -> None:
    column = pa.chunked_array([pa.array([0, day], pa.int32()).cast(pa.date32())])
    with pytest.raises(InputError, match="outside the years 1 to 9999"):
        list(stretches([column], 2))


@pytest.mark.parametrize(
    "kind",
    [T.FloatType(), T.DoubleType(), T.DecimalType(9, 2), T.TimestampType(), T.BinaryType(), T.ArrayType(T.LongType())],
)
def test_types_without_one_text_a_value_are_refused_by_name(tmp_path: Path, kind: T.DataType) -> None:
    policy = policy_by(tmp_path, "cost")
    schema = T.StructType([T.StructField("cost", kind)])
    with pytest.raises(SchemaError, match="column 'cost' is of type") as caught:
        check_partitions(policy, {}, schema)
    assert kind.simpleString() in str(caught.value)


def test_labels_are_looked_at_before_rows_are(tmp_path: Path) -> None:
    columns = {"q": quasi({"flat": {"values": [MISSING, "x"]}}), "r": quasi({"flat": {"values": ["y"]}})}
    for by, refused in ((["q"], True), (["r"], False)):
        policy = policy_of(columns, output={"path": str(tmp_path / "o"), "vault": "v", "partition_by": by})
        hierarchies = collect_hierarchies(policy, None, None)  # type: ignore[arg-type]
        if refused:
            with pytest.raises(InputError, match=f"column 'q' has the text {MISSING}"):
                check_partitions(policy, hierarchies, T.StructType())
        else:
            check_partitions(policy, hierarchies, T.StructType())
