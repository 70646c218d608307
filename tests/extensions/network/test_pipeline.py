"""Sharing end to end: decided as loops over the rows decide, the same however the input is dealt, refusals by name."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import math
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import naive_sharing_files as naive
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from canaries import seen_plans
from product import Privrisk, production_batches
from scipy.linalg import expm
from typer.testing import CliRunner

import privrisk_spark as pr
from benchmarks.s3_server import BUCKET
from privrisk_spark.cli.app import app
from privrisk_spark.extensions.network.planning import trust_series
from privrisk_spark.extensions.network.policy import PropagatedTrust
from privrisk_spark.hierarchies.builders import build
from privrisk_spark.policy.reading import load
from privrisk_spark.storage.locations import Location
from privrisk_spark.storage.objects import ObjectStore
from privrisk_spark.storage.ownership import MARKER

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = dict[str, Any]
Edge = tuple[Any, Any]

TREES: dict[str, Any] = {
    "age": {"intervals": {"widths": [5, 20], "domain": [20, 59]}},
    "sex.1": {"flat": {"values": ["F", "M"]}},
    "city": {"tree": {"*": {"south": ["Ulm"], "north": {"coast": ["Kiel"], "inland": ["Bonn", "Köln"]}}}},
}
"""A dot in a name, and leaves at different depths."""


def people(n: int = 40) -> list[Row]:
    """Profiles, some alike, some with missing values, one with none at all."""
    cities = ["Ulm", "Kiel", "Bonn", "Köln", None]
    rows = [
        {
            "who": f"p{i}",
            "age": None if i % 13 == 3 else str(20 + (i * i + i // 7) % 40),
            "sex.1": "FM"[i % 2],
            "city": cities[(i * 3 + i // 11) % 5],
            "phi": 1.0 + i % 3,
        }
        for i in range(n)
    ]
    for row in rows[7:8]:
        row.update({"age": None, "sex.1": None, "city": None})
    return rows


def friendships(n: int = 40, m: int = 130) -> list[Edge]:
    """Edges of a keyed draw, of which some are there twice, and one user has none."""
    draw = random.Random(5)
    edges: list[Edge] = [(f"p{draw.randrange(n - 1)}", f"p{int((n - 1) * draw.random() ** 2)}") for _ in range(m)]
    edges = [(u, v) for u, v in edges if u != v]
    return [*edges, edges[0], (edges[1][1], edges[1][0]), ("p4", "p4")]


@dataclass(frozen=True)
class Ended:
    """How a run of ``privrisk share`` ended."""

    code: int
    out: str
    err: str
    directory: Path

    @property
    def document(self) -> dict[str, Any]:
        return dict(json.loads((self.directory / "sharing.json").read_text()))

    @property
    def summary(self) -> dict[str, Any]:
        return dict(json.loads((self.directory / "summary.json").read_text()))

    def measure(self, name: str, **parameters: object) -> Any:
        """Value of a figure, by exactly these parameters."""
        (found,) = [m for m in self.document["measures"] if m["name"] == name and m["parameters"] == parameters]
        return found["value"]

    @property
    def decisions(self) -> pd.DataFrame:
        return pd.read_parquet(self.directory / "decisions").set_index(["u", "v"]).sort_index()

    @property
    def bytes(self) -> dict[str, str]:
        files = sorted((self.directory / "decisions").iterdir())
        return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


Make = Callable[..., Path]
Share = Callable[..., Ended]


def written(
    root: Path,
    rows: Sequence[Row],
    edges: Sequence[Edge],
    name: str = "net",
    columns: dict[str, Any] | None = None,
    parts: int = 1,
    of_edges: dict[str, Any] | None = None,
    **sharing: Any,
) -> Path:
    """A policy file over these profiles and edges, with what more it says of the edges and of sharing."""
    kinds = {"who": pa.string(), **dict.fromkeys(TREES, pa.string()), "phi": pa.float64()}
    schema = pa.schema([(key, kind) for key, kind in kinds.items() if not rows or key in rows[0]])
    for where, of, form in (
        ("profiles", list(rows), schema),
        ("edges", [{"u": u, "v": v} for u, v in edges], pa.schema([("u", pa.string()), ("v", pa.string())])),
    ):
        place = root / f"{name}-{where}"
        place.mkdir(exist_ok=True)
        for part in range(parts):
            pq.write_table(pa.Table.from_pylist(of[part::parts], schema=form), place / f"{part}.parquet")
    document = {
        "version": 1,
        "run": {"name": name},
        "table": {"path": str(root / f"{name}-profiles"), "record_id": "who"},
        "columns": {
            "who": {"role": "identifier"},
            **{q: {"role": "quasi-identifier", "hierarchy": tree} for q, tree in TREES.items()},
            "phi": {"role": "insensitive"},
            **(columns or {}),
        },
        "sharing": {"edges": {"path": str(root / f"{name}-edges"), **(of_edges or {})}, **sharing},
    }
    path = root / f"{name}.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    return path


def shared(path: Path, place: Path, *arguments: str) -> Ended:
    """``privrisk share`` in the session there is."""
    result = CliRunner().invoke(app, ["share", str(path), f"--output={place}", *arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Ended(result.exit_code, result.stdout, result.stderr, place)


@pytest.fixture
def policy(tmp_path: Path) -> Make:
    """``policy(rows, edges, **sharing)``: a policy file over these profiles and edges."""
    return partial(written, tmp_path)


@pytest.fixture
def share(privrisk: Privrisk, tmp_path: Path) -> Share:
    """``share(policy, *arguments)`` in the session of ``privrisk``."""
    del privrisk

    def run(path: Path, *arguments: str, output: str = "shared") -> Ended:
        return shared(path, tmp_path / output, *arguments)

    return run


@dataclass(frozen=True)
class Decided:
    """A network that is decided once, which tests share and none changes."""

    path: Path
    rows: list[Row]
    edges: list[Edge]
    asked: dict[str, Any]
    ended: Ended
    plans: list[str]


Decide = Callable[..., Decided]


@pytest.fixture(scope="module")
def decide(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Decide:
    """``decide(rows, edges, **sharing)``, with the plans of every frame there is on the way."""

    def run(rows: list[Row], edges: list[Edge], **asked: Any) -> Decided:
        root = tmp_path_factory.mktemp("decided")
        path = written(root, rows, edges, **asked)
        # Once for each network, so that its charts are drawn.
        with production_batches(spark), pytest.MonkeyPatch.context() as patch:
            plans = seen_plans(patch)
            ended = shared(path, root / "shared")
        assert ended.code == 0, ended.err
        return Decided(path, rows, edges, asked, ended, plans)

    return run


def canary(user: str) -> str:
    """An id that is found wherever it is told."""
    return f"zQx{user}"


@pytest.fixture(scope="module")
def by_common_friends(decide: Decide) -> Decided:
    """People and friendships, whose ids are canaries, decided by the modified aggregate model."""
    rows = [{**row, "who": canary(row["who"])} for row in people()]
    return decide(rows, [(canary(u), canary(v)) for u, v in friendships()], model={"lambda": 3.0})


@pytest.fixture(scope="module")
def by_trade_off(decide: Decide) -> Decided:
    """People and friendships, decided by what each pair is worth."""
    return decide(people(), friendships(), model={"kind": "trade-off", "lambda": 0.6}, connected_at=2)


def expected(
    path: Path, rows: Sequence[Row], edges: Sequence[Edge], *, reject: bool = True, phi: dict[str, float] | None = None,
    psi: dict[str, float] | None = None, own: bool = False, directed: bool = False, **asked: Any,
) -> dict[tuple[str, str], tuple[int, ...]]:  # fmt: skip
    """Levels of each pair of friends, by loops; a hidden value is at the height of its hierarchy."""
    trees = [build(column.hierarchy, name) for name, column in load([path], releasing=False).quasi_identifiers.items()]
    of = {row["who"]: [row[name] for name in TREES] for row in rows}
    friends = naive.friends_of(of, edges, directed=directed)
    weights = [(phi or {}).get(name, 1.0) for name in TREES]
    worth = [(psi or {}).get(name, 1.0) for name in TREES]
    personal = {row["who"]: row["phi"] for row in rows}
    found = {}
    for u in of:
        mine = [*weights]
        if own:
            mine[0] *= personal[u]
        for v in friends[u]:
            common = sorted(f for f in friends[u] if v in friends[f])
            depths = [len(naive.path(tree, value)) - 1 for tree, value in zip(trees, of[u], strict=True)]
            counted = [of[f] for f in common] or ([] if reject else [of[u]])
            levels = naive.best_shown(trees, of[u], counted, phi=mine, psi=worth, **asked)
            if not common and reject:
                levels = tuple(depths)
            found[u, v] = tuple(
                tree.height if level == depth else level
                for tree, level, depth in zip(trees, levels, depths, strict=True)
            )
    return found


def levels_of(ended: Ended) -> dict[tuple[str, str], tuple[int, ...]]:
    table = ended.decisions[[f"level_{name}" for name in TREES]]
    return {key: tuple(row) for key, row in zip(table.index, table.to_numpy().tolist(), strict=True)}


def check_pairs(decided: Decided, wanted: dict[tuple[str, str], tuple[int, ...]]) -> None:
    """The decisions are these levels, and all else that is said of them follows from the network."""
    ended, found = decided.ended, levels_of(decided.ended)
    assert set(found) == set(wanted)
    assert found == wanted
    assert len(set(found.values())) > 2, "not all or nothing"
    table = ended.decisions
    friends = naive.friends_of((row["who"] for row in decided.rows), decided.edges)
    common = [len(friends[u] & friends[v]) for u, v in table.index]
    assert table["common_friends"].tolist() == common
    assert (table["relation"] == "friend").all()
    assert (table["gap"] == 0).all()
    assert (table["status"] == "proved").all()
    assert ended.measure("loss", relation="all") == pytest.approx(table["loss"].sum())
    assert ended.measure("utility", relation="all") == pytest.approx(table["utility"].sum())
    assert ended.summary["outcomes"] == table["reason"].value_counts().to_dict()


def test_share_ids_as_texts_of_numbers_name_numeric_users(policy: Make, share: Share, tmp_path: Path) -> None:
    rows = [{**row, "who": str(i)} for i, row in enumerate(people()[:12])]
    edges = [(i, (i + j) % 12) for i in range(12) for j in (1, 2)]
    found = []
    for form in ("{}", "{}.0"):
        path = policy(rows, [(form.format(u), form.format(v)) for u, v in edges], f"net{len(found)}")
        profiles = tmp_path / f"net{len(found)}-profiles" / "0.parquet"
        numbered = pq.read_table(profiles)
        numbered = numbered.set_column(0, "who", numbered.column("who").cast(pa.int64()))
        pq.write_table(numbered, profiles)
        ended = share(path, output=f"shared{len(found)}")
        assert ended.code == 0, ended.err
        found.append(levels_of(ended))
    assert found[0] == found[1]


def test_pairs_are_decided_as_loops_over_rows_decide_them(by_common_friends: Decided) -> None:
    of = by_common_friends
    check_pairs(of, expected(of.path, of.rows, of.edges, trade_off=3.0))
    assert len(set(levels_of(of.ended).values())) > 4
    table = of.ended.decisions
    alone = table[table["common_friends"] == 0]
    assert set(alone["reason"]) - {"nothing to show"} == {"no common friend"}


def test_everything_a_policy_says_of_the_model_is_heard(decide: Decide) -> None:
    """Weights, columns of personal weights, κ, friends of whom one is enough, and who has no common friend."""
    model = {"lambda": 9.0, "kappa": 1.25, "no_common_friend": "owner", "consistency": "any"}
    personal = {"kind": "columns", "columns": {"age": "phi"}, "weights": {"city": 2.5}}
    worth = {"kind": "detail", "weights": {"sex.1": 3.0, "city": 0.5}}
    rows, edges = people(), friendships()
    of = decide(rows, edges, columns={"phi": {"role": "weight"}}, model=model, sensitivity=personal, utility=worth)
    asked: dict[str, Any] = {
        "trade_off": 9.0, "kappa": 1.25, "reject": False, "phi": {"city": 2.5}, "psi": worth["weights"], "own": True,
        "every": False,
    }  # fmt: skip
    wanted = expected(of.path, rows, edges, **asked)
    check_pairs(of, wanted)
    for other in ({"every": True}, {"kappa": 1}, {"reject": True}, {"own": False}, {"phi": {}}, {"psi": {}}):
        assert wanted != expected(of.path, rows, edges, **{**asked, **other}), other


@pytest.mark.parametrize(
    ("no_common_friend", "consistency", "trade_off"),
    [("reject", "all", 0.8), ("owner", "all", 3.0), ("as-published", "all", 0.8), ("owner", "any", 0.8)],
)
def test_written_decisions_of_modified_aggregate_reach_the_optimum_of_the_printed_formula(
    policy: Make, share: Share, no_common_friend: str, consistency: str, trade_off: float
) -> None:
    """λ, κ and the rules are read from the printed sentence; f of every pair is found by looking at all levels."""
    rows, edges = people(), friendships()
    model = {"lambda": trade_off, "consistency": consistency, "no_common_friend": no_common_friend}
    path = policy(rows, edges, model=model)
    ended = share(path)
    assert ended.code == 0, ended.err
    printed = ended.document["question"]
    given = re.match(r"the greatest (\S+) · ξ/Φ \+ u\^(\S+) of each pair, where ξ common friends", printed)
    assert given is not None
    every = "fit what is shown in all attributes" in printed
    assert every == (consistency == "all")
    rule = next(
        rule
        for rule, words in {
            "reject": "a pair without common friends shows nothing",
            "owner": "in a pair without common friends ξ is 1",
            "as-published": "in a pair without common friends ξ is 0",
        }.items()
        if words in printed
    )
    assert "Every decision is proved to be the best one" in ended.document["paragraph"]
    columns = load([path], releasing=False).quasi_identifiers
    trees = [build(column.hierarchy, name) for name, column in columns.items()]
    of = {row["who"]: [row[name] for name in TREES] for row in rows}
    friends = naive.friends_of(of, edges)
    written, unlike = levels_of(ended), 0
    for (u, v), row in ended.decisions.iterrows():
        common = friends[u] & friends[v]
        theirs = [of[f] for f in common] or ([of[u]] if rule == "owner" else [])
        found = naive.formula(
            trees, of[u], theirs, phi=[1, 1, 1], psi=[1, 1, 1], trade_off=float(given[1]), kappa=float(given[2]),
            every=every,
        )  # fmt: skip
        depths = [len(naive.path(tree, value)) - 1 for tree, value in zip(trees, of[u], strict=True)]
        levels = tuple(min(level, depth) for level, depth in zip(written[u, v], depths, strict=True))
        if not found or (rule == "reject" and not common):
            assert list(levels) == depths
            assert math.isnan(row["objective"])
            continue
        f, worth, cost, xi = found[levels]
        assert f == pytest.approx(max(one[0] for one in found.values()), rel=1e-9)
        assert row["objective"] == pytest.approx(f, rel=1e-9)
        assert (row["gap"], row["status"]) == (0, "proved")
        assert (row["trust"], row["utility"]) == (xi, pytest.approx(worth))
        assert row["loss"] == pytest.approx(cost / max(xi, 1))
        unlike += bool(common) and found[(0, 0, 0)][3] == 0
    assert unlike > 10, "pairs with common friends of whom none has the same profile"


def test_decisions_hold_shown_values_and_tell_hidden_from_missing(by_common_friends: Decided) -> None:
    of = by_common_friends
    table = pq.read_table(of.ended.directory / "decisions").to_pandas()
    assert list(zip(table["u"], table["v"], strict=True)) == sorted(zip(table["u"], table["v"], strict=True))
    columns = load([of.path], releasing=False).quasi_identifiers
    trees = {name: build(column.hierarchy, name) for name, column in columns.items()}
    profiles = {row["who"]: row for row in of.rows}
    kinds = set()
    for row in table.to_dict("records"):
        mine = profiles[row["u"]]
        assert row["missing"] == ", ".join(name for name in TREES if mine[name] is None)
        for name, tree in trees.items():
            nodes, level = naive.path(tree, mine[name]), row[f"level_{name}"]
            if mine[name] is None:
                kinds.add("missing")
                assert row[f"shown_{name}"] is None
            else:
                kinds.add("whole" if level == 0 else "hidden" if level == tree.height else "part")
                assert row[f"shown_{name}"] == tree.labels[nodes[min(level, len(nodes) - 1)]]
    assert kinds == {"missing", "whole", "hidden", "part"}
    report = (of.ended.directory / "report.html").read_text()
    first = table.iloc[0]
    assert all(f'<td class="text">{first[of]}</td>' in report for of in ("u", "v", "shown_age", "reason"))


def test_decisions_of_several_tasks_are_one_file_in_the_order_of_the_ids(policy: Make, share: Share) -> None:
    """Tasks decide slices of about 8,192 pairs, in the order of fingerprints."""
    rows, edges = people(200), friendships(200, 400)
    asked = {"pairs": {"kind": "sample", "pairs": 14_000}, "model": {"kind": "trade-off", "lambda": 0.9}}
    ended = share(policy(rows, edges, **asked))
    assert ended.code == 0, ended.err
    (file,) = (ended.directory / "decisions").iterdir()
    table = pq.read_table(file)
    assert len(table) == ended.summary["pairs"] > 8192
    assert table.equals(table.sort_by([("u", "ascending"), ("v", "ascending")]))


def test_figures_of_the_network_and_of_what_is_shown(by_common_friends: Decided) -> None:
    rows, edges, ended = by_common_friends.rows, by_common_friends.edges, by_common_friends.ended
    friends = naive.friends_of((row["who"] for row in rows), edges)
    n_edges = sum(map(len, friends.values())) // 2
    assert ended.measure("network_users") == 40
    assert ended.measure("network_edges") == n_edges
    assert ended.measure("network_loops") == 1
    assert ended.measure("network_duplicates") == len(edges) - 1 - n_edges
    assert ended.measure("network_most_friends") == max(map(len, friends.values()))
    assert ended.measure("network_alone") == sum(not of for of in friends.values()) > 0
    table = ended.decisions
    shown = (table["level_city"] < 3).sum()
    assert ended.measure("pairs_shown", relation="friend", attribute="city") == shown
    assert table.loc[canary("p7")]["reason"].unique().tolist() == ["nothing to show"]
    worst = table.groupby("u")["loss"].sum().sort_values(ascending=False)
    listed = ended.document["exposed"]
    assert [one["loss"] for one in listed] == pytest.approx(worst.head(10).tolist())
    assert all(worst[one["user"]] == pytest.approx(one["loss"]) for one in listed)
    report = (ended.directory / "report.html").read_text()
    assert listed[0]["user"] in report
    assert "no common friend" in report
    points = [m for m in ended.document["measures"] if m["name"] == "curve_mean_loss"]
    assert len(points) == 8
    assert {m["parameters"]["pairs"] for m in points} == {len(table)}
    drawn = report.split('id="attributes"')[1].split("<table>")[0]
    assert re.findall(r">([\d.]+)</text>", drawn)[:3] == ["1", "2", "3"], "attributes have whole numbers"


def test_decisions_are_the_same_bytes_however_the_input_is_dealt(
    policy: Make, share: Share, by_common_friends: Decided
) -> None:
    mixed = list(by_common_friends.rows)
    others = [(v, u) if i % 3 else (u, v) for i, (u, v) in enumerate(by_common_friends.edges)]
    random.Random(11).shuffle(mixed)
    random.Random(11).shuffle(others)
    again = share(policy(mixed, others, parts=11, **by_common_friends.asked))
    assert again.bytes == by_common_friends.ended.bytes
    assert again.document["measures"] == by_common_friends.ended.document["measures"]


def test_whom_to_decide_for(policy: Make, share: Share, tmp_path: Path) -> None:
    rows, edges = people(), friendships()
    friends = naive.friends_of((row["who"] for row in rows), edges)
    near = {(u, w) for u in friends for f in friends[u] for w in friends[f] if w != u and w not in friends[u]}
    walks = sum(len(of) ** 2 for of in friends.values())
    ended = share(policy(rows, edges, pairs={"kind": "friends-of-friends", "most_walks": walks}))
    assert ended.code == 0, ended.err
    assert set(ended.decisions.index) == near
    assert (ended.decisions["relation"] == "friend of a friend").all()
    given = [("p1", "p2"), ("p2", "p1"), ("p1", "p2"), ("p3", "p3"), ("p5", "nobody"), (None, "p1")]
    table = pa.table({"from": [u for u, _ in given], "to": [v for _, v in given]})
    pq.write_table(table, tmp_path / "pairs.parquet")
    asked = {"kind": "table", "path": str(tmp_path / "pairs.parquet"), "u": "from", "v": "to", "unknown": "ignore"}
    ended = share(policy(rows, edges, pairs=asked), output="given")
    assert ended.code == 0, ended.err
    assert set(ended.decisions.index) == {("p1", "p2"), ("p2", "p1")}
    asked["unknown"] = "refuse"
    ended = share(policy(rows, edges, pairs=asked), output="strict")
    assert ended.code == 2
    assert "sharing.pairs: 1 of 6 rows name somebody whom table does not have, and 1 lack an end" in " ".join(
        ended.err.split()
    )


def test_the_published_layers_fall_short_of_the_exact_answer_by_the_gap(policy: Make, share: Share) -> None:
    """f of both answers, by loops; with narrow layers most pairs are decided alike, with wide ones not."""
    rows, edges = people(), friendships()
    friends = naive.friends_of((row["who"] for row in rows), edges)
    of = {row["who"]: [row[name] for name in TREES] for row in rows}
    path = policy(rows, edges, model={"lambda": 3.0, "no_common_friend": "as-published"})
    columns = load([path], releasing=False).quasi_identifiers
    trees = [build(column.hierarchy, name) for name, column in columns.items()]

    def f(u: str, v: str, levels: Sequence[int]) -> float:
        above = [naive.path(tree, value) for tree, value in zip(trees, of[u], strict=True)]
        kept = [nodes[min(level, len(nodes) - 1)] for nodes, level in zip(above, levels, strict=True)]
        shown = sum(len(nodes) - 1 - min(level, len(nodes) - 1) for nodes, level in zip(above, levels, strict=True))
        consistent = sum(
            all(
                node in naive.path(tree, value)
                for node, tree, value, nodes in zip(kept, trees, of[friend], above, strict=True)
                if len(nodes) > 1
            )
            for friend in friends[u] & friends[v]
        )
        return (3.0 * consistent / shown if shown else 0.0) + shown

    exact = share(path)
    # By the formula as it stands, who has no common friend sees everything.
    alone = exact.decisions[exact.decisions["common_friends"] == 0]
    assert set(alone["reason"]) - {"nothing to show"} == {"shown whole"}
    best = {key: f(*key, levels) for key, levels in levels_of(exact).items()}
    short = {}
    for epsilon, reading in ((0.01, "layer"), (3.0, "equality")):
        model = {
            "lambda": 3.0, "no_common_friend": "as-published",
            "as_published": {"epsilon": epsilon, "reading": reading},
        }  # fmt: skip
        ended = share(policy(rows, edges, model=model), output=f"layers-{epsilon}")
        assert ended.code == 0, ended.err
        table = ended.decisions
        gaps = {key: best[key] - f(*key, levels) for key, levels in levels_of(ended).items()}
        for key, gap in gaps.items():
            assert table.loc[key, "gap"] == pytest.approx(max(gap, 0), abs=1e-9)
            assert table.loc[key, "status"] == ("heuristic" if gap > 1e-9 else "proved")
        short[epsilon] = sum(gap > 1e-9 for gap in gaps.values())
        assert ended.measure("gap") == pytest.approx(max(gaps.values()), abs=1e-9)
        assert ended.measure("heuristic_pairs", relation="all") == short[epsilon]
        assert "as it was published" in " ".join(ended.document["notes"])
    assert short[0.01] < short[3.0]
    refused = share(policy(rows, edges, model={"zero_phi": "floor", "as_published": {}}), output="floor")
    assert refused.code == 2
    assert "sharing.model.as_published" in refused.err


def test_a_network_without_edges_has_no_decisions(policy: Make, share: Share) -> None:
    ended = share(policy(people(3), []))
    assert ended.code == 0, ended.err
    assert not len(ended.decisions)
    assert list(ended.decisions.columns)[:4] == ["relation", "common_friends", "shown_age", "level_age"]
    assert ended.measure("network_alone") == 3


def test_bad_input_is_refused_by_name(policy: Make, share: Share) -> None:
    rows, edges = people(), friendships()
    strange = [*rows[:-1], {**rows[-1], "city": "Atlantis"}]
    for of, with_edges, sharing, columns, said in (
        (
            rows, [*edges, ("p1", "zorro"), ("p1", None), (None, None)], {}, {},
            f"sharing.edges: 1 of {len(edges) + 3} rows name somebody whom table does not have, and 2 lack an end",
        ),
        ([*rows, rows[0]], edges, {}, {}, "table.record_id: must hold that every record has an id (null: 0)"),
        (
            [*rows, {**rows[0], "who": None}], edges, {}, {},
            "table.record_id: must hold that every record has an id (null: 1)",
        ),
        (strange, edges, {}, {}, "city"),
        ([], edges, {}, {}, "table: it has no rows"),
        (rows, edges, {"model": {"lambda": -1}}, {}, "sharing.model.lambda: must be at least 0"),
        (rows, edges, {"model": {"kappa": 0.5}}, {}, "sharing.model.kappa: must be 0, or at least 1"),
        (rows, edges, {"model": {"kind": "diffusion", "time": -1, "risk_at_most": 1}}, {}, "sharing.model.time"),
        (
            rows, edges, {"model": {"kind": "diffusion", "risk_at_most": 1, "time": 1, "steps": 2}}, {},
            "sharing.model.steps: are taken instead of a time",
        ),
        (
            rows, edges, {"model": {"kind": "diffusion", "risk_at_most": 1, "leak": "laplacian", "steps": 2}}, {},
            "sharing.model.steps: are steps of the leak 'stochastic'",
        ),
        (
            rows, edges,
            {"trust": {"kind": "propagated", "path": "t", "restart": 1, "time": 1}, "model": {"kind": "trade-off"}}, {},
            "sharing.trust.time: is used instead of restart",
        ),
        (
            rows, edges, {"model": {"kind": "diffusion", "risk_at_most": 1}}, {},
            "sharing.trust: must be of the kind 'table'",
        ),
        (rows, edges, {"trust": {"kind": "common-friends"}}, {}, "sharing.trust: is not used by the model"),
        (
            rows, edges,
            {
                "model": {"kind": "trade-off"},
                "exposure": {"kind": "table", "points": [{"trust": 0, "value": 1}, {"trust": 1, "value": 2}]},
            },
            {}, "sharing.exposure.points.1.value: must be at most 1",
        ),
        (
            rows, edges, {"model": {"kind": "trade-off"}, "exposure": {"kind": "step", "below": 1, "above": 2}}, {},
            "sharing.exposure.above: must be at most below = 1",
        ),
        (
            rows, edges, {"sensitivity": {"weights": {"town": 1}}}, {},
            "sharing.sensitivity.weights.town: 'town' is no quasi-identifier",
        ),
        (
            rows, edges, {"sensitivity": {"weights": dict.fromkeys(TREES, 0)}}, {},
            "sharing.sensitivity.weights: must leave one",
        ),
        (
            rows, edges, {"sensitivity": {"kind": "columns", "columns": {"age": "phi"}}}, {},
            "sharing.sensitivity.columns.age: 'phi' must be mentioned under columns with the role 'weight'",
        ),
        ([{**row, "phi": -1.0} for row in rows], edges, {"sensitivity": {"kind": "columns", "columns": {"age": "phi"}}},
         {"phi": {"role": "weight"}}, "phi"),
        (rows, edges, {"pairs": "everybody"}, {}, "sharing.pairs"),
    ):  # fmt: skip
        ended = share(policy(of, with_edges, columns=columns, **sharing))
        assert ended.code == 2, (said, ended.out, ended.err)
        assert said in " ".join(ended.err.split()), (said, ended.err)
        assert not (ended.directory / "sharing.json").exists()
        assert "Atlantis" not in ended.out + ended.err
        assert "zorro" not in ended.out + ended.err
    ended = share(policy(rows, edges, of_edges={"u": "start"}))
    assert ended.code == 2
    assert "sharing.edges.u: the table has no column 'start'; it has u, v" in " ".join(ended.err.split())
    path = policy(rows, edges)
    without = yaml.safe_load(path.read_text())
    del without["sharing"]
    path.write_text(yaml.safe_dump(without))
    ended = share(path)
    assert ended.code == 2
    assert "sharing: is required to share" in ended.err


def test_no_value_of_a_profile_leaves_the_private_files(by_common_friends: Decided) -> None:
    ended, plans = by_common_friends.ended, by_common_friends.plans
    assert plans
    assert "zQx" not in ended.out + ended.err + "".join(plans)
    assert "zQx" not in (ended.directory / "status.json").read_text()
    assert "zQx" not in (ended.directory / "measures.json").read_text()
    assert not [path for path in ended.directory.iterdir() if path.name.startswith(".") and path.name != MARKER]
    assert ended.directory.stat().st_mode & 0o777 == 0o700
    assert all(file.stat().st_mode & 0o777 == 0o600 for file in (ended.directory / "decisions").iterdir())


# ------------------------------------------------------------------------------------------------------- access control

STATED = [("p0", "p1", 2.0), ("p1", "p0", -1.0), ("p2", "p5", 0.5), ("p3", "p8", 4.0)]


def stated(tmp_path: Path, rows: Sequence[tuple[Any, ...]] = STATED) -> dict[str, Any]:
    """A table of stated trust."""
    u, v, trust = zip(*rows, strict=True)
    pq.write_table(pa.table({"u": u, "v": v, "trust": trust}), tmp_path / "trust.parquet")
    return {"kind": "table", "path": str(tmp_path / "trust.parquet")}


def test_share_of_tables_with_unreadable_columns_refuses_only_used_ones(
    policy: Make, share: Share, tmp_path: Path
) -> None:
    trust, model = stated(tmp_path), {"kind": "trade-off"}
    path = tmp_path / "trust.parquet"
    times = pa.array([dt.time(8, 30)] * len(STATED), pa.time64("us"))
    pq.write_table(pq.read_table(path).append_column("seen", times), path)
    rows, edges = people(), friendships()
    ended = share(policy(rows, edges, trust=trust, model=model))
    assert ended.code == 0, ended.err
    for option in ("u", "v", "trust"):
        ended = share(policy(rows, edges, trust={**trust, option: "seen"}, model=model))
        assert ended.code == 2
        assert "column 'seen' is of type time64[us], which cannot be read" in " ".join(ended.err.split())


def entries(
    path: Path, rows: Sequence[Row], edges: Sequence[Edge], trust: Callable[[str, str], float],
    psi: Callable[[str, str, str], float] = lambda _u, _v, _k: 1.0,
) -> dict[tuple[str, str, str], tuple[float, float, int]]:  # fmt: skip
    """Loss and utility of a level of each attribute in each pair of friends, and its levels: F12 §7.4."""
    trees = {
        name: build(column.hierarchy, name) for name, column in load([path], releasing=False).quasi_identifiers.items()
    }
    of = {row["who"]: row for row in rows}
    found = {}
    for u, friends in naive.friends_of(of, edges).items():
        for v in friends:
            t = trust(u, v)
            weight = 1 / (1 + t) if t >= 0 else 1 - t
            for name, tree in trees.items():
                found[u, v, name] = (weight, psi(u, v, name), len(naive.path(tree, of[u][name])) - 1)
    return found


def shown_levels(ended: Ended, path: Path, rows: Sequence[Row]) -> dict[tuple[str, str, str], int]:
    """Levels that are shown in each pair, by the levels in the decisions."""
    trees = {
        name: build(column.hierarchy, name) for name, column in load([path], releasing=False).quasi_identifiers.items()
    }
    of, found = {row["who"]: row for row in rows}, {}
    for (u, v), row in ended.decisions.iterrows():
        for name, tree in trees.items():
            depth = len(naive.path(tree, of[u][name])) - 1
            found[u, v, name] = max(depth - row[f"level_{name}"], 0)
    return found


def everything(path: Path, rows: Sequence[Row]) -> dict[tuple[str, str], int]:
    """Levels of each value of everybody who shows something."""
    columns = load([path], releasing=False).quasi_identifiers
    trees = {name: build(column.hierarchy, name) for name, column in columns.items()}
    return {(row["who"], name): len(naive.path(tree, row[name])) - 1 for row in rows for name, tree in trees.items()}


def test_a_trade_off_shows_what_is_worth_it(policy: Make, share: Share, tmp_path: Path) -> None:
    rows, edges = people(), friendships()
    trust = {(u, v): t for u, v, t in STATED}
    path = policy(rows, edges, model={"kind": "trade-off", "lambda": 0.9}, trust=stated(tmp_path))
    ended = share(path)
    assert ended.code == 0, ended.err
    wanted = entries(path, rows, edges, lambda u, v: trust.get((u, v), 0.0))
    found = shown_levels(ended, path, rows)
    assert found == {e: top if 0.9 * worth > loss else 0 for e, (loss, worth, top) in wanted.items()}
    table = ended.decisions
    assert table["trust"].to_dict() == {key: trust.get(key, 0.0) for key in table.index}
    assert ended.measure("loss", relation="all") == pytest.approx(
        sum(loss * found[e] for e, (loss, _, _) in wanted.items())
    )
    assert 0 < ended.summary["levels_shown"] < 1


@pytest.mark.parametrize("scope", ["network", "user"])
@pytest.mark.parametrize("problem", ["most-utility", "least-loss"])
def test_limits_are_kept_and_the_gap_reaches_the_best(
    policy: Make, share: Share, tmp_path: Path, problem: str, scope: str
) -> None:
    """F12 §7.4's knapsacks: of a user the best by dynamic programming; of the network within one entry of the bound."""
    rows, edges = people(), friendships()
    worth = {"kind": "detail", "weights": {"age": 1.7, "city": 0.4}}
    limit = {"network": 60.5, "user": 3.3}[scope]
    key = "loss_at_most" if problem == "most-utility" else "utility_at_least"
    asked = {"kind": problem, "scope": scope, key: limit}
    path = policy(rows, edges, model=asked, utility=worth)
    ended = share(path)
    assert ended.code == 0, ended.err
    friends = naive.friends_of((row["who"] for row in rows), edges)
    wanted = entries(
        path,
        rows,
        edges,
        lambda u, v: len(friends[u] & friends[v]),
        lambda _u, _v, k: {"age": 1.7, "city": 0.4}.get(k, 1.0),
    )
    found = shown_levels(ended, path, rows)
    users = sorted(friends) if scope == "user" else [None]
    for user in users:
        mine = {e: one for e, one in wanted.items() if user is None or e[0] == user}
        order = sorted((e for e in mine if mine[e][2]), key=lambda e: mine[e][0] / mine[e][1])
        loss = sum(mine[e][0] * found[e] for e in mine)
        utility = sum(mine[e][1] * found[e] for e in mine)
        bound, spent = 0.0, 0.0
        for e in order:
            a, b, top = mine[e]
            if problem == "least-loss":
                a, b = b, a
            part = min(float(top), (limit - spent) / a)
            spent += a * part
            bound += b * part
        largest = max((mine[e][1 if problem == "most-utility" else 0] for e in mine), default=0.0)
        if problem == "most-utility":
            assert loss <= limit
            assert bound - largest - 1e-9 <= utility <= bound + 1e-9
        elif spent < limit - 1e-9:
            assert all(found[e] == mine[e][2] for e in mine), "nothing reaches it: everything is shown"
        else:
            assert utility >= limit - 1e-9
            assert bound - 1e-9 <= loss <= bound + largest + 1e-9
        table = ended.decisions
        of_user = table if user is None else table[table.index.get_level_values("u") == user]
        reached = loss if problem == "least-loss" else utility
        assert of_user["objective"].sum() == pytest.approx(reached)
        if user is None:
            # What one pair leaves open any other one may fill: the gap is that of all.
            assert of_user["gap"].nunique() == 1
            assert abs(bound - reached) == pytest.approx(of_user["gap"].iloc[0], abs=1e-9)
            assert set(of_user["status"]) == {"heuristic" if of_user["gap"].iloc[0] else "proved"}
        elif len(of_user) and (problem == "most-utility" or spent >= limit - 1e-9):
            assert set(of_user["status"]) == {"proved"}
            assert reached == pytest.approx(best_within(list(mine.values()), problem, limit))
    if key == "loss_at_most" and scope == "network":
        again = share(policy(rows[::-1], edges[::-1], parts=5, model=asked, utility=worth), output="again")
        assert again.bytes == ended.bytes, "however the input is dealt"


def best_within(mine: Sequence[tuple[float, float, int]], problem: str, limit: float) -> float:
    """Greatest utility, or least loss, within a limit: the least loss of each utility there can be, exactly."""
    least = {Fraction(0): Fraction(0)}
    for loss, worth, top in mine:
        more: dict[Fraction, Fraction] = {}
        for utility, lost in least.items():
            for level in range(top + 1):
                at, spent = utility + level * Fraction(worth), lost + level * Fraction(loss)
                more[at] = min(more.get(at, spent), spent)
        least = more
    if problem == "most-utility":
        return float(max(utility for utility, lost in least.items() if lost <= limit))
    return float(min(lost for utility, lost in least.items() if utility >= limit))


def test_a_limit_that_nothing_meets_is_refused(policy: Make, share: Share) -> None:
    asked = {"kind": "least-loss", "utility_at_least": 1e6}
    ended = share(policy(people(), friendships(), model=asked))
    assert ended.code == 2
    assert "sharing.model.utility_at_least: 1e+06 is more than all there is to show is worth" in " ".join(
        ended.err.split()
    )
    nothing = share(policy(people(), friendships(), model={"kind": "most-utility", "loss_at_most": 0}))
    assert nothing.code == 0, nothing.err
    assert nothing.summary["levels_shown"] == 0


# ---------------------------------------------------------------------------------------------------- trust and worth


def trusted(share: Share, path: Path) -> dict[tuple[str, str], float]:
    ended = share(path)
    assert ended.code == 0, ended.err
    return dict(ended.decisions["trust"])


def test_trust_by_rules_is_of_profiles_that_show_the_same(policy: Make, share: Share) -> None:
    rows, edges = people(), friendships()
    of = {row["who"]: row for row in rows}
    rules = [{"same": ["sex.1", "city"], "then": 2.0}, {"same": ["sex.1"], "then": 0.5}]
    path = policy(rows, edges, model={"kind": "trade-off"}, trust={"kind": "rules", "rules": rules, "otherwise": -1})

    def rule(u: str, v: str) -> float:
        same = {name: of[u][name] == of[v][name] is not None for name in TREES}
        return 2.0 if same["sex.1"] and same["city"] else 0.5 if same["sex.1"] else -1.0

    found = trusted(share, path)
    assert found == {(u, v): rule(u, v) for u, v in found}
    assert set(found.values()) == {2.0, 0.5, -1.0}


def test_stated_trust_walks_on(policy: Make, share: Share, tmp_path: Path) -> None:
    """Personalized PageRank of what is stated, by a power series; within a time the steps weigh as Poisson says."""
    rows, edges = people(), friendships()
    names = [row["who"] for row in rows]
    friends = naive.friends_of(names, edges)
    walk = np.array([[float(v in friends[u]) / max(len(friends[u]), 1) for v in names] for u in names])
    walk += np.diag([float(not friends[u]) for u in names])
    given = np.zeros((len(names), len(names)))
    for u, v, trust in STATED:
        given[names.index(u), names.index(v)] = trust
    total, now = np.zeros_like(given), given
    for step in range(80):
        total += 0.5 * 0.5**step * now
        now = now @ walk
    said = {**stated(tmp_path), "kind": "propagated"}
    path = policy(rows, edges, model={"kind": "trade-off"}, trust=said)
    found = trusted(share, path)
    for (u, v), trust in found.items():
        assert trust == pytest.approx(total[names.index(u), names.index(v)], abs=2e-5)
    assert sum(trust != 0 for trust in found.values()) > 10
    in_time = trust_series(PropagatedTrust(**said, time=0.7, error=1e-6))
    exact = [math.exp(-0.7) * 0.7**n / math.factorial(n) for n in range(len(in_time.weights))]
    assert in_time.weights.tolist() == pytest.approx(exact, abs=1e-6)
    assert sum(exact) > 1 - 1e-5


@pytest.fixture(scope="module")
def likenesses(decide: Decide, tmp_path_factory: pytest.TempPathFactory) -> Decided:
    """p0 lists women of Ulm of her age; q0 differs from q1 by the sex, and from q2, whose town is not known, by age."""
    rows = [
        {"who": f"p{i}", "age": "30" if i < 10 else "50", "sex.1": "F" if i < 10 else "M",
         "city": "Ulm" if i < 10 else "Bonn", "phi": 1.0}
        for i in range(20)
    ]  # fmt: skip
    rows += [
        {"who": "q0", "age": "30", "sex.1": "F", "city": "Ulm", "phi": 1.0},
        {"who": "q1", "age": "30", "sex.1": "M", "city": "Ulm", "phi": 1.0},
        {"who": "q2", "age": "31", "sex.1": "F", "city": None, "phi": 1.0},
    ]
    edges: list[Edge] = [("p0", f"p{i}") for i in range(1, 20)] + [("q0", "q1"), ("q0", "q2")]
    listed = tmp_path_factory.mktemp("listed") / "trust.parquet"
    pq.write_table(pa.table({"u": ["p0"] * 3, "v": ["p1", "p2", "p3"]}), listed)
    trust = {"kind": "one-class", "path": str(listed)}
    return decide(rows, edges, model={"kind": "trade-off", "lambda": 100}, trust=trust, utility={"kind": "diversity"})


def test_who_resembles_those_listed_is_trusted(likenesses: Decided) -> None:
    """Who is like the women of Ulm is trusted, men of Bonn are not; who lists nobody says 0."""
    found = dict(likenesses.ended.decisions["trust"])
    assert {v: found["p0", v] for u, v in found if u == "p0"} == {
        f"p{i}": 1.0 if i < 10 else -1.0 for i in range(1, 20)
    }
    assert all(trust == 0 for (u, _), trust in found.items() if u != "p0")


def test_diversity_is_worth_what_profiles_differ(likenesses: Decided) -> None:
    table = likenesses.ended.decisions
    # A third of the attributes differs; of those both show, half by a third of the levels.
    assert table.loc[("q0", "q1"), "utility"] == pytest.approx(6 * (1 / 3))
    assert table.loc[("q0", "q2"), "utility"] == pytest.approx(6 * (1 / 3) / 2)
    assert table.loc[("q1", "q0"), "utility"] == pytest.approx(6 * (1 / 3))


def test_what_tables_say_of_users_and_attributes(policy: Make, share: Share, tmp_path: Path) -> None:
    """Φ is that of the one who shows, Ψ that of the one who sees."""
    rows, edges = people(), friendships()
    pq.write_table(
        pa.table({"user": ["p1", "p1", "p2"], "attribute": ["age", "city", "age"], "value": [9.0, 0.0, 0.2]}),
        tmp_path / "said.parquet",
    )
    said = {"kind": "table", "path": str(tmp_path / "said.parquet")}
    given = {("p1", "age"): 9.0, ("p1", "city"): 0.0, ("p2", "age"): 0.2}
    costs = {**said, "weights": {"age": 0.5}}
    path = policy(rows, edges, model={"kind": "trade-off", "lambda": 1.0}, sensitivity=costs, utility=said)
    ended = share(path)
    assert ended.code == 0, ended.err
    friends = naive.friends_of((row["who"] for row in rows), edges)
    wanted = {}
    levels = entries(path, rows, edges, lambda _u, _v: 0.0)
    for u, v, name in levels:
        phi = given.get((u, name), 0.5 if name == "age" else 1.0) / (1 + len(friends[u] & friends[v]))
        wanted[u, v, name] = levels[u, v, name][2] if given.get((v, name), 1.0) > phi else 0
    assert shown_levels(ended, path, rows) == wanted
    for values, message in (([-1.0], "or negative"), ([float("nan")], "or negative")):
        pq.write_table(pa.table({"user": ["p1"], "attribute": ["age"], "value": values}), tmp_path / "said.parquet")
        ended = share(path)
        assert ended.code == 2
        assert message in ended.err
    pq.write_table(pa.table({"user": ["p1"], "attribute": ["town"], "value": [1.0]}), tmp_path / "said.parquet")
    assert (
        "sharing.sensitivity: 1 of 1 rows name somebody whom table does not have, or no quasi-identifier"
        in " ".join(share(path).err.split())
    )


def reached(
    rows: Sequence[Row],
    edges: Sequence[Edge],
    leak: str,
    time: float,
    said: Sequence[tuple[str, str, float]] = STATED,
    *,
    directed: bool = False,
    steps: int | None = None,
) -> dict[tuple[str, str], float]:
    """Σ_j K_vj f(T_uj) of all (u, v), K = exp(tL) by a dense exponential, f the reciprocal of the stated trust."""
    names = [row["who"] for row in rows]
    friends = naive.friends_of(names, edges, directed=directed)
    adjacent = np.array([[float(v in friends[u]) for v in names] for u in names])
    degree = adjacent.sum(axis=1)
    walk = adjacent / np.maximum(degree, 1)[:, None] + np.diag(degree == 0)
    kernel = expm(time * (walk - np.eye(len(names)) if leak == "stochastic" else adjacent - np.diag(degree)))
    if steps is not None:
        kernel = np.linalg.matrix_power(walk, steps)
    exposure = np.ones((len(names), len(names)))
    for u, v, trust in said:
        exposure[names.index(u), names.index(v)] = 1 / (1 + trust) if trust >= 0 else 1 - trust
    whole = exposure @ kernel.T
    return {(u, v): float(whole[i, j]) for i, u in enumerate(names) for j, v in enumerate(names)}


COMPUTATIONS: dict[str, tuple[tuple[str, float, int], ...]] = {
    "stochastic": (("whole", 1e-3, 3), ("ego", 1e-6, 3), ("automatic", 1e-2, 4)),
    "laplacian": (("whole", 1e-10, 3), ("ego", 1e-6, 3)),
}
"""How, within which error, and the seed of the sample; the series of the Laplacian is that of directed edges below.

Each term of a series is a join, so that it is asked for few of them; two steps are held against the power of a matrix.
"""


@pytest.mark.parametrize(
    "leak", [pytest.param("stochastic", marks=pytest.mark.thorough("the same steps with another matrix")), "laplacian"]
)
def test_the_three_computations_agree_within_their_bounds(
    policy: Make, share: Share, tmp_path: Path, leak: str
) -> None:
    """R(u, x, v) = Φ_u(x) Σ_j K_vj f(T_uj) by the matrix exponential; most is shown within the limit (F12 §7.3)."""
    rows, edges = people(), friendships()
    limit, time = 4.1, {"stochastic": 0.7, "laplacian": 0.05}[leak]
    exact = reached(rows, edges, leak, time)
    trust, losses = stated(tmp_path), {}
    # Which seed is drawn by tells who sees whom; how it is computed does not.
    drawn: dict[int, list[Any]] = {3: [], 4: []}
    for how, error, seed in COMPUTATIONS[leak]:
        asked = {"kind": "diffusion", "time": time, "leak": leak, "risk_at_most": limit, "error": error}
        most = {"automatic": 1}.get(how, 10**6)  # it does not fit, and no ego network of radius 3 would do
        pairs = {"kind": "sample", "pairs": 300, "seed": seed}
        model = {**asked, "computation": how}
        path = policy(rows, edges, model=model, trust=trust, pairs=pairs, adjacency_on_machine=most)
        ended = share(path, output=f"out-{how}-{error}")
        assert ended.code == 0, ended.err
        shown, whole = shown_levels(ended, path, rows), everything(path, rows)
        table, different = ended.decisions, set()
        drawn[seed].append(table.index)
        assert 240 < len(table) <= 300
        assert all(u != v for u, v in table.index)
        assert len({u for u, _ in table.index}) == 40
        assert set(table["relation"]) == {"friend", "friend of a friend", "stranger"}
        for u, v in table.index:
            levels = sum(shown[u, v, name] for name in TREES)
            loss, top = table.loc[(u, v), "loss"], sum(whole[u, name] for name in TREES)
            # The worst is assumed of what is open: at most twice the error of the largest |f(T) - f(0)|, which is 1.
            assert -1e-9 <= loss - exact[u, v] * levels <= 2 * error * levels + 1e-9
            assert loss <= limit
            assert int(limit / (exact[u, v] + 2 * error + 1e-9)) <= levels or levels == top
            best = min(top, int(limit / exact[u, v] + 1e-9))
            assert levels <= best <= levels + table.loc[(u, v), "gap"] + 1e-6
            different.add(round(exact[u, v], 6))
        assert len(different) > 5
        losses[how, error] = ended.measure("loss", relation="all") / len(table)
        assert ended.measure("diffusion_error", computation={"automatic": "series"}.get(how, how)) <= 1
    assert max(losses.values()) - min(losses.values()) < 0.1 * max(losses.values())
    assert all(one.equals(drawn[3][0]) for one in drawn[3])
    assert not any(one.equals(drawn[3][0]) for one in drawn[4])


@pytest.mark.thorough("tests/extensions/network/stages/test_network.py and the kernels of each model")
def test_directed_edges_go_one_way_in_every_model(policy: Make, share: Share, tmp_path: Path) -> None:
    """u tells v: v is shown something, information of v flows on to whom he tells, and common friends are told by u."""
    rows, edges = people(), friendships()
    names = [row["who"] for row in rows]
    friends = naive.friends_of(names, edges, directed=True)
    one_way = {(u, v) for u in names for v in friends[u]}
    two_steps = {(u, w) for u in names for v in friends[u] for w in friends[v]}
    assert any((v, u) not in one_way for u, v in one_way)

    directed = partial(policy, rows, edges, of_edges={"directed": True})
    path = directed(name="dealt", parts=4, model={"lambda": 3.0})
    ended = share(path, output="friends")
    assert ended.code == 0, ended.err
    assert levels_of(ended) == expected(path, rows, edges, directed=True, trade_off=3.0)
    assert set(ended.decisions.index) == one_way
    for (u, v), row in ended.decisions.iterrows():
        assert row["common_friends"] == sum(v in friends[f] for f in friends[u])
    assert ended.measure("network_edges") == len(one_way)
    named = [(u, v) for u, v in edges if u != v]
    assert ended.measure("network_duplicates") == len(named) - len(one_way)
    assert ended.measure("network_most_friends") == max(map(len, friends.values()))
    assert ended.measure("network_alone") == sum(not of for of in friends.values())
    assert ended.summary["directed"] is True
    assert "Edges have a direction" in " ".join(ended.document["notes"])
    assert "each in one direction" in (ended.directory / "report.html").read_text()

    walks = sum(len(friends[v]) for u in names for v in friends[u])
    asked = {"kind": "friends-of-friends", "most_walks": walks}
    near = share(directed(pairs=asked, model={"kind": "trade-off", "lambda": 0.3}), output="near")
    assert near.code == 0, near.err
    assert set(near.decisions.index) == {(u, v) for u, v in two_steps - one_way if u != v}
    assert set(near.decisions["relation"]) == {"friend of a friend"}
    assert (near.decisions["trust"] == near.decisions["common_friends"]).all()
    few = share(directed(pairs={**asked, "most_walks": walks - 1}), output="few")
    assert f"there are {walks:,} walks" in " ".join(few.err.split())

    trust = stated(tmp_path)
    for leak, steps, hows in (("laplacian", None, ("whole", "series")), ("stochastic", 2, ("ego", "series"))):
        exact = reached(rows, edges, leak, 0.05, directed=True, steps=steps)
        model = {"kind": "diffusion", "leak": leak, "risk_at_most": 100}
        model |= {"time": 0.05} if steps is None else {"steps": steps}
        for how in hows:
            # Steps are all taken; of a time there are as many as the error asks for.
            error = 1e-2 if how == "series" and steps is None else 1e-5
            path = directed(model={**model, "computation": how, "error": error}, trust=trust)
            found = share(path, output=f"{leak}-{how}")
            assert found.code == 0, found.err
            for key, row in found.decisions.iterrows():
                assert row["loss"] == pytest.approx(exact[key] * row["utility"], abs=4 * error * max(row["utility"], 1))


EXTREMES: dict[str, tuple[tuple[float, str], ...]] = {
    "stochastic": ((0.0, "series"), (200.0, "ego")),
    "laplacian": ((0.0, "ego"), (200.0, "whole")),
}


@pytest.mark.parametrize("leak", EXTREMES)
def test_no_time_and_a_long_time(policy: Make, share: Share, tmp_path: Path, leak: str) -> None:
    """At t = 0 only v knows: f(T_uv). In the long run everybody of v's part does, evenly or by his friends' number."""
    rows, edges = people(), friendships()
    friends = naive.friends_of([row["who"] for row in rows], edges)
    part = {"p0"}
    while more := {f for user in part for f in friends[user]} - part:
        part |= more
    share_of = {user: float(len(friends[user])) if leak == "stochastic" else 1.0 for user in part}
    trust = {(u, v): 1 / (1 + t) if t >= 0 else 1 - t for u, v, t in STATED}
    table = stated(tmp_path)
    for time, how in EXTREMES[leak]:
        model = {"kind": "diffusion", "time": time, "leak": leak, "risk_at_most": 100, "computation": how}
        if how == "ego":
            model["radius"] = 12  # all there is
        ended = share(policy(rows, edges, model=model, trust=table), output=f"out-{time}-{how}")
        assert ended.code == 0, ended.err
        for (u, v), row in ended.decisions.iterrows():
            if u not in part:
                continue
            average = sum((trust.get((u, j), 1.0) - 1) * share_of[j] for j in part) / sum(share_of.values())
            exact = trust.get((u, v), 1.0) if time == 0 else 1 + average
            assert row["loss"] == pytest.approx(exact * row["utility"], abs=3e-6 * max(row["utility"], 1))


def test_diffusion_is_the_same_bytes_however_the_input_is_dealt(policy: Make, share: Share, tmp_path: Path) -> None:
    """And what a user says of himself counts where the information comes back to him."""
    rows, edges = people(), friendships()
    said = [*STATED, ("p0", "p0", 9.0)]
    trust = stated(tmp_path, said)
    exact = reached(rows, edges, "stochastic", 0.2, said)
    for how in ("whole", "series"):
        first: Ended | None = None
        for parts in (1, 11):
            mixed, others = list(rows), [(v, u) if i % parts else (u, v) for i, (u, v) in enumerate(edges)]
            random.Random(parts).shuffle(mixed)
            random.Random(parts).shuffle(others)
            model = {"kind": "diffusion", "time": 0.2, "risk_at_most": 4, "computation": how, "error": 1e-2}
            path = policy(mixed, others, name=how, parts=parts, model=model, trust=trust)
            ended = share(path, output=f"{how}-{parts}")
            assert ended.code == 0, ended.err
            first = ended if first is None else first
            assert ended.bytes == first.bytes
            assert ended.document["measures"] == first.document["measures"]
        assert first is not None
        for (u, v), row in first.decisions.loc[["p0"]].iterrows():
            assert row["loss"] == pytest.approx(exact[u, v] * row["utility"], abs=2e-2 * max(row["utility"], 1))


def test_a_radius_that_is_too_short_errs_on_the_safe_side(policy: Make, share: Share, tmp_path: Path) -> None:
    rows, edges = people(), friendships()
    exact = reached(rows, edges, "stochastic", 1.0)
    model = {"kind": "diffusion", "time": 1.0, "risk_at_most": 3.0, "computation": "ego", "radius": 1}
    ended = share(policy(rows, edges, model=model, trust=stated(tmp_path)))
    assert ended.code == 0, ended.err
    table = ended.decisions
    assert table["loss"].max() <= 3.0
    over = [row["loss"] - exact[key] * row["utility"] for key, row in table.iterrows()]
    assert min(over) >= -1e-9
    assert max(over) > 0.1
    assert (table["gap"] > 0).any()
    assert ended.measure("diffusion_error", computation="ego") > 0.05
    assert "radius of 1" in " ".join(ended.document["notes"])


def test_the_default_radius_keeps_the_error_in_every_pair_or_names_the_radius_that_does(
    policy: Make, share: Share, tmp_path: Path
) -> None:
    """A long path of friends: those who know each other by others only are strangers, far out of a ball of radius 6."""
    rows = [{**people(1)[0], "who": f"p{i}"} for i in range(60)]
    edges = [(f"p{i}", f"p{i + 1}") for i in range(59)]
    trust = stated(tmp_path, [("p0", "p30", 4.0), ("p20", "p50", -1.0), ("p5", "p4", 3.0)])
    asked = {"kind": "diffusion", "time": 0.2, "risk_at_most": 100, "computation": "ego"}
    pairs = {"kind": "sample", "pairs": 600}
    for error in (1e-2, 1e-6):
        path = policy(rows, edges, model={**asked, "error": error}, trust=trust, pairs=pairs)
        ended = share(path, output=f"out-{error}")
        assert ended.code == 0, ended.err
        assert ended.measure("diffusion_error", computation="ego") <= error
        said = [("p0", "p30", 4.0), ("p20", "p50", -1.0), ("p5", "p4", 3.0)]
        exact = reached(rows, edges, "stochastic", 0.2, said)
        for key, row in ended.decisions.iterrows():
            assert -1e-9 <= row["loss"] - exact[key] * row["utility"] <= 2 * error * row["utility"] + 1e-9
    refused = share(policy(rows, edges, model={**asked, "time": 3.0, "error": 1e-6}, trust=trust, pairs=pairs))
    assert refused.code == 2
    message = " ".join(refused.err.split())
    assert "a radius of up to 6 does not keep 1e-06 in every pair. Fix: set sharing.model.radius: 14," in message
    held = share(
        policy(rows, edges, model={**asked, "time": 3.0, "error": 1e-6, "radius": 14}, trust=trust, pairs=pairs),
        output="held",
    )
    assert held.code == 0, held.err
    assert held.measure("diffusion_error", computation="ego") <= 1e-6


def test_a_very_long_time_is_computed_for_a_small_network_and_else_refused(
    policy: Make, share: Share, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, edges = people(), friendships()
    model = {"kind": "diffusion", "time": 1e5, "risk_at_most": 100, "computation": "whole"}
    ended = share(policy(rows, edges, model=model, trust=stated(tmp_path)))
    assert ended.code == 0, ended.err
    exact = reached(rows, edges, "stochastic", 1e5)
    for key, row in ended.decisions.iterrows():
        assert row["loss"] == pytest.approx(exact[key] * row["utility"], abs=3e-6 * max(row["utility"], 1))
    assert ended.measure("diffusion_error", computation="whole") <= 1e-6
    monkeypatch.setattr("privrisk_spark.extensions.network.planning.SQUARED_USERS", 39)
    for how, more in (("whole", {}), ("ego", {"radius": 3}), ("whole", {"leak": "laplacian", "time": 5e3})):
        refused = share(policy(rows, edges, model={**model, "computation": how, **more}, trust=stated(tmp_path)))
        assert refused.code == 2
        message = " ".join(refused.err.split())
        assert "sharing.model.time: Got" in message
        assert "at most 10,000 are begun because the cost grows with them. Fix: choose at most" in message


def test_what_may_reach_others_costs_as_the_matrix_exponential_says(policy: Make, share: Share, tmp_path: Path) -> None:
    """The risk of a level is Φ Σ_j K_vj f(T_uj), K = exp(tL); the most is shown that keeps a pair's risk in bounds."""
    rows, edges = people(25), [(u, v) for u, v in friendships(25, 60)]
    time, most = 0.7, 1.9
    model = {"kind": "diffusion", "time": time, "leak": "laplacian", "risk_at_most": most, "error": 1e-9}
    path = policy(rows, edges, model=model, trust=stated(tmp_path), exposure={"kind": "exponential", "scale": 2})
    ended = share(path)
    assert ended.code == 0, ended.err
    columns = load([path], releasing=False).quasi_identifiers
    trees = {name: build(column.hierarchy, name) for name, column in columns.items()}
    names = [row["who"] for row in rows]
    place = {name: i for i, name in enumerate(names)}
    adjacent = np.zeros((25, 25))
    for u, v in edges:
        if u != v:
            adjacent[place[u], place[v]] = adjacent[place[v], place[u]] = 1
    kernel = expm(time * (adjacent - np.diag(adjacent.sum(axis=1))))
    trust = np.zeros((25, 25))
    for u, v, value in STATED:
        if u in place and v in place:
            trust[place[u], place[v]] = value
    reached = kernel @ np.exp(-trust / 2).T  # of v, u
    table = ended.decisions
    assert len(table) == int(adjacent.sum())
    assert table["loss"].max() <= most
    bounded = 0
    for (u, v), row in table.iterrows():
        exposure = reached[place[v], place[u]]
        assert row["trust"] == trust[place[u], place[v]]
        assert row["loss"] == pytest.approx(exposure * row["utility"], abs=1e-6)
        depths = [len(naive.path(tree, rows[place[u]][name])) - 1 for name, tree in trees.items()]
        # Each level costs and is worth the same here: as many are shown as the bound allows.
        shown = min(sum(depths), int(most / exposure + 1e-9))
        assert row["utility"] + row["gap"] >= shown - 1e-9
        assert row["utility"] <= shown + 1e-9
        bounded += shown < sum(depths)
    assert 0 < bounded < len(table)


@pytest.mark.parametrize(("decided", "enough"), [("by_common_friends", 1), ("by_trade_off", 2)])
def test_how_members_are_connected_by_what_they_see(request: pytest.FixtureRequest, decided: str, enough: int) -> None:
    """By loops over the decisions: who sees so many levels of each value, or all that it has."""
    of: Decided = request.getfixturevalue(decided)
    path, rows, ended = of.path, of.rows, of.ended
    shown = shown_levels(ended, path, rows)
    columns = load([path], releasing=False).quasi_identifiers
    trees = {name: build(column.hierarchy, name) for name, column in columns.items()}
    profiles = {row["who"]: row for row in rows}
    links = []
    for u, v in ended.decisions.index:
        depths = {name: len(naive.path(tree, profiles[u][name])) - 1 for name, tree in trees.items()}
        if any(depths.values()) and all(shown[u, v, name] >= min(depth, enough) for name, depth in depths.items()):
            links.append((u, v))
    near: dict[str, set[str]] = {user: set() for pair in links for user in pair}
    for u, v in links:
        near[u].add(v)
        near[v].add(u)
    parts = []
    for user in near:
        part, waiting = {user}, [user]
        while waiting:
            more = near[waiting.pop()] - part
            part |= more
            waiting += more
        parts.append(len(part))
    assert ended.measure("links", levels=enough) == len(links) > 0
    assert ended.measure("connected_users", levels=enough) == len(near)
    assert ended.measure("largest_part", levels=enough) == max(parts)
    assert 1 <= ended.measure("diameter_at_least", levels=enough) < max(parts)


# ------------------------------------------------------------------------------------------------- whatever is given


def test_ids_are_texts_or_numbers_and_directions_do_not_count(spark: SparkSession) -> None:
    """The same network by numbers, by texts of them, turned around, with loops and edges named again."""
    n = 12
    profiles = [(i, 20 + 3 * i) for i in range(n)]
    friends = [(i, (i * i + 1) % n) for i in range(n)] + [(i, (i + 1) % n) for i in range(n)]
    policy = pr.Policy(
        table={"record_id": "who"},
        columns={"who": pr.identifier(), "age": pr.quasi_identifier(pr.intervals(10, 30))},
        sharing={"edges": {}, "model": {"lambda": 3}},
    )

    def shown(people: Any, edges: Any) -> list[tuple[Any, ...]]:
        with pr.share(edges, people, policy) as shared:
            return [tuple(row) for row in shared.decisions.orderBy("u", "v").collect()]

    numbers = shown(
        spark.createDataFrame(profiles, "who int, age int"), spark.createDataFrame(friends, "u int, v long")
    )
    assert len(numbers) > 2 * n
    assert {row[0] for row in numbers} == {str(i) for i in range(n)}
    texts = [(str(i), age) for i, age in profiles]
    turned = [(str(v), str(u)) for u, v in friends] + [(str(u), str(v)) for u, v in friends] + [("3", "3")]
    again = shown(
        spark.createDataFrame(texts, "who string, age int"), spark.createDataFrame(turned, "u string, v string")
    )
    assert again == numbers


def test_what_one_user_says_changes_no_row_but_of_those_he_shows_or_befriends(
    policy: Make, share: Share, by_common_friends: Decided, by_trade_off: Decided
) -> None:
    """p9's profile is in the rows in which he shows, and in those of pairs he is a common friend of, as a count."""
    for of, p9 in ((by_common_friends, canary("p9")), (by_trade_off, "p9")):
        friends = naive.friends_of((row["who"] for row in of.rows), of.edges)
        other = [{**row, "age": "59", "city": "Ulm"} if row["who"] == p9 else row for row in of.rows]
        # Edges of nobody, which the policy says to ignore, change nothing.
        edges = [*of.edges, (p9, "zorro"), (p9, None)]
        ended = share(policy(other, edges, of_edges={"unknown": "ignore"}, **of.asked))
        assert ended.code == 0, ended.err
        assert ended.measure("network_unknown") == ended.measure("network_nulls") == 1
        before, after = of.ended.decisions.fillna(-1), ended.decisions.fillna(-1)
        changed = before.index[(before != after).any(axis=1)]
        assert len(changed)
        for u, v in changed:
            assert u == p9 or (p9 in friends[u] & friends[v] and of is by_common_friends)
        assert before.loc[p9].shape == after.loc[p9].shape


@pytest.mark.thorough("tests/extensions/network/stages/test_network.py")
def test_users_with_very_many_friends_are_survived(
    policy: Make, share: Share, tmp_path: Path, privrisk: Privrisk
) -> None:
    """Two people whom 200,000 know, and each other: pairs of them have as many common friends, or one.

    Kernels are tried with a million; what a step makes of each pair of friends would not end with so many either.
    """
    del privrisk
    n = 200_000
    path = policy([{**people(1)[0], "who": "a"}, {**people(2)[1], "who": "b"}], [("a", "b")])
    names = pa.array(np.char.add("f", np.arange(n).astype("U7")))
    crowd = pa.table(
        {
            "who": names,
            "age": pa.array(["20", "33", "47", None] * (n // 4)),
            "sex.1": pa.array(["F", "M"] * (n // 2)),
            "city": pa.array(["Ulm", "Kiel", "Bonn", "Köln"] * (n // 4)),
            "phi": pa.array(np.ones(n)),
        }
    )
    pq.write_table(crowd, tmp_path / "net-profiles" / "crowd.parquet")
    for famous in "ab":
        known = pa.table({"u": pa.array([famous] * n), "v": names})
        pq.write_table(known, tmp_path / "net-edges" / f"{famous}.parquet")
    given = [("a", "b"), ("b", "a"), ("a", "f0"), ("f0", "b"), ("f1", "f2")]
    pq.write_table(pa.table({"u": [u for u, _ in given], "v": [v for _, v in given]}), tmp_path / "pairs.parquet")
    trust = stated(tmp_path, [("a", "f5", 3.0), ("f0", "a", -1.0), ("f1", "f2", 1.0)])
    document = yaml.safe_load(path.read_text())
    document["sharing"] |= {"pairs": {"kind": "table", "path": str(tmp_path / "pairs.parquet")}}
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    ended = share(path)
    assert ended.code == 0, ended.err
    assert ended.measure("network_most_friends") == n + 1
    table = ended.decisions
    assert table.loc[("a", "b"), "common_friends"] == n
    assert table.loc[("f1", "f2"), "common_friends"] == 2
    assert (table["status"] == "proved").all()
    document["sharing"] |= {"trust": trust, "model": {"kind": "diffusion", "risk_at_most": 50}}
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    for how in ("whole", "ego"):
        more = ["--set=sharing.model.computation=ego", "--set=sharing.model.radius=2"] if how == "ego" else []
        ended = share(path, *more, output=how)
        assert ended.code == 0, ended.err
        # a trusts f5: of what starts at b, one in 200,000 walks ends there; all share the rest evenly.
        assert ended.decisions.loc[("a", "b"), "loss"] == pytest.approx(
            ended.decisions.loc[("a", "b"), "utility"], rel=1e-5
        )
        # f0 mistrusts a, to whom half of the walks from b are an even number of steps later, but for none at all.
        there = ((1 + math.exp(-2)) / 2 - math.exp(-1)) / 2
        one = ended.decisions.loc[("f0", "b")]
        assert one["loss"] / one["utility"] == pytest.approx(1 + there, abs=3e-6)


def test_tables_and_scratch_in_an_object_store(
    policy: Make, share: Share, tmp_path: Path, endpoint: str, by_common_friends: Decided
) -> None:
    del endpoint
    path = policy(by_common_friends.rows, by_common_friends.edges, **by_common_friends.asked)
    store = ObjectStore(Location("s3", BUCKET, uuid4().hex), retry_seconds=5)
    document = yaml.safe_load(path.read_text())
    for kind, key in (("profiles", document["table"]), ("edges", document["sharing"]["edges"])):
        store.upload(f"{kind}/part-0.parquet", tmp_path / f"net-{kind}" / "0.parquet")
        key["path"] = f"s3a://{BUCKET}/{store.location.path}/{kind}"
    document["run"]["scratch"] = f"s3://{BUCKET}/{store.location.path}/scratch"
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    ended = share(path, output="remote")
    assert ended.code == 0, ended.err
    assert ended.bytes == by_common_friends.ended.bytes
    assert sorted(entry.name for entry in store.entries()) == ["edges/part-0.parquet", "profiles/part-0.parquet"]
    refused = CliRunner().invoke(app, ["share", str(path), f"--output=s3://{BUCKET}/{store.location.path}/edges/out"])
    assert refused.exit_code == 2
    assert "--output: must be neither" in refused.stderr
    assert "a run never writes onto its input" in refused.stderr
