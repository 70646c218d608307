"""How risky a table is, alone or against a release and a population: the order of stages, and every Spark action of it.

read → encode → count → measure → compare → attack → judge

Each subject, the table as it is and a release of it, is counted once; its classes lie in buckets, and every measure is
a tally of the classes of a bucket. Nothing is transformed or published: all of it is exact and for the trusted zone.
"""

from __future__ import annotations

import datetime as dt
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812 - the name every Spark program uses

from privrisk_spark import __version__
from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import Batches, Scratch, pinned
from privrisk_spark.errors import InputError, RefusedError, SchemaError
from privrisk_spark.kernels.adversary.process import Solution
from privrisk_spark.kernels.classes.classes import Classes
from privrisk_spark.planning.places import check_private_place
from privrisk_spark.policy.assessment import MaskedTable
from privrisk_spark.policy.dictionaries import Table
from privrisk_spark.policy.policy import Policy
from privrisk_spark.reporting.assessment_page import render_assessment
from privrisk_spark.reporting.verdict import paragraph
from privrisk_spark.results.assessment import Assessment, Measured, Subject, WorstClass, judged
from privrisk_spark.results.plots import Plot
from privrisk_spark.runs.places import held, write_json, write_text
from privrisk_spark.runs.progress import Progress, write_status
from privrisk_spark.stages.assessing import attack, measures, sources
from privrisk_spark.stages.assessing.classes import (
    Layout,
    buckets_of,
    count_rows,
    counted_rows,
    each_bucket,
    kept_tables,
    renamed,
    table_rows,
)
from privrisk_spark.stages.assessing.matched import Matched, as_doubles, collect_matched
from privrisk_spark.stages.assessing.opened import ALL, Opened
from privrisk_spark.stages.assessing.pairs import collect_concealment, collect_entropy_loss, collect_intervals
from privrisk_spark.stages.assessing.plots import plots_of
from privrisk_spark.stages.assessing.population import PeopleOf
from privrisk_spark.stages.assessing.records import CLASS_SIZE, POPULATION, ROWS, WEIGHT, of_records
from privrisk_spark.stages.assessing.special_uniques import Sought, collect_special
from privrisk_spark.stages.assessing.tallies import Asked, Released, Tallies, tally
from privrisk_spark.stages.counting.dense_sorted import StoredCounts
from privrisk_spark.stages.diagnostics.estimated import collect_held
from privrisk_spark.stages.tables.materialize import collect_codes

RECORDS = {"table": "records", "release": "released-records"}
"""Directory of the records of each subject."""

FILES = (
    "measures.json",
    "assessment.json",
    "report.html",
    "status.json",
    *RECORDS.values(),
    "unknown_values",
    ".lock",
)

MOST_CELLS = 2_000_000
"""Cells of a release a task holds to spread them over the table."""

Announce = Callable[[str], object]


def check_output(policy: Policy, output: str) -> Path:
    """Return the directory the assessment goes to, resolved.

    Raises
    ------
    ConfigError
        If it is no place for what stays private.
    """
    asked = policy.assess
    read_too: list[tuple[str, Table]] = []
    if isinstance(asked.release, MaskedTable):
        read_too.append((sources.RELEASE, asked.release))
    if asked.population is not None:
        read_too.append((sources.POPULATION, asked.population))
    return check_private_place(policy, output, files=FILES, what="assessments", more=read_too)


def assess(
    spark: SparkSession,
    policy: Policy,
    *,
    place: Path,
    run_id: str,
    date: dt.date,
    announce: Announce | None = None,
    table: DataFrame | None = None,
) -> Assessment:
    """Assess a table, and write ``measures.json``, ``assessment.json``, ``report.html`` and ``records/``.

    Parameters
    ----------
    spark : SparkSession
    policy : Policy
        Its table, columns and ``assess``; how it would release is not looked at.
    place : Path
        As :func:`check_output` returns it; every worker must see it.
    run_id : str
    date : date
    announce : callable, optional
        Called with what will be measured (``--explain``).
    table : DataFrame, optional
        Rows to assess in place of the policy's table.

    Raises
    ------
    InputError
        Exit code 2: the policy or the data must be mended.
    EngineError
        Exit code 3: running again may help.
    """
    with held(place, run_id) as scratch:
        result = _Assess(spark, policy, place, scratch, run_id, table).run(date, announce or (lambda _: None))
        code = 0 if result.passed else RefusedError.exit_code
        failed = sum(not verdict.passed for verdict in result.verdicts)
        message = f"assessment in {place}" + (f"; {failed} thresholds are missed" if failed else "")
        write_status(place, run_id, phase="assessed", code=code, message=message)
    return result


def plan_only(spark: SparkSession, policy: Policy, *, table: DataFrame | None = None) -> str:
    """Open everything an assessment needs, write nothing, and return what would be measured (``--dry-run``)."""
    return Opened.collect_of(spark, policy, table).explanation()


@dataclass(frozen=True, eq=False)
class _Counted:
    """A subject, counted: the parts of its rows, and what the classes hold."""

    name: str
    title: str
    rows: Batches
    layout: Layout
    buckets: int
    directory: str
    parts: tuple[str, ...]
    tables: tuple[Any, ...]
    held: tuple[sources.Vocabulary, ...]


@dataclass(eq=False)
class _Found:
    """What was measured of a set of a subject."""

    tallies: Tallies
    asked: Asked
    classes: str
    parts: list[dict[str, Any]] = field(default_factory=list)
    kept: T.StructType = field(default_factory=T.StructType)


class _Assess:
    """One run: the stages, in order."""

    def __init__(
        self,
        spark: SparkSession,
        policy: Policy,
        place: Path,
        scratch: Path,
        run_id: str,
        given: DataFrame | None = None,
    ) -> None:
        self.given = given
        self.spark, self.asked, self.place, self.run_id = spark, policy, place, run_id
        self.scratch = Scratch(spark, scratch)
        self.progress = Progress(place, run_id, 7)
        self.opened: Opened
        self.population: StoredCounts | None = None
        self.own: StoredCounts | None = None
        self.matched: Matched | None = None
        self.records: Batches
        self.special: dict[tuple[str, str], list[Measured]] = {}

    def run(self, date: dt.date, announce: Announce) -> Assessment:
        progress, assess = self.progress, self.asked.assess
        with progress.stage("read") as stage:
            self.opened = opened = Opened.collect_of(self.spark, self.asked, self.given)
            announce(opened.explanation())
            if opened.release is not None:
                sources.collect_strangers(opened.release, opened.hierarchies)
            vocabularies = sources.collect_vocabularies(self.asked, opened.table, opened.release)
            stage.sentence = f"Opened the table with {len(opened.hierarchies)} quasi-identifiers."
        with progress.stage("encode") as stage:
            encoded, rows = collect_codes(self.scratch, opened.table, opened.policy, opened.hierarchies, self.place)
            if not rows:
                raise SchemaError("table: it has no rows.")
            stage.sentence = "Encoded every value as an integer code."
        with progress.stage("count") as stage:
            counted = [self._count_table(encoded, rows, vocabularies)]
            if opened.release is not None:
                counted.append(self._count_release(opened.release, encoded, rows, vocabularies))
            self._count_population(encoded)
            stage.sentence = "Counted the rows of each combination of quasi-identifiers and sensitive values, once."
        with progress.stage("measure") as stage:
            found = self._measure(counted)
            stage.sentence = "Measured every class of each set of quasi-identifiers."
            stage.status = "tested"
        # One long task a set, which leaves the other cores to what follows.
        with ThreadPoolExecutor(1) as beside:
            special = beside.submit(self._special, found)
            with progress.stage("compare") as stage:
                pairs = list(self._compare(rows))
                stage.sentence = (
                    "Compared records with their released forms."
                    if pairs
                    else "No records to compare with released forms."
                )
                stage.status = "tested"
            with progress.stage("attack") as stage:
                self.special = special.result()
                subjects = [self._subject(one, found, pairs if one.name == "release" else []) for one in counted]
                if assess.records:
                    self._write_records(counted, found)
                stage.sentence = "Planned the attack of the adversary assumed on every group size."
                stage.status = "tested"
        with progress.stage("judge") as stage:
            verdicts = judged(assess.thresholds, subjects[-1])
            missed = sum(not verdict.passed for verdict in verdicts)
            stage.sentence = (
                f"Held the {subjects[-1].name} against {len(verdicts)} thresholds, and it misses {missed}."
                if verdicts
                else "No thresholds were given."
            )
        result = Assessment(
            title=self.asked.run.name,
            run_id=self.run_id,
            created=date.isoformat(),
            version=__version__,
            subjects=tuple(subjects),
            verdicts=verdicts,
            paragraph=paragraph(subjects, verdicts),
            notes=tuple(self._notes(counted)),
            stages=tuple(progress.records),
        )
        for name in RECORDS.values():
            shutil.rmtree(self.place / name, ignore_errors=True)
            if (self.scratch.path / name).exists():
                (self.scratch.path / name).rename(self.place / name)
        write_json(self.place / "measures.json", result.measures())
        write_json(self.place / "assessment.json", result.to_dict())
        write_text(self.place / "report.html", render_assessment(result))
        return result

    # ------------------------------------------------------------------ counting

    def _layout(self, held: Sequence[sources.Vocabulary], *, persons: bool, weighted: bool) -> Layout:
        return Layout(
            tuple(hierarchy.n_nodes for hierarchy in self.opened.hierarchies.values()),
            tuple(vocabulary.count for vocabulary in held),
            persons,
            weighted,
        )

    def _count_table(self, encoded: Batches, rows: int, vocabularies: Sequence[sources.Vocabulary]) -> _Counted:
        table, kept = self.asked.table, self.opened.policy.kept_columns
        layout = self._layout(vocabularies, persons=table.entity_id is not None, weighted=table.weight is not None)
        codes = {f"r{kept.index(vocabulary.name)}": vocabulary.codes for vocabulary in vocabularies}
        subject = table_rows(encoded, self.opened.hierarchies, codes, layout, more=[schemas.RECORD_ID])
        return self._count("table", "the table as it is", subject, layout, rows, vocabularies)

    def _count_release(
        self, release: sources.Release, encoded: Batches, rows: int, vocabularies: Sequence[sources.Vocabulary]
    ) -> _Counted:
        table, opened = self.asked.table, self.opened
        paired = release.given.record_id is not None and table.record_id is not None
        held = [vocabulary for vocabulary in vocabularies if sources.held_in(release, vocabulary.name)]
        layout = self._layout(held, persons=False, weighted=False)
        if not paired:
            subject = sources.open_released_rows(release, opened.hierarchies, held, layout)
            return self._count("release", release.title, subject, layout, rows, held)
        masked = sources.masked_columns(release, self.asked.assess.intervals, opened.table)
        subject = sources.open_released_rows(
            release, opened.hierarchies, held, layout, identity=True, numbers=list(masked.values())
        )
        layout = replace(layout, persons=table.entity_id is not None, weighted=table.weight is not None)
        kept = opened.policy.kept_columns
        numbers = {f"y{j}": f"r{kept.index(name)}" for j, name in enumerate(masked)}
        more = [schemas.RECORD_ID, *numbers.values()]
        more += [schemas.ENTITY] if layout.persons else []
        more += [schemas.SAMPLE_WEIGHT] if layout.weighted else []
        self.records = as_doubles(encoded, list(numbers.values()))
        mine = table_rows(self.records, opened.hierarchies, {}, self._layout([], persons=False, weighted=False), more)
        self.matched = collect_matched(self.scratch, mine, subject, layout, numbers, rows)
        return self._count("release", release.title, self.matched.rows, layout, rows, held)

    def _count(
        self, name: str, title: str, rows: Batches, layout: Layout, n_rows: int, held: Sequence[sources.Vocabulary]
    ) -> _Counted:
        directory, buckets = self.scratch.directory(f"counted-{name}"), buckets_of(n_rows)
        parts = self.scratch.collect_parts(count_rows(rows, layout, buckets, directory))
        tables = sources.totals(parts, layout)
        names = tuple(part["name"] for part in parts)
        return _Counted(name, title, rows, layout, buckets, directory, names, tables, tuple(held))

    def _count_population(self, encoded: Batches) -> None:
        """Count the population, and the table itself where a missing value may be any."""
        opened = self.opened
        counting = (self.scratch, encoded)
        if opened.population is not None:
            (one,) = opened.policy.dictionaries
            one = replace(one, name="population", key=sources.POPULATION)
            self.population = collect_held(*counting, opened.population, opened.policy, opened.hierarchies, one)
        if any(spec.nulls == "wildcard" for spec in self.asked.quasi_identifiers.values()):
            if self.asked.table.entity_id is not None:
                raise InputError(
                    "columns: nulls: wildcard and table.entity_id together are not available: a missing value that may "
                    "be any makes classes overlap, and persons of overlapping classes are not counted; use 'suppress' "
                    "or 'own-value'."
                )
            policy = sources.own(opened.policy)
            (one,) = policy.dictionaries
            self.own = collect_held(*counting, None, policy, opened.hierarchies, replace(one, name="own"))

    def _compare(self, rows: int) -> Iterator[Measured]:
        """Measures that need to know which record became which."""
        matched, assess, opened = self.matched, self.asked.assess, self.opened
        if matched is None:
            return
        of = {"subject": "release", "set": ALL}
        yield from collect_entropy_loss(matched, opened.hierarchies, of)
        if assess.concealment:
            yield from collect_concealment(matched, rows, list(opened.hierarchies.values()), of)
        kept = opened.policy.kept_columns
        asked = {name: (interval, f"r{kept.index(name)}") for name, interval in assess.intervals.items()}
        yield from collect_intervals(self.scratch, matched, self.records, asked, of)

    # ----------------------------------------------------------------- measuring

    def _measure(self, counted: Sequence[_Counted]) -> dict[str, dict[str, _Found]]:
        """Measure each set of each subject; the release first, whose cells the table is spread over."""
        found: dict[str, dict[str, _Found]] = {one.name: {} for one in counted}
        for number, (set_name, columns) in enumerate(self.opened.sets.items()):
            released: Released | None = None
            for one in reversed(counted):
                result = self._measure_set(one, number, columns, released)
                found[one.name][set_name] = result
                if one.name == "release":
                    released = self._cells(result)
        return found

    def _cells(self, found: _Found) -> Released | None:
        """Cells of a release, if a task can hold them."""
        if sum(part["classes"] for part in found.parts) > MOST_CELLS:
            return None
        table = kept_tables(found.classes, found.parts)
        names = schemas.nodes(len(found.asked.hierarchies))
        nodes = np.column_stack([table.column(name).to_numpy() for name in names])
        return Released(nodes, table.column(ROWS).to_numpy())

    def _measure_set(self, one: _Counted, number: int, columns: Sequence[str], released: Released | None) -> _Found:
        opened, assess = self.opened, self.asked.assess
        names = list(opened.hierarchies)
        positions = [names.index(column) for column in columns]
        layout, directory, parts, buckets = one.layout, one.directory, one.parts, one.buckets
        if positions != list(range(len(names))):
            directory = self.scratch.directory(f"counted-{one.name}-{number}")
            layout = one.layout.of_set(positions)
            rows = renamed(counted_rows(self.spark, one.directory, one.parts, one.layout), positions, layout.others)
            parts = tuple(
                part["name"] for part in self.scratch.collect_parts(count_rows(rows, layout, buckets, directory))
            )
        hierarchies = tuple(opened.hierarchies[column] for column in columns)
        tables = one.tables
        label = assess.label
        held = [vocabulary.name for vocabulary in one.held]
        sensitive = [v for v in one.held if v.name in assess.sensitive or self._is_sensitive(v.name)]
        asked = Asked(
            hierarchies=hierarchies,
            k=assess.k,
            worst=assess.worst,
            thresholds=tuple(assess.risk_above),
            bounds={name: bound for name, bound in assess.thresholds.items() if name not in _FROM_OTHERS},
            sensitive=tuple(v.sensitive(assess.sensitive.get(v.name)) for v in sensitive),
            label=held.index(label) if label in held else None,
            tables=tables,
            cells=one.name == "release",
            released=released,
        )
        if layout.persons:
            asked = replace(asked, tables=self._persons_holding(directory, parts, buckets, layout))
        target = self.scratch.directory(f"classes-{one.name}-{number}")
        measured = _measured(
            asked,
            population=self._people(self.population, positions),
            own=self._people(self.own, positions) if one.name == "table" else None,
            equal=[i for i, name in enumerate(columns) if self.asked.quasi_identifiers[name].nulls != "wildcard"],
        )
        written = self.scratch.collect_parts(
            each_bucket(self.scratch, directory, parts, buckets, layout, measured, target)
        )
        tallies = Tallies.merged(Tallies.from_dict(part["tallies"]) for part in written)
        kept = [T.StructField(name, T.IntegerType(), False) for name in schemas.nodes(len(columns))]
        kept += [T.StructField(name, T.LongType(), False) for name in (ROWS, CLASS_SIZE)]
        if self.population is not None:
            kept.append(T.StructField(POPULATION, T.LongType(), False))
        if layout.weighted:
            kept.append(T.StructField(WEIGHT, T.DoubleType(), False))
        return _Found(tallies, asked, target, written, T.StructType(kept))

    def _is_sensitive(self, name: str) -> bool:
        return self.asked.columns[name].role == "sensitive"

    def _persons_holding(self, directory: str, parts: Sequence[str], buckets: int, layout: Layout) -> tuple[Any, ...]:
        """How often persons of a class hold each value, over all classes."""
        bounds = layout.bounds[len(layout.radices) :]

        def measured(classes: Classes) -> tuple[pa.Table | None, Mapping[str, Any]]:
            held = []
            for runs, bound in zip(classes.held, bounds, strict=True):
                total = np.zeros(bound, dtype=np.int64)
                np.add.at(total, runs.value, runs.count)
                held.append(total.tolist())
            return None, {"held": held}

        found = self.scratch.collect_parts(each_bucket(self.scratch, directory, parts, buckets, layout, measured, ""))
        return sources.totals(found, layout)

    def _people(self, counts: StoredCounts | None, positions: Sequence[int]) -> PeopleOf | None:
        if counts is None:
            return None
        return PeopleOf(counts, tuple(self.opened.hierarchies.values()), tuple(positions))

    # -------------------------------------------------------------------- values

    def _subject(self, one: _Counted, found: Mapping[str, Mapping[str, _Found]], more: Sequence[Measured]) -> Subject:
        assess, fraction = self.asked.assess, self.asked.assess.sampling_fraction
        measured: list[Measured] = []
        worst: list[WorstClass] = []
        plots: list[Plot] = []
        for set_name, columns in self.opened.sets.items():
            of = {"subject": one.name, "set": set_name}
            result = found[one.name][set_name]
            tallies, asked = result.tallies, result.asked
            original = found["table"][set_name].tallies if one.name == "release" else None
            measured += measures.identity(tallies, asked, of)
            measured += measures.population(tallies, asked, of, fraction)
            for special in self.special.get((one.name, set_name), ()):
                measured.append(replace(special, parameters={**of, **special.parameters}))
            measured += measures.attribute(tallies, asked, of)
            measured += measures.utility(tallies, asked, of, columns, original=original)
            worst += measures.worst_classes(tallies, asked, of, asked.hierarchies)
            planned = self._planned(result)
            if planned is not None and assess.adversary is not None:
                groups, solution, table = planned
                measured += attack.attacked(assess.adversary, groups, solution, table, of)
            plots += plots_of(tallies, asked, planned, assess.adversary, set_name)
        return Subject(one.name, one.title, (*measured, *more), tuple(worst), tuple(plots))

    def _planned(self, found: _Found) -> tuple[attack.Groups, Solution, attack.AttackTable] | None:
        policy = self.asked.assess.adversary
        if policy is None:
            return None
        histogram = found.tallies.population
        if histogram is not None and self.population is not None:
            groups = attack.Groups.of_population(histogram, self.population.dictionary_rows)
        else:
            own, fraction = found.tallies.compatible, self.asked.assess.sampling_fraction
            groups = attack.Groups.of_table(found.tallies.sizes if own is None else own, fraction)
        return groups, *attack.planned(policy, groups)

    def _special(self, found: Mapping[str, Mapping[str, _Found]]) -> dict[tuple[str, str], list[Measured]]:
        """Minimal sample uniques of each set of each subject, by their names."""
        asked, most = self.asked.assess.special_uniques, self.asked.counting.sorted_vectors
        if asked is None:
            return {}
        result: dict[tuple[str, str], list[Measured]] = {}
        sought: dict[tuple[str, str], Sought] = {}
        for subject, sets in found.items():
            for name, one in sets.items():
                if sum(part["classes"] for part in one.parts) > most:
                    reason = f"more than {most:,} distinct records (counting.sorted_vectors); assess smaller sets"
                    result[subject, name] = [Measured("special_uniques", None, {"reason": reason})]
                    continue
                k, parts = len(one.asked.hierarchies), tuple(part["name"] for part in one.parts)
                fraction = self.asked.assess.sampling_fraction or asked.dis_fraction
                sought[subject, name] = Sought(one.classes, parts, k, min(asked.size, k), fraction)
        return result | dict(zip(sought, collect_special(self.scratch, list(sought.values())), strict=True))

    def _notes(self, counted: Sequence[_Counted]) -> Iterator[str]:
        """What a reader must know besides."""
        table, release = self.asked.table, self.opened.release
        if table.entity_id is not None:
            yield "Class sizes, k and risks count distinct persons; sensitive values count persons who hold them."
            if release is not None and not counted[-1].layout.persons:
                yield (
                    "The release does not name its records (assess.release.record_id), so its classes count rows: one "
                    "person with several rows hides behind himself."
                )
        if table.weight is not None:
            yield "Sampling weights are told beside the class sizes; thresholds are about class sizes."
        nulls = sorted({spec.nulls for spec in self.asked.quasi_identifiers.values()})
        yield "Missing values: " + ", ".join(_NULLS[kind] for kind in nulls) + "."
        if release is not None and self.own is not None:
            yield "In the release a suppressed value is a value of its own: classes are counted by equality there."

    # ------------------------------------------------------------------- records

    def _write_records(self, counted: Sequence[_Counted], found: Mapping[str, Mapping[str, _Found]]) -> None:
        """Write each record's risks, for the set of all quasi-identifiers or the first one."""
        set_name, columns = next(iter(self.opened.sets.items()))
        names = list(self.opened.hierarchies)
        positions = [names.index(column) for column in columns]
        for one in counted:
            if schemas.RECORD_ID not in one.rows.schema.fieldNames():
                continue
            result = found[one.name][set_name]
            planned = self._planned(result)
            classes = pinned(self.spark, result.classes, [part["name"] for part in result.parts], result.kept)
            rows = of_records(
                renamed(one.rows, positions, [schemas.RECORD_ID]),
                classes.frame(),
                k=len(columns),
                record_id=self.asked.table.record_id or schemas.RECORD_ID,
                attack=None if planned is None else planned[2],
                fraction=self.asked.assess.sampling_fraction,
            )
            rows.frame().write.parquet(str(self.scratch.path / RECORDS[one.name]))


_NULLS = {
    "suppress": "suppressed, a value that tells nothing and is equal to other suppressed ones",
    "own-value": "a value like any other",
    "wildcard": "may be any value, so that such a record is compatible with many classes",
    "forbid": "none, they are an error",
}

_FROM_OTHERS = frozenset({"k_map", "journalist_max"})
"""Bounds that are no bound of a class's own number."""


def _measured(
    asked: Asked, *, population: PeopleOf | None, own: PeopleOf | None, equal: Sequence[int]
) -> Callable[[Classes], tuple[pa.Table, dict[str, Any]]]:
    """What a task does with the classes of a bucket; ``equal`` attributes have no missing value that may be any."""
    roots = np.array([hierarchy.root for hierarchy in asked.hierarchies], dtype=np.int32)

    def measured(classes: Classes) -> tuple[pa.Table, dict[str, Any]]:
        people = None if population is None else population(classes.nodes)
        compatible = None
        if own is not None:
            # What is suppressed, not missing, is equal to its like only: such a class hides nobody else.
            alone = (classes.nodes[:, equal] == roots[equal]).any(axis=1)
            compatible = np.where(alone, classes.sizes, np.maximum(classes.sizes, own(classes.nodes)))
        found = tally(classes, asked, people, compatible)
        kept: dict[str, Any] = {
            name: pa.array(np.ascontiguousarray(classes.nodes[:, i]))
            for i, name in enumerate(schemas.nodes(classes.nodes.shape[1]))
        }
        kept[ROWS] = pa.array(classes.rows)
        kept[CLASS_SIZE] = pa.array(classes.sizes if compatible is None else compatible)
        if people is not None:
            kept[POPULATION] = pa.array(people)
        if classes.millionths is not None:
            kept[WEIGHT] = pa.array(classes.millionths / 1e6)
        return pa.table(kept), {"tallies": found.to_dict(), "classes": len(classes)}

    return measured
