"""Where tasks hand parts to each other, by what the policy names and where Spark's workers are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from policies import RISK, changed, parse

from privrisk_spark.engine import shared
from privrisk_spark.engine.shared import scratch_of
from privrisk_spark.errors import ConfigError
from privrisk_spark.runs.places import result_place
from privrisk_spark.storage.locations import Location

STORE = Location("s3", "bucket", "vault")


def vault_in(place: Location | None) -> Any:
    """Where it is, and what it is told of."""
    if place is None:
        return None
    told: list[str] = []
    return SimpleNamespace(
        location=place,
        told=told,
        note_scratch=lambda name, there: told.append(f"{name} in {there}"),
        forget_scratch=lambda name: told.append(f"no {name}"),
    )


def at(master: str) -> Any:
    return SimpleNamespace(conf=SimpleNamespace(get=lambda *_: master))


@pytest.fixture
def reached(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[list[tuple[str, str]]]:
    """What is looked for by tasks, under which key; nothing of it is."""
    found: list[tuple[str, str]] = []
    monkeypatch.setattr(shared, "_put_probe", lambda _: "")
    monkeypatch.setattr(
        shared, "_measure_reach", lambda _, directory, content, key: found.append((str(directory), key))
    )
    monkeypatch.setattr(shared.ObjectParts, "remove", lambda _: None)
    monkeypatch.setattr(shared, "own_directory", lambda: tmp_path)
    return found


def scratch(tmp_path: Path) -> Path:
    (tmp_path / ".scratch-r1~a").mkdir()
    return tmp_path / ".scratch-r1~a"


@pytest.mark.parametrize(
    ("master", "named", "vault", "expected"),
    [
        ("local[2]", None, STORE, []),
        ("local", None, None, []),
        ("spark://m:7077", None, STORE, [("s3://bucket/vault/scratch/scratch-r1~a", "output.vault")]),
        ("k8s://m", None, STORE, [("s3://bucket/vault/scratch/scratch-r1~a", "output.vault")]),
        ("spark://m:7077", "s3://other/x", STORE, [("s3://other/x/scratch-r1~a", "run.scratch")]),
        ("local[2]", "s3://other/x", STORE, [("s3://other/x/scratch-r1~a", "run.scratch")]),
        ("spark://m:7077", None, None, [("{path}", "output.vault")]),
        ("spark://m:7077", None, Location("file", "", "/srv/vault"), [("{path}", "output.vault")]),
    ],
)
def test_parts_go_where_all_reach_them(
    reached: list[tuple[str, str]],
    tmp_path: Path,
    master: str,
    named: str | None,
    vault: Location | None,
    expected: list[tuple[str, str]],
) -> None:
    policy = parse(changed(RISK, ("output.format", "parquet"), *([("run.scratch", named)] if named else [])))
    path = scratch(tmp_path)
    given = vault_in(vault)
    with scratch_of(at(master), policy, path, given) as held:
        assert held.shared is None or str(held.shared) == expected[0][0]
        assert (held.shared is not None) == bool(expected and "://" in expected[0][0])
    assert reached == [(where.format(path=path), key) for where, key in expected]
    noted = [f".scratch-r1~a in {where}" for where, _ in expected if "://" in where]
    assert given is None or given.told == [*noted, *("no .scratch-r1~a" for _ in noted)]


def test_a_place_of_findings_in_a_store_serves_where_workers_see_no_disk(
    reached: list[tuple[str, str]], tmp_path: Path
) -> None:
    policy, place = parse(RISK), result_place("s3://bucket/findings", "assessments")
    with scratch_of(at("local[2]"), policy, scratch(tmp_path), place=place) as held:
        assert held.shared is None
    with scratch_of(at("spark://m"), policy, tmp_path / ".scratch-r1~a", place=place) as held:
        assert str(held.shared) == "s3://bucket/findings/scratch/scratch-r1~a"
    assert reached == [(str(held.shared), "--output")]
    reached.clear()
    with scratch_of(
        at("spark://m"), policy, tmp_path / ".scratch-r1~a", place=result_place(str(tmp_path), "assessments")
    ):
        assert reached == [(str(tmp_path / ".scratch-r1~a"), "--output")], "a command without a vault names none"


def test_of_a_connect_server_nobody_knows_where_it_is(reached: list[tuple[str, str]], tmp_path: Path) -> None:
    client = type("Session", (), {"__module__": "pyspark.sql.connect.session", "conf": at("local[2]").conf})()
    with scratch_of(
        client, parse(changed(RISK, ("output.format", "parquet"))), scratch(tmp_path), vault_in(STORE)
    ) as held:
        assert str(held.shared) == "s3://bucket/vault/scratch/scratch-r1~a"
    assert reached == [(str(held.shared), "output.vault")]


def test_a_wrong_bucket_is_named_and_leaves_no_note_that_would_have_the_next_run_look_there(
    endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert endpoint
    monkeypatch.setattr(shared, "own_directory", lambda: tmp_path)
    policy = parse(changed(RISK, ("run.scratch", "s3://no-such-bucket/x")))
    place, vault = result_place(str(tmp_path / "findings"), "assessments"), vault_in(STORE)
    rule = r"run\.scratch: 's3://no-such-bucket/x/scratch-r1~\w+/probe': there is no such bucket or container; make it"
    with (
        pytest.raises(ConfigError, match=rule),
        place.held("r1") as path,
        scratch_of(at("spark://m"), policy, path, vault),
    ):
        pass
    assert not list((tmp_path / "findings").glob(".scratch-*"))
    assert [line.split()[0] for line in vault.told] == [path.name, "no"]


def test_what_needs_a_shared_disk_is_refused_where_the_vault_takes_its_place(
    reached: list[tuple[str, str]], tmp_path: Path
) -> None:
    policy = parse(changed(RISK, ("history", ["/srv/vault"])))
    rule = "with history it needs output.vault, and every vault that history names, in an object store"
    path = scratch(tmp_path)
    with scratch_of(at("local[2]"), policy, path, vault_in(STORE)):
        pass
    with (
        pytest.raises(ConfigError, match=rf"output\.vault: {rule}"),
        scratch_of(at("spark://m"), policy, path, vault_in(STORE)),
    ):
        pass
    assert reached == []
    assert list(path.iterdir()) == [], "before anything is noted"
