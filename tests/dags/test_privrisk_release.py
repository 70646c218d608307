"""The DAG in a real Airflow, by ``airflow dags test``, with real jobs: what is released, tried again, and told."""

from __future__ import annotations

import hashlib
import json
import subprocess
import time
from pathlib import Path
from uuid import uuid4

import airflow_runs
import pytest
import small_release
from airflow_runs import Airflow
from product import Privrisk

from benchmarks.s3_server import BUCKET, ENVIRONMENT
from privrisk_spark.storage.locations import Location
from privrisk_spark.storage.objects import ObjectStore

DAYS = ("2026-11-19", "2026-11-20", "2026-11-21", "2026-11-22")
KEY = "e7" * 16 + "19" * 16
VALUE = "zQxCanaryCity"


def state(root: Path) -> dict[str, str]:
    """Every file of the output, but for the lock."""
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted((root / "out").rglob("*"))
        if path.is_file() and path.name != ".lock"
    }


def released(root: Path) -> dict[str, int]:
    """Run ids with the number each release got."""
    manifests = [json.loads(file.read_text()) for file in (root / "out").glob("releases/*/manifest.json")]
    return {manifest["run_id"]: manifest["sequence"] for manifest in manifests}


def wait_for(condition: object, what: str) -> None:
    end = time.monotonic() + 300
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < end, what
        time.sleep(0.2)


def test_days_are_released_in_order_once_each_until_the_budget_is_used_up(
    airflow: Airflow, privrisk: Privrisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Days of a private table: one released by hand, one that is late, one that is there, and one too many."""
    root, lake = tmp_path / "x", tmp_path / "lake"
    for day in DAYS:
        (lake / f"ds={day}").mkdir(parents=True)
        small_release.write_table(lake / f"ds={day}")
        if day != DAYS[1]:
            (lake / f"ds={day}" / "_SUCCESS").touch()
    file = small_release.policy(
        "dp", Path("unused"), root, ("table.path", f"{lake}/ds={{ds}}"), ("run.date", "{ds}"),
        ("checks", {"complete": {"marker": "_SUCCESS"}}), ("guarantee.key", "env:RELEASE_KEY"),
        ("ledger.cap", {"epsilon": 6, "delta": 1e-4}),
    )  # fmt: skip
    logs = []

    def run(day: str) -> tuple[int, str]:
        code, log = airflow.run("days", day, root, RELEASE_KEY=KEY)
        logs.append(log)
        return code, log

    monkeypatch.setenv("RELEASE_KEY", KEY)
    by_hand = privrisk(file, "--date", DAYS[0], "--run-id", f"days-{DAYS[0]}", root=root)
    assert by_hand.code == 0, by_hand.err
    before, charges = state(root), small_release.charged(root)
    code, log = run(DAYS[0])
    assert code == 0, log[-4000:]
    assert "Already released, nothing done" in log
    assert (state(root), small_release.charged(root)) == (before, charges)

    late = airflow.start("days", DAYS[1], root, RELEASE_KEY=KEY, PRIVRISK_DAG_RETRY_MINUTES="0.05")
    wait_for(lambda: airflow.tries("days", DAYS[1])[-1:] == ["up_for_retry"], "the late day is to be tried again")
    assert json.loads((root / "vault" / "status.json").read_text())["code"] == 3
    assert set(released(root)) == {f"days-{DAYS[0]}"}
    (lake / f"ds={DAYS[1]}" / "_SUCCESS").touch()
    code, log = late.ended()
    logs.append(log)
    assert code == 0, log[-4000:]
    tries = airflow.tries("days", DAYS[1])
    assert (len(tries) >= 2, set(tries[:-1]), tries[-1]) == (True, {"failed"}, "success")

    code, log = run(DAYS[2])
    assert code == 0, log[-4000:]
    expected = [
        {"run_id": f"days-{day}", "date": day, "manifest": f"{root}/out/releases/days-{day}/manifest.json"}
        for day in DAYS[:3]
    ]
    assert released(root) == {event["run_id"]: number for number, event in enumerate(expected, start=1)}
    assert airflow.events("days") == expected, "one event a release, when it is there"

    before, charges = state(root), small_release.charged(root)
    assert charges == 3 * small_release.CHARGED
    code, log = run(DAYS[3])
    assert code != 0
    assert airflow.tries("days", DAYS[3]) == ["failed"], log[-4000:]
    assert f"Run days-{DAYS[3]} ended with exit code 1, which no retry changes" in log
    assert airflow.events("days") == expected
    assert (state(root), small_release.charged(root)) == (before, charges)
    for kept in (*(log.encode() for log in logs), airflow.left()):
        assert KEY.encode() not in kept


def test_what_the_job_does_not_say_itself_is_tried_again(airflow: Airflow, tmp_path: Path) -> None:
    """A job that ends in each of these ways, try by try; only the last is its own word that no attempt helps."""
    root = tmp_path / "x"
    (root / "vault").mkdir(parents=True)
    (root / "policy.yaml").touch()

    def said(run_id: str, code: str) -> str:
        return f'{{"run_id": "{run_id}", "code": {code}, "message": "It is so.", "what_to_do": "Mend it."}}'

    mine = f"silent-{DAYS[0]}"
    (root / "vault" / "status.json").write_text(said(mine, "2"))
    ways = {
        1: "exit 1",  # beside the answer of an earlier attempt
        2: f"echo '{said(mine, '2')[:-9]}' > new; mv new status.json; exit 2",  # cut
        3: f"echo '{said('another', '1')}' > new; mv new status.json; exit 1",
        4: "rm status.json; exit 0",  # an end without a word is no release
        5: f"echo '{said(mine, '1')}' > new; mv new status.json; exit 0",  # as from a cluster that loses exit codes
        6: "exit 1",
    }
    submit = tmp_path / "spark-submit"
    cases = "\n".join(f"{number}) {way};;" for number, way in ways.items())
    submit.write_text(f"#!/bin/sh\ncd '{root}/vault'\necho x >> ../tries\ncase $(wc -l < ../tries) in\n{cases}\nesac\n")
    submit.chmod(0o700)
    code, log = airflow.run("silent", DAYS[0], root, PRIVRISK_DAG_SPARK_SUBMIT=str(submit), PRIVRISK_DAG_RETRIES="9")
    assert code != 0
    assert airflow.tries("silent", DAYS[0]) == ["failed"] * 5, log[-4000:]
    assert "It is so. Mend it." in log
    assert airflow.events("silent") == []


def test_the_dag_imports_where_the_project_is_not(airflow: Airflow) -> None:
    """Nor the client of Spark that the provider brings; and without a warning."""
    program = (
        "import sys, warnings, importlib.util\n"
        "sys.modules['pyspark'] = None\n"
        f"sys.path.insert(0, {str(airflow_runs.ROOT / 'dags')!r})\n"
        "warnings.filterwarnings('error', module='privrisk_.*')\n"
        "import privrisk_release\n"
        "assert importlib.util.find_spec('privrisk_spark') is None\n"
        "dag = privrisk_release.dag\n"
        "task = dag.get_task('release')\n"
        "assert (dag.max_active_runs, dag.catchup, task.depends_on_past) == (1, False, True)\n"
        "assert [asset.uri for asset in task.outlets] == ['file:///srv/releases/visits/manifest.json'], task.outlets\n"
        "there = privrisk_release.release_dag('lake', policy='/p', output='s3://bucket/out/', vault='/v',\n"
        "    application='/a', start=dag.start_date).get_task('release')\n"
        "assert there.outlets[0].uri == 's3://bucket/out/manifest.json'\n"
        "assert 'output.path=s3://bucket/out' in there.application_args\n"
        "from airflow.serialization.encoders import coerce_to_core_timetable\n"
        "from airflow.timetables.base import TimeRestriction\n"
        "since = TimeRestriction(earliest=dag.start_date, latest=None, catchup=True)\n"
        "timetable = coerce_to_core_timetable(dag.timetable)\n"
        "first = timetable.next_dagrun_info(last_automated_data_interval=None, restriction=since)\n"
        "assert (first.logical_date.day, first.run_after.day) == (1, 2), 'the day that has ended'\n"
        "from types import SimpleNamespace as Run\n"
        "import datetime as dt\n"
        "date = dag.get_template_env().from_string(privrisk_release.DATE)\n"
        "by_hand = Run(run_after=dt.datetime(2026, 11, 21, 23, tzinfo=dt.UTC))\n"
        "assert date.render(dag_run=by_hand) == '2026-11-21'\n"
        "assert date.render(dag_run=by_hand, ds='2026-11-19') == '2026-11-19'\n"
    )
    command = [airflow.programs / "python", "-c", program]
    done = subprocess.run(
        command, check=False, env=airflow.environment(), cwd=airflow.root, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-4000:]


@pytest.mark.thorough(
    "the other runs of the DAG end by every exit code; tests/pipelines/release/test_store_vaults.py has the store"
)
def test_wrong_input_is_not_tried_again_though_the_vault_is_not_seen_from_the_task(
    airflow: Airflow, endpoint: str, tmp_path: Path
) -> None:
    """A day with a value no hierarchy knows, when there is no vault yet, and one that is released into a store."""
    root, there = tmp_path / "x", ObjectStore(Location("s3", BUCKET, uuid4().hex), retry_seconds=5)
    table = small_release.write_table(tmp_path)
    right = table.read_text()
    small_release.policy("risk", table, root, ("run.date", "{ds}"))
    vault = {"PRIVRISK_DAG_VAULT": f"{there.location}/vault", "AWS_ENDPOINT_URL": endpoint, **ENVIRONMENT}
    table.write_text(f"{right}33;{VALUE}\n")
    code, log = airflow.run("stored", DAYS[1], root, **vault)
    assert code != 0
    assert airflow.tries("stored", DAYS[1]) == ["failed"], log[-4000:]
    assert f"Run stored-{DAYS[1]} ended with exit code 2, which no retry changes" in log
    assert VALUE not in log
    assert VALUE.encode() not in airflow.left()
    assert airflow.events("stored") == []
    assert not (root / "out" / "manifest.json").exists()

    table.write_text(right)
    code, log = airflow.run("stored", DAYS[0], root, **vault)
    assert code == 0, log[-4000:]
    assert [event["run_id"] for event in airflow.events("stored")] == [f"stored-{DAYS[0]}"]
    said = json.loads(there.read(f"vault/status/stored-{DAYS[0]}.json").content)
    assert (said["phase"], said["code"]) == ("published", 0)
    assert not (root / "vault").exists()
