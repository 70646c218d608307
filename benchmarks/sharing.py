"""Sharing in a network of 500,000 users with up to 70 attributes, as in F12 §7.7: 50,000 pairs, and diffusion.

The data is SYNTHETIC (``reproduce.generated.network``). Users drawn evenly have next to no common
friend, so that nothing is to be weighed; ``hard`` are pairs two steps apart, which have some. Modified-Aggregate, which
F12 measures, is timed beside a lean program (:mod:`benchmarks.sharing_floor`) that reads the same tables and decides by
the trade-off of loss and utility; that the product counts and decides as the floor does is held pair by pair on a run
of its own. ``sharing-diffusion`` lets 10,000 users decide for five friends each what is shown, as information spreads
for a time of 1; its floor adds up the series of some of them in float64, from which the seconds of all are reckoned.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import yaml

from benchmarks import case_study
from benchmarks.case_study import BenchmarkError, Result
from benchmarks.measure import Measured, measure
from privrisk_spark.kernels.arrays import LongArray
from reproduce.generated.clustered import keyed_uniforms
from reproduce.generated.network import SocialNetwork

USERS, PAIRS, ATTRIBUTES = 500_000, 50_000, (10, 40, 70)
COMPILED = 2_000
"""Users of a network that is decided first, so that no figure has the compiling of the kernels in it."""

SHOWING, FRIENDS_OF_EACH, NAMED = 10_000, 5, 20
SECONDS_AT_MOST, DIFFUSION_SECONDS_AT_MOST = 60.0, 120.0
TO_LINEAR_AT_MOST = 1.2
ERROR = 1e-6
TRADE_OFF = 0.3
FLOOR_USERS = 32
EDGES_AT_MOST = 300_000_000
"""Directed edges that a machine may hold: those of five million users."""


@dataclass(frozen=True)
class Network:
    """A network on the disk, with pairs to decide for."""

    users: int
    attributes: int
    place: Path
    """``profiles/``, ``edges/``; ``uniform``, ``hard``, ``hard-4`` and ``told`` pairs, ``trust``: Parquet files."""

    def columns(self) -> dict[str, Any]:
        """Columns of a policy."""
        return SocialNetwork(self.users, self.attributes).columns()


def run(*, rows: int | None = None, cache: Path | None = None) -> list[Result]:
    """Decide pairs by 10, 40 and 70 attributes, four times the pairs, and by diffusion.

    Parameters
    ----------
    rows : int, optional
        Users; 500,000 if not given. Pairs and users who show are a tenth and a fiftieth of them.
    cache : Path, optional
        As for the case study.

    Raises
    ------
    BenchmarkError
        If a program fails, or the floor and the product do not decide the same. A target missed is no failure.
    """
    users = USERS if rows is None else rows
    decided(prepare(COMPILED, 10, cache), "hard")
    diffused(prepare(COMPILED, 1, cache))
    found = []
    for k in ATTRIBUTES if rows is None else ATTRIBUTES[:1]:
        network = prepare(users, k, cache)
        kinds = ("hard", "uniform", "hard-4") if k == max(ATTRIBUTES) or rows is not None else ("hard",)
        found += [decided(network, kind) for kind in kinds]
    if rows is None:
        first = next(one for one in found if one.name == f"sharing-hard-{max(ATTRIBUTES)}")
        last = next(one for one in found if one.name == f"sharing-hard-4-{max(ATTRIBUTES)}")
        last.parameters["time_to_linear"] = round(last.seconds / first.seconds / 4, 3)
    return [*found, diffused(prepare(users, 1, cache))]


def run_growth(*, rows: int | None = None, cache: Path | None = None) -> list[Result]:
    """Decide pairs of ten times the users, beside the same of the usual number; by diffusion as many who show."""
    users = USERS if rows is None else rows
    decided(prepare(COMPILED, 10, cache), "hard")
    diffused(prepare(COMPILED, 1, cache))
    pairs = [decided(prepare(n, min(ATTRIBUTES), cache), "hard") for n in (users, 10 * users)]
    spread = [diffused(prepare(n, 1, cache), users // 50) for n in (users, 10 * users)]
    for one, more in (pairs, spread):
        more.parameters["time_to_linear"] = round(more.seconds / one.seconds / 10, 3)
    return [*pairs, *spread]


def prepare(users: int, attributes: int, cache: Path | None = None) -> Network:
    """Return the data of this size, generating it beside its place if it is not there yet."""
    place = (cache or case_study.default_cache()) / f"sharing-{users}-{attributes}-seed{case_study.SEED}"
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f"{place.name}.", dir=place.parent))
        try:
            made = SocialNetwork(users, attributes, case_study.SEED)
            made.write(partial)
            (partial / "tops.json").write_text(json.dumps(made.tops.tolist()), encoding="utf-8")
            _write_pairs(partial, users)
            partial.rename(place)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    return Network(users, attributes, place)


def _write_pairs(place: Path, users: int) -> None:
    ids = pq.read_table(place / "profiles", columns=["user"]).column(0).combine_chunks()
    words = []
    for file in sorted((place / "edges").iterdir()):
        edges = pq.read_table(file)
        u, v = (pc.index_in(edges.column(end), value_set=ids).to_numpy().astype(np.int64) for end in ("u", "v"))
        words += [u * users + v, v * users + u]
    ends = np.concatenate(words)
    del words
    ends.sort()
    ends = ends[np.append(True, ends[1:] != ends[:-1])]
    first = np.searchsorted(ends, np.arange(users + 1) * users)
    friend = np.remainder(ends, users, out=ends)
    many = min(PAIRS, users // 10)

    def steps(label: str, start: LongArray) -> LongArray:
        """A friend of each, drawn evenly; himself where he has none."""
        drawn = keyed_uniforms(case_study.SEED, f"sharing {label}", (len(start),))
        size = first[start + 1] - first[start]
        at = np.minimum(first[start] + (drawn * size).astype(np.int64), len(friend) - 1)
        return np.where(size > 0, friend[at], start)

    def write(name: str, u: LongArray, v: LongArray, **more: npt.NDArray[np.float64]) -> None:
        once = np.unique(u * users + v, return_index=True)[1]
        once = np.sort(once[u[once] != v[once]])
        columns = {"u": ids.take(pa.array(u[once])), "v": ids.take(pa.array(v[once]))}
        columns |= {column: pa.array(values[once]) for column, values in more.items()}
        pq.write_table(pa.table(columns), place / f"{name}.parquet")

    def anybody(label: str, n: int) -> LongArray:
        found: LongArray = (keyed_uniforms(case_study.SEED, f"sharing {label}", (n,)) * users).astype(np.int64)
        return found

    write("uniform", anybody("u", many), anybody("v", many))
    start = anybody("hard", 4 * many)
    near = steps("second", steps("first", start))
    write("hard", start[:many], near[:many])
    write("hard-4", start, near)
    showing = np.unique(anybody("showing", min(SHOWING, users // 50)))
    write("told", np.repeat(showing, FRIENDS_OF_EACH), steps("told", np.repeat(showing, FRIENDS_OF_EACH)))
    naming = np.repeat(showing, NAMED)
    trust = np.array([-1.0, 0.5, 1.0, 4.0])[
        (keyed_uniforms(case_study.SEED, "sharing T", (len(naming),)) * 4).astype(int)
    ]
    write("trust", naming, steps("named", naming), trust=trust)


def decided(network: Network, kind: str) -> Result:
    """Time Modified-Aggregate on pairs of a kind, beside the floor; hold the trade-off against it."""
    pairs = str(network.place / f"{kind}.parquet")
    with tempfile.TemporaryDirectory(prefix="sharing-") as scratch:
        out = Path(scratch)
        lean, ran = _floor(["decided", str(network.place), pairs, scratch, str(TRADE_OFF)])
        asked: dict[str, Any] = {"pairs": {"kind": "table", "path": pairs}}
        timed = _share(network, out, "timed", {**asked, "model": {"lambda": 10.0}})
        held = _share(network, out, "held", {**asked, "model": {"kind": "trade-off", "lambda": TRADE_OFF}})
        _compare(out / "held", out / "floor.parquet", timed=out / "timed")
        summary = json.loads((out / "timed" / "summary.json").read_text(encoding="utf-8"))
    more = {
        "pairs": lean["pairs"],
        "with_common_friends": lean["with_common_friends"],
        "trade_off_seconds": round(held.seconds, 3),
        "bar": SECONDS_AT_MOST,
        "stages": summary["seconds"],
        "outcomes": summary["outcomes"],
        "heuristic": summary["status"] != "proved",
    }
    return _result(f"sharing-{kind}-{network.attributes}", network, timed, ran.seconds, more)


def diffused(network: Network, showing: int | None = None) -> Result:
    """Time diffusion for users who show something to some friends each: for so many of them, or for all."""
    pairs, trust = str(network.place / "told.parquet"), str(network.place / "trust.parquet")
    with tempfile.TemporaryDirectory(prefix="sharing-") as scratch:
        out = Path(scratch)
        if showing is not None:
            pairs = _first(pairs, showing, out / "told.parquet")
        lean, _ = _floor(["spread", str(network.place), pairs, trust, scratch, str(FLOOR_USERS)])
        asked: dict[str, Any] = {
            "pairs": {"kind": "table", "path": pairs},
            "trust": {"kind": "table", "path": trust},
            "model": {"kind": "diffusion", "time": 1.0, "error": ERROR, "risk_at_most": 1e9},
        }
        timed = _share(network, out, "timed", asked)
        _hold_spread(out / "timed", out / "floor.parquet")
        document = json.loads((out / "timed" / "sharing.json").read_text(encoding="utf-8"))
        summary = json.loads((out / "timed" / "summary.json").read_text(encoding="utf-8"))
    error = next(one["value"] for one in document["measures"] if one["name"] == "diffusion_error")
    more = {
        "showing": lean["all_users"],
        "seeing": lean["seen_by"],
        "error": error,
        "bar": DIFFUSION_SECONDS_AT_MOST,
        "stages": summary["seconds"],
        "beside": f"{lean['users']} users in float64, reckoned for all",
    }
    reckoned = lean["seconds"] / lean["users"] * lean["all_users"]
    return _result("sharing-diffusion", network, timed, reckoned, more)


def _first(pairs: str, showing: int, place: Path) -> str:
    """Write the pairs of the first so many users who show."""
    table = pq.read_table(pairs)
    users = table.column("u").unique()[:showing]
    pq.write_table(table.filter(pc.is_in(table.column("u"), value_set=users)), place)
    return str(place)


def _floor(arguments: list[str]) -> tuple[dict[str, Any], Measured]:
    command = [sys.executable, "-m", "benchmarks.sharing_floor", *arguments]
    ran = case_study.checked("floor", measure(command, directory=case_study.root()))
    found: dict[str, Any] = json.loads(ran.output)
    return found, ran


def _share(network: Network, out: Path, name: str, asked: dict[str, Any]) -> Measured:
    policy = {
        "version": 1,
        "run": {"name": name},
        "table": {"path": str(network.place / "profiles"), "record_id": "user"},
        "columns": network.columns(),
        "sharing": {
            "edges": {"path": str(network.place / "edges")},
            "adjacency_on_machine": EDGES_AT_MOST,
            **asked,
        },
    }
    path = out / f"{name}.yaml"
    path.write_text(yaml.safe_dump(policy, sort_keys=False), encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "privrisk_spark.cli.app",
        "share",
        str(path),
        "--output",
        str(out / name),
    ]
    return case_study.checked("product", measure(command, directory=case_study.root()))


def _compare(held: Path, floor: Path, *, timed: Path) -> None:
    """Hold every pair's common friends, levels, loss and utility against the floor's.

    Raises
    ------
    BenchmarkError
        If one differs.
    """
    order = [("u", "ascending"), ("v", "ascending")]
    lean = pq.read_table(floor).sort_by(order)
    mine = pq.read_table(held / "decisions").select(lean.column_names).sort_by(order)
    counted = pq.read_table(timed / "decisions", columns=["u", "v", "common_friends"]).sort_by(order)
    for name in lean.column_names:
        ours, theirs = mine.column(name), lean.column(name)
        same = (
            np.allclose(ours.to_numpy(), theirs.to_numpy(), rtol=1e-9)
            if pa.types.is_floating(theirs.type)
            else ours.combine_chunks().equals(theirs.combine_chunks())
        )
        if not same:
            raise BenchmarkError(f"sharing: the floor and the product do not decide the same: '{name}' differs.")
    if not counted.column("common_friends").combine_chunks().equals(lean.column("common_friends").combine_chunks()):
        raise BenchmarkError("sharing: the floor and the product do not count the same common friends.")


def _hold_spread(timed: Path, floor: Path) -> None:
    """Hold the risk of a level of some users' pairs against the floor's.

    Raises
    ------
    BenchmarkError
        If one is less, or more than twice the error more.
    """
    decided = pq.read_table(timed / "decisions", columns=["u", "v", "loss", "utility"])
    lean = pq.read_table(floor).join(decided, ["u", "v"])
    over = lean.column("loss").to_numpy() / lean.column("utility").to_numpy() - lean.column("reached").to_numpy()
    # The floor leaves out a ten-millionth of the walks.
    if not ((over > -3e-7) & (over < 2 * ERROR + 3e-7)).all():
        raise BenchmarkError("sharing: the floor and the product do not find the same risk of a level.")


def _result(name: str, network: Network, timed: Measured, floor_seconds: float, more: dict[str, Any]) -> Result:
    return Result(
        name=name,
        seconds=timed.seconds,
        floor_seconds=floor_seconds,
        peak_mb=round(timed.peak_mb, 1),
        parameters={
            "rows": network.users,
            "attributes": network.attributes,
            "seed": case_study.SEED,
            "processors": len(os.sched_getaffinity(0)),
            "load_before": round(os.getloadavg()[0], 2),
            "processor_seconds": round(timed.processor_seconds, 1),
            **more,
        },
    )
