"""Airflow, for all tests of the DAG."""

from __future__ import annotations

from collections.abc import Iterator

import airflow_runs
import pytest
from airflow_runs import Airflow


@pytest.fixture(scope="session")
def airflow(tmp_path_factory: pytest.TempPathFactory, java_options: str) -> Iterator[Airflow]:
    place = airflow_runs.environment()
    if place is None:
        missing = "Airflow is not installed here: make .venv-airflow/ready, or set PRIVRISK_AIRFLOW to its environment"
        if airflow_runs.required():
            pytest.fail(missing)
        pytest.skip(missing)
    made = Airflow.made(place, tmp_path_factory.mktemp("airflow"), java_options)
    yield made
    made.end()
