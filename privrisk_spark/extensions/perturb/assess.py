"""A masked release held against its table: both as numbers side by side, and record by record where ids tell whose.

Changed values are no labels of a hierarchy, so nothing is counted in its lattice. What needs to know which record
became which row is measured where the vault, or the release itself, has the record ids; all else without.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses
from pyspark.sql import types as T  # noqa: N812

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import Batches, Scratch
from privrisk_spark.engine.number_texts import column
from privrisk_spark.engine.value_codes import as_text_column, ids_are_numbers
from privrisk_spark.errors import InputError, SchemaError
from privrisk_spark.extensions.perturb.planning import MaskPlan, mask_plan
from privrisk_spark.pipelines.assess.opened import open_release
from privrisk_spark.pipelines.assess.vault import left_in_vault, open_decisions, with_ids
from privrisk_spark.pipelines.run import ResultRun
from privrisk_spark.planning.assessment import ALL, RELEASE, predicts_values, refuse_masks_of_another, sets_of
from privrisk_spark.policy.assessment import Interval, Masked
from privrisk_spark.policy.policy import Policy
from privrisk_spark.results.assessment import Measured, Subject
from privrisk_spark.stages.assessing.classes import Layout
from privrisk_spark.stages.assessing.matched import Matched, as_doubles, collect_matched
from privrisk_spark.stages.assessing.numeric_utility import collect_numeric_utility
from privrisk_spark.stages.assessing.pairs import collect_intervals
from privrisk_spark.stages.assessing.sources import Release
from privrisk_spark.stages.assessing.values import collect_moments, collect_value_classes, collect_value_predictions
from privrisk_spark.tables.materialize import Materialized, collect_materialized
from privrisk_spark.tables.opening import open_table
from privrisk_spark.tables.tidying import recoded

PAIRED = ("masked_distance", "mean_shift", "variance_ratio", "rid", "sdid")
"""Measures of a column that need to know which record became which row."""


@dataclass(frozen=True, eq=False)
class MaskedRelease:
    """A masked release, opened.

    Attributes
    ----------
    release : Release
        As it is published.
    plan : MaskPlan
        What was done to its columns.
    named : Release or None
        The same rows with the ids of their records.
    snapshot : str or None
        Of the content of the table it was made of, where that is known.
    nameless : str
        Why its rows have no ids, where they have none.
    """

    release: Release
    plan: MaskPlan
    named: Release | None
    snapshot: str | None
    nameless: str

    def column(self, name: str, policy: Policy) -> str:
        """Column of the release that holds a column of the table."""
        asked = policy.assess.intervals.get(name)
        return (asked and asked.masked) or self.release.column(name)


def open_masked(spark: SparkSession, policy: Policy, given: Masked) -> MaskedRelease:
    """Open the masked release that the policy names.

    Parameters
    ----------
    policy : Policy
        Of the kind 'masked'.
    given : Masked
        How it is named there.

    Raises
    ------
    InputError, SchemaError
        If there is none, it is of another kind or other masks, it lacks a column, or record by record is asked for
        and nobody knows whose its rows are.
    """
    plan = mask_plan(policy)
    needed = list(dict.fromkeys([*policy.quasi_identifiers, *plan.masks]))
    release = open_release(spark, policy, given, needed, key=RELEASE, used=policy.used_columns)
    if release.manifest is None:
        named = None if release.given.record_id is None or policy.table.record_id is None else release
        return MaskedRelease(release, plan, named, None, "the release does not name its records")
    refuse_masks_of_another(policy, release.manifest)
    run_id = release.manifest["run_id"]
    if policy.assess.intervals or left_in_vault(policy, run_id) is not None:
        decisions, summary, place = open_decisions(spark, policy, run_id, key=RELEASE)
        return MaskedRelease(release, plan, with_ids(release, decisions, place), summary["snapshot"], "")
    return MaskedRelease(release, plan, None, None, "the vault no longer tells whose the rows of the release are")


@dataclass(frozen=True, eq=False)
class _Sides:
    """The table and the release, as values in the columns ``r<i>`` of what is released.

    Attributes
    ----------
    table : Materialized
        With the record id.
    release : DataFrame
        Those columns that it has.
    numeric : bool
        Whether the record ids of the table are numbers.
    """

    policy: Policy
    masked: MaskedRelease
    scratch: Scratch
    table: Materialized
    release: DataFrame
    numeric: bool

    def at(self, name: str) -> str:
        """Column of both sides that holds a released column."""
        return f"r{self.policy.kept_columns.index(name)}"

    @property
    def numbers(self) -> dict[str, str]:
        """Columns of both sides by the name of the column that is masked as numbers."""
        return {name: self.at(name) for name in self.masked.plan.masked_numbers}

    @cached_property
    def of_table(self) -> Batches:
        """The table with its masked numbers as doubles."""
        return as_doubles(self.table.encoded, list(self.numbers.values()))

    @cached_property
    def of_release(self) -> Batches:
        """The release with its masked numbers as doubles."""
        return as_doubles(Batches.of_frame(self.release), list(self.numbers.values()))


def measure_masked(run: ResultRun, masked: MaskedRelease) -> tuple[list[Measured], Subject]:
    """Measure the table and its masked release side by side.

    Returns
    -------
    list of Measured
        Of the table, besides what is measured of its classes.
    Subject
        The release.

    Raises
    ------
    InputError
        If the table is not the one that was masked.
    """
    sides = _open_sides(run, masked)
    matched = None if masked.named is None else _matched(sides, masked.named)
    before = _alone(sides, "table", sides.of_table)
    after = [*_claimed(sides), *_alone(sides, "release", sides.of_release), *_compared(sides, matched)]
    return before, Subject("release", masked.release.title, tuple(after))


def _alone(sides: _Sides, name: str, rows: Batches) -> list[Measured]:
    """What is measured of each side by itself."""
    of = {"subject": name, "set": ALL}
    moments = collect_moments(sides.scratch, rows, sides.numbers, of, store=name)
    return [*moments, *_predicted(sides, name, rows)]


def _open_sides(run: ResultRun, masked: MaskedRelease) -> _Sides:
    """Read both sides again as values; of the table what was read of it to mask it, so that its content tells it."""
    policy, scratch = run.policy, run.scratch.below("masked")
    opened = recoded(open_table(run.spark, policy, run.table).rows, policy)
    read = collect_materialized(scratch, opened, policy, {}, given=run.table is not None)
    if masked.snapshot not in (None, read.facts.snapshot):
        raise InputError(
            f"{RELEASE}: the table is not the one that {masked.release.title} was made of, or the policy reads other "
            "columns of it; assess it by the policy and the table it was made with, or mask this one."
        )
    if read.facts.null_ids or read.facts.duplicate_ids:
        raise SchemaError(
            f"table.record_id: every record must have an id of its own to be held against its masked form (null: "
            f"{read.facts.null_ids:,}, shared: {read.facts.duplicate_ids:,}). Mend the column."
        )
    kinds = {field.name: field.dataType for field in opened.schema.fields}
    shown = _typed(masked, policy, masked.release, kinds)
    numeric = ids_are_numbers((opened, policy.table.record_id))
    sides = _Sides(policy, masked, scratch, read, shown, numeric)
    rows = shown.count()
    if masked.release.manifest is not None and rows != read.facts.rows:
        raise InputError(
            f"{RELEASE}: {masked.release.title} has {rows:,} rows and the table {read.facts.rows:,}, so that it was "
            "not made of this table; name the table it was made of, or mask this one."
        )
    return sides


def _typed(masked: MaskedRelease, policy: Policy, release: Release, kinds: dict[str, T.DataType]) -> DataFrame:
    """Released columns as ``r<i>`` of the types that the table has, of texts as files of CSV hold them, too."""
    there = {name: masked.column(name, policy) for name in policy.kept_columns}
    there = {name: held for name, held in there.items() if held in release.frame.columns}
    texts = [
        name
        for name, held in there.items()
        if isinstance(release.frame.schema[held].dataType, T.StringType) and not isinstance(kinds[name], T.StringType)
    ]
    values = {
        name: column(held).try_cast(kinds[name]) if name in texts else column(held) for name, held in there.items()
    }
    if texts:
        none = [F.count_if(column(there[name]).isNotNull() & values[name].isNull()) for name in texts]
        counts = release.frame.agg(*[one.alias(f"n{i}") for i, one in enumerate(none)]).toArrow()
        for i, name in enumerate(texts):
            number = counts.column(i)[0].as_py()
            if number:
                raise SchemaError(
                    f"{RELEASE}: the column '{there[name]}' of {masked.release.title} holds {number:,} values that are "
                    f"no {kinds[name].simpleString()}, as '{name}' of the table is; mend them."
                )
    kept = policy.kept_columns
    return release.frame.select(*[value.alias(f"r{kept.index(name)}") for name, value in values.items()])


def _matched(sides: _Sides, named: Release) -> Matched:
    """Put the masked numbers beside the records they are of."""
    identity, names, numeric = named.given.record_id, list(sides.numbers), sides.numeric
    assert identity is not None
    given = [
        column(sides.masked.column(name, sides.policy) if named is sides.masked.release else name) for name in names
    ]
    wanted = [one.alias(f"y{j}") for j, one in enumerate(given)]
    frame = named.frame.select(column(identity).alias(schemas.RECORD_ID), *wanted)
    doubles = as_doubles(Batches.of_frame(frame), [f"y{j}" for j in range(len(names))])

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for rows in tables:
            ids = as_text_column(rows.column(schemas.RECORD_ID), schemas.RECORD_ID, numbers=numeric)
            told = rows.set_column(0, schemas.RECORD_ID, ids)
            yield told.append_column(schemas.N_ROWS, pa.array(np.ones(rows.num_rows, dtype=np.int64)))

    fields = [T.StructField(schemas.RECORD_ID, T.StringType()), *doubles.schema.fields[1:]]
    released = doubles.then(step, T.StructType([*fields, T.StructField(schemas.N_ROWS, T.LongType())]))
    numbers = {f"y{j}": at for j, at in enumerate(sides.numbers.values())}
    rows = sides.table.facts.rows
    matched = collect_matched(sides.scratch, sides.of_table, released, Layout(()), numbers, rows)
    strangers = frame.count() - (rows - matched.absent)
    if matched.absent or strangers:
        raise InputError(
            f"{RELEASE}: {matched.absent:,} records of the table have no row in {named.title}, and "
            f"{strangers:,} rows are of no record of it, or of one that has a row already; name the table it was made "
            "of."
        )
    return matched


def _compared(sides: _Sides, matched: Matched | None) -> Iterator[Measured]:
    """Measures that need to know which record became which row; not computed where nobody does."""
    of: dict[str, object] = {"subject": "release", "set": ALL}
    names = list(sides.numbers)
    if matched is None:
        for name in PAIRED:
            for of_column in names:
                yield Measured(name, None, {**of, "column": of_column, "reason": sides.masked.nameless})
        return
    asked = {name: (sides.policy.assess.intervals.get(name, Interval()), at) for name, at in sides.numbers.items()}
    yield from collect_intervals(sides.scratch, matched, sides.of_table, asked, of)
    yield from collect_numeric_utility(sides.scratch, matched, names, of)


def _claimed(sides: _Sides) -> Iterator[Measured]:
    """Class sizes of the released values, where microaggregation says how many rows are alike."""
    if sides.masked.plan.proved_k is None:
        return
    assess, quasi = sides.policy.assess, [sides.at(name) for name in sides.policy.quasi_identifiers]
    yield from collect_value_classes(
        sides.release,
        quasi,
        {"subject": "release", "set": ALL},
        k=assess.thresholds.get("k", assess.k),
        risk_above=assess.risk_above,
    )


def _predicted(sides: _Sides, name: str, rows: Batches) -> Iterator[Measured]:
    """Predict the label from the first set of quasi-identifiers, masked numbers as numbers."""
    asked, label = sides.policy.assess.classifiers, sides.policy.assess.label
    if asked is None or label is None or not predicts_values(sides.policy):
        return
    set_name, columns = next(iter(sets_of(sides.policy).items()))
    frame, of = rows.frame(), {"subject": name, "set": set_name}
    if sides.at(label) not in frame.columns:
        reason = "the release does not hold the label"
        for model in asked.models:
            yield Measured("classifier_accuracy", None, {**of, "model": model, "reason": reason})
        return
    numbers, categories = _split(columns, sides)
    yield from collect_value_predictions(frame, numbers, categories, sides.at(label), asked, of)


def _split(columns: Sequence[str], sides: _Sides) -> tuple[list[str], list[str]]:
    """Columns of both sides to learn from: those that are masked as numbers, and the others."""
    numbers = [sides.numbers[name] for name in columns if name in sides.numbers]
    return numbers, [sides.at(name) for name in columns if name not in sides.numbers]
