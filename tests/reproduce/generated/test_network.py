"""The generated network is one of the seed, heavy-tailed, and one that its own policy reads."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privrisk_spark.hierarchies.builders import build
from privrisk_spark.policy.reading import parse
from reproduce.generated import network
from reproduce.generated.network import SocialNetwork

NET = SocialNetwork(4000, 12, seed=5)


def test_parts_depend_on_the_seed_and_their_number_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "PART", 1000)
    parts, edges = list(NET.profiles()), list(NET.edges())
    assert [part.num_rows for part in parts] == [1000] * 4
    assert sum(part.num_rows for part in edges) == NET.n_edges == 100_000
    again = list(SocialNetwork(4000, 12, seed=5).profiles())
    assert all(one.equals(other) for one, other in zip(parts, again, strict=True))
    assert not parts[0].equals(next(SocialNetwork(4000, 12, seed=6).profiles()))


def test_degrees_are_heavy_tailed_and_friends_have_friends_in_common() -> None:
    edges = pa.concat_tables(list(NET.edges()))
    u, v = (edges.column(end).to_pylist() for end in ("u", "v"))
    assert all(a != b for a, b in zip(u, v, strict=True))
    ids = pa.concat_tables(list(NET.profiles())).column("user").to_pylist()
    assert len(set(ids)) == 4000
    assert set(u) | set(v) <= set(ids)
    friends: dict[str, set[str]] = {one: set() for one in ids}
    for a, b in zip(u, v, strict=True):
        friends[a].add(b)
        friends[b].add(a)
    degrees = np.array([len(of) for of in friends.values()])
    assert 35 < degrees.mean() < 50
    assert degrees.max() > 8 * degrees.mean()
    common = [len(friends[a] & friends[b]) for a, b in list(zip(u, v, strict=True))[:500]]
    assert np.mean(common) > 3


def test_profiles_are_values_of_their_own_hierarchies(tmp_path: Path) -> None:
    NET.write(tmp_path / "net")
    table = pq.read_table(tmp_path / "net" / "profiles")
    document = {
        "version": 1, "run": {"name": "net"}, "table": {"path": "x", "record_id": "user"}, "columns": NET.columns(),
        "sharing": {"edges": {"path": "y"}},
    }  # fmt: skip
    policy = parse(document, releasing=False)
    shown = np.zeros(table.num_rows, dtype=np.int64)
    for j, (name, column) in enumerate(policy.quasi_identifiers.items()):
        values = table.column(name).cast(pa.string()).to_pylist()
        tree = build(column.hierarchy, name, values=sorted({value for value in values if value is not None}))
        assert tree.height == NET.tops[j]
        assert all(value is None or value in tree.code_of for value in values)
        shown += np.array([value is not None for value in values])
    counts = Counter(shown.tolist())
    assert set(counts) == set(range(1, 13)), "1 to k attributes"
    assert min(counts.values()) > 0.5 * 4000 / 12
