"""The main job on real data."""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from product import ROOT, Privrisk, Ran, production_batches, release
from pyspark.sql import SparkSession
from shared import without_charts

from privrisk_spark.errors import EngineError
from privrisk_spark.stages.private import sampling

from .adult_brute_force import AdultBruteForce, differing

pytestmark = pytest.mark.adult

KEY = "5b" * 32


@pytest.fixture(autouse=True)
def _adult_is_there(adult: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADULT", str(adult))
    monkeypatch.setenv("RELEASE_KEY", KEY)


def test_every_choice_is_the_brute_force_optimum(privrisk: Privrisk, adult: Path) -> None:
    """Two thousand random distinct records over their whole lattice of 6,480 nodes."""
    ran = privrisk("conf/adult.yaml")
    assert ran.code == 0, ran.err
    oracle = AdultBruteForce(adult, ROOT / "conf" / "adult.yaml")
    rows = np.random.default_rng(20260101).choice(len(oracle.distinct), 2000, replace=False)
    compared, wrong = differing(oracle, pd.read_parquet(ran.root / "vault" / "decisions"), rows)
    assert compared >= 2000
    assert wrong == 0
    summary = ran.summary
    assert summary["rows"] == ran.manifest["rows"] == 30162
    assert summary["risk_after"]["mean"] < summary["risk_before"]["mean"] / 1000
    released = pq.read_table(ran.data).to_pandas()
    assert released["salary-class"].value_counts().to_dict() == oracle.table["salary-class"].value_counts().to_dict()


def test_the_scheme_of_least_loss_is_that_of_other_software(privrisk: Privrisk) -> None:
    """5-anonymity with at most 5 % of the rows suppressed, as ARX finds it of the same table and hierarchies."""
    ran = privrisk("conf/adult-k-anonymity.yaml")
    assert ran.code == 0, ran.err
    told = ran.summary["recoding"]
    assert list(told["levels"].items()) == list(
        zip(
            ["sex", "age", "race", "marital-status", "education", "native-country", "workclass", "occupation"],
            [0, 3, 0, 0, 1, 1, 1, 2],
            strict=True,
        )
    )
    assert told["suppressed"] == 1458
    assert told["metric"] == {"name": "loss", "value": pytest.approx(0.25185172, abs=5e-9)}
    assert (told["optimal"], told["gap"]) == (True, 0.0)
    sizes = pq.read_table(ran.data, columns=list(told["levels"])).to_pandas().value_counts(dropna=False)
    assert sizes.sum() == 30162
    assert sizes.pop(("*",) * 8) == 1458
    assert sizes.min() >= 5
    assert len(sizes) == told["classes"]


def dp(privrisk: Privrisk, root: Path, *more: str, key: bool = True) -> Ran:
    root.mkdir(exist_ok=True)
    given = ["--set=guarantee.key=env:RELEASE_KEY"] if key else []
    ledger = f"--set=ledger.url=sqlite:///{root}/ledger.db"
    return privrisk("conf/adult-dp.yaml", "--run-id", "r1", ledger, *given, *more, root=root)


def content(ran: Ran) -> list[str]:
    return [hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(ran.data.iterdir())]


@pytest.fixture(scope="module")
def private(spark: SparkSession, adult: Path, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """The release of the policy as it stands, under the key."""
    with pytest.MonkeyPatch.context() as patch, production_batches(spark), without_charts():
        patch.setenv("ADULT", str(adult))
        patch.setenv("RELEASE_KEY", KEY)
        ran = dp(release, tmp_path_factory.mktemp("private"))
    assert ran.code == 0, ran.err
    return ran


def test_a_private_release(privrisk: Privrisk, spark: SparkSession, private: Ran, tmp_path: Path) -> None:
    """No tuple below k; same bytes under the same key and another partitioning."""
    first = private
    manifest = first.manifest
    crowd = manifest["guarantee"]["parameters"]["k"]
    release = pq.read_table(first.data).to_pandas()
    sizes = release.value_counts(dropna=False)
    assert sizes.min() >= crowd == 32
    assert manifest["rows"] == len(release)
    assert manifest["tuples"] == len(sizes)
    # 25.17 % are kept, less what the crowd threshold drops.
    assert 0.15 * 30162 < len(release) < 0.2517 * 30162 * 1.1
    assert len(set(map(tuple, (release == "*").to_numpy()))) > 3, "several schemes are used"
    assert manifest["guarantee"]["statement"].startswith(
        "(1.0, 1E-9)-differential privacy for adding or removing one row"
    )

    usual = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "7")
    spark.conf.set("spark.sql.files.maxPartitionBytes", "200000")
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "777")
    try:
        again = dp(privrisk, tmp_path / "again")
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", usual)
        spark.conf.unset("spark.sql.files.maxPartitionBytes")
    assert content(again) == content(first)
    assert again.manifest["admitted"] == manifest["admitted"], "the published cells, byte by byte"


ROWS = re.compile(r"\b30,?162\b")
"""How many there are, but not where a digest has these digits."""

WHITELIST = {
    "sequence", "run_id", "name", "date", "version", "policy_digest", "guarantee", "columns", "rows", "tuples", "data",
    "lineage", "checks", "documents", "admitted_cells", "admitted",
}  # fmt: skip


def test_budget_key_and_manifest(privrisk: Privrisk, private: Ran, tmp_path: Path) -> None:
    root = tmp_path / "r"
    cap = "--set=ledger.cap={epsilon: 1.5, delta: 1e-7}"
    ran = dp(privrisk, root, cap, key=False)
    assert ran.code == 0, ran.err
    assert set(ran.manifest) == WHITELIST
    assert content(ran) != content(private), "another key"
    assert ran.manifest["rows"] != private.manifest["rows"]
    text = (root / "out" / "manifest.json").read_text() + (ran.data.parent / "report.html").read_text()
    assert not ROWS.search(text)
    assert "seconds" not in text
    assert all(check["contract"] == "release" for check in ran.manifest["checks"])
    with sqlite3.connect(root / "ledger.db") as ledger:
        states = ledger.execute("select run_id, state, epsilon from events order by sequence").fetchall()
    ledger.close()
    assert states == [("r1", state, "1") for state in ("reserved", "bound", "pinned", "committed")]
    assert not list((root / "vault" / "keys").glob("*.key")), "the key is destroyed"
    # The same run id costs nothing; another one does not fit under the cap, and nothing of it is left.
    assert dp(privrisk, root, cap, key=False).code == 0
    refused = privrisk(
        "conf/adult-dp.yaml", "--run-id", "r2", f"--set=ledger.url=sqlite:///{root}/ledger.db", cap, root=root
    )
    assert refused.code == 1
    assert "1.5" in refused.err
    assert refused.status["code"] == 1
    assert not (root / "out" / "releases" / "r2").exists()
    assert not list((root / "vault").glob("keys/*"))
    # A refused run has replaced the vault's summary: the committed run id still returns its release.
    again = dp(privrisk, root, cap, key=False)
    assert again.code == 0, again.err
    assert again.status["code"] == 0
    # A committed run whose release was deleted cannot be drawn again.
    import shutil

    shutil.rmtree(root / "out")
    lost = dp(privrisk, root, cap, key=False)
    assert lost.code == 1
    assert "Use a new run id" in lost.err


@pytest.mark.thorough("tests/pipelines/release/test_release.py::test_a_run_id_is_one_request, without Adult")
def test_a_run_id_covers_one_snapshot(
    privrisk: Privrisk, adult: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that failed after reading may be repeated on the same content only: other content is another release."""
    root = tmp_path / "r"
    lines = (adult / "adult.csv").read_text().splitlines()
    table = tmp_path / "table.csv"
    source = f"--set=table.path={table}"
    table.write_text("\n".join(lines) + "\n")
    with monkeypatch.context() as patch:
        patch.setattr(sampling, "admitted_cells", lambda *_: (_ for _ in ()).throw(EngineError("planted")))
        assert dp(privrisk, root, source, key=False).code == 3
    (key,) = (root / "vault" / "keys").glob("*.key")
    secret = key.read_bytes()
    table.write_text("\n".join(lines[:-1]) + "\n")
    refused = dp(privrisk, root, source, key=False)
    assert refused.code == 1
    assert "The table changed since the run id 'r1' first read it" in refused.err
    table.write_text("\n".join([lines[0], *lines[:0:-1]]) + "\n")
    assert key.read_bytes() == secret
    assert dp(privrisk, root, source, key=False).code == 0, "the same rows in another order are the same content"
    assert not list((root / "vault" / "keys").iterdir())


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("guarantee.crowd=31", "guarantee.crowd: must be at least 32"),
        ("guarantee.crowd=9", "guarantee.crowd: must be at least 10"),
        ("guarantee.frequent=333", "guarantee.frequent: must be at least T = 334"),
        ("guarantee.objective.phi_min=0", "guarantee.objective.phi_min: must be greater than 0"),
        ("guarantee.delta=1e-6", "guarantee.delta: must be at most"),
        ("guarantee.keep_fraction=1.1", "guarantee.keep_fraction: must be at most 1"),
        ("columns.salary-class={role: sensitive}", "columns.salary-class: would be released untouched"),
        (
            "columns.age.hierarchy={file: null, intervals: {widths: [5, 10]}}",
            "columns.age.hierarchy: takes its leaves from the data",
        ),
        ("columns.age.unknown=error", "columns.age.unknown: 'error' is not available when guarantee.kind is 'dp'"),
        ("guarantee.schemes=[[0, 9, 0, 0, 0, 0, 0, 0, 0]]", "level 9 of 'age' exceeds the height 4"),
        ("checks.max_mean_risk=0.5", "checks.max_mean_risk: is not used when guarantee.kind is 'dp'"),
        ("table.options.multiLine=true", "table.options.multiLine: is refused under dp"),
        ("counting.plan=dense", "counting.plan: is not used when guarantee.kind is 'dp'"),
        ("table.format=json", "table.format: 'json' is refused under dp"),
        ("guarantee.mode=as_published", "guarantee.mode: must be 'local', 'global' or 'public-dictionary'"),
    ],
)
def test_what_the_proof_does_not_cover_is_refused(
    privrisk: Privrisk, tmp_path: Path, option: str, message: str
) -> None:
    ran = dp(privrisk, tmp_path / "r", f"--set={option}")
    assert ran.code == 2, ran.err
    assert message in ran.err
    assert not (tmp_path / "r" / "ledger.db").exists(), "refused before the ledger is touched"


def test_a_release_under_laplace_noise_by_itself(privrisk: Privrisk, tmp_path: Path) -> None:
    """With few schemes the Laplace noise has the lower threshold; the manifest says so, and what the release costs."""
    schemes = "--set=guarantee.schemes=[[0, 4, 1, 1, 3, 2, 1, 2, 0]]"
    ran = dp(privrisk, tmp_path / "r", schemes, "--explain")
    assert ran.code == 0, ran.err
    parameters = ran.manifest["guarantee"]["parameters"]
    assert (parameters["noise"], parameters["scale"], parameters["T"], parameters["t"]) == ("laplace", "10/3", 70, 70)
    assert parameters["noise_reason"] == "Laplace: T = 70; with Gaussian noise it would be 114"
    assert parameters["accounting"]["basic"] == {"epsilon": "1", "delta": "1E-9", "status": "proved"}
    assert 0.7 < parameters["accounting"]["pld"]["epsilon"] < 1
    assert set(parameters["groups"]) == {"2", "5", "10"}
    page = (ran.data.parent / "report.html").read_text()
    assert "discrete Laplace noise (scale = 10/3) reaches t = 70" in page
    release = pq.read_table(ran.data).to_pandas()
    assert release.value_counts(dropna=False).min() >= parameters["k"]
    assert len(release) > 0.1 * 30162


CANDIDATES = [[0, 4, 1, 1, 3, 2, 1, 2, 0], [0, 3, 1, 1, 3, 2, 1, 2, 0], [0, 4, 0, 0, 3, 0, 0, 2, 0],
              [0, 0, 0, 0, 0, 0, 0, 0, 0], [1, 4, 1, 2, 3, 2, 2, 2, 1]]  # fmt: skip
GLOBAL = [
    "--set=guarantee.mode=global",
    "--set=guarantee.epsilon={choose: 0.1, admit: 0, keep: 0.9}",
    "--set=guarantee.schemes=null",
    "--set=guarantee.objective=null",
    f"--set=guarantee.candidates={CANDIDATES}",
]


def test_a_release_by_one_drawn_scheme(privrisk: Privrisk, spark: SparkSession, adult: Path, tmp_path: Path) -> None:
    """Mode global: every released row is its record under the drawn scheme; the cost holds the draw."""
    ran = dp(privrisk, tmp_path / "r", *GLOBAL)
    assert ran.code == 0, ran.err
    assert set(ran.manifest) == (WHITELIST - {"admitted_cells", "admitted"}) | {"chosen_schemes"}
    (scheme,) = ran.manifest["chosen_schemes"]
    assert scheme in CANDIDATES[:3], "by their scores; the finest and the coarsest have none to speak of"
    assert ran.manifest["guarantee"]["statement"].startswith("(1.0, 1E-9)-differential privacy")
    parameters = ran.manifest["guarantee"]["parameters"]
    assert parameters["accounting"]["basic"] == {"epsilon": "1", "delta": "1E-9", "status": "proved"}
    assert (parameters["epsilon_choose"], parameters["picks"], parameters["candidates"]) == ("0.1", 1, CANDIDATES)
    assert not {"schemes", "t", "objective", "noise"} & set(parameters)
    release = pq.read_table(ran.data).to_pandas()
    sizes = release.value_counts(dropna=False)
    assert sizes.min() >= parameters["k"]
    # No more rows than the table has under that scheme, tuple by tuple, and about the kept share of them.
    table = pd.read_csv(adult / "adult.csv", sep=";", dtype=str)
    for name, level in zip(release.columns, scheme, strict=True):
        rows = [line.split(";") for line in (adult / f"adult_hierarchy_{name}.csv").read_text().splitlines()]
        table[name] = table[name].map({row[0]: row[level] for row in rows})
    there = table[list(release.columns)].value_counts().reindex(sizes.index)
    share = int(parameters["keep_probability"].split("/")[0]) / 2**32
    z = (sizes - there * share) / (there * share * (1 - share)) ** 0.5
    assert z.abs().max() < 5
    ledger = sqlite3.connect(tmp_path / "r" / "ledger.db")
    assert ledger.execute("select epsilon from events where state in ('reserved', 'committed')").fetchall() == [
        ("1",),
        ("1",),
    ]
    ledger.close()
    page = (ran.data.parent / "report.html").read_text()
    assert "by the exponential mechanism with epsilon 0.1 a pick" in page

    usual = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "7")
    spark.conf.set("spark.sql.files.maxPartitionBytes", "200000")
    try:
        again = dp(privrisk, tmp_path / "again", *GLOBAL)
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", usual)
        spark.conf.unset("spark.sql.files.maxPartitionBytes")
    assert content(again) == content(ran)
    assert again.manifest["chosen_schemes"] == [scheme]


@pytest.mark.thorough("test_a_release_by_one_drawn_scheme draws one scheme alike; tests/kernels/dp/ draws several")
def test_a_release_by_peeled_schemes(privrisk: Privrisk, tmp_path: Path) -> None:
    """Two schemes are drawn, then their cells are admitted: what they cost is in the sum."""
    peeled = [
        "--set=guarantee.epsilon={choose: 0.05, admit: 0.3, keep: 0.6}",
        "--set=guarantee.schemes=null",
        "--set=guarantee.peel=2",
        f"--set=guarantee.candidates={CANDIDATES}",
    ]
    ran = dp(privrisk, tmp_path / "r", *peeled)
    assert ran.code == 0, ran.err
    assert set(ran.manifest) == WHITELIST | {"chosen_schemes"}
    first, second = ran.manifest["chosen_schemes"]
    assert first != second
    assert [0, 0, 0, 0, 0, 0, 0, 0, 0] not in (first, second)
    assert len(ran.manifest["admitted_cells"]) == 2
    parameters = ran.manifest["guarantee"]["parameters"]
    assert parameters["accounting"]["basic"]["epsilon"] == "1"
    assert parameters["t"] == parameters["T"] == parameters["t0"]
    release = pq.read_table(ran.data).to_pandas()
    assert release.value_counts().min() >= parameters["k"]
    assert len(release) > 0.1 * 30162


def test_schemes_and_candidates_are_proposed(privrisk: Privrisk, tmp_path: Path) -> None:
    """Left out, they come from hierarchies and public_rows: the plan shows them, manifest and report say why."""
    planned = dp(privrisk, tmp_path / "planned", "--set=guarantee.schemes=null", "--dry-run")
    assert planned.code == 0, planned.err
    text = planned.out + planned.err
    assert "proposed_because: 4 of the " in text
    assert "precision  expected rows      t     k  N50/N99" in text
    ran = dp(privrisk, tmp_path / "r", *GLOBAL[:-1])
    assert ran.code == 0, ran.err
    parameters = ran.manifest["guarantee"]["parameters"]
    assert parameters["proposed_because"].startswith("up to 16 each of the finest level vectors")
    assert ran.manifest["chosen_schemes"][0] in parameters["candidates"]
    assert not ROWS.search(json.dumps(ran.manifest))
    release = pq.read_table(ran.data).to_pandas()
    assert release.value_counts().min() >= parameters["k"]
    assert len(release) > 0.15 * 30162, "the scheme that was drawn suits the table"


def test_an_admitted_set_is_used_again(privrisk: Privrisk, tmp_path: Path) -> None:
    """The second release pays for its sample alone; whatever is not the first release's own is refused by name."""
    schemes = "--set=guarantee.schemes=[[0, 4, 1, 1, 3, 2, 1, 2, 0], [0, 3, 1, 1, 3, 2, 1, 2, 0]]"
    first = dp(privrisk, tmp_path, schemes)
    assert first.code == 0, first.err
    said = first.manifest["admitted"]
    file = first.data.parent / said["file"]
    assert hashlib.sha256(file.read_bytes()).hexdigest() == said["sha256"]
    cells = pq.read_table(file)
    assert cells.column_names == ["scheme", *(f"n{i}" for i in range(9)), "noisy"]
    assert cells.sort_by([(name, "ascending") for name in cells.column_names]).equals(cells)
    assert [cells["scheme"].to_pylist().count(j) for j in (0, 1)] == first.manifest["admitted_cells"]
    assert min(cells["noisy"].to_pylist()) >= first.manifest["guarantee"]["parameters"]["t"]

    manifest = tmp_path / "out" / "releases" / "r1" / "manifest.json"
    ledger = f"--set=ledger.url=sqlite:///{tmp_path}/ledger.db"
    reuse = ["--set=guarantee.schemes=null", "--set=guarantee.epsilon.admit=0", f"--set=guarantee.reuse={manifest}"]

    def again(run_id: str, *more: str) -> Ran:
        return privrisk("conf/adult-dp.yaml", "--run-id", run_id, *reuse, ledger, *more, root=tmp_path)

    sexes = "{file: null, tree: {'*': [Male, Female, other]}}"
    refusals = [
        ("--set=ledger.lineage=other", "ledger.lineage: must be 'adult', as for the release 'r1'"),
        ("--set=guarantee.schemes=[[0, 4, 1, 1, 3, 2, 1, 2, 0]]", "guarantee.schemes: must be the same schemes"),
        (f"--set=columns.sex.hierarchy={sexes}", "columns.sex.hierarchy: must be the same hierarchy"),
        ("--set=columns.sex.nulls=own-value", "columns.sex.hierarchy: must be the same hierarchy"),
        ("--set=table.entity_id=who", "table.entity_id: must protect what was protected then: 'one row per person'"),
        (f"--set=guarantee.reuse={tmp_path}/out/manifest.json", "name the manifest in the directory of the release"),
        (
            f"--set=guarantee.reuse={tmp_path}/none.json",
            f"the manifest '{tmp_path}/none.json' cannot be read",
        ),
        ("--set=guarantee.reuse=conf/adult.yaml", "guarantee.reuse: is not the manifest of a differentially private"),
    ]
    for option, message in refusals:
        who = ["--set=columns.who={role: identifier}"] if "entity_id" in option else []
        refused = again("r2", option, *who)
        assert refused.code == 2, refused.err
        assert message in refused.err
    unpaid = again("r2", f"--set=ledger.url=sqlite:///{tmp_path}/elsewhere.db")
    assert unpaid.code == 1, unpaid.err
    assert "the ledger has no committed run 'r1' of the lineage 'adult'" in unpaid.err

    planned = again("r2", "--dry-run")
    assert "those released by the run 'r1' and cost nothing more" in planned.out + planned.err
    second = again("r2", "--set=guarantee.key=env:RELEASE_KEY")
    assert second.code == 0, second.err
    parameters = second.manifest["guarantee"]["parameters"]
    assert parameters["reuse"] == {"run_id": "r1", "sha256": said["sha256"]}
    assert parameters["accounting"]["basic"]["epsilon"] == "0.7"
    assert second.manifest["guarantee"]["statement"].startswith("(0.7, 1E-9)-differential privacy")
    assert second.manifest["admitted_cells"] == first.manifest["admitted_cells"]
    assert set(second.manifest) == WHITELIST - {"admitted"}
    assert not (second.data.parent / "admitted.parquet").exists()
    with sqlite3.connect(tmp_path / "ledger.db") as opened:
        spent = opened.execute("select run_id, spent_epsilon_after from events where state = 'reserved'").fetchall()
    opened.close()
    assert spent == [("r1", "1"), ("r2", "1.7")]
    release = pq.read_table(second.data).to_pandas()
    assert release.value_counts().min() >= parameters["k"]
    # What records are drawn to are the admitted cells with their noisy counts, or the root with the cap.
    decisions = pd.read_parquet(tmp_path / "vault" / "decisions")
    assert set(decisions["consistent"]) <= {*cells["noisy"].to_pylist(), 5000}
    assert decisions["consistent"].nunique() > 20

    of_reuse = again("r3", f"--set=guarantee.reuse={second.data.parent}/manifest.json")
    assert of_reuse.code == 2
    assert "it took those of the run 'r1', name that release's manifest" in of_reuse.err
    file.write_bytes(file.read_bytes() + b" ")
    tampered = again("r3")
    assert tampered.code == 2
    assert "'admitted.parquet' is not the file the manifest names" in tampered.err


@pytest.mark.thorough("tests/pipelines/release/test_charge.py and tests/stages/private/ count persons, without Adult")
def test_a_release_of_persons_with_several_rows(privrisk: Privrisk, adult: Path, tmp_path: Path) -> None:
    """Three rows a person: the release is one of a third of the rows, and its unit is the person."""
    lines = (adult / "adult.csv").read_text().splitlines()
    several = [f"{line};{'who' if i == 0 else f'p{(i - 1) // 3}'}" for i, line in enumerate(lines)]
    (tmp_path / "several.csv").write_text("\n".join(several) + "\n")
    more = [
        f"--set=table.path={tmp_path}/several.csv",
        "--set=table.entity_id=who",
        "--set=columns.who={role: identifier}",
        "--set=guarantee.schemes=[[0, 4, 1, 1, 3, 2, 1, 2, 0]]",
    ]
    ran = dp(privrisk, tmp_path / "r", *more)
    assert ran.code == 0, ran.err
    assert "adding or removing one person with all their rows" in ran.manifest["guarantee"]["statement"]
    parameters = ran.manifest["guarantee"]["parameters"]
    numerator = int(parameters["keep_probability"].split("/")[0])
    persons = -(-(len(lines) - 1) // 3)
    assert 0.5 < ran.manifest["rows"] / (persons * numerator / 2**32) < 1.1
    text = (tmp_path / "r" / "out" / "manifest.json").read_text() + (ran.data.parent / "report.html").read_text()
    assert str(persons) not in text
    assert f"{persons:,}" not in text


@pytest.mark.thorough("test_a_release_by_one_drawn_scheme; tests/stages/private/test_admission.py")
def test_an_admitted_draw_against_a_public_dictionary(privrisk: Privrisk, adult: Path, tmp_path: Path) -> None:
    """Mode public-dictionary: admission costs nothing; here half of the table plays the public table."""
    half = pd.read_csv(adult / "adult.csv", sep=";", dtype=str).iloc[::2]
    half.to_parquet(tmp_path / "public.parquet")
    columns = json.dumps({name: name for name in half.columns})
    ran = dp(
        privrisk,
        tmp_path / "r",
        "--set=guarantee.mode=public-dictionary",
        "--set=guarantee.epsilon.admit=0",
        "--set=guarantee.frequent=100",
        f"--set=dictionary={{kind: table, path: {tmp_path}/public.parquet, public: true, columns: {columns}}}",
    )
    assert ran.code == 0, ran.err
    assert ran.manifest["guarantee"]["parameters"]["epsilon_admit"] == "0"
    assert ran.manifest["dictionary_rows"] == len(half)
    release = pq.read_table(ran.data).to_pandas()
    assert release.value_counts().min() >= ran.manifest["guarantee"]["parameters"]["k"]
    # Every released tuple is t-frequent in the public table, or the root.
    decisions = pd.read_parquet(tmp_path / "r" / "vault" / "decisions")
    rooted = (decisions["utility"] == 0).to_numpy()
    assert (decisions.loc[~rooted, "consistent"] >= 100).all()
    assert rooted.mean() < 0.2
