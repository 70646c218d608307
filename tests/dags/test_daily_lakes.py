"""A lake table released daily into another, at last by the DAG: three days whose releases compose, one run again."""

from __future__ import annotations

import json
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import connectors
import lakes
import pandas as pd
import pytest
import yaml
from airflow_runs import Airflow
from connectors import Connector, ordered, published
from naive_releases import Asked, Attacker, Levels, Record, levels_of, tables, writer
from product import Privrisk
from typer.testing import CliRunner

from privrisk_spark.cli.app import app

DAYS = ("2026-11-19", "2026-11-20", "2026-11-21")
ASKED: tuple[Asked, ...] = ((1, 0, 1), (2, 1, 0), (3, 1, 1))


@dataclass(frozen=True)
class Lake(ABC):
    """A format's tables: the source, which its connector writes, and that of the releases, which it reads.

    Attributes
    ----------
    place : Path
        Where its tables are.
    """

    connector: Connector
    place: Path

    def written(self, rows: dict[str, Record]) -> None:
        """Make the source hold other rows, as a new version."""
        values = ", ".join(f"('{identity}', {age}, '{city}')" for identity, (age, city) in rows.items())
        self.connector(f"INSERT OVERWRITE {self.source} VALUES {values}")

    @property
    @abstractmethod
    def source(self) -> str:
        """Its name in Spark."""

    @property
    @abstractmethod
    def policy(self) -> dict[str, Any]:
        """``table`` and ``output.lake`` of a policy."""

    @abstractmethod
    def versions(self) -> list[tuple[str, list[dict[str, Any]]]]:
        """Run id and rows of each version of the releases, by the connector."""


class DeltaLake(Lake):
    @property
    def source(self) -> str:
        return f"delta.`{self.place}/visits`"

    @property
    def policy(self) -> dict[str, Any]:
        table = {"path": f"{self.place}/visits", "format": "delta", "record_id": "id"}
        return {"table": table, "lake": {"format": "delta", "path": f"{self.place}/released"}}

    def versions(self) -> list[tuple[str, list[dict[str, Any]]]]:
        at = f"delta.`{self.place}/released`"
        told = sorted(self.connector(f"DESCRIBE HISTORY {at}"), key=lambda one: one["version"])
        return [
            (
                json.loads(one["userMetadata"])["privrisk.run_id"],
                self.connector(f"SELECT * FROM {at} VERSION AS OF {one['version']}"),
            )
            for one in told
        ]


class IcebergLake(Lake):
    @property
    def source(self) -> str:
        return "lake.db.visits"

    @property
    def policy(self) -> dict[str, Any]:
        table = {"path": f"{self.place}/lake/db/visits", "format": "iceberg", "record_id": "id"}
        return {"table": table, "lake": {"format": "iceberg", "catalog": "tests.lake.released"}}

    def versions(self) -> list[tuple[str, list[dict[str, Any]]]]:
        # The connector's catalog is one of directories; it finds the table by the name that such a catalog gives it.
        metadata = Path(lakes.metadata_of(lakes.catalog(self.place / "lake").load_table("lake.released")))
        shutil.copy(metadata, metadata.with_name("v1.metadata.json"))
        metadata.with_name("version-hint.text").write_text("1")
        at = "lake.lake.released"
        return [
            (
                dict(one["summary"])["privrisk.run_id"],
                self.connector(f"SELECT * FROM {at} VERSION AS OF {one['snapshot_id']}"),
            )
            for one in self.connector(f"SELECT * FROM {at}.snapshots ORDER BY committed_at")
        ]


@pytest.fixture(
    params=[
        pytest.param("delta", marks=pytest.mark.thorough("tests/pipelines/release/test_delta_connector.py")),
        "iceberg",
    ]
)
def lake(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lake]:
    if request.param == "delta":
        with connectors.delta(tmp_path) as connector:
            connector(f"CREATE TABLE delta.`{tmp_path}/visits` (id STRING, age INT, city STRING) USING delta")
            yield DeltaLake(connector, tmp_path)
        return
    lakes.configure(monkeypatch, tmp_path / "lake")
    with connectors.iceberg(tmp_path) as connector:
        connector("CREATE TABLE lake.db.visits (id STRING, age INT, city STRING) USING iceberg")
        yield IcebergLake(connector, tmp_path)


def test_three_days_are_three_versions_whose_composed_risk_stands_beside_their_own(
    airflow: Airflow, privrisk: Privrisk, lake: Lake, tmp_path: Path
) -> None:
    """Two of them are released by hand, and the day after them by the DAG, which knows of both."""
    root, name = tmp_path / "x", f"lake-{type(lake).__name__.lower()}"
    root.mkdir()
    document = yaml.safe_load(writer(tmp_path)(tables()[0], 1).read_text())
    catalog = f"sqlite:///{tmp_path}/lake/catalog.db"
    environment = {
        "PYICEBERG_CATALOG__TESTS__URI": catalog,
        "PYICEBERG_CATALOG__TESTS__WAREHOUSE": f"file://{tmp_path}/lake",
    }
    past: list[tuple[dict[str, Record], dict[str, Levels]]] = []
    policies: list[str] = []

    def by_hand(day: str) -> str:
        done = privrisk(str(root / "policy.yaml"), "--date", day, "--run-id", f"{name}-{day}", root=root)
        assert done.code == 0, done.err
        return done.out + done.err

    for day, rows, (utility, age, city) in zip(DAYS, tables(), ASKED, strict=True):
        lake.written(rows)
        policy = document | {
            "run": {"name": "visits", "date": "{ds}"},
            "table": lake.policy["table"],
            "history": {"lineage": "visits"},
            "decision": {"problem": "min-risk", "utility_at_least": utility},
            "utility": {"measure": "depth", "weights": {"age": age, "city": city}},
            "output": {"path": str(root / "out"), "vault": str(root / "vault"), "lake": lake.policy["lake"]},
        }
        policies.append(yaml.safe_dump(policy))
        (root / "policy.yaml").write_text(policies[-1])
        if day != DAYS[-1]:
            by_hand(day)
        else:
            code, log = airflow.run(name, day, root, **environment)
            assert code == 0, log[-4000:]
        found = pd.read_parquet(root / "vault" / "decisions").set_index("id")
        attacker = Attacker(rows, past)
        assert set(found.index) == set(rows)
        for identity in rows:
            least, _ = attacker.best(identity, (utility, age, city))
            assert found.risk[identity] == pytest.approx(least), "after all releases until then"
        past.append((rows, levels_of(found)))

    versions = lake.versions()
    assert [run_id for run_id, _ in versions] == [f"{name}-{day}" for day in DAYS]
    for run_id, rows_of in versions:
        assert ordered(rows_of) == ordered(published(root, run_id))
    (root / "policy.yaml").write_text(policies[1])
    assert "Already released, nothing done" in by_hand(DAYS[1])
    assert lake.versions() == versions
    (root / "policy.yaml").write_text(policies[-1])

    output, now = tmp_path / "composed", tables()[-1]
    asked = ["assess", str(root / "policy.yaml"), "--history", "--output", str(output), "--date", DAYS[-1]]
    composed = CliRunner().invoke(app, asked)
    assert composed.exit_code == 0, composed.output
    told = json.loads((output / "composition.json").read_text())
    assert [one["release"]["run_id"] for one in told["releases"]] == [run_id for run_id, _ in versions]
    for said, releases in zip([*told["releases"], told["together"]], [*([one] for one in past), past], strict=True):
        attacker = Attacker(now, releases)
        risks = [attacker.risk(identity, None) for identity in now if any(identity in held for held, _ in releases)]
        assert (said["records"], said["risk"]["max"]) == (len(risks), pytest.approx(max(risks)))
        assert said["risk"]["mean"] == pytest.approx(sum(risks) / len(risks))
    # Each release knew those before it and discloses again what they had, so the last one alone is what all disclose.
    assert told["risen"] == 0
    assert told["together"]["risk"] == told["releases"][-1]["risk"]
    assert told["releases"][0]["risk"]["mean"] < told["together"]["risk"]["mean"]
