"""Brute force over the Adult table, independent of the package: labels and pandas, every node of the lattice.

By hand over all records of a run: ``python tests/jobs/adult_brute_force.py VAULT``.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import yaml

Node = tuple[str, ...]


class AdultBruteForce:
    """The decision of conf/adult.yaml, read literally.

    A node is its path to the root, so that equal labels on different branches stay apart.
    """

    def __init__(self, adult: Path, policy: Path) -> None:
        document = yaml.safe_load(policy.read_text())
        self.columns = [name for name, c in document["columns"].items() if c["role"] == "quasi-identifier"]
        self.floor = document["decision"]["utility_at_least"]
        self.table = pd.read_csv(adult / "adult.csv", sep=";", dtype=str, keep_default_na=False)
        self.path: dict[str, dict[str, Node]] = {}
        self.weight: dict[str, dict[Node, float]] = {}
        for name in self.columns:
            lines = (adult / f"adult_hierarchy_{name}.csv").read_text().strip().splitlines()
            self.path[name] = {line.split(";")[0]: tuple(line.strip().split(";")) for line in lines}
            self.weight[name] = self._harmonic(name, document["risk"]["sensitivity"]["weights"][name])
        self.heights = [len(next(iter(self.path[name].values()))) - 1 for name in self.columns]
        self.distinct = self.table[self.columns].value_counts().reset_index()

    def _harmonic(self, name: str, leaf: float) -> dict[Node, float]:
        """1 over the sum over children of 1 over their weight; 0 at the root."""
        weight = dict.fromkeys(self.path[name].values(), leaf)
        children: dict[Node, set[Node]] = {}
        for path in self.path[name].values():
            for i in range(1, len(path)):
                children.setdefault(path[i:], set()).add(path[i - 1 :])
        for node in sorted(children, key=len, reverse=True):
            weight[node] = 0.0 if len(node) == 1 else 1 / sum(1 / weight[child] for child in children[node])
        return weight

    def decide(self, rows: np.ndarray) -> list[tuple[tuple[int, ...], float, int]]:
        """Level vector, risk and consistent rows of some distinct records, over the whole lattice."""
        number: list[list[np.ndarray]] = []
        weight: list[list[np.ndarray]] = []
        for name, height in zip(self.columns, self.heights, strict=True):
            paths = [self.path[name][value] for value in self.distinct[name]]
            number.append([pd.factorize(pd.Series([p[x:] for p in paths]))[0] for x in range(height + 1)])
            weight.append([np.array([self.weight[name][p[x:]] for p in paths]) for x in range(height + 1)])
        multiplicity = self.distinct["count"].to_numpy()
        best: list[tuple[float, int, tuple[int, ...], int] | None] = [None] * len(rows)
        for levels in itertools.product(*[range(h + 1) for h in self.heights]):
            utility = sum(h - x for h, x in zip(self.heights, levels, strict=True))
            if utility < self.floor:
                continue
            cells = pd.DataFrame({i: number[i][x] for i, x in enumerate(levels)})
            rho = pd.Series(multiplicity).groupby([cells[i] for i in cells]).transform("sum").to_numpy()[rows]
            total = np.zeros(len(rows))
            for i, x in enumerate(levels):
                total += weight[i][x][rows]
            for position, (sensitivity, count) in enumerate(zip(total.tolist(), rho.tolist(), strict=True)):
                risk = math.exp(sensitivity) / count
                held = best[position]
                tie = held is not None and risk <= held[0] * (1 + 1e-12)
                if held is None or risk < held[0] * (1 - 1e-12) or (tie and utility > held[1]):
                    best[position] = (risk, utility, levels, count)
        return [(b[2], b[0], b[3]) for b in best if b is not None]


def differing(oracle: AdultBruteForce, decisions: pd.DataFrame, rows: np.ndarray) -> tuple[int, int]:
    """Rows of the vault's decisions that were compared, and how many of them differ."""
    expected = dict(
        zip(map(tuple, oracle.distinct.loc[rows, oracle.columns].to_numpy()), oracle.decide(rows), strict=True)
    )
    levels = [f"level_{name}" for name in oracle.columns]
    records = record_ids(oracle.table, oracle.columns)
    compared = wrong = 0
    for found in decisions.to_dict("records"):
        want = expected.get(records[found["record_id"]])
        if want is None:
            continue
        compared += 1
        same = tuple(int(found[level]) for level in levels) == want[0]
        wrong += not (same and math.isclose(found["risk"], want[1], rel_tol=1e-9) and found["consistent"] == want[2])
    return compared, wrong


def record_ids(table: pd.DataFrame, columns: list[str]) -> dict[str, tuple[str, ...]]:
    """Derived record ids by their definition: half of SHA-256 over length-prefixed fields, and an ordinal."""
    seen: Counter[str] = Counter()
    result = {}
    for row in table.to_dict("records"):
        fields = "".join(f"{len(value.encode())}:{value}" for value in row.values())
        digest = hashlib.sha256(fields.encode()).hexdigest()[:32]
        seen[digest] += 1
        result[f"{digest}-{seen[digest]}"] = tuple(row[name] for name in columns)
    return result


if __name__ == "__main__":
    root = Path(__file__).resolve().parents[2]
    home = Path(os.environ.get("PRIVRISK_ADULT", root.parent / "shared" / "data" / "adult"))
    brute = AdultBruteForce(home, root / "conf" / "adult.yaml")
    result = differing(brute, pd.read_parquet(Path(sys.argv[1]) / "decisions"), np.arange(len(brute.distinct)))
    sys.stdout.write(json.dumps({"rows compared": result[0], "differing": result[1]}) + "\n")
