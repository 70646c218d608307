"""Problems and searches of a policy, end to end: equal bytes of exact searches, constraints kept, certificates told."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import yaml
from product import Privrisk, Ran

WIDE = 21


def bytes_of(ran: Ran) -> list[str]:
    assert ran.code == 0, ran.err
    return sorted(entry["sha256"] for entry in ran.manifest["data"]["files"])


def decisions_of(ran: Ran) -> pd.DataFrame:
    return pd.read_parquet(ran.root / "vault" / "decisions").sort_values("id", ignore_index=True)


@pytest.mark.parametrize(
    ("problem", "searches", "joined"),
    [
        ("{problem: max-aggregate, lambda: 0.040856, kappa: 2, zero_phi: floor", ["aggregate", "auto"], False),
        ("{problem: min-risk, utility_at_least: 3", ["exact", "branch_and_bound", "btda"], True),
        ("{problem: max-utility, risk_at_most: 0.1", ["auto", "branch_and_bound"], False),
        ("{problem: min-risk-minus-utility, lambda: 0.03", ["auto", "branch_and_bound"], False),
    ],
)
def test_exact_searches_write_the_same_release(
    privrisk: Privrisk, small: Path, tmp_path: Path, problem: str, searches: list[str], joined: bool
) -> None:
    """By the plans dense and sorted, over the table or record by record, ties included; and by joins.

    Joined counts go to the search that looks at all nodes, which is what 'auto' is on this table.
    """
    weights = "--set=risk.sensitivity.node_weights={city: {Ulm: 0.05, Kiel: 3}}"
    first, *others = [
        privrisk(str(small), f"--set=decision={problem}, method: {search}}}", weights, root=tmp_path / search)
        for search in searches
    ]
    wanted = decisions_of(first)
    assert wanted.filter(like="level_").drop_duplicates().shape[0] > 1, "records differ"
    if "auto" in searches:
        auto = others[0] if first.root.name != "auto" else first
        assert set(decisions_of(auto)["method"]) == {"exhaustive"}
    for ran, search in zip((first, *others), searches, strict=True):
        assert bytes_of(ran) == bytes_of(first)
        found = decisions_of(ran)
        single = search in ("branch_and_bound", "btda", "aggregate")
        assert ("gap" in found.columns) == single
        if single:
            assert not found["gap"].any()
            assert ran.summary["plan"] == "sorted"
        same = [name for name in found if name not in ("method", "gap")]
        pd.testing.assert_frame_equal(found[same], wanted[same], rtol=1e-12)
        assert ran.manifest["guarantee"]["status"] == "proved"
    if joined:
        by_joins = privrisk(
            str(small),
            f"--set=decision={problem}, method: exhaustive}}",
            weights,
            "--set=counting.plan=shuffle",
            root=tmp_path / "shuffle",
        )
        assert bytes_of(by_joins) == bytes_of(first)
    if "max-utility" in problem:
        assert wanted["risk"].max() <= 0.1
        assert first.manifest["guarantee"]["parameters"]["risk_at_most"] == 0.1


@pytest.mark.thorough("tests/stages/deciding/test_decide.py; tests/planning/decisions/")
def test_what_minimum_cuts_cannot_do_is_enumerated(privrisk: Privrisk, small: Path, tmp_path: Path) -> None:
    asked = [
        "--set=decision={problem: max-aggregate, lambda: 0.5, kappa: 0.5, zero_phi: floor}",
        "--set=risk={model: III, sensitivity: {form: multiplicative, weights: {age: 0.5}}}",
    ]
    looked_up, joined = (
        privrisk(str(small), *asked, f"--set=counting.plan={plan}", root=tmp_path / plan)
        for plan in ("dense", "shuffle")
    )
    assert bytes_of(joined) == bytes_of(looked_up)
    assert looked_up.manifest["guarantee"]["status"] == "proved"
    reason = looked_up.manifest["guarantee"]["parameters"]["method"]
    for cause in (
        "decision.kappa: must be 0, 1 or 2",
        "a sum over attributes",
        "Got model 'III'",
        "reads the dictionary",
    ):
        assert cause in reason
    assert looked_up.summary["crossing"]["rows"] == 60
    assert "crossing" not in joined.summary, "nobody keeps the counts"


def test_a_ceiling_is_kept_or_the_run_says_why_not(privrisk: Privrisk, small: Path, tmp_path: Path) -> None:
    """That it is kept where it can be is above."""
    asked = "--set=decision={problem: max-utility, risk_at_most: %s}"
    constant = "--set=risk.sensitivity.form=constant"
    impossible = privrisk(str(small), asked % 0.001, constant, root=tmp_path / "impossible")
    assert impossible.code == 2
    assert (
        "decision.risk_at_most: 60 of 60 records have a higher risk than 0.001 even fully suppressed" in impossible.err
    )
    suppressed = privrisk(str(small), asked % "0.001, infeasible: suppress", constant, root=tmp_path / "suppressed")
    assert suppressed.code == 0, suppressed.err
    assert set(pq.read_table(suppressed.data).to_pandas()["city"]) == {"*"}
    assert "Records for which that is impossible are fully suppressed." in suppressed.manifest["guarantee"]["statement"]


def test_the_aggregate_model_jumps(privrisk: Privrisk, small: Path, tmp_path: Path) -> None:
    """F12 ch. 5: for a small trade-off all is released, for a large one nearly all is suppressed."""
    asked = "--set=decision={problem: max-aggregate, lambda: %s}"
    runs = [privrisk(str(small), asked % rate, root=tmp_path / str(rate)) for rate in (1e-6, 1e3)]
    little, much = map(decisions_of, runs)
    assert little.filter(like="level_").to_numpy().sum() == 0
    assert 0 < much["risk"].max() < 0.01, "a disclosure without sensitivity is no candidate"
    assert (much["method"] == "exhaustive").all()
    reason = runs[0].manifest["guarantee"]["parameters"]["method"]
    assert reason.startswith("exhaustive (a lattice has at most 30 nodes; up to 16,384, all records together")
    assert "This model is nearly all or nothing" in (runs[0].data.parent / "report.html").read_text()
    crossing = runs[0].summary["crossing"]
    assert crossing["passed"] == crossing["never"] == 0
    assert crossing["least"] <= crossing["percentiles_10_50_90"][1] <= crossing["most"]
    assert runs[1].summary["crossing"]["passed"] == runs[1].summary["crossing"]["rows"] == 60
    middle = privrisk(str(small), asked % crossing["percentiles_10_50_90"][1], root=tmp_path / "middle")
    as_it_is = (decisions_of(middle).filter(like="level_") == 0).all(axis=1).sum()
    assert as_it_is == 60 - middle.summary["crossing"]["passed"]
    assert "All or nothing" in (tmp_path / "middle" / "vault" / "report.html").read_text()
    assert "All or nothing" not in "".join(path.read_text() for path in (tmp_path / "middle" / "out").rglob("*.html"))
    assert runs[0].manifest["guarantee"]["parameters"]["lambda"] == 1e-6
    assert runs[0].manifest["guarantee"]["status"] == "proved"


@pytest.mark.parametrize(
    "method",
    [
        pytest.param("genetic", marks=pytest.mark.thorough("the same steps as for approximate")),
        "approximate",
        "branch_and_bound, most_steps: 1",
    ],
)
def test_what_is_not_proved_is_called_heuristic(privrisk: Privrisk, small: Path, method: str) -> None:
    ran = privrisk(str(small), f"--set=decision.method={method.partition(',')[0]}", *(
        ["--set=decision.most_steps=1"] if "," in method else []
    ))  # fmt: skip
    assert ran.code == 0, ran.err
    found = decisions_of(ran)
    assert found["utility"].min() >= 3
    open_ones = int((found["gap"] > 0).sum())
    assert open_ones > 0
    guarantee = ran.manifest["guarantee"]
    assert guarantee["status"] == "heuristic"
    assert (
        f"For {open_ones:,} of {len(found):,} records it is not proved that there is no better one"
        in (guarantee["statement"])
    )
    named = method.partition(",")[0]
    assert guarantee["statement"].startswith(f"Each record is disclosed at the best level vector that '{named}' found")
    assert ran.summary["facts"]["records whose decision is not proved"] == open_ones
    assert ran.summary["facts"]["largest gap of these"] == pytest.approx(found["gap"].max())
    stages = json.loads((ran.root / "out" / ran.manifest["data"]["path"]).parent.joinpath("manifest.json").read_text())
    assert stages["guarantee"]["status"] == "heuristic"


@pytest.mark.parametrize(
    ("kind", "priors", "form"),
    [
        ("bayes", (", prior: 0.3", ", prior: 0.7"), "multiplicative"),
        pytest.param("minimax", ("", ""), "linear", marks=pytest.mark.thorough("tests/stages/deciding/test_decide.py")),
    ],
)
def test_record_searches_against_several_dictionaries(
    privrisk: Privrisk, small: Path, tmp_path: Path, kind: str, priors: tuple[str, str], form: str
) -> None:
    """The expected and the largest risk over the table and a part of it; Φ as a product, and infinite weights."""
    table = pd.read_csv(tmp_path / "table.csv", sep=";")
    table.iloc[::3].to_parquet(tmp_path / "part.parquet")
    columns = "{age: age, sex: sex, city: city}"
    members = "[{name: own, kind: self%s}, {name: part, kind: table, path: %s, columns: %s%s}]"
    dictionary = f"{{kind: {kind}, members: {members % (priors[0], tmp_path / 'part.parquet', columns, priors[1])}}}"
    runs = [
        privrisk(
            str(small),
            f"--set=dictionary={dictionary}",
            f"--set=decision.method={method}",
            f"--set=risk.sensitivity.form={form}",
            "--set=risk.sensitivity.node_weights={city: {Ulm: .inf, Kiel: 0.5}}",
            root=tmp_path / method,
        )
        for method in ("exact", "branch_and_bound")
    ]
    assert bytes_of(runs[0]) == bytes_of(runs[1])
    one, other = map(decisions_of, runs)
    assert one["risk"].max() < float("inf")
    pd.testing.assert_frame_equal(one.drop(columns="method"), other.drop(columns=["method", "gap"]), rtol=1e-12)


def test_infinite_weights_are_refused_before_anything_is_decided(
    privrisk: Privrisk, tmp_path: Path, small: Path
) -> None:
    search = "--set=decision.method=approximate"
    of_node = privrisk(str(small), search, "--set=risk.sensitivity.node_weights={city: {Ulm: .inf}}")
    assert of_node.code == 2
    assert "takes finite weights alone under model 'I'. Got infinity" in of_node.err
    table = pd.read_csv(tmp_path / "table.csv", sep=";").assign(w=[float("inf")] * 2 + [1.0] * 58)
    table.to_parquet(tmp_path / "weighed.parquet")
    weighed = [
        f"--set=table={{path: {tmp_path / 'weighed.parquet'}, format: parquet, options: {{}}, record_id: id}}",
        "--set=columns.w={role: weight}",
        "--set=risk.sensitivity.personal={columns: {city: w}}",
    ]
    of_rows = privrisk(str(small), search, *weighed)
    assert of_rows.code == 2
    assert "columns.w: 2 rows have an infinite weight, which decision.method 'approximate'" in of_rows.err
    ran = privrisk(str(small), "--set=decision.method=exact", *weighed)
    assert ran.code == 0, ran.err
    # What is infinite stays infinite, and nothing comes to be no number, in any column that is written.
    columns = [
        column
        for path in (tmp_path / "vault").rglob("*.parquet")
        for column in pq.read_table(path).columns
        if pa.types.is_floating(column.type)
    ]
    assert len(columns) >= 2
    assert not any(pc.any(pc.is_nan(column)).as_py() for column in columns)


def wide(directory: Path, rows: int, people: int) -> Path:
    """A policy with more attributes than can be enumerated, and a register; returns its file."""
    pick = random.Random(7)
    names = [f"a{i}" for i in range(WIDE)]
    person = [[pick.choice("xxxyyz") for _ in names] for _ in range(people)]
    for name, of in (("table", person[:rows]), ("register", person)):
        frame = pd.DataFrame(of, columns=names)
        frame.insert(0, "id", [f"p{i}" for i in range(len(of))])
        frame.to_parquet(directory / f"{name}.parquet")
    flat = {"role": "quasi-identifier", "hierarchy": {"flat": {"values": ["x", "y", "z"]}}}
    policy = {
        "version": 1,
        "run": {"name": "wide"},
        "table": {"path": str(directory / "table.parquet"), "record_id": "id"},
        "columns": {"id": {"role": "identifier"}, **dict.fromkeys(names, flat)},
        "dictionary": {"kind": "table", "path": str(directory / "register.parquet"),
                       "columns": {name: name for name in names}},
        "risk": {"sensitivity": {"form": "linear", "weights": {name: 1 + i % 3 for i, name in enumerate(names)}}},
        "decision": {"utility_at_least": 12},
        "output": {"path": str(directory / "out"), "vault": str(directory / "vault")},
    }  # fmt: skip
    file = directory / "wide.yaml"
    file.write_text(yaml.safe_dump(policy, sort_keys=False))
    return file


def test_lattices_too_large_to_enumerate_are_searched(privrisk: Privrisk, tmp_path: Path) -> None:
    """2^21 nodes a record: the job chooses branch and bound, and its counts are those of the register."""
    policy = wide(tmp_path, 40, 400)
    refused = privrisk(str(policy), "--set=decision.method=exact")
    assert refused.code == 2
    assert "decision.method: a record's lattice has up to 2,097,152 nodes" in refused.err
    assert "use 'branch_and_bound'" in refused.err
    persons = privrisk(str(policy), "--set=dictionary.entity_id=id")
    assert persons.code == 2
    assert "'branch_and_bound' counts rows, and entity_id asks for persons" in persons.err
    assert "the lattice is too large for a search that enumerates" in persons.err
    ran = privrisk(str(policy), "--explain", "--run-id=wide")
    assert ran.code == 0, ran.err
    assert "search: branch_and_bound (a lattice may have 2,097,152 nodes, more than the 1,048,576" in ran.out
    assert "dense: keeps no vectors, which the search of one record's lattice reads" in ran.out
    assert ran.summary["plan"] == "sorted"
    assert ran.manifest["guarantee"]["status"] == "proved"
    table, register = (pd.read_parquet(tmp_path / f"{name}.parquet") for name in ("table", "register"))
    found = decisions_of(ran).set_index("id")
    weights = pd.Series({f"a{i}": 1.0 + i % 3 for i in range(WIDE)})
    for record in table.to_dict("records"):
        row = found.loc[record["id"]]
        kept = [name for name in weights.index if row[f"level_{name}"] == 0]
        assert row["utility"] == len(kept) == 12
        consistent = int((register[kept] == [record[name] for name in kept]).all(axis=1).sum())
        assert row["consistent"] == consistent
        assert row["risk"] == pytest.approx(weights[kept].sum() / consistent)
        # No exchange of one attribute does better.
        for out in kept:
            for other in weights.index.difference(kept):
                swapped = [name for name in kept if name != out] + [other]
                rho = int((register[swapped] == [record[name] for name in swapped]).all(axis=1).sum())
                assert weights[swapped].sum() / rho >= row["risk"] * (1 - 1e-9)
    aggregate = privrisk(str(policy), "--set=decision={problem: max-aggregate, lambda: 3}", "--run-id=aggregate")
    assert aggregate.code == 0, aggregate.err
    assert aggregate.manifest["guarantee"]["status"] == "proved"
    assert (decisions_of(aggregate)["gap"] == 0).all()


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ("decision={problem: max-aggregate, lambda: 1, method: aggregate}|risk.model=III", "the risk models I and II"),
        (
            "decision={problem: max-aggregate, lambda: 1, method: aggregate, kappa: 1.5}",
            "decision.kappa: must be 0, 1 or",
        ),
        ("decision={problem: max-aggregate, lambda: 1, kappa: -1}", "decision.kappa"),
        ("decision.method=approximate|risk.sensitivity.form=multiplicative", "a sum over attributes"),
        ("decision.method=btda|counting.plan=dense", "must be 'auto' or 'sorted'"),
        ("decision.most_steps=5|decision.method=exact", "is only used by the methods"),
        ("decision={problem: max-utility}", "decision.risk_at_most"),
        (
            "decision={problem: max-utility, risk_at_most: 1, method: btda}",
            "'auto', 'exhaustive' or 'branch_and_bound'",
        ),
    ],
)
def test_impossible_requests_are_faults_of_the_policy(privrisk: Privrisk, small: Path, change: str, fault: str) -> None:
    ran = privrisk(str(small), *[f"--set={one}" for one in change.split("|")])
    assert ran.code == 2
    assert fault in ran.err
