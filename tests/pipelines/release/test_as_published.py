"""Releases by Algorithms 6 and 7 of F12 as published: refused unless accepted, printed laws, no guarantee."""

from __future__ import annotations

import hashlib
import html
import itertools
import json
import math
import re
from collections import Counter, defaultdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml
from product import Privrisk, Ran, production_batches, release
from pyspark.sql import SparkSession
from scipy.stats import kstest

from privrisk_spark.errors import EngineError
from privrisk_spark.ledger.ledger import Ledger
from privrisk_spark.planning.as_published import as_published
from privrisk_spark.planning.dictionaries import axes
from privrisk_spark.policy.reading import parse
from privrisk_spark.results.facts import InputFacts
from privrisk_spark.runs import keystore
from privrisk_spark.stages.private import as_published as published_draws
from privrisk_spark.stages.private.as_published import Draws
from privrisk_spark.tables.opening import hierarchies_from_policy

KEY = "3d" * 32
OTHER_KEY = "a7" * 32
CANARY = "zQxCanary"
ROWS = 12_000
AGES: dict[str, Any] = {"*": {"young": {"teens": ["15", "16"], "twens": ["25", "26"]}, "old": ["60", "70"]}}
CITIES: dict[str, Any] = {"*": {"north": ["Bonn", "Kiel"], "south": ["Ulm", CANARY]}}

Tuple = tuple[str, str]


def records() -> list[Tuple]:
    """Rows of unequal frequency; one of them is in a city of its own."""
    ages = ["60", "15", "70", "25", "16", "70"]
    places = ["Bonn", "Bonn", "Bonn", "Kiel", "Ulm", "Ulm"]
    rows = [(ages[(i * i + i // 7) % 6], places[(i * 5 + i // 11) % 6]) for i in range(ROWS - 1)]
    return [*rows, ("70", CANARY)]


def document(root: Path, **guarantee: Any) -> dict[str, Any]:
    return {
        "version": 1,
        "run": {"name": "as-printed"},
        "table": {
            "path": str(root / "table.csv"),
            "format": "csv",
            "options": {"sep": ";", "header": True},
            "record_id": "id",
        },
        "columns": {
            "id": {"role": "identifier"},
            "age": {"role": "quasi-identifier", "hierarchy": {"tree": AGES}},
            "city": {"role": "quasi-identifier", "hierarchy": {"tree": CITIES}},
        },
        "risk": {"sensitivity": {"form": "constant", "constant": 2}},
        "guarantee": {
            "kind": "as-published",
            "algorithm": 6,
            "accept_unproven": True,
            "epsilon": 60,
            "beta": 0.4,
            "theta0": 0.05,
            "kappa": 5,
            "phi_l": 4,
            "key": "env:PRINTED_KEY",
            **guarantee,
        },
        "output": {"path": str(root / "out"), "vault": str(root / "vault")},
    }


THRESHOLD = {"kappa": 1, "phi_l": None, "phi_u": 1, "utility_at_least": 2}


def run(privrisk: Privrisk, root: Path, *more: str, name: str = "r1", **guarantee: Any) -> Ran:
    root.mkdir(exist_ok=True)
    rows = [f"p{i};{age};{city}" for i, (age, city) in enumerate(records())]
    (root / "table.csv").write_text("\n".join(["id;age;city", *rows]) + "\n")
    policy = root / "policy.yaml"
    policy.write_text(yaml.safe_dump(document(root, **guarantee)))
    return privrisk(str(policy), "--run-id", name, *more, root=root)


def patched(patch: pytest.MonkeyPatch) -> int:
    """A threshold that leaves a choice, in place of the one that is drawn."""
    patch.setattr(published_draws, "random_threshold", lambda uniforms, **_: np.full(uniforms.shape, 1439.5))
    return 1440


@pytest.fixture
def t(monkeypatch: pytest.MonkeyPatch) -> int:
    return patched(monkeypatch)


@pytest.fixture(scope="module")
def aggregate(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """The release of the policy as it stands, at that threshold; no test changes it."""
    root = tmp_path_factory.mktemp("aggregate")
    with pytest.MonkeyPatch.context() as patch, production_batches(spark):
        patched(patch)
        patch.setenv("PRINTED_KEY", KEY)
        ran = run(release, root)
    assert ran.code == 0, ran.err
    return ran


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRINTED_KEY", KEY)


def content(ran: Ran) -> list[str]:
    return [hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(ran.data.iterdir())]


def released(ran: Ran) -> Counter[Tuple]:
    table = pq.read_table(ran.data)
    return Counter(zip(table.column("age").to_pylist(), table.column("city").to_pylist(), strict=True))


def chunks(ran: Ran) -> int:
    return len(list((ran.root / "vault" / "decisions").glob("*.parquet")))


# ------------------------------------------------------------------------------------------------ literal law


def chains(tree: Any, above: tuple[str, ...] = ()) -> dict[str, tuple[str, ...]]:
    """Every value with its path from itself to the root."""
    if isinstance(tree, list):
        return {leaf: (leaf, *above) for leaf in tree}
    found: dict[str, tuple[str, ...]] = {}
    for label, below in tree.items():
        found |= chains(below, (label, *above))
    return found


def above(record: Tuple) -> list[Tuple]:
    return list(itertools.product(chains(AGES)[record[0]], chains(CITIES)[record[1]]))


def depth(record: Tuple, element: Tuple) -> int:
    lengths = [chains(tree)[value] for tree, value in ((AGES, record[0]), (CITIES, record[1]))]
    return sum(len(chain) - 1 - chain.index(label) for chain, label in zip(lengths, element, strict=True))


def laws(
    asked: dict[str, Any], t: float, *, strength: float = 1.0, cut: bool = True
) -> dict[Tuple, dict[Tuple, float]]:
    """Probability of each output of each record, straight from the print; ``strength`` and ``cut`` spoil it."""
    times = Counter(records())
    rho: Counter[Tuple] = Counter()
    for record, number in times.items():
        for element in above(record):
            rho[element] += number
    beta = asked["beta"]
    floor = asked.get("utility_at_least")
    eta = asked["phi_u"] if floor is not None else 2 * (1 / asked["phi_l"] + 1)
    epsilon = strength * (asked["epsilon"] + math.log(beta)) / (3 * eta * (1 - beta))
    result = {}
    for record in times:
        weights = {}
        for x in above(record):
            u = depth(record, x)
            if rho[x] < t or (floor is not None and u < floor):
                continue
            score = (
                rho[x] / (max(2, asked["phi_l"]) if cut else 2) + u ** asked["kappa"] if floor is None else -1 / rho[x]
            )
            weights[x] = math.exp(epsilon * score / ROWS)
        total = sum(weights.values())
        result[record] = {x: (1 - beta) * weight / total for x, weight in weights.items()}
    return result


def largest_z(found: Counter[Tuple], law: dict[Tuple, dict[Tuple, float]]) -> float:
    """Largest standardized deviation of the rows of an element, and of all; infinite if one has no probability."""
    mean: dict[Tuple, float] = defaultdict(float)
    variance: dict[Tuple, float] = defaultdict(float)
    whole: Tuple = ("in", "all")
    for record, number in Counter(records()).items():
        for x, p in [*law[record].items(), (whole, sum(law[record].values()))]:
            mean[x] += number * p
            variance[x] += number * p * (1 - p)
    if set(found) - set(mean):
        return math.inf
    seen = {**found, whole: sum(found.values())}
    return max(abs(seen.get(x, 0) - mean[x]) / math.sqrt(variance[x]) for x in mean)


def draws(asked: dict[str, Any], *, key: str = KEY, snapshot: str, name: str = "r1") -> Draws:
    policy = parse(asked)
    hierarchies = {name: h for name, h in hierarchies_from_policy(policy).items() if h is not None}
    facts = InputFacts(ROWS, 0, 0, 0, {}, {}, {}, {}, snapshot)
    constants = as_published(policy, hierarchies)
    return Draws.of_policy(
        policy, hierarchies, axes(policy, hierarchies), constants, key=bytes.fromhex(key), run_id=name, facts=facts
    )


def assert_law(ran: Ran, law: dict[Tuple, dict[Tuple, float]]) -> Counter[Tuple]:
    """Hold the rows of a release against a law of each record; returns them without the copy of the root."""
    found = released(ran)
    assert found["*", "*"] >= 1, "the copy of the root"
    found["*", "*"] -= 1
    found += Counter()
    assert largest_z(found, law) < 4
    assert ran.manifest["rows"] == sum(found.values()) + 1
    return found


def test_rows_follow_the_printed_law(aggregate: Ran, t: int) -> None:
    asked = document(aggregate.root)["guarantee"]
    law = laws(asked, t)
    assert len({x for of_record in law.values() for x in of_record}) > 4, "the test needs a choice"
    found = assert_law(aggregate, law)
    # Wrong laws: another sampling rate, no threshold, another exponent, bound or power.
    assert largest_z(found, laws({**asked, "beta": 0.5}, t)) > 5
    assert largest_z(found, laws(asked, 1)) > 5
    assert largest_z(found, laws(asked, t, strength=0.0)) > 5, "uniform"
    assert largest_z(found, laws(asked, t, cut=False)) > 5, "phi_l not used"
    assert largest_z(found, laws({**asked, "kappa": 1}, t)) > 5


def test_the_threshold_version_follows_its_law_and_no_value_no_key_leaks(
    privrisk: Privrisk, tmp_path: Path, t: int, capfd: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "r"
    asked = document(root, **THRESHOLD)["guarantee"]
    ran = run(privrisk, root, "--explain", "--log-format", "json", **THRESHOLD)
    assert ran.code == 0, ran.err
    captured = capfd.readouterr()
    law = laws(asked, t)
    assert len({x for of_record in law.values() for x in of_record}) > 4, "the test needs a choice"
    found = assert_law(ran, law)
    # Wrong laws: another sampling rate, no threshold, another floor.
    assert largest_z(found, laws({**asked, "beta": 0.5}, t)) > 5
    assert largest_z(found, laws(asked, 1)) > 5
    assert largest_z(found, laws({**asked, "utility_at_least": 1}, t)) > 5
    assert ("*", "*") not in found
    spoken = ran.out + ran.err + captured.out + captured.err
    held = {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}
    for secret in (CANARY, KEY):
        assert secret not in spoken
        holders = {name for name, data in held.items() if secret.encode() in data}
        assert holders <= {"table.csv", "policy.yaml"}
    assert not [name for name, data in held.items() if bytes.fromhex(KEY) in data]


WALK = {"algorithm": 7, "kappa": 1, "phi_l": 0.5, "phi_u": 2, "steps": 40, "layer_width": 0.9, "sigma": 0.6}
FLAT = [
    f"--set=columns.{name}.hierarchy={{tree: null, flat: {{values: {values}}}}}"
    for name, values in (("age", "['15', '16', '25', '26', '60', '70']"), ("city", f"[Bonn, Kiel, Ulm, {CANARY}]"))
]
LINEAR = "--set=risk.sensitivity={form: linear, constant: 1}"


def walk_laws(asked: dict[str, Any], t: float, *, strength: float = 1.0) -> dict[Tuple, dict[Tuple, float]]:
    """Law of Algorithm 7 on two attributes that are told or not, by quadrature over the square of section 6.5."""
    times, cells = Counter(records()), 300
    epsilon = (
        strength * (asked["epsilon"] + math.log(asked["beta"])) / (6 * (1 / asked["phi_l"] + 1) * (1 - asked["beta"]))
    )
    middles = (np.arange(cells) + 0.5) / cells
    age, city = np.meshgrid(middles, middles, indexing="ij")
    number = math.ceil(math.log(asked["phi_u"] / asked["phi_l"]) / math.log1p(asked["layer_width"])) + 1
    result = {}
    for record in times:
        elements = [record, ("*", record[1]), (record[0], "*"), ("*", "*")]
        rho = [
            sum(n for row, n in times.items() if all(x in ("*", v) for x, v in zip(e, row, strict=True)))
            for e in elements
        ]
        told = [2, 1, 1, 0]
        xi = [n + left * left for n, left in zip(rho, told, strict=True)]
        # Nested sets: nothing, the attribute with the larger coordinate, both.
        weights = [
            1 - np.maximum(age, city),
            np.maximum(age - city, 0),
            np.maximum(city - age, 0),
            np.minimum(age, city),
        ]
        count, phi, height = (sum(w * v for w, v in zip(weights, values, strict=True)) for values in (rho, told, xi))
        enough = [w * (n >= asked["sigma"] * t) for w, n in zip(weights, rho, strict=True)]
        law: dict[Tuple, float] = defaultdict(float)
        for i in range(number):
            low = asked["phi_l"] * (1 + asked["layer_width"]) ** i
            inside = (count >= t) & (phi >= low) & (phi <= low * (1 + asked["layer_width"]))
            density = np.where(inside, np.exp(epsilon * (height - max(xi)) / (ROWS * low)), 0)
            for element, weight in zip(elements, enough, strict=True):
                if inside.any():
                    share = (density * weight / sum(enough))[inside].sum() / density.sum()
                    law[element] += (1 - asked["beta"]) / number * share
        result[record] = {element: p for element, p in law.items() if p > 0}
    return result


@pytest.mark.thorough("tests/kernels/as_published/")
def test_a_long_walk_follows_its_law_a_short_one_does_not(
    privrisk: Privrisk, spark: SparkSession, tmp_path: Path, t: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = run(privrisk, tmp_path / "long", *FLAT, LINEAR, **WALK)
    assert ran.code == 0, ran.err
    asked = document(tmp_path, **WALK)["guarantee"]
    law = walk_laws(asked, 1439.5)
    found = assert_law(ran, law)
    for wrong in (
        walk_laws(asked, 1439.5, strength=0.0),
        walk_laws(asked, 2000),
        walk_laws({**asked, "sigma": 1e-9}, 1439.5),
    ):
        assert largest_z(found, wrong) > 5
    short = run(privrisk, tmp_path / "short", *FLAT, LINEAR, **{**WALK, "steps": 1})
    assert short.code == 0, short.err
    assert largest_z(released(short) - Counter({("*", "*"): 1}), law) > 5
    said = ran.manifest["guarantee"]
    assert said["status"] == "heuristic"
    assert said["statement"].startswith(
        "No guarantee: Algorithm 7 of Fouad 2012 as published; the theorem it rests on does not hold at these "
        "constants, and how far a walk of 40 steps is from the law it walks to is not known."
    )
    assert said["parameters"]["steps of the walk"] == 40
    assert not PRIVATE_WORDS.search(html.unescape((ran.data.parent / "report.html").read_text()))
    assert not list(tmp_path.rglob("*.db"))
    # Other partitions, batches and plan of counting, fewer records at once: each row walks as it did.
    usual = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.files.maxPartitionBytes", "40000")
    spark.conf.set("spark.sql.shuffle.partitions", "5")
    monkeypatch.setattr(published_draws, "_WEIGHED_AT_ONCE", 9)
    monkeypatch.setattr(published_draws, "_WALKING_AT_ONCE", 900)
    try:
        again = run(privrisk, tmp_path / "again", *FLAT, LINEAR, "--set=counting.plan=iceberg", **WALK)
    finally:
        spark.conf.unset("spark.sql.files.maxPartitionBytes")
        spark.conf.set("spark.sql.shuffle.partitions", usual)
    assert again.code == 0, again.err
    assert content(again) == content(ran)


def test_the_threshold_is_uniform_and_bound_to_key_run_and_content() -> None:
    asked = document(Path("/tmp/nowhere"), theta0=0.2)
    least = [draws(asked, snapshot=f"s{i}").least for i in range(400)]
    assert kstest(np.array(least) / ROWS, "uniform", args=(0.2, 0.8)).pvalue > 1e-3
    one = draws(asked, snapshot="s0")
    others = [
        draws(asked, snapshot="s1"), draws(asked, snapshot="s0", name="r2"), draws(asked, snapshot="s0", key=OTHER_KEY),
        draws(document(Path("/tmp/nowhere"), theta0=0.2, beta=0.5), snapshot="s0"),
    ]  # fmt: skip
    keys = [(d.keys.threshold, d.keys.sample, d.keys.element) for d in (one, *others)]
    assert len(set(itertools.chain(*keys))) == 15
    assert draws(asked, snapshot="s0").keys == one.keys
    assert KEY not in repr(one) + repr(one.keys)
    assert str(one.least) not in repr(one)


@pytest.mark.thorough("tests/kernels/as_published/; test_what_it_says_of_itself")
@pytest.mark.usefixtures("t")
def test_same_bytes_however_it_is_run(
    privrisk: Privrisk, spark: SparkSession, aggregate: Ran, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = aggregate
    usual = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "5")
    spark.conf.set("spark.sql.files.maxPartitionBytes", "40000")
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "777")
    monkeypatch.setattr(published_draws, "_WEIGHED_AT_ONCE", 20)
    try:
        again = run(privrisk, tmp_path / "again", "--set=counting.plan=iceberg")
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", usual)
        spark.conf.unset("spark.sql.files.maxPartitionBytes")
    assert again.code == 0, again.err
    assert content(again) == content(first)
    assert chunks(again) > 2 * chunks(first)
    assert (first.summary["plan"], again.summary["plan"]) == ("dense", "iceberg")


PRIVATE_WORDS = re.compile(r"differential(ly)?[\s-]+priva|\bDP\b", re.IGNORECASE)


@pytest.mark.usefixtures("t")
def test_what_it_says_of_itself(privrisk: Privrisk, aggregate: Ran, tmp_path: Path) -> None:
    root = tmp_path / "r"
    ran = run(privrisk, root, "--explain", key=None)
    assert ran.code == 0, ran.err
    stated = ran.manifest["guarantee"]
    statement = "No guarantee: Algorithm 6 of Fouad 2012 as published; its theorem does not hold at these constants."
    assert stated["statement"].startswith(statement)
    assert "accept_unproven: true" in stated["statement"]
    assert (stated["kind"], stated["status"]) == ("as-published", "heuristic")
    assert stated["parameters"]["accept_unproven"] is True
    assert stated["parameters"]["beta (a row is not sampled)"] == 0.4
    assert "delta" not in json.dumps(stated)
    pages = [ran.data.parent / "report.html", root / "vault" / "report.html"]
    texts = [path.read_text() for path in (root / "out" / "manifest.json", root / "vault" / "summary.json", *pages)]
    for text in (*texts, ran.out, ran.err):
        assert not PRIVATE_WORDS.search(html.unescape(text))
    for text in (*(html.unescape(path.read_text()) for path in pages), ran.out):
        assert statement in text
        assert "What this release guarantees" not in text
    assert "There is no proof of anything here" in texts[-1]
    public = (root / "out" / "manifest.json").read_text() + pages[0].read_text()
    assert str(ROWS) not in public
    assert f"{ROWS:,}" not in public
    assert "seconds" not in public
    # Nothing is charged, and the key is gone; running it again finds the release.
    assert not list(tmp_path.rglob("*.db"))
    assert not list((root / "vault" / "keys").glob("*.key"))
    assert not [path for path in root.rglob("*") if path.is_file() and path.name.startswith(".scratch")]
    before = content(ran)
    again = run(privrisk, root, key=None)
    assert again.code == 0, again.err
    assert "Already released" in again.out
    assert content(again) == before != content(aggregate), "another key, another draw"


@pytest.mark.usefixtures("t")
def test_an_interrupted_run_goes_on_with_its_key(
    privrisk: Privrisk, aggregate: Ran, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first key that is drawn is `KEY`, and any other would be another."""
    root = tmp_path / "r"
    drawn = iter([bytes.fromhex(KEY)])
    monkeypatch.setattr(keystore, "secrets", SimpleNamespace(token_bytes=lambda size: next(drawn, bytes(size))))

    def planted(*_: object) -> None:
        raise EngineError("planted")

    with monkeypatch.context() as patch:
        patch.setattr(Draws, "drawing", planted)
        assert run(privrisk, root, key=None).code == 3
    (key,) = (root / "vault" / "keys").glob("*.key")
    assert key.read_bytes().hex() == KEY
    assert not (root / "out" / "manifest.json").exists()
    ran = run(privrisk, root, key=None)
    assert ran.code == 0, ran.err
    assert not key.exists()
    assert content(ran) == content(aggregate), "the same key, the same bytes"


REFUSED = [
    ("guarantee.accept_unproven=false", "guarantee.accept_unproven: must be true: the theorem of Algorithm 6"),
    ("guarantee.accept_unproven=null", "guarantee.accept_unproven: must be true or false"),
    ("guarantee.algorithm=8", "guarantee.algorithm: must be 6 or 7. Got 8"),
    ("guarantee.algorithm=7", "guarantee.steps: is required by Algorithm 7"),
    ("guarantee.algorithm=7", "guarantee.phi_u: is required by Algorithm 7"),
    ("guarantee.steps=5", "guarantee.steps: is of Algorithm 7"),
    ("guarantee={algorithm: 7, steps: 0}", "guarantee.steps: must be greater than 0"),
    ("guarantee={algorithm: 7, accept_unproven: false}", "the theorem of Algorithm 6, on which Algorithm 7 rests"),
    ("guarantee={algorithm: 7, phi_u: 1}", "guarantee.phi_u: must be at least phi_l = 4. Got 1"),
    ("guarantee={algorithm: 7, kappa: 0.5}", "guarantee.kappa: must be 0, or at least 1, with Algorithm 7"),
    ("guarantee={algorithm: 7, utility_at_least: 1}", "guarantee.utility_at_least: is not available with Algorithm 7"),
    ("guarantee.beta=1e-27", "guarantee.beta: must be above exp(-epsilon) = 8.75651e-27. Got 1e-27"),
    ("guarantee.beta=1", "guarantee.beta: must be less than 1"),
    ("guarantee.theta0=0", "guarantee.theta0: must be greater than 0"),
    ("guarantee.phi_l=null", "guarantee.phi_l: is required"),
    ("guarantee.phi_u=3", "guarantee.phi_u: is only used by the threshold version"),
    ("guarantee.utility_at_least=1", "guarantee.phi_u: is required with utility_at_least"),
    ("guarantee.delta=1e-9", "guarantee.delta: there is no such key (it goes with kind 'dp')"),
    ("columns.note={role: sensitive}", "columns.note: would be released untouched"),
    ("columns.age.unknown=error", "columns.age.unknown: 'error' is not available"),
    ("table={record_id: null, entity_id: id}", "table.entity_id: is not used when guarantee.kind is 'as-published'"),
    ("decision={utility_at_least: 1}", "decision: is not used"),
    ("checks.max_risk=0.5", "checks.max_risk: is not used"),
    ("counting.plan=shuffle", "counting.plan: 'shuffle' is not available"),
    ("risk={model: III}", "risk.model: must be 'I' or 'II'"),
]  # fmt: skip


@pytest.mark.parametrize(("option", "message"), REFUSED)
def test_refused(privrisk: Privrisk, tmp_path: Path, option: str, message: str) -> None:
    ran = run(privrisk, tmp_path / "r", f"--set={option}")
    assert ran.code == 2
    assert message in ran.err
    assert not (tmp_path / "r" / "out").exists()
    assert not list(tmp_path.rglob("*.db"))
    if "must be true: " in message:
        assert "spoils the guarantees of everything else released from the table" in " ".join(ran.err.split())
        assert "privrisk guide as-published" in ran.err


def test_a_release_is_noted_in_the_lineage_it_names(aggregate: Ran, privrisk: Privrisk, tmp_path: Path, t: int) -> None:
    """It is no private one and charges nothing, but whoever keeps the budget of the table sees it."""
    url = f"sqlite:///{tmp_path}/budget/ledger.db"
    (tmp_path / "budget").mkdir()
    ledger = f"{{url: '{url}', lineage: Printed, cap: {{epsilon: 1, delta: 1e-9}}}}"
    ran = run(privrisk, tmp_path / "r", f"--set=ledger={ledger}")
    assert ran.code == 0, ran.err
    balance = Ledger(url).balance("printed")
    assert [(one.run_id, one.state, one.counted) for one in balance.runs] == [("r1", "noted", False)]
    assert (balance.spent_epsilon, balance.spent_delta) == (0, 0)
    assert content(ran) == content(aggregate), "the ledger changes nothing of what is released"


def test_large_lattices_and_empty_tables_are_refused(privrisk: Privrisk, tmp_path: Path) -> None:
    many = {f"c{i}": {"role": "quasi-identifier", "hierarchy": {"flat": {"values": ["a", "b"]}}} for i in range(15)}
    wide = document(tmp_path)
    wide["columns"] |= many
    table = tmp_path / "table.csv"
    table.write_text(";".join(["id;age;city", *many]) + "\n" + ";".join(["p;15;Ulm", *["a"] * 15]) + "\n")
    policy = tmp_path / "policy.yaml"
    policy.write_text(yaml.safe_dump(wide))
    for more in ([], ["--dry-run"]):
        ran = privrisk(str(policy), *more)
        assert ran.code == 2
        assert "guarantee.algorithm: 6 weighs every element of a record's lattice, which may have 65,536" in ran.err
        assert "393,216" in ran.err
    table.write_text("id;age;city\n")
    policy.write_text(yaml.safe_dump(document(tmp_path)))
    ran = privrisk(str(policy))
    assert (ran.code, "table: it has no rows" in ran.err) == (2, True)
    assert "No guarantee: Algorithm 6" in privrisk(str(policy), "--dry-run").out
