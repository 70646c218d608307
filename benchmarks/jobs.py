"""Run each job on 10,000,000 rows with default settings: which jobs end, in how many seconds, in how much memory.

The rows are drawn from a pool of 75,000 distinct records of eight columns: those of Adult with ages of other records of
the same education, or generated ones of the same shape if Adult is not at ``PRIVRISK_ADULT``. The lean program reads
the columns it needs, counts the distinct records and, for jobs that write a table, writes the table at one level of
each hierarchy. It is no answer to any of the jobs: its seconds and memory are the unit.

A job that was measured is not run again until the code of the package changes, so that a run that was interrupted goes
on. A job that fails is a line of the table like others, with its exit code.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import yaml

from benchmarks import case_study
from benchmarks.case_study import Result
from benchmarks.measure import Measured, measure

ROWS = 10_000_000
PEAK_MB_AT_MOST = 6 * 1024.0

COLUMNS = {
    "sex": (2, 1), "age": (74, 4), "race": (5, 1), "marital-status": (7, 2), "education": (16, 3),
    "native-country": (41, 2), "workclass": (8, 2), "occupation": (14, 2),
}  # fmt: skip
"""Quasi-identifiers: values and height of the hierarchy, as those of Adult."""

_POOL = 75_000
_FILE_ROWS = 1_000_000
_TRIES = 20


@dataclass(frozen=True)
class Job:
    """A job of the product.

    Attributes
    ----------
    command : tuple of str
        Of ``privrisk``; ``{out}`` is the job's directory, ``{home}`` that of all jobs.
    policy : callable
        What the policy says besides table and columns; given the rows.
    writes : bool
        Whether a table is written.
    of : str
        The job whose release and vault are read; the job's own if empty.
    identified : bool
        Whether records have an id.
    needed : bool
        Whether later jobs read what this job writes.
    """

    command: tuple[str, ...]
    policy: Callable[[int], dict[str, Any]]
    writes: bool = False
    of: str = ""
    identified: bool = True
    needed: bool = False


def _by_risk(_: int) -> dict[str, Any]:
    return {
        "risk": {"model": "I", "sensitivity": {"form": "multiplicative", "weights": {"age": 0.5, "race": 0.4}}},
        "decision": {"problem": "min-risk", "utility_at_least": 9},
        "guarantee": {"kind": "risk"},
    }


def _k_anonymous(**more: Any) -> Callable[[int], dict[str, Any]]:
    guarantee = {"kind": "k-anonymity", "k": 5, "suppression_limit": 0.02, "metric": "loss", **more}
    return lambda _: {"risk": {"model": "II"}, "guarantee": guarantee}


def _private(rows: int) -> dict[str, Any]:
    schemes = [[0, 4, 0, 0, 3, 0, 0, 2], [0, 4, 0, 2, 0, 0, 2, 2], [0, 3, 1, 1, 3, 2, 1, 2], [0, 4, 1, 1, 3, 2, 1, 2]]
    objective = {"lambda": 0.001, "kappa": 1, "tau": 2, "phi_min": 1, "count_cap": 5000}
    dp = {"kind": "dp", "mode": "local", "epsilon": {"admit": 0.3, "keep": 0.7}, "delta": 1e-9, "public_rows": rows}
    ledger = {"url": "sqlite:///{out}/ledger.db", "lineage": "jobs", "cap": {"epsilon": 4, "delta": 1e-7}}
    return {"risk": {"model": "II"}, "guarantee": {**dp, "schemes": schemes, "objective": objective}, "ledger": ledger}


def _perturbed(_: int) -> dict[str, Any]:
    pram = {"method": "pram", "invariant": {"keep": 0.8}}
    masks: dict[str, Any] = dict.fromkeys(COLUMNS, pram)
    masks |= {"sex": {"method": "none"}, "age": {"method": "rank-swapping", "percent": 10}}
    return {"masks": masks, "guarantee": {"kind": "masked"}}


def _assessed(released: bool) -> Callable[[int], dict[str, Any]]:
    asked = {"sampling_fraction": 0.01, "k": 5, **({"release": "published"} if released else {})}
    return lambda rows: {**_k_anonymous()(rows), "assess": asked}


def _attacked(rows: int) -> dict[str, Any]:
    # Fewer pairs than there are, so that the search is in blocks.
    return {**_k_anonymous()(rows), "attack": {"methods": ["distance"], "exact_pairs": 10**8}}


def _after(*earlier: str) -> Callable[[int], dict[str, Any]]:
    return lambda rows: {**_by_risk(rows), "history": [f"{{home}}/{name}/vault" for name in earlier]}


_RELEASE = ("release",)
JOBS: dict[str, Job] = {
    "release-risk": Job(_RELEASE, _by_risk, writes=True),
    "release-risk-no-id": Job(_RELEASE, _by_risk, writes=True, identified=False),
    "release-optimal": Job(_RELEASE, _k_anonymous(), writes=True, needed=True),
    "release-mondrian": Job(_RELEASE, _k_anonymous(method="mondrian"), writes=True),
    "release-private": Job(_RELEASE, _private, writes=True),
    "release-perturbed": Job(_RELEASE, _perturbed, writes=True),
    "assess": Job(("assess", "--output", "{out}/assessed"), _assessed(False)),
    "assess-release": Job(("assess", "--output", "{out}/assessed"), _assessed(True), of="release-optimal"),
    "fit": Job(("fit", "--output", "{out}/fitted"), _k_anonymous(), needed=True),
    "apply": Job(("release", "--scheme", "{home}/fit/fitted/scheme.json"), _k_anonymous(), writes=True),
    "attack-blocks": Job(("attack", "--output", "{out}/attacked"), _attacked, of="release-optimal"),
    "history-first": Job(_RELEASE, _after(), writes=True, needed=True),
    "history-second": Job(_RELEASE, _after("history-first"), writes=True, needed=True),
    "history-assess": Job(
        ("assess", "--history", "--output", "{out}/composed"), _after("history-first", "history-second")
    ),
}
"""In the order in which they run: some read what others wrote."""


def run(*, rows: int | None = None, cache: Path | None = None) -> list[Result]:
    """Run every job that was not measured yet.

    Parameters
    ----------
    rows : int, optional
        10,000,000 if not given.
    cache : Path, optional
        Where the table, what jobs leave for others and the measurements are kept; as for the case study.

    Returns
    -------
    list of Result
        One a job; ``exit`` is the exit code of the command, 0 if it did its work. A target missed is no failure.
    """
    rows = ROWS if rows is None else rows
    data = prepare(rows, cache)
    home = data / f"runs-{_code()[:12]}"
    lean = {writes: _lean(data, home, writes=writes) for writes in (False, True)}
    return [_measured(name, job, data, home, lean[job.writes], rows) for name, job in JOBS.items()]


def _code() -> str:
    """Digest of what is measured."""
    digest = hashlib.sha256()
    root = case_study.root()
    for file in [*sorted((root / "privrisk_spark").rglob("*.py")), Path(__file__)]:
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _measured(name: str, job: Job, data: Path, home: Path, lean: Measured, rows: int) -> Result:
    out, noted = home / name, home / f"{name}.json"
    if not noted.exists():
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        ran = _run(name, job, data, home, rows)
        told: dict[str, Any] = {"seconds": ran.seconds, "peak_mb": ran.peak_mb, "exit": ran.exit_code}
        told["error"] = ran.errors.strip()[-1000:] if ran.exit_code else ""
        told["stages"] = case_study.stage_seconds(out) if (out / "vault" / "summary.json").exists() else {}
        noted.write_text(json.dumps(told), encoding="utf-8")
        if not job.needed:
            shutil.rmtree(out)
    told = json.loads(noted.read_text(encoding="utf-8"))
    if told["exit"]:
        print(f"{name} ended with exit code {told['exit']}: {told['error']}", file=sys.stderr)
    return Result(
        name=name,
        seconds=told["seconds"],
        floor_seconds=lean.seconds,
        peak_mb=round(told["peak_mb"], 1),
        parameters={
            "rows": rows,
            "exit": str(told["exit"]),
            "stages": told["stages"],
            "memory_to_lean": round(told["peak_mb"] / lean.peak_mb, 2),
            "peak_mb_at_most": PEAK_MB_AT_MOST,
            "seed": case_study.SEED,
            "processors": len(os.sched_getaffinity(0)),
        },
    )


def _run(name: str, job: Job, data: Path, home: Path, rows: int) -> Measured:
    program = [sys.executable, "-m", "privrisk_spark.cli.app"]
    *before, last = commands(name, job, data, home, rows)
    for command in before:
        measure([*program, *command], directory=case_study.root())
    return measure([*program, *last], directory=case_study.root())


def commands(name: str, job: Job, data: Path, home: Path, rows: int) -> list[list[str]]:
    """Write the policy of a job, and return the arguments of ``privrisk`` that do it, the job's own last.

    Parameters
    ----------
    name, job
        Of :data:`JOBS`.
    data : Path
        As :func:`prepare` returns it.
    home : Path
        Of all jobs; that of this one is there.
    """
    out = home / name
    more = job.policy(rows)
    masks = more.pop("masks", None)
    columns: dict[str, Any] = {"id": {"role": "identifier"}} if job.identified else {}
    columns["salary-class"] = {"role": "sensitive"}
    for column in COLUMNS:
        columns[column] = {"role": "quasi-identifier", "hierarchy": {"file": str(data / f"{column}.csv")}}
        if masks is not None:
            columns[column] = {"role": "quasi-identifier", "mask": masks[column]}
    if masks is not None:
        columns["age"]["read"] = {"cast": "integer"}
    if more["guarantee"]["kind"] == "dp":
        columns["salary-class"]["action"] = "drop"
    at = home / (job.of or name)
    policy = {
        "version": 1,
        "run": {"name": "jobs"},
        "table": {"path": str(data / "table"), "record_id": "id"}
        if job.identified
        else {"path": f"{data}/table-no-id"},
        "columns": columns,
        "output": {"path": str(at / "release"), "vault": str(at / "vault")},
        **more,
    }
    places = {"out": str(out), "home": str(home)}
    file = out / "policy.yaml"
    file.write_text(_placed(yaml.safe_dump(policy, sort_keys=False), places), encoding="utf-8")
    first, *options = [_placed(word, places) for word in job.command]
    approve = ["approve", str(home / "fit" / "fitted" / "scheme.json"), "--by", "benchmark"]
    return [*([approve] if name == "apply" else []), [first, str(file), "--run-id", name, *options]]


def _placed(text: str, places: Mapping[str, str]) -> str:
    for name, place in places.items():
        text = text.replace(f"{{{name}}}", place)
    return text


# ------------------------------------------------------------------------------------------------ data


def prepare(rows: int, cache: Path | None = None) -> Path:
    """Return the directory of the table and the hierarchies, which are made if they are not there."""
    adult = Path(os.environ.get("PRIVRISK_ADULT") or case_study.root().parent / "shared" / "data" / "adult")
    kind = "adult" if adult.is_dir() else "generated"
    data = (cache or case_study.default_cache()) / f"jobs-{kind}-{rows}-seed{case_study.SEED}"
    if data.exists():
        return data
    data.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f"{data.name}.", dir=data.parent))
    try:
        draw = np.random.default_rng(case_study.SEED)
        pool = _adult_pool(adult, partial, draw) if kind == "adult" else _generated_pool(partial, draw)
        (partial / "table").mkdir()
        (partial / "table-no-id").mkdir()
        for number, begin in enumerate(range(0, rows, _FILE_ROWS)):
            size = min(_FILE_ROWS, rows - begin)
            # Some records are far more frequent than others.
            place = (draw.random(size) ** 2 * pool.num_rows).astype(np.int64)
            rows_of_file, ids = pool.take(pa.array(place)), pa.array(np.arange(begin, begin + size))
            for name, table in (("table", rows_of_file.add_column(0, "id", ids)), ("table-no-id", rows_of_file)):
                pq.write_table(table, partial / name / f"part-{number:05d}.parquet")
        partial.rename(data)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return data


def _adult_pool(adult: Path, to: Path, draw: np.random.Generator) -> pa.Table:
    """Distinct records: those of Adult, then with the age of another of the same education."""
    convert = pyarrow.csv.ConvertOptions(column_types=dict.fromkeys([*COLUMNS, "salary-class"], pa.string()))
    parse = pyarrow.csv.ParseOptions(delimiter=";")
    table = pyarrow.csv.read_csv(adult / "adult.csv", parse_options=parse, convert_options=convert)
    for column in COLUMNS:
        shutil.copy(adult / f"adult_hierarchy_{column}.csv", to / f"{column}.csv")
    age, education = table.column("age").to_numpy(zero_copy_only=False), table.column("education").to_pylist()
    order = np.argsort(np.array(education), kind="stable")
    begin = {value: place for place, value in reversed(list(enumerate(np.array(education)[order])))}
    size = {value: education.count(value) for value in begin}
    starts, sizes = np.array([begin[value] for value in education]), np.array([size[value] for value in education])
    tables = [table]
    for _ in range(_TRIES):
        other = order[starts + (draw.random(len(age)) * sizes).astype(np.int64)]
        tables.append(table.set_column(table.column_names.index("age"), "age", pa.array(age[other])))
    return _distinct(pa.concat_tables(tables))


def _generated_pool(to: Path, draw: np.random.Generator) -> pa.Table:
    """Distinct records of columns with as many values as those of Adult, and hierarchies of their heights."""
    columns = {}
    for column, (size, height) in COLUMNS.items():
        values = [str(i + 17) if column == "age" else f"{column}-{i}" for i in range(size)]
        groups = [";".join(f"{column} {level} {i // 2**level}" for level in range(1, height)) for i in range(size)]
        lines = [";".join(filter(None, (value, group, "*"))) for value, group in zip(values, groups, strict=True)]
        (to / f"{column}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
        share = 1 / np.arange(1, size + 1)
        columns[column] = np.array(values)[draw.choice(size, 3 * _POOL, p=share / share.sum())]
    columns["salary-class"] = np.array(["<=50K", ">50K"])[draw.integers(0, 2, 3 * _POOL)]
    return _distinct(pa.table(columns))


def _distinct(table: pa.Table) -> pa.Table:
    """At most so many records of which no two are alike in the quasi-identifiers."""
    first = table.append_column("place", pa.array(np.arange(table.num_rows))).group_by(list(COLUMNS))
    places = np.sort(first.aggregate([("place", "min")]).column("place_min").to_numpy())
    return table.take(pa.array(places[:_POOL])).select([*COLUMNS, "salary-class"])


# ------------------------------------------------------------------------------------------------ the lean program


def _lean(data: Path, home: Path, *, writes: bool) -> Measured:
    """Measure the lean program; always in the run whose table shows it."""
    out = home / "lean"
    out.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "benchmarks.jobs", str(data), str(out) if writes else ""]
    ran = case_study.checked("lean program", measure(command, directory=case_study.root()))
    shutil.rmtree(out)
    return ran


def lean(data: Path, out: Path | None) -> int:
    """Count the distinct records, and write the table at the first level of each hierarchy; returns their number."""
    names = list(COLUMNS)
    table = pq.read_table(data / "table", columns=[*names, "salary-class"], read_dictionary=names)
    table = table.unify_dictionaries().combine_chunks()
    key, radix = np.zeros(table.num_rows, dtype=np.int64), 1
    for name in names:
        codes = table.column(name).chunk(0)
        key += codes.indices.to_numpy().astype(np.int64) * radix
        radix *= len(codes.dictionary)
    distinct = len(pc.value_counts(pa.array(key)))
    if out is not None:
        for name in names:
            lines = [line.split(";") for line in (data / f"{name}.csv").read_text(encoding="utf-8").splitlines()]
            label = {line[0]: line[1] for line in lines}
            codes = table.column(name).chunk(0)
            words = pa.array([label.get(value, "*") for value in codes.dictionary.to_pylist()])
            shown = pa.DictionaryArray.from_arrays(codes.indices, words)
            table = table.set_column(table.column_names.index(name), name, shown)
        pq.write_table(table, out / "released.parquet", store_schema=False)
    return distinct


if __name__ == "__main__":
    print(lean(Path(sys.argv[1]), Path(sys.argv[2]) if sys.argv[2] else None))
