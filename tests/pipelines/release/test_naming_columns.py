"""A release stops at a quasi-identifier that names individuals, whatever is done to its values."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import small_release
from product import Privrisk, production_batches

import privrisk_spark as pr
from privrisk_spark.errors import SchemaError
from privrisk_spark.tables import naming_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.usefixtures("no_charts")

FLAT = pr.quasi_identifier(pr.flat())
GUARANTEES: dict[str, dict[str, Any]] = {
    "risk": {"decision": {"utility_at_least": 0}},
    "k-anonymity": {"guarantee": {"kind": "k-anonymity", "k": 2, "suppression_limit": 1}},
    "masked": {"guarantee": {"kind": "masked"}},
}


@pytest.fixture(scope="module", autouse=True)
def production(spark: SparkSession) -> Iterator[None]:
    with production_batches(spark):
        yield


def lines(rows: int = 400, people: int = 40) -> list[tuple[str, str, str, str, str]]:
    """Rows of individuals: a number of their own, another one, birth year, sex, and a ward of each visit."""
    random = np.random.default_rng(4)
    year, sex = random.integers(1940, 1990, people), random.choice(["f", "m"], people)
    found = []
    for who in random.integers(0, people, rows):
        number = int(who)
        ward = str(random.choice(["north", "south"]))
        found.append((f"K{number * 37:05d}", f"P{number}", str(year[who]), str(sex[who]), ward))
    return found


@pytest.fixture(scope="module")
def visits(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(
        lines(), "number string, person string, born string, sex string, ward string"
    ).coalesce(2)


def policy(kind: str, *, entity: str | None = None, **number: Any) -> pr.Policy:
    """Return a policy whose quasi-identifiers are number, birth year, sex and ward."""
    columns: dict[str, Any] = {name: dict(FLAT) for name in ("number", "born", "sex", "ward")}
    # With so few individuals a year of birth is one individual's.
    columns["born"] |= {"no_id": True}
    columns["number"] |= number
    if kind == "masked":
        columns = {
            name: {"role": "quasi-identifier", "mask": {"method": "pram", "invariant": {"keep": 0.8}}}
            | {key: value for key, value in one.items() if key == "no_id"}
            for name, one in columns.items()
        }
    table = {} if entity is None else {"entity_id": entity}
    return pr.Policy(columns={**columns, "person": pr.identifier()}, table=table, **GUARANTEES[kind])


@pytest.mark.parametrize("kind", GUARANTEES)
def test_release_quasi_identifier_that_names_individuals_is_refused(
    visits: DataFrame, tmp_path: Path, kind: str
) -> None:
    with pytest.raises(SchemaError) as refused:
        pr.release(visits, policy(kind), output=tmp_path / "out", vault=tmp_path / "vault")
    (fault,) = refused.value.faults
    assert fault.path == "columns.number.role"
    assert "the same born and sex" in fault.rule
    assert "columns.number.no_id: true" in fault.rule
    assert refused.value.exit_code == 2
    assert not list((tmp_path / "out").glob("releases/*/manifest.json"))


@pytest.mark.parametrize("kind", ["risk", "masked"])
def test_release_column_that_is_declared_to_be_no_id_passes(visits: DataFrame, kind: str) -> None:
    with pr.release(visits, policy(kind, no_id=True)) as done:
        assert "number" in done.data.columns


def test_release_second_number_of_individuals_that_are_counted_passes(visits: DataFrame) -> None:
    """Individuals are counted then, so their own rows are no others among whom they hide."""
    with pr.release(visits, policy("risk", entity="person")) as done:
        assert {row["number"] for row in done.data.collect()} == {"*"}


def test_release_sample_of_a_large_table_finds_it_too(visits: DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(naming_columns, "SAMPLED_ROWS", 200)
    with pytest.raises(SchemaError, match=r"columns\.number\.role"):
        pr.release(visits, policy("risk"))


def test_release_dp_does_not_look_at_what_columns_determine(privrisk: Privrisk, tmp_path: Path) -> None:
    """Whether a private run ends with an error must not depend on the rows."""
    rows = lines()
    numbers = sorted({row[0] for row in rows})
    public = {"role": "quasi-identifier", "unknown": "suppress"}
    file = small_release.policy(
        "dp",
        tmp_path / "table.csv",
        tmp_path,
        ("columns", {
            "number": public | {"hierarchy": {"flat": {"values": numbers}}},
            "born": public | {"hierarchy": {"intervals": {"widths": [10], "domain": [1940, 1990]}}},
            "sex": public | {"hierarchy": {"flat": {"values": ["f", "m"]}}},
        }),
        ("guarantee.schemes", [[0, 0, 0], [1, 1, 0]]),
    )  # fmt: skip
    text = "\n".join(["number;born;sex", *[f"{row[0]};{row[2]};{row[3]}" for row in rows]])
    (tmp_path / "table.csv").write_text(text + "\n")
    ran = privrisk(file, "--run-id", "r1", root=tmp_path)
    assert ran.code == 0, ran.err
