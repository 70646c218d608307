"""Schemes that are fitted once, approved, and applied batch by batch; and recodings of each class, end to end.

What is published is read with pyarrow, and held against plain Python.
"""

from __future__ import annotations

import collections
import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from product import Privrisk, Ran
from typer.testing import CliRunner

import privrisk_spark as pr
from privrisk_spark.cli.app import app
from privrisk_spark.errors import ConfigError
from privrisk_spark.policy.schemes import read_scheme
from privrisk_spark.stages.deciding import mondrian, recode
from privrisk_spark.stages.deciding.mondrian import collect_partition

TREES: dict[str, Any] = {
    # A leaf beside nodes, and one below another depth than others.
    "place.code": {"*": ["lone", {"north": ["anna", "hanna"]}, {"south": ["carla", {"deep": ["karla", "marla"]}]}]},
    "sex": {"*": ["f", "m"]},
    "job": {"*": {"office": ["clerk", "typist"], "field": ["farmer"]}},
}
LEAVES = {
    "place.code": ["lone", "anna", "hanna", "carla", "karla", "marla"],
    "sex": ["f", "m"],
    "job": ["clerk", "typist", "farmer"],
}
ABOVE = {
    "place.code": {
        "lone": ["lone", "*"],
        "anna": ["anna", "north", "*"],
        "hanna": ["hanna", "north", "*"],
        "carla": ["carla", "south", "*"],
        "karla": ["karla", "deep", "south", "*"],
        "marla": ["marla", "deep", "south", "*"],
    },
    "sex": {leaf: [leaf, "*"] for leaf in ("f", "m")},
    "job": {
        "clerk": ["clerk", "office", "*"],
        "typist": ["typist", "office", "*"],
        "farmer": ["farmer", "field", "*"],
    },
}
QUASI = tuple(TREES)
Row = dict[str, str | None]


def rows(seed: int, n: int, *, skew: int = 3) -> list[Row]:
    pick = random.Random(seed)
    return [
        {
            "id": f"planted-{i}",
            "place.code": pick.choice(["anna"] * skew + LEAVES["place.code"]),
            "sex": pick.choice(["f", "m", "m"]),
            "job": pick.choice(["clerk", "clerk", "typist", "farmer", None]),
            "sick": pick.choice(["flu", "flu", "cold", "gout", None]),
        }
        for i in range(n)
    ]


Make = Callable[..., Path]


@pytest.fixture
def policy(tmp_path: Path) -> Make:
    """``policy(rows, **guarantee)``: a policy file over a table of these rows."""

    def make(given: Sequence[Row], name: str = "policy", trees: dict[str, Any] = TREES, **guarantee: Any) -> Path:
        pq.write_table(pa.Table.from_pylist(list(given)), tmp_path / f"{name}.parquet")
        document = {
            "version": 1,
            "run": {"name": "fitted"},
            "table": {"path": str(tmp_path / f"{name}.parquet"), "record_id": "id"},
            "columns": {
                "id": {"role": "identifier"},
                **{q: {"role": "quasi-identifier", "hierarchy": {"tree": tree}} for q, tree in trees.items()},
                "sick": {"role": "sensitive"},
            },
            "risk": {"model": "II"},
            "guarantee": {"kind": "k-anonymity", "k": 3, "suppression_limit": 0.1, **guarantee},
            "output": {"path": str(tmp_path / "out"), "vault": str(tmp_path / "vault")},
        }
        path = tmp_path / f"{name}.yaml"
        path.write_text(yaml.safe_dump(document, sort_keys=False))
        return path

    return make


def command(*arguments: str) -> tuple[int, str]:
    """Exit code of a command, and all it said."""
    result = CliRunner().invoke(app, [*arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


def fitted(policy: Path, output: Path, *, by: str | None = "An Officer") -> Path:
    """Fit a scheme by the command line, and approve it."""
    code, said = command("fit", str(policy), f"--output={output}")
    assert code == 0, said
    if by is not None:
        code, said = command("approve", str(output / "scheme.json"), "--by", by)
        assert code == 0, said
    return output / "scheme.json"


def classes_of(released: Sequence[Row]) -> dict[tuple[str | None, ...], list[Row]]:
    """Rows by their released labels; those of suppressed rows are left out."""
    found = collections.defaultdict(list)
    for row in released:
        found[tuple(row[q] for q in QUASI)].append(row)
    return {key: those for key, those in found.items() if set(key) != {"*"}}


@pytest.mark.usefixtures("privrisk")
def test_a_scheme_is_fitted_approved_and_applied_to_the_next_batch(
    policy: Make, privrisk: Privrisk, tmp_path: Path
) -> None:
    first, second = rows(1, 150), rows(2, 170)
    scheme = fitted(policy(first), tmp_path / "fit")
    document = json.loads(scheme.read_text())
    own = privrisk(str(policy(first)), "--run-id=own")
    assert own.code == 0, own.err
    # What is fitted is what a release would search for.
    levels = {column["name"]: column["level"] for column in document["columns"]}
    assert own.summary["recoding"]["levels"] == levels
    assert document["achieved"]["suppressed"] == own.summary["recoding"]["suppressed"]
    assert not (tmp_path / "fit" / "releases").exists()
    applied = privrisk(str(policy(second, "second")), f"--scheme={scheme}", "--run-id=applied", root=tmp_path / "2")
    assert applied.code == 0, applied.err
    recoding = applied.summary["recoding"]
    assert recoding["levels"] == levels
    assert recoding["scheme"]["approved_by"] == "An Officer"
    assert recoding["fitted"]["rows"] == 150
    assert recoding["nodes_evaluated"] == 1
    assert not recoding["optimal"]
    assert recoding["best"]["value"] <= recoding["metric"]["value"]
    assert applied.manifest["guarantee"]["parameters"]["scheme"] == read_scheme(str(scheme), key="x").digest()
    assert "An Officer" not in json.dumps(applied.manifest)
    released = pq.read_table(applied.data).to_pylist()
    assert len(released) == 170
    assert all(len(those) >= 3 for those in classes_of(released).values())
    # Every row is the ancestor at the scheme's levels, cut at its depth, or suppressed.
    wanted: collections.Counter[tuple[str | None, ...]] = collections.Counter()
    kept = collections.Counter(
        tuple("*" if row[q] is None else ABOVE[q][row[q]][min(levels[q], len(ABOVE[q][row[q]]) - 1)] for q in QUASI)
        for row in second
    )
    for key, times in kept.items():
        wanted[key if times >= 3 else ("*",) * 3] += times
    assert collections.Counter(tuple(row[q] for q in QUASI) for row in released) == wanted
    # The same run again, with the same scheme, is the same release.
    again = privrisk(str(policy(second, "second")), f"--scheme={scheme}", "--run-id=applied", root=tmp_path / "2")
    assert again.code == 0
    assert "Already released" in again.out


@pytest.mark.usefixtures("privrisk")
def test_a_scheme_is_refused_that_is_not_approved_or_was_changed_or_is_anothers(
    policy: Make, privrisk: Privrisk, tmp_path: Path
) -> None:
    given = rows(1, 150)
    path = policy(given)
    scheme = fitted(path, tmp_path / "fit", by=None)

    def refused(*arguments: str, policy: Path = path) -> str:
        ran = privrisk(str(policy), f"--scheme={scheme}", *arguments, root=tmp_path / "none")
        assert ran.code == 2, ran.out
        assert not (tmp_path / "none" / "out" / "releases").exists()
        return " ".join(ran.err.split())

    assert "guarantee.scheme: " in (said := refused())
    assert "is not approved" in said
    assert "privrisk approve" in said
    assert command("approve", str(scheme), "--by", " ")[0] == 2
    assert command("approve", str(scheme), "--by", "An Officer")[0] == 0
    assert "guarantee.k: must be 3, as in the scheme. Got 4" in refused("--set", "guarantee.k=4")
    assert "guarantee.suppression_limit: must be 0.1" in refused("--set", "guarantee.suppression_limit=0.2")
    also = '[{"p_sensitivity": {"column": "sick", "p": 2}}]'
    assert "guarantee.also: must be []" in refused("--set", f"guarantee.also={also}")
    assert "columns.sex.nulls: must be 'suppress'" in refused("--set", "columns.sex.nulls=own-value")
    other = {**TREES, "job": {"*": {"office": ["clerk"], "field": ["farmer", "typist"]}}}
    assert "columns.job.hierarchy: must be the hierarchy of the scheme" in refused(policy=policy(given, "o", other))
    fewer = yaml.safe_load(path.read_text())
    fewer["columns"]["job"] = {"role": "insensitive"}
    (tmp_path / "fewer.yaml").write_text(yaml.safe_dump(fewer, sort_keys=False))
    assert "columns.job.role: must be 'quasi-identifier'" in refused(policy=tmp_path / "fewer.yaml")
    fewer = yaml.safe_load(path.read_text())
    fewer["guarantee"]["method"] = "mondrian"
    (tmp_path / "local.yaml").write_text(yaml.safe_dump(fewer, sort_keys=False))
    assert "guarantee.method: must be 'best', as the scheme has one level" in refused(policy=tmp_path / "local.yaml")
    # A level that its hierarchy does not have, though approved.
    high = json.loads(scheme.read_text())
    high["columns"][1]["level"] = 2
    (tmp_path / "high.json").write_text(json.dumps(high))
    code, said = command("approve", str(tmp_path / "high.json"), "--by", "An Officer")
    assert code == 2
    assert "level must be at most 1" in said
    # Changed by hand after it was approved.
    document = json.loads(scheme.read_text())
    document["columns"][0]["level"] = 0
    scheme.write_text(json.dumps(document))
    assert "was changed after it was approved" in refused()
    scheme.write_text("{}")
    assert "is no scheme of `privrisk fit`" in refused()
    scheme.unlink()
    assert "cannot be read" in refused()


@pytest.mark.usefixtures("privrisk")
def test_levels_that_would_mean_something_else_with_the_leaves_of_another_batch_are_refused(
    policy: Make, privrisk: Privrisk, tmp_path: Path
) -> None:
    """Masked digits have as many levels as the longest value has digits: the root of one batch is none of another."""

    def masked(name: str, digits: Sequence[str]) -> Path:
        table = [{"id": f"planted-{i}", "zip": one, "sick": "flu"} for i, one in enumerate(digits)]
        path = policy(table, name)
        document = yaml.safe_load(path.read_text())
        column = {"role": "quasi-identifier", "hierarchy": {"mask": {"from": "right", "steps": 4}}}
        document["columns"] = {"id": {"role": "identifier"}, "zip": column, "sick": {"role": "sensitive"}}
        path.write_text(yaml.safe_dump(document, sort_keys=False))
        return path

    scheme = fitted(masked("short", ["12", "34", "56"]), tmp_path / "fit")
    assert json.loads(scheme.read_text())["columns"][0]["level"] == 2
    ran = privrisk(str(masked("long", ["12345"] * 4)), f"--scheme={scheme}", root=tmp_path / "2")
    assert ran.code == 2
    said = " ".join(ran.err.split())
    assert "columns.zip.hierarchy: must have 2 levels above its leaves, as in the scheme" in said
    assert "planted-" not in said
    same = privrisk(str(masked("same", ["78", "90", "12", "12"])), f"--scheme={scheme}", root=tmp_path / "3")
    assert same.code == 0, same.err


@pytest.mark.usefixtures("privrisk")
def test_what_would_release_nothing_is_not_fitted(policy: Make, tmp_path: Path) -> None:
    path = policy(rows(1, 2), k=3, suppressed="drop", suppression_limit=1)
    code, said = command("fit", str(path), f"--output={tmp_path / 'fit'}")
    assert code == 1
    assert "nothing would be released" in " ".join(said.split())


@pytest.mark.usefixtures("privrisk")
def test_a_batch_on_which_a_scheme_breaks_its_guarantee_is_not_published(
    policy: Make, privrisk: Privrisk, tmp_path: Path
) -> None:
    also = [{"l_diversity": {"column": "sick", "l": 2}}]
    crowd: list[Row] = [
        {"id": "", "place.code": "anna", "sex": s, "job": "clerk", "sick": i}
        for i in ("flu", "cold")
        for s in ("f", "m")
        for _ in range(10)
    ]
    named = [{**row, "id": f"planted-{i}"} for i, row in enumerate(crowd)]
    scheme = fitted(policy(named, also=also), tmp_path / "fit")
    assert {c["level"] for c in json.loads(scheme.read_text())["columns"]} == {0}
    # Ten rows of one illness, and four alone: 14 of 54, and 5 may be suppressed.
    worse = [
        *named,
        *({"id": f"one-{i}", "place.code": "lone", "sex": "f", "job": "farmer", "sick": "gout"} for i in range(10)),
    ]
    worse += [
        {"id": f"few-{i}", "place.code": p, "sex": "f", "job": "farmer", "sick": "gout"}
        for i, p in enumerate(["anna", "hanna", "carla", "karla"])
    ]
    ran = privrisk(str(policy(worse, "worse", also=also)), f"--scheme={scheme}", root=tmp_path / "2")
    said = " ".join(ran.err.split())
    assert ran.code == 1
    assert "4 rows are in classes without at least 3 rows" in said
    assert "14 rows are in classes without at least 2 distinct values of 'sick'" in said
    assert "takes 14 of 54 rows" in said
    assert "allows for 5" in said
    assert "planted-" not in said
    assert not (tmp_path / "2" / "out" / "manifest.json").exists()


@pytest.mark.usefixtures("privrisk")
@pytest.mark.parametrize(
    ("method", "also"),
    # Of persons below all three have both; of rows, fitted cuts have k alone.
    [("mondrian", [{"p_sensitivity": {"column": "sick", "p": 2}}]), ("hilbert", []), ("bang", [])],
    ids=["mondrian", "hilbert", "bang"],
)
def test_classes_with_levels_of_their_own_have_what_is_asked(
    policy: Make, privrisk: Privrisk, method: str, also: list[Any]
) -> None:
    given = rows(5, 200)
    ran = privrisk(str(policy(given, method=method, also=also)))
    assert ran.code == 0, ran.err
    released = pq.read_table(ran.data).to_pylist()
    assert len(released) == 200
    found = classes_of(released)
    assert len(found) > 5
    for those in found.values():
        assert len(those) >= 3
        assert not also or len({row["sick"] for row in those}) >= 2
    recoding = ran.summary["recoding"]
    assert recoding["levels"] is None
    assert recoding["classes"] == len(found) + any({row[q] for q in QUASI} == {"*"} for row in released) * (
        not recoding["suppressed"]
    )
    # Every value is its own or an ancestor: the decisions say which.
    decided = {row["id"]: row for row in pq.read_table(ran.root / "vault" / "decisions").to_pylist()}
    nodes: collections.Counter[tuple[str | None, ...]] = collections.Counter()
    for row in given:
        levels = [decided[row["id"]][f"level_{q}"] for q in QUASI]
        nodes[
            tuple("*" if row[q] is None else ABOVE[q][row[q]][level] for q, level in zip(QUASI, levels, strict=True))
        ] += 1
    assert nodes == collections.Counter(tuple(row[q] for q in QUASI) for row in released)


@pytest.mark.usefixtures("privrisk")
@pytest.mark.parametrize(
    "method",
    [
        "mondrian",
        *(
            pytest.param(other, marks=pytest.mark.thorough("the same steps as for mondrian"))
            for other in ("hilbert", "bang")
        ),
    ],
)
def test_classes_with_levels_of_their_own_have_persons(policy: Make, privrisk: Privrisk, method: str) -> None:
    """One of them has most rows of each record, so that k rows are often hers alone."""
    given, pick = rows(9, 200), random.Random(method)
    whose = {row["id"]: "w0" if pick.random() < 0.6 else f"w{pick.randrange(1, 40)}" for row in given}
    path = policy([{**row, "who": whose[row["id"]]} for row in given], method=method)
    document = yaml.safe_load(path.read_text())
    document["table"]["entity_id"] = "who"
    document["columns"] |= {"who": {"role": "identifier"}}
    document["guarantee"]["also"] = [{"p_sensitivity": {"column": "sick", "p": 2}}]
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    ran = privrisk(str(path))
    assert ran.code == 0, ran.err
    decided = pq.read_table(ran.root / "vault" / "decisions").to_pylist()
    found: dict[tuple[str | None, ...], list[Row]] = {}
    of = {row["id"]: row for row in given}
    for row in decided:
        levels = [(q, row[f"level_{q}"]) for q in QUASI]
        nodes = tuple("*" if of[row["id"]][q] is None else ABOVE[q][of[row["id"]][q]][level] for q, level in levels)
        found.setdefault(nodes, []).append(of[row["id"]])
    lost = found.pop(("*",) * len(QUASI), []) if ran.summary["recoding"]["suppressed"] else []
    assert ran.summary["recoding"]["suppressed"] == len(lost) <= 20
    assert len(found) > 3
    for those in found.values():
        assert len({whose[row["id"]] for row in those}) >= 3
        assert len({row["sick"] for row in those}) >= 2
    checks = {one["name"]: one["observed"] for one in ran.manifest["checks"]}
    assert checks["fewest persons"] == min(len({whose[row["id"]] for row in those}) for those in found.values())
    assert "at least 3 persons" in ran.manifest["guarantee"]["statement"]
    refused = privrisk(str(path), "--set=counting.plan=shuffle", root=ran.root / "other")
    assert refused.code == 2
    assert f"counting.plan: '{method}' counts persons on the driver" in " ".join(refused.err.split())


def nodes_of(ran: Ran, given: Sequence[Row]) -> collections.Counter[tuple[str | None, ...]]:
    """What every row became, by the vault's levels."""
    decided = {row["id"]: row for row in pq.read_table(ran.root / "vault" / "decisions").to_pylist()}
    return collections.Counter(
        tuple("*" if row[q] is None else ABOVE[q][row[q]][decided[row["id"]][f"level_{q}"]] for q in QUASI)
        for row in given
    )


@pytest.mark.usefixtures("privrisk")
@pytest.mark.parametrize(
    "persons", [pytest.param(False, marks=pytest.mark.thorough("the same steps with rows for persons")), True]
)
def test_cuts_are_fitted_approved_and_applied_to_the_next_batch(
    policy: Make, privrisk: Privrisk, tmp_path: Path, persons: bool
) -> None:
    pick = random.Random(4)

    def asked(given: Sequence[Row], name: str = "policy", **changes: Any) -> Path:
        with_persons = [{**row, "who": f"w{pick.randrange(60)}"} for row in given]
        path = policy(with_persons, name, **{"method": "mondrian", "suppression_limit": 0.5, **changes})
        document = yaml.safe_load(path.read_text())
        document["columns"]["who"] = {"role": "identifier"}
        if persons:
            document["table"]["entity_id"] = "who"
        path.write_text(yaml.safe_dump(document, sort_keys=False))
        return path

    # The first batch has no farmers and nobody from hanna.
    first = [{**row, "job": "clerk"} if row["job"] == "farmer" else row for row in rows(1, 150)]
    first = [{**row, "place.code": "anna"} if row["place.code"] == "hanna" else row for row in first]
    own_policy = asked(first)
    scheme = fitted(own_policy, tmp_path / "fit")
    document = json.loads(scheme.read_text())
    assert "level" not in document["columns"][0]
    assert document["achieved"]["classes"] == len(document["classes"]) > 5
    assert "planted" not in scheme.read_text()

    # On its own table it is what Mondrian makes.
    own = privrisk(str(own_policy), "--run-id=r", root=tmp_path / "own")
    same = privrisk(str(own_policy), f"--scheme={scheme}", "--run-id=r", root=tmp_path / "same")
    assert (own.code, same.code) == (0, 0), same.err
    assert nodes_of(same, first) == nodes_of(own, first)
    for key in ("suppressed", "classes", "metric"):
        assert same.summary["recoding"][key] == own.summary["recoding"][key] == document["achieved"][key]

    second = rows(2, 170)
    ran = privrisk(str(asked(second, "second")), f"--scheme={scheme}", root=tmp_path / "2")
    assert ran.code == 0, ran.err
    recoding = ran.summary["recoding"]
    assert recoding["scheme"]["approved_by"] == "An Officer"
    assert recoding["fitted"]["classes"] == len(document["classes"])
    assert recoding["suppressed_share"]["here"] == recoding["suppressed"] / 170
    assert "An Officer" not in json.dumps(ran.manifest)
    found = nodes_of(ran, second)
    known = {
        tuple((one["nodes"][node] or ["*"])[-1] for (_, node), one in zip(of, document["columns"], strict=True))
        for of in document["classes"]
    }
    released = {key for key, n in found.items() if key != ("*",) * 3}
    assert 3 < len(released) == recoding["classes"]
    assert released <= known, "no class is new"
    assert all(found[key] >= 3 for key in released)
    assert recoding["suppressed"] == found["*", "*", "*"] > 0, "farmers"
    assert collections.Counter(tuple(row[q] for q in QUASI) for row in pq.read_table(ran.data).to_pylist()) == found

    if persons:
        return
    # What it cannot keep is refused by name.
    strict = fitted(asked(first, "strict", suppression_limit=0.02), tmp_path / "strict")
    refused = privrisk(str(asked(second, "other", suppression_limit=0.02)), f"--scheme={strict}", root=tmp_path / "no")
    assert refused.code == 1, refused.err
    said = " ".join(refused.err.split())
    assert "does not keep its guarantee on this table: " in said
    assert "rows come to no class of it" in said
    other = privrisk(str(asked(second, "best", method="best")), f"--scheme={scheme}", root=tmp_path / "no")
    assert other.code == 2
    assert "guarantee.method: must be 'mondrian', as the scheme has classes" in " ".join(other.err.split())


def test_a_file_that_is_no_tree_is_refused_by_what_is_wrong(tmp_path: Path) -> None:
    column = {"name": "sex", "height": 1, "hierarchy": "0" * 64, "nulls": "suppress", "nodes": [["f"], ["m"]]}
    good: dict[str, Any] = {
        "version": 1,
        "name": "x",
        "date": "2026-01-01",
        "policy_digest": "0" * 64,
        "guarantee": {},
        "method": "mondrian",
        "achieved": {"rows": 6, "suppressed": 0, "classes": 2, "metric": {"name": "loss", "value": 0.5}},
        "columns": [column],
        "cuts": [{"region": 0, "column": 0, "depth": 1, "parts": [[0, 1], [1, 2]]}],
        "groups": [[1, 0], [2, 1]],
        "classes": [[[1, 0]], [[1, 1]]],
    }
    place = tmp_path / "scheme.json"

    def told(**changes: Any) -> str:
        place.write_text(json.dumps(good | changes))
        try:
            read_scheme(str(place), key="guarantee.scheme")
        except ConfigError as error:
            return str(error)
        return ""

    assert told() == ""
    (cut,) = good["cuts"]
    for changes in (
        {"cuts": [{**cut, "parts": [[0, 1], [1, 0]]}]},  # back to the whole table
        {"cuts": [cut, cut]},
        {"cuts": [cut, {**cut, "region": 7, "parts": [[0, 8]]}]},  # nobody comes to 7
        {"cuts": [{**cut, "parts": [[0, 1], [1, 10**15]]}]},
    ):
        assert "cuts must be a tree" in told(**changes)
    for changes in (
        {"cuts": [{**cut, "depth": 2}]},
        {"cuts": [{**cut, "column": 1}]},
        {"cuts": [{**cut, "parts": [[0, 1], [2, 2]]}]},
        {"groups": [[0, 0]]},  # it is cut
        {"groups": [[1, 2]]},
        {"classes": [[[1, 0]], [[1, 2]]]},
        {"classes": [[[1, 0]], []]},
        {"classes": [[[1, 0]], [[1, 0]]]},
    ):
        assert "must refer to columns, nodes, regions and classes" in told(**changes)
    assert "is no scheme of `privrisk fit`: cuts.0.depth: " in told(cuts=[{**cut, "depth": "x"}])


@pytest.mark.usefixtures("privrisk")
@pytest.mark.parametrize(
    "n", [200, pytest.param(2, marks=pytest.mark.thorough("tests/stages/deciding/test_mondrian.py"))]
)
def test_mondrian_in_tasks_is_mondrian(
    policy: Make, privrisk: Privrisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n: int
) -> None:
    """However few rows of a region are brought together; and a table too small is suppressed, or refused.

    They are there where it is asked, and where the driver may hold fewer records.
    """
    path = policy(rows(7, n), method="mondrian", suppression_limit=int(n == 2), ordered=["place.code"])
    apart = "--set=counting.plan=shuffle" if n == 2 else "--set=counting.sorted_vectors=50"
    whole = privrisk(str(path), "--run-id=r", root=tmp_path / "whole")
    assert whole.code == 0, whole.err
    usual = {"ordered": None, "rows": None}
    monkeypatch.setattr(mondrian.collect_partition, "__kwdefaults__", {**usual, "rows_per_task": 25})
    asked: list[int] = []
    monkeypatch.setattr(
        recode, "collect_partition", lambda *of, **more: asked.append(1) or collect_partition(*of, **more)
    )
    spread = privrisk(str(path), "--run-id=r", apart, root=tmp_path / "spread")
    assert spread.code == 0, spread.err
    digests = [[file["sha256"] for file in one.manifest["data"]["files"]] for one in (whole, spread)]
    assert digests[0] == digests[1]
    assert spread.summary["recoding"] == whole.summary["recoding"]
    assert asked == [1], "the table stayed in tasks"
    assert spread.summary["recoding"]["suppressed"] == (2 if n == 2 else 0)
    if n == 2:
        for code, said, changes in (
            (2, "guarantee.k: the table has 2 rows, fewer than 3", "guarantee.suppression_limit=0"),
            (1, "nothing would be released", "guarantee.suppressed=drop"),
        ):
            refused = privrisk(str(path), apart, f"--set={changes}", root=tmp_path / "none")
            assert refused.code == code
            assert said in " ".join(refused.err.split())


@pytest.mark.usefixtures("privrisk")
def test_what_is_not_fitted_is_refused_by_name(policy: Make, tmp_path: Path) -> None:
    given = rows(1, 30)
    for changes, said in (
        ({"method": "hilbert"}, "guarantee.method: 'hilbert' makes classes that fit no other table; choose 'mondrian'"),
        ({"method": "mondrian", "ordered": ["sex"]}, "guarantee.ordered: cuts at medians, which are those of one"),
        ({"scheme": "x.json"}, "guarantee.scheme: is what `privrisk fit` writes"),
    ):
        code, out = command("fit", str(policy(given, **changes)), f"--output={tmp_path / 'fit'}")
        assert code == 2
        assert said in " ".join(out.split())
    code, out = command("fit", str(policy(given, k=31)), f"--output={tmp_path / 'fit'}")
    assert code == 2
    assert "guarantee.k: the table has 30 rows, fewer than 31" in " ".join(out.split())
    assert not (tmp_path / "fit" / "scheme.json").exists()
    risk = yaml.safe_load(policy(given).read_text())
    risk["guarantee"], risk["decision"] = {"kind": "risk"}, {"utility_at_least": 1}
    (tmp_path / "risk.yaml").write_text(yaml.safe_dump(risk, sort_keys=False))
    code, out = command("fit", str(tmp_path / "risk.yaml"), f"--output={tmp_path / 'fit'}")
    assert code == 2
    assert "guarantee.kind: must be 'k-anonymity'" in out


def test_python_fits_and_approves_what_the_commands_do(spark: Any, policy: Make, tmp_path: Path) -> None:
    given = rows(3, 120)
    asked = pr.load(policy(given))
    frame = spark.read.parquet(str(tmp_path / "policy.parquet"))
    with pr.fit(frame, asked, output=tmp_path / "own") as found:
        assert found.rows == 120
        assert found.approved_by is None
        assert found.optimal
        approved = found.approve("An Officer")
        assert approved.approved_by == "An Officer"
        assert approved.digest == found.digest
        assert "sex" in found._repr_html_()
        assert str(found.levels) in repr(found)
    with pr.fit(frame, asked) as temporary:
        assert temporary.levels == found.levels
        kept = temporary.place
    assert not kept.exists()


def test_fit_of_a_recoded_column_counts_its_released_values(tmp_path: Path) -> None:
    """Pay of 1001, 1002 and 1003 is released as 1000: one value, so that p-sensitivity needs coarser ages."""
    import pyarrow.csv as pc

    ages = [31, 31, 31, 32, 32, 32, 33, 33, 33, 34, 34, 34]
    pays = [1001, 1002, 1003, 2001, 2002, 2003, 1001, 2002, 1003, 1001, 2002, 2003]
    pc.write_csv(pa.table({"age": ages, "pay": pays}), tmp_path / "table.csv")
    policy = pr.Policy(
        table={"path": str(tmp_path / "table.csv"), "format": "csv", "options": {"header": True}},
        columns={
            "age": {"role": "quasi-identifier", "hierarchy": {"intervals": {"widths": [2, 10], "domain": [30, 39]}}},
            "pay": {"role": "sensitive", "release": {"round": 1000}, "read": {"cast": "integer"}},
        },
        guarantee={"kind": "k-anonymity", "k": 3, "also": [{"p_sensitivity": {"column": "pay", "p": 2}}]},
    )
    with pr.fit(None, policy) as fitted:
        assert "{'age': 2}" in repr(fitted)
