"""Sensitivity with interactions, end to end: every search that enumerates is the literal search over its definition."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import pandas as pd
import pytest
from product import Privrisk, Ran

WIDTHS = (1, 5, 10, 20, 100)
CITIES = {"Ulm": ("Ulm", "south", "*"), "Bonn": ("Bonn", "north", "*"), "Kiel": ("Kiel", "north", "*")}
SHARE = {"Ulm": 1.0, "Bonn": 1.0, "Kiel": 1.0, "south": 1.0, "north": 0.5, "*": 0.0}
FORM = (
    "--set=risk.sensitivity={form: interaction, weights: {age: 2, sex: 0}, interactions: "
    "[{columns: [sex, city], weight: 1.5}, {columns: [age, sex, city], weight: 0.7}]%s}"
)
SETS = [({"sex", "city"}, 1.5), ({"age", "sex", "city"}, 0.7)]
FLOOR = 4


@pytest.fixture(autouse=True)
def irregular(small: Path) -> None:
    """The small table with values that do not go round."""
    pick = random.Random(5)
    rows = [
        f"p{i};{pick.choice([21, 23, 24, 34, 47])};{pick.choice('FFM')};{pick.choice(list(CITIES))};a"
        for i in range(40)
    ]
    (small.parent / "table.csv").write_text("\n".join(["id;age;sex;city;diagnosis", *rows]) + "\n")


def weighed(tmp_path: Path) -> list[str]:
    """Settings for the small table with a factor per record, and weights of the record's own for its city."""
    table = pd.read_csv(tmp_path / "table.csv", sep=";")
    table["f"] = [[0.0, 1.0, 3.0][i % 3] for i in range(len(table))]
    table["w"] = [[0.5, 2.0][i // 7 % 2] for i in range(len(table))]
    table.to_parquet(tmp_path / "weighed.parquet")
    return [
        f"--set=table={{path: {tmp_path / 'weighed.parquet'}, format: parquet, options: {{}}, record_id: id}}",
        "--set=columns.f={role: weight}",
        "--set=columns.w={role: weight}",
        FORM % ", personal: {factor: f, columns: {city: w}}",
    ]


def disclosed(row: dict[str, object], levels: tuple[int, ...]) -> tuple[tuple[int, int], str, str]:
    width = WIDTHS[levels[0]]
    low = int(str(row["age"])) // width * width
    return (low, low + width), (str(row["sex"]), "*")[levels[1]], CITIES[str(row["city"])][levels[2]]


def fits(row: dict[str, object], cell: tuple[tuple[int, int], str, str]) -> bool:
    (low, high), sex, city = cell
    return low <= int(str(row["age"])) < high and sex in (row["sex"], "*") and city in CITIES[str(row["city"])]


def literal(tmp_path: Path, *, own: bool, sets: list[tuple[set[str], float]] = SETS) -> pd.DataFrame:
    """Levels, risk and utility of every record by looking at its whole lattice."""
    table = pd.read_csv(tmp_path / "table.csv", sep=";").to_dict("records")
    found = []
    for i, row in enumerate(table):
        factor, of_city = ([0.0, 1.0, 3.0][i % 3], [0.5, 2.0][i // 7 % 2]) if own else (1.0, 1.0)
        best: tuple[float, float, tuple[int, ...]] | None = None
        for levels in itertools.product(range(5), range(2), range(3)):
            utility = (4 - levels[0]) + (1 - levels[1]) + (2 - levels[2])
            if utility < FLOOR:
                continue
            cell = disclosed(row, levels)
            shown = {
                name for name, top, level in zip(("age", "sex", "city"), (4, 1, 2), levels, strict=True) if level < top
            }
            phi = 0.0 if levels[0] == 4 else 2 / WIDTHS[levels[0]] * factor
            phi += SHARE[cell[2]] * factor * of_city
            phi += factor * sum(weight for members, weight in sets if members <= shown)
            risk = phi / sum(fits(other, cell) for other in table)
            if best is None or risk < best[0] * (1 - 1e-12) or (risk <= best[0] * (1 + 1e-12) and utility > best[1]):
                best = (risk, utility, levels)
        assert best is not None
        found.append({"id": row["id"], "risk": best[0], "utility": float(best[1]), "levels": best[2]})
    return pd.DataFrame(found).sort_values("id", ignore_index=True)


def check(ran: Ran, want: pd.DataFrame) -> None:
    assert ran.code == 0, ran.err
    found = pd.read_parquet(ran.root / "vault" / "decisions").sort_values("id", ignore_index=True)
    levels = found[["level_age", "level_sex", "level_city"]].itertuples(index=False, name=None)
    assert list(levels) == want["levels"].tolist()
    assert found["risk"].tolist() == pytest.approx(want["risk"].tolist(), rel=1e-12)
    assert found["utility"].tolist() == want["utility"].tolist()
    assert ran.manifest["guarantee"]["status"] == "proved"
    assert ran.manifest["guarantee"]["parameters"]["sensitivity"] == "interaction"


@pytest.mark.parametrize("own", [False, True])
def test_searches_that_enumerate_find_the_literal_decisions(
    privrisk: Privrisk, small: Path, tmp_path: Path, own: bool
) -> None:
    form = weighed(tmp_path) if own else [FORM % ""]
    want = literal(tmp_path, own=own)
    assert len(want["levels"].unique()) > 1
    more = {"exact": [], "exhaustive": ["--set=counting.plan=shuffle"]}
    if own:
        more = {"aruba": ["--set=counting.plan=sorted"], "exhaustive": []}
    for method, settings in more.items():
        asked = f"--set=decision={{utility_at_least: {FLOOR}, method: {method}}}"
        check(privrisk(str(small), *form, asked, *settings, root=tmp_path / method), want)


def test_interactions_change_decisions(tmp_path: Path) -> None:
    """A run without them finds other levels."""
    together, alone = literal(tmp_path, own=False), literal(tmp_path, own=False, sets=[])
    assert (together["levels"] != alone["levels"]).any()


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ("decision.method=branch_and_bound", "the form is 'interaction'; use 'exhaustive', or the form 'linear'"),
        (
            "decision={problem: max-aggregate, lambda: 1, method: aggregate}",
            "'aggregate' needs a sensitivity that is a sum over attributes",
        ),
        ("risk.model=II", "risk.sensitivity: is not used by model 'II'"),
    ],
)
def test_what_needs_a_sum_over_attributes_is_refused_by_name(
    privrisk: Privrisk, small: Path, change: str, fault: str
) -> None:
    ran = privrisk(str(small), FORM % "", f"--set={change}")
    assert ran.code == 2
    assert fault in ran.err
