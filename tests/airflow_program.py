"""What :mod:`airflow_runs` starts in Airflow's environment: its command line, imported once, and forked for a command.

Each line of standard input is a command as JSON: its words, its environment, and the file its output goes to. The exit
code is the answer. What is run is what the program ``airflow`` runs, but for the seconds that its imports take.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import traceback
from importlib import import_module
from typing import Any, NoReturn

NEEDED = (
    "airflow.__main__",
    "airflow.cli.commands.dag_command",
    "airflow.cli.commands.db_command",
    "airflow.providers.apache.spark.operators.spark_submit",
    "airflow.sdk.execution_time.task_runner",
)
"""What the commands that are asked for would import, the project's DAG not among it."""


def run(asked: dict[str, Any]) -> NoReturn:
    """Be the program ``airflow``."""
    code = 1
    try:
        output = os.open(asked["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        for standard in (1, 2):
            os.dup2(output, standard)
        os.environ.clear()
        os.environ.update(asked["environment"])
        sys.argv = ["airflow", *asked["words"]]
        from airflow.__main__ import main

        main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            sys.stderr.write(f"{end.code}\n")
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def prepare() -> None:
    """Do what each command would do again: import, and make the interface a task talks to; no thread is left."""
    for module in NEEDED:
        import_module(module)
    from airflow.sdk.execution_time.supervisor import in_process_api_server
    from httpx import ASGITransport, AsyncClient
    from sqlalchemy.orm import configure_mappers

    configure_mappers()
    # It is made at the first request.
    transport = ASGITransport(app=in_process_api_server().app, raise_app_exceptions=False)

    async def ask() -> None:
        async with AsyncClient(transport=transport, base_url="http://in-process") as client:
            await client.get("/")

    asyncio.run(ask())


def serve() -> None:
    # What Airflow prints does not come between the answers, and its tasks do not read the commands.
    answers, commands = os.fdopen(os.dup(1), "w"), os.fdopen(os.dup(0))
    os.dup2(2, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    prepare()
    for line in commands:
        pid = os.fork()
        if pid == 0:
            run(json.loads(line))
        answers.write(f"{os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}\n")
        answers.flush()


if __name__ == "__main__":
    serve()
