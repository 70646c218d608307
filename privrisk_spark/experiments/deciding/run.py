"""Experiments on deciding (F12 chapters 3 to 5): every Spark action of them, and the files.

Without a policy they run on a generated table alone, and need no Spark. A policy adds its own table, collected as
distinct records; what is computed then is exact and for the trusted zone alone.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from privrisk_spark import __version__
from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import Scratch
from privrisk_spark.errors import SchemaError
from privrisk_spark.experiments.deciding.results import DecidingResult, Experiment, Sizes, run
from privrisk_spark.experiments.deciding.subject import Subject
from privrisk_spark.experiments.page import render_deciding
from privrisk_spark.kernels.counting.consistent import Axis
from privrisk_spark.kernels.disclosure.utility import node_utility
from privrisk_spark.planning.disclosure import sensitivity
from privrisk_spark.planning.places import check_request
from privrisk_spark.policy.policy import Policy
from privrisk_spark.runs.places import check_place, held, local_path, write_json, write_text
from privrisk_spark.runs.progress import Progress, write_status
from privrisk_spark.stages.counting.dense_sorted import collect_vectors, vectors_of_table
from privrisk_spark.stages.tables.materialize import collect_codes
from privrisk_spark.stages.tables.opening import check_columns, collect_hierarchies, read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES = ("deciding.json", "deciding.csv", "deciding.html", "status.json", "unknown_values", ".lock")

MOST_NODES = 20_000
"""Largest lattice of a table; of more attributes, the first are taken."""


def check_output(policy: Policy | None, output: str) -> Path:
    """Return the directory the experiments go to, resolved.

    Raises
    ------
    ConfigError, InputError
        If the policy's figures may not be computed exactly, or the directory is no place for them.
    """
    if policy is None:
        place = local_path(output)
        check_place(place, files=FILES, what="experiments")
        return place
    return check_request(policy, output, files=FILES, what="experiments")


def deciding(
    spark: SparkSession | None,
    policy: Policy | None,
    sizes: Sizes,
    *,
    place: Path,
    run_id: str,
    date: dt.date,
) -> DecidingResult:
    """Run the experiments and write ``deciding.json``, ``deciding.csv`` and ``deciding.html``.

    Parameters
    ----------
    spark : SparkSession or None
        Needed for a policy alone.
    policy : Policy or None
        Of the kind ``risk``.
    sizes : Sizes
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
    with held(place, run_id) as scratch:
        progress = Progress(place, run_id, 3 + 2 * (policy is not None))
        subjects: list[Subject] = []
        notes: list[str] = []
        with progress.stage("generate") as stage:
            whole = Subject.generated(sizes.seed, sizes.rows, sizes.attributes)
            subjects.append(whole.within(MOST_NODES))
            notes += narrowed(whole, subjects[-1])
            stage.sentence = f"Generated a table of {sizes.rows:,} rows."
        if policy is not None and spark is not None:
            with progress.stage("read") as stage:
                whole = collect_subject(spark, policy, Scratch(spark, scratch), place)
                subjects.append(whole.within(MOST_NODES))
                notes += [*_notes(policy, whole.name), *narrowed(whole, subjects[-1])]
                stage.sentence = f"Collected {len(whole.counts):,} distinct records."
        experiments: list[Experiment] = []
        for subject in subjects:
            with progress.stage(f"experiments on {subject.name}") as stage:
                experiments.append(run(subject, sizes))
                stage.sentence = f"Searched lattices of {subject.k} attributes."
        result = DecidingResult(
            created=date.isoformat(),
            version=__version__,
            sizes=sizes,
            experiments=tuple(experiments),
            notes=tuple(notes),
            private=policy is not None,
        )
        with progress.stage("write") as stage:
            write_text(place / "deciding.html", render_deciding(result))
            write_text(place / "deciding.csv", result.to_csv())
            write_json(place / "deciding.json", result.to_dict())
            stage.sentence = "Wrote data and plots."
        write_status(place, run_id, phase="written", code=0, message=f"experiments in {place}")
    return result


def collect_subject(spark: SparkSession, policy: Policy, scratch: Scratch, place: Path) -> Subject:
    """Collect a policy's table as distinct records over its hierarchies.

    Raises
    ------
    InputError
        If the table cannot be used, or has too many distinct records for the driver.
    """
    table = read(spark, policy.table, key="table")
    check_columns(table, policy)
    if table.isEmpty():
        raise SchemaError("table: it has no rows.")
    hierarchies = collect_hierarchies(policy, table, [])
    encoded, _ = collect_codes(scratch, table, policy, hierarchies, place)
    k = len(hierarchies)
    records = scratch.write_frame(vectors_of_table(encoded, k, 0), "records")
    vectors, counts = collect_vectors(records, schemas.codes(k), most=policy.counting.sorted_vectors)
    return Subject(
        policy.run.name,
        tuple(hierarchies),
        tuple(Axis(hierarchy.at_depth, hierarchy.ancestor) for hierarchy in hierarchies.values()),
        sensitivity(policy.risk.sensitivity, hierarchies).weights,
        tuple(node_utility("depth", hierarchy.depth, hierarchy.n_under) for hierarchy in hierarchies.values()),
        vectors,
        counts,
    )


def _notes(policy: Policy, name: str) -> Iterator[str]:
    """What a reader must know besides."""
    if policy.risk.sensitivity.form != "linear":
        yield (
            f"{name}: the policy's sensitivity is of the form '{policy.risk.sensitivity.form}'; here its weights "
            "are added, as in F12 §4.6 and as minimum cuts need it."
        )
    if policy.utility.measure != "depth":
        yield f"{name}: the policy's utility is '{policy.utility.measure}'; here it is depth."
    if policy.dictionary.kind != "self" or policy.dictionary.consistency != "subsumes":
        yield f"{name}: the policy's dictionary is not used; the attacker knows the table, and values subsume."


def narrowed(whole: Subject, used: Subject) -> Iterator[str]:
    """Say which attributes were left out."""
    if used.k < whole.k:
        yield (
            f"{used.name}: the first {used.k} of {whole.k} attributes, so that a record's lattice has at most "
            f"{MOST_NODES:,} nodes."
        )
