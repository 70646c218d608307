"""Which people an intruder finds by a protected table: the order of stages, and every Spark action of it.

read → encode → protect → link → judge

The protected table is read as it was published. The vault, or an id it holds, tells whose each row is; so each link is
known to be right or wrong. All of it is exact and for the trusted zone alone.
"""

from __future__ import annotations

import datetime as dt
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pyspark.sql import DataFrame, SparkSession

from privrisk_spark import __version__
from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import Batches, Scratch
from privrisk_spark.engine.labels import labels
from privrisk_spark.engine.released import parts_at
from privrisk_spark.engine.shared import scratch_of
from privrisk_spark.engine.sources import files_only_spark_knows
from privrisk_spark.errors import InputError, RefusedError, SchemaError
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.arrays import FloatArray
from privrisk_spark.pipelines.assess.opened import open_release
from privrisk_spark.planning.attacks import (
    PROTECTED,
    SHARE,
    attack_notes,
    attack_of,
    attacked,
    in_words,
    known_columns,
    read_policy,
    refuse_cost,
    weights_of,
)
from privrisk_spark.planning.lakes import pin_tables
from privrisk_spark.planning.places import check_private_place, refuse_input
from privrisk_spark.policy.assessment import MaskedTable
from privrisk_spark.policy.attacks import CellReading
from privrisk_spark.policy.policy import Policy
from privrisk_spark.reporting.pages import render_attack
from privrisk_spark.results.attacks import AttackResult
from privrisk_spark.runs.places import held, write_json, write_text
from privrisk_spark.runs.progress import Progress, warn_of_one_row, write_status
from privrisk_spark.runs.vaults import vault_at
from privrisk_spark.runs.workplace import Workplace, output_at
from privrisk_spark.stages.assessing.classes import Layout
from privrisk_spark.stages.assessing.sources import Release, collect_strangers, open_released_rows
from privrisk_spark.stages.attacking.distance import (
    Comparison,
    Outcomes,
    collect_links,
    collect_outcomes,
    drawn,
    linked,
    number_ends,
    rows_of_nodes,
    store_file,
)
from privrisk_spark.stages.attacking.protected import (
    Tuples,
    collect_decided,
    collect_repeated_ids,
    collect_shown,
    collect_tuples,
    decided_forms,
    named_forms,
    people,
)
from privrisk_spark.stages.tables.completeness import collect_files_read
from privrisk_spark.stages.tables.materialize import collect_codes
from privrisk_spark.stages.tables.opening import collect_hierarchies, open_table
from privrisk_spark.stages.tables.tidying import collect_values_read
from privrisk_spark.storage.locations import Location
from privrisk_spark.storage.opening import open_store

FILES = ("measures.json", "attack.json", "report.html", "pairs", "status.json", "unknown_values", ".lock")

STAGES = 5

READ = ("table", "attack")
"""Parts of a policy that name the tables that are read."""


def check_output(policy: Policy, output: str) -> Path:
    """Return the directory the findings go to, resolved.

    Raises
    ------
    ConfigError
        If it is no place for what stays private.
    """
    protected = attack_of(policy).protected
    more = [(PROTECTED, protected)] if isinstance(protected, MaskedTable) else []
    return check_private_place(policy, output, files=FILES, what="attacks", more=more)


@dataclass(frozen=True, eq=False)
class Run:
    """What every stage of an attack needs.

    Attributes
    ----------
    spark : SparkSession
    policy : Policy
    place : Path
        Where the findings go.
    scratch : Scratch
    progress : Progress
        Records the stages as they end.
    """

    spark: SparkSession
    policy: Policy
    place: Path
    scratch: Scratch
    progress: Progress


@dataclass(frozen=True, eq=False)
class Opened:
    """The original table and the protected one, as Spark opened them.

    Attributes
    ----------
    table : DataFrame
    given : bool
        Whether the caller gave it, so that it is read by Spark alone.
    hierarchies : dict of quasi-identifier to Hierarchy
    known : dict of quasi-identifier to Hierarchy
        Those the intruder knows.
    release : Release
    decisions : DataFrame or None
        Of the vault, where the release is our own.
    """

    table: DataFrame
    given: bool
    hierarchies: dict[str, Hierarchy]
    known: dict[str, Hierarchy]
    release: Release
    decisions: DataFrame | None

    @property
    def positions(self) -> list[int]:
        """Of the known columns among all quasi-identifiers."""
        return [list(self.hierarchies).index(name) for name in self.known]


def attack(
    spark: SparkSession,
    policy: Policy,
    *,
    place: Path,
    run_id: str,
    date: dt.date,
    table: DataFrame | None = None,
) -> AttackResult:
    """Attack a protected table, and write ``measures.json``, ``attack.json``, ``report.html`` and ``pairs/``.

    Parameters
    ----------
    spark : SparkSession
    policy : Policy
        Its table, quasi-identifiers and ``attack``.
    place : Path
        As :func:`check_output` returns it; every worker must see it.
    run_id : str
    date : date
        Business date.
    table : DataFrame, optional
        Of the same session; read instead of the policy's table. What the policy says of its columns holds.

    Raises
    ------
    InputError
        Exit code 2: the policy or the data must be mended.
    EngineError
        Exit code 3: running again may help.
    """
    given = files_only_spark_knows(spark, table, {} if table is not None else {"table": policy.table})
    pinned = pin_tables(policy, READ, given=table is not None)
    refuse_input({"--output": Location("file", "", str(place))}, {**given, **pinned.places})
    policy = pinned.policy
    with held(place, run_id) as path, scratch_of(spark, policy, path) as scratch:
        run = Run(spark, policy, place, scratch, Progress(place, run_id, STAGES, labels(spark)))
        opened = read(run, table)
        encoded, n_rows = encode(run, opened)
        protected = protect(run, opened, encoded)
        tried = link(run, opened, protected)
        result = judge(run, opened, protected, tried, run_id=run_id, date=date, records=n_rows)
        write(run, result, tried)
        code = 0 if result.passed else RefusedError.exit_code
        write_status(place, run_id, phase="attacked", code=code, message=result.paragraph)
    return result


def read(run: Run, table: DataFrame | None) -> Opened:
    """Stage: open the original table, the protected one, and what tells whose its rows are."""
    with run.progress.stage("read") as stage:
        spark, policy, asked = run.spark, run.policy, attack_of(run.policy)
        reading = read_policy(policy)
        opened = open_table(spark, reading, table)
        if table is None:
            collect_files_read(spark, reading.table, opened.as_read, key="table")
        collect_values_read(opened)
        hierarchies = collect_hierarchies(reading, opened.rows, [], given=table is not None)
        names = known_columns(policy)
        known = {name: hierarchies[name] for name in names}
        release = open_release(spark, policy, asked.protected, names, key=PROTECTED)
        collect_strangers(release, known, key=PROTECTED)
        decisions = None if release.manifest is None else open_decisions(spark, policy, release.manifest["run_id"])
        stage.sentence = f"Opened the table and {release.title}; the intruder knows {len(known)} columns."
    return Opened(opened.rows, table is not None, hierarchies, known, release, decisions)


def open_decisions(spark: SparkSession, policy: Policy, run_id: str) -> DataFrame:
    """Open the decisions of a release that the vault holds.

    Raises
    ------
    InputError
        If a later run has replaced them, or they are gone.
    """
    left = Workplace(output_at(policy.places.path), vault_at(policy.places.vault), run_id).left_at
    if left is None or not any(True for _ in open_store(left).entries("decisions")):
        raise InputError(
            f"{PROTECTED}: the vault no longer holds the decisions of release '{run_id}', which tell whose its rows "
            "are; release again, or name a protected table with an id: {path: …, record_id: …}."
        )
    return parts_at(spark, left.below("decisions"))


def encode(run: Run, opened: Opened) -> tuple[Batches, int]:
    """Stage: the original table as codes, and its rows."""
    with run.progress.stage("encode") as stage:
        unique = run.policy.table.record_id is not None
        rows, n_rows = collect_codes(
            run.scratch,
            opened.table,
            read_policy(run.policy),
            opened.hierarchies,
            run.place,
            given=opened.given,
            unique=unique,
        )
        if not n_rows:
            raise SchemaError("table: it has no rows.")
        warn_of_one_row(n_rows)
        stage.sentence = "Encoded every value as an integer code."
    return rows, n_rows


@dataclass(frozen=True, eq=False)
class Protected:
    """The two files in which an intruder may search, and who is who in them.

    Attributes
    ----------
    rows : Tuples
        Of the protected table.
    present : ndarray of float64, shape (p,)
        Probability that somebody with the form of each is in the protected table.
    people : Tuples
        Of the original table.
    known, shown : Tuples
        Of the people who are tried, and of their rows in the protected table.
    records : Batches
        Those that are tried, beside their protected forms.
    """

    rows: Tuples
    present: FloatArray
    people: Tuples
    known: Tuples
    shown: Tuples
    records: Batches


def protect(run: Run, opened: Opened, encoded: Batches) -> Protected:
    """Stage: collect the distinct rows of both tables, and bring people together with their rows."""
    with run.progress.stage("protect") as stage:
        asked, most = attack_of(run.policy), run.policy.counting.sorted_vectors
        trees = list(opened.known.values())
        k, layout = len(trees), Layout(tuple(tree.n_nodes for tree in trees))
        released = open_released_rows(opened.release, opened.known, [], layout, identity=opened.decisions is None)
        rows = collect_tuples(released, schemas.nodes(k), most=most, key=PROTECTED)
        everybody = people(encoded, trees, opened.positions)
        of_people = known = collect_tuples(everybody, schemas.codes(k), most=most, key="table")
        some = drawn(everybody, share=asked.intruder.share, seed=asked.intruder.seed)
        if asked.intruder.share < 1:
            known = collect_tuples(some, schemas.codes(k), most=most, key=SHARE)
        if opened.decisions is None:
            again = collect_repeated_ids(released)
            if again:
                raise SchemaError(
                    f"{PROTECTED}.record_id: every row must have an id of its own, and {again:,} have none or one that "
                    "another has. Mend the column."
                )
            present, records = np.ones(len(rows.rows)), named_forms(some, released, k)
        else:
            decided = collect_decided(decided_forms(everybody, opened.decisions, opened.known), rows, most=most)
            if (decided < rows.rows).any():
                raise InputError(
                    f"{PROTECTED}: the release has rows that the vault's decisions do not give: the table, its "
                    "hierarchies or the vault are no longer those it was made with. Release again."
                )
            present, records = rows.rows / decided, decided_forms(some, opened.decisions, opened.known)
        # The join is read once, and not again for each attack.
        records = Batches.of_frame(run.scratch.write_frame(records.frame(), "records"))
        shown = collect_shown(records, rows, most=most)
        stage.sentence = f"The protected table has {rows.total:,} rows, {len(rows.rows):,} distinct ones."
    return Protected(rows, present, of_people, known, shown, records)


@dataclass(frozen=True, eq=False)
class Tried:
    """The records that were tried, and how their links came out.

    Attributes
    ----------
    outcomes : Outcomes
    pairs : DataFrame
        One row a record.
    """

    outcomes: Outcomes
    pairs: DataFrame


Attacks = Mapping[tuple[str, CellReading], Tried]
"""By what the intruder begins with, and what he takes generalized cells for."""


def link(run: Run, opened: Opened, protected: Protected) -> Attacks:
    """Stage: link every person to the nearest rows, and every row to the nearest people."""
    with run.progress.stage("link") as stage:
        asked, trees = attack_of(run.policy), list(opened.known.values())
        ends = tuple(
            number_ends(name, tree, rows_of_nodes(protected.people, j, tree)) if name in asked.numbers else None
            for j, (name, tree) in enumerate(opened.known.items())
        )
        compared = Comparison(tuple(trees), tuple(weights_of(run.policy).values()), ends)
        k = len(trees)
        person, row = schemas.codes(k), schemas.nodes(k)
        for known, searched in ((protected.known, protected.rows), (protected.shown, protected.people)):
            refuse_cost(asked, len(known.rows), len(searched.rows), k)
        everybody, tried = np.ones(len(protected.people.rows)), {}
        for reading in asked.cells:
            rows_at, people_at = (run.scratch.directory(f"{of}-{reading}") for of in ("rows", "people"))
            rows = store_file(rows_at, protected.rows, compared, protected.present, reading=reading)
            those = store_file(people_at, protected.people, compared, everybody, reading=reading)
            found = {
                "person": collect_links(run.scratch, rows, protected.known, f"person-{reading}"),
                "row": collect_links(run.scratch, those, protected.shown, f"row-{reading}"),
            }
            links = {
                "person": linked(protected.records, found["person"], known=person, own=row),
                # What is surely not released has no row that somebody could begin with: it was not linked.
                "row": linked(protected.records, found["row"], known=row, own=person),
            }
            for name, outcomes in links.items():
                pairs = run.scratch.write_frame(outcomes.frame(), f"pairs-{name}-{reading}")
                tried[name, reading] = Tried(collect_outcomes(Batches.of_frame(pairs)), pairs)
        stage.sentence = "Linked every person to the nearest rows, and every row to the nearest people."
        stage.status = "tested"
    return tried


def judge(
    run: Run,
    opened: Opened,
    protected: Protected,
    tried: Attacks,
    *,
    run_id: str,
    date: dt.date,
    records: int,
) -> AttackResult:
    """Stage: hold what was found against what was predicted, and against what may be found."""
    with run.progress.stage("judge") as stage:
        policy = run.policy
        searched = {"person": protected.rows, "row": protected.people}
        found = [
            attacked(name, cells, one.outcomes, searched[name].total, len(searched[name].rows))
            for (name, cells), one in tried.items()
        ]
        result = AttackResult(
            title=policy.run.name,
            run_id=run_id,
            created=date.isoformat(),
            version=__version__,
            protected=opened.release.title,
            rows=protected.rows.total,
            records=records,
            known=in_words(policy),
            weights=weights_of(policy),
            attacks=tuple(sorted(found, key=lambda one: -one.found.share)),
            at_most=attack_of(policy).correct_links_at_most,
            notes=attack_notes(policy, sampled=bool((protected.present < 1).any())),
        )
        stage.sentence = result.paragraph
        stage.status = "tested"
        stage.parameters = {"attacks": [one.sentence for one in result.attacks]}
    return result


def write(run: Run, result: AttackResult, tried: Attacks) -> None:
    """Put the pairs and the documents in their place."""
    shutil.rmtree(run.place / "pairs", ignore_errors=True)
    (run.place / "pairs").mkdir()
    for of, one in tried.items():
        name = "-".join(of)
        run.scratch.write_parquet(one.pairs, f"written-{name}").rename(run.place / "pairs" / name)
    write_json(run.place / "measures.json", result.measures())
    write_json(run.place / "attack.json", result.to_dict())
    write_text(run.place / "report.html", render_attack(result))
