from __future__ import annotations

import csv
import hashlib
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privrisk_spark.errors import InputError
from privrisk_spark.pipelines.synthetic import population as synthetic
from privrisk_spark.pipelines.synthetic.country import invented_country, slot_law
from privrisk_spark.storage.ownership import MARKER

PEOPLE, ROWS = 20_000, 12_000


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    path = tmp_path_factory.mktemp("synthetic")
    synthetic.generate(path, people=PEOPLE, rows=ROWS)
    return path


def read(path: Path, name: str) -> pa.Table:
    return pa.concat_tables([pq.ParquetFile(part).read() for part in sorted((path / name).glob("part-*.parquet"))])


def hierarchy(path: Path, name: str) -> dict[str, list[str]]:
    with (path / f"{name}.csv").open(encoding="utf-8", newline="") as lines:
        rows = list(csv.reader(lines, delimiter=";"))
    assert len({row[0] for row in rows}) == len(rows)
    return {row[0]: row for row in rows}


def digests(path: Path) -> dict[str, str]:
    return {
        str(file.relative_to(path)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(path.rglob("*"))
        if file.is_file()
    }


def test_equal_seeds_give_equal_bytes_and_others_do_not(tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        synthetic.generate(tmp_path / name, people=900, rows=500, seed=seed, files=2)
    a, b, c = (digests(tmp_path / name) for name in "abc")
    assert a == b
    assert {name for name in a if a[name] == c[name]} == {MARKER, "city.csv", "race.csv", "income.csv"}


def test_writes_what_it_says(directory):
    assert sorted(digests(directory)) == [
        MARKER,
        "SYNTHETIC.md",
        "city.csv",
        "income.csv",
        *(f"population/part-0000{i}.parquet" for i in range(4)),
        "race.csv",
        *(f"table/part-0000{i}.parquet" for i in range(4)),
    ]
    text = (directory / "SYNTHETIC.md").read_text()
    assert "No row describes a real person" in text
    assert synthetic.COMPLETE in text
    for number in (2026, PEOPLE, ROWS):
        assert f"| {number} |" in text


def test_columns_types_and_sizes(directory):
    population, table = read(directory, "population"), read(directory, "table")
    assert (population.num_rows, table.num_rows) == (PEOPLE, ROWS)
    text, integer = pa.string(), pa.int32()
    assert population.schema.equals(
        pa.schema([("city", text), ("race", text), ("age", integer), ("party", text), ("sex", text)])
    )
    assert table.schema.equals(
        pa.schema(
            [
                ("person_id", text),
                ("name", text),
                ("city", text),
                ("race", text),
                ("birthdate", pa.date32()),
                ("income", integer),
                ("diagnosis", text),
            ]
        )
    )


@pytest.mark.parametrize("rows", [1, 1_700, 2_000])
def test_the_table_is_about_distinct_people_of_the_register(tmp_path, monkeypatch, rows):
    monkeypatch.setattr(synthetic, "_CHUNK", 300)  # seven chunks, the last one short
    synthetic.generate(tmp_path, people=2_000, rows=rows, files=1, nulls=False)
    population, table = read(tmp_path, "population").to_pylist(), read(tmp_path, "table").to_pylist()
    assert len(table) == rows
    there = Counter((row["city"], row["race"], row["age"]) for row in population)
    here = Counter((row["city"], row["race"], 2006 - row["birthdate"].year) for row in table)
    assert not here - there
    if rows == 2_000:
        assert here == there


def test_person_ids_are_unique_and_in_no_order(directory):
    ids = read(directory, "table")["person_id"].to_pylist()
    assert len(set(ids)) == ROWS
    assert {len(name) for name in ids} == {11}
    numbers = np.array([int(name[1:]) for name in ids])
    assert {name[0] for name in ids} == {"P"}
    assert numbers.min() >= 0
    assert numbers.max() < PEOPLE
    rising = np.count_nonzero(np.diff(numbers) > 0) / (ROWS - 1)
    assert abs(rising - 0.5) < 0.05
    assert abs(np.corrcoef(numbers, np.arange(ROWS))[0, 1]) < 0.05


@pytest.mark.parametrize(("name", "height", "leaves"), [("city", 4, 400), ("race", 2, 13), ("income", 4, 300)])
def test_hierarchies(directory, name, height, leaves):
    rows = hierarchy(directory, name)
    assert len(rows) == leaves
    assert {len(row) for row in rows.values()} == {height + 1}
    assert {row[-1] for row in rows.values()} == {"*"}
    labels = [{row[level] for row in rows.values()} for level in range(height + 1)]
    assert len(set().union(*labels)) == sum(map(len, labels))  # a label names one level
    for level in range(height):
        paths = {tuple(row[level:]) for row in rows.values()}
        assert len(paths) == len(labels[level])  # and one node, so it is a tree
        children = Counter(path[1:] for path in paths)
        assert min(children.values()) >= 2
    table, population = read(directory, "table"), read(directory, "population")
    values = set(table[name].to_pylist()) - {None}
    assert {str(value) for value in values} <= set(rows)
    if name != "income":
        assert set(population[name].to_pylist()) <= set(rows)


def test_place_counts(directory):
    rows = hierarchy(directory, "city").values()
    assert [len({row[level] for row in rows}) for level in range(5)] == [400, 120, 20, 4, 1]


def test_income_bins_hold_their_incomes(directory):
    for leaf, row in hierarchy(directory, "income").items():
        for label in row[1:-1]:
            low, high = map(int, label.strip("[)").split(","))
            assert low <= int(leaf) < high
    assert hierarchy(directory, "income")["29000"][1] == "[20000,30000)"


def test_missing_values_are_where_asked_and_change_nothing_else(directory, tmp_path):
    synthetic.generate(tmp_path, people=PEOPLE, rows=ROWS, nulls=False)
    holes, whole = read(directory, "table"), read(tmp_path, "table")
    assert not any(column.null_count for column in whole.columns)
    assert {name for name in holes.column_names if holes[name].null_count} == {"income", "race"}
    assert abs(holes["income"].null_count / ROWS - 0.05) < 0.01
    assert abs(holes["race"].null_count / ROWS - 0.005) < 0.003
    assert not any(column.null_count for column in read(directory, "population").columns)
    for name in holes.column_names:
        pairs = zip(holes[name].to_pylist(), whole[name].to_pylist(), strict=True)
        assert all(a is None or a == b for a, b in pairs)


def test_rows_do_not_depend_on_the_number_of_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(synthetic, "_CHUNK", 128)
    for files in (1, 3, 7):
        synthetic.generate(tmp_path / str(files), people=1_000, rows=600, files=files)
        parts = sorted((tmp_path / str(files) / "table").iterdir())
        sizes = [pq.ParquetFile(part).metadata.num_rows for part in parts]
        assert (len(parts), sum(sizes)) == (files, 600)
        assert max(sizes) - min(sizes) <= 1
    for name in ("population", "table"):
        assert read(tmp_path / "1", name).equals(read(tmp_path / "3", name))
        assert read(tmp_path / "1", name).equals(read(tmp_path / "7", name))


def test_a_chunk_can_be_drawn_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(synthetic, "_CHUNK", 100)
    synthetic.generate(tmp_path, people=450, rows=10, seed=9, files=2)
    country = invented_country()
    person = synthetic._draw_people(synthetic._stream(9, synthetic._POPULATION, 3), country, 100)
    alone = synthetic._register_rows(person, country)
    assert alone.to_pylist() == read(tmp_path, "population").slice(300, 100).to_pylist()


def test_chunks_and_purposes_have_streams_of_their_own():
    draws = {
        tuple(synthetic._stream(seed, purpose, chunk).integers(0, 1 << 63, size=2).tolist())
        for seed in (0, 1)
        for purpose in range(4)
        for chunk in range(3)
    }
    assert len(draws) == 24


def test_law_gives_each_value_its_share():
    law = slot_law([[1, 2, 5], [0, 1, 1e-9]])
    counts = np.array([np.bincount(group, minlength=3) for group in law])
    # largest remainders: no value is a slot away from its share; 65536 / 8 = 8192 slots per eighth
    assert counts.tolist() == [[8192, 16384, 40960], [0, 65536, 0]]
    shares = np.array([3, 1, 4, 1, 5, 9, 2.5])
    counts = np.bincount(slot_law(shares)[0])
    assert (np.abs(counts - shares / shares.sum() * 65536) < 1).all()


def test_law_of_a_group_is_drawn_for_that_group():
    law = slot_law(np.eye(3))
    group = np.array([2, 0, 1, 1, 0, 2])
    assert synthetic._draw(synthetic._stream(0, 0, 0), law, 6, group).tolist() == group.tolist()


def test_marginals_are_those_of_a_census(directory):
    population, table = read(directory, "population").to_pandas(), read(directory, "table").to_pandas()
    # Zipf with exponent 0.95 over 400 cities: the largest has 1 / sum(rank**-0.95) = 13 % of the people
    shares = population["city"].value_counts(normalize=True)
    zipf = np.arange(1, 401) ** -0.95 / (np.arange(1, 401) ** -0.95).sum()
    assert shares.iloc[0] == pytest.approx(zipf[0], abs=0.013)
    assert shares.iloc[:40].sum() == pytest.approx(zipf[:40].sum(), abs=0.02)
    assert population["age"].min() >= 0
    assert population["age"].max() <= 100
    old, young = (population["age"] >= 80).mean(), population["age"].between(20, 39).mean()
    assert 0.01 < old < 0.1 < 0.2 < young < 0.35
    region = population["city"].map({city: row[3] for city, row in hierarchy(directory, "city").items()})
    by_region = population["race"].eq("Black African").groupby(region).mean()
    assert by_region["Sudmark"] > 3 * by_region["Westmere"] > 0
    age = 2006 - table["birthdate"].map(lambda day: day.year)
    assert (table["income"][age < 16].dropna() == 0).all()
    assert table["income"][age.between(40, 55)].median() > 1.5 * table["income"][age.between(18, 24)].median()
    assert table["income"].nunique() > 150
    assert table["income"].mean() > table["income"].median()
    mean_age = age.groupby(table["diagnosis"]).mean()
    assert mean_age["hypertension"] > mean_age["otitis media"] + 20
    assert table["diagnosis"].value_counts(normalize=True).iloc[0] < 0.35
    assert table["diagnosis"].nunique() >= 20
    months = table["birthdate"].map(lambda day: day.month).value_counts(normalize=True)
    assert months.max() - months.min() < 0.03


def test_days_of_birth_reach_both_ends_of_a_year(tmp_path):
    synthetic.generate(tmp_path, people=60_000, rows=60_000, files=1)
    days = read(tmp_path, "table")["birthdate"].to_numpy()
    in_year = (days - days.astype("datetime64[Y]").astype("datetime64[D]")).astype(int) + 1
    years = days.astype("datetime64[Y]").astype(int) + 1970
    leap = years % 4 == 0
    assert (in_year[leap].min(), in_year[leap].max()) == (1, 366)
    assert (in_year[~leap & (years != 1900)].min(), in_year[~leap].max()) == (1, 365)
    assert years.min() >= 1906
    assert years.max() == 2006


def test_without_the_sensitive_column(tmp_path):
    synthetic.generate(tmp_path / "a", people=300, rows=200, sensitive=False)
    synthetic.generate(tmp_path / "b", people=300, rows=200)
    a, b = read(tmp_path / "a", "table"), read(tmp_path / "b", "table")
    assert a.equals(b.drop_columns("diagnosis"))
    assert "diagnosis" not in (tmp_path / "a" / "SYNTHETIC.md").read_text()


def test_replaces_its_own_data_and_nothing_else(tmp_path):
    synthetic.generate(tmp_path / "own", people=50, rows=20, files=4)
    synthetic.generate(tmp_path / "own", people=50, rows=20, files=2)
    assert len(list((tmp_path / "own" / "table").iterdir())) == 2
    other = tmp_path / "other" / "table"
    other.mkdir(parents=True)
    (other / "part-00000.parquet").write_bytes(b"precious")
    with pytest.raises(InputError, match="has other content than the synthetic data"):
        synthetic.generate(tmp_path / "other", people=50, rows=20)
    assert (other / "part-00000.parquet").read_bytes() == b"precious"


def test_an_interrupted_run_does_not_look_complete(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(synthetic, "_write_hierarchies", fail)
    with pytest.raises(OSError, match="disk full"):
        synthetic.generate(tmp_path, people=50, rows=20)
    assert synthetic.COMPLETE not in (tmp_path / "SYNTHETIC.md").read_text()


@pytest.mark.parametrize(
    ("sizes", "name"),
    [
        ({"people": 0, "rows": 1}, "people"),
        ({"people": 10**9, "rows": 1}, "people"),
        ({"people": 5, "rows": 6}, "rows"),
        ({"people": 5, "rows": 0}, "rows"),
        ({"people": 5, "rows": 2, "files": 3}, "files"),
        ({"people": 5, "rows": 2, "files": 0}, "files"),
        ({"people": 5, "rows": 2, "files": 1, "seed": -1}, "seed"),
    ],
)
def test_refuses_what_it_cannot_write(tmp_path, sizes, name):
    with pytest.raises(InputError, match=f"^{name} must be between"):
        synthetic.generate(tmp_path / "new", **sizes)
    assert not (tmp_path / "new").exists()
