"""A release a day: an Airflow DAG to copy, with ``privrisk_status.py`` beside it (docs/schedules.md, "With Airflow").

Airflow's environment needs ``apache-airflow-providers-apache-spark``, and neither this project nor Spark: both are in
the environment that ``spark-submit`` is of. Keys and credentials stand in no argument and no template: the policy names
them (``guarantee.key: env:NAME``, ``ledger.url: env:NAME``), and the job finds them in its own environment.
"""

from __future__ import annotations

import datetime as dt
import os
import tempfile
from pathlib import Path
from typing import Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import DAG, Asset, CronDataIntervalTimetable
from airflow.sdk.exceptions import AirflowException, AirflowFailException
from privrisk_status import answer_of, version_of

DATE = "{{ ds | default(dag_run.run_after | ds) }}"
"""The day that is released: that of the run, or today (UTC) for a run that was started by hand or by an asset."""

QUIET = {"spark.log.level": "OFF"}
"""What Spark says of a task that failed may quote rows, and Airflow keeps it. The job's own lines never do."""


class PrivriskReleaseOperator(SparkSubmitOperator):
    """Submit ``jobs/release.py``, and let Airflow try again only what another attempt may change.

    Exit codes 1 (refused by a check or the budget) and 2 (policy or input must be mended) fail the task for good; all
    else that fails is tried again as the task's ``retries`` say, as is a run whose ``status.json`` does not say how it
    ended. The task succeeds when the run says that its release is published, and tells so by its asset.

    Parameters
    ----------
    policy : str
        Its absolute path.
    output_path, vault_path : str
        Absolute paths or URIs; they take the place of the policy's ``output.path`` and ``output.vault``. How the run
        ended it says in a file on the machine of the task, which is where the driver runs with deploy mode client; with
        another one the vault must be a path that is seen from there.
    release_id : str
        Run id; a task that runs again with it makes no second release.
    date : str
        Business date, YYYY-MM-DD.
    published : Asset
        Gets an event when the release is there.
    **options
        Of ``SparkSubmitOperator``.
    """

    template_fields = (*SparkSubmitOperator.template_fields, "output_path", "vault_path", "release_id", "date")

    def __init__(
        self,
        *,
        policy: str,
        output_path: str,
        vault_path: str,
        release_id: str,
        date: str,
        published: Asset,
        **options: Any,
    ) -> None:
        arguments = ["--config", policy, "--date", date, "--run-id", release_id]
        places = ["--set", f"output.path={output_path}", "--set", f"output.vault={vault_path}"]
        super().__init__(
            application_args=[*arguments, *places], name=f"privrisk {release_id}", outlets=[published], **options
        )
        self.output_path, self.vault_path = output_path, vault_path
        self.release_id, self.date, self.published = release_id, date, published

    def execute(self, context: Any) -> None:
        """Submit the job, and judge how it ended by what it says itself."""
        in_vault = None if "://" in self.vault_path else Path(self.vault_path) / "status.json"
        before = None if in_vault is None else version_of(in_vault)
        asked, failure = self.application_args, None
        with tempfile.TemporaryDirectory(prefix="privrisk-") as own:
            status = Path(own) / "status.json"
            self.application_args = [*(asked or []), "--status-file", str(status)]
            try:
                super().execute(context)
            except Exception as error:
                failure = error
            finally:
                self.application_args = asked
            answer = answer_of(status, self.release_id, before=None)
        if answer is None and in_vault is not None:  # the driver ran elsewhere
            answer = answer_of(in_vault, self.release_id, before=before)
        if answer is not None and answer.final:
            told = f"Run {self.release_id} ended with exit code {answer.code}, which no retry changes. {answer.text}"
            raise AirflowFailException(told) from failure
        if failure is not None:
            raise failure
        if answer is None or answer.code != 0:
            raise AirflowException(
                f"The job ended, but neither its status file nor '{self.vault_path}' says that run {self.release_id} "
                "is published. Did the driver run on this machine, and did spark-submit wait for the end?"
            )
        manifest = f"{self.output_path}/releases/{self.release_id}/manifest.json"
        context["outlet_events"][self.published].extra = {
            "run_id": self.release_id, "date": self.date, "manifest": manifest,
        }  # fmt: skip


def release_dag(
    name: str,
    *,
    policy: str,
    output: str,
    vault: str,
    application: str,
    schedule: str = "0 3 * * *",
    start: dt.datetime,
    catchup: bool = False,
    retries: int = 12,
    retry_delay: dt.timedelta = dt.timedelta(minutes=15),
    python: str | None = None,
    spark_submit: str = "spark-submit",
    connection: str = "spark_default",
    conf: dict[str, str] | None = None,
) -> DAG:
    """Return the DAG ``privrisk_release_NAME``, which releases each day once that day has ended.

    Parameters
    ----------
    name : str
        Begins run ids (``NAME-2026-11-21``), and names the DAG and the asset.
    policy, output, vault : str
        See :class:`PrivriskReleaseOperator`.
    application : str
        Absolute path of ``jobs/release.py``.
    schedule : str
        Cron expression in UTC. The day released is the one on which the interval that has ended began.
    start : datetime
        First day.
    catchup : bool
        Release the days since ``start``, too, when the DAG is turned on.
    retry_delay : timedelta
        Both say how long a late table is waited for.
    python : str, optional
        Interpreter of the environment with Spark and this project, where driver and workers run.
    spark_submit : str
        That environment's ``spark-submit``.
    connection : str
        Airflow's connection to Spark.
    conf : dict, optional
        Of Spark, beside :data:`QUIET`. It is shown in logs and in the web interface: no place for secrets.
    """
    uri = f"{output.rstrip('/')}/manifest.json"
    published = Asset(name=f"privrisk_release_{name}", uri=uri if "://" in uri else f"file://{uri}")
    with DAG(
        dag_id=f"privrisk_release_{name}",
        schedule=CronDataIntervalTimetable(schedule, timezone="UTC"),
        start_date=start,
        catchup=catchup,
        max_active_runs=1,  # one run at a time works on an output
        tags=["privrisk"],
    ) as dag:
        PrivriskReleaseOperator(
            task_id="release",
            policy=policy,
            output_path=output.rstrip("/"),
            vault_path=vault,
            release_id=f"{name}-{DATE}",
            date=DATE,
            published=published,
            application=application,
            conn_id=connection,
            spark_binary=spark_submit,
            conf=QUIET | (conf or {}),
            env_vars=None if python is None else {"PYSPARK_PYTHON": python},
            depends_on_past=True,  # what comes after a day may build on it
            retries=retries,
            retry_delay=retry_delay,
        )
    return dag


def _setting(name: str, default: str) -> str:
    return os.environ.get(f"PRIVRISK_DAG_{name}", default)


# One call a policy. Write your values here, or set the variables where Airflow reads its DAGs and runs its tasks.
dag = release_dag(
    _setting("NAME", "visits"),
    policy=_setting("POLICY", "/srv/privrisk/visits.yaml"),
    output=_setting("OUTPUT", "/srv/releases/visits"),
    vault=_setting("VAULT", "/srv/vault/visits"),
    application=_setting("APPLICATION", "/opt/privrisk/jobs/release.py"),
    schedule=_setting("SCHEDULE", "0 3 * * *"),
    start=dt.datetime.fromisoformat(_setting("START", "2026-11-01")).replace(tzinfo=dt.UTC),
    retries=int(_setting("RETRIES", "12")),
    retry_delay=dt.timedelta(minutes=float(_setting("RETRY_MINUTES", "15"))),
    python=_setting("PYTHON", "/opt/privrisk/.venv/bin/python"),
    spark_submit=_setting("SPARK_SUBMIT", "/opt/privrisk/.venv/bin/spark-submit"),
    connection=_setting("CONNECTION", "spark_default"),
)
