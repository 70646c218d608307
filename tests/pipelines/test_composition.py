"""What releases that know nothing of each other disclose together, against an attacker who holds all their cells."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from naive_releases import Attacker, Levels, Record, decisions, levels_of, tables, writer
from product import Privrisk
from typer.testing import CliRunner

from privrisk_spark.cli.app import app
from privrisk_spark.results.composition import QUANTILES


def test_composed_risk_is_that_of_who_holds_all_cells(privrisk: Privrisk, tmp_path: Path) -> None:
    write, vault = writer(tmp_path), str(tmp_path / "vault")
    past: list[tuple[dict[str, Record], dict[str, Levels]]] = []
    of_day = tables()
    for day, (rows, age, city) in enumerate(zip(of_day, (0, 1, 1), (1, 0, 2), strict=True), 1):
        policy = write(
            rows,
            day,
            history=[],
            decision={"problem": "min-risk", "utility_at_least": 2 * city or 2},
            utility={"measure": "depth", "weights": {"age": age, "city": city}},
        )
        past.append((rows, levels_of(decisions(privrisk(str(policy), root=tmp_path)))))
    now = of_day[-1]
    output = tmp_path / "composed"
    asked = write(now, 9, history=[vault])
    found = CliRunner().invoke(app, ["assess", str(asked), "--history", "--output", str(output)])
    assert found.exit_code == 0, found.output
    result = json.loads((output / "composition.json").read_text())

    def expected(releases: list[tuple[dict[str, Record], dict[str, Levels]]]) -> dict[str, float]:
        attacker = Attacker(now, releases)
        held = {identity for rows, _ in releases for identity in rows if identity in now}
        return {identity: attacker.risk(identity, None) for identity in held}

    alone = [expected([one]) for one in past]
    together = expected(past)
    for said, (wanted, releases) in zip(
        [*result["releases"], result["together"]],
        [*((one, [release]) for one, release in zip(alone, past, strict=True)), (together, past)],
        strict=True,
    ):
        assert said["records"] == len(wanted)
        assert said["changed"] == len({i for rows, _ in releases for i in rows if i in now and rows[i] != now[i]})
        assert said["risk"]["mean"] == pytest.approx(sum(wanted.values()) / len(wanted))
        assert said["risk"]["max"] == pytest.approx(max(wanted.values()))
        ordered = sorted(wanted.values())
        for share in QUANTILES:
            assert said["quantiles"][f"{share:g}"] == pytest.approx(ordered[math.ceil(share * len(ordered)) - 1])
    risen = [i for i, risk in together.items() if risk > max(one.get(i, 0.0) for one in alone) * (1 + 1e-12)]
    assert result["risen"] == len(risen) > 0
    assert all(together[i] >= one[i] * (1 - 1e-12) for one in alone for i in one)
    page = (output / "composition.html").read_text()
    assert result["paragraph"] in page
    assert "all together" in page
    measures = json.loads((output / "measures.json").read_text())
    assert {"name", "value", "unit", "parameters", "status"} == set(measures[0])
    assert f"The risk of {len(risen):,} records is greater" in found.output
    # Of one release nothing is composed.
    manifest = tmp_path / "out" / "releases" / str(result["releases"][0]["release"]["run_id"]) / "manifest.json"
    single = write(now, 10, history=[str(manifest)])
    assert (
        CliRunner().invoke(app, ["assess", str(single), "--history", "--output", str(tmp_path / "one")]).exit_code == 0
    )
    of_one = json.loads((tmp_path / "one" / "composition.json").read_text())
    assert of_one["risen"] == 0
    assert {**of_one["together"], "release": None} == {**of_one["releases"][0], "release": None}
    assert of_one["releases"][0] == result["releases"][0]


def test_without_a_history_there_is_nothing_to_compose(privrisk: Privrisk, tmp_path: Path) -> None:
    del privrisk
    policy = writer(tmp_path)(tables()[0], 1)
    ran = CliRunner().invoke(app, ["assess", str(policy), "--history", "--output", str(tmp_path / "o")])
    assert ran.exit_code == 2
    assert "history: is required with --history" in ran.output
