"""Classes of counted rows against sets and counters in plain Python."""

from __future__ import annotations

import random
from collections import Counter, defaultdict

import pyarrow as pa
import pytest

from privrisk_spark.stages.assessing import classes
from privrisk_spark.stages.assessing.classes import Layout, classes_of


def counted(n: int, spread: int, seed: int, persons: bool) -> tuple[pa.Table, list[dict[str, object]]]:
    rng = random.Random(seed)
    rows = [
        {
            "n0": rng.randrange(spread),
            "n1": rng.randrange(3),
            "s0": rng.randrange(4),
            "s1": rng.randrange(2),
            **({"entity": rng.choice([f"e{i}" for i in range(6)])} if persons else {}),
            "n_rows": rng.randrange(1, 4),
            "millionths": rng.randrange(2**40),
        }
        for _ in range(n)
    ]
    table = pa.Table.from_pylist(rows)
    for name in ("n0", "n1", "s0", "s1"):
        table = table.set_column(table.column_names.index(name), name, table.column(name).cast(pa.int32()))
    return table, rows


@pytest.mark.parametrize("persons", [False, True])
@pytest.mark.parametrize(("n", "spread"), [(1, 1), (60, 1), (60, 8), (60, 2000), (300, 100_000)])
def test_classes_are_those_of_counters(n, spread, persons):
    table, rows = counted(n, spread, n + spread, persons)
    layout = Layout((spread, 3), (3, 1), persons=persons, weighted=True)
    # Rows that are alike may be added up before, in any chunks.
    once = pa.concat_tables([classes._alike(table.slice(i, 50).combine_chunks(), layout) for i in range(0, n, 50)])
    size, weight, people = Counter(), Counter(), defaultdict(set)
    held = [defaultdict(Counter), defaultdict(Counter)]
    holders = [defaultdict(set), defaultdict(set)]
    for row in rows:
        key = (row["n0"], row["n1"])
        size[key] += row["n_rows"]
        weight[key] += row["millionths"]
        people[key].add(row.get("entity"))
        for j in range(2):
            held[j][key][row[f"s{j}"]] += row["n_rows"]
            holders[j][key, row[f"s{j}"]].add(row.get("entity"))
    for given in (table, once.combine_chunks()):
        found = classes_of(given, layout)
        keys = [tuple(node) for node in found.nodes.tolist()]
        assert keys == sorted(size)
        assert found.rows.tolist() == [size[key] for key in keys]
        assert found.millionths is not None
        assert found.millionths.tolist() == [weight[key] for key in keys]
        assert (found.persons is not None) == persons
        if persons:
            assert found.sizes.tolist() == [len(people[key]) for key in keys]
        for j, runs in enumerate(found.held):
            for i, key in enumerate(keys):
                here = slice(runs.class_start[i], runs.class_start[i + 1])
                told = list(zip(runs.value[here].tolist(), runs.count[here].tolist(), strict=True))
                if persons:
                    assert told == sorted((v, len(holders[j][key, v])) for v in held[j][key])
                else:
                    assert told == sorted(held[j][key].items())
