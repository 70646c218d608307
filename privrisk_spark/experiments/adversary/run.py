"""The case study of a planned attack (X15 §7): every Spark action of it, and the files.

Without a policy it runs on a generated table alone, and needs no Spark. With one, the policy's table is attacked as
well: its records are counted by age, race and sex, the registry is drawn by tasks and counted by cell, and the two
counts are joined. What is computed then is exact and for the trusted zone alone.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses
from pyspark.sql import types as T  # noqa: N812

from privrisk_spark import __version__
from privrisk_spark.engine.batches import Batches
from privrisk_spark.engine.sources import text
from privrisk_spark.errors import ConfigError, Fault, InputError, nearest
from privrisk_spark.experiments.adversary.case_study import Groups
from privrisk_spark.experiments.adversary.results import (
    AdversaryExperiment,
    AdversaryResult,
    AdversarySizes,
    run_adversary,
    run_without_table,
)
from privrisk_spark.experiments.generated.registry import OLDEST, RACES, TOP_CODED, YOUNGEST, Persons, Registry
from privrisk_spark.experiments.page import render_adversary
from privrisk_spark.planning.places import check_request
from privrisk_spark.policy.policy import Policy
from privrisk_spark.runs.places import check_place, held, local_path, write_json, write_text
from privrisk_spark.runs.progress import Progress, write_status
from privrisk_spark.stages.tables.opening import check_columns, read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LongArray = npt.NDArray[np.int64]

FILES = ("adversary.json", "adversary.csv", "adversary.html", "status.json", ".lock")

ATTRIBUTES = ("age", "race", "sex")
"""Quasi-identifiers a policy must have, by these names."""

_PEOPLE = T.StructType([T.StructField("cell", T.IntegerType()), T.StructField("registered", T.IntegerType())])


def check_output(policy: Policy | None, output: str) -> Path:
    """Return the directory the experiments go to, resolved.

    Raises
    ------
    ConfigError, InputError
        If the policy's figures may not be computed exactly, it has no age, race and sex, or the directory is no place
        for them.
    """
    if policy is None:
        place = local_path(output)
        check_place(place, files=FILES, what="experiments")
        return place
    there = list(policy.quasi_identifiers)
    faults = [
        Fault(
            f"columns.{name}", f"must be a quasi-identifier: the registry knows age, race and sex{nearest(name, there)}"
        )
        for name in ATTRIBUTES
        if name not in there
    ]
    if faults:
        raise ConfigError(faults)
    return check_request(policy, output, files=FILES, what="experiments")


def adversary(
    spark: SparkSession | None,
    policy: Policy | None,
    sizes: AdversarySizes,
    *,
    place: Path,
    run_id: str,
    date: dt.date,
) -> AdversaryResult:
    """Run the case study and write ``adversary.json``, ``adversary.csv`` and ``adversary.html``.

    Parameters
    ----------
    spark : SparkSession or None
        Needed for a policy alone.
    policy : Policy or None
        Of the kind ``risk``, with the quasi-identifiers age, race and sex.
    sizes : AdversarySizes
    place : Path
        As :func:`check_output` returns it.
    run_id : str
    date : date
        Business date.

    Raises
    ------
    InputError
        Exit code 2: the policy or the data must be mended.
    EngineError
        Exit code 3: running again may help.
    """
    registry = Registry(sizes.rows, sizes.seed)
    with held(place, run_id):
        progress = Progress(place, run_id, 4 + (policy is not None))
        tables: list[tuple[str, Persons]] = []
        notes: list[str] = []
        with progress.stage("generate") as stage:
            tables.append(("generated", Persons.generated(sizes.seed, sizes.records)))
            stage.sentence = f"Generated a table of {sizes.records:,} records."
        if policy is not None and spark is not None:
            with progress.stage("read") as stage:
                frame = read(spark, policy.table, key="table")
                check_columns(frame, policy)
                persons, left_out = collect_persons(frame)
                tables.append((policy.run.name, persons))
                notes += _notes(policy.run.name, persons, left_out)
                stage.sentence = f"Counted {persons.total:,} records by age, race and sex."
        with progress.stage("registry") as stage:
            placed = [persons.placed(registry.law, sizes.seed) for _, persons in tables]
            wanted = np.unique(np.concatenate([cells for cells, _ in placed]))
            if spark is None:
                registered, people = registry.counted(wanted)
            else:
                registered, people = collect_groups(spark, registry, wanted)
            stage.sentence = f"Counted {registry.rows:,} of {registry.people:,} people by cell."
        with progress.stage("attack") as stage:
            experiments: list[AdversaryExperiment] = []
            for (name, persons), (cells, records) in zip(tables, placed, strict=True):
                at = np.searchsorted(wanted, cells)
                groups: Groups = (registered[at], people[at], records)
                experiments.append(run_adversary(name, persons, groups, sizes))
            by_group, deterred = run_without_table()
            stage.sentence = "Planned the attack in three settings."
        result = AdversaryResult(
            created=date.isoformat(),
            version=__version__,
            sizes=sizes,
            groups=by_group,
            deterred=deterred,
            experiments=tuple(experiments),
            notes=tuple(notes),
            private=policy is not None,
        )
        with progress.stage("write") as stage:
            write_text(place / "adversary.html", render_adversary(result))
            write_text(place / "adversary.csv", result.to_csv())
            write_json(place / "adversary.json", result.to_dict())
            stage.sentence = "Wrote data and plots."
        write_status(place, run_id, phase="written", code=0, message=f"experiments in {place}")
    return result


def collect_persons(table: DataFrame) -> tuple[Persons, int]:
    """Count records by age, race and sex; the second is how many lack one of them.

    Races that are none of Adult's count as 'Other', ages nobody has in the registry as the next one outside.

    Raises
    ------
    InputError
        If no record has all three.
    """
    race, sex = (F.lower(F.trim(text(table, name))) for name in ("race", "sex"))
    race_code = F.when(race.isNotNull(), F.lit(len(RACES) - 1))
    for code, label in enumerate(RACES[:-1]):
        race_code = F.when(race == label.lower(), F.lit(code)).otherwise(race_code)
    sex_code = F.when(sex.isin("male", "m"), F.lit(0)).when(sex.isin("female", "f"), F.lit(1))
    age = text(table, "age").try_cast("double").try_cast("int")
    inside = F.greatest(F.lit(YOUNGEST - 1), F.least(F.lit(OLDEST + 1), age))
    codes = table.select(F.when(age.isNotNull(), inside).alias("age"), race_code.alias("race"), sex_code.alias("sex"))
    found = codes.groupBy(*ATTRIBUTES).agg(F.count("*").alias("records")).toArrow()
    counts = found.column("records").to_numpy().astype(np.int64)
    known = np.ones(len(counts), dtype=np.bool_)
    columns = []
    for name in ATTRIBUTES:
        column = found.column(name).combine_chunks()
        known &= column.is_valid().to_numpy(zero_copy_only=False)
        columns.append(column.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64))
    if not known.any():
        raise InputError(
            "table: no row has a whole number as its age, a race, and a sex that is Male or Female (M or F); nothing "
            "can be matched with the registry."
        )
    age, race_of, sex_of = (column[known] for column in columns)
    persons = Persons(age, race_of, sex_of, counts[known]).in_order()
    return persons, int(counts[~known].sum())


def registry_rows(spark: SparkSession, registry: Registry) -> DataFrame:
    """The people of a registry, drawn by tasks: their cell, and whether they are registered."""
    law, seed = registry.law, registry.seed

    def drawn(part: tuple[int, int, int]) -> Iterator[pa.Table]:
        number, people, registered = part
        cells = law.drawn(seed, number, people)
        flags = (np.arange(people) < registered).astype(np.int32)
        yield pa.table({"cell": pa.array(cells), "registered": pa.array(flags)})

    return Batches.of_parts(spark, registry.parts, drawn, _PEOPLE).frame()


def collect_groups(spark: SparkSession, registry: Registry, cells: LongArray) -> tuple[LongArray, LongArray]:
    """Registered people and all people of cells, counted where they are drawn; only those of the cells are collected.

    Parameters
    ----------
    spark : SparkSession
    registry : Registry
    cells : ndarray of int64, shape (m,)
        Ascending, distinct; -1 for one nobody is in.

    Returns
    -------
    registered, people : ndarray of int64, shape (m,)
    """

    def listed(part: tuple[int, Sequence[int]]) -> Iterator[pa.Table]:
        yield pa.table({"cell": pa.array(part[1], pa.int32())})

    wanted = Batches.of_parts(
        spark, [(0, cells.tolist())], listed, T.StructType([T.StructField("cell", T.IntegerType())])
    ).frame()
    counted = (
        registry_rows(spark, registry)
        .groupBy("cell")
        .agg(F.sum("registered").alias("registered"), F.count("*").alias("people"))
    )
    found = counted.join(F.broadcast(wanted), "cell", "left_semi").toArrow()
    at = np.searchsorted(cells, found.column("cell").to_numpy())
    result = np.zeros((2, len(cells)), dtype=np.int64)
    for row, name in zip(result, ("registered", "people"), strict=True):
        row[at] = found.column(name).to_numpy()
    return result[0], result[1]


def _notes(name: str, persons: Persons, left_out: int) -> Iterator[str]:
    """What a reader must know besides."""
    if left_out:
        yield f"{name}: {left_out:,} records without a whole age, a race, and a sex of Male or Female are left out."
    outside = int(persons.records[(persons.age < YOUNGEST) | (persons.age > OLDEST)].sum())
    if outside:
        yield f"{name}: {outside:,} records of an age outside {YOUNGEST} to {OLDEST}, which nobody in the registry has."
    top = int(persons.records[persons.age == TOP_CODED].sum())
    if top:
        yield f"{name}: {top:,} records top-coded at {TOP_CODED} have an age from {TOP_CODED} to {OLDEST} put to them."
    yield (
        f"{name}: the paper has 32,561 records of Adult; where incomplete ones are left out there are fewer. "
        "Nothing but age, race and sex is used; hierarchies are not, as the records are attacked as they are."
    )
