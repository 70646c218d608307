"""The floor of sharing: the leanest single-process programs of numpy and scipy with the same answers.

``decided`` reads profiles, edges and pairs, counts common friends and decides by the trade-off of loss and utility,
which separates by attributes. ``spread`` adds up the series of diffusion in float64, a block of columns at a time, for
a few of the users who show. Neither imports anything of ``privrisk_spark``.

Run ``python -m benchmarks.sharing_floor decided DATA PAIRS OUT LAMBDA``, or ``spread DATA PAIRS TRUST OUT USERS``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from scipy import sparse

from privrisk_spark.kernels.arrays import LongArray

_AT_ONCE = 16
_PAIRS = 2**13


def main(arguments: list[str]) -> None:
    """Run one program and print what it found as JSON."""
    what, data, *rest = arguments
    print(json.dumps(decided(data, *rest) if what == "decided" else spread(data, *rest)))


def _network(data: str) -> tuple[pa.Array, sparse.csr_array]:
    """Ids of the users, and who is whose friend; a file of edges at a time, as texts are ten times the numbers."""
    ids = pq.read_table(f"{data}/profiles", columns=["user"]).column(0).combine_chunks()
    parts = []
    for file in sorted(Path(data, "edges").iterdir()):
        edges = pq.read_table(file)
        parts.append([pc.index_in(edges.column(end), value_set=ids).to_numpy().astype(np.int32) for end in ("u", "v")])
    u, v = (np.concatenate(ends) for ends in zip(*parts, strict=True))
    apart = u != v
    u, v = u[apart], v[apart]
    ends = np.concatenate([u, v]), np.concatenate([v, u])
    friends = sparse.coo_array((np.ones(len(ends[0]), dtype=np.int8), ends), shape=(len(ids), len(ids))).tocsr()
    friends.sum_duplicates()
    friends.data = np.ones(len(friends.indices), dtype=np.int32)
    return ids, friends


def _pairs(path: str, ids: pa.Array) -> tuple[pa.Table, LongArray, LongArray]:
    table = pq.read_table(path)
    u, v = (pc.index_in(table.column(end), value_set=ids).to_numpy().astype(np.int64) for end in ("u", "v"))
    return table, u, v


def decided(data: str, pairs: str, out: str, trade_off: str) -> dict[str, Any]:
    """Decide pairs by the trade-off: a level costs 1/(1 + common friends) and is worth 1."""
    start = perf_counter()
    ids, friends = _network(data)
    table, u, v = _pairs(pairs, ids)
    common = np.concatenate(
        [
            np.asarray(friends[u[a : a + _PAIRS]].multiply(friends[v[a : a + _PAIRS]]).sum(axis=1)).ravel()
            for a in range(0, len(u), _PAIRS)
        ]
    )
    tops = json.loads(Path(data, "tops.json").read_text(encoding="utf-8"))
    profiles = pq.read_table(f"{data}/profiles")
    there = np.column_stack([profiles.column(f"a{j}").is_valid().to_numpy() for j in range(len(tops))])[u]
    cost = 1.0 / (1.0 + common)
    whole = float(trade_off) > cost
    levels = np.where(there & whole[:, None], 0, np.array(tops, dtype=np.int8))
    shown = (there * np.array(tops)).sum(axis=1) * whole
    columns = {"u": table.column("u"), "v": table.column("v"), "common_friends": pa.array(common.astype(np.int64))}
    columns |= {f"level_a{j}": pa.array(np.ascontiguousarray(levels[:, j]).astype(np.int8)) for j in range(len(tops))}
    columns |= {"loss": pa.array(cost * shown), "utility": pa.array(shown.astype(np.float64))}
    pq.write_table(pa.table(columns), f"{out}/floor.parquet")
    return {
        "pairs": len(u),
        "with_common_friends": int((common > 0).sum()),
        "loss": float((cost * shown).sum()),
        "seconds": perf_counter() - start,
    }


def spread(data: str, pairs: str, trust: str, out: str, users: str) -> dict[str, Any]:
    """Average what some users u say over where information has spread to after a time of 1, for their pairs."""
    ids, friends = _network(data)
    table, u, v = _pairs(pairs, ids)
    stated = pq.read_table(trust)
    i, j = (pc.index_in(stated.column(end), value_set=ids).to_numpy() for end in ("u", "v"))
    value = stated.column("trust").to_numpy()
    surplus = np.where(value >= 0, 1 / (1 + np.maximum(value, 0)), 1 - np.minimum(value, 0)) - 1
    start = perf_counter()
    degree = np.asarray(friends.sum(axis=1)).ravel()
    walk = (sparse.diags_array(1 / np.maximum(degree, 1.0)) @ friends).tocsr()
    some, found = np.unique(u)[: int(users)], np.full(len(u), np.nan)
    for begin in range(0, len(some), _AT_ONCE):
        block = some[begin : begin + _AT_ONCE]
        amount = np.zeros((len(ids), len(block)))
        for c, user in enumerate(block.tolist()):
            amount[j[i == user], c] = surplus[i == user]
        weight, total = np.exp(-1.0), np.exp(-1.0) * amount
        for step in range(1, 10):
            amount = walk @ amount
            weight /= step
            total += weight * amount
        for c, user in enumerate(block.tolist()):
            here = u == user
            found[here] = 1 + total[v[here], c]
    seconds = perf_counter() - start
    kept = ~np.isnan(found)
    answer = pa.table(
        {
            "u": table.column("u").filter(pa.array(kept)),
            "v": table.column("v").filter(pa.array(kept)),
            "reached": found[kept],
        }
    )
    pq.write_table(answer, f"{out}/floor.parquet")
    return {"users": len(some), "all_users": len(np.unique(u)), "seen_by": len(np.unique(v)), "seconds": seconds}


if __name__ == "__main__":
    main(sys.argv[1:])
