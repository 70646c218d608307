"""Every command and program of README and docs is run, in the order in which a reader meets them.

A document is walked in a directory of its own with the files it presumes, made small by :data:`PRESUMED`. What is not
run here stands in a table with the reason: blocks that another test runs, commands that are only held against the
parser, and languages that are shown rather than run. A block that is in none fails.
"""

from __future__ import annotations

import logging
import re
import shlex
import shutil
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
import yaml
from documents import BLOCKS, DOCUMENTS, ROOT, Block, blocks, commands, here_documents, understood
from policies import DP, DROP, changed
from product import production_batches
from shared import without_charts
from typer.testing import CliRunner
from unprepared import TABLES
from walked_examples import AFTER

from privrisk_spark.cli.app import app
from privrisk_spark.engine.embedded import is_embedded
from reproduce.__main__ import options_parser

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GENERATED = {
    "api": "tests/docs/test_reference.py",
    "command-line": "tests/docs/test_catalogues.py",
    "measures": "tests/docs/test_catalogues.py",
    "policy-keys": "tests/docs/test_catalogues.py",
}
"""Pages a program writes, and the test that they are current and that their examples run."""

ELSEWHERE = {
    ("history", "id,age,city"): "tests/docs/test_history.py",
    ("history", "privrisk release policy.yaml --date 2026-11-02 --set 'utility.weights={city: 2}'"): (
        "tests/docs/test_history.py"
    ),
    ("lakes", "import pyarrow as pa"): "tests/docs/test_lakes.py",
    ("lakes", '{"format": "delta", "version": 1, "committed": "2026-11-21T06:00:00+00:00"}'): (
        "tests/docs/test_lakes.py"
    ),
}
"""Blocks of a document, by their first line, and the test that runs them and holds the page to what comes out."""

PARSED = {
    "pip install": "it would change the environment of the tests; the extras it names are held against pyproject.toml",
    "make ": "it would run this test; its targets are held against the Makefile",
    "spark-submit ": "it needs a cluster: tests/jobs/test_cluster.py; script and options are held against the parser",
    "export PYSPARK_PYTHON=": "the same: tests/jobs/test_packed.py",
    "python3 -m venv env": "it makes an environment: tests/submitting.py makes one by the same programs",
    "env/bin/": "the same: tests/submitting.py",
    "'JOBS=": "the same: tests/submitting.py",
    "hdfs dfs -put ": "a program of Hadoop: tests/jobs/test_packed.py writes the archive by a store",
    "airflow connections add": "Airflow has an environment of its own: tests/dags",
    "createdb ": "it needs a PostgreSQL server: tests/ledger/test_postgresql.py makes one by its other programs",
    "privrisk ledger create --url env:OWNER_URL": "the same; tests/cli/test_ledger.py runs it on a server of its own",
    "privrisk release visits.yaml --date 2026-11-01 --until 2026-11-21": (
        "21 releases; tests/pipelines/release/test_scheduled.py runs a range of three days"
    ),
    "python -m reproduce all ": "half an hour; tests/reproduce/test_collection.py runs it with --quick",
    "python -m reproduce recoding ": "minutes; tests/reproduce/recoding runs it on small tables",
    "python -m reproduce sharing ": "minutes; tests/reproduce/sharing runs it on small networks",
}
"""Beginnings of commands that are only held against the parser, and why."""

SHOWN = ("text", "sql", "yaml")
"""Files, drawings and what programs print; policies are :mod:`test_blocks`'s."""


def _people(place: Path) -> None:
    """Adult's columns in few rows with small hierarchies, where ``conf/adult*.yaml`` looks."""
    columns = {
        "sex": ["Male", "Female"], "age": [str(age) for age in range(30, 38)], "race": ["White", "Black"],
        "marital-status": ["Never-married", "Divorced"], "education": ["Bachelors", "Masters", "10th"],
        "native-country": ["Mexico", "Canada"], "workclass": ["Private", "State-gov"],
        "occupation": ["Sales", "Tech-support", "Craft-repair"],
    }  # fmt: skip
    place.mkdir()
    for name, values in columns.items():
        lines = [f"{value};{value[0]}…;any {value[0] > 'M'};*" for value in values]
        (place / f"adult_hierarchy_{name}.csv").write_text("\n".join(lines) + "\n")
    rows = [";".join([*columns, "salary-class"])]
    for i in range(40):
        values = [found[(i // (1 + at)) % len(found)] for at, found in enumerate(columns.values())]
        rows.append(";".join([*values, ["<=50K", ">50K"][i % 3 == 0]]))
    (place / "adult.csv").write_text("\n".join(rows) + "\n")


def _written(document: dict[str, Any], file: str) -> None:
    Path(file).write_text(yaml.safe_dump(document, sort_keys=False))


def _adult() -> None:
    _people(Path("adult"))


def _visits() -> None:
    pq.write_table(TABLES["visits"](60).table.select(["patient_id", "birth_date", "sex", "cost"]), "visits.parquet")


def _readme() -> None:
    """A table of the reader's own, of which a sentence makes a policy."""
    _visits()
    ran("privrisk init visits.parquet --out visits")


def _officer() -> None:
    _people(Path("adult"))
    shutil.copy("conf/adult-k-anonymity.yaml", "policy.yaml")


def _masked() -> None:
    """The policy that the page comes to after its first commands."""
    for block in (one for one in BLOCKS if one.document == "masking"):
        for name, text in here_documents(block.text):
            Path("policy.yaml" if name == "masked.yaml" else name).write_text(text)


def _scheduled() -> None:
    place = Path("visits", "ds=2026-11-21")
    place.mkdir(parents=True)
    pq.write_table(pa.table({"id": [f"v{i}" for i in range(20)], "age": [30 + i % 7 for i in range(20)]}), place / "p")
    (place / "_SUCCESS").touch()
    policy = next(block.text for block in BLOCKS if block.document == "schedules" and block.language == "yaml")
    document = yaml.safe_load(policy)
    document["table"]["path"] = document["table"]["path"].replace("s3://hospital/", f"{Path.cwd()}/")
    document["output"] = {"path": "out", "vault": "vault"}
    document["checks"]["complete"] = {"marker": "_SUCCESS", "rows_at_least": 20}
    document |= {"version": 1, "decision": {"utility_at_least": 0}}
    document["columns"] = {"id": {"role": "identifier"}, "age": {"role": "quasi-identifier", "hierarchy": {"flat": {}}}}
    _written(document, "visits.yaml")


def _budget() -> None:
    """A private release of a lineage ``census``; a table of the policy at another place, when it is moved."""
    zips = {"flat": {"values": ["89073", "53111"]}}
    rows = pa.table({"age": ["30"] * 90 + ["40"] * 60, "zip": ["89073"] * 90 + ["53111"] * 60})
    pq.write_table(rows, "t.parquet")
    document = changed(
        DP, ("columns.zip.hierarchy", zips), ("guarantee.frequent", DROP), ("guarantee.key", DROP),
        ("table", {"path": "t.parquet"}), ("ledger.url", "${LEDGER_URL}"),
        ("output", {"path": "out/census", "vault": "vault/census"}),
    )  # fmt: skip
    _written(document, "policy.yaml")
    ran("privrisk release policy.yaml --run-id 2026-10")


def _outputs() -> None:
    rows = pa.table({"age": ["*"], "diagnosis": ["flu"], "region": ["a/b"], "year": pa.array([2026], pa.int32())})
    ds.write_dataset(
        rows, "out/releases/…/data", format="parquet", partitioning=["region", "year"], partitioning_flavor="hive"
    )


ALIKE = {"officer": ("k-anonymity", "policy.yaml", "conf/adult-k-anonymity.yaml")}
"""Documents with the commands of another one, for a policy of another name: while they are alike, one is walked."""

PRESUMED: dict[str, Callable[[], None]] = {
    "README": _readme,
    "attacks": _adult,
    "k-anonymity": _adult,
    "ledger": _budget,
    "masking": _masked,
    "officer": _officer,
    "outputs": _outputs,
    "schedules": _scheduled,
    "start": _visits,
}
"""Makers of the files that a document takes for granted. Its programs get no names: they run as they are written."""


def _move() -> None:
    shutil.copy("t.parquet", "moved.parquet")
    document = yaml.safe_load(Path("policy.yaml").read_text())
    _written(changed(document, ("table.path", "moved.parquet")), "policy.yaml")


def _beside() -> None:
    document = yaml.safe_load(Path("policy.yaml").read_text())
    _written(changed(document, ("ledger.lineage", "second")), "policy.yaml")


BEFORE: dict[str, Callable[[], None]] = {
    "privrisk ledger move policy.yaml --reason": _move,
    "privrisk ledger move policy.yaml --beside": _beside,
}
"""What a reader did to the policy before a command."""


def handled(block: Block) -> bool:
    """Whether it is known what is done with a block."""
    if block.document in GENERATED or (block.document, block.first) in ELSEWHERE:
        return True
    return block.language in ("sh", "python", *SHOWN)


def test_every_block_is_run_or_says_why_not() -> None:
    assert not [block.place for block in BLOCKS if not handled(block)], (
        "its language is none of sh, python, yaml, sql, text; run it, or say in a table of this file who does"
    )
    hidden = [
        (block.place, line)
        for block in BLOCKS
        if block.document not in GENERATED and block.language == "text"
        for line in block.text.splitlines()
        if re.match(r"\s*\$?\s*(privrisk|pip|make|spark-submit|python) ", line)
    ]
    assert not hidden, "a command in a block of text is run by nobody: make it sh"


@pytest.mark.parametrize("text", ["```\nprivrisk relase\n```", "```bash\nls\n```", "- x\n  ```js\n  f()\n  ```"])
def test_a_new_block_that_nobody_runs_is_found(text: str) -> None:
    (block,) = blocks(text + "\n", "README")
    assert not handled(block)


def test_every_fence_is_a_block() -> None:
    """One that the parser of this test passes over would be run by nobody."""
    fences = sum(len(re.findall(r"(?m)^ *(?:```|~~~)", path.read_text())) for path in DOCUMENTS)
    assert fences == 2 * len(BLOCKS)


def test_no_entry_of_a_table_is_left_over() -> None:
    for page, test in GENERATED.items():
        assert (ROOT / "docs" / f"{page}.md").exists()
        assert (ROOT / test).exists()
    assert {(block.document, block.first) for block in BLOCKS} >= set(ELSEWHERE)
    assert all((ROOT / test).exists() for test in ELSEWHERE.values())
    shown = [line for block in BLOCKS if block.language == "sh" for line in commands(block.text)]
    for start in (*PARSED, *BEFORE):
        assert any(line.startswith(start) for line in shown), start
    for test in re.findall(r"tests/[\w/.]*\w", " ".join(PARSED.values())):
        assert (ROOT / test).exists(), test


def parsed(line: str) -> None:
    """Hold a command that is not run against what would read it."""
    words = shlex.split(line)
    match words[0]:
        case "privrisk":
            understood(words[1:])
        case "python":
            assert words[1:3] == ["-m", "reproduce"]
            options_parser(words[3]).parse_intermixed_args(words[4:])
        case "spark-submit":
            (script,) = [word for word in words if word.endswith(".py")]
            assert (ROOT / "jobs" / Path(script).name).is_file()
            assert Path(script).parent.name in ("jobs", "$JOBS")
            understood([Path(script).stem, *words[words.index(script) + 1 :]])
        case "make":
            targets = re.findall(r"(?m)^([\w./$()-]+):", (ROOT / "Makefile").read_text())
            assert set(words[1:]) <= set(targets)
        case "pip":
            project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
            for extra in re.findall(r"\[(\w+)\]", line):
                assert extra in project["optional-dependencies"], extra
        case "airflow":
            assert words[3] == "spark_default"
            assert words[3] in (ROOT / "dags" / "privrisk_release.py").read_text()


THOROUGH = {
    "masking": "tests/extensions/perturb/test_release.py; the commands are parsed above",
    "attacks": "tests/extensions/attack/pipeline/test_run.py; the commands are parsed above",
    "ledger": "tests/cli/test_ledger.py; the commands are parsed above",
}
"""Documents of which a usual run only looks whether their commands are understood, and what covers what they do."""

NOT_RUN = [
    (block.place, line)
    for block in BLOCKS
    if block.language == "sh"
    for line in commands(block.text)
    if line.startswith(tuple(PARSED)) or (block.document in THOROUGH and line.startswith("privrisk "))
]
"""Commands that no usual run of the tests runs."""


@pytest.mark.parametrize(("place", "line"), NOT_RUN, ids=[place for place, _ in NOT_RUN])
def test_a_command_that_is_not_run_is_understood(place: str, line: str) -> None:
    parsed(line)


@pytest.mark.parametrize(
    "line",
    [
        "privrisk relase policy.yaml",
        "privrisk release policy.yaml --outptu out",
        "spark-submit jobs/release.py --confg policy.yaml",
        "pip install 'privrisk-spark[lake]'",
        "make tests",
    ],
)
def test_a_command_with_a_slip_is_not(line: str) -> None:
    with pytest.raises(Exception, match=r"no command relase|No such option|lake|tests"):
        parsed(line)


INLINE = [
    (path.stem, " ".join(found.split()))
    for path in DOCUMENTS
    for found in re.findall(
        r"`((?:privrisk|spark-submit) [^`:]*-[^`:]*|python -m reproduce [^`]* --output [^`]*)`", path.read_text()
    )
    if "…" not in found and path.stem != "CHANGELOG"
]


@pytest.mark.parametrize(("place", "line"), INLINE, ids=[f"{place}-{at}" for at, (place, _) in enumerate(INLINE)])
def test_a_command_in_a_sentence_is_understood(place: str, line: str) -> None:
    try:
        parsed(line)
    except Exception as error:
        # A sentence may name an option alone. Typer has click's classes under names of its own.
        if type(error).__name__ != "MissingParameter":
            raise


def ran(line: str) -> None:
    """Run a command of ours as somebody would who typed it."""
    result = CliRunner().invoke(app, shlex.split(line)[1:])
    logging.getLogger("privrisk_spark").handlers.clear()
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, (line, result.output)


@pytest.fixture(scope="module")
def production(spark: SparkSession) -> Iterator[None]:
    with production_batches(spark):
        yield


@pytest.fixture
def here(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An empty directory that is the working directory of Python and of the engine, with ``conf/`` in it."""
    shutil.copytree(ROOT / "conf", tmp_path / "conf")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ADULT", str(tmp_path / "adult"))
    monkeypatch.setenv("LEDGER_URL", f"sqlite:///{tmp_path}/ledger.db")
    with without_charts():
        if is_embedded(spark):
            yield
            return
        # Java was started elsewhere, and what it takes relative paths from is a thing of its file system's.
        java = spark._jvm.org.apache.hadoop.fs
        files = java.FileSystem.get(spark._jsc.hadoopConfiguration())
        usual = files.getWorkingDirectory()
        files.setWorkingDirectory(java.Path(str(tmp_path)))
        yield
        files.setWorkingDirectory(usual)


WALKED = sorted(
    {
        block.document
        for block in BLOCKS
        if block.language in ("sh", "python")
        and block.document not in GENERATED
        and (block.document, block.first) not in ELSEWHERE
    }
)


def lines_of(document: str) -> list[str]:
    """Commands of a document that are run."""
    shown = [block.text for block in BLOCKS if (block.document, block.language) == (document, "sh")]
    return [line for text in shown for line in commands(text) if not line.startswith(tuple(PARSED))]


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(name, marks=[pytest.mark.thorough(covered)] if (covered := THOROUGH.get(name)) else [])
        for name in WALKED
    ],
)
@pytest.mark.usefixtures("production", "here")
def test_a_document_does_what_it_says(document: str) -> None:
    if document in ALIKE:
        other, name, its_name = ALIKE[document]
        walked = [line.replace(its_name, name) for line in lines_of(other)]
        if lines_of(document) == walked:
            return
    if document in PRESUMED:
        PRESUMED[document]()
    names: dict[str, Any] = {}
    for block in (one for one in BLOCKS if one.document == document):
        if (block.document, block.first) in ELSEWHERE:
            continue
        if block.language == "sh":
            for name, text in here_documents(block.text):
                Path(name).write_text(text)
            for line in commands(block.text):
                if not line.startswith(tuple(PARSED)):
                    for start, change in BEFORE.items():
                        if line.startswith(start):
                            change()
                    assert line.startswith("privrisk "), f"nothing here runs {line}"
                    ran(line)
        if block.language == "python":
            exec(compile(block.text, block.place, "exec"), names)
    if document in AFTER:
        AFTER[document]()
