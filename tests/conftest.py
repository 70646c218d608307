"""One lazy Spark session for all tests, scratch directories, and where the real data lies."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import azure_server
import google_server
import machine_code
import pytest
import typer.main
import typer.testing
from hypothesis import HealthCheck, is_hypothesis_test, settings
from ledgers import InFile, OnServer
from postgresql import Server, binaries, server
from product import Privrisk, Ran, production_batches, release
from shared import remember_java_names, submodules, without_charts
from sources import needs_spark

from benchmarks import s3_server
from benchmarks.standalone import free_port
from privrisk_spark.ledger.ledger import Ledger

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[1]

# Timings are never asserted; a slow machine is not a failure. Examples are derandomized so that CI is reproducible.
settings.register_profile("ci", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ci")


# Each of several processes would compile every test module anew.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Before any module with compiled functions is imported; workers of Spark and started programs inherit it.
MACHINE_CODE = machine_code.keep()

# Workers of Spark inherit where the servers of `endpoint`, `azure` and `google` will be.
AZURE, GOOGLE = free_port(), free_port()
os.environ.update(s3_server.ENVIRONMENT, AWS_ENDPOINT_URL=f"http://127.0.0.1:{free_port()}")
os.environ.update(azure_server.ENVIRONMENT, AZURITE_BLOB_STORAGE_URL=azure_server.address(AZURE))
os.environ.update(google_server.environment(GOOGLE))

LONG = ("dags", "jobs", "docs", "pipelines", "api", "reproduce", "stages", "benchmarks", "engine")
"""Directories of the longest files, longest first."""

STARTS_SPARK = {
    "test_quickstart.py", "test_experiment.py", "test_dictionaries.py", "test_contracts.py",
    "test_privrisk_release.py",
}  # fmt: skip
"""Files whose tests start Spark, or import it with a command or Great Expectations, though not themselves."""


EXAMPLES: dict[str, Callable[[int], int]] = {
    "few": lambda asked: min(asked, 8),
    "some": lambda asked: min(asked, max(10, asked // 8)),
    "all": lambda asked: asked,
}
"""How many random examples of a property are tried that asks for so many: the first ones, in every run the same."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--examples", choices=list(EXAMPLES), default="some", help="random examples of each property")
    parser.addoption(
        "--engine", choices=["embedded", "spark"], default="embedded", help="what executes the tests' plans"
    )


def without_spark(config: pytest.Config) -> bool:
    """Whether only tests are asked for that need no Spark (``make test-fast``)."""
    return config.option.markexpr.startswith("not spark and not thorough")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip files without a test that is asked for: importing all of them takes half a minute."""
    if not collection_path.name.startswith("test_"):
        return None
    if without_spark(config):
        return needs_spark(collection_path) or None
    if config.option.markexpr.startswith("on_spark"):
        return "on_spark" not in collection_path.read_text() or None
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark what needs Spark, and take as many random examples as are wanted."""
    for mark in item.iter_markers("thorough"):
        if len(mark.args) != 1 or not str(mark.args[0]).strip():
            raise pytest.UsageError(
                f"{item.nodeid} is marked thorough: say by which tests of a usual run it is covered"
            )
    function = getattr(item, "function", None)
    if is_hypothesis_test(function) and not hasattr(function, "examples_asked"):
        # Hypothesis has no other way to change what a test's decorator says.
        usual = getattr(function, "_hypothesis_internal_use_settings", None) or settings.default
        wanted = EXAMPLES[item.config.getoption("--examples")](usual.max_examples)
        function._hypothesis_internal_use_settings = settings(usual, max_examples=wanted)  # type: ignore[union-attr]
        function.examples_asked = usual.max_examples  # type: ignore[union-attr]  # of a test with parameters once
    fixtures = getattr(item, "fixturenames", ())
    if "spark" in fixtures or item.path.name in STARTS_SPARK or needs_spark(item.path):
        item.add_marker("spark")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what needs the other engine. Long files first, so that no process waits for another's last one."""
    other = {"embedded": "on_spark", "spark": "on_embedded"}[config.getoption("--engine")]
    left_out = [item for item in items if item.get_closest_marker(other)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if not item.get_closest_marker(other)]
    rank = {name: at for at, name in enumerate(LONG)}
    items.sort(key=lambda item: rank.get(item.path.relative_to(ROOT / "tests").parts[0], len(LONG)))


def pytest_collection_finish() -> None:
    """Of processes that want the same function compiled, one does it."""
    if "numba" in sys.modules:
        machine_code.compile_alone(MACHINE_CODE)


@pytest.fixture(scope="session", autouse=True)
def no_spark(pytestconfig: pytest.Config) -> Iterator[None]:
    """A test that needs no Spark does not import it either."""
    yield
    if without_spark(pytestconfig):
        assert "pyspark" not in sys.modules


@pytest.fixture(scope="session", autouse=True)
def no_waiting() -> Iterator[None]:
    """No file waits for the disk, as no test cuts the power; and the tree of commands is built once a process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: None)
        patch.setattr(typer.testing, "_get_command", cache(typer.main.get_command))
        yield


@pytest.fixture(scope="session")
def endpoint() -> Iterator[str]:
    """Address of an S3 server on loopback."""
    with s3_server.server(int(os.environ["AWS_ENDPOINT_URL"].rpartition(":")[2])) as found:
        yield found


@pytest.fixture(scope="session")
def azure() -> Iterator[str]:
    """Address of a server of Azure's blob storage on loopback."""
    with azure_server.server(AZURE) as found:
        yield found


@pytest.fixture(scope="session")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URI of a name node on loopback."""
    import hadoop_cluster

    with hadoop_cluster.cluster(tmp_path_factory.mktemp("hadoop")) as found, pytest.MonkeyPatch.context() as patch:
        patch.setenv("HADOOP_USER_NAME", found.environment["HADOOP_USER_NAME"])
        yield found.uri


@pytest.fixture(scope="session")
def google(endpoint: str) -> Iterator[None]:
    """What Google's storage asks of a client."""
    with google_server.server(GOOGLE, endpoint):
        yield


@pytest.fixture(scope="session")
def spark(
    tmp_path_factory: pytest.TempPathFactory, java_options: str, pytestconfig: pytest.Config
) -> Iterator[SparkSession]:
    """A session of the engine that ``--engine`` names: few partitions, its own warehouse."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pyspark.cloudpickle.cloudpickle._find_imported_submodules", submodules)
        if pytestconfig.getoption("--engine") == "embedded":
            yield embedded_session()
        else:
            yield from java_session(tmp_path_factory.mktemp("spark"), java_options, patch)


def embedded_session() -> SparkSession:
    from privrisk_spark.engine.embedded import build_embedded
    from privrisk_spark.engine.settings import JOINS, REQUIRED

    return build_embedded("tests", {**REQUIRED, **JOINS, "spark.sql.shuffle.partitions": "3"})


def java_session(scratch: Path, java_options: str, patch: pytest.MonkeyPatch) -> Iterator[SparkSession]:
    """Local Spark, with tiny Arrow batches so that batching always happens."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .appName("tests")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.driver.memory", "1g")
        # Short plans, many of them: what the second compiler would gain later is not seen in a test.
        .config("spark.driver.extraJavaOptions", java_options)
        .config("spark.driver.host", "127.0.0.1")
        # As on a laptop, too: a machine that stands still for minutes ends nothing.
        .config("spark.network.timeout", "604800s")
        .config("spark.sql.shuffle.partitions", "3")
        .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
        .config("spark.local.dir", str(scratch / "local"))
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.caseSensitive", "true")
        .config("spark.sql.sources.partitionColumnTypeInference.enabled", "false")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "2")
        .config("spark.sql.execution.pythonUDF.pandas.preferIntExtensionDtype", "true")
        .config("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        .getOrCreate()
    )
    # It does not encrypt what it spills, as pyspark leaves a socket open then, and warnings are errors here. Runs that
    # need it are refused in such a session, and others warn (tests/engine/test_session.py), but for these tests.
    patch.setattr("privrisk_spark.engine.session.check_encryption", lambda _: None)
    patch.setattr("privrisk_spark.engine.session.encrypts", lambda _: True)
    remember_java_names(patch)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def java_options() -> str:
    """For programs of a few seconds."""
    return "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@pytest.fixture(scope="session")
def adult() -> Path:
    """Directory of the Adult table and its hierarchies; tests that need it are skipped where it is absent."""
    directory = Path(os.environ.get("PRIVRISK_ADULT", ROOT.parent / "shared" / "data" / "adult"))
    if not (directory / "adult.csv").exists():
        pytest.skip("the Adult table is not here; set PRIVRISK_ADULT to a directory that holds adult.csv")
    return directory


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Server]:
    """A PostgreSQL server of this session; tests that need it are skipped where its programs are not installed."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    programs = binaries()
    if programs is None:
        pytest.skip("PostgreSQL's initdb and postgres are not installed here (Debian: apt-get install postgresql)")
    with server(programs) as running:
        yield running


@pytest.fixture
def file(tmp_path: Path) -> InFile:
    return InFile(tmp_path / "vault" / "budget" / "ledger.db")


@pytest.fixture(scope="session")
def database(postgresql: Server) -> str:
    return postgresql.database()


@pytest.fixture
def on_server(postgresql: Server, database: str) -> Iterator[OnServer]:
    place = OnServer(postgresql, database)
    yield place
    place.remove()


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest) -> InFile | OnServer:
    """A place for a ledger in each database; there is none yet."""
    return request.getfixturevalue("file" if request.param == "sqlite" else "on_server")


@pytest.fixture
def ledger(place: InFile | OnServer) -> Ledger:
    return Ledger(place.url)


@pytest.fixture
def no_charts() -> Iterator[None]:
    """Charts of the test are not drawn."""
    with without_charts():
        yield


@pytest.fixture
def privrisk(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Privrisk]:
    """``privrisk(*arguments, root=…)``: output and vault under root, production batch size, the test's own session.

    Charts are left out, but in tests marked ``alone``.
    """

    def run(*arguments: str, root: Path = tmp_path, output: str | None = None, vault: str | None = None) -> Ran:
        return release(*arguments, root=root, output=output, vault=vault)

    alone = request.node.get_closest_marker("alone")
    with production_batches(spark), nullcontext() if alone else without_charts():
        yield run


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A policy over a small table with a sensitive column; returns the policy file."""
    rows = ["id;age;sex;city;diagnosis"]
    for i in range(60):
        rows.append(f"p{i};{20 + i % 30};{'FM'[i % 2]};{['Ulm', 'Bonn', 'Kiel'][i % 3]};{'abc'[i % 3]}")
    table = tmp_path / "table.csv"
    table.write_text("\n".join(rows) + "\n")
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        f"""
version: 1
run: {{name: small}}
table: {{path: {table}, format: csv, options: {{sep: ";", header: true}}, record_id: id}}
columns:
  id: {{role: identifier}}
  age: {{role: quasi-identifier, hierarchy: {{intervals: {{widths: [5, 10, 20], domain: [0, 99]}}}}}}
  sex: {{role: quasi-identifier, hierarchy: {{flat: {{values: [F, M]}}}}}}
  city: {{role: quasi-identifier, hierarchy: {{tree: {{"*": {{south: [Ulm], north: [Bonn, Kiel]}}}}}}}}
  diagnosis: {{role: sensitive}}
decision: {{problem: min-risk, utility_at_least: 3}}
output: {{path: {tmp_path / "out"}, vault: {tmp_path / "vault"}}}
"""
    )
    return policy
