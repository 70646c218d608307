"""Releases of one small table, literally: what each released, and who is consistent with all of it."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from product import Ran

CITIES = {"Ulm": "south", "Bonn": "north", "Kiel": "north", "Trier": "west"}
UNDER = {"*": 4, "south": 1, "north": 2, "west": 1}
"""Leaves under each node of the cities; of an age, 5 or 20 years, or 60."""
WEIGHTS = {"age": 1.0, "city": 2.0}

Record = tuple[int, str]
Levels = tuple[int, int]
Asked = tuple[int, int, int]
"""Least utility, and what a level of an age and of a city is worth."""


def nodes(record: Record) -> tuple[list[tuple[int, int]], list[str]]:
    """Nodes of an age, as ranges, and of a city, by level."""
    age, city = record
    ranges = [(age, age), *((age // width * width, age // width * width + width - 1) for width in (5, 20)), (0, 59)]
    return ranges, [city, CITIES[city], "*"]


def fits(row: Record, cell: tuple[tuple[int, int], str]) -> bool:
    (low, high), node = cell
    return low <= row[0] <= high and node in nodes(row)[1]


def cell_of(record: Record, levels: Levels) -> tuple[tuple[int, int], str]:
    ages, cities = nodes(record)
    return ages[levels[0]], cities[levels[1]]


class Attacker:
    """Holds the table of now, and every released cell of each record; counts who is consistent with all of them."""

    def __init__(self, rows: dict[str, Record], past: list[tuple[dict[str, Record], dict[str, Levels]]]) -> None:
        self.rows, self.past = rows, past

    def cells(self, identity: str, levels: Levels | None) -> list[tuple[tuple[int, int], str]]:
        """Cells of a record; of an earlier release only what it says of values that are the same now."""
        now = self.rows[identity]
        found = [cell_of(now, (3, 2))]
        for rows, released in self.past:
            if identity in rows:
                then = rows[identity]
                age = released[identity][0] if then[0] == now[0] else 3
                city = released[identity][1] if then[1] == now[1] else 2
                found.append(cell_of(now, (age, city)))
        return found if levels is None else [*found, cell_of(now, levels)]

    def risk(self, identity: str, levels: Levels | None) -> float:
        cells = self.cells(identity, levels)
        consistent = sum(all(fits(row, cell) for cell in cells) for row in self.rows.values())
        (low, high) = min((cell[0] for cell in cells), key=lambda one: one[1] - one[0])
        city = min((cell[1] for cell in cells), key=lambda node: UNDER.get(node, 0))
        phi = 0.0 if high - low == 59 else WEIGHTS["age"] / (high - low + 1)
        phi += 0.0 if city == "*" else WEIGHTS["city"] / UNDER.get(city, 1)
        return phi / consistent

    def best(self, identity: str, asked: Asked) -> tuple[float, float]:
        """Least risk among disclosures of at least some utility, and the greatest utility at that risk."""
        found = []
        for levels in itertools.product(range(4), range(3)):
            utility = asked[1] * (3 - levels[0]) + asked[2] * (2 - levels[1])
            if utility >= asked[0]:
                found.append((self.risk(identity, levels), utility))
        least = min(risk for risk, _ in found)
        return least, max(utility for risk, utility in found if risk <= least * (1 + 1e-12))


Write = Callable[..., Path]


def writer(tmp_path: Path) -> Write:
    """Write a table, and the policy that releases it."""

    def writing(rows: dict[str, Record], day: int, **more: Any) -> Path:
        table = tmp_path / f"table-{day}.csv"
        lines = [f"{identity};{age};{city}" for identity, (age, city) in rows.items()]
        random.Random(day).shuffle(lines)
        table.write_text("\n".join(["id;age;city", *lines]) + "\n")
        document = yaml.safe_load(f"""
version: 1
run: {{name: composed, date: 2026-11-{day:02}}}
table: {{path: {table}, format: csv, options: {{sep: ";", header: true}}, record_id: id}}
columns:
  id: {{role: identifier}}
  age: {{role: quasi-identifier, hierarchy: {{intervals: {{widths: [5, 20], domain: [0, 59]}}}}}}
  city: {{role: quasi-identifier, hierarchy: {{tree: {{"*": {{south: [Ulm], north: [Bonn, Kiel], west: [Trier]}}}}}}}}
risk: {{sensitivity: {{weights: {{age: 1, city: 2}}}}}}
decision: {{problem: min-risk, utility_at_least: 2}}
output: {{path: {tmp_path / "out"}, vault: {tmp_path / "vault"}}}
""")
        policy = tmp_path / f"policy-{day}.yaml"
        policy.write_text(yaml.safe_dump(document | more, sort_keys=False))
        return policy

    return writing


def tables() -> list[dict[str, Record]]:
    """One table on three days: rows come and go, values change and change back."""
    rng = random.Random(11)
    first = {f"p{i}": (rng.randrange(60), rng.choice(list(CITIES))) for i in range(30)}
    second = {identity: record for identity, record in first.items() if identity not in ("p0", "p1")}
    second |= {f"n{i}": (rng.randrange(60), rng.choice(list(CITIES))) for i in range(6)}
    second |= {f"p{i}": ((first[f"p{i}"][0] + 7) % 60, first[f"p{i}"][1]) for i in (2, 3, 4)}
    second["p5"] = (first["p5"][0], "Trier" if first["p5"][1] != "Trier" else "Ulm")
    third = second | {"p2": first["p2"], "p0": first["p0"], "n6": (30, "Kiel")}
    return [first, second, third]


def decisions(ran: Ran) -> pd.DataFrame:
    assert ran.code == 0, ran.err
    return pd.read_parquet(ran.root / "vault" / "decisions").set_index("id").sort_index()


def levels_of(found: pd.DataFrame) -> dict[str, Levels]:
    return {
        identity: (int(age), int(city))
        for identity, age, city in zip(found.index, found["level_age"], found["level_city"], strict=True)
    }
