"""Airflow in an environment of its own: where it is, and runs of the project's DAG in it."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

ROOT = Path(__file__).resolve().parents[1]
PLACE = ROOT / ".venv-airflow"
"""Where `make .venv-airflow/ready` puts it; PRIVRISK_AIRFLOW names the directory of another."""

PROGRAM = Path(__file__).with_name("airflow_program.py")

SECONDS = 600
"""A command that takes longer has failed."""

SPARK = """
spark.sql.shuffle.partitions 2
spark.ui.enabled false
spark.driver.extraJavaOptions """


def environment() -> Path | None:
    """Return the directory of the environment with Airflow, if there is one."""
    place = Path(os.environ.get("PRIVRISK_AIRFLOW", PLACE))
    return place if (place / "bin" / "airflow").exists() else None


def required() -> bool:
    """Whether its absence is a failure, as under .ci/run."""
    return "airflow" in os.environ.get("PRIVRISK_REQUIRE", "").split(",")


def _environment(root: Path, **settings: str) -> dict[str, str]:
    """Return the environment of Airflow's processes, whose home is below a root."""
    kept = ("PATH", "JAVA_HOME", "HOME", "LANG", "NUMBA_CACHE_DIR", "SPARK_LAUNCHER_OPTS")
    connection = {"conn_type": "spark", "host": "local[2]", "extra": {"deploy-mode": "client"}}
    return {
        # Of the small Java program that puts the real one's command together.
        "SPARK_LAUNCHER_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        **{name: os.environ[name] for name in kept if name in os.environ},
        "AIRFLOW_HOME": str(root / "home"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW_CONN_SPARK_LOCAL": json.dumps(connection),
        "SPARK_CONF_DIR": str(root / "conf"),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PRIVRISK_DAG_APPLICATION": str(ROOT / "jobs" / "release.py"),
        "PRIVRISK_DAG_CONNECTION": "spark_local",
        "PRIVRISK_DAG_PYTHON": str(root / "python"),
        "PRIVRISK_DAG_SPARK_SUBMIT": str(Path(sys.executable).parent / "spark-submit"),
        "PRIVRISK_DAG_RETRIES": "3",
        "PRIVRISK_DAG_RETRY_MINUTES": "0",
        **settings,
    }


@dataclass(frozen=True)
class Command:
    """A command of Airflow that was started.

    Attributes
    ----------
    log : Path
        What it says.
    of_program : Path
        What the program says that runs it.
    """

    program: subprocess.Popen[str]
    log: Path
    of_program: Path

    def ended(self) -> tuple[int, str]:
        """Wait for its end; return exit code and log."""
        assert self.program.stdout is not None
        ready, _, _ = select.select([self.program.stdout], [], [], SECONDS)
        answer = self.program.stdout.readline() if ready else ""
        said = self.log if self.log.exists() else self.of_program
        assert answer, said.read_text()[-4000:]
        return int(answer), self.log.read_text()


@dataclass(frozen=True)
class Airflow:
    """A home of Airflow, with an SQLite database and no servers.

    Attributes
    ----------
    programs : Path
        ``bin`` of its environment.
    root : Path
        All that Airflow and Spark write for themselves.
    program : subprocess.Popen
        :mod:`airflow_program`, which runs its commands.
    """

    programs: Path
    root: Path
    program: subprocess.Popen[str]

    @classmethod
    def made(cls, place: Path, root: Path, java_options: str) -> Airflow:
        (root / "conf").mkdir()
        (root / "conf" / "spark-defaults.conf").write_text(f"{SPARK}{java_options}\n")
        # The project is importable where Spark runs, and not where Airflow does.
        interpreter = root / "python"
        interpreter.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" "$@"\n')
        interpreter.chmod(0o700)
        with (root / "program.log").open("wb") as said:
            program = subprocess.Popen(
                [place / "bin" / "python", "-P", PROGRAM],
                env=_environment(root),
                cwd=root,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                text=True,
                start_new_session=True,
            )
        made = cls(place / "bin", root, program)
        code, log = made.started("db", "migrate").ended()
        assert code == 0, log[-2000:]
        return made

    def environment(self, **settings: str) -> dict[str, str]:
        return _environment(self.root, **settings)

    def started(self, *words: str, **settings: str) -> Command:
        """Start a command of the program ``airflow``; its end must be waited for before the next one."""
        assert self.program.stdin is not None
        log = self.root / f"{uuid4().hex}.log"
        asked = {"words": words, "environment": self.environment(**settings), "log": str(log)}
        self.program.stdin.write(json.dumps(asked) + "\n")
        self.program.stdin.flush()
        return Command(self.program, log, self.root / "program.log")

    def start(self, name: str, date: str, root: Path, **settings: str) -> Command:
        """``airflow dags test`` of a date, with policy, output and vault under a root."""
        settings = {
            "PRIVRISK_DAG_NAME": name,
            "PRIVRISK_DAG_POLICY": str(root / "policy.yaml"),
            "PRIVRISK_DAG_OUTPUT": str(root / "out"),
            "PRIVRISK_DAG_VAULT": str(root / "vault"),
            **settings,
        }
        return self.started("dags", "test", f"privrisk_release_{name}", date, **settings)

    def run(self, name: str, date: str, root: Path, **settings: str) -> tuple[int, str]:
        """Return exit code and log of a date's test."""
        return self.start(name, date, root, **settings).ended()

    def rows(self, query: str, *values: str) -> list[tuple[Any, ...]]:
        """Ask Airflow's database."""
        with closing(sqlite3.connect(f"file:{self.root}/home/airflow.db?mode=ro", uri=True, timeout=60)) as database:
            return database.execute(query, values).fetchall()

    def tries(self, name: str, date: str) -> list[str]:
        """How the tries of a date's task ended, in order."""
        found = []
        for table in ("task_instance_history", "task_instance"):
            found += self.rows(
                f"select t.state, t.try_number from {table} t join dag_run r on r.run_id = t.run_id and"
                " r.dag_id = t.dag_id where r.dag_id = ? and r.logical_date like ? order by t.try_number",
                f"privrisk_release_{name}",
                f"{date}%",
            )
        return [str(state) for state, _ in sorted(found, key=lambda row: row[1])]

    def events(self, name: str) -> list[dict[str, str]]:
        """What the events of the DAG's asset hold, in order."""
        query = "select e.extra from asset_event e join asset a on a.id = e.asset_id where a.name = ? order by e.id"
        return [json.loads(extra) for (extra,) in self.rows(query, f"privrisk_release_{name}")]

    def left(self) -> bytes:
        """Everything Airflow has kept, as one text."""
        return b"\n".join(path.read_bytes() for path in sorted((self.root / "home").rglob("*")) if path.is_file())

    def end(self) -> None:
        """Stop it, and what a failed test may have left at work."""
        with suppress(ProcessLookupError):
            os.killpg(self.program.pid, signal.SIGTERM)
        for stream in (self.program.stdin, self.program.stdout):
            assert stream is not None
            stream.close()
        self.program.wait()
        shutil.rmtree(self.root / "home", ignore_errors=True)
