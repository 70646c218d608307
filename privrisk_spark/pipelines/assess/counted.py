"""Each subject, the table as it is and a release of it, counted once: its classes lie in buckets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import Batches
from privrisk_spark.engine.counts import StoredCounts
from privrisk_spark.errors import InputError
from privrisk_spark.pipelines.assess.opened import Opened, population_of
from privrisk_spark.pipelines.run import ResultRun
from privrisk_spark.stages.assessing.classes import Layout, buckets_of, count_rows, table_rows
from privrisk_spark.stages.assessing.households import HOUSEHOLD, with_household
from privrisk_spark.stages.assessing.matched import Matched, as_doubles, collect_matched
from privrisk_spark.stages.assessing.sources import (
    Release,
    Vocabulary,
    held_in,
    masked_columns,
    numeric_ids,
    open_released_rows,
    totals,
)
from privrisk_spark.stages.counting.dense_sorted import collect_held
from privrisk_spark.storage.parts import PartDirectory
from privrisk_spark.tables.encode import dictionary_rows


@dataclass(frozen=True, eq=False)
class Encoded:
    """The table as codes, materialized in scratch.

    Attributes
    ----------
    rows : Batches
        ENCODED, resolved.
    """

    rows: Batches
    n_rows: int


@dataclass(frozen=True, eq=False)
class CountedSubject:
    """The rows of a subject, and what its classes hold.

    Attributes
    ----------
    name : {"table", "release"}
    rows : Batches
        In the layout.
    parts : tuple of dict
        Names and facts of the parts there, each a slice of every bucket.
    tables : tuple of ndarray of int64
        How often each value of each held column occurs.
    vocabularies : tuple of Vocabulary
        Of the held columns.
    """

    name: str
    title: str
    rows: Batches
    layout: Layout
    buckets: int
    directory: PartDirectory
    parts: tuple[dict[str, Any], ...]
    tables: tuple[Any, ...]
    vocabularies: tuple[Vocabulary, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parts."""
        return tuple(part["name"] for part in self.parts)


@dataclass(frozen=True, eq=False)
class Pairs:
    """Records of the table and their released forms.

    Attributes
    ----------
    records : Batches
        The table with the compared columns as numbers.
    """

    matched: Matched
    records: Batches


@dataclass(frozen=True, eq=False)
class Counted:
    """All that is counted before it is measured.

    Attributes
    ----------
    subjects : tuple of CountedSubject
        The table, then the release if there is one.
    pairs : Pairs or None
        Where the release names its records.
    """

    subjects: tuple[CountedSubject, ...]
    pairs: Pairs | None
    population: StoredCounts | None


def count_subjects(run: ResultRun, opened: Opened, encoded: Encoded, vocabularies: Sequence[Vocabulary]) -> Counted:
    """Count the table, the release and the population.

    Parameters
    ----------
    vocabularies : sequence of Vocabulary
        Of all columns the classes of the table hold.

    Raises
    ------
    InputError
        If suppressed records are compatible with all where persons are counted.
    """
    _refuse_overlapping_persons(run, opened)
    subjects, pairs = [_count_table(run, opened, encoded, vocabularies)], None
    if opened.release is not None:
        subject, pairs = _count_release(run, opened, opened.release, encoded, vocabularies)
        subjects.append(subject)
    return Counted(tuple(subjects), pairs, _count_population(run, opened, encoded))


def _refuse_overlapping_persons(run: ResultRun, opened: Opened) -> None:
    """Refuse persons where suppressed records are compatible with all, whatever the columns say of a root."""
    if run.policy.table.entity_id is None:
        return
    named = opened.release is not None and opened.release.given.record_id is not None
    if named and run.policy.table.record_id is not None and run.policy.assess.suppressed == "compatible":
        raise InputError(
            "assess.suppressed: compatible and table.entity_id together are not available: suppressed records make "
            "classes overlap, and persons of overlapping classes are not counted; use 'apart', or leave out "
            "assess.release.record_id to count rows."
        )


def _layout(opened: Opened, vocabularies: Sequence[Vocabulary], *, persons: bool, weighted: bool) -> Layout:
    return Layout(
        tuple(hierarchy.n_nodes for hierarchy in opened.hierarchies.values()),
        tuple(vocabulary.count for vocabulary in vocabularies),
        persons,
        weighted,
    )


def _count_table(
    run: ResultRun, opened: Opened, encoded: Encoded, vocabularies: Sequence[Vocabulary]
) -> CountedSubject:
    table, kept = run.policy.table, opened.policy.kept_columns
    layout = _layout(opened, vocabularies, persons=table.entity_id is not None, weighted=table.weight is not None)
    codes = {f"r{kept.index(vocabulary.name)}": vocabulary.codes for vocabulary in vocabularies}
    known, told = _of_households(run, opened, encoded.rows)
    rows = table_rows(known, opened.hierarchies, codes, layout, more=[schemas.RECORD_ID, *told])
    return _count(run, "table", "the table as it is", rows, layout, encoded.n_rows, vocabularies)


def _of_households(run: ResultRun, opened: Opened, rows: Batches) -> tuple[Batches, list[str]]:
    """Rows of the table with their household, and the name of its column, if the policy names one."""
    household = run.policy.assess.household
    if household is None:
        return rows, []
    return with_household(rows, f"r{opened.policy.kept_columns.index(household)}"), [HOUSEHOLD]


def _count_release(
    run: ResultRun, opened: Opened, release: Release, encoded: Encoded, vocabularies: Sequence[Vocabulary]
) -> tuple[CountedSubject, Pairs | None]:
    """Count the release; matched with the table by record id where both have one."""
    table, n_rows = run.policy.table, encoded.n_rows
    held = [vocabulary for vocabulary in vocabularies if held_in(release, vocabulary.name)]
    layout = _layout(opened, held, persons=False, weighted=False)
    if release.given.record_id is None or table.record_id is None:
        rows = open_released_rows(release, opened.hierarchies, held, layout)
        return _count(run, "release", release.title, rows, layout, n_rows, held), None
    masked = masked_columns(release, run.policy.assess.intervals, opened.sources.table)
    released = open_released_rows(
        release,
        opened.hierarchies,
        held,
        layout,
        identity=True,
        numbers=list(masked.values()),
        numeric=numeric_ids(opened.sources.table, table),
    )
    layout = replace(layout, persons=table.entity_id is not None, weighted=table.weight is not None)
    kept = opened.policy.kept_columns
    numbers = {f"y{j}": f"r{kept.index(name)}" for j, name in enumerate(masked)}
    more = [schemas.RECORD_ID, *numbers.values()]
    more += [schemas.ENTITY] if layout.persons else []
    more += [schemas.SAMPLE_WEIGHT] if layout.weighted else []
    records, told = _of_households(run, opened, as_doubles(encoded.rows, list(numbers.values())))
    alone = _layout(opened, [], persons=False, weighted=False)
    originals = table_rows(records, opened.hierarchies, {}, alone, [*more, *told])
    matched = collect_matched(run.scratch, originals, released, layout, numbers, n_rows, texts=told)
    subject = _count(run, "release", release.title, matched.rows, layout, n_rows, held)
    return subject, Pairs(matched, records)


def _count(
    run: ResultRun,
    name: str,
    title: str,
    rows: Batches,
    layout: Layout,
    n_rows: int,
    vocabularies: Sequence[Vocabulary],
) -> CountedSubject:
    directory, buckets = run.scratch.directory(f"counted-{name}"), buckets_of(n_rows)
    parts = tuple(run.scratch.collect_parts(count_rows(rows, layout, buckets, directory)))
    return CountedSubject(
        name, title, rows, layout, buckets, directory, parts, totals(parts, layout), tuple(vocabularies)
    )


def _count_population(run: ResultRun, opened: Opened, encoded: Encoded) -> StoredCounts | None:
    named = population_of(opened.policy)
    if named.table is None:
        return None
    rows = dictionary_rows(encoded.rows, opened.sources.dictionaries[named.name], named, opened.hierarchies)
    return collect_held(run.scratch, rows, opened.policy, opened.hierarchies, named)
